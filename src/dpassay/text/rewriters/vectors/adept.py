"""ADePT's autoencoder in a folder: training, saving, loading, and further training."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpassay.errors import InputError
from dpassay.text.models.autoencoder import APART, Autoencoder, Shape
from dpassay.text.models.folder import (
    NEW_WEIGHTS,
    About,
    Arrays,
    emptied,
    read_folder,
    weights_of,
    with_weights,
    write_folder,
)
from dpassay.text.models.training import EpochPlan, Learner, Progress, TrainingRecipe, interruptible, usable
from dpassay.text.models.words import LONGEST, ModelVocabulary

SAVED_EVERY = 10.0  # seconds
MEASURED_EVERY = 50  # steps
SHARES = (0.9, 0.05, 0.05)  # of a corpus: to train on, to measure on during training, and for later


class PrivateTraining(BaseModel):
    """How an autoencoder was trained with privacy, and the statement of what that guarantees."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    version: str = Field(max_length=40)
    vocabulary_from: str
    settings: dict[str, Any]
    done: int = Field(ge=0, description="rounds so far")
    planned: int = Field(0, ge=0, description="the most rounds that were ever planned")
    deviation: float = Field(ge=0, description="of the noise")
    statement: dict[str, Any]


class Learned(About):
    """What the model.json of a trained autoencoder states."""

    system: Literal["adept"] = "adept"
    words: list[str] = Field(min_length=1, max_length=10**6)
    latent: int = Field(ge=1, le=10**4)
    hidden: int = Field(ge=1, le=10**4)
    embedding: int = Field(ge=1, le=10**4)
    clip: float = Field(gt=0)
    longest: int = Field(ge=1, le=10**4)
    steps: int = Field(ge=0, description="taken so far, of those planned")
    plan: dict[str, int | float]
    texts: int | None = Field(None, ge=1, description="how many it was trained on; private if it was with privacy")
    corpus: str = Field("", description="a digest of what it was trained on without privacy, for resuming")
    loss: float | None = None
    token_accuracy: float | None = Field(None, description="on held-out texts, without noise")
    training: PrivateTraining | None = Field(None, description="if it was trained with privacy")

    @property
    def shape(self) -> Shape:
        """The sizes of its network."""
        sizes = {f.name: getattr(self, f.name) for f in fields(Shape) if f.name != "words"}
        return Shape(words=len(ModelVocabulary(tuple(self.words))), **sizes)


@dataclass(frozen=True, eq=False)
class TrainedAutoencoder:
    """A trained autoencoder with its vocabulary."""

    network: Autoencoder
    vocabulary: ModelVocabulary
    about: Learned

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The clipped vector of each text."""
        return self.network.vectors(self.vocabulary.numbers(texts, self.network.shape.longest))

    def vectors_apart(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same vectors, but no digit of one depends on the other texts: for vectors to be released with noise."""
        longest, found = self.network.shape.longest, [np.empty((0, self.network.shape.latent), dtype=np.float32)]
        for start in range(0, len(texts), APART):
            group = texts[start : start + APART]
            filled = self.vocabulary.numbers([*group, *[""] * (APART - len(group))], longest)
            found.append(self.network.vectors_apart(filled)[: len(group)])
        return np.concatenate(found)

    def texts(self, vectors: NDArray[Any]) -> list[str]:
        """The text that the decoder writes for each vector."""
        return self.vocabulary.texts(self.network.rows(vectors))


def load(folder: str | Path, device: str = "cpu") -> TrainedAutoencoder:
    """A trained autoencoder from its folder.

    >>> load("no/such/model")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: no/such/model/model.json cannot be read: No such file or directory; ...
    """
    about, arrays = read_folder(Path(folder), Learned)
    odd = [word for word in about.words if word.split() != [word] or any("\ud800" <= c <= "\udfff" for c in word)]
    if odd:
        raise InputError(f"{folder} lists a word that is not one, {odd[0][:40]!r}: line n in would not be line n out")
    return TrainedAutoencoder(
        _network(about, arrays, Path(folder), device).eval(), ModelVocabulary(tuple(about.words)), about
    )


def _network(about: Learned, arrays: Arrays, folder: Path, device: str) -> Autoencoder:
    return with_weights(lambda: Autoencoder(about.shape), arrays, folder).to(usable(device))


