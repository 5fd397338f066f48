"""The largest loss per unit of distance between two inputs, which metric DP bounds: docs/proofs/metric.md.

The stages before the noise stretch distances by at most a known factor, the noise loses at most a known amount per unit
of its own norm, and if the stages change nothing around some point, or only scale, both are attained.
"""

from collections.abc import Iterator
from dataclasses import replace

from dpassay.core.guarantee import MetricDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    between,
    cos,
    exp,
    log,
    minimum,
    number,
    real,
    sin,
    sqrt,
)
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.dataflow.post_processing import thresholds_told
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.guarantees.metric_bounded import bounded_rate, near_limit
from dpassay.exact.guarantees.metric_jumps import jump, least_loss_between
from dpassay.exact.mechanisms.sphere import SMALL_ANGLE, loss_per_distance, pair_angle, steepest_pair
from dpassay.exact.witness import BEYOND_FIRST, Witness
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Block, Pair
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.bounds.scaling import Clip, Normalise
from dpassay.pipeline.stages.bounds.squash import Squash
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.stages.noises.directions import Direction
from dpassay.pipeline.stages.noises.mahalanobis import Mahalanobis
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.stages.noisy_max import NoisyMax
from dpassay.pipeline.syntax import NORMS
from dpassay.values import dataclass

_ON_SPHERE = (Theorem.SPHERE, Theorem.METRIC)


@dataclass(frozen=True)
class LossPerUnit:
    """Bounds on the largest loss per unit of distance; two inputs that come close to it, if known; their distance."""

    value: Number
    pair: Pair | None = None
    distance: Number = ONE
    theorems: tuple[Theorem, ...] = (Theorem.METRIC,)


def loss_per_unit(pipeline: Pipeline, neighbours: Neighbours, guarantee: MetricDP) -> LossPerUnit:
    """The largest loss of any two inputs, divided by their distance.

    >>> from dpassay.pipeline.parser import parse
    >>> found = loss_per_unit(parse("radial(l2, 0.1)", dim=300), Neighbours(), MetricDP(10, "l2"))
    >>> 10 in found.value
    True
    """
    if neighbours.kind != "any":
        raise InputError(f"metric DP is about any two inputs and their distance, not about {neighbours.kind}")
    if guarantee.metric == "angle" and pipeline.dim == 1:
        raise InputError("an angle needs vectors of at least two dimensions")
    steps = Steps.of(pipeline)
    if not steps.plain:
        if steps.sampling is not None:
            raise InputError(f"metric DP is about any two inputs; {steps.sampling.name} is about records")
        one = loss_per_unit(steps.inner, neighbours, guarantee)
        return replace(one, value=one.value * steps.count)
    stages, q = _from_vectors(pipeline, guarantee)
    noises = _noises(pipeline)
    if guarantee.metric in NORMS:  # angles are between vectors that are normalized already
        jumps, pair = _jump(pipeline, stages, guarantee, q)
        if jumps:
            theorems = (Theorem.METRIC,) if noises else (Theorem.NO_NOISE, Theorem.METRIC)
            return LossPerUnit(INFINITY, pair, pair.distance(q) if pair else ONE, theorems)
    if not noises:
        return LossPerUnit(between(ZERO, INFINITY), theorems=(Theorem.NO_NOISE,))
    if pipeline.output_regions()[pipeline.noise_positions[0]].region.diameter(float("inf")).b == 0:
        return LossPerUnit(ZERO)  # all inputs have the same value before the noise
    before, noise, after, dim = _around_noise(pipeline, stages)
    if isinstance(noise, BoundedLaplace):
        return _of_bounded(before, noise, after, q, dim)
    if isinstance(noise, Direction):
        return _of_directions(before, noise, after, guarantee, dim)
    if isinstance(noise, NoisyMax):
        return _of_noisy_max(before, noise, after, q, dim)
    stretch = ONE
    for stage in before:
        stretch = stretch * _stretch(stage, q, dim)
    rate = _rate(noise, q, dim, before)
    if guarantee.metric == "mahalanobis":
        rate, stretch = _in_own_norm(noise, stretch if before else None)
    upper = real(rate.b) * stretch
    told = thresholds_told(after)
    visible = told is not None and told.unlimited and len(noises) == 1
    if isinstance(noise, Radial):  # docs/proofs/radial.md, point 3
        visible = visible and all(stage.keeps == "all" or stage.name == "round" for stage in after)
    if noise.added_noise is not None and not noise.added_noise.known_tails:
        visible = visible and told is not None and told.everything  # the distinguishing event is not far out
    pair = _pair(guarantee, before, noise, q, dim, ONE) if visible and rate.a > 0 else None
    if pair is None:
        return LossPerUnit(between(ZERO, upper))
    lower = real(rate.a) * (real("0.25") if Squash("sigmoid") in before else ONE)
    known = None if any(isinstance(stage, Squash) for stage in before) else pair
    distance = SMALL_ANGLE if guarantee.metric == "angle" else pair.distance(q)
    if guarantee.metric == "mahalanobis" and isinstance(noise, Mahalanobis):
        distance = noise.distance(pair)
    return LossPerUnit(between(minimum(lower, upper), upper), known, distance)


