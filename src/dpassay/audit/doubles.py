"""Which numbers a double represents exactly."""

from typing import Any

import numpy as np

EXACT = 2**53  # up to here every integer is a double


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
