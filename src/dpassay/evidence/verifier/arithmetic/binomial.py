"""Independent bits: certified binomial sums, and sums over groups of bits with equal noise."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeAlias

from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    around,
    cached,
    hull,
    iv,
    largest,
    log,
    middle,
    positive_part,
)
from dpassay.evidence.verifier.arithmetic.work import KEPT_NUMBER, spend
from dpassay.values import dataclass

Group: TypeAlias = tuple[Number, Number, int]  # P(1) under the first law and under the second, and how many bits
_ENOUGH, _ALIKE = iv.mpf("1e-45"), iv.mpf("1e-40")
_ROUNDING = iv.mpf([1, 1 + iv.mpf("1e-50").b])  # the possible cost of choosing an event by rounded losses
_NEAR_ONE = 1 + iv.mpf(["-1e-50", "1e-50"])
_MOST_SUMS, _MOST_BITS = 20_000, 20_000


def log_factorial(n: int) -> Number:
    """ln n!; the last ten digits that mpmath gives are not relied on."""
    return iv.loggamma(iv.mpf(n + 1)) * _NEAR_ONE


def binomial(n: int, k: int, p: Number) -> Number:
    """P(K = k) for K binomial(n, p)."""
    chance = log_factorial(n) - log_factorial(k) - log_factorial(n - k)
    for count, value in ((k, p), (n - k, 1 - p)):
        if count:
            if value.b <= 0:
                return ZERO
            chance += count * log(value)
    return iv.exp(chance)


@cached(4096)
def at_least(n: int, k: int, p: Number) -> Number:
    """P(K ≥ k) for K binomial(n, p)."""
    if k <= 0 or k > n:
        return ONE if k <= 0 else ZERO
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
        # Ratios decrease from here on, so the rest is at most a geometric series.
        if ratio.b < 1 and term.b <= (total * _ENOUGH * (1 - ratio)).a:
            return hull(total, total + term / (1 - ratio))
    return total


@dataclass(frozen=True)
class BitGroups:
    """Groups of bits with equal noise within each; a 1 is evidence for the first law.

    The event is that the loss exceeds ε. With several groups it is bounded only from below.
    """

    groups: tuple[Group, ...]

    @property
    def pure(self) -> Number:
        parts = []
        for p, q, count in self.groups:
            if q.a <= 0:  # a 1 reveals the first law, if it can occur
                parts.append(INF if q.b <= 0 < p.a else hull(ZERO, INF))
            else:
                parts.append(positive_part(count * log(p / q)))
        return INF if any(part.a == INF for part in parts) else sum(parts, ZERO)

    @property
    def infinite(self) -> Number:
        """The probability of an infinite loss."""
        hidden = [(1 - p) ** count for p, q, count in self.groups if q.b <= 0 < p.b]
        return 1 - math.prod(hidden, start=ONE) if hidden else ZERO

    def delta(self, epsilon: Number, upper: bool) -> Number:
        if len(self.groups) == 1:
            return _of_one_group(*self.groups[0], epsilon)
        return ONE if upper else _of_groups(self.groups, epsilon)


def _of_one_group(p: Number, q: Number, count: int, epsilon: Number) -> Number:
    """P(K ≥ k) − e^ε Q(K ≥ k), where the loss exceeds ε from k on."""
    if q.b <= 0:  # a single 1 reveals the first law
        return BitGroups(((p, q, count),)).infinite
    if (1 - p).b <= 0:  # only ones can occur
        return positive_part(1 - iv.exp(epsilon) * q**count)
    if q.a <= 0 or (1 - p).a <= 0 or (p.a <= q.b and p.b >= q.a):
        return hull(ZERO, 1 - (1 - largest([p - q, q - p])) ** count)
    up, down = iv.log(p / q), iv.log((1 - p) / (1 - q))
    if epsilon.a >= (count * up).b:
        return ZERO
    target = epsilon.mid.a
    first = bisect_left(range(count + 1), True, key=lambda k: bool((k * up + (count - k) * down).mid.a > target))
    high, low = (at_least(count, first, chance) for chance in (p, q))
    # For other numbers of the intervals other outputs may belong to the event: those whose loss is this near to ε.
    near = count * (up.delta + down.delta) + epsilon.delta
    ends = at_least(count, first - 1, p) if (up - down - 2 * near).a > 0 else ONE
    more = ends * (iv.exp(near) - 1)
    return positive_part(high - iv.exp(epsilon) * low) * _ROUNDING + hull(ZERO, more)


def _of_groups(groups: Sequence[Group], epsilon: Number) -> Number:
    """P − e^ε Q of the event. Groups that are too large are left out, which is post-processing."""
    known = [(group, _outcomes(*group)) for group in groups if group[2] <= _MOST_BITS]
    known.sort(key=lambda one: len(one[1]))
    while math.prod(len(table) for _, table in known[:-1]) > _MOST_SUMS:
        known.pop(0)
    if not known:
        return ZERO
    sums, total = [(0.0, ONE, ONE)], (ZERO, ZERO)
    for _, table in known[:-1]:
        sums = [(loss + more, a * x, b * y) for loss, a, b in sums for more, x, y in table]
    losses, tails = [loss for loss, _, _ in known[-1][1]], [total]
    for _, x, y in reversed(known[-1][1]):
        total = (total[0] + x, total[1] + y)
        tails.append(total)
    p = q = ZERO
    for loss, a, b in sums:
        x, y = tails[len(losses) - bisect_right(losses, middle(epsilon) - loss)]
        p, q = p + a * x, q + b * y
    infinite = BitGroups(tuple(group for group, _ in known)).infinite
    return largest([infinite, infinite + p - iv.exp(epsilon) * q])


@cached(8)
def _outcomes(p: Number, q: Number, n: int) -> list[tuple[float, Number, Number]]:
    """All finite losses of a group in increasing order, with their probabilities under both laws."""
    if q.b <= 0 < p.b:  # no bit is 1
        return [(middle(log((1 - p) ** n)), (1 - p) ** n, ONE)]
    up = middle(log(p / q))
    if (1 - p).b <= 0:  # all are 1
        return [(n * up, p**n, q**n)]
    spend(n * KEPT_NUMBER)
    down, odds, found = middle(log((1 - p) / (1 - q))), (p / (1 - p), q / (1 - q)), []
    a, b = (1 - p) ** n, (1 - q) ** n
    for k in range(n + 1):  # each from the previous one
        found.append((k * up + (n - k) * down, a, b))
        step = iv.mpf(n - k) / (k + 1)
        a, b = a * odds[0] * step, b * odds[1] * step
    return found


def ones_first(p: Number, q: Number) -> tuple[Number, Number]:
    """The probabilities of the value that is evidence for the first law, which counts as 1."""
    return (p, q) if p.mid.a >= q.mid.a else (1 - p, 1 - q)


def joined(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Groups of bits with the same two probabilities merged, the largest first; those that do not differ left out."""
    kinds: list[Group] = []
    for p, q, count in groups:
        if not count or p is q or p.a == p.b == q.a == q.b:  # equal enclosures need not be equal numbers
            continue
        p, q = ones_first(p, q)
        alike = (i for i, (r, s, _) in enumerate(kinds) if abs(p - r).b < _ALIKE.a and abs(q - s).b < _ALIKE.a)
        at = next(alike, len(kinds))
        known = kinds.pop(at) if at < len(kinds) else (p, q, 0)
        kinds.insert(at, (around([p, known[0]]), around([q, known[1]]), count + known[2]))
    return tuple(sorted(kinds, key=lambda kind: -kind[2]))
