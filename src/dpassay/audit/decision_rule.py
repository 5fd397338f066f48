"""From runs whose input is known to the rule that is then tested on other runs.

Guessers are fitted on one part of these runs. On the other part each is tried with all thresholds, and the one that
promises most is kept. Nothing here needs to be right for a verdict to be right: a bad rule only wins less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.attacks import Counted, Distinguisher, Likelihood, Scores
from dpassay.audit.fitting import Bits, learnt
from dpassay.audit.inference import Counts, log_limits
from dpassay.audit.outputs import Array, Outputs
from dpassay.pipeline.distributions import Distribution

# Standard errors that are taken off what looks best, since the best of thousands is lucky too; few where a smooth
# curve through all scores says the same, which counts like so many guesses.
CAUTION, CAUTION_SMOOTH = 4.0, 1.0
SMOOTH = 1000.0
MOST_WORTH = 100.0  # independent runs that a run is worth at most
FINALISTS = 3  # guessers that are tried on all calibration runs
SPREADS, FAR_SPREADS = 1.5, 4.0  # from the middle of all scores, beyond which the smooth curve is flat
SURE = 0.95  # of what it got
FAR = 1e300  # the farthest that a score counts, in grains
EASY = 0.97  # a dearer guesser must promise some hundredths more


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a rule is chosen for: to refute this claim soon, or (`runs` given) the highest bound after so many runs."""

    epsilon: float
    delta: float = 0.0
    candidates: int = 2
    runs: int = 0
    alpha: float = 0.001
    spreads: float = SPREADS  # how far out the smooth curve goes on rising


@dataclass(frozen=True)
class DecisionRule:
    """A guesser with thresholds: it names the first input up to `low`, the second from `high`, else abstains.

    With more than two inputs it names the one with the highest score where that leads by at least `high`.
    Scores count in units of `grain`, far coarser than rounding errors: else the last bits of a score, which differ
    between inputs for every sampler in floating point, would tell what the mechanism's mathematics does not.
    `right` and `wrong` are what it got on the runs it was chosen on.
    """

    guesser: Distinguisher
    low: float
    high: float
    right: int
    wrong: int
    expected_power: float
    grain: float
    candidates: int = 2

    def count(self, outputs: Outputs, side: int) -> tuple[int, int]:
        """Right and wrong guesses on outputs that all came from one input."""
        if not len(outputs):
            return 0, 0
        return self.count_scores(self.guesser.scores(outputs), side)

    def count_scores(self, exact: Scores, side: int) -> tuple[int, int]:
        """The same where the guesser's scores are known."""
        scores = coarse(exact, self.grain)
        if self.candidates == 2:
            named = (int(np.count_nonzero(scores <= self.low)), int(np.count_nonzero(scores >= self.high)))
            return named[side], named[1 - side]
        best, lead = leaders(scores)
        guessed = lead >= self.high
        right = int(np.count_nonzero(guessed & (best == side)))
        return right, int(np.count_nonzero(guessed)) - right

    @property
    def sure(self) -> bool:
        """Whether more runs could hardly make it better: it names categories and promises nearly what it got, as an ε.

        A threshold on a number could always be moved a little.
        """
        named = self.candidates == 2 and isinstance(self.guesser, Counted)
        return named and self.expected_power >= SURE * math.log((self.right + 1) / (self.wrong + 1)) > 0

    def tally(self, trust: float) -> Counts:
        """An empty tally that expects what was seen, taken as seriously as `trust` says."""
        sides = 2 if self.candidates > 2 else int(self.low > -math.inf) + int(self.high < math.inf)
        assert sides, "a rule names somebody"
        return Counts(0, 0, 0, 0.5 + trust * self.right, 0.5 + trust * self.wrong, sides)

    def describe(self) -> str:
        """The event in words."""
        what = self.guesser.describe()
        if self.candidates > 2:
            return f"judging by {what}: the input with the highest score"
        ends = []
        if self.low <= -FAR / 2 or self.high >= FAR / 2:
            ends.append("the one input that ever gives such outputs")
        if self.low > -FAR / 2:
            ends.append(f"the first input where it is at most {self.low * self.grain:.6g}")
        if self.high < FAR / 2:
            ends.append(f"the second input where it is at least {self.high * self.grain:.6g}")
        return f"judging by {what}: {' and '.join(ends)}"


