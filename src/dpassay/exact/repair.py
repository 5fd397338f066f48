"""What would make a refuted claim true: the same noise made large enough, and noise that suits the region better.

Each repair is proved by the analysis that judges claims, with the numbers shown in its text. One is called the least
only if the claim is refuted with 0.1% less noise.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from dpassay.core.functions.normal import gaussian_sigma
from dpassay.core.functions.roots import falling_root
from dpassay.core.guarantee import ApproxDP, EpsilonDelta, Guarantee, PureDP, make_guarantee
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, TIE, Number, double_above, double_below, log, middle, number, real, up
from dpassay.errors import InputError
from dpassay.exact import calibrate
from dpassay.exact.analysis import analyse, dropped_share, region_at
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.mechanisms.additive_noise import additive_uppers
from dpassay.exact.mechanisms.questions import unbounded_advice
from dpassay.exact.mechanisms.top_k import scores_kept
from dpassay.exact.pld.loss_components import LaplaceLoss
from dpassay.exact.profiles.bounds import ProfileBound, before_dropout
from dpassay.exact.profiles.dominating_pairs import dominating_pair_is_known
from dpassay.exact.profiles.levels import LevelBound
from dpassay.exact.profiles.profile import quick
from dpassay.exact.profiles.saddlepoint import SaddlepointBound
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Categories, Region, Repeated
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.bounds.scaling import Clip
from dpassay.pipeline.stages.exponential import Choice
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.stages.noises.directions import Direction
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.syntax import NORMS
from dpassay.values import dataclass

T = TypeVar("T")
USUAL_DELTA = "1e-6"
LESS, MORE = real("0.999"), real("1.001")


@dataclass(frozen=True)
class Repair:
    """A mechanism for which a guarantee holds, and how much noise it adds to each coordinate."""

    advice: str
    mechanism: Pipeline | None = None
    guarantee: Guarantee | None = None
    deviation: float | None = None

    def __str__(self) -> str:
        if self.mechanism is None:
            return self.advice
        noise = "" if self.deviation is None else f", standard deviation {self.deviation:.4g} per coordinate"
        return f"{self.mechanism}  ({self.guarantee}{noise})\n{self.advice}"


@dataclass(frozen=True)
class _Proposal:
    """A repair to be proved, and how to describe it if less noise of its kind would not be enough."""

    repair: Repair
    least: str = ""
    weaker: Pipeline | None = None  # the same with 0.1% less noise


def find_repairs(pipeline: Pipeline, neighbours: Neighbours, guarantee: EpsilonDelta) -> tuple[Repair, ...]:
    """Repairs in order: the same noise made large enough, then noise that suits the region better.

    >>> from dpassay.pipeline.parser import parse
    >>> first, *_ = find_repairs(parse("clip(l2, 1) | laplace(2)", dim=4), Neighbours(), PureDP(1))
    >>> print(first.mechanism)
    clip(l2, 1) | laplace(4)
    """
    positions = pipeline.noise_positions
    if len(positions) != 1:
        return (Repair("Use one noise stage, after the stage that bounds the value."),) if not positions else ()
    if guarantee.exact_epsilon == 0 and guarantee.exact_delta == 0:
        return (Repair("Nothing that depends on its input is 0-DP: claim a positive epsilon."),)
    task = _Task(_as_written(pipeline), positions[0], neighbours, guarantee)
    region, stage = task.outputs.region, task.stage
    if region.diameter(1) == INFINITY:
        return (Repair(unbounded_advice(stage)),)
    if stage.adds_to_vectors and isinstance(region, Categories):
        return (Repair("Release a category by randomized response: flip(exp(eps)/(exp(eps) + k - 1))."),)
    if scores_kept(pipeline, positions[0]):
        return _without_top_k(task)
    if not Steps.of(pipeline).plain and not stage.chooses:
        proposals = writable(lambda: _for_all_steps(task))
    elif stage.adds_to_vectors or isinstance(stage, BoundedLaplace):
        proposals = _additive(task)
    else:
        proposals = writable(lambda: _discrete(task))

    def proved(proposal: _Proposal) -> Iterable[Repair]:
        return (_worded(one, neighbours) for one in (proposal,) if _holds(one.repair, neighbours))

    return tuple(repair for proposal in proposals for repair in writable(partial(proved, proposal)))


def writable(find: Callable[[], Iterable[T]]) -> list[T]:
    """What is found; nothing if its numbers are too large or too small to be written."""
    try:
        return list(find())
    except (InputError, ArithmeticError, ValueError):
        return []


def _as_written(pipeline: Pipeline) -> Pipeline:
    """The pipeline with each number as in its text, so that a repair's text is complete."""
    stages = []
    for stage in pipeline.stages:
        values = {} if stage.random else stage.syntax.parameters
        numbers = {name: getattr(stage, name) for name, parameter in values.items() if parameter.kind == "number"}
        changed = {name: number(middle(value)) for name, value in numbers.items()}
        stages.append(replace(stage, **changed) if changed else stage)  # type: ignore[type-var]
    return Pipeline(tuple(stages), pipeline.dim)


