"""Generation by transformers: how a token is drawn from the logits, read from what `generate` is given.

It takes a GenerationConfig, a model (with its own config), a LogitsProcessorList, or the call itself as
`functools.partial(model.generate, ...)`. Tokens are drawn by a softmax at a temperature; what bounds its loss is a
processor that clamps the logits. Without one they may be anything, and no finite ε holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from dpassay.adapters.base import Adapted
from dpassay.errors import InputError

# What `generate` takes for settings that are None, and those that leave tokens out.
DEFAULTS = {"do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "num_beams": 1}
CUTS = ("min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_h")
HARMLESS = ("LogitNormalization", "InfNanRemoveLogitsProcessor")
PROBE = 1e4  # logits beyond this are clamped by any processor that bounds the loss


@dataclass
class _Drawing:
    """How one token is drawn: limits of the logits, the temperature behind them, and what leaves tokens out."""

    limits: tuple[float, float] | None = None
    temperature: float = 1.0
    cuts: list[str] = field(default_factory=list)
    greedy: bool = False

    def add(self, processor: Any) -> None:
        """Another processor; what comes before a clamp changes nothing of what comes out of it."""
        kind = type(processor).__name__
        if "clip" in kind.lower() or "clamp" in kind.lower():
            self.limits, self.temperature, self.cuts = _limits(processor), 1.0, []
        elif kind == "TemperatureLogitsWarper":
            self.temperature *= processor.temperature
        elif kind not in HARMLESS:
            value = getattr(processor, "top_k", getattr(processor, "top_p", None))
            self.cuts.append(kind if value is None else f"{kind}({value})")

    @property
    def pipeline(self) -> str:
        softmax = "topk(1) | softmax(1)" if self.greedy else f"softmax({self.temperature!r})"
        if self.limits is None:  # whatever is left out, one token can have nearly all the probability, or nearly none
            return softmax
        if self.cuts and not self.greedy:
            raise InputError(
                f"{', '.join(self.cuts)} behind a clamp has no exact analysis here; where it leaves out tokens that "
                "another input keeps, no finite epsilon holds: leave it out (top_k=0, top_p=1.0), or audit the model"
            )
        low, high = self.limits
        return f"clamp({low!r}, {high!r}) | {softmax}"


def read(thing: Any) -> Adapted | None:
    """How generation draws its tokens, as a pipeline; None for the library's other objects."""
    drawing, model, tokens, name = _Drawing(), None, 1, type(thing).__name__
    if name == "LogitsProcessorList":
        _add_all(drawing, thing)
    elif name == "GenerationConfig":
        tokens = _configure(drawing, thing, {})
    elif isinstance(thing, partial) and getattr(thing.func, "__name__", "") == "generate" and not thing.args:
        model, given, name = thing.func.__self__, thing.keywords, "generate"  # type: ignore[attr-defined]
        _add_all(drawing, given.get("logits_processor") or [])
        tokens = _configure(drawing, given.get("generation_config") or model.generation_config, given)
    elif getattr(thing, "generation_config", None) is not None and hasattr(thing, "generate"):
        model = thing
        tokens = _configure(drawing, thing.generation_config, {})
    else:
        return None
    stages = drawing.pipeline
    return Adapted(
        f"transformers' {name}",
        pipeline=stages if tokens == 1 else f"{stages} | times({tokens})",
        dim=None if model is None else int(model.config.get_text_config().vocab_size),
        mechanism=None
        if model is None
        else Generation(thing if isinstance(thing, partial) else partial(thing.generate)),
    )


def _add_all(drawing: _Drawing, processors: Any) -> None:
    for processor in processors:
        drawing.add(processor)


def _configure(drawing: _Drawing, config: Any, given: dict[str, Any]) -> int:
    """Add what a config says, and what is said beside it; the number of tokens."""

    def setting(name: str) -> Any:
        value = given.get(name, getattr(config, name, None))
        return DEFAULTS.get(name) if value is None else value

    if setting("num_beams") != 1:
        raise InputError("beam search draws several texts and keeps the likeliest; dpassay reads num_beams=1 only")
    drawing.greedy = not setting("do_sample")
    drawing.temperature *= float(setting("temperature"))
    cuts = [f"top_k={setting('top_k')}"] if setting("top_k") else []
    cuts += [f"top_p={setting('top_p')}"] if setting("top_p") < 1 else []
    drawing.cuts += [*cuts, *(f"{name}={setting(name)}" for name in CUTS if setting(name) is not None)]
    return int(setting("max_new_tokens") or 1)


def _limits(processor: Any) -> tuple[float, float]:
    """The limits to which a processor clamps logits, as it does it."""
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
    """A call of `generate` as a mechanism: from the token numbers of a prompt to those that are put out.

    What it draws comes from the generator of torch, which is seeded for each batch.
    """

    call: Any

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw n continuations of the prompt."""
        import torch

        prompt = torch.as_tensor([list(x)], device=self.call.func.__self__.device)
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(int(rng.integers(2**63)))
            drawn = self.call(inputs=prompt.repeat(n, 1), attention_mask=torch.ones_like(prompt).repeat(n, 1))
        return [tuple(row) for row in drawn[:, prompt.shape[1] :].tolist()]
