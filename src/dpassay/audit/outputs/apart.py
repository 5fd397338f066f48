"""Outputs that are more than plain values: each is taken apart when its leaves are first needed.

Most outputs are only asked for the few numbers or texts that a rule looks at. In an output of plain dicts, lists and
scalars these are found by following their path, which gives what the leaves would give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.options import Unknown
from dpassay.audit.outputs.doubles import EXACT, rounded_by_floats
from dpassay.audit.outputs.leaf_dict import Leaves, written
from dpassay.audit.outputs.leaves import ROOT, leaves_of

Array: TypeAlias = NDArray[np.float64]
Steps: TypeAlias = tuple[str | int, ...]
MOST_ENTRIES, DEEPEST = 512, 8  # of an output that is read only when it is needed
_SCALARS = frozenset({float, int, bool, str, type(None), np.float64, np.int64, np.bool_})
_STEPS = re.compile(r"(?:\[(?:\"(?:[^\"\\]|\\.)*\"|\d+)\])+")
_STEP = re.compile(r"\[(\"(?:[^\"\\]|\\.)*\"|\d+)\]")


class Apart:
    """An output, its leaves, and what was derived from it: see `once`.

    An output that cannot be read is refused at once. Only outputs of types that can be read for certain wait.

    >>> Apart({"a": [1, 2]}).leaves['len(output["a"])']
    2
    """

    __slots__ = ("_leaves", "derived", "item", "simple", "unknown")

    def __init__(self, item: Any, unknown: Unknown = "refuse") -> None:
        self.item, self.unknown = item, unknown
        self.simple = _is_simple(item, DEEPEST)
        self.derived: dict[str, Any] = {}
        self._leaves: Leaves | None = None if self.simple else leaves_of(item, unknown)

    @property
    def leaves(self) -> Leaves:
        """All leaves by their paths."""
        if self._leaves is None:
            self._leaves = leaves_of(self.item, self.unknown)
        return self._leaves

    def __reduce__(self) -> tuple[Any, ...]:
        return Apart, (self.item, self.unknown)


def _is_simple(item: Any, deep: int) -> bool:
    """Whether an output consists of plain lists, dicts with texts as keys, and scalars."""
    kind = type(item)
    if kind is dict:
        if len(item) > MOST_ENTRIES or any(type(key) is not str for key in item):
            return False
        entries = item.values()
    elif kind is list or kind is tuple:
        if len(item) > MOST_ENTRIES:
            return False
        entries = item
    else:
        return kind in _SCALARS or _is_row(item)
    others = [entry for entry in entries if type(entry) not in _SCALARS]
    return not others or (deep > 0 and all(_is_simple(entry, deep - 1) for entry in others))


def _is_row(value: Any) -> bool:
    """Whether it is an array of numbers in one dimension."""
    return type(value) is np.ndarray and value.ndim == 1 and value.dtype.kind in "biuf"


@lru_cache(maxsize=1 << 12)
def _steps(path: str) -> Steps | None:
    """The keys and positions that lead to a value; None for a length, a type or anything else that is not a value.

    >>> _steps('output["a"][3]'), _steps("len(output)")
    (('a', 3), None)
    """
    rest = path.removeprefix(ROOT)
    if len(rest) == len(path) or not (rest == "" or _STEPS.fullmatch(rest)):
        return None
    return tuple(json.loads(step) for step in _STEP.findall(rest))


def _values_at(outputs: Sequence[Apart | None], path: str) -> list[Any] | None:
    """What is at a path in each output, `...` where there is nothing; None if that takes leaves."""
    steps = _steps(path)
    if steps is None:
        return None
    found = []
    for one in outputs:
        if one is None or not one.simple:
            return None
        value = one.item
        for step in steps:
            if type(step) is str:
                if type(value) is not dict:
                    return None
                value = value.get(step, ...)
            elif type(value) is list or type(value) is tuple:
                value = value[step] if step < len(value) else ...  # type: ignore[operator,index]
            elif _is_row(value):
                value = value[step].item() if step < len(value) else ...  # type: ignore[operator]
            else:
                return None
            if value is ...:
                break
        found.append(value)
    return found


def numbers_at(outputs: Sequence[Apart | None], path: str) -> list[Any] | None:
    """The numbers at a path, None where there is none; None for all of them if that takes leaves.

    >>> numbers_at([Apart({"a": 1.5, "b": "x"}), Apart({"b": "y"})], 'output["a"]')
    [1.5, None]
    """
    values = _values_at(outputs, path)
    if values is None:
        return None
    kinds = set(map(type, values))
    if kinds == {float}:
        return values
    if not kinds <= _NUMBERS or (int in kinds and not all(map(_small, values))):
        return None
    return [None if type(value) in _NOTHING else value for value in values]


def rows_at(outputs: Sequence[Apart | None], path: str) -> Array | None:
    """The lists of numbers at a path as an array; None if they are not all equally long, or if that takes leaves.

    >>> rows_at([Apart({"a": [1, 2]}), Apart({"a": [3, 4]})], 'output["a"]').tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    values = _values_at(outputs, path)
    sorts = {*map(type, values or ())}
    if not values or not (sorts <= {list, tuple} or sorts == {np.ndarray}) or len({*map(len, values)}) > 1:
        return None
    if sorts == {np.ndarray}:
        together = np.stack(values)
        rows = together.astype(float)
        return None if rounded_by_floats(together, rows) else rows
    kinds = {type(entry) for value in values for entry in value}
    if not kinds or not kinds <= {float, int, bool} or (int in kinds and not all(map(_small, chain(*values)))):
        return None
    return np.array(values, dtype=float)


_NOTHING = frozenset({type(...), type(None), str})
_NUMBERS = _NOTHING | _SCALARS - {np.int64}


def _small(value: Any) -> bool:
    return type(value) is not int or -EXACT <= value <= EXACT


def tokens_at(outputs: Sequence[Apart | None], path: str) -> list[str] | None:
    """The values at a path as `written` leaves, empty where there is none; None if that takes leaves."""
    values = _values_at(outputs, path)
    # Of a list of numbers, a number is a leaf only if the list has other values too.
    if values is None or not {*map(type, values)} <= (_WRITTEN if type((_steps(path) or (0,))[-1]) is str else _TEXTS):
        return None
    return ["" if value is ... else written(value) for value in values]


_TEXTS = frozenset({type(...), type(None), str})
_WRITTEN = _TEXTS | {float, int, bool}


def texts_at(outputs: Sequence[Apart | None], path: str) -> list[str | None] | None:
    """The texts at a path; None for all of them if that takes leaves."""
    values = _values_at(outputs, path)
    return None if values is None else [value if type(value) is str else None for value in values]
