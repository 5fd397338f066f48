"""DP-Prompt (Utpala et al. 2023): a language model is asked to rewrite a text, and its tokens are drawn privately.

Each token is drawn from the softmax of clipped logits (tokens.py), given the tokens before it. At most `tokens` are
drawn per text, and the end token is one of those that can be drawn. By adaptive composition the whole text loses at
most `tokens` times the loss of one token, between any two texts. Nothing is assumed about the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpassay.compute.threads import torch_in_threads
from dpassay.core.numbers import up
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.text.models.language_models import CAUSAL, ENCODER_DECODER, PromptedModel, Source, card_of, load
from dpassay.text.models.words import as_text
from dpassay.text.rewriters.base import PRETRAINED, TIMING, TextGuarantee
from dpassay.text.rewriters.tokens.drawing import (
    Below,
    DrawnText,
    LogitLimits,
    TokenLaw,
    affordable,
    real_setting,
    secret,
    seeded,
    sharpest,
    whole,
)

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict
    from dpassay.text.models.generation import Alone, Writing

Sampled = Callable[[Sequence[str]], list[tuple[DrawnText, float]]]
PROMPT = "Repeat this text word for word: {text}"  # the best of six: docs/systems/language-models.md
PROOFS = (Theorem.EXPONENTIAL, Theorem.COMPOSITION, Theorem.POST_PROCESSING)


def make(
    epsilon: float,
    model: Source,
    tokens: str | None = None,
    low: str | None = None,
    high: str | None = None,
    width: str | None = None,
    prompt: str = PROMPT,
    longest: str = "128",
    batch: str = "8",
    device: str = "cpu",
) -> Prompted:
    """DP-Prompt with this total ε for a text of at most `tokens` tokens, between any two texts.

    `model` is a folder, a name on the hub, `smollm2`, or in Python a `PromptedModel`. `prompt` has {text} where the
    text goes, or is @FILE. Only the first `longest` tokens of a text are read, or as many as the model has room for.
    Without `tokens` there are as many as ε can buy well, and without limits logits are clipped as closely as a low
    temperature allows: `affordable` and `sharpest` depend on ε and the size of the vocabulary alone.
    """
    card, total = card_of(model).require(CAUSAL, ENCODER_DECODER), real_setting(epsilon, "epsilon", 1e-3, 1e6)
    count = affordable(total, card.size) if tokens is None else whole(tokens, "tokens", 1, 10_000)
    chosen = low is None and high is None and width is None
    limits = sharpest(total, card.size, count) if chosen else LogitLimits.read(low, high, width)
    law = TokenLaw.keeping(total, limits, card.size, count)
    return Prompted(
        model,
        law,
        count,
        _template(prompt),
        longest=whole(longest, "longest", 1, 100_000),
        batch=whole(batch, "batch", 1, 100_000),
        device=device,
    )


@dataclass(frozen=True, eq=False)
class Prompted:
    """A language model that rewrites a text by a prompt, in at most `tokens` privately drawn tokens."""

    source: Source
    law: TokenLaw
    tokens: int
    prompt: str = PROMPT
    longest: int = 128
    batch: int = 8
    device: str = "cpu"
    independent_rows: ClassVar[bool] = True  # each text has its own draws

    @property
    def guarantee(self) -> TextGuarantee:
        """Pure ε between any two texts, rounded up."""
        proofs, caveats = tuple(proof.page for proof in PROOFS), (PRETRAINED, TIMING)
        return TextGuarantee(up(self.tokens * self.law.loss), proofs=proofs, caveats=caveats)

    @cached_property
    def model(self) -> PromptedModel:
        """The model, loaded when it is first needed."""
        return load(self.source, self.device)

    @cached_property
    def form(self) -> PromptForm:
        """The prompt in tokens."""
        return PromptForm.of(self.model, self.prompt, self.longest, self.tokens)

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each text, drawn by a generator."""
        write = partial(self.sampled, below=seeded(rng))
        return [text for text, _ in self._in_threads(write, texts, len(texts) + 1)]  # in order: there is one generator

    def release(self, texts: Sequence[str]) -> list[str]:
        """The same with randomness that nobody can guess, and such that no digit of a text's logits depends on others.

        How a network's numbers are rounded depends on the size of its tensors. Here they always have the same size.
        """
        write = partial(self.sampled, below=secret, apart=True)
        return [text for text, _ in self._in_threads(write, texts, self.batch)]

    def _in_threads(self, write: Sampled, texts: Sequence[str], size: int) -> list[tuple[DrawnText, float]]:
        """On a CPU, groups of `size` texts side by side."""
        if self.model.device.type != "cpu":
            return write(texts)
        _ = self.form, self._alone  # made once, before there are threads
        return torch_in_threads(write, texts, size)

    def sampled(self, texts: Sequence[str], below: Below, apart: bool = False) -> list[tuple[DrawnText, float]]:
        """One rewriting of each text with its exact log-probability, which must not be released."""
        prompts = [self._prompt(text) for text in texts]
        found: list[tuple[DrawnText, float]] = []
        for start in range(0, len(prompts), self.batch):
            group = prompts[start : start + self.batch]
            found += [*self._written(group, below, apart)]
        return found

    def _written(self, group: list[list[int]], below: Below, apart: bool) -> Iterator[tuple[DrawnText, float]]:
        import torch

        model, device = self.model, self.model.device
        prompts = [*group, *[group[0]] * (self.batch - len(group))] if apart else group
        ends = torch.tensor(sorted(model.ends), dtype=torch.long, device=device)
        going = torch.arange(len(prompts), device=device) < len(group)
        likelihood = torch.zeros(len(prompts), dtype=torch.float64, device=device)
        written: list[torch.Tensor] = []
        with torch.inference_mode():
            writing = self._begun(prompts, apart)
            while True:
                drawn, log_prob = self.law.draw(writing.logits[:, : self.law.size], below)
                likelihood += torch.where(going, log_prob, 0)
                written.append(torch.where(going, drawn, -1))
                going = going & ~torch.isin(drawn, ends)
                if len(written) == self.tokens or not bool(going.any()):
                    break
                writing.write(drawn)
        drawn_rows = torch.stack(written, dim=1)[: len(group)].tolist()
        for row, chance in zip(drawn_rows, likelihood[: len(group)].tolist(), strict=True):
            yield self._text(tuple(token for token in row if token >= 0)), chance

    def _begun(self, prompts: list[list[int]], apart: bool) -> Writing:
        """Prompts that were read, in tables of one size if each is to be apart from the others."""
        from dpassay.text.models.generation import Writing, padded

        model = self.model
        # One position more than the longest prompt: networks may treat a batch without padding differently.
        length = 1 + self.form.longest if apart else max(map(len, prompts))
        if (alone := self._alone) is not None and all(len(prompt) > len(alone.before) for prompt in prompts):
            return alone.read(prompts, length)
        table, mask = padded(prompts, model.pad, length, left=model.card.kind == CAUSAL)
        return Writing(model.network, table.to(model.device), mask.to(model.device), self._start)

    @cached_property
    def _alone(self) -> Alone | None:
        """What reads prompts one by one, where that is faster and possible: on a CPU, after a common beginning."""
        from dpassay.text.models.generation import Alone

        before, model = self.form.before[:-1], self.model  # at least one token is left to read
        if not before or model.card.kind != CAUSAL or str(model.device) != "cpu":
            return None
        found = Alone(model.network, before)
        return found if found.possible else None

    def log_prob(self, output: str, text: str) -> float:
        """The exact log-probability of the tokens of an output.

        A text that was drawn here carries its tokens. Any other text is split by the tokenizer. That is one of several
        tokenizations of the text, so the text itself is at least as likely.
        """
        return self.log_probs(output, [text])[0]

    def log_probs(self, output: str, texts: Sequence[str]) -> list[float]:
        """The same for several texts, `batch` of which are read at a time."""
        tokens = output.tokens if isinstance(output, DrawnText) else self._split(as_text(output, "a rewriter"))
        ended = [token in self.model.ends for token in tokens]
        if not tokens or any(ended[:-1]) or len(tokens) > self.tokens or not (ended[-1] or len(tokens) == self.tokens):
            return [float("-inf")] * len(texts)
        prompts = [self._prompt(text) for text in texts]
        groups = (prompts[begin : begin + self.batch] for begin in range(0, len(prompts), self.batch))
        return [chance for group in groups for chance in self._likelihoods(group, tokens)]

    def _likelihoods(self, prompts: list[list[int]], tokens: Sequence[int]) -> list[float]:
        """The log-probability of these tokens after each prompt."""
        import torch

        from dpassay.text.models.generation import forced, padded

        model = self.model
        table, mask = padded(prompts, model.pad, max(map(len, prompts)), left=model.card.kind == CAUSAL)
        places = torch.tensor(tokens, device=model.device)
        with torch.inference_mode():
            logits = forced(model.network, table.to(model.device), mask.to(model.device), tokens, self._start)
            rows = (self.law.log_probs(row[:, : self.law.size]) for row in logits)
            return [float(row.gather(1, places[:, None]).sum()) for row in rows]

    def exact(self) -> Verdict:
        """The verdict of `dpassay check` on the same draws as a pipeline."""
        from dpassay.api import check

        return check(self.law.pipeline(self.tokens), epsilon=self.guarantee.stated, dim=self.law.size)

    def statement(self) -> dict[str, Any]:
        """How a text is drawn, and what the guarantee rests on."""
        return {
            "mechanism": "dp-prompt",
            "drawn": {**self.law.to_dict(), "tokens": self.tokens, "by": "the system's random numbers"},
            "model": {"name": self.model.card.name, "sha256": self.model.sha256},
            "prompt": self.prompt,
            "logits": "the guarantee holds for whatever logits a network gives. Their last digits depend on the size "
            "of the tables that it computes with, which is always the same where texts are released",
        }

    def describe(self) -> dict[str, str]:
        """What identifies it."""
        drawn = {key: str(value) for key, value in self.law.to_dict().items()}
        return {
            "kind": "model",
            "type": "rewriter, dp-prompt",
            **drawn,
            "tokens": str(self.tokens),
            "prompt": self.prompt,
            "longest": str(self.longest),
            "sha256": self.model.sha256,
        }

    @property
    def _start(self) -> int | None:
        """The token with which a decoder begins."""
        model = self.model
        if model.card.kind == CAUSAL:
            return None
        given = getattr(model.network.config, "decoder_start_token_id", None)
        return model.pad if given is None else int(given)

    def _prompt(self, text: str) -> list[int]:
        read = _split(self.model, as_text(text, "a rewriter"))[: self.form.room]
        return [*self.form.before, *read, *self.form.after] or [self.model.pad]  # a network needs at least one token

    def _split(self, text: str) -> tuple[int, ...]:
        found = _split(self.model, text)[: self.tokens]
        return (*found, min(self.model.ends)) if self.model.ends and len(found) < self.tokens else tuple(found)

    def _text(self, tokens: tuple[int, ...]) -> DrawnText:
        kept = [token for token in tokens if token not in self.model.ends and token < len(self.model.tokenizer)]
        text = self.model.tokenizer.decode(kept, skip_special_tokens=True)
        return DrawnText(" ".join(text.split()), tokens)


