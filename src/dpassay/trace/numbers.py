"""Numbers that remember the noise in them: offset + factor · draw, followed through sums and products.

What is neither, such as a comparison, a clip or an argmax, gets plain numbers and is post-processing: the replay
decides about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpassay.trace.record import Array, Draw, Node, caller, current

_SUMS = (np.add, np.subtract)
_PRODUCTS = (np.multiply, np.true_divide)
_SIGNS = (np.negative, np.positive)


def watched(draw: Draw, scalar: bool) -> Any:
    """The numbers of a draw, watched from now on."""
    return _with_node(draw.values.copy(), of_draw(draw), scalar)


def of_draw(draw: Draw) -> Node:
    """A draw as it is: no offset, and a factor of 1."""
    index = np.arange(draw.values.size).reshape(draw.shape)
    return Node(draw, index, np.ones(draw.shape), np.zeros(draw.shape), draw.place)


def moved(node: Node, move: Callable[[Array], Any]) -> Node:
    """The same numbers in another order or shape, or some of them."""
    index, factor, offset = (np.asarray(move(np.asarray(part))) for part in (node.index, node.factor, node.offset))
    node.continued = True
    return Node(node.draw, index, factor, offset, node.place, node.added, node.mixed)


def _with_node(values: Any, node: Node, scalar: bool) -> Any:
    if (run := current()) is not None:
        run.note(node, values)
    if scalar:
        number = WatchedFloat(values)
        number.node = node
        return number
    array = np.asarray(values).view(WatchedArray)
    array.node = node
    return array


def _node(value: Any) -> Node | None:
    node = getattr(value, "node", None)
    return node if isinstance(node, Node) and current() is not None else None


def plain(value: Any) -> Any:
    """The same without its memory; in lists, tuples and dicts too."""
    if isinstance(value, WatchedFloat):
        return float(value)
    if isinstance(value, WatchedArray):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(plain(one) for one in value)
    return {key: plain(one) for key, one in value.items()} if type(value) is dict else value


def _apply(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    if out is not None:
        options["out"] = tuple(plain(one) for one in out)
    followed = method == "__call__" and not set(options) - {"out"} and ufunc.nout == 1
    values = [plain(one) for one in inputs]
    # Before the result, which may be written over an input.
    node = combined(ufunc, [_node(one) for one in inputs], values) if followed else None
    result = getattr(ufunc, method)(*values, **options)
    if node is None or node.offset.shape != np.shape(result):
        return result
    return _with_node(result, node, scalar=np.ndim(result) == 0 and out is None)


def combined(ufunc: np.ufunc, nodes: list[Node | None], values: list[Any]) -> Node | None:
    """What offset + factor · draw becomes; None where it does not stay of this form."""
    if ufunc in _SIGNS and nodes[0] is not None:
        only = nodes[0]
        return _next(only, ufunc(only.factor), ufunc(only.offset), only.index, added=only.added)
    if ufunc not in (*_SUMS, *_PRODUCTS):
        return None
    first, second = nodes
    if first is not None and second is not None:
        return _of_two(ufunc, first, second, values)
    at = 0 if first is not None else 1
    node, other = nodes[at], np.asarray(values[1 - at])
    if node is None or other.dtype.kind not in "biuf" or (ufunc is np.true_divide and at == 1):
        return None
    offset = ufunc(*((node.offset, other) if at == 0 else (other, node.offset)))
    factor = np.broadcast_to(node.factor, offset.shape)
    if ufunc in _PRODUCTS:
        factor = ufunc(node.factor, other)
    elif ufunc is np.subtract and at == 1:
        factor = -factor
    index = np.broadcast_to(node.index, offset.shape)
    return _next(node, factor, offset, index, added=node.added or ufunc in _SUMS)


def _of_two(ufunc: np.ufunc, first: Node, second: Node, values: list[Any]) -> Node | None:
    """A sum of two watched numbers: of one draw, or the one that already hides something and other noise."""
    if ufunc not in _SUMS:
        return None
    first.continued = second.continued = True
    if first.draw is second.draw and np.array_equal(first.index, second.index):
        factor, offset = ufunc(first.factor, second.factor), ufunc(first.offset, second.offset)
        return _next(first, factor, offset, first.index, first.added or second.added)
    at = 1 if second.added and not first.added else 0
    node, other = (first, second)[at], values[1 - at]
    offset = ufunc(*((node.offset, other) if at == 0 else (other, node.offset)))
    factor = np.broadcast_to(-node.factor if ufunc is np.subtract and at == 1 else node.factor, offset.shape)
    found = _next(node, factor, offset, np.broadcast_to(node.index, offset.shape), added=True)
    found.mixed = True
    return found


def _next(node: Node, factor: Array, offset: Array, index: Array, added: bool) -> Node:
    node.continued = True
    return Node(node.draw, index, np.asarray(factor), np.asarray(offset), caller(), added, node.mixed)


class WatchedArray(np.ndarray):
    """An array that remembers the noise in it."""

    node: Node | None

    def __array_finalize__(self, made_from: Any) -> None:
        self.node = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return function(*(plain(one) for one in arguments), **{name: plain(one) for name, one in options.items()})

    def _moved(self, move: Callable[[Array], Any]) -> Any:
        """The same numbers in another order or shape, or some of them."""
        result = move(self.view(np.ndarray))
        node = self.node
        if node is None or current() is None:
            return result
        return _with_node(result, moved(node, move), scalar=not isinstance(result, np.ndarray))

    def __getitem__(self, key: Any) -> Any:
        return self._moved(lambda array: array[key])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return self._moved(lambda array: array.reshape(*shape, **options))

    def ravel(self, *order: Any) -> Any:
        return self._moved(lambda array: array.ravel(*order))

    def flatten(self, *order: Any) -> Any:
        return self._moved(lambda array: array.flatten(*order))

    def squeeze(self, *axis: Any) -> Any:
        return self._moved(lambda array: array.squeeze(*axis))

    def transpose(self, *axes: Any) -> Any:
        return self._moved(lambda array: array.transpose(*axes))

    @property
    def T(self) -> Any:
        return self.transpose()

    def copy(self, *order: Any) -> Any:
        return self._moved(lambda array: array.copy(*order))

    def tolist(self) -> Any:
        return self.view(np.ndarray).tolist()


class WatchedFloat(np.float64):
    """A number that remembers the noise in it; everywhere a float."""

    node: Node | None = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _apply(ufunc, method, inputs, options)

    __hash__ = np.float64.__hash__


def _operator(ufunc: np.ufunc, swapped: bool) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float | np.number | np.ndarray):
            return NotImplemented
        return _apply(ufunc, "__call__", (other, self) if swapped else (self, other), {})

    return operate


for _name, _ufunc in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide}.items():
    setattr(WatchedFloat, f"__{_name}__", _operator(_ufunc, swapped=False))
    setattr(WatchedFloat, f"__r{_name}__", _operator(_ufunc, swapped=True))
WatchedFloat.__neg__ = lambda self: _apply(np.negative, "__call__", (self,), {})  # type: ignore[method-assign]
