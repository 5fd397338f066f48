"""Noise in a Mahalanobis norm: losses by formula, and by the density itself far out."""

import math

import numpy as np
import pytest

from dpassay import certify, check, verify
from dpassay.core.guarantee import MetricDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, up
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.guarantees.metric import loss_per_unit
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.noises.mahalanobis import Mahalanobis, ShiftedMahalanobis


def bounds(text: str, dim: int, neighbours: str | None = None) -> tuple[float, float]:
    pipeline = parse(text, dim)
    pure = analyse(pipeline, Neighbours(neighbours) if neighbours else pipeline.neighbours).pure
    return down(pure), up(pure)


@pytest.mark.parametrize(
    ("text", "dim", "low", "high"),
    [
        ("clip(l2, 3) | mahalanobis(2, 0.25, 4)", 32, 6, 6),  # 2C/(b √λ₁)
        ("clip(l1, 3) | mahalanobis(2, 0.25, 4)", 32, 6, 6),
        ("normalise | mahalanobis(2, 0.25, 4) | round", 32, 2, 2),
        ("query(l2, 3) | mahalanobis(2, 0.25, 4)", 9, 3, 3),
        ("clip(linf, 1) | mahalanobis(1, 4, 4)", 9, 3, 3),  # a sphere after all: the diagonal 2·3 over 2
        ("clip(linf, 1) | mahalanobis(1, 0.25, 0.64)", 9, 7.5, 12),  # the diagonal 6 over 0.8, or 0.5 at most
        ("clip(l2, 3) | mahalanobis(2, 0.25, 4)", 1, 6, 6),  # Laplace noise of scale 1
        ("clip(l2, 3) | mahalanobis(2, 0.25, 4) | clip(l2, 1)", 3, 0, 6),
        ("mahalanobis(2, 0.25, 4)", 3, math.inf, math.inf),
    ],
)
def test_pure_epsilon(text: str, dim: int, low: float, high: float) -> None:
    assert bounds(text, dim) == pytest.approx((low, high), rel=1e-12)


def test_a_record_against_none() -> None:
    assert bounds("clip(l2, 3) | mahalanobis(2, 0.25, 4)", 4, "add-remove-record") == (3, 3)


@pytest.mark.parametrize(
    ("text", "metric", "dim", "low", "high"),
    [
        ("mahalanobis(0.1, 0.25, 4)", "mahalanobis", 300, 10, 10),
        ("encode | mahalanobis(0.1, 0.25, 4) | decode", "l2", 300, 20, 20),
        ("mahalanobis(0.1, 0.25, 4)", "l1", 300, 20, 20),
        ("mahalanobis(0.1, 0.25, 4)", "linf", 4, 10, 40),
        ("normalise(l2) | mahalanobis(0.1, 0.25, 4)", "angle", 4, 20, 20),
        ("clip(l2, 1) | mahalanobis(0.1, 0.25, 4)", "l2", 5, 20, 20),
        ("clip(l2, 1) | mahalanobis(0.1, 0.25, 4)", "mahalanobis", 5, 10, 40),
        ("mahalanobis(0.1, 0.25, 4)", "mahalanobis", 1, 10, 10),
        ("mahalanobis(0.1, 0.25, 4)", "l2", 1, 20, 20),
    ],
)
def test_loss_per_unit_of_distance(text: str, metric: str, dim: int, low: float, high: float) -> None:
    found = loss_per_unit(parse(text, dim), Neighbours(), MetricDP(1, metric)).value
    assert (down(found), up(found)) == pytest.approx((low, high), rel=1e-12)


def test_no_pair_loses_more_and_the_first_axis_loses_as_much() -> None:
    rng = np.random.default_rng(2)
    stage = Mahalanobis("0.5", "0.25", 4)
    x, y, z = rng.normal(size=(3, 500, 6))
    losses = np.array(
        [
            float(np.diff([ShiftedMahalanobis(stage, c).log_likelihood(t[None])[0] for c in (b, a)])[0])
            for a, b, t in zip(x, y, 5 * z, strict=True)
        ]
    )
    ratios = losses / np.linalg.norm(x - y, axis=1)
    assert ratios.max() <= 4 * (1 + 1e-12)  # 1/(b √λ₁)
    first = np.eye(6)[0]
    there, back = (ShiftedMahalanobis(stage, c * first).log_likelihood(9 * first[None])[0] for c in (1, -1))
    assert there - back == pytest.approx(8, rel=1e-12)


def test_the_density_integrates_to_one() -> None:
    noise = ShiftedMahalanobis(Mahalanobis("0.6", "0.5", 2), np.array([0.3, -0.2]))
    step = 0.02
    axis = np.arange(-14, 14, step) + step / 2
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    assert np.exp(noise.log_likelihood(grid)).sum() * step**2 == pytest.approx(1, abs=1e-3)


def test_the_mean_variance() -> None:
    # (n + 1) b² tr Σ / n with Σ = diag(1, 2, 3): 4·4·2.
    assert Mahalanobis(2, 1, 3).deviation(3) == pytest.approx(math.sqrt(32), rel=1e-15)


@pytest.mark.parametrize(
    ("text", "epsilon", "word"),
    [
        ("clip(l2, 1) | mahalanobis(2, 0.25, 9)", 2, "proven"),
        ("clip(l2, 1) | mahalanobis(2, 0.25, 9)", "1.999", "refuted"),
        ("clip(linf, 1) | mahalanobis(2, 0.25, 9) | round", "0.6", "refuted"),
        ("clip(l2, 1) | mahalanobis(2, 0.25, 9) | times(3)", "6", "proven"),
        ("encode | mahalanobis(2, 0.25, 9)", "6", "refuted"),
    ],
)
@pytest.mark.parametrize("dim", [1, 5])
def test_certificates(text: str, epsilon: str, word: str, dim: int) -> None:
    verdict = check(text, epsilon=epsilon, dim=dim)
    assert verdict.word == word
    assert verify(certify(verdict)).verdict == word


def test_repairs_keep_the_claim() -> None:
    first, *_ = check("mahalanobis(0.2, 0.25, 4)", guarantee=MetricDP(4, "mahalanobis"), dim=8).repairs
    assert str(first.mechanism).startswith("mahalanobis(0.25")
    for claim in ({"guarantee": MetricDP(4, "l2")}, {"epsilon": 1}):
        text = "mahalanobis(0.2, 0.25, 4)" if "guarantee" in claim else "clip(l2, 1) | mahalanobis(0.2, 0.25, 4)"
        repairs = check(text, dim=8, **claim).repairs
        assert repairs
        for repair in repairs:
            if repair.mechanism is not None and "guarantee" in claim:
                assert check(repair.mechanism, guarantee=repair.guarantee).proven


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mahalanobis(1, 0, 2)", "least eigenvalue must be positive"),
        ("mahalanobis(1, 3, 2)", "the least eigenvalue first, then the largest one, got 3 and 2"),
        ("clip(l2, 1) | repeat(2) | mahalanobis(1, 1, 2)", "mahalanobis draws its noise for the whole vector at once"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text, 4)


def test_its_own_metric_needs_it() -> None:
    with pytest.raises(InputError, match="is that of the noise mahalanobis"):
        check("laplace(1)", guarantee=MetricDP(1, "mahalanobis"), dim=3)
