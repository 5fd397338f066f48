"""Losses against closed forms, exact sums, quadrature in mpmath, and dp-accounting where it is valid."""

import itertools
import logging
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.core.interval import Interval
from dpassay.core.numbers import INFINITY, ZERO, exp, log, number, real
from dpassay.errors import InputError
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss
from dpassay.exact.pld.noises.coordinate import coordinate_loss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import BitDistribution, Gaussian, Laplace, Mixture, OneSided, Pmf, Shifted
from oracles import (
    encloses,
    finite_delta,
    gaussian_delta,
    gaussian_epsilon,
    laplace_sum_delta,
    laplace_sum_tail,
    normal_cdf,
    read,
    relative_width,
)

quick = settings(derandomize=True, deadline=None, max_examples=60)
DELTAS = ["1e-12", "1e-9", "1e-6", "1e-3", "0.1"]


def laplace(shift, count=1):
    return PrivacyLoss(((LaplaceLoss(number(shift)), count),))


def gaussian(mu, count=1):
    return PrivacyLoss(((GaussianLoss(number(mu)), count),))


def bits(p, q, count=1):
    one, other = number(p), number(q)
    return PrivacyLoss(((AtomLoss.between((one, 1 - one), (other, 1 - other)), count),))


def brackets(interval, delta_of, delta, digits=25):
    """δ falls with ε: it is at least the target at the lower end and at most the target at the upper end."""
    room = mpf(10) ** -digits
    assert delta_of(mpf(interval.upper)) <= read(delta) * (1 + room), (interval, delta)
    if interval.lower > 0:
        assert delta_of(mpf(interval.lower)) >= read(delta) * (1 - room), (interval, delta)


# ── One Laplace coordinate ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shift", ["0.01", "1", "5.6569", "1000", "53013.36"])
def test_one_laplace_coordinate(shift):
    loss = laplace(shift)
    with mp.workdps(50):
        a = read(shift)
        assert encloses(loss.mean(), a - 1 + mp.exp(-a))
        assert encloses(Interval.around(loss.pure), a)
        for share in ("0", "0.3", "0.999"):
            epsilon = mp.nstr(a * read(share), 40)
            interval = loss.delta(epsilon)
            assert encloses(interval, 1 - mp.exp((read(epsilon) - a) / 2))
            assert relative_width(interval) < 1e-14
        for delta in DELTAS:
            truth = max(mpf(0), a + 2 * mp.log1p(-read(delta)))
            interval = loss.epsilon(delta)
            assert encloses(interval, truth, digits=12 if truth else 25)
            assert relative_width(interval) <= 1e-12
        assert loss.delta(mp.nstr(a + 1, 40)).upper == 0


def test_the_counting_query():
    loss = PrivacyLoss.between(Shifted(Laplace(1), np.zeros(1)), Shifted(Laplace(1), np.ones(1)))
    with mp.workdps(50):
        assert mp.nstr(mp.exp(-1), 5) == "0.36788"  # FACTS §1
        assert encloses(loss.mean(), mp.exp(-1))


# sup ln(P/Q): Laplace noise loses the l1 distance over the scale, Gaussian noise has no largest loss,
# randomized response has ln(p/(1 - p)), and what Q cannot give is lost entirely.
def test_the_max_divergence():
    laplace = PrivacyLoss.of_shifts(Laplace(2), [(number(1), 3), (number(-4), 1)])
    assert laplace.max_divergence() == Interval(3.5, 3.5)
    assert PrivacyLoss.of_shifts(Gaussian(1), [(number(1), 1)]).max_divergence().lower == math.inf
    bit = PrivacyLoss(((AtomLoss.of_bits("0.75", "0.25"), 2),)).max_divergence()
    assert bit.lower <= 2 * math.log(3) <= bit.upper <= 2 * math.log(3) + 1e-14
    assert PrivacyLoss(((AtomLoss.of_bits("0.75", "0"), 1),)).max_divergence().lower == math.inf


def test_direction_and_place_do_not_matter_for_symmetric_noise():
    for noise in (Laplace(2), Gaussian(2)):
        forwards = PrivacyLoss.between(Shifted(noise, np.array([1.0, 5.0])), Shifted(noise, np.array([2.0, 3.0])))
        backwards = PrivacyLoss.between(Shifted(noise, np.array([2.0, 3.0])), Shifted(noise, np.array([1.0, 5.0])))
        assert forwards.delta(0.5) == backwards.delta(0.5)


# ── Gaussian ────────────────────────────────────────────────────────────────────────────────────


@cache
def mu_for(epsilon, delta):
    """The μ at which a Gaussian has this δ at this ε, to 40 digits, by bisection on log μ."""
    with mp.workdps(60):
        low, high = mpf(10) ** -6, mpf(10) ** 4
        for _ in range(170):
            mid = mp.sqrt(low * high)
            low, high = (mid, high) if gaussian_delta(mid, epsilon) < read(delta) else (low, mid)
        return mp.nstr(low, 40)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "10", "100", "10000"])
