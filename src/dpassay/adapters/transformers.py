"""Generation by transformers: how a token is drawn from the logits, read from what `generate` is given.

It takes a GenerationConfig, a model (with its own config), a LogitsProcessorList, or the call itself as
`functools.partial(model.generate, ...)`. Tokens are drawn by a softmax at a temperature; its loss is bounded by a
processor that clamps the logits. Without one they may be anything, and no finite ε holds. Settings that exclude tokens
apply after the clamp; a repetition penalty of the config applies before it, and then changes nothing. What a call
leaves open is taken from the model's own config, as the library does it, and real calls confirm what was read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from importlib import import_module
from typing import Any

from dpassay.adapters.base import ReadObject
from dpassay.adapters.confirming import Confirmation
from dpassay.adapters.generation import (
    Formula,
    Generation,
    LikelyGeneration,
    as_call,
    confirm_call,
    confirm_processors,
    is_clamp,
    quiet,
)
from dpassay.errors import InputError, in_one_line
from dpassay.evidence.verdict import Verdict
from dpassay.values import dataclass

# What settings mean that are None in the effective config.
DEFAULTS = {
    "do_sample": False,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "num_beams": 1,
    "num_return_sequences": 1,
}
# Arguments of `generate` that are no settings; whoever stops a text may look at its prompt.
STOPPING = ("stopping_criteria", "stop_strings", "max_time")
MODES = ("greedy_search", "sample", "beam_search", "beam_sample")
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
        if is_clamp(processor):
            self.limits, self.temperature, self.cuts = _limits(processor, self.tokens), 1.0, []
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


def read(thing: Any) -> ReadObject | None:
    """How generation draws its tokens, as a pipeline; None for the library's other objects."""
    drawing, name = _Drawing(), type(thing).__name__
    if name == "LogitsProcessorList":
        for processor in thing:
            drawing.add(processor)
        return _adapted(drawing, name, 1, partial(_confirmed_list, thing, drawing))
    if name == "GenerationConfig":
        tokens = _configure(drawing, thing)
        unset = "A config alone: what it leaves unset, generate takes from the model's own generation_config."
        return replace(_adapted(drawing, name, tokens), caveats=(unset,))
    is_call = isinstance(thing, partial) and getattr(thing.func, "__name__", "") == "generate" and not thing.args
    if not is_call and (getattr(thing, "generation_config", None) is None or not hasattr(thing, "generate")):
        return None
    call = as_call(thing)
    model, given = call.func.__self__, call.keywords
    drawing.tokens = _vocabulary(model)
    for processor in given.get("logits_processor") or []:
        drawing.add(processor)
    config = effective(model, given)
    tokens = _configure(drawing, config, given)
    made = _adapted(drawing, "generate" if is_call else name, tokens, partial(_confirmed_call, call, drawing, tokens))
    return replace(made, mechanism=_mechanism(call, config))


def _adapted(
    drawing: _Drawing, name: str, tokens: int, confirm: Callable[[Verdict], Confirmation] | None = None
) -> ReadObject:
    stages = drawing.pipeline
    return ReadObject(
        f"transformers' {name}{drawing.remark}",
        pipeline=stages if tokens == 1 else f"{stages} | times({tokens})",
        dim=drawing.tokens,
        confirm=confirm,
    )


def _confirmed_list(processors: Any, drawing: _Drawing, verdict: Verdict) -> Confirmation:
    if drawing.limits is None or " | topk" in drawing.pipeline:
        return Confirmation(True, "The processors are a setting: a model may give them any logits.")
    return confirm_processors(processors, _formula(drawing, 1), verdict.mechanism.dim)


def _confirmed_call(call: Any, drawing: _Drawing, tokens: int, verdict: Verdict) -> Confirmation:
    return confirm_call(call, _formula(drawing, tokens), verdict.guarantee)


def _formula(drawing: _Drawing, tokens: int) -> Formula:
    found = re.search(r" \| topk\((\d+)\)", drawing.pipeline)
    favourites = int(found[1]) if found else None
    return Formula(drawing.limits, drawing.temperature, tokens, favourites, drawing.greedy)


