"""The sampled Gaussian mechanism: closed forms of one step by mpmath, many steps by enumeration and dp-accounting."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from dpassay.core.numbers import ONE, ZERO, down, middle, number, up
from dpassay.exact.pld.lattice_sum import CellMasses, Window, lower_curve, upper_curve
from dpassay.exact.pld.loss_components import GaussianLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.cells import cell_masses, losses_at, outputs_at
from dpassay.exact.pld.sampled.gaussian import SampledLoss, SampledPower

mp = mpmath.mp.clone()
mp.dps = 40
WAYS = ("remove", "add", "replace")


def laws(rate: str, mu: str, way: str):
    """The densities of both data sets' outputs."""
    q, m = mp.mpf(rate), mp.mpf(mu)

    def plain(x):
        return mp.npdf(x)

    def mixed(sign):
        return lambda x: (1 - q) * mp.npdf(x) + q * mp.npdf(x, sign * m, 1)

    return {"remove": (mixed(1), plain), "add": (plain, mixed(1)), "replace": (mixed(1), mixed(-1))}[way]


def true_delta(rate: str, mu: str, way: str, epsilon: str):
    """∫ max(0, P − e^ε Q), cut where the integrand changes its sign."""
    p, q = laws(rate, mu, way)
    rise = mp.exp(mp.mpf(epsilon))
    grid = [mp.mpf(i) / 4 for i in range(-80, 81)]
    signs = [p(x) > rise * q(x) for x in grid]
    cuts = [
        mp.findroot(lambda x: p(x) / q(x) - rise, (a, b), solver="anderson", tol=1e-30)
        for a, b, s, t in zip(grid, grid[1:], signs, signs[1:], strict=False)
        if s != t
    ]
    ends = sorted([grid[0], *cuts, *range(-16, 17, 4), grid[-1]])
    return mp.quad(lambda x: max(mp.mpf(0), p(x) - rise * q(x)), ends)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rate", "mu", "epsilon"), [("0.01", "1", "0.005"), ("0.2", "0.5", "0.1"), ("0.9", "3", "2")])
def test_one_step_is_the_integral(way, rate, mu, epsilon):
    found = SampledLoss(number(rate), number(mu), way).delta(number(epsilon))
    truth = true_delta(rate, mu, way, epsilon)
    assert mp.mpf(str(down(found))) <= truth * (1 + mp.mpf("1e-15"))
    assert mp.mpf(str(up(found))) >= truth * (1 - mp.mpf("1e-15"))
    assert up(found) <= down(found) * (1 + 1e-14)


@pytest.mark.parametrize("way", [*WAYS, "fixed"])
def test_the_lattice_encloses_one_step_too(way):
    """The closed form judges the cells, the folding and the transforms."""
    loss = SampledLoss(number("0.1"), ONE, way)
    window = Window(below=20.0, step=1 / 512, points=1 << 15, tilt=2.0, beyond=(3.0, 3.0))
    low, high = (
        lower_curve([(cell_masses(loss, window.step, False, 1e-20), 1)], window),
        upper_curve([(cell_masses(loss, window.step, True, 1e-20), 1)], window),
    )
    for epsilon in (0.01, 0.05, 0.09, 0.5, 1.0):
        truth = middle(loss.delta(number(epsilon)))
        assert low.delta(epsilon) <= truth <= high.delta(epsilon)
        assert high.delta(epsilon) - low.delta(epsilon) <= 0.01 * truth + 1e-6


def test_randomized_response_on_the_lattice_is_binomial():
    """Two cells on the lattice points ±ln 3 lose nothing: the sum of their numbers is a binomial."""
    step = 2 * math.log(3)
    first, second = np.array([0.0, 0.25, 0.75, 0.0]), np.array([0.0, 0.75, 0.25, 0.0])
    cells = CellMasses(-math.log(3), step, 0.0, (first, first), (second, second))
    window = Window(below=25 * step, step=step, points=64, tilt=0.5, beyond=(1.0, 1.0))
    for count in (2, 3, 7):
        truth = sum(
            max(0.0, math.comb(count, k) * (0.75**k * 0.25 ** (count - k) - 0.25**k * 0.75 ** (count - k)))
            for k in range(count + 1)
        )
        assert lower_curve([(cells, count)], window).delta(0.0) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("way", ["remove", "replace"])
def test_outputs_have_the_losses_that_they_were_found_for(way):
    losses = np.array([-0.09, -0.01, 0.02, 0.5, 3.0, 9.0])
    x = outputs_at(0.1, 1.5, losses, way)
    assert losses_at(0.1, 1.5, x, way) == pytest.approx(losses, abs=1e-12)


# dp-accounting's pessimistic numbers at 1e-4 (FACTS of the field): the last digit may be above the truth.
KNOWN = [
    ("0.01", "1", 1_000, 1.8282),
    ("0.01", "1", 10_000, 6.1877),
    ("0.05", "2", 1_000, 3.6997),
    ("0.001", "0.6", 100_000, 6.1131),
    ("0.0042666666666666666667", "1.1", 14_000, 2.3759),
]


