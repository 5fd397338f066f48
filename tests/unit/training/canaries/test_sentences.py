"""Sentences as canaries: made, added to a corpus, and ranked by a model's loss."""

import math

import numpy as np
import pytest
import torch

from dpassay.errors import InputError
from dpassay.training.canaries.sentences import exposure, secrets, sentence_scores, with_canaries


def test_secrets_are_different_and_the_same_every_time():
    words = [f"w{i}" for i in range(30)]
    found = secrets(words, 200, seed=3)
    assert len(set(found)) == 200
    assert found == secrets(words, 200, seed=3) != secrets(words, 200, seed=4)
    assert {word for text in found for word in text.split()} <= set(words)


def test_too_few_words_are_refused():
    with pytest.raises(InputError, match="too few for 100"):
        secrets(["a", "b"], 100)


def test_only_canaries_that_are_in_are_added():
    found = with_canaries([], ["a b", "c d", "e f"], np.array([True, False, True]), copies=2)
    assert [(u.user, u.text) for u in found] == [("canary 0", "a b")] * 2 + [("canary 2", "e f")] * 2


def test_scores_are_sums_of_log_probabilities():
    torch.manual_seed(0)
    table = torch.randn(7, 7)
    network = torch.nn.Embedding(7, 7, _weight=table)  # the next word from this one: a network that sees its target
    numbers = np.array([[4, 5, 1, 0], [6, 1, 0, 0]])
    logs = torch.log_softmax(table, dim=1)
    expected = [sum(float(logs[n, n]) for n in row if n) for row in numbers]
    assert sentence_scores(network, numbers) == pytest.approx(expected, rel=1e-5)


def test_exposure_is_the_logarithm_of_the_rank():
    scores = np.array([10.0, 2.5, *np.arange(7.0)])
    included = np.array([True, True, *[False] * 7])
    # Among seven others: first of eight, and fifth (3, 4, 5 and 6 are above 2.5).
    assert exposure(scores, included) == pytest.approx([3.0, 3 - math.log2(5)])


def test_exposure_needs_somebody_to_compare_with():
    with pytest.raises(InputError, match="there are none"):
        exposure(np.ones(3), np.ones(3, dtype=bool))
