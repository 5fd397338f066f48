"""Losses of one independent coordinate: the components of a loss distribution.

A component is the distribution of L = ln(P(t)/Q(t)) with t drawn from P. It is exact where a closed
form exists, and can be divided into `Cells` for composition: see docs/proofs/discretisation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import numpy as np

from dpassay.core.functions.normal import gaussian_delta
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, down, exp, log, maximum, number, real, sqrt, up
from dpassay.errors import InputError
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

MOST_ATOMS = 1024


@dataclass(frozen=True, slots=True)
class Cells:
    """Pieces of the output space: the P-mass of each, ln(P/Q) of the whole piece, and its loss's range."""

    mass: Array
    centre: Array
    low: Array
    high: Array


class LossComponent(Protocol):
    """The loss of one coordinate."""

    @property
    def pure(self) -> Number:
        """The largest loss that can occur."""

    @property
    def mean(self) -> Number:
        """The expected loss, which is the Kullback-Leibler divergence."""

    @property
    def infinite(self) -> Number:
        """The probability of an infinite loss."""

    @property
    def span(self) -> float:
        """The largest finite |loss| that cells need to cover."""

    def delta(self, epsilon: Number) -> Number:
        """E[max(0, 1 − e^(ε−L))], for ε ≥ 0."""

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Divide the finite part at multiples of stride·step, erring toward the requested side."""


@dataclass(frozen=True)
class LaplaceLoss:
    """Laplace noise against itself shifted by `shift` scales.

    >>> from dpassay.core.numbers import middle, number
    >>> component = LaplaceLoss(number(1))
    >>> round(middle(component.mean), 5), round(middle(component.delta(ZERO)), 5)
    (0.36788, 0.39347)
    """

    shift: Number
    infinite: ClassVar[Number] = ZERO

    @property
    def pure(self) -> Number:
        return self.shift

    @property
    def mean(self) -> Number:
        """a − 1 + e^−a."""
        return self.shift - 1 + exp(-self.shift)

    @property
    def span(self) -> float:
        return up(self.shift)

    def delta(self, epsilon: Number) -> Number:
        """1 − e^((ε−a)/2) up to ε = a."""
        return maximum(ZERO, 1 - exp((epsilon - self.shift) / 2))

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Two atoms and cells between; the loss of a cell as a whole is exactly its middle."""
        a = up(self.shift) if upper else down(self.shift)
        width = step * stride
        # A shift that is almost a multiple of the width is taken for one; round to the safe side.
        count = round(2 * a / width)
        if count and math.isclose(count * width, 2 * a, rel_tol=1e-12):
            edges = (np.arange(count + 1) - count / 2) * width
            outer = max if upper else min
            edges[0], edges[-1] = -outer(-edges[0], a), outer(edges[-1], a)
        else:
            inner = np.arange(math.ceil(-a / width), math.floor(a / width) + 1) * width
            edges = np.unique(np.concatenate([[-a], inner[np.abs(inner) < a], [a]]))
        centre, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        # e^((c − a)/2) sinh(half/2), written so that nothing overflows
        mass = np.exp((centre + half - a) / 2) * -np.expm1(-half) / 2
        atoms, weights = np.array([-a, a]), np.array([math.exp(-a) / 2, 0.5])
        return Cells(
            np.concatenate([weights, mass]),
            np.concatenate([atoms, centre]),
            np.concatenate([atoms, edges[:-1]]),
            np.concatenate([atoms, edges[1:]]),
        )


