"""Nothing is shared between two calls of a mechanism: each has its own input and random numbers, and its output is
copied before the next call.

Otherwise, code that changes its input, reuses one buffer, or makes its noise from the seed of the
generator it is given would be affected by earlier calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from functools import partial
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

from dpassay.audit.mechanisms.common_numbers import CommonNumbers
from dpassay.audit.mechanisms.memory import Memory, filled, memory_of
from dpassay.audit.mechanisms.python_objects import awaited
from dpassay.audit.outputs.outputs import only_output, read
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, Mechanism, check_number, is_pipeline

COMPARED = 16  # calls whose input is compared with what it was before; later ones at each power of two
_SCALARS = (np.bool_, np.float16, np.float32, np.float64, *(np.dtype(code).type for code in "bhilqBHILQ"))
_CONSTANT = frozenset({float, int, bool, str, bytes, complex, type(None), type(...), Failure, *_SCALARS})


class CallSeed(ISpawnableSeedSequence):
    """The seed of one call: two words, and everything that is derived from them."""

    words: NDArray[np.uint64]
    whole: np.random.SeedSequence | None = None  # seldom needed

    def _sequence(self) -> np.random.SeedSequence:
        if self.whole is None:
            self.whole = np.random.SeedSequence(self.words.tolist())
        return self.whole

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Words from the seed, as numpy's generators ask for them."""
        return self._sequence().generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> list[Any]:
        """Seeds for generators that are independent of this one."""
        return self._sequence().spawn(n_children)

    @property
    def entropy(self) -> Any:
        return self._sequence().entropy

    @property
    def spawn_key(self) -> tuple[int, ...]:
        return tuple(self._sequence().spawn_key)

    @property
    def n_children_spawned(self) -> int:
        return int(self._sequence().n_children_spawned)


class CallGenerators:
    """The random numbers of each call: numbers, seed and spawned seeds are independent of those of other calls.

    Equal streams give equal calls, however many numbers each call draws. The generator is one
    object that is reset for each call, because creating one takes longer than many calls do.

    >>> calls = CallGenerators(np.random.default_rng(0))
    >>> len({np.random.default_rng(calls.begin().bit_generator.seed_seq).random() for _ in range(2)})
    2
    """

    def __init__(self, rng: np.random.Generator, memory: Memory | None = None) -> None:
        self.memory = memory  # of the mechanism that is called
        self._stream, self._seed = rng.bit_generator, CallSeed()
        self._seed.words = np.zeros(2, dtype=np.uint64)
        self._own = np.random.Philox(self._seed)  # type: ignore[arg-type]
        self._state: Any = self._own.state
        kind = CommonNumbers if isinstance(rng, CommonNumbers) else np.random.Generator
        self._generator = kind(self._own)

    def begin(self) -> np.random.Generator:
        """The generator for the next call."""
        words = self._stream.random_raw(2)
        self._seed.words, self._seed.whole = words, None
        self._state["state"]["key"] = words
        self._own.state = self._state
        if isinstance(self._generator, CommonNumbers):
            self._generator.place = 0
        return self._generator


def copied(value: Any) -> Any:
    """A copy that shares nothing mutable; what cannot be copied is returned unchanged, and noted.

    >>> rows = [[1.0], [2.0]]
    >>> copied(rows) == rows, copied(rows)[0] is rows[0]
    (True, False)
    """
    if type(value) in _CONSTANT:
        return value
    try:
        return _copied(value, {})
    except Exception as error:  # copying may run any code
        watch = _WATCH.get()
        if watch is not None:
            watch.shared.add(error.what if isinstance(error, _NotCopied) else _named(value))
        return value


