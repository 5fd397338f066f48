"""The normal tail, the exact δ of Gaussian noise, and the smallest σ that meets a guarantee; all certified."""

import math
from functools import lru_cache
from typing import Any

from mpmath.ctx_mp import MPContext

from dpassay.core.guarantee import EpsilonDelta
from dpassay.core.numbers import ONE, ZERO, Number, between, iv, maximum, number
from dpassay.errors import InputError

_mp = MPContext()
_mp.dps = 80
# mpmath's erfc is accurate to its working precision; we rely on far fewer digits than that.
_ERFC_SLACK = iv.mpf("1e-60")
_FAR = _mp.mpf(2) ** 64  # mpmath's erfc fails for numbers far larger than this
_CLOSE = _mp.mpf("1e-20")  # where Newton's method stops


def normal_tail(z: Number) -> Number:
    """P(N(0,1) > z).

    >>> round(float(normal_tail(iv.mpf(1)).b), 9)
    0.158655254
    """
    lower, upper = z._mpi_
    return between(_tail_at(upper), _tail_at(lower))


@lru_cache(maxsize=4096)  # one check asks for the same point again and again
def _tail_at(z: tuple[int, int, int, int]) -> Number:
    at = _mp.make_mpf(z)
    if abs(at) > _FAR and _mp.isfinite(at):  # φ(z)(1/z − 1/z³) < P(Z > z) < φ(z)/z
        far = iv.make_mpf((z, z))
        if at < 0:
            return 1 - _tail_at((-far)._mpi_[0])
        return iv.exp(-(far**2) / 2) / iv.sqrt(2 * iv.pi) / far * between(1 - 1 / far**2, ONE)
    value = _mp.erfc(at / _mp.sqrt(2)) / 2
    return iv.make_mpf((value._mpf_, value._mpf_)) * (1 + _ERFC_SLACK * iv.mpf([-1, 1]))


def gaussian_delta(epsilon: Number, mu: Number) -> Number:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), where μ is the shift in standard deviations.

    >>> round(float(gaussian_delta(ZERO, iv.mpf(1)).b), 9)
    0.382924923
    """
    if mu == 0:
        return ZERO
    ends = [_delta_at(e, m) for e, m in ((epsilon.b, mu.a), (epsilon.a, mu.b))]
    return maximum(ZERO, between(*ends))  # δ decreases with ε and increases with μ


def _delta_at(epsilon: Number, mu: Number) -> Number:
    return normal_tail(epsilon / mu - mu / 2) - iv.exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def gaussian_epsilon_guess(delta: Number, mu: Number) -> Number | None:
    """ε(δ) by Newton's method on ln δ(ε), not certified; None if 80 digits do not suffice.

    ln δ is concave in ε, so all steps but the first approach the root from above.
    """
    shift, target = _middle(mu), _mp.log(_middle(delta))
    epsilon = shift**2 / 2
    for _ in range(100):
        try:
            value, fall, _ = _delta_and_slopes(epsilon, shift)
        except OverflowError:  # e^ε has too many digits
            return None
        if value <= 0 or fall <= 0:
            return None
        last, epsilon = epsilon, epsilon + value * (_mp.log(value) - target) / fall
        if abs(epsilon - last) <= _CLOSE * abs(epsilon):
            return iv.make_mpf((epsilon._mpf_, epsilon._mpf_))
    return None


def gaussian_sigma(guarantee: EpsilonDelta, sensitivity: Number) -> Number:
    """The smallest standard deviation, as a double: Newton's method guesses it, the exact δ confirms it."""
    epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
    if delta == 0:
        raise InputError("Gaussian noise never gives pure DP: give a delta above 0, or use laplace")
    claimed, target = _middle(epsilon), _mp.log(_middle(delta))
    width = _mp.sqrt(-2 * target)
    # ε(δ) ≤ μ²/2 + μ √(2 ln(1/δ)) and δ(ε) ≤ μ: this μ is not too large, and steps in ln μ only make it larger.
    mu = max(_middle(delta), 2 * claimed / (_mp.sqrt(width**2 + 2 * claimed) + width))
    for _ in range(200):
        value, _, rise = _delta_and_slopes(claimed, mu)
        if value <= 0 or rise <= 0:
            break
        step = value * (_mp.log(value) - target) / (mu * rise)
        mu *= _mp.exp(-step)
        if abs(step) <= _CLOSE:
            break
    sigma = float(1 / mu)
    for doublings in range(53):
        if gaussian_delta(epsilon, 1 / number(sigma)).b <= delta.a:
            return sensitivity * number(sigma)
        sigma += 2**doublings * math.ulp(sigma)
    raise InputError("epsilon and delta are too small for 80 digits to determine how much Gaussian noise they need")


def _delta_and_slopes(epsilon: Any, mu: Any) -> tuple[Any, Any, Any]:
    """δ of Gaussian noise, its rate of decrease in ε, and its rate of increase in μ; to search with."""
    root = _mp.sqrt(2)
    near, far = (epsilon / mu - mu / 2) / root, (epsilon / mu + mu / 2) / root
    fall = _mp.exp(epsilon) * _erfc(far) / 2
    return _erfc(near) / 2 - fall, fall, _mp.exp(-(near**2)) / _mp.sqrt(2 * _mp.pi)


def _erfc(x: Any) -> Any:
    if abs(x) <= _FAR:
        return _mp.erfc(x)
    return _mp.exp(-(x**2)) / (x * _mp.sqrt(_mp.pi)) if x > 0 else _mp.mpf(2)


def _middle(value: Number) -> Any:
    return _mp.make_mpf(value.mid._mpi_[0])
