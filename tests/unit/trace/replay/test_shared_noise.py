"""Sums that share drawn numbers: bounds from the covariance, and code that gets none or no smaller one."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.special import log_ndtr

import dpassay
from dpassay.core.guarantee import make_guarantee
from dpassay.trace.findings.suggesting import suggested
from dpassay.trace.natural.budget import TimeBudget
from dpassay.trace.replay.shared_noise import SharedShift
from dpassay.trace.replay.trials import agreeing, agreeing_paths
from dpassay.trace.watch.tracer import Tracer

TRIALS, DELTA = 10, 1e-3
X, Y = [0.0, 2.0, 5.0], [1.0, 2.5, 4.0]
ROOT = np.array([[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [0.3, -0.7, 1.2]])
COVARIANCE = ROOT @ ROOT.T
SUMS = np.tril(np.ones((3, 3)))
MIXED = np.array([[1.0, 0.0, 0.0, 0.0], [0.5, 1.0, 0.0, 1.0], [0.0, 2.0, -1.0, 0.0]])


def gaussian(distance: float, delta: float = DELTA) -> float:
    """δ(ε) = Φ(d/2 − ε/d) − e^ε Φ(−d/2 − ε/d) (Balle and Wang, 2018)."""

    def excess(epsilon: float) -> float:
        above, below = log_ndtr(distance / 2 - epsilon / distance), log_ndtr(-distance / 2 - epsilon / distance)
        return math.exp(above) - math.exp(epsilon + below) - delta

    return float(brentq(excess, 0.0, distance * (distance + 20), xtol=1e-13)) if excess(0.0) > 0 else 0.0


def distance(noise: Any, gap: Any = None) -> float:
    """√(gᵀM⁻¹g) for the gap g and the covariance M of all sums, here with noise · noiseᵀ."""
    gap = np.subtract(X, Y)[: len(noise)] if gap is None else np.asarray(gap)
    return float(np.sqrt(gap @ np.linalg.solve(noise @ noise.T, gap)))


def bound(
    code: Callable[..., Any], pair: Any = (X, Y), epsilon: float = 40, delta: float = DELTA
) -> tuple[float, str, bool]:
    """ε as watched, what differs in a few trials, and whether sums were shifted together."""
    tracer = Tracer(code)
    tracer.run(pair[0])
    watched = suggested(tracer, *pair, make_guarantee(epsilon, delta))
    limits: dict[str, Any] = {"alpha": 0.001, "least": TRIALS, "most": TRIALS, "budget": TimeBudget(60.0)}
    if watched.paths is not None:
        trials = agreeing_paths(tracer, pair, watched.paths, **limits)
    else:
        trials = agreeing(tracer, pair, watched.sums, watched.matching, watched.uses, **limits)
    return float(watched.upper.b), trials.different, isinstance(watched.paths, SharedShift)


def one_by_one(x: Any, rng: Any) -> list[float]:
    z = rng.normal(0, [1.0, 2.0, 3.0, 0.5])
    return [x[0] + z[0], x[1] + 0.5 * z[0] + z[1] + z[3], x[2] + 2 * z[1] - z[2]]


def running(x: Any, rng: Any) -> list[float]:
    total, found = 0.0, []
    for value in x:
        total += value + rng.normal(0, 2)
        found.append(total)
    return found


def prefix_sums_with_one_number_each(x: Any, rng: Any) -> list[float]:
    """The noise of each prefix is that of the one before and a number of its own."""
    noise, found = 0.0, []
    for k in range(len(x)):
        noise = noise + rng.normal(0, 2)
        found.append(sum(x[: k + 1]) + noise)
    return found


def in_rows(x: Any, rng: Any) -> Any:
    """Two rows with the same covariance."""
    return np.array([x[:2], x[1:]]) + rng.multivariate_normal([0, 0], COVARIANCE[:2, :2], size=2)


def with_what_follows(x: Any, rng: Any) -> dict[str, Any]:
    """Whatever is computed from the sums loses nothing."""
    sums = np.array(x) + ROOT @ rng.standard_normal(3)
    clipped = [min(max(float(one), -1.0), 3.0) for one in sums]
    return {"sums": sums, "first": sums[0] * 3, "apart": sums[1] - sums[2], "clipped": clipped, "text": f"{sums[1]}"}


def of_the_generator_of_the_process(x: Any) -> Any:
    return np.random.multivariate_normal(x, COVARIANCE)


FOLLOWED: dict[str, tuple[Callable[..., Any], float]] = {
    "one by one": (one_by_one, distance(MIXED * [1.0, 2.0, 3.0, 0.5])),
    "root": (lambda x, rng: np.array(x) + ROOT @ rng.standard_normal(3), distance(ROOT)),
    "root of scale": (lambda x, rng: (np.array(x) + np.dot(ROOT, rng.normal(0, 3, 3))).tolist(), distance(3 * ROOT)),
    "row": (lambda x, rng: np.array(x) + rng.standard_normal(3) @ ROOT.T, distance(ROOT)),
    "column": (lambda x, rng: np.array(x)[:, None] + ROOT @ rng.standard_normal((3, 1)), distance(ROOT)),
    "more numbers than sums": (lambda x, rng: np.array(x) + MIXED @ rng.standard_normal(4), distance(MIXED)),
    "covariance": (lambda x, rng: np.array(x) + rng.multivariate_normal([0, 0, 0], COVARIANCE), distance(ROOT)),
    "mean and covariance": (lambda x, rng: rng.multivariate_normal(x, COVARIANCE), distance(ROOT)),
    "cholesky": (lambda x, rng: rng.multivariate_normal(x, COVARIANCE, method="cholesky"), distance(ROOT)),
    "of the process": (of_the_generator_of_the_process, distance(ROOT)),
    "rows": (in_rows, math.hypot(distance(ROOT[:2, :2]), distance(ROOT[:2, :2], np.subtract(X, Y)[1:]))),
    "cumsum": (lambda x, rng: np.cumsum(np.array(x) + rng.normal(0, 2, 3)), distance(2 * np.eye(3))),
    "cumsum of noise": (lambda x, rng: np.array(x) + np.cumsum(rng.normal(0, 2, 3)), distance(2 * SUMS)),
    "method": (lambda x, rng: np.array(x) + rng.normal(0, 2, 3).cumsum(), distance(2 * SUMS)),
    "add.accumulate": (lambda x, rng: np.array(x) + np.add.accumulate(rng.normal(0, 2, 3)), distance(2 * SUMS)),
    "cumsum of a list": (lambda x, rng: x + np.cumsum([rng.normal(0, 2) for _ in x]), distance(2 * SUMS)),
    "accumulate": (
        lambda x, rng: list(itertools.accumulate(one + rng.normal(0, 2) for one in x)),
        distance(2 * np.eye(3)),
    ),
    "running": (running, distance(2 * np.eye(3))),
    "prefix sums": (prefix_sums_with_one_number_each, distance(2 * np.eye(3))),
    "what follows": (with_what_follows, distance(ROOT)),
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", FOLLOWED)
def test_the_loss_is_that_of_the_covariance(name: str) -> None:
    code, far = FOLLOWED[name]
    upper, different, together = bound(code)
    assert not different
    assert together
    assert upper == pytest.approx(gaussian(far), rel=1e-7)


def of_torch(x: Any) -> Any:
    return torch.tensor(x) + torch.tensor(ROOT, dtype=torch.float32) @ torch.randn(3)


def of_a_torch_distribution(x: Any) -> Any:
    covariance = torch.tensor(COVARIANCE)
    return torch.distributions.MultivariateNormal(torch.tensor(x, dtype=torch.float64), covariance).sample()


@pytest.mark.parametrize(
    ("code", "far", "rounding"),
    [
        (of_torch, distance(ROOT), 1e-4),
        (of_a_torch_distribution, distance(ROOT), 1e-7),
        (lambda x: (torch.tensor(x) + torch.normal(0.0, 2.0, (3,))).cumsum(0), distance(2 * np.eye(3)), 1e-4),
        (lambda x: torch.tensor(x) + torch.cumsum(2 * torch.randn(3), dim=0), distance(2 * SUMS), 1e-4),
    ],
)
def test_torch_is_followed_too(code: Callable[..., Any], far: float, rounding: float) -> None:
    """In single precision the bound allows for more rounding, always above."""
    upper, different, together = bound(code)
    assert not different
    assert together
    assert gaussian(far) * (1 - 1e-9) <= upper <= gaussian(far) * (1 + rounding)


def with_laplace_noise(x: Any, rng: Any) -> Any:
    return x[0] + np.cumsum(rng.laplace(0, 2, 3)) + np.array([0, 1, 2]) * x[0]


def test_laplace_numbers_are_shifted_by_the_differences_of_the_sums() -> None:
    """The sums differ by 1, 2 and 3, so each number is shifted by 1 at a scale of 2."""
    upper, different, together = bound(with_laplace_noise, ([0.0], [1.0]), 2, 0)
    assert not different
    assert together
    assert upper == pytest.approx(1.5, rel=1e-7)


# ── Code that gets no bound, or no smaller one ──────────────────────────────────────────────────────


def factor_of_the_input(x: Any, rng: Any) -> list[float]:
    z = rng.normal(size=3)
    return [x[0] + z[0], x[1] + (1 + x[0] / 10) * z[0] + z[1]]


def factor_that_differs_by_little(x: Any, rng: Any) -> list[float]:
    z = rng.normal(size=3)
    return [x[0] + z[0], x[1] + (1 + x[0] * 1e-12) * z[0] + z[1]]


def covariance_of_the_input(x: Any, rng: Any) -> Any:
    return rng.multivariate_normal(x, COVARIANCE + np.eye(3) * x[0])


def covariance_that_differs_by_little(x: Any, rng: Any) -> Any:
    return rng.multivariate_normal(x, COVARIANCE * (1 + 1e-12 * x[0]))


def one_number_for_all(x: Any, rng: Any) -> Any:
    return np.array(x) + rng.normal()


def one_number_twice(x: Any, rng: Any) -> list[float]:
    z = rng.normal()
    return [x[0] + z, x[1] + z]


def little_beside_the_noise(x: Any, rng: Any) -> list[float]:
    z = rng.normal(size=2)
    return [z[0] + z[1], z[0] + z[1] + 1e-12 * x[0]]


def noise_beside_the_sum(x: Any, rng: Any) -> list[float]:
    z = rng.normal(size=2)
    return [x[0] + 2 * z[0] + z[1], z[0], z[1]]


def noise_given_away_by_a_function(x: Any, rng: Any) -> list[float]:
    z = rng.normal(size=2)
    return [x[0] + z[0] + z[1], x[1] + z[1], math.exp(z[0])]


def a_scale_of_zero(x: Any, rng: Any) -> Any:
    return np.array(x) + ROOT @ rng.normal(0, [1.0, 0.0, 1.0])


def two_numbers_for_three_sums(x: Any, rng: Any) -> Any:
    return np.array(x) + ROOT[:, :2] @ rng.standard_normal(2)


def covariance_of_rank_two(x: Any, rng: Any) -> Any:
    return rng.multivariate_normal(x, ROOT[:, :2] @ ROOT[:, :2].T)


def no_covariance(x: Any, rng: Any) -> Any:
    """It has a negative eigenvalue, so numpy draws with another covariance."""
    return rng.multivariate_normal(x, [[1, 0, 0], [0, 1, 3], [0, 3, 1]], check_valid="ignore")


def one_sided_covariance(x: Any, rng: Any) -> Any:
    return rng.multivariate_normal(x, ROOT, check_valid="ignore")


def rarely_without_noise(x: Any, rng: Any) -> Any:
    z = ROOT @ rng.standard_normal(3)
    return np.array(x) + (z if abs(z[0]) < 60 else 0 * z)


def rarely_more(x: Any, rng: Any) -> list[float]:
    """The second center rarely depends on the noise of the first."""
    z = rng.normal(size=2)
    return [x[0] + z[0], x[1] + (50 * x[0] if z[0] > 20 else 0) + z[0] + z[1]]


def by_a_random_matrix(x: Any, rng: Any) -> Any:
    return rng.normal(size=(3, 3)) @ np.array(x) + rng.normal(size=3)


def of_two_calls(x: Any, rng: Any) -> Any:
    """The noise of all calls is the same."""
    noise = np.random.default_rng(7).normal(size=3)
    return np.array(x) + ROOT @ noise


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "code",
    [
        *(factor_of_the_input, factor_that_differs_by_little, covariance_of_the_input),
        *(covariance_that_differs_by_little, one_number_for_all, one_number_twice, little_beside_the_noise),
        *(noise_beside_the_sum, noise_given_away_by_a_function, a_scale_of_zero, two_numbers_for_three_sums),
        *(covariance_of_rank_two, no_covariance, one_sided_covariance, rarely_without_noise, rarely_more),
        *(by_a_random_matrix, of_two_calls),
    ],
)
def test_other_code_is_not_bounded(code: Callable[..., Any]) -> None:
    upper, different, _ = bound(code, epsilon=1000)
    assert upper == math.inf or different


@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-9])
def test_nearly_the_same_noise_hides_little(small: float) -> None:
    """With a difference d of the second number, μ = √(1 + (d − 1)²/small²)."""

    def code(x: Any, rng: Any) -> list[float]:
        z = rng.normal(size=2)
        return [x[0] + z[0], x[1] + z[0] + small * z[1]]

    far = math.hypot(1, (0.5 - 1) / small)
    upper, different, together = bound(code, epsilon=1e20)
    assert not together or different or upper >= gaussian(far) * (1 - 1e-9)
    assert not bound(code, epsilon=gaussian(far) * 0.99)[2]


def test_all_of_the_noise_of_a_hidden_sum_counts() -> None:
    """z₀ is given away, so the first sum has the noise of z₁ alone."""

    def code(x: Any, rng: Any) -> list[float]:
        z = rng.normal(size=2)
        return [x[0] + 2 * z[0] + z[1], z[0]]

    upper, different, together = bound(code)
    assert not different
    assert together
    assert upper == pytest.approx(gaussian(1.0), rel=1e-7)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", ["one by one", "root", "covariance", "cumsum of noise"])
def test_a_claim_below_the_loss_is_not_met(name: str) -> None:
    code, far = FOLLOWED[name]
    above, below = gaussian(far) * 1.001, gaussian(far) * 0.999
    assert bound(code, epsilon=above)[2]
    upper, _, together = bound(code, epsilon=below)
    assert not together
    assert upper == math.inf
    assert not bound(code, epsilon=gaussian(far), delta=DELTA * 0.99)[2]


def test_a_trace_bounds_the_pair_or_refutes_the_claim() -> None:
    code, far = lambda x, rng: np.array(x) + 3 * ROOT @ rng.standard_normal(3), distance(3 * ROOT)
    claimed = gaussian(far) * 1.01
    right = dpassay.trace(code, pairs=[(X, Y)], epsilon=claimed, delta=DELTA, time="60s", hostile=False)
    assert not right.verdict.refuted
    assert right.pair_epsilon.upper == pytest.approx(gaussian(far), rel=1e-7)
    assert "share gaussian noise" in right.verdict.reason
    small = lambda x, rng: np.array(x) + 0.2 * ROOT @ rng.standard_normal(3)  # noqa: E731
    wrong = dpassay.trace(small, pairs=[(X, Y)], epsilon=claimed, delta=DELTA, hostile=False)
    assert wrong.verdict.refuted
    assert wrong.pair_epsilon.lower <= gaussian(distance(0.2 * ROOT))
