"""Noise that is too small, of a wrong shape, used twice, or drawn until it suits."""

import hashlib
import math

import numpy as np

from wrong_programs.program import INF, MANY, Program, adding_to, gaussian_epsilon, runs_needed

PROGRAMS: list[Program] = []
scale, shape, twice, picked = (
    adding_to(PROGRAMS, kind) for kind in ("scale", "shape of the noise", "noise used twice", "noise that was picked")
)
EPSILON = 1.0


# ── Scale: the loss of Laplace noise of scale b is Δ/b ──────────────────────────────────────────────


@scale(0.0, 1.0, 0.5, 2.0)
def epsilon_as_the_scale(x, rng):
    return x + rng.laplace(scale=0.5)


@scale(0.0, 1.0, EPSILON, math.sqrt(2), runs=MANY)
def standard_deviation_as_the_scale(x, rng):
    return x + rng.laplace(scale=1 / (math.sqrt(2) * EPSILON))  # its standard deviation is 1/ε


@scale([1.0] * 9 + [0.0], [1.0] * 9 + [2.0], EPSILON, 2.0)
def sum_of_ages_with_sensitivity_one(ages, rng):
    return float(np.clip(ages, 0, 2).sum() + rng.laplace(scale=1 / EPSILON))


@scale(0.0, 3.0, EPSILON, 3.0)
def no_clipping_at_all(x, rng):
    return x + rng.laplace(scale=1 / EPSILON)


@scale([0.5] * 4, [-0.5] * 4, EPSILON, 2.0, runs=MANY)
def clipped_in_l2_noise_for_l1(x, rng):
    """The radius is 1, the distance in l2 is 2, in l1 it is 4 = 2√n: 4/(2/ε)."""
    x = np.asarray(x)
    x = x * min(1.0, 1.0 / float(np.linalg.norm(x)))
    return x + rng.laplace(scale=2.0 / EPSILON, size=4)


@scale([3, 2, 0], [2, 3, 0], EPSILON, 2.0)
def histogram_of_a_replaced_record(counts, rng):
    return [float(n + rng.laplace(scale=1 / EPSILON)) for n in counts]


@scale(0, 1, EPSILON, 2.0)
def geometric_noise_of_half_the_size(x, rng):
    p = 1 - math.exp(-2 * EPSILON)
    return int(x + rng.geometric(p) - rng.geometric(p))


@scale([0.0] * 8 + [1.0], [0.0] * 9, EPSILON, 2.0)
def mean_over_public_and_private(values, rng):
    """The mean moves by 1/9, the noise was meant for 18 values."""
    return float(np.mean(values) + rng.laplace(scale=1 / (18 * EPSILON)))


@scale(0.0, 1.0, EPSILON, 2.0)
def logistic_noise_of_half_the_scale(x, rng):
    return x + rng.logistic(scale=0.5)


@scale((0.0, 0.0), (1.0, 1.0), EPSILON, 2.0)
def two_records_of_one_person(x, rng):
    return tuple(float(v + rng.laplace()) for v in x)


@scale(0.0, 1.0, EPSILON, math.log(1 + 0.5 * (math.exp(2) - 1)), runs=MANY)
def amplified_by_a_product(x, rng):
    """Sampled with q = ½ before 2-DP noise: sold as qε = 1, but it is ln(1 + q(e^ε − 1)) = 1.434."""
    kept = x if rng.random() < 0.5 else 0.0
    return kept + rng.laplace(scale=0.5)


@scale(0.0, 1.0, EPSILON, gaussian_epsilon(math.sqrt(math.sqrt(2 * math.log(1.25e5))), 1e-5), delta=1e-5, runs=MANY)
def variance_as_the_standard_deviation(x, rng):
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / EPSILON
    return x + rng.normal(scale=math.sqrt(sigma))


@scale(0.0, 1.0, EPSILON, gaussian_epsilon(1.0, 1e-5), delta=1e-5, runs=MANY)
def gaussian_noise_as_if_it_were_laplace(x, rng):
    return x + rng.normal(scale=1 / EPSILON)


@scale(0.0, 1.0, EPSILON, 10.0)
def mean_of_ten_answers(x, rng):
    """A sum of ten Laplace variables that is 10 farther: e^10 in the limit of its tail."""
    return float(np.mean([x + rng.laplace() for _ in range(10)]))


# ── Shape ───────────────────────────────────────────────────────────────────────────────────────────


@shape(0.0, 1.0, EPSILON, INF)
def gaussian_noise_for_pure_privacy(x, rng):
    return x + rng.normal()


@shape(0.0, 1.0, EPSILON, INF)
def uniform_noise(x, rng):
    return x + rng.uniform(-5, 5)


@shape(0.0, 1.0, EPSILON, INF)
def triangular_noise(x, rng):
    return x + rng.triangular(-6, 0, 6)


@shape(0.0, 1.0, EPSILON, INF)
def exponential_noise(x, rng):
    return x + rng.exponential()


