"""The verifier's own reader of vocabularies, and its own distances."""

from __future__ import annotations

import hashlib
import io
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError

Rows = NDArray[np.float64]
_SHORTEST = 1e-140  # squares of smaller numbers vanish in doubles


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
        words = json.dumps(list(self.words), ensure_ascii=False).encode()
        shape = b"".join(n.to_bytes(8, "little") for n in self.rows.shape)
        return hashlib.sha256(words + shape + self.rows.astype("<f8").tobytes()).hexdigest()

    def distances(self, x: int, metric: str) -> tuple[Rows, float]:
        """The distances of all words from one, and how far they may be off: far more than rounding errors."""
        rows, own = self.rows, self.rows[x]
        if metric == "angle":
            if not (abs(rows).max(axis=1) > _SHORTEST).all():
                raise InputError("a vector of zeros, or one that is too short, has no angle")
            rows = rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
            own = rows[x]
            apart, opposite = (np.sqrt(((rows + sign * own) ** 2).sum(axis=1)) for sign in (-1, 1))
            return 2 * np.arctan2(apart, opposite), (self.dim + 20) * 2.0**-48
        differences = abs(rows - own)
        if metric == "l2":
            found = np.sqrt((differences**2).sum(axis=1))
        else:
            found = differences.sum(axis=1) if metric == "l1" else differences.max(axis=1)
        return found, (self.dim + 20) * 2.0**-51 * float(found.max()) + 1e-99

    def farthest(self, x: int, y: int, metric: str) -> float:
        """A number that the distance of two words does not exceed; 0 if they have the same vector."""
        if (self.rows[x] == self.rows[y]).all():
            return 0.0
        pair = Vectors((self.words[x], self.words[y]), self.rows[[x, y]])
        measured, error = pair.distances(0, metric)
        return float(measured[1]) + 2 * error


def read_vectors(path: str | Path, count: int) -> Vectors:
    """The first words of a file and their rows."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        if content[:2] == b"PK":
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                words, rows = [str(word) for word in arrays["words"]], arrays["vectors"]
        elif content[8:9] == b"{":
            words, rows = _tensors(content)
        else:
            words, rows = _lines(content.decode("utf-8"), count)
        rows = np.asarray(rows, dtype=np.float64)[:count]
        if rows.ndim != 2 or len(words) < len(rows) or not np.isfinite(rows).all() or len(rows) < 2:
            raise ValueError("its words and vectors do not fit together")
        if abs(rows).max() > 1e100:
            raise ValueError("it has numbers beyond 1e100")
    except InputError:
        raise
    except Exception as error:  # any kind that a damaged file causes
        raise InputError(f"{path} cannot be read as a vocabulary: {error}"[:300]) from None
    found = Vectors(tuple(words[:count]), rows)
    if len(found.places) < found.count:
        raise InputError(f"{path} has a word twice")
    return found


def _lines(text: str, count: int) -> tuple[list[str], list[list[float]]]:
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    head = lines[0].split()
    if len(head) == 2 and head[0].isdecimal() and head[1].isdecimal() and len(lines) > 1:
        lines, dim = lines[1:], int(head[1])
    else:
        dim = len(head) - 1
    words, rows = [], []
    for line in lines[:count]:
        parts = line.split() if "\t" in line else line.split(" ")
        words.append(" ".join(parts[:-dim]))
        rows.append([float(part) for part in parts[-dim:]])
        if len(parts) <= dim or not math.isfinite(math.fsum(rows[-1])):
            raise ValueError(f"the line of {words[-1]!r:.40} cannot be read")
    return words, rows


def _tensors(content: bytes) -> tuple[list[str], Any]:
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    words = json.loads(header.pop("__metadata__")["words"])
    (about,) = [table for table in header.values() if len(table["shape"]) == 2]
    first, last = about["data_offsets"]
    data = content[start + first : start + last]
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
    rows = np.frombuffer(data, dtype=kinds[about["dtype"]])
    if about["dtype"] == "BF16":
        rows = (rows.astype("<u4") * 65536).view("<f4")
    return words, rows.reshape(about["shape"])
