"""Values that are replaced during a run and put back after it, and `type` as the code knows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import setitem
from types import FunctionType, ModuleType
from typing import Any

from dpassay.trace.numbers import NATURAL


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
    """What the code asks with `type(z)`: watched numbers have the types that they stand for."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and not options:
            return NATURAL.get(type(arguments[0]), type(arguments[0]))
        return type(*arguments, **options)

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, type)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, type)


class NaturalType(metaclass=_AsNatural):
    """Stands for `type` in the code that is watched."""
