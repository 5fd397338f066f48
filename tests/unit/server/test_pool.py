"""Workers: a question that takes too long is ended, its worker replaced, and the same question is computed once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from dpassay.server.asked import PageQuestion, of_claim, read
from dpassay.server.pool import MOST_SLOW, SLOW_WORKERS, Failed, WorkerPool
from dpassay.server.worker import TIRED
from processes import LIMIT

SLOW = PageQuestion("poisson(0.01) | clip(l2, 1) | gaussian(1) | times(100000)", {}, 4, epsilon="2", delta="1e-5")
QUICK = PageQuestion("query(l1, 1) | laplace(1)", epsilon="1")


def question(asked: PageQuestion, kind: str = "glance") -> dict[str, Any]:
    return {"kind": kind, "asked": asked.to_data()}


def test_a_slow_question_is_ended_and_the_next_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.server.pool.REMEMBERED", 3)

    async def ask() -> tuple[str, list[dict[str, Any]], int, int]:
        pool = WorkerPool(size=1)
        await pool.start()
        await pool.whole(question(QUICK))
        try:
            with pytest.raises(Failed) as failed:
                await pool.whole(question(SLOW, "check"), limit=0.05)
            same = await asyncio.gather(*(pool.whole(question(QUICK, "check")) for _ in range(50)))
            assert all(one == same[0] for one in same)
            for i in range(1, 8):
                await pool.whole(question(PageQuestion("laplace(1)", {}, 2, metric="l1", epsilon=str(i))))
            return str(failed.value), same[0], len(pool._workers), len(pool._answers)
        finally:
            await pool.close()

    said, answer, workers, remembered = asyncio.run(ask())
    assert said == "This takes more than 0.05 seconds, the limit on this page; dpassay check has no time limit."
    assert (answer[0]["word"], remembered) == ("proven", 3)
    assert workers == 1 + SLOW_WORKERS


def test_a_worker_is_not_tired_because_its_parent_is_large() -> None:
    """Linux counts the memory of the process that starts another as that one's own, in getrusage."""
    large = f"held = bytearray({(TIRED << 10) + 10**7})\n"
    starts = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    says = "from dpassay.server.worker import _size; print(_size())"
    done = subprocess.run([sys.executable, "-c", large + starts, says], capture_output=True, text=True, check=True)
    assert 1000 < int(done.stdout) < TIRED


def slow(number: int) -> dict[str, Any]:
    text = f"poisson(0.01) | clip(l2, 1) | gaussian(1) | times({100_000 + number})"
    return question(PageQuestion(text, {}, 4, epsilon="2", delta="1e-5"), "check")


async def until(true: Any) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():
            await asyncio.sleep(0.02)


def test_slow_questions_do_not_keep_fast_ones_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.server.pool.PATIENCE", 0.2)
    monkeypatch.setattr("dpassay.server.pool.SLOW_WORKERS", 1)

    async def ask() -> tuple[list[bool], list[str]]:
        pool = WorkerPool(size=1, limit=LIMIT)
        await pool.start()
        waiting = [asyncio.create_task(pool.whole(slow(i), client=str(i))) for i in range(3)]
        try:
            await until(lambda: sum(one.lane == "slow" for one in pool._answers.values()) == 3)
            (quick,) = await pool.whole(question(QUICK))
            assert quick["word"] == "proven"
            return [task.done() for task in waiting], [one.lane for one in pool._answers.values()]
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await pool.close()

    done, lanes = asyncio.run(ask())
    assert not all(done)  # one after another: on a fast machine the first may be done
    assert lanes == ["slow"] * 3 + ["fast"]


def test_a_slow_question_is_withdrawn_when_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.server.pool.PATIENCE", 0.2)
    monkeypatch.setattr("dpassay.server.pool.SLOW_WORKERS", 1)

    async def ask() -> None:
        pool = WorkerPool(size=1, limit=LIMIT)
        await pool.start()
        first, same = (asyncio.create_task(pool.whole(slow(1))) for _ in range(2))
        await until(lambda: any(one.lane == "slow" and one.begun for one in pool._answers.values()))
        (answer,) = pool._answers.values()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not answer.done  # another still waits
        same.cancel()
        await asyncio.gather(same, return_exceptions=True)
        await until(lambda: answer.done)
        assert not pool._answers
        await until(lambda: pool._idle["slow"].qsize() == 1)  # its worker was replaced
        await pool.close()

    asyncio.run(ask())


def test_one_client_has_a_limited_share_of_the_slow_lane() -> None:
    async def ask() -> list[str]:
        pool = WorkerPool(size=1)  # it is not started, so all questions wait
        kinds = [question(PageQuestion("x", epsilon=str(i)), "audit") for i in range(MOST_SLOW + 2)]
        waiting = [asyncio.create_task(pool.whole(one, client="a")) for one in kinds]
        other = asyncio.create_task(pool.whole(question(PageQuestion("y"), "audit"), client="b"))
        quick = asyncio.create_task(pool.whole(question(QUICK), client="a"))
        await asyncio.sleep(0.05)
        told = [str(task.exception()) for task in waiting if task.done()]
        assert not other.done()
        assert not quick.done()
        for task in (*waiting, other, quick):
            task.cancel()
        await asyncio.gather(*waiting, other, quick, return_exceptions=True)
        await pool.close()
        return told

    told = asyncio.run(ask())
    assert len(told) == 2
    assert told[0].startswith(f"You have {MOST_SLOW} slow questions in progress")


def test_too_many_questions_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.server.pool.MOST_WAITING", 5)

    async def ask() -> list[Any]:
        pool = WorkerPool(size=1)  # it is not started, so all questions wait
        waiting = [asyncio.create_task(pool.whole(question(PageQuestion("x", epsilon=str(i))))) for i in range(8)]
        await asyncio.sleep(0.05)
        told = [str(task.exception()) for task in waiting if task.done()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0)
        assert not pool._answers  # nobody waits for them any more
        await pool.close()
        return told

    assert asyncio.run(ask()) == ["The server is busy with other questions; please ask again in a moment."] * 3


def test_every_claim_of_the_registry_can_be_stated() -> None:
    from urllib.parse import parse_qsl

    from dpassay.claims.judge import quick_check
    from dpassay.claims.registry import REGISTRY

    for name, claim in REGISTRY.items():
        asked = read(parse_qsl(of_claim(claim).address))
        assert asked == of_claim(claim), name
        assert quick_check(asked.claim())[0] == claim.expected, name
