"""Whether the runs of an audit depend on each other through what a mechanism keeps: calls in fresh processes tell.

An answer that is drawn once for an input and kept, wherever, makes runs that repeat it. `memory` undoes this where it
can be seen; a dictionary of another module, a tensor or an attribute that is replaced may go unnoticed. And where it
undoes too much, a counter that makes the noise of each call another one, runs repeat what calls in a row would not. A
copy of this process is therefore made before the first call, and later asked for copies of itself, each of which makes
a few calls. Before a claim is refuted, what the rule names in these is compared with what it named in the audit's runs.
"""

from __future__ import annotations

import dis
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
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpassay.audit.mechanisms.isolation import runs_elsewhere
from dpassay.audit.mechanisms.memory import KNOWN_LIBRARIES
from dpassay.audit.mechanisms.targets import draw_each, one_at_a_time
from dpassay.audit.outputs.outputs import as_row, read
from dpassay.pipeline.mechanism import is_pipeline

FORKS = hasattr(os, "fork")
PATIENCE = 60.0  # seconds for all fresh calls, so that none waits forever
BOTH = 24  # further ones, with a call for the other input in the same process
MOST_COMPARED, FEWEST, FIRST_LOOK = 600, 64, 16  # fresh calls to compare, also if each takes long; the first look
WORTH = 1.0  # seconds that fresh calls may take beside their processes
UNLIKELY = 1e-5  # the chance of what differs
CERTAIN = math.log(2000)  # evidence that fresh calls are named as the audit's runs were, not as the claim allows
IN_A_ROW = 24  # calls in a row that forget nothing: up to one less are made before the one that counts
_QUESTION = struct.Struct("<qqqq?")
_ANSWER = struct.Struct("<QdQdq")  # the keys of two outputs, their sums as numbers, and which input the rule names
_Answer = tuple[int, float, int, float, int]
Namer = Callable[[Any], int]  # which input a rule names for an output: 0, 1, or −1 for neither
_STATELESS = (
    "base64 bisect cmath collections copy dataclasses datetime decimal enum fractions functools hashlib heapq hmac "
    "itertools json math operator re secrets statistics string struct textwrap time typing uuid"
)
_WITHOUT_STATE = KNOWN_LIBRARIES.union(_STATELESS.split())  # libraries whose functions keep nothing for an input
_PLAIN = (int, float, bool, str, bytes, type(None), type, types.BuiltinFunctionType)


