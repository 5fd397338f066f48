"""What DPText and DPNR share: a text is encoded, and its vector gets noise."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.pipeline.distributions import Distribution
from dpassay.pipeline.pipeline import Pipeline
from dpassay.text.models.encoders import Encoder
from dpassay.text.models.words import as_text


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A mechanism from a text to a noisy vector; each system sets its pipeline."""

    encoder: Encoder
    epsilon: float
    pipeline: Pipeline = field(init=False, repr=False, compare=False)
    independent_rows: ClassVar[bool] = True  # each has its own noise

    @property
    def dim(self) -> int:
        """How many coordinates the vector of a text has."""
        return self.encoder.dim

    def sample(self, x: str, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw n noisy vectors of a text, one per row."""
        return np.asarray(self.pipeline.sample(self._text(x), n, rng))

    def distribution(self, x: str) -> Distribution:
        """The exact distribution of the noisy vector, where the pipeline has one."""
        return self.pipeline.distribution(self._text(x))

    def release(self, texts: Sequence[str], rng: np.random.Generator) -> NDArray[np.float64]:
        """One noisy vector of each text."""
        return np.asarray(self.pipeline.run([self._text(text) for text in texts], rng))

    def _text(self, given: object) -> str:
        return as_text(given, "a text system")
