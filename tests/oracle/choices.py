"""Choices of the largest score: noisy max by integrals of sums of exponentials, and top-k on a cube exactly.

For a set S of outputs the probability of S grows with the scores in S and falls with all others, in both mechanisms
(under top-k a score of S that rises may push out another one of S, which was no larger). So on a cube the largest
P(S) − e^ε Q(S) has the scores in S high and the others low, against the other way round: the size of S is all that
is left to try.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache

from mpmath import mp, mpf

from oracle.losses import ALL_LOST, INF, NO_LOSS, NOTHING_KNOWN, Ends, Finite, Truth, pure_delta
from oracle.text import Stage, Unreadable
from oracle.values import Values

BLUR = mpf(10) ** -40  # of what 50 digits lose
MOST = 24  # scores whose integrals are done for sets of all sizes


Series = dict[int, mpf]  # a sum of powers of y = e^−z


def _times(one: Series, other: Series) -> Series:
    made: Series = {}
    for i, a in one.items():
        for j, b in other.items():
            made[i + j] = made.get(i + j, mpf(0)) + a * b
    return made


def _cdf_power(noise: str, score: mpf, n: int, above: bool) -> Series:
    """F(z − score)^n, where z is above the score or below it."""
    if not above:
        return {-n: (mp.exp(-score) / 2) ** n} if noise == "laplace" else {0: mpf(int(n == 0))}
    c = mp.exp(score) / (2 if noise == "laplace" else 1)
    return {k: mp.binomial(n, k) * (-c) ** k for k in range(n + 1)}


@lru_cache(maxsize=4000)
def wins(noise: str, groups: tuple[tuple[mpf, int], ...]) -> tuple[mpf, ...]:
    """The probability that one given score of each group is the largest; groups are (score in scales, how many).

    ∫ f(z − u) F(z − u)^(n − 1) ∏ F(z − v)^m dz: between the scores the integrand is a sum of powers of e^−z.
    """
    count = sum(n for _, n in groups)
    with mp.workdps(60 + count):
        marks = [-INF, *sorted({score for score, _ in groups}), INF]

        def piece(i: int, low: mpf, high: mpf) -> mpf:
            score, above = groups[i][0], low >= groups[i][0]
            if noise == "exponential" and not above:
                return mpf(0)
            half = 2 if noise == "laplace" else 1
            made: Series = {1: mp.exp(score) / half} if above else {-1: mp.exp(-score) / half}
            for j, (other, n) in enumerate(groups):
                made = _times(made, _cdf_power(noise, other, n - (i == j), low >= other))
            ends = mp.exp(-high), mp.exp(-low)  # ∫ y^k dz = ∫ y^(k − 1) dy
            return mp.fsum(a * ((ends[1] ** k - ends[0] ** k) / k if k else high - low) for k, a in made.items() if a)

        return tuple(
            mp.fsum(piece(i, low, high) for low, high in itertools.pairwise(marks)) if n else mpf(0)
            for i, (_, n) in enumerate(groups)
        )


def pair_of_choices(noise: str, groups: Sequence[tuple[mpf, mpf, int]]) -> Truth:
    """Two vectors of scores, in scales: (first, second, how many)."""
    rows = [wins(noise, tuple((g[side], g[2]) for g in groups)) for side in (0, 1)]
    exact = Finite([[p * g[2] for p, g in zip(row, groups, strict=True)] for row in rows]).truth()

    def delta(e: mpf) -> Ends:
        low, high = exact.delta(e)
        return max(mpf(0), low - BLUR), high + BLUR

    return Truth((exact.pure[0] * (1 - BLUR), exact.pure[1] * (1 + BLUR)), delta)


def spread(v: Values) -> mpf:
    """The most by which one answer rises against another, answers being at most a distance apart."""
    if v.p == 2 and v.rounded:
        most = int(v.size)
        return mpf(max(a + int(mp.floor(mp.sqrt(v.size**2 - a * a) + mpf(10) ** -30)) for a in range(most + 1)))
    return v.size * (2 if mp.isinf(v.p) else 2 ** (1 - 1 / v.p))


def limits(v: Values, cube: tuple[mpf, mpf] | None) -> tuple[mpf, mpf]:
    """Between which all scores lie."""
    if v.kind in ("ball", "sphere"):
        return -v.size, v.size
    return (v.low, v.high) if v.kind == "rows" else cube or (mpf(0), mpf(1))


def noisy_max_truth(v: Values, noise: Stage, cube: tuple[mpf, mpf] | None, shown: bool) -> Truth:
    """Laplace or exponential noise on scores. `shown`: nothing is before that is not known, nothing comes after."""
    scale: mpf = noise.scale  # type: ignore[assignment]
    if v.dim * v.times == 1:
        return NO_LOSS
    if v.unbounded:
        return ALL_LOST if v.tight and shown and v.times == 1 else NOTHING_KNOWN
    if v.constant():
        return NO_LOSS
    if v.times > 1:
        raise Unreadable("copies of scores")
    # P(Z > t + c) ≥ e^−c P(Z > t): the tails' logarithms fall with a slope of at most 1; at −∞ the bound is reached.
    general = 2 * v.diameter(mpf("inf")) / scale
    if v.kind == "query":
        pure = spread(v) / scale
        known = Truth((pure, pure), lambda e: (mpf(0), pure_delta(pure, e)))
        return known if v.tight and shown else known.forgotten()
    hull = limits(v, cube)
    width = (hull[1] - hull[0]) / scale
    kind, n = str(noise.noise), v.dim
    if width > 200:
        raise Unreadable("scores far apart")
    first = max(wins(kind, ((width, 1), (mpf(0), n - 1)))[0], mpf(0))
    last = wins(kind, ((mpf(0), 1), (width, n - 1)))[0]
    pure = min(general, mp.log(first / last)) if last > 0 else general
    if v.kind == "rows":  # one score rises from the lowest to the height of all others, or all of the way
        behind = wins(kind, ((mpf(0), 1), (width, n - 1)))[0]
        least = mp.log(wins(kind, ((width, n),))[0] / behind) * (1 - BLUR) if v.tight and shown else mpf(0)
        return Truth((min(least, width), width), lambda e: (mpf(0), pure_delta(width, e)))
    if cube is None and v.kind not in ("minmax", "onehot"):
        return Truth((mpf(0), pure), lambda e: (mpf(0), pure_delta(pure, e)))
    if v.kind == "onehot":
        rest = (1 - first) / (n - 1) if n > 1 else mpf(0)
        row = [[first, rest, 1 - first - rest], [rest, first, 1 - first - rest]]
        known = _blurred(Finite(row).truth())
    else:
        known = _of_sets(lambda k: _sets(kind, width, n, k), n, pure)
    return known if v.tight and shown else known.forgotten()


def _sets(kind: str, width: mpf, n: int, k: int) -> tuple[mpf, mpf]:
    """The probability of k outputs that are ahead of all others, and behind all others."""
    high = k * wins(kind, ((width, k), (mpf(0), n - k)))[0]
    low = k * wins(kind, ((mpf(0), k), (width, n - k)))[0]
    return high, low


def _of_sets(both: Callable[[int], tuple[mpf, mpf]], n: int, pure: mpf) -> Truth:
    sizes = range(1, n) if n <= MOST else (1, n // 2, n - 1)

    def delta(e: mpf) -> Ends:
        if e >= pure * (1 + BLUR):
            return mpf(0), mpf(0)
        found = max(mpf(0), *(p - mp.exp(e) * q for p, q in map(both, sizes)))
        room = BLUR * (1 + mp.exp(e))
        return max(mpf(0), found - room), found + room if n <= MOST else max(found, pure_delta(pure, e))

    return Truth((pure * (1 - BLUR), pure * (1 + BLUR)), delta)


def _blurred(known: Truth) -> Truth:
    low, high = known.pure
    room = lambda e: BLUR * (1 + mp.exp(e))  # noqa: E731
    return Truth(
        (low * (1 - BLUR), high * (1 + BLUR)),
        lambda e: (max(mpf(0), known.delta(e)[0] - room(e)), known.delta(e)[1] + room(e)),
    )


def top_k_truth(v: Values, k: int, rate: mpf, cube: tuple[mpf, mpf] | None, shown: bool) -> Truth:
    """A choice among the k < n largest scores. Any set of scores lies in a cube, which bounds it from above."""
    n = v.dim
    if v.times > 1 or v.unbounded or v.kind == "query":
        return NOTHING_KNOWN
    hull = limits(v, cube)
    low = mp.exp(rate * (hull[0] - hull[1]))
    if low == 1:  # the same scores always, and of equal ones the first
        return NO_LOSS

    def both(size: int) -> tuple[mpf, mpf]:
        kept, left = min(size, k), max(0, k - (n - size))  # of S, where it is high and where it is low
        return kept / (kept + (k - kept) * low), left * low / (left * low + k - left)

    sizes = range(1, n) if n <= 400 else sorted({1, 2, n - k, n // 2, n - 1})

    def delta(e: mpf) -> Ends:
        found = max(mpf(0), *(p - mp.exp(e) * q for p, q in map(both, sizes)))
        return found, found if n <= 400 else mpf(1)

    known = Truth((INF, INF), delta, lambda order: (INF, INF))
    exact = v.tight and shown and (cube is not None or v.kind == "minmax")
    return known if exact else Truth((mpf(0), INF), lambda e: (mpf(0), delta(e)[1]))
