"""The true parameter of metric DP, Rényi DP, zCDP and Gaussian DP, with a witness and mechanisms that satisfy them.

docs/proofs/guarantees.md and docs/proofs/metric.md.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from dpassay.core.guarantee import GDP, ZCDP, Guarantee, MetricDP, RenyiDP
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, TIE, Number, as_written, double_above, number, real, sqrt
from dpassay.core.theorems import Theorem
from dpassay.exact.analysis import analyse
from dpassay.exact.guarantees.gdp import gdp
from dpassay.exact.guarantees.metric import conversion, loss_per_unit, metric_witness
from dpassay.exact.guarantees.renyi import Shown, renyi, zcdp
from dpassay.exact.profiles.profile import PrivacyProfile, enclose
from dpassay.exact.repair import Repair, writable
from dpassay.exact.witness import Witness
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.mahalanobis import Mahalanobis
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.syntax import NORMS
from dpassay.values import dataclass

NonEpsilonGuarantee: TypeAlias = MetricDP | RenyiDP | ZCDP | GDP  # guarantees that are not stated by ε and δ
_LARGE = real(10) ** 8  # arithmetic may fail beyond it, and below its inverse


@dataclass(frozen=True)
class Measured:
    """An interval that contains the true parameter, two inputs that exceed the claim if known, and what it rests on."""

    value: Number
    witness: Witness | None
    theorems: tuple[Theorem, ...]
    lower_from: str = "nothing"

    @property
    def interval(self) -> Interval:
        """The true parameter in doubles, with its sources."""
        return Interval.around(self.value, self.lower_from, self.theorems[0].page)


def measure(
    pipeline: Pipeline, neighbours: Neighbours, profile: PrivacyProfile, guarantee: NonEpsilonGuarantee
) -> Measured:
    """What is known about the parameter of a guarantee.

    >>> from dpassay.pipeline.parser import parse
    >>> gaussian = parse("query(l2, 1) | gaussian(2)")
    >>> float(measure(gaussian, gaussian.neighbours, analyse(gaussian, gaussian.neighbours), ZCDP(1)).value.mid)
    0.125
    """
    if isinstance(guarantee, MetricDP):
        found = loss_per_unit(pipeline, neighbours, guarantee)
        source = "the loss of pairs of inputs, docs/proofs/metric.md" if found.value.a > 0 else "nothing"
        return Measured(found.value, metric_witness(pipeline, found, guarantee), found.theorems, source)
    shown, upper = _shown(profile, guarantee)
    theorems = tuple(dict.fromkeys([Theorem.GUARANTEES, *profile.theorems, *(b.theorem for b in profile.uppers[:1])]))
    if shown.candidate is None or shown.at is None:
        return Measured(enclose(shown.value, upper), None, theorems)
    at = "epsilon" if isinstance(guarantee, GDP) else "order"
    source = f"the exact loss of a pair of neighbors, at {at} {as_written(real(shown.at.mid))[:9]}"
    return Measured(enclose(shown.value, upper), Witness(shown.candidate.pair), theorems, source)


def _shown(profile: PrivacyProfile, guarantee: RenyiDP | ZCDP | GDP) -> tuple[Shown, Number]:
    if isinstance(guarantee, RenyiDP):
        return renyi(profile, guarantee.exact_order)
    return zcdp(profile) if isinstance(guarantee, ZCDP) else gdp(profile)


def repairs(pipeline: Pipeline, neighbours: Neighbours, guarantee: NonEpsilonGuarantee) -> tuple[Repair, ...]:
    """The same pipeline with noise that satisfies the guarantee, each proved by the same check."""
    if len(pipeline.noise_positions) != 1:
        return ()
    position = pipeline.noise_positions[0]
    region = pipeline.output_regions()[position].region
    if not pipeline.stages[position].adds_to_vectors or guarantee.value.a <= 0:
        return ()
    own = pipeline.stages[position]
    noises = writable(lambda: _noises(region.dim, region.diameter(2), guarantee))
    if isinstance(own, Mahalanobis) and isinstance(guarantee, MetricDP):
        noises = [*writable(lambda: [_more(own, pipeline, neighbours, guarantee)]), *noises]

    def proved(noise: Stage, deviation: float) -> Iterator[Repair]:
        stages = (*pipeline.stages[:position], noise, *pipeline.stages[position + 1 :])
        repaired = replace(pipeline, stages=stages)
        held = measure(repaired, neighbours, analyse(repaired, neighbours), guarantee)
        if held.value.b <= (guarantee.value * (1 + TIE)).b:  # exactly enough noise is a tie
            yield Repair("Enough noise; less may suffice.", repaired, guarantee, deviation)

    return tuple(repair for each in noises for repair in writable(partial(proved, *each)))


def _more(
    own: Mahalanobis, pipeline: Pipeline, neighbours: Neighbours, guarantee: MetricDP
) -> tuple[Mahalanobis, float]:
    """More of the same Mahalanobis noise, and its standard deviation."""
    over = real(loss_per_unit(pipeline, neighbours, guarantee).value.b) / guarantee.value
    enough = replace(own, scale=number(double_above(own.scale * over))) if over.b < INFINITY else own
    return enough, enough.deviation(pipeline.output_regions()[pipeline.noise_positions[0]].region.dim)


def _noises(dim: int, diameter: Number, guarantee: NonEpsilonGuarantee) -> list[tuple[Stage, float]]:
    """Noises that satisfy a guarantee, with the standard deviation of each coordinate."""
    if isinstance(guarantee, MetricDP) and guarantee.metric == "mahalanobis":
        return []
    if isinstance(guarantee, MetricDP):
        metric = "l2" if guarantee.metric == "angle" else guarantee.metric
        scales = [conversion(1, NORMS[metric], dim) / guarantee.value, 1 / guarantee.value]
        laplace, radial = (number(double_above(scale)) for scale in scales)
        ball = Radial(metric, radial)
        return [(ball, ball.deviation(dim)), (Additive(Laplace(laplace)), Radial("l1", laplace).deviation(dim))]
    if diameter.b == INFINITY:
        return []
    if isinstance(guarantee, GDP):
        sigma = diameter / guarantee.exact_mu
    elif isinstance(guarantee, ZCDP):
        sigma = diameter / sqrt(2 * guarantee.exact_rho)
    else:
        sigma = diameter * sqrt(guarantee.exact_order / (2 * guarantee.exact_epsilon))
    double = double_above(sigma)
    return [(Additive(Gaussian(number(double))), double)]


def has_extreme_numbers(pipeline: Pipeline, guarantee: Guarantee) -> bool:
    """Whether some number is so large or so small that arithmetic may fail."""
    numbers = [guarantee.value, guarantee.exact_delta, 1 - guarantee.exact_delta]
    numbers += [value for stage in pipeline.stages for value in vars(stage).values() if isinstance(value, Number)]
    noises = [stage.added_noise for stage in pipeline.stages if stage.added_noise is not None]
    numbers += [value for noise in noises for value in vars(noise).values() if isinstance(value, Number)]
    return any(abs(one).b > _LARGE or 0 < abs(one).b < 1 / _LARGE for one in numbers)
