"""Rényi DP, zCDP and Gaussian DP of a loss: docs/proofs/guarantees.md. Orders and ε to use come with the evidence.

With t = α − 1 and K(t) = t·D_α, ρ is the largest K(t)/(t(1 + t)), and K is convex. As functions of e^ε, δ and the curve
of Gaussian noise are convex. So chords and tangents at a few points bound the values between them.
"""

from itertools import pairwise

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic import lattice
from dpassay.evidence.verifier.arithmetic.binomial import BitGroups
from dpassay.evidence.verifier.arithmetic.normal import gaussian_delta, tail
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    hull,
    is_infinite,
    iv,
    largest,
    log,
    log_sum,
    positive_part,
    smallest,
)
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.evidence.verifier.noises.losses import (
    FiniteOutcomes,
    Loss,
    LossCurve,
    Summed,
    Worst,
    laplace_moment,
    pure_divergence,
)
from dpassay.evidence.verifier.reading import Guarantee, Step
from dpassay.evidence.verifier.sampling.steps import Basic

_WORK = 1 << 18  # of one divergence or one δ, in the units of `spend`


# ── Rényi divergences ───────────────────────────────────────────────────────────────────────────


def divergence(loss: Loss, order: Number, upper: bool) -> Number:
    """The Rényi divergence of an order: from above for a dominating loss, from below for a pair's.

    From above, ε-DP alone implies a bound; for several losses, each of which may dominate at a different ε, only that.
    """
    spend(_WORK)
    if not upper:
        return _of_pair(loss, order)
    found = pure_divergence(loss.pure, order)
    if isinstance(loss, Basic):
        return smallest([found, divergence(loss.loss, order, True) * loss.count])
    if isinstance(loss, Worst) and loss.divergence is None:
        return smallest([found, divergence(loss.losses[0], order, True)]) if len(loss.losses) == 1 else found
    if isinstance(loss, LossCurve | Worst):
        known = order * loss.rho if isinstance(loss, LossCurve) and loss.rho is not None else INF
        return smallest([found, loss.divergence(order) if loss.divergence is not None else known])
    return smallest([found, _formula(loss, order)])


def _of_pair(loss: Loss, order: Number) -> Number:
    """What a pair shows; 0 if no closed form is known."""
    if isinstance(loss, Worst):
        return largest(_of_pair(one, order) for one in loss.losses)
    if _given_away(loss):
        return INF
    if isinstance(loss, LossCurve) and loss.mu is not None:
        return order * loss.mu**2 / 2
    if isinstance(loss, LossCurve):
        found = loss.divergence(order) if loss.divergence is not None and loss.attained else ZERO
    else:
        found = _formula(loss, order)
    return hull(ZERO, INF) if found.a < 0 else found


def _given_away(loss: Loss) -> bool:
    """Whether some outputs are impossible for the second input."""
    infinite: Number = getattr(loss, "infinite", ZERO)
    return bool(infinite.a > 0)


def _formula(loss: Loss, order: Number) -> Number:
    """The divergence of finitely many outputs, or of a sum of independent losses; 0 to infinity if unknown."""
    if isinstance(loss, FiniteOutcomes):
        return _finite(loss.chances, order)
    if isinstance(loss, BitGroups):
        return sum((_finite(((p, q), (1 - p, 1 - q)), order) * count for p, q, count in loss.groups), ZERO)
    if isinstance(loss, Summed):
        return sum((_part(part, order) * count for part, count in loss.parts), ZERO)
    return hull(ZERO, INF)


def _finite(chances: tuple[tuple[Number, Number], ...], order: Number) -> Number:
    """ln Σ p^α q^(1−α), divided by α − 1."""
    total = -INF
    for p, q in chances:
        if p.b <= 0:
            continue
        if q.a <= 0 or p.a <= 0:
            return INF if q.b <= 0 and p.a > 0 else hull(ZERO, INF)
        total = log_sum(total, order * log(p) + (1 - order) * log(q))
    return positive_part(total / (order - 1))


def _part(part: lattice.Part, order: Number) -> Number:
    if isinstance(part, lattice.LaplaceShift):
        if part.cut.b > 0:  # of noise that is drawn again until it lies between limits it is not known
            return hull(ZERO, INF)
        return laplace_moment(part.shift, order) / (order - 1)
    if part.infinite.b > 0:
        return INF if part.infinite.a > 0 else hull(ZERO, INF)
    total = -INF
    if isinstance(part, lattice.Rungs):
        atoms = [(part.unit * (part.start + i), chance) for i, chance in enumerate(part.chances)]
        spend(len(atoms) << 13)  # numbers of 60 digits
    else:
        atoms = list(part.atoms)
    for loss, chance in atoms:
        total = log_sum(total, (order - 1) * loss + log(chance))
    return total / (order - 1)


# ── From above ──────────────────────────────────────────────────────────────────────────────────


