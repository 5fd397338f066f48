"""What every distinguisher has: a score, a way to be fitted, a data form, and a description.

With two inputs a score is one number, higher for the second input; with M inputs it is one number for each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.outputs import Array, Outputs, as_row
from dpassay.core.json import plain
from dpassay.errors import InputError, escape_control_chars
from dpassay.values import dataclass

Scores = NDArray[np.float64]
Bits: TypeAlias = Literal["no", "also", "only"]  # whether the bit patterns of floats are used
WEIGHTIEST, LONGEST_NAME = 3, 60  # features that are named, and characters of a name
MOST_NESTED = 64  # entries of a list among outputs of mixed types that are treated as coordinates


@dataclass(frozen=True)
class TrainingSet:
    """Outputs whose input is known: one batch for each input."""

    outputs: tuple[Outputs, ...]
    inputs: tuple[Any, ...]
    bits: Bits = "no"
    offered: tuple[Distinguisher, ...] = ()  # by the mechanism itself, see `mechanism_hints`
    epsilon: float = 0.0  # the claim: an event may be e^ε times as likely under one input as under the other
    by_chance: float = 0.2  # the largest share of rare events that chance may be expected to propose

    @cached_property
    def structured(self) -> bool:
        """Whether outputs have leaves that can only be reached by a path."""
        return any(outputs.structured for outputs in self.outputs)

    @cached_property
    def vectors(self) -> bool:
        """Whether all outputs are vectors of one length, or numbers."""
        widths = {outputs.width for outputs in self.outputs}
        return len(widths) == 1 and None not in widths

    @cached_property
    def width(self) -> int:
        """How many coordinates are used: those of vectors, or of the longest vector among outputs of mixed types."""
        return max(_widest(outputs) if outputs.width is None else outputs.width for outputs in self.outputs)

    @cached_property
    def inputs_as_vectors(self) -> tuple[Array, ...]:
        """The inputs, if they and the outputs are vectors of one length; otherwise nothing."""
        rows = [as_row(x) for x in self.inputs]
        vectors = tuple(row for row in rows if row is not None and len(row) == self.width)
        return vectors if self.vectors and len(vectors) == len(rows) else ()


def _widest(outputs: Outputs) -> int:
    lengths = outputs.lengths()
    vectors = [n for n, item in zip(lengths, outputs.items, strict=True) if not isinstance(item, str) and n == n]
    return int(min(max(vectors, default=0), MOST_NESTED))


@dataclass(frozen=True)
class Distinguisher(ABC):
    """Scores outputs. The score of an output depends on that output alone.

    A subclass is a frozen dataclass in its own file. Its data form is its fields, unless it defines another.
    """

    kind: ClassVar[str]  # name in files
    order: ClassVar[int] = 0  # when it is tried: cheap ones first; later ones must be clearly better
    description: ClassVar[str]  # what it examines, if that is always the same
    per_input: ClassVar[str] = ""  # the field with an entry for each input, if there may be more than two
    learns: ClassVar[bool] = True  # whether it is fitted to outputs, and so must be calibrated on others
    decided: ClassVar[bool] = False  # whether its score names an input or none, so that no thresholds are searched
    not_in_file: ClassVar[str] = ""  # what it needs that is not stored in files

    def __init_subclass__(cls) -> None:
        KINDS[cls.kind] = cls

    @abstractmethod
    def score(self, outputs: Outputs) -> Scores:
        """Higher means the second input, or the column's input; NaN if it cannot tell."""

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """The distinguishers of this kind that suit the outputs; none if this kind is not fitted on its own."""
        yield from ()

    @property
    def candidates(self) -> int | None:
        """How many inputs it distinguishes; None if only its function knows."""
        return len(getattr(self, self.per_input)) if self.per_input else 2

    @property
    def likeness(self) -> bool:
        """Whether its score measures which of two inputs the output is more similar to, with 0 in between."""
        return False

    @property
    def asks(self) -> bool:
        """Whether it queries the mechanism about its inputs, and so applies to no others."""
        return False

    @property
    def estimates_odds(self) -> bool:
        """Whether its score estimates the log-odds of the second input."""
        return False

    @property
    def by_features(self) -> bool:
        """Whether the score is a sum over features, so that the heaviest feature is more informative than the odds."""
        return False

    def certain(self, side: int) -> str:
        """What it always takes as a sign of this input, in words; empty if there is none."""
        return ""

    @property
    def turned(self) -> bool:
        """Whether its score is the negative of what it describes."""
        return False

    def describe(self) -> str:
        """What it examines, in a few words."""
        return self.description

    def describe_of(self, names: Sequence[str]) -> str:
        """The same if the output, or its coordinates, are leaves with these names."""
        return f"{self.describe()}, where the output is {shown_names(names)}"

    def event(self, side: int) -> str:
        """For a decided one: what makes it name this input, in words; empty if nothing does."""
        return ""

    def weightiest(self, outputs: Sequence[Outputs]) -> list[str]:
        """What weighs most in its scores of these outputs (one batch per input); empty if the score is one number."""
        return []

    def to_data(self) -> dict[str, Any]:
        """Its data form, for a file or another process."""
        names = [] if self.not_in_file else [field.name for field in fields(self)]
        return {"kind": self.kind, **{name: plain(getattr(self, name)) for name in names}}

    @staticmethod
    def from_data(data: dict[str, Any], at_hand: Sequence[Distinguisher] = ()) -> Distinguisher:
        """A distinguisher from its data form. Inconsistent data raises an InputError.

        `at_hand` are those for which files store only the kind.
        """
        try:
            require(data["kind"] in KINDS, f"a newer version, which knows {data['kind']}")
            kind = KINDS[data["kind"]]
            if not kind.not_in_file:
                return kind._read(data, at_hand)
            found = [one for one in at_hand if isinstance(one, kind)]
            require(len(found) > 0, kind.not_in_file)
            return found[0]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"
            raise InputError(f"the file has a distinguisher that cannot be read: {said}") from None

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Distinguisher:
        """The same for one kind; it may raise any of the errors above."""
        raise NotImplementedError


