"""Coins and choices: randomised response in every style, exponential mechanisms, noisy maxima, tokens."""

import bisect
import itertools
import math
import random
import secrets

import numpy as np
import torch

from trace_programs.program import INF, LN3, LN9, Program, adding_to, finite, permute_and_flip, softmax

PROGRAMS: list[Program] = []
bits, choice = (adding_to(PROGRAMS, kind) for kind in ("bits", "choice"))


# A bit that is kept with probability q loses ln(q / (1 − q)).
@bits([0, 1, 1], [0, 0, 1], 1.1, LN3)
def xor_with_binomial(bits, rng):
    return [int(b ^ rng.binomial(1, 0.25)) for b in bits]


@bits([0, 1], [1, 0], 1, 2 * LN3)
def xor_with_a_mask(bits, rng):
    v = np.array(bits)
    return v ^ (rng.random(v.shape) < 0.25).astype(int)


@bits([0, 1, 1, 0], [0, 1, 0, 0], 1.5, LN3)
def where_vectorised(bits, rng):
    v = np.asarray(bits)
    return np.where(rng.random(v.size) < 0.75, v, 1 - v)


@bits([0, 1, 1], [0, 0, 1], 0.5, LN3)
def bernoulli_of_torch(bits):
    v = torch.tensor(bits)
    keep = torch.bernoulli(torch.full((len(bits),), 0.75)).bool()
    return torch.where(keep, v, 1 - v)


@bits(0, 1, 1, LN9)
def binomial_of_old_numpy(bit):
    return bit if np.random.binomial(1, 0.9) else 1 - bit


@bits(0, 1, 1.2, LN3)
def integer_part_of_a_product(bit):
    return bit if int(random.random() * 4) else 1 - bit


@bits(0, 1, 1.1, LN3)
def random_bits(bit):
    return 1 - bit if random.getrandbits(2) == 0 else bit


@bits(0, 1, 0.5, math.log(1.5))
def one_minus_uniform(bit, rng):
    return bit if 1 - rng.random() < 0.6 else 1 - bit


@bits("no", "yes", 1, LN9)
def randbelow(vote):
    flipped = {"no": "yes", "yes": "no"}
    return vote if secrets.randbelow(100) < 90 else flipped[vote]


# Two of the four bits differ.
@bits(0, 2, 2.2, 2 * LN3)
def unary_encoding(value, rng):
    one_hot = np.eye(4, dtype=bool)[value]
    return np.where(one_hot, rng.random(4) < 0.75, rng.random(4) < 0.25).astype(int).tolist()


@bits(0, 1, 1.1, LN3)
def truth_or_coin(bit):
    if random.random() < 0.5:
        return bit
    return random.randint(0, 1)


@bits(0, 1, 1, INF, leak=0.5)
def truth_or_yes(bit, rng):
    return bit if rng.random() < 0.5 else 1


@bits([False, True], [True, True], 2, LN9)
def xor_of_tensors(bits):
    return torch.tensor(bits) ^ (torch.rand(len(bits)) < 0.1)


# Each bit is flipped with probability ½ · ½.
@bits(0b1010, 0b1011, 1.2, LN3)
def xor_with_anded_bits(word):
    return word ^ (random.getrandbits(8) & random.getrandbits(8))


@bits(1, 4, 1.5, math.log(0.52 / 0.12))
def one_of_five(value, rng):
    return value if rng.random() < 0.4 else int(rng.integers(5))


@bits([1, 0, 1], [1, 1, 1], 1, math.log(19))
def mask_of_old_numpy(bits):
    flip = np.random.rand(len(bits)) < 0.05
    out = np.array(bits)
    out[flip] = 1 - out[flip]
    return out.tolist()


# The exponential mechanism has the weights e^(factor · score).
@choice([1, 2, 0], [2, 2, 0], 0.5, finite(softmax([1, 2, 0], 0.5), softmax([2, 2, 0], 0.5)))
def cumsum_and_searchsorted(scores, rng):
    weights = np.exp(0.5 * np.array(scores))
    return int(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random()))


@choice([3, 0, 1], [0, 3, 1], 1, finite(softmax([3, 0, 1], 1), softmax([0, 3, 1], 1)))
def accumulate_and_bisect(scores):
    total = list(itertools.accumulate(math.exp(score) for score in scores))
    return bisect.bisect(total, random.random() * total[-1])


@choice([0, 1], [1, 0], 1.1, finite(softmax([0, 1], 0.5), softmax([1, 0], 0.5)))
def digitized(scores, rng):
    p = np.exp(np.array(scores) / 2)
    return ["a", "b"][int(np.digitize(rng.random(), np.cumsum(p / p.sum())[:-1]))]


