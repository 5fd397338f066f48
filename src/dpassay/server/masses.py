"""The privacy loss as probabilities on a grid, in doubles, for pictures: no verdict rests on them."""

from __future__ import annotations

import math

import numpy as np

from dpassay.core.numbers import Number, middle, number
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile_bounds import before_dropout
from dpassay.exact.sampled_loss import SampledLoss
from dpassay.pipeline.pair import Array

OUTPUTS, WIDE, MOST = 20_001, 12.0, 1 << 19  # of one step; standard deviations on either side; points of a grid
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


def masses(loss: PrivacyLoss, points: int) -> tuple[Array, Array] | None:
    """Losses and their probabilities; None where a grid of so few points would not show them as they are."""
    component, count = loss.components[0]
    if len(loss.components) == 1 and isinstance(component, SampledLoss):
        return _sampled(component, count)
    losses, chances = loss.density(points)
    mean = loss.mean()
    if mean.upper < math.inf and chances.sum() > 0.5:
        shares = chances / chances.sum()
        seen = float(losses @ shares)
        spread = math.sqrt(float((losses - seen) ** 2 @ shares))
        if not mean.lower - FAITHFUL * spread - 1e-9 <= seen <= mean.upper + FAITHFUL * spread + 1e-9:
            return None
    return losses, chances


def _sampled(component: SampledLoss, count: int) -> tuple[Array, Array] | None:
    """Many sampled steps: each loss is split between two points of a grid, so that the mean stays, and then summed."""
    t = np.linspace(-WIDE, middle(component.mu) + WIDE, OUTPUTS)
    first, second = step_densities(component, t)
    weights = first / first.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(weights > 1e-30, np.log(first) - np.log(second), 0.0)
    mean = float(each @ weights)
    spread = math.sqrt(float((each - mean) ** 2 @ weights))
    step = spread / 8
    size = 1 << math.ceil(math.log2(max(256.0, 24 * math.sqrt(count) * 8, 2 * float(np.ptp(each)) / max(step, 1e-300))))
    if not 0 < spread < 1e6 or size > MOST:
        return None
    places = (each - mean) / step
    below = np.floor(places).astype(int)
    one = np.zeros(size)
    np.add.at(one, below % size, weights * (below + 1 - places))
    np.add.at(one, (below + 1) % size, weights * (places - below))
    summed = np.fft.irfft(np.fft.rfft(one) ** count, size)
    losses = (np.arange(size) - size // 2) * step + count * mean
    return losses, np.maximum(0.0, np.fft.fftshift(summed))


def deltas(losses: Array, chances: Array, infinite: float, mu: Number, epsilons: Array) -> Array:
    """δ at each ε, behind word dropout with probability mu.

    >>> loss, chance = np.array([-1.0, 1.0]), np.array([0.25, 0.75])
    >>> deltas(loss, chance, 0.0, number(0), np.array([0.0])).round(4)  # 3/4·(1 − 1/e)
    array([0.4741])
    """
    before = [middle(before_dropout(number(epsilon), mu)) for epsilon in epsilons.tolist()]
    finite = [np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0.0))) @ chances for epsilon in before]
    return (1 - middle(mu)) * np.minimum(1.0, np.array(finite) + infinite)
