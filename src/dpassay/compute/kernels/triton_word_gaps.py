"""Distances between words and bounds on their losses on a GPU, by Triton. Only torch and Triton are needed.

Distances are sums of squared differences in doubles, as on a CPU. Bounds are computed in single precision, each block
of 128 × 128 pairs by one program that goes through all outputs and writes three numbers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

DEVICE = "cuda"
UNROLLED = tl.constexpr(8)  # outputs between two tests of the loop
TILE = 64  # words whose distances one program computes
_KINDS = {"l2": 0, "l1": 1, "linf": 2}


@triton.jit
def _distance_tile(left, right, out, rows, columns, dim, kind: tl.constexpr, tile: tl.constexpr):  # type: ignore[no-untyped-def]
    """`left` and `right` have a column for each word. kind 0: squares, 1: l1, 2: linf."""
    i = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile)
    j = tl.program_id(1).to(tl.int64) * tile + tl.arange(0, tile)
    first, second = left + tl.minimum(i, rows - 1), right + tl.minimum(j, columns - 1)
    total = tl.zeros((tile, tile), tl.float64)
    for _ in range(dim):
        difference = tl.load(first)[:, None] - tl.load(second)[None, :]
        if kind == 0:
            total += difference * difference
        elif kind == 1:
            total += tl.abs(difference)
        else:
            total = tl.maximum(total, tl.abs(difference))
        first += rows
        second += columns
    place = out + i[:, None] * columns + j[None, :]
    tl.store(place, total, mask=(i[:, None] < rows) & (j[None, :] < columns))


@triton.jit
def _three_bounds(largest, sums, laws, apart, limits, i, j, words, width):  # type: ignore[no-untyped-def]
    """The largest upper bounds of the losses, ratios and excesses of some pairs, from their gaps.

    Pairs of words with the same number in `laws` are skipped. `limits` are the margin of a loss, the relative error by
    which a distance may be too large, and the claimed ε.
    """
    margin, less, epsilon = tl.load(limits), tl.load(limits + 1), tl.load(limits + 2)
    never = float("-inf")
    high = largest + (tl.load(sums + j)[None, :] - tl.load(sums + i)[:, None]) + margin
    distance = tl.load(apart + i[:, None] * width + j[None, :])
    counted = (i[:, None] < words) & (j[None, :] < words)
    counted = counted & (tl.load(laws + i)[:, None] != tl.load(laws + j)[None, :])
    ratio = tl.where(distance > 0, high / (tl.where(distance > 0, distance, 1.0) * less), float("inf"))
    ratio = tl.where(counted, ratio, never)
    excess = tl.where(counted, high - epsilon * less * distance, never)
    high = tl.where(counted, high, never)
    return tl.max(tl.max(high, 1), 0), tl.max(tl.max(ratio, 1), 0), tl.max(tl.max(excess, 1), 0)


@triton.jit
def _bound_tile(scores, sums, laws, apart, limits, out, words, width, outputs, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """The bounds of a block of pairs. `scores` has a row for each output, `apart` one for each word.

    The columns form four groups, each with its own gaps: a thread then has four pairs for each score that it loads for
    a row, where otherwise it would have one. Rows are `width` long, so that all blocks are complete.
    """
    group: tl.constexpr = block // 4
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    j = tl.program_id(1).to(tl.int64) * block + tl.arange(0, group)
    first, second = scores + i[:, None], scores + j[None, :]
    g0 = tl.full((block, group), float("-inf"), tl.float32)
    g1, g2, g3 = g0, g0, g0
    for _ in range(0, outputs, UNROLLED):
        for _u in tl.static_range(UNROLLED):
            x = tl.load(first)
            g0 = tl.maximum(g0, x - tl.load(second))
            g1 = tl.maximum(g1, x - tl.load(second + group))
            g2 = tl.maximum(g2, x - tl.load(second + 2 * group))
            g3 = tl.maximum(g3, x - tl.load(second + 3 * group))
            first += width
            second += width
    a0, b0, c0 = _three_bounds(g0, sums, laws, apart, limits, i, j, words, width)
    a1, b1, c1 = _three_bounds(g1, sums, laws, apart, limits, i, j + group, words, width)
    a2, b2, c2 = _three_bounds(g2, sums, laws, apart, limits, i, j + 2 * group, words, width)
    a3, b3, c3 = _three_bounds(g3, sums, laws, apart, limits, i, j + 3 * group, words, width)
    place = out + (tl.program_id(0).to(tl.int64) * count + tl.program_id(1)) * 3
    tl.store(place, tl.maximum(tl.maximum(a0, a1), tl.maximum(a2, a3)))
    tl.store(place + 1, tl.maximum(tl.maximum(b0, b1), tl.maximum(b2, b3)))
    tl.store(place + 2, tl.maximum(tl.maximum(c0, c1), tl.maximum(c2, c3)))


def distances(a: torch.Tensor, b: torch.Tensor, metric: str) -> torch.Tensor:
    """As `word_gaps.distances`, of doubles on the GPU."""
    if metric == "angle":
        u, v = (rows / (rows * rows).sum(1, keepdim=True).sqrt() for rows in (a, b))
        return 2 * torch.atan2(distances(u, v, "l2"), distances(u, -v, "l2"))
    out = torch.empty((len(a), len(b)), dtype=torch.float64, device=a.device)
    tile = min(TILE, triton.next_power_of_2(max(len(a), len(b))))
    grid = (triton.cdiv(len(a), tile), triton.cdiv(len(b), tile))
    left, right = a.t().contiguous(), b.t().contiguous()
    _distance_tile[grid](left, right, out, len(a), len(b), a.shape[1], _KINDS[metric], tile)
    return out.sqrt_() if metric == "l2" else out


def block_bounds(
    scores: torch.Tensor,
    sums: torch.Tensor,
    laws: torch.Tensor,
    apart: torch.Tensor,
    limits: torch.Tensor,
    words: int,
    block: int,
) -> torch.Tensor:
    """The largest loss, ratio and excess of each pair of blocks, with the margins in `limits`; all single precision.

    `scores` has a row for each output, as many as a multiple of UNROLLED, and a column for each word; columns are
    repeated to fill whole blocks, as are `sums`, `laws` and both sides of `apart`.
    """
    count = scores.shape[1] // block
    found = torch.empty((count, count, 3), dtype=torch.float32, device=scores.device)
    _bound_tile[(count, count)](
        scores, sums, laws, apart, limits, found, words, scores.shape[1], len(scores), count, block, num_warps=8
    )
    return found.movedim(2, 0)
