"""Right code that once was refuted, or told something untrue: what a trace is not sure of it leaves open."""

import math
import re
import time
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import dpassay


def half_out_of_sight(x: float, rng: Any) -> float:
    """Both numbers are noise: σ = √2, for which ε = 2.09 at δ = 0.001."""
    z = rng.normal(size=2)
    return float(x + float(z[0]) + z[1])


def fixed_projection(x: float, rng: Any) -> float:
    """A public factor of 0.1257, then noise: the sum of both is no noise of a larger scale."""
    return float(x * np.random.default_rng(0).normal() + rng.normal(scale=0.5))


def clamped_and_rounded(x: list[float], rng: Any) -> Any:
    """The output is only whether the sum is at least ½: ln((1 − e^−½/2) / (e^−½/2)) = 0.833."""
    return np.round(np.clip(np.asarray(x) + rng.laplace(size=1), 0, 1))


@pytest.mark.long(every=3)  # each with one of the seeds
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("code", "pair", "claim"),
    [
        (half_out_of_sight, (0.0, 1.0), {"epsilon": 2.2, "delta": 0.001}),
        (fixed_projection, (0.0, 1.0), {"epsilon": 1, "delta": 0.01}),
        (clamped_and_rounded, ([0.0], [1.0]), {"epsilon": 0.84}),
    ],
)
def test_right_code_is_not_refuted(code: Any, pair: Any, claim: dict[str, float], seed: int) -> None:
    assert dpassay.trace(code, pairs=[pair], seed=seed, **claim).verdict.open


@pytest.mark.long(every=2)
@pytest.mark.parametrize("also", [list, iter(range(10**6)).__next__], ids=["alone", "with a count"])
def test_code_that_keeps_its_answers_is_left_open(also: Any) -> None:
    """Each answer is right; that a call after the watched ones has no fresh noise is no leak."""
    kept = lru_cache(lambda x: x + np.random.laplace())
    result = dpassay.trace(lambda x: [kept(x), also()], [0.0, 1.0], epsilon=1, hostile=False)
    assert result.verdict.open
    assert "the same output again" in result.verdict.reason
    assert result.pair_epsilon.upper == math.inf


@pytest.mark.long
def test_noise_that_is_made_once_is_still_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.trace.runner.COUNTING", 5.0)  # a copy of a large process takes a while
    once: list[float] = []

    def code(x: float) -> float:
        if not once:
            once.append(np.random.laplace())
        return x + once[0]

    result = dpassay.trace(code, [0.0, 1.0], epsilon=1)
    assert result.rules == ("noise-made-once",)
    assert result.count is not None
    assert result.count.calls == 2
    assert result.verdict.refuted


@pytest.mark.long(every=2)
@pytest.mark.long
def test_an_answer_that_is_given_again_to_every_input_is_left_open() -> None:
    """Later calls tell nothing that the first did not, so that two calls lose no more than one."""
    first: list[float] = []

    def code(x: float) -> float:
        if not first:
            first.append(x + np.random.laplace())
        return first[0]

    result = dpassay.trace(code, [0.0, 1.0], epsilon=1, hostile=False)
    assert result.verdict.open
    assert "an input that was given before gets the same output again" in result.verdict.reason


@pytest.mark.long
@pytest.mark.parametrize("said", [time.perf_counter, iter(range(10**6)).__next__], ids=["time", "count"])
def test_a_time_or_a_count_is_no_leak(said: Any) -> None:
    result = dpassay.trace(lambda x: {"v": x + np.random.laplace(), "n": said()}, [0.0, 1.0], epsilon=1)
    assert result.verdict.open
    assert "leak" not in result.rules


def test_sums_and_differences_of_noise_are_no_leak() -> None:
    def code(x: list[float], rng: Any) -> list[float]:
        z = rng.normal(size=2)
        return [x[0] + z[0] + z[1], x[1] + z[0] - z[1]]

    result = dpassay.trace(code, pairs=[([0.0, 0.0], [0.0, 1.0])], epsilon=3, delta=0.001)
    assert result.verdict.open
    assert "leak" not in result.rules
    assert result.pair_epsilon.upper >= 2.0533  # that of 1/√2 standard deviations, where there was time for a bound