@dataclass(frozen=True)
class _Task:
    """A refuted claim: the pipeline, where its noise is, and what must hold."""

    pipeline: Pipeline
    position: int
    neighbours: Neighbours
    guarantee: EpsilonDelta

    @property
    def pure(self) -> bool:
        """Whether the claim is about δ = 0."""
        return isinstance(self.guarantee, PureDP)

    @property
    def stage(self) -> Stage:
        return self.pipeline.stages[self.position]

    @property
    def outputs(self) -> OutputRegion:
        """The values that two neighbors give to the noise."""
        return region_at(self.pipeline, self.position, self.neighbours)

    def inner(self, guarantee: EpsilonDelta | None = None) -> EpsilonDelta:
        """The guarantee that must hold without word dropout so that the claimed one holds with it."""
        outer = guarantee or self.guarantee
        mu = dropped_share(self.pipeline, self.neighbours)
        if mu == 0:
            return outer
        delta = outer.exact_delta / (1 - mu)  # may reach 1 if nearly all words are dropped; less is safe
        return make_guarantee(before_dropout(outer.exact_epsilon, mu), delta if delta.b < 1 else outer.exact_delta)

    def with_noise(self, noise: Stage, before: Stage | None = None) -> Pipeline:
        """The pipeline with another noise, and another stage before it if one is given."""
        stages = list(self.pipeline.stages)
        stages[self.position] = noise
        if before is not None:
            stages[self.position - 1] = before
        return Pipeline(tuple(stages), self.pipeline.dim)

    def proves(self, noise: Stage) -> bool:
        """Whether the claim is proved with this noise."""
        return _holds(Repair("", self.with_noise(noise), self.guarantee), self.neighbours)


def _holds(repair: Repair, neighbours: Neighbours) -> bool:
    """Whether the upper bounds alone prove the guarantee."""
    assert repair.mechanism is not None
    assert repair.guarantee is not None
    profile = analyse(repair.mechanism, neighbours)
    uppers = (*profile.quick_uppers, *profile.uppers)
    epsilon, delta = repair.guarantee.value, repair.guarantee.exact_delta
    if delta == 0:
        return any(bound.pure.b <= (epsilon * (1 + TIE)).b for bound in uppers)
    return any(bound.delta(epsilon).b <= (delta * (1 + TIE)).b for bound in uppers)


def _worded(proposal: _Proposal, neighbours: Neighbours) -> Repair:
    """The repair, called the least if the losses of real pairs refute the claim with less noise."""
    repair, weaker = proposal.repair, proposal.weaker
    if weaker is None or repair.guarantee is None:
        return repair
    profile, epsilon, delta = analyse(weaker, neighbours), repair.guarantee.value, repair.guarantee.exact_delta
    if delta == 0:
        refuted = profile.lower_pure.a > (epsilon * (1 + TIE)).b
    else:
        refuted = any(c.bound.delta(epsilon).a > (delta * (1 + TIE)).b for c in profile.candidates)
    return replace(repair, advice=proposal.least) if refuted else repair


