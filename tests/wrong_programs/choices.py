"""Randomised responses, exponential mechanisms and samples whose odds are wrong."""

import math

import numpy as np

from wrong_programs.program import INF, LN3, MANY, Program, adding_to, finite

PROGRAMS: list[Program] = []
response, choice, sample = (adding_to(PROGRAMS, kind) for kind in ("randomised response", "choice", "sample"))
E = math.e
KEPT = E / (1 + E)  # the share of right answers at ε = 1


@response(0, 1, 1.0, math.log(4), runs=MANY)
def truth_in_four_of_five(x, rng):
    return x if rng.random() < 0.8 else 1 - x


@response("blue", "red", 1.0, 1 + LN3)
def four_colours_with_the_odds_of_two(x, rng):
    """KEPT against (1 − KEPT)/3."""
    if rng.random() < KEPT:
        return x
    return str(rng.choice([c for c in ("blue", "red", "green", "grey") if c != x]))


@response(0, 1, 1.0, INF)
def only_yes_is_protected(x, rng):
    return int(bool(x) and rng.random() < 0.6)


@response(0, 1, 1.0, 5.0)
def asked_five_times(x, rng):
    return [int(x if rng.random() < KEPT else 1 - x) for _ in range(5)]


@response(0, 3, 1.0, 2.0)
def unary_code_with_the_budget_of_one_bit(x, rng):
    """Two bits differ, each with odds e."""
    return [bool((j == x) == (rng.random() < KEPT)) for j in range(5)]


@response("no", "yes", 1.0, INF)
def no_answer_is_an_answer(x, rng):
    if x == "yes" and rng.random() < 0.05:
        return None
    return x if rng.random() < KEPT else ("no" if x == "yes" else "yes")


@response(0, 1, 1.0, LN3, runs=MANY)
def two_coins(x, rng):
    """Warner's coins, sold as 1: 3 : 1."""
    return x if rng.random() < 0.5 else int(rng.random() < 0.5)


@response([1, 0, 0, 1, 0, 0], [1, 0, 0, 1, 0, 1], 1.0, INF)
def hidden_bits_are_zero(bits, rng):
    return [int(b) if rng.random() < 0.5 else 0 for b in bits]


def weights(scores, factor):
    raised = [math.exp(factor * score) for score in scores]
    return [w / sum(raised) for w in raised]


HIGH, LOW = (1.0,) + (0.0,) * 9, (0.0,) + (1.0,) * 9


@choice(HIGH, LOW, 1.0, finite(weights(HIGH, 1.0), weights(LOW, 1.0)), runs=MANY)
def exponential_mechanism_without_the_half(scores, rng):
    return int(rng.choice(10, p=weights(scores, 1.0)))


@choice(HIGH, LOW, 1.0, finite(weights(HIGH, 2.0), weights(LOW, 2.0)))
def temperature_turned_over(scores, rng):
    return f"item {rng.choice(10, p=weights(scores, 2.0))}"


@choice((0.0,) * 5, (-1.0, 1.0, 1.0, 1.0, 1.0), 1.0, 2.0, runs=MANY)
def noisy_max_with_half_the_noise(scores, rng):
    """Exponential noise of scale 1/ε: the first wins by a gap that moves by 2."""
    return int(np.argmax(np.asarray(scores) + rng.exponential(size=5)))


@choice((0.0,) * 5, (1.0,) * 5, 1.0, 2.5)
def the_largest_noisy_score_itself(scores, rng):
    """P(all five at most 0) is 2^−5 and 2^−5·e^(−5/2)."""
    return float((np.asarray(scores) + rng.laplace(scale=2.0, size=5)).max())


@choice((3.0, 1.0, 0.0), (3.0, 2.0, 0.0), 1.0, INF)
def noisy_argmax_with_its_exact_score(scores, rng):
    best = int(np.argmax(np.asarray(scores) + rng.laplace(scale=2.0, size=3)))
    return best, scores[best]


@choice((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1.0, INF)
def largest_score_without_ties(scores, rng):
    best = max(scores)
    kept = [j for j, score in enumerate(scores) if score == best]
    return int(rng.choice(kept))


def first_two(scores):
    """The probabilities of the first two of three that are drawn one after the other with odds e^score."""
    raised = [math.exp(score) for score in scores]
    return [
        raised[i] / sum(raised) * raised[j] / (sum(raised) - raised[i]) for i in range(3) for j in range(3) if i != j
    ]


FIRST, OTHERS = (5.0, 4.0, 4.0), (4.0, 5.0, 5.0)


@choice(FIRST, OTHERS, 1.0, finite(first_two(FIRST), first_two(OTHERS)), runs=MANY)
def top_two_with_the_budget_of_one(scores, rng):
    noisy = np.asarray(scores) + rng.gumbel(size=3)
    return [int(j) for j in np.argsort(-noisy)[:2]]


@sample([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 99], 1.0, INF)
def one_record_at_random(records, rng):
    return records[int(rng.integers(len(records)))]


@sample([20, 30, 40, 50], [20, 30, 40, 90], 1.0, INF)
def resampled_mean(records, rng):
    return float(np.mean(rng.choice(records, size=4)))


@sample(list(range(12)), [*range(11), 40], 1.0, INF)
def largest_of_a_sample(records, rng):
    return int(max(rng.permutation(records)[:6]))


@sample(["ann", "bob", "eve"], ["ann", "bob", "joe"], 1.0, INF)
def names_in_random_order(names, rng):
    return sorted(rng.permutation(names).tolist()[:2])


@sample([0, 0, 1, 1, 1], [0, 1, 1, 1, 1], 0.3, finite([0.4, 0.6], [0.2, 0.8]))
def one_vote_of_five(votes, rng):
    return bool(votes[int(rng.integers(5))])
