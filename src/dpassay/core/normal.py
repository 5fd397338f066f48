"""The normal tail, the exact δ of Gaussian noise, and the least deviation that meets a guarantee; all certified."""

from __future__ import annotations

from mpmath.ctx_mp import MPContext

from dpassay.core.guarantee import Guarantee
from dpassay.core.numbers import ZERO, Number, between, iv, maximum, middle, number
from dpassay.core.roots import falling_root
from dpassay.errors import InputError

_mp = MPContext()
_mp.dps = 80
# mpmath's erfc is accurate to its working precision; we rely on far fewer digits than that.
_ERFC_SLACK = iv.mpf("1e-60")


def normal_tail(z: Number) -> Number:
    """P(N(0,1) > z).

    >>> round(up(normal_tail(ONE)), 9)
    0.158655254
    """
    return between(_tail_at(z.b), _tail_at(z.a))


def _tail_at(z: Number) -> Number:
    value = _mp.erfc(_mp.make_mpf(z._mpi_[0]) / _mp.sqrt(2)) / 2
    return iv.make_mpf((value._mpf_, value._mpf_)) * (1 + _ERFC_SLACK * iv.mpf([-1, 1]))


def gaussian_delta(epsilon: Number, mu: Number) -> Number:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), where μ is the shift in standard deviations.

    >>> round(up(gaussian_delta(ZERO, ONE)), 9)
    0.382924923
    """
    if mu == 0:
        return ZERO
    ends = [_delta_at(e, m) for e, m in ((epsilon.b, mu.a), (epsilon.a, mu.b))]
    return maximum(ZERO, between(*ends))  # δ falls with ε and grows with μ


def _delta_at(epsilon: Number, mu: Number) -> Number:
    return normal_tail(epsilon / mu - mu / 2) - iv.exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def gaussian_sigma(guarantee: Guarantee, sensitivity: Number) -> Number:
    """The deviation as a certified number."""
    epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
    if delta == 0:
        raise InputError("no Gaussian noise gives pure DP: give a delta above 0, or use laplace")
    target = middle(iv.log(delta))

    def excess(sigma: float) -> float:
        value = gaussian_delta(epsilon, 1 / number(sigma))
        return middle(iv.log(iv.mpf(value.b))) - target if value.b > 0 else -1.0

    low = high = 1.0
    while excess(high) > 0:
        low, high = high, 2 * high
    while excess(low) <= 0:
        low, high = low / 2, low
    _, sigma = falling_root(excess, low, high, 1e-15)
    step = 2.0**-52
    while gaussian_delta(epsilon, 1 / number(sigma)).b > delta.a:
        sigma, step = sigma * (1 + step), 2 * step
    return sensitivity * number(sigma)
