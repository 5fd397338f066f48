"""The words of many texts as numbers, against the words of each text by itself."""

import pickle
from collections import Counter

import numpy as np
import pytest

from dpassay.audit.outputs.leaf_views import (
    CHARACTERS,
    CODES,
    IN_TEXT,
    WORDS,
    View,
    code_points,
    count_path,
    how_often,
    repeats,
    rows_of_text,
    same_ends,
)
from dpassay.audit.outputs.ngrams import MOST_WORDS, ngrams_in, words_in
from dpassay.audit.outputs.outputs import Ragged, join, part, read

TEXTS = ["to be or not to be", "", "  ", "a1 22 b", "To to TO", "naïve 日本 naïve", "3 x 3", "\ud800 9"]
LONG = ["a " * MOST_WORDS + "b", "x"]


@pytest.mark.parametrize("texts", [TEXTS, LONG], ids=["short", "long"])
def test_what_is_counted_of_each_text(texts):
    outputs = read(texts)
    split = [text.split() for text in texts]
    assert repeats(outputs).tolist() == [len(words) - len(set(words)) for words in split]
    assert same_ends(outputs, WORDS).tolist() == [len(words) > 1 and words[0] == words[-1] for words in split]
    assert same_ends(outputs, CHARACTERS).tolist() == [len(text) > 1 and text[0] == text[-1] for text in texts]
    assert code_points(outputs).tolist() == [sum(map(ord, text[:MOST_WORDS])) for text in texts]
    assert rows_of_text(outputs, CODES).tolist() == [min(len(text), 512) for text in texts]


def test_how_often_words_occur():
    outputs = read(TEXTS)
    counts = how_often(words_in(outputs), ["to", "nowhere", "naïve"])
    for row, text in zip(counts, TEXTS, strict=True):
        words = Counter(text.split())
        expected = [words["to"], 0, words["naïve"]] if words else [np.nan] * 3
        assert np.array_equal(row, expected, equal_nan=True)
    shown = View("numbers", (count_path("to"),)).of(outputs).numbers
    assert np.array_equal(shown[:, 0], counts[:, 0], equal_nan=True)


def test_how_many_numbers_a_text_has():
    assert rows_of_text(read(TEXTS), IN_TEXT).tolist() == [0, 0, 0, 2, 0, 0, 2, 1]
    assert rows_of_text(read(["1234567890123456", "0 1,2.3"]), IN_TEXT).tolist() == [0, 4]  # 16 digits are too many


@pytest.mark.parametrize("find", [words_in, ngrams_in])
def test_what_was_found_in_batches_is_that_of_all_together(find):
    """And that of a part, whether it was found before or after the parts were made."""
    batches = [read(TEXTS[:5]), read(TEXTS[5:]), read(["to be"])]
    for batch in batches[:2]:
        find(batch)
    together, fresh = join(batches), read([*TEXTS, "to be"])
    name = "words" if find is words_in else "ngrams"
    assert isinstance(together.projections[name], Ragged)
    for one, other in (
        (together, fresh),
        (part(together, 3), part(fresh, 3)),
        (part(together, 1, 4), part(fresh, 1, 4)),
    ):
        assert find(one).values.tolist() == find(other).values.tolist()
        assert find(one).lengths.tolist() == find(other).lengths.tolist()


def test_what_was_found_does_not_travel():
    outputs = read(TEXTS)
    ngrams_in(outputs)
    again = pickle.loads(pickle.dumps(outputs))
    assert again.projections == {}
    assert again.items == outputs.items
