"""Seeds fixed in the code: a module's own generator, or the shared ones, start in the same state in every process.

Needs only numpy.
"""

from __future__ import annotations

import ast
import inspect
import random
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from dpassay.trace.natural.bits import StatedSeed, generators_of, global_names, is_torch_generator, set_state, state_of
from dpassay.values import dataclass

_MAKERS = ("default_rng", "RandomState", "Random", "Generator")
_SHARED = {"manual_seed": "torch", "seed": ""}
_SMALL = 2**32  # the system's own entropy is larger, and so is a randomly drawn seed


@dataclass(frozen=True, eq=False)
class FixedSeed:
    """A generator made from a seed: its name, how to restart it from there, and the line that states the seed.

    Line 0 if the code does not state it: a caller supplied it, and may always supply the same.
    """

    name: str
    file: str
    line: int
    restart: Callable[[], Any]
    generator: Any = None


def fixed_seeds(subject: Any) -> list[FixedSeed]:
    """The seeds that are fixed in the module that a subject is from, and those that its generators were made from.

    >>> fixed_seeds(lambda x: x)
    []
    """
    function = _function(subject)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    tree, file = _source(module), str(getattr(module, "__file__", None) or "")
    stated = {} if tree is None else _stated(tree, subject)
    found = [] if tree is None or function is None else _of_module(function, tree, file)
    known = {id(one.generator) for one in found}
    for held in generators_of(subject):
        seed = None if id(held) in known or _bits(held) is None else _seed_of(held, stated)
        if seed is not None:
            found.append(_held(_name(held, subject, function), held, file, stated.get(seed, 0)))
    return found


def _name(held: Any, subject: Any, function: FunctionType | None) -> str:
    """What the code calls a generator, as far as that is easily seen."""
    attributes = [(f"self.{name}", one) for part in _parts(subject) for name, one in _attributes(part).items()]
    names = [] if function is None else list(function.__globals__.items())
    return next((name for name, one in [*attributes, *names] if _bits(one) is held), "a generator that it holds")


def _attributes(part: Any) -> dict[str, Any]:
    return {} if isinstance(part, FunctionType) else dict(getattr(part, "__dict__", {}))


def _source(module: Any) -> ast.Module | None:
    """The code of a module, but not of a script or a notebook, which may be seeded to be reproducible."""
    if module is None or module.__name__ == "__main__" or not getattr(module, "__file__", None):
        return None
    try:
        return ast.parse(inspect.getsource(module))
    except (OSError, SyntaxError, TypeError):
        return None


def _of_module(function: FunctionType, tree: ast.Module, file: str) -> list[FixedSeed]:
    """The seeds of a module: of the generators that a function uses by their names, and of the shared ones."""
    names, found = global_names(function.__code__), []
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for name in (one.id for one in targets if isinstance(one, ast.Name)):
                held = _bits(function.__globals__.get(name))
                if name in names and _seed(statement.value) is not None and held is not None:
                    found.append(_held(name, held, file, statement.lineno))
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            shared = _shared(statement.value)
            if shared is not None:
                restart = _restart_of(shared, statement.value)
                found.append(FixedSeed(ast.unparse(statement.value.func), file, statement.lineno, restart))
    return found


def _stated(tree: ast.Module, subject: Any) -> dict[int | str, int]:
    """Numbers and texts from which the code makes a generator or an object like this one, and their lines.

    A constant of the module, such as SEED = 42, is one of these.
    """
    made = {*_MAKERS, *(type(one).__name__ for one in _parts(subject))}
    found: dict[int | str, int] = {}
    for one in ast.walk(tree):
        given: list[ast.expr] = []
        if isinstance(one, ast.Call) and (_called(one) in made or _called(one) in _SHARED):
            given = [*one.args, *(keyword.value for keyword in one.keywords)]
            if not given and _called(one) == "Generator" and "torch" in sys.modules:
                found.setdefault(sys.modules["torch"].Generator().initial_seed(), one.lineno)  # always the same
        elif isinstance(one, ast.Assign) and one in tree.body and all(isinstance(to, ast.Name) for to in one.targets):
            given = [one.value]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, int | str):
                found.setdefault(value.value, value.lineno)
    return found


