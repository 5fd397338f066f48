"""What is known about an expression without running it, and what was seen on the way: draws, uses, clips, seeds."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from dpassay.scan.reading.index import FunctionSource
from dpassay.scan.reading.terms import Term, named, number

# Marks of a value.
RAW = "raw"  # depends on the protected data, not only through noise
INPUT = "input"  # is the protected input itself, or a copy
STAT = "stat"  # a bound or spread of the data: minimum, maximum, quantile, deviation, norm
DISTINCT = "distinct"  # the set of values that occur in the data
SIZE = "size"  # a number of records
COUNT = "count"  # counts records
SUM = "sum"  # a sum of the data
MEAN = "mean"  # an average of the data
NOISE = "noise"  # drawn; its terms are its scale
NOISY = "noisy"  # data with noise added
ARRAY = "array"
SCALAR = "scalar"
CONSTANT = "constant"  # written in the code
DEFAULT = "default"  # a parameter whose default is a constant
CHOSEN = "chosen"  # the place of a maximum: noisy max
ONE_SIDED = "one-sided"
CLIPPED = "clipped"  # bounded by something that is not taken from the data
NORM1, NORM2 = "l1", "l2"  # clipped in this norm
OF_NORM, OF_NORM1 = "norm-l2", "norm-l1"  # computed from this norm of the data
BY_DATA = "by data"  # divided by an extreme or a deviation of the data
RESCALED = "rescaled"  # divided by its bound
COLUMN = "column"  # of shape (n, 1): one number for all coordinates
INDICATOR = "indicator"  # the outcome of a comparison
GENERATOR = "generator"
SHAPES = frozenset({ARRAY, SCALAR, COLUMN})
OF_DATA = frozenset({RAW, INPUT, STAT, DISTINCT, SIZE, COUNT, SUM, MEAN})
MOST_TERMS = 4


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Value:
    """An expression's value: the formulas it can have, its marks, the draws in it, and the names it was made from."""

    terms: tuple[Term, ...] = ()
    marks: frozenset[str] = frozenset()
    draws: frozenset[int] = frozenset()
    leaves: frozenset[str] = frozenset()
    law: str = ""
    scale_marks: frozenset[str] = frozenset()
    place: SourceLine | None = None
    items: tuple[Value, ...] | None = None
    refers: Any = None
    text: str = ""

    def has(self, *marks: str) -> bool:
        """Whether it has one of these marks."""
        return not self.marks.isdisjoint(marks)

    def marked(self, *marks: str, without: frozenset[str] = frozenset()) -> Value:
        """The same with more marks, and without some."""
        return replace(self, marks=(self.marks - without) | set(marks))

    @property
    def term(self) -> Term | None:
        """The formula, where there is one alone."""
        return self.terms[0] if len(self.terms) == 1 else None

    @property
    def constant(self) -> float | None:
        """The number, where it is one."""
        one = self.term
        return one.coefficient if one is not None and one.constant and CONSTANT in self.marks else None

    @property
    def names(self) -> frozenset[str]:
        """The roles in its formulas."""
        return frozenset().union(*(one.names for one in self.terms)) if self.terms else frozenset()


NOTHING = Value()


def joined(values: list[Value]) -> Value:
    """One of several values, depending on what the code does."""
    if len(values) == 1 or all(one == values[0] for one in values[1:]):
        return values[0] if values else NOTHING
    known = all(one.terms for one in values)
    terms = tuple(dict.fromkeys(term for one in values for term in one.terms)) if known else ()
    shapes = frozenset.intersection(*(one.marks & SHAPES for one in values))
    sure = frozenset.intersection(*(one.marks & {CLIPPED, NORM1, NORM2, CONSTANT, ONE_SIDED, INPUT} for one in values))
    maybe = (
        frozenset().union(*(one.marks for one in values)) - SHAPES - {CLIPPED, NORM1, NORM2, CONSTANT, ONE_SIDED, INPUT}
    )
    items = values[0].items
    same_length = all(one.items is not None and items is not None and len(one.items) == len(items) for one in values)
    return Value(
        terms if len(terms) <= MOST_TERMS else (),
        shapes | sure | maybe,
        frozenset().union(*(one.draws for one in values)),
        frozenset().union(*(one.leaves for one in values)),
        next((one.law for one in values if one.law), "") if len({one.law for one in values if one.law}) == 1 else "",
        frozenset().union(*(one.scale_marks for one in values)),
        next((one.place for one in values if one.place), None),
        tuple(joined([one.items[i] for one in values if one.items]) for i in range(len(items or ())))
        if same_length
        else None,
        next((one.refers for one in values if one.refers is not None), None),
    )


