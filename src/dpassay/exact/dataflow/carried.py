"""A pair of vectors carried through stages in certified numbers, so that it is known on which side of a jump it lies.

Doubles are enough for stages that are continuous. Rounding, and writing numbers in bits, react to the smallest error.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpassay.core.known import quotient
from dpassay.core.numbers import ONE, ZERO, Number, floor, maximum, minimum, number, sqrt
from dpassay.pipeline.regions import Pair
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bounds.round import Round
from dpassay.pipeline.stages.bounds.scaling import Clip, MinMaxScale, Normalise
from dpassay.pipeline.stages.functions import Encode, Function
from dpassay.pipeline.stages.repeat import Repeat
from dpassay.pipeline.syntax import NORMS

Values = list[tuple[Number, int]]  # numbers, and how many coordinates each of them has
_MANY_BITS = 1 << 22


def carried(stages: Sequence[Stage], pair: Pair) -> Pair | None:
    """The image of a pair; None if it is not known for certain.

    >>> carried([Clip("linf", "1.5"), Round()], Pair.of([9], [0])).first.tolist()
    [2.0]
    >>> from dpassay.core.numbers import real
    >>> carried([Clip("linf", real(["2.5", "2.50000000000000000001"])), Round()], Pair.of([9], [0])) is None
    True
    """
    for stage in stages:
        if isinstance(stage, Repeat):
            pair = Pair(tuple(replace(block, count=block.count * stage.times) for block in pair.blocks))
        elif isinstance(stage, Binary):
            written = _in_bits(stage, pair)
            if written is None:
                return None
            pair = written
        else:
            first = _image(stage, [(block.x, block.count) for block in pair.blocks])
            second = _image(stage, [(block.y, block.count) for block in pair.blocks])
            if first is None or second is None:
                return None
            ends = zip(first, second, pair.blocks, strict=True)
            pair = Pair(tuple(replace(b, x=x, y=x if _alike(x, y) else y) for x, y, b in ends))
    return pair


def _alike(x: Number, y: Number) -> bool:
    return bool(x.a == x.b == y.a == y.b)


def _image(stage: Stage, values: Values) -> list[Number] | None:
    """A vector after a stage."""
    plain = [value for value, _ in values]
    if isinstance(stage, Encode | Function):
        return plain if stage.function is None else None
    if isinstance(stage, Clip | Normalise):
        norm = _norm(values, NORMS[stage.norm])
        if isinstance(stage, Clip) and norm.b <= stage.radius.a:
            return plain
        if not norm.a > 0:
            return None
        factor = minimum(ONE, quotient(stage.radius, norm)) if isinstance(stage, Clip) else quotient(ONE, norm)
        return [value * factor for value in plain]
    if isinstance(stage, MinMaxScale):
        low, high = minimum(*plain), maximum(*plain)
        if not (high - low).a > 0:
            return [ZERO] * len(plain) if (high - low).b <= 0 else None
        return [quotient(value - low, high - low) for value in plain]
    images = [_nearest(value) if isinstance(stage, Round) else stage.image(value) for value in plain]
    return [value for value in images if value is not None] if None not in images else None


def _norm(values: Values, p: float) -> Number:
    sizes = [(abs(value), count) for value, count in values]
    if p == float("inf"):
        return maximum(*(size for size, _ in sizes))
    total = sum((size ** int(p) * count for size, count in sizes), ZERO)
    return total if p == 1 else sqrt(total)


def _floors(value: Number) -> tuple[int, int]:
    return floor(value), floor(value.b)


def _nearest(value: Number) -> Number | None:
    """The nearest integer, ties to the even one; None if it is not the same for all numbers of an enclosure."""
    raised = value + ONE / 2
    low, high = _floors(raised)
    tie = bool(raised.a == low) and low % 2 == 1
    if low != high or (tie and value.delta != 0):
        return None
    return number(low - 1 if tie else low)


def _in_bits(stage: Binary, pair: Pair) -> Pair | None:
    """Sign, integer and fraction bits of each coordinate."""
    sides: list[list[np.ndarray]] = [[], []]
    if sum(block.count for block in pair.blocks) * stage.length > _MANY_BITS:
        return None
    for block in pair.blocks:
        for side, value in zip(sides, (block.x, block.y), strict=True):
            string = _bits_of(stage, value)
            if string is None or block.positions != "all":
                return None
            side.append(np.tile([float(bit) for bit in string], block.count))
    return Pair.of(np.concatenate(sides[0]), np.concatenate(sides[1]))


def _bits_of(stage: Binary, value: Number) -> str | None:
    most = (1 << stage.integer + stage.fraction) - 1
    low, high = _floors(abs(value) * 2**stage.fraction)
    if value.a < 0 <= value.b or (low != high and low < most):
        return None
    written = f"{min(low, most):0{stage.length - 1}b}" if stage.length > 1 else ""
    return f"{int(value.b < 0)}{written}"
