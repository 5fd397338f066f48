"""Laplace noise on a ball, level by level: the lemmas of the proof, single shift vectors, and how tight it is."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from dpassay.core.numbers import ZERO, down, middle, number, up
from dpassay.core.theorems import Theorem
from dpassay.evidence.verifier.noises.levels import _FOUND, _few, _many, _row, _threshold, _variances, log_delta
from dpassay.exact.analysis import analyse
from dpassay.exact.mechanisms.additive_noise import additive_uppers
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.level_branches import _BranchSearch, _by_class, _tops
from dpassay.exact.profiles.level_branches import log_delta as own_log_delta
from dpassay.exact.profiles.level_tables import Levels, _added, _gaussian, _one_more
from dpassay.exact.profiles.levels import LevelBound
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Ball
from oracles import laplace_sum_delta


def one_shift(y: float, h: float) -> float:
    """δ of one coordinate, at any real y."""
    if abs(y) >= h:
        return max(0.0, 1 - math.exp(y))
    return 1 - math.exp((y - h) / 2)


def after(function, y: float, h: float, kinks: list[float]) -> float:  # type: ignore[no-untyped-def]
    """E[function(y − loss)] over the loss of one coordinate with the shift h."""
    inside = sorted(y - k for k in kinks if abs(y - k) < h)
    middle_part = integrate.quad(
        lambda loss: math.exp((loss - h) / 2) / 4 * function(y - loss), -h, h, points=inside or None, limit=200
    )[0]
    return function(y - h) / 2 + math.exp(-h) / 2 * function(y + h) + middle_part


def gaussian(y: float, variance: float) -> float:
    deviation = math.sqrt(variance)
    first, second = (stats.norm.sf(y / deviation + sign * deviation / 2) for sign in (-1, 1))
    return float(first - math.exp(y) * second)


# ── What the proof says ─────────────────────────────────────────────────────────────────────────


def test_one_more_coordinate_is_never_less_than_the_truth_and_hardly_more() -> None:
    step, first, second = 0.05, 8, 5
    y = step * np.arange(40)
    single = np.array([math.exp(-v / 2) * one_shift(v, first * step) for v in y])[:, None]
    found = _one_more(np.zeros((40, 1)), first, step)
    assert found == pytest.approx(single, abs=1e-14)
    kinks = [-first * step, first * step, 0.0]
    both = [math.exp(-v / 2) * after(lambda w: one_shift(w, first * step), v, second * step, kinks) for v in y]
    found = _one_more(single, second, step)[:, 0]
    assert (found >= np.array(both) - 1e-12).all()
    assert found[:13] == pytest.approx(np.array(both)[:13], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("other", [0.3, 1.0])
def test_a_shift_is_no_worse_than_a_random_one_of_two_levels(other: float) -> None:
    low, high = 0.4, 0.9
    kinks = [-other, other, 0.0]
    for shift in (0.45, 0.6, 0.85):
        weight = (math.exp(-shift / 2) - math.exp(-high / 2)) / (math.exp(-low / 2) - math.exp(-high / 2))
        cost = weight * low**2 + (1 - weight) * high**2 - shift**2
        assert 0 <= cost <= (high - low) ** 2 / 4 * (1 + high / 2) * math.exp(high - low)
        for y in np.linspace(-1.5, 1.5, 13).tolist():
            deltas = [after(lambda w: one_shift(w, other), y, h, kinks) for h in (shift, low, high)]
            assert deltas[0] <= weight * deltas[1] + (1 - weight) * deltas[2] + 1e-12


@pytest.mark.parametrize(("low", "high", "variance"), [(0.3, 0.4, 0.05), (0.1, 0.3, 0.01), (1.0, 1.5, 0.3)])
def test_behind_a_gaussian_rounding_costs_less(low: float, high: float, variance: float) -> None:
    def inside(h: float) -> float:  # of what a coordinate has, with the weight of the Gaussian
        return (
            2
            * integrate.quad(lambda z: math.exp(-(z**2) / 2 / variance) * (math.exp(-z / 2) - math.exp(-h / 2)), 0, h)[
                0
            ]
        )

    bend = 1 / (4 * low) + min(1 / (6 * variance), 1 / (2 * low**2))
    apart = high**2 - low**2
    most = apart**2 / 8 * ((1 + math.exp(bend * apart)) / 2) ** 2 * bend
    for part in (0.2, 0.5, 0.8):
        shift = low + part * (high - low)
        weight = (inside(high) - inside(shift)) / (inside(high) - inside(low))
        assert 0 <= weight * low**2 + (1 - weight) * high**2 - shift**2 <= most
        for y in np.linspace(0, high + 4 * math.sqrt(variance), 12).tolist():
            there = [after(lambda w: gaussian(w, variance), y, h, []) for h in (shift, low, high)]
            assert there[0] <= weight * there[1] + (1 - weight) * there[2] + 1e-11


@pytest.fixture
def exhaustive(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Branches are split until nothing is left to gain, or a given number of times; nothing is kept for other tests."""

    def splits(count: int) -> None:
        monkeypatch.setattr("dpassay.exact.profiles.level_branches.SPLITS", count)
        monkeypatch.setattr("dpassay.exact.profiles.level_branches._PATIENCE", count)
        monkeypatch.setattr("dpassay.evidence.verifier.noises.levels._ROUNDS", count)
        forget()

    def forget() -> None:
        _FOUND.clear()
        _tops.cache_clear()
        own_log_delta.cache_clear()

    splits(10**6)
    yield splits
    forget()


