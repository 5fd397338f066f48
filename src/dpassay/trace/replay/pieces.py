"""Noise with a random branch or sign: on each path through the code, the released number has a piece of its density.

`x + (e if u < 0.7 else -e)`, and an inverse distribution function written with `if`. The pieces of y that give a number
of x are drawn with the probabilities that y's own runs have, given that number: docs/proofs/coupling.md, point 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from dpassay.core.numbers import INFINITY, ZERO, Number, exp, log, maximum, number
from dpassay.errors import MechanismError
from dpassay.trace.laws.formulas import GRID, Law, at_uniform, bases, recognised, source_law
from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.natural.failing import WatchedTooLong
from dpassay.trace.replay.solving import Wanted, quantile_of
from dpassay.trace.watch.record import Array, DrawRecord, Node, NoisyComparison, RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

MOST_LEARNED, MOST_SITES = 200, 40  # runs of an input to see all pieces; released numbers
_ROUNDING = 1e-9  # relative, of a released number and of the probabilities of all pieces together
_GREATER = {"greater": True, "greater_equal": True, "less": False, "less_equal": False}

Span = tuple[float, float]  # a part of (0, 1)


@dataclass(frozen=True)
class Half:
    """weight · the density of centre + scale · e, for an exponential number e; a scale below 0 falls to the left."""

    weight: float
    centre: float
    scale: float


@dataclass(frozen=True)
class Piece:
    """One path: the intervals of its coins, and the law of the released number."""

    coins: tuple[tuple[int, Span], ...]  # by the draw's number: the part of (0, 1) in which its uniform number lies
    base: int  # the draw that the noise is made from
    span: Span  # the part of (0, 1) in which that lies; (0, 1) if it was not compared
    law: tuple[str, float, float, bool]  # of the noise, if it lies there: kind, location, scale, falling
    offset: float
    factor: float

    @property
    def weight(self) -> float:
        """The probability of the path."""
        return math.prod(high - low for _, (low, high) in self.coins) * (self.span[1] - self.span[0])

    @property
    def halves(self) -> tuple[Half, ...]:
        """The density of the released number, times the probability of the path."""
        kind, location, scale, _ = self.law
        centre, scale = self.offset + self.factor * location, self.factor * scale
        if kind == "exponential":
            return (Half(self.weight, centre, scale),)
        return (Half(self.weight / 2, centre, scale), Half(self.weight / 2, centre, -scale))


@dataclass(frozen=True, eq=False)
class Site:
    """A released number of a run: its node, the answers that led to it, and its piece."""

    node: int
    path: tuple[Any, ...]
    piece: Piece


@dataclass
class Pieces:
    """For both inputs, the pieces of each released number."""

    sides: tuple[list[dict[Any, Piece]], list[dict[Any, Piece]]] = field(default_factory=lambda: ([], []))
    runs: dict[int, RecordedRun] = field(default_factory=dict, init=False)  # one of each input
    places: dict[Any, tuple[int, ...]] = field(default_factory=dict, init=False)  # of the nodes, by the paths of a run

    @property
    def epsilon(self) -> Number:
        """The loss of all released numbers together, in the worse direction."""
        x, y = self.sides
        return maximum(*(sum(map(_loss, one, other), ZERO) for one, other in ((x, y), (y, x))))

    def __str__(self) -> str:
        most = max(len(one) for side in self.sides for one in side)
        kinds = {f"{one.law[0]}({abs(one.factor * one.law[2]):.6g})" for one in self.sides[0][0].values()}
        many = "1 number" if len(self.sides[0]) == 1 else f"{len(self.sides[0])} numbers"
        return f"{many} with noise in {most} pieces ({', '.join(sorted(kinds))})"

    def judged(self, tracer: Tracer, pair: tuple[Any, Any], at: int, run: RecordedRun) -> str:
        """What differs, if anything, when y gets noise that makes it release the same numbers as a run of x."""
        sites = sites_of(run)
        if sites is None or len(sites) != len(self.sides[at]):
            return "the noise is made differently than in other runs"
        if any(table.get(one.path) != one.piece for table, one in zip(self.sides[at], sites, strict=True)):
            return "how the noise is made depends on more than what was compared"
        rng = np.random.Generator(np.random.PCG64([*(run.key or ()), 7, at]))
        exact = [_exact(run, one) for one in sites]
        values = [float(one.reshape(-1)[0]) for one in exact]
        paths = [_drawn_given(table, v, rng) for table, v in zip(self.sides[1 - at], values, strict=True)]
        if None in paths:
            return "the other input cannot release this number"
        wanted = [(path, table[path]) for table, path in zip(self.sides[1 - at], paths, strict=True)]
        try:
            if (begun := self.runs.get(1 - at)) is None:
                begun = self.runs[1 - at] = tracer.run(pair[1 - at], key=run.key)
            noise = _noise(begun, [one for _, one in wanted], values, rng)
            where = (1 - at, *paths)
            if where not in self.places:
                found = sites_of(tracer.run(pair[1 - at], noise, key=run.key)) or []
                self.places[where] = tuple(one.node for one in found)
            forced = dict(zip(self.places[where], exact, strict=False))
            other = tracer.run(pair[1 - at], noise, forced=forced, key=run.key)
        except WatchedTooLong:
            raise
        except MechanismError as error:
            return f"a replay with other noise raised an error: {error}"
        its = sites_of(other) or []
        if [(one.path, one.piece) for one in its] != wanted or self.places[where] != tuple(one.node for one in its):
            return "the code uses noise of the same size differently for the two inputs"
        if not all(_close(other.nodes[one.node], v) for one, v in zip(its, values, strict=True)):
            return "a number with noise is not what its formula says"
        differs = run.reading.difference(other.reading)
        return "" if differs is None else f"{differs} differs although all numbers with noise are the same"


def _exact(run: RecordedRun, site: Site) -> Array:
    """The released number, to the last bit."""
    node = run.nodes[site.node]
    return node.value if node.exact is None else node.exact


def learned_pieces(tracer: Tracer, pair: tuple[Any, Any]) -> Pieces | None:
    """The pieces of both inputs; None if the noise has another form, or if some pieces were not seen."""
    found = Pieces()
    with tracer.watching():
        for at, x in enumerate(pair):
            tables = found.sides[at]
            for _ in range(MOST_LEARNED):
                sites = sites_of(tracer.run(x))
                if not sites or (tables and len(sites) != len(tables)):
                    return None
                tables += [{} for _ in sites] if not tables else []
                for table, one in zip(tables, sites, strict=True):
                    if table.setdefault(one.path, one.piece) != one.piece:
                        return None
                if all(abs(sum(one.weight for one in table.values()) - 1) <= _ROUNDING for table in tables):
                    break
            else:
                return None
    same = len(found.sides[0]) == len(found.sides[1])
    return found if same and any(len(table) > 1 for side in found.sides for table in side) else None


def sites_of(run: RecordedRun) -> list[Site] | None:
    """The released numbers of a run, each made from one drawn number and coins of its own; None if there are others.

    Other comparisons are not part of a path: if they mattered, the pieces or the outputs would differ.
    """
    if not run.draws or any(draw.values.size != 1 for draw in run.draws):
        return None
    starts = {draw.start: k for k, draw in enumerate(run.draws)}
    spans: dict[int, Span] = {}
    answers: list[tuple[int, Any]] = []
    for one in run.comparisons:
        if (found := _halved(one, starts, run.draws, spans)) is not None:
            spans[found[0]] = found[1]
            answers.append((found[0], one.way))
    ends = _sums(run, spans)
    if not ends or len(ends) > MOST_SITES or not ends.keys() | spans.keys() >= set(range(len(run.draws))):
        return None
    owner = {k: _owner(k, ends) for k in range(len(run.draws))}
    sites = []
    for base, (end, law) in sorted(ends.items()):
        coins = tuple((k, span) for k, span in sorted(spans.items()) if owner[k] == base and k not in ends)
        node, path = run.nodes[end], tuple(way for k, way in answers if owner[k] == base)
        offset, factor = float(node.offset.reshape(-1)[0]), float(node.factor.reshape(-1)[0])
        sites.append(Site(end, path, Piece(coins, base, spans.get(base, (0.0, 1.0)), law, offset, factor)))
    return sites


NumberLaw = tuple[str, float, float, bool]  # kind, location, scale, falling


def _sums(run: RecordedRun, spans: dict[int, Span]) -> dict[int, tuple[int, NumberLaw]]:
    """For each draw, the last sum of it and others whose law is known: the node, and the law of the noise."""
    found: dict[int, tuple[int, NumberLaw]] = {}
    for k, node in reversed(list(enumerate(run.nodes))):
        if not (node.added and node.alone and node.offset.size == 1 and len(node.draws) == 1 and node.factor.all()):
            continue
        base = _base(run, node)
        if base is None or base in found:
            continue
        law = _law_on(node.draws[0], spans.get(base))
        if law is not None:
            found[base] = k, law
    return found


def _base(run: RecordedRun, node: Node) -> int | None:
    """The number of the draw that a sum's noise is made from; None if there are several."""
    index = {int(one) for base in bases(node) for one in np.reshape(base, -1) if one >= run.first}
    found = [k for k, draw in enumerate(run.draws) if draw.start in index]
    return found[0] if len(index) == len(found) == 1 else None


