"""Ordinary ways to write a mechanism down: frames, one-hot draws, objects that are returned, races, formulas."""

import base64
import math
import random
import struct

import numpy as np
import pandas as pd
import torch

from trace_programs.program import INF, LN3, Program, adding_to, finite, gaussian, softmax

PROGRAMS: list[Program] = []
style = adding_to(PROGRAMS, "style")


# A bit is 1 with probability 3/4 if it was 1, and 1/4 if it was 0; two bits differ.
@style(1, 4, 2.2, 2 * LN3)
def permanent_response(value):
    out = []
    for i in range(6):
        u = random.random()
        if u < 0.25:
            out.append(1)
        elif u < 0.5:
            out.append(0)
        else:
            out.append(int(i == value))
    return out


# Where no bit is flipped, pandas gives the series itself and no copy, which shows nothing.
@style([1, 0, 1, 1], [1, 0, 1, 0], 1, math.log(7 / 3))
def masked_series(bits):
    bits = pd.Series(bits)
    flips = np.random.binomial(1, 0.3, len(bits)).astype(bool)
    return bits.mask(flips, 1 - bits)


# The scores are between -1/2 and 1/2, so the first word is e^1 times as likely.
@style([3, 0, -3], [-3, 0, 3], 0.5, 1.0)
def word_from_one_hot(scores):
    p = np.array(softmax(np.clip(scores, -0.5, 0.5), 1.0))
    return ["yes", "maybe", "no"][np.random.multinomial(1, p / p.sum()).argmax()]


@style([3, 0, -3], [-3, 0, 3], 1, 1.0)
def several_words_from_one_hot(scores):
    p = np.array(softmax(np.clip(scores, -0.5, 0.5), 1.0))
    return ["yes", "maybe", "no"][int(np.flatnonzero(np.random.multinomial(1, p / p.sum()))[0])]


class _Session:
    def __init__(self):
        self.asked = []

    def answer(self, x):
        self.asked.append(x)
        return x + float(torch.distributions.Laplace(0.0, 1.0).sample())


@style(0.0, 1.0, 1, 1.0)
def answer_of_a_session(x):
    return _Session().answer(x)


@style(0.0, 1.0, 1, INF, leak=1.0)
def session_that_remembers(x):
    session = _Session()
    session.answer(x)
    return session


@style([1, 2, 0], [2, 1, 1], 1, finite(softmax([1, 2, 0], 0.5), softmax([2, 1, 1], 0.5)))
def first_in_a_race(scores):
    return min(range(len(scores)), key=lambda i: random.expovariate(math.exp(scores[i] / 2)))


@style([1, 2, 0], [2, 1, 1], 0.4, finite(softmax([1, 2, 0], 0.5), softmax([2, 1, 1], 0.5)))
def first_in_a_race_with_less_claimed(scores):
    times = [random.expovariate(math.exp(score / 2)) for score in scores]
    return times.index(min(times))


@style(0.0, 1.0, 1.5, gaussian(1 / 3, 0.001), delta=0.001)
def box_and_muller(x):
    u, v = 1 - random.random(), random.random()
    return x + 3 * math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


@style(0.0, 1.0, 1, gaussian(2.0, 0.001), delta=0.001)
def box_and_muller_with_half_a_unit(x):
    u, v = 1 - random.random(), random.random()
    return x + 0.5 * math.sqrt(-2 * math.log(u)) * math.sin(2 * math.pi * v)


@style([1.0, 0.5], [1.0, -0.5], 1, gaussian(0.25, 0.001), delta=0.001)
def weights_that_are_set_before_use(row):
    layer = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(layer.weight)
    gradient = torch.tensor([row]) + layer.weight.detach()
    return (gradient + torch.randn(1, 2) * 4.0).flatten().tolist()


def _two_best(scores, scale):
    weights = softmax(scores, 1 / scale)
    total = sum(weights)
    pairs = [(i, j) for i in range(len(weights)) for j in range(len(weights)) if i != j]
    return [weights[i] / total * weights[j] / (total - weights[i]) for i, j in pairs]


@style([3, 1, 0], [2, 2, 1], 0.5, finite(_two_best([3, 1, 0], 0.5), _two_best([2, 2, 1], 0.5)))
def two_best_with_sharp_noise(counts):
    noisy = np.asarray(counts, float) + np.random.gumbel(0, 0.5, len(counts))
    return np.argsort(-noisy)[:2].tolist()


@style(0.0, 1.0, 1, 1.0)
def exponential_of_a_noisy_number(x):
    return min(100.0, math.exp(x + np.random.laplace(0, 1)))


@style(0.0, 1.0, 1, 4.0)
def exponential_of_a_less_noisy_number(x):
    return f"{min(100.0, math.exp(x + np.random.laplace(0, 0.25))):.3f}"


@style(5.0, 6.0, 1, 10.0)
def packed_and_in_hexadecimal(x):
    return struct.pack(">d", x + np.random.laplace(0, 0.1)).hex()


@style(5.0, 6.0, 1, 10.0)
def packed_and_in_base64(x):
    return base64.b64encode(struct.pack("<d", x + np.random.laplace(0, 0.1))).decode()


def _adder(scale):
    rng = np.random.default_rng()

    def add(value):
        return value + rng.laplace(0, scale)

    return add


class _Releases:
    def __init__(self):
        self.rng = np.random.default_rng()

    def release(self, x):
        return x + self.rng.laplace(0, 1)


_ADD, _RELEASES = _adder(1.0), _Releases()


@style(5.0, 6.0, 1, 1.0)
def generator_in_a_closure(x):
    return _ADD(x)


@style(5.0, 6.0, 1, 1.0)
def generator_in_an_object(x):
    return _RELEASES.release(x)
