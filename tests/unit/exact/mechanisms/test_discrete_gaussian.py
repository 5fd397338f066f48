"""Discrete Gaussian noise. Expected values come from sums over outputs in mpmath, and from dp-accounting."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from mpmath import mp, mpf

from dpassay.api import check
from dpassay.core.guarantee import ZCDP
from dpassay.core.numbers import down, number, up
from dpassay.errors import InputError
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify
from dpassay.exact.analysis import analyse
from dpassay.exact.pld.noises.integer import DiscreteGaussianLoss
from dpassay.pipeline.discrete_noise import DiscreteGaussian
from dpassay.pipeline.parser import parse


def summed(sigma: str, shift: int, epsilon: str) -> mpf:
    """Σ max(0, P − e^ε Q) over all outputs, in 40 digits."""
    with mp.workdps(40):
        s, far = mpf(sigma), math.ceil(25 * float(sigma)) + 30 + shift
        weights = {t: mp.exp(-(mpf(t) ** 2) / (2 * s**2)) for t in range(-far - shift, far + shift + 1)}
        total = sum(weights.values())
        rise = mp.exp(mpf(epsilon))
        inside = range(-far, far + 1)
        return sum(max(mpf(0), weights[t] - rise * weights[t - shift]) for t in inside) / total


@pytest.mark.parametrize(
    ("sigma", "shift"), [("1", 1), ("2", 1), ("0.3", 1), ("0.8", 3), ("5", 2), ("20", 7), ("3", 40), ("100", 60)]
)
@pytest.mark.parametrize("epsilon", ["0", "0.5", "1", "3"])
def test_one_coordinate_by_summation(sigma: str, shift: int, epsilon: str) -> None:
    truth, found = summed(sigma, shift, epsilon), DiscreteGaussianLoss(shift, number(sigma)).delta(number(epsilon))
    with mp.workdps(60):
        assert mpf(found.a) <= truth * (1 + mpf("1e-25"))
        assert mpf(found.b) >= truth * (1 - mpf("1e-25"))
        assert mpf(found.delta) <= 1e-11 * truth + mpf("1e-60")


def test_dp_accounting_agrees() -> None:
    theirs = privacy_loss_distribution.from_discrete_gaussian_mechanism(3.0, sensitivity=2)
    pipeline = parse("counts(l1, 2) | discrete_gaussian(3)", 1)
    profile = analyse(pipeline, pipeline.neighbours)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        delta = profile.delta(number(epsilon))
        assert down(delta) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), abs=2e-4)
        assert up(delta) <= theirs.get_delta_for_epsilon(epsilon) + 1e-9


def test_cells_have_the_masses_of_both_laws() -> None:
    cells = DiscreteGaussianLoss(3, number("2.5")).cells(0.1, 1, upper=False)
    assert cells.mass.sum() == pytest.approx(1, abs=1e-9)
    assert (cells.mass * np.exp(-cells.centre)).sum() == pytest.approx(1, abs=1e-9)


def test_zcdp() -> None:
    # Canonne, Kamath, Steinke: Δ²/(2σ²), which the mean of the loss attains.
    for dim in (1, 5):
        text = "counts(l2, 1) | discrete_gaussian(2)"
        assert check(text, guarantee=ZCDP("0.125"), dim=dim).proven
        assert check(text, guarantee=ZCDP("0.1249"), dim=dim).refuted


def test_several_coordinates_are_bounded_by_zcdp() -> None:
    pipeline = parse("counts(l2, 2) | discrete_gaussian(4)", 9)
    profile = analyse(pipeline, pipeline.neighbours)
    for epsilon in (0.5, 1.0, 2.0):
        best = min(
            math.exp((a - 1) * (a / 8 - epsilon)) / a * (1 - 1 / a) ** (a - 1) for a in np.arange(1.01, 60, 0.01)
        )
        delta = profile.delta(number(epsilon))
        assert best * 0.999 <= up(delta) <= best * 1.001
        # Two in one coordinate is one of the differences.
        assert down(delta) == pytest.approx(float(summed("4", 2, str(epsilon))), rel=1e-9)


def test_there_is_no_largest_loss() -> None:
    assert check("counts(l1, 1) | discrete_gaussian(50)", epsilon=100, dim=1).refuted


def test_numbers_that_are_not_whole_are_given_away() -> None:
    verdict = check("query(l2, 1) | discrete_gaussian(5)", epsilon=50, delta="0.9", dim=2)
    assert verdict.refuted
    assert verify(certify(verdict)).verdict == "refuted"


@pytest.mark.long(every=3)
@pytest.mark.parametrize("claim", [("1", "0.001"), ("0.3", "1e-6"), ("3", "1e-9")])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("counts(l1, 1) | discrete_gaussian(2)", 1),
        ("clamp(0, 4) | round | discrete_gaussian(6)", 1),
        ("rows | clamp(0, 1) | round | discrete_gaussian(0.7)", 3),
        ("counts(l2, 1) | discrete_gaussian(8)", 4),
        ("counts(l1, 1) | discrete_gaussian(20) | times(20)", 1),
    ],
)
def test_verdicts_have_certificates(text: str, dim: int, claim: tuple[str, str]) -> None:
    verdict = check(text, dim=dim, epsilon=claim[0], delta=claim[1])
    assert verify(certify(verdict)).verdict == verdict.word


def test_the_law_and_bad_input() -> None:
    noise = DiscreteGaussian("1.7")
    t = np.arange(-30, 31)
    masses = np.exp(noise.log_density(t.astype(float)))
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    assert noise.cdf(t) == pytest.approx(np.cumsum(masses), abs=1e-12)
    assert noise.survival(t + 0.5) == pytest.approx(1 - np.cumsum(masses), abs=1e-12)
    assert math.sqrt((masses * t**2).sum()) == pytest.approx(noise.deviation, rel=1e-12)
    assert noise.draw((3, 2), np.random.default_rng(0)).shape == (3, 2)
    for wrong in ("0", "-1"):
        with pytest.raises(InputError, match="discrete_gaussian: sigma must be positive"):
            parse(f"counts(l1, 1) | discrete_gaussian({wrong})", 1)
    with pytest.raises(InputError, match=r"between 0\.01 and 100,000, got 1e"):
        parse("counts(l1, 1) | discrete_gaussian(10^6)", 1)


def test_answers_far_apart_take_no_time():
    # Noise of deviation 1 does not reach half of the way: what is alike is below 1e-300.
    verdict = check("counts(l1, 1e9) | discrete_gaussian(1)", epsilon=1, delta="0.999", dim=1)
    assert verdict.refuted
    assert verify(certify(verdict)).ok


def spread_out(sigma: str, shifts: tuple[int, ...], epsilon: str) -> mpf:
    """Σ max(0, P − e^ε Q) over all outputs, for differences in several coordinates; equal losses are grouped."""
    with mp.workdps(30):
        s, rise = mpf(sigma), mp.exp(mpf(epsilon))
        far = math.ceil(12 * float(sigma)) + 4
        weights = {t: mp.exp(-(mpf(t) ** 2) / (2 * s**2)) for t in range(-far, far + 1)}
        total = sum(weights.values())
        masses = {0: mpf(1)}  # the loss is (Σk² − 2Σkt)/2σ²
        for shift in shifts:
            longer: dict[int, mpf] = {}
            for moved, mass in masses.items():
                for t, weight in weights.items():
                    longer[moved + shift * t] = longer.get(moved + shift * t, mpf(0)) + mass * weight / total
            masses = longer
        square = sum(shift**2 for shift in shifts)
        losses = ((mass, (square - 2 * moved) / (2 * s**2)) for moved, mass in masses.items())
        return sum(mass * max(mpf(0), 1 - rise * mp.exp(-loss)) for mass, loss in losses)


@pytest.mark.parametrize("sigma", ["0.35", "0.7", "1.6"])
@pytest.mark.parametrize("shifts", [(1, 1), (2, 1), (3, 2)])
def test_one_coordinate_is_the_worst_at_equal_l1_distance(sigma: str, shifts: tuple[int, ...]) -> None:
    """docs/proofs/discrete-gaussian.md, point 6, against sums over all outputs."""
    for epsilon in ("-2", "0", "0.3", "1", "2.5", "6", "11.7"):
        most = DiscreteGaussianLoss(sum(shifts), number(sigma)).delta(number(epsilon))
        assert spread_out(sigma, shifts, epsilon) <= mpf(most.b) + mpf("1e-20")


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("text", "dim", "neighbours", "shift"),
    [
        ("onehot(4) | discrete_gaussian(0.7)", 1, "group(2)", 2),
        ("onehot(4) | discrete_gaussian(1.5)", 1, "group(3)", 3),
        ("counts(l1, 2.5) | discrete_gaussian(0.7)", 4, None, 2),
        ("counts(l1, 1) | discrete_gaussian(2)", 3, "group(5)", 5),
    ],
)
def test_records_that_each_move_one_count(text: str, dim: int, neighbours: str | None, shift: int) -> None:
    sigma = text.rsplit("(", maxsplit=1)[-1].rstrip(")")
    truth = float(summed(sigma, shift, "2"))
    proven = check(text, epsilon=2, delta=truth * (1 + 1e-7), dim=dim, neighbours=neighbours)
    assert proven.proven
    assert verify(certify(proven)).verdict == "proven"
    refuted = check(text, epsilon=2, delta=truth * (1 - 1e-7), dim=dim, neighbours=neighbours)
    assert refuted.refuted
    assert verify(certify(refuted)).verdict == "refuted"


def test_number_of_the_page() -> None:
    assert float(spread_out("0.7", (1, 1), "1")) == pytest.approx(0.548854533, abs=1e-9)
    assert float(summed("0.7", 2, "1")) == pytest.approx(0.758616691, abs=1e-9)
