"""From stages, regions and neighbours to bounds on the privacy loss, as the theorems give them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier import lattice, normal
from dpassay.evidence.verifier.ceilings import Dropped, Pure, Renyi, Worst
from dpassay.evidence.verifier.curves import Certain, Curve, Gaussian, Leak, OneSided, Summed
from dpassay.evidence.verifier.discrete import bits_curve, discrete_bounds
from dpassay.evidence.verifier.losing import losing_curve, one_sided, overlap
from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, hull, is_infinite, iv, largest, smallest
from dpassay.evidence.verifier.pairs import Pair, differing, distance, farthest, laplace_pairs, passed_on
from dpassay.evidence.verifier.regions import (
    ADDITIVE,
    INFINITE,
    NOISES,
    Reach,
    Shape,
    Stage,
    diameter,
    loses,
    most_differing,
    root,
)

# What is left of an output behind a stage: all of it, events far out, signs; nothing that is known behind the others.
_KEEPS = {
    "encode": "all",
    "decode": "all",
    "squash": "all",
    "repeat": "all",
    "round": "tails",
    "clip": "signs",
    "normalise": "signs",
    "binary": "signs",
}

Ends = tuple[Number, Number]


@dataclass(frozen=True)
class Bounds:
    """Curves of real pairs (from below), curves for all pairs (from above), and a bound for δ = 0 alone."""

    lowers: tuple[Curve, ...]
    uppers: tuple[Curve, ...]
    rare: Number = ZERO

    def pure_ends(self) -> Ends:
        """The best lower and the best upper bound on ε at δ = 0."""
        low = largest([ZERO, self.rare, *(curve.pure for curve in self.lowers)])
        return low, smallest([INF, *(curve.pure for curve in self.uppers)])

    def delta_ends(self, epsilon: Number) -> Ends:
        """The best lower and the best upper bound on δ at an ε."""
        low = largest([ZERO, *(curve.delta(epsilon) for curve in self.lowers)])
        return low, smallest([ONE, *(curve.delta(epsilon) for curve in self.uppers)])

    def epsilon_ends(self, delta: Number) -> Ends:
        """The best lower and the best upper bound on ε at a δ > 0."""
        low = largest([ZERO, *(curve.epsilon(delta) for curve in self.lowers)])
        return low, smallest([INF, *(curve.epsilon(delta) for curve in self.uppers)])

    def pure(self) -> Number:
        """ε at δ = 0, from a lower to an upper bound."""
        return _joined(*self.pure_ends())

    def delta(self, epsilon: Number) -> Number:
        """δ at an ε, from a lower to an upper bound."""
        return _joined(*self.delta_ends(epsilon))

    @property
    def quick(self) -> list[Curve]:
        """The upper curves that need no lattice."""
        return [c for c in self.uppers if not _on_lattice(c)]

    @property
    def closed(self) -> bool:
        """Whether nothing here rests on a lattice or a search."""
        return all(curve.closed for curve in (*self.lowers, *self.uppers))


def _on_lattice(curve: Curve) -> bool:
    if isinstance(curve, Dropped):
        return _on_lattice(curve.curve)
    if isinstance(curve, Worst):
        return any(_on_lattice(c) for c in curve.curves)
    return isinstance(curve, Summed) and not curve.closed


def _joined(low: Number, high: Number) -> Number:
    """From the lower end of a lower bound to the upper end of an upper bound."""
    return hull(low, high) if low.a <= high.b else hull(high, low)


def analyse(stages: Sequence[Stage], reaches: Sequence[Reach], neighbours: str, only: Pair | None = None) -> Bounds:
    """Bound the loss of a pipeline; reaches[i] is what comes into stage i.

    If one pair is given, the bounds from below are those of this pair.
    """
    _check_neighbours(stages, neighbours)
    positions = [i for i, stage in enumerate(stages) if stage.name in NOISES]
    pipeline = _Pipeline(stages, reaches, neighbours, only)
    if not positions:
        bounds = _without_noise(pipeline)
    elif len(positions) == 1:
        bounds = _at(pipeline, positions[0])
    else:
        bounds = _several(pipeline, positions)
    mu = dropped(stages, neighbours)
    if mu.b <= 0:
        return bounds
    rare = Dropped(Pure(bounds.rare), mu).pure if bounds.rare.b > 0 else ZERO
    return Bounds(
        tuple(Dropped(curve, mu) for curve in bounds.lowers), tuple(Dropped(curve, mu) for curve in bounds.uppers), rare
    )


def _check_neighbours(stages: Sequence[Stage], neighbours: str) -> None:
    """A query and rows bound how far apart records' changes take them; of other neighbours they say nothing."""
    known = {"query": ("query", "replace-record", "add-remove-record"), "rows": ("replace-record",)}
    first = stages[0].name if stages else ""
    if first in known and neighbours not in known[first]:
        raise CertificateError(f"{first} says nothing of the neighbours {neighbours}")


