"""Known random bits: a key determines where every source of randomness of a process starts.

Two runs with the same key get the same bits, whether they are watched or not. The state of all generators is restored
afterwards. Needs only numpy.
"""

from __future__ import annotations

import dis
import inspect
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy import arange, full, stack

MOST_SEARCHED, DEEPEST = 5_000, 6
_EMPTY = CellType()
_GENERATOR = np.random.Generator  # replaced by another class while a run is watched
_LIBRARIES = ("builtins", "numpy", "random")
_BIT_GENERATOR: Any = import_module("numpy.random.bit_generator")
# Keys are hashed many at a time, by the algorithm of numpy's SeedSequence, which takes longer than many runs do.
AT_ONCE, LONGEST = 256, 4  # keys; words of a key, each below 2³²
_WORD, _HALF = 2**32, 16
_FIRST, _TIMES = 0x43B0D7E5, 0x931E8875  # what numpy calls INIT_A, MULT_A
_LAST, _AGAIN = 0x8B51F9DD, 0x58F38DED  # INIT_B, MULT_B
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)  # MIX_MULT_L, MIX_MULT_R
_PCG64 = np.random.PCG64


def generators_of(subject: Any) -> list[Any]:
    """The generators of numpy, Python and torch that a subject holds: in attributes, closures and used names."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [(subject, 0)]
    while waiting and len(seen) < MOST_SEARCHED:
        thing, depth = waiting.pop()
        if id(thing) in seen or depth > DEEPEST:
            continue
        seen.add(id(thing))
        if isinstance(thing, np.random.Generator | np.random.RandomState):
            thing = thing.bit_generator if isinstance(thing, np.random.Generator) else thing._bit_generator
        if isinstance(thing, np.random.BitGenerator | random.Random) or is_torch_generator(thing):
            found[id(thing)] = thing
            continue
        waiting += [(one, depth + 1) for one in _held(thing)]
    shared = [random._inst, np.random.mtrand._rand._bit_generator]
    if "torch" in sys.modules:
        shared.append(sys.modules["torch"].default_generator)
    return [one for one in found.values() if not any(one is each for each in shared)]


def is_torch_generator(thing: Any) -> bool:
    """Whether something is a torch generator; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Generator)


def state_of(generator: Any) -> Any:
    """Where a generator is in its stream."""
    if isinstance(generator, np.random.BitGenerator):
        return generator.state
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


def set_state(generator: Any, state: Any) -> None:
    """Go to a place in its stream."""
    if isinstance(generator, np.random.BitGenerator):
        generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


def _held(thing: Any) -> list[Any]:
    if isinstance(thing, MethodType):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or () if cell != _EMPTY]
        globals_ = [thing.__globals__[name] for name in global_names(thing.__code__) if name in thing.__globals__]
        return [*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values(), *globals_]
    if isinstance(thing, dict):
        return list(thing.values()) if len(thing) < MOST_SEARCHED else []
    if isinstance(thing, list | tuple):
        return list(thing) if len(thing) < MOST_SEARCHED else []
    if isinstance(thing, type | ModuleType | np.ndarray | str | bytes | int | float):
        return list(vars(thing).values()) if isinstance(thing, type) and thing.__module__ not in _LIBRARIES else []
    return list(getattr(thing, "__dict__", {}).values())


def global_names(code: CodeType) -> set[str]:
    """The names of its module that a function uses, and those that functions within it use."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    own = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(global_names, inner))


def import_ahead(subject: Any) -> None:
    """Import the libraries that the code of a subject imports when it runs, of those that are installed.

    All its runs then find them loaded, their sources of randomness watched and in a known state. Modules of its own
    are left alone: what they draw when they are imported belongs to the run that does it.
    """
    for name in sorted(_imported_inside(subject)):
        if name not in sys.modules and _is_library(name):
            with suppress(Exception):  # the code will meet the same exception
                import_module(name)


def _imported_inside(subject: Any) -> set[str]:
    """The modules that functions of a subject import, and the functions of the same modules that they use."""
    found: set[str] = set()
    seen: set[int] = set()
    parts = subject if isinstance(subject, list | tuple) else [subject]
    methods = [vars(type(one)).values() for one in parts if type(one).__module__ not in _LIBRARIES]
    waiting: list[Any] = [*parts, *chain.from_iterable(methods)]
    while waiting and len(seen) < MOST_SEARCHED:
        thing = inspect.unwrap(one) if callable(one := waiting.pop()) else one
        if isinstance(thing, MethodType):
            waiting += [thing.__func__, *vars(type(thing.__self__)).values()]
        if not isinstance(thing, FunctionType) or id(thing) in seen:
            continue
        seen.add(id(thing))
        found |= _imports(thing.__code__)
        used = [thing.__globals__.get(name) for name in global_names(thing.__code__)]
        used += [cell.cell_contents for cell in thing.__closure__ or () if cell != _EMPTY]
        waiting += [one for one in used if getattr(one, "__module__", "") == thing.__module__]
    return found


def _imports(code: CodeType) -> set[str]:
    """What a function imports, at any depth of functions within it; names from a module may be modules too."""
    own: set[str] = set()
    module = ""
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME":
            module = str(one.argval)
            own |= {module} - {""}
        elif one.opname == "IMPORT_FROM" and module:
            own.add(f"{module}.{one.argval}")
    return own.union(*(_imports(one) for one in code.co_consts if isinstance(one, CodeType)))


def _is_library(name: str) -> bool:
    """Whether a module is installed, or Python's own, without importing it."""
    root = name.partition(".")[0]
    if root in sys.stdlib_module_names:
        return True
    try:
        found = find_spec(root)
    except (ImportError, ValueError, AttributeError):
        return False
    return found is not None and "-packages" + os.sep in (found.origin or "")


