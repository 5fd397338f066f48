"""The loss of one coordinate with staircase noise: docs/proofs/staircase.md. Distances are in sensitivity units."""

from dpassay.core.numbers import ONE, ZERO, Number, ceiling, exp, maximum, middle, minimum
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.pipeline.staircase import Staircase
from dpassay.values import dataclass

MOST_STEPS = 1024  # a larger loss is not listed in full


@dataclass(frozen=True)
class StaircaseLoss(AtomLoss):
    """Losses that are integer multiples of `unit`, the noise's ε; so sums of many lie on one grid."""

    unit: float = 0.0

    def power(self, count: int) -> None:
        """Sums are left to the grid."""


def steps_apart(size: Number) -> int:
    """How many steps the densities of two values can be apart: the size rounded up; the most of an enclosure.

    >>> from dpassay.core.numbers import ceiling, number
    >>> steps_apart(number("1.2")), steps_apart(number("0.3") / number("0.3")), steps_apart(1 + number("1e-40"))
    (2, 1, 2)
    """
    return max(1, ceiling(size))


def staircase_loss(noise: Staircase, size: Number) -> AtomLoss:
    """The loss of one coordinate that moves by `size` sensitivities, above 0.

    >>> loss = staircase_loss(Staircase(1, 1, "0.5"), ONE)  # randomized response: (e − 1)/(e + 1)
    >>> round(middle(loss.delta(ZERO)), 9)
    0.462117157
    """
    steps, ratio = steps_apart(size), exp(-noise.epsilon)
    if steps > MOST_STEPS:
        return _two_largest(noise, size, steps)
    at_least = [_at_least(noise, size, steps, level) for level in range(1, steps + 1)]
    chances = [maximum(ZERO, p - q) for p, q in zip(at_least, [*at_least[1:], ZERO], strict=True)]
    above = [(noise.epsilon * level, p, p * ratio**level) for level, p in enumerate(chances, start=1)]
    none = maximum(ZERO, 1 - sum((p + q for _, p, q in above), ZERO))
    atoms = [*((-loss, q) for loss, _, q in reversed(above)), (ZERO, none), *((loss, p) for loss, p, _ in above)]
    return StaircaseLoss(tuple(atoms), unit=middle(noise.epsilon))


def _two_largest(noise: Staircase, size: Number, steps: int) -> AtomLoss:
    """Only the outputs with the two largest losses are distinguished, which is post-processing."""
    most, more = (_at_least(noise, size, steps, level) for level in (steps, steps - 1))
    p, ratio = (most, maximum(ZERO, more - most)), exp(-noise.epsilon)
    q = p[0] * ratio**steps, p[1] * ratio ** (steps - 1)
    return AtomLoss.between((*p, 1 - more), (*q, 1 - q[0] - q[1]))


def _at_least(noise: Staircase, size: Number, steps: int, level: int) -> Number:
    """P(loss ≥ level·ε), level ≥ 1: all outputs up to some place; of the largest loss only a part of those below 0."""
    gamma, ratio = noise.gamma, exp(-noise.epsilon)
    near = max(0, int(middle((size + 1 - 2 * gamma - level) / 2)))
    places = (minimum(i + gamma, size + 1 - gamma - level - i) for i in range(max(0, near - 1), near + 3))
    up_to_there = ONE / 2 - _beyond(noise, maximum(ZERO, *places))
    if level < steps:
        return up_to_there + ONE / 2
    rest = maximum(ZERO, minimum(ONE, size - steps + 1))
    return up_to_there + _top(noise) * (minimum(gamma, rest) + rest * ratio / (1 - ratio))


def _top(noise: Staircase) -> Number:
    """The density of the highest step."""
    ratio = exp(-noise.epsilon)
    return (1 - ratio) / (2 * (noise.gamma + ratio * (1 - noise.gamma)))


def _beyond(noise: Staircase, place: Number) -> Number:
    """P(noise > place), at a place from 0 on; a convex function, the largest of its straight pieces."""
    ratio, near = exp(-noise.epsilon), int(middle(place + 1 - noise.gamma))
    pieces = (
        ratio**step * (step + noise.gamma - place + ratio / (1 - ratio)) for step in range(max(0, near - 1), near + 2)
    )
    return _top(noise) * maximum(*pieces)
