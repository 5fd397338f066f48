"""An array that records the noise in it and wraps the plain array, which all operations use."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpassay.trace.watch.deciding import compared_with, decided
from dpassay.trace.watch.follow import combined, dotted, moved
from dpassay.trace.watch.numbers import (
    LONGEST,
    apply,
    attempted,
    called,
    given_back,
    node_of,
    overwritten,
    plain,
    register,
    with_node,
)
from dpassay.trace.watch.record import Array, Node, current
from dpassay.trace.watch.scalars import BINARY, operators

_MOVING = ("reshape", "ravel", "flatten", "squeeze", "transpose", "copy", "swapaxes", "diagonal", "repeat", "take")
_AS_FUNCTIONS: dict[str, Any] = {
    "sum": np.sum,
    "mean": np.mean,
    "cumsum": np.cumsum,
    "clip": np.clip,
    "dot": np.dot,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "argsort": np.argsort,
    "round": np.round,
    "searchsorted": np.searchsorted,
}
_KEPT = {
    *("__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__class__", "__dir__", "__doc__"),
    *("__init_subclass__", "__subclasshook__", "__sizeof__", "__array_finalize__", "__array_wrap__", "__array__"),
    *("__array_prepare__", "__hash__", "__class_getitem__", "__len__", "__getstate__"),
}


class WatchedArray(np.ndarray):
    """An array that records the noise in it. `raw` is the array of the code, which shares its memory."""

    __slots__ = ("node", "parent", "raw")  # like an array, it has no dictionary, which a masked array would copy
    node: Node | None
    raw: Array | None
    parent: WatchedArray | None  # what the code knows as the base of its view
    _baseclass = np.ndarray  # for masked arrays

    @staticmethod
    def of(values: Array, node: Node | None) -> WatchedArray:
        """A plain array, watched."""
        array = values.view(WatchedArray)
        array.node, array.raw = node, values
        return array

    def __array_finalize__(self, made_from: Any) -> None:
        self.node, self.raw, self.parent = None, None, None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return called(function, arguments, options)

    @property
    def shape(self) -> Any:
        """The shape; setting it changes the array of the code too."""
        return np.ndarray.shape.__get__(self)

    @shape.setter
    def shape(self, shape: Any) -> None:
        node, before = node_of(self), plain(self)
        found = None if node is None else attempted(lambda: moved(node, lambda part: np.reshape(part, shape)))
        before.shape = plain(shape)
        np.ndarray.shape.__set__(self, before.shape)  # type: ignore[attr-defined]
        self.node = getattr(with_node(before, found, scalar=False), "node", None)

    @property
    def base(self) -> Any:
        """The array that the array of the code is a view of."""
        base, parent = plain(self).base, self.parent
        return parent if parent is not None and base is plain(parent) else base

    @property
    def flags(self) -> Any:
        """The flags of the array of the code."""
        return plain(self).flags

    @property
    def T(self) -> Any:
        """The transposed array."""
        return self.transpose()

    @property
    def flat(self) -> Any:
        """The iterator over the plain numbers."""
        return plain(self).flat

    def __getitem__(self, key: Any) -> Any:
        key = _plain_key(key)
        result = plain(self)[key]
        node = node_of(self)
        found = None if node is None else attempted(lambda: moved(node, lambda part: part[key]))
        return _within(self, with_node(result, found, scalar=not isinstance(result, np.ndarray)))

    def __setitem__(self, key: Any, value: Any) -> None:
        key = _plain_key(key)
        node = attempted(lambda: overwritten(self, key, value))
        plain(self)[key] = plain(value)
        self.node = getattr(with_node(plain(self), node, scalar=False), "node", None)

    def __iter__(self) -> Iterator[Any]:
        return iter(plain(self)) if self.ndim == 0 else (self[i] for i in range(len(self)))

    def astype(self, dtype: Any, *arguments: Any, **options: Any) -> Any:
        """The same numbers with another type."""
        result = plain(self).astype(dtype, *(plain(one) for one in arguments), **options)
        node, kind = node_of(self), result.dtype.kind
        if result is plain(self):
            return self
        if node is None or kind not in "fiub":
            decided(node, "cast to another type")
            return given_back(result, ())
        if kind == "f" or (kind in "iu" and self.dtype.kind in "biu"):
            return with_node(result, attempted(lambda: moved(node, np.array)), scalar=False)
        decided(node, "cast to an integer")
        compared_with(np.trunc, [node], [plain(self)])
        rounded = attempted(lambda: combined(np.trunc, [node], [plain(self)])) if kind != "b" else None
        return with_node(result, rounded, scalar=False)

    def item(self, *at: Any) -> Any:
        """One number, as one of Python's."""
        result, node = plain(self).item(*at), node_of(self)
        if node is None:
            return result
        return with_node(result, attempted(lambda: moved(node, lambda part: np.asarray(part.item(*at)))), scalar=True)

    def tolist(self) -> Any:
        """Nested lists of Python's numbers, which stay watched."""
        if node_of(self) is None or self.size > LONGEST or current() is None or self.ndim == 0:
            return self.item() if self.ndim == 0 else plain(self).tolist()
        return [one.tolist() if hasattr(one, "tolist") else one for one in self]

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __copy__(self) -> Any:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return plain(self).__reduce_ex__(protocol)


