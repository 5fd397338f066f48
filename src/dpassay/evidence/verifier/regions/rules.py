"""The image of a set of vectors under each stage, written from the definitions of the stages."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    is_infinite,
    is_point,
    iv,
    largest,
    least_whole_part,
    smallest,
    whole_part,
)
from dpassay.evidence.verifier.regions.clipped_counts import largest_clipped_step
from dpassay.evidence.verifier.regions.regions import (
    ADDITIVE,
    DIRECTIONS,
    INFINITE,
    LARGEST,
    NOISES,
    NORMS,
    SINGLE,
    NormBall,
    ParsedStage,
    Reach,
    RegionShape,
    ball,
    bits,
    box,
    diameter,
    everything,
    is_whole,
    largest_norm,
    may_drop_values,
    minmax,
    root,
    sparse,
    squash,
)

_SWAMPED = (*ADDITIVE, "round", "encode", "decode", "clip", "normalise", "minmax", "squash")
_HALF = ONE / 2


def incoming(names: Sequence[str], dim: int) -> Reach:
    """Any vector; a single value if the first stage takes only that, and a later function maps it to vectors."""
    if names[0] in DIRECTIONS:  # it takes unit vectors
        return Reach(replace(ball(2.0, ONE, dim), kind="sphere"), True)
    single = names[0] in SINGLE and any(name in ("encode", "decode") for name in names[1:])
    return Reach(everything(1 if single else dim), True)


def after(stage: ParsedStage, before: Reach, dim: int) -> Reach:
    """The possible outputs of a stage, given its inputs.

    After noise, only values that swamp it are certainly reached: every direction, far out, by one more stage.
    """
    opaque = stage.name in ("encode", "decode")  # any function to vectors of the claimed dimension
    found = _any_function(stage, before, dim) if opaque else _RULES[stage.name](stage, before)
    found = _marked(stage, before.shape, found)
    if not before.far and stage.name not in NOISES:
        return found
    swamping = before.shape.everything and stage.name in _SWAMPED
    return replace(found, exact=found.exact and before.exact and swamping, far=True)


def _marked(stage: ParsedStage, before: RegionShape, found: Reach) -> Reach:
    """With what is known about integers: rounding gives them, counts are integers, and copies stay so.

    An unknown constant stays unknown after all stages.
    """
    kept = found.shape is before or stage.name == "repeat"
    kept |= stage.name == "clamp" and all(is_point(end, whole_part(end)) for end in stage.numbers.values())
    one_sign = stage.name == "normalise" and before.dim == 1  # −1 and 1, and 0
    whole = stage.name == "round" or "values" in stage.words or one_sign or (kept and is_whole(before))
    unknown = found.shape.unknown or (before.one.unknown and stage.name not in NOISES)
    if (found.shape.whole, found.shape.unknown) == (whole, unknown):
        return found
    return replace(found, shape=replace(found.shape, whole=whole, unknown=unknown))


def _any_function(stage: ParsedStage, before: Reach, dim: int = 0) -> Reach:
    """The worst function; but every function maps a constant to a constant."""
    size, constant = dim or before.shape.dim, diameter(before.shape, INFINITE).b <= 0
    fixed = replace(box(ZERO, ZERO, size), unknown=True)
    return Reach(fixed if constant else everything(size), before.exact or before.varies)


def _at_least(first: Number, second: Number) -> bool:
    """Whether the first is as large as the second, treating numbers that agree to 40 digits as equal."""
    return bool((first * (1 + iv.mpf("1e-40"))).b >= second.a)


def _surely(first: Number, second: Number) -> bool:
    """Whether the first is certainly as large as the second."""
    return bool(first.a >= second.b)


def _clipped(stage: ParsedStage, before: Reach) -> Reach:
    """Scaling down keeps every vector's direction, so a star-shaped set that contains 0 is merely cut."""
    shape, p, radius = before.shape, NORMS[stage.words["norm"]], stage.numbers["radius"]
    new = ball(p, radius, shape.dim)
    if shape.kind == "answers":
        return _clipped_answers(shape, new, before.exact)
    if _surely(radius, limit := largest_norm(shape, p)):
        return before
    if _at_least(radius, limit) and (touched := _scaled_down(shape)) is not None:
        return Reach(touched, False)
    if shape.kind == "ball":
        others = [one for one in shape.balls if one.p != p]
        kept = [one for one in others if not _at_least(one.radius, largest_norm(new, one.p))]
        known = all(one in kept or _surely(one.radius, largest_norm(new, one.p)) for one in others)
        return Reach(replace(shape, balls=(*kept, *new.balls)), before.exact and known)
    wide = _full(shape) and _surely(-shape.low, radius) and _surely(shape.high, radius)
    if shape.open:  # limits that are only approached leave out vectors along an axis
        wide = wide and bool(-shape.low.b > radius.b and shape.high.a > radius.b)
    return Reach(new, before.exact and wide)


