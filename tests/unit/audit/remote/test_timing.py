import asyncio
import random
import threading
import time

import pytest

from dpassay import audit
from dpassay.audit import runner
from dpassay.audit.options import AuditOptions
from dpassay.audit.remote.timing import OutOfTime, Pacer, check_time, duration, interval, pause, time_budget
from dpassay.errors import InputError


@pytest.mark.parametrize(
    ("given", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5 h", 5400), ("2d", 172_800), (0.25, 0.25)]
)
def test_durations(given, seconds):
    assert duration(given) == seconds


@pytest.mark.parametrize("given", ["", "0", "-1s", "1w", "m", "1h30m", "nan", "inf", "1e3", True, [], "400d"])
def test_what_is_no_duration(given):
    with pytest.raises(InputError, match="such as 90s, 10m or 2h"):
        duration(given)
    with pytest.raises(InputError, match="such as 90s, 10m or 2h"):
        AuditOptions(time=given)


@pytest.mark.parametrize("given", ["", "5", "0/s", "5/d", "-1/s", "x/s", "1e9/s", "/s", None])
def test_what_is_no_rate(given):
    with pytest.raises(InputError, match="such as 5/s, 100/m or 1000/h"):
        interval(given)


def test_rates():
    assert [interval(rate) for rate in ("4/s", "30/m", "0.5/h")] == [0.25, 2.0, 7200.0]


def test_a_pacer_hands_out_moments_that_far_apart():
    pacer, over = Pacer(100.0), threading.Event()
    pacer.turn(over)
    over.set()  # nobody waits any more, but the moments are taken
    first = pacer.next
    pacer.turn(over)
    assert pacer.next == pytest.approx(first + 100.0)


def test_a_budget_is_over_once_its_time_is():
    check_time()
    with time_budget(1e-9), pytest.raises(OutOfTime):
        check_time()
    with time_budget(0.01), pytest.raises(OutOfTime):
        pause(1e6, threading.Event())
    with time_budget(None):
        check_time()
    check_time()


# A budget for every kind of audit


def slow(x):
    time.sleep(0.002)
    return random.random()


def slow_batch(x, n, rng):
    time.sleep(0.0002 * n)
    return rng.random(n)


def slow_later(x, n, rng):
    """Quick at first, so that the time is over in the middle of a game."""
    slow_later.runs += n
    time.sleep(0.001 if slow_later.runs > 2000 else 0)
    return rng.random(n)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("mechanism", [slow, slow_batch])
@pytest.mark.parametrize("fixed", [False, True])
def test_an_audit_ends_in_time_and_can_be_continued(mechanism, fixed, tmp_path):
    asked = {"epsilon": 1, "save": tmp_path / "a.json", "runs": 10**6, "fixed": fixed}
    verdict = audit(mechanism, [(0.0, 1.0)], **asked, time="0.3s")
    assert verdict.word == "open"
    assert not verdict.interrupted
    assert any("The time limit of 0.3s was reached after" in one and "resume=True" in one for one in verdict.warnings)
    again = audit(mechanism, [(0.0, 1.0)], **asked, time=0.2, resume=True)
    assert again.word == "open"
    assert any("come from" in one for one in again.warnings)


async def hangs(x):
    await asyncio.sleep(600 if random.random() < 0.01 else 0)
    return random.random()


def test_an_async_call_under_way_is_cut():
    assert audit(hangs, [(0.0, 1.0)], epsilon=1, time="0.5s").word == "open"


def test_what_was_counted_stays(tmp_path):
    slow_later.runs = 0
    asked = {"epsilon": 1, "runs": 10**9, "save": tmp_path / "a.json", "bits": False}
    verdict = audit(slow_later, [(0.0, 1.0)], **asked, time="0.5s")
    again = audit(slow_later, [(0.0, 1.0)], **asked, time="0.1s", resume=True)
    assert verdict.runs > 1000
    assert again.runs >= verdict.runs


def test_a_search_ends_in_time_too():
    verdict = audit(slow, inputs=[float(i) for i in range(30)], epsilon=1, time="0.2s")
    assert verdict.word == "open"
    assert "with save=FILE it could be continued" in " ".join(verdict.warnings)


def test_a_claim_that_was_refuted_before_stays_refuted():
    """All of the time goes into looking for a smaller pair."""
    verdict = audit(lambda x: [v + random.random() for v in x], [([0.0] * 9, [9.0] * 9)], epsilon=1, time="1.5s")
    assert verdict.word == "refuted"


def test_a_slow_mechanism_is_reported_soon_after_its_refutation(monkeypatch):
    """Fewer runs show how wrong the claim is: whether a run is slow is looked at, not how slow it is."""
    refuted = audit(lambda x: x, [(0, 1)], epsilon=1, until_refuted=True, bits=False).runs
    assert audit(lambda x: x, [(0, 1)], epsilon=1, bits=False).runs == refuted + runner.AGAIN_ALONE
    monkeypatch.setattr(runner, "SLOW", 0.0)
    assert audit(lambda x: x, [(0, 1)], epsilon=1, bits=False).runs == refuted + runner.AGAIN_SLOW
