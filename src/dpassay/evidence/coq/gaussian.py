"""Gaussian noise on one number at (epsilon, delta): at most two integrals, which Coq bounds."""

from fractions import Fraction

from mpmath import mp

from dpassay.evidence.coq.claim import CertifiedClaim, verdict_theorem
from dpassay.evidence.coq.terms import CoqNumber, CoqStage, Unsupported

_CLOSEST = 1e-22  # how much of the event's probability must be left to decide the claim
_TAIL = 12  # standard deviations
_FARTHEST = 40
_RAREST = 200
_RARE = 1_000  # e^-1000 of what it is compared with is as good as 0, and no work for interval arithmetic
_NORMS = (("l1",), ("l2",), ("linf",))  # the same for one answer


def gaussian(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    """The event: outputs beyond the point where the loss is epsilon, up to 12 standard deviations farther.

    To refute a claim, outputs more than 12 standard deviations before the farther input are left out. Inputs very far
    apart need no integral but that of the noise itself, and outputs beyond the point that are rare enough need none.
    """
    if claim.dim != 1 or not claim.single_step or stages[0].words not in _NORMS:
        raise Unsupported(
            "Gaussian noise can be written for Coq only for a query with one answer, and only for one record"
        )
    distance, sigma = stages[0].numbers[0], stages[1].numbers[0]
    says = f"gaussian_private {sigma.text} {claim.eps} {claim.allowed} {distance.text}"
    if claim.refuted and claim.delta == 0:
        return verdict_theorem(claim, says, "apply: gaussian_not_pure; number.")
    if claim.epsilon <= 0 or claim.delta <= 0:
        raise Unsupported("Gaussian noise can be written for Coq for an epsilon and a delta above 0")
    if claim.refuted and distance.about > _FARTHEST * sigma.about:
        use = f"@gaussian_far _ _ _ _ _ {_far(claim, distance, sigma)}"
        return verdict_theorem(claim, says, f"apply: ({use}); gaussian_number.")
    if not claim.refuted and (exponent := _beyond(claim, distance, sigma)):
        return verdict_theorem(claim, says, f"apply: (@gaussian_near _ _ _ _ _ {exponent}); gaussian_number.")
    start, end, shown = _numbers(claim, distance, sigma)
    use = f"@gaussian_refuted _ _ _ _ {start}" if claim.refuted else "@gaussian_proven _ _ _ _ _"
    return verdict_theorem(claim, says, f"apply: ({use} {end} {' '.join(shown)}); gaussian_number.")


def _beyond(claim: CertifiedClaim, distance: CoqNumber, sigma: CoqNumber) -> str:
    """How rare outputs beyond the threshold are, as an exponent, if that alone proves the claim, without integrals."""
    eps, delta = CoqNumber.of(claim.epsilon).about, CoqNumber.of(claim.delta).about
    away = sigma.about * eps / distance.about - distance.about / (2 * sigma.about)  # in standard deviations
    if away <= 1:
        return ""
    exponent = CoqNumber.of(Fraction(int(min(away**2 / 2, _RARE - mp.log(delta)) * 1000) - 1, 1000))
    least = 2 / (away * mp.sqrt(2 * mp.pi)) * mp.exp(-exponent.about)
    return exponent.text if least <= delta * (1 - mp.mpf(_CLOSEST)) else ""


def _far(claim: CertifiedClaim, distance: CoqNumber, sigma: CoqNumber) -> str:
    """How far outputs may be from the farther input, how rare they are for the other, and a probability in between."""
    width, eps = sigma.about, CoqNumber.of(claim.epsilon).about
    near = CoqNumber.near(_TAIL * width, width)
    exponent = int(min(_RARE + eps, (distance.about - near.about) ** 2 / (2 * width**2))) - 1
    shown = mp.ncdf(near.about, 0, width) - mp.ncdf(-near.about, 0, width)
    peak = 1 / (width * mp.sqrt(2 * mp.pi))
    least = mp.exp(eps - exponent) * 2 * near.about * peak + CoqNumber.of(claim.delta).about
    if shown - least <= _CLOSEST:
        raise Unsupported("this claim is too close to call for the integrals of Coq")
    return f"{near.text} {exponent} {CoqNumber.near((shown + least) / 2, shown - least).text}"


def _numbers(claim: CertifiedClaim, distance: CoqNumber, sigma: CoqNumber) -> tuple[str, str, list[str]]:
    """The ends of the event, and bounds on its probabilities and on what lies beyond, with a part of the slack each."""
    far, width = distance.about, sigma.about
    eps, delta = CoqNumber.of(claim.epsilon).about, CoqNumber.of(claim.delta).about
    if far > _FARTHEST * width:
        raise Unsupported("inputs this many standard deviations apart are out of reach of Coq's integrals")
    start, begin = width**2 * eps / far + far / 2, f"(threshold {sigma.text} {claim.eps} {distance.text})"
    if claim.refuted and start < far - _TAIL * width:
        nearer = CoqNumber.near(far - _TAIL * width, width)
        start, begin = nearer.about, nearer.text
    if start > far + _RAREST * width:
        raise Unsupported("outputs this many standard deviations away are out of reach of Coq's integrals")
    end = CoqNumber.near(max(start, far) + _TAIL * width, width)
    stop = end.about
    p, q = (mp.ncdf(centre, start, width) - mp.ncdf(centre, stop, width) for centre in (far, mp.mpf(0)))
    beyond = 2 * width**2 / (stop - far) * mp.npdf(stop, far, width)
    excess = p - mp.exp(eps) * q - delta
    slack = excess if claim.refuted else -excess - beyond
    if slack <= _CLOSEST * p:
        raise Unsupported("this claim is too close to call for the integrals of Coq")
    part = (-slack if claim.refuted else slack) / 4
    shown = [CoqNumber.near(p + part, slack), CoqNumber.near(q - part / mp.exp(eps), slack / mp.exp(eps))]
    shown += [] if claim.refuted else [CoqNumber.near(beyond + part, slack)]
    return begin, end.text, [term.text for term in shown]
