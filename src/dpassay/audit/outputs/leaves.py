"""An output taken apart: its leaves, each with the path that leads to it.

A leaf is a number, a text, bytes, None, or a row of numbers. Besides an output's contents, its form is recorded: types,
dtypes, shapes, lengths, and what is where in a collection. Less common types are in `leaf_types`. An output that cannot
be read is a MechanismError: nothing may pass unexamined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dpassay.audit.options import Unknown
from dpassay.audit.outputs.doubles import DOUBLES, as_doubles, exact, rounded_by_floats
from dpassay.audit.outputs.leaf_dict import Leaves, canonical
from dpassay.audit.outputs.texts.failures import told_by
from dpassay.errors import MechanismError
from dpassay.pipeline.mechanism import Failure
from dpassay.values import dataclass

ROOT = "output"
DEEPEST = 64
MOST_LEAVES = 1 << 20
MOST_MEMBERS = 512  # entries of a list whose position is used
LOW_BITS = 1 << 16


@dataclass
class LeafReader:
    """One output being taken apart."""

    unknown: Unknown = "refuse"
    found: Leaves = field(default_factory=Leaves)
    deep: int = 0

    def put(self, path: str, leaf: Any) -> None:
        """Record one leaf."""
        if len(self.found) >= MOST_LEAVES:
            raise MechanismError(f"an output has more than {MOST_LEAVES:,} leaves; return fewer, or an array of them")
        self.found[path] = leaf

    def named(self, path: str, item: Any) -> None:
        """Record the type of something."""
        self.put(f"type({path})", type(item).__name__)

    def read(self, path: str, item: Any) -> None:
        """Record everything that an item is and contains."""
        kind = type(item)
        if kind is float:
            self.put(path, item)
            if item - item != 0:
                self.put(f"type({path})", "nan" if item != item else "infinite")
            return
        reader = _READERS.get(kind)
        if reader is None:
            reader = _READERS[kind] = _reader_of(kind)
        self.deep += 1
        if self.deep > DEEPEST:
            raise MechanismError(f"an output is nested more than {DEEPEST} levels deep, or contains itself")
        reader(self, path, item)
        self.deep -= 1


def leaves_of(item: Any, unknown: Unknown = "refuse") -> Leaves:
    """All leaves of an output by their paths.

    >>> leaves_of({"noise": [0.5, 1.5], "secret": None})['output["noise"]']
    array([0.5, 1.5])
    >>> leaves_of({"a", "b"})
    {'type(output)': 'set', 'len(output)': 2, '"a" in output': True, '"b" in output': True}
    """
    walk = LeafReader(unknown)
    walk.read(ROOT, item)
    return walk.found


def is_value(path: str) -> bool:
    """Whether a path leads to a value in the output, not to a length, a type or a position.

    >>> is_value('output["a"]'), is_value('len(output["a"])'), is_value("output.dtype")
    (True, False, False)
    """
    return not path.endswith((")", ".dtype", ".shape", ".layout", ".typecode")) and " % " not in path


def shown_key(key: Any) -> str:
    """A key or a member as it is written in a path, the same for equal ones."""
    if type(key) is str:
        return _quoted(key)
    if isinstance(key, Enum):
        return f"{type(key).__name__}.{key.name}"
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, str):
        return _quoted(str(key))
    if key is None or isinstance(key, bytes | int | float | complex):
        return repr(key) if not isinstance(key, int) or abs(key) < 1 << 4096 else hex(key)
    return canonical(leaves_of(key))


@lru_cache(maxsize=1 << 12)
def _quoted(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def element(found: Leaves, path: str) -> Any:
    """A leaf, or an entry of a row of numbers; `...` if there is none."""
    leaf = found.get(path, ...)
    if leaf is ... and path.endswith("]"):
        base, _, place = path[:-1].rpartition("[")
        row = found.get(base)
        if isinstance(row, np.ndarray) and place.isdigit() and int(place) < len(row):
            return float(row[int(place)])
    return leaf


# ── Plain values ────────────────────────────────────────────────────────────────────────────────


def _none(walk: LeafReader, path: str, item: Any) -> None:
    walk.put(f"type({path})", "none")
    walk.put(path, None)


def _text(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(path, str(item))
    walk.put(f"len({path})", len(item))


def _bytes(walk: LeafReader, path: str, item: Any) -> None:
    raw = bytes(item)
    walk.named(path, item)
    walk.put(f"bytes({path})", raw)
    walk.put(f"len({path})", len(raw))
    walk.put(path, np.frombuffer(raw, dtype=np.uint8).astype(float))


def _whole(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    whole(walk, path, int(item))


def whole(walk: LeafReader, path: str, number: int) -> None:
    """An integer of any size: one that a float cannot hold also has its size and its last digits recorded."""
    walk.put(path, number)
    if not exact(number):
        walk.put(f"{path}.bit_length()", number.bit_length())
        walk.put(f"{path} % {LOW_BITS}", number % LOW_BITS)
        walk.put(f"{path} % 2", number % 2)


def _float(walk: LeafReader, path: str, item: Any) -> None:
    walk.read(path, float(item))


def _scalar(walk: LeafReader, path: str, item: Any) -> None:
    """A numpy scalar: a double or a bool is treated like Python's, others have their type recorded."""
    kind = item.dtype.kind
    if kind in "biuSU":
        walk.read(path, item.item())
        walk.named(path, item)
    elif kind == "c":
        _complex(walk, path, item)
    elif kind == "V":
        _array(walk, path, np.asarray(item))
    else:
        array(walk, path, np.asarray(item).reshape(1), "")
        if item.dtype != np.float64:
            walk.put(f"type({path})", str(item.dtype))


