"""Which two inputs count as neighbors."""

import re
from typing import Literal, cast

from dpassay.errors import InputError
from dpassay.values import dataclass

Relation = Literal["any", "word", "replace-record", "add-remove-record", "query"]

_WORDS: dict[str, str] = {
    "any": "any two inputs (local DP)",
    "word": "two texts that differ in one word",
    "words(n)": "two texts that differ in at most {} words",
    "tokens(n)": "two texts that differ in at most {} tokens",
    "element": "two vectors that differ in one element, by any amount",
    "replace-record": "two data sets that differ in one record replaced",
    "add-remove-record": "two data sets that differ in one record added or removed",
    "user": "two data sets that differ in all records of one user, added or removed",
    "entity": "two data sets that differ in all records of one entity, added or removed",
    "user-entity": "two data sets that differ in all records of one user and of one entity, added or removed",
    "group(n)": "two data sets that differ in at most {} records, each added or removed",
    "query": "two data sets whose answers are at most a stated distance apart",
}
KINDS = tuple(_WORDS)
# What each is in a pipeline: a user, or an entity, is a record as long as the stages see all of their data at once.
_RELATIONS: dict[str, Relation] = {
    "words(n)": "word",
    "tokens(n)": "word",
    "element": "replace-record",  # of a vector with one element per record
    "user": "add-remove-record",
    "entity": "add-remove-record",
    "user-entity": "add-remove-record",
    "group(n)": "add-remove-record",
}
MOST = 1_000_000
_COUNTED = re.compile(r"(words|tokens|group)\((\d{1,7})\)")


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The relation between two inputs that must be hard to distinguish.

    >>> print(Neighbours())
    any two inputs (local DP)
    >>> print(Neighbours("words(3)"), Neighbours("group(3)").relation, Neighbours("group(3)").count)
    two texts that differ in at most 3 words add-remove-record 3
    """

    kind: str = "any"

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self._form not in _WORDS or not 1 <= self.count <= MOST:
            raise InputError(
                f"unknown neighbors {self.kind!r}; allowed: {', '.join(_WORDS)}, "
                f"with a whole number from 1 to {MOST:,} for n"
            )

    @property
    def _form(self) -> str:
        counted = _COUNTED.fullmatch(self.kind)
        return f"{counted[1]}(n)" if counted else self.kind if "(" not in self.kind else ""

    @property
    def relation(self) -> Relation:
        """How the two inputs differ, in one of the basic relations, applied `count` times."""
        return _RELATIONS.get(self._form, cast(Relation, self.kind))

    @property
    def count(self) -> int:
        """How many words, tokens or records may differ."""
        counted = _COUNTED.fullmatch(self.kind)
        return int(counted[2]) if counted else 1

    def __str__(self) -> str:
        words = _WORDS[self._form].format(f"{self.count:,}")
        return re.sub(r"at most 1 (\w+)s\b", r"one \1", words).replace("record, each", "record,")
