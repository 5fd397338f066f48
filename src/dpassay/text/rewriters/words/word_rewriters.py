"""Rewriters that replace each word by a word from a vocabulary: SanText, SanText+, TEM, CusText, Madlib.

A text is split at white space and lower-cased, and its first words are replaced independently of one another. So the
losses of its words add up, and two texts of at most L words lose at most L times what two words can lose:
docs/proofs/vocabulary.md, point 10. Rules determine what happens to words outside the vocabulary, stop words and
numbers; by default all of them are hidden like any other word. The number of words is visible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.core.guarantee import MetricDP, PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.evidence.verdict import Verdict
from dpassay.text.models.words import LONGEST, as_text
from dpassay.text.rewriters.base import DOUBLES, TextGuarantee
from dpassay.words.judge import judge
from dpassay.words.largest_loss import diameter, largest_loss
from dpassay.words.mechanisms import CusText, ScoredWords, WordMechanism, log_sum
from dpassay.words.rules import Rules
from dpassay.words.sampling import Bits, bits_of, sampler_of, system_bits, uniforms
from dpassay.words.variants import ANY_WORD, log_rows
from dpassay.words.vocabulary import Array, Vocabulary

COPIED, DROPPED = -2, -3  # codes for what happens to a word, besides ANY_WORD
_CODES = {"replaced": ANY_WORD, "copied": COPIED, "dropped": DROPPED}
VISIBLE = "the number of words is visible"
REVEALED = {  # what a rule does to words that it does not hide
    "copied": "so an output shows them",
    "dropped": "so an output shows by its length whether there were any",
}
PUBLIC_WORDS = "the vocabulary and its vectors must be public: the texts that they were made from are not covered"
PRODUCTS = 1 << 23  # held in memory at a time by a search for nearest words


@dataclass(frozen=True, eq=False)
class WordByWord:
    """Rewrites each word of a text separately.

    `claimed` is the ε per word that the authors state for any two words, if they state one. With `case="kept"` the
    words of a text are looked up as they are written. `flaw` is why no finite ε holds for a mechanism as published.
    """

    vocabulary: Vocabulary
    epsilon: float
    rules: Rules = field(default_factory=lambda: Rules("replaced"))
    longest: int = LONGEST
    case: str = "lower"
    claimed: float | None = None
    flaw: str = ""
    caveats: ClassVar[tuple[str, ...]] = (PUBLIC_WORDS,)
    independent_rows: ClassVar[bool] = True  # each text has its own draws

    def __post_init__(self) -> None:
        if self.rules.unknown is None:
            raise InputError("say what happens to words outside the vocabulary: unknown=replaced, copied or dropped")
        if self.longest < 1:
            raise InputError(f"longest, the number of words that are read, must be at least 1, got {self.longest}")
        if self.case not in ("lower", "kept"):
            raise InputError(f"case is lower or kept, got {self.case!r}")
        for word in self.vocabulary.words:
            if word.split() != [word]:
                raise InputError(f"{self.vocabulary.name} has {word!r}, which is not one word: texts are cut at blanks")

    @property
    def name(self) -> str:
        """What the mechanism is called, with its parameters."""
        raise NotImplementedError

    def largest_word_loss(self) -> tuple[float, Theorem]:
        """An upper bound on the loss between any two words, and what it rests on."""
        raise NotImplementedError

    def draw(self, places: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        """Outputs for words given by their places; ANY_WORD is a word that becomes any word."""
        raise NotImplementedError

    @cached_property
    def guarantee(self) -> TextGuarantee:
        """What holds for any two texts with the same number of words."""
        revealed = self.rules.example(self.vocabulary)
        per_word, theorem = math.inf, Theorem.VOCABULARY
        if revealed is None:
            per_word, theorem = self.largest_word_loss()
        reasons = [self.flaw] * bool(self.flaw and math.isinf(self.largest_word_loss()[0]))
        reasons += [] if revealed is None else [f"{revealed[0]} are {revealed[1]}, {REVEALED[revealed[1]]}"]
        return TextGuarantee(
            math.nextafter(self.longest * per_word, math.inf),
            neighbours=Neighbours(f"words({self.longest})"),
            claimed=None if self.claimed is None else self.longest * self.claimed,
            outside="; ".join((VISIBLE, *reasons)),
            proofs=tuple(dict.fromkeys((theorem.page, Theorem.VOCABULARY.page))),
            caveats=self.caveats,
            as_published=bool(self.flaw),
        )

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each text; the same generator gives the same texts."""
        return self._written(texts, bits_of(rng))

    def release(self, texts: Sequence[str]) -> list[str]:
        """Rewritings that may be published: with random bits from the operating system."""
        return self._written(texts, system_bits)

    def _written(self, texts: Sequence[str], bits: Bits) -> list[str]:
        read = [self.words_of(text) for text in texts]
        words = [word for one in read for word in one]
        places = np.fromiter(map(self.place_of, words), dtype=np.int64, count=len(words))
        treated = places >= ANY_WORD
        out = np.array([*words, ""], dtype=object)[:-1]  # the "" keeps numpy from turning a text into a number
        out[treated] = self._names[self.draw(places[treated], bits)]
        kept = (places != DROPPED).tolist()
        written, end = out.tolist(), 0
        found = []
        for one in read:
            start, end = end, end + len(one)
            found.append(" ".join(word for word, here in zip(written[start:end], kept[start:end], strict=True) if here))
        return found

    def words_of(self, text: str) -> list[str]:
        """The words of a text that are read."""
        given = as_text(text, "a rewriter")
        return (given.lower() if self.case == "lower" else given).split()[: self.longest]

    def place_of(self, word: str) -> int:
        """The place of a word in the vocabulary, or what happens to it instead."""
        known = self._places.get(word)
        return known if known is not None else _CODES[str(self.rules.rule_of(word, self.vocabulary))]

    @cached_property
    def _places(self) -> dict[str, int]:
        rules = [self.rules.rule_of(word, self.vocabulary) for word in self.vocabulary.words]
        return {
            word: place if rule is None else _CODES[rule]
            for place, (word, rule) in enumerate(zip(self.vocabulary.words, rules, strict=True))
        }

    @cached_property
    def _names(self) -> NDArray[np.object_]:
        return np.array(self.vocabulary.words, dtype=object)

    def describe(self) -> dict[str, str]:
        """What identifies the rewriter."""
        return {
            "kind": "model",
            "type": "word rewriter",
            "mechanism": self.name,
            "epsilon": repr(self.epsilon),
            "rules": str(self.rules),
            "case": self.case,
            "longest": str(self.longest),
            "sha256": self.vocabulary.digest,
        }

    def statement(self) -> dict[str, Any]:
        """The mechanism and its own ε, which is not the ε of a text."""
        return {
            "mechanism": self.name,
            "parameter": {"epsilon": self.epsilon, "per": self.unit},
            "words": {"unknown and other words": str(self.rules), "case": self.case, "longest": self.longest},
            "vocabulary": {"words": len(self.vocabulary), "sha256": self.vocabulary.digest},
        }

    @property
    def unit(self) -> str:
        """What the mechanism's own ε refers to."""
        return "word" if self.claimed is not None else "word and unit of distance"


