"""A bounded number of worker processes, a time limit for each question, and a cache of answers.

A question that many ask at once is computed once. It is withdrawn when nobody waits for it any more. There are two
lanes: a question starts in the fast one, unless it is known to be slow, and is moved to the slow one if it takes longer
than `PATIENCE`. So slow questions never keep fast ones waiting. A worker that takes too long is killed and replaced.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

LINE = 1 << 24  # bytes of one part of an answer, at most
REMEMBERED, MOST_BYTES = 512, 64 << 20  # answers, and bytes of them
MOST_WAITING = 300  # questions that have not begun
MOST_SLOW = 6  # unfinished questions of one client in the slow lane
MOST_SHAPES = 1_000  # pipelines, apart from their numbers, that are remembered as slow
PATIENCE = 1.0  # seconds of processor time of a question in the fast lane
BUSY = 5  # times as long it may take there if the processor is busy with others
SLOW_WORKERS, NICE = 2, 10  # in the slow lane, and how much they let others go first
ALWAYS_SLOW = frozenset({"audit", "gallery", "story", "report", "certificate"})
START = 120.0  # seconds in which a worker must be ready

Lane = Literal["fast", "slow"]


class Failed(Exception):
    """A question without an answer: a sentence, and the matching HTTP status.

    >>> str(Failed("too slow", 503))
    'too slow'
    """

    def __init__(self, sentence: str, status: int, at: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.at = status, at


@dataclass(eq=False)
class PoolAnswer:
    """The parts of an answer as far as they are known."""

    key: str
    parts: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0
    failed: Failed | None = None
    begun: bool = False
    done: bool = False
    followers: int = 0
    client: str = ""
    lane: Lane = "fast"
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def tell(self) -> None:
        """Wake everyone who waits for more."""
        self.news.set()
        self.news = asyncio.Event()


class WorkerPool:
    """Workers that answer questions: `size` in the fast lane and a few in the slow one; `limit` is in seconds."""

    def __init__(self, size: int | None = None, limit: float = 30.0) -> None:
        self.size, self.limit = size or max(3, min(6, os.cpu_count() or 2)), limit
        self._idle: dict[Lane, asyncio.Queue[Process]] = {"fast": asyncio.Queue(), "slow": asyncio.Queue()}
        self._slow_shapes: OrderedDict[str, None] = OrderedDict()
        self._workers: set[Process] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: OrderedDict[str, PoolAnswer] = OrderedDict()
        self._bytes = 0
        self._closing = False

    async def start(self) -> None:
        """Start all workers; questions wait until the first is ready."""
        for _ in range(self.size):
            self._run(self._add_worker("fast"))
        for _ in range(SLOW_WORKERS):
            self._run(self._add_worker("slow"))

    async def close(self) -> None:
        """End all workers."""
        self._closing = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in list(self._workers):
            await self._end(worker)

    async def parts(
        self, question: dict[str, Any], limit: float | None = None, client: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        """The parts of an answer as they become known. Raises `Failed` if there is none."""
        answer = self._answer(question, limit or self.limit, client)
        answer.followers += 1
        try:
            told = 0
            while True:
                news = answer.news
                for part in answer.parts[told:]:
                    told += 1
                    yield part
                if answer.done and told == len(answer.parts):
                    break
                if not answer.done and news is answer.news:
                    await news.wait()
        finally:
            answer.followers -= 1
            withdrawn = not answer.followers and not answer.done and (answer.lane == "slow" or not answer.begun)
            if withdrawn and answer.task is not None:  # what runs in the fast lane ends soon by itself
                self._forget(answer)
                answer.task.cancel()
        if answer.failed is not None:
            raise Failed(str(answer.failed), answer.failed.status, answer.failed.at)

    async def whole(
        self, question: dict[str, Any], limit: float | None = None, client: str = ""
    ) -> list[dict[str, Any]]:
        """All parts of an answer."""
        return [part async for part in self.parts(question, limit, client)]

    def _answer(self, question: dict[str, Any], limit: float, client: str) -> PoolAnswer:
        """The answer that is cached or in progress, or one that begins now."""
        key = json.dumps(question, sort_keys=True)
        known = self._answers.get(key)
        if known is not None:
            self._answers.move_to_end(key)
            return known
        if sum(not one.begun for one in self._answers.values()) >= MOST_WAITING:
            raise Failed("The server is busy with other questions; please ask again in a moment.", 503)
        slow = question["kind"] in ALWAYS_SLOW or _shape(question) in self._slow_shapes
        if slow:
            self._check_share(client)
        answer = self._answers[key] = PoolAnswer(key, client=client, lane="slow" if slow else "fast")
        answer.task = self._run(self._compute(question, answer, limit))
        return answer

    def _run(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _check_share(self, client: str) -> None:
        """Refuse a slow question of a client that already has many."""
        theirs = [one for one in self._answers.values() if one.client == client and one.lane == "slow" and not one.done]
        if len(theirs) >= MOST_SLOW:
            raise Failed(f"You have {MOST_SLOW} slow questions in progress; wait for one of them, or cancel it.", 429)

    async def _compute(self, question: dict[str, Any], answer: PoolAnswer, limit: float) -> None:
        """Let a worker answer; cache the answer unless it timed out."""
        answer.failed = Failed("The question was withdrawn.", 503)
        try:
            if answer.lane == "fast" and not await self._computed(question, answer, min(PATIENCE, limit)):
                if limit <= PATIENCE:
                    raise TimeoutError
                self._slow_shapes[_shape(question)] = None
                while len(self._slow_shapes) > MOST_SHAPES:
                    self._slow_shapes.popitem(last=False)
                answer.lane, answer.begun = "slow", False
                answer.parts.clear()
            if answer.lane == "slow" and not await self._computed(question, answer, limit):
                raise TimeoutError
        except TimeoutError:
            said = f"This takes more than {limit:g} seconds, the limit on this page; dpassay check has no time limit."
            answer.failed = Failed(said, 400)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            answer.failed = Failed("The computation stopped early, perhaps because it ran out of memory.", 503)
        finally:
            answer.done = True
            self._remember(answer)
            answer.tell()

    async def _computed(self, question: dict[str, Any], answer: PoolAnswer, limit: float) -> bool:
        """Let a worker of the answer's lane compute it; False if it took longer, and the worker was replaced."""
        lane = answer.lane
        worker: Process | None = await self._idle[lane].get()
        assert worker is not None
        try:
            answer.begun, answer.failed = True, None
            tired = await self._within(self._ask(worker, question, answer), worker, lane, limit)
            if not tired:
                self._idle[lane].put_nowait(worker)
                worker = None
            return True
        except TimeoutError:
            return False
        finally:
            if worker is not None:
                self._replace(worker, lane)

    async def _within(self, work: Any, worker: Process, lane: Lane, limit: float) -> bool:
        """Wait for the work; in the fast lane longer than the limit, if the processor is busy with others."""
        task, begun = asyncio.ensure_future(work), _processor_time(worker.pid)
        try:
            for _ in range(BUSY if lane == "fast" and limit >= PATIENCE else 1):
                await asyncio.wait((task,), timeout=limit)
                if task.done():
                    return bool(task.result())
                if _processor_time(worker.pid) - begun >= limit / 2:
                    break
            raise TimeoutError
        finally:
            task.cancel()

    async def _ask(self, worker: Process, question: dict[str, Any], answer: PoolAnswer) -> bool:
        """Send a question and read the answer; return whether the worker should be replaced."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps(question).encode() + b"\n")
        await worker.stdin.drain()
        while True:
            line = await worker.stdout.readline()
            said = json.loads(line)  # a ValueError if the worker has ended
            if "end" in said:
                if "error" in said:
                    answer.failed = Failed(said["error"], said["status"], said.get("at"))
                return bool(said["tired"])
            answer.parts.append(said["part"])
            answer.size += len(line)
            answer.tell()

    def _forget(self, answer: PoolAnswer) -> None:
        if self._answers.get(answer.key) is answer:
            del self._answers[answer.key]

    def _remember(self, answer: PoolAnswer) -> None:
        """Cache an answer, evicting the oldest if there are too many; of failures only those the question caused."""
        if answer.failed is not None and (answer.failed.status != 400 or answer.parts):
            self._forget(answer)
            return
        if self._answers.get(answer.key) is not answer:
            return
        self._bytes += answer.size
        while self._bytes > MOST_BYTES or len(self._answers) > REMEMBERED:
            oldest = next((k for k, a in self._answers.items() if a.done), None)
            if oldest is None:
                break
            self._bytes -= self._answers.pop(oldest).size

    def _replace(self, worker: Process, lane: Lane) -> None:
        with suppress(ProcessLookupError):
            worker.kill()
        if not self._closing:
            self._run(self._add_worker(lane, worker))

    async def _add_worker(self, lane: Lane, after: Process | None = None) -> None:
        """Start a worker; it is idle as soon as it is ready."""
        if after is not None:
            await self._end(after)
        command = (sys.executable, "-W", "ignore", "-m", "dpassay.server.worker")
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        environment = {**os.environ, **threads, "PYDANTIC_DISABLE_PLUGINS": "__all__"}
        environment |= {"DPASSAY_NICE": str(NICE if lane == "slow" else 0)}
        begun = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=LINE, env=environment
            )
        )
        try:
            worker = await asyncio.shield(begun)
        except asyncio.CancelledError:  # the process may already exist, and nobody else would end it
            await self._end(await begun)
            raise
        self._workers.add(worker)
        assert worker.stdout is not None
        try:
            ready = await asyncio.wait_for(worker.stdout.readline(), START)
            if ready:
                self._idle[lane].put_nowait(worker)
                return
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            await self._end(worker)
            raise
        await self._end(worker)

    async def _end(self, worker: Process) -> None:
        """Kill a worker and wait until it and its pipes are gone; it stays registered until then, for `close`."""
        with suppress(ProcessLookupError):
            worker.kill()
        with suppress(OSError, ValueError):
            await worker.communicate()
        self._workers.discard(worker)


def _processor_time(process: int) -> float:
    """How many seconds a process has computed; where that is not known, the clock's."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.monotonic()


def _shape(question: dict[str, Any]) -> str:
    """What is asked apart from the numbers: moving a slider of a slow pipeline gives slow questions.

    >>> _shape({"kind": "glance", "asked": {"pipeline": "laplace(1e-5) | times(100)"}})
    'glance laplace(#) | times(#)'
    """
    return f"{question['kind']} " + re.sub(r"\d[\d.e+-]*", "#", str(question.get("asked", {}).get("pipeline", "")))
