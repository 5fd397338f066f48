"""Words with vectors, read from a file: text as GloVe and word2vec write it, npz or safetensors. Nothing is executed.

The vectors are the file's numbers as doubles; verdicts hold for exactly these.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError, counted
from dpassay.values import dataclass

Array = NDArray[np.float64]
FORMS = "text (a word and its numbers per line), .npz (arrays 'words' and 'vectors') or .safetensors"
# How safetensors stores numbers. BF16 is the upper half of a float32.
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_OTHER = {
    b"\x1f\x8b": "is compressed: unpack it first",
    b"\x80": "is a pickle, which could run code and is never read: save it as text or npz",
    b"\x93NUMPY": "is an .npy file, which has no words: save words and vectors with numpy.savez",
    b"PAR1": "is a Parquet file",
}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words in order, and a vector for each.

    >>> words = Vocabulary(("yes", "no"), np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> len(words), words.dim, words.index("no")
    (2, 2, 1)
    """

    words: tuple[str, ...]
    vectors: Array
    name: str = "the vocabulary"

    def __post_init__(self) -> None:
        vectors = np.ascontiguousarray(_numbers(self.vectors, self.name))
        vectors.setflags(write=False)
        object.__setattr__(self, "words", tuple(self.words))
        object.__setattr__(self, "vectors", vectors)
        _check(self.words, vectors, self.name)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def index(self, word: str) -> int:
        """The place of a word.

        >>> Vocabulary(("yes", "no"), np.eye(2)).index("maybe")
        Traceback (most recent call last):
        ...
        dpassay.errors.InputError: the vocabulary has no word 'maybe'
        """
        if word not in self._places:
            raise InputError(f"{self.name} has no word {word!r}")
        return self._places[word]

    @cached_property
    def digest(self) -> str:
        """What identifies these words and vectors in a certificate, whatever file format they came from."""
        found = hashlib.sha256(json.dumps(self.words, ensure_ascii=False).encode())
        found.update(np.array(self.vectors.shape, dtype="<i8").tobytes())
        found.update(self.vectors.astype("<f8").tobytes())
        return found.hexdigest()


