"""Noises whose bounds have their own module."""

from dpassay.exact.mechanisms.integer_noise import whole_profile
from dpassay.exact.mechanisms.staircase import staircase_profile
from dpassay.exact.mechanisms.truncated_laplace import truncated_profile
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.discrete_noise import DiscreteNoise
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.pair import Pair
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.staircase import Staircase
from dpassay.pipeline.truncated_laplace import TruncatedLaplace


def special_profile(noise: Noise, outputs: OutputRegion, pushed: list[Pair], shown: bool) -> PrivacyProfile | None:
    """The bounds of such a noise on a bounded region, None for any other; `shown`: the whole output is visible."""
    if isinstance(noise, DiscreteNoise):
        return whole_profile(noise, outputs, pushed, shown)
    if isinstance(noise, TruncatedLaplace):
        return truncated_profile(noise, outputs, pushed, shown)
    return staircase_profile(noise, outputs, pushed, shown) if isinstance(noise, Staircase) else None
