"""DPText as it was published: an autoencoder, noise on its vectors, a task, and an adversary during training.

The vector of a text lies in [0, 1]^n and gets noise of scale n/ε. An attribute of the speaker is to be hidden: the
encoder is trained against a discriminator that predicts it. ε is learned with the weights, from the private data, by
the gradient through the noise. The claims dptext-* in the registry state what is claimed and what is true.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpassay.core.numbers import ONE, ZERO, middle
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import check_positive
from dpassay.pipeline.stages.bounds.clamp import Clamp
from dpassay.pipeline.stages.functions import Encode
from dpassay.pipeline.stages.noises.additive import Additive, one_sided
from dpassay.text.corpora.corpus import split
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.autoencoder import Autoencoder, Shape, shifted
from dpassay.text.models.classifier import fit
from dpassay.text.models.encoders import Remembering
from dpassay.text.models.folder import About, read_folder, weights_of, with_weights, write_folder
from dpassay.text.models.training import TOGETHER, EpochPlan, Progress, take_step
from dpassay.text.models.words import PAD, ModelVocabulary, tokenise
from dpassay.text.rewriters.base import DOUBLES, NAMED, WEIGHTS, TextGuarantee
from dpassay.text.rewriters.vectors.encoded import EncodedText

Reading = Literal["zero", "resampled", "nan", "right"]
READINGS: tuple[Reading, ...] = get_args(Reading)  # of the published formula, and the correct one
PUBLISHED = {"zero": ("0.5", 0), "resampled": (0, 0), "nan": (0, "0.5")}  # probabilities of no noise and of NaN
SHARES = (0.8, 0.2)  # of the utterances: for training, and for measuring
BEYOND = 1e9  # a radius that nothing is clipped to: a sigmoid bounds these vectors
BATCH, LEARNING_RATE = 32, 5e-3
PRACTICE = 5  # steps of the discriminator per step of the rest: what a weak discriminator misses is not hidden
LEAST, LARGEST = 1e-6, 1e6  # an epsilon that is fixed
START = 1.0  # starting value of a learned ε
LEARNED = "epsilon was learned from the training texts, and a number that depends on them is not a guarantee"
NEVER_NEGATIVE = "the noise is never negative, so an output below a text's vector rules that text out"
COPIES = 8  # noisy vectors per text that the attacker, who has the model, makes to train on

Floats = NDArray[np.float64]


def standard_noise(uniform: Tensor, reading: str) -> Tensor:
    """The noise of scale 1 for v drawn uniformly from (0, 1), by −sgn(v)·ln(1 − 2|v|): NaN where v is above ½.

    A NaN is kept, set to 0, or drawn again, which amounts to drawing v from (0, ½). Correct is v − ½ instead of v.

    >>> v = torch.tensor([0.25, 0.75])
    >>> for reading in READINGS:
    ...     print(reading, standard_noise(v, reading).tolist())
    zero [0.693..., 0.0]
    resampled [0.287..., 1.386...]
    nan [0.693..., nan]
    right [-0.693..., 0.693...]
    """
    v = {"resampled": uniform / 2, "right": uniform - 0.5}.get(reading, uniform)
    noise = -torch.sign(v) * torch.log(1 - 2 * v.abs())
    return noise.nan_to_num(0.0) if reading == "zero" else noise


def seen(vectors: Tensor) -> Tensor:
    """What the networks after the noise see: coordinates shifted so that ½ is 0, with 0 for extreme or lost (NaN) ones.

    >>> seen(torch.tensor([0.0, 0.5, 1.0, 100.0, torch.nan]))
    tensor([-1.0000,  0.0000,  1.0000,  0.0100,  0.0000])
    """
    around = 2 * vectors.masked_fill(vectors.isnan(), 0.5) - 1
    return 2 * around / (1 + around.square())


class Network(Autoencoder):
    """The autoencoder, with vectors in [0, 1]^n, the classifier for the task, and the discriminator.

    >>> network = Network(Shape(words=10, latent=3, hidden=8, embedding=4, clip=BEYOND), labels=2, attributes=2)
    >>> bool((network.encode(torch.tensor([[4, 5, 1]])) - 0.5).abs().max() < 0.5)
    True
    """

    def __init__(self, shape: Shape, labels: int, attributes: int) -> None:
        super().__init__(shape)
        self.task, self.discriminator = (
            nn.Sequential(nn.Linear(shape.latent, shape.hidden), nn.ReLU(), nn.Linear(shape.hidden, classes))
            for classes in (labels, attributes)
        )

    def encode(self, numbers: Tensor) -> Tensor:
        """The vector of each row, by a sigmoid."""
        return torch.sigmoid(super().encode(numbers))

    @torch.no_grad()
    def vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.asarray(torch.sigmoid(torch.from_numpy(super().vectors(numbers))).numpy())

    def _begin(self, latents: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        view = seen(latents)
        state, memory = self.to_state(view).chunk(2, dim=1)
        return view, torch.tanh(state), memory


class Reader(Remembering):
    """A trained network with its vocabulary: texts become vectors, and noisy vectors become labels and texts."""

    def __init__(
        self, network: Network, words: ModelVocabulary, labels: Sequence[str], attributes: Sequence[str]
    ) -> None:
        super().__init__("dptext", network.shape.latent, self._read)
        self.network, self.vocabulary = network.eval(), words
        self.labels, self.attributes = tuple(labels), tuple(attributes)

    def _read(self, texts: list[str]) -> NDArray[np.float32]:
        return self.network.vectors(self.vocabulary.numbers(texts, self.network.shape.longest))

    @torch.no_grad()
    def predict(self, vectors: Floats) -> list[str]:
        """The label that the task's classifier gives each vector."""
        scores = self.network.task(seen(torch.from_numpy(vectors.astype(np.float32))))
        return [self.labels[i] for i in scores.argmax(dim=1).tolist()]

    def texts(self, vectors: Floats) -> list[str]:
        """What the decoder writes for each vector."""
        return self.vocabulary.texts(self.network.rows(vectors))


