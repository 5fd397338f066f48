"""Many networks at once give the losses and gradients of each alone, and perplexity is what it says."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from dpassay.errors import InputError
from dpassay.training.networks.language_model import LanguageModel, Sizes, perplexity, stacked_losses


def test_stacked_losses_and_gradients_are_those_of_each_network_alone():
    torch.manual_seed(0)
    network = LanguageModel(Sizes(50, 6, 5)).double()
    weights = {
        name: (p.detach() + 0.3 * torch.randn(3, *p.shape, dtype=torch.float64)).requires_grad_()
        for name, p in network.named_parameters()
    }
    numbers = torch.randint(4, 50, (3, 4, 7))
    numbers[0, :, 5:] = 0
    numbers[1, 2] = 0  # a text that is not there
    losses = stacked_losses(weights, numbers)
    found = torch.autograd.grad(losses.sum(), list(weights.values()))
    for i in range(3):
        own = {name: w[i].detach().requires_grad_() for name, w in weights.items()}
        scores = torch.func.functional_call(network, own, (numbers[i],))
        loss = cross_entropy(scores.flatten(0, 1), numbers[i].flatten(), ignore_index=0)
        torch.testing.assert_close(loss, losses[i])
        for mine, stacked in zip(torch.autograd.grad(loss, list(own.values())), found, strict=True):
            torch.testing.assert_close(mine, stacked[i])


def test_a_unit_without_words_has_no_loss_and_no_gradient():
    weights = {n: p.detach()[None].requires_grad_() for n, p in LanguageModel(Sizes(9, 2, 2)).named_parameters()}
    loss = stacked_losses(weights, torch.zeros((1, 2, 3), dtype=torch.long))
    assert loss.item() == 0
    assert all(not g.any() for g in torch.autograd.grad(loss.sum(), list(weights.values())))


def test_the_number_of_weights_is_that_of_the_network():
    sizes = Sizes(words=30, embedding=5, hidden=7)
    assert sizes.weights == sum(p.numel() for p in LanguageModel(sizes).parameters())


def test_perplexity_does_not_depend_on_batches():
    torch.manual_seed(1)
    network = LanguageModel(Sizes(20, 4, 4))
    numbers = np.random.default_rng(1).integers(4, 20, (9, 6))
    numbers[::2, 4:] = 0
    scores = network(torch.from_numpy(numbers))
    mean = cross_entropy(scores.flatten(0, 1), torch.from_numpy(numbers).flatten(), ignore_index=0).item()
    for batch in (1, 4, 100):
        assert perplexity(network, numbers, batch) == pytest.approx(math.exp(mean), rel=1e-5)


def test_sizes_have_limits():
    with pytest.raises(InputError, match="hidden must be a whole number"):
        Sizes(10, 5, 0)
