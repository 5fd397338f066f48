"""The leaves of one output by their paths, and its text form, which is the same for equal outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

Derived = TypeVar("Derived")


class Leaves(dict[str, Any]):
    """All leaves of an output."""

    __slots__ = ()


class Keeps(Protocol):
    """An output that keeps what was derived from it."""

    derived: dict[str, Any]


def once(known: Keeps | None, make: Callable[..., Derived], *given: Any) -> Derived:
    """What is derived from an output. It is stored with the output, if that stores anything, for all batches."""
    if known is None:
        return make(*given)
    name = make.__name__
    if name not in known.derived:
        known.derived[name] = make(*given)
    found: Derived = known.derived[name]
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
    kind = type(leaf)
    if kind is str or kind is float:  # most of them
        return repr(leaf)
    if kind is int:
        return hex(leaf)
    if isinstance(leaf, np.ndarray):
        return "[" + ", ".join(map(repr, leaf.tolist())) + "]"
    if isinstance(leaf, int):
        return hex(leaf)
    if isinstance(leaf, Fraction):
        return f"{leaf.numerator:x}/{leaf.denominator:x}"
    return repr(leaf)
