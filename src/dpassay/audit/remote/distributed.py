"""An audit's tasks in other processes and on other machines. Mechanisms are sent by name, rules as data.

A batch holds some tasks of one round. The worker that gets it recreates the mechanism from its text, import path,
command or address, runs the tasks and sends their counts back. A worker that would run different code refuses, and
workers that draw the same outputs are detected.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import field, fields, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np

from dpassay.audit.mechanisms.seeding import Seeded, seed_all
from dpassay.audit.mechanisms.targets import Loaded, RunnableObject, describe, draw, load_python
from dpassay.audit.outputs.outputs import Outputs, join
from dpassay.audit.remote.endpoint import Endpoint
from dpassay.audit.remote.lines import Troubles
from dpassay.audit.remote.programs import Program
from dpassay.audit.remote.timing import check_time, moment_of_the_end, time_budget
from dpassay.audit.storage.checkpoint import RuleRecord, rule_of, rule_record
from dpassay.audit.testing.experiment import KEPT, Experiment, RoundResult
from dpassay.audit.testing.inference import RoundCounts
from dpassay.audit.testing.sequential import (
    GuessCounts,
    KeptOutputs,
    Outcomes,
    Task,
    TaskRunner,
    in_this_process,
    keep,
    room,
    run_by_input,
)
from dpassay.compute.batching import BatchSizer
from dpassay.compute.executors import Executor
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, Mechanism
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.values import dataclass

MOST_TASKS = 1 << 14  # of a batch
PROBES = 32  # runs in each process that reveal whether two processes draw the same outputs
REPEATED = (
    "two workers drew the same outputs: the mechanism uses a fixed seed, so its runs are not independent; let "
    "it use the rng that it is given, or seed it from the operating system"
)
# A worker runs one batch at a time: a mechanism need not support concurrent calls.
_RUNNING = threading.Lock()
_FIRST: dict[SentSubject, str] = {}  # in this process: digests of the mechanisms' first outputs
_SOURCES: dict[str, str] = {}  # and of the modules' files when they were loaded


@dataclass(frozen=True)
class SentSubject:
    """A mechanism by a name that any process can load: it is sent in place of the mechanism."""

    kind: str
    name: str
    extra: float = 0.0  # a pipeline's dimension, a program's time limit
    source: str = ""  # SHA-256 of the file that a Python object's module is in
    seeded: bool = False  # whether the process's generators are seeded around each call
    settings: str = field(default="", repr=False)  # of a program or an endpoint, as JSON; headers may be secret

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        return made(self).sample(x, n, rng)


@dataclass(frozen=True)
class WorkBatch:
    """Tasks of one round, with everything needed to run them."""

    subject: SentSubject
    experiment: Experiment  # of the subject
    rule: RuleRecord
    singly: bool
    tasks: tuple[Task, ...]
    keeping: bool = False  # whether outputs are sent back, to learn the next rule from
    until: float | None = None  # when the audit's time ends, in seconds since 1970


@dataclass(frozen=True)
class BatchAnswer:
    """The counts of a batch's tasks, how long they took, and the mechanism's error if it failed after them.

    `first` is a digest of the first outputs of a user's mechanism in this process. `drawn` has the outputs of each task
    by input, if they were requested and can be sent. `troubles` lists, for each task, problems that were recovered
    from: programs that died, requests that were repeated.
    """

    counts: tuple[GuessCounts, ...]
    seconds: float
    worker: str
    first: str = ""
    broke: str = ""
    drawn: tuple[tuple[Outputs | None, ...], ...] = ()
    troubles: tuple[dict[str, int], ...] = ()


def on_executor(executor: Executor) -> TaskRunner:
    """Submit tasks to an executor. The first ones run here, to be compared with the distribution."""

    def run_tasks(experiment: Experiment, current: RoundResult, tasks: Iterator[Task], kept: KeptOutputs) -> Outcomes:
        known = experiment.distributions() is not None
        for task in tasks:
            if not known or task.before >= 4 * KEPT:
                yield from _handed_out(executor, experiment, current, chain([task], tasks), [] if known else kept)
                return
            yield from in_this_process(experiment, current, iter([task]), kept)

    return run_tasks


def _handed_out(
    executor: Executor, experiment: Experiment, current: RoundResult, tasks: Iterator[Task], kept: KeptOutputs
) -> Outcomes:
    sizer = BatchSizer(MOST_TASKS)
    under_way: list[tuple[Task, ...]] = []

    def batches() -> Iterator[WorkBatch]:
        while some := tuple(islice(tasks, sizer.number)):
            under_way.append(some)
            packed = pack(experiment, current, some)
            yield replace(packed, keeping=_some_room(experiment, kept), until=moment_of_the_end())

    drew: dict[str, str] = {}  # the first outputs, and who drew them
    answers = executor.map(run_batch, batches(), check_time, redo=experiment.repeatable)
    with closing(answers):  # type: ignore[type-var]
        for answer in answers:
            sent = under_way.pop(0)
            if answer.first and drew.setdefault(answer.first, answer.worker) != answer.worker:
                raise MechanismError(REPEATED)
            sizer.took(len(sent), answer.seconds)
            for number, (task, counts) in enumerate(zip(sent, answer.counts, strict=not answer.broke)):
                for side, outputs in enumerate(answer.drawn[number] if answer.drawn else ()):
                    if outputs is not None:
                        keep(experiment, kept, side, outputs)
                for what, times in answer.troubles[number].items():
                    experiment.mechanism.troubles.count(what, times)  # type: ignore[attr-defined]
                yield task, counts
            if answer.broke:
                yield sent[len(answer.counts)], MechanismError(answer.broke)
                return


def _some_room(experiment: Experiment, kept: KeptOutputs) -> bool:
    """Whether outputs are still kept. Room never grows, so if there is none now, there is none when they arrive."""
    if not kept or not all(kept):
        return bool(kept)
    return any(sum(map(len, side)) < room(experiment, kept, side[0]) for side in kept)


def pack(experiment: Experiment, current: RoundResult, tasks: tuple[Task, ...]) -> WorkBatch:
    """Tasks in the form in which they are sent."""
    subject = named(experiment.mechanism)
    return WorkBatch(subject, replace(experiment, mechanism=subject), rule_record(current.rule), current.singly, tasks)


def run_batch(batch: WorkBatch) -> BatchAnswer:
    """Run a batch's tasks: what a worker does. It ends with `OutOfTime` when the audit does."""
    counts: list[GuessCounts] = []
    drawn: list[tuple[Outputs | None, ...]] = []
    troubles: list[dict[str, int]] = []
    who = f"{gethostname()} {os.getpid()}"
    with _RUNNING, time_budget(None if batch.until is None else batch.until - time.time()):
        begun = time.perf_counter()
        try:
            mechanism = made(batch.subject)
        except InputError as error:
            raise InputError(f"a worker on {gethostname()}, in {os.getcwd()}, says: {error}") from None
        experiment = replace(batch.experiment, mechanism=mechanism)
        if batch.subject not in _FIRST:
            _FIRST[batch.subject] = "" if isinstance(mechanism, Pipeline) else digest(mechanism, experiment.inputs[0])
            experiment.settle()
        first = _FIRST[batch.subject]
        rule = rule_of(batch.rule, experiment.distributions(), experiment.at_hand())
        current = RoundResult(rule, RoundCounts(), 0, 0, batch.singly)
        met: Troubles = getattr(mechanism, "troubles", Troubles())
        met.take()  # problems in the first runs of this process are not counted
        for task in batch.tasks:
            kept: KeptOutputs = [[] for _ in experiment.inputs] if batch.keeping else []
            try:
                counts.append(run_by_input(experiment, current, task, kept))
            except MechanismError as error:
                counted = tuple(counts), time.perf_counter() - begun, who, first, str(error)
                return BatchAnswer(*counted, tuple(drawn), tuple(troubles))
            troubles.append(met.take())
            drawn += [tuple(_as_they_travel(side) for side in kept)] if batch.keeping else []
    seconds = time.perf_counter() - begun
    return BatchAnswer(tuple(counts), seconds, who, first, drawn=tuple(drawn), troubles=tuple(troubles))


