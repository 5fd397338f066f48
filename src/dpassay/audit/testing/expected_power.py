"""The expected power of a decision rule, from its guesses on runs that it was chosen on or calibrated with."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.outputs import Array
from dpassay.audit.testing.inference import log_limits
from dpassay.compute.kernels.numpy_kernels import FAR
from dpassay.values import dataclass

# Standard errors subtracted from the proportion of correct guesses, since the best of many rules is partly luck: at
# most CAUTION, see `_caution`. A logistic curve through all scores needs CAUTION_SMOOTH; it counts as SMOOTH guesses.
CAUTION, CAUTION_SMOOTH = 4.0, 1.0
SMOOTH = 1000.0
SPREADS = 1.5  # distance from the middle of all scores beyond which the logistic curve is flat


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a rule is chosen for: to refute this claim soon or, given `runs`, to get the best bound on ε from them."""

    epsilon: float
    delta: float = 0.0
    candidates: int = 2
    runs: int = 0
    alpha: float = 0.001
    spreads: float = SPREADS  # how far out the logistic curve keeps rising


def logistic_curve(cuts: Array, below: Sequence[NDArray[Any]], sizes: tuple[int, int], spreads: float) -> Array:
    """The proportion of correct guesses for all thresholds if the log-odds of the second input are linear in the score.

    A logistic curve through the counts between cuts, with scores clamped a few spreads away from the middle.
    """
    inner = [np.diff(np.concatenate([b, [n]])) for b, n in zip(below, sizes, strict=True)]  # up to each cut, and beyond
    count = (inner[0] + inner[1]).astype(float)
    near = np.abs(cuts) < FAR
    finite = cuts[near]
    if len(finite) < 2:
        return np.full((len(count), len(count)), 0.5)
    weights = count[:-1][near] + 1
    middle = float(np.average(finite, weights=weights))
    spread = math.sqrt(float(np.average((finite - middle) ** 2, weights=weights))) or 1.0
    place = np.clip((np.append(cuts, cuts[-1]) - middle) / spread, -spreads, spreads)
    design = np.stack([np.ones(len(place)), place])
    line = np.zeros(2)
    for _ in range(4):
        chance = 1 / (1 + np.exp(-np.clip(line @ design, -30, 30)))
        curvature = (design * (count * chance * (1 - chance) + 1e-9)) @ design.T
        line = line + np.linalg.solve(curvature + 0.1 * np.eye(2), design @ (inner[1] - count * chance) - 0.1 * line)
    doubt = CAUTION_SMOOTH / math.sqrt(float(curvature[1, 1]) + 0.1)
    line[1] = math.copysign(max(0.0, abs(line[1]) - doubt), line[1])
    second = count / (1 + np.exp(-np.clip(line @ design, -30, 30)))
    # The cut itself belongs to the cell below it, so it is not counted above: accurate enough for a power.
    low = np.concatenate([[0.0], np.cumsum((count - second)[:-1])])
    high = np.concatenate([np.cumsum(second[::-1])[::-1][:-1], [0.0]])
    named_first = np.concatenate([[0.0], np.cumsum(count[:-1])])
    named_second = np.concatenate([np.cumsum(count[::-1])[::-1][:-1], [0.0]])
    return np.asarray((low[:, None] + high) / np.maximum(named_first[:, None] + named_second, 1e-9))


def expected_power(
    right: NDArray[Any],
    wrong: NDArray[Any],
    total: int,
    hypothesis: Hypothesis,
    smooth: Array | None = None,
    caution: float | None = None,
    efficiency: Array | float = 1.0,
) -> Array:
    """What a rule with these counts should achieve: evidence per run against the claim, or the bound at the end."""
    guesses = np.maximum(right + wrong, 1)
    caution = _caution(right.size, hypothesis) if caution is None else caution
    share = _wilson_lower(right / guesses, efficiency * guesses, caution)
    if hypothesis.runs:
        if smooth is not None:
            both = (efficiency * right + SMOOTH * smooth) / (efficiency * guesses + SMOOTH)
            share = np.maximum(share, _wilson_lower(both, efficiency * guesses + SMOOTH, CAUTION_SMOOTH))
        deviations = math.sqrt(-2 * math.log(hypothesis.alpha)) - 0.5
        share = _wilson_lower(share, guesses * (hypothesis.runs / total), deviations)
        if not hypothesis.delta:
            with np.errstate(divide="ignore"):
                return np.where(share > 0.5, np.log(share) - np.log1p(-share), share - 0.5)
    if hypothesis.delta and hypothesis.candidates == 2:
        odds = math.exp(min(hypothesis.epsilon, 700.0))
        excess = (right - odds * wrong) / total - hypothesis.delta
        noise = np.sqrt((right + odds**2 * (wrong + 0.25)) / total**2)
        return np.asarray(np.maximum(excess - noise, 0) ** 2 / (noise**2 * total + 1e-300) + 1e-9 * share)
    log_p, log_not = log_limits(hypothesis.epsilon, hypothesis.candidates, hypothesis.delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = share * (np.log(share) - log_p) + (1 - share) * (np.log1p(-share) - log_not)
    growth = np.where((share > math.exp(log_p)) & (guesses > 0), growth * (right + wrong) / total, 0.0)
    return np.asarray(growth + 1e-9 * share)  # if nothing is gained, the most accurate rule is kept


def _caution(rules: int, hypothesis: Hypothesis) -> float:
    """Standard errors by which the best of these rules may look better on few runs than it is; a claim is tested soon.

    The largest of m independent errors is about √(2 ln m); those of neighboring thresholds are correlated.
    """
    if hypothesis.runs:
        return CAUTION
    return min(CAUTION, max(CAUTION_SMOOTH, math.sqrt(2 * math.log(max(2, rules)))))


def _wilson_lower(share: Array, guesses: Array, deviations: float) -> Array:
    """Wilson's lower bound: some standard deviations below the observed proportion, never below 0 or above 1."""
    z = deviations**2 / guesses
    centre = share + z / 2
    width = np.sqrt(np.maximum(share * (1 - share) * z + z * z / 4, 0))
    return np.asarray((centre - width) / (1 + z))