def how_often(what: str, first: float, second: float) -> str:
    """A feature with the share of each input's outputs that have it; a long name is shortened in the middle.

    Empty if both have it equally often.

    >>> how_often("'fly'", 0.25, 0.5)
    "'fly' in 50% of the second's outputs and 25% of the first's"
    """
    what = what if len(what) <= LONGEST_NAME else f"{what[: LONGEST_NAME // 2]}…{what[-LONGEST_NAME // 3 :]}"
    more, less = ("second", "first") if second > first else ("first", "second")
    high, low = max(first, second), min(first, second)
    shares = f"{100 * high:.3g}", f"{100 * low:.3g}"
    return (
        f"{what} in {shares[0]}% of the {more}'s outputs and {shares[1]}% of the {less}'s" if len({*shares}) > 1 else ""
    )


def in_digits(value: float, significant: int = 6) -> str:
    """A number in a few digits; a whole number in all of its own, since a neighbor is another one.

    >>> in_digits(123456789.0), in_digits(0.123456789), in_digits(1e300)
    ('123456789', '0.123457', '1e+300')
    """
    return f"{value:.0f}" if value == round(value, 0) and abs(value) < 1e15 else f"{value:.{significant}g}"


def where_apart(name: str, first: Array, second: Array) -> str:
    """The values of a number for which the shares of the two inputs differ most, with both shares.

    The shares differ most between the smallest and the largest difference of the two distribution functions
    (Kuiper 1960).

    >>> where_apart("x", np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0, 5.0, 6.0]))
    "x above 2 in 100% of the second's outputs and 50% of the first's"
    """
    known = [np.sort(side[np.isfinite(side)]) for side in (first, second)]
    if not all(map(len, known)):
        return name
    values = distinct(np.concatenate(known))
    sizes = len(first), len(second)
    below = [np.searchsorted(side, values, side="right") / size for side, size in zip(known, sizes, strict=True)]
    gaps = np.concatenate([[0.0], below[1] - below[0]])
    if abs(gaps[-1]) >= gaps.max() - gaps.min():  # the numbers that there are say no more than how many there are
        return how_often(f"{name} present", *(len(side) / size for side, size in zip(known, sizes, strict=True)))
    highest = int(gaps.argmax()) if gaps.max() > 0 else len(gaps) - 1  # at both ends the difference is 0
    low, high = sorted((int(gaps.argmin()), highest))
    if low == high:
        return name
    shares = [np.concatenate([[0.0], side]) for side in below]
    inside = [float(side[high] - side[low]) for side in shares]
    if low == 0:
        return how_often(f"{name} at most {in_digits(values[high - 1], 4)}", *inside)
    if high == len(values):
        return how_often(f"{name} above {in_digits(values[low - 1], 4)}", *inside)
    return how_often(
        f"{name} above {in_digits(values[low - 1], 4)} and at most {in_digits(values[high - 1], 4)}", *inside
    )


KINDS: dict[str, type[Distinguisher]] = {}  # every distinguisher, by its name in files


def shown_names(names: Sequence[str], between: str = ", ") -> str:
    """A few names, joined for a sentence.

    >>> shown_names(["output.a", "output.b", "output.c", "output.d", "output.e"])
    'output.a, output.b, output.c and 2 more'
    """
    some = [escape_control_chars(name)[:120] for name in names[: 3 if len(names) > 4 else 4]]
    return between.join(some) + (f" and {len(names) - 3} more" if len(names) > 4 else "")


def require(holds: bool, what: str) -> None:
    """Refuse data that lacks what is needed."""
    if not holds:
        raise ValueError(f"it needs {what}")


def array(data: Any, dimensions: int) -> Array:
    """Numbers from their data form."""
    numbers = np.array(data, dtype=float)
    require(numbers.ndim == dimensions, f"numbers in {dimensions} dimensions")
    return numbers
