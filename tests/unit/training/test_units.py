"""Which sentences belong to which unit, by rules that look at one sentence alone."""

import pytest

from dpassay.errors import InputError
from dpassay.text.corpora.flights import flights
from dpassay.text.corpora.utterance import Utterance
from dpassay.training.units import gathered

SAID = [
    Utterance("to rome", user="ann", entities=("Rome",)),
    Utterance("from rome", user="bob", entities=("rome",)),
    Utterance("oslo to rome", user="cy", entities=("oslo", "rome")),
    Utterance("hello", user="ann"),
    Utterance("hello", user="bob"),
    Utterance("oslo twice oslo", user="ann", entities=("oslo", "OSLO")),
]


def texts_of(units):
    return [sorted(units.texts[i] for i in cell) for cell in units.cells]


def test_users_have_all_their_sentences():
    units = gathered(SAID, "user", held_out=[])
    assert units.names == ("ann", "bob", "cy")
    assert texts_of(units) == [["hello", "oslo twice oslo", "to rome"], ["from rome", "hello"], ["oslo to rome"]]
    assert units.left_out == 0


def test_entities_have_theirs_and_sentences_with_two_are_left_out():
    units = gathered(SAID, "entity", held_out=[])
    assert sorted(texts_of(units)) == [["from rome", "to rome"], ["hello"], ["hello"], ["oslo twice oslo"]]
    assert units.left_out == 1


def test_cells_of_users_and_entities_and_a_roster_with_those_who_lost_all():
    units = gathered(SAID, "user-entity", held_out=[])
    assert units.names == ("ann", "bob", "cy")  # cy has no sentence that is used
    assert sorted(texts_of(units)) == [["from rome"], ["hello"], ["hello"], ["oslo twice oslo"], ["to rome"]]
    assert {units.names[u] for u in units.user_of} == {"ann", "bob"}
    assert len(set(units.entity_of)) == 4  # rome, oslo, and two sentences of their own


def test_examples_are_sentences():
    units = gathered(SAID, "example", held_out=[])
    assert all(len(cell) == 1 for cell in units.cells)
    assert units.count == len(SAID)


@pytest.mark.parametrize("privacy", ["user", "entity", "user-entity", "example"])
def test_one_user_less_changes_nothing_of_the_others(privacy):
    said = flights(300)
    gone = said[0].user
    whole, less = (gathered(some, privacy) for some in (said, [u for u in said if u.user != gone]))
    theirs = {u.text for u in said if u.user == gone}
    assert [text for text in whole.held_out if text not in theirs] == [
        text for text in less.held_out if text not in theirs
    ]
    assert sorted(set(whole.texts) - theirs) == sorted(set(less.texts) - theirs)


def test_about_a_tenth_of_the_users_is_held_out():
    units = gathered(flights(3000), "user")
    held = 1 - units.count / len({u.user for u in flights(3000)})
    assert 0.05 < held < 0.15


@pytest.mark.parametrize(
    ("said", "privacy", "message"),
    [
        ([Utterance("a"), Utterance("b", user="x")], "user", "1 of 2 utterances have no user, and user privacy"),
        ([Utterance("a"), Utterance("b")], "user-entity", "2 of 2 utterances have no user"),
        ([Utterance("a", user="x"), Utterance("b", user="x")], "user", "1 user is left to train on"),
        ([Utterance("a", entities=("x",)), Utterance("b", entities=("x", "y"))], "entity", "'x' is in every sentence"),
        ([Utterance("a", entities=("x", "y")), Utterance("b", entities=("z", "y", "w"))], "entity", "every sentence"),
        ([Utterance("a", entities=("x", "y")), Utterance("b", entities=("z", "w"))], "entity", "no sentence is left"),
        (SAID, "sentence", "unknown privacy 'sentence'"),
    ],
)
def test_a_corpus_that_does_not_fit_is_refused(said, privacy, message):
    with pytest.raises(InputError, match=message):
        gathered(said, privacy, held_out=[])


def test_an_entity_in_most_sentences_is_worth_a_warning():
    said = [Utterance(str(i), entities=("x",) if i else ()) for i in range(4)]
    (warning,) = gathered(said, "entity", held_out=[]).warnings
    assert "'x' is in 3 of 4 sentences" in warning