@pytest.mark.parametrize("delta", ["1e-15", "1e-9", "1e-5", "0.1"])
def test_gaussian_delta_and_epsilon(epsilon, delta):
    mu = mu_for(epsilon, delta)
    loss = gaussian(mu)
    with mp.workdps(60):
        truth = gaussian_delta(mu, epsilon)
        assert mp.almosteq(truth, read(delta), 1e-20)
        interval = loss.delta(epsilon)
        assert encloses(interval, truth, digits=40)
        assert relative_width(interval) <= 1e-6
        back = loss.epsilon(delta)
        assert encloses(back, gaussian_epsilon(mu, delta), digits=20)
        assert relative_width(back) <= 1e-6


def test_the_classic_formula_beyond_its_theorem():
    # FACTS §1 at δ = 1e-5: safe at ε = 8, broken at 10, where σ = 0.49989 is needed.
    with mp.workdps(50):
        for epsilon, digits in ((8, "7.97e-6"), (10, "2.265e-5")):
            sigma = mp.sqrt(2 * mp.log(mpf("1.25e5"))) / epsilon
            truth = gaussian_delta(1 / sigma, epsilon)
            assert mp.nstr(truth, len(digits) - 4) == digits
            distribution = [Shifted(Gaussian(mp.nstr(sigma, 45)), np.array([x])) for x in (0.0, 1.0)]
            assert encloses(PrivacyLoss.between(*distribution).delta(epsilon), truth)
        needed = mp.findroot(
            lambda s: gaussian_delta(1 / s, 10) - mpf("1e-5"), (mpf("0.48"), mpf("0.52")), solver="anderson"
        )
        assert mp.nstr(needed, 5) == "0.49989"
    below, above = (PrivacyLoss.of_shifts(Gaussian(s), [(number(1), 1)]).delta(10) for s in ("0.49988", "0.49990"))
    assert below.lower > 1e-5
    assert above.upper < 1e-5


@pytest.mark.parametrize("mu", ["0.1", "1", "7", "50"])
def test_gaussian_tail(mu):
    with mp.workdps(60):
        m = read(mu)
        for epsilon in ("0", "0.5", "3", "60", "2000"):
            truth = normal_cdf(m / 2 - read(epsilon) / m)
            interval = gaussian(mu).tail(epsilon)
            assert encloses(interval, truth, digits=40)
            assert interval.upper > 0


def test_gaussians_compose_into_one():
    with mp.workdps(50):
        loss = gaussian("0.3").compose(gaussian("0.4"), gaussian("0.5"))
        truth = gaussian_delta(mp.sqrt(mpf(1) / 2), 1)
        assert encloses(loss.delta(1), truth)
        assert encloses(gaussian("0.1", 100).delta(1), gaussian_delta(1, 1))
        assert encloses(loss.mean(), mpf(1) / 4)


# ── n Laplace coordinates ───────────────────────────────────────────────────────────────────────

FEW = [
    ("1", 2),
    ("0.1", 3),
    ("0.75", 5),
    ("0.3", 8),
    ("20", 5),
    ("0.25", 16),
    ("0.17677669529663688110", 32),
    ("1", 32),
]


@pytest.mark.parametrize(("shift", "count"), FEW)
def test_few_laplace_coordinates_delta(shift, count):
    loss = laplace(shift, count)
    with mp.workdps(50):
        for share in ("0", "0.2", "0.5", "0.7", "0.9", "0.97"):
            epsilon = mp.nstr(read(shift) * count * read(share), 20)
            truth = laplace_sum_delta([(shift, count)], epsilon)
            interval = loss.delta(epsilon)
            assert encloses(interval, truth)
            if mpf("1e-12") <= truth <= mpf("0.1"):
                assert relative_width(interval) <= 1e-3


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("shift", "count"), FEW)
@pytest.mark.parametrize("delta", DELTAS)
def test_few_laplace_coordinates_epsilon(shift, count, delta):
    interval = laplace(shift, count).epsilon(delta)
    assert relative_width(interval) <= 1e-3
    with mp.workdps(50):
        brackets(interval, lambda e: laplace_sum_delta([(shift, count)], e), delta)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("shift", "count"), [("1", 2), ("0.5", 4), ("0.3", 8), ("0.25", 16), ("5", 3)])
