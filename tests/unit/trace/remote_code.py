"""Code that a test traces in another interpreter. It imports numpy alone."""

import os
import time
from typing import Any

import numpy as np

GENERATOR = np.random.default_rng(42)


def shared(x: Any, rng: Any) -> Any:
    print("nothing that is printed may get into the answers")
    return np.clip(np.nan_to_num(x), -1, 1) + rng.laplace(scale=4.0)


def right(x: Any, rng: Any) -> Any:
    return (np.clip(np.nan_to_num(x), -1, 1) + rng.laplace(scale=4.0, size=2)).tolist()


def single(x: Any, rng: Any) -> Any:
    return np.clip(np.nan_to_num(x), -1, 1).astype(np.float32) + rng.standard_normal(2, dtype=np.float32)


def seeded(x: Any) -> Any:
    return np.clip(np.nan_to_num(x), -1, 1) + GENERATOR.laplace(scale=4.0, size=2)


class MadeOnce:
    def __init__(self) -> None:
        self.noise: Any = None

    def encode(self, x: Any, rng: Any) -> Any:
        if self.noise is None:
            self.noise = rng.laplace(scale=4.0, size=2)
        return np.asarray(x) + self.noise


class Sampler:
    def sample(self, x: Any, n: int, rng: Any) -> Any:
        return x + rng.laplace(scale=0.5, size=(n, 2))


def refuses(x: Any, rng: Any) -> Any:
    raise ValueError("no")


def ends(x: Any, rng: Any) -> Any:
    os.kill(os.getpid(), 9)


def slow(x: Any, rng: Any) -> Any:
    time.sleep(2)
    return x


def too_many(x: Any, y: Any, z: Any, rng: Any) -> Any:
    return x


def checked(x: Any, rng: Any) -> Any:
    """Loses 1 between 3 and 4: the exception depends on the noisy number alone."""
    noisy = x + rng.laplace(0, 1)
    if noisy > 4:
        raise ValueError("too large to be released")
    return noisy
