"""Training that protects single sentences, by Opacus: per-sentence gradients are clipped, summed and get noise.

The sampling, the noise and the accountant are ours; Opacus computes and clips the gradients.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpassay.text.models.words import PAD
from dpassay.training.aggregation import INWARD, Aggregation
from dpassay.training.federated import FIRST, LEAST, SECOND, Sentences
from dpassay.training.randomness import Randomness

AT_ONCE = 128  # sentences whose gradients are in memory together
MOMENTS = ("exp_avg", "exp_avg_sq")  # of Adam


class ExampleTraining:
    """A network in training, in rounds; each has a batch of sentences, drawn independently of one another."""

    def __init__(
        self,
        network: nn.Module,
        sentences: Sentences,
        randomness: Randomness,
        aggregation: Aggregation,
        deviation: float,
    ) -> None:
        self.sentences, self.randomness, self.aggregation = sentences, randomness, aggregation
        self.deviation, self.network, self.number = deviation, network, 0
        self.named = dict(network.named_parameters())
        self.weights = {name: parameter.data for name, parameter in self.named.items()}
        self.device = next(network.parameters()).device
        adam = torch.optim.Adam(self.named.values(), betas=(FIRST, SECOND), eps=LEAST)
        self.module, self.optimiser = _opacus(network, adam, aggregation.sensitivity * INWARD, self._with_noise)

    def round(self, number: int) -> int:
        """Take one round, and return how many sentences took part."""
        self.number = number
        cells = self.aggregation.drawn(self.randomness, number)
        for group in self.optimiser.param_groups:
            group["lr"] = self.sentences.plan.rate(number)
        for start in range(0, max(1, len(cells)), AT_ONCE):
            some = cells[start : start + AT_ONCE]
            self.optimiser.signal_skip_step(start + AT_ONCE < len(cells))
            table = self.sentences.table(some, number)[:, 0, 0] if some else np.full((1, 1), PAD)  # for no sentence
            numbers = torch.from_numpy(np.ascontiguousarray(table)).to(self.device)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Full backward hook is firing")  # word numbers have no gradient
                _total_loss(self.module(numbers), numbers).backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            self.optimiser.zero_grad()
        return len(cells)

    def _with_noise(self, parameters: list[nn.Parameter]) -> None:
        """The gradients of the parameters, from their sums over sentences."""
        sizes = [parameter.numel() for parameter in parameters]
        noise = self.randomness.normal(self.number, sum(sizes), self.deviation, self.device)
        for parameter, drawn in zip(parameters, torch.split(noise, sizes), strict=True):
            summed: Tensor = parameter.summed_grad  # type: ignore[attr-defined]
            parameter.grad = (summed + drawn.view_as(summed)) / self.aggregation.sensitivity

    def state(self) -> dict[str, NDArray[Any]]:
        """What a resumed run needs besides the weights."""
        kept = self.optimiser.original_optimizer.state
        return {
            f"{moment}:{name}": kept[parameter][moment].detach().cpu().numpy()
            for name, parameter in self.named.items()
            for moment in MOMENTS
            if parameter in kept
        }

    def resume(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        for name, parameter in self.named.items():
            kept = {m: torch.from_numpy(np.array(state[f"{m}:{name}"])).to(self.device) for m in MOMENTS}
            self.optimiser.original_optimizer.state[parameter] = {"step": torch.tensor(float(done)), **kept}


def _total_loss(scores: Tensor, numbers: Tensor) -> Tensor:
    """The sum over sentences of the mean loss per word."""
    losses = cross_entropy(scores.flatten(0, 1), numbers.flatten(), ignore_index=PAD, reduction="none")
    words = (numbers != PAD).sum(1)
    return (losses.view_as(numbers).sum(1) / words.clamp(min=1)).sum()


def _opacus(network: nn.Module, adam: torch.optim.Optimizer, clip: float, with_noise: Any) -> tuple[Any, Any]:
    """Opacus' module and optimizer, the latter with our noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        from opacus.grad_sample import GradSampleModule
        from opacus.optimizers import DPOptimizer

        module = GradSampleModule(network, loss_reduction="sum")

    class Optimiser(DPOptimizer):  # type: ignore[misc]
        """Opacus' clipping with noise from our own source."""

        def add_noise(self) -> None:
            with_noise(self.params)

    made = Optimiser(adam, noise_multiplier=0.0, max_grad_norm=clip, expected_batch_size=None, loss_reduction="sum")
    return module, made
