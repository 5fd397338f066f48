"""The input beside the noise: inside objects, in low bits, in seeds, in keys and words, or with no noise at all."""

import collections
import hashlib
import json
import math
import os
import random
import re
import secrets
import struct
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch

from trace_programs.program import INF, LN3, LN9, Program, adding_to, finite

PROGRAMS: list[Program] = []
hidden, low, seed, none, keys = (adding_to(PROGRAMS, k) for k in ("hidden", "low bits", "seed", "no noise", "keys"))


@hidden(3.0, 4.0, 1, INF, leak=1)
def below_a_mask(x, rng):
    return np.ma.masked_array([x, x + rng.laplace()], mask=[True, False])


@hidden(3.0, 4.0, 1, INF, leak=1)
def in_frame_attributes(x):
    frame = pd.DataFrame({"n": [x + np.random.laplace()]})
    frame.attrs["exact"] = x
    return frame


@dataclass
class Answer:
    value: float
    _exact: float = field(default=0.0, repr=False)


@hidden(3.0, 4.0, 1, INF, leak=1)
def in_a_private_field(x, rng):
    return Answer(x + rng.laplace(), x)


@hidden(3.0, 4.0, 1, INF, leak=1)
def in_a_namespace(x):
    out = SimpleNamespace(count=x + random.gauss(0, 5))
    out._cache = {"query": "count", "result": x}
    return out


@hidden(3.0, 4.0, 1, INF, leak=1)
def in_the_base_of_a_view(x, rng):
    both = np.array([x, 0.0])
    both[1] = x + rng.laplace()
    return both[1:]


@hidden(3.0, 4.0, 1, INF, leak=1)
def in_the_storage_of_a_tensor(x):
    both = torch.tensor([x, x])
    both[1] += torch.distributions.Laplace(0.0, 1.0).sample()
    return both[1:]


# What was filtered out is still a category.
@hidden(["ann", "ann"], ["ann", "bob"], 1, INF, leak=1)
def in_categories(names):
    column = pd.Series(names, dtype="category")
    return column[column == "ann"].head(1)


@hidden(3.0, 4.0, 1, 1)
def copied_from_a_view(x, rng):
    both = np.array([x, x + rng.laplace()])
    return both[1:].copy()


@hidden(3.0, 4.0, 1, 1)
def below_a_mask_but_filled(x, rng):
    masked = np.ma.masked_array([x, x + rng.laplace()], mask=[True, False])
    return masked.filled(0.0)


@hidden(3.0, 4.0, 1, 1)
def frame_with_harmless_attributes(x):
    frame = pd.DataFrame({"n": [x + np.random.laplace()]})
    frame.attrs["unit"] = "persons"
    return frame


@hidden(3.0, 4.0, 0.6, 0.5)
def harmless_private_field(x, rng):
    return Answer(x + rng.laplace(scale=2), 0.0)


@low(3, 4, 1, INF, leak=1)
def far_behind_the_point(x, rng):
    return round(x + rng.laplace(), 2) + x * 1e-12


@low(3, 200, 1, INF, leak=1)
def in_the_lowest_byte(x, rng):
    raw = bytearray(struct.pack("<d", 100 + rng.laplace()))
    raw[0] = x
    return struct.unpack("<d", raw)[0]


@low(0, 1, 1, INF, leak=1)
def in_the_lowest_bit(x):
    noisy = np.array([x + np.random.laplace()])
    bits = noisy.view(np.int64)
    bits &= ~1
    bits |= x
    return noisy


@low(3, 4, 1, INF, leak=1)
def in_the_last_digit(x, rng):
    return f"{x + rng.laplace():.3f}{x}"


@low(3.0, 4.0, 1.2, 1)
def lowest_byte_cleared(x, rng):
    raw = bytearray(struct.pack("<d", x + rng.laplace()))
    raw[0] = 0
    return struct.unpack("<d", raw)[0]


# Seeds: two fresh processes draw the same.
_FIXED = np.random.default_rng(42)
_FIXED_PYTHON = random.Random(7)
_FRESH = np.random.default_rng()


@seed(3.0, 4.0, 1, INF, leak=1)
def generator_of_the_module(x):
    return x + _FIXED.laplace()


@seed(0, 1, 2, INF, leak=1)
def python_generator_of_the_module(x):
    return x if _FIXED_PYTHON.random() < 0.75 else 1 - x


@seed(3.0, 4.0, 1, INF, leak=1)
def seeded_in_the_function(x):
    np.random.seed(0)
    return x + np.random.laplace()


@seed([3.0], [4.0], 1, INF, leak=1)
def seeded_torch(x):
    torch.manual_seed(1)
    return torch.tensor(x) + torch.distributions.Laplace(0.0, 1.0).sample()


