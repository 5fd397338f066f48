"""Seeds that are fixed in the code: a module's own generator, or the shared ones, begin the same in every process.

Needs only numpy.
"""

from __future__ import annotations

import ast
import inspect
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import numpy as np

_MAKERS = ("default_rng", "RandomState", "Random", "Generator")
_SHARED = {"manual_seed": "torch", "seed": ""}
_SMALL = 2**64  # the system's own entropy is larger


@dataclass(frozen=True, eq=False)
class FixedSeed:
    """A generator with a seed that is written in the code: its name, its line, and how to start it there again."""

    name: str
    file: str
    line: int
    restart: Callable[[], Any]
    generator: Any = None


def fixed_seeds(subject: Any) -> list[FixedSeed]:
    """The fixed seeds of the module that a function is from, as far as the function uses them.

    >>> fixed_seeds(lambda x: x)
    []
    """
    function = _function(subject)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if function is None or module is None or module.__name__ == "__main__" or not getattr(module, "__file__", None):
        return []
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, SyntaxError, TypeError):
        return []
    names, found = _names(function.__code__), _of_object(subject, tree, module.__file__ or "")
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for name in (one.id for one in targets if isinstance(one, ast.Name)):
                held = function.__globals__.get(name)
                if name in names and _seed(statement.value) is not None and _bits(held) is not None:
                    found.append(_held(name, held, module.__file__ or "", statement.lineno))
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            shared = _shared(statement.value)
            if shared is not None:
                restart = _restart_of(shared, statement.value)
                said = ast.unparse(statement.value.func)
                found.append(FixedSeed(said, module.__file__ or "", statement.lineno, restart))
    return found


def _of_object(subject: Any, tree: ast.Module, file: str) -> list[FixedSeed]:
    """Generators that an object holds, with a seed that its module states."""
    stated = {
        seed: call.lineno for call in ast.walk(tree) if isinstance(call, ast.Call) and (seed := _seed(call)) is not None
    }
    found = []
    for one in subject if isinstance(subject, list | tuple) else [subject]:
        one = one.__self__ if isinstance(one, MethodType) else one
        for name, held in list(getattr(one, "__dict__", {}).items()):
            given = getattr(getattr(_bits(held), "seed_seq", None), "entropy", None)
            if isinstance(given, int) and given < _SMALL and given in stated:
                found.append(_held(f"self.{name}", held, file, stated[given]))
    return found


def _function(subject: Any) -> FunctionType | None:
    for one in subject if isinstance(subject, list | tuple) else [subject]:
        one = one.__func__ if isinstance(one, MethodType) else one
        one = one if isinstance(one, FunctionType) else getattr(type(one), "__call__", None)  # noqa: B004
        if isinstance(one, FunctionType):
            unwrapped = inspect.unwrap(one)
            return unwrapped if isinstance(unwrapped, FunctionType) else one
    return None


def _names(code: Any) -> set[str]:
    inner = [one for one in code.co_consts if inspect.iscode(one)]
    return set(code.co_names).union(*(_names(one) for one in inner))


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
    if isinstance(held, np.random.Generator):
        return held.bit_generator
    if isinstance(held, np.random.RandomState):
        return held._bit_generator
    return held if isinstance(held, random.Random) and not isinstance(held, random.SystemRandom) else None


def _held(name: str, held: Any, file: str, line: int) -> FixedSeed:
    """A generator of the module, which begins in every process as it is now."""
    bits = _bits(held)
    if isinstance(bits, random.Random):
        state = bits.getstate()
        return FixedSeed(name, file, line, lambda: bits.setstate(state), bits)
    numbers = bits.state
    return FixedSeed(name, file, line, lambda: setattr(bits, "state", numbers), bits)
