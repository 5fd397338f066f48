"""Counts by numba: words are drawn, used and discarded in the first-level cache. The same counts as `numpy_kernels`.

The generator's rounds are written as vector instructions by hand. LLVM's loop vectorizer refuses them in plain numba
(its cost model takes the 32-bit products for 64-bit ones), and scalar code takes twice as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from dpassay.compute.kernels.draws import ALL, GAUSSIAN, Span
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable
from dpassay.compute.kernels.normal_quantile import BEYOND, CENTRE, NEAR, SPLIT
from dpassay.compute.kernels.normal_quantile import FAR as FURTHER
from dpassay.compute.kernels.numpy_kernels import FAR
from dpassay.compute.kernels.philox import FIRST, MULTIPLIERS, REST, ROUNDS, RUNS, STEPS, Key, check_start

LANES = 8  # blocks computed side by side; two NEON or one AVX2 register for each word
BLOCKS = 64  # held at a time: 1,024 runs
WIDEST = 1 << 13  # coordinates for which tables by first bytes are kept: 16 MB
LAZY = 24  # if at most this many of the 256 first bytes are undecided, the rest of a word is made only when needed

_INT = ir.IntType(32)
_WORDS, _LONG = ir.VectorType(_INT, LANES), ir.VectorType(ir.IntType(64), LANES)
COUNTED = ir.Constant(_WORDS, list(range(LANES)))  # 0, 1, 2, …
_HALVES = ir.VectorType(_INT, 2 * LANES)
_U32, _U64 = np.uint32, np.uint64
_M0, _M1, _W0, _W1 = (_U32(value) for value in (*MULTIPLIERS, *STEPS))
_32, _EACH, _TOPS = _U64(32), _U64(0x0101010101010101), _U64(0x8080808080808080)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that lets other threads run, and cache the result if the cache can be written."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(nogil=True, cache=True, error_model="numpy", **options)(function)
        except RuntimeError:  # numba's cache cannot be written: compile again each time
            return njit(nogil=True, error_model="numpy", **options)(function)

    return compiled


@intrinsic
def _lanes(context: Any, out: Any, place: Any, j: Any, low: Any, high: Any, kind: Any, k0: Any, k1: Any) -> Any:
    """Blocks low, low + 1, … of coordinate j, written to out[place:]: all first words, all second words, and so on."""
    signature = types.void(out, place, j, low, high, kind, k0, k1)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        out, place, *scalars = arguments
        j, low, high, kind, *keys = (_splat(builder, scalar) for scalar in scalars)
        place_low = builder.add(low, COUNTED)
        carry = builder.zext(builder.icmp_unsigned("<", place_low, low), _WORDS)
        state = _rounds(builder, [j, place_low, builder.add(high, carry), kind], keys)
        _store(context, builder, signature.args[0], out, place, state)
        return context.get_dummy_value()

    return signature, generate


def _rounds(builder: ir.IRBuilder, state: list[Any], keys: list[Any]) -> list[Any]:
    """All rounds of the generator on four words, each a vector with a lane for each counter."""
    for turn in range(ROUNDS):
        x, y = (_product(builder, state[i], m) for i, m in zip((0, 2), MULTIPLIERS, strict=True))
        first, second = (builder.add(k, _constant(turn * step)) for k, step in zip(keys, STEPS, strict=True))
        upper, lower = builder.xor(y[0], state[1]), builder.xor(x[0], state[3])
        state = [builder.xor(upper, first), y[1], builder.xor(lower, second), x[1]]
    return state


def _store(context: Any, builder: ir.IRBuilder, kind: Any, out: Any, place: Any, state: list[Any]) -> None:
    """Write four vectors to an array, one after the other."""
    data = context.make_array(kind)(context, builder, out).data
    for i, word in enumerate(state):
        where = builder.gep(data, [builder.add(place, ir.Constant(place.type, i * LANES))])
        builder.store(word, builder.bitcast(where, _WORDS.as_pointer())).align = 4


def _constant(value: int) -> ir.Constant:
    return ir.Constant(_WORDS, [value & 0xFFFFFFFF] * LANES)


def _splat(builder: ir.IRBuilder, scalar: Any) -> Any:
    empty = ir.Constant(_WORDS, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(empty, scalar, ir.Constant(_INT, 0)), empty, _constant(0))


def _product(builder: ir.IRBuilder, word: Any, factor: int) -> tuple[Any, Any]:
    """The upper and the lower half of a 64-bit product."""
    product = builder.mul(builder.zext(word, _LONG), ir.Constant(_LONG, [factor] * LANES))
    halves = builder.bitcast(product, _HALVES)
    lower, upper = (ir.Constant(_WORDS, list(range(i, 2 * LANES, 2))) for i in (0, 1))
    empty = ir.Constant(_HALVES, ir.Undefined)
    return builder.shuffle_vector(halves, empty, upper), builder.shuffle_vector(halves, empty, lower)


@njit(inline="always")
def _rest(k0: Any, k1: Any, j: Any, run: Any) -> Any:
    """The last three bytes of one run's word."""
    place = _U64(run) >> _U64(2)
    a, b, c, d = _U32(j), _U32(place), _U32(place >> _32), _U32(REST)
    for _ in range(ROUNDS):
        x, y = _U64(_M0) * _U64(a), _U64(_M1) * _U64(c)
        a, b, c, d = _U32(y >> _32) ^ b ^ k0, _U32(y), _U32(x >> _32) ^ d ^ k1, _U32(x)
        k0, k1 = _U32(k0 + _W0), _U32(k1 + _W1)
    word = run & 3
    return _U32(a if word == 0 else b if word == 1 else c if word == 2 else d) >> _U32(8)