def of_vector(vector: tuple[int, ...], step: float, rows: int, start: np.ndarray | None = None) -> np.ndarray:
    """e^(−y/2) δ(y) of a vector of levels, one coordinate after the other."""
    table = np.full((rows, 1), 1e-290) if start is None else start[:, None]
    for level in vector:
        if level:
            table = _one_more(table, level, step)
    return table[:, 0]


@pytest.mark.parametrize("both_ways", [False, True])
def test_a_search_of_all_branches_finds_the_worst_vector_of_levels(both_ways: bool, exhaustive) -> None:  # type: ignore[no-untyped-def]
    levels, row = Levels(0.11, 8, 3, 0, 2e-2, both_ways=both_ways), 9
    triples = itertools.combinations_with_replacement(range(9), 3)
    vectors = [v for v in triples if sum(j * j for j in v) <= levels.largest_cost]
    values = {v: math.log(of_vector(v, levels.step, 41)[row]) for v in vectors}
    every = np.array(
        [
            [max(values[v] - each * sum(j * j for j in v) for v in vectors if v[-1] == first) for first in range(9)]
            for each in levels.multipliers
        ]
    ).T
    exact = (_by_class(levels, every) + levels.log_moments).min(axis=1).max()
    for count in (0, 3, 20, 10**6):  # fewer splits are valid, and give more
        exhaustive(count)
        tops = _tops(levels, 40, row)
        assert (tops >= every - 1e-12).all()
        found = (_by_class(levels, tops) + levels.log_moments).min(axis=1).max()
    assert found == pytest.approx(exact, abs=1e-9)
    search, open_, leaves = (
        _BranchSearch(levels, 40),
        list(_BranchSearch(levels, 40).start(row)),
        np.full(every.shape, -math.inf),
    )
    while open_:  # split until each branch is one vector: none is lost, and none is made up
        branch = open_.pop()
        if branch.cap:
            open_ += search.split(branch)
        else:
            leaves[branch.first] = np.maximum(leaves[branch.first], branch.tops)
    assert leaves == pytest.approx(every, abs=1e-9)
    checked = _few(levels.step, 8, 3, 40, levels.multipliers, both_ways)
    for rounds in (0, 5, 10**6):
        assert (_row(replace(checked, rounds=rounds), checked.tables(), row) >= every - 1e-12).all()
    few = [v for v in vectors if v[-1] in (3, 8)]
    for v in few[::7]:  # and what a vector is said to have is not below the truth
        groups = [(f"{j * 11 / 100}", v.count(j)) for j in set(v) if j]
        true = laplace_sum_delta(groups, f"{row * 11 / 100}")
        assert float(true) * math.exp(-row * levels.step / 2) <= math.exp(values[v]) * (1 + 1e-12)


