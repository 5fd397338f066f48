"""ADePT's network: an LSTM encodes an utterance as one vector, and another decodes an utterance from it.

The vector is clipped to an l2 ball, during training too. The decoder clips its input again, since noise carries a
vector far out of the ball, where the decoder was never trained. That is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear
from torch.nn.utils.rnn import pack_padded_sequence

from dpassay.compute.threads import torch_in_threads
from dpassay.text.models.words import END, LONGEST, PAD, START, UNKNOWN

FARTHEST = 3.0  # coordinates are clipped to this, in units of 1 / sqrt(dimension), the typical size on the sphere
BATCH = 256  # rows at a time outside training
APART = 32  # rows at a time where no digit of one may depend on the others: the longest of them sets the steps


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a network, and the radius of the ball of its vectors.

    >>> Shape(words=900).latent
    64
    """

    words: int
    latent: int = 64
    hidden: int = 192
    embedding: int = 128
    clip: float = 1.0
    longest: int = LONGEST


def clipped(vectors: Tensor, radius: float) -> Tensor:
    """Vectors scaled down to l2 norm `radius` where they are longer.

    >>> clipped(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    norms = vectors.norm(dim=1, keepdim=True)
    return vectors.mul(radius / norms.clamp(min=radius))


def seen_by_decoder(latents: Tensor, shape: Shape) -> Tensor:
    """Vectors as the decoder sees them, in units of a typical coordinate.

    Each coordinate is clamped first. Laplace noise has heavy tails: an extreme coordinate carries little more
    than its sign, and without the clamp a few of them would drown out all others.
    """
    unit = shape.clip / shape.latent**0.5
    return clipped(latents.clamp(-FARTHEST * unit, FARTHEST * unit), shape.clip).div(unit)


class Autoencoder(nn.Module):
    """From word numbers to a clipped vector, and from a vector to word numbers.

    >>> _ = torch.manual_seed(0)
    >>> network = Autoencoder(Shape(words=10, latent=3, hidden=8, embedding=4))
    >>> network.encode(torch.tensor([[4, 5, 1]])).shape
    torch.Size([1, 3])
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.words, shape.embedding)
        nn.init.normal_(self.embedding.weight, std=2 * shape.embedding**-0.5)
        self.reader = nn.LSTM(shape.embedding, shape.hidden, batch_first=True, bidirectional=True)
        self.to_latent = nn.Linear(2 * shape.hidden, shape.latent)
        self.to_state = nn.Linear(shape.latent, 2 * shape.hidden)
        self.writer = nn.LSTM(shape.embedding + shape.latent, shape.hidden, batch_first=True)
        self.to_embedding = nn.Linear(shape.hidden, shape.embedding, bias=False)
        self.word_bias = nn.Parameter(torch.zeros(shape.words))

    def train(self, mode: bool = True) -> Autoencoder:
        """Switch between training and inference; anything computed from the weights is discarded."""
        for name in ("_cells", "_both_ways"):
            self.__dict__.pop(name, None)
        return super().train(mode)

    @cached_property
    def _cells(self) -> tuple[_Cell, _Cell, _Cell]:
        assert not self.training, "call eval() first: changes of the weights would go unnoticed"
        words = self.embedding.weight
        return _Cell.of(self.reader, words), _Cell.of(self.reader, words, "_reverse"), _Cell.of(self.writer, words)

    @cached_property
    def _both_ways(self) -> tuple[Tensor, Tensor]:
        """What the reader adds for each word, first forwards and then backwards, and the two recurrent matrices."""
        forwards, backwards = self._cells[:2]
        of_words = torch.cat([forwards.of_words, backwards.of_words])
        return of_words, torch.stack([forwards.recurrent, backwards.recurrent])

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def encode(self, numbers: Tensor) -> Tensor:
        """The clipped vector of each row."""
        lengths = (numbers != PAD).sum(dim=1).cpu()
        packed = pack_padded_sequence(self.embedding(numbers), lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.reader(packed)
        return clipped(self.to_latent(torch.cat([last[0], last[1]], dim=1)), self.shape.clip)

    def seen(self, latents: Tensor) -> Tensor:
        """Vectors as the decoder sees them."""
        return seen_by_decoder(latents, self.shape)

    def _begin(self, latents: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The decoder's input, and its first state and memory."""
        seen = self.seen(latents)
        state, memory = self.to_state(seen).chunk(2, dim=1)
        return seen, torch.tanh(state), memory

    def logits(self, latents: Tensor, before: Tensor) -> Tensor:
        """The logits of the next word at each position, given the words before it."""
        seen, state, memory = self._begin(latents)
        inputs = torch.cat([self.embedding(before), seen[:, None].expand(-1, before.shape[1], -1)], dim=2)
        states, _ = self.writer(inputs, (state[None].contiguous(), memory[None].contiguous()))
        return linear(self.to_embedding(states), self.embedding.weight, self.word_bias)

    def forward(self, numbers: Tensor) -> Tensor:
        """Scores of each word of a text, decoded from the text's own vector: a row per text."""
        return self.logits(self.encode(numbers), shifted(numbers))

    def log_likelihood(self, latents: Tensor, numbers: Tensor) -> Tensor:
        """The log-likelihood of each row if the decoder drew each word with its probability."""
        scores = self.logits(latents, shifted(numbers))
        losses = cross_entropy(scores.transpose(1, 2), numbers, ignore_index=PAD, reduction="none")
        return -losses.sum(dim=1)

    @torch.no_grad()
    def vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The clipped vectors of many rows, in batches of similar length."""
        lengths = (numbers != PAD).sum(axis=1)
        order = np.argsort(-lengths, kind="stable")
        found = np.empty((len(numbers), self.shape.latent), dtype=np.float32)
        cells = self._cells[:2]

        @torch.no_grad()  # each thread has its own
        def encoded(some: NDArray[np.intp]) -> NDArray[np.float32]:
            batch, long = numbers[some, : lengths[some[0]]], lengths[some]
            mirrored = np.take_along_axis(batch, (long[:, None] - 1 - np.arange(batch.shape[1])) % batch.shape[1], 1)
            ends = [self._read(cell, rows, long) for cell, rows in zip(cells, (batch, mirrored), strict=True)]
            return np.asarray(clipped(self.to_latent(torch.cat(ends, dim=1)), self.shape.clip).cpu().numpy())

        groups = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        for some, vectors in zip(groups, self._each(encoded, groups), strict=True):
            found[some] = vectors
        return found

    def _each(self, function: Callable[[NDArray[Any]], NDArray[Any]], groups: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """What a function makes of each group of rows: on a CPU, each thread computes some groups by itself."""
        if self.device.type != "cpu":
            return [function(group) for group in groups]
        return torch_in_threads(lambda some: [function(group) for group in some], groups, 1)

    @torch.no_grad()
    def vectors_apart(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The same, but no digit of a row depends on the other rows: there are always `APART` of them.

        How a matrix product is rounded depends on its size and on a row's position. Here the size is always the same
        and a row keeps its position; a row that has ended is still computed, and the result discarded. Both directions
        are read at once.
        """
        assert len(numbers) == APART, f"{len(numbers)} rows, not {APART}"
        of_words, recurrent = self._both_ways
        lengths, places = (numbers != PAD).sum(axis=1), np.arange(numbers.shape[1])
        mirrored = np.take_along_axis(numbers, (lengths[:, None] - 1 - places) % len(places), axis=1)
        words = torch.from_numpy(np.concatenate([numbers, mirrored + self.shape.words]).T.copy()).to(self.device)
        state = memory = of_words.new_zeros(2, APART, self.shape.hidden)
        last = torch.zeros_like(state)
        for step, row in enumerate(words, start=1):
            gates = torch.baddbmm(of_words[row].view(2, APART, -1), state, recurrent)
            state, memory = _after(gates, memory)
            if len(ended := np.flatnonzero(lengths == step)):
                last[:, ended] = state[:, ended]
        return np.asarray(clipped(self.to_latent(torch.cat([*last], dim=1)), self.shape.clip).cpu().numpy())

    def _read(self, cell: _Cell, numbers: NDArray[np.int64], lengths: NDArray[np.int64]) -> Tensor:
        """The last state of each row, longest row first; rows that have ended are left out."""
        words = torch.from_numpy(np.ascontiguousarray(numbers.T)).to(self.device)
        state = cell.of_words.new_zeros(len(lengths), self.shape.hidden)
        memory = torch.zeros_like(state)
        going = np.searchsorted(-lengths, -np.arange(numbers.shape[1]), side="left")
        for row, k in zip(words, going.tolist(), strict=True):
            state[:k], memory[:k] = cell.step(cell.of_words[row[:k]], state[:k], memory[:k])
        return state

    @torch.no_grad()
    def write(self, latents: Tensor) -> Tensor:
        """Greedy decoding: one row of word numbers per vector."""
        seen, state, memory = self._begin(latents)
        cell = self._cells[2]
        weights: Tensor = self.writer.weight_ih_l0  # type: ignore[assignment]
        of_vectors = _doubled(seen @ weights[:, self.shape.embedding :].T)
        bias = self.word_bias.clone()
        bias[[PAD, START, UNKNOWN]] = -torch.inf
        out = self.embedding.weight.T
        written = torch.full((len(latents), self.shape.longest + 1), END, device=self.device)
        rows = torch.arange(len(latents), device=self.device)
        word = torch.full((len(latents),), START, device=self.device)
        for step in range(self.shape.longest):
            state, memory = cell.step(cell.of_words[word] + of_vectors, state, memory)
            word = torch.addmm(bias, self.to_embedding(state), out).argmax(dim=1)
            written[rows, step] = word
            going = word != END
            if not going.all():
                rows, word, state, memory, of_vectors = (t[going] for t in (rows, word, state, memory, of_vectors))
                if not len(rows):
                    break
        return written

    def rows(self, latents: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
        """Greedy decoding of many vectors, in batches."""
        _ = self._cells  # made once, before there are threads
        parts = self._each(
            lambda some: self.write(torch.from_numpy(some.astype(np.float32)).to(self.device)).cpu().numpy(),
            [latents[i : i + BATCH] for i in range(0, len(latents), BATCH)],
        )
        return np.concatenate(parts) if parts else np.zeros((0, 1), dtype=np.int64)


@dataclass(frozen=True)
class _Cell:
    """One step of an LSTM at a time, outside training: the same numbers as from `nn.LSTM`, faster.

    What each word adds to the gates is computed once for all words. tanh(x) is 2σ(2x) − 1, since torch's tanh takes
    three times as long as its sigmoid here, and apart from matrix products these two dominate the running time.
    """

    of_words: Tensor
    recurrent: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, lstm: nn.LSTM, words: Tensor, suffix: str = "") -> _Cell:
        weights = {
            name: getattr(lstm, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }
        of_words = words @ weights["weight_ih"][:, : words.shape[1]].T + weights["bias_ih"] + weights["bias_hh"]
        return cls(_doubled(of_words), _doubled(weights["weight_hh"].T))

    def step(self, inputs: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The next state and memory."""
        return _after(torch.addmm(inputs, state, self.recurrent), memory)


def _after(gates: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """The next state and memory from all gates, whose third quarter is doubled; the gates are overwritten."""
    enter, forget, new, leave = torch.sigmoid_(gates).chunk(4, dim=-1)
    memory = forget * memory + enter * (2 * new - 1)
    return leave * (2 * torch.sigmoid(2 * memory) - 1), memory


def _doubled(gates: Tensor) -> Tensor:
    """The gates with the third quarter of the columns, which goes through tanh, doubled."""
    enter, forget, new, leave = gates.chunk(4, dim=1)
    return torch.cat([enter, forget, 2 * new, leave], dim=1)


def shifted(numbers: Tensor) -> Tensor:
    """The word before each word: the start, then all but the last.

    >>> shifted(torch.tensor([[7, 8, 1]])).tolist()
    [[2, 7, 8]]
    """
    start = torch.full_like(numbers[:, :1], START)
    return torch.cat([start, numbers[:, :-1]], dim=1)
