"""What two given vectors show: a lower bound for a mechanism in which neighbours can have them.

Vectors come in blocks (x, y, count, positions): so many coordinates in which the first is x and the second y. They are
carried to the noise in 50 digits; behind it only functions that lose nothing, or of which the signs are left, are
known.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from mpmath import mp, mpf

from oracle.choices import pair_of_choices
from oracle.losses import ALL_LOST, INF, Ends, Finite, Truth, gaussian_pair, laplace_pair, one_sided
from oracle.noises import (
    discrete_gaussian_pair,
    discrete_laplace_pair,
    near_whole,
    staircase_pair,
    truncated_pair,
    worst,
)
from oracle.placed import bounded_pairs, direction_truth
from oracle.text import Stage, Unreadable
from oracle.values import ADDITIVE, DIRECTIONS, NOISES, WHOLE_NOISES, P, Values, walk, whole
from oracles import normal_cdf

MOST_BITS, HAIR = 10, mpf(10) ** -30


@dataclass(frozen=True)
class Block:
    """`count` coordinates in which the first vector is x and the second y; at even or odd places, or all."""

    x: mpf
    y: mpf
    count: int
    positions: str = "all"


def norm(values: Sequence[tuple[mpf, int]], p: mpf) -> mpf:
    """The lp norm of a vector given by its values and how many there are of each."""
    if mp.isinf(p):
        return max((abs(v) for v, _ in values), default=mpf(0))
    return mp.fsum(n * abs(v) ** p for v, n in values) ** (1 / p)


def possible(v: Values, pair: Sequence[Block], added: bool = False) -> bool:
    """Whether neighbours can have these two vectors, where the set says so for sure.

    With `added` they are sums, and one record brings the difference.
    """
    if added:
        ways = [[Block(s * (b.x - b.y), mpf(0), b.count, b.positions) for b in pair] for s in (1, -1)]
        return any(_inside(v, [(b.x, b.count) for b in way]) for way in ways)
    if not v.tight or v.times != 1 or sum(b.count for b in pair) != v.dim:
        return False
    sides = [[(b.x, b.count) for b in pair], [(b.y, b.count) for b in pair]]
    if v.rounded and any(x != mp.nint(x) for b in pair for x in (b.x, b.y)):
        return False
    if v.kind == "query":
        return bool(norm([(b.x - b.y, b.count) for b in pair], v.p) <= v.size * (1 + HAIR))
    if v.kind == "rows" and sum(b.count for b in pair if b.x != b.y) > 1:
        return False
    return all(_inside(v, side) for side in sides)


def _inside(v: Values, side: Sequence[tuple[mpf, int]]) -> bool:
    if not v.tight or v.times != 1 or sum(n for _, n in side) != v.dim:
        return False
    if v.rounded and any(x != mp.nint(x) for x, _ in side):
        return False
    ones = sum(n for value, n in side if value == 1)
    kinds = {value for value, _ in side}
    bits = kinds <= {0, 1}
    between = all(v.low - HAIR <= value <= v.high + HAIR for value in kinds)
    return bool(
        {
            "everything": True,
            "ball": norm(side, v.p) <= v.size * (1 + HAIR),
            "sphere": abs(norm(side, mpf(2)) - 1) <= HAIR,
            "box": between,
            "rows": between,
            "bits": bits,
            "onehot": bits and ones == 1,
            "minmax": all(0 <= x <= 1 for x in kinds) and (kinds == {0} or {0, 1} <= kinds),
            "sparse": bits and 1 <= ones <= v.size,
        }.get(v.kind, False)
    )


def _side(stage: Stage, values: list[tuple[mpf, int]]) -> list[mpf]:
    plain = [value for value, _ in values]
    if stage.name in ("clip", "normalise"):
        size = norm(values, P[str(stage.norm)])
        target = stage.radius if stage.name == "clip" else mpf(1)
        return [v * min(mpf(1), target / size) if stage.name == "clip" else v / size for v in plain] if size else plain  # type: ignore[operator, type-var]
    if stage.name == "minmax":
        low, high = min(plain), max(plain)
        return [(v - low) / (high - low) if high > low else mpf(0) for v in plain]
    if stage.name == "squash":
        return [mp.tanh(v) if stage.kind == "tanh" else 1 / (1 + mp.exp(-v)) for v in plain]
    if stage.name == "clamp":
        return [max(stage.low, min(stage.high, v)) for v in plain]  # type: ignore[type-var]
    if stage.name == "round":
        if any(abs(v - mp.floor(v) - mpf(1) / 2) < HAIR for v in plain):
            raise Unreadable("between two whole numbers")
        return [mp.nint(v) for v in plain]
    raise Unreadable(f"{stage.name} is not followed")


def carried(between: Sequence[Stage], pair: Sequence[Block]) -> list[Block]:
    """What stages without noise make of the two vectors."""
    found = list(pair)
    for stage in between:
        if stage.name in ("encode", "decode", "dropout"):
            continue
        if stage.name == "repeat":
            found = [Block(b.x, b.y, b.count * whole(stage.times), b.positions) for b in found]
            continue
        xs, ys = (_side(stage, [(getattr(b, side), b.count) for b in found]) for side in ("x", "y"))
        found = [Block(x, y, b.count, b.positions) for x, y, b in zip(xs, ys, found, strict=True)]
    return found


def _bits(chances: Sequence[tuple[mpf, mpf, int]]) -> Truth:
    """Independent bits with these probabilities of a 1 under the one and the other vector; the rest is equal."""
    each = [(p, q) for p, q, n in chances if p != q for _ in range(n)]
    if len(each) > MOST_BITS:
        raise Unreadable("too many bits")
    rows = [
        [
            mp.fprod(c if o else 1 - c for c, o in zip(side, out, strict=True))
            for out in itertools.product((0, 1), repeat=len(each))
        ]
        for side in ([p for p, _ in each], [q for _, q in each])
    ]
    return Finite(rows).truth()


def _above_zero(noise: Stage, centre: mpf) -> mpf:
    if noise.name == "gaussian":
        return normal_cdf(centre / noise.sigma)
    tail = mp.exp(-abs(centre) / noise.scale) / 2  # type: ignore[operator]
    return 1 - tail if centre > 0 else tail


def _keeps(after: Sequence[Stage]) -> str:
    names = {stage.name if stage.name != "squash" else str(stage.kind) for stage in after}
    if names <= {"encode", "decode", "tanh", "sigmoid", "repeat"}:
        return "all"
    if names <= {"encode", "decode", "round"}:
        return "tails"
    last = after[-1].name if after else ""
    inner = names - ({"binary"} if last in ("binary", "decode") else set())
    return "signs" if inner <= {"encode", "decode", "tanh", "clip", "normalise"} else ""


def shown(all_stages: Sequence[Stage], dim: int, added: bool, position: int, at: int, pair: Sequence[Block]) -> Truth:
    """What the pair shows behind the first noise, or Unreadable where that is not known here.

    With `added` a record is added or removed: before the noise x is what it brings, there the pair is of two sums.
    """
    first = next((i for i, stage in enumerate(all_stages) if stage.name in NOISES), None)
    if first is None or position != first or not 0 <= at <= position or not pair:
        raise Unreadable("no pair at the first noise")
    v = walk(all_stages[:at], dim)
    if at == 0 and all_stages[0].name in DIRECTIONS:
        v = Values("sphere", dim, size=mpf(1))
    if not possible(v, pair, added and at == position):
        raise Unreadable("not a pair that neighbours are known to have")
    found, noise, after = carried(all_stages[at:first], pair), all_stages[first], list(all_stages[first + 1 :])
    if added and at < position:
        found = [Block(b.x, mpf(0), b.count, b.positions) for b in found]
    single = sum(b.count for b in found) == 1
    if noise.name == "radial" and (noise.norm == "l1" or single):
        noise = Stage("laplace", {"scale": noise.scale})
    if noise.name == "mahalanobis" and single:
        noise = Stage("laplace", {"scale": noise.scale * mp.sqrt(noise.least)})  # type: ignore[arg-type, operator]
    keeps = _keeps(after)
    gaps = [(abs(b.x - b.y), b.count) for b in found if b.x != b.y]
    if keeps == "signs" and noise.name in ("laplace", "gaussian") and not (added and at == position):
        return _bits([(_above_zero(noise, b.x), _above_zero(noise, b.y), b.count) for b in found])
    if keeps == "tails" and noise.name == "laplace":
        return Truth((norm(gaps, mpf(1)) / noise.scale, INF), lambda e: (mpf(0), mpf(1)))  # type: ignore[operator]
    if keeps == "tails" and noise.name == "gaussian" and gaps:
        return Truth((INF, INF), lambda e: (mpf(0), mpf(1)))
    if keeps != "all" and (keeps != "tails" or noise.name in ADDITIVE):
        raise Unreadable("what is left behind the noise is not known")
    return _of(noise, found, gaps)


def _of(noise: Stage, found: Sequence[Block], gaps: Sequence[tuple[mpf, int]]) -> Truth:
    if noise.name == "laplace":
        return laplace_pair([(gap / noise.scale, n) for gap, n in gaps])  # type: ignore[operator]
    if noise.name == "gaussian":
        return gaussian_pair(norm(gaps, mpf(2)) / noise.sigma)  # type: ignore[operator]
    if noise.name == "radial":
        pure = norm(gaps, P[str(noise.norm)]) / noise.scale  # type: ignore[operator]
        return Truth((pure, INF), lambda e: (mpf(0), mpf(1)))
    if noise.name == "mahalanobis":  # where the coordinates lie is not said: the eigenvalue is at most the largest,
        first = found[0].count == 1 and all(b.x == b.y for b in found[1:])  # or of the first one the least
        own = noise.least if first else noise.largest
        pure = norm(gaps, mpf(2)) / (noise.scale * mp.sqrt(own))  # type: ignore[operator, arg-type]
        return Truth((pure, INF), lambda e: (mpf(0), mpf(1)))
    if noise.name in DIRECTIONS:
        return _directions(noise, found, gaps)
    if noise.name in WHOLE_NOISES:
        if any(near_whole(gap) != mp.nint(gap) for gap, _ in gaps):
            return ALL_LOST
        shifts = [(mp.nint(gap), n) for gap, n in gaps]
        if noise.name == "discrete_laplace":
            return discrete_laplace_pair(shifts, noise.scale)  # type: ignore[arg-type]
        return discrete_gaussian_pair(shifts, noise.sigma)  # type: ignore[arg-type]
    if noise.name == "staircase":
        return staircase_pair([(gap / noise.sensitivity, n) for gap, n in gaps], noise)  # type: ignore[operator]
    if noise.name == "truncated_laplace":
        scale = noise.scale
        return truncated_pair([(gap / scale, n) for gap, n in gaps], noise.bound / scale)  # type: ignore[operator]
    if noise.name == "bounded_laplace":
        return _bounded(noise, found)
    if noise.name == "noisymax":
        scale = noise.scale
        return pair_of_choices(str(noise.noise), [(b.x / scale, b.y / scale, b.count) for b in found])  # type: ignore[operator]
    if noise.name == "onesided" and noise.zero == noise.lost == 0:
        rises = [mp.fsum(max(mpf(0), s * (b.y - b.x)) * b.count for b in found) for s in (1, -1)]
        return one_sided(max(rises) / noise.scale)  # type: ignore[operator]
    if noise.name in ("onesided", "leak"):  # where any coordinate tells, it is known which vector was there
        own = noise.zero if noise.name == "onesided" else noise.chance
        rest = 1 - own - noise.lost if noise.name == "onesided" else mpf(0)  # type: ignore[operator]
        least = []
        for sign in (1, -1):
            rises = [(max(mpf(0), sign * (b.y - b.x)), b.count) for b in found if b.x != b.y]
            hides = [(1 - own - rest * -mp.expm1(-r / (noise.scale if rest else 1))) ** n for r, n in rises]  # type: ignore[operator]
            least.append(1 - mp.fprod(hides))
        return Truth((INF if max(least) > 0 else mpf(0), INF), lambda e: (max(least), mpf(1)))
    if noise.name == "exponential":
        sides = [[noise.rate * getattr(b, side) for b in found] for side in ("x", "y")]  # type: ignore[operator]
        weights = [[b.count * mp.exp(s - max(side)) for s, b in zip(side, found, strict=True)] for side in sides]
        return Finite([[w / mp.fsum(row) for w in row] for row in weights]).truth()
    if noise.name == "flip" and all(value in (0, 1) for b in found for value in (b.x, b.y)):
        keep: mpf = noise.keep  # type: ignore[assignment]
        return _bits([(keep if b.x else 1 - keep, keep if b.y else 1 - keep, b.count) for b in found])
    if noise.name == "bits" and all(b.positions in ("even", "odd") for b in found):
        chances = []
        for b in found:
            one: mpf = noise.even if b.positions == "even" else noise.odd  # type: ignore[assignment]
            chances.append((one if b.x else noise.zero, one if b.y else noise.zero, b.count))
        return _bits(chances)  # type: ignore[arg-type]
    raise Unreadable(f"{noise.name} is not followed")


def _directions(noise: Stage, found: Sequence[Block], gaps: Sequence[tuple[mpf, int]]) -> Truth:
    """The loss is κ times the distance, or the angle; of opposite vectors all of it is known."""
    far, dim = norm(gaps, mpf(2)), sum(b.count for b in found)
    if abs(far - 2) <= HAIR:
        return direction_truth(Values("sphere", dim, size=mpf(1)), noise)
    pure = noise.kappa * (far if noise.name == "vmf" else 2 * mp.asin(far / 2))  # type: ignore[operator]
    return Truth((pure, INF), lambda e: (mpf(0), mpf(1)))


def _bounded(noise: Stage, found: Sequence[Block]) -> Truth:
    low, high, scale = noise.low, noise.high, noise.scale
    width = (high - low) / scale  # type: ignore[operator]

    def inside(x: mpf) -> mpf:
        return min(width, max(mpf(0), (x - low) / scale))  # type: ignore[operator]

    ends = [(inside(b.x), inside(b.y), b.count) for b in found]
    return worst([bounded_pairs(way, width) for way in (ends, [(y, x, n) for x, y, n in ends])])


def proves(known: Truth) -> Truth:
    """A pair's loss as a bound from below."""

    def delta(e: mpf) -> Ends:
        return known.delta(e)[0], mpf(1)

    return Truth((known.pure[0], INF), delta)
