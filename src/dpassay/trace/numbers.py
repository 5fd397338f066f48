"""Numbers of numpy and of Python that remember the noise in them.

`follow` has the operations that are followed. Others, such as a sort or an argmax, get plain numbers and are
post-processing: the replay decides about them.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from dpassay.trace.follow import assigned, combined, consistent, joined, moved, of_draw, summed
from dpassay.trace.record import Array, Draw, Node, current, importing

_MOVES = {
    *(np.reshape, np.ravel, np.transpose, np.squeeze, np.expand_dims, np.copy, np.broadcast_to, np.repeat, np.tile),
    *(np.flip, np.roll, np.atleast_1d, np.atleast_2d, np.swapaxes, np.moveaxis, np.take, np.diagonal),
}
_JOINS = {np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.dstack, np.append}
_EACH = {np.clip, np.round, np.around, np.where, np.nan_to_num}  # elementwise functions, besides ufuncs
_OURS = ("dpassay.trace.", "numpy.")  # modules that do not need watched arrays
_LONGEST = 4096  # lists are followed up to this length
_FULL, _SUM, _MEAN = np.full, np.sum, np.mean  # during a run they are replaced


def watched(draw: Draw, scalar: bool) -> Any:
    """The numbers of a draw, watched from now on."""
    return with_node(draw.values.copy(), of_draw(draw), scalar)


def with_node(values: Any, node: Node | None, scalar: bool) -> Any:
    """Numbers with the node that describes them, if it is still valid."""
    run = current()
    if run is None:
        return values
    if node is not None and consistent(node, values):
        run.note(node, values)
    else:
        node = None
    if scalar:
        return values if node is None else _scalar(values, node)
    if not isinstance(values, np.ndarray):
        return values
    array = values.view(WatchedArray)
    array.node = node
    return array


def _scalar(value: Any, node: Node) -> Any:
    """One number with the type that it has when not watched."""
    if isinstance(value, bool | np.bool_):
        return value
    whole = isinstance(value, int | np.integer) or np.asarray(value).dtype.kind in "iu"
    kind: Any = WatchedFloat if not whole else WatchedInt if type(value) is int else WatchedInteger
    if kind is WatchedFloat and np.asarray(value).dtype.kind == "b":
        return value
    number = kind(value)
    number.node = node
    return number


def node_of(value: Any) -> Node | None:
    """What is known about a number or an array while a run is watched."""
    node = getattr(value, "node", None)
    return node if isinstance(node, Node) and current() is not None else None


def plain(value: Any) -> Any:
    """The same without its history; also inside lists, tuples and dicts."""
    if isinstance(value, WatchedArray):
        return value.view(np.ndarray)
    if isinstance(value, WatchedFloat):
        return float(value)
    if isinstance(value, WatchedInteger):
        return np.int64(value)
    if isinstance(value, WatchedInt):
        return int(value)
    if type(value) in (list, tuple):
        return type(value)(plain(one) for one in value)
    return {key: plain(one) for key, one in value.items()} if type(value) is dict else value


def apply(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of numpy on watched numbers."""
    out = options.pop("out", None)
    if out is not None:
        options["out"] = tuple(plain(one) for one in out)
    values = [plain(one) for one in inputs]
    node = None
    if method == "__call__" and ufunc.nout == 1 and ufunc.signature is None and not set(options) - {"out", "dtype"}:
        nodes = [node_of(one) for one in inputs]
        # Before the result, which may overwrite an input.
        node = combined(ufunc, nodes, values) if any(one is not None for one in nodes) else None
    elif ufunc is np.add and method == "reduce" and (only := node_of(inputs[0])) is not None:
        node = summed(only, options.get("axis", 0), mean=False)
    result = getattr(ufunc, method)(*values, **options)
    if out is not None and len(out) == 1 and isinstance(out[0], WatchedArray):
        out[0].node = getattr(with_node(result, node, scalar=False), "node", None)
        return out[0]
    return with_node(result, node, scalar=np.ndim(result) == 0 and out is None)


def _parts(things: Any) -> list[tuple[Node | None, Array]]:
    return [(node_of(one), np.asarray(plain(one))) for one in things]


def gathered(thing: Any) -> Node | None:
    """The node of nested lists of watched and plain numbers, as the array that numpy makes from them."""
    if not isinstance(thing, list | tuple):
        return node_of(thing)
    if not thing or len(thing) > _LONGEST:
        return None
    nodes = [gathered(one) for one in thing]
    if not any(node is not None for node in nodes):
        return None
    parts = [(node, np.asarray(plain(one))) for node, one in zip(nodes, thing, strict=True)]
    if len({(values if node is None else node.offset).shape for node, values in parts}) != 1:
        return None
    return joined(parts, np.stack)


