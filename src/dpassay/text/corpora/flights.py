"""Utterances about flights from the grammar in flights.toml: fourteen intents, about 900 words, two dialects.

The dialect is the private attribute. It is drawn by a fair coin, independently of the intent, and shows in the choice
of words of most utterances but not all: some contain no word that gives it away, and some speakers borrow from the
other dialect. The user is one of 1,000 speakers, half of them of each dialect; the entities are the towns and the
airlines. With `names`, a third of the utterances name a passenger too, who is then an entity.
"""

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance

DIALECTS = ("british", "american")
BORROWED = 0.03  # how often a speaker takes the other dialect's word
SHORTEST, LONGEST = 3, 25
SPEAKERS = 1000
SENSITIVE = ("town", "carrier")
NAMED = 1 / 3  # of the utterances of `bookings` have a passenger's name

_GRAMMAR = tomllib.loads(Path(__file__).with_name("flights.toml").read_text(encoding="utf-8"))
INTENTS: dict[str, int] = _GRAMMAR["intents"]
RULES = {name: "|".join(alternatives) for name, alternatives in _GRAMMAR["rules"].items()}
LISTS = {name: tuple(words) for name, words in _GRAMMAR["words"].items()}
FIRST, LAST, SAID = (tuple(_GRAMMAR["names"][name]) for name in ("first", "last", "said"))
REPEATABLE = {"digit", "few", "hour"}


def flights(n: int = 5000, seed: int = 0, names: bool = False) -> list[Utterance]:
    """Utterances of travellers, each with its intent, its speaker and, as attribute, the speaker's dialect.

    With the same seed, a longer corpus begins with the shorter one, and `names` only adds to the texts.

    >>> flights(3) == flights(500)[:3]
    True
    >>> flights(2)[1].entities
    ('graz',)
    """
    if n < 0:
        raise InputError(f"the number of utterances must be 0 or more, got {n}")
    return list(islice(endless(seed, names), n))


def endless(seed: int = 0, names: bool = False) -> Iterator[Utterance]:
    """The same utterances, generated one after another without end.

    >>> next(endless()) == flights(1)[0]
    True
    """
    rng = random.Random(f"dpassay flights {seed}")  # only rng.random() is guaranteed never to change
    people = random.Random(f"dpassay speakers {seed}")
    passengers = random.Random(f"dpassay passengers {seed}")
    while True:
        utterance = _drawn(rng, people)
        yield _naming(utterance, passengers) if names else utterance


def known_words() -> list[str]:
    """All words that the grammar and its names can produce: known to anyone who has the package.

    >>> {"rome", "zephyr", "okafor", "cheers"} <= set(known_words())
    True
    """
    text = " ".join(
        (*RULES.values(), *(entry for entries in LISTS.values() for entry in entries), *FIRST, *LAST, *SAID)
    )
    return sorted({"a", "an", *re.findall(r"[a-z']+", re.sub(r"\{\w*\}", " ", text))})


def _drawn(rng: random.Random, people: random.Random) -> Utterance:
    intent = _intent(rng.random() * sum(INTENTS.values()))
    dialect = DIALECTS[int(rng.random() * len(DIALECTS))]
    # A speaker has one dialect. More talkative speakers have lower numbers.
    number = int(people.random() ** 1.5 * (SPEAKERS // 2))
    while True:
        used: dict[str, str] = {}
        words = _said(f"{{hello}} {{{intent}}} {{bye}}", rng, dialect, used).split()
        if SHORTEST <= len(words) <= LONGEST:
            entities = tuple(entry for entry, name in used.items() if name in SENSITIVE)
            return Utterance(_with_articles(" ".join(words)), intent, dialect, f"{dialect}-{number:03}", entities)


def _naming(utterance: Utterance, rng: random.Random) -> Utterance:
    """The utterance, or in a third of the cases one that names a passenger."""
    if rng.random() >= NAMED:
        return utterance
    name = f"{_one_of(list(FIRST), rng)} {_one_of(list(LAST), rng)}"
    text = f"{utterance.text} {_one_of(list(SAID), rng).format(name)}"
    return replace(utterance, text=text, entities=(*utterance.entities, name))


def _intent(point: float) -> str:
    """The intent at a point between 0 and 1, where each intent covers an interval as long as its share.

    >>> _intent(23.9), _intent(24.0), _intent(99.9)
    ('flight', 'airfare', 'city')
    """
    for intent, share in INTENTS.items():
        if point < share:
            return intent
        point -= share
    raise AssertionError("the point lies past the last intent")


def _said(rule: str, rng: random.Random, dialect: str, used: dict[str, str]) -> str:
    """Words for a rule.

    >>> _said("<an aeroplane/an airplane> to (rome|rome)", random.Random(1), "american", {})
    'an airplane to rome'
    """

    def choice(match: re.Match[str]) -> str:
        return _one_of(match[1].split("|"), rng)

    def in_dialect(match: re.Match[str]) -> str:
        own = (dialect == DIALECTS[0]) != (rng.random() < BORROWED)
        return match[1] if own else match[2]

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        return _listed(name, rng, used) if name in LISTS else _said(f"({RULES[name]})", rng, dialect, used)

    found = 1
    while found:  # innermost brackets first
        rule, found = re.subn(r"\(([^()]*)\)", choice, rule)
    rule = re.sub(r"<([^/<>]*)/([^/<>]*)>", in_dialect, rule)
    return re.sub(r"\{(\w+)\}", filled, rule)


def _listed(name: str, rng: random.Random, used: dict[str, str]) -> str:
    """An entry of a list that was not used yet, so that nobody flies from Rome to Rome."""
    entry = _one_of([entry for entry in LISTS[name] if entry not in used], rng)
    if name not in REPEATABLE:
        used[entry] = name
    return entry


def _one_of(options: list[str], rng: random.Random) -> str:
    return options[int(rng.random() * len(options))]


def _with_articles(text: str) -> str:
    """Write `an` before a vowel.

    >>> _with_articles("a airbus or a one way ticket")
    'an airbus or a one way ticket'
    """
    return re.sub(r"\ba(?= [aeiou])(?! one\b)", "an", text)
