"""Answers that are kept where no audit looks: permanent randomized response is right, but its calls are no runs."""

import array
import math
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.mechanisms.fresh_calls import FreshCalls
from dpassay.audit.mechanisms.targets import as_mechanism
from dpassay.errors import InputError

TRUTH = math.e / (1 + math.e)  # its loss is exactly 1


class Kept:
    answers: ClassVar[dict] = {}


class Model:
    """Its answers are replaced as a whole."""

    def __init__(self):
        self.users = [SimpleNamespace(answer=None), SimpleNamespace(answer=None)]

    def noisy(self, x, rng):
        if self.users[x].answer is None:
            self.users[x].answer = answer(x, rng)
        return self.users[x].answer


def answer(x, rng):
    return x if rng.random() < TRUTH else 1 - x


def of_a_class():
    Kept.answers.clear()

    def code(x, rng):
        if x not in Kept.answers:
            Kept.answers[x] = answer(x, rng)
        return Kept.answers[x]

    return code


def of_two_sets():
    seen, lies = set(), set()

    def code(x, rng):
        if x not in seen:
            seen.add(x)
            if rng.random() > TRUTH:
                lies.add(x)
        return 1 - x if x in lies else x

    return code


def of_bytes():
    kept = array.array("d", [math.nan, math.nan])

    def code(x, rng):
        if math.isnan(kept[x]):
            kept[x] = answer(x, rng)
        return int(kept[x])

    return code


def of_an_object():
    return Model().noisy


def noisy_numbers():
    Kept.answers.clear()

    def code(x, rng):
        if x not in Kept.answers:
            Kept.answers[x] = x + rng.laplace()
        return Kept.answers[x]

    return code


@pytest.mark.parametrize("make", [of_a_class, of_two_sets, of_bytes, of_an_object, noisy_numbers])
def test_right_mechanisms_that_keep_their_answers_are_not_refuted(make):
    """Each is refuted with probability at most α = 10^−6 where its runs are independent."""
    said = {told(make(), seed) for seed in range(6)}
    assert "refuted" not in said
    assert len(said) <= 2


def told(code, seed):
    try:
        return audit(code, [(0, 1)], epsilon=1, alpha=1e-6, runs=2000, seed=seed).word
    except InputError as error:
        return str(error).partition(" in all of ")[2].partition("it keeps its answers, so ")[2]


def noise_made_once():
    made = []

    def code(x, rng):
        if not made:
            made.append(rng.laplace(size=2))
        return (np.array([x, x]) + made[0]).tolist()

    return code


def seed_is_fixed():
    return lambda x, rng: x + np.random.default_rng(7).laplace()


def generator_of_its_own():
    own = np.random.default_rng(3)
    return lambda x, rng: x + own.laplace(scale=0.2)


def no_noise():
    kept = {}
    return lambda x, rng: kept.setdefault(x, x)


@pytest.mark.parametrize("make", [noise_made_once, seed_is_fixed, generator_of_its_own, no_noise])
def test_wrong_mechanisms_with_a_state_are_refuted(make):
    assert audit(make(), [(0, 1)], epsilon=1, alpha=1e-3, runs=2000).refuted


def test_code_that_can_keep_nothing_needs_no_copy():
    fresh = [FreshCalls(as_mechanism(code), [(0, 1)]) for code in (lambda x, rng: answer(x, rng), of_a_class())]
    assert [one.process is None for one in fresh] == [True, False]
    for one in fresh:
        one.close()
    assert all(one.process is None for one in fresh)