def _seed_of(held: Any, stated: Mapping[int | str, int]) -> int | str | None:
    """The seed that a generator was made from, if it is a number that could be written down."""
    if is_torch_generator(held):
        first = int(held.initial_seed())
        return first if first < _SMALL or first in stated else None
    if isinstance(held, random.Random) and type(held).seed.__module__ not in ("random", __package__ + ".bits"):
        return 0  # a class with a way of its own to seed it: perhaps always the same
    seeding = getattr(held, "seed_seq", None)
    if seeding is not None and type(seeding) not in (np.random.SeedSequence, StatedSeed):
        return 0
    given = getattr(seeding, "entropy", None)
    if isinstance(given, int):
        return given if given < _SMALL or given in stated else None
    for seed in stated:  # older generators do not store their seed, but their initial state is known
        try:
            if isinstance(held, random.Random) and random.Random(seed).getstate() == held.getstate():
                return seed
            if isinstance(held, np.random.MT19937) and isinstance(seed, int) and _same_state(seed, held):
                return seed
        except (TypeError, ValueError):
            continue
    return None


def _same_state(seed: int, held: Any) -> bool:
    first, now = np.random.RandomState(seed)._bit_generator.state["state"], held.state["state"]
    return bool(first["pos"] == now["pos"] and (first["key"] == now["key"]).all())


def _parts(subject: Any) -> list[Any]:
    parts = subject if isinstance(subject, list | tuple) else [subject]
    return [one.__self__ if isinstance(one, MethodType) else one for one in parts]


def _function(subject: Any) -> FunctionType | None:
    for one in subject if isinstance(subject, list | tuple) else [subject]:
        one = one.__func__ if isinstance(one, MethodType) else one
        one = one if isinstance(one, FunctionType) else getattr(type(one), "__call__", None)  # noqa: B004
        if isinstance(one, FunctionType):
            unwrapped = inspect.unwrap(one)
            return unwrapped if isinstance(unwrapped, FunctionType) else one
    return None


def _constant(call: ast.Call) -> Any:
    given = [*call.args, *(one.value for one in call.keywords)]
    if len(given) == 1 and isinstance(given[0], ast.Constant) and isinstance(given[0].value, int | str):
        return given[0].value
    return None


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _seed(call: ast.Call) -> Any:
    """The constant that a generator is made from; None if there is none."""
    if _called(call) == "Generator" and len(call.args) == 1 and isinstance(call.args[0], ast.Call):
        return _constant(call.args[0])
    return _constant(call) if _called(call) in _MAKERS else None


def _shared(call: ast.Call) -> str | None:
    """Which shared generator a statement seeds."""
    if _called(call) not in _SHARED or _constant(call) is None or not isinstance(call.func, ast.Attribute):
        return None
    owner = ast.unparse(call.func.value)
    return (
        "torch"
        if call.func.attr == "manual_seed"
        else "numpy"
        if owner.endswith("random") and "." in owner
        else ("random" if owner == "random" else None)
    )


def _restart_of(shared: str, call: ast.Call) -> Callable[[], Any]:
    seed = _constant(call)
    if shared == "torch":
        return lambda: sys.modules["torch"].manual_seed(seed)
    return lambda: np.random.seed(seed) if shared == "numpy" else random.seed(seed)


def _bits(held: Any) -> Any:
    """What holds the state of a generator; None for anything else and for the system's, which has no state."""
    if isinstance(held, np.random.Generator):
        return held.bit_generator
    if isinstance(held, np.random.RandomState):
        return held._bit_generator
    kept = isinstance(held, np.random.BitGenerator | random.Random) or is_torch_generator(held)
    return held if kept and not isinstance(held, random.SystemRandom) else None


def _held(name: str, bits: Any, file: str, line: int) -> FixedSeed:
    """A generator that begins in every process as it is now."""
    state = state_of(bits)
    return FixedSeed(name, file, line, lambda: set_state(bits, state), bits)