@pytest.mark.parametrize("price", [0, 3])
def test_no_vector_of_levels_and_small_shifts_is_above_the_branches(price: int) -> None:
    step, reach, row = 0.7 / 24, 60, 21
    levels = Levels(step, 24, 60, price, 3e-3, _threshold(step * 24, 24, 60, price)[0])
    checked = _many(step, 24, 60, reach, levels.multipliers, price)
    assert checked.levels == list(levels.levels)
    assert checked.most == levels.largest_cost
    rng, gaussian_part = np.random.default_rng(1), _gaussian(levels, reach)
    halves = [_tops(levels, reach, row), _row(checked, checked.tables(), row)]
    near = [-math.inf, -math.inf]
    for number_ in range(400):
        size = int(rng.integers(1, 5))
        vector = tuple(sorted(int(j) for j in rng.choice(levels.levels, size)))
        paid = sum(levels.paid(j) for j in vector)
        if paid > levels.largest_cost:
            continue
        most = (levels.largest_cost - paid) // 4
        small = (most if number_ % 2 else int(rng.integers(0, most + 1))) * 4  # also all that there is room for
        value = math.log(of_vector(vector, levels.step, reach + 1, gaussian_part[:, small])[row])
        for half, tops in enumerate(halves):
            over = value - levels.multipliers * (paid + small) - tops[levels.firsts.index(vector[-1])]
            assert (over <= 1e-9).all()
            near[half] = max(near[half], over.max())
    assert min(near) > -0.3


def test_the_verifier_allows_for_both_levels_around_the_largest_shift() -> None:
    multipliers = 3e-3 * np.geomspace(0.1, 1, 30)
    few, many = _few(0.05, 24, 8, 40, multipliers, False), _many(0.03, 24, 60, 40, multipliers, 0)
    for steps, levels in ((few, [0, *few.levels]), (many, [0, *many.levels])):
        for shift in np.linspace(0, 24, 200).tolist():
            above = next(place for place, level in enumerate(levels) if level >= shift)
            # Where coordinates are not counted, shifts up to the first level are not rounded.
            around = {0} if steps is many and shift <= levels[1] else {max(0, above - 1), above}
            assert any(around <= set(pair) for pair in steps.pairs)


def test_the_largest_shift_tells_which_levels_can_be_the_largest() -> None:
    bound = LevelBound(number(1), 2.0, 3)
    levels = bound._levels(0.9)
    reach = levels.reach(0.9)
    i = int(0.9 / levels.step)  # at a smaller ε U is larger
    classes = (_by_class(levels, _tops(levels, reach, i)) + levels.log_moments).min(axis=1) + 0.9 / 2
    for vector in ((1.0, 0.0, 0.0), (0.8, 0.6, 0.0), (0.58, 0.57, 0.57), (0.75, 0.5, 0.43), (0.9, 0.3, 0.3)):
        true = laplace_sum_delta([(repr(v), 1) for v in vector if v], "0.9")
        assert math.log(true) <= classes[int(max(vector) / levels.step - 1e-9)]
    assert classes[int(0.3 / levels.step)] < classes.max() - 1  # no such vector has the norm 1


@pytest.mark.parametrize("variance", [0.02, 0.2, 3.0])
@pytest.mark.parametrize("part", [1.0, 0.5, 0.1])
def test_a_gaussian_takes_up_a_small_shift(variance: float, part: float) -> None:
    shift = part * min(0.5, math.sqrt(variance))
    more = shift**2 * (1 - shift / 3 + 0.15 * shift**2) + shift**4 / (6 * variance)
    for y in np.linspace(0, 6 * math.sqrt(variance), 25).tolist():
        there = after(lambda w: gaussian(w, variance), y, shift, [])
        assert there <= gaussian(y, variance + more) * (1 + 1e-9) + 1e-14
    if part < 1:  # where the shift is well below the deviation, hardly less would not do
        assert after(lambda w: gaussian(w, variance), 0.0, shift, []) > gaussian(0.0, variance + 0.97 * more)


@pytest.mark.parametrize("price", [0.0, 1e-4, 3e-3])
def test_no_small_shifts_add_more_to_a_variance(price: float) -> None:
    rng, largest, dim = np.random.default_rng(3), 0.2, 60
    tight = 0.0
    for _ in range(400):
        count = int(rng.integers(1, dim + 1))
        shifts = largest * rng.uniform(0, 1) * rng.uniform(rng.uniform(0, 1), 1, count)
        cost = (shifts**2 + price).sum()
        true = (shifts**2 - shifts**3 / 3 + 0.15 * shifts**4).sum()
        for found in (_added(np.array([cost]), price, largest, dim), _variances(np.array([cost]), price, largest, dim)):
            assert true <= found[0] * (1 + 1e-12)
        tight = max(tight, true / found[0])
    assert tight > 0.97
    whole = dim * (largest**2 + price)  # beyond what all coordinates can cost, nothing is added
    assert _added(np.array([whole]), price, largest, dim) == _added(np.array([2 * whole]), price, largest, dim)


