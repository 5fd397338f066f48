"""OpenDP's measurements: the exact ε against the library's own map, and a map that lies."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.adapters import adapted
from dpassay.adapters.opendp import at

dp = pytest.importorskip("opendp.prelude", reason="needs opendp, the extra `release`")
dp.enable_features("contrib", "honest-but-curious")

REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def vector(size: int, distance: Any) -> tuple[Any, Any]:
    return dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), distance(T=float)


@pytest.mark.long(every=3)
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
    with pytest.raises(dpassay.InputError, match=r"states no epsilon of its own: use check\(\.\.\., delta="):
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
    with pytest.raises(dpassay.InputError, match="an OpenDP transformation draws no noise"):
        dpassay.check(dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()))
    with pytest.raises(dpassay.InputError, match="already has dimension 1"):
        dpassay.check(dp.m.make_laplace(*REAL, scale=1.0), dim=3)


def test_noise_on_a_coarse_grid_is_judged_on_it() -> None:
    """Answers 1 apart are rounded to multiples of 2, halves up, and can then be 2 apart: ε is 2/scale, not 1/scale."""
    coarse = dp.m.make_laplace(*REAL, scale=4.0, k=1)
    verdict = dpassay.check(coarse)
    assert (verdict.word, verdict.epsilon.lower, verdict.epsilon.upper) == ("proven", 0.5, 0.5)
    assert verdict.guarantee.epsilon == coarse.map(1.0) == 0.75  # which takes the rounding for a whole step more
    fine = dpassay.check(dp.m.make_laplace(*REAL, scale=4.0, k=-3))
    assert (fine.epsilon.upper, str(fine.mechanism)) == (0.25, "counts(l1, 8) | discrete_laplace(32)")
    gaussian = dpassay.check(dp.m.make_gaussian(*REAL, scale=4.0, k=1))
    assert gaussian.rho.upper == pytest.approx(2**2 / (2 * 4**2), rel=1e-9)
    assert adapted(dp.m.make_laplace(*vector(3, dp.l1_distance), scale=4.0, k=1)).pipeline is None  # type: ignore[union-attr]


def test_the_grid_rounds_halves_up() -> None:
    rounded = dp.m.make_laplace(*REAL, scale=1e-9, k=0)
    assert [rounded(x) for x in (-1.5, -0.5, 0.5, 1.5)] == [-1.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("measure", "written"), [("max", "laplace(2)"), ("zero_concentrated", "gaussian(2)")], ids=["laplace", "gaussian"]
)
def test_make_noise_is_read_by_its_measure(measure: str, written: str) -> None:
    made = dp.m.make_noise(*REAL, getattr(dp, f"{measure}_divergence")(), 2.0)
    assert str(dpassay.check(made).mechanism) == f"query(l1, 1) | {written}"


def test_equal_measurements_are_composed() -> None:
    verdict = dpassay.check(dp.c.make_composition([dp.m.make_laplace(*REAL, scale=2.0)] * 3))
    assert (verdict.word, verdict.epsilon.upper, verdict.guarantee.epsilon) == ("proven", 1.5, 1.5)
    gaussians = dp.c.make_composition([dp.m.make_gaussian(*WHOLE, scale=2.0)] * 3)
    assert dpassay.check(gaussians).rho.upper == pytest.approx(gaussians.map(1), rel=1e-9) == 0.375
    different = dp.c.make_composition([dp.m.make_laplace(*REAL, scale=scale) for scale in (2.0, 4.0)])
    known = adapted(different)
    assert known is not None
    assert (known.pipeline, str(known.guarantee), known.pairs) == (None, "0.75-DP", ((0.0, 1.0),))


def test_what_is_asked_further_is_refused() -> None:
    made = dp.c.make_adaptive_composition(*REAL, dp.max_divergence(), d_in=1.0, d_mids=[1.0])
    with pytest.raises(dpassay.InputError, match="make_adaptive_composition is interactive"):
        dpassay.check(made)
    with pytest.raises(dpassay.InputError, match="Odometer is interactive"):
        dpassay.audit(dp.c.make_fully_adaptive_composition(*REAL, dp.max_divergence()))


def test_post_processing_is_left_out_and_that_is_said() -> None:
    verdict = dpassay.check(dp.m.make_laplace(*REAL, scale=2.0) >> (lambda x: round(x)))
    assert (verdict.word, verdict.name) == ("proven", "OpenDP's make_chain_pm, before its post-processing")


def test_the_distance_is_said_and_can_be_another_one() -> None:
    made = dp.m.make_laplace(*REAL, scale=2.0)
    assert dpassay.check(made).source == "stated by OpenDP's make_laplace, its map(1) in MaxDivergence"
    far = dpassay.check(at(made, 3.0))
    assert (far.word, far.epsilon.upper, far.guarantee.epsilon) == ("proven", 1.5, 1.5)
    assert far.source.endswith("its map(3.0) in MaxDivergence")
    assert at(made, 3.0).pairs == ((0.0, 3.0),)


def test_every_measure_is_read() -> None:
    laplace, gaussian = dp.m.make_laplace(*REAL, scale=2.0), dp.m.make_gaussian(*REAL, scale=2.0)
    assert str(dpassay.check(dp.c.make_pureDP_to_zCDP(laplace)).guarantee) == "0.125-zCDP"
    assert dpassay.check(dp.c.make_approximate(laplace)).proven
    assert str(dpassay.check(dp.c.make_approximate(gaussian)).guarantee) == "0.125-zCDP"
    smoothed = dp.c.make_fixed_approxDP_to_approxDP(dp.c.make_approximate(laplace))
    assert dpassay.check(smoothed, delta=1e-6).proven
    curve = dp.m.make_user_measurement(
        *REAL, dp.renyi_divergence(), lambda x: x, lambda d: lambda order: order / 2, TO=float
    )
    with pytest.raises(dpassay.InputError, match=r"states a Rényi divergence for every order, 1\.0 at 2"):
        dpassay.check(curve)


def test_a_gaussian_is_run_for_what_its_zcdp_implies() -> None:
    verdict = dpassay.audit(dp.m.make_gaussian(*REAL, scale=2.0), runs=400)
    assert verdict.guarantee.epsilon == pytest.approx(0.125 + 2 * math.sqrt(0.125 * math.log(1e6)), abs=1e-8)


def test_parts_that_appear_are_compared() -> None:
    space = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l01inf_distance(dp.absolute_distance(T=int))
    made = dp.m.make_laplace_threshold(*space, scale=1.0, threshold=10)
    known = adapted(made)
    assert known is not None
    assert (known.guarantee.epsilon, known.guarantee.delta) == made.map((1, 1, 1))  # type: ignore[union-attr]
    assert known.pairs == (({"a": 1000}, {"a": 1000, "b": 1}),)
    assert dpassay.audit(made, runs=300).open


@pytest.mark.parametrize(
    ("measurement", "pair"),
    [
        (dp.m.make_randomized_response_bool(0.75), (False, True)),
        (dp.m.make_geometric(*WHOLE, scale=2.0, bounds=(0, 9)), (0, 1)),
        (dp.m.make_noisy_top_k(*vector(2, dp.linf_distance), dp.max_divergence(), k=2, scale=4.0), None),
    ],
    ids=["bool", "bounded geometric", "top-k"],
)
def test_inputs_come_from_the_metric_and_the_domain(measurement: Any, pair: Any) -> None:
    known = adapted(measurement)
    assert known is not None
    assert known.pairs[0] == (pair or ([0.0, 1.0], [1.0, 0.0]))
    assert dpassay.audit(measurement, runs=200).guarantee.epsilon == measurement.map(1)


def test_data_sets_that_differ_in_one_record() -> None:
    ordered = dp.vector_domain(dp.atom_domain(bounds=(0, 5)), size=4), dp.hamming_distance()
    total = ordered >> dp.t.then_metric_unbounded() >> dp.t.then_sum() >> dp.m.then_laplace(scale=2.0)
    verdict = dpassay.check(total)
    assert (verdict.word, verdict.epsilon.upper) == ("proven", 2.5)
    assert str(verdict.neighbours) == str(dpassay.Neighbours("replace-record"))


ROWS = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0)), size=5), dp.symmetric_distance()


def test_amplification_by_a_secret_sample_is_refused_with_the_reason() -> None:
    total = ROWS >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)
    amplified = dp.c.make_population_amplification(total, population_size=100)
    inside = [amplified, amplified >> (lambda x: x + 1), dp.c.make_composition([amplified] * 2)]
    for made in inside:
        with pytest.raises(dpassay.InputError, match="the measurement draws no sample, and for a fixed one its map"):
            dpassay.check(made)
        with pytest.raises(dpassay.InputError, match="check the measurement inside it"):
            dpassay.audit(made)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "measurement",
    [
        dp.m.make_laplace(*REAL, scale=0.0),
        dp.m.make_laplace(*WHOLE, scale=0.0),
        dp.m.make_gaussian(*REAL, scale=0.0),
        dp.m.make_noisy_max(*vector(3, dp.linf_distance), dp.max_divergence(), scale=0.0),
        dp.m.make_randomized_response_bool(1.0),
        dp.c.make_approximate(dp.m.make_laplace(*REAL, scale=0.0)),
    ],
    ids=["laplace", "whole", "gaussian", "max", "response", "restated"],
)
def test_no_noise_is_said_to_be_an_infinite_loss(measurement: Any) -> None:
    with pytest.raises(dpassay.InputError, match=r"\(map\(1\) is infinite\) states no epsilon of its own"):
        dpassay.check(measurement)
    assert dpassay.check(measurement, epsilon=1).refuted


def test_a_transformation_whose_map_lies_is_not_believed() -> None:
    """One row is replaced, by 10: ten times the sum moves by 100, where the map states 10 for a distance of 2."""
    lying = dp.t.make_user_transformation(*ROWS, *REAL, lambda rows: 10 * sum(rows), lambda d_in: 5.0 * d_in)
    verdict = dpassay.check(lying >> dp.m.then_laplace(scale=10.0))
    assert verdict.open
    assert "the answers are 100 apart, where the map allows 10" in verdict.reason


@pytest.mark.long(every=2)
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_a_measurement_read_with_another_scale_is_not_confirmed(monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    made = dp.m.make_laplace(*REAL, scale=2.0)
    for measurement in (made, dp.c.make_composition([made] * 2), made >> (lambda x: x)):
        known = adapted(measurement)
        assert known is not None
        assert known.pipeline is not None
        wrong = replace(known, pipeline=known.pipeline.replace("laplace(2.0)", f"laplace({scale})"))
        assert wrong.pipeline != known.pipeline
        assert dpassay.check(wrong).open
        assert dpassay.check(known).proven


def test_a_long_vector_is_confirmed_by_few_runs() -> None:
    verdict = dpassay.check(dp.m.make_laplace(*vector(200, dp.l1_distance), scale=2.0))
    assert verdict.proven
    assert "20 runs of the object agree" in verdict.reason  # 10 for each of two inputs, of 200 numbers each
