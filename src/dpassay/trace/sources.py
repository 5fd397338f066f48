"""Every source of randomness of a process, watched during one run: numpy's, Python's, scipy's through numpy's.

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
from operator import setitem
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dpassay.trace.choosing import PYTHON_CHOICES, choosing, choosing_in_python
from dpassay.trace.follow import of_draw
from dpassay.trace.numbers import MATH, elementwise, making, plain, totalling, watched, with_node
from dpassay.trace.record import Run, begin, caller, current, drawing, end, importing

PARAMETERS = {
    "laplace": ("loc", "scale"),
    "normal": ("loc", "scale"),
    "gumbel": ("loc", "scale"),
    "logistic": ("loc", "scale"),
    "uniform": ("low", "high"),
    "exponential": ("scale",),
    "gauss": ("mu", "sigma"),
    "normalvariate": ("mu", "sigma"),
    "expovariate": ("lambd",),
    "geometric": ("p",),
    "binomial": ("n", "p"),
    "integers": ("low", "high", "size", "dtype", "endpoint"),
    "randint": ("low", "high"),
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "laplace": {"loc": 0.0, "scale": 1.0},
    "normal": {"loc": 0.0, "scale": 1.0},
    "gauss": {"mu": 0.0, "sigma": 1.0},
    "normalvariate": {"mu": 0.0, "sigma": 1.0},
    "uniform": {"low": 0.0, "high": 1.0},
    "exponential": {"scale": 1.0},
    "expovariate": {"lambd": 1.0},
}
_MAKING = (
    *("array", "asarray", "asanyarray", "ascontiguousarray", "zeros", "empty", "ones", "full"),
    *("zeros_like", "empty_like", "ones_like", "full_like"),
)
_NOT_DRAWS = {"bit_generator", "spawn", "seed", "get_state", "set_state", "getstate", "setstate"}
_PYTHON_DRAWS = (
    *("random", "uniform", "gauss", "normalvariate", "expovariate", "lognormvariate", "triangular", "betavariate"),
    *("gammavariate", "vonmisesvariate", "paretovariate", "weibullvariate", "randint", "randrange", "choice"),
    *("choices", "sample", "shuffle", "getrandbits"),
)
_STATE_DRAWS = [name for name in dir(np.random.RandomState) if not name.startswith("_") and hasattr(np.random, name)]
_NOT_SUBJECTS = {"__main__", "dpassay", "numpy", "scipy", "torch"}  # packages that are not searched
_OPAQUE = {
    os: ("urandom",),
    random: ("_urandom",),
    secrets: ("randbits", "randbelow", "choice", "token_bytes", "token_hex", "token_urlsafe"),
}
_GENERATOR, _STATE, _DEFAULT_RNG = np.random.Generator, np.random.RandomState, np.random.default_rng  # not watched


@cache  # every run installs them again
def _watching(draw: Callable[..., Any], source: str, name: str, method: bool = True) -> Callable[..., Any]:
    """A function or method that draws, with its draws recorded."""

    @wraps(draw)
    def drawn(*arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or drawing or importing():
            return draw(*arguments, **options)
        drawing.append(True)
        try:
            given = [plain(one) for one in arguments]
            numbers = draw(*given, **{key: plain(one) for key, one in options.items()})
        finally:
            drawing.pop()
        return _noted(run, source, name, given[1:] if method else given, options, numbers)

    return drawn


def _noted(run: Run, source: str, name: str, given: list[Any], options: dict[str, Any], numbers: Any) -> Any:
    named = {**dict(zip(PARAMETERS.get(name, ()), given, strict=False)), **options}
    named = {key: plain(one) for key, one in named.items() if key not in ("size", "dtype", "out")}
    try:
        values = np.asarray(numbers)
    except ValueError:
        values = np.asarray(None)
    if values.dtype.kind not in "biuf":
        run.drawn(source, name, named, np.zeros(0))
        return numbers
    draw = run.drawn(source, name, {**DEFAULTS.get(name, {}), **named}, values)
    if isinstance(numbers, np.ndarray):
        return watched(draw, scalar=False)
    number = type(numbers)(draw.values[()])
    return with_node(number, of_draw(draw), scalar=True)


class _AlsoPlain(type):
    """A class that accepts the generators it replaces as its own instances."""

    def __instancecheck__(cls, thing: Any) -> bool:
        return any(type.__instancecheck__(base, thing) for base in cls.__mro__[1:-1])


class WatchedGenerator(np.random.Generator, metaclass=_AlsoPlain):
    """A generator whose draws are recorded; it takes them from the stream of the one it replaces."""


class WatchedState(np.random.RandomState, metaclass=_AlsoPlain):
    """The same for numpy's older generators."""


for _kind, _of in ((WatchedGenerator, np.random.Generator), (WatchedState, np.random.RandomState)):
    for _name in dir(_of):
        if not _name.startswith("_") and _name not in _NOT_DRAWS:
            _own = getattr(_of, _name)
            setattr(_kind, _name, choosing(_own) if _name == "choice" else _watching(_own, "numpy", _name))


def watched_generator(thing: Any) -> Any:
    """A watched version of one of numpy's generators; anything else unchanged."""
    if type(thing) is _GENERATOR:
        return WatchedGenerator(thing.bit_generator)
    if type(thing) is _STATE:
        return WatchedState(thing._bit_generator)
    return thing


