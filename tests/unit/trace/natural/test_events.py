"""Events that tell two inputs apart although no single limit on one number does."""

import math
import random
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpassay


def whole_counts(x: Any, rng: Any) -> Any:
    """All counts add up to 40, plus the input's."""
    return (np.array(x) + rng.multinomial(40, [0.25] * 4)).tolist()


def third_is_the_sum(x: Any, rng: Any) -> Any:
    first, second = rng.laplace(size=2)
    return [x[0] + first, x[1] + second, x[2] + first + second]


def half_the_difference(x: Any, rng: Any) -> Any:
    first, second = rng.normal(size=2)
    return {"a": x[0] + first, "b": x[1] - 0.5 * first + 2 * second, "c": x[2] + second}


def only_positive_noise_moves(x: Any, rng: Any) -> Any:
    """Between 0 and 1 lie 20% of the outputs of 0, and none of 1."""
    noise = rng.laplace(scale=2)
    return x + noise if noise > 0 else noise


def one_sign_for_both(x: Any, rng: Any) -> Any:
    sign = 1 if rng.random() < 0.5 else -1
    return [x[0] + sign * rng.exponential(), x[1] + sign * rng.exponential()]


@pytest.mark.parametrize(
    ("code", "pair", "epsilon", "said"),
    [
        (whole_counts, ([0, 0, 0, 0], [1, 0, 0, 0]), 1, "output[0] + output[1] + output[2] + output[3] is at"),
        (third_is_the_sum, ([0, 0, 0], [1, 0, 0]), 1.5, "output[0] + output[1] − output[2] is at"),
        (half_the_difference, ([0, 0, 0], [1, 0, 0]), 1.5, '− output["'),
        (only_positive_noise_moves, (0.0, 1.0), 0.55, "output is from "),
        (one_sign_for_both, ([0.0, 0.0], [1.0, 0.0]), 1, " and output[1] "),
    ],
)
def test_a_leak_that_no_single_limit_shows(code: Any, pair: Any, epsilon: float, said: str) -> None:
    result = dpassay.trace(code, pairs=[pair], epsilon=epsilon, hostile=False, time="20s")
    assert result.verdict.refuted
    assert said in result.findings[0].message


def test_a_radius_in_the_output_adds_to_the_loss() -> None:
    """The Gaussian number alone has the loss that is named; with its radius nothing hides a large difference."""

    def code(x: float) -> Any:
        radius = math.sqrt(-2 * math.log(1 - random.random()))
        return radius, x + radius * math.cos(2 * math.pi * random.random())

    result = dpassay.trace(code, pairs=[(0.0, 1.0)], epsilon=1, delta=0.001, hostile=False)
    # Balle and Wang's exact δ(ε) of Gaussian noise of scale 1 at distance 1 passes 0.001 at ε = 3.1387.
    assert "ε ≥ 3.138 for this pair" in result.findings[0].message
    alone = dpassay.trace(lambda x, rng: x + rng.normal(), pairs=[(0.0, 1.0)], epsilon=1, delta=0.001, hostile=False)
    assert "ε = 3.139 for this pair" in alone.findings[0].message


def test_another_type_is_named_as_such() -> None:
    def code(x: float, rng: Any) -> float:
        return x + int(rng.geometric(0.4)) - int(rng.geometric(0.4))

    result = dpassay.trace(code, pairs=[(0, 0.5)], epsilon=0.5, hostile=False)
    assert result.findings[0].message.startswith(
        "the type of output tells the inputs apart; counted: output has the type"
    )


@pytest.mark.parametrize("bits", [32, 64])
def test_random_bits_beside_noise_are_drawn_again(bits: int) -> None:
    def code(x: float) -> Any:
        return {"id": random.getrandbits(bits), "value": x + random.gauss(0, 1)}

    result = dpassay.trace(code, pairs=[(0.0, 1.0)], epsilon=4, delta=0.01, hostile=False, time="30s")
    at = result.pair_epsilon.upper
    # The exact δ(ε) of Gaussian noise of scale 1 at distance 1, by Balle and Wang.
    assert norm.cdf(0.5 - at) - math.exp(at) * norm.cdf(-0.5 - at) == pytest.approx(0.01, rel=1e-4)


@pytest.mark.parametrize("pair", [([1e308, 1e308], [-1e308, 1]), ([0, 1], [math.inf, 1])])
def test_huge_numbers_are_no_warnings_of_numpy(pair: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = dpassay.trace(lambda x, rng: np.add(x, rng.laplace(size=2)), pairs=[pair], epsilon=1)
    assert result.verdict.refuted


def test_the_code_runs_with_the_callers_own_way_of_numpy_errors() -> None:
    """What raises an error in production must not be a number here."""

    def code(x: float, rng: Any) -> float:
        return float(np.exp(np.float64(1000 * x)) * 0 + rng.laplace())

    with np.errstate(over="raise"):
        result = dpassay.trace(code, pairs=[(0.0, 1.0)], epsilon=1, hostile=False)
    assert "it raises FloatingPointError" in result.findings[0].message
