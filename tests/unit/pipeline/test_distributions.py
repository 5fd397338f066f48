import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from dpassay.errors import InputError
from dpassay.pipeline.distributions import (
    BitDistribution,
    Distribution,
    Gaussian,
    Laplace,
    Mixture,
    Noise,
    OneSided,
    Pmf,
    Shifted,
    as_vector,
)

GRID = np.concatenate([np.linspace(-60, 60, 241), [-300.0, 300.0, 1e-9, -1e-9]])
PAIRS = [
    (Laplace("0.5"), stats.laplace(scale=0.5)),
    (Laplace(20), stats.laplace(scale=20)),
    (Gaussian("1.5"), stats.norm(scale=1.5)),
    (OneSided(3), stats.expon(scale=3)),
]
IDS = [type(noise).__name__ for noise, _ in PAIRS]


@pytest.mark.parametrize(("noise", "reference"), PAIRS, ids=IDS)
def test_log_density_against_scipy(noise, reference):
    np.testing.assert_allclose(noise.log_density(GRID), reference.logpdf(GRID), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("noise", "reference"), PAIRS, ids=IDS)
def test_both_tails_against_scipy(noise, reference):
    np.testing.assert_allclose(noise.cdf(GRID), reference.cdf(GRID), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(noise.survival(GRID), reference.sf(GRID), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(("noise", "reference"), PAIRS, ids=IDS)
def test_noises_without_atom(noise, reference):
    assert noise.atom == 0
    assert isinstance(noise, Noise)


def test_far_tails_keep_their_precision():
    with mp.workdps(40):
        assert Laplace(1).survival(np.array(700.0)) == pytest.approx(float(mp.exp(-700) / 2), rel=1e-12)
        assert OneSided(1).survival(np.array(700.0)) == pytest.approx(float(mp.exp(-700)), rel=1e-12)
        assert OneSided(1).cdf(np.array(1e-20)) == pytest.approx(1e-20, rel=1e-12)
        truth = float(mp.erfc(mpf(30) / mp.sqrt(2)) / 2)
        assert Gaussian(1).survival(np.array(30.0)) == pytest.approx(truth, rel=1e-11)


MIXED = Mixture("0.2", (("0.3", Laplace(1)), ("0.4", Gaussian(2)), ("0.1", OneSided("0.5"))))


def test_a_mixture_is_the_weighted_sum():
    parts = [(0.3, stats.laplace(scale=1)), (0.4, stats.norm(scale=2)), (0.1, stats.expon(scale=0.5))]
    t = np.linspace(-8, 8, 81)
    np.testing.assert_allclose(np.exp(MIXED.log_density(t)), sum(w * d.pdf(t) for w, d in parts), rtol=1e-12)
    np.testing.assert_allclose(MIXED.cdf(t), sum(w * d.cdf(t) for w, d in parts) + 0.2 * (t >= 0), rtol=1e-12)
    np.testing.assert_allclose(MIXED.survival(t), sum(w * d.sf(t) for w, d in parts) + 0.2 * (t < 0), rtol=1e-12)
    assert MIXED.atom == pytest.approx(0.2, rel=1e-15)


def test_a_mixture_far_out_is_unlikely_but_not_impossible():
    noise = Mixture(0, ((Fraction(1, 2), Laplace(1)), (Fraction(1, 2), Laplace(2))))
    with mp.workdps(30):
        truth = mp.log(mp.exp(mpf(-3000)) / 4 + mp.exp(mpf(-1500)) / 8)
    assert noise.log_density(np.array(3000.0)) == pytest.approx(float(truth), rel=1e-12)


@pytest.mark.parametrize(
    ("atom", "parts"),
    [
        ("0.5", (("0.4", Laplace(1)),)),
        ("-0.1", (("1.1", Laplace(1)),)),
        (0, ((1, Mixture("0.5", (("0.5", Laplace(1)),))),)),
        (math.nan, ((1, Laplace(1)),)),
    ],
)
def test_a_bad_mixture_is_refused(atom, parts):
    with pytest.raises(InputError):
        Mixture(atom, parts)


@pytest.mark.parametrize("make", [Laplace, Gaussian, OneSided])
@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, None, "wide"])
def test_a_bad_scale_is_refused(make, scale):
    with pytest.raises(InputError, match=r"must be positive and finite|expected a number"):
        make(scale)


def test_shifted_is_a_product():
    rng = np.random.default_rng(0)
    centre, outputs = rng.normal(size=4), rng.normal(size=(20, 4))
    distribution = Shifted(Laplace(2), centre)
    np.testing.assert_allclose(
        distribution.log_likelihood(outputs), stats.laplace(loc=centre, scale=2).logpdf(outputs).sum(axis=1), rtol=1e-12
    )
    assert isinstance(distribution, Distribution)


