"""From a claim to a verdict: bounds from the exact analysis, compared with what is claimed.

Claimed ≥ upper bound: Proven. Claimed < lower bound: Refuted. Otherwise Open; also where the verifier cannot follow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from dpassay.adapters import adapted
from dpassay.claims.claim import Claim
from dpassay.claims.judge import judge
from dpassay.claims.registry import REGISTRY, claim_called
from dpassay.core.guarantee import (
    Guarantee,
    epsilon_delta,
    statement,
)
from dpassay.core.interval import Interval, outward
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import TIE, down, number
from dpassay.core.parameters import merge_parameters, refuse_misspelled
from dpassay.errors import ExpressionError, InputError, counted
from dpassay.evidence.confirm import confirmed
from dpassay.evidence.verdict import Advice, ExactEvidence, Refuted, Verdict
from dpassay.exact.analysis import analyse
from dpassay.exact.guarantees.true_parameter import has_extreme_numbers
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.mechanism import HasDistribution
from dpassay.pipeline.pipeline import Pipeline
from dpassay.words.mechanisms import MECHANISMS, WordMechanism

# Besides what is claimed.
OPTIONS = ("pairs", "guarantee", "neighbours", "people", "runs", "seed", "tight", "parameters")


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
    tight: bool = False,
    parameters: Mapping[str, Any] | None = None,
    **more: Any,
) -> Verdict:
    """Judge the claim that a mechanism satisfies a guarantee.

    The mechanism is a pipeline or its text, a `Claim`, the name of a published claim, or the path of a .toml file with
    one: these are analyzed exactly, and with `runs` also run. What is claimed is `epsilon`, perhaps with `delta`, or
    another `guarantee`: MetricDP, RenyiDP, ZCDP, GDP. Objects of some libraries, such as OpenDP's measurements, state
    their own claim (docs/adapters.md). Values for the names in the text are `parameters`, or keyword arguments if no
    option has that name. `people` is the number of rows in the data: delta must be far below one over that number.
    `santext`, `custext` and `tem` replace words and take a `vocabulary`: `words.judge.check_words`. Anything else
    that can be run is judged by its outputs and, if it knows their distribution, by the exact loss of the `pairs`.

    Bounds that take seconds are left out if the others decide the claim and enclose ε within 3%. With `tight` they are
    always used.

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
    refuse_misspelled(more, OPTIONS, f"{subject} {getattr(subject, 'pipeline', '')}")
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
    exact = _judged(claim, pipeline, relation, tight=tight)
    if read is not None:
        exact = _confirmed(exact, read, pairs)
    if not runs:
        return exact
    from dpassay.audit.runner import audit

    claimed = epsilon_delta(exact.guarantee)
    if subject is runnable and not isinstance(subject, Pipeline):
        return with_samples(exact, audit(claim, pairs, runs=runs, seed=seed, neighbours=relation))
    options = {"epsilon": claimed.exact_epsilon, "delta": claimed.exact_delta, "neighbours": relation}
    return with_samples(exact, audit(runnable, pairs, runs=runs, seed=seed, **options))


def _judged(claim: Claim, pipeline: Pipeline, relation: Neighbours, *, tight: bool) -> Verdict:
    """The verdict on a formula; numbers too extreme for it are an error of their own."""
    try:
        return confirmed(judge(claim, pipeline, claim.guarantee, relation, analyse(pipeline, relation), tight=tight))
    except InputError:
        raise
    except (ArithmeticError, LookupError, ValueError, MemoryError) as error:
        if not has_extreme_numbers(pipeline, claim.guarantee):
            raise  # a fault of ours
        raise InputError(
            "these numbers are too large or too small for a verdict; choose numbers closer to 1 (multiplying noise and "
            "distances by the same factor changes nothing)"
        ) from error


def _confirmed(verdict: Verdict, read: Any, pairs: Sequence[tuple[Any, Any]] | None) -> Verdict:
    """The verdict on an object's formula, with what its runs say about that."""
    from dpassay.adapters.confirming import with_confirmation
    from dpassay.audit.mechanisms.targets import as_mechanism

    return with_confirmation(verdict, read, as_mechanism, pairs)


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
    shown = f"{counted(sampled.runs, 'run')} {'shows' if sampled.runs == 1 else 'show'}"
    runs = f"{shown} an epsilon of at least {outward(sampled.epsilon.lower, -1, 5)}."
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
    from dpassay.audit.mechanisms.targets import as_mechanism
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
