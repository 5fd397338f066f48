"""How far records that are added or removed move a sum: docs/proofs/record-sums.md."""

from dataclasses import replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import INF, ONE, ZERO, iv, largest
from dpassay.evidence.verifier.regions.regions import (
    INFINITE,
    NormBall,
    Reach,
    RegionShape,
    box,
    diameter,
    is_whole,
    squash,
)


def moved_sums(reach: Reach, count: int) -> RegionShape:
    """The sums that up to `count` more vectors of a region give; sums of integers are integers."""
    shape = reach.shape
    return replace(_times(_moved(shape, reach.far), count, shape.one.one_hot), whole=is_whole(shape))


def _moved(shape: RegionShape, far: bool = False) -> RegionShape:
    """How far one more vector of a region moves a sum, as a region in which neighbors can have any two values."""
    if shape.everything or shape.values == "bits":
        return shape
    if shape.balls:
        # Sums of numbers ±r are multiples of r, also of integers that are clipped; others can be anywhere.
        free = (shape.kind == "ball" and not far) or shape.dim > 1
        balls = tuple(replace(one, width=one.radius, radius=INF) for one in shape.balls)
        return RegionShape("answers", shape.dim, balls=balls, free=free)
    if shape.one_hot:
        return box(ZERO, ONE, shape.dim, 1)
    if shape.kind == "squashed":  # the box around it
        limit = diameter(shape.parts[0], INFINITE) / 2
        return _moved(box(squash(shape.function, -limit), squash(shape.function, limit), shape.dim))
    if shape.kind == "repeated":
        return replace(shape, parts=(_moved(shape.one, far),))
    # A constant is not known to be this one, if a function gave it.
    wide = shape.kind == "box" and shape.values in ("reals", "minmax") and (shape.high - shape.low).a > 0
    if wide or shape.constant is not None:
        farther = largest([abs(shape.low), abs(shape.high)])
        upwards = abs(shape.high).b >= abs(shape.low).b
        return box(ZERO if upwards else -farther, farther if upwards else ZERO, shape.dim)
    raise CertificateError(f"it is not known how far one more vector of the region {shape.kind} moves a sum")


def _times(shape: RegionShape, count: int, one_hot: bool) -> RegionShape:
    """How far several vectors move a sum, each of which moves it as a region describes: docs/proofs/record-sums.md."""
    if count == 1 or shape.everything:
        return shape
    if shape.kind == "repeated":
        return replace(shape, parts=(_times(shape.one, count, one_hot),))
    if one_hot:  # one coordinate each, perhaps a different one: integers, as far apart in l1 as there are records
        return RegionShape("answers", shape.dim, balls=(NormBall(1.0, iv.mpf(count), INF),), values="wholes")
    if shape.balls:
        return replace(shape, balls=tuple(replace(one, width=one.width * count) for one in shape.balls))
    return box(shape.low * count, shape.high * count, shape.dim)
