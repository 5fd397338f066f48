"""Attacks on rewritten text: which of M candidates was the original, given only the rewritten text?

An attack gives each candidate a log-probability; the likeliest one is its guess. Where the rewriter knows the exact
probability of what it writes, no attack is better. Elsewhere one is learned from other rewritings of the candidates.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpassay.audit.testing.inference import log_limits
from dpassay.errors import InputError
from dpassay.text.models.words import tokenise
from dpassay.text.rewriters.base import Rewriter, TextGuarantee, checked

Floats = NDArray[np.float64]

DRAWS = 20  # rewritings of each candidate that an attack learns from
FEWEST = 10  # candidates of one length are enough; with fewer, lengths are mixed
AT_ONCE = 1024  # texts rewritten at a time
END = "\n"  # stands for the end of a text; no word has a line break
PARTS = re.compile(r"\w+|[^\w\s]")
SMOOTHING = 1.0  # pseudo-count: this many words of the average text are added to each candidate's counts


class Attack(Protocol):
    """Anything that computes how likely each candidate is."""

    @property
    def candidates(self) -> tuple[str, ...]:
        """The texts that the original could be."""

    def log_posterior(self, texts: Sequence[str]) -> Floats:
        """The log-probability of each candidate, given each text: one row per text."""


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """The attack that uses the rewriter's own `log_prob`: no attack is right more often.

    >>> class Coin:
    ...     def log_prob(self, output, text):
    ...         return math.log(0.75 if output == text else 0.25)
    >>> np.exp(ExactPosterior(Coin(), ["a", "b"]).log_posterior(["b"])).round(2).tolist()
    [[0.25, 0.75]]
    """

    rewriter: Any
    candidates: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", _different(self.candidates))

    def log_posterior(self, texts: Sequence[str]) -> Floats:
        """The log-probability of each candidate with a uniform prior."""
        known = {text: self._log_probs(text) for text in dict.fromkeys(texts)}
        return _normalised(np.array([known[text] for text in texts]).reshape(len(texts), len(self.candidates)))

    def _log_probs(self, text: str) -> list[float]:
        """The log-probability of a text for each candidate, in one go if the rewriter can."""
        at_once: Callable[[str, Sequence[str]], Sequence[float]] | None = getattr(self.rewriter, "log_probs", None)
        if at_once is not None:
            return [float(number) for number in at_once(text, self.candidates)]
        return [float(self.rewriter.log_prob(text, candidate)) for candidate in self.candidates]


@dataclass(frozen=True, eq=False)
class NaiveBayesAttacker:
    """An attack based on how often each word occurs in rewritings of each candidate, and on how they end."""

    candidates: tuple[str, ...]
    log_words: Floats  # one row per candidate, one column per word
    words: dict[str, int] = field(repr=False)

    @staticmethod
    def learn(
        rewriter: Rewriter, candidates: Sequence[str], draws: int = DRAWS, rng: np.random.Generator | None = None
    ) -> NaiveBayesAttacker:
        """Count the words of `draws` rewritings of each candidate."""
        names = _different(candidates)
        if draws < 1:
            raise InputError(f"an attack needs 1 rewriting of each candidate or more to learn from, got {draws}")
        rng = np.random.default_rng(0) if rng is None else rng
        counts: list[Counter[str]] = [Counter() for _ in names]
        order = [i for _ in range(draws) for i in range(len(names))]
        for begin in range(0, len(order), AT_ONCE):
            group = order[begin : begin + AT_ONCE]
            texts = [names[i] for i in group]
            for i, text in zip(group, checked(rewriter.rewrite(texts, rng), texts), strict=True):
                counts[i].update(_tokens(text))
        words = {word: place for place, word in enumerate(sorted(set().union(*counts)))}
        table = np.zeros((len(names), len(words)))
        for row, count in zip(table, counts, strict=True):
            row[[words[word] for word in count]] = list(count.values())
        average = (table.sum(axis=0) + 1) / (table.sum() + len(words))
        shares = (table + SMOOTHING * average) / (table.sum(axis=1, keepdims=True) + SMOOTHING)
        return NaiveBayesAttacker(names, np.log(shares), words)

    def log_posterior(self, texts: Sequence[str]) -> Floats:
        """The log-probability of each candidate, as if the words were independent; unknown words are ignored."""
        found = np.zeros((len(texts), len(self.candidates)))
        for row, text in zip(found, texts, strict=True):
            places = [self.words[word] for word in _tokens(text) if word in self.words]
            row += self.log_words[:, places].sum(axis=1)
        return _normalised(found)


def strongest(rewriter: Rewriter, candidates: Sequence[str], rng: np.random.Generator) -> Attack:
    """The exact attack where the rewriter has a likelihood, otherwise a learned one."""
    if hasattr(rewriter, "log_prob"):
        return ExactPosterior(rewriter, tuple(candidates))
    return NaiveBayesAttacker.learn(rewriter, candidates, DRAWS, rng)


def right_guesses(attack: Attack, rewriter: Rewriter, runs: int, rng: np.random.Generator) -> int:
    """The number of runs in which the likeliest candidate is the true one; each run draws and rewrites a candidate."""
    who = rng.integers(0, len(attack.candidates), runs)
    right = 0
    for begin in range(0, runs, AT_ONCE):
        group = who[begin : begin + AT_ONCE]
        texts = [attack.candidates[i] for i in group]
        logs = attack.log_posterior(checked(rewriter.rewrite(texts, rng), texts))
        right += int((logs.argmax(axis=1) == group).sum())
    return right


def highest_success(guarantee: TextGuarantee, candidates: Sequence[str]) -> float | None:
    """The largest probability with which any attack can be right; None where the guarantee gives no bound.

    It is (e^ε + (M−1)δ) / (e^ε + M−1) for M candidates, any two of which are neighbors: see
    docs/proofs/candidates.md.

    >>> round(highest_success(TextGuarantee(1), ["a", "b", "c"]), 6)
    0.576117
    """
    names = _different(candidates)
    if math.isinf(guarantee.epsilon) or not _all_neighbours(guarantee, names):
        return None
    return min(1.0, math.exp(log_limits(guarantee.epsilon, len(names), guarantee.delta)[0]))


def _all_neighbours(guarantee: TextGuarantee, names: Sequence[str]) -> bool:
    """Whether any two of the candidates are neighbors.

    Texts that differ in words must be neighbors whether or not a rewriter splits off punctuation.
    """
    neighbours = guarantee.neighbours
    if neighbours.kind == "any":
        return True
    if neighbours.relation != "word" or neighbours.kind.startswith("tokens"):
        return False
    for split in (str.split, PARTS.findall):
        rows = [split(name) for name in names]
        if len({len(row) for row in rows}) > 1:
            return False
        table = np.array(rows, dtype=object).reshape(len(rows), -1)
        if any(int((table[i + 1 :] != table[i]).sum(axis=1).max()) > neighbours.count for i in range(len(rows) - 1)):
            return False
    return True


def of_equal_length(texts: Sequence[str], number: int) -> list[str]:
    """`number` different texts, all with the same number of words, so that their length reveals nothing.

    Guarantees for texts that differ in words cover only such texts. Fewer are returned if at least 10 have the same
    length; if no 10 do, the lengths are as equal as possible. Texts with punctuation are used only if there are not
    10 of one length without, since a rewriter may or may not split it off.

    >>> of_equal_length(["a b", "to rome", "a", "x y z", "A b"], 2)
    ['a b', 'to rome']
    """
    different = {tuple(tokenise(text)): text for text in reversed(texts) if text.split()}
    plain = {words: text for words, text in different.items() if len(words) == len(PARTS.findall(text))}
    if max(Counter(map(len, plain)).values(), default=0) >= FEWEST:
        different = plain
    order = sorted(different, key=lambda words: (len(words), hashlib.sha256(" ".join(words).encode()).digest()))
    common = Counter(map(len, order))
    alike = max(common.values(), default=0)
    number = min(number, alike if alike >= FEWEST else len(order))
    if number < 2:
        return []

    def uneven(begin: int) -> tuple[int, int]:
        """How much the lengths of the texts from here on differ; ties go to the most frequent length."""
        shortest, longest = len(order[begin]), len(order[begin + number - 1])
        return longest - shortest, -common[shortest]

    begin = min(range(len(order) - number + 1), key=uneven)
    chosen = set(order[begin : begin + number])
    return [different[words] for words in dict.fromkeys(tuple(tokenise(text)) for text in texts) if words in chosen]


def _tokens(text: str) -> list[str]:
    return [*tokenise(text), END]


def _different(candidates: Sequence[str]) -> tuple[str, ...]:
    names = tuple(candidates)
    if len(set(names)) != len(names) or len(names) < 2:
        raise InputError(f"an attack needs 2 candidates or more, all different, got {len(names)}")
    return names


def _normalised(logs: Floats) -> Floats:
    """Log-probabilities that add up to 1 in each row; equal ones where no candidate is possible."""
    possible = np.isfinite(logs).any(axis=1, keepdims=True)
    logs = np.where(possible, logs, 0.0)
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))
