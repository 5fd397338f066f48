"""64-bit keys of rows of numbers and of texts, the same in every process: equal ones have equal keys."""

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ODD = np.uint64(0x9E3779B97F4A7C15)
TOGETHER = 512  # coordinates that are mixed one by one, and then so many together


def row_keys(matrix: NDArray[Any]) -> NDArray[np.uint64]:
    """Mix the bit patterns of each row; −0.0 and 0.0 differ, as do NaN and numbers."""
    bits = matrix.view(np.uint64)
    keys = np.full(len(bits), np.uint64(bits.shape[1]), dtype=np.uint64)
    for j in range(min(bits.shape[1], TOGETHER)):
        keys ^= bits[:, j]
        keys *= _ODD
        keys ^= keys >> np.uint64(29)
    for start in range(TOGETHER, bits.shape[1], TOGETHER):  # many together, each with its own factor
        some = bits[:, start : start + TOGETHER]
        factors = np.arange(2 * start + 1, 2 * (start + some.shape[1]), 2, dtype=np.uint64) * _ODD
        keys ^= ((some ^ (some >> np.uint64(29))) * factors).sum(axis=1, dtype=np.uint64)
        keys *= _ODD
        keys ^= keys >> np.uint64(29)
    return keys


def distinct(values: Any) -> NDArray[Any]:
    """The distinct values in order, as `np.unique` gives them, which by itself would import `numpy.ma` and hash them.

    >>> distinct(np.array([2.0, 1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    return np.unique(values, return_index=True)[0]


@lru_cache(maxsize=1 << 12)
def text_key(text: str) -> int:
    """The key of a text; many texts are categories, of which there are few."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
