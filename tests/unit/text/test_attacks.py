"""Attacks on rewritten text, against closed forms: randomized response attains the bound."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.text.attacks import (
    ExactPosterior,
    NaiveBayesAttacker,
    highest_success,
    of_equal_length,
    right_guesses,
    strongest,
)
from dpassay.text.rewriters.base import TextGuarantee
from sample_rewriters import Copy, InTurn, Likely

NAMES = ["rome", "oslo", "lima", "bonn"]


def test_the_exact_posterior_of_randomized_response_is_its_closed_form() -> None:
    epsilon, words = 1.3, "a b c"
    rewriter: Any = Likely(epsilon, longest="2", words=words)
    candidates = [" ".join(pair) for pair in product(words.split(), repeat=2)]
    kept, other = math.exp(epsilon) / (math.exp(epsilon) + 2), 1 / (math.exp(epsilon) + 2)
    found = np.exp(ExactPosterior(rewriter, candidates).log_posterior(["a b", "c c"]))
    for row, output in zip(found, ("a b", "c c"), strict=True):
        wanted = [
            math.prod(kept if x == y else other for x, y in zip(c.split(), output.split(), strict=True))
            for c in candidates
        ]
        assert row == pytest.approx(wanted)  # the prior is uniform, and the rows of the matrix add up to 1 both ways
    # Guessing the output itself is right with the probability that both words stay: within the bound for 2 ε.
    bound = highest_success(rewriter.guarantee, candidates)
    assert bound == pytest.approx(math.exp(2 * epsilon) / (math.exp(2 * epsilon) + 8))
    assert kept**2 < bound


@pytest.mark.parametrize("learned", [False, True])
def test_the_attacker_is_as_often_right_as_randomized_response_allows(learned: bool) -> None:
    rewriter, rng = InTurn(NAMES), np.random.default_rng(1)
    attack = NaiveBayesAttacker.learn(rewriter, NAMES, 5, rng) if learned else ExactPosterior(rewriter, tuple(NAMES))
    runs = 5000
    right = right_guesses(attack, rewriter, runs, rng)
    share = highest_success(rewriter.guarantee, NAMES)
    assert share == pytest.approx(2 / 5)  # e^ε / (e^ε + M − 1) with e^ε = 2
    assert abs(right - share * runs) <= len(NAMES) * 2  # each candidate's last round may be incomplete


def test_the_learned_attack_finds_what_is_copied() -> None:
    texts = [f"fly to {name} on monday" for name in NAMES]
    attack = strongest(Copy(), texts, np.random.default_rng(0))
    assert isinstance(attack, NaiveBayesAttacker)
    assert right_guesses(attack, Copy(), 200, np.random.default_rng(0)) == 200
    assert attack.log_posterior(texts).argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_the_learned_posterior_is_that_of_the_counts() -> None:
    # Five rewritings of each: the candidate itself twice, the others once each, and five ends. The average text has
    # each word 5 times of 40 and the end 20 times of 40; its smoothed shares are (5+1)/45 and (20+1)/45.
    attack = NaiveBayesAttacker.learn(InTurn(NAMES), NAMES, 5)
    own, other = 2 + 6 / 45, 1 + 6 / 45
    found = np.exp(attack.log_posterior(["rome"]))[0]
    assert found == pytest.approx(np.array([own, other, other, other]) / (own + 3 * other))
    assert np.exp(attack.log_posterior(["an unknown word"]))[0] == pytest.approx([0.25] * 4)


def test_an_output_that_no_candidate_can_give_says_nothing() -> None:
    rewriter = Likely(1.0, words="a b c")
    assert np.exp(ExactPosterior(rewriter, ("a", "b")).log_posterior(["a a"]))[0].tolist() == [0.5, 0.5]


def test_the_bound_with_delta_is_that_of_always_guessing() -> None:
    epsilon, delta, number = 1.0, 0.01, 4
    found = highest_success(TextGuarantee(epsilon, delta), NAMES)
    assert found == pytest.approx((math.e + (number - 1) * delta) / (math.e + number - 1))
    assert highest_success(TextGuarantee(0.0), NAMES) == pytest.approx(1 / number)
    assert highest_success(TextGuarantee(1e6), NAMES) == pytest.approx(1.0)
    assert highest_success(TextGuarantee(math.inf), NAMES) is None


@pytest.mark.parametrize(
    ("kind", "candidates", "bounded"),
    [
        ("words(2)", ["a b", "c d", "a d"], True),
        ("words(1)", ["a b", "c d", "a d"], False),  # two differ in two words
        ("words(1)", ["a b", "c b", "d b"], True),
        ("word", ["a b", "c b", "d b"], True),
        ("words(5)", ["a b", "c d e"], False),  # the number of words shows
        ("words(2)", ["a, b", "c d"], False),  # so it may, for a rewriter that splits off punctuation
        ("tokens(9)", ["a b", "c d"], False),  # tokens are not words
        ("replace-record", ["a b", "c d"], False),
        ("any", ["a", "c d e"], True),
    ],
)
def test_a_bound_is_given_among_neighbours_alone(kind: str, candidates: list[str], bounded: bool) -> None:
    found = highest_success(TextGuarantee(1.0, neighbours=Neighbours(kind)), candidates)
    assert (found is not None) == bounded
    if bounded:
        assert found == pytest.approx(math.e / (math.e + len(candidates) - 1))


def test_candidates_are_different_and_of_one_length() -> None:
    texts = [f"{a} {b}" for a in "abcd" for b in "xyz"] + ["a", "A X", "one two three"]
    found = of_equal_length(texts, 50)
    assert sorted(found) == sorted(texts[:12])
    assert len(of_equal_length(texts, 5)) == 5
    assert set(of_equal_length(texts[:12][::-1], 5)) == set(of_equal_length(texts[:12], 5))
    split = ["what's new", "so? ok"]  # two words for some rewriters, three or four for others
    assert sorted(of_equal_length(split + texts[:12], 50)) == sorted(texts[:12])
    assert set(split) <= set(of_equal_length(split + texts[:9], 11))  # there are not ten without
    few = ["i j k l m n", "f g h", "d e", "b c"]
    assert of_equal_length(few, 3) == ["f g h", "d e", "b c"]
    assert of_equal_length(["a", "A "], 50) == []
    assert of_equal_length([], 50) == []


@pytest.mark.parametrize("candidates", [["a"], ["a", "a"], []])
def test_candidates_that_are_not_different_are_refused(candidates: list[str]) -> None:
    with pytest.raises(InputError, match="2 candidates or more, all different"):
        NaiveBayesAttacker.learn(Copy(), candidates)
    with pytest.raises(InputError, match="2 candidates or more, all different"):
        ExactPosterior(InTurn(NAMES), tuple(candidates))
    with pytest.raises(InputError, match="1 rewriting of each candidate"):
        NaiveBayesAttacker.learn(Copy(), NAMES, 0)
