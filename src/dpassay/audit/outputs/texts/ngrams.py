"""The words of texts as numbers, and their n-grams: words, pairs of words and character trigrams.

An n-gram is counted in a cell, its CRC-32 modulo 2¹⁵. Texts are many and long, so each is split once, and the cells of
pairs and trigrams are computed for many together. A CRC is linear over GF(2): that of a text is that of its end, xor
that of its beginning times a matrix that depends on the end's length.
"""

import re
import threading
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.outputs import LONGEST, Outputs, Ragged

HASHED = 1 << 15  # cells for counting n-grams
TOGETHER = 512  # texts whose n-grams are found together
MOST_WORDS = 8 * LONGEST  # characters of a text whose words are counted
MOST_KNOWN = 1 << 14  # words
OF_WORD = "count(text, "  # how often a word occurs in each output's text
MOST_DIGITS = 15  # of a number in a text that is read
NUMBERS = re.compile(rf"(?<![0-9])[0-9]{{1,{MOST_DIGITS}}}(?![0-9])")
ASCII = 128


class WordNumbers(dict[str, int]):
    """The numbers of words, in the order in which they were met, and what is known of each.

    >>> known = WordNumbers()
    >>> known["to"], known["be"], known["to"]
    (0, 1, 0)
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self._crcs = np.zeros((0, 3), dtype=np.int64)  # of the word in lower case, of a space and it, and where …
        self._tables: dict[int, NDArray[np.int64]] = {}  # … the table for as many bytes begins in all of them
        self._figures = np.zeros(0, dtype=np.int64)

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self.words)
        self.words.append(word)
        return number

    @property
    def crcs(self) -> NDArray[np.int64]:
        """The CRC of each word, that of a space and the word, and the place of the table for its length."""
        new = [_crcs(word.lower()) for word in self.words[len(self._crcs) :]]
        for _, _, length in new:
            if length not in self._tables:
                self._tables[length] = _table(length)
        if new:
            place = {length: k * _table(length).size for k, length in enumerate(self._tables)}
            rows = [(alone, after, place[length]) for alone, after, length in new]
            self._crcs = np.concatenate([self._crcs, np.array(rows, dtype=np.int64)])
        return self._crcs

    @property
    def tables(self) -> NDArray[np.int64]:
        """All tables, one after the other."""
        return np.concatenate(list(self._tables.values()))

    @property
    def figures(self) -> NDArray[np.int64]:
        """How many numbers each word contains."""
        new = [len(NUMBERS.findall(word)) for word in self.words[len(self._figures) :]]
        self._figures = np.concatenate([self._figures, np.array(new, dtype=np.int64)]) if new else self._figures
        return self._figures


_OF_THREAD = threading.local()


def _vocabulary() -> WordNumbers:
    """The words known in this thread; after too many they are forgotten."""
    known: WordNumbers | None = getattr(_OF_THREAD, "known", None)
    if known is None or len(known) > MOST_KNOWN:
        known = _OF_THREAD.known = WordNumbers()
    return known


def words_of(texts: Sequence[str]) -> Ragged:
    """The words of texts, by their numbers in a vocabulary.

    >>> words_of(["to be", "", "be"]).lengths.tolist()
    [2, 0, 1]
    """
    known, split = _vocabulary(), [text[:MOST_WORDS].split() for text in texts]
    lengths = np.fromiter(map(len, split), dtype=np.int64, count=len(split))
    numbers = map(known.__getitem__, chain.from_iterable(split))
    return Ragged(np.fromiter(numbers, dtype=np.int32, count=int(lengths.sum())), lengths, words_in, known)


def words_in(outputs: Outputs) -> Ragged:
    """The words of each output's text, found once."""
    if "words" not in outputs.projections:
        outputs.projections["words"] = words_of(outputs.texts())
    made: Ragged = outputs.projections["words"]
    return made


def all_words_in(outputs: Outputs) -> Ragged | None:
    """The words of texts, if all are texts of which no word is left out."""
    if not outputs.only_text or max(map(len, outputs.items), default=0) > MOST_WORDS:
        return None
    return words_in(outputs)