def test_the_gaussian_holds_what_many_small_shifts_have() -> None:
    levels = Levels.of(1.0, 10**4, 4.0, 2.0)
    table, shift = _gaussian(levels, 200), levels.small * levels.step
    cost = 3 * levels.cost // 4
    count = int(cost * levels.step**2 / ((1 + levels.price / levels.small**2) * (1 + levels.premium)) / shift**2)
    loss = PrivacyLoss.of_shifts(Laplace(1), [(number(shift), count)])
    for i in (5, 50, 150):
        true = down(loss.delta_number(number(i * levels.step))) * math.exp(-i * levels.step / 2)
        assert true <= table[i, cost] <= (1.2 if i < 100 else 2) * true


# ── Single shift vectors ────────────────────────────────────────────────────────────────────────


def vectors(dim: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    few = [np.ones(1), np.ones(2), np.ones(dim), np.ones(max(1, dim - 1)), np.r_[2.0, np.ones(dim - 1)]]
    few += [np.ones(min(dim, m)) for m in (3, 4)] + [np.r_[1.0, 1.0, np.full(dim - 2, 0.5 / math.sqrt(dim))]]
    return [*few, 1.0 + rng.integers(0, 4, dim), np.r_[np.full(3, 4.0), np.ones(max(1, dim - 3))][:dim]]


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("dim", "size", "delta"),
    [
        *[(2, 0.5, "0.1"), (3, 1.0, "0.05"), (8, 0.1, "1e-3"), (20, 1.0, "1e-6"), (900, 0.5, "1e-3")],
        *[(8, 0.3, "0.01"), (32, 0.3, "0.01"), (64, 0.2, "0.01")],
        *[pytest.param(n, norm, d, marks=pytest.mark.long) for n, norm, d in [(33, 0.707, "0.1"), (300, 1.0, "0.2")]],
        *[pytest.param(64, 0.3, "1e-3", marks=pytest.mark.long), pytest.param(48, 1.0, "0.2", marks=pytest.mark.long)],
        *[pytest.param(n, 4.0, "0.3", marks=pytest.mark.long) for n in (33, 768)],
        *[pytest.param(300, 3.0, delta, marks=pytest.mark.long) for delta in ("0.1", "0.3")],
        *[(5, 1.4, "0.3"), (8, 5.0, "0.1")],
        *[pytest.param(n, 1.4, "0.3", marks=pytest.mark.long) for n in (8, 12, 16, 40, 41, 64, 96, 200, 300)],
        *[pytest.param(n, 1.0, "0.2", marks=pytest.mark.long) for n in (16, 41, 200)],
        *[pytest.param(n, 5.5, "0.3", marks=pytest.mark.long) for n in (3, 20, 64, 500)],
    ],
)
def test_no_vector_beats_the_bound_and_one_comes_near(dim: int, size: float, delta: str) -> None:
    bound = LevelBound(number(size), 2.0, dim)
    above, best = up(bound.epsilon(number(delta))), 0.0
    for vector in vectors(dim):
        values, counts = np.unique(vector, return_counts=True)
        scaled = values * size / math.sqrt((vector**2).sum())
        loss = PrivacyLoss.of_shifts(Laplace(1), [(number(v), int(n)) for v, n in zip(scaled, counts, strict=True)])
        best = max(best, down(loss.epsilon_number(number(delta))))
    assert best <= above <= 1.02 * best


def test_random_vectors_of_three_coordinates() -> None:
    rng, bound = np.random.default_rng(8), LevelBound(number(1), 2.0, 3)
    above = {y: up(bound.delta(number(y))) for y in (0.2, 0.8, 1.3)}
    for shifts in np.abs(rng.normal(size=(4, 3))):
        a, b, c = (shifts / np.linalg.norm(shifts)).tolist()
        kinks = [0.0, a, -a]

        def two(w: float, a: float = a, b: float = b, kinks: list[float] = kinks) -> float:
            return after(lambda v: one_shift(v, a), w, b, kinks)

        for y, most in above.items():
            corners = [s * a + t * b for s in (-1, 1) for t in (-1, 1)]
            assert after(two, y, c, corners) <= most


