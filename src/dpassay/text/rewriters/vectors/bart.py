"""DP-BART (Igamberdiev and Habernal 2023): an encoder's output is clipped, gets Gaussian noise, and is decoded.

A text is truncated or padded to `longest` tokens, and the encoder gives d numbers per token, clipped to [−C, C]: two
texts are at most 2C√(longest·d) apart in l2. The noise is calibrated to that by the exact formula; the published
mechanism uses the classic one, which is proved only for ε below 1. The decoder reads the noisy numbers of all
positions, padded or not, and nothing else: decoding is post-processing, and the length of a text stays hidden.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.core.functions.normal import gaussian_delta, gaussian_epsilon_guess
from dpassay.core.guarantee import make_guarantee
from dpassay.core.numbers import Number, double_above, number, real, sqrt, up
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.calibrate import classic_gaussian_sigma, gaussian
from dpassay.text.models.language_models import ENCODER_DECODER, PromptedModel, Source, card_of, load
from dpassay.text.models.words import as_text
from dpassay.text.rewriters.base import PRETRAINED, TIMING, TextGuarantee
from dpassay.text.rewriters.tokens.drawing import real_setting, whole
from dpassay.text.rewriters.vectors.grid_noise import CubeNoise

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict

DELTA = 1e-5
PROOFS = (Theorem.GRID, Theorem.GAUSSIAN, Theorem.DIAMETERS, Theorem.POST_PROCESSING)


def make(
    epsilon: float,
    model: Source,
    delta: float = DELTA,
    clip: str = "0.1",
    longest: str = "20",
    tokens: str = "48",
    batch: str = "16",
    device: str = "cpu",
) -> NoisyStates:
    """DP-BART with the least Gaussian noise for (ε, δ), between any two texts.

    `model` is the folder of an encoder-decoder, its name on the hub, or in Python a `PromptedModel`. The first
    `longest` tokens of a text are read, and at most `tokens` are written.
    """
    return _made(epsilon, delta, model, False, clip, longest, tokens, batch, device)


def as_published(
    epsilon: float,
    model: Source,
    delta: float = DELTA,
    clip: str = "0.1",
    longest: str = "20",
    tokens: str = "48",
    batch: str = "16",
    device: str = "cpu",
) -> NoisyStates:
    """The same with the classic noise formula at any ε: the guarantee states the true ε and the claimed one."""
    return _made(epsilon, delta, model, True, clip, longest, tokens, batch, device)


def _made(
    epsilon: Any,
    delta: Any,
    model: Source,
    classic: bool,
    clip: Any,
    longest: Any,
    tokens: Any,
    batch: Any,
    device: str,
) -> NoisyStates:
    card = card_of(model).require(ENCODER_DECODER)
    if not card.width:
        raise InputError(f"the config of {card.name} does not say how many numbers its encoder gives (hidden_size)")
    chance = real_setting(delta, "delta", 1e-100, 0.999)
    read = whole(longest, "longest", 1, card.positions or 100_000)
    bound = real_setting(clip, "clip", 1e-6, 1e6)
    claimed = real_setting(epsilon, "epsilon", 1e-3, 1e5)
    sigma = _sigma(claimed, chance, bound, read * card.width, classic)
    return NoisyStates(
        model,
        claimed,
        chance,
        bound,
        read,
        sigma,
        classic,
        tokens=whole(tokens, "tokens", 1, 10_000),
        batch=whole(batch, "batch", 1, 10_000),
        device=device,
    )


@dataclass(frozen=True, eq=False)
class NoisyStates:
    """An encoder-decoder that rewrites a text from its encoder's noisy numbers."""

    source: Source
    claimed: float
    delta: float
    clip: float
    longest: int
    sigma: float
    classic: bool = False
    tokens: int = 48
    batch: int = 16
    device: str = "cpu"
    independent_rows: ClassVar[bool] = True  # each text has its own draws

    @property
    def dim(self) -> int:
        """How many numbers get noise."""
        return self.longest * card_of(self.source).width

    @property
    def guarantee(self) -> TextGuarantee:
        """(ε, δ) between any two texts; with the classic formula, the true ε as well as the claimed one."""
        true = self._true_epsilon if self.classic else self.claimed
        proofs = tuple(proof.page for proof in PROOFS)
        return TextGuarantee(
            true,
            self.delta,
            claimed=self.claimed,
            proofs=proofs,
            caveats=(PRETRAINED, TIMING),
            as_published=self.classic,
        )

    @cached_property
    def _true_epsilon(self) -> float:
        """The ε of released texts by OpenDP's map, which is above that of continuous noise; without OpenDP the latter.

        Without OpenDP nothing can be released, and `rewrite` draws continuous noise.
        """
        continuous = true_epsilon(self.clip, self.dim, self.sigma, self.delta)
        if find_spec("opendp") is None:
            return continuous
        return max(continuous, self.noise.kept(self.noise.scale))

    @cached_property
    def model(self) -> PromptedModel:
        """The model, loaded when it is first needed."""
        return load(self.source, self.device)

    def rewrite(self, texts: Sequence[str], rng: np.random.Generator) -> list[str]:
        """One rewriting of each text, with numpy's noise: for audits and simulations."""
        states = self.states(texts)
        return self.decoded(states + rng.normal(0.0, self.sigma, states.shape))

    def release(self, texts: Sequence[str]) -> list[str]:
        """The same with OpenDP's noise on a grid, one text at a time: no rounding affects the guarantee."""
        return [self.decoded(self.noise.release(self.states([text])))[0] for text in texts]

    @cached_property
    def noise(self) -> CubeNoise:
        """The noise of released texts."""
        return CubeNoise(self.clip, self.dim, self.sigma, self.delta, None if self.classic else self.claimed)

    def states(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The clipped numbers of each text, one row per text."""
        import torch

        from dpassay.text.models.generation import padded

        model, found = self.model, [np.empty((0, self.dim))]
        for start in range(0, len(texts), self.batch):
            group = [as_text(text, "a rewriter") for text in texts[start : start + self.batch]]
            read = [list(model.tokenizer(text)["input_ids"])[: self.longest] for text in group]
            table, mask = (part.to(model.device) for part in padded(read, model.pad, self.longest, left=False))
            with torch.inference_mode():
                given = model.network.get_encoder()(input_ids=table, attention_mask=mask).last_hidden_state
            kept = torch.where(mask[..., None] == 1, given.double().nan_to_num(), 0).clamp(-self.clip, self.clip)
            found.append(kept.reshape(len(group), -1).cpu().numpy())
        return np.concatenate(found)

    def decoded(self, noisy: NDArray[np.float64]) -> list[str]:
        """The text that the decoder writes for each row of noisy numbers: it sees nothing else."""
        import torch

        model, found = self.model, []
        outputs = _encoder_outputs()
        for start in range(0, len(noisy), self.batch):
            rows = torch.tensor(noisy[start : start + self.batch], dtype=torch.float32, device=model.device)
            states = rows.clamp(-1e30, 1e30).reshape(len(rows), self.longest, -1)
            with torch.inference_mode():
                written = model.network.generate(
                    encoder_outputs=outputs(last_hidden_state=states),
                    attention_mask=torch.ones(states.shape[:2], dtype=torch.long, device=model.device),
                    max_new_tokens=self.tokens,
                    do_sample=False,
                    num_beams=1,
                )
            texts = model.tokenizer.batch_decode(written, skip_special_tokens=True)
            found += [" ".join(text.split()) for text in texts]
        return found

    def exact(self) -> Verdict:
        """The verdict of `dpassay check` on the pipeline of clipping and noise."""
        from dpassay.api import check

        pipeline = f"encode | clamp({-self.clip!r}, {self.clip!r}) | gaussian({self.sigma!r}) | decode"
        return check(pipeline, epsilon=self.claimed, delta=self.delta, dim=self.dim)

    def statement(self) -> dict[str, Any]:
        """How a text is drawn, and what the guarantee rests on."""
        return {
            "mechanism": self._name,
            "drawn": self.noise.to_dict(),
            "clip": self.clip,
            "longest": self.longest,
            "model": {"name": self.model.card.name, "sha256": self.model.sha256},
        }

    def describe(self) -> dict[str, str]:
        """What identifies it."""
        shown = {name: str(getattr(self, name)) for name in ("claimed", "delta", "clip", "longest", "dim", "sigma")}
        return {"kind": "model", "type": f"rewriter, {self._name}", **shown, "sha256": self.model.sha256}

    @property
    def _name(self) -> str:
        return "dp-bart-as-published" if self.classic else "dp-bart"


def _encoder_outputs() -> Any:
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput


def _distance(clip: float, dim: int) -> Number:
    """The largest l2 distance between two vectors in the cube."""
    return 2 * number(clip) * sqrt(real(dim))


@lru_cache(maxsize=4096)
def _sigma(epsilon: float, delta: float, clip: float, dim: int, classic: bool) -> float:
    if classic:
        return double_above(classic_gaussian_sigma(make_guarantee(epsilon, delta), _distance(clip, dim)))
    return gaussian(epsilon, delta, _distance(clip, dim))


@lru_cache(maxsize=4096)
def true_epsilon(clip: float, dim: int, sigma: float, delta: float) -> float:
    """The smallest ε, rounded up, that Gaussian noise on the cube satisfies: found by search, confirmed by the exact δ.

    >>> round(true_epsilon(0.5, 1, 1.0, 1e-5), 6)
    4.377178
    """
    mu, target = _distance(clip, dim) / number(sigma), number(delta)
    guess = gaussian_epsilon_guess(target, mu)
    if guess is None:
        raise InputError(f"115 digits do not suffice for the loss of noise of {sigma:g}: give a smaller epsilon")
    found = max(0.0, up(guess))
    for doublings in range(60):
        if gaussian_delta(number(found), mu).b <= target.a:
            return found
        found += 2.0**doublings * math.ulp(max(found, 1e-300))
    raise InputError(f"115 digits do not suffice for the loss of noise of {sigma:g}: give a smaller epsilon")
