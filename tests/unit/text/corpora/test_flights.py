"""The shipped grammar: the same for the same seed, varied, of the promised size; the dialect mostly shows."""

import os
import re
import subprocess
import sys
from collections import Counter
from math import log

import pytest

from dpassay.errors import InputError
from dpassay.text.corpora.flights import DIALECTS, INTENTS, LISTS, RULES, flights, known_words


@pytest.fixture(scope="module")
def many():
    return flights(5000)


def words_of(utterances):
    return {word for utterance in utterances for word in utterance.text.split()}


@pytest.mark.parametrize("fewer", [0, 1, 7, 200])
def test_more_utterances_begin_with_the_same_ones(fewer):
    assert flights(fewer, seed=3) == flights(300, seed=3)[:fewer]


def test_a_seed_says_which_utterances():
    assert flights(50, seed=1) == flights(50, seed=1)
    assert flights(50, seed=1) != flights(50, seed=2)


def test_another_process_draws_the_same_ones():
    code = "from dpassay.text.corpora.flights import flights; print(flights(40, 5))"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == str(flights(40, 5))


def test_a_negative_number_is_refused():
    with pytest.raises(InputError, match="0 or more, got -1"):
        flights(-1)


def test_the_vocabulary_has_about_900_words(many):
    assert 850 <= len(words_of(many)) <= 950
    assert 850 <= len(words_of(flights(12000, seed=9))) <= 950


def test_utterances_are_lower_case_words_of_a_sensible_number(many):
    lengths = [len(utterance.text.split(" ")) for utterance in many]
    assert all(re.fullmatch(r"[a-z']+( [a-z']+)*", utterance.text) for utterance in many)
    assert min(lengths) >= 3
    assert max(lengths) <= 25
    assert 10 <= sum(lengths) / len(lengths) <= 13


def test_at_least_95_percent_are_distinct(many):
    assert len({utterance.text for utterance in many}) >= 0.95 * len(many)


def test_every_intent_occurs_about_as_often_as_stated(many):
    """Six standard deviations of a binomial: chance alone fails this for fewer than 1 seed in 10 million."""
    counts = Counter(utterance.label for utterance in many)
    assert counts.keys() == INTENTS.keys()
    for intent, percent in INTENTS.items():
        share = percent / 100
        assert abs(counts[intent] - share * 5000) <= 6 * (5000 * share * (1 - share)) ** 0.5


def test_the_dialects_are_halves_whatever_the_intent(many):
    """Six standard deviations of a fair coin, for all utterances and for each intent."""
    for intent in [None, *INTENTS]:
        dialects = [u.attribute for u in many if intent in (None, u.label)]
        assert set(dialects) == set(DIALECTS)
        assert abs(dialects.count("british") - len(dialects) / 2) <= 6 * len(dialects) ** 0.5 / 2


def test_the_dialect_shows_in_most_utterances_but_not_in_all(many):
    """A bag of words with smoothed counts (naive Bayes) learns it from 4000 and is right on 80 to 97 in 100."""
    counts = {dialect: Counter() for dialect in DIALECTS}
    for utterance in many[:4000]:
        counts[utterance.attribute].update(set(utterance.text.split()))
    weight = {
        word: log((counts["british"][word] + 0.5) / (counts["american"][word] + 0.5)) for word in words_of(many[:4000])
    }
    right = 0
    for utterance in many[4000:]:
        british = sum(weight.get(word, 0.0) for word in set(utterance.text.split())) > 0
        right += british == (utterance.attribute == "british")
    assert 800 <= right <= 970


def test_each_dialect_has_its_own_words(many):
    british = Counter(w for u in many if u.attribute == "british" for w in u.text.split())
    american = Counter(w for u in many if u.attribute == "american" for w in u.text.split())
    pairs = [("fortnight", "fall"), ("timetable", "schedule"), ("aeroplane", "airplane"), ("hire", "rental")]
    for one, other in pairs:
        assert british[one] > 5 * american[one]
        assert american[other] > 5 * british[other]
    assert sum(american[one] + british[other] for one, other in pairs) > 0  # some speakers borrow


def test_nobody_flies_from_a_town_to_the_same_town(many):
    for utterance in many:
        match = re.search(r"from (\w+) to (\w+)", utterance.text)
        assert match is None or match[1] != match[2]


def test_every_rule_and_list_is_there_and_used():
    named = {name for rule in RULES.values() for name in re.findall(r"\{(\w+)\}", rule)}
    assert named | set(INTENTS) | {"hello", "bye"} == set(RULES) | set(LISTS)
    assert not set(RULES) & set(LISTS)  # a list would hide the rule


@pytest.mark.parametrize("name", RULES)
def test_brackets_are_closed_and_dialects_come_in_pairs(name):
    rule = RULES[name]
    assert rule.count("(") == rule.count(")")
    assert rule.count("<") == rule.count(">") == rule.count("/") == len(re.findall(r"<[^/<>]*/[^/<>]*>", rule))


def test_speakers_have_one_dialect_and_several_utterances(many):
    spoken = Counter(utterance.user for utterance in many)
    assert 900 <= len(spoken) <= 1000
    assert max(spoken.values()) > 4 * sum(spoken.values()) / len(spoken)
    assert all(utterance.user.startswith(utterance.attribute) for utterance in many)


def test_entities_are_the_towns_and_airlines_of_the_text(many):
    known = {entry for name in ("town", "carrier") for entry in LISTS[name]}
    for utterance in many[:1000]:
        padded = f" {utterance.text} "
        assert set(utterance.entities) <= known
        assert all(f" {entity} " in padded for entity in utterance.entities)
        missed = {e for e in known if f" {e} " in padded} - set(utterance.entities)
        assert all(any(m in e for e in utterance.entities) for m in missed)  # a name inside a longer one


def test_bookings_are_the_same_utterances_some_with_a_passenger(many):
    named = flights(5000, names=True)
    assert flights(100, names=True) == named[:100]
    assert all(b.text.startswith(a.text) and b.user == a.user for a, b in zip(many, named, strict=True))
    changed = [b for a, b in zip(many, named, strict=True) if a != b]
    assert 1500 <= len(changed) <= 1830  # a third, within five standard deviations
    assert all(b.entities[-1] in b.text for b in changed)


def test_the_words_of_the_grammar_are_known_without_a_corpus(many):
    assert words_of(flights(5000, names=True)) <= set(known_words())
