"""DPNR as its released code runs it: one noise number for each text, added to all elements of its vector.

The smallest element of a scaled vector is 0, so the smallest released number is the noise itself: subtracting it gives
the vector exactly, and no finite ε holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.pipeline.pipeline import run
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.text.models.words import as_text
from dpassay.text.rewriters.vectors.dpnr import Dpnr

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """A DPNR system whose noise is one number per text.

    >>> class Letters:
    ...     name, dim = "letters", 3
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=float)
    >>> code = SharedNoise(Dpnr(Letters(), epsilon=0.05, mu=0))
    >>> released = code.sample("aa b", 2, np.random.default_rng(0))
    >>> recovered(released).round(9).tolist()
    [[1.0, 0.5, 0.0], [1.0, 0.5, 0.0]]
    """

    system: Dpnr
    independent_rows: ClassVar[bool] = True  # each has its own noise

    def sample(self, x: str, n: int, rng: np.random.Generator) -> Floats:
        """Draw n noisy vectors of a text, one per row."""
        vectors = run(self.system.pipeline.stages[:-1], [as_text(x, "a text system")] * n, rng)
        return self.noisy(vectors, rng)

    def noisy(self, vectors: Floats, rng: np.random.Generator) -> Floats:
        """Scaled vectors, each with one number added to all of its elements."""
        noise = self.system.pipeline.stages[-1]
        assert isinstance(noise, Additive)
        return np.asarray(vectors + noise.noise.draw((len(vectors), 1), rng))


def recovered(outputs: Any) -> Floats:
    """The scaled vectors, up to rounding: each output without its smallest element."""
    rows = np.asarray(outputs, dtype=float)
    return np.asarray(rows - rows.min(axis=-1, keepdims=True))


def attack(system: Dpnr, first: str, second: str, draws: int = 256) -> Callable[[Sequence[Any]], Floats]:
    """A distinguisher of two texts: which of them has, with some words dropped, the vector that was recovered.

    >>> class Letters:
    ...     name, dim = "letters", 3
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=float)
    >>> score = attack(Dpnr(Letters(), epsilon=0.05), "to a", "to b")
    >>> (score([[8.0, 7.0, 7.0], [-3.0, -2.0, -3.0]]) > 0).tolist()
    [False, True]
    """
    before = system.pipeline.stages[:-1]
    rng = np.random.default_rng(0)
    known = [np.unique(run(before, [text] * draws, rng), axis=0) for text in (first, second)]

    def nearer(outputs: Sequence[Any]) -> Floats:
        rows = recovered(outputs)
        apart = [np.min([np.abs(rows - vector).max(axis=-1) for vector in vectors], axis=0) for vectors in known]
        return np.asarray(apart[0] - apart[1])

    return nearer
