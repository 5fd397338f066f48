"""Naive Bayes on the n-grams of texts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import (
    WEIGHTIEST,
    Distinguisher,
    Scores,
    TrainingSet,
    array,
    how_often,
    require,
    shown_names,
)
from dpassay.audit.outputs.outputs import Array, Outputs
from dpassay.audit.outputs.texts.ngrams import HASHED, cell_of, grams, ngrams_in
from dpassay.values import dataclass

MOST_INPUTS = 1 << 12


@dataclass(frozen=True)
class NaiveBayes(Distinguisher):
    """How often a text of each input contains each word, pair of words and character trigram."""

    logs: Array  # log-frequencies: one row per input, one column per cell of n-grams

    kind = "Ngrams"
    order = 10
    per_input = "logs"
    description = "the words and characters of the output"

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """Not for structured outputs: `OnLeaves` looks at their texts."""
        if training.structured or not any(any(outputs.texts()) for outputs in training.outputs):
            return
        logs = []
        for outputs in training.outputs:
            counts = np.bincount(ngrams_in(outputs).values, minlength=HASHED)
            logs.append(np.log((counts + 0.5) / (len(outputs) + 1)))
        yield cls(np.array(logs))

    @property
    def estimates_odds(self) -> bool:
        return True

    @property
    def by_features(self) -> bool:
        return True

    def describe_of(self, names: Sequence[str]) -> str:
        return f"the words and characters of {shown_names(names)}"

    def score(self, outputs: Outputs) -> Scores:
        """The sum over all n-grams in the text; NaN if there is no text."""
        found, weights = ngrams_in(outputs), self._weights
        totals = np.array([np.bincount(found.rows, row[found.values], len(outputs)) for row in weights], dtype=float).T
        totals[[text == "" for text in outputs.texts()]] = np.nan
        return totals if len(self.logs) > 2 else totals[:, 0]

    @cached_property
    def _weights(self) -> Array:
        """What each cell adds: to the second input's score or, with more than two, to that of each."""
        return self.logs if len(self.logs) > 2 else self.logs[1:] - self.logs[:1]

    def weightiest(self, outputs: Sequence[Outputs]) -> list[str]:
        """The n-grams whose frequencies in these texts differ most, times their weight; whole words first."""
        if len(self.logs) != 2:
            return []
        shares = [Counter(gram for text in some.texts() for gram in grams(text)) for some in outputs]
        weights = {}
        for gram in shares[0] | shares[1]:
            log_odds = float(self.logs[1, cell_of(gram)] - self.logs[0, cell_of(gram)])
            apart = shares[1][gram] / max(1, len(outputs[1])) - shares[0][gram] / max(1, len(outputs[0]))
            if log_odds * apart > 0:
                weights[gram] = log_odds * abs(apart)
        words = {gram: weight for gram, weight in weights.items() if not gram.startswith("\0")} or weights
        chosen = sorted(words, key=lambda gram: (-abs(words[gram]), len(gram), gram))[:WEIGHTIEST]
        often = [[shares[i][gram] / max(1, len(outputs[i])) for i in (0, 1)] for gram in chosen]
        return [how_often(repr(gram.lstrip("\0")), *rates) for gram, rates in zip(chosen, often, strict=True)]

    def to_data(self) -> dict[str, Any]:
        """The cells that occurred, and one number for all others."""
        rest = self.logs.min(axis=1)
        used = np.flatnonzero((self.logs != rest[:, None]).any(axis=0))
        return {"kind": self.kind, "cells": used.tolist(), "logs": self.logs[:, used].tolist(), "rest": rest.tolist()}

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        rest, cells = array(data["rest"], 1), np.array(data["cells"], dtype=int)
        require(2 <= len(rest) <= MOST_INPUTS, "a row for each input")
        logs = np.repeat(rest[:, None], HASHED, axis=1)
        logs[:, cells] = np.array(data["logs"], dtype=float).reshape(len(rest), len(cells))
        return cls(logs)
