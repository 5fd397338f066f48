"""Values that a mechanism replaces for each input it sees: in lists, arrays, sets, attributes and variables.

A table with an answer for each input, or the answer to the last input, changes when the input changes but not when
the input is repeated. A counter, a seed that advances or a supply of noise changes at every call; restoring it would
repeat its noise.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator, Sequence
from opcode import opmap
from typing import Any

import numpy as np

MOST_ELEMENTS = 10_000  # of a list, an array or a set; what is larger is a model or a data set
_MISSING = object()
_STORES_GLOBAL, _STORES_CELL = opmap["STORE_GLOBAL"], opmap["STORE_DEREF"]


class KeptValues:
    """What calls replace in some places, and whether that is stored for each input.

    A value that only the first call replaced may be a model loaded on first use. It counts as stored for the first
    input if it resembles what is stored for the second.
    """

    def __init__(self, places: Sequence[Any]) -> None:
        self.places = [place for place in places if _is_small(place)]
        self._first = [_read(place) for place in self.places]  # before the first call
        self._last = self._first
        self._input: Any = _MISSING  # of the last call
        self._begun: set[tuple[int, Any]] = set()  # entries that the first call replaced
        self._switched: set[tuple[int, Any]] = set()  # …calls whose input was not that of the call before
        self._moving: set[tuple[int, Any]] = set()  # …calls with the input of the call before
        self._telling: set[tuple[int, Any]] = set()  # entries that held something other than the input itself
        self.found: list[tuple[int, Any]] = []

    def __bool__(self) -> bool:
        return bool(self.places)

    def look(self, x: Any) -> None:
        """Compare the places after a call with what they held before it."""
        now = [_read(place) for place in self.places]
        changed = {
            (at, key)
            for at, (new, old) in enumerate(zip(now, self._last, strict=True))
            for key in (self._first[at] if isinstance(self.places[at], dict) else {**new, **old})
            if not _same(new.get(key, _MISSING), old.get(key, _MISSING))
        }
        if self._input is _MISSING:
            self._begun |= changed
        elif _same(self._input, x):
            self._moving |= changed
        else:
            self._switched |= changed
        self._telling |= {(at, key) for at, key in changed if not _same(now[at].get(key, _MISSING), x)}
        self._input, self._last = x, now

    def decide(self) -> bool:
        """Whether something is stored for each input, and therefore restored after each call."""
        switched = self._switched - self._moving
        kinds = {self._kind(entry) for entry in switched}
        first = {entry for entry in self._begun - self._moving if self._kind(entry) in kinds}
        self.found = [*switched, *first]
        return bool(switched)

    @property
    def answers(self) -> bool:
        """Whether more is stored than the inputs themselves."""
        return not self._telling.isdisjoint(self.found)

    def put_back(self) -> None:
        """Restore the entries that were found to what they held before the first call."""
        for at, key in self.found:
            _write(self.places[at], key, self._first[at].get(key, _MISSING))

    def _kind(self, entry: tuple[int, Any]) -> tuple[type, type]:
        at, key = entry
        return type(self.places[at]), type(self._last[at].get(key))


def _read(place: Any) -> dict[Any, Any]:
    """What a place holds: its entries by name, or all of it under None."""
    if isinstance(place, Names):
        return {name: place.thing[name] for name in place.names if name in place.thing}
    if isinstance(place, SlotAttributes):
        return {name: getattr(place.thing, name) for name in place.names if hasattr(place.thing, name)}
    if isinstance(place, dict):
        return dict(place)
    if isinstance(place, types.CellType):
        try:
            return {None: place.cell_contents}
        except ValueError:  # not bound yet
            return {}
    return {None: place.copy()}


def _write(place: Any, key: Any, value: Any) -> None:
    missing = value is _MISSING
    if isinstance(place, SlotAttributes):
        delattr(place.thing, key) if missing else setattr(place.thing, key, value)
    elif isinstance(place, types.CellType):
        if missing:
            del place.cell_contents
        else:
            place.cell_contents = value
    elif isinstance(place, dict | Names):
        inside = place.thing if isinstance(place, Names) else place
        if missing:
            inside.pop(key, None)
        else:
            inside[key] = value
    elif isinstance(place, np.ndarray):
        place[...] = value
    else:
        place.clear()
        place.update(value) if isinstance(place, set) else place.extend(value)


def _same(x: Any, y: Any) -> bool:
    if x is y:
        return True
    kind = type(x)
    if kind is not type(y):
        return False
    if kind is np.ndarray:
        return bool(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes())
    if kind in (list, deque):
        return len(x) == len(y) and all(map(_same, x, y))
    if kind is set:
        return len(x) == len(y) and bool(x == y)
    return kind in (float, int, str, bytes, bool) and bool(x == y or (x != x and y != y))


class Names:
    """Some entries of a dictionary: the global variables that a function assigns."""

    def __init__(self, thing: dict[str, Any], names: tuple[str, ...]) -> None:
        self.thing, self.names = thing, names


class SlotAttributes:
    """The attributes of an object that has slots for them."""

    def __init__(self, thing: Any, names: tuple[str, ...]) -> None:
        self.thing, self.names = thing, names


def variables(function: types.FunctionType) -> Iterator[Any]:
    """The variables around a function that it, or a function inside it, may assign."""
    stores = {step for code in _codes(function.__code__) for step in code.co_code[::2]}
    if _STORES_CELL in stores:
        yield from function.__closure__ or ()
    if _STORES_GLOBAL in stores:
        yield Names(function.__globals__, tuple({name for code in _codes(function.__code__) for name in code.co_names}))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_small(place: Any) -> bool:
    if isinstance(place, np.ndarray):
        return bool(place.size <= MOST_ELEMENTS and place.flags.writeable and not place.dtype.hasobject)
    return not isinstance(place, list | set | deque | dict) or len(place) <= MOST_ELEMENTS