def dropped(stages: Sequence[Stage], neighbours: str) -> Number:
    """The probability that the differing word is dropped; of no help where neighbours differ in more than one."""
    kept = ONE
    for stage in stages:
        if stage.name == "dropout" and neighbours == "word":
            kept *= 1 - stage.numbers["mu"]
    return ZERO if kept.a == 1 else 1 - kept


@dataclass(frozen=True)
class _Pipeline:
    """Stages, what comes into each, and of which neighbours we speak."""

    stages: Sequence[Stage]
    reaches: Sequence[Reach]
    neighbours: str
    only: Pair | None

    def at(self, position: int) -> tuple[Reach, list[Pair]]:
        """What two neighbours can bring to a noise, and where that is an outer bound, pairs that surely can come."""
        reach = brought(self.stages, self.reaches, position, self.neighbours)
        if self.only is not None:
            return replace(reach, exact=False), [self.only]
        return reach, possible_pairs(self.stages, self.reaches, position, self.neighbours)


def _without_noise(pipeline: _Pipeline) -> Bounds:
    stages, reaches = pipeline.stages, pipeline.reaches
    reach = reaches[-1]
    for_neighbours(reach, pipeline.neighbours)  # refuses where nobody can say what no record gives
    pairs = [farthest(reach.shape, 1.0)] if reach.exact else passed_on(stages, reaches, len(stages))
    pairs = pairs if pipeline.only is None else [pipeline.only]
    if any(distance(pair, 1.0).a > 0 for pair in pairs):
        return Bounds((Certain(),), (Certain(),))
    constant = diameter(reach.shape, INFINITE).b <= 0
    return Bounds((), (Pure(ZERO) if constant else Certain(),))


def kept_after(stages: Sequence[Stage]) -> str:
    """What the stages after a noise leave of its output."""
    kept, squashed = set(), ""
    for stage in stages:
        if stage.name in ADDITIVE:
            continue
        what = _KEEPS.get(stage.name, "nothing")
        # What was squashed has no far-out values any more, and behind a sigmoid all signs are the same.
        lost = (what == "tails" and squashed) or (what == "signs" and squashed == "sigmoid")
        kept.add("nothing" if lost else what)
        if stage.name == "binary":
            squashed = "sigmoid"  # bits have no signs either
        if stage.name == "squash":
            squashed = "sigmoid" if "sigmoid" in (squashed, stage.words["kind"]) else "tanh"
    if "nothing" in kept or {"tails", "signs"} <= kept:
        return "nothing"
    return next((what for what in ("signs", "tails") if what in kept), "all")


def brought(stages: Sequence[Stage], reaches: Sequence[Reach], position: int, neighbours: str) -> Reach:
    """What two neighbours can bring to a stage.

    Behind a noise, what is there without the record is as random as what is there with it: any two values, none surely.
    """
    if neighbours == "add-remove-record" and any(stage.name in NOISES for stage in stages[:position]):
        return replace(reaches[position], exact=False)
    return for_neighbours(reaches[position], neighbours)


def for_neighbours(reach: Reach, neighbours: str) -> Reach:
    """A record added or removed moves a sum by its own vector, at most by the radius."""
    shape = reach.shape
    if neighbours != "add-remove-record" or shape.kind in ("everything", "apart"):
        return reach
    if shape.kind in ("ball", "sphere"):
        return Reach(Shape("apart", shape.dim, shape.p, shape.size), reach.exact)
    raise CertificateError(f"a record added or removed cannot be re-checked for the region {shape.kind}")


def _at(pipeline: _Pipeline, position: int) -> Bounds:
    """The bounds that one noise gives."""
    stage, behind = pipeline.stages[position], pipeline.stages[position + 1 :]
    reach, passed = pipeline.at(position)
    if stage.name in ADDITIVE:
        return _additive(stage, reach, passed, kept_after(behind))
    lowers, uppers, rare = discrete_bounds(stage, reach, passed)
    if any(_KEEPS.get(after.name) not in ("all", "tails") for after in behind):
        return Bounds((), tuple(uppers))
    return Bounds(tuple(lowers), tuple(uppers), rare)


