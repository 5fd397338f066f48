"""A training run in a folder: begun, interrupted, continued to the same weights, and finished with its statement."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.folder import About, Arrays, read_folder, write_folder
from dpassay.text.models.training import Progress, interruptible, usable
from dpassay.text.models.words import Vocabulary
from dpassay.training.accountant import Account, least_noise
from dpassay.training.aggregation import Aggregation, PerUnit, UserEntity, usual_most
from dpassay.training.canary_rounds import CanaryRounds
from dpassay.training.canary_scores import CanaryScores, write_scores
from dpassay.training.canary_sentences import secrets, sentence_scores, with_canaries
from dpassay.training.federated import Federated, Plan, Sentences, Server
from dpassay.training.language_model import perplexity
from dpassay.training.networks import Trainable, make_trainable, reopened
from dpassay.training.randomness import KEY_BYTES, Randomness, check_source, make_randomness
from dpassay.training.statement import Terms, write_statement
from dpassay.training.units import Units, gathered

SAVED_EVERY = 10.0  # seconds
MEASURED_EVERY = 50  # rounds
MEASURED = 1000  # held-out texts at most
SECRETS = "checkpoint.json"  # the key and the corpus' fingerprint, while training is unfinished
CANARY_FILE = "canaries.csv"
CANARY_KINDS = ("updates", "sentences")
CELL_CLIP = 0.25  # of the clip, if none is given

Warn = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """The settings of a run. Give ε, or the noise multiplier; the other is computed.

    >>> Settings(privacy="user", epsilon=4).delta
    1e-05
    """

    privacy: str = "user"
    epsilon: float | None = None
    delta: float = 1e-5
    noise_multiplier: float | None = None
    rate: float = 0.1
    entity_rate: float = 0.5
    clip: float = 0.5
    cell_clip: float | None = None
    most_users: int | None = None
    noise_source: str = "os"
    seed: int = 0
    embedding: int = 64
    hidden: int = 64
    base: str = ""
    canaries: int = 0
    canary_kind: str = "updates"
    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        check_source(self.noise_source)
        given = self.epsilon is not None, self.noise_multiplier is not None
        if self.privacy == "none" and any(given):
            raise InputError("training without privacy has no epsilon and no noise: leave them out, or choose one")
        if self.privacy != "none" and sum(given) != 1:
            raise InputError("give either the epsilon or the noise multiplier: the other is computed")
        if self.noise_multiplier is not None and not 1e-3 <= self.noise_multiplier <= 1e4:
            raise InputError(f"the noise multiplier must be a number from 0.001 to 10000, got {self.noise_multiplier}")
        if self.canary_kind not in CANARY_KINDS:
            raise InputError(f"unknown kind of canaries {self.canary_kind!r}; there are {' and '.join(CANARY_KINDS)}")
        if self.canaries and not 2 <= self.canaries <= 10**6:
            raise InputError(f"an audit needs from 2 to 1,000,000 canaries, got {self.canaries}")
        if self.canaries and self.canary_kind == "updates" and self.privacy not in ("user", "entity"):
            raise InputError("updates can be planted with user and entity privacy: plant sentences instead")
        if self.noise_source == "opendp" and self.privacy not in ("user", "entity"):
            raise InputError("OpenDP's noise is for user and entity privacy here: choose the noise source os or torch")

    @property
    def included(self) -> NDArray[np.bool_]:
        """Which canaries are in, each by its own coin."""
        return np.random.default_rng([self.seed, 13]).random(self.canaries) < 0.5


class Trained(About):
    """What the model.json of a language model states."""

    system: Literal["lm"] = "lm"
    version: str = Field(max_length=40)
    words: list[str] = Field(max_length=10**6)
    vocabulary_from: str
    settings: dict[str, Any]
    units: int = Field(ge=0)
    done: int = Field(0, ge=0, description="rounds so far")
    deviation: float = Field(ge=0, description="of the noise")
    perplexity_before: float | None = None
    perplexity_after: float | None = None


@dataclass(frozen=True)
class Result:
    """A finished run: where it is, what it reached, and what it guarantees."""

    folder: Path
    network: torch.nn.Module
    about: Trained
    statement: dict[str, Any]
    seconds: float


class Run:
    """All parts of a run, put together from its settings and units."""

    def __init__(self, settings: Settings, units: Units, trainable: Trainable, device: torch.device) -> None:
        self.settings, self.units, self.trainable, self.device = settings, units, trainable, device
        if settings.privacy == "example" and not settings.base and find_spec("opacus") is None:
            raise InputError("example privacy needs Opacus, which is not installed: pip install 'dpassay[training]'")
        largest = max(weights.numel() for weights in trainable.network.parameters())
        if settings.canary_kind == "updates" and settings.canaries > largest:
            raise InputError(
                f"{settings.canaries:,} canaries need a tensor with a weight for each, and the largest of the model "
                f"has {largest:,}: plant fewer, or sentences"
            )
        self.aggregation = _aggregation(settings, units)
        self.account = _account(settings, self.aggregation)
        self.held_out = trainable.numbers(units.held_out[:MEASURED]) if units.held_out else None

    def engine(self, randomness: Randomness) -> Any:
        """What takes the rounds."""
        settings, network = self.settings, self.trainable.network
        numbers = self.trainable.numbers(self.units.texts)
        sentences = Sentences(numbers, self.units.cells, settings.plan)
        deviation = self.account.deviation if self.account else 0.0
        if settings.privacy == "example" and not settings.base:
            from dpassay.training.examples import ExampleTraining

            return ExampleTraining(network, sentences, randomness, self.aggregation, deviation)
        weights = {name: parameter.data for name, parameter in network.named_parameters()}
        server = Server(weights, settings.plan)
        bounded = None if settings.privacy == "none" else self.aggregation
        local, draw = self.trainable.local, self.aggregation.drawn
        parts = (weights, local, sentences, server, randomness, draw, bounded, deviation)
        if settings.canaries and settings.canary_kind == "updates":
            return CanaryRounds(*parts, included=settings.included, seed=settings.seed)
        return Federated(*parts)

    def measured(self) -> float | None:
        """The perplexity on held-out text."""
        return None if self.held_out is None else perplexity(self.trainable.network, self.held_out)


def train(
    utterances: Sequence[Utterance],
    folder: str | Path,
    settings: Settings,
    *,
    vocabulary: Sequence[str] | None = None,
    held_out: Sequence[str] | None = None,
    device: str = "cpu",
    resume: bool = False,
    progress: Progress | None = None,
    warn: Warn = lambda message: None,
) -> Result:
    """Train a language model with privacy and save it, with its statement, in a folder.

    `vocabulary` is a public list of words; without one, the words of the corpus are used, which no guarantee covers.
    Ctrl-C stops after the current round, and `resume` continues to the same weights.
    """
    place, begun = Path(folder), time.monotonic()
    planted = _planted(settings, utterances, vocabulary)
    utterances = with_canaries(utterances, planted, settings.included, settings.plan.sentences)
    units = gathered(utterances, settings.privacy, held_out)
    for message in (*units.warnings, *_cautions(settings, units)):
        warn(message)
    where = usable(device)
    trainable = make_trainable(units.texts, vocabulary, settings, where)
    run = Run(settings, units, trainable, where)
    about, arrays, secrets = (_continued if resume else _fresh)(place, run)
    if arrays is not None:
        trainable.load(arrays, place)
    elif run.held_out is not None:
        about = about.model_copy(update={"perplexity_before": run.measured()})
    if about.done < settings.plan.rounds:
        about, engine = _run_rounds(run, about, place, secrets, arrays, progress)
        if settings.canaries:
            learnt = sentence_scores(trainable.network, trainable.numbers(planted)) if planted else engine.scores
            write_scores(CanaryScores(learnt, settings.included), place / CANARY_FILE)
    stated = _terms(run, about).as_data()
    return Result(place, trainable.network, about, stated, time.monotonic() - begun)


def _run_rounds(
    run: Run, about: Trained, place: Path, secrets: dict[str, str], arrays: Arrays | None, progress: Progress | None
) -> tuple[Trained, Any]:
    settings = run.settings
    randomness = make_randomness(settings.noise_source, settings.seed, bytes.fromhex(secrets["key"]), settings.clip)
    engine, rounds, done = run.engine(randomness), settings.plan.rounds, about.done
    if done:
        engine.resume(arrays, done)
    now = about.perplexity_before
    _save(run, engine, about, place)
    with interruptible() as interrupted:
        saved = time.monotonic()
        while done < rounds:
            engine.round(done)
            done += 1
            if done % MEASURED_EVERY == 0 or done == rounds:
                now = run.measured()
            if progress is not None:
                progress(done, rounds, _note(run, now, done))
            if time.monotonic() - saved > SAVED_EVERY or done == rounds or interrupted():
                about = about.model_copy(update={"done": done, "perplexity_after": now})
                _save(run, engine, about, place)
                saved = time.monotonic()
            if interrupted() and done < rounds:
                raise KeyboardInterrupt
    (place / SECRETS).unlink(missing_ok=True)
    return about, engine


def _planted(settings: Settings, utterances: Sequence[Utterance], vocabulary: Sequence[str] | None) -> list[str]:
    """The sentences of canaries, if canaries are sentences, of words that the model knows."""
    if not settings.canaries or settings.canary_kind != "sentences":
        return []
    words = vocabulary or Vocabulary.of([u.text for u in utterances]).words
    return secrets(words, settings.canaries, settings.seed)


def _note(run: Run, now: float | None, done: int) -> str:
    """The latest measurements, for a progress bar."""
    spent = "" if run.account is None else f"epsilon {run.account.spent(done):.2f} so far"
    return ", ".join(filter(None, ("" if now is None else f"perplexity {now:.1f}", spent)))


def _save(run: Run, engine: Any, about: Trained, place: Path) -> None:
    """Save the weights, the statement and, while rounds remain, the state of the server."""
    state = engine.state() if 0 < about.done < run.settings.plan.rounds else {}
    write_folder(place, about, run.trainable.arrays() | state)
    write_statement(place, _terms(run, about).as_data())
    if about.done == run.settings.plan.rounds:
        run.trainable.finish(place)


def _terms(run: Run, about: Trained) -> Terms:
    settings = run.settings
    sample = make_randomness(settings.noise_source, settings.seed, bytes(KEY_BYTES), settings.clip)
    return Terms(
        run.units,
        run.account,
        run.aggregation,
        settings.plan.rounds,
        about.done,
        sample.describe(),
        settings.noise_source,
        about.vocabulary_from,
        settings.base,
        (about.perplexity_before, about.perplexity_after if about.done == settings.plan.rounds else None),
    )


def _aggregation(settings: Settings, units: Units) -> Aggregation:
    if settings.privacy != "user-entity":
        planted = settings.canaries if settings.canary_kind == "updates" else 0
        return PerUnit(len(units.cells) + planted, settings.rate, settings.clip)
    cell_clip = CELL_CLIP * settings.clip if settings.cell_clip is None else settings.cell_clip
    most = usual_most(units.count, settings.rate) if settings.most_users is None else settings.most_users
    rates = (settings.rate, settings.entity_rate)
    return UserEntity(units.names, units.user_of, units.entity_of, *rates, settings.clip, cell_clip, most)


def _account(settings: Settings, aggregation: Aggregation) -> Account | None:
    """The accountant, with the given noise or the noise for ε."""
    if settings.privacy == "none":
        return None
    rate, rounds, far = aggregation.rate, settings.plan.rounds, aggregation.sensitivity
    multiplier = settings.noise_multiplier
    if multiplier is None:
        assert settings.epsilon is not None
        multiplier = least_noise(settings.epsilon, settings.delta, rate, rounds)
    return Account(rate, far, multiplier * far, rounds, settings.delta)


def _cautions(settings: Settings, units: Units) -> list[str]:
    if settings.privacy == "none" or settings.delta < 1 / units.count:
        return []
    return [
        f"delta {settings.delta:g} is at least 1 over the number of units, {units.count:,}: a mechanism that publishes "
        f"one of them at random would satisfy it. Choose a delta well below {1 / units.count:.2g}."
    ]


def _asked(run: Run) -> Trained:
    deviation = run.account.deviation if run.account else 0.0
    return Trained(
        version=version("dpassay"),
        words=list(run.trainable.words),
        vocabulary_from=run.trainable.vocabulary_from,
        settings=json.loads(json.dumps(asdict(run.settings))),
        units=run.units.count,
        deviation=deviation,
    )


def _fresh(place: Path, run: Run) -> tuple[Trained, None, dict[str, str]]:
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place} already exists and is not empty: continue it with --resume, or give another folder")
    secrets = {"key": os.urandom(KEY_BYTES).hex(), "fingerprint": run.units.fingerprint()}
    try:
        place.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(place / SECRETS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(secrets) + "\n")
    except OSError as error:
        raise InputError(f"{place} cannot be written: {error.strerror or error}; give another folder") from None
    return _asked(run), None, secrets


def _continued(place: Path, run: Run) -> tuple[Trained, Arrays, dict[str, str]]:
    about, arrays = read_folder(place, Trained)
    asked = _asked(run)
    again = "Give the same corpus and options again, or train into another folder."
    if about.version != asked.version:
        raise InputError(
            f"{place} was trained by dpassay {about.version}, not {asked.version}. Train into another folder."
        )
    changed = [n for n in ("words", "units", "vocabulary_from") if getattr(about, n) != getattr(asked, n)]
    changed += [n for n in asked.settings if about.settings.get(n) != asked.settings[n]]
    if changed:
        raise InputError(f"{place} was trained with other settings: it differs in {', '.join(changed)}. {again}")
    if about.done >= run.settings.plan.rounds:
        return about, arrays, {}
    try:
        secrets = json.loads((place / SECRETS).read_text(encoding="utf-8"))
        key, fingerprint = str(secrets["key"]), str(secrets["fingerprint"])
        bytes.fromhex(key)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{place / SECRETS} is missing or damaged: the run cannot be continued. {again}") from None
    if fingerprint != run.units.fingerprint():
        raise InputError(f"{place} was trained on another corpus. {again}")
    return about, arrays, {"key": key, "fingerprint": fingerprint}


def opened(folder: str | Path, device: str = "cpu") -> tuple[torch.nn.Module, Vocabulary | None, Trained]:
    """A trained language model from its folder: the network, its words (None for a base model's), and model.json."""
    place = Path(folder)
    about, arrays = read_folder(place, Trained)
    trainable = reopened(about.words, about.settings, usable(device), place)
    trainable.load(arrays, place)
    return trainable.network, Vocabulary(tuple(about.words)) if about.words else None, about