def combined(values: list[Value], terms: tuple[Term, ...] = (), keep: frozenset[str] = frozenset()) -> Value:
    """A value computed from several: what it depends on, without their formulas."""
    marks = frozenset().union(*(one.marks for one in values)) if values else frozenset()
    lost = frozenset({INPUT, CONSTANT, DEFAULT, COUNT, SUM, MEAN, CLIPPED, NORM1, NORM2, CHOSEN, GENERATOR}) - keep
    if NOISY in marks and RAW not in marks:
        lost = lost | {NOISE}
    return Value(
        terms,
        marks - lost,
        frozenset().union(*(one.draws for one in values)) if values else frozenset(),
        frozenset().union(*(one.leaves for one in values)) if values else frozenset(),
        next((one.law for one in values if one.law), ""),
        frozenset().union(*(one.scale_marks for one in values)) if values else frozenset(),
    )


def of_number(value: float) -> Value:
    """A number in the code."""
    return Value((number(value),), frozenset({CONSTANT, SCALAR}))


def of_role(role: str, name: str) -> Value:
    """A quantity that only its name describes."""
    return Value((named(role or f"‹{name}›"),), frozenset(), leaves=frozenset({name}))


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around an event: what it runs over, in the code's words, and whether that is the data."""

    text: str
    over: Value
    target: str
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Where:
    """The circumstances of an event: its line, the functions it is in, branches, loops, conditions."""

    place: SourceLine
    chain: tuple[FunctionSource, ...]
    branches: tuple[tuple[int, int], ...] = ()
    loops: tuple[Loop, ...] = ()
    conditions: tuple[Value, ...] = ()
    handler: bool = False
    warned: bool = False
    outer: SourceLine = SourceLine("", 0)

    def excludes(self, other: Where) -> bool:
        """Whether the two can never happen in the same run."""
        mine = dict(self.branches)
        return any(mine.get(one, arm) != arm for one, arm in other.branches)


@dataclass(frozen=True, slots=True)
class DrawnValue:
    """A call that draws random numbers."""

    number: int
    where: Where
    law: str
    library: str
    scale: Value
    centre: Value
    shape: str  # "one" number, "column", "array", "like" an array, or "unknown"
    generator: Value
    text: str


@dataclass(frozen=True, slots=True)
class Used:
    """Noise that is added to something, or returned by itself (`other` is None)."""

    where: Where
    noise: Value
    other: Value | None
    result: Value


@dataclass(frozen=True, slots=True)
class Clipped:
    """A bound that is put on a value."""

    where: Where
    norm: str
    bound: Value
    value: Value


@dataclass(frozen=True, slots=True)
class SeededValue:
    """A seed given to a generator or to a library's global state."""

    where: Where
    library: str
    seed: Value
    everywhere: bool


@dataclass(frozen=True, slots=True)
class Returned:
    """What a function returns."""

    where: Where
    value: Value


@dataclass(frozen=True, slots=True)
class Mixed:
    """A noisy value that is combined with the data again."""

    where: Where
    noisy: Value
    raw: Value
    operation: str


@dataclass(frozen=True, slots=True)
class Set:
    """An attribute of self that is assigned."""

    where: Where
    name: str
    value: Value


@dataclass
class Log:
    """All that was seen in one function and what it calls."""

    function: FunctionSource
    draws: list[DrawnValue] = field(default_factory=list)
    uses: list[Used] = field(default_factory=list)
    clips: list[Clipped] = field(default_factory=list)
    seeds: list[SeededValue] = field(default_factory=list)
    returns: list[Returned] = field(default_factory=list)
    mixed: list[Mixed] = field(default_factory=list)
    sets: list[Set] = field(default_factory=list)
    order: list[Any] = field(default_factory=list)  # clips, sets and uses as they come
    parameters: dict[str, Value] = field(default_factory=dict)
