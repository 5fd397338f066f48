"""Words and their numbers: from a text to what a network reads, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError

PAD, END, START, UNKNOWN = range(4)
SPECIAL = 4
LONGEST = 48  # words of a text that are read, and at most written


def tokenise(text: str) -> list[str]:
    """The words of a text: lower case, split at white space.

    >>> tokenise("Fly me\\tto  Rome")
    ['fly', 'me', 'to', 'rome']
    """
    return text.lower().split()


def as_text(given: Any, taker: str) -> str:
    """What was given, if it is a text.

    >>> as_text(3, "a rewriter")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: a rewriter takes a text, got 3
    """
    if not isinstance(given, str):
        raise InputError(f"{taker} takes a text, got {given!r:.60}")
    return given


@dataclass(frozen=True)
class ModelVocabulary:
    """The words that a model knows. It treats all others as the same word, and never writes them.

    >>> known = ModelVocabulary(("fly", "to", "rome"))
    >>> known.numbers(["fly to oslo", ""]).tolist()
    [[4, 5, 3, 1], [1, 0, 0, 0]]
    >>> known.texts(np.array([[4, 6, 1, 5]]))
    ['fly rome']
    """

    words: tuple[str, ...]
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.words or len(set(self.words)) != len(self.words):
            raise InputError(f"a vocabulary needs different words, at least one; got {len(self.words)}")
        object.__setattr__(self, "_places", {word: SPECIAL + i for i, word in enumerate(self.words)})

    @classmethod
    def of(cls, texts: Iterable[str], most: int = 20_000) -> ModelVocabulary:
        """The most frequent words of some texts, in alphabetical order."""
        counts = Counter(word for text in texts for word in tokenise(text))
        kept = sorted(counts, key=lambda word: (-counts[word], word))[:most]
        return cls(tuple(sorted(kept)))

    def __len__(self) -> int:
        return SPECIAL + len(self.words)

    def numbers(self, texts: Sequence[str], longest: int = LONGEST) -> NDArray[np.int64]:
        """One row of word numbers per text, its end marked, padded; words beyond the longest are cut off."""
        rows = [[self._places.get(word, UNKNOWN) for word in tokenise(text)[:longest]] for text in texts]
        table = np.full((len(rows), 1 + max(map(len, rows), default=0)), PAD, dtype=np.int64)
        for place, row in zip(table, rows, strict=True):
            place[: len(row)] = row
            place[len(row)] = END
        return table

    def texts(self, table: NDArray[np.int64]) -> list[str]:
        """The text of each row, up to its end."""
        found = []
        for row in table.tolist():
            stop = row.index(END) if END in row else len(row)
            found.append(" ".join(self.words[number - SPECIAL] for number in row[:stop] if number >= SPECIAL))
        return found
