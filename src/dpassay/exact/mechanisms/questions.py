"""What the analysis asks of a random stage, or of the noise that one adds to each coordinate.

Each other file here answers for its own: a registration of one of these functions. Importing `analysis` loads them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING

from dpassay.core.numbers import ZERO, Number
from dpassay.errors import InputError
from dpassay.pipeline.pair import Pair
from dpassay.pipeline.regions import Region
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.exact.dataflow.post_processing import VisibleThresholds
    from dpassay.exact.profiles.profile import PrivacyProfile
    from dpassay.exact.witness import Witness, WorstPair


@dataclass(frozen=True)
class Surroundings:
    """The values before a noise, and what the stages after it leave of its output.

    `pushed` are pairs that certainly occur if the region is only an outer bound. `anywhere`: the answers to a query can
    be any vectors. `scores`: how many of the largest scores can be chosen, None if all can.
    """

    outputs: OutputRegion
    pushed: list[Pair]
    kept: VisibleThresholds
    after: Sequence[Stage]
    anywhere: bool
    scores: int | None

    @property
    def shown(self) -> bool:
        """Whether the whole output is visible."""
        return self.kept.thresholds is not None and self.kept.thresholds.everything

    def of_names(self, profile: PrivacyProfile) -> PrivacyProfile:
        """A profile of a stage with finitely many outputs, which are integers, without what later stages may hide.

        Rounding leaves integers unchanged, unless they were squashed before it.
        """
        told = all(stage.keeps == "all" or stage.name == "round" for stage in self.after)
        whole = told and self.kept.thresholds is not None and self.kept.thresholds.unlimited
        return profile if whole else replace(profile, candidates=(), tail_lower_bound=None, pair=None)


@singledispatch
def profile_of(noise: object, around: Surroundings) -> PrivacyProfile:
    """Bounds on the loss of a stage, or of a noise on the coordinates of a bounded vector."""
    raise InputError(f"no exact loss is known for the stage {getattr(noise, 'name', type(noise).__name__)}")


@singledispatch
def reason(noise: object, region: Region, profile: PrivacyProfile) -> str:
    """Why a claim fails: what of two neighbors' values in the region the noise does not hide."""
    return "One category can be distinguished from another more reliably than claimed"


@singledispatch
def metric_reason(noise: object, metric: str) -> str:
    """Why its loss is not bounded by a multiple of the distance, if that is known of it at once."""
    return ""


@singledispatch
def event(noise: object, worst: WorstPair) -> Witness:
    """The strongest event on the output that distinguishes two values."""
    return worst.without_event


@singledispatch
def unbounded_advice(noise: object) -> str:
    """What to do if nothing bounds the values before the noise."""
    return "Bound the vector before the noise, for example with clip(l1, C) and then laplace(2*C/eps)."


@singledispatch
def loss_far_out(noise: object, pair: Pair) -> Number | None:
    """The loss between two vectors of outputs far beyond both, certainly; None if it is not known."""
    return None


@singledispatch
def least_loss(noise: object, pair: Pair) -> Number:
    """The largest loss between two different values before the noise, or something less; 0 if nothing is known."""
    return ZERO
