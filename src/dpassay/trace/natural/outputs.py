"""An output as its numbers and texts, each with its path, and which of them are the same in two outputs."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from dpassay.audit.outputs.leaves import shown_key
from dpassay.errors import MechanismError

ROUNDING = 1e-9  # relative, of doubles
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in the repr of an object that does not show what it holds


class CannotBeRead(MechanismError):
    """An output, or a part of it, whose type has no accessible numbers or texts."""


def leaves(output: Any) -> list[Any]:
    """The numbers and texts of an output, in order.

    >>> leaves({"a": [1, np.array([2.0, 3.0])], "b": "word"})
    [1.0, 2.0, 3.0, 'word']
    """
    return [leaf for _, leaf in _leaves(output, "output")]


def path_of(output: Any, leaf: int) -> str:
    """The path to one of the leaves of an output, by its index.

    >>> path_of({"a": [1, np.array([2.0, 3.0])], "b": "word"}, 2)
    'output["a"][1][1]'
    """
    paths = [path for path, _ in _leaves(output, "output")]
    return paths[leaf] if leaf < len(paths) else f"output[{leaf}]"


def described(output: Any) -> str:
    """An output as a text, the same for equal outputs whatever the order of keys or members and the number types.

    >>> described({"b": True, "a": -0.0}) == described({"a": 0, "b": np.True_})
    True
    >>> described({"a": 1}) == described({"b": 1})
    False
    """
    found = sorted((path, repr(leaf + 0.0 if isinstance(leaf, float) else leaf)) for path, leaf in _leaves(output, ""))
    return ", ".join(f"{path} {leaf}".strip() for path, leaf in found)


def _leaves(output: Any, path: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    if hasattr(type(output), "untyped_storage"):  # a tensor
        output = output.detach().cpu().double().numpy()
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, dict):
        for key, one in output.items():
            yield from _leaves(one, f"{path}[{shown_key(key)}]", above)
    elif isinstance(output, list | tuple):
        for at, one in enumerate(output):
            yield from _leaves(one, f"{path}[{at}]", above)
    elif isinstance(output, set | frozenset):
        for at, member in enumerate(sorted(map(described, output))):
            yield f"{path}[{at}]", member
    elif isinstance(output, bool | int | float | np.number | np.bool_):
        try:
            yield path, float(output)
        except OverflowError:  # an integer beyond all doubles
            yield path, hex(int(output))
    elif isinstance(output, str):
        yield path, str(output)
    elif isinstance(output, bytes | None):
        yield path, output
    else:
        if _ADDRESS.search(text := repr(output)):
            if found := _attributes(output, path, above):
                yield from found
                return
            kind = type(output).__name__.removeprefix("Watched")
            raise CannotBeRead(
                f"{path} is of type {kind}, which cannot be read: return numbers, texts, arrays, lists or dicts"
            )
        yield path, text


def _attributes(thing: Any, path: str, above: tuple[int, ...]) -> list[tuple[str, Any]]:
    """The leaves of what an object holds, except unreadable ones, which `whole.read` compares."""
    found: list[tuple[str, Any]] = []
    if id(thing) in above or callable(thing):
        return found
    listed = [vars(kind).get("__slots__", ()) for kind in type(thing).__mro__]
    slots = [name for names in listed for name in ((names,) if isinstance(names, str) else names)]
    held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)} | getattr(thing, "__dict__", {})
    for name, one in held.items():
        with suppress(CannotBeRead):
            found += _leaves(one, f"{path}.{name}", (*above, id(thing)))
    return found


def same(first: list[Any], second: list[Any], rounding: float = ROUNDING) -> list[bool]:
    """Which leaves of two outputs are equal, up to rounding."""
    if len(first) != len(second):
        return [False] * max(len(first), len(second))
    sizes = [abs(one) for one in first if isinstance(one, float) and math.isfinite(one)]
    usual = statistics.median(sizes) if sizes else 0.0
    return [one == other or _close(one, other, rounding, usual) for one, other in zip(first, second, strict=True)]


def _close(one: Any, other: Any, rounding: float, usual: float) -> bool:
    if not (isinstance(one, float) and isinstance(other, float)):
        return False
    both_nan = math.isnan(one) and math.isnan(other)
    return both_nan or abs(one - other) <= rounding * max(abs(one), abs(other), usual)
