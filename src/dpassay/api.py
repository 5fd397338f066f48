"""From a claim to a verdict: bounds from the exact analysis, compared with what is claimed.

Claimed ≥ upper bound: Proven. Claimed < lower bound: Refuted. Otherwise Open; also where the verifier cannot follow.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from dpassay.adapters import adapted
from dpassay.adapters.confirming import with_confirmation
from dpassay.audit.targets import as_mechanism
from dpassay.claims.claim import CAVEATS, Claim
from dpassay.claims.registry import REGISTRY, claim_called
from dpassay.core.guarantee import (
    ApproxDP,
    EpsilonDelta,
    Guarantee,
    MetricDP,
    PureDP,
    epsilon_delta,
    statement,
)
from dpassay.core.interval import Interval, outward
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, TIE, Number, down, iv, middle, number
from dpassay.core.parameters import merge_parameters
from dpassay.core.theorems import Theorem
from dpassay.errors import ExpressionError, InputError
from dpassay.evidence.confirm import confirmed
from dpassay.evidence.verdict import Advice, Bounds, ExactEvidence, JudgedClaim, Open, Proven, Refuted, Verdict
from dpassay.exact.analysis import analyse
from dpassay.exact.calibrate import classic_gaussian_sigma
from dpassay.exact.measure import Other, has_extreme_numbers, measure, repairs
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile import PrivacyProfile
from dpassay.exact.profile_bounds import DropoutBound, ProfileBound, PureBound
from dpassay.exact.repair import find_repairs
from dpassay.exact.sampling import Steps
from dpassay.exact.verdict_reason import explain
from dpassay.exact.witness import find_witness
from dpassay.pipeline.distributions import Gaussian
from dpassay.pipeline.mechanism import HasDistribution
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.additive import Additive
from dpassay.pipeline.stages.query import Query
from dpassay.words.mechanisms import MECHANISMS, WordMechanism

# Values of δ, besides 0, at which the guarantee that does hold is stated.
DELTAS = ("1e-9", "1e-6", "1e-3")
MUCH = 0.01  # expected number of leaked people from which a delta is too large


def check(
    subject: Any,
    /,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    *,
    epsilon: Any = None,
    delta: Any = None,
    dim: int | None = None,
    guarantee: Guarantee | None = None,
    neighbours: Neighbours | str | None = None,
    people: int | None = None,
    runs: int = 0,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    **more: Any,
) -> Verdict:
    """Judge the claim that a mechanism satisfies a guarantee.

    The mechanism is a pipeline or its text, a `Claim`, the name of a published claim, or the path of a .toml file with
    one: these are analysed exactly, and with `runs` also run. What is claimed is `epsilon`, perhaps with `delta`, or
    another `guarantee`: MetricDP, RenyiDP, ZCDP, GDP. Objects of some libraries, such as OpenDP's measurements, state
    their own claim (docs/adapters.md). Values for the names in the text are `parameters`, or keyword arguments if no
    option has that name. `people` is the number of rows in the data: delta must be far below one over it. `santext`,
    `custext` and `tem` replace words and take a `vocabulary`: `words.judge.check_words`. Anything else that can be run
    is judged by its outputs and, if it knows their distribution, by the exact loss of the `pairs`.

    >>> check("clip(l2, C) | laplace(2*C*sqrt(dim)/eps)", epsilon=1, dim=32, C=1).proven
    True
    >>> check("clip(l2, runs) | laplace(2*runs/eps)", epsilon=1, dim=32, parameters={"runs": 1}).refuted
    True
    >>> check("adept", dim=1024).epsilon
    Interval(32.0, 32.0)
    >>> from dpassay import ZCDP
    >>> check("query(l2, 1) | gaussian(2)", guarantee=ZCDP("0.125")).rho
    Interval(0.125, 0.125)
    """
    if guarantee is not None and not (epsilon is None and delta is None):
        raise InputError("epsilon and delta state a guarantee themselves: leave them out if you give another one")
    if isinstance(subject, WordMechanism) or (isinstance(subject, str) and subject in MECHANISMS):
        from dpassay.words.judge import check_words

        if runs or pairs is not None:
            raise InputError("word mechanisms are checked exactly; to run a mechanism, use audit(...)")
        return check_words(subject, guarantee, epsilon=epsilon, delta=delta, **merge_parameters(parameters, more))
    runnable, read = subject, None
    if not isinstance(subject, Claim | Pipeline | str) and (known := adapted(subject)) is not None and known.pipeline:
        read = known.between(neighbours)
        subject = read.claim(epsilon, delta, guarantee, dim)
        epsilon = delta = guarantee = dim = None
    if not isinstance(subject, Claim | Pipeline | str):
        if parameters:
            raise InputError("only a claim or a pipeline's text has parameters of its own")
        if guarantee is not None:
            claimed = epsilon_delta(guarantee)
            epsilon, delta = claimed.exact_epsilon, claimed.exact_delta
        options = {"epsilon": epsilon, "delta": delta, "dim": dim, "neighbours": neighbours, **more}
        return check_mechanism(subject, pairs, runs, seed, options)
    if pairs is not None and not runs and (read is None or read.mechanism is None):
        raise InputError("the pairs of a pipeline are for sampling it: give the number of runs, check(..., runs=10000)")
    stated = {"epsilon": epsilon, "delta": delta} if guarantee is None else statement(guarantee)
    given = {**stated, "dim": dim, "people": people}
    claim, pipeline = _read(subject, given, merge_parameters(parameters, more))
    if isinstance(neighbours, str):
        neighbours = Neighbours(neighbours)
    relation = neighbours or claim.neighbours or pipeline.neighbours
    try:
        exact = confirmed(_judge(claim, pipeline, claim.guarantee, relation, analyse(pipeline, relation)))
    except InputError:
        raise
    except (ArithmeticError, LookupError, ValueError, MemoryError) as error:
        if not has_extreme_numbers(pipeline, claim.guarantee):
            raise  # a fault of ours
        raise InputError(
            "these numbers are too large or too small for a verdict; noise and distances may be multiplied by one "
            "factor, which changes nothing"
        ) from error
    if read is not None:
        exact = with_confirmation(exact, read, as_mechanism, pairs)
    if not runs:
        return exact
    from dpassay.audit.runner import audit

    claimed = epsilon_delta(exact.guarantee)
    if subject is runnable and not isinstance(subject, Pipeline):
        return with_samples(exact, audit(claim, pairs, runs=runs, seed=seed, neighbours=relation))
    options = {"epsilon": claimed.exact_epsilon, "delta": claimed.exact_delta, "neighbours": relation}
    return with_samples(exact, audit(runnable, pairs, runs=runs, seed=seed, **options))


def _read(
    subject: Claim | Pipeline | str, changes: dict[str, Any], parameters: dict[str, Any]
) -> tuple[Claim, Pipeline]:
    given = {key: value for key, value in changes.items() if value is not None}
    if isinstance(subject, str):
        subject = claim_called(subject) or subject
    if isinstance(subject, Claim):
        claim = subject(parameters, **given) if given or parameters else subject
        return claim, claim.mechanism
    word = isinstance(subject, str) and subject.replace("-", "").isalnum()  # a stage without arguments, or a claim
    near = get_close_matches(str(subject), REGISTRY, n=1) if word else []
    hint = f"; did you mean the claim {near[0]!r}?" if near else ""
    if not {"epsilon", "rho", "mu"} & set(given):
        raise InputError(f"state the claimed epsilon: check(..., epsilon=1){hint}")
    if isinstance(subject, Pipeline):
        if parameters or given.get("dim", subject.dim) != subject.dim:
            raise InputError(
                "a Pipeline already has its dimension and parameters; give them only with a pipeline's text"
            )
        return Claim("pipeline", str(subject), **{**given, "dim": subject.dim}), subject
    claim = Claim("pipeline", subject, parameters=parameters, **given)
    try:
        return claim, claim.mechanism
    except ExpressionError as error:
        raise ExpressionError(error.message + hint, error.text, error.position) from None


def _judge(
    claim: Claim, pipeline: Pipeline, guarantee: Guarantee, neighbours: Neighbours, profile: PrivacyProfile
) -> Verdict:
    judged = JudgedClaim.of(claim, pipeline, guarantee, neighbours)
    if not isinstance(guarantee, PureDP | ApproxDP):
        return _judge_other(claim, judged, profile, guarantee)
    kind, value, epsilon = _decide(profile, guarantee)
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
            holds=_holding(profile, guarantee) if refuted else (),
            repairs=find_repairs(pipeline, neighbours, guarantee) if refuted else (),
            warnings=(*_warnings(pipeline, guarantee, profile), *_caveats(claim, pipeline, guarantee, neighbours)),
        ),
    )


def _judge_other(claim: Claim, judged: JudgedClaim, profile: PrivacyProfile, guarantee: Other) -> Verdict:
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
            holds=_holding(profile, guarantee, (*DELTAS[:2], "1e-5", DELTAS[2])) if implied else (),
            repairs=repairs(pipeline, neighbours, guarantee) if kind is Refuted else (),
            warnings=(*Steps.of(pipeline).warnings, *_caveats(claim, pipeline, guarantee, neighbours)),
        ),
    )


def _kind(value: Number, limit: Number) -> type[Verdict]:
    """The kind of verdict on a claimed limit, where `value` encloses the truth; a tie is decided for the claim."""
    if value.b <= (limit * (1 + TIE)).b:
        return Proven
    return Refuted if value.a > (limit * (1 + TIE)).b else Open


def _decide(profile: PrivacyProfile, guarantee: EpsilonDelta) -> tuple[type[Verdict], Number, Number]:
    """The kind of verdict; the true value that decided it, ε or at δ > 0 the true δ; and the true ε."""
    pure = isinstance(guarantee, PureDP)
    value = profile.pure if pure else profile.delta(guarantee.exact_epsilon)
    kind = _kind(value, guarantee.exact_epsilon if pure else guarantee.exact_delta)
    return kind, value, _agreeing(profile.pure if pure else profile.epsilon(guarantee.exact_delta), guarantee, kind)


def glance(claim: Claim) -> tuple[str, Interval, float]:
    """A quick check: the verdict as a word, the true value of what is claimed, and the δ that every finite ε needs.

    >>> word, epsilon, floor = glance(Claim("mine", "clip(l2, 1) | laplace(2/eps)", epsilon=1, dim=4))
    >>> word, str(epsilon), floor
    ('refuted', '2', 0.0)
    """
    pipeline, guarantee = claim.mechanism, claim.guarantee
    neighbours = claim.neighbours or pipeline.neighbours
    profile = analyse(pipeline, neighbours)
    if isinstance(guarantee, PureDP | ApproxDP):
        kind, value, epsilon = _decide(profile, guarantee)
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
        return iv.mpf([min(epsilon.a, claimed.a), claimed.b])
    if kind is Refuted and epsilon.a < claimed.a:
        return iv.mpf([claimed.a, max(epsilon.b, claimed.b)])
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
        known = profile.pure_from_tails is not None and isinstance(guarantee, PureDP)
        return ("far-out outputs of a pair of neighbours" if known else "nothing"), upper.theorem.page
    return f"the exact loss of a pair of neighbours, {lower.theorem.page}", upper.theorem.page


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
            rows.append((middle(delta), Interval.around(iv.mpf([0, profile.epsilon_above(delta).b]))))
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
            if abs(noises[0].noise.sigma / classic - 1).a < iv.mpf("1e-9"):
                found.append(
                    "The classic Gaussian formula is proved for 0 < epsilon < 1 only; "
                    "this claim was judged by the exact formula instead."
                )
    return tuple(found)


def _caveats(claim: Claim, pipeline: Pipeline, guarantee: Guarantee, neighbours: Neighbours) -> tuple[str, ...]:
    """Caveats about the claim itself: its delta, its neighbours, and what else its authors did."""
    found = []
    if claim.people and guarantee.delta * claim.people > MUCH:
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


def with_samples(exact: Verdict, sampled: Verdict) -> Verdict:
    """The exact verdict combined with the sampled evidence.

    The lower bound is the better of the two. If the samples refute what the formula proves, the code does not implement
    the formula, and the claim is refuted for the code.
    """
    warnings = (*exact.warnings, *sampled.warnings)
    if sampled.epsilon.lower > exact.epsilon.upper:
        most = f"has a larger loss than its formula, whose epsilon is at most {outward(exact.epsilon.upper, 1, 5)}"
        reason = f"The code that was run {most}: {sampled.reason}"
        return replace(sampled, reason=reason, advice=Advice(warnings=warnings))
    best = max(exact.epsilon, sampled.epsilon, key=lambda bounds: bounds.lower)
    epsilon = replace(exact.epsilon, lower=best.lower, lower_from=best.lower_from)
    kind = Refuted if sampled.refuted else type(exact)
    runs = f"{sampled.runs:,} runs show an epsilon of at least {outward(sampled.epsilon.lower, -1, 5)}."
    return kind(
        exact.claim,
        replace(exact.bounds, value=epsilon),
        sampled.reason if sampled.refuted and not exact.refuted else f"{exact.reason} {runs}",
        exact.exact,
        sampled.sampled if kind is Refuted else replace(sampled.sampled, witness=None),
        replace(exact.advice, warnings=warnings),
    )


def check_mechanism(
    subject: Any, pairs: Sequence[tuple[Any, Any]] | None, runs: int, seed: int, options: dict[str, Any]
) -> Verdict:
    """Judge something that can only be run, or that knows its distribution for each input: lower bounds only."""
    from dpassay.audit.options import AuditOptions
    from dpassay.audit.runner import audit

    sampled = audit(subject, pairs, runs=runs or AuditOptions.runs, seed=seed, **options)
    mechanism = as_mechanism(subject)
    if pairs is None or not isinstance(mechanism, HasDistribution):
        return sampled
    guarantee = epsilon_delta(sampled.guarantee)
    found: list[tuple[float, PrivacyLoss]] = []
    for first, second in (ordered for x, y in pairs for ordered in ((x, y), (y, x))):
        try:
            loss = PrivacyLoss.between(mechanism.distribution(first), mechanism.distribution(second))
        except (InputError, NotImplementedError):
            continue
        epsilon = loss.epsilon(guarantee.exact_delta) if guarantee.delta else Interval.around(loss.pure)
        found.append((epsilon.lower, loss))
    if not found:
        return sampled
    lower, loss = max(found, key=lambda one: one[0])
    known = replace(sampled, exact=ExactEvidence(loss=loss))
    if lower <= sampled.epsilon.lower:
        return known
    bounds = Interval(lower, sampled.epsilon.upper, "the exact loss of a pair of inputs", "nothing")
    known = replace(known, bounds=replace(sampled.bounds, value=bounds))
    if sampled.refuted or lower <= down(number(guarantee.exact_epsilon) * (1 + TIE)):
        return known
    reason = f"The declared distribution has an epsilon of at least {outward(lower, -1, 6)} between two of the inputs."
    return Refuted(known.claim, known.bounds, reason, known.exact, known.sampled, known.advice)