@pytest.mark.parametrize("delta", DELTAS)
def test_delta_is_narrow_up_to_the_largest_loss(shift, count, delta):
    # Few coordinates reach their largest loss with probability 2^−n: δ falls from that to 0 within a short way.
    with mp.workdps(50):
        low, high = mpf(0), read(shift) * count
        for _ in range(60):
            mid = (low + high) / 2
            low, high = (mid, high) if laplace_sum_delta([(shift, count)], mid) > read(delta) else (low, mid)
        epsilon = mp.nstr(low, 30)
        truth = laplace_sum_delta([(shift, count)], epsilon)
        interval = laplace(shift, count).delta(epsilon)
        assert encloses(interval, truth)
        assert relative_width(interval) <= 1e-3


def test_the_adept_pair():
    # FACTS §2, n = 32, claimed ε = 1: ε ≥ 4.40 at δ = 1e-6, δ ≥ 0.1169 at ε = 1.
    with mp.workdps(50):
        shift = mp.nstr(1 / mp.sqrt(32), 45)
        truth = laplace_sum_delta([(shift, 32)], 1)
        assert truth >= mpf("0.1169")
        assert laplace_sum_delta([(shift, 32)], "4.40") > mpf("1e-6")
    loss = laplace(shift, 32)
    assert encloses(loss.delta(1), truth)
    assert loss.delta(1).lower >= 0.1169
    assert loss.epsilon("1e-6").lower >= 4.40
    assert f"{loss.epsilon('1e-6').upper:.2f}" in ("4.40", "4.41")


def test_128_laplace_coordinates():
    interval = laplace("0.1", 128).delta(8)
    with mp.workdps(50):
        assert encloses(interval, laplace_sum_delta([("0.1", 128)], 8))  # about 3e-13
    assert relative_width(interval) <= 1e-3


MANY = [("0.015625", 4096, 1e-4), ("0.1", 4096, 1e-3), ("1", 1024, 1e-3)]


@pytest.fixture(scope="module")
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.long(every=3)
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("shift", "count", "grid"), MANY)
def test_many_laplace_coordinates_against_dp_accounting(shift, count, grid):
    from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism

    below, above = (
        from_laplace_mechanism(
            1 / float(shift), pessimistic_estimate=pessimistic, value_discretization_interval=grid
        ).self_compose(count)
        for pessimistic in (False, True)
    )
    loss = laplace(shift, count)
    for delta in (1e-5, 0.1):  # its rounding errors reach about 1e-10
        interval = loss.epsilon(delta)
        assert interval.lower <= above.get_epsilon_for_delta(delta)
        assert below.get_epsilon_for_delta(delta) <= interval.upper
        there = loss.delta(interval.lower)
        assert there.lower <= above.get_delta_for_epsilon(interval.lower)
        assert below.get_delta_for_epsilon(interval.lower) <= there.upper


@pytest.mark.parametrize(
    ("shift", "count", "delta"),
    [
        ("0.03125", 1024, "0.1"),
        ("0.015625", 4096, "1e-12"),
        ("0.015625", 4096, "1e-6"),
        ("0.1", 4096, "1e-12"),
        pytest.param("1", 4096, "1e-6", marks=pytest.mark.long),
    ],
)
def test_many_laplace_coordinates_are_narrow(shift, count, delta):
    loss = laplace(shift, count)
    interval = loss.epsilon(delta)
    assert relative_width(interval) <= 1e-3
    there = loss.delta((interval.lower + interval.upper) / 2)
    assert relative_width(there) <= 1e-3
    assert there.lower <= float(delta) * 1.001
    assert there.upper >= float(delta) * 0.999
    assert interval.upper <= chernoff(read(shift), count, read(delta)) * (1 + 1e-3)


def chernoff(a, count, delta):
    """min over θ of (n·K(θ) + ln(1/δ))/θ, with E[e^(θL)] of one Laplace loss by hand: ε(δ) is not above it."""

    def moment(theta):
        whole = theta + mpf(1) / 2
        return (mp.exp(theta * a) + mp.exp(-(theta + 1) * a)) / 2 + mp.exp(-a / 2) * mp.sinh(whole * a) / (2 * whole)

    values = (
        (count * mp.log(moment(theta)) - mp.log(delta)) / theta
        for theta in (mpf(10) ** (mpf(k) / 20) for k in range(-40, 60))
    )
    return max(mpf(0), min(values))


@pytest.mark.parametrize(
    ("shift", "count", "delta"), [("0.3", 8, "1e-3"), ("1", 1024, "1e-12"), ("0.003", 100_000, "1e-6")]
)
def test_chernoffs_bound_holds(shift, count, delta):
    with mp.workdps(30):
        assert laplace(shift, count).epsilon(delta).lower <= chernoff(read(shift), count, read(delta))


@pytest.mark.parametrize(("shift", "count"), [("1", 2), ("0.3", 8), ("1", 32)])
def test_laplace_tail(shift, count):
    loss = laplace(shift, count)
    with mp.workdps(50):
        for share in ("0", "0.3", "0.8"):
            epsilon = mp.nstr(read(shift) * count * read(share), 20)
            interval = loss.tail(epsilon)
            assert encloses(interval, laplace_sum_tail([(shift, count)], epsilon), digits=20)