def _default_rng(seed: Any = None) -> Any:
    return WatchedGenerator(_DEFAULT_RNG(plain(seed)).bit_generator)


class _Patches:
    """Attributes, names and cells with temporarily replaced values."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], Any]] = []

    def attribute(self, thing: Any, name: str, value: Any) -> None:
        if isinstance(thing, ModuleType) and name in vars(thing):
            self.item(vars(thing), name, value)
            return
        special = isinstance(thing, FunctionType) or not hasattr(thing, "__dict__")
        own = getattr(thing, name) if special else vars(thing).get(name, _patches_nothing)
        put: Any = setattr if isinstance(thing, type | ModuleType) else object.__setattr__
        try:
            put(thing, name, value)
        except (AttributeError, TypeError):
            return
        if own is _patches_nothing:
            self.undo.append(lambda: delattr(thing, name))
        else:
            self.undo.append(lambda: put(thing, name, own))

    def item(self, container: Any, key: Any, value: Any) -> None:
        self.undo.append(partial(setitem, container, key, container[key]))
        container[key] = value

    def cell(self, cell: Any, value: Any) -> None:
        own = cell.cell_contents
        cell.cell_contents = value
        self.undo.append(lambda: setattr(cell, "cell_contents", own))

    def back(self) -> None:
        while self.undo:
            self.undo.pop()()


_patches_nothing = object()


@contextmanager
def watch(run: Run, subject: Any) -> Iterator[None]:
    """Watch a run of the subject: it records all sources of randomness of the process.

    >>> with watch(run := Run(0), None):
    ...     noise = np.random.default_rng(0).laplace(0, 2, size=3)
    >>> run.draws[0].distribution, run.draws[0].parameters, run.draws[0].shape
    ('laplace', {'loc': 0, 'scale': 2}, (3,))
    """
    patches = _Patches()
    begin(run)
    try:
        replaced = _patch_libraries(patches)
        _patch_subject(patches, subject, replaced)
        with _torch(patches):
            yield
    finally:
        patches.back()
        end()


def _torch(patches: _Patches) -> AbstractContextManager[Any]:
    """Torch watched at its dispatcher, if the process has loaded it."""
    if "torch" not in sys.modules:
        return nullcontext()
    from dpassay.trace.tensors import WatchTorch, named_distributions

    for kind, name, draw in named_distributions():
        patches.attribute(kind, name, draw)
    mode: AbstractContextManager[Any] = WatchTorch()  # type: ignore[no-untyped-call]
    return mode


def _patch_libraries(patches: _Patches) -> dict[int, Any]:
    """Replace what draws; returns the replacement of each function that a module may have imported."""
    replaced: dict[int, Any] = {}

    def put(thing: Any, name: str, value: Any) -> None:
        replaced[id(getattr(thing, name))] = value
        patches.attribute(thing, name, value)

    shared, state = np.random.mtrand._rand, WatchedState(np.random.mtrand._rand._bit_generator)
    put(np.random.mtrand, "_rand", state)
    for held in _distributions() if "scipy.stats" in sys.modules else ():  # they keep the one they began with
        if held.get("_random_state") is shared:
            patches.item(held, "_random_state", state)
    for name in _STATE_DRAWS:
        put(np.random, name, getattr(state, name))
    put(np.random, "default_rng", _default_rng)
    put(np.random, "Generator", WatchedGenerator)
    put(np.random, "RandomState", WatchedState)
    for name in _MAKING:
        put(np, name, making(getattr(np, name)))
    for name in ("sum", "mean"):
        put(np, name, totalling(getattr(np, name)))
    for name, alike in MATH.items():
        put(math, name, elementwise(getattr(math, name), alike))
    for name in _PYTHON_DRAWS:
        own = getattr(random.Random, name)
        watching = choosing_in_python(own, name) if name in PYTHON_CHOICES else _watching(own, "random", name)
        patches.attribute(random.Random, name, watching)
    for name in _PYTHON_DRAWS:
        if hasattr(random, name):
            put(random, name, getattr(random._inst, name))
    for module, names in _OPAQUE.items():
        for name in names:
            put(module, name, _opaque(getattr(module, name), f"{module.__name__}.{name.strip('_')}"))
    put(os, "_exit", _staying(os._exit))
    return replaced


@cache
def _distributions() -> list[dict[str, Any]]:
    """scipy's distributions: a hundred among five hundred names, and every run needs them."""
    import scipy.stats

    return [vars(one) for one in vars(scipy.stats).values() if "_random_state" in getattr(one, "__dict__", ())]


def _staying(leave: Callable[[int], Any]) -> Callable[[int], Any]:
    """os._exit as an exception in the traced code itself; processes that it has forked end as they did."""
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
    """Whether numpy asks for a seed: the numbers of its generators are seen anyway."""
    frame = sys._getframe(2)
    return frame.f_code.co_name == "getrandbits" and frame.f_locals.get("self") is secrets._sysrand  # type: ignore[attr-defined]


def _patch_subject(patches: _Patches, subject: Any, replaced: dict[int, Any]) -> None:
    """Generators that the subject holds, and functions that its modules imported by name."""
    _Search(patches, replaced).look(subject, 0)


class _Search:
    """What a subject holds, searched once, to some depth."""

    def __init__(self, patches: _Patches, replaced: dict[int, Any]) -> None:
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
            for name, value in list(space.items()):
                if not name.startswith("__") and (new := self.other(value)) is not value:
                    self.patches.item(space, name, new)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None
