"""Gaussian noise on one number at (epsilon, delta): two integrals, which Coq bounds."""

from fractions import Fraction
from typing import Any

from mpmath import mp

from dpassay.evidence.coq.claim import Claim, verdict_theorem
from dpassay.evidence.coq.terms import Stage, Term, Unsupported

_DIGITS = 60  # of the numbers that are suggested; Coq checks them
_CLOSEST = 1e-22  # how much of the event's probability must be left to decide the claim
_NORMS = (("l1",), ("l2",), ("linf",))  # the same for one answer


def gaussian(claim: Claim, stages: list[Stage]) -> list[str]:
    """The event: outputs beyond the point where the loss is epsilon, up to 12 standard deviations farther."""
    if claim.dim != 1 or claim.neighbours != "query" or stages[0].words not in _NORMS:
        raise Unsupported("Gaussian noise can be written for Coq for a query with one answer, and not for groups")
    distance, sigma = stages[0].numbers[0], stages[1].numbers[0]
    if distance.exact is None or claim.epsilon <= 0:
        raise Unsupported("Gaussian noise can be written for Coq for a rational distance and an epsilon above 0")
    with mp.workdps(_DIGITS):
        end, shown = _numbers(claim, distance.exact, sigma)
    says = f"gaussian_private {sigma.text} {claim.eps} {Term.of(claim.delta).text} {distance.text}"
    start = f"(threshold {sigma.text} {claim.eps} {distance.text})"
    use = f"@gaussian_refuted _ _ _ _ {start}" if claim.refuted else "@gaussian_proven _ _ _ _ _"
    return verdict_theorem(claim, says, f"apply: ({use} {end} {' '.join(shown)}); gaussian_number.")


def _numbers(claim: Claim, distance: Fraction, sigma: Term) -> tuple[str, list[str]]:
    """The end of the event, and bounds on its probabilities and on what lies beyond, with a part of the slack each."""
    width = mp.mpf(sigma.about) if sigma.exact is None else _number(sigma.exact)
    far, eps, delta = _number(distance), _number(claim.epsilon), _number(claim.delta)
    start = width**2 * eps / far + far / 2
    end = Fraction(int(max(start, far) * 1000 + 12000 * width) + 1, 1000)
    stop = _number(end)
    p, q = (mp.ncdf(centre, start, width) - mp.ncdf(centre, stop, width) for centre in (far, mp.mpf(0)))
    beyond = 2 * width**2 / (stop - far) * mp.npdf(stop, far, width)
    excess = p - mp.exp(eps) * q - delta
    slack = excess if claim.refuted else -excess - beyond
    if slack <= _CLOSEST * p:
        raise Unsupported("this claim is too close to call for the integrals of Coq")
    part = (-slack if claim.refuted else slack) / 4
    shown = [_decimal(p + part, slack), _decimal(q - part / mp.exp(eps), slack / mp.exp(eps))]
    return Term.of(end).text, shown if claim.refuted else [*shown, _decimal(beyond + part, slack)]


def _number(value: Fraction) -> Any:
    return mp.mpf(value.numerator) / value.denominator


def _decimal(value: Any, slack: Any) -> str:
    """A decimal nearby, exact to a small part of the slack."""
    digits = max(3, 3 - int(mp.floor(mp.log10(slack))))
    return Term.of(Fraction(int(mp.nint(value * mp.mpf(10) ** digits)), 10**digits)).text
