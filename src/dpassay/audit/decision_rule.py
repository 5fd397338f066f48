"""How a decision rule is chosen from runs whose input is known, before it is tested on other runs.

Distinguishers are fitted on one part of these runs. On the other part each is tried with all thresholds, and the one
with the highest expected power is kept. No verdict relies on the choice being good: a bad rule only guesses
worse.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.base import Bits, Distinguisher, Scores
from dpassay.audit.distinguishers.frequencies import Frequencies
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.efficiency import efficiency_of
from dpassay.audit.inference import Counts, log_limits
from dpassay.audit.outputs import Array, Outputs
from dpassay.compute.numpy_kernels import FAR
from dpassay.pipeline.distributions import Distribution

# Standard errors subtracted from the proportion of correct guesses, since the best of many rules is partly luck: at
# most CAUTION, see `_caution`. A logistic curve through all scores needs CAUTION_SMOOTH; it counts as SMOOTH guesses.
CAUTION, CAUTION_SMOOTH = 4.0, 1.0
SMOOTH = 1000.0
FINALISTS = 3  # distinguishers tried on all calibration runs
SPREADS, FAR_SPREADS = 1.5, 4.0  # distance from the middle of all scores beyond which the logistic curve is flat
SURE = 0.95  # proportion of its observed log-odds that a rule must be expected to keep
ONE_SIDED = 0.8  # weight of a rule that only ever names one input: on few runs it looks better than it is
LARGEST_SCORES, SMALLEST_RESOLUTION = 1e300, 1e-300
AS_GOOD = 0.97  # a distinguisher that costs more must leave cheaper ones below this share of its expected power


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a rule is chosen for: to refute this claim soon or, given `runs`, to get the best bound on ε from them."""

    epsilon: float
    delta: float = 0.0
    candidates: int = 2
    runs: int = 0
    alpha: float = 0.001
    spreads: float = SPREADS  # how far out the logistic curve keeps rising


@dataclass(frozen=True)
class DecisionRule:
    """A distinguisher with thresholds: it names the first input up to `low`, the second from `high`, else abstains.

    With more than two inputs it names the one with the highest score if its margin over the next is at least `high`.
    Scores are rounded to units of `resolution`, far coarser than rounding errors. Otherwise the last bits of a score,
    which differ between inputs for every sampler in floating point, would reveal what the mechanism's mathematics does
    not. `right` and `wrong` are its guesses on the runs it was chosen on.
    """

    distinguisher: Distinguisher
    low: float
    high: float
    right: int
    wrong: int
    expected_power: float
    resolution: float
    candidates: int = 2

    def count(self, outputs: Outputs, side: int) -> tuple[int, int]:
        """Correct and wrong guesses on outputs that all came from one input."""
        if not len(outputs):
            return 0, 0
        return self.count_scores(self.distinguisher.score(outputs), side)

    def count_scores(self, exact: Scores, side: int) -> tuple[int, int]:
        """The same where the scores are known."""
        scores = rounded(exact, self.resolution)
        if self.candidates == 2:
            named = (int(np.count_nonzero(scores <= self.low)), int(np.count_nonzero(scores >= self.high)))
            return named[side], named[1 - side]
        best, margin = best_and_margin(scores)
        guessed = margin >= self.high
        right = int(np.count_nonzero(guessed & (best == side)))
        return right, int(np.count_nonzero(guessed)) - right

    @property
    def sure(self) -> bool:
        """Whether more runs could hardly improve it: it names categories and is expected to perform as it did.

        A threshold on a number could always be moved a little.
        """
        named = self.candidates == 2 and isinstance(self.distinguisher, Frequencies)
        return named and self.expected_power >= SURE * math.log((self.right + 1) / (self.wrong + 1)) > 0

    def initial_counts(self, trust: float) -> Counts:
        """No guesses yet; the observed accuracy is expected again, weighted by `trust`."""
        sides = 2 if self.candidates > 2 else int(self.low > -math.inf) + int(self.high < math.inf)
        assert sides, "a rule must name an input"
        return Counts(0, 0, 0, 0.5 + trust * self.right, 0.5 + trust * self.wrong, sides)

    def describe(self) -> str:
        """The event in words."""
        what = self.distinguisher.describe()
        if self.candidates > 2:
            return f"based on {what}: the input with the highest score"
        first, second, sign = ("at least", "at most", -1) if self.distinguisher.turned else ("at most", "at least", 1)
        ends = []
        if -math.inf < self.low <= -FAR / 2 or FAR / 2 <= self.high < math.inf:
            ends.append("the one input that ever gives such outputs")
        if self.low > -FAR / 2:
            ends.append(f"the first input where it is {first} {_shown(sign * self.low * self.resolution)}")
        if self.high < FAR / 2:
            ends.append(f"the second input where it is {second} {_shown(sign * self.high * self.resolution)}")
        return f"based on {what}: {' and '.join(ends)}"


def _shown(threshold: float) -> str:
    return f"{threshold:.0f}" if 1e6 <= abs(threshold) < 1e16 else f"{threshold:.6g}"


