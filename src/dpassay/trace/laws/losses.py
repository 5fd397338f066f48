"""The exact loss between the numbers of two runs: of all numbers together, or of the most informative events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpassay.core.functions.normal import normal_tail
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exp, log, maximum, number, real
from dpassay.exact.pld.loss_components import AtomLoss, LossComponent
from dpassay.exact.pld.noises.coordinate import coordinate_loss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.discrete_noise import DiscreteLaplace
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, Noise, OneSided
from dpassay.trace.laws.formulas import bases, evaluated
from dpassay.trace.laws.other_noises import KINDS as OTHER_KINDS
from dpassay.trace.laws.other_noises import pure_loss
from dpassay.trace.replay.replaying import MonotoneImage, NoiseSite
from dpassay.trace.watch.record import Array
from dpassay.values import dataclass

CLOSE = 1e-9  # relative: between closer numbers, the digits that are written matter
SYMMETRIC = ("laplace", "gaussian", "discrete laplace")


@dataclass(frozen=True)
class Coordinate:
    """One number with noise, for x and for y: the kind, the centers, the scales and the shares of an atom."""

    kind: str
    centres: tuple[float, float]
    scales: tuple[float, float]
    shares: tuple[float, float] = (0.0, 0.0)
    same_atom: bool = True
    tolerance: float = 0.0

    @property
    def moved(self) -> bool:
        """Whether the centers differ."""
        return self.centres[0] != self.centres[1]

    @property
    def alike(self) -> bool:
        """Whether both inputs get the same noise."""
        (one, other), shares = self.scales, self.shares
        return (one == other or (self.kind in SYMMETRIC and abs(one) == abs(other))) and shares[0] == shares[1]

    @property
    def swapped(self) -> Coordinate:
        """With x and y exchanged."""
        return Coordinate(
            self.kind, self.centres[::-1], self.scales[::-1], self.shares[::-1], self.same_atom, self.tolerance
        )

    def loss(self) -> LossComponent | None:
        """The loss of x against y; None if it is not known."""
        if self.kind == "bernoulli":
            return self._of_atoms()
        if not self.alike or self.scales[0] == 0:
            return None
        scale, (x, y) = abs(self.scales[0]), self.centres
        shift = difference(x, y) if self.moved else ZERO
        if self.kind == "uniform":
            share = min(ONE.a, (abs(shift) / number(scale)).a), min(ONE.b, (abs(shift) / number(scale)).b)
            infinite = real(share)
            return AtomLoss(((ZERO, 1 - infinite),), infinite)
        if self.kind == "exponential":
            return coordinate_loss(self._one_sided(scale), shift if self.scales[0] > 0 else -shift)
        if self.kind == "discrete laplace":
            near = round(y - x)
            whole = abs(y - x - near) <= max(self.tolerance, 1e-12)
            return coordinate_loss(DiscreteLaplace(number(scale)), number(near) if whole else shift)
        if self.kind in OTHER_KINDS:
            return _of_pure(pure_loss(self.kind, shift, number(scale)))
        if self.kind not in ("laplace", "gaussian"):
            return None
        noise: Noise = Laplace(number(scale)) if self.kind == "laplace" else Gaussian(number(scale))
        return coordinate_loss(noise, shift)

    def _one_sided(self, scale: float) -> Noise:
        share = number(self.shares[0])
        if self.shares[0] == 0:
            return OneSided(number(scale))
        part = ((1 - share, OneSided(number(scale))),)
        return Mixture(ZERO, part, share) if self.same_atom else Mixture(share, part)

    def _of_atoms(self) -> LossComponent:
        """Two values for each input, which may be the same for both."""
        atoms: list[list[Any]] = []
        for side in (0, 1):
            share = number(self.shares[side])
            for value, weight in (
                (self.centres[side], 1 - share),
                (self.centres[side] + self.scales[side], share),
            ):
                own = next((one for one in atoms if abs(one[0] - value) <= self.tolerance), None)
                if own is None:
                    own = [value, ZERO, ZERO]
                    atoms.append(own)
                own[1 + side] += weight
        return AtomLoss.between(tuple(one[1] for one in atoms), tuple(one[2] for one in atoms))


def difference(x: float, y: float) -> Number:
    """y − x of numbers as they are written, or as they are stored if their difference is about that of two floats.

    >>> float(difference(0.1, 0.3)), float(difference(1e17, 1e17 + 16))
    (0.2, 16.0)
    """
    close = abs(y - x) < CLOSE * max(abs(x), abs(y))
    return number(y - x) if close else number(y) - number(x)


def _of_pure(epsilon: Number) -> LossComponent | None:
    """The loss of a bit that is exactly ε-DP in both directions, which dominates every ε-DP pair."""
    if epsilon.b >= INFINITY.a:
        return None
    often = 1 / (1 + exp(-epsilon))
    return AtomLoss.between((often, 1 - often), (1 - often, often))


def alone(use: NoiseSite) -> bool:
    """Whether no other noise is added to it: then its loss is exact, not only an upper bound."""
    return not any(law.mixed.any() for law in use.laws)


def coordinates(uses: Iterable[NoiseSite]) -> list[Coordinate] | None:
    """The numbers of these uses, each number of a draw once; None if different ones share a drawn number."""
    found, seen, used = [], dict[tuple[int, ...], tuple[tuple[float, ...], float]](), set[int]()
    for use in uses:
        first, second = use.laws
        if not _same_factors(use):
            return None
        columns = [np.asarray(base).reshape(-1) for base in bases(use.y)]
        parts = [
            part.reshape(-1).tolist()
            for law in (first, second)
            for part in (law.kind, law.centre, law.scale, law.share, law.atom)
        ]
        tolerance = use.tolerance
        for i in range(use.y.offset.size):
            key = tuple(sorted(int(base[i]) for base in columns if base[i] >= 0))
            if not key:
                continue
            kind, other = parts[0][i], parts[5][i]
            if {kind, other} == {"bernoulli", "none"}:
                kind = other = "bernoulli"  # 0 for one input, whether kept or not
            ratios, least = _ratios(use, i, parts), _least(use, parts, i)
            if key in seen:
                before, its = seen[key]
                if kind in SYMMETRIC and not np.allclose(ratios, before, rtol=1e-12, atol=least + its):
                    return None  # the same numbers hide something else: what differs has no noise
                continue
            if used & set(key) or kind != other or not all(math.isfinite(parts[k][i]) for k in (1, 2, 6, 7)):
                return None
            seen[key] = ratios, least
            used.update(key)
            atoms = parts[4][i], parts[9][i]
            same = abs(atoms[0] - atoms[1]) <= tolerance or (math.isnan(atoms[0]) and math.isnan(atoms[1]))
            centres, scales, shares = ((parts[k][i], parts[k + 5][i]) for k in (1, 2, 3))
            found.append(Coordinate(kind, centres, scales, shares, same, tolerance))
    return found


def _ratios(use: NoiseSite, i: int, parts: Any) -> tuple[float, ...]:
    """What a number hides, and the factors of its drawn numbers, in units of its noise: the same for equal numbers."""
    scale = parts[2][i] or math.nan
    factors = [float(factor.reshape(-1)[i]) for index, factor in use.y.terms if index.reshape(-1)[i] >= 0]
    sign = math.copysign(1, next((one for one in factors if one), 1.0))
    return ((parts[6][i] - parts[1][i]) * sign / abs(scale), *(one * sign / abs(scale) for one in factors[1:]))


def _least(use: NoiseSite, parts: Any, i: int) -> float:
    """The rounding error of what a number hides, in units of its noise; that of the noise itself is not part of it."""
    size = abs(parts[1][i]) + abs(parts[6][i])
    return float(2.0**-48 * size / abs(parts[2][i])) if parts[2][i] else 0.0


def _same_factors(use: NoiseSite) -> bool:
    """Whether other noise that is also added has the same factor for both inputs; else it hides something itself."""
    mixed = use.laws[0].mixed | use.laws[1].mixed
    return not mixed.any() or all(
        np.allclose(mine[mixed], its[mixed], rtol=1e-9, atol=0)
        for (_, mine), (_, its) in zip(use.x.terms, use.y.terms, strict=True)
    )


@dataclass(frozen=True)
class PairLoss:
    """The loss of x against y, and of y against x."""

    forward: PrivacyLoss
    backward: PrivacyLoss

    def epsilon(self, delta: Number) -> Number:
        """ε at a δ, in the worse direction."""
        return maximum(*(epsilon_of(loss, delta) for loss in {self.forward, self.backward}))

    def worst(self, delta: Number) -> PrivacyLoss:
        """The loss of the worse direction."""
        return max((self.forward, self.backward), key=lambda loss: epsilon_of(loss, delta).a)


def pair_loss(uses: Iterable[NoiseSite]) -> PairLoss | None:
    """The loss of the pair in what these uses hide. None if it is unknown.

    Other noise that is also added is treated as public.
    """
    found = coordinates(uses)
    return None if found is None else composed_loss(found)


def composed_loss(found: Sequence[Coordinate]) -> PairLoss | None:
    """The loss of independent numbers together, in both directions; None if that of one is unknown."""
    forward = _composed(found)
    if forward is None or all(one.kind in SYMMETRIC for one in found):
        return None if forward is None else PairLoss(forward, forward)
    backward = _composed([one.swapped for one in found])
    return None if backward is None else PairLoss(forward, backward)


def _composed(found: Sequence[Coordinate]) -> PrivacyLoss | None:
    counts: dict[Coordinate, int] = {}
    for one in found:
        if one.moved or one.kind == "bernoulli" or not one.alike or (one.shares[0] and not one.same_atom):
            counts[one] = counts.get(one, 0) + 1
    parts = [(one.loss(), n) for one, n in counts.items()]
    if any(loss is None for loss, _ in parts):
        return None
    return PrivacyLoss(tuple((loss, n) for loss, n in parts if loss is not None))


def epsilon_of(loss: PrivacyLoss, delta: Number) -> Number:
    """ε at the claimed δ."""
    return loss.epsilon_number(delta) if delta.a > 0 else loss.pure


def tail(kind: str, centre: float, scale: float, threshold: float, upper: bool) -> Number:
    """P(v ≥ threshold), or P(v ≤ threshold), of one number with noise."""
    z = (number(threshold) - number(centre)) / number(abs(scale)) * (1 if upper else -1)
    if kind == "gaussian":
        return normal_tail(z)
    return exp(-z) / 2 if z.a >= 0 else 1 - exp(z) / 2


def shown_by(p: Number, q: Number, delta: Number) -> Number:
    """The ε shown by an event whose probability is at least p for one input and at most q for the other."""
    if (p - delta).a <= 0:
        return ZERO
    return INFINITY if q.b <= 0 else maximum(ZERO, log((p - delta) / q))


def of_different_scales(found: Sequence[Coordinate], delta: Number) -> Number:
    """A lower bound on ε if a coordinate gets noise of different scales for x and y.

    Far in the tails, outputs become arbitrarily more likely under the larger scale; for δ > 0 a tail event shows part.
    """
    best = ZERO
    for one in found:
        if one.kind not in ("laplace", "gaussian") or min(map(abs, one.scales)) <= 0:
            continue
        if math.isclose(abs(one.scales[0]), abs(one.scales[1]), rel_tol=max(1e-9, 1e3 * one.tolerance)):
            continue
        if delta.b <= 0:
            return INFINITY
        wide = one if abs(one.scales[0]) > abs(one.scales[1]) else one.swapped
        middle, unit = wide.centres[1], abs(wide.scales[1])
        k = max(range(1, 60), key=lambda k: _guess(wide, middle, unit * k / 4, float(delta.mid)))
        p, q = (
            tail(one.kind, c, s, middle - unit * k / 4, upper=False)
            + tail(one.kind, c, s, middle + unit * k / 4, upper=True)
            for c, s in zip(wide.centres, wide.scales, strict=True)
        )
        best = maximum(best, shown_by(real(p.a), real(q.b), delta))
    return real(best.a)


def _guess(one: Coordinate, middle: float, away: float, delta: float) -> float:
    """Approximately the ε that a tail event shows."""
    p, q = (
        sum(_rough_tail(one.kind, (away + side * (middle - c)) / abs(s)) for side in (1, -1))
        for c, s in zip(one.centres, one.scales, strict=True)
    )
    return math.log((p - delta) / q) if p > delta and q > 0 else -math.inf


def _rough_tail(kind: str, z: float) -> float:
    if kind == "gaussian":
        return math.erfc(z / math.sqrt(2)) / 2
    return math.exp(-z) / 2 if z >= 0 else 1 - math.exp(z) / 2


def behind(coarse: MonotoneImage, delta: Number) -> Number:
    """A lower bound on ε from numbers that are rounded, clamped or compared before they are output.

    Each is a monotone function of a number with noise, so "at least as large as observed in the tail" is an event about
    this number: at δ = 0 the losses of the coordinates are added up, otherwise the best one is used.
    """
    found = coordinates([NoiseSite(coarse.of_x, coarse.of_y, released=False)])
    size = coarse.of_x.offset.size
    if found is None or len(found) != size or not all(one.kind in ("laplace", "gaussian") for one in found):
        return ZERO
    x, y = (np.array([one.centres[side] for one in found]) for side in (0, 1))
    scale = np.array([abs(one.scales[0]) for one in found])
    if not all(one.alike for one in found) or (scale <= 0).any():
        return ZERO
    upper = x > y
    far = np.where(upper, np.maximum(x, y) + 12 * scale, np.minimum(x, y) - 12 * scale)
    start = np.where(upper, np.minimum(x, y) - 60 * scale, np.maximum(x, y) + 60 * scale)
    values = _after(coarse, far)
    if values is None:
        return ZERO
    low, high = start, far  # beyond some point between the two, the output is that of the tail
    for _ in range(60):
        middle = (low + high) / 2
        got = _after(coarse, middle)
        if got is None:
            return ZERO
        there = got == values
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    total = best = ZERO
    for k, one in enumerate(found):
        if not one.moved or low[k] == start[k]:
            continue
        slack = 1e-9 * float(scale[k]) * (1 if upper[k] else -1)
        p = tail(one.kind, one.centres[0], one.scales[0], float(high[k]) + slack, bool(upper[k]))
        q = tail(one.kind, one.centres[1], one.scales[1], float(low[k]) - slack, bool(upper[k]))
        total += shown_by(p, q, ZERO)
        best = maximum(best, shown_by(p, q, delta))
    return real((total if delta.b <= 0 else best).a)


def _after(coarse: MonotoneImage, values: Array) -> Array | None:
    """The output if the numbers with noise have these values; None if it is not the same for both inputs."""
    both = []
    for node, of in ((coarse.x, coarse.of_x), (coarse.y, coarse.of_y)):
        instead = {id(of): values.reshape(1, *of.offset.shape)}
        both.append(evaluated(node, lambda draw: draw.values.reshape(1, -1), instead).reshape(-1))
    return both[0] if both[0].shape == values.shape and np.array_equal(both[0], both[1]) else None
