"""Sums that share drawn numbers: one constant shift of the noise makes all of them equal.

The sums of an input are h + A·z, where A is the same for both inputs and has independent rows. With A·d = h(x) − h(y),
noise z + d gives y the sums that z gives x, and what that loses is the loss of the shift d. Many d may do; here it is
the shortest in units of the noise. Trials check the rest: docs/proofs/coupling.md, point 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from dpassay.core.functions.quadratic import lengths
from dpassay.core.numbers import ZERO, Number, real, sqrt, up
from dpassay.errors import MechanismError
from dpassay.trace.laws.formulas import covariance_of
from dpassay.trace.laws.losses import Coordinate, PairLoss, composed_loss
from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.natural.failing import WatchedTooLong
from dpassay.trace.replay.draw_laws import Laws, laws_of, location_of, same_but_for_location
from dpassay.trace.replay.replaying import mark_ancestors, released_in, values_of
from dpassay.trace.replay.shifting import still_different
from dpassay.trace.watch.record import Array, DrawRecord, Node, RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

KINDS = ("gaussian", "laplace")
MOST_SUMS, MOST_NUMBERS, MOST_NODES = 64, 400, 400  # of numbers made equal, of drawn ones, of arrays of sums
NEW = 1e-6  # of a row's length: a row that has less outside the span of the others follows from them
DUST = 1e-13  # of the largest shift: a smaller one is a rounding error of the solution
FAR = 10.0  # standard deviations, for which rounding is allowed
ROUNDING = {8: 2.0**-40, 4: 2.0**-21}  # of a sum, relative to its parts, by the bytes of a drawn number
MOST_UNEVEN = 1e8  # the largest variance of correlated numbers in any direction over the smallest

Terms = tuple[tuple[Array, Array], ...]  # the drawn numbers of a sum, by position in the run, and their factors


class NoiseBlock(NamedTuple):
    """Drawn numbers that are independent of all others, by their columns, with their covariance.

    They are distributed as `root` times independent numbers of variance 1, up to rounding.
    """

    kind: str
    columns: Array
    covariance: list[list[Number]]
    root: Array


@dataclass(frozen=True, eq=False)
class DrawnNoise:
    """The numbers of a run that may be shifted: the column of each position, and the blocks that they form."""

    column: Array
    blocks: tuple[NoiseBlock, ...]
    root: Array  # the noise is this matrix times independent numbers of variance 1
    bytes: int

    @classmethod
    def of(cls, run: RecordedRun) -> Self | None:
        """The Gaussian and Laplace numbers of a run; None if there are none, or too many."""
        blocks, column, many = list[NoiseBlock](), np.full(_end(run), -1), 0
        for draw in run.draws:
            found = list(_blocks_of(draw, many))
            if found and (many := many + draw.values.size) <= MOST_NUMBERS:
                at = draw.start - run.first
                column[at : at + draw.values.size] = np.arange(many - draw.values.size, many)
                blocks += found
        sizes = {draw.values.dtype.itemsize for draw in run.draws if draw.values.dtype.kind == "f"}
        if not 0 < many <= MOST_NUMBERS or min(sizes) not in ROUNDING:
            return None
        root = np.zeros((many, many))
        for one in blocks:
            root[np.ix_(one.columns, one.columns)] = one.root
        return cls(column, tuple(blocks), root, min(sizes))

    def rows(self, terms: Terms, size: int) -> Array | None:
        """The factors of each number in each sum; None if a sum has other noise, or none."""
        rows = np.zeros((size, len(self.root)))
        for positions, factors in terms:
            at, by = positions.reshape(-1), factors.reshape(-1)
            used = (at != -1) & (by != 0)
            inside = (at[used] >= 0) & (at[used] < self.column.size)
            columns = self.column[np.where(inside, at[used], 0)]
            if not np.isfinite(by).all() or not inside.all() or (columns < 0).any():
                return None
            np.add.at(rows, (np.nonzero(used)[0], columns), by[used])
        return rows if rows.any(axis=1).all() else None


def _end(run: RecordedRun) -> int:
    return max((draw.start - run.first + max(draw.values.size, 1) for draw in run.draws), default=0)


def _blocks_of(draw: DrawRecord, before: int) -> Iterator[NoiseBlock]:
    law, rows = law_of(draw), covariance_of(draw)
    if draw.values.dtype.kind != "f":
        return
    if law is not None and law.kind in KINDS and not law.share:
        scale = np.abs(law.scale)
        if np.isfinite(scale).all() and (scale > 0).all():
            for k, one in enumerate(scale.tolist()):
                yield NoiseBlock(law.kind, np.array([before + k]), [[real(one) ** 2]], np.array([[one]]))
    elif law is None and rows is not None:
        ends = np.linalg.eigvalsh(rows[1])
        if ends[0] > 0 and ends[-1] <= MOST_UNEVEN * ends[0]:
            exact, root = [[real(one) for one in row] for row in rows[1].tolist()], np.linalg.cholesky(rows[1])
            for k in range(0, draw.values.size, len(ends)):
                yield NoiseBlock("gaussian", before + k + np.arange(len(ends)), exact, root)


@dataclass(frozen=True, eq=False)
class SharedSums:
    """An array of sums in the runs of both inputs: its noise, the difference of what it hides, and of rounding."""

    node: int
    terms: Terms
    rows: Array
    gap: Array
    allowed: Array

    @classmethod
    def of(cls, noise: DrawnNoise, runs: tuple[RecordedRun, RecordedRun], number: int) -> Self | None:
        """The sums of a node; None if they do not have the same noise for both inputs."""
        mine, its = (run.nodes[number] for run in runs)
        terms = terms_of(runs[0], mine)
        if not 0 < mine.offset.size <= MOST_SUMS or not equal_terms(terms, terms_of(runs[1], its)):
            return None
        rows = noise.rows(terms, mine.offset.size)
        if rows is None:
            return None
        places = [_locations(noise, run) for run in runs]
        centres = [node.offset.reshape(-1) + rows @ place for node, place in zip((mine, its), places, strict=True)]
        parts = np.abs(mine.offset.reshape(-1)) + np.abs(its.offset.reshape(-1))
        parts = parts + np.abs(rows) @ (sum(map(np.abs, places)) + FAR * np.linalg.norm(noise.root, axis=1))
        gap = centres[0] - centres[1]
        return cls(number, terms, rows, gap, ROUNDING[noise.bytes] * parts) if np.isfinite(gap).all() else None


def terms_of(run: RecordedRun, node: Node) -> Terms:
    """The drawn numbers of a node, by their positions in the run."""
    return tuple((run.relative(index), factor) for index, factor in node.terms)


def equal_terms(one: Terms, other: Terms) -> bool:
    """Whether sums have the same noise with the same factors, to the last bit."""
    return len(one) == len(other) and all(
        np.array_equal(mine, its) for both in zip(one, other, strict=True) for mine, its in zip(*both, strict=True)
    )


def _locations(noise: DrawnNoise, run: RecordedRun) -> Array:
    found = np.zeros(len(noise.root))
    for draw in run.draws:
        at = noise.column[draw.start - run.first : draw.start - run.first + draw.values.size]
        if at.size and at[0] >= 0:
            found[at] = location_of(draw)
    return found


@dataclass(frozen=True, eq=False)
class SharedShift:
    """How much more noise y needs than x, for each draw, and what that loses."""

    sums: tuple[SharedSums, ...]
    shift: dict[int, Array]
    laws: tuple[Laws, Laws]
    loss: PairLoss
    kinds: tuple[str, ...]
    distance: float  # the length of the shift in units of the noise

    def __str__(self) -> str:
        many, kinds = sum(one.allowed.size for one in self.sums), " and ".join(self.kinds)
        apart = f", {self.distance:.6g} standard deviations apart" if self.kinds == ("gaussian",) else ""
        sums = f"1 sum with {kinds} noise" if many == 1 else f"{many:,} sums that share {kinds} noise"
        return sums + apart

    def judged(self, tracer: Tracer, pair: tuple[Any, Any], at: int, run: RecordedRun, far: float = 1.0) -> str:
        """What differs, if anything, when y gets the shifted noise of a run of x; with `at` = 1, x that of y."""
        laws = self.laws[::-1] if at else self.laws
        if laws_of(run) != laws[0] or not self._in(run):
            return "how much the noise hides depends on other noise"
        noise, exact = self._shifted(run, at), {one.node: run.nodes[one.node].exact for one in self.sums}
        try:
            forced = {k: values for k, values in exact.items() if values is not None}
            other = tracer.run(pair[1 - at], noise, forced=forced, key=run.key)
        except WatchedTooLong:
            raise
        except MechanismError as error:
            return f"a replay with other noise raised an error: {error}"
        if laws_of(other) != laws[1] or not self._in(other):
            return "the code uses the same noise differently for the two inputs"
        if any(not np.array_equal(draw.values, noise[k]) for k, draw in enumerate(other.draws)):
            return "the code cannot draw the shifted noise"
        for one in self.sums:
            computed, wanted = other.nodes[one.node].computed, exact[one.node]
            if computed is None or wanted is None or computed.shape != wanted.shape:
                return "the code uses the same noise differently for the two inputs"
            if not (np.abs(computed - wanted).reshape(-1) <= far * one.allowed).all():
                return "a sum with noise is different with the shifted noise"
        where = run.reading.difference(other.reading)
        return "" if where is None else still_different(where, run)

    def _in(self, run: RecordedRun) -> bool:
        return all(
            one.node < len(run.nodes) and equal_terms(one.terms, terms_of(run, run.nodes[one.node]))
            for one in self.sums
        )

    def _shifted(self, run: RecordedRun, at: int) -> dict[int, Array]:
        """The draws of a run with their numbers shifted, around the locations that the other input has."""
        noise = values_of(run)
        for k, (draw, mine, its) in enumerate(zip(run.draws, *self.laws, strict=True)):
            by = self.shift.get(k, np.zeros(draw.shape))
            if mine.location != its.location:
                by = by + np.reshape(np.frombuffer(its.location) - np.frombuffer(mine.location), draw.shape)
            if by.any():
                noise[k] = np.asarray(draw.values + (-by if at else by), dtype=draw.values.dtype)
        return noise


def shared_noises(tracer: Tracer, pair: tuple[Any, Any], run: RecordedRun) -> Iterator[SharedShift]:
    """The shift that makes the last sums equal, and the one for the first, from which others may be computed."""
    other = tracer.run(pair[1], values_of(run))
    laws, noise = (laws_of(run), laws_of(other)), DrawnNoise.of(run)
    if noise is None or not same_but_for_location(*laws):
        return
    if any(law_of(draw) is None and not draw.parameters for draw in run.draws):
        return  # what they depend on is not recorded
    shown, found = released_in(run) & released_in(other), dict[int, SharedSums]()
    for k in range(min(len(run.nodes), len(other.nodes))):
        one = SharedSums.of(noise, (run, other), k)
        if one is not None and (run.nodes[k].added or k in shown or one.gap.any()):
            found[k] = one
        if len(found) > MOST_NODES:
            return
    tried = set[tuple[int, ...]]()
    for numbers in (_last(run, found.keys(), shown), list(found)):
        sums = _independent(noise, [found[k] for k in numbers])
        if not sums or tuple(one.node for one in sums) in tried:
            continue
        tried.add(tuple(one.node for one in sums))
        if (solved := _solved(run, noise, sums, laws)) is not None:
            yield solved


def _last(run: RecordedRun, numbers: Any, shown: frozenset[int]) -> list[int]:
    """The sums that are in the output, and those that are in no other sum."""
    going_on, found = set[int](), list[int]()
    for k in sorted(numbers, reverse=True):
        if k in shown or id(run.nodes[k]) not in going_on:
            found.append(k)
        mark_ancestors(run.nodes[k], going_on)
    return found[::-1]


def _independent(noise: DrawnNoise, sums: Sequence[SharedSums]) -> list[SharedSums]:
    """The sums in their order, without those whose noise is that of some before: the code computes them from those."""
    span, kept = np.zeros((0, len(noise.root))), list[SharedSums]()
    for one in sums:
        more = span
        for row in one.rows @ noise.root:
            size = float(np.linalg.norm(row))
            if not 0 < size < math.inf:
                break
            left = row / size
            for _ in range(2):
                left = left - more.T @ (more @ left)
            if np.linalg.norm(left) < NEW or len(more) >= MOST_SUMS:
                break
            more = np.vstack([more, left / np.linalg.norm(left)])
        else:
            span = more
            kept.append(one)
    return kept


def _solved(
    run: RecordedRun, noise: DrawnNoise, sums: Sequence[SharedSums], laws: tuple[Laws, Laws]
) -> SharedShift | None:
    """The shortest shift in units of the noise; None if its loss is not known."""
    rows, gap = np.vstack([one.rows for one in sums]), np.concatenate([one.gap for one in sums])
    steps = np.linalg.lstsq(rows @ noise.root, gap, rcond=None)[0]
    shift = noise.root @ steps
    spread, used = np.linalg.norm(noise.root, axis=1), [one for one in noise.blocks if rows[:, one.columns].any()]
    least = DUST * np.abs(shift / spread).max() * spread
    shift = np.array([float(f"{one:.14g}") for one in np.where(np.abs(shift) > least, shift, 0.0).tolist()])
    loss = shift_loss(used, shift, rows, np.concatenate([one.allowed for one in sums]))
    if loss is None:
        return None
    by = {}
    for k, draw in enumerate(run.draws):
        at = noise.column[draw.start - run.first : draw.start - run.first + draw.values.size]
        if at.size and at[0] >= 0:
            by[k] = shift[at].reshape(draw.shape)
    kinds = tuple(sorted({one.kind for one in used}))
    return SharedShift(tuple(sums), by, laws, loss, kinds, float(np.linalg.norm(steps)))


def shift_loss(blocks: Sequence[NoiseBlock], shift: Array, rows: Array, allowed: Array) -> PairLoss | None:
    """The loss of noise that is shifted by this, and by any more that changes the sums by no more than allowed.

    With M = AKAᵀ for a covariance K, the shift e = KAᵀM⁻¹r changes the sums by r, and its length in units of the noise
    is √(rᵀM⁻¹r) ≤ Σ |rᵢ| √(M⁻¹)ᵢᵢ.
    """
    reach = lengths(_covariance(blocks, rows), np.eye(len(rows)).tolist())
    parts = [lengths(one.covariance, [shift[one.columns].tolist()]) for one in blocks]
    if reach is None or None in parts:
        return None
    more = sum((real(by) * one for by, one in zip(allowed.tolist(), reach, strict=True)), ZERO)
    own = [one[0] for one in parts if one is not None]
    squares = [one**2 for one, block in zip(own, blocks, strict=True) if block.kind == "gaussian"]
    apart = [one + more for one, block in zip(own, blocks, strict=True) if block.kind != "gaussian"]
    coordinates = [Coordinate("laplace", (0.0, _above(one)), (1.0, 1.0)) for one in apart]
    if squares:
        coordinates.append(Coordinate("gaussian", (0.0, _above(sqrt(sum(squares, ZERO)) + more)), (1.0, 1.0)))
    return composed_loss(coordinates)


def _above(value: Number) -> float:
    """A double whose decimals are above a number too."""
    return math.nextafter(up(value), math.inf)


def _covariance(blocks: Sequence[NoiseBlock], rows: Array) -> list[list[Number]]:
    """The covariance of the sums; its upper triangle."""
    many = len(rows)
    found = [[ZERO] * many for _ in range(many)]
    for one in blocks:
        inside = [[real(factor) for factor in row] for row in rows[:, one.columns].tolist()]
        held = [i for i in range(many) if rows[i, one.columns].any()]
        for j in held:
            along = [sum((a * b for a, b in zip(row, inside[j], strict=True)), ZERO) for row in one.covariance]
            for i in held:
                if i <= j:
                    found[i][j] = found[i][j] + sum((a * b for a, b in zip(inside[i], along, strict=True)), ZERO)
    return found
