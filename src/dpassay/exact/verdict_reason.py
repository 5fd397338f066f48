"""One plain English sentence: why a claim holds, fails or stays open."""

import math

from dpassay.core.guarantee import Guarantee, PureDP
from dpassay.core.interval import outward
from dpassay.core.numbers import INFINITY, Number, down, middle, up
from dpassay.core.theorems import Theorem
from dpassay.exact.profile import PrivacyProfile
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, OneSided
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Categories, OneHot, Rows, SensitivityBall, Sparse
from dpassay.pipeline.stages.additive import Additive
from dpassay.pipeline.stages.bits import BitNoise
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.radial import Radial


def explain(word: str, pipeline: Pipeline, profile: PrivacyProfile, guarantee: Guarantee, value: Number) -> str:
    """The sentence for a verdict; `value` encloses the true ε (pure claims) or the true δ at the claimed ε."""
    if word == "proven":
        return f"{guarantee} holds: {_bound(guarantee, value)}."
    if word == "open":
        return f"Open, which proves nothing: {_between(guarantee, value)}."
    because = _because(pipeline, profile)
    if isinstance(guarantee, PureDP):
        least = profile.least_delta
        floor = f", and at every epsilon delta is at least {outward(least, -1, 6)}" if 0 < least < 1 else ""
        return f"{because}; the true epsilon is {_times(value, guarantee)}{floor}."
    return (
        f"{because}; at epsilon {middle(guarantee.exact_epsilon):.6g} the true delta is "
        f"at least {outward(down(value), -1, 5)}, above the claimed {middle(guarantee.exact_delta):.6g}."
    )


def _bound(guarantee: Guarantee, value: Number) -> str:
    # A tie beyond 30 digits goes to the claim.
    if isinstance(guarantee, PureDP):
        return f"the true epsilon is at most {_at_most(up(value), guarantee.epsilon)}"
    most = _at_most(up(value), guarantee.delta)
    return f"at epsilon {guarantee.epsilon:.6g} the true delta is at most {most}"


def _at_most(value: float, claimed: float) -> str:
    rounded = outward(value, 1, 6)
    return rounded if float(rounded) < claimed else f"{claimed:.15g}"


def _between(guarantee: Guarantee, value: Number) -> str:
    low, high = outward(down(value), -1, 6), outward(up(value), 1, 6)
    if isinstance(guarantee, PureDP):
        return f"the true epsilon lies between {low} and {high}, and so does the claimed {guarantee.epsilon:.6g}"
    where = f"at epsilon {guarantee.epsilon:.6g} the true delta lies between {low} and {high}"
    return f"{where}, and so does the claimed {guarantee.delta:.6g}"


def _times(value: Number, guarantee: Guarantee) -> str:
    low = down(value)
    if math.isinf(low):
        return "infinite, whatever was claimed"
    if guarantee.epsilon == 0:
        return f"at least {outward(low, -1, 6)}, not 0"
    ratio = low / guarantee.epsilon
    factor = f"{ratio:,.4g} times" if ratio >= 1.0005 else "more than"
    return f"at least {outward(low, -1, 6)}, {factor} the claimed {guarantee.epsilon:.6g}"


def _because(pipeline: Pipeline, profile: PrivacyProfile) -> str:
    if Theorem.NO_NOISE in profile.theorems:
        if profile.mu.b > 0:
            return "Nothing but the dropped words is random, so the output gives the other words away"
        return "Nothing is random, so the output gives the input away"
    if Theorem.UNBOUNDED in profile.theorems:
        return "Nothing bounds the vector before the noise, so two inputs can be arbitrarily far apart"
    if Theorem.TWO_NOISES in profile.theorems:
        return "Even the strongest of the noises is too weak for the distance between two neighbours"
    position = pipeline.noise_positions[-1]
    stage, region = pipeline.stages[position], pipeline.output_regions()[position].region
    dropped = " (word dropout hides little of it)" if profile.mu.b > 0 else ""
    if isinstance(stage, Additive) and not (isinstance(region, Categories) or region.diameter(1) == INFINITY):
        return f"{_distance(stage, region, profile)}{dropped}"
    if isinstance(stage, Additive):
        return "Values are shown as they are"
    if isinstance(stage, Radial):
        return f"{_in_norm(stage, profile)}{dropped}"
    if isinstance(stage, BitNoise):
        differing = f"{middle(region.diameter(1)):.0f} of the" if isinstance(region, OneHot | Sparse) else "All of the"
        return f"{differing} {region.dim} bits can differ between two inputs, and each adds its own loss{dropped}"
    if isinstance(stage, Choose):
        return f"Two neighbours' scores can differ by {middle(region.diameter(math.inf)):.6g} at the given rate"
    return f"One category can be told from another more surely than claimed{dropped}"


def _distance(stage: Additive, region: object, profile: PrivacyProfile) -> str:
    assert profile.region is not None
    who = {SensitivityBall: "two neighbours' answers", Rows: "two neighbours"}.get(type(region), "two vectors")
    if isinstance(stage.noise, Gaussian):
        return f"Before Gaussian noise {who} can be {middle(profile.region.diameter(2)):.6g} apart in l2"
    if isinstance(stage.noise, Laplace):
        distance, scale = middle(profile.region.diameter(1)), middle(stage.noise.scale)
        return f"Laplace noise of scale {scale:.6g} must hide l1 distances, and {who} can be {distance:.6g} apart in l1"
    if isinstance(stage.noise, OneSided) or (isinstance(stage.noise, Mixture) and stage.noise.one_sided):
        return "The noise is never negative, so an output below the input's value is impossible"
    return "Some outputs are possible for one input and impossible for another"


def _in_norm(stage: Radial, profile: PrivacyProfile) -> str:
    worst = profile.dominating_pure()
    pair = profile.pair if worst is None else worst.pair
    apart = "" if pair is None else f", and two neighbours' values can be {middle(pair.distance(stage.q)):.6g} apart"
    return f"Radial noise of scale {middle(stage.scale):.6g} must hide {stage.norm} distances{apart}"
