"""From bounds on a mechanism's loss to the verdict on a claim: what decides it, what holds instead, and what to do."""

import math
from functools import partial

from dpassay.claims.claim import CAVEATS, Claim
from dpassay.core.guarantee import (
    ApproxDP,
    EpsilonDelta,
    Guarantee,
    MetricDP,
    PureDP,
)
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, TIE, Number, middle, number, real
from dpassay.core.theorems import Theorem
from dpassay.evidence.confirm import confirmed
from dpassay.evidence.verdict import Advice, Bounds, ExactEvidence, JudgedClaim, Later, Open, Proven, Refuted, Verdict
from dpassay.exact.analysis import analyse
from dpassay.exact.calibrate import classic_gaussian_sigma
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.explanation import explain
from dpassay.exact.guarantees.true_parameter import NonEpsilonGuarantee, measure, repairs
from dpassay.exact.profiles.bounds import DropoutBound, ProfileBound, PureBound
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.exact.repair import find_repairs
from dpassay.exact.witness import find_witness
from dpassay.pipeline.distributions import Gaussian
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.query import Query

# Values of δ, besides 0, at which the guarantee that does hold is stated.
DELTAS = ("1e-9", "1e-6", "1e-3")
CLOSE = number("0.03")  # the relative width of an interval of ε that is narrow enough, unless more is asked for
MAX_EXPECTED_LEAKS = 0.01  # expected number of leaked people from which a delta is too large


def judge(
    claim: Claim,
    pipeline: Pipeline,
    guarantee: Guarantee,
    neighbours: Neighbours,
    profile: PrivacyProfile,
    *,
    tight: bool = False,
) -> Verdict:
    """The verdict on a claim from bounds on its mechanism; `tight` asks for all of them, see `_decide`."""
    judged = JudgedClaim.of(claim, pipeline, guarantee, neighbours)
    if not isinstance(guarantee, PureDP | ApproxDP):
        return _judge_other(claim, judged, profile, guarantee)
    profile, kind, value, epsilon = _decide(profile, guarantee, tight)
    sources = _sources(profile, guarantee)
    refuted = kind is Refuted
    delta = None if isinstance(guarantee, PureDP) else Interval.around(value, *sources)
    witness = find_witness(pipeline, profile, guarantee) if refuted else None
    return kind(
        judged,
        Bounds(Interval.around(epsilon, *sources), delta, profile.least_delta),
        explain(kind.word, pipeline, profile, guarantee, value),
        ExactEvidence(profile, witness=witness, theorems=_theorems(profile, guarantee)),
        advice=Advice(
            holds=Later(partial(_holding, profile, guarantee)) if refuted else (),
            repairs=Later(partial(find_repairs, pipeline, neighbours, guarantee)) if refuted else (),
            warnings=(*_warnings(pipeline, guarantee, profile), *_caveats(claim, pipeline, guarantee, neighbours)),
        ),
    )


def _judge_other(claim: Claim, judged: JudgedClaim, profile: PrivacyProfile, guarantee: NonEpsilonGuarantee) -> Verdict:
    """The verdict on a guarantee that is not stated by ε and δ; it also reports which ε hold at some δ."""
    pipeline, neighbours = judged.mechanism, judged.neighbours
    found = measure(pipeline, neighbours, profile, guarantee)
    kind = _kind(found.value, guarantee.value)
    implied = not isinstance(guarantee, MetricDP)
    return kind(
        judged,
        Bounds(found.interval, least_delta=profile.least_delta),
        explain(kind.word, pipeline, profile, guarantee, found.value),
        ExactEvidence(profile, witness=found.witness if kind is Refuted else None, theorems=found.theorems),
        advice=Advice(
            holds=Later(partial(_holding, profile, guarantee, (*DELTAS[:2], "1e-5", DELTAS[2]))) if implied else (),
            repairs=Later(partial(repairs, pipeline, neighbours, guarantee)) if kind is Refuted else (),
            warnings=(*Steps.of(pipeline).warnings, *_caveats(claim, pipeline, guarantee, neighbours)),
        ),
    )


