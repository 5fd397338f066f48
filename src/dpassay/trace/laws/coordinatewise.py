"""Code that decides each part of its output by a drawn number of its own: bits that are flipped, words replaced.

All draws together may have far too many outcomes to enumerate, but each number has few. What each number
decides is seen by changing it alone; trials with fresh noise show whether that is all (docs/proofs/coupling.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from dpassay.errors import MechanismError
from dpassay.trace.laws.outcomes import LEAST, SHORTEST, ChoiceStep, Part, changed, steps_of, within
from dpassay.trace.natural.whole import WholeReading
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

MOST_PARTS, MOST_TOGETHER = 300, 4096  # of a number; of numbers that decide the same parts of the output
Piece = tuple[str, Any]  # of which type, and its value
Law = dict[tuple[str, ...], float]


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """The parts of a drawn number, and their probabilities."""

    parts: tuple[Part, ...]
    chances: tuple[float, ...]

    @staticmethod
    def of(step: ChoiceStep) -> OutcomeTable:
        """The parts of a step."""
        parts = parts_of(step)
        return OutcomeTable(parts, tuple(step.chance(part) for part in parts))

    def place(self, step: ChoiceStep) -> int | None:
        """Which of these parts was drawn; None if it is none of them, or the step has other probabilities."""
        if step.weights is None:  # where a uniform number lies says which part it is, whatever it was compared with
            parts = [part for part in self.parts if isinstance(part, tuple)]
            within = (k for k, (low, high) in enumerate(parts) if low <= step.value <= high)
            return next(within, None) if len(parts) == len(self.parts) else None
        now = OutcomeTable.of(step)
        if now.parts != self.parts or not np.allclose(now.chances, self.chances, rtol=1e-9, atol=0):
            return None
        return next((k for k, part in enumerate(self.parts) if step.within(part) is not None), None)


@dataclass(frozen=True, eq=False)
class Decided:
    """What a drawn number decides, with a second one that is drawn after some of its parts: pieces of the output.

    `pieces` is by the places of the parts that were drawn, of one number or of two.
    """

    where: frozenset[int]
    first: OutcomeTable
    second: tuple[OutcomeTable | None, ...]  # for each part of the first
    pieces: dict[tuple[int, ...], dict[int, Piece]]
    taken: int  # numbers of the first run

    def ways(self) -> list[tuple[tuple[int, ...], float]]:
        """All that can be drawn, and its probability."""
        found: list[tuple[tuple[int, ...], float]] = []
        for k, (chance, then) in enumerate(zip(self.first.chances, self.second, strict=True)):
            found += [((k,), chance)] if then is None else [((k, at), chance * p) for at, p in enumerate(then.chances)]
        return found

    def drawn(self, steps: Sequence[ChoiceStep], at: int) -> tuple[tuple[int, ...], int] | None:
        """The parts that the steps from here on drew, and the next step; None if they are none of these."""
        places: tuple[int, ...] = ()
        table: OutcomeTable | None = self.first
        while table is not None:
            place = table.place(steps[at]) if at < len(steps) else None
            if place is None:
                return None
            places, at = (*places, place), at + 1
            table = self.second[place] if len(places) == 1 else None
        return places, at


@dataclass(frozen=True, eq=False)
class Jointly:
    """What some drawn numbers decide together: pieces of the output, by the places of all their parts.

    Each run draws the same numbers, and `at` says which of them these are.
    """

    where: frozenset[int]
    at: tuple[int, ...]
    tables: tuple[OutcomeTable, ...]
    pieces: dict[tuple[int, ...], dict[int, Piece]]

    def ways(self) -> list[tuple[tuple[int, ...], float]]:
        """All that can be drawn, and its probability."""
        every = product(*(enumerate(table.chances) for table in self.tables))
        return [(tuple(k for k, _ in one), math.prod(chance for _, chance in one)) for one in every]

    def drawn(self, steps: Sequence[ChoiceStep], at: int) -> tuple[tuple[int, ...], int] | None:
        """The parts that its steps drew, and the number of steps so far; None if they are none of these."""
        if max(self.at) >= len(steps):
            return None
        places = [table.place(steps[k]) for k, table in zip(self.at, self.tables, strict=True)]
        known = tuple(place for place in places if place is not None)
        return (known, at + len(self.at)) if len(known) == len(places) else None


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The outputs of an input: those of one run, and what each number changes in it."""

    paths: tuple[str, ...]
    base: tuple[Piece, ...]
    decided: tuple[Decided, ...] | tuple[Jointly, ...]
    separator: str  # of the pieces of a text: a space, or nothing if they are characters

    def difference(self, run: RecordedRun) -> str:
        """What in a run differs from the prediction based on its draws; empty if nothing does."""
        steps, at = steps_of(run) or [], 0
        expected = list(self.base)
        for known in self.decided:
            if (found := known.drawn(steps, at)) is None:
                return "what a drawn number is compared with depends on other draws"
            places, at = found
            for index, piece in known.pieces[places].items():
                expected[index] = piece
        paths, pieces = pieces_of(run.reading, self.separator)
        if at != len(steps) or paths != self.paths:
            return "other noise makes the code do something else"
        where = _reading(paths, expected).difference(_reading(paths, pieces))
        return "" if where is None else f"{where} depends on more than the number that was seen to decide it"

    def law(self, where: frozenset[int]) -> Law | None:
        """The distribution of some pieces of the output; None if too many draws decide them."""
        own = [one for one in self.decided if one.where & where]
        if math.prod(len(one.pieces) for one in own) > MOST_TOGETHER:
            return None
        found: Law = {}
        for ways in product(*(one.ways() for one in own)):
            pieces = {index: self.base[index] for index in where}
            for one, (places, _) in zip(own, ways, strict=True):
                pieces |= one.pieces[places]
            key = tuple(repr(pieces[index]) for index in sorted(where))
            found[key] = found.get(key, 0.0) + math.prod(chance for _, chance in ways)
        return found


