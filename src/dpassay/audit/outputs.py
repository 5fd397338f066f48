"""What a mechanism put out, in the forms that distinguishers look at.

An output may be a bool, a number, a vector, a category, text, None, a failed run or anything else. A batch of numbers
of one shape stays the array it was; everything else is looked at one by one.
"""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError
from dpassay.pipeline.mechanism import Failure

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
LONGEST = 512  # coordinates, or characters of a text, that are looked at one by one
MOST_CELLS = 1 << 28  # numbers of a matrix that outputs are filled into: 2 GiB


@dataclass(frozen=True, slots=True)
class Outputs:
    """A batch: `numbers` where all outputs are numbers or vectors of one shape, else `items`.

    What is said of an output depends on that output alone, never on the batch it came in: all runs of a batch have the
    same input, so a guess that looks at the batch would be a guess from many runs. True is 1 and 1 is 1.0 everywhere.

    >>> len(read([True, None, "a"])), read(np.zeros((4, 2))).numbers.shape
    (3, (4, 2))
    """

    numbers: Array | None
    items: Sequence[Any] = ()

    def __len__(self) -> int:
        return len(self.items) if self.numbers is None else len(self.numbers)

    @property
    def width(self) -> int | None:
        """How many coordinates each output has; None where outputs differ in that."""
        return None if self.numbers is None else int(self.numbers.shape[1])

    def matrix(self, width: int) -> Array:
        """One row per output: its numbers, cut or filled up with NaN to this width; all NaN where it has none."""
        if self.numbers is not None and self.numbers.shape[1] >= width:
            return self.numbers if self.numbers.shape[1] == width else self.numbers[:, :width]
        if len(self) * width > MOST_CELLS:
            raise InputError(f"a distinguisher for {width} coordinates does not suit these outputs: there are too many")
        rows = np.full((len(self), width), np.nan)
        for i, row in enumerate(self.rows()):
            vector = _numbers_in(row)
            if vector is not None:
                rows[i, : len(vector)] = vector[:width]
        return rows

    def keys(self) -> Keys:
        """A 64-bit name for each output, the same in every process: equal outputs have equal names."""
        if self.numbers is not None:
            return _row_keys(self.numbers)
        return np.array([_key(item) for item in self.items], dtype=np.uint64)

    @property
    def kind(self) -> str:
        """What sort of thing the first output is: number, vector[3], text, none, fails: ValueError…"""
        if self.numbers is not None:
            return _shape_name(int(self.numbers.shape[1]))
        return _kind(self.items[0])

    def texts(self) -> list[str]:
        """Each output as text, as far as it has any: of a list or an object all texts in it."""
        if self.numbers is not None:
            return [""] * len(self)
        return [item if isinstance(item, str) else " ".join(_leaves(item, str)) for item in self.items]

    @property
    def fractional(self) -> bool:
        """Whether there are numbers that are not whole."""
        found = [self.numbers] if self.numbers is not None else [_numbers_in(item) for item in self.items]
        return any(np.any(np.isfinite(n) & (n != np.rint(n))) for n in found if n is not None)

    def lengths(self) -> Array:
        """How long each output is: characters of a text, entries of a vector or list; NaN where neither."""
        if self.numbers is not None:
            return np.full(len(self), float(self.numbers.shape[1]))
        return np.array([_length(item) for item in self.items])

    def rows(self) -> list[Any]:
        if self.numbers is None:
            return list(self.items)
        return list(self.numbers) if self.numbers.shape[1] != 1 else self.numbers[:, 0].tolist()


def read(batch: Any) -> Outputs:
    """Look at a batch of outputs, an array or a sequence.

    >>> read([1, 2.5]).numbers.tolist(), read(["yes", "no"]).kind
    ([[1.0], [2.5]], 'text')
    """
    if isinstance(batch, np.ndarray):
        if batch.dtype.kind in "biuf":
            width = math.prod(batch.shape[1:])
            return Outputs(np.ascontiguousarray(batch.reshape(len(batch), width), dtype=np.float64))
        batch = batch.tolist()
    items = list(batch)
    kinds = {type(item) for item in items}
    if all(issubclass(kind, _NUMBERS) for kind in kinds):
        try:
            return Outputs(np.array(items, dtype=np.float64)[:, None])
        except OverflowError:  # a whole number beyond all floats is looked at as it is
            return Outputs(None, items)
    if all(issubclass(kind, np.ndarray | list | tuple) for kind in kinds):
        vectors = [_vector(item) for item in items]
        if all(v is not None for v in vectors) and len({len(v) for v in vectors if v is not None}) == 1:
            return Outputs(np.array(vectors, dtype=np.float64))
    return Outputs(None, items)


