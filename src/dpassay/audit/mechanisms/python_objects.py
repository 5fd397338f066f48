"""How Python objects other than plain functions are run: torch modules, scikit-learn transformers, coroutines.

None of these packages is imported here: an object from one of them has imported it already.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpassay.audit.mechanisms.rewriting import as_mechanism, is_rewriter
from dpassay.audit.remote.timing import OutOfTime, check_time, within
from dpassay.errors import DpassayError
from dpassay.pipeline.mechanism import Failure, Mechanism
from dpassay.values import dataclass

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

MOST_CAUSES = 3  # earlier exceptions that are read
# The functions that call mechanisms are left out of tracebacks.
CALLERS = (
    __name__,
    "dpassay.audit.mechanisms.targets",
    "dpassay.audit.mechanisms.seeding",
    "dpassay.audit.mechanisms.isolation",
)
# The usual outputs: finding out through `inspect` that they cannot be awaited takes longer than many runs do.
_SHOWN = {float, int, bool, str, bytes, type(None), np.float64, np.int64}
_FINISHED = {float, int, bool, str, list, tuple, dict, type(None), np.ndarray, np.float64, np.int64, Failure}


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """The output of one run, or its Failure; a coroutine is awaited.

    >>> attempt(lambda x: 1 / x, 0)
    Failure(kind='ZeroDivisionError', said='division by zero')
    """
    check_time()
    try:
        return awaited(function(*arguments))
    except DpassayError:
        raise
    except (Exception, SystemExit) as error:
        return failure(error)


def failure(error: BaseException) -> Failure:
    """An exception as an output. It keeps the place of the exception, but no local variables from its traceback."""
    below = error.__traceback__
    while below is not None and below.tb_frame.f_globals.get("__name__") in CALLERS:
        below = below.tb_next
    clear_frames(below)
    error = error.with_traceback(below)
    try:
        told = f"{_attributes(error)} {_causes(error)}".strip()[:400]
        return Failure(type(error).__name__[:80], str(error)[:200], error, told)
    except Exception:  # even an exception's str may fail
        return Failure(type(error).__name__[:80], error=error)


def _attributes(error: BaseException) -> str:
    """The attributes of an exception, as text: those whose repr runs no foreign code."""
    plain = {name: value for name, value in vars(error).items() if _is_shown(value)}
    return " ".join(f"{name}={value!r}" for name, value in plain.items())[:200]


def _is_shown(value: Any, depth: int = 3) -> bool:
    """Whether a value, and everything it holds, is of a type whose repr runs no foreign code."""
    if type(value) in (list, tuple, set, frozenset, dict):
        inside = [*value, *value.values()] if type(value) is dict else value
        return depth > 0 and all(_is_shown(one, depth - 1) for one in inside)
    return type(value) in _SHOWN


def _causes(error: BaseException) -> str:
    """The exceptions that led to this one, as a traceback shows them."""
    said: list[str] = []
    while len(said) < MOST_CAUSES:
        earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if earlier is None:
            break
        error = earlier
        said.append(f"after {type(error).__name__[:80]}: {str(error)[:80]}")
    return " ".join(said)


def awaited(value: Any) -> Any:
    """The value itself, or its result if it is awaitable, waiting no longer than the audit's time.

    >>> async def later(x):
    ...     return x + 1
    >>> awaited(later(1)), awaited(5)
    (2, 5)
    """
    if type(value) in _FINISHED or not inspect.isawaitable(value):
        return value
    import asyncio

    async def wait() -> Any:
        return await value

    # In its own thread: the caller may already be in a loop, and state kept between calls belongs to one loop.
    coming = asyncio.run_coroutine_threadsafe(wait(), _loop())
    seconds, last = within(math.inf)
    try:
        return coming.result(seconds if last else None)
    except BaseException as error:
        if isinstance(error, TimeoutError) and not coming.done():
            error = OutOfTime()
        coming.cancel()
        raise error


@lru_cache(maxsize=1)
def _loop() -> AbstractEventLoop:
    import asyncio
    import threading

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="dpassay async", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loop.cache_clear)  # a copy of the process has no threads but its own


def returns_nothing(subject: object) -> bool:
    """Whether every path through a Python function returns None, which suggests a missing `return`.

    >>> returns_nothing(lambda x: None), returns_nothing(lambda x: x if x else None), returns_nothing(print)
    (True, False, False)
    """
    function = subject if inspect.isroutine(subject) else getattr(type(subject), "__call__", None)  # noqa: B004
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    if code is None or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        return False
    import dis

    steps = list(dis.get_instructions(code))
    constants = [at.argval for at in steps if at.opname == "RETURN_CONST"]  # since Python 3.12
    values = [
        before.argval if before.opname == "LOAD_CONST" and not at.is_jump_target else before
        for before, at in pairwise(steps)
        if at.opname == "RETURN_VALUE"
    ]
    return all(value is None for value in (*constants, *values))


def answers(mechanism: Any) -> bool:
    """Whether the mechanism is Python code that returns something other than None on some path.

    >>> from dpassay.audit.mechanisms.targets import as_mechanism
    >>> answers(as_mechanism(lambda x: x if x else None)), answers(as_mechanism(lambda x: None)), answers(print)
    (True, False, False)
    """
    if hasattr(mechanism, "mechanism"):  # a wrapper
        return answers(mechanism.mechanism)
    function = getattr(mechanism, "function", getattr(mechanism, "sample", mechanism))
    called = function if inspect.isroutine(function) else getattr(type(function), "__call__", None)  # noqa: B004
    return hasattr(called, "__code__") and not returns_nothing(function)


def adapted(thing: Any) -> Mechanism | None:
    """A rewriter, a module or a transformer as a mechanism; None for anything else."""
    if is_rewriter(thing):
        return as_mechanism(thing)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.nn.Module):
        return TorchModule(thing)
    for name in ("transform", "fit_transform"):
        if callable(getattr(thing, name, None)):
            return Transformer(thing, name)
    return None


@dataclass(frozen=True, slots=True)
class TorchModule:
    """A torch module as a mechanism: called once for each output, in its current mode, without gradients.

    Numbers are passed as tensors of the type and on the device of its parameters; integers stay integers if it starts
    with an embedding. Everything else is passed unchanged.
    """

    module: Any
    replays: ClassVar[bool] = False
    singly: ClassVar[bool] = True

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> list[Any]:
        given = self._tensor(x)
        return [attempt(self._run, given) for _ in range(n)]

    def describe(self) -> dict[str, str]:
        return _described(self.module)

    def _run(self, given: Any) -> Any:
        with sys.modules["torch"].no_grad():
            return _as_numpy(self.module(given))

    def _tensor(self, x: Any) -> Any:
        torch: Any = sys.modules["torch"]
        if isinstance(x, str | bytes | dict) or x is None or torch.is_tensor(x):
            return x
        try:
            array = np.asarray(x)
        except ValueError:
            return x
        if array.dtype.kind not in "biuf":
            return x
        known = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        words = any(isinstance(m, torch.nn.Embedding | torch.nn.EmbeddingBag) for m in self.module.modules())
        kind = torch.get_default_dtype() if known is None else known.dtype
        kept = array.dtype.kind == "b" or (array.dtype.kind in "iu" and words)
        tensor = torch.tensor(array.tolist()) if kept else torch.tensor(array.tolist(), dtype=kind)
        return tensor if known is None else tensor.to(known.device)


def _as_numpy(value: Any) -> Any:
    """Tensors, also inside lists and mappings, as numbers and arrays."""
    torch: Any = sys.modules["torch"]
    if torch.is_tensor(value):
        plain = value.detach().cpu()
        plain = plain.float() if plain.dtype == torch.bfloat16 else plain
        return plain.item() if plain.ndim == 0 else plain.numpy().copy()
    if isinstance(value, Mapping):
        return {key: _as_numpy(one) for key, one in value.items()}
    return type(value)(map(_as_numpy, value)) if type(value) in (list, tuple) else value


@dataclass(frozen=True, slots=True)
class Transformer:
    """An object with `transform` as in scikit-learn, or only with `fit_transform`, as a mechanism.

    A number, a vector, a text or a dict is one row, and its row of the result is the output. A table, or a list of
    texts, is a data set, and the whole result is the output.

    >>> class Noisy:
    ...     def transform(self, rows):
    ...         return np.asarray(rows) + 1.0
    >>> Transformer(Noisy(), "transform").sample([1.0, 2.0], 1, np.random.default_rng(0))
    [array([2., 3.])]
    """

    thing: Any
    method: str
    replays: ClassVar[bool] = False
    singly: ClassVar[bool] = True

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> list[Any]:
        rows, single = _rows(x)
        return [attempt(self._run, rows, single) for _ in range(n)]

    def describe(self) -> dict[str, str]:
        return _described(self.thing)

    def _run(self, rows: Any, single: bool) -> Any:
        result = getattr(self.thing, self.method)(rows)
        result = result.toarray() if callable(getattr(result, "toarray", None)) else result  # a sparse matrix
        result = result.to_numpy() if callable(getattr(result, "to_numpy", None)) else result  # a data frame
        if not single:
            return result
        if len(result) != 1:
            raise ValueError(f"{self.method} gave {len(result)} rows for one")
        return result[0]


def _rows(x: Any) -> tuple[Any, bool]:
    """An input as a table, and whether it is the table itself or its only row."""
    if isinstance(x, str | bytes | dict):
        return [x], True
    if hasattr(x, "columns"):  # a data frame
        return x, False
    try:
        array = np.asarray(x)
    except ValueError:
        return x, False
    if array.dtype.kind in "biufc" and array.ndim < 2:
        return array.reshape(1, -1), True
    return (array if array.dtype.kind in "biufc" else x), False


def _described(thing: Any) -> dict[str, str]:
    return {"kind": "object", "type": f"{type(thing).__module__}.{type(thing).__qualname__}"}
