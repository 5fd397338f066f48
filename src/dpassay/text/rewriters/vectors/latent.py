"""ADePT and its corrected variants: a text becomes a vector, the vector gets noise, and a text is decoded from it.

Whatever a line contains, its rewritten form depends only on the noisy vector: an empty line, a line of ten thousand
words and a line of unknown words are each one text, covered by the guarantee like any other. Only the first words
of a long line are read; the model treats all unknown words as the same word, and never writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.threads import torch_in_threads
from dpassay.errors import InputError
from dpassay.evidence.verdict import Verdict
from dpassay.text.models.autoencoder import APART, BATCH
from dpassay.text.rewriters.base import DOUBLES, PREDICTABLE, WEIGHTS, TextGuarantee, WeightsGuarantee
from dpassay.text.rewriters.vectors.adept import TrainedAutoencoder, load
from dpassay.text.rewriters.vectors.release import MECHANISMS, Release

DELTA = 1e-6  # of Gaussian noise, if none is given
UNITS = {"example": "text", "user": "author"}  # that training with privacy hides


def adept(
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    model: str,
    mechanism: str = "gaussian",
    device: str = "cpu",
) -> "LatentRewriter | Unprotected":
    """The rewriter from a trained model's folder; δ is 10⁻⁶ for Gaussian noise if none is given.

    The mechanisms are gaussian, l1, sqrt-n, k-norm, vmf, adept-as-published, and none: the autoencoder without noise.
    """
    if mechanism == "none":
        return Unprotected(_model(model, device))
    if mechanism not in MECHANISMS:
        Release(mechanism, 1.0)  # its error lists the mechanisms
    if epsilon is None:
        raise InputError("specify the epsilon for the output: --epsilon 50")
    if mechanism == "gaussian":
        delta = DELTA if delta is None else delta
    trained = _model(model, device)
    about, given = trained.about, 0.0 if delta is None else delta
    return LatentRewriter(trained, Release(mechanism, epsilon, given, about.latent, about.clip))


_model = lru_cache(maxsize=4)(load)


@dataclass(frozen=True, eq=False)
class _Autoencoder:
    model: TrainedAutoencoder
    independent_rows: ClassVar[bool] = True  # each vector has its own noise

    def describe(self) -> dict[str, str]:
        return {"kind": "model", "type": "rewriter, none", "mechanism": "none", "sha256": self.model.about.sha256}

    def statement(self) -> dict[str, Any]:
        """What it is made of, ready for JSON."""
        about = self.model.about
        facts = {"system": about.system, "sha256": about.sha256, "latent": about.latent, "longest": about.longest}
        return {"mechanism": "none", "model": facts}


@dataclass(frozen=True, eq=False)
class Unprotected(_Autoencoder):
    """The autoencoder without noise, to show what it loses by itself: no privacy at all."""

    guarantee = TextGuarantee(float("inf"), outside="nothing is random")

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator | None = None) -> list[str]:
        """What the decoder writes for each text's vector."""
        on_cpu = self.model.network.device.type == "cpu"
        return torch_in_threads(self._written, texts, BATCH) if on_cpu else self._written(texts)

    def _written(self, texts: Sequence[str]) -> list[str]:
        return self.model.texts(self.model.vectors(texts))

    def release(self, texts: Sequence[str]) -> list[str]:
        """The same: there is nothing to draw."""
        return self.rewrite(texts)


