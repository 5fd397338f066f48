"""Answers that are kept where no audit looks: permanent randomized response is right, but its calls are no runs."""

import array
import functools
import hashlib
import math
import time
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


def beside_a_nonce():
    """No two outputs are the same."""
    code = of_a_class()
    return lambda x, rng: {"answer": code(x, rng), "nonce": rng.random()}


def reported_with_noise():
    """Permanent, then instantaneous randomized response, whose loss is smaller than that of the permanent one."""
    code = of_bytes()
    return lambda x, rng: code(x, rng) if rng.random() < 0.9 else int(rng.integers(2))


def of_the_environment():
    name = f"DPASSAY_TEST_{time.monotonic_ns()}"

    def code(x, rng):
        import os

        return int(os.environ.setdefault(f"{name}_{x}", str(answer(x, rng)))), rng.random()

    return code


def noise_by_a_counter():
    """Noise is a keyed hash of the input and of how often it was asked: fresh in each call, unless that is undone."""
    key, asked = np.random.default_rng().bytes(16), {}

    def code(x):
        asked[x] = asked.get(x, 0) + 1
        digest = hashlib.blake2b(f"{x} {asked[x]}".encode(), key=key).digest()
        return x if int.from_bytes(digest[:8], "big") < TRUTH * 2**64 else 1 - x

    return code


def generators_by_input():
    seed = int(np.random.default_rng().integers(2**60))

    @functools.lru_cache(None)
    def own(x):
        return np.random.default_rng([seed, x])

    return lambda x: answer(x, own(x))


RIGHT = [
    *(of_a_class, of_two_sets, of_bytes, of_an_object, noisy_numbers),
    *(beside_a_nonce, reported_with_noise, of_the_environment, noise_by_a_counter, generators_by_input),
]


@pytest.mark.parametrize("make", RIGHT)
def test_right_mechanisms_that_keep_their_answers_are_not_refuted(make):
    """Each is refuted with probability at most α = 10^−6 where its runs are independent."""
    said = {told(make(), seed) for seed in range(6)}
    assert "refuted" not in said
    assert len(said) <= 2


def told(code, seed):
    try:
        return audit(code, [(0, 1)], epsilon=1, alpha=1e-6, runs=2000, seed=seed).word
    except InputError as error:
        return str(error).partition(" distinguishes the inputs ")[2]


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


def counter_with_little_noise():
    key, asked = b"a key", {}

    def code(x):
        asked[x] = asked.get(x, 0) + 1
        digest = hashlib.blake2b(f"{x} {asked[x]}".encode(), key=key).digest()
        return x if digest[0] else 1 - x  # ε = ln 255

    return code


def kept_with_little_noise():
    Kept.answers.clear()

    def code(x, rng):
        kept = Kept.answers.setdefault(x, x + rng.laplace(scale=0.05))
        return kept + rng.laplace(scale=0.05)

    return code


WRONG = [
    *(noise_made_once, seed_is_fixed, generator_of_its_own, no_noise),
    *(counter_with_little_noise, kept_with_little_noise),
]


@pytest.mark.parametrize("make", WRONG)
def test_wrong_mechanisms_with_a_state_are_refuted(make):
    assert audit(make(), [(0, 1)], epsilon=1, alpha=1e-3, runs=2000).refuted


def test_code_that_can_keep_nothing_needs_no_copy():
    codes = (lambda x, rng: answer(x, rng), of_a_class(), of_the_environment())
    fresh = [FreshCalls(as_mechanism(code), [(0, 1)]) for code in codes]
    assert [one.process is None for one in fresh] == [True, False, False]
    for one in fresh:
        one.close()
    assert all(one.process is None for one in fresh)
