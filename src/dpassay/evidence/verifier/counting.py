"""Independent bits that are all noised alike: certified binomial sums, and products of two groups of bits.

A factorial's logarithm comes from Stirling's series, whose partial sums lie in turn above and below it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, hull, iv, largest, log, middle, positive_part

_ENOUGH = iv.mpf("1e-45")
_BERNOULLI = [
    (1, 6),
    (-1, 30),
    (1, 42),
    (-1, 30),
    (5, 66),
    (-691, 2730),
    (7, 6),
    (-3617, 510),
    (43867, 798),
    (-174611, 330),
    (854513, 138),
    (-236364091, 2730),
    (8553103, 6),
    (-23749461029, 870),
    (8615841276005, 14322),
    (-7709321041217, 510),
]
MOST_IN_TABLE = 20_000


@lru_cache(maxsize=1024)
def log_factorial(n: int) -> Number:
    """ln n!

    >>> from dpassay.evidence.verifier.numbers import middle
    >>> round(middle(log_factorial(10)), 9), round(middle(log_factorial(10**6)), 6)
    (15.104412573, 12815518.384658)
    """
    if n < 200:
        return iv.log(iv.mpf(math.factorial(n)))
    x = iv.mpf(n)
    total = (x + ONE / 2) * iv.log(x) - x + iv.log(2 * iv.pi) / 2
    last = ZERO
    for j, (top, bottom) in enumerate(_BERNOULLI, start=1):
        last = iv.mpf(top) / bottom / (2 * j * (2 * j - 1)) / x ** (2 * j - 1)
        total += last
    before = total - last
    return iv.mpf([min(before.a, total.a), max(before.b, total.b)])


def binomial(n: int, k: int, p: Number) -> Number:
    """P(K = k) for K binomial(n, p)."""
    chance = log_factorial(n) - log_factorial(k) - log_factorial(n - k)
    for count, value in ((k, p), (n - k, 1 - p)):
        if count:
            if value.b <= 0:
                return ZERO
            chance += count * log(value)
    return iv.exp(chance)


def at_least(n: int, k: int, p: Number) -> Number:
    """P(K ≥ k) for K binomial(n, p), computed once.

    >>> from dpassay.evidence.verifier.numbers import middle, number
    >>> middle(at_least(3, 2, number("0.5")))
    0.5
    """
    return ONE if k <= 0 else ZERO if k > n else _at_least(n, k, p._mpi_)


@lru_cache(maxsize=4096)
def _at_least(n: int, k: int, ends: tuple[Any, Any]) -> Number:
    p = iv.make_mpf(ends)
    if k <= n * middle(p):  # the smaller tail is the other one
        return 1 - at_least(n, n - k + 1, 1 - p)
    term, total = binomial(n, k, p), ZERO
    if term.b <= 0 or p.b >= 1:
        return term
    odds = p / (1 - p)
    for j in range(k, n + 1):
        total += term
        ratio = odds * (n - j) / (j + 1)
        term *= ratio
        # Ratios fall from here on, so the rest is at most a geometric series.
        if ratio.b < 1 and term.b <= (total * _ENOUGH * (1 - ratio)).a:
            return hull(total, total + term / (1 - ratio))
    return total


@dataclass(frozen=True)
class EqualBits:
    """n bits, each 1 with probability p under the first law and q under the second.

    >>> from dpassay.evidence.verifier.numbers import middle, number
    >>> round(middle(EqualBits(number("0.75"), number("0.25"), 2).delta(ZERO)), 9)  # 0.75² − 0.25²
    0.5
    """

    p: Number
    q: Number
    count: int

    @property
    def _larger_first(self) -> tuple[Number, Number]:
        """The value that speaks for the first law counts as 1."""
        return (self.p, self.q) if self.p.mid.a >= self.q.mid.a else (1 - self.p, 1 - self.q)

    @property
    def pure(self) -> Number:
        p, q = self._larger_first
        return INF if q.b <= 0 else positive_part(self.count * log(p / q))

    def _loss(self, k: int) -> Number:
        """The loss where k bits speak for the first law."""
        p, q = self._larger_first
        return k * iv.log(p / q) + (self.count - k) * iv.log((1 - p) / (1 - q))

    def _tails(self, k: int) -> tuple[Number, Number]:
        p, q = self._larger_first
        return at_least(self.count, k, p), at_least(self.count, k, q)

    def delta(self, epsilon: Number) -> Number:
        """P(K ≥ k) − e^ε Q(K ≥ k), where from k on the loss exceeds ε."""
        p, q = self._larger_first
        if q.b <= 0:  # a single 1 gives the first law away
            return 1 - (1 - p) ** self.count if p.b > 0 else ZERO
        if (1 - p).b <= 0:  # only ones can come
            return positive_part(1 - iv.exp(epsilon) * q**self.count)
        if p.a <= q.b and p.b >= q.a:
            return ZERO
        target = epsilon.mid.a
        first = bisect_left(range(self.count + 1), True, key=lambda k: bool(self._loss(k).mid.a > target))
        if first > self.count:
            return ZERO
        high, low = self._tails(first)
        return positive_part(high - iv.exp(epsilon) * low)

    def epsilon(self, delta: Number) -> Number | None:
        """The least ε with δ(ε) ≤ δ, solved between two neighbouring losses; none where there are no such."""
        p, q = self._larger_first
        if q.b <= 0 or (1 - p).b <= 0 or (p.a <= q.b and p.b >= q.a):
            return None
        if self.delta(ZERO).b <= delta.a:
            return ZERO

        def small_enough(k: int) -> bool:
            high, low = self._tails(k + 1)
            return bool((high - iv.exp(self._loss(k)) * low).mid.a <= delta.mid.a)

        k = bisect_left(range(self.count), True, key=small_enough)
        high, low = self._tails(k)
        return positive_part(iv.log((high - delta) / low))


@dataclass(frozen=True)
class TwoGroups:
    """Two groups of equal bits; from below only: some event's P − e^ε Q, which δ(ε) is never below."""

    first: EqualBits
    second: EqualBits

    @property
    def pure(self) -> Number:
        parts = (self.first.pure, self.second.pure)
        return INF if any(part.b == INF for part in parts) else parts[0] + parts[1]

    @cached_property
    def _tables(self) -> tuple[_Table, _Table]:
        return _Table.of(self.first), _Table.of(self.second)

    def rough(self, epsilon: float) -> float:
        """δ(ε) in doubles, to steer a search."""
        one, two = self._tables
        finite = 1 - (1 - one.infinite) * (1 - two.infinite)
        at = np.searchsorted(two.losses, epsilon - one.losses, side="right")
        p, q = np.append(two.upper_p, 0.0)[at], np.append(two.upper_q, 0.0)[at]
        with np.errstate(over="ignore", invalid="ignore"):
            terms = one.p * p - np.nan_to_num(np.exp(min(epsilon, 700.0)) * (one.q * q), nan=0.0)
        return finite + float(np.sum(np.maximum(0.0, terms)))

    def delta(self, epsilon: Number) -> Number:
        """One event's P − e^ε Q; the best event's differs by rounding only."""
        one, two = self._tables
        at = np.searchsorted(two.losses, middle(epsilon) - one.losses, side="right")
        p = q = ZERO
        for i, j in enumerate(at):
            if j < len(two.sums):
                p += one.chances[i][0] * two.sums[j][0]
                q += one.chances[i][1] * two.sums[j][1]
        infinite = 1 - (1 - one.sure) * (1 - two.sure)
        return largest([infinite, infinite + p - iv.exp(epsilon) * q]) * iv.mpf([1, 1 + 1e-9])


