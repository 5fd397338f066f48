"""The loss of noisy max with Laplace or exponential noise. Proof: docs/proofs/noisy-max.md."""

from collections.abc import Iterator

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, exp, log, maximum, minimum, real
from dpassay.core.theorems import Theorem
from dpassay.exact.mechanisms.exponential_mechanism import score_spread, score_width
from dpassay.exact.mechanisms.questions import Surroundings, least_loss, profile_of, unbounded_advice
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.regions import Block, Pair, Region
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.noisy_max import GumbelMax, NoisyMax

INF = float("inf")
_MOST_TERMS = 1000  # of a sum; with more outputs only bounds are stated
_LEADS = ("1", "0.75", "0.5", "0.25", "0", "-1")  # of the first score before the pair's move, as fractions of that move


@profile_of.register(NoisyMax)
def _(stage: NoisyMax, around: Surroundings) -> PrivacyProfile:
    return around.of_names(noisy_max_profile(stage, around.outputs, around.anywhere))


@unbounded_advice.register(NoisyMax)
@unbounded_advice.register(GumbelMax)
def _(stage: NoisyMax | GumbelMax) -> str:
    return f"Bound the scores first, for example clamp(-C, C) | noisymax({stage.noise}, 4*C/eps)."


@least_loss.register(NoisyMax)
def _(stage: NoisyMax, pair: Pair) -> Number:
    against_equal = len(pair.blocks) == 2 and pair.blocks[0].count == 1
    return noisy_max_bound(stage, pair).pure if against_equal else ZERO


def noisy_max_profile(stage: NoisyMax, outputs: OutputRegion, anywhere: bool) -> PrivacyProfile:
    """Scores in a region; `anywhere`: the answers to a query can be any vectors, so base points are free."""
    region = outputs.region.one_copy
    if region.dim == 1:  # all scores are equal
        return PrivacyProfile((), (PureBound(ZERO, Theorem.NOISY_MAX),), (Theorem.NOISY_MAX,))
    if region.diameter(INF) == INFINITY:
        infinite = PairBound((PrivacyLoss(((AtomLoss((), ONE), 1),)),), Theorem.UNBOUNDED)
        shown = (Candidate(outputs.region.farthest(1), infinite),) if outputs.exact else ()
        return PrivacyProfile(shown, (PureBound(INFINITY, Theorem.NOISY_MAX),), (Theorem.UNBOUNDED,))
    spread, width = stage.rate * score_spread(region), stage.rate * score_width(region)
    pure = spread
    if width.b < INFINITY:
        chances = (first_chance(stage.noise, gap, outputs.region.dim) for gap in (width, -width))
        most, least = chances
        pure = minimum(spread, log(most / least))
    free = outputs.exact and anywhere and region.by_distance and region is outputs.region
    pairs: list[Pair] = []
    if outputs.exact and region is outputs.region:
        pairs = list(_free_pairs(region, spread / stage.rate) if free else _pairs(region))
    candidates = tuple(Candidate(pair, noisy_max_bound(stage, pair)) for pair in pairs)
    first = pairs[0] if pairs else None
    tails = real(spread.a) if free else None
    uppers = (PureBound(real(pure.b), Theorem.NOISY_MAX),)
    return PrivacyProfile(candidates, uppers, (Theorem.NOISY_MAX,), tail_lower_bound=tails, pair=first)


def _pairs(region: Region) -> Iterator[Pair]:
    """The first score against all others, which are equal: from far ahead of them to far behind."""
    n, cube = region.dim, region.cube_ends
    if cube is not None:
        low, high = cube
        yield Pair((Block(high, low, 1), Block(low, high, n - 1)))
    elif region.row_limits is not None:
        low, high = region.row_limits
        yield from (Pair((Block(high, low, 1), Block(rest, rest, n - 1))) for rest in (high, low))
    elif not region.by_distance:
        pair = region.farthest(INF)
        if len(pair.blocks) == 2 and pair.blocks[0].count == 1:
            yield pair


def _free_pairs(region: Region, move: Number) -> Iterator[Pair]:
    """The first score moves relative to the others as far as it may, from several positions."""
    n, p = region.dim, getattr(region, "p", INF)
    one_moves = region.monotone or p == 1
    if not one_moves and p < INF and n > 2:
        return  # all outputs but two would have to be out of reach
    for lead in _LEADS:
        ahead = move * real(lead)
        behind = ahead - move
        yield Pair(
            (Block(ahead, behind, 1), Block(ZERO, ZERO, n - 1))
            if one_moves
            else (Block(ahead - move / 2, behind, 1), Block(-move / 2, ZERO, n - 1))
        )


def noisy_max_bound(stage: NoisyMax, pair: Pair) -> PairBound:
    """The loss in both directions between two vectors with equal scores except the first; used as a lower bound."""
    first, others = pair.blocks
    n = others.count + 1
    p, q = (first_chance(stage.noise, stage.rate * (getattr(first, side) - getattr(others, side)), n) for side in "xy")
    law, other = ((one, maximum(1 - one, real("1e-60"))) for one in (p, q))
    return PairBound(
        tuple(PrivacyLoss(((AtomLoss.between(*way), 1),)) for way in ((law, other), (other, law))), Theorem.NOISY_MAX
    )


def first_chance(noise: str, gap: Number, n: int) -> Number:
    """The probability of the first of n outputs, whose score is `gap` scales above all others: points 3, 4.

    >>> from dpassay.core.numbers import middle
    >>> round(middle(first_chance("exponential", ONE, 2)), 9), round(middle(first_chance("laplace", ONE, 2)), 9)
    (0.816060279, 0.724090419)
    """
    size, half = abs(gap), real(2) ** -n
    small = exp(-size)
    if noise == "exponential":
        return small / n if gap.mid < 0 else _one_less_power(small, n) / (n * small)
    if gap.mid < 0:
        between_scores = size if n == 2 else (exp((n - 2) * size) - 1) / (n - 2)
        return half * exp(-(n - 1) * size) * (real(1) / n + between_scores) + small * (1 - half) / n
    last = small / 2
    ends = half * small / n + _one_less_power(last, n) / (n * small)
    if n <= _MOST_TERMS:
        return minimum(ONE, ends + small / 4 * _integral(size, last, n))
    rest = small * ((1 - last) ** n - half) / n
    return between(ends + rest, ONE)


def _integral(size: Number, last: Number, n: int) -> Number:
    """∫ (1 − y)^(n−1) y^−2 from e^−size/2 to 1/2, by parts."""
    total, power, half = ZERO, ONE, ONE
    for k in range(1, n - 1):
        power, half = power * (1 - last), half / 2
        total += (power - half) / k
    return (1 - last) ** (n - 1) / last - real(2) ** (2 - n) - (n - 1) * (size - total)


def _one_less_power(x: Number, n: int) -> Number:
    """1 − (1 − x)^n; for small x between nx − n(n−1)x²/2 and nx."""
    if (n * x).b < real("1e-20"):
        return between(n * x * (1 - (n - 1) * x / 2), n * x)
    return 1 - (1 - x) ** n
