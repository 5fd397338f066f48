"""Random directions as stages: density, text, inputs; how they are drawn is in tests/statistical."""

import math

import numpy as np
import pytest
from mpmath import mp

from dpassay.errors import InputError
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.noises.directions import Around, Purkayastha, VonMisesFisher


def test_its_text_is_read_back() -> None:
    pipeline = parse("normalise | vmf(eps/2)", dim=4, values={"eps": 3})
    assert str(pipeline) == "normalise(l2) | vmf(1.5)"
    assert parse(str(pipeline), 4) == pipeline


@pytest.mark.parametrize(("kappa", "n"), [(1, 2), (0.3, 3), (7, 5), (40, 300)])
def test_the_density_of_von_mises_and_fisher(kappa: float, n: int) -> None:
    # κ^(n/2−1) / ((2π)^(n/2) I_(n/2−1)(κ)) · e^(κ⟨x, z⟩)
    x, z = np.eye(n)[0], np.eye(n)[1]
    found = Around(VonMisesFisher(kappa), x).log_likelihood(np.stack([x, z]))
    with mp.workdps(30):
        half = mp.mpf(n) / 2
        constant = mp.log(mp.mpf(kappa) ** (half - 1) / ((2 * mp.pi) ** half * mp.besseli(half - 1, kappa)))
    assert found.tolist() == pytest.approx([float(constant) + kappa, float(constant)], rel=1e-5, abs=1e-4)


def test_the_density_of_purkayastha() -> None:
    # On the sphere of three dimensions: 2π ∫ e^(−κa) sin a da = 2π (1 + e^(−κπ))/(1 + κ²).
    total = 2 * math.pi * (1 + math.exp(-2 * math.pi)) / 5
    x = np.array([0.0, 0.6, 0.8])
    outputs = np.stack([x, -x, [1.0, 0.0, 0.0]])
    found = Around(Purkayastha(2), x).log_likelihood(outputs)
    expected = [-2 * angle - math.log(total) for angle in (0, math.pi, math.pi / 2)]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("stage", [VonMisesFisher(3), Purkayastha(3)])
def test_outputs_are_unit_vectors(stage) -> None:
    rng = np.random.default_rng(0)
    for shape in ((5,), (3, 5), (2, 3, 5), (0, 5), (4, 2)):
        x = np.zeros(shape)
        x[..., 1] = 1
        outputs = stage.run(x, rng)
        assert outputs.shape == shape
        assert np.allclose(np.linalg.norm(outputs, axis=-1), 1)


@pytest.mark.parametrize("kappa", [1e-3, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("law", [VonMisesFisher, Purkayastha])
@pytest.mark.parametrize("n", [2, 3, 1000])
def test_any_concentration_can_be_drawn(law, kappa: float, n: int) -> None:
    outputs = law(kappa).run(np.tile(np.eye(n)[0], (50, 1)), np.random.default_rng(1))
    assert np.isfinite(outputs).all()
    assert np.allclose(np.linalg.norm(outputs, axis=-1), 1)


def test_a_zero_vector_is_taken_for_the_first_axis() -> None:
    pipeline = parse("normalise | vmf(1000)", 3)
    outputs = pipeline.sample([0.0, 0.0, 0.0], 100, np.random.default_rng(0))
    assert (outputs[:, 0] > 0.9).all()


def test_other_vectors_are_refused() -> None:
    with pytest.raises(InputError, match="unit vectors, got one of length 2"):
        parse("vmf(1)", 2).sample([2.0, 0.0], 3, np.random.default_rng(0))