def _kind(value: Number, limit: Number) -> type[Verdict]:
    """The kind of verdict on a claimed limit, where `value` encloses the truth; a tie is decided for the claim."""
    if value.b <= (limit * (1 + TIE)).b:
        return Proven
    return Refuted if value.a > (limit * (1 + TIE)).b else Open


def _decide(
    profile: PrivacyProfile, guarantee: EpsilonDelta, tight: bool = False
) -> tuple[PrivacyProfile, type[Verdict], Number, Number]:
    """The bounds used; the kind of verdict; the value that decided it, ε or at δ > 0 the true δ; and the true ε.

    Bounds that take seconds are used if the others do not decide the claim, or leave ε too wide.
    """
    if not tight and (quick := profile.quick(guarantee)) is not profile:
        found = _decide(quick, guarantee, True)
        if found[1] is not Open and found[3].delta <= CLOSE * found[3].b:
            return found
    pure = isinstance(guarantee, PureDP)
    value = profile.pure if pure else profile.delta(guarantee.exact_epsilon)
    kind = _kind(value, guarantee.exact_epsilon if pure else guarantee.exact_delta)
    return (
        profile,
        kind,
        value,
        _agreeing(profile.pure if pure else profile.epsilon(guarantee.exact_delta), guarantee, kind),
    )


def quick_check(claim: Claim) -> tuple[str, Interval, float]:
    """A quick check: the verdict as a word, the true value of what is claimed, and the δ that every finite ε needs.

    >>> word, epsilon, floor = quick_check(Claim("mine", "clip(l2, 1) | laplace(2/eps)", epsilon=1, dim=4))
    >>> word, str(epsilon), floor
    ('refuted', '2', 0.0)
    """
    pipeline, guarantee = claim.mechanism, claim.guarantee
    neighbours = claim.neighbours or pipeline.neighbours
    profile = analyse(pipeline, neighbours)
    if isinstance(guarantee, PureDP | ApproxDP):
        profile, kind, value, epsilon = _decide(profile, guarantee)
        interval = Interval.around(epsilon, *_sources(profile, guarantee))
        delta = None if isinstance(guarantee, PureDP) else Interval.around(value)
    else:
        found = measure(pipeline, neighbours, profile, guarantee)
        kind, interval, delta = _kind(found.value, guarantee.value), found.interval, None
    judged = JudgedClaim.of(claim, pipeline, guarantee, neighbours)
    quick = confirmed(kind(judged, Bounds(interval, delta, profile.least_delta), "", ExactEvidence(profile)))
    return quick.word, quick.value, quick.least_delta


def _agreeing(epsilon: Number, guarantee: EpsilonDelta, kind: type[Verdict]) -> Number:
    """Restrict ε to what the decision implies (it may rest on δ, or be a tie), so that both are consistent.

    An ε that is certainly larger, though by less than the tolerance for ties, is left as it is.
    """
    claimed = guarantee.exact_epsilon
    if kind is Proven and epsilon.b > claimed.b and epsilon.a <= claimed.b:
        return real([min(epsilon.a, claimed.a), claimed.b])
    if kind is Refuted and epsilon.a < claimed.a:
        return real([claimed.a, max(epsilon.b, claimed.b)])
    return epsilon


def _chosen(profile: PrivacyProfile, guarantee: EpsilonDelta) -> tuple[ProfileBound | None, ProfileBound]:
    """The curves that give the lower and the upper bound."""
    if isinstance(guarantee, PureDP):
        best, upper = profile.dominating_pure(), profile.upper_pure()
    else:
        best, upper = profile.dominating_at(guarantee.exact_epsilon), profile.upper_at(guarantee.exact_epsilon)
    return (None if best is None else best.bound), upper


