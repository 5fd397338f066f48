"""From runs whose input is known to the rule that is then tested on other runs.

Guessers are fitted on one part of these runs. On the other part each is tried with all thresholds, and the one that
promises most is kept. Nothing here needs to be right for a verdict to be right: a bad rule only wins less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.attacks import (
    _WHOLE,
    FEATURES,
    HASHED,
    LABELS,
    MOST_KEYS,
    NEARER,
    NEARER_STEPS,
    ONE_SIDED,
    Boosted,
    Counted,
    Guarded,
    Guesser,
    Likelihood,
    Linear,
    Nearest,
    Ngrams,
    Scores,
    Statistic,
    as_row,
    binned,
    feature_count,
    ngrams,
)
from dpassay.law import Law
from dpassay.outputs import LONGEST, Array, Outputs
from dpassay.statistics import Tally, log_limits

MOST_FITTED = 1 << 19  # runs that a classifier is fitted on
PASSES = 4
# Standard errors that are taken off what looks best, since the best of thousands is lucky too: many where a rule is
# soon learnt anew, fewer where it is learnt once and for all.
CAUTION, CAUTION_ONCE = 4.0, 2.0
FEWEST = 50  # guesses on which a rule for good is chosen
# Where the bins of a feature end: fine in the tails, where the largest losses hide.
_TAIL = np.geomspace(2e-4, 0.03, 6)
QUANTILES = np.concatenate([_TAIL, np.linspace(0.05, 0.95, 25), 1 - _TAIL[::-1]])
BINS = len(QUANTILES) + 2  # one more, and one for NaN
EASY = 0.97  # a dearer guesser must promise some hundredths more


@dataclass(frozen=True, slots=True)
class Aim:
    """What a rule is chosen for: to refute this claim soon, or (`runs` given) the highest bound after so many runs."""

    epsilon: float
    delta: float = 0.0
    candidates: int = 2
    runs: int = 0
    alpha: float = 0.001


@dataclass(frozen=True)
class Rule:
    """A guesser with thresholds: it names the first input up to `low`, the second from `high`, else abstains.

    With more than two inputs it names the one with the highest score where that leads by at least `high`.
    Scores count in units of `grain`, far coarser than rounding errors: else the last bits of a score, which differ
    between inputs for every sampler in floating point, would tell what the mechanism's mathematics does not.
    `right` and `wrong` are what it got on the runs it was chosen on.
    """

    guesser: Guesser
    low: float
    high: float
    right: int
    wrong: int
    promise: float
    grain: float
    candidates: int = 2

    def count(self, outputs: Outputs, side: int) -> tuple[int, int]:
        """Right and wrong guesses on outputs that all came from one input."""
        if not len(outputs):
            return 0, 0
        scores = coarse(self.guesser.scores(outputs), self.grain)
        if self.candidates == 2:
            named = (int(np.count_nonzero(scores <= self.low)), int(np.count_nonzero(scores >= self.high)))
            return named[side], named[1 - side]
        best, lead = leaders(scores)
        guessed = lead >= self.high
        right = int(np.count_nonzero(guessed & (best == side)))
        return right, int(np.count_nonzero(guessed)) - right

    def tally(self, trust: float) -> Tally:
        """An empty tally that expects what was seen, taken as seriously as `trust` says."""
        sides = 2 if self.candidates > 2 else int(self.low > -math.inf) + int(self.high < math.inf)
        return Tally(0, 0, 0, 0.5 + trust * self.right, 0.5 + trust * self.wrong, max(1, sides))

    def describe(self) -> str:
        """The event in words."""
        what = self.guesser.describe()
        if self.candidates > 2:
            return f"the input that {what} points to"
        ends = []
        if self.low > -math.inf:
            ends.append(f"the first input where it is at most {self.low * self.grain:.6g}")
        if self.high < math.inf:
            ends.append(f"the second where it is at least {self.high * self.grain:.6g}")
        return f"judging by {what}: {' and '.join(ends)}"


def coarse(scores: Scores, grain: float) -> Scores:
    """Scores in whole grains."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.rint(scores / grain))


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
    aim: Aim,
    laws: Sequence[Law] | None = None,
    own: Guesser | None = None,
    bits: bool = False,
) -> Rule | None:
    """The rule that promises most; None if nothing could be learnt. `bits`: bit patterns of floats may be looked at."""
    if own is not None:
        found: Iterator[Guesser] = iter([own])
    elif laws is not None:
        found = iter([Likelihood(tuple(laws))])
    else:
        found = learnt(runs, tuple(inputs), bits)
    best: Rule | None = None
    for guesser in found:
        rule = with_thresholds(guesser, calibration, aim)
        if rule is not None and (best is None or best.promise < EASY * rule.promise):
            best = rule
    return best