def test_a_sum_of_two_gaussian_numbers_moves_both() -> None:
    """One of them is used again: with the whole shift on the other, every replay would agree."""

    def code(x: float, rng: Any) -> tuple[float, bool]:
        a, b = rng.normal(), rng.normal()
        return x + a + b, bool(b > 0)

    result = dpassay.trace(code, pairs=[(0.0, 1.0)], epsilon=2.5, delta=0.001, hostile=False)
    assert result.pair_epsilon.upper == math.inf
    assert result.trials is not None
    assert "differs although all sums" in result.trials.different

    def alone(x: float, rng: Any) -> float:
        return float(x + rng.normal() + rng.normal())

    same = dpassay.trace(alone, pairs=[(0.0, 1.0)], epsilon=2.5, delta=0.001, hostile=False)
    assert same.trials is not None
    assert same.trials.different == ""
    assert same.traced_epsilon.upper == pytest.approx(2.05333, rel=1e-5)  # of one number with variance 2


def test_a_test_that_seldom_passes_is_no_bound() -> None:
    """The median is occasionally output without noise: ε = ∞ at δ = 0."""

    def propose_test_release(x: list[float], rng: Any) -> float | None:
        return None if len(x) + rng.laplace() < 20 else float(np.median(x))

    result = dpassay.trace(propose_test_release, pairs=[([1.0, 2.0], [1.0, 2.0, 3.0])], epsilon=1)
    assert result.verdict.open
    assert result.pair_epsilon.upper == math.inf


def test_code_may_change_its_input() -> None:
    def code(x: Any, rng: Any) -> Any:
        x += rng.laplace(size=x.shape)
        return x

    x, y = np.zeros(2), np.array([0.0, 1.0])
    assert dpassay.trace(code, pairs=[(x, y)], epsilon=1).pair_epsilon.upper == pytest.approx(1)
    assert x.tolist() == [0.0, 0.0]


@pytest.mark.long
def test_a_loop_that_a_hostile_input_never_ends_is_stopped() -> None:
    def by_rejection(x: float, rng: Any) -> float:
        while not 0 <= (v := x + rng.laplace(scale=2)) <= 1:
            pass
        return float(v)

    assert dpassay.trace(by_rejection, [0.0, 1.0], epsilon=1).verdict.open


def test_generators_in_default_arguments_and_global_distributions_of_scipy_are_seen() -> None:
    import scipy.stats

    def by_default(x: float, generator: Any = np.random.default_rng()) -> float:  # noqa: B008
        return float(x + generator.laplace(scale=0.5))

    def by_name(x: float, *, generator: Any = np.random.default_rng()) -> float:  # noqa: B008
        return float(x + generator.laplace(scale=0.5))

    def by_scipy(x: float) -> float:
        return float(x + scipy.stats.laplace.rvs(scale=0.5))

    for code in (by_default, by_name, by_scipy):
        before = code.__defaults__, code.__kwdefaults__ and dict(code.__kwdefaults__)
        assert dpassay.trace(code, [0.0, 1.0], epsilon=0.5, hostile=False).rules == ("loss-too-large",)
        assert (code.__defaults__, code.__kwdefaults__) == before
    assert scipy.stats.laplace._random_state is np.random.mtrand._rand


def test_dropout_of_zeros_is_refuted() -> None:
    def dropout(x: list[float], rng: Any) -> Any:
        return np.asarray(x) * rng.binomial(1, 0.5, size=3)

    result = dpassay.trace(dropout, pairs=[([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])], epsilon=1, hostile=False)
    assert result.verdict.refuted
    assert result.traced_epsilon.lower == math.inf
    assert result.pair_epsilon.lower > 1


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("many", [9, 60])
@pytest.mark.long
def test_things_that_come_out_alike_are_one(many: int, times: int) -> None:
    """Things 5 and 6 have other probabilities for the two inputs, and the same together: ε = 0."""

    def code(x: int, rng: Any) -> list[int]:
        p = np.full(many, 1.0)
        p[5], p[6] = (1.9, 0.1) if x else (0.1, 1.9)
        drawn = [int(rng.choice(many, p=p / p.sum())) for _ in range(times)]
        return [5 if one == 6 else one for one in drawn]

    assert dpassay.trace(code, pairs=[(0, 1)], epsilon=0.1).verdict.open


def test_things_that_come_out_alike_later_in_a_sequence_are_one() -> None:
    """The same of the second draw alone: ε = 0, though 5 is 19 times as likely for one input."""

    def code(x: int, rng: Any) -> list[int]:
        p = np.full(50, 1.0)
        p[5], p[6] = (1.9, 0.1) if x else (0.1, 1.9)
        first, second = int(rng.choice(50)), int(rng.choice(50, p=p / p.sum()))
        return [first, 5 if second == 6 else second]

    assert dpassay.trace(code, pairs=[(0, 1)], epsilon=0.1, hostile=False).verdict.open


