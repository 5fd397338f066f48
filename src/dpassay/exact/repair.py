"""What would make a refuted claim true: the least noise of the same kind, and better noise for the region."""

import math
from dataclasses import dataclass

from dpassay.core.guarantee import ApproxDP, Guarantee, PureDP, make_guarantee
from dpassay.core.neighbours import Neighbours
from dpassay.core.normal import gaussian_sigma
from dpassay.core.numbers import INFINITY, TIE, Number, double_above, double_below, iv, middle, number, up
from dpassay.core.roots import falling_root
from dpassay.exact import calibrate
from dpassay.exact.analysis import additive_uppers, analyse, dropped_share, region_at
from dpassay.exact.dominating_pairs import dominating_pair_is_known
from dpassay.exact.profile_bounds import before_dropout
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Categories, Region, SensitivityBall
from dpassay.pipeline.stages.additive import Additive
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.radial import Radial
from dpassay.pipeline.stages.scaling import Clip

USUAL_DELTA = "1e-6"
MORE_THAN_NEEDED = "The least Laplace noise for which the claim can be proved; somewhat less may do."


@dataclass(frozen=True)
class Repair:
    """A mechanism for which a guarantee holds, and how much noise it adds to each coordinate."""

    advice: str
    mechanism: Pipeline | None = None
    guarantee: Guarantee | None = None
    deviation: float | None = None


def find_repairs(pipeline: Pipeline, neighbours: Neighbours, guarantee: Guarantee) -> tuple[Repair, ...]:
    """Repairs in order: the same noise made large enough, then what suits the region better.

    >>> from dpassay.pipeline.parser import parse
    >>> first, *_ = find_repairs(parse("clip(l2, 1) | laplace(2)", dim=4), Neighbours(), PureDP(1))
    >>> print(first.mechanism)
    clip(l2, 1) | laplace(4)
    """
    positions = pipeline.noise_positions
    if len(positions) != 1:
        return (Repair("Use one noise stage, after the stage that bounds the value."),) if not positions else ()
    position = positions[0]
    outputs, stage = region_at(pipeline, position, neighbours), pipeline.stages[position]
    if guarantee.exact_epsilon == 0 and guarantee.exact_delta == 0:
        return (Repair("Nothing that depends on its input is 0-DP: claim a positive epsilon."),)
    if outputs.region.diameter(1) == INFINITY:
        advice = "Bound the vector before the noise, for example with clip(l1, C) and then laplace(2*C/eps)."
        return (Repair(advice),)
    inner = _before_dropout(pipeline, neighbours, guarantee)
    if isinstance(stage, Additive | Radial):
        proposals = _additive(pipeline, position, outputs.region, inner, guarantee)
    else:
        proposals = _discrete(pipeline, position, inner, guarantee)
    return tuple(repair for repair in proposals if repair.mechanism is None or _holds(repair, neighbours))


def _holds(repair: Repair, neighbours: Neighbours) -> bool:
    """Whether the upper bounds alone prove the guarantee."""
    assert repair.mechanism is not None
    assert repair.guarantee is not None
    uppers = analyse(repair.mechanism, neighbours).uppers
    epsilon, delta = repair.guarantee.exact_epsilon, repair.guarantee.exact_delta
    if delta == 0:
        return any(bound.pure.b <= (epsilon * (1 + TIE)).b for bound in uppers)
    return any(bound.delta(epsilon).b <= (delta * (1 + TIE)).b for bound in uppers)


def _before_dropout(pipeline: Pipeline, neighbours: Neighbours, guarantee: Guarantee) -> Guarantee:
    """The guarantee that must hold before word dropout so that the claimed one holds behind it."""
    mu = dropped_share(pipeline, neighbours)
    if mu == 0:
        return guarantee
    return make_guarantee(before_dropout(guarantee.exact_epsilon, mu), guarantee.exact_delta / (1 - mu))


def _replaced(pipeline: Pipeline, position: int, noise: Stage, before: Stage | None = None) -> Pipeline:
    """The pipeline with another noise, and another stage before it if one is given."""
    stages = list(pipeline.stages)
    stages[position] = noise
    if before is not None:
        stages[position - 1] = before
    return Pipeline(tuple(stages), pipeline.dim)


