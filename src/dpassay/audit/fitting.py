"""Guessers from runs whose input is known: counts, single numbers, a linear and a boosted classifier, n-grams.

Nothing here needs to be right for a verdict to be right: a bad guesser only wins less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.attacks import (
    _WHOLE,
    MOST_KEYS,
    NEARER,
    NEARER_STEPS,
    ONE_SIDED,
    Boosted,
    Counted,
    Distinguisher,
    Guarded,
    Linear,
    Nearest,
    Ngrams,
    Statistic,
)
from dpassay.audit.features import FEATURES, FLOAT_BITS, HASHED, LABELS, as_row, binned, feature_count, ngrams
from dpassay.audit.outputs import Array, Outputs, part

Bits: TypeAlias = Literal["no", "also", "only"]  # whether the bit patterns of floats are looked at
MOST_BITS = 8  # coordinates whose bits are looked at
MOST_FITTED = 1 << 19  # runs that tables are boosted on
PASSES = 4
BOOSTED = 128  # coordinates that are looked at one by one; of longer vectors the others go into sums only
NEWTON, NEWTON_AGAIN = 5, 2  # steps of the linear classifier on the first runs, and on all of them
FIRST_FITTED = 1 << 16  # runs of each input; also how many are looked at together
QUANTILED = 1 << 14  # values that bins are taken from
# Where the bins of a feature end: fine in the tails, where the largest losses hide.
_TAIL = np.geomspace(2e-4, 0.03, 6)
QUANTILES = np.concatenate([_TAIL, np.linspace(0.05, 0.95, 25), 1 - _TAIL[::-1]])
BINS = len(QUANTILES) + 2  # one more, and one for NaN


def learnt(seen: Sequence[Outputs], inputs: tuple[Any, ...], bits: Bits = "no") -> Iterator[Distinguisher]:
    """All guessers that suit these outputs (one batch for each input), cheap ones first.

    `bits`: whether bit patterns of floats are looked at, beside all else or alone.
    """
    if bits == "only":
        yield from _fit_boosted(FLOAT_BITS, seen, min(_width(seen), MOST_BITS))
        return
    oddities = _counted("oddities", seen, inputs)
    assert oddities is not None
    one_sided = len(seen) == 2 and bool((np.abs(oddities.logs[1] - oddities.logs[0]) > ONE_SIDED).any())
    for guesser in _plain(seen, inputs, bits == "also"):
        yield Guarded(guesser, oddities) if one_sided else guesser
    if len(oddities.names) > 1:
        yield oddities


def _plain(seen: Sequence[Outputs], inputs: tuple[Any, ...], bits: bool) -> Iterator[Distinguisher]:
    widths = {outputs.width for outputs in seen}
    plain = len(widths) == 1 and None not in widths
    width = _width(seen)
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
    if plain:
        yield from _fit_linear(seen, width)
    small = [part(outputs, 0, MOST_FITTED // 2) for outputs in seen]
    kinds = [("coordinates", min(width, BOOSTED))] if width else []
    if bits and width:
        kinds.append((FLOAT_BITS, min(width, MOST_BITS)))
    if not plain:
        kinds.append(("lengths", 1))
    if width > 1 and any(np.isnan(outputs.matrix(width)[:1000]).any() for outputs in small):
        kinds.insert(0, ("where the output ends", width))
    for kind, wide in kinds:
        yield from _fit_boosted(kind, small, wide)


def _width(seen: Sequence[Outputs]) -> int:
    """How many coordinates are looked at: those of vectors, or of the longest vector among all sorts of outputs."""
    return max(_widest(outputs) if outputs.width is None else outputs.width for outputs in seen)


def _widest(outputs: Outputs) -> int:
    lengths = outputs.lengths()
    vectors = [n for n, item in zip(lengths, outputs.items, strict=True) if not isinstance(item, str) and n == n]
    return int(min(max(vectors, default=0), 64))


def _oriented(statistic: Statistic, seen: Sequence[Outputs]) -> Statistic:
    """Turn a statistic so that it is higher for the second input: by medians, or means where those agree."""
    first, second = (statistic.scores(part(outputs, 0, FIRST_FITTED // 4)) for outputs in seen)
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
        alike = _alike(*(codes for codes, _ in labelled))
        shared = _histogram(labelled[0][0][alike], names) if len(alike) else np.zeros(len(names))
        logs = _shrunk(table, logs[1] - logs[0], shared)
    return Counted(kind, tuple(names.tolist() if kind == "value" else names), logs, inputs)


def _alike(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """In which runs both inputs gave the same; nothing where they have different numbers of runs.

    Runs of equal place were made with the same random numbers, as far as the mechanism takes them: what is alike in
    both cancels, and what chance does to a difference is counted in the others.
    """
    return first == second if len(first) == len(second) else np.zeros(0, dtype=bool)


def _shrunk(table: Array, scores: Array, shared: NDArray[Any]) -> Array:
    """Scores of rare categories are mostly chance: shrink each by how much of its spread is (empirical Bayes)."""
    chance = (1 / (table + 0.5)).sum(axis=0) - 2 * shared / (table + 0.5).prod(axis=0)
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

    A coordinate that may be NaN has a second column that says so. Written here since it is short and a library for it
    would cost a second of start-up.
    """
    if not 2 <= width <= 2048:
        return
    limit = max(map(len, seen)) if width <= 64 else max(200, 1_000_000 // width)
    sides = [outputs.matrix(width)[:limit] for outputs in seen]
    holes = np.flatnonzero(sum(np.isnan(rows[:FIRST_FITTED]).sum(axis=0) for rows in sides))
    first = [_design(rows[:FIRST_FITTED], holes) for rows in sides]
    both = np.concatenate(first)
    if len(both) < 20 or not all(map(len, first)):
        return
    centre, spread = both.mean(axis=0), both.std(axis=0)
    spread[spread == 0] = 1.0
    weights = np.zeros(len(centre) + 1)
    steps = [FIRST_FITTED] * (NEWTON if width <= 16 else 3 if width <= 64 else 1)
    steps += [limit] * NEWTON_AGAIN if max(map(len, sides)) > FIRST_FITTED else []
    for most in steps:
        slope, curvature = -weights, np.eye(len(weights))
        for label, rows in enumerate(sides):
            for start in range(0, min(len(rows), most), FIRST_FITTED):
                design = _design(rows[start : start + FIRST_FITTED], holes) if start else first[label]
                design = np.column_stack([(design - centre) / spread, np.ones(len(design))])
                chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
                slope += design.T @ (label - chance)
                curvature += (design * (chance * (1 - chance) + 1e-6)[:, None]).T @ design
        weights = weights + np.linalg.solve(curvature, slope)
    scaled = weights[:-1] / spread
    if np.isfinite(scaled).all():
        missing = np.zeros(width if len(holes) else 0)
        missing[holes] = scaled[width:]
        yield Linear(scaled[:width], float(weights[-1] - centre @ scaled), missing)


def _design(rows: Array, holes: NDArray[Any]) -> Array:
    """The coordinates; where some may be NaN, 0 for those and whether they are. Rows with infinities are left out."""
    if len(holes):
        unknown = np.isnan(rows)
        rows = np.column_stack([np.where(unknown, 0.0, rows), unknown[:, holes]])
    finite = np.isfinite(rows).all(axis=1)
    return rows if finite.all() else rows[finite]


def _fit_boosted(kind: str, seen: Sequence[Outputs], width: int) -> Iterator[Boosted]:
    """Boost tables over quantile bins of the features.

    Written here since it must be quick on a hundred runs, fine in the tails, and plain data in a file.
    """
    features = [FEATURES[kind](outputs, width) for outputs in seen]
    edges, codes = [], []
    for j in range(feature_count(kind, width)):
        column = np.concatenate([feature(j) for feature in features])
        finite = column[np.isfinite(column)]
        some = finite[:: 1 + len(finite) // QUANTILED]
        cuts = np.unique(np.quantile(some, QUANTILES, method="nearest")) if len(finite) else finite
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
    score, residual, bend = np.zeros(len(labels)), labels - 0.5, np.full(len(labels), 0.25)
    half = len(labels) // 2 if 2 * labels.sum() == len(labels) else 0
    noises: dict[tuple[int, ...], Array] = {}
    # Two features together have few runs in each cell: their bins are merged by threes, but for the one of NaN.
    coarse_bins = np.append(np.arange(BINS - 1) // 3 * 3, BINS - 1).astype(np.int32)
    tables: dict[tuple[int, ...], Array] = {}

    def cells(columns: tuple[int, ...]) -> NDArray[Any]:
        if len(columns) == 1:
            return codes[columns[0]]
        first, second = (coarse_bins[codes[j]] for j in columns)
        return first * BINS + second

    def step(columns: tuple[int, ...], where: NDArray[Any]) -> tuple[Array, float, float]:
        size = BINS ** len(columns)
        slope = np.bincount(where, residual, minlength=size)
        curve = np.bincount(where, bend, minlength=size)
        busy, noise = curve > 0, noises.get(columns)
        if noise is None:
            noise = noises[columns] = _apart(where, half, size)
        beyond = float((slope[busy] ** 2 / curve[busy] - noise[busy]).sum())  # chance alone gives 0 on average
        doubt = 1.5 * math.sqrt(2 * float((noise[busy] ** 2).sum()))
        variance = max(beyond / curve.sum(), 1e-6)  # of what the bins should say: little of it, small steps
        return 0.7 * slope / (curve + noise / variance), beyond, doubt

    def telling(proposed: Sequence[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
        steps = {columns: step(columns, cells(columns)) for columns in proposed}
        gains = {columns: beyond - doubt for columns, (_, beyond, doubt) in steps.items()}
        return [c for c in sorted(gains, key=lambda c: -gains[c]) if gains[c] > 0][:most]

    def boost(chosen: Sequence[tuple[int, ...]]) -> None:
        nonlocal score, residual, bend
        for columns in [*chosen] * PASSES:
            where = cells(columns)
            move, beyond, _ = step(columns, where)
            if beyond <= 0:
                continue  # the tables so far say all that this one could
            table = tables.setdefault(columns, np.zeros((BINS,) * len(columns)))
            score = score + move[where]
            chance = 1 / (1 + np.exp(-score))
            residual, bend = labels - chance, chance * (1 - chance)
            full = move.reshape(table.shape)
            table += full if len(columns) == 1 else full[np.ix_(coarse_bins, coarse_bins)]

    single = telling([(j,) for j in range(len(codes))], len(codes))
    boost(single)
    first = [0, 1] if len(codes) == 2 else [c[0] for c in single[:4]]
    boost(telling(list(combinations(sorted(first), 2)), 2))
    return tables


def _apart(where: NDArray[Any], half: int, size: int) -> Array:
    """What chance does to each cell's slope, as a share of what it does if all runs are independent.

    Of two runs with the same random numbers, one of each input, those in the same cell cancel: what is left are the
    runs whose counterpart is elsewhere. `half` of 0: nothing goes together.
    """
    if not half:
        return np.ones(size)
    moved = where[:half] != where[half:]
    apart = np.bincount(where[:half][moved], minlength=size) + np.bincount(where[half:][moved], minlength=size)
    return np.asarray((apart + 1) / (np.bincount(where, minlength=size) + 1))
