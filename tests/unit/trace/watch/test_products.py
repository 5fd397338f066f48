"""Exact sums and products with public numbers are followed: their losses are those of the sums that they are."""

import math
from typing import Any

import numpy as np
import pytest

from dpassay.trace.session import trace
from dpassay.trace.watch.tracer import Tracer

X, Y = [1.0, 2.0], [2.0, 2.0]  # 1 apart, in the first entry


def noisy(x: Any, rng: Any, scale: float = 1.0) -> Any:
    return np.asarray(x) + rng.laplace(scale=scale, size=2)


FOLLOWED: dict[str, tuple[Any, float]] = {
    "fsum": (lambda x, rng: math.fsum([x[0], rng.laplace(scale=2)]), 0.5),
    "fsum of a generator": (lambda x, rng: math.fsum(one for one in (x[0], rng.laplace(), 3.0)), 1),
    "dot": (lambda x, rng: np.dot(np.append(x, rng.laplace()), np.ones(3)), 1),
    "dot of lists": (lambda x, rng: np.dot([x[0], rng.laplace()], [2.0, 1.0]), 2),
    "method dot": (lambda x, rng: noisy(x, rng).dot(np.array([1.0, 0.0])), 1),
    "inner": (lambda x, rng: float(np.inner([3.0, 0.0], noisy(x, rng))), 1),
    "matmul": (lambda x, rng: noisy(x, rng, 4.0) @ np.array([0.5, 0.0]), 0.25),
    "vector times matrix": (lambda x, rng: np.array([[1.0, 0.0], [0.0, 7.0]]) @ noisy(x, rng), 1),
    "np.matmul": (lambda x, rng: np.matmul(noisy(x, rng), [2.0, 0.0]), 1),
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("code", FOLLOWED)
def test_a_linear_function_has_the_loss_of_its_noise(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.trace.runner.MOST_TRIALS", 150)
    subject, truth = FOLLOWED[code]
    result = trace(subject, pairs=[(X, Y)], epsilon=truth, hostile=False, time="60s")  # until these are made
    assert result.pair_epsilon.upper == pytest.approx(truth, rel=1e-9)
    assert result.traced_epsilon.upper == pytest.approx(truth, rel=1e-9)


def test_a_product_with_what_gets_no_noise_is_a_leak() -> None:
    """The second sum leaves the noise out."""
    leak = lambda x, rng: np.array([[1.0, 1.0], [1.0, 0.0]]) @ np.array([x[0], rng.laplace()])  # noqa: E731
    result = trace(leak, pairs=[(X, Y)], epsilon=1, hostile=False)
    assert result.verdict.refuted
    assert result.pair_epsilon.upper == math.inf


@pytest.mark.parametrize(
    "code",
    [
        lambda x, rng: float((y := noisy(x, rng)) @ y),  # both sides are noisy
        lambda x, rng: np.dot(noisy(x, rng), np.eye(2)).tolist(),
        lambda x, rng: (noisy(x, rng) @ noisy(x, rng)[:, None]).item(),
        lambda x, rng: np.inner(np.eye(2), noisy(x, rng)).tolist(),
        lambda x, rng: np.dot(3.0, noisy(x, rng)).tolist(),
        lambda x, rng: math.fsum([]) + math.fsum(noisy(x, rng)),
        lambda x, rng: [1, 2] @ noisy(x, rng),
    ],
)
def test_the_watched_run_gives_what_the_code_gives(code: Any) -> None:
    tracer, key = Tracer(code), (0, 0, 0)
    (natural,) = tracer.natural.readings(X, [key])
    assert natural.same(tracer.run(X, key=key).reading)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (lambda x, rng: x[0] + rng.laplace() + rng.laplace(), "a number with other noise | laplace(1)"),
        (lambda x, rng: np.mean(rng.laplace(scale=10, size=10)) + x[0], "a number with other noise | laplace(1)"),
        (lambda x, rng: x[0] + rng.laplace(), "l1 norm at most 2 on 2 inputs | laplace(1)"),
    ],
)
def test_no_norm_is_said_of_what_other_noise_is_in(code: Any, said: str) -> None:
    assert f"As coded it is {said}. " in trace(code, pairs=[(X, Y)], epsilon=1, hostile=False).verdict.reason