@contextmanager
def shared_states_kept() -> Iterator[None]:
    """Put the generators that all code shares back to where they are now."""
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state()
    torch_before = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch is not None and torch_before is not None:
            torch.set_rng_state(torch_before)


@contextmanager
def known_bits(key: Sequence[int], held: Sequence[Any] = (), keep: bool = True) -> Iterator[None]:
    """Start all sources of randomness from a key: the shared generators, those that are held, and the system's.

    Their states are restored afterwards; without `keep`, the shared ones are not, because restoring them is slow.

    >>> with known_bits([1]):
    ...     first = random.random(), np.random.random(), np.random.default_rng().random(), os.urandom(2)
    >>> with known_bits([1]):
    ...     first == (random.random(), np.random.random(), np.random.default_rng().random(), os.urandom(2))
    True
    """
    stream = _GENERATOR(stream_of(key))
    torch = sys.modules.get("torch")
    restarted = _of_this_kind(held)
    states = [state_of(one) for one in restarted]
    system, randbits, seed = os.urandom, getattr(_BIT_GENERATOR, "randbits", None), random.Random.seed

    def from_stream(size: int) -> bytes:
        return stream.bytes(size)

    def seeded(generator: Any, a: Any = None, version: int = 2) -> None:
        seed(generator, int(stream.integers(2**63)) if a is None else a, version)

    with shared_states_kept() if keep else nullcontext():
        try:
            random.seed(int(stream.integers(2**63)))
            np.random.seed(int(stream.integers(2**32)))
            if torch is not None:
                torch.manual_seed(int(stream.integers(2**63)))
            for one in held:
                if isinstance(one, random.SystemRandom):
                    setattr(one, "gauss_next", None)  # noqa: B010 - the second of two numbers, which the next call would take
            for one in restarted:
                _restart(one, int(stream.integers(2**63)))
            os.urandom = random._urandom = from_stream  # type: ignore[attr-defined]
            if randbits is not None:
                _BIT_GENERATOR.randbits = lambda bits: int.from_bytes(stream.bytes((bits + 7) // 8), "big")
            setattr(random.Random, "seed", seeded)  # noqa: B010 - with other types than its own
            yield
        finally:
            os.urandom = random._urandom = system  # type: ignore[attr-defined]
            if randbits is not None:
                _BIT_GENERATOR.randbits = randbits
            setattr(random.Random, "seed", seed)  # noqa: B010
            for one, state in zip(restarted, states, strict=True):
                set_state(one, state)


def _of_this_kind(held: Sequence[Any]) -> list[Any]:
    """Without the system's own source, which has no state."""
    return [one for one in held if not isinstance(one, random.SystemRandom)]


def _restart(one: Any, seed: int) -> None:
    if not isinstance(one, np.random.BitGenerator):
        one.seed(seed) if isinstance(one, random.Random) else one.manual_seed(seed)
        return
    try:
        one.state = type(one)(seed).state
    except (TypeError, ValueError, NotImplementedError):  # a kind that is not seeded so
        return


class StatedSeed(np.random.bit_generator.ISpawnableSeedSequence):
    """The seed of a generator that begins with these bits; otherwise the given seed of numpy's."""

    def __init__(self, words: Any, own: Callable[[], np.random.SeedSequence]) -> None:
        self.words, self._make = words, own
        self._made: Any = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self.words if n_words == 4 and dtype is np.uint64 else self._own.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        return self._own.spawn(n_children)

    @property
    def _own(self) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._own, name)


def stream_of(key: Sequence[int]) -> np.random.PCG64:
    """The generator's bits that a key determines.

    >>> bool((stream_of([0, 1, 7]).random_raw(3) == np.random.PCG64([0, 1, 7]).random_raw(3)).all())
    True
    """
    if not key:
        return _PCG64([])
    block, at = divmod(key[-1], AT_ONCE)
    words = hashed(tuple(key[:-1]), block)
    if words is None:
        return _PCG64(list(key))
    return _PCG64(StatedSeed(words[at], partial(np.random.SeedSequence, list(key))))


@lru_cache(maxsize=16)
def hashed(before: tuple[int, ...], block: int) -> Any:
    """The first words of numpy's seeds for AT_ONCE keys that differ in their last number; None for long keys."""
    if len(before) >= LONGEST or not all(0 <= one < _WORD for one in (*before, (block + 1) * AT_ONCE - 1)):
        return None
    last = arange(block * AT_ONCE, (block + 1) * AT_ONCE).astype(np.uint32)
    key = [*(full(AT_ONCE, one, np.uint32) for one in before), last]
    key += [full(AT_ONCE, 0, np.uint32)] * (LONGEST - len(key))
    mixing = _Hash(_FIRST, _TIMES)
    pool = [mixing(one) for one in key]
    for at in range(LONGEST):
        for to in range(LONGEST):
            if at != to:
                pool[to] = _shifted(_LEFT * pool[to] - _RIGHT * mixing(pool[at]))
    giving = _Hash(_LAST, _AGAIN)
    halves = [giving(pool[k % LONGEST]).astype(np.uint64) for k in range(2 * LONGEST)]
    return stack([low | (high << np.uint64(32)) for low, high in zip(halves[::2], halves[1::2], strict=True)], axis=1)


class _Hash:
    """A hash of words whose constant changes with each use."""

    def __init__(self, first: int, times: int) -> None:
        self.constant, self.times = first, times

    def __call__(self, words: Any) -> Any:
        words = words ^ np.uint32(self.constant)
        self.constant = self.constant * self.times % _WORD
        return _shifted(words * np.uint32(self.constant))


def _shifted(words: Any) -> Any:
    return words ^ (words >> np.uint32(_HALF))
