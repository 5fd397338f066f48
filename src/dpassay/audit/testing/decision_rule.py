"""How a decision rule is chosen from runs whose input is known, before it is tested on other runs.

Distinguishers are fitted on one part of these runs. On the other part each is tried with all thresholds, and the one
with the highest expected power is kept. No verdict relies on the choice being good: a bad rule only guesses
worse.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.base import Bits, Distinguisher, Scores, TrainingSet
from dpassay.audit.distinguishers.exclusive import Exclusive
from dpassay.audit.distinguishers.frequencies import Frequencies
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.outputs import Array, Outputs, part
from dpassay.audit.testing.expected_power import CAUTION_SMOOTH, SPREADS, Hypothesis, expected_power, logistic_curve
from dpassay.audit.testing.inference import RoundCounts, log_limits
from dpassay.audit.testing.paired_variance import efficiency_of
from dpassay.compute.kernels.numpy_kernels import FAR
from dpassay.compute.threads import numpy_in_one_thread
from dpassay.pipeline.distributions import Distribution
from dpassay.values import dataclass

FINALISTS = 3  # distinguishers tried on all calibration runs
FAR_SPREADS = 4.0  # a logistic curve that keeps rising this many spreads out is also tried
SURE = 0.95  # proportion of its observed log-odds that a rule must be expected to retain
ONE_SIDED = 0.8  # weight of a rule that only ever names one input: on few runs it looks better than it is
MOST_FITTED = 1 << 15  # runs of each input that distinguishers other than those of rare events are fitted to
RARE_FROM = 1 << 12  # runs that showed nothing else after which rare events are tried unless other runs contradict them
SURPRISE = math.log(100)  # evidence from rare events that outweighs evidence from a choice among thousands of rules
BY_CHANCE = 0.5  # the share of events that chance may propose then: nothing else is at hand, and later runs decide
AS_RARE = 0.8  # rare events that promise this share of what a rule of another kind does are preferred: they say more
NEVER_WRONG = 0.25  # wrong guesses expected of events that were never wrong
MOST_TRUSTED = 4.0  # guesses that are expected of such events, at most
NOTHING_GAINED = 1e-8  # a rule with a smaller expected power is expected to gain nothing
LARGEST_SCORES, SMALLEST_RESOLUTION = 1e300, 1e-300
AS_GOOD = 0.97  # cheaper distinguishers must be below this share of the expected power of a costlier one


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
        with numpy_in_one_thread():
            return self.count_scores(self.distinguisher.score(outputs), side)

    def count_scores(self, exact: Scores, side: int) -> tuple[int, int]:
        """The same from known scores."""
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

    @property
    def hopeless(self) -> bool:
        """Whether it is expected to gain nothing."""
        return self.expected_power < NOTHING_GAINED

    def initial_counts(self, trust: float) -> RoundCounts:
        """No guesses yet; the observed accuracy is expected again, weighted by `trust`."""
        sides = 2 if self.candidates > 2 else int(self.low > -math.inf) + int(self.high < math.inf)
        assert sides, "a rule must name an input"
        doubt = NEVER_WRONG if self.distinguisher.decided and not self.wrong else 0.5
        right, wrong = 0.5 + trust * self.right, doubt + trust * self.wrong
        if self.distinguisher.decided:  # these counts are those of similar rules, which had other events too
            weight = min(1.0, MOST_TRUSTED / (right + wrong))
            right, wrong = weight * right, weight * wrong
        return RoundCounts(0, 0, 0, right, wrong, sides)

    def describe(self) -> str:
        """The event in words."""
        what = self.distinguisher.describe()
        if self.candidates > 2:
            return f"based on {what}: the input with the highest score"
        if self.distinguisher.decided:
            events = ((name, self.distinguisher.event(side)) for side, name in enumerate(("first", "second")))
            return f"based on {what}: " + " and ".join(
                f"the {name} input where {said}" for name, said in events if said
            )
        near = (self.low > -FAR / 2, self.high < FAR / 2)  # whether a threshold can be reached without being certain
        named = (self.low > -math.inf, self.high < math.inf)
        certain = [self.distinguisher.certain(side) for side in (0, 1)]
        if self.distinguisher.by_features and all(near) and not any(certain):
            return f"based on {what}: the input that this is more typical of"
        what = what if any(near) or not any(certain) else "what sort of output it is"
        ends = []
        for side, name in enumerate(("first", "second")):
            threshold = (self.low, self.high)[side]
            conditions = [certain[side]] if certain[side] else []
            conditions += [self._where(threshold, side)] if near[side] else []
            if named[side]:
                ends.append(f"the {name} input where {' or '.join(conditions) or 'the other never gives such outputs'}")
        return f"based on {what}: {' and '.join(ends)}"

    def _where(self, threshold: float, side: int) -> str:
        """The condition for naming an input: a threshold on the score or, if it is a likelihood ratio, on the odds."""
        score = threshold * self.resolution
        if self.distinguisher.by_features:
            return "this is typical of it"
        if self.distinguisher.estimates_odds:
            odds = math.exp(min(abs(score), 700.0))
            said = f"{odds:.4g} : 1" if (score > 0) == (side == 1) else f"1 : {odds:.4g}"
            return f"its odds are at least {said}"
        turned = self.distinguisher.turned
        return f"it is {'at most' if (side == 0) != turned else 'at least'} {_shown(-score if turned else score)}"


def _shown(threshold: float) -> str:
    threshold += 0.0  # no −0.0
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


@numpy_in_one_thread()
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
    """The rule with the highest expected power; None if nothing could be learned.

    `everything`: all runs, for calibrating distinguishers that are not fitted, and for those that are rare events.
    """
    found: Iterable[Distinguisher]
    if custom is not None:
        found = [custom]
    elif distributions is not None:
        found = [LikelihoodRatio(tuple(distributions))]
    else:
        fitted = [part(outputs, 0, MOST_FITTED) for outputs in runs]
        found = fit_all(fitted, tuple(inputs), bits, offered)
    best: DecisionRule | None = None
    gained = 0.0
    for distinguisher in found:
        some = calibration if distinguisher.learns or not everything else everything
        scores = [distinguisher.score(part(outputs, 0, MOST_FITTED)) for outputs in some]
        rule = with_thresholds(distinguisher, scores, hypothesis)
        if rule is not None and _clearly_better(rule, best):
            best, gained = rule, _gained(rule, sum(map(len, scores)), hypothesis)
    if custom is None and distributions is None and bits != "only" and len(everything) == 2:
        total = sum(map(len, everything))
        late = total >= RARE_FROM and (best is None or best.hopeless)
        rule = _of_rare_events(everything, tuple(inputs), hypothesis, eager=late)
        if rule is not None and (late or _clearly_better(rule, best)):
            enough = (AS_RARE if late else 1.0) * gained
            best = rule if _gained(rule, total, hypothesis) > enough or _surprising(rule, hypothesis) else best
    return best


def _gained(rule: DecisionRule, runs: int, hypothesis: Hypothesis) -> float:
    """The evidence per run that a rule gathered on the runs it was chosen on, with equal doubts about all rules.

    Expected powers are not comparable: many thresholds were tried for one rule, but none for rare events.
    """
    right, wrong = np.array(rule.right), np.array(rule.wrong)
    return float(expected_power(right, wrong, runs, replace(hypothesis, runs=0), caution=CAUTION_SMOOTH))


def _surprising(rule: DecisionRule, hypothesis: Hypothesis) -> bool:
    """Whether so many correct guesses, on runs that it was not chosen on, are improbable under the claim."""
    if hypothesis.delta:
        return False
    log_p, log_not = log_limits(hypothesis.epsilon, hypothesis.candidates)
    share = rule.right / max(1, rule.right + rule.wrong)
    if share <= math.exp(log_p):
        return False
    evidence = rule.right * (math.log(share) - log_p)  # a Chernoff bound
    return evidence + (rule.wrong * (math.log1p(-share) - log_not) if rule.wrong else 0.0) > SURPRISE


def _of_rare_events(
    everything: Sequence[Outputs], inputs: tuple[Any, ...], hypothesis: Hypothesis, *, eager: bool = False
) -> DecisionRule | None:
    """A rule from all runs, since every rare event counts; an `eager` one from fewer of them, which may be by chance.

    Its expected power is that of rules from three quarters on the fourth. That no run contradicts the
    events of all runs is not evidence: a rule that expects to be always right loses everything if it is not.
    """
    training = TrainingSet(tuple(everything), inputs, epsilon=hypothesis.epsilon)
    found = Exclusive.cross_fit(training)
    if found is None and eager:
        found = Exclusive.cross_fit(replace(training, by_chance=BY_CHANCE))
    rule = None if found is None else with_thresholds(*found, hypothesis)
    return None if rule is None else replace(rule, right=max(1, rule.right))


def _clearly_better(rule: DecisionRule, best: DecisionRule | None) -> bool:
    """Whether the expected power is sufficiently higher than that of the best so far, which is cheaper."""
    return best is None or best.expected_power < rule.expected_power - (1 - AS_GOOD) * abs(rule.expected_power)


@numpy_in_one_thread()
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
        cuts = distinct([t for t in (rule.low, rule.high) if abs(t) < math.inf])
        ends = int(rule.low > -math.inf), int(rule.high == math.inf) + len(cuts) - 1
        grid = efficiency_of(right, wrong, [rounded(s, rule.resolution) for s in scores], cuts)
        efficiency = float(grid if isinstance(grid, float) else grid[ends])
    return float(expected_power(right, wrong, sum(map(len, scores)), hypothesis, None, CAUTION_SMOOTH, efficiency))


def with_thresholds(
    distinguisher: Distinguisher, exact: Sequence[Scores], hypothesis: Hypothesis
) -> DecisionRule | None:
    """The thresholds with the highest expected power on runs that got these scores."""
    return _thresholds(distinguisher, exact, hypothesis.candidates)(hypothesis)


def _thresholds(
    distinguisher: Distinguisher, exact: Sequence[Scores], candidates: int
) -> Callable[[Hypothesis], DecisionRule | None]:
    """The best thresholds as a function of the hypothesis; counts that all hypotheses need are computed once."""
    if distinguisher.decided:
        return partial(_as_decided, distinguisher, exact)
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
    cuts = distinct(pooled[np.minimum((tails * len(pooled)).astype(int), len(pooled) - 1)])
    low, high = np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])
    below = [np.concatenate([[0], np.searchsorted(s, cuts, side="right")]) for s in (first, second)]
    above = [np.concatenate([len(s) - np.searchsorted(s, cuts, side="left"), [0]]) for s in (first, second)]
    right = below[0][:, None] + above[1][None, :]
    wrong = below[1][:, None] + above[0][None, :]
    efficiency = efficiency_of(right, wrong, scores, cuts)
    scored = 2 * len(pooled) > total  # a curve through the scores of a few runs is not evidence about the others

    def best(hypothesis: Hypothesis) -> DecisionRule | None:
        smooth = None
        if hypothesis.runs and len(cuts) > 2 and hypothesis.spreads and scored:
            smooth = logistic_curve(cuts, below, (len(first), len(second)), hypothesis.spreads)
        power = expected_power(right, wrong, total, hypothesis, smooth, efficiency=efficiency)
        power = np.where(low[:, None] < high[None, :], power, -np.inf)
        weight = 1.0 if hypothesis.runs else ONE_SIDED
        preferred = power * np.where(np.isfinite(low)[:, None] & np.isfinite(high), 1.0, weight)
        i, j = np.unravel_index(int(preferred.argmax()), power.shape)
        counts = int(right[i, j]), int(wrong[i, j])
        if not any(counts):
            return None
        return DecisionRule(distinguisher, float(low[i]), float(high[j]), *counts, float(power[i, j]), resolution)

    return best


def _as_decided(distinguisher: Distinguisher, scores: Sequence[Scores], hypothesis: Hypothesis) -> DecisionRule | None:
    """The rule of a distinguisher that names an input by itself: nothing was searched, so little caution is needed."""
    first, second = scores
    right = int(np.count_nonzero(first < 0)) + int(np.count_nonzero(second > 0))
    wrong = int(np.count_nonzero(first > 0)) + int(np.count_nonzero(second < 0))
    total = max(1, len(first) + len(second))
    power = expected_power(np.array(right), np.array(wrong), total, hypothesis, caution=CAUTION_SMOOTH)
    low, high = -1.0 if distinguisher.event(0) else -math.inf, 1.0 if distinguisher.event(1) else math.inf
    return DecisionRule(distinguisher, low, high, right, wrong, float(power), 1.0)


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
    levels = distinct(np.quantile(margin[margin > -np.inf], np.linspace(0, 1, 33), method="nearest"))
    if hypothesis.delta:  # with a δ the bound holds only for rules that never abstain
        levels = np.array([-np.inf])
    right = np.array([np.count_nonzero(hit & (margin >= level)) for level in levels])
    guessed = np.array([np.count_nonzero(margin >= level) for level in levels])
    power = expected_power(right, guessed - right, len(hit), hypothesis)
    k = int(power.argmax())
    counts = int(right[k]), int(guessed[k] - right[k])
    return DecisionRule(
        distinguisher, -math.inf, float(levels[k]), *counts, float(power[k]), resolution, hypothesis.candidates
    )
