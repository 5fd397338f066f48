"""What a trace says of code that it cannot judge: one sentence that is true of what happened."""

import math
import os
import random
import re
import signal
import sys
import time
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.errors import InputError, MechanismError
from dpassay.trace.findings.explaining import _too_few
from dpassay.trace.replay.trials import ReplayTrials, needed
from dpassay.trace.watch.tracer import Tracer


def reason(f: Any, pair: tuple[Any, Any] = (0, 1), **more: Any) -> str:
    return dpassay.trace(f, **{"pairs": [pair], "epsilon": 1, "hostile": False, **more}).verdict.reason


def test_the_next_audit_tests_the_claim_itself() -> None:
    """ln 3 to six digits is below ln 3, and false of code whose loss is ln 3."""
    assert "epsilon=1.0986122886681098" in reason(lambda x, rng: x + 50 * rng.standard_t(3), epsilon=math.log(3))


def test_a_nested_output_is_not_said_to_contain_itself() -> None:
    def nested(x: float, rng: Any) -> Any:
        found = [x + rng.laplace()]
        for _ in range(3000):
            found = [found]
        return found

    with pytest.raises(MechanismError, match="nested too deeply, or contains itself"):
        reason(nested)


def test_no_result_is_asked_about() -> None:
    with pytest.raises(MechanismError, match=r"returned None on every run: did you forget `return`\?"):
        reason(lambda x: None)
    assert "forget" not in reason(lambda x: None if x else 3)
    assert "both inputs gave no output: does the code return its result? In " in reason(lambda x: [])
    assert "both inputs gave the same output, without noise. In " in reason(lambda x: 3)


def test_a_bound_on_norms_is_not_taken_for_one_on_distances() -> None:
    """Numbers of norm at most 1 are up to 2 apart: 1-DP does not follow from that with Laplace noise of scale 1."""
    said = reason(lambda x, rng: x + rng.laplace())
    assert "l1 norm at most 1 on 2 inputs" in said
    assert "proven" not in said
    assert dpassay.check("clip(l1, 1) | laplace(1)", epsilon=1, dim=1).refuted
    assert dpassay.check("query(l1, 1) | laplace(1)", epsilon=1, dim=1).proven


def raises(x: Any) -> Any:
    raise ValueError("no\n  way") if x else SystemExit


class Batch:
    def sample(self, x: Any, n: int, rng: Any) -> Any:
        return np.linalg.inv(np.zeros((2, 2))) if x else sys.exit(3)


def leaves(x: Any) -> Any:
    os._exit(x)


def never_ends(x: Any) -> Any:
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            x += 1
            if x > 1:
                raise


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("code", "pair", "line", "said"),
    [
        (raises, (1, 2), raises.__code__.co_firstlineno + 1, "ValueError: no way"),
        (raises, (0, ""), raises.__code__.co_firstlineno + 1, "SystemExit"),
        (Batch(), (1, 2), Batch.sample.__code__.co_firstlineno + 1, "LinAlgError: Singular matrix"),
        (Batch(), (0, ""), Batch.sample.__code__.co_firstlineno + 1, "SystemExit: 3"),
        (leaves, (0, 1), leaves.__code__.co_firstlineno + 1, "SystemExit: os._exit(0)"),
    ],
)
def test_an_exception_is_told_in_one_line_with_its_place(code: Any, pair: Any, line: int, said: str) -> None:
    with pytest.raises(MechanismError) as error:
        reason(code, pair)
    assert str(error.value) == f"test_messages.py:{line} raised {said}"


