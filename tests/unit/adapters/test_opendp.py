"""OpenDP's measurements: the exact ε against the library's own map, and a map that lies."""

import math
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.adapters import adapted

dp = pytest.importorskip("opendp.prelude", reason="needs opendp, the extra `release`")
dp.enable_features("contrib", "honest-but-curious")

REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def vector(size: int, distance: Any) -> tuple[Any, Any]:
    return dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), distance(T=float)


@pytest.mark.parametrize("scale", [0.3, 2.0, 7.0])
@pytest.mark.parametrize("space", [REAL, WHOLE, vector(3, dp.l1_distance)])
def test_laplace_noise_has_the_epsilon_of_the_map(space: Any, scale: float) -> None:
    measurement = dp.m.make_laplace(*space, scale=scale)
    verdict = dpassay.check(measurement)
    assert verdict.proven
    assert verdict.epsilon.lower == pytest.approx(measurement.map(1), rel=1e-12)
    assert verdict.guarantee.epsilon == measurement.map(1)


def test_gaussian_noise_has_the_rho_of_the_map() -> None:
    measurement = dp.m.make_gaussian(*vector(4, dp.l2_distance), scale=3.0)
    verdict = dpassay.check(measurement)
    assert verdict.proven
    assert verdict.rho.upper == pytest.approx(measurement.map(1.0), rel=1e-12) == 1 / 18


def test_a_profile_is_asked_at_a_delta_and_is_above_the_exact_epsilon() -> None:
    measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*REAL, scale=2.0))
    verdict = dpassay.check(measurement, delta=1e-6)
    assert verdict.guarantee.epsilon == measurement.map(1.0).epsilon(1e-6)
    assert verdict.proven
    fixed = dpassay.check(dp.c.make_fix_delta(measurement, 1e-6))
    assert (fixed.word, fixed.guarantee.delta) == ("proven", 1e-6)
    with pytest.raises(dpassay.InputError, match=r"states no epsilon by itself: say check\(\.\.\., delta="):
        dpassay.check(measurement)


@pytest.mark.parametrize("categories", [2, 3, 8])
def test_randomized_response_has_the_log_odds(categories: int) -> None:
    verdict = dpassay.check(dp.m.make_randomized_response([f"c{i}" for i in range(categories)], 0.75))
    assert verdict.proven
    assert verdict.epsilon.lower == pytest.approx(math.log(3 * (categories - 1)), rel=1e-9)


def test_noisy_max_moves_scores_in_opposite_directions() -> None:
    measurement = dp.m.make_noisy_max(*vector(3, dp.linf_distance), dp.max_divergence(), scale=4.0)
    verdict = dpassay.check(measurement)
    assert verdict.proven
    assert verdict.epsilon.upper == pytest.approx(measurement.map(1.0)) == 0.5
    assert adapted(measurement).pairs == (([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]),)  # type: ignore[union-attr]


def test_scores_that_move_in_one_direction_are_not_taken_for_any() -> None:
    metric = dp.linf_distance(T=float, monotonic=True)
    measurement = dp.m.make_noisy_max(vector(3, dp.l1_distance)[0], metric, dp.max_divergence(), scale=4.0)
    known = adapted(measurement)
    assert known is not None
    assert (known.pipeline, known.pairs) == (None, (([0.0, 0.0, 0.0], [1.0, 0.0, 0.0]),))


@pytest.mark.parametrize(
    ("measure", "chance"),
    [(dp.max_divergence(), 1 - math.exp(-1) / 2), (dp.zero_concentrated_divergence(), 1 / (1 + math.exp(-1)))],
    ids=["exponential", "gumbel"],
)
def test_noisy_max_draws_the_noise_that_its_formula_names(measure: Any, chance: float) -> None:
    measurement = dp.m.make_noisy_max(*vector(2, dp.linf_distance), measure, scale=2.0)
    hits = sum(measurement([2.0, 0.0]) == 0 for _ in range(8_000))
    assert abs(hits / 8_000 - chance) < 0.035  # Hoeffding: 2·e^(-19.6) < 1e-8; the two are 0.085 apart


def test_a_sum_over_records_of_known_size_replaces_one() -> None:
    rows = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0)), size=5), dp.symmetric_distance()
    measurement = rows >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)
    known = adapted(measurement)
    assert known is not None
    assert known.neighbours == dpassay.Neighbours("replace-record")
    assert known.pairs == (([0.0] * 5, [0.0] * 4 + [10.0]),)
    verdict = dpassay.check(measurement)
    assert verdict.proven
    assert verdict.guarantee.epsilon == measurement.map(2)


def test_a_count_adds_a_record() -> None:
    rows = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    measurement = rows >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    verdict = dpassay.check(measurement)
    assert (verdict.word, verdict.epsilon.lower) == ("proven", 0.5)
    assert adapted(measurement).pairs == ((["a"], ["a", "b"]),)  # type: ignore[union-attr]


def lying(epsilon: float) -> Any:
    """Laplace noise of scale 1, whose map states what it is told to."""
    rng = np.random.default_rng(0)
    return dp.m.make_user_measurement(
        *REAL,
        output_measure=dp.max_divergence(),
        function=lambda x: x + rng.laplace(),
        privacy_map=lambda d_in: d_in * epsilon,
        TO=float,
    )


def test_a_measurement_whose_map_lies_is_refuted_by_its_outputs() -> None:
    assert dpassay.audit(lying(0.1), runs=8_000, until_refuted=True).refuted
    with pytest.raises(AssertionError, match=r"the claim of 0\.1-DP"):
        dpassay.assert_dp(lying(0.1))
    assert dpassay.check(lying(0.1), runs=8_000).refuted


def test_a_measurement_whose_map_is_right_is_not() -> None:
    assert dpassay.audit(lying(1.0), runs=4_000, alpha=1e-6).word == "open"


def test_a_formula_and_its_outputs_are_put_together() -> None:
    verdict = dpassay.check(dp.m.make_laplace(*REAL, scale=1.0), runs=2_000)
    assert verdict.proven
    assert 0 < verdict.runs <= 2_000


def test_an_unknown_measure_is_named() -> None:
    measurement = dp.m.make_user_measurement(
        *REAL, output_measure=dp.user_divergence("mine"), function=lambda x: x, privacy_map=lambda d: d, TO=float
    )
    with pytest.raises(dpassay.InputError, match=r"states its loss as .*mine"):
        dpassay.check(measurement)


def test_what_is_no_claim_gets_a_sentence() -> None:
    with pytest.raises(dpassay.InputError, match="a transformation of OpenDP draws no noise"):
        dpassay.check(dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()))
    with pytest.raises(dpassay.InputError, match="has dimension 1 already"):
        dpassay.check(dp.m.make_laplace(*REAL, scale=1.0), dim=3)
