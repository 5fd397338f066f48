"""Whether mechanisms that replace words draw from their laws; the expected probabilities are the papers' formulas."""

import math

import numpy as np

from dpassay.words.judge import Treatment
from dpassay.words.mechanisms import TEM, CusText, SanText
from dpassay.words.rules import Rules
from dpassay.words.vocabulary import Vocabulary
from statistics_helper import counts_p_value, generator, require

LINE = Vocabulary(("a", "b", "c", "d", "e"), np.array([[0.0], [1.0], [3.0], [7.0], [8.0]]))
DRAWS = 20_000


def shares(*weights: float) -> np.ndarray:
    return np.array(weights) / sum(weights)


def e(x: float) -> float:
    return math.exp(x)


def p_value(mechanism, word: str, expected: np.ndarray, rng: np.random.Generator) -> float:
    drawn = mechanism.sample(word, DRAWS, rng)
    possible = LINE.words[: len(expected)]
    assert set(drawn) <= set(possible)
    return counts_p_value(np.array([(drawn == one).sum() for one in possible]), expected)


def test_santext():
    name = "santext draws"
    expected = shares(e(-0.3), 1, e(-0.6), e(-1.8), e(-2.1))
    require(name, p_value(SanText(LINE, 0.6), "b", expected, generator(name)))


def test_tem():
    name = "tem draws"
    expected = shares(1, e(-0.3), e(-0.9), e(-1.5), e(-1.5))
    require(name, p_value(TEM(LINE, 0.6, gamma=5), "a", expected, generator(name)))


def test_tem_as_mldp_text_has_it():
    name = "tem draws of a package"
    far = e(-1.5) * 5 / 3  # |V|/|L| times e^(-epsilon*gamma/2), for both far words together
    expected = shares(1, e(-0.3), e(-0.9), far / 2, far / 2)
    require(name, p_value(TEM(LINE, 0.6, gamma=5, far="ratio"), "a", expected, generator(name)))


def test_custext():
    name = "custext draws"
    expected = shares(e(-1 / 2), 1, e(-1))
    require(name, p_value(CusText(LINE, 2, K=3), "b", expected, generator(name)))


def test_unknown_words():
    name = "words replaced uniformly"
    mechanism = Treatment(SanText(LINE, 9), Rules("replaced"))
    require(name, p_value(mechanism, "z", shares(1, 1, 1, 1, 1), generator(name)))
