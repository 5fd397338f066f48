"""Inputs that code is rarely tested on, by type: NaN, infinities, huge numbers, empty texts, unknown words.

Each is made from a given input and records which relations make the two neighbors. Whether it is valid is not known
here: code may refuse it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpassay.audit.inputs.text_pairs import ODD_WORDS, UNKNOWN
from dpassay.core.neighbours import Neighbours
from dpassay.values import dataclass

HUGE, TINY, RARE = (1e30, 1e300), 1e-300, "syzygy"
LONG = 2000  # words of a very long text
ENTRIES = 4  # of a dict that are replaced
_KINDS = ("a stop word", "a number", "a name", "an emoji", "a word that looks empty", "a very long word")
WORDS = {
    UNKNOWN: "a word that is not in its vocabulary",
    RARE: "a rare word",
    **dict(zip(ODD_WORDS[1:], _KINDS, strict=True)),
}
_REPLACED, _ADDED = frozenset({"any", "replace-record"}), frozenset({"add-remove-record"})
_NONE: frozenset[str] = frozenset()  # vectors of another dimension are inputs of another mechanism


@dataclass(frozen=True, eq=False)
class HostileInput:
    """An input, a description of what is odd about it, and the relations that make it a neighbor of its original.

    Inputs of one `kind` are alike: code that refuses only some of them reveals which one it was given. `word` is the
    odd word of a text.
    """

    what: str
    kind: str
    value: Any
    relations: frozenset[str] = frozenset({"any"})
    word: str = ""
    huge: bool = False  # a number that is far too large, but not so large that arithmetic overflows

    def neighbours(self, relation: Neighbours) -> bool:
        """Whether the relation makes it a neighbor. A row that is replaced may have several elements."""
        return relation.relation in self.relations and relation.kind != "element"


def hostile_inputs(x: Any) -> list[HostileInput]:
    """Hostile inputs similar to x; none for an unknown type.

    >>> [one.what for one in hostile_inputs(0.5)][:3]
    ['NaN', 'an infinity', 'an infinity']
    >>> [one.value for one in hostile_inputs("fly to Rome") if one.word == "zxqvkj"]
    ['zxqvkj to Rome']
    >>> [one.value for one in hostile_inputs([[1.0], [2.0]]) if one.what == "a row more"]
    [[[1.0], [2.0], [1.0]]]
    """
    if isinstance(x, str):
        return list(_texts(x))
    if isinstance(x, bool | np.bool_):
        return []
    if isinstance(x, int | float | np.integer | np.floating):
        return list(_numbers(x))
    if isinstance(x, dict):
        return list(_entries(x))
    if not isinstance(x, list | tuple | np.ndarray) or not len(x):
        return []
    if all(isinstance(one, str) for one in x):
        return list(_records(x))
    array = _array(x)
    if array is None or array.ndim > 2 or array.dtype.kind not in "iuf" or not array.size:
        return []
    return list(_vectors(x, array) if array.ndim == 1 else _tables(x, array))


def hostile_pairs(inputs: Sequence[Any], relation: Neighbours) -> list[tuple[Any, Any]]:
    """Each input paired with the hostile inputs similar to it that the relation makes its neighbors."""
    return [(x, one.value) for x in inputs for one in hostile_inputs(x) if one.neighbours(relation)]


def _array(x: Any) -> Any:
    try:
        return np.asarray(x)
    except ValueError:  # rows of different lengths
        return None


def _numbers(x: Any) -> Iterator[HostileInput]:
    if isinstance(x, int | np.integer):
        for whole in (0, -1, 10**18):
            if whole != x and _fits(x, whole):
                yield HostileInput(f"{whole:g}", "size", type(x)(whole))
        return
    for value, what in ((math.nan, "NaN"), (math.inf, "an infinity"), (-math.inf, "an infinity")):
        yield HostileInput(what, "not finite", type(x)(value))
    for value in (*HUGE, TINY, -0.0):
        if _fits(x, value):
            yield HostileInput(f"{value:g}", "size", type(x)(value), huge=value == HUGE[0])


def _fits(x: Any, value: float) -> bool:
    """Whether numbers, or an array, of this type can hold a number: neither too large nor rounded to 0."""
    if not isinstance(x, np.ndarray | np.generic):
        return True
    kind = x.dtype
    if kind.kind in "iu":
        return bool(np.iinfo(kind).min <= value <= np.iinfo(kind).max)
    return value == 0 or float(np.finfo(kind).tiny) <= value <= float(np.finfo(kind).max)


def _vectors(x: Any, array: Any) -> Iterator[HostileInput]:
    """A vector, which may also be a data set of numbers: one entry is then a record."""
    whole = isinstance(x, np.ndarray) and array.dtype.kind in "iu"
    numbers = array if whole else array.astype(float)
    first = np.arange(len(array)) == 0
    if not whole:
        for value, what in ((math.nan, "NaN"), (math.inf, "an infinity"), (-math.inf, "an infinity")):
            yield HostileInput(
                f"{what} in the input", "not finite", _like(x, np.where(first, value, numbers)), _REPLACED
            )
        entry = _like(x, np.where(first, HUGE[0], numbers))
        yield HostileInput("1e+30 in the input", "size", entry, _REPLACED, huge=True)
        for value in (value for value in (*HUGE, TINY, -0.0) if _fits(x, value)):
            whole_of_it = _like(x, np.full(len(array), value))
            yield HostileInput(f"a vector of {value:g}", "size", whole_of_it, huge=value == HUGE[0])
    yield HostileInput("a vector of zeros", "size", _like(x, np.zeros_like(numbers)))
    yield HostileInput("a constant vector", "size", _like(x, np.ones_like(numbers)))
    yield HostileInput("one entry more", "entries", _like(x, np.append(numbers, numbers[:1])), _ADDED)
    yield HostileInput("an empty vector", "empty", _like(x, numbers[:0]), _NONE)


def _tables(x: Any, array: Any) -> Iterator[HostileInput]:
    """A data set, one record per row."""
    whole = isinstance(x, np.ndarray) and array.dtype.kind in "iu"
    numbers = array if whole else array.astype(float)

    def changed(value: float, all_of_it: bool = False) -> Any:
        rows = numbers.copy()
        rows[0, slice(None) if all_of_it else 0] = value
        return _like(x, rows)

    if not whole:
        for value, what in ((math.nan, "NaN"), (math.inf, "an infinity"), (-math.inf, "an infinity")):
            yield HostileInput(f"{what} in a row", "not finite", changed(value), _REPLACED)
        for value in (value for value in HUGE if _fits(x, value)):
            row = changed(value, all_of_it=True)
            yield HostileInput(f"a row of {value:g}", "size", row, _REPLACED, huge=value == HUGE[0])
    yield HostileInput("a row of zeros", "size", changed(0, all_of_it=True), _REPLACED)
    yield HostileInput("a row more", "rows", _like(x, np.concatenate([numbers, numbers[:1]])), _ADDED)
    yield HostileInput("no rows at all", "empty", _like(x, numbers[:0]), _NONE)


def _like(x: Any, array: Any) -> Any:
    """The array with the type of x."""
    if isinstance(x, np.ndarray):
        return array.astype(x.dtype)
    entries = array.tolist()
    return tuple(entries) if isinstance(x, tuple) else entries


def _records(x: Any) -> Iterator[HostileInput]:
    """Rows that are texts or categories."""
    rows = list(x)
    form = (lambda made: np.array(made)) if isinstance(x, np.ndarray) else type(x)
    for value, what, word in ((UNKNOWN, "a category that is in no other row", UNKNOWN), ("", "an empty row", "")):
        yield HostileInput(what, "word", form([value, *rows[1:]]), _REPLACED, word)
        yield HostileInput(f"{what}, added to them,", "rows", form([*rows, value]), _ADDED, word)
    yield HostileInput("a row more", "rows", form([*rows, rows[0]]), _ADDED)
    yield HostileInput("no rows at all", "empty", form([]), _NONE)


def _texts(x: str) -> Iterator[HostileInput]:
    words = x.split()
    either = frozenset({"any", "word"})
    yield HostileInput("an empty text", "empty", "")
    yield HostileInput("a very long text", "long", " ".join((words or [RARE]) * (LONG // max(1, len(words)))))
    for place, (word, what) in enumerate(WORDS.items() if words else ()):
        at = place % len(words)
        yield HostileInput(what, "word", " ".join([*words[:at], word, *words[at + 1 :]]), either, word)
    for place, word in enumerate(words[:1]):
        other = word.upper() if word.upper() != word else word.lower()
        if other != word and len(other.split()) == 1:
            changed = " ".join([*words[:place], other, *words[place + 1 :]])
            yield HostileInput("a word in capitals", "word", changed, either, other)


def _entries(x: dict[Any, Any]) -> Iterator[HostileInput]:
    for key in list(x)[:ENTRIES]:
        for one in hostile_inputs(x[key]):
            if one.kind in ("not finite", "word", "empty"):
                yield replace(
                    one, what=f"{one.what} under {key!r}", value={**x, key: one.value}, relations=frozenset({"any"})
                )
