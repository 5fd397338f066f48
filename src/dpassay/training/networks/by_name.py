"""The networks that can be trained: the small LSTM, or a causal transformers model by name or folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from dpassay.errors import InputError
from dpassay.text.models.folder import Arrays, weights_of, with_weights
from dpassay.text.models.words import ModelVocabulary
from dpassay.training.federated import LocalTraining, StackedTraining
from dpassay.training.networks.language_model import LanguageModel, Sizes

LONGEST = 40  # words of a text
GIVEN = "The words that the model knows come from a public list, which was not made from this corpus."
FOUND = "The words that the model knows are those of the corpus."


class Trainable(Protocol):
    """A network, how texts become its numbers, how cells train it, and how it is saved."""

    network: torch.nn.Module
    local: LocalTraining
    words: Sequence[str]
    vocabulary_from: str

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """One row per text, padded."""

    def arrays(self) -> Arrays:
        """The weights, to be saved."""

    def load(self, arrays: Arrays, folder: Path) -> None:
        """Load weights from a file."""

    def described(self, about: Any, stated: dict[str, Any]) -> Any:
        """What model.json is to state, given that of a language model and the statement of the guarantee."""

    def finish(self, folder: Path) -> None:
        """Write what else belongs to the model."""


class Lstm:
    """The small LSTM, with random weights."""

    def __init__(self, words: Sequence[str], stated: str, sizes: Mapping[str, int], device: torch.device) -> None:
        self.words, self.vocabulary_from = tuple(words), stated
        self.vocabulary = ModelVocabulary(self.words)
        self.sizes = Sizes(len(self.vocabulary), sizes["embedding"], sizes["hidden"])
        torch.manual_seed(sizes["seed"])
        self.network = LanguageModel(self.sizes).to(device)
        self.local = StackedTraining(device)

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self.vocabulary.numbers(texts, LONGEST)

    def arrays(self) -> Arrays:
        return weights_of(self.network)

    def load(self, arrays: Arrays, folder: Path) -> None:
        found = with_weights(lambda: LanguageModel(self.sizes), arrays, folder)
        self.network.load_state_dict(found.state_dict())

    def described(self, about: Any, stated: dict[str, Any]) -> Any:
        return about

    def finish(self, folder: Path) -> None:
        """There is nothing else."""


def make_trainable(texts: Sequence[str], words: Sequence[str] | None, settings: Any, device: torch.device) -> Any:
    """The network for some settings, with its initial weights."""
    if settings.base:
        if words is not None:
            raise InputError("a base model has its own vocabulary: leave out the vocabulary, or the base model")
        return _causal(settings.base, device, settings)
    chosen = sorted(set(words)) if words is not None else ModelVocabulary.of(texts).words
    if odd := [word for word in chosen if word.split() != [word] or word != word.lower()]:
        raise InputError(f"a vocabulary is a list of lower-case words without blanks, got {odd[0][:40]!r}")
    stated = GIVEN if words is not None else FOUND
    if settings.autoencoder is not None:
        from dpassay.training.networks.autoencoders import PrivateAutoencoder

        return PrivateAutoencoder(chosen, stated, settings, device)
    return Lstm(chosen, stated, _sizes(settings.__dict__), device)


def reopened(words: Sequence[str], settings: Mapping[str, Any], device: torch.device, folder: Path) -> Any:
    """The network of a saved model, before its weights are loaded."""
    if settings["base"]:
        return _causal(str(folder / "transformers"), device, adopted=bool(settings.get("adapter")))
    return Lstm(words, "", _sizes(settings), device)


def _sizes(settings: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(settings[name]) for name in ("embedding", "hidden", "seed")}


def _causal(name: str, device: torch.device, settings: Any = None, adopted: bool = False) -> Any:
    from dpassay.training.networks.causal import Adapter, Causal, Whole

    if settings is None:
        return (Whole if adopted else Causal)(name, device)
    adapter = Adapter.read(settings.adapter, settings.seed) if settings.adapter else None
    return Causal(name, device, adapter, settings.at_once)