def most(loss: Loss, step: Step) -> Number:
    """An upper bound on the parameter of a loss that dominates all pairs, by the points of a step."""
    stated = _stated(step)
    if stated.kind == "renyi":
        return divergence(loss, _order(stated), True)
    mu = loss.mu if isinstance(loss, LossCurve) else None
    if stated.kind == "zcdp":
        rho = loss.rho if isinstance(loss, LossCurve) else None
        return rho if rho is not None else _largest_rate(loss, step.points)
    if mu is not None:
        return mu
    if not is_infinite(loss.pure) and (tail(stated.value / 2) - 1 / (1 + iv.exp(loss.pure))).b <= 0:
        return stated.value  # ε-DP implies it
    return stated.value if _stays_below(loss, step.points, stated.value) else INF


def _stated(step: Step) -> Guarantee:
    assert step.guarantee is not None
    return step.guarantee


def _order(stated: Guarantee) -> Number:
    assert stated.order is not None
    return stated.order


def _rising(points: tuple[Number, ...], least: Number) -> None:
    if len(points) < 2 or not points[0].a >= least.b:
        raise CertificateError("at least two points are needed, none of them too small")
    if not all(one.b < other.a for one, other in pairwise(points)):
        raise CertificateError("the points are not in increasing order")


def _largest_rate(loss: Loss, orders: tuple[Number, ...]) -> Number:
    """The largest D_α/α: below the first order, between any two, and beyond the last."""
    if loss.pure.b <= 0:
        return ZERO
    _rising(orders, ONE)
    at = [(order - 1, (order - 1) * divergence(loss, order, True)) for order in orders if order.a > 1]
    if len(at) < len(orders) or is_infinite(loss.pure):
        raise CertificateError("orders must be above 1, and losses bounded")
    ends = [at[0][1] / at[0][0], loss.pure / orders[-1]]
    return largest([*ends, *(_chord(one, other) for one, other in pairwise(at))])


def _chord(start: tuple[Number, Number], end: tuple[Number, Number]) -> Number:
    """The largest (p + q u)/(u(1 + u)) between two u, where p + q u is the chord of K."""
    (low, first), (high, last) = ((t, iv.mpf(k.b)) for t, k in (start, end))
    q = (last - first) / (high - low)
    p = first - q * low

    def value(u: Number) -> Number:
        return (p + q * u) / (u * (1 + u))

    ends = largest([value(low), value(high)])
    if p.a >= 0:  # then it decreases
        return ends
    if p.b >= 0 or q.a <= 0:  # signs hidden by rounding
        return largest([ends, (abs(p) + abs(q) * high) / (low * (1 + low))])
    top = (-p + iv.sqrt(p * p - p * q)) / q
    return ends if top.b <= low.a or top.a >= high.b else largest([ends, value(top)])


def _stays_below(loss: Loss, points: tuple[Number, ...], mu: Number) -> bool:
    """Whether δ, 0 from the largest loss on, certainly stays below that of Gaussian noise with this μ."""
    _rising(points, ZERO)
    if not (points[0].b <= 0 and mu.a > 0 and loss.pure.b <= points[-1].a):
        raise CertificateError("the points must go from 0 to the largest loss")
    at = []
    for epsilon in points:
        spend(_WORK)
        delta = ZERO if epsilon is points[-1] else iv.mpf(loss.delta(iv.mpf(epsilon.a), True).b)
        at.append((epsilon, delta))
    return all(_cell_below(start, end, mu) for start, end in pairwise(at))


def _cell_below(start: tuple[Number, Number], end: tuple[Number, Number], mu: Number) -> bool:
    """Whether the chord of δ between two ε lies below the higher of both tangents to the Gaussian curve."""
    (low, first), (high, last) = start, end
    width = iv.exp(high - low) - 1  # e^ε is divided by e^low
    tangents = []
    for epsilon, place in ((low, ZERO), (high, width)):
        slope = -iv.exp(low) * tail(epsilon / mu + mu / 2)
        tangents.append((gaussian_delta(epsilon, mu) - slope * place, slope))
    fall = (last - first) / width

    def above(place: Number) -> bool:
        chord = first + fall * place
        return any((at_0 + slope * place - chord).a >= 0 for at_0, slope in tangents)

    (first_at_0, first_slope), (last_at_0, last_slope) = tangents
    if not above(ZERO) or not above(width) or (last_slope - first_slope).a <= 0:
        return False
    meet = (first_at_0 - last_at_0) / (last_slope - first_slope)
    inside = iv.mpf([max(meet.a, ZERO.a), min(meet.b, width.b)]) if meet.b >= 0 and meet.a <= width.b else ZERO
    return above(inside)


# ── From below ──────────────────────────────────────────────────────────────────────────────────


def least(loss: Loss, step: Step) -> Number:
    """A lower bound on the parameter from a pair's loss, at the order or the ε of a step."""
    stated = _stated(step)
    if stated.kind == "renyi":
        return divergence(loss, _order(stated), False)
    if stated.kind == "zcdp":
        if step.order is None:
            raise CertificateError("rho is shown at an order")
        return divergence(loss, step.order, False) / step.order
    if _given_away(loss):
        return INF
    mu = loss.mu if isinstance(loss, LossCurve) else None
    if mu is not None:
        return mu
    if is_infinite(stated.value):
        raise CertificateError("mu is shown to be infinite by outputs that one input cannot give")
    shown = loss.delta(iv.mpf(step.epsilon.b), False)
    return stated.value if shown.a > gaussian_delta(step.epsilon, stated.value).b else ZERO
