"""Outputs that are more than plain values: each is taken apart when its leaves are first needed.

Usually only the few numbers or texts that a rule examines are needed. In an output of plain dicts, lists and
scalars, following their paths finds them, with the same result as the leaves would give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.options import Unknown
from dpassay.audit.outputs.doubles import EXACT, rounded_by_floats
from dpassay.audit.outputs.leaf_dict import Leaves, written
from dpassay.audit.outputs.leaves import ROOT, is_value, leaves_of, shown_key

Array: TypeAlias = NDArray[np.float64]
Steps: TypeAlias = tuple[str | int, ...]
MOST_ENTRIES, DEEPEST = 512, 8  # of an output that is read only when it is needed
_SCALARS = frozenset({float, int, bool, str, type(None), np.float64, np.int64, np.bool_})
_STEPS = re.compile(r"(?:\[(?:\"(?:[^\"\\]|\\.)*\"|\d+)\])+")
_STEP = re.compile(r"\[(\"(?:[^\"\\]|\\.)*\"|\d+)\]")


class Apart:
    """An output, its leaves, and what was derived from it: see `once`.

    An output that cannot be read is refused at once. Only outputs of types that are certain to be readable wait.

    >>> Apart({"a": [1, 2]}).leaves['len(output["a"])']
    2
    """

    __slots__ = ("_leaves", "derived", "form", "item", "regular", "simple", "unknown", "values")

    def __init__(self, item: Any, unknown: Unknown = "refuse") -> None:
        self.item, self.unknown = item, unknown
        self.values: list[Any] = []  # the scalars in it, if it has a form
        self.form = _form_of(item, self.values)
        self.regular = self.form is not None and self.form.holds(self.values)
        self.simple = self.form is not None or _is_simple(item, DEEPEST)
        self.derived: dict[str, Any] = {}
        self._leaves: Leaves | None = None if self.simple else leaves_of(item, unknown)

    @property
    def leaves(self) -> Leaves:
        """All leaves by their paths."""
        if self._leaves is None:
            self._leaves = leaves_of(self.item, self.unknown)
        return self._leaves

    @property
    def paths(self) -> Collection[str]:
        """The paths of all leaves; the same object for outputs of one form, where these have the same."""
        return self.form.paths if self.form is not None and self.form.fixed and self.regular else self.leaves.keys()

    def __reduce__(self) -> tuple[Any, ...]:
        return Apart, (self.item, self.unknown)


class Form:
    """What many outputs have in common: their keys, their lengths and the types of the scalars in them.

    Their leaves differ only by these scalars, and often not even by their paths: then an output's numbers and texts
    are found without taking it apart.
    """

    def __init__(self, item: Any, values: Sequence[Any]) -> None:
        self.floats = [i for i, value in enumerate(values) if isinstance(value, float)]
        self.integers = [i for i, value in enumerate(values) if type(value) in (int, np.int64)]
        self.known = self.holds(values)
        if not self.known:  # its leaves cannot serve as an example
            return
        leaves, places = leaves_of(item), dict(_scalar_paths(ROOT, item))
        number = dict(zip(places, range(len(places)), strict=True))
        self.fixed, self.places = _is_fixed(item), number
        self.paths = tuple(leaves)
        texts = [(path, leaf) for path, leaf in leaves.items() if isinstance(leaf, str) and is_value(path)]
        self._texts: list[int | str] = [number.get(path, leaf) for path, leaf in texts]  # where each stands, or itself
        kinds = (str, np.ndarray, type(None))
        self.numbered = [path for path, leaf in leaves.items() if not isinstance(leaf, kinds)]
        self._constants = np.array([float(leaves[path]) for path in self.numbered])
        inside = [(j, number[path]) for j, path in enumerate(self.numbered) if path in number]
        self._into, self._from = ([some[k] for some in inside] for k in (0, 1))
        lengths = {f"len({path})": i for path, i in number.items() if type(values[i]) is str}
        inside = [(j, lengths[path]) for j, path in enumerate(self.numbered) if path in lengths]
        self._into += [j for j, _ in inside]
        self._long = [i for _, i in inside]

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether no number has leaves that others do not have: one that is not finite, or too large for a double."""
        finite = all(values[i] - values[i] == 0 for i in self.floats)
        return finite and all(-EXACT <= values[i] <= EXACT for i in self.integers)

    def text(self, values: Sequence[Any]) -> str:
        """All texts in an output, in the order of its leaves."""
        return " ".join([text if isinstance(text, str) else values[text] for text in self._texts])

    def numbers(self, values: Sequence[Any]) -> Array:
        """The numbers among the leaves of an output, in the order of `numbered`."""
        found = self._constants.copy()
        found[self._into] = [*[values[i] for i in self._from], *[len(values[i]) for i in self._long]]
        return found


