"""ADePT's noise as code: a vector is clipped to l2 norm 1 and gets Laplace noise of scale 2/epsilon."""

import numpy as np
from numpy.typing import NDArray


def rewrite(x: list[float], rng: np.random.Generator) -> NDArray[np.float64]:
    """The private vector of one text, said to be 1-DP; a decoder would make a text of it."""
    vector = np.asarray(x, dtype=float)
    vector = vector / max(1.0, np.linalg.norm(vector))
    return vector + rng.laplace(scale=2.0, size=vector.shape)


def repaired(x: list[float], rng: np.random.Generator) -> NDArray[np.float64]:
    """The same with the noise that the l1 distance of two clipped vectors needs."""
    vector = np.asarray(x, dtype=float)
    vector = vector / max(1.0, np.linalg.norm(vector))
    return vector + rng.laplace(scale=2.0 * np.sqrt(vector.size), size=vector.shape)