def _jump(pipeline: Pipeline, stages: tuple[Stage, ...], guarantee: MetricDP, q: float) -> tuple[bool, Pair | None]:
    """Whether there are inputs ever nearer to each other that lose no less, with a pair that exceeds the claim."""
    start = len(pipeline.stages) - len(stages)
    dim = pipeline.output_regions()[start].region.dim
    if not pipeline.noise_positions:
        return jump(stages, None, (), dim, guarantee.value, q)
    position = pipeline.noise_positions[0] - start
    return jump(stages[:position], stages[position], stages[position + 1 :], dim, guarantee.value, q)


def _of_bounded(
    before: tuple[Stage, ...], noise: BoundedLaplace, after: tuple[Stage, ...], q: float, dim: int
) -> LossPerUnit:
    """Laplace noise between limits: nearest to a limit, where the chance to stay between them changes fastest."""
    theorems = (Theorem.BOUNDED_LAPLACE, Theorem.METRIC)
    rate, found = bounded_rate(before, noise)
    if rate.b <= 0:
        return LossPerUnit(ZERO, theorems=theorems)
    stretch, most = ONE, rate * conversion(1, q, dim)
    for stage in before:
        stretch = stretch * _stretch(stage, q, dim)
    told = thresholds_told(after)
    shown = told is not None and told.everything and not any(stage.random for stage in after)
    pair = near_limit(before, noise, found, q, dim, real("1e-12")) if shown else None
    if pair is None:
        return LossPerUnit(between(ZERO, most * stretch), theorems=theorems)
    return LossPerUnit(most, pair, pair.distance(q), theorems)


def _in_own_norm(noise: Stage, stretch: Number | None) -> tuple[Number, Number]:
    """The rate of Mahalanobis noise per distance in its own norm, and how far stages before it stretch distances."""
    if not isinstance(noise, Mahalanobis):
        raise InputError("the metric mahalanobis is that of the noise mahalanobis(scale, least, largest); use l2")
    return 1 / noise.scale, ONE if stretch is None else stretch * sqrt(noise.largest / noise.least)


def _of_noisy_max(
    before: tuple[Stage, ...], noise: NoisyMax, after: tuple[Stage, ...], q: float, dim: int
) -> LossPerUnit:
    """Scores as they come in lose the rate times their spread in the limit of an output far behind the others."""
    stretch = ONE
    for stage in before:
        stretch = stretch * _stretch(stage, q, dim)
    most, theorems = noise.rate * _score_rate(q, ZERO), (Theorem.NOISY_MAX, Theorem.METRIC)
    told = thresholds_told(after)
    if before or dim == 1 or told is None or not told.unlimited or any(s.random for s in after):
        return LossPerUnit(between(ZERO, most * stretch), theorems=theorems)
    if q == 2 and dim > 2:
        return LossPerUnit(most, theorems=theorems)
    far, step = 200 * noise.scale, noise.scale
    others = Block(far, far, dim - 1) if q == 1 else Block(far, far - step, dim - 1)
    pair = Pair((Block(ZERO, step, 1), others))
    return LossPerUnit(most, pair, pair.distance(q), theorems)


def _of_directions(
    before: tuple[Stage, ...], noise: Direction, after: tuple[Stage, ...], guarantee: MetricDP, dim: int
) -> LossPerUnit:
    """Random directions around unit vectors; normalize turns vectors near 0 into opposite ones, however close."""
    metric, told = guarantee.metric, thresholds_told(after)
    visible = told is not None and told.everything and not any(stage.random for stage in after)
    if not before:
        rate = loss_per_distance(noise, metric, dim)
        if not visible:
            return LossPerUnit(between(ZERO, rate), theorems=_ON_SPHERE)
        pair = steepest_pair(noise, metric, dim)
        angle = metric == "angle"
        return LossPerUnit(rate, pair, pair_angle(pair) if angle else pair.distance(NORMS[metric]), _ON_SPHERE)
    if not visible or before != (Normalise("l2"),):
        return LossPerUnit(between(ZERO, INFINITY), theorems=_ON_SPHERE)
    return LossPerUnit(INFINITY, theorems=_ON_SPHERE)


