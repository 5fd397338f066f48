"""Noise on integers in a text: discrete_laplace and discrete_gaussian."""

from typing import Any

from dpassay.pipeline.discrete_noise import DiscreteGaussian, DiscreteLaplace
from dpassay.pipeline.stages.base import text_form
from dpassay.pipeline.stages.noises.additive import Additive


@text_form(DiscreteLaplace.syntax)
def discrete_laplace(scale: Any) -> Additive:
    """Add two-sided geometric noise, P(t) ~ e^(-|t|/scale), to each whole number.

    >>> print(discrete_laplace(2))
    discrete_laplace(2)
    """
    return Additive(DiscreteLaplace(scale))


@text_form(DiscreteGaussian.syntax)
def discrete_gaussian(sigma: Any) -> Additive:
    """Add a whole number, P(t) ~ e^(-t^2/(2 sigma^2)), to each whole number.

    >>> print(discrete_gaussian(2))
    discrete_gaussian(2)
    """
    return Additive(DiscreteGaussian(sigma))
