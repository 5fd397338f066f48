"""Sparse vectors after Lyu, Su and Li (2017), "Understanding the sparse vector technique", and noisy maxima with gaps.

Roth's lecture notes (algorithm 3 there) release the value that was compared: no ε holds for any number of queries.
Lee and Clifton (algorithm 4) forget the number c of answers: (1 + 6c)/4 · ε. Stoddard et al. (5) and Chen et al. (6)
never stop: no ε holds. `truth` and `limit` are those of the pair, by sums over a grid of the threshold's noise.
"""

from functools import cache

import numpy as np

from wrong_programs.program import INF, MANY, Program, adding_to, finite, runs_needed

PROGRAMS: list[Program] = []
sparse, gap = adding_to(PROGRAMS, "sparse vector"), adding_to(PROGRAMS, "noisy maximum")
NOISE = np.linspace(-60, 60, 12_001)
STEP = float(NOISE[1] - NOISE[0])
LEVEL = 1.0  # the threshold


def below(t, scale):
    tail = np.exp(-np.abs(t) / scale) / 2
    return np.where(t < 0, tail, 1 - tail)


def density(t, scale):
    return np.exp(-np.abs(t) / scale) / (2 * scale)


@cache
def marks(queries, threshold_scale, scale, stop):
    """The probabilities of all sequences of answers, up to the stop, in order."""
    found = []

    def follow(place, going, tops):
        if place == len(queries) or tops == stop:
            found.append(float(going.sum()))
            return
        bottom = below(LEVEL + NOISE - queries[place], scale)
        follow(place + 1, going * bottom, tops)
        follow(place + 1, going * (1 - bottom), tops + 1)

    follow(0, density(NOISE, threshold_scale) * STEP, 0)
    return np.array(found)


@cache
def released(queries, threshold_scale, scale):
    """The masses of what comes out up to the first value: which query, and the value's cell; and of no value."""
    going, found = density(NOISE, threshold_scale) * STEP, []
    for query in queries:
        found.append(density(LEVEL + NOISE - query, scale) * STEP * np.cumsum(going))
        going = going * below(LEVEL + NOISE - query, scale)
    return np.concatenate([*found, [going.sum()]])


def of_pair(p, q, claimed=1.0):
    """The loss of two distributions, and the runs that their likelihood ratio needs to refute the claim."""
    possible = (p > 1e-250) & (q > 1e-250)
    return {
        "truth": finite(p[possible], q[possible]),
        "limit": runs_needed(p[possible], q[possible], claimed),
    }


def rising_and_falling(rising, falling):
    """Neighbours where every query may change by 1: some rise from 0, the others fall from 1."""
    return (0.0,) * rising + (1.0,) * falling, (1.0,) * rising + (0.0,) * falling


FOUR, SEVEN, MIXED = rising_and_falling(4, 4), rising_and_falling(3, 7), rising_and_falling(6, 4)
RISING = rising_and_falling(20, 0)


def lee_clifton(queries, rng, stop):
    level, found, tops = LEVEL + rng.laplace(scale=4.0), [], 0
    for query in queries:
        found.append(bool(query + rng.laplace(scale=4 / 3) >= level))
        tops += found[-1]
        if tops >= stop:
            break
    return found


@sparse(*FOUR, 1.0, **of_pair(*(marks(x, 4.0, 4 / 3, 1) for x in FOUR)), runs=MANY)
def lee_and_clifton_stopped_at_one(queries, rng):
    return lee_clifton(queries, rng, 1)


@sparse(*SEVEN, 1.0, **of_pair(*(marks(x, 4.0, 4 / 3, 3) for x in SEVEN)))
def lee_and_clifton_stopped_at_three(queries, rng):
    return lee_clifton(queries, rng, 3)


@sparse(*MIXED, 1.0, **of_pair(*(released(x, 2.0, 2.0) for x in MIXED)), runs=MANY)
def roth_with_the_value_that_was_compared(queries, rng):
    level, found = LEVEL + rng.laplace(scale=2.0), []
    for query in queries:
        noisy = query + rng.laplace(scale=2.0)
        if noisy >= level:
            return [*found, noisy]
        found.append(False)
    return found


@sparse(*RISING, 1.0, **of_pair(*(released(x, 2.0, 2.0) for x in RISING)), runs=MANY)
def roth_with_twenty_queries_that_rise(queries, rng):
    return roth_with_the_value_that_was_compared(queries, rng)


@sparse(*FOUR, 0.5, **of_pair(*(marks(x, 2.0, 2.0, 8) for x in FOUR), claimed=0.5))
def chen_without_a_stop(queries, rng):
    """Sold as 0.5: threshold and queries have noise of scale 2."""
    level = LEVEL + rng.laplace(scale=2.0)
    return ["above" if query + rng.laplace(scale=2.0) >= level else "below" for query in queries]


@sparse((0.0, 1.5, 0.0, 1.5), (1.0, 0.5, 1.0, 0.5), 1.0, INF)
def stoddard_without_noise_on_queries(queries, rng):
    """A larger query is never below while a smaller one is above."""
    level = LEVEL + rng.laplace(scale=2.0)
    return np.array([query >= level for query in queries])


@sparse(*FOUR, 1.0, INF)
def index_of_the_first_above_with_its_answer(queries, rng):
    level = LEVEL + rng.laplace(scale=2.0)
    for place, query in enumerate(queries):
        if query + rng.laplace(scale=4.0) >= level:
            return {"place": place, "answer": query}
    return {}


@gap((0.0,) * 5, (-1.0, 1.0, 1.0, 1.0, 1.0), 1.0, 2.0)
def noisy_maximum_with_the_gap(scores, rng):
    """The gap is free at scale 2/ε. Here it is 1/ε, which holds only where all scores move the same way: if the first
    wins, its lead moves by 2, and at every lead its density falls by e² or less, by e² from its score on."""
    noisy = np.asarray(scores) + rng.laplace(size=5)
    last, best = np.argsort(noisy)[-2:]
    return int(best), float(noisy[best] - noisy[last])


@gap((2.0, 0.0, 0.0), (1.0, 1.0, 1.0), 1.0, INF)
def noisy_maximum_with_the_exact_gap(scores, rng):
    best = int(np.argmax(np.asarray(scores) + rng.laplace(scale=2.0, size=3)))
    return best, scores[best] - max(score for j, score in enumerate(scores) if j != best)
