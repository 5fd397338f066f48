"""The leaves of one output by their paths, and its text form, which is the same for equal outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

Derived = TypeVar("Derived")


class Leaves(dict[str, Any]):
    """All leaves of an output, with what was derived from the output: see `once`."""

    __slots__ = ("derived",)
    derived: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return Leaves, (dict(self),)


def once(known: Leaves | None, make: Callable[..., Derived], *given: Any) -> Derived:
    """What is made of an output. It is kept with the output's leaves, if these are known, in whichever batches it is.

    >>> found = Leaves({"output": 1.5})
    >>> once(found, len, "first"), once(found, len, "again"), once(None, len, "third time")
    (5, 5, 10)
    """
    if known is None:
        return make(*given)
    try:
        derived = known.derived
    except AttributeError:
        derived = known.derived = {}
    if make.__name__ not in derived:
        derived[make.__name__] = make(*given)
    found: Derived = derived[make.__name__]
    return found


def canonical(found: Mapping[str, Any]) -> str:
    """All leaves as one text: equal outputs have equal texts, whatever the order of their sets and keys."""
    return "{" + ", ".join([begun + written(found[path]) for path, begun in _in_order(tuple(found))]) + "}"


@lru_cache(maxsize=1 << 10)
def _in_order(paths: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The paths that matter, sorted, each with what precedes its leaf. Outputs of one form have the same."""
    return tuple((path, f"{path}: ") for path in sorted(paths) if not path.startswith("list("))


def written(leaf: Any) -> str:
    """A leaf as text; different leaves have different texts."""
    if type(leaf) is str or type(leaf) is float:  # most of them
        return repr(leaf)
    if isinstance(leaf, np.ndarray):
        return "[" + ", ".join(map(repr, leaf.tolist())) + "]"
    if isinstance(leaf, int):
        return hex(leaf)
    if isinstance(leaf, Fraction):
        return f"{leaf.numerator:x}/{leaf.denominator:x}"
    return repr(leaf)
