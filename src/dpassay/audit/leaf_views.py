"""Some leaves of outputs, presented as outputs themselves: rows of numbers, categories or texts for distinguishers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.leaves import MOST_MEMBERS, ROOT, Leaves, canonical, element, exact, written
from dpassay.audit.outputs import Array, Outputs, as_row

Look: TypeAlias = Literal["numbers", "values", "text", "difference", "sum", "whole"]
INDEX, COUNT = f"{ROOT}.index(", f"{ROOT}.count("
LOOKS = ("numbers", "values", "text", "difference", "sum", "whole")
FRACTION = math.pi  # stands for any number that is not an integer


@dataclass(frozen=True)
class View:
    """What is shown: the leaves at some paths, and how.

    >>> from dpassay.audit.outputs import read
    >>> View("difference", ('output["b"]', 'output["a"]')).of(read([{"a": 1.0, "b": 3.0}])).numbers.tolist()
    [[2.0]]
    """

    look: Look
    paths: tuple[str, ...]
    offsets: tuple[int, ...] = ()  # subtracted from numbers that are too large for floats; none: 0 for all

    def of(self, outputs: Outputs) -> Outputs:
        """The outputs as this view shows them. What is shown of an output depends on that output alone."""
        if self not in outputs.projections:
            outputs.projections[self] = self._made(outputs)
        shown: Outputs = outputs.projections[self]
        return shown

    def _made(self, outputs: Outputs) -> Outputs:
        if self.look == "whole":
            return without_fractions(outputs)
        if self.look in ("values", "text"):
            leaves = outputs.leaves
            if self.look == "values":
                return Outputs(None, ["\0".join(_token(element(found, p)) for p in self.paths) for found in leaves])
            texts = ([_text(found.get(path)) for path in self.paths] for found in leaves)
            return Outputs(None, ["\n".join(t for t in some if t) for some in texts])
        rows = self._matrix(outputs)
        if self.look == "numbers":
            return Outputs(rows)
        with np.errstate(invalid="ignore", over="ignore"):
            both = rows[:, 0] - rows[:, 1] if self.look == "difference" else rows[:, 0] + rows[:, 1]
        return Outputs(np.ascontiguousarray(both[:, None]))

    def _matrix(self, outputs: Outputs) -> Array:
        if outputs.numbers is not None and not outputs.items:
            return columns_of_array(outputs.numbers, self.paths)
        return columns(outputs.leaves, self.paths, self.offsets)

    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        if self.look == "whole":
            return (f"the {ROOT} without its fractions",)
        if self.look in ("difference", "sum"):
            return (f" {'-' if self.look == 'difference' else '+'} ".join(self.paths),)
        offsets = self.offsets or (0,) * len(self.paths)
        return tuple(f"{path} - {_shown(o)}" if o else path for path, o in zip(self.paths, offsets, strict=True))


def without_fractions(outputs: Outputs) -> Outputs:
    """What remains of outputs if all non-integers are treated as equal: which values are where.

    >>> from dpassay.audit.outputs import read
    >>> len(set(without_fractions(read(np.array([[0.0, 0.3], [0.0, 0.9], [1.0, 0.9]]))).keys().tolist()))
    2
    """
    if outputs.numbers is not None:
        return Outputs(_whole(outputs.numbers))
    vectors = [as_row(item) for item in outputs.items]
    shown = [
        canonical({path: _whole(leaf) for path, leaf in leaves.items()}) if vector is None else _whole(vector)
        for vector, leaves in zip(vectors, outputs.leaves, strict=True)
    ]
    return Outputs(None, shown)


def partly_whole(outputs: Outputs) -> bool:
    """Whether there are fractions, and something else.

    >>> from dpassay.audit.outputs import read
    >>> [partly_whole(read(np.array([row]))) for row in ([0.0, 0.5], [0.5, 0.5], [0.0, 1.0])]
    [True, False, False]
    """
    if outputs.numbers is None:
        return outputs.fractional
    fractions = _fractions(outputs.numbers)
    return bool(fractions.any() and not fractions.all())


def _fractions(numbers: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(numbers) & (numbers != np.rint(numbers)))


def _whole(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return np.where(_fractions(leaf), FRACTION, leaf)
    return FRACTION if isinstance(leaf, float | Fraction) and leaf - leaf == 0 and leaf != int(leaf) else leaf


def _shown(offset: int) -> str:
    return str(offset) if abs(offset) < 10**40 else f"{hex(offset)[:20]}…"


def columns(leaves: Sequence[Leaves], paths: Sequence[str], offsets: Sequence[int] = ()) -> Array:
    """The numbers at some paths, one column per path; NaN if there is none."""
    rows = np.full((len(leaves), len(paths)), np.nan)
    places = [(*base_of(path), j, path, offsets[j] if offsets else 0) for j, path in enumerate(paths)]
    for _, group in groupby(places, key=lambda place: (place[0], "" if place[0] else place[3])):
        several = list(group)
        base, entries = several[0][0], np.array([place[1] for place in several])
        into = np.array([place[2] for place in several])
        for i, found in enumerate(leaves):
            row = found.get(base) if base else None
            if isinstance(row, np.ndarray):
                there = entries < len(row)
                rows[i, into[there]] = row[entries[there]]
                continue
            for _, _, j, path, offset in several:
                leaf = found.get(path)
                if leaf is not None:
                    rows[i, j] = number(leaf, offset)
    return rows


def columns_of_array(numbers: Array, paths: Sequence[str]) -> Array:
    """The same for a batch that is one array: what `columns` gives for the leaves of its rows."""
    rows, width = np.full((len(numbers), len(paths)), np.nan), numbers.shape[1]
    for j, path in enumerate(paths):
        base, place = base_of(path)
        if width == 1:
            base, place = path, 0
        if path.startswith((INDEX, COUNT)):
            rows[:, j] = _places(numbers, path)
        elif base == ROOT and place < width:
            rows[:, j] = numbers[:, place]
    return rows


def _places(numbers: Array, path: str) -> Array:
    """Where each row first has an integer, or how often if more than once; rows with fractions have no positions."""
    sought, width = path[path.index("(") + 1 : -1], numbers.shape[1]
    none = np.full(len(numbers), np.nan)
    if not 1 < width <= MOST_MEMBERS or not sought.lstrip("-").isdigit() or not exact(int(sought)):
        return none
    there = numbers == float(int(sought))
    there &= (np.isfinite(numbers) & (numbers == np.rint(numbers))).all(axis=1)[:, None]
    often = there.sum(axis=1)
    if path.startswith(INDEX):
        return np.where(often > 0, there.argmax(axis=1), none)
    return np.where(often > 1, often, none)


def base_of(path: str) -> tuple[str, int]:
    """The row that a path points into, and the position; an empty name if it points into none.

    >>> base_of("output[3]"), base_of("output.a")
    (('output', 3), ('', 0))
    """
    base, _, place = path[:-1].rpartition("[")
    return (base, int(place)) if path.endswith("]") and place.isdigit() else ("", 0)


def number(leaf: Any, offset: int = 0) -> float:
    """A leaf as a number; NaN if it is not one. From a number too large for a float, the offset is subtracted first."""
    if not isinstance(leaf, float | int | Fraction):
        return math.nan
    if not offset or (isinstance(leaf, float) and not math.isfinite(leaf)):
        try:
            return float(leaf)
        except OverflowError:
            return math.inf if leaf > 0 else -math.inf
    try:
        return float(Fraction(leaf) - offset)
    except OverflowError:
        return math.inf if leaf > offset else -math.inf


def _token(leaf: Any) -> str:
    return "" if leaf is ... else written(leaf)


def _text(leaf: Any) -> str | None:
    return leaf if isinstance(leaf, str) else leaf.decode("latin-1") if isinstance(leaf, bytes) else None