@cache
def making(function: Callable[..., Any]) -> Callable[..., Any]:
    """A numpy function that makes an array from its input, which stays watched."""

    def made(*arguments: Any, **options: Any) -> Any:
        if current() is None or sys._getframe(1).f_globals.get("__name__", "").startswith(_OURS) or importing():
            return function(*arguments, **options)
        thing = arguments[0] if arguments else None
        result = function(*(plain(one) for one in arguments), **{key: plain(one) for key, one in options.items()})
        if type(result) is not np.ndarray or result.dtype.kind not in "biuf":
            return result
        node = gathered(thing) if result.dtype.kind == "f" else None
        if function is _FULL and (fill := node_of(arguments[1])) is not None:
            node = moved(fill, lambda part: np.broadcast_to(part, result.shape))
        return with_node(result, node, scalar=False)

    return made


@cache
def totalling(function: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's sum or mean, in which lists of watched numbers stay watched."""

    def total(thing: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(thing, list | tuple) and current() is not None and (node := gathered(thing)) is not None:
            return function(with_node(np.asarray(plain(thing)), node, scalar=False), *arguments, **options)
        return function(thing, *arguments, **options)

    return total


@cache
def elementwise(function: Callable[..., Any], alike: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's math module that has a numpy counterpart."""

    def computed(*arguments: Any) -> Any:
        result = function(*arguments)
        nodes = [node_of(one) for one in arguments]
        if current() is None or not any(node is not None for node in nodes):
            return result
        return with_node(result, combined(alike, nodes, [plain(one) for one in arguments]), scalar=True)

    return computed


MATH = {
    **{name: getattr(np, name) for name in ("log", "log1p", "log2", "exp", "expm1", "sqrt", "cos", "sin", "tan")},
    **{"fabs": np.abs, "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil},
}
assert all(hasattr(math, name) for name in MATH)


class WatchedArray(np.ndarray):
    """An array that remembers the noise in it."""

    node: Node | None

    def __array_finalize__(self, made_from: Any) -> None:
        self.node = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        first = arguments[0] if arguments else None
        result = function(*(plain(one) for one in arguments), **{name: plain(one) for name, one in options.items()})
        node = None
        if current() is None:
            return result
        if function in _MOVES and (own := node_of(first)) is not None:
            node = moved(own, lambda part: function(part, *arguments[1:], **options))
        elif function in _JOINS:
            things = arguments[:2] if function is np.append else first
            rest = arguments[2:] if function is np.append else arguments[1:]
            joining = np.append if function is np.append else function
            node = joined(
                _parts(things),
                lambda all_of: (
                    joining(*all_of, *rest, **options) if joining is np.append else joining(all_of, *rest, **options)
                ),
            )
        elif function in _EACH and any(node_of(one) is not None for one in arguments):
            given = [plain(one) for one in arguments]
            node = combined(function, [node_of(one) for one in arguments], given, _numeric(options) or None)
        elif function in (_SUM, _MEAN) and (own := node_of(first)) is not None:
            axis = arguments[1] if len(arguments) > 1 else options.get("axis")
            node = summed(own, axis, mean=function is _MEAN) if not set(options) - {"axis"} else None
        return with_node(result, node, scalar=not isinstance(result, np.ndarray))

    def _moved(self, move: Callable[[Array], Any]) -> Any:
        """The same numbers in another order or shape, or some of them."""
        result = move(self.view(np.ndarray))
        node = moved(self.node, move) if self.node is not None and current() is not None else None
        return with_node(result, node, scalar=not isinstance(result, np.ndarray))

    def __getitem__(self, key: Any) -> Any:
        key = plain(key)
        return self._moved(lambda array: array[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        key, other = plain(key), gathered(value)
        own, before = self.node, self.view(np.ndarray)
        node = None
        if current() is not None and (own is not None or other is not None):
            node = assigned(own, before.copy(), key, other, plain(value))
        before[key] = plain(value)
        self.node = getattr(with_node(before, node, scalar=False), "node", None)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return self._moved(lambda array: array.reshape(*shape, **options))

    def ravel(self, *order: Any, **options: Any) -> Any:
        return self._moved(lambda array: array.ravel(*order, **options))

    def flatten(self, *order: Any, **options: Any) -> Any:
        return self._moved(lambda array: array.flatten(*order, **options))

    def squeeze(self, *axis: Any, **options: Any) -> Any:
        return self._moved(lambda array: array.squeeze(*axis, **options))

    def transpose(self, *axes: Any) -> Any:
        return self._moved(lambda array: array.transpose(*axes))

    @property
    def T(self) -> Any:
        return self.transpose()

    def copy(self, *order: Any, **options: Any) -> Any:
        return self._moved(lambda array: array.copy(*order, **options))

    def sum(self, *arguments: Any, **options: Any) -> Any:
        return np.sum(self, *arguments, **options)

    def mean(self, *arguments: Any, **options: Any) -> Any:
        return np.mean(self, *arguments, **options)

    def clip(self, *arguments: Any, **options: Any) -> Any:
        return np.clip(self, *arguments, **options)

    def round(self, *arguments: Any, **options: Any) -> Any:
        return np.round(self, *arguments, **options)

    def astype(self, dtype: Any, *arguments: Any, **options: Any) -> Any:
        kind = np.dtype(dtype).kind
        if kind == "f" or (kind in "iu" and self.dtype.kind in "biu"):
            result = self.view(np.ndarray).astype(dtype, *arguments, **options)
            return with_node(result, None if self.node is None else moved(self.node, np.array), scalar=False)
        if kind in "iu" and self.node is not None:
            return np.trunc(self).view(np.ndarray).astype(dtype, *arguments, **options)
        return self.view(np.ndarray).astype(dtype, *arguments, **options)

    def item(self, *at: Any) -> Any:
        result = self.view(np.ndarray).item(*at)
        node = moved(self.node, lambda part: np.asarray(part.item(*at))) if self.node is not None else None
        return with_node(result, node, scalar=True)

    def tolist(self) -> Any:
        if self.node is None or self.size > _LONGEST or current() is None or self.ndim == 0:
            return self.view(np.ndarray).tolist()
        return [one.tolist() if isinstance(one, WatchedArray) else one for one in self]


def _numeric(options: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(one) for name, one in options.items()}


class WatchedFloat(np.float64):
    """A number that remembers the noise in it; everywhere a float."""

    node: Node | None = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    def __round__(self, digits: Any = None) -> Any:
        node = self.node
        if node is None or current() is None:
            return round(float(self), digits)
        rounded = combined(np.round, [node], [float(self)], {"decimals": digits or 0})
        return with_node(round(float(self), digits), rounded, scalar=True)

    def __float__(self) -> float:
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("dpassay."):
            _compared(self, math.nan)  # from now on it is no longer followed
        return np.float64.__float__(self)

    def item(self) -> Any:  # type: ignore[override]
        return self

    tolist = item
    __hash__ = np.float64.__hash__


class WatchedInteger(np.int64):
    """A numpy integer that remembers the noise in it."""

    node: Node | None = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    __hash__ = np.int64.__hash__


class WatchedInt(int):
    """A Python integer that remembers the noise in it."""

    node: Node | None = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    __hash__ = int.__hash__


def _operator(ufunc: np.ufunc, own: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float | np.number | np.ndarray):
            return NotImplemented
        operands = [other, self] if swapped else [self, other]
        if isinstance(other, np.ndarray) or node_of(self) is None:
            return apply(ufunc, "__call__", tuple(operands), {})
        values = [plain(one) for one in operands]
        result = own(*values) if all(isinstance(one, int) for one in values) else ufunc(*values)
        return with_node(result, combined(ufunc, [node_of(one) for one in operands], values), scalar=True)

    return operate


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def operate(self: Any) -> Any:
        value = plain(self)
        result = -value if ufunc is np.negative else abs(value)
        node = combined(ufunc, [node_of(self)], [value]) if node_of(self) is not None else None
        return with_node(result, node, scalar=True)

    return operate


def _compared(number: Any, other: float) -> None:
    """Record what a number is compared with, if it is an unchanged drawn one; NaN if that is not known."""
    node, run = node_of(number), current()
    if node is not None and run is not None and node.unchanged and node.index.size == 1:
        run.compared.append((int(node.index.reshape(())), other))


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A comparison of one number, which is recorded."""

    def operate(self: Any, other: Any) -> Any:
        plainly = isinstance(other, int | float | np.number) and node_of(other) is None
        _compared(self, float(other) if plainly else math.nan)
        _compared(other, math.nan)
        return compare(self, other)

    return operate


for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(WatchedFloat, _name, _comparison(getattr(np.float64, _name)))

_BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "pow": np.power}
for _kind in (WatchedFloat, WatchedInteger, WatchedInt):
    for _name, _ufunc in _BINARY.items():
        _own = getattr(operator, _name)
        setattr(_kind, f"__{_name}__", _operator(_ufunc, _own, swapped=False))
        setattr(_kind, f"__r{_name}__", _operator(_ufunc, _own, swapped=True))
    for _name, _sign in {"__neg__": np.negative, "__abs__": np.abs}.items():
        setattr(_kind, _name, _unary(_sign))
