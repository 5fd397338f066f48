"""Noise that is shifted differently on each path through the code: sparse vector, noisy max, adaptive queries.

A path is the sequence of answers to all comparisons of noisy numbers. If z makes the code take a path with x, then
z + d must make it take the same path with y, with the same output. d is a constant of the path: a linear program finds
the cheapest shift that preserves every answer and every released sum. Trials check that it does:
docs/proofs/coupling.md, point 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from dpassay.errors import MechanismError
from dpassay.trace.laws.number_laws import NOISE_KINDS, law_of, node_law
from dpassay.trace.natural.failing import WatchedTooLong
from dpassay.trace.replay.cheapest_shift import Row, cheapest, numbers_of
from dpassay.trace.replay.draw_laws import Laws, laws_of, location_of, same_but_for_location
from dpassay.trace.replay.replaying import released_in
from dpassay.trace.replay.shifting import close
from dpassay.trace.replay.solving import Wanted
from dpassay.trace.watch.deciding import COMPARISONS
from dpassay.trace.watch.follow import difference, moved
from dpassay.trace.watch.record import DrawRecord, Node, NoisyComparison, RecordedRun, distinct
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

MOST_PATHS, MOST_LEARNED, SETTLED = 300, 600, 100  # paths of an input; runs to learn them; last runs with none new
ROUNDS = 60  # how often the search for a path's shift is repeated
_RANKS = ("argmax", "argmin", "argsort")
_ORDERS = ("greater", "greater_equal", "less", "less_equal")


@dataclass(frozen=True, eq=False)
class Shift:
    """How the numbers of a path are shifted, what that costs, and the laws of all draws for both inputs."""

    by: dict[int, float]  # the number's position in the run, and d
    epsilon: float
    laws: tuple[Laws, Laws]
    released: tuple[int, ...]  # nodes whose values are in the output


@dataclass
class Paths:
    """For both inputs, the shift of each path that was seen, and the most that one may cost."""

    most: float
    shifts: tuple[dict[Any, Shift], dict[Any, Shift]] = field(default_factory=lambda: ({}, {}))

    @property
    def epsilon(self) -> float:
        """The cost of the most expensive path."""
        return max(one.epsilon for side in self.shifts for one in side.values())

    def __str__(self) -> str:
        kinds = sorted(
            {f"{kind}({scale:.6g})" for side in self.shifts for one in side.values() for kind, scale in _noises(one)}
        )
        many = len(self.shifts[0].keys() | self.shifts[1].keys())
        ways = "1 path" if many == 1 else f"{many} paths"
        return f"comparisons of numbers with noise ({', '.join(kinds)}): {ways} through the code"


def path_of(run: RecordedRun) -> tuple[Any, ...]:
    """The answers to the comparisons of a run, in order."""
    return tuple(one.way for one in run.comparisons)


def learned(tracer: Tracer, pair: tuple[Any, Any], most: float) -> Paths | None:
    """The paths of both inputs with their shifts; None if there are too many, or one costs more than `most`."""
    found = Paths(most)
    with tracer.watching():
        for at, x in enumerate(pair):
            known, last = found.shifts[at], 0
            for k in range(MOST_LEARNED):
                run = tracer.run(x)
                path = path_of(run)
                if path in known:
                    if k - last >= SETTLED:
                        break
                    continue
                shift = _shift(tracer, run, pair[1 - at])
                if shift is None or not shift.epsilon <= most or len(known) >= MOST_PATHS:
                    return None
                known[path], last = shift, k
    return found


def holds_on(tracer: Tracer, pair: tuple[Any, Any], at: int, noises: Sequence[Any], paths: Paths) -> bool:
    """Whether shifts give the same output on the paths of these draws too, such as draws of much more noise."""
    for k, noise in enumerate(noises):
        run = tracer.run(pair[at], noise, key=(tracer.seed, 8, k))
        run.key, path = (tracer.seed, 8, k), path_of(run)
        if path not in paths.shifts[at]:
            shift = _shift(tracer, run, pair[1 - at])
            if shift is None or not shift.epsilon <= paths.most:
                return False
            paths.shifts[at][path] = shift
        if judged(tracer, pair, at, run, paths):
            return False
    return True


def judged(tracer: Tracer, pair: tuple[Any, Any], at: int, run: RecordedRun, paths: Paths) -> str | None:
    """What differs, if anything, when y gets the shifted noise of a run of x; None on an unknown path."""
    shift = paths.shifts[at].get(path_of(run))
    if shift is None:
        return None
    if laws_of(run, shift.by) != shift.laws[0]:
        return "which noise is drawn depends on more than what was compared"
    exact = {k: run.nodes[k].exact for k in shift.released}
    try:
        noise = _shifted(run, shift)
        other = tracer.run(pair[1 - at], noise, forced={k: v for k, v in exact.items() if v is not None}, key=run.key)
    except WatchedTooLong:
        raise
    except MechanismError as error:
        return f"a replay with other noise raised an error: {error}"
    if path_of(other) != path_of(run) or laws_of(other, shift.by) != shift.laws[1]:
        return "the code uses the shifted noise differently for the two inputs"
    if not _is_shifted(run, other, noise, shift.by):
        return "the code cannot draw the shifted noise"
    if not all(k < len(other.nodes) and close(run.nodes[k], other.nodes[k]) for k in shift.released):
        return "a sum with noise is different with the shifted noise"
    where = run.reading.difference(other.reading)
    return "" if where is None else f"{where} differs although all comparisons are the same"


def _shift(tracer: Tracer, run: RecordedRun, y: Any) -> Shift | None:
    """The cheapest shift with which y takes the path of a run of x, found by trying and adding what was different."""
    if any(law_of(draw) is None and not draw.parameters for draw in run.draws):
        return None  # what they depend on is not recorded
    by: dict[int, float] = {}
    laws = (laws_of(run, ()), laws_of(run, ()))
    wanted = path_of(run)
    for _ in range(ROUNDS):
        try:
            other = tracer.run(y, _shifted(run, Shift(by, 0.0, laws, ())))
        except MechanismError:
            return None
        own, its = laws_of(run, by), laws_of(other, by)
        there = path_of(other) == wanted
        rows = list(_kept(run, other))
        released: tuple[int, ...] = ()
        if there:
            released = _released(run)
            if not same_but_for_location(own, its) or any(k >= len(other.nodes) for k in released):
                return None
            equal = [_linear(run, run.nodes[k], other, other.nodes[k]) for k in released]
            if None in equal:
                return None
            rows += [(c, gap, "=") for one in equal if one is not None for c, gap in one]
        laws = own, (its if len(its) == len(own) else own)
        solved = cheapest(run, rows)
        if solved is None:
            return None
        if there and all(math.isclose(solved[0].get(k, 0.0), by.get(k, 0.0), abs_tol=1e-12) for k in {*solved[0], *by}):
            return Shift(by, solved[1], (own, its), released)
        by = solved[0]
    return None


def _kept(run: RecordedRun, other: RecordedRun) -> Iterator[Row]:
    """What a shift must satisfy so that y gets the answers of x in all comparisons up to the first that differs."""
    for one, its in zip(run.comparisons, other.comparisons, strict=False):
        if (one.place, one.name, one.answers.shape) != (its.place, its.name, its.answers.shape):
            return
        if one.numbers is None or its.numbers is None:
            if one.way != its.way:
                return
            continue
        found = _linear(run, _differences(one, one), other, _differences(its, one))
        if found is None:
            return
        for (coefficients, gap), answer in zip(found, _answers(one), strict=True):
            if answer:
                yield coefficients, gap, answer
        if one.way != its.way:
            return


def _differences(one: NoisyComparison, wanted: NoisyComparison) -> Node | None:
    """What must be above 0, or compare with 0 as answered, to give the wanted answers."""
    node = one.numbers
    if node is None or one.name not in _RANKS:
        return node
    order, many = wanted.answers, np.arange(node.offset.size)
    if one.name != "argsort":  # the best against each of the others
        best = np.full(many.size - 1, int(order[0]))
        others = np.delete(many, int(order[0]))
        above, below = (best, others) if one.name == "argmax" else (others, best)
    else:
        above, below = order[1:], order[:-1]
    return difference([moved(node, lambda part: part[above]), moved(node, lambda part: part[below])], [None, None])


def _answers(one: NoisyComparison) -> list[str]:
    """For each number, how the difference for y must compare with that for x; empty if there is no condition."""
    if one.numbers is not None and one.name in _RANKS:
        return ["≥"] * (one.numbers.offset.size - 1)
    words = {name: ("≥", "≤") if name.startswith("greater") else ("≤", "≥") for name in _ORDERS}
    words |= {"equal": ("=", ""), "not_equal": ("", "=")}
    yes, no = words[one.name]
    return [yes if answer else no for answer in one.answers.reshape(-1).tolist()]


def _linear(
    run: RecordedRun, mine: Node | None, other: RecordedRun, its: Node | None
) -> list[tuple[dict[int, float], float]] | None:
    """For each number of two nodes: the factors of the noise in it, and how much more of it y needs to reach x.

    None if they do not have the same noise.
    """
    if mine is None or its is None or mine.offset.shape != its.offset.shape or not mine.offset.size:
        return None
    found = []
    sides = [(list(_parts(run, mine)), run), (list(_parts(other, its)), other)]
    for (own, base), (others, its_base) in zip(sides[0][0], sides[1][0], strict=True):
        same = own.keys() == others.keys() and all(math.isclose(own[k], others[k], rel_tol=1e-9) for k in own)
        if not same or not math.isfinite(base - its_base):
            return None
        found.append((own, base - its_base))
    return found


def _parts(run: RecordedRun, node: Node) -> Iterator[tuple[dict[int, float], float]]:
    """For each number of a node: the factors of its noise by position, and what it is without that noise."""
    base = np.array(node.offset, dtype=float).reshape(-1)
    factors: list[dict[int, float]] = [{} for _ in range(base.size)]
    for index, factor in node.terms:
        places = run.relative(index).reshape(-1).tolist()
        located = node.of_numbers(location_of, index).reshape(-1)
        for at, (place, times) in enumerate(zip(places, np.reshape(factor, -1).tolist(), strict=True)):
            if place != -1 and times:
                factors[at][place] = factors[at].get(place, 0.0) + times
                base[at] += times * located[at]
    yield from zip(factors, base.tolist(), strict=True)


def _released(run: RecordedRun) -> tuple[int, ...]:
    """The sums with noise that are output, or that the output is made from, or that have uses besides comparisons."""
    sides = [one.numbers for one in run.comparisons if one.numbers is not None]
    compared = {k for node in sides for own, _ in _parts(run, node) for k in own}
    shown, needed, going_on, found = set(released_in(run)), set[int](), set[int](), []
    numbered = {id(node): k for k, node in enumerate(run.nodes)}
    for k, node in reversed(list(enumerate(run.nodes))):
        hides, parents = _hides(node), {id(parent) for parent in node.parents}
        in_output = k in shown or id(node) in needed or node in run.used
        if in_output and not hides and not _is_comparison(node):
            needed |= parents
        if in_output:  # what 0 was added to is the same number
            shown -= {numbered.get(id(one), -1) for one in node.parents if _equal(one, node)}
        numbers = {place for own, _ in _parts(run, node) for place in own}
        last = id(node) not in going_on and node.added and hides and not numbers & compared
        if last or (in_output and hides):
            found.append(k)
        if last or in_output or id(node) in going_on:
            going_on |= parents
    return tuple(sorted(found))


def _equal(one: Node, other: Node) -> bool:
    """Whether two nodes have the same numbers, to the last bit."""
    return one.exact is not None and other.exact is not None and np.array_equal(one.exact, other.exact)


def _is_comparison(node: Node) -> bool:
    """Whether it consists of answers, which are preserved if the comparisons are."""
    return any(getattr(draw.formula, "function", None) in COMPARISONS for draw in node.draws)


def _hides(node: Node) -> bool:
    kinds = set(distinct(node_law(node).kind).tolist()) - {"none"}
    return bool(kinds) and kinds <= set(NOISE_KINDS)


def _shifted(run: RecordedRun, shift: Shift) -> dict[int, Any]:
    """The draws of a run with their numbers shifted, around the locations that the other input has."""
    wanted, where = Wanted(run), numbers_of(run)
    for k, by in shift.by.items():
        draw, at = where[k]
        value = np.array([float(np.reshape(draw.values, -1)[at]) + by])
        wanted.numbers((draw,), np.array([draw.start + at]), value)
    noise = wanted.noise()
    for k, (mine, its) in enumerate(zip(*shift.laws, strict=False)):
        if k in noise and mine[:3] == its[:3] and mine.location != its.location:
            noise[k] = noise[k] + np.reshape(np.frombuffer(its.location) - np.frombuffer(mine.location), mine.shape)
    return noise


def _is_shifted(run: RecordedRun, other: RecordedRun, noise: dict[int, Any], by: dict[int, float]) -> bool:
    """Whether the other run drew this noise, and its numbers are those of the first, shifted as stated."""
    if any(not np.allclose(draw.values, noise[k], rtol=1e-9, atol=0) for k, draw in enumerate(other.draws)):
        return False
    mine, its = numbers_of(run), numbers_of(other)
    return all(
        k in its and math.isclose(_noise(*its[k]), _noise(*mine[k]) + d, rel_tol=1e-6, abs_tol=1e-9)
        for k, d in by.items()
    )


def _noise(draw: DrawRecord, at: int) -> float:
    """A drawn number without its location."""
    return float(np.reshape(draw.values, -1)[at]) - float(np.reshape(location_of(draw), -1)[at])


def _noises(shift: Shift) -> set[tuple[str, float]]:
    known = [one for one in shift.laws[0] if one.law and one.law[0] in NOISE_KINDS]
    return {(one.law[0], float(np.frombuffer(one.law[1])[0])) for one in known}
