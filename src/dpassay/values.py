"""Dataclasses that cost little until they are used.

The standard decorator writes the methods of a class as text and compiles them: about 0.7 ms per class, more than half
of the time in which a command starts. Here what classes have in common is written once, and a constructor is made when
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
    own.__doc__ = own.__doc__ or own.__name__  # in place of the signature, for which its bases' constructors are made
    bases = [vars(base)["__dataclass_params__"] for base in own.__mro__[1:] if "__dataclass_params__" in vars(base)]
    # The standard way to freeze compiles two methods, and is asked for only where bases do not allow it.
    light = frozen and all(base.frozen for base in bases)
    try:
        for base in bases if light else ():
            base.frozen = False
        options = {**others, "init": False, "repr": False, "eq": False, "frozen": frozen and not light}
        made: Any = dataclasses.dataclass(**options)(own)
    finally:
        for base in bases if light else ():
            base.frozen = True
    if init and "__init__" not in written:
        made.__init__ = _Constructor(made, frozen, bool(others.get("slots")))
    if repr and "__repr__" not in written:
        made.__repr__ = _repr
    if eq and "__eq__" not in written:
        made.__eq__ = _eq(made)
    if eq and "__hash__" not in written:
        made.__hash__ = _hash(made) if frozen else None
    if light:
        made.__dataclass_params__.frozen = True
        _freeze(made, others.get("slots", False))
    return made  # type: ignore[no-any-return]


class _Constructor:
    """In place of a class's `__init__`, which it makes when first used."""

    def __init__(self, owner: Any, frozen: bool, slots: bool) -> None:
        self.owner, self.frozen, self.slots = owner, frozen, slots

    def __get__(self, instance: Any, kind: type | None = None) -> Any:
        made = _constructor(self.owner, self.frozen, self.slots)
        self.owner.__init__ = made
        return made.__get__(instance, kind)


class _Unset:
    """The default of a field that a function makes, as the standard library shows it."""

    def __repr__(self) -> str:
        return "<factory>"


def _constructor(owner: Any, frozen: bool, slots: bool) -> Any:
    """A class's `__init__`: one function is compiled, where the standard decorator compiles four for a frozen class."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_unset": _Unset()}
    first: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for each in dataclasses.fields(owner):
        value, default = each.name, ""
        if each.default_factory is not dataclasses.MISSING:
            scope[f"_make_{value}"] = each.default_factory
            made = f"_make_{value}()"
            value, default = (f"{made} if {value} is _unset else {value}" if each.init else made), "=_unset"
        elif each.default is not dataclasses.MISSING:
            scope[f"_default_{value}"] = each.default
            value, default = (value if each.init else f"_default_{value}"), f"=_default_{value}"
            if not (each.init or slots):
                continue  # it stays an attribute of the class
        elif not each.init:
            continue  # __post_init__ gives it a value
        if each.init:
            (named if each.kw_only else first).append(each.name + default)
        body.append(f"_set(self, {each.name!r}, {value})" if frozen else f"self.{each.name} = {value}")
    if hasattr(owner, "__post_init__"):
        body.append("self.__post_init__()")
    arguments = ", ".join(["self", *first, *(["*", *named] if named else [])])
    exec(f"def __init__({arguments}):\n " + "\n ".join(body or ["pass"]), scope)
    found = scope["__init__"]
    found.__qualname__, found.__module__ = f"{owner.__qualname__}.__init__", owner.__module__
    found.__annotations__ = {each.name: each.type for each in dataclasses.fields(owner) if each.init} | {"return": None}
    return found


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
