"""Noisy max: losses against quadrature in mpmath, sums over all outputs, and the formulas of its page."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay import certify, check, verify
from dpassay.core.guarantee import MetricDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, number, up
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.guarantees.metric import loss_per_unit
from dpassay.exact.mechanisms.noisy_max import first_chance
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.noisy_max import NoisyMax, noisy_max


def chance(noise: str, scores: list[mpf], j: int) -> mpf:
    """P(output j) by its definition: the integral of a density times distribution functions."""

    def cdf(z: mpf) -> mpf:
        if noise == "exponential":
            return 1 - mp.exp(-z) if z > 0 else mpf(0)
        return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2

    def density(z: mpf) -> mpf:
        if noise == "exponential":
            return mp.exp(-z) if z > 0 else mpf(0)
        return mp.exp(-abs(z)) / 2

    others = [u for i, u in enumerate(scores) if i != j]
    low, high = min(scores), max(scores)
    cuts = sorted({low - 60, low - 10, *scores, high + 5, high + 20, high + 80})
    return mp.quad(lambda z: density(z - scores[j]) * mp.fprod(cdf(z - u) for u in others), cuts)


def bounds(text: str, dim: int) -> tuple[float, float]:
    pipeline = parse(text, dim)
    pure = analyse(pipeline, pipeline.neighbours).pure
    return down(pure), up(pure)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
@pytest.mark.parametrize(("gap", "n"), [(1, 2), (-1, 2), (0.3, 3), (-2, 3), (2, 6), (-2, 6), (0, 4), (9, 30), (-9, 30)])
def test_the_chance_of_one_output(noise: str, gap: float, n: int) -> None:
    truth = chance(noise, [mpf(gap)] + [mpf(0)] * (n - 1), 0)
    found = first_chance(noise, number(gap), n)
    assert abs(found.a - truth) < mpf("1e-12") * truth  # the quadrature's own error
    assert (found.b - found.a) < mpf("1e-30")


def test_many_outputs_are_enclosed() -> None:
    # (1/2)∫ over y by trapezoid: P = ∫ f(z) F(z + ω)^(n−1) dz in doubles, off by 1e-9 at most.
    z = np.linspace(-50, 50, 2_000_001)
    cdf = np.where(z + 4 < 0, np.exp(np.minimum(z + 4, 0)) / 2, 1 - np.exp(-np.maximum(z + 4, 0)) / 2)
    truth = np.trapezoid(np.exp(-np.abs(z)) / 2 * cdf**1999, z)
    found = first_chance("laplace", number(4), 2000)
    assert down(found) <= truth <= up(found)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_the_cube_against_all_corners(noise: str) -> None:
    # All pairs of corners of the cube and all outputs, enumerated.
    low, high = bounds(f"clamp(0, 1.5) | noisymax({noise}, 2)", 3)
    corners = [[mpf(1.5) / 2 * (code >> i & 1) for i in range(3)] for code in range(8)]
    laws = [[chance(noise, corner, j) for j in range(3)] for corner in corners]
    largest = max(mp.log(p / q) for u in laws for v in laws for p, q in zip(u, v, strict=True))
    assert low == pytest.approx(float(largest), rel=1e-10)
    assert high == pytest.approx(float(largest), rel=1e-10)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
@pytest.mark.parametrize(
    ("text", "dim", "epsilon"),
    [
        ("query(linf, 1)", 7, 1),
        ("query(linf, 1)", 2, 1),
        ("query(linf, 1, monotone)", 7, 0.5),
        ("query(l1, 1)", 7, 0.5),
        ("query(l2, 1)", 7, math.sqrt(2) / 2),
        ("query(linf, 1)", 1, 0),
        ("encode", 3, math.inf),
    ],
)
def test_pure_epsilon(noise: str, text: str, dim: int, epsilon: float) -> None:
    assert bounds(f"{text} | noisymax({noise}, 2)", dim) == pytest.approx((epsilon, epsilon), rel=1e-12, abs=1e-12)


def test_formulas() -> None:
    cube = bounds("clamp(0, 1) | noisymax(exponential, 1)", 3)
    assert cube == pytest.approx([2 + math.log(1 - (1 - math.exp(-1)) ** 3)] * 2, rel=1e-12)
    assert bounds("rows | clamp(0, 1) | noisymax(exponential, 1)", 4) == pytest.approx((1, 1), rel=1e-12)
    # 300 scales wide: ω + ln n + ln p(ω), where p(ω) is 1 but for e^−300
    assert bounds("clamp(0, 300) | noisymax(exponential, 1)", 4) == pytest.approx([300 + math.log(4)] * 2, rel=1e-14)
    assert bounds("clamp(0, 1) | noisymax(gumbel, 1)", 10) == bounds("clamp(0, 1) | exponential(1)", 10)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_no_pair_of_a_query_loses_more(noise: str) -> None:
    rng, stage = np.random.default_rng(4), NoisyMax(noise, 2)
    for _ in range(60):
        u = rng.normal(size=5) * 3
        v = u + rng.uniform(-1, 1, size=5)
        p, q = (stage.distribution(scores).probabilities for scores in (u, v))
        assert np.log(p / q).max() <= 1 + 1e-9


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_the_distribution_of_any_scores(noise: str) -> None:
    scores = [0.0, 2.0, -1.0, 2.0]
    found = NoisyMax(noise, "0.5").distribution(np.array(scores)).probabilities
    truth = [float(chance(noise, [mpf(2) * u for u in scores], j)) for j in range(4)]
    assert found.tolist() == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_delta_lies_between_a_pair_and_the_theorem(noise: str) -> None:
    profile = analyse(parse(f"clamp(0, 1) | noisymax({noise}, 1)", 3), Neighbours())
    p, q = (chance(noise, [mpf(u) for u in scores], 0) for scores in ([1, 0, 0], [0, 1, 1]))
    for epsilon in (0.0, 0.5, 1.2):
        shown = p - mp.exp(epsilon) * q
        pure = mp.log(p / q)
        found = profile.delta(number(epsilon))
        assert float(found.a) == pytest.approx(float(shown), rel=1e-9)
        assert float(found.b) == pytest.approx(float((mp.exp(pure) - mp.exp(epsilon)) / (mp.exp(pure) + 1)), rel=1e-9)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
@pytest.mark.parametrize(("metric", "factor"), [("l1", 1), ("l2", math.sqrt(2)), ("linf", 2)])
def test_loss_per_unit_of_distance(noise: str, metric: str, factor: float) -> None:
    text = f"noisymax({noise}, 0.5)"
    found = loss_per_unit(parse(text, 4), Neighbours(), MetricDP(1, metric)).value
    assert (down(found), up(found)) == pytest.approx((2 * factor, 2 * factor), rel=1e-12)
    assert check(text, guarantee=MetricDP(2 * factor * 1.001, metric), dim=4).proven
    assert check(text, guarantee=MetricDP(factor, metric), dim=4).refuted


@pytest.mark.parametrize(
    ("text", "dim", "epsilon", "delta", "word"),
    [
        ("clamp(0, 1) | noisymax(exponential, 1)", 3, "1.7089", 0, "proven"),
        ("clamp(0, 1) | noisymax(exponential, 1)", 3, "1.7088", 0, "refuted"),
        ("clamp(0, 1) | noisymax(laplace, 1)", 5, "1.758", 0, "refuted"),
        ("clamp(-5, 5) | noisymax(laplace, 1)", 5000, "19", 0, "proven"),
        ("query(linf, 1) | noisymax(laplace, 2)", 7, "0.999", 0, "refuted"),
        ("query(l2, 1) | noisymax(laplace, 2)", 7, "0.7072", 0, "proven"),
        ("query(linf, 1) | noisymax(exponential, 2)", 7, "0.5", "0.001", "refuted"),
        ("query(linf, 1) | noisymax(gumbel, 2)", 7, "0.5", "0.3", "proven"),
        ("clamp(0, 1) | noisymax(laplace, 1) | times(5)", 4, "9", "1e-3", "proven"),
        ("noisymax(laplace, 1)", 4, "9", 0, "refuted"),
    ],
)
def test_certificates(text: str, dim: int, epsilon: str, delta: str, word: str) -> None:
    verdict = check(text, epsilon=epsilon, delta=delta, dim=dim)
    assert verdict.word == word
    assert verify(certify(verdict)).verdict == word


def test_a_repair_has_the_smallest_scale() -> None:
    repair, *_ = check("query(linf, 1) | noisymax(laplace, 1)", epsilon=1, dim=5).repairs
    assert str(repair.mechanism) == "query(linf, 1) | noisymax(laplace, 2)"
    repair, *_ = check("noisymax(laplace, 1)", epsilon=1, dim=5).repairs
    assert "clamp(-C, C) | noisymax(laplace, 4*C/eps)" in repair.advice


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("noisymax(gauss, 1)", "noise"),
        ("noisymax(laplace, 0)", "noisymax: scale must be positive"),
        ("topk(2) | noisymax(gumbel, 1)", "topk must come right before"),
        ("category(3) | noisymax(laplace, 1)", "needs a vector of scores"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text, 1 if "category" in text else 4)


def test_records_state_how_far_scores_move() -> None:
    with pytest.raises(InputError, match="State how far one record moves a score"):
        analyse(parse("clamp(0, 1) | noisymax(laplace, 1)", 4), Neighbours("replace-record"))


def test_its_text_is_read_back() -> None:
    for kind in ("laplace", "exponential", "gumbel"):
        pipeline = parse(f"query(linf, 1) | noisymax({kind}, 2)", 4)
        assert str(pipeline) == f"query(linf, 1) | noisymax({kind}, 2)"
        assert parse(str(pipeline), 4) == pipeline
        assert pipeline.stages[1] == noisy_max(kind, 2)