def _as_they_travel(some: list[Outputs]) -> Outputs | None:
    """Outputs joined, if all are of types that every process knows."""
    if not some or not all(_travels(item) for outputs in some for item in outputs.items):
        return None
    outputs = join(some)
    items = [replace(item, error=None) if isinstance(item, Failure) else item for item in outputs.items]
    return Outputs(outputs.numbers, items, list(outputs.apart))


def _travels(item: Any) -> bool:
    if isinstance(item, np.ndarray | np.generic):
        return item.dtype.kind != "O"
    if type(item) in (list, tuple, set, frozenset):
        return all(map(_travels, item))
    if type(item) is dict:
        return all(_travels(key) and _travels(value) for key, value in item.items())
    return item is None or type(item) in (bool, int, float, complex, str, bytes, Failure)


def digest(mechanism: Mechanism, x: Any) -> str:
    """A digest of the outputs of some runs; empty if they vary too little for two processes to differ for certain.

    Two workers with the same digest have the same generator with the same seed, so their runs are not independent.

    >>> import random
    >>> digest(RunnableObject(lambda x: x, 1), 0), len(digest(RunnableObject(lambda x: random.random(), 1), 0))
    ('', 64)
    """
    rng = np.random.default_rng()  # different in each process: mechanisms that use it draw different outputs there
    outputs = [repr(y) for y in draw(mechanism, x, PROBES, rng)]
    return hashlib.sha256("\n".join(outputs).encode()).hexdigest() if len(set(outputs)) > PROBES // 4 else ""


