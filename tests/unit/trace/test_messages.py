"""What a trace says of code that it cannot judge: one sentence that is true of what happened."""

import os
import signal
import sys
import time
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.errors import InputError, MechanismError


def reason(f: Any, pair: tuple[Any, Any] = (0, 1), **more: Any) -> str:
    return dpassay.trace(f, pairs=[pair], epsilon=1, hostile=False, **more).verdict.reason


def test_no_result_is_asked_about() -> None:
    with pytest.raises(MechanismError, match=r"returned None on every run: did you forget `return`\?"):
        reason(lambda x: None)
    assert "forget" not in reason(lambda x: None if x else 3)
    assert reason(lambda x: []).endswith("of both inputs nothing came out: does the code return its result?")
    assert reason(lambda x: 3).endswith("of both inputs the same came out, without noise.")


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


@pytest.mark.parametrize(
    ("code", "pair", "line", "said"),
    [
        (raises, (1, 2), raises.__code__.co_firstlineno + 1, "ValueError: no way"),
        (raises, (0, 1), raises.__code__.co_firstlineno + 1, "SystemExit"),
        (Batch(), (1, 2), Batch.sample.__code__.co_firstlineno + 1, "LinAlgError: Singular matrix"),
        (Batch(), (0, 1), Batch.sample.__code__.co_firstlineno + 1, "SystemExit: 3"),
        (leaves, (0, 1), leaves.__code__.co_firstlineno + 1, "SystemExit: os._exit(0)"),
    ],
)
def test_an_exception_is_told_in_one_line_with_its_place(code: Any, pair: Any, line: int, said: str) -> None:
    with pytest.raises(MechanismError) as error:
        reason(code, pair)
    assert str(error.value) == f"test_messages.py:{line} raised {said}"


def test_a_run_that_takes_too_long_is_interrupted() -> None:
    """Also where the code swallows every exception once; the alarm that was there before is set again."""
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 600.0)
    try:
        with pytest.raises(MechanismError, match=r"^test_messages.py:\d+ raised TimeLimit: it was still running after"):
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

    assert reason(forks).endswith("of both inputs the same came out, without noise.")


def test_an_object_that_shows_nothing_cannot_be_read() -> None:
    with pytest.raises(MechanismError, match=r'^output\["a"\] is of type object, which cannot be read: return numbers'):
        reason(lambda x: {"a": object()})


def test_whole_numbers_beyond_all_doubles_are_compared() -> None:
    huge = 10**400
    assert dpassay.trace(lambda x: huge + x, pairs=[(0, 1)], epsilon=1).rules == ("no-noise",)
    assert "ε is at most 1." in reason(lambda x, rng: {"n": huge, "sum": x + rng.laplace()})
    assert "ε is at most 1." in reason(lambda x, rng: min(x, 1) + rng.laplace(), (0, huge))


def test_a_loss_of_several_draws_names_them() -> None:
    """0.1 and 0.2 and 1 apart, at scale 1: 1.3 in total."""
    said = reason(lambda x, rng: [x + rng.laplace(), 0.1 * x + rng.laplace(), 0.2 * x + rng.laplace()])
    assert "a number that differs by 1: with the noise of 2 other draws ε = 1.3 for this pair" in said
