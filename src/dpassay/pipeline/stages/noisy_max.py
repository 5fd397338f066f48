"""Report noisy max: the output whose score is largest once noise is added to each. docs/proofs/noisy-max.md."""

from dataclasses import field
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, double_above, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution, Pmf
from dpassay.pipeline.pair import Array
from dpassay.pipeline.stages.base import text_form
from dpassay.pipeline.stages.exponential import Choice, Choose
from dpassay.pipeline.syntax import Parameter, Syntax, positive
from dpassay.values import dataclass

NOISES = ("laplace", "exponential", "gumbel")


def _check_noise(noise: str) -> str:
    if noise not in NOISES:
        raise InputError(f"noisymax supports laplace, exponential and gumbel noise, got {noise!r}")
    return noise


_SYNTAX = Syntax(
    "noisymax", order=224, noise=Parameter("word", _check_noise, NOISES), scale=positive("noisymax: scale")
)


_LEAST_NOISE = ("scale that is large", "smaller", "smallest scale")


@dataclass(frozen=True)
class GumbelMax(Choose):
    """Noisy max with Gumbel noise, which is the exponential mechanism with rate 1/scale.

    >>> print(GumbelMax(2), middle(GumbelMax(2).rate))
    noisymax(gumbel, 2) 0.5
    """

    syntax = _SYNTAX
    least_noise = _LEAST_NOISE
    rate: Number = field(init=False, repr=False)
    noise: str = field(init=False, default="gumbel")
    scale: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rate", 1 / self.scale)

    def at_rate(self, rate: Number) -> "GumbelMax":
        return GumbelMax(number(double_above(1 / rate)))


@dataclass(frozen=True)
class NoisyMax(Choice):
    """Noisy max with Laplace or exponential noise; the latter is also known as permute-and-flip.

    >>> NoisyMax("exponential", 1).distribution(np.array([0.0, 0.0])).probabilities.round(6).tolist()
    [0.5, 0.5]
    """

    syntax = _SYNTAX
    least_noise = _LEAST_NOISE
    rate: Number = field(init=False, repr=False)
    noise: str
    scale: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rate", 1 / self.scale)

    def at_rate(self, rate: Number) -> "NoisyMax":
        return NoisyMax(self.noise, number(double_above(1 / rate)))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        scores = np.asarray(batch, dtype=float)
        draw = rng.laplace if self.noise == "laplace" else rng.exponential
        return np.argmax(scores + draw(scale=middle(self.scale), size=scores.shape), axis=-1)[..., None].astype(float)

    def distribution(self, value: Array) -> Distribution:
        """In doubles, by quadrature over the largest noisy score."""
        scores = np.asarray(value, dtype=float) / middle(self.scale)
        found = _above_all(scores - scores.max(), 1.0 if self.noise == "exponential" else 0.5)
        if self.noise == "laplace":
            found += _below_the_largest(scores - scores.max())
        return Pmf(found / found.sum())


def _above_all(scores: Array, share: float) -> Array:
    """P(output j, and its noisy score is above all scores); with y = e^-z these are integrals of polynomials."""
    nodes, weights = np.polynomial.legendre.leggauss(min(200, len(scores) // 2 + 1))
    y, heights = (nodes + 1) / 2, share * np.exp(scores)
    left = np.log1p(-np.outer(heights, y))
    return np.asarray(heights * (np.exp(left.sum(axis=0) - left) @ weights) / 2)


def _below_the_largest(scores: Array) -> Array:
    """P(output j, and its noisy score is below the largest score), Laplace noise: smooth between scores."""
    edges = np.unique(np.concatenate([scores[scores > -40], np.linspace(-40, 0, 81)]))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half, centre = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    z = (centre[:, None] + half[:, None] * nodes).ravel()
    gap = z - scores[:, None]
    tail = np.exp(-np.abs(gap)) / 2
    log_cdf = np.where(gap < 0, np.log(tail), np.log1p(-tail))
    rest = np.exp(log_cdf.sum(axis=0) - log_cdf)
    return np.asarray((tail * rest) @ (half[:, None] * weights).ravel())


@text_form(_SYNTAX)
def noisy_max(noise: str, scale: Any) -> Choice:
    """Name the coordinate that is largest after Laplace, exponential or Gumbel noise of this scale.

    >>> print(noisy_max("laplace", 2), noisy_max("gumbel", 2))
    noisymax(laplace, 2) noisymax(gumbel, 2)
    """
    return GumbelMax(scale) if noise == "gumbel" else NoisyMax(noise, scale)
