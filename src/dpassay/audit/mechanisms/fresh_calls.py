"""Whether a mechanism gives the same answer again and again only because it keeps it: calls in fresh processes tell.

An answer that is drawn once for an input and kept, wherever, makes runs that repeat it. `memory` undoes this where it
can be seen; a dictionary of another module, a tensor or an attribute that is replaced may go unnoticed. A copy of this
process is therefore made before the first call, and later asked for copies of itself, each of which makes one call.
"""

from __future__ import annotations

import math
import os
import random
import select
import signal
import struct
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpassay.audit.mechanisms.isolation import runs_elsewhere
from dpassay.audit.mechanisms.memory import KNOWN_LIBRARIES
from dpassay.audit.mechanisms.targets import draw, one_at_a_time
from dpassay.audit.outputs.outputs import as_row, read
from dpassay.pipeline.mechanism import is_pipeline

FORKS = hasattr(os, "fork")
MOST_CALLS, OTHERS = 200, 3  # calls of an input in fresh processes, and other answers among them that are enough
EXPECTED = 8.0  # other answers among the audit's runs, at the rate of the fresh ones: none has a probability of e^−8
PATIENCE = 20.0  # seconds for all fresh calls
_ANSWER = struct.Struct("<QdQd")  # the keys of two outputs, and their sums as numbers
_PLAIN = (int, float, bool, str, bytes, type(None), type, types.BuiltinFunctionType)


class FreshCalls:
    """A copy of this process from before the first call of a mechanism. It must be closed.

    >>> FreshCalls(lambda x, rng: x, [(0, 1)]).process  # nothing can be kept: there is no copy
    """

    def __init__(self, mechanism: Any, input_sets: Sequence[tuple[Any, ...]]) -> None:
        self.process: int | None = None
        if not FORKS or is_pipeline(mechanism) or runs_elsewhere(mechanism) or not one_at_a_time(mechanism):
            return
        if _keeps_nothing(_innermost(mechanism), {}):
            return
        asked, self._ask = os.pipe()
        self._answers, answers = os.pipe()
        self.process = _forked()
        if self.process == 0:
            os.close(self._ask)
            os.close(self._answers)
            _serve(mechanism, input_sets, asked, answers)
        os.close(asked)
        os.close(answers)

    def close(self) -> None:
        """End the copy."""
        if self.process is None:
            return
        for end in (self._ask, self._answers):
            os.close(end)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        self.process = None

    def vary(self, at: int, repeated: Mapping[int, int]) -> bool:
        """Whether inputs of a set give other answers in fresh processes, where so many calls here gave one only.

        Noise that is drawn once and added to all inputs varies there too, but tells the inputs apart: it is not kept
        for an input.
        """
        if self.process is None:
            return False
        end = time.monotonic() + PATIENCE
        return sum(runs * self._rate(at, side, end) for side, runs in repeated.items()) >= EXPECTED

    def _rate(self, at: int, side: int, end: float) -> float:
        """How often fresh processes give an input another answer than the usual one; 0 if that is too rare to say."""
        found: list[tuple[int, float, int, float]] = []
        others = 0
        while others < OTHERS and len(found) < MOST_CALLS:
            answer = self._answer(at, side, len(found), end)
            if answer is None:
                return 0.0
            found.append(answer)
            others = len(found) - Counter(one[0] for one in found).most_common(1)[0][1]
        return 0.0 if others < OTHERS or _determined(found) else others / len(found)

    def _answer(self, at: int, side: int, number: int, end: float) -> tuple[int, float, int, float] | None:
        """What a fresh process gives for the input, and then for the other one."""
        try:
            os.write(self._ask, struct.pack("<qqq", at, side, number))
            if not select.select([self._answers], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            said = os.read(self._answers, _ANSWER.size)
        except OSError:
            return None
        return _ANSWER.unpack(said) if len(said) == _ANSWER.size else None


def _determined(found: Sequence[tuple[int, float, int, float]]) -> bool:
    """Whether the first answer of a process determines its second, to the other input."""
    apart = [second - first for _, first, _, second in found]
    if all(map(math.isfinite, apart)) and max(apart) - min(apart) <= 1e-9 * max(1.0, *map(abs, apart)):
        return True
    pairs = {(first, second) for first, _, second, _ in found}
    return len({first for first, _ in pairs}) == len(pairs) < len(found) / 2


def _forked() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: none of them is needed in the copy
        return os.fork()


def _serve(mechanism: Any, input_sets: Sequence[tuple[Any, ...]], asked: int, answers: int) -> None:
    """In the copy: make another one for each question, until nobody asks any more."""
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(1)  # the threads of this process are not in its copy
        while len(question := os.read(asked, 24)) == 24:
            at, side, number = struct.unpack("<qqq", question)
            child = _forked()
            if child == 0:
                os.write(answers, _ANSWER.pack(*_two_answers(mechanism, input_sets[at], side, number)))
                os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                break
    finally:
        os._exit(0)


def _two_answers(mechanism: Any, inputs: tuple[Any, ...], side: int, number: int) -> tuple[int, float, int, float]:
    seed = 7919 * number + side
    random.seed(seed)
    np.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 29])
    found: list[Any] = []
    for x in (inputs[side], inputs[1 - side]):
        outputs = draw(mechanism, x, 1, rng)
        row = as_row(outputs[0])
        found += [int(read(list(outputs), "repr").keys()[0]), math.nan if row is None else float(np.sum(row))]
    return tuple(found)


def _innermost(mechanism: Any) -> Any:
    while type(mechanism).__module__.startswith("dpassay.") and not callable(getattr(mechanism, "__code__", None)):
        inner = getattr(mechanism, "mechanism", None) or getattr(mechanism, "function", None)
        if inner is None:
            return mechanism
        mechanism = inner
    return mechanism


def _keeps_nothing(code: Any, seen: dict[int, Any]) -> bool:
    """Whether a function can only use constants, libraries and other such functions, and thus keeps no answer."""
    if isinstance(code, _PLAIN) or id(code) in seen:
        return True
    if isinstance(code, types.ModuleType):
        return code.__name__.partition(".")[0] in KNOWN_LIBRARIES or code.__name__ in sys.stdlib_module_names
    if not isinstance(code, types.FunctionType) or vars(code):
        return False
    seen[id(code)] = code
    held = [*(code.__defaults__ or ()), *(code.__kwdefaults__ or {}).values()]
    for cell in code.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # it is empty
            return False
    waiting = [code.__code__]
    while waiting:
        part = waiting.pop()
        waiting += [one for one in part.co_consts if isinstance(one, types.CodeType)]
        held += [code.__globals__[name] for name in part.co_names if name in code.__globals__]
    return all(not isinstance(one, type) and _keeps_nothing(one, seen) for one in held)
