"""The normal tail, the exact δ of Gaussian noise, and the smallest σ that meets a guarantee; all certified."""

import math
from functools import lru_cache

import flint

from dpassay.core.enclosure import erfc, more_digits
from dpassay.core.guarantee import EpsilonDelta
from dpassay.core.numbers import ONE, PI, ZERO, Number, between, exp, log, maximum, middle, number, real, sqrt
from dpassay.errors import InputError

_FAR = real(2) ** 64  # Arb's erfc is not asked for numbers far larger than this
_CLOSE = real("1e-20")  # where Newton's method stops


def normal_tail(z: Number) -> Number:
    """P(N(0,1) > z).

    >>> round(float(normal_tail(real(1)).b), 9)
    0.158655254
    """
    return between(_tail_at(z.b, flint.ctx.prec), _tail_at(z.a, flint.ctx.prec))


@lru_cache(maxsize=4096)  # one check asks for the same point again and again
def _tail_at(z: Number, precision: int) -> Number:
    if z.is_finite and z > _FAR:  # φ(z)(1/z − 1/z³) < P(Z > z) < φ(z)/z
        return exp(-(z**2) / 2) / sqrt(2 * PI) / z * between(1 - 1 / z**2, ONE)
    if z.is_finite and z < -_FAR:
        return 1 - _tail_at(-z, precision)
    return erfc(z / sqrt(real(2))) / 2


def gaussian_delta(epsilon: Number, mu: Number) -> Number:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), where μ is the shift in standard deviations.

    >>> round(float(gaussian_delta(ZERO, real(1)).b), 9)
    0.382924923
    """
    if mu == 0:
        return ZERO
    ends = [_delta_at(e, m) for e, m in ((epsilon.b, mu.a), (epsilon.a, mu.b))]
    return maximum(ZERO, between(*ends))  # δ decreases with ε and increases with μ


def _delta_at(epsilon: Number, mu: Number) -> Number:
    return normal_tail(epsilon / mu - mu / 2) - exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


@more_digits()
def gaussian_epsilon_guess(delta: Number, mu: Number) -> Number | None:
    """ε(δ) by Newton's method on ln δ(ε), not certified; None if the digits do not suffice.

    ln δ is concave in ε, so all steps but the first approach the root from above.
    """
    shift, target = mu.mid, log(delta.mid)
    epsilon = (shift**2 / 2).mid
    for _ in range(100):
        value, fall, _ = _delta_and_slopes(epsilon, shift)
        if value <= 0 or fall <= 0:
            return None
        last, epsilon = epsilon, (epsilon + value * (log(value) - target) / fall).mid
        if abs(epsilon - last) <= _CLOSE * abs(epsilon):
            return epsilon
    return None


@more_digits()
def gaussian_sigma(guarantee: EpsilonDelta, sensitivity: Number) -> Number:
    """The smallest standard deviation, as a double: Newton's method guesses it, the exact δ confirms it."""
    epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
    if delta == 0:
        raise InputError("Gaussian noise never gives pure DP: give a delta above 0, or use laplace")
    claimed, target = epsilon.mid, log(delta.mid)
    width = sqrt(-2 * target)
    # ε(δ) ≤ μ²/2 + μ √(2 ln(1/δ)) and δ(ε) ≤ μ: this μ is not too large, and steps in ln μ only make it larger.
    mu = maximum(delta.mid, 2 * claimed / (sqrt(width**2 + 2 * claimed) + width)).mid
    for _ in range(200):
        value, _, rise = _delta_and_slopes(claimed, mu)
        if value <= 0 or rise <= 0:
            break
        step = (value * (log(value) - target) / (mu * rise)).mid
        mu = (mu * exp(-step)).mid
        if abs(step) <= _CLOSE:
            break
    sigma = middle(1 / mu)
    for doublings in range(53):
        if gaussian_delta(epsilon, 1 / number(sigma)).b <= delta.a:
            return sensitivity * number(sigma)
        sigma += 2**doublings * math.ulp(sigma)
    raise InputError("epsilon and delta are too small to determine with 115 digits how much Gaussian noise they need")


def _delta_and_slopes(epsilon: Number, mu: Number) -> tuple[Number, Number, Number]:
    """The middles of δ of Gaussian noise, its rate of decrease in ε and its rate of increase in μ; to search with."""
    near, far = (epsilon / mu - mu / 2).mid, (epsilon / mu + mu / 2).mid
    fall = exp(epsilon) * normal_tail(far)
    value, rise = normal_tail(near) - fall, exp(-(near**2) / 2) / sqrt(2 * PI)
    return value.mid if value.a > 0 else ZERO, fall.mid, rise.mid  # 0 if the digits do not suffice
