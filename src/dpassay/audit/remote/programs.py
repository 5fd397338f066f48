"""Mechanisms that run elsewhere and exchange JSON: the protocol, and programs. endpoint.py has those behind HTTP.

One that hangs or gives invalid answers is a MechanismError. docs/subjects.md describes the protocol.
"""

import json
import re
import weakref
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import field
from threading import Event
from typing import Any, Self, TypeAlias

import numpy as np

from dpassay.audit.remote.lines import Line, Lines, Reply, Troubles, number_of_lines, seconds_of, short
from dpassay.audit.remote.process import Died, Process
from dpassay.audit.remote.timing import check_time
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, Redrawn, RepeatedRequest, check_number
from dpassay.values import dataclass

MOST_AT_ONCE = 1000  # outputs in one request

RequestMaker: TypeAlias = Callable[[int, int], bytes]  # takes the number of outputs and the seed
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_NO_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)


def plain_value(x: Any) -> Any:
    """The input as JSON types. Not by json, which writes no arrays and turns numeric dict keys into text."""
    if x is None or isinstance(x, str | bool | int | float):
        return x
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biufUO":
        plain = x.astype(float).tolist() if x.dtype.kind == "f" else x.tolist()  # JSON has only doubles
        return plain_value(plain) if x.dtype.kind == "O" else plain
    if isinstance(x, list | tuple):
        return [plain_value(y) for y in x]
    if isinstance(x, dict) and all(isinstance(key, str) for key in x):
        return {key: plain_value(y) for key, y in x.items()}
    raise InputError(
        f"the input {x!r:.60} cannot be written as JSON; "
        "a program or an endpoint takes text, numbers, lists, arrays and dicts with text as keys"
    )


def as_json(x: Any) -> str:
    """The input as JSON."""
    try:
        return json.dumps(plain_value(x))
    except RecursionError:
        raise InputError("the input is nested too deeply to be written as JSON, or contains itself") from None


