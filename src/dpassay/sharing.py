"""An audit's tasks on other processes and machines. Mechanisms travel by what they are called, rules as data.

A parcel holds some tasks of one epoch. Whoever gets it makes the mechanism anew from its text, import path, command or
address, plays the tasks and sends their counts back. A worker of another version refuses.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from dpassay.compute.crew import Crew
from dpassay.compute.pace import Pace
from dpassay.errors import InputError, MechanismError
from dpassay.expression import parse
from dpassay.game import KEPT, Epoch, Table
from dpassay.journal import guesser_data, guesser_of
from dpassay.learning import Aim, Rule
from dpassay.mechanism import Mechanism
from dpassay.outputs import Outputs
from dpassay.pipeline import Pipeline
from dpassay.playing import Counts, Player, Task, here, play
from dpassay.remote import Endpoint, Program
from dpassay.statistics import Tally
from dpassay.subject import Adapted, Loaded, describe, load_python

MOST_TASKS = 1 << 14  # of a parcel
# A worker plays one parcel at a time: a mechanism need not bear two calls at once.
_PLAYING = threading.Lock()


@dataclass(frozen=True)
class Subject:
    """A mechanism by what it is called."""

    kind: str
    name: str
    extra: float = 0.0  # a pipeline's dimension, a program's time limit


@dataclass(frozen=True)
class Parcel:
    """Tasks of one epoch, with all that it takes to play them."""

    version: str
    subject: Subject
    inputs: tuple[Any, ...]
    aim: Aim
    seed: int
    number: int
    device: str
    guesser: dict[str, Any]
    thresholds: tuple[float, float, float]
    singly: bool
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Answer:
    """The counts of a parcel's tasks, how long they took, and what the mechanism said if it broke off behind them."""

    counts: tuple[Counts, ...]
    seconds: float
    broke: str = ""


def sharing(crew: Crew) -> Player:
    """A player that hands tasks to a crew. The first ones are played here: they are compared with the law."""

    def player(
        table: Table, epoch: Epoch, tasks: Iterator[Task], kept: list[list[Outputs]]
    ) -> Iterator[tuple[Task, Counts | MechanismError]]:
        known = table.laws() is not None
        for task in tasks:
            if not known or task.before >= 4 * KEPT:
                yield from _handed_out(crew, table, epoch, chain([task], tasks))
                return
            yield from here(table, epoch, iter([task]), kept)

    return player


def _handed_out(
    crew: Crew, table: Table, epoch: Epoch, tasks: Iterator[Task]
) -> Iterator[tuple[Task, Counts | MechanismError]]:
    pace = Pace(MOST_TASKS)
    under_way: list[tuple[Task, ...]] = []

    def parcels() -> Iterator[Parcel]:
        while some := tuple(islice(tasks, pace.number)):
            under_way.append(some)
            yield packed(table, epoch, some)

    answers = crew.map(played, parcels())
    with closing(answers):  # type: ignore[type-var]
        for answer in answers:
            sent = under_way.pop(0)
            pace.took(len(sent), answer.seconds)
            yield from zip(sent, answer.counts, strict=False)
            if answer.broke:
                yield sent[len(answer.counts)], MechanismError(answer.broke)
                return


def packed(table: Table, epoch: Epoch, tasks: tuple[Task, ...]) -> Parcel:
    """Tasks as they travel."""
    from dpassay import __version__

    rule = epoch.rule
    return Parcel(
        version=__version__,
        subject=named(table.mechanism),
        inputs=table.inputs,
        aim=table.aim,
        seed=table.seed,
        number=table.number,
        device=table.device,
        guesser=guesser_data(rule.guesser),
        thresholds=(rule.low, rule.high, rule.grain),
        singly=epoch.singly,
        tasks=tasks,
    )


def played(parcel: Parcel) -> Answer:
    """Play a parcel's tasks: what a worker does."""
    from dpassay import __version__

    if parcel.version != __version__:
        raise InputError(f"a worker has dpassay {__version__}, not {parcel.version}: install the same on all of them")
    counts: list[Counts] = []
    with _PLAYING:
        begun = time.perf_counter()
        table = Table(made(parcel.subject), parcel.inputs, parcel.aim, parcel.seed, parcel.number, device=parcel.device)
        low, high, grain = parcel.thresholds
        guesser = guesser_of(parcel.guesser, table.laws())
        rule = Rule(guesser, low, high, 0, 0, 0.0, grain, parcel.aim.candidates)
        epoch = Epoch(rule, Tally(), 0, 0, parcel.singly)
        for task in parcel.tasks:
            try:
                counts.append(play(table, epoch, task, []))
            except MechanismError as error:
                return Answer(tuple(counts), time.perf_counter() - begun, str(error))
    return Answer(tuple(counts), time.perf_counter() - begun)


def named(mechanism: Mechanism) -> Subject:
    """What a mechanism is called, so that another process can make it anew.

    >>> named(parse("laplace(2)", dim=3))
    Subject(kind='pipeline', name='laplace(2)', extra=3.0)
    >>> named(Adapted(lambda x: x, 1))
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: an object of this process cannot travel to workers: dpassay.sharing.<lambda>; ...
    """
    match mechanism:
        case Pipeline() if not any(getattr(stage, "function", None) for stage in mechanism.stages):
            return Subject("pipeline", str(mechanism), float(mechanism.dim))
        case Loaded(path):
            return Subject("python", path)
        case Program():
            return Subject("command", mechanism.command, mechanism.time_limit)
        case Endpoint():
            return Subject("url", mechanism.url, mechanism.time_limit)
        case Adapted(function) if _importable(function):
            return Subject("python", f"{function.__module__}:{function.__qualname__}")
    known = describe(mechanism)
    raise InputError(
        f"an object of this process cannot travel to workers: {known.get('type', known.get('pipeline', 'this one'))}; "
        "they can run a pipeline, a function of a module, package.module:name, a program or an endpoint"
    )


def _importable(function: Any) -> bool:
    """Whether others find a function by its name: not if it is of a notebook or script, or has no name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    return module not in (None, "__main__") and "<" not in name


@lru_cache(maxsize=4)
def made(subject: Subject) -> Mechanism:
    """The mechanism of that name."""
    if subject.kind == "pipeline":
        return parse(subject.name, int(subject.extra), {})
    if subject.kind == "python":
        return load_python(subject.name)
    make = {"command": Program, "url": Endpoint}[subject.kind]
    return make(subject.name, subject.extra)
