"""A number that records the noise in it: a float, an int or a numpy scalar, with all their methods and operators.

An operation uses the plain numbers and adds only what is known about the result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dpassay.trace.watch.deciding import compared_with, decided
from dpassay.trace.watch.follow import combined
from dpassay.trace.watch.numbers import apply, attempted, called, node_of, plain, register, with_node
from dpassay.trace.watch.record import Node

BINARY: dict[str, Any] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "pow": np.power},
    **{"floordiv": np.floor_divide, "mod": np.remainder, "xor": np.bitwise_xor, "and": np.bitwise_and},
    **{"or": np.bitwise_or, "lshift": np.left_shift, "rshift": np.right_shift, "divmod": None, "matmul": None},
}
COMPARISONS = {
    **{"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal},
    **{"eq": np.equal, "ne": np.not_equal},
}
_DECIDING = set(COMPARISONS.values())
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.abs, "invert": np.invert}


def binary(own: Callable[[Any, Any], Any], ufunc: Any, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """A binary operator, with the result that it has for plain numbers."""

    def operate(self: Any, other: Any, *modulus: Any) -> Any:
        operands = [other, self] if swapped else [self, other]
        if modulus:
            return pow(*(plain(one) for one in (*operands, *modulus)))
        values = [plain(one) for one in operands]
        nodes = [node_of(one) for one in operands]
        known = ufunc is not None and any(node is not None for node in nodes) and _countable(values)
        if known:
            compared_with(ufunc, nodes, values)
        if ufunc in _DECIDING and not any(isinstance(one, np.ndarray) for one in values):
            return own(*values)  # the decision is recorded, and the answer is plain
        node = attempted(lambda: combined(ufunc, nodes, values)) if known else None
        result = own(*values)
        if isinstance(result, np.ndarray):
            return with_node(result, node, scalar=False) if type(result) is np.ndarray else result
        return result if node is None else with_node(result, node, scalar=True)

    return operate


def _countable(values: list[Any]) -> bool:
    if all(type(one) is float or type(one) is int for one in values):
        return True
    many = any(isinstance(one, np.ndarray) for one in values)
    kinds = (int, float, np.number, np.bool_, np.ndarray, *((list, tuple) if many else ()))
    return all(isinstance(one, kinds) for one in values)


def unary(own: Callable[[Any], Any], ufunc: Any) -> Callable[[Any], Any]:
    """A unary operator."""

    def operate(self: Any) -> Any:
        value, node = plain(self), node_of(self)
        result = own(value)
        compared_with(ufunc, [node], [value])
        found = attempted(lambda: combined(ufunc, [node], [value])) if node is not None else None
        return with_node(result, found, scalar=not isinstance(result, np.ndarray))

    return operate


def operators() -> dict[str, Callable[..., Any]]:
    """The methods of all operators, by their names."""
    found: dict[str, Callable[..., Any]] = {}
    for name, ufunc in BINARY.items():
        own: Any = divmod if name == "divmod" else getattr(operator, f"__{name}__")
        found[f"__{name}__"] = binary(own, ufunc)
        found[f"__r{name}__"] = binary(own, ufunc, swapped=True)
    for name, ufunc in COMPARISONS.items():
        found[f"__{name}__"] = binary(getattr(operator, name), ufunc)
    for name, ufunc in UNARY.items():
        found[f"__{name}__"] = unary(getattr(operator, f"__{name}__"), ufunc)
    return found


def _rounded(self: Any, digits: Any = None) -> Any:
    value, node = plain(self), node_of(self)
    result = round(value) if digits is None else round(value, digits)
    if node is None or not isinstance(plain(digits), int | None):
        return result
    if not digits:
        compared_with(np.rint, [node], [value])
    found = attempted(lambda: combined(np.round, [node], [value], {"decimals": int(digits or 0)}))
    return with_node(result, found, scalar=True)


def _cast(self: Any) -> int:
    compared_with(np.trunc, [node_of(self)], [plain(self)])
    decided(node_of(self), "cast to an integer")
    return int(plain(self))


def _as_float(self: Any) -> float:
    compared_with(None, [node_of(self)], [])
    return float(plain(self))


def _hashed(self: Any) -> int:
    decided(node_of(self), "hashed")
    return hash(plain(self))


def _made(natural: Any) -> type:
    """The watched type that stands for a number type, with the same name, so that messages about it are the same."""

    def of(value: Any, node: Node | None) -> Any:
        number = natural.__new__(kind, value)
        number.node = node
        return number

    def strip(self: Any) -> Any:
        if natural in (float, int):
            return base(self)
        # numpy would ask a float for its __float__, which is watched.
        return natural.__new__(natural, self if base is None else base(self))

    base: Any = {float: float.__float__, int: int.__int__, np.float64: float.__float__}.get(natural)

    def said(name: str, what: str) -> Callable[..., Any]:
        method = getattr(natural, name)

        def say(self: Any, *arguments: Any) -> Any:
            decided(node_of(self), what)
            return method(strip(self), *arguments)

        return say

    body: dict[str, Any] = {
        **{"node": None, "of": staticmethod(of), "__hash__": _hashed, "__round__": _rounded},
        **{name: method for name, method in operators().items() if hasattr(natural, name) or name in _ALL},
        **{name: said(name, "turned into a text") for name in ("__repr__", "__str__", "__format__")},
        "__array_ufunc__": lambda self, ufunc, method, *inputs, **options: apply(ufunc, method, inputs, options),
        "__array_function__": lambda self, function, types, given, options: called(function, given, options),
        "__copy__": lambda self: self,
        "__deepcopy__": lambda self, memo: self,
        "__reduce_ex__": lambda self, protocol: strip(self).__reduce_ex__(protocol),
        "__trunc__": unary(math.trunc, np.trunc),
        "__module__": natural.__module__,
        "__qualname__": natural.__qualname__,
    }
    if not issubclass(natural, int | np.integer):
        body |= {"__floor__": unary(math.floor, np.floor), "__ceil__": unary(math.ceil, np.ceil), "__int__": _cast}
        body |= {"__float__": _as_float}
    if issubclass(natural, np.generic):
        body |= {"item": lambda self, *at: _item(self, strip(self).item(*at))}
        body |= {"tolist": lambda self: _item(self, strip(self).tolist())}
    if natural in (float, int):
        body |= {"__getnewargs__": lambda self: (strip(self),)}
    body["__class__"] = property(lambda self: natural)
    kind = type(natural.__name__, (natural,), body)
    register(natural, kind, strip)
    return kind


def _item(number: Any, result: Any) -> Any:
    """A number of numpy as one of Python's, which stays watched."""
    node = node_of(number)
    return result if node is None else with_node(result, node, scalar=True)


_ALL = {"__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"}
for _natural in (float, int, np.float64, np.float32, np.float16, np.longdouble):
    _made(_natural)
for _name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "longlong", "ulonglong"):
    if getattr(np, _name) not in (int, float):
        _made(getattr(np, _name))
