"""Numbers that are made of each output's text: the numbers in it, its characters, what repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.outputs import LONGEST, Array, Outputs, as_row
from dpassay.audit.outputs.texts.ngrams import NUMBERS, all_words_in, each_once, words_in

IN_TEXT, CODES = "numbers(text)", "codes(text)"  # rows that are made of each output's text
WORDS, CHARACTERS = "words", "characters"  # what "ends" compares


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


def text_rows(outputs: Outputs, base: str) -> list[Array]:
    """The numbers in each output's text, or the codes of its characters."""
    made = outputs.projections.get(base)
    if made is None:
        texts = [text[: 8 * LONGEST] for text in outputs.texts()]
        if base == CODES:
            made = [np.array(list(map(ord, text[:LONGEST])), dtype=float) for text in texts]
        else:
            made = [np.array([*map(float, NUMBERS.findall(text))]) for text in texts]
        outputs.projections[base] = made
    rows: list[Array] = made
    return rows


def rows_of_text(outputs: Outputs, base: str) -> NDArray[np.int64]:
    """How many numbers are in each output's text, or how many of its characters are used."""
    if base == CODES:
        return np.array([min(len(text), LONGEST) for text in outputs.texts()], dtype=np.int64)
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
