"""Drawing words from their exact distributions, for many words at once.

Each word that occurs has a table of cumulative probabilities, in which a uniform number finds its output. Two things
keep even the smallest probability accurate in relative terms: the table starts with the least likely words, and the
uniform number has 53 significant bits however small it is, so that it lies below a double c with probability exactly
c. Only the rounding of the probabilities themselves remains: docs/proofs/vocabulary.md, point 11.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpassay.words.mechanisms import WordMechanism
from dpassay.words.variants import log_rows
from dpassay.words.vocabulary import Array

Bits = Callable[[int], NDArray[np.uint64]]  # n independent random 64-bit numbers
ROOM = 1 << 29  # bytes of tables that are kept in memory
AT_ONCE = 64  # tables that one thread makes at a time
FLOOR = -680.0  # every word is at least e^-680 times as likely as the likeliest, so that no weight is lost to underflow
_LN2 = math.log(2)
_LONGEST = 1088  # bits after which a uniform number is small enough for any table


def bits_of(rng: np.random.Generator) -> Bits:
    """Random bits of a generator: the same generator, the same bits."""
    return lambda n: rng.integers(0, 2**64, size=n, dtype=np.uint64)


def system_bits(n: int) -> NDArray[np.uint64]:
    """Unpredictable random bits from the operating system."""
    return np.frombuffer(secrets.token_bytes(8 * n), dtype=np.uint64)


def uniforms(n: int, bits: Bits) -> Array:
    """Uniform numbers in [0, 1), rounded down to 53 significant bits, not to multiples of 2^-53.

    >>> bool((uniforms(1000, bits_of(np.random.default_rng(0))) < 1).all())
    True
    >>> words = iter([np.array([1], dtype=np.uint64), np.array([0], dtype=np.uint64)])
    >>> float(uniforms(1, lambda n: next(words))[0]) == 2.0**-64
    True
    """
    raw = bits(n)
    significant = np.frexp((raw >> np.uint64(11)).astype(np.float64))[1] + 11
    drop = np.maximum(significant - 53, 0).astype(np.uint64)
    found: Array = ((raw >> drop) << drop).astype(np.float64) * 2.0**-64
    for i in np.flatnonzero(raw < np.uint64(2**53)):
        found[i] = _longer(int(raw[i]), bits)
    return found


def _longer(value: int, bits: Bits) -> float:
    """A uniform number whose first 64 bits begin with zeros: draw more bits until 53 follow the first one."""
    size = 64
    while value.bit_length() < 53 and size < _LONGEST:
        value, size = value << 64 | int(bits(1)[0]), size + 64
    more = max(value.bit_length() - 53, 0)
    return math.ldexp(value >> more, more - size)


class WordSampler:
    """Draws outputs for words given by their places in the vocabulary; −1 is a word that becomes any word.

    >>> from dpassay.words.mechanisms import SanText
    >>> from dpassay.words.vocabulary import Vocabulary
    >>> sampler = WordSampler(SanText(Vocabulary(("yes", "no"), np.array([[0.0], [2.0]])), 1000))
    >>> sampler.draw(np.array([0, 1, 1]), bits_of(np.random.default_rng(0))).tolist()
    [0, 1, 1]
    """

    def __init__(self, mechanism: WordMechanism, room: int = ROOM) -> None:
        self.mechanism, self.room = mechanism, room
        self._tables: dict[int, tuple[Array, NDArray[np.integer]]] = {}
        self._kind = np.min_scalar_type(len(mechanism.vocabulary))

    def draw(self, places: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        """One output for each word, independent of all others."""
        found = np.empty(len(places), dtype=np.int64)
        order = np.argsort(places, kind="stable")
        distinct, starts = np.unique(places[order], return_index=True)
        ends = [*starts.tolist(), len(places)][1:]
        uniform = uniforms(len(places), bits)[order]
        tables = self._tables_of(distinct.tolist())
        for (sums, outputs), start, end in zip(tables, starts.tolist(), ends, strict=True):
            found[order[start:end]] = outputs[np.searchsorted(sums, uniform[start:end], side="right")]
        return found

    def _tables_of(self, places: list[int]) -> Iterator[tuple[Array, NDArray[np.integer]]]:
        """The tables of some words, in order; they are cached as far as there is room."""
        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(places), threads * AT_ONCE):
                block = places[start : start + threads * AT_ONCE]
                missing = [place for place in block if place not in self._tables]
                parts = [missing[n::threads] for n in range(threads) if missing[n::threads]]
                made = {place: table for part in pool.map(self._made, parts) for place, table in part}
                for place in block:
                    table = self._tables[place] if place in self._tables else made[place]
                    if place in made:
                        self._keep(place, table)
                    yield table

    def _keep(self, place: int, table: tuple[Array, NDArray[np.integer]]) -> None:
        size = sum(part.nbytes for part in table)
        if size <= self.room:
            self._tables[place], self.room = table, self.room - size

    def _made(self, places: list[int]) -> list[tuple[int, tuple[Array, NDArray[np.integer]]]]:
        rows = log_rows(self.mechanism, places)
        return [(place, self._table(row)) for place, row in zip(places, rows, strict=True)]

    def _table(self, logs: Array) -> tuple[Array, NDArray[np.integer]]:
        """Cumulative probabilities, and the outputs in the same order: by powers of two, the least likely first."""
        shifted = logs - logs.max()
        if impossible := logs.min() == -np.inf:
            possible = np.flatnonzero(logs > -np.inf)
            shifted = shifted[possible]
        np.maximum(shifted, FLOOR, out=shifted)
        order = np.argsort((shifted / _LN2).astype(np.int16), kind="stable")  # small integers sort in linear time
        sums = np.cumsum(np.exp(shifted[order]))
        sums /= sums[-1]
        return sums, (possible[order] if impossible else order).astype(self._kind)


@lru_cache(maxsize=1)
def sampler_of(mechanism: WordMechanism) -> WordSampler:
    """The sampler of a mechanism, with its cached tables; only the latest one is kept, as tables are large."""
    return WordSampler(mechanism)
