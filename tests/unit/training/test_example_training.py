"""Opacus' per-sentence gradients lead to the same weights as our own units of one sentence each."""

import torch

from dpassay.text.corpora.flights import flights, known_words
from dpassay.training.federated import Federated, RoundPlan, Sentences, Server, StackedTraining
from dpassay.training.networks.by_name import make_trainable
from dpassay.training.randomness import SeededNoise
from dpassay.training.run import Settings, TrainingRun
from dpassay.training.units import gathered

CPU = torch.device("cpu")


class Opposite(SeededNoise):
    """The same noise with the other sign: an update is a gradient's opposite."""

    def normal(self, *given):
        return -super().normal(*given)


def test_opacus_and_our_own_averaging_agree():
    settings = Settings(
        "example", noise_multiplier=0.5, rate=0.6, clip=0.3, embedding=4, hidden=4, plan=RoundPlan(3, batch=1), seed=2
    )
    units = gathered(flights(300), "example")  # more sentences than are in memory at once
    first, second = (make_trainable(units.texts, known_words(), settings, CPU) for _ in range(2))
    run = TrainingRun(settings, units, first, CPU)
    by_opacus = run.engine(SeededNoise(1))
    weights = {name: p.data for name, p in second.network.named_parameters()}
    sentences = Sentences(second.numbers(units.texts), units.cells, settings.plan)
    server = Server(weights, settings.plan)
    ours = Federated(
        weights, StackedTraining(CPU), sentences, server, Opposite(1), run.aggregation.drawn, run.aggregation,
        run.account.deviation,
    )  # fmt: skip
    for number in range(3):
        drawn = by_opacus.round(number), ours.round(number)
        assert drawn[0] == drawn[1] > 128
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor, by_opacus.weights[name], rtol=1e-3, atol=2e-5)


def test_a_round_without_a_sentence_has_noise_all_the_same(monkeypatch):
    settings = Settings("example", noise_multiplier=1.0, rate=0.1, embedding=3, hidden=3)
    units = gathered(flights(20), "example")
    run = TrainingRun(settings, units, make_trainable(units.texts, known_words(), settings, CPU), CPU)
    engine = run.engine(SeededNoise(1))
    monkeypatch.setattr(type(run.aggregation), "drawn", lambda *_: [])
    before = {name: tensor.clone() for name, tensor in engine.weights.items()}
    assert engine.round(0) == 0
    assert all((before[name] != tensor).any() for name, tensor in engine.weights.items())
