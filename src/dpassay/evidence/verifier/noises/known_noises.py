"""All noises, and what is known about each: a noise that is not here has no theorem."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.lattice import Grid
from dpassay.evidence.verifier.arithmetic.numbers import ZERO, iv
from dpassay.evidence.verifier.noises import additive, bounded_laplace, discrete, integer, truncated_laplace
from dpassay.evidence.verifier.noises.losses import Loss, pure_loss
from dpassay.evidence.verifier.noises.noisy_max import noisy_max_pair, noisy_max_upper
from dpassay.evidence.verifier.noises.sphere import sphere_pair, sphere_upper
from dpassay.evidence.verifier.noises.staircase import staircase_pair, staircase_upper
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair
from dpassay.evidence.verifier.regions.regions import DIRECTIONS, INFINITE, ParsedStage, RegionShape, diameter
from dpassay.values import dataclass


@dataclass(frozen=True)
class KnownNoise:
    """The loss of a pair, with the name of its theorem; and theorems about all pairs, by name."""

    theorem: str = ""
    pair_loss: Callable[[ParsedStage, Pair, Grid | None], Loss] | None = None
    uppers: Mapping[str, Callable[[ParsedStage, RegionShape, Step], Loss]] = field(default_factory=dict)


def _constant(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """Values that cannot differ cannot be distinguished."""
    if diameter(shape, INFINITE).b > 0:
        raise CertificateError("values before the noise can differ")
    return pure_loss(ZERO)


_LAPLACE = {
    "laplace": additive.laplace_upper,
    "worst-shift": additive.worst_shift,
    "renyi": additive.renyi,
    "saddlepoint": additive.saddlepoint,
    "levels": additive.levels,
}
_ONE_SIDED = {"one-sided": additive.one_sided_upper, "worst-shift": additive.one_sided_upper}
KNOWN = {
    "": KnownNoise(uppers={"no-noise": _constant}),
    "laplace": KnownNoise("laplace", additive.laplace_pair, _LAPLACE),
    "gaussian": KnownNoise("gaussian", additive.gaussian_pair, {"gaussian": additive.gaussian_upper}),
    "discrete_laplace": KnownNoise(
        "discrete-laplace", integer.discrete_laplace_pair, {"discrete-laplace": integer.discrete_laplace_upper}
    ),
    "discrete_gaussian": KnownNoise(
        "discrete-gaussian", integer.discrete_gaussian_pair, {"discrete-gaussian": integer.discrete_gaussian_upper}
    ),
    "truncated_laplace": KnownNoise(
        "truncated-laplace", truncated_laplace.truncated_pair, {"truncated-laplace": truncated_laplace.truncated_upper}
    ),
    "staircase": KnownNoise("staircase", staircase_pair, {"staircase": staircase_upper}),
    "bounded_laplace": KnownNoise(
        "bounded-laplace", bounded_laplace.bounded_pair, {"bounded-laplace": bounded_laplace.bounded_upper}
    ),
    "radial": KnownNoise(uppers={"radial": additive.radial_upper}),
    "mahalanobis": KnownNoise(uppers={"radial": additive.mahalanobis_upper}),
    **dict.fromkeys(DIRECTIONS, KnownNoise("sphere", sphere_pair, {"sphere": sphere_upper})),
    "onesided": KnownNoise("one-sided", additive.one_sided_pair, _ONE_SIDED),
    "mixture": KnownNoise("mixture", additive.mixture_pair, {"mixture": additive.overlap}),
    "bits": KnownNoise("randomized-response", discrete.bits_pair, {"randomized-response": discrete.bits_upper}),
    "flip": KnownNoise("randomized-response", discrete.category_pair, {"randomized-response": discrete.category_upper}),
    "exponential": KnownNoise(
        "exponential",
        discrete.choice_pair,
        {"exponential": discrete.choice_upper, "bounded-range": discrete.choice_range},
    ),
    "noisymax": KnownNoise("noisy-max", noisy_max_pair, {"noisy-max": noisy_max_upper}),
    "top-k": KnownNoise("top-k", discrete.top_k_pair, {"top-k": discrete.top_k_upper}),
}


def upper(step: Step, stage: ParsedStage, shape: RegionShape, behind: Sequence[ParsedStage] = ()) -> Loss:
    """An upper bound on the loss of any two values of a region after a noise, by the theorem named in a step."""
    if step.theorem == "post-processing" and stage.name in ("laplace", "gaussian"):
        return additive.clamped(stage, shape, behind)
    known = KNOWN[stage.name].uppers.get(step.theorem)
    if known is None:
        raise CertificateError(f"no theorem {step.theorem!r} bounds the loss of {stage.name}")
    return known(stage, shape, step)


def joined_noise(noises: Sequence[ParsedStage]) -> ParsedStage | None:
    """One noise, or the sum of Gaussians that are added to one another."""
    if len(noises) == 1:
        return noises[0]
    if any(noise.name != "gaussian" for noise in noises):
        return None
    square = sum((noise.numbers["sigma"] ** 2 for noise in noises), ZERO)
    return replace(noises[0], numbers={"sigma": iv.sqrt(square)})


def pair_loss(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """The loss of one pair just before a noise."""
    known = KNOWN[stage.name].pair_loss
    if known is None:
        raise CertificateError(f"the loss of a pair is not known for {stage.name or 'no'} noise")
    return known(stage, pair, grid)
