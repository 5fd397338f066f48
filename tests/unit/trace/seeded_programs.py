"""Programs whose generators were made from a seed, or were not. The lines are looked for by their marks."""

import random
import secrets
from typing import Any

import numpy as np

SEED = 42  # of a constant
g = np.random.default_rng(0)  # a global whose name is that of an attribute below
BY_CONSTANT = np.random.default_rng(SEED)
BY_SYSTEM = np.random.default_rng()


def by_constant(x: float) -> float:
    return x + float(BY_CONSTANT.laplace())


def by_system(x: float) -> float:
    return x + float(BY_SYSTEM.laplace())


class Held:
    def __init__(self, generator: Any) -> None:
        self.g = generator

    def __call__(self, x: float) -> float:
        return x + float(self.g.normal())


class Seeded(Held):
    def __init__(self, seed: int | None = None) -> None:
        super().__init__(np.random.RandomState(seed))


def closed_over() -> Any:
    rng = np.random.default_rng(11)  # in a closure
    return lambda x: x + float(rng.laplace())


legacy = Seeded(7)  # of an object
legacy_of_system = Seeded()
python = Held(random.Random("salt"))  # of Python
python_of_system = Held(random.Random())
of_system = Held(random.SystemRandom())
closure = closed_over()
few_bits = Held(np.random.default_rng(secrets.randbits(20)))
many_bits = Held(np.random.default_rng(secrets.randbits(100) + 2**99))
