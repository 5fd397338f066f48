"""Cards that are shuffled, noisy numbers that are sorted, and records that are drawn before the noise."""

import heapq
import math
import os
import random
import secrets
import sqlite3

import numpy as np
import pandas as pd
import torch

from trace_programs.program import INF, LN2, LN3, LN9, Program, adding_to

PROGRAMS: list[Program] = []
cards, order, sample = (adding_to(PROGRAMS, kind) for kind in ("cards", "order", "sample"))


# The deck has t cards that say "truth" and l that say "lie": ε = ln(t / l).
@cards(0, 1, 1, LN2)
def shuffled_deck(vote):
    cards = ["truth", "truth", "lie"]
    random.shuffle(cards)
    return vote if cards[0] == "truth" else 1 - vote


@cards(0, 1, 1.2, LN3)
def deck_of_own_random(vote):
    cards = ["truth"] * 3 + ["lie"]
    random.Random().shuffle(cards)
    return vote if cards[0] == "truth" else 1 - vote


@cards(0, 1, 1, LN9)
def deck_of_system_random(vote):
    cards = ["truth"] * 9 + ["lie"]
    random.SystemRandom().shuffle(cards)
    return vote if cards[0] == "truth" else 1 - vote


@cards("no", "yes", 0.7, LN2)
def deck_of_generator(vote, rng):
    cards = ["truth", "truth", "lie"]
    rng.shuffle(cards)
    if cards[-1] == "lie":
        return "yes" if vote == "no" else "no"
    return vote


@cards(0, 1, 1, math.log(5))
def deck_of_old_numpy(vote):
    cards = ["truth"] * 5 + ["lie"]
    np.random.shuffle(cards)
    return vote if cards[0] == "truth" else 1 - vote


@cards(False, True, 1.1, LN3)
def deck_by_permutation(vote, rng):
    answers = [vote, vote, vote, not vote]
    return answers[int(rng.permutation(4)[0])]


@cards(0, 1, 0.5, LN2)
def deck_by_sample(vote):
    (card,) = random.sample(["truth", "truth", "lie"], 1)
    return vote if card == "truth" else 1 - vote


@cards(0, 1, 0.75, LN2)
def deck_by_randperm(vote):
    deck = torch.tensor([vote, vote, 1 - vote])
    return int(deck[torch.randperm(3)][0])


@cards(0, 1, 1, math.log(4))
def deck_by_secrets(vote):
    return secrets.choice([vote, vote, vote, vote, 1 - vote])


# The same rows in another order.
@cards(["ann", "bob", "cyd"], ["cyd", "ann", "bob"], 0.5, 0)
def shuffled_rows(rows):
    rows = list(rows)
    random.shuffle(rows)
    return rows


@cards(["ann", "bob"], ["ann", "cyd"], 1, INF, leak=1)
def shuffled_names(rows, rng):
    rng.shuffle(rows)
    return rows


# Sorted noise of counts that are each other's permutation has the same law.
@order([50, 0], [0, 50], 1, 0)
def sorted_counts(counts, rng):
    return sorted(c + rng.laplace(0, 2) for c in counts)


@order([9, 1], [1, 9], 0.5, 0)
def sorted_in_place(counts):
    noisy = [c + np.random.laplace(0, 1) for c in counts]
    noisy.sort()
    return noisy


@order([7, 3], [3, 7], 1, 0)
def sorted_by_hand(counts):
    a, b = (c + random.gauss(0, 1) for c in counts)
    return (a, b) if a < b else (b, a)


@order([4, 0, 2], [0, 2, 4], 1, 0)
def from_a_heap(counts, rng):
    heap = []
    for c in counts:
        heapq.heappush(heap, c + rng.laplace(scale=1))
    return [heapq.heappop(heap) for _ in counts]


@order([5, 0], [0, 5], 1, 0)
def set_of_noisy_numbers(counts, rng):
    return {float(c + rng.laplace()) for c in counts}


@order([10, 0, 5], [5, 10, 0], 0.5, 0)
def sorted_array(counts):
    return np.sort(np.array(counts) + np.random.laplace(size=len(counts)))[::-1]


@order([8.0, 2.0], [2.0, 8.0], 1, 0)
def sorted_tensor(counts):
    noisy = torch.tensor(counts) + torch.distributions.Laplace(0.0, 1.0).sample((2,))
    return torch.sort(noisy).values