def effective(model: Any, given: Mapping[str, Any]) -> Any:
    """The config that a call of `generate` uses, from the library itself: what is given, else the model's own."""
    prepare = getattr(model, "_prepare_generation_config", None)
    if prepare is None:
        raise InputError(
            "this version of transformers does not say which generation config a call uses: write the mechanism as a "
            "pipeline, 'clamp(low, high) | softmax(T)'"
        )
    other = ("generation_config", "logits_processor", "stopping_criteria", "assistant_model", "streamer")
    try:
        with quiet():
            config = prepare(given.get("generation_config"), **{k: v for k, v in given.items() if k not in other})[0]
        mode = str(getattr(config.get_generation_mode(given.get("assistant_model")), "value", ""))
    except Exception as error:
        said = in_one_line(type(error).__name__, str(error))[:200]
        raise InputError(f"transformers refuses this call of generate ({said})") from None
    if mode not in MODES or given.get("custom_generate") is not None:
        raise InputError(f"dpassay can read sampling, greedy search and beam search, not {mode or 'this mode'}")
    return config


def _vocabulary(model: Any) -> int:
    return int(model.config.get_text_config().vocab_size)


def _mechanism(call: Any, config: Any) -> Generation:
    """The call to run; with the likelihood if the model continues its prompt and tokens are drawn."""
    model, setting = call.func.__self__, _settings(config)
    ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    if model.config.is_encoder_decoder or not setting("do_sample"):
        return Generation(call, tuple(ends))
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
    return LikelyGeneration(call, tuple(ends), tuple(warpers))


def _configure(drawing: _Drawing, config: Any, given: Mapping[str, Any] | None = None) -> int:
    """Add the settings of an effective config, and return the number of tokens."""
    setting = _settings(config)
    if setting("num_return_sequences") != 1 or (setting("num_beams") != 1 and setting("do_sample")):
        raise InputError(
            "dpassay can read one text sampled token by token (num_beams=1, "
            "num_return_sequences=1), or beam search without sampling"
        )
    if drawing.limits is not None and not setting("max_new_tokens"):
        raise InputError("each token adds to the loss: limit how many are generated, such as max_new_tokens=20")
    if not float(setting("temperature")) > 0:
        raise InputError(
            f"the temperature must be above 0, got {setting('temperature')}; for greedy search, do_sample=False"
        )
    drawing.greedy = not setting("do_sample")
    drawing.temperature *= float(setting("temperature"))
    if setting("top_k"):
        drawing.cut("top_k", setting("top_k"))
    if setting("top_p") < 1:
        drawing.cut("top_p", setting("top_p"))
    for name in CUTS:
        if setting(name) not in NO_CUT.get(name, (None, 0)):
            drawing.cut(name, setting(name))
    for name in STOPPING:
        if (given or {}).get(name) or setting(name):
            drawing.cut(name, None)
    return int(setting("max_new_tokens") or 1)


def _settings(config: Any) -> Callable[[str], Any]:
    """A setting of an effective config."""

    def setting(name: str) -> Any:
        value = getattr(config, name, None)
        return DEFAULTS.get(name) if value is None else value

    return setting


def _limits(processor: Any, tokens: int | None) -> tuple[float, float]:
    """The limits to which a processor clamps logits, found by running it."""
    import torch

    name = type(processor).__name__
    scores = torch.linspace(-PROBE, PROBE, max(tokens or 2001, 2), dtype=torch.float64)[None]
    try:
        clamped = processor(torch.zeros((1, 1), dtype=torch.long), scores.clone())
        low, high = float(clamped.min()), float(clamped.max())
        clamps = -PROBE < low < high < PROBE and torch.equal(clamped, scores.clamp(low, high).to(clamped))
    except Exception as error:
        said = in_one_line(type(error).__name__, str(error))[:160]
        raise InputError(
            f"{name} cannot be applied to {scores.shape[1]} logits ({said}): with limits for each token, give the "
            "model too, partial(model.generate, ...), or write the mechanism as a pipeline"
        ) from None
    if not clamps:
        raise InputError(
            f"{name} does not clamp logits to two limits as torch.clamp does: it was tried on "
            f"logits from {-PROBE:g} to {PROBE:g}; write the mechanism as a pipeline, 'clamp(low, high) | softmax(T)'"
        )
    return low, high