def _scaled_down(shape: RegionShape) -> RegionShape | None:
    """A set that contains all vectors of a set, scaled by any factor up to 1; what was an integer may not be one."""
    if shape.kind == "sphere":
        return replace(shape, kind="ball")
    if shape.kind == "ball" or (shape.kind == "squashed" and shape.function == "tanh"):
        return replace(shape, whole=False)
    if shape.kind == "box" and shape.low.b <= 0 <= shape.high.a:
        return box(shape.low, shape.high, shape.dim, shape.differing)
    return None


def _full(shape: RegionShape) -> bool:
    """Whether each coordinate can be any number between the limits, whatever the others are."""
    return shape.kind == "box" and shape.values == "reals" and shape.differing == shape.dim


def _clipped_answers(shape: RegionShape, new: RegionShape, exact: bool) -> Reach:
    """Clipping in l2 never increases an l2 distance; in any norm it at most doubles distances.

    Two values are then this near, and in the ball.
    """
    near, limit = shape.balls[0], new.balls[0]
    step = _step(shape, limit)
    if shape.whole or shape.high.b < INF:
        near, exact = replace(near, width=iv.mpf(diameter(shape, near.p).b)), False
        near = near if step is None else replace(near, p=1.0)
        shape = replace(shape, whole=False, low=-INF, high=INF, balls=(near,))
    if limit.p == 2 != near.p and len(shape.balls) == 1 and diameter(shape, 2.0).b < limit.width.a:
        stretch = (1 + root(shape.dim, 2.0)) / 2 if step is None else step  # diameters.md, points 19 and 20
        stretched = NormBall(near.p, near.width * stretch, INF)
        close = (NormBall(2.0, diameter(shape, 2.0), limit.radius), stretched)
        return Reach(replace(shape, free=False, monotone=False, balls=close), False)
    exact &= not shape.monotone  # scaled answers may move both ways, but not to any two vectors of the ball
    radius = smallest([near.radius, limit.radius])
    if limit.p == near.p == 2:
        kept = replace(shape, free=False, monotone=False, balls=(replace(near, radius=radius),))
        return Reach(kept if _at_least(limit.width, near.width) else new, exact)
    if limit.p == near.p:
        closer = NormBall(near.p, smallest([2 * near.width, limit.width]), radius)
        return Reach(replace(shape, free=False, monotone=False, balls=(closer,)), False)
    return Reach(new, False)


def _step(shape: RegionShape, limit: NormBall) -> Number | None:
    """How far apart in l1 clipping moves counts that differ by one, if neighbors are that many such steps apart."""
    near = shape.balls[0]
    single = near.p == 2 and bool((near.width**2).b < 2)
    counts = shape.whole and len(shape.balls) == 1 and is_infinite(shape.high) and not shape.monotone
    if limit.p != 2 or not counts or not (near.p == 1 or single or shape.dim == 1):
        return None
    return largest_clipped_step(shape.dim, limit.radius)


def _every_direction(shape: RegionShape) -> bool:
    """Whether two vectors of any two directions lie in the set, and neighbors can have them."""
    if shape.kind == "box":
        return _full(shape) and bool(shape.low.b < 0 and shape.high.a > 0)
    if shape.kind == "sphere":
        return True
    return bool(shape.balls) and not shape.monotone and not shape.whole  # integers next to each other have few


def _normalised(stage: ParsedStage, before: Reach) -> Reach:
    sphere = replace(ball(2.0, ONE, before.shape.dim), kind="sphere")
    return Reach(sphere, before.exact and _every_direction(before.shape))


def _minmaxed(stage: ParsedStage, before: Reach) -> Reach:
    """Shift and scale do not matter, so any set with an interior gives all min-max vectors."""
    shape = before.shape
    inside = _full(shape) and bool(shape.low.b < shape.high.a)
    whole = _every_direction(shape) or shape.values == "minmax" or inside
    return Reach(minmax(shape.dim), before.exact and whole)


def _between(before: Reach, low: Number, high: Number, exact: bool, open_ends: bool = False) -> Reach:
    """A box whose coordinates are mapped one by one, so that no more of them differ."""
    shape = before.shape
    return Reach(box(low, high, shape.dim, shape.differing, open_ends), before.exact and exact)