@njit(inline="always")
def _run(start: Any, place: Any) -> Any:
    """Which run a byte of the buffer belongs to: bytes of words of lanes of groups of lanes."""
    group, within = divmod(place, RUNS * LANES)
    word, lane = within // (4 * LANES), within % (4 * LANES) // 4
    return start + RUNS * (group * LANES + lane) + 4 * word + place % 4


@njit(inline="always")
def _first_bytes(out: Any, k0: Any, k1: Any, start: Any, j: Any) -> None:
    """The first bytes of the words of coordinate j, for as many runs as the buffer holds."""
    block = start // RUNS
    for lane in range(0, BLOCKS, LANES):
        place = _U64(block + lane)
        _lanes(out, 4 * lane, _U32(j), _U32(place), _U32(place >> _32), _U32(FIRST), k0, k1)


@njit(inline="always")
def _zeros(eight: Any) -> Any:
    """Nonzero if one of eight bytes is 0."""
    return (eight - _EACH) & ~eight & _TOPS


@kernel()
def _votes(k0: Any, k1: Any, start: Any, runs: Any, dim: Any, low: Any, end: Any, sure: Any, inside: Any) -> Any:
    """The `inside` first bytes from `sure` on already decide that the word is a one. The bytes at both ends do not."""
    words = np.empty(4 * BLOCKS, np.uint32)
    bytes_, eights = words.view(np.uint8), words.view(np.uint64)
    votes, total = np.empty(RUNS * BLOCKS, np.uint8), np.empty(RUNS * BLOCKS, np.int64)
    sure, inside = np.uint8(sure), np.uint8(inside)
    one, other = np.uint8(low >> 24), np.uint8(end >> 24)
    # An end that falls between two bytes leaves none undecided; then the other end is checked twice, or neither.
    if low & 0xFFFFFF == 0:
        one = other
    if end & 0xFFFFFF == 0:
        other = one
    eight_ones, eight_others = _U64(one) * _EACH, _U64(other) * _EACH
    unclear = (low & 0xFFFFFF != 0) or (end & 0xFFFFFF != 0)
    found = 0
    for first in range(start, start + runs, RUNS * BLOCKS):
        total[:] = 0
        for begin in range(0, dim, 255):
            votes[:] = 0
            for j in range(begin, min(dim, begin + 255)):
                _first_bytes(words, k0, k1, first, j)
                for i in range(RUNS * BLOCKS):
                    votes[i] += np.uint8(bytes_[i] - sure) < inside
                for e in range(len(eights) if unclear else 0):
                    if _zeros(eights[e] ^ eight_ones) | _zeros(eights[e] ^ eight_others):
                        for i in range(8 * e, 8 * e + 8):
                            if bytes_[i] == one or bytes_[i] == other:
                                word = (np.int64(bytes_[i]) << 24) | np.int64(_rest(k0, k1, j, _run(first, i)))
                                votes[i] += low <= word < end
            for i in range(RUNS * BLOCKS):
                total[i] += votes[i]
        last = first + RUNS * BLOCKS > start + runs
        for i in range(RUNS * BLOCKS):
            if not last or _run(first, i) < start + runs:
                found += 2 * total[i] > dim
    return found


def count_votes(key: Key, start: int, runs: int, dim: int, ones: Span) -> int:
    """As `numpy_kernels.count_votes`."""
    check_start(start)
    if not runs or not ones.width:
        return 0
    if ones.width == ALL:
        return runs
    low, end = ones.low, ones.low + ones.width
    sure = -(-low >> 24)
    inside = max(0, (end >> 24) - sure)
    return int(_votes(_U32(key[0]), _U32(key[1]), start, runs, dim, low, end, sure, inside))


@njit(inline="always")
def _ratio(x: Any, a: Any, b: Any) -> Any:
    above = ((((((a[0] * x + a[1]) * x + a[2]) * x + a[3]) * x + a[4]) * x + a[5]) * x + a[6]) * x + a[7]
    below = ((((((b[0] * x + b[1]) * x + b[2]) * x + b[3]) * x + b[4]) * x + b[5]) * x + b[6]) * x + b[7]
    return above / below


@njit(inline="always")
def _laplace(word: Any) -> Any:
    """Laplace noise of scale 1."""
    upper = word >= 1 << 31
    size = math.log((ALL - word - 0.5 if upper else word + 0.5) / (1 << 31))
    return -size if upper else size


