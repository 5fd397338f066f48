"""Pairs beyond 2C by numba. The same counts as `pairs`, though most pairs are decided by the first bytes alone.

The first byte of a word determines a cell for its coordinate, of known center and radius. Let X be the vector of
centers, h that of radii, and x any vector of these cells. Then |x - X|₂ ≤ |h|₂ and |x - X|₁ ≤ |h|₁, and the clipped
vectors differ in l1 by at most

    √n |h|₂ / max(1, |X|₂ - |h|₂)   for l2 clipping, or |h|₁ if |X|₂ + |h|₂ ≤ 1, so that nothing is clipped;
    2 |h|₁ / max(1, |X|₁ - |h|₁)    for l1 clipping, or |h|₁ if |X|₁ + |h|₁ ≤ 1.

Indeed, clipping in l2 is the projection onto the unit ball, which increases no distance; and for vectors longer than
r ≥ 1 it is the projection onto the ball of radius r, divided by r. In any norm
x/|x| - X/|X| = (x - X)/|x| + X (1/|x| - 1/|X|), where neither term is longer than |x - X|/|x|; likewise if only one of
them is clipped. Radii are bounded by a constant plus a multiple of the fourth power of the center, which are quickly
summed. Pairs that these bounds leave open, allowing for rounding to single precision, are computed again from whole
words in double precision.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpassay.compute.kernels import random_pairs
from dpassay.compute.kernels.numba_kernels import (
    _U32,
    _U64,
    COUNTED,
    LANES,
    _32,
    _lanes,
    _normal,
    _rounds,
    _run,
    _splat,
    _store,
    kernel,
)
from dpassay.compute.kernels.philox import FIRST, REST, RUNS, Key, check_start

SIDE = RUNS * LANES  # pairs side by side
FOURS = SIDE // 4  # words of their first bytes, for one coordinate
MOST = 1 << 12  # coordinates: with more, rounding in single precision would leave too much open
WIDEST = 1e6  # for C or 1/C: beyond it, fourth powers of normal coordinates overflow or underflow single precision
SMALLEST = 1.2  # ratio of the constant in the bound to the smallest radius
_F32, _UNIT = np.float32, 2.0**-24  # single precision, and the largest relative error of one rounding
_BOUNDS = {"contract", "nnan", "ninf", "nsz"}  # what the compiler may do to bounds; `_exactly` allows nothing


@intrinsic
def _across(context: Any, out: Any, place: Any, j: Any, low: Any, high: Any, kind: Any, k0: Any, k1: Any) -> Any:
    """As `numba_kernels._lanes`, for one block of coordinates j, j + 1, …"""
    signature = types.void(out, place, j, low, high, kind, k0, k1)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        out, place, *scalars = arguments
        j, low, high, kind, *keys = (_splat(builder, scalar) for scalar in scalars)
        state = _rounds(builder, [builder.add(j, COUNTED), low, high, kind], keys)
        _store(context, builder, signature.args[0], out, place, state)
        return context.get_dummy_value()

    return signature, generate


@kernel(fastmath=_BOUNDS)
def _look_up(eights: Any, k: Any, centre: Any, rows: Any, j: Any) -> None:
    """The centers of a coordinate's cells, byte by byte."""
    byte = _U64(0xFF)
    for e in range(SIDE // 8):
        eight, i = eights[k, e], 8 * e
        rows[j, i], rows[j, i + 1] = centre[eight & byte], centre[(eight >> _U64(8)) & byte]
        rows[j, i + 2], rows[j, i + 3] = centre[(eight >> _U64(16)) & byte], centre[(eight >> _U64(24)) & byte]
        rows[j, i + 4], rows[j, i + 5] = centre[(eight >> _U64(32)) & byte], centre[(eight >> _U64(40)) & byte]
        rows[j, i + 6], rows[j, i + 7] = centre[(eight >> _U64(48)) & byte], centre[eight >> _U64(56)]


@kernel(fastmath=_BOUNDS)
def _spread(words: Any, k: Any, rows: Any, j: Any) -> None:
    """Uniform centers without a table, a byte as the first bits of a number from 2 to 4: first bytes, second ones, …"""
    for i in range(FOURS):
        word = words[k, i]
        rows[j, i], rows[j, i + FOURS] = _fraction(word << _U32(15)), _fraction(word << _U32(7))
        rows[j, i + 2 * FOURS], rows[j, i + 3 * FOURS] = _fraction(word >> _U32(1)), _fraction(word >> _U32(9))


@njit(inline="always")
def _fraction(word: Any) -> Any:
    return _U32((word & _U32(0x7F8000)) | _U32(0x40000000)).view(_F32) - _F32(3 - 1 / 256)


@kernel(fastmath=_BOUNDS)
def _add(rows: Any, j: Any, sums: Any) -> None:
    """|X| and X² of four coordinates at a time, for fewer loads and stores of the sums."""
    for i in range(SIDE):
        a, b, c, d = rows[j, i], rows[j + 1, i], rows[j + 2, i], rows[j + 3, i]
        sums[0, i] += (abs(a) + abs(b)) + (abs(c) + abs(d))
        sums[1, i] = sums[1, i] + a * a + b * b + c * c + d * d


@kernel(fastmath=_BOUNDS)
def _add_fourths(rows: Any, j: Any, sums: Any) -> None:
    """X⁴ likewise."""
    for i in range(SIDE):
        a, b, c, d = rows[j, i], rows[j + 1, i], rows[j + 2, i], rows[j + 3, i]
        a, b, c, d = a * a, b * b, c * c, d * d
        sums[2, i] = sums[2, i] + a * a + b * b + c * c + d * d


@kernel(fastmath=_BOUNDS)
def _clip(dim: Any, sums: Any, radii: Any, factors: Any, errors: Any) -> None:
    """The factor by which clipping scales a vector of centers, and how far from the clipped vector that may be."""
    one, two, root = _F32(1), _F32(2), _F32(math.sqrt(dim))
    slack = _F32((4 * dim + 64) * _UNIT)
    less, more = one - slack, one + slack
    for i in range(SIDE):
        size, norm = sums[0, i], np.sqrt(sums[1, i])
        h1, h2 = more * (radii[0] + radii[1] * sums[2, i]), more * np.sqrt(radii[2] + radii[3] * sums[2, i])
        factors[0, i], factors[1, i] = one / max(one, norm), one / max(one, size)
        errors[0, i] += h1 if more * norm + h2 <= one else root * h2 / max(one, less * norm - h2)
        errors[1, i] += h1 if more * size + h1 <= one else two * h1 / max(one, less * size - h1)


@kernel(fastmath=_BOUNDS)
def _distances(first: Any, second: Any, factors: Any, ratios: Any, distances: Any) -> None:
    """|ax - by| as b |(a/b) x - y|, four coordinates at a time."""
    for i in range(SIDE):
        ratios[0, i] = factors[0, 0, i] / factors[1, 0, i]
        ratios[1, i] = factors[0, 1, i] / factors[1, 1, i]
        distances[0, i] = distances[1, i] = 0
    for j in range(0, len(first), 4):
        for i in range(SIDE):
            x0, x1, x2, x3 = first[j, i], first[j + 1, i], first[j + 2, i], first[j + 3, i]
            y0, y1, y2, y3 = second[j, i], second[j + 1, i], second[j + 2, i], second[j + 3, i]
            r, s = ratios[0, i], ratios[1, i]
            distances[0, i] += (abs(r * x0 - y0) + abs(r * x1 - y1)) + (abs(r * x2 - y2) + abs(r * x3 - y3))
            distances[1, i] += (abs(s * x0 - y0) + abs(s * x1 - y1)) + (abs(s * x2 - y2) + abs(s * x3 - y3))
    for i in range(SIDE):
        distances[0, i] *= factors[1, 0, i]
        distances[1, i] *= factors[1, 1, i]


@kernel()
def _exactly(
    k0: Any, k1: Any, run: Any, bytes_: Any, deviation: Any, block: Any, words: Any, tails: Any, v: Any
) -> Any:
    """One pair in double precision, in the steps of `pairs.count_beyond`."""
    dim, place, word = len(bytes_) // 2, _U64(run >> 2), run & 3
    for j in range(0, 2 * dim, LANES):
        _across(block, 0, _U32(j), _U32(place), _U32(place >> _32), _U32(REST), k0, k1)
        for k in range(j, min(2 * dim, j + LANES)):
            words[k] = (np.int64(bytes_[k]) << 24) | np.int64(block[LANES * word + k - j] >> _U32(8))
    if deviation:
        _normal(words, tails, v)
        for j in range(2 * dim):
            v[j] *= deviation
    else:
        for j in range(2 * dim):
            v[j] = 2 * ((words[j] + 0.5) / (1 << 32)) - 1
    a = b = p = q = 0.0
    for j in range(dim):
        a, b = a + v[j] * v[j], b + v[dim + j] * v[dim + j]
        p, q = p + abs(v[j]), q + abs(v[dim + j])
    a, b, p, q = 1 / max(1.0, math.sqrt(a)), 1 / max(1.0, math.sqrt(b)), 1 / max(1.0, p), 1 / max(1.0, q)
    far = control = 0.0
    for j in range(dim):
        far += abs(a * v[j] - b * v[dim + j])
        control += abs(p * v[j] - q * v[dim + j])
    return far > 2, control > 2 * (1 + random_pairs.ROUNDING)


@kernel()
def _count(k0: Any, k1: Any, start: Any, pairs: Any, dim: Any, deviation: Any, centre: Any, radii: Any) -> Any:
    """`deviation` is 0 for uniform coordinates. Also how many pairs were computed again."""
    words = np.empty((2 * dim, FOURS), np.uint32)
    bytes_, eights = words.view(np.uint8), words.view(np.uint64)
    cells = np.zeros((2, -(-dim // 4) * 4, SIDE), _F32)  # what is left of the last four coordinates stays 0
    sums, factors = np.empty((2, 3, SIDE), _F32), np.empty((2, 2, SIDE), _F32)
    distances, ratios, errors = np.empty((2, SIDE), _F32), np.empty((2, SIDE), _F32), np.empty((2, SIDE), _F32)
    block, wholes = np.empty(4 * LANES, np.uint32), np.empty(2 * dim, np.int64)
    tails, v = np.empty(2 * dim, np.int64), np.empty(2 * dim)
    slack = 2 * (4 * dim + 64) * _UNIT
    beyond = control = again = 0
    for first in range(start, start + pairs, SIDE):
        place = _U64(first // RUNS)
        for i in range(SIDE):
            errors[0, i], errors[1, i] = slack * math.sqrt(dim), slack
            for power in range(3):
                sums[0, power, i] = sums[1, power, i] = 0
        for side in range(2):
            rows, part = cells[side], sums[side]
            for j in range(0, dim, 4):
                for c in range(j, min(dim, j + 4)):
                    k = side * dim + c
                    _lanes(words, FOURS * k, _U32(k), _U32(place), _U32(place >> _32), _U32(FIRST), k0, k1)
                    if deviation:
                        _look_up(eights, k, centre, rows, c)
                    else:
                        _spread(words, k, rows, c)
                _add(rows, j, part)
                if deviation:
                    _add_fourths(rows, j, part)
            _clip(dim, part, radii, factors[side], errors)
        _distances(cells[0], cells[1], factors, ratios, distances)
        for i in range(SIDE):
            byte = i if deviation else 4 * (i % FOURS) + i // FOURS
            run = _run(first, byte)
            if run >= start + pairs:
                continue
            if abs(distances[0, i] - 2) > errors[0, i] and distances[1, i] + errors[1, i] <= 2:
                beyond += distances[0, i] > 2
            else:
                found = _exactly(k0, k1, run, bytes_[:, byte], deviation, block, wholes, tails, v)
                beyond, control, again = beyond + found[0], control + found[1], again + 1
    return beyond, control, again


def count_beyond(key: Key, start: int, pairs: int, dim: int, shape: str, clip: float) -> tuple[int, int]:
    """As `pairs.count_beyond`."""
    check_start(start)
    if dim > MOST or not 1 / WIDEST <= clip <= WIDEST:
        return random_pairs.count_beyond(key, start, pairs, dim, shape, clip)
    beyond, control, _ = counts(key, start, pairs, dim, shape, clip)
    return beyond, control


def counts(key: Key, start: int, pairs: int, dim: int, shape: str, clip: float) -> tuple[int, int, int]:
    """Both counts, and how many pairs the first bytes did not decide."""
    deviation = 0.0 if shape == random_pairs.UNIFORM else random_pairs.deviation(clip)
    centre, radii = _cells(shape, clip)
    radii_of_all = (radii * [dim, 1, dim, 1]).astype(_F32)
    beyond, control, again = _count(_U32(key[0]), _U32(key[1]), start, pairs, dim, deviation, centre, radii_of_all)
    return int(beyond), int(control), int(again)


def _cells(shape: str, clip: float) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The center X of a coordinate's cell for each first byte; a, b, c, d of the bounds h ≤ a + bX⁴, h² ≤ c + dX⁴."""
    low = np.arange(256, dtype=np.uint32) << np.uint32(24)
    ends = [random_pairs.coordinates(low + np.uint32(step), shape, clip) for step in (0, (1 << 24) - 1)]
    centre = ((ends[0] + ends[1]) / 2).astype(_F32)
    h = np.maximum(ends[1] - centre, centre - ends[0])
    a = min(SMALLEST * h.min(), h.max())
    fourth = centre.astype(float) ** 4
    b, d = (max(0.0, float(np.max(excess / fourth))) for excess in (h - a, h * h - a * a))
    return centre, np.array([a, b, a * a, d])
