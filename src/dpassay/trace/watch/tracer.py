"""Runs of a subject: watched, each with every source of randomness recorded, or natural."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from dpassay.audit.mechanisms.python_objects import awaited
from dpassay.audit.mechanisms.targets import Loaded, RunnableObject, as_mechanism
from dpassay.errors import DpassayError, MechanismError
from dpassay.pipeline.mechanism import Failure
from dpassay.trace.natural.bits import import_ahead, known_bits, shared_states_kept, stream_of
from dpassay.trace.natural.failing import RunError, WatchedTooLong, run_error, time_limited
from dpassay.trace.natural.runs import Natural, finished, kept_error, own
from dpassay.trace.natural.whole import read
from dpassay.trace.watch.numbers import bare, plain
from dpassay.trace.watch.record import Array, DrawRecord, RecordedRun, TooManyDraws
from dpassay.trace.watch.sources import first_state, running, shared_by_torch, watch, watched_generator, watching
from dpassay.values import dataclass


@dataclass
class Tracer:
    """Runs a subject, each time with every source of randomness watched.

    >>> tracer = Tracer(lambda x, rng: x + rng.laplace(scale=2))
    >>> print(*(draw.distribution for draw in tracer.run(3.0).draws))
    laplace
    """

    subject: Any
    seed: int = 0
    time_limit: float | None = None  # seconds of one run
    until: float = field(default=math.inf, init=False)  # when watching ends, by time.monotonic
    runs: int = field(default=0, init=False)
    most_draws: int = 10**9  # of one run: a loop may have no end for a hostile input
    first_draws: tuple[DrawRecord, ...] = field(default=(), init=False)  # of the first run that drew anything
    drawn: dict[str, tuple[int, set[int]]] = field(default_factory=dict, init=False)  # of each input: first, and after
    starting: str = field(default="", init=False)  # the first line that was seen to start another process
    raised: bool = field(default=False, init=False)  # whether a run has ended with an exception of the code

    def __post_init__(self) -> None:
        self.mechanism = as_mechanism(self.subject)
        self._watching = self._keeping = False
        self._restoring = True
        self._said: dict[int, tuple[Any, str]] = {}
        self._errors = np.geterr()

    def run(
        self,
        x: Any,
        replaced: dict[int, Array] | None = None,
        *,
        forced: dict[int, Array] | None = None,
        key: tuple[int, ...] | None = None,
    ) -> RecordedRun:
        """One run on x, with its own generator if the subject takes one.

        `replaced` are the values of draws, `forced` those of numbers with noise in them. With a key, all random bits
        are those of a natural run with this key.
        """
        if time.monotonic() > self.until:
            raise WatchedTooLong
        run = RecordedRun(self.runs, replaced or {}, most=self.most_draws, forced=forced or {})
        bits = nullcontext() if key is None else known_bits(key, self.natural.held, keep=self._restoring)
        rng = watched_generator(np.random.Generator(stream_of(key or (self.seed, self.runs))))
        self.runs += 1
        open_ = running(run) if self._watching else watch(run, self.code)
        with bits:
            with open_, np.errstate(all="ignore"), time_limited(self.time_limit):
                try:
                    output = finished(self.call(own(x), rng))
                except DpassayError:
                    raise
                except (Exception, SystemExit) as error:
                    self.raised = True
                    if not self._keeping or isinstance(error, TooManyDraws):
                        raise run_error(error) from None
                    output, run.reading = kept_error(error)
                try:
                    run.output = plain(output)
                except RecursionError:
                    raise MechanismError(
                        "the output is nested too deeply, or contains itself: return numbers, texts, lists or dicts"
                    ) from None
            if key is not None and run.reading is None:
                run.reading = read(output, bare)  # what this does with a tensor is not what the code does
        self.remember(x, run)
        return run

    def first_states(self, key: tuple[int, ...]) -> set[Any]:
        """Where the generators begin that the code is given, holds or shares with other code, in runs with this key."""
        with known_bits(key, self.natural.held, keep=self._restoring):
            shared = [random._inst, np.random.mtrand._rand, np.random.Generator(stream_of(key))]
            return {first_state(one) for one in (*shared, *shared_by_torch(), *self.natural.held)}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Make several runs without setting up the watching, or restoring the shared generators, for each."""
        with shared_states_kept(), self.prepared():
            before, self._restoring = self._restoring, False
            try:
                yield
            finally:
                self._restoring = before

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Set up the watching for several runs, which are otherwise as single ones. Natural runs must wait."""
        if self._watching:
            yield
            return
        with watching(self.code):
            self._watching = True
            try:
                yield
            finally:
                self._watching = False

    @contextmanager
    def keeping_exceptions(self) -> Iterator[None]:
        """Treat an exception that ends a run as its output, as natural runs do."""
        self._keeping = True
        try:
            yield
        finally:
            self._keeping = False

    @property
    def code(self) -> list[Any]:
        """The subject, and the function within it."""
        inner = self._mechanism.function if isinstance(self._mechanism, RunnableObject) else self._mechanism
        return [self.subject, inner]

    @cached_property
    def natural(self) -> Natural:
        """The same code, unwatched."""
        found = Natural(self.call, subject=[self.subject, *self.code])
        found.errors = self._errors
        return found

    @property
    def _mechanism(self) -> Any:
        return self.mechanism.mechanism if isinstance(self.mechanism, Loaded) else self.mechanism

    def call(self, x: Any, rng: np.random.Generator) -> Any:
        """One call of the code, unwatched; an exception of its own is raised."""
        output = awaited(self._mechanism.sample(x, 1, rng))[0]
        if isinstance(output, Failure):
            raise RunError(output.kind, output.said) if output.error is None else output.error
        return output

    def import_ahead(self) -> None:
        """Import what the code imports when it runs, before the time limit of a trace starts."""
        with shared_states_kept():
            import_ahead(self.code)

    def begin_again(self, seed: int) -> None:
        """Reset, so that the following runs are made as if there had been none before, with this seed."""
        self.seed, self.runs, self.drawn, self.most_draws, self.first_draws = seed, 0, {}, 10**9, ()

    def remember(self, x: Any, run: RecordedRun) -> None:
        """Record how often a run of x drew, and what was drawn first."""
        draws = len(run.draws)
        self.starting = self.starting or "".join(map(str, run.processes[:1]))
        self.first_draws = self.first_draws or tuple(run.draws)
        said = self._said.get(id(x))
        if said is None or said[0] is not x:
            self._said = {**dict(list(self._said.items())[-1:]), id(x): (x, repr(x))}  # of the latest two inputs
            said = self._said[id(x)]
        if (known := self.drawn.get(said[1])) is None:
            self.drawn[said[1]] = (draws, set())
        else:
            known[1].add(draws)
