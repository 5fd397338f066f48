"""What a trace says of code is true of it: of its norms, its noise, and of what decides its output."""

import math
import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpassay.trace.laws.losses import difference
from dpassay.trace.result import TraceResult
from dpassay.trace.session import trace

A = np.array([[1.0, 2.0], [3.0, 4.0]])


def traced(subject: Any, pair: tuple[Any, Any], epsilon: float) -> TraceResult:
    return trace(subject, pairs=[pair], epsilon=epsilon, hostile=False)


def identity(x: Any) -> Any:
    return x


def named(x: Any) -> dict[str, Any]:
    return {"a": x, "b": x * 2}


@pytest.mark.parametrize("subject", [identity, named])
@pytest.mark.parametrize(("epsilon", "runs"), [(20, "4.2e+09"), (50, "4.5e+22")])
def test_output_without_noise_is_not_called_random(subject: Any, epsilon: float, runs: str) -> None:
    said = traced(subject, (7, 3), epsilon).verdict.reason
    assert "changes from run to run" not in said
    assert "drew no random numbers" in said
    assert f"takes about {runs} runs of each input" in said


def same_number(x: Any, rng: Any) -> list[float]:
    n = rng.laplace(scale=2)
    return [v + n for v in x]


def two_of_three(x: Any, rng: Any) -> list[float]:
    n, m = rng.laplace(scale=2, size=2)
    return [x[0] + n, x[1] + m, x[2] + n]


@pytest.mark.parametrize(
    ("subject", "pair", "coded"),
    [
        (same_number, ([7, 0], [3, 0]), "l1 norm at most 7 on 2 inputs | laplace(2), one number for all 2 coordinates"),
        (
            same_number,
            ([7, 5], [3, 5]),
            "l1 norm at most 12 on 2 inputs | laplace(2), one number for all 2 coordinates",
        ),
        (
            two_of_three,
            ([1, 2, 3], [0, 2, 3]),
            "l1 norm at most 6 on 2 inputs | laplace(2), 2 numbers for 3 coordinates",
        ),
    ],
)
def test_a_norm_is_that_of_all_coordinates(subject: Any, pair: Any, coded: str) -> None:
    assert traced(subject, pair, 1).pipeline == coded


def with_matrix(x: Any, rng: Any) -> Any:
    return A @ np.array(x) + A @ rng.laplace(0, 1, 2)


def test_sums_of_the_same_numbers_are_not_called_one_number_for_each() -> None:
    pipeline = traced(with_matrix, ([1, 0], [0, 0]), 0.1).pipeline
    assert "one number" not in pipeline


def picked_at_random(x: Any, rng: Any) -> Any:
    return np.array(x) + rng.laplace(0, 1, 2)[rng.integers(0, 2, 3)]


def test_noise_that_is_shared_only_in_some_runs_is_not_called_shared() -> None:
    for last in range(4, 8):  # in one of four, the first run uses one number for all
        result = traced(picked_at_random, ([1, 2, 3], [1, 2, last]), 1)
        assert "shared-noise" not in result.rules
        assert "noise-reused" not in result.rules
        assert "one number for" not in result.pipeline


def at_a_large_number(x: float, rng: Any) -> Any:
    return x + rng.laplace(0, 1)


def test_numbers_that_are_far_from_zero_differ_by_what_is_stored() -> None:
    result = traced(at_a_large_number, (1e17, 1e17 + 16), 1)
    assert "ε = 16 for this pair" in result.verdict.reason
    assert float(difference(0.1, 0.3)) == pytest.approx(0.2, abs=1e-16)
    assert float(difference(-1e17, 16 - 1e17)) == 16


def uniform(x: float, rng: Any) -> Any:
    return x + rng.uniform(-10, 10)


def difference_of_exponentials(x: float, rng: Any) -> Any:
    return x + rng.exponential() - rng.exponential()