@pytest.mark.parametrize("shift", ["0.1", "1", "12"])
def test_the_tail_of_one_laplace_coordinate(shift):
    with mp.workdps(50):
        a = read(shift)
        for share in ("0", "0.4", "0.95"):
            interval = laplace(shift).tail(mp.nstr(a * read(share), 20))
            assert encloses(interval, 1 - mp.exp((a * read(share) - a) / 2) / 2, digits=18)
            assert interval.width < 0.01
        assert laplace(shift).tail(mp.nstr(a * mpf("1.01"), 20)).upper <= 1e-9


# ── One-sided noise, mixtures, DPText ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 2, 32])
@pytest.mark.parametrize("scale", ["0.5", "1", "32"])
def test_dptext_at_every_epsilon(count, scale):
    # FACTS §3: resampled 1 − e^(−n/b); replaced by 0: 1 − (e^(−1/b)/2)^n. Zeros against ones.
    resampled = PrivacyLoss.of_shifts(OneSided(scale), [(number(1), count)])
    replaced = PrivacyLoss.of_shifts(Mixture("0.5", (("0.5", OneSided(scale)),)), [(number(1), count)])
    with mp.workdps(50):
        b = read(scale)
        for epsilon in ("0", "1", "30", "1e5"):
            assert encloses(resampled.delta(epsilon), 1 - mp.exp(-count / b))
            truth = 1 - (mp.exp(-1 / b) / 2) ** count
            assert encloses(replaced.delta(epsilon), truth, digits=15)
            assert relative_width(replaced.delta(epsilon)) < 1e-3
    assert resampled.pure == INFINITY
    assert replaced.pure == INFINITY


def test_dptext_figures():
    with mp.workdps(50):
        assert mp.nstr(1 - mp.exp(-1), 5) == "0.63212"
        assert mp.nstr(1 - mp.exp(-1) / 2, 5) == "0.81606"


def test_one_sided_noise_backwards_is_pure():
    loss = PrivacyLoss.of_shifts(OneSided(2), [(number(-1), 3)])
    with mp.workdps(50):
        assert encloses(Interval.around(loss.pure), mpf(3) / 2)
        assert encloses(loss.delta(1), 1 - mp.exp(mpf(-1) / 2))
        assert encloses(loss.mean(), mpf(3) / 2)


@pytest.mark.parametrize("delta", ["0.64", "0.7", "0.999"])
def test_epsilon_where_an_infinite_loss_is_allowed_for(delta):
    # P has 1 − 1/e at infinity and the rest at −1: with that much δ allowed, ε = 0.
    interval = PrivacyLoss.of_shifts(OneSided(1), [(number(1), 1)]).epsilon(delta)
    assert interval.lower == 0
    assert interval.upper <= 1e-12


def test_epsilon_where_an_infinite_loss_is_not_allowed_for():
    loss = PrivacyLoss.of_shifts(OneSided(1), [(number(1), 1)])
    assert loss.epsilon("0.6").lower == math.inf
    assert loss.epsilon("0").lower == math.inf


@pytest.mark.parametrize("count", [1, 4])
def test_epsilon_of_bits_with_an_infinite_loss(count):
    # Under P both bits may be 1, under Q only the first: δ(ε) = 1 − 0.9^n + 0.9^n·max(0, …).
    loss = bits("0.1", 0, count).compose(bits("0.75", "0.25", count))
    with mp.workdps(50):
        clear = mpf("0.9") ** count
        rest = [
            (math.comb(count, k) * mpf("0.75") ** k * mpf("0.25") ** (count - k), 2 * k - count)
            for k in range(count + 1)
        ]
        shift = count * mp.log(mpf("0.9"))

        def delta_of(epsilon):
            return (
                1 - clear + clear * sum(w * max(mpf(0), 1 - mp.exp(epsilon - shift - m * mp.log(3))) for w, m in rest)
            )

        for epsilon in ("0.1", "0.9"):
            assert encloses(loss.delta(epsilon), delta_of(read(epsilon)), digits=15)
        target = mp.nstr(delta_of(mpf("0.5") * count), 20)
        brackets(loss.epsilon(target), delta_of, target, digits=9)


def test_a_pmf_with_an_impossible_outcome():
    loss = PrivacyLoss.between(Pmf(np.array([0.5, 0.4, 0.1])), Pmf(np.array([0.6, 0.4, 0.0])))
    assert loss.epsilon("0.05").lower == math.inf
    assert loss.epsilon("0.2").upper <= 1e-12
    with mp.workdps(50):
        assert encloses(loss.delta("0"), mpf("0.1"))


