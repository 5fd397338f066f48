"""One plain English sentence: why a claim holds, fails or stays open."""

import math

from dpassay.core.guarantee import ApproxDP, Guarantee, MetricDP, PureDP
from dpassay.core.interval import grouped, outward
from dpassay.core.numbers import INFINITY, Number, as_written, down, middle, real, up
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.mechanisms.questions import metric_reason, reason
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Categories, MonotoneBall, Region, RowBits, Rows, SensitivityBall


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
    own = "" if pipeline.stages[0].takes_unit_vectors else metric_reason(noise.added_noise or noise, guarantee.metric)
    if own:
        return own
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
    if stage.added_noise is not None and (isinstance(region, Categories) or region.diameter(1) == INFINITY):
        return "Values are released as they are"
    dropped = " (word dropout hides little of it)" if profile.mu.b > 0 and not stage.chooses else ""
    return f"{reason(stage, region, profile)}{dropped}"


def differing_bits(region: Region, profile: PrivacyProfile) -> str:
    """How many bits of two neighbors differ."""
    inputs = "two neighbors" if isinstance(region, RowBits) else "two inputs"
    shown, most = (round(middle(count)) for count in (profile.shown_distance(1), region.diameter(1)))
    if shown == region.dim == 1:
        return f"The only bit can differ between {inputs}"
    if shown == region.dim:
        return f"All of the {region.dim} bits can differ between {inputs}"
    count = f"{most}" if shown == most else f"{shown}, and at most {most},"
    return f"{count} of the {region.dim} bits can differ between {inputs}"


def how_far(profile: PrivacyProfile, q: float, words: str, region: Region | None = None) -> str:
    """That two values can be as far apart as the region is wide; or how far they certainly can be, and at most."""
    region = region or profile.region
    assert region is not None
    shown, most = profile.shown_distance(q), region.diameter(q)
    if shown.a >= most.b * (1 - real("1e-6")):
        return "can " + words.format(grouped(middle(most)))
    limit = f"at most {outward(up(most), 1, 6)}"
    if shown.a > 0:
        limit = f"{outward(down(shown), -1, 6)}, and {limit},"
    return "can " + words.format(limit)


def who(region: Region, profile: PrivacyProfile) -> str:
    """Whose values the noise must hide, before which they lie in the region."""
    answers = "two neighbors' answers"
    kinds = {SensitivityBall: answers, MonotoneBall: answers, Rows: "two neighbors", RowBits: "two neighbors"}
    return kinds.get(type(profile.region)) or kinds.get(type(region), "two vectors")
