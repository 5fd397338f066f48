"""Membership inference: it finds what a model remembers, and blames no model that remembers nothing."""

import json
import math

import numpy as np
import pytest

from dpassay.errors import InputError
from dpassay.text.corpora.corpus import split, write_corpus
from dpassay.text.corpora.flights import flights, known_words
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.training import EpochPlan as Steps
from dpassay.text.rewriters.vectors.adept import SHARES
from dpassay.text.rewriters.vectors.adept import train as autoencoder
from dpassay.training.canaries.membership import TrainedSubject, apart, grouped, in_steps, membership, of_scores
from dpassay.training.federated import RoundPlan
from dpassay.training.run import train
from dpassay.training.settings import Latent, Settings
from dpassay.training.units import gathered
from statistics_helper import frequency_p_value, generator, require

SMALL = {"embedding": 16, "hidden": 16, "rate": 0.5}


def settings(privacy, rounds, **more):
    return Settings(privacy, plan=RoundPlan(rounds=rounds, batch=4, server_rate=0.02), **{**SMALL, **more})


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A language model that has learned 40 sentences by heart, and as many that it never saw."""
    place = tmp_path_factory.mktemp("lm") / "m"
    said = [Utterance(text) for text in dict.fromkeys(u.text for u in flights(120))]
    members, others = said[::2][:40], said[1::2][:40]
    train(members, place, settings("none", 100), vocabulary=known_words(), held_out=["to rome"])
    return place, members, others


def test_a_model_gives_away_what_it_learned_by_heart(learned):
    place, members, others = learned
    found = membership(TrainedSubject.of(place), grouped(members, "none"), grouped(others, "none"))
    assert (found.trials, found.epsilon, found.allowed) == (40, None, None)
    assert found.interval[0] > 0.5
    assert found.measured["area_under_roc"] > 0.8
    assert found.lower > 0


def test_the_command_attacks_a_trained_model(here, learned, tmp_path):
    place, members, others = learned
    for name, said in (("in.jsonl", members), ("out.jsonl", others)):
        write_corpus(said, tmp_path / name)
    code, out, _ = here(
        *(attack := ("attack", "--model", place, "--corpus", tmp_path / "in.jsonl")),
        *(others := ("--others", tmp_path / "out.jsonl", "--json")),
        "--at-random",
    )
    (found,) = json.loads(out)["attacks"]
    assert (code, found["attack"], found["trials"], found["refuted"]) == (0, "membership", 40, False)
    assert found["epsilon"]["at_least"] > 0
    (found,) = json.loads(here(*attack, *others)[1])["attacks"]
    assert (found["success"]["lower"] > 0.5, found["epsilon"]["at_least"]) == (True, 0)
    code, _, err = here(*attack, "--at-random")
    assert (code, "--at-random is for the texts of --others" in err) == (2, True)


class Topical(TrainedSubject):
    """A model that remembers nothing, and finds some texts likelier than others, as any model does."""

    def scores(self, groups):
        return np.array([float(group[0].text == "common words") for group in groups])


def test_texts_of_another_kind_refute_no_guarantee():
    held = {"epsilon": {"upper": 1.0}, "delta": 1e-5}
    subject = Topical(None, "lm", {"privacy": "user", "guarantee": held})
    members, others = [[Utterance("common words")]] * 100, [[Utterance("rare words")]] * 100
    assert membership(subject, members, others).refuted  # as it would be if chance had divided them
    found = membership(subject, members, others, at_random=False)
    assert (found.success, found.lower, found.allowed, found.refuted) == (1.0, 0.0, None, False)
    assert "nothing is shown about epsilon" in found.notes[0]


def test_scores_that_know_nothing_show_nothing():
    """Of 200 models that remember nothing at most one in twenty is said to remember something, but for chance."""
    name = "membership of nobody"
    rng, shown = generator(name), 0
    for seed in range(200):
        found = of_scores(rng.normal(size=60), rng.normal(size=80), None, 1e-5, 0.05, seed)
        shown += found.lower > 0
    require(name, frequency_p_value(shown, 200, 0.05) if shown > 10 else 1.0)


def test_equal_scores_are_no_help():
    name = "membership by equal scores"
    found = of_scores(np.zeros(4000), np.zeros(4000), 1.0, 0.0, seed=int(generator(name).integers(2**31)))
    require(name, frequency_p_value(found.right, 4000, 0.5))
    assert (found.measured["area_under_roc"], found.refuted) == (0.5, False)


def test_perfect_guesses_show_half_of_what_pairs_allow():
    """A pair is two neighbours apart: what it shows is shown for 2ε. By point 1 of one-run, p^r ≤ α for all r named."""
    found = of_scores(np.ones(1000), np.zeros(1000), 0.5, 0.0)
    assert found.right == 1000
    most = math.log(1 / (0.05 ** (-1 / 1000) - 1))  # of the test with α undivided and all pairs named
    assert 0.5 * most < 2 * found.lower <= most
    assert found.refuted


def test_several_steps_are_group_privacy():
    found = in_steps(0.5, 1e-6, 3)  # the numbers of docs/proofs/group.md
    assert (found.epsilon, found.delta) == (1.5, pytest.approx(5.36700309915917e-6, rel=1e-12))
    assert in_steps(50.0, 1e-5, 2).delta < 1  # which is never rejected


@pytest.mark.parametrize("privacy", ["example", "user"])
def test_members_are_those_that_training_used(tmp_path, privacy):
    said = flights(200)
    result = train(said, tmp_path / "m", settings(privacy, 2, noise_multiplier=1.0), vocabulary=known_words())
    subject = TrainedSubject.of(tmp_path / "m")
    members, others = subject.divided(said)
    assert sorted(u.text for group in others for u in group) == sorted(result.units.held_out)
    assert sorted(u.text for group in members for u in group) == sorted(gathered(said, privacy).texts)
    found = membership(subject, members, others)
    assert found.epsilon == result.statement["guarantee"]["epsilon"]["upper"]
    most = max(len(group) for group in (*members, *others))
    assert found.steps == (2 if privacy == "user" else 2 * most)  # few users: all of their sentences count
    assert not found.refuted


def test_members_of_an_autoencoder_are_those_of_its_split(tmp_path):
    said = flights(60)
    members, *_ = split(said, 3, SHARES)
    autoencoder([u.text for u in members], [], tmp_path / "m", Steps(2, 4, seed=3), latent=3, hidden=4, embedding=4)
    subject = TrainedSubject.of(tmp_path / "m")
    inside, outside = subject.divided(said)
    assert [group[0] for group in inside] == members
    assert len(inside) + len(outside) == 60
    assert membership(subject, inside, outside).trials == len(outside)
    with pytest.raises(InputError, match="give the corpus that it was trained on"):
        subject.divided(flights(100))
    with pytest.raises(InputError, match="texts that it was not"):
        membership(subject, inside, [])


class Known(TrainedSubject):
    """A model with example privacy, in which all groups score alike."""

    def scores(self, groups):
        return np.zeros(len(groups))


def test_which_groups_count_does_not_depend_on_who_is_in():
    """By point 7 of one-run the two of a pair may be swapped: the largest group that counts must stay the same."""
    held = {"epsilon": {"upper": 1.0}, "delta": 1e-5}
    subject = Known(None, "lm", {"privacy": "example", "guarantee": held})
    said = Utterance("a")
    members, others = [[said]] * 101 + [[said] * 2] * 20, [[said]] * 100 + [[said] * 2] * 21
    before = membership(subject, members, others).steps
    assert membership(subject, [*members[1:], others[-1]], [*others[:-1], members[0]]).steps == before
    assert membership(subject, [*members[:-1], others[0]], [*others[1:], members[-1]]).steps == before


def test_a_statement_that_is_missing_is_not_a_model_without_privacy(tmp_path):
    said, small = flights(60), {"noise_multiplier": 1.0}
    for name, more in (("lm", {}), ("adept", {"autoencoder": Latent(2)})):
        train(said, tmp_path / name, settings("user", 1, **small, **more), vocabulary=known_words())
        (tmp_path / name / "statement.json").unlink()
    assert TrainedSubject.of(tmp_path / "adept").guarantee[0] > 0  # model.json has the statement too
    with pytest.raises(InputError, match=r"statement\.json is missing"):
        TrainedSubject.of(tmp_path / "lm")


def test_what_is_not_guaranteed_is_said(learned):
    place, members, others = learned
    void = {
        "guarantee": None,
        "none_because": "the noise is known",
        "otherwise": {"epsilon": {"upper": 1.0}, "delta": 0},
    }
    found = membership(Known(None, "lm", {"privacy": "user", **void}), [members[:1]] * 3, [others[:1]] * 3)
    assert found.epsilon == 1.0
    assert any("nothing is guaranteed: the noise is known" in sentence for sentence in found.notes)
    (unit,) = (one for one in membership(TrainedSubject.of(place), [members] * 2, [others] * 2).notes if "1e-05" in one)
    assert "for one group of texts" in unit
    with pytest.raises(InputError, match="2 of each or more, got 1 and 2"):
        membership(TrainedSubject.of(place), [members], [others] * 2)


def test_a_seed_is_not_negative():
    with pytest.raises(InputError, match="seed must be a whole number, 0 or more, got -1"):
        settings("none", 1, seed=-1)


def test_texts_that_the_model_was_trained_on_are_no_strangers():
    said = [Utterance("fly to rome", user="a"), Utterance("to oslo", user="b")]
    others = [Utterance("Fly  to Rome", user="c"), Utterance("a flight", user="A"), *(Utterance(f"{n}") for n in "123")]
    left, known = apart(said, others, "none")
    assert ([u.text for u in left], known) == (["a flight", "1", "2", "3"], 1)
    assert [u.text for u in apart(said, [*others, Utterance("x", user="b")], "user")[0]] == ["a flight", "1", "2", "3"]
    with pytest.raises(InputError, match="2 of the 2 texts of --others are in --corpus too"):
        apart(said, said, "none")
