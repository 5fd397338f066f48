"""Right mechanisms of many kinds, each at its exact guarantee: what a call keeps, how it starts, what it gives.

Every audit has a subject of its own and its own seed (0, 1, 2, …, none chosen).
"""

from __future__ import annotations

import math
import os
import time
from functools import lru_cache

import numpy as np
from scipy.stats import norm

import dpassay
from dpassay.pipeline.regions import SensitivityBall

ALPHA = 0.05
RUNS = 480
DELTA = norm.cdf(0.5 - 1) - math.e * norm.cdf(-0.5 - 1)  # of Gaussian noise with σ = 1 at ε = 1, inputs 1 apart
KEPT = math.e / (1 + math.e)  # the share of right answers at ε = 1


def laplace(x, rng):
    return x + rng.laplace()


def in_place(x, rng):
    x += rng.laplace(size=x.shape)
    return x


def list_in_place(x, rng):
    x[0] += rng.laplace()
    return x


def dict_in_place(x, rng):
    x["row"][0] += rng.laplace()
    x["calls"] = x.get("calls", 0) + 1
    return x


def frame_in_place(x, rng):
    x["value"] += rng.laplace()
    return x


class Buffered:
    def __init__(self):
        self.buffers = {}

    def __call__(self, x, rng):
        buffer = self.buffers.setdefault(x, np.zeros(2))
        buffer[:] = x + rng.laplace(), rng.normal()
        return buffer


class Cached:
    """Keeps what it computes of an input, not its noise."""

    def __init__(self):
        self.known = {}

    def __call__(self, x, rng):
        return self.known.setdefault(x, min(max(x, 0.0), 1.0)) + rng.laplace()


class KeptInSlots:
    """Gives the answer to the last input again, for as long as the input stays the same."""

    __slots__ = ("known", "said")

    def __init__(self):
        self.known, self.said = None, None

    def __call__(self, x, rng):
        if self.known != x:
            self.known, self.said = x, x + rng.laplace()
        return self.said


def kept_in_a_dict():
    answers = {}
    return lambda x, rng: answers.setdefault(x, x + rng.laplace())


def kept_in_a_list():
    answers = [None, None]

    def noisy(x, rng):
        if answers[x] is None:
            answers[x] = x + rng.laplace()
        return answers[x]

    return noisy


def kept_in_an_array():
    answers = np.full(2, np.nan)

    def noisy(x, rng):
        if np.isnan(answers[x]):
            answers[x] = x + rng.laplace()
        return float(answers[x])

    return noisy


def kept_in_a_variable():
    known, said = None, None

    def noisy(x, rng):
        nonlocal known, said
        if known != x:
            known, said = x, x + rng.laplace()
        return said

    return noisy


def kept_by_a_cache():
    own = np.random.default_rng()
    return lru_cache(lambda x: x + own.laplace())


def from_a_supply():
    """Draws noise for many calls at once, and takes one number after the other."""
    supply = []

    def noisy(x, rng):
        if not supply:
            supply.extend(rng.laplace(size=50).tolist())
        return x + supply.pop()

    return noisy


class Stateful:
    """Counts its calls, and draws from a generator of its own."""

    def __init__(self):
        self.calls, self.rng = 0, np.random.default_rng()

    def __call__(self, x):
        self.calls += 1
        return x + self.rng.laplace()