def _additive(
    pipeline: Pipeline, position: int, region: Region, inner: Guarantee, guarantee: Guarantee
) -> list[Repair]:
    """Laplace and Gaussian noise for the region, the kind that was used first."""
    stage = pipeline.stages[position]
    if isinstance(region, Categories):
        return [Repair("Show a category by randomized response: flip(exp(eps)/(exp(eps) + k - 1)).")]
    scale = _laplace_scale(region, inner)
    # At δ > 0 the dominating pair is not known for every region; then the proof may ask for more than the truth.
    tight = isinstance(inner, PureDP) or dominating_pair_is_known(Laplace(scale), region)
    laplace = [
        Repair(
            "The least Laplace noise that keeps the claim." if tight else MORE_THAN_NEEDED,
            _replaced(pipeline, position, Additive(Laplace(scale))),
            guarantee,
            math.sqrt(2) * middle(scale),
        )
    ]
    last = pipeline.stages[position - 1] if position else None
    if isinstance(last, Clip) and last.norm != "l1" and region.dim > 1:
        apart = last.radius if isinstance(region, SensitivityBall) else 2 * last.radius
        sharper = number(double_above(calibrate.laplace_scale(inner, apart)))
        clipped = _replaced(pipeline, position, Additive(Laplace(sharper)), Clip("l1", last.radius))
        advice = "Clipping in l1 instead needs less Laplace noise, but shortens vectors more."
        laplace.append(Repair(advice, clipped, guarantee, math.sqrt(2) * middle(sharper)))
    gaussian = [_gaussian(pipeline, position, region, inner, guarantee)]
    first = isinstance(getattr(stage, "noise", None), Gaussian) and not isinstance(guarantee, PureDP)
    return gaussian + laplace if first else laplace + gaussian


def _gaussian(pipeline: Pipeline, position: int, region: Region, inner: Guarantee, guarantee: Guarantee) -> Repair:
    advice = "The least Gaussian noise that keeps the claim."
    if isinstance(guarantee, PureDP):
        advice = f"Gaussian noise, if delta = {USUAL_DELTA} is acceptable."
        guarantee = ApproxDP(guarantee.exact_epsilon, USUAL_DELTA)
        inner = ApproxDP(inner.exact_epsilon, USUAL_DELTA)
    sigma = number(double_above(gaussian_sigma(inner, iv.mpf(region.diameter(2).b))))
    return Repair(advice, _replaced(pipeline, position, Additive(Gaussian(sigma))), guarantee, middle(sigma))


def _laplace_scale(region: Region, guarantee: Guarantee) -> Number:
    """The least Laplace scale that the theorems at hand prove for a region."""
    distance = iv.mpf(region.diameter(1).b)
    if guarantee.exact_delta == 0:
        return number(double_above(distance / guarantee.exact_epsilon))

    def excess(log_scale: float) -> float:
        uppers = additive_uppers(Laplace(number(math.exp(log_scale))), region)
        delta = min(up(bound.delta(guarantee.exact_epsilon)) for bound in uppers)
        return math.log(max(delta, 1e-300)) - middle(iv.log(guarantee.exact_delta))

    # One coordinate alone needs this much; all of them together never more than at δ = 0.
    one = middle(calibrate.laplace_scale(guarantee, iv.mpf(region.diameter(float("inf")).a)))
    low, high = math.log(one) - 1e-6, math.log(middle(calibrate.laplace_scale(guarantee, distance))) + 1e-6
    if excess(low) <= 0:
        return number(math.exp(low))
    while excess(high) > 0:
        high += math.log(2)
    shift = 1 - low  # the root finder's width is relative
    _, high = falling_root(lambda t: excess(t - shift), 1.0, high + shift, 1e-5)
    return number(math.exp(high - shift))


def _discrete(pipeline: Pipeline, position: int, inner: Guarantee, guarantee: Guarantee) -> list[Repair]:
    """Randomized response with the right probability, or a slower exponential mechanism."""
    region, stage, epsilon = pipeline.output_regions()[position].region, pipeline.stages[position], inner.exact_epsilon
    if epsilon.a <= 0:
        return []
    noise: Stage
    if isinstance(stage, Choose):
        noise = Choose(number(double_below(epsilon / (2 * region.diameter(float("inf"))))))
    elif isinstance(region, Categories):
        noise = Flip(number(double_below(calibrate.flip_keep(epsilon, region.size))))
    else:
        differing = round(middle(region.diameter(1)))
        noise = Flip(number(double_below(calibrate.flip_keep(epsilon / differing))))
    exact = isinstance(inner, PureDP) and not isinstance(stage, Choose)
    advice = "The least noise of this kind that keeps the claim." if exact else "Enough noise of this kind."
    if isinstance(stage, BitNoise):
        advice = "Symmetric flips that keep the claim."
    return [Repair(advice, _replaced(pipeline, position, noise), guarantee)]
