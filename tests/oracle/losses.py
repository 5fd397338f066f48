"""Exact losses: of pairs under additive noise in closed form, of finite mechanisms by enumeration.

`Truth` is what is known of a mechanism: bounds on its pure ε and on δ(ε), both ends known to this file's own error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from mpmath import mp, mpf

from oracles import gaussian_delta, laplace_sum_delta

Ends = tuple[mpf, mpf]
INF = mp.inf
MOST_COORDINATES = 100  # of which the sum of Laplace losses is inverted by hand


@dataclass(frozen=True)
class Truth:
    """The smallest and the largest that the pure ε, and δ at each ε ≥ 0, can be."""

    pure: Ends
    delta: Callable[[mpf], Ends]
    divergence: Callable[[mpf], Ends] | None = None

    def renyi(self, order: mpf) -> Ends:
        """The Rényi divergence of an order; from above at least what pure ε allows, attained by randomized response."""
        low, high = (mpf(0), INF) if self.divergence is None else self.divergence(order)
        return low, min(high, pure_renyi(self.pure[1], order))

    def at_most(self, other: Truth) -> Truth:
        """Known to lose no more than another mechanism: of this one the lower ends, of both the smaller upper ones."""

        def delta(e: mpf) -> Ends:
            low, high = self.delta(e)
            return low, max(low, min(high, other.delta(e)[1]))

        def divergence(order: mpf) -> Ends:
            low, high = self.renyi(order)
            return low, max(low, min(high, other.renyi(order)[1]))

        return Truth((self.pure[0], max(self.pure[0], min(self.pure[1], other.pure[1]))), delta, divergence)

    def at_least(self, other: Truth) -> Truth:
        """Known to lose no less than a pair of its inputs."""

        def delta(e: mpf) -> Ends:
            low, high = self.delta(e)
            return min(high, max(low, other.delta(e)[0])), high

        def divergence(order: mpf) -> Ends:
            low, high = self.renyi(order)
            return min(high, max(low, other.renyi(order)[0])), high

        return Truth((min(self.pure[1], max(self.pure[0], other.pure[0])), self.pure[1]), delta, divergence)

    def or_else(self, other: Truth) -> Truth:
        """Known to be one of two mechanisms."""

        def either(one: Ends, two: Ends) -> Ends:
            return min(one[0], two[0]), max(one[1], two[1])

        return Truth(either(self.pure, other.pure), lambda e: either(self.delta(e), other.delta(e)))

    def forgotten(self) -> Truth:
        """What stays known behind a function of the output that may lose anything."""
        above = lambda order: (mpf(0), self.renyi(order)[1])  # noqa: E731
        return Truth((mpf(0), self.pure[1]), lambda e: (mpf(0), self.delta(e)[1]), above)

    def behind_dropout(self, mu: mpf) -> Truth:
        """One word that is left out with probability μ: (1 − μ)P + μQ against Q is the worst (Balle et al. 2018)."""
        if mu == 0:
            return self

        def pure(e: mpf) -> mpf:
            return INF if mp.isinf(e) else mp.log((1 - mu) * mp.exp(e) + mu)

        def delta(e: mpf) -> Ends:
            low, high = self.delta(mp.log((mp.exp(e) - mu) / (1 - mu)) if e > 0 else mpf(0))
            return (1 - mu) * low, (1 - mu) * high

        return Truth((pure(self.pure[0]), pure(self.pure[1])), delta)


NOTHING_KNOWN = Truth((mpf(0), INF), lambda e: (mpf(0), mpf(1)))
NO_LOSS = Truth((mpf(0), mpf(0)), lambda e: (mpf(0), mpf(0)))
ALL_LOST = Truth((INF, INF), lambda e: (mpf(1), mpf(1)), lambda order: (INF, INF))


def pure_delta(pure: mpf, e: mpf) -> mpf:
    """The most that an ε₀-DP mechanism can have at ε: randomized response, (e^ε₀ − e^ε)/(e^ε₀ + 1)."""
    if pure <= e:
        return mpf(0)
    return mpf(1) if mp.isinf(pure) else (1 - mp.exp(e - pure)) / (1 + mp.exp(-pure))


def pure_renyi(pure: mpf, order: mpf) -> mpf:
    """The Rényi divergence of randomized response."""
    if mp.isinf(pure):
        return INF
    terms = mp.exp(order * pure), mp.exp((1 - order) * pure)
    return mp.log((terms[0] + terms[1]) / (1 + mp.exp(pure))) / (order - 1)


# ── Additive noise ──────────────────────────────────────────────────────────────────────────────


def log_moment(groups: Sequence[tuple[mpf, int]], z: mpf) -> mpf:
    """ln E e^(zL) of the loss of Laplace coordinates, each an integral by hand: three pieces of the line."""
    parts = (n * mp.log(((1 + z) * mp.exp(a * z) + z * mp.exp(-a * (1 + z))) / (1 + 2 * z)) for a, n in groups)
    return mp.fsum(parts)


def lowest(of: Callable[[mpf], mpf]) -> mpf:
    """Where a function on the positive numbers, convex in the logarithm of its argument or nearly so, is lowest."""
    low, high = mpf(-12), mpf(14)
    for _ in range(90):
        a, b = low + (high - low) * mpf("0.382"), low + (high - low) * mpf("0.618")
        low, high = (low, b) if of(mp.exp(a)) < of(mp.exp(b)) else (a, high)
    return mp.exp((low + high) / 2)


def renyi_delta(groups: Sequence[tuple[mpf, int]], e: mpf) -> mpf:
    """What the moments of the loss allow: δ(ε) ≤ E e^(zL) e^(−zε) z^z / (1 + z)^(1 + z), at the best z."""

    def bound(z: mpf) -> mpf:
        return log_moment(groups, z) - z * e + z * mp.log(z) - (1 + z) * mp.log(1 + z)

    with mp.workdps(30):
        return min(mpf(1), mp.exp(bound(lowest(bound))) * (1 + mpf(10) ** -20))


@lru_cache(maxsize=20000)
def laplace_delta(groups: tuple[tuple[mpf, int], ...], e: mpf) -> Ends:
    """δ of Laplace coordinates: how many have each shift (in scales). Of very many, only some are used from below."""
    groups = tuple((a, n) for a, n in groups if n and a > 0)
    pure, count = sum((a * n for a, n in groups), mpf(0)), sum(n for _, n in groups)
    if pure <= e:
        return mpf(0), mpf(0)
    if count == 1:  # ∫ max(0, p − e^ε q) = 1 − e^((ε − a)/2)
        return (value := -mp.expm1((e - pure) / 2)), value
    if count > MOST_COORDINATES:
        part = laplace_delta(((groups[0][0], min(groups[0][1], MOST_COORDINATES)),), e)[0]
        return part, min(pure_delta(pure, e), renyi_delta(groups, e))
    value = laplace_sum_delta([(a, n) for a, n in groups], e)
    return value * (1 - mpf(10) ** -28), value * (1 + mpf(10) ** -28)


def laplace_pair(groups: Sequence[tuple[mpf, int]]) -> Truth:
    """One shift, each coordinate's size in scales with how often it comes."""
    pure = sum((a * n for a, n in groups), mpf(0))

    def divergence(order: mpf) -> Ends:
        found = log_moment(groups, order - 1) / (order - 1)
        return found, found

    return Truth((pure, pure), lambda e: laplace_delta(tuple(groups), e), divergence)


