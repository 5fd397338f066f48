"""How a ball is cut into levels: tables from either end, joined columns, the cost of rounding, and counted work."""

import math

import numpy as np
import pytest

from dpassay.core.numbers import middle, number
from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.work import ALL_WORK, limited, spend
from dpassay.evidence.verifier.noises.levels import _KEPT, _coarse, _few, _Start, log_delta
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.level_tables import JOINED, Levels, _joined, few_and_many, others
from dpassay.pipeline.distributions import Laplace
from oracles import laplace_sum_delta


def test_tables_from_either_end_bound_the_same_vectors() -> None:
    one_way, both = (Levels(0.09, 12, 6, 0, 2e-2, both_ways=both) for both in (False, True))
    tables, lesser = others(one_way, 30), others(both, 30)
    rng, gained = np.random.default_rng(2), 0.0
    for level in (5, 6, 9):  # 5 is between 12/√6 and 1.17 times as much; larger levels are built on it
        found = lesser[level][0]  # of vectors of all coordinates but one
        assert (found <= tables[level][0]).all()
        gained = max(gained, (1 - found / tables[level][0]).max())
        for vector in [(level,) * 5, *rng.integers(level // 2, level + 1, (6, 5)).tolist()]:
            cost = sum(j * j for j in vector)
            if cost // JOINED >= found.shape[1]:
                continue
            groups = [(f"{j * 9 / 100}", vector.count(j)) for j in set(vector) if j]
            for row in (0, 4, 9):
                true = float(laplace_sum_delta(groups, f"{row * 9 / 100}")) * math.exp(-row * 0.09 / 2)
                assert true * math.exp(-both.usual * (cost % JOINED)) <= found[row, cost // JOINED] * (1 + 1e-12)
    assert gained > 1e-3


def test_joined_columns_bound_each_of_their_costs() -> None:
    rng, usual = np.random.default_rng(4), 3e-2
    table = np.sort(rng.uniform(0, 1, (7, 45)))
    for joined in (_joined(table, usual), _coarse(table, usual)):
        assert joined.shape == (7, 6)
        weights, besides, tight = rng.uniform(0, 1, 7), 0.3, math.inf
        for cost in range(45):
            for each in (0.0, 1e-2, 3e-2, 6e-2):
                true = math.exp(-each * cost) * (besides + weights @ table[:, cost])
                first = cost - cost % JOINED
                room = math.exp(-each * first + (JOINED - 1) * max(0.0, usual - each))
                most = room * (besides + weights @ joined[:, cost // JOINED])
                assert true <= most * (1 + 1e-12)
                tight = min(tight, float(most / true))
        assert tight < 1.01
        assert joined[:, :5] == pytest.approx(
            np.max([table[:, k:40:JOINED] * math.exp(-usual * k) for k in range(JOINED)], axis=0), rel=1e-14
        )


def test_the_verifier_allows_for_the_dearest_cost_of_a_column() -> None:
    steps = _few(0.05, 10, 4, 20, 2e-2 * np.geomspace(0.1, 1, 30), False)
    table = np.full((21, JOINED), 1e-9)
    table[:, -1] = 0.5  # what costs the most of a group is the largest
    start = _Start(1, 5, 25, 0, np.ones(1), 0.0, np.full(30, math.inf))
    found = start.with_others(steps, {0: [table[:, :1]], 5: [_coarse(table, steps.usual)]}, 5)
    assert (found.worth >= math.log(0.5) - steps.multipliers * (25 + JOINED - 1) - 1e-12).all()


def test_absurd_tilts_are_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.evidence.verifier.noises.levels._variances", None)
    monkeypatch.setattr("dpassay.evidence.verifier.noises.levels._with", None)
    for norm, dim, tilt, epsilon in ((1e-5, 10**6, 1e-7, 1.3e-5), (1.0, 10**4, 1e6, 1.0), (1.0, 64, 1e7, 1.0)):
        with limited(), pytest.raises(CertificateError, match="takes too long"):
            log_delta(norm, dim, tilt, epsilon)


def test_a_certificate_cannot_have_more_results_than_are_kept() -> None:
    """The least work is that of two coordinates and an ε of 0; with _KEPT such results nothing is left."""
    least = _few(1 / 48, 48, 2, 0, 2e-2 * np.geomspace(0.1, 1, 30), False).work
    assert least * _KEPT > ALL_WORK


def test_what_rounding_costs_by_the_largest_shift() -> None:
    levels = Levels(0.08, 20, 4, 0, 4e-3)
    assert levels.log_moments == pytest.approx(_few(0.08, 20, 4, 30, levels.multipliers, False).moments, rel=1e-12)
    rng = np.random.default_rng(6)
    for _ in range(50):
        shifts = np.abs(rng.normal(size=4)) ** rng.uniform(0.2, 2)
        shifts *= 20 / np.linalg.norm(shifts)  # in steps
        low = np.floor(shifts)
        down_, here, up_ = (np.exp(-j * levels.step / 2) for j in (low, shifts, low + 1))
        chance = (here - up_) / (down_ - up_)
        for each, most in zip(levels.multipliers, levels.log_moments[int(shifts.max())], strict=True):
            parts = chance * np.exp(each * low**2) + (1 - chance) * np.exp(each * (low + 1) ** 2)
            assert np.log(parts).sum() <= most
    means = (levels.log_moments[:, 0] - levels.log_moments[0, 0]) / levels.multipliers[0]
    assert means == pytest.approx([4 / 4 * math.exp(0.08) * place * 0.04 for place in range(20)], abs=1e-9)


def test_few_shifts_and_many_about() -> None:
    for norm, epsilon in ((0.5, 0.3), (1.0, 1.1), (2.0, 0.4)):
        few, many = few_and_many(norm, 200, epsilon)
        true = [laplace_sum_delta([(repr(norm / math.sqrt(m)), m)], repr(epsilon)) for m in (1, 2)]
        assert few == pytest.approx(float(max(true)), rel=1e-9)
        even = PrivacyLoss.of_shifts(Laplace(1), [(number(norm) / number(200) ** number("0.5"), 200)])
        assert many == pytest.approx(middle(even.delta_number(number(epsilon))), rel=0.01)
    assert few_and_many(1.0, 200, 1.5)[0] == 0
    assert few_and_many(4.0, 10**6, 3000.0) == (0, 0)
    ask = [Levels.of(0.707, 64, 2.1, epsilon).price for epsilon in (0.5, 1.5)]  # few are worse at the first ε alone
    assert ask[0] == 0 < ask[1]


def test_the_same_work_is_counted_once_in_a_certificate() -> None:
    more = ALL_WORK // 2 + 1
    with limited():
        spend(more, "a table")
        spend(more, "a table")
        with pytest.raises(CertificateError, match="takes too long"):
            spend(more, "another")
    with limited():
        spend(more)
        with pytest.raises(CertificateError, match="takes too long"):
            spend(more)  # what has no name is counted again
    with limited(4), pytest.raises(CertificateError, match="takes too long"):
        spend(more)
    with limited():  # nothing is left from before
        spend(more, "a table")