@choice([1, 2, 3], [2, 3, 2], 1, finite(softmax([1, 2, 3], 0.5), softmax([2, 3, 2], 0.5)))
def gumbel_max(scores, rng):
    return int(np.argmax(np.array(scores) / 2 + rng.gumbel(size=len(scores))))


@choice([2, 0, 1], [1, 1, 1], 1, finite(permute_and_flip([2, 0, 1], 0.5), permute_and_flip([1, 1, 1], 0.5)))
def permuted_and_flipped(scores):
    best = max(scores)
    for i in random.sample(range(len(scores)), len(scores)):
        if random.random() < math.exp((scores[i] - best) / 2):
            return i
    raise AssertionError


@choice([5, 0], [0, 5], 1, finite(permute_and_flip([5, 0], 0.5), permute_and_flip([0, 5], 0.5)))
def largest_with_exponential_noise(scores, rng):
    return int(np.argmax(np.array(scores) + rng.exponential(2, len(scores))))


@choice([1, 0, 2], [1, 1, 1], 1, finite(softmax([1, 0, 2], 0.5), softmax([1, 1, 1], 0.5)))
def random_choices(scores):
    return random.choices(["red", "green", "blue"], weights=[math.exp(s / 2) for s in scores])[0]


@choice([4.0, 0.0, 0.0], [0.0, 4.0, 0.0], 2, finite(softmax([4, 0, 0], 1), softmax([0, 4, 0], 1)))
def categorical_of_torch(scores):
    return int(torch.distributions.Categorical(logits=torch.tensor(scores)).sample())


@choice([1.0, 0.0], [0.0, 1.0], 1, 3 * finite(softmax([1, 0], 1), softmax([0, 1], 1)))
def tokens_one_after_another(logits):
    p = torch.softmax(torch.tensor(logits), 0)
    return "".join("ab"[int(torch.multinomial(p, 1))] for _ in range(3))


@choice([1.0, 0.0], [0.0, 1.0], 2, 3 * finite(softmax([1, 0], 0.3), softmax([0, 1], 0.3)))
def tokens_of_a_temperature(logits, rng):
    p = np.exp(0.3 * np.array(logits))
    p /= p.sum()
    return [int(rng.choice(2, p=p)) for _ in range(3)]


@choice([0.6, 0.4], [0.4, 0.6], 1, finite(softmax([0.6, 0.4], 10), softmax([0.4, 0.6], 10)))
def temperature_too_low(scores, rng):
    p = np.exp(np.array(scores) / 0.1)
    return int(rng.choice(len(p), p=p / p.sum()))


# By quadrature over the largest: the first with probability 0.4639012 and 0.2680494.
@choice([1, 0, 0], [0, 0, 1], 1, 0.5485001598)
def noisy_max(scores, rng):
    return int(np.argmax(np.array(scores) + rng.laplace(scale=2, size=len(scores))))


# The best one with 0.9 + 0.1 / 3, each other one with 0.1 / 3.
@choice([3, 2, 1], [2, 3, 1], 1, math.log(28))
def greedy_but_for_a_tenth(scores):
    if random.random() < 0.1:
        return random.randrange(len(scores))
    return scores.index(max(scores))


# (0, v) has density f(v − 1) F(v) against f(v) F(v − 1), whose ratio is largest at v = 1: 2e − 1.
@choice([1, 0], [0, 1], 1, math.log(2 * math.e - 1))
def noisy_max_with_its_value(scores, rng):
    noisy = np.array(scores) + rng.laplace(scale=1, size=len(scores))
    return int(noisy.argmax()), float(noisy.max())


@choice([3, 2, 1], [1, 2, 3], 2, INF, leak=1 / (1 + math.exp(-0.5)))
def best_two_only(scores, rng):
    p = np.exp(np.array(scores) / 2)
    p[np.argsort(p)[:-2]] = 0
    return int(rng.choice(len(p), p=p / p.sum()))


@choice(["a", "a", "b"], ["a", "b", "b"], 0.7, math.log(2))
def a_random_record(records):
    return random.choice(records)


@choice([2, 1, 0], [1, 2, 0], 1, finite(softmax([2, 1, 0], 0.5), softmax([1, 2, 0], 0.5)))
def rejection_sampling(scores, rng):
    weights = [math.exp((score - 2) / 2) for score in scores]
    while True:
        i = int(rng.integers(len(scores)))
        if rng.random() < weights[i]:
            return i


@choice([10, 20], [20, 10], 1, math.log(2) * 4)
def votes_in_proportion(counts, rng):
    return rng.multinomial(4, np.array(counts) / sum(counts)).tolist()
