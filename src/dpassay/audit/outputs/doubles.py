"""Which numbers a double represents exactly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXACT = 2**53  # up to here every integer is a double


INTEGERS = frozenset(np.dtype(code).type for code in "bhilqBHILQ")
FLOATS = frozenset({np.bool_, np.float16, np.float32, np.float64})
DOUBLES = FLOATS | {float, bool}


def as_doubles(entries: Sequence[Any], kinds: set[type]) -> NDArray[np.float64] | None:
    """Numbers of one type, which is all of `kinds`, as doubles; None if these are of other types or would be rounded.

    >>> as_doubles([1, 2], {int}), as_doubles([2**53 + 1], {int}), as_doubles([1, 0.5], {int, float})
    (array([1., 2.]), None, None)
    """
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is float or kind is bool or kind in FLOATS:
        return np.array(entries, dtype=np.float64)
    if kind is int:
        small = min(entries) >= -EXACT and max(entries) <= EXACT
        return np.array(entries, dtype=np.float64) if small or all(map(exact, entries)) else None
    if kind not in INTEGERS:
        return None
    whole = np.array(entries)
    row = whole.astype(np.float64)
    return None if rounded_by_floats(whole, row) else row


def exact(number: Any) -> bool:
    """Whether a float can represent an integer exactly."""
    if -EXACT <= number <= EXACT:
        return True
    try:
        return bool(int(float(number)) == number)
    except OverflowError:
        return False


def rounded_by_floats(numbers: Any, as_floats: Any) -> bool:
    """Whether an array has numbers that no double represents exactly.

    >>> many = np.array([2**53, 2**53 + 1])
    >>> rounded_by_floats(many, many.astype(float)), rounded_by_floats(many[:1], many[:1].astype(float))
    (True, False)
    """
    if numbers.dtype.itemsize < 8 or numbers.dtype == np.float64 or not numbers.size:
        return False
    if numbers.dtype.kind == "f":
        return bool((np.isfinite(numbers) & (as_floats.astype(numbers.dtype) != numbers)).any())
    far = np.abs(as_floats) >= EXACT
    if not far.any():
        return False
    return not all(map(exact, numbers[far].tolist()))


def column_of(items: list[Any]) -> NDArray[np.float64] | None:
    """Numbers as an array; None if one of them is not a double."""
    kinds = set(map(type, items))
    small = kinds == {int} and min(items) >= -EXACT and max(items) <= EXACT
    if not small and not kinds <= DOUBLES and not all(is_double(item) for item in items):
        return None
    return np.array(items, dtype=np.float64)


def is_double(item: Any) -> bool:
    """Whether a double represents a number exactly."""
    if isinstance(item, bool | float | np.bool_ | np.float32 | np.float16):
        return True
    if isinstance(item, np.floating):
        return bool(np.isnan(item)) or type(item)(float(item)) == item
    return exact(int(item))
