"""Right code that is easily taken for wrong: each with a pair of neighbours, and an ε and a δ that it really has."""

import math
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Generator = np.random.Generator


def redrawn(x: float, rng: Generator) -> float:
    """Noise beyond 30 scales is drawn again: the loss is ∞ for δ = 0, and that of the noise for a δ of e^−29."""
    while abs(noise := rng.laplace(scale=1)) > 30:
        pass
    return x + noise


def noise_twice(x: float, rng: Generator) -> float:
    """Each of the two alone would be too little."""
    return x + rng.laplace(scale=1.2) + rng.laplace(scale=1.2)


def difference_of_answers(x: float, rng: Generator) -> float:
    """What is answered is the noise alone."""
    return (x + rng.laplace(scale=0.1)) - (x + rng.laplace(scale=0.1))


def ratio_of_noise(x: float, rng: Generator) -> float:
    noisy = x + rng.laplace(scale=1)
    return noisy / (1 + abs(noisy))


def noisy_branch(x: float, rng: Generator) -> str:
    return "many" if x + rng.laplace(scale=1) > 0.5 else "few"


def branch_then_other(x: float, rng: Generator) -> float:
    """A second answer, with half of the budget, only if a noisy test is passed."""
    if x + rng.laplace(scale=2) > 0:
        return float(x + rng.laplace(scale=2))
    return float("nan")


def noisy_max(x: list[float], rng: Generator) -> int:
    return int(np.argmax(np.asarray(x) + rng.laplace(scale=2, size=len(x))))


def noisy_max_by_loop(x: list[float], rng: Generator) -> int:
    best, at = -math.inf, 0
    for i, value in enumerate(x):
        noisy = value + rng.exponential(scale=2)
        if noisy > best:
            best, at = noisy, i
    return at


def gumbel_max(x: list[float], rng: Generator) -> int:
    return int(np.argmax(np.asarray(x) / 2 + rng.gumbel(size=len(x))))


def sparse_vector(x: list[float], rng: Generator) -> list[bool]:
    """Stops after the first answer above the threshold."""
    threshold = 1 + rng.laplace(scale=2)
    answers = []
    for value in x:
        answers.append(bool(value + rng.laplace(scale=4) >= threshold))
        if answers[-1]:
            break
    return answers


def subsampled(x: list[float], rng: Generator) -> float:
    """Each number with probability ½: e^ε − 1 is halved, and the noise alone gives 1.4."""
    taken = [value for value in x if rng.random() < 0.5]
    return float(sum(taken) + rng.laplace(scale=1 / 1.4))


def subsampled_mask(x: list[float], rng: Generator) -> float:
    return float((np.asarray(x) * (rng.random(len(x)) < 0.5)).sum() + rng.laplace(scale=1 / 1.4))


def propose_test_release(x: list[float], rng: Generator) -> float | None:
    """Answers the median only if it is far from changing, as a noisy test says."""
    distance = 5.0 if abs(x[0]) < 2 else 0.0
    if distance + rng.laplace(scale=2) < 2 * math.log(1e5):
        return None
    return float(np.median(x)) + float(rng.laplace(scale=2))


def two_stages(x: list[float], rng: Generator) -> float:
    """A noisy bound first, then a sum that is clipped to it, with noise in proportion to it."""
    bound = max(1.0, min(8.0, max(x) + rng.laplace(scale=2 * 8)))
    return float(np.clip(x, 0, bound).sum() + rng.laplace(scale=2 * float(bound)))


def randomised_response(x: int, rng: Generator) -> int:
    """Keeps the bit with probability e/(1 + e)."""
    return x if rng.random() < math.e / (1 + math.e) else 1 - x


def randomised_response_by_choice(x: int, rng: Generator) -> int:
    keep = math.e / (1 + math.e)
    return int(rng.choice([x, 1 - x], p=[keep, 1 - keep]))


def exponential_mechanism(x: list[float], rng: Generator) -> int:
    weights = np.exp(np.asarray(x) / 2)
    return int(rng.choice(len(x), p=weights / weights.sum()))


def exponential_mechanism_in_words(x: list[float]) -> str:
    weights = [math.exp(value / 2) for value in x]
    return random.choices(["red", "green", "blue"], weights=weights)[0]


def permute_and_flip(x: list[float], rng: Generator) -> int:
    best = max(x)
    for i in rng.permutation(len(x)).tolist():
        if rng.random() < math.exp((x[i] - best) / 2):
            return int(i)
    raise AssertionError