def _for_all_steps(task: _Task) -> Iterable[_Proposal]:
    """The same noise made large enough for all steps, to three digits."""
    noise = task.stage.added_noise
    if noise is None or not noise.known_tails or (task.guarantee.exact_delta == 0 and not noise.flat_tails):
        return
    size = middle(noise.width)

    def scaled(factor: float) -> Additive:
        return Additive(noise.of_width(number(f"{size * factor:.3g}")))

    low, high = 0.0, 1.0  # powers of two
    while not task.proves(scaled(2**high)):
        low, high = high, 2 * high
        if high > 64:
            return
    while high - low > 0.01:
        middle_power = (low + high) / 2
        low, high = (low, middle_power) if task.proves(scaled(2**middle_power)) else (middle_power, high)
    found = scaled(2**high)
    advice = "Enough noise of this kind for all steps; less may suffice."
    yield _Proposal(Repair(advice, task.with_noise(found), task.guarantee, found.noise.deviation))


def _additive(task: _Task) -> list[_Proposal]:
    """Laplace, radial and Gaussian noise for the region, the kind that was used first."""
    laplace, gaussian = writable(lambda: [_laplace(task)]), writable(lambda: [_gaussian(task)])
    most = max((each.repair.deviation or 0.0 for each in laplace), default=math.inf)
    radial = writable(lambda: _radial(task))
    own = isinstance(task.stage, Radial)
    radial = [each for each in radial if own or (each.repair.deviation or 0) < most]
    sharper = writable(lambda: _sharper_clip(task, most))
    if own:
        return [*radial, *laplace, *sharper, *gaussian]
    if not task.pure and isinstance(task.stage.added_noise, Gaussian):
        return [*gaussian, *laplace, *sharper]
    return [*laplace, *radial, *sharper, *gaussian]


def _laplace(task: _Task) -> _Proposal:
    region, inner = task.outputs.region, task.inner()
    scale = _laplace_scale(region, inner)
    repair = Repair(
        "Enough Laplace noise; less may suffice.",
        task.with_noise(Additive(Laplace(scale))),
        task.guarantee,
        Laplace(scale).deviation,
    )
    # At δ > 0 not every region has a known dominating pair; without one, no pair shows that less noise is too little.
    sharp = inner.exact_delta == 0 or (task.outputs.exact and dominating_pair_is_known(Laplace(scale), region))
    weaker = task.with_noise(Additive(Laplace(scale * LESS))) if sharp else None
    return _Proposal(repair, "The least Laplace noise that satisfies the claim.", weaker)


def _sharper_clip(task: _Task, most: float) -> Iterable[_Proposal]:
    """Laplace noise after clipping in l1, in place of clipping in another norm."""
    last, region = task.pipeline.stages[task.position - 1] if task.position else None, task.outputs.region
    if not isinstance(last, Clip) or last.norm == "l1" or region.dim == 1:
        return
    apart = last.radius if region.by_distance else 2 * last.radius
    scale = number(double_above(calibrate.laplace_scale(task.inner(), apart)))
    deviation = Laplace(scale).deviation
    if deviation < most:
        clipped = task.with_noise(Additive(Laplace(scale)), Clip("l1", last.radius))
        advice = "Clipping in l1 instead needs less Laplace noise, but shortens vectors more."
        yield _Proposal(Repair(advice, clipped, task.guarantee, deviation))


def _radial(task: _Task) -> Iterable[_Proposal]:
    """Radial noise: in the norm that was used, or in the one that needs the smallest standard deviation."""
    region, inner = task.outputs.region, task.inner()
    if inner.exact_delta != 0 or isinstance(region, Repeated):
        return
    norms = ["l2", "linf"]
    if isinstance(task.stage, Radial) and task.stage.norm in NORMS:
        norms = [task.stage.norm]
    stages = [Radial(norm, number(1)) for norm in norms]
    needed = [real(region.diameter(stage.q).b) / inner.exact_epsilon for stage in stages]
    stages = [Radial(each.norm, number(double_above(scale))) for each, scale in zip(stages, needed, strict=True)]
    noise = min(stages, key=lambda stage: stage.deviation(region.dim))
    what = f"radial noise in {noise.norm}"
    repair = Repair(
        f"Enough {what}; less may suffice.", task.with_noise(noise), task.guarantee, noise.deviation(region.dim)
    )
    weaker = task.with_noise(replace(noise, scale=noise.scale * LESS))
    yield _Proposal(repair, f"The least {what} that satisfies the claim.", weaker)


