"""Distances and gaps of blocks of rows by numba: the same numbers as `word_gaps`.

A gap is a largest and a smallest difference. The inner loop, 2 × 4 rows at a time, is written as vector instructions by
hand: LLVM does not vectorize Python's `max`, because it must respect NaN. There are no NaNs here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpassay.compute.kernels import word_gaps
from dpassay.compute.kernels.numba_kernels import kernel
from dpassay.compute.kernels.word_gaps import Array, angles, units

LANES = 16  # of single precision; half as many doubles
ROWS, COLUMNS = 2, 4  # rows of each block whose differences are held in registers
DEPTH = 1024  # columns at a time, so that the rows of two blocks stay in the second-level cache
NEAR = 64  # vectors that stay in the cache while a whole block is processed
_INDEX = ir.IntType(64)


def _pointer(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, row: Any) -> Any:
    """The beginning of a row of an array, as a pointer to its numbers."""
    made = context.make_array(kind)(context, builder, array)
    stride = builder.extract_value(made.strides, 0)
    size = ir.Constant(_INDEX, 8 if kind.dtype == types.float64 else 4)
    return builder.gep(made.data, [builder.sdiv(builder.mul(row, stride), size)])


def _larger(builder: ir.IRBuilder, sign: str, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(sign, x, y), x, y)


@intrinsic
def _widen(context: Any, a: Any, b: Any, i: Any, j: Any, start: Any, stop: Any, high: Any, low: Any) -> Any:
    """Update high[i:i+2, j:j+4] and low there with all a[i, k] − b[j, k], start ≤ k < stop."""
    signature = types.void(a, b, types.int64, types.int64, types.int64, types.int64, high, low)
    lanes = LANES // 2 if a.dtype == types.float64 else LANES
    scalar: Any = ir.DoubleType() if a.dtype == types.float64 else ir.FloatType()
    vector = ir.VectorType(scalar, lanes)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        first, second, i, j, start, stop, above, below = arguments

        def rows(kind: Any, array: Any, from_row: Any, count: int) -> list[Any]:
            numbered = [builder.add(from_row, ir.Constant(_INDEX, r)) for r in range(count)]
            return [_pointer(context, builder, kind, array, row) for row in numbered]

        def load(pointer: Any, k: Any) -> Any:
            place = builder.bitcast(builder.gep(pointer, [k]), vector.as_pointer())
            return builder.load(place, align=4)

        left, right = rows(a, first, i, ROWS), rows(b, second, j, COLUMNS)
        count = ROWS * COLUMNS
        begin = [builder.fsub(load(p, start), load(q, start)) for p in left for q in right]
        entry, loop, done = builder.block, builder.append_basic_block("widen"), builder.append_basic_block("widened")
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(_INDEX)
        k.add_incoming(start, entry)
        held = [builder.phi(vector) for _ in range(2 * count)]
        for n, phi in enumerate(held):
            phi.add_incoming(begin[n % count], entry)
        xs, ys = [load(p, k) for p in left], [load(q, k) for q in right]
        differences = [builder.fsub(x, y) for x in xs for y in ys]
        signs = [">"] * count + ["<"] * count
        moved = [_larger(builder, s, d, h) for s, d, h in zip(signs, 2 * differences, held, strict=True)]
        following = builder.add(k, ir.Constant(_INDEX, lanes))
        k.add_incoming(following, loop)
        for phi, value in zip(held, moved, strict=True):
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, stop), loop, done)
        builder.position_at_end(done)
        for name, kind, array, values, sign in (
            ("fmax", high, above, moved[:count], ">"),
            ("fmin", low, below, moved[count:], "<"),
        ):
            suffix = f"v{lanes}f{64 if lanes == LANES // 2 else 32}"
            reduce = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(scalar, [vector]), f"llvm.vector.reduce.{name}.{suffix}"
            )
            for n, value in enumerate(values):
                row = builder.add(i, ir.Constant(_INDEX, n // COLUMNS))
                start_of = _pointer(context, builder, kind, array, row)
                place = builder.gep(start_of, [builder.add(j, ir.Constant(_INDEX, n % COLUMNS))])
                found = builder.call(reduce, [value], fastmath=("nnan",))
                builder.store(_larger(builder, sign, found, builder.load(place)), place)
        return context.get_dummy_value()

    return signature, generate


@kernel()
def _gaps(a, b, high, low):  # type: ignore[no-untyped-def]
    for start in range(0, a.shape[1], DEPTH):
        stop = min(a.shape[1], start + DEPTH)
        for i in range(0, a.shape[0], ROWS):
            for j in range(0, b.shape[0], COLUMNS):
                _widen(a, b, i, j, start, stop, high, low)


def padded(rows: NDArray[Any], height: int = 0) -> NDArray[Any]:
    """Rows as `gaps` expects them: the last column and row repeated, up to multiples of what is held at once."""
    more = -rows.shape[1] % LANES
    tall = max(height, rows.shape[0] + -rows.shape[0] % COLUMNS) - rows.shape[0]
    return np.pad(rows, ((0, tall), (0, more)), mode="edge") if more or tall else np.ascontiguousarray(rows)


def gaps(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """As `word_gaps.gaps`."""
    first, second = padded(a), padded(b)
    high = np.full((first.shape[0], second.shape[0]), -np.inf, a.dtype)
    low = -high
    _gaps(first, second, high, low)
    return high[: len(a), : len(b)], low[: len(a), : len(b)]


@kernel(fastmath=True)
def _squares(a, b, out):  # type: ignore[no-untyped-def]
    for start in range(0, b.shape[0], NEAR):
        for i in range(a.shape[0]):
            for j in range(start, min(start + NEAR, b.shape[0])):
                total = 0.0
                for k in range(a.shape[1]):
                    total += (a[i, k] - b[j, k]) ** 2
                out[i, j] = total


@kernel(fastmath=True)
def _sizes(a, b, out):  # type: ignore[no-untyped-def]
    for start in range(0, b.shape[0], NEAR):
        for i in range(a.shape[0]):
            for j in range(start, min(start + NEAR, b.shape[0])):
                total = 0.0
                for k in range(a.shape[1]):
                    total += abs(a[i, k] - b[j, k])
                out[i, j] = total


def distances(a: Array, b: Array, metric: str) -> Array:
    """As `word_gaps.distances`; sums may be computed in another order, which the stated error allows."""
    if metric == "angle":
        u, v = units(a), units(b)
        return angles(distances(u, v, "l2"), distances(u, -v, "l2"))
    if metric == "linf":
        return word_gaps.distances(a, b, metric)
    out = np.empty((len(a), len(b)))
    (_squares if metric == "l2" else _sizes)(np.ascontiguousarray(a), np.ascontiguousarray(b), out)
    return np.sqrt(out) if metric == "l2" else out