def join(batches: Sequence[Outputs]) -> Outputs:
    """Several batches as one."""
    if len(batches) == 1:
        return batches[0]
    if len({batch.width for batch in batches}) == 1 and batches[0].numbers is not None:
        return Outputs(np.concatenate([batch.numbers for batch in batches if batch.numbers is not None]))
    return Outputs(None, [row for batch in batches for row in batch.rows()])


def part(outputs: Outputs, start: int, stop: int | None = None) -> Outputs:
    """Some of the outputs, in order."""
    if outputs.numbers is not None:
        return Outputs(outputs.numbers[start:stop])
    return Outputs(None, outputs.items[start:stop])


def _vector(item: Any) -> Array | None:
    if isinstance(item, _NUMBERS):
        try:
            return np.array([float(item)])
        except OverflowError:
            return None
    if not isinstance(item, np.ndarray | list | tuple):
        return None
    if not isinstance(item, np.ndarray) and not all(isinstance(entry, _NUMBERS) for entry in item):
        return None
    vector = np.asarray(item)
    return vector.astype(np.float64).ravel() if vector.dtype.kind in "biuf" else None


def _numbers_in(item: Any) -> Array | None:
    """The numbers of an output: its coordinates, or all numbers in a list or an object, in the order of its keys."""
    vector = _vector(item)
    if vector is not None or not isinstance(item, dict | list | tuple):
        return vector
    found = [v for v in map(_vector, _leaves(item, (*_NUMBERS, np.ndarray))) if v is not None]
    return np.concatenate(found) if found else None


def _leaves(item: Any, kinds: Any, depth: int = 4) -> list[Any]:
    """What a list or an object has of some kinds, however deep, up to a limit."""
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


def _length(item: Any) -> float:
    vector = _vector(item)
    if vector is not None:
        return float(len(vector))
    try:
        return float(len(item))
    except Exception:  # it has no length, or what is written for it fails
        return math.nan


def _shape_name(width: int) -> str:
    return "number" if width == 1 else f"vector[{width}]"


def _kind(item: Any) -> str:
    if item is None:
        return "none"
    if isinstance(item, Failure):
        return f"fails: {item.kind}"
    if isinstance(item, str):
        return "text"
    vector = _vector(item)
    if vector is not None:
        return _shape_name(len(vector))
    return type(item).__name__


_ODD = np.uint64(0x9E3779B97F4A7C15)


def _row_keys(matrix: Array) -> Keys:
    """Mix the bit patterns of each row; −0.0 and 0.0 differ, as do NaN and numbers."""
    bits = matrix.view(np.uint64)
    keys = np.full(len(bits), np.uint64(bits.shape[1]), dtype=np.uint64)
    for j in range(min(bits.shape[1], LONGEST)):
        keys ^= bits[:, j]
        keys *= _ODD
        keys ^= keys >> np.uint64(29)
    return keys


def _key(item: Any) -> int:
    vector = _vector(item)
    if vector is not None:
        return int(_row_keys(vector[None, :])[0])
    item = item.item() if isinstance(item, np.generic) else item
    text = f"{_kind(item)}\0{_written(item)}"
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")


def _written(item: Any) -> str:
    """An output as text, the same for equal ones, and without the address it has in memory.

    Addresses say nothing of the mechanism, but they may say which batch was drawn first.
    """
    if isinstance(item, Failure):
        return item.kind
    if isinstance(item, int):
        return hex(item)
    if isinstance(item, dict | set | frozenset):
        parts = item.items() if isinstance(item, dict) else item
        return "\0".join(sorted(_repr(part) for part in parts))
    return _repr(item)


def _repr(item: Any) -> str:
    try:
        return _ADDRESS.sub("", repr(item))
    except Exception:  # nested too deeply, or what is written for it fails
        return ""