@dataclass(frozen=True, slots=True)
class Dptext(EncodedText):
    """The mechanism: the vector of a text, each coordinate in [0, 1], gets noise of scale n/ε under one reading.

    Its distribution is known, and its pipeline is that of the claim in the registry. With the reading `nan`, lost
    coordinates are NaN.

    >>> class Letters:
    ...     name, dim = "letters", 2
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) / len(text) for letter in "ab"] for text in texts])
    >>> for reading in READINGS:
    ...     print(Dptext(Letters(), epsilon=4, reading=reading).pipeline)
    encode | clamp(0, 1) | onesided(0.5, 0.5, 0)
    encode | clamp(0, 1) | onesided(0.5)
    encode | clamp(0, 1) | onesided(0.5, 0, 0.5)
    encode | clamp(0, 1) | laplace(0.5)
    >>> system = Dptext(Letters(), epsilon=4)
    >>> system.sample("abba", 5, np.random.default_rng(0)).shape, system.distribution("abba").centre.tolist()
    ((5, 2), [0.5, 0.5])
    """

    reading: Reading = "zero"
    learnt: bool = False  # whether ε was learned from the texts, and so is not a guarantee

    def __post_init__(self) -> None:
        epsilon, reading = check_positive(self.epsilon, "epsilon"), reading_of(self.reading)
        scale = self.dim / epsilon
        noise = Additive(Laplace(scale)) if reading == "right" else one_sided(scale, *PUBLISHED[reading])
        object.__setattr__(self, "epsilon", middle(epsilon))
        stages = (Encode(self.dim, self.encoder.encode), Clamp(ZERO, ONE), noise)
        object.__setattr__(self, "pipeline", Pipeline(stages, self.dim))

    @property
    def guarantee(self) -> TextGuarantee:
        """What holds between any two texts: ε with the correct noise if it was not learned, otherwise no finite one.

        >>> class Length:
        ...     name, dim = "length", 1
        ...     def encode(self, texts):
        ...         return np.array([[1 / max(1, len(text))] for text in texts])
        >>> print(Dptext(Length(), epsilon=4, reading="right").guarantee)
        epsilon 4 for any two texts (local DP)
        >>> print(Dptext(Length(), epsilon=4, reading="right", learnt=True).guarantee)
        no finite epsilon (claimed: 4) for any two texts (local DP); epsilon was learned from the training texts, ...
        """
        return guarantee_of(self.reading, self.epsilon, self.learnt)


