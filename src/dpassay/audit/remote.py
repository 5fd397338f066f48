"""Mechanisms that run elsewhere and answer JSON with JSON: the protocol, and programs. endpoint.py has those on HTTP.

One that hangs, dies or answers rubbish is a MechanismError. The protocol is in docs/subjects.md.
"""

import json
import math
import os
import re
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, Redrawn, check_number

MOST_AT_ONCE = 1000  # outputs in one request
LONGEST_REPLY = 64 * 2**20  # bytes
LONGEST_TIME = 86_400.0  # seconds
PATIENCE = 0.5  # seconds for a program to end after it was told to


def _plain(x: Any) -> Any:
    """The input in JSON's terms: by hand because json writes no arrays, and numbers as dict keys change to text."""
    if x is None or isinstance(x, str | bool | int | float):
        return x
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biufUO":
        plain = x.astype(float).tolist() if x.dtype.kind == "f" else x.tolist()  # JSON knows doubles only
        return _plain(plain) if x.dtype.kind == "O" else plain
    if isinstance(x, list | tuple):
        return [_plain(y) for y in x]
    if isinstance(x, dict) and all(isinstance(key, str) for key in x):
        return {key: _plain(y) for key, y in x.items()}
    raise InputError(
        f"an input of type {type(x).__name__} cannot be written as JSON; "
        "a program or an endpoint takes text, numbers, lists, arrays and dicts with text as keys"
    )


def _as_json(x: Any) -> str:
    try:
        return json.dumps(_plain(x))
    except RecursionError:
        raise InputError("the input is nested too deeply to be written as JSON, or contains itself") from None


def _value(y: Any, depth: int = 3) -> Any:
    """One output: a list of numbers, or of bools, becomes an array; everything else stays what JSON says it is."""
    if type(y) is not list or not y or not depth:
        return y
    kinds = set(map(type, y))
    if kinds == {list}:
        rows = [_value(row, depth - 1) for row in y]
        return np.stack(rows) if _stackable(rows) else y
    if not (kinds <= {int, float} or kinds == {bool}):
        return y
    if kinds == {int, float} and not all(map(_is_double, y)):
        return y  # an array would round its whole numbers
    try:
        array = np.array(y)
    except OverflowError:
        return y
    return array if array.dtype.kind in "bif" else y


def _is_double(number: float) -> bool:
    return isinstance(number, float) or (abs(number) < 2**1023 and float(number) == number)


def _stackable(values: list[Any]) -> bool:
    shapes = {(v.dtype, v.shape) if isinstance(v, np.ndarray) else None for v in values}
    return len(shapes) == 1 and None not in shapes


def _batch(values: list[Any]) -> Any:
    """Floats, or vectors of them, as an array; others as the list that they are, where each has its own type."""
    if set(map(type, values)) == {float} or (_stackable(values) and values[0].dtype == float and values[0].ndim == 1):
        return np.array(values)
    return values


def short(said: bytes | bytearray) -> str:
    """The beginning of an answer, to be quoted."""
    text = said[:1000].decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 200 else text[:200] + "…")


