"""What each stage makes of a set of vectors, written from the definitions of the stages."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.numbers import (
    ONE,
    ZERO,
    Number,
    is_infinite,
    iv,
    largest,
    number,
    smallest,
    whole_part,
)
from dpassay.evidence.verifier.regions import (
    ADDITIVE,
    INFINITE,
    LARGEST,
    NOISES,
    NORMS,
    SINGLE,
    Reach,
    Shape,
    Stage,
    cube,
    diameter,
    everything,
    largest_norm,
    loses,
    squash,
)


def incoming(names: Sequence[str], dim: int) -> Reach:
    """Any vector; one value if the first stage takes only that, and a later function makes vectors of it."""
    single = names[0] in SINGLE and any(name in ("encode", "decode") for name in names[1:])
    return Reach(everything(1 if single else dim), True)


def after(stage: Stage, before: Reach, dim: int) -> Reach:
    """What can come out of a stage, given what comes in.

    Behind noise only what swamps it is surely reached: every direction, far out, by one more stage.
    """
    found = _after(stage, before, dim)
    if not before.far and stage.name not in NOISES:
        return found
    swamping = before.shape.kind == "everything" and stage.name in _SWAMPED
    return replace(found, exact=found.exact and before.exact and swamping, far=True)


_SWAMPED = (*ADDITIVE, "round", "encode", "decode", "clip", "normalise", "minmax", "squash")


def _after(stage: Stage, before: Reach, dim: int) -> Reach:
    shape = before.shape
    rules: dict[str, Callable[[Stage, Reach], Reach]] = {
        "clip": _clipped,
        "normalise": _normalised,
        "minmax": _minmaxed,
        "squash": _squashed,
        "binary": _in_bits,
        "round": _rounded,
        "clamp": _clamped,
        "repeat": _repeated,
        "hash": _hashed,
        "bloom": _hashed,
    }
    if stage.name in rules:
        return rules[stage.name](stage, before)
    if stage.name in ("encode", "decode"):
        # Any function, the worst one; but of a constant every function makes a constant.
        size = dim if stage.name == "encode" else shape.dim
        constant = diameter(shape, INFINITE).b <= 0
        return Reach(cube(ZERO, ZERO, size) if constant else everything(size), before.exact)
    if stage.name in ("dropout", "poisson", "subsample", "shuffle", "times"):
        return before
    if stage.name == "rows":
        return Reach(Shape("rows", shape.dim), True)
    if stage.name == "query":
        ball = Shape("apart", shape.dim, NORMS[stage.words["norm"]], stage.numbers["distance"], free=True)
        return Reach(replace(ball, monotone=stage.words["moves"] == "monotone"), True)
    if stage.name in ("category", "onehot"):
        return _named(stage, before)
    return _noised(stage, before)


def _noised(stage: Stage, before: Reach) -> Reach:
    shape = before.shape
    if stage.name == "exponential":
        return Reach(Shape("categories", 1, count=shape.dim), False)
    if stage.name == "flip":
        return Reach(shape, False)
    if stage.name == "bits":
        return Reach(Shape("bits", shape.dim), False)
    # Values without a bound can swamp the noise, so nothing changes for them.
    return Reach(everything(shape.dim), before.exact and shape.kind == "everything" and not loses(stage))


def _at_least(first: Number, second: Number) -> bool:
    """Whether the first is as large as the second, taking what 40 digits cannot tell apart as equal."""
    return bool((first * (1 + iv.mpf("1e-40"))).b >= second.a)


def _surely(first: Number, second: Number) -> bool:
    """Whether the first is as large as the second beyond doubt."""
    return bool(first.a >= second.b)


def _clipped(stage: Stage, before: Reach) -> Reach:
    """Scaling down keeps every vector's direction, so a set that contains 0 and is star-shaped is cut, no more."""
    shape, p, radius = before.shape, NORMS[stage.words["norm"]], stage.numbers["radius"]
    ball = Shape("ball", shape.dim, p, radius)
    if shape.kind == "everything":
        return Reach(ball, before.exact)
    if shape.kind == "apart":
        return _clipped_answers(shape, ball, before.exact)
    if _at_least(radius, limit := largest_norm(shape, p)):
        return replace(before, exact=before.exact and _surely(radius, limit))
    if shape.kind == "ball" and shape.p == p:
        return Reach(ball, before.exact)
    if shape.kind == "ball":
        if _at_least(shape.size, limit := largest_norm(ball, shape.p)):
            return Reach(ball, before.exact and _surely(shape.size, limit))
        return Reach(Shape("both", shape.dim, parts=(shape, ball)), before.exact)
    wide = shape.kind == "box" and all(_surely(-low, radius) and _surely(high, radius) for low, high, _ in shape.sides)
    return Reach(ball, before.exact and wide)


