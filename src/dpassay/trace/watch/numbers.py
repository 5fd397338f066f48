"""numpy and Python numbers that record the noise in them.

All operations use the plain numbers, so that the results of the code, their types and its errors are
those of the unwatched code; what is known about a result is attached to it. `follow` has the operations that
are followed. After others, such as a sort, nothing is known, and the replay decides.
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np
from numpy import array, asarray

from dpassay.trace.laws.picking import picked
from dpassay.trace.watch.deciding import COMPARED, compared_with, decided, placed_among, ranked
from dpassay.trace.watch.follow import (
    accumulated,
    assigned,
    combined,
    consistent,
    dotted,
    joined,
    moved,
    of_draw,
    summed,
)
from dpassay.trace.watch.record import Array, DrawRecord, Node, current, importing

_MOVES = {
    *(np.reshape, np.ravel, np.transpose, np.squeeze, np.expand_dims, np.copy, np.broadcast_to, np.repeat, np.tile),
    *(np.flip, np.roll, np.atleast_1d, np.atleast_2d, np.swapaxes, np.moveaxis, np.take, np.diagonal),
}
_JOINS = {np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.dstack, np.append}
_EACH = {np.clip, np.round, np.around, np.where, np.nan_to_num}  # elementwise functions, besides ufuncs
_ARGMAX, _ARGSORT = np.argmax, np.argsort
_PICKING = {np.argmax, np.argmin}
_PLACING = {np.searchsorted, np.digitize}
_LIBRARIES = {"dpassay", "numpy", "scipy", "pandas", "torch", "sklearn", "statsmodels", "pyarrow", "numba"}
_DOTS = {np.dot, np.inner}
LONGEST = 4096  # lists are followed up to this length
_ADD_EXACTLY = math.fsum
# During a run some are replaced.
_FULL, _SUM, _MEAN, _CUMSUM, _CLIP, _ADD_ALL = np.full, np.sum, np.mean, np.cumsum, np.clip, sum

_NUMBERS = (int, float, np.number, np.bool_, np.ndarray)

_T = TypeVar("_T")
KINDS: dict[type, type] = {}  # of a plain number's type, the watched one; the modules of these types fill both
NATURAL: dict[type, type] = {}
_STRIPPING: dict[type, Callable[[Any], Any]] = {}


def register(natural: type, kind: type, strip: Callable[[Any], Any]) -> None:
    """A watched type, the type that it stands for, and how its plain value is found."""
    KINDS[natural], NATURAL[kind], _STRIPPING[kind] = kind, natural, strip


def stands_for(kind: type, natural: Callable[[Any], Any]) -> None:
    """Register a type whose values are replaced by plain ones when they leave the code."""
    _STRIPPING[kind] = natural


def watched(draw: DrawRecord, scalar: bool) -> Any:
    """The numbers of a draw, watched from now on."""
    return with_node(draw.values.copy(), of_draw(draw), scalar)


def with_node(values: Any, node: Node | None, scalar: bool, sure: bool = False) -> Any:
    """Numbers with the node that describes them, if it is sure or still valid. One without a node stays plain."""
    run = current()
    if run is None or not isinstance(values, _NUMBERS):
        return values
    if type(values) is not float and (
        np.iscomplexobj(values) or (isinstance(values, np.ndarray) and values.dtype.kind not in "biuf")
    ):
        return values
    if node is not None and (sure or consistent(node, values)):
        values = run.note(node, values)
    else:
        node = None
    kind: Any = KINDS.get(type(values))
    return values if kind is None or (node is None and scalar) else kind.of(values, node)


def node_of(value: Any) -> Node | None:
    """The node that describes a number or an array while a run is watched."""
    if type(value) not in NATURAL or current() is None:
        return None
    node = value.node
    if not isinstance(node, Node):
        return None
    if isinstance(value, np.ndarray):
        now = plain(value)
        if node.offset.shape != now.shape or not np.array_equal(asarray(node.exact), now, equal_nan=True):
            return None  # written to in another way
    return node


def plain(value: Any) -> Any:
    """The same without its history; also inside lists, tuples, sets and dicts, which are kept if nothing changes."""
    strip = _STRIPPING.get(type(value))
    if strip is not None:
        return strip(value)
    kind = type(value)
    if kind in (list, deque, set, frozenset) or isinstance(value, tuple):
        parts = [plain(one) for one in value]
        if all(map(_is, parts, value)):
            return value
        if isinstance(value, tuple) and kind is not tuple:
            return kind(*parts) if hasattr(kind, "_fields") else value
        return deque(parts, value.maxlen) if isinstance(value, deque) else kind(parts)
    if isinstance(value, dict) and kind.__module__ in ("builtins", "collections"):
        found = {plain(key): plain(one) for key, one in value.items()}
        pairs = zip(found.items(), value.items(), strict=False)
        if len(found) == len(value) and all(a is c and b is d for (a, b), (c, d) in pairs):
            return value
        if kind in (dict, OrderedDict):
            return kind(found)
        made = value.copy()
        made.clear()
        made.update(found)
        return made
    return value


def _is(one: Any, other: Any) -> bool:
    return one is other


def attempted(find: Callable[[], _T | None]) -> _T | None:
    """What is known about a result, or None if computing that fails, which must not disturb the code."""
    if current() is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return find()
    except Exception:
        return None


def given_back(result: Any, arguments: Any) -> Any:
    """A result as the code gets it: an argument itself, or new numbers without a node."""
    if isinstance(result, tuple) and type(result) is tuple:
        return tuple(given_back(one, arguments) for one in result)
    if isinstance(result, np.ndarray):
        for one in arguments:
            if isinstance(one, np.ndarray) and type(one) in NATURAL and plain(one) is result:
                return one
        if type(result) is np.ndarray:
            return with_node(result, None, scalar=False)
    return result


def bare(value: Any) -> Any:
    """One number or array without its history."""
    strip = _STRIPPING.get(type(value))
    return value if strip is None else strip(value)


def apply(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of numpy on watched numbers."""
    out = options.pop("out", None)
    options = {name: plain(one) for name, one in options.items()}
    if out is not None:
        options["out"] = tuple(plain(one) for one in out)
    values = [plain(one) for one in inputs]
    node = None
    if method == "__call__" and ufunc.nout == 1 and ufunc.signature is None and not set(options) - {"out", "dtype"}:
        nodes = [node_of(one) for one in inputs]
        compared_with(ufunc, nodes, values)
        # Before the result, which may overwrite an input.
        node = attempted(lambda: combined(ufunc, nodes, values) if any(one is not None for one in nodes) else None)
    elif ufunc is np.add and method in ("reduce", "accumulate") and (only := node_of(inputs[0])) is not None:
        alone, sums = len(inputs) == 1 and not set(options) - {"axis"}, accumulated if method != "reduce" else _total
        node = attempted(lambda: sums(only, options.get("axis", 0))) if alone else None
    elif ufunc is np.matmul and method == "__call__" and not options:
        node = attempted(lambda: dotted([node_of(one) for one in inputs], values))
    result = getattr(ufunc, method)(*values, **options)
    if out is not None and len(out) == 1 and type(out[0]) in NATURAL:
        out[0].node = getattr(with_node(result, node, scalar=False), "node", None)
        return out[0]
    if ufunc.nout > 1 or (out is not None and len(out) > 1):
        return given_back(result, out or ())
    return with_node(result, node, scalar=not isinstance(result, np.ndarray))


