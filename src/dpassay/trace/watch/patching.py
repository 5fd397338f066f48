"""Values that are replaced during a run and restored after it, and built-in functions as the code sees them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from operator import setitem
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.laws.picking import MOST_PICKED, picked
from dpassay.trace.watch.follow import combined, moved
from dpassay.trace.watch.numbers import NATURAL, adding, attempted, gathered, node_of, plain, stands_for, with_node
from dpassay.trace.watch.record import Node, current


class Patches:
    """Attributes, names and cells with temporarily replaced values."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], Any]] = []

    def attribute(self, thing: Any, name: str, value: Any) -> None:
        if isinstance(thing, ModuleType) and name in vars(thing):
            self.item(vars(thing), name, value)
            return
        special = isinstance(thing, FunctionType) or not hasattr(thing, "__dict__")
        own = getattr(thing, name) if special else vars(thing).get(name, _patches_nothing)
        put: Any = setattr if isinstance(thing, type | ModuleType) else object.__setattr__
        try:
            put(thing, name, value)
        except (AttributeError, TypeError):
            return
        if own is _patches_nothing:
            self.undo.append(lambda: delattr(thing, name))
        else:
            self.undo.append(lambda: put(thing, name, own))

    def item(self, container: Any, key: Any, value: Any) -> None:
        self.undo.append(partial(setitem, container, key, container[key]))
        container[key] = value

    def name(self, space: dict[str, Any], name: str, value: Any) -> None:
        space[name] = value
        self.undo.append(lambda: space.pop(name, None))

    def cell(self, cell: Any, value: Any) -> None:
        own = cell.cell_contents
        cell.cell_contents = value
        self.undo.append(lambda: setattr(cell, "cell_contents", own))

    def back(self) -> None:
        while self.undo:
            self.undo.pop()()


_patches_nothing = object()


class _AsNatural(type):
    """The result of `type(z)` in the code: watched numbers have the types that they stand for."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and not options:
            kind = NATURAL.get(type(arguments[0]), type(arguments[0]))
            return STANDING_FOR.get(kind, kind)  # so that `type(z) is float` says the same
        return type(*arguments, **options)

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, type)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, type)


class NaturalType(metaclass=_AsNatural):
    """Stands for `type` in the code that is watched."""


class _AsNumber(type):
    """Python's float or int, which turn a watched number into a watched one."""

    own: Any

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if cls.own is float and len(arguments) == 1 and not options and _is_one_real(arguments[0]):
            return arguments[0].item()
        node = node_of(arguments[0]) if len(arguments) == 1 and not options else None
        if node is None or node.offset.size != 1:
            return cls.own(*arguments, **options)
        value = plain(arguments[0])
        one = moved(node, lambda part: part.reshape(()))
        if not cls.keeps(value):
            whole = attempted(lambda: _whole(one, value)) if cls.own is int else None
            if whole is None:
                return cls.own(*arguments, **options)
            one = whole
        return with_node(cls.own(value), one, scalar=True)

    def keeps(cls, value: Any) -> bool:
        """Whether the number is unchanged, unlike the integer part of a fraction or a number parsed from a text."""
        whole = isinstance(value, int | np.integer) or getattr(value, "dtype", np.dtype("U1")).kind in "iu"
        real = isinstance(value, float | np.floating) or getattr(value, "dtype", np.dtype("U1")).kind == "f"
        return whole or (cls.own is float and real)

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, cls.own)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, cls.own)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or other is cls.own

    def __hash__(cls) -> int:
        return hash(cls.own)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.own, name)

    def __repr__(cls) -> str:
        return repr(cls.own)

    @property
    def dtype(cls) -> Any:
        """The dtype that numpy gives it."""
        return np.dtype(cls.own)


def _whole(node: Node, value: Any) -> Node | None:
    """The integer of a number that is geometric, or that geometric numbers were added to; None of any other."""
    if not isinstance(value, float | np.floating):
        return None
    kinds = {law.kind if law is not None else "" for law in map(law_of, node.draws)}
    parts = (node.offset, *(factor for _, factor in node.terms))
    if kinds == {"geometric"} and all(float(part) == np.rint(part) for part in parts):
        return node  # it is whole already
    if kinds != {"exponential"} or not node.alone:
        return None
    made = combined(np.trunc, [node], [value])
    law = None if made is None else law_of(made.draws[0])
    return made if law is not None and law.kind == "geometric" else None


def _is_one_real(thing: Any) -> bool:
    """Whether it is a tensor with one real number, whose item a watched run follows."""
    return hasattr(thing, "untyped_storage") and thing.numel() == 1 and thing.is_floating_point()


def _number_type(own: type) -> Any:
    return _AsNumber(own.__name__, (), {"own": own, "__module__": "builtins", "__qualname__": own.__qualname__})


stands_for(_AsNumber, lambda kind: kind.own)
STANDING_FOR = {float: _number_type(float), int: _number_type(int)}  # in the code that is watched


def _best(own: Callable[..., Any], largest: bool) -> Callable[..., Any]:
    """Python's max or min of things by noisy numbers, such as max(counts, key=noisy.get): a draw of one of them."""

    @wraps(own)
    def found(*arguments: Any, **options: Any) -> Any:
        if len(arguments) != 1 or options.keys() != {"key"} or options["key"] is None or current() is None:
            return own(*arguments, **options)
        things = list(arguments[0])
        if not 2 <= len(things) <= MOST_PICKED:
            return own(things, **options)
        values = [options["key"](one) for one in things]
        at = own(range(len(things)), key=[plain(one) for one in values].__getitem__)
        if any(node_of(one) is not None for one in values):
            drawn = attempted(lambda: picked(gathered(values), at, largest))  # it must not disturb the code
            at = at if drawn is None else drawn
        return things[at]

    return found


BUILTINS = {
    "type": NaturalType,
    "sum": adding,
    "max": _best(max, True),
    "min": _best(min, False),
    **{kind.__name__: own for kind, own in STANDING_FOR.items()},
}
