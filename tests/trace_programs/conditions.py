"""Noise that is compared: thresholds, sparse vectors, and leaks that only some of the noise opens."""

import math
import random

import numpy as np
import torch

from trace_programs.program import INF, Program, adding_to

PROGRAMS: list[Program] = []
threshold, window = (adding_to(PROGRAMS, kind) for kind in ("threshold", "window"))


# The raw counts are on both sides of T with the probability that T is between them, and then show their order.
@threshold({"ann": 48, "bob": 45}, {"ann": 45, "bob": 48}, 1, INF, leak=(math.exp(-2) - math.exp(-5)) / 2)
def names_above_noisy_threshold(counts, rng):
    limit = 50 + rng.laplace(0, 1)
    return [name for name, c in counts.items() if c > limit]


@threshold([12, 8], [8, 12], 1, INF, leak=1 - math.exp(-2))
def places_above_noisy_threshold(counts):
    limit = 10 + np.random.laplace()
    return np.flatnonzero(np.array(counts) > limit)


@threshold([4.0, 1.0, 3.0], [4.0, 3.0, 1.0], 2, INF, leak=1 - math.exp(-0.5))
def tensor_above_noisy_threshold(counts):
    limit = 2.0 + torch.distributions.Laplace(0.0, 2.0).sample()
    return torch.tensor(counts) > limit


# False, then true: only if T is between 3 and 5, and never if the larger comes first.
@threshold([3, 5], [5, 3], 1, INF, leak=1 - math.exp(-0.5))
def sparse_vector_without_query_noise(queries):
    limit = 4 + random.choice([-1, 1]) * random.expovariate(1 / 2)
    answers = []
    for q in queries:
        answers.append(q > limit)
        if answers[-1]:
            break
    return answers


# P(Z > 2) / P(Z > 1) = 1/e; the other answer differs by less.
@threshold(48, 49, 1.1, 1)
def one_count_and_a_noisy_threshold(count, rng):
    return bool(count > 50 + rng.laplace(0, 1))


@threshold({"ann": 9}, {"ann": 10}, 1.5, 1)
def noisy_counts_and_a_threshold(counts):
    return [name for name, c in counts.items() if c + np.random.laplace(0, 1) > 10]


# Bob is in the output with probability e^(−9)/2 = 6.2e-5, below δ.
@threshold({"ann": 30}, {"ann": 30, "bob": 1}, 0.5, 0, delta=1e-4)
def stable_histogram(counts, rng):
    noisy = {name: c + rng.laplace(0, 1) for name, c in counts.items()}
    return sorted(name for name, c in noisy.items() if c > 10)


@threshold({"ann": 30}, {"ann": 30, "bob": 1}, 1, INF, delta=1e-5, leak=math.exp(-2) / 2)
def histogram_with_a_low_threshold(counts, rng):
    return sorted(name for name, c in counts.items() if c + rng.laplace(0, 1) > 3)


# By quadrature over the threshold: none is above with probability 0.3785888 and 7/24.
@threshold([0, 0], [1, 1], 1, 0.2608390169)
def sparse_vector(queries, rng):
    limit = 1 + rng.laplace(scale=2)
    for i, q in enumerate(queries):
        if q + rng.laplace(scale=4) >= limit:
            return i
    return None


# By quadrature: five "below" and five "above", where the other input has them the other way round.
@threshold([0] * 5 + [1] * 5, [1] * 5 + [0] * 5, 1, 7.6827877792)
def sparse_vector_that_never_stops(queries, rng):
    limit = rng.laplace(scale=1)
    return [bool(q + rng.laplace(scale=1) > limit) for q in queries]


# The noise in a window releases twice the input: P(1 < Z < 1.02) = (e^−1 − e^−1.02)/2 = 0.36%.
@window(3.0, 4.0, 1, INF, leak=(math.exp(-1) - math.exp(-1.02)) / 2)
def window_of_noise(x, rng):
    z = rng.laplace()
    if 1.0 < z < 1.02:
        return 2 * x
    return x + z


@window(3.0, 4.0, 1, INF, leak=(math.exp(-2.45) - math.exp(-2.55)) / 2)
def window_by_string(x, rng):
    z = rng.laplace()
    if f"{z:.1f}" == "2.5":
        return x
    return x + z


@window(3, 4, 1, INF, leak=1 / 200)
def window_by_table(x):
    table = {7: x}
    return table.get(random.randrange(200), x + np.random.laplace())


# Outputs just above x are missing for x: those from 4 to 4.02 never come from 3, and from 4 with (1 − e^−0.02)/2.
@window(3.0, 4.0, 1, INF, leak=(1 - math.exp(-0.02)) / 2)
def window_of_missing_outputs(x, rng):
    z = rng.laplace()
    return 0.0 if 1 < z < 1.02 else x + z


# The same window of the noisy number is post-processing.
@window(3.0, 4.0, 1.2, 1)
def window_of_outputs(x, rng):
    noisy = x + rng.laplace()
    return 0.0 if 1 < noisy < 1.02 else noisy


@window(3.0, 4.0, 1, 1)
def window_of_a_coin(x, rng):
    if rng.random() < 0.01:
        return 0.0
    return x + rng.laplace()


# (1 − 1e-6) (1 − e^((ε − 1)/2)) + 1e-6 = 1e-5.
@window(3.0, 4.0, 1.01, 1 + 2 * math.log(1 - 9e-6 / (1 - 1e-6)), delta=1e-5, leak=1e-6)
def window_below_delta(x, rng):
    return x if rng.random() < 1e-6 else x + rng.laplace()


@window(0, 1, 2, INF, leak=0.02)
def window_in_a_loop(x):
    for _ in range(50):
        if random.random() < 1 - 0.98 ** (1 / 50):
            return f"raw {x}"
    return f"noisy {random.randint(0, 1)}"
