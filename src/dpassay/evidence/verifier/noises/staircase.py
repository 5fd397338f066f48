"""Staircase noise: docs/proofs/staircase.md. Distances are in units of the sensitivity."""

from collections.abc import Sequence

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.lattice import Grid, Rungs
from dpassay.evidence.verifier.arithmetic.numbers import (
    ONE,
    ZERO,
    Number,
    cached,
    hull,
    is_infinite,
    iv,
    largest,
    middle,
    rounded_up,
    smallest,
    whole_part,
)
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.evidence.verifier.noises.losses import FiniteOutcomes, Loss, LossCurve, Summed, pure_loss
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, differing
from dpassay.evidence.verifier.regions.regions import INFINITE, ParsedStage, RegionShape, diameter

Sizes = Sequence[tuple[Number, int]]  # how far coordinates move, and how many move that far
_LISTED = 1024  # steps for which all losses are listed
_OF_A_STEP = 1 << 16  # the cost of one, in products of doubles


def _steps(size: Number) -> int:
    """The size rounded up; the most of an interval."""
    return max(1, rounded_up(size))


def _chance(stage: ParsedStage, size: Number, level: int) -> Number:
    """P(loss = level·ε), level ≥ 1, of staircase noise."""
    # It is continuous, so from here on the ends are enough, and much quicker than exact fractions.
    gamma, epsilon, plain = (hull(one, one) for one in (stage.numbers["gamma"], stage.numbers["epsilon"], size))
    return _chance_of(gamma, epsilon, plain, _steps(size), level)


@cached(4096)
def _chance_of(gamma: Number, epsilon: Number, size: Number, steps: int, level: int) -> Number:
    """P(loss = level·ε), level ≥ 1, of an output drawn around 0, the other value being at the size.

    From 0 on, an output is i steps down from the first value and i + level from the second where two intervals meet.
    Below 0 it is ⌈size⌉ steps farther down from the second on a part of each step, and one step less on the rest.
    """
    ratio = iv.exp(-epsilon)
    top = (1 - ratio) / (2 * (gamma + ratio * (1 - gamma)))
    near = max(0, whole_part((size + 1 - 2 * gamma - level) / 2))
    total = ZERO
    for i in range(max(0, near - 2), near + 4):
        low = largest([ZERO, i - 1 + gamma, size - gamma - i - level])
        high = smallest([i + gamma, size + 1 - gamma - i - level])
        total += ratio**i * largest([ZERO, high - low])
    part = largest([ZERO, smallest([ONE, size - steps + 1])])
    most = smallest([gamma, part]) + part * ratio / (1 - ratio)
    if level == steps:
        total += most
    elif level == steps - 1:
        total += largest([ZERO, 1 / (2 * top) - most])
    return top * total


def _rungs(stage: ParsedStage, size: Number) -> Rungs:
    """All losses from −⌈size⌉·ε on: minus a loss is e^−loss times as likely as the loss."""
    steps, ratio = _steps(size), iv.exp(-stage.numbers["epsilon"])
    if steps > _LISTED:
        raise CertificateError(f"a loss may have at most {_LISTED} steps")
    spend(steps * _OF_A_STEP)
    gains = [_chance(stage, size, level) for level in range(1, steps + 1)]
    falls = [chance * ratio**level for level, chance in enumerate(gains, start=1)]
    none = largest([ZERO, 1 - sum(gains, ZERO) - sum(falls, ZERO)])
    return Rungs(-steps, (*reversed(falls), none, *gains), stage.numbers["epsilon"])


def _one(stage: ParsedStage, size: Number, grid: Grid | None) -> Loss:
    rungs, unit = _rungs(stage, size), stage.numbers["epsilon"]
    steps = -rungs.start
    chances = [(rungs.chances[steps + i], rungs.chances[steps - i]) for i in range(1, steps + 1)]
    outcomes = FiniteOutcomes(tuple(chances))  # losses of at most 0 show nothing
    return LossCurve(
        steps * unit, lambda epsilon: outcomes.delta(epsilon, True), times=lambda n: Summed(((rungs, n),), grid)
    )


def _loss(stage: ParsedStage, sizes: Sizes, grid: Grid | None) -> Loss:
    if len(sizes) == 1 and sizes[0][1] == 1:
        return _one(stage, sizes[0][0], grid)
    return Summed(tuple((_rungs(stage, size), count) for size, count in sizes), grid)


def _two_largest(stage: ParsedStage, sizes: Sizes) -> Loss:
    """At δ > 0 what the two largest losses of the coordinate that moves farthest show."""
    unit, size = stage.numbers["epsilon"], max((size for size, _ in sizes), key=middle)
    levels = [level for level in (_steps(size), _steps(size) - 1) if level > 0]
    chances = [(p := _chance(stage, size, level), p * iv.exp(-unit * level)) for level in levels]
    outcomes = FiniteOutcomes(tuple(chances))
    pure = unit * sum(_steps(size) * count for size, count in sizes)
    return LossCurve(pure, lambda epsilon: outcomes.delta(epsilon, False))


def staircase_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """Each coordinate by its smallest possible move."""
    gaps = [(abs(gap) / stage.numbers["sensitivity"], count) for gap, count in differing(pair)]
    sizes = [(iv.mpf(size.a), count) for size, count in gaps if count and size.a > 0]
    if not sizes:
        return pure_loss(ZERO)
    if any(_steps(size) > _LISTED for size, _ in sizes):
        return _two_largest(stage, sizes)
    return _loss(stage, sizes, grid)


def staircase_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """All coordinates moved as far as one can be; or the largest loss, if no grid is given."""
    sizes = [diameter(shape, q) / stage.numbers["sensitivity"] for q in (INFINITE, 1.0)]
    if any(is_infinite(size) for size in sizes):
        raise CertificateError("nothing bounds the values before the noise")
    count = shape.most_differing
    if not count or sizes[0].b <= 0:
        return pure_loss(ZERO)
    farthest, whole = (_steps(size) for size in sizes)
    if farthest <= _LISTED and (count == 1 or step.grid is not None):
        return _loss(stage, [(iv.mpf(sizes[0].b), count)], step.grid)
    return pure_loss(stage.numbers["epsilon"] * min(count * farthest, count - 1 + whole))
