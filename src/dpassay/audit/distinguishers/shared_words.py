"""Which input's words an output contains."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores, TrainingSet, require, shown_names
from dpassay.audit.outputs.outputs import LONGEST, Outputs
from dpassay.values import dataclass

FEW = 8  # words that are searched for before a text is split


@dataclass(frozen=True)
class SharedWords(Distinguisher):
    """How many words an output shares with each input, ignoring words in all inputs. It needs no training."""

    words: tuple[tuple[str, ...], ...]  # of each input

    kind = "SharedWords"
    learns = False
    order = 5
    per_input = "words"

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """Not for structured outputs: `OnLeaves` looks at their texts."""
        inputs = training.inputs
        if training.structured or len(inputs) != len(training.outputs) or not all(isinstance(x, str) for x in inputs):
            return
        of_inputs = [_words(x) for x in inputs]
        everywhere = frozenset.intersection(*of_inputs)
        words = tuple(tuple(sorted(some - everywhere)) for some in of_inputs)
        if any(words) and any(any(outputs.texts()) for outputs in training.outputs):
            yield cls(words)

    def score(self, outputs: Outputs) -> Scores:
        """Shared words of each input; for two inputs the difference. NaN if there is no text."""
        whose: dict[str, list[int]] = {}
        for i, some in enumerate(self.words):
            for word in some:
                whose.setdefault(word, []).append(i)
        texts = outputs.texts()
        shared = np.zeros((len(texts), len(self.words)))
        few = list(whose) if len(whose) <= FEW else None
        for row, text in zip(shared, texts, strict=True):
            lower = text[: 8 * LONGEST].lower()
            if few is not None and not any(word in lower for word in few):
                continue  # it has none of them, even as a part of another word
            for word in whose.keys() & set(lower.split()):
                row[whose[word]] += 1
        shared[[text == "" for text in texts]] = np.nan
        return shared[:, 1] - shared[:, 0] if len(self.words) == 2 else shared

    @property
    def likeness(self) -> bool:
        return len(self.words) == 2

    def describe(self) -> str:
        if len(self.words) > 2:
            return "how many words the output shares with each input"
        shortened = [[repr(word if len(word) <= 20 else f"{word[:19]}…") for word in some] for some in self.words]
        second, first = (shown_names(some) or "none" for some in reversed(shortened))
        return f"how many words the output has of the second input ({second}), less those of the first ({first})"

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        words = tuple(tuple(some) for some in data["words"])
        require(len(words) >= 2 and any(words), "words of two inputs or more")
        require(all(isinstance(word, str) for some in words for word in some), "words that are texts")
        return cls(words)


def _words(text: str) -> frozenset[str]:
    """A text's words in lower case, up to the length that is examined."""
    return frozenset(text[: 8 * LONGEST].lower().split())
