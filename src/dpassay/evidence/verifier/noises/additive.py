"""Noise that is added to a vector: the loss of one pair, and theorems about all pairs of a region."""

import math
from collections.abc import Sequence

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.lattice import Grid
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    is_infinite,
    iv,
    largest,
    log,
    middle,
    smallest,
)
from dpassay.evidence.verifier.noises.fourier import Fourier
from dpassay.evidence.verifier.noises.levels import Ladder
from dpassay.evidence.verifier.noises.losses import (
    FiniteOutcomes,
    Loss,
    Worst,
    chance_above,
    gaussian_loss,
    laplace_loss,
    leak_loss,
    pure_loss,
    renyi_loss,
)
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, differing, distance
from dpassay.evidence.verifier.regions.regions import (
    INFINITE,
    NORMS,
    ParsedStage,
    RegionShape,
    diameter,
    even_gap,
    largest_norm,
    root,
    rounded_steps,
)

Gaps = list[tuple[Number, int]]  # by how much the second value is larger, and in how many coordinates
_MOST_OUTCOMES = 2000


def laplace_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """The sum of the coordinates' losses."""
    return laplace_loss(differing(pair), stage.numbers["scale"], grid)


def gaussian_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """From the l2 distance alone."""
    return gaussian_loss(distance(pair, 2.0) / stage.numbers["sigma"])


def one_sided_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """An output below the second value reveals the first."""
    ways = [sum((sign * gap * n for gap, n in differing(pair) if (sign * gap).a > 0), ZERO) for sign in (1, -1)]
    return leak_loss(1 - iv.exp(-largest(ways) / stage.numbers["scale"]))


def _largest(shape: RegionShape, q: float) -> Number:
    """The largest lq distance, from above."""
    found = diameter(shape, q)
    if is_infinite(found):
        raise CertificateError("nothing bounds the values before the noise")
    return iv.mpf(found.b)


def laplace_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/laplace.md: at most the l1 diameter over the scale."""
    return pure_loss(_largest(shape, 1.0) / stage.numbers["scale"])


def worst_shift(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/worst-shift.md: at each ε one of a few shifts is the worst."""
    shifts = worst_shifts(shape)
    return Worst([laplace_loss(shift, stage.numbers["scale"], step.grid) for shift in shifts])


def worst_shifts(shape: RegionShape) -> list[list[tuple[Number, int]]]:
    """Shifts one of which is worst for Laplace noise at each ε: how far coordinates move, and how many move that far.

    A larger gap in any coordinate is worse, and at equal l1 distance one coordinate is the worst.
    """
    if shape.kind == "repeated":  # repeating is linear, and preserves every symmetry that these statements rest on
        return [[(gap, count * shape.count) for gap, count in shift] for shift in worst_shifts(shape.one)]
    if len(shape.balls) == 1 and (shape.balls[0].p in (1.0, INFINITE) or shape.dim == 1):
        return [[(shape.balls[0].width, shape.dim if shape.balls[0].p == INFINITE else 1)]]
    if shape.kind == "squashed" and (shape.parts[0].balls[0].p == INFINITE or shape.dim == 1):
        return [[(even_gap(shape), shape.dim)]]
    if shape.kind == "rounded" and rounded_steps(shape)[1]:
        return [[(iv.mpf(size), count) for size, count in step] for step in rounded_steps(shape)[0]]
    if shape.kind == "box" and not is_infinite(shape.high):
        return [[(shape.high - shape.low, shape.differing)]]
    raise CertificateError(f"the worst shift of the region {shape.kind} is not known")