class _NotCopied(Exception):
    """Something cannot be copied; this holds the type of the part inside it that cannot."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """The common types are copied here, ten times as fast as by `deepcopy`, which does the others."""
    kind = type(value)
    if kind in _CONSTANT:
        return value
    if id(value) in memo:
        return memo[id(value)]
    made: Any
    if kind is np.ndarray and not value.dtype.hasobject:
        made = value.copy(order="K")
        made.flags.writeable = value.flags.writeable
    elif kind is list:
        made = memo[id(value)] = value.copy()
        if not _CONSTANT.issuperset(map(type, value)):
            made[:] = [_copied(one, memo) for one in value]
    elif kind is tuple:
        made = value if _CONSTANT.issuperset(map(type, value)) else tuple(_copied(one, memo) for one in value)
    elif kind is dict and _CONSTANT.issuperset(map(type, value)):
        made = memo[id(value)] = value.copy()
        if not _CONSTANT.issuperset(map(type, value.values())):
            for key, one in value.items():
                made[key] = _copied(one, memo)
    elif kind.__module__.partition(".")[0] == "pandas" and hasattr(value, "to_pickle"):
        made = _frame(value, memo)
    elif kind in _VIEWS:
        made = _VIEWS[kind](value, memo)
    elif kind is FunctionType:
        made = _function(value, memo)
    elif kind is partial:
        made = partial(_copied(value.func, memo), *_copied(value.args, memo), **_copied(value.keywords, memo))
    else:
        made = _by_deepcopy(value, memo)
    memo[id(value)] = made
    return made


def _by_deepcopy(value: Any, memo: dict[int, Any]) -> Any:
    """A copy of anything else. Functions that an object holds, which `deepcopy` shares, are copied first."""
    if type(value).__module__ != "builtins":
        for held in vars(value).values() if hasattr(value, "__dict__") else ():
            if type(held) is FunctionType and id(held) not in memo:  # it is there if it holds the object itself
                memo[id(held)] = _function(held, memo)
    try:
        made = deepcopy(value, memo)
    except Exception as error:
        raise _NotCopied(_named(value)) from error
    if made is value and _holds_more(value):
        raise _NotCopied(_named(value))
    return made


def _function(value: FunctionType, memo: dict[int, Any]) -> FunctionType:
    """A function with copies of its closure variables, defaults and attributes."""
    if not (value.__closure__ or value.__defaults__ or value.__kwdefaults__ or vars(value)):
        return value
    cells = tuple(_cell(cell, memo) for cell in value.__closure__ or ())
    made = FunctionType(value.__code__, value.__globals__, value.__name__, _copied(value.__defaults__, memo), cells)
    memo[id(value)] = made
    for cell, other in zip(value.__closure__ or (), cells, strict=True):
        if filled(cell) and not filled(other):
            other.cell_contents = _copied(cell.cell_contents, memo)
    made.__kwdefaults__ = _copied(value.__kwdefaults__, memo)
    vars(made).update(_copied(vars(value), memo))
    return made


def _cell(cell: CellType, memo: dict[int, Any]) -> CellType:
    """The copy of a cell, the same for all functions that share it; empty at first."""
    return memo.setdefault(id(cell), CellType())  # type: ignore[no-any-return]


def _frame(value: Any, memo: dict[int, Any]) -> Any:
    """A data frame or a series. Its own deep copy shares the objects that it holds, so these are copied one by one."""
    made = value.copy(deep=True)
    if value.ndim == 1:
        if str(value.dtype) == "object":
            made.array[:] = _objects(value, memo)
        return made
    for at, kind in enumerate(value.dtypes):
        if str(kind) == "object":
            made.isetitem(at, _objects(value.iloc[:, at], memo))
    return made


def _objects(column: Any, memo: dict[int, Any]) -> Any:
    found = np.empty(len(column), dtype=object)
    for at, one in enumerate(column):
        found[at] = _copied(one, memo)
    return found


_VIEWS: dict[type, Any] = {  # views of a dict, which nothing else copies
    type({}.keys()): lambda value, memo: dict.fromkeys(value).keys(),
    type({}.values()): lambda value, memo: dict(enumerate(_copied(list(value), memo))).values(),
    type({}.items()): lambda value, memo: _copied(dict(value), memo).items(),
}


class Watch:
    """What the calls of an audit did to their inputs, as far as this was checked."""

    def __init__(self) -> None:
        self.calls, self.changed = 0, False
        self.forgot = False  # whether the mechanism kept something for each input
        self.shared: set[str] = set()  # types that could not be copied

    def rests(self) -> bool:
        """Whether this call is one whose input is not compared; each call is counted."""
        self.calls += 1
        return self.calls > COMPARED and self.calls & (self.calls - 1) != 0

    def notes(self) -> list[str]:
        """Sentences for the verdict."""
        said = []
        if self.changed:
            said.append(
                "The mechanism changes its input. Each call was given a copy, so the verdict is about the inputs as "
                "they were stated; a program that calls it twice on the same data releases something else."
            )
        if self.forgot:
            said.append(
                "The mechanism keeps something for each input it has seen. It was forgotten after each call, so the "
                "verdict is about one call; a program that keeps it may give an input the same answer again."
            )
        if self.shared:
            said.append(
                f"Values of type {', '.join(sorted(self.shared))} cannot be copied, so calls share them: if the "
                "mechanism changes them, its runs are not independent and this verdict may be wrong."
            )
        return said


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let `look` compare inputs for this audit."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def look(x: Any, given: Any) -> None:
    """Whether a call changed the input that it was given, a copy of x."""
    watch = _WATCH.get()
    if watch is None or watch.changed or type(x) in _CONSTANT or x is given:
        return
    if not watch.rests():
        watch.changed = not _same(x, given)


def _same(x: Any, y: Any) -> bool:
    if type(x) is np.ndarray and type(y) is np.ndarray and not x.dtype.hasobject:
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    one, other = _state(x), _state(y)
    return one is None or other is None or bool(one == other)


def _state(value: Any) -> Any:
    """A key for the contents of a value, the same for equal values; None if it cannot be read."""
    try:
        return read([vars(value) if _holds_more(value) else value], "repr").keys()[0]
    except Exception:  # then nothing is known
        return None


def _holds_more(value: Any) -> bool:
    """Whether it is an object whose repr does not show its attributes."""
    return hasattr(value, "__dict__") and getattr(type(value), "__repr__", None) is object.__repr__


def _named(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def called(mechanism: Mechanism, x: Any, n: int, rng: np.random.Generator) -> Any:
    """One call: with an input and random numbers of its own, its outputs copied before the next."""
    if is_pipeline(mechanism) or runs_elsewhere(mechanism):  # they neither change an input nor keep an output
        return counted(awaited(mechanism.sample(x, n, rng)), n)
    return _apart(mechanism, x, n, CallGenerators(rng, memory_of(mechanism)))


def _apart(mechanism: Mechanism, x: Any, n: int, calls: CallGenerators) -> Any:
    """A batch, copied before the memory of the mechanism is cleared, which may hold the batch itself."""
    given = copied(x)
    before = None if type(x) in _CONSTANT or given is not x else _before(x)
    try:
        batch = mechanism.sample(given, n, calls.begin())
        ready = type(batch) is np.ndarray and batch.shape[:1] == (n,)  # the usual case, which needs no further checks
        return copied(batch if ready else counted(awaited(batch), n))
    finally:
        _after(x, given, before, calls)


def _before(x: Any) -> Any:
    """The contents of an input that calls share, if the input is checked after this call."""
    watch = _WATCH.get()
    return None if watch is None or watch.rests() else _state(x)


def _after(x: Any, given: Any, before: Any, calls: CallGenerators) -> None:
    """Check the input of a call that has ended, and forget what the mechanism keeps for it."""
    if given is not x:
        look(x, given)
    elif before is not None and before != _state(x):
        raise InputError(
            f"the mechanism changes its input of type {_named(x)}, which cannot be copied, so its runs are not "
            "independent: give inputs that copy.deepcopy copies"
        )
    if calls.memory is not None:
        calls.memory.forget(x)
        watch = _WATCH.get()
        if watch is not None:
            watch.forgot |= calls.memory.by_input


def runs_elsewhere(mechanism: Any) -> bool:
    """Whether it runs in another process, which receives inputs and a seed as text."""
    return hasattr(mechanism, "sample_each")


def one_output(mechanism: Mechanism, x: Any, calls: CallGenerators) -> Any:
    """The output of a call that asks for one."""
    return only_output(_apart(mechanism, x, 1, calls))


def one_of(one: Callable[[Any, np.random.Generator], Any], x: Any, calls: CallGenerators) -> Any:
    """The same for a function of an input and a generator."""
    given = copied(x)
    before = None if type(x) in _CONSTANT or given is not x else _before(x)
    try:
        return copied(awaited(one(given, calls.begin())))
    finally:
        if given is not x or before is not None or calls.memory is not None:
            _after(x, given, before, calls)


def counted(batch: Any, n: int) -> Any:
    """The batch itself, if it is one of n outputs; a tensor as an array, the rows of a data frame as dicts."""
    module, name = type(batch).__module__.partition(".")[0], type(batch).__name__
    if module == "torch" and hasattr(batch, "detach") and batch.ndim:
        plain = batch.detach().cpu()
        batch = (plain.float() if "bfloat16" in str(plain.dtype) else plain).numpy()
    elif module == "pandas" and name in ("Series", "DataFrame"):
        batch = batch.to_dict("records") if name == "DataFrame" else batch.tolist()
    if isinstance(batch, list | tuple) or (isinstance(batch, np.ndarray) and batch.ndim):
        check_number(len(batch), n, "sample(x, n, rng) must return n, along an array's first axis or as a list")
        return batch
    if batch is None:
        raise MechanismError("the mechanism returned None instead of a batch of outputs: did you forget `return`?")
    kind = f"{type(batch).__module__}.{type(batch).__qualname__}".removeprefix("builtins.")
    raise InputError(
        f"the mechanism gave a value of type {kind} where a batch was asked for: sample(x, n, rng) must return a "
        "numpy array or a tensor whose first axis is n, a data frame of n rows, or a list of n outputs"
    )
