"""The worst pair of words: the largest loss over all pairs and all outputs, absolute and per unit of distance.

The words are cut into blocks. For each pair of blocks an upper bound on its losses is computed quickly, in single
precision where the inner loop is long; then the blocks that may hold the maximum are computed again in doubles. The
result is an interval: docs/proofs/vocabulary.md, points 5 and 6, has the error bounds. Only numpy is needed, and
torch and Triton for a GPU.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.devices import has_numba, usable
from dpassay.compute.kernels.word_gaps import distance_error
from dpassay.errors import InputError
from dpassay.values import dataclass
from dpassay.words.mechanisms import ScoredWords, log_sum
from dpassay.words.vocabulary import Array

UNIT, SINGLE = 2.0**-53, 2.0**-24
BLOCK = 128  # words whose losses are bounded at a time
HELD = 1 << 27  # distances kept in memory; others are computed again when needed
AIMS = ("loss", "ratio", "excess")
OUTSIDE = -1  # the place of any word outside the vocabulary


@dataclass(frozen=True)
class Extreme:
    """An interval that contains the requested maximum, and where its lower end is attained.

    `x`, `y` and `output` are the places of words, −1 for any word outside the vocabulary: the loss is
    ln P(output|x) − ln P(output|y), known up to `error`.
    """

    lower: float
    upper: float
    x: int
    y: int
    output: int
    loss: float
    distance: float
    error: float


@dataclass(frozen=True)
class WordRows:
    """A summary of each word's row of scores: ln Σ e^score, and the lowest and highest score."""

    log_sums: Array
    lowest: Array
    highest: Array

    @property
    def spread(self) -> float:
        """The largest absolute score."""
        return float(max(abs(self.lowest).max(), abs(self.highest).max()))


class Search(Protocol):
    """Where the work is done: `_Blocks` below on a CPU, `gpu_search.Blocks` on a GPU."""

    rows: WordRows
    laws: NDArray[np.int32]

    def bounds(self) -> NDArray[Any]:
        """Upper bounds for each pair of blocks: [aim, block of x, block of y]."""

    def exactly(self, i: int, j: int) -> tuple[Array, Array]:
        """The losses of two blocks, x down and y across, in doubles, and the distances."""

    def output(self, x: int, y: int) -> int:
        """The output at which the loss of a pair is largest."""

    def extreme(self, x: int, sign: int) -> int:
        """The likeliest output of a word, or the unlikeliest if the sign is −1."""


@dataclass(frozen=True)
class Errors:
    """Error bounds on computed numbers: of a loss, and of a distance, relative and absolute."""

    loss: float
    relative: float
    absolute: float

    @classmethod
    def of(cls, mechanism: ScoredWords, rows: WordRows, metric: str) -> Errors:
        """For a mechanism whose scores are a function of distances."""
        relative, absolute = distance_error(mechanism.vocabulary.dim, mechanism.metric)
        score = mechanism.relative_error(relative) * rows.spread + mechanism.rate * absolute
        return cls.from_scores(score, rows.spread, len(mechanism.vocabulary), mechanism.vocabulary.dim, metric)

    @classmethod
    def from_scores(cls, score: float, spread: float, outputs: int, dim: int, metric: str) -> Errors:
        """From the error and the size of scores: docs/proofs/vocabulary.md, point 5."""
        sums = score + (outputs + 4 * spread + 64) * UNIT
        loss = 1.01 * (2 * score + 2 * sums + 16 * (spread + math.log(outputs) + 1) * UNIT)
        return cls(loss, *distance_error(dim, metric))

    def above(self, aim: str, loss: Any, apart: Any, epsilon: float, more: float = 0.0) -> Any:
        """Upper bounds of an aim, for arrays or GPU tensors; meaningless if two words have the same vector."""
        high = loss + (self.loss + more)
        nearest = (apart * (1 - self.relative) - self.absolute).clip(0, None)
        with np.errstate(divide="ignore", invalid="ignore"):
            if aim == "ratio":
                return high / nearest * (1 + 8 * UNIT)
        return high if aim == "loss" else high - (epsilon * nearest) * (1 - 8 * UNIT)

    def below(self, aim: str, loss: Array, apart: Array, epsilon: float) -> Array:
        """Lower bounds of an aim; 0 where a loss may be 0, since the largest loss is never negative."""
        low = np.maximum(loss - self.loss, 0)
        farthest = apart * (1 + self.relative) + self.absolute
        if aim == "ratio":
            return low / farthest * (1 - 8 * UNIT)
        return low if aim == "loss" else low - (epsilon * farthest) * (1 + 8 * UNIT)


