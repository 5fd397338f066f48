"""A training run in a folder: begun, interrupted, continued to the same weights, and finished with its statement."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field

from dpassay import __version__
from dpassay.errors import InputError
from dpassay.text.corpora.flights import known_words
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.folder import (
    MODEL,
    About,
    Arrays,
    emptied,
    read_folder,
    system_of,
    write_folder,
)
from dpassay.text.models.training import Progress, interruptible, usable
from dpassay.text.models.words import ModelVocabulary
from dpassay.text.rewriters.vectors.adept import Learned
from dpassay.training.accountant import Account, least_noise
from dpassay.training.aggregation import Aggregation, PerUnit, UserEntity
from dpassay.training.canaries.rounds import CanaryRounds
from dpassay.training.canaries.scores import CanaryScores, write_scores
from dpassay.training.canaries.sentences import secrets, sentence_scores, with_canaries
from dpassay.training.federated import Federated, Sentences, Server
from dpassay.training.networks.by_name import Trainable, make_trainable, reopened
from dpassay.training.networks.language_model import perplexity
from dpassay.training.randomness import KEY_BYTES, Randomness, make_randomness
from dpassay.training.settings import Settings
from dpassay.training.statement import Terms, above, stated_as_finished, write_statement
from dpassay.training.units import Units, gathered

SAVED_EVERY = 10.0  # seconds
MEASURED_EVERY = 50  # rounds
MEASURED = 1000  # held-out texts at most
SECRETS = "checkpoint.json"  # the key and what depends on the corpus, while training is unfinished
CANARY_FILE = "canaries.csv"
CELL_CLIP = 0.25  # of the clip, if none is given
MOST_USERS = 32  # in a round of user-entity privacy, if no number is given: it must not depend on the corpus

Warn = Callable[[str], None]


class Trained(About):
    """What the model.json of a language model states."""

    system: Literal["lm"] = "lm"
    version: str = Field(max_length=40)
    words: list[str] = Field(max_length=10**6)
    vocabulary_from: str
    settings: dict[str, Any]
    done: int = Field(0, ge=0, description="rounds so far")
    planned: int = Field(0, ge=0, description="the most rounds that were ever planned")
    deviation: float = Field(ge=0, description="of the noise")


@dataclass(frozen=True)
class TrainedModel:
    """A finished run: where it is, what it guarantees, and what it reached.

    The perplexity on held-out text, before and after, and `units` depend on the corpus and are not protected: they are
    only for those who have the corpus, and they are not written to the folder.
    """

    folder: Path
    network: torch.nn.Module
    about: Trained
    statement: dict[str, Any]
    seconds: float
    perplexity: tuple[float | None, float | None]
    units: Units


class TrainingRun:
    """All parts of a run, put together from its settings and units."""

    def __init__(
        self,
        settings: Settings,
        units: Units,
        trainable: Trainable,
        device: torch.device,
        deviation: float | None = None,
    ) -> None:
        self.settings, self.units, self.trainable, self.device = settings, units, trainable, device
        if settings.by_opacus and find_spec("opacus") is None:
            raise InputError("example privacy needs Opacus, which is not installed: pip install 'dpassay[training]'")
        if settings.noise_source == "opendp" and find_spec("opendp") is None:
            raise InputError("this noise is drawn by OpenDP, which is not installed: pip install 'dpassay[release]'")
        largest = max(weights.numel() for weights in trainable.network.parameters() if weights.requires_grad)
        if settings.canary_kind == "updates" and settings.canaries > largest:
            raise InputError(
                f"{settings.canaries:,} canaries need a tensor with a weight for each, and the largest of the model "
                f"has {largest:,}: plant fewer, or sentences"
            )
        self.aggregation = _aggregation(settings, units)
        self.account = _account(settings, self.aggregation, deviation)
        self.held_out = trainable.numbers(units.held_out[:MEASURED]) if units.held_out else None

    def engine(self, randomness: Randomness) -> Any:
        """What takes the rounds."""
        settings, network = self.settings, self.trainable.network
        numbers = self.trainable.numbers(self.units.texts)
        sentences = Sentences(numbers, self.units.cells, settings.plan)
        deviation = self.account.deviation if self.account else 0.0
        if settings.by_opacus:
            from dpassay.training.examples import ExampleTraining

            return ExampleTraining(network, sentences, randomness, self.aggregation, deviation)
        weights = {name: parameter.data for name, parameter in network.named_parameters() if parameter.requires_grad}
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
) -> TrainedModel:
    """Train a language model with privacy and save it, with its statement, in a folder.

    `vocabulary` is a public list of words. A base model needs none. The folder lists the words that the model knows, so
    the words of the corpus are used only where nothing is guaranteed: without privacy, or with the setting
    `vocabulary_from_corpus`.
    Ctrl-C stops after the current round, and `resume` continues to the same weights. An unfinished run may be continued
    to fewer or more rounds, with the noise that it began with. A finished one is refused: its folder has nothing from
    which to see that the corpus is the same. One that was interrupted before its model was first saved
    begins anew.
    """
    place, begun = Path(folder), time.monotonic()
    resume = resume and not emptied(place, SECRETS)  # no round was taken, and no noise was drawn
    asked = settings.plan.rounds
    settings, deviation = _other_rounds(place, settings) if resume else (settings, None)
    planted = _planted(settings, vocabulary)
    copies = (
        settings.plan.sentences if settings.privacy in ("user", "user-entity", "none") else 1
    )  # a canary is one unit
    utterances = with_canaries(utterances, planted, settings.included, copies)
    units = gathered(utterances, settings.privacy, held_out)
    _check_vocabulary(settings, vocabulary)
    for message in (*units.warnings, *_cautions(settings, units), *_doubts(vocabulary, utterances)):
        warn(message)
    where = usable(device)
    trainable = make_trainable(units.texts, vocabulary, settings, where)
    run = TrainingRun(settings, units, trainable, where, deviation)
    about, arrays, secrets = (_continued if resume else _fresh)(place, run)
    if about.done > asked:
        warn(f"{about.done:,} rounds are done already, more than the {asked:,} requested: training ends with them")
    if arrays is not None:
        trainable.load(arrays, place)
    if secrets:
        about, engine = _run_rounds(run, about, place, secrets, arrays, progress)
        if settings.canaries:
            scores = sentence_scores(trainable.network, trainable.numbers(planted)) if planted else engine.scores
            write_scores(CanaryScores(scores, settings.included), place / CANARY_FILE)
    _finish(run, about, place)  # also where it was interrupted after the key was deleted
    stated = _terms(run, about, place).as_data()
    reached = secrets.get("perplexity"), run.measured()
    return TrainedModel(place, trainable.network, about, stated, time.monotonic() - begun, reached, units)


def _run_rounds(
    run: TrainingRun,
    about: Trained,
    place: Path,
    secrets: dict[str, Any],
    arrays: Arrays | None,
    progress: Progress | None,
) -> tuple[Trained, Any]:
    settings = run.settings
    randomness = make_randomness(settings.noise_source, settings.seed, bytes.fromhex(secrets["key"]), settings.clip)
    engine, rounds, done = run.engine(randomness), settings.plan.rounds, about.done
    if done and arrays is not None and (done < rounds or any(":" in name for name in arrays)):
        engine.resume(arrays, done)
    now = secrets.get("perplexity")
    _save(run, engine, about, place)
    with interruptible() as interrupted:
        saved = time.monotonic()
        while done < rounds:
            engine.round(done)
            done += 1
            if done % MEASURED_EVERY == 0:
                now = run.measured()
            if progress is not None:
                progress(done, rounds, _note(run, now, done))
            if time.monotonic() - saved > SAVED_EVERY or done == rounds or interrupted():
                about = about.model_copy(update={"done": done})
                _save(run, engine, about, place)
                saved = time.monotonic()
            if interrupted() and done < rounds:
                raise KeyboardInterrupt
    return about, engine


def _finish(run: TrainingRun, about: Trained, place: Path) -> None:
    """Delete the key of a run that is done, and only then state that it is finished, whenever it is interrupted."""
    (place / SECRETS).unlink(missing_ok=True)
    _save(run, None, about, place)


def _check_vocabulary(settings: Settings, vocabulary: Sequence[str] | None) -> None:
    """Refuse to publish the words of a corpus under a guarantee."""
    if settings.vocabulary_from_corpus and (vocabulary is not None or settings.base):
        raise InputError("vocabulary_from_corpus is for training without a public vocabulary and without a base model")
    if vocabulary is None and not (settings.base or settings.privacy == "none" or settings.vocabulary_from_corpus):
        base = ", or a base model with --base" if settings.autoencoder is None else ""
        raise InputError(
            "the model's folder lists the words that the model knows, and those of this corpus are private: give a "
            f"public list of words with --vocabulary FILE{base}. With --vocabulary-from-corpus "
            "the words of the corpus are used, and nothing is guaranteed."
        )


def _doubts(vocabulary: Sequence[str] | None, utterances: Sequence[Utterance]) -> list[str]:
    """A warning if a list of words that should be public is that of the corpus."""
    if vocabulary is None or set(vocabulary) != set(ModelVocabulary.of([u.text for u in utterances]).words):
        return []
    return [
        "the vocabulary has exactly the words of this corpus. If it was made from the corpus, the model's folder "
        "publishes private words, and the guarantee does not hold"
    ]


def _planted(settings: Settings, vocabulary: Sequence[str] | None) -> list[str]:
    """The sentences of canaries, if canaries are sentences. Their words are public: none comes from the corpus."""
    if not settings.canaries or settings.canary_kind != "sentences":
        return []
    return secrets(vocabulary or known_words(), settings.canaries, settings.seed)


def _note(run: TrainingRun, now: float | None, done: int) -> str:
    """The latest measurements, for a progress bar."""
    spent = "" if run.account is None else f"epsilon {above(run.account.spent(done), 2)} so far"
    return ", ".join(filter(None, ("" if now is None else f"perplexity {now:.1f}", spent)))


def _save(run: TrainingRun, engine: Any, about: Trained, place: Path) -> None:
    """Save the weights, the statement and, until the run is finished, the state of the server."""
    state = engine.state() if about.done and engine is not None else {}
    stated = _terms(run, about, place).as_data()
    write_folder(place, run.trainable.described(about, stated), run.trainable.arrays() | state)
    if stated["finished"]:
        run.trainable.finish(place)
    write_statement(place, stated)


def _terms(run: TrainingRun, about: Trained, place: Path) -> Terms:
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
        settings.vocabulary_from_corpus,
        settings.autoencoder is not None,
        max(about.planned, settings.plan.rounds),
        (place / SECRETS).exists(),
    )


def _aggregation(settings: Settings, units: Units) -> Aggregation:
    if settings.privacy != "user-entity":
        planted = settings.canaries if settings.canary_kind == "updates" else 0
        return PerUnit(len(units.cells) + planted, settings.rate, settings.clip)
    cell_clip = CELL_CLIP * settings.clip if settings.cell_clip is None else settings.cell_clip
    most = MOST_USERS if settings.most_users is None else settings.most_users
    rates = (settings.rate, settings.entity_rate)
    return UserEntity(units.names, units.user_of, units.entity_of, *rates, settings.clip, cell_clip, most)


def _account(settings: Settings, aggregation: Aggregation, deviation: float | None) -> Account | None:
    """The accountant, with the noise of a run that is continued, the given noise, or the noise for ε."""
    if settings.privacy == "none":
        return None
    rate, rounds, far = aggregation.rate, settings.plan.rounds, aggregation.sensitivity
    if deviation is not None:
        return Account(rate, far, deviation, rounds, settings.delta)
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


def _asked(run: TrainingRun) -> Trained:
    deviation = run.account.deviation if run.account else 0.0
    return Trained(
        version=__version__,
        words=list(run.trainable.words),
        vocabulary_from=run.trainable.vocabulary_from,
        settings=json.loads(json.dumps(asdict(run.settings))),
        deviation=deviation,
        planned=run.settings.plan.rounds,
    )


def _fresh(place: Path, run: TrainingRun) -> tuple[Trained, None, dict[str, Any]]:
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place} already exists and is not empty: continue it with --resume, or give another folder")
    secrets: dict[str, Any] = {"key": os.urandom(KEY_BYTES).hex(), "fingerprint": run.units.fingerprint()}
    secrets["perplexity"] = run.measured()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(place / SECRETS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(secrets) + "\n")
    except OSError as error:
        raise InputError(f"{place} cannot be written: {error.strerror or error}; give another folder") from None
    return _asked(run), None, secrets


def _read(place: Path) -> tuple[Trained, Arrays]:
    """A model as trained so far: a language model, or an autoencoder that was trained with privacy."""
    if system_of(place) != "adept":
        return read_folder(place, Trained)
    learned, arrays = read_folder(place, Learned)
    if (training := learned.training) is None:
        raise InputError(f"{place} was trained without privacy: train into another folder")
    known = training.model_dump(exclude={"statement"})
    return Trained(words=learned.words, sha256=learned.sha256, **known), arrays


def _other_rounds(place: Path, settings: Settings) -> tuple[Settings, float | None]:
    """The settings of a run that is continued, perhaps to fewer or more rounds than planned, and its noise."""
    about, _ = _read(place)
    plan = about.settings.get("plan")
    planned, asked = plan.get("rounds") if isinstance(plan, dict) else None, settings.plan.rounds
    if not isinstance(planned, int):
        raise InputError(f"{place / MODEL} is damaged: it does not say how many rounds were planned; train again")
    if about.done >= planned and (planned != asked or stated_as_finished(place)):
        raise InputError(
            f"{place} is finished, with {planned:,} rounds. Its checkpoint was deleted, and with it the identity "
            "of its corpus and what more rounds need, so it cannot be continued: train into another folder"
        )
    if planned == asked:
        return settings, about.deviation
    rounds = max(asked, about.done)
    return replace(settings, plan=replace(settings.plan, rounds=rounds)), about.deviation


def _continued(place: Path, run: TrainingRun) -> tuple[Trained, Arrays, dict[str, Any]]:
    about, arrays = _read(place)
    asked = _asked(run)
    again = "Give the same corpus and options again, or train into another folder."
    if about.version != asked.version:
        raise InputError(
            f"{place} was trained by dpassay {about.version}, not {asked.version}. Train into another folder."
        )
    changed = [n for n in ("words", "vocabulary_from") if getattr(about, n) != getattr(asked, n)]
    other_rounds = about.settings["plan"]["rounds"] != asked.settings["plan"]["rounds"]
    about.settings["plan"]["rounds"] = asked.settings["plan"]["rounds"]  # `_other_rounds` has judged them
    free = {"at_once"} | ({"epsilon"} if other_rounds and about.settings.get("epsilon") is not None else set())
    changed += [n for n in asked.settings if n not in free and about.settings.get(n) != asked.settings[n]]
    if changed:
        raise InputError(f"{place} was trained with other settings: it differs in {', '.join(changed)}. {again}")
    allowed, reached = run.settings.epsilon, run.account.epsilon().upper if run.account else 0.0
    if allowed is not None and reached > allowed:
        raise InputError(
            f"with the noise of this run, {run.settings.plan.rounds:,} rounds give epsilon {reached:.4g}, above "
            f"{allowed:g}: continue to fewer rounds, or allow a larger epsilon"
        )
    about = about.model_copy(update={"settings": asked.settings, "planned": max(about.planned, asked.planned)})
    if about.done >= run.settings.plan.rounds and not (place / SECRETS).exists():
        return about, arrays, {}
    try:
        secrets = json.loads((place / SECRETS).read_text(encoding="utf-8"))
        bytes.fromhex(secrets["key"])
        fingerprint = secrets["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{place / SECRETS} is missing or damaged: the run cannot be continued. {again}") from None
    if fingerprint != run.units.fingerprint():
        raise InputError(f"{place} was trained on another corpus. {again}")
    return about, arrays, secrets


def opened(folder: str | Path, device: str = "cpu") -> tuple[torch.nn.Module, ModelVocabulary | None, Trained]:
    """A trained language model from its folder: the network, its words (None for a base model's), and model.json."""
    place = Path(folder)
    about, arrays = read_folder(place, Trained)
    trainable = reopened(about.words, about.settings, usable(device), place)
    trainable.load(arrays, place)
    return trainable.network, ModelVocabulary(tuple(about.words)) if about.words else None, about