def near_pairs(pipeline: Pipeline, guarantee: MetricDP) -> Iterator[Pair]:
    """Two inputs whose loss per unit of distance is the largest, or approaches it as they shrink."""
    inner = Steps.of(pipeline).inner
    stages, q = _from_vectors(inner, guarantee)
    if guarantee.metric in NORMS and (found := _jump(inner, stages, guarantee, q)[1]) is not None:
        yield found
    if not inner.noise_positions:
        return
    before, noise, _, dim = _around_noise(inner, stages)
    for shrink in ("1", "1e-3", "1e-6", "1e-9", "1e-12"):
        if (pair := _pair(guarantee, before, noise, q, dim, real(shrink))) is not None:
            yield pair


def _around_noise(
    pipeline: Pipeline, stages: tuple[Stage, ...]
) -> tuple[tuple[Stage, ...], Stage, tuple[Stage, ...], int]:
    """The stages before the first noise, the noise, those after it, and the dimension of the noise."""
    position = stages.index(_noises(pipeline)[0])
    dim = pipeline.output_regions()[pipeline.noise_positions[0]].region.dim
    return stages[:position], stages[position], stages[position + 1 :], dim


def _pair(
    guarantee: MetricDP, before: tuple[Stage, ...], noise: Stage, q: float, dim: int, shrink: Number
) -> Pair | None:
    if isinstance(noise, Direction):
        return None if before else steepest_pair(noise, guarantee.metric, dim)
    if isinstance(noise, BoundedLaplace):
        return near_limit(before, noise, bounded_rate(before, noise)[1], q, dim, shrink)
    found = _on_sphere if guarantee.metric == "angle" else _shown
    return found(before, noise, q, dim, shrink)


def _noises(pipeline: Pipeline) -> list[Stage]:
    return [pipeline.stages[i] for i in pipeline.noise_positions]


def _from_vectors(pipeline: Pipeline, guarantee: MetricDP) -> tuple[tuple[Stage, ...], float]:
    """The stages whose inputs have the distance, and the norm in which it is measured; encode gives such vectors."""
    stages, metric = pipeline.stages, guarantee.metric
    while stages and stages[0].name == "encode":
        stages = stages[1:]  # the distance is between the vectors, as word mechanisms define it
    first = stages[0] if stages else None
    if first is None or first.on_words or first.takes_one_value or first.neighbours:
        what = "nothing" if first is None else first.name
        raise InputError(f"metric {metric} is a distance between vectors, but this pipeline begins with {what}")
    if metric != "angle":
        return stages, NORMS.get(metric, 2.0)
    if first.takes_unit_vectors:
        return stages, 2.0
    if not isinstance(first, Normalise) or first.norm != "l2":
        raise InputError("an angle is between unit vectors: begin with normalise(l2), or use another metric")
    return stages[1:], 2.0


def _stretch(stage: Stage, q: float, dim: int) -> Number:
    """How many times as far apart in lq as its inputs two outputs of a stage can be; infinity if unknown."""
    if isinstance(stage, Clip):
        p = NORMS[stage.norm]
        return (1 if p == 2 else 2) * conversion(p, q, dim) * conversion(q, p, dim)
    return stage.slope


def _rate(noise: Stage, q: float, dim: int, before: tuple[Stage, ...]) -> Number:
    """The largest loss of a noise per unit of lq distance between two values; 0 to infinity if unknown."""
    if isinstance(own := noise.added_noise, Laplace):
        return conversion(1, q, dim) / own.scale
    if own is not None:
        return INFINITY if own.fixed_loss else between(ZERO, INFINITY)
    if isinstance(noise, Mahalanobis) and dim > 1:  # along the first axis the smallest eigenvalue counts
        most = conversion(2, q, dim) / noise.one_dimensional
        return most if q <= 2 else between(conversion(2, q, dim) / (noise.scale * sqrt(noise.largest)), most)
    if isinstance(noise, Radial):
        return conversion(noise.q, q, dim) / noise.one_dimensional
    if isinstance(noise, Choose):
        return noise.rate * _score_rate(q, _least_chance(noise, dim, before))
    return between(ZERO, INFINITY)


def _least_chance(noise: Choose, dim: int, before: tuple[Stage, ...]) -> Number:
    """The smallest probability of an output of the exponential mechanism, with scores between limits or any scores."""
    if not before:
        return ZERO
    limits = before[-1].limits
    if len(before) > 1 or limits is None:
        return between(ZERO, 1 / real(dim))
    return 1 / (1 + (dim - 1) * exp(noise.rate * (limits[1] - limits[0])))