def _squashed(stage: ParsedStage, before: Reach) -> Reach:
    shape, kind = before.shape, stage.words["kind"]
    if shape.kind == "box":
        ends = squash(kind, shape.low), squash(kind, shape.high)
        return _between(before, *ends, shape.values == "reals", shape.open or bool(shape.high.b == INF))
    cube = shape.kind == "ball" and shape.balls[0].p == INFINITE
    if len(shape.balls) == 1 and not cube:
        # Output pairs are known only for known input pairs.
        inner = replace(shape, kind="ball") if shape.kind == "sphere" else shape
        return Reach(RegionShape("squashed", shape.dim, parts=(inner,), function=kind), False, varies=before.exact)
    limit = largest_norm(shape, INFINITE)
    exact = before.exact and cube and len(shape.balls) == 1
    return Reach(box(squash(kind, -limit), squash(kind, limit), shape.dim), exact)


def _in_bits(stage: ParsedStage, before: Reach) -> Reach:
    shape, length = before.shape, 1 + stage.wholes["integer"] + stage.wholes["fraction"]
    if shape.kind == "box" and shape.differing == 1 and not shape.everything:
        return Reach(bits(shape.dim * length, _places_of_a_row(stage, shape), length), False)
    return Reach(bits(shape.dim * length, shape.dim * length), before.exact and shape.everything)


def _places_of_a_row(stage: ParsedStage, shape: RegionShape) -> int:
    """In how many bits two numbers between the limits of rows can differ, at most."""
    integer, fraction = stage.wholes["integer"], stage.wholes["fraction"]
    if is_infinite(shape.high):
        return 1 + integer + fraction
    top, unit = (1 << integer + fraction) - 1, 1 << fraction
    places: list[int] = [0]
    largest_wholes: list[int] = []
    for least, most, minus in ((shape.low, shape.high, 0), (-shape.high, -shape.low, 1)):
        if most.b > 0 or (most.b == 0 and not minus):  # 0 has no negative sign
            first, last = whole_part(iv.mpf(least.a) * unit), whole_part(iv.mpf(most.b) * unit)
            first, last = min(top, max(0, first)), min(top, last)
            places.append((first ^ last).bit_length())  # for numbers of one sign
            largest_wholes.append(last)
    if len(largest_wholes) == 2:
        lesser, larger = sorted(largest_wholes)
        length = larger.bit_length()
        places.append(length + (2**length - 1 - larger <= lesser))
    return max(places)


def _rounded(stage: ParsedStage, before: Reach) -> Reach:
    shape = before.shape
    counts = shape.kind == "answers" and shape.whole
    if shape.values in ("bits", "sparse") or shape.kind == "categories" or counts:
        return before
    if shape.values == "minmax":  # bits, not all of them 1; in one dimension 0
        return Reach(bits(shape.dim, shape.dim) if shape.dim > 1 else box(ZERO, ZERO, 1), False)
    if shape.kind == "answers":
        return Reach(RegionShape("rounded", shape.dim, parts=(replace(shape, low=-INF, high=INF),)), False)
    limit = largest_norm(shape, INFINITE)
    if is_infinite(limit):
        return Reach(
            shape if shape.kind == "box" else everything(shape.dim), before.exact and shape.kind == "box", True
        )
    low, high = (shape.low, shape.high) if shape.kind == "box" else (-limit, limit)
    low, high = iv.mpf(-whole_part(_HALF - low)), iv.mpf(whole_part(high + _HALF))
    return _between(before, low, high, False) if shape.kind == "box" else Reach(box(low, high, shape.dim), False)


def _clamped(stage: ParsedStage, before: Reach) -> Reach:
    """Each coordinate moves to the nearest value between the limits: no distance increases."""
    shape, low, high = before.shape, stage.numbers["low"], stage.numbers["high"]
    if shape.kind in ("answers", "rounded"):  # differences of coordinates do not grow, nor do they exceed the width
        near = tuple(replace(one, radius=INF) for one in shape.balls)
        ends = clamp(shape.low, low, high), clamp(shape.high, low, high)
        if shape.kind == "rounded" and not all(is_point(end, whole_part(end)) for end in (low, high)):
            return Reach(box(*ends, shape.dim), False)  # between integers there are limits now
        limited = replace(shape, free=False, balls=near, low=ends[0], high=ends[1])
        every = box(*ends, shape.dim)
        smaller = is_whole(shape) and diameter(every, 1.0).b <= diameter(shape, 1.0).a
        return Reach(every if smaller else limited, False)
    if shape.kind == "box" and (shape.values == "reals" or not (low.b <= 0 and high.a >= 1)):
        ends = clamp(shape.low, low, high), clamp(shape.high, low, high)
        if shape.values == "minmax" and ends[0].b >= ends[1].a:  # a constant, perhaps not known to the last digit
            known = box(*ends, shape.dim, 0)
            return Reach(known if known.constant is not None else box(low, high, shape.dim, 0), False)
        return _between(before, *ends, shape.values == "reals", shape.open)
    limit = largest_norm(shape, INFINITE)
    if shape.kind == "box" or (_surely(-low, limit) and _surely(high, limit)):
        return before
    if _at_least(-low, limit) and _at_least(high, limit) and (touched := _scaled_down(shape)) is not None:
        return Reach(touched, False)  # coordinates that move toward 0 stay in it too
    return Reach(box(low, high, shape.dim), False)


