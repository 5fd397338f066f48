"""SanText+ and CusText over the whole vocabulary, against probabilities by hand."""

import math

import numpy as np
import pytest

from dpassay.errors import InputError
from dpassay.words.mechanisms import TEM, CusText
from dpassay.words.variants import ANY_WORD, NearestWords, SanTextPlus, log_rows
from dpassay.words.vocabulary import Vocabulary

# Distances of ln 2, 2 ln 2 and 3 ln 2: with epsilon 2, SanText's weights are 1/2, 1/4 and 1/8.
THREE = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [3.0]]) * math.log(2))
SANTEXT = {"a": (8 / 13, 4 / 13, 1 / 13), "b": (2 / 7, 4 / 7, 1 / 7), "c": (1 / 11, 2 / 11, 8 / 11)}


def test_santext_plus_keeps_what_is_not_sensitive():
    made = SanTextPlus(THREE, 2, p=0.25, sensitive=1 / 3)  # a and b are not
    for n, word in enumerate("ab"):
        expected = np.array(SANTEXT[word]) / 4
        expected[n] += 0.75
        assert made.probabilities(word) == pytest.approx(expected, rel=1e-14)
    assert made.probabilities("c") == pytest.approx(np.array(SANTEXT["c"]), rel=1e-14)


def test_santext_plus_as_published_draws_sensitive_words_alone():
    made = SanTextPlus(THREE, 2, p=0.25, sensitive=2 / 3, published=True)  # b and c are
    assert made.probabilities("a") == pytest.approx([3 / 4, 1 / 4 * 4 / 5, 1 / 4 * 1 / 5], rel=1e-14)
    assert made.probabilities("b") == pytest.approx([0, 4 / 5, 1 / 5], rel=1e-14)
    assert made.probabilities("c") == pytest.approx([0, 1 / 5, 4 / 5], rel=1e-14)
    assert np.exp(log_rows(made, [ANY_WORD])[0]) == pytest.approx([0, 1 / 2, 1 / 2], rel=1e-14)


def test_custext_over_all_words_scales_by_the_nearest_ones():
    made = NearestWords(THREE, 2 * math.log(2), K=2)
    assert made.probabilities("a") == pytest.approx([1 / 2, 1 / 4, 1 / 4], rel=1e-14)
    assert made.probabilities("c") == pytest.approx([1 / 4, 1 / 4, 1 / 2], rel=1e-14)
    halfway = NearestWords(THREE, 6 * math.log(2), K=3).probabilities(
        "a"
    )  # scaled by c's: scores of 0, −1, −3 times ln 2
    assert halfway == pytest.approx([8 / 13, 4 / 13, 1 / 13], rel=1e-13)


def test_rows_are_those_of_single_words():
    for made in (TEM(THREE, 2, gamma=1.0), CusText(THREE, 2, K=2), NearestWords(THREE, 2, K=2), SanTextPlus(THREE, 2)):
        rows = log_rows(made, [2, ANY_WORD, 0])
        assert rows[1].tolist() == [0, 0, 0] or np.allclose(np.exp(rows[1]), 1 / 3)
        for row, place in ((rows[0], 2), (rows[2], 0)):
            weights = np.exp(row - row.max())
            assert weights / weights.sum() == pytest.approx(np.exp(made.log_probabilities(place)), rel=1e-13)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: SanTextPlus(THREE, 1, p=0.0), "p of santext-plus"),
        (lambda: SanTextPlus(THREE, 1, sensitive=1.0), "sensitive of santext-plus"),
        (lambda: SanTextPlus(THREE, 1, distance="squared-l2"), "a distance that is a metric"),
        (lambda: NearestWords(THREE, 1, K=1), "at least 2"),
        (lambda: NearestWords(THREE, 0), "above 0"),
    ],
)
def test_what_cannot_be_is_refused(make, what):
    with pytest.raises(InputError, match=what):
        make()
