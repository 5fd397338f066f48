"""One plain English sentence: why a claim holds, fails or stays open."""

import math

from dpassay.core.guarantee import ApproxDP, Guarantee, MetricDP, PureDP
from dpassay.core.interval import grouped, outward
from dpassay.core.numbers import INFINITY, ZERO, Number, as_written, down, maximum, middle, real, up
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.discrete_noise import DiscreteGaussian, DiscreteNoise
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, OneSided
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Categories, MonotoneBall, Region, RowBits, Rows, SensitivityBall
from dpassay.pipeline.stages.bits import BitNoise
from dpassay.pipeline.stages.exponential import Choice, Softmax
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.stages.noises.directions import Direction
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.staircase import Staircase
from dpassay.pipeline.syntax import written
from dpassay.pipeline.truncated_laplace import TruncatedLaplace


def explain(word: str, pipeline: Pipeline, profile: PrivacyProfile, guarantee: Guarantee, value: Number) -> str:
    """The sentence for a verdict; `value` encloses the true parameter, or with a δ the true δ at the claimed ε."""
    if word == "proven":
        return f"{guarantee} holds: {_bound(guarantee, value)}."
    if word == "open":
        return f"Open, which proves nothing: {_between(guarantee, value)}."
    because = (
        _by_distance(pipeline, guarantee, value) if isinstance(guarantee, MetricDP) else _because(pipeline, profile)
    )
    if not isinstance(guarantee, ApproxDP):
        least = profile.least_delta if isinstance(guarantee, PureDP) else 0
        floor = f", and at every epsilon delta is at least {outward(least, -1, 6)}" if 0 < least < 1 else ""
        return f"{because}; the {guarantee.truth} is {_times(value, guarantee)}{floor}."
    return (
        f"{because}; at epsilon {as_written(guarantee.exact_epsilon)} the true delta is "
        f"{_at_least(down(value), guarantee.delta)}, above the claimed {as_written(guarantee.exact_delta)}."
    )


def _bound(guarantee: Guarantee, value: Number) -> str:
    # A tie to 30 digits is decided in favor of the claim.
    if not isinstance(guarantee, ApproxDP):
        return f"the {guarantee.truth} is at most {_at_most(up(value), guarantee.value)}"
    most = _at_most(up(value), guarantee.exact_delta)
    return f"at epsilon {as_written(guarantee.exact_epsilon)} the true delta is at most {most}"


def _at_most(value: float, claimed: Number) -> str:
    rounded = outward(value, 1, 6)
    return rounded if float(rounded) < middle(claimed) else as_written(claimed)


def _at_least(value: float, claimed: float, significant: int = 5) -> str:
    """A bound in a few digits; in more if that would not show that it exceeds the claim."""
    rounded = outward(value, -1, significant)
    return f"at least {rounded if float(rounded) > claimed else outward(value, -1, 17)}"


def _between(guarantee: Guarantee, value: Number) -> str:
    low, high = outward(down(value), -1, 6), outward(up(value), 1, 6)
    epsilon = as_written(guarantee.value)
    if not isinstance(guarantee, ApproxDP):
        return f"the {guarantee.truth} lies between {low} and {high}, and so does the claimed {epsilon}"
    where = f"at epsilon {epsilon} the true delta lies between {low} and {high}"
    return f"{where}, and so does the claimed {as_written(guarantee.exact_delta)}"


def _times(value: Number, guarantee: Guarantee) -> str:
    low = down(value)
    if math.isinf(low):
        return "infinite, whatever was claimed"
    if guarantee.claimed == 0:
        return f"at least {outward(low, -1, 6)}, not {as_written(guarantee.value)}"
    ratio = low / guarantee.claimed
    whole = 1000 <= ratio < 1e12
    factor = f"{f'{ratio:,.0f}' if whole else f'{ratio:.4g}'} times" if ratio >= 1.0005 else "more than"
    if math.isinf(ratio):
        factor = "more than 1e308 times"
    return f"{_at_least(low, guarantee.claimed, 6)}, {factor} the claimed {as_written(guarantee.value)}"