def _several(pipeline: _Pipeline, positions: list[int]) -> Bounds:
    """Noise behind noise is post-processing: what any of them gives from above holds."""
    first, last = positions[0], positions[-1]
    stages, reaches = pipeline.stages, pipeline.reaches
    noises = [stages[i] for i in positions]
    if positions == list(range(first, last + 1)) and all(noise.name in ADDITIVE for noise in noises):
        return _added(noises, *pipeline.at(first), kept_after(stages[last + 1 :]))
    each = [_at(pipeline, i) for i in positions]
    lowers = each[-1].lowers if reaches[last].exact else ()
    rare = each[-1].rare if reaches[last].exact else ZERO
    return Bounds(lowers, tuple(curve for bounds in each for curve in bounds.uppers), rare)


def possible_pairs(stages: Sequence[Stage], reaches: Sequence[Reach], position: int, neighbours: str) -> list[Pair]:
    """Pairs that surely can come in where the region is an outer bound; of single records none are looked for."""
    known = reaches[position].exact or neighbours == "add-remove-record"
    return [] if known else passed_on(stages, reaches, position)


def _added(noises: list[Stage], reach: Reach, passed: list[Pair], keeps: str) -> Bounds:
    """Noises added right after one another: Gaussians join; far out the widest Laplace noise decides."""
    if all(noise.name == "gaussian" for noise in noises):
        square = sum((noise.numbers["sigma"] ** 2 for noise in noises), ZERO)
        return _additive(replace(noises[0], numbers={"sigma": iv.sqrt(square)}), reach, passed, keeps)
    each = [_additive(noise, reach, passed, keeps) for noise in noises]
    uppers = tuple(curve for bounds in each for curve in bounds.uppers)
    if any(loses(noise) for noise in noises):
        return Bounds((), uppers)
    if is_infinite(diameter(reach.shape, INFINITE)):
        return Bounds(each[0].lowers, uppers)
    if keeps not in ("all", "tails") or any(noise.name not in ("laplace", "gaussian") for noise in noises):
        return Bounds((), uppers)
    lower = smallest(iv.mpf(bounds.pure().a) for bounds in each)
    return Bounds((), uppers, lower)


def _additive(stage: Stage, reach: Reach, passed: list[Pair], keeps: str) -> Bounds:
    """Noise on the coordinates of a vector."""
    shape = reach.shape
    if shape.kind == "categories" and (stage.name != "mixture" or stage.parts):
        raise CertificateError(f"{stage.name} noise cannot be added to a category's name")
    if is_infinite(diameter(shape, INFINITE)):
        return _unbounded(stage, reach, passed, keeps)
    pairs, worst_known = _pairs(stage, shape) if reach.exact else (passed, False)
    pairs = [pair for pair in pairs if distance(pair, INFINITE).a > 0]
    curves = [pair_curve(stage, pair) for pair in pairs]
    uppers = _uppers(stage, shape)
    if worst_known and curves:
        uppers = [Worst(curves), *uppers]
    if keeps == "all":
        return Bounds(tuple(curves), tuple(uppers), _rare(stage, pairs))
    if keeps == "tails" and curves and stage.name in ("laplace", "gaussian"):
        return Bounds((), tuple(uppers), largest(curve.pure for curve in curves))
    if keeps == "signs" and stage.name in ("laplace", "gaussian"):
        return Bounds(tuple(sign_curve(stage, pair) for pair in pairs), tuple(uppers))
    return Bounds((), tuple(uppers))


def _unbounded(stage: Stage, reach: Reach, passed: list[Pair], keeps: str) -> Bounds:
    """Values that nothing bounds are given away, unless every coordinate that differs is lost."""
    if not loses(stage):
        return Bounds((Certain(),) if reach.exact and keeps != "nothing" else (), (Certain(),))
    shown = Leak(1 - stage.numbers["lost"] ** most_differing(reach.shape))
    # Where a vector is scaled, one lost coordinate takes the others with it.
    known = reach.exact and keeps in ("all", "tails")
    pairs = passed if keeps == "all" and not reach.exact else []
    lowers: list[Curve] = [shown] if known else [pair_curve(stage, pair) for pair in pairs]
    return Bounds(tuple(lowers), (shown,))