def _owner(k: int, ends: dict[int, Any]) -> int:
    """The draw whose sum depends on a coin: the next one if the run begins with a coin, otherwise the previous one."""
    order = sorted(ends)
    near = [one for one in order if (one >= k if order[0] > 0 else one <= k)]
    return (near[0] if order[0] > 0 else near[-1]) if near else order[-1]


def _halved(
    one: NoisyComparison, starts: dict[int, int], draws: Sequence[DrawRecord], spans: dict[int, Span]
) -> tuple[int, Span] | None:
    """Which uniform number was compared with a constant, and in which part of (0, 1) it lies after that."""
    node = one.numbers
    if node is None or one.name not in _GREATER or node.offset.size != 1 or not node.alone or len(node.draws) != 1:
        return None
    k = starts.get(node.draws[0].start)
    law = None if k is None else source_law(draws[k])
    factor = float(node.factor.reshape(-1)[0])
    if k is None or law is None or law.kind != "uniform" or not factor:
        return None
    point = (-float(node.offset.reshape(-1)[0]) / factor - float(law.location[0])) / float(law.scale[0])
    above = bool(one.answers) == (_GREATER[one.name] == (factor * float(law.scale[0]) > 0))
    low, high = spans.get(k, (0.0, 1.0))
    return k, ((max(low, min(point, high)), high) if above else (low, min(high, max(point, low))))


