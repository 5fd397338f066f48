"""Logistic, Cauchy and Gumbel noise: recognized, and their pure losses against a search over the density ratio."""

import math
from typing import Any

import numpy as np
import pytest

from dpassay.core.numbers import number
from dpassay.trace.laws.number_laws import node_law
from dpassay.trace.laws.other_noises import pure_loss
from dpassay.trace.watch.tracer import Tracer

POINTS = np.linspace(-40, 40, 1_600_001)
LOG_DENSITY = {
    "logistic": lambda t: -np.abs(t) - 2 * np.log1p(np.exp(-np.abs(t))),
    "cauchy": lambda t: -np.log1p(t**2),
}


@pytest.mark.parametrize("kind", LOG_DENSITY)
@pytest.mark.parametrize(("shift", "scale"), [(1.0, 1.0), (-0.3, 2.0), (3.0, 0.7)])
def test_the_loss_is_the_largest_ratio(kind: str, shift: float, scale: float) -> None:
    d = abs(shift) / scale
    ratio = LOG_DENSITY[kind](POINTS) - LOG_DENSITY[kind](POINTS - d)
    assert float(pure_loss(kind, number(shift), number(scale)).mid) == pytest.approx(np.abs(ratio).max(), abs=1e-8)


def test_gumbel_noise_has_no_pure_loss() -> None:
    assert math.isinf(float(pure_loss("gumbel", number(1), number(1)).a))
    assert float(pure_loss("gumbel", number(0), number(1)).b) == 0


@pytest.mark.parametrize(
    ("subject", "kind", "centre", "scale"),
    [
        (lambda x, rng: x + rng.logistic(1, 2), "logistic", 4.0, 2.0),
        (lambda x, rng: x + rng.gumbel(0, 0.5), "gumbel", 3.0, 0.5),
        (lambda x, rng: x + 2 * rng.standard_cauchy(), "cauchy", 3.0, 2.0),
        (lambda x, rng: x + 2 * np.log((u := rng.random()) / (1 - u)), "logistic", 3.0, 2.0),
        (lambda x, rng: x - 2 * math.log(-math.log(rng.random())), "gumbel", 3.0, 2.0),
        (lambda x, rng: x + np.tan(np.pi * (rng.random() - 0.5)), "cauchy", 3.0, 1.0),
    ],
    ids=["logistic", "gumbel", "cauchy", "logistic formula", "gumbel formula", "cauchy formula"],
)
def test_they_are_recognized(subject: Any, kind: str, centre: float, scale: float) -> None:
    law = node_law(Tracer(subject).run(3.0).nodes[-1])
    assert str(law.kind) == kind
    assert float(law.centre) == pytest.approx(centre)
    assert float(law.scale) == pytest.approx(scale)


def test_a_diagonal_covariance_is_independent_noise() -> None:
    subject = lambda x, rng: x + rng.multivariate_normal([0, 1], [[4, 0], [0, 9]])  # noqa: E731
    law = node_law(Tracer(subject).run(3.0).nodes[-1])
    assert law.kind.tolist() == ["gaussian", "gaussian"]
    assert (law.centre.tolist(), law.scale.tolist()) == ([3, 4], [2, 3])
    other = lambda x, rng: x + rng.multivariate_normal([0, 1], [[4, 1], [1, 9]])  # noqa: E731
    assert node_law(Tracer(other).run(3.0).nodes[-1]).kind.tolist() == ["", ""]
