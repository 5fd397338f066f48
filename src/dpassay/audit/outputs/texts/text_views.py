"""Numbers that are made of each output's text: the numbers in it, its characters and how many of each sort it has."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.outputs import LONGEST, Array, Outputs, as_row
from dpassay.audit.outputs.texts.ngrams import NUMBERS, all_words_in, each_once, words_in

# Rows that are made of each output's text.
IN_TEXT, HEXADECIMAL, CODES, SORTS = "numbers(text)", "hexadecimal(text)", "codes(text)", "sorts(text)"
OF_TEXT = (IN_TEXT, HEXADECIMAL, CODES, SORTS)
WORDS, CHARACTERS = "words", "characters"  # what "ends" compares
SORT_NAMES = (
    "len(text)",
    "the number of words",
    "the number of capitals",
    "the number of lower-case letters",
    "the number of digits",
    "the number of spaces",
    "the number of invisible characters",
    "the number of other characters",
)
LAST_DIGITS = 13  # of a hexadecimal number, which a double represents
# With a digit and a letter, because others are read as decimal numbers or are words.
_HEXADECIMAL = re.compile(
    r"(?<![0-9A-Za-z])(?:0x)?(?=[0-9]*[A-Fa-f])(?=[A-Fa-f]*[0-9])([0-9A-Fa-f]{4,})(?![0-9A-Za-z])"
)


def same_ends(outputs: Outputs, what: str) -> Array:
    """1 for each output whose first and last word, entry or character are equal, 0 for others."""
    if outputs.numbers is not None:
        several = outputs.numbers.shape[1] > 1
        return np.array(outputs.numbers[:, 0] == outputs.numbers[:, -1] if several else np.zeros(len(outputs)), float)
    if what == WORDS and (words := all_words_in(outputs)) is not None:
        ends = np.cumsum(words.lengths)
        several, numbers = words.lengths > 1, np.append(words.values, -1)
        return np.asarray(
            several
            & (numbers[np.where(several, ends - words.lengths, -1)] == numbers[np.where(several, ends - 1, -1)]),
            float,
        )
    found = []
    for item, text in zip(outputs.items, outputs.texts(), strict=True):
        row = as_row(item)
        entries: Sequence[Any] = (text.split() if what == WORDS else text) if row is None else row.tolist()
        found.append(float(len(entries) > 1 and entries[0] == entries[-1]))
    return np.array(found)


def text_rows(outputs: Outputs, base: str) -> Sequence[Array] | Array:
    """The numbers in each output's text, the codes of its characters, or how many of each sort there are."""
    made = outputs.projections.get(base)
    if made is None:
        texts = [text[: 8 * LONGEST] for text in outputs.texts()]
        if base == CODES:
            made = [np.array(list(map(ord, text[:LONGEST])), dtype=float) for text in texts]
        elif base == SORTS:
            made = sorts_of(texts)
        elif base == HEXADECIMAL:
            made = [np.array([float(int(one[-LAST_DIGITS:], 16)) for one in _HEXADECIMAL.findall(t)]) for t in texts]
        else:
            made = [np.array([*map(float, NUMBERS.findall(text))]) for text in texts]
        outputs.projections[base] = made
    rows: Sequence[Array] | Array = made
    return rows


def sorts_of(texts: Sequence[str]) -> Array:
    """How many characters of each sort texts have, a column for each of `SORT_NAMES`; NaN for an empty text.

    >>> sorts_of(["Ab 1", "a\u200bb!"])[:, 2:].tolist()  # a zero-width space
    [[1.0, 1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0, 1.0, 1.0]]
    """
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    number = len(SORT_NAMES)
    sorts = _ascii_sorts()[np.minimum(codes, 128)]
    for code in np.unique(codes[codes >= 128]).tolist():
        sorts[codes == code] = _sort_of(code)
    rows = np.repeat(np.arange(len(texts)), lengths)
    found = np.bincount(rows * number + sorts, minlength=len(texts) * number).reshape(-1, number).astype(float)
    found[:, 0] = lengths
    found[:, 1] = [len(text.split()) for text in texts]
    found[lengths == 0] = np.nan
    return found


@lru_cache(maxsize=1)
def _ascii_sorts() -> NDArray[np.int64]:
    return np.array([*map(_sort_of, range(128)), 0])


@lru_cache(maxsize=1 << 12)
def _sort_of(code: int) -> int:
    """The column of a character among `SORT_NAMES`."""
    character = chr(code)
    if character.isspace():
        return 5
    category = unicodedata.category(character)
    sorts = {"Lu": 2, "Ll": 3, "Nd": 4, "Cf": 6, "Cc": 6}
    return sorts.get(category, 7)


def rows_of_text(outputs: Outputs, base: str) -> NDArray[np.int64]:
    """How many numbers are in each output's text, or how many of its characters are used."""
    if base == CODES:
        return np.array([min(len(text), LONGEST) for text in outputs.texts()], dtype=np.int64)
    if base == HEXADECIMAL:
        return np.array([len(row) for row in text_rows(outputs, base)], dtype=np.int64)
    words = words_in(outputs)
    found = np.bincount(words.rows, words.of.figures[words.values], len(outputs))
    return found.astype(np.int64)


def repeats(outputs: Outputs) -> Array:
    """How many words of a text, or numbers of a row, equal another one before them.

    >>> from dpassay.audit.outputs.outputs import read
    >>> repeats(read(["to be or not to be"])).tolist(), repeats(read([[0.5, 1.0, 0.5]])).tolist()
    ([2.0], [1.0])
    """
    if outputs.numbers is not None:
        ordered = np.sort(outputs.numbers, axis=1)
        return np.asarray((ordered[:, 1:] == ordered[:, :-1]).sum(axis=1), dtype=float)
    if (words := all_words_in(outputs)) is not None:
        return np.asarray(words.lengths - np.bincount(each_once(words)[0], minlength=len(outputs)), dtype=float)
    found = []
    for item, text in zip(outputs.items, outputs.texts(), strict=True):
        row = as_row(item)
        entries = text.split() if row is None else row.tolist()
        found.append(float(len(entries) - len(set(entries))))
    return np.array(found)