def test_an_output_at_the_atom_counts_the_atom():
    noise = Mixture("0.25", (("0.75", OneSided(1)),))
    distribution = Shifted(noise, np.array([0.0, 1.0]))
    rows = np.array([[0.0, 1.0], [0.0, 1.5], [0.5, 1.0], [0.5, 0.5]])
    with np.errstate(divide="ignore"):
        expected = [
            math.log(0.25) * 2,
            math.log(0.25) + math.log(0.75) - 0.5,
            math.log(0.25) + math.log(0.75) - 0.5,
            -math.inf,
        ]
    np.testing.assert_allclose(distribution.log_likelihood(rows), expected, rtol=1e-13)


def test_below_one_sided_noise_nothing_occurs():
    assert Shifted(OneSided(1), np.zeros(2)).log_likelihood(np.array([[0.5, -0.1]])).tolist() == [-math.inf]


def test_bit_law_is_a_product_of_bernoullis():
    one = np.array([0.9, 0.1, 0.5, 1.0, 0.0])
    rows = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [1, 0, 1, 1, 1]], dtype=float)
    truth = stats.bernoulli(one).logpmf(rows).sum(axis=1)
    np.testing.assert_allclose(BitDistribution(one).log_likelihood(rows), truth, rtol=1e-13)


def test_bit_law_sums_to_one():
    one = np.array([0.3, 0.8, 0.05])
    rows = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], dtype=float)
    assert np.exp(BitDistribution(one).log_likelihood(rows)).sum() == pytest.approx(1, rel=1e-14)


def test_pmf_likelihood():
    probabilities = np.array([0.25, 0.75, 0.0])
    values = Pmf(probabilities).log_likelihood(np.array([[0.0], [1.0], [2.0]]))
    np.testing.assert_allclose(values, [math.log(0.25), math.log(0.75), -math.inf], rtol=1e-14)


@pytest.mark.parametrize("outcome", [-1.0, 0.5, 2.0, 1e9])
def test_an_outcome_that_cannot_occur_has_likelihood_zero(outcome):
    assert Pmf(np.array([0.25, 0.75])).log_likelihood(np.array([[outcome]])).tolist() == [-math.inf]


@pytest.mark.parametrize("value", [0.5, 2.0, -1.0])
def test_what_is_no_bit_has_likelihood_zero(value):
    assert BitDistribution(np.array([0.5, 0.5])).log_likelihood(np.array([[1.0, value]])).tolist() == [-math.inf]


def test_samples_have_one_output_a_row():
    rng = np.random.default_rng(0)
    assert Shifted(Laplace(1), np.zeros(3)).sample(5, rng).shape == (5, 3)
    assert BitDistribution(np.full(4, 0.5)).sample(5, rng).shape == (5, 4)
    assert Pmf(np.full(4, 0.25)).sample(5, rng).shape == (5, 1)


def test_the_same_seed_gives_the_same_sample():
    for distribution in (Shifted(MIXED, np.zeros(3)), BitDistribution(np.full(4, 0.5)), Pmf(np.full(4, 0.25))):
        one, other = (distribution.sample(50, np.random.default_rng(3)) for _ in range(2))
        np.testing.assert_array_equal(one, other)


def test_inputs_are_read_as_one_vector():
    assert as_vector(3).tolist() == [3.0]
    assert as_vector([1, 2]).tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="one vector"):
        as_vector([[1, 2]])


LOSING = Mixture("0.2", (("0.5", OneSided(2)),), "0.3")


def test_what_is_lost_is_missing_from_the_distribution():
    grid = np.array([-1.0, 0.0, 1.0, 500.0])
    smooth = 0.5 * stats.expon.cdf(grid, scale=2)
    np.testing.assert_allclose(LOSING.cdf(grid), smooth + 0.2 * (grid >= 0), rtol=1e-14)
    np.testing.assert_allclose(LOSING.cdf(grid) + LOSING.survival(grid), 0.7, rtol=1e-14)


def test_the_likelihood_of_a_lost_coordinate():
    distribution = Shifted(LOSING, np.array([1.0, 1.0]))
    outputs = np.array([[1.0, math.nan], [3.0, math.nan], [math.nan, math.nan], [0.5, math.nan]])
    density = 0.5 * math.exp(-1) / 2  # two above the value, the scale is 2
    expected = [math.log(0.2 * 0.3), math.log(density * 0.3), math.log(0.09), -math.inf]
    np.testing.assert_allclose(distribution.log_likelihood(outputs), expected, rtol=1e-13)


def test_values_are_lost_beside_one_sided_noise_only():
    with pytest.raises(InputError, match="only exponential noise, or no noise at all"):
        Mixture("0.2", (("0.5", Laplace(2)),), "0.3")
    with pytest.raises(InputError, match="only exponential noise, or no noise at all"):
        Mixture(0, (("0.5", OneSided(2)), ("0.2", OneSided(3))), "0.3")
    with pytest.raises(InputError, match="sum to 1"):
        Mixture("0.2", (("0.5", OneSided(2)),), "0.2")
