"""Noisy max with Laplace or exponential noise: docs/proofs/noisy-max.md, with its own sums."""

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    hull,
    iv,
    largest,
    log,
    middle,
    smallest,
)
from dpassay.evidence.verifier.noises.discrete import score_spread, score_width
from dpassay.evidence.verifier.noises.losses import Loss, both_ways, pure_loss
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair
from dpassay.evidence.verifier.regions.regions import ParsedStage, RegionShape

_MOST_TERMS = 1000
_LEAST = iv.mpf("1e-70")


def noisy_max_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """At most the spread over the scale, and what the width allows: P is largest and smallest at its ends."""
    inner, scale = shape.one, stage.numbers["scale"]
    if inner.dim == 1:
        return pure_loss(ZERO)
    spread, width = iv.mpf(score_spread(inner).b) / scale, iv.mpf(score_width(inner).b) / scale
    if spread.b == INF:
        raise CertificateError("nothing bounds the scores")
    if width.b == INF:
        return pure_loss(spread)
    most, least = (_chance(stage.words["noise"], gap, shape.dim) for gap in (width, -width))
    return pure_loss(iv.mpf(smallest([spread, log(iv.mpf(most.b) / iv.mpf(least.a))]).b))


def noisy_max_pair(stage: ParsedStage, pair: Pair, grid: object = None) -> Loss:
    """Between two vectors whose scores are equal, except the first; the other outputs are equivalent."""
    p, q = first_chances(stage, pair)
    rest = [largest([1 - chance, _LEAST]) for chance in (p, q)]
    return both_ways([(p, q), (rest[0], rest[1])])


def first_chances(stage: ParsedStage, pair: Pair) -> tuple[Number, Number]:
    """The probability of the first output under both vectors."""
    if len(pair) != 2 or pair[0].count != 1 or any(block.positions != "all" for block in pair):
        raise CertificateError("the probabilities of noisy max are not known for such scores")
    first, others = pair
    scale, n = stage.numbers["scale"], others.count + 1
    gaps = ((first.x - others.x) / scale, (first.y - others.y) / scale)
    one, other = (_chance(stage.words["noise"], gap, n) for gap in gaps)
    return one, other


def _chance(noise: str, gap: Number, n: int) -> Number:
    """P of the output whose score is `gap` scales ahead of n − 1 equal ones (behind them if negative).

    It increases with the gap, so each end of the gap gives an end.
    """
    low, high = (_chance_at(noise, iv.mpf(end), n) for end in (gap.a, gap.b))
    return hull(low, high)


def _chance_at(noise: str, gap: Number, n: int) -> Number:
    e, ahead = iv.exp(-abs(gap)), middle(gap) > 0
    if noise == "exponential":
        return _missed(e, n) / (e * n) if ahead else e / n
    both = 1 / iv.mpf(2) ** n  # all noises are negative
    if not ahead:
        between = -gap if n == 2 else (iv.exp(-gap * (n - 2)) - 1) / (n - 2)
        return both * iv.exp(gap * (n - 1)) * (ONE / n + between) + e * (1 - both) / n
    outer = both * e / n + _missed(e / 2, n) / (e * n)
    if n > _MOST_TERMS:
        return hull(outer + e * ((1 - e / 2) ** n - both) / n, ONE)
    # The part in which the noise of the first is between −gap and 0, expanded in powers of x = 1 − y from 1/2 on.
    x, terms, powers, halves = 1 - e / 2, [], ONE, ONE
    for k in range(1, n - 1):
        powers, halves = powers * x, halves / 2
        terms.append((powers - halves) / k)
    inner = 2 * x ** (n - 1) / e - 4 * both - (n - 1) * (gap - sum(terms, ZERO))
    return smallest([ONE, outer + e / 4 * inner])


def _missed(x: Number, n: int) -> Number:
    """1 − (1 − x)^n, the probability that some of n events of probability x occurs."""
    if (x * n).b < iv.mpf("1e-25"):
        return hull(x * n * (1 - x * (n - 1) / 2), x * n)
    return 1 - (1 - x) ** n
