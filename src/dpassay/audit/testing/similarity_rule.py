"""The first rule of a game: an output resembles its own input. This needs no training.

Most text mechanisms keep some words, and most noise leaves an output near its input. So a few runs are enough to tell
whether such a rule is likely to refute the claim, and the runs that test it also train the next one.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.mechanisms.targets import one_at_a_time
from dpassay.audit.outputs.outputs import Outputs
from dpassay.audit.testing.decision_rule import DecisionRule, resolution_of, rounded
from dpassay.audit.testing.expected_power import Hypothesis
from dpassay.audit.testing.experiment import Experiment, RoundResult
from dpassay.audit.testing.inference import log_limits
from dpassay.audit.testing.training import GLANCE, TrainingResult, first_look, rows_at_a_time

LENGTH = 128  # runs that test such a rule before it is decided whether to continue
LONGEST = 4 * LENGTH  # such runs in total


def worth_trying(experiment: Experiment, runs: int) -> bool:
    """Whether there are enough runs, no rule is given, and the distributions are unknown."""
    claimed, given = experiment.hypothesis, experiment.custom is not None or experiment.bits == "only"
    known = given or claimed.delta > 0 or claimed.candidates > 2 or experiment.distributions() is not None
    return runs >= LONGEST and not known


def is_by_likeness(current: RoundResult) -> bool:
    """Whether its rule was not learned: no power was computed for it."""
    return current.rule.expected_power == 0.0


def goes_on(current: RoundResult, evidence: float) -> bool:
    """Whether to double the length of such a round, because it already has much of the evidence needed."""
    return is_by_likeness(current) and current.length < LONGEST and evidence >= current.length / LONGEST


def at_a_glance(experiment: Experiment, place: int) -> TrainingResult:
    """A few runs, and the rule if it looks promising."""
    look = first_look(experiment, GLANCE * len(experiment.inputs), place)
    singly, rows = look.failed or one_at_a_time(experiment.mechanism), min(map(rows_at_a_time, look.seen))
    rule = None if look.failed else rule_by_likeness(look.seen, experiment.inputs, experiment.hypothesis)
    return TrainingResult(rule, look.cost, singly, rows, "", look.replays, seen=tuple(look.seen), failed=look.failed)


def rule_by_likeness(runs: Sequence[Outputs], inputs: Sequence[Any], hypothesis: Hypothesis) -> DecisionRule | None:
    """Names the input that an output is more similar to, by any margin, a large one, or the largest possible.

    The threshold is the one with the most evidence per run against the claim, if there is any.
    """
    best, most = None, 0.0
    log_p, log_not = log_limits(hypothesis.epsilon)
    for distinguisher in (one for one in fit_all(runs, tuple(inputs)) if one.likeness):
        scores = [distinguisher.score(outputs) for outputs in runs]
        resolution = resolution_of(scores)
        largest = np.nanmax(np.abs(rounded(np.concatenate(scores), resolution)), initial=0.0)
        for threshold in (1.0, math.ceil(largest / 2), largest - 1):
            rule = DecisionRule(distinguisher, -threshold, threshold, 0, 0, 0.0, resolution)
            counts = [rule.count_scores(side_scores, side) for side, side_scores in enumerate(scores)]
            right, wrong = (sum(each) for each in zip(*counts, strict=True))
            share = (right + 0.5) / (right + wrong + 1)
            growth = share * (math.log(share) - log_p) + (1 - share) * (math.log1p(-share) - log_not)
            if threshold >= 1 and share > math.exp(log_p) and growth * (right + wrong) > most:
                best, most = replace(rule, right=right, wrong=wrong), growth * (right + wrong)
    return best
