"""Generation by transformers: how a token is drawn from the logits, read from what `generate` is given.

It takes a GenerationConfig, a model (with its own config), a LogitsProcessorList, or the call itself as
`functools.partial(model.generate, ...)`. Tokens are drawn by a softmax at a temperature; its loss is bounded by a
processor that clamps the logits. Without one they may be anything, and no finite ε holds. Settings that exclude tokens
apply after the clamp; a repetition penalty of the config applies before it, and then changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from dpassay.adapters.base import Adapted
from dpassay.errors import InputError

# What `generate` uses for settings that are None, and those that change the logits after the processors.
DEFAULTS = {
    "do_sample": False,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "num_beams": 1,
    "num_return_sequences": 1,
}
CUTS = ("min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h", "watermarking_config")
NO_CUT = {"typical_p": (None, 1.0), "watermarking_config": (None,)}
HARMLESS = ("LogitNormalization", "InfNanRemoveLogitsProcessor")
WARPERS = {
    "TopKLogitsWarper": "top_k",
    "TopPLogitsWarper": "top_p",
    "MinPLogitsWarper": "min_p",
    "EpsilonLogitsWarper": "epsilon_cutoff",
}
MARGIN = 1e-3  # relative: probabilities of tokens are computed with single precision
PROBE = 1e4  # logits beyond this are clamped by any processor that bounds the loss


@dataclass(frozen=True)
class Cut:
    """What excludes tokens after a clamp, or moves their logits: its name, its value, the temperature before it."""

    name: str
    value: Any
    temperature: float

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"

    def among(self, width: float, tokens: int | None) -> str:
        """For logits in an interval of this width: "all" if every token is always kept.

        "apart" if two inputs can have no token in common, so that δ is 1 at every ε: one has its k tokens, or its one,
        at the upper limit and the others at the lower one. Otherwise, or if rounding could decide, "".
        """
        ratio = math.exp(-width / self.temperature)  # of a token at the lower limit to one at the upper
        if self.name == "min_p":
            return _side(ratio, self.value, ratio)
        if tokens is None:
            return ""
        least, rest = ratio / (tokens - 1 + ratio), (tokens - 1) * ratio / (1 + (tokens - 1) * ratio)
        if self.name == "top_k":
            return "all" if self.value >= tokens else "apart" if 2 * self.value <= tokens else ""
        if self.name == "top_p":
            return _side(least, 1 - self.value, rest)
        return _side(least, self.value, rest / (tokens - 1)) if self.name == "epsilon_cutoff" else ""


def _side(least: float, limit: float, others: float) -> str:
    """Whether no token is below the limit, or all but one can be; by more than rounding errors."""
    return "all" if least > limit * (1 + MARGIN) else "apart" if others < limit * (1 - MARGIN) else ""


@dataclass
class _Drawing:
    """How one token is drawn: limits of the logits, the temperature after them, and what excludes tokens."""

    limits: tuple[float, float] | None = None
    temperature: float = 1.0
    cuts: list[Cut] = field(default_factory=list)
    greedy: bool = False
    tokens: int | None = None  # of the vocabulary

    def add(self, processor: Any) -> None:
        """Another processor; what comes before a clamp does not change the range of its output."""
        kind = type(processor).__name__
        if "clip" in kind.lower() or "clamp" in kind.lower():
            self.limits, self.temperature, self.cuts = _limits(processor), 1.0, []
        elif kind == "TemperatureLogitsWarper":
            self.temperature *= processor.temperature
        elif kind not in HARMLESS:
            name = WARPERS.get(kind, "")
            self.cut(name or kind, getattr(processor, "epsilon" if name == "epsilon_cutoff" else name, None))

    def cut(self, name: str, value: Any) -> None:
        """Something that excludes tokens, or moves their logits, at the temperature so far."""
        self.cuts.append(Cut(name, value, self.temperature))

    @property
    def pipeline(self) -> str:
        softmax = "topk(1) | softmax(1)" if self.greedy else f"softmax({self.temperature!r})"
        if self.limits is None:  # whatever is excluded, one token can have nearly all the probability, or nearly none
            return softmax
        low, high = self.limits
        return f"clamp({low!r}, {high!r}) | {softmax if self.greedy else self._kept(high - low, softmax)}"

    def _kept(self, width: float, softmax: str) -> str:
        """The choice among the tokens that are kept after the clamp."""
        found = [(cut, cut.among(width, self.tokens)) for cut in self.cuts]
        for cut, kept in found:
            if kept == "apart":
                return f"topk({cut.value}) | {softmax}" if cut.name == "top_k" else "topk(1) | softmax(1)"
        unknown = [str(cut) for cut, kept in found if kept != "all"]
        if unknown:
            raise InputError(
                f"{', '.join(unknown)} after a clamp has no exact analysis here; if it drops tokens that "
                "another input keeps, no finite epsilon holds: turn it off (top_k=0, top_p=1.0), give the model too, "
                "partial(model.generate, ...), or audit it"
            )
        return softmax

    @property
    def remark(self) -> str:
        """What represents a cut without its own stage in the pipeline."""
        if self.limits is None or self.greedy or " | topk(1) | " not in f"{self.pipeline} | ":
            return ""
        width = self.limits[1] - self.limits[0]
        names = [str(cut) for cut in self.cuts if cut.among(width, self.tokens) == "apart" and cut.name != "top_k"]
        return f", whose {names[0]} can leave a single token" if names else ""


def read(thing: Any) -> Adapted | None:
    """How generation draws its tokens, as a pipeline; None for the library's other objects."""
    drawing, model, tokens, name = _Drawing(), None, 1, type(thing).__name__
    if name == "LogitsProcessorList":
        _add_all(drawing, thing)
    elif name == "GenerationConfig":
        tokens = _configure(drawing, thing, {})
    elif isinstance(thing, partial) and getattr(thing.func, "__name__", "") == "generate" and not thing.args:
        model, given, name = thing.func.__self__, thing.keywords, "generate"  # type: ignore[attr-defined]
        drawing.tokens = _vocabulary(model)
        _add_all(drawing, given.get("logits_processor") or [])
        tokens = _configure(drawing, given.get("generation_config") or model.generation_config, given)
    elif getattr(thing, "generation_config", None) is not None and hasattr(thing, "generate"):
        model = thing
        drawing.tokens = _vocabulary(model)
        tokens = _configure(drawing, thing.generation_config, {})
    else:
        return None
    stages = drawing.pipeline
    return Adapted(
        f"transformers' {name}{drawing.remark}",
        pipeline=stages if tokens == 1 else f"{stages} | times({tokens})",
        dim=drawing.tokens,
        mechanism=None if model is None else _mechanism(model, thing),
    )


