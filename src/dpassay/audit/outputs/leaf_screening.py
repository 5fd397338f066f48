"""Which leaves of outputs are worth a distinguisher: those, and pairs of those, that differ most between inputs.

Only training runs are used here, and only some of them. Whatever is chosen, the verdict is valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.doubles import exact
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.leaf_dict import written
from dpassay.audit.outputs.leaf_views import INDEX, View, columns
from dpassay.audit.outputs.leaves import ROOT
from dpassay.audit.outputs.outputs import Array, Outputs, part
from dpassay.values import dataclass

SCREENED, SCREENED_VECTORS = 512, 128  # outputs of each input examined; plain vectors must be fast
MOST_CELLS = 1 << 24  # numbers that are compared
MOST_COLUMNS = 2048  # numbers examined together
MOST_PAIRED, MOST_PAIRED_VALUES = 16, 32  # numbers, and categories, examined in pairs
FEW_VALUES = 32
BEST, BEST_PAIRS, MOST_ROWS = 3, 2, 4
MOST_JOINED = 512  # texts examined together
FEWEST_TIMES = 3  # that a path must occur to be examined
CLEARLY = 1.1  # a pair must be more informative than single leaves by this factor


@dataclass
class ScreenedLeaf:
    """What some outputs of each input contain: the paths of numbers, rows of numbers, categories, texts."""

    sides: list[Outputs]
    numbers: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)  # the longest at each path
    texts: list[str] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, list[list[str]]] = field(default_factory=dict)  # of each path, side by side

    def view(self, paths: Sequence[str]) -> View:
        """Numbers at some paths."""
        offsets = tuple(self.offsets.get(path, 0) for path in paths)
        return View("numbers", tuple(paths), offsets if any(offsets) else ())

    @cached_property
    def columns(self) -> list[str]:
        """All paths to a number, including entries of rows, as far as memory allows."""
        room = MOST_CELLS // (len(self.sides) * SCREENED)
        entries = [f"{path}[{j}]" for path, length in self.rows.items() for j in range(min(length, room))]
        return (self.numbers + entries)[:room]


def found_in(outputs: Sequence[Outputs]) -> ScreenedLeaf:
    """Look through the first outputs of each input."""
    found = ScreenedLeaf([part(side, 0, SCREENED) for side in outputs])
    leaves = [side.leaves for side in found.sides]
    times = Counter(chain.from_iterable(chain.from_iterable(leaves)))
    for path, often in times.items():
        if often < FEWEST_TIMES:
            continue  # such as a member of a set that is never the same
        columns = [[one.get(path, ...) for one in side] for side in leaves]
        types = {type(leaf) for column in columns for leaf in column} - {type(...)}
        _note(found, path, types, columns)
        if types - {str, bytes, type(None), np.ndarray}:
            found.numbers.append(path)
        if types & {str, bytes} and not path.startswith("type("):
            found.texts.append(path)
        if types != {np.ndarray} and types != {float}:
            found.tokens[path] = [["" if leaf is ... else written(leaf) for leaf in column] for column in columns]
    return found


def _note(found: ScreenedLeaf, path: str, types: set[type], columns: Sequence[Sequence[Any]]) -> None:
    """How long rows are at a path, and what to subtract from numbers that are too large for floats."""
    if np.ndarray in types:
        found.rows[path] = max(len(leaf) for leaf in chain(*columns) if isinstance(leaf, np.ndarray))
    for leaf in chain(*columns) if types - {str, float, np.ndarray, type(None), bytes} else ():
        whole = isinstance(leaf, int)
        if (whole and not exact(leaf)) or (not whole and hasattr(leaf, "denominator") and type(leaf) is not float):
            found.offsets[path] = leaf if whole else int(leaf)
            return


def distances(sides: Sequence[Array]) -> Array:
    """How far apart the two inputs are in each column: the largest gap between their distribution functions.

    NaN counts as larger than all numbers.
    """
    first, second = (np.where(np.isnan(rows), np.inf, rows) for rows in sides)
    both = np.concatenate([first, second])
    steps = np.repeat([1 / max(1, len(first)), -1 / max(1, len(second))], [len(first), len(second)])
    order = np.argsort(both, axis=0, kind="stable")
    gaps = np.abs(np.cumsum(steps[order], axis=0))
    ordered = np.take_along_axis(both, order, axis=0)
    ends = np.ones(ordered.shape, dtype=bool)
    ends[:-1] = ordered[1:] != ordered[:-1]
    return np.asarray(np.where(ends, gaps, 0.0).max(axis=0, initial=0.0))


def excess(tokens: Sequence[Sequence[Any]]) -> float:
    """How much more the inputs differ in their frequencies of some values than expected by chance."""
    counts = [Counter(side) for side in tokens]
    values = set().union(*counts)
    table = np.array([[count[value] for value in values] for count in counts], dtype=float)
    expected = table.sum(axis=0) * table.sum(axis=1)[:, None] / max(1.0, table.sum())
    degrees = (len(values) - 1) * (len(counts) - 1)
    return float(((table - expected) ** 2 / np.maximum(expected, 1e-9)).sum() - degrees - 2 * np.sqrt(2 * degrees))


def best_values(found: ScreenedLeaf) -> list[View]:
    """The leaves, and the pairs of leaves, whose values differ most in frequency."""
    limit = max(8, sum(map(len, found.sides)) // 4)
    scored: dict[tuple[str, ...], float] = {}
    for path, tokens in found.tokens.items():
        if 1 < len(set().union(*map(set, tokens))) <= limit:
            scored[(path,)] = excess(tokens)
    singles = sorted(scored, key=lambda paths: -scored[paths])
    pairs = _best_pairs(_codes(found), max([scored[paths] for paths in singles], default=0.0))
    return [View("values", paths) for paths in singles[:BEST] + pairs]


def best_texts(found: ScreenedLeaf) -> list[tuple[str, ...]]:
    """Paths to the texts whose words differ most, and all texts together."""
    scored = {}
    for path in found.texts:
        tokens = found.tokens[path]
        if len(set().union(*map(set, tokens))) > 1:
            words = [[word for token in side for word in set(token.split())] for side in tokens]
            scored[path] = max(excess(tokens), excess(words))
    best = sorted(scored, key=lambda path: -scored[path])
    together = [tuple(sorted(best[:MOST_JOINED], key=found.texts.index))] if len(best) > 1 else []
    return [(path,) for path in best[:BEST]] + together


def _codes(found: ScreenedLeaf) -> dict[str, list[NDArray[Any]]]:
    """Small integer codes for the values of leaves with few distinct values, and of entries of rows."""
    coded: dict[str, list[NDArray[Any]]] = {}
    for path, tokens in found.tokens.items():
        names = {name: i for i, name in enumerate(sorted(set().union(*map(set, tokens))))}
        if 1 < len(names) <= FEW_VALUES:
            coded[path] = [np.array([names[token] for token in side], dtype=np.int64) for side in tokens]
    for path, length in found.rows.items():
        paths = [f"{path}[{j}]" for j in range(min(length, MOST_PAIRED_VALUES))]
        coded |= codes_of_columns([columns(side, paths) for side in found.sides], paths)
    return coded


def codes_of_columns(sides: Sequence[Array], paths: Sequence[str]) -> dict[str, list[NDArray[Any]]]:
    """The same for columns of numbers."""
    coded = {}
    for j, path in enumerate(paths):
        values, codes = np.unique(np.concatenate([rows[:, j] for rows in sides]), return_inverse=True)
        if 1 < len(values) <= FEW_VALUES:
            coded[path] = np.split(codes, np.cumsum([len(rows) for rows in sides])[:-1])
    return coded


def _best_pairs(coded: dict[str, list[NDArray[Any]]], single: float) -> list[tuple[str, ...]]:
    """The pairs of leaves that are clearly more informative together than any single leaf."""
    scored: dict[tuple[str, ...], float] = {}
    for one, other in combinations(list(coded)[:MOST_PAIRED_VALUES], 2):
        both = [a * FEW_VALUES + b for a, b in zip(coded[one], coded[other], strict=True)]
        table = np.array([np.bincount(side, minlength=FEW_VALUES * FEW_VALUES) for side in both], dtype=float)
        table = table[:, table.any(axis=0)]
        expected = table.sum(axis=0) * table.sum(axis=1)[:, None] / table.sum()
        degrees = (table.shape[1] - 1) * (len(table) - 1)
        gain = float(((table - expected) ** 2 / expected).sum() - degrees - 2 * np.sqrt(2 * degrees))
        if gain > max(0.0, CLEARLY * single):
            scored[(one, other)] = gain
    return sorted(scored, key=lambda pair: -scored[pair])[:BEST_PAIRS]


def best_numbers(found: ScreenedLeaf, outputs: Sequence[Outputs]) -> tuple[list[str], list[View]]:
    """Paths to the numbers that differ most, best first, and differences and sums of two that differ clearly more."""
    if not found.columns:
        return [], []
    sides = [found.view(found.columns).of(part(side, 0, SCREENED)).matrix(len(found.columns)) for side in outputs]
    gaps = distances(sides)
    order = [int(j) for j in np.argsort(-gaps, kind="stable")]
    varied = [j for j in order if len({*sides[0][:, j], *sides[1][:, j]}) > 1]
    paired = sorted(varied[:MOST_PAIRED])
    views = _pair_views([rows[:, paired] for rows in sides], [found.columns[j] for j in paired], float(gaps.max()))
    return [found.columns[j] for j in varied], views


def _pair_views(sides: Sequence[Array], paths: Sequence[str], single: float) -> list[View]:
    if len(paths) < 2 or len(sides) != 2:
        return []
    pairs = list(combinations(range(len(paths)), 2))
    one, other = (list(places) for places in zip(*pairs, strict=True))
    scored: dict[View, float] = {}
    with np.errstate(invalid="ignore", over="ignore"):
        differences = distances([rows[:, one] - rows[:, other] for rows in sides])
        sums = distances([rows[:, one] + rows[:, other] for rows in sides])
    for k, (i, j) in enumerate(pairs):
        scored[View("difference", (paths[i], paths[j]))] = differences[k]
        scored[View("sum", (paths[i], paths[j]))] = sums[k]
    clear = [view for view in scored if scored[view] > CLEARLY * single + 1.5 / np.sqrt(min(map(len, sides)))]
    return sorted(clear, key=lambda view: -scored[view])[:BEST_PAIRS]


def positions(outputs: Sequence[Outputs], width: int) -> ScreenedLeaf:
    """The position of each of a few whole numbers in vectors of them."""
    found = found_in(outputs) if outputs[0].items else ScreenedLeaf([part(side, 0, 0) for side in outputs])
    if not outputs[0].items:
        some = distinct(np.concatenate([side.matrix(width)[:SCREENED] for side in outputs]))
        found.numbers = [f"{INDEX}{int(value)})" for value in some]
    found.rows.clear()
    return found


def views_of_vectors(outputs: Sequence[Outputs], width: int, looked_at: int) -> list[View]:
    """For plain vectors: pairs of coordinates, and for very long ones the coordinates that differ most."""
    paths = [f"{ROOT}[{j}]" for j in range(width)]
    if width < 2 or len(outputs) != 2:
        return []
    rows = min(SCREENED_VECTORS, MOST_CELLS // width)
    sides = [side.matrix(width)[:rows] for side in outputs]
    gaps = distances(sides) if width > looked_at else np.zeros(0)
    order = np.sort(np.argsort(-gaps, kind="stable")[:looked_at]).tolist()
    views = [View("numbers", tuple(paths[j] for j in order))] if width > looked_at else []
    if width > MOST_PAIRED:
        return views
    coded = codes_of_columns(sides, paths)
    single = max((excess([side.tolist() for side in codes]) for codes in coded.values()), default=0.0)
    views += [View("values", pair) for pair in _best_pairs(coded, single)] if width > 2 else []
    return views + _pair_views(sides, paths, float(distances(sides).max()))
