"""The system's own randomness, and inverse distribution functions of libraries, are followed like any other draw."""

import math
import random
import secrets
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

from dpassay.trace.session import trace

SYSTEM = random.SystemRandom()
LN3 = math.log(3)


def sign_of_system(x: int) -> int:
    return x if SYSTEM.random() < 0.75 else 1 - x


def below(x: int) -> int:
    return x if secrets.randbelow(4) < 3 else 1 - x


def two_bits(x: int) -> int:
    return x if secrets.randbits(2) else 1 - x


def a_card(x: int) -> int:
    return x if secrets.choice(["truth", "truth", "truth", "lie"]) == "truth" else 1 - x


def by_scipy(x: float) -> float:
    return x + float(scipy.stats.laplace.ppf(np.random.rand()))


def by_scipy_twice(x: float, rng: Any) -> Any:
    return x * np.array([0.5, 0.5]) + scipy.stats.laplace(scale=1).isf(rng.random(2))


def by_normal_dist(x: float) -> float:
    return x + statistics.NormalDist(0, 4).inv_cdf(random.random())


@pytest.mark.parametrize("subject", [sign_of_system, below, two_bits, a_card])
def test_the_systems_randomness_is_followed(subject: Callable[..., Any]) -> None:
    result = trace(subject, pairs=[(0, 1)], epsilon=1.2, hostile=False)
    assert result.pair_epsilon.upper == pytest.approx(LN3, rel=1e-9)
    assert result.verdict.open


@pytest.mark.parametrize(
    ("subject", "kind", "epsilon"), [(by_scipy, "laplace(1)", 1), (by_scipy_twice, "laplace(1)", 1)]
)
def test_inverse_distribution_functions_are_known(subject: Callable[..., Any], kind: str, epsilon: float) -> None:
    result = trace(subject, pairs=[(0.0, 1.0)], epsilon=1, hostile=False)
    assert result.pair_epsilon.upper == pytest.approx(epsilon, rel=1e-9)
    assert result.pipeline.endswith(kind)


def of_a_quotient(x: float) -> float:
    return x + math.log((1 - random.random()) / (1 - random.random()))


def of_one_number(x: float, rng: Any) -> float:
    """Logistic noise of scale 1: its loss is below 1, and comes near it."""
    u = rng.random()
    return x + math.log(u / (1 - u))


def discrete_of_scipy(x: float) -> float:
    return x + scipy.stats.dlaplace.rvs(1.0)


def best_of_a_dict(x: float) -> str:
    """Gumbel noise on 1 and 0, or on 0 and 0: e/(1 + e) against 1/2."""
    noisy = {name: score + float(np.random.gumbel()) for name, score in (("a", x), ("b", 0.0))}
    return max(noisy, key=lambda name: noisy[name])


def whole_number(x: int, rng: Any) -> int:
    return x + int(rng.geometric(0.6)) - int(rng.geometric(0.6))


def kinds(x: float) -> float:
    """What the code asks of float and int is answered as ever."""
    known = {float: 1, int: 1}
    assert isinstance(x, float)
    assert type(x) is float
    assert np.zeros(2, dtype=float).dtype == np.zeros(2, dtype=int).astype(float).dtype == np.float64
    more = float("0.5") + int("3") + float.fromhex("0x1p0") + int.from_bytes(b"a", "big")
    return x + float(np.random.laplace(size=1)[0]) * known[type(x)] + more


def test_noise_that_becomes_a_float_or_an_int_is_followed() -> None:
    assert trace(kinds, pairs=[(0.0, 1.0)], epsilon=1, hostile=False).pair_epsilon.upper == pytest.approx(1, rel=1e-9)
    whole = trace(whole_number, pairs=[(0, 1)], epsilon=1, hostile=False)  # each step has a ratio of 1 − 0.6
    assert whole.pair_epsilon.upper == pytest.approx(math.log(2.5), rel=1e-9)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("subject", "pair", "epsilon"),
    [
        (of_a_quotient, (0.0, 1.0), 1),
        (of_one_number, (0.0, 1.0), 1),
        (discrete_of_scipy, (0, 1), 1),
        (best_of_a_dict, (0.0, 1.0), math.log(1 + math.e) - math.log(2)),
    ],
)
def test_more_laws_are_known(subject: Callable[..., Any], pair: tuple[float, float], epsilon: float) -> None:
    result = trace(subject, pairs=[pair], epsilon=1, hostile=False)
    assert result.pair_epsilon.upper == pytest.approx(epsilon, rel=1e-9)


def test_the_normal_distribution_of_the_standard_library_is_known() -> None:
    result = trace(by_normal_dist, pairs=[(0.0, 1.0)], epsilon=1, delta=0.01, hostile=False)
    truth = scipy.stats.norm.cdf  # δ(ε) = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ) for a shift of 1
    epsilon = result.pair_epsilon.upper
    assert truth(0.125 - 4 * epsilon) - math.exp(epsilon) * truth(-0.125 - 4 * epsilon) == pytest.approx(0.01, rel=1e-6)


def by_bits(x: float) -> float:
    """Laplace noise from 53 bits; one of the branches computes less than the other."""
    u = (secrets.randbits(53) + 0.5) / 2**53
    return x + (math.log(2 * u) if u < 0.5 else -math.log(2 - 2 * u))


def test_branches_of_different_lengths_are_compared() -> None:
    result = trace(by_bits, pairs=[(3.0, 4.0)], epsilon=1, hostile=False)
    assert result.verdict.open
    assert result.pair_epsilon.lower <= 1 <= result.pair_epsilon.upper * (1 + 1e-9)


def seed_and_noise(x: float) -> list[float]:
    seed = secrets.randbits(32)
    return [float(seed), x + float(np.random.default_rng(seed).laplace())]


def test_noise_that_can_be_computed_from_the_output_is_not_bounded() -> None:
    result = trace(seed_and_noise, pairs=[(0.0, 1.0)], epsilon=1, hostile=False)
    assert result.pair_epsilon.upper == math.inf