def clamp(value: Number, low: Number, high: Number) -> Number:
    """The nearest number between two."""
    return largest([low, smallest([high, value])])


def _repeated(stage: ParsedStage, before: Reach) -> Reach:
    shape, times = before.shape, stage.wholes["times"]
    if shape.dim * times > LARGEST:
        raise CertificateError(f"{times} copies of {shape.dim} coordinates are more than {LARGEST}")
    count = shape.count * times if shape.kind == "repeated" else times
    return Reach(RegionShape("repeated", shape.dim * times, parts=(shape.one,), count=count), before.exact)


def _named(stage: ParsedStage, before: Reach) -> Reach:
    """A list of names, or their vectors. For other inputs it is not known which of them can occur."""
    size, shape = stage.wholes["k"], before.shape
    named = shape.everything or (shape.kind == "categories" and shape.count == size)
    if stage.name == "category":
        return Reach(RegionShape("categories", 1, count=size), before.exact and named)
    return Reach(sparse(size, 1), before.exact and (named or (shape.one_hot and shape.dim == size)))


def _hashed(stage: ParsedStage, before: Reach) -> Reach:
    """Public functions, in the worst case: over all values, every category and every string with few ones can occur."""
    size = stage.wholes["k"]
    found = RegionShape("categories", 1, count=size) if stage.name == "hash" else sparse(size, stage.wholes["hashes"])
    return Reach(found, before.exact and before.shape.everything)


def _query(stage: ParsedStage, before: Reach) -> Reach:
    norm, distance = NORMS[stage.words["norm"]], stage.numbers["distance"]
    if "values" in stage.words:  # counts: distances in l1 and linf are integers too
        whole = iv.mpf([least_whole_part(distance), whole_part(distance)])
        width = distance if norm == 2 and before.shape.dim > 1 else whole
        return Reach(RegionShape("answers", before.shape.dim, balls=(NormBall(norm, width, INF),)), True)
    near = NormBall(norm, distance, INF)
    monotone = stage.words["moves"] == "monotone"
    return Reach(RegionShape("answers", before.shape.dim, balls=(near,), free=True, monotone=monotone), True)


def _noised(stage: ParsedStage, before: Reach) -> Reach:
    """Unbounded values can swamp the noise, so nothing changes for them."""
    return Reach(everything(before.shape.dim), before.exact and before.shape.everything and not may_drop_values(stage))


def _cut(stage: ParsedStage, before: Reach) -> Reach:
    """The choice that comes next determines which scores are the largest."""
    kept = stage.wholes["k"] if stage.wholes["k"] < before.shape.dim else 0
    return replace(before, shape=replace(before.shape, kept=kept))


def _chosen(stage: ParsedStage, before: Reach) -> Reach:
    return Reach(RegionShape("categories", 1, count=before.shape.dim), False)


_RULES: dict[str, Callable[[ParsedStage, Reach], Reach]] = {
    **dict.fromkeys(("dropout", "poisson", "subsample", "shuffle", "times"), lambda stage, before: before),
    "rows": lambda stage, before: Reach(box(-INF, INF, before.shape.dim, 1), True),
    "query": _query,
    "clip": _clipped,
    "normalise": _normalised,
    "minmax": _minmaxed,
    "squash": _squashed,
    "binary": _in_bits,
    "round": _rounded,
    "clamp": _clamped,
    "repeat": _repeated,
    "category": _named,
    "onehot": _named,
    "hash": _hashed,
    "bloom": _hashed,
    **dict.fromkeys(ADDITIVE, _noised),
    "bounded_laplace": lambda stage, before: Reach(
        box(stage.numbers["low"], stage.numbers["high"], before.shape.dim), False
    ),
    "topk": _cut,
    **dict.fromkeys(("exponential", "top-k", "noisymax"), _chosen),
    **dict.fromkeys(DIRECTIONS, lambda stage, before: Reach(before.shape, False)),
    "flip": lambda stage, before: Reach(before.shape, False),
    "bits": lambda stage, before: Reach(bits(before.shape.dim, before.shape.dim), False),
}
