"""Numbers that decide parts of the output together: whether each word is kept, and what else is put in its place.

Each run must draw the same numbers. What a number decides is found by changing it alone, in a natural run and in runs
where all numbers are different, since a number may matter only for some values of another. Numbers that decide the same
parts are treated jointly, and all their values are enumerated; trials check whether anything else matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from dpassay.errors import MechanismError
from dpassay.trace.laws.coordinatewise import (
    Coordinates,
    Jointly,
    OutcomeTable,
    Piece,
    differ,
    joined,
    of_one_kind,
    parts_of,
    pieces_of,
)
from dpassay.trace.laws.outcomes import LEAST, ChoiceStep, Part, steps_of, within
from dpassay.trace.watch.tracer import Tracer

MOST_ROWS = 256  # runs to enumerate all joint values of some numbers
ELSEWHERE, OTHERS, TIMES = 3, 2, 3  # runs with all numbers elsewhere; other parts of a number; until all cuts are known


def jointly_of(tracer: Tracer, x: Any, most: int) -> Coordinates | None:
    """What the numbers drawn for x decide together; None if that cannot be determined in `most` runs."""
    looking = _JointRuns(tracer, x, most)
    try:
        for _ in range(TIMES):
            known = [len(cuts) for cuts in looking.cuts]
            found = looking.learned()
            if found is None or known == [len(cuts) for cuts in looking.cuts]:
                return found
    except (MechanismError, ValueError, TypeError, IndexError):  # the code cannot handle these numbers
        pass
    return None


class _NotSo(MechanismError):
    """The runs are not of this form, or there is no time for more of them."""


class _JointRuns:
    def __init__(self, tracer: Tracer, x: Any, most: int) -> None:
        self.tracer, self.x, self.left = tracer, x, most
        self.key = (tracer.seed, 7, 0)
        self.run = tracer.run(x, key=self.key)
        self.steps = steps_of(self.run) or []
        self.paths, self.base = pieces_of(self.run.reading, " ")
        self.cuts = [set(step.cuts) for step in self.steps]

    def learned(self) -> Coordinates | None:
        """The tables, with the parts that are known so far."""
        parts = [parts_of(step, _apart(cuts)) for step, cuts in zip(self.steps, self.cuts, strict=True)]
        touched = [set[int]() for _ in parts]
        for places in self.bases(parts):
            base = self.pieces(parts, places)
            for k, own in enumerate(places):
                for other in [at for at in range(len(parts[k])) if at != own][:OTHERS]:
                    now = self.pieces(parts, [*places[:k], other, *places[k + 1 :]])
                    touched[k] |= {at for at, piece in enumerate(now) if differ(piece, base[at])}
        groups = joined([frozenset(one) for one in touched if one])
        members = [(where, tuple(k for k, one in enumerate(touched) if one & where)) for where in groups]
        members += [(frozenset(), (k,)) for k, one in enumerate(touched) if not one]
        tables = [OutcomeTable(own, tuple(map(step.chance, own))) for step, own in zip(self.steps, parts, strict=True)]
        pieces = self.rows(parts, members)
        decided = [
            Jointly(where, at, tuple(tables[k] for k in at), own)
            for (where, at), own in zip(members, pieces, strict=True)
        ]
        return Coordinates(self.paths, self.base, tuple(decided), " ")

    def bases(self, parts: Sequence[tuple[Part, ...]]) -> Iterator[list[int]]:
        """Places of the parts of all numbers: those of a natural run, and others."""
        yield [_place_of(step, own) for step, own in zip(self.steps, parts, strict=True)]
        for at in range(min(ELSEWHERE, max(map(len, parts)))):
            yield [min(at, len(own) - 1) for own in parts]

    def rows(
        self, parts: Sequence[tuple[Part, ...]], members: Sequence[tuple[frozenset[int], tuple[int, ...]]]
    ) -> list[dict[tuple[int, ...], dict[int, Piece]]]:
        """For each group, the pieces that it decides for all values of its numbers; all groups in the same runs."""
        sizes = [math.prod(len(parts[k]) for k in at) for _, at in members]
        if max(sizes) > MOST_ROWS:
            raise _NotSo
        ways = [list(product(*(range(len(parts[k])) for k in at))) for _, at in members]
        found: list[dict[tuple[int, ...], dict[int, Piece]]] = [{} for _ in members]
        decided = frozenset().union(*(where for where, _ in members))
        for row in range(max(sizes)):
            places = [0] * len(parts)
            chosen = [own[row % len(own)] for own in ways]
            for (_, at), way in zip(members, chosen, strict=True):
                for k, place in zip(at, way, strict=True):
                    places[k] = place
            now = self.pieces(parts, places)
            if any(differ(piece, self.base[at]) for at, piece in enumerate(now) if at not in decided):
                raise _NotSo
            for known, (where, _), way in zip(found, members, chosen, strict=True):
                own = {at: now[at] for at in where}
                if any(differ(own[at], piece) for at, piece in known.setdefault(way, own).items()):
                    raise _NotSo
        return found

    def pieces(self, parts: Sequence[tuple[Part, ...]], places: Sequence[int]) -> tuple[Piece, ...]:
        """The output of a run in which the numbers have these parts."""
        self.left -= 1
        if self.left < 0:
            raise _NotSo
        values = {k: np.array(draw.values) for k, draw in self.run.decisions()}
        for step, own, place in zip(self.steps, parts, places, strict=True):
            if step.within(own[place]) is None:
                values[step.draw].flat[step.at] = within(self.run, step, own[place])
        run = self.tracer.run(self.x, values, key=self.key)
        steps = steps_of(run) or []
        paths, pieces = pieces_of(run.reading, " ")
        if len(steps) != len(self.steps) or paths != self.paths or not all(map(of_one_kind, self.steps, steps)):
            raise _NotSo
        for cuts, step in zip(self.cuts, steps, strict=True):
            cuts |= set(step.cuts)
        return pieces


def _place_of(step: ChoiceStep, parts: tuple[Part, ...]) -> int:
    """Which of these parts a step drew."""
    return next(k for k, part in enumerate(parts) if step.within(part) is not None)


def _apart(cuts: set[float]) -> tuple[float, ...]:
    """The cuts in order, without those that rounding made twice."""
    every = sorted(cuts)
    return tuple(t for k, t in enumerate(every) if not k or t - every[k - 1] > LEAST)
