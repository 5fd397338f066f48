"""A small LSTM that predicts the next word, for one set of weights or for many at once.

Training that protects users needs the update of each unit from the same start. `stacked_losses` computes the losses of
many units, each with its own weights, in one batch of matrix products. Only numpy and torch are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding

from dpassay.errors import InputError
from dpassay.text.models.words import PAD, START

BATCH = 256  # texts whose perplexity is measured together

Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of the network; fewer weights mean less total noise.

    >>> Sizes(words=1000).weights
    162024
    """

    words: int
    embedding: int = 64
    hidden: int = 64

    def __post_init__(self) -> None:
        for name in ("embedding", "hidden"):
            if not 1 <= getattr(self, name) <= 10**4:
                raise InputError(f"{name} must be a whole number from 1 to 10000, got {getattr(self, name)}")

    @property
    def weights(self) -> int:
        """The number of weights."""
        return self.words * (self.embedding + self.hidden + 1) + 4 * self.hidden * (self.embedding + self.hidden + 1)


class LanguageModel(nn.Module):
    """Word vectors, one LSTM layer, and a score for each word that may come next."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.embedding = nn.Embedding(sizes.words, sizes.embedding)
        self.from_word = nn.Linear(sizes.embedding, 4 * sizes.hidden)
        self.from_state = nn.Linear(sizes.hidden, 4 * sizes.hidden, bias=False)
        self.out = nn.Linear(sizes.hidden, sizes.words)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, numbers: Tensor) -> Tensor:
        """Scores of each next word, given the words before it: a row per text."""
        words = self.from_word(self.embedding(preceding(numbers)))
        states = _states(words, self.sizes.hidden, self.from_state)
        scores: Tensor = self.out(states)
        return scores


def preceding(numbers: Tensor) -> Tensor:
    """The words that are known when each word is predicted.

    >>> preceding(torch.tensor([[7, 8, 1]])).tolist()
    [[2, 7, 8]]
    """
    return torch.cat([torch.full_like(numbers[..., :1], START), numbers[..., :-1]], dim=-1)


def _states(words: Tensor, hidden: int, from_state: Callable[[Tensor], Tensor]) -> Tensor:
    """The states of an LSTM along the last axis but one, of which `words` are the input's share of the gates."""
    h = c = words.new_zeros((*words.shape[:-2], hidden))
    found = []
    for share in words.unbind(-2):
        entering, leaving, out, new = torch.split(share + from_state(h), hidden, dim=-1)
        c = torch.sigmoid(leaving + 1) * c + torch.sigmoid(entering) * torch.tanh(new)
        h = torch.sigmoid(out) * torch.tanh(c)
        found.append(h)
    return torch.stack(found, dim=-2)


class _Recurrence(torch.autograd.Function):
    """`_states` of many units at once, with a backward pass that sums the weights' gradient in one product."""

    @staticmethod
    def forward(ctx: Any, shares: Tensor, turned: Tensor) -> Tensor:
        """The states, of shares (units, texts, length, 4·hidden) and weights (units, hidden, 4·hidden)."""
        units, texts, length, wide = shares.shape
        hidden = wide // 4
        states = shares.new_zeros(length + 1, units, texts, hidden)
        cells, gates = torch.zeros_like(states), shares.new_empty(length, units, texts, wide)
        for t in range(length):
            gate = torch.baddbmm(shares[:, :, t], states[t], turned, out=gates[t])
            gate[..., hidden : 2 * hidden] += 1
            gate[..., : 3 * hidden].sigmoid_()
            gate[..., 3 * hidden :].tanh_()
            entering, leaving, out, new = torch.split(gate, hidden, dim=-1)
            torch.addcmul(leaving * cells[t], entering, new, out=cells[t + 1])
            torch.mul(out, torch.tanh(cells[t + 1]), out=states[t + 1])
        ctx.save_for_backward(states, cells, gates, turned)
        return states[1:].permute(1, 2, 0, 3)

    @staticmethod
    def backward(ctx: Any, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of the shares and of the weights."""
        states, cells, gates, turned = ctx.saved_tensors
        length, units, texts, wide = gates.shape
        hidden = wide // 4
        back = turned.transpose(1, 2)
        dh, dc, found = torch.zeros_like(states[0]), torch.zeros_like(states[0]), torch.empty_like(gates)
        for t in reversed(range(length)):
            entering, leaving, out, new = torch.split(gates[t], hidden, dim=-1)
            dh = dh + wanted[:, :, t]
            bent = torch.tanh(cells[t + 1])
            dc = torch.addcmul(dc, dh * out, 1 - bent * bent)
            here = found[t]
            here[..., :hidden] = dc * new * entering * (1 - entering)
            here[..., hidden : 2 * hidden] = dc * cells[t] * leaving * (1 - leaving)
            here[..., 2 * hidden : 3 * hidden] = dh * bent * out * (1 - out)
            here[..., 3 * hidden :] = dc * entering * (1 - new * new)
            dh, dc = torch.bmm(here, back), dc * leaving
        rows = found.permute(1, 0, 2, 3).reshape(units, length * texts, wide)
        before = states[:-1].permute(1, 0, 2, 3).reshape(units, length * texts, hidden)
        return found.permute(1, 2, 0, 3), torch.bmm(before.transpose(1, 2), rows)


def stacked_losses(weights: Mapping[str, Tensor], numbers: Tensor) -> Tensor:
    """The mean loss per word of each unit: weights with a row per unit, and a table of texts for each.

    A unit without words has the loss 0.
    """
    units, texts, length = numbers.shape
    table = weights["embedding.weight"]
    words = table.shape[1]
    offset = words * torch.arange(units, device=numbers.device)[:, None, None]
    vectors = embedding(preceding(numbers) + offset, table.reshape(units * words, -1)).view(units, texts * length, -1)
    shares = torch.baddbmm(weights["from_word.bias"][:, None], vectors, weights["from_word.weight"].transpose(1, 2))
    turned = weights["from_state.weight"].transpose(1, 2).contiguous()
    shares = shares.view(units, texts, length, -1)
    states = _Recurrence.apply(shares, turned).reshape(units, texts * length, -1)  # type: ignore[no-untyped-call]
    kept = (numbers != PAD).flatten(1)
    order = torch.argsort(~kept, dim=1, stable=True)[:, : max(1, int(kept.sum(1).max()))]  # words first: less padding
    states = states.gather(1, order[..., None].expand(-1, -1, states.shape[-1]))
    scores = torch.baddbmm(weights["out.bias"][:, None], states, weights["out.weight"].transpose(1, 2))
    targets = numbers.flatten(1).gather(1, order)
    losses = cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=PAD, reduction="none")
    return losses.view(units, -1).sum(1) / kept.sum(1).clamp(min=1)


@torch.no_grad()
def perplexity(network: nn.Module, numbers: NDArray[np.int64], batch: int = BATCH) -> float:
    """e to the mean loss per word, including ends of texts.

    >>> same = nn.Embedding(9, 9, _weight=torch.zeros(9, 9))  # all words are equally likely
    >>> round(perplexity(same, np.array([[5, 6, 1], [4, 1, 0]])), 4)
    9.0
    """
    device = next(network.parameters()).device
    total, count = 0.0, 0
    for start in range(0, len(numbers), batch):
        group = numbers[start : start + batch]
        group = group[:, : max(1, int((group != PAD).sum(axis=1).max()))]
        target = torch.from_numpy(np.ascontiguousarray(group)).to(device)
        scores = network(target)
        total += float(cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum"))
        count += int((group != PAD).sum())
    return math.exp(min(700.0, total / max(1, count)))
