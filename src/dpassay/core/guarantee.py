"""What is guaranteed: ε-DP, (ε, δ)-DP, metric DP, Rényi DP, zCDP or GDP.

Each guarantee has one `parameter` that is compared with the truth, by name, and its claimed `value`: ε, or ρ of zCDP,
or μ of Gaussian DP. docs/concepts.md has the definitions, docs/proofs/guarantees.md what follows from what.
"""

from dataclasses import fields
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from dpassay.core.numbers import ZERO, Number, as_written, middle, number
from dpassay.errors import InputError
from dpassay.values import dataclass

Metric = Literal["l1", "l2", "linf", "angle", "mahalanobis"]
METRICS: tuple[str, ...] = get_args(Metric)
LEAST_DELTA = 1e-300
_DELTA = "delta must be 0 (pure DP) or lie strictly between 0 and 1"


def _nonnegative(value: Any, name: str = "epsilon", most: float = 1e300) -> Number:
    allowed = f"{name} must be a number from 0 to {most:g}"
    enclosed = _read(value, allowed)
    if enclosed.a < 0 or enclosed.b > most:
        raise InputError(f"{allowed}, got {value}")
    return enclosed


def _read(value: Any, allowed: str) -> Number:
    try:
        return number(value)
    except InputError:
        raise InputError(f"{allowed}, got {value}") from None


class _Stated:
    """What all guarantees share; those without a δ have δ = 0."""

    __slots__ = ()
    kind: ClassVar[str]  # as certificates and verdicts name it
    parameter: ClassVar[str] = "epsilon"
    unit: ClassVar[str] = ""  # what the parameter is, more precisely

    def __repr__(self) -> str:
        stated = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(repr(x) if isinstance(x, str) else as_written(x) for x in stated)})"

    @property
    def value(self) -> Number:
        """The claimed parameter."""
        found: Number = getattr(self, f"exact_{self.parameter}")
        return found

    @property
    def truth(self) -> str:
        """The name of the parameter's true value."""
        return f"true {self.parameter}{self.unit}"

    @property
    def claimed(self) -> float:
        """The claimed parameter as a double."""
        return middle(self.value)

    @property
    def exact_delta(self) -> Number:
        """δ, which is 0 for most guarantees."""
        return ZERO

    @property
    def delta(self) -> float:
        """δ as a double."""
        return middle(self.exact_delta)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP(_Stated):
    """The guarantee that no output is more than e^ε times likelier under one neighbor than the other.

    >>> PureDP(1), str(PureDP(1))
    (PureDP(1), '1-DP')
    """

    kind = "pure"
    exact_epsilon: Number

    def __init__(self, epsilon: Any) -> None:
        object.__setattr__(self, "exact_epsilon", _nonnegative(epsilon))

    @property
    def epsilon(self) -> float:
        """ε as a double."""
        return middle(self.exact_epsilon)

    def __str__(self) -> str:
        return f"{as_written(self.exact_epsilon)}-DP"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP(_Stated):
    """The guarantee P(E) ≤ e^ε Q(E) + δ for every event E and all neighbors, in both directions.

    >>> print(ApproxDP(1, 1e-6))
    (1, 1e-06)-DP
    """

    kind = "approximate"
    exact_epsilon: Number
    exact_delta: Number

    def __init__(self, epsilon: Any, delta: Any) -> None:
        enclosed = _read(delta, _DELTA)
        if enclosed.a <= 0 or enclosed.b >= 1:
            raise InputError(f"{_DELTA}, got {delta}")
        if middle(enclosed) < LEAST_DELTA:  # what is computed from it must still be a double
            raise InputError(f"delta must be 0 (pure DP) or at least {LEAST_DELTA:g}, got {delta}")
        object.__setattr__(self, "exact_epsilon", _nonnegative(epsilon))
        object.__setattr__(self, "exact_delta", enclosed)

    @property
    def epsilon(self) -> float:
        """ε as a double."""
        return middle(self.exact_epsilon)

    def __str__(self) -> str:
        return f"({as_written(self.exact_epsilon)}, {as_written(self.exact_delta)})-DP"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class MetricDP(_Stated):
    """The guarantee P(E) ≤ e^(ε·d(x,y)) Q(E) for every event E and any two inputs x, y; also called dχ-privacy.

    >>> print(MetricDP(10, "l2"))
    metric 10-DP in l2
    """

    kind = "metric"
    exact_epsilon: Number
    metric: Metric

    def __init__(self, epsilon: Any, metric: str = "l2") -> None:
        if metric not in METRICS:
            raise InputError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
        object.__setattr__(self, "exact_epsilon", _nonnegative(epsilon))
        object.__setattr__(self, "metric", cast(Metric, metric))

    @property
    def epsilon(self) -> float:
        """ε per unit of distance, as a double."""
        return middle(self.exact_epsilon)

    @property
    def unit(self) -> str:  # type: ignore[override]
        """What ε refers to."""
        return " per radian" if self.metric == "angle" else f" per unit of {self.metric} distance"

    def __str__(self) -> str:
        return f"metric {as_written(self.exact_epsilon)}-DP in {self.metric}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RenyiDP(_Stated):
    """The guarantee that the Rényi divergence of one order between neighbors' outputs is at most ε in each direction.

    >>> print(RenyiDP(2, 0.5))
    (2, 0.5)-Rényi DP
    """

    kind = "renyi"
    exact_order: Number
    exact_epsilon: Number

    def __init__(self, order: Any, epsilon: Any) -> None:
        allowed = "the order of a Rényi divergence must be a number above 1, at most 1e6 (order inf is pure DP)"
        enclosed = _read(order, allowed)
        if enclosed.a <= 1 or enclosed.b > 1e6:
            raise InputError(f"{allowed}, got {order}")
        object.__setattr__(self, "exact_order", enclosed)
        object.__setattr__(self, "exact_epsilon", _nonnegative(epsilon))

    @property
    def epsilon(self) -> float:
        """ε as a double."""
        return middle(self.exact_epsilon)

    @property
    def order(self) -> float:
        """The order as a double."""
        return middle(self.exact_order)

    @property
    def unit(self) -> str:  # type: ignore[override]
        """The order."""
        return f" at order {as_written(self.exact_order)}"

    def __str__(self) -> str:
        return f"({as_written(self.exact_order)}, {as_written(self.exact_epsilon)})-Rényi DP"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZCDP(_Stated):
    """Zero-concentrated DP: the Rényi divergence of every order α > 1 is at most ρα, in both directions.

    >>> print(ZCDP(0.5))
    0.5-zCDP
    """

    kind = "zcdp"
    parameter = "rho"
    exact_rho: Number

    def __init__(self, rho: Any) -> None:
        object.__setattr__(self, "exact_rho", _nonnegative(rho, "rho"))

    @property
    def rho(self) -> float:
        """ρ as a double."""
        return middle(self.exact_rho)

    def __str__(self) -> str:
        return f"{as_written(self.exact_rho)}-zCDP"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDP(_Stated):
    """Gaussian DP: two neighbors' outputs are no easier to distinguish than N(0, 1) and N(μ, 1).

    >>> print(GDP(1))
    1-GDP
    """

    kind = "gdp"
    parameter = "mu"
    exact_mu: Number

    def __init__(self, mu: Any) -> None:
        object.__setattr__(self, "exact_mu", _nonnegative(mu, "mu", 1e100))

    @property
    def mu(self) -> float:
        """μ as a double."""
        return middle(self.exact_mu)

    def __str__(self) -> str:
        return f"{as_written(self.exact_mu)}-GDP"


