"""Where the coins and the noise of private training come from. Each round has its own streams.

A resumed run therefore draws the same numbers. Only numpy and torch are needed, except for OpenDP's noise.
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpassay.errors import InputError
from dpassay.training.chacha import uniform_doubles

SOURCES = ("os", "torch", "opendp")
KEY_BYTES = 32
DRAWN = 2**24  # numbers at a time; eight of them need a block of ChaCha20
FINEST = 2**20  # steps of OpenDP's grid in a clipping radius

Floats = NDArray[np.float64]


class Randomness(Protocol):
    """Uniform numbers for coins and normal ones for noise."""

    name: str
    step: float | None  # of the grid on which sums must lie; None if they need not

    def uniform(self, round_: int, stream: int, size: int) -> Floats:
        """Numbers in [0, 1), the same for the same round and stream."""

    def normal(self, round_: int, size: int, deviation: float, device: torch.device) -> Tensor:
        """Gaussian noise of this standard deviation."""

    def describe(self) -> str:
        """What it is, and what its guarantee rests on, in a sentence or two."""


class SeededNoise:
    """torch's and numpy's generators with a seed, for experiments that others can repeat.

    >>> SeededNoise(1).uniform(0, 0, 3).tolist() == SeededNoise(1).uniform(0, 0, 3).tolist()
    True
    """

    name = "torch"
    step: float | None = None

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def uniform(self, round_: int, stream: int, size: int) -> Floats:
        return np.random.default_rng([self.seed, 2, round_, stream]).random(size)

    def normal(self, round_: int, size: int, deviation: float, device: torch.device) -> Tensor:
        state = np.random.SeedSequence([self.seed, 3, round_]).generate_state(2, np.uint32)
        generator = torch.Generator(device).manual_seed(int(state[0]) << 31 ^ int(state[1]))
        return deviation * torch.randn(size, generator=generator, device=device)

    def describe(self) -> str:
        return (
            "All random numbers come from torch's and numpy's generators and one seed. Whoever knows the seed can "
            "subtract the noise: the guarantee is void for them. Use it for experiments, not for a release."
        )


class Keyed:
    """A secret key from the operating system, expanded by SHAKE-256.

    >>> key = bytes(32)
    >>> Keyed(key).uniform(0, 0, 3).tolist() == Keyed(key).uniform(0, 0, 3).tolist()
    True
    """

    name = "os"
    step: float | None = None

    def __init__(self, key: bytes | None = None) -> None:
        self.key = os.urandom(KEY_BYTES) if key is None else key
        if len(self.key) != KEY_BYTES:
            raise InputError(f"a key has {KEY_BYTES} bytes, got {len(self.key)}")

    def uniform(self, round_: int, stream: int, size: int) -> Floats:
        label = f"dpassay training {round_} {stream}".encode()
        words = np.frombuffer(hashlib.shake_256(self.key + label).digest(8 * size), dtype="<u8")
        return np.asarray((words >> np.uint64(11)) * 2.0**-53)

    def normal(self, round_: int, size: int, deviation: float, device: torch.device) -> Tensor:
        """By the Box-Muller formula, in doubles; on a GPU, which draws for many weights, from ChaCha20."""
        if device.type == "cuda":
            return self.by_cipher(round_, size, deviation, device)
        half = (size + 1) // 2
        both = self.uniform(round_, -1, 2 * half)
        radius, angle = np.sqrt(-2 * np.log1p(-both[:half])), 2 * np.pi * both[half:]
        drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]
        return torch.from_numpy((deviation * drawn).astype(np.float32)).to(device)

    def by_cipher(self, round_: int, size: int, deviation: float, device: torch.device) -> Tensor:
        """The same law, computed where the weights are: the key of a round, by SHAKE-256, is expanded by ChaCha20."""
        key = hashlib.shake_256(self.key + f"dpassay noise {round_}".encode()).digest(KEY_BYTES)
        found = torch.empty(size, device=device)
        for start in range(0, size, DRAWN):  # a part at a time: doubles need much memory
            some = min(DRAWN, size - start)
            both = uniform_doubles(key, start // 8, 2 * ((some + 1) // 2), device).view(2, -1)
            radius, angle = (-2 * torch.log1p(-both[0])).sqrt_(), both[1].mul_(2 * math.pi)
            drawn = torch.cat([radius * angle.cos(), radius * angle.sin()])[:some]
            found[start : start + some] = (deviation * drawn).float()
        return found

    def describe(self) -> str:
        return (
            "All random numbers come from a 256-bit key of the operating system's generator, expanded by SHAKE-256 "
            "and, where a GPU draws, by ChaCha20. "
            "The key is kept in the folder while training is unfinished, and deleted at the end."
        )


class Discrete(Keyed):
    """OpenDP's discrete Gaussian noise, on sums that are integer multiples of a step; coins as in `Keyed`."""

    name = "opendp"

    def __init__(self, key: bytes | None, radius: float) -> None:
        super().__init__(key)
        self.step = radius / FINEST

    def normal(self, round_: int, size: int, deviation: float, device: torch.device) -> Tensor:
        """Integer multiples of the step, as doubles; drawn afresh by a resumed run."""
        from dpassay.text.rewriters.vectors.release import discrete_gaussian

        assert self.step is not None
        drawn = np.asarray(discrete_gaussian(math.ceil(deviation / self.step), size), dtype=np.float64)
        return torch.from_numpy(drawn).to(device)

    def describe(self) -> str:
        return (
            "Sums are whole numbers and get OpenDP's discrete Gaussian noise, so floating-point rounding cannot "
            "reveal anything. The accountant's theorem is about continuous Gaussian noise; that the discrete noise, at "
            f"{FINEST:,} steps per clipping radius, loses no more when units are sampled is assumed, not proved. "
            "Who takes part is drawn from a 256-bit key of the operating system's generator."
        )


def check_source(source: str) -> None:
    """Refuse a source that does not exist.

    >>> check_source("dice")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: unknown noise source 'dice'; there are os, torch and opendp
    """
    if source not in SOURCES:
        raise InputError(f"unknown noise source {source!r}; there are os, torch and opendp")


def make_randomness(source: str, seed: int, key: bytes | None, radius: float) -> Any:
    """The source with this name, with its seed or its key; the radius is that of OpenDP's grid."""
    check_source(source)
    if source == "torch":
        return SeededNoise(seed)
    return Keyed(key) if source == "os" else Discrete(key, radius)
