"""pure-ldp's clients: the claim is their ε, the formula that of their class with the probabilities they hold.

Clients that hash with their own seed, or that use sketches, have no formula here and are run.
"""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dpassay.adapters.base import FormulaReading, ReadObject, attributes, is_own, is_patched, shown
from dpassay.adapters.confirming import MANY
from dpassay.core.guarantee import PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

MENDED = (1, 2, 0)  # the first version whose unary encoding has the stated probabilities
NEAR = 1e-9  # a probability this close to its formula is taken for it: the last bits of a double are not a claim


def read(thing: Any) -> ReadObject | None:
    """A client as a claim; None for servers and the library's other objects."""
    if not any(base.__name__ == "FreqOracleClient" for base in type(thing).__mro__):
        return None
    epsilon, privatise = attributes(thing, "epsilon", "privatise")
    name = f"pure-ldp's {type(thing).__name__}"
    if epsilon is None:
        raise InputError(
            f"{name} has no epsilon: audit the function lambda x: client.privatise(x), and state the epsilon"
        )
    return ReadObject(
        name,
        PureDP(shown(epsilon)),
        _formula(thing, shown(epsilon)) if is_own(thing, "pure_ldp") and not is_patched(thing, "pure_ldp") else None,
        neighbours=Neighbours("any"),
        mechanism=lambda x: privatise(x),
        pairs=_pairs(thing),
        reading=FormulaReading(answer=lambda x: thing.index_mapper(x), runs=MANY),
    )


def _formula(client: Any, epsilon: str) -> str | None:
    kind = type(client).__name__
    if kind == "HEClient":
        return f"onehot({client.d}) | laplace(2/{epsilon})"
    if kind not in ("DEClient", "UEClient"):
        return None
    size, kept, wrong = attributes(client, "d", "p", "q")
    grown = math.exp(client.epsilon)
    if kind == "DEClient":
        keep = (f"exp({epsilon})/(exp({epsilon}) + {size} - 1)", grown / (grown + size - 1))
        return f"category({size}) | flip({probability(kept, *keep)})"
    if _version() < MENDED:  # there a true bit that is not kept is drawn again, with the probability of the others
        one = f"{shown(kept)} + (1 - {shown(kept)})*{shown(wrong)}"
        return f"onehot({size}) | bits({one}, {one}, {shown(wrong)})"
    return bits(size, epsilon, kept, wrong, optimal=bool(getattr(client, "use_oue", False)))


def _version() -> tuple[int, ...]:
    """The version of the installed package, which the client comes from."""
    try:
        return tuple(int(part) for part in version("pure-ldp").split(".")[:3])
    except (PackageNotFoundError, ValueError):
        return MENDED


def bits(size: int, epsilon: str, kept: float, wrong: float, optimal: bool) -> str:
    """Unary encoding: each bit of a one-hot vector is randomized, symmetrically or in the optimized way.

    >>> bits(4, "1", 0.5, 1 / (math.e + 1), optimal=True)
    'onehot(4) | bits(0.5, 0.5, 1/(exp(1) + 1))'
    """
    grown, root = math.exp(float(epsilon)), math.exp(float(epsilon) / 2)
    one = ("0.5", 0.5) if optimal else (f"exp({epsilon}/2)/(exp({epsilon}/2) + 1)", root / (root + 1))
    zero = (f"1/(exp({epsilon}) + 1)", 1 / (grown + 1)) if optimal else (f"1/(exp({epsilon}/2) + 1)", 1 / (root + 1))
    first = probability(kept, *one)
    return f"onehot({size}) | bits({first}, {first}, {probability(wrong, *zero)})"


def probability(held: float, formula: str, value: float) -> str:
    """The formula of a probability if the object holds its value, otherwise the value it holds.

    >>> probability(0.5, "1/2", 0.5), probability(0.6, "1/2", 0.5)
    ('1/2', '0.6')
    """
    return formula if abs(held - value) <= NEAR * value else shown(held)


def _pairs(client: Any) -> tuple[tuple[Any, Any], ...]:
    """The first two items of the domain, if they are numbered as in the library's default."""
    try:
        default = (client.index_mapper(1), client.index_mapper(2)) == (0, 1)
    except Exception:  # a user's mapper may take only names
        default = False
    return ((1, 2),) if default else ()
