"""The result of a benchmark: a measurement, as text, and its bar."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    what: str
    bar: str
    found: str
    met: bool
