"""LLaMA networks from GGUF files, read in a second or two: the same weights as transformers reads, bit for bit.

transformers takes half a minute for a network of 135 million weights, nearly all of it for names and settings. Nothing
in a file is executed, and a file that ends early or says something impossible is refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError

if TYPE_CHECKING:
    import torch

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # GGUF's types
STRING, ARRAY = 8, 9
F32, Q4_1, Q8_0 = 0, 3, 8  # of the kinds of weights, those that are read here
BLOCK = 32  # weights that share a scale
BYTES = {F32: 4 * BLOCK, Q4_1: 4 + BLOCK // 2, Q8_0: 2 + BLOCK}  # of a block
SPECIAL = 3  # a token that is no text, by tokenizer.ggml.token_type
LAYERS = {  # GGUF's names of a layer's weights, and transformers'
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OTHERS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor is, and how it is written."""

    shape: tuple[int, ...]
    kind: int
    begin: int


@dataclass(frozen=True, eq=False)
class GgufFile:
    """The settings of a GGUF file, and its tensors by name."""

    path: Path
    data: memoryview
    settings: dict[str, Any]
    tensors: dict[str, Tensor]

    @staticmethod
    @lru_cache(maxsize=1)
    def read(path: Path) -> GgufFile:
        """A file's settings and the places of its tensors."""
        try:
            with path.open("rb") as opened:
                reader = _GgufReader(memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ)))
            return GgufFile(path, reader.data, *reader.header())
        except (OSError, ValueError, IndexError, KeyError, struct.error, OverflowError) as error:
            raise InputError(f"{path} cannot be read as a GGUF file ({error!r:.80}); install it again") from None

    def weights(self, name: str) -> NDArray[np.float32]:
        """A tensor's weights."""
        tensor = self.tensors[name]
        count = int(np.prod(tensor.shape))
        if tensor.kind not in BYTES or (count % BLOCK and tensor.kind != F32):
            raise InputError(f"{self.path}: {name} is of GGUF's kind {tensor.kind}, which is not read here")
        size = 4 * count if tensor.kind == F32 else count // BLOCK * BYTES[tensor.kind]
        raw = np.frombuffer(self.data[tensor.begin : tensor.begin + size], dtype=np.uint8)
        if len(raw) != size:
            raise InputError(f"{self.path} ends before the end of {name}; install it again")
        if tensor.kind == F32:
            return raw.view(np.float32).reshape(tensor.shape).copy()
        return _weights(raw.reshape(-1, BYTES[tensor.kind]), tensor.kind).reshape(tensor.shape)