@njit(inline="always")
def _normal(words: Any, tails: Any, out: Any) -> None:
    """Normal noise. The central ratio is computed for all words, which vectorizes; the tails are then corrected."""
    many = 0
    for i in range(len(words)):
        q = (words[i] + 0.5) / ALL - 0.5
        out[i] = q * _ratio(SPLIT * SPLIT - q * q, CENTRE[0], CENTRE[1])
    for i in range(len(words)):
        tails[many] = i
        many += abs((words[i] + 0.5) / ALL - 0.5) > SPLIT
    for i in tails[:many]:
        u = (words[i] + 0.5) / ALL
        tail = math.sqrt(-math.log(min(u, 1.0 - u)))
        far = tail > FURTHER
        size = _ratio(tail - FURTHER, BEYOND[0], BEYOND[1]) if far else _ratio(tail - 1.6, NEAR[0], NEAR[1])
        out[i] = math.copysign(size, u - 0.5)


@njit(inline="always")
def _score(cuts: Any, values: Any, slope: Any, j: Any, word: Any) -> Any:
    """The contribution of one word, except for normal noise."""
    place = (word >= cuts[j, 0]) + (word >= cuts[j, 1]) + (word >= cuts[j, 2])
    if place == 1 and slope[j] != 0.0:
        return values[j, 1] + slope[j] * _laplace(word)
    return values[j, place]


@njit(inline="always")
def _whole(k0: Any, k1: Any, first: Any, j: Any, bytes_: Any, rests: Any, order: Any, out: Any) -> None:
    """All four bytes of the words of coordinate j, given the first ones."""
    for lane in range(0, 4 * BLOCKS, LANES):
        place = _U64(first // 4 + lane)
        _lanes(rests, 4 * lane, _U32(j), _U32(place), _U32(place >> _32), _U32(REST), k0, k1)
    for i in range(RUNS * BLOCKS):
        out[i] = (np.int64(bytes_[i]) << 24) | np.int64(rests[order[i]] >> _U32(8))


@njit(inline="always")
def _order() -> Any:
    """Where the rest of each byte's word is written."""
    order = np.empty(RUNS * BLOCKS, np.int64)
    for i in range(RUNS * BLOCKS):
        group, lane = divmod(_run(0, i) // 4, LANES)
        order[i] = 4 * LANES * group + LANES * (_run(0, i) % 4) + lane
    return order


@kernel()
def _guesses(
    k0: Any, k1: Any, start: Any, runs: Any, normal: Any, cuts: Any, values: Any, slope: Any, known: Any, lazy: Any,
    low: Any, high: Any, resolution: Any,
) -> Any:  # fmt: skip
    firsts, rests = np.empty(4 * BLOCKS, np.uint32), np.empty(16 * BLOCKS, np.uint32)
    bytes_ = firsts.view(np.uint8)
    words, tails = np.empty(RUNS * BLOCKS, np.int64), np.empty(RUNS * BLOCKS, np.int64)
    noise, total = np.empty(RUNS * BLOCKS), np.empty(RUNS * BLOCKS)
    order = _order()
    below = above = 0
    for first in range(start, start + runs, RUNS * BLOCKS):
        total[:] = 0.0
        for j in range(len(slope)):
            _first_bytes(firsts, k0, k1, first, j)
            if lazy:
                for i in range(RUNS * BLOCKS):
                    value = known[j, bytes_[i]]
                    if math.isnan(value):
                        word = (np.int64(bytes_[i]) << 24) | np.int64(_rest(k0, k1, j, _run(first, i)))
                        value = _score(cuts, values, slope, j, word)
                    total[i] += value
                continue
            _whole(k0, k1, first, j, bytes_, rests, order, words)
            if normal:
                _normal(words, tails, noise)
                for i in range(RUNS * BLOCKS):
                    total[i] += values[j, 1] + slope[j] * noise[i]
            else:
                for i in range(RUNS * BLOCKS):
                    total[i] += _score(cuts, values, slope, j, words[i])
        last = first + RUNS * BLOCKS > start + runs
        for i in range(RUNS * BLOCKS):
            if not last or _run(first, i) < start + runs:
                coarse = min(max(np.rint(total[i] / resolution), -FAR), FAR)
                below += coarse <= low
                above += coarse >= high
    return below, above


def count_guesses(
    key: Key, start: int, runs: int, table: LikelihoodRatioTable, low: float, high: float, resolution: float
) -> tuple[int, int]:
    """As `numpy_kernels.count_guesses`."""
    check_start(start)
    known = table.by_byte if table.dim <= WIDEST else np.full((1, 256), np.nan)
    lazy = bool(np.isnan(known).sum() <= LAZY * len(known))
    made = (table.cuts, table.values, table.slope, known, lazy, low, high, resolution)
    below, above = _guesses(_U32(key[0]), _U32(key[1]), start, runs, table.kind == GAUSSIAN, *made)
    return int(below), int(above)


def describe() -> str:
    """A description of what computes the counts."""
    return f"numba {numba.__version__}"
