"""What an audit can run: Python objects and functions, programs, HTTP endpoints.

`draw` gives n outputs of any of them and turns exceptions into outputs: a run that fails is evidence. An unusable
object raises an InputError.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import numpy as np

from dpassay.adapters import adapted as library_object
from dpassay.audit.mechanisms.isolation import CallGenerators, called, one_of, one_output, runs_elsewhere
from dpassay.audit.mechanisms.kept_files import Stores
from dpassay.audit.mechanisms.memory import memory_of
from dpassay.audit.mechanisms.python_objects import adapted, attempt, awaited, failure
from dpassay.audit.outputs.outputs import only_output, read
from dpassay.audit.remote.timing import check_time
from dpassay.errors import DpassayError, InputError, MechanismError, escape_control_chars
from dpassay.pipeline.mechanism import HasDistribution, Mechanism, Redrawn, is_pipeline
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.pipeline.distributions import Distribution

CALLS = {1: ("x",), 2: ("x", "rng"), 3: ("x", "n", "rng")}
ALLOWED = (
    "an object with sample(x, n, rng), or a function f(x, n, rng), f(x, rng) or f(x); a torch module and an object "
    "with transform can be run too"
)
METHODS = ("sample", "transform", "fit_transform")  # methods by which a class is recognized as something to run


@dataclass(frozen=True, slots=True)
class RunnableObject:
    """A function as a mechanism. If each call gives one output, each exception is one Failure.

    >>> RunnableObject(lambda x, rng: 1 / x, 2).sample(0, 2, np.random.default_rng(0))
    [Failure(kind='ZeroDivisionError', said='division by zero'), Failure(kind='ZeroDivisionError', ...)]
    """

    function: Callable[..., Any]
    parameters: int

    @property
    def replays(self) -> bool:
        """Whether the same generator gives the same outputs: not if the function has its own randomness."""
        return self.parameters > 1

    @property
    def singly(self) -> bool:
        """Whether each call gives one output."""
        return self.parameters < 3

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        if self.parameters == 3:
            return awaited(self.function(x, n, rng))
        return [attempt(self.one, x, rng) for _ in range(n)]

    def one(self, x: Any, rng: np.random.Generator) -> Any:
        """The output of one call; not for functions that give n of them."""
        return self.function(x, rng) if self.parameters == 2 else self.function(x)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A mechanism that was imported by its path.

    >>> Loaded("mine:coin", RunnableObject(lambda x, n, rng: rng.integers(0, 2, n), 3)).describe()
    {'kind': 'python', 'path': 'mine:coin'}
    """

    path: str
    mechanism: Mechanism

    @property
    def replays(self) -> bool:
        """Whether the same generator gives the same outputs."""
        return bool(getattr(self.mechanism, "replays", True))

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        return self.mechanism.sample(x, n, rng)

    def describe(self) -> dict[str, str]:
        return {"kind": "python", "path": self.path}


@dataclass(frozen=True, slots=True)
class LoadedDistribution(Loaded):
    """The same for a mechanism that knows its distribution.

    >>> from dpassay.pipeline.parser import parse
    >>> isinstance(LoadedDistribution("mine:laplace", parse("laplace(1)", dim=1)), HasDistribution)
    True
    """

    def distribution(self, x: Any) -> Distribution:
        return cast(HasDistribution, self.mechanism).distribution(x)


