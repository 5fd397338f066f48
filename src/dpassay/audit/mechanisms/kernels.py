"""When kernels may draw for a pipeline whose distribution is known, instead of the mechanism itself, and how."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.testing.decision_rule import DecisionRule
from dpassay.audit.testing.experiment import MOST_ROWS, Experiment
from dpassay.compute.devices import numbers
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable
from dpassay.compute.kernels.philox import key
from dpassay.pipeline.pipeline import Pipeline

Ratios: TypeAlias = tuple[LikelihoodRatioTable, LikelihoodRatioTable]  # of each input
KERNELS_FROM = 1 << 14  # runs of a game from which kernels draw for a pipeline whose distribution is known
LOG_STEP = 33 * math.log(2)
HARMLESS = 0.01  # standard errors that the 32-bit resolution of a coordinate's word may amount to; docs/scale.md


def for_kernels(experiment: Experiment, rule: DecisionRule, before: int) -> Ratios | None:
    """What kernels need for a task of a pipeline whose distribution is known; None if the mechanism itself is run.

    The first runs are always the mechanism's own: they are compared with its distribution. It is also run itself once
    there are so many runs that 32-bit draws could be noticed: each coordinate's word moves a probability by at most
    2^-33.
    """
    mechanism, distinguisher = experiment.mechanism, rule.distinguisher
    if before < KERNELS_FROM or not isinstance(mechanism, Pipeline) or not isinstance(distinguisher, LikelihoodRatio):
        return None
    ratios = distinguisher.tables if mechanism.told_by_its_text else None
    if ratios is None:
        return None
    rounding = math.log(ratios[0].dim * math.sqrt(before + MOST_ROWS) / HARMLESS)
    return ratios if experiment.hypothesis.epsilon + rounding <= LOG_STEP else None


def guesses_by_kernel(
    experiment: Experiment, rule: DecisionRule, ratios: Ratios, runs: int, of_second: int, place: tuple[int, ...]
) -> NDArray[np.int64]:
    """Correct and wrong guesses by input in `runs` runs; only the guess of each run is computed."""
    guesses = np.zeros((2, 2), dtype=np.int64)
    for side, made in enumerate((runs - of_second, of_second)):
        stream = key(experiment.seed, experiment.number, *place, side)
        named = numbers(experiment.device).count_guesses(
            stream, 0, made, ratios[side], rule.low, rule.high, rule.resolution
        )
        guesses[side] += named[side], named[1 - side]
    return guesses
