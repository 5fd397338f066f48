"""Whether the classic algorithms are what they are called: distributions by formula, ε by the exact ratio."""

import itertools
import math

import numpy as np
import pytest
from classics import CLASSICS, EPSILON, ONE_TIME_RAPPOR, RAPPOR, Rappor, SparseVector, sparse_vector
from limits import first_top, limit
from scipy import stats
from scipy.integrate import quad

from statistics_helper import cdf_p_value, counts_p_value, frequencies_p_value, frequency_p_value, generator, require

RUNS = 200_000
BY_NAME = {classic.name: classic for classic in CLASSICS}


def draw(name, classic, x, runs=RUNS):
    return BY_NAME[classic].mechanism.sample(np.asarray(x, dtype=float), runs, generator(name))


def smallest(p_values):
    """The p-value of several tests together, by the union bound."""
    p_values = list(p_values)
    return min(1.0, len(p_values) * min(p_values))


def below(t, scale):
    """Laplace noise's distribution function, for one number: scipy.stats would take most of this file's time."""
    return math.exp(t / scale) / 2 if t < 0 else 1 - math.exp(-t / scale) / 2


def integral(function, corners, far):
    """The integral of a function that is smooth but at its corners and nothing `far` outside them."""
    corners = sorted(corners)
    edges = [corners[0] - far, *corners, corners[-1] + far]
    return sum(quad(function, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in itertools.pairwise(edges))


def outcome_probability(mechanism: SparseVector, x, marks):
    """P(the first answers are these) where one noisy threshold serves them all."""
    rho, nu, level = mechanism.threshold_scale, mechanism.query_scale, mechanism.threshold
    steps = [(float(query) - level, -1 if top else 1) for query, top in zip(x, marks, strict=False)]

    def integrand(z):
        return math.exp(-abs(z) / rho) / (2 * rho) * math.prod(below(sign * (z - at), nu) for at, sign in steps)

    return integral(integrand, {0.0, *(at for at, _ in steps)}, 40 * (rho + nu))


# ── The table ───────────────────────────────────────────────────────────────────────────────────


def test_an_algorithm_is_right_if_and_only_if_its_epsilon_is_at_most_what_is_claimed():
    for classic in CLASSICS:
        assert classic.right == (classic.true_epsilon <= classic.claimed * (1 + 1e-12)), classic.name
        assert classic.sniper is None or classic.sniper < classic.true_epsilon
    assert len(BY_NAME) == len(CLASSICS) == 20


@pytest.mark.parametrize("classic", CLASSICS, ids=lambda classic: classic.name)
def test_the_pair_is_of_neighbours_and_can_be_run(classic):
    x, y = (np.asarray(side, dtype=float) for side in classic.pair)
    assert x.shape == y.shape == (classic.dim,)
    gaps = np.abs(x - y)
    if classic.norm == "values":
        assert {x[0], y[0]} <= set(classic.values)
        assert gaps[0] <= classic.step
    else:
        assert (gaps.sum() if classic.norm == "l1" else gaps.max()) <= 1
    assert len(classic.mechanism.sample(x, 7, np.random.default_rng(0))) == 7


# ── Noise on numbers ────────────────────────────────────────────────────────────────────────────


def test_laplace():
    name = "classic laplace"
    require(name, cdf_p_value(draw(name, "laplace", [3]), stats.laplace(loc=3, scale=10).cdf))


def test_histograms():
    name, counts = "classic histograms", [0, 1, 2, 3, 4]
    samples = {scale: draw(name, f"noisy histogram {k}", counts) for k, scale in ((1, 10), (2, 0.1))}
    distributions = {(scale, i): stats.laplace(loc=i, scale=scale).cdf for scale in samples for i in counts}
    require(
        name,
        smallest(cdf_p_value(samples[scale][:, i], distribution) for (scale, i), distribution in distributions.items()),
    )


def test_truncated_geometric():
    name, alpha = "classic geometric", math.exp(-EPSILON)
    distribution = np.array([alpha ** abs(k - 2) * (1 if k in (0, 5) else 1 - alpha) / (1 + alpha) for k in range(6)])
    counts = np.bincount(draw(name, "truncated geometric", [2]).astype(int), minlength=6)
    require(name, counts_p_value(counts, distribution))


def test_prefix_sum():
    name, x = "classic prefix sum", np.arange(10.0)
    steps = np.diff(draw(name, "prefix sum", x), axis=1, prepend=0)
    require(name, smallest(cdf_p_value(steps[:, i], stats.laplace(loc=x[i], scale=10).cdf) for i in range(10)))


def test_twenty_answers():
    name = "classic twenty answers"
    answers = draw(name, "twenty laplace answers", [1])
    assert answers.shape == (RUNS, 20)
    own = [cdf_p_value(answers[:, i], stats.laplace(loc=1, scale=200).cdf) for i in range(20)]
    together = frequency_p_value(int((answers[:, :6] > 1).all(axis=1).sum()), RUNS, 2**-6)
    require(name, smallest([*own, together]))


# ── Noisy max ───────────────────────────────────────────────────────────────────────────────────


def test_noisy_max_index():
    # Five equal numbers: 1/5 each. With exponential noise, 2 behind the other four costs a factor e^(−2/b) = e^−ε.
    name = "classic noisy max index"
    equal = [np.bincount(draw(name, f"noisy max {k}", [0] * 5), minlength=5) for k in (1, 2)]
    behind = draw(name, "noisy max 2", [-1, 1, 1, 1, 1])
    first = frequency_p_value(int((behind == 0).sum()), RUNS, math.exp(-EPSILON) / 5)
    require(name, smallest([*(counts_p_value(counts, np.full(5, 0.2)) for counts in equal), first]))


def test_noisy_max_value():
    name = "classic noisy max value"
    p_values = []
    for kind, noise in (("noisy max 3", stats.laplace(scale=20)), ("noisy max 4", stats.expon(scale=20))):
        for level in (0, 1):
            values = draw(name, kind, [level] * 5)
            p_values.append(cdf_p_value(values, lambda t, noise=noise, level=level: noise.cdf(t - level) ** 5))
    low = int((draw(name, "noisy max 3", [0] * 5) <= 0).sum())
    require(name, smallest([*p_values, frequency_p_value(low, RUNS, 1 / 32)]))


def test_noisy_max_4_cannot_give_what_it_gives_for_a_neighbour():
    (x, y), rng = BY_NAME["noisy max 4"].pair, np.random.default_rng(4)
    mechanism = BY_NAME["noisy max 4"].mechanism
    assert (mechanism.sample(np.array(x), RUNS, rng) < 11).any()
    assert not (mechanism.sample(np.array(y), RUNS, rng) < 11).any()


# ── Sparse vector ───────────────────────────────────────────────────────────────────────────────


def test_sparse_vector_outcomes():
    # With c = 1 the place of the first ⊤ is the whole outcome of 1, 2 and 4, and all of 3 but the value.
    name, x = "classic sparse vector outcomes", [0.0, 5.0, -3.0, 1.0, 1.0, 1.0, 8.0, 0.0, 2.0, -6.0]
    p_values = []
    for k in (1, 2, 3, 4):
        mechanism = BY_NAME[f"sparse vector {k}"].mechanism
        answers = mechanism.sample(np.array(x), RUNS, generator(name))
        tops = np.nan_to_num(answers) != 0
        place = np.where(tops.any(axis=1), tops.argmax(axis=1), 10)
        assert (np.isnan(answers) == (np.arange(10) > place[:, None])).all()
        distribution = [outcome_probability(mechanism, x, [0] * i + [1]) for i in range(10)]
        p_values.append(
            counts_p_value(np.bincount(place, minlength=11), np.array([*distribution, 1 - sum(distribution)]))
        )
    require(name, smallest(p_values))


def test_sparse_vector_2_draws_a_new_threshold_after_each_top():
    # With c = 2 the first two answers ⊤⊤ are two independent events; with one threshold they would not be.
    name = "classic sparse vector 2 refreshed"
    mechanism = sparse_vector(2, EPSILON, 2, 1.0)
    answers = mechanism.sample(np.array([0.0, 3.0, 1.0]), RUNS, generator(name))
    both = outcome_probability(mechanism, [0.0], [1]) * outcome_probability(mechanism, [3.0], [1])
    stopped = np.isnan(answers[:, 2])
    assert (stopped == (answers[:, :2] == 1).all(axis=1)).all()
    require(name, frequency_p_value(int(stopped.sum()), RUNS, both))


def test_sparse_vector_3_gives_the_value_it_compared():
    # For one query the density is f(v − x)·P(T + ρ ≤ v).
    name, x, noise = "classic sparse vector 3 values", 2.0, stats.laplace(scale=20)
    answers = draw(name, "sparse vector 3", [x])[:, 0]
    p_values = []
    for v in (-30.0, -10.0, 0.0, 5.0, 20.0):
        distribution = integral(lambda t, v=v: (t <= v) * noise.pdf(t - x) * below(t - 1, 20), {1.0, x, v}, 2000.0)
        p_values.append(frequency_p_value(int(((answers != 0) & (answers <= v)).sum()), RUNS, distribution))
    require(name, smallest(p_values))


def test_sparse_vector_5_cannot_give_what_it_gives_for_a_neighbour():
    name, classic = "classic sparse vector 5", BY_NAME["sparse vector 5"]
    x, y = (draw(name, "sparse vector 5", side) for side in classic.pair)
    inverted = [((side[:, 0::2] == 0) & (side[:, 1::2] == 1)).any(axis=1) for side in (x, y)]
    assert not inverted[1].any()
    rho = stats.laplace(loc=1, scale=20)
    distribution = sum(rho.cdf(low + 1.875) - rho.cdf(low) for low in (-4, -2, 0, 2, 4))
    require(name, frequency_p_value(int(inverted[0].sum()), RUNS, distribution))


def test_sparse_vector_6_never_stops():
    name, x = "classic sparse vector 6", [4.0, -2.0, 1.0]
    mechanism = BY_NAME["sparse vector 6"].mechanism
    answers = mechanism.sample(np.array(x), RUNS, generator(name))
    distribution = np.array([outcome_probability(mechanism, x, marks) for marks in itertools.product((0, 1), repeat=3)])
    assert math.isclose(distribution.sum(), 1, rel_tol=1e-9)
    counts = np.bincount((answers @ [4, 2, 1]).astype(int), minlength=8)
    require(name, counts_p_value(counts, distribution / distribution.sum()))


def test_numerical_sparse_vector():
    # The first round's distribution, and the value's noise, which is new: Laplace of scale 180 in any case.
    name, x = "classic numerical sparse vector", [0.0, 5.0, 1.0]
    mechanism = BY_NAME["numerical sparse vector"].mechanism
    assert (mechanism.threshold_scale, mechanism.query_scale, mechanism.release_scale) == pytest.approx((45, 90, 180))
    answers = mechanism.sample(np.array(x), RUNS, generator(name))
    first = answers[:, 0] != 0
    p_values = [frequency_p_value(int(first.sum()), RUNS, outcome_probability(mechanism, x, [1]))]
    p_values.append(cdf_p_value(answers[first, 0], stats.laplace(scale=180).cdf))
    third = (answers[:, 0] == 0) & (answers[:, 1] == 0) & (answers[:, 2] != 0)
    p_values.append(frequency_p_value(int(third.sum()), RUNS, outcome_probability(mechanism, x, [0, 0, 1])))
    assert (np.isnan(answers[:, 2]) == (first & (answers[:, 1] != 0))).all()
    require(name, smallest(p_values))


@pytest.mark.parametrize(("k", "tops"), [(1, 1), (4, 1), (6, 5)])
def test_the_epsilon_of_sparse_vectors_is_approached_and_not_passed(k, tops):
    # As the queries below go up and those above go down, the loss of ⊥…⊥⊤…⊤ tends to the ε in the table.
    classic = BY_NAME[f"sparse vector {k}"]
    marks = [0] * (10 - tops) + [1] * tops
    losses = []
    for far in (0.0, 40.0, 160.0):
        x = np.where(marks, -far, far)
        p, q = (outcome_probability(classic.mechanism, side, marks) for side in (x, x + np.where(marks, -1, 1)))
        losses.append(math.log(p / q))
    assert losses == sorted(losses)
    assert 0.99 * classic.true_epsilon < losses[-1] < classic.true_epsilon * (1 + 1e-7)  # quadrature: 1e-10 a piece


# ── What runs can show ──────────────────────────────────────────────────────────────────────────


def test_probabilities_on_a_grid_are_those_of_quadrature():
    mechanism, x = BY_NAME["sparse vector 4"].mechanism, [1.0] * 5 + [5.0] * 5
    exact = [outcome_probability(mechanism, x, [0] * i + [1]) for i in range(10)]
    assert first_top(mechanism, np.array(x)) == pytest.approx([*exact, 1 - sum(exact)], rel=1e-4)


def test_limits_lie_between_a_known_event_and_the_truth():
    # Five noisy zeros are all at most 0 with probability 1/32, five ones with e^(−1/4)/32.
    right, wrong = 10**7 / 64, 10**7 / 64 * math.exp(-0.25)
    known = 0.25 - stats.norm.ppf(0.9) * math.sqrt(1 / right + 1 / wrong)
    for name, least in (
        ("noisy max 3", known),
        ("laplace", 0.099),
        ("sparse vector 1", 0.08),
        ("sparse vector 4", 0.16),
    ):
        assert least - 1e-4 < limit(BY_NAME[name], 10**7, 0.1) < BY_NAME[name].true_epsilon


@pytest.mark.parametrize("name", ["noisy max 3", "sparse vector 4"])
def test_two_published_bounds_are_beyond_ten_million_runs(name):
    # DP-Sniper's are at 90% too, from 2·10⁸ runs of each input.
    assert limit(BY_NAME[name], 10**7, 0.1) < BY_NAME[name].sniper < limit(BY_NAME[name], 4 * 10**8, 0.1)


# ── RAPPOR ──────────────────────────────────────────────────────────────────────────────────────


def bit_chances(mechanism: Rappor):
    mixed = mechanism.f * (mechanism.p + mechanism.q) / 2
    return mixed + (1 - mechanism.f) * mechanism.q, mixed + (1 - mechanism.f) * mechanism.p


def rappor_p_value(name, label, mechanism):
    chances = np.where(mechanism.filled(11), *bit_chances(mechanism))
    bits = draw(name, label, [11])
    assert set(np.unique(bits)) == {0.0, 1.0}
    every = (bits == mechanism.filled(11))[:, :6].all(axis=1).sum()
    together = np.where(mechanism.filled(11), chances, 1 - chances)[:6].prod()
    alone = frequencies_p_value(bits.sum(axis=0), RUNS, chances)
    return smallest([alone, frequency_p_value(int(every), RUNS, together)])


def test_rappor():
    name = "classic rappor"
    require(name, rappor_p_value(name, "rappor", RAPPOR))


def test_one_time_rappor():
    name = "classic one-time rappor"
    require(name, rappor_p_value(name, "one-time rappor", ONE_TIME_RAPPOR))


@pytest.mark.parametrize("label", ["rappor", "one-time rappor"])
def test_no_two_values_are_worse_than_the_pair_of_rappor(label):
    classic = BY_NAME[label]
    filled = np.array([classic.mechanism.filled(value) for value in classic.values])
    differ = (filled[:, None] != filled[None]).sum(axis=2)
    assert differ[0, 11] == differ.max() == 8
    set_, unset = bit_chances(classic.mechanism)
    assert set_ + unset == pytest.approx(1, abs=1e-15)
    assert 8 * math.log(set_ / unset) == pytest.approx(classic.true_epsilon, rel=1e-12)
