"""The generators that a process shares: seeded around each call, put back afterwards; and what a seed is worth."""

import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.mechanisms.seeding import Seeded, SeededDistribution, seed_all, seeded
from dpassay.audit.mechanisms.targets import as_mechanism, describe
from dpassay.audit.storage.replay import replay
from dpassay.pipeline.distributions import Laplace, Shifted
from dpassay.pipeline.parser import parse
from dpassay.report.terminal import seed_words

PAIR = [(0.0, 1.0)]
OPTIONS = {"epsilon": 1, "bits": False, "until_refuted": True}


def of_numpy(x):
    return x + np.random.laplace(scale=0.4)


def of_random(x, n, rng):
    """It has an rng and does without."""
    return [x + random.expovariate(2.5) * random.choice([-1, 1]) for _ in range(n)]


def of_rng(x, n, rng):
    return x + rng.laplace(scale=0.4, size=n)


@pytest.mark.parametrize("mechanism", [of_numpy, of_random])
def test_a_mechanism_with_its_own_randomness_is_said_not_to_replay(mechanism):
    verdict = audit(mechanism, PAIR, **OPTIONS)
    assert verdict.word == "refuted"
    assert not verdict.replays
    assert verdict.to_dict()["replays"] is False
    assert "cannot replay the outputs" in seed_words(verdict)


def test_a_mechanism_that_uses_its_rng_replays():
    verdict = audit(of_rng, PAIR, **OPTIONS)
    assert verdict.replays
    assert seed_words(verdict) == "seed 0"


@pytest.mark.parametrize("mechanism", [of_numpy, of_random])
def test_seeding_all_gives_the_same_counts_again(mechanism, tmp_path):
    path = tmp_path / "audit.json"
    first = audit(mechanism, PAIR, seed_all=True, save=path, **OPTIONS)
    random.seed(99)
    np.random.seed(99)
    again = audit(mechanism, PAIR, seed_all=True, **OPTIONS)
    assert first.replays
    assert (first.runs, first.witness.right) == (again.runs, again.witness.right)
    assert any("as recorded" in said for said in replay(path, mechanism, seed=3).established)


def test_a_recorded_seed_that_says_nothing_is_not_held_against_a_file(tmp_path):
    path = tmp_path / "audit.json"
    audit(of_random, PAIR, save=path, **OPTIONS)
    checked = replay(path, of_random, seed=3)
    assert checked.ok
    assert any("uses its own random source" in said for said in checked.established)


def test_generators_go_on_as_if_nothing_had_been():
    random.seed(1)
    np.random.seed(1)
    expected = random.random(), np.random.random()
    random.seed(1)
    np.random.seed(1)

    def failing(x):
        return random.random() / int(np.random.random())

    with pytest.raises(ZeroDivisionError), seeded(np.random.default_rng(0)):
        failing(0)
    assert (random.random(), np.random.random()) == expected


def test_torch_is_seeded_if_it_is_loaded(monkeypatch):
    done = []
    cuda = SimpleNamespace(is_available=lambda: False, is_initialized=lambda: False)
    stand_in = SimpleNamespace(
        get_rng_state=lambda: "before",
        set_rng_state=lambda state: done.append(("back", state)),
        manual_seed=lambda seed: done.append(("seed", seed)),
        cuda=cuda,
    )
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    with seeded(np.random.default_rng(0)):
        pass
    with seeded(np.random.default_rng(0)):
        pass
    assert done[0][0] == "seed"
    assert done[:2] == done[2:]
    assert done[1] == ("back", "before")


def test_calls_differ_and_what_a_mechanism_is_stays_known():
    rng = np.random.default_rng(0)
    mechanism = seed_all(as_mechanism(of_numpy))
    assert mechanism.sample(0.0, 1, rng) != mechanism.sample(0.0, 1, rng)
    assert describe(mechanism) == describe(as_mechanism(of_numpy))
    assert mechanism.singly

    class Known:
        def sample(self, x, n, rng):
            return x + rng.laplace(size=(n, 1))

        def distribution(self, x):
            return Shifted(Laplace(1.0), np.array([x]))

    assert isinstance(seed_all(Known()), SeededDistribution)
    assert seed_all(Known()).distribution(0.0) == Shifted(Laplace(1.0), np.array([0.0]))
    pipeline = parse("laplace(1)", dim=1)
    assert seed_all(pipeline) is pipeline
    assert not isinstance(seed_all(as_mechanism(of_rng)), SeededDistribution)
    assert isinstance(seed_all(as_mechanism(of_rng)), Seeded)
