"""Rényi divergences of a mechanism, and with them ρ of zCDP: docs/proofs/guarantees.md, points 1 to 4.

With t = α − 1 and K(t) = t·D_α, the logarithm of E[e^(tL)], ρ is the largest K(t)/(t(1 + t)). K is convex and 0 at 0,
so a chord bounds it between two orders, and a few orders bound ρ from above.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import pairwise

from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    between,
    log_add,
    maximum,
    middle,
    minimum,
    number,
    real,
    sqrt,
)
from dpassay.exact.pld.loss_components import GaussianLoss
from dpassay.exact.pld.noises.integer import DiscreteGaussianLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounded_range import RangeBound, loss_divergence
from dpassay.exact.profiles.bounds import ProfileBound, RenyiBound, ZcdpBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.values import dataclass

_MOST_SPLITS = 300
_CLOSE = 1 + real("1e-7")
_LEAST = 2.0**-24  # the smallest order considered, minus 1
NEAREST_ORDER = 1 + real(_LEAST)


@dataclass(frozen=True)
class Shown:
    """What a pair of neighbors shows: a lower bound, the pair, and the order, or the ε, at which it shows it."""

    value: Number
    candidate: Candidate | None = None
    at: Number | None = None


def pair_losses(profile: PrivacyProfile, order: Number | None = None) -> list[tuple[Candidate, PrivacyLoss]]:
    """The losses of real pairs, in both directions, that are fully known; with an order, also of its worst pairs."""
    candidates = profile.candidates if order is None else profile.candidates_at(order)
    known = ((c, c.bound) for c in candidates if c.bound.losses)
    return [(candidate, loss) for candidate, bound in known for loss in bound.losses]


def divergence(loss: PrivacyLoss, order: Number) -> Number:
    """The Rényi divergence of an order; from 0 to infinity if there is no closed form.

    >>> float(divergence(PrivacyLoss(((GaussianLoss(ONE), 4),)), real(3)).mid)  # 4·3/2
    6.0
    """
    if loss.infinite.b > 0:
        return INFINITY if loss.infinite.a > 0 else between(ZERO, INFINITY)
    found = loss_divergence(loss, order)
    return between(ZERO, loss.pure) if found == INFINITY else found


def renyi(profile: PrivacyProfile, order: Number) -> tuple[Shown, Number]:
    """The largest divergence of an order found for a pair, and the bound on that of all pairs."""
    shown = [Shown(divergence(loss, order), c, order) for c, loss in pair_losses(profile, order)]
    best = max(shown, key=lambda each: each.value.a, default=Shown(ZERO))
    return best, minimum(INFINITY, *(bound_divergence(bound, order) for bound in profile.uppers))


def bound_divergence(bound: ProfileBound, order: Number) -> Number:
    """What a bound on all pairs implies for their Rényi divergence; only what ε-DP implies if nothing better is known.

    >>> from dpassay.core.theorems import Theorem
    >>> from dpassay.exact.profiles.bounds import PureBound
    >>> round(middle(bound_divergence(PureBound(ONE, Theorem.LAPLACE), real(2))), 6)  # ln(e^2 + e^-1) - ln(1 + e)
    0.7353...
    """
    if isinstance(bound, RangeBound | RenyiBound | ZcdpBound):
        return bound.divergence(order)
    # Several losses may each dominate at a different ε; then none of them bounds an integral over all ε.
    if len(bound.losses) == 1:
        return divergence(bound.losses[0], order)
    pure = bound.pure
    if pure.b == INFINITY:
        return INFINITY
    less = order - 1
    return (log_add(order * pure, -less * pure) - log_add(pure, ZERO)) / less


def zcdp(profile: PrivacyProfile) -> tuple[Shown, Number]:
    """The largest ρ found for a pair, and the bound on that of all pairs."""
    best = Shown(ZERO)
    for candidate, loss in pair_losses(profile, NEAREST_ORDER):
        rho, order = largest_rate_shown(loss)
        if rho.a > best.value.a:
            best = Shown(rho, candidate, order)
    return best, minimum(INFINITY, *(largest_rate(bound) for bound in profile.uppers))


def largest_rate_shown(loss: PrivacyLoss) -> tuple[Number, Number]:
    """A lower bound on D_α/α over all orders, and the order; the mean is the limit at order 1.

    >>> rho, order = largest_rate_shown(PrivacyLoss(((GaussianLoss(real(2)), 1),)))
    >>> middle(rho)
    2.0
    """
    if loss.infinite.a > 0:
        return INFINITY, real(2)

    def near(t: float) -> float:
        order = number(1 + math.exp(t))
        found = divergence(loss, order)
        return middle(found / order) if found.b < INFINITY else 0.0

    if all(isinstance(component, GaussianLoss | DiscreteGaussianLoss) for component, _ in loss.components):
        return divergence(loss, real(2)) / 2, real(2)
    start = max((-14 + 0.7 * i for i in range(31)), key=near)
    low, high = start - 0.7, start + 0.7
    for _ in range(20):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if near(left) > near(right) else (left, high)
    order = number(1 + math.exp((low + high) / 2))
    found = divergence(loss, order) / order
    mean = sum((component.mean * n for component, n in loss.components), ZERO)
    return (mean, ONE) if mean.a > found.a else (found, order)


def largest_rate(bound: ProfileBound) -> Number:
    """An upper bound on D_α/α over all orders α > 1.

    >>> from dpassay.core.theorems import Theorem
    >>> from dpassay.exact.profiles.bounds import PureBound
    >>> round(middle(largest_rate(PureBound(ONE, Theorem.LAPLACE))), 6)  # tanh(1/2), the limit at order 1
    0.462117
    """
    if isinstance(bound, ZcdpBound):
        return bound.rho
    if len(bound.losses) == 1:
        loss = bound.losses[0]
        shifts = [component.mu**2 * n for component, n in loss.components if isinstance(component, GaussianLoss)]
        rest = PrivacyLoss(tuple(part for part in loss.components if not isinstance(part[0], GaussianLoss)))
        gaussian = sum(shifts, ZERO) / 2
        if not rest.components:
            return gaussian
        return gaussian + _largest_rate(lambda order: divergence(rest, order), rest.pure)[0]
    return _largest_rate(lambda order: bound_divergence(bound, order), bound.pure)[0]


def rate_orders(bound: ProfileBound) -> list[Number]:
    """Increasing orders at which the divergences of a bound determine ρ about as well as `largest_rate` does."""
    return [ONE + t for t in _largest_rate(lambda order: bound_divergence(bound, order), bound.pure)[1]]


def _largest_rate(divergence_at: Callable[[Number], Number], pure: Number) -> tuple[Number, list[float]]:
    """Branch and bound over orders, from the smallest to the point where the largest loss alone suffices.

    Returns the bound and the orders considered, minus 1.
    """
    if pure.b == INFINITY:
        return INFINITY, []
    if pure.b <= 0:
        return ZERO, []
    points: dict[float, Number] = {}

    def log_moment(t: float) -> Number:
        if t not in points:
            points[t] = real((t * divergence_at(ONE + t)).b)
        return points[t]

    def shown(t: float) -> Number:
        return log_moment(t) / (real(t) * (1 + real(t)))

    orders = [_LEAST * 4.0**i for i in range(13)]  # up to t = 1
    best = max(middle(shown(t)) for t in orders)
    while middle(pure) / (1 + orders[-1]) > best and orders[-1] < 1e9:
        orders.append(4 * orders[-1])
        best = max(best, middle(shown(orders[-1])))
    ends = [log_moment(orders[0]) / real(orders[0]), pure / (1 + real(orders[-1]))]
    cells = [(-middle(top := _chord(s, t, log_moment)), s, t, top) for s, t in pairwise(orders)]
    heapq.heapify(cells)
    for _ in range(_MOST_SPLITS):
        _, s, t, top = cells[0]
        if top.b <= (best * _CLOSE).b or top.b <= max(end.b for end in ends):
            break
        heapq.heappop(cells)
        centre = math.sqrt(s * t)
        best = max(best, middle(shown(centre)))
        for low, high in ((s, centre), (centre, t)):
            top = _chord(low, high, log_moment)
            heapq.heappush(cells, (-middle(top), low, high, top))
    return real(maximum(*ends, *(top for *_, top in cells)).b), sorted(points)


def _chord(s: float, t: float, log_moment: Callable[[float], Number]) -> Number:
    """The largest (p + q u)/(u(1 + u)) for u from s to t, where p + q u is the chord of K."""
    low, high = real(s), real(t)
    q = (log_moment(t) - log_moment(s)) / (high - low)
    p = log_moment(s) - q * low

    def value(u: Number) -> Number:
        return (p + q * u) / (u * (1 + u))

    ends = maximum(value(low), value(high))
    if p.b >= 0 or q.a <= 0:  # p < 0 but for rounding: the chord falls below the tangent at 0
        return maximum(ends, (abs(p) + abs(q) * high) / (low * (1 + low))) if p.a < 0 else ends
    top = (-p + sqrt(p * p - p * q)) / q
    return ends if top.b <= low.a or top.a >= high.b else maximum(ends, value(top))