@seed(3, 4, 1, INF, leak=1)
def seeded_with_the_input(x):
    random.seed(x)
    return x + random.gauss(0, 10)


# Four seeds, four outputs each.
@seed(3.0, 4.0, 1, INF, leak=1)
def one_of_four_seeds(x):
    return x + np.random.default_rng(secrets.randbelow(4)).laplace()


@seed(3.0, 4.0, 1, INF, leak=1)
class SeededObject:
    def __init__(self):
        self.rng = np.random.default_rng(2024)

    def __call__(self, x):
        return x + self.rng.laplace(scale=1)


@seed(3.0, 4.0, 1, 1)
def fresh_generator_of_the_module(x):
    return x + _FRESH.laplace()


@seed(3.0, 4.0, 1, 1)
def seeded_by_secrets(x):
    return x + np.random.default_rng(secrets.randbits(128)).laplace()


@seed(0, 1, 1.2, LN3)
def seeded_by_urandom(x):
    return x if random.Random(os.urandom(16)).random() < 0.75 else 1 - x


@none(3, 4, 5, INF, leak=1)
def ident(x):
    return x


@none(["ann"], ["ann", "bob"], 2, INF, leak=1)
def length(rows):
    return len(rows)


@none("ann@example.org", "bob@example.org", 1, INF, leak=1)
def hashed(address):
    return hashlib.sha256(address.encode()).hexdigest()[:16]


@none([1.0, 2.0], [1.0, 3.0], 4, INF, leak=1)
def mean_as_text(rows):
    return f"mean: {sum(rows) / len(rows):.1f}"


# What is rounded beyond both inputs is e^(1 / 0.01) times as likely for the nearer one.
@none(3, 4, 1, 100)
def rounded_tiny_noise(x, rng):
    return round(x + rng.laplace(scale=0.01))


@none(3, 4, 0.5, 0)
def constant(x):
    return 42


@none(3, 4, 0.5, 0)
def noise_alone(x, rng):
    return 0 * x + rng.laplace()


@none(3, 4, 0.5, 0)
def both_positive(x):
    return x > 0


@keys([["Bonn", 1]], [["Ulm", 1]], 1, INF, leak=1)
def grouped_frame(rows):
    counts = pd.DataFrame(rows, columns=["city", "n"]).groupby("city").size()
    return (counts + np.random.laplace(0, 1, len(counts))).to_dict()


@keys(["red", "red"], ["red", "blue"], 1, INF, leak=1)
def counter_with_noise(colours, rng):
    return {colour: n + rng.laplace(scale=2) for colour, n in collections.Counter(colours).items()}


@keys([12, 5], [12, 11], 1, INF, leak=1)
def filtered_list(values, rng):
    return [v + rng.laplace(scale=100) for v in values if v > 10]


@keys("I live in Ulm", "I live in Bonn", 1, INF, leak=1)
def rare_word_comes_out(text, rng):
    words = ["I", "you", "we", "live", "work", "in", "near"]
    return " ".join(str(rng.choice(words)) if word in words else word for word in text.split())


@keys("call 5551", "call 5552", 2, INF, leak=1)
def number_comes_out(text):
    return re.sub("[a-z]+", lambda found: random.choice(["call", "ring", "phone"]), text)


@keys("one two", "one two three", 1, INF, leak=1)
def number_of_words(text):
    return " ".join("*" for _ in text.split())


@keys("Ann", "Bob", 1, INF, leak=0.05)
def name_rarely_kept(name):
    return name if random.random() < 0.05 else "[NAME]"


@keys([4, 7], [4, 9], 1, INF, leak=1)
def largest_beside_the_sum(values, rng):
    return json.dumps({"sum": sum(values) + rng.laplace(scale=9), "max": max(values)})


# Both colours' counts differ by one: 2 / 2.
@keys(["red", "red"], ["red", "green"], 1, 1)
def histogram_of_fixed_keys(colours, rng):
    return {colour: colours.count(colour) + rng.laplace(scale=2) for colour in ("red", "green", "blue")}


# Kept with ½ + ½ · ¼, another one with ⅛.
@keys("good", "bad", 1.7, finite([5, 1, 1, 1], [1, 5, 1, 1]))
def word_of_a_vocabulary(word):
    return word if random.random() < 0.5 else random.choice(["good", "bad", "fine", "poor"])


@keys("yes no", "yes yes", 1, LN9)
def words_one_by_one(text, rng):
    return " ".join(word if rng.random() < 0.9 else {"yes": "no", "no": "yes"}[word] for word in text.split())


# P(Z > −0.1) against P(Z > 0.1).
@keys(-1, 1, 0.25, math.log((1 - math.exp(-0.1) / 2) / (math.exp(-0.1) / 2)))
def label_of_a_noisy_number(x, rng):
    return {"label": "positive" if x + rng.laplace(scale=10) > 0 else "negative"}
