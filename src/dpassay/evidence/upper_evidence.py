"""What the verifier needs to check an upper bound: the theorem, the noise, an order, a tilt, a grid of losses.

Any order, tilt and step give a valid bound; the choices made here only make it a good one.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpassay.core.numbers import INFINITY, Number, digits, exactly, middle, number, real
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.sampled_pairs import ReplacedBound, SampledBound
from dpassay.exact.dataflow.sampling import BasicBound
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.loss_sum import LatticeSum
from dpassay.exact.pld.noises.integer import DiscreteGaussianLoss
from dpassay.exact.pld.noises.truncated_laplace import TruncatedLaplaceLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss, SampledPower
from dpassay.exact.pld.sampled.laplace import SampledLaplaceLoss
from dpassay.exact.pld.sampled.laplace_sum import SampledSumLoss
from dpassay.exact.profiles.bounded_range import RangeSteps
from dpassay.exact.profiles.bounds import DropoutBound, PairBound, ProfileBound, RenyiBound, ZcdpBound, before_dropout
from dpassay.exact.profiles.levels import LevelBound
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.exact.profiles.saddlepoint import SaddlepointBound
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.sampling import Poisson, Subsample

Data = dict[str, Any]
LEVELS = (1 << 12, 1 << 14, 1 << 16)  # approximate numbers of points of a sum of losses to keep
_WIDTH = 11.0  # standard deviations kept on either side
_MOST_CELLS = 1 << 15  # of one coordinate, as the verifier allows


def enclosed(value: Number) -> list[str]:
    """A number as two decimals that enclose it."""
    return list(digits(value))


def point(value: Number) -> list[str]:
    """The lower end of a number, given as both ends."""
    return [digits(value)[0]] * 2


def upper_evidence(
    pipeline: Pipeline, profile: PrivacyProfile, epsilon: Number, delta: Number, levels: tuple[int, ...]
) -> Iterator[Data]:
    """Evidence for (ε, δ)-DP from each upper bound, for each noise that it may refer to."""
    for position in pipeline.noise_positions or [len(pipeline.stages)]:
        for bound in profile.uppers:
            for found in _of_bound(bound, epsilon, delta, profile.mu, levels):
                yield {**found, "noise": position}
        if isinstance(first := pipeline.stages[0], Poisson | Subsample):  # what follows from pure ε
            theorem = Theorem.POISSON if isinstance(first, Poisson) else Theorem.FIXED_SIZE
            yield {"theorem": theorem.value, "noise": position}
        if isinstance(first, Poisson | Subsample) or profile.mu.b > 0:  # who takes part is revealed at worst
            yield {"theorem": Theorem.UNBOUNDED.value, "noise": position}


def _of_bound(
    bound: ProfileBound, epsilon: Number, delta: Number, mu: Number, levels: tuple[int, ...]
) -> Iterator[Data]:
    theorem = {"theorem": bound.theorem.value}
    if isinstance(bound, BasicBound):
        yield from _of_bound(bound.bound, epsilon / bound.count, delta / bound.count, mu, levels)
    elif isinstance(bound, SampledBound):
        yield from _of_bound(bound.bound, before_dropout(epsilon, bound.mu), delta, mu, levels)
    elif isinstance(bound, ReplacedBound):
        for each in (bound.alone, bound.apart):
            yield from _of_bound(each, bound.inner(epsilon), delta, mu, levels)
    elif isinstance(bound, DropoutBound):
        yield from _of_bound(bound.bound, before_dropout(epsilon, mu), delta, mu, levels)
    elif isinstance(bound, RenyiBound | RangeSteps | ZcdpBound):
        order = bound.best_order(epsilon) if delta.b > 0 else number(2)
        yield {**theorem, "order": point(real(order.mid))}
    elif isinstance(bound, SaddlepointBound | LevelBound):
        if delta.b > 0:
            yield {**theorem, "tilt": enclosed(exactly(bound.best_tilt(epsilon)))}
    else:
        names = (Theorem.WORST_SHIFT, Theorem.LAPLACE) if of_sampled_laplace(bound) else (bound.theorem,)
        for grid in grids(bound, epsilon, delta, levels):
            yield from ({"theorem": name.value, **grid} for name in names)


def grids(
    bound: ProfileBound, epsilon: Number, delta: Number, levels: tuple[int, ...], below: bool = False
) -> Iterator[Data]:
    """No grid first, then grids that get finer, for sums of losses at δ > 0."""
    yield {}
    if not isinstance(bound, PairBound) or delta.b <= 0 or bound.theorem in (Theorem.UNBOUNDED, Theorem.NO_NOISE):
        return
    loss = max(bound.losses, key=lambda loss: loss.pure.a)
    if not loss.components:  # two inputs that never differ
        return
    if isinstance(component := loss.components[0][0], SampledLoss):
        for finer in (1.0, 0.5):
            yield {"grid": _sampled_grid(SampledPower(component, loss.components[0][1]), epsilon, delta, finer)}
        return
    if of_sampled_laplace(bound):
        larger = max(bound.losses, key=lambda loss: loss.delta_number(epsilon).a)
        for finer in (1.0, 0.5):
            yield {"grid": _sampled_grid(LatticeSum(larger.components), epsilon, delta, finer)}
        return
    lattice = all(isinstance(component, DiscreteGaussianLoss) for component, _ in loss.components)
    truncated = all(isinstance(component, TruncatedLaplaceLoss) for component, _ in loss.components)
    if sum(count for _, count in loss.components) > 1 and (loss.pure.b < INFINITY or lattice or truncated):
        for points in levels:
            yield {"grid": grid_for(loss, epsilon, points, below)}


def of_sampled_laplace(bound: ProfileBound) -> bool:
    """Whether a bound is about sampled steps with Laplace noise: then the evidence names the theorem about one step."""
    losses = bound.losses if isinstance(bound, PairBound) else ()
    return any(
        isinstance(component, SampledLaplaceLoss | SampledSumLoss)
        for loss in losses
        for component, _ in loss.components
    )


def _sampled_grid(steps: SampledPower | LatticeSum, epsilon: Number, delta: Number, finer: float) -> Data:
    """A grid for the sum of the losses of sampled steps."""
    step, tilt = steps.grid(epsilon, delta)
    return {"step": point(exactly(step * finer)), "tilt": point(exactly(tilt))}


def grid_for(loss: PrivacyLoss, epsilon: Number, points: int, below: bool) -> Data:
    """A grid on which a sum of losses is precise at an ε; one loss is a multiple of its step.

    From below the step is smaller by a negligible amount, for pairs that were moved slightly inwards.
    """
    coarse = loss.composed("delta-up", loss.step(1 << 12), epsilon=middle(epsilon))
    weights = coarse.mass / coarse.mass.sum()
    mean = float((weights * coarse.losses).sum())
    deviation = math.sqrt(max(float((weights * (coarse.losses - mean) ** 2).sum()), 1e-300))
    whole = 2 * sum(component.span * count for component, count in loss.components)
    width = min(whole, 2 * _WIDTH * deviation)
    widest, _ = max(loss.components, key=lambda part: part[0].span)
    copies = sum(count for _, count in loss.components)
    cells = max(1, points // (2 * copies), min(points // 16, math.floor(points * widest.span / max(width, 1e-300))))
    exact = not isinstance(widest, AtomLoss | DiscreteGaussianLoss)
    largest = widest.largest if isinstance(widest, TruncatedLaplaceLoss) else widest.pure
    span = real(largest.mid) if exact else number(widest.span)
    if below:
        span *= 1 - real("1e-33")
    tilt = number(float(np.round(coarse.tilt, 9)))
    return {"step": enclosed(span / min(cells, _MOST_CELLS - 1)), "tilt": enclosed(tilt)}
