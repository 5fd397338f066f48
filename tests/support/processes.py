"""Processes that tests start: each hears Ctrl-C, and none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

LIMIT = 300.0  # seconds after which something hangs; on a busy machine everything takes many times as long


@contextmanager
def interruptible() -> Iterator[None]:
    """Let this process, and those it starts, hear SIGINT even where the suite was started with SIGINT ignored.

    A shell does so with what it starts by `&`. An ignored signal stays ignored in a new process; one that has a handler
    gets the default there.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process in its own session; at the end, whatever happened, kill it and its children."""
    with interruptible():
        process = subprocess.Popen(command, start_new_session=True, **options)
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_until(condition: Callable[[], object], process: subprocess.Popen[Any] | None = None) -> None:
    """Wait for something to become true; fail after `LIMIT`, or as soon as the process that should do it has ended."""
    began = time.monotonic()
    while not condition():
        assert process is None or process.poll() is None, (process.returncode, process.communicate())
        assert time.monotonic() - began < LIMIT, f"not within {LIMIT:g} seconds"
        time.sleep(0.02)


class Killed(BaseException):
    """What ends a process at once: nothing is cleaned up after it."""


def kill_at(monkeypatch: pytest.MonkeyPatch, operation: int) -> None:
    """From this operation on, counted from 1, no file is renamed or deleted any more."""
    done = 0

    def until(real: Callable[..., Any]) -> Callable[..., Any]:
        def go(self: Path, *args: Any, **kwargs: Any) -> Any:
            nonlocal done
            done += 1
            if done >= operation:
                raise Killed
            return real(self, *args, **kwargs)

        return go

    for name in ("replace", "unlink"):
        monkeypatch.setattr(Path, name, until(getattr(Path, name)))


def killed_at_each_moment(monkeypatch: pytest.MonkeyPatch, folder: Path, work: Callable[[Path], Any]) -> Iterator[Path]:
    """The places that work leaves if it is killed at its first operation on files, at its second, and so on."""
    for operation in count(1):
        place = folder / f"{operation}"
        ended = False
        with monkeypatch.context() as patch, suppress(Killed):
            kill_at(patch, operation)
            work(place)
            ended = True
        yield place
        if ended:
            return