def loss_above(groups: Sequence[EqualBits], epsilon: Number) -> tuple[Number, Number] | None:
    """P and Q that the summed loss of some groups of bits exceeds ε; losses within 10⁻¹² of it may count or not.

    None where there are too many sums to look at.
    """
    *others, last = sorted((_Table.of(bits) for bits in groups), key=lambda table: len(table.chances))
    sums = [(0.0, ONE, ONE)]
    for table in others:
        if len(sums) * len(table.chances) > MOST_IN_TABLE:
            return None
        rows = list(zip(table.losses.tolist(), table.chances, strict=True))
        sums = [(loss + more, a * p, b * q) for loss, a, b in sums for more, (p, q) in rows]
    finite = ONE
    for table in (*others, last):
        finite *= 1 - table.sure
    ends = []
    for sign in (1, -1):
        threshold = middle(epsilon) + sign * 1e-12 * max(1.0, middle(epsilon))
        p = q = ZERO
        for loss, a, b in sums:
            at = int(np.searchsorted(last.losses, threshold - loss, side="right"))
            if at < len(last.sums):
                p, q = p + a * last.sums[at][0], q + b * last.sums[at][1]
        ends.append((p, q))
    infinite = ZERO if finite.a == 1 else 1 - finite
    return hull(ends[0][0] + infinite, ends[1][0] + infinite), hull(ends[0][1], ends[1][1])


@dataclass(frozen=True)
class _Table:
    """All finite losses of a group in rising order, with their probabilities and the sums from each on."""

    losses: np.ndarray[tuple[int], np.dtype[np.float64]]
    chances: list[tuple[Number, Number]]
    sums: list[tuple[Number, Number]]
    sure: Number  # the probability of an infinite loss

    @classmethod
    def of(cls, bits: EqualBits) -> _Table:
        p, q = bits._larger_first
        n = bits.count
        if q.b <= 0 and p.b > 0:
            rest = (1 - p) ** n
            return cls(np.array([middle(log(rest))]), [(rest, ONE)], [(rest, ONE)], 1 - rest)
        ks = [n] if (1 - p).b <= 0 else list(range(n + 1))
        chances = _walk(n, p, q) if len(ks) > 1 else [(p**n, q**n)]
        up, down = middle(log(p / q)), middle(log((1 - p) / (1 - q))) if len(ks) > 1 else 0.0
        losses = np.array([k * up + (n - k) * down for k in ks])
        sums, total = [], (ZERO, ZERO)
        for a, b in reversed(chances):
            total = (total[0] + a, total[1] + b)
            sums.append(total)
        return cls(losses, chances, sums[::-1], ZERO)

    @property
    def infinite(self) -> float:
        return middle(self.sure)

    @cached_property
    def p(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([middle(a) for a, _ in self.chances])

    @cached_property
    def q(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([middle(b) for _, b in self.chances])

    @cached_property
    def upper_p(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([middle(a) for a, _ in self.sums])

    @cached_property
    def upper_q(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([middle(b) for _, b in self.sums])


def _walk(n: int, p: Number, q: Number) -> list[tuple[Number, Number]]:
    """All probabilities, each from the one before."""
    a, b = (1 - p) ** n, (1 - q) ** n
    odds = p / (1 - p), q / (1 - q)
    chances = []
    for k in range(n + 1):
        chances.append((a, b))
        step = iv.mpf(n - k) / (k + 1)
        a, b = a * odds[0] * step, b * odds[1] * step
    return chances