def _by_distance(pipeline: Pipeline, guarantee: MetricDP, value: Number) -> str:
    if not pipeline.noise_positions:
        return "Nothing is random, so the output reveals the input"
    noise = pipeline.stages[pipeline.noise_positions[0]]
    if isinstance(noise, Additive) and isinstance(noise.noise, Gaussian):
        return "The loss of Gaussian noise is unbounded, however close two inputs are"
    if isinstance(noise, Direction) and guarantee.metric != "angle" and not pipeline.stages[0].takes_unit_vectors:
        return (
            "Two vectors near 0 are close to each other, but normalise can map them to opposite unit vectors (if "
            "inputs are unit vectors already, leave normalise out)"
        )
    if value.a == INFINITY:
        return "Some inputs have a fixed loss however close they are, because the released value jumps between them"
    return f"The loss between two inputs is larger than their {guarantee.metric} distance allows"


def _because(pipeline: Pipeline, profile: PrivacyProfile) -> str:
    if Theorem.UNBOUNDED in profile.theorems:
        return "Nothing bounds the vector before the noise, so two inputs can be arbitrarily far apart"
    if Theorem.TOP_K in profile.theorems:
        return "An output in the top k of one input need not be in the top k of another, which then never produces it"
    if not (steps := Steps.of(pipeline)).plain:
        return steps.described
    if Theorem.NO_NOISE in profile.theorems:
        if profile.mu.b > 0:
            return "Only the dropped words are random, so the output reveals the other words"
        return "Nothing is random, so the output reveals the input"
    if Theorem.TWO_NOISES in profile.theorems:
        return "Even the largest noise is too small for the distance between two neighbors"
    position = pipeline.noise_positions[-1]
    stage, region = pipeline.stages[position], pipeline.output_regions()[position].region
    dropped = " (word dropout hides little of it)" if profile.mu.b > 0 else ""
    if isinstance(stage, Additive) and not (isinstance(region, Categories) or region.diameter(1) == INFINITY):
        return f"{_distance(stage, region, profile)}{dropped}"
    if isinstance(stage, Additive):
        return "Values are released as they are"
    if isinstance(stage, Radial):
        return f"{_in_norm(stage, profile)}{dropped}"
    if isinstance(stage, Direction):
        return f"Two inputs can have opposite directions{dropped}"
    if isinstance(stage, BoundedLaplace):
        return (
            f"If outputs are kept between {written(stage.low)} and {written(stage.high)} the loss exceeds the "
            f"distance divided by the scale, because the probability of landing there depends on the input{dropped}"
        )
    if isinstance(stage, BitNoise):
        return f"{_differing_bits(region, profile)}, and each adds its own loss{dropped}"
    if isinstance(stage, Softmax):
        logits = _far(region, profile, math.inf, "differ by {}")
        return f"Two neighbors' logits {logits} at temperature {grouped(middle(stage.temperature))}"
    if isinstance(stage, Choice):
        given = "scale" if stage.name == "noisymax" else "rate"
        return f"Two neighbors' scores {_far(region, profile, math.inf, 'differ by {}')} at the given {given}"
    return f"One category can be distinguished from another more reliably than claimed{dropped}"


def _differing_bits(region: Region, profile: PrivacyProfile) -> str:
    inputs = "two neighbors" if isinstance(region, RowBits) else "two inputs"
    shown, most = (round(middle(count)) for count in (_shown(profile, 1), region.diameter(1)))
    if shown == region.dim == 1:
        return f"The only bit can differ between {inputs}"
    if shown == region.dim:
        return f"All of the {region.dim} bits can differ between {inputs}"
    count = f"{most}" if shown == most else f"{shown}, and at most {most},"
    return f"{count} of the {region.dim} bits can differ between {inputs}"


