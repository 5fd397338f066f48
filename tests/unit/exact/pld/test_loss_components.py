import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.core.numbers import INFINITY, ONE, ZERO, exp, number
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss, high_share, minimum_one
from oracles import ends, finite_delta, gaussian_delta, holds, laplace_sum_delta, normal_cdf, read

quick = settings(derandomize=True, deadline=None, max_examples=60)
EPSILONS = ["0", "0.001", "0.3", "1", "7.5"]


# ── Laplace ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shift", ["0.001", "1", "5", "750", "53013.36"])
@pytest.mark.parametrize("epsilon", [*EPSILONS, "749.9", "53000"])
def test_laplace_delta_is_its_closed_form(shift, epsilon):
    with mp.workdps(60):
        truth = max(mpf(0), 1 - mp.exp((read(epsilon) - read(shift)) / 2))
        assert holds(LaplaceLoss(number(shift)).delta(number(epsilon)), truth)


def test_laplace_facts():
    part = LaplaceLoss(ONE)
    with mp.workdps(60):
        assert holds(part.mean, mp.exp(-1))  # FACTS §1: ε − 1 + e^−ε = 0.36788 at ε = 1
        assert mp.nstr(mp.exp(-1), 5) == "0.36788"
    assert part.pure == 1
    assert part.infinite == 0


def test_the_general_oracle_has_the_closed_form_as_its_first_case():
    with mp.workdps(40):
        for shift, epsilon in itertools.product(["0.5", "3"], ["0", "0.4", "2.9"]):
            closed = max(mpf(0), 1 - mp.exp((read(epsilon) - read(shift)) / 2))
            assert abs(laplace_sum_delta([(shift, 1)], epsilon) - closed) <= mpf(10) ** -29


@pytest.mark.parametrize("shift", ["0.01", "1", "3.7", "40"])
def test_laplace_mean_by_quadrature(shift):
    with mp.workdps(30):
        a = read(shift)
        truth = a / 2 - a * mp.exp(-a) / 2 + mp.quad(lambda x: x * mp.exp((x - a) / 2) / 4, mp.linspace(-a, a, 21))
        assert holds(LaplaceLoss(number(shift)).mean, truth, digits=25)


def interval_masses(part, low, high):
    """P and Q mass of the losses between two finite ends, atoms left out, by formula."""
    if isinstance(part, LaplaceLoss):
        a = read(ends(part.shift)[0])
        p = (mp.exp((high - a) / 2) - mp.exp((low - a) / 2)) / 2
        q = (mp.exp(-(low + a) / 2) - mp.exp(-(high + a) / 2)) / 2
        return p, q
    mu = read(ends(part.mu)[0])
    return tuple(
        normal_cdf((high - m) / mu) - normal_cdf((low - m) / mu)
        if high < m
        else normal_cdf((m - low) / mu) - normal_cdf((m - high) / mu)
        for m in (mu**2 / 2, -(mu**2) / 2)
    )


@pytest.mark.parametrize("shift", ["1", "0.3125", "6.7", "80"])
@pytest.mark.parametrize(("step", "stride"), [(1 / 64, 1), (1 / 64, 2), (0.07, 1)])
@pytest.mark.parametrize("upper", [False, True])
def test_laplace_cells_have_their_masses(shift, step, stride, upper):
    part = LaplaceLoss(number(shift))
    cells = part.cells(step, stride, upper)
    assert math.isclose(cells.mass.sum(), 1, rel_tol=1e-12)
    assert (cells.low <= cells.centre).all()
    assert (cells.centre <= cells.high).all()
    with mp.workdps(40):
        for i in range(2, len(cells.mass), 7):
            p, q = interval_masses(part, mpf(cells.low[i]), mpf(cells.high[i]))
            assert abs(cells.mass[i] / p - 1) < 1e-12
            assert abs(cells.centre[i] - mp.log(p / q)) < 1e-12 * (1 + abs(cells.centre[i]))


# ── Gaussian ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mu", ["0.001", "0.5", "2", "30", "400"])
@pytest.mark.parametrize("epsilon", [*EPSILONS, "450", "80000"])
def test_gaussian_delta_is_its_closed_form(mu, epsilon):
    with mp.workdps(60):
        assert holds(GaussianLoss(number(mu)).delta(number(epsilon)), gaussian_delta(mu, epsilon), digits=45)


def test_gaussian_moments():
    part = GaussianLoss(number("0.3"))
    with mp.workdps(60):
        assert holds(part.mean, mpf(9) / 200)
    assert part.pure == INFINITY
    assert part.infinite == 0
    still = GaussianLoss(ZERO)
    assert still.pure == 0
    assert still.delta(ZERO) == 0


@pytest.mark.parametrize("mu", ["0.0625", "1", "8", "45.75", "100"])  # doubles, so that both sides use the same
@pytest.mark.parametrize("upper", [False, True])
def test_gaussian_cells_err_to_the_side_asked_for(mu, upper):
    part = GaussianLoss(number(mu))
    cells = part.cells(2 * part.span / 4096, 1 if upper else 2, upper)
    with mp.workdps(60):
        for i in range(0, len(cells.mass), 37):
            low, high = mpf(cells.low[i]), mpf(cells.high[i])
            if not math.isfinite(high):
                continue
            p, q = interval_masses(part, low, high)
            if p < mpf(10) ** -40:
                continue
            assert cells.mass[i] >= p if upper else cells.mass[i] <= p
            merged = mp.log(p / q)
            slack = mpf(10) ** -9 * (high - low)
            assert cells.centre[i] >= merged - slack if upper else cells.centre[i] <= merged + slack, i