def _plain_key(key: Any) -> Any:
    for one in key if isinstance(key, tuple) else (key,):
        decided(node_of(one), "used as an index")
    return plain(key)


def _strip(array: WatchedArray) -> Any:
    raw = array.raw
    return np.ndarray.view(array, np.ndarray) if raw is None else raw


def _within(array: WatchedArray, result: Any) -> Any:
    if isinstance(result, WatchedArray) and result is not array:
        result.parent = array
    return result


def _moving(name: str) -> Callable[..., Any]:
    def move(self: Any, *arguments: Any, **options: Any) -> Any:
        given, more = [plain(one) for one in arguments], {key: plain(one) for key, one in options.items()}
        result, node = getattr(plain(self), name)(*given, **more), node_of(self)
        if node is None:
            return _within(self, given_back(result, (self, *arguments, *options.values())))
        found = attempted(lambda: moved(node, lambda part: getattr(part, name)(*given, **more)))
        return _within(self, with_node(result, found, scalar=not isinstance(result, np.ndarray)))

    return move


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    """An operator such as +=, applied to the array of the code."""
    own, ufunc = getattr(operator, f"__i{name}__"), BINARY.get(name)

    def operate(self: Any, other: Any) -> Any:
        before, value = plain(self), plain(other)
        nodes = [node_of(self), node_of(other)]
        known = ufunc is not None and any(node is not None for node in nodes)
        node = attempted(lambda: combined(ufunc, nodes, [before.copy(), value])) if known else None
        result = own(before, value)
        if result is not before:
            return given_back(result, ())
        self.node = getattr(with_node(before, node, scalar=False), "node", None)
        return self

    return operate


def _product(swapped: bool) -> Callable[[Any, Any], Any]:
    """The operator @."""

    def operate(self: Any, other: Any) -> Any:
        operands = [other, self] if swapped else [self, other]
        values = [plain(one) for one in operands]
        node = attempted(lambda: dotted([node_of(one) for one in operands], values))
        result = operator.matmul(*values)
        return with_node(result, node, scalar=not isinstance(result, np.ndarray))

    return operate


def _natural(name: str) -> Callable[..., Any]:
    """Any other method, of the array of the code."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        given, more = [plain(one) for one in arguments], {key: plain(one) for key, one in options.items()}
        result = getattr(np.ndarray, name)(plain(self), *given, **more)
        return given_back(result, (self, *arguments, *options.values()))

    return method


def _as_function(function: Any) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        name = function.__name__
        natural = getattr(plain(self), name)(
            *(plain(one) for one in arguments), **{key: plain(one) for key, one in options.items()}
        )
        if node_of(self) is None or "out" in options or options.get("dtype") is not None:
            return given_back(natural, (self, *arguments, *options.values()))
        if name in ("argmax", "argmin"):
            return called(function, (self, *arguments), options)
        try:
            followed = called(function, (self, *arguments), options)
        except Exception:  # an argument that only the method takes
            return given_back(natural, (self, *arguments))
        node = node_of(followed)
        return with_node(natural, node, scalar=not isinstance(natural, np.ndarray))

    return method


for _name, _method in operators().items():
    if hasattr(np.ndarray, _name):
        setattr(WatchedArray, _name, _method)
for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
    "matmul",
):
    setattr(WatchedArray, f"__i{_name}__", _in_place(_name))
setattr(WatchedArray, "__matmul__", _product(False))  # noqa: B010 - with other types than numpy's
setattr(WatchedArray, "__rmatmul__", _product(True))  # noqa: B010
for _name in _MOVING:
    setattr(WatchedArray, _name, _moving(_name))
for _name, _function in _AS_FUNCTIONS.items():
    setattr(WatchedArray, _name, _as_function(_function))
for _name in dir(np.ndarray):
    if callable(getattr(np.ndarray, _name)) and _name not in vars(WatchedArray) and _name not in _KEPT:
        setattr(WatchedArray, _name, _natural(_name))
WatchedArray.__name__ = WatchedArray.__qualname__ = "ndarray"
WatchedArray.__module__ = "numpy"
register(np.ndarray, WatchedArray, _strip)