def _law_on(draw: DrawRecord, span: Span | None) -> NumberLaw | None:
    """The law of a drawn number, given that the uniform number it is made from lies in a part of (0, 1)."""
    law: Law | None = None
    if span is None:
        law = law_of(draw)
    elif draw.formula is not None and span[0] < span[1]:
        got = at_uniform(draw, span[0] + (span[1] - span[0]) * GRID)
        law = None if got is None or not np.isfinite(got).all() else recognised(GRID, got, 0.0, (0.0, 1.0))
    if law is None or law.kind not in ("exponential", "laplace") or law.share or law.product:
        return None
    return law.kind, float(law.location[0]), float(law.scale[0]), law.falling


def _drawn_given(table: dict[Any, Piece], value: float, rng: np.random.Generator) -> Any:
    """A path, drawn with its probability given the released number; None if no path can give that number."""
    density = {path: sum(_density(half, value) for half in one.halves) for path, one in table.items()}
    whole = sum(density.values())
    if not whole > 0:
        return None
    share = rng.random() * whole
    for path, part in density.items():
        share -= part
        if share < 0:
            return path
    return max(density, key=lambda path: density[path])


def _density(half: Half, value: float) -> float:
    far = (value - half.centre) / half.scale
    return half.weight / abs(half.scale) * math.exp(-far) if far >= 0 else 0.0


