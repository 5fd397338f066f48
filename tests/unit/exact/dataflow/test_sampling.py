"""poisson(q) and times(T) around a pipeline, from the text to the verdict and its certificate."""

import math
from functools import cache

import numpy as np
import pytest

from dpassay import certify, check, compose, parse, verify
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import number
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse

SGD = "poisson(0.01) | clip(l2, 1) | gaussian(1) | times(1000)"


@cache
def trained(epsilon, neighbours=None):
    """What `check` says of a thousand steps: several tests look at it."""
    return check(SGD, epsilon=epsilon, delta=1e-5, neighbours=neighbours)


def test_the_claims_of_private_training():
    proven, refuted = trained(2), trained(1.8)
    assert proven.proven
    assert refuted.refuted
    assert proven.neighbours.kind == "add-remove-record"
    assert proven.epsilon.lower <= 1.8283
    assert proven.epsilon.upper >= 1.8279
    assert "in each of 1,000 steps with probability 0.01" in refuted.reason
    assert refuted.witness.excess(number("1.8")).a > 1e-5


@pytest.mark.parametrize("epsilon", [pytest.param(2, marks=pytest.mark.long), 1.8])
def test_the_claims_of_private_training_have_certificates(epsilon):
    """The refuted one has all kinds of steps that the proven one has, and a repair besides."""
    verdict = trained(epsilon)
    assert verify(certify(verdict)).verdict == verdict.word


def test_a_repair_is_proved():
    repair = trained(1.8).repairs[0]
    assert check(repair.mechanism, epsilon=1.8, delta=1e-5).proven
    assert str(repair.mechanism).endswith("| times(1000)")


def test_replacing_a_record_loses_more_than_adding_one():
    added, replaced = trained(2), trained(2, "replace-record")
    assert replaced.refuted
    assert replaced.epsilon.lower > added.epsilon.upper
    assert verify(certify(replaced)).ok


@pytest.mark.parametrize("neighbours", ["add-remove-record", "replace-record"])
def test_no_sampling_and_one_step_change_nothing(neighbours):
    plain = check("clip(l2, 1) | gaussian(2)", epsilon=1, delta=1e-5, dim=3, neighbours=neighbours)
    for text in ("poisson(1) | clip(l2, 1) | gaussian(2)", "clip(l2, 1) | gaussian(2) | times(1)"):
        assert check(text, epsilon=1, delta=1e-5, dim=3, neighbours=neighbours).epsilon == plain.epsilon


@pytest.mark.long(every=3)
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


def test_a_region_without_opposite_vectors_is_judged_by_the_event_beyond_a_threshold():
    """Records 5 and 2: ln((P − δ)/Q) of the event that the output exceeds a threshold, by the normal tail."""
    text = "poisson(0.1) | clamp(2, 5) | gaussian(1)"
    verdict = check(text, epsilon=9, delta=1e-5, dim=1, neighbours="replace-record")

    def tail(c):
        return math.erfc(c / math.sqrt(2)) / 2

    def shown(c):
        first, second = (0.1 * tail(c - v) + 0.9 * tail(c) for v in (5, 2))
        return math.log((first - 1e-5) / second) if first > 1e-5 else 0

    best = max(shown(0.001 * i) for i in range(12_000))
    assert 0.9 * best < verdict.epsilon.lower <= best * (1 + 1e-6)
    assert verdict.refuted
    assert verify(certify(verdict)).ok


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
    with pytest.raises(InputError, match="poisson is about the neighbors add-remove-record, replace-record"):
        check(SGD, epsilon=1, delta=1e-5, neighbours="any")


def test_steps_stand_side_by_side_and_records_are_left_out():
    pipeline = parse("poisson(0.25) | clip(l2, 1) | gaussian(0.001) | times(3)", dim=2)
    outputs = pipeline.sample(np.array([3.0, 4.0]), 4000, np.random.default_rng(1))
    assert outputs.shape == (4000, 6)
    taken = np.linalg.norm(outputs.reshape(-1, 2), axis=1) > 0.5
    # 12,000 draws with probability 0.25: a deviation of six standard deviations has probability 2e-9.
    assert abs(taken.mean() - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 12000)