def _clipped_answers(shape: Shape, ball: Shape, exact: bool) -> Reach:
    """Clipping in l2 never moves two vectors apart in l2; in any norm it at most doubles their distance.

    Two values are then this near, and in the ball.
    """
    exact &= not shape.monotone  # what is scaled may move both ways, but not to any two vectors of the ball
    shape = replace(shape, free=False, monotone=False)
    if ball.p == shape.p == 2:
        near = replace(shape, parts=(*shape.parts, ball))
        return Reach(near if _at_least(2 * ball.size, shape.size) else ball, exact)
    if ball.p == shape.p:
        return Reach(replace(shape, size=2 * smallest([shape.size, ball.size])), False)
    return Reach(ball, False)


def _every_direction(shape: Shape) -> bool:
    """Whether two vectors of any two directions lie in the set, and neighbours can have them."""
    if shape.kind == "box":
        return all(low.b < 0 and high.a > 0 for low, high, _ in shape.sides)
    return shape.kind in ("everything", "ball", "both", "apart", "sphere") and not shape.monotone


def _normalised(stage: Stage, before: Reach) -> Reach:
    shape = before.shape
    return Reach(Shape("sphere", shape.dim, 2.0, ONE), before.exact and _every_direction(shape))


def _minmaxed(stage: Stage, before: Reach) -> Reach:
    """Shift and scale do not matter, so any set with an interior gives all of them."""
    shape = before.shape
    full = shape.kind == "box" and len(shape.sides) == 1 and shape.sides[0][0].b < shape.sides[0][1].a
    whole = _every_direction(shape) or shape.kind == "minmax" or full
    return Reach(Shape("minmax", shape.dim), before.exact and whole)


def _squashed(stage: Stage, before: Reach) -> Reach:
    shape, kind = before.shape, stage.words["kind"]
    whole = replace(cube(-ONE if kind == "tanh" else ZERO, ONE, shape.dim), open=True)
    if shape.kind == "everything":
        return Reach(whole, before.exact)
    if shape.kind == "box":
        sides = tuple((squash(kind, low), squash(kind, high), n) for low, high, n in shape.sides)
        return Reach(replace(shape, sides=sides), before.exact)
    if shape.kind == "rows":
        low, high = (squash(kind, limit) for limit in shape.sides[0][:2]) if shape.sides else whole.sides[0][:2]
        return Reach(_rows(low, high, shape.dim, shape.open or not shape.sides), before.exact)
    if shape.kind in ("ball", "sphere", "apart") and not (shape.kind == "ball" and shape.p == INFINITE):
        # Which pairs come out is known only of those that come in.
        inner = replace(shape, kind="ball") if shape.kind == "sphere" else shape
        return Reach(Shape("squashed", shape.dim, parts=(inner,), function=kind), False)
    limit = largest_norm(shape, INFINITE)
    if is_infinite(limit):
        return Reach(whole, False)
    all_corners = shape.kind == "ball" and shape.p == INFINITE
    return Reach(cube(squash(kind, -limit), squash(kind, limit), shape.dim), before.exact and all_corners)


def _in_bits(stage: Stage, before: Reach) -> Reach:
    length = 1 + stage.wholes["integer"] + stage.wholes["fraction"]
    if before.shape.kind == "rows":
        places = _places_of_a_row(stage, before.shape)
        return Reach(Shape("row-bits", before.shape.dim * length, size=iv.mpf(places), count=length), False)
    return Reach(Shape("bits", before.shape.dim * length), before.exact and before.shape.kind == "everything")


