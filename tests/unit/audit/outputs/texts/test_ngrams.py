"""The words of texts as numbers, against each text by itself, and the cells of n-grams, against the definition.

A cell is the CRC-32 of a gram, each text apart.
"""

import pickle
import random
import zlib
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from dpassay.audit.outputs.leaf_views import View
from dpassay.audit.outputs.outputs import LONGEST, Ragged, join, part, read
from dpassay.audit.outputs.texts.ngrams import (
    HASHED,
    MOST_WORDS,
    code_points,
    count_path,
    grams,
    how_often,
    ngrams,
    ngrams_in,
    words_in,
)
from dpassay.audit.outputs.texts.text_views import CHARACTERS, CODES, IN_TEXT, WORDS, repeats, rows_of_text, same_ends


def cell(gram):
    return zlib.crc32(gram.encode()) % HASHED


def test_the_cells_of_a_text():
    expected = {cell(g) for g in ("to", "be", "to be", "\0To ", "\0o b", "\0 be")}
    assert set(ngrams(["To be"])[1].tolist()) == expected
    assert ngrams(["to be to be"])[1].tolist() == sorted(
        {cell(g) for g in ("to", "be", "to be", "be to", "\0to ", "\0o b", "\0 be", "\0be ", "\0e t", "\0 to")}
    )
    assert ngrams(["", "  "])[1].tolist() == ngrams([])[1].tolist() == []
    assert ngrams(["a"])[1].tolist() == [cell("a")]
    assert ngrams(["\ud800 🦓"])[1].size == 4  # two words, their pair, and one run of three characters


def test_long_texts_are_cut():
    text = "word " * 50_000
    assert ngrams([text])[1].tolist() == ngrams([text[: 8 * LONGEST]])[1].tolist()
    far = "a " * LONGEST + "zebra"
    assert cell("zebra") in ngrams([far])[1]
    assert cell("\0zeb") not in ngrams([far])[1]  # words are looked for farther than runs of characters


@pytest.mark.parametrize(
    "texts",
    [
        ["to be or not to be", "", "a", "ab", "abc", "To  be\n"],
        ["naïve café", "日本語のテキスト", "\ud800 lone", "😀😀😀 x", "\0 zero"],
        ["word " * 1000, "x" * 5000],
        [f"w{k % 7} w{k % 11}" for k in range(1100)],
    ],
)
def test_ngrams_of_many_texts_are_those_of_each(texts):
    """Against the definition: CRC-32 of each gram, each text apart."""
    numbers, cells = ngrams(texts)
    assert sorted(zip(numbers.tolist(), cells.tolist(), strict=True)) == sorted(
        {
            (k, zlib.crc32(gram.encode("utf-8", "surrogatepass")) % HASHED)
            for k, text in enumerate(texts)
            for gram in grams(text)
        }
    )


def test_the_cells_of_pairs_of_words_of_any_length():
    letters = random.Random("pairs").choices("abcdefghijklmnopqrstuvwxyz", k=3000)
    words = ["".join(letters[k * k : (k + 1) ** 2]) or "x" for k in range(30)] + ["naïve", "日本語"]
    random.Random(0).shuffle(words)
    expected = {cell(gram) for gram in grams(" ".join(words))}
    assert set(ngrams([" ".join(words)])[1].tolist()) == expected
    assert {cell(f"{a} {b}") for a, b in pairwise(words)} <= expected


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
    kept = "words" if find is words_in else "ngrams"
    assert isinstance(together.projections[kept], Ragged)
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
