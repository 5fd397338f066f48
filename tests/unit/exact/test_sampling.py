"""poisson(q) and times(T) around a pipeline, from the text to the verdict and its certificate."""

import math

import numpy as np
import pytest

from dpassay import certify, check, compose, parse, verify
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import number
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse

SGD = "poisson(0.01) | clip(l2, 1) | gaussian(1) | times(1000)"


def test_the_claims_of_private_training():
    proven, refuted = check(SGD, epsilon=2, delta=1e-5), check(SGD, epsilon=1.8, delta=1e-5)
    assert proven.proven
    assert refuted.refuted
    assert proven.neighbours.kind == "add-remove-record"
    assert proven.epsilon.lower <= 1.8283
    assert proven.epsilon.upper >= 1.8279
    assert "in each of 1,000 steps with probability 0.01" in refuted.reason
    assert refuted.witness.excess(number("1.8")).a > 1e-5
    for verdict in (proven, refuted):
        assert verify(certify(verdict)).verdict == verdict.word


def test_a_repair_is_proved():
    repair = check(SGD, epsilon=1.8, delta=1e-5).repairs[0]
    assert check(repair.mechanism, epsilon=1.8, delta=1e-5).proven
    assert str(repair.mechanism).endswith("| times(1000)")


def test_replacing_a_record_loses_more_than_adding_one():
    added, replaced = (check(SGD, epsilon=2, delta=1e-5, neighbours=n) for n in ("add-remove-record", "replace-record"))
    assert replaced.refuted
    assert replaced.epsilon.lower > added.epsilon.upper
    assert verify(certify(replaced)).ok


@pytest.mark.parametrize("neighbours", ["add-remove-record", "replace-record"])
def test_no_sampling_and_one_step_change_nothing(neighbours):
    plain = check("clip(l2, 1) | gaussian(2)", epsilon=1, delta=1e-5, dim=3, neighbours=neighbours)
    for text in ("poisson(1) | clip(l2, 1) | gaussian(2)", "clip(l2, 1) | gaussian(2) | times(1)"):
        assert check(text, epsilon=1, delta=1e-5, dim=3, neighbours=neighbours).epsilon == plain.epsilon


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("query(l2, 1) | gaussian(2) | times(4)", "query(l2, 1) | gaussian(1)"),  # σ/√T
        ("clip(l1, 1) | laplace(2) | times(10)", "clip(l1, 1) | repeat(10) | laplace(2)"),
        ("rows | clamp(0, 1) | laplace(3) | times(5)", "rows | clamp(0, 1) | repeat(5) | laplace(3)"),
    ],
)
def test_steps_of_which_the_worst_pair_is_known_are_exact(text, same):
    first, second = (check(each, epsilon=1, delta=1e-5, dim=2) for each in (text, same))
    assert first.epsilon.lower == pytest.approx(second.epsilon.lower, rel=1e-4)
    assert first.epsilon.upper == pytest.approx(second.epsilon.upper, rel=1e-4)


def test_pure_epsilon_adds_up():
    verdict = check("clip(l2, 1) | laplace(2) | times(10)", epsilon=19, dim=4)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(20)  # √4·2/2 a step
    assert verdict.epsilon.upper == pytest.approx(20)


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [
        ("add-remove-record", 10 * math.log(0.9 + 0.1 * math.e)),
        ("replace-record", 10 * math.log((0.9 + 0.1 * math.e) / (0.9 + 0.1 / math.e))),
    ],
)
def test_sampled_laplace_is_exact_at_delta_0(neighbours, expected):
    text = "poisson(0.1) | clip(l1, 1) | laplace(1) | times(10)"
    verdict = check(text, epsilon=1, dim=3, neighbours=neighbours)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(expected, rel=1e-9)
    assert verdict.epsilon.upper == pytest.approx(expected, rel=1e-9)
    assert verify(certify(verdict)).ok


def test_sampled_laplace_in_one_step_is_q_times_its_curve():
    found = analyse(parse("poisson(0.1) | clip(l1, 1) | laplace(1)", dim=3), Neighbours("add-remove-record"))
    epsilon = 0.05
    before = math.log(1 + (math.exp(epsilon) - 1) / 0.1)
    expected = 0.1 * (1 - math.exp((before - 1) / 2))
    delta = found.delta(number(epsilon))
    assert float(delta.a) == pytest.approx(expected, rel=1e-12)
    assert float(delta.b) == pytest.approx(expected, rel=1e-12)


def test_a_region_without_opposite_vectors_has_an_upper_end_only():
    verdict = check(
        "poisson(0.1) | clamp(2, 5) | gaussian(1)", epsilon=9, delta=1e-5, dim=1, neighbours="replace-record"
    )
    assert verdict.epsilon.lower == 0
    assert verdict.epsilon.upper > 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("times(3)", "nothing to sample for or to repeat"),
        ("poisson(0.5)", "nothing to sample for or to repeat"),
        ("poisson(0.5) | category(3) | flip(0.7)", "randomizes each record on its own"),
    ],
)
def test_what_makes_no_sense_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        check(text, epsilon=1, dim=1)


def test_local_dp_of_sampled_records_is_refused():
    with pytest.raises(InputError, match="poisson speaks of neighbours add-remove-record, replace-record"):
        check(SGD, epsilon=1, delta=1e-5, neighbours="any")


def test_steps_stand_side_by_side_and_records_are_left_out():
    pipeline = parse("poisson(0.25) | clip(l2, 1) | gaussian(0.001) | times(3)", dim=2)
    outputs = pipeline.sample(np.array([3.0, 4.0]), 4000, np.random.default_rng(1))
    assert outputs.shape == (4000, 6)
    taken = np.linalg.norm(outputs.reshape(-1, 2), axis=1) > 0.5
    # 12,000 draws with probability 0.25: a deviation of six standard deviations has probability 2e-9.
    assert abs(taken.mean() - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 12000)


def test_composition_counts_sampled_steps():
    together = compose(SGD, delta="1e-5")
    assert together.exact.lower == pytest.approx(1.828, abs=1e-3)
    assert together.exact.upper == pytest.approx(1.828, abs=2e-3)