def learnt(seen: Sequence[Outputs], inputs: tuple[Any, ...], bits: bool = False) -> Iterator[Guesser]:
    """All guessers that suit these outputs (one batch for each input), cheap ones first."""
    oddities = _counted("oddities", seen, inputs)
    assert oddities is not None
    one_sided = len(seen) == 2 and bool((np.abs(oddities.logs[1] - oddities.logs[0]) > ONE_SIDED).any())
    for guesser in _plain(seen, inputs, bits):
        yield Guarded(guesser, oddities) if one_sided else guesser
    if len(oddities.names) > 1:
        yield oddities


def _plain(seen: Sequence[Outputs], inputs: tuple[Any, ...], bits: bool) -> Iterator[Guesser]:
    widths = {outputs.width for outputs in seen}
    plain = len(widths) == 1 and None not in widths
    width = max((outputs.width or _widest(outputs) for outputs in seen), default=0)
    if any(any(outputs.texts()) for outputs in seen):
        yield _fit_ngrams(seen)
    values = _counted("value", seen, inputs)
    if values is not None:
        yield values
    rows = [as_row(x) for x in inputs]
    same = plain and all(row is not None and len(row) == width for row in rows)
    if len(seen) > 2:
        if same:
            yield Nearest(tuple(row for row in rows if row is not None))
        return
    if plain:
        for name in (NEARER, NEARER_STEPS)[: min(width, 2)] if same else ():
            yield _oriented(Statistic(name, width, 1.0, tuple(row for row in rows if row is not None)), seen)
        if width > 1:
            yield from (_oriented(Statistic(name, width), seen) for name in _WHOLE)
        yield from (_oriented(Statistic(f"coordinate {j}", width), seen) for j in _telling(seen, width))
    small = [_first(outputs) for outputs in seen]
    if plain:
        yield from _fit_linear(small, width)
    kinds = [("coordinates", min(width, LONGEST))] if width else []
    if bits and width:
        kinds.append(("float bits", min(width, 8)))
    if not plain:
        kinds.append(("lengths", 1))
    if width > 1 and any(np.isnan(outputs.matrix(width)[:1000]).any() for outputs in small):
        kinds.insert(0, ("where the output ends", width))
    for kind, wide in kinds:
        yield from _fit_boosted(kind, small, wide)


def _first(outputs: Outputs) -> Outputs:
    from dpassay.outputs import part

    return part(outputs, 0, MOST_FITTED // 2)


def _widest(outputs: Outputs) -> int:
    lengths = outputs.lengths()
    vectors = [n for n, item in zip(lengths, outputs.items, strict=True) if not isinstance(item, str) and n == n]
    return int(min(max(vectors, default=0), 64))


def _oriented(statistic: Statistic, seen: Sequence[Outputs]) -> Statistic:
    """Turn a statistic so that it is higher for the second input: by medians, or means where those agree."""
    first, second = (statistic.scores(outputs) for outputs in seen)
    with np.errstate(all="ignore"):
        gap = _middle(second) - _middle(first)
    return Statistic(statistic.name, statistic.width, -1.0 if gap < 0 else 1.0, statistic.inputs)


def _middle(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite) + 1e-9 * finite.mean()) if len(finite) else 0.0


def _telling(seen: Sequence[Outputs], width: int) -> list[int]:
    """The few coordinates that differ most between the two sides."""
    if width <= 4:
        return list(range(width))
    first, second = (outputs.matrix(width)[:2000] for outputs in seen)
    with np.errstate(all="ignore"):
        gap = np.abs(np.median(second, axis=0) - np.median(first, axis=0))
    return [int(j) for j in np.argsort(-np.nan_to_num(gap), kind="stable")[:3]]


