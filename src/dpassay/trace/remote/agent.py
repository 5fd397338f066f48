"""The part that runs in the interpreter of a subject that needs other versions: it makes the requested runs.

interpreter.py starts it. It needs only numpy and the modules of `trace` that watch a run.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from dpassay.trace.natural.bits import import_ahead, known_bits, stream_of
from dpassay.trace.natural.failing import place_of
from dpassay.trace.natural.runs import Natural, finished, kept_error
from dpassay.trace.natural.whole import read
from dpassay.trace.remote.wire import Receiver, Sender, packed
from dpassay.trace.watch.numbers import bare, plain
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.sources import watch, watched_generator


def load(path: str) -> Any:
    """The object named by package.module:name; for a class, or a method of one, a new instance is made."""
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        owner, found = found, getattr(found, part)
        if inspect.isclass(owner) and inspect.isfunction(inspect.getattr_static(owner, part, None)):
            found = getattr(owner(), part)
    return found() if inspect.isclass(found) else found


def caller_of(subject: Any) -> tuple[Callable[[Any, Any], Any], int]:
    """How one output of a subject is requested, and its number of parameters."""
    if callable(getattr(subject, "sample", None)):
        return (lambda x, rng: subject.sample(x, 1, rng)[0]), 3
    parameters = inspect.signature(subject).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.default is one.empty and one.kind in kinds]
    calls: dict[int, Callable[[Any, Any], Any]] = {
        1: lambda x, rng: subject(x),
        2: lambda x, rng: subject(x, rng),
        3: lambda x, rng: subject(x, 1, rng)[0],
    }
    if len(needed) not in calls:
        raise TypeError(
            f"it needs {len(needed)} arguments; give f(x), f(x, rng), f(x, n, rng) or an object with sample"
        )
    return calls[len(needed)], len(needed)


def run_once(subject: Any, natural: Natural, number: int, seed: int, x: Any, asked: dict[str, Any]) -> RecordedRun:
    """One run, watched, as Tracer.run makes it."""
    run = RecordedRun(number, asked["replaced"], forced=asked["forced"])
    key = asked["key"]
    rng = watched_generator(np.random.Generator(stream_of(key or (seed, number))))
    bits = nullcontext() if key is None else known_bits(key, natural.held)
    with bits, watch(run, [subject]), np.errstate(all="ignore"):
        try:
            output = finished(natural.call(x, rng))
        except (Exception, SystemExit) as error:
            if not asked["keeping"]:
                raise
            output, run.reading = kept_error(error)
        run.output = plain(output)
        if key is not None and run.reading is None:
            run.reading = read(output, bare)
    return run


def answer(subject: Any, natural: Natural, asked: tuple[Any, ...]) -> Any:
    """What is asked for: a watched run, natural runs, or whether earlier runs matter."""
    what, *rest = asked
    if what == "run":
        return run_once(subject, natural, *rest)
    if what == "fixed":
        return [(one.name, one.file, one.line) for one in [*natural.fixed, *natural.seeded]]
    *given, seconds = rest
    natural.until = time.monotonic() + seconds if seconds is not None else float("inf")
    if what == "remembers":
        return natural.remembers(*given)
    if what == "keeps":
        return natural.keeps_answers(*given)
    if what == "readings":
        x, keys, apart = given
        return packed(natural.readings(x, keys, apart=apart))
    inputs, keys, apart, calls = given
    return [packed(one) for one in (natural if calls == 1 else natural.twice).counted(inputs, keys, apart)]


def main(path: str) -> None:
    """Answer each line of stdin with a line of stdout. What the subject prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sender, receiver = Sender(), Receiver()

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    subject: Any = None
    natural: Any = None
    for line in sys.stdin:
        try:
            if subject is None:
                subject = load(path)
                call, parameters = caller_of(subject)
                import_ahead(subject)
                natural = Natural(call, subject=subject)
                say({"ready": {"Python": sys.version.split()[0], "numpy": np.__version__}, "replays": parameters > 1})
                continue
            say(sender.message(answer(subject, natural, receiver.value(json.loads(line)))))
        except (Exception, SystemExit) as error:
            say({"error": [type(error).__name__, f"{error}"[:2000], place_of(error.__traceback__)]})