def read_vocabulary(path: str | Path, limit: int | None = None) -> Vocabulary:
    """Read words with vectors; with `limit` only the first `limit` words.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "v.txt").write_text("yes 0 1\\nno 1 0\\n")
    ...     read_vocabulary(f"{folder}/v.txt").words
    ('yes', 'no')
    """
    path = Path(path)
    if limit is not None and limit < 2:
        raise InputError(f"a vocabulary needs at least two words, got a limit of {limit}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if not content.strip():
        raise InputError(f"{path} is empty: a vocabulary is {FORMS}")
    for start, what in _OTHER.items():
        if content.startswith(start):
            raise InputError(f"{path} {what}; a vocabulary is {FORMS}")
    if content.startswith(b"PK\x03\x04"):
        words, vectors = _read_npz(content, path)
    elif content[8:9] == b"{" and int.from_bytes(content[:8], "little") < len(content):
        words, vectors = _read_safetensors(content, path)
    else:
        words, vectors = _read_text(content, path, limit)
    if len(words) != len(vectors):
        raise InputError(f"{path} has {counted(len(words), 'word')} and {counted(len(vectors), 'vector')}")
    return Vocabulary(tuple(words[:limit]), vectors[:limit], str(path))


def _check(words: Sequence[str], vectors: Array, name: str) -> None:
    if vectors.ndim != 2 or len(words) != len(vectors):
        many = counted(len(words), "word")
        raise InputError(f"{name} has {many} and vectors of shape {vectors.shape}: one vector per word")
    if len(words) < 2:
        raise InputError(f"{name} has {len(words)} word{'s' * (len(words) != 1)}: at least two are needed")
    if vectors.shape[1] == 0:
        raise InputError(f"{name} has empty vectors")
    seen: dict[str, int] = {}
    for i, word in enumerate(words):
        if not isinstance(word, str) or not word:
            raise InputError(f"word {i + 1} of {name} is {word!r}: a word is a text that is not empty")
        if word in seen:
            raise InputError(f"{name} has the word {word!r} twice, as words {seen[word] + 1} and {i + 1}: keep one")
        seen[word] = i
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if wrong.size:
        raise InputError(f"the vector of {words[wrong[0]]!r} in {name} has NaN or an infinite number: remove the word")
    if np.abs(vectors).max() > 1e100:
        raise InputError(f"{name} has numbers beyond 1e100, whose squares cannot be added")


def _numbers(vectors: Any, name: str) -> Array:
    array = np.asarray(vectors)
    if array.dtype.kind not in "fiu":
        raise InputError(f"the vectors of {name} are of type {array.dtype}: expected numbers")
    return array.astype(np.float64)


def _read_text(content: bytes, path: Path, limit: int | None) -> tuple[list[str], Array]:
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; a vocabulary is {FORMS}") from None
    first = lines[0].split()
    start = 1 if len(first) == 2 and all(part.isdecimal() for part in first) and len(lines) > 1 else 0
    dim = int(first[1]) if start else len(first) - 1
    if dim < 1:
        raise InputError(f"{path}: the first line is {lines[0][:40]!r}; expected a word and its numbers")
    words: list[str] = []
    rows: list[Array] = []
    for number, line in _numbered(lines[start:], start + 1):
        word, row = _read_line(line, dim, f"{path}, line {number}")
        words.append(word)
        rows.append(np.array(row))
        if len(words) == limit:
            break
    return words, np.array(rows, dtype=np.float64).reshape(len(rows), dim)


def _numbered(lines: Iterable[str], start: int) -> Iterable[tuple[int, str]]:
    return ((i, line) for i, line in enumerate(lines, start) if line.strip())


def _read_line(line: str, dim: int, where: str) -> tuple[str, list[float]]:
    """A word, which may contain spaces, and its numbers."""
    parts = line.rstrip().split(" ") if "\t" not in line else line.rstrip().split()
    word, numbers = " ".join(parts[:-dim]), parts[-dim:]
    try:
        row = [float(part) for part in numbers]
        if any("_" in part for part in numbers):  # which Python allows in numbers
            raise ValueError
    except ValueError:
        shown = next(part for part in numbers if not _is_number(part))
        raise InputError(f"{where}: {shown[:40]!r} is not a number; expected a word and {dim} numbers") from None
    # More numbers than on the first line mean another vector; other tokens before the numbers belong to the word.
    if len(parts) <= dim or (len(parts) > dim + 1 and all(_is_number(part) for part in parts[1:-dim])):
        raise InputError(f"{where}: {len(parts) - 1} numbers, where the vectors of this file have {dim}")
    return word, row


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _read_npz(content: bytes, path: Path) -> tuple[list[str], Array]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            missing = [name for name in ("words", "vectors") if name not in arrays]
            if missing:
                has = ", ".join(sorted(arrays)) or "nothing"
                raise InputError(f"{path} has no array {missing[0]!r} (it has {has}): a vocabulary is {FORMS}")
            words, vectors = arrays["words"], arrays["vectors"]
    except InputError:
        raise
    except (ValueError, OSError, BadZipFile, KeyError, EOFError) as error:
        raise InputError(f"{path} cannot be read as npz: {error}"[:300]) from None
    if words.dtype.kind != "U" or words.ndim != 1:
        raise InputError(f"the words of {path} are an array of {words.dtype}: expected one row of text")
    return [str(word) for word in words], _numbers(vectors, str(path))


def _read_safetensors(content: bytes, path: Path) -> tuple[list[str], Array]:
    """The one table of the file, with the words as a JSON list in the metadata entry 'words'."""
    size = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + size])
        words = json.loads(header.pop("__metadata__", {})["words"])
    except KeyError:
        raise InputError(f"{path} has no words: put them as a JSON list into its metadata, under 'words'") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged or not a safetensors file: {error}"[:300]) from None
    tables = [about for about in header.values() if isinstance(about, dict) and len(about.get("shape", ())) == 2]
    if len(tables) != 1 or not isinstance(words, list):
        raise InputError(f"{path} has {len(tables)} tables of vectors: expected one, and a list of words")
    about, data = tables[0], content[8 + size :]
    try:
        start, end = about["data_offsets"]
        stored = np.frombuffer(data[start:end], dtype=_DTYPES[about["dtype"]]).reshape(about["shape"])
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged, or its numbers are none of F64, F32, F16, BF16: {error}") from None
    if about["dtype"] == "BF16":
        stored = (stored.astype("<u4") << 16).view("<f4")
    return words, _numbers(stored, str(path))
