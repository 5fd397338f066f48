"""The cells of n-grams, against the definition: CRC-32 of each gram, each text apart."""

import random
import zlib
from itertools import pairwise

import pytest

from dpassay.audit.outputs.ngrams import HASHED, grams, ngrams
from dpassay.audit.outputs.outputs import LONGEST


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
