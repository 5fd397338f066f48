"""One number for a row of numbers that a person would name: its range, its order, what equals what.

Numbers are equal if they differ by at most a billionth of their size: otherwise rounding would decide, which differs
between inputs for every sampler in floating point.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.doubles import EXACT

Array = NDArray[np.float64]
NEAR = 1e-9  # relative to the largest of the numbers that are compared
MOST_ENTRIES = 64  # of a row whose order is examined


def near(one: Array, other: Array, *others: Array) -> NDArray[np.bool_]:
    """Whether two numbers are equal but for rounding, relative to these and to others.

    >>> near(np.array([0.1 + 0.2, 0.0, 1.0]), np.array([0.3, 0.0, 1.001])).tolist()
    [True, True, False]
    """
    largest = reduce(np.maximum, map(np.abs, (one, other, *others)))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.abs(one - other) <= NEAR * largest)


def equal(rows: Array) -> Array:
    """Whether the first two numbers are equal."""
    return near(rows[:, 0], rows[:, 1]).astype(float)


def opposite(rows: Array) -> Array:
    """Whether the sum of the first two numbers is 0."""
    return near(rows[:, 0], -rows[:, 1]).astype(float)


def plus(rows: Array) -> Array:
    """Whether the third number is the sum of the first two."""
    return near(rows[:, 0] + rows[:, 1], rows[:, 2], rows[:, 0], rows[:, 1]).astype(float)


def times(rows: Array) -> Array:
    """Whether the third number is the product of the first two."""
    return near(rows[:, 0] * rows[:, 1], rows[:, 2]).astype(float)


def member(rows: Array) -> Array:
    """Whether the first number is one of the others."""
    return np.asarray(near(rows[:, :1], rows[:, 1:]).any(axis=1), dtype=float)


def product(rows: Array) -> Array:
    """The product of all."""
    return np.asarray(rows.prod(axis=1))


def size(rows: Array) -> Array:
    """The absolute value of the first number."""
    return np.asarray(np.abs(rows[:, 0]))


def span(rows: Array) -> Array:
    """The largest number minus the smallest."""
    return np.asarray(rows.max(axis=1) - rows.min(axis=1))


def largest(rows: Array) -> Array:
    """The position of the largest number; NaN if there is something else."""
    return np.where(np.isnan(rows).any(axis=1), np.nan, rows.argmax(axis=1))


def smallest(rows: Array) -> Array:
    """The position of the smallest number; NaN if there is something else."""
    return np.where(np.isnan(rows).any(axis=1), np.nan, rows.argmin(axis=1))


def inversions(rows: Array) -> Array:
    """How many pairs are in descending order.

    >>> inversions(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])).tolist()
    [0.0, 2.0]
    """
    found = np.zeros(len(rows))
    for step in range(1, min(rows.shape[1], MOST_ENTRIES)):
        found += (rows[:, :-step] > rows[:, step:]).sum(axis=1)
    return found


def alike(rows: Array) -> Array:
    """How many numbers equal the one before them."""
    return np.asarray(near(rows[:, 1:], rows[:, :-1]).sum(axis=1), dtype=float)


def longest_run(rows: Array) -> Array:
    """How many equal numbers follow each other at most.

    >>> longest_run(np.array([[1.0, 1.0, 2.0], [0.0, 1.0, 2.0], [2.0, 2.0, 2.0]])).tolist()
    [2.0, 1.0, 3.0]
    """
    best, now = np.ones(len(rows)), np.ones(len(rows))
    same = near(rows[:, 1:], rows[:, :-1])
    for column in same.T:
        now = np.where(column, now + 1, 1.0)
        best = np.maximum(best, now)
    return best


def divisor(rows: Array) -> Array:
    """The greatest common divisor of integers; NaN for other rows.

    >>> divisor(np.array([[6.0, 9.0], [6.0, 7.0], [0.5, 1.0]])).tolist()
    [3.0, 1.0, nan]
    """
    with np.errstate(invalid="ignore"):
        whole = ((rows == np.rint(rows)) & (np.abs(rows) < EXACT)).all(axis=1)
    found = np.gcd.reduce(np.where(whole[:, None], rows, 0.0).astype(np.int64), axis=1)
    return np.where(whole, found, np.nan)


def digits(rows: Array) -> Array:
    """The sum of the decimal digits of the first number, an integer; NaN for others.

    >>> digits(np.array([[907.0], [-12.0], [0.5]])).tolist()
    [16.0, 3.0, nan]
    """
    number = np.abs(rows[:, 0])
    with np.errstate(invalid="ignore"):
        whole = (number == np.rint(number)) & (number < EXACT)
    rest, found = np.where(whole, number, 0.0).astype(np.int64), np.zeros(len(rows), dtype=np.int64)
    while rest.any():
        rest, digit = np.divmod(rest, 10)
        found += digit
    return np.where(whole, found, np.nan)


# What is shown of a row, and how it is said, with the names of its numbers.
ROWS: dict[str, tuple[Callable[[Array], Array], str]] = {
    "equal": (equal, "whether {0} is {1}"),
    "opposite": (opposite, "whether {0} + {1} is 0"),
    "plus": (plus, "whether {0} + {1} is {2}"),
    "times": (times, "whether {0} * {1} is {2}"),
    "member": (member, "whether {0} is in {rest}"),
    "product": (product, "{product}"),
    "size": (size, "|{0}|"),
    "range": (span, "the range of {all}"),
    "place of the largest": (largest, "the position of the largest of {all}"),
    "place of the smallest": (smallest, "the position of the smallest of {all}"),
    "inversions": (inversions, "the number of pairs in {all} in descending order"),
    "neighbors": (alike, "the number of entries of {all} that equal the one before"),
    "longest run": (longest_run, "the longest run of equal entries of {all}"),
    "divisor": (divisor, "the greatest common divisor of {all}"),
    "digits": (digits, "the sum of the digits of {0}"),
}
FEWEST = {"plus": 3, "times": 3, "size": 1, "digits": 1}  # numbers in a row; of others 2


def said(look: str, names: Sequence[str], whole: Callable[[Sequence[str]], str]) -> str:
    """The name of what is shown of numbers with these names; `whole` names several together."""
    several = {"all": whole(names), "rest": whole(names[1:])}
    return ROWS[look][1].format(*names, product=" * ".join(names[:3]), **several)
