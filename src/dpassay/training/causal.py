"""Causal transformers models as the start of private training, from a folder or by their name on a hub.

A folder needs no network access. Cells are computed one after the other, so memory holds only one extra set of weights.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from dpassay.errors import InputError
from dpassay.text.models.folder import Arrays
from dpassay.text.models.words import PAD
from dpassay.training.aggregation import Stack
from dpassay.training.federated import Weights

LONGEST = 64  # tokens of a text
KEPT = "transformers"  # the folder in the model's folder
TOKENS = "The model's tokens are those of its base model."


class Shifted(nn.Module):
    """A causal model whose tokens are numbered from 1, as 0 stands for padding; it predicts the first token too."""

    def __init__(self, model: Any, start: int) -> None:
        super().__init__()
        self.model, self.start = model, start

    def forward(self, numbers: Tensor) -> Tensor:
        """Scores of each token, given those before it."""
        tokens = (numbers - 1).clamp(min=0)
        before = torch.cat([torch.full_like(tokens[:, :1], self.start), tokens[:, :-1]], dim=1)
        scores: Tensor = self.model(input_ids=before, use_cache=False).logits
        return pad(scores, (1, 0), value=-1e9)


class OneByOne:
    """Local training of one cell after the other."""

    together = 1

    def __init__(self, network: nn.Module) -> None:
        self.network = network

    def updates(self, weights: Weights, tables: Tensor, rate: float, round_: int) -> Stack:
        found: dict[str, list[Tensor]] = {name: [] for name in weights}
        for table in tables:
            own = {name: tensor.clone() for name, tensor in weights.items()}
            for texts in table:
                kept = texts[(texts != PAD).any(dim=1)]
                if not len(kept):
                    continue
                with torch.enable_grad():
                    for tensor in own.values():
                        tensor.requires_grad_()
                    scores = torch.func.functional_call(self.network, own, (kept,))
                    loss = cross_entropy(scores.flatten(0, 1), kept.flatten(), ignore_index=PAD)
                    gradients = torch.autograd.grad(loss, list(own.values()))
                for tensor, gradient in zip(own.values(), gradients, strict=True):
                    tensor.requires_grad_(False).sub_(gradient, alpha=rate)
            for name, tensor in own.items():
                found[name].append(tensor.sub_(weights[name]))
        return {name: torch.stack(tensors) for name, tensors in found.items()}


class Causal:
    """A transformers model that can be trained."""

    words: tuple[str, ...] = ()
    vocabulary_from = TOKENS

    def __init__(self, name: str, device: torch.device) -> None:
        library = _library()
        local = Path(name).is_dir()
        try:
            self.tokeniser = library.AutoTokenizer.from_pretrained(name, local_files_only=local)
            model = library.AutoModelForCausalLM.from_pretrained(name, local_files_only=local, dtype=torch.float32)
        except Exception as error:  # the library raises what its many parts raise
            said = str(error).split("\n", maxsplit=1)[0]
            raise InputError(
                f"{name!r} is not a causal transformers model that can be read here: {said}"[:300]
            ) from None
        self.model, self.end = model.to(device).eval(), self.tokeniser.eos_token_id  # no dropout: fewer random numbers
        if self.end is None:
            raise InputError(f"the tokeniser of {name!r} has no token for the end of a text; choose another base model")
        start = self.tokeniser.bos_token_id
        self.network = Shifted(self.model, self.end if start is None else start)
        self.local = OneByOne(self.network)

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        rows = [self.tokeniser(text, add_special_tokens=False)["input_ids"][:LONGEST] for text in texts]
        table = np.full((len(rows), 1 + max(map(len, rows), default=0)), PAD, dtype=np.int64)
        for place, row in zip(table, rows, strict=True):
            place[: len(row) + 1] = [token + 1 for token in (*row, self.end)]
        return table

    def arrays(self) -> Arrays:
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.network.named_parameters()}

    def load(self, arrays: Arrays, folder: Path) -> None:
        own = dict(self.network.named_parameters())
        found = {name: array for name, array in arrays.items() if ":" not in name}
        if {n: p.shape for n, p in own.items()} != {n: torch.Size(a.shape) for n, a in found.items()}:
            raise InputError(f"the weights in {folder} are not those of this base model; train into another folder")
        for name, parameter in own.items():
            parameter.data.copy_(torch.from_numpy(np.array(found[name])))

    def described(self, about: Any, stated: dict[str, Any]) -> Any:
        return about

    def finish(self, folder: Path) -> None:
        """The model in the library's own form, with its tokeniser."""
        self.model.save_pretrained(folder / KEPT)
        self.tokeniser.save_pretrained(folder / KEPT)


def _library() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError:
        raise InputError("a base model needs transformers: pip install 'dpassay[encoders]'") from None