@dataclass(frozen=True, eq=False)
class LatentRewriter(_Autoencoder):
    """A trained autoencoder whose vectors get noise.

    `rewrite` draws numpy's noise, for audits and measurements; `release` draws noise that may be published.
    """

    noise: Release

    def __post_init__(self) -> None:
        latent, clip = self.model.about.latent, self.model.about.clip
        if self.noise.dim != latent:
            raise InputError(f"the model's vectors have {latent} coordinates, the noise has {self.noise.dim}")
        if self.noise.recipe.norm == 2 and self.noise.clip != clip:
            raise InputError(f"the model's vectors are clipped at {clip}, the mechanism clips at {self.noise.clip}")

    @property
    def dim(self) -> int:
        """How many coordinates a vector has."""
        return self.noise.dim

    @property
    def weights(self) -> WeightsGuarantee | None:
        """What holds for the weights, if they were trained with privacy, to the end, and with noise that is secret."""
        return self._weights()[0]

    def _weights(self) -> tuple[WeightsGuarantee | None, str]:
        """The same, or why they are not covered."""
        if (training := self.model.about.training) is None:
            return None, WEIGHTS
        stated = training.statement
        try:
            held, finished, unit = stated["guarantee"], stated["finished"], UNITS[stated["privacy"]]
            if not finished:
                return None, "the model's weights and words are not covered: its training is not finished"
            if held is None:
                return None, f"the model's weights and words are not covered: {stated['none_because']}"
            epsilon, delta = float(held["epsilon"]["upper"]), float(held["delta"])
            more = tuple(map(str, stated["theorems"])), tuple(map(str, stated["assumptions"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the model's statement of its training is damaged ({error!r}); train it again") from None
        return WeightsGuarantee(epsilon, delta, unit, *more), ""

    @property
    def guarantee(self) -> TextGuarantee:
        """Local DP: between any two texts."""
        noise, missing = self.noise, self._weights()[1]
        claimed = noise.epsilon if noise.true_epsilon > noise.epsilon else None
        return TextGuarantee(
            noise.true_epsilon,
            noise.delta,
            claimed=claimed,
            proofs=noise.proofs,
            caveats=(*((missing,) if missing else ()), *((DOUBLES, PREDICTABLE) if not noise.recipe.on_grid else ())),
            as_published=noise.mechanism == "adept-as-published",
        )

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each text, with numpy's noise. Few calls with many texts are faster than many with few."""
        different = dict.fromkeys(texts)
        if 2 * len(different) <= len(texts):  # an audit asks for many rewritings of a few texts
            encoded = {text: _vector(self.model, text) for text in different}
            vectors = np.concatenate([encoded[text] for text in texts])
        else:
            vectors = self.model.vectors(texts)
        return self.write(self.noise.sample(vectors, rng))

    def release(self, texts: Sequence[str]) -> list[str]:
        """One rewriting of each text that may be published; each depends on its own text alone.

        Each core rewrites some of the texts from beginning to end: the steps of one text are too short to be shared.
        """
        on_cpu = self.model.network.device.type == "cpu"
        return torch_in_threads(self._released, texts, APART) if on_cpu else self._released(texts)

    def _released(self, texts: Sequence[str]) -> list[str]:
        return self.write(self.noise.release(self.model.vectors_apart(texts)))

    def write(self, noisy: NDArray[np.float64]) -> list[str]:
        """What the model writes for noisy vectors. Only their direction matters, so their size is restored first."""
        return self.model.texts(noisy * self.stretch)

    @property
    def stretch(self) -> float:
        """The factor that restores the model's scale: vectors clipped in l1 are shorter than those the decoder saw."""
        return self.model.about.clip / self.noise.clip * (self.dim**0.5 if self.noise.recipe.norm == 1 else 1.0)

    def exact(self) -> Verdict:
        """The exact verdict on the claimed ε."""
        from dpassay.api import check

        noise = self.noise
        delta = repr(noise.delta) if noise.delta else None
        clip = {} if noise.mechanism == "vmf" else {"C": repr(noise.clip)}
        return check(noise.recipe.pipeline, dim=noise.dim, epsilon=repr(noise.epsilon), delta=delta, parameters=clip)

    def describe(self) -> dict[str, str]:
        """The model and its noise, for a saved audit."""
        noise = {name: str(getattr(self.noise, name)) for name in ("mechanism", "epsilon", "delta", "dim", "clip")}
        named = {"kind": "model", "type": f"rewriter, {self.noise.mechanism}"}
        return {**named, **noise, "sha256": self.model.about.sha256}

    def statement(self) -> dict[str, Any]:
        """What a release rests on, ready for JSON."""
        return {**super().statement(), **self.noise.statement()}


@lru_cache(maxsize=4096)
def _vector(model: TrainedAutoencoder, text: str) -> NDArray[np.float32]:
    return model.vectors([text])