def _weights(blocks: NDArray[np.uint8], kind: int) -> NDArray[np.float32]:
    """The weights of blocks: bytes times a scale, or half bytes times a scale and an offset."""
    scale = np.ascontiguousarray(blocks[:, :2]).view(np.float16).astype(np.float32)
    if kind == Q8_0:
        return blocks[:, 2:].view(np.int8) * scale
    offset = np.ascontiguousarray(blocks[:, 2:4]).view(np.float16).astype(np.float32)
    found = np.empty((len(blocks), BLOCK), dtype=np.float32)
    np.multiply(blocks[:, 4:] & 15, scale, out=found[:, : BLOCK // 2])
    np.multiply(blocks[:, 4:] >> 4, scale, out=found[:, BLOCK // 2 :])
    found += offset
    return found


class _GgufReader:
    """Values one after the other."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def number(self, kind: str) -> Any:
        (value,) = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self) -> str:
        length = self.number("Q")
        if self.at + length > len(self.data):
            raise ValueError("a text goes beyond the end")
        self.at += length
        return str(self.data[self.at - length : self.at], "utf-8")

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            return self.number(NUMBERS[kind])
        inner, count = self.number("I"), self.number("Q")
        if inner in NUMBERS:
            values = struct.unpack_from(f"<{count}{NUMBERS[inner]}", self.data, self.at)
            self.at += struct.calcsize(f"<{count}{NUMBERS[inner]}")
            return list(values)
        return [self.value(inner) for _ in range(count)]

    def header(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        if bytes(self.data[:4]) != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self.at = 4
        version, tensors, settings = self.number("I"), self.number("Q"), self.number("Q")
        if version not in (2, 3):
            raise ValueError(f"version {version}")
        said = {self.text(): self.value(self.number("I")) for _ in range(settings)}
        listed = {}
        for _ in range(tensors):
            name = self.text()
            shape = tuple(self.number("Q") for _ in range(self.number("I")))
            listed[name] = shape[::-1], self.number("I"), self.number("Q")
        step = said.get("general.alignment", 32)
        begin = -(-self.at // step) * step
        return said, {name: Tensor(shape, kind, begin + at) for name, (shape, kind, at) in listed.items()}


def llama(path: Path) -> Any:
    """The network of a file, in single precision. Its weights are read while transformers imports the network."""
    from concurrent.futures import ThreadPoolExecutor

    import torch

    library: Any = import_module("transformers")
    file = GgufFile.read(path)
    try:
        config = library.LlamaConfig(**_config(file))
        with ThreadPoolExecutor(1) as thread:
            reading = thread.submit(_named, file, config)
            causal = library.LlamaForCausalLM
        named = reading.result()
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise InputError(f"{path} does not describe a LLaMA network ({error!r:.80}); install it again") from None
    with torch.device("meta"):  # weights are not drawn first, only to be replaced
        network = causal(config)
    if config.tie_word_embeddings:
        named["lm_head.weight"] = named["model.embed_tokens.weight"]
    shapes = {name: weights.shape for name, weights in network.state_dict().items()}
    wrong = sorted(n for n in named.keys() | shapes.keys() if n not in named or named[n].shape != shapes.get(n))
    if wrong:
        raise InputError(f"{path} has other weights than its settings say, such as {wrong[0]}; install it again")
    network.load_state_dict(named, assign=True)
    network.tie_weights()
    turning = network.model.rotary_emb
    network.model.rotary_emb = type(turning)(config=config)  # its frequencies are computed, not saved
    return network.eval()


def _config(file: GgufFile) -> dict[str, Any]:
    said = {name.removeprefix("llama."): value for name, value in file.settings.items()}
    if said["general.architecture"] != "llama":
        raise ValueError(f"architecture {said['general.architecture']}")
    token = "tokenizer.ggml.{}_token_id".format
    return {
        "vocab_size": said["vocab_size"],
        "hidden_size": said["embedding_length"],
        "intermediate_size": said["feed_forward_length"],
        "num_hidden_layers": said["block_count"],
        "num_attention_heads": said["attention.head_count"],
        "num_key_value_heads": said["attention.head_count_kv"],
        "head_dim": said["rope.dimension_count"],
        "max_position_embeddings": said["context_length"],
        "rms_norm_eps": said["attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_type": "default", "rope_theta": said["rope.freq_base"]},
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": said[token("bos")],
        "eos_token_id": said[token("eos")],
        "pad_token_id": said[token("padding")],
        "dtype": "float32",
    }


def _named(file: GgufFile, config: Any) -> dict[str, torch.Tensor]:
    """The weights by transformers' names, with the rows of queries and keys in transformers' order."""
    import torch

    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    found = {}
    for name in file.tensors:
        part = name.removesuffix(".weight")
        weights = file.weights(name)
        if part.startswith("blk."):
            _, layer, kind = part.split(".")
            if kind in heads:
                halves = weights.reshape(heads[kind], -1, 2, weights.shape[1])
                weights = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weights.shape)
            found[f"model.layers.{layer}.{LAYERS[kind]}.weight"] = torch.from_numpy(weights)
        else:
            found[f"{OTHERS[part]}.weight"] = torch.from_numpy(weights)
    return found


def tokenizer(path: Path) -> Any:
    """The tokenizer of a file: byte pairs, as GPT-2 splits a text."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    library: Any = import_module("transformers")
    said = GgufFile.read(path).settings
    try:
        words, kinds = said["tokenizer.ggml.tokens"], said["tokenizer.ggml.token_type"]
        merges = [tuple(pair.split(" ", 1)) for pair in said["tokenizer.ggml.merges"]]
        names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
        special = {f"{a}_token": words[said[f"tokenizer.ggml.{b}_token_id"]] for a, b in names.items()}
        core = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, merges))
        core.add_special_tokens(
            [
                AddedToken(w, normalized=False, special=True)
                for w, kind in zip(words, kinds, strict=True)
                if kind == SPECIAL
            ]
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path} does not describe a tokenizer ({error!r:.80}); install it again") from None
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    made = library.PreTrainedTokenizerFast(tokenizer_object=core, **special)
    made.chat_template = said.get("tokenizer.chat_template")
    return made