class FreshCalls:
    """A copy of this process from before the first call of a mechanism. It must be closed.

    >>> FreshCalls(lambda x, rng: x, [(0, 1)]).process  # nothing can be kept: there is no copy
    """

    def __init__(
        self,
        mechanism: Any,
        input_sets: Sequence[tuple[Any, ...]],
        read_rule: Callable[[bytes], Namer] | None = None,
    ) -> None:
        self.process: int | None = None
        self._in_a_row = 1
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
            _serve(mechanism, input_sets, read_rule, asked, answers)
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

    def named_otherwise(
        self, at: int, rule: bytes, table: Sequence[tuple[int, int, int]], most: float, in_a_row: bool, each: float
    ) -> bool:
        """Whether a rule names the inputs less often rightly in fresh processes than in this one.

        `table` has how often it named the first and the second input here, and the calls, for each input; `most` is how
        often a guess is right at most if the claim holds. `in_a_row`: whether the audit forgot what calls had kept;
        `each`: about how many seconds a call takes.
        """
        if self.process is None or not self._follows(rule):
            return False
        self._in_a_row = IN_A_ROW if in_a_row else 1
        end, look = time.monotonic() + PATIENCE, FIRST_LOOK
        found: tuple[list[_Answer], list[_Answer]] = ([], [])
        for number in range(max(FEWEST, min(MOST_COMPARED, int(WORTH / max(each, 1e-9))))):
            answer = self._answer(at, number % 2, number, end)
            if answer is None:
                return False
            found[number % 2].append(answer)
            if number + 1 < look:
                continue
            look += look // 2
            seen = [tuple(sum(one[4] == k for one in side) for k in (0, 1)) for side in found]
            if any(_fewer(table[s], seen[s], len(found[s]), s) for s in (0, 1)):
                varied = any(0 < one < row[2] for row in table for one in row[:2])
                return not (self._all_determined(at, in_a_row, end + PATIENCE) or (varied and self._repeats(found)))
            if _as_before(table, seen, most):
                return False
        return False

    def _repeats(self, found: Sequence[Sequence[_Answer]]) -> bool:
        """Whether all fresh processes draw the same, as from a generator that was made before they were."""
        alike: dict[tuple[int, int], set[int]] = {}
        for side, answers in enumerate(found):
            for k, one in enumerate(answers):
                alike.setdefault((side, k % self._in_a_row), set()).add(one[0])
        return all(len(keys) == 1 for keys in alike.values())

    def _follows(self, rule: bytes) -> bool:
        """Give the copy the rule; whether it can read it."""
        try:
            os.write(self._ask, _QUESTION.pack(-1, len(rule), 0, 0, False) + rule)
            ready = select.select([self._answers], [], [], PATIENCE)[0]
            return bool(ready) and os.read(self._answers, 1) == b"y"
        except OSError:
            return False

    def _answer(self, at: int, side: int, number: int, end: float, both: bool = False) -> _Answer | None:
        """What a fresh process gives for the input and, if `both`, for the other one then."""
        try:
            os.write(self._ask, _QUESTION.pack(at, side, number, number // 2 % self._in_a_row, both))
            if not select.select([self._answers], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            said = os.read(self._answers, _ANSWER.size)
        except OSError:
            return None
        return _ANSWER.unpack(said) if len(said) == _ANSWER.size else None

    def _all_determined(self, at: int, in_a_row: bool, end: float) -> bool:
        """Whether noise is drawn once for both inputs: what a process gives for one determines the other."""
        found: tuple[list[_Answer], list[_Answer]] = ([], [])
        for number in range(BOTH):
            for side in (0, 1):
                answer = self._answer(at, side, number, end, True)
                if answer is None:
                    return False
                found[side].append(answer)
        return all(_determined(side, in_a_row) for side in found)


def _fewer(before: tuple[int, int, int], fresh: tuple[int, ...], calls: int, side: int) -> bool:
    """Whether the right input is named less often than before, or the other one more often."""
    runs = before[2]
    right = _chance_of_fewer(fresh[side], calls, before[side], runs)
    wrong = _chance_of_fewer(before[1 - side], runs, fresh[1 - side], calls)
    return min(right, wrong) < UNLIKELY


def _chance_of_fewer(one: int, of_one: int, other: int, of_other: int) -> float:
    """The chance of so few of the first, given both together, if they have the same rate: Fisher's exact test.

    >>> round(_chance_of_fewer(0, 2, 2, 2), 4)
    0.1667
    """
    both, everything = one + other, of_one + of_other

    def log_ways(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    whole, least = log_ways(everything, both), max(0, both - of_other)
    ways = (log_ways(of_one, k) + log_ways(of_other, both - k) - whole for k in range(least, one + 1))
    return min(1.0, sum(math.exp(one) for one in ways))


def _as_before(table: Sequence[tuple[int, int, int]], seen: Sequence[tuple[int, ...]], most: float) -> bool:
    """Whether fresh guesses are far likelier with the share of right ones in the audit's runs than with the claim's."""
    before = [sum(table[s][k] for s, k in ((0, k), (1, 1 - k))) for k in (0, 1)]  # right, wrong
    fresh = [sum(seen[s][k] for s, k in ((0, k), (1, 1 - k))) for k in (0, 1)]
    share = (before[0] + 1) / (sum(before) + 2)
    if share <= most:
        return False
    return fresh[0] * math.log(share / most) + fresh[1] * math.log((1 - share) / (1 - most)) >= CERTAIN


def _determined(found: Sequence[_Answer], few: bool) -> bool:
    """Whether the first answer of a process determines its second, to the other input: noise is drawn once for both.

    `few`: whether there are only few different ones, some of which may agree by chance.
    """
    apart = [second - first for _, first, _, second, _ in found]
    if all(map(math.isfinite, apart)) and max(apart) - min(apart) <= 1e-9 * max(1.0, *map(abs, apart)):
        return True
    pairs = {(first, second) for first, _, second, _, _ in found}
    return not few and len({first for first, _ in pairs}) == len(pairs) < len(found) / 2


def _forked() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: none of them is needed in the copy
        return os.fork()


def _serve(
    mechanism: Any,
    input_sets: Sequence[tuple[Any, ...]],
    read_rule: Callable[[bytes], Namer] | None,
    asked: int,
    answers: int,
) -> None:
    """In the copy: make another one for each question, until nobody asks any more."""
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(1)  # the threads of this process are not in its copy
        names: Namer = lambda output: -1  # noqa: E731
        while len(question := os.read(asked, _QUESTION.size)) == _QUESTION.size:
            at, side, number, before, both = _QUESTION.unpack(question)
            if at < 0:
                text = _read_all(asked, side)
                with suppress(Exception):  # a rule that cannot be read in another process
                    assert read_rule is not None
                    names = read_rule(text)
                    os.write(answers, b"y")
                    continue
                os.write(answers, b"n")
                continue
            child = _forked()
            if child == 0:
                inputs = (input_sets[at][side], input_sets[at][1 - side])
                os.write(answers, _ANSWER.pack(*_answers(mechanism, inputs, 2 * number + side, before, both, names)))
                os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
                break
    finally:
        os._exit(0)


def _read_all(source: int, size: int) -> bytes:
    found = b""
    while len(found) < size and (more := os.read(source, size - len(found))):
        found += more
    return found


def _answers(mechanism: Any, inputs: tuple[Any, Any], seed: int, before: int, both: bool, names: Namer) -> _Answer:
    random.seed(seed)
    np.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 29])
    drawn = draw_each(mechanism, [*inputs * before, *inputs[: 1 + both]], rng, forget=not before)[2 * before :]
    found: list[Any] = []
    for output in (drawn[0], drawn[-1]):
        row = as_row(output)
        found += [int(read([output], "repr").keys()[0]), math.nan if row is None else float(np.sum(row))]
    return (*found, names(drawn[0]))


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
        return code.__name__.partition(".")[0] in _WITHOUT_STATE
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
        if not all(name in _WITHOUT_STATE for name in _imported(part)):
            return False
    return all(not isinstance(one, type) and _keeps_nothing(one, seen) for one in held)


def _imported(code: types.CodeType) -> set[str]:
    """The packages that code imports when it runs."""
    return {str(one.argval).partition(".")[0] for one in dis.get_instructions(code) if one.opname == "IMPORT_NAME"}
