"""Two more mechanisms that replace a word by a word from a vocabulary, and rows of log-weights for all of them.

    SanTextPlus    words that are not sensitive stay as they are with probability 1 − p; all else is SanText
    NearestWords   CusText, corrected: the K nearest words by their distance, scaled to [0, 1], and every other word
                   like the farthest of them

As published, SanText+ draws only sensitive words, so a kept word reveals that it was kept; and CusText never leaves the
word's own group. Neither therefore has a finite ε between any two words. Here every word can be the output for every
word. docs/proofs/vocabulary.md, points 8 and 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.devices import has_numba
from dpassay.errors import InputError
from dpassay.values import dataclass
from dpassay.words.mechanisms import SanText, ScoredWords, WordMechanism, log_sum
from dpassay.words.vocabulary import Array, Vocabulary

ANY_WORD = -1  # stands for a word that is replaced by any word, drawn uniformly


@dataclass(frozen=True, eq=False)
class SanTextPlus(WordMechanism):
    """SanText for a share of the words, the last ones of the vocabulary; the others often stay as they are.

    A vocabulary is in the order of frequency, and the rare words are the sensitive ones, as in the published code. A
    word that is not sensitive is kept with probability 1 − p. If `published`, only sensitive words are drawn.

    >>> words = Vocabulary(("a", "b"), np.array([[0.0], [2.0]]))
    >>> kept = SanTextPlus(words, 1, p=0.25)
    >>> kept.probabilities("a").round(4).tolist()  # 3/4 + 1/4 · 0.7311
    [0.9328, 0.0672]
    """

    name: ClassVar[str] = "santext-plus"
    about: ClassVar[str] = SanText.about

    distance: str = "l2"
    p: float = 0.2
    sensitive: float = 0.5
    published: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("p", "sensitive"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} of {self.name} must be above 0 and below 1, got {getattr(self, name)}")
        if not self.plain.is_metric:
            raise InputError(f"{self.name} takes a distance that is a metric, not {self.distance}")

    @cached_property
    def plain(self) -> SanText:
        """SanText with the same parameters."""
        return SanText(self.vocabulary, self.epsilon, self.distance)

    @property
    def parameters(self) -> dict[str, Any]:
        return {**self.plain.parameters, "p": self.p, "sensitive": self.sensitive}

    @property
    def kept(self) -> int:
        """How many words, counted from the first, are not sensitive."""
        return min(max(1, round((1 - self.sensitive) * len(self.vocabulary))), len(self.vocabulary) - 1)

    def log_rows(self, places: Sequence[int]) -> Array:
        """ln P(y|x) for some words x and every word y."""
        scores = plain_rows(self.plain, places)
        if self.published:
            scores[:, : self.kept] = -np.inf
        logs: Array = scores - log_sum(scores)[:, None]
        for row, x in zip(logs, places, strict=True):
            if 0 <= x < self.kept:
                row += np.log(self.p)
                row[x] = np.logaddexp(row[x], np.log1p(-self.p))
        return logs

    def log_probabilities(self, x: int) -> Array:
        found: Array = self.log_rows([x])[0]
        return found


@dataclass(frozen=True, eq=False)
class NearestWords(WordMechanism):
    """CusText over the whole vocabulary: P(y|x) ∝ e^(−ε/2·min(d(x,y)/D, 1)), D the distance of x's K-th nearest word.

    >>> words = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [9.0]]))
    >>> logs = NearestWords(words, 2, K=2).log_probabilities(0)
    >>> (logs - logs[0]).tolist()
    [0.0, -1.0, -1.0]
    """

    name: ClassVar[str] = "custext"
    about: ClassVar[str] = "a corrected form of Chen et al., A Customized Text Sanitization Mechanism, 2023"

    K: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.K < 2:
            raise InputError(f"K, the number of near words, must be at least 2, got {self.K}")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"K": self.K}

    def log_rows(self, places: Sequence[int]) -> Array:
        """Scores of some words x and every word y."""
        found = np.zeros((len(places), len(self.vocabulary)))
        inside = [n for n, x in enumerate(places) if x != ANY_WORD]
        apart = distance_rows(self.vocabulary, [places[n] for n in inside], "l2")
        found[inside] = -self.rate * scaled(apart, self.K)
        return found

    def log_probabilities(self, x: int) -> Array:
        scores = self.log_rows([x])
        found: Array = scores[0] - log_sum(scores)[0]
        return found


def scaled(apart: Array, near: int) -> Array:
    """Rows of distances over that of the `near`-th nearest word, at most 1; 0 and 1 where that distance is 0.

    >>> scaled(np.array([[0.0, 2.0, 1.0, 8.0], [0.0, 0.0, 0.0, 3.0]]), 3).tolist()
    [[0.0, 1.0, 0.5, 1.0], [0.0, 0.0, 0.0, 1.0]]
    """
    near = min(near, apart.shape[1])
    limit = np.partition(apart, near - 1, axis=1)[:, near - 1 : near]
    found: Array = np.divide(apart, limit, out=(apart > 0).astype(float), where=limit > 0)
    return np.minimum(found, 1.0, out=found)


def log_rows(mechanism: WordMechanism, places: Sequence[int]) -> Array:
    """Logarithms of unnormalized probabilities: a row for each word x, a column for each word y; −1 is any word.

    >>> words = Vocabulary(("a", "b"), np.array([[0.0], [2.0]]))
    >>> log_rows(SanText(words, 1), [0, -1]).tolist()
    [[-0.0, -1.0], [0.0, 0.0]]
    """
    if isinstance(mechanism, SanTextPlus | NearestWords):
        return mechanism.log_rows(places)
    if isinstance(mechanism, ScoredWords):
        return plain_rows(mechanism, places)
    uniform = np.zeros(len(mechanism.vocabulary))
    return np.array([uniform if x == ANY_WORD else mechanism.log_probabilities(x) for x in places])


def plain_rows(mechanism: ScoredWords, places: Sequence[int]) -> Array:
    """The scores of some words; 0 throughout for any word."""
    found = np.zeros((len(places), len(mechanism.vocabulary)))
    inside = [n for n, x in enumerate(places) if x != ANY_WORD]
    found[inside] = mechanism.scores(distance_rows(mechanism.vocabulary, [places[n] for n in inside], mechanism.metric))
    return found


def distance_rows(vocabulary: Vocabulary, places: Sequence[int] | NDArray[np.int64], metric: str) -> Array:
    """The distances of some words from all words, by numba where it is installed."""
    kernels = import_module(f"dpassay.compute.kernels.{'numba_' * has_numba()}word_gaps")
    found: Array = kernels.distances(vocabulary.vectors[list(places)], vocabulary.vectors, metric)
    return found
