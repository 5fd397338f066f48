"""Exceptions that end a run are outputs: right code may raise them because of its noise."""

import math
import subprocess

import numpy as np
import pytest

import dpassay
from dpassay.errors import MechanismError


def checked(x: float, rng: np.random.Generator) -> float:
    """Loses 1 between 0 and 1: the exception depends on the noisy number alone."""
    noisy = x + rng.laplace(0, 1)
    if noisy > 2.5:
        raise ValueError("too large to be released")
    return noisy


def told_in_the_message(x: float, rng: np.random.Generator) -> float:
    """Loses 1 between 0 and 1: the message shows the noisy number."""
    noisy = x + rng.laplace(0, 1)
    assert noisy > -1, f"{noisy:.3f} is negative"
    return noisy


def sometimes_fails(x: float, rng: np.random.Generator) -> float:
    """Loses 1 between 0 and 1: the coin is not the input's."""
    if rng.random() < 0.05:
        raise ConnectionError("try again")
    return x + rng.laplace(0, 1)


def too_little_noise(x: float, rng: np.random.Generator) -> float:
    """Loses 2 between 0 and 1."""
    noisy = x + rng.laplace(0, 0.5)
    if noisy > 2:
        raise ValueError(noisy)
    return noisy


def checks_the_noise(x: float, rng: np.random.Generator) -> float:
    """Loses ∞ between 0 and 1: only 1 gives numbers between 1 and 2."""
    noise = rng.laplace(0, 1)
    if noise > 1:
        raise ValueError("too much noise")
    return x + noise


@pytest.mark.long(every=2)
@pytest.mark.parametrize("program", [checked, told_in_the_message, sometimes_fails])
def test_exceptions_of_right_code_are_post_processing(program):
    result = dpassay.trace(program, pairs=[(0.0, 1.0)], epsilon=1, hostile=False, time="60s")
    assert not result.verdict.refuted
    assert math.isclose(result.pair_epsilon.upper, 1.0, rel_tol=1e-9), result.verdict.reason


@pytest.mark.parametrize("program", [too_little_noise, checks_the_noise])
def test_exceptions_of_wrong_code_do_not_save_it(program):
    result = dpassay.trace(program, pairs=[(0.0, 1.0)], epsilon=1, hostile=False)
    assert result.verdict.refuted, result.verdict.reason
    assert result.pair_epsilon.upper == math.inf


def test_code_that_always_raises_gives_no_bound():
    def broken(x, rng):
        raise KeyError(f"{rng.integers(10)}")

    with pytest.raises(MechanismError, match="KeyError"):
        dpassay.trace(broken, pairs=[(0.0, 1.0)], epsilon=1, hostile=False)


def noise_of_another_process(x: float) -> float:
    """What `shuf` draws is not seen, and one draw in a thousand is no noise to speak of."""
    return x + int(subprocess.run(["shuf", "-i", "0-999", "-n", "1"], capture_output=True, check=True).stdout) / 1000


def test_another_process_is_named_as_not_followed():
    reason = dpassay.trace(noise_of_another_process, pairs=[(0.0, 1.0)], epsilon=9, hostile=False).verdict.reason
    line = noise_of_another_process.__code__.co_firstlineno + 2
    assert f"test_exceptions.py:{line} starts another process" in reason


def name_of_the_system(x: float, rng: np.random.Generator) -> tuple[str, float]:
    """Loses 1 between 0 and 1: the other process draws nothing."""
    return subprocess.run(["uname"], capture_output=True, text=True, check=True).stdout, x + rng.laplace(0, 1)


def test_another_process_that_draws_nothing_does_no_harm():
    result = dpassay.trace(name_of_the_system, pairs=[(0.0, 1.0)], epsilon=1, hostile=False, time="60s")
    assert math.isclose(result.pair_epsilon.upper, 1.0, rel_tol=1e-9), result.verdict.reason
