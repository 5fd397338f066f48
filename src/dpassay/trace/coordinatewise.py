"""Code that decides each part of its output by a drawn number of its own: bits that are flipped, words replaced.

All draws together may have far too many outcomes to be enumerated; those of each number have few. What each number
decides is seen by changing it alone; trials with fresh noise show whether that is all (docs/proofs/coupling.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from dpassay.trace.outcomes import LEAST, SHORTEST, Part, Step, changed, steps_of
from dpassay.trace.record import Run
from dpassay.trace.tracer import Tracer
from dpassay.trace.whole import Reading

MOST_PARTS, MOST_TOGETHER = 300, 4096  # of a number; of numbers that decide the same parts of the output
Piece = tuple[str, Any]  # of which type, and its value
Law = dict[tuple[str, ...], float]


@dataclass(frozen=True, eq=False)
class Decided:
    """What one drawn number decides: the pieces of the output, for each of its parts, and their probabilities."""

    where: frozenset[int]
    parts: tuple[Part, ...]
    chances: tuple[float, ...]
    pieces: tuple[dict[int, Piece], ...]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The outputs of an input: those of one run, and what each number changes in it."""

    paths: tuple[str, ...]
    base: tuple[Piece, ...]
    decided: tuple[Decided, ...]

    def difference(self, run: Run) -> str:
        """What of a run is not as predicted from what it drew; nothing if all is."""
        steps = steps_of(run)
        if steps is None or len(steps) != len(self.decided):
            return "other noise makes the code do something else"
        paths, pieces = _pieces(run.reading)
        expected = list(self.base)
        for step, known in zip(steps, self.decided, strict=True):
            at = _place(step, known)
            if at is None:
                return "what a drawn number is compared with depends on other draws"
            for index, piece in known.pieces[at].items():
                expected[index] = piece
        if paths != self.paths:
            return "what the output consists of depends on the noise"
        where = _reading(paths, expected).difference(_reading(paths, pieces))
        return "" if where is None else f"{where} depends on more than the number that was seen to decide it"

    def law(self, where: frozenset[int]) -> Law | None:
        """The distribution of some pieces of the output; None if too many draws decide them."""
        own = [one for one in self.decided if one.where & where]
        if math.prod(len(one.parts) for one in own) > MOST_TOGETHER:
            return None
        found: Law = {}
        for places in product(*(range(len(one.parts)) for one in own)):
            pieces = {index: self.base[index] for index in where}
            for one, at in zip(own, places, strict=True):
                pieces |= one.pieces[at]
            key = tuple(repr(pieces[index]) for index in sorted(where))
            found[key] = found.get(key, 0.0) + math.prod(one.chances[at] for one, at in zip(own, places, strict=True))
        return found


def coordinates_of(tracer: Tracer, x: Any, most: int) -> Coordinates | None:
    """Change each number that is drawn for x alone; None if that takes too many runs, or two decide the same part."""
    key = (tracer.seed, 7, 0)
    run = tracer.run(x, key=key)
    steps = steps_of(run)
    if steps is None or sum(len(_parts(step)) for step in steps) > most:
        return None
    paths, base = _pieces(run.reading)
    found: list[Decided] = []
    for step in steps:
        parts = _parts(step)
        seen: list[dict[int, Piece]] = []
        for part in parts:
            other = run if step.within(part) is not None else tracer.run(x, changed(run, step, part), key=key)
            after = steps_of(other)
            if after is None or len(after) != len(steps) or not all(map(_alike, steps, after)):
                return None
            where, pieces = _pieces(other.reading)
            if where != paths:
                return None
            seen.append({k: piece for k, piece in enumerate(pieces) if _differ(piece, base[k])})
        where_decided = frozenset().union(*seen)
        if any(where_decided & one.where for one in found):
            return None
        pieces_of = tuple({k: one.get(k, base[k]) for k in where_decided} for one in seen)
        found.append(Decided(where_decided, parts, tuple(step.chance(part) for part in parts), pieces_of))
    return Coordinates(paths, base, tuple(found))


def laws_that_differ(first: Coordinates, second: Coordinates) -> list[tuple[Law, Law]] | None:
    """The independent parts of the outputs of two inputs, as far as their laws differ; None if they are not alike."""
    if first.paths != second.paths:
        return None
    groups = _together([one.where for side in (first, second) for one in side.decided if one.where])
    decided = frozenset().union(*groups)
    if any(_differ(a, b) for k, (a, b) in enumerate(zip(first.base, second.base, strict=True)) if k not in decided):
        return None
    found = []
    for group in groups:
        p, q = first.law(group), second.law(group)
        if p is None or q is None:
            return None
        if p.keys() != q.keys() or any(not math.isclose(p[key], q[key], rel_tol=LEAST) for key in p):
            found.append((p, q))
    return found


def _together(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Groups that have something in common, joined."""
    found: list[frozenset[int]] = []
    for group in groups:
        apart = [one for one in found if not one & group]
        found = [*apart, group.union(*(one for one in found if one & group))]
    return found


def _parts(step: Step) -> tuple[Part, ...]:
    if step.weights is not None:
        return tuple(int(k) for k in np.flatnonzero(step.weights > 0)[: MOST_PARTS + 1])
    ends = (0.0, *step.cuts, 1.0)
    return tuple(pairwise(ends))


def _place(step: Step, known: Decided) -> int | None:
    """Which of the known parts was drawn; None if the step has other parts or other probabilities."""
    parts = _parts(step)
    if len(parts) != len(known.parts):
        return None
    for part, was, chance in zip(parts, known.parts, known.chances, strict=True):
        if not np.allclose(part, was, rtol=0, atol=LEAST) or not math.isclose(step.chance(part), chance, rel_tol=1e-9):
            return None
    return next((k for k, part in enumerate(known.parts) if step.within(part) is not None), None)


def _alike(before: Step, after: Step) -> bool:
    """Whether a step has the same parts and probabilities when a number is changed."""
    if (before.draw, before.at, before.first) != (after.draw, after.at, after.first):
        return False
    if before.weights is not None:
        return (
            after.weights is not None
            and before.weights.shape == after.weights.shape
            and bool(np.allclose(before.weights, after.weights, rtol=1e-9, atol=0))
        )
    if any(high - low < SHORTEST for low, high in pairwise((0.0, *before.cuts, 1.0))):
        return False
    return (
        after.weights is None
        and len(before.cuts) == len(after.cuts)
        and bool(np.allclose(before.cuts, after.cuts, rtol=0, atol=LEAST))
    )


def _pieces(reading: Reading) -> tuple[tuple[str, ...], tuple[Piece, ...]]:
    """The parts of an output, texts as their words."""
    paths: list[str] = []
    pieces: list[Piece] = []
    for path, kind, value in zip(reading.paths, reading.kinds, reading.values, strict=True):
        words = value.split(" ") if kind == "str" and isinstance(value, str) else [value]
        paths += [path] if len(words) == 1 else [f"word {k + 1} of {path}" for k in range(len(words))]
        pieces += [(kind, word) for word in words]
    return tuple(paths), tuple(pieces)


def _reading(paths: tuple[str, ...], pieces: Sequence[Piece]) -> Reading:
    return Reading(paths, tuple(kind for kind, _ in pieces), tuple(value for _, value in pieces))


def _differ(one: Piece, other: Piece) -> bool:
    return not _reading(("",), [one]).same(_reading(("",), [other]))
