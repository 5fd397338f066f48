"""The verifier's own reader of vocabularies, and its own distances."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from array import array
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import CertificateError, InputError
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.values import dataclass

Rows = NDArray[np.float64]
_LONGEST_HEADER = 10_000
_SHORTEST = 1e-140  # squares of smaller numbers vanish in doubles
LARGEST_VOCABULARY = 128 << 20  # bytes of a file
MOST_NUMBERS = 1 << 24  # in all vectors together: 50,000 words of 300 numbers, and some more
MOST_WORDS = 500_000
_MOST_ROWS = 8 * MOST_NUMBERS + _LONGEST_HEADER  # bytes of an array, unpacked
_MOST_TEXT = 32 << 20
_PIECE = 1 << 20  # numbers
_MOST_AT_ONCE = 2 << 20  # bytes of an archive
_OF_A_BYTE, _OF_A_WORD = 5, 1000  # work, as measured


@dataclass(frozen=True, eq=False)
class Vectors:
    """Words and a row of numbers for each.

    >>> Vectors(("a", "b"), np.array([[0.0, 0.0], [3.0, 4.0]])).distances(0, "l2")[0].tolist()
    [0.0, 5.0]
    """

    words: tuple[str, ...]
    rows: Rows

    @property
    def count(self) -> int:
        """How many words there are."""
        return len(self.words)

    @property
    def dim(self) -> int:
        """How many numbers a row has."""
        return int(self.rows.shape[1])

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of each word."""
        return {word: n for n, word in enumerate(self.words)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the words as a JSON list, the shape as two 64-bit numbers, and the rows as doubles."""
        found = hashlib.sha256(json.dumps(list(self.words), ensure_ascii=False).encode())
        found.update(b"".join(n.to_bytes(8, "little") for n in self.rows.shape))
        for piece in self._pieces():
            found.update(piece.astype("<f8").tobytes())
        return found.hexdigest()

    def _pieces(self) -> Iterator[Rows]:
        """Some rows at a time, so that no more memory is needed for more words."""
        size = max(1, _PIECE // max(1, self.dim))
        return (self.rows[start : start + size] for start in range(0, len(self.rows), size))

    def distances(self, x: int, metric: str) -> tuple[Rows, float]:
        """The distances of all words from one, and how far they may be off: far more than rounding errors."""
        spend(self.rows.size * (30 if metric == "angle" else 10) + self.count * 100)
        found = np.concatenate([_distances(piece, self.rows[x], metric) for piece in self._pieces()])
        if metric == "angle":
            return found, (self.dim + 20) * 2.0**-48
        return found, (self.dim + 20) * 2.0**-51 * float(found.max()) + 1e-99

    def farthest(self, x: int, y: int, metric: str) -> float:
        """A number that the distance of two words does not exceed; 0 if they have the same vector."""
        if (self.rows[x] == self.rows[y]).all():
            return 0.0
        pair = Vectors((self.words[x], self.words[y]), self.rows[[x, y]])
        measured, error = pair.distances(0, metric)
        return float(measured[1]) + 2 * error


def _distances(rows: Rows, own: Rows, metric: str) -> Rows:
    """The distances of some rows from one."""
    if metric == "angle":
        if not (abs(rows).max(axis=1) > _SHORTEST).all():
            raise InputError("a vector of zeros, or one that is too short, has no angle")
        rows, own = (each / np.sqrt((each**2).sum(axis=-1, keepdims=True)) for each in (rows, own))
        apart, opposite = (np.sqrt(((rows + sign * own) ** 2).sum(axis=1)) for sign in (-1, 1))
        return np.asarray(2 * np.arctan2(apart, opposite))
    differences = abs(rows - own)
    if metric == "l2":
        return np.asarray(np.sqrt((differences**2).sum(axis=1)))
    return np.asarray(differences.sum(axis=1) if metric == "l1" else differences.max(axis=1))


def read_vectors(path: str | Path, count: int) -> Vectors:
    """The first words of a file and their rows; a file that is too large is refused before it is read."""
    if count > MOST_WORDS:
        raise InputError(f"the vocabulary is too large: at most {MOST_WORDS:,} words can be checked")
    try:
        with Path(path).open("rb") as file:
            begin, size = file.read(9), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if size > LARGEST_VOCABULARY:
        raise InputError(f"{path} is too large: a vocabulary has at most {LARGEST_VOCABULARY >> 20} MB")
    spend(size * _OF_A_BYTE)
    try:
        if begin[:2] == b"PK":
            words, rows = _archive(path, count)
        else:
            words, rows = (_tensors if begin[8:] == b"{" else _lines)(_content(path, size), count)
        _allow(min(count, len(rows)) * int(np.prod(np.shape(rows)[1:], dtype=float)))
        spend(count * _OF_A_WORD)
        rows = np.asarray(rows[:count], dtype=np.float64)
        if rows.ndim != 2 or len(words) < len(rows) or not np.isfinite(rows).all() or len(rows) < 2:
            raise ValueError("its words and vectors do not fit together")
        if max(rows.max(), -rows.min()) > 1e100:
            raise ValueError("it has numbers beyond 1e100")
    except (InputError, CertificateError):
        raise
    except Exception as error:  # any kind that a damaged file causes
        raise InputError(f"{path} cannot be read as a vocabulary: {error}"[:300]) from None
    found = Vectors(tuple(words[:count]), rows)
    if len(found.places) < found.count:
        raise InputError(f"{path} contains a word twice")
    return found


def _allow(numbers: float) -> None:
    if numbers > MOST_NUMBERS:
        raise InputError(f"the vocabulary is too large: at most {MOST_NUMBERS:,} numbers can be checked")


def _content(path: str | Path, size: int) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(size)


class _InPieces(io.FileIO):
    """A file of which no more than a piece is read at once: a directory of members that is longer is refused."""

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(_MOST_AT_ONCE + 1 if size is None or size < 0 else min(size, _MOST_AT_ONCE + 1)) or b""
        if len(found) > _MOST_AT_ONCE:
            raise InputError("the vocabulary is too large: its archive has too many members")
        return found


def _archive(path: str | Path, count: int) -> tuple[list[str], Any]:
    """The two arrays of an npz file. What a member says of its own size is checked while it is unpacked."""
    with _InPieces(path) as file, zipfile.ZipFile(file) as archive:
        words, rows = (_array(archive, name, most) for name, most in (("words", _MOST_TEXT), ("vectors", _MOST_ROWS)))
    return [str(word) for word in words[:count]], rows


def _array(archive: zipfile.ZipFile, name: str, most: int) -> NDArray[Any]:
    """One array, which may not be larger than the limit, in bytes."""
    try:
        member = archive.getinfo(f"{name}.npy")
    except KeyError:
        member = archive.getinfo(name)
    too_large = InputError(f"the vocabulary is too large: its {name} may have at most {most >> 20} MB unpacked")
    if member.file_size > most:
        raise too_large
    data = bytearray()
    with archive.open(member) as file:
        while piece := file.read(_MOST_AT_ONCE // 2):
            data += piece
            if len(data) > most:
                raise too_large
    spend(len(data) * _OF_A_BYTE)
    start = io.BytesIO(bytes(data[:_LONGEST_HEADER]))
    version = np.lib.format.read_magic(start)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, kind = read(start, max_header_size=_LONGEST_HEADER)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(data) - start.tell():
        raise ValueError(f"its {name} are not what they say they are")
    return np.frombuffer(data, kind, offset=start.tell()).reshape(shape, order="F" if in_columns else "C")


def _lines(content: bytes, count: int) -> tuple[list[str], Rows]:
    """A line for each word; a byte of a text takes several times as long as one of an array."""
    spend(len(content) * 10 * _OF_A_BYTE)
    lines = (line for line in (raw.decode("utf-8").rstrip() for raw in io.BytesIO(content)) if line.strip())
    first = next(lines)
    head = first.split()
    if len(head) == 2 and head[0].isdecimal() and head[1].isdecimal() and (second := next(lines, None)) is not None:
        first, dim = second, int(head[1])
    else:
        dim = len(head) - 1
    if dim < 1 or dim > len(content):
        raise ValueError("its first line has no numbers")
    words: list[str] = []
    numbers = array("d")
    for line in chain([first], lines):
        if len(words) == count:
            break
        parts = line.split() if "\t" in line else line.split(" ")
        words.append(" ".join(parts[:-dim]))
        row = [float(part) for part in parts[-dim:]]
        if len(parts) <= dim or not math.isfinite(math.fsum(row)):
            raise ValueError(f"the line of {words[-1]!r:.40} cannot be read")
        numbers.extend(row)
        _allow(len(numbers))
    return words, np.frombuffer(numbers, dtype=np.float64).reshape(len(words), dim)


def _tensors(content: bytes, _: int) -> tuple[list[str], Any]:
    start = 8 + int.from_bytes(content[:8], "little")
    if start > _MOST_TEXT // 2:
        raise InputError(f"the vocabulary is too large: its words may have at most {_MOST_TEXT >> 21} MB")
    spend(start * 10 * _OF_A_BYTE)
    header = json.loads(content[8:start])
    words = json.loads(header.pop("__metadata__")["words"])
    (about,) = [table for table in header.values() if len(table["shape"]) == 2]
    first, last = about["data_offsets"]
    data = memoryview(content)[start + first : start + last]
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
    rows = np.frombuffer(data, dtype=kinds[about["dtype"]])
    if about["dtype"] == "BF16":
        rows = (rows.astype("<u4") * 65536).view("<f4")
    return words, rows.reshape(about["shape"])
