"""When kernels may draw for a pipeline whose distribution is known, instead of the mechanism itself."""

import math
from typing import TypeAlias

from dpassay.audit.decision_rule import DecisionRule
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.experiment import MOST_ROWS, Experiment
from dpassay.compute.likelihood_ratio import LikelihoodRatioTable
from dpassay.pipeline.pipeline import Pipeline

Ratios: TypeAlias = tuple[LikelihoodRatioTable, LikelihoodRatioTable]  # of each input
KERNELS_FROM = 1 << 14  # runs of a game, from which on kernels draw for a pipeline whose distribution is known
LOG_STEP = 33 * math.log(2)
HARMLESS = 0.01  # standard errors that the 32 bits of a coordinate's word may come to; docs/scale.md


def for_kernels(experiment: Experiment, rule: DecisionRule, before: int) -> Ratios | None:
    """What kernels need for a task of a pipeline whose distribution is known; None where the mechanism itself is run.

    The first runs are always the mechanism's own: they are compared with its distribution. So are those that come
    after as many as 32-bit draws would show in: each coordinate's word moves a probability by at most 2^-33.
    """
    mechanism, distinguisher = experiment.mechanism, rule.distinguisher
    if before < KERNELS_FROM or not isinstance(mechanism, Pipeline) or not isinstance(distinguisher, LikelihoodRatio):
        return None
    ratios = distinguisher.tables if mechanism.told_by_its_text else None
    if ratios is None:
        return None
    rounding = math.log(ratios[0].dim * math.sqrt(before + MOST_ROWS) / HARMLESS)
    return ratios if experiment.hypothesis.epsilon + rounding <= LOG_STEP else None
