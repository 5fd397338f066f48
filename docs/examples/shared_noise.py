"""A private encoder with a fault that is easy to overlook: one random number for all coordinates."""

import numpy as np
from numpy.typing import NDArray


def encode(x: list[float], rng: np.random.Generator) -> NDArray[np.float64]:
    """Claimed to be 1-DP; it is not."""
    vector = np.asarray(x) / max(1.0, float(np.abs(x).sum()))  # of l1 norm at most 1
    return vector + rng.laplace(scale=2.0)  # size=vector.shape was meant


def repaired(x: list[float], rng: np.random.Generator) -> NDArray[np.float64]:
    """The same with a number for each coordinate."""
    vector = np.asarray(x) / max(1.0, float(np.abs(x).sum()))
    return vector + rng.laplace(scale=2.0, size=vector.shape)
