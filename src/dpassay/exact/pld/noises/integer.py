"""The loss of discrete noise between integers.

docs/proofs/discrete-laplace.md and docs/proofs/discrete-gaussian.md.
"""

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from dpassay.core.numbers import (
    INFINITY,
    ONE,
    PI,
    ZERO,
    Number,
    between,
    down,
    exp,
    log,
    maximum,
    middle,
    minimum,
    real,
    sqrt,
    up,
)
from dpassay.exact.pld.loss_components import AtomLoss, Cells, LossComponent
from dpassay.pipeline.discrete_noise import DiscreteGaussian, DiscreteLaplace, DiscreteNoise
from dpassay.values import dataclass

_MOST_CELLS = 1 << 12


def whole_number(value: Number) -> int | None:
    """A number as an integer; None if it is not one, or may not be one.

    >>> whole_number(real(3)), whole_number(real("0.5"))
    (3, None)
    """
    if not value.a == value.b or abs(value).b == INFINITY or abs(value).b > 2**53:
        return None
    exact = Fraction(down(value))
    return int(exact) if exact.denominator == 1 else None


def surely_broken(value: Number) -> bool:
    """Whether a number is certainly not an integer."""
    low, high = Fraction(down(value)), Fraction(up(value))
    return math.floor(low) == math.floor(high) and low != math.floor(low)


def whole_loss(noise: DiscreteNoise, shift: Number) -> LossComponent:
    """The loss of one coordinate: noise around 0 against the same noise around `shift`."""
    if surely_broken(shift):
        return AtomLoss((), ONE)  # no output in common
    size = whole_number(abs(shift))
    if size is None:
        return AtomLoss((), between(ZERO, ONE))  # the digits cannot decide
    if isinstance(noise, DiscreteGaussian):
        return DiscreteGaussianLoss(size, noise.sigma)
    assert isinstance(noise, DiscreteLaplace)
    if size == 1:
        loss = 1 / noise.scale
        return AtomLoss(((loss, 1 / (1 + exp(-loss))), (-loss, 1 / (1 + exp(loss)))))
    return DiscreteLaplaceLoss(size, noise.scale)


@runtime_checkable
class OnLattice(Protocol):
    """A loss all of whose finite values are integer multiples of one number."""

    @property
    def unit(self) -> float:
        """That number."""


@dataclass(frozen=True)
class DiscreteLaplaceLoss:
    """Discrete Laplace noise against itself shifted by an integer.

    >>> from dpassay.core.numbers import middle, number
    >>> round(middle(DiscreteLaplaceLoss(2, number(2)).delta(ZERO)), 6)  # as of Laplace noise, 1 − e^(−1/2)
    0.393469
    """

    shift: int
    scale: Number
    infinite: ClassVar[Number] = ZERO

    @property
    def pure(self) -> Number:
        return self.shift / self.scale

    @cached_property
    def _ratio(self) -> Number:
        """The ratio of the probabilities of two neighboring numbers."""
        return exp(-1 / self.scale)

    @property
    def mean(self) -> Number:
        """(k − 2E)/b, E = a(1 − a^k)/(1 − a²) the mean of the output moved into 0 to k."""
        a = self._ratio
        return (self.shift - 2 * a * (1 - a**self.shift) / (1 - a**2)) / self.scale

    @property
    def span(self) -> float:
        return up(self.pure)

    @property
    def unit(self) -> float:
        """Losses are integer multiples of 1/scale."""
        return middle(1 / self.scale)

    def delta(self, epsilon: Number) -> Number:
        """1 − (a^(m+1) + e^ε a^(k−m))/(1 + a), m the largest output with a loss above ε; it decreases with ε."""
        return between(*(self._delta(real(end)) for end in (epsilon.b, epsilon.a)))

    def _delta(self, epsilon: Number) -> Number:
        k, a = self.shift, self._ratio
        if (self.pure - epsilon).b <= 0:
            return ZERO
        if (self.pure + epsilon).b <= 0:
            return 1 - exp(epsilon)
        last = (k - epsilon * self.scale) / 2  # the best of all events "at most m", so trying more of them does no harm
        tried = range(max(0, math.floor(down(last)) - 1), min(k, math.ceil(up(last))) + 1)
        rise = exp(epsilon)
        return maximum(ZERO, *(1 - (a ** (m + 1) + rise * a ** (k - m)) / (1 + a) for m in tried))

    def divergence(self, order: Number) -> Number:
        """The Rényi divergence of an order above 1."""
        k, a = self.shift, self._ratio
        r = exp((1 - 2 * order) / self.scale)
        moment = (1 + r**k + (1 - a) * (r - r**k) / (1 - r)) / (1 + a)
        return self.pure + log(moment) / (order - 1)

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """The outputs 0 to k, with those beyond moved to these; if there are many, several in one cell."""
        return _laplace_cells(self.shift, self.scale, upper)