def _total(node: Node, axis: Any) -> Node | None:
    return summed(node, axis, mean=False)


def _parts(things: Any) -> list[tuple[Node | None, Array]]:
    return [(node_of(one), asarray(plain(one))) for one in things]


def gathered(thing: Any) -> Node | None:
    """The node of nested lists of watched and plain numbers, as the array that numpy makes from them."""
    if not isinstance(thing, list | tuple):
        return node_of(thing)
    if not thing or len(thing) > LONGEST:
        return None
    nodes = [gathered(one) for one in thing]
    if not any(node is not None for node in nodes):
        return None
    parts = [(node, asarray(plain(one))) for node, one in zip(nodes, thing, strict=True)]
    if len({(values if node is None else node.offset).shape for node, values in parts}) != 1:
        return None
    return joined(parts, np.stack)


def called(function: Any, arguments: Any, options: Any) -> Any:
    """A function of numpy that is no ufunc, on watched numbers."""
    first = arguments[0] if arguments else None
    _decide(function, arguments)
    nodes = attempted(lambda: _after(function, first, arguments, options))
    result = function(*(plain(one) for one in arguments), **{name: plain(one) for name, one in options.items()})
    if current() is None:
        return result
    if function in _PICKING and len(arguments) == 1 and not options and type(result) is np.int64:
        at = _picked(node_of(first) if type(first) in NATURAL else attempted(lambda: gathered(first)), result, function)
        return result if at == result else np.int64(at)
    if function is _ARGSORT and len(arguments) == 1 and not options:
        ranked(node_of(first), "argsort", result)
    if nodes is None or "out" in options:
        return given_back(result, [*arguments, *options.values()])
    return with_node(result, nodes, scalar=not isinstance(result, np.ndarray))