@order([6, 1], [1, 6], 1, 0)
def smallest_and_largest(counts, rng):
    noisy = np.array(counts) + rng.normal(0, 1, 2)
    return float(noisy.min()), float(noisy.max())


# Above 50, each of the two is e^25 times as likely to be the 50 as to be a 0: 50 / 2.
@order([50, 0], [0, 0], 1, 25)
def sorted_other_counts(counts, rng):
    return sorted(c + rng.laplace(0, 2) for c in counts)


@order({"ann": 3, "bob": 5}, {"ann": 5, "bob": 3}, 1, INF, leak=1)
def ranked_by_true_counts(counts, rng):
    ranked = sorted(counts, key=counts.get)
    return [(name, counts[name] + rng.laplace(scale=10)) for name in ranked]


# The names come with the numbers, so nothing is hidden by the order: 2 + 2.
@order({"ann": 3, "bob": 5}, {"ann": 5, "bob": 3}, 1, 4)
def ranked_by_noisy_counts(counts):
    noisy = {name: c + np.random.laplace(0, 1) for name, c in counts.items()}
    return sorted(noisy.items(), key=lambda item: item[1], reverse=True)


# One record more, kept with probability q before Laplace noise of scale 1/a: ln(1 − q + q e^a).
@sample([1, 1, 1], [1, 1, 1, 1], 2.99, math.log(0.03 + 0.97 * math.exp(3)))
def rows_kept_by_sqlite(rows, rng):
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE t (v REAL)")
        db.executemany("INSERT INTO t VALUES (?)", [(v,) for v in rows])
        total = db.execute("SELECT TOTAL(v) FROM t WHERE abs(random()) % 100 < 97").fetchone()[0]
    db.close()
    return total + rng.laplace(0, 1 / 3)


@sample([1, 1], [1, 1, 1], 1, math.log((1 + math.exp(3)) / 2))
def row_order_of_sqlite(rows, rng):
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (v REAL)")
    db.executemany("INSERT INTO t VALUES (?)", [(v,) for v in rows])
    (total,) = db.execute("SELECT TOTAL(CASE WHEN random() > 0 THEN v END) FROM t").fetchone()
    db.close()
    return total + rng.laplace(0, 1 / 3)


@sample([1, 0], [1, 0, 1], 0.65, math.log((1 + math.e) / 2))
def kept_by_urandom(rows):
    total = sum(v for v in rows if os.urandom(1)[0] < 128)
    return total + random.expovariate(1) - random.expovariate(1)


@sample([2], [2, 1], 1.95, math.log(0.1 + 0.9 * math.exp(2)))
def kept_by_secrets(rows):
    return sum(v for v in rows if secrets.randbelow(10) < 9) + np.random.laplace(0, 0.5)


# Two of four rows: the one that differs is among them with probability ½.
@sample([1, 0, 0, 0], [0, 0, 0, 0], 0.65, math.log((1 + math.e) / 2))
def sampled_frame(rows):
    frame = pd.DataFrame({"v": rows}).sample(n=2)
    return frame["v"].sum() + np.random.laplace()


@sample([1, 0, 0, 0], [0, 0, 0, 0], 1, math.log((1 + math.exp(10)) / 2))
def chosen_rows(rows, rng):
    return rng.choice(rows, size=2, replace=False).sum() + rng.laplace(scale=0.1)


@sample(["ann", "bob", "cyd", "dan"], ["ann", "bob", "cyd", "eve"], 1, INF, leak=0.5)
def random_sample_of_names(names):
    return sorted(random.sample(names, 2))


# Two of the binomial numbers: 3 of 3 is kept with probability ⅛.
@sample([1, 1], [1, 1, 1], 2, INF, leak=0.125)
def sample_without_noise(rows, rng):
    return sum(v for v in rows if rng.random() < 0.5)


# Noise that is small beside one record, but each record is kept with probability 1/10 only.
@sample([0, 0], [0, 0, 5], 2, math.log(0.9 + 0.1 * math.exp(5)))
def sample_with_little_noise(rows, rng):
    kept = np.array(rows)[rng.random(len(rows)) < 0.1]
    return kept.sum() + rng.laplace(scale=1)