def coarse(scores: Scores, grain: float) -> Scores:
    """Scores in whole grains, all finite: a threshold at infinity is one that no score regions."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.rint(scores / grain), -FAR, FAR))


def grain_of(scores: Sequence[Scores]) -> float:
    """A millionth of the range in which most scores lie."""
    finite = np.concatenate([s[np.isfinite(s)].ravel() for s in scores])
    if not len(finite):
        return 1.0
    low, high = np.quantile(finite, [0.05, 0.95])
    spread = float(high - low) or float(np.ptp(finite)) or float(np.abs(finite).max()) or 1.0
    return spread * 1e-6


def leaders(scores: Scores) -> tuple[NDArray[np.int64], Array]:
    """For each row the column with the highest score, and by how much it leads; no lead where it is unknown."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    best = known.argmax(axis=1)
    two = np.partition(known, -2, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        lead = two[:, 1] - two[:, 0]
    return best, np.where(np.isfinite(two[:, 1]) & ~np.isnan(lead), lead, -np.inf)


def learn(
    runs: Sequence[Outputs],
    calibration: Sequence[Outputs],
    inputs: Sequence[Any],
    aim: Hypothesis,
    distributions: Sequence[Distribution] | None = None,
    own: Distinguisher | None = None,
    bits: Bits = "no",
) -> DecisionRule | None:
    """The rule that promises most; None if nothing could be learnt."""
    if own is not None:
        found: Iterable[Distinguisher] = [own]
    elif distributions is not None:
        found = [Likelihood(tuple(distributions))]
    else:
        found = learnt(runs, tuple(inputs), bits)
    return best_rule(((guesser, [guesser.scores(o) for o in calibration]) for guesser in found), aim)


def best_rule(scored: Iterable[tuple[Distinguisher, Sequence[Scores]]], aim: Hypothesis) -> DecisionRule | None:
    """Of guessers with their scores on other runs, cheap ones first, the rule that promises most."""
    best: DecisionRule | None = None
    for guesser, scores in scored:
        rule = with_thresholds(guesser, scores, aim)
        best = rule if rule is not None and _clearly_better(rule, best) else best
    return best


def _clearly_better(rule: DecisionRule, best: DecisionRule | None) -> bool:
    """Whether a rule promises enough more than the best so far, which is cheaper."""
    return best is None or best.expected_power < rule.expected_power - (1 - EASY) * abs(rule.expected_power)


def best_of_many(
    guessers: Iterable[Distinguisher], batches: Iterator[Sequence[Outputs]], aim: Hypothesis
) -> DecisionRule | None:
    """The same where calibration runs come in batches: all guessers are tried on the first, the best few on all."""
    first = next(batches)
    tried: list[tuple[float, int, Distinguisher, list[list[Scores]]]] = []
    for place, guesser in enumerate(guessers):
        scores = [guesser.scores(outputs) for outputs in first]
        rule = with_thresholds(guesser, scores, aim)
        if rule is not None:
            tried.append((-rule.expected_power, place, guesser, [[s] for s in scores]))
            tried = sorted(tried, key=lambda entry: entry[:2])[:FINALISTS]
    tried.sort(key=lambda entry: entry[1])
    for batch in batches:
        for _, _, guesser, sides in tried:
            for side, outputs in zip(sides, batch, strict=True):
                side.append(guesser.scores(outputs))
    best: DecisionRule | None = None
    for _, _, guesser, sides in tried:
        for rule in _cross_judged(guesser, [np.concatenate(side) for side in sides], aim):
            best = rule if _clearly_better(rule, best) else best
    return best


def _cross_judged(guesser: Distinguisher, scores: Sequence[Scores], aim: Hypothesis) -> Iterator[DecisionRule]:
    """Rules from all of these scores; each promises what rules from one half of them get on the other, on average."""
    halves = [[side[start::2] for side in scores] for start in (0, 1)]
    whole, *parts = (_thresholds(guesser, some, aim.candidates) for some in (scores, *halves))
    for spreads in (0.0, SPREADS, FAR_SPREADS):
        daring = replace(aim, spreads=spreads)
        rule, found = whole(daring), [chosen for part in parts if (chosen := part(daring)) is not None]
        if rule is not None and len(found) == 2:
            yield replace(rule, expected_power=sum(map(_judged, found, reversed(halves), (aim, aim))) / 2)


def _judged(rule: DecisionRule, scores: Sequence[Scores], aim: Hypothesis) -> float:
    """What a rule promises by scores that it was not chosen on."""
    counts = [rule.count_scores(side_scores, side) for side, side_scores in enumerate(scores)]
    right, wrong = (np.array(sum(count[i] for count in counts)) for i in (0, 1))
    worth = 1.0
    if rule.candidates == 2:  # the grid of thresholds is these two
        cuts = np.unique([t for t in (rule.low, rule.high) if abs(t) < math.inf])
        ends = int(rule.low > -math.inf), int(rule.high == math.inf) + len(cuts) - 1
        grid = _worth(right, wrong, [coarse(s, rule.grain) for s in scores], cuts)
        worth = float(grid if isinstance(grid, float) else grid[ends])
    return float(_expected_power(right, wrong, sum(map(len, scores)), aim, None, CAUTION_SMOOTH, worth))


def with_thresholds(guesser: Distinguisher, exact: Sequence[Scores], aim: Hypothesis) -> DecisionRule | None:
    """The thresholds that promise most on runs that got these scores."""
    return _thresholds(guesser, exact, aim.candidates)(aim)


def _thresholds(
    guesser: Distinguisher, exact: Sequence[Scores], candidates: int
) -> Callable[[Hypothesis], DecisionRule | None]:
    """From an aim to the thresholds that promise most for it; what all aims need is counted once."""
    grain = grain_of(exact)
    scores = [coarse(s, grain) for s in exact]
    if candidates > 2:
        return partial(_with_lead, guesser, scores, grain)
    first, second = (np.sort(s[~np.isnan(s)]) for s in scores)
    total = len(scores[0]) + len(scores[1])
    pooled = np.concatenate([first, second])
    if not len(pooled):
        return lambda aim: None
    pooled.sort(kind="stable")  # two sorted halves are merged
    parts = int(min(64, max(8, total // 32)))
    tails = np.concatenate(
        [np.geomspace(1 / max(16, total), 0.5, parts), 1 - np.geomspace(1 / max(16, total), 0.5, parts)]
    )
    cuts = np.unique(pooled[np.minimum((tails * len(pooled)).astype(int), len(pooled) - 1)])
    low, high = np.concatenate([[-np.inf], cuts]), np.concatenate([cuts, [np.inf]])
    below = [np.concatenate([[0], np.searchsorted(s, cuts, side="right")]) for s in (first, second)]
    above = [np.concatenate([len(s) - np.searchsorted(s, cuts, side="left"), [0]]) for s in (first, second)]
    right = below[0][:, None] + above[1][None, :]
    wrong = below[1][:, None] + above[0][None, :]
    worth = _worth(right, wrong, scores, cuts)
    scored = 2 * len(pooled) > total  # a curve through the scores of a few runs says nothing of the others

    def best(aim: Hypothesis) -> DecisionRule | None:
        smooth = None
        if aim.runs and len(cuts) > 2 and aim.spreads and scored:
            smooth = _smooth(cuts, below, above, (len(first), len(second)), aim.spreads)
        power = _expected_power(right, wrong, total, aim, smooth, worth=worth)
        power = np.where(low[:, None] < high[None, :], power, -np.inf)
        i, j = np.unravel_index(int(power.argmax()), power.shape)
        counts = int(right[i, j]), int(wrong[i, j])
        return (
            DecisionRule(guesser, float(low[i]), float(high[j]), *counts, float(power[i, j]), grain)
            if any(counts)
            else None
        )

    return best


def _worth(right: NDArray[Any], wrong: NDArray[Any], scores: Sequence[Scores], cuts: Array) -> Array | float:
    """How many independent runs one run of each pair of thresholds is worth, as far as chance in the log-odds goes.

    Runs of the two inputs with the same random numbers go together, one by one, if there are equally many. Where both
    give the same guess chance moves right and wrong guesses alike, and their ratio little.
    """
    first, second = scores
    if len(first) != len(second):
        return 1.0
    known = ~(np.isnan(first) | np.isnan(second))
    last = 2 * len(cuts)  # a place is even between cuts and odd on one
    places = [_place(s[known], cuts) for s in scores]
    both = np.bincount(places[0] * (last + 1) + places[1], minlength=(last + 1) ** 2).reshape(last + 1, last + 1)
    up_to = np.pad(both.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    low = np.concatenate([[0], np.arange(2, last + 1, 2)])  # in `up_to`: what a lower threshold takes
    high = np.arange(1, last + 2, 2)  # and what an upper one leaves
    same = up_to[low, low][:, None] + (up_to[-1, -1] - up_to[high, -1] - up_to[-1, high] + up_to[high, high])
    both_right = up_to[low, -1][:, None] - up_to[np.ix_(low, high)]
    both_wrong = up_to[-1, low][:, None] - up_to[np.ix_(high, low)].T
    right, wrong = right + 1.0, wrong + 1.0
    alone = 1 / right + 1 / wrong
    together = alone + 2 * (both_right / right**2 + both_wrong / wrong**2 - same / (right * wrong))
    return np.asarray(alone / np.maximum(together, alone / MOST_WORTH))


def _place(scores: Scores, cuts: Array) -> NDArray[Any]:
    """Twice the number of cuts below each score, and one more if it is on a cut."""
    below = np.searchsorted(cuts, scores, "left")
    return np.asarray(2 * below + (np.append(cuts, np.nan)[below] == scores))


def _with_lead(guesser: Distinguisher, scores: Sequence[Scores], grain: float, aim: Hypothesis) -> DecisionRule | None:
    correct, leads = [], []
    for side, matrix in enumerate(scores):
        best, lead = leaders(matrix)
        correct.append(best == side)
        leads.append(lead)
    hit, lead = np.concatenate(correct), np.concatenate(leads)
    if not (lead > -np.inf).any():
        return None
    levels = np.unique(np.quantile(lead[lead > -np.inf], np.linspace(0, 1, 33), method="nearest"))
    if aim.delta:  # with a δ the bound is for those who always guess
        levels = np.array([-np.inf])
    right = np.array([np.count_nonzero(hit & (lead >= level)) for level in levels])
    guessed = np.array([np.count_nonzero(lead >= level) for level in levels])
    power = _expected_power(right, guessed - right, len(hit), aim)
    k = int(power.argmax())
    counts = int(right[k]), int(guessed[k] - right[k])
    return DecisionRule(guesser, -math.inf, float(levels[k]), *counts, float(power[k]), grain, aim.candidates)


def _smooth(
    cuts: Array,
    below: Sequence[NDArray[Any]],
    above: Sequence[NDArray[Any]],
    sizes: tuple[int, int],
    spreads: float,
) -> Array:
    """The share of right guesses for all thresholds if the log-odds of the second input rise evenly with the score.

    A logistic curve through the counts between cuts, its score cut off a few spreads away from the middle.
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
    # The cut itself belongs to the cell below it, so what is above is counted without it: close enough for a power.
    low = np.concatenate([[0.0], np.cumsum((count - second)[:-1])])
    high = np.concatenate([np.cumsum(second[::-1])[::-1][:-1], [0.0]])
    guesses = np.concatenate([[0.0], np.cumsum(count[:-1])])[:, None] + np.concatenate(
        [np.cumsum(count[::-1])[::-1][:-1], [0.0]]
    )
    return np.asarray((low[:, None] + high) / np.maximum(guesses, 1e-9))


def _expected_power(
    right: NDArray[Any],
    wrong: NDArray[Any],
    total: int,
    aim: Hypothesis,
    smooth: Array | None = None,
    caution: float = CAUTION,
    worth: Array | float = 1.0,
) -> Array:
    """How much a rule with these counts promises: evidence a run against the claim, or the bound at the end."""
    guesses = np.maximum(right + wrong, 1)
    share = _pessimistic(right / guesses, worth * guesses, caution)
    if aim.runs:
        if smooth is not None:
            both = (worth * right + SMOOTH * smooth) / (worth * guesses + SMOOTH)
            share = np.maximum(share, _pessimistic(both, worth * guesses + SMOOTH, CAUTION_SMOOTH))
        deviations = math.sqrt(-2 * math.log(aim.alpha)) - 0.5
        share = _pessimistic(share, guesses * (aim.runs / total), deviations)
        if not aim.delta:
            with np.errstate(divide="ignore"):
                return np.where(share > 0.5, np.log(share) - np.log1p(-share), share - 0.5)
    if aim.delta and aim.candidates == 2:
        odds = math.exp(min(aim.epsilon, 700.0))
        excess = (right - odds * wrong) / total - aim.delta
        noise = np.sqrt((right + odds**2 * (wrong + 0.25)) / total**2)
        return np.asarray(np.maximum(excess - noise, 0) ** 2 / (noise**2 * total + 1e-300) + 1e-9 * share)
    log_p, log_not = log_limits(aim.epsilon, aim.candidates, aim.delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = share * (np.log(share) - log_p) + (1 - share) * (np.log1p(-share) - log_not)
    growth = np.where((share > math.exp(log_p)) & (guesses > 0), growth * (right + wrong) / total, 0.0)
    return np.asarray(growth + 1e-9 * share)  # where nothing is won the most accurate rule is kept


def _pessimistic(share: Array, guesses: Array, deviations: float) -> Array:
    """Wilson's lower bound: some standard deviations below the observed share, never below 0 or above 1."""
    z = deviations**2 / guesses
    centre = share + z / 2
    width = np.sqrt(np.maximum(share * (1 - share) * z + z * z / 4, 0))
    return np.asarray((centre - width) / (1 + z))
