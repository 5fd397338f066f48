"""From a guarantee to the least noise that meets it, rounded to the safe side.

Exact for every ε ≥ 0, also beyond the ε < 1 of the classic Gaussian formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpassay.enclosure import ZERO, Number, down, iv, log_add, up
from dpassay.errors import InputError
from dpassay.guarantee import Guarantee, guarantee
from dpassay.parts import GaussianLoss
from dpassay.region import check_dimension, check_positive


def laplace(epsilon: Any, delta: Any = 0, sensitivity: Any = 1) -> float:
    """The least Laplace scale for a query of this l1 sensitivity.

    At δ > 0 the worst shift is along one coordinate (docs/proofs/worst-shift.md), where
    δ = 1 − e^((ε − Δ/b)/2).

    >>> laplace(0.5)
    2.0
    """
    promise = _noisy(guarantee(epsilon, delta))
    return up(laplace_scale(promise, check_positive(sensitivity, "sensitivity")))


def laplace_scale(promise: Guarantee, sensitivity: Number) -> Number:
    """The scale as a certified number."""
    return sensitivity / (promise.exact_epsilon - 2 * iv.log(1 - promise.exact_delta))


def gaussian(epsilon: Any, delta: Any, sensitivity: Any = 1) -> float:
    """The least Gaussian standard deviation for a query of this l2 sensitivity.

    >>> round(gaussian(10, 1e-5), 5)
    0.49989
    """
    promise = guarantee(epsilon, delta)
    return up(gaussian_sigma(promise, check_positive(sensitivity, "sensitivity")))


def gaussian_sigma(promise: Guarantee, sensitivity: Number) -> Number:
    """The deviation as a certified number."""
    epsilon, delta = promise.exact_epsilon, promise.exact_delta
    if delta == 0:
        raise InputError("no Gaussian noise gives pure DP: give a delta above 0, or use laplace")
    root = iv.sqrt(2 * iv.log(1 / delta))
    # δ grows with μ; at this μ the loss exceeds ε with probability above one half.
    largest = iv.sqrt(2 * epsilon) + 2 * root + 10
    mu = bisect(lambda m: bool(GaussianLoss(m).delta(epsilon).b <= delta.a), ZERO, largest)
    return sensitivity / mu


def classic_gaussian_sigma(promise: Guarantee, sensitivity: Number) -> Number:
    """The classic formula, sqrt(2 ln(1.25/δ)) Δ/ε, which is proved for 0 < ε < 1 only."""
    return iv.sqrt(2 * iv.log(iv.mpf("1.25") / promise.exact_delta)) * sensitivity / promise.exact_epsilon


def flip(epsilon: Any, bits: int = 1, categories: int = 2) -> float:
    """The largest probability of keeping each of some bits, or one of k categories.

    >>> flip(1.0986122886681098)
    0.75
    """
    promise = guarantee(epsilon)
    if check_dimension(bits) > 1 and check_dimension(categories) != 2:
        raise InputError("give a number of bits or a number of categories, not both")
    return down(flip_keep(promise.exact_epsilon / bits, categories))


def flip_keep(epsilon: Number, categories: int = 2) -> Number:
    """e^ε / (e^ε + k − 1), as a certified number."""
    if categories < 2:
        raise InputError(f"randomized response needs at least 2 categories, got {categories}")
    return iv.exp(epsilon - log_add(epsilon, iv.log(iv.mpf(categories - 1))))


def bisect(holds: Callable[[Number], bool], low: Number, high: Number, digits: int = 25) -> Number:
    """The largest number, to so many digits, for which a condition that fails later holds.

    >>> round(up(bisect(lambda x: bool(x < 2), ZERO, iv.mpf(10))), 9)
    2.0
    """
    limit = iv.mpf(f"1e-{digits}")
    while high.b - low.a > limit * high.b:
        middle = iv.mpf(((low + high) / 2).mid)
        low, high = (middle, high) if holds(middle) else (low, middle)
    if low == 0:
        raise InputError("no amount of noise below the largest tried meets this guarantee")
    return low


def _noisy(promise: Guarantee) -> Guarantee:
    if promise.exact_epsilon == 0 and promise.exact_delta == 0:
        raise InputError("epsilon 0 with delta 0 would need infinite noise: give a positive epsilon")
    return promise


__all__ = ["flip", "gaussian", "laplace"]