def gaussian_pair(mu: mpf) -> Truth:
    """Gaussian noise at an l2 distance of μ standard deviations."""

    def delta(e: mpf) -> Ends:
        with mp.workdps(90):
            value = max(mpf(0), gaussian_delta(mu, e))
        return value * (1 - mpf(10) ** -45), value * (1 + mpf(10) ** -45)

    exact = Truth((INF, INF), delta, lambda order: (order * mu**2 / 2, order * mu**2 / 2))
    return NO_LOSS if mu == 0 else ALL_LOST if mp.isinf(mu) else exact


def disc(distance: mpf, cells: int = 24) -> Callable[[mpf], mpf]:
    """An upper bound on δ of two Laplace coordinates whose shift has this l2 norm, in scales.

    δ grows with each coordinate's shift alone (so it does for one coordinate at every ε, and products keep the order),
    so that no shift of a cell of the quarter circle beats the cell's outer corner.
    """
    angles = [mp.pi / 4 * i / cells for i in range(cells + 1)]  # the other half is the same
    corners = [(distance * mp.cos(a), distance * mp.sin(b)) for a, b in itertools.pairwise(angles)]
    return lambda e: max(laplace_delta(((x, 1), (y, 1)), e)[1] for x, y in corners)


def one_sided(ahead: mpf) -> Truth:
    """Exponential noise, never negative; neighbours can be shifted against each other by this in total."""
    if ahead == 0:
        return NO_LOSS
    return Truth((INF, INF), lambda e: (-mp.expm1(-ahead), -mp.expm1(-ahead)), lambda order: (INF, INF))


