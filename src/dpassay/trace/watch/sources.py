"""All sources of randomness of a process, watched during one run: numpy's, Python's, and scipy's through numpy's.

A generator that is passed in, held by the subject or made inside is replaced by one that takes its numbers from the
same stream. Sources whose numbers cannot be followed, such as os.urandom, are recorded as opaque.
"""

from __future__ import annotations

import math
import os
import random
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial, wraps
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy import asarray, zeros
from numpy.random._generator import Generator
from numpy.random.mtrand import RandomState

import dpassay.trace.watch.arrays  # noqa: F401  (watched arrays are registered by their module)
from dpassay.trace.laws.number_laws import DEFAULTS, PARAMETERS
from dpassay.trace.natural.bits import is_torch_generator
from dpassay.trace.watch.choosing import (
    PYTHON_CHOICES,
    PYTHON_ORDERS,
    choosing,
    choosing_in_python,
    note_set_state,
    ordering_in_python,
    permuting,
    setting,
    shuffling,
    state_of,
)
from dpassay.trace.watch.follow import of_draw
from dpassay.trace.watch.loaders import watched_methods
from dpassay.trace.watch.numbers import (
    MATH,
    NATURAL,
    adding_exactly,
    elementwise,
    making,
    picking,
    plain,
    quantiles,
    totalling,
    with_node,
)
from dpassay.trace.watch.overriding import PYTHON, has_its_law, is_of
from dpassay.trace.watch.patching import BUILTINS, Patches
from dpassay.trace.watch.record import (
    RecordedRun,
    begin,
    caller,
    caller_of_libraries,
    current,
    drawing,
    end,
    importing,
)

_MAKING = (
    *("array", "asarray", "asanyarray", "ascontiguousarray", "zeros", "empty", "ones", "full"),
    *("zeros_like", "empty_like", "ones_like", "full_like"),
)
_NOT_DRAWS = {"bit_generator", "spawn", "seed", "get_state", "set_state", "getstate", "setstate"}
_PYTHON_DRAWS = (
    *("random", "uniform", "gauss", "normalvariate", "expovariate", "lognormvariate", "triangular", "betavariate"),
    *("gammavariate", "vonmisesvariate", "paretovariate", "weibullvariate", "randint", "randrange", "choice"),
    *("choices", "sample", "shuffle", "getrandbits", "randbytes"),
)
_NOT_SUBJECTS = {"__main__", "dpassay", "numpy", "scipy", "torch"}  # packages that are not searched
MOST_PROCESSES = 8  # processes started by one run that are recorded
_OPAQUE = {
    os: ("urandom",),
    random: ("_urandom",),
    secrets: ("token_bytes", "token_hex", "token_urlsafe"),
}
_GENERATOR, _STATE = Generator, RandomState  # not watched
_DEFAULT_RNG = np.random.default_rng
_STATE_DRAWS = [name for name in dir(_STATE) if not name.startswith("_") and hasattr(np.random, name)]


