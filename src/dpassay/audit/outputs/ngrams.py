"""The n-grams of texts: words, pairs of words and character trigrams, each counted in a cell, its CRC-32 modulo 2¹⁵.

Texts are many and long, so the cells of pairs and trigrams are computed for all of them together. A CRC is linear over
GF(2): that of a text is that of its end, xor that of its beginning times a matrix that depends on the end's length.
"""

import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.outputs import LONGEST

HASHED = 1 << 15  # cells for counting n-grams
TOGETHER = 512  # texts whose n-grams are found together
MOST_WORDS = 8 * LONGEST  # characters of a text whose words are counted
ASCII = 128


def ngrams(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells of each text's words, pairs of words and character trigrams: the texts' numbers, and their cells.

    >>> numbers, cells = ngrams(["to be", ""])  # to, be, to be, and "to ", "o b", " be"
    >>> numbers.tolist(), len(set(cells.tolist()))
    ([0, 0, 0, 0, 0, 0], 6)
    """
    parts = [_ngrams(texts[k : k + TOGETHER]) for k in range(0, len(texts), TOGETHER)]
    both = np.concatenate([part + k * TOGETHER * HASHED for k, part in enumerate(parts)] or [np.zeros(0, np.int64)])
    return both // HASHED, both % HASHED


def grams(text: str) -> set[str]:
    """A text's words and pairs of words in lower case, and its character trigrams, each after a zero."""
    words = _words(text)
    trigrams = {f"\0{text[i : i + 3]}" for i in range(min(len(text) - 2, LONGEST))}
    return {*words, *(f"{a} {b}" for a, b in pairwise(words))} | trigrams


@lru_cache(maxsize=1 << 16)
def cell_of(gram: str) -> int:
    """The cell in which an n-gram is counted."""
    return zlib.crc32(gram.encode("utf-8", "surrogatepass")) % HASHED


def _words(text: str) -> list[str]:
    return text[:MOST_WORDS].lower().split()


def _ngrams(texts: Sequence[str]) -> NDArray[np.int64]:
    """The number of a text times the number of cells, and the cell: each once, in order."""
    found = np.concatenate([*_of_words(texts), _of_trigrams([text[: LONGEST + 2] for text in texts])])
    found.sort()  # np.unique would hash, which takes ten times as long
    first = np.ones(len(found), dtype=bool)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found[first].astype(np.int64)


def _numbers(lengths: Sequence[int]) -> NDArray[np.int32]:
    """For each of the parts of texts, the number of its text times the number of cells: below 512 · 2¹⁵."""
    return np.repeat(np.arange(0, len(lengths) * HASHED, HASHED, dtype=np.int32), lengths)


def _of_words(texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Words, and pairs of words, as often as they occur."""
    split = list(map(_words, texts))
    numbers = _numbers(list(map(len, split)))
    if not len(numbers):
        return numbers, numbers
    distinct = dict.fromkeys(chain.from_iterable(split))
    place = dict(zip(distinct, range(len(distinct)), strict=True)).__getitem__
    which = np.fromiter(map(place, chain.from_iterable(split)), dtype=np.int64, count=len(numbers))
    alone, after, lengths = np.array(list(map(_crcs, distinct)), dtype=np.int64).T
    few, kind = np.unique(lengths, return_inverse=True)  # a matrix for each length
    tables = np.concatenate([_table(length) for length in few.tolist()])
    beside = np.flatnonzero(numbers[:-1] == numbers[1:])
    second = which[beside + 1]
    starts, crcs = (kind * tables.size // len(few))[second], alone[which[beside]]
    pairs = after[second]
    for byte in range(4):
        pairs ^= tables[starts + 256 * byte + (crcs >> 8 * byte & 255)]
    modulo = HASHED - 1
    return numbers | (alone & modulo).astype(np.int32)[which], numbers[beside] | (pairs & modulo).astype(np.int32)


@lru_cache(maxsize=1 << 14)
def _crcs(word: str) -> tuple[int, int, int]:
    """The CRC of a word, that of a space and the word, and how many bytes these are."""
    raw = word.encode("utf-8", "surrogatepass")
    return zlib.crc32(raw), zlib.crc32(b" " + raw), len(raw) + 1


@lru_cache(maxsize=1 << 10)
def _table(length: int) -> NDArray[np.int64]:
    """What each byte of a text's CRC adds to the CRC of the text with so many bytes more: four bytes, 256 values each.

    That is linear, so 32 bits tell it for all.
    """
    zeros = b"\0" * length
    table = np.zeros((4, 256), dtype=np.int64)
    for bit in range(32):
        byte, place = divmod(bit, 8)
        table[byte] ^= (np.arange(256) >> place & 1) * (zlib.crc32(zeros, 1 << bit) ^ zlib.crc32(zeros))
    return table.ravel()


def _of_trigrams(texts: Sequence[str]) -> NDArray[np.int32]:
    """Character trigrams, as often as they occur."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    numbers = _numbers(list(map(len, texts)))
    if len(codes) < 3:
        return numbers[:0]
    wide = codes.max() >= ASCII
    three = [codes[k : len(codes) - 2 + k] for k in range(3)]
    cells = numbers[:-2].copy()
    for some, table in zip(three, _trigram_tables(), strict=True):
        cells ^= table[np.minimum(some, ASCII - 1) if wide else some]
    if wide:  # characters of several bytes
        places = np.flatnonzero(np.maximum.reduce(three) >= ASCII)
        a, b, c = (some[places].astype(np.int64) for some in three)
        distinct, which = np.unique(a << 42 | b << 21 | c, return_inverse=True)
        named = ("\0" + "".join(chr(key >> k & 0x1FFFFF) for k in (42, 21, 0)) for key in distinct.tolist())
        cells[places] = numbers[places] | np.array([cell_of(gram) for gram in named], dtype=np.int32)[which]
    return np.asarray(cells[numbers[:-2] == numbers[2:]])


@lru_cache(maxsize=1)
def _trigram_tables() -> tuple[NDArray[np.int32], ...]:
    """For each of three places, what each ASCII character there adds to the cell of a zero and three characters."""
    tables = []
    for place in range(3):
        rest = b"\0" * (2 - place)
        zeros = zlib.crc32(b"\0" * 4) if place else 0  # counted once
        some = [zlib.crc32(b"\0" * (place + 1) + bytes([code]) + rest) ^ zeros for code in range(ASCII)]
        tables.append((np.array(some) % HASHED).astype(np.int32))
    return tuple(tables)