@pytest.mark.parametrize(
    ("code", "said"), [(raises, "ValueError"), (Batch(), "LinAlgError"), (lambda x: 1 // x, "ZeroDivisionError")]
)
def test_an_exception_of_one_input_alone_tells_them_apart(code: Any, said: str) -> None:
    result = dpassay.trace(code, pairs=[(0, 1)], epsilon=1, hostile=False)
    assert (result.verdict.word, result.rules) == ("refuted", ("raises",))
    assert said in result.verdict.reason or "SystemExit" in result.verdict.reason


def test_a_run_that_takes_too_long_is_interrupted() -> None:
    """Also where the code swallows every exception once; the alarm that was there before is set again."""
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 600.0)
    try:
        with pytest.raises(MechanismError, match=r"^test_messages.py:\d+ raised TimeLimit: it did not finish within"):
            reason(never_ends, time_limit=0.05)
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
        assert 500 < signal.getitimer(signal.ITIMER_REAL)[0] < 600
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(InputError, match="the time limit must be more than 0"):
        reason(raises, time_limit=0)


def test_a_process_that_the_code_forks_ends_as_it_did() -> None:
    def forks(x: Any) -> int:
        if (child := os.fork()) == 0:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    tracer = Tracer(forks)
    assert tracer.run(0).output == 7
    assert [one.values for one in tracer.natural.readings(0, [(0, 0)])] == [(7.0,)]


def test_an_object_that_shows_nothing_cannot_be_read() -> None:
    with pytest.raises(MechanismError, match=r'^output\["a"\] is of type object, which cannot be read: return numbers'):
        reason(lambda x: {"a": object()})


def test_whole_numbers_beyond_all_doubles_are_compared() -> None:
    huge = 10**400
    assert dpassay.trace(lambda x: huge + x, pairs=[(0, 1)], epsilon=1).rules == ("no-noise",)
    assert "ε is at most 1, apart from" in reason(lambda x, rng: {"n": huge, "sum": x + rng.laplace()})
    assert "ε is at most 1, apart from" in reason(lambda x, rng: min(x, 1) + rng.laplace(), (0, huge))


def test_a_loss_of_several_draws_names_them() -> None:
    """2 and 0.1 and 0.2 apart, at scale 1: 2.3 in total."""
    said = reason(lambda x, rng: [2 * x + rng.laplace(), 0.1 * x + rng.laplace(), 0.2 * x + rng.laplace()])
    assert "a number that differs by 2: with the noise of 2 other draws ε = 2.3 for this pair" in said


@pytest.mark.parametrize(
    "said",
    [
        "Unable to handle autograd's threading in combination with fork-based multiprocessing",
        "Cannot re-initialize CUDA in forked subprocess",
    ],
)
def test_torch_that_refuses_to_run_in_a_copy_is_not_taken_for_the_code(said: str) -> None:
    """Otherwise code that uses torch for one input only would be refuted by this error."""
    here = os.getpid()

    def code(x: float, rng: np.random.Generator) -> float:
        if x and os.getpid() != here:
            raise RuntimeError(said)
        return x + rng.laplace(scale=1.0)

    with pytest.raises(MechanismError, match="CUDA_VISIBLE_DEVICES"):
        dpassay.trace(code, [0.0, 1.0], epsilon=1.0)


WORDS = ["good", "fine", "great", "bad"]


def until_accepted(word: str) -> str:
    """A word other than the own is accepted with probability 1/3: its share is 1/6, and the own word's is 1/2."""
    while True:
        found = random.choice(WORDS)
        if found == word or random.random() < 1 / 3:
            return found


def test_outcomes_that_were_not_all_enumerated_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.trace.runner.SECONDS", 8.0)
    found = reason(until_accepted, ("good", "bad"), epsilon=0.3)
    low, high = (float(re.search(rf"at {end} ([\d.]+)", found)[1]) for end in ("least", "most"))  # type: ignore[index]
    assert low <= 1 / 2
    assert high >= 1 / 6
    assert 0.3 < float(re.search(r"ε ≥ ([\d.]+) for this pair", found)[1]) <= math.log(3)  # type: ignore[index]
    assert "ε =" not in found


def test_a_bound_at_delta_says_so() -> None:
    """The two outputs differ with probability 1/2, which the δ of the claim allows."""
    words = {"good": ["great"], "bad": ["awful"]}

    def other(word: str) -> str:
        return random.choice(words[word]) if random.random() < 0.5 else "thing"

    assert "ε is at most 0 at δ = 0.5, apart from" in reason(other, ("good", "bad"), epsilon=0.01, delta=0.5)


def test_a_seed_from_the_data() -> None:
    found = reason(lambda x: x + np.random.default_rng(x).laplace(), (0, 1))
    assert "what the inputs differ by" not in found


@pytest.mark.parametrize(
    "code",
    [
        lambda x, rng: [x + (z := rng.laplace()), x - z],
        lambda x, rng: x + rng.laplace() * np.array([1.0, -1.0]),
        lambda x, rng: [x + (z := rng.laplace()), x + 2 * z],
    ],
)
def test_noise_that_cancels_out_of_no_difference(code: Any) -> None:
    found = reason(code, (0.0, 1.0), epsilon=0.5)
    assert "difference" not in found.partition("; counted")[0]


@pytest.mark.parametrize(
    "code",
    [lambda x, rng: x + z if (z := rng.laplace()) > 0 else x + 2 * z, lambda x, rng: abs(x + rng.laplace()) ** 0.5],
)
def test_the_same_draws_are_not_said_to_differ(code: Any) -> None:
    assert "draws cannot be compared" not in reason(code, (0.0, 1.0), epsilon=0.5)


def kept_and_counted(rows: list[int], rng: Any) -> Any:
    return rng.normal() + (rng.random(len(rows)) < 0.1).sum()


def each_with_noise(rows: list[int], rng: Any) -> Any:
    return sum(row + rng.laplace() for row in rows)


def sampled_or_not(rows: list[int], rng: Any) -> Any:
    return rng.random(2).sum() + rng.laplace() if len(rows) > 1 else rng.laplace(size=2).sum()


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            kept_and_counted,
            r"the numbers that \S+:{} draws with random are 2 for one input and 1 for the other, so their",
        ),
        (each_with_noise, r"one input draws with laplace at \S+:{} where the other draws nothing more, so their"),
        (
            sampled_or_not,
            r"one input draws with random at \S+:{} where the other draws with laplace at \S+:{}, so their",
        ),
    ],
)
def test_different_draws_are_named(code: Any, told: str) -> None:
    line = code.__code__.co_firstlineno + 1
    said = reason(code, ([0, 0], [0]), epsilon=9, time_limit=0.5)
    assert re.search(told.format(line, line) + " draws cannot be compared", said)


def test_a_bound_that_takes_more_replays_says_how_much_more_time_they_take() -> None:
    assert _too_few(ReplayTrials(500, 1e-3), 9.0) == (
        f"500 replays agreed, but a bound of 9 needs {needed(9, 1e-3):,}: allow about "
        f"{math.ceil(2 * needed(9, 1e-3) / 500)} times as much time (--time)"
    )
    none = _too_few(ReplayTrials(0, 1e-3), 1.0)
    assert none == "there was no time for a replay; a bound of 1 needs 48: allow more time (--time)"
    assert _too_few(ReplayTrials(500, 1e-3), 50.0).endswith("that is out of reach")


@pytest.mark.long
def test_more_time_makes_as_many_replays_as_a_bound_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.trace.runner.MOST_TRIALS", 160)
    result = dpassay.trace(
        lambda x, rng: x + rng.laplace(scale=0.25), pairs=[(0, 1)], epsilon=4, hostile=False, time=60
    )
    assert result.pair_epsilon.upper == 4
    assert result.trials is not None
    assert result.trials.agreed >= needed(4, 1e-3) > 160
