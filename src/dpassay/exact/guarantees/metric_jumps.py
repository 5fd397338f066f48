"""Inputs that come arbitrarily close without a smaller loss, so that no ε holds per unit of distance.

docs/proofs/metric.md, point 6. A noise may lose a fixed amount between any two different values; rounded values jump;
vectors near 0 that are normalized have any directions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, floor, maximum, minimum, real
from dpassay.exact.dataflow.post_processing import thresholds_told
from dpassay.exact.mechanisms.questions import least_loss
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bounds.round import Round
from dpassay.pipeline.stages.bounds.scaling import Clip, MinMaxScale, Normalise
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.stages.noises.directions import Direction
from dpassay.pipeline.syntax import NORMS

_HALF = ONE / 2
# Powers of two, so that vectors along an axis are normalized exactly; a certificate has 45 digits.
_SIZES = tuple(real(2) ** -power for power in (-1, 0, 3, 10, 20, 30, 40, 60, 90, 120))
Family = Callable[[Number], Pair]  # two inputs that differ by a given size in a coordinate or two


def jump(
    before: tuple[Stage, ...], noise: Stage | None, after: tuple[Stage, ...], dim: int, claimed: Number, q: float
) -> tuple[bool, Pair | None]:
    """Whether inputs of `dim` coordinates, however near in lq, lose a fixed amount; a pair that exceeds the claim.

    The pair is the first found whose loss is larger than the claimed ε times its distance.
    """
    if not _shows(noise, after):
        return False, None
    jumps = False
    for family in _families(before, dim):
        for size in _SIZES:
            pair = family(size)
            image = _carried(before, pair)
            loss = ZERO if image is None else least_loss_between(noise, image)
            if not loss.a > 0:
                continue
            # Any two different outputs will do if every two lose a fixed amount, or if there are countably many.
            jumps = jumps or _fixed_loss(noise) or any(stage.jumps for stage in before)
            jumps = jumps or _any_direction(before, pair)
            if jumps and (loss - claimed * pair.distance(q)).a > 0:
                return True, pair
    return jumps, None


def _shows(noise: Stage | None, after: tuple[Stage, ...]) -> bool:
    """Whether the stages after the noise leave of every output, or of those far out, what distinguishes two inputs."""
    told = thresholds_told(after)
    if noise is None:
        return True
    if told is None or any(stage.random for stage in after):
        return False
    if noise.added_noise is not None and noise.added_noise.known_tails:
        return told.unlimited
    if noise.added_noise is not None or isinstance(noise, BoundedLaplace | Direction):
        return told.everything
    return told.unlimited and all(stage.keeps == "all" or isinstance(stage, Round) for stage in after)


def _fixed_loss(noise: Stage | None) -> bool:
    """Whether any two different values before the noise lose at least a fixed amount."""
    return noise is None or (noise.added_noise is not None and noise.added_noise.fixed_loss)


def _any_direction(before: tuple[Stage, ...], pair: Pair) -> bool:
    """Whether the first stage that ignores the size of a vector maps the pair, however small, to the same two vectors.

    The pair is two unit vectors times a size, or the same around a constant vector; or ± the size in one coordinate.
    """
    at = next((i for i, stage in enumerate(before) if isinstance(stage, Normalise | MinMaxScale)), None)
    if at is None or not all(stage.contracts for stage in before[:at]):
        return False
    first, *rest = pair.blocks
    opposite = bool(first.x == -first.y and first.count == 1 and all(b.x == 0 and b.same for b in rest))
    if not opposite and not _is_corner(pair):
        return False
    centre = ZERO if opposite else minimum(first.x, first.y)
    for stage in before[:at]:
        moved = stage.image(centre)
        if stage.limits is not None:  # around the center, or above it
            low, high = stage.limits
            inside = low.b < centre.a if opposite else low.b <= centre.a
            if not (inside and centre.b < high.a):
                return False
        elif moved is not None:
            centre = moved
        elif not centre == 0:
            return False  # clipping would move the center
    return (isinstance(before[at], MinMaxScale) and len(rest) > 0) or bool(centre == 0)


def _is_corner(pair: Pair) -> bool:
    """Whether one coordinate rises in the first vector and one other in the second, from a constant vector."""
    first, second, *rest = (*pair.blocks, None)
    if first is None or second is None or first.count != 1 or second.count != 1:
        return False
    swapped = first.x == second.y and first.y == second.x and not first.same
    return bool(swapped and all(block is None or (block.same and block.x == first.y) for block in rest))


def _families(before: Sequence[Stage], dim: int) -> Iterator[Family]:
    """Pairs around points where stages may jump: 0, halves, and the middle of what clamps let pass."""
    limits = [stage.limits for stage in before if stage.limits is not None]
    centres = [ZERO, _HALF, -_HALF]
    for low, high in limits:
        middle = (low + high) / 2
        centres += [real(int(float(middle.mid) // 1)) + _HALF, real(middle.mid), low]
    for centre in centres:
        for rest in (centre, ZERO):
            if rest is centre or not centre == 0:
                yield lambda size, centre=centre, rest=rest: _with_rest(  # type: ignore[misc]
                    (Block(centre - size / 2, centre + size / 2, 1),), rest, dim
                )
        if dim > 1:
            yield lambda size, centre=centre: _with_rest(  # type: ignore[misc]
                (Block(centre + size, centre, 1), Block(centre, centre + size, 1)), centre, dim
            )


def _with_rest(blocks: tuple[Block, ...], rest: Number, dim: int) -> Pair:
    return Pair((*blocks, Block(rest, rest, dim - len(blocks))) if dim > len(blocks) else blocks)


def _carried(stages: Sequence[Stage], pair: Pair) -> Pair | None:
    """What stages make of a pair, if that is certain; a clip that scales, and other stages, are not followed."""
    for stage in stages:
        if isinstance(stage, Binary):
            found = _in_bits(stage, pair)
            if found is None:
                return None
            pair = found
            continue
        sides = [_vector(stage, [(getattr(block, side), block.count) for block in pair.blocks]) for side in "xy"]
        if sides[0] is None or sides[1] is None:
            return None
        blocks = zip(pair.blocks, sides[0], sides[1], strict=True)
        pair = Pair(tuple(replace(block, x=x, y=x if block.same else y) for block, x, y in blocks))
    return pair


def _vector(stage: Stage, values: list[tuple[Number, int]]) -> list[Number] | None:
    plain = [value for value, _ in values]
    if isinstance(stage, Clip):
        size = Pair(tuple(Block(value, ZERO, count) for value, count in values)).distance(NORMS[stage.norm])
        return plain if size.b <= stage.radius.a else None
    if isinstance(stage, Normalise):
        nonzero = [(value, count) for value, count in values if not value == 0]
        if len(nonzero) == 1 and nonzero[0][1] == 1 and abs(nonzero[0][0]).a > 0:  # an axis, whose image is exact
            return [ZERO if value == 0 else ONE if value.a > 0 else -ONE for value in plain]
        size = Pair(tuple(Block(value, ZERO, count) for value, count in values)).distance(2)
        return [value / size for value in plain] if size.a > 0 else plain if size.b == 0 else None
    if isinstance(stage, MinMaxScale):
        low, high = minimum(*plain), maximum(*plain)
        if not (high - low).a > 0:
            return None
        ends = ((low, ZERO), (high, ONE))  # whose images are exact
        return [next((to for end, to in ends if value == end), (value - low) / (high - low)) for value in plain]
    images = [_nearest(value) if isinstance(stage, Round) else stage.image(value) for value in plain]
    return [value for value in images if value is not None] if None not in images else None


def _nearest(value: Number) -> Number | None:
    """The nearest integer, if it is certain and not a tie."""
    near = real(floor(value + _HALF))
    return near if abs(value - near).b < _HALF.a else None


def _in_bits(stage: Binary, pair: Pair) -> Pair | None:
    """Numbers so near 0 that only their signs are written, with 0 for those that are not negative."""
    least, bits = real(2) ** -stage.fraction, 1 + stage.integer + stage.fraction
    ends = [end for block in pair.blocks for end in (block.x, block.y)]
    if any(not abs(end).b < least.a or end.a < 0 <= end.b for end in ends) or pair.blocks[0].count != 1:
        return None
    x, y = (ONE if end.b < 0 else ZERO for end in ends[:2])
    first = Block(x, y, 1, "even")
    if any(not block.same or block.x.b < 0 for block in pair.blocks[1:]):
        return None
    total = bits * sum(block.count for block in pair.blocks)
    counts = (("even", total - total // 2 - 1), ("odd", total // 2))
    return Pair((first, *(Block(ZERO, ZERO, count, parity) for parity, count in counts if count)))  # type: ignore[arg-type]


def least_loss_between(noise: Stage | None, pair: Pair) -> Number:
    """The largest loss between two values before a noise, or something less; 0 if nothing is known."""
    if not any(block.gap.a > 0 or block.gap.b < 0 for block in pair.blocks):
        return ZERO
    return INFINITY if noise is None else least_loss(noise.added_noise or noise, pair)