def _sources(profile: PrivacyProfile, guarantee: EpsilonDelta) -> tuple[str, str]:
    lower, upper = _chosen(profile, guarantee)
    if lower is None:
        known = profile.tail_lower_bound is not None and isinstance(guarantee, PureDP)
        return ("far-out outputs of a pair of neighbors" if known else "nothing"), upper.theorem.page
    return f"the exact loss of a pair of neighbors, {lower.theorem.page}", upper.theorem.page


def _theorems(profile: PrivacyProfile, guarantee: EpsilonDelta) -> tuple[Theorem, ...]:
    lower, upper = _chosen(profile, guarantee)
    used = [*profile.theorems, upper.theorem, *([] if lower is None else [lower.theorem])]
    if not isinstance(guarantee, PureDP):
        behind = upper.bound if isinstance(upper, DropoutBound) else upper
        used += [Theorem.PURE_TO_APPROXIMATE] if isinstance(behind, PureBound) else []
        used.append(Theorem.HOCKEY_STICK)
    return tuple(dict.fromkeys([*used, Theorem.ROUNDING]))


def _holding(
    profile: PrivacyProfile, guarantee: Guarantee, usual: tuple[str, ...] = DELTAS
) -> tuple[tuple[float, Interval], ...]:
    """The guarantees that do hold: at δ = 0, at some usual δ, and at the claimed one."""
    rows = [(0.0, Interval.around(profile.pure))]
    deltas = dict.fromkeys([*(number(d) for d in usual), guarantee.exact_delta])
    for delta in sorted(deltas, key=lambda d: d.mid):
        if delta.a > 0:
            rows.append((middle(delta), Interval.around(real([0, profile.epsilon_above(delta).b]))))
    return tuple(rows)


def _warnings(pipeline: Pipeline, guarantee: EpsilonDelta, profile: PrivacyProfile) -> tuple[str, ...]:
    found = list(Steps.of(pipeline).warnings)
    noises = [pipeline.stages[i] for i in pipeline.noise_positions]
    if len(noises) == 1 and isinstance(noises[0], Additive) and isinstance(noises[0].noise, Gaussian):
        if isinstance(guarantee, PureDP):
            if profile.pure.b < INFINITY:  # clamped
                return tuple(found)
            found.append("Gaussian noise gives no pure DP at any epsilon: claim a delta above 0.")
        elif guarantee.exact_epsilon.a >= 1 and profile.region is not None:
            classic = classic_gaussian_sigma(guarantee, profile.region.diameter(2))
            if abs(noises[0].noise.sigma / classic - 1).a < real("1e-9"):
                found.append(
                    "The classic Gaussian formula is proved for 0 < epsilon < 1 only; "
                    "this claim was judged by the exact formula instead."
                )
    return tuple(found)


def _caveats(claim: Claim, pipeline: Pipeline, guarantee: Guarantee, neighbours: Neighbours) -> tuple[str, ...]:
    """Caveats about the claim itself: its delta, its neighbors, and what else its authors did."""
    found = []
    if claim.people and guarantee.delta * claim.people > MAX_EXPECTED_LEAKS:
        somebody = -math.expm1(claim.people * math.log1p(-guarantee.delta))
        found.append(
            f"delta is not far below one over the number of people, 1/{claim.people:,}: a mechanism that publishes "
            f"each person's row with this probability publishes somebody's with probability {somebody:.3g}."
        )
    elif not claim.people and guarantee.exact_delta.a > number("1e-3").b:
        found.append("delta is large: it should be far below one over the number of people in the data.")
    if neighbours.relation == "word":
        found.append(f"This epsilon is for {neighbours}, not for any two texts.")
    first = pipeline.stages[0]
    if neighbours.kind == "replace-record" and isinstance(first, Query) and first.moves == "monotone":
        found.append(
            "Replacing a record can raise one count and lower another: answers that are monotone when a record is "
            "added or removed are seldom so when one is replaced."
        )
    return (*found, *(CAVEATS[caveat] for caveat in claim.caveats))