_FORMS: dict[Any, Form] = {}
MOST_FORMS = 1 << 10


def _form_of(item: Any, values: list[Any]) -> Form | None:
    """The form of a simple output, and its scalars; none if it has rows, or if there are too many forms."""
    if type(item) is not dict and type(item) is not list and type(item) is not tuple:
        return None
    shape = _shape(item, values, DEEPEST)
    if shape is None:
        values.clear()
        return None
    form = _FORMS.get(shape)
    if form is None and len(_FORMS) < MOST_FORMS:
        form = Form(item, values)
        if form.known:
            _FORMS[shape] = form
        else:
            form = None
    if form is None:
        values.clear()
    return form


def _shape(item: Any, values: list[Any], deep: int) -> Any:
    """Types, keys and lengths, as something that can be compared; the scalars are added to the values."""
    kind = type(item)
    if kind in _SCALARS:
        values.append(item)
        return kind
    if deep < 0 or (kind is not dict and kind is not list and kind is not tuple) or len(item) > MOST_ENTRIES:
        return None
    if kind is dict and any(type(key) is not str for key in item):
        return None
    inside: list[Any] = []
    for entry in item.values() if kind is dict else item:
        one = type(entry)
        if one in _SCALARS:
            values.append(entry)
        else:
            one = _shape(entry, values, deep - 1)
            if one is None:
                return None
        inside.append(one)
    return (kind, *item, *inside) if kind is dict else (kind, *inside)


def _scalar_paths(path: str, item: Any) -> Iterator[tuple[str, Any]]:
    """The scalars in a simple output, in order, each with the path that a leaf has there."""
    if type(item) is dict:
        for key, value in item.items():
            yield from _scalar_paths(f"{path}[{shown_key(key)}]", value)
    elif type(item) in (list, tuple):
        for i, value in enumerate(item):
            yield from _scalar_paths(f"{path}[{i}]", value)
    else:
        yield path, item


def _is_fixed(item: Any) -> bool:
    """Whether paths do not depend on values: positions are recorded for list members that are not doubles."""
    if type(item) in (list, tuple):
        kinds = set(map(type, item))
        if not (kinds <= {float, np.float64, dict, list, tuple} or kinds == {bool} or kinds == {np.bool_}):
            return False
    return type(item) in _SCALARS or all(map(_is_fixed, item.values() if type(item) is dict else item))


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
    """The value at a path in each output, `...` if there is none; None if that needs leaves."""
    form = None if not outputs or outputs[0] is None else outputs[0].form
    if form is not None and path in form.places and all(one is not None and one.form is form for one in outputs):
        place = form.places[path]
        return [one.values[place] for one in outputs]  # type: ignore[union-attr]
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
    """The numbers at a path, None where there is no number; None for all of them if that needs leaves.

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
    """The lists of numbers at a path as an array; None if their lengths differ, or if that needs leaves.

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
    """The values at a path as `written` leaves, empty where there is none; None if that needs leaves."""
    values = _values_at(outputs, path)
    # A number in a list is a leaf only if the list also has values that are not numbers.
    if values is None or not {*map(type, values)} <= (_WRITTEN if type((_steps(path) or (0,))[-1]) is str else _TEXTS):
        return None
    return ["" if value is ... else written(value) for value in values]


_TEXTS = frozenset({type(...), type(None), str})
_WRITTEN = _TEXTS | {float, int, bool}


def texts_at(outputs: Sequence[Apart | None], path: str) -> list[str | None] | None:
    """The texts at a path; None for all of them if that needs leaves."""
    values = _values_at(outputs, path)
    return None if values is None else [value if type(value) is str else None for value in values]