EpsilonDelta: TypeAlias = PureDP | ApproxDP
Guarantee: TypeAlias = PureDP | ApproxDP | MetricDP | RenyiDP | ZCDP | GDP


def make_guarantee(epsilon: Any, delta: Any = 0) -> EpsilonDelta:
    """Make the guarantee that (ε, δ) stands for.

    >>> print(make_guarantee(0.5), make_guarantee(0.5, 1e-5))
    0.5-DP (0.5, 1e-05)-DP
    """
    return PureDP(epsilon) if _read(delta, _DELTA) == ZERO else ApproxDP(epsilon, delta)


def epsilon_delta(guarantee: Guarantee) -> EpsilonDelta:
    """The guarantee itself, if it is stated by ε and δ, which samples can test.

    >>> epsilon_delta(ZCDP(1))
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: samples can test epsilon, or epsilon and delta, not 1-zCDP: state what it implies for ...
    """
    if isinstance(guarantee, PureDP | ApproxDP):
        return guarantee
    raise InputError(
        f"samples can test epsilon, or epsilon and delta, not {guarantee}: state what it implies for the two inputs, "
        "such as epsilon times their distance for a metric guarantee"
    )


def stated_guarantee(
    epsilon: Any = None, delta: Any = None, metric: Any = None, order: Any = None, rho: Any = None, mu: Any = None
) -> Guarantee:
    """Make the guarantee that these numbers state; one that is left out is None. Order ∞ is pure DP.

    >>> print(stated_guarantee(rho=0.5), stated_guarantee(epsilon=2, order=8), stated_guarantee(1, metric="l1"))
    0.5-zCDP (8, 2)-Rényi DP metric 1-DP in l1
    >>> print(stated_guarantee(1, order="inf"))  # the max divergence is at most 1
    1-DP
    """
    given = {"epsilon": epsilon, "rho": rho, "mu": mu}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        got = " and ".join(named) or "none of them"
        raise InputError(f"state the claim with one of epsilon (with delta, metric or order), rho or mu; got {got}")
    kinds = {"metric": metric, "order": order, "delta": delta if delta is not None and number(delta) != 0 else None}
    kinds = {name: value for name, value in kinds.items() if value is not None}
    if epsilon is None and kinds:
        raise InputError(f"{next(iter(kinds))} belongs to epsilon, not to {named[0]}")
    if len(kinds) > 1:
        raise InputError(f"give one of {', '.join(kinds)}: they state different guarantees")
    if rho is not None:
        return ZCDP(rho)
    if mu is not None:
        return GDP(mu)
    if metric is not None:
        return MetricDP(epsilon, metric)
    if order is not None:
        unbounded = str(order).strip().lower() in ("inf", "infinity")
        return PureDP(epsilon) if unbounded else RenyiDP(order, epsilon)
    return make_guarantee(epsilon, 0 if delta is None else delta)


def statement(guarantee: Guarantee) -> dict[str, Any]:
    """What `stated_guarantee` makes this guarantee from.

    >>> list(statement(RenyiDP(2, 1))), list(statement(ZCDP(1)))
    (['epsilon', 'order'], ['rho'])
    """
    named: dict[str, Any] = {guarantee.parameter: guarantee.value}
    if isinstance(guarantee, ApproxDP):
        named["delta"] = guarantee.exact_delta
    elif isinstance(guarantee, MetricDP):
        named["metric"] = guarantee.metric
    elif isinstance(guarantee, RenyiDP):
        named["order"] = guarantee.exact_order
    return named
