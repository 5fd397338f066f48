"""The random numbers of a run: `stream(key)` is PCG64(list(key)), for many keys at a time.

Hashing a key takes numpy longer than many runs take. The same hash is computed here for consecutive keys at once, by
the algorithm that numpy's SeedSequence documents. Needs only numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy import arange, full, stack

AT_ONCE, LONGEST = 256, 4  # keys; words of a key, each below 2³²
_WORD, _HALF = 2**32, 16
_FIRST, _TIMES = 0x43B0D7E5, 0x931E8875  # what numpy calls INIT_A, MULT_A
_LAST, _AGAIN = 0x8B51F9DD, 0x58F38DED  # INIT_B, MULT_B
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)  # MIX_MULT_L, MIX_MULT_R
_PCG64 = np.random.PCG64


class StatedSeed(np.random.bit_generator.ISpawnableSeedSequence):
    """The seed of a generator that begins with these bits; otherwise the given seed of numpy's."""

    def __init__(self, words: Any, own: Callable[[], np.random.SeedSequence]) -> None:
        self.words, self._make = words, own
        self._made: Any = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self.words if n_words == 4 and dtype is np.uint64 else self._own.generate_state(n_words, dtype)

    def spawn(self, n_children: int) -> Any:
        return self._own.spawn(n_children)

    @property
    def _own(self) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._own, name)


def stream(key: Sequence[int]) -> np.random.PCG64:
    """The generator's bits that a key determines.

    >>> bool((stream([0, 1, 7]).random_raw(3) == np.random.PCG64([0, 1, 7]).random_raw(3)).all())
    True
    """
    if not key:
        return _PCG64([])
    block, at = divmod(key[-1], AT_ONCE)
    words = hashed(tuple(key[:-1]), block)
    if words is None:
        return _PCG64(list(key))
    return _PCG64(StatedSeed(words[at], partial(np.random.SeedSequence, list(key))))


@lru_cache(maxsize=16)
def hashed(before: tuple[int, ...], block: int) -> Any:
    """The first words of numpy's seeds for AT_ONCE keys that differ in their last number; None for long keys."""
    if len(before) >= LONGEST or not all(0 <= one < _WORD for one in (*before, (block + 1) * AT_ONCE - 1)):
        return None
    last = arange(block * AT_ONCE, (block + 1) * AT_ONCE).astype(np.uint32)
    key = [*(full(AT_ONCE, one, np.uint32) for one in before), last]
    key += [full(AT_ONCE, 0, np.uint32)] * (LONGEST - len(key))
    mixing = _Hash(_FIRST, _TIMES)
    pool = [mixing(one) for one in key]
    for at in range(LONGEST):
        for to in range(LONGEST):
            if at != to:
                pool[to] = _shifted(_LEFT * pool[to] - _RIGHT * mixing(pool[at]))
    giving = _Hash(_LAST, _AGAIN)
    halves = [giving(pool[k % LONGEST]).astype(np.uint64) for k in range(2 * LONGEST)]
    return stack([low | (high << np.uint64(32)) for low, high in zip(halves[::2], halves[1::2], strict=True)], axis=1)


class _Hash:
    """A hash of words whose constant changes with each use."""

    def __init__(self, first: int, times: int) -> None:
        self.constant, self.times = first, times

    def __call__(self, words: Any) -> Any:
        words = words ^ np.uint32(self.constant)
        self.constant = self.constant * self.times % _WORD
        return _shifted(words * np.uint32(self.constant))


def _shifted(words: Any) -> Any:
    return words ^ (words >> np.uint32(_HALF))
