"""The privacy-loss distribution between two distributions: δ(ε), ε(δ), tail, mean, composition.

L = ln(P(t)/Q(t)) with t drawn from P. Every answer is an interval that contains the truth. Closed
forms are used where they exist (one coordinate, Gaussians, equal bits); all else goes through the
grid. See docs/proofs/hockey-stick.md and docs/proofs/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dpassay.core.functions.normal import gaussian_epsilon_guess, normal_tail
from dpassay.core.functions.roots import falling_root
from dpassay.core.interval import Interval
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    between,
    down,
    exactly,
    log,
    maximum,
    middle,
    minimum,
    number,
    real,
    sqrt,
    up,
)
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.pld.binomial import TwoAtomPower, two_atom_power
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss, LossComponent, merged, minimum_one
from dpassay.exact.pld.loss_sum import sum_delta, sum_epsilon
from dpassay.exact.pld.noises.coordinate import coordinate_loss
from dpassay.exact.pld.noises.integer import OnLattice
from dpassay.exact.pld.noises.truncated_laplace import TruncatedLaplaceLoss
from dpassay.exact.pld.pld_grid import ComposedLoss, Side, composed_loss, on_grid, tilt_for_delta, tilt_for_epsilon
from dpassay.exact.pld.sampled.gaussian import SampledLoss, SampledPower
from dpassay.exact.pld.sampled.laplace import SampledLaplaceLoss
from dpassay.exact.pld.sampled.laplace_sum import SampledSumLoss
from dpassay.pipeline.distributions import (
    BitDistribution,
    Distribution,
    Noise,
    Pmf,
    Shifted,
)
from dpassay.values import dataclass

COARSEST, RESOLUTIONS = 1 << 12, (1 << 14, 1 << 17, 1 << 20)  # grid points, to begin with
ANSWERS = 128  # cached, of each kind
CLOSE_EPSILON, CLOSE_DELTA = real("1e-5"), real("1e-4")  # relative widths at which refining stops
CLOSE_FOLDED = real("1e-3")  # a folded sum that is closer than this is not refined by a grid


@dataclass(frozen=True)
class PrivacyLoss:
    """A sum of independent losses: each component with its multiplicity.

    >>> from dpassay.pipeline.distributions import Laplace
    >>> loss = PrivacyLoss.between(Shifted(Laplace(1), np.zeros(1)), Shifted(Laplace(1), np.ones(1)))
    >>> print(loss.mean(), loss.delta(0.5))
    [0.3678794411, 0.3678794412] [0.2211992169, 0.2211992170]
    >>> print(loss.times(100).epsilon(1e-6))
    [71.545..., 71.546...]
    """

    components: tuple[tuple[LossComponent, int], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", merged(self.components))

    @classmethod
    def between(cls, first: Distribution, second: Distribution) -> PrivacyLoss:
        """The loss of the first distribution against the second; both must be of one kind and size."""
        sizes = {
            len(getattr(distribution, name))
            for distribution in (first, second)
            for name in ("centre", "one", "probabilities")
            if hasattr(distribution, name)
        }
        if len(sizes) > 1:
            raise InputError(
                f"two distributions can be compared only if they are of one kind and dimension, got {sorted(sizes)}"
            )
        if isinstance(first, Shifted) and isinstance(second, Shifted) and first.noise == second.noise:
            pairs, counts = np.unique(np.stack([first.centre, second.centre], axis=1), axis=0, return_counts=True)
            gaps = [(number(y) - number(x) if x != y else ZERO) for x, y in pairs.tolist()]
            return cls.of_shifts(first.noise, zip(gaps, counts.tolist(), strict=True))
        if isinstance(first, BitDistribution) and isinstance(second, BitDistribution):
            pairs, counts = np.unique(np.stack([first.one, second.one], axis=1), axis=0, return_counts=True)
            return cls(tuple((AtomLoss.of_bits(*pair), int(n)) for pair, n in zip(pairs.tolist(), counts, strict=True)))
        if isinstance(first, Pmf) and isinstance(second, Pmf):
            p, q = (tuple(number(v) for v in distribution.probabilities.tolist()) for distribution in (first, second))
            return cls(((AtomLoss.between(p, q), 1),))
        raise InputError("two distributions can be compared only if they are of one kind and have the same noise")

    @classmethod
    def of_shifts(cls, noise: Noise, shifts: Iterable[tuple[Number, int]]) -> PrivacyLoss:
        """Independent noise on coordinates that differ by the given shifts, each repeated as often as given."""
        return cls(tuple((coordinate_loss(noise, gap), n) for gap, n in shifts if n and not gap == 0))

    def compose(self, *others: PrivacyLoss) -> PrivacyLoss:
        """The loss when all these mechanisms answer about the same two inputs."""
        return PrivacyLoss(tuple(component for loss in (self, *others) for component in loss.components))

    def times(self, count: int) -> PrivacyLoss:
        """The loss of `count` independent answers."""
        return PrivacyLoss(tuple((component, n * count) for component, n in self.components))

    @property
    def pure(self) -> Number:
        """The largest loss that can occur: ε at δ = 0."""
        return maximum(ZERO, sum((component.pure * n for component, n in self.components), ZERO))

    def max_divergence(self) -> Interval:
        """D∞(P‖Q) = sup ln(P/Q), the largest loss that can occur: the Rényi divergence of order ∞."""
        return Interval.around(self.pure, Theorem.HOCKEY_STICK)

    def mean(self) -> Interval:
        """The expected loss (the Kullback-Leibler divergence)."""
        return Interval.around(
            sum((component.mean * n for component, n in self.components), ZERO), Theorem.HOCKEY_STICK
        )

    @cached_property
    def infinite(self) -> Number:
        """The probability of an infinite loss."""
        if all(component.infinite == 0 for component, _ in self.components):
            return ZERO
        finite = ONE
        for component, n in self.components:
            finite *= (1 - component.infinite) ** n
        return 1 - finite

    @property
    def source(self) -> str:
        """What an answer at δ > 0 rests on."""
        if self._closed is not None:
            return Theorem.HOCKEY_STICK
        return Theorem.DISCRETISATION if _grid_first(self) else Theorem.LATTICE_SUMS

    def delta_number(self, epsilon: Number) -> Number:
        """δ(ε) as a certified number."""
        if not self.components:
            return ZERO
        if self.infinite == 1:
            return ONE
        if isinstance(self._closed, TwoAtomPower):
            return minimum_one(self._closed.delta(epsilon) + self.infinite)
        if self._closed is not None:
            return minimum_one(self._closed.delta(epsilon))
        return ZERO if (self.pure - epsilon).b <= 0 else _delta_of_sum(self, epsilon)

    def epsilon_number(self, delta: Number) -> Number:
        """ε(δ) as a certified number: the smallest ε ≥ 0 with δ(ε) ≤ δ."""
        if delta == 0:
            return self.pure
        if (self.infinite - delta).a > 0:
            return INFINITY
        if (self.infinite - delta).b > 0:
            return between(ZERO, INFINITY)  # equal, as far as 50 digits can tell
        if not self.components or (self.infinite.b <= 0 and self.pure.b <= 0):
            return ZERO
        if isinstance(self._closed, TwoAtomPower | SampledPower):
            return self._closed.epsilon(delta - self.infinite)
        return _epsilon_of_sum(self, delta) if self._closed is None else _closed_epsilon(self, delta)

    def epsilon_above(self, delta: Number) -> Number:
        """A quick upper bound on ε(δ): a coarser grid, from above only."""
        if self._needs_no_grid or not self.components or (self.infinite - delta).a > 0:
            return self.epsilon_number(delta)
        composed = self.composed("delta-up", self.step(RESOLUTIONS[1]), delta=down(delta))
        bound = exactly(composed.epsilon(down(delta), upper=True))
        return real(min(bound.b, self.pure.b))

    def epsilon_below(self, delta: Number, points: int = RESOLUTIONS[0]) -> Number:
        """A quick lower bound on ε(δ): a coarser grid, from below only."""
        if self._needs_no_grid or delta == 0 or not self.components or (self.infinite - delta).b > 0:
            return self.epsilon_number(delta)
        composed = self.composed("delta-down", self.step(points), delta=up(delta))
        return exactly(composed.epsilon(up(delta), upper=False))

    def delta_below(self, epsilon: Number, points: int) -> Number:
        """A quick lower bound on δ(ε), likewise."""
        if self._needs_no_grid or not self.components:
            return self.delta_number(epsilon)
        composed = self.composed("delta-down", self.step(points), epsilon=up(epsilon))
        return exactly(max(0.0, composed.delta(epsilon, upper=False)))

    def delta(self, epsilon: Any) -> Interval:
        """δ(ε): the smallest δ for which the first distribution is (ε, δ)-close to the second."""
        return Interval.around(self.delta_number(_at_least_zero(epsilon)), self.source)

    def epsilon(self, delta: Any) -> Interval:
        """ε(δ): the smallest ε for which the first distribution is (ε, δ)-close to the second."""
        return Interval.around(self.epsilon_number(_probability(delta)), self.source)

    def tail(self, epsilon: Any) -> Interval:
        """P(L > ε). It is never below δ(ε); the two are often confused."""
        value = _at_least_zero(epsilon)
        if not self.components:
            return Interval(0.0, 0.0, self.source, self.source)
        if isinstance(self._closed, TwoAtomPower):
            return Interval.around(minimum_one(self._closed.tail(value) + self.infinite), self.source)
        if isinstance(self._closed, AtomLoss | SampledPower):
            return Interval.around(minimum_one(self._closed.tail(value)), self.source)
        if isinstance(self._closed, GaussianLoss):
            mu = self._closed.mu  # L is normal with mean μ²/2 and standard deviation μ
            return Interval.around(normal_tail(value / mu - mu / 2), Theorem.GAUSSIAN)
        step = self.step(RESOLUTIONS[-1])
        low = self.composed("loss-down", step, epsilon=up(value)).tail(value, upper=False)
        high = self.composed("loss-up", step, epsilon=down(value)).tail(value, upper=True)
        # Rounding a shift to a double moves no probability by more than this.
        slack = 1e-13 * sum(n for _, n in self.components)
        low, high = max(0.0, low - slack), min(1.0, high + slack)
        return Interval(low, high, Theorem.DISCRETISATION, Theorem.DISCRETISATION)

    @cached_property
    def _closed(self) -> LossComponent | TwoAtomPower | SampledPower | None:
        """A form that needs no grid, if there is one."""
        if len(self.components) != 1:
            return None
        component, count = self.components[0]
        if count == 1 or isinstance(component, SampledLoss):
            return SampledPower(component, count) if isinstance(component, SampledLoss) else component
        return two_atom_power(component, count) if isinstance(component, AtomLoss) else None

    @property
    def _needs_no_grid(self) -> bool:
        """Whether both ends of an answer come from a form that needs no grid of the whole support."""
        return self._closed is not None or not _grid_first(self)

    def largest_epsilon(self, delta: Number) -> Number:
        """A number that ε(δ) does not exceed."""
        if self.pure.b < INFINITY:
            return self.pure
        if isinstance(self._closed, GaussianLoss):
            mu = self._closed.mu
            return mu**2 / 2 + mu * sqrt(2 * log(1 / delta))
        return number(2 * self.components[0][0].span + 1)

    def step(self, points: int) -> float:
        """A grid step: fine enough for 10⁻³ relative accuracy, coarse enough for this number of points."""
        spans = [component.span for component, _ in self.components]
        counts = [n for _, n in self.components]
        if len(self.components) == 1 and isinstance(self.components[0][0], LaplaceLoss | TruncatedLaplaceLoss):
            n, a = counts[0], spans[0]
            # The error is of second order with many coordinates, of first order with few.
            wanted = max(60 * math.sqrt(math.sqrt(n) * a * min(1.0, a)), (1 << 17) / n, 8)
            finest = 4 * points if points == RESOLUTIONS[-1] else points  # a single loss can use more points
            return a / math.ceil(min(wanted, 1 << 14, max(4, finest / (2 * n))))
        whole = 2 * sum(s * n for s, n in zip(spans, counts, strict=True))
        units = [component.unit if isinstance(component, OnLattice) else 0.0 for component, _ in self.components]
        if min(units) == max(units) > 0 and whole / units[0] <= RESOLUTIONS[-1]:
            return units[0]  # all losses lie on this grid
        return whole / points

    def composed(
        self, side: Side, step: float, *, epsilon: float | None = None, delta: float | None = None
    ) -> ComposedLoss:
        """The composition on a grid, tilted so that it is most precise at the given ε or δ."""
        return composed_loss(self.components, step, side, _tilt(self, side, epsilon, delta))

    def _repr_html_(self) -> str:
        from dpassay.report.pages.cards import loss_card

        return loss_card(self)


@lru_cache(maxsize=ANSWERS)
def _tilt(loss: PrivacyLoss, side: Side, epsilon: float | None, delta: float | None) -> float:
    """Any tilt is valid; a coarse grid finds a good one."""
    step = loss.step(COARSEST)
    placed = on_grid(loss.components, step, side)
    if epsilon is not None:
        return tilt_for_epsilon(placed, step, epsilon)
    return tilt_for_delta(placed, step, delta or 1.0)


@lru_cache(maxsize=ANSWERS)
def _delta_of_sum(loss: PrivacyLoss, epsilon: Number) -> Number:
    """δ(ε) of a sum: all outcomes listed, folded on a lattice, or on a grid of the whole support."""
    return _narrowest(
        [
            (lambda: sum_delta(loss.components, epsilon, loss.infinite), CLOSE_FOLDED),
            (lambda: _delta_on_grid(loss, epsilon), CLOSE_DELTA),
        ],
        _grid_first(loss),
    )


@lru_cache(maxsize=ANSWERS)
def _epsilon_of_sum(loss: PrivacyLoss, delta: Number) -> Number:
    """ε(δ) of a sum, in the same way."""
    return _narrowest(
        [
            (lambda: sum_epsilon(loss.components, delta - loss.infinite), CLOSE_FOLDED),
            (lambda: _epsilon_on_grid(loss, delta), CLOSE_EPSILON),
        ],
        _grid_first(loss),
    )


def _narrowest(ways: list[tuple[Callable[[], Number | None], Number]], backwards: bool) -> Number:
    """What the first way gives if it is close enough, and otherwise what all give together."""
    value = between(ZERO, INFINITY)
    for way, close in reversed(ways) if backwards else ways:
        if (found := way()) is not None:
            value = between(maximum(value, found), minimum(value, found))
            if value.b < INFINITY and value.delta <= close * value.b:
                break
    return value


def _grid_first(loss: PrivacyLoss) -> bool:
    """Whether a grid of the whole support is tried first: it is quick for one kind of noise that is not sampled."""
    kinds = {type(component) for component, _ in loss.components}
    return len(kinds) == 1 and not kinds & {AtomLoss, SampledLoss, SampledLaplaceLoss, SampledSumLoss}


def _delta_on_grid(loss: PrivacyLoss, epsilon: Number) -> Number:
    def bounds(step: float) -> Number:
        lower = loss.composed("delta-down", step, epsilon=up(epsilon)).delta(epsilon, upper=False)
        upper = loss.composed("delta-up", step, epsilon=down(epsilon)).delta(epsilon, upper=True)
        return between(maximum(ZERO, exactly(lower)), minimum_one(exactly(upper)))

    found = _refined(loss, bounds, CLOSE_DELTA)
    if found.a > 0:
        return found
    # The losses span too much for a grid. One of the coordinates alone shows no more than all of them.
    alone = maximum(ZERO, *(component.delta(epsilon) for component, _ in loss.components))
    return between(alone, found) if alone.a <= found.b else found


def _epsilon_on_grid(loss: PrivacyLoss, delta: Number) -> Number:
    def bounds(step: float) -> Number:
        below, above = up(delta), down(delta)
        lower = loss.composed("delta-down", step, delta=below).epsilon(below, upper=False)
        upper = loss.composed("delta-up", step, delta=above).epsilon(above, upper=True)
        return between(exactly(lower), real(min(exactly(upper), loss.pure.b)))

    return _refined(loss, bounds, CLOSE_EPSILON)


def _refined(loss: PrivacyLoss, bounds: Callable[[float], Number], close: Number) -> Number:
    """Refine a grid until its bounds are close, or it is as fine as allowed."""
    for step in dict.fromkeys(loss.step(points) for points in RESOLUTIONS):
        value = bounds(step)
        if value.delta <= close * value.b:
            break
    return value


def _at_least_zero(epsilon: Any) -> Number:
    value = number(epsilon)
    if value.a < 0 or value.b == INFINITY:
        raise InputError(f"epsilon must be a finite number, 0 or more, got {epsilon}")
    return value


def _probability(delta: Any) -> Number:
    value = number(delta)
    if value.a < 0 or value.b >= 1:
        raise InputError(f"delta must be at least 0 and less than 1, got {delta}")
    return value


@lru_cache(maxsize=ANSWERS)
def _closed_epsilon(loss: PrivacyLoss, delta: Number) -> Number:
    """Enclose the point where a decreasing closed form of δ(ε) passes δ: guessed, and confirmed on either side."""
    delta_of, largest = loss.delta_number, loss.largest_epsilon(delta)
    if delta_of(ZERO).b <= delta.a:
        return ZERO
    if delta_of(largest).a > delta.b:
        return between(largest, INFINITY)
    closed, target = loss.components[0][0], math.log(middle(delta))
    if isinstance(closed, AtomLoss) and (delta - closed.infinite) == 0 and all(p.a > 0 for _, p in closed.atoms):
        return maximum(ZERO, *(atom for atom, _ in closed.atoms))  # no finite loss may exceed ε
    guess = gaussian_epsilon_guess(delta, closed.mu) if isinstance(closed, GaussianLoss) else None
    if isinstance(closed, AtomLoss):
        guess = closed.near_epsilon(delta)
    if guess is None:
        low, high = falling_root(
            lambda e: math.log(max(middle(delta_of(number(e))), 1e-300)) - target, 0.0, up(largest), 1e-15
        )
        guess = number((low + high) / 2)
    for slack in ("1e-15", "1e-14", "1e-12", "1e-9", "1e-6", "1e-4", "1e-2", "1e-1"):
        ends = guess * (1 - number(slack)), guess * (1 + number(slack))
        if delta_of(ends[0]).a > delta.b and delta_of(ends[1]).b <= delta.a:
            return between(*ends)
    # If δ(0) is just δ itself, ε is 0 or close to it.
    tiny = number("1e-9")
    return between(ZERO, tiny) if delta_of(tiny).b <= delta.a else between(ZERO, INFINITY)
