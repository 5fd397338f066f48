"""μ of Gaussian DP, from curves of δ(ε): docs/proofs/guarantees.md, points 5 to 7.

As a function of x = e^ε, δ is convex, and so is that of Gaussian noise, whose slope is −Φ(−ε/μ − μ/2). So δ stays below
its chords, the Gaussian one above its tangents, and a few values of ε decide whether one stays below the other
everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

from dpassay.core.functions.normal import gaussian_delta, gaussian_sigma, normal_tail
from dpassay.core.functions.roots import falling_root
from dpassay.core.guarantee import ApproxDP
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    exp,
    log,
    log_add,
    maximum,
    middle,
    minimum,
    number,
    real,
    sqrt,
    up,
)
from dpassay.errors import InputError
from dpassay.exact.guarantees.renyi import Shown, pair_losses
from dpassay.exact.pld.loss_components import GaussianLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import ProfileBound, PureBound
from dpassay.exact.profiles.profile import PrivacyProfile

_POINTS, _MOST_SPLITS = 16, 100
_SLACKS = ("1e-9", "1e-5", "1e-4", "1e-3", "1e-2", "0.03", "0.1", "0.3", "1")


def gdp(profile: PrivacyProfile) -> tuple[Shown, Number]:
    """The largest μ found for a pair, and the bound on that of all pairs."""
    best = Shown(ZERO)
    for candidate, loss in pair_losses(profile):
        mu, epsilon = largest_mu_shown(loss)
        if mu.a > best.value.a:
            best = Shown(mu, candidate, epsilon)
    return best, largest_mu(profile.uppers, best.value)


def gaussian_mu(loss: PrivacyLoss) -> Number | None:
    """μ of a sum of Gaussian losses; None for others.

    >>> middle(gaussian_mu(PrivacyLoss(((GaussianLoss(real(2)), 4),))))
    4.0
    """
    if not loss.components or not all(isinstance(component, GaussianLoss) for component, _ in loss.components):
        return None
    return sqrt(sum((component.mu**2 * n for component, n in loss.components), ZERO))  # type: ignore[attr-defined]


def largest_mu_shown(loss: PrivacyLoss) -> tuple[Number, Number]:
    """A lower bound on μ, and the ε whose δ shows it."""
    if (exact := gaussian_mu(loss)) is not None:
        return exact, ZERO
    if loss.infinite.a > 0:
        return INFINITY, ZERO
    top = middle(loss.pure) if loss.pure.b < INFINITY else 1.0
    points = [top * i / _POINTS for i in range(_POINTS)]
    found = {epsilon: _mu_at(loss, epsilon) for epsilon in points}
    best = max(found, key=lambda epsilon: middle(found[epsilon]))
    width = top / _POINTS
    for _ in range(4):
        for epsilon in (best - width / 2, best + width / 2):
            if 0 <= epsilon < top:
                found[epsilon] = _mu_at(loss, epsilon)
        best, width = max(found, key=lambda epsilon: middle(found[epsilon])), width / 2
    return found[best], number(best)


def _mu_at(loss: PrivacyLoss, epsilon: float) -> Number:
    """A lower bound on the μ whose δ at this ε is that of the loss."""
    delta = loss.delta_number(number(epsilon))
    if delta.a <= 0:
        return ZERO
    try:
        return 1 / gaussian_sigma(ApproxDP(number(epsilon), real(delta.a)), ONE)
    except InputError:  # too small for the digits
        return ZERO


def largest_mu(bounds: Sequence[ProfileBound], at_least: Number) -> Number:
    """An upper bound on μ of all pairs; `at_least` is a known lower bound, where the search begins.

    >>> from dpassay.core.theorems import Theorem
    >>> from dpassay.exact.profiles.bounds import PureBound
    >>> round(middle(largest_mu([PureBound(ONE, Theorem.LAPLACE)], ZERO)), 6)  # 2 Φ⁻¹(e/(1 + e))
    1.232035
    """
    pairs = [bound for bound in bounds if bound.losses]
    exact = [[gaussian_mu(loss) for loss in pair.losses] for pair in pairs]
    known = [maximum(*(mu for mu in each if mu is not None)) for each in exact if None not in each]
    pure = minimum(INFINITY, *(bound.pure for bound in bounds))
    if known or pure.b == INFINITY:
        return minimum(INFINITY, *known)
    if pure.b <= 0:
        return ZERO
    whole = _of_pure(pure)
    if all(isinstance(bound, PureBound) for bound in bounds):
        return whole

    @cache
    def delta(epsilon: float) -> Number:
        return real(min(bound.delta(real(epsilon)).b for bound in bounds))

    for slack in _SLACKS:
        mu = real((at_least * (1 + real(slack))).b)
        if 0 < mu.b < whole.b and points_below(delta, up(pure), mu):
            return mu
    return whole


def _of_pure(pure: Number) -> Number:
    """μ that ε-DP implies: Φ(−μ/2) = 1/(1 + e^ε)."""
    log_chance = -log_add(real(pure.b), ZERO)

    def gap(z: float) -> float:
        return up(log(normal_tail(real(z))) - log_chance)

    # ln P(N > z) < −z²/2, so the upper end is certainly beyond the root.
    _, half = falling_root(gap, 0.0, math.sqrt(2 * up(-log_chance)) + 1, 1e-14)
    return 2 * real(half)


def points_below(delta: Callable[[float], Number], pure: float, mu: Number) -> list[float]:
    """Values of ε that prove that a convex curve of δ, 0 from `pure` on, stays below that of Gaussian noise with μ.

    Empty if no such proof is found.
    """
    at = [pure * i / _POINTS for i in range(_POINTS + 1)]
    cells, seen = list(pairwise(at)), 0
    while cells:
        low, high = cells.pop()
        first, last = (delta(epsilon) if epsilon < pure else ZERO for epsilon in (low, high))
        if cell_below((real(low), first), (real(high), last), mu):
            continue
        centre, seen = (low + high) / 2, seen + 1
        above = first.b > gaussian_delta(real(low), mu).b or last.b > gaussian_delta(real(high), mu).b
        if above or seen >= _MOST_SPLITS:
            return []
        at.append(centre)
        cells += [(low, centre), (centre, high)]
    return sorted(at)


def cell_below(start: tuple[Number, Number], end: tuple[Number, Number], mu: Number) -> bool:
    """Whether the chord of δ between two (ε, δ) lies below the higher of both tangents to the Gaussian curve."""
    (low, first), (high, last) = start, end
    width = exp(high - low) - 1  # x = e^ε is divided by e^low, so that nothing overflows
    ends = []
    for epsilon, place in ((low, ZERO), (high, width)):
        slope = -exp(low) * normal_tail(epsilon / mu + mu / 2)
        ends.append((gaussian_delta(epsilon, mu) - slope * place, slope))
    (first_at_0, first_slope), (last_at_0, last_slope) = ends
    fall = (last - first) / width

    def above(place: Number) -> bool:
        chord = first + fall * place
        return any((tangent + slope * place - chord).a >= 0 for tangent, slope in ends)

    if not above(ZERO) or not above(width):
        return False
    # Between the ends the higher tangent is lowest where both meet.
    if (last_slope - first_slope).a <= 0:
        return False
    meet = (first_at_0 - last_at_0) / (last_slope - first_slope)
    inside = real([max(meet.a, ZERO.a), min(meet.b, width.b)]) if meet.b >= 0 and meet.a <= width.b else ZERO
    return above(inside)