def coordinates_of(tracer: Tracer, x: Any, most: int) -> Coordinates | None:
    """Change the numbers drawn for x one at a time; None if that takes too many runs, or two decide the same part.

    A text is taken apart into its words; if that fails, into its characters.
    """
    looking = _Looking(tracer, x, most, " ")
    found = _blocks(looking)
    has_text = "str" in looking.run.reading.kinds
    return found if found is not None or not has_text else _blocks(_Looking(tracer, x, looking.left, ""))


def _blocks(looking: _Looking) -> Coordinates | None:
    if not looking.steps:
        return None
    found: list[Decided] = []
    at = 0
    while at < len(looking.steps):
        block = looking.block(at, 0) or looking.block(at, 1)
        if block is None or any(block.where & one.where for one in found):
            return None
        found.append(block)
        at += block.taken
    return Coordinates(looking.paths, looking.base, tuple(found), looking.separator)


class _Looking:
    """Runs of an input in which one number is changed, after which a second one may be drawn, or no longer is."""

    def __init__(self, tracer: Tracer, x: Any, most: int, separator: str) -> None:
        self.tracer, self.x, self.left, self.separator = tracer, x, most, separator
        self.key = (tracer.seed, 7, 0)
        self.run = tracer.run(x, key=self.key)
        self.steps = steps_of(self.run) or []
        self.values = {k: np.array(draw.values) for k, draw in self.run.decisions()}
        self.apart = list(self.values) == list(range(len(self.steps)))  # every draw is one step
        self.paths, self.base = pieces_of(self.run.reading, self.separator)
        self.compared = {at: set(step.cuts) for at, step in enumerate(self.steps)}  # with what, in all runs

    def block(self, at: int, more: int) -> Decided | None:
        """What the number `at` decides if it causes `more` others to be drawn in the first run; None if it does not."""
        if more and (not self.apart or at + more >= len(self.steps)):
            return None
        cuts: tuple[float, ...] = ()
        while True:
            found, cuts = self.parted(at, more, parts_of(self.steps[at], cuts)), self.cuts(at, cuts)
            if found is None or found.first.parts == parts_of(self.steps[at], cuts):
                return found

    def cuts(self, at: int, known: tuple[float, ...]) -> tuple[float, ...]:
        """All points at which runs so far compared the number `at`."""
        every = sorted({*known, *self.compared.get(at, ())})
        return tuple(t for k, t in enumerate(every) if not k or t - every[k - 1] > LEAST)

    def parted(self, at: int, more: int, parts: tuple[Part, ...]) -> Decided | None:
        """The same if the number has these parts."""
        step = self.steps[at]
        first, second, pieces = (
            OutcomeTable(parts, tuple(step.chance(part) for part in parts)),
            list[OutcomeTable | None](),
            dict[tuple[int, ...], dict[int, Piece]](),
        )
        for k, part in enumerate(first.parts):
            drawn, seen = more, _ObservedRun(self.run, self.steps, {})
            if step.within(part) is None:
                tried = ((n, self.changed(at, more, n, part)) for n in ((0, 1) if self.apart else (0,)))
                drawn, other = next(((n, one) for n, one in tried if one is not None), (0, None))
                if other is None:
                    return None
                seen = other
            if not drawn:
                second.append(None)
                pieces[k,] = seen.pieces
                continue
            then = seen.steps[at + 1]
            second.append(table := OutcomeTable.of(then))
            for j, inner in enumerate(table.parts):
                known = then.within(inner) is not None
                got = seen if known else self.changed(at, more, 1, part, within(seen.run, then, inner))
                if got is None:
                    return None
                pieces[k, j] = got.pieces
        where = frozenset(index for one in pieces.values() for index in one)
        whole = {k: {index: one.get(index, self.base[index]) for index in where} for k, one in pieces.items()}
        return Decided(where, first, tuple(second), whole, 1 + more)

    def changed(self, at: int, more: int, drawn: int, part: Part, then: float | None = None) -> _ObservedRun | None:
        """A run with another part, `drawn` numbers instead of `more` after it, and then the same as in the first run.

        None if there is no such run, or no time for it.
        """
        self.left -= 1
        if self.left < 0:
            return None
        forced = changed(self.run, self.steps[at], part)
        if self.apart:
            forced = {k if k <= at else k + drawn - more: one for k, one in forced.items() if not at < k <= at + more}
            if then is not None:
                forced[at + 1] = np.asarray(then)
        try:
            run = self.tracer.run(self.x, forced, key=self.key)
        except (MechanismError, ValueError, TypeError, IndexError):
            return None
        steps = steps_of(run) or []
        before, after = (
            [*self.steps[: at + 1], *self.steps[at + 1 + more :]],
            [*steps[: at + 1], *steps[at + 1 + drawn :]],
        )
        if len(steps) != len(self.steps) + drawn - more:
            return None
        self.compared[at] |= set(steps[at].cuts)
        others = [(one, two) for k, (one, two) in enumerate(zip(before, after, strict=True)) if k != at]
        if not all(_alike(one, two) for one, two in others) or not of_one_kind(before[at], after[at]):
            return None
        if any(
            one.within(two.within(None)) is None
            for k, (one, two) in enumerate(zip(after, before, strict=True))
            if k != at
        ):
            return None
        paths, pieces = pieces_of(run.reading, self.separator)
        if paths != self.paths or steps[at].within(part) is None:
            return None
        return _ObservedRun(run, steps, {k: piece for k, piece in enumerate(pieces) if differ(piece, self.base[k])})


