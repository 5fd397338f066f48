"""Dataclasses that cost little until they are used.

The standard decorator writes the methods of a class as text and compiles them: about 0.7 ms a class, more than half of
the time in which a command starts. Here what classes have in common is written once, and a constructor is made when
the first object is. The result is a standard dataclass: `fields`, `replace`, inheritance, copies and pickles are as
usual.
"""

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """A class as `dataclasses.dataclass` makes it, with the same options; not for fields of type `InitVar`."""
        return (lambda own: _made(own, **options)) if cls is None else _made(cls, **options)


__all__ = ["dataclass"]


def _made(
    own: type, /, init: bool = True, repr: bool = True, eq: bool = True, frozen: bool = False, **others: Any
) -> type:
    written = set(vars(own))
    # The standard way to freeze compiles two methods, and is needed only if a base is a dataclass too.
    inherited = any(getattr(base, "__dataclass_params__", None) for base in own.__mro__[1:])
    options = {**others, "init": False, "repr": False, "eq": False, "frozen": frozen and inherited}
    made: Any = dataclasses.dataclass(**options)(own)
    if init and "__init__" not in written:
        made.__init__ = _Constructor(made, frozen, bool(others.get("slots")))
    if repr and "__repr__" not in written:
        made.__repr__ = _repr
    if eq and "__eq__" not in written:
        made.__eq__ = _eq(made)
    if eq and "__hash__" not in written:
        made.__hash__ = _hash(made) if frozen else None
    if frozen and not inherited:
        made.__dataclass_params__.frozen = True
        _freeze(made, others.get("slots", False))
    return made  # type: ignore[no-any-return]


class _Constructor:
    """In place of a class's `__init__`, which it makes when first used."""

    def __init__(self, owner: Any, frozen: bool, slots: bool) -> None:
        self.owner, self.frozen, self.slots = owner, frozen, slots

    def __get__(self, instance: Any, kind: type | None = None) -> Any:
        body: dict[str, Any] = {"__module__": self.owner.__module__, "__annotations__": {}}
        for each in dataclasses.fields(self.owner):
            how = {"default": each.default, "default_factory": each.default_factory}
            body[each.name] = dataclasses.field(init=each.init, kw_only=each.kw_only, **how)  # type: ignore[arg-type]
            body["__annotations__"][each.name] = each.type
        if hasattr(self.owner, "__post_init__"):
            body["__post_init__"] = None  # so that it is called
        twin: Any = type(self.owner.__name__, (), body)
        found = dataclasses.dataclass(frozen=self.frozen, slots=self.slots, repr=False, eq=False)(twin).__init__
        found.__qualname__ = f"{self.owner.__qualname__}.__init__"
        self.owner.__init__ = found
        return found.__get__(instance, kind)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(names: list[str]) -> Any:
    """What reads some attributes of an object as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _eq(made: Any) -> Any:
    values = _values([each.name for each in dataclasses.fields(made) if each.compare])

    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(made: Any) -> Any:
    fields = dataclasses.fields(made)
    values = _values([each.name for each in fields if (each.compare if each.hash is None else each.hash)])
    return lambda self: hash(values(self))


def _freeze(made: Any, slots: bool) -> None:
    names = frozenset(each.name for each in dataclasses.fields(made))

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    made.__setattr__, made.__delattr__ = __setattr__, __delattr__
    if slots:  # copies and pickles set attributes by these
        made.__getstate__, made.__setstate__ = _state, _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