def _counted(kind: str, seen: Sequence[Outputs], inputs: tuple[Any, ...]) -> Counted | None:
    """Count categories, if they repeat."""
    labelled = [LABELS[kind](outputs, inputs) for outputs in seen]
    if kind == "value":
        pooled = np.concatenate([codes for codes, _ in labelled])
        names: Any
        names, counts = np.unique(pooled, return_counts=True)
        if len(names) > max(8, len(pooled) // 4):
            return None  # outputs hardly ever repeat
        if len(names) > MOST_KEYS:
            names = np.sort(names[np.argsort(-counts, kind="stable")[:MOST_KEYS]])
        table = np.array([_histogram(codes, names) for codes, _ in labelled], dtype=float)
    else:
        names = list(dict.fromkeys(word for _, words in labelled for word in (words or {}).values()))
        table = np.zeros((len(seen), len(names)))
        for i, (codes, words) in enumerate(labelled):
            for code, word in (words or {}).items():
                table[i, names.index(word)] += np.count_nonzero(codes == code)
    totals = np.array([max(1, len(outputs)) for outputs in seen], dtype=float)
    logs = np.log((table + 0.5) / (totals[:, None] + 1))
    if kind == "value" and len(seen) == 2:
        logs = _shrunk(table, logs[1] - logs[0])
    return Counted(kind, tuple(names.tolist() if kind == "value" else names), logs, inputs)


def _shrunk(table: Array, scores: Array) -> Array:
    """Scores of rare categories are mostly chance: shrink each by how much of its spread is (empirical Bayes)."""
    chance = (1 / (table + 0.5)).sum(axis=0)
    weight = table.sum(axis=0)
    real = max(1e-4, float((weight * (scores**2 - chance)).sum() / weight.sum()))
    shrunk = scores * real / (real + chance)
    return np.stack([-shrunk / 2, shrunk / 2])


def _histogram(codes: NDArray[Any], names: NDArray[Any]) -> NDArray[Any]:
    where = np.minimum(np.searchsorted(names, codes), len(names) - 1)
    return np.bincount(where[names[where] == codes], minlength=len(names))


def _fit_ngrams(seen: Sequence[Outputs]) -> Ngrams:
    logs = []
    for outputs in seen:
        counts = np.zeros(HASHED)
        for text in outputs.texts():
            counts[ngrams(text)] += 1
        logs.append(np.log((counts + 0.5) / (len(outputs) + 1)))
    return Ngrams(np.array(logs))


def _fit_linear(seen: Sequence[Outputs], width: int) -> Iterator[Linear]:
    """Ridge-regularised logistic regression by Newton's method, on standardised coordinates.

    Written here since it is fifteen lines and a library for it would cost a second of start-up.
    """
    if not 2 <= width <= 2048:
        return
    limit = len(seen[0]) if width <= 64 else max(200, 1_000_000 // width)
    rows = np.concatenate([outputs.matrix(width)[:limit] for outputs in seen])
    labels = np.repeat([0.0, 1.0], [min(limit, len(outputs)) for outputs in seen])
    finite = np.isfinite(rows).all(axis=1)
    rows, labels = rows[finite], labels[finite]
    if len(rows) < 20 or labels.min() == labels.max():
        return
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    spread[spread == 0] = 1.0
    design = np.column_stack([(rows - centre) / spread, np.ones(len(rows))])
    weights = np.zeros(width + 1)
    for _ in range(5 if width <= 64 else 1):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (labels - chance) - weights
        curvature = (design * (chance * (1 - chance) + 1e-6)[:, None]).T @ design + np.eye(width + 1)
        weights = weights + np.linalg.solve(curvature, slope)
    scaled = weights[:-1] / spread
    if np.isfinite(scaled).all():
        yield Linear(scaled, float(weights[-1] - centre @ scaled))


def _fit_boosted(kind: str, seen: Sequence[Outputs], width: int) -> Iterator[Boosted]:
    """Boost tables over quantile bins of the features.

    Written here since it must be quick on a hundred runs, fine in the tails, and plain data in a file.
    """
    features = [FEATURES[kind](outputs, width) for outputs in seen]
    edges, codes = [], []
    for j in range(feature_count(kind, width)):
        column = np.concatenate([feature(j) for feature in features])
        finite = column[np.isfinite(column)]
        cuts = np.unique(np.quantile(finite, QUANTILES, method="nearest")) if len(finite) else finite
        edges.append(cuts)
        codes.append(binned(column, cuts).astype(np.uint8))
    labels = np.repeat([0.0, 1.0], [len(outputs) for outputs in seen])
    if len(labels) < 20 or not codes:
        return
    tables = _boost(codes, labels)
    used = sorted({j for columns in tables for j in columns})
    if used:
        yield Boosted(kind, width, tuple(tables), {j: edges[j] for j in used}, tuple(tables.values()))


def _boost(codes: Sequence[NDArray[np.uint8]], labels: Array) -> dict[tuple[int, ...], Array]:
    """Tables for the features that tell more than chance would, then for pairs of them that tell more together.

    Each pass goes over all tables, with a Newton step in all their bins.
    """
    score = np.zeros(len(labels))
    # Two features together have few runs in each cell: their bins are merged by threes, but for the one of NaN.
    coarse_bins = np.append(np.arange(BINS - 1) // 3 * 3, BINS - 1).astype(np.int32)
    tables: dict[tuple[int, ...], Array] = {}

    def cells(columns: tuple[int, ...]) -> NDArray[Any]:
        if len(columns) == 1:
            return codes[columns[0]]
        first, second = (coarse_bins[codes[j]] for j in columns)
        return first * BINS + second

    def step(columns: tuple[int, ...], where: NDArray[Any]) -> tuple[Array, float, float]:
        chance = 1 / (1 + np.exp(-score))
        size = BINS ** len(columns)
        slope = np.bincount(where, labels - chance, minlength=size)
        curve = np.bincount(where, chance * (1 - chance), minlength=size)
        busy = curve > 0
        beyond = float((slope[busy] ** 2 / curve[busy] - 1).sum())  # chance alone gives 0 on average
        doubt = 1.5 * math.sqrt(2 * busy.sum())
        variance = max(beyond / curve.sum(), 1e-6)  # of what the bins should say: little of it, small steps
        return 0.7 * slope / (curve + 1 / variance), beyond, doubt

    def telling(proposed: Sequence[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
        steps = {columns: step(columns, cells(columns)) for columns in proposed}
        gains = {columns: beyond - doubt for columns, (_, beyond, doubt) in steps.items()}
        return [c for c in sorted(gains, key=lambda c: -gains[c]) if gains[c] > 0][:most]

    def boost(chosen: Sequence[tuple[int, ...]]) -> None:
        nonlocal score
        for columns in [*chosen] * PASSES:
            where = cells(columns)
            move, beyond, _ = step(columns, where)
            if beyond <= 0:
                continue  # the tables so far say all that this one could
            table = tables.setdefault(columns, np.zeros((BINS,) * len(columns)))
            score = score + move[where]
            full = move.reshape(table.shape)
            table += full if len(columns) == 1 else full[np.ix_(coarse_bins, coarse_bins)]

    single = telling([(j,) for j in range(len(codes))], len(codes))
    boost(single)
    first = [0, 1] if len(codes) == 2 else [c[0] for c in single[:4]]
    boost(telling(list(combinations(sorted(first), 2)), 2))
    return tables


def with_thresholds(guesser: Guesser, calibration: Sequence[Outputs], aim: Aim) -> Rule | None:
    """The thresholds that promise most on these runs."""
    exact = [guesser.scores(outputs) for outputs in calibration]
    grain = grain_of(exact)
    scores = [coarse(s, grain) for s in exact]
    if aim.candidates > 2:
        return _with_lead(guesser, scores, aim, grain)
    first, second = (np.sort(s[~np.isnan(s)]) for s in scores)
    total = len(scores[0]) + len(scores[1])
    pooled = np.concatenate([first, second])
    if not len(pooled):
        return None
    pooled.sort()
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
    promise = np.where(low[:, None] < high[None, :], _promise(right, wrong, total, aim), -np.inf)
    i, j = np.unravel_index(int(promise.argmax()), promise.shape)
    if right[i, j] + wrong[i, j] == 0:
        return None
    counts = int(right[i, j]), int(wrong[i, j])
    return Rule(guesser, float(low[i]), float(high[j]), *counts, float(promise[i, j]), grain)


def _with_lead(guesser: Guesser, scores: Sequence[Scores], aim: Aim, grain: float) -> Rule | None:
    correct, leads = [], []
    for side, matrix in enumerate(scores):
        best, lead = leaders(matrix)
        correct.append(best == side)
        leads.append(lead)
    hit, lead = np.concatenate(correct), np.concatenate(leads)
    levels = np.unique(np.quantile(lead[lead > -np.inf], np.linspace(0, 1, 33), method="nearest"))
    if aim.delta:  # with a δ the bound is for those who always guess
        levels = np.array([-np.inf])
    right = np.array([np.count_nonzero(hit & (lead >= level)) for level in levels])
    guessed = np.array([np.count_nonzero(lead >= level) for level in levels])
    promise = _promise(right, guessed - right, len(hit), aim)
    k = int(promise.argmax())
    counts = int(right[k]), int(guessed[k] - right[k])
    return Rule(guesser, -math.inf, float(levels[k]), *counts, float(promise[k]), grain, aim.candidates)


def _promise(right: NDArray[Any], wrong: NDArray[Any], total: int, aim: Aim) -> Array:
    """How much a rule with these counts promises: evidence a run against the claim, or the bound at the end."""
    guesses = np.maximum(right + wrong, 1)
    share = _pessimistic(right / guesses, guesses, CAUTION_ONCE if aim.runs else CAUTION)
    if aim.runs:
        share = np.where(guesses < min(FEWEST, total // 100), 0.5 * share, share)
        deviations = math.sqrt(-2 * math.log(aim.alpha)) - 0.5
        share = _pessimistic(share, guesses * (aim.runs / total), deviations)
        if not aim.delta:
            with np.errstate(divide="ignore"):
                return np.where(share > 0.5, np.log(share) - np.log1p(-share), share - 0.5)
    if aim.delta and aim.candidates == 2:
        odds = math.exp(min(aim.epsilon, 700.0))
        cost = aim.delta * np.where((right > 0) & (wrong >= 0), 1.0, 1.0)
        excess = (right - odds * wrong) / total - cost
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