def _gaussian(task: _Task) -> _Proposal:
    guarantee, advice = task.guarantee, "Enough Gaussian noise; less may suffice."
    if task.pure:
        advice = f"Gaussian noise, if delta = {USUAL_DELTA} is acceptable."
        guarantee = ApproxDP(guarantee.exact_epsilon, USUAL_DELTA)
    sigma = number(double_above(gaussian_sigma(task.inner(guarantee), real(task.outputs.region.diameter(2).b))))
    repair = Repair(advice, task.with_noise(Additive(Gaussian(sigma))), guarantee, middle(sigma))
    sharp = task.outputs.exact and not task.pure
    weaker = task.with_noise(Additive(Gaussian(sigma * LESS))) if sharp else None
    return _Proposal(repair, "The least Gaussian noise that satisfies the claim.", weaker)


def _laplace_scale(region: Region, guarantee: EpsilonDelta) -> Number:
    """The smallest Laplace scale that the available theorems prove for a region."""
    distance = real(region.diameter(1).b)
    if guarantee.exact_delta == 0:
        return number(double_above(distance / guarantee.exact_epsilon))

    def excess(log_scale: float, near: bool = False) -> float:
        uppers = additive_uppers(Laplace(number(math.exp(log_scale))), region)
        epsilon = guarantee.exact_epsilon
        deltas = (
            _near_delta(bound, epsilon) if near else up(quick(bound).delta(epsilon))
            for bound in uppers
            if not isinstance(bound, LevelBound)  # a table at each scale takes too long
        )
        return math.log(max(min(deltas), 1e-300)) - middle(log(guarantee.exact_delta))

    # A single coordinate needs this much; all of them together never need more than at δ = 0.
    one = middle(calibrate.laplace_scale(guarantee, real(region.diameter(float("inf")).a)))
    low, high = math.log(one) - 1e-6, math.log(middle(calibrate.laplace_scale(guarantee, distance))) + 1e-6
    if excess(low) <= 0:
        return number(math.exp(low))
    while excess(high) > 0:
        high += math.log(2)
    shift = 1 - low  # the root finder's width is relative
    # About where it is, and from there as far as it takes in one direction or the other.
    _, start = falling_root(lambda t: excess(t - shift, near=True), 1.0, high + shift, 1e-4)
    low, high, reach = 1.0, high + shift, 0.001
    if excess(start - shift) > 0:
        low = start
        while low + reach < high and excess(low + reach - shift) > 0:
            low, reach = low + reach, 4 * reach
        high = min(high, low + reach)
    else:
        high = start
        while high - reach > low and excess(high - reach - shift) <= 0:
            high, reach = high - reach, 4 * reach
        low = max(low, high - reach)
    _, high = falling_root(lambda t: excess(t - shift), low, high, 1e-4)
    return number(math.exp(high - shift))


def _near_delta(bound: ProfileBound, epsilon: Number) -> float:
    """About what δ(ε) is, to search with: of equal coordinates by the saddle point, without a grid."""
    if bound.losses:
        equal = [loss.components[0] for loss in bound.losses if len(loss.components) == 1]
        if len(equal) == len(bound.losses) and all(isinstance(one, LaplaceLoss) and n > 1 for one, n in equal):
            return max(SaddlepointBound(one.pure, math.inf, n).near_delta(epsilon) for one, n in equal)
    return bound.near_delta(epsilon) if isinstance(bound, SaddlepointBound) else up(quick(bound).delta(epsilon))