def rounded(scores: Scores, resolution: float) -> Scores:
    """Scores in whole units of the resolution, all finite: no score reaches a threshold at infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.rint(scores / resolution), -FAR, FAR))


def resolution_of(scores: Sequence[Scores]) -> float:
    """A millionth of the range in which most scores lie; positive and finite, however small or large they are."""
    finite = np.concatenate([s[np.isfinite(s)].ravel() for s in scores])
    if not len(finite):
        return 1.0
    largest = float(np.abs(finite).max())
    if largest > LARGEST_SCORES:  # their range would be infinite
        return max(float(np.ptp(1e-6 * finite)), 1e-6 * largest)
    low, high = np.quantile(finite, [0.05, 0.95])
    spread = float(high - low) or float(np.ptp(finite)) or largest or 1.0
    return max(spread * 1e-6, SMALLEST_RESOLUTION)


def best_and_margin(scores: Scores) -> tuple[NDArray[np.int64], Array]:
    """For each row, the column with the highest score and its margin over the next; −∞ if unknown."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    best = known.argmax(axis=1)
    two = np.partition(known, -2, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        margin = two[:, 1] - two[:, 0]
    return best, np.where(np.isfinite(two[:, 1]) & ~np.isnan(margin), margin, -np.inf)


def learn(
    runs: Sequence[Outputs],
    calibration: Sequence[Outputs],
    inputs: Sequence[Any],
    hypothesis: Hypothesis,
    distributions: Sequence[Distribution] | None = None,
    custom: Distinguisher | None = None,
    bits: Bits = "no",
    offered: Sequence[Distinguisher] = (),
    everything: Sequence[Outputs] = (),
) -> DecisionRule | None:
    """The rule with the highest expected power; None if nothing could be learnt.

    `everything`: all runs, for calibrating distinguishers that are not fitted.
    """
    if custom is not None:
        found: Iterable[Distinguisher] = [custom]
    elif distributions is not None:
        found = [LikelihoodRatio(tuple(distributions))]
    else:
        found = fit_all(runs, tuple(inputs), bits, offered)
    best: DecisionRule | None = None
    for distinguisher in found:
        some = calibration if distinguisher.learns or not everything else everything
        rule = with_thresholds(distinguisher, [distinguisher.score(o) for o in some], hypothesis)
        best = rule if rule is not None and _clearly_better(rule, best) else best
    return best


def _clearly_better(rule: DecisionRule, best: DecisionRule | None) -> bool:
    """Whether the expected power is sufficiently higher than that of the best so far, which is cheaper."""
    return best is None or best.expected_power < rule.expected_power - (1 - AS_GOOD) * abs(rule.expected_power)


def best_of_many(
    distinguishers: Iterable[Distinguisher], batches: Iterator[Sequence[Outputs]], hypothesis: Hypothesis
) -> DecisionRule | None:
    """The same with calibration runs in batches: the first is for all distinguishers, the others for the best."""
    first = next(batches)
    tried: list[tuple[float, int, Distinguisher, list[list[Scores]]]] = []
    for place, distinguisher in enumerate(distinguishers):
        scores = [distinguisher.score(outputs) for outputs in first]
        rule = with_thresholds(distinguisher, scores, hypothesis)
        if rule is not None:
            tried.append((-rule.expected_power, place, distinguisher, [[s] for s in scores]))
            tried = sorted(tried, key=lambda entry: entry[:2])[:FINALISTS]
    tried.sort(key=lambda entry: entry[1])
    for batch in batches:
        for _, _, distinguisher, sides in tried:
            for side, outputs in zip(sides, batch, strict=True):
                side.append(distinguisher.score(outputs))
    best: DecisionRule | None = None
    for _, _, distinguisher, sides in tried:
        for rule in _cross_validated(distinguisher, [np.concatenate(side) for side in sides], hypothesis):
            best = rule if _clearly_better(rule, best) else best
    return best


def _cross_validated(
    distinguisher: Distinguisher, scores: Sequence[Scores], hypothesis: Hypothesis
) -> Iterator[DecisionRule]:
    """Rules from all of these scores. Their expected power is that of rules from one half, measured on the other."""
    halves = [[side[start::2] for side in scores] for start in (0, 1)]
    whole, *parts = (_thresholds(distinguisher, some, hypothesis.candidates) for some in (scores, *halves))
    for spreads in (0.0, SPREADS, FAR_SPREADS):
        varied = replace(hypothesis, spreads=spreads)
        rule, found = whole(varied), [chosen for part in parts if (chosen := part(varied)) is not None]
        if rule is not None and len(found) == 2:
            powers = [_validated_power(*other, hypothesis) for other in zip(found, reversed(halves), strict=True)]
            yield replace(rule, expected_power=sum(powers) / 2)


def _validated_power(rule: DecisionRule, scores: Sequence[Scores], hypothesis: Hypothesis) -> float:
    """The expected power, from scores that the rule was not chosen on."""
    counts = [rule.count_scores(side_scores, side) for side, side_scores in enumerate(scores)]
    right, wrong = (np.array(sum(count[i] for count in counts)) for i in (0, 1))
    efficiency = 1.0
    if rule.candidates == 2:  # the grid of thresholds is these two
        cuts = np.unique([t for t in (rule.low, rule.high) if abs(t) < math.inf])
        ends = int(rule.low > -math.inf), int(rule.high == math.inf) + len(cuts) - 1
        grid = efficiency_of(right, wrong, [rounded(s, rule.resolution) for s in scores], cuts)
        efficiency = float(grid if isinstance(grid, float) else grid[ends])
    return float(_expected_power(right, wrong, sum(map(len, scores)), hypothesis, None, CAUTION_SMOOTH, efficiency))


def with_thresholds(
    distinguisher: Distinguisher, exact: Sequence[Scores], hypothesis: Hypothesis
) -> DecisionRule | None:
    """The thresholds with the highest expected power on runs that got these scores."""
    return _thresholds(distinguisher, exact, hypothesis.candidates)(hypothesis)


def _thresholds(
    distinguisher: Distinguisher, exact: Sequence[Scores], candidates: int
) -> Callable[[Hypothesis], DecisionRule | None]:
    """The best thresholds as a function of the hypothesis; counts that all hypotheses need are computed once."""
    resolution = resolution_of(exact)
    scores = [rounded(s, resolution) for s in exact]
    if candidates > 2:
        return partial(_with_margin, distinguisher, scores, resolution)
    first, second = (np.sort(s[~np.isnan(s)]) for s in scores)
    total = len(scores[0]) + len(scores[1])
    pooled = np.concatenate([first, second])
    if not len(pooled):
        return lambda hypothesis: None
    pooled.sort(kind="stable")  # two sorted halves are merged
    parts = int(min(64, max(8, total // 32)))
    tail = np.geomspace(1 / max(16, total), 0.5, parts)
    tails = np.concatenate([tail, 1 - tail])
    cuts = np.unique(pooled[np.minimum((tails * len(pooled)).astype(int), len(pooled) - 1)])
    low, high = np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])
    below = [np.concatenate([[0], np.searchsorted(s, cuts, side="right")]) for s in (first, second)]
    above = [np.concatenate([len(s) - np.searchsorted(s, cuts, side="left"), [0]]) for s in (first, second)]
    right = below[0][:, None] + above[1][None, :]
    wrong = below[1][:, None] + above[0][None, :]
    efficiency = efficiency_of(right, wrong, scores, cuts)
    scored = 2 * len(pooled) > total  # a curve through the scores of a few runs is no evidence about the others

    def best(hypothesis: Hypothesis) -> DecisionRule | None:
        smooth = None
        if hypothesis.runs and len(cuts) > 2 and hypothesis.spreads and scored:
            smooth = _logistic_curve(cuts, below, (len(first), len(second)), hypothesis.spreads)
        power = _expected_power(right, wrong, total, hypothesis, smooth, efficiency=efficiency)
        power = np.where(low[:, None] < high[None, :], power, -np.inf)
        weight = 1.0 if hypothesis.runs else ONE_SIDED
        preferred = power * np.where(np.isfinite(low)[:, None] & np.isfinite(high), 1.0, weight)
        i, j = np.unravel_index(int(preferred.argmax()), power.shape)
        counts = int(right[i, j]), int(wrong[i, j])
        if not any(counts):
            return None
        return DecisionRule(distinguisher, float(low[i]), float(high[j]), *counts, float(power[i, j]), resolution)

    return best


def _with_margin(
    distinguisher: Distinguisher, scores: Sequence[Scores], resolution: float, hypothesis: Hypothesis
) -> DecisionRule | None:
    correct, margins = [], []
    for side, matrix in enumerate(scores):
        best, margin = best_and_margin(matrix)
        correct.append(best == side)
        margins.append(margin)
    hit, margin = np.concatenate(correct), np.concatenate(margins)
    if not (margin > -np.inf).any():
        return None
    levels = np.unique(np.quantile(margin[margin > -np.inf], np.linspace(0, 1, 33), method="nearest"))
    if hypothesis.delta:  # with a δ the bound holds only for rules that never abstain
        levels = np.array([-np.inf])
    right = np.array([np.count_nonzero(hit & (margin >= level)) for level in levels])
    guessed = np.array([np.count_nonzero(margin >= level) for level in levels])
    power = _expected_power(right, guessed - right, len(hit), hypothesis)
    k = int(power.argmax())
    counts = int(right[k]), int(guessed[k] - right[k])
    return DecisionRule(
        distinguisher, -math.inf, float(levels[k]), *counts, float(power[k]), resolution, hypothesis.candidates
    )


def _logistic_curve(cuts: Array, below: Sequence[NDArray[Any]], sizes: tuple[int, int], spreads: float) -> Array:
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


def _expected_power(
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

    The largest of m independent errors is about √(2 ln m); those of neighbouring thresholds are correlated.
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
