"""Words, their numbers, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpassay import InputError
from dpassay.text.models.words import END, LONGEST, PAD, SPECIAL, UNKNOWN, ModelVocabulary, tokenise

KNOWN = ModelVocabulary(("a", "flight", "rome", "to"))


@given(st.lists(st.lists(st.sampled_from(KNOWN.words), max_size=12).map(" ".join), max_size=6))
def test_known_words_come_back(texts):
    assert KNOWN.texts(KNOWN.numbers(texts)) == texts


@given(st.text(max_size=60))
def test_any_text_has_a_row_with_one_end_and_padding_behind_it(text):
    row = KNOWN.numbers([text, "a " * 30])[0]
    words = len(tokenise(text))
    assert (row == END).sum() == 1
    assert row[words] == END
    assert (row[words + 1 :] == PAD).all()
    assert ((row[:words] >= SPECIAL) | (row[:words] == UNKNOWN)).all()


def test_long_texts_are_cut_and_unknown_words_are_never_written():
    row = KNOWN.numbers(["rome " * 10_000])
    assert row.shape == (1, LONGEST + 1)
    assert KNOWN.texts(np.array([[UNKNOWN, SPECIAL, PAD, SPECIAL + 1]])) == ["a flight"]


def test_the_vocabulary_is_of_the_most_frequent_words():
    assert ModelVocabulary.of(["b b a", "c a b"], most=2).words == ("a", "b")
    with pytest.raises(InputError, match="different words"):
        ModelVocabulary(())
