"""What a mechanism may offer besides outputs: how likely an output is, and how an input is encoded in it.

Both only help to distinguish inputs. Any distinguisher is valid, so no verdict relies on their being correct.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from dpassay.audit.distinguishers.base import Distinguisher
from dpassay.audit.distinguishers.combined.encoded import Encoded, LeafEncoder
from dpassay.audit.distinguishers.own_likelihood import OwnLikelihood
from dpassay.audit.mechanisms.python_objects import TorchModule, Transformer, awaited
from dpassay.audit.mechanisms.seeding import Seeded
from dpassay.audit.mechanisms.targets import Loaded, RunnableObject
from dpassay.errors import DpassayError, MechanismError, escape_control_chars
from dpassay.values import dataclass

OFFERS = ("log_prob", "encode")
OUTPUT = "output"  # the name of the parameter that takes the output


@dataclass(frozen=True)
class Offer:
    """A method of a mechanism that takes an output and an input, in either order.

    >>> Offer("encode", lambda x, output: output - x, output_first=False)(5, 3)
    2
    """

    name: str
    function: Callable[[Any, Any], Any]
    output_first: bool

    def __call__(self, output: Any, x: Any) -> Any:
        try:
            return awaited(self.function(output, x) if self.output_first else self.function(x, output))
        except DpassayError:
            raise
        except Exception as error:
            raise MechanismError(
                f"{self.name} of the mechanism raised {type(error).__name__}: "
                f"{escape_control_chars(str(error))[:200]}, "
                f"for the output {escape_control_chars(repr(output))[:100]}; "
                "fix it or remove it: it only helps the audit"
            ) from error


def offered(mechanism: Any, inputs: tuple[Any, ...]) -> tuple[Distinguisher, ...]:
    """The distinguishers from a mechanism's `log_prob(output, x)` and `encode(x, output)`, for these inputs.

    >>> class Coin:
    ...     def log_prob(self, output, x):
    ...         return 0.0 if output == x else -2.0
    >>> [one.describe() for one in offered(Coin(), (0, 1))]
    ["the likelihood ratio by the mechanism's own log_prob"]
    """
    found: list[Distinguisher] = []
    log_prob, encode = (_first(mechanism, name) for name in OFFERS)
    if log_prob is not None:
        found.append(OwnLikelihood(log_prob, inputs))
    if encode is not None:
        found.append(Encoded(LeafEncoder(encode, inputs)))
    return tuple(found)


def misnamed(mechanism: Any) -> str:
    """A note if a method looks like an offer, but it is unclear which of its parameters is the output.

    >>> class Coin:
    ...     def log_prob(self, y, x):
    ...         return 0.0
    >>> misnamed(Coin())
    'log_prob(y, x) of the mechanism was not used: to help the audit, call one of its two parameters output.'
    """
    for owner in _owners(mechanism):
        for name in OFFERS:
            names = _needed(getattr(owner, name, None))
            if len(names) == 2 and OUTPUT not in names:
                shown = escape_control_chars(f"{name}({', '.join(names)})")
                how = f"to help the audit, call one of its two parameters {OUTPUT}."
                return f"{shown} of the mechanism was not used: {how}"
    return ""


def _first(mechanism: Any, name: str) -> Offer | None:
    return next((found for owner in _owners(mechanism) if (found := _offer(owner, name)) is not None), None)


def _offer(owner: Any, name: str) -> Offer | None:
    """A method with two parameters without a default, one of them called `output`; no other method counts."""
    names = _needed(getattr(owner, name, None))
    if len(names) != 2 or OUTPUT not in names:
        return None
    return Offer(name, getattr(owner, name), names[0] == OUTPUT)


def _needed(method: Any) -> list[str]:
    """The parameters of a method that have no default; none if it cannot be called."""
    try:
        parameters = inspect.signature(method).parameters.values() if callable(method) else []
    except (TypeError, ValueError):
        return []
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [p.name for p in parameters if p.default is p.empty and p.kind in kinds]


def _owners(mechanism: Any) -> Iterator[Any]:
    """The objects that a mechanism was made from: an object, a function, or the object that a method belongs to."""
    if isinstance(mechanism, Loaded | Seeded):
        yield from _owners(mechanism.mechanism)
    elif isinstance(mechanism, RunnableObject):
        yield mechanism.function
        yield getattr(mechanism.function, "__self__", None)
    elif isinstance(mechanism, TorchModule):
        yield mechanism.module
    elif isinstance(mechanism, Transformer):
        yield mechanism.thing
    else:
        yield mechanism