@pytest.mark.long
def test_a_sequence_that_is_put_in_order_is_one_with_others() -> None:
    """5 then 6 for one input, 6 then 5 for the other: in order both are the same, ε = 0."""

    def code(x: int, rng: Any) -> list[int]:
        drawn = []
        for likely in (5, 6) if x else (6, 5):
            p = np.full(50, 0.001)
            p[likely] = 1 - 49 * 0.001
            drawn.append(int(rng.choice(50, p=p)))
        return sorted(drawn)

    result = dpassay.trace(code, pairs=[(0, 1)], epsilon=0.1, hostile=False)
    assert result.verdict.open


def test_what_there_are_too_few_runs_for_counts_against_the_loss() -> None:
    """Of 1,000 things one has probability 0.9 or 0.01, so that ε is ln(0.9/0.01). Most things are not tried, and since
    the code may reveal the input through them, there is no upper bound.
    """

    def code(x: int, rng: Any) -> int:
        p = np.full(1000, (0.1 if x else 0.99) / 999)
        p[3] = 0.9 if x else 0.01
        return int(rng.choice(1000, p=p))

    result = dpassay.trace(code, pairs=[(0, 1)], epsilon=0.1, hostile=False)
    assert 0 <= result.pair_epsilon.lower <= math.log(0.9 / 0.01)
    assert result.pair_epsilon.upper == math.inf


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.long
def test_what_a_fixed_seed_draws_is_no_choice(fresh: bool) -> None:
    """The seed 34 gives number 0 for both inputs: ε = 0, though its probability is 0.1 for one, 0.02 for the other."""

    def code(x: int, rng: Any) -> list[int]:
        p = np.full(10, 0.02 if x else 0.1)
        p[8] = 0.82 if x else 0.1
        drawn = int(np.random.default_rng(34).choice(10, p=p))
        return [drawn, int(rng.integers(4))] if fresh else [drawn]

    assert code(0, np.random.default_rng(0))[0] == code(1, np.random.default_rng(0))[0] == 0
    assert dpassay.trace(code, pairs=[(0, 1)], epsilon=0.1, hostile=False).verdict.open


def test_a_bin_without_noise_is_seen_though_the_draws_differ() -> None:
    """Only counts above 0 get noise, so that an empty bin is told."""

    def histogram(rows: list[int], rng: Any) -> Any:
        counts = np.bincount(rows, minlength=3).astype(float)
        some = counts > 0
        counts[some] += rng.laplace(scale=2.0, size=int(some.sum()))
        return counts

    result = dpassay.trace(histogram, pairs=[([0, 1, 2], [0, 1, 1])], epsilon=1, hostile=False)
    assert result.verdict.refuted
    assert "output[2] has no noise; counted: output[2] is 0 in" in str(result.findings)


@pytest.mark.long
def test_another_number_of_draws_alone_is_no_leak() -> None:
    """A Laplace number for each row, added up: their number tells something, but no output is the same in each run.

    The ratio of the densities grows with the distance, but a ratio of e³ needs an output that no trace will see.
    """

    def code(rows: list[float], rng: Any) -> float:
        return float(sum(rows)) + sum(float(rng.laplace()) for _ in rows)

    assert dpassay.trace(code, pairs=[([0.0, 0.5], [0.0])], epsilon=3, hostile=False).verdict.open


@pytest.mark.long
def test_randomness_that_nobody_sees_needs_an_audit() -> None:
    class Hidden:
        """It cannot be watched, as one in compiled code: its own generator of numbers."""

        def __init__(self) -> None:
            self.state = 1

        def __call__(self, x: int) -> int:
            self.state = self.state * 1103515245 % 2**31 + 12345
            return (self.state >> 16) % 4 + 0 * x

    result = dpassay.trace(Hidden(), pairs=[(0, 1)], epsilon=1, hostile=False)
    assert result.verdict.open
    assert "cannot be followed: audit it" in result.verdict.reason


def test_outputs_that_tell_only_together() -> None:
    """One noisy threshold for two counts: each is above it as often, and only one order of them ever comes out."""

    def above(counts: list[int], rng: np.random.Generator) -> list[bool]:
        threshold = 1.5 + rng.laplace()
        return [count > threshold for count in counts]

    result = dpassay.trace(above, pairs=[([1, 2], [2, 1])], epsilon=1, hostile=False)
    assert result.verdict.refuted
    assert re.search(r"output\[0\] is (1 and output\[1\] is 0|0 and output\[1\] is 1)", result.verdict.reason)
