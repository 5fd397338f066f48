"""Causal transformers models as the start of private training, from a folder or by their name on a hub.

A folder needs no network access. As many cells are computed at once as fit into memory; their bounded updates add up to
the same sum, which gets its noise once. With LoRA (Hu et al. 2022) the base model stays; small matrices are trained.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy, pad

from dpassay.errors import InputError
from dpassay.text.models.language_models import model_folder, quietly
from dpassay.text.models.words import PAD
from dpassay.training.aggregation import Stack
from dpassay.training.federated import Weights

if TYPE_CHECKING:
    from dpassay.text.models.folder import Arrays

LONGEST = 64  # tokens of a text
KEPT, ADAPTER = "transformers", "adapter"  # folders in the model's folder
TOKENS = "The model's tokens are those of its base model."
COPIES = 3  # of a cell's gradient in memory, about
CPU_BYTES = 2**30
MOST_TOGETHER = 256  # cells


class ShiftedTokens(nn.Module):
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


class Vectorised:
    """Local training of many cells at once: `torch.func` computes a gradient for each, with no loop over cells.

    A cell's update depends on its own sentences alone, up to the last digits, which depend on how many cells are
    computed together. It is bounded afterwards, whatever it is.
    """

    def __init__(self, network: nn.Module, at_once: int | None = None) -> None:
        self.network = network
        trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        size = sum(parameter.numel() for parameter in trained) * 4 * COPIES
        self.together = at_once or max(1, min(MOST_TOGETHER, _memory(trained[0].device) // size))

    def updates(self, weights: Weights, tables: Tensor, rate: float, round_: int) -> Stack:
        with _for_gradients(tables.device):
            stack: Stack | None = None
            for step in range(tables.shape[1]):
                shared = stack is None  # all cells begin with the same weights, which are not copied
                one_each = vmap(grad(self._loss), in_dims=(None if shared else 0, 0))
                moved = one_each(weights if stack is None else stack, tables[:, step])
                for name, gradient in moved.items():
                    gradient.mul_(-rate).add_(0.0 if stack is None else stack[name] - weights[name])
                last = step + 1 == tables.shape[1]
                stack = moved if last else {name: moved[name] + weights[name] for name in moved}
        assert stack is not None, "there is at least one step"
        return stack

    def _loss(self, weights: Weights, texts: Tensor) -> Tensor:
        """The mean loss of the tokens of a cell; 0 for a cell without any."""
        scores = torch.func.functional_call(self.network, weights, (texts,))
        total = cross_entropy(scores.flatten(0, 1), texts.flatten(), ignore_index=PAD, reduction="sum")
        return total / (texts != PAD).sum().clamp(min=1)


def _memory(device: torch.device) -> int:
    """Bytes for the gradients of all cells that are computed together."""
    return torch.cuda.mem_get_info(device)[0] // 2 if device.type == "cuda" else CPU_BYTES


@contextmanager
def _for_gradients(device: torch.device) -> Iterator[None]:
    """Attention by a formula that can be vectorized; on a GPU, products in TF32: gradients are bounded anyway."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


