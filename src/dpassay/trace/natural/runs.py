"""Natural runs: the code as it is, unwatched, in processes of its own that end afterwards.

A process is a copy of this one, so it has the subject in its original state, and what its runs change is
lost with it. Runs that share a process are independent only if no run changes what a later one does: `remembers` checks
this with the same random bits. Needs only numpy.
"""

from __future__ import annotations

import copy
import inspect
import marshal
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from dpassay.errors import MechanismError
from dpassay.trace.natural.bits import StatedSeed, generators_of, known_bits, shared_states_kept, stream_of
from dpassay.trace.natural.budget import charge
from dpassay.trace.natural.failing import RunError, time_limited
from dpassay.trace.natural.seeds import fixed_seeds
from dpassay.trace.natural.whole import WholeReading, read

Call = Callable[[Any, np.random.Generator], Any]
Key = tuple[int, ...]
FORKS = hasattr(os, "fork")
AT_ONCE, PATIENCE = 16, 1.0  # processes; seconds beyond the limit for runs that have begun
# What torch raises in a copy of a process that has used a GPU, or autograd where there is one.
_NO_COPIES = ("fork-based multiprocessing", "in forked subprocess")
_IMMUTABLE = {str, bytes, int, float, bool, type(None)}
MANY, MOMENT = 1_500, 0.1  # runs that may use up what the code has, such as a budget; seconds for them
ENDLESS = "a run that exceeds its time limit"  # instead of the path of an output
MEASURED = 20  # runs of a process that show how long one takes
FREE = 128  # copies that do not count: a verdict may need this many, however large this process is


def own(x: Any) -> Any:
    """A copy of an input, which the code may change; the input itself where it cannot be copied."""
    if isinstance(x, str | bytes | int | float | bool | None):
        return x
    if (type(x) is list or type(x) is tuple) and _IMMUTABLE.issuperset(map(type, x)):
        return x[:]
    if hasattr(x, "detach") and hasattr(x, "clone"):
        return x.clone()
    try:
        return copy.deepcopy(x)
    except Exception:  # whatever its own copying raises
        return x


def raised(error: BaseException) -> WholeReading:
    """An exception as an output: it can be told from others by its type and its message."""
    try:
        said = str(error)[:2000]
    except Exception:
        said = ""
    return WholeReading(("exception", "exception.message"), (type(error).__name__, "str"), (None, said))


def kept_error(error: BaseException) -> tuple[str, WholeReading]:
    """An exception as the output of a watched run, in words and read whole."""
    reading = raised(error)
    return f"{type(error).__name__} {reading.values[1]}", reading


def finished(output: Any) -> Any:
    """What a generator yields, as a list; anything else unchanged."""
    return list(output) if inspect.isgenerator(output) else output


def run_naturally(call: Call, x: Any, key: Key, rng: np.random.Generator | None = None) -> WholeReading:
    """One run with its own generator, by default the one that the key determines."""
    rng = np.random.Generator(stream_of(key)) if rng is None else rng
    try:
        return read(finished(call(own(x), rng)))
    except (Exception, SystemExit) as error:
        return raised(error)


def generators(key: Key, many: int) -> Iterator[np.random.Generator]:
    """Independent generators, each with its own seed; hashing a key for each would take longer than many runs do.

    >>> first, second = generators((0, 1), 2)
    >>> first.random() == second.random(), first.spawn(1)[0].random() == second.spawn(1)[0].random()
    (False, False)
    """
    bits = np.random.PCG64([*key, 1])  # not those from which everything else starts
    for words in bits.random_raw(4 * many).reshape(-1, 4):
        own = partial(np.random.SeedSequence, words.tolist())
        yield np.random.Generator(np.random.PCG64(StatedSeed(words, own)))