def _places_of_a_row(stage: Stage, shape: Shape) -> int:
    """In how many places two numbers between the limits of rows can differ, at most."""
    integer, fraction = stage.wholes["integer"], stage.wholes["fraction"]
    if not shape.sides:
        return 1 + integer + fraction
    top, unit = (1 << integer + fraction) - 1, 1 << fraction
    low, high, _ = shape.sides[0]
    places: list[int] = [0]
    largest_wholes: list[int] = []
    for least, most in ((low, high), (-high, -low)):
        if most.b >= 0:
            first, last = whole_part(iv.mpf(least.a) * unit), whole_part(iv.mpf(most.b) * unit)
            first, last = min(top, max(0, first)), min(top, last)
            places.append((first ^ last).bit_length())  # of numbers of one sign
            largest_wholes.append(last)
    if len(largest_wholes) == 2:
        lesser, larger = sorted(largest_wholes)
        length = larger.bit_length()
        places.append(length + (2**length - 1 - larger <= lesser))
    return max(places)


def _rounded(stage: Stage, before: Reach) -> Reach:
    shape = before.shape
    if shape.kind in ("bits", "row-bits", "onehot", "categories", "sparse"):
        return before
    if shape.kind == "rows" and not shape.sides:
        return Reach(shape, before.exact, far=True)
    if shape.kind == "rows":
        low, high = -whole_part(number("0.5") - shape.sides[0][0]), whole_part(shape.sides[0][1] + number("0.5"))
        return Reach(_rows(iv.mpf(low), iv.mpf(high), shape.dim), False)
    if shape.kind == "apart":
        return Reach(Shape("rounded", shape.dim, parts=(shape,)), False)
    limit = largest_norm(shape, INFINITE)
    if is_infinite(limit):
        return Reach(everything(shape.dim), before.exact and shape.kind == "everything", far=True)
    whole = whole_part(limit + number("0.5"))
    return Reach(cube(iv.mpf(-whole), iv.mpf(whole), shape.dim), False)


def _rows(low: Number, high: Number, dim: int, ends_left_out: bool = False) -> Shape:
    return Shape("rows", dim, sides=((low, high, dim),), open=ends_left_out)


def _clamped(stage: Stage, before: Reach) -> Reach:
    """Each coordinate to the nearest value between the limits: no two values move apart."""
    shape, low, high = before.shape, stage.numbers["low"], stage.numbers["high"]
    if shape.kind == "rows":
        ends = shape.sides[0][:2] if shape.sides else (low, high)
        return Reach(_rows(clamp(ends[0], low, high), clamp(ends[1], low, high), shape.dim, shape.open), before.exact)
    if shape.kind == "apart":
        return Reach(replace(shape, free=False), False)
    limit = largest_norm(shape, INFINITE)
    if _at_least(-low, limit) and _at_least(high, limit):
        return replace(before, exact=before.exact and _surely(-low, limit) and _surely(high, limit))
    if shape.kind in ("minmax", "bits", "row-bits", "onehot", "sparse") and low.b <= 0 and high.a >= 1:
        return before
    return Reach(cube(low, high, shape.dim), before.exact and shape.kind == "everything")


def clamp(value: Number, low: Number, high: Number) -> Number:
    """The nearest number between two."""
    return largest([low, smallest([high, value])])


def _repeated(stage: Stage, before: Reach) -> Reach:
    shape, times = before.shape, stage.wholes["times"]
    if shape.dim * times > LARGEST:
        raise CertificateError(f"{times} copies of {shape.dim} coordinates are more than {LARGEST}")
    if shape.kind == "repeated":
        return Reach(replace(shape, dim=shape.dim * times, count=shape.count * times), before.exact)
    return Reach(Shape("repeated", shape.dim * times, parts=(shape,), count=times), before.exact)


def _named(stage: Stage, before: Reach) -> Reach:
    """A list of names, or their vectors. Of other values than these nobody knows which ones are among them."""
    size, shape = stage.wholes["k"], before.shape
    named = shape.kind == "everything" or (shape.kind == "categories" and shape.count == size)
    if stage.name == "category":
        return Reach(Shape("categories", 1, count=size), before.exact and named)
    written = shape.kind == "onehot" and shape.dim == size
    return Reach(Shape("onehot", size), before.exact and (named or written))


def _hashed(stage: Stage, before: Reach) -> Reach:
    """Public functions, the worst ones: of all values every category, every string with few ones can come."""
    exact = before.exact and before.shape.kind == "everything"
    size = stage.wholes["k"]
    if stage.name == "hash":
        return Reach(Shape("categories", 1, count=size), exact)
    return Reach(Shape("sparse", size, count=stage.wholes["hashes"]), exact)
