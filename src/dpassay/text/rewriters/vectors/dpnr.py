"""DPNR as it was published, with a real encoder: drop words, encode, normalize, add noise to each element.

The published noise is Laplace noise of scale 1/ε, or, with a δ, Gaussian noise by the classic formula for one element.
One word changes all k elements, so ε-DP needs Laplace noise of scale k/ε: `Dpnr.scaled`. The claims dpnr, dpnr-dropout
and dpnr-gaussian in the registry state what is claimed and what is true.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpassay.audit.options import Progress
from dpassay.core.guarantee import make_guarantee
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import ONE, Number, middle, number, sqrt, up
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.calibrate import classic_gaussian_sigma, gaussian
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pipeline import Pipeline, run
from dpassay.pipeline.regions import check_positive
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.bounds.scaling import MinMaxScale
from dpassay.pipeline.stages.dropout import Dropout
from dpassay.pipeline.stages.functions import Encode
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.classifier import Classifier, fit
from dpassay.text.models.encoders import MINILM, Encoder, SentenceEncoder, sentence_encoder
from dpassay.text.models.folder import MODEL, WEIGHTS, About, Arrays, read_folder, write_folder
from dpassay.text.rewriters.base import DOUBLES, TextGuarantee
from dpassay.text.rewriters.vectors.encoded import EncodedText

NOT_COVERED = (
    "the training texts and their labels, whose names the folder lists; a guarantee for one text's vector holds for "
    "any weights, but these depend on them"
)
HELD_OUT = 0.2  # of the utterances are used to measure accuracy

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Dpnr(EncodedText):
    """Drop each word with probability `mu`, encode, and add Laplace noise of scale 1/ε, or `scale`, to each element.

    With a `delta` above 0 the noise is Gaussian, and its standard deviation is `scale`, or that of the classic formula
    for one element. Without dropout its exact distribution is known; with it, the distribution is a mixture over
    subsets of words.

    >>> class Letters:
    ...     name, dim = "letters", 3
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=float)
    >>> system = Dpnr(Letters(), epsilon=0.05, mu=0)
    >>> print(system.pipeline)
    encode | minmax | laplace(20)
    >>> system.sample("a cab", 5, np.random.default_rng(0)).shape, system.distribution("a cab").centre.tolist()
    ((5, 3), [1.0, 0.0, 0.0])
    >>> print(system.scaled().pipeline)
    encode | minmax | laplace(60)
    """

    mu: float = 0.5
    scale: float | None = None
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon, dropout = check_positive(self.epsilon, "epsilon"), Dropout(number(self.mu))
        guarantee = make_guarantee(epsilon, self.delta)
        object.__setattr__(self, "delta", guarantee.delta)
        published = classic_gaussian_sigma(guarantee, ONE) if self.delta else 1 / epsilon
        scale = published if self.scale is None else check_positive(self.scale, "the noise's scale")
        object.__setattr__(self, "epsilon", middle(epsilon))
        object.__setattr__(self, "mu", middle(dropout.mu))
        object.__setattr__(self, "scale", None if self.scale is None else middle(scale))
        stages: list[Stage] = [dropout] if self.mu else []
        stages += [Encode(self.dim, self.encoder.encode), MinMaxScale(), Additive(self._noise(scale))]
        object.__setattr__(self, "pipeline", Pipeline(tuple(stages), self.dim))

    def _noise(self, scale: Number) -> Laplace | Gaussian:
        return Gaussian(scale) if self.delta else Laplace(scale)

    @property
    def guarantee(self) -> TextGuarantee:
        """What holds between any two texts, for any encoder. Dropped words are no help: none may have been dropped.

        >>> class Letters:
        ...     name, dim = "letters", 3
        ...     def encode(self, texts):
        ...         return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=float)
        >>> print(Dpnr(Letters(), epsilon=4).guarantee)
        as published, epsilon 12 (claimed: 4) for any two texts (local DP)
        """
        profile = analyse(Pipeline(self.pipeline.stages[bool(self.mu) :], self.dim), Neighbours())
        claimed, delta = number(repr(self.epsilon)), number(repr(self.delta))
        enough = up(profile.delta(claimed)) <= self.delta
        noise = Theorem.GAUSSIAN if self.delta else Theorem.LAPLACE
        return TextGuarantee(
            self.epsilon if enough and self.scale is not None else up(profile.epsilon(delta)),
            self.delta,
            claimed=self.epsilon,
            proofs=tuple(theorem.page for theorem in (noise, *profile.theorems)),
            caveats=(NOT_COVERED, DOUBLES),
            as_published=self.scale is None,
        )

    def scaled(self) -> Dpnr:
        """The same with noise of scale k/ε, or the least σ for l2 distance √k: enough for all k, never rounded down."""
        if self.delta:
            return replace(self, scale=gaussian(self.epsilon, self.delta, sqrt(self.dim)))
        exact = self.dim / Fraction(repr(self.epsilon))
        scale = float(exact)
        return replace(self, scale=scale if Fraction(repr(scale)) >= exact else math.nextafter(scale, math.inf))


def distinguisher(system: Dpnr, first: str, second: str, draws: int = 256) -> Callable[[Sequence[Any]], Floats]:
    """A distinguisher of two texts that knows the system: the log-likelihood ratio of the second against the first.

    Dropout makes the distribution a mixture over subsets of words. Some subsets are drawn here, the same for both
    texts. Their vectors and the noise are known, so nothing has to be learned from noisy outputs.

    >>> class Letters:
    ...     name, dim = "letters", 3
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=float)
    >>> score = distinguisher(Dpnr(Letters(), epsilon=1), "to a", "to b")
    >>> (score([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) > 0).tolist()
    [False, True]
    """
    sides = [log_likelihood(system, text, draws) for text in (first, second)]
    return lambda outputs: np.asarray(sides[1](outputs) - sides[0](outputs))


def log_likelihood(system: Dpnr, text: str, draws: int = 256) -> Callable[[Sequence[Any]], Floats]:
    """The log-likelihood of noisy vectors for a text, averaged over drawn subsets of its words, up to a constant."""
    *before, noise = system.pipeline.stages
    assert isinstance(noise, Additive)
    vectors, counts = np.unique(run(before, [text] * draws, np.random.default_rng(0)), axis=0, return_counts=True)

    def of_outputs(outputs: Sequence[Any]) -> Floats:
        rows = np.asarray(outputs, dtype=float)
        each = [noise.distribution(v).log_likelihood(rows) + math.log(c) for v, c in zip(vectors, counts, strict=True)]
        return np.asarray(np.logaddexp.reduce(each))

    return of_outputs


def train(
    utterances: Sequence[Utterance],
    encoder: Encoder,
    epsilon: float,
    mu: float = 0.5,
    seed: int = 0,
    progress: Progress | None = None,
    fine_tune: int = 0,
    delta: float = 0.0,
    published: bool = True,
) -> tuple[Dpnr, Classifier, dict[str, Any]]:
    """The system, its classifier, fitted to noisy vectors, and its accuracies on held-out texts.

    Without `published` the noise is what the ε needs: k times as large.

    The report has the accuracy on clean vectors, with the published noise, with correct noise for the same ε, and of
    always predicting the most common label. Noise is drawn once per text; drawn afresh in each of T training steps it
    would cost T times as much. With `fine_tune`, the encoder is first trained for that many steps, with fresh noise.
    The guarantee for a vector holds for any encoder; it does not cover the training texts.
    """
    if not 0 <= fine_tune <= 10**6:
        raise InputError(f"fine-tuning takes a whole number of steps from 0 to 1000000, got {fine_tune}")
    system = Dpnr(encoder, epsilon, mu, delta=delta)
    system = system if published else system.scaled()
    texts, labels = [u.text for u in utterances], [u.label for u in utterances]
    if len(texts) < 5 or not all(labels):
        raise InputError(f"a classifier needs 5 utterances or more, each with a label; got {len(texts)}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))
    cut = len(texts) - max(1, int(HELD_OUT * len(texts)))
    show = progress or (lambda done, total, note: None)
    if fine_tune:
        system = replace(
            system, encoder=_tuned(system, [utterances[i] for i in order[:cut]], fine_tune, seed, progress)
        )

    *before, _ = system.pipeline.stages
    show(0, 5, "encoding")
    clean = run([stage for stage in before if not isinstance(stage, Dropout)], texts, rng)
    show(1, 5, "encoding after dropout")
    dropped = run(before, texts, rng)
    ways = {
        "clean vectors": clean,
        "published noise": replace(system, scale=None).pipeline.stages[-1].run(dropped, rng),
        "right noise": system.scaled().pipeline.stages[-1].run(dropped, rng),
    }
    seen, asked = [labels[i] for i in order[:cut]], [labels[i] for i in order[cut:]]
    report: dict[str, Any] = {"texts": len(seen), "held_out": len(asked), "labels": len(set(seen))}
    fitted = {}
    for step, (way, vectors) in enumerate(ways.items(), start=2):
        show(step, 5, f"fitting a classifier: {way}")
        fitted[way] = fit(vectors[order[:cut]], seen, seed)
        report[f"accuracy_{way.replace(' ', '_')}"] = fitted[way].accuracy(vectors[order[cut:]], asked)
    report["fine_tuning_steps"] = fine_tune
    report["accuracy_commonest_label"] = asked.count(Counter(seen).most_common(1)[0][0]) / len(asked)
    report["guarantee"] = system.guarantee.to_dict()
    show(5, 5, "done")
    return system, fitted["published noise" if published else "right noise"], report


def _tuned(
    system: Dpnr, utterances: Sequence[Utterance], steps: int, seed: int, progress: Progress | None
) -> SentenceEncoder:
    from dpassay.text.models.fine_tuning import fine_tuned

    noise = system.pipeline.stages[-1]
    assert isinstance(noise, Additive)
    texts, labels = [u.text for u in utterances], [u.label for u in utterances]
    return fine_tuned(
        system.encoder, texts, labels, mu=system.mu, noise=noise.noise, steps=steps, seed=seed, progress=progress
    )


class _DPNRFields(About):
    """What model.json states."""

    system: Literal["dpnr"] = "dpnr"
    encoder: str = Field(min_length=1, max_length=4096)
    epsilon: float = Field(gt=0)
    mu: float = Field(ge=0, lt=1)
    scale: float | None = Field(gt=0)
    delta: float = Field(default=0.0, ge=0, lt=1)
    dim: int = Field(ge=1, le=10**6)
    labels: list[str] = Field(min_length=1, max_length=10**5)
    fine_tuned: bool = False  # if so, the encoder's weights are stored too


def save(system: Dpnr, classifier: Classifier, folder: str | Path, fine_tuned: bool = False) -> None:
    """Write the system and its classifier to a new folder: model.json and weights.safetensors.

    The weights of a fine-tuned encoder are written with the classifier's.
    """
    if classifier.width != system.dim:
        raise InputError(f"the classifier takes {classifier.width} elements, the encoder gives {system.dim}")
    name, place = system.encoder.name, Path(system.encoder.name).expanduser()
    about = _DPNRFields(
        encoder=str(place.resolve()) if name != MINILM and place.is_dir() else name,
        epsilon=system.epsilon,
        mu=system.mu,
        scale=system.scale,
        delta=system.delta,
        dim=system.dim,
        labels=list(classifier.labels),
        fine_tuned=fine_tuned,
    )
    arrays: Arrays = dict(classifier.to_arrays())
    if fine_tuned:
        from dpassay.text.models.fine_tuning import to_arrays

        arrays |= to_arrays(system.encoder)
    write_folder(Path(folder), about, arrays)


def load(folder: str | Path, encoder: Encoder | None = None) -> tuple[Dpnr, Classifier]:
    """Read what `save` wrote, executing nothing. The encoder that it names is loaded, unless one is given.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: no/such/folder/model.json cannot be read: No such file or directory; ...
    """
    about, arrays = read_folder(Path(folder), _DPNRFields)
    try:
        classifier = Classifier.from_arrays(arrays, about.labels)
    except InputError as error:
        raise InputError(f"{Path(folder, WEIGHTS)} is not a classifier: {error}; train it again") from None
    if classifier.width != about.dim:
        raise InputError(
            f"{Path(folder, WEIGHTS)} takes {classifier.width} elements, {MODEL} says {about.dim}; train it again"
        )
    found: Encoder = sentence_encoder(about.encoder) if encoder is None else encoder
    if found.dim != about.dim:
        raise InputError(
            f"{Path(folder, MODEL)} is for an encoder of {about.dim} elements, {found.name} gives {found.dim}; "
            f"give the one it was trained with, {about.encoder}"
        )
    if about.fine_tuned:
        from dpassay.text.models.fine_tuning import with_arrays

        found = with_arrays(found, arrays, Path(folder, WEIGHTS))
    return Dpnr(found, about.epsilon, about.mu, about.scale, about.delta), classifier
