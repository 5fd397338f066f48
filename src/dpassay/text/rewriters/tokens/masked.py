"""DP-MLM (Meisenbacher et al. 2024): a masked language model replaces each word of a text by a privately drawn one.

For each word the model reads the text and, after it, the text with this word masked. The new word is drawn from the
softmax of clipped logits (tokens.py) over all whole words of the model's vocabulary. ε is per word; each new
word depends on the whole text, so a text of L words loses up to L times as much. The number of words is visible.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import up
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.text.models.language_models import MASKED, PromptedModel, Source, card_of, load, tokenizer_of
from dpassay.text.models.words import as_text
from dpassay.text.rewriters.base import PRETRAINED, TIMING, TextGuarantee
from dpassay.text.rewriters.tokens.drawing import Below, LogitLimits, TokenLaw, real_setting, secret, seeded, whole

if TYPE_CHECKING:
    from torch import Tensor

    from dpassay.evidence.verdict import Verdict

PROOFS = (Theorem.EXPONENTIAL, Theorem.COMPOSITION, Theorem.POST_PROCESSING)
BEGINS = ("Ġ", "▁")  # prefixes of tokens that start a word, in vocabularies where continuations are not marked by ##
CONTINUES = "##"


def make(
    epsilon: float,
    model: Source,
    longest: str = "48",
    low: str | None = None,
    high: str | None = None,
    width: str | None = None,
    batch: str = "32",
    device: str = "cpu",
) -> Masked:
    """DP-MLM with this ε per word; the first `longest` words of a text are rewritten and the rest are dropped.

    `model` is the folder of a masked model, its name on the hub, or in Python a `PromptedModel`.
    """
    card_of(model).require(MASKED)
    words = _words_of(model)
    law = TokenLaw.keeping(real_setting(epsilon, "epsilon", 1e-3, 1e4), LogitLimits.read(low, high, width), len(words))
    most = whole(longest, "longest", 1, 10_000)
    return Masked(model, law, most, batch=whole(batch, "batch", 1, 100_000), device=device)


@dataclass(frozen=True, eq=False)
class Masked:
    """A masked language model that replaces every word of a text by a privately drawn one."""

    source: Source
    law: TokenLaw
    longest: int
    batch: int = 32
    device: str = "cpu"
    independent_rows: ClassVar[bool] = True  # each text has its own draws

    @property
    def guarantee(self) -> TextGuarantee:
        """The ε of a text of `longest` words, all of which may differ."""
        return TextGuarantee(
            up(self.longest * self.law.loss),
            neighbours=Neighbours(f"words({self.longest})"),
            outside="the number of words is visible",
            proofs=tuple(proof.page for proof in PROOFS),
            caveats=(PRETRAINED, TIMING),
        )

    @cached_property
    def model(self) -> PromptedModel:
        """The model, loaded when it is first needed."""
        return load(self.source, self.device)

    @cached_property
    def words(self) -> dict[int, str]:
        """The token numbers of the words that can be drawn."""
        return _words_of(self.source)

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each text, drawn by a generator."""
        return self._drawn(texts, seeded(rng), apart=False)

    def release(self, texts: Sequence[str]) -> list[str]:
        """The same with randomness that nobody can guess; no digit of a text's logits depends on other texts."""
        return self._drawn(texts, secret, apart=True)

    def log_prob(self, output: str, text: str) -> float:
        """The exact log-probability of an output: several tokens that spell one word count together."""
        import torch

        spelt = defaultdict(list)
        for place, word in enumerate(self.words.values()):
            spelt[word].append(place)
        written, read = as_text(output, "a rewriter").split(), self._read(text)
        if len(written) != len(read) or any(word not in spelt for word in written):
            return -math.inf
        total = 0.0
        for place, word in enumerate(written):
            with torch.inference_mode():
                logits = self._logits([self._masked(read, place)], apart=False)
                total += float(self.law.log_probs(logits)[0, spelt[word]].logsumexp(dim=0))
        return total

    def exact(self) -> Verdict:
        """The verdict of `dpassay check` on the same draws as a pipeline."""
        from dpassay.api import check

        return check(self.law.pipeline(self.longest), epsilon=self.guarantee.stated, dim=self.law.size)

    def statement(self) -> dict[str, Any]:
        """How a text is drawn, and what the guarantee rests on."""
        return {
            "mechanism": "dp-mlm",
            "drawn": {**self.law.to_dict(), "longest": self.longest, "by": "the system's random numbers"},
            "model": {"name": self.model.card.name, "sha256": self.model.sha256},
            "logits": "the guarantee holds for whatever logits a network gives. Their last digits depend on the size "
            "of the tables that it computes with, which is always the same where texts are released",
        }

    def describe(self) -> dict[str, str]:
        """What identifies it."""
        drawn = {key: str(value) for key, value in self.law.to_dict().items()}
        longest, sha256 = str(self.longest), self.model.sha256
        return {"kind": "model", "type": "rewriter, dp-mlm", **drawn, "longest": longest, "sha256": sha256}

    def _drawn(self, texts: Sequence[str], below: Below, apart: bool) -> list[str]:
        import torch

        read = [self._read(text) for text in texts]
        rows = [self._masked(words, place) for words in read for place in range(len(words))]
        spelt, written = list(self.words.values()), []
        for start in range(0, len(rows), self.batch):
            with torch.inference_mode():
                tokens, _ = self.law.draw(self._logits(rows[start : start + self.batch], apart), below)
            written += [spelt[token] for token in tokens.tolist()]
        found, used = [], 0
        for words in read:
            found.append(" ".join(written[used : used + len(words)]))
            used += len(words)
        return found

    def _read(self, text: str) -> list[str]:
        return as_text(text, "a rewriter").split()[: self.longest]

    def _masked(self, words: list[str], place: int) -> list[int]:
        """The tokens of a text and of the text with a word masked; the farthest ones are cut off if necessary."""
        tokenizer = self.model.tokenizer
        whole, before, after = (
            list(tokenizer(" ".join(part), add_special_tokens=False)["input_ids"]) if part else []
            for part in (words, words[:place], words[place + 1 :])
        )
        room = self._room
        before, after = before[-(room // 4) :], after[: room // 4]
        masked = [*before, tokenizer.mask_token_id, *after]
        first, middle, last = _marks(tokenizer)
        return [*first, *whole[: room - len(masked)], *middle, *masked, *last]

    @property
    def _room(self) -> int:
        """How many tokens the model can read besides those that mark the parts."""
        positions = self.model.card.positions or 512
        return max(8, positions - sum(map(len, _marks(self.model.tokenizer))) - 2)  # RoBERTa's positions begin at 2

    def _logits(self, rows: list[list[int]], apart: bool) -> Tensor:
        """The logits of all words at the last mask of each row."""
        from dpassay.text.models.generation import padded

        model, device, count = self.model, self.model.device, len(rows)
        longest = max(map(len, rows))
        if apart:  # always a table of the same size, with padding in every row
            longest = 1 + self._room + sum(map(len, _marks(model.tokenizer)))
            rows = [*rows, *rows[:1] * (self.batch - count)]
        table, mask = padded(rows, model.pad, longest, left=False)
        at = [len(row) - 1 - row[::-1].index(model.tokenizer.mask_token_id) for row in rows]
        logits = model.network(input_ids=table.to(device), attention_mask=mask.to(device)).logits[range(len(rows)), at]
        return logits[:count, list(self.words)]  # type: ignore[no-any-return]


def _marks(tokenizer: Any) -> tuple[list[int], list[int], list[int]]:
    """The tokens before, between and after two texts: [CLS], [SEP] and [SEP] of BERT."""
    begin = [token for token in (tokenizer.cls_token_id,) if token is not None]
    part = [token for token in (tokenizer.sep_token_id,) if token is not None]
    return begin, part, part


def _words_of(source: Source) -> dict[int, str]:
    return words_of(tokenizer_of(source), card_of(source).size)


@lru_cache(maxsize=16)
def words_of(tokenizer: Any, size: int) -> dict[int, str]:
    """The numbers of the whole words in a tokenizer's vocabulary, in order."""
    if tokenizer.mask_token_id is None:
        raise InputError("the tokenizer has no token for masked words: give a masked model, such as roberta-base")
    numbered = sorted((number, token) for token, number in tokenizer.get_vocab().items() if number < size)
    special = set(tokenizer.all_special_ids)
    mark = next((mark for mark in BEGINS if any(token.startswith(mark) for _, token in numbered)), "")
    found = {}
    for number, token in numbered:
        word = tokenizer.convert_tokens_to_string([token]).strip() if mark else token
        begins = token.startswith(mark) and not token.startswith(CONTINUES)
        if number not in special and begins and word.split() == [word] and not word.startswith("[unused"):
            found[number] = word
    if len(found) < 2:
        raise InputError("the tokenizer's vocabulary has no whole words to draw from: give another model")
    return found
