"""Federated averaging with privacy: drawn cells train from the same weights; the server uses a noisy mean of updates.

In a round, cells are drawn and each takes local steps of gradient descent; the updates are bounded and summed, Gaussian
noise is added, the sum is divided by the sensitivity, and the server takes a step. Everything after the noise is
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpassay.errors import InputError
from dpassay.text.models.words import PAD
from dpassay.training.aggregation import Aggregation, Part, Stack, in_parts
from dpassay.training.networks.language_model import stacked_losses
from dpassay.training.randomness import Randomness

TOGETHER = {"cpu": 32, "cuda": 256}  # cells computed at once
FIRST, SECOND, LEAST = 0.9, 0.99, 1e-8  # decay rates of the server's two moments, and the minimum of its divisor

Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """How a model is trained. The default server rate was chosen on the shipped corpus, by its held-out perplexity.

    >>> RoundPlan().sentences
    8
    """

    rounds: int = 1000
    local_steps: int = 1
    batch: int = 8  # sentences of a cell in each local step
    local_rate: float = 1.0
    server_rate: float = 2e-2  # large: most of a noisy mean is noise, and Adam divides by its size

    def __post_init__(self) -> None:
        for name, high in (("rounds", 10**7), ("local_steps", 1000), ("batch", 10**5)):
            given = getattr(self, name)
            if not isinstance(given, int) or not 1 <= given <= high:
                raise InputError(f"{name.replace('_', ' ')} must be a whole number from 1 to {high}, got {given!r}")
        for name in ("local_rate", "server_rate"):
            if not 0 < getattr(self, name) <= 1000:
                raise InputError(f"the {name.replace('_', ' ')} must lie between 0 and 1000, got {getattr(self, name)}")

    @property
    def sentences(self) -> int:
        """The most sentences of a cell in a round."""
        return self.local_steps * self.batch

    def rate(self, round_: int) -> float:
        """The server's learning rate in a round: it falls along a cosine to zero, which averages out the noise."""
        return self.server_rate * 0.5 * (1 + math.cos(math.pi * round_ / self.rounds))


class LocalTraining(Protocol):
    """A network whose cells can train."""

    together: int  # cells at once

    def updates(self, weights: Weights, tables: Tensor, rate: float, round_: int) -> Stack:
        """What local steps change in the weights: for tables (cells, steps, texts, words), a row per cell."""


class StackedTraining:
    """Many cells at once, each with its own weights, by `stacked_losses`."""

    def __init__(self, device: torch.device) -> None:
        self.together = TOGETHER[device.type]

    def updates(self, weights: Weights, tables: Tensor, rate: float, round_: int) -> Stack:
        cells, steps = tables.shape[:2]
        stack = {name: tensor.expand(cells, *tensor.shape).clone() for name, tensor in weights.items()}
        for step in range(steps):
            with torch.enable_grad():
                for tensor in stack.values():
                    tensor.requires_grad_()
                losses = stacked_losses(stack, tables[:, step])
                gradients = torch.autograd.grad(losses.sum(), list(stack.values()))
            for tensor, gradient in zip(stack.values(), gradients, strict=True):
                tensor.requires_grad_(False).sub_(gradient, alpha=rate)
        return {name: tensor.sub_(weights[name]) for name, tensor in stack.items()}


