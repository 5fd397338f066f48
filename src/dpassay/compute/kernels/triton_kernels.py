"""Counts by Triton on a GPU: the same counts as `numpy_kernels`. Only numpy, torch and Triton are needed.

Each thread handles 16 runs, those of one block of first bytes, and goes through their coordinates; only the counts are
written. The rest of each word is always computed: threads that wait for one another gain nothing from laziness.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from dpassay.compute.kernels.draws import ALL, GAUSSIAN, Span
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable
from dpassay.compute.kernels.normal_quantile import BEYOND, CENTRE, NEAR
from dpassay.compute.kernels.normal_quantile import FAR as FURTHER
from dpassay.compute.kernels.normal_quantile import SPLIT as EDGE
from dpassay.compute.kernels.numpy_kernels import FAR
from dpassay.compute.kernels.philox import RUNS, Key, check_start

DEVICE = "cuda"
THREADS = 128
_RATIOS = np.array([CENTRE, NEAR, BEYOND])


@triton.jit
def _place(start, threads: tl.constexpr):  # type: ignore[no-untyped-def]
    """The number of each thread's block of first bytes, and its first run."""
    block = start // 16 + tl.program_id(0).to(tl.int64) * threads + tl.arange(0, threads)
    return block, block * 16


@triton.jit
def _words(key, j, block, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    low, high = block.to(tl.uint32), (block >> 32).to(tl.uint32)
    zero = low * 0
    return tl.philox(key, (block * 0 + j).to(tl.uint32), low, high, zero + kind)


@triton.jit
def _byte(word, i: tl.constexpr):  # type: ignore[no-untyped-def]
    return ((word >> (8 * i)) & 0xFF) << 24


@triton.jit
def _vote(word, low, width):  # type: ignore[no-untyped-def]
    return ((word - low) < width).to(tl.int32)


@triton.jit
def _votes_of_four(key, j, block, a, low, width, v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    r0, r1, r2, r3 = _words(key, j, block, 1)
    v0 += _vote(_byte(a, 0) | (r0 >> 8), low, width)
    v1 += _vote(_byte(a, 1) | (r1 >> 8), low, width)
    v2 += _vote(_byte(a, 2) | (r2 >> 8), low, width)
    v3 += _vote(_byte(a, 3) | (r3 >> 8), low, width)
    return v0, v1, v2, v3


@triton.jit
def _majority(votes, dim, run, end):  # type: ignore[no-untyped-def]
    return ((2 * votes > dim) & (run < end)).to(tl.int32)


@triton.jit
def _majorities(v0, v1, v2, v3, dim, run, end):  # type: ignore[no-untyped-def]
    first = _majority(v0, dim, run, end) + _majority(v1, dim, run + 1, end)
    return first + _majority(v2, dim, run + 2, end) + _majority(v3, dim, run + 3, end)


@triton.jit
def _votes(asked, found, threads: tl.constexpr):  # type: ignore[no-untyped-def]
    key, start, end, dim = tl.load(asked), tl.load(asked + 1), tl.load(asked + 2), tl.load(asked + 3)
    low, width = tl.load(asked + 4).to(tl.uint32), tl.load(asked + 5).to(tl.uint32)
    block, run = _place(start, threads)
    none = tl.zeros((threads,), tl.int32)
    v0, v1, v2, v3, v4, v5, v6, v7 = none, none, none, none, none, none, none, none
    v8, v9, v10, v11, v12, v13, v14, v15 = none, none, none, none, none, none, none, none
    for j in range(dim):
        a0, a1, a2, a3 = _words(key, j, block, 0)
        v0, v1, v2, v3 = _votes_of_four(key, j, 4 * block, a0, low, width, v0, v1, v2, v3)
        v4, v5, v6, v7 = _votes_of_four(key, j, 4 * block + 1, a1, low, width, v4, v5, v6, v7)
        v8, v9, v10, v11 = _votes_of_four(key, j, 4 * block + 2, a2, low, width, v8, v9, v10, v11)
        v12, v13, v14, v15 = _votes_of_four(key, j, 4 * block + 3, a3, low, width, v12, v13, v14, v15)
    ones = _majorities(v0, v1, v2, v3, dim, run, end) + _majorities(v4, v5, v6, v7, dim, run + 4, end)
    ones += _majorities(v8, v9, v10, v11, dim, run + 8, end) + _majorities(v12, v13, v14, v15, dim, run + 12, end)
    tl.atomic_add(found, tl.sum(ones).to(tl.int64))


def count_votes(key: Key, start: int, runs: int, dim: int, ones: Span) -> int:
    """As `numpy_kernels.count_votes`."""
    return int(votes_under_way(key, start, runs, dim, ones).item())


def votes_under_way(key: Key, start: int, runs: int, dim: int, ones: Span) -> torch.Tensor:
    """The same without waiting for it: a number that the GPU has yet to write."""
    check_start(start)
    if not runs or not ones.width or ones.width == ALL:
        return torch.tensor(runs if ones.width else 0)
    asked = _sent([_signed(key), start, start + runs, dim, ones.low, ones.width])
    found = torch.zeros((), dtype=torch.int64, device=DEVICE)
    _votes[_programs(runs)](asked, found, THREADS)
    return found


@triton.jit
def _ratio(x, ratios, which: tl.constexpr):  # type: ignore[no-untyped-def]
    above, below = tl.load(ratios + 16 * which) + x * 0.0, tl.load(ratios + 16 * which + 8) + x * 0.0
    for i in tl.static_range(1, 8):
        above = above * x + tl.load(ratios + 16 * which + i)
        below = below * x + tl.load(ratios + 16 * which + 8 + i)
    return above / below


@triton.jit
def _noise(word, normal: tl.constexpr, ratios, split, further):  # type: ignore[no-untyped-def]
    w = word.to(tl.float64)
    if normal:
        u = (w + 0.5) * (1.0 / 4294967296.0)
        q = u - 0.5
        tail = tl.sqrt(-tl.log(tl.where(q < 0, u, 1.0 - u)))
        size = tl.where(tail > further, _ratio(tail - further, ratios, 2), _ratio(tail - 1.6, ratios, 1))
        middle = q * _ratio(split * split - q * q, ratios, 0)
        return tl.where(tl.abs(q) <= split, middle, tl.where(q < 0, -size, size))
    upper = word >= 2147483648
    size = tl.log(tl.where(upper, 4294967296.0 - w - 0.5, w + 0.5) * (1.0 / 2147483648.0))
    return tl.where(upper, -size, size)


@triton.jit
def _score(total, word, row, normal: tl.constexpr, ratios, split, further):  # type: ignore[no-untyped-def]
    """`row`: the three cuts of a coordinate, its four values and its slope."""
    w = word.to(tl.int64).to(tl.float64)
    second, third, fourth = w >= tl.load(row), w >= tl.load(row + 1), w >= tl.load(row + 2)
    slope = tl.load(row + 7)
    value = tl.where(second, tl.load(row + 4), tl.load(row + 3))
    value = tl.where(third, tl.load(row + 5), value)
    value = tl.where(fourth, tl.load(row + 6), value)
    if slope != 0.0:
        inner = second & (third == 0)
        value += tl.where(inner, slope * _noise(word, normal, ratios, split, further), 0.0)
    return total + value


@triton.jit
def _scores_of_four(key, j, block, a, row, normal: tl.constexpr, ratios, split, further, s0, s1, s2, s3):  # type: ignore[no-untyped-def]
    r0, r1, r2, r3 = _words(key, j, block, 1)
    s0 = _score(s0, _byte(a, 0) | (r0 >> 8), row, normal, ratios, split, further)
    s1 = _score(s1, _byte(a, 1) | (r1 >> 8), row, normal, ratios, split, further)
    s2 = _score(s2, _byte(a, 2) | (r2 >> 8), row, normal, ratios, split, further)
    s3 = _score(s3, _byte(a, 3) | (r3 >> 8), row, normal, ratios, split, further)
    return s0, s1, s2, s3


@triton.jit
def _guess(score, run, end, found, low, high, resolution, far):  # type: ignore[no-untyped-def]
    steps = score / resolution
    # Adding and subtracting 1.5 · 2^52 rounds to an integer, half to even, as numpy's rint does.
    whole = (steps + 6755399441055744.0) - 6755399441055744.0
    coarse = tl.where(tl.abs(steps) < 2251799813685248.0, whole, steps)
    coarse = tl.where(coarse > far, far, tl.where(coarse < -far, -far, coarse))
    tl.atomic_add(found, tl.sum(((coarse <= low) & (run < end)).to(tl.int64)))
    tl.atomic_add(found + 1, tl.sum(((coarse >= high) & (run < end)).to(tl.int64)))


@triton.jit
def _guesses_of_four(s0, s1, s2, s3, run, end, found, low, high, resolution, far):  # type: ignore[no-untyped-def]
    _guess(s0, run, end, found, low, high, resolution, far)
    _guess(s1, run + 1, end, found, low, high, resolution, far)
    _guess(s2, run + 2, end, found, low, high, resolution, far)
    _guess(s3, run + 3, end, found, low, high, resolution, far)


@triton.jit
def _guesses(asked, limits, rows, ratios, found, normal: tl.constexpr, threads: tl.constexpr):  # type: ignore[no-untyped-def]
    key, start, end, dim = tl.load(asked), tl.load(asked + 1), tl.load(asked + 2), tl.load(asked + 3)
    low, high, resolution, far = tl.load(limits), tl.load(limits + 1), tl.load(limits + 2), tl.load(limits + 3)
    split, further = tl.load(limits + 4), tl.load(limits + 5)
    block, run = _place(start, threads)
    none = tl.zeros((threads,), tl.float64)
    s0, s1, s2, s3, s4, s5, s6, s7 = none, none, none, none, none, none, none, none
    s8, s9, s10, s11, s12, s13, s14, s15 = none, none, none, none, none, none, none, none
    for j in range(dim):
        a0, a1, a2, a3 = _words(key, j, block, 0)
        at, b = rows + 8 * j, 4 * block
        s0, s1, s2, s3 = _scores_of_four(key, j, b, a0, at, normal, ratios, split, further, s0, s1, s2, s3)
        s4, s5, s6, s7 = _scores_of_four(key, j, b + 1, a1, at, normal, ratios, split, further, s4, s5, s6, s7)
        s8, s9, s10, s11 = _scores_of_four(key, j, b + 2, a2, at, normal, ratios, split, further, s8, s9, s10, s11)
        s12, s13, s14, s15 = _scores_of_four(key, j, b + 3, a3, at, normal, ratios, split, further, s12, s13, s14, s15)
    _guesses_of_four(s0, s1, s2, s3, run, end, found, low, high, resolution, far)
    _guesses_of_four(s4, s5, s6, s7, run + 4, end, found, low, high, resolution, far)
    _guesses_of_four(s8, s9, s10, s11, run + 8, end, found, low, high, resolution, far)
    _guesses_of_four(s12, s13, s14, s15, run + 12, end, found, low, high, resolution, far)


def count_guesses(
    key: Key, start: int, runs: int, table: LikelihoodRatioTable, low: float, high: float, resolution: float
) -> tuple[int, int]:
    """As `numpy_kernels.count_guesses`; products and sums are not fused, so that they round the same way."""
    check_start(start)
    if not runs:
        return 0, 0
    asked = _sent([_signed(key), start, start + runs, table.dim])
    limits = _sent([low, high, resolution, FAR, EDGE, FURTHER])
    rows = _sent(np.column_stack([table.cuts, table.values, table.slope]))
    found = torch.zeros(2, dtype=torch.int64, device=DEVICE)
    normal = table.kind == GAUSSIAN
    _guesses[_programs(runs)](asked, limits, rows, _sent(_RATIOS), found, normal, THREADS, enable_fp_fusion=False)
    below, above = found.tolist()
    return int(below), int(above)


def _programs(runs: int) -> tuple[int]:
    return (-(-runs // (RUNS * THREADS)),)


def _signed(key: Key) -> int:
    """Both words of a key as one signed 64-bit number."""
    both = key[0] | key[1] << 32
    return both - (1 << 64) if both >> 63 else both


def _sent(values: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(DEVICE, non_blocking=True)


def describe() -> str:
    """A description of what computes the counts."""
    return f"{torch.cuda.get_device_name()}, Triton {triton.__version__}"