@dataclass(frozen=True)
class GaussianLoss:
    """Gaussian noise against itself shifted by `mu` standard deviations.

    >>> from dpassay.core.numbers import middle, number
    >>> sigma = number("0.48448")
    >>> f"{middle(GaussianLoss(1 / sigma).delta(number(10))):.4g}"
    '2.265e-05'
    """

    mu: Number
    infinite: ClassVar[Number] = ZERO

    @property
    def pure(self) -> Number:
        return ZERO if self.mu == 0 else INFINITY

    @property
    def mean(self) -> Number:
        """μ²/2."""
        return self.mu**2 / 2

    @property
    def span(self) -> float:
        mu = up(self.mu)
        return mu * mu / 2 + 12 * mu

    def delta(self, epsilon: Number) -> Number:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
        return gaussian_delta(epsilon, self.mu)

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Cells of the normal distribution of the loss, mean μ²/2 and standard deviation μ."""
        from scipy.special import ndtr

        mu = up(self.mu) if upper else down(self.mu)
        width = step * stride
        last = math.ceil(self.span / width)
        edges: Array = np.arange(-last, last + 1) * np.float64(width)

        def masses(mean: float) -> Array:
            z = (edges - mean) / mu
            # Differences of the smaller tail keep their relative precision.
            return np.asarray(np.where(z[1:] < 0, ndtr(z[1:]) - ndtr(z[:-1]), ndtr(-z[:-1]) - ndtr(-z[1:])))

        p, q = masses(mu * mu / 2), masses(-mu * mu / 2)
        low, high = edges[:-1].copy(), edges[1:].copy()
        # A mass is a difference of nearby tails, each off by a few ulps, and z² more for the rounding of z.
        p_slack, q_slack = (_tail_error((low - mean) / mu, (high - mean) / mu) for mean in (mu * mu / 2, -mu * mu / 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            known = (p > 8 * p_slack) & (q > 8 * q_slack)
            off = np.where(known, 2 * (p_slack / p + q_slack / q), np.inf)
            centre = np.where(known, np.log(p / q), high if upper else low)
        centre = np.clip(centre + off if upper else centre - off, low, high)
        if upper:
            # Mass above the cells is counted at infinity, mass below them at the lowest cell.
            p = np.append(p + p_slack, 1e-30)
            p[0] += 1e-30
            low, high, centre = np.append(low, high[-1]), np.append(high, np.inf), np.append(centre, np.inf)
        else:
            p = np.maximum(0.0, p - p_slack)
        return Cells(p, centre, low, high)


def _tail_error(first: Array, second: Array) -> Array:
    """A bound on the error of the difference of two normal tails, computed in doubles."""
    from scipy.special import ndtr

    near, far = (pick(np.abs(first), np.abs(second)) for pick in (np.minimum, np.maximum))
    return np.asarray(1e-15 * (8 + far**2) * ndtr(-near) + 1e-300)


@dataclass(frozen=True)
class AtomLoss:
    """Finitely many losses, each with its probability under P, and the probability of an infinite one.

    >>> from dpassay.core.numbers import middle, number
    >>> keep = number("0.75")
    >>> component = AtomLoss(((log(3), keep), (-log(3), 1 - keep)))
    >>> round(middle(component.delta(ZERO)), 9)
    0.5
    """

    atoms: tuple[tuple[Number, Number], ...]
    infinite: Number = ZERO

    @classmethod
    def between(cls, p: tuple[Number, ...], q: tuple[Number, ...]) -> AtomLoss:
        """The loss of one finite pmf against another."""
        infinite, atoms = ZERO, []
        for one, other in zip(p, q, strict=True):
            if one == 0:
                continue
            if other == 0:
                infinite += one
            else:
                atoms.append((log(one / other), one))
        return cls(tuple(atoms), infinite)

    @classmethod
    def of_bits(cls, p: Any, q: Any) -> AtomLoss:
        """The loss of a bit that is 1 with probability p against one that is 1 with probability q."""
        one, other = number(p), number(q)
        return cls.between((one, 1 - one), (other, 1 - other))

    @property
    def pure(self) -> Number:
        if self.infinite.a > 0:
            return INFINITY
        finite = maximum(*(loss for loss, _ in self.atoms)) if self.atoms else ZERO
        return finite if self.infinite.b <= 0 else between(finite, INFINITY)  # it may be 0 up to rounding

    @property
    def mean(self) -> Number:
        if self.infinite.b > 0:
            return INFINITY
        return sum((loss * p for loss, p in self.atoms), ZERO)

    @property
    def span(self) -> float:
        return max((up(abs(loss)) for loss, _ in self.atoms), default=0.0)

    def delta(self, epsilon: Number) -> Number:
        terms = (p * maximum(ZERO, 1 - exp(epsilon - loss)) for loss, p in self.atoms if loss.b > epsilon.a)
        return sum(terms, self.infinite)

    def tail(self, epsilon: Number) -> Number:
        """P(L > ε); if a loss may equal ε, both with and without it."""
        surely = sum((p for loss, p in self.atoms if loss.a > epsilon.b), self.infinite)
        return between(surely, sum((p for loss, p in self.atoms if loss.b > epsilon.a), self.infinite))

    def near_epsilon(self, delta: Number) -> Number:
        """Nearly ε(δ): P(E) − e^ε Q(E) = δ solved for the events "the loss is at least a", the largest solution over a.

        >>> round(float(AtomLoss(((ONE, ONE),)).near_epsilon(ONE / 2).mid), 9)  # 1 + ln(1/2)
        0.306852819
        """
        best, p, q = ZERO, self.infinite, ZERO
        for loss, chance in sorted(self.atoms, key=lambda atom: -atom[0].mid):
            p, q = p + chance, q + chance * exp(-loss)
            if (p - delta).a > 0:
                best = maximum(best, log((p - delta) / q))
        return best

    def power(self, count: int) -> AtomLoss | None:
        """The loss of `count` copies, if it is a single atom again."""
        if len(self.atoms) > 1:
            return self if count == 1 else None
        atoms = tuple((loss * count, p**count) for loss, p in self.atoms)
        infinite = 1 - (1 - self.infinite) ** count if self.infinite != 0 else ZERO
        return AtomLoss(atoms, infinite)

    def product(self, other: AtomLoss) -> AtomLoss:
        """The loss of both together."""
        pairs = ((a, p, b, r) for a, p in self.atoms for b, r in other.atoms)
        finite = (1 - self.infinite) * (1 - other.infinite)
        infinite = ZERO if self.infinite == 0 and other.infinite == 0 else 1 - finite
        return AtomLoss(tuple((a + b, p * r) for a, p, b, r in pairs), infinite)

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        side = up if upper else down
        losses = np.array([side(loss) for loss, _ in self.atoms])
        return Cells(np.array([side(p) for _, p in self.atoms]), losses, losses, losses)


def minimum_one(value: Number) -> Number:
    """Cap a probability at 1."""
    return real([min(value.a, ONE), min(value.b, ONE)])


def high_share(centre: Array, low: Array, high: Array) -> Array:
    """The fraction of a cell's mass that goes to its high end when it is spread, rounded up."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.expm1(low - centre) / np.expm1(low - high)
    return np.clip(np.nan_to_num(share, nan=1.0) + 1e-9, 0.0, 1.0)


def merged(components: Iterable[tuple[LossComponent, int]]) -> tuple[tuple[LossComponent, int], ...]:
    """Merge components that have a closed form together: Gaussians, equal components, powers of single atoms."""
    square = ZERO
    others: dict[LossComponent, int] = {}
    for component, count in components:
        if count < 1:
            raise InputError(f"a component must occur at least once, got {count}")
        if isinstance(component, GaussianLoss):
            square += component.mu**2 * count
        else:
            others[component] = others.get(component, 0) + count
    merged: list[tuple[LossComponent, int]] = []
    product: AtomLoss | None = None
    for component, count in others.items():
        power = component.power(count) if isinstance(component, AtomLoss) else None
        if power is None:
            merged.append((component, count))
        elif product is None or len(product.atoms) * len(power.atoms) > MOST_ATOMS:
            merged += [(product, 1)] if product is not None else []
            product = power
        else:
            product = product.product(power)
    if product is not None:
        merged.append((product, 1))
    if not square == 0:
        merged.append((GaussianLoss(sqrt(square)), 1))
    return tuple(merged)
