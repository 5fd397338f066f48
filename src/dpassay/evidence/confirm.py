"""No claim is decided by the prover alone: the verifier, which shares no code with it, has to follow.

What decides a claim is written as a step of a certificate and checked at once. If none is accepted, the claim stays
open, and nothing is stated on the side of the interval that would have decided it.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpassay.core.interval import Interval
from dpassay.errors import InputError
from dpassay.evidence.certificate import deciding_step
from dpassay.evidence.verdict import Bounds, Open, Verdict

_NOTHING = "nothing"


def confirmed(verdict: Verdict, write: Callable[[Verdict], Any] = deciding_step) -> Verdict:
    """An exact verdict, or Open if the verifier cannot follow what decides it, as `write` puts it down."""
    if verdict.open:
        return verdict
    try:
        write(verdict)
    except InputError as error:
        return Open(
            verdict.claim,
            _without_decision(verdict),
            f"Open, which proves nothing: by the analysis alone the claim would be {verdict.word}, but no certificate "
            f"could be written ({error}).",
            replace(verdict.exact, witness=None),
            advice=replace(verdict.advice, holds=(), repairs=()),
        )
    return verdict


def _without_decision(verdict: Verdict) -> Bounds:
    """The bounds without the end that nobody can check."""

    def widened(known: Interval, most: float) -> Interval:
        if verdict.proven:
            return Interval(known.lower, most, known.lower_from, _NOTHING)
        return Interval(0.0, known.upper, _NOTHING, known.upper_from)

    bounds = verdict.bounds
    delta = None if bounds.delta is None else widened(bounds.delta, 1.0)
    return Bounds(widened(bounds.value, math.inf), delta, bounds.least_delta if verdict.proven else 0.0)