@dataclass(frozen=True, eq=False)
class _ObservedRun:
    run: RecordedRun
    steps: list[ChoiceStep]
    pieces: dict[int, Piece]  # that are not those of the first run


def laws_that_differ(first: Coordinates, second: Coordinates) -> list[tuple[Law, Law]] | None:
    """The independent parts of two inputs' outputs whose laws differ; None if the parts do not correspond."""
    if first.paths != second.paths:
        return None
    groups = joined([one.where for side in (first, second) for one in side.decided if one.where])
    decided = frozenset().union(*groups)
    if any(differ(a, b) for k, (a, b) in enumerate(zip(first.base, second.base, strict=True)) if k not in decided):
        return None
    found = []
    for group in groups:
        p, q = first.law(group), second.law(group)
        if p is None or q is None:
            return None
        if p.keys() != q.keys() or any(not math.isclose(p[key], q[key], rel_tol=LEAST) for key in p):
            found.append((p, q))
    return found


def joined(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Groups that have something in common, joined."""
    found: list[frozenset[int]] = []
    for group in groups:
        apart = [one for one in found if not one & group]
        found = [*apart, group.union(*(one for one in found if one & group))]
    return found


def parts_of(step: ChoiceStep, cuts: tuple[float, ...] = ()) -> tuple[Part, ...]:
    """The parts of a step: the things that can be drawn, or the intervals between these cuts or its own."""
    if step.weights is not None:
        return tuple(int(k) for k in np.flatnonzero(step.weights > 0)[: MOST_PARTS + 1])
    return tuple(pairwise((0.0, *(cuts or step.cuts), 1.0)))


def of_one_kind(before: ChoiceStep, after: ChoiceStep) -> bool:
    """Whether a step draws the same things with the same probabilities, or a uniform number, in both runs."""
    if (before.at, before.first) != (after.at, after.first):
        return False
    if before.weights is None or after.weights is None:
        return before.weights is None and after.weights is None
    return before.weights.shape == after.weights.shape and bool(
        np.allclose(before.weights, after.weights, rtol=1e-9, atol=0)
    )


def _alike(before: ChoiceStep, after: ChoiceStep) -> bool:
    """Whether a step has the same parts and probabilities when a number is changed."""
    if not of_one_kind(before, after) or before.weights is not None:
        return of_one_kind(before, after)
    if any(high - low < SHORTEST for low, high in pairwise((0.0, *before.cuts, 1.0))):
        return False
    return len(before.cuts) == len(after.cuts) and bool(np.allclose(before.cuts, after.cuts, rtol=0, atol=LEAST))


def pieces_of(reading: WholeReading, separator: str) -> tuple[tuple[str, ...], tuple[Piece, ...]]:
    """The parts of an output, texts as their words or characters."""
    paths: list[str] = []
    pieces: list[Piece] = []
    for path, kind, value in zip(reading.paths, reading.kinds, reading.values, strict=True):
        words = [value]
        if kind == "str" and isinstance(value, str):
            words = value.split(separator) if separator else list(value)
        what = "word" if separator else "character"
        paths += [path] if len(words) == 1 else [f"{what} {k + 1} of {path}" for k in range(len(words))]
        pieces += [(kind, word) for word in words]
    return tuple(paths), tuple(pieces)


def _reading(paths: tuple[str, ...], pieces: Sequence[Piece]) -> WholeReading:
    return WholeReading(paths, tuple(kind for kind, _ in pieces), tuple(value for _, value in pieces))


def differ(one: Piece, other: Piece) -> bool:
    """Whether two pieces are not the same, to the last bit."""
    return not _reading(("",), [one]).same(_reading(("",), [other]))
