"""What functions of libraries, builtins and methods of arrays make of what they are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpassay.scan.reading.arithmetic import is_noise, multiplied, raised
from dpassay.scan.reading.terms import Term, function, named
from dpassay.scan.reading.values import (
    ARRAY,
    BY_DATA,
    CHOSEN,
    CLIPPED,
    CONSTANT,
    COUNT,
    DISTINCT,
    INDICATOR,
    INPUT,
    MEAN,
    NOISE,
    NOISY,
    OF_NORM,
    OF_NORM1,
    ONE_SIDED,
    RAW,
    SCALAR,
    SHAPES,
    SIZE,
    STAT,
    SUM,
    Value,
    combined,
    of_number,
)

SAME = frozenset(
    [
        "asarray",
        "array",
        "tensor",
        "as_tensor",
        "from_numpy",
        "float",
        "round",
        "rint",
        "list",
        "tuple",
        "squeeze",
        "int",
        "reshape",
        "ravel",
        "flatten",
        "astype",
        "to",
        "cuda",
        "cpu",
        "detach",
        "clone",
        "copy",
        "deepcopy",
        "numpy",
        "item",
        "tolist",
        "contiguous",
        "view",
        "double",
        "float32",
        "float64",
        "convert_to_tensor",
        "cast",
        "Series",
        "DataFrame",
        "to_numpy",
        "asanyarray",
        "ascontiguousarray",
        "atleast_1d",
        "nan_to_num",
        "unsqueeze",
        "expand_dims",
        "bfloat16",
        "half",
        "type",
        "type_as",
        "requires_grad_",
        "sorted",
        "floor",
        "ceil",
        "Decimal",
        "fillna",
        "dropna",
        "result",
        "values",
        "reset_index",
        "rename",
        "set_index",
        "sort_values",
        "sort_index",
        "to_frame",
        "str",
        "strip",
        "lower",
        "expand_as",
        "device_put",
        "stack",
        "concatenate",
        "vstack",
        "hstack",
        "cat",
        "iter",
        "next",
        "enumerate",
        "zip",
        "reversed",
        "pop",
        "get",
        "setdefault",
        "broadcast_to",
        "tile",
        "repeat",
        "cumsum",
        "roll",
        "check_array",
        "flat",
        "check_X_y",
        "validate_data",
        "_validate_data",
        "items",
        "to_list",
        "head",
        "sample_from",
        "assign",
        "map",
    ]
)
ARRAYS = frozenset(
    [
        "asarray",
        "array",
        "tensor",
        "as_tensor",
        "from_numpy",
        "Series",
        "DataFrame",
        "to_numpy",
        "asanyarray",
        "stack",
        "concatenate",
        "vstack",
        "hstack",
        "ravel",
        "flatten",
        "atleast_1d",
        "check_array",
    ]
)
NUMBERS = {"float", "int", "item"}
EXTREMES = frozenset(
    [
        "min",
        "max",
        "amin",
        "amax",
        "nanmin",
        "nanmax",
        "quantile",
        "percentile",
        "nanquantile",
        "nanpercentile",
        "ptp",
        "std",
        "nanstd",
        "var",
        "nanvar",
        "median",
        "nanmedian",
        "norm",
        "kthvalue",
        "nlargest",
        "mean_absolute_deviation",
        "iqr",
        "pstdev",
        "stdev",
        "variance",
        "reduce_max",
        "reduce_min",
    ]
)
SPREADS = {"std", "var", "ptp", "nanstd"}
SUMS = {"sum", "nansum", "fsum", "reduce_sum", "einsum", "dot", "total"}
MEANS = {"mean", "nanmean", "average", "fmean", "reduce_mean"}
COUNTS = frozenset(
    [
        "bincount",
        "histogram",
        "value_counts",
        "Counter",
        "count_nonzero",
        "crosstab",
        "histogram2d",
        "histogramdd",
        "histc",
    ]
)
DISTINCTS = {"unique", "set", "Categorical", "factorize", "LabelEncoder", "drop_duplicates", "nunique"}
SIZES = {"len", "shape", "size", "numel", "nelement"}
CHOICES = {"argmax", "argmin", "topk", "argsort", "nanargmax"}
FRESH = frozenset(
    [
        "zeros",
        "ones",
        "zeros_like",
        "ones_like",
        "empty",
        "empty_like",
        "full",
        "arange",
        "linspace",
        "eye",
        "range",
        "isinstance",
        "hasattr",
        "print",
        "warn",
        "format",
        "getLogger",
        "identity",
        "type",
        "id",
        "callable",
        "issubclass",
        "repr",
        "info",
        "debug",
        "warning",
    ]
)


def function_of(name: str, args: list[Value], owner: Value | None) -> Value:
    """The value of a call, by the last part of the function's name; `owner` is the object of a method."""
    last = name.rpartition(".")[2]
    given = ([owner] if owner is not None else []) + args
    first = given[0] if given else Value()
    if last in ("zip", "enumerate") and owner is None:
        return replace(combined(given), items=tuple(given))
    if last in ("reindex", "get", "most_common") and DISTINCT in first.marks:
        kept = last == "most_common" or not args or args[0].has(DISTINCT)  # by given keys, or by those of the data
        return first.marked(without=SHAPES | (frozenset() if kept else frozenset({DISTINCT})))
    if last in MATHEMATICS:
        return MATHEMATICS[last](first, given)
    if last in SAME:
        return _same(last, first, given)
    if last in ("clip", "clamp", "clamp_", "clip_by_value", "clip_"):
        return first.marked(CLIPPED) if not any(one.has(RAW) for one in given[1:]) else first.marked(RAW)
    if last in ("eye", "ones", "identity", "ones_like"):
        return Value((Term(),), frozenset({ARRAY}))
    if last in FRESH:
        return Value(
            marks=frozenset({ARRAY}) if last not in ("range", "print", "isinstance", "hasattr") else frozenset()
        )
    if last.startswith("histogram"):
        counts = combined(given).marked(COUNT)
        return replace(counts, items=(counts, Value()))
    if last in COUNTS:
        return combined(given).marked(COUNT, *((DISTINCT,) if last in ("value_counts", "Counter", "crosstab") else ()))
    if last in DISTINCTS:
        made = combined(given)
        return made.marked(DISTINCT) if RAW in made.marks else made
    if last in SIZES:
        return _size(first)
    if last in ("max", "min", "maximum", "minimum") and len(given) >= 2:
        return _larger(last, given)
    if last in EXTREMES:
        return _statistic(first, STAT)
    if last in SUMS or last in MEANS:
        return _statistic(first, SUM if last in SUMS else MEAN)
    made = combined(given)
    if last in CHOICES and made.has(NOISY, NOISE):
        return made.marked(CHOSEN)
    return made.marked(without=SHAPES)