def planar(x: list[float], rng: Generator) -> Vector:
    """Density e^(−|z|) in the plane: a direction and a radius of two exponential numbers."""
    angle, radius = rng.uniform(0, 2 * math.pi), rng.gamma(2, 1.0)
    return np.asarray(x) + radius * np.array([math.cos(angle), math.sin(angle)])


def planar_by_normals(x: list[float], rng: Generator) -> Vector:
    direction = rng.normal(size=2)
    return np.asarray(x) + rng.gamma(2, 1.0) * direction / np.linalg.norm(direction)


def snapped(x: float, rng: Generator) -> float:
    return float(np.round((x + rng.laplace(scale=1)) / 0.25) * 0.25)


def secret_shares(x: float, rng: Generator) -> list[float]:
    """Noisy, and then split into two numbers, the first of which carries no information."""
    noisy, mask = x + rng.laplace(scale=1), rng.normal(scale=100)
    return [float(noisy - mask), float(mask)]


def noise_of_two_kinds(x: float, rng: Generator) -> float:
    return float(x + rng.laplace(scale=0.5) + rng.normal(scale=40))


def both_ways(x: float, rng: Generator) -> list[float]:
    """The same noise on the same number, twice."""
    noise = rng.laplace(scale=1)
    return [float(x + noise), float(2 * (x + noise))]


def average_of_answers(x: float, rng: Generator) -> float:
    return float(np.mean([x + rng.laplace(scale=1) for _ in range(1)]))


def by_rejection(x: float, rng: Generator) -> float:
    """Laplace numbers up to 6, by rejection from uniform ones; (e^−5 − e^−6)/2 of them are where the other has none."""
    while True:
        z = rng.uniform(-6, 6)
        if rng.random() < math.exp(-abs(z)):
            return float(x + z)


def normalised(x: list[float], rng: Generator) -> Vector:
    noisy = np.maximum(np.asarray(x) + rng.laplace(scale=2, size=len(x)), 0)
    total = noisy.sum()
    return noisy / total if total > 0 else np.full(len(x), 1 / len(x))


def sorted_after(x: list[float], rng: Generator) -> Vector:
    return np.sort(np.asarray(x) + rng.laplace(scale=2, size=len(x)))


def shuffled(x: list[int], rng: Generator) -> list[int]:
    """Each bit by randomised response, then in random order."""
    bits = [b if rng.random() < math.e / (1 + math.e) else 1 - b for b in x]
    rng.shuffle(bits)
    return bits


def dropped_noise(x: float, rng: Generator) -> float:
    """Draws noise that it does not use, beside the noise that it does."""
    rng.normal(size=3)
    return float(x + rng.laplace(scale=1))


def histogram(x: list[int], rng: Generator) -> Vector:
    """One person counts once: two cells change by 1 each."""
    return np.bincount(x, minlength=3) + rng.laplace(scale=2, size=3)


def geometric_counts(x: int, rng: Generator) -> int:
    p = 1 - math.exp(-1)
    return int(max(0, x + rng.geometric(p) - rng.geometric(p)))


def gaussian_tree(x: list[float], rng: Generator) -> list[float]:
    """Sums of the first numbers, each from two noisy nodes, of which one is shared."""
    left = x[0] + x[1] + rng.normal(scale=10)
    return [float(left), float(left + x[2] + rng.normal(scale=10))]


def sides_by_branch(x: float) -> float:
    """Laplace noise whose side a branch decides, by the number that its size is made of."""
    u = random.random() - 0.5
    size = -math.log(1 - 2 * abs(u))
    if u < 0:
        size = -size
    return x + size


def sides_by_expression(x: float) -> float:
    u = random.random() - 0.5
    return x + math.log(1 - 2 * abs(u)) * (1 if u < 0 else -1)


def halves(x: float) -> float:
    u = random.random()
    return x + (math.log(2 * u) if u < 0.5 else -math.log(2 * (1 - u)))


def halves_in_array(x: list[float], rng: Generator) -> Vector:
    u = rng.random(len(x))
    with np.errstate(all="ignore"):
        return np.asarray(x) + 2 * np.where(u < 0.5, np.log(2 * u), -np.log(2 - 2 * u))


def cyclic(x: float, rng: Generator) -> float:
    """Says nothing about x at all."""
    return float((x + rng.random()) % 1.0)


def one_time_pad(x: int, rng: Generator) -> int:
    return int((x + rng.integers(0, 2)) % 2)


def bits(x: list[int], rng: Generator) -> NDArray[np.int64]:
    given = np.asarray(x)
    return np.where(rng.random(len(x)) < math.e / (1 + math.e), given, 1 - given)