def _score_rate(q: float, least: Number) -> Number:
    """How fast the log-probability of the least likely output can change, per unit of lq that scores change."""
    if q == 2:
        return between(1 - least, sqrt(real(2))) if least.b > 0 else sqrt(real(2))
    return (1 - least) * (1 if q == 1 else 2)


def _shown(before: tuple[Stage, ...], noise: Stage, q: float, dim: int, shrink: Number) -> Pair | None:
    """Two inputs that the stages leave unchanged, or scale by their slope, and whose loss per unit is the largest.

    If that is a limit, they are near it: scores of an exponential mechanism, or values near 0 that are squashed.
    """
    if not all(stage.contracts for stage in before):
        return None
    if any(isinstance(stage, Squash) for stage in before[:-1]):
        return None
    centre, size = ZERO, ONE
    for stage in before:
        if stage.limits is not None:
            low, high = stage.limits
            if len(before) == 1:
                centre = (low + high) / 2
            size = minimum(size, high - centre, centre - low)
        if isinstance(stage, Clip):
            size = minimum(size, stage.radius / dim)
    if size.a <= 0:
        return None
    half = real(size.a) / 4 * shrink
    if isinstance(noise, Choose):
        return _scores(before, noise, half, q, dim)
    own = noise.q if isinstance(noise, Radial) else 1.0
    count = dim if own < q else 1
    rest = (Block(centre, centre, dim - count),) if count < dim else ()
    return Pair((Block(centre - half, centre + half, count), *rest))


def _on_sphere(before: tuple[Stage, ...], noise: Stage, q: float, dim: int, shrink: Number) -> Pair | None:
    """Two unit vectors at a small angle, in the direction in which the noise's norm is largest."""
    if before or not noise.adds_to_vectors:
        return None
    near, off = cos(SMALL_ANGLE * shrink), sin(SMALL_ANGLE * shrink)
    own = noise.q if isinstance(noise, Radial) else 1.0
    if own >= 2:  # in the direction of one coordinate
        blocks, used = [Block(ZERO, off, 1), Block(ONE, near, 1)], 2
    else:  # in a direction in which all coordinates move equally; all but one if their number is odd
        half = dim // 2
        one = 1 / sqrt(real(2 * half))
        blocks, used = [Block(one, one * (near + off), half), Block(-one, one * (off - near), half)], 2 * half
    return Pair((*blocks, *([Block(ZERO, ZERO, dim - used)] if dim > used else [])))


def _scores(before: tuple[Stage, ...], noise: Choose, half: Number, q: float, dim: int) -> Pair | None:
    """The lowest score rises a little, and except in l1 the others fall; they are as far apart as they may be."""
    limits = before[0].limits if before else None
    if dim == 1 or len(before) > 1 or (before and limits is None):
        return None
    low, high = limits or (ZERO, 200 / noise.rate)
    step = half * real("1e-6")
    if q == 2 and limits is None and dim > 2:  # one other is almost certain, and falls
        return Pair((Block(low, low + step, 1), Block(high, high - step, 1), Block(low, low, dim - 2)))
    others = Block(high, high, dim - 1) if q == 1 else Block(high, high - step, dim - 1)
    return Pair((Block(low, low + step, 1), others))


def conversion(p: float, q: float, dim: int) -> Number:
    """The largest lp norm of a vector whose lq norm is 1: n^max(0, 1/p − 1/q).

    >>> float(conversion(1, 2, 9).mid)
    3.0
    """
    gap = (ZERO if p == float("inf") else 1 / number(p)) - (ZERO if q == float("inf") else 1 / number(q))
    return real(dim) ** gap if gap.a > 0 else ONE


def metric_witness(pipeline: Pipeline, found: LossPerUnit, guarantee: MetricDP) -> Witness | None:
    """Two inputs that lose more than the claimed ε times their distance, if such are known, with an event."""
    pair = found.pair
    if pair is None:
        return None
    if found.value.a == INFINITY and guarantee.metric in NORMS:
        return Witness(pair)  # it was found for this claim
    noise = _noises(pipeline)[0]
    loss, own = least_loss_between(noise, pair), noise.added_noise
    if (loss - guarantee.value * found.distance).a <= 0:
        return None
    if not isinstance(own, Laplace) or noise is not pipeline.stages[-1]:
        return Witness(pair)
    count = sum(block.count for block in pair.blocks if not block.same)
    log_p = -count * log(real(2))
    return Witness(pair, BEYOND_FIRST, log_p, log_p - loss)
