"""Mechanisms in numpy, each fault beside the code that does it right: claimed to be 1-DP between any two inputs."""

import os
import random
import secrets
import time

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

Vector = NDArray[np.float64]
X, Y = [0.6, -0.2, 0.1], [-0.3, 0.1, -0.5]  # of l1 norm below 1: they differ by 0.9 + 0.3 + 0.6 = 1.8


def clip_l1(x: list[float], most: float = 1.0) -> Vector:
    vector = np.asarray(x, dtype=float)
    return vector * min(1.0, most / max(float(np.abs(vector).sum()), 1e-12))


def clip_l2(x: list[float], most: float = 1.0) -> Vector:
    vector = np.asarray(x, dtype=float)
    return vector * min(1.0, most / max(float(np.linalg.norm(vector)), 1e-12))


def laplace(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l1(x) + rng.laplace(scale=2, size=3)


def shared_number(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l1(x) + rng.laplace(scale=2)


def shared_column(x: list[float], rng: np.random.Generator) -> Vector:
    return np.stack([clip_l1(x), -clip_l1(x)]) + rng.laplace(scale=4, size=(2, 1))


def column_of_sums(x: list[float], rng: np.random.Generator) -> Vector:
    """Sharing is right where the coordinates move together."""
    total = np.full(4, clip_l1(x).sum())
    noisy: Vector = total + rng.laplace(scale=2)
    return noisy


class MadeOnce:
    """Draws its noise in the first call."""

    def __init__(self) -> None:
        self.noise: Vector | None = None

    def __call__(self, x: list[float]) -> Vector:
        if self.noise is None:
            self.noise = default_rng().laplace(scale=2, size=3)
        return clip_l1(x) + self.noise


class MadeBefore:
    """Draws its noise when it is made."""

    def __init__(self) -> None:
        self.noise = np.random.default_rng().laplace(scale=2, size=3)

    def __call__(self, x: list[float]) -> Vector:
        return clip_l1(x) + self.noise


class HeldGenerator:
    """Holds a generator, and draws from it in each call: with a seed, what every new process draws."""

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, x: list[float]) -> Vector:
        return clip_l1(x) + self.rng.laplace(scale=2, size=3)


HELD = HeldGenerator(5)


def fixed_seed(x: list[float]) -> Vector:
    return clip_l1(x) + default_rng(7).laplace(scale=2, size=3)


def legacy_seed(x: list[float]) -> Vector:
    np.random.seed(3)
    return clip_l1(x) + np.random.laplace(0, 2, 3)


def legacy(x: list[float]) -> Vector:
    return clip_l1(x) + np.random.laplace(0, 2, 3)


def from_scipy(x: list[float]) -> Vector:
    from scipy import stats

    noisy: Vector = clip_l1(x) + stats.laplace.rvs(scale=2, size=3)
    return noisy


def gaussian(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l2(x) + 8.5 * rng.standard_normal(3)  # (1, 1e-5)-DP: 2/8.5 needs 1.03e-6, by the exact formula


def variance(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l2(x) + np.sqrt(8.5) * rng.standard_normal(3)


def swapped(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l1(x) + rng.laplace(scale=1 / 2, size=3)


def wrong_norm(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l2(x) + rng.laplace(scale=2, size=3)


def residual(x: list[float], rng: np.random.Generator) -> Vector:
    noisy = clip_l1(x) + rng.laplace(scale=2, size=3)
    return noisy + np.asarray(x)


def in_place_residual(x: list[float], rng: np.random.Generator) -> Vector:
    noisy = clip_l1(x)
    noisy += rng.laplace(scale=2, size=3)
    return np.asarray(x) + noisy


def appended(x: list[float], rng: np.random.Generator) -> dict[str, object]:
    return {"vector": clip_l1(x) + rng.laplace(scale=2, size=3), "largest": max(x)}


def original(x: list[float], rng: np.random.Generator) -> Vector:
    vector = clip_l1(x)
    noisy = vector.copy()
    noisy += rng.laplace(scale=2, size=3)
    return vector


def reused(x: list[float], rng: np.random.Generator) -> list[Vector]:
    noise = rng.laplace(scale=4, size=3)
    return [clip_l1(x) + noise, np.sort(clip_l1(x)) + noise]


def split_budget(x: list[float], rng: np.random.Generator) -> list[Vector]:
    return [clip_l1(x) + rng.laplace(scale=4, size=3), np.sort(clip_l1(x)) + rng.laplace(scale=4, size=3)]


def noise_returned(x: list[float], rng: np.random.Generator) -> tuple[Vector, Vector]:
    noise = rng.laplace(scale=2, size=3)
    return clip_l1(x) + noise, noise


def rounded(x: list[float], rng: np.random.Generator) -> Vector:
    noisy = clip_l1(x) + rng.laplace(scale=2, size=3)
    return np.clip(noisy, -1, 1).round(2)


def greatest(x: list[float], rng: np.random.Generator) -> int:
    return int(np.argmax(clip_l1(x) + rng.laplace(scale=2, size=3)))


def one_by_one(x: list[float]) -> list[float]:
    return [value + random.gauss(0, 8.5) for value in clip_l2(x).tolist()]


def located(x: list[float], rng: np.random.Generator) -> Vector:
    return rng.laplace(clip_l1(x), 2)


def located_too_little(x: list[float], rng: np.random.Generator) -> Vector:
    return rng.laplace(clip_l1(x), 0.5)


def scale_of_data(x: list[float], rng: np.random.Generator) -> Vector:
    vector = clip_l1(x)
    return vector + rng.laplace(scale=2, size=3) * (1 + np.abs(vector).max())


def two_noises(x: list[float], rng: np.random.Generator) -> Vector:
    """Too little noise twice: what each of them gives alone is no lower bound."""
    return clip_l1(x) + rng.laplace(scale=1, size=3) + rng.laplace(scale=50, size=3)


def mean_of_rows(x: list[float], rng: np.random.Generator) -> float:
    return float((clip_l1(x).sum() + rng.laplace(scale=2)) / 3)


def clamped_far_out(x: list[float], rng: np.random.Generator) -> Vector:
    """Nearly always what the sum is."""
    return np.clip(clip_l1(x) + rng.laplace(scale=0.1, size=3), -20, 20)


def as_a_list(x: list[float], rng: np.random.Generator) -> list[float]:
    noisy: list[float] = (clip_l1(x) + rng.laplace(scale=2, size=3)).tolist()
    return [float(value) for value in noisy]


def sampled(x: list[float], rng: np.random.Generator) -> float:
    """Each number is taken with probability 0.9, which lowers the loss of one number from 1 to ln(1 + 0.9 (e − 1))."""
    taken = rng.random(len(x)) < 0.9
    return float(np.clip(x, 0, 1)[taken].sum() + rng.laplace(scale=1))


def branching(x: list[float], rng: np.random.Generator) -> float:
    """Answers well only if a noisy test is passed, which happens in most runs."""
    passed = sum(x) + rng.laplace(scale=2) > -20
    return float(sum(x) + rng.laplace(scale=2)) if passed else 0.0


def chosen(x: list[float], rng: np.random.Generator) -> int:
    """Which number is answered is drawn: three runs may all draw one that does not differ."""
    at = rng.integers(0, len(x))
    return int(np.sign(np.clip(x, 0, 1)[at] + rng.laplace(scale=1)))


def by_inverse_cdf(x: list[float], rng: np.random.Generator) -> Vector:
    u = rng.random(3) - 0.5
    return clip_l1(x) - 2 * np.sign(u) * np.log1p(-2 * np.abs(u))


def collected(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l1(x) + np.array([rng.laplace(scale=2) for _ in range(3)])


def geometric(x: list[float], rng: np.random.Generator) -> int:
    return round(sum(x)) + int(rng.geometric(0.5) - rng.geometric(0.5))


class Transformer:
    """Holds a generator behind scikit-learn's method."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def transform(self, rows: Vector) -> Vector:
        return np.asarray(rows) + self.rng.laplace(scale=2, size=np.shape(rows))


def from_the_system(x: list[float]) -> float:
    return round(sum(x)) + secrets.randbelow(5)


def from_bytes(x: list[float]) -> float:
    return round(sum(x)) + os.urandom(1)[0] % 4


def from_elsewhere(x: list[float]) -> float:
    """What gives these numbers is not watched, as a compiled library is not."""
    return sum(x) + _clock() % 1000


def _clock() -> int:
    return time.perf_counter_ns()


def adaptive(x: list[float], rng: np.random.Generator) -> list[float]:
    """What the second noise is added to depends on the first."""
    first = x[0] + rng.laplace(scale=2)
    return [first, x[1] * float(first) + rng.laplace(scale=2)]


def clipped_singly(x: list[float], rng: np.random.Generator) -> Vector:
    """Each of two parts has an l1 norm of at most 1, both together have 2."""
    return np.concatenate([clip_l1(x[:2]), clip_l1(x[2:])]) + rng.laplace(scale=2, size=len(x))


def clipped_together(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l1([*x[:2], *x[2:]]) + rng.laplace(scale=2, size=len(x))


def nan_replaced(x: list[float], rng: np.random.Generator) -> Vector:
    return np.nan_to_num(np.asarray(x) + rng.laplace(scale=2, size=3))


def nan_replaced_first(x: list[float], rng: np.random.Generator) -> Vector:
    return clip_l1(np.nan_to_num(x).tolist()) + rng.laplace(scale=2, size=3)


def cancelled(x: list[float], rng: np.random.Generator) -> Vector:
    noise = rng.laplace(scale=2, size=3)
    return clip_l1(x) + noise - noise
