"""Distances between words and bounds on their losses on a GPU, by Triton. Only torch and Triton are needed.

Distances are sums of squared differences in doubles, as on a CPU. Bounds are made in single precision, each block of
128 × 128 pairs by one program that goes through all outputs and writes three numbers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

DEVICE = "cuda"
UNROLLED = 8  # outputs between two tests of the loop
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
def _bound_tile(scores, sums, apart, limits, out, words, outputs, count, block: tl.constexpr, unrolled: tl.constexpr):  # type: ignore[no-untyped-def]
    """The largest upper bounds of the losses, ratios and excesses of a block of pairs.

    `scores` has a row for each output, `apart` a row for each word; `limits` are the margin of a loss, what a distance
    may be smaller by, relatively, and the claimed ε.
    """
    margin, less, epsilon = tl.load(limits), tl.load(limits + 1), tl.load(limits + 2)
    i = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    j = tl.program_id(1).to(tl.int64) * block + tl.arange(0, block)
    inside_i, inside_j = tl.minimum(i, words - 1), tl.minimum(j, words - 1)
    first, second = scores + inside_i, scores + inside_j
    largest = tl.full((block, block), float("-inf"), tl.float32)
    for _ in range(0, outputs, unrolled):
        for _u in tl.static_range(unrolled):
            largest = tl.maximum(largest, tl.load(first)[:, None] - tl.load(second)[None, :])
            first += words
            second += words
    high = largest + (tl.load(sums + inside_j)[None, :] - tl.load(sums + inside_i)[:, None]) + margin
    distance = tl.load(apart + inside_i[:, None] * words + inside_j[None, :])
    counted = (i[:, None] < words) & (j[None, :] < words) & (i[:, None] != j[None, :])
    never = float("-inf")
    apart_too = counted & (distance > 0)
    ratio = tl.where(apart_too, high / (tl.where(distance > 0, distance, 1.0) * less), never)
    excess = tl.where(apart_too, high - epsilon * less * distance, never)
    high = tl.where(counted, high, never)
    place = out + tl.program_id(0).to(tl.int64) * count + tl.program_id(1)
    step = count.to(tl.int64) * count
    tl.store(place, tl.max(tl.max(high, axis=1), axis=0))
    tl.store(place + step, tl.max(tl.max(ratio, axis=1), axis=0))
    tl.store(place + 2 * step, tl.max(tl.max(excess, axis=1), axis=0))


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
    scores: torch.Tensor, sums: torch.Tensor, apart: torch.Tensor, limits: torch.Tensor, block: int
) -> torch.Tensor:
    """The largest loss, ratio and excess of each pair of blocks, with the margins in `limits`; all single precision.

    `scores` has a row for each output, as many as a multiple of UNROLLED, and a column for each word.
    """
    words = scores.shape[1]
    count = triton.cdiv(words, block)
    found = torch.empty((3, count, count), dtype=torch.float32, device=scores.device)
    _bound_tile[(count, count)](
        scores, sums, apart, limits, found, words, len(scores), count, block, UNROLLED, num_warps=8
    )
    return found