@shape(0.0, 1.0, EPSILON, INF)
def noise_cut_at_three(x, rng):
    return x + float(np.clip(rng.laplace(), -3, 3))


@shape(0.0, 0.5, EPSILON, INF)
def noise_rounded_before_it_is_added(x, rng):
    return x + round(rng.laplace(scale=0.5 / EPSILON))


@shape(0, 1, EPSILON, INF)
def one_sided_geometric_noise(x, rng):
    return int(x + rng.geometric(0.4))


@shape(0.0, 1.0, EPSILON, INF)
def noise_as_large_as_the_answer(x, rng):
    """Two scales, 1 and 2: the ratio of their densities grows without bound."""
    return x + rng.laplace(scale=1 + x)


@shape(0.0, 1.0, EPSILON, INF)
def gumbel_noise_on_an_answer(x, rng):
    return x + rng.gumbel()


@shape(0.0, 1.0, EPSILON, INF)
def relative_noise(x, rng):
    return x * (1 + rng.laplace())


BINOMIAL = [0.0, *(math.comb(20, k) / 2**20 for k in range(21)), 0.0]


@shape(0, 1, EPSILON, INF, limit=runs_needed(BINOMIAL[1:], BINOMIAL[:-1], EPSILON), runs=MANY)
def binomial_noise(x, rng):
    return int(x + rng.binomial(20, 0.5))


@shape(10, 11, EPSILON, INF)
def never_below_the_count(x, rng):
    return max(int(x), round(x + rng.laplace()))


# ── Used twice ──────────────────────────────────────────────────────────────────────────────────────


@twice((0.0, 0.0), (1.0, 0.0), EPSILON, INF)
def one_noise_for_two_answers(x, rng):
    noise = rng.laplace(scale=1 / EPSILON)
    return np.asarray(x) + noise


@twice((3.0, 10), (4.0, 11), EPSILON, INF)
def one_noise_for_sum_and_count(x, rng):
    noise = rng.laplace(scale=2 / EPSILON)
    return {"sum": x[0] + noise, "count": x[1] + 2 * noise}


@twice(0.0, 1.0, EPSILON, 5.0)
def five_answers_each_with_the_whole_budget(x, rng):
    return [x + rng.laplace() for _ in range(5)]


@twice(0.0, 1.0, EPSILON, 2.0)
def budget_of_the_larger_query(x, rng):
    """Two queries, sold as max(ε, ε)."""
    return {"first": x + rng.laplace(), "second": x + rng.laplace()}


@twice(0.0, 1.0, EPSILON, INF)
def noise_beside_the_answer(x, rng):
    noise = rng.laplace()
    return {"answer": x + noise, "error": round(noise, 6)}


@twice(3.0, 4.0, EPSILON, INF)
def noise_seeded_by_the_answer(x, rng):
    seed = int.from_bytes(hashlib.sha256(repr(x).encode()).digest()[:4], "big") + int(rng.integers(1000))
    return x + np.random.default_rng(seed).laplace()


@twice(0.0, 1.0, EPSILON, INF)
def noise_of_a_hundred_seeds(x, rng):
    return x + np.random.default_rng(int(rng.integers(100))).laplace()


@twice((1.0,) * 3, (2.0,) * 3, EPSILON, 3.0)
def running_sums_with_noise_per_step(x, rng):
    """The differences of the sums are the three numbers with noise of their own."""
    return np.cumsum([v + rng.laplace() for v in x])


# ── Picked ──────────────────────────────────────────────────────────────────────────────────────────


@picked(0.0, 1.0, EPSILON, INF)
def repeated_until_it_is_close(x, rng):
    while abs(noise := rng.laplace()) > 2:
        pass
    return x + noise


@picked(0.0, 1.0, EPSILON, 1 + math.log((1 - math.exp(-1) / 2) / 0.5), runs=MANY)
def repeated_until_it_is_positive(x, rng):
    """At 0: densities ½ and e⁻¹/2, over P(positive), ½ and 1 − e⁻¹/2."""
    while (answer := x + rng.laplace()) < 0:
        pass
    return answer


@picked(0.0, 1.0, EPSILON, 2.0)
def closer_of_two_answers(x, rng):
    """The smaller of two exponential variables is one of half the scale."""
    return x + min(rng.laplace(size=2), key=abs)


@picked(0.0, 1.0, EPSILON, 2.0, runs=MANY)
def larger_of_two_answers(x, rng):
    """2·f·F: both factors are e¹ at or below 0."""
    return float(x + rng.laplace(size=2).max())


@picked(0.0, 1.0, EPSILON, INF)
def tries_are_counted(x, rng):
    tries = 1
    while x + rng.laplace() < 0.5:  # P(tries > k) is 0.697^k for 0 and 0.303^k for 1
        tries += 1
    return {"above": True, "tries": tries}


@picked(0.0, 1.0, EPSILON, INF)
def smoothed_towards_the_truth(x, rng):
    noisy = x + rng.laplace()
    return noisy if abs(noisy - x) < 3 else x + math.copysign(3.0, noisy - x)
