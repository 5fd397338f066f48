"""Noise added to each coordinate: laplace, gaussian, onesided and leak in a text, mixtures of them in code."""

from typing import Any

import numpy as np

from dpassay.core.numbers import ZERO, maximum, middle
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution, Gaussian, Laplace, Mixture, Noise, OneSided, Shifted
from dpassay.pipeline.regions import Array, Categories, Everything
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion, text_form
from dpassay.pipeline.syntax import Syntax, check_probability, probability
from dpassay.values import dataclass


@dataclass(frozen=True)
class Additive(NoiseStage):
    """The same noise added independently to each coordinate; the noise knows its text form.

    >>> Additive(Laplace(2)).distribution(np.zeros(2)).noise.atom
    0.0
    """

    keeps = "all"
    outweighs_noise = True
    adds_to_vectors = True
    noise: Noise

    @property
    def added_noise(self) -> Noise:
        return self.noise

    def __post_init__(self) -> None:
        """The noise has checked its own arguments."""

    @property
    def name(self) -> str:
        """One name for all, since the noise identifies itself."""
        return "noise"

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Anything. Unbounded values can swamp the noise, so they stay unbounded."""
        if isinstance(before.region, Categories) and not (isinstance(self.noise, Mixture) and not self.noise.parts):
            raise InputError("noise cannot be added to a category's name: put onehot(k) before it")
        swamped = isinstance(before.region, Everything) and not self.noise.drops_values
        return OutputRegion(Everything(before.region.dim), before.exact and swamped)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return np.asarray(batch, dtype=float) + self.noise.draw(np.shape(batch), rng)

    def distribution(self, value: Array) -> Distribution:
        return Shifted(self.noise, value)

    def __str__(self) -> str:
        return str(self.noise) if isinstance(self.noise, Noise) else f"noise({type(self.noise).__name__})"

    def to_data(self) -> dict[str, Any]:
        return self.noise.to_data()


@text_form(Laplace.syntax)
def laplace(scale: Any) -> Additive:
    """Add Laplace noise to each coordinate."""
    return Additive(Laplace(scale))


@text_form(Gaussian.syntax)
def gaussian(sigma: Any) -> Additive:
    """Add normal noise to each coordinate."""
    return Additive(Gaussian(sigma))


_OR_NONE = {"zero": probability("onesided: zero", default=0), "lost": probability("onesided: lost", default=0)}


@text_form(Syntax("onesided", order=180, **OneSided.syntax.parameters, **_OR_NONE))
def one_sided(scale: Any, zero: Any = 0, lost: Any = 0) -> Additive:
    """Add exponential noise, never negative; none with probability zero, NaN with probability lost.

    >>> print(one_sided(2), one_sided(2, "0.5"))
    onesided(2) onesided(2, 0.5, 0)
    """
    none, nothing = check_probability(zero, "onesided: zero"), check_probability(lost, "onesided: lost")
    if none == 0 and nothing == 0:
        return Additive(OneSided(scale))
    rest = 1 - none - nothing
    if rest.b < 0:
        raise InputError(f"onesided: zero and lost can add up to at most 1, got {middle(none + nothing):g}")
    return Additive(Mixture(none, ((maximum(ZERO, rest), OneSided(scale)),), nothing))


@text_form(Syntax("leak", order=190, chance=probability("leak")))
def leak(chance: Any) -> Additive:
    """Show each coordinate with this probability, otherwise nothing (NaN).

    >>> print(leak("0.25"))
    leak(0.25)
    """
    shown = check_probability(chance, "leak")
    return Additive(Mixture(shown, (), 1 - shown))
