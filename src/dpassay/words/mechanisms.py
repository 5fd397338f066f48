"""Mechanisms that replace a word by a word from a vocabulary, with their exact distributions.

    SanText   P(y|x) ∝ e^(−ε·d(x,y)/2) over the whole vocabulary (Yue et al. 2021)
    TEM       the same for words within γ; the others together have weight e^(−ε·γ/2) times their number, and one of
              them is drawn uniformly (Carvalho, Vasiloudis and Feyisetan 2021)
    CusText   the exponential mechanism inside the word's own group of K words, distances scaled to [0, 1]
              (Chen et al. 2023, their code's mapping "conservative")

A score is the logarithm of an unnormalized probability. Only numpy is needed here; the same formulas
work on GPU tensors.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.kernels.word_gaps import METRICS, distances
from dpassay.errors import InputError
from dpassay.values import dataclass
from dpassay.words.vocabulary import Array, Vocabulary

SQUARED = "squared-l2"
DISTANCES = (*METRICS, SQUARED)
BETA = 0.001  # with the default γ, all words beyond it together have at most about this probability

SHORTEST = 1e-140  # squares of smaller numbers vanish in doubles


@dataclass(frozen=True, eq=False)
class WordMechanism:
    """A word in, a word of the vocabulary out. `rate` is ε/2: how much a score falls per unit of distance."""

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""

    vocabulary: Vocabulary
    epsilon: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 1e6:
            raise InputError(f"the epsilon of {self.name} must be above 0 and at most 1e6, got {self.epsilon}")

    @property
    def rate(self) -> float:
        """ε/2."""
        return self.epsilon / 2

    @property
    def parameters(self) -> dict[str, Any]:
        """What the mechanism depends on besides ε and the vocabulary."""
        return {}

    def log_probabilities(self, x: int) -> Array:
        """ln P(y|x) for every word y; −∞ if y is impossible."""
        raise NotImplementedError

    def probabilities(self, word: str) -> Array:
        """P(y|x) for every word y of the vocabulary.

        >>> two = Vocabulary(("yes", "no"), np.array([[0.0], [2.0]]))
        >>> SanText(two, 1).probabilities("yes").round(4).tolist()  # 1/(1 + 1/e)
        [0.7311, 0.2689]
        """
        return np.exp(self.log_probabilities(self.vocabulary.index(word)))

    def sample(self, x: str, n: int, rng: np.random.Generator) -> NDArray[np.str_]:
        """Draw n words for the word x."""
        weights = self.probabilities(x)
        drawn = rng.choice(len(weights), size=n, p=weights / weights.sum())
        return np.array(self.vocabulary.words)[drawn]

    def __str__(self) -> str:
        more = "".join(f", {name} {value}" for name, value in self.parameters.items())
        return f"{self.name} over {len(self.vocabulary):,} words (epsilon {self.epsilon:.12g}{more})"


@dataclass(frozen=True, eq=False)
class ScoredWords(WordMechanism):
    """A mechanism that can output every word for every word: scores are a function of distances."""

    distance: str = "l2"
    uniform: tuple[int, ...] = ()  # the positions of words that are replaced by any word, drawn uniformly

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.distance not in DISTANCES:
            raise InputError(f"unknown distance {self.distance!r}; allowed: {', '.join(DISTANCES)}")
        if self.distance == "angle":
            need_directions(self.vocabulary)

    @property
    def parameters(self) -> dict[str, Any]:
        return {} if self.distance == "l2" else {"distance": self.distance}

    @property
    def metric(self) -> str:
        """The distance that scores are computed from; a squared distance is computed from the distance."""
        return "l2" if self.distance == SQUARED else self.distance

    @property
    def is_metric(self) -> bool:
        """Whether −score/rate is a metric, so that a gap is largest at the word itself."""
        return self.distance != SQUARED and not self.uniform

    def scores(self, apart: Any) -> Any:
        """Scores of rows of distances; numpy arrays or GPU tensors."""
        return -self.rate * (apart * apart if self.distance == SQUARED else apart)

    def row_scores(self, apart: Any, start: int) -> Any:
        """Scores of the rows of distances of the words from the start-th on; those of uniform words are 0."""
        found = self.scores(apart)
        for place in self.uniform:
            if start <= place < start + len(apart):
                found[place - start] = 0.0
        return found

    def relative_error(self, relative: float) -> float:
        """The relative error of a score, from that of a distance."""
        return (2 * relative if self.distance == SQUARED else relative) + 2.0**-50

    def log_probabilities(self, x: int) -> Array:
        vectors = self.vocabulary.vectors
        found: Array = self.row_scores(distances(vectors[x : x + 1], vectors, self.metric), x)[0]
        logs: Array = found - log_sum(found[None, :])[0]
        return logs


@dataclass(frozen=True, eq=False)
class SanText(ScoredWords):
    """P(y|x) ∝ e^(−ε·d(x,y)/2) over the whole vocabulary.

    >>> print(SanText(Vocabulary(("yes", "no"), np.eye(2)), 4))
    santext over 2 words (epsilon 4)
    """

    name: ClassVar[str] = "santext"
    about: ClassVar[str] = "Yue et al., Differential Privacy for Text Analytics via Natural Text Sanitization, 2021"


@dataclass(frozen=True, eq=False)
class TEM(ScoredWords):
    """Words within γ are scored by their distance; all the others together count as one, drawn uniformly.

    As published, the others have weight e^(−ε·γ/2) times their number, so each has weight e^(−ε·γ/2): the score is
    −ε/2·min(d, γ). With `far="ratio"` their weight is |V| over the number of near words instead, as in the package
    mldp-text 0.1.2.

    >>> words = Vocabulary(("a", "b", "c"), np.array([[0.0], [1.0], [9.0]]))
    >>> TEM(words, 2, gamma=3).log_probabilities(0).round(3).tolist() == np.log(
    ...     np.exp([0, -1, -3]) / np.exp([0, -1, -3]).sum()).round(3).tolist()
    True
    """

    name: ClassVar[str] = "tem"
    about: ClassVar[str] = "Carvalho, Vasiloudis and Feyisetan, TEM: High Utility Metric DP on Text, 2021"

    gamma: float = 0.0  # 0: the default
    far: str = "count"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.far not in ("count", "ratio"):
            raise InputError(f"unknown weight of far words {self.far!r}; allowed: count, ratio")
        if not self.gamma:
            largest = math.log((1 - BETA) / BETA * (len(self.vocabulary) - 1))
            object.__setattr__(self, "gamma", largest / self.rate)
        if not 0 < self.gamma < math.inf:
            raise InputError(f"gamma, the distance up to which words are near, must be positive, got {self.gamma}")

    @property
    def parameters(self) -> dict[str, Any]:
        more = {} if self.far == "count" else {"far": self.far}
        return {**super().parameters, "gamma": f"{self.gamma:.12g}", **more}

    @property
    def is_metric(self) -> bool:
        return super().is_metric and self.far == "count"

    def scores(self, apart: Any) -> Any:
        near_scores = super().scores(apart)
        limit = super().scores(self.gamma)
        if self.far == "count":
            return near_scores.clip(limit, None)
        near = apart <= self.gamma
        if bool((abs(apart - self.gamma) <= 1e-12 * self.gamma).any()):
            raise InputError(f"a distance is {self.gamma:.12g}, that is gamma, up to rounding: choose another gamma")
        count = (near + 0 * apart).sum(1, keepdims=True)  # as doubles, on a GPU too
        others = len(self.vocabulary) - count
        each = limit + _log(len(self.vocabulary) / count) - _log(others.clip(1, None))
        return near * near_scores + ~near * each


@dataclass(frozen=True, eq=False)
class CusText(WordMechanism):
    """Groups of K words; a word is replaced by one of its group, and nearer words are more likely.

    The first word without a group forms one with the K − 1 nearest words that have none either. So the order of the
    vocabulary matters; it is by frequency in GloVe's files and in the published code. The last group may be smaller.
    P(y|x) ∝ e^(−ε·d(x,y)/2D), where D is the largest distance of a word of the group from x.

    >>> words = Vocabulary(("a", "b", "c", "d"), np.array([[0.0], [9.0], [1.0], [8.0]]))
    >>> [group.tolist() for group in CusText(words, 1, K=2).groups]
    [[0, 2], [1, 3]]
    """

    name: ClassVar[str] = "custext"
    about: ClassVar[str] = "Chen et al., A Customized Text Sanitization Mechanism with Differential Privacy, 2023"

    K: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.K < 2:
            raise InputError(f"K, the size of a group, must be at least 2, got {self.K}")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"K": self.K}

    @cached_property
    def groups(self) -> tuple[NDArray[np.int64], ...]:
        """The places of the words of each group."""
        vectors, free = self.vocabulary.vectors, np.arange(len(self.vocabulary))
        found = []
        while free.size:
            apart = distances(vectors[free[:1]], vectors[free], "l2")[0]
            nearest = np.argsort(apart, kind="stable")[: self.K]
            found.append(free[nearest])
            free = np.delete(free, nearest)
        return tuple(found)

    def group_of(self, x: int) -> NDArray[np.int64]:
        """The places of the words that the x-th word can become."""
        return next(group for group in self.groups if x in group)

    def group_scores(self, group: NDArray[np.int64]) -> Array:
        """The scores within a group: a row for each of its words."""
        vectors = self.vocabulary.vectors[group]
        apart = distances(vectors, vectors, "l2")
        largest = apart.max(axis=1, keepdims=True)
        scaled: Array = np.divide(apart, largest, out=np.zeros_like(apart), where=largest > 0)
        return -self.rate * scaled

    def log_probabilities(self, x: int) -> Array:
        group = self.group_of(x)
        scores = self.group_scores(group)[np.flatnonzero(group == x)]
        found = np.full(len(self.vocabulary), -np.inf)
        found[group] = scores[0] - log_sum(scores)[0]
        return found


MECHANISMS: dict[str, type[WordMechanism]] = {kind.name: kind for kind in (SanText, CusText, TEM)}


def need_directions(vocabulary: Vocabulary) -> None:
    """Refuse angles if a vector has no direction."""
    lost = np.flatnonzero(abs(vocabulary.vectors).max(axis=1) < SHORTEST)
    if lost.size:
        short = "zero" if not vocabulary.vectors[lost[0]].any() else "too short"
        raise InputError(
            f"the vector of {vocabulary.words[lost[0]]!r} is {short} and has no angle: use another distance"
        )


def log_sum(scores: Array) -> Array:
    """ln Σ e^score of each row, without overflow."""
    top = scores.max(axis=1)
    found: Array = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return found


def _log(values: Any) -> Any:
    return values.log() if hasattr(values, "log") else np.log(values)
