"""Small rewriters whose behaviour is known in closed form, for tests that need one by its Python path."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.text.rewriters.base import TextGuarantee

WORDS = ("flights", "fares", "to", "from", "boston", "denver", "monday", "airlines")


class Response:
    """Randomized response on each word, over a fixed list; words outside it are replaced by any of it.

    ε is for one word, as its authors would state it. For a text of at most `longest` words it is so many times that.
    """

    def __init__(self, epsilon: float, longest: str = "12", words: str = " ".join(WORDS)) -> None:
        self.epsilon, self.longest, self.words = float(epsilon), int(longest), words.split()

    @property
    def guarantee(self) -> TextGuarantee:
        kept, neighbours = self.epsilon * self.longest, Neighbours(f"words({self.longest})")
        return TextGuarantee(kept, neighbours=neighbours, claimed=self.epsilon)

    @property
    def kept(self) -> float:
        """The probability with which a word of the list stays."""
        return 1 / (1 + (len(self.words) - 1) * math.exp(-self.epsilon))

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        return [" ".join(self._word(word, rng) for word in text.split()[: self.longest]) for text in texts]

    def _word(self, word: str, rng: np.random.Generator) -> str:
        others = [other for other in self.words if other != word]
        if word in self.words and rng.random() < self.kept:
            return word
        return others[rng.integers(len(others))]


class Likely(Response):
    """The same, which knows the probability of what it writes."""

    def log_prob(self, output: str, text: str) -> float:
        new, old = output.split(), text.split()
        if len(new) != len(old):
            return -math.inf
        other = (1 - self.kept) / (len(self.words) - 1)
        return sum(math.log(self.kept if a == b else other) for a, b in zip(new, old, strict=True))


class InTurn:
    """A rewriter of M texts without chance: of every M + 1 rewritings of a text two are itself, the others each other.

    So the share of those that are right is 2 / (M + 1), which randomized response with ε = ln 2 has on average.
    """

    guarantee = TextGuarantee(math.log(2))

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.turns = list(texts), Counter[str]()

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        return [self._next(text) for text in texts]

    def _next(self, text: str) -> str:
        turn = self.turns[text] % (len(self.texts) + 1)
        self.turns[text] += 1
        return text if turn == len(self.texts) else self.texts[turn]

    def log_prob(self, output: str, text: str) -> float:
        return math.log((2 if output == text else 1) / (len(self.texts) + 1))


class Copy:
    """No privacy at all, and no ε."""

    guarantee = TextGuarantee(math.inf)

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        return list(texts)


class Loud(Copy):
    """The same in capitals, which shows what was rewritten."""

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        return [text.upper() for text in texts]


class Blank:
    """Perfect privacy, and nothing left."""

    guarantee = TextGuarantee(0.0)

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        return [""] * len(texts)


class Unbounded(Response):
    """A parameter that its authors call ε, although no finite ε holds."""

    @property
    def guarantee(self) -> TextGuarantee:
        return TextGuarantee(math.inf, claimed=self.epsilon)


class Limited(Response):
    """One whose parameter has a largest value, so that no large ε can be had."""

    def __init__(self, epsilon: float) -> None:
        super().__init__(epsilon)
        if self.epsilon > 30:
            raise InputError(f"epsilon must be at most 30, got {epsilon:g}")


copy, blank, loud = Copy(), Blank(), Loud()


class Failing:
    """One that can do nothing."""

    def __init__(self, epsilon: float) -> None:
        self.guarantee = TextGuarantee(float(epsilon))

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        raise ZeroDivisionError("no noise left")


class Whole:
    """A rewriter that keeps texts as they are, whatever ε it declares."""

    def __init__(self, epsilon: float) -> None:
        self.guarantee = TextGuarantee(float(epsilon))

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        return list(texts)
