"""Perplexity of a small model trained in four ways: with user or user-entity privacy, de-identified, or with neither.

All four are measured on the same held-out texts, with all of their words. Only numpy and torch are needed here: the
noise for an ε is computed elsewhere and given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpassay.errors import InputError
from dpassay.text.corpora.corpus import SHIPPED, read_corpus
from dpassay.text.corpora.entities import pattern_of, with_entities
from dpassay.text.corpora.flights import known_words
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.words import PAD, ModelVocabulary, tokenise
from dpassay.training.aggregation import Aggregation, PerUnit, UserEntity, usual_most
from dpassay.training.federated import Federated, RoundPlan, Sentences, Server, StackedTraining
from dpassay.training.networks.language_model import BATCH, LanguageModel, Sizes
from dpassay.training.randomness import SeededNoise
from dpassay.training.units import Units, gathered, is_held_out

ARMS = ("user", "user-entity", "de-identified", "none")
PRIVATE = ARMS[:2]
MASK = "<entity>"
LONGEST = 40  # words of a text
MEASURED = 1000  # held-out texts at most


@dataclass(frozen=True)
class TextSource:
    """Where a corpus, its entities and its words come from.

    >>> TextSource().name
    'flights'
    """

    corpus: str = "flights"
    entities_from: str = "corpus"
    vocabulary: str = ""  # a file of words; without one those of the shipped grammar, or of the corpus
    user_column: str = ""  # if it has another name than user, speaker, author or user_id

    @property
    def shipped(self) -> bool:
        return self.corpus.partition(":")[0] in SHIPPED

    @property
    def name(self) -> str:
        """The name of the corpus in a figure."""
        return self.corpus if self.shipped else re.split(r"[\\/]", self.corpus)[-1].partition(".")[0]


@dataclass(frozen=True)
class Setup:
    """How all models of a comparison are trained."""

    rounds: int = 200
    rate: float = 0.1  # of users
    entity_rate: float = 0.5
    clip: float = 0.5
    cell_clip: float = 0.125
    sentences: int = 256  # drawn per round without privacy, on average
    size: int = 32  # of word vectors and of the LSTM's state


@dataclass(frozen=True)
class TrainingTask:
    """One model to train. The noise multiplier is 0 without privacy; the learning rate is the server's."""

    source: TextSource
    arm: str
    noise_multiplier: float = 0.0
    seed: int = 0
    learning_rate: float = 0.01
    setup: Setup = field(default_factory=Setup)
    device: str = "cpu"


@dataclass(frozen=True)
class ComparedRun:
    """A model's perplexity on the test texts, and on those that choose a learning rate.

    `as_read` is without the stand-ins, which only de-identified models have.
    """

    perplexity: float
    as_read: float
    to_choose: float


@lru_cache(maxsize=4)
def read(source: TextSource) -> tuple[Utterance, ...]:
    """The utterances of a corpus, each with its user and its entities."""
    found = with_entities(read_corpus(source.corpus, source.user_column), source.entities_from)
    if lacking := sum(not u.user for u in found):
        raise InputError(f"{lacking:,} of {len(found):,} texts of {source.corpus} have no user: give a user column")
    if (users := len({u.user for u in found if is_held_out(u)})) < 2:
        raise InputError(
            f"{source.corpus}: {users} of its users is held out. Two held-out users are needed, one for choosing the "
            "learning rate and one for measuring, and a tenth of all users are held out: give a larger corpus"
        )
    return tuple(found)


def trained_on(source: TextSource) -> list[Utterance]:
    """The utterances of the users who are not held out."""
    return [u for u in read(source) if not is_held_out(u)]


def held_out(source: TextSource, to_choose: bool = False) -> list[Utterance]:
    """The utterances that all models are measured on; those of other users choose among learning rates."""
    users = sorted({u.user for u in read(source) if is_held_out(u)})
    chosen = set(users[0 if to_choose else 1 :: 2])
    return [u for u in read(source) if u.user in chosen][:MEASURED]


@lru_cache(maxsize=4)
def words_of(source: TextSource) -> tuple[str, ...]:
    """The words that models know; the same for all of them."""
    if not source.vocabulary:
        known = known_words() if source.shipped else ModelVocabulary.of([u.text for u in read(source)]).words
        return tuple(sorted(set(known)))
    try:
        with open(source.vocabulary, encoding="utf-8") as file:
            found = tuple(sorted(set(file.read().lower().split())))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the vocabulary {source.vocabulary} cannot be read: {error}; give a UTF-8 file, one word per line"
        ) from None
    if not found:
        raise InputError(f"the vocabulary {source.vocabulary} is empty: give one word per line")
    return found


def masked(utterance: Utterance) -> str:
    """The text with each word of an entity replaced by a mask; as many words as before.

    >>> masked(Utterance("From New York, to rome", entities=("new york",)))
    'from <entity> <entity> to rome'
    """
    spans = []
    if utterance.entities:
        spans = [found.span() for found in pattern_of(utterance.entities).finditer(utterance.text)]
    words = re.finditer(r"\S+", utterance.text)
    return " ".join(MASK if _meets(word.span(), spans) else word[0].lower() for word in words)


def _meets(word: tuple[int, int], spans: Iterable[tuple[int, int]]) -> bool:
    return any(start < word[1] and word[0] < end for start, end in spans)


