"""The highest lower bound that a number of runs of a classic algorithm can be expected to give.

All runs are played, on the best of the pairs that an audit tries, with the best event known beforehand, and counts come
out as expected. So nothing is left for searching and learning: an audit gets less on average, and more by luck only.
"""

from __future__ import annotations

import math

import numpy as np
from classics import Classic, Laplace, NoisyMax, SparseVector
from scipy.stats import norm

from dpassay.audit.inputs.region_pairs import region_pairs
from dpassay.audit.testing.inference import accuracy_bound
from dpassay.pipeline.regions import SensitivityBall

CANDIDATES = 64  # rules for which the exact bound is computed


def limit(classic: Classic, runs: int, alpha: float) -> float | None:
    """The limit where all outcomes, or the best events, have probabilities that can be computed; else None."""
    match classic.mechanism:
        case Laplace(scale) if classic.dim == 1:  # at most 0, at least 1, or between, where the ratio is smaller
            tail = math.exp(-1 / scale) / 2
            return best_bound(np.array([0.5, 0.5 - tail, tail]), np.array([tail, 0.5 - tail, 0.5]), runs, alpha)
        case NoisyMax("laplace", scale, "value"):  # the largest of five at most t, for five times 0 and five times 1
            p, q = (laplace_cdf(np.linspace(-10, 10, 401) - x, scale) ** classic.dim for x in (0, 1))
            return max(best_bound(np.array([a, 1 - a]), np.array([b, 1 - b]), runs, alpha) for a, b in zip(p, q))  # noqa: B905
        case SparseVector(stop=1, gives="mark") as mechanism:
            pairs = region_pairs(SensitivityBall(math.inf, 1, classic.dim))
            return max(best_bound(*(first_top(mechanism, x) for x in pair), runs, alpha) for pair in pairs)
        case SparseVector(stop=2, refresh=True, gives="fresh") as mechanism:
            pairs = region_pairs(SensitivityBall(math.inf, 1, classic.dim))
            return max(best_bound(*two_tops(mechanism, *pair), runs, alpha) for pair in pairs)
    return None


def best_bound(p: np.ndarray, q: np.ndarray, runs: int, alpha: float) -> float:
    """The best rule names the one input on its most telling outcomes, the other on the other's, and abstains between.

    Where the expected counts are no whole numbers they are rounded in its favour.
    """
    order = np.argsort(np.log(p) - np.log(q))
    low = [
        np.concatenate([[0.0], np.cumsum(distribution[order])]) for distribution in (p, q)
    ]  # the second input is named up to here
    high = [
        np.concatenate([[0.0], np.cumsum(distribution[order[::-1]])]) for distribution in (p, q)
    ]  # the first one so far from the top
    right = runs / 2 * (low[1][:, None] + high[0])
    wrong = runs / 2 * (low[0][:, None] + high[1])
    i, j = np.indices(right.shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # by normal approximation, to leave few for the exact bound
        about = np.log(right / wrong) - norm.isf(alpha) * np.sqrt(1 / right + 1 / wrong)
    about = np.where((i + j <= len(order)) & (wrong > 0), about, -np.inf).ravel()
    best = np.argsort(-about)[:CANDIDATES]
    counts = [(math.ceil(right.ravel()[k]), int(wrong.ravel()[k])) for k in best]
    return max(0.0, *(accuracy_bound(*some, alpha) for some in counts))


def laplace_cdf(t: np.ndarray, scale: float) -> np.ndarray:
    """Laplace noise's distribution function."""
    tail = np.exp(-np.abs(t) / scale) / 2
    return np.where(t < 0, tail, 1 - tail)


def two_tops(mechanism: SparseVector, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities, for both inputs, of all outcomes of a sparse vector that stops at the second ⊤.

    An outcome is where ⊤ stands, and for each whether its value is below both inputs' queries, between them, or above:
    in each of the two outer parts the ratio of the densities is the same everywhere. Between them it is taken as the
    ratio of the probabilities; so little lies there that no figure depends on it. Threshold noise is fresh after the
    first ⊤, so the second is the first one of what is left of the input.
    """
    sides = []
    for own in (x, y):
        value = [np.diff([0.0, *laplace_cdf(np.sort([a, b]) - c, mechanism.release_scale), 1.0])
                 for a, b, c in zip(x, y, own, strict=True)]  # fmt: skip
        *first, none = first_top(mechanism, own)
        outcomes = [np.array([none])]
        for i, chance in enumerate(first):
            *second, alone = first_top(mechanism, own[i + 1 :])
            outcomes.append(chance * alone * value[i])
            outcomes += [
                chance * p * np.outer(value[i], v).ravel() for p, v in zip(second, value[i + 1 :], strict=True)
            ]
        sides.append(np.concatenate(outcomes))
    possible = (sides[0] > 0) & (sides[1] > 0)  # between two queries that are the same is nothing
    return sides[0][possible], sides[1][possible]


def first_top(mechanism: SparseVector, x: np.ndarray) -> np.ndarray:
    """The probabilities that the first query above is the first, the second, …, and that none is."""
    noise = np.linspace(-800, 800, 32_001)
    going = np.exp(-np.abs(noise) / mechanism.threshold_scale) / (2 * mechanism.threshold_scale) * (noise[1] - noise[0])
    found = []
    for query in x:
        bottom = laplace_cdf(mechanism.threshold + noise - query, mechanism.query_scale)
        found.append(float((going * (1 - bottom)).sum()))
        going = going * bottom
    return np.array([*found, float(going.sum())])