def test_composition_counts_sampled_steps():
    together = compose("poisson(0.01) | clip(l2, 1) | gaussian(1) | times(100) x 10", delta="1e-5")
    assert together.exact.lower == pytest.approx(1.828, abs=1e-3)
    assert together.exact.upper == pytest.approx(1.828, abs=2e-3)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def test_one_batch_of_a_fixed_size_is_exact():
    """q·δ(ln(1 + (e^ε − 1)/q)), δ that of two vectors 2 apart."""
    verdict = check("subsample(10, 1000) | clip(l2, 1) | gaussian(1)", epsilon=0.5, delta=1e-5)
    expected = 0.01 * gaussian_delta(math.log(1 + (math.exp(0.5) - 1) / 0.01), 2)
    assert verdict.neighbours.kind == "replace-record"
    assert verdict.delta.lower == pytest.approx(expected, rel=1e-9)
    assert verdict.delta.upper == pytest.approx(expected, rel=1e-9)
    assert verify(certify(verdict)).ok


def test_batches_of_a_fixed_size_lose_more_than_poisson_samples():
    """By far at this rate, which Lebeda et al. (2024) found; the two ends are a pair's and a theorem's."""
    fixed = check("subsample(10, 1000) | clip(l2, 1) | gaussian(1) | times(1000)", epsilon=15, delta=1e-5)
    sampled = trained(2, "replace-record")
    assert fixed.proven
    assert 4 * sampled.epsilon.upper < fixed.epsilon.lower < fixed.epsilon.upper < 1.2 * fixed.epsilon.lower
    assert verify(certify(fixed)).ok


def test_all_records_in_a_batch_are_no_sampling():
    both = [
        check(f"{first}clip(l2, 1) | gaussian(2)", epsilon=1, delta=1e-5, dim=1, neighbours="replace-record")
        for first in ("subsample(7, 7) | ", "")
    ]
    assert both[0].epsilon == both[1].epsilon


def test_shuffled_batches_are_warned_about_and_enclosed():
    verdict = check("shuffle(100) | clip(l2, 1) | gaussian(1)", epsilon=1, delta=1e-5)
    assert verdict.refuted
    assert any("poisson(1/100) does not hold here" in warning for warning in verdict.warnings)
    assert verdict.epsilon.upper == pytest.approx(9.997256147, rel=1e-9)  # Gaussian noise, μ = 2, no sampling
    t = 3.0  # any threshold of the largest output is a valid lower bound
    shown = (1 - phi(t) ** 99 * phi(t - 2)) - math.e * (1 - phi(t) ** 100)
    assert shown <= verdict.delta.lower * (1 + 1e-12)
    assert verify(certify(verdict)).ok


def test_one_batch_is_no_shuffling():
    verdict = check("shuffle(1) | clip(l2, 1) | gaussian(2)", epsilon=1, delta=1e-5)
    assert verdict.delta.lower == pytest.approx(gaussian_delta(1, 1), rel=1e-4)
    assert verdict.delta.upper == pytest.approx(gaussian_delta(1, 1), rel=1e-9)
    assert not any("Poisson" in warning for warning in verdict.warnings)


def test_epochs_of_shuffled_batches_compose_without_sampling():
    epochs = check("shuffle(100) | clip(l2, 1) | gaussian(4) | times(4)", epsilon=9, delta=1e-5)
    once = check("shuffle(100) | clip(l2, 1) | gaussian(2)", epsilon=9, delta=1e-5)
    assert epochs.epsilon.upper == pytest.approx(once.epsilon.upper, rel=1e-9)


def test_noise_that_is_not_symmetric_shows_nothing_behind_sampling():
    """With the record, outputs that only the empty sum can give are still possible: nothing is given away."""
    verdict = check("poisson(0.5) | clamp(0, 1) | onesided(1)", epsilon=1, dim=1)
    assert verdict.epsilon.lower < math.inf
