"""What a corpus consists of: utterances, their lengths, the vocabulary, and the size of the search space."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.words import tokenise


@dataclass(frozen=True)
class CorpusStatistics:
    """Counts of a corpus. Words are in lower case and split at white space, as the models here read them.

    `different` counts utterances that differ as sequences of words. `split_vocabulary` counts words that are also split
    before apostrophes ("what's" is "what" and "'s"), as many published counts are.
    """

    utterances: int
    different: int
    shortest: int
    mean: float
    longest: int
    vocabulary: int
    split_vocabulary: int

    @property
    def log10_search_space(self) -> float:
        """log₁₀ of vocabulary^longest: how many sequences of the longest length there are.

        >>> round(CorpusStatistics(2, 2, 1, 1.5, 2, 10, 10).log10_search_space, 12)
        2.0
        """
        return self.longest * math.log10(self.vocabulary) if self.longest else 0.0


def statistics(utterances: Iterable[Utterance]) -> CorpusStatistics:
    """Count a corpus, reading it once.

    >>> found = statistics([Utterance("What's new"), Utterance("what's  NEW"), Utterance("fly to rome")])
    >>> found.utterances, found.different, found.shortest, found.longest, found.vocabulary, found.split_vocabulary
    (3, 2, 2, 3, 5, 6)
    """
    different: set[str] = set()
    words: set[str] = set()
    number, total, shortest, longest = 0, 0, math.inf, 0
    for utterance in utterances:
        read = tokenise(utterance.text)
        number, total = number + 1, total + len(read)
        shortest, longest = min(shortest, len(read)), max(longest, len(read))
        different.add(" ".join(read))
        words.update(read)
    if not number:
        raise InputError("there are no utterances to count: give a corpus with at least one")
    split = {part for word in words for part in word.replace("'", " '").split()}
    return CorpusStatistics(number, len(different), int(shortest), total / number, longest, len(words), len(split))
