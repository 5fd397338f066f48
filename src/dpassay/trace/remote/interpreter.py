"""Traces of code that runs in another Python interpreter, with the versions that it needs.

The other interpreter needs numpy but not dpassay: the files that watch a run are copied for it. What was drawn and
how it was used is sent back and judged here.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from dpassay.audit.remote.lines import seconds_of
from dpassay.audit.remote.process import Died, Process
from dpassay.errors import InputError, MechanismError, in_one_line
from dpassay.trace.natural.budget import charge
from dpassay.trace.natural.failing import RunError, SubjectGone, WatchedTooLong
from dpassay.trace.natural.runs import Key
from dpassay.trace.natural.whole import WholeReading
from dpassay.trace.remote.wire import Receiver, Sender, unpacked
from dpassay.trace.watch.record import Array, RecordedRun
from dpassay.trace.watch.tracer import Tracer

_START = """
import sys
if sys.version_info < (3, 10):
    sys.exit("a trace needs Python 3.10 or newer, and this is " + sys.version.split()[0])
try:
    import numpy
except ImportError:
    sys.exit("a trace needs numpy there: " + sys.executable + " -m pip install numpy")
sys.path.insert(0, {folder!r})
import dpassay.trace.remote.agent as agent
sys.path.remove({folder!r})
sys.path.insert(0, "")
agent.main({path!r})
"""


class RemoteTracer(Tracer):
    """Makes the runs of `path`, package.module:name, in another interpreter, the current folder first.

    `time_limit` is how long one run may take, in seconds. Close it when it is no longer needed.
    """

    def __init__(self, interpreter: str, path: str, seed: int = 0, time_limit: float = 60.0) -> None:
        self.until, self.raised, self._keeping, self._said = math.inf, False, False, {}
        self.subject, self.seed, self.runs, self.drawn, self.first_draws, self._gone = path, seed, 0, {}, (), ""
        self._folder = _lent()
        start = _START.format(folder=self._folder.name, path=path)
        words = [interpreter, "-c", start.strip()]
        try:
            self._process = Process(words, f"the interpreter {interpreter}", seconds_of(time_limit))
        except InputError:
            self._folder.cleanup()
            raise
        self._ending = weakref.finalize(self, _end, self._process, self._folder)
        self._sender, self._receiver = Sender(), Receiver()
        try:
            answer = self._ask({})
        except MechanismError as error:
            self.close()
            raise InputError(str(error)) from None
        if "error" in answer:
            self.close()
            raise InputError(f"{path} cannot be run by {interpreter}: {in_one_line(*answer['error'][:2])}")
        self.versions: dict[str, str] = answer["ready"]
        self.mechanism: Any = SimpleNamespace(replays=answer["replays"], describe=self._describe)

    def run(
        self,
        x: Any,
        replaced: dict[int, Array] | None = None,
        *,
        forced: dict[int, Array] | None = None,
        key: tuple[int, ...] | None = None,
    ) -> RecordedRun:
        if time.monotonic() > self.until:
            raise WatchedTooLong
        asked = {"replaced": replaced or {}, "forced": forced or {}, "key": key, "keeping": self._keeping}
        number, self.runs = self.runs, self.runs + 1
        try:
            found = self.answer("run", number, self.seed, x, asked)
        except RunError:
            self.raised = True
            raise
        assert isinstance(found, RecordedRun)
        self.remember(x, found)
        return found

    @contextmanager
    def watching(self) -> Iterator[None]:
        yield

    prepared = watching

    @cached_property
    def natural(self) -> Any:
        return _NaturalElsewhere(self)

    def answer(self, *asked: Any) -> Any:
        """What the other interpreter answers to a question."""
        answer = self._ask(self._sender.message(asked))
        if "error" in answer:
            raise RunError(*answer["error"])
        return self._receiver.value(answer)

    def import_ahead(self) -> None:
        """Do nothing: the other interpreter imported them when it loaded the code."""

    def close(self) -> None:
        """End the other interpreter."""
        self._ending()

    def _describe(self) -> dict[str, str]:
        return {"kind": "python", "path": str(self.subject)}

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._gone:
            raise SubjectGone(self._gone)
        began = time.monotonic()
        try:
            said = self._process.exchange(json.dumps(message).encode() + b"\n", 1).said
        except Died as error:
            said_last = bytes(self._process.complaints).decode("utf-8", "replace").strip()[-500:]
            self._gone = f"{self._process.name} {error.how} in a run of {self.subject}" + f": {said_last}" * bool(
                said_last
            )
            raise SubjectGone(self._gone) from None
        except MechanismError as error:  # no answer in time; a later answer must not be used
            self._gone = str(error)
            raise SubjectGone(self._gone) from None
        finally:
            charge(elsewhere=time.monotonic() - began)
        try:
            answer = json.loads(said or b"")
        except ValueError:
            raise MechanismError(f"the other interpreter answered {said!r:.200}") from None
        assert isinstance(answer, dict)
        return answer


class _Fixed(NamedTuple):
    """A seed that is fixed in the other interpreter's code."""

    name: str
    file: str
    line: int


class _NaturalElsewhere:
    """Natural runs in the other interpreter."""

    def __init__(self, tracer: RemoteTracer) -> None:
        self.tracer, self.runs, self.until, self.calls = tracer, 0, math.inf, 1
        self.keeps, self.kept, self.pace, self.worn = False, None, None, False
        seeds = [_Fixed(*one) for one in tracer.answer("fixed")]  # which are started anew there
        self.fixed, self.seeded = ([one for one in seeds if bool(one.line) is known] for known in (True, False))

    @property
    def twice(self) -> _NaturalElsewhere:
        found = copy.copy(self)
        found.calls, found.runs = 2, 0
        return found

    def readings(self, x: Any, keys: Sequence[Key], *, apart: bool = False) -> list[WholeReading]:
        found = unpacked(self.tracer.answer("readings", x, list(keys), apart, self._left))
        self.runs += len(found)
        return found

    def counted(self, inputs: Sequence[Any], keys: Sequence[Sequence[Key]], apart: bool) -> list[list[WholeReading]]:
        asked = list(inputs), [list(each) for each in keys], apart, self.calls
        found = [unpacked(one) for one in self.tracer.answer("counted", *asked, self._left)]
        self.runs += sum(map(len, found))
        return found

    def remembers(self, pair: Sequence[Any], keys: Sequence[Key]) -> bool | None:
        found: bool | None = self.tracer.answer("remembers", tuple(pair), list(keys), self._left)
        return found

    def keeps_answers(self, x: Any, y: Any, keys: Sequence[Key]) -> bool:
        return bool(self.tracer.answer("keeps", x, y, list(keys), self._left))

    @property
    def _left(self) -> float | None:
        return None if self.until == math.inf else max(0.0, self.until - time.monotonic())


def _lent() -> tempfile.TemporaryDirectory[str]:
    """A folder with the files that watch a run, as a package that imports nothing else."""
    folder = tempfile.TemporaryDirectory(prefix="dpassay-trace-")
    here, package = Path(__file__).parents[1], Path(folder.name, "dpassay")
    shutil.copytree(here, package / "trace", ignore=shutil.ignore_patterns("__pycache__"))
    for each in (package, package / "trace"):
        (each / "__init__.py").write_text("")
    for name in ("errors.py", "values.py"):
        shutil.copy(here.parent / name, package)
    return folder


def _end(process: Process, folder: tempfile.TemporaryDirectory[str]) -> None:
    process.close()
    folder.cleanup()
