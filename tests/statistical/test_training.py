"""Whether private training draws its units and its noise from the stated distributions."""

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from dpassay.text.corpora.flights import flights, known_words
from dpassay.training.aggregation import PerUnit
from dpassay.training.networks.by_name import make_trainable
from dpassay.training.randomness import Keyed, SeededNoise, make_randomness
from dpassay.training.run import Settings, TrainingRun
from dpassay.training.units import gathered
from statistics_helper import cdf_p_value, frequencies_p_value, generator, require

CPU = torch.device("cpu")
MULTIPLIER, CLIP = 1.5, 0.2


def noise_of_a_round(privacy, source, embedding, monkeypatch, **more):
    """What a round adds to the mean update when nobody takes part, in units of z."""
    settings = Settings(
        privacy, noise_multiplier=MULTIPLIER, clip=CLIP, noise_source=source, embedding=embedding, hidden=8, **more
    )
    units = gathered(flights(60), privacy)
    run = TrainingRun(settings, units, make_trainable(units.texts, known_words(), settings, CPU), CPU)
    engine = run.engine(make_randomness(source, 5, bytes(32), CLIP))
    found = []
    if privacy == "example":
        monkeypatch.setattr(PerUnit, "drawn", lambda *_: [])
        step = engine.optimiser.original_optimizer.step
        monkeypatch.setattr(
            engine.optimiser.original_optimizer,
            "step",
            lambda *_: (found.append(torch.cat([p.grad.flatten() for p in engine.named.values()])), step())[1],
        )
    else:
        engine.draw = lambda *_: []
        monkeypatch.setattr(engine.server, "step", lambda mean, _: found.append(mean))
    engine.round(0)
    return found[0].double().numpy() / MULTIPLIER, run


def check_noise(name, noise, run, off=1.05):
    """A deviation that is wrong by a factor `off`, or σ² for σ, is found."""
    assert len(noise) == run.trainable.sizes.weights
    require(name, cdf_p_value(noise, ndtr))
    with pytest.raises(AssertionError):
        require(name, cdf_p_value(noise * off, ndtr))


def test_noise_of_user_privacy(monkeypatch):
    name = "training noise, user"
    check_noise(name, *noise_of_a_round("user", "torch", 64, monkeypatch))


def test_noise_of_user_entity_privacy(monkeypatch):
    name = "training noise, user and entity"
    check_noise(name, *noise_of_a_round("user-entity", "torch", 64, monkeypatch))


def test_noise_of_example_privacy(monkeypatch):
    name = "training noise, example"
    check_noise(name, *noise_of_a_round("example", "torch", 64, monkeypatch))


def test_noise_from_a_key(monkeypatch):
    name = "training noise of a key"
    check_noise(name, *noise_of_a_round("entity", "os", 64, monkeypatch))


def test_noise_of_opendp(monkeypatch):
    name = "training noise of opendp"
    check_noise(name, *noise_of_a_round("user", "opendp", 32, monkeypatch), off=1.1)  # it has fewer draws


def participation_p_value(source):
    """How often each of 40 units takes part in 2,000 rounds, each two neighbours together, and one twice running."""
    aggregation, rounds = PerUnit(40, 0.3, 1.0), 2000
    there = np.zeros((rounds, 40), dtype=bool)
    for number in range(rounds):
        there[number, aggregation.drawn(source, number)] = True
    alone, both = there.sum(0), (there[:, 1:] & there[:, :-1]).sum(0)
    later = (there[1:] & there[:-1])[::2].sum(0)  # every second pair of rounds: these are independent
    pairs = [(alone, rounds, 0.3), (both, rounds, 0.09), (later, rounds // 2, 0.09)]
    return min(1.0, 3 * min(frequencies_p_value(s, n, np.full(len(s), p)) for s, n, p in pairs))


def test_units_drawn_by_numpy():
    name = "training units by numpy"
    require(name, participation_p_value(SeededNoise(3)))


def test_units_drawn_from_a_key():
    name = "training units by a key"
    require(name, participation_p_value(Keyed(generator(name).bytes(32))))