def _pairs(stage: Stage, shape: Shape) -> tuple[list[Pair], bool]:
    if stage.name == "laplace":
        return laplace_pairs(shape)
    return [farthest(shape, 2.0 if stage.name == "gaussian" else 1.0)], False


def pair_curve(stage: Stage, pair: Pair) -> Curve:
    """The loss of one pair."""
    gaps = differing(pair)
    if stage.name == "gaussian":
        return Gaussian(distance(pair, 2.0) / stage.numbers["sigma"])
    if stage.name == "laplace":
        return laplace_sum([(gap / stage.numbers["scale"], count) for gap, count in gaps])
    if stage.name == "onesided":
        up = sum((gap * count for gap, count in gaps if gap.a > 0), ZERO) / stage.numbers["scale"]
        down = sum((-gap * count for gap, count in gaps if not gap.a > 0), ZERO) / stage.numbers["scale"]
        return OneSided(up, down)
    return losing_curve(stage, gaps)


def laplace_sum(shifts: list[tuple[Number, int]]) -> Summed:
    """Independent coordinates with Laplace noise, shifted by so many scales."""
    merged: dict[object, tuple[Number, int]] = {}
    for shift, count in shifts:
        size = abs(shift)
        if size.b > 0:
            merged[size._mpi_] = (size, count + (merged[size._mpi_][1] if size._mpi_ in merged else 0))
    return Summed(tuple((lattice.Laplace(size), count) for size, count in merged.values()))


def _rare(stage: Stage, pairs: list[Pair]) -> Number:
    """A mixture's far tails: the widest Laplace noise decides there, and normal noise alone gives nothing."""
    if stage.name != "mixture" or any(part.name == "onesided" for _, part in stage.parts):
        return ZERO
    scales = [part.numbers["scale"] for _, part in stage.parts if part.name == "laplace"]
    if not scales or not pairs:
        return ZERO
    return largest(distance(pair, 1.0) for pair in pairs) / largest(scales)


def sign_curve(stage: Stage, pair: Pair) -> Curve:
    """The loss of the coordinates' signs alone."""
    chances = []
    for block in pair:
        p, q = (chance_above_zero(stage, value) for value in (block.x, block.y))
        chances.append((p, q, block.count))
    return bits_curve(chances)


def chance_above_zero(stage: Stage, centre: Number) -> Number:
    """P(centre + noise > 0)."""
    if stage.name == "gaussian":
        return normal.tail(-centre / stage.numbers["sigma"])
    tail = iv.exp(-abs(centre) / stage.numbers["scale"]) / 2
    return 1 - tail if centre.a > 0 else tail


def _uppers(stage: Stage, shape: Shape) -> list[Curve]:
    """Curves that hold for every pair of the region."""
    if stage.name == "gaussian":
        return [Gaussian(iv.mpf(diameter(shape, 2.0).b) / stage.numbers["sigma"])]
    reach = iv.mpf(diameter(shape, 1.0).b)
    if stage.name == "onesided" and shape.kind == "sparse":
        # Coordinates rise in no more places than there can be ones, and one place has a 1 before.
        return [OneSided(iv.mpf(min(shape.count, shape.dim - 1)) / stage.numbers["scale"], ZERO)]
    if stage.name == "onesided":
        return [OneSided(reach / stage.numbers["scale"], ZERO)]
    if stage.name == "laplace":
        return [Pure(reach / stage.numbers["scale"]), *_renyi(shape, stage.numbers["scale"])]
    if one_sided(stage):
        return [overlap(stage, shape)]
    smooth = stage.numbers["atom"].b <= 0 and all(part.name == "laplace" for _, part in stage.parts)
    return [Pure(largest(reach / part.numbers["scale"] for _, part in stage.parts)) if smooth else Certain()]


def _renyi(shape: Shape, scale: Number) -> list[Curve]:
    if shape.kind == "both":
        return [curve for part in shape.parts for curve in _renyi(part, scale)]
    base = shape.parts[0] if shape.kind == "repeated" else shape
    round_ball = base.kind in ("ball", "sphere", "apart", "rows")
    p = max(2.0, base.p) if round_ball else INFINITE
    norm = diameter(shape, p)
    if is_infinite(norm) or norm.b <= 0:
        return []
    return [Renyi(norm / scale / root(shape.dim, p), shape.dim)]
