"""Which statements about a mechanism the oracle knows to be true, and which to be false."""

from __future__ import annotations

from dataclasses import dataclass

from mpmath import mp, mpf

from oracle.losses import Ends, Truth
from oracle.mechanism import DIGITS

TIE = 4 * mpf(10) ** -30  # a claim that is missed by one part in 10³⁰ is met: docs/proofs/rounding.md
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
    if epsilon <= LARGEST:
        return low, high
    # What does not fall from ε to 10ε is what gives the input away, however large ε is. Doubtful only next to 1.
    stays = low == 1 or (low < 1 - mpf(10) ** -20 and abs(low - truth.delta(LARGEST / 10)[0]) <= TIE * low / 8)
    return (low if stays else mpf(0)), high


def judged(truth: Truth, said: Statement) -> tuple[str, str]:
    """ "true", "false" or "unknown", where the oracle's ends are too far apart to tell; and for a false one why."""
    with mp.workdps(DIGITS):
        return _judged(truth, said)


def false_statement(truth: Truth, said: Statement) -> str | None:
    """Why a statement is false, or None where it is true or the oracle cannot tell."""
    word, why = judged(truth, said)
    return why if word == "false" else None


def _judged(truth: Truth, said: Statement) -> tuple[str, str]:
    e, d = said.epsilon, said.delta
    if said.what in ("proven", "epsilon at most", "delta at most"):
        if mp.isinf(e):
            return "true", ""
        pure = d == 0 and said.what != "delta at most"
        (low, high), limit = (truth.pure, e) if pure else (_delta(truth, e), d)
        if low > limit * (1 + TIE):
            return "false", f"{said}: at least {mp.nstr(low, 15)}"
        return ("true" if high <= limit * (1 + TIE) else "unknown"), ""
    # "refuted" by more than the tie; the others up to it
    pure = d == 0 and said.what != "delta at least"
    (low, high), limit = (truth.pure, e) if pure else (_delta(truth, e), d)
    if said.what == "refuted":
        if high <= limit * (1 + TIE / 8):
            return "false", f"{said}: at most {mp.nstr(high, 15)}"
        return ("true" if low > limit else "unknown"), ""
    assert said.what in ("epsilon at least", "delta at least"), said
    if limit == 0 or (said.what == "epsilon at least" and e == 0):
        return "true", ""
    if high < limit * (1 - TIE):
        return "false", f"{said}: at most {mp.nstr(high, 15)}"
    return ("true" if low >= limit * (1 - TIE) else "unknown"), ""
