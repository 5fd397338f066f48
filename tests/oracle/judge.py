"""Which statements about a mechanism the oracle knows to be false."""

from __future__ import annotations

from dataclasses import dataclass

from mpmath import mp, mpf

from oracle.losses import Ends, Truth
from oracle.mechanism import DIGITS

TIE = mpf(10) ** -30  # the part of a number by which a claim may be missed and still be met: docs/proofs/rounding.md
LARGEST = mpf(10) ** 5  # beyond this ε only upper ends of δ are looked at


@dataclass(frozen=True)
class Statement:
    """Something said about a mechanism.

    `what` is "epsilon at most" or "epsilon at least" `epsilon`, at δ = `delta`; "delta at most" or "delta at least"
    `delta`, at ε = `epsilon`; "proven", that it is (ε, δ)-DP, or "refuted", that it is not.
    """

    what: str
    epsilon: mpf
    delta: mpf


def _delta(truth: Truth, epsilon: mpf) -> Ends:
    low, high = truth.delta(min(epsilon, LARGEST))
    return (low, high) if epsilon <= LARGEST else (mpf(0), high)


def false_statement(truth: Truth, said: Statement) -> str | None:
    """Why a statement is false, or None where it is true or the oracle cannot tell."""
    with mp.workdps(DIGITS):
        return _why_false(truth, said)


def _why_false(truth: Truth, said: Statement) -> str | None:
    e, d = said.epsilon, said.delta
    if said.what in ("proven", "epsilon at most"):
        if mp.isinf(e):
            return None
        low, limit = (truth.pure[0], e) if d == 0 else (_delta(truth, e)[0], d)
        return f"{said}: at least {mp.nstr(low, 15)}" if low > limit * (1 + TIE) else None
    if said.what == "refuted":
        high, limit = (truth.pure[1], e) if d == 0 else (_delta(truth, e)[1], d)
        return f"{said}: at most {mp.nstr(high, 15)}" if high <= limit * (1 + TIE) else None
    if said.what == "epsilon at least":
        if e == 0:
            return None
        if d == 0:
            return f"{said}: at most {mp.nstr(truth.pure[1], 15)}" if truth.pure[1] < e * (1 - TIE) else None
        high = _delta(truth, e)[1]
        return f"{said}: there delta is at most {mp.nstr(high, 15)}" if high < d * (1 - TIE) else None
    low, high = _delta(truth, e)
    if said.what == "delta at most":
        return f"{said}: at least {mp.nstr(low, 15)}" if low > d * (1 + TIE) else None
    assert said.what == "delta at least", said
    return f"{said}: at most {mp.nstr(high, 15)}" if high < d * (1 - TIE) else None
