"""Random bits that are known: every source of randomness of a process begins where a key says.

Two runs with the same key get the same bits, whether they are watched or not. The state of all generators is restored
afterwards. Needs only numpy.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

MOST_SEARCHED, DEEPEST = 5_000, 6
_EMPTY = CellType()
_GENERATOR = np.random.Generator  # which is another one while a run is watched
_LIBRARIES = ("builtins", "numpy", "random")
_BIT_GENERATOR: Any = import_module("numpy.random.bit_generator")


def generators_of(subject: Any) -> list[Any]:
    """The generators of numpy and of Python that a subject holds, in its attributes, closures and module's names."""
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
        if isinstance(thing, np.random.BitGenerator | random.Random):
            found[id(thing)] = thing
        waiting += [(one, depth + 1) for one in _held(thing)]
    shared = (random._inst, np.random.mtrand._rand._bit_generator)
    return [one for one in found.values() if not any(one is each for each in shared)]


def _held(thing: Any) -> list[Any]:
    if isinstance(thing, MethodType):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or () if cell != _EMPTY]
        names = {
            *thing.__code__.co_names,
            *(n for c in thing.__code__.co_consts if isinstance(c, CodeType) for n in c.co_names),
        }
        globals_ = [thing.__globals__[name] for name in names if name in thing.__globals__]
        return [*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values(), *globals_]
    if isinstance(thing, dict):
        return list(thing.values()) if len(thing) < MOST_SEARCHED else []
    if isinstance(thing, list | tuple):
        return list(thing) if len(thing) < MOST_SEARCHED else []
    if isinstance(thing, type | ModuleType | np.ndarray | str | bytes | int | float):
        return list(vars(thing).values()) if isinstance(thing, type) and thing.__module__ not in _LIBRARIES else []
    return list(getattr(thing, "__dict__", {}).values())


@contextmanager
def known_bits(key: Sequence[int], held: Sequence[Any] = ()) -> Iterator[None]:
    """Start all sources of randomness from a key: the shared generators, those that are held, and the system's.

    >>> with known_bits([1]):
    ...     first = random.random(), np.random.random(), np.random.default_rng().random(), os.urandom(2)
    >>> with known_bits([1]):
    ...     first == (random.random(), np.random.random(), np.random.default_rng().random(), os.urandom(2))
    True
    """
    stream = _GENERATOR(np.random.PCG64(list(key)))
    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state()
    torch_before = None if torch is None else torch.get_rng_state()
    states = [one.state if isinstance(one, np.random.BitGenerator) else one.getstate() for one in _of_this_kind(held)]
    system, randbits, seed = os.urandom, getattr(_BIT_GENERATOR, "randbits", None), random.Random.seed

    def from_stream(size: int) -> bytes:
        return stream.bytes(size)

    def seeded(generator: Any, a: Any = None, version: int = 2) -> None:
        seed(generator, int(stream.integers(2**63)) if a is None else a, version)

    try:
        random.seed(int(stream.integers(2**63)))
        np.random.seed(int(stream.integers(2**32)))
        if torch is not None:
            torch.manual_seed(int(stream.integers(2**63)))
        for one in _of_this_kind(held):
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
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch is not None and torch_before is not None:
            torch.set_rng_state(torch_before)
        for one, state in zip(_of_this_kind(held), states, strict=True):
            if isinstance(one, np.random.BitGenerator):
                one.state = state
            else:
                one.setstate(state)


def _of_this_kind(held: Sequence[Any]) -> list[Any]:
    """Without the system's own source, which has no state."""
    return [one for one in held if not isinstance(one, random.SystemRandom)]


def _restart(one: Any, seed: int) -> None:
    if not isinstance(one, np.random.BitGenerator):
        one.seed(seed)
        return
    try:
        one.state = type(one)(seed).state
    except (TypeError, ValueError, NotImplementedError):  # a kind that is not seeded so
        return