def guarantee_of(reading: Reading, epsilon: float, learned: bool) -> TextGuarantee:
    """What holds between any two texts, for any network, with an ε that was learned or given."""
    published = reading != "right"
    reasons = [LEARNED] * learned + [NEVER_NEGATIVE] * published
    held, outside = math.inf if reasons else epsilon, "; ".join(reasons)
    caveats = (WEIGHTS, NAMED, DOUBLES)
    proofs = () if reasons else tuple(theorem.page for theorem in (Theorem.LAPLACE, Theorem.DIAMETERS))
    return TextGuarantee(held, claimed=epsilon, outside=outside, proofs=proofs, caveats=caveats, as_published=published)


def train(
    utterances: Sequence[Utterance],
    reading: Reading = "zero",
    dim: int = 16,
    epsilon: float | None = None,
    *,
    steps: int = 600,
    seed: int = 0,
    hidden: int = 64,
    embedding: int = 32,
    adversary: float = 1.0,
    progress: Progress | None = None,
) -> tuple[Dptext, dict[str, Any]]:
    """Train the system; measure on held-out utterances how much of the task and the private attribute is recovered.

    Without an `epsilon` it is learned, starting at 1. `adversary` is the weight of the discriminator's failure; with 0,
    nothing is deliberately hidden.
    Nothing here protects the training utterances: the weights are not private, and neither is a learned ε.
    """
    plan = EpochPlan(steps, BATCH, LEARNING_RATE, seed)
    fixed = None if epsilon is None else middle(check_positive(epsilon, "epsilon"))
    if fixed is not None and not LEAST <= fixed <= LARGEST:  # beyond, single precision has no such noise
        raise InputError(f"epsilon must be a number from {LEAST:g} to {LARGEST:,.0f}, got {fixed:g}")
    if not 0 <= adversary < math.inf:
        raise InputError(f"the weight of the adversary must be 0 (none) or a positive number, got {adversary:g}")
    for name, size in (("dim", dim), ("hidden", hidden), ("embedding", embedding)):
        if not 1 <= size <= 10**4:
            raise InputError(f"{name} must be a whole number from 1 to 10000, got {size}")
    if len(utterances) < 5 or not all(u.label and u.attribute for u in utterances):
        wanted = "5 utterances or more, each with a label and a private attribute (columns label and attribute)"
        without = sum(not (u.label and u.attribute) for u in utterances)
        raise InputError(f"DPText needs {wanted}; got {len(utterances)}, {without} of them without one of the two")
    known, asked = split(utterances, seed, SHARES)
    words = ModelVocabulary.of(u.text for u in known)
    labels, attributes = (sorted({getattr(u, name) for u in known}) for name in ("label", "attribute"))
    if len(attributes) < 2:
        raise InputError(f"there is nothing to hide: all speakers have the same attribute, {attributes[0]!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        shape = Shape(words=len(words), latent=dim, hidden=hidden, embedding=embedding, clip=BEYOND)
        network = Network(shape, len(labels), len(attributes))
    data = _TrainingData(
        words.numbers([u.text for u in known]),
        torch.tensor([labels.index(u.label) for u in known]),
        torch.tensor([attributes.index(u.attribute) for u in known]),
        reading_of(reading),
        adversary,
    )
    reached = _optimise(network, data, plan, fixed, progress)
    system = Dptext(Reader(network, words, labels, attributes), reached, reading, learnt=fixed is None)
    return system, {**report(system, known, asked, seed), "adversary": adversary}


@dataclass(frozen=True, slots=True)
class _TrainingData:
    """The training data and the objective."""

    numbers: NDArray[np.int64]
    labels: Tensor
    attributes: Tensor
    reading: Reading
    adversary: float

    def batch(self, size: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Texts of similar length, so that there is little padding."""
        pool = rng.integers(0, len(self.numbers), TOGETHER * size)
        lengths = (self.numbers[pool] != PAD).sum(axis=1)
        start = size * int(rng.integers(0, TOGETHER))
        some = pool[np.argsort(lengths, kind="stable")][start : start + size]
        rows = self.numbers[some]
        return torch.from_numpy(rows[:, (rows != PAD).any(axis=0)]), self.labels[some], self.attributes[some]


def _optimise(
    network: Network, data: _TrainingData, plan: EpochPlan, fixed: float | None, progress: Progress | None
) -> float:
    """Min-max: the discriminator learns to predict the attribute, the rest learns the task and to make it fail."""
    log_epsilon = torch.tensor(np.log(START if fixed is None else fixed), requires_grad=fixed is None)
    against = list(network.discriminator.parameters())
    others = [p for name, p in network.named_parameters() if not name.startswith("discriminator.")]
    optimisers = torch.optim.Adam(against), torch.optim.Adam([*others, log_epsilon])
    rng = np.random.default_rng([plan.seed, 2])
    for step in range(plan.steps):
        numbers, labels, attributes = data.batch(plan.batch, rng)
        vectors = network.encode(numbers)
        uniform = (rng.integers(0, 2**23, (*vectors.shape,)) + 0.5) / 2**23  # never 0, ½ or 1: ln 0 is infinite
        noise = standard_noise(torch.from_numpy(uniform.astype(np.float32)), data.reading)
        moved = vectors + noise.nan_to_num(0.0) * network.shape.latent / log_epsilon.exp()
        noisy = moved.masked_fill(noise.isnan(), torch.nan)
        for _ in range(PRACTICE):
            guess = cross_entropy(network.discriminator(seen(noisy.detach())), attributes)
            take_step(optimisers[0], guess, against, plan.rate(step))
        scores = network.logits(noisy, shifted(numbers))
        written = cross_entropy(scores.transpose(1, 2), numbers, ignore_index=PAD)
        task = cross_entropy(network.task(seen(noisy)), labels)
        hidden = cross_entropy(network.discriminator(seen(noisy)), attributes)
        take_step(optimisers[1], written + task - data.adversary * hidden, others, plan.rate(step))
        if progress is not None:
            now = f"epsilon {log_epsilon.exp().item():.3g}" + " (learned: not a guarantee)" * (fixed is None)
            progress(step + 1, plan.steps, f"task {task.item():.2f}, {now}")
    return log_epsilon.exp().item() if fixed is None else fixed


def sightings(vectors: Floats) -> Floats:
    """The attacker's features of noisy vectors: each coordinate clamped to [0, 1], and itself if it already was there.

    The first is sufficient under correct noise; the second is a coordinate that likely got none. NaN becomes 0.

    >>> sightings(np.array([[0.9, 7.0, np.nan]])).round(1).tolist()
    [[0.4, 0.5, 0.0, 0.4, 0.0, 0.0]]
    """
    around = np.where(np.isnan(vectors), 0.0, vectors - 0.5)
    return np.hstack([around.clip(-0.5, 0.5), np.where(abs(around) <= 0.5, around, 0.0)])


def report(system: Dptext, known: Sequence[Utterance], asked: Sequence[Utterance], seed: int = 0) -> dict[str, Any]:
    """How often the task, the words and the private attribute are recovered from noisy vectors of held-out utterances.

    The prefix `clean_` means without noise, `commonest_` by always predicting the most common value. `chance` is the
    largest share of an attribute value among the held-out utterances: nobody who sees no vector is right more often.
    The attacker is fitted after the system was trained, to vectors that it makes from utterances it knows. ε is given
    beside what really holds.
    """
    reader, rng = system.encoder, np.random.default_rng([seed, 3])
    assert isinstance(reader, Reader)
    texts, labels, attributes = ([getattr(u, name) for u in asked] for name in ("text", "label", "attribute"))
    copies = [u for u in known for _ in range(COPIES)]
    said, truth = ([getattr(u, name) for u in copies] for name in ("text", "attribute"))
    found: dict[str, Any] = {name: getattr(system, name) for name in ("reading", "epsilon", "learnt", "dim")}
    found |= {"guarantee": system.guarantee.to_dict()}
    found |= {"texts": len(known), "held_out": len(asked)}
    for way in ("", "clean_"):
        made, got = (reader.encode(some) if way else system.release(some, rng) for some in (said, texts))
        right = [guess == label for guess, label in zip(reader.predict(got), labels, strict=True)]
        attacker = fit(sightings(made), truth, seed).accuracy(sightings(got), attributes)
        tokens = returned(texts, reader.texts(got))
        found |= {f"{way}task": sum(right) / len(right), f"{way}attacker": attacker, f"{way}tokens": tokens}
    label, attribute = Counter(u.label for u in known).most_common(1)[0][0], Counter(truth).most_common(1)[0][0]
    found["commonest_task"] = labels.count(label) / len(asked)
    found["commonest_attacker"] = attributes.count(attribute) / len(asked)
    found["chance"] = max(Counter(attributes).values()) / len(asked)
    return found


def returned(texts: Sequence[str], written: Sequence[str]) -> float:
    """The share of words reproduced at their own position.

    >>> returned(["fly to rome", "to oslo"], ["fly me rome", "to"])
    0.6
    """
    pairs = zip(texts, written, strict=True)
    same = sum(word == other for a, b in pairs for word, other in zip(tokenise(a), tokenise(b), strict=False))
    return same / max(1, sum(len(tokenise(text)) for text in texts))


class _DPTextFields(About):
    system: Literal["dptext"] = "dptext"
    reading: Reading
    epsilon: float = Field(gt=0)
    learnt: bool
    words: list[str] = Field(min_length=1, max_length=10**6)
    labels: list[str] = Field(min_length=1, max_length=10**5)
    attributes: list[str] = Field(min_length=1, max_length=10**5)
    dim: int = Field(ge=1, le=10**4)
    hidden: int = Field(ge=1, le=10**4)
    embedding: int = Field(ge=1, le=10**4)


def save(system: Dptext, folder: str | Path) -> None:
    """Write a trained system to a new folder: model.json and weights.safetensors."""
    reader = system.encoder
    if not isinstance(reader, Reader):
        raise InputError(f"only a system that was trained can be saved, not one with the encoder {reader.name!r}")
    shape = reader.network.shape
    about = _DPTextFields(
        reading=system.reading,
        epsilon=system.epsilon,
        learnt=system.learnt,
        words=list(reader.vocabulary.words),
        labels=list(reader.labels),
        attributes=list(reader.attributes),
        dim=shape.latent,
        hidden=shape.hidden,
        embedding=shape.embedding,
    )
    write_folder(Path(folder), about, weights_of(reader.network))


def load(folder: str | Path) -> Dptext:
    """Read what `save` wrote, executing nothing.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: no/such/folder/model.json cannot be read: No such file or directory; ...
    """
    about, arrays = read_folder(Path(folder), _DPTextFields)
    words = ModelVocabulary(tuple(about.words))
    shape = Shape(len(words), about.dim, about.hidden, about.embedding, BEYOND)
    labels, attributes = len(about.labels), len(about.attributes)
    network = with_weights(lambda: Network(shape, labels, attributes), arrays, Path(folder))
    return Dptext(Reader(network, words, about.labels, about.attributes), about.epsilon, about.reading, about.learnt)


def reading_of(name: Any) -> Reading:
    """The reading of this name."""
    if name not in READINGS:
        raise InputError(f"unknown reading {name!r}; there are {', '.join(READINGS)}")
    return READINGS[READINGS.index(name)]
