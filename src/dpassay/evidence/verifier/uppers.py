"""Upper bounds: what a theorem says of all pairs of neighbours at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.discrete import bits_upper, category_loss, choice_upper
from dpassay.evidence.verifier.fourier import Fourier
from dpassay.evidence.verifier.levels import Ladder
from dpassay.evidence.verifier.losses import Gaussian, Grid, Leak, Loss, Pure, Renyi, Worst, chance_above, laplace_loss
from dpassay.evidence.verifier.mixtures import overlap
from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, is_infinite, iv, largest, log, middle, smallest
from dpassay.evidence.verifier.regions import (
    INFINITE,
    NORMS,
    Shape,
    Stage,
    diameter,
    even_gap,
    largest_norm,
    most_differing,
    root,
    rounded_steps,
)


@dataclass(frozen=True)
class Evidence:
    """What a theorem needs besides the mechanism: a grid, the order of a Rényi divergence, a tilt."""

    grid: Grid | None = None
    order: Number | None = None
    tilt: Number | None = None


def upper(theorem: str, stage: Stage, shape: Shape, evidence: Evidence, behind: Sequence[Stage] = ()) -> Loss:
    """The loss that no two values of a region exceed behind a noise, by the theorem of this name."""
    if theorem == "post-processing" and stage.name in ("laplace", "gaussian"):
        return _clamped(stage, shape, behind)
    known = _UPPERS.get(theorem, {}).get(stage.name)
    if known is None:
        raise CertificateError(f"no theorem {theorem!r} bounds the loss of {stage.name}")
    return known(stage, shape, evidence)


def _largest(shape: Shape, q: float) -> Number:
    """The largest lq distance, from above."""
    found = diameter(shape, q)
    if is_infinite(found):
        raise CertificateError("nothing bounds the values before the noise")
    return iv.mpf(found.b)


def _laplace(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    return Pure(_largest(shape, 1.0) / stage.numbers["scale"])


def _worst_shift(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    shifts = _shifts(shape)
    return Worst([laplace_loss(shift, stage.numbers["scale"], evidence.grid) for shift in shifts])


def _shifts(shape: Shape) -> list[list[tuple[Number, int]]]:
    """Shifts one of which is worst for Laplace noise at each ε: by how much coordinates move, and how many move so.

    A larger gap in any coordinate is worse, and at equal l1 distance one coordinate is the worst.
    """
    if shape.kind == "repeated":  # repeating is linear, and keeps every symmetry that these statements rest on
        return [[(gap, count * shape.count) for gap, count in shift] for shift in _shifts(shape.parts[0])]
    if shape.kind in ("ball", "sphere", "apart") and (shape.p in (1.0, INFINITE) or shape.dim == 1):
        width = shape.size if shape.kind == "apart" else 2 * shape.size
        return [[(width, shape.dim if shape.p == INFINITE else 1)]]
    if shape.kind == "squashed" and (shape.parts[0].p == INFINITE or shape.dim == 1):
        return [[(even_gap(shape), shape.dim)]]
    if shape.kind == "rounded" and rounded_steps(shape)[1]:
        return [[(iv.mpf(size), count) for size, count in step] for step in rounded_steps(shape)[0]]
    if shape.kind == "box":
        return [[(high - low, count) for low, high, count in shape.sides]]
    if shape.kind == "rows" and shape.sides:
        return [[(shape.sides[0][1] - shape.sides[0][0], 1)]]
    if shape.kind in ("bits", "row-bits", "minmax", "onehot", "sparse"):
        fixed = shape.dim == 1 and shape.kind in ("minmax", "onehot", "sparse")
        return [[(ONE, 0 if fixed else most_differing(shape))]]
    raise CertificateError(f"the worst shift of the region {shape.kind} is not known")


def _renyi(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    if evidence.order is None:
        raise CertificateError("a Rényi divergence needs its order")
    each = [norm / root(shape.dim, p) for norm, p in _norms(stage, shape)]
    return Renyi(smallest(each), shape.dim, evidence.order)


def _saddlepoint(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    norm, even, tilt = _tilted(stage, shape, evidence)
    return Fourier(even * shape.dim, even**2, norm**2, shape.dim, tilt)


def _levels(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    _, even, tilt = _tilted(stage, shape, evidence)
    return Ladder(even * shape.dim, even * iv.sqrt(shape.dim), shape.dim, tilt)


def _tilted(stage: Stage, shape: Shape, evidence: Evidence) -> tuple[Number, Number, float]:
    """The largest norm of a shift, each coordinate of the even one, both in scales, and a tilt."""
    if evidence.tilt is None or not evidence.tilt.a > 0:
        raise CertificateError("a bound on all shifts of a ball needs its tilt, above 0")
    norm, p = min(_norms(stage, shape), key=lambda found: (found[0] / root(shape.dim, found[1])).b)
    return norm, norm / root(shape.dim, p), middle(evidence.tilt)


def _norms(stage: Stage, shape: Shape) -> list[tuple[Number, float]]:
    """The largest lp norm of a shift in scales, and p ≥ 2; of two balls each bounds all shifts."""
    found = []
    for part in shape.parts if shape.kind == "both" else (shape,):
        base = part.parts[0] if part.kind == "repeated" else part
        base = base.parts[0] if base.kind in ("squashed", "rounded") else base
        p = max(2.0, base.p) if base.kind in ("ball", "sphere", "apart", "rows") else INFINITE
        found.append((_largest(part, p) / stage.numbers["scale"], p))
    return found


def _clamped(stage: Stage, shape: Shape, behind: Sequence[Stage]) -> Loss:
    """Nothing beyond the limits of clamps right behind the noise is told: the largest loss is that of the limits."""
    low, high, squashes = -INF, INF, []
    for after in behind:
        if after.name == "squash":
            squashes.append(after.words["kind"])
        elif after.name == "clamp":
            ends = [_before_squashes(squashes, after.numbers[end]) for end in ("low", "high")]
            low, high = largest([low, ends[0]]), smallest([high, ends[1]])
        else:
            break
    total = ZERO
    for least, most, count in _sides(shape):
        up, down = (_beyond(stage, high - most, high - least), _beyond(stage, least - low, most - low))
        total += count * largest([ZERO, up, down])
    return Pure(total)


def _before_squashes(kinds: Sequence[str], value: Number) -> Number:
    """What was squashed to a value; infinite beyond the limits of what squashing gives."""
    for kind in reversed(kinds):
        low = -ONE if kind == "tanh" else ZERO
        if value.b <= low.a or value.a >= 1:
            return -INF if value.b <= low.a else INF
        if not (value.a > low.b and value.b < 1):
            raise CertificateError("a limit cannot be told from that of squashing")
        value = iv.log((value - low) / (1 - value)) / (2 if kind == "tanh" else 1)
    return value


def _beyond(stage: Stage, near: Number, far: Number) -> Number:
    """ln P(Z > near) − ln P(Z > far), near below far; where both are infinite nothing bounds it here."""
    if far.b == INF:
        return INF
    return log(chance_above(stage, ZERO, near)) - log(chance_above(stage, ZERO, far))


def _sides(shape: Shape) -> Sequence[tuple[Number, Number, int]]:
    """Between which limits coordinates differ, and how many of them."""
    if shape.kind == "box":
        return shape.sides
    if shape.kind == "rows" and shape.sides:
        return ((*shape.sides[0][:2], 1),)
    if shape.kind in ("minmax", "bits", "row-bits", "onehot", "sparse"):
        return ((ZERO, ONE, shape.dim),)
    limit = largest_norm(shape, INFINITE)
    if is_infinite(limit):
        raise CertificateError("nothing bounds the values before the noise")
    return ((-iv.mpf(limit.b), iv.mpf(limit.b), shape.dim),)


def _gaussian(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    return Gaussian(_largest(shape, 2.0) / stage.numbers["sigma"])


def _radial(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    return Pure(_largest(shape, NORMS[stage.words["norm"]]) / stage.numbers["scale"])


def _one_sided(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    """An output below the second value gives the first away; of few ones one place at least has a 1 before."""
    rise = iv.mpf(min(shape.count, shape.dim - 1)) if shape.kind == "sparse" else _largest(shape, 1.0)
    return Leak(1 - iv.exp(-rise / stage.numbers["scale"]))


def _constant(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    """What cannot differ cannot be told apart."""
    if diameter(shape, INFINITE).b > 0:
        raise CertificateError("values before the noise can differ")
    return Pure(ZERO)


_UPPERS: dict[str, dict[str, Callable[[Stage, Shape, Evidence], Loss]]] = {
    "laplace": {"laplace": _laplace},
    "worst-shift": {"laplace": _worst_shift, "onesided": _one_sided},
    "renyi": {"laplace": _renyi},
    "saddlepoint": {"laplace": _saddlepoint},
    "levels": {"laplace": _levels},
    "gaussian": {"gaussian": _gaussian},
    "radial": {"radial": _radial},
    "one-sided": {"onesided": _one_sided},
    "mixture": {"mixture": lambda stage, shape, _: overlap(stage, shape)},
    "randomized-response": {
        "bits": lambda stage, shape, evidence: bits_upper(stage, shape, evidence.grid),
        "flip": lambda stage, shape, _: category_loss(stage),
    },
    "exponential": {"exponential": lambda stage, shape, _: choice_upper(stage, shape, by_range=False)},
    "bounded-range": {"exponential": lambda stage, shape, _: choice_upper(stage, shape, by_range=True)},
    "no-noise": {"": _constant},
}
