"""OME, LATENT and symmetric flips with a real encoder: numbers become bits, bits are redrawn, a classifier reads them.

Each number of a text's vector is written as a sign bit, `integer` bits and `fraction` bits. The probabilities of the
redrawn bits are those of the claims ome, latent-moue, latent-uer and binary-symmetric in the registry, which also state
what is true: OME and UER lose far more than their ε unless λ is 1, MOUE and symmetric flips do not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpassay.audit.options import Progress
from dpassay.claims.claim import Claim
from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY
from dpassay.core.numbers import middle
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import check_positive
from dpassay.pipeline.stages.functions import Encode
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.classifier import Classifier, fit
from dpassay.text.models.encoders import MINILM, Encoder, sentence_encoder
from dpassay.text.models.folder import MODEL, WEIGHTS, About, read_folder, write_folder
from dpassay.text.rewriters.base import TextGuarantee
from dpassay.text.rewriters.vectors.dpnr import HELD_OUT, NOT_COVERED
from dpassay.text.rewriters.vectors.encoded import EncodedText

MechanismName = Literal["ome", "latent-moue", "latent-uer", "symmetric"]
CLAIMS: dict[str, str] = {
    "ome": "ome",
    "latent-moue": "latent-moue",
    "latent-uer": "latent-uer",
    "symmetric": "binary-symmetric",
}
STRENGTHS = {"ome": "L", "latent-moue": "a", "latent-uer": "a"}  # what the claims call λ of OME, α of LATENT
LEAST, LARGEST = 1e-6, 1e6  # epsilon and lambda: beyond, nothing is left of a bit, or of its noise
PROOFS = (Theorem.RANDOMIZED_RESPONSE.page,)

Floats = NDArray[np.float64]


def mechanism_of(name: str) -> MechanismName:
    """A mechanism by its name.

    >>> mechanism_of("oem")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: mechanism must be ome, latent-moue, latent-uer or symmetric, got 'oem'
    """
    for known in get_args(MechanismName):
        if name == known:
            return known  # type: ignore[no-any-return]
    *most, last = CLAIMS
    raise InputError(f"mechanism must be {', '.join(most)} or {last}, got {name!r:.40}")


@dataclass(frozen=True, slots=True)
class BinaryText(EncodedText):
    """Encode a text, multiply by `factor`, write each number in bits, and redraw every bit.

    >>> class Letters:
    ...     name, dim = "letters", 2
    ...     def encode(self, texts):
    ...         return np.array([[text.count(letter) for letter in "ab"] for text in texts], dtype=float)
    >>> system = BinaryText(Letters(), epsilon=4, integer=2, fraction=1)
    >>> system.bits, system.sample("a b a", 3, np.random.default_rng(0)).shape
    (8, (3, 8))
    >>> print(system.guarantee)
    epsilon 4 for any two texts (local DP)
    >>> print(BinaryText(Letters(), 4, "ome", integer=2, fraction=1).guarantee)
    as published, epsilon 55.2223 (claimed: 4) for any two texts (local DP)
    """

    mechanism: MechanismName = "symmetric"
    integer: int = 4
    fraction: int = 5
    strength: float = 100.0
    factor: float = 1.0

    def __post_init__(self) -> None:
        mechanism_of(self.mechanism)
        object.__setattr__(self, "epsilon", middle(check_positive(self.epsilon, "epsilon")))
        for name, what in (("strength", "lambda"), ("factor", "the factor")):
            object.__setattr__(self, name, middle(check_positive(getattr(self, name), what)))
        for name, value in (("epsilon", self.epsilon), ("lambda", self.strength)):
            if not LEAST <= value <= LARGEST:
                raise InputError(f"{name} must be a number from {LEAST:g} to {LARGEST:,.0f}, got {value:g}")
        _, *coding = self.claim.mechanism.stages
        encode = Encode(self.dim, lambda texts: self.factor * self.encoder.encode(texts))
        object.__setattr__(self, "pipeline", Pipeline((encode, *coding), self.dim))

    @property
    def bits(self) -> int:
        """How many bits a text becomes."""
        return self.dim * (1 + self.integer + self.fraction)

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of its claim in the registry."""
        given = {"dim": self.dim, "epsilon": repr(self.epsilon), "m": self.integer, "n": self.fraction}
        named = STRENGTHS.get(self.mechanism)
        return given | ({} if named is None else {named: repr(self.strength)})

    @property
    def claim(self) -> Claim:
        return REGISTRY[CLAIMS[self.mechanism]](**self.parameters)

    @property
    def guarantee(self) -> TextGuarantee:
        """What holds between any two texts, for any encoder: the sum of the bits' losses."""
        holds, true = _judged(CLAIMS[self.mechanism], tuple(self.parameters.items()))
        return TextGuarantee(true, claimed=self.epsilon, caveats=(NOT_COVERED,), as_published=not holds, proofs=PROOFS)

    def symmetric(self, epsilon: float) -> BinaryText:
        """Symmetric flips of the same bits at an ε: the right mechanism."""
        return replace(self, mechanism="symmetric", epsilon=epsilon)


@lru_cache(maxsize=64)
def _judged(name: str, parameters: tuple[tuple[str, Any], ...]) -> tuple[bool, float]:
    """Whether a claim holds with these parameters, and the true ε, rounded up."""
    given = dict(parameters)
    try:
        word, true, _ = quick_check(REGISTRY[name](**given))
    except InputError:
        raise
    except (ArithmeticError, LookupError, ValueError):
        word, true = "open", None
    if true is None or (word == "open" and math.isinf(true.upper)):
        raise InputError(f"no bound on the true epsilon is known at epsilon {given['epsilon']}: choose a smaller one")
    return word == "proven", true.upper


