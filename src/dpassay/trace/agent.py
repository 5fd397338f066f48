"""What runs in the interpreter of a subject that needs other versions: it makes the requested runs.

It is started by remote.py, and needs only numpy and the files of this folder that watch a run.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dpassay.trace.failing import place_of
from dpassay.trace.numbers import plain
from dpassay.trace.record import Run
from dpassay.trace.sources import watch, watched_generator
from dpassay.trace.wire import Receiver, Sender


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


def run_once(subject: Any, call: Callable[[Any, Any], Any], number: int, seed: int, x: Any, replaced: Any) -> Run:
    """One run, watched, as Tracer.run makes it."""
    run = Run(number, replaced)
    rng = watched_generator(np.random.Generator(np.random.PCG64([seed, number])))
    with watch(run, [subject]), np.errstate(all="ignore"):
        run.output = plain(call(x, rng))
    return run


def main(path: str) -> None:
    """Answer each line of stdin with a line of stdout. What the subject prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sender, receiver = Sender(), Receiver()

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    subject: Any = None
    call: Any = None
    for line in sys.stdin:
        try:
            if subject is None:
                subject = load(path)
                call, parameters = caller_of(subject)
                say({"ready": {"Python": sys.version.split()[0], "numpy": np.__version__}, "replays": parameters > 1})
                continue
            number, seed, x, replaced = receiver.value(json.loads(line))
            say(sender.message(run_once(subject, call, number, seed, x, replaced)))
        except (Exception, SystemExit) as error:
            say({"error": [type(error).__name__, f"{error}"[:2000], place_of(error.__traceback__)]})
