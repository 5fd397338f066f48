"""ADePT's autoencoder, trained with privacy: the update of each cell is a function of its own texts alone.

The recipe of `text/models/training.py` mixes the texts of a batch: ends are exchanged, frequent words are more likely
replacements, and vectors are pushed apart. None of that is done here. What is random about a text, the noise on its
vector and the words that are hidden from the decoder, is derived from that text and the round, so that it stays the
same whoever else takes part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import embedding

from dpassay.text.models.autoencoder import Autoencoder, Shape, clipped, seen_by_decoder, shifted
from dpassay.text.models.folder import Arrays, weights_of, with_weights
from dpassay.text.models.training import EPSILONS, NOISY, UNSEEN
from dpassay.text.models.words import LONGEST, PAD, SPECIAL, UNKNOWN, ModelVocabulary
from dpassay.text.rewriters.vectors.adept import Learned, PrivateTraining
from dpassay.training.aggregation import Stack

TOGETHER = {"cpu": 32, "cuda": 256}  # cells computed at once
Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Coins:
    """What is random about texts in a round: noise on their vectors, and which words the decoder does not see."""

    noise: NDArray[np.float32]
    hidden: NDArray[np.bool_]

    @classmethod
    def of(cls, numbers: NDArray[np.int64], round_: int, dim: int, clip: float) -> Coins:
        """A row for each text: the same for the same text in the same round, in whatever table it is."""
        noise = np.zeros((len(numbers), dim), dtype=np.float32)
        hidden = np.zeros(numbers.shape, dtype=bool)
        low, high = np.log(EPSILONS)
        for row, drawn, unseen in zip(numbers, noise, hidden, strict=True):
            words = row[row != PAD]
            digest = hashlib.blake2b(words.tobytes(), key=f"dpassay {round_}".encode(), digest_size=16).digest()
            rng = np.random.default_rng(int.from_bytes(digest, "big"))
            unseen[: len(words)] = rng.random(len(words)) < UNSEEN
            if rng.random() < NOISY:
                drawn[:] = rng.laplace(size=dim) * (2 * clip / np.exp(rng.uniform(low, high)))
        return cls(noise, hidden)


class AutoencoderTraining:
    """Local training of many cells at once: each text of a cell is to be decoded from its own noisy vector."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape, self.together = shape, TOGETHER[device.type]

    def updates(self, weights: dict[str, Tensor], tables: Tensor, rate: float, round_: int) -> Stack:
        """What local steps change in the weights: for tables (cells, steps, texts, words), a row per cell."""
        inputs = self._inputs(tables, round_)
        stack: dict[str, Tensor] | None = None
        for step in range(tables.shape[1]):
            own = [tensor[:, step] for tensor in inputs]
            each = vmap(grad(self._loss), in_dims=(None if stack is None else 0, *[0] * len(own)))
            with torch.enable_grad():
                gradients = each(weights if stack is None else stack, *own)
            before = weights if stack is None else stack
            stack = {name: before[name] - rate * gradient.detach() for name, gradient in gradients.items()}
        assert stack is not None, "a plan has at least one local step"
        return {name: tensor - weights[name] for name, tensor in stack.items()}

    def _inputs(self, tables: Tensor, round_: int) -> list[Tensor]:
        """The words, the words in reverse order, the words that the decoder sees, and the noise."""
        rows = tables.cpu().numpy().reshape(-1, tables.shape[-1])
        lengths, places = (rows != PAD).sum(axis=1)[:, None], np.arange(rows.shape[1])
        mirrored = np.take_along_axis(rows, (lengths - 1 - places) % len(places), axis=1)
        coins = Coins.of(rows, round_, self.shape.latent, self.shape.clip)
        before = shifted(torch.from_numpy(rows))
        before[torch.from_numpy(coins.hidden) & (before >= SPECIAL)] = UNKNOWN
        many = (torch.from_numpy(rows), torch.from_numpy(mirrored), before, torch.from_numpy(coins.noise))
        return [part.view(*tables.shape[:3], -1).to(tables.device) for part in many]

    def _loss(self, weights: Weights, numbers: Tensor, mirrored: Tensor, before: Tensor, noise: Tensor) -> Tensor:
        """The mean loss per word of one cell; 0 without words."""
        shape, known = self.shape, numbers != PAD
        vectors = encoded(weights, numbers, mirrored, shape)
        bounded = vectors * (shape.clip / vectors.abs().sum(dim=1, keepdim=True).clamp(min=shape.clip))
        scores = decoded(weights, (bounded + noise) * shape.latent**0.5, before, shape)
        right = torch.log_softmax(scores, dim=2).gather(2, numbers[..., None])[..., 0]
        return -(right * known).sum() / known.sum().clamp(min=1)


