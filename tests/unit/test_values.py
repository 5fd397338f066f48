"""Dataclasses that cost little until they are used are as the standard library's: the same classes, made by both."""

import ast
import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from dpassay import values

PACKAGE = Path(values.__file__).parent
LIGHT = ("core", "compute", "pipeline", "exact", "evidence", "words", "claims", "audit", "trace", "adapters")
NAN = math.nan


def classes(dataclass: Callable[..., Any]) -> SimpleNamespace:
    """One class of each kind that the package has."""

    @dataclass(frozen=True)
    class Point:
        """Two numbers."""

        x: float
        y: float = 2.0
        kind: ClassVar[str] = "point"

        @property
        def size(self) -> float:
            return self.x + self.y

    @dataclass(frozen=True)
    class Named(Point):
        name: str = dataclasses.field(default="", compare=False)
        parts: dict[str, int] = dataclasses.field(default_factory=dict, repr=False, hash=False)

    @dataclass(frozen=True, slots=True)
    class Slotted:
        a: int
        b: tuple[int, ...] = ()
        c: int = dataclasses.field(init=False, default=7)

    @dataclass(frozen=True, eq=False)
    class Alone:
        a: int

    @dataclass(frozen=True, repr=False)
    class Shown:
        a: int

        def __repr__(self) -> str:
            return f"<{self.a}>"

    @dataclass
    class Open:
        a: int
        b: list[int] = dataclasses.field(default_factory=list)
        c: int = dataclasses.field(default=5, kw_only=True)
        d: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.d = self.a + self.c

    @dataclass(frozen=True, slots=True, init=False)
    class Made:
        a: int

        def __init__(self, twice: int) -> None:
            object.__setattr__(self, "a", 2 * twice)

    class Plain(Point):
        """Not a dataclass itself."""

    @dataclass(frozen=True)
    class Nothing:
        pass

    return SimpleNamespace(**{name: value for name, value in locals().items() if isinstance(value, type)})


STANDARD, OURS = classes(dataclasses.dataclass), classes(values.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (1,), {}),
    ("Point", (1,), {"y": 3}),
    ("Point", (NAN,), {}),
    ("Plain", (1, 2), {}),
    ("Named", (1, 2, "n"), {"parts": {"a": 1}}),
    ("Named", (1,), {"name": "m"}),
    ("Slotted", (1, (2, 3)), {}),
    ("Alone", (4,), {}),
    ("Shown", (4,), {}),
    ("Open", (1,), {}),
    ("Open", (1, [2]), {"c": 9}),
    ("Made", (3,), {}),
    ("Nothing", (), {}),
]


def outcome(run: Callable[..., Any], *given: Any) -> Any:
    """What a call gives, or the kind of exception that it raises."""
    try:
        return run(*given)
    except (TypeError, AttributeError) as error:
        return type(error).__name__


def equal_hashes(first: Any, second: Any) -> bool:
    return hash(first) == hash(second)


@pytest.mark.parametrize(("name", "given", "named"), CALLS)
def test_an_object_is_as_the_standard_one(name: str, given: Any, named: Any) -> None:
    ours, standard = (getattr(kind, name)(*given, **named) for kind in (OURS, STANDARD))
    assert repr(ours) == repr(standard)
    assert dataclasses.asdict(ours) == dataclasses.asdict(standard) or NAN in given
    again = [getattr(kind, name)(*given, **named) for kind in (OURS, STANDARD)]
    assert (ours == again[0]) is (standard == again[1])
    assert outcome(equal_hashes, ours, again[0]) == outcome(equal_hashes, standard, again[1])
    assert (ours == standard) is False
    for field in dataclasses.fields(standard):
        results = [outcome(setattr, one, field.name, 1) for one in (ours, standard)]
        assert results[0] == results[1], field.name
    assert not hasattr(ours, "extra")
    for refused in ((setattr, "extra", 1), (delattr, "a")):
        results = [outcome(refused[0], one, *refused[1:]) for one in (ours, standard)]
        assert (results[0] is None) is (results[1] is None)  # slots raise a TypeError by a fault of the standard one


@pytest.mark.parametrize("name", sorted(vars(STANDARD)))
def test_a_class_is_as_the_standard_one(name: str) -> None:
    ours, standard = getattr(OURS, name), getattr(STANDARD, name)
    assert str(inspect.signature(ours)) == str(inspect.signature(standard))
    assert [field.name for field in dataclasses.fields(ours)] == [field.name for field in dataclasses.fields(standard)]
    assert ours.__dataclass_params__.frozen == standard.__dataclass_params__.frozen
    assert ours.__match_args__ == standard.__match_args__
    assert hasattr(ours, "__slots__") == hasattr(standard, "__slots__")
    assert outcome(ours, 1, 2, 3, 4, 5) == outcome(standard, 1, 2, 3, 4, 5) == "TypeError"


def test_the_same_number_is_equal_and_other_fields_do_not_count() -> None:
    assert OURS.Point(NAN) == OURS.Point(NAN)  # the same object, as in tuples
    assert OURS.Named(1, name="a") == OURS.Named(1, name="b")
    assert OURS.Named(1) != OURS.Point(1)
    assert len({OURS.Slotted(1), OURS.Slotted(1), OURS.Slotted(2)}) == 2


@values.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: str = "b"


@values.dataclass(frozen=True)
class Loose:
    a: int


@pytest.mark.parametrize("value", [Kept(1), Loose(2)])
def test_copies_and_pickles(value: Any) -> None:
    for made in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert made == value
        assert repr(made) == repr(value)
    changed = dataclasses.replace(value, a=9)
    assert changed.a == 9 != value.a


def test_standard_dataclasses_can_be_derived() -> None:
    @dataclasses.dataclass(frozen=True)
    class Further(OURS.Point):  # type: ignore[name-defined, misc]
        z: int = 3

    assert repr(Further(1)).endswith("Further(x=1, y=2.0, z=3)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Further(1).x = 2
    with pytest.raises(TypeError):  # as the standard library has it

        @values.dataclass
        class Thawed(OURS.Point):  # type: ignore[name-defined, misc]
            z: int = 3


def test_objects_that_hold_themselves_are_shown() -> None:
    one = OURS.Open(1)
    one.b.append(one)
    assert "..." in repr(one)


def test_what_a_command_imports_first_takes_them_from_here() -> None:
    for package in LIGHT:
        for path in (PACKAGE / package).rglob("*.py"):
            if {"verifier", "coq"} & set(path.parts):  # the verifier stands alone
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                    assert "dataclass" not in {alias.name for alias in node.names}, path