def test_the_tail_at_zero_of_bits_whose_losses_cancel():
    # The losses are ±ln 3 each: with one of each sign they sum to 0 exactly, which is not above 0.
    interval = bits("0.75", "0.25").compose(bits("0.25", "0.75")).tail(0)
    assert interval.lower <= 0.5625 <= interval.upper


def test_epsilon_at_the_total_variation_is_zero():
    # δ(0) = 0.7 − 0.4 exactly, and δ falls from there: ε(0.3) = 0.
    interval = bits("0.7", "0.4").epsilon("0.3")
    assert interval.lower == 0
    assert interval.upper <= 1e-9


@pytest.mark.parametrize("infinite", ["1e-3", "1e-10", "1e-20"])
def test_a_rare_infinite_loss_beside_other_noise(infinite):
    # At ε beyond what Laplace noise can lose, δ is the probability of the infinite loss.
    loss = bits(infinite, 0).compose(laplace(1))
    with mp.workdps(50):
        assert encloses(loss.delta(2), read(infinite), digits=30)


# ── Different parts together ────────────────────────────────────────────────────────────────────


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "groups",
    [[("1", 1), ("0.5", 1)], [("2", 1), ("0.01", 4)], [("0.1", 2), ("0.2", 2), ("0.4", 1)]],
)
def test_laplace_coordinates_with_different_shifts(groups):
    loss = PrivacyLoss(tuple((LaplaceLoss(number(a)), n) for a, n in groups))
    with mp.workdps(50):
        most = sum(read(a) * n for a, n in groups)
        for share in ("0", "0.6"):
            epsilon = mp.nstr(most * read(share), 20)
            assert encloses(loss.delta(epsilon), laplace_sum_delta(groups, epsilon))
        brackets(loss.epsilon("0.1"), lambda e: laplace_sum_delta(groups, e), "0.1")
        assert encloses(Interval.around(loss.pure), most)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("mu", "p", "q", "count"), [("0.5", "0.6", "0.4", 1), ("2", "0.9", "0.3", 5), ("45.7453", "0.96", "0.21", 20)]
)
def test_gaussian_and_bits(mu, p, q, count):
    # Given k ones the loss is normal around a shift: δ(ε) = Σ_k P(k) δ_Gauss(ε − loss_k), at any real ε − loss_k.
    loss = gaussian(mu).compose(bits(p, q, count))
    with mp.workdps(60):
        one, other = read(p), read(q)
        gains = mp.log(one / other), mp.log((1 - one) / (1 - other))

        def delta_of(epsilon):
            return sum(
                math.comb(count, k)
                * one**k
                * (1 - one) ** (count - k)
                * gaussian_delta(mu, epsilon - k * gains[0] - (count - k) * gains[1])
                for k in range(count + 1)
            )

        centre = read(mu) ** 2 / 2 + count * (one * gains[0] + (1 - one) * gains[1])
        for deviations in (0, 3):
            epsilon = max(mpf(0), mpf(round(float(centre + deviations * read(mu)), 4)))
            assert encloses(loss.delta(float(epsilon)), delta_of(epsilon), digits=30)
        if count == 20:
            brackets(loss.epsilon("1e-6"), delta_of, "1e-6")


@pytest.mark.parametrize(
    ("shift", "count", "p", "q", "copies"),
    [("1", 1, "0.6", "0.4", 1), ("0.5", 3, "0.8", "0.3", 4), ("54", 2, "0.78", "0.6", 5)],
)
def test_laplace_and_bits(shift, count, p, q, copies):
    loss = laplace(shift, count).compose(bits(p, q, copies))
    with mp.workdps(50):
        one, other = read(p), read(q)
        gains = mp.log(one / other), mp.log((1 - one) / (1 - other))

        def delta_of(epsilon):
            return sum(
                math.comb(copies, k)
                * one**k
                * (1 - one) ** (copies - k)
                * laplace_sum_delta([(shift, count)], epsilon - k * gains[0] - (copies - k) * gains[1])
                for k in range(copies + 1)
            )

        most = read(shift) * count + copies * max(gains)
        for share in ("0.1", "0.9"):
            epsilon = mp.nstr(most * read(share), 20)
            assert encloses(loss.delta(epsilon), delta_of(read(epsilon)))
        if count == 3:
            brackets(loss.epsilon("0.01"), delta_of, "0.01")