# ── The verifier's half, and where it is used ───────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("dim", "size", "epsilon"),
    [
        (5, "0.7", 1.1),
        pytest.param(50, "0.2", 0.5, marks=pytest.mark.long),
        pytest.param(128, "0.707", 0.6, marks=pytest.mark.long),
    ],
)
def test_both_halves_agree(dim: int, size: str, epsilon: float, exhaustive) -> None:  # type: ignore[no-untyped-def]
    bound = LevelBound(number(size), 2.0, dim)
    tilt = bound.best_tilt(number(epsilon))
    exhaustive(30)
    theirs, ours = (log_delta(bound.euclidean, dim, tilt, epsilon), math.log(up(bound.delta(number(epsilon)))))
    assert theirs <= ours
    assert theirs == pytest.approx(ours, abs=1e-7)


def test_the_verifier_looks_closer_than_the_prover() -> None:
    bound = LevelBound(number("0.3"), 2.0, 6)
    theirs = log_delta(bound.euclidean, 6, bound.best_tilt(number("0.45")), 0.45)
    assert -0.01 < theirs - math.log(up(bound.delta(number("0.45")))) <= 0


def test_what_was_found_is_used_again_and_its_work_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[tuple[int, object]] = []
    monkeypatch.setattr("dpassay.evidence.verifier.noises.levels.spend", lambda much, once: work.append((much, once)))
    _FOUND.clear()
    first = log_delta(0.5, 3, 2.0, 0.4)
    assert len(_FOUND) == 1
    assert log_delta(0.5, 3, 2.0, 0.4) == first
    assert len(work) == 2
    assert work[0] == work[1]
    assert log_delta(0.5, 3, 2.0, 0.5) < first
    assert len(_FOUND) == 2
    assert work[2] != work[1]


@pytest.mark.parametrize(
    ("dim", "size", "delta"), [(128, "0.707", "0.1"), pytest.param(768, "1.44", "0.1", marks=pytest.mark.long)]
)
def test_many_coordinates_and_a_large_delta_are_within_two_percent(dim: int, size: str, delta: str) -> None:
    norm = number(size)
    spread = [PrivacyLoss.of_shifts(Laplace(1), [(norm / number(n) ** number("0.5"), n)]) for n in (2, dim)]
    true = max(down(loss.epsilon_number(number(delta))) for loss in spread)
    assert true <= up(LevelBound(norm, 2.0, dim).epsilon(number(delta))) <= 1.02 * true


def test_other_tilts_give_other_bounds_that_hold_too() -> None:
    loss = PrivacyLoss.of_shifts(Laplace(1), [(number("0.5"), 4)])
    true = math.log(down(loss.delta_number(number(1))))
    for tilt in (0.01, 1.0, 30.0):
        assert true <= log_delta(1.0, 4, tilt, 1.0)


def test_what_always_holds() -> None:
    bound = LevelBound(number(1), 2.0, 4)
    assert up(bound.delta(ZERO)) <= 1
    assert bound.delta(number(3)) == 1  # nothing is left to say: the pure loss is 2
    assert up(bound.epsilon(number("1e-300"))) <= 2.0000000001
    assert bound.epsilon(number("0.9")) == 0
    assert middle(bound.pure) == pytest.approx(2)
    assert LevelBound(number(15), 2.0, 40).is_useful
    assert not LevelBound(number(17), 2.0, 4).is_useful
    assert not LevelBound(number(8), 2.0, 41).is_useful
    assert bound.epsilon(number("1e-12")) == bound.pure  # left to other bounds
    assert LevelBound(number(5), 2.0, 4).epsilon(number("0.01")) == 10


@pytest.mark.long
def test_it_is_used_where_the_norm_is_small() -> None:
    assert any(isinstance(bound, LevelBound) for bound in additive_uppers(Laplace(2), Ball(2, 1, 32)))
    assert not any(isinstance(bound, LevelBound) for bound in additive_uppers(Laplace("0.1"), Ball(2, 1, 32)))
    mechanism = parse("clip(l2, 1) | laplace(20)", dim=16)
    profile = analyse(mechanism, mechanism.neighbours)
    found = profile.epsilon(number("1e-3"))
    assert found.b <= 1.02 * found.a
    assert profile.upper_at(number("0.19")).theorem is Theorem.LEVELS
