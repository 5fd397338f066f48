"""The loss of a mixture of noises, atoms included, against itself shifted.

No closed form: the output line is divided into cells on which both densities are monotone. Merging a
cell gives a bound from below, spreading it over its range of losses one from above; see
docs/proofs/mixture.md.
"""

from functools import cached_property

import numpy as np

from dpassay.core.numbers import INFINITY, ZERO, Number, between, down, exp, maximum, middle, minimum, number, real, up
from dpassay.exact.pld.loss_components import Cells, high_share, minimum_one
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, OneSided
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

# Masses and log densities below take a few correctly rounded operations, far more accurate than this.
_SLACK = 1e-9
# The mass beyond the outermost cells is less than this.
_BEYOND = 1e-24


@dataclass(frozen=True)
class MixtureLoss:
    """One coordinate: a mixture around 0 (P) against the same around `shift` (Q).

    >>> half = Mixture("0.5", (("0.5", OneSided(1)),))
    >>> round(middle(MixtureLoss(half, number(1)).delta(number(1))), 5)
    0.81606
    """

    noise: Mixture
    shift: Number

    @cached_property
    def _table(self) -> tuple[Array, Array, Array, Array, float]:
        """Masses under P and Q, smallest and largest loss of each cell; P-mass of cells whose Q-mass underflows."""
        d = middle(self.shift)
        widths = [middle(n.width) for _, n in self._components]
        far = max(widths) * np.geomspace(1e-3, 60, 1200)
        near = np.linspace(0, max(abs(d), min(widths)), 1500)
        offsets = np.concatenate([far, near])
        edges = np.unique(np.concatenate([-offsets, offsets, d - offsets, d + offsets]))
        # Slivers have masses that doubles cannot distinguish from 0; both centers stay edges.
        tight = np.diff(edges, prepend=-np.inf) < 1e-6 * min(widths)
        close = (np.abs(edges) < 1e-6 * min(widths)) | (np.abs(edges - d) < 1e-6 * min(widths))
        edges = np.unique(np.append(edges[~tight & ~close], [0.0, d]))
        left, right = edges[:-1], edges[1:]
        p, q = (self._smooth(left - c, right - c) for c in (0.0, d))
        p_range, q_range = (self._density_range(left - c, right - c) for c in (0.0, d))
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.log(p_range[0]) - np.log(q_range[1])
            high = np.log(p_range[1]) - np.log(q_range[0])
        used = (p > 0) & (q > 0)
        lost = (q <= 0) & ~((left >= 0) & (right <= d)) if self._has_gap else q <= 0
        return p[used], q[used], low[used], high[used], float(p[lost].sum()) * (1 + _SLACK)

    @property
    def _has_gap(self) -> bool:
        """Whether Q cannot be where P can: between the two centers, if all noises are one-sided."""
        return bool(self.shift.a > 0) and all(isinstance(noise, OneSided) for _, noise in self._components)

    @property
    def _components(self) -> list[tuple[Number, Laplace | Gaussian | OneSided]]:
        return list(self.noise.parts)  # type: ignore[arg-type]

    def _smooth(self, left: Array, right: Array) -> Array:
        """Mass of cells without the atom, from the smaller tail."""
        total = np.zeros(len(left))
        for weight, noise in self._components:
            upper = noise.survival(left) - noise.survival(right)
            total += middle(weight) * np.where(left >= 0, upper, noise.cdf(right) - noise.cdf(left))
        return total

    def _density_range(self, left: Array, right: Array) -> tuple[Array, Array]:
        """Each density falls away from its center, and no cell contains the center inside."""
        inside = 1e-13 * (right - left)
        ends = [np.exp(self.noise.log_density(t)) for t in (left + inside, right - inside)]
        return np.minimum(*ends) * (1 - _SLACK), np.maximum(*ends) * (1 + _SLACK)

    @property
    def infinite(self) -> Number:
        """The probability of outputs that Q cannot give: the atom, and the gap below Q if all noises are one-sided."""
        if self.shift == 0:
            return ZERO
        gap = ZERO
        if self._has_gap:
            gap = sum((w * (1 - exp(-self.shift / n.scale)) for w, n in self._components), ZERO)  # type: ignore[union-attr]
        return self.noise.atom_weight + gap

    @property
    def pure(self) -> Number:
        """Infinite with an atom or a gap; else between the largest cell and the largest of its components."""
        if self.shift == 0:
            return ZERO
        if self.infinite.b > 0:
            return INFINITY
        # A component that is unbounded on its own may be bounded by the others, but no theorem here says so.
        if any(isinstance(n, Gaussian) or (isinstance(n, OneSided) and self.shift.b > 0) for _, n in self._components):
            return between(self._largest_merged, INFINITY)
        largest = [abs(self.shift) / noise.scale for _, noise in self._components if not isinstance(noise, Gaussian)]
        return between(minimum(self._largest_merged, *largest), maximum(*largest))

    @property
    def _largest_merged(self) -> Number:
        p, q, *_ = self._table
        return maximum(ZERO, real(float(np.max(np.log(p / q), initial=0.0))) - number(_SLACK))

    @property
    def mean(self) -> Number:
        if self.infinite.b > 0:
            return INFINITY
        p, q, _, high, lost = self._table
        if lost:
            return between(ZERO, INFINITY)
        merged, widest = (float(np.sum(p * loss)) for loss in (np.log(p / q), np.minimum(high, 1e6)))
        return between(real(merged - _SLACK), real(widest + _SLACK))

    @property
    def span(self) -> float:
        p, q, *_ = self._table
        return float(np.max(np.abs(np.log(p / q)), initial=0.0)) + _SLACK

    def delta(self, epsilon: Number) -> Number:
        lower, upper = (real(self._finite_delta(epsilon, side)) for side in (False, True))
        return between(self.infinite + lower, minimum_one(self.infinite + upper))

    def _finite_delta(self, epsilon: Number, upper: bool) -> float:
        cells = self.cells(0.0, 1, upper)
        e = down(epsilon) if upper else up(epsilon)
        if not upper:
            return float(np.sum(cells.mass * np.maximum(0.0, -np.expm1(np.minimum(e - cells.centre, 700.0)))))
        share = high_share(cells.centre, cells.low, cells.high)
        at_low, at_high = (np.maximum(0.0, -np.expm1(np.minimum(e - end, 700.0))) for end in (cells.low, cells.high))
        return float(np.sum(cells.mass * (share * at_high + (1 - share) * at_low)))

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """The table's cells; from above, the mass beyond them is counted at infinity."""
        p, q, low, high, lost = self._table
        centre = np.clip(np.log(p / q), low, high)
        if not upper:
            return Cells(p * (1 - _SLACK), centre - _SLACK, low, high)
        end = [np.inf]
        return Cells(
            np.append(p * (1 + _SLACK), _BEYOND + lost),
            np.append(centre, end),
            np.append(low, [self.span]),
            np.append(high, end),
        )
