"""Word dropout."""

from typing import Any

import numpy as np

from dpassay.core.numbers import Number, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import Parameter, Syntax
from dpassay.values import dataclass


def _check_mu(value: Any) -> Number:
    mu = number(value)
    if mu.a < 0 or mu.b >= 1:
        raise InputError(f"dropout needs a probability of at least 0 and less than 1, got {middle(mu):g}")
    return mu


@dataclass(frozen=True)
class Dropout(Stage):
    """Drop each word with probability mu; only before all other stages.

    >>> Dropout("0.5").run(["a b c"], np.random.default_rng(0))
    ['a']
    """

    syntax = Syntax("dropout", order=150, mu=Parameter("number", _check_mu))
    on_words = True
    mu: Number

    @property
    def dropped(self) -> Number:
        return self.mu

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return before

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Drop words of each text; vectors have no words and are refused."""
        if isinstance(batch, np.ndarray) and batch.dtype.kind == "f":
            raise InputError("dropout works on words: run this pipeline on texts")
        mu = middle(self.mu)
        return [" ".join(w for w in str(text).split() if rng.random() >= mu) for text in batch]
