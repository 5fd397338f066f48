"""Local steps are plain gradient descent, cells go through their sentences in turn, and whole steps change little."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from dpassay.errors import InputError
from dpassay.training.aggregation import PerUnit
from dpassay.training.federated import Federated, RoundPlan, Sentences, Server, StackedTraining
from dpassay.training.networks.language_model import LanguageModel, Sizes
from dpassay.training.randomness import SeededNoise

CPU = torch.device("cpu")
NUMBERS = np.array([[4, 5, 1, 0], [6, 1, 0, 0], [7, 8, 9, 1], [5, 1, 0, 0], [9, 9, 1, 0]])
CELLS = ((0, 1, 2), (3,), (4, 0))


def network():
    torch.manual_seed(3)
    return LanguageModel(Sizes(10, 3, 4))


class Silent(SeededNoise):
    """Coins as ever, and no noise."""

    def normal(self, round_, size, deviation, device):
        return torch.zeros(size, dtype=torch.float32 if self.step is None else torch.float64)


def test_local_steps_are_gradient_descent_on_a_cells_own_sentences():
    model = network()
    weights = {name: p.data.clone() for name, p in model.named_parameters()}
    tables = torch.from_numpy(Sentences(NUMBERS, CELLS, RoundPlan(local_steps=2, batch=2)).table([0, 2], 0))
    found = StackedTraining(CPU).updates(weights, tables, 0.5, 0)
    for cell in range(2):
        own = network()
        for step in range(2):
            texts = tables[cell, step]
            texts = texts[(texts != 0).any(1)]
            loss = cross_entropy(own(texts).flatten(0, 1), texts.flatten(), ignore_index=0)
            own.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in own.parameters():
                    parameter -= 0.5 * parameter.grad
        for name, parameter in own.named_parameters():
            torch.testing.assert_close(found[name][cell], parameter.detach() - weights[name], rtol=1e-4, atol=1e-6)


def test_a_cell_goes_through_its_sentences_in_turn():
    sentences = Sentences(NUMBERS, CELLS, RoundPlan(local_steps=1, batch=2))
    said = [sentences.table([0], round_)[0, 0].tolist() for round_ in range(3)]
    assert said[0] == [[4, 5, 1], [6, 1, 0]]
    assert said[1] == [[7, 8, 9, 1], [4, 5, 1, 0]]
    assert said[2] == [[6, 1, 0, 0], [7, 8, 9, 1]]
    both = sentences.table([0, 1], 0)
    assert both.shape == (2, 1, 2, 3)
    assert both[1, 0].tolist() == [[5, 1, 0], [0, 0, 0]]  # a cell of one sentence takes it once
    # What a cell trains on does not depend on who else takes part.
    assert sentences.table([0, 1], 7)[0].tolist() == sentences.table([0], 7)[0].tolist()


def mean_of_a_round(step, together):
    model = network()
    weights = {name: p.data for name, p in model.named_parameters()}
    local, randomness, aggregation = StackedTraining(CPU), Silent(1), PerUnit(3, 1.0, 0.01)
    local.together, randomness.step = together, step
    server, found = Server(weights, RoundPlan()), []
    server.step = lambda mean, _: found.append(mean)
    sentences = Sentences(NUMBERS, CELLS, RoundPlan(batch=4))
    engine = Federated(weights, local, sentences, server, randomness, aggregation.drawn, aggregation)
    assert engine.round(0) == 3
    return found[0]


def test_parts_and_whole_steps_change_the_mean_by_rounding_alone():
    plain = mean_of_a_round(None, together=32)
    assert 1.5 < float(plain.norm()) <= 3  # three units, in units of the sensitivity
    torch.testing.assert_close(mean_of_a_round(None, together=1), plain, rtol=1e-4, atol=1e-8)
    whole = mean_of_a_round(0.01 / 2**20, together=2)  # each unit is cut to whole steps; the fourth is for 32 bits
    torch.testing.assert_close(whole, plain, rtol=0, atol=4 / 2**20)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"local_steps": 1.5}, {"server_rate": 0.0}, {"batch": -1}])
def test_a_plan_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match="must"):
        RoundPlan(**wrong)
