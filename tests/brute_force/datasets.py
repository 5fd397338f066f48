"""Small data sets: the pairs of laws that neighbours give.

Sampling mixes the sums of the records that take part. A `Family` is marked as real where its pairs are data sets (or
limits of them). The others bound all data sets from above: by the joint convexity of δ(ε), it is largest if all records
but those that the sampling couples are known to take part.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb, inf

import numpy as np

from brute_force.cells import Family
from brute_force.laws import Array
from brute_force.records import NEARLY, Values, thinned

NUDGES = 40  # in random directions, of each pair that is looked at again


def _rows(*columns: Array) -> list[Array]:
    """All combinations of rows of arrays of vectors."""
    places = np.meshgrid(*(np.arange(len(c)) for c in columns), indexing="ij")
    return [c[place.ravel()] for c, place in zip(columns, places, strict=True)]


Sides = tuple[list[Array], Sequence[float], list[Array], Sequence[float]]
Made = Callable[..., Sides]


def _about(made: Made, columns: list[Array], real: bool, v: Values, fixed: int) -> Callable[[Array, float], Family]:
    """Pairs of vectors in random directions from those of some rows, for vectors of two coordinates."""
    nearest, wide = v.nearest, float(np.ptp(v.points, axis=0).max())
    assert nearest is not None

    def nudged(which: Array, share: float) -> Family:
        rng, moved = np.random.default_rng(NUDGES), []
        for k, column in enumerate(columns):
            here = np.repeat(column[which], NUDGES, 0)
            there = here + 3 * share * wide * rng.normal(size=here.shape) * rng.integers(0, 2, (len(here), 1))
            there = np.clip(there, column.min(0), column.max(0)) if k < fixed else nearest(there)
            moved.append(np.concatenate([column[which], there]))
        return _family(made, moved, real, v, fixed)

    return nudged


def _family(made: Made, columns: list[Array], real: bool, v: Values | None = None, fixed: int = 0) -> Family:
    """The pairs that `made` makes of all rows; with `v` also those of vectors nearby, of one coordinate."""

    def of(rows: list[Array]) -> Family:
        p, weights_p, q, weights_q = made(*rows)
        return Family(np.stack(p, 1), np.array(weights_p), np.stack(q, 1), np.array(weights_q), real)

    if v is not None and not v.convex and v.nearest is not None and v.points.shape[1] == 2:
        return replace(of(columns), nudged=_about(made, columns, real, v, fixed))
    if v is None or not v.convex:
        return of(columns)
    ends = [(v.low, v.high)] * len(columns)
    ends[:fixed] = [(float(c.min()), float(c.max())) for c in columns[:fixed]]

    def nudged(which: Array, share: float) -> Family:
        moved = []
        for signs in itertools.product((-1, 0, 1), repeat=len(columns)):
            moved.append(
                [
                    np.clip(c[which] + sign * share * (high - low), low, high)
                    for c, sign, (low, high) in zip(columns, signs, ends, strict=True)
                ]
            )
        all_of_them = [np.concatenate(column) for column in zip(*moved, strict=True)]
        return _family(made, all_of_them, real, v, fixed)

    plain = of(columns)
    return Family(plain.p, plain.weights_p, plain.q, plain.weights_q, real, None, nudged)


def _on_their_side(places: Array, v: Values) -> Array:
    """Places in whose direction records point at all: coordinates of one sign have no sum of the other one."""
    low, high = v.points.min(0), v.points.max(0)
    return places[((places >= 0) | (low < 0)).all(-1) & ((places <= 0) | (high > 0)).all(-1)]


def sums(v: Values, window: tuple[float, float] | None, level: int, count: int | None = None) -> Array:
    """Sums of other records, of `count` or any number, within a window (0 if the place does not matter)."""
    dim = v.points.shape[1]
    if window is None:
        return np.zeros((1, dim))
    low, high = window
    if v.convex:
        ends = (-inf if v.low < 0 else 0.0, inf if v.high > 0 else 0.0)
        if count is not None:
            ends = (count * v.low, count * v.high)
        low, high = max(low, ends[0]), min(high, ends[1])
        if low > high:  # as near to the window as they come
            return np.array([[ends[0] if low == ends[0] else ends[1]]])
        found = np.linspace(low, high, {1: 7, 2: 25, 3: 61}[level])
        extra = [x for x in ends if low <= x <= high]
        if count is None and v.low * v.high > 0:  # not every sum is reached: k records from k·low to k·high
            multiples = np.concatenate([v.low * np.arange(1, 5), v.high * np.arange(1, 5), [0]])
            near, far = sorted((abs(v.low), abs(v.high)))
            inside = [x for x in found if np.floor(abs(x) / near) * far >= abs(x)]
            found = np.unique(np.concatenate([multiples, inside]))
        return np.unique(np.concatenate([found, extra, [0.0] if low <= 0 <= high and count is None else []]))[:, None]
    if v.small and count is None:
        line = np.unique(np.concatenate([np.linspace(low, high, {1: 3, 2: 7, 3: 11}[level]), [0.0]]))
        return _on_their_side(np.stack(np.meshgrid(line, line), -1).reshape(-1, 2), v)
    few = thinned(v.points, 5 if level == 1 else 9)
    reached = np.zeros((1, dim))
    whole = [reached]
    for i in range(count if count is not None else {1: 3, 2: 4, 3: 6}[level]):
        if i > 12:
            break
        reached = np.unique(np.round((reached[:, None] + few[None]).reshape(-1, dim), 10) + 0.0, axis=0)
        reached = reached[(np.abs(reached) <= 3 + max(abs(low), abs(high))).all(-1)]
        limit = {1: 15, 2: 40, 3: 100}[level]
        if len(reached) > limit:
            reached = reached[np.linspace(0, len(reached) - 1, limit).astype(int)]
        if not len(reached):
            break
        whole.append(reached)
    if count is not None:
        return reached if len(reached) else count * few
    return np.unique(np.concatenate(whole), axis=0)


def any_two(v: Values) -> list[Family]:
    return [_family(lambda a, b: ([a], [1], [b], [1]), _rows(v.points, v.points), True, v)]


def shifted(v: Values, window: tuple[float, float] | None, level: int, added: bool) -> list[Family]:
    """Unsampled sums, with one record more or one replaced."""
    s, fixed = sums(v, window, level), 1
    if added:
        return [_family(lambda s, a: ([s], [1], [s + a], [1]), _rows(s, v.points), True, v, fixed)]
    columns = _rows(s, v.points, v.points)
    return [_family(lambda s, a, b: ([s + a], [1], [s + b], [1]), columns, True, v, fixed)]


def grouped(v: Values, window: tuple[float, float] | None, level: int, count: int) -> list[Family]:
    """At most so many records, each added or removed: some are in one data set and others in the other one."""
    few = thinned(v.points, 5)
    found = []
    for ours in range(count // 2 + 1):
        columns = _rows(sums(v, window, level), few, few, few)

        def moved(s: Array, a: Array, b: Array, c: Array, n: int = ours, m: int = count - ours) -> Sides:
            return [s + n * a], [1], [s + (m - 1) * b + c], [1]

        found.append(_family(moved, columns, True, v, 1))
    return found


def with_dropout(v: Values, kept: float) -> list[Family]:
    """Texts that differ in one word, which is dropped but for a probability; without it the text is any text."""
    share = [1 - kept, kept]
    columns = _rows(v.points, v.points, v.points)
    return [_family(lambda a, b, c: ([a, b], share, [a, c], share), columns, True, v)]


def _chosen(q: float, n: int) -> list[float]:
    return [comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(n + 1)]


def _sampled(base: list[Array], chances: list[float], q: float, records: Sequence[Array]) -> Sides:
    """The sums `base` with these chances; beside them one record that is there or not, or one of two."""
    both = [*((1 - q) * c for c in chances), *(q * c for c in chances)]
    one = [*base, *(x + records[0] for x in base)]
    if len(records) == 1:
        return base, chances, one, both
    return one, both, [*base, *(x + records[1] for x in base)], both


def poisson(
    v: Values, q: float, window: tuple[float, float] | None, level: int, added: bool, smooth: bool
) -> list[Family]:
    """Each record takes part with probability q, the others too.

    Many small records are almost surely near their mean, so any sum of the others is as good as certain if records can
    be small. Otherwise at least one other record is there or not; what the rest add up to is then taken as known.
    """
    mine = [v.points] if added else [v.points, v.points]
    if window is None or q == 1 or (v.small and smooth):
        columns = _rows(sums(v, window, level), *mine)
        return [_family(lambda s, *r: _sampled([s], [1.0], q, r), columns, True, v, 1)]
    found = []
    few = thinned(v.points, 5 if level == 1 else 12)
    for others in range({1: 4, 2: 5, 3: 7}[level]):
        columns = _rows(few if others else few[:1], *mine)

        def alike(w: Array, *r: Array, n: int = others) -> Sides:
            return _sampled([i * w for i in range(n + 1)], _chosen(q, n), q, r)

        found.append(_family(alike, columns, True, v))
    moving = v.points[np.abs(v.points).max(-1) > NEARLY]
    rest = sums(v, window, level)
    if v.points.shape[1] == 2:
        line = np.unique(np.append(np.linspace(*window, {1: 4, 2: 7, 3: 9}[level]), 0.0))
        rest = np.concatenate([rest[:20], _on_their_side(np.stack(np.meshgrid(line, line), -1).reshape(-1, 2), v)])
    if len(moving):
        columns = _rows(rest, thinned(moving, 5 if level == 1 else 16), *mine)
        found.append(_family(lambda s, u, *r: _sampled([s, s + u], [1 - q, q], q, r), columns, False, v, 1))
    return found


def _hull(shape: tuple[int, int, int], x: Array, means: Array) -> Callable[[Array], Array]:
    """The largest average of δ over x, for distributions of x with a given mean."""

    def largest(delta: Array) -> Array:
        table = delta.reshape(shape)  # sums, x, the two records
        best = np.zeros((shape[0], shape[2]))
        for (i, a), (j, b) in itertools.product(enumerate(x), repeat=2):
            if a <= b:
                inside = (means >= a - 1e-12) & (means <= b + 1e-12)
                share = np.clip((means - a) / (b - a), 0, 1) if b > a else np.zeros(len(means))
                value = (1 - share)[:, None] * table[:, i] + share[:, None] * table[:, j]
                best = np.maximum(best, np.where(inside[:, None], value, 0))
        return best.ravel()

    return largest


def subsample(v: Values, m: int, n: int, window: tuple[float, float] | None, level: int) -> list[Family]:
    """m of n records.

    In the pairs that bound all data sets, m others are known to be those that are drawn if the record in question is
    not. If it is drawn, it takes the place of any one of them, so what that one adds is a mth of their sum on average.
    """
    share = [1 - m / n, m / n] if m < n else [0.0, 1.0]

    def known(s: Array, w: Array, a: Array, b: Array) -> Sides:
        return [s, s - w + a], share, [s, s - w + b], share

    if window is None or m == n or m == 1:
        s = sums(v, window, level, m - 1)
        w = v.points if m < n else v.points[:1] * 0
        return [_family(lambda s, w, a, b: known(s + w, w, a, b), _rows(s, w, v.points, v.points), True, v, 1)]
    found = []
    few = thinned(v.points, 5 if level == 1 or v.points.shape[1] == 1 else 9)
    if v.points.shape[1] == 1:
        s = sums(v, window, 1 if level == 1 else 3, m)
        mine, place = v.points, v.points
        if level > 1:
            mine = thinned(v.points, 7)
            place = np.linspace(v.low, v.high, 21)[:, None] if v.convex else v.points
        columns = _rows(s, place, mine, mine)
        shape = len(s), len(place), len(mine) ** 2
        plain = _family(known, columns, False)
        hull = _hull(shape, place[:, 0], s[:, 0] / m)
        found.append(Family(plain.p, plain.weights_p, plain.q, plain.weights_q, False, hull))
    else:
        columns = _rows(sums(v, window, level, m - 1), few, few, few)
        found.append(_family(lambda s, w, a, b: known(s + w, w, a, b), columns, False, v, 1))
    counts = sorted({0, 1, n - 2, n - 1, (n - 1) // 2} & set(range(n)))
    for j in counts if n <= 6 or level > 1 else [0]:
        out = [(comb(j, i) * comb(n - 1 - j, m - i), i) for i in range(m + 1) if i <= j and m - i <= n - 1 - j]
        inside = [(comb(j, i) * comb(n - 1 - j, m - 1 - i), i) for i in range(m) if i <= j and m - 1 - i <= n - 1 - j]
        if len(out) + len(inside) > 24:
            continue
        total_out, total_in = comb(n - 1, m), comb(n - 1, m - 1)
        weights = [c / total_out * (1 - m / n) for c, _ in out] + [c / total_in * m / n for c, _ in inside]

        def drawn(w: Array, u: Array, a: Array, b: Array, o: list = out, k: list = inside, c: list = weights) -> Sides:  # type: ignore[type-arg]
            without = [i * u + (m - i) * w for _, i in o]
            among = [i * u + (m - 1 - i) * w for _, i in k]
            return [*without, *(x + a for x in among)], c, [*without, *(x + b for x in among)], c

        mine = few if level == 1 and j else v.points
        found.append(_family(drawn, _rows(few, few if j else few[:1], mine, mine), True, v))
    return found