def _picked(node: Node | None, result: Any, function: Any) -> int:
    try:
        return picked(node, int(result), largest=function is _ARGMAX)
    except Exception:  # it must not disturb the code
        return int(result)


@cache
def picking(function: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's argmax or argmin, of lists of watched numbers too."""

    def found(*arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and isinstance(arguments[0], list | tuple) and current() is not None:
            return called(function, arguments, options)
        return function(*arguments, **options)

    return found


def _decide(function: Any, arguments: Any) -> None:
    """Record what a function of numpy decides by noisy numbers."""
    nodes = [node_of(one) for one in arguments]
    if current() is None or not any(node is not None for node in nodes):
        return
    if function in _PLACING and len(arguments) > 1:
        edges, numbers = (0, 1) if function is np.searchsorted else (1, 0)
        placed_among(nodes[numbers], plain(arguments[edges]))
    elif function in (np.round, np.around) and len(arguments) == 1:
        compared_with(np.rint, nodes, [])
    elif function not in _MOVES | _JOINS | _EACH | _DOTS | {_SUM, _MEAN, _CUMSUM}:
        for node in nodes:
            what = f"given to {getattr(function, '__name__', 'a function')}"
            decided(node, COMPARED if function in _PICKING | {_ARGSORT} else what)


def _after(function: Any, first: Any, arguments: Any, options: Any) -> Node | None:
    """What is known of the result of a function of numpy."""
    simply = {name: plain(one) for name, one in options.items()}
    rest = [plain(one) for one in arguments[1:]]
    if function in _MOVES and (own := node_of(first)) is not None:
        return moved(own, lambda part: function(part, *rest, **simply))
    if function in _JOINS:
        if function is np.append:
            return joined(_parts(arguments[:2]), lambda both: np.append(*both, *rest[1:], **simply))
        return joined(_parts(first), lambda all_of: function(all_of, *rest, **simply))
    if function in _EACH and any(node_of(one) is not None for one in arguments):
        given = [plain(one) for one in arguments]
        nodes = [node_of(one) for one in arguments]
        if function is _CLIP and len(given) < 3:  # both ends must be given
            given += [simply.pop(name, simply.pop(old, None)) for name, old in _ENDS[len(given) - 1 :]]
            nodes += [None] * (3 - len(nodes))
        return combined(function, nodes, given, simply or None)
    if function in _DOTS and len(arguments) == 2 and not options and (function is not np.inner or np.ndim(rest[0]) < 2):
        return dotted([node_of(one) for one in arguments], [plain(one) for one in arguments])
    if function is _CUMSUM and (own := node_of(first)) is not None and len(arguments) < 3:
        axis = rest[0] if rest else simply.get("axis")
        return accumulated(own, axis) if not set(simply) - {"axis"} else None
    if function in (_SUM, _MEAN) and (own := node_of(first)) is not None and len(arguments) < 3:
        axis = rest[0] if rest else simply.get("axis")
        return summed(own, axis, mean=function is _MEAN) if not set(simply) - {"axis"} else None
    return None


_ENDS = (("a_min", "min"), ("a_max", "max"))


def theirs(frame: Any) -> bool:
    """Whether a frame is of the code that is watched, and not of a library."""
    return frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES


@cache
def making(function: Callable[..., Any]) -> Callable[..., Any]:
    """A numpy function that makes an array from its input, which stays watched."""

    def made(*arguments: Any, **options: Any) -> Any:
        if current() is None or not theirs(sys._getframe(1)) or importing():
            return function(*arguments, **options)
        thing = arguments[0] if arguments else None
        result = function(*(plain(one) for one in arguments), **{key: plain(one) for key, one in options.items()})
        if type(result) is not np.ndarray or result.dtype.kind not in "biuf":
            return result
        if (same := given_back(result, arguments[:1])) is thing and thing is not None:
            return same
        node = attempted(lambda: gathered(thing)) if result.dtype.kind == "f" else None
        fill = arguments[1] if len(arguments) > 1 else options.get("fill_value")
        if function is _FULL and (filled := node_of(fill)) is not None:
            node = attempted(lambda: moved(filled, lambda part: np.broadcast_to(part, result.shape)))
        return with_node(result, node, scalar=False)

    return made


@cache
def totalling(function: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's sum, mean, dot and the like, in which lists of watched numbers stay watched."""

    def total(*arguments: Any, **options: Any) -> Any:
        if current() is None or not any(isinstance(one, list | tuple) for one in arguments[:2]):
            return function(*arguments, **options)
        return function(*map(_as_array, arguments[:2]), *arguments[2:], **options)

    return total


def _as_array(thing: Any) -> Any:
    """A list as the array that numpy makes of it, if there are watched numbers in it."""
    node = attempted(lambda: gathered(thing)) if isinstance(thing, list | tuple) else None
    if node is not None:
        return with_node(asarray(plain(thing)), node, scalar=False)
    return plain(thing) if isinstance(thing, list | tuple) else thing


@cache
def elementwise(function: Callable[..., Any], alike: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's math module that has a numpy counterpart."""

    def computed(*arguments: Any) -> Any:
        values = [plain(one) for one in arguments]
        result = function(*values)
        nodes = [node_of(one) for one in arguments]
        if not any(node is not None for node in nodes):
            return result
        compared_with(alike, nodes, values)
        return with_node(result, attempted(lambda: combined(alike, nodes, values)), scalar=True)

    return computed


MATH = {
    **{name: getattr(np, name) for name in ("log", "log1p", "log2", "exp", "expm1", "sqrt", "cos", "sin", "tan")},
    **{"fabs": np.abs, "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil},
}
assert all(hasattr(math, name) for name in MATH)


def quantiles() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """The methods of loaded libraries that turn uniform numbers into others: class, name, and watched version."""
    if "statistics" in sys.modules:
        normal = sys.modules["statistics"].NormalDist
        yield normal, "inv_cdf", _quantile(normal.inv_cdf, True)
    if "scipy.stats" in sys.modules:
        kind = sys.modules["scipy.stats"].rv_continuous
        for name in ("ppf", "isf"):
            yield kind, name, _quantile(getattr(kind, name), False)


@cache  # every run installs them again
def _quantile(own: Callable[..., Any], one_by_one: bool) -> Callable[..., Any]:
    @wraps(own)
    def computed(self: Any, q: Any, *arguments: Any, **options: Any) -> Any:
        node, at = node_of(q), plain(q)
        given, more = [plain(one) for one in arguments], {key: plain(one) for key, one in options.items()}
        result = own(self, at, *given, **more)
        if node is None or current() is None:
            return result

        def whole(values: Any) -> Array:
            if one_by_one:
                return array([own(self, one) for one in np.ravel(values).tolist()]).reshape(np.shape(values))
            return asarray(own(self, asarray(values), *given, **more))

        return with_node(result, attempted(lambda: combined(whole, [node], [at])), scalar=np.ndim(result) == 0)

    return computed


def adding(things: Any, /, start: Any = 0) -> Any:
    """Python's sum, with watched numbers kept watched: it adds exact floats with less rounding than other types."""
    return _ADD_ALL(things, start) if current() is None else _added(_ADD_ALL, list(things), start)


def adding_exactly(things: Any, /) -> Any:
    """The same for math.fsum."""
    return _ADD_EXACTLY(things) if current() is None else _added(_ADD_EXACTLY, list(things))


def _added(add: Callable[..., Any], parts: list[Any], *start: Any) -> Any:
    result = add([plain(one) for one in parts], *map(plain, start))
    if not any(type(one) in NATURAL for one in (*parts, *start)) or len(parts) > LONGEST:
        return result

    def total() -> Node | None:
        node, value = (node_of(start[0]), plain(start[0])) if start else (None, 0)
        for one in parts:
            if node is not None or node_of(one) is not None:
                node = combined(np.add, [node, node_of(one)], [value, plain(one)])
                if node is None:
                    return None
            value = value + plain(one)
        return node

    return with_node(result, attempted(total), scalar=not isinstance(result, np.ndarray))


def overwritten(array: Any, key: Any, value: Any) -> Node | None:
    """What is known about an array after an assignment to a part of it; called before the assignment."""
    own, other = node_of(array), gathered(value)
    if own is None and other is None:
        return None
    return assigned(own, plain(array).copy(), key, other, plain(value))