def _vocabulary(model: Any) -> int:
    return int(model.config.get_text_config().vocab_size)


def _mechanism(model: Any, thing: Any) -> Generation:
    """The call to run; with the likelihood if the model continues its prompt and tokens are drawn."""
    call = thing if isinstance(thing, partial) else partial(thing.generate)
    setting = _settings(call.keywords.get("generation_config") or model.generation_config, call.keywords)
    if model.config.is_encoder_decoder or not setting("do_sample"):
        return Generation(call)
    library = import_module("transformers")
    penalty = setting("repetition_penalty")
    warpers = [
        *([] if penalty in (None, 1.0) else [library.RepetitionPenaltyLogitsProcessor(float(penalty))]),
        *(call.keywords.get("logits_processor") or []),
        library.TemperatureLogitsWarper(float(setting("temperature"))),
    ]
    warpers += [library.TopKLogitsWarper(setting("top_k"))] if setting("top_k") else []
    warpers += [library.TopPLogitsWarper(setting("top_p"))] if setting("top_p") < 1 else []
    warpers += [library.MinPLogitsWarper(setting("min_p"))] if setting("min_p") else []
    warpers += [library.TypicalLogitsWarper(setting("typical_p"))] if (setting("typical_p") or 1) < 1 else []
    return LikelyGeneration(call, tuple(warpers))


def _add_all(drawing: _Drawing, processors: Any) -> None:
    for processor in processors:
        drawing.add(processor)