# ── Atoms ───────────────────────────────────────────────────────────────────────────────────────

weights = st.lists(st.integers(0, 20), min_size=2, max_size=5).filter(lambda w: sum(w) > 0)


@quick
@given(weights, weights, st.sampled_from(EPSILONS))
def test_atoms_against_the_definition(first, second, epsilon):
    size = min(len(first), len(second))
    if not sum(first[:size]) or not sum(second[:size]):
        return
    p, q = ([Fraction(w, sum(ws[:size])) for w in ws[:size]] for ws in (first, second))
    part = AtomLoss.between(tuple(map(number, p)), tuple(map(number, q)))
    with mp.workdps(60):
        truth = finite_delta(p, q, epsilon)
        assert holds(part.delta(number(epsilon)), truth) or abs(truth) < mpf(10) ** -45
        infinite = sum((a for a, b in zip(p, q, strict=True) if a and not b), Fraction(0))
        assert holds(part.infinite, read(infinite))
        losses = [(a, a / b) for a, b in zip(p, q, strict=True) if a and b]
        if infinite:
            assert part.pure == INFINITY
            assert part.mean == INFINITY
        else:
            assert holds(part.pure, max(mp.log(read(ratio)) for _, ratio in losses), digits=45) or all(
                ratio == 1 for _, ratio in losses
            )
            mean = sum(read(a) * mp.log(read(ratio)) for a, ratio in losses)
            low, high = ends(part.mean)
            assert read(low) - mpf(10) ** -45 <= mean <= read(high) + mpf(10) ** -45


def test_a_single_atom_has_powers():
    part = AtomLoss(((number(-1), exp(-1)),), 1 - exp(-1))
    power = part.power(5)
    with mp.workdps(60):
        assert holds(power.infinite, 1 - mp.exp(-5))
        assert holds(power.atoms[0][1], mp.exp(-5))
        assert holds(power.atoms[0][0], mpf(-5))
    bit = AtomLoss.between((number("0.75"), number("0.25")), (number("0.25"), number("0.75")))
    assert bit.power(1) is bit
    assert bit.power(2) is None


def test_a_product_of_two_atom_losses():
    p = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    q = [Fraction(1, 4), Fraction(3, 4)], [Fraction(1, 5), Fraction(4, 5), Fraction(0)]
    first, second = (AtomLoss.between(tuple(map(number, a)), tuple(map(number, b))) for a, b in zip(p, q, strict=True))
    both = first.product(second)
    with mp.workdps(60):
        for epsilon in EPSILONS:
            joint = [[a * b for a in table[0] for b in table[1]] for table in (p, q)]
            assert holds(both.delta(number(epsilon)), finite_delta(*joint, epsilon))


@pytest.mark.parametrize("upper", [False, True])
def test_the_cells_of_atoms_are_the_atoms(upper):
    part = AtomLoss.between((number("0.7"), number("0.3")), (number("0.4"), number("0.6")))
    cells = part.cells(0.1, 1, upper)
    with mp.workdps(40):
        truth = sorted([(mp.log(mpf(7) / 4), mpf(7) / 10), (mp.log(mpf(1) / 2), mpf(3) / 10)])
        for (loss, mass), got_loss, got_mass in zip(
            truth, *zip(*sorted(zip(cells.centre, cells.mass, strict=True)), strict=True), strict=True
        ):
            assert (got_loss >= loss) if upper else (got_loss <= loss)
            assert (got_mass >= mass) if upper else (got_mass <= mass)
            assert abs(got_loss - loss) < 1e-15
            assert abs(got_mass - mass) < 1e-15


# ── Helpers ─────────────────────────────────────────────────────────────────────────────────────


@quick
@given(st.floats(-50, 50), st.floats(1e-6, 5), st.floats(0, 1))
def test_the_share_leaves_no_more_of_q_than_the_cell_has(low, width, position):
    centre, high = low + position * width, low + width
    share = float(high_share(np.array([centre]), np.array([low]), np.array([high]))[0])
    assert 0 <= share <= 1
    with mp.workdps(40):
        exact = -mp.expm1(mpf(low) - mpf(centre)) / -mp.expm1(mpf(low) - mpf(high))
        assert share >= min(mpf(1), exact)
        assert share <= exact + mpf(10) ** -8


def test_the_share_of_a_cell_without_width_or_without_end():
    points = np.array([1.0, 2.0])
    assert high_share(points, points, points).tolist() == [1.0, 1.0]
    assert high_share(np.array([np.inf]), np.array([0.0]), np.array([np.inf])).tolist() == [1.0]


def test_probabilities_are_capped():
    assert minimum_one(number("1.5")) == 1
    assert ends(minimum_one(number("0.5"))) == (Fraction(1, 2), Fraction(1, 2))
