"""What happens to words that a mechanism does not handle: words outside the vocabulary, stop words, numbers."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Literal, get_args

from dpassay.errors import InputError
from dpassay.values import dataclass
from dpassay.words.vocabulary import Vocabulary

Rule = Literal["copied", "dropped", "replaced"]
RULES: tuple[str, ...] = get_args(Rule)
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*")
# The most frequent words of English texts, which every list of stop words contains.
_LIST = (
    "a about after all also an and any are as at be been but by can could did do does for from had has have he her "
    "him his how i if in into is it its just me more my no not now of on only or other our out over she should so "
    "some such than that the their them then there these they this those to too under up very was we were what when "
    "where which while who whom why will with would you your"
)
STOP_WORDS = frozenset(_LIST.split())
_UNHEARD = "zzyzx"


@dataclass(frozen=True)
class Rules:
    """A rule for each kind of word; None: it is treated like every other word, or there is no such word.

    copied: it is output unchanged. dropped: nothing is output. replaced: by a word of the vocabulary drawn uniformly.

    >>> Rules(unknown="kept")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: unknown words are copied, dropped or replaced, got 'kept'
    """

    unknown: Rule | None = None
    stop_words: Rule | None = None
    numbers: Rule | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            if given is not None and given not in RULES:
                kind = KINDS[field.name]
                raise InputError(f"{kind} are copied, dropped or replaced, got {given!r}")

    def __str__(self) -> str:
        """A description of the rules that are set.

        >>> print(Rules(unknown="copied", numbers="dropped"))
        unknown words copied, numbers dropped
        """
        stated = ((KINDS[field.name], getattr(self, field.name)) for field in fields(self))
        return ", ".join(f"{kind} {rule}" for kind, rule in stated if rule is not None)

    def example(self, vocabulary: Vocabulary) -> tuple[str, str, str, str] | None:
        """Two words that a rule tells apart with certainty: the kind of word, its rule, and the two words.

        Two copied words are output unchanged. A dropped word gives nothing, while another word gives a word.

        >>> import numpy as np
        >>> Rules(stop_words="copied").example(Vocabulary(("cat", "dog"), np.eye(2)))
        ('stop words', 'copied', 'the', 'of')
        """
        for field in fields(self):
            rule = getattr(self, field.name)
            if rule not in ("copied", "dropped"):
                continue
            if field.name == "unknown":
                unheard = (_UNHEARD * n for n in range(1, len(vocabulary) + 3))
                first, second = [word for word in unheard if word not in vocabulary][:2]
            else:
                first, second = ("the", "of") if field.name == "stop_words" else ("1984", "2001")
                first, second = self._known(field.name, rule, vocabulary) or (first, second)
            if rule == "dropped":
                second = next((word for word in vocabulary.words if not self._stated(word)), second)
                if self.rule_of(second, vocabulary) == "dropped":
                    continue  # every word is dropped: nothing is ever output
            return KINDS[field.name], rule, first, second
        return None

    def _known(self, kind: str, rule: str, vocabulary: Vocabulary) -> tuple[str, str] | None:
        """Words of a kind that have vectors, and so a distance: two copied ones, or a dropped one and any other."""
        words = [word for word in vocabulary.words if kind_of(word) == kind]
        if rule == "dropped":
            return (words[0], "of" if kind == "stop_words" else "2001") if words else None
        return (words[0], words[1]) if len(words) > 1 else None

    @property
    def replaces_others(self) -> bool:
        """Whether some words outside the vocabulary are replaced uniformly: there are other numbers than its own."""
        return "replaced" in (self.unknown, self.stop_words, self.numbers)

    def _stated(self, word: str) -> bool:
        return kind_of(word) is not None and getattr(self, str(kind_of(word))) is not None

    def rule_of(self, word: str, vocabulary: Vocabulary) -> Rule | None:
        """The rule that applies to a word: the rule for its kind takes precedence over the one for unknown words.

        >>> import numpy as np
        >>> rules, words = Rules("dropped", numbers="copied"), Vocabulary(("cat", "7"), np.eye(2))
        >>> [rules.rule_of(word, words) for word in ("cat", "dog", "7", "8")]
        [None, 'dropped', 'copied', 'copied']
        """
        kind = kind_of(word)
        rule: Rule | None = None if kind is None else getattr(self, kind)
        return rule or (None if word in vocabulary else self.unknown)

    def replaced(self, vocabulary: Vocabulary) -> tuple[int, ...]:
        """The places of words of the vocabulary that are replaced uniformly.

        >>> import numpy as np
        >>> Rules(numbers="replaced").replaced(Vocabulary(("cat", "7"), np.eye(2)))
        (1,)
        """
        found = (i for i, word in enumerate(vocabulary.words) if self.rule_of(word, vocabulary) == "replaced")
        return tuple(found)


KINDS = {"unknown": "unknown words", "stop_words": "stop words", "numbers": "numbers"}


def kind_of(word: str) -> str | None:
    """Whether a word is a number or a stop word.

    >>> kind_of("3.5"), kind_of("The"), kind_of("cat")
    ('numbers', 'stop_words', None)
    """
    if NUMBER.fullmatch(word):
        return "numbers"
    return "stop_words" if word.lower() in STOP_WORDS else None