def _value(y: Any, depth: int = 3) -> Any:
    """One output: a list of numbers, or of bools, becomes an array; everything else stays as JSON has it."""
    if type(y) is not list or not y or not depth:
        return y
    kinds = set(map(type, y))
    if kinds == {list}:
        rows = [_value(row, depth - 1) for row in y]
        return np.stack(rows) if _stackable(rows) else y
    if not (kinds <= {int, float} or kinds == {bool}):
        return y
    if kinds == {int, float} and not all(map(_is_double, y)):
        return y  # an array would round its integers
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
    """Floats, or vectors of them, as an array; others as a list, in which each has its own type."""
    if set(map(type, values)) == {float} or (_stackable(values) and values[0].dtype == float and values[0].ndim == 1):
        return np.array(values)
    return values


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result of a request: its outputs, if any, and the failure of the first attempt, if it failed."""

    outputs: list[Any]
    failed: Failure | None = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Remote:
    """The protocol, over any kind of line."""

    _most: int = field(default=0, init=False, repr=False)  # how many outputs to request at once; 0: not known yet
    _lines: Lines | None = field(default=None, init=False, repr=False)
    _stop: Callable[[], object] | None = field(default=None, init=False, repr=False)
    _troubles: Troubles = field(default_factory=Troubles, init=False, repr=False)

    @property
    def replays(self) -> bool:
        """Whether it derives its randomness from the seed, as requested."""
        return True

    @property
    def singly(self) -> bool:
        """Whether it answers with one output at a time, as far as is known."""
        return self._most == 1

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        request = self._request_for(x)
        if not self._most:
            # This answer is discarded, so that the outputs of each call depend only on its rng.
            reply = self._exchange(request(1, 0), 1)
            said = {} if reply.said is None else self._read(reply.said)
            self._most = MOST_AT_ONCE if "outputs" in said else 1 if "output" in said else 0
        step = max(self._most, 1)
        sizes = [min(step, n - start) for start in range(0, n, step)]
        answers = self._ask_all([(request, size) for size in sizes], rng)
        outputs: list[Any] = []
        redrawn = repeated = False
        for size, answer in zip(sizes, answers, strict=True):
            repeated |= answer.failed is not None and bool(answer.outputs)
            singles = [answer]
            if not answer.outputs and size > 1:
                redrawn = True
                singles = self._ask_all([(request, 1)] * size, rng)
            for one in singles:
                outputs += one.outputs or [one.failed]
        return Redrawn(outputs) if redrawn else RepeatedRequest(outputs) if repeated else _batch(outputs)

    def sample_each(self, inputs: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        """One output for each input, in order; a failed first attempt counts as a failure, see `Reply`."""
        requests: dict[int, RequestMaker] = {id(x): self._request_for(x) for x in {id(x): x for x in inputs}.values()}
        answers = self._ask_all([(requests[id(x)], 1) for x in inputs], rng)
        return [one.outputs[0] if one.failed is None else one.failed for one in answers]

    @property
    def troubles(self) -> Troubles:
        """Problems that were recovered from, to be counted for all processes together."""
        return self._troubles

    def notes(self) -> list[str]:
        """What a verdict should mention: problems that were recovered from."""
        return self._troubles.sentences(str(self))

    def _request_for(self, x: Any) -> RequestMaker:
        """The requests for an input, by the number of outputs and the seed."""
        text = as_json(x)
        return lambda n, seed: f'{{"input": {text}, "n": {n}, "seed": {seed}}}\n'.encode("ascii")

    def _ask_all(self, asked: Sequence[tuple[RequestMaker, int]], rng: np.random.Generator) -> list[_Answer]:
        """The answers in order, over as many lines as there are; seeds are assigned in order too."""
        requests = [(request(n, int(rng.integers(2**53))), n) for request, n in asked]
        if self._width == 1 or len(requests) == 1:
            return [self._answer(*one) for one in requests]
        # Each thread has its own context, so that it knows how much time is left.
        pool = self._opened().pool
        waiting = [pool.submit(copy_context().run, self._answer, request, n) for request, n in requests]
        try:
            return [one.result() for one in waiting]
        except BaseException:
            self.close()
            raise

    def _answer(self, request: bytes, n: int) -> _Answer:
        reply = self._exchange(request, n)
        if reply.said is None:
            return _Answer([], reply.failed)
        said = self._read(reply.said)
        if "error" in said:
            kind = re.match(r"([A-Za-z_][\w.]*)(?::\s*|$)", said["error"])
            rest = said["error"][kind.end() :] if kind else said["error"]
            return _Answer([], reply.failed or Failure(kind[1][:80] if kind else "Error", rest[:200]))
        outputs = said["outputs"] if "outputs" in said else [said["output"]]
        check_number(len(outputs), n, f'{self} must answer {{"outputs": [...]}} with as many as "n" says')
        return _Answer([_value(y) for y in outputs], reply.failed)

    def _read(self, said: bytes) -> dict[str, Any]:
        reply = self._parsed(said)
        if isinstance(reply, dict):
            right = isinstance(reply["outputs"], list) if "outputs" in reply else "output" in reply
            if isinstance(reply["error"], str) if "error" in reply else right:
                return reply
        answers = '{"outputs": [...]}, {"output": ...} or {"error": "text"}'
        raise MechanismError(f"{self} answered {short(said)}; an answer must be {answers}")

    def _parsed(self, said: bytes) -> Any:
        try:
            return json.loads(said.decode("utf-8"))
        except (ValueError, RecursionError):
            raise MechanismError(f"{self} gave an answer that is not JSON: {short(said)}; print answers only") from None

    def _exchange(self, request: bytes, n: int) -> Reply:
        """Send a request over a free line. A program that died is restarted.

        If it died during a request, this run has failed. If it had not read the request, another one is asked.
        """
        lines = self._opened()
        while True:
            check_time()
            if lines.over.is_set():
                raise MechanismError(f"{self} was closed before it was asked")
            line = lines.free.get()
            fresh = line is None
            try:
                if line is None:
                    line = self._open(lines.over)
                    lines.hold(line)
                return line.exchange(request, n)
            except Died as death:
                lines.drop(line)
                line = None
                if lines.over.is_set() or (death.unread and fresh):
                    raise
                self._troubles.count(f"{death.how} and was started again")
                if not death.unread:
                    return Reply(None, Failure(death.how, str(death).removeprefix(f"{self} {death.how}; ")[:200]))
            except BaseException:
                lines.drop(line)  # a canceled line can no longer be used
                line = None
                raise
            finally:
                lines.free.put(line)

    @property
    def _width(self) -> int:
        """How many lines there may be at once."""
        return 1

    def _opened(self) -> Lines:
        if self._lines is None:
            self._lines = Lines(self._width)
            self._stop = weakref.finalize(self, self._lines.close)
        return self._lines

    def _open(self, over: Event) -> Line:
        raise NotImplementedError

    def close(self) -> None:
        """Release what is held; the next sample acquires it again."""
        self._lines = None
        if self._stop:
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True, eq=False)
class Program(Remote):
    """A program that is kept running and answers a line of JSON with a line of JSON. It starts with the first sample.

    With `lines` it reads the input as a plain line and answers with one. `processes` run at once. One that dies is
    restarted; the run it died in has failed, which is evidence if it happens for one input only. `independent_rows`
    states that the n outputs of one answer are independent of one another.

    >>> import shlex, sys
    >>> code = "import json, sys; [print(json.dumps({'output': 7}), flush=True) for line in sys.stdin]"
    >>> with Program(shlex.join([sys.executable, "-c", code])) as program:
    ...     program.sample("a text", 3, np.random.default_rng(0))
    [7, 7, 7]
    """

    command: str
    time_limit: float = 30.0
    lines: bool = field(default=False, kw_only=True)
    processes: int = field(default=1, kw_only=True)
    independent_rows: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        self.time_limit = seconds_of(self.time_limit)
        self.independent_rows = independent_rows(self, "lines=True" if self.lines else "")
        self.processes = number_of_lines(self.processes, "processes")
        self._words()
        self._most = 1 if self.lines else 0

    def __str__(self) -> str:
        return f"the program {self.command!r}"

    @property
    def replays(self) -> bool:
        """Not with plain lines: they carry no seed."""
        return not self.lines

    def describe(self) -> dict[str, str]:
        more = {"lines": "plain" if self.lines else "", "rows": "independent" if self.independent_rows else ""}
        return {"kind": "command", "command": self.command, **{name: value for name, value in more.items() if value}}

    def settings(self) -> dict[str, Any]:
        """What else is needed to recreate it."""
        return {"lines": self.lines, "processes": self.processes, "independent_rows": self.independent_rows}

    @property
    def _width(self) -> int:
        return self.processes

    def _open(self, over: Event) -> Line:
        return Process(self._words(), str(self), self.time_limit)

    def _request_for(self, x: Any) -> RequestMaker:
        if not self.lines:
            return Remote._request_for(self, x)
        line = _plain_line(x)
        return lambda n, seed: line

    def _parsed(self, said: bytes) -> Any:
        return {"output": _from_line(said)} if self.lines else Remote._parsed(self, said)

    def _words(self) -> list[str]:
        import shlex

        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise InputError(f"the command {self.command!r} cannot be read: {error}") from None
        if not words or "\0" in self.command:
            raise InputError(f"the command must name a program and its arguments, got {self.command!r}")
        return words


def independent_rows(one: Any, single: str) -> bool:
    """Whether an object or its class declares its rows independent. `single` is why each answer has only one."""
    said = one.independent_rows or getattr(type(one), "independent_rows", None) is True
    if not isinstance(said, bool):
        raise InputError(f"independent_rows must be True or False, got {said!r}")
    if said and single:
        raise InputError(f"with {single} each answer has one output: omit independent_rows")
    return said


def _plain_line(x: Any) -> bytes:
    """An input as a line: a text as it is, anything else as JSON."""
    text = x if isinstance(x, str) else as_json(x)
    try:
        if len(text.splitlines()) > 1 or text.endswith(("\n", "\r")):
            raise ValueError("it has several lines")
        return text.encode("utf-8") + b"\n"
    except ValueError as error:
        raise InputError(f"the input {text[:80]!r} cannot be a plain line: {error}; leave lines=True out") from None


def _from_line(said: bytes) -> Any:
    """A line as an output: a number if it is written like one, otherwise the text."""
    text = said.decode("utf-8", "backslashreplace").removesuffix("\r")
    if len(text) < 400 and _NUMBER.fullmatch(text):
        return json.loads(text)
    return float(text) if _NO_NUMBER.fullmatch(text) else text
