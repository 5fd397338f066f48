"""Exact bounds and samples side by side: one interval, one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from dpassay.enclosure import TIE, down, number
from dpassay.errors import InputError
from dpassay.interval import Interval, outward
from dpassay.loss import Loss
from dpassay.mechanism import HasLaw
from dpassay.subject import as_mechanism
from dpassay.verdict import Refuted, Verdict


def with_samples(exact: Verdict, sampled: Verdict) -> Verdict:
    """The exact verdict with the sampled evidence beside it.

    The lower bound is the better of both. If the samples refute what the formula proves, the code that was run does not
    do what the formula says, and the claim is refuted for the code.
    """
    evidence: dict[str, Any] = {
        "alpha": sampled.alpha,
        "runs": sampled.runs,
        "seed": sampled.seed,
        "ledger": sampled.ledger,
        "theorems": tuple(dict.fromkeys([*exact.theorems, *sampled.theorems])),
        "warnings": (*exact.warnings, *sampled.warnings),
    }
    if sampled.epsilon.lower > exact.epsilon.upper:
        most = outward(exact.epsilon.upper, 1, 5)
        reason = f"The code that was run loses more than its formula, which loses {most} at most. {sampled.reason}"
        return replace(sampled, **{**evidence, "reason": reason, "theorems": sampled.theorems})
    better = sampled.epsilon.lower > exact.epsilon.lower
    lower_from = sampled.epsilon.lower_from if better else exact.epsilon.lower_from
    lower = max(exact.epsilon.lower, sampled.epsilon.lower)
    epsilon = Interval(lower, exact.epsilon.upper, lower_from, exact.epsilon.upper_from)
    kind = Refuted if isinstance(sampled, Refuted) else type(exact)
    found = sampled.epsilon.lower
    reason = f"{exact.reason} {sampled.runs:,} runs show an epsilon of at least {outward(found, -1, 5)}."
    if kind is Refuted and not isinstance(exact, Refuted):
        reason = sampled.reason
    witness = exact.witness or (sampled.witness if kind is Refuted else None)
    merged = replace(exact, epsilon=epsilon, reason=reason, witness=witness, **evidence)
    return kind(**{f.name: getattr(merged, f.name) for f in fields(merged)})


def check_mechanism(
    subject: Any, pairs: Sequence[tuple[Any, Any]] | None, runs: int, seed: int, options: dict[str, Any]
) -> Verdict:
    """Judge something that can only be run, or that knows its law for each input: lower bounds only."""
    from dpassay.auditing import RUNS, audit

    sampled = audit(subject, pairs, runs=runs or RUNS, seed=seed, **options)
    mechanism = as_mechanism(subject)
    if pairs is None or not isinstance(mechanism, HasLaw):
        return sampled
    promise = sampled.guarantee
    best: Interval | None = None
    for x, y in pairs:
        for first, second in ((x, y), (y, x)):
            try:
                loss = Loss.between(mechanism.law(first), mechanism.law(second))
            except (InputError, NotImplementedError):
                continue
            found = loss.epsilon(promise.exact_delta) if promise.delta else Interval.around(loss.pure)
            if best is None or found.lower > best.lower:
                best = found
    if best is None or best.lower <= sampled.epsilon.lower:
        return sampled
    epsilon = Interval(best.lower, sampled.epsilon.upper, "the exact loss of a pair of inputs", "nothing")
    limit = down(number(promise.exact_epsilon) * (1 + TIE))
    if best.lower > limit and not isinstance(sampled, Refuted):
        reason = (
            f"The declared law loses an epsilon of at least {outward(best.lower, -1, 6)} between two of the inputs."
        )
        merged = replace(sampled, epsilon=epsilon, reason=reason)
        return Refuted(**{f.name: getattr(merged, f.name) for f in fields(merged)})
    return replace(sampled, epsilon=epsilon)
