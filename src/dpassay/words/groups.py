"""The worst pair of words when words are replaced within groups."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpassay.compute.kernels.word_gaps import distance_error, distances
from dpassay.words.mechanisms import CusText, log_sum
from dpassay.words.worst_pair import AIMS, OUTSIDE, UNIT, Errors, Extreme, extreme_of


def worst_in_groups(mechanism: CusText, metric: str, epsilon: float, outside: bool = False) -> dict[str, Extreme]:
    """Like `worst_pairs`; between words of two groups every loss is infinite, and `within` is the largest in a group.

    >>> from dpassay.words.vocabulary import Vocabulary
    >>> found = worst_in_groups(CusText(Vocabulary(tuple("abcd"), np.arange(4.0)[:, None]), 1, K=2), "l2", 1)
    >>> found["loss"].lower, round(found["within"].lower, 6)
    (inf, 0.5)
    """
    relative, _ = distance_error(mechanism.vocabulary.dim, "l2")
    score = (2 * relative + 8 * UNIT) * mechanism.rate
    errors = Errors.from_scores(score, mechanism.rate, mechanism.K, mechanism.vocabulary.dim, metric)
    best: dict[str, Extreme] = {}
    for group in mechanism.groups:
        scores = mechanism.group_scores(group)
        logs = scores - log_sum(scores)[:, None]
        losses = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
        vectors = mechanism.vocabulary.vectors[group]
        apart = distances(vectors, vectors, metric)
        same = (vectors[:, None, :] == vectors[None, :, :]).all(axis=2)
        for aim in AIMS:
            found = extreme_of(aim, losses, apart, errors, epsilon, same)
            if found is None:
                continue
            lower, upper, a, b = found
            known = best.get(aim)
            if known is None or lower > known.lower:
                places = (int(group[a]), int(group[b]), int(group[np.argmax(logs[a] - logs[b])]))
                upper = max(upper, known.upper if known else upper)
                best[aim] = Extreme(lower, upper, *places, float(losses[a, b]), float(apart[a, b]), errors.loss)
            elif upper > known.upper:
                best[aim] = Extreme(known.lower, upper, *_rest(known))
    for aim in AIMS:  # all words of each group have the same vector
        best.setdefault(aim, Extreme(0.0, 0.0, 0, 1, 0, 0.0, 0.0, errors.loss))
    if len(mechanism.groups) == 1:
        return {**best, "loss": _with_outside(mechanism, errors, best["loss"])} if outside else best
    first, second = (int(group[0]) for group in mechanism.groups[:2])
    vectors = mechanism.vocabulary.vectors
    between = float(distances(vectors[[first]], vectors[[second]], metric)[0, 0])
    infinite = Extreme(math.inf, math.inf, first, second, first, math.inf, between, errors.loss)
    return {**dict.fromkeys(AIMS, infinite), "within": best["loss"]}


def _with_outside(mechanism: CusText, errors: Errors, known: Extreme) -> Extreme:
    """The largest loss if a word may also be replaced by any of the one group: docs/proofs/vocabulary.md, point 7."""
    (group,) = mechanism.groups
    scores = mechanism.group_scores(group)
    shares = scores - log_sum(scores)[:, None] + math.log(len(group))  # ln of the probability, times all words
    upper = max(known.upper, float(abs(shares).max()) + errors.loss)
    for losses, order in ((shares, 1), (-shares, -1)):
        a, b = (int(n) for n in np.unravel_index(np.argmax(losses), losses.shape))
        loss = float(losses[a, b])
        if loss - errors.loss > known.lower:
            x, y = (int(group[a]), OUTSIDE)[::order]
            known = Extreme(loss - errors.loss, upper, x, y, int(group[b]), loss, math.nan, errors.loss)
    return replace(known, upper=upper)


def _rest(known: Extreme) -> tuple[int, int, int, float, float, float]:
    return known.x, known.y, known.output, known.loss, known.distance, known.error
