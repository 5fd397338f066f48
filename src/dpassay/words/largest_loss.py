"""An upper bound on the loss between any two words, fast enough to be computed for many values of ε.

`worst_pairs` finds the pair and both ends, for one ε. A rewriter needs only the upper end, at every ε that a search
tries. If scores are a metric, one formula gives it for all pairs (docs/proofs/vocabulary.md, points 2, 8 and 9), from
distances that are cached between calls. The error bounds are those of point 5.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpassay.compute.kernels.word_gaps import distance_error, distances
from dpassay.errors import InputError
from dpassay.values import dataclass
from dpassay.words.mechanisms import CusText, ScoredWords, WordMechanism, log_sum
from dpassay.words.variants import NearestWords, SanTextPlus, distance_rows, scaled
from dpassay.words.vocabulary import Array, Vocabulary
from dpassay.words.worst_pair import UNIT, Errors, WordRows, worst_pairs

BLOCK = 128
HELD = 1 << 26  # distances that are cached, half a gigabyte; for larger vocabularies they are computed each time


@dataclass(frozen=True)
class LargestLoss:
    """An upper bound on all losses between two words, and on the error of one computed loss."""

    upper: float
    error: float = 0.0

    def drawn(self, words: int) -> float:
        """The same for words drawn from computed probabilities: vocabulary.md, point 11."""
        return self.upper + self.error + 16 * (words + 4) * UNIT


@lru_cache(maxsize=256)
def largest_loss(mechanism: WordMechanism, uniform: tuple[int, ...] = (), outside: bool = True) -> LargestLoss:
    """The largest loss between two words; those of `uniform`, and words `outside`, become any word, drawn uniformly.

    >>> from dpassay.words.mechanisms import SanText
    >>> three = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [2.0]]))
    >>> round(largest_loss(SanText(three, 2)).upper, 9)
    2.0
    """
    if isinstance(mechanism, NearestWords):
        return _nearest(mechanism, uniform, outside)
    if isinstance(mechanism, SanTextPlus) and not mechanism.published:
        return _metric(mechanism.plain, uniform, outside, mechanism)
    if isinstance(mechanism, ScoredWords):
        plain = replace(mechanism, uniform=())
        if plain.is_metric:
            return _metric(plain, uniform, outside)
        found = worst_pairs(replace(plain, uniform=uniform), outside=outside)["loss"]
        return LargestLoss(found.upper, found.error)
    if isinstance(mechanism, CusText) and (words := len(mechanism.vocabulary)) <= mechanism.K:  # one group
        if words * words > HELD:
            return LargestLoss(mechanism.epsilon, 1e-9 * mechanism.epsilon)  # point 4, rounded generously
        return _nearest(NearestWords(mechanism.vocabulary, mechanism.epsilon, K=words), uniform, outside)
    if isinstance(mechanism, CusText | SanTextPlus):
        return LargestLoss(math.inf)
    raise InputError(f"the largest loss of {type(mechanism).__name__} is not known")


def _metric(
    mechanism: ScoredWords, uniform: tuple[int, ...], outside: bool, keeping: SanTextPlus | None = None
) -> LargestLoss:
    """Scores −r·m, and words that stay as they are: r·m(x,x′) + into(x) + out(x′), see point 8."""
    words = len(mechanism.vocabulary)
    apart = _distances_of(mechanism.vocabulary, mechanism.metric)

    def of_block(start: int) -> tuple[Array, Array]:
        scores = mechanism.scores(apart(start))
        return log_sum(scores), scores.min(axis=1)

    sums, lowest = (np.concatenate(part) for part in zip(*_blocks(of_block, words), strict=True))
    errors = Errors.of(mechanism, WordRows(sums, lowest, np.zeros(words)), mechanism.metric).loss
    into, out = -sums, sums
    if keeping is not None:
        p, some = keeping.p, np.arange(words) < keeping.kept
        into = np.where(some, np.log((1 - p) + p * np.exp(-sums)), into)
        out = np.where(some, out - math.log(p), out)
        errors += 64 * UNIT * (1 + float(np.abs(sums).max()) + abs(math.log(p)))
    treated = np.ones(words, dtype=bool)
    treated[list(uniform)] = False
    if not treated.any():
        return LargestLoss(0.0)
    best = 0.0
    if outside or uniform:
        best = max(
            float((into + math.log(words))[treated].max()), float((out - lowest - math.log(words))[treated].max())
        )
    into, out = np.where(treated, into, -np.inf), np.where(treated, out, -np.inf)
    return LargestLoss(_largest_pair(mechanism, apart, into, out, -lowest, best) + errors, errors)


def _largest_pair(
    mechanism: ScoredWords, apart: Callable[[int], Array], into: Array, out: Array, farthest: Array, best: float
) -> float:
    """The largest −s(x,x′) + into(x) + out(x′) over two different words, block by block from the highest bound down."""
    above = farthest + into + out.max()
    starts = np.arange(0, len(into), BLOCK)
    bounds = np.array([above[start : start + BLOCK].max() for start in starts])
    for block in np.argsort(-bounds):
        start = int(starts[block])
        if bounds[block] <= best:
            break
        losses = -mechanism.scores(apart(start)) + out[None, :] + into[start : start + BLOCK, None]
        losses[np.arange(len(losses)), np.arange(start, start + len(losses))] = -np.inf
        best = max(best, float(losses.max()))
    return best


def _nearest(mechanism: NearestWords, uniform: tuple[int, ...], outside: bool) -> LargestLoss:
    """ε/2 + the largest ln Z − the smallest, point 9; the same with a word that becomes any word."""
    words, rate = len(mechanism.vocabulary), mechanism.rate
    near, others = _nearest_scaled(mechanism.vocabulary, mechanism.K)
    sums = np.log(np.exp(-rate * near).sum(axis=1) + others * math.exp(-rate))
    relative, _ = distance_error(mechanism.vocabulary.dim, "l2")
    error = Errors.from_scores((2 * relative + 8 * UNIT) * rate, rate, words, mechanism.vocabulary.dim, "l2").loss
    sums = np.delete(sums, uniform)
    if not sums.size:
        return LargestLoss(0.0)
    low, high, every = float(sums.min()), float(sums.max()), math.log(words)
    losses = [rate + high - low, *((every - low, rate + high - every) if outside or uniform else ())]
    return LargestLoss(max(losses) + error, error)


@lru_cache(maxsize=2)
def _nearest_scaled(vocabulary: Vocabulary, near: int) -> tuple[Array, int]:
    """The scaled distances of the words nearest to each word, and how many words are beyond them."""
    near = min(near, len(vocabulary))

    def of_block(start: int) -> tuple[Array]:
        rows = distance_rows(vocabulary, range(start, min(start + BLOCK, len(vocabulary))), "l2")
        return (np.partition(scaled(rows, near), near - 1, axis=1)[:, :near],)

    return np.concatenate([part for (part,) in _blocks(of_block, len(vocabulary))]), len(vocabulary) - near


@lru_cache(maxsize=1)
def _distances_of(vocabulary: Vocabulary, metric: str) -> Callable[[int], Array]:
    """A function that returns the distances of a block of words from all words."""
    words = len(vocabulary)

    def computed(start: int) -> Array:
        return distance_rows(vocabulary, range(start, min(start + BLOCK, words)), metric)

    if words * words > HELD:
        return computed
    held = np.empty((words, words))

    def of_block(start: int) -> tuple[()]:
        held[start : start + BLOCK] = computed(start)
        return ()

    _blocks(of_block, words)
    return lambda start: held[start : start + BLOCK]


@lru_cache(maxsize=8)
def diameter(vocabulary: Vocabulary) -> float:
    """An upper bound on the largest l2 distance between two vectors, too large by less than a relative 1e-12.

    Two words are at most as far apart as the sum of their distances from the mean of all words. So words far from the
    mean are examined first, and most pairs never.

    >>> diameter(Vocabulary(("a", "b", "c"), np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]))) - 5 < 1e-12
    True
    """
    vectors, best = vocabulary.vectors, 0.0
    radius = np.sqrt(((vectors - vectors.mean(axis=0)) ** 2).sum(axis=1)) * (1 + 1e-9)
    order = np.argsort(-radius, kind="stable")
    for start in range(0, len(order), BLOCK):
        rows = order[start : start + BLOCK]
        if 2 * radius[rows[0]] <= best:
            break
        reached = order[start:][radius[rows[0]] + radius[order[start:]] > best]
        best = max(best, float(distances(vectors[rows], vectors[reached], "l2").max(initial=0.0)))
    relative, absolute = distance_error(vocabulary.dim, "l2")
    return (best * (1 + relative) + absolute) * (1 + 4 * UNIT)


def _blocks(work: Callable[[int], Any], words: int) -> list[Any]:
    """The results of a function for each block of words, on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, range(0, words, BLOCK)))
