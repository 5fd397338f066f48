"""Staircase noise in a text."""

from typing import Any

from dpassay.pipeline.stages.base import text_form
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.staircase import Staircase


@text_form(Staircase.syntax)
def staircase(epsilon: Any, sensitivity: Any, gamma: Any) -> Additive:
    """Add noise whose density falls by a factor e^-epsilon once per sensitivity, at a fraction gamma of it.

    >>> print(staircase(1, 2, "0.25"))
    staircase(1, 2, 0.25)
    """
    return Additive(Staircase(epsilon, sensitivity, gamma))
