"""A softmax regression on vectors or on words, fitted with torch and used without it.

Its penalty is small and does not depend on the scale of the features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError
from dpassay.text.models.folder import TEXT_EXTRA
from dpassay.text.models.words import tokenise

PENALTY = 0.03
STEPS = 100
MOST_WORDS = 20_000

Features = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Classifier:
    """A linear score for each label; the highest is the guess.

    >>> which = Classifier(("left", "right"), np.array([[-1.0, 1.0]]), np.zeros(2))
    >>> which.predict(np.array([[-3.0], [5.0]]))
    ['left', 'right']
    >>> which.accuracy(np.array([[-3.0], [5.0]]), ["left", "left"])
    0.5
    """

    labels: tuple[str, ...]
    weights: NDArray[np.float64]  # one row per feature, one column per label
    bias: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("weights", "bias"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        number = len(self.labels)
        if not number or len(set(self.labels)) != number:
            raise InputError(f"a classifier needs one or more labels, each once, got {number}")
        if self.weights.ndim != 2 or self.weights.shape[1] != number or self.bias.shape != (number,):
            raise InputError(
                f"{number} labels need as many columns of weights and as many biases, got the shapes "
                f"{self.weights.shape} and {self.bias.shape}"
            )
        if not (np.isfinite(self.weights).all() and np.isfinite(self.bias).all()):
            raise InputError("a classifier's weights must be finite numbers")

    @property
    def width(self) -> int:
        return len(self.weights)

    def scores(self, features: Features) -> NDArray[np.float64]:
        """The log probability of each label, up to a constant."""
        rows = _matrix(features)
        if rows.shape[1] != self.width:
            raise InputError(f"the classifier takes {self.width} features, got {rows.shape[1]}")
        return np.asarray(rows @ self.weights + self.bias)

    def predict(self, features: Features) -> list[str]:
        """The likeliest label of each row."""
        return [self.labels[i] for i in self.scores(features).argmax(axis=1)]

    def accuracy(self, features: Features, labels: Sequence[str]) -> float:
        """The share of rows whose label is predicted correctly."""
        guesses = self.predict(features)
        if not labels or len(guesses) != len(labels):
            raise InputError(f"an accuracy needs one label per row, got {len(labels)} for {len(guesses)} rows")
        return sum(guess == label for guess, label in zip(guesses, labels, strict=True)) / len(guesses)

    def to_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Its weights, to be saved; the labels are saved separately."""
        return {"weights": self.weights, "bias": self.bias}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], labels: Sequence[str]) -> Classifier:
        """The classifier with weights from `to_arrays` and these labels.

        >>> which = Classifier(("a", "b"), np.eye(2), np.zeros(2))
        >>> Classifier.from_arrays(which.to_arrays(), which.labels).predict(np.eye(2))
        ['a', 'b']
        """
        if missing := {"weights", "bias"} - set(arrays):
            raise InputError(f"a classifier's arrays are weights and bias; there is no {sorted(missing)[0]}")
        return cls(tuple(labels), arrays["weights"], arrays["bias"])


def fit(
    features: Features, labels: Sequence[str], seed: int = 0, unit: float | None = None, steps: int = STEPS
) -> Classifier:
    """Fit a softmax regression to rows and their labels. The same seed, for the starting point, gives the same result.

    `unit` is the scale of what matters in the features, by default their standard deviation: weights that make more of
    a smaller difference are penalized.

    >>> rows = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> fit(rows, ["low", "low", "high", "high"]).predict(np.array([[0.2], [0.8]]))
    ['low', 'high']
    """
    rows = _matrix(features)
    if not labels or len(rows) != len(labels):
        raise InputError(f"a classifier needs one label per row, got {len(labels)} for {len(rows)} rows")
    names = sorted(set(labels))
    place = {name: i for i, name in enumerate(names)}
    centre = rows.mean(axis=0)
    # One scale for all features, so that those with a small range keep it, as rare words should.
    unit = unit or float(np.sqrt(np.mean((rows - centre) ** 2))) or 1.0
    weights, bias = _fitted((rows - centre) / unit, [place[label] for label in labels], len(names), seed, steps)
    weights /= unit
    return Classifier(tuple(names), weights, bias - centre @ weights)


def bag_of_words(
    texts: Sequence[str], vocabulary: Sequence[str] | None = None
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Which words each text contains, one row per text and one column per word; by default, all their words.

    >>> rows, words = bag_of_words(["fly to Rome", "to rome to"])
    >>> words, rows.tolist()
    (('fly', 'rome', 'to'), [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    """
    split = [set(tokenise(text)) for text in texts]
    if vocabulary is None:
        counts = Counter(word for words in split for word in sorted(words))
        vocabulary = sorted(word for word, _ in counts.most_common(MOST_WORDS))
    place = {word: i for i, word in enumerate(vocabulary)}
    rows = np.zeros((len(split), len(vocabulary)), dtype=np.float32)
    for i, words in enumerate(split):
        rows[i, [place[word] for word in words if word in place]] = 1.0
    return rows, tuple(vocabulary)


def _matrix(features: Features) -> NDArray[np.float64]:
    rows = np.asarray(features, dtype=np.float64)
    if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
        raise InputError(f"features are a matrix of finite numbers, one row per text, got the shape {rows.shape}")
    return rows


def _fitted(
    rows: NDArray[np.float64], targets: list[int], classes: int, seed: int, steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weights and biases that minimize cross-entropy with a penalty on the weights, by L-BFGS."""
    try:
        import torch
    except ImportError:
        raise InputError(f"a classifier needs torch: {TEXT_EXTRA}") from None
    x, y = torch.as_tensor(rows, dtype=torch.float32), torch.as_tensor(targets)
    start = torch.Generator().manual_seed(seed)
    weights = (0.001 * torch.randn(x.shape[1], classes, generator=start)).requires_grad_()
    bias = torch.zeros(classes, requires_grad=True)
    search: Any = torch.optim.LBFGS([weights, bias], max_iter=steps, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Any:
        search.zero_grad()
        value: Any = torch.nn.functional.cross_entropy(x @ weights + bias, y) + PENALTY / 2 * (weights**2).sum()
        value.backward()
        return value

    search.step(loss)
    return weights.detach().numpy().astype(np.float64), bias.detach().numpy().astype(np.float64)
