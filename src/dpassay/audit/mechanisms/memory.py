"""What a mechanism keeps for the inputs it has seen is forgotten after each call.

Otherwise noise that is drawn once for an input and stored would look like no noise. One such answer may be private,
and so may all of them together, but runs that repeat it are not independent. Covered here are dictionaries,
attributes and caches that the code reaches. What was in them before the audit stays, and so does what only one call
adds, such as a model loaded on first use. `kept_values` covers what calls replace in lists, arrays and variables.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpassay.audit.mechanisms.kept_values import KeptValues, SlotAttributes, variables

KEPT = 16  # mechanisms whose places are remembered
DEEPEST, MOST_VISITED = 4, 500  # steps from the mechanism to a place, and objects on the way
_CHANGING = (list, set, deque, np.ndarray)  # whose contents calls may replace
KNOWN_LIBRARIES = frozenset({"builtins", "numpy", "torch", "scipy", "sklearn", "pandas", "random", "dpassay"})


class Memory:
    """The places where a mechanism may keep something for an input, and what calls have added to them."""

    def __init__(self, mechanism: Any) -> None:
        dicts, self.caches, others = _places(_innermost(mechanism))
        self.values = KeptValues([*filter(None, dicts), *others])
        self.settled = not self.values  # whether it is known what they store
        self.dicts = [(place, set(place)) for place in dicts]
        self.added: list[tuple[dict[Any, Any], Any]] = []
        self.by_input = False  # whether calls were seen to add something for their input
        self._calls = 0  # calls that added something
        self._cached = [_size(cache) for cache in self.caches]

    def __bool__(self) -> bool:
        return bool(self.dicts or self.caches or self.values)

    def forget(self, x: Any) -> None:
        """Forget what the last call, with input x, added; additions by one call only do not belong to an input."""
        if not self.settled:
            self.values.look(x)
        elif self.values.found:
            self.values.put_back()
        new = [(place, key) for place, known in self.dicts if len(place) != len(known) for key in set(place) - known]
        cached = [_size(cache) for cache in self.caches]
        if not new and cached == self._cached:
            return
        self._calls += 1
        self.by_input |= self._calls > 1 or any(_is_of(key, x) for _, key in new)
        if not self.by_input:
            self._remember(new, cached)
            return
        kinds = {(id(place), type(place[key])) for place, key in new}
        # Of what the first call added, only what resembles this was for its input; the rest may be an advancing seed.
        alike = [(place, key) for place, key in self.added if (id(place), type(place.get(key))) in kinds]
        for place, key in (*alike, *new):
            if not _draws(place.get(key)):
                place.pop(key, None)
        for place, known in self.dicts if self.added or new else ():
            known.clear()
            known.update(place)
        for cache in self.caches:
            cache.cache_clear()
        self.added, self._cached = [], [_size(cache) for cache in self.caches]

    def _remember(self, new: list[tuple[dict[Any, Any], Any]], cached: list[int]) -> None:
        """Note what the first call has added, and what there is to look at in it."""
        self.added, self._cached = new, cached
        for place, known in self.dicts:
            known |= set(place)
        for place, key in new:
            dicts, caches, _ = _places(place[key])
            self.dicts += [(inner, set()) for inner in dicts]
            self.caches += caches
            self._cached += [_size(cache) for cache in caches]


def memory_of(mechanism: Any) -> Memory | None:
    """The memory of a mechanism, the same object at every call; None if it has no place for one."""
    for known, memory in _KNOWN:
        if known is mechanism:
            return memory
    made = Memory(mechanism)
    found = made if made else None
    _KNOWN.append((mechanism, found))
    return found


def memory_in_use(mechanism: Any) -> bool:
    """Whether calls of a mechanism were seen to keep something for their input, which was forgotten after each.

    >>> memory_in_use(lambda x: x)
    False
    """
    return any(known is mechanism and memory is not None and memory.by_input for known, memory in _KNOWN)


_KNOWN: deque[tuple[Any, Memory | None]] = deque(maxlen=KEPT)


def _innermost(mechanism: Any) -> Any:
    """What the user gave, without wrappers."""
    for name in ("mechanism", "function"):
        while type(mechanism).__module__.startswith("dpassay.") and hasattr(mechanism, name):
            mechanism = getattr(mechanism, name)
    return mechanism


def _size(cache: Any) -> int:
    return int(cache.cache_info().currsize)


def _is_of(key: Any, x: Any) -> bool:
    """Whether a key is an input, or has it among its parts."""
    try:
        return any(bool(one == x) for one in (key, *(key if type(key) is tuple else ())))
    except Exception:  # comparing may run any code
        return False


def _draws(value: Any) -> bool:
    """Whether it is a random number generator: restarting one would repeat its noise."""
    return any(name in type(value).__name__ for name in ("Generator", "Random"))


def _places(subject: Any) -> tuple[list[dict[Any, Any]], list[Any], list[Any]]:
    """The dictionaries, attributes included, the caches of functions, and other places that code can reach."""
    dicts: list[dict[Any, Any]] = []
    caches: list[Any] = []
    others: list[Any] = []
    seen: dict[int, Any] = {}
    waiting = deque([(subject, 0)])
    while waiting and len(seen) < MOST_VISITED:
        one, deep = waiting.popleft()
        if id(one) in seen or deep > DEEPEST:
            continue
        seen[id(one)] = one
        if isinstance(one, dict):
            dicts.append(one)
        elif isinstance(one, functools._lru_cache_wrapper):
            caches.append(one)
        elif type(one) in _CHANGING:
            others.append(one)
        elif isinstance(one, types.FunctionType) or _is_own(one):
            dicts.append(vars(one))
        if isinstance(one, types.FunctionType):
            others += variables(one)
        elif slots := [name for kind in type(one).__mro__[:-1] for name in _slots(kind) if _is_of_user(one)]:
            others.append(SlotAttributes(one, tuple(slots)))
        waiting += [(inside, deep + 1) for inside in _inside(one)]
    return dicts, caches, others


def _is_own(one: Any) -> bool:
    """Whether it is an object with attributes, of a class that does not belong to a library."""
    known = isinstance(one, type | types.ModuleType | types.MethodType | functools.partial)
    return not known and hasattr(one, "__dict__") and _is_of_user(one)


def _is_of_user(one: Any) -> bool:
    return type(one).__module__.partition(".")[0] not in KNOWN_LIBRARIES


def _inside(one: Any) -> Iterator[Any]:
    """The contents of a function, an object or a dictionary that may be a place, or lead to one."""
    if isinstance(one, types.FunctionType):
        yield from (cell.cell_contents for cell in one.__closure__ or () if filled(cell))
        yield from (*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values(), *vars(one).values())
        yield from (one.__globals__[name] for name in _names(one.__code__) if name in one.__globals__)
    elif isinstance(one, types.MethodType):
        yield from (one.__self__, one.__func__)
    elif isinstance(one, functools.partial):
        yield from (one.func, *one.args, *one.keywords.values())
    elif isinstance(one, functools._lru_cache_wrapper):
        yield one.__wrapped__
    elif isinstance(one, dict | list):
        held = list(one.values() if isinstance(one, dict) else one)
        yield from (value for value in held[:MOST_VISITED] if isinstance(value, dict) or type(value) in _CHANGING)
    elif not isinstance(one, type | types.ModuleType) and _is_of_user(one):
        yield from vars(one).values() if hasattr(one, "__dict__") else ()
        for kind in type(one).__mro__[:-1]:
            yield from (value for value in vars(kind).values() if _leads(value))
            yield from (getattr(one, name) for name in _slots(kind) if hasattr(one, name))


def _slots(kind: type) -> tuple[str, ...]:
    named = vars(kind).get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _leads(value: Any) -> bool:
    return isinstance(value, dict | functools._lru_cache_wrapper | types.FunctionType) or type(value) in _CHANGING


def filled(cell: types.CellType) -> bool:
    """Whether a variable that functions share has a value."""
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that was never bound
        return False


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that a function looks up, those of functions inside it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
