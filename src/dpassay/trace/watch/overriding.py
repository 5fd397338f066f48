"""Whether the methods of a generator are those of its library: only then do their numbers have the stated laws.

Python documents how a subclass of `random.Random` replaces the source of all its methods: it overrides `random` or
`getrandbits`. The same happens if a method is assigned to an object, or to the class itself.
"""

from __future__ import annotations

import _random
import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType, MethodDescriptorType
from typing import Any

import numpy as np
from numpy.random._generator import Generator
from numpy.random.mtrand import RandomState

from dpassay.trace.watch.record import RecordedRun, caller

# The classes themselves, even if the code has put its own in their place.
PYTHON: Any = next(one for one in _random.Random.__subclasses__() if one.__module__ == "random")
_OWN = str(Path(__file__).parent)  # of functions that record a method, or call it with known bits
NUMPY = (Generator, RandomState)
_DRAWS = frozenset(name for kind in NUMPY for name in vars(kind) if not name.startswith("_"))
_NO_DRAWS = {"bit_generator", "spawn", "seed", "get_state", "set_state", "capsule"}
_BITS = (*(np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox), np.random.SFC64)


def has_its_law(run: RecordedRun, generator: Any, draw: Any, name: str) -> bool:
    """Whether this method draws from the distribution that it is named after. Otherwise that is recorded.

    Its code then runs as any other: what it draws itself, by methods with their usual laws, is recorded too.
    """
    foreign = foreign_part(generator, draw, name)
    if foreign:
        kind = type(generator).__name__
        run.opaque.append((f"{kind}.{name} (with another {foreign} than its library's)", caller()))
    return not foreign


def foreign_part(generator: Any, draw: Any, name: str) -> str:
    """What a method that draws relies on, given its generator, that is not its library's; "" if everything is.

    >>> class Odd(random.Random):
    ...     def getrandbits(self, k):
    ...         return super().getrandbits(k) | 1
    >>> foreign_part(Odd(), Odd.shuffle, "shuffle"), foreign_part(Odd(), Odd.gauss, "gauss")
    ('getrandbits', '')
    """
    return _of_python(generator, draw, name) if isinstance(generator, PYTHON) else _of_numpy(generator, name)


def is_of(library: Any, function: Any) -> bool:
    """Whether a function under a name of a library is that library's own: the code may have put another there.

    >>> is_of(random, random.gauss), is_of(random, lambda mu, sigma: mu), is_of(np, np.random.laplace)
    (True, False, True)
    """
    function = getattr(function, "__func__", function)
    return not isinstance(function, FunctionType) or function.__globals__ is vars(library)


def _of_python(generator: Any, draw: Any, name: str) -> str:
    if not _is_pythons(draw):  # it was replaced in Python's own class
        return name
    waiting, seen = list(_calls(draw)), {name}
    if waiting and any("__getattribute__" in vars(kind) for kind in _before(type(generator), PYTHON)):
        return "__getattribute__"
    while waiting:
        if (one := waiting.pop()) in seen:
            continue
        seen.add(one)
        found = None if one in vars(generator) else _attribute(type(generator), one)
        if not _is_pythons(found):
            return one
        waiting += _calls(found)
    return ""


def _attribute(kind: type, name: str) -> Any:
    return next((_as_loaded(vars(one)[name]) for one in kind.__mro__ if name in vars(one)), None)


def _before(kind: type, base: type) -> Iterator[type]:
    """The classes from which a class inherits before this one."""
    for one in kind.__mro__:
        if one is base:
            return
        yield one


def _as_loaded(method: Any) -> Any:
    """The method that is recorded while a run is watched."""
    while isinstance(method, FunctionType) and method.__code__.co_filename.startswith(_OWN):
        method = getattr(method, "__wrapped__", None)
    return method


def _is_pythons(method: Any) -> bool:
    if isinstance(method, MethodDescriptorType):
        return method.__objclass__ is _random.Random
    return isinstance(method, FunctionType) and method.__globals__ is vars(random)


def _calls(method: Any) -> tuple[str, ...]:
    """The methods of its object that a method of Python's own generators may call."""
    return _named(method.__code__) if isinstance(method, FunctionType) else ()


@lru_cache(maxsize=256)
def _named(code: CodeType) -> tuple[str, ...]:
    return tuple(one for one in code.co_names if callable(getattr(PYTHON, one, None)))


def _of_numpy(generator: Any, name: str) -> str:
    """The same for one of numpy's. Which of its methods call which is not documented, so all others count."""
    kind = type(generator)
    for one in kind.__mro__:
        if one in NUMPY or one.__module__ == "dpassay.trace.watch.sources":
            break
        if other := next((its for its in vars(one) if its in _DRAWS - _NO_DRAWS - {name}), ""):
            return other
    bits = getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", None)
    of: Any = type(bits)
    return "" if _is_numpys(of) else "bit generator"


@lru_cache(maxsize=256)
def _is_numpys(kind: type) -> bool:
    for one in kind.__mro__:
        if one in _BITS:
            return True
        if "capsule" in vars(one) or "__getattribute__" in vars(one):
            return False
    return False