def _complex(walk: LeafReader, path: str, item: Any) -> None:
    walk.put(f"type({path})", "complex" if isinstance(item, complex) else type(item).__name__)
    walk.put(f"{path}.real", float(item.real))
    walk.put(f"{path}.imag", float(item.imag))


def _enum(walk: LeafReader, path: str, item: Enum) -> None:
    walk.named(path, item)
    walk.put(path, item.name)


def _failure(walk: LeafReader, path: str, item: Failure) -> None:
    walk.put(f"type({path})", f"fails: {item.kind}")
    if told := told_by(item):
        walk.put(f"{path}.message", told)


# ── Collections ─────────────────────────────────────────────────────────────────────────────────


def array(walk: LeafReader, path: str, numbers: Any, suffix: str = ".flat") -> None:
    """The entries of a numpy array: floats as a row, other types one by one if floats cannot hold them."""
    kind, flat = numbers.dtype.kind, numbers.reshape(-1)
    place = path if numbers.ndim == 1 and suffix else f"{path}{suffix}"
    if kind == "c":
        walk.put(f"{path}.real{suffix}", flat.real.astype(float))
        walk.put(f"{path}.imag{suffix}", flat.imag.astype(float))
        return
    if kind in "biuf":
        row = flat.astype(float)
        if not rounded_by_floats(flat, row):
            walk.put(place, row if suffix else float(row[0]))
            return
        if kind == "f":  # a long double
            rest = np.nan_to_num((flat - row).astype(float))
            walk.put(place, row if suffix else float(row[0]))
            walk.put(f"{path} - float({path})", rest if suffix else float(rest[0]))
            return
    if kind in "mM":
        flat = flat.astype(np.int64)
    for i, entry in enumerate(flat.tolist()):
        walk.read(f"{place}[{i}]" if suffix else place, entry)


