"""Noise whose sign or branch is drawn, and code that raises exceptions or starts other processes."""

import math
import os
import random
import subprocess

import numpy as np

from trace_programs.program import INF, LN9, Program, adding_to

PROGRAMS: list[Program] = []
branch = failing = process = adding_to(PROGRAMS, "branches, failures")


def _laplace(scale):
    u = random.random() - 0.5
    sign = 1 if u > 0 else -1
    return -scale * sign * math.log(1 - 2 * abs(u))


def _exponential_or_its_negative(scale, rng):
    if rng.random() < 0.5:
        return rng.exponential(scale)
    return -rng.exponential(scale)


@branch(0.0, 1.0, 1, 1)
def sign_of_the_uniform_number(x):
    return x + _laplace(1.0)


@branch(0.0, 1.0, 1, 2)
def sign_of_the_uniform_number_with_half_the_noise(x):
    return x + _laplace(0.5)


@branch(0.0, 1.0, 1, 1)
def inverse_in_two_branches(x):
    u = random.uniform(-0.5, 0.5)
    if u < 0:
        return x + math.log(1 + 2 * u)
    return x - math.log(1 - 2 * u)


# Where u >= 0 the noise is −ln(1 − u), at most ln 2: from 1 it is above ln 2 − 1 with probability 1 − e^(ln 2 − 1)/2.
@branch(0.0, 1.0, 2, INF, leak=1 - math.exp(-1))
def inverse_with_a_factor_forgotten(x):
    u = random.uniform(-0.5, 0.5)
    noise = math.log(1 + 2 * u) if u < 0 else -math.log(1 - u)
    return x + noise


@branch(0.0, 1.0, 1, 1)
def coin_after_the_size(x):
    size = random.expovariate(1.0)
    if random.random() < 0.5:
        size = -size
    return round(x + size, 3)


@branch(0.0, 1.0, 1, 2)
def coin_after_half_the_size(x):
    size = random.expovariate(2.0)
    if random.random() < 0.5:
        size = -size
    return x + size


# Between 0 and 1 the densities are 0.7·e^(−v) and 0.3·e^(v−1): the ratio at 0 is e·7/3.
@branch(0.0, 1.0, 2, 1 + math.log(7 / 3))
def biased_coin(x, rng):
    return x + (1 if rng.random() < 0.7 else -1) * rng.exponential(1.0)


@branch(0.0, 1.0, 0.8, 1 + math.log(7 / 3))
def biased_coin_taken_as_fair(x, rng):
    return x + (1 if rng.random() < 0.7 else -1) * rng.exponential(1.0)


@branch([3.0, 4.0], [4.0, 5.0], 2, 2)
def a_coin_for_each_number(x, rng):
    return {name: max(0.0, v + _exponential_or_its_negative(1.0, rng)) for name, v in zip("ab", x, strict=True)}


@branch([3.0, 4.0], [4.0, 5.0], 1, 2)
def a_coin_for_each_number_of_a_split_budget(x, rng):
    return [v + _exponential_or_its_negative(1.0, rng) for v in x]


# Up with probability 0.9 from 0, with 0.1 from 1: above 1 the densities are 0.9·e^(−v) and 0.1·e^(1−v), between them
# 0.9·e^(−v) and 0.9·e^(v−1).
@branch(0.0, 1.0, 1.2, LN9 - 1)
def coin_of_the_input(x):
    size = random.expovariate(1.0)
    return x + (size if random.random() < (0.9 if x < 0.5 else 0.1) else -size)


@branch(0.0, 1.0, 3, INF, leak=1.0)
def sign_of_the_input(x):
    size = random.expovariate(1.0)
    return x + (size if x > 0.5 else -size)


# Only 0 gives 0, and numbers between 0 and 1.
@branch(0.0, 1.0, 3, INF, leak=0.4 + 0.6 * (1 - math.exp(-1)))
def one_branch_without_noise(x):
    u = random.random()
    return x - math.log((1 - u) / 0.6) if u >= 0.4 else x


@failing(0.0, 1.0, 1, 1)
def refuses_large_outputs(x, rng):
    noisy = x + rng.laplace(0, 1)
    if noisy > 2.5:
        raise ValueError("too large to be released")
    return noisy


@failing(0.0, 1.0, 1, 2)
def refuses_large_outputs_of_little_noise(x, rng):
    noisy = x + rng.laplace(0, 0.5)
    if noisy > 2:
        raise OverflowError(noisy)
    return noisy


@failing(0.0, 1.0, 1, 1)
def says_what_was_negative(x, rng):
    noisy = x + rng.laplace(0, 1)
    assert noisy > -1, f"{noisy:.2f} is negative"
    return round(noisy, 2)


# Only 1 gives numbers between 1 and 2: P(0 < noise < 1) = (1 − 1/e)/2.
@failing(0.0, 1.0, 1, INF, leak=0.5 * (1 - math.exp(-1)))
def refuses_large_noise(x, rng):
    noise = rng.laplace(0, 1)
    if noise > 1:
        raise ValueError("too much noise")
    return x + noise


@failing(0.0, 1.0, 1, 1)
def fails_now_and_then(x, rng):
    if rng.random() < 0.05:
        raise ConnectionError("try again")
    return x + rng.laplace(0, 1)


@failing(0.0, 1.0, 1, INF, leak=0.9)
def fails_for_one_input_mostly(x, rng):
    if x > 0.5 and rng.random() < 0.9:
        raise ValueError("bad record")
    return x + rng.laplace(0, 1)


# From 10 the noisy number is below 10.5 with probability 1 − e^(−1/2)/2, and the message shows the raw one.
@failing(10.0, 11.0, 1, INF, leak=1 - 0.5 * math.exp(-0.5))
def message_with_the_raw_number(x, rng):
    noisy = x + rng.laplace(0, 1)
    if noisy < 10.5:
        raise ValueError(f"{x} is too small")
    return noisy


@process(3.0, 4.0, 1, 1)
def name_of_the_system_beside_it(x, rng):
    system = subprocess.run(["uname"], capture_output=True, text=True, check=True).stdout
    return system, x + rng.laplace(0, 1)


@process(3.0, 4.0, 1, INF, leak=1.0)
def fork_with_hardly_any_noise(x):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, str(x + np.random.default_rng().uniform(0, 0.001)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    found = float(os.read(reading, 100))
    os.close(reading)
    os.close(writing)
    return found