@dataclass(frozen=True, slots=True)
class LoadedElsewhere(Loaded):
    """The same for a program or an endpoint: it makes single runs in its own way, and reports problems.

    >>> from dpassay.audit.remote.programs import Program
    >>> LoadedElsewhere("mine:program", Program("cat")).notes()
    []
    """

    @property
    def troubles(self) -> Any:
        """Problems that were recovered from."""
        return cast(Any, self.mechanism).troubles

    def sample_each(self, inputs: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        return list(cast(Any, self.mechanism).sample_each(inputs, rng))

    def notes(self) -> list[str]:
        return list(cast(Any, self.mechanism).notes())


def as_mechanism(thing: Any) -> Mechanism:
    """Anything that can be run, as a mechanism; a class without arguments is instantiated. Functions may be async.

    >>> noisy = as_mechanism(lambda x, rng: x + rng.laplace())
    >>> len(noisy.sample(3, 5, np.random.default_rng(0)))
    5
    >>> as_mechanism(3)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: 3 cannot be run; give an object with sample(x, n, rng), or a function ...
    """
    if inspect.isclass(thing):
        thing = _instance(thing)
    library = library_object(thing)
    thing = thing if library is None or library.mechanism is None else library.mechanism
    if callable(getattr(thing, "sample", None)):
        if callable(getattr(thing, "law", None)) and not hasattr(thing, "distribution"):  # it would be ignored
            raise InputError(f"{type(thing).__name__} has a method law(x): rename it to distribution(x)")
        _check_signature(thing)
        return RunnableObject(thing.sample, 3) if inspect.iscoroutinefunction(thing.sample) else cast(Mechanism, thing)
    if (known := adapted(thing)) is not None:
        return known
    if not callable(thing):
        raise InputError(f"{thing!r:.60} cannot be run; give {ALLOWED}")
    name = getattr(thing, "__name__", type(thing).__name__)
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        raise InputError(f"the parameters of {name} cannot be seen; wrap it: lambda x: {name}(x)") from None
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = tuple(p.name for p in required)
    call = CALLS.get(len(names), ())
    # A parameter called n or rng that would get something else is a mistake; the first is the input, whatever its name.
    misplaced = [a for i, a in enumerate(names) if (a == "rng" or (a == "n" and i > 0)) and call[i : i + 1] != (a,)]
    if not call or misplaced or any(p.kind is p.KEYWORD_ONLY for p in required):
        takes = f"needs ({', '.join(names)})" if names else "has no parameter for the input"
        raise InputError(f"the function {name} {takes}; give {ALLOWED}")
    return RunnableObject(thing, len(names))


def draw(mechanism: Mechanism, x: Any, n: int, rng: np.random.Generator) -> Any:
    """Draw n outputs: a numpy array, or a list or tuple. An exception becomes a Failure.

    A batch that raises is redrawn one by one, and returned as `Redrawn`: see there before counting.

    >>> draw(as_mechanism(lambda x, n, rng: x + rng.integers(0, 2, n)), 5, 3, np.random.default_rng(0))
    array([5, 6, 6])
    >>> draw(as_mechanism(lambda x, n, rng: [x]), 5, 3, np.random.default_rng(0))
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: the mechanism gave 1 output where 3 were asked for: ...
    """
    if n < 0:
        raise InputError(f"the number of outputs must be 0 or more, got {n}")
    _check_signature(mechanism)
    if n == 0:
        return []
    if one_at_a_time(mechanism) and not runs_elsewhere(mechanism):
        return draw_singly(mechanism, x, n, rng)
    check_time()
    try:
        batch = called(mechanism, x, n, rng)
    except DpassayError:
        raise
    except MemoryError as error:
        raise MechanismError(f"there is not enough memory to draw {n} outputs at once; ask for fewer") from error
    except (Exception, SystemExit) as error:
        if n == 1:
            return [failure(error)]
        return Redrawn(draw_singly(mechanism, x, n, rng))
    return batch


def draw_singly(mechanism: Mechanism, x: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Draw n outputs by n calls that ask for one. Slow, but correct if single runs may fail.

    >>> draw_singly(as_mechanism(lambda x, n, rng: [1 / x] * n), 4, 2, np.random.default_rng(0))
    [0.25, 0.25]
    >>> draw_singly(as_mechanism(lambda x, n, rng: [1 / x] * n), 0, 1, np.random.default_rng(0))
    [Failure(kind='ZeroDivisionError', said='division by zero')]
    """
    return draw_each(mechanism, [x] * n, rng)


def draw_each(mechanism: Mechanism, inputs: Sequence[Any], rng: np.random.Generator, forget: bool = True) -> list[Any]:
    """One output for each input, in order: at once if the mechanism supports several inputs, otherwise one by one.

    What a call keeps for its input is forgotten after it, if `forget`.

    >>> draw_each(as_mechanism(lambda x, rng: -x), [1, 2, 1], np.random.default_rng(0))
    [-1, -2, -1]
    """
    at_once = getattr(mechanism, "sample_each", None)
    if at_once is not None:
        return list(at_once(inputs, rng))
    if is_pipeline(mechanism):
        return [attempt(lambda x: only_output(called(mechanism, x, 1, rng)), x) for x in inputs]
    calls, inner = CallGenerators(rng, memory_of(mechanism) if forget else None), mechanism
    while isinstance(inner, Loaded):
        inner = inner.mechanism
    if isinstance(inner, RunnableObject) and inner.singly:
        return [attempt(one_of, inner.one, x, calls) for x in inputs]
    return [attempt(one_output, mechanism, x, calls) for x in inputs]


def settle(mechanism: Mechanism, inputs: Sequence[Any], rng: np.random.Generator) -> int:
    """Find out once, by a few calls, whether the mechanism stores something for each input; return their number.

    >>> answers = [None, None]
    >>> def noisy(x, rng):
    ...     answers[x] = rng.random() if answers[x] is None else answers[x]
    ...     return answers[x]
    >>> settle(mechanism := as_mechanism(noisy), (0, 1), np.random.default_rng(0))
    16
    >>> len({*draw_each(mechanism, [0, 1] * 10, np.random.default_rng(0))})
    20
    """
    memory = None if is_pipeline(mechanism) or runs_elsewhere(mechanism) else memory_of(mechanism)
    if memory is None or memory.settled:
        return 0
    calls = [x for x in inputs[:2] for _ in range(2)]
    drawn = draw_each(mechanism, calls, rng)
    if memory.values.decide():  # a value that is replaced at random may look like a stored one
        drawn += draw_each(mechanism, calls, rng)
    memory.settled = True
    if memory.values.decide():
        memory.values.put_back()
        before, drawn = drawn, drawn + draw_each(mechanism, calls + calls, rng)
        if not _varies(drawn[len(before) :]) and _varies(before):  # restoring it restores the seed of its noise
            memory.values.found = []
        memory.by_input |= memory.values.answers
    return len(drawn)


def stores_now(mechanism: Mechanism) -> Stores:
    """The stores that the mechanism might use, before its calls."""
    return Stores(databases=not (is_pipeline(mechanism) or runs_elsewhere(mechanism)))


def refuse_kept_answers(
    mechanism: Mechanism, inputs: Sequence[Any], rng: np.random.Generator, stores: Stores, here: bool = True
) -> None:
    """Refuse a mechanism that reads what earlier calls wrote to a file or a database: its runs may repeat one answer.

    `here`: whether calls with these inputs were made in this process.
    """
    if is_pipeline(mechanism) or runs_elsewhere(mechanism):
        return

    def call(x: Any) -> None:
        draw_each(mechanism, [x], rng)

    for x in () if here else inputs:
        call(x)
    kept = next(filter(None, (stores.read_back(partial(call, x)) for x in inputs)), "")
    if kept:
        raise InputError(
            f"the mechanism reads {escape_control_chars(kept)}, which earlier calls wrote: if it keeps answers there, "
            "its runs repeat them and show nothing; let each call begin with an empty one, or keep none"
        )


def _varies(outputs: Sequence[Any]) -> bool:
    """Whether some input gave different outputs: of two inputs in turn, each called twice in a row."""
    keys = read(outputs, "repr").keys().tolist()
    return any(len({keys[k] for k in range(len(keys)) if k % 4 // 2 == side}) > 1 for side in (0, 1))


def one_at_a_time(mechanism: Any) -> bool:
    """Whether each call of the mechanism gives one output only.

    >>> one_at_a_time(as_mechanism(lambda x, rng: x)), one_at_a_time(as_mechanism(lambda x, n, rng: [x] * n))
    (True, False)
    """
    if isinstance(mechanism, Loaded):
        return one_at_a_time(mechanism.mechanism)
    return bool(getattr(mechanism, "singly", False))


def load_python(path: str) -> Loaded:
    """Import `package.module:name`, the current directory first, as a mechanism that remembers its path.

    >>> load_python("math:sqrtt")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: the module math has no 'sqrtt'; close names: sqrt, isqrt
    """
    return _loaded(path, load_object(path))


def _loaded(path: str, thing: Any) -> Loaded:
    mechanism = as_mechanism(thing)
    if hasattr(mechanism, "sample_each") and hasattr(mechanism, "troubles"):
        return LoadedElsewhere(path, mechanism)
    return LoadedDistribution(path, mechanism) if isinstance(mechanism, HasDistribution) else Loaded(path, mechanism)


def load_subject(path: str) -> Any:
    """The same, but an object of a known library keeps everything that it states; its mechanism remembers the path.

    >>> load_subject("math:sin")
    Loaded(path='math:sin', mechanism=RunnableObject(function=<built-in function sin>, parameters=1))
    """
    thing = load_object(path)
    known = library_object(thing)
    if known is None:
        return _loaded(path, thing)
    return known if known.mechanism is None else replace(known, mechanism=_loaded(path, known.mechanism))


def load_object(path: str) -> Any:
    """Import `package.module:name`, the current directory first; a class's method is bound to a new object.

    >>> load_object("math:isqrt")(10)
    3
    """
    module, colon, name = path.partition(":")
    if not colon or not name or not all(part.isidentifier() for part in module.split(".")) or module.endswith(".py"):
        raise InputError(f"give package.module:name, such as noisy.counts:rewrite, without .py; got {path!r}")
    found: Any = _imported(module)
    for part in name.split("."):
        if not hasattr(found, part):
            import difflib

            close = ", ".join(difflib.get_close_matches(part, [a for a in dir(found) if not a.startswith("__")]))
            where = f"the module {module}" if inspect.ismodule(found) else repr(name.partition("." + part)[0])
            raise InputError(f"{where} has no {part!r}; " + (f"close names: {close}" if close else "check the name"))
        owner, found = found, getattr(found, part)
        if inspect.isclass(owner) and _needs_self(owner, part):
            found = getattr(_instance(owner, part), part)
    return found


def describe(thing: Any) -> dict[str, str]:
    """A description of a mechanism for a certificate.

    >>> from dpassay.pipeline.parser import parse
    >>> describe(parse("clip(l2, 1) | laplace(2)", dim=32))
    {'kind': 'pipeline', 'pipeline': 'clip(l2, 1) | laplace(2)', 'dim': '32'}
    >>> from dpassay.audit.remote.programs import Program
    >>> describe(Program("python rewriter.py"))
    {'kind': 'command', 'command': 'python rewriter.py'}
    """
    if is_pipeline(thing):
        return {"kind": "pipeline", "pipeline": str(thing), "dim": str(thing.dim)}
    if callable(getattr(thing, "describe", None)):
        return dict(thing.describe())
    named = thing.function if isinstance(thing, RunnableObject) else thing
    named = named if hasattr(named, "__qualname__") else type(named)
    return {"kind": "object", "type": f"{named.__module__}.{named.__qualname__}"}


def _instance(kind: type, method: str = "") -> Any:
    """An object of a class that needs no arguments."""
    if not method and not any(callable(getattr(kind, name, None)) for name in METHODS) and not _has_call(kind):
        raise InputError(f"the class {kind.__name__} has no sample; give {ALLOWED}")
    try:
        inspect.signature(kind).bind()
    except (TypeError, ValueError) as error:
        raise InputError(f"the class {kind.__name__} needs arguments ({error}); give an instance of it") from None
    try:
        return kind()
    except Exception as error:
        raise InputError(f"{kind.__name__}() raised {_named(error)}; give an instance of it") from error


def _needs_self(owner: type, name: str) -> bool:
    """Whether it is a method, not a function that is merely stored in the class."""
    static = inspect.getattr_static(owner, name, None)
    return inspect.isfunction(static) and static.__code__.co_varnames[:1] == ("self",)


def _has_call(kind: type) -> bool:
    return any("__call__" in vars(base) for base in kind.__mro__[:-1])


_FITTING: WeakSet[type] = WeakSet()  # classes whose sample was found to accept the arguments


def _check_signature(mechanism: Mechanism) -> None:
    in_class = inspect.isfunction(inspect.getattr_static(type(mechanism), "sample", None))
    own = not in_class or "sample" in getattr(mechanism, "__dict__", ())  # an attribute of this object only
    if type(mechanism) in _FITTING and not own:
        return
    try:
        signature = inspect.signature(mechanism.sample)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, 1, None)
    except TypeError as error:
        kind = type(mechanism).__name__
        raise InputError(
            f"{kind}.sample{signature} cannot be called as sample(x, n, rng): {error}; give it these three parameters"
        ) from None
    if not own:
        _FITTING.add(type(mechanism))


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _imported(module: str) -> Any:
    import importlib

    if sys.path[:1] not in ([""], [os.getcwd()]):
        sys.path.insert(0, os.getcwd())
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise InputError(
                f"there is no module {error.name!r}, neither in {os.getcwd()} nor installed; "
                f"check the name, or change to its folder"
            ) from None
        raise InputError(f"the module {module} raised {_named(error)} while it was imported; fix that first") from error
