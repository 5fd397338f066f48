"""What somebody promises: ε-DP or (ε, δ)-DP."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpassay.enclosure import INFINITY, ZERO, Number, middle, number
from dpassay.errors import InputError


def _epsilon(value: Any) -> Number:
    enclosed = number(value)
    if enclosed.a < 0 or enclosed.b == INFINITY:
        raise InputError(f"epsilon must be a finite number, 0 or more, got {value}")
    return enclosed


@dataclass(frozen=True, slots=True, init=False)
class PureDP:
    """The guarantee that no output is more than e^ε times likelier under one neighbour than the other.

    >>> print(PureDP(1))
    1-DP
    """

    exact_epsilon: Number = field(repr=False)

    def __init__(self, epsilon: Any) -> None:
        object.__setattr__(self, "exact_epsilon", _epsilon(epsilon))

    @property
    def epsilon(self) -> float:
        """ε as a double."""
        return middle(self.exact_epsilon)

    @property
    def exact_delta(self) -> Number:
        """δ is 0."""
        return ZERO

    @property
    def delta(self) -> float:
        """δ is 0."""
        return 0.0

    def __str__(self) -> str:
        return f"{self.epsilon:.10g}-DP"


@dataclass(frozen=True, slots=True, init=False)
class ApproxDP:
    """The guarantee P(E) ≤ e^ε Q(E) + δ for every event E and all neighbours, both ways.

    >>> print(ApproxDP(1, 1e-6))
    (1, 1e-06)-DP
    """

    exact_epsilon: Number = field(repr=False)
    exact_delta: Number = field(repr=False)

    def __init__(self, epsilon: Any, delta: Any) -> None:
        enclosed = number(delta)
        if enclosed.a <= 0 or enclosed.b >= 1:
            raise InputError(f"delta must lie strictly between 0 and 1, got {delta}; for 0 use PureDP")
        object.__setattr__(self, "exact_epsilon", _epsilon(epsilon))
        object.__setattr__(self, "exact_delta", enclosed)

    @property
    def epsilon(self) -> float:
        """ε as a double."""
        return middle(self.exact_epsilon)

    @property
    def delta(self) -> float:
        """δ as a double."""
        return middle(self.exact_delta)

    def __str__(self) -> str:
        return f"({self.epsilon:.10g}, {self.delta:.10g})-DP"


Guarantee = PureDP | ApproxDP


def guarantee(epsilon: Any, delta: Any = 0) -> Guarantee:
    """Make the guarantee that (ε, δ) stands for.

    >>> print(guarantee(0.5), guarantee(0.5, 1e-5))
    0.5-DP (0.5, 1e-05)-DP
    """
    return PureDP(epsilon) if number(delta) == ZERO else ApproxDP(epsilon, delta)