@pytest.mark.parametrize("subject", [uniform, difference_of_exponentials])
def test_bounded_noise_is_not_called_used_differently(subject: Any) -> None:
    result = trace(subject, pairs=[(0, 1)], epsilon=0.96, hostile=False)
    assert "differently" not in result.verdict.reason


def fair_binomial(x: int, rng: Any) -> int:
    return x if rng.binomial(3, 0.5) < 3 else 1 - x


def one_of_four(x: int, rng: Any) -> int:
    return x if rng.choice(4) else 1 - x


def test_the_distribution_that_decides_is_named() -> None:
    binomial = traced(fair_binomial, (0, 1), 2)
    assert binomial.pipeline == "a binomial number that decides what comes out"
    drawn = traced(one_of_four, (0, 1), 2).draws[0]
    assert str(drawn).endswith("numpy choice(4 equally likely), 1 number")


def test_dropout_multiplies() -> None:
    torch = pytest.importorskip("torch")
    drop = torch.nn.Dropout(0.5).train()
    pair = torch.tensor([1.0, 0.0]), torch.tensor([-1.0, 0.0])
    result = traced(lambda x: drop(x), pair, 1)
    assert "keeps or drops a number, and adds no noise to what it keeps: ε = ∞" in result.verdict.reason
    assert math.isinf(result.pair_epsilon.upper)


def from_another_process(x: float) -> float:
    code = f"import random; print({x} + random.expovariate(1) - random.expovariate(1))"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def hardly_hidden(x: float) -> float:
    return float(subprocess.check_output([sys.executable, "-c", f"import random; print({x} + random.random() / 9)"]))


@pytest.mark.parametrize("subject", [from_another_process, hardly_hidden])
def test_a_line_that_starts_a_process_is_named(subject: Any) -> None:
    line = subject.__code__.co_firstlineno + (2 if subject is from_another_process else 1)
    assert f"test_true_sentences.py:{line} starts another process" in traced(subject, (0, 1), 1).verdict.reason


def rounded_sum(x: float, rng: Any) -> Any:
    """Laplace noise whose loss is the claim up to rounding: three tenths of a number that differs by ⅓·10."""
    return 0.1 * 3 * x + rng.laplace(scale=0.3)


def of_a_logarithm(x: int) -> int:
    a = math.exp(-0.8)

    def geometric() -> int:
        return math.floor(math.log(1 - random.random()) / math.log(a))

    return x + geometric() - geometric()


@pytest.mark.parametrize(("subject", "epsilon"), [(rounded_sum, 1), (of_a_logarithm, 0.8)])
def test_a_claim_that_holds_up_to_rounding_is_not_called_exceeded(
    subject: Any, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpassay.trace.replay.trials.LEAST", 5)
    result = trace(subject, pairs=[(0, 1)], epsilon=epsilon, hostile=False, time=0.3)
    assert result.verdict.open
    assert "more than is claimed" not in result.verdict.reason
    assert "neither confirm nor refute" not in result.verdict.reason


def told_by_a_hash(x: int, rng: Any) -> list[Any]:
    """The noise is in the first part; the second has it in a way that is not followed."""
    n = x + rng.laplace()
    return [n, hash(str(n)) % 3, rng.laplace(scale=4) > x]


def test_an_open_claim_says_how_many_runs_a_refutation_needs() -> None:
    result = trace(lambda x: os.urandom(1)[0] % 7, pairs=[(0, 1)], epsilon=9, hostile=False)
    assert "no event was found that tells the inputs apart in" in result.verdict.reason
    assert "the clearest one would take 70,502, so allow about" in result.verdict.reason


def test_the_places_of_noise_that_was_not_followed_are_named() -> None:
    result = trace(told_by_a_hash, pairs=[(0, 1)], epsilon=9, hostile=False)
    assert f"test_true_sentences.py:{told_by_a_hash.__code__.co_firstlineno + 3}" in result.verdict.reason