def worst_pairs(
    mechanism: ScoredWords,
    metric: str = "l2",
    epsilon: float | None = None,
    device: str = "cpu",
    every: bool = False,
    outside: bool = False,
) -> dict[str, Extreme]:
    """The largest loss, the largest loss per unit of a distance, and the largest excess of a loss over ε·d.

    With `outside` there is one more input, a word that is replaced by any word, drawn uniformly. It has no vector and
    counts only for the absolute loss.

    If scores are a metric, the loss of a pair is largest at one of the two words, and all other outputs are skipped;
    with `every` they are examined anyway.

    >>> from dpassay.words.mechanisms import SanText
    >>> from dpassay.words.vocabulary import Vocabulary
    >>> three = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [2.0]]))
    >>> found = worst_pairs(SanText(three, 2))
    >>> found["loss"].x, found["loss"].y, round(found["loss"].lower, 6), found["ratio"].upper < 2
    (0, 2, 2.0, True)
    """
    claimed = mechanism.epsilon if epsilon is None else epsilon
    short = mechanism.is_metric and not every
    search: Search
    if usable(device)[0] == "cuda":
        search = import_module("dpassay.words.gpu_search").Blocks(mechanism, metric, claimed, short)
    else:
        search = _Blocks(mechanism, metric, claimed, short, device)
    if not search.rows.spread < 1e30:
        raise InputError("distances times epsilon are beyond 1e30: single precision cannot hold such scores")
    errors = Errors.of(mechanism, search.rows, metric)
    bounds = search.bounds()
    found = {aim: _largest(search, errors, aim, bounds[n], claimed) for n, aim in enumerate(AIMS)}
    if outside:
        found["loss"] = _with_outside(search, errors, found["loss"])
    return found


def _with_outside(search: Search, errors: Errors, known: Extreme) -> Extreme:
    """The largest loss if a word may also be replaced by any word, drawn uniformly: vocabulary.md, point 7."""
    rows = search.rows
    sums, all_words = rows.log_sums, math.log(len(rows.log_sums))
    into, away = rows.highest - sums + all_words, sums - rows.lowest - all_words
    upper = max(known.upper, float(max(into.max(), away.max())) + errors.loss)
    for losses, order in ((into, 1), (away, -1)):
        place = int(np.argmax(losses))
        loss = float(losses[place])
        if loss - errors.loss > known.lower:
            x, y = (place, OUTSIDE)[::order]
            known = Extreme(loss - errors.loss, upper, x, y, search.extreme(place, order), loss, math.nan, errors.loss)
    return replace(known, upper=upper)


def _largest(search: Search, errors: Errors, aim: str, bounds: NDArray[Any], epsilon: float) -> Extreme:
    """Go through the pairs of blocks from the highest bound down, until no remaining one can be higher."""
    best, upper, found = -math.inf, -math.inf, (0, 1, 0.0, 0.0)
    order = np.argsort(-bounds, axis=None, kind="stable")
    for place in order:
        i, j = (int(n) for n in np.unravel_index(place, bounds.shape))
        if bounds[i, j] <= upper:
            break
        losses, apart = search.exactly(i, j)
        inside = extreme_of(aim, losses, apart, errors, epsilon, same_law(search.laws, i, j))
        if inside is None:
            continue
        low, high, a, b = inside
        upper = max(upper, high)
        if low > best:
            best, found = low, (i * BLOCK + a, j * BLOCK + b, float(losses[a, b]), float(apart[a, b]))
    if best == -math.inf:  # all words have the same vector
        return Extreme(0.0, 0.0, 0, 1, 0, 0.0, 0.0, errors.loss)
    x, y, loss, distance = found
    return Extreme(best, upper, x, y, search.output(x, y), loss, distance, errors.loss)


def extreme_of(
    aim: str, losses: Array, apart: Array, errors: Errors, epsilon: float, same: NDArray[np.bool_]
) -> tuple[float, float, int, int] | None:
    """The largest lower and upper bound of an aim in a block, and where the lower one is; None if no pair counts.

    Pairs with the `same` law lose nothing. Other pairs with the same vector lose infinitely much per unit of distance.
    """
    if same.all():
        return None
    low = np.where(same, -np.inf, errors.below(aim, losses, apart, epsilon))
    high = np.where(same, -np.inf, errors.above(aim, losses, apart, epsilon))
    a, b = (int(n) for n in np.unravel_index(np.argmax(low), low.shape))
    return float(low[a, b]), float(high.max()), a, b


def laws_of(mechanism: ScoredWords) -> NDArray[np.int32]:
    """A number for each word: words with the same number have the same law, because they have the same vector.

    >>> from dpassay.words.mechanisms import SanText
    >>> from dpassay.words.vocabulary import Vocabulary
    >>> laws_of(SanText(Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [-0.0]])), 1)).tolist()
    [0, 1, 0]
    """
    seen: dict[tuple[bytes, bool], int] = {}
    vectors, uniform = mechanism.vocabulary.vectors + 0.0, set(mechanism.uniform)  # turns −0 into 0
    names = ((row.tobytes(), n in uniform) for n, row in enumerate(vectors))
    return np.array([seen.setdefault(name, len(seen)) for name in names], dtype=np.int32)