def _shown(profile: PrivacyProfile, q: float) -> Number:
    """How far apart in lq known pairs of neighbors are."""
    pairs = [candidate.pair for candidate in profile.candidates] + ([profile.pair] if profile.pair else [])
    return maximum(ZERO, *(pair.distance(q) for pair in pairs))


def _far(region: Region, profile: PrivacyProfile, q: float, words: str) -> str:
    """That two values can be as far apart as the region is wide; or how far they certainly can be, and at most."""
    shown, most = _shown(profile, q), region.diameter(q)
    if shown.a >= most.b * (1 - real("1e-6")):
        return "can " + words.format(grouped(middle(most)))
    limit = f"at most {outward(up(most), 1, 6)}"
    if shown.a > 0:
        limit = f"{outward(down(shown), -1, 6)}, and {limit},"
    return "can " + words.format(limit)


def _distance(stage: Additive, region: Region, profile: PrivacyProfile) -> str:
    assert profile.region is not None
    answers = "two neighbors' answers"
    kinds = {SensitivityBall: answers, MonotoneBall: answers, Rows: "two neighbors", RowBits: "two neighbors"}
    who = kinds.get(type(profile.region)) or kinds.get(type(region), "two vectors")
    if isinstance(stage.noise, Gaussian):
        return f"Before Gaussian noise {who} {_far(profile.region, profile, 2, 'be {} apart in l2')}"
    if isinstance(stage.noise, Laplace):
        far = _far(profile.region, profile, 1, "be {} apart in l1")
        return f"Laplace noise of scale {grouped(middle(stage.noise.scale))} must hide l1 distances, and {who} {far}"
    if isinstance(stage.noise, Mixture) and not stage.noise.parts:
        return f"With probability {stage.noise.atom:.4g} a coordinate is released as it is"
    if isinstance(stage.noise, DiscreteNoise):
        return _between_whole_numbers(stage.noise, who, profile)
    if isinstance(stage.noise, OneSided) or (isinstance(stage.noise, Mixture) and stage.noise.one_sided):
        return "The noise is never negative, so an output below the input's value is impossible"
    if isinstance(stage.noise, Staircase):
        return _in_steps(stage.noise, who, profile)
    if isinstance(stage.noise, TruncatedLaplace) or profile.least_delta > 0:
        return "Some outputs are possible for one input and impossible for another"
    return "Some outputs are more likely for one input than for another by a larger factor than claimed"


def _in_steps(noise: Staircase, who: str, profile: PrivacyProfile) -> str:
    assert profile.region is not None
    shown, most = _shown(profile, 1), profile.region.diameter(1)
    far = f"can be {as_written(most)} apart in l1"
    if not shown.a >= most.b * (1 - real("1e-40")):
        far = _far(profile.region, profile, 1, "be {} apart in l1")
    step = f"every {as_written(noise.sensitivity)}, or part of it, by which a coordinate moves"
    return f"The loss of staircase noise is {as_written(noise.epsilon)} for {step}, and {who} {far}"


def _between_whole_numbers(noise: DiscreteNoise, who: str, profile: PrivacyProfile) -> str:
    assert profile.region is not None
    if profile.least_delta == 1:
        return (
            f"The noise of {noise} is a whole number, so {who} that do not differ by whole numbers have no output in "
            "common (round them first, or state counts)"
        )
    q = 2 if isinstance(noise, DiscreteGaussian) else 1
    far = _far(profile.region, profile, q, "be {} apart")
    return f"The noise of {noise} must hide l{q} distances, and {who} {far}"


def _in_norm(stage: Radial, profile: PrivacyProfile) -> str:
    worst = profile.dominating_pure()
    pair = profile.pair if worst is None else worst.pair
    apart = "" if pair is None else f", and two neighbors' values can be {grouped(middle(stage.distance(pair)))} apart"
    noise = f"{stage.name.capitalize()} noise of scale {grouped(middle(stage.scale))}"
    return f"{noise} must hide {stage.norm} distances{apart}"