@dataclass(frozen=True, slots=True)
class PromptForm:
    """The tokens of a prompt before and after a text, and how many tokens of the text fit."""

    before: list[int]
    after: list[int]
    room: int

    @property
    def longest(self) -> int:
        """The tokens of a prompt with a text that fills its room."""
        return len(self.before) + self.room + len(self.after)

    @staticmethod
    def of(model: PromptedModel, prompt: str, longest: int, tokens: int) -> PromptForm:
        """The form of a prompt, in the chat template of a model that has one."""
        before, after = (_as_chat if getattr(model.tokenizer, "chat_template", None) else _as_text)(model, prompt)
        written = tokens if model.card.kind == CAUSAL else 0
        # One position is left free: released texts have padding in every row.
        fits = (model.card.positions or 10**9) - len(before) - len(after) - written - 1
        if fits < 1:
            raise InputError(
                f"{model.card.name} reads at most {model.card.positions} tokens: the prompt and tokens={tokens} leave "
                "no room for a text; make them shorter"
            )
        return PromptForm(before, after, min(longest, fits))


def _as_chat(model: PromptedModel, prompt: str) -> tuple[list[int], list[int]]:
    asked = [{"role": "user", "content": prompt}]
    shown = model.tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    before, found, after = shown.partition("{text}")
    if not found:
        raise InputError(f"the chat template of {model.card.name} changes the prompt: give another prompt")
    return _split(model, before), _split(model, after)


def _as_text(model: PromptedModel, prompt: str) -> tuple[list[int], list[int]]:
    before, _, after = prompt.partition("{text}")
    plain, marked = _split(model, "a"), list(model.tokenizer("a")["input_ids"])
    # What the tokenizer puts before and after every text; a causal model must not read an end token.
    at = next((i for i in range(len(marked)) if marked[i : i + len(plain)] == plain), 0)
    ended = marked[at + len(plain) :] if model.card.kind == ENCODER_DECODER else []
    return [*marked[:at], *_split(model, before)], [*_split(model, after), *ended]


def _split(model: PromptedModel, text: str) -> list[int]:
    return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def _template(prompt: str) -> str:
    if prompt.startswith("@"):
        try:
            prompt = Path(prompt[1:]).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise InputError(f"the prompt in {prompt[1:]} cannot be read: {error}") from None
    if prompt.count("{text}") != 1:
        raise InputError(f"a prompt has {{text}} once, where the text goes; got {prompt!r:.80}")
    return prompt
