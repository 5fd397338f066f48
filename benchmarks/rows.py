"""What a benchmark says: a measurement, in words, beside its bar."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    what: str
    bar: str
    found: str
    met: bool
