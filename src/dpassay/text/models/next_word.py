"""A small causal language model of a corpus, and others, as writers of texts like those of the corpus.

An attacker who does not have the text under attack can write plausible ones: `train` fits an LSTM to the corpus, and
`PromptedWord` shows lines of it to a transformers model. Both continue a beginning that is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpassay.audit.options import Progress
from dpassay.errors import InputError
from dpassay.text.models.words import END, LONGEST, PAD, SPECIAL, START, ModelVocabulary, tokenise

STEPS, BATCH, RATE = 600, 64, 5e-3
EMBEDDING, HIDDEN = 64, 128
AT_ONCE = 512  # texts written at a time
SHOWN = 12  # lines of the corpus in a prompt
MOST_TOKENS = 60  # of a line that a transformers model writes


class Writer(Protocol):
    """Anything that writes texts like those of a corpus, so many `at_once`."""

    at_once: ClassVar[int]

    def write(self, beginnings: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One text for each beginning, which may be empty."""


class NextWord(nn.Module):
    """Word vectors, one LSTM layer, and a score for each word that may come next."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, words)

    def forward(self, numbers: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Scores of the word after each one, and the state to go on from."""
        states, state = self.lstm(self.embedding(numbers), state)
        return self.out(states), state


@dataclass(frozen=True, eq=False)
class CorpusWriter:
    """A trained network with its vocabulary; words are drawn as often as it expects them."""

    network: NextWord
    vocabulary: ModelVocabulary
    loss: float  # per word, in the last steps of the training
    at_once: ClassVar[int] = AT_ONCE

    @torch.no_grad()
    def write(self, beginnings: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One text for each beginning. Words that it does not know are left out of a beginning."""
        found: list[str] = []
        for start in range(0, len(beginnings), AT_ONCE):
            found += self._written(beginnings[start : start + AT_ONCE], rng)
        return found

    def _written(self, beginnings: Sequence[str], rng: np.random.Generator) -> list[str]:
        known = [[n for n in row if n >= SPECIAL] for row in self.vocabulary.numbers(beginnings).tolist()]
        table = np.full((len(known), LONGEST + 1), END, dtype=np.int64)
        for row, numbers in zip(table, known, strict=True):
            row[: len(numbers)] = numbers
        given = np.array([len(numbers) for numbers in known])
        last, state = torch.full((len(known), 1), START), None
        for place in range(LONGEST):
            scores, state = self.network(last, state)
            scores[..., [PAD, START, START + 1]] = -torch.inf  # nor the unknown word
            chances = torch.softmax(scores[:, -1].double(), dim=-1).numpy().cumsum(axis=1)
            drawn = (chances < rng.random((len(known), 1)) * chances[:, -1:]).sum(axis=1)
            table[:, place] = np.where(place < given, table[:, place], drawn)
            last = torch.from_numpy(table[:, place : place + 1])
        return self.vocabulary.texts(table)


def train(texts: Sequence[str], seed: int = 0, steps: int = STEPS, progress: Progress | None = None) -> CorpusWriter:
    """Fit the network to texts. The same seed gives the same writer."""
    texts = [text for text in texts if tokenise(text)]
    if len(texts) < 2:
        raise InputError(f"a language model needs 2 texts or more to learn from, got {len(texts)}")
    vocabulary = ModelVocabulary.of(texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = NextWord(len(vocabulary))
    rng, search = np.random.default_rng(seed), torch.optim.Adam(network.parameters(), lr=RATE)
    losses: list[float] = []
    for step in range(steps):
        rows = vocabulary.numbers([texts[i] for i in rng.integers(0, len(texts), BATCH)])
        targets = torch.from_numpy(rows)
        before = torch.cat([torch.full((len(rows), 1), START), targets[:, :-1]], dim=1)
        scores, _ = network(before)
        loss = cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=PAD)
        search.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        search.step()
        losses.append(float(loss.detach()))
        if progress is not None:
            progress(step + 1, steps, "training a language model on the corpus")
    return CorpusWriter(network.eval(), vocabulary, float(np.mean(losses[-20:])) if losses else float("nan"))


@dataclass(frozen=True, eq=False)
class PromptedWord:
    """A causal transformers model that is shown lines of the corpus and writes another one."""

    model: Any
    texts: tuple[str, ...]
    at_once: ClassVar[int] = 8  # it is slow, and progress should be seen

    @torch.no_grad()
    def write(self, beginnings: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One line for each beginning, after a prompt of its own."""
        found = []
        for beginning in beginnings:
            shown = [self.texts[i] for i in rng.integers(0, len(self.texts), SHOWN)]
            found.append(self._line("\n".join([*shown, beginning]), beginning, rng))
        return found

    def _line(self, prompt: str, beginning: str, rng: np.random.Generator) -> str:
        network, tokenizer = self.model.network, self.model.tokenizer
        room = self.model.card.positions or 10**9
        most = min(MOST_TOKENS, room // 2)
        tokens = tokenizer(prompt, add_special_tokens=False)["input_ids"][-(room - most) :]
        given = torch.tensor([tokens], device=self.model.device)
        past, written = None, []
        for _ in range(most):
            answer = network(input_ids=given, past_key_values=past, use_cache=True)
            past = answer.past_key_values
            chances = torch.softmax(answer.logits[0, -1].double(), dim=-1).cpu().numpy()
            token = int(rng.choice(len(chances), p=chances / chances.sum()))
            if token in self.model.ends:
                break
            written.append(token)
            if "\n" in str(tokenizer.decode(written)).lstrip("\n"):
                break
            given = torch.tensor([[token]], device=self.model.device)
        line = str(tokenizer.decode(written, skip_special_tokens=True)).strip("\n").partition("\n")[0]
        return " ".join(tokenise(f"{beginning} {line}"))


def prompted(name: str, texts: Sequence[str]) -> PromptedWord:
    """A transformers model in a folder, on the hub, or `smollm2`, as a writer of lines like these texts."""
    from dpassay.text.models.language_models import CAUSAL, load

    model = load(name)
    model.card.require(CAUSAL)
    return PromptedWord(model, tuple(text for text in texts if tokenise(text)))
