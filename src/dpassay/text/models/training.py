"""Training the autoencoder: batches, checkpoints, and resuming after an interruption to exactly the same weights.

Each step draws its batch from a random stream of its own, so a resumed run takes the same steps. Texts are
few, so part of each batch is made up: the beginning of one text joined to the end of another, and words replaced by
others. The network thus learns to reproduce sequences of words that it has not seen.

Half of the texts are decoded from vectors with noise, as they will be in use. The decoder then learns to write a
likely text from a vector that is only roughly known. docs/systems/adept.md shows what each of these choices is worth.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from dpassay.errors import InputError
from dpassay.text.models.autoencoder import Autoencoder, shifted
from dpassay.text.models.words import END, PAD, SPECIAL, UNKNOWN, ModelVocabulary

Progress = Callable[[int, int, str], None]

SPLICED = 0.3  # of the texts of a batch have the end of another text
REPLACED = 0.1  # of the words, on average; between none and twice as many in a text
NOISY = 0.5  # of the texts of a batch are decoded from noisy vectors
EPSILONS = (50.0, 3000.0)  # of that noise, clipped in l1: log-uniform between these
UNSEEN = 0.2  # of the words that the decoder has just written are hidden from it
TOGETHER = 8  # batches whose texts are sorted by length, so that there is little padding
SPREAD = 1.0  # weight of the penalty on vectors that point the same way: noise harms spread-out vectors less
TOLD = 1.0  # weight of naming a text's label from its noisy vector, in a recipe for one ε
WARM_UP = 0.1  # of the steps
TELLER = "teller"  # the layer for labels, in what is kept to resume
MOMENTS = ("exp_avg", "exp_avg_sq")  # of Adam
DEVICES = ("cpu", "cuda")
HELD_OUT = 200  # at most this many texts are used to measure the token accuracy during training


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """What an autoencoder is made for: its sizes, how many texts are decoded from noisy vectors, and with which ε.

    The fewer numbers a vector has, the larger each is compared with the noise, and the less they can say. About 2.4√ε
    numbers follow what was measured at ε = 100 on ATIS and SNIPS (docs/systems/adept.md); elsewhere it is a guess.

    >>> TrainingRecipe.at(100).latent, TrainingRecipe.at(0) == TrainingRecipe()
    (24, True)
    """

    latent: int = 64
    hidden: int = 192
    noisy: float = NOISY
    epsilons: tuple[float, float] = EPSILONS
    replaced: float = REPLACED
    told: float = 0.0

    @staticmethod
    def at(epsilon: float) -> TrainingRecipe:
        """The recipe for texts that are released at a true ε; the general one if it is 0."""
        if epsilon == 0:
            return TrainingRecipe()
        latent = round(min(64.0, max(8.0, 2.4 * math.sqrt(epsilon))))
        return TrainingRecipe(latent, 320, 0.8, (0.4 * epsilon, 20 * epsilon), 0.05, TOLD)


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """How long and how fast to train, and for which ε (0 for no particular one).

    >>> EpochPlan(steps=100).rate(10) == EpochPlan().learning_rate
    True
    """

    steps: int = 1200
    batch: int = 64
    learning_rate: float = 2e-3
    seed: int = 0
    for_epsilon: float = 0.0

    def __post_init__(self) -> None:
        for name, low, high in (("steps", 1, 10**7), ("batch", 1, 10**5), ("seed", 0, 2**63)):
            given = getattr(self, name)
            if not isinstance(given, int) or not low <= given <= high:
                raise InputError(f"{name} must be a whole number from {low} to {high}, got {given!r}")
        if not 0 < self.learning_rate <= 1:
            raise InputError(f"the learning rate must lie between 0 and 1, got {self.learning_rate}")
        if self.for_epsilon != 0 and not 1 <= self.for_epsilon <= 1e4:
            raise InputError(f"an autoencoder is trained for an epsilon from 1 to 10,000, got {self.for_epsilon:g}")

    def rate(self, step: int) -> float:
        """The learning rate of a step: it rises for a tenth of the steps and falls along a cosine to zero."""
        warm = max(1, int(WARM_UP * self.steps))
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, self.steps - warm)))


def _on_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def usable(device: str, say: Callable[[str], None] = _on_stderr) -> torch.device:
    """A device by its name; the CPU, and a sentence that says so, where torch has no CUDA device.

    >>> usable("cpu")
    device(type='cpu')
    >>> usable("abacus")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: unknown device 'abacus'; there are cpu and cuda
    """
    if device not in DEVICES:
        raise InputError(f"unknown device {device!r}; there are cpu and cuda")
    if device == "cuda" and not torch.cuda.is_available():
        say("there is no CUDA device that torch can use here: working on the CPU")
        device = "cpu"
    return torch.device(device)


class Learner:
    """A network being trained, with its step, its optimizer and its latest measurements.

    With labels, if the recipe asks for it, a linear layer learns to name them from the noisy vectors. It is only used
    in training: it makes the encoder spend a part of its vectors on what the label depends on.
    """

    def __init__(
        self,
        network: Autoencoder,
        words: ModelVocabulary,
        texts: Sequence[str],
        held_out: Sequence[str],
        plan: EpochPlan,
        labels: Sequence[str] = (),
        recipe: TrainingRecipe | None = None,
    ) -> None:
        self.network, self.plan, self.step = network.train(), plan, 0
        self.recipe = TrainingRecipe.at(plan.for_epsilon) if recipe is None else recipe
        longest = network.shape.longest
        self.numbers = words.numbers(texts, longest)
        self.held_out = words.numbers(list(held_out)[:HELD_OUT], longest)
        counts = np.bincount(self.numbers.ravel(), minlength=len(words)).astype(float)
        counts[:SPECIAL] = 0
        self.likely = np.cumsum(np.sqrt(counts) / np.sqrt(counts).sum())
        self.labels, self.teller = self._teller(labels)
        self.named = dict(self.network.named_parameters())
        self.named |= {f"{TELLER}.{name}": one for name, one in self.teller.named_parameters()} if self.teller else {}
        self.optimiser = torch.optim.Adam(self.named.values(), lr=plan.learning_rate)
        self.losses = torch.zeros(2, device=network.device)
        self.loss: float | None = None
        self.accuracy: float | None = None

    def learn(self) -> None:
        rng = np.random.default_rng([self.plan.seed, 1, self.step])
        batch, labels = self._batch()
        hidden = rng.random(batch.shape) < UNSEEN
        target = torch.from_numpy(batch).to(self.network.device)
        before = shifted(target)
        before[torch.from_numpy(hidden).to(before.device) & (before >= SPECIAL)] = UNKNOWN
        vectors = self.network.encode(target)
        given = self._as_in_use(vectors, rng)
        loss = cross_entropy(self.network.logits(given, before).transpose(1, 2), target, ignore_index=PAD)
        total = loss + SPREAD * likeness(vectors)
        if self.teller is not None and (labels >= 0).any():
            told = self.teller(self.network.seen(given))
            labels_here = torch.from_numpy(labels).to(told.device)
            total = total + self.recipe.told * cross_entropy(told, labels_here, ignore_index=-1)
        take_step(self.optimiser, total, self.named.values(), self.plan.rate(self.step))
        self.losses += torch.stack([loss.detach(), torch.ones_like(loss)])
        self.step += 1

    def _as_in_use(self, vectors: Tensor, rng: np.random.Generator) -> Tensor:
        """Vectors clipped in l1 and scaled back, some with Laplace noise."""
        rows, dim = vectors.shape
        clip = self.network.shape.clip
        low, high = np.log(self.recipe.epsilons)
        epsilon = np.exp(rng.uniform(low, high, (rows, 1)))
        noise = rng.laplace(size=(rows, dim)) * (2 * clip / epsilon) * (rng.random((rows, 1)) < self.recipe.noisy)
        added = torch.from_numpy(noise.astype(np.float32)).to(vectors.device)
        bounded = vectors * (clip / vectors.abs().sum(dim=1, keepdim=True).clamp(min=clip))
        return torch.as_tensor((bounded + added) * dim**0.5)

    def _teller(self, labels: Sequence[str]) -> tuple[NDArray[np.int64], nn.Linear | None]:
        """The label of each text as a number, −1 for none, and the layer that learns to name them, if one is to."""
        names = sorted(set(labels) - {""})
        if not self.recipe.told or len(names) < 2:
            return np.full(len(self.numbers), -1), None
        place = {name: i for i, name in enumerate(names)}
        teller = nn.Linear(self.network.shape.latent, len(names)).to(self.network.device)
        nn.init.zeros_(teller.weight)  # nothing is drawn, so that a run begins the same each time
        nn.init.zeros_(teller.bias)
        return np.array([place.get(label, -1) for label in labels]), teller

    def _batch(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Texts of similar length, and their labels: several batches are made up together, sorted and dealt out."""
        group, place = divmod(self.step, TOGETHER)
        rng = np.random.default_rng([self.plan.seed, 0, group])
        many, own = made_up(self.numbers, TOGETHER * self.plan.batch, self.likely, rng, self.recipe.replaced)
        lengths = (many != PAD).sum(axis=1)
        order = np.argsort(lengths, kind="stable").reshape(TOGETHER, -1)[rng.permutation(TOGETHER)[place]]
        labels = np.where(own[order] < 0, -1, self.labels[own[order]])
        return np.ascontiguousarray(many[order, : lengths[order].max()]), labels

    def measure(self) -> None:
        """Measure the mean loss since the last measurement, and the token accuracy on held-out texts."""
        total, number = self.losses.tolist()
        self.losses.zero_()
        self.loss = total / number if number else self.loss
        if len(self.held_out):
            self.network.eval()
            self.accuracy = token_accuracy(self.network, self.held_out)
            self.network.train()

    def note(self) -> str:
        """The latest measurements, for a progress bar."""
        loss = "" if self.loss is None else f"loss {self.loss:.2f}"
        return loss if self.accuracy is None else f"{loss}, {self.accuracy:.0%} of the tokens"

    def moments(self) -> dict[str, NDArray[Any]]:
        """The state of the optimizer, and the layer for labels, needed to resume from here."""
        layer = () if self.teller is None else self.teller.named_parameters()
        found = {f"{TELLER}:{name}": one.detach().cpu().numpy() for name, one in layer}
        for name, parameter in self.named.items():
            for moment in MOMENTS:
                found[f"{moment}:{name}"] = self.optimiser.state[parameter][moment].detach().cpu().numpy()
        return found

    def resume(self, step: int, moments: Mapping[str, NDArray[Any]] | None) -> None:
        """Go on after a step; None for a finished run, which has no moments any more and begins with new ones."""
        self.step = step
        if self.teller is not None and moments is not None:
            for name, one in self.teller.named_parameters():
                one.data.copy_(torch.from_numpy(np.array(moments[f"{TELLER}:{name}"])))
        for name, parameter in self.named.items():
            if moments is None:
                zeros = {moment: torch.zeros_like(parameter) for moment in MOMENTS}
                self.optimiser.state[parameter] = {"step": torch.tensor(0.0), **zeros}
                continue
            kept = {m: torch.from_numpy(np.array(moments[f"{m}:{name}"])).to(parameter.device) for m in MOMENTS}
            self.optimiser.state[parameter] = {"step": torch.tensor(float(step)), **kept}


