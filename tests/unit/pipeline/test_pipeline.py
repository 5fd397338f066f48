import math

import numpy as np
import pytest

from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Gaussian, Laplace, Pmf, Shifted
from dpassay.pipeline.pipeline import MAX_STAGES, Pipeline, run
from dpassay.pipeline.regions import Ball, Bits, Categories, Everything, OneHot
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.bounds.round import Round
from dpassay.pipeline.stages.bounds.scaling import Clip, MinMaxScale, Normalise
from dpassay.pipeline.stages.categories import Bloom, Category, Hash, OneHotEncode
from dpassay.pipeline.stages.dropout import Dropout
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.functions import Encode, Function
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.query import Query

RNG = np.random.default_rng(0)
ADEPT = Pipeline((Encode(32), Clip("l2", 1), Additive(Laplace(2)), Function()), dim=32)


def test_a_pipeline_walks_its_regions():
    regions = ADEPT.output_regions()
    assert [reach.region for reach in regions[:3]] == [Everything(32), Everything(32), Ball(2, 1, 32)]
    assert len(regions) == 5
    assert all(reach.exact for reach in regions[:3])


def test_where_the_noise_is():
    assert ADEPT.noise_positions == [2]
    two = Pipeline((Additive(Laplace(1)), Clip("l2", 1), Additive(Gaussian(1))), dim=2)
    assert two.noise_positions == [0, 2]
    assert Pipeline((Dropout("0.5"), Encode(2)), dim=2).noise_positions == []


def test_the_law_is_that_of_the_noise_at_the_bounded_value():
    pipeline = Pipeline((Clip("l2", 1), Additive(Laplace(2))), dim=2)
    distribution = pipeline.distribution([3.0, 4.0])
    assert isinstance(distribution, Shifted)
    np.testing.assert_allclose(distribution.centre, [0.6, 0.8], rtol=1e-14)
    assert distribution.noise == Laplace(2)


def test_the_law_of_bits():
    pipeline = Pipeline((Binary(1, 1), Flip("0.75")), dim=1)
    np.testing.assert_allclose(pipeline.distribution([-1.5]).one, [0.75, 0.75, 0.75], rtol=1e-15)
    np.testing.assert_allclose(pipeline.distribution([0.5]).one, [0.25, 0.25, 0.75], rtol=1e-15)


def test_the_law_of_categories():
    distribution = Pipeline((Category(4), Flip("0.7")), dim=1).distribution([2])
    assert isinstance(distribution, Pmf)
    np.testing.assert_allclose(distribution.probabilities, [0.1, 0.1, 0.7, 0.1], rtol=1e-14)


def test_flip_on_one_hot_vectors_flips_bits():
    pipeline = Pipeline((OneHotEncode(3), Flip("0.75")), dim=1)
    assert isinstance(pipeline.stages[-1], BitNoise)
    np.testing.assert_allclose(pipeline.distribution([1]).one, [0.25, 0.75, 0.25], rtol=1e-15)


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline((Additive(Laplace(1)), Function(lambda batch: 2 * batch)), dim=2),
        Pipeline((Clip("l2", 1),), dim=2),
        Pipeline((Additive(Laplace(1)), Additive(Laplace(1))), dim=2),
        Pipeline((Dropout("0.5"), Encode(2), Additive(Laplace(1))), dim=2),
    ],
    ids=str,
)
def test_no_law_where_it_is_not_known(pipeline):
    with pytest.raises(InputError, match="distribution is known only"):
        pipeline.distribution(np.zeros(pipeline.dim))


def test_sampling_a_vector_and_a_text():
    assert ADEPT.sample(np.ones(32), 7, RNG).shape == (7, 32)
    text = Pipeline((Dropout("0.5"), Encode(1, lambda texts: [[len(t.split())] for t in texts])), dim=1)
    counts = text.sample("a b c d", 100, np.random.default_rng(1))
    assert counts.shape == (100, 1)
    assert set(counts.ravel()) <= {0.0, 1.0, 2.0, 3.0, 4.0}


def test_a_mechanism_without_noise_repeats_itself():
    outputs = Pipeline((Normalise(), Round()), dim=2).sample([3.0, 4.0], 5, RNG)
    assert outputs.tolist() == [[1.0, 1.0]] * 5


def test_running_stages_is_running_them_one_after_another():
    batch = np.random.default_rng(2).normal(size=(5, 3))
    stages = (MinMaxScale(), Clip("l1", 1))
    np.testing.assert_array_equal(run(stages, batch, RNG), stages[1].run(stages[0].run(batch, RNG), RNG))


def test_neighbours_follow_from_the_first_stage():
    assert ADEPT.neighbours == Neighbours("any")
    assert Pipeline((Query("l1", 1), Additive(Laplace(1))), dim=1).neighbours == Neighbours("query")
    assert Pipeline((Dropout("0.5"), Encode(2), Additive(Laplace(1))), dim=2).neighbours == Neighbours("word")


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ((), "1 to"),
        ((Round(),) * (MAX_STAGES + 1), "1 to"),
        ((Clip("l2", 1), Query("l2", 1)), "first stage"),
        ((Clip("l2", 1), Dropout("0.5")), "before all stages"),
        ((Flip("0.75"),), "binary"),
        ((Clip("l2", 1), BitNoise("0.9", "0.9", "0.1")), "binary"),
        ((Category(3),), "takes one value"),
        ((Hash(3), Flip("0.75")), "takes one value"),
        ((Bloom(3, 1), Flip("0.75")), "takes one value"),
        ((OneHotEncode(4), Flip("0.75")), "takes one value"),
        ((Clip("l2", 1), OneHotEncode(4)), "takes one value"),
    ],
)
def test_a_pipeline_that_makes_no_sense_is_refused(stages, words):
    with pytest.raises(InputError, match=words):
        Pipeline(stages, dim=3)


@pytest.mark.parametrize(("noise", "words"), [(Additive(Laplace(1)), "onehot"), (Choose(1), "scores")])
def test_noise_for_vectors_is_refused_on_a_category(noise, words):
    with pytest.raises(InputError, match=words):
        Pipeline((Category(3), noise), dim=1)


def test_one_value_may_become_a_vector():
    # The dimension is the encoder's; a one-hot vector of the pipeline's own dimension may also come in as it is.
    assert Pipeline((Category(3), Encode(7), Clip("l2", 1)), dim=7).output_regions()[0].region == Everything(1)
    assert Pipeline((OneHotEncode(3), Flip("0.75")), dim=3).output_regions()[1] == OutputRegion(OneHot(3))
    with pytest.raises(InputError, match="takes one number"):
        Pipeline((Category(3), Encode(2)), dim=2).sample([0.0, 1.0], 1, RNG)


@pytest.mark.parametrize("dim", [0, -1, 2.5, math.nan, 1e9])
def test_a_bad_dimension_is_refused(dim):
    with pytest.raises(InputError, match="dimension must be"):
        Pipeline((Round(),), dim=dim)


def test_bits_multiply_the_dimension():
    regions = Pipeline((Binary(4, 5), Flip("0.9")), dim=768).output_regions()
    assert regions[1].region == Bits(7680)  # FACTS §6: r = 768, l = 10


def test_the_exponential_mechanism_puts_out_a_category():
    assert Pipeline((Clip("linf", 1), Choose(1)), dim=5).output_regions()[-1].region == Categories(5)


def test_a_pipeline_prints_as_it_is_written():
    assert str(ADEPT) == "encode | clip(l2, 1) | laplace(2) | decode"