def _noise(
    run: RecordedRun, pieces: Sequence[Piece], values: Sequence[float], rng: np.random.Generator
) -> dict[int, Any]:
    """Draws that make these pieces release these numbers; coins are redrawn within their intervals."""
    wanted, noise = Wanted(run), {k: np.array(draw.values) for k, draw in enumerate(run.draws)}

    def put(k: int, share: float) -> None:
        law = source_law(run.draws[k])
        if law is not None:
            noise[k] = np.reshape(law.location + law.scale * share, run.draws[k].shape)

    for piece, value in zip(pieces, values, strict=True):
        kind, location, scale, falling = piece.law
        size = np.array([(value - piece.offset) / piece.factor])
        law = Law(kind, np.array([location]), np.array([scale]), falling=falling)
        draw = run.draws[piece.base]
        if draw.distribution in ("random", "uniform", "random_sample", "rand", "sample", "ranf"):
            low, high = piece.span
            put(piece.base, low + (high - low) * float(quantile_of(law, size, np.array([0]))[0]))
        else:
            wanted.numbers((draw,), np.array([draw.start]), size)
            noise[piece.base] = wanted.noise()[piece.base]
        for k, (low, high) in piece.coins:
            put(k, low + (high - low) * (1 - rng.random()) if low > 0 else high * rng.random())
    return noise


def _close(node: Node, value: float) -> bool:
    found = float(node.value.reshape(-1)[0])
    return math.isclose(
        found, value, rel_tol=_ROUNDING, abs_tol=_ROUNDING * (1 + abs(float(node.offset.reshape(-1)[0])))
    )


def _loss(first: dict[Any, Piece], second: dict[Any, Piece]) -> Number:
    """An upper bound on the log-ratio of two densities, each a sum of exponentials between the ends of pieces.

    Terms that decay equally fast have a constant ratio, and that of two sums is at most the largest ratio of terms.
    """
    x, y = ([half for one in side.values() for half in one.halves] for side in (first, second))
    ends = sorted({half.centre for half in (*x, *y)})
    best = ZERO
    for low, high in zip([-math.inf, *ends], [*ends, math.inf], strict=True):
        middle = high - 1 if low == -math.inf else low + 1 if high == math.inf else (low + high) / 2
        mine, its = (_terms(side, middle) for side in (x, y))
        if not mine:
            continue
        near = [end for end in (low, high) if math.isfinite(end)]
        if mine.keys() <= its.keys():
            ratios = [_ratio(mine[scale], its[scale], near[0]) for scale in mine]
            best = maximum(best, *(log(one) for one in ratios))
            continue
        total = ZERO
        for scale, terms in mine.items():  # each against the whole of the other, of which any term is a part
            most = [_largest(terms, its[other], near, 1 / other - 1 / scale, high == math.inf) for other in its]
            total += min(most, key=lambda one: float(one.b), default=INFINITY)
        best = maximum(best, log(total) if total.b < INFINITY.a else INFINITY)
    return best


def _terms(halves: Sequence[Half], at: float) -> dict[float, list[Half]]:
    """The parts of a density that are not 0 at a point, by their scale."""
    found: dict[float, list[Half]] = {}
    for half in halves:
        if half.weight and (at - half.centre) / half.scale > 0:
            found.setdefault(half.scale, []).append(half)
    return found


def _ratio(terms: Sequence[Half], its: Sequence[Half], at: float) -> Number:
    parts = [
        sum(
            (
                number(one.weight / abs(one.scale)) * exp((number(one.centre) - number(at)) / number(one.scale))
                for one in side
            ),
            ZERO,
        )
        for side in (terms, its)
    ]
    return parts[0] / parts[1]


def _largest(terms: Sequence[Half], its: Sequence[Half], near: Sequence[float], rise: float, right: bool) -> Number:
    """The largest ratio of two terms between these ends, which is monotone there; ∞ if it has no bound."""
    if len(near) < 2 and (rise > 0) == right:
        return INFINITY
    return maximum(*(_ratio(terms, its, at) for at in near))
