"""Upper bounds: what a theorem says of all pairs of neighbours at once."""

from collections.abc import Callable
from dataclasses import dataclass

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.discrete import bits_upper, category_loss, choice_upper
from dpassay.evidence.verifier.losses import Gaussian, Grid, Leak, Loss, Pure, Renyi, laplace_loss
from dpassay.evidence.verifier.mixtures import overlap
from dpassay.evidence.verifier.numbers import ONE, ZERO, Number, is_infinite, iv
from dpassay.evidence.verifier.regions import INFINITE, NORMS, Shape, Stage, diameter, most_differing, root


@dataclass(frozen=True)
class Evidence:
    """What a theorem needs besides the mechanism: a grid, the order of a Rényi divergence."""

    grid: Grid | None = None
    order: Number | None = None


def upper(theorem: str, stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    """The loss that no two values of a region exceed behind a noise, by the theorem of this name."""
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
    return laplace_loss(_shifts(shape), stage.numbers["scale"], evidence.grid)


def _shifts(shape: Shape) -> list[tuple[Number, int]]:
    """The shift that is worst for Laplace noise at every ε: by how much coordinates move, and how many move so.

    A larger gap in any coordinate is worse, and at equal l1 distance one coordinate is the worst.
    """
    if shape.kind == "repeated":  # repeating is linear, and keeps every symmetry that these statements rest on
        return [(gap, count * shape.count) for gap, count in _shifts(shape.parts[0])]
    if shape.kind in ("ball", "sphere", "apart") and (shape.p in (1.0, INFINITE) or shape.dim == 1):
        width = shape.size if shape.kind == "apart" else 2 * shape.size
        return [(width, shape.dim if shape.p == INFINITE else 1)]
    if shape.kind == "box":
        return [(high - low, count) for low, high, count in shape.sides]
    if shape.kind == "rows" and shape.sides:
        return [(shape.sides[0][1] - shape.sides[0][0], 1)]
    if shape.kind in ("bits", "minmax", "onehot", "sparse"):
        return [(ONE, 0 if shape.dim == 1 and shape.kind != "bits" else most_differing(shape))]
    raise CertificateError(f"the worst shift of the region {shape.kind} is not known")


def _renyi(stage: Stage, shape: Shape, evidence: Evidence) -> Loss:
    """All shifts of a bounded lp norm, p ≥ 2; of two balls each bounds them."""
    if evidence.order is None:
        raise CertificateError("a Rényi divergence needs its order")
    bounds = []
    for part in shape.parts if shape.kind == "both" else (shape,):
        base = part.parts[0] if part.kind == "repeated" else part
        p = max(2.0, base.p) if base.kind in ("ball", "sphere", "apart", "rows") else INFINITE
        shift = _largest(part, p) / stage.numbers["scale"] / root(part.dim, p)
        bounds.append(Renyi(shift, part.dim, evidence.order))
    return min(bounds, key=lambda bound: bound.pure.b)


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
    "gaussian": {"gaussian": _gaussian},
    "radial": {"radial": _radial},
    "one-sided": {"onesided": _one_sided},
    "mixture": {"mixture": lambda stage, shape, _: overlap(stage, shape)},
    "randomized-response": {
        "bits": lambda stage, shape, evidence: bits_upper(stage, shape, evidence.grid),
        "flip": lambda stage, shape, _: category_loss(stage),
    },
    "exponential": {"exponential": lambda stage, shape, _: choice_upper(stage, shape)},
    "no-noise": {"": _constant},
}
