"""Sums of losses of different kinds, certified from both sides: docs/proofs/lattice-sums.md, points 7 and 8.

Sums of losses with finitely many values are listed where there are not too many. All others are folded on a lattice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, down, exactly, maximum, middle, minimum, up
from dpassay.exact.pld.atom_sum import atoms_delta, atoms_epsilon
from dpassay.exact.pld.lattice_cells import cells_of, has_cells, sketch_of
from dpassay.exact.pld.lattice_sum import Curve, lower_curve, upper_curve
from dpassay.exact.pld.lattice_window import MOST_CELLS, MOST_POINTS, Moments, window_at
from dpassay.exact.pld.loss_components import AtomLoss, LossComponent
from dpassay.values import dataclass

Parts = tuple[tuple[LossComponent, int], ...]
TOLERANCES = 2e-5, 1e-6  # relative to ε: what the lattice may add, tried one after the other
ROUNDS, CLOSE = 2, 1e-5  # how often a window is tried with each, and the relative width that is enough
_DIVISORS = 64  # a common divisor of differences is at least this part of the smallest


@dataclass(frozen=True)
class LatticeSum:
    """The finite part of a sum of independent losses, each as often as given.

    >>> from dpassay.core.numbers import number
    >>> from dpassay.exact.pld.sampled.laplace import SampledLaplaceLoss
    >>> steps = LatticeSum(((SampledLaplaceLoss(number("0.1"), ONE, "remove"), 100),))
    >>> found = steps.epsilon(number("1e-5"))
    >>> 4.152 < found.a and found.b < 4.153
    True
    """

    parts: Parts

    @property
    def pure(self) -> Number:
        """The largest finite loss."""
        return maximum(ZERO, sum((_largest(component) * count for component, count in self.parts), ZERO))

    @cached_property
    def near(self) -> Moments:
        """Moments of the sum, to choose windows with."""
        return Moments([(sketch_of(component), count) for component, count in self.parts])

    @cached_property
    def unit(self) -> float | None:
        """A number of which all differences of losses are multiples, up to rounding, if one is found."""
        gaps: list[float] = []
        for component, _ in self.parts:
            if not isinstance(component, AtomLoss):
                return None
            first = middle(component.atoms[0][0])
            gaps += [abs(middle(loss) - first) for loss, _ in component.atoms[1:]]
        least = min((gap for gap in gaps if gap > 0), default=0.0)
        for divisor in range(1, _DIVISORS + 1):
            places = [gap * divisor / least for gap in gaps] if least > 0 else []
            if places and all(abs(place - round(place)) < 1e-11 * (1 + place) for place in places):
                return least / divisor if max(places) <= MOST_CELLS else None
        return None

    def delta(self, epsilon: Number) -> Number:
        """δ(ε)."""
        if (self.pure - epsilon).b <= 0:
            return ZERO
        at, least, most = down(epsilon), 0.0, 1.0
        guess = self.near.delta(at)
        for tolerance in TOLERANCES:
            for _ in range(ROUNDS):
                low, high = _curves(self, at, guess, tolerance)
                least, most = max(least, low.delta(up(epsilon))), min(most, high.delta(at))
                guess = max(least, most / 100, 1e-300)
                if most - least <= 10 * CLOSE * most or least > 0:
                    break
            if most - least <= 10 * CLOSE * most:
                break
        return between(maximum(ZERO, exactly(least * (1 - 1e-12))), minimum(ONE, exactly(most * (1 + 1e-12))))

    def epsilon(self, delta: Number) -> Number:
        """ε(δ), at δ > 0."""
        guess, least, most = self.near.epsilon(down(delta)), 0.0, math.inf
        for tolerance in TOLERANCES:
            for _ in range(ROUNDS):
                low, high = _curves(self, guess, down(delta), tolerance)
                least, most = max(least, low.epsilon(up(delta))), max(0.0, min(most, high.epsilon(down(delta))))
                far = not most < math.inf or most - least > 1e-2 * most
                guess = (least + most) / 2 if most < math.inf else 2 * max(least, guess)
                if not far:
                    break
            if most - least <= CLOSE * most:
                break
        off = 1e-12 * (1 + least)
        return between(exactly(max(0.0, least - off)), minimum(exactly(most + off), self.pure))

    def grid(self, epsilon: Number, delta: Number) -> tuple[float, float]:
        """The step and the tilt of a lattice that is precise about a point of the curve."""
        window, _ = window_at(self.near, middle(epsilon), max(middle(delta), 1e-300), 5 * TOLERANCES[0])
        return float(f"{window.step:.12g}"), float(f"{window.tilt:.12g}")


def _largest(component: LossComponent) -> Number:
    return maximum(*(loss for loss, _ in component.atoms)) if isinstance(component, AtomLoss) else component.pure


@lru_cache(maxsize=8)
def _curves(summed: LatticeSum, epsilon: float, delta: float, tolerance: float) -> tuple[Curve, Curve]:
    """δ(ε) from below and from above, most precise about the given point."""
    window, limits = window_at(summed.near, epsilon, delta, tolerance)
    if summed.unit is not None:  # on such a lattice nothing is spread
        points = 1 << math.ceil(math.log2(window.step * window.points / summed.unit + 2))
        if points <= MOST_POINTS:
            window = replace(window, step=summed.unit, points=max(points, 1 << 6))
    below, above = (
        [
            (cells_of(component, window.step, upper, limit), count)
            for (component, count), limit in zip(summed.parts, limits, strict=True)
        ]
        for upper in (False, True)
    )
    return lower_curve(below, window), upper_curve(above, window)


def sum_delta(parts: Parts, epsilon: Number, infinite: Number = ZERO) -> Number | None:
    """δ(ε) of a sum of losses, which is `infinite` with some probability; None if one of them has no cells."""
    atoms = _all_atoms(parts)
    found = atoms_delta(atoms, epsilon) if atoms else None
    if found is None and all(has_cells(component) for component, _ in parts):
        found = LatticeSum(parts).delta(epsilon)
    return None if found is None else minimum(ONE, found + infinite)


def sum_epsilon(parts: Parts, delta: Number) -> Number | None:
    """ε(δ) of the finite part of a sum of losses, within bounds; None if one of them has no cells."""
    if delta.a <= 0:
        return None
    atoms = _all_atoms(parts)
    found = atoms_epsilon(atoms, delta) if atoms else None
    if (found is None or found.b == INFINITY) and all(has_cells(component) for component, _ in parts):
        found = LatticeSum(parts).epsilon(delta)
    return found


def _all_atoms(parts: Sequence[tuple[LossComponent, int]]) -> tuple[tuple[AtomLoss, int], ...]:
    """The parts if all of them are atoms, and none otherwise."""
    atoms = tuple((component, count) for component, count in parts if isinstance(component, AtomLoss))
    return atoms if len(atoms) == len(parts) else ()