class Alternating:
    """Every second call has twice the noise: no output says which calls these are."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, rng):
        self.calls += 1
        return x + rng.laplace(scale=1 + self.calls % 2)


class SlowToStart:
    def __init__(self):
        self.ready = False

    def __call__(self, x, rng):
        if not self.ready:
            time.sleep(0.002)
            self.ready = True
        return x + rng.laplace()


def seeded(x, rng):
    return x + np.random.default_rng(rng.bit_generator.seed_seq).laplace()


def of_the_system(x):
    return x + np.random.default_rng(int.from_bytes(os.urandom(8), "big")).laplace()


def answer(x, rng):
    return x if rng.random() < KEPT else 1 - x


def raising(x, rng):
    if answer(x, rng):
        raise ValueError("no")
    return 0


def seldom_raising(x, rng):
    if rng.random() < 0.1:
        raise RuntimeError(f"try again ({rng.integers(3)})")
    return x + rng.laplace()


def nested(x, rng):
    return {"value": [x + rng.laplace(), {"other": int(rng.integers(3))}], "name": "a"}


def ragged(x, rng):
    return [x + rng.laplace(), *rng.normal(size=rng.integers(4)).tolist()]


def mostly_none(x, rng):
    return x + rng.laplace() if rng.random() < 0.1 else None


def mixed(x, rng):
    y = x + rng.laplace()
    return (y, round(y), f"{y:.1f}", [y], None)[rng.integers(5)]


def text(x, rng):
    return " ".join([("yes", "no")[answer(x, rng)], *(f"w{rng.integers(5)}" for _ in range(3))])


def parity(x, rng):
    """A large integer whose parity is the randomized answer."""
    return int(2 * rng.integers(-(10**6), 10**6)) + answer(x, rng)


def parity_of_three(x, rng):
    bits = rng.integers(0, 2, size=12)
    bits[9] = (bits[2] + bits[5] + answer(x, rng)) % 2
    return bits.tolist()


def multiples(x, rng):
    """A released number of three digits after the point."""
    return round(x + rng.laplace(), 3)


def lattice(x, rng):
    """Two-sided geometric noise in steps of 0.1, e^(−0.1) a step: the inputs are ten steps apart."""
    up, down = rng.geometric(-math.expm1(-0.1), size=2)
    return (10 * int(x) + int(up - down)) / 10


def repeating(x, rng):
    """A list that repeats an entry where the randomized answer is 1."""
    row = rng.normal(size=6)
    if answer(x, rng):
        row[rng.integers(3)] = row[3 + rng.integers(3)]
    return row.tolist()


def shared_noise(x, rng):
    """Two of twenty numbers have the same large noise: only their difference says something."""
    row = 100 * rng.normal(size=20)
    row[17] = row[4] + x + rng.laplace()
    return row


def rare_marks(x, rng):
    return 50.0 + rng.integers(3) if rng.random() < 0.01 else x + rng.laplace()


def negative_zero(x, rng):
    return -0.0 if answer(x, rng) else 0.0


def small_losses(x, n, rng):
    return np.ravel(x)[0] + rng.laplace(scale=10, size=n)


small_losses.independent_rows = True


def gaussian(x, rng):
    return x + rng.normal()


def one_of_four(x, rng):
    """Each of four is kept with odds e against each other one."""
    return x if rng.random() < math.e / (math.e + 3) else (x + int(rng.integers(1, 4))) % 4


NUMBERS, ONE = {"pairs": [(0.0, 1.0)]}, {"pairs": [(0, 1)]}
ROWS, LISTS = {"pairs": [(np.zeros(1), np.ones(1))]}, {"pairs": [([0.0], [1.0])]}
DICTS = {"pairs": [({"row": [0.0]}, {"row": [1.0]})]}


def frames():
    import pandas as pd

    return {"pairs": [(pd.DataFrame({"value": [0.0]}), pd.DataFrame({"value": [1.0]}))]}


KINDS = {  # what makes a subject, what is audited, and options
    "text": (lambda: text, ONE, {}),
    "raising": (lambda: raising, ONE, {}),
    "nested": (lambda: nested, NUMBERS, {}),
    "stateful": (Stateful, NUMBERS, {}),
    "in place": (lambda: in_place, ROWS, {}),
    "list in place": (lambda: list_in_place, LISTS, {}),
    "dict in place": (lambda: dict_in_place, DICTS, {}),
    "data frame in place": (lambda: frame_in_place, frames, {"runs": RUNS // 2}),
    "buffered": (Buffered, NUMBERS, {}),
    "cached": (Cached, NUMBERS, {}),
    "kept in a dict": (kept_in_a_dict, NUMBERS, {}),
    "kept in a list": (kept_in_a_list, ONE, {}),
    "kept in an array": (kept_in_an_array, ONE, {}),
    "kept in a variable": (kept_in_a_variable, NUMBERS, {}),
    "kept in slots": (KeptInSlots, NUMBERS, {}),
    "kept by a cache": (kept_by_a_cache, NUMBERS, {}),
    "from a supply": (from_a_supply, NUMBERS, {}),
    "alternating": (Alternating, NUMBERS, {}),
    "slow to start": (SlowToStart, NUMBERS, {}),
    "seeded by its generator": (lambda: seeded, NUMBERS, {}),
    "of the system": (lambda: of_the_system, NUMBERS, {}),
    "seldom raising": (lambda: seldom_raising, NUMBERS, {}),
    "ragged": (lambda: ragged, NUMBERS, {}),
    "mostly none": (lambda: mostly_none, NUMBERS, {}),
    "mixed types": (lambda: mixed, NUMBERS, {}),
    "epsilon and delta": (lambda: gaussian, NUMBERS, {"delta": DELTA}),
    "a fixed number": (lambda: laplace, NUMBERS, {"fixed": True}),
    "a fixed number, with delta": (lambda: gaussian, NUMBERS, {"delta": DELTA, "fixed": True}),
    "searched inputs": (lambda: laplace, {"region": SensitivityBall(1, 1, 1)}, {}),
    "farther inputs": (
        lambda: small_losses,
        {"region": SensitivityBall(math.inf, 1, 1)},
        {"epsilon": 0.1, "fixed": True, "runs": 24_000},
    ),
    "several inputs": (lambda: laplace, {"inputs": [0.0, 0.3, 0.6, 1.0]}, {}),
    "four candidates": (lambda: one_of_four, {"candidates": [0, 1, 2, 3]}, {}),
    "answers": (lambda: answer, ONE, {}),
    "parity": (lambda: parity, ONE, {}),
    "parity of three": (lambda: parity_of_three, ONE, {}),
    "multiples": (lambda: multiples, NUMBERS, {}),
    "lattice": (lambda: lattice, NUMBERS, {}),
    "repeating": (lambda: repeating, ONE, {}),
    "shared noise": (lambda: shared_noise, NUMBERS, {}),
    "rare marks": (lambda: rare_marks, NUMBERS, {"runs": 4 * RUNS}),
    "negative zero": (lambda: negative_zero, ONE, {}),
}


def audited(kind, seed, **more):
    make, given, options = KINDS[kind]
    given = given() if callable(given) else given
    asked = {"until_refuted": not options.get("fixed"), "epsilon": 1, "alpha": ALPHA, "runs": RUNS, **options, **more}
    return dpassay.audit(make(), shrink=False, seed=seed, **given, **asked)


def resumed(seed, path):
    """Whether an audit that is saved halfway and resumed refutes."""
    first = audited("answers", seed, runs=RUNS // 2, save=path)
    return first.refuted or audited("answers", seed, save=path, resume=True).refuted


def with_workers(seed):
    """Whether an audit in two processes refutes."""
    return dpassay.audit(
        "query(l1, 1) | laplace(1)",
        epsilon=1,
        alpha=ALPHA,
        runs=4000,
        workers=2,
        shrink=False,
        seed=seed,
        until_refuted=True,
    ).refuted
