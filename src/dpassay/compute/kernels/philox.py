"""Philox4x32-10: random numbers by position, so that any division of the work gives the same ones.

A stream is identified by a key. In it every run has a 32-bit word for each of its coordinates: its first byte comes
from one block of the generator, which serves 16 runs, and its other three from another, which serves four. Kernels that
can decide by the first byte never compute the second block.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint32]
Key: TypeAlias = tuple[int, int]

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
FIRST, REST = 0, 1  # the last word of a counter: blocks of first bytes, and of the remaining bytes
RUNS = 16  # that share a block of first bytes
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def key(seed: int, *place: int) -> Key:
    """The key of a stream: a different seed or position gives different random numbers.

    >>> key(1, 2) == key(1, 2), key(1, 2) == key(1, 3)
    (True, False)
    """
    first, second = np.random.SeedSequence(seed, spawn_key=place).generate_state(2)
    return int(first), int(second)


def block(counter: tuple[Any, Any, Any, Any], key: Key) -> tuple[Words, Words, Words, Words]:
    """The four words of each counter; a counter's words may be arrays of the same shape.

    >>> [hex(int(word)) for word in block((0, 0, 0, 0), (0, 0))]  # the authors' known answer
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    a, b, c, d = (np.asarray(word, dtype=np.uint64) for word in counter)
    for turn in range(ROUNDS):
        first, second = (np.uint64((k + turn * step) & 0xFFFFFFFF) for k, step in zip(key, STEPS, strict=True))
        x, y = np.uint64(MULTIPLIERS[0]) * a, np.uint64(MULTIPLIERS[1]) * c
        a, b, c, d = (y >> _HALF) ^ b ^ first, y & _LOW, (x >> _HALF) ^ d ^ second, x & _LOW
    return a.astype(np.uint32), b.astype(np.uint32), c.astype(np.uint32), d.astype(np.uint32)


def check_start(start: int) -> None:
    """Streams can be entered only at every 16th run."""
    if start % RUNS:
        raise ValueError(f"streams are entered at every 16th run, not at {start}")


def words(key: Key, start: int, runs: int, coordinates: range) -> Words:
    """The words of some runs, one row per run, for some coordinates. The first run must be a multiple of 16.

    >>> whole = words((1, 2), 0, 100, range(3))
    >>> whole.shape, bool((words((1, 2), 32, 68, range(3)) == whole[32:]).all())
    ((100, 3), True)
    """
    check_start(start)
    j = np.arange(coordinates.start, coordinates.stop, dtype=np.uint64)[:, None]
    high = _blocks(key, start // RUNS, -(-runs // RUNS), j, FIRST)  # [coordinate, block, word]
    low = _blocks(key, start // 4, -(-runs // 4), j, REST)
    shifts = np.arange(0, 32, 8, dtype=np.uint32)
    first = ((high[..., None] >> shifts) & np.uint32(0xFF)).reshape(len(j), -1)[:, :runs]
    rest = low.reshape(len(j), -1)[:, :runs] >> np.uint32(8)
    return np.ascontiguousarray(((first << np.uint32(24)) | rest).T)


def _blocks(key: Key, start: int, number: int, j: NDArray[np.uint64], kind: int) -> Words:
    place = np.arange(start, start + number, dtype=np.uint64)[None, :]
    return np.stack(block((j, place & _LOW, place >> _HALF, kind), key), axis=-1)
