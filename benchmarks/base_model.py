"""Private training from a base model: tokens per second of whole rounds, as it was and as it is.

`python benchmarks/base_model.py [FILE] [--device cuda]` makes a network of GPT-2 small's size with random weights, a
round of cells of random tokens, and takes such rounds in three ways: cells one after the other with noise by SHAKE-256
(as it was), all weights with gradients for many cells at once, and LoRA, if peft is installed. Each round bounds every
cell's update, adds noise and lets the server take a step: the same guarantee. Bar: 5 times as many tokens per second on
one H200. Needs numpy, torch and transformers.
"""

import argparse
import json
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import transformers
from torch.nn.functional import cross_entropy

from dpassay.errors import InputError
from dpassay.training.aggregation import PerUnit, flat, projected
from dpassay.training.federated import Federated, RoundPlan, Sentences, Server
from dpassay.training.networks.causal import Adapter, ShiftedTokens, Vectorised
from dpassay.training.randomness import Keyed

BAR = 5.0


class OneByOne:
    """Cells one after the other, as training from a base model was."""

    together = 1

    def __init__(self, network) -> None:
        self.network = network

    def updates(self, weights, tables, rate, round_):
        found = {name: [] for name in weights}
        for table in tables:
            own = {name: tensor.clone() for name, tensor in weights.items()}
            for texts in table:
                kept = texts[(texts != 0).any(dim=1)]
                with torch.enable_grad():
                    for tensor in own.values():
                        tensor.requires_grad_()
                    scores = torch.func.functional_call(self.network, own, (kept,))
                    loss = cross_entropy(scores.flatten(0, 1), kept.flatten(), ignore_index=0)
                    gradients = torch.autograd.grad(loss, list(own.values()))
                for tensor, gradient in zip(own.values(), gradients, strict=True):
                    tensor.requires_grad_(False).sub_(gradient, alpha=rate)
            for name, tensor in own.items():
                found[name].append(tensor.sub_(weights[name]))
        return {name: torch.stack(tensors) for name, tensors in found.items()}


class Former(PerUnit):
    """Sums of projections, with copies of all updates, as they were."""

    def combine(self, cells, parts, step=None):
        total = None
        for _, updates in parts:
            found = projected(flat(updates), self.clip).sum(0)
            total = found if total is None else total + found
        return total


class ByShake(Keyed):
    """Noise by SHAKE-256 on the CPU, as it was."""

    def normal(self, round_, size, deviation, device):
        return super().normal(round_, size, deviation, torch.device("cpu")).to(device)


def network(small: bool, device: torch.device, adapter: bool) -> ShiftedTokens:
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 1000} if small else {}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes))
    return ShiftedTokens((Adapter().on(model) if adapter else model).to(device).eval(), 0)


def rounds(made: ShiftedTokens, local, kind, randomness, given, device: torch.device) -> tuple[float, dict]:
    """Tokens per second of whole rounds, and the first sum."""
    rng = np.random.default_rng(1)
    words = made.model.config.vocab_size
    numbers = rng.integers(1, words, (given.cells * given.texts, given.tokens))
    plan = RoundPlan(rounds=100, batch=given.texts)
    cells = np.arange(len(numbers)).reshape(given.cells, given.texts).tolist()
    weights = {name: p.data for name, p in made.named_parameters() if p.requires_grad}
    aggregation = kind(given.cells, 1.0, 0.5)
    server, sentences = Server(weights, plan), Sentences(numbers, cells, plan)
    engine = Federated(weights, local, sentences, server, randomness, aggregation.drawn, aggregation, 0.5)
    sums = aggregation.combine(range(given.cells), engine._parts(range(given.cells), 0)) if given.compare else None
    times = []
    for number in range(given.rounds + 1):
        began = time.perf_counter()
        engine.round(number)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return given.cells * given.texts * given.tokens / float(np.median(times[1:])), {"sum": sums, "times": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--cells", type=int, default=64)
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tiny network, to try the script")
    parser.add_argument("--compare", action="store_true", help="compare the sums of the two ways too")
    given = parser.parse_args()
    device, found, sums = torch.device(given.device), {}, []
    ways = {"as it was": (False, OneByOne, Former, ByShake), "all weights": (False, Vectorised, PerUnit, Keyed)}
    if find_spec("peft"):
        ways["LoRA"] = (True, Vectorised, PerUnit, Keyed)
    for name, (adapter, local, kind, source) in ways.items():
        try:
            made = network(given.small, device, adapter)
        except InputError as error:
            print(f"{name}: not measured, {error}")
            continue
        trained = sum(p.numel() for p in made.parameters() if p.requires_grad)
        way = local(made)
        speed, more = rounds(made, way, kind, source(bytes(32)), given, device)
        sums.append(more["sum"])
        found[name] = {
            "tokens_per_second": speed,
            "trained": trained,
            "together": way.together,
            "seconds": more["times"],
        }
        ratio = speed / found["as it was"]["tokens_per_second"]
        print(
            f"{name:12s} {trained:12,d} weights, {way.together:4d} cells at once: "
            f"{speed:12,.0f} tokens/s, {ratio:6.1f}x",
            flush=True,
        )
        del made, way
        if device.type == "cuda":
            torch.cuda.empty_cache()
    if given.compare:
        apart = float((sums[0] - sums[1]).norm() / sums[0].norm())
        print(f"the sums of both ways differ by {apart:.2g} of their norm")
        found["sums_differ"] = apart
    if given.file:
        about = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "torch": torch.__version__}
        given.file.write_text(
            json.dumps({**vars(given), "file": None, **about, "bar": BAR, "found": found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
