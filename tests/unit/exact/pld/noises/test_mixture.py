"""Mixtures against quadrature of their densities, done by mpmath and scipy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import integrate, stats

from dpassay.core.interval import Interval
from dpassay.core.numbers import INFINITY, number
from dpassay.exact.pld.noises.mixture import MixtureLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, OneSided
from oracles import encloses, hockey_stick, holds, read

DENSITIES = {
    Laplace: lambda t, b: mp.exp(-abs(t) / b) / (2 * b),
    Gaussian: lambda t, s: mp.exp(-((t / s) ** 2) / 2) / (s * mp.sqrt(2 * mp.pi)),
    OneSided: lambda t, b: mp.exp(-t / b) / b if t > 0 else mpf(0),
}


def mixture(atom, *parts):
    """The same mixture twice: ours, and its density without the atom."""
    ours = Mixture(atom, tuple((weight, kind(scale)) for weight, kind, scale in parts))

    def density(t):
        return sum((read(weight) * DENSITIES[kind](t, read(scale)) for weight, kind, scale in parts), mpf(0))

    return ours, density, max(read(scale) for _, _, scale in parts)


def half(*parts):
    return [(Fraction(1, 2 * len(parts)), kind, scale) for kind, scale in parts]


CASES = {
    "two Laplaces": (0, [(Fraction(1, 2), Laplace, "1"), (Fraction(1, 2), Laplace, "0.2")], "0.7"),
    "two Laplaces, far apart": (0, [(Fraction(9, 10), Laplace, "1"), (Fraction(1, 10), Laplace, "5")], "8"),
    "two Laplaces, to the left": (0, [(Fraction(1, 4), Laplace, "2"), (Fraction(3, 4), Laplace, "0.5")], "-1"),
    "Laplace and atom": (Fraction(1, 10), [(Fraction(9, 10), Laplace, "1")], "0.5"),
    "Laplace and half an atom": (Fraction(1, 2), half((Laplace, "2")), "3"),
    "two Gaussians": (0, [(Fraction(1, 3), Gaussian, "1"), (Fraction(2, 3), Gaussian, "3")], "1"),
    "Laplace and Gaussian": (0, [(Fraction(1, 2), Laplace, "1"), (Fraction(1, 2), Gaussian, "1")], "0.5"),
    "one-sided and Laplace": (0, [(Fraction(99, 100), OneSided, "1"), (Fraction(1, 100), Laplace, "1")], "1"),
    "one-sided to the left": (0, [(Fraction(1, 2), OneSided, "1"), (Fraction(1, 2), OneSided, "2")], "-1"),
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", CASES)
def test_delta_by_quadrature(name):
    atom, parts, shift = CASES[name]
    with mp.workdps(20):
        ours, density, width = mixture(atom, *parts)
        loss = MixtureLoss(ours, number(shift))
        for epsilon in ("0", "0.4", "1.5"):
            d = read(shift)
            truth = read(atom) + hockey_stick(density, lambda t, d=d: density(t - d), epsilon, [0, d], width)
            interval = Interval.around(loss.delta(number(epsilon)))
            assert encloses(interval, truth, digits=13), (epsilon, truth, interval)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", ["two Laplaces", "Laplace and atom", "Laplace and Gaussian"])
def test_tail_by_quadrature(name):
    atom, parts, shift = CASES[name]
    with mp.workdps(20):
        ours, density, width = mixture(atom, *parts)
        d = read(shift)
        # Not at an ε that Laplace noise has with positive probability: there the tail jumps.
        truth = read(atom) + hockey_stick(density, lambda t: density(t - d), "0.23", [0, d], width, tail=True)
        interval = PrivacyLoss(((MixtureLoss(ours, number(shift)), 1),)).tail("0.23")
        assert encloses(interval, truth, digits=12), (truth, interval)


@pytest.mark.parametrize("name", ["two Laplaces", "two Laplaces, far apart", "Laplace and half an atom"])
def test_delta_is_narrow(name):
    atom, parts, shift = CASES[name]
    ours, _, _ = mixture(atom, *parts)
    for epsilon in ("0", "0.4"):
        interval = Interval.around(MixtureLoss(ours, number(shift)).delta(number(epsilon)))
        assert interval.width <= 1e-3 * interval.upper


def test_delta_by_scipy():
    ours = Mixture(0, ((Fraction(1, 2), Laplace(1)), (Fraction(1, 2), Laplace("0.2"))))

    def density(t):
        return 0.5 * stats.laplace.pdf(t) + 0.5 * stats.laplace.pdf(t, scale=0.2)

    for epsilon in (0.0, 0.4, 1.5):
        value, error = integrate.quad(
            lambda t, e=epsilon: max(0.0, density(t) - math.exp(e) * density(t - 0.7)),
            -60,
            60,
            points=[0, 0.35, 0.7],
            limit=2000,
            epsabs=1e-12,
        )
        interval = Interval.around(MixtureLoss(ours, number("0.7")).delta(number(epsilon)))
        assert interval.lower <= value + error
        assert value - error <= interval.upper


@pytest.mark.parametrize("name", ["two Laplaces", "two Gaussians", "Laplace and Gaussian", "one-sided to the left"])
def test_the_mean_is_the_divergence(name):
    atom, parts, shift = CASES[name]
    with mp.workdps(20):
        ours, density, width = mixture(atom, *parts)
        d = read(shift)
        start = mpf(0) if "one-sided" in name else min(mpf(0), d) - 40 * width
        marks = sorted({start, mpf(0), max(start, d), *(max(mpf(0), d) + k * width for k in (1, 3, 8, 20, 40))})
        truth = mp.quad(lambda t: density(t) * mp.log(density(t) / density(t - d)), marks)
        mean = Interval.around(MixtureLoss(ours, number(shift)).mean)
        assert encloses(mean, truth, digits=10), (truth, mean)


# ── Closed forms ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scale", ["0.5", "1", "10"])
@pytest.mark.parametrize("epsilon", ["0", "0.5", "3", "100", "50000"])
def test_dptext_with_nan_replaced_by_zero(scale, epsilon):
    # FACTS §3: 1 − e^(−1/b)/2 at every ε, zeros against ones.
    noise = Mixture(Fraction(1, 2), ((Fraction(1, 2), OneSided(scale)),))
    with mp.workdps(40):
        truth = 1 - mp.exp(-1 / read(scale)) / 2
        interval = Interval.around(MixtureLoss(noise, number(1)).delta(number(epsilon)))
        assert encloses(interval, truth)
        assert interval.width < 1e-9


def test_dptext_backwards_is_bounded_by_its_atom():
    # Ones against zeros: P's atom at 1 is impossible for Q (which has a density there), the rest has loss 1/b.
    noise = Mixture(Fraction(1, 2), ((Fraction(1, 2), OneSided(1)),))
    part = MixtureLoss(noise, number(-1))
    assert part.pure == INFINITY
    with mp.workdps(40):
        assert encloses(Interval.around(part.delta(number(2))), mpf(1) / 2)
        truth = mpf(1) / 2 + (1 - mp.exp(mpf(-1) / 2)) / 2
        assert encloses(Interval.around(part.delta(number("0.5"))), truth)


def test_infinite_losses():
    one_sided = [(Fraction(1, 2), OneSided("1")), (Fraction(1, 4), OneSided("2"))]
    noise = Mixture(Fraction(1, 4), tuple(one_sided))
    with mp.workdps(40):
        truth = mpf(1) / 4 + (1 - mp.exp(-3)) / 2 + (1 - mp.exp(mpf(-3) / 2)) / 4
        assert holds(MixtureLoss(noise, number(3)).infinite, truth)
        assert holds(MixtureLoss(noise, number(-3)).infinite, mpf(1) / 4)
    assert MixtureLoss(noise, number(0)).infinite == 0
    assert MixtureLoss(noise, number(0)).pure == 0


def test_the_largest_loss_of_two_laplaces():
    # Far to the left both densities fall like the wider one: the loss there tends to shift/2, and to the right of the
    # shift to −shift/2. Between, it is largest at 0, where the narrow part has its peak.
    noise = Mixture(0, ((Fraction(1, 2), Laplace(1)), (Fraction(1, 2), Laplace(2))))
    with mp.workdps(40):
        at_zero = mp.log((mpf(1) / 4 + mpf(1) / 8) / (mp.exp(-1) / 4 + mp.exp(mpf(-1) / 2) / 8))
        assert encloses(Interval.around(MixtureLoss(noise, number(1)).pure), at_zero)


def test_the_largest_loss_where_one_part_vanishes_under_q():
    # Just right of 0 Q has its Laplace part only: the loss is ln(0.995/(0.005/e)) = 6.29; no part alone has over 1.
    noise = Mixture(0, ((Fraction(99, 100), OneSided(1)), (Fraction(1, 100), Laplace(1))))
    part = MixtureLoss(noise, number(1))
    with mp.workdps(40):
        truth = mp.log(mpf("0.995") / (mpf("0.005") * mp.exp(-1)))
        assert encloses(Interval.around(part.pure), truth)
    with mp.workdps(20):
        density = mixture(0, (Fraction(99, 100), OneSided, "1"), (Fraction(1, 100), Laplace, "1"))[1]
        at_three = hockey_stick(density, lambda t: density(t - 1), 3, [0, 1], mpf(1))
        loss = PrivacyLoss(((part, 1),))
        assert loss.epsilon(float(at_three) * 0.999).upper >= 3
        # Two such answers lose at least as much as one.
        assert loss.times(2).delta(3).upper >= at_three


@pytest.mark.parametrize("shift", [800, 3000, 1_000_000])
def test_a_shift_that_leaves_the_doubles(shift):
    # P is near 0, where Q has density e^−shift: almost everything lies at a loss of about shift/2 or more.
    noise = Mixture(0, ((Fraction(1, 2), Laplace(1)), (Fraction(1, 2), Laplace(2))))
    part = MixtureLoss(noise, number(shift))
    with mp.workdps(40):
        # |t| ≤ 40 has P-mass above 1 − e^−20, and there P/Q > e^((shift − 40)/2 − 25).
        assert Interval.around(part.delta(number(100))).upper >= 1 - mp.exp(-20)
        assert Interval.around(part.mean).upper >= (mpf(shift) / 2 - 45) * (1 - mp.exp(-20))
    assert Interval.around(part.pure).upper >= shift / 2


def test_cells_cover_the_mass():
    noise = Mixture(Fraction(1, 10), ((Fraction(9, 10), Laplace(1)),))
    part = MixtureLoss(noise, number("0.5"))
    for upper in (False, True):
        cells = part.cells(0.01, 1, upper)
        total = float(cells.mass.sum())
        assert (total >= 0.9 - 1e-15) if upper else (total <= 0.9 + 1e-15)
        assert abs(total - 0.9) < 1e-8
        finite = np.isfinite(cells.high)
        assert (cells.low[finite] <= cells.centre[finite]).all()
        assert (cells.centre[finite] <= cells.high[finite]).all()


@pytest.mark.parametrize("count", [2, 3])
def test_composition_with_an_atom(count):
    # The atom alone gives δ ≥ 1 − (1 − w)^n at every ε; nothing gives more than 1 − ((1 − w)(1 − δ₁))^n.
    noise = Mixture(Fraction(1, 10), ((Fraction(9, 10), Laplace(1)),))
    loss = PrivacyLoss(((MixtureLoss(noise, number("0.5")), count),))
    with mp.workdps(40):
        interval = loss.delta(number("0.5") * count)
        assert encloses(interval, 1 - mpf("0.9") ** count, digits=12)


def test_two_mixtures_by_nested_quadrature():
    ours, density, _ = mixture(0, (Fraction(1, 2), Laplace, "1"), (Fraction(1, 2), Laplace, "0.5"))
    part = MixtureLoss(ours, number("0.6"))

    def value(t):
        return float(density(mpf(t)))

    # δ₂(ε) = ∫∫ max(0, p(s)p(t) − e^ε q(s)q(t)) ds dt, on a fine midpoint grid with its error bounded by halving.
    def grid(step):
        t = np.arange(-25, 25, step) + step / 2
        p = 0.25 * np.exp(-np.abs(t)) + 0.5 * np.exp(-2 * np.abs(t))
        q = 0.25 * np.exp(-np.abs(t - 0.6)) + 0.5 * np.exp(-2 * np.abs(t - 0.6))
        assert math.isclose(p[len(p) // 3], value(t[len(p) // 3]), rel_tol=1e-12)
        return sum(np.maximum(0, a * p - math.exp(0.5) * b * q).sum() for a, b in zip(p, q, strict=True)) * step**2

    coarse, fine = grid(0.02), grid(0.01)
    interval = PrivacyLoss(((part, 2),)).delta("0.5")
    error = 2 * abs(coarse - fine)
    assert error < 2e-4
    assert interval.lower <= fine + error
    assert fine - error <= interval.upper
