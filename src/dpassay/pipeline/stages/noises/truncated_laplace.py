"""Truncated Laplace noise in a text."""

from typing import Any

from dpassay.pipeline.stages.base import text_form
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.truncated_laplace import TruncatedLaplace


@text_form(TruncatedLaplace.syntax)
def truncated_laplace(scale: Any, bound: Any) -> Additive:
    """Add Laplace noise truncated at plus and minus a bound.

    >>> print(truncated_laplace(2, 10))
    truncated_laplace(2, 10)
    """
    return Additive(TruncatedLaplace(scale, bound))
