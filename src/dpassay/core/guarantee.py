"""What is guaranteed: ε-DP or (ε, δ)-DP."""

from dataclasses import dataclass, field
from typing import Any

from dpassay.core.numbers import ZERO, Number, as_written, middle, number
from dpassay.errors import InputError

_DELTA = "delta must be 0 (pure DP) or lie strictly between 0 and 1"


def _epsilon(value: Any) -> Number:
    allowed = "epsilon must be a number from 0 to 1e300"
    enclosed = _read(value, allowed)
    if enclosed.a < 0 or enclosed.b > 1e300:
        raise InputError(f"{allowed}, got {value}")
    return enclosed


def _read(value: Any, allowed: str) -> Number:
    try:
        return number(value)
    except InputError:
        raise InputError(f"{allowed}, got {value}") from None


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
        return ZERO

    @property
    def delta(self) -> float:
        return 0.0

    def __str__(self) -> str:
        return f"{as_written(self.exact_epsilon)}-DP"


@dataclass(frozen=True, slots=True, init=False)
class ApproxDP:
    """The guarantee P(E) ≤ e^ε Q(E) + δ for every event E and all neighbours, both ways.

    >>> print(ApproxDP(1, 1e-6))
    (1, 1e-06)-DP
    """

    exact_epsilon: Number = field(repr=False)
    exact_delta: Number = field(repr=False)

    def __init__(self, epsilon: Any, delta: Any) -> None:
        enclosed = _read(delta, _DELTA)
        if enclosed.a <= 0 or enclosed.b >= 1:
            raise InputError(f"{_DELTA}, got {delta}")
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
        return f"({as_written(self.exact_epsilon)}, {as_written(self.exact_delta)})-DP"


Guarantee = PureDP | ApproxDP


def make_guarantee(epsilon: Any, delta: Any = 0) -> Guarantee:
    """Make the guarantee that (ε, δ) stands for.

    >>> print(make_guarantee(0.5), make_guarantee(0.5, 1e-5))
    0.5-DP (0.5, 1e-05)-DP
    """
    return PureDP(epsilon) if _read(delta, _DELTA) == ZERO else ApproxDP(epsilon, delta)
