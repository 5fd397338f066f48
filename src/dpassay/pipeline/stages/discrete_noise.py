"""Noise on whole numbers in a text: discrete_laplace."""

from typing import Any

from dpassay.pipeline.discrete_noise import DiscreteLaplace
from dpassay.pipeline.stages.additive import Additive
from dpassay.pipeline.stages.base import text_form


@text_form(DiscreteLaplace.syntax)
def discrete_laplace(scale: Any) -> Additive:
    """Add two-sided geometric noise, P(t) ~ e^(-|t|/scale), to each whole number.

    >>> print(discrete_laplace(2))
    discrete_laplace(2)
    """
    return Additive(DiscreteLaplace(scale))
