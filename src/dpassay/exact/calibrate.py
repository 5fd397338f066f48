"""From a guarantee to the smallest noise that meets it, rounded to the safe side.

It is exact for every ε ≥ 0, whereas the classic Gaussian formula needs ε < 1. In Python it is `dpassay.calibrate`.

>>> import dpassay
>>> dpassay.calibrate.laplace(0.5, sensitivity=2)
4.0
"""

import math
from fractions import Fraction
from typing import Any

from dpassay.core.functions.normal import gaussian_sigma
from dpassay.core.guarantee import EpsilonDelta, make_guarantee
from dpassay.core.numbers import Number, double_above, double_below, exp, log, log_without, real, sqrt
from dpassay.errors import InputError
from dpassay.pipeline.regions import check_dimension, check_positive


def laplace(epsilon: Any, delta: Any = 0, sensitivity: Any = 1) -> float:
    """The smallest Laplace scale for a query of this l1 sensitivity.

    At δ > 0 the worst shift is along one coordinate (docs/proofs/worst-shift.md), where
    δ = 1 − e^((ε − Δ/b)/2).

    >>> laplace(0.5)
    2.0
    """
    guarantee = make_guarantee(epsilon, delta)
    if guarantee.exact_epsilon == 0 and guarantee.exact_delta == 0:
        raise InputError("epsilon 0 with delta 0 would need infinite noise: give a positive epsilon")
    return _usable(laplace_scale(guarantee, check_positive(sensitivity, "sensitivity")))


def laplace_scale(guarantee: EpsilonDelta, sensitivity: Number) -> Number:
    """The scale as a certified number."""
    return sensitivity / (guarantee.exact_epsilon - 2 * log_without(guarantee.exact_delta))


def gaussian(epsilon: Any, delta: Any, sensitivity: Any = 1) -> float:
    """The smallest Gaussian standard deviation for a query of this l2 sensitivity.

    >>> round(gaussian(10, 1e-5), 5)
    0.49989
    """
    guarantee = make_guarantee(epsilon, delta)
    return _usable(gaussian_sigma(guarantee, check_positive(sensitivity, "sensitivity")))


def classic_gaussian_sigma(guarantee: EpsilonDelta, sensitivity: Number) -> Number:
    """The classic formula, sqrt(2 ln(1.25/δ)) Δ/ε, which is proven only for 0 < ε < 1."""
    return sqrt(2 * log(real("1.25") / guarantee.exact_delta)) * sensitivity / guarantee.exact_epsilon


def flip(epsilon: Any, bits: int = 1, categories: int = 2) -> float:
    """The largest probability of keeping each of some bits, or one of k categories.

    >>> flip(1.0986122886681098)
    0.75
    """
    guarantee = make_guarantee(epsilon)
    if check_dimension(bits, "bits") > 1 and check_dimension(categories, "categories") != 2:
        raise InputError("give a number of bits or a number of categories, not both")
    keep = double_below(flip_keep(guarantee.exact_epsilon / bits, categories))
    printed = Fraction(repr(keep))
    if categories * printed >= 1:
        return keep
    # Rounded to below 1/k: now the other names are slightly more likely.
    if categories == 2:
        return 0.5
    likelier = (1 - printed) / (printed * (categories - 1))
    if not log(real(likelier.numerator) / likelier.denominator).b <= guarantee.exact_epsilon.a:
        raise InputError(
            "epsilon is too small: the probability it needs does not fit into a double; give a larger epsilon"
        )
    return keep


def flip_keep(epsilon: Number, categories: int = 2) -> Number:
    """e^ε / (e^ε + k − 1), as a certified number."""
    if categories < 2:
        raise InputError(f"randomized response needs at least 2 categories, got {categories}")
    return 1 / (1 + (categories - 1) * exp(-epsilon))


def _usable(scale: Number) -> float:
    double = double_above(scale)
    if math.isinf(double):
        raise InputError("epsilon is too small: the noise it needs does not fit into a double; give a larger epsilon")
    return double
