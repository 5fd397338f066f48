"""The outputs of a mechanism, in the forms that distinguishers use.

A batch of numbers of one shape stays an array, and text stays text. Everything else is taken apart into leaves, see
`leaves`. Numbers that no double represents exactly are never rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.options import Unknown
from dpassay.audit.outputs.apart import Apart
from dpassay.audit.outputs.doubles import DOUBLES, EXACT, as_doubles, column_of, exact, is_double, rounded_by_floats
from dpassay.audit.outputs.keys import row_keys, text_key
from dpassay.audit.outputs.leaf_dict import Leaves, canonical, once
from dpassay.audit.outputs.leaves import is_value, leaves_of
from dpassay.audit.outputs.texts.failures import told_by
from dpassay.errors import InputError
from dpassay.pipeline.mechanism import Failure
from dpassay.values import dataclass

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
LONGEST = 512  # coordinates, or characters of a text, examined one by one
FIRST = 512  # outputs that are examined repeatedly
MOST_CELLS = 1 << 28  # numbers in the matrix of all outputs: 2 GiB


@dataclass(frozen=True)
class Ragged:
    """A varying number of values per output, stored consecutively.

    >>> Ragged(np.array([5, 6, 7]), np.array([1, 0, 2]), read).part(1, 3).values.tolist()
    [6, 7]
    """

    values: NDArray[Any]
    lengths: NDArray[np.int64]
    make: Callable[[Outputs], Ragged]  # computes them, once for each batch
    of: Any = None  # what the values number

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Which output each value belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def chosen(self, which: NDArray[np.bool_]) -> Ragged:
        """The values of the chosen outputs."""
        return replace(self, values=self.values[which[self.rows]], lengths=self.lengths[which])

    def part(self, start: int, stop: int | None = None) -> Ragged:
        """The values of some consecutive outputs."""
        begun = int(self.lengths[:start].sum())
        lengths = self.lengths[start:stop]
        return replace(self, values=self.values[begun : begun + int(lengths.sum())], lengths=lengths)


@dataclass(frozen=True)
class Outputs:
    """A batch: `numbers` if all outputs are numbers or vectors of one shape; `items`, the outputs as they came.

    What is derived from an output depends on that output alone, never on its batch: all runs of a batch have the same
    input, so a guess that uses the batch would be a guess from many runs. Therefore the dtype of a batch that came as
    one array is ignored, while the types of single outputs are used.

    >>> len(read([True, None, "a"])), read(np.zeros((4, 2))).numbers.shape
    (3, (4, 2))
    """

    numbers: Array | None
    items: Sequence[Any] = ()  # none if the batch was one array of numbers
    apart: Sequence[Apart | None] = ()  # outputs that are not plain values, to be taken apart; empty if all are plain

    def __len__(self) -> int:
        return len(self.items) if self.numbers is None else len(self.numbers)

    @property
    def width(self) -> int | None:
        """How many coordinates each output has; None if that differs between outputs."""
        return None if self.numbers is None else int(self.numbers.shape[1])

    @property
    def structured(self) -> bool:
        """Whether some output is more than a number, a row of numbers, a text or nothing."""
        return len(self.apart) > 0

    @cached_property
    def leaves(self) -> list[Leaves]:
        """The leaves of each output."""
        if self.apart:
            pairs = zip(self.items, self.apart, strict=True)
            return [leaves_of(x) if known is None else known.leaves for x, known in pairs]
        return [leaves_of(row) for row in self.rows()]

    @cached_property
    def only_text(self) -> bool:
        """Whether all outputs are plain texts, about which much is known without examining each."""
        return self.numbers is None and not self.apart and set(map(type, self.items)) == {str}

    @cached_property
    def projections(self) -> dict[Any, Any]:
        """A cache of views of these outputs, so that no view is computed twice."""
        return {}

    def matrix(self, width: int) -> Array:
        """One row per output: its numbers, truncated or padded with NaN to this width; all NaN if it has none."""
        if self.numbers is not None and self.numbers.shape[1] >= width:
            return self.numbers if self.numbers.shape[1] == width else self.numbers[:, :width]
        if len(self) * width > MOST_CELLS:
            raise InputError(f"a distinguisher for {width} coordinates does not suit these outputs: there are too many")
        rows = np.full((len(self), width), np.nan)
        for i, vector in enumerate(self._vectors):
            if vector is not None:
                rows[i, : len(vector)] = vector[:width]
        return rows

    @cached_property
    def _vectors(self) -> list[Array | None]:
        rows = self.rows()
        apart = self.apart or [None] * len(rows)
        return [once(known, _numbers_in, x) for x, known in zip(rows, apart, strict=True)]

    def keys(self) -> Keys:
        """A 64-bit key for each output, the same in every process: equal outputs have equal keys."""
        if self.numbers is not None:
            return row_keys(self.numbers)
        return self._item_keys

    @cached_property
    def _item_keys(self) -> Keys:
        apart = self.apart or [None] * len(self.items)
        keys = [once(known, _key, x, known) for x, known in zip(self.items, apart, strict=True)]
        return np.array(keys, dtype=np.uint64)

    @property
    def kind(self) -> str:
        """The kind of the first output: number, vector[3], text, none, fails: ValueError…"""
        if self.numbers is not None and not self.items:
            return shape_name(int(self.numbers.shape[1]))
        return kind_of(self.items[0])

    def texts(self) -> list[str]:
        """Each output as text, if it has any: for a list or an object, all texts in it."""
        if self.numbers is not None:
            return [""] * len(self)
        return self._item_texts

    @cached_property
    def _item_texts(self) -> list[str]:
        apart = self.apart or [None] * len(self.items)
        rows = () if self.only_text else zip(self.items, apart, strict=True)
        return [once(known, _texts_in, x, known) for x, known in rows] or list(self.items)

    @property
    def fractional(self) -> bool:
        """Whether there are numbers that are not integers."""
        return self._has_more_than(0)

    @property
    def unrounded(self) -> bool:
        """Whether there are numbers with more than six decimals; the last bits of others follow from their decimals."""
        return self._has_more_than(6)

    def _has_more_than(self, decimals: int) -> bool:
        found = [self.numbers] if self.numbers is not None else self._vectors
        known = [n[np.abs(n) < EXACT] for n in found if n is not None]  # larger ones have no decimals, and may overflow
        return any(bool(np.any(n != np.round(n, decimals))) for n in known)

    def lengths(self) -> Array:
        """How long each output is: characters of a text, entries of a vector or list; NaN if neither."""
        if self.numbers is not None:
            return np.full(len(self), float(self.numbers.shape[1]))
        return np.array([len(item) if self.only_text else _length(item) for item in self.items], dtype=float)

    def rows(self) -> list[Any]:
        """The outputs as they came; for a batch that was one array, its numbers."""
        if self.numbers is None or self.items:
            return list(self.items)
        return list(self.numbers) if self.numbers.shape[1] != 1 else self.numbers[:, 0].tolist()

    def chosen(self, places: Any) -> Outputs:
        """Some of the outputs: by a slice, or by a boolean array."""
        some = places if isinstance(places, slice) else np.flatnonzero(places).tolist()

        def of(entries: Sequence[Any]) -> Sequence[Any]:
            return entries[some] if isinstance(some, slice) else [entries[i] for i in some] if entries else ()

        apart = of(self.apart)
        numbers = None if self.numbers is None else self.numbers[places]
        made = Outputs(numbers, of(self.items), apart if any(known is not None for known in apart) else ())
        if isinstance(some, slice):
            found = {name: known for name, known in self.projections.items() if isinstance(known, Ragged)}
            made.projections.update({name: known.part(*some.indices(len(self))[:2]) for name, known in found.items()})
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Outputs, (self.numbers, self.items, self.apart)  # without what was derived


def read(batch: Any, unknown: Unknown = "refuse") -> Outputs:
    """Read a batch of outputs, an array or a sequence. `unknown` determines what to do with types that cannot be read.

    >>> read([1, 2.5]).numbers.tolist(), read(["yes", "no"]).kind
    ([[1.0], [2.5]], 'text')
    """
    items = _rows_of(batch) if isinstance(batch, np.ndarray) else list(batch)
    if isinstance(items, np.ndarray):
        return Outputs(items)
    kinds = set(map(type, items))
    if kinds == {float}:
        return Outputs(np.array(items, dtype=np.float64)[:, None], items)
    if kinds == {np.ndarray} and {(item.dtype, item.shape[1:]) for item in items} == {(np.dtype(np.float64), ())}:
        lengths = {len(item) if item.ndim else 1 for item in items}
        if len(lengths) == 1 and 1 not in lengths:
            return Outputs(np.stack(items))  # rows of doubles, as in a batch that is one array
    if (kinds == {list} or kinds == {tuple}) and (rows := _equal_rows(items)) is not None:
        return Outputs(rows, items)
    apart: list[Apart | None] = []
    if not kinds <= _PLAIN:
        apart = [None if _is_plain(item) else Apart(item, unknown) for item in items]
        apart = apart if any(known is not None for known in apart) else []
    if all(issubclass(kind, _NUMBERS) for kind in kinds):
        column = column_of(items)
        return Outputs(None if column is None else column[:, None], items, apart)
    if all(issubclass(kind, np.ndarray | list | tuple) for kind in kinds):
        vectors = [_vector(item) for item in items]
        if all(v is not None for v in vectors) and len({len(v) for v in vectors if v is not None}) == 1:
            return Outputs(np.array(vectors, dtype=np.float64), items, apart)
    return Outputs(None, items, apart)


def _equal_rows(items: list[Any]) -> Array | None:
    """Lists of one length with numbers of one type as rows: the same as reading each by itself, ten times as fast."""
    width = len(items[0])
    if not width or any(len(item) != width for item in items):
        return None
    entries = list(chain.from_iterable(items))
    column = as_doubles(entries, set(map(type, entries)))
    return None if column is None else column.reshape(len(items), width)


def _rows_of(batch: NDArray[Any]) -> Array | list[Any]:
    """The outputs of a batch that came as one array: each a row of doubles, or unchanged if that would round it.

    Which of the two applies depends on that output alone.
    """
    # A long double may equal no Python number.
    long = batch.dtype.char in "gG"
    if batch.dtype.kind in "biuf":
        flat = batch.reshape(len(batch), math.prod(batch.shape[1:]))
        numbers = np.ascontiguousarray(flat, dtype=np.float64)
        if not long and (flat.dtype.kind in "bf" or flat.dtype.itemsize < 8):
            return numbers
        far = np.abs(numbers) >= EXACT if flat.dtype.kind in "iu" else np.isfinite(flat) & (numbers != flat)
        rounded = np.asarray(far.any(axis=1))
        if not rounded.any():
            return numbers
        rows: list[Any] = list(batch) if long else batch.tolist()
        return [row if odd else _plain_row(doubles) for row, odd, doubles in zip(rows, rounded, numbers, strict=True)]
    return list(batch) if long or batch.dtype.kind in "mMV" else batch.tolist()


def _plain_row(row: Array) -> Any:
    return float(row[0]) if len(row) == 1 else row


def only_output(batch: Any) -> Any:
    """The output of a batch of one, as it would be read among others: for an array, its numbers without their dtype.

    >>> only_output(np.array([[1, 2]])), only_output(np.array([3])), only_output(["a"])
    (array([1., 2.]), 3.0, 'a')
    """
    if type(batch) is np.ndarray and batch.dtype == np.float64 and batch.ndim == 1:
        return float(batch[0])  # the same as below, ten times as fast
    rows = _rows_of(batch) if isinstance(batch, np.ndarray) else batch
    return _plain_row(rows[0]) if isinstance(rows, np.ndarray) else rows[0]


_PLAIN_NUMBERS = {bool, int, float}
_PLAIN = DOUBLES | {str, type(None), Failure}


def _is_plain(item: Any) -> bool:
    """Whether an output is fully described by its numbers and its kind, or by its text."""
    kind = type(item)
    if kind in _PLAIN:
        return True
    if kind is list or kind is tuple:
        return not item or as_doubles(item, set(map(type, item))) is not None
    if kind is np.ndarray:
        return item.dtype.kind in "biuf" and item.ndim > 0 and _vector(item) is not None
    if kind is np.str_:
        return True
    return isinstance(item, int | np.integer | np.floating) and not isinstance(item, Enum) and is_double(item)


def join(batches: Sequence[Outputs]) -> Outputs:
    """Several batches as one."""
    if len(batches) == 1:
        return batches[0]
    items: Sequence[Any] = ()
    apart: list[Apart | None] = []
    same = len({batch.width for batch in batches}) == 1 and batches[0].numbers is not None
    if not same or any(batch.items for batch in batches):
        items = [row for batch in batches for row in batch.rows()]
    if any(batch.apart for batch in batches):
        apart = [known for batch in batches for known in (batch.apart or [None] * len(batch))]
    if same:
        numbers = np.concatenate([batch.numbers for batch in batches if batch.numbers is not None])
        return Outputs(numbers, items, apart)
    made = Outputs(None, items, apart)
    made.projections.update(_ragged_of_all(batches))
    return made


def _ragged_of_all(batches: Sequence[Outputs]) -> dict[str, Ragged]:
    """What is known about most of these texts, one batch after another."""
    found, total = {}, sum(map(len, batches))
    known = {name: one for batch in batches for name, one in batch.projections.items() if isinstance(one, Ragged)}
    for name, example in known.items():
        if 2 * sum(len(batch) for batch in batches if name in batch.projections) < total:
            continue
        some = [example.make(batch) for batch in batches]
        if all(one.of is example.of for one in some):
            values, lengths = (
                np.concatenate(rows) for rows in zip(*((o.values, o.lengths) for o in some), strict=True)
            )
            found[name] = replace(example, values=values, lengths=lengths)
    return found


def part(outputs: Outputs, start: int, stop: int | None = None) -> Outputs:
    """Some of the outputs, in order. What is derived from the first few is kept with them."""
    if start == 0 and (stop is None or stop >= len(outputs)):
        return outputs
    if start or stop is None or stop > FIRST:
        return outputs.chosen(slice(start, stop))
    if ("first", stop) not in outputs.projections:
        outputs.projections["first", stop] = outputs.chosen(slice(0, stop))
    return outputs.projections["first", stop]  # type: ignore[no-any-return]


def as_row(x: Any) -> Array | None:
    """An input as a vector, if it is one."""
    return _vector(x)


def _vector(item: Any) -> Array | None:
    if isinstance(item, _NUMBERS):
        return np.array([float(item)]) if is_double(item) else None
    if not isinstance(item, np.ndarray | list | tuple):
        return None
    if not isinstance(item, np.ndarray):
        kinds = set(map(type, item))
        if len(kinds) == 1 and (row := as_doubles(item, kinds)) is not None:
            return row
        plain = kinds <= _PLAIN_NUMBERS
        return column_of(list(item)) if plain or all(isinstance(entry, _NUMBERS) for entry in item) else None
    if item.dtype.kind not in "biuf":
        return None
    row = item.astype(np.float64).ravel()
    return None if rounded_by_floats(item.ravel(), row) else row


def _numbers_in(item: Any) -> Array | None:
    """The numbers of an output: its coordinates, or all numbers in a list or an object, in the order of its keys."""
    vector = _vector(item)
    if vector is not None or not isinstance(item, dict | list | tuple):
        return vector
    there = _leaves(item, (*_NUMBERS, np.ndarray))
    if set(map(type, there)) <= _PLAIN_NUMBERS:  # the same as below, three times as fast
        plain = [float(entry) for entry in there if type(entry) is not int or exact(entry)]
        return np.array(plain) if plain else None
    found = [v for v in map(_vector, there) if v is not None]
    return np.concatenate(found) if found else None


def _leaves(item: Any, kinds: Any, depth: int = 4) -> list[Any]:
    """The values of some kinds in a list or an object, at any depth, up to a limit."""
    if isinstance(item, dict):
        try:
            inside = [item[key] for key in sorted(item, key=str)]
        except Exception:  # keys may be anything
            return []
    elif isinstance(item, list | tuple):
        inside = list(item)
    else:
        return []
    found: list[Any] = []
    for entry in inside[:LONGEST]:
        found += [entry] if isinstance(entry, kinds) else _leaves(entry, kinds, depth - 1) if depth else []
    return found[:LONGEST]


def _texts_in(item: Any, apart: Apart | None) -> str:
    if isinstance(item, Failure) or (isinstance(item, str) and not isinstance(item, Enum)):
        return told_by(item) if isinstance(item, Failure) else item
    if apart is None or _vector(item) is not None:
        return ""
    if apart.form is not None:
        return apart.form.text(apart.values)
    return " ".join([leaf for path, leaf in apart.leaves.items() if isinstance(leaf, str) and is_value(path)])


def _length(item: Any) -> float:
    vector = _vector(item)
    if vector is not None:
        return float(len(vector))
    try:
        return float(len(item))
    except Exception:  # it has no length, or its code fails
        return math.nan


def shape_name(width: int) -> str:
    """The name of a vector of some length."""
    return "number" if width == 1 else f"vector[{width}]"


def kind_of(item: Any) -> str:
    """The kind of an output: number, int, vector[3], list of int, text, none, fails: ValueError…

    An array of floats has the same name as a batch of such outputs.
    """
    if item is None:
        return "none"
    if isinstance(item, Failure):
        return f"fails: {item.kind}"
    if isinstance(item, str):
        return "text"
    vector = _vector(item)
    if vector is None or isinstance(item, Enum):
        return type(item).__name__
    if isinstance(item, _NUMBERS):
        if isinstance(item, float):
            return "number"
        if isinstance(item, np.integer) and item.dtype != np.int64:
            return item.dtype.name
        return _KINDS.get(np.asarray(item).dtype.kind, type(item).__name__)
    if isinstance(item, np.ndarray):
        shape = f", shape {item.shape}" if item.ndim != 1 else ""
        return f"vector[{len(vector)}]{shape}" + ("" if item.dtype == np.float64 else f" of {item.dtype}")
    entries = " and ".join(sorted({type(entry).__name__ for entry in item}))
    return f"vector[{len(vector)}], {type(item).__name__}" + (f" of {entries}" if entries else "")


_KINDS = {"b": "bool", "i": "int", "u": "int"}


def _key(item: Any, apart: Apart | None) -> int:
    if type(item) is str and apart is None:
        return text_key(f"text\0{item!r}")  # as below
    vector = _vector(item)
    if vector is not None:
        return int(row_keys(vector[None, :])[0])
    if apart is not None:
        return text_key(canonical(apart.leaves))
    text = item.kind if isinstance(item, Failure) else repr(str(item) if isinstance(item, str) else item)
    return text_key(f"{kind_of(item)}\0{text}")