def _discrete(task: _Task) -> Iterable[_Proposal]:
    """Randomized response with the right probability, or an exponential mechanism with a smaller rate."""
    region, stage = task.outputs.region, task.stage
    if isinstance(stage, Choice):
        return _choose(task, stage)
    if isinstance(stage, Direction):
        return _directions(task, stage)
    categories, differing = 2, round(middle(region.diameter(1)))
    if isinstance(region, Categories):
        categories, differing = region.size, 1

    def flip(epsilon: Number) -> Flip:
        return Flip(number(double_below(calibrate.flip_keep(epsilon, categories))))

    inner = task.inner()
    loss = inner.exact_epsilon / differing
    if inner.exact_delta != 0:
        loss = _largest(lambda each: task.proves(flip(each)), loss, real(max(loss.b, inner.exact_delta.b / differing)))
    kind = "symmetric flipping" if isinstance(stage, BitNoise) else "flipping"
    repair = Repair(f"Enough {kind}; less may suffice.", task.with_noise(flip(loss)), task.guarantee)
    digits = "" if inner.exact_delta == 0 else ", to three digits"
    least = f"The least {kind} that satisfies the claim{digits}."
    return [_Proposal(repair, least, task.with_noise(flip(loss * MORE)))]


def _choose(task: _Task, stage: Choice) -> Iterable[_Proposal]:
    """The exponential mechanism with the largest rate that is proved."""
    inner, distance = task.inner(), 2 * real(task.outputs.region.diameter(float("inf")).b)
    steps = Steps.of(task.pipeline).count
    smallest = real(max(inner.exact_epsilon.a, inner.exact_delta.a)) / distance / steps
    rate = number(double_below(_largest(lambda each: task.proves(stage.at_rate(_below(each))), smallest, smallest)))
    large_enough, another, most = stage.least_noise
    repair = Repair(
        f"A {large_enough} enough; a {another} one may suffice.", task.with_noise(stage.at_rate(rate)), task.guarantee
    )
    least = f"The {most} that satisfies the claim, to three digits: the least noise of this kind."
    return [_Proposal(repair, least, task.with_noise(stage.at_rate(rate * MORE)))]


def _directions(task: _Task, stage: Direction) -> Iterable[_Proposal]:
    """The same noise with the largest concentration that is proved."""
    inner, unit = task.inner(), stage.largest_loss / stage.kappa
    kappa = real(max(inner.exact_epsilon.a, inner.exact_delta.a)) / unit
    if inner.exact_delta != 0:
        kappa = _largest(lambda each: task.proves(replace(stage, kappa=_below(each))), kappa, kappa)
    repair = Repair(
        "A kappa that is small enough; a larger one may suffice.", task.with_noise(replace(stage, kappa=_below(kappa)))
    )
    digits = "" if inner.exact_delta == 0 else ", to three digits"
    least = f"The largest kappa that satisfies the claim{digits}: the least noise of this kind."
    weaker = task.with_noise(replace(stage, kappa=_below(kappa * MORE)))
    return [_Proposal(replace(repair, guarantee=task.guarantee), least, weaker)]


def _without_top_k(task: _Task) -> tuple[Repair, ...]:
    """Every output must be possible for every input: all scores take part, at a smaller rate if necessary."""
    stages = (*task.pipeline.stages[: task.position - 1], *task.pipeline.stages[task.position :])
    without, advice = Pipeline(stages, task.pipeline.dim), "Leave topk out, so that every input can give every output."
    repair = Repair(advice, without, task.guarantee)
    if _holds(repair, task.neighbours):
        return (repair,)
    found = find_repairs(without, task.neighbours, task.guarantee)
    return tuple(replace(each, advice=f"Leave topk out. {each.advice}") for each in found)


def _below(value: Number) -> Number:
    return number(double_below(value))


def _largest(proved: Callable[[Number], bool], start: Number, step: Number) -> Number:
    """The largest value that can be proved, to one part in 10⁴, starting from one that is proved."""
    low, high = start, start + step
    for _ in range(60):
        if not proved(high):
            break
        low, high = high, high + 2 * (high - low)
    for _ in range(200):
        if (high - low).b <= (low * real("1e-4")).a:
            break
        centre = real((low + high).mid) / 2
        low, high = (centre, high) if proved(centre) else (low, centre)
    return low