@lru_cache(maxsize=16)  # of the same loss on several grids
def _laplace_cells(k: int, scale: Number, upper: bool) -> Cells:
    """Cells of equal numbers of outputs, and near 0, where almost all of them may be, cells of equal ratios."""
    a, side = exp(-1 / scale), up if upper else down
    if k <= _MOST_CELLS:
        edges = list(range(1, k + 1))
    else:
        even, near = (spaced(1, k, _MOST_CELLS // 2).astype(np.int64) for spaced in (np.linspace, np.geomspace))
        edges = np.unique(np.concatenate([even, near[near < k], [k]])).tolist()
    least = exp(-k / scale)
    tails = [exp(-first / scale) for first in edges[:-1]] + [least]
    mass = [1 / (1 + a), *((tail - after) / (1 + a) for tail, after in pairwise(tails)), least / (1 + a)]
    ends = [(0, 0), *((first, after - 1) for first, after in pairwise(edges)), (k, k)]
    high, low = ([side((k - 2 * pair[i]) / scale) for pair in ends] for i in (0, 1))
    centre = [side((k - first - last) / scale) for first, last in ends]
    return Cells(np.array([side(each) for each in mass]), np.array(centre), np.array(low), np.array(high))


@dataclass(frozen=True)
class DiscreteGaussianLoss:
    """Discrete Gaussian noise against itself shifted by an integer.

    >>> from dpassay.core.numbers import middle, number
    >>> round(middle(DiscreteGaussianLoss(1, number(1)).delta(ZERO)), 6)  # P(0), by the symmetry of the pair
    0.398942
    """

    shift: int
    sigma: Number
    infinite: ClassVar[Number] = ZERO

    @property
    def pure(self) -> Number:
        return INFINITY

    @property
    def mean(self) -> Number:
        """k²/(2σ²), as the noise has mean 0."""
        return self.shift**2 / (2 * self.sigma**2)

    @property
    def span(self) -> float:
        s, k = up(self.sigma), self.shift
        return (k * k + 2 * k * (k + 14 * s)) / (2 * s * s)

    @property
    def unit(self) -> float:
        """Losses are integer multiples of k/(2σ²)."""
        return middle(self.shift / (2 * self.sigma**2))

    @cached_property
    def _total(self) -> Number:
        """The sum of e^(−t²/2σ²), by Poisson's formula: the terms beyond the first are at most q^j."""
        if self.sigma.a < 3:
            terms = [exp(-(t**2) / (2 * self.sigma**2)) for t in range(1, 60)]
            return 1 + 2 * sum(terms, ZERO) + real([0, 4]) * terms[-1]
        q = exp(-2 * (PI * self.sigma) ** 2)
        return self.sigma * sqrt(2 * PI) * (1 + 2 * real([0, (q / (1 - q)).b]))

    def delta(self, epsilon: Number) -> Number:
        """The sum of P(t)(1 − e^(ε−L(t))) over the outputs with a loss above ε, which decreases with ε."""
        return between(*(self._delta(real(end), upper) for end, upper in ((epsilon.b, False), (epsilon.a, True))))

    def _delta(self, epsilon: Number, upper: bool) -> Number:
        """Outputs t ≤ m with 1 − e^(−k(m − t + f)/σ²), t* = m + f where the loss is ε; t² is relative to its least."""
        k = self.shift
        crossing = k / real(2) - self.sigma**2 * epsilon / k
        if abs(crossing).b > 1e15:
            return ZERO if crossing.mid < 0 and not upper else real([0, 1])
        last = math.ceil(up(crossing)) - 1 if upper else math.ceil(down(crossing)) - 1
        rest = (up if upper else down)(crossing - last)
        s2 = middle(self.sigma) ** 2
        likeliest = min(last, 0)
        reach = math.ceil(math.sqrt(likeliest**2 + 200 * s2)) + 2
        t = np.arange(min(last, reach), -reach - 1, -1, dtype=float)
        falling = -(t - likeliest) * (t + likeliest) / (2 * s2)
        total = float((np.exp(falling) * -np.expm1(-k * np.maximum(0.0, last - t + rest) / s2)).sum())
        # Each term is off by its exponent's rounding; omitted terms are below e^−100 times the number of terms.
        slack = 1e-15 * (64 + 300) + len(t) * 1e-16
        total = total * (1 + slack) + math.exp(-99) * (2 + s2) if upper else total * (1 - slack)
        scale = exp(-(real(likeliest) ** 2) / (2 * self.sigma**2)) / self._total
        found = real(max(0.0, total)) * scale * (1 + real([-1, 1]) * real("1e-13"))
        return minimum(ONE, found)

    def divergence(self, order: Number) -> Number:
        """The Rényi divergence of an order above 1: that of Gaussian noise for integers, and hardly less for others."""
        if whole_number(order) is not None:
            return order * self.mean
        q = exp(-2 * (PI * self.sigma) ** 2)
        apart = maximum(exp(-1 / (8 * self.sigma**2)) / self._total, (1 - 3 * q) / (1 + q))
        most = order * self.mean
        return between(maximum(ZERO, most + log(apart) / (order - 1)), most)

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """One cell for each output; from above, the mass beyond them is counted at infinity."""
        s, k, side = middle(self.sigma), self.shift, 1 if upper else -1
        reach = math.ceil(14 * s) + min(k, math.ceil(100 * s))
        t = np.arange(-reach, reach + 1, dtype=float)
        mass = np.exp(-0.5 * (t / s) ** 2) / middle(self._total) * (1 + side * 1e-12)
        loss = (k * k - 2 * k * t) / (2 * s * s) * (1 + 1e-14)
        loss = loss + side * 1e-13 * (1 + np.abs(loss))
        if upper:
            mass, loss = np.append(mass, 1e-30), np.append(loss, np.inf)
        return Cells(mass, loss, np.where(np.isinf(loss), self.span, loss), loss)