@pytest.mark.parametrize(("shift", "count", "mu"), [("1", 1, "0.5"), ("0.4", 2, "1")])
def test_laplace_and_gaussian_by_quadrature(shift, count, mu):
    # δ(ε) = E[δ_Laplace(ε − G)] over the Gaussian's loss G, normal with mean μ²/2 and deviation μ.
    loss = laplace(shift, count).compose(gaussian(mu))
    with mp.workdps(15):
        a, m, e = read(shift), read(mu), mpf("1.1")

        def integrand(g):
            return mp.npdf(g, m**2 / 2, m) * laplace_sum_delta([(shift, count)], e - g)

        kinks = {e - a * k for k in range(-count, count + 1)}
        ends = m**2 / 2 - 9 * m, m**2 / 2 + 9 * m
        marks = sorted(
            {*ends, m**2 / 2 - 3 * m, m**2 / 2, m**2 / 2 + 3 * m, *(k for k in kinks if ends[0] < k < ends[1])}
        )
        truth = mp.quad(integrand, marks, method="gauss-legendre", maxdegree=3)
        assert encloses(loss.delta("1.1"), truth, digits=9)


def agrees_with_itself(loss, epsilon, delta):
    at = loss.delta(epsilon)
    assert 0 <= at.lower <= at.upper <= 1
    # δ is never above the tail.
    assert loss.tail(epsilon).upper >= at.lower
    # δ(ε(δ)) is δ again, from both sides.
    found = loss.epsilon(delta)
    assert found.lower <= found.upper
    if found.lower > 0:
        assert loss.delta(found.lower).upper >= delta * (1 - 1e-9)
    if math.isfinite(found.upper):
        assert loss.delta(found.upper).lower <= delta * (1 + 1e-9)
    # δ falls with ε.
    assert loss.delta(epsilon + 1).lower <= at.upper


@settings(derandomize=True, deadline=None, max_examples=15)
@given(
    st.one_of(
        st.builds(laplace, st.floats(0.01, 5).map(lambda a: round(a, 3)), st.integers(1, 20)),
        st.builds(gaussian, st.floats(0.01, 60).map(lambda m: round(m, 3))),
        st.builds(
            bits, st.integers(1, 99).map(lambda k: Fraction(k, 100)), st.just(Fraction(2, 7)), st.integers(1, 50)
        ),
    ),
    st.floats(0, 20),
    st.sampled_from([1e-9, 1e-4, 0.2]),
)
def test_answers_agree_with_each_other(loss, epsilon, delta):
    agrees_with_itself(loss, epsilon, delta)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(
            laplace("0.5", 3).compose(gaussian("0.3"), bits("0.6", "0.4", 4)), id="three kinds", marks=pytest.mark.long
        ),
        pytest.param(gaussian(50).compose(laplace(3)), id="a large Gaussian"),
    ],
)
def test_answers_about_mixed_losses_agree_with_each_other(loss):
    agrees_with_itself(loss, 1.5, 1e-4)


def test_equal_parts_are_one_part_taken_so_many_times():
    one = laplace("0.3").compose(laplace("0.3"), laplace("0.3", 2))
    assert one.delta(0.5) == laplace("0.3", 4).delta(0.5) == laplace("0.3").times(4).delta(0.5)
    assert one.epsilon(1e-6) == laplace("0.3", 4).epsilon(1e-6)
    several = bits("0.6", "0.4").compose(bits("0.6", "0.4", 4))
    assert several.delta(1) == bits("0.6", "0.4").times(5).delta(1)
    mixed = laplace("0.3", 2).compose(gaussian("0.5"))
    assert mixed.times(3).pure == INFINITY
    with mp.workdps(40):
        assert encloses(mixed.times(3).mean(), 6 * (mpf("0.3") - 1 + mp.exp(mpf("-0.3"))) + 3 * mpf("0.125"))


def test_a_law_against_itself_loses_nothing():
    distribution = Shifted(Laplace(1), np.arange(4.0))
    loss = PrivacyLoss.between(distribution, distribution)
    assert loss.components == ()
    assert loss.delta(0).upper == 0
    assert loss.epsilon(0).upper == 0
    assert loss.mean().upper == 0
    assert loss.tail(0).upper == 0
    assert loss.pure == 0
    equal = PrivacyLoss.between(BitDistribution(np.full(5, 0.3)), BitDistribution(np.full(5, 0.3)))
    assert equal.delta(0).upper <= 1e-40
    assert equal.epsilon("1e-6").upper <= 1e-40


def test_losses_between_laws():
    shifted = PrivacyLoss.between(
        Shifted(Laplace(2), np.array([0.1, 0.3, 5.0])), Shifted(Laplace(2), np.array([0.3, 0.1, 5.0]))
    )
    with mp.workdps(50):
        # Each of the two coordinates moves by 0.2, as decimals.
        assert encloses(shifted.delta("0.1"), laplace_sum_delta([("0.1", 2)], "0.1"))
    flipped = PrivacyLoss.between(
        BitDistribution(np.array([0.9, 0.1, 0.5])), BitDistribution(np.array([0.1, 0.9, 0.5]))
    )
    with mp.workdps(50):
        assert encloses(Interval.around(flipped.pure), 2 * mp.log(9))


