"""What distinguishers use: numbers and categories of each output, which depend on that output alone."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.apart import Apart
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.leaves import is_value
from dpassay.audit.outputs.outputs import Array, Outputs, as_row, kind_of, shape_name
from dpassay.audit.outputs.relations.row_views import near

MOST_COPIED = 8  # inputs whose copies are searched for
NEGATIVE_ZERO = 4 << MOST_COPIED  # the flag of outputs with a zero whose sign is negative
EQUAL, MOST_COMPARED = 8 << MOST_COPIED, 16  # that of outputs with two equal fractions, and coordinates of these
FLOAT_BITS, BIT_VIEWS = "float bits", 4
MANTISSA, FEW_ROWS = 52, 1 << 11  # bits, and outputs that show which of them differs most
NOT_ZERO, NTH = "where the output is not 0", ("first", "second", "third")
PLACES = len(NTH)
MANY, FEW = 1 << 14, 64  # from this many values per call, and up to this many edges, edges are counted


def binned(values: Array, edges: Array) -> NDArray[Any]:
    """The bin of each value; NaN has its own bin, the last.

    >>> binned(np.array([-1.0, 0.0, 0.5, np.nan]), np.array([0.0, 1.0])).tolist()
    [0, 1, 1, 3]
    """
    if len(values) < MANY or len(edges) > FEW:
        bins = np.searchsorted(edges, values, side="right")
    else:  # counting the edges below gives the same, twice as fast as searching
        bins = np.zeros(len(values), dtype=np.uint8)
        for start in range(0, len(values), MANY):
            some, into = np.ascontiguousarray(values[start : start + MANY]), bins[start : start + MANY]
            for edge in edges:
                into += some >= edge
    bins[np.isnan(values)] = len(edges) + 1
    return bins


# Features for boosting: from outputs to a function that returns one column at a time.


def _coordinates(outputs: Outputs, width: int) -> Callable[[int], Array]:
    rows = outputs.matrix(width)

    def column(j: int) -> Array:
        if j < width:
            return rows[:, j]
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(rows[:, j - width + 1] - rows[:, j - width])

    return column


def _endings(outputs: Outputs, width: int) -> Callable[[int], Array]:
    """For outputs that stop early: how many coordinates are numbers, and the last one that is."""
    rows = outputs.matrix(width)
    known = ~np.isnan(rows)
    last = width - 1 - known[:, ::-1].argmax(axis=1)
    return lambda j: known.sum(axis=1).astype(float) if j == 0 else rows[np.arange(len(rows)), last]


def _places(outputs: Outputs, width: int) -> Callable[[int], Array]:
    """For outputs that are mostly 0: the positions of the first three nonzero numbers, and how many there are."""
    rows = outputs.matrix(width)
    marked = (rows != 0) & ~np.isnan(rows)
    numbers = marked.sum(axis=1)

    def column(j: int) -> Array:
        if j == PLACES:
            return np.asarray(numbers, dtype=float)
        nth = marked & (np.cumsum(marked, axis=1) == j + 1)
        return np.asarray(np.where(numbers > j, nth.argmax(axis=1), np.nan))

    return column


def _float_bits(outputs: Outputs, width: int) -> Callable[[int], Array]:
    """For each coordinate: its trailing zero bits, its exponent, the place of its last one bit, its last three bits.

    After these, all bits of the mantissa one by one.
    """
    rows = outputs.matrix(width)

    def column(j: int) -> Array:
        if j >= BIT_VIEWS * width:  # one bit
            place, bit = divmod(j - BIT_VIEWS * width, MANTISSA)
            bits = np.ascontiguousarray(rows[:, place]).view(np.uint64)
            return np.asarray(bits >> np.uint64(bit) & np.uint64(1), dtype=float)
        bits = np.ascontiguousarray(rows[:, j // BIT_VIEWS]).view(np.uint64)
        exponent = (bits >> np.uint64(52) & np.uint64(0x7FF)).astype(float)
        lowest = np.maximum(bits & (~bits + np.uint64(1)), np.uint64(1))
        zeros = np.minimum(np.log2(lowest.astype(float)), 52.0)  # after the last one bit of the mantissa
        # A sum's rounding shows in the place of the last one bit, whatever the exponent: exponent and zeros together.
        views = (zeros, exponent, exponent + zeros, (bits & np.uint64(7)).astype(float))
        return np.asarray(views[j % BIT_VIEWS])

    return column


def _lengths(outputs: Outputs, width: int) -> Callable[[int], Array]:
    """Characters or entries, and words."""
    return lambda j: outputs.lengths() if j == 0 else np.array([float(len(t.split())) for t in outputs.texts()])


FEATURES: dict[str, Callable[[Outputs, int], Callable[[int], Array]]] = {
    "coordinates": _coordinates,
    "where the output ends": _endings,
    NOT_ZERO: _places,
    FLOAT_BITS: _float_bits,
    "lengths": _lengths,
}


def features_examined(kind: str, outputs: Sequence[Outputs], width: int) -> list[int]:
    """The columns that are worth a table: all of them, but of single bits only the one that differs most."""
    if kind != FLOAT_BITS or not width:
        return list(range(feature_count(kind, width)))
    means = []
    for some in outputs:
        bits = np.ascontiguousarray(some.matrix(width)).view(np.uint64)
        means.append(
            [[(bits[:, j] >> np.uint64(k) & np.uint64(1)).mean() for k in range(MANTISSA)] for j in range(width)]
        )
    best = int(np.abs(np.array(means[1]) - np.array(means[0])).argmax())
    return [*range(BIT_VIEWS * width), BIT_VIEWS * width + best]


def feature_count(kind: str, width: int) -> int:
    """How many columns a kind of features has."""
    return {"coordinates": 2 * width - 1, FLOAT_BITS: (BIT_VIEWS + MANTISSA) * width, NOT_ZERO: PLACES + 1}.get(kind, 2)


def feature_name(kind: str, column: int, width: int) -> str:
    """A description of a column of these features.

    >>> feature_name("coordinates", 2, 4), feature_name("coordinates", 4, 4), feature_name("lengths", 1, 1)
    ('output[2]', 'output[1] - output[0]', 'the number of words')
    """
    if kind == FLOAT_BITS and column >= BIT_VIEWS * width:
        place, bit = divmod(column - BIT_VIEWS * width, MANTISSA)
        return f"bit {bit} of the mantissa of {coordinate_name(place, width)}"
    if kind == FLOAT_BITS:
        views = ("the zeros at the end", "the exponent", "the place of the last one", "the last three bits")
        return f"{views[column % BIT_VIEWS]} of {coordinate_name(column // BIT_VIEWS, width)}"
    if kind == "coordinates":
        j = column - width
        return coordinate_name(column, width) if j < 0 else f"output[{j + 1}] - output[{j}]"
    pairs = {
        "lengths": ("the length", "the number of words"),
        "where the output ends": ("how many numbers", "the last"),
        NOT_ZERO: (*(f"where the {nth} number that is not 0 stands" for nth in NTH), "how many are not 0"),
    }
    return pairs[kind][column]


def coordinate_name(j: int, width: int) -> str:
    """The name of a coordinate, for outputs that have `width` of them."""
    return "the output" if width == 1 else f"output[{j}]"


def anomalies(outputs: Outputs, inputs: tuple[Any, ...]) -> tuple[NDArray[np.int64], dict[int, str]]:
    """What is anomalous about each output: its type, NaN, infinities, and exact copies of an input or its coordinates.

    A code for each output, and what the codes mean.
    """
    if outputs.numbers is not None:
        flags = _flags(outputs.numbers, inputs)
        if set(map(type, outputs.items)) <= {float}:  # also if the batch was an array
            kind = shape_name(outputs.numbers.shape[1])
            return flags, {int(flag): kind + _flag_words(int(flag)) for flag in distinct(flags)}
        sorts: dict[Any, str] = {}
        names = []
        for item, flag in zip(outputs.items, flags.tolist(), strict=True):
            sort = _sort_of(item, flag)
            name = None if sort is None else sorts.get(sort)
            if name is None:
                name = kind_of(item) + _flag_words(flag)
                sorts[sort] = name
            names.append(name)
    elif outputs.only_text:
        copies = {str(x): _anomaly(str(x), None, inputs, []) for x in inputs if isinstance(x, str)}
        names = [copies.get(item, "text") for item in outputs.items]
    else:
        apart = outputs.apart or [None] * len(outputs.items)
        telling = _telling(inputs)
        names = [_anomaly(item, known, inputs, telling) for item, known in zip(outputs.items, apart, strict=True)]
    known = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.int64), {code: name for name, code in known.items()}


def _sort_of(item: Any, flag: int) -> Any:
    """What the name of an output depends on, if that is known; there are many outputs but few sorts."""
    kind = type(item)
    if kind is list or kind is tuple:
        return kind, len(item), frozenset(map(type, item)), flag
    return (kind, flag) if kind in (int, float, bool) else None


def _telling(inputs: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """The inputs whose copies in an output tell them: texts and numbers as they are, vectors as arrays. Whole numbers
    may be there by chance; otherwise counts of values show them."""
    found: list[tuple[int, Any]] = []
    for i, x in enumerate(inputs[:MOST_COPIED]):
        if isinstance(x, str | float | int):
            if not isinstance(x, int) and not (isinstance(x, float) and x.is_integer()):
                found.append((i, x))
        elif (vector := as_row(x)) is not None:
            found.append((i, vector))
    return found


def _anomaly(item: Any, apart: Apart | None, inputs: tuple[Any, ...], telling: list[tuple[int, Any]]) -> str:
    """What is anomalous about one output: its type, NaN, infinities, copies of an input, also in its leaves."""
    row, name = as_row(item), kind_of(item)
    if row is not None:
        return name + _flag_words(int(_flags(row[None, :], inputs)[0]))
    if apart is None:
        return name + "".join(f", copies input {i}" for i, x in enumerate(inputs) if isinstance(x, str) and x == item)
    for i, x in telling:
        if isinstance(x, str | float):
            there = (
                path for path, leaf in apart.leaves.items() if type(leaf) is type(x) and leaf == x and is_value(path)
            )
        else:
            there = (path for path, leaf in apart.leaves.items() if _same_row(leaf, x))
        path = next(there, None)
        name += "" if path is None else f", {path} copies input {i}"
    return name


def _same_row(leaf: Any, vector: Array) -> bool:
    return isinstance(leaf, np.ndarray) and np.array_equal(leaf, vector)


def _flags(rows: Array, inputs: tuple[Any, ...]) -> NDArray[np.int64]:
    """1 for NaN, 2 for infinity, 4 << i for a coordinate that equals input i's and no other input's; for −0.0; and for
    two equal fractions."""
    flags = np.zeros(len(rows), dtype=np.int64)
    negative = (rows == 0) & np.signbit(rows)
    if negative.any():
        flags += NEGATIVE_ZERO * negative.any(axis=1)
    if 1 < rows.shape[1] <= MOST_COMPARED:
        flags += EQUAL * _equal_fractions(rows)
    with np.errstate(invalid="ignore", over="ignore"):
        if not np.isfinite(rows.sum(axis=1)).all():
            flags += np.isnan(rows).any(axis=1) + 2 * np.isinf(rows).any(axis=1)
    vectors = [as_row(x) for x in inputs[:MOST_COPIED]]
    if any(v is None or len(v) != rows.shape[1] for v in vectors):
        return flags
    for i, vector in enumerate(vectors):
        telling = np.all([v != vector for j, v in enumerate(vectors) if j != i], axis=0)
        if telling.all():
            flags += (4 << i) * (rows == vector).any(axis=1)
        elif telling.any():
            flags += (4 << i) * (rows[:, telling] == vector[telling]).any(axis=1)  # type: ignore[index]
    return flags


def _equal_fractions(rows: Array) -> NDArray[np.bool_]:
    ordered = np.sort(rows, axis=1)
    same = near(ordered[:, 1:], ordered[:, :-1])
    if not same.any():
        return np.zeros(len(rows), dtype=bool)
    return np.asarray((same & (ordered[:, 1:] != np.rint(ordered[:, 1:]))).any(axis=1))


def _flag_words(flag: int) -> str:
    known = ((1, "NaN"), (2, "infinite"), (NEGATIVE_ZERO, "−0.0"), (EQUAL, "two equal fractions"))
    words = [word for bit, word in known if flag & bit]
    words += [f"copies input {i}" for i in range(MOST_COPIED) if flag & (4 << i)]
    return "".join(f", {word}" for word in words)
