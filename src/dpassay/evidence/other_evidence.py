"""What the verifier needs to check metric DP, Rényi DP, zCDP and Gaussian DP: theorems, pairs, orders, points."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dpassay.core.functions.normal import gaussian_delta
from dpassay.core.guarantee import GDP, ZCDP, MetricDP, RenyiDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exactly, middle, number, real, up
from dpassay.evidence.lower_evidence import lower_evidence, pair_data
from dpassay.evidence.upper_evidence import LEVELS, Data, enclosed, point, upper_evidence
from dpassay.exact.guarantees.gdp import largest_mu_shown, points_below
from dpassay.exact.guarantees.metric import near_pairs
from dpassay.exact.guarantees.renyi import NEAREST_ORDER, largest_rate_shown, pair_losses, rate_orders
from dpassay.exact.guarantees.true_parameter import NonEpsilonGuarantee
from dpassay.exact.profiles.bounded_range import RangeBound
from dpassay.exact.profiles.bounds import PairBound, ProfileBound
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.pipeline import Pipeline

_MOST_POINTS = 400  # as the verifier allows
_NEAR_ONE = ONE + real("1e-18")  # instead of the limit at order 1
# These theorems state what a pair loses at most; each is about some noises.
_LARGEST_LOSS: tuple[Data, ...] = (
    *({"theorem": name} for name in ("laplace", "gaussian", "radial", "one-sided", "mixture", "exponential", "sphere")),
    *({"theorem": name} for name in ("bounded-laplace", "truncated-laplace", "staircase", "discrete-laplace")),
    *({"theorem": name} for name in ("discrete-gaussian", "randomized-response", "noisy-max", "no-noise")),
    {"theorem": "post-processing", "thresholds": [["inf", "inf"]]},
)


def guarantee_data(guarantee: NonEpsilonGuarantee, value: Number | None = None) -> Data:
    """A guarantee, or the same kind with another value of its parameter."""
    data: Data = {"kind": guarantee.kind, "value": enclosed(guarantee.value if value is None else value)}
    if isinstance(guarantee, MetricDP):
        data["metric"] = guarantee.metric
    if isinstance(guarantee, RenyiDP):
        data["order"] = enclosed(guarantee.exact_order)
    return data


def other_upper_evidence(
    pipeline: Pipeline, profile: PrivacyProfile, guarantee: NonEpsilonGuarantee, value: Number
) -> Iterator[Data]:
    """Evidence that the parameter is at most a value, from each upper bound."""
    if isinstance(guarantee, MetricDP):
        for position in pipeline.noise_positions[:1]:
            yield {"theorem": "metric", "noise": position}
        return
    for bound in profile.uppers:
        alone, looked_at = replace(profile, uppers=(bound,)), _points(bound, guarantee, value)
        delta = number("1e-3") if looked_at and isinstance(guarantee, GDP) else ZERO  # where grids are of use
        half = bound.pure / 2 if bound.pure.b < INFINITY else ONE
        for found in upper_evidence(pipeline, alone, half, delta, LEVELS[:2]):
            yield found
            if looked_at:
                yield {**found, "points": looked_at}


def _points(bound: ProfileBound, guarantee: NonEpsilonGuarantee, value: Number) -> list[Any]:
    """Orders for zCDP, values of ε for Gaussian DP."""
    if bound.pure.b == INFINITY or not bound.pure.a > 0:
        return []
    if isinstance(guarantee, ZCDP):
        found = rate_orders(bound)
    elif isinstance(guarantee, GDP) and value.a > 0 and isinstance(bound, PairBound | RangeBound):
        found = [exactly(e) for e in points_below(lambda e: bound.delta(exactly(e)), up(bound.pure), value)]
    else:
        return []
    return [point(one) for one in found] if 1 < len(found) <= _MOST_POINTS else []


def other_lower_evidence(
    pipeline: Pipeline, profile: PrivacyProfile, neighbours: Neighbours, guarantee: NonEpsilonGuarantee, value: Number
) -> Iterator[Data]:
    """Pairs that may show that the parameter is at least a value, with their theorems."""
    if isinstance(guarantee, MetricDP):
        start = next(i for i, stage in enumerate(pipeline.stages) if stage.name != "encode")
        for position in pipeline.noise_positions[:1] or [len(pipeline.stages)]:
            yield {"theorem": "noisy-max", "noise": position, "at": position, "pair": []}
            for pair in near_pairs(pipeline, guarantee):
                for theorem in _LARGEST_LOSS:
                    yield {**theorem, "noise": position, "at": start, "pair": pair_data(pair)}
        return
    if isinstance(guarantee, RenyiDP | ZCDP):
        order = guarantee.exact_order if isinstance(guarantee, RenyiDP) else NEAREST_ORDER
        worst = profile.candidates_at(order)[len(profile.candidates) :]
        profile = replace(profile, candidates=(*worst, *profile.candidates))
    for shown_at, epsilon, delta in _shown_at(profile, guarantee, value):
        for found in lower_evidence(pipeline, profile, neighbours, epsilon, delta):
            yield {**found, **shown_at}


def _shown_at(
    profile: PrivacyProfile, guarantee: NonEpsilonGuarantee, value: Number
) -> Iterator[tuple[Data, Number, Number]]:
    """The order, or the ε, at which pairs show most, with an ε and a δ at which grids should be precise."""
    if isinstance(guarantee, RenyiDP):
        yield {}, ZERO, ZERO
    elif isinstance(guarantee, ZCDP):
        orders = [largest_rate_shown(loss)[1] for _, loss in pair_losses(profile)]
        for order in dict.fromkeys(middle(order) for order in orders) or [2.0]:
            yield {"order": point(exactly(order) if order > 1 else _NEAR_ONE)}, ZERO, ZERO
    else:
        places = [largest_mu_shown(loss)[1] for _, loss in pair_losses(profile)]
        for place in dict.fromkeys(middle(place) for place in places) or [0.0]:
            at = exactly(place)
            delta = gaussian_delta(at, value) if value.b < INFINITY else ONE / 2
            yield {"epsilon": point(at)}, at, delta