def train(
    texts: Sequence[str],
    held_out: Sequence[str],
    folder: str | Path,
    plan: EpochPlan = EpochPlan(),  # noqa: B008 (it is frozen)
    *,
    labels: Sequence[str] = (),
    latent: int | None = None,
    hidden: int | None = None,
    embedding: int = 128,
    clip: float = 1.0,
    device: str = "cpu",
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainedAutoencoder:
    """Train an autoencoder to reproduce texts, and save it in a folder.

    Ctrl-C stops after the current step; `resume` continues from there, with the same result as without interruption.
    It may be continued to fewer or more steps than planned: the learning rate then follows the new plan. The sizes are
    those of the recipe for the plan's ε, if none are given. `labels` are those of the texts: an autoencoder for one ε
    learns to keep what they depend on; rewriting needs none.
    """
    place = Path(folder)
    if len(texts) < 2:
        raise InputError(f"an autoencoder needs 2 texts or more to train on, got {len(texts)}")
    if labels and len(labels) != len(texts):
        raise InputError(f"give a label for each text or none at all: got {len(labels)} for {len(texts)} texts")
    device = usable(device).type
    words = ModelVocabulary.of(texts)
    recipe = TrainingRecipe.at(plan.for_epsilon)
    latent, hidden = recipe.latent if latent is None else latent, recipe.hidden if hidden is None else hidden
    asked = _asked(words, len(texts), plan, {"latent": latent, "hidden": hidden, "embedding": embedding, "clip": clip})
    said = json.dumps([list(texts), list(held_out), list(labels) if recipe.told else []])
    asked = asked.model_copy(update={"corpus": hashlib.sha256(said.encode()).hexdigest()})
    resume = resume and not emptied(place)
    about, arrays, finished = _begun(place, asked) if resume else _fresh(place, asked, plan.seed)
    if about.steps < plan.steps:
        learner = Learner(_network(about, arrays, place, device), words, texts, held_out, plan, labels)
        if about.steps:
            try:
                learner.resume(about.steps, None if finished else arrays)
            except KeyError as missing:
                raise InputError(
                    f"{place} cannot be continued: {missing} is missing; train into another folder"
                ) from None
        _run_training(learner, about, place, progress)
    elif about.steps > plan.steps or any(":" in name for name in arrays) or (place / NEW_WEIGHTS).exists():
        # To fewer steps, or interrupted while it was saved: what is left is dropped.
        write_folder(place, about, {name: array for name, array in arrays.items() if ":" not in name})
    return load(place, device)


def _run_training(learner: Learner, about: Learned, place: Path, progress: Progress | None) -> None:
    steps = learner.plan.steps
    _save(learner, about, place)
    with interruptible() as interrupted:
        saved = time.monotonic()
        while learner.step < steps:
            learner.learn()
            if learner.step % MEASURED_EVERY == 0 or learner.step == steps:
                learner.measure()
            if progress is not None:
                progress(learner.step, steps, learner.note())
            if time.monotonic() - saved > SAVED_EVERY or learner.step == steps or interrupted():
                _save(learner, about, place)
                saved = time.monotonic()
            if interrupted():
                raise KeyboardInterrupt


def _save(learner: Learner, about: Learned, place: Path) -> None:
    """Save the weights and, while steps remain, the state of the optimizer."""
    measured = {"steps": learner.step, "loss": learner.loss, "token_accuracy": learner.accuracy}
    moments = learner.moments() if 0 < learner.step < learner.plan.steps else {}
    write_folder(place, about.model_copy(update=measured), weights_of(learner.network) | moments)


def _asked(words: ModelVocabulary, texts: int, plan: EpochPlan, sizes: dict[str, Any]) -> Learned:
    for name in ("latent", "hidden", "embedding"):
        if not 1 <= sizes[name] <= 10**4:
            raise InputError(f"{name} must be a whole number from 1 to 10000, got {sizes[name]}")
    if not 1e-10 <= sizes["clip"] <= 1e10:  # its square must be a normal float32
        raise InputError(f"clip must be a number from 1e-10 to 1e10, got {sizes['clip']}")
    return Learned(words=list(words.words), **sizes, longest=LONGEST, steps=0, plan=asdict(plan), texts=texts)


def _fresh(place: Path, asked: Learned, seed: int) -> tuple[Learned, Arrays, bool]:
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place} already exists and is not empty: continue it with --resume, or give another folder")
    torch.manual_seed(seed)
    return asked, weights_of(Autoencoder(asked.shape)), False


def _begun(place: Path, asked: Learned) -> tuple[Learned, Arrays, bool]:
    """The model as trained so far, and whether that run was finished."""
    about, arrays = read_folder(place, Learned)
    judged = {"steps", "loss", "token_accuracy", "sha256", "plan", "corpus"}
    changed = [n for n in Learned.model_fields if n not in judged and getattr(about, n) != getattr(asked, n)]
    changed += [n for n in asked.plan if n != "steps" and about.plan.get(n, 0.0) != asked.plan[n]]
    if changed:
        raise InputError(
            f"{place} was trained with other settings: it differs in {', '.join(changed)}. "
            "Give the same corpus and options again, or train into another folder."
        )
    if about.corpus != asked.corpus:
        raise InputError(
            f"{place} was trained on another corpus. Give the same corpus again, or train into another folder."
        )
    return about.model_copy(update={"plan": asked.plan}), arrays, about.steps >= about.plan["steps"]
