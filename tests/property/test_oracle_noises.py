"""The oracle's newer laws against integrals, sums and random inputs that are done another way."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay import GDP, ZCDP, MetricDP, RenyiDP, check
from oracle import truth_of
from oracle.choices import wins
from oracle.guarantees import Stated, judged_other, loss_per_unit, rho
from oracle.noises import discrete_gaussian_pair, staircase_pair, truncated_pair
from oracle.placed import bounded_pair, direction_truth
from oracle.text import Stage, stages
from oracle.values import Values, shapes, walk

LINE = np.linspace(-40, 40, 200_001)
HALF = mpf(1) / 2


def excess(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """∫ max(0, p − e^ε q) of two densities on the line, each made to have the mass 1."""
    p, q = p / p.sum(), q / q.sum()
    return float(np.maximum(0.0, p - np.exp(epsilon) * q).sum())


@pytest.mark.parametrize("shift", [0.3, 1.0, 2.7])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.2])
def test_noises_on_the_line(shift: float, epsilon: float) -> None:
    def stair(t: np.ndarray) -> np.ndarray:
        return np.exp(-0.7 * np.floor(np.abs(t) + 1 - 0.38))

    def cut(t: np.ndarray) -> np.ndarray:
        return np.exp(-np.abs(t)) * (np.abs(t) <= 1.5)

    def between(x: float) -> np.ndarray:
        return np.exp(-np.abs(LINE - x)) * (np.abs(LINE - 1.75) <= 1.75)

    e, s = mpf(epsilon), mpf(shift)
    stage = Stage("staircase", {"epsilon": mpf("0.7"), "sensitivity": mpf(1), "gamma": mpf("0.38")})
    assert staircase_pair([(s, 1)], stage).delta(e)[0] == pytest.approx(
        excess(stair(LINE), stair(LINE - shift), epsilon), abs=1e-3
    )
    assert truncated_pair([(s, 1)], mpf("1.5")).delta(e)[0] == pytest.approx(
        excess(cut(LINE), cut(LINE - shift), epsilon), abs=1e-3
    )
    for x, y in ((0.4, 0.4 + shift), (0.4 + shift, 0.4)):
        assert bounded_pair(mpf(x), mpf(y), mpf("3.5"))[1](e) == pytest.approx(
            excess(between(x), between(y), epsilon), abs=1e-3
        )


def test_several_coordinates_are_products() -> None:
    """Cells of two coordinates with truncated noise, merged: what they show is reached."""
    t = np.linspace(-2, 4, 1201)
    p, q = (np.exp(-np.abs(t - c)) * (np.abs(t - c) <= 1.5) for c in (0.0, 0.8))
    p, q = p / p.sum(), q / q.sum()
    found = np.maximum(0.0, np.multiply.outer(p, p) - np.exp(0.5) * np.multiply.outer(q, q)).sum()
    low, high = truncated_pair([(mpf("0.8"), 2)], mpf("1.5")).delta(HALF)
    assert low - mpf("2e-3") <= found <= high + mpf("2e-3")
    assert high - low < 2e-3


@pytest.mark.parametrize("sigma", ["0.4", "2"])
def test_discrete_gaussian_by_plain_sums(sigma: str) -> None:
    with mp.workdps(40):
        s, whole = mpf(sigma), range(-60, 61)
        p, q = ([mp.exp(-((t - c) ** 2) / (2 * s**2)) for t in whole] for c in (0, 3))
        p, q = ([x / mp.fsum(side) for x in side] for side in (p, q))
        known = discrete_gaussian_pair([(mpf(3), 1)], s)
        for e in (mpf(0), mpf("0.5"), mpf(4)):
            found = mp.fsum(max(mpf(0), a - mp.exp(e) * b) for a, b in zip(p, q, strict=True))
            assert abs(known.delta(e)[0] - found) < mpf(10) ** -25
        order = mpf("2.5")
        moment = mp.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
        assert abs(known.renyi(order)[0] - mp.log(moment) / (order - 1)) < mpf(10) ** -20
        assert abs(rho(known)[0] - 9 / (2 * s**2)) < mpf(10) ** -15  # at whole orders


@pytest.mark.parametrize("name", ["vmf", "purkayastha"])
def test_no_pair_of_directions_beats_opposite_ones(name: str) -> None:
    angles = np.linspace(0, 2 * np.pi, 100_001)[:-1]

    def law(centre: float) -> np.ndarray:
        gap = np.abs((angles - centre + np.pi) % (2 * np.pi) - np.pi)
        return np.exp(1.3 * np.cos(gap)) if name == "vmf" else np.exp(-1.3 * gap)

    circle = Values("sphere", 2, size=mpf(1))
    known = direction_truth(circle, Stage(name, {"kappa": mpf("1.3")}))
    for e in (0.0, 0.5, 2.0):
        most = [excess(law(0.0), law(centre), e) for centre in (0.5, 1.5, 2.5, np.pi)]
        assert max(most) == most[-1] == pytest.approx(float(known.delta(mpf(e))[1]), abs=1e-6)


def test_noisy_max_and_top_k_against_random_scores() -> None:
    assert wins("exponential", ((mpf(1), 1), (mpf(0), 1)))[0] == pytest.approx(1 - np.exp(-1) / 2, rel=1e-14)
    assert wins("laplace", ((mpf(1), 1), (mpf(0), 1)))[0] == pytest.approx(1 - 0.75 * np.exp(-1), rel=1e-14)
    scores = np.array([0.7, 0.0, 0.0, 0.0, 1.1])
    gaps = LINE[:, None] - scores
    tails = np.exp(-np.abs(gaps)) / 2
    below = np.where(gaps < 0, tails, 1 - tails)
    step = LINE[1] - LINE[0]
    shares = [float((tails[:, j] * np.delete(below, j, axis=1).prod(axis=1)).sum() * step) for j in (0, 1, 4)]
    chances = wins("laplace", ((mpf("0.7"), 1), (mpf(0), 3), (mpf("1.1"), 1)))
    assert [float(c) for c in chances] == pytest.approx(shares, abs=1e-6)
    rng = np.random.default_rng(1)
    known = truth_of("clamp(0, 1) | topk(3) | exponential(2)", {}, 4, "any")
    scores = rng.beta(0.2, 0.2, size=(2, 40_000, 4))
    kept = np.argsort(np.argsort(-scores, axis=2, kind="stable"), axis=2) < 3
    weights = np.where(kept, np.exp(2 * scores), 0.0)
    p, q = weights / weights.sum(axis=2, keepdims=True)
    for e in (0.0, 0.5, 2.0):
        most = np.maximum(0, p - np.exp(e) * q).sum(axis=1).max()
        assert 0.9 * float(known.delta(mpf(e))[0]) < most <= known.delta(mpf(e))[1]


def test_whole_numbers_behind_stages() -> None:
    def set_of(text: str, dim: int) -> Values:
        return walk(stages(text, {}), dim)

    far = shapes(set_of("counts(l2, 2.5)", 3))
    assert far is not None
    assert {mp.fsum(k * n for k, n in shape) for shape in far} >= {mpf(4)}  # (2, 1, 1)
    assert max(mp.fsum(k * k * n for k, n in shape) for shape in far) <= 6.25
    assert set_of("query(linf, 1) | round", 2).gap() == 2  # 1/2 and 3/2
    assert set_of("query(linf, 2) | round", 2).gap() == 2
    assert set_of("clamp(0.5, 2.5) | round", 2).gap() == 2
    assert set_of("encode | round | clamp(0, 3)", 2).whole
    assert not set_of("encode | round | clamp(0, 2.5)", 2).whole
    assert set_of("rows | round | clamp(0, 3)", 2).whole


def test_rates_of_the_newer_noises() -> None:
    def rate(text: str, dim: int, metric: str) -> tuple[mpf, mpf]:
        return loss_per_unit(stages(text, {}), dim, metric, "any")

    assert rate("mahalanobis(2, 0.25, 4)", 3, "mahalanobis") == (HALF, HALF)
    assert rate("mahalanobis(2, 0.25, 4)", 3, "l2") == (1, 1)
    assert rate("vmf(3)", 4, "linf") == (6, 6)
    assert rate("normalise(l2) | vmf(3)", 4, "l2") == (mp.inf, mp.inf)
    assert rate("purkayastha(2)", 4, "angle") == (2, 2)
    assert rate("purkayastha(2)", 4, "l2")[0] == pytest.approx(float(mp.pi))


@pytest.mark.parametrize(
    ("text", "dim", "guarantee", "stated"),
    [
        ("counts(l1, 1) | discrete_laplace(1)", 1, RenyiDP(2, "0.74"), ("renyi", "2", "")),
        ("counts(l1, 3) | discrete_laplace(2)", 4, ZCDP("0.8"), ("zcdp", "2", "")),
        ("counts(l1, 1) | discrete_laplace(1)", 1, GDP("1.2"), ("gdp", "2", "")),
        ("counts(l1, 1) | discrete_gaussian(2)", 1, RenyiDP("2.5", "0.3"), ("renyi", "2.5", "")),
        ("counts(l2, 2.5) | discrete_gaussian(2)", 4, ZCDP("0.75"), ("zcdp", "2", "")),
        ("query(l1, 1) | staircase(1, 1, 0.38)", 1, RenyiDP(2, "0.7"), ("renyi", "2", "")),
        ("purkayastha(1)", 3, MetricDP("2.72", "linf"), ("metric", "2", "linf")),
        ("mahalanobis(2, 0.25, 4)", 3, MetricDP("0.49", "mahalanobis"), ("metric", "2", "mahalanobis")),
        ("mahalanobis(2, 0.25, 4)", 3, MetricDP("1.1", "linf"), ("metric", "2", "linf")),
        ("noisymax(laplace, 1)", 4, MetricDP("1.41", "l2"), ("metric", "2", "l2")),
    ],
)
def test_other_guarantees_agree(text: str, dim: int, guarantee: object, stated: tuple[str, str, str]) -> None:
    neighbours = "any" if stated[0] == "metric" else "query"
    found = check(text, dim=dim, neighbours=neighbours, guarantee=guarantee).value
    kind, order, metric = stated
    with mp.workdps(50):
        truth = truth_of(text, {}, dim, neighbours)
        for what, end in (("at least", found.lower), ("at most", found.upper)):
            said = Stated(what, kind, mpf(end), mpf(order), metric)
            assert judged_other(truth, said, stages(text, {}), dim, neighbours)[0] == "true", said
