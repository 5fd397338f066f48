"""Pipelines on which a careless analysis goes wrong, each with the truth worked out by hand."""

import math

import numpy as np
import pytest

from dpassay.api import check
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, number, up
from dpassay.exact.analysis import analyse
from dpassay.exact.pld.loss_components import GaussianLoss, LaplaceLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, OneSided, Shifted
from dpassay.pipeline.parser import parse


def profile(text: str, dim: int | None, neighbours: str | None = None):  # type: ignore[no-untyped-def]
    pipeline = parse(text, dim)
    return analyse(pipeline, Neighbours(neighbours) if neighbours else pipeline.neighbours)  # type: ignore[arg-type]


def test_a_bound_on_distances_is_not_a_bound_on_norms() -> None:
    # 0.025·(1, …, 1) and the same plus e₁ are neighbours; clipped to l2 norm 0.5 they are 6.025 apart in l1.
    x = np.full(400, 0.025)
    y = x.copy()
    y[0] += 1
    y *= 0.5 / np.linalg.norm(y)
    assert np.linalg.norm(x) == pytest.approx(0.5)
    assert float(np.abs(x - y).sum()) > 6
    assert up(profile("query(l1, 1) | clip(l1, 10) | clip(l2, 0.5) | laplace(1)", 400).pure) >= 6.02


def test_rounding_can_part_neighbours() -> None:
    # 0.4 and 0.6 are 0.2 apart and become 0 and 1.
    assert up(profile("query(linf, 0.3) | clip(linf, 10) | round | laplace(1)", 3).pure) >= 1


@pytest.mark.parametrize("between", ["decode", "encode", "round", "squash(tanh)"])
def test_what_comes_behind_noise_is_not_everything(between: str) -> None:
    # The first noise alone keeps (with the second one behind it) ε at ln((1+e⁴)/(2e²)) in one dimension.
    found = profile(f"clip(l2, 1) | laplace(1) | {between} | clip(l2, 1) | laplace(1)", 1)
    assert down(found.pure) <= math.log((1 + math.e**4) / (2 * math.e**2))


def test_far_inputs_decide_only_the_sign_bit_behind_noise() -> None:
    assert down(profile("laplace(1000) | binary(1, 0) | flip(0.9)", 1).pure) <= math.log(9) * 1.001


def test_whole_numbers_have_no_fraction_bits() -> None:
    assert down(profile("round | binary(1, 3) | flip(0.9)", 1).pure) <= 2 * math.log(9) + 1e-9


def test_swamped_noise_reaches_only_corners_behind_a_squash() -> None:
    found = profile("laplace(1000) | squash(tanh) | clip(l1, 1) | laplace(1)", 64)
    assert down(found.delta(number(1))) < 0.2


@pytest.mark.parametrize(
    ("after", "truth"),
    [("squash(sigmoid) | round", 0.8318), ("squash(tanh) | round", 0.9584)],
)
def test_a_squash_leaves_no_far_out_events_to_round(after: str, truth: float) -> None:
    assert down(profile(f"clip(l1, 1) | laplace(2) | {after}", 1).pure) <= truth + 1e-4


def test_a_sigmoid_leaves_no_signs() -> None:
    assert down(profile("laplace(2) | squash(sigmoid) | binary(1, 0)", 1).pure) == 0
    found = profile("clip(l1, 1) | laplace(1) | squash(sigmoid) | clip(l2, 0.1)", 1)
    assert down(found.delta(number("0.1"))) <= 0.131


def test_adding_a_record_compares_with_nothing_not_with_another_record() -> None:
    found = profile("squash(tanh) | clip(l2, 2) | laplace(1)", 9, "add-remove-record")
    # dp-accounting's pessimistic δ of nine coordinates that move by 2/3; two records, 4/3 apart, would show far more.
    assert down(found.delta(number(3))) <= 0.1139194


def test_floats_are_read_as_decimals_on_both_sides() -> None:
    distributions = [Shifted(Laplace(1), np.array([x])) for x in (1.0, 1.1)]
    assert down(PrivacyLoss.between(*distributions).pure) <= 0.1


def test_a_mixture_with_a_one_sided_part_can_exceed_its_laplace_part() -> None:
    # On (0, 1) the ratio of the densities reaches 3e.
    noise = Mixture(0, ((0.5, Laplace(1)), (0.5, OneSided(1))))
    loss = PrivacyLoss.of_shifts(noise, [(number(1), 1)])
    assert down(loss.pure) <= 1 + math.log(3) <= up(loss.pure)


@pytest.mark.parametrize(("noise", "shift"), [(Laplace(1), 2000), (Gaussian(1), 100)])
def test_masses_too_small_for_doubles_are_not_forgotten(noise: Laplace | Gaussian, shift: int) -> None:
    loss = PrivacyLoss.of_shifts(Mixture(0, ((1, noise),)), [(number(shift), 1)])
    assert loss.delta(1).upper > 0.999


def test_a_part_that_never_occurs_hides_nothing() -> None:
    loss = PrivacyLoss.of_shifts(Mixture(0, ((1, OneSided(1)), (0, Laplace(1)))), [(number(1), 1)])
    assert 1 - math.exp(-1) in loss.delta(1)


@pytest.mark.parametrize(("shift", "epsilon"), [("1", "1"), ("1.3", "1.2999999999")])
def test_a_lone_laplace_mixture_is_laplace(shift: str, epsilon: str) -> None:
    loss = PrivacyLoss.of_shifts(Mixture(0, ((1, Laplace(1)),)), [(number(shift), 1)])
    truth = -math.expm1((float(epsilon) - float(shift)) / 2)
    assert loss.delta(epsilon).lower <= truth + 1e-20


def test_a_large_gaussian_beside_a_laplace() -> None:
    # The Laplace part adds at most 0.1: δ lies between the Gaussian's at 720 and at 719.9.
    loss = PrivacyLoss(((GaussianLoss(number(30)), 1), (LaplaceLoss(number("0.1")), 1)))
    alone = PrivacyLoss(((GaussianLoss(number(30)), 1),))
    assert loss.delta(720).lower <= alone.delta("719.9").upper
    assert loss.delta(720).upper >= alone.delta("720.1").lower


def test_signs_of_a_clipped_gaussian() -> None:
    assert down(profile("clip(l2, 10) | gaussian(1) | clip(l2, 1)", 2).delta(number(1))) > 0.9


def test_a_rounded_witness_still_tells_the_inputs_apart() -> None:
    verdict = check("laplace(0.001) | round", epsilon=1, dim=1)
    assert verdict.word == "refuted"
    assert verdict.witness is not None
    first, second = verdict.witness.pair.first[0], verdict.witness.pair.second[0]
    assert round(first) != round(second)


def test_a_huge_shift_does_not_overflow() -> None:
    loss = PrivacyLoss(((LaplaceLoss(number(5000)), 2),))
    assert loss.delta(4000).lower > 0.99
