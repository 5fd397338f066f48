"""The settings of a training run: what the guarantee depends on, and how the model is trained."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError
from dpassay.training.federated import RoundPlan
from dpassay.training.randomness import check_source

CANARY_KINDS = ("updates", "sentences")


@dataclass(frozen=True)
class Latent:
    """The vectors of an autoencoder: how many numbers they have, and their clipping norm."""

    size: int = 64
    clip: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 10**4:
            raise InputError(f"latent must be a whole number from 1 to 10000, got {self.size}")
        if not 1e-10 <= self.clip <= 1e10:
            raise InputError(f"clip must be a number from 1e-10 to 1e10, got {self.clip}")


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
    vocabulary_from_corpus: bool = False
    seed: int = 0
    embedding: int = 64
    hidden: int = 64
    base: str = ""
    adapter: str = ""  # lora or lora:RANK: of a base model, only small matrices are trained
    at_once: int | None = None  # cells in memory together; the sum of a round does not depend on it
    autoencoder: Latent | None = None  # of ADePT; a language model is trained without
    canaries: int = 0
    canary_kind: str = "updates"
    plan: RoundPlan = field(default_factory=RoundPlan)

    def __post_init__(self) -> None:
        check_source(self.noise_source)
        if self.seed < 0:
            raise InputError(f"a seed must be a whole number, 0 or more, got {self.seed}")
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
        if (self.adapter or self.at_once is not None) and not self.base:
            raise InputError("--adapter and --at-once are for training from a base model: name it with --base")
        if self.at_once is not None and self.at_once < 1:
            raise InputError(f"at_once must be a whole number, 1 or more, got {self.at_once}")
        if self.autoencoder is not None and (self.base or self.privacy not in ("example", "user")):
            raise InputError(f"an autoencoder is trained with example or user privacy here, got {self.privacy!r}")

    @property
    def by_opacus(self) -> bool:
        """Whether Opacus computes the gradients of single sentences."""
        return self.privacy == "example" and not self.base and self.autoencoder is None

    @property
    def included(self) -> NDArray[np.bool_]:
        """Which canaries are in, each by its own coin."""
        return np.random.default_rng([self.seed, 13]).random(self.canaries) < 0.5