class Causal:
    """A transformers model that can be trained."""

    words: tuple[str, ...] = ()
    vocabulary_from = TOKENS

    def __init__(self, name: str, device: torch.device, adapter: Adapter | None = None, at_once: int | None = None):
        library, folder = _library(), str(model_folder(name))
        given: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        try:
            with quietly():
                self.tokenizer = library.AutoTokenizer.from_pretrained(folder, **given)
                given |= {"use_safetensors": True, "dtype": torch.float32}
                model = library.AutoModelForCausalLM.from_pretrained(folder, **given)
        except Exception as error:  # the library raises what its many parts raise
            said = str(error).split("\n", maxsplit=1)[0]
            raise InputError(
                f"{name!r} is not a causal transformers model that can be read here: {said}"[:300]
            ) from None
        self.adapter = adapter
        model = model if adapter is None else adapter.on(model)
        self.model, self.end = model.to(device).eval(), self.tokenizer.eos_token_id  # no dropout: fewer random numbers
        if self.end is None:
            raise InputError(f"the tokenizer of {name!r} has no token for the end of a text; choose another base model")
        start = self.tokenizer.bos_token_id
        self.network = ShiftedTokens(self.model, self.end if start is None else start)
        self.local = Vectorised(self.network, at_once)

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        rows = [self.tokenizer(text, add_special_tokens=False)["input_ids"][:LONGEST] for text in texts]
        table = np.full((len(rows), 1 + max(map(len, rows), default=0)), PAD, dtype=np.int64)
        for place, row in zip(table, rows, strict=True):
            place[: len(row) + 1] = [token + 1 for token in (*row, self.end)]
        return table

    def arrays(self) -> Arrays:
        return {name: tensor.detach().cpu().numpy() for name, tensor in trained(self.network).items()}

    def load(self, arrays: Arrays, folder: Path) -> None:
        own = trained(self.network)
        found = {name: array for name, array in arrays.items() if ":" not in name}
        if {n: p.shape for n, p in own.items()} != {n: torch.Size(a.shape) for n, a in found.items()}:
            raise InputError(f"the weights in {folder} are not those of this base model; train into another folder")
        for name, parameter in own.items():
            parameter.data.copy_(torch.from_numpy(np.array(found[name])))

    def described(self, about: Any, stated: dict[str, Any]) -> Any:
        return about

    def finish(self, folder: Path) -> None:
        """The model in the library's own form, with its tokenizer; what an adapter learned is added to the weights."""
        with quietly():
            if self.adapter is not None:
                for config in self.model.peft_config.values():
                    put_in_order(config)
                self.model.save_pretrained(folder / ADAPTER)
            whole = self.model if self.adapter is None else deepcopy(self.model).merge_and_unload()
            whole.save_pretrained(folder / KEPT)
            self.tokenizer.save_pretrained(folder / KEPT)


class Whole(Causal):
    """A trained model whose adapter was added to its weights: what it learned is in them already."""

    def load(self, arrays: Arrays, folder: Path) -> None:
        """There is nothing else to load."""


@dataclass(frozen=True)
class Adapter:
    """Small matrices beside those of a base model, which stays as it is.

    >>> Adapter.read("lora"), Adapter.read("lora:16").rank
    (Adapter(rank=8, seed=0), 16)
    """

    rank: int = 8
    seed: int = 0

    @staticmethod
    def read(said: str, seed: int = 0) -> Adapter:
        """An adapter by its name, with its rank if that is not 8."""
        name, _, rank = said.partition(":")
        if name != "lora":
            raise InputError(f"unknown adapter {said!r:.40}; there is lora, or lora:RANK")
        if rank and not (rank.isdecimal() and 1 <= int(rank) <= 1024):
            raise InputError(f"the rank of an adapter must be a whole number from 1 to 1024, got {rank!r:.40}")
        return Adapter(int(rank or 8), seed)

    def on(self, model: Any) -> Any:
        """The model with the adapter: at first the same function, since one of each two matrices is 0."""
        try:
            peft = importlib.import_module("peft")
        except ImportError:
            raise InputError("an adapter needs peft: pip install 'dpassay[adapters]'") from None
        torch.manual_seed(self.seed)
        asked = peft.LoraConfig(
            r=self.rank, lora_alpha=2 * self.rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # GPT-2's matrices are transposed, which peft notes and handles
            return peft.get_peft_model(model, asked)


def put_in_order(config: Any) -> None:
    """Make sorted lists of a configuration's sets, whose order would differ from run to run in its file.

    >>> from types import SimpleNamespace
    >>> config = SimpleNamespace(target_modules={"b", "a"}, r=8)
    >>> put_in_order(config)
    >>> config
    namespace(target_modules=['a', 'b'], r=8)
    """
    for name, value in list(vars(config).items()):
        if isinstance(value, set | frozenset):
            setattr(config, name, sorted(value))


def trained(network: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that training changes."""
    return {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}


def _library() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError:
        raise InputError("a base model needs transformers: pip install 'dpassay[encoders]'") from None
