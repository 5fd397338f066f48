"""How a stage or a noise is written: its `Syntax` defines its text form, its data form and its checks."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

from dpassay.core.numbers import ONE, ZERO, Number, digits, maximum, middle, minimum, number
from dpassay.errors import InputError
from dpassay.pipeline.pair import check_dimension, check_positive
from dpassay.values import dataclass

INF = float("inf")
NORMS: dict[str, float] = {"l1": 1.0, "l2": 2.0, "linf": INF}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument: what it is in a text, and how its value is checked."""

    kind: Literal["word", "number", "whole"]
    check: Callable[[Any], Any] = lambda value: value  # returns the value to store, or refuses it
    words: tuple[str, ...] = ()
    called: str = ""  # its name in a text, if it differs from the attribute's
    default: Any = None  # its value if a text omits it; None: it is required

    def text(self, value: Any) -> str:
        """A value as in a text."""
        return written(value) if self.kind == "number" else str(value)

    def data(self, value: Any) -> Any:
        """A value as in a certificate."""
        return list(digits(value)) if self.kind == "number" else value


def written(value: Number) -> str:
    """Write a number as the double nearest to it, in the fewest digits that identify it."""
    return repr(middle(value)).removesuffix(".0")


def check_probability(value: Any, what: str) -> Number:
    """Refuse a number that is certainly outside 0 to 1."""
    enclosed = number(value)
    if enclosed.b < 0 or enclosed.a > 1:
        raise InputError(f"{what} must be a probability, 0 to 1, got {middle(enclosed):g}")
    # An enclosure of 0 or 1 may slightly exceed them; a probability does not.
    return maximum(ZERO, minimum(ONE, enclosed))


def _check_norm(norm: str) -> str:
    if norm not in NORMS:
        raise InputError(f"unknown norm {norm!r}; allowed: {', '.join(NORMS)}")
    return norm


def positive(what: str) -> Parameter:
    """A positive number."""
    return Parameter("number", partial(check_positive, what=what))


def probability(what: str, default: Any = None) -> Parameter:
    """A number from 0 to 1."""
    return Parameter("number", partial(check_probability, what=what), default=default)


def count(what: str = "dimension", called: str = "") -> Parameter:
    """A whole number from 1."""
    return Parameter("whole", partial(check_dimension, what=what), called=called)


NORM = Parameter("word", _check_norm, tuple(NORMS))


@dataclass(frozen=True, slots=True, init=False)
class Syntax:
    """A name and the parameters in order, each under the name of the attribute that holds it.

    >>> Syntax("clip", norm=NORM, radius=positive("radius")).usage
    'clip(norm, radius)'
    """

    name: str
    order: int  # its position in the help; stages without one come last
    parameters: dict[str, Parameter]

    def __init__(self, name: str, order: int = 1000, **parameters: Parameter) -> None:
        for field, value in zip(self.__slots__, (name, order, parameters), strict=True):
            object.__setattr__(self, field, value)

    @property
    def arguments(self) -> dict[str, Parameter]:
        """The parameters under their names in a text."""
        return {parameter.called or field: parameter for field, parameter in self.parameters.items()}

    @property
    def usage(self) -> str:
        """The text form, with names in place of values."""
        return f"{self.name}({', '.join(self.arguments)})" if self.parameters else self.name


class Written:
    """Something that has a syntax: it checks its attributes, and writes itself as text and as data."""

    syntax: ClassVar[Syntax]

    def __post_init__(self) -> None:
        for field, parameter in self.syntax.parameters.items():
            object.__setattr__(self, field, parameter.check(getattr(self, field)))

    def __str__(self) -> str:
        values = [parameter.text(getattr(self, field)) for field, parameter in self.syntax.parameters.items()]
        return f"{self.syntax.name}({', '.join(values)})" if values else self.syntax.name

    def to_data(self) -> dict[str, Any]:
        """Its name and arguments as in a certificate, a number as two decimals that enclose it."""
        parameters = self.syntax.parameters.items()
        return {"stage": self.syntax.name, **{field: p.data(getattr(self, field)) for field, p in parameters}}
