"""Composition on a grid against exact convolutions in fractions and mpmath."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay import check
from dpassay.core.numbers import number
from dpassay.errors import InputError
from dpassay.exact.pld import pld_grid, privacy_loss
from dpassay.exact.pld.loss_components import AtomLoss, Cells, GaussianLoss, LaplaceLoss
from dpassay.exact.pld.pld_grid import LossGrid, compose, cumulant, on_grid, place, tilt_for_delta, tilt_for_epsilon
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from oracles import laplace_sum_delta, laplace_sum_tail, read
from rounding_adversary import Adversary, concentrated

quick = settings(derandomize=True, deadline=None, max_examples=40)
STEP = 1 / 8


def dyadic(weights):
    """Masses that doubles hold exactly, and that sum to 1."""
    total = 1 << 20
    parts = [w * total // sum(weights) for w in weights]
    parts[0] += total - sum(parts)
    return np.array(parts) / total


def convolution(mass, count):
    """The exact masses of a sum of independent copies."""
    exact, one = [Fraction(1)], [Fraction(m) for m in mass.tolist()]
    for _ in range(count):
        result = [Fraction(0)] * (len(exact) + len(one) - 1)
        for i, a in enumerate(exact):
            for j, b in enumerate(one):
                result[i + j] += a * b
        exact = result
    return exact


weight_lists = st.lists(st.integers(0, 1000), min_size=2, max_size=12).filter(lambda w: w[0] > 0 and w[-1] > 0)


def test_every_part_of_the_rounding_error_is_counted(monkeypatch):
    """Transforms and products that err as much as their premises allow, with a unit roundoff of 2^-30.

    The error is within what is stated, and above each two of its three parts: none of them can be left out.
    """
    unit, size, points, place = 2.0**-30, 40, 64, 5
    eta, kappa, mass = 16 * unit * math.log2(points), 4 * unit, concentrated(size)
    monkeypatch.setattr(pld_grid, "_U", unit)
    monkeypatch.setattr(pld_grid, "np", Adversary(eta, kappa, place))
    composed = compose([(LossGrid(0, mass), 1)], STEP, 0.0)
    off = abs(composed.mass[place] - mass[place])
    assert off <= composed.error
    norm = float(np.linalg.norm(mass))
    forward = eta * norm * math.sqrt(2 * (points // 2 + 1) / points)
    powers, inverse = 2 * kappa, eta * norm
    assert forward + inverse < off
    assert powers + max(forward, inverse) < off


@quick
@given(weight_lists, st.integers(1, 6), st.integers(-20, 20))
def test_composed_masses_are_within_the_stated_error(weights, count, start):
    mass = dyadic(weights)
    composed = compose([(LossGrid(start, mass), count)], STEP, 0.0)
    exact = convolution(mass, count)
    assert len(composed.mass) == len(exact)
    assert all(
        abs(Fraction(got) - want) <= Fraction(composed.error)
        for got, want in zip(composed.mass.tolist(), exact, strict=True)
    )
    assert composed.losses.tolist() == [(start * count + i) * STEP for i in range(len(exact))]
    assert composed.error < 1e-12


@quick
@given(weight_lists, weight_lists, st.integers(1, 3), st.integers(1, 3))
def test_composing_two_kinds_is_their_convolution(first, second, n, m):
    one, other = dyadic(first), dyadic(second)
    composed = compose([(LossGrid(0, one), n), (LossGrid(-3, other), m)], STEP, 0.0)
    exact_one, exact_other = convolution(one, n), convolution(other, m)
    exact = [Fraction(0)] * (len(exact_one) + len(exact_other) - 1)
    for i, a in enumerate(exact_one):
        for j, b in enumerate(exact_other):
            exact[i + j] += a * b
    assert all(
        abs(Fraction(got) - want) <= Fraction(composed.error)
        for got, want in zip(composed.mass.tolist(), exact, strict=True)
    )


@quick
@given(weight_lists, st.integers(1, 6), st.integers(-8, 4), st.floats(0, 5), st.floats(0, 3))
def test_tilted_composition_brackets_delta_and_tail(weights, count, start, tilt, epsilon):
    mass = dyadic(weights)
    composed = compose([(LossGrid(start, mass), count)], STEP, tilt)
    losses = [(start * count + i) * Fraction(1, 8) for i in range(len(composed.mass))]
    with mp.workdps(50):
        e, exact = mpf(epsilon), [read(m) for m in convolution(mass, count)]
        above = [(m, read(x)) for m, x in zip(exact, losses, strict=True) if read(x) > e]
        delta = sum((m * -mp.expm1(e - x) for m, x in above), mpf(0))
        tail = sum((m for m, _ in above), mpf(0))
        assert composed.delta(epsilon, upper=False) <= delta <= composed.delta(epsilon, upper=True)
        assert composed.tail(epsilon, upper=False) <= tail <= composed.tail(epsilon, upper=True)


def test_a_tilt_keeps_small_probabilities_precise():
    # All 40 copies take the larger loss with probability 2^−80: far below the FFT's rounding without a tilt.
    grid = LossGrid(0, np.array([0.75, 0.25]))
    tilt = tilt_for_epsilon([(grid, 40)], 1.0, 39.5)
    composed = compose([(grid, 40)], 1.0, tilt)
    with mp.workdps(40):
        truth = mpf(2) ** -80 * -mp.expm1(mpf("-0.5"))
        low, high = composed.delta(39.5, upper=False), composed.delta(39.5, upper=True)
        assert low <= truth <= high
        assert high - low <= mpf(10) ** -6 * truth


@pytest.mark.parametrize("infinite", [1e-3, 1e-10, 1e-17, 1e-30, 0.9])
@pytest.mark.parametrize("count", [1, 3])
def test_the_probability_of_infinity_is_kept_however_small(infinite, count):
    grid = LossGrid(0, np.array([1 - infinite]), infinite=infinite)
    composed = compose([(grid, count)], STEP, 0.0)
    with mp.workdps(60):
        truth = 1 - (1 - mpf(infinite)) ** count
        assert composed.delta(5.0, upper=False) <= truth <= composed.delta(5.0, upper=True)
        assert composed.tail(5.0, upper=False) <= truth <= composed.tail(5.0, upper=True)
        assert composed.delta(5.0, upper=False) >= truth * (1 - mpf(10) ** -9)


def test_a_composition_that_is_too_large_is_refused():
    with pytest.raises(InputError, match="grid points"):
        compose([(LossGrid(0, np.full(1001, 1 / 1001)), 100_000)], STEP, 0.0)


# ── Placing cells ───────────────────────────────────────────────────────────────────────────────


def atoms(losses, masses):
    losses, masses = np.array(losses), np.array(masses)
    return Cells(masses, losses, losses, losses)


def delta_of(grid, step, epsilon):
    """δ(ε) of a placed part, in mpmath."""
    total = mpf(grid.infinite)
    for i, mass in enumerate(grid.mass.tolist()):
        loss = mpf(grid.start + i) * mpf(step) + mpf(grid.shift)
        if loss > epsilon:
            total += mpf(mass) * -mp.expm1(epsilon - loss)
    return total


@quick
@given(
    st.lists(st.tuples(st.floats(-3, 3), st.integers(1, 100)), min_size=1, max_size=6),
    st.floats(0.01, 0.5),
    st.floats(-3, 3),
)
def test_placing_atoms_brackets_delta(pairs, step, epsilon):
    masses = [w / sum(w for _, w in pairs) for _, w in pairs]
    cells = atoms([x for x, _ in pairs], masses)
    with mp.workdps(40):
        truth = sum(
            (mpf(m) * max(mpf(0), -mp.expm1(mpf(epsilon) - mpf(x))) for (x, _), m in zip(pairs, masses, strict=True)),
            mpf(0),
        )
        room = mpf(10) ** -15  # of adding up masses in doubles
        assert delta_of(place(cells, step, "delta-down"), step, epsilon) <= truth * (1 + room)
        assert delta_of(place(cells, step, "delta-up"), step, epsilon) >= truth * (1 - room)
        assert delta_of(place(cells, step, "loss-down"), step, epsilon) <= truth * (1 + room)
        assert delta_of(place(cells, step, "loss-up"), step, epsilon) >= truth * (1 - room)


@quick
@given(st.floats(0.01, 0.5), st.floats(0, 1), st.floats(0, 1))
def test_a_light_atom_is_not_moved_up(step, heavy, light):
    # A mass too light to set the grid's shift is the only one above ε.
    losses, masses = [heavy * step, 2 + light * step], [1 - 1e-12, 1e-12]
    grid = place(atoms(losses, masses), step, "delta-down")
    with mp.workdps(40):
        epsilon = mpf(2) - mpf(step)
        truth = mpf(masses[1]) * -mp.expm1(epsilon - mpf(losses[1]))
        assert delta_of(grid, step, epsilon) <= truth * (1 + mpf(10) ** -15)
        top = mpf(grid.start + len(grid.mass) - 1) * mpf(step) + mpf(grid.shift)
        assert top <= losses[1]


@quick
@given(st.lists(st.tuples(st.floats(-3, 3), st.integers(1, 100)), min_size=1, max_size=6), st.floats(0.01, 0.5))
def test_spreading_keeps_p_and_loses_little_of_q(pairs, step):
    masses = np.array([w / sum(w for _, w in pairs) for _, w in pairs])
    losses = np.array([x for x, _ in pairs])
    grid = place(atoms(losses, masses), step, "delta-up")
    points = (grid.start + np.arange(len(grid.mass))) * step + grid.shift
    assert math.isclose(grid.mass.sum(), 1, rel_tol=1e-14)
    kept, had = (grid.mass * np.exp(-points)).sum(), (masses * np.exp(-losses)).sum()
    assert kept <= had * (1 + 1e-12)
    assert kept >= had * (1 - 1e-7)


@pytest.mark.parametrize(
    "part",
    [LaplaceLoss(number(1)), LaplaceLoss(number("0.37")), GaussianLoss(number("0.8"))],
    ids=["laplace", "laplace off the grid", "gaussian"],
)
@pytest.mark.parametrize("step", [0.25, 0.1, 0.01])
def test_one_placed_part_brackets_its_closed_form(part, step):
    with mp.workdps(40):
        for epsilon in ("0", "0.2", "0.3501", "0.9"):
            e = read(epsilon)
            truth = part.delta(number(epsilon))
            low = delta_of(on_grid([(part, 1)], step, "delta-down")[0][0], step, e)
            high = delta_of(on_grid([(part, 1)], step, "delta-up")[0][0], step, e)
            assert low <= mpf(truth.a) * (1 + mpf(10) ** -14)
            assert mpf(truth.b) * (1 - mpf(10) ** -14) <= high


@pytest.mark.parametrize(("shift", "count"), [("1", 2), ("0.37", 5), ("0.1", 40)])
@pytest.mark.parametrize("divisor", [3, 16, 64.5])
def test_composed_laplace_brackets_at_every_step(shift, count, divisor):
    # The bracket must hold for coarse on_grid and for those that the shift is no multiple of.
    parts, step = [(LaplaceLoss(number(shift)), count)], float(shift) / divisor
    with mp.workdps(40):
        for share in ("0.1", "0.5", "0.9"):
            epsilon = read(shift) * count * read(share)
            e = float(epsilon)
            truth, tail = (f([(shift, count)], mpf(e)) for f in (laplace_sum_delta, laplace_sum_tail))
            for side, upper in (("delta-down", False), ("delta-up", True)):
                placed = on_grid(parts, step, side)
                value = compose(placed, step, tilt_for_epsilon(placed, step, e)).delta(e, upper)
                assert (value >= truth) if upper else (value <= truth)
            for side, upper in (("loss-down", False), ("loss-up", True)):
                placed = on_grid(parts, step, side)
                value = compose(placed, step, 0.0).tail(e, upper)
                assert (value >= tail * (1 - 1e-13)) if upper else (value <= tail * (1 + 1e-13))


# ── Tilts ───────────────────────────────────────────────────────────────────────────────────────


@quick
@given(weight_lists, st.integers(1, 5), st.floats(0, 10))
def test_the_cumulant_and_its_slope(weights, count, tilt):
    mass = dyadic(weights)
    value, slope = cumulant([(LossGrid(-2, mass), count)], STEP, tilt)
    with mp.workdps(40):
        terms = [(mpf(m), mpf(i - 2) / 8) for i, m in enumerate(mass.tolist())]
        moment = sum(m * mp.exp(tilt * x) for m, x in terms)
        first = sum(m * x * mp.exp(tilt * x) for m, x in terms)
        assert abs(value - count * mp.log(moment)) < 1e-12 * (1 + abs(value))
        assert abs(slope - count * first / moment) < 1e-12 * (1 + abs(slope))


def test_the_tilt_moves_the_mean_to_epsilon():
    parts = [(LossGrid(-4, dyadic([1, 2, 3, 4, 5, 4, 3, 2, 1])), 7)]
    for epsilon in (0.5, 1.0, 2.5):
        tilt = tilt_for_epsilon(parts, STEP, epsilon)
        assert math.isclose(cumulant(parts, STEP, tilt)[1], epsilon, rel_tol=1e-6)
    assert tilt_for_epsilon(parts, STEP, -1.0) == 0.0


def test_the_tilt_for_delta_minimises_the_chernoff_bound():
    parts = [(LossGrid(-4, dyadic([1, 2, 3, 4, 5, 4, 3, 2, 1])), 30)]
    tilt = tilt_for_delta(parts, STEP, 1e-6)

    def bound(theta):
        return (cumulant(parts, STEP, theta)[0] - math.log(1e-6)) / theta

    assert bound(tilt) <= min(bound(tilt * 1.01), bound(tilt * 0.99))


def test_parts_with_infinite_losses_carry_them():
    part = AtomLoss(((number(0), number("0.75")),), number("0.25"))
    ((grid, count),) = on_grid([(part, 2)], STEP, "delta-up")
    assert count == 2
    assert grid.infinite == 0.25
    assert grid.mass.sum() == 0.75


# ── Compositions are kept ────────────────────────────────────────────────────────────────────────


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The arguments of every composition from now on, with none kept from before."""
    calls: list[tuple[object, ...]] = []

    def compose_and_note(grids, step, tilt):
        calls.append((*((g.start, g.mass.tobytes(), g.shift, g.infinite, n) for g, n in grids), step, tilt))
        return compose(grids, step, tilt)

    for answers in (privacy_loss._delta_of_sum, privacy_loss._epsilon_of_sum, privacy_loss._tilt):
        answers.cache_clear()
    monkeypatch.setattr(pld_grid, "_kept", {})
    monkeypatch.setattr(pld_grid, "compose", compose_and_note)
    return calls


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("text", "dim", "delta"),
    [
        ("clip(l2, 1) | laplace(2)", 4, "1e-6"),  # several deltas ask for the same tilt
        ("clip(l2, 1) | laplace(2)", 32, "1e-6"),
        ("clip(linf, 1) | laplace(9)", 50, "0"),
        ("clip(linf, 1) | laplace(9)", 50, "1e-5"),
        ("dropout(0.5) | clip(linf, 1) | laplace(1)", 6, "1e-4"),
    ],
)
def test_a_check_makes_no_composition_twice(monkeypatch, text, dim, delta):
    calls = counted(monkeypatch)
    neighbours = "word" if "dropout" in text else None
    verdict = check(text, epsilon=0.5, delta=delta, dim=dim, neighbours=neighbours)
    assert verdict.word == "refuted"
    verdict.advice.complete()  # what holds and the repairs need compositions as well
    assert len(calls) >= 2
    assert len(calls) == len(set(calls))