@cache  # every run installs them again
def _watching(draw: Callable[..., Any], source: str, name: str, method: bool = True) -> Callable[..., Any]:
    """A function or method that draws, with its draws recorded."""

    @wraps(draw)
    def drawn(*arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or drawing or importing() or (method and not has_its_law(run, arguments[0], draw, name)):
            return draw(*arguments, **options)
        given, more = [plain(one) for one in arguments], {key: plain(one) for key, one in options.items()}
        generator = arguments[0] if method and arguments else None
        before = state_of(generator)
        drawing.append(True)
        try:
            numbers = draw(*given, **more)
        finally:
            drawing.pop()
        run.take_bits(before, state_of(generator))
        return _noted(run, source, name, given[1:] if method else given, more, numbers, options.get("out"))

    return drawn


def _noted(
    run: RecordedRun, source: str, name: str, given: list[Any], options: dict[str, Any], numbers: Any, out: Any
) -> Any:
    named = {**dict(zip(PARAMETERS.get(name, ()), given, strict=False)), **options}
    named = {key: one for key, one in named.items() if key not in ("size", "dtype", "out")}
    kind = type(numbers)
    countable = kind is np.ndarray or kind in (float, int, bool) or isinstance(numbers, np.number | np.bool_)
    values = asarray(numbers) if countable else zeros(0)
    if not countable or values.dtype.kind not in "biuf":
        run.drawn(source, name, {}, zeros(0))
        return numbers
    draw = run.drawn(source, name, {**DEFAULTS.get(name, {}), **named}, values)
    if isinstance(numbers, np.ndarray):
        if not np.array_equal(values, draw.values, equal_nan=True):
            numbers[...] = draw.values
        if out is not None and type(out) in NATURAL:
            out.node = of_draw(draw)
            run.note(out.node, draw.values)
            return out
        return with_node(numbers, of_draw(draw), scalar=False, sure=True)
    own = draw.values[()]
    number = numbers if own == numbers or own != own else kind(own)
    return with_node(number, of_draw(draw), scalar=True, sure=True)


class _AlsoPlain(type):
    """A class that accepts the generators it replaces as its own instances."""

    def __instancecheck__(cls, thing: Any) -> bool:
        return any(type.__instancecheck__(base, thing) for base in cls.__mro__[1:-1])


class WatchedGenerator(Generator, metaclass=_AlsoPlain):
    """A generator whose draws are recorded; it takes them from the stream of the one it replaces."""


class WatchedState(RandomState, metaclass=_AlsoPlain):
    """The same for numpy's older generators."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(plain(seed))
        if seed is None:
            _seeded_by_system(self)

    def set_state(self, state: Any) -> None:
        waiting = state.get("has_gauss") if isinstance(state, dict) else len(state) > 3 and state[3]
        if waiting:  # a Gaussian number that a draw may take without any bits
            note_set_state()
        super().set_state(state)


_ORDERS = {"choice": choosing, "shuffle": shuffling, "permutation": permuting, "permuted": permuting}
for _kind, _of in ((WatchedGenerator, _GENERATOR), (WatchedState, _STATE)):
    for _name in dir(_of):
        if not _name.startswith("_") and _name not in _NOT_DRAWS:
            _own = getattr(_of, _name)
            setattr(_kind, _name, _ORDERS[_name](_own) if _name in _ORDERS else _watching(_own, "numpy", _name))


def watched_generator(thing: Any) -> Any:
    """A watched version of one of numpy's generators; anything else unchanged."""
    if type(thing) is _GENERATOR:
        return WatchedGenerator(thing.bit_generator)
    if type(thing) is _STATE:
        state = WatchedState(thing._bit_generator)
        _STATE.set_state(state, thing.get_state())
        return state
    return thing


def _default_rng(seed: Any = None) -> Any:
    generator = WatchedGenerator(_DEFAULT_RNG(plain(seed)).bit_generator)
    if seed is None:
        _seeded_by_system(generator)
    return generator


def first_state(generator: Any) -> Any:
    """Where a generator of any kind is, as a run records it where draws begin."""
    if is_torch_generator(generator):
        from dpassay.trace.watch.tensors import state_of_torch

        return state_of_torch(generator)
    return state_of(_GENERATOR(generator) if isinstance(generator, np.random.BitGenerator) else generator)


def shared_by_torch() -> list[Any]:
    """Torch's own generator, if the process has loaded it."""
    return [sys.modules["torch"].default_generator] if "torch" in sys.modules else []


def _seeded_by_system(generator: Any) -> None:
    """Record that what this generator draws depends on no other draws."""
    if (run := current()) is not None:
        run.reached.add(state_of(generator))


@cache
def _seeding_python(seed: Callable[..., Any]) -> Callable[..., Any]:
    """The seeding of Python's generators, recorded: their states are slow to read."""

    @wraps(seed)
    def seeded(self: Any, a: Any = None, version: int = 2) -> None:
        run, a = current(), plain(a)
        if run is not None and a is not None and not isinstance(self, random.SystemRandom):
            run.starts.append((len(run.draws), ("random", repr(a))))
        seed(self, a, version)

    return seeded


@contextmanager
def watch(run: RecordedRun, subject: Any) -> Iterator[None]:
    """Watch a run of the subject: it records all sources of randomness of the process.

    >>> with watch(run := RecordedRun(0), None):
    ...     noise = np.random.default_rng(0).laplace(0, 2, size=3)
    >>> run.draws[0].distribution, run.draws[0].parameters, run.draws[0].shape
    ('laplace', {'loc': 0, 'scale': 2}, (3,))
    """
    with watching(subject), running(run):
        yield


@contextmanager
def running(run: RecordedRun) -> Iterator[None]:
    """Record a run, while the sources are watched."""
    begin(run)
    try:
        yield
    finally:
        end()


@contextmanager
def watching(subject: Any) -> Iterator[None]:
    """Watch all sources, for one run or for several."""
    patches = Patches()
    try:
        replaced = _patch_libraries(patches)
        _patch_subject(patches, subject, replaced)
        with _torch(patches):
            yield
    finally:
        patches.back()


def _torch(patches: Patches) -> AbstractContextManager[Any]:
    """Torch watched at its dispatcher, if the process has loaded it."""
    if "torch" not in sys.modules:
        return nullcontext()
    from dpassay.trace.watch.tensors import WatchTorch, named_distributions

    for kind, name, draw in named_distributions():
        patches.attribute(kind, name, draw)
    mode: AbstractContextManager[Any] = WatchTorch()  # type: ignore[no-untyped-call]
    return mode


def _patch_python(patches: Patches) -> None:
    """Replace the methods of Python's generators that draw or seed."""
    for name in _PYTHON_DRAWS:
        own = getattr(PYTHON, name)
        if name in PYTHON_CHOICES:
            watching = choosing_in_python(own, name)
        elif name in PYTHON_ORDERS:
            watching = ordering_in_python(own, name)
        else:
            watching = _watching(own, "random", name)
        patches.attribute(PYTHON, name, watching)
    patches.attribute(PYTHON, "setstate", setting(PYTHON.setstate))
    patches.attribute(PYTHON, "seed", _seeding_python(PYTHON.seed))


def _patch_libraries(patches: Patches) -> dict[int, Any]:
    """Replace all functions that draw; return the replacement of each function that a module may have imported."""
    replaced: dict[int, Any] = {}

    def put(thing: Any, name: str, value: Any, library: Any = None) -> None:
        if library is not None and not is_of(library, getattr(thing, name)):
            return  # the code has put a function of its own there
        replaced[id(getattr(thing, name))] = value
        patches.attribute(thing, name, value)

    shared, state = np.random.mtrand._rand, WatchedState(np.random.mtrand._rand._bit_generator)
    _STATE.set_state(state, shared.get_state())  # with the second of two Gaussian numbers, if one is waiting
    patches.undo.append(lambda: shared.set_state(state.get_state()))
    put(np.random.mtrand, "_rand", state)
    for name in ("seed", "get_state", "set_state"):
        put(np.random, name, getattr(state, name), np)
    for held in _distributions() if "scipy.stats" in sys.modules else ():  # they keep the one they began with
        if held.get("_random_state") is shared:
            patches.item(held, "_random_state", state)
    if "scipy.stats" in sys.modules:  # one discrete number is made an int there
        patches.name(vars(sys.modules["scipy.stats._distn_infrastructure"]), "int", BUILTINS["int"])
    for name in _STATE_DRAWS:
        put(np.random, name, getattr(state, name), np)
    put(np.random, "default_rng", _default_rng, np)
    put(np.random, "Generator", WatchedGenerator)
    put(np.random, "RandomState", WatchedState)
    for name in _MAKING:
        put(np, name, making(getattr(np, name)))
    for module, name, value in _computing():
        put(module, name, value)
    _patch_python(patches)
    for name in (*_PYTHON_DRAWS, "setstate"):
        if hasattr(random, name):
            put(random, name, getattr(random._inst, name), random)
    put(random, "seed", random._inst.seed, random)
    for name in ("random", "getrandbits", "randbytes"):  # which the system's source has of its own
        patches.attribute(random.SystemRandom, name, _watching(getattr(random.SystemRandom, name), "random", name))
    put(secrets, "randbelow", _watching(secrets.randbelow, "random", "randrange", method=False), secrets)
    for name, own in (("randbits", "getrandbits"), ("choice", "choice")):
        put(secrets, name, getattr(secrets._sysrand, own), random)  # type: ignore[attr-defined]
    for kind, name, method in (*watched_methods(), *quantiles()):
        (put if isinstance(kind, ModuleType) else patches.attribute)(kind, name, method)
    for module, names in _OPAQUE.items():
        for name in names:
            put(module, name, _opaque(getattr(module, name), f"{module.__name__}.{name.strip('_')}"))
    put(os, "_exit", _staying(os._exit))
    for thing, name in _starting():
        (put if isinstance(thing, ModuleType) else patches.attribute)(thing, name, _noting(getattr(thing, name)))
    return replaced


def _starting() -> Iterator[tuple[Any, str]]:
    """The loaded functions that start another process."""
    yield from ((os, name) for name in ("fork", "system", "posix_spawn") if hasattr(os, name))
    begun = ("subprocess", "Popen", "__init__"), ("multiprocessing.process", "BaseProcess", "start")
    for module, kind, name in begun:
        if module in sys.modules:
            yield getattr(sys.modules[module], kind), name


@cache
def _noting(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def started(*arguments: Any, **options: Any) -> Any:
        run = current()
        if run is not None and len(run.processes) < MOST_PROCESSES:
            run.processes.append(caller_of_libraries())
        return start(*arguments, **options)

    return started


def _computing() -> Iterator[tuple[ModuleType, str, Any]]:
    """Functions that compute with numbers: module, name, and watched."""
    yield math, "fsum", adding_exactly
    for name in ("sum", "mean", "dot", "inner", "cumsum"):
        yield np, name, totalling(getattr(np, name))
    for name in ("argmax", "argmin"):
        yield np, name, picking(getattr(np, name))
    for name, alike in MATH.items():
        yield math, name, elementwise(getattr(math, name), alike)


@cache
def _distributions() -> list[dict[str, Any]]:
    """scipy's distributions, cached because every run needs these hundred among five hundred names."""
    import scipy.stats

    return [vars(one) for one in vars(scipy.stats).values() if "_random_state" in getattr(one, "__dict__", ())]


def _staying(leave: Callable[[int], Any]) -> Callable[[int], Any]:
    """os._exit as an exception in the traced code itself; processes that it forked end as usual."""
    own = os.getpid()

    @wraps(leave)
    def left(status: int) -> Any:
        if os.getpid() == own and current() is not None:
            raise SystemExit(f"os._exit({status})")
        return leave(status)

    return left


@cache
def _opaque(draw: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(draw)
    def drawn(*arguments: Any, **options: Any) -> Any:
        run = current()
        if run is not None and not drawing and not importing() and not _seeding():
            run.opaque.append((name, caller()))
        return draw(*arguments, **options)

    return drawn


def _seeding() -> bool:
    """Whether numpy is asking for a seed, which is not recorded because the numbers of its generators are."""
    frame = sys._getframe(2)
    return frame.f_code.co_name == "getrandbits" and frame.f_locals.get("self") is secrets._sysrand  # type: ignore[attr-defined]


def _patch_subject(patches: Patches, subject: Any, replaced: dict[int, Any]) -> None:
    """Generators that the subject holds, and functions that its modules imported by name."""
    _SubjectSearch(patches, replaced).look(subject, 0)


class _SubjectSearch:
    """A search of what a subject holds, to some depth, visiting each object once."""

    def __init__(self, patches: Patches, replaced: dict[int, Any]) -> None:
        self.patches, self.replaced, self.seen = patches, replaced, set[int]()

    def look(self, thing: Any, depth: int) -> None:
        """Replace the generators in a function, an object, a dict or a list."""
        if id(thing) in self.seen or depth > 4:
            return
        self.seen.add(id(thing))
        if isinstance(thing, MethodType):
            self.look(thing.__self__, depth + 1)
            self.look(thing.__func__, depth)
        elif isinstance(thing, FunctionType):
            for cell in thing.__closure__ or ():
                self.change(_contents(cell), partial(self.patches.cell, cell), depth)
            if thing.__defaults__:
                given = [self.other(one) for one in thing.__defaults__]
                if any(one is not own for one, own in zip(given, thing.__defaults__, strict=True)):
                    self.patches.attribute(thing, "__defaults__", tuple(given))
            self.look(thing.__defaults__ and list(thing.__defaults__), depth)
            self.look(thing.__kwdefaults__, depth)
            self.names(thing.__globals__, thing.__module__)
        elif isinstance(thing, dict):
            for key, value in list(thing.items()):
                self.change(value, partial(self.patches.item, thing, key), depth)
        elif isinstance(thing, list):
            for at, value in enumerate(thing):
                self.change(value, partial(self.patches.item, thing, at), depth)
        elif hasattr(thing, "__dict__") and not isinstance(thing, type | ModuleType):
            for name, value in list(vars(thing).items()):
                self.change(value, partial(self.patches.attribute, thing, name), depth)
            if (home := sys.modules.get(type(thing).__module__)) is not None:
                self.names(vars(home), home.__name__)

    def change(self, value: Any, put: Callable[[Any], None], depth: int) -> None:
        """Replace a value if there is a replacement; otherwise look into it."""
        if (new := self.other(value)) is not value:
            put(new)
        else:
            self.look(value, depth + 1)

    def other(self, value: Any) -> Any:
        new = watched_generator(value)
        return self.replaced.get(id(value), value) if new is value else new

    def names(self, own: dict[str, Any], module: str | None) -> None:
        """A module's names, and those of the other modules of its package."""
        package = (module or "").partition(".")[0]
        if package in sys.stdlib_module_names:
            return
        spaces = [own]
        if package and package not in _NOT_SUBJECTS and hasattr(sys.modules.get(package), "__path__"):
            alike = [name for name in list(sys.modules) if name.startswith(package)]  # of thousands, in every run
            loaded = (sys.modules.get(name) for name in alike if name.partition(".")[0] == package)
            spaces += [vars(one) for one in loaded if one]
        for space in spaces:
            if id(space) in self.seen:
                continue
            self.seen.add(id(space))
            for name, value in BUILTINS.items():
                if name not in space and package not in _NOT_SUBJECTS - {"__main__"}:
                    self.patches.name(space, name, value)
            for name, value in list(space.items()):
                if not name.startswith("__") and (new := self.other(value)) is not value:
                    self.patches.item(space, name, new)
                elif _made_here(value, space.get("__name__")):
                    self.look(value, 2)


def _made_here(value: Any, module: Any) -> bool:
    """Whether it is a function with a closure, or an object of a class, of this module: either may hold a generator."""
    if isinstance(value, FunctionType):
        return bool(value.__closure__) and bool(value.__module__ == module)
    return bool(type(value).__module__ == module)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None