@quick
@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.sampled_from(["0", "0.5", "2"]),
)
def test_pmfs_against_their_definition(first, second, epsilon):
    if not sum(first):
        return
    # Dyadic probabilities, so that doubles hold them exactly.
    p, q = ([Fraction(w, 64) for w in ws] for ws in (first, second))
    p[0] += 1 - sum(p)
    q[0] += 1 - sum(q)
    loss = PrivacyLoss.between(*(Pmf(np.array([float(x) for x in table])) for table in (p, q)))
    with mp.workdps(60):
        truth = finite_delta(p, q, epsilon)
        interval = loss.delta(epsilon)
        assert interval.lower <= truth * (1 + mpf(10) ** -40)
        assert truth - mpf(10) ** -40 <= interval.upper


def test_laws_of_different_kinds_are_not_compared():
    laplace_law, bit_law = Shifted(Laplace(1), np.zeros(2)), BitDistribution(np.full(2, 0.5))
    for other in (bit_law, Shifted(Laplace(2), np.zeros(2)), Shifted(Gaussian(1), np.zeros(2)), Pmf(np.array([1.0]))):
        with pytest.raises(InputError, match="one kind"):
            PrivacyLoss.between(laplace_law, other)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Shifted(Laplace(1), np.zeros(n)),
        lambda n: BitDistribution(np.full(n, 0.5)),
        lambda n: Pmf(np.full(n, 1 / n)),
    ],
)
@pytest.mark.parametrize("sizes", [(3, 2), (1, 3)])
def test_laws_of_different_dimension_are_not_compared(make, sizes):
    with pytest.raises(InputError):
        PrivacyLoss.between(make(sizes[0]), make(sizes[1]))


def test_a_noise_without_known_loss_is_refused():
    with pytest.raises(InputError, match="sampled evidence"):
        coordinate_loss(object(), number(1))


@pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf, None, "much"])
def test_a_bad_epsilon_is_refused(epsilon):
    for ask in (laplace(1).delta, laplace(1).tail):
        with pytest.raises(InputError, match=r"epsilon must be|expected a number"):
            ask(epsilon)


@pytest.mark.parametrize("delta", [-0.1, 1, 2, math.nan, math.inf, None])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match=r"delta must be|expected a number"):
        laplace(1).epsilon(delta)


@pytest.mark.parametrize("count", [0, -1])
def test_a_part_that_does_not_occur_is_refused(count):
    with pytest.raises(InputError, match="at least once"):
        laplace(1, count)


# ── Large numbers ───────────────────────────────────────────────────────────────────────────────


def test_pure_losses_of_a_hundred_thousand_coordinates():
    with mp.workdps(50):
        assert encloses(Interval.around(laplace("10", 100_000).pure), mpf(10) ** 6)
        loss = PrivacyLoss.between(Shifted(Laplace(1), np.zeros(100_000)), Shifted(Laplace(1), np.full(100_000, 0.1)))
        assert encloses(Interval.around(loss.pure), mpf(10) ** 4)
        assert encloses(loss.mean(), 100_000 * (mpf("0.1") - 1 + mp.exp(mpf("-0.1"))))


@pytest.mark.parametrize(
    ("shift", "count"),
    [pytest.param("10", 100_000, marks=pytest.mark.long), ("750", 2), ("26506.68", 2), ("1000000", 3)],
)
def test_large_losses_do_not_overflow(shift, count):
    loss = laplace(shift, count)
    pure = float(shift) * count
    interval = loss.epsilon("1e-6")
    assert 0 < interval.lower <= interval.upper <= pure * (1 + 1e-12)
    assert count > 4096 or relative_width(interval) <= 1e-3
    with mp.workdps(30):
        assert interval.lower <= chernoff_large(read(shift), count, mpf("1e-6"))
    assert loss.delta(pure + 1).upper == 0
    assert 0 <= loss.delta(pure / 2).lower <= loss.delta(pure / 2).upper <= 1


def chernoff_large(a, count, delta):
    thetas = (mpf(10) ** (mpf(k) / 10) for k in range(-60, 20))

    def log_moment(theta):
        whole = theta + mpf(1) / 2
        return theta * a + mp.log((1 + mp.exp(-(2 * theta + 1) * a)) / 2 + (1 - mp.exp(-2 * whole * a)) / (4 * whole))

    return min((count * log_moment(theta) - mp.log(delta)) / theta for theta in thetas)


@pytest.mark.parametrize(("shift", "count"), [("750", 2), ("26506.68", 2)])
def test_large_losses_against_the_exact_sum(shift, count):
    # For so large a shift the atoms at −a have no weight: the loss is count·a less an independent deficit each.
    loss = laplace(shift, count)
    with mp.workdps(60):
        for below in ("0.5", "3", "30"):
            epsilon = mp.nstr(read(shift) * count - read(below), 30)
            assert encloses(loss.delta(epsilon), laplace_sum_delta([(shift, count)], epsilon))