@pytest.mark.parametrize(("rate", "noise", "steps", "expected"), KNOWN)
def test_known_points(rate, noise, steps, expected):
    found = SampledPower(SampledLoss(number(rate), 1 / number(noise), "remove"), steps).epsilon(number("1e-5"))
    assert down(found) <= expected + 5e-5
    assert up(found) >= expected - 3e-4
    assert up(found) - down(found) <= 1e-3 * up(found)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta"),
    [(0.01, 1.0, 100, 1e-5), (0.2, 3.0, 50, 1e-3), (0.5, 5.0, 10, 0.1), (0.03, 0.8, 200, 1e-7)],
)
def test_dp_accounting_lies_above_and_near(rate, noise, steps, delta):
    """Its pessimistic numbers are upper bounds, and at this step near the truth: remove and add composed apart."""
    one = pld.from_gaussian_mechanism(noise, sampling_prob=rate, value_discretization_interval=1e-4)
    theirs = one.self_compose(steps).get_epsilon_for_delta(delta)
    both = [SampledPower(SampledLoss(number(rate), 1 / number(noise), way), steps) for way in ("remove", "add")]
    found = [power.epsilon(number(delta)) for power in both]
    low, high = max(map(down, found)), max(map(up, found))
    assert low <= theirs * (1 + 1e-9)
    assert high >= theirs * (1 - 2e-3)
    assert high - low <= 1e-3 * high


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("delta", ["1e-15", "1e-9", "0.05"])
def test_epsilon_and_delta_are_one_curve(way, delta):
    power = SampledPower(SampledLoss(number("0.02"), number("0.8"), way), 300)
    found = power.epsilon(number(delta))
    assert 0 < down(found) <= up(found) <= down(found) * (1 + 1e-3)
    assert down(power.delta(number(up(found)))) <= float(delta)
    assert up(power.delta(number(down(found)))) >= float(delta)


def test_more_steps_a_higher_rate_and_less_noise_lose_more():
    def epsilon(rate="0.01", mu="1", steps=100):
        return SampledPower(SampledLoss(number(rate), number(mu), "remove"), steps).epsilon(number("1e-5"))

    assert up(epsilon()) < min(down(epsilon(rate="0.02")), down(epsilon(mu="1.1")), down(epsilon(steps=200)))


def test_a_million_steps_are_certified():
    found = SampledPower(SampledLoss(number("0.001"), number("0.25"), "remove"), 1_000_000).epsilon(number("1e-5"))
    # μ-GDP by the central limit theorem: q·√(T(e^(μ²) − 1)); its ε at δ = 1e-5 is within a percent at this T.
    assert 0.93 < down(found) <= up(found) < 0.95
    assert up(found) - down(found) <= 1e-3 * up(found)


def test_the_same_data_sets_lose_nothing():
    power = SampledPower(SampledLoss(number("0.5"), ZERO, "remove"), 10)
    assert power.delta(ZERO) == 0
    assert power.epsilon(number("1e-9")) == 0


def test_an_event_shows_what_is_stated():
    power = SampledPower(SampledLoss(number("0.01"), ONE, "remove"), 1000)
    words, p, q = power.event(number("1.8"))
    assert "1,000 outputs" in words
    assert down(p - mpmath_exp("1.8") * q) > 1e-5


def mpmath_exp(text: str):
    from dpassay.core.numbers import exp

    return exp(number(text))


X = np.linspace(-12.0, 13.0, 50_001)


def phi(x):
    return np.array([math.erfc(-value / math.sqrt(2)) / 2 for value in np.atleast_1d(x)])


def double_laws(rate, mu, way):
    """The densities on a fine grid of outputs, for sums by the trapezoidal rule."""
    plain, moved, back = (np.exp(-((X - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (0.0, mu, -mu))
    with_it, opposite = ((1 - rate) * plain + rate * other for other in (moved, back))
    return {"remove": (with_it, plain), "add": (plain, with_it), "replace": (with_it, opposite)}[way]


@pytest.mark.parametrize("way", WAYS)
def test_a_sampled_step_and_another_answer_are_the_integral(way):
    """H of a product is the mean of the second one's at γe^−L: docs/proofs/composition.md, point 2."""
    first, second = double_laws(0.2, 1.0, way)
    at, mu = 0.4 - np.log(first / second), 0.5
    truth = np.trapezoid(first * (phi(mu / 2 - at / mu) - np.exp(at) * phi(-mu / 2 - at / mu)), X)
    loss = PrivacyLoss(((SampledLoss(number("0.2"), ONE, way), 1), (GaussianLoss(number("0.5")), 1)))
    found = loss.delta("0.4")
    assert found.lower <= truth * (1 + 1e-9)
    assert found.upper >= truth * (1 - 1e-9)
    assert found.width <= 1e-2 * truth


@pytest.mark.parametrize(("way", "epsilon"), [("remove", 0.3), ("add", 0.15), ("replace", 0.3)])
def test_two_steps_are_the_integral_of_one(way, epsilon):
    """The mean over the first output of one step's curve at e^ε over its likelihood ratio."""
    q, m = 0.1, 1.0
    first, second = double_laws(q, m, way)
    gamma = math.exp(epsilon) * second / first
    with np.errstate(invalid="ignore", divide="ignore"):
        if way == "replace":
            half = np.log(gamma) / 2
            x = (half + np.arcsinh((1 - q) / q * math.exp(m**2 / 2) * np.sinh(half))) / m
            above = [(1 - q) * phi(-x) + q * phi(shift - x) for shift in (m, -m)]
            one = above[0] - gamma * above[1]
        elif way == "remove":  # H_γ = 1 − γ where no output has so small a ratio
            x = np.where(gamma > 1 - q, (np.log((gamma - 1 + q) / q) + m**2 / 2) / m, -np.inf)
            one = (1 - q) * phi(-x) + q * phi(m - x) - gamma * phi(-x)
        else:
            x = np.where(1 / gamma > 1 - q, (np.log((1 / gamma - 1 + q) / q) + m**2 / 2) / m, -np.inf)
            one = phi(x) - gamma * ((1 - q) * phi(x) + q * phi(x - m))
    truth = np.trapezoid(first * one, X)
    found = SampledPower(SampledLoss(number("0.1"), ONE, way), 2).delta(number(epsilon))
    assert down(found) <= truth * (1 + 1e-6)
    assert up(found) >= truth * (1 - 1e-6)
    assert up(found) <= down(found) * (1 + 5e-3)