def _array(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(f"{path}.dtype", str(item.dtype))
    walk.put(f"{path}.shape", str(item.shape))
    if isinstance(item, np.ma.MaskedArray):
        array(walk, f"{path}.mask", np.ma.getmaskarray(item))
        item = item.filled()
    if item.dtype.names:
        for name in item.dtype.names:
            walk.read(f"{path}[{name!r}]", item[name])
    elif item.dtype.kind == "V":
        walk.read(f"{path}.tobytes()", item.tobytes())
    elif not item.ndim:
        walk.read(f"{path}[()]", item[()])
    else:
        array(walk, path, np.asarray(item))
        entries = item.tolist() if item.dtype.kind in "iuf" and item.ndim == 1 and len(item) <= MOST_MEMBERS else []
        if item.dtype.kind != "f" or all(float(entry).is_integer() for entry in entries):
            _places(walk, path, list(map(int, entries)))


def sequence(walk: LeafReader, path: str, entries: list[Any]) -> None:
    """The entries of a list in order, and the positions of those that may occur again."""
    walk.put(f"len({path})", len(entries))
    kinds = set(map(type, entries))
    row = as_doubles(entries, kinds)
    if row is not None:
        walk.put(path, row)
        if kinds != {float}:
            walk.put(f"type({path}[...])", next(iter(kinds)).__name__)
    elif kinds == {str} and len(entries) <= MOST_MEMBERS and walk.deep < DEEPEST:  # as below, in a third of the time
        found = walk.found
        for (place, sort, length), entry in zip(_entry_paths(path, len(entries)), entries, strict=True):
            found[sort], found[place], found[length] = "str", entry, len(entry)
    else:
        for i, entry in enumerate(entries):
            walk.read(f"{path}[{i}]", entry)
    if len(entries) <= MOST_MEMBERS and not (row is not None and kinds <= DOUBLES):
        _places(walk, path, entries)


@lru_cache(maxsize=1 << 8)
def _entry_paths(path: str, number: int) -> tuple[tuple[str, str, str], ...]:
    """The paths of the entries of a list, of their types and of their lengths."""
    places = [f"{path}[{i}]" for i in range(number)]
    return tuple((place, f"type({place})", f"len({place})") for place in places)


def _places(walk: LeafReader, path: str, entries: list[Any]) -> None:
    found = walk.found
    for i, entry in enumerate(entries):
        if type(entry) in _NAMED:
            place, counted = _member_paths(path, entry)
        elif entry is None or isinstance(entry, str | bytes | int | Enum | np.integer):
            name = shown_key(entry)
            place, counted = f"{path}.index({name})", f"{path}.count({name})"
        else:
            continue
        if place not in found:
            walk.put(place, i)
        else:
            walk.put(counted, found.get(counted, 1) + 1)


_NAMED = frozenset({str, int, np.int64})


@lru_cache(maxsize=1 << 14, typed=True)
def _member_paths(path: str, entry: Any) -> tuple[str, str]:
    """What the position and the number of a value in a list are called."""
    name = shown_key(entry)
    return f"{path}.index({name})", f"{path}.count({name})"


def _list(walk: LeafReader, path: str, item: Iterable[Any]) -> None:
    walk.named(path, item)
    sequence(walk, path, list(item))


def _set(walk: LeafReader, path: str, item: Iterable[Any]) -> None:
    walk.named(path, item)
    members = list(item)
    walk.put(f"len({path})", len(members))
    for name in sorted(shown_key(member) for member in members):
        walk.put(f"{name} in {path}", True)
    numbers = [float(m) for m in members if type(m) is float or (isinstance(m, int | np.integer) and exact(int(m)))]
    if numbers:
        walk.put(f"sorted({path})", np.sort(numbers))


def _mapping(walk: LeafReader, path: str, item: Mapping[Any, Any]) -> None:
    walk.named(path, item)
    keys = tuple(item)
    if all(type(key) is str for key in keys):
        walk.found |= _of_names(path, keys)
    else:
        sequence(walk, f"list({path})", list(keys))
    for key in keys:
        walk.read(f"{path}[{shown_key(key)}]", item[key])


@lru_cache(maxsize=1 << 10)
def _of_names(path: str, names: tuple[str, ...]) -> Leaves:
    """What the keys of a mapping tell, if all are texts: outputs of one form have the same."""
    walk = LeafReader()
    sequence(walk, f"list({path})", list(names))
    return walk.found


def attributes(walk: LeafReader, path: str, item: Any, names: Iterable[str]) -> None:
    """Some attributes of an object."""
    walk.named(path, item)
    for name in names:
        walk.read(f"{path}.{name}", getattr(item, name, None))


def _dataclass(walk: LeafReader, path: str, item: Any) -> None:
    attributes(walk, path, item, [one.name for one in fields(item)])


def _namedtuple(walk: LeafReader, path: str, item: Any) -> None:
    attributes(walk, path, item, item._fields)


Reader: TypeAlias = Callable[[LeafReader, str, Any], None]
_READERS: dict[type, Reader] = {}
_KINDS: tuple[tuple[Any, Reader], ...] = (  # the first that fits
    (type(None), _none),
    (Failure, _failure),
    (Enum, _enum),
    (str, _text),
    ((bytes, bytearray, memoryview), _bytes),
    (np.generic, _scalar),
    (int, _whole),
    (float, _float),
    (complex, _complex),
    (np.ndarray, _array),
)


def _reader_of(kind: type) -> Reader:
    from dpassay.audit.outputs.leaf_types import reader_of, unreadable

    for known, reader in _KINDS:
        if issubclass(kind, known):
            return reader
    special = reader_of(kind)
    if special is not None:
        return special
    if is_dataclass(kind):
        return _dataclass
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _namedtuple
    if issubclass(kind, list | tuple | range):
        return _list
    if issubclass(kind, set | frozenset):
        return _set
    if issubclass(kind, Mapping):
        return _mapping
    return unreadable