class Line(Protocol):
    """A way to a mechanism that runs elsewhere, open until it is closed."""

    def exchange(self, request: bytes, n: int) -> bytes:
        """Send a request for n outputs and read the answer."""

    def close(self) -> None:
        """Give back everything that is held."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Remote:
    """What speaks the protocol, over whatever line."""

    replays: ClassVar[bool] = True  # if it makes its randomness from the seed, as it is asked to
    _most: int = field(default=0, init=False, repr=False)  # how many outputs to ask for at once; 0: not known yet
    _line: Line | None = field(default=None, init=False, repr=False)
    _stop: Callable[[], object] | None = field(default=None, init=False, repr=False)

    @property
    def singly(self) -> bool:
        """Whether it answers for one output at a time, as far as it has been asked."""
        return self._most == 1

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        text = _as_json(x)
        if not self._most:
            # This answer is thrown away, so that the outputs of each call depend on its rng alone.
            reply = self._reply(text, 1, 0)
            self._most = MOST_AT_ONCE if "outputs" in reply else 1 if "output" in reply else 0
        outputs: list[Any] = []
        redrawn = False
        while len(outputs) < n:
            size = min(n - len(outputs), max(self._most, 1))
            given = self._outputs(text, size, rng)
            if isinstance(given, Failure) and size > 1:
                redrawn = True
                singles = [self._outputs(text, 1, rng) for _ in range(size)]
            else:
                singles = [given]
            for one in singles:
                outputs += [one] if isinstance(one, Failure) else one
        return Redrawn(outputs) if redrawn else _batch(outputs)

    def _outputs(self, text: str, n: int, rng: np.random.Generator) -> list[Any] | Failure:
        reply = self._reply(text, n, int(rng.integers(2**53)))
        if "error" in reply:
            kind = re.match(r"([A-Za-z_][\w.]*)(?::\s*|$)", reply["error"])
            said = reply["error"][kind.end() :] if kind else reply["error"]
            return Failure(kind[1][:80] if kind else "Error", said[:200])
        outputs = reply["outputs"] if "outputs" in reply else [reply["output"]]
        check_number(len(outputs), n, f'{self} must answer {{"outputs": [...]}} with as many as "n" says')
        return [_value(y) for y in outputs]

    def _reply(self, text: str, n: int, seed: int) -> dict[str, Any]:
        try:
            return self._read(self._ask(f'{{"input": {text}, "n": {n}, "seed": {seed}}}\n'.encode("ascii"), n))
        except BaseException:
            self.close()  # a line that was broken off cannot be used any more
            raise

    def _read(self, said: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(said.decode("utf-8"))
        except (ValueError, RecursionError):
            raise MechanismError(f"{self} answered what is not JSON: {short(said)}; print answers only") from None
        if isinstance(reply, dict):
            right = isinstance(reply["outputs"], list) if "outputs" in reply else "output" in reply
            if isinstance(reply["error"], str) if "error" in reply else right:
                return reply
        answers = '{"outputs": [...]}, {"output": ...} or {"error": "text"}'
        raise MechanismError(f"{self} answered {short(said)}; an answer is {answers}")

    def _ask(self, request: bytes, n: int) -> bytes:
        if self._line is None:
            self._line = self._open()
            self._stop = weakref.finalize(self, self._line.close)
        return self._line.exchange(request, n)

    def _open(self) -> Line:
        raise NotImplementedError

    def close(self) -> None:
        """Give back what is held; the next sample takes it anew."""
        self._line = None
        if self._stop:
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True, eq=False)
class Program(Remote):
    """A program that is kept running and answers a line of JSON with a line of JSON. It starts with the first sample.

    >>> import shlex, sys
    >>> code = "import json, sys; [print(json.dumps({'output': 7}), flush=True) for line in sys.stdin]"
    >>> with Program(shlex.join([sys.executable, "-c", code])) as program:
    ...     program.sample("a text", 3, np.random.default_rng(0))
    [7, 7, 7]
    """

    command: str
    time_limit: float = 30.0

    def __post_init__(self) -> None:
        self.time_limit = seconds_of(self.time_limit)
        self._words()

    def __str__(self) -> str:
        return f"the program {self.command!r}"

    def describe(self) -> dict[str, str]:
        return {"kind": "command", "command": self.command}

    def _open(self) -> Line:
        return _Process(self._words(), str(self), self.time_limit)

    def _words(self) -> list[str]:
        import shlex

        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise InputError(f"the command {self.command!r} cannot be read: {error}") from None
        if not words or "\0" in self.command:
            raise InputError(f"the command must name a program and its arguments, got {self.command!r}")
        return words


def seconds_of(limit: Any) -> float:
    """A time limit, if it is one."""
    try:
        seconds = float(limit)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 < seconds <= LONGEST_TIME:
        raise InputError(f"the time limit must be more than 0 and at most {LONGEST_TIME:g} seconds, got {limit!r}")
    return seconds


def late(who: str, limit: float, n: int) -> str:
    """What is said of one that did not answer in time."""
    asked = f"{who} gave no answer within {limit:g} s when it was asked for n = {n}"
    return f"{asked}; raise the time limit if it is slow, or see that it flushes what it writes"


def check_length(who: str, said: bytes | bytearray) -> None:
    """Refuse an answer that is too long to be kept."""
    if len(said) > LONGEST_REPLY:
        raise MechanismError(f"{who} answered with more than {LONGEST_REPLY // 2**20} MB: {short(said[:1000])}")


class _Process:
    """A running program and the line to it. One thread does all: its three pipes never block it."""

    def __init__(self, words: list[str], name: str, limit: float) -> None:
        import subprocess

        self.name, self.limit = name, limit
        pipe = subprocess.PIPE
        try:
            # In a session of its own: what it starts ends with it, and Ctrl-C is ours to handle.
            self.process = subprocess.Popen(
                words, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise InputError(f"{name} cannot be started: {error.strerror}; check the command") from None
        streams = (self.process.stdin, self.process.stdout, self.process.stderr)
        self.input, self.output, self.errors = (stream.fileno() for stream in streams if stream)
        for end in (self.input, self.output, self.errors):
            os.set_blocking(end, False)
        self.last = b""  # the last answer
        self.heard = bytearray()  # the answer that is being read
        self.complaints = bytearray()  # the end of what it wrote on stderr

    def exchange(self, request: bytes, n: int) -> bytes:
        """Send a line and read a line."""
        import selectors

        deadline = time.monotonic() + self.limit
        if self._hear():
            raise self._broken(f"said {short(self.heard)} without being asked; only answers may go to stdout")
        unsent = memoryview(request)
        complete = False
        with selectors.DefaultSelector() as ready:
            ready.register(self.input, selectors.EVENT_WRITE)
            ready.register(self.output, selectors.EVENT_READ)
            ready.register(self.errors, selectors.EVENT_READ)
            while unsent or not complete:
                if (left := deadline - time.monotonic()) <= 0:
                    raise MechanismError(late(self.name, self.limit, n) + self._said())
                for end in [key.fd for key, _ in ready.select(left)]:
                    if end == self.output:
                        complete |= b"\n" in self._hear()
                    elif end == self.errors:
                        if not self._complain():
                            ready.unregister(end)
                    else:
                        try:
                            unsent = unsent[os.write(end, unsent[:65536]) :]
                        except BrokenPipeError:  # it reads no more; its output will tell why
                            unsent = unsent[:0]
                        if not unsent:
                            ready.unregister(end)
        line, _, rest = self.heard.partition(b"\n")
        if rest:
            raise self._broken(f"answered one request with several lines: {short(self.heard)}")
        self.last, self.heard = bytes(line[:1000]), bytearray()
        return bytes(line)

    def _hear(self) -> bytes:
        try:
            chunk = os.read(self.output, 65536)
        except BlockingIOError:
            return b""
        if not chunk:
            raise self._broken(self._ending())
        self.heard += chunk
        check_length(self.name, self.heard)
        return chunk

    def _complain(self) -> bool:
        """Whether there may be more to come on stderr."""
        try:
            chunk = os.read(self.errors, 65536)
        except BlockingIOError:
            return True
        self.complaints = (self.complaints + chunk)[-4000:]
        return bool(chunk)

    def _ending(self) -> str:
        from subprocess import TimeoutExpired

        try:
            code = self.process.wait(1)
        except TimeoutExpired:
            return "closed its output"
        return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"

    def _broken(self, what: str) -> MechanismError:
        for _ in range(4):  # a pipe holds no more than that
            self._complain()
        return MechanismError(f"{self.name} {what}{self._said()}")

    def _said(self) -> str:
        last = bytes(self.heard) or self.last
        errors = self.complaints.decode("utf-8", "replace").strip()
        answer = f"; it said last {short(last)}" if last else "; it had not answered before"
        return answer + (f", and on stderr {errors[-500:]!r}" if errors else "")

    def close(self) -> None:
        """Close the pipes, terminate, kill: each only if the one before did not do."""
        import signal
        import subprocess

        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        for then in (signal.SIGTERM, signal.SIGKILL):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
                return
            with suppress(OSError):  # it ended just now
                os.killpg(self.process.pid, then)
        self.process.wait()
