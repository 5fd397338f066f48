"""Laws whose outputs a kernel can draw and judge word by word: noise on coordinates, and bits."""

from __future__ import annotations

from collections.abc import Sequence

from dpassay.compute.draws import EXPONENTIAL, GAUSSIAN, LAPLACE, Noise
from dpassay.compute.likelihood_ratio import LikelihoodRatioTable, of_bits, of_noise
from dpassay.core.numbers import middle
from dpassay.pipeline.distributions import BitDistribution, Distribution, Gaussian, Laplace, Mixture, OneSided, Shifted


def noise_by_words(noise: object) -> Noise | None:
    """A noise as a function of 32-bit words; None where there is no such form, or where it draws in a way of its own.

    >>> noise_by_words(Laplace(2))
    Noise(kind='laplace', scale=2.0, kept=1.0, lost=0.0)
    """
    parts = [part for _, part in noise.parts] if isinstance(noise, Mixture) else []
    if any(type(each) not in (Laplace, Gaussian, OneSided, Mixture) for each in (noise, *parts)):
        return None
    match noise:
        case Laplace(scale):
            return Noise(LAPLACE, middle(scale))
        case Gaussian(sigma):
            return Noise(GAUSSIAN, middle(sigma))
        case OneSided(scale):
            return Noise(EXPONENTIAL, middle(scale))
        case Mixture(_, ((weight, OneSided(scale)),), lost):
            return Noise(EXPONENTIAL, middle(scale), middle(weight), middle(lost))
    return None


def told_by_words(distributions: Sequence[Distribution]) -> tuple[LikelihoodRatioTable, LikelihoodRatioTable] | None:
    """What each word of an output says about which of two distributions it came from: the first, or the second.

    >>> import numpy as np
    >>> first, second = told_by_words([Shifted(Laplace(1), np.array([x])) for x in (0.0, 1.0)])
    >>> first.values.tolist(), second.values.tolist()
    ([[-1.0, -1.0, 1.0, 1.0]], [[-1.0, 1.0, 1.0, 1.0]])
    """
    if any(type(distribution) not in (Shifted, BitDistribution) for distribution in distributions):
        return None
    match list(distributions):
        case [Shifted(noise, first), Shifted(other, second)] if len(first) == len(second):
            drawn = noise_by_words(noise)
            if drawn is None or drawn != noise_by_words(other):
                return None
            sides = [of_noise(drawn, first, second, side) for side in (0, 1)]
        case [BitDistribution(first), BitDistribution(second)] if len(first) == len(second):
            sides = [of_bits(first, second, side) for side in (0, 1)]
        case _:
            return None
    return None if sides[0] is None or sides[1] is None else (sides[0], sides[1])
