import math

import numpy as np
import pytest

from dpassay.errors import InputError
from dpassay.pipeline.distributions import BitDistribution, Gaussian, Laplace, Mixture, OneSided, Pmf, Shifted
from dpassay.pipeline.regions import Ball, Bits, Categories, Everything, OneHot
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.noises.additive import Additive, leak, one_sided

STAGES = [Additive(Laplace(1)), BitNoise("0.9", "0.8", "0.1"), Flip("0.75"), Choose(2)]


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_each_is_a_noise_stage(stage):
    assert isinstance(stage, NoiseStage)
    assert stage.keeps in ("all", "tails", "signs", "nothing")


def test_additive_noise_is_centred_at_the_value():
    distribution = Additive(Gaussian(2)).distribution(np.array([1.0, -3.0]))
    assert isinstance(distribution, Shifted)
    assert distribution.centre.tolist() == [1.0, -3.0]
    assert distribution.noise == Gaussian(2)


def test_additive_noise_reaches_everything_exactly_only_from_everything():
    assert Additive(Laplace(1)).output_region(OutputRegion(Everything(3))) == OutputRegion(Everything(3), exact=True)
    assert Additive(Laplace(1)).output_region(OutputRegion(Ball(2, 1, 3))) == OutputRegion(Everything(3), exact=False)
    assert not Additive(Laplace(1)).output_region(OutputRegion(Everything(3), exact=False)).exact


def test_bit_noise_by_position():
    distribution = BitNoise("0.9", "0.8", "0.1").distribution(np.array([1.0, 1.0, 0.0, 0.0, 1.0]))
    assert isinstance(distribution, BitDistribution)
    np.testing.assert_allclose(distribution.one, [0.9, 0.8, 0.1, 0.1, 0.9], rtol=1e-15)


def test_flipping_a_bit_is_symmetric():
    distribution = Flip("0.75").distribution(np.array([1.0, 0.0]))
    np.testing.assert_allclose(distribution.one, [0.75, 0.25], rtol=1e-15)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_flipping_a_category(size):
    distribution = Flip("0.6", size).distribution(np.array([1.0]))
    assert isinstance(distribution, Pmf)
    expected = np.full(size, 0.4 / (size - 1))
    expected[1] = 0.6
    np.testing.assert_allclose(distribution.probabilities, expected, rtol=1e-15)
    assert distribution.probabilities.sum() == pytest.approx(1, rel=1e-15)


def test_one_category_cannot_be_flipped():
    assert Flip("0.6", 1).distribution(np.array([0.0])).probabilities.tolist() == [1.0]
    assert not Flip("0.6", 1).run(np.zeros((50, 1)), np.random.default_rng(0)).any()


@pytest.mark.parametrize("keep", [0, 1])
def test_flipping_never_and_always(keep):
    bits = np.array([[0.0, 1.0, 1.0, 0.0]] * 20)
    outputs = Flip(keep).run(bits, np.random.default_rng(0))
    np.testing.assert_array_equal(outputs, bits if keep else 1 - bits)
    names = np.array([[0.0], [1.0], [2.0]] * 20)
    outputs = Flip(keep, 3).run(names, np.random.default_rng(0))
    assert ((outputs == names) == bool(keep)).all()
    assert set(outputs.ravel()) <= {0.0, 1.0, 2.0}


def test_flip_is_told_what_it_works_on():
    assert Flip("0.75").for_region(Categories(4)) == Flip("0.75", 4)
    for region in (Bits(3), OneHot(3)):
        told = Flip("0.75").for_region(region)
        assert isinstance(told, BitNoise)
        np.testing.assert_allclose(told.distribution(np.array([1.0, 0.0])).one, [0.75, 0.25], rtol=1e-15)


def test_the_exponential_mechanism_by_formula():
    scores = np.array([0.0, 1.0, 3.0, -2.0])
    expected = np.exp(0.7 * scores) / np.exp(0.7 * scores).sum()
    np.testing.assert_allclose(Choose("0.7").distribution(scores).probabilities, expected, rtol=1e-14)


def test_the_exponential_mechanism_does_not_overflow():
    probabilities = Choose(1000).distribution(np.array([1e5, 1e5, 0.0])).probabilities
    assert probabilities.tolist() == [0.5, 0.5, 0.0]


def test_the_exponential_mechanism_depends_on_differences_only():
    one, other = (Choose(2).distribution(np.array([0.0, 1.0, 2.0]) + shift).probabilities for shift in (0.0, 64.0))
    np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan, math.inf, None, "half"])