# ── Finite mechanisms ───────────────────────────────────────────────────────────────────────────


def _pure_of(p: Sequence[mpf], q: Sequence[mpf]) -> mpf:
    ratios = [INF if b == 0 else a / b for a, b in zip(p, q, strict=True) if a > 0]
    most = max(ratios, default=mpf(1))
    return INF if mp.isinf(most) else max(mpf(0), mp.log(most))


def _delta_of(p: Sequence[mpf], q: Sequence[mpf], e: mpf) -> mpf:
    weight = mp.exp(e)
    return mp.fsum(max(mpf(0), a - weight * b) for a, b in zip(p, q, strict=True))


def _renyi_of(p: Sequence[mpf], q: Sequence[mpf], order: mpf) -> mpf:
    if any(b == 0 for a, b in zip(p, q, strict=True) if a > 0):
        return INF
    return mp.log(mp.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True) if a > 0)) / (order - 1)


class Finite:
    """All inputs' distributions over finitely many outputs, and which inputs are neighbours.

    All pairs are looked at in doubles, and those within `NEAR` of the best one computed in 50 digits, of pairs with the
    same probabilities one. Where there are more than `MOST_NEAR` of these, what doubles may have missed is the room
    between the two ends.
    """

    BLUR, NEAR, MOST_NEAR = mpf(10) ** -11, 1e-9, 100

    def __init__(self, rows: Sequence[Sequence[mpf]], neighbours: np.ndarray | None = None) -> None:
        self.rows = rows
        self.matrix = np.array([[float(x) for x in row] for row in rows])
        self.neighbours = np.ones((len(rows), len(rows)), dtype=bool) if neighbours is None else neighbours

    def _best(
        self, scores: Callable[[np.ndarray], np.ndarray], exact: Callable[[Sequence[mpf], Sequence[mpf]], mpf]
    ) -> Ends:
        """The largest exact value of a pair whose score in doubles is among the largest."""
        table = np.array(
            [np.where(near, scores(row), -1.0) for row, near in zip(self.matrix, self.neighbours, strict=True)]
        )
        best = float(table.max())
        near = np.argwhere(table >= best * (1 - self.NEAR) - 1e-14 if np.isfinite(best) else table == best)
        alike = {}
        for i, j in near.tolist():
            both = np.round(np.stack([self.matrix[i], self.matrix[j]]), 13)
            alike.setdefault(both[:, np.lexsort(both)].tobytes(), (i, j))
            if len(alike) > self.MOST_NEAR or not np.isfinite(best):
                break
        value = max(exact(self.rows[i], self.rows[j]) for i, j in alike.values())
        if len(alike) > self.MOST_NEAR:
            return value, value * (1 + self.BLUR) + mpf(10) ** -15
        return value, value

    def pure(self) -> Ends:
        """The largest log-ratio."""

        def ratios(row: np.ndarray) -> np.ndarray:
            seen = row > 0
            with np.errstate(divide="ignore"):
                return np.log((row[seen] / self.matrix[:, seen]).max(axis=1, initial=1.0))

        return self._best(ratios, _pure_of)

    def delta(self, e: mpf) -> Ends:
        """The largest Σ max(0, p − e^ε q)."""
        weight = float(mp.exp(min(e, mpf(600))))
        return self._best(
            lambda row: np.maximum(0.0, row - weight * self.matrix).sum(axis=1), lambda p, q: _delta_of(p, q, e)
        )

    def truth(self) -> Truth:
        pure, blurred = self.pure()
        known: dict[mpf, Ends] = {}

        def delta(e: mpf) -> Ends:
            if e >= pure:
                return mpf(0), mpf(0)
            if e not in known:
                known[e] = self.delta(e)
            return known[e]

        def divergence(order: mpf) -> Ends:
            if mp.isinf(pure) or len(self.rows) > 40:
                return (INF, INF) if mp.isinf(pure) else (mpf(0), INF)
            near = np.argwhere(self.neighbours).tolist()
            found = max(_renyi_of(self.rows[i], self.rows[j], order) for i, j in near)
            return found, found

        return Truth((pure, blurred), delta, divergence)
