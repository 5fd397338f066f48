"""What is asked next depends on what was answered: sparse vectors, tests before a release, the largest of several."""

import math
import random

import numpy as np
import torch

from trace_programs.program import INF, Program, adding_to, finite, first_above

PROGRAMS: list[Program] = []
adaptive = adding_to(PROGRAMS, "adaptive")


@adaptive([50, 40, 52], [51, 41, 51], 1, finite(*(first_above(c, 50, 2, 4) for c in ([50, 40, 52], [51, 41, 51]))))
def first_above_threshold(counts, rng):
    limit = 50 + rng.laplace(0, 2.0)
    for i, c in enumerate(counts):
        if c + rng.laplace(0, 4.0) > limit:
            return i
    return None


# The loss of which query it is, and that of its own fresh answer: 1/2 where that query changed.
@adaptive(
    *([50, 40, 52], [51, 41, 51], 1.5),
    max(
        abs(math.log(p / q)) + (0.5 if i < 3 else 0.0)
        for i, (p, q) in enumerate(zip(*(first_above(c, 50, 4, 8) for c in ([50, 40, 52], [51, 41, 51])), strict=True))
    ),
)
def first_above_threshold_with_its_answer(counts, rng):
    limit = 50 + rng.laplace(0, 4.0)
    for i, c in enumerate(counts):
        if c + rng.laplace(0, 8.0) > limit:
            return i, c + rng.laplace(0, 2.0)
    return None


# It shows the raw count of the query that was reported: 52 never comes from the other input.
@adaptive([50, 40, 52], [51, 41, 51], 1, INF, leak=first_above([50, 40, 52], 50, 2, 4)[2])
def first_above_threshold_with_the_raw_count(counts, rng):
    limit = 50 + rng.laplace(0, 2.0)
    for i, c in enumerate(counts):
        if c + rng.laplace(0, 4.0) > limit:
            return {"query": i, "count": c}
    return {}


@adaptive([10, 5, 7], [11, 5, 7], 0.5, 0.5)
def next_question_by_the_first_answer(counts, rng):
    first = counts[0] + rng.laplace(0, 2.0)
    if first > 10:
        return [first, counts[1] + rng.laplace(0, 2.0)]
    return [first, counts[2] + rng.laplace(0, 4.0)]


@adaptive([10, 5, 7], [11, 6, 8], 0.75, 1.0)
def both_answers_count(counts, rng):
    first = counts[0] + rng.laplace(0, 2.0)
    if first > 10:
        return [first, counts[1] + rng.laplace(0, 2.0)]
    return [first, counts[2] + rng.laplace(0, 4.0)]


@adaptive(3.0, 4.0, 1, 1.0)
def answer_around_the_input(x):
    return "high" if np.random.laplace(loc=x, scale=1.0) > 3 else "low"


# Both the number of records and their sum show the added one.
@adaptive([1.0, 0.0, 1.0], [1.0, 0.0], 1, 1.0)
def mean_if_there_are_enough(records):
    many = len(records) + np.random.laplace(0, 2)
    if many < 2:
        return None
    return many, sum(records) + np.random.laplace(0, 2)


@adaptive([1.0, 0.0, 1.0], [1.0, 0.0], 1, 2.0)
def mean_if_there_are_enough_with_half_the_noise(records):
    many = len(records) + np.random.laplace(0, 1)
    if many < 2:
        return None
    return many, sum(records) + np.random.laplace(0, 1)


# The larger of two numbers at 3 and 4 against two at 4: far below both, the density is e^1 times that of the other.
@adaptive([3, 4], [4, 4], 1, 1.0)
def larger_noisy_count(counts, rng):
    return max(c + rng.laplace(0, 1.0) for c in counts)


# The better half is drawn first, and is compared with noise of the other: P(a + Z > b + Z') for two Laplace numbers
# that are 1 apart is 1 − (2 + 1)/4·e^−1 for scale 1.
@adaptive(
    *({"a": 3, "b": 2}, {"a": 2, "b": 3}, 2.0),
    math.log((1 - 0.75 * math.exp(-1)) / (0.75 * math.exp(-1))),
)
def better_of_two(votes):
    noisy = {name: n + random.choice([-1, 1]) * random.expovariate(1.0) for name, n in votes.items()}
    return "a" if noisy["a"] > noisy["b"] else "b"


@adaptive([5.0, 1.0], [6.0, 1.0], 0.5, 1.0)
def tensor_if_it_is_large(counts):
    noisy = torch.tensor(counts) + torch.distributions.Laplace(0.0, 1.0).sample((2,))
    return float(noisy[0]) if noisy[0] > noisy[1] else None
