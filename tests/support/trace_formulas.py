"""Noise made number by number, put into lists, or made by a formula of other numbers, and what is done with it."""

import math
import random

import numpy as np
from numpy.typing import NDArray

from trace_numpy import clip_l1, clip_l2

Vector = NDArray[np.float64]
Generator = np.random.Generator


def loop(x: list[float], rng: Generator) -> list[float]:
    noisy = []
    for value in clip_l1(x):
        noisy.append(value + rng.laplace(scale=2))
    return noisy


def comprehension(x: list[float]) -> Vector:
    return np.array([value + random.gauss(0, 8.5) for value in clip_l2(x)])


def filled(x: list[float], rng: Generator) -> Vector:
    noisy = np.zeros(3)
    for i, value in enumerate(clip_l1(x)):
        noisy[i] = value + rng.laplace(scale=2)
    return noisy


def filled_in_place(x: list[float], rng: Generator) -> Vector:
    noisy = clip_l1(x)
    for i in range(3):
        noisy[i] += rng.laplace(scale=2)
    return noisy


def filled_from_one(x: list[float], rng: Generator) -> Vector:
    noise = rng.laplace(scale=2)
    return clip_l1(x) + np.array([noise] * 3)


def full_of_one(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + np.full(3, rng.laplace(scale=2))


def stacked(x: list[float], rng: Generator) -> Vector:
    return np.stack([clip_l1(x) + rng.laplace(scale=4, size=3), clip_l1(x) + rng.laplace(scale=4, size=3)])


def concatenated(x: list[float], rng: Generator) -> Vector:
    vector = clip_l1(x)
    return vector + np.concatenate([rng.laplace(scale=2, size=1), rng.laplace(scale=2, size=2)])


def total(x: list[float], rng: Generator) -> float:
    """The sum of three noisy numbers: three Gaussian ones make one of deviation √3 as large."""
    return float(sum([value + rng.normal(scale=5) for value in clip_l2(x)]))


def mean_of_list(x: list[float], rng: Generator) -> float:
    return float(np.mean([value + rng.normal(scale=5) for value in clip_l2(x)]))


def clipped_after(x: list[float], rng: Generator) -> Vector:
    """Too late: what was to be bounded before the noise."""
    return np.clip(np.asarray(x) + rng.laplace(scale=2, size=3), -1, 1)


def clamped(x: list[float], rng: Generator) -> Vector:
    return np.clip(clip_l1(x) + rng.laplace(scale=2, size=3), -1, 1)


def where_positive(x: list[float], rng: Generator) -> Vector:
    noisy = clip_l1(x) + rng.laplace(scale=2, size=3)
    return np.where(noisy > 0, noisy, 0.0)


def inverse_cdf(x: list[float], rng: Generator) -> Vector:
    u = rng.uniform(-0.5, 0.5, 3)
    return clip_l1(x) - 2 * np.sign(u) * np.log(1 - 2 * np.abs(u))


def inverse_cdf_by_math(x: list[float]) -> list[float]:
    noisy = []
    for value in clip_l1(x).tolist():
        u = random.random() - 0.5
        noisy.append(value - 2 * math.copysign(1, u) * math.log(1 - 2 * abs(u)))
    return noisy


def inverse_cdf_too_small(x: list[float], rng: Generator) -> Vector:
    u = rng.random(3) - 0.5
    return clip_l1(x) - 0.5 * np.sign(u) * np.log1p(-2 * np.abs(u))


def wrong_uniform(x: list[float], rng: Generator) -> Vector:
    """The formula is for (−½, ½)."""
    u = rng.random(3)
    with np.errstate(invalid="ignore"):
        return clip_l1(x) - 2 * np.sign(u) * np.log(1 - 2 * np.abs(u))


def wrong_uniform_replaced(x: list[float], rng: Generator) -> Vector:
    """Half of the numbers get no noise."""
    u = rng.random(3)
    with np.errstate(invalid="ignore"):
        noise = np.nan_to_num(-2 * np.sign(u) * np.log(1 - 2 * np.abs(u)))
    return clip_l1(x) + noise


def wrong_uniform_zeroed(x: list[float], rng: Generator) -> Vector:
    return np.nan_to_num(wrong_uniform(x, rng))


def wrong_uniform_undone(x: list[float], rng: Generator) -> Vector:
    noisy = wrong_uniform(x, rng)
    return np.where(np.isnan(noisy), clip_l1(x), noisy)


def two_exponentials(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + rng.exponential(2, 3) - rng.exponential(2, 3)


def two_exponentials_too_small(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + (rng.standard_exponential(3) - rng.standard_exponential(3)) / 2


def two_logarithms(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + 2 * (np.log(rng.random(3)) - np.log(rng.random(3)))


def sign_times_exponential(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + rng.choice([-1, 1], 3) * rng.exponential(2, 3)


def sign_of_integers(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + (2 * rng.integers(0, 2, 3) - 1) * rng.exponential(2, 3)


def one_exponential(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + rng.exponential(2, 3)


def two_gaussians(x: list[float], rng: Generator) -> Vector:
    return clip_l2(x) + 6 * rng.standard_normal(3) + rng.normal(scale=6, size=3)


def box_muller(x: list[float], rng: Generator) -> Vector:
    first, second = 1 - rng.random(3), rng.random(3)
    return clip_l2(x) + 8.5 * np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


def box_muller_too_small(x: list[float], rng: Generator) -> Vector:
    first, second = 1 - rng.random(3), rng.random(3)
    return clip_l2(x) + np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


def twelve_uniforms(x: list[float], rng: Generator) -> float:
    """Nearly Gaussian, and no law that is known here."""
    return float(clip_l2(x).sum() + 8.5 * (rng.random(12).sum() - 6))


def uniform_noise(x: list[float], rng: Generator) -> Vector:
    return clip_l1(x) + rng.uniform(-9, 9, 3)


def whole_noise(x: list[float], rng: Generator) -> int:
    """With p = 1 − e^(−1/2), and a sum that differs by 2: ε = 1."""
    p = 1 - math.exp(-0.5)
    return round(sum(x)) + (rng.geometric(p) - rng.geometric(p))


def whole_noise_too_small(x: list[float], rng: Generator) -> int:
    return round(sum(x)) + (rng.geometric(0.9) - rng.geometric(0.9))


def rounded_before(x: list[float], rng: Generator) -> float:
    """Rounding makes a difference of 0.2 one of 1."""
    return float(round(x[0]) + rng.laplace(scale=0.2))


def rounded_after(x: list[float], rng: Generator) -> float:
    return round(x[0] + rng.laplace(scale=0.2), 1)


def sign_only(x: list[float], rng: Generator) -> Vector:
    return np.sign(clip_l1(x) + rng.laplace(scale=0.2, size=3))


def gaussian_by_size(x: list[float], rng: Generator) -> Vector:
    vector = clip_l2(x)
    return vector + rng.normal(scale=8.5 * (1 + np.abs(vector).max()), size=3)


def laplace_by_size(x: list[float], rng: Generator) -> float:
    return float(x[0] + rng.laplace(scale=1 + 9 * abs(x[0])))


def dropout(x: list[float], rng: Generator) -> Vector:
    """Half of the numbers are output without noise, times two."""
    return clip_l1(x) * (rng.random(3) < 0.5) * 2


def copied(x: list[float], rng: Generator) -> Vector:
    """The noise is added to a copy."""
    vector = clip_l1(x)
    for row in [np.array(vector)]:
        row += rng.laplace(scale=2, size=3)
    return vector
