"""Independent bits: certified binomial sums, and sums over groups of bits that are noised alike.

A factorial's logarithm comes from Stirling's series, whose partial sums lie in turn above and below it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, hull, iv, largest, log, middle, positive_part

_ENOUGH, _ALIKE = iv.mpf("1e-45"), iv.mpf("1e-40")
_ROUNDING = iv.mpf([1, 1 + iv.mpf("1e-50").b])  # what choosing an event by rounded losses may cost
_MOST_SUMS, _MOST_BITS = 20_000, 20_000
_BERNOULLI = [
    *((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798), (-174611, 330)),
    *((854513, 138), (-236364091, 2730), (8553103, 6), (-23749461029, 870), (8615841276005, 14322)),
    (-7709321041217, 510),
]


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
    >>> round(middle(EqualBits(number("0.75"), number("0.25"), 2).delta(ZERO, True)), 9)  # 0.75² − 0.25²
    0.5
    """

    p: Number
    q: Number
    count: int

    @property
    def larger_first(self) -> tuple[Number, Number]:
        """The value that speaks for the first law counts as 1."""
        return (self.p, self.q) if self.p.mid.a >= self.q.mid.a else (1 - self.p, 1 - self.q)

    @property
    def pure(self) -> Number:
        p, q = self.larger_first
        if q.a <= 0:  # a 1 gives the first law away, if it can come
            return INF if q.b <= 0 < p.a else hull(ZERO, INF)
        return positive_part(self.count * log(p / q))

    @property
    def infinite(self) -> Number:
        """The probability of an infinite loss."""
        p, q = self.larger_first
        return 1 - (1 - p) ** self.count if q.b <= 0 < p.b else ZERO

    def _loss(self, k: int) -> Number:
        """The loss where k bits speak for the first law."""
        p, q = self.larger_first
        return k * iv.log(p / q) + (self.count - k) * iv.log((1 - p) / (1 - q))

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """P(K ≥ k) − e^ε Q(K ≥ k), where from k on the loss exceeds ε."""
        p, q = self.larger_first
        if q.b <= 0:  # a single 1 gives the first law away
            return self.infinite
        if (1 - p).b <= 0:  # only ones can come
            return positive_part(1 - iv.exp(epsilon) * q**self.count)
        if q.a <= 0 or (1 - p).a <= 0 or (p.a <= q.b and p.b >= q.a):
            return hull(ZERO, 1 - (1 - largest([p - q, q - p])) ** self.count)
        target = epsilon.mid.a
        first = bisect_left(range(self.count + 1), True, key=lambda k: bool(self._loss(k).mid.a > target))
        if first > self.count:
            return ZERO
        high, low = (at_least(self.count, first, chance) for chance in (p, q))
        return positive_part(high - iv.exp(epsilon) * low) * _ROUNDING


@dataclass(frozen=True)
class UnequalBits:
    """Groups of bits that are noised alike in each; from below only, by an event: the summed loss exceeds ε."""

    groups: tuple[EqualBits, ...]

    @property
    def pure(self) -> Number:
        parts = [group.pure for group in self.groups]
        return INF if any(part.a == INF for part in parts) else sum(parts, ZERO)

    @property
    def infinite(self) -> Number:
        """The probability of an infinite loss."""
        finite = math.prod((1 - group.infinite for group in self.groups), start=ONE)
        return ZERO if finite.a == 1 else 1 - finite

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """P − e^ε Q of the event. Groups too large to look at are left out, which is post-processing."""
        if upper:
            return ONE
        tables = sorted((_Table.of(g) for g in self.groups if g.count <= _MOST_BITS), key=lambda t: len(t.chances))
        while math.prod(len(table.chances) for table in tables[:-1]) > _MOST_SUMS:
            tables.pop(0)
        if not tables:
            return ZERO
        p, q, finite = ZERO, ZERO, ONE
        sums = [(0.0, ONE, ONE)]
        for table in tables[:-1]:
            rows = list(zip(table.losses.tolist(), table.chances, strict=True))
            sums = [(loss + more, a * x, b * y) for loss, a, b in sums for more, (x, y) in rows]
        for table in tables:
            finite *= 1 - table.infinite
        last = tables[-1]
        for loss, a, b in sums:
            at = int(np.searchsorted(last.losses, middle(epsilon) - loss, side="right"))
            if at < len(last.sums):
                p, q = p + a * last.sums[at][0], q + b * last.sums[at][1]
        infinite = ZERO if finite.a == 1 else 1 - finite
        return largest([infinite, infinite + p - iv.exp(epsilon) * q])


@dataclass(frozen=True)
class _Table:
    """All finite losses of a group in rising order, with their probabilities and the sums from each on."""

    losses: np.ndarray[tuple[int], np.dtype[np.float64]]
    chances: list[tuple[Number, Number]]
    sums: list[tuple[Number, Number]]
    infinite: Number  # the probability of an infinite loss

    @classmethod
    def of(cls, bits: EqualBits) -> _Table:
        p, q = bits.larger_first
        n = bits.count
        if q.b <= 0 and p.b > 0:
            rest = (1 - p) ** n
            return cls(np.array([middle(log(rest))]), [(rest, ONE)], [(rest, ONE)], 1 - rest)
        ks = [n] if (1 - p).b <= 0 else list(range(n + 1))
        chances = _walk(n, p, q) if len(ks) > 1 else [(p**n, q**n)]
        up, down = middle(log(p / q)), middle(log((1 - p) / (1 - q))) if len(ks) > 1 else 0.0
        sums, total = [], (ZERO, ZERO)
        for a, b in reversed(chances):
            total = (total[0] + a, total[1] + b)
            sums.append(total)
        return cls(np.array([k * up + (n - k) * down for k in ks]), chances, sums[::-1], ZERO)


def _walk(n: int, p: Number, q: Number) -> list[tuple[Number, Number]]:
    """All probabilities of k ones, under both laws; the latest few are kept."""
    return _walked(n, p._mpi_, q._mpi_)


@lru_cache(maxsize=8)
def _walked(n: int, first: tuple[Any, Any], second: tuple[Any, Any]) -> list[tuple[Number, Number]]:
    p, q = iv.make_mpf(first), iv.make_mpf(second)
    a, b = (1 - p) ** n, (1 - q) ** n
    odds = p / (1 - p), q / (1 - q)
    chances = []
    for k in range(n + 1):  # each from the one before
        chances.append((a, b))
        step = iv.mpf(n - k) / (k + 1)
        a, b = a * odds[0] * step, b * odds[1] * step
    return chances


def joined(groups: Sequence[tuple[Number, Number, int]]) -> tuple[EqualBits, ...]:
    """Groups of bits with the same two probabilities joined, the largest first; those without a difference left out."""
    kinds: list[EqualBits] = []
    for p, q, count in groups:
        if not count or p is q or p.a == p.b == q.a == q.b:  # equal enclosures need not be equal numbers
            continue
        p, q = EqualBits(p, q, count).larger_first
        for i, kind in enumerate(kinds):
            if all(abs(one - other).b < _ALIKE.a for one, other in ((p, kind.p), (q, kind.q))):
                p, q = (iv.mpf([min(a.a, b.a), max(a.b, b.b)]) for a, b in ((p, kind.p), (q, kind.q)))
                kinds[i] = EqualBits(p, q, count + kind.count)
                break
        else:
            kinds.append(EqualBits(p, q, count))
    return tuple(sorted(kinds, key=lambda kind: -kind.count))