def train(
    utterances: Sequence[Utterance], system: BinaryText, seed: int = 0, progress: Progress | None = None
) -> tuple[Classifier, dict[str, Any]]:
    """A classifier fitted to redrawn bits, and accuracies on held-out texts, whose bits are redrawn too.

    The report has the accuracy on the encoder's numbers, on their bits, on the redrawn bits, on bits that are flipped
    symmetrically at the claimed ε and at the ε that is true of the mechanism, and of always predicting the most common
    label. Bits are redrawn once per text.
    """
    texts, labels = [u.text for u in utterances], [u.label for u in utterances]
    if len(texts) < 5 or not all(labels):
        raise InputError(f"a classifier needs 5 utterances or more, each with a label; got {len(texts)}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))
    cut = len(texts) - max(1, int(HELD_OUT * len(texts)))
    show = progress or (lambda done, total, note: None)
    held = system.guarantee
    ways = _ways(system, texts, held, rng, show)
    seen, asked = [labels[i] for i in order[:cut]], [labels[i] for i in order[cut:]]
    report: dict[str, Any] = {"texts": len(seen), "held_out": len(asked), "labels": len(set(seen)), "bits": system.bits}
    report |= {"epsilon_claimed": held.stated, "epsilon_true": held.epsilon, "guarantee": held.to_dict()}
    fitted = {}
    for step, (way, rows) in enumerate(ways.items(), start=1):
        show(step, len(ways) + 1, f"fitting a classifier: {way}")
        fitted[way] = fit(rows[order[:cut]], seen, seed)
        report[f"accuracy_{way.replace(' ', '_')}"] = fitted[way].accuracy(rows[order[cut:]], asked)
    report["accuracy_commonest_label"] = asked.count(Counter(seen).most_common(1)[0][0]) / len(asked)
    show(len(ways) + 1, len(ways) + 1, "done")
    return fitted["redrawn bits"], report


def _ways(
    system: BinaryText, texts: Sequence[str], held: TextGuarantee, rng: np.random.Generator, show: Progress
) -> dict[str, Floats]:
    """What classifiers are fitted to."""
    show(0, 6, "encoding")
    encode, binary, redraw = system.pipeline.stages
    vectors = encode.run(list(texts), rng)
    bits = binary.run(vectors, rng)
    ways = {"vectors": vectors, "bits": bits, "redrawn bits": redraw.run(bits, rng)}
    if system.mechanism != "symmetric":
        ways["symmetric at claimed epsilon"] = system.symmetric(held.stated).pipeline.stages[-1].run(bits, rng)
    if not math.isclose(held.epsilon, held.stated, rel_tol=1e-9):
        ways["symmetric at true epsilon"] = system.symmetric(held.epsilon).pipeline.stages[-1].run(bits, rng)
    return ways


class _BinaryFields(About):
    """What model.json states."""

    system: Literal["binary"] = "binary"
    encoder: str = Field(min_length=1, max_length=4096)
    epsilon: float = Field(gt=0)
    mechanism: MechanismName
    integer: int = Field(ge=0, le=30)
    fraction: int = Field(ge=0, le=30)
    strength: float = Field(gt=0)
    factor: float = Field(gt=0)
    dim: int = Field(ge=1, le=10**6)
    labels: list[str] = Field(min_length=1, max_length=10**5)
    true_epsilon: float = Field(ge=0)  # of the bits of one text


def save(system: BinaryText, classifier: Classifier, folder: str | Path) -> None:
    """Write the system and its classifier to a new folder: model.json and weights.safetensors."""
    if classifier.width != system.bits:
        raise InputError(f"the classifier takes {classifier.width} bits, the system gives {system.bits}")
    name, place = system.encoder.name, Path(system.encoder.name).expanduser()
    about = _BinaryFields(
        encoder=str(place.resolve()) if name != MINILM and place.is_dir() else name,
        epsilon=system.epsilon,
        mechanism=system.mechanism,
        integer=system.integer,
        fraction=system.fraction,
        strength=system.strength,
        factor=system.factor,
        dim=system.dim,
        labels=list(classifier.labels),
        true_epsilon=system.guarantee.epsilon,
    )
    write_folder(Path(folder), about, dict(classifier.to_arrays()))


def load(folder: str | Path, encoder: Encoder | None = None) -> tuple[BinaryText, Classifier]:
    """Read what `save` wrote, executing nothing. The encoder that it names is loaded, unless one is given.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: no/such/folder/model.json cannot be read: No such file or directory; ...
    """
    about, arrays = read_folder(Path(folder), _BinaryFields)
    try:
        classifier = Classifier.from_arrays(arrays, about.labels)
    except InputError as error:
        raise InputError(f"{Path(folder, WEIGHTS)} is not a classifier: {error}; train it again") from None
    found: Encoder = sentence_encoder(about.encoder) if encoder is None else encoder
    if found.dim != about.dim:
        raise InputError(
            f"{Path(folder, MODEL)} is for an encoder of {about.dim} elements, {found.name} gives {found.dim}; "
            f"give the one it was trained with, {about.encoder}"
        )
    numbers = about.integer, about.fraction, about.strength, about.factor
    system = BinaryText(found, about.epsilon, about.mechanism, *numbers)
    if classifier.width != system.bits:
        raise InputError(
            f"{Path(folder, WEIGHTS)} takes {classifier.width} bits, {MODEL} says {system.bits}; train it again"
        )
    return system, classifier