@dataclass(frozen=True, eq=False)
class DrawnWords(WordByWord):
    """Each word is drawn from a distribution that is known exactly.

    >>> from dpassay.words.mechanisms import SanText
    >>> words = Vocabulary(("yes", "no"), np.array([[0.0], [2.0]]))
    >>> rewriter = DrawnWords(words, 1, longest=3, mechanism=SanText(words, 1))
    >>> print(rewriter.guarantee)
    epsilon 3 for two texts that differ in at most 3 words; the number of words is visible
    >>> round(float(np.exp(rewriter.log_prob("yes no", "yes yes"))), 6)  # 0.731059 · 0.268941
    0.196612
    """

    mechanism: WordMechanism = field(kw_only=True)

    @property
    def name(self) -> str:
        return f"{self.mechanism}{', as published' * bool(self.flaw)}"

    @property
    def unit(self) -> str:
        scored = isinstance(self.mechanism, ScoredWords) or self.mechanism.name == "santext-plus"
        return "word and unit of distance" if scored else "word"

    def largest_word_loss(self) -> tuple[float, Theorem]:
        found = largest_loss(self.mechanism, self.rules.replaced(self.vocabulary), self.rules.unknown == "replaced")
        return found.drawn(len(self.vocabulary)), Theorem.VOCABULARY

    def draw(self, places: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        return sampler_of(self.mechanism).draw(places, bits)

    def log_prob(self, output: str, text: str) -> float:
        """The exact log-probability of a rewriting: the sum over its words; −∞ if it is impossible."""
        read = [word for word in self.words_of(text) if self.place_of(word) != DROPPED]
        written = as_text(output, "log_prob").split()
        if len(read) != len(written):
            return -math.inf
        return math.fsum(self._word_log(y, x) for y, x in zip(written, read, strict=True))

    def _word_log(self, y: str, x: str) -> float:
        place = self.place_of(x)
        if place == COPIED:
            return 0.0 if x == y else -math.inf
        if y not in self.vocabulary:
            return -math.inf
        return float(_log_law(self.mechanism, place)[self.vocabulary.index(y)])


@lru_cache(maxsize=512)
def _log_law(mechanism: WordMechanism, place: int) -> Array:
    rows = log_rows(mechanism, [place])
    found: Array = rows[0] - log_sum(rows)[0]
    return found


@dataclass(frozen=True, eq=False)
class JudgedWords(DrawnWords):
    """The same for mechanisms with an exact verdict on their authors' claim for one word."""

    def exact(self) -> Verdict:
        """The verdict on the authors' claim: metric DP per word, and for CusText ε-DP per word."""
        made = self.mechanism
        claim = MetricDP(made.epsilon, made.metric) if isinstance(made, ScoredWords) else PureDP(made.epsilon)
        if not isinstance(made, CusText):
            return judge(made, claim, self.rules)
        # Words that become any word add nothing to what the groups reveal, and are left out.
        stated = {kind: rule for kind, rule in vars(self.rules).items() if rule != "replaced"}
        return judge(made, claim, Rules(**stated))


@dataclass(frozen=True, eq=False)
class Madlib(WordByWord):
    """A word's vector gets noise of density e^(−ε‖z‖₂), and the nearest word comes out (Feyisetan et al. 2020).

    Two words lose at most ε times the distance of their vectors. A word that becomes any word (ANY_WORD) is first
    replaced by a word drawn uniformly, and then treated like that word: it loses no more than the others.

    >>> words = Vocabulary(("yes", "no"), np.array([[0.0], [2.0]]))
    >>> print(Madlib(words, 1, longest=3).guarantee)
    epsilon 6 for two texts that differ in at most 3 words; the number of words is visible
    """

    caveats: ClassVar[tuple[str, ...]] = (PUBLIC_WORDS, DOUBLES)

    @property
    def name(self) -> str:
        return f"madlib over {len(self.vocabulary):,} words (epsilon {self.epsilon:.12g})"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon <= 1e6:
            raise InputError(f"the epsilon of madlib must be above 0 and at most 1e6, got {self.epsilon}")

    def largest_word_loss(self) -> tuple[float, Theorem]:
        return math.nextafter(self.epsilon * diameter(self.vocabulary), math.inf), Theorem.RADIAL

    def draw(self, places: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        vectors, dim = self.vocabulary.vectors, self.vocabulary.dim
        anywhere = places == ANY_WORD
        places = places.copy()
        places[anywhere] = (uniforms(int(anywhere.sum()), bits) * len(vectors)).clip(max=len(vectors) - 1)
        noisy = vectors[places] + _radial(len(places), dim, bits) / self.epsilon
        return nearest_words(noisy, vectors)


def nearest_words(noisy: Array, vectors: Array) -> NDArray[np.int64]:
    """The place of the vector nearest to each noisy one, in single precision: the largest ⟨z, v⟩ − ‖v‖²/2.

    Of two words that are nearest up to rounding either may come out, which is post-processing like the search itself.

    >>> nearest_words(np.array([[0.4], [7.0]]), np.array([[0.0], [1.0], [5.0]])).tolist()
    [0, 2]
    """
    middle = vectors.mean(axis=0)
    centred = vectors - middle
    table = np.vstack([centred.T, -(centred * centred).sum(axis=1) / 2]).astype(np.float32)
    queries = np.hstack([noisy - middle, np.ones((len(noisy), 1))]).astype(np.float32)
    step = max(1, PRODUCTS // len(vectors))
    found = np.empty(len(queries), dtype=np.int64)
    for start in range(0, len(queries), step):  # the product itself uses all cores
        found[start : start + step] = (queries[start : start + step] @ table).argmax(axis=1)
    return found


def _radial(n: int, dim: int, bits: Bits) -> Array:
    """Vectors of density e^(−‖z‖₂): uniform direction, and length a sum of `dim` exponential variables."""
    even = dim + dim % 2
    u = uniforms(n * (dim + even), bits).reshape(n, dim + even)
    np.maximum(u, 2.0**-1000, out=u)  # avoids ln 0
    lengths = -np.log(u[:, :dim]).sum(axis=1)
    first, second = np.split(u[:, dim:], 2, axis=1)
    around, away = 2 * np.pi * first, np.sqrt(-2 * np.log(second))
    normal = np.concatenate([away * np.cos(around), away * np.sin(around)], axis=1)[:, :dim]
    found: Array = normal * (lengths / np.sqrt((normal * normal).sum(axis=1)))[:, None]
    return found