class Sentences:
    """The sentences of each cell as word numbers, and which of them take part in which round."""

    def __init__(self, numbers: NDArray[np.int64], cells: Sequence[Sequence[int]], plan: RoundPlan) -> None:
        self.numbers = np.vstack([numbers, np.full((1, numbers.shape[1]), PAD, dtype=np.int64)])  # the last one: none
        self.cells, self.plan = [np.asarray(cell) for cell in cells], plan

    def sizes(self, cells: Sequence[int]) -> list[int]:
        """How many sentences each cell trains on in a round."""
        return [min(len(self.cells[cell]), self.plan.sentences) for cell in cells]

    def table(self, cells: Sequence[int], round_: int) -> NDArray[np.int64]:
        """The sentences of cells in a round (cells, steps, texts, words): each cell goes through its own in turn."""
        most = max(self.sizes(cells))
        steps = self.plan.local_steps
        picked = np.full((len(cells), -(-most // steps) * steps), len(self.numbers) - 1)
        for row, cell, size in zip(picked, cells, self.sizes(cells), strict=True):
            own = self.cells[cell]
            row[:size] = own[(round_ * self.plan.sentences + np.arange(size)) % len(own)]
        return self.cut(picked.reshape(len(cells), -1, steps).transpose(0, 2, 1))

    def cut(self, picked: NDArray[np.int64]) -> NDArray[np.int64]:
        """The word numbers of sentences, without padding that none of them needs."""
        found = self.numbers[picked]
        return np.ascontiguousarray(found[..., : max(1, int((found != PAD).sum(axis=-1).max()))])


class Server:
    """Adam's step on a noisy mean of updates: post-processing, which costs no privacy."""

    def __init__(self, weights: Weights, plan: RoundPlan) -> None:
        self.weights, self.plan = weights, plan
        size = sum(tensor.numel() for tensor in weights.values())
        device = next(iter(weights.values())).device
        self.moments = {name: torch.zeros(size, device=device) for name in ("first", "second")}

    def step(self, mean: Tensor, round_: int) -> None:
        """Move the weights along a mean update."""
        first, second = self.moments["first"], self.moments["second"]
        first.mul_(FIRST).add_(mean, alpha=1 - FIRST)
        second.mul_(SECOND).addcmul_(mean, mean, value=1 - SECOND)
        size = (second / (1 - SECOND ** (round_ + 1))).sqrt_().add_(LEAST)
        move = first / size * (self.plan.rate(round_) / (1 - FIRST ** (round_ + 1)))
        sizes = [tensor.numel() for tensor in self.weights.values()]
        for tensor, part in zip(self.weights.values(), torch.split(move, sizes), strict=True):
            tensor.add_(part.view_as(tensor))


class Federated:
    """Training in rounds. Without an aggregation all drawn sentences are one cell, unbounded and without noise."""

    def __init__(
        self,
        weights: Weights,
        local: LocalTraining,
        sentences: Sentences,
        server: Server,
        randomness: Randomness,
        draw: Callable[[Randomness, int], list[int]],
        aggregation: Aggregation | None,
        deviation: float = 0.0,
    ) -> None:
        self.weights, self.local, self.sentences, self.server = weights, local, sentences, server
        self.randomness, self.draw, self.aggregation, self.deviation = randomness, draw, aggregation, deviation
        self.device = next(iter(weights.values())).device
        self.size = sum(tensor.numel() for tensor in weights.values())

    @torch.no_grad()
    def round(self, number: int) -> int:
        """Take one round, and return how many cells took part."""
        cells = self.draw(self.randomness, number)
        if self.aggregation is None:
            if cells:
                self.server.step(self._plain(cells, number), number)
            return len(cells)
        step = self.randomness.step
        total: Any = 0.0
        if cells:
            total = self.aggregation.combine(cells, self._parts(cells, number), step)
        noisy = total + self.randomness.normal(number, self.size, self.deviation, self.device)
        self.released(noisy)
        # Not divided by the number of units, which is private: Adam's step does not depend on the scale.
        self.server.step(noisy.float() * ((step or 1.0) / self.aggregation.sensitivity), number)
        return len(cells)

    def released(self, noisy: Tensor) -> None:
        """What a round releases, with its noise: an observer of the whole training sees this and nothing else."""

    def _parts(self, cells: Sequence[int], number: int) -> Iterator[Part]:
        for some in in_parts(cells, self.sentences.sizes(cells), self.local.together):
            tables = torch.from_numpy(self.sentences.table(some, number)).to(self.device)
            yield some, self.local.updates(self.weights, tables, self.sentences.plan.local_rate, number)

    def _plain(self, cells: Sequence[int], number: int) -> Tensor:
        tables = self.sentences.table(cells, number)
        whole = tables.transpose(1, 0, 2, 3).reshape(1, tables.shape[1], -1, tables.shape[-1])
        used = (whole != PAD).any(axis=(0, 1, 3))
        updates = self.local.updates(
            self.weights,
            torch.from_numpy(np.ascontiguousarray(whole[:, :, used])).to(self.device),
            self.sentences.plan.local_rate,
            number,
        )
        return torch.cat([tensor.flatten() for tensor in updates.values()])

    def state(self) -> dict[str, NDArray[Any]]:
        """What a resumed run needs besides the weights; names have a colon, since they are not weights."""
        return {f"server:{name}": tensor.cpu().numpy() for name, tensor in self.server.moments.items()}

    def resume(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        for name in self.server.moments:
            self.server.moments[name] = torch.from_numpy(np.array(state[f"server:{name}"])).to(self.device)