def renyi(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/renyi.md."""
    if step.order is None:
        raise CertificateError("a Rényi divergence needs its order")
    each = [norm / root(shape.dim, p) for norm, p in _norms(stage, shape)]
    return renyi_loss(smallest(each), shape.dim, step.order)


def saddlepoint(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/saddlepoint.md."""
    norm, even, tilt = _tilted(stage, shape, step)
    return Fourier(even * shape.dim, even**2, norm**2, shape.dim, tilt)


def levels(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/levels.md."""
    _, even, tilt = _tilted(stage, shape, step)
    return Ladder(even * shape.dim, even * iv.sqrt(shape.dim), shape.dim, tilt)


def _tilted(stage: ParsedStage, shape: RegionShape, step: Step) -> tuple[Number, Number, float]:
    """The largest norm of a shift, each coordinate of the even one, both in scales, and a tilt."""
    if step.tilt is None or not step.tilt.a > 0:
        raise CertificateError("a bound on all shifts of a ball needs its tilt, above 0")
    norm, p = min(_norms(stage, shape), key=lambda found: (found[0] / root(shape.dim, found[1])).b)
    return norm, norm / root(shape.dim, p), middle(step.tilt)


def _norms(stage: ParsedStage, shape: RegionShape) -> list[tuple[Number, float]]:
    """The largest lp norm of a shift in scales, and p ≥ 2; with two balls each bounds all shifts."""
    base = shape.one.parts[0] if shape.one.parts else shape.one  # before squashing or rounding
    found = [max(2.0, one.p) for one in base.balls] or [2.0 if base.differing == 1 else INFINITE]
    return [(_largest(shape, p) / stage.numbers["scale"], p) for p in found]


def clamped(stage: ParsedStage, shape: RegionShape, behind: Sequence[ParsedStage]) -> Loss:
    """Nothing beyond the limits of clamps right after the noise is visible: the largest loss is that of the limits."""
    low, high, squashes = -INF, INF, []
    for after in behind:
        if after.name == "squash":
            squashes.append(after.words["kind"])
        elif after.name == "clamp":
            ends = [_before_squashes(squashes, after.numbers[end]) for end in ("low", "high")]
            low, high = largest([low, ends[0]]), smallest([high, ends[1]])
        else:
            break
    least, most, count = _sides(shape)
    up, down = _beyond(stage, high - most, high - least), _beyond(stage, least - low, most - low)
    return pure_loss(count * largest([ZERO, up, down]) if count else ZERO)


def _before_squashes(kinds: Sequence[str], value: Number) -> Number:
    """The value before squashing; infinite beyond the limits of squashed values."""
    for kind in reversed(kinds):
        low = -ONE if kind == "tanh" else ZERO
        if value.b <= low.a or value.a >= 1:
            return -INF if value.b <= low.a else INF
        if not (value.a > low.b and value.b < 1):
            raise CertificateError("a limit cannot be distinguished from that of squashing")
        value = iv.log((value - low) / (1 - value)) / (2 if kind == "tanh" else 1)
    return value


def _beyond(stage: ParsedStage, near: Number, far: Number) -> Number:
    """ln P(Z > near) − ln P(Z > far), near below far; if both are infinite, there is no bound here."""
    if far.b == INF:
        return INF
    return log(chance_above(stage, ZERO, near)) - log(chance_above(stage, ZERO, far))


def _sides(shape: RegionShape) -> tuple[Number, Number, int]:
    """The limits between which coordinates differ, and how many differ."""
    limit = iv.mpf(largest_norm(shape, INFINITE).b)
    if is_infinite(limit):
        raise CertificateError("nothing bounds the values before the noise")
    return (shape.low, shape.high, shape.differing) if shape.kind == "box" else (-limit, limit, shape.dim)


def gaussian_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/gaussian.md: the farthest pair in l2 is the worst."""
    return gaussian_loss(_largest(shape, 2.0) / stage.numbers["sigma"])


def radial_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/radial.md: at most the diameter in the noise's norm over the scale."""
    return pure_loss(_largest(shape, NORMS[stage.words["norm"]]) / stage.numbers["scale"])


def mahalanobis_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """docs/proofs/radial.md, point 6: at most the l2 diameter over the root of the least eigenvalue, and the scale."""
    return pure_loss(_largest(shape, 2.0) / (stage.numbers["scale"] * iv.sqrt(stage.numbers["least"])))


def one_sided_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """An output below the second value reveals the first; with few ones, at least one position has a 1 before."""
    rise = iv.mpf(min(shape.ones, shape.dim - 1)) if shape.values == "sparse" else _largest(shape, 1.0)
    return leak_loss(1 - iv.exp(-rise / stage.numbers["scale"]))


# ── Exponential noise that may be left out, or lost together with its value ─────────────────────


def mixture_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """The loss of one pair, the larger of both directions.

    If all coordinates move the same way, only outputs that reveal the value matter: other losses are not positive.
    """
    gaps = differing(pair)
    ways = [[(sign * gap, n) for gap, n in gaps] for sign in (1, -1)]
    mixed = all(any(gap.a > 0 for gap, _ in way) for way in ways)
    if mixed and math.prod(count + 1 for _, count in gaps) <= _MOST_OUTCOMES:
        return Worst([FiniteOutcomes(_outcomes(stage, way)) for way in ways])
    return leak_loss(largest(leak(stage, way) for way in ways))


def _weight(stage: ParsedStage) -> Number:
    """The probability that noise is added at all."""
    return stage.numbers.get("weight", ZERO)


def _shared(stage: ParsedStage, gap: Number) -> Number:
    """The probability that added noise leaves a value where one that is `gap` larger can be too."""
    return ZERO if is_infinite(gap) or "scale" not in stage.numbers else iv.exp(-gap / stage.numbers["scale"])


def leak(stage: ParsedStage, gaps: Gaps) -> Number:
    """The probability that an output reveals the first value: it hits the atom, or lies where the second cannot be."""
    hidden = ONE
    for gap, count in gaps:
        shown = stage.numbers["atom"]
        if gap.a > 0:
            shown += _weight(stage) * (1 - _shared(stage, gap))
        hidden *= (1 - shown) ** count
    return largest([ZERO, 1 - hidden])


def _outcomes(stage: ParsedStage, gaps: Gaps) -> tuple[tuple[Number, Number], ...]:
    """What is visible: how many coordinates of each group are lost, with the others' noise where both can be.

    There the two densities have a constant ratio. The second value cannot give any other output.
    """
    lost, weight, seen = stage.numbers["lost"], _weight(stage), [(ONE, ONE)]
    for gap, count in gaps:
        shared = weight * _shared(stage, abs(gap))
        p, q = (shared, weight) if gap.a > 0 else (weight, shared)
        ways = [(math.comb(count, k) * lost ** (count - k), k) for k in range(count + 1)]
        seen = [(a * way * p**k, b * way * q**k) for a, b in seen for way, k in ways]
    return (*seen, (leak(stage, gaps), ZERO))


def overlap(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """No event distinguishes two laws by more than the mass they do not share; each coordinate shares this much.

    For balls and similar regions the even pair shares the least.
    """
    even = shape.one.balls or shape.one.kind == "squashed"
    gap, common = even_gap(shape.one) if even else diameter(shape, INFINITE), stage.numbers["lost"]
    if gap.b <= 0:
        return pure_loss(ZERO)
    common += _weight(stage) * _shared(stage, iv.mpf(gap.b))
    return leak_loss(largest([ZERO, 1 - common**shape.most_differing]))