def take_step(optimiser: torch.optim.Adam, loss: Tensor, parameters: Iterable[nn.Parameter], rate: float) -> None:
    """One step of gradient descent, with gradients clipped to norm 1."""
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    clip_grad_norm_(parameters, 1.0)
    optimiser.step()


def made_up(
    numbers: NDArray[np.int64],
    size: int,
    likely: NDArray[np.float64],
    rng: np.random.Generator,
    replaced_share: float = REPLACED,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A batch of texts, many with the end of another text or with some words replaced.

    With it comes which text each of them is, −1 if its end is another's.
    """
    wide = numbers.shape[1]
    own, other = rng.integers(0, len(numbers), size), rng.integers(0, len(numbers), size)
    lengths = (numbers != PAD).sum(axis=1)
    kept = (rng.random(size) * lengths[own]).astype(int)[:, None]
    begin = (rng.random(size) * lengths[other]).astype(int)[:, None]
    place = np.arange(wide)
    source = place - kept + begin
    tail = np.where(source < wide, np.take_along_axis(numbers[other], source.clip(0, wide - 1), axis=1), PAD)
    joined = np.where(place < kept, numbers[own], tail)
    spliced = (rng.random(size) < SPLICED) & ((joined == END).sum(axis=1) == 1)
    batch = np.where(spliced[:, None], joined, numbers[own])
    replaced = (rng.random(batch.shape) < 2 * replaced_share * rng.random((size, 1))) & (batch >= SPECIAL)
    words = np.searchsorted(likely, rng.random(int(replaced.sum())), side="right")
    batch[replaced] = np.minimum(words, len(likely) - 1)
    return batch, np.where(spliced, -1, own)


def likeness(vectors: Tensor) -> Tensor:
    """The mean squared cosine between two different vectors of a batch.

    >>> likeness(torch.tensor([[2.0, 0.0], [0.0, 1.0]])), likeness(torch.tensor([[2.0, 0.0], [1.0, 0.0]]))
    (tensor(0.), tensor(1.))
    """
    units = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-9)
    number = len(units)
    return torch.as_tensor(((units @ units.T).square().sum() - number) / max(1, number * (number - 1)))


def token_accuracy(network: Autoencoder, numbers: NDArray[np.int64]) -> float:
    """The share of words reproduced at their own position, without noise."""
    written = network.rows(network.vectors(numbers))
    words = np.isin(numbers, (PAD, END), invert=True)
    wide = min(numbers.shape[1], written.shape[1])
    same = (written[:, :wide] == numbers[:, :wide]) & words[:, :wide]
    return float(same.sum() / max(1, words.sum()))


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is noted and the current step finished first; a second Ctrl-C ends at once."""
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted.is_set
        return

    def note(signal_number: int, frame: Any) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted.is_set
    finally:
        signal.signal(signal.SIGINT, before)