def named(mechanism: Mechanism) -> SentSubject:
    """The name of a mechanism, from which another process can recreate it.

    >>> named(parse("laplace(2)", dim=3))
    SentSubject(kind='pipeline', name='laplace(2)', extra=3.0, source='', seeded=False)
    >>> named(RunnableObject(lambda x: x, 1))
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: an object in this process's memory cannot be sent to workers: ...<lambda>; ...
    """
    match mechanism:
        case Seeded(inner):
            return replace(named(inner), seeded=True)
        case Pipeline() if mechanism.told_by_its_text:
            return SentSubject("pipeline", str(mechanism), float(mechanism.dim))
        case Loaded(path):
            return SentSubject("python", path, source=_source(path))
        case Program():
            return SentSubject("command", mechanism.command, mechanism.time_limit, settings=_settings(mechanism))
        case Endpoint():
            if mechanism.rate is not None:
                raise InputError("several workers cannot share one rate limit: leave out workers, or the rate")
            return SentSubject("url", mechanism.url, mechanism.time_limit, settings=_settings(mechanism))
        case RunnableObject(function) if _found_by_name(function):
            path = f"{function.__module__}:{function.__qualname__}"
            return SentSubject("python", path, source=_source(path))
    known = describe(mechanism)
    raise InputError(
        "an object in this process's memory cannot be sent to workers: "
        f"{known.get('type', known.get('pipeline', 'this one'))}; "
        "they can run a pipeline, a function of a module, package.module:name, a program or an endpoint"
    )


def _settings(mechanism: Program | Endpoint) -> str:
    """Only non-default settings, so that the name of a simple mechanism stays simple."""
    usual = {one.name: one.default for one in fields(mechanism)}
    given = {name: value for name, value in mechanism.settings().items() if value not in (usual[name], None, {})}
    return json.dumps(given) if given else ""


def _found_by_name(function: Any) -> bool:
    """Whether its name leads to this very function: not if it is from a script, bound to an object, or wrapped."""
    module = getattr(function, "__module__", None)
    found: Any = sys.modules.get(module or "")
    for part in getattr(function, "__qualname__", "<").split("."):
        found = getattr(found, part, None)
    return module != "__main__" and found is function


def _source(path: str) -> str:
    """SHA-256 of a module's file when it was first requested; empty if it has none."""
    name = path.partition(":")[0]
    if name not in _SOURCES:
        file = getattr(sys.modules.get(name), "__file__", None)
        _SOURCES[name] = hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""
    return _SOURCES[name]


@lru_cache(maxsize=4)
def made(subject: SentSubject) -> Mechanism:
    """The mechanism with this name."""
    if subject.seeded:
        return seed_all(made(replace(subject, seeded=False)))
    if subject.kind == "pipeline":
        return parse(subject.name, int(subject.extra), {})
    if subject.kind == "python":
        found = load_python(subject.name)
        if _source(subject.name) != subject.source:
            raise InputError(
                f"there is another version of {subject.name.partition(':')[0]} here: install the same file, and "
                "restart the workers"
            )
        return found
    make: type[Program | Endpoint] = Program if subject.kind == "command" else Endpoint
    return make(subject.name, subject.extra, **json.loads(subject.settings or "{}"))
