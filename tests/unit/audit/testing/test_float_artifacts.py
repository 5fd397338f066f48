"""What the last bits of floats tell: a warning, paid for once, that costs no verdict."""

import math

import numpy as np
import pytest

from dpassay import InputError, MechanismError, Open, Refuted, audit

PAIR = [(0.0, 1.0)]


def laplace(x, n, rng):
    """ε = 2 between inputs that are 1 apart."""
    return x + rng.laplace(scale=0.5, size=n)


def test_the_last_bits_of_floats_are_a_warning_when_not_asked():
    # Behind 1 + noise no bit below 2^−53 is ever left.
    verdict = audit(laplace, PAIR, epsilon=2.5)
    assert isinstance(verdict, Open)
    assert verdict.runs <= 100_000
    (warning,) = verdict.warnings
    assert "last bits" in warning
    assert "bits=True" in warning
    assert dict(verdict.ledger)["the last bits of floats"] == pytest.approx(0.01 * verdict.alpha)
    assert math.fsum(alpha for _, alpha in verdict.ledger) <= verdict.alpha * (1 + 1e-12)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (laplace, {"bits": False}),
        (lambda x, n, rng: np.round(x + rng.laplace(scale=0.5, size=n), 2), {}),
        (lambda x, n, rng: x + rng.geometric(0.8, size=n) - rng.geometric(0.8, size=n), {}),
        (lambda x, n, rng: np.where(rng.random(n) < 0.7, x, 1 - x), {}),
    ],
    ids=["told not to", "rounded", "whole numbers", "bits"],
)
def test_no_warning_of_bits_where_nobody_looks_or_they_tell_nothing(mechanism, options):
    verdict = audit(mechanism, PAIR, epsilon=2.5, **options)
    assert isinstance(verdict, Open)
    assert not any("last bits" in warning for warning in verdict.warnings)


def test_error_probability_that_was_set_aside_for_bits_is_given_back_where_there_are_none():
    verdict = audit(lambda x, n, rng: np.where(rng.random(n) < 0.7, x, 1 - x), PAIR, epsilon=2.5, runs=5_000)
    assert dict(verdict.ledger) == {"the guessing game": pytest.approx(0.99 * verdict.alpha)}


def test_a_leak_in_the_last_bit_alone_is_found():
    def leaky(x, n, rng):
        noise = rng.standard_normal(n).view(np.uint64)  # says nothing of x, but for its last bit
        return ((noise & ~np.uint64(1)) | np.uint64(x)).view(float)

    verdict = audit(leaky, [(0, 1)], epsilon=1)
    assert isinstance(verdict, Open)
    assert "last bits" in verdict.warnings[0]
    assert isinstance(audit(leaky, [(0, 1)], epsilon=1, bits=True), Refuted)


@pytest.mark.long
def test_bits_are_seen_in_mixed_outputs_too():
    def sometimes_none(x, rng):
        return None if rng.random() < 0.05 else x + rng.laplace(scale=0.5)

    assert "last bits" in audit(sometimes_none, PAIR, epsilon=2.2, runs=60_000).warnings[0]


def test_a_look_at_bits_is_paid_for_once(tmp_path):
    options = {"epsilon": 2.5, "save": tmp_path / "audit.json"}
    first = audit(laplace, PAIR, **options)
    assert "last bits" in first.warnings[0]
    notes = []
    again = audit(laplace, PAIR, **options, resume=True, progress=lambda done, total, note: notes.append(note))
    assert first.ledger == again.ledger
    assert first.warnings[0] in again.warnings
    assert not any("bits" in note for note in notes)
    with pytest.raises(InputError, match="differs in whether the last bits"):
        audit(laplace, PAIR, **options, resume=True, bits=False)


def test_a_mechanism_that_dies_while_its_bits_are_looked_at_costs_no_verdict(tmp_path):
    def dying(x, n, rng):
        if dying.done:
            raise MechanismError("it is gone" + ", and says much" * 1_000)
        return laplace(x, n, rng)

    def progress(done, total, note):
        dying.done = done >= 96_000

    dying.done = False
    verdict = audit(dying, PAIR, epsilon=2.5, progress=progress, save=tmp_path / "audit.json")
    assert isinstance(verdict, Open)
    assert "failed: it is gone" in verdict.warnings[0]


@pytest.mark.parametrize(("epsilon", "runs"), [(7, 100_000), (2.5, 2_000)])
def test_nobody_looks_at_bits_where_too_few_runs_could_show_anything(epsilon, runs):
    assert audit(laplace, PAIR, epsilon=epsilon, runs=runs).runs > 0.97 * runs  # but for too few to begin an epoch
