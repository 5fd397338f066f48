"""Texts that differ in one word: another word of the text, a word of a vocabulary, or an odd word.

Mechanisms that randomize the words they know often leave other words unchanged: words outside their vocabulary,
stop words, numbers, names, capitals, punctuation. So such words are tried too. Words are separated by white space.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.errors import InputError, escape_control_chars

OWN_PLACES = 128  # places in a text where another of its own words is tried
ODD_PLACES = 4  # places where each odd word is tried
MOST_OF_VOCABULARY = 256  # words of a vocabulary that are tried, spread evenly over it
UNKNOWN = "zxqvkj"
# Unknown to every vocabulary, a stop word, a number, a name, an emoji, a word that looks empty, a very long one.
ODD_WORDS = (UNKNOWN, "the", "48213", "Alice", "🙂", "\u200b", UNKNOWN * 40)

TextPair = tuple[str, str]


def word_pairs(text: str, vocabulary: Sequence[str] = (), odd: bool = True, fewer: bool = False) -> list[TextPair]:
    """A text paired with texts that differ in one word: from its own words first, then odd ones, then others.

    `fewer`: whether a text without one of its words is a neighbor too.

    >>> word_pairs("fly to Rome")[:2]
    [('fly to Rome', 'to to Rome'), ('fly to Rome', 'Rome to Rome')]
    >>> ("fly to Rome", "fly to ROME") in word_pairs("fly to Rome")
    True
    """
    if not isinstance(text, str):
        raise InputError(f"text must be a text, got {text!r:.60}")
    words = text.split()
    if not words:
        raise InputError("the text has no words; give one with at least one word, such as 'book a flight'")
    given = " ".join(words)
    replacements = [*_own(words), *(_odd(words) if odd else ()), *_of_vocabulary(words, vocabulary)]
    replacements += [(place, "") for place in _spread(len(words), ODD_PLACES) if fewer and odd]
    texts = (" ".join([*words[:i], *([other] if other else []), *words[i + 1 :]]) for i, other in replacements)
    found = [(given, other) for other in dict.fromkeys(texts) if other != given]
    if not found:
        raise InputError(
            f"the text {escape_control_chars(given)[:60]!r} has 1 different word, and no other may stand in its place. "
            "Give a longer text, a vocabulary, or pairs"
        )
    return found


def _own(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """In many places, the next and the previous one of the text's distinct words."""
    others = list(dict.fromkeys(words))
    for place in _spread(len(words), OWN_PLACES):
        at = others.index(words[place])
        yield place, others[(at + 1) % len(others)]
        yield place, others[at - 1]


def _odd(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Each odd word in a few places, and the original word there in other cases and with punctuation."""
    number = len(words)
    yield from _in_places(ODD_WORDS, number, ODD_PLACES)
    for change in (str.upper, str.capitalize, str.lower, "{}!".format):
        for i in _spread(number, ODD_PLACES):
            changed = change(words[i])
            if len(changed.split()) == 1:
                yield i, changed


def _of_vocabulary(words: Sequence[str], vocabulary: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Words of the vocabulary: each in as many places as an odd word if they are few, otherwise each in one."""
    chosen = [vocabulary[i] for i in _spread(len(vocabulary), MOST_OF_VOCABULARY)]
    places = min(ODD_PLACES, MOST_OF_VOCABULARY // max(1, len(chosen)))
    yield from _in_places(chosen, len(words), places)


def _in_places(chosen: Sequence[str], number: int, places: int) -> Iterator[tuple[int, str]]:
    """Each word in several places, in rounds, so that a search that must omit pairs still tries each word."""
    for k, word in enumerate(chosen):
        for i in _spread(number, places):
            yield (i + k) % number, word


def _spread(number: int, most: int) -> list[int]:
    """At most `most` of the whole numbers below `number`, evenly spread from the first to the last."""
    return [int(i) for i in np.unique(np.linspace(0, number - 1, min(number, most)).astype(int))] if number else []


def read_vocabulary(vocabulary: Any) -> list[str]:
    """The words of a vocabulary: a list of words, or the name of a file with one word per line.

    >>> read_vocabulary(["yes", "no", "yes"])
    ['yes', 'no']
    """
    if isinstance(vocabulary, str | Path):
        return _checked(_lines(Path(vocabulary)), str(vocabulary))
    if not isinstance(vocabulary, Iterable) or isinstance(vocabulary, bytes):
        raise InputError(f"a vocabulary is a list of words, or a file with one word per line; got {vocabulary!r:.60}")
    return _checked(list(enumerate(vocabulary, start=1)), "the vocabulary")


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; a vocabulary has one word per line") from None
    except (OSError, ValueError) as error:
        raise InputError(f"the vocabulary {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]


def _checked(words: Iterable[tuple[int, Any]], where: str) -> list[str]:
    found = []
    for number, word in words:
        if not isinstance(word, str) or len(word.split()) != 1 or word.split()[0] != word:
            raise InputError(
                f"{where}, entry {number}, is not one word: {escape_control_chars(repr(word))[:60]}. "
                "A vocabulary has one word per line, without spaces"
            )
        found.append(word)
    if not found:
        raise InputError(f"{where} has no words; a vocabulary has one word per line")
    return list(dict.fromkeys(found))