def _same(last: str, first: Value, given: list[Value]) -> Value:
    if last in ("stack", "concatenate", "vstack", "hstack", "cat", "zip") and first.items is None:
        first = combined(given) if len(given) > 1 else first
    if last in ("get", "pop", "items", "result"):
        return first.marked(without=SHAPES)
    if last in ARRAYS and first.constant is None:
        return first.marked(ARRAY, without=SHAPES)
    return first.marked(SCALAR, without=SHAPES) if last in NUMBERS else first


def _size(first: Value) -> Value:
    if first.has(RAW, INPUT, SIZE):
        return Value((named("count"),), frozenset({SIZE, SCALAR}), leaves=first.leaves)
    return Value((named("count"),), frozenset({SCALAR}), leaves=first.leaves)


def _statistic(first: Value, mark: str) -> Value:
    if is_noise(first):
        return replace(first, terms=(), law="formula")
    made = combined([first], keep=frozenset({CLIPPED}))
    made = made.marked(SCALAR, without=SHAPES | {OF_NORM, OF_NORM1, BY_DATA})
    if INDICATOR in first.marks and mark == SUM:
        return made.marked(COUNT, without=frozenset({INDICATOR})) if RAW in made.marks else made
    return made.marked(mark) if RAW in made.marks else made


def _larger(last: str, given: list[Value]) -> Value:
    """max(a, b): one of them; a bound if one is a constant or a parameter."""
    if any(is_noise(one) for one in given):
        return combined(given).marked(NOISE)
    alike = all(one.terms and one.terms[0].powers and not one.has(RAW) for one in given)
    if alike and len({one.terms[0].powers for one in given}) == 1:
        return combined(given, given[0].terms)  # the larger of two quantities of one kind
    known = [one for one in given if one.constant is None]
    if len(known) == 1 and known[0].terms and not known[0].has(RAW):
        return replace(known[0], terms=known[0].terms)  # max(1, n): the quantity, floored
    if len(given) == 2 and last in ("min", "minimum") and given[1].names & {"clip", "bound"} and not given[1].has(RAW):
        return combined(given, keep=frozenset({COUNT, SUM, MEAN})).marked(*(given[0].marks & SHAPES), CLIPPED)
    return combined(given)


def _unary(name: str) -> Callable[[Value, list[Value]], Value]:
    def made(first: Value, _: list[Value]) -> Value:
        if is_noise(first):
            law = "one-sided" if name == "abs" else "formula"
            side = (ONE_SIDED,) if name == "abs" else ()
            return replace(first, law=law, terms=first.terms if name == "abs" else _unit()).marked(*side)
        terms = tuple(function(name, one) for one in first.terms) if first.terms else ()
        keep = frozenset({CONSTANT}) if CONSTANT in first.marks else frozenset()
        if name == "abs":
            keep |= first.marks & {CLIPPED, INPUT}
        return combined([first], terms, keep).marked(*(first.marks & SHAPES), without=SHAPES)

    return made


def _unit() -> tuple[Term, ...]:
    return (Term(),)


def _power(exponent: float) -> Callable[[Value, list[Value]], Value]:
    return lambda first, _: raised(first, of_number(exponent))


MATHEMATICS: dict[str, Callable[[Value, list[Value]], Value]] = {
    "sqrt": _power(0.5),
    "square": _power(2.0),
    "cbrt": _power(1 / 3),
    "log": _unary("log"),
    "log1p": _unary("log1p"),
    "expm1": _unary("expm1"),
    "log2": _unary("log2"),
    "exp": _unary("exp"),
    "abs": _unary("abs"),
    "absolute": _unary("abs"),
    "fabs": _unary("abs"),
    "sign": _unary("sign"),
    "copysign": lambda first, given: replace(first, law="laplace", marks=first.marks - {ONE_SIDED}),
    "power": lambda first, given: raised(first, given[1]) if len(given) > 1 else first,
    "pow": lambda first, given: raised(first, given[1]) if len(given) > 1 else first,
    "multiply": lambda first, given: multiplied(first, given[1]) if len(given) > 1 else first,
    "mul": lambda first, given: multiplied(first, given[1]) if len(given) > 1 else first,
    "mul_": lambda first, given: multiplied(first, given[1]) if len(given) > 1 else first,
    "divide": lambda first, given: multiplied(first, given[1], True) if len(given) > 1 else first,
    "true_divide": lambda first, given: multiplied(first, given[1], True) if len(given) > 1 else first,
    "div": lambda first, given: multiplied(first, given[1], True) if len(given) > 1 else first,
    "div_": lambda first, given: multiplied(first, given[1], True) if len(given) > 1 else first,
    "reciprocal": _power(-1.0),
}