def sign_by_branch(x: float, rng: Generator) -> float:
    size = rng.exponential(1.0)
    return float(x + size if rng.random() < 0.5 else x - size)


def folded(x: float, rng: Generator) -> float:
    """Reflected into [0, 1]."""
    value = (x + rng.laplace(scale=1)) % 2
    return float(min(value, 2 - value))


def cut_noise(x: float, rng: Generator) -> float:
    return float(x + np.clip(rng.laplace(scale=1), -25, 25))


# For each what is traced, two neighbours, and the guarantee that it has.
RIGHT: dict[str, tuple[Any, tuple[Any, Any], float, float]] = {
    "redrawn": (redrawn, (0.0, 1.0), 1.0001, 1e-12),
    "noise twice": (noise_twice, (0.0, 1.0), 1 / 1.2, 0),
    "the input cancels": (difference_of_answers, (0.0, 1.0), 0.001, 0),
    "after the noise": (ratio_of_noise, (0.0, 1.0), 1, 0),
    "a noisy branch": (noisy_branch, (0.0, 1.0), 1, 0),
    "an answer after a noisy branch": (branch_then_other, (0.0, 1.0), 1, 0),
    "noisy max": (noisy_max, ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 1, 0),
    "noisy max in a loop": (noisy_max_by_loop, ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 1, 0),
    "gumbel noise": (gumbel_max, ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 1, 0),
    "sparse vector": (sparse_vector, ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 1, 0),
    "a sample": (subsampled, ([1.0, 1.0], [1.0]), math.log(1 + (math.exp(1.4) - 1) / 2), 0),
    "a sample by a mask": (subsampled_mask, ([1.0, 1.0], [1.0, 0.0]), math.log(1 + (math.exp(1.4) - 1) / 2), 0),
    "propose, test, release": (propose_test_release, ([0.0, 1.0, 2.0], [1.0, 1.0, 2.0]), 1, 1e-5),
    "two stages": (two_stages, ([1.0, 2.0, 3.0], [1.0, 2.0, 2.0]), 1, 0),
    "randomised response": (randomised_response, (0, 1), 1, 0),
    "randomised response by choice": (randomised_response_by_choice, (0, 1), 1, 0),
    "the exponential mechanism": (exponential_mechanism, ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 1, 0),
    "the same in words": (exponential_mechanism_in_words, ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 1, 0),
    "permute and flip": (permute_and_flip, ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0]), 1, 0),
    "planar": (planar, ([0.0, 0.0], [0.6, 0.8]), 1, 0),
    "planar by normal numbers": (planar_by_normals, ([0.0, 0.0], [0.6, 0.8]), 1, 0),
    "snapped": (snapped, (0.0, 1.0), 1, 0),
    "secret shares": (secret_shares, (0.0, 1.0), 1, 0),
    "noise of two kinds": (noise_of_two_kinds, (0.0, 1.0), 0.2, 1e-5),
    "the same answer twice": (both_ways, (0.0, 1.0), 1, 0),
    "an average": (average_of_answers, (0.0, 1.0), 1, 0),
    "by rejection": (by_rejection, (0.0, 1.0), 1.0001, 0.01),
    "normalised": (normalised, ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]), 1, 0),
    "sorted": (sorted_after, ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]), 1, 0),
    "shuffled": (shuffled, ([0, 1, 1], [1, 1, 1]), 1, 0),
    "noise that is not used": (dropped_noise, (0.0, 1.0), 1, 0),
    "a histogram": (histogram, ([0, 1, 2], [0, 1, 1]), 1, 0),
    "counts": (geometric_counts, (3, 4), 1, 0),
    "sides by a branch": (sides_by_branch, (0.0, 1.0), 1, 0),
    "sides by an expression": (sides_by_expression, (0.0, 1.0), 1, 0),
    "halves": (halves, (0.0, 1.0), 1, 0),
    "halves in an array": (halves_in_array, ([0.0, 1.0], [1.0, 0.0]), 1, 0),
    "a cyclic shift": (cyclic, (0.0, 0.3), 0.001, 0),
    "a one-time pad": (one_time_pad, (0, 1), 0.001, 0),
    "bits": (bits, ([0, 1, 1], [1, 1, 1]), 1, 0),
    "a sign by a branch": (sign_by_branch, (0.0, 1.0), 1, 0),
    "folded": (folded, (0.0, 1.0), 1, 0),
    "cut noise": (cut_noise, (0.0, 1.0), 1.0001, 1e-10),
    "a tree of sums": (gaussian_tree, ([1.0, 1.0, 1.0], [0.0, 1.0, 1.0]), 0.5, 1e-5),
}