def encoded(weights: Weights, numbers: Tensor, mirrored: Tensor, shape: Shape) -> Tensor:
    """The clipped vectors of texts, as `Autoencoder.encode`, with operations that have a gradient for each cell."""
    going = numbers != PAD
    ends = []
    for rows, suffix in ((numbers, ""), (mirrored, "_reverse")):
        words = embedding(rows, weights["embedding.weight"])
        zeros = words.new_zeros(len(rows), shape.hidden)
        states = _states(weights, "reader", suffix, words, (zeros, zeros), going)
        ends.append(states[-1])
    both = torch.cat(ends, dim=1)
    return clipped(both @ weights["to_latent.weight"].T + weights["to_latent.bias"], shape.clip)


def decoded(weights: Weights, latents: Tensor, before: Tensor, shape: Shape) -> Tensor:
    """The logits of the next words, as `Autoencoder.logits`."""
    seen = seen_by_decoder(latents, shape)
    state, memory = (seen @ weights["to_state.weight"].T + weights["to_state.bias"]).chunk(2, dim=1)
    words = embedding(before, weights["embedding.weight"])
    inputs = torch.cat([words, seen[:, None].expand(-1, before.shape[1], -1)], dim=2)
    states = torch.stack(_states(weights, "writer", "", inputs, (torch.tanh(state), memory), None), dim=1)
    return states @ weights["to_embedding.weight"].T @ weights["embedding.weight"].T + weights["word_bias"]


def _states(
    weights: Weights, name: str, suffix: str, inputs: Tensor, start: tuple[Tensor, Tensor], going: Tensor | None
) -> list[Tensor]:
    """The states of an LSTM after each word; a text that has ended keeps its last one."""
    own = {part: weights[f"{name}.{part}_l0{suffix}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    shares = inputs @ own["weight_ih"].T + own["bias_ih"] + own["bias_hh"]
    (state, memory), found = start, []
    for place in range(inputs.shape[1]):
        enter, forget, new, leave = (shares[:, place] + state @ own["weight_hh"].T).chunk(4, dim=1)
        next_memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(new)
        next_state = torch.sigmoid(leave) * torch.tanh(next_memory)
        if going is not None:
            on = going[:, place, None]
            next_state, next_memory = torch.where(on, next_state, state), torch.where(on, next_memory, memory)
        state, memory = next_state, next_memory
        found.append(state)
    return found


class PrivateAutoencoder:
    """ADePT's network as private training sees it: with random weights, and a public list of words."""

    def __init__(self, words: Sequence[str], stated: str, settings: Any, device: torch.device) -> None:
        self.words, self.vocabulary_from = tuple(words), stated
        self.vocabulary = ModelVocabulary(self.words)
        latent = settings.autoencoder
        self.shape = Shape(len(self.vocabulary), latent.size, settings.hidden, settings.embedding, latent.clip)
        torch.manual_seed(settings.seed)
        self.network = Autoencoder(self.shape).to(device)
        self.local = AutoencoderTraining(self.shape, device)

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self.vocabulary.numbers(texts, LONGEST)

    def arrays(self) -> Arrays:
        return weights_of(self.network)

    def load(self, arrays: Arrays, folder: Path) -> None:
        found = with_weights(lambda: Autoencoder(self.shape), arrays, folder)
        self.network.load_state_dict(found.state_dict())

    def described(self, about: Any, stated: dict[str, Any]) -> Learned:
        """An ADePT model, with how it was trained; nothing in it depends on the corpus."""
        plan = about.settings["plan"]
        own = ("version", "vocabulary_from", "settings", "done", "planned", "deviation")
        return Learned(
            words=list(self.words),
            latent=self.shape.latent,
            hidden=self.shape.hidden,
            embedding=self.shape.embedding,
            clip=self.shape.clip,
            longest=self.shape.longest,
            steps=about.done,
            plan={"steps": plan["rounds"], "learning_rate": plan["server_rate"]},
            training=PrivateTraining(statement=stated, **{name: getattr(about, name) for name in own}),
        )

    def finish(self, folder: Path) -> None:
        """There is nothing else."""