# ── Curves ──────────────────────────────────────────────────────────────────────────────────────


def test_the_tail_is_above_delta_by_formula():
    # FACTS §1: δ = E[max(0, 1 − e^(ε−L))] is smaller than P(L > ε).
    for epsilon in (0.0, 0.5, 0.9):
        assert laplace(1).tail(epsilon).lower > laplace(1).delta(epsilon).upper


@pytest.mark.parametrize(("groups", "epsilon"), list(itertools.product([[("1", 1)], [("0.3", 8)]], ["0", "0.5"])))
def test_oracle_tail_is_above_oracle_delta(groups, epsilon):
    with mp.workdps(40):
        assert laplace_sum_tail(groups, epsilon) > laplace_sum_delta(groups, epsilon) > 0


def test_composition_is_no_worse_than_adding_up():
    # Basic composition: ε(δ) of n copies is at most n times the pure loss, and never below that of one.
    one, many = laplace("0.2"), laplace("0.2", 50)
    for delta in (1e-9, 1e-3):
        assert one.epsilon(delta).lower <= many.epsilon(delta).upper <= 50 * 0.2 + 1e-9


def test_zero_delta_asks_for_the_pure_loss():
    with mp.workdps(40):
        assert encloses(laplace("0.2", 50).epsilon(0), mpf(10))
    assert gaussian(1).epsilon(0).lower == math.inf
    assert coordinate_loss(Laplace(2), ZERO).pure == 0


# ── Exponential noise that may be left out or lost ──────────────────────────────────────────────

WEIGHTS = [("1", "0", "0"), ("0.5", "0.5", "0"), ("0.5", "0", "0.5"), ("0", "0.25", "0.75"), ("0.3", "0.2", "0.5")]


def one_sided_outcomes(weights, gap):
    """The four kinds of outcomes: P's atom, below Q's start, where both are, lost; with exact masses."""
    w, atom, lost = (read(weight) for weight in weights)
    shared = w * mp.exp(-abs(gap))
    if gap > 0:  # Q starts later: its density is e^gap times P's from there on
        return [(atom, mpf(0)), (w - shared, mpf(0)), (shared, w), (lost, lost), (mpf(0), atom)]
    return [(atom, mpf(0)), (w, shared), (mpf(0), w - shared), (lost, lost), (mpf(0), atom)]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("gap", ["1", "-1", "0.25", "-3"])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("epsilon", ["0", "0.2", "1", "4"])
def test_one_sided_mixtures_against_all_outcomes(weights, gap, count, epsilon):
    w, atom, lost = weights
    noise = Mixture(atom, ((w, OneSided(2)),), lost)
    loss = PrivacyLoss.of_shifts(noise, [(2 * number(gap), count)])
    with mp.workdps(40):
        outcomes = one_sided_outcomes(weights, read(gap))
        total = mpf(0)
        for combined in itertools.product(outcomes, repeat=count):
            p, q = (mp.fprod(side) for side in zip(*combined, strict=True))
            total += max(mpf(0), p - mp.exp(read(epsilon)) * q)
        found = loss.delta(epsilon)
        assert abs(mpf(found.lower) - total) <= mpf("1e-4") * total + mpf("1e-15")
        assert encloses(found, total) or abs(mpf(found.upper) - total) < mpf("1e-15")


def test_dptext_in_three_readings():
    # One coordinate from 0 to 1, scale 1: NaN drawn again, NaN as zero, NaN kept.
    for zero, lost, delta in (
        ("0", "0", 0.632120558828558),
        ("0.5", "0", 0.816060279414279),
        ("0", "0.5", 0.316060279414279),
    ):
        rest = 1 - number(zero) - number(lost)
        loss = PrivacyLoss.of_shifts(Mixture(zero, ((rest, OneSided(1)),), lost), [(number(1), 1)])
        for epsilon in (0, 1, 50):
            assert loss.delta(epsilon).lower == pytest.approx(delta, rel=1e-14)


def test_epsilon_where_an_infinite_loss_ties_with_delta():
    """A value shown with probability δ: at this very δ ε is 0, below it ∞. 50 digits alone cannot tell which."""
    loss = PrivacyLoss.of_shifts(Mixture("1e-6", (), 1 - number("1e-6")), [(number(1), 1)])
    tied = loss.epsilon("1e-6")
    assert (tied.lower, tied.upper) == (0.0, 0.0)  # decimals are remembered, so these are seen to be equal
    enclosed = loss.epsilon(exp(log(real("1e-6"))))  # an enclosure, of which nothing else is known
    assert (enclosed.lower, enclosed.upper) == (0.0, math.inf)
    assert loss.epsilon("0.9e-6").lower == math.inf
    assert loss.epsilon("1.1e-6").upper == 0.0