def test_bad_probabilities_are_refused(probability):
    for make in (Flip, lambda p: BitNoise(p, 0, 0), lambda p: BitNoise(0, p, 0), lambda p: BitNoise(0, 0, p)):
        with pytest.raises(InputError, match=r"must be a probability|expected a number"):
            make(probability)


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf])
def test_a_bad_rate_is_refused(rate):
    with pytest.raises(InputError, match=r"rate must be positive|expected a number"):
        Choose(rate)


@pytest.mark.parametrize("stage", [BitNoise("0.9", "0.9", "0.1"), Flip("0.9")], ids=str)
def test_noise_on_bits_needs_bits(stage):
    with pytest.raises(InputError, match=r"binary\(m, n\)"):
        stage.output_region(OutputRegion(Everything(3)))
    assert stage.output_region(OutputRegion(Bits(3))).region == Bits(3)
    assert stage.output_region(OutputRegion(OneHot(3))).region == Bits(3)


def test_noise_on_a_categorys_name_is_refused():
    with pytest.raises(InputError, match="onehot"):
        Additive(Laplace(1)).output_region(OutputRegion(Categories(3)))
    with pytest.raises(InputError, match="scores"):
        Choose(1).output_region(OutputRegion(Categories(3)))


def test_what_comes_out_after_noise():
    assert Choose(1).output_region(OutputRegion(Everything(5))).region == Categories(5)
    assert Flip("0.9").output_region(OutputRegion(Categories(5))).region == Categories(5)


def test_outputs_lie_in_the_stated_region():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, size=(50, 5)).astype(float)
    for stage in (BitNoise("0.9", "0.3", "0.1"), Flip("0.6")):
        assert all(Bits(5).contains(row) for row in stage.run(bits, rng))
    names = rng.integers(0, 4, size=(50, 1)).astype(float)
    assert all(Categories(4).contains(row) for row in Flip("0.6", 4).run(names, rng))
    assert all(Categories(3).contains(row) for row in Choose(1).run(rng.normal(size=(50, 3)), rng))


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Additive(Laplace("0.1")), "laplace(0.1)"),
        (Additive(Gaussian(2)), "gaussian(2)"),
        (Additive(OneSided(2)), "onesided(2)"),
        (Additive(Mixture("0.5", (("0.5", OneSided(2)),))), "onesided(2, 0.5, 0)"),
        (Additive(Mixture("0.5", (("0.5", Laplace(2)),))), "noise(Mixture)"),
        (leak("0.25"), "leak(0.25)"),
        (one_sided(3, 0, "0.5"), "onesided(3, 0, 0.5)"),
        (BitNoise("0.9", "0.8", "0.1"), "bits(0.9, 0.8, 0.1)"),
        (Flip("0.75"), "flip(0.75)"),
        (Choose(2), "exponential(2)"),
    ],
)
def test_stages_print_as_they_are_written(stage, text):
    assert str(stage) == text


def test_one_sided_noise_with_nothing_left_out_is_plain():
    assert one_sided(3).noise == OneSided(3)
    assert one_sided(3, "0.25").noise == Mixture("0.25", (("0.75", OneSided(3)),))
    both = one_sided(3, "0.25", "0.25").noise
    assert (both.atom, float(both.lost.mid), float(both.parts[0][0].mid)) == (0.25, 0.25, 0.5)


def test_all_left_out_or_lost_is_a_leak():
    assert one_sided(3, "0.25", "0.75").noise == leak("0.25").noise
    assert leak("0.25").noise == Mixture("0.25", (), "0.75")
    with pytest.raises(InputError, match="at most 1"):
        one_sided(1, "0.6", "0.6")


def test_a_leak_shows_a_value_or_nothing():
    outputs = leak("0.5").run(np.tile([7.0, -2.0], (1000, 1)), np.random.default_rng(3))
    assert all(set(column[~np.isnan(column)]) == {value} for column, value in zip(outputs.T, (7.0, -2.0), strict=True))
    assert 0 < np.isnan(outputs).sum() < 2000
    assert np.isnan(leak(0).run(np.ones((9, 2)), np.random.default_rng(0))).all()
    assert (leak(1).run(np.ones((9, 2)), np.random.default_rng(0)) == 1).all()


def test_lost_values_are_not_swamped():
    """NaN stays NaN however large the value was; what cannot be lost can be swamped."""
    assert Additive(OneSided(1)).output_region(OutputRegion(Everything(2))).exact
    assert one_sided(1, "0.5").output_region(OutputRegion(Everything(2))).exact
    assert not one_sided(1, 0, "0.5").output_region(OutputRegion(Everything(2))).exact


def test_a_category_may_be_shown_or_not_but_not_moved():
    assert leak("0.5").output_region(OutputRegion(Categories(3))).region == Everything(1)
    with pytest.raises(InputError, match="onehot"):
        one_sided(1, "0.5").output_region(OutputRegion(Categories(3)))
