"""From a claim to a verdict: bounds from the exact analysis, compared with what is claimed.

Claimed ≥ upper bound: Proven. Claimed < lower bound: Refuted. Else Open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpassay.auditing import audit
from dpassay.both import check_mechanism, with_samples
from dpassay.calibrate import classic_gaussian_sigma
from dpassay.claim import Claim
from dpassay.curves import Curve, DropoutCurve, PureCurve
from dpassay.enclosure import TIE, Number, iv, middle, number
from dpassay.errors import InputError
from dpassay.exact import analyse
from dpassay.guarantee import Guarantee, PureDP, guarantee
from dpassay.interval import Interval
from dpassay.law import Gaussian
from dpassay.neighbours import Neighbours
from dpassay.noise import Additive
from dpassay.pipeline import Pipeline
from dpassay.profile import Profile
from dpassay.reason import explain
from dpassay.repair import find_repairs
from dpassay.theorems import Theorem
from dpassay.verdict import Open, Proven, Refuted, Verdict
from dpassay.witness import find_witness

# Where the guarantee that does hold is stated besides δ = 0.
DELTAS = ("1e-9", "1e-6", "1e-3")


def check(
    subject: Any,
    /,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    *,
    epsilon: Any = None,
    delta: Any = None,
    dim: int | None = None,
    neighbours: Neighbours | str | None = None,
    runs: int = 0,
    seed: int = 0,
    **parameters: Any,
) -> Verdict:
    """Judge the claim that a mechanism keeps a guarantee.

    The mechanism is a pipeline, its text (with the parameters that the text names), or a `Claim`: these are analysed
    exactly, and with `runs` also run. Anything else that can be run is judged by the exact loss of the `pairs` where it
    knows its law, and by its outputs.

    >>> print(check("clip(l2, C) | laplace(2*C*sqrt(dim)/eps)", epsilon=1, dim=32, C=1))
    PROVEN: ...
    """
    if not isinstance(subject, Claim | Pipeline | str):
        options = {"epsilon": epsilon, "delta": delta, "dim": dim, "neighbours": neighbours, **parameters}
        return check_mechanism(subject, pairs, runs, seed, options)
    exact = _check_pipeline(subject, epsilon, delta, dim, neighbours, parameters)
    if not runs:
        if pairs is not None:
            raise InputError("a pipeline's pairs are for its samples: say how many runs, check(..., runs=10000)")
        return exact
    promise = exact.guarantee
    options = {"epsilon": promise.exact_epsilon, "delta": promise.exact_delta, "neighbours": exact.neighbours}
    return with_samples(exact, audit(exact.mechanism, pairs, runs=runs, seed=seed, **options))


def _check_pipeline(
    subject: Claim | Pipeline | str,
    epsilon: Any,
    delta: Any,
    dim: int | None,
    neighbours: Neighbours | str | None,
    parameters: dict[str, Any],
) -> Verdict:
    claim, pipeline = _read(subject, epsilon, delta, dim, parameters)
    promise = guarantee(claim.epsilon, claim.delta)
    if isinstance(neighbours, str):
        neighbours = Neighbours(neighbours)  # type: ignore[arg-type]
    relation = neighbours or claim.neighbours or pipeline.neighbours
    profile = analyse(pipeline, relation)
    return _judge(claim, pipeline, promise, relation, profile)


def _read(
    subject: Claim | Pipeline | str, epsilon: Any, delta: Any, dim: int | None, parameters: dict[str, Any]
) -> tuple[Claim, Pipeline]:
    changes = {"epsilon": epsilon, "delta": delta, "dim": dim}
    given = {key: value for key, value in changes.items() if value is not None}
    if isinstance(subject, Claim):
        claim = subject(**given, **parameters) if given or parameters else subject
        return claim, claim.mechanism
    if epsilon is None:
        raise InputError("say which epsilon is claimed: check(..., epsilon=1)")
    if isinstance(subject, Pipeline):
        if parameters or dim not in (None, subject.dim):
            raise InputError("a Pipeline has its dimension and parameters already; give them only with a text")
        return Claim("pipeline", str(subject), epsilon, delta or 0, subject.dim), subject
    claim = Claim("pipeline", subject, epsilon, 0 if delta is None else delta, dim, parameters)
    return claim, claim.mechanism


def _judge(claim: Claim, pipeline: Pipeline, promise: Guarantee, neighbours: Neighbours, profile: Profile) -> Verdict:
    pure = isinstance(promise, PureDP)
    value = profile.pure if pure else profile.delta(promise.exact_epsilon)
    limit = promise.exact_epsilon if pure else promise.exact_delta
    kind: type[Verdict] = Open
    if value.b <= (limit * (1 + TIE)).b:
        kind = Proven
    elif value.a > (limit * (1 + TIE)).b:
        kind = Refuted
    epsilon = _agreeing(profile.pure if pure else profile.epsilon(promise.exact_delta), promise, kind)
    lower, upper = _sources(profile, promise)
    refuted = kind is Refuted
    return kind(
        name=claim.name,
        source=claim.source,
        mechanism=pipeline,
        text=claim.pipeline,
        parameters={**claim.parameters, **({} if claim.dim is None else {"dim": claim.dim})},
        neighbours=neighbours,
        guarantee=promise,
        epsilon=Interval.around(epsilon, lower, upper),
        delta=None if pure else Interval.around(value, lower, upper),
        reason=explain(kind.word, pipeline, profile, promise, value),
        witness=find_witness(pipeline, profile, promise) if refuted else None,
        holds=_holding(profile, promise) if refuted else (),
        repairs=find_repairs(pipeline, neighbours, promise) if refuted else (),
        warnings=_warnings(pipeline, promise, profile),
        theorems=_theorems(profile, promise),
        expected=claim.expected,
    )


def _agreeing(epsilon: Number, promise: Guarantee, kind: type[Verdict]) -> Number:
    """Cut ε to what the decision says (it may rest on δ, or be a tie): both are one statement."""
    claimed = promise.exact_epsilon
    if kind is Proven and epsilon.b > claimed.b:
        return iv.mpf([min(epsilon.a, claimed.a), claimed.b])
    if kind is Refuted and epsilon.a < claimed.a:
        return iv.mpf([claimed.a, max(epsilon.b, claimed.b)])
    return epsilon


def _chosen(profile: Profile, promise: Guarantee) -> tuple[Curve | None, Curve]:
    """The curves that give the lower and the upper bound."""
    if isinstance(promise, PureDP):
        best, upper = profile.worst_pure(), profile.upper_pure()
    else:
        best, upper = profile.worst_at(promise.exact_epsilon), profile.upper_at(promise.exact_epsilon)
    return (None if best is None else best.curve), upper


def _sources(profile: Profile, promise: Guarantee) -> tuple[str, str]:
    lower, upper = _chosen(profile, promise)
    if lower is None:
        known = profile.pure_from_tails is not None and isinstance(promise, PureDP)
        return ("far-out outputs of a pair of neighbours" if known else "nothing"), upper.theorem.page
    return f"the exact loss of a pair of neighbours, {lower.theorem.page}", upper.theorem.page


def _theorems(profile: Profile, promise: Guarantee) -> tuple[Theorem, ...]:
    lower, upper = _chosen(profile, promise)
    used = [*profile.theorems, upper.theorem, *([] if lower is None else [lower.theorem])]
    if not isinstance(promise, PureDP):
        behind = upper.curve if isinstance(upper, DropoutCurve) else upper
        used += [Theorem.PURE_TO_APPROXIMATE] if isinstance(behind, PureCurve) else []
        used.append(Theorem.HOCKEY_STICK)
    return tuple(dict.fromkeys([*used, Theorem.ROUNDING]))


def _holding(profile: Profile, promise: Guarantee) -> tuple[tuple[float, Interval], ...]:
    """The guarantees that do hold: at δ = 0, at some usual δ, and at the claimed one."""
    rows = [(0.0, Interval.around(profile.pure))]
    deltas = dict.fromkeys([*(number(d) for d in DELTAS), promise.exact_delta])
    for delta in sorted(deltas, key=lambda d: d.mid):
        if delta.a > 0:
            rows.append((middle(delta), Interval.around(iv.mpf([0, profile.epsilon_above(delta).b]))))
    return tuple(rows)


def _warnings(pipeline: Pipeline, promise: Guarantee, profile: Profile) -> tuple[str, ...]:
    found = []
    noises = [pipeline.stages[i] for i in pipeline.noise_positions]
    if len(noises) == 1 and isinstance(noises[0], Additive) and isinstance(noises[0].noise, Gaussian):
        if isinstance(promise, PureDP):
            found.append("Gaussian noise gives no pure DP at any epsilon: claim a delta above 0.")
        elif promise.exact_epsilon.a >= 1 and profile.region is not None:
            classic = classic_gaussian_sigma(promise, profile.region.diameter(2))
            if abs(noises[0].noise.sigma / classic - 1).a < iv.mpf("1e-9"):
                found.append(
                    "The classic Gaussian formula is proved for 0 < epsilon < 1 only; "
                    "this claim was judged by the exact formula instead."
                )
    if not isinstance(promise, PureDP) and promise.exact_delta.a > number("1e-3").b:
        found.append("delta is large: it should be far below one over the number of people in the data.")
    return tuple(found)