def _configure(drawing: _Drawing, config: Any, given: dict[str, Any]) -> int:
    """Add the settings of a config, and those given besides; return the number of tokens."""
    setting = _settings(config, given)
    if setting("num_return_sequences") != 1 or (setting("num_beams") != 1 and setting("do_sample")):
        raise InputError(
            "dpassay can read one text sampled token by token (num_beams=1, "
            "num_return_sequences=1), or beam search without sampling"
        )
    if drawing.limits is not None and not setting("max_new_tokens"):
        raise InputError("each token adds to the loss: limit how many are generated, such as max_new_tokens=20")
    drawing.greedy = not setting("do_sample")
    drawing.temperature *= float(setting("temperature"))
    if setting("top_k"):
        drawing.cut("top_k", setting("top_k"))
    if setting("top_p") < 1:
        drawing.cut("top_p", setting("top_p"))
    for name in CUTS:
        if setting(name) not in NO_CUT.get(name, (None, 0)):
            drawing.cut(name, setting(name))
    return int(setting("max_new_tokens") or 1)


def _settings(config: Any, given: Mapping[str, Any]) -> Callable[[str], Any]:
    """What `generate` uses for a setting: the given value, else the config's, else its default."""

    def setting(name: str) -> Any:
        value = given.get(name, getattr(config, name, None))
        return DEFAULTS.get(name) if value is None else value

    return setting


def _limits(processor: Any) -> tuple[float, float]:
    """The limits to which a processor clamps logits, found by running it."""
    import torch

    scores = torch.linspace(-PROBE, PROBE, 2001, dtype=torch.float64)[None]
    clamped = processor(torch.zeros((1, 1), dtype=torch.long), scores.clone())
    low, high = float(clamped.min()), float(clamped.max())
    if not -PROBE < low < high < PROBE or not torch.equal(clamped, scores.clamp(low, high)):
        raise InputError(
            f"{type(processor).__name__} does not clamp logits to two limits as torch.clamp does: it was tried on "
            f"logits from {-PROBE:g} to {PROBE:g}; write the mechanism as a pipeline, 'clamp(low, high) | softmax(T)'"
        )
    return low, high


@dataclass(frozen=True)
class Generation:
    """A call of `generate` as a mechanism: from the token numbers of a prompt to those of the output.

    Its randomness comes from torch's generator, which is seeded for each batch.
    """

    call: Any

    @property
    def model(self) -> Any:
        """The model that generates."""
        return self.call.func.__self__

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw n continuations of the prompt, each up to its end."""
        import torch

        prompt = torch.as_tensor([list(x)], device=self.model.device)
        with torch.random.fork_rng(), torch.no_grad():
            # Not by a method of the generator: a trace would mistake the seed for noise of the code.
            torch.manual_seed(int(rng.bit_generator.random_raw()) >> 1)
            drawn = self.call(inputs=prompt.repeat(n, 1), attention_mask=torch.ones_like(prompt).repeat(n, 1))
        begins = 0 if self.model.config.is_encoder_decoder else len(x)
        return [self._ended(row) for row in drawn[:, begins:].tolist()]

    def _ended(self, row: list[int]) -> tuple[int, ...]:
        """The tokens up to the first that ends a text; the rest is padding."""
        config = self.call.keywords.get("generation_config") or self.model.generation_config
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        stop = next((i for i, token in enumerate(row) if token in ends), len(row))
        return tuple(row[: stop + 1])


@dataclass(frozen=True)
class LikelyGeneration(Generation):
    """The same for a model that continues its prompt, with the likelihood of its output."""

    warpers: tuple[Any, ...]

    def log_prob(self, output: Any, x: Any) -> float:
        """The log-probability of a continuation of the prompt, by the processors and the settings that are known."""
        import torch

        tokens = torch.as_tensor([[*x, *output]], device=self.model.device)
        total = 0.0
        with torch.no_grad():
            logits = self.model(tokens).logits[:, len(x) - 1 : -1].float()
            for i, token in enumerate(output):
                scores = logits[:, i]
                for warper in self.warpers:
                    scores = warper(tokens[:, : len(x) + i], scores)
                total += float(scores.log_softmax(-1)[0, token])
        return total
