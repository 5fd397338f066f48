"""The privacy loss as probabilities on a grid, in doubles, for pictures: no verdict rests on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpassay.core.numbers import Number, middle, number
from dpassay.exact.loss_components import AtomLoss, GaussianLoss, LaplaceLoss, LossComponent
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile_bounds import before_dropout
from dpassay.exact.sampled_loss import SampledLoss
from dpassay.pipeline.pair import Array

OUTPUTS, WIDE, MOST = 6_001, 12.0, 1 << 17  # of one step; standard deviations on either side; points of a grid
FAITHFUL = 0.05  # standard deviations by which a grid's mean may be off


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


@dataclass(frozen=True)
class Masses:
    """Losses and their probabilities on a grid; every `period` points it repeats itself, if it does (0 if not)."""

    losses: Array
    chances: Array
    period: int = 0


def masses(loss: PrivacyLoss, points: int) -> Masses | None:
    """The loss of a pair on a grid; None where a grid would not show it as it is.

    >>> from dpassay.pipeline.distributions import Laplace
    >>> found = masses(PrivacyLoss.of_shifts(Laplace(1), [(number("0.01"), 768)]), 400)
    >>> round(float(found.losses @ found.chances), 4)  # 768·(a − 1 + e^(−a)) at a = 1/100
    0.0383
    """
    steps = [(_one(component), count) for component, count in loss.components]
    lattice = _binomial(loss.components[0][0], loss.components[0][1]) if len(steps) == 1 else None
    if lattice is not None:
        return lattice
    known = [(*one, count) for one, count in steps if one is not None]
    found = _summed(known) if len(known) == len(steps) else None
    return found or _as_the_package_has_it(loss, points)


def _one(component: LossComponent) -> tuple[Array, Array] | None:
    """The loss of one step as points with weights; None where only the package knows it."""
    if isinstance(component, AtomLoss):
        each = [(middle(loss), middle(chance)) for loss, chance in component.atoms]
        return np.array([loss for loss, _ in each]), np.array([chance for _, chance in each])
    if isinstance(component, GaussianLoss):
        mu, z = middle(component.mu), np.linspace(-WIDE, WIDE, OUTPUTS)
        weights = np.exp(-(z**2) / 2)
        return mu * z + mu**2 / 2, weights / weights.sum()
    if isinstance(component, LaplaceLoss):  # a − 2t where the noise t lies between the inputs, else ±a
        a = middle(component.shift)
        t = (np.arange(OUTPUTS) + 0.5) * a / OUTPUTS
        between = np.exp(-t) / np.exp(-t).sum() * -math.expm1(-a) / 2
        return np.concatenate([[a, -a], a - 2 * t]), np.concatenate([[0.5, math.exp(-a) / 2], between])
    if isinstance(component, SampledLoss):
        t = np.linspace(-WIDE, middle(component.mu) + WIDE, OUTPUTS)
        first, second = step_densities(component, t)
        weights = first / first.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(weights > 1e-30, np.log(first) - np.log(second), 0.0), weights
    return None


def _binomial(component: LossComponent, count: int) -> Masses | None:
    """Steps that lose one of two amounts each."""
    if not isinstance(component, AtomLoss) or len(component.atoms) != 2 or count == 1:
        return None
    from scipy.special import gammaln, xlogy

    (one, p), (other, q) = sorted((middle(loss), middle(chance)) for loss, chance in component.atoms)
    centre, spread = count * q / (p + q), WIDE * math.sqrt(count * p * q) + 40
    k = np.arange(max(0, int(centre - spread)), min(count, int(centre + spread)) + 1)  # times of the larger amount
    ways = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    return Masses(one * (count - k) + other * k, np.exp(ways + xlogy(count - k, p) + xlogy(k, q)))


def _summed(steps: list[tuple[Array, Array, int]]) -> Masses | None:
    """The sum of steps. Each loss is split between two points of a grid so that the mean stays as it is."""
    count = sum(n for _, _, n in steps)
    shares = [weights / weights.sum() for _, weights, _ in steps]  # what is infinite stands apart
    means = [float(each @ share) for (each, _, _), share in zip(steps, shares, strict=True)]
    squares = [float((s[0] - mean) ** 2 @ share) for s, mean, share in zip(steps, means, shares, strict=True)]
    spread = math.sqrt(sum(square * n for square, (_, _, n) in zip(squares, steps, strict=True)))
    widest = max(float(np.ptp(each)) for each, _, _ in steps)
    if spread == 0:
        total = sum(n * mean for mean, (_, _, n) in zip(means, steps, strict=True))
        return Masses(np.array([total]), np.array([math.prod(float(weights.sum()) ** n for _, weights, n in steps)]))
    if not spread < 1e9:
        return None
    step = spread / max(100.0, 10 * math.sqrt(count))
    period = 0
    if len(steps) == 1 and len(steps[0][0]) > OUTPUTS:  # of Laplace noise, whose two outer amounts make a pattern
        period = math.ceil(widest / step)
        step = widest / period
    size = 1 << math.ceil(math.log2(max(1024.0, (24 * spread + 2 * widest) / step)))
    if size > MOST:
        return None
    transform, total = np.ones(size // 2 + 1, dtype=complex), 0.0
    for (each, weights, n), mean in zip(steps, means, strict=True):
        places = (each - mean) / step
        below = np.floor(places).astype(int)
        one = np.bincount(below % size, weights * (below + 1 - places), size)
        one += np.bincount((below + 1) % size, weights * (places - below), size)
        transform *= np.fft.rfft(one) ** n
        total += n * mean
    losses = (np.arange(size) - size // 2) * step + total
    summed = np.fft.fftshift(np.fft.irfft(transform, size))
    return Masses(np.asarray(losses, dtype=float), np.maximum(0.0, np.asarray(summed, dtype=float)), period)


def _as_the_package_has_it(loss: PrivacyLoss, points: int) -> Masses | None:
    """A grid that rounds losses down; None where many small losses would be rounded away."""
    losses, chances = loss.density(points)
    mean = loss.mean()
    if mean.upper < math.inf and chances.sum() > 0.5:
        shares = chances / chances.sum()
        seen = float(losses @ shares)
        slack = FAITHFUL * math.sqrt(float((losses - seen) ** 2 @ shares)) + 1e-9
        if not mean.lower - slack <= seen <= mean.upper + slack:
            return None
    return Masses(losses, chances * (1 - middle(loss.infinite)) / max(float(chances.sum()), 1e-300))


def thinned(found: Masses, most: int = 4_000) -> tuple[Array, Array]:
    """The same in fewer points: those that occur, neighbours joined.

    >>> losses, chances = thinned(Masses(np.arange(8.0), np.full(8, 0.125)), 4)
    >>> losses.tolist(), chances.tolist()
    ([0.5, 2.5, 4.5, 6.5], [0.25, 0.25, 0.25, 0.25])
    """
    there = np.flatnonzero(found.chances > 1e-17)
    if not len(there):
        return found.losses[:1], found.chances[:1]
    losses, chances = (side[there[0] : there[-1] + 1] for side in (found.losses, found.chances))
    each = -(-len(losses) // most)
    empty = -len(losses) % each
    losses = np.append(losses, np.full(empty, losses[-1])).reshape(-1, each).mean(axis=1)
    return losses, np.append(chances, np.zeros(empty)).reshape(-1, each).sum(axis=1)


def deltas(losses: Array, chances: Array, infinite: float, mu: Number, epsilons: Array) -> Array:
    """δ at each ε, behind word dropout with probability mu.

    >>> loss, chance = np.array([-1.0, 1.0]), np.array([0.25, 0.75])
    >>> deltas(loss, chance, 0.0, number(0), np.array([0.0])).round(4)  # 3/4·(1 − 1/e)
    array([0.4741])
    """
    before = [middle(before_dropout(number(epsilon), mu)) for epsilon in epsilons.tolist()]
    finite = [np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))) @ chances for epsilon in before]
    return (1 - middle(mu)) * np.minimum(1.0, np.array(finite) + infinite)