def same_law(laws: NDArray[np.int32], i: int, j: int) -> NDArray[np.bool_]:
    """Which pairs of two blocks have the same law, a word with itself among them."""
    first, second = (laws[n * BLOCK : (n + 1) * BLOCK] for n in (i, j))
    return np.equal.outer(first, second)


class _Blocks:
    """The search on a CPU, by numba where it is installed."""

    def __init__(self, mechanism: ScoredWords, metric: str, epsilon: float, short: bool, device: str) -> None:
        self.mechanism, self.metric, self.epsilon, self.short = mechanism, metric, epsilon, short
        fast = device != "numpy" and has_numba()
        self.kernels = import_module(f"dpassay.compute.kernels.{'numba_' * fast}word_gaps")
        self.vectors = mechanism.vocabulary.vectors
        self.words = len(self.vectors)
        self.laws = laws_of(mechanism)
        self.count = -(-self.words // BLOCK)
        self.held: Array | None = np.empty((self.words, self.words)) if self.words**2 <= HELD else None
        self.single = None if short else np.empty((self.words, self.words), np.float32)
        parts = list(_threaded(self._prepare, range(self.count)))
        self.rows = WordRows(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        self.errors = Errors.of(mechanism, self.rows, metric)

    def _block(self, i: int) -> slice:
        return slice(i * BLOCK, min((i + 1) * BLOCK, self.words))

    def _prepare(self, i: int) -> tuple[Array, Array, Array]:
        block = self._block(i)
        apart = self.kernels.distances(self.vectors[block], self.vectors, self.mechanism.metric)
        if self.held is not None:
            self.held[block] = apart
        scores = self.mechanism.row_scores(apart, block.start)
        if self.single is not None:
            with np.errstate(over="ignore"):  # scores that single precision cannot hold are refused
                self.single[block] = scores
        return log_sum(scores), scores.min(axis=1), scores.max(axis=1)

    def _apart(self, i: slice, j: slice, metric: str) -> Array:
        if self.held is not None and metric == self.mechanism.metric:
            return self.held[i, j]
        found: Array = self.kernels.distances(self.vectors[i], self.vectors[j], metric)
        return found

    def _scores(self, i: slice) -> Array:
        everything = slice(0, self.words)
        found: Array = self.mechanism.row_scores(self._apart(i, everything, self.mechanism.metric), i.start)
        return found

    def _gaps(self, i: slice, j: slice, exact: bool) -> tuple[Array, Array]:
        """The largest and the smallest difference between the scores of x and y, over all outputs."""
        if self.short:  # at the outputs x and y: docs/proofs/vocabulary.md, point 2
            gap = -self.mechanism.scores(self._apart(i, j, self.mechanism.metric))
            return gap, -gap
        if exact or self.single is None:
            high, low = self.kernels.gaps(self._scores(i), self._scores(j))
        else:
            high, low = self.kernels.gaps(self.single[i], self.single[j])
        return high.astype(np.float64), low.astype(np.float64)

    def bounds(self) -> NDArray[Any]:
        found = np.full((len(AIMS), self.count, self.count), -np.inf)
        # Rounding to single precision and the difference of two such numbers: docs/proofs/vocabulary.md, point 6.
        more = 0.0 if self.short else 4.1 * SINGLE * self.rows.spread + 1e-37

        def one(pair: tuple[int, int]) -> None:
            i, j = (self._block(n) for n in pair)
            high, low = self._gaps(i, j, exact=False)
            turn = self.rows.log_sums[None, j] - self.rows.log_sums[i, None]
            apart = self._apart(i, j, self.metric)
            for there, loss in ((pair, high + turn), (pair[::-1], -low - turn)):
                for n, aim in enumerate(AIMS):
                    above = self.errors.above(aim, loss, apart, self.epsilon, more)
                    above = np.where(same_law(self.laws, *pair), -np.inf, above)
                    found[(n, *there)] = max(found[(n, *there)], above.max())

        list(_threaded(one, [(i, j) for i in range(self.count) for j in range(i, self.count)]))
        return found

    def exactly(self, i: int, j: int) -> tuple[Array, Array]:
        first, second = self._block(i), self._block(j)
        high, _ = self._gaps(first, second, exact=True)
        sums = self.rows.log_sums
        return high + (sums[None, second] - sums[first, None]), self._apart(first, second, self.metric)

    def output(self, x: int, y: int) -> int:
        if self.short:
            return x
        return int(np.argmax(self._scores(slice(x, x + 1))[0] - self._scores(slice(y, y + 1))[0]))

    def extreme(self, x: int, sign: int) -> int:
        return int(np.argmax(sign * self._scores(slice(x, x + 1))[0]))


def _threaded(work: Callable[[Any], Any], parts: Any) -> Iterator[Any]:
    """Results in order; kernels and numpy allow several threads to run at the same time."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(work, parts)
