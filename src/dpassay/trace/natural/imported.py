"""Random numbers that a module draws when it is imported: one outcome for all calls of a process.

Runs in one process cannot show how likely that outcome was. Another import in a copy of the process shows whether
there are such numbers: if so, the code gives a different output with the same random bits in the call.
"""

from __future__ import annotations

import random
import sys
from importlib import import_module
from types import MethodType
from typing import Any

import numpy as np

from dpassay.trace.natural.bits import known_bits
from dpassay.trace.natural.runs import Key, run_naturally
from dpassay.trace.watch.tracer import Tracer


def draws_at_import(tracer: Tracer, x: Any, key: Key) -> bool:
    """Whether two imports of the module of the code make it give different outputs with the same bits.

    Code that cannot be imported again, such as a nested function, is assumed to draw nothing before it is called.
    """
    home = next((home for one in tracer.code if (home := _home(one))), None)
    if home is None or not isinstance(tracer, Tracer):
        return False

    def again() -> list[Any]:
        subject = _imported(*home)
        fresh = Tracer(subject, tracer.seed)
        with known_bits(key, fresh.natural.held):
            return [run_naturally(fresh.call, x, key).data()]

    found = tracer.natural.elsewhere(again, again)
    return len(found) == 2 and not found[0].same(found[1])


def _home(thing: Any) -> tuple[str, str] | None:
    """The module to import the code from, and its name there; None if there is none."""
    if isinstance(thing, MethodType) and not isinstance(thing.__self__, type):
        holder = _home(thing.__self__)
        return None if holder is None else (holder[0], f"{holder[1]}.{thing.__name__}")
    name = getattr(thing, "__module__", None)
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or name == "__main__" or getattr(module, "__file__", None) is None:
        return None
    qualified = getattr(thing, "__qualname__", "")
    if qualified and "<" not in qualified:
        return (module.__name__, qualified) if _found(module, qualified) is thing else None
    return next(((module.__name__, each) for each, one in list(vars(module).items()) if one is thing), None)


def _found(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _imported(module: str, name: str) -> Any:
    """The same code from another import, as in a new process."""
    random.seed()
    np.random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
    del sys.modules[module]
    return _found(import_module(module), name)
