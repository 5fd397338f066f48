"""Radial noise as a stage: its density, its deviation, its text; how it is drawn is in tests/statistical."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay.pipeline.distributions import Laplace, Shifted
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.radial import Radial, ShiftedRadial, in_dimension
from dpassay.report.claims.claim_report import amount

ORD = {"l1": 1, "l2": 2, "linf": np.inf}


def test_its_text_is_read_back() -> None:
    pipeline = parse("clip(l2, C) | radial(l2, scale=2*C/eps)", dim=4, values={"C": 3, "eps": 2})
    assert str(pipeline) == "clip(l2, 3) | radial(l2, 3)"
    assert parse(str(pipeline), 4) == pipeline
    assert pipeline.stages[1] == Radial("l2", 3)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_density_integrates_to_one(norm: str) -> None:
    noise = ShiftedRadial(Radial(norm, "0.7"), np.array([0.4, -0.3]))

    step = 0.02
    axis = np.arange(-12, 12, step) + step / 2
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    assert np.exp(noise.log_likelihood(grid)).sum() * step**2 == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("norm", "dim"), [("l1", 7), ("l2", 1), ("l2", 7), ("l2", 1000), ("linf", 7), ("linf", 3000)])
def test_the_log_density(norm: str, dim: int) -> None:
    outputs = np.random.default_rng(0).normal(size=(3, dim)) * 5
    centre = np.linspace(-1, 1, dim)
    found = ShiftedRadial(Radial(norm, "1.3"), centre).log_likelihood(outputs)
    with mp.workdps(40):
        volume = {"l1": mpf(2) ** dim / mp.factorial(dim), "linf": mpf(2) ** dim}
        volume["l2"] = mp.pi ** (mpf(dim) / 2) / mp.gamma(mpf(dim) / 2 + 1)
        constant = mp.log(mp.factorial(dim) * mpf("1.3") ** dim * volume[norm])
        for row, value in zip(outputs, found, strict=True):
            length = mpf(float(np.linalg.norm(row - centre, ord=ORD[norm])))
            assert value == pytest.approx(float(-length / mpf("1.3") - constant), rel=1e-12)


def test_the_deviation_of_a_coordinate() -> None:
    # sqrt(E[R²] E[U₁²]), R from Gamma(n + 1), U uniform in the unit ball.
    assert Radial("l2", 2).deviation(32) == pytest.approx(2 * math.sqrt(33), rel=1e-15)
    assert Radial("linf", 2).deviation(32) == pytest.approx(2 * math.sqrt(33 * 34 / 3), rel=1e-15)
    for norm in ("l1", "l2", "linf"):
        assert Radial(norm, 3).deviation(1) == pytest.approx(3 * math.sqrt(2), rel=1e-15)
    assert amount(parse("clip(l2, 1) | radial(l2, 2)", 32)).size == pytest.approx(2 * math.sqrt(33))


def test_where_it_is_laplace_noise() -> None:
    assert in_dimension(Radial("l1", 3), 8) == Additive(Laplace(3)) == in_dimension(Radial("linf", 3), 1)
    assert in_dimension(Radial("l2", 3), 2) == Radial("l2", 3)
    assert isinstance(Radial("l1", 3).distribution(np.zeros(4)), Shifted)
    assert isinstance(Radial("l2", 3).distribution(np.zeros(4)), ShiftedRadial)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_batches_of_any_shape(norm: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((5,), (3, 5), (2, 3, 5), (0, 5)):
        outputs = Radial(norm, 1).run(np.zeros(shape), rng)
        assert outputs.shape == shape
        assert np.isfinite(outputs).all()
    assert np.linalg.matrix_rank(Radial(norm, 1).run(np.zeros((5, 5)), rng)) == 5  # each row has noise of its own