@torch.no_grad()
def perplexity(
    network: nn.Module, seen: NDArray[np.int64], said: NDArray[np.int64], stands_for: Sequence[int] = (), mask: int = -1
) -> float:
    """e to the mean loss per word of the original texts, each word predicted from the words before it as seen.

    The probability of the mask is spread evenly over the words that it stands for, so that it counts for them.

    >>> same = nn.Embedding(9, 9, _weight=torch.zeros(9, 9))  # all of nine words are equally likely
    >>> numbers = np.array([[5, 6, 1], [4, 1, 0]])
    >>> round(perplexity(same, numbers, numbers), 4)
    9.0
    >>> round(perplexity(same, numbers, numbers, stands_for=[1, 4, 5, 6], mask=8), 4)  # 1/9 and a quarter of 1/9
    7.2
    """
    device = next(network.parameters()).device
    total, count = 0.0, 0
    for start in range(0, len(said), BATCH):
        target, history = (torch.from_numpy(part[start : start + BATCH]).to(device) for part in (said, seen))
        scores = torch.log_softmax(network(history).double(), dim=-1)
        if len(stands_for):
            scores = _spread(scores, stands_for, mask)
        kept = target != PAD
        total -= float(scores.gather(-1, target[..., None])[..., 0][kept].sum())
        count += int(kept.sum())
    return math.exp(min(700.0, total / max(1, count)))


def _spread(scores: Tensor, stands_for: Sequence[int], mask: int) -> Tensor:
    """Log-probabilities in which the mask's mass is shared among the words that it stands for."""
    chosen = torch.tensor(list(stands_for), device=scores.device)
    share = scores[..., mask, None] - math.log(len(chosen))
    spread = scores.clone()
    spread[..., chosen] = torch.logaddexp(scores[..., chosen], share)
    spread[..., mask] = -math.inf
    return spread


def unigram_perplexity(trained: NDArray[np.int64], said: NDArray[np.int64], size: int) -> float:
    """The perplexity of words whose probability is their frequency in some texts, with 1 added to each count.

    >>> round(unigram_perplexity(np.array([[4, 4, 1]]), np.array([[4, 1, 0]]), 5), 4)  # of 3 + 5: 3/8 and 2/8
    3.266
    """
    counts = np.bincount(trained[trained != PAD], minlength=size) + 1.0
    return float(np.exp(-np.log(counts / counts.sum())[said[said != PAD]].mean()))


def stand_ins(utterances: Iterable[Utterance], words: ModelVocabulary) -> list[int]:
    """The numbers of the words that a mask stood for in some texts.

    >>> known = ModelVocabulary(("bern", "rome", "to"))
    >>> stand_ins([Utterance("to rome", entities=("rome",)), Utterance("to oslo", entities=("oslo",))], known)
    [3, 5]
    """
    hidden = {
        word
        for u in utterances
        if u.entities
        for word, shown in zip(tokenise(u.text), masked(u).split(), strict=True)
        if shown == MASK
    }
    return sorted(set(words.numbers(sorted(hidden), 1)[:, 0].tolist()))


def aggregation_of(task: TrainingTask, units: Units) -> Aggregation:
    """Who is drawn, and how updates are bounded."""
    setup = task.setup
    if task.arm == "user":
        return PerUnit(len(units.cells), setup.rate, setup.clip)
    if task.arm != "user-entity":
        return PerUnit(len(units.cells), min(1.0, setup.sentences / len(units.cells)), setup.clip)
    most, bounds = usual_most(units.count, setup.rate), (setup.clip, setup.cell_clip)
    return UserEntity(units.names, units.user_of, units.entity_of, setup.rate, setup.entity_rate, *bounds, most)


def run(task: TrainingTask) -> ComparedRun:
    """Train one model and measure it. The same task gives the same numbers on the same kind of device."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # one model per core; sums of floats then do not depend on the number of cores
    try:
        return _run(task)
    finally:
        torch.set_num_threads(threads)


def _run(task: TrainingTask) -> ComparedRun:
    setup, device = task.setup, torch.device(task.device)
    hidden = task.arm == "de-identified"
    used = trained_on(task.source)
    units = gathered(read(task.source), task.arm if task.arm in PRIVATE else "none")
    texts = [masked(u) for u in used] if hidden else units.texts
    words = ModelVocabulary((*words_of(task.source), *((MASK,) if hidden else ())))
    torch.manual_seed(task.seed)
    network = LanguageModel(Sizes(len(words), setup.size, setup.size)).to(device)
    private = task.arm in PRIVATE
    aggregation = aggregation_of(task, units)
    plan = RoundPlan(setup.rounds, server_rate=task.learning_rate)
    weights = {name: parameter.data for name, parameter in network.named_parameters()}
    engine = Federated(
        weights,
        StackedTraining(device),
        Sentences(words.numbers(texts, LONGEST), units.cells, plan),
        Server(weights, plan),
        SeededNoise(task.seed),
        aggregation.drawn,
        aggregation if private else None,
        task.noise_multiplier * aggregation.sensitivity,
    )
    for number in range(setup.rounds):
        engine.round(number)
    return _measured(network, task.source, words, stand_ins(used, words) if hidden else ())


def _measured(network: nn.Module, source: TextSource, words: ModelVocabulary, stands_for: Sequence[int]) -> ComparedRun:
    """A trained model's perplexities; the last of its words is the mask if that stands for others."""
    found = []
    for some in (held_out(source), held_out(source, to_choose=True)):
        said = words.numbers([u.text for u in some], LONGEST)
        as_read = perplexity(network, said, said)
        seen = words.numbers([masked(u) for u in some], LONGEST) if stands_for else said
        fair = perplexity(network, seen, said, stands_for, len(words) - 1) if stands_for else as_read
        found.append((fair, as_read))
    return ComparedRun(*found[0], to_choose=found[1][0])