def each_once(words: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each word of each text once: the number of the text, and that of the word.

    >>> words = words_of(["be or not to be"])
    >>> texts, numbers = each_once(words)
    >>> texts.tolist(), sorted(word for word in words.of if words.of[word] in numbers)
    ([0, 0, 0, 0], ['be', 'not', 'or', 'to'])
    """
    many = max(1, len(words.of))
    found = words.rows * many + words.values
    found.sort()
    first = np.ones(len(found), dtype=bool)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return np.divmod(found[first], many)


def how_often(words: Ragged, chosen: Sequence[str]) -> NDArray[np.float64]:
    """How often each text has each of some words; NaN for a text without words."""
    column = np.full(len(words.of), -1, dtype=np.int64)
    for j, word in enumerate(chosen):
        if word in words.of:
            column[words.of[word]] = j
    where = column[words.values]
    there = where >= 0
    counts = np.bincount(words.rows[there] * len(chosen) + where[there], minlength=len(words.lengths) * len(chosen))
    found = counts.reshape(len(words.lengths), len(chosen)).astype(float)
    found[words.lengths == 0] = np.nan
    return found


def code_points(outputs: Outputs) -> NDArray[np.float64]:
    """The sum of the codes of all characters of each output's text."""
    texts = [text[:MOST_WORDS] for text in outputs.texts()]
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(codes, dtype=np.int64)])
    ends = np.cumsum([0, *map(len, texts)])
    return np.asarray(sums[ends[1:]] - sums[ends[:-1]], dtype=float)


def count_path(word: str) -> str:
    """The path of how often a word occurs in the text.

    >>> count_path("to"), word_of(count_path("to"))
    ('count(text, to)', 'to')
    """
    return f"{OF_WORD}{word})"


def word_of(path: str) -> str:
    """The word whose occurrences a path counts."""
    return path[len(OF_WORD) : -1]


def ngrams_in(outputs: Outputs) -> Ragged:
    """The cells of the n-grams of each output's text, found once."""
    if "ngrams" not in outputs.projections:
        outputs.projections["ngrams"] = _ngrams(outputs.texts(), words_in(outputs))
    made: Ragged = outputs.projections["ngrams"]
    return made


def ngrams(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells of each text's words, pairs of words and character trigrams: the texts' numbers, and their cells.

    >>> numbers, cells = ngrams(["to be", ""])  # to, be, to be, and "to ", "o b", " be"
    >>> numbers.tolist(), len(set(cells.tolist()))
    ([0, 0, 0, 0, 0, 0], 6)
    """
    found = _ngrams(texts, words_of(texts))
    return found.rows, found.values.astype(np.int64)


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


def _ngrams(texts: Sequence[str], words: Ragged) -> Ragged:
    """The cells of each text, each once, in order."""
    cells, lengths = [np.zeros(0, dtype=np.uint16)], [np.zeros(0, dtype=np.int64)]
    for k in range(0, len(texts), TOGETHER):
        some = texts[k : k + TOGETHER]
        split = words if len(some) == len(texts) else words.part(k, k + TOGETHER)
        found = np.concatenate([*_of_words(split), _of_trigrams([text[: LONGEST + 2] for text in some])])
        found.sort()  # np.unique would hash, which takes ten times as long
        first = np.ones(len(found), dtype=bool)
        np.not_equal(found[1:], found[:-1], out=first[1:])
        found = found[first]
        cells.append((found & (HASHED - 1)).astype(np.uint16))
        lengths.append(np.bincount(found // HASHED, minlength=len(some)))
    return Ragged(np.concatenate(cells), np.concatenate(lengths), ngrams_in)


def _numbers(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int32]:
    """For each of the parts of texts, the number of its text times the number of cells: below 512 · 2¹⁵."""
    return np.repeat(np.arange(0, len(lengths) * HASHED, HASHED, dtype=np.int32), lengths)


def _of_words(words: Ragged) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Words, and pairs of words, as often as they occur."""
    numbers = _numbers(words.lengths)
    if not len(numbers):
        return numbers, numbers
    alone, after, places = words.of.crcs.T
    tables = words.of.tables
    beside = np.flatnonzero(numbers[:-1] == numbers[1:])
    second = words.values[beside + 1]
    starts, crcs = places[second], alone[words.values[beside]]
    pairs = after[second]
    for byte in range(4):
        pairs ^= tables[starts + 256 * byte + (crcs >> 8 * byte & 255)]
    modulo = HASHED - 1
    return numbers | (alone & modulo).astype(np.int32)[words.values], numbers[beside] | (pairs & modulo).astype(
        np.int32
    )


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
