"""Which two inputs a guarantee speaks of."""

from dataclasses import dataclass
from typing import Literal

from dpassay.errors import InputError

Kind = Literal["any", "word", "replace-record", "add-remove-record", "query"]

_WORDS: dict[str, str] = {
    "any": "any two inputs (local DP)",
    "word": "two texts that differ in one word",
    "replace-record": "two data sets that differ in one record replaced",
    "add-remove-record": "two data sets that differ in one record added or removed",
    "query": "two data sets whose answers are at most a stated distance apart",
}


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The relation between two inputs that must be hard to tell apart.

    >>> print(Neighbours())
    any two inputs (local DP)
    >>> print(Neighbours("word"))
    two texts that differ in one word
    """

    kind: Kind = "any"

    def __post_init__(self) -> None:
        if self.kind not in _WORDS:
            raise InputError(f"unknown neighbours {self.kind!r}; allowed: {', '.join(_WORDS)}")

    def __str__(self) -> str:
        return _WORDS[self.kind]
