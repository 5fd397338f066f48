"""The largest loss of two words, against going through all pairs and outputs with plain numpy."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpassay.words import largest_loss as module
from dpassay.words.largest_loss import diameter, largest_loss
from dpassay.words.mechanisms import TEM, CusText, SanText
from dpassay.words.variants import NearestWords, SanTextPlus
from dpassay.words.vocabulary import Vocabulary
from dpassay.words.worst_pair import worst_pairs

VECTORS = np.random.default_rng(5).standard_normal((300, 4))
VECTORS[7] = VECTORS[9]  # two words at one place
MANY = Vocabulary(tuple(f"w{i}" for i in range(300)), VECTORS)
MADE = [
    SanText(MANY, 3),
    SanText(MANY, 40, distance="l1"),
    SanText(MANY, 3, distance="squared-l2"),
    TEM(MANY, 3, gamma=1.5),
    TEM(MANY, 3, gamma=1.4, far="ratio"),
    SanTextPlus(MANY, 3),
    SanTextPlus(MANY, 9, p=0.9, sensitive=0.9),
    NearestWords(MANY, 4),
    NearestWords(MANY, 12, K=5),
]


def by_all_pairs(made, uniform=(), outside=True):
    logs = np.array([made.log_probabilities(x) for x in range(len(made.vocabulary))])
    any_word = np.full(len(logs), -math.log(len(logs)))
    logs[list(uniform)] = any_word
    logs = np.vstack([logs, any_word]) if outside else logs
    return max(float((row - logs).max()) for row in logs)


@pytest.mark.parametrize("made", MADE, ids=str)
def test_it_is_what_all_pairs_and_outputs_give(made):
    found, expected = largest_loss(made), by_all_pairs(made)
    assert expected - 1e-11 <= found.upper <= expected + 1e-9
    assert expected <= found.drawn(300) <= expected + 1e-9
    assert largest_loss(made, outside=False).upper == pytest.approx(by_all_pairs(made, outside=False), rel=1e-9)


@pytest.mark.parametrize("made", [MADE[0], MADE[2], MADE[3], MADE[6]], ids=str)
def test_words_that_become_any_word(made):
    worst = worst_pairs(made.plain if isinstance(made, SanTextPlus) else made)["loss"]
    some = (worst.x, worst.y, 3, 130)  # without the worst pair the loss is another one
    assert largest_loss(made, some).upper == pytest.approx(by_all_pairs(made, some), rel=1e-9)


def test_distances_that_are_not_kept_give_the_same(monkeypatch):
    kept = largest_loss(SanText(MANY, 3)).upper
    monkeypatch.setattr(module, "HELD", 10)
    again = Vocabulary(MANY.words, MANY.vectors)
    assert largest_loss(SanText(again, 3)).upper == kept


def test_where_no_epsilon_is_finite():
    assert largest_loss(CusText(MANY, 3)).upper == math.inf
    assert largest_loss(SanTextPlus(MANY, 3, published=True)).upper == math.inf


def test_custext_with_one_group_loses_at_most_its_epsilon():
    made = CusText(MANY, 3, K=300)
    assert by_all_pairs(made) <= largest_loss(made).upper <= 3.0


def test_custext_over_all_words_loses_at_most_its_epsilon():
    for epsilon in (0.1, 1, 10, 100):
        assert largest_loss(NearestWords(MANY, epsilon)).upper <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("dim", [1, 3, 50])
def test_diameter_is_that_of_all_pairs(dim):
    vectors = np.random.default_rng(dim).standard_normal((400, dim))
    expected = pdist(vectors).max()
    found = diameter(Vocabulary(tuple(map(str, range(400))), vectors))
    assert expected <= found <= expected * (1 + 1e-12)
