"""The privacy loss as probabilities of single losses, in doubles, for plots: no verdict rests on them.

A sum of many losses is computed on a grid. Each loss is split between the two grid points around it, which preserves
its mean; rounding could shift the sum by as many grid steps as there are losses.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import singledispatch

import numpy as np

from dpassay.core.numbers import ZERO, Number, middle, number
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss, LossComponent
from dpassay.exact.pld.noises.integer import OnLattice
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss
from dpassay.exact.profiles.bounds import before_dropout
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

OUTPUTS, WIDE, MOST = 6_001, 12.0, 1 << 19  # of one loss; standard deviations on either side; points of a grid
FAR = 60.0  # scales beyond which Laplace noise is practically impossible
FEW = 40  # up to this many losses are kept one by one
FOR_CURVES = 4_000  # points from which δ is computed


@dataclass(frozen=True)
class LossMasses:
    """Finite losses in increasing order, with their probabilities, and the probability of an infinite one.

    If the losses lie on a grid, a pattern may repeat every `period` points of it (0 if there is none). `gaussian` is
    the μ of a loss that is normal with mean μ²/2 and variance μ²; `smooth` marks a grid that stands for a density.

    >>> bit = LossMasses(np.array([-1.0, 1.0]), np.array([0.25, 0.75]))
    >>> bit.delta(np.array([0.0])).round(4), bit.tail(np.array([0.0, 1.0]))  # 3/4·(1 − 1/e)
    (array([0.4741]), array([0.75, 0.  ]))
    """

    losses: Array
    masses: Array
    infinite: float = 0.0
    period: int = 0
    gaussian: float = 0.0
    smooth: bool = False

    def delta(self, epsilons: Array, mu: Number = ZERO) -> Array:
        """δ at each ε, after word dropout with probability mu."""
        losses, masses = self._fewer(FOR_CURVES)
        before = [middle(before_dropout(number(epsilon), mu)) for epsilon in epsilons.tolist()]
        finite = [np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))) @ masses for epsilon in before]
        return (1 - middle(mu)) * np.minimum(1.0, np.array(finite) + self.infinite)

    def tail(self, epsilons: Array) -> Array:
        """P(L > ε) at each ε. A loss that equals ε up to rounding does not count.

        >>> from dpassay.pipeline.distributions import Gaussian
        >>> found = loss_masses(PrivacyLoss.of_shifts(Gaussian(2), [(number(1), 1)]))
        >>> f"{found.tail(np.array([2.0]))[0]:.5g}"  # Φ(−ε/μ + μ/2) with μ = 1/2
        '8.8417e-05'
        """
        if self.gaussian:
            from scipy.special import ndtr

            return np.asarray(ndtr(self.gaussian / 2 - epsilons / self.gaussian))
        if self.smooth:  # the mass of a grid point lies half a step around it
            beyond = np.cumsum(self.masses[::-1])[::-1]
            edges = self.losses - (self.losses[1] - self.losses[0]) / 2
            with np.errstate(divide="ignore"):
                logs = np.interp(epsilons, edges, np.log(np.maximum(beyond, 1e-300)))
            return np.asarray(np.where(epsilons > edges[-1], 0.0, np.minimum(1.0, np.exp(logs) + self.infinite)))
        beyond = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)
        found = beyond[np.searchsorted(self.losses, epsilons * (1 + 1e-9) + 1e-12, side="right")]
        return np.minimum(1.0, found + self.infinite)

    def _fewer(self, most: int) -> tuple[Array, Array]:
        """Losses and masses in at most `most` groups of neighbors, with the same mean."""
        there = np.flatnonzero(self.masses > 1e-17)
        if not len(there):
            return self.losses[:1], self.masses[:1]
        losses, masses = self.losses[there], self.masses[there]
        starts = np.arange(0, len(there), -(-len(there) // most))
        joined = np.add.reduceat(masses, starts)
        return np.add.reduceat(losses * masses, starts) / joined, joined

    def histogram(self, about: int) -> tuple[Array, Array]:
        """The losses that matter, in about `about` bins of equal width. A pattern is kept, or merged as a whole.

        >>> losses, masses = LossMasses(np.arange(64.0), np.full(64, 1 / 64)).histogram(4)
        >>> losses.tolist(), masses.tolist()
        ([7.5, 23.5, 39.5, 55.5], [0.25, 0.25, 0.25, 0.25])
        """
        there = np.flatnonzero(self.masses > 1e-6 * self.masses.max())
        losses, masses = (side[there[0] : there[-1] + 1] for side in (self.losses, self.masses))
        if len(losses) <= FEW:
            step = float(np.ptp(losses)) / about or 1.0
            joined, edges = np.histogram(losses, about, (losses[0] - step / 2, losses[-1] + step / 2), weights=masses)
            return (edges[:-1] + edges[1:]) / 2, joined
        each = -(-len(losses) // about)
        if self.period and each > self.period / 6:
            each = -(-each // self.period) * self.period
        step, missing = float(losses[1] - losses[0]), -len(losses) % each
        losses = np.append(losses, losses[-1] + step * np.arange(1, missing + 1))
        masses = np.append(masses, np.zeros(missing))
        return losses.reshape(-1, each).mean(axis=1), masses.reshape(-1, each).sum(axis=1)


def loss_masses(loss: PrivacyLoss) -> LossMasses | None:
    """The probabilities of a loss; None if they are not known, or would need too fine a grid.

    >>> from dpassay.pipeline.distributions import Laplace
    >>> found = loss_masses(PrivacyLoss.of_shifts(Laplace(1), [(number("0.01"), 768)]))
    >>> round(float(found.losses @ found.masses), 4)  # 768·(a − 1 + e^(−a)) at a = 1/100
    0.0383
    """
    infinite = middle(loss.infinite)
    steps = [(*_one(component), count) for component, count in loss.components]
    if not steps:
        return LossMasses(np.zeros(1), np.ones(1))
    if infinite >= 1:
        return LossMasses(np.zeros(1), np.zeros(1), infinite)
    if not all(weights.sum() > 0 for _, weights, _ in steps):
        return None  # it is not known whether the loss is infinite
    component, count = loss.components[0]
    if all(isinstance(one, GaussianLoss | SampledLoss) for one, _ in loss.components):
        return _density(loss, _summed(steps, infinite, 0.0))
    if len(steps) > 1:
        return _summed(steps, infinite, 0.0)
    losses, weights, _ = steps[0]
    if count == 1 and len(losses) <= FEW:
        order = np.argsort(losses)
        return LossMasses(losses[order], weights[order], infinite)
    if isinstance(component, AtomLoss) and len(losses) == 2:
        return _binomial(losses, weights, count, infinite)
    # The two outer losses of Laplace noise form a pattern; so do multiples of one number.
    pattern = float(np.ptp(losses)) if isinstance(component, LaplaceLoss) else 0.0
    return _summed(steps, infinite, component.unit if isinstance(component, OnLattice) else pattern)


def _density(loss: PrivacyLoss, found: LossMasses | None) -> LossMasses | None:
    """The same, marked as a density; that of Gaussian noise alone with its μ."""
    if found is None or len(found.losses) < 2:
        return found
    if not all(isinstance(one, GaussianLoss) for one, _ in loss.components) or found.infinite:
        return replace(found, smooth=True)
    squares = [n * middle(one.mu) ** 2 for one, n in loss.components if isinstance(one, GaussianLoss)]
    return replace(found, gaussian=math.sqrt(sum(squares)))


def step_densities(component: SampledLoss, t: Array) -> tuple[Array, Array]:
    """The densities of one sampled step's output, in units of sigma, for the first and the second data set.

    >>> loss = SampledLoss(number("0.5"), number(1), "remove")
    >>> [float(side[0].round(4)) for side in step_densities(loss, np.zeros(1))]  # φ(0)(1 + e^(-1/2))/2, φ(0)
    [0.3205, 0.3989]
    """
    rate, mu = middle(component.rate), middle(component.mu)

    def bell(centre: float) -> Array:
        return np.asarray(np.exp(-((t - centre) ** 2) / 2) / math.sqrt(2 * math.pi))

    taking_part = (1 - rate) * bell(0) + rate * bell(mu)
    if component.way == "add":
        return bell(0), taking_part
    return taking_part, (1 - rate) * bell(0) + rate * bell(-mu) if component.way == "replace" else bell(0)


@singledispatch
def _one(component: LossComponent) -> tuple[Array, Array]:
    """One loss as points with weights, which sum to the probability that it is finite."""
    cells = component.cells(component.span / OUTPUTS, 1, upper=False)
    return cells.centre, cells.mass / cells.mass.sum() * (1 - middle(component.infinite))


@_one.register(AtomLoss)
def _(component: AtomLoss) -> tuple[Array, Array]:
    each = [(middle(loss), middle(chance)) for loss, chance in component.atoms]
    return np.array([loss for loss, _ in each]), np.array([chance for _, chance in each])


@_one.register(GaussianLoss)
def _(component: GaussianLoss) -> tuple[Array, Array]:
    mu, z = middle(component.mu), np.linspace(-WIDE, WIDE, OUTPUTS)
    weights = np.exp(-(z**2) / 2)
    return mu * z + mu**2 / 2, weights / weights.sum()


@_one.register(LaplaceLoss)
def _(component: LaplaceLoss) -> tuple[Array, Array]:
    """It is a − 2t where the noise t lies between the inputs, else ±a."""
    a = middle(component.shift)
    t = (np.arange(OUTPUTS) + 0.5) * min(a, FAR) / OUTPUTS
    between = np.exp(-t) / np.exp(-t).sum() * -math.expm1(-a) / 2
    return np.concatenate([[a, -a], a - 2 * t]), np.concatenate([[0.5, math.exp(-a) / 2], between])


@_one.register(SampledLoss)
def _(component: SampledLoss) -> tuple[Array, Array]:
    t = np.linspace(-WIDE, middle(component.mu) + WIDE, OUTPUTS)
    first, second = step_densities(component, t)
    weights = first / first.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(weights > 1e-30, np.log(first) - np.log(second), 0.0), weights


def _binomial(losses: Array, weights: Array, count: int, infinite: float) -> LossMasses:
    """Many losses, each of them one of two."""
    from scipy.special import gammaln, xlogy

    (less, p), (more, q) = sorted(zip(losses.tolist(), weights.tolist(), strict=True))
    centre, spread = count * q / (p + q), WIDE * math.sqrt(count * p * q) + FEW
    k = np.arange(max(0, int(centre - spread)), min(count, int(centre + spread)) + 1)  # times of the larger one
    ways = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    masses = np.exp(ways + xlogy(count - k, p) + xlogy(k, q))
    return LossMasses(less * (count - k) + more * k, masses, infinite)


def _summed(steps: list[tuple[Array, Array, int]], infinite: float, pattern: float) -> LossMasses | None:
    """The sum of independent losses, by Fourier transforms; `pattern` is a distance that must fit the grid."""
    shares = [weights / weights.sum() for _, weights, _ in steps]
    means = [float(each @ share) for (each, _, _), share in zip(steps, shares, strict=True)]
    squares = [float((s[0] - mean) ** 2 @ share) for s, mean, share in zip(steps, means, shares, strict=True)]
    spread = math.sqrt(sum(square * n for square, (_, _, n) in zip(squares, steps, strict=True)))
    widest = max(float(np.ptp(each[weights > 1e-30])) for each, weights, _ in steps)
    mean = sum(n * one for one, (_, _, n) in zip(means, steps, strict=True))
    if spread == 0:
        return LossMasses(np.array([mean]), np.array([1 - infinite]), infinite)
    step = spread / max(100.0, 20 * math.sqrt(sum(n for _, _, n in steps)))  # splitting adds 1/1600 to the variance
    period = math.ceil(pattern / step)
    step = pattern / period if period else step
    size = 1 << math.ceil(math.log2(max(1024.0, (24 * spread + 2 * widest) / step)))
    if size > MOST:
        return None
    transform, origin = np.ones(size // 2 + 1, dtype=complex), 0.0
    for each, weights, n in steps:
        likeliest = float(each[np.argmax(weights)])  # an atom, if there is one, lies on the grid
        places = (each - likeliest) / step
        places = np.where(np.abs(places - np.rint(places)) < 1e-6, np.rint(places), places)
        below = np.floor(places).astype(int)
        one = np.bincount(below % size, weights * (below + 1 - places), size)
        one += np.bincount((below + 1) % size, weights * (places - below), size)
        transform *= np.fft.rfft(one) ** n
        origin += n * likeliest
    centre = round((mean - origin) / step)
    summed = np.roll(np.fft.irfft(transform, size), size // 2 - centre)
    summed[summed <= -4 * summed.min()] = 0.0  # rounding errors of 0 are equally often negative
    losses = np.asarray(origin + step * (np.arange(size) + (centre - size // 2)), dtype=float)
    return LossMasses(losses, np.maximum(0.0, summed), infinite, period)
