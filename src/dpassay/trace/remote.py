"""Traces of code that runs in another Python interpreter, with the versions that it needs.

The other interpreter needs numpy, but not dpassay: the files that watch a run are copied for it. What was drawn and
what became of it is sent back, and judged here.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dpassay.audit.lines import seconds_of
from dpassay.audit.process import Died, Process
from dpassay.errors import InputError, MechanismError, in_one_line
from dpassay.trace.failing import RunError, SubjectGone
from dpassay.trace.record import Array, Run
from dpassay.trace.replay import Tracer
from dpassay.trace.wire import Receiver, Sender

_START = """
import sys
if sys.version_info < (3, 10):
    sys.exit("a trace needs Python 3.10 or newer, and this is " + sys.version.split()[0])
try:
    import numpy
except ImportError:
    sys.exit("a trace needs numpy there: " + sys.executable + " -m pip install numpy")
sys.path.insert(0, {folder!r})
import dpassay.trace.agent as agent
sys.path.remove({folder!r})
sys.path.insert(0, "")
agent.main({path!r})
"""


class RemoteTracer(Tracer):
    """Makes the runs of `path`, package.module:name, in another interpreter, the current folder first.

    `time_limit` is how long one run may take, in seconds. Close it when it is no longer needed.
    """

    def __init__(self, interpreter: str, path: str, seed: int = 0, time_limit: float = 60.0) -> None:
        self.subject, self.seed, self.runs, self.drawn, self._gone = path, seed, 0, {}, ""
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

    def run(self, x: Any, replaced: dict[int, Array] | None = None) -> Run:
        answer = self._ask(self._sender.message((self.runs, self.seed, x, replaced or {})))
        self.runs += 1
        if "error" in answer:
            raise RunError(*answer["error"])
        found = self._receiver.value(answer)
        assert isinstance(found, Run)
        self.remember(x, len(found.draws))
        return found

    def close(self) -> None:
        """End the other interpreter."""
        self._ending()

    def _describe(self) -> dict[str, str]:
        return {"kind": "python", "path": str(self.subject)}

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._gone:
            raise SubjectGone(self._gone)
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
        try:
            answer = json.loads(said or b"")
        except ValueError:
            raise MechanismError(f"the other interpreter answered {said!r:.200}") from None
        assert isinstance(answer, dict)
        return answer


def _lent() -> tempfile.TemporaryDirectory[str]:
    """A folder with the files that watch a run, as a package that imports nothing else."""
    folder = tempfile.TemporaryDirectory(prefix="dpassay-trace-")
    here, package = Path(__file__).parent, Path(folder.name, "dpassay")
    (package / "trace").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "trace" / "__init__.py").write_text("")
    shutil.copy(here.parent / "errors.py", package)
    for file in here.glob("*.py"):
        if file.name != "__init__.py":
            shutil.copy(file, package / "trace")
    return folder


def _end(process: Process, folder: tempfile.TemporaryDirectory[str]) -> None:
    process.close()
    folder.cleanup()