class Natural:
    """Makes natural runs of a subject. `until` is the time at which no more are begun, by time.monotonic.

    >>> natural = Natural(lambda x, rng: x + rng.integers(1))
    >>> [run.values[0] for run in natural.readings(10, [(0, 1), (0, 2)])]
    [10.0, 10.0]
    """

    def __init__(self, call: Call, until: float = float("inf"), subject: Any = None) -> None:
        self.call, self.until = call, until
        self.errors = np.geterr()  # what numpy does about overflow, for the code; an analysis ignores it
        self.held = generators_of(call if subject is None else subject)
        seeds = fixed_seeds(call if subject is None else subject)
        self.fixed, self.seeded = ([one for one in seeds if bool(one.line) is known] for known in (True, False))
        self.runs = self.copies = 0
        self.pace: float | None = None  # seconds of work for a run, with its share of the process; None if not known
        self.limit: float | None = None  # seconds of one run, while that is checked
        self.worn = False  # whether a run raises an exception after many others, and not without them
        self.keeps = False  # whether it repeats an earlier answer
        self.kept: bool | None = None  # whether it gave some in an earlier trace; None if that was not looked at

    @property
    def twice(self) -> Natural:
        """The same with two calls in a run, whose input is a pair of inputs."""
        found = copy.copy(self)
        found.call, found.runs = lambda pair, rng: [own(finished(self.call(x, rng))) for x in pair], 0
        return found

    def counted(self, inputs: Sequence[Any], keys: Sequence[Sequence[Key]], apart: bool) -> list[list[WholeReading]]:
        """Independent runs of each input, one per key, until the time is over.

        Each run has its own process (`apart`), or the runs of an input share one, where no run changes what a later
        one does. Seeds that the code has fixed are as in a new process.
        """
        if apart:
            return [self.readings(x, each, apart=True) for x, each in zip(inputs, keys, strict=True)]
        if time.monotonic() > self.until:
            return [[] for _ in inputs]
        asked = [[(x, key) for key in each] for x, each in zip(inputs, keys, strict=True)]
        work = [
            (lambda one=one: self._anew(one)) if self.fixed else (lambda one=one: self._of(one, False)) for one in asked
        ]
        found = self._each_elsewhere(*work)
        self.runs += sum(map(len, found))
        return found

    def readings(self, x: Any, keys: Sequence[Key], *, apart: bool = False) -> list[WholeReading]:
        """The outputs of runs of x, one for each key, until the time is over.

        Runs share a process, or have one each (`apart`), in which seeds that the code has fixed are as in a new
        process. Each has its own known bits.
        """
        found: list[WholeReading] = []
        if apart:
            for at in range(0, len(keys), AT_ONCE):
                if time.monotonic() > self.until:
                    break
                work = [lambda key=key: self._anew([(x, key)]) for key in keys[at : at + AT_ONCE]]
                found += self.elsewhere(*work)
        elif time.monotonic() <= self.until:
            found = self.elsewhere(lambda: self._of([(x, key) for key in keys], True))
        self.runs += len(found)
        return found

    def remembers(self, pair: Sequence[Any], keys: Sequence[Key]) -> bool | None:
        """Whether runs change what later ones do: with the same bits, a run gives a different output after others.

        None if the time is over before that is known.
        """
        asked = [(x, key) for x in pair for key in keys]
        history = [(one, (*keys[0], 1 + k)) for k, one in enumerate([*pair, *pair])]
        work: list[Callable[[], list[Any]]] = [lambda one=one: self._of([one], True) for one in asked]  # type: ignore[misc]
        work.append(lambda: self._of([*history, *asked], True)[len(history) :])
        *each, later, many = self._each_elsewhere(*work, lambda: self._many(pair[0], keys[0]))
        first = [one for found in each for one in found]
        self.runs += 2 * len(asked) + len(history) + 2
        if len(later) < len(asked):
            return None if time.monotonic() >= self.until else True
        exceptions = ["exception" in one.paths for one in many]
        self.worn = exceptions == [False, True]
        pairs = [*zip(first, later, strict=True), *pairwise(many)]
        return not all(one.same(its) for one, its in pairs)

    def keeps_answers(self, x: Any, y: Any, keys: Sequence[Key]) -> bool:
        """Whether a run of y gives a different output after a run of y than after one of x, with the same bits.

        Code that keeps its answers does: runs are then not independent, and those that were made before matter.
        """
        before, key = keys
        work: list[Callable[[], list[Any]]] = [
            lambda one=one: self._of([(one, before), (y, key)], True)[1:]  # type: ignore[misc]
            for one in (x, x, y)
        ]
        found = self.elsewhere(*work)
        self.runs += 2 * len(work)
        return len(found) == 3 and found[0].same(found[1]) and not found[0].same(found[2])

    def _many(self, x: Any, key: Key) -> list[Any]:
        """A run, and the same again after as many others as take a moment."""
        end, asked = time.monotonic() + MOMENT, [(x, (*key, 2 + k)) for k in range(MANY)]
        found = self._of([(x, key)], True)
        for at in range(0, MANY, AT_ONCE):
            if time.monotonic() > end:
                break
            self._of(asked[at : at + AT_ONCE], False)
        return found + self._of([(x, key)], True)

    def _anew(self, asked: Sequence[tuple[Any, Key]]) -> list[Any]:
        found: list[Any] = []
        with shared_states_kept():
            for x, key in asked:
                with known_bits(key, self.held, keep=False):
                    for seed in self.fixed:
                        seed.restart()
                    found.append(run_naturally(self.call, x, key).data())
        return found

    def _of(self, asked: Sequence[tuple[Any, Key]], each: bool) -> list[Any]:
        found: list[Any] = []
        own_bits = shared_states_kept(), nullcontext() if each else known_bits(asked[0][1], self.held, keep=False)
        with own_bits[0], own_bits[1]:
            several = repeat(None) if each else generators(asked[0][1], len(asked))
            for (x, key), rng in zip(asked, several, strict=False):
                if time.monotonic() > self.until:
                    break
                with known_bits(key, self.held, keep=False) if each else nullcontext(), np.errstate(**self.errors):
                    if self.limit is None:
                        found.append(run_naturally(self.call, x, key, rng).data())
                        continue
                    try:
                        with time_limited(self.limit):
                            reading = run_naturally(self.call, x, key, rng)
                    except RunError as error:
                        return [WholeReading((ENDLESS,), ("str",), (str(error),)).data()]
                    found.append(reading.data())
        return found

    def elsewhere(self, *work: Callable[[], list[Any]]) -> list[WholeReading]:
        """The outputs of pieces of work, each in a copy of this process, or in this one if it cannot be copied."""
        return [one for found in self._each_elsewhere(*work) for one in found]

    def _each_elsewhere(self, *work: Callable[[], list[Any]]) -> list[list[WholeReading]]:
        if not FORKS:
            return [[WholeReading(*parts) for parts in one()] for one in work]
        sys.stdout.flush()
        sys.stderr.flush()
        before = time.process_time()
        children = [_copy(one) for one in work]
        if self.copies < FREE:
            charge(copying=time.process_time() - before)
        self.copies += len(children)
        found: list[list[WholeReading]] = []
        try:
            for _, pipe in children:
                said = self._said(pipe)
                worked, results = (0.0, []) if said is None else marshal.loads(said)
                charge(elsewhere=worked)
                _check_copied(results)
                if results and results[0][0] == (ENDLESS,):
                    raise RunError("TimeLimit", "", whole=results[0][2][0])
                found.append([WholeReading(*parts) for parts in results])
                self.pace = worked / len(results) if len(results) >= MEASURED else self.pace
        finally:
            for child, pipe in children:
                os.close(pipe)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        return found

    def _said(self, pipe: int) -> bytes | None:
        """What the copy wrote; None if it ended without writing, or too late."""
        parts: list[bytes] = []
        while True:
            left = max(0.0, self.until + PATIENCE - time.monotonic()) if self.until < float("inf") else None
            if not select.select([pipe], [], [], left)[0]:
                return None
            part = os.read(pipe, 1 << 20)
            if not part:
                return b"".join(parts) or None
            parts.append(part)


def _check_copied(results: Sequence[Any]) -> None:
    """Raise an error if torch refused to run in a copy, because that is unrelated to the inputs."""
    for _, kinds, values in results:
        if "RuntimeError" in kinds and any(mark in str(values[-1]) for mark in _NO_COPIES):
            raise MechanismError(
                "its runs need copies of this process, in which torch cannot run because a GPU is in use: "
                "hide the GPU (CUDA_VISIBLE_DEVICES= in the environment) and trace again"
            )


def _copy(work: Callable[[], list[Any]]) -> tuple[int, int]:
    """A copy of this process that does some work: the process, and where to read its result."""
    mine, its = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: none of them is needed in the copy
        child = os.fork()
    if child == 0:
        os.close(mine)
        _work_and_end(work, its)
    os.close(its)
    return child, mine


def _work_and_end(work: Callable[[], list[Any]], pipe: int) -> None:
    """In the copy: work, write the result, and end without running this process's exit handlers."""
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)  # what the code prints was seen in the watched runs
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(1)  # the threads of this process are not in its copy
        results = work()
        data = marshal.dumps((sum(os.times()[:4]), results))
        while data:
            data = data[os.write(pipe, data) :]
    except MemoryError:
        pass
    finally:
        os._exit(0)
