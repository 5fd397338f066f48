"""What is wrong in the code of a pair's replays, each with a rule, the line and the loss that it gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dpassay.core.numbers import INFINITY, ZERO, Number, number
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import Gaussian, Laplace, Noise
from dpassay.trace.record import NOISES, Array, Draw, Node, Place
from dpassay.trace.replay import Replay, Use


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the code: a rule, the line, and a sentence that names both.

    `infinite` says that the two inputs are told apart with certainty.
    """

    rule: str
    place: Place | None
    message: str
    infinite: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        where = {} if self.place is None else {"file": self.place.file, "line": self.place.line}
        return {"rule": self.rule, **where, "message": self.message}


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Numbers of a use with their noise: the centres for x and y, and the scale for each."""

    centre_x: Array
    centre_y: Array
    scale_x: Array
    scale_y: Array
    index: Array

    @classmethod
    def of(cls, use: Use) -> Coordinates:
        """The location and the scale of the distribution are part of what is hidden, and of the noise."""
        parts = []
        for node in (use.x, use.y):
            _, scale = location_and_scale(node.draw)
            parts += [centres(node).reshape(-1), (scale[node.index] * np.abs(node.factor)).reshape(-1)]
        return cls(parts[0], parts[2], parts[1], parts[3], use.y.index.reshape(-1))


def centres(node: Node) -> Array:
    """The numbers without their noise: the location of a known distribution is part of them."""
    if node.draw.distribution not in NOISES:
        return node.offset
    location, _ = location_and_scale(node.draw)
    return np.asarray(node.offset + node.factor * location[node.index])


def location_and_scale(draw: Draw) -> tuple[Array, Array]:
    """Of a noise that is known, for each number of the draw."""
    _, location, scale = NOISES[draw.distribution]
    given = (draw.parameters.get(location, 0.0), draw.parameters.get(scale, 1.0))
    first, second = (np.broadcast_to(np.asarray(one, dtype=float), draw.shape).reshape(-1) for one in given)
    return first, second


def _kind(use: Use) -> type[Laplace] | type[Gaussian]:
    return Laplace if NOISES[use.y.draw.distribution][0] == "laplace" else Gaussian


def known(use: Use) -> bool:
    """Whether the noise is one whose loss is known."""
    return use.y.draw.distribution in NOISES


def alone(use: Use) -> bool:
    """Whether it is known, and no other noise adds to it: then its loss is exact, and not only an upper bound."""
    return known(use) and not use.x.mixed and not use.y.mixed


def pair_loss(uses: Iterable[Use]) -> PrivacyLoss | None:
    """The loss of the pair in what these uses hide; each number of a draw counts once. None if it is unknown.

    Other noise that is added too is taken as known to everybody.
    """
    rows: list[tuple[type[Noise], Array]] = []
    seen: set[tuple[int, int]] = set()
    for use in uses:
        if not known(use):
            return None
        found = Coordinates.of(use)
        if not np.array_equal(found.scale_x, found.scale_y) or (found.scale_x <= 0).any():
            return None
        fresh = [i for i, k in enumerate(found.index.tolist()) if (id(use.y.draw), k) not in seen]
        first_of = {found.index[i]: i for i in reversed(fresh)}
        chosen = sorted(first_of.values())
        seen |= {(id(use.y.draw), int(k)) for k in first_of}
        columns = np.stack([found.centre_x[chosen], found.centre_y[chosen], found.scale_x[chosen]], axis=1)
        rows.append((_kind(use), columns))
    return PrivacyLoss(()).compose(*(_loss(kind, columns) for kind, columns in rows))


def _loss(kind: type[Any], columns: Array) -> PrivacyLoss:
    kinds, counts = np.unique(columns, axis=0, return_counts=True)
    parts = [
        PrivacyLoss.of_shifts(kind(scale), [(number(y) - number(x) if x != y else ZERO, int(n))])
        for (x, y, scale), n in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]
    return PrivacyLoss(()).compose(*parts)


def epsilon_of(loss: PrivacyLoss, delta: Number) -> Number:
    """ε at the claimed δ."""
    return loss.epsilon_number(delta) if delta.a > 0 else loss.pure


def stale(replays: Sequence[Replay], use: Use) -> Finding | None:
    """Noise that is not fresh in each call, where it hides a difference of the inputs that comes out."""
    draw = use.x.draw
    moved = bool((np.abs(use.shift) > use.tolerance).any())
    if not (use.released and moved):
        return None
    if draw.run != replays[0].x.number:
        said = f"{use.x.place} adds noise that {draw.place} drew in an earlier call: two outputs differ by exactly "
        return Finding("noise-made-once", draw.place, f"{said}what the inputs differ by (ε = ∞)", infinite=True)
    number_of = next(k for k, one in enumerate(replays[0].x.draws) if one is draw)
    others = [replay.x.draws[number_of].values for replay in replays[1:] if number_of < len(replay.x.draws)]
    if draw.values.size and all(np.array_equal(draw.values, values) for values in others):
        said = f"{draw.place} draws the same noise in every call, as a fixed seed does: two outputs differ by exactly "
        return Finding("fixed-seed", draw.place, f"{said}what the inputs differ by (ε = ∞)", infinite=True)
    return None


def shared(uses: Sequence[Use]) -> Finding | None:
    """One number of a draw in several released numbers whose differences depend on the input."""
    for use in uses:
        if use.released and (found := _shared_within(use)) is not None:
            return found
    for one, other in combinations([use for use in uses if use.released], 2):
        if one.x.draw is not other.x.draw:
            continue
        places = dict(zip(one.y.index.reshape(-1).tolist(), one.shift.reshape(-1).tolist(), strict=True))
        most = max(one.tolerance, other.tolerance)
        for k, shift in zip(other.y.index.reshape(-1).tolist(), other.shift.reshape(-1).tolist(), strict=True):
            if k in places and abs(places[k] - shift) > most:
                said = f"{one.x.place} and {other.x.place} use the same noise of {one.x.draw.place}: "
                return Finding(
                    "noise-reused", other.x.place, f"{said}their difference is released exactly (ε = ∞)", infinite=True
                )
    return None


def _shared_within(use: Use) -> Finding | None:
    index, shift = use.y.index.reshape(-1), use.shift.reshape(-1)
    order = np.argsort(index, kind="stable")
    index, shift = index[order], shift[order]
    together = index[1:] == index[:-1]
    if not (together & (np.abs(np.diff(shift)) > use.tolerance)).any():
        return None
    draws, all_of = len(np.unique(index)), len(index)
    many = f"one {_noise(use)}" if draws == 1 else f"{draws:,} numbers of {_noise(use, noun='noise')}"
    return Finding(
        "shared-noise",
        use.x.place,
        f"{use.x.place} adds {many} to {all_of:,} coordinates: their differences are released exactly (ε = ∞)",
        infinite=True,
    )


def _noise(use: Use, noun: str = "number") -> str:
    """The noise in words: "Laplace number of scale 0.5"."""
    kind = use.y.draw.distribution
    if kind not in NOISES:
        return f"{kind} {noun}"
    scales = np.unique(Coordinates.of(use).scale_x)
    name, of = ("Laplace", "scale") if _kind(use) is Laplace else ("Gaussian", "standard deviation")
    size = f"{scales[0]:.6g}" if len(scales) == 1 else f"{scales[0]:.6g} to {scales[-1]:.6g}"
    return f"{name} {noun} of {of} {size}"


def scaled_by_input(use: Use) -> Finding | None:
    """Noise whose scale is not the same for both inputs."""
    if use.y.draw.distribution not in NOISES or not use.released:
        return None
    found = Coordinates.of(use)
    if np.allclose(found.scale_x, found.scale_y, rtol=1e-9, atol=0):
        return None
    at = int(np.argmax(np.abs(found.scale_x - found.scale_y)))
    said = f"{use.x.place} adds noise whose scale depends on the input: {found.scale_x[at]:.6g} for one input, "
    return Finding("scale-depends-on-input", use.x.place, f"{said}{found.scale_y[at]:.6g} for the other")


def too_large(uses: Sequence[Use], epsilon: Number, claimed: str) -> Finding:
    """A loss that exceeds the claim, at the line where most of it arises."""
    worst = max(uses, key=lambda use: float(np.nansum(np.abs(use.shift))))
    found = Coordinates.of(worst)
    laplace = _kind(worst) is Laplace
    gaps = np.abs(found.centre_x - found.centre_y)
    distance = gaps.sum() if laplace else np.sqrt((gaps**2).sum())
    size = "∞" if epsilon.a == INFINITY.a else f"{float(epsilon.a):.6g}"
    what = "a number" if gaps.size == 1 else f"{gaps.size:,} coordinates"
    norm = "" if gaps.size == 1 else " in l1" if laplace else " in l2"
    differ = "differs" if gaps.size == 1 else "differ"
    return Finding(
        "loss-too-large",
        worst.x.place,
        f"{worst.x.place} adds {_noise(worst, 'noise')} to {what} that {differ} by {distance:.6g}{norm}: "
        f"ε = {size} for this pair, where {claimed} is claimed",
    )


def as_coded(uses: Sequence[Use], inputs: int) -> str:
    """The pipeline as it was seen: norms of what is hidden, and the noise on it."""
    parts = []
    for use in (use for use in uses if use.x.added or not use.x.continued):
        if use.y.draw.distribution not in NOISES:
            parts.append(f"{use.y.draw.distribution} numbers at {use.y.draw.place}")
            continue
        found = Coordinates.of(use)
        laplace = _kind(use) is Laplace
        sizes = [np.linalg.norm(centre, 1 if laplace else 2) for centre in (found.centre_x, found.centre_y)]
        scales = np.unique(found.scale_x)
        name = "laplace" if laplace else "gaussian"
        size = f"{scales[0]:.6g}" if len(scales) == 1 else f"{scales[0]:.6g}..{scales[-1]:.6g}"
        one = len(np.unique(found.index)), len(found.index)
        rest = "" if one[0] == one[1] else f", one number for {'all ' if one[0] == 1 else ''}{one[1] // one[0]:,}"
        rest += " coordinates" if rest else ""
        norm = "l1" if laplace else "l2"
        parts.append(f"{norm} norm at most {max(sizes):.6g} on {inputs} inputs | {name}({size}){rest}")
    return "; ".join(dict.fromkeys(parts))