def test_equal_losses_share_their_compositions(monkeypatch):
    calls = counted(monkeypatch)
    first, second = (PrivacyLoss(((LaplaceLoss(number(shift)), 30),)) for shift in (0.5, 0.5))
    assert first is not second
    assert first.epsilon(1e-6) == second.epsilon(1e-6)
    assert first.epsilon_above(number(1e-6)).b >= first.epsilon_number(number(1e-6)).a
    assert len(calls) == len(set(calls))


def test_what_is_kept_is_bounded(monkeypatch):
    calls = counted(monkeypatch)
    monkeypatch.setattr(pld_grid, "KEPT_POINTS", 100)

    def points(count):
        return len(pld_grid.composed_loss(((LaplaceLoss(number(1)), count),), 0.25, "delta-up", 0.0).mass)

    assert points(5) == points(5) == 41  # 2·5/0.25 steps
    assert len(calls) == 1
    assert points(6) == 49
    assert points(5) == 41  # both fit
    assert len(calls) == 2
    assert points(7) == 57  # 41 + 57 ≤ 100: the oldest one, of 49 points, goes
    assert points(5) == 41
    assert len(calls) == 3
    assert points(6) == 49
    assert len(calls) == 4
    assert points(20) == 161  # too large to be kept, and nothing goes for its sake
    assert points(6) == 49
    assert len(calls) == 5


@pytest.mark.parametrize("tilt", [0.0, 3.0])
@pytest.mark.parametrize("counts", [(32,), (1023,), (5000, 40, 1)])
def test_frequencies_that_doubles_do_not_hold_are_left_out(monkeypatch, counts, tilt):
    parts = tuple((LaplaceLoss(number("0.5") / number(i + 1)), count) for i, count in enumerate(counts))
    grids = on_grid(parts, STEP / 4, "delta-up")
    short = compose(grids, STEP / 4, tilt)
    monkeypatch.setattr(pld_grid, "MANY", math.inf)
    whole = compose(grids, STEP / 4, tilt)
    assert (short.mass == whole.mass).all()
    assert (short.error, short.relative, short.log_norm) == (whole.error, whole.relative, whole.log_norm)
