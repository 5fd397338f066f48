"""The one place where a statistical test gets its p-value, its seed and its false-alarm probability.

Every statistical test has a line in `FALSE_ALARMS`: the largest probability with which it may fail
although the code is right. The p-values below are valid at every sample size (exact binomial tails
and the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant), so the stated probabilities
are upper bounds, not approximations, of a long test's reduced form as of its full one. tests/README.md
gives their sum.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np
from scipy.stats import binom, hypergeom

EACH = 1e-7
FALSE_ALARMS: dict[str, float] = {
    "canaries": EACH,
    "right training with canaries": EACH,
    "canaries: run by run": EACH,
    "canaries told all at once": EACH,
    "dependent rows: one_draw": EACH,
    "dependent rows: by_fours": EACH,
    "dependent rows: large_batches_only": EACH,
    "laplace draws": EACH,
    "gaussian draws": EACH,
    "one-sided draws": EACH,
    "discrete laplace draws": EACH,
    "bounded laplace draws": EACH,
    "truncated laplace draws": EACH,
    "staircase draws": EACH,
    "discrete gaussian draws": EACH,
    "radial lengths": EACH,
    "radial directions": EACH,
    "mahalanobis noise": EACH,
    "von Mises-Fisher cosines": EACH,
    "Purkayastha angles": EACH,
    "random directions": EACH,
    "mixture draws": EACH,
    "mixture atom": EACH,
    "lost values": EACH,
    "one-sided noise that may be lost": EACH,
    "leaked rows": EACH,
    "repeated noise": EACH,
    "hashed categories": EACH,
    "flipped bloom filter": EACH,
    "shifted coordinates": EACH,
    "shifted independence": EACH,
    "bit distribution": EACH,
    "bit distribution independence": EACH,
    "pmf": EACH,
    "bit noise": EACH,
    "flipped bits": EACH,
    "flipped category": EACH,
    "flipped category of two": EACH,
    "exponential choice": EACH,
    "softmax draws": EACH,
    "top-k draws": EACH,
    "noisy max draws": EACH,
    "tokens one after the other": EACH,
    "dropout": EACH,
    "pipeline laplace": EACH,
    "pipeline bits": EACH,
    "pipeline categories": EACH,
    "pipeline exponential": EACH,
    "loss of laplace": EACH,
    "loss of bits": EACH,
    "coins of two": EACH,
    "coins of three": EACH,
    "right samplers": EACH,
    "right guesses": EACH,
    "positive draws": EACH,
    "coins against the distribution": EACH,
    "classic laplace": EACH,
    "classic histograms": EACH,
    "classic geometric": EACH,
    "classic noisy max index": EACH,
    "classic noisy max value": EACH,
    "classic sparse vector outcomes": EACH,
    "classic sparse vector 2 refreshed": EACH,
    "classic sparse vector 3 values": EACH,
    "classic sparse vector 5": EACH,
    "classic sparse vector 6": EACH,
    "classic numerical sparse vector": EACH,
    "classic rappor": EACH,
    "classic one-time rappor": EACH,
    "classic prefix sum": EACH,
    "classic twenty answers": EACH,
    "audits of right mechanisms": EACH,
    "audits of right kinds": EACH,
    "audits of leaves that do not leak": EACH,
    "audits of right classics": EACH,
    "claims by their samples": EACH,
    "samplers of claims": EACH,
    "released laplace": EACH,
    "released gaussian": EACH,
    "rewriter noise for audits": EACH,
    "k-norm noise of a rewriter": EACH,
    "von mises-fisher noise of a rewriter": EACH,
    "words of laplace": EACH,
    "words of gaussian": EACH,
    "words of exponential": EACH,
    "words of a mixture": EACH,
    "words of neighbors": EACH,
    "votes by kernels": EACH,
    "guesses by kernels, the first input": EACH,
    "guesses by kernels, the second input": EACH,
    "guesses from many coordinates": EACH,
    "pairs by numpy's generator": EACH,
    "normal pairs by their curve": EACH,
    "audits of right rewriters": EACH,
    "santext draws": EACH,
    "tem draws": EACH,
    "tem draws of a package": EACH,
    "custext draws": EACH,
    "words replaced uniformly": EACH,
    "uniform numbers of all sizes": EACH,
    "rewritten words": EACH,
    "words rewritten by madlib": EACH,
    "training noise, user": EACH,
    "training noise, user and entity": EACH,
    "training noise, example": EACH,
    "training noise of a key": EACH,
    "training noise of opendp": EACH,
    "training units by numpy": EACH,
    "training units by a key": EACH,
    "inferred attributes": EACH,
    "attributes one by one": EACH,
    "inverted vectors of dptext": EACH,
    "inverted vectors of dpnr": EACH,
    "inverted gaussian vectors": EACH,
    "membership of nobody": EACH,
    "membership by equal scores": EACH,
}
TOTAL = sum(FALSE_ALARMS.values())


def generator(name: str) -> np.random.Generator:
    """The random generator of a test: seeded by its name, so that nobody can choose a seed."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def require(name: str, p_value: float) -> None:
    """Fail if the p-value is at most the false-alarm probability that the test has in the list."""
    assert p_value > FALSE_ALARMS[name], f"{name}: p = {p_value:.3g} where {FALSE_ALARMS[name]:g} may happen by chance"


def frequency_p_value(successes: int, runs: int, probability: float) -> float:
    """Two-sided exact binomial p-value: twice the smaller tail."""
    tails = binom.cdf(successes, runs, probability), binom.sf(successes - 1, runs, probability)
    return min(1.0, 2 * float(min(tails)))


def counts_p_value(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """p-value of a table of counts: the smallest cell's exact binomial one, times the number of cells."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities, dtype=float)
    assert counts.shape == probabilities.shape
    assert math.isclose(float(probabilities.sum()), 1.0, rel_tol=1e-12)
    runs = int(counts.sum())
    cells = zip(counts.ravel().tolist(), probabilities.ravel().tolist(), strict=True)
    return min(1.0, counts.size * min(frequency_p_value(int(c), runs, p) for c, p in cells))


def frequencies_p_value(successes: np.ndarray, runs: int, probabilities: np.ndarray) -> float:
    """p-value of several frequencies, each of as many runs: the smallest one times their number."""
    pairs = list(zip(np.ravel(successes).tolist(), np.ravel(probabilities).tolist(), strict=True))
    return min(1.0, len(pairs) * min(frequency_p_value(int(c), runs, p) for c, p in pairs))


def same_frequency_p_value(first: int, second: int, runs: int) -> float:
    """p-value of two frequencies, each of as many runs, being of one probability: Fisher's exact test, both tails."""
    split = hypergeom(2 * runs, first + second, runs)
    return min(1.0, 2 * float(min(split.cdf(first), split.sf(first - 1))))


def cdf_p_value(sample: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray], before: Callable | None = None) -> float:
    """p-value of a sample against its distribution function: P(sup|F_n − F| > d) ≤ 2e^(−2nd²).

    `before` gives P(X < t), where it differs from P(X ≤ t): at atoms.
    """
    values, last = np.unique(sample, return_counts=True)
    upto = np.cumsum(last) / sample.size
    earlier = np.concatenate([[0.0], upto[:-1]])
    at, left = cdf(values), (before or cdf)(values)
    gap = max(float(np.abs(upto - at).max()), float(np.abs(earlier - left).max()))
    return min(1.0, 2 * math.exp(-2 * sample.size * gap * gap))
