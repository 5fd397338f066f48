"""The effective number of runs when two inputs are run with the same random numbers, for training."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.outputs import Array

MOST_EFFICIENT = 100.0  # independent runs that a run counts as, at most


def efficiency_of(right: NDArray[Any], wrong: NDArray[Any], scores: Sequence[Array], cuts: Array) -> Array | float:
    """How many independent runs one run is worth under each pair of thresholds, for the variance of the log-odds.

    Runs of the two inputs with the same random numbers are paired one by one, if there are equally many. When both give
    the same guess, chance moves correct and wrong guesses together, and hardly changes their ratio.
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
    return np.asarray(alone / np.maximum(together, alone / MOST_EFFICIENT))


def _place(scores: Array, cuts: Array) -> NDArray[Any]:
    """Twice the number of cuts below each score, and one more if it is on a cut."""
    below = np.searchsorted(cuts, scores, "left")
    return np.asarray(2 * below + (np.append(cuts, np.nan)[below] == scores))
