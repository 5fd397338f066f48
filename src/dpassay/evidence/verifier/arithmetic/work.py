"""How much a certificate may cost to check: 30 seconds and 500 MB at most, whatever is in the file.

Work is counted in nanoseconds of a slow processor, and refused before it is done. Every number of 60 digits counts
itself when it is made; what is done in doubles, and what is kept in lists or tables, is counted by `spend` and
`make_room` before anything is allocated. What is counted is a bound on the time of each kind of step, measured with
files that consist of this kind alone, with some room to spare.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dpassay.errors import CertificateError

ALL_WORK = 24_000_000_000  # nanoseconds of one certificate, reading it included
OF_A_NUMBER = 6 << 10  # the cost of an operation with 60 digits
KEPT_NUMBER = 1 << 16  # the cost of a number with 60 digits that is kept, so that not too many are
MOST_ROOM = 10 << 23  # doubles of all tables of one bound, of which about two thirds are kept at once
_LEFT: ContextVar[tuple[list[int], set[Hashable]] | None] = ContextVar("_LEFT", default=None)
_TOO_LONG = (
    "the evidence of this certificate takes too long to be checked: it is too long, its grids are too fine, or its "
    "vocabulary is too large"
)


@contextmanager
def limited(parts: int = 1) -> Iterator[None]:
    """Refuse more work than is allowed in total, divided by `parts`, until the end of the block."""
    token = _LEFT.set(([ALL_WORK // parts], set()))
    try:
        yield
    finally:
        _LEFT.reset(token)


def spend(work: int, once: Hashable = None) -> None:
    """Count work, and refuse it if it is too much; outside of `limited` each piece is judged on its own.

    Work with a name is counted once, as its result is kept.
    """
    left, counted = _LEFT.get() or ([ALL_WORK], set())
    if once is None or once not in counted:
        left[0] -= work
    counted.add(once)
    if left[0] < 0:
        raise CertificateError(_TOO_LONG)


def count_number(times: int = 1) -> None:
    """Count an operation with 60 digits, `times` as long as a product; outside of `limited` nothing is counted."""
    found = _LEFT.get()
    if found is not None:
        left = found[0]
        left[0] -= OF_A_NUMBER * times
        if left[0] < 0:
            raise CertificateError(_TOO_LONG)


def make_room(doubles: int) -> None:
    """Refuse a table of more doubles than there is room for."""
    if doubles > MOST_ROOM:
        raise CertificateError("the evidence of this certificate takes too much memory to be checked: it is too fine")
