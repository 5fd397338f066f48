"""Draws that take the same random bits are not independent, however they were made to."""

import random
import re
from typing import Any

import numpy as np
import pytest

import dpassay

torch = pytest.importorskip("torch")
PAIR = ([2.0, 3.0], [3.0, 3.0])  # in all the code below the difference of the two outputs is that of the inputs: ε = ∞


def restored(x: Any, rng: np.random.Generator) -> Any:
    state = rng.bit_generator.state
    first = x[0] + rng.laplace()
    rng.bit_generator.state = state
    return first, x[1] + rng.laplace()


def restored_in_vain(x: Any, rng: np.random.Generator) -> Any:
    """Another number lies between, and is drawn again too."""
    state = rng.bit_generator.state
    numbers = rng.laplace(size=2)
    rng.bit_generator.state = state
    return x[0] + numbers[0], x[1] + rng.laplace()


def one_sequence(x: Any) -> Any:
    sequence = np.random.SeedSequence()
    return [v + np.random.default_rng(sequence).laplace() for v in x]


def copied_state(x: Any, rng: np.random.Generator) -> Any:
    other = np.random.default_rng()
    other.bit_generator.state = rng.bit_generator.state
    return x[0] + rng.laplace(), x[1] + other.laplace()


def shared_state_of_numpy(x: Any) -> Any:
    state = np.random.get_state()
    first = x[0] + np.random.laplace()
    np.random.set_state(state)
    return first, x[1] + np.random.laplace()


def waiting_gaussian(x: Any) -> Any:
    np.random.normal()
    state = np.random.get_state()
    first = x[0] + np.random.normal()
    np.random.set_state(state)
    return first, x[1] + np.random.normal()


def of_torch(x: Any) -> Any:
    with torch.random.fork_rng():
        first = float(torch.randn(()))
    return x[0] + first, x[1] + float(torch.randn(()))


def of_a_distribution(x: Any) -> Any:
    noise = torch.distributions.Laplace(0.0, 1.0)
    state = torch.get_rng_state()
    first = float(noise.sample())
    torch.set_rng_state(state)
    return x[0] + first, x[1] + float(noise.sample())


def now_and_then(x: Any, rng: np.random.Generator) -> Any:
    state = rng.bit_generator.state
    first = x[0] + rng.laplace()
    if first > 3:
        rng.bit_generator.state = state
    return first, x[1] + rng.laplace()


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "code",
    [
        *(restored, restored_in_vain, one_sequence, copied_state, shared_state_of_numpy, waiting_gaussian, of_torch),
        *(of_a_distribution, now_and_then),
    ],
    ids=lambda f: f.__name__,
)
def test_the_same_bits_twice_are_not_two_noises(code: Any) -> None:
    delta = 1e-3 if code in (waiting_gaussian, of_torch) else 0
    result = dpassay.trace(code, pairs=[PAIR], epsilon=9, delta=delta, hostile=False)
    assert result.pair_epsilon.upper == float("inf")
    assert "the noise of 1 other draw" not in result.verdict.reason
    from_where = "(the bits of an earlier draw|a generator whose state it sets)"
    said = rf"test_same_bits.py:\d+ takes random numbers from {from_where},"
    assert result.verdict.refuted or re.search(said, result.verdict.reason)


def flipped(x: int) -> Any:
    state = random.getstate()
    first = x if random.random() < 0.75 else 1 - x
    random.setstate(state)
    return first, random.random() < 0.75


def test_answers_from_the_same_bits() -> None:
    result = dpassay.trace(flipped, pairs=[(0, 1)], epsilon=3, hostile=False)
    assert result.verdict.refuted or result.pair_epsilon.upper == float("inf")


def one_stream_for_python_and_numpy(bits: list[int]) -> Any:
    state = random.getstate()[1]
    np.random.set_state(("MT19937", list(state[:-1]), state[-1]))
    return [
        bits[0] if random.random() < 0.75 else 1 - bits[0],
        bits[1] if np.random.random_sample() < 0.75 else 1 - bits[1],
    ]


def seeds_that_agree(bits: list[int]) -> Any:
    seed = random.getrandbits(30)
    random.seed(seed)
    np.random.seed([seed])
    return [
        bits[0] if random.random() < 0.75 else 1 - bits[0],
        bits[1] if np.random.random_sample() < 0.75 else 1 - bits[1],
    ]


@pytest.mark.parametrize("code", [one_stream_for_python_and_numpy, seeds_that_agree])
def test_python_and_numpy_may_share_their_bits(code: Any) -> None:
    result = dpassay.trace(code, pairs=[([0, 1], [1, 1])], epsilon=2, hostile=False)
    assert result.pair_epsilon.upper == float("inf")


def legacy_noise_beside_another_seed(x: float) -> float:
    """A state that is set again, where no draw took its bits: one between was seeded."""
    state = np.random.get_state()
    np.random.seed(5)
    np.random.random()
    np.random.set_state(state)
    return x + np.random.laplace()


def two_draws_and_one_of_nothing(x: float, rng: np.random.Generator) -> Any:
    """A draw without random bits begins where the next one does."""
    nothing = rng.laplace(size=0)
    return x + rng.laplace(), nothing.sum() + rng.laplace(size=0).sum()


@pytest.mark.long(every=2)
@pytest.mark.parametrize("code", [legacy_noise_beside_another_seed, two_draws_and_one_of_nothing])
def test_other_bits_are_still_other_bits(code: Any) -> None:
    result = dpassay.trace(code, pairs=[(2.0, 3.0)], epsilon=1.001, hostile=False)
    assert result.pair_epsilon.upper <= 1.001
