"""The laws of word mechanisms, by the papers' formulas worked out one word at a time."""

import math

import numpy as np
import pytest

from dpassay.errors import InputError
from dpassay.words.mechanisms import MECHANISMS, TEM, CusText, SanText
from dpassay.words.vocabulary import Vocabulary

LINE = Vocabulary(("a", "b", "c", "d", "e"), np.array([[0.0], [1.0], [3.0], [7.0], [8.0]]))


def test_santext_on_a_line():
    weights = [math.exp(-2 * d) for d in (1, 0, 2, 6, 7)]  # epsilon 4, from b
    assert SanText(LINE, 4).probabilities("b") == pytest.approx([w / sum(weights) for w in weights], rel=1e-14)


def test_tem_as_published():
    near = {"a": 0, "b": 1, "c": 3}  # from a, within 5
    bucket = math.exp(-5 + math.log(2))  # epsilon 2: score -gamma + (2/epsilon) ln 2
    total = sum(math.exp(-d) for d in near.values()) + bucket
    expected = [*(math.exp(-d) / total for d in near.values()), bucket / total / 2, bucket / total / 2]
    assert TEM(LINE, 2, gamma=5).probabilities("a") == pytest.approx(expected, rel=1e-14)


def test_tem_as_the_package_has_it():
    """mldp-text 0.1.2: f of the far words is -threshold + 2 ln(|V|/|L|)/epsilon, each noisy by Gumbel(2/epsilon)."""
    bucket = math.exp(-5 + math.log(5 / 3))
    total = sum(math.exp(-d) for d in (0, 1, 3)) + bucket
    expected = [*(math.exp(-d) / total for d in (0, 1, 3)), bucket / total / 2, bucket / total / 2]
    assert TEM(LINE, 2, gamma=5, far="ratio").probabilities("a") == pytest.approx(expected, rel=1e-14)


def test_the_default_gamma_leaves_the_far_words_little():
    assert TEM(LINE, 4).gamma == pytest.approx(0.5 * math.log(999 * 4))


def test_custext_groups_and_law():
    mechanism = CusText(LINE, 3, K=2)
    assert [[LINE.words[i] for i in group] for group in mechanism.groups] == [["a", "b"], ["c", "d"], ["e"]]
    weights = np.array([math.exp(-1.5 * 1), math.exp(0)])  # from d: c is farthest, scaled to 1
    assert mechanism.probabilities("d") == pytest.approx([0, 0, *(weights / weights.sum()), 0], rel=1e-14)
    assert mechanism.probabilities("e").tolist() == [0, 0, 0, 0, 1]


def test_custext_within_larger_groups():
    mechanism = CusText(LINE, 3, K=20)
    apart = np.array([3, 2, 0, 4, 5]) / 5
    weights = np.exp(-1.5 * apart)
    assert mechanism.probabilities("c") == pytest.approx(weights / weights.sum(), rel=1e-14)


def test_words_at_one_place_are_as_likely():
    same = Vocabulary(("a", "b"), np.ones((2, 3)))
    for mechanism in (SanText(same, 4), TEM(same, 4), CusText(same, 4)):
        assert mechanism.probabilities("a").tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", MECHANISMS)
def test_probabilities_add_up_where_scores_are_far_apart(name):
    wide = Vocabulary(tuple("abcdef"), 1e4 * np.arange(12.0).reshape(6, 2))
    assert MECHANISMS[name](wide, 50).probabilities("c").sum() == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SanText(LINE, 0), "must be above 0"),
        (lambda: SanText(LINE, -1), "must be above 0"),
        (lambda: SanText(LINE, math.inf), "at most 1e6"),
        (lambda: SanText(LINE, 1, distance="cosine"), "unknown distance 'cosine'; allowed: l2"),
        (lambda: SanText(LINE, 1, distance="angle"), "the vector of 'a' is zero and has no angle"),
        (lambda: TEM(LINE, 1, gamma=-1), "gamma"),
        (lambda: TEM(LINE, 1, gamma=3.0, far="ratio").probabilities("a"), "choose another gamma"),
        (lambda: TEM(LINE, 1, far="half"), "allowed: count, ratio"),
        (lambda: CusText(LINE, 1, K=1), "at least 2"),
        (lambda: SanText(LINE, 1).probabilities("z"), "no word 'z'"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
