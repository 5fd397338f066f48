"""Random directions: opposite vectors are the worst; expected values by closed forms and by quadrature in mpmath."""

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
from dpassay.exact.mechanisms.sphere import OppositeBound
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.noises.directions import Purkayastha, VonMisesFisher

LAWS = {"vmf": VonMisesFisher, "purkayastha": Purkayastha}


def bounds(text: str, dim: int) -> tuple[float, float]:
    pipeline = parse(text, dim)
    pure = analyse(pipeline, pipeline.neighbours).pure
    return down(pure), up(pure)


def quadrature(name: str, kappa: float, n: int, epsilon: float) -> mpf:
    """δ(ε) of opposite vectors: docs/proofs/sphere.md, point 3."""
    k, e = mpf(kappa), mpf(epsilon)
    density, loss, last = {
        "vmf": (lambda a: mp.exp(k * mp.cos(a)), lambda a: 2 * k * mp.cos(a), lambda: mp.acos(e / (2 * k))),
        "purkayastha": (lambda a: mp.exp(-k * a), lambda a: k * (mp.pi - 2 * a), lambda: (mp.pi - e / k) / 2),
    }[name]

    def weight(a: mpf) -> mpf:
        return density(a) * mp.sin(a) ** (n - 2)

    cuts = [mp.pi * i / 64 for i in range(65)]
    inside = [*(cut for cut in cuts if cut < last()), last()]
    return mp.quad(lambda a: weight(a) * (1 - mp.exp(e - loss(a))), inside) / mp.quad(weight, cuts)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("name", "kappa", "n", "epsilon"),
    [
        (name, *point)
        for name in LAWS
        for point in (
            (1, 2, 0.5),
            (5, 2, 3),
            (1, 3, 0.5),
            (5, 4, 9.99),
            (5, 10, 3),
            (2, 50, 0.1),
            (30, 100, 10),
            (0.01, 5, 0),
        )
    ],
)
def test_delta_against_quadrature(name: str, kappa: float, n: int, epsilon: float) -> None:
    truth = quadrature(name, kappa, n, epsilon)
    found = OppositeBound(LAWS[name](kappa), n).delta(number(epsilon))
    assert found.a <= truth <= found.b
    assert (found.b - found.a) / truth < 2e-4


def test_closed_forms() -> None:
    kappa, e = mpf("1.7"), mpf("0.9")
    three = (mp.exp(kappa) - 2 * mp.exp(e / 2) + mp.exp(e - kappa)) / (mp.exp(kappa) - mp.exp(-kappa))
    found = OppositeBound(VonMisesFisher("1.7"), 3).delta(number("0.9"))
    assert found.a <= three <= found.b
    assert (found.b - found.a) < 1e-5 * three
    circle = (1 - mp.exp((e - mp.pi * kappa) / 2)) ** 2 / (1 - mp.exp(-mp.pi * kappa))
    found = OppositeBound(Purkayastha("1.7"), 2).delta(number("0.9"))
    assert found.a <= circle <= found.b
    assert (found.b - found.a) < 1e-5 * circle
    back = OppositeBound(Purkayastha("1.7"), 2).epsilon(number(float(circle)))
    assert back.a <= e <= back.b
    assert (back.b - back.a) < 1e-4


@pytest.mark.parametrize(("kappa", "n"), [(1e5, 300), (3, 100_000), (1e-6, 10), (1e12, 4), (2, 10_000_000)])
def test_bounds_stay_bounds_at_extreme_numbers(kappa: float, n: int) -> None:
    found = OppositeBound(VonMisesFisher(kappa), n).delta(number(kappa))
    assert 0 <= found.a <= found.b <= (math.e ** min(kappa, 700.0) - 1 if kappa < 1 else 1)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("n", [2, 3, 6])
def test_no_other_pair_is_worse(name: str, n: int) -> None:
    # Monte Carlo over uniform outputs: δ of a pair at any angle is a mean of (p − e^ε q)⁺, on the same outputs for all.
    rng = np.random.default_rng(5)
    z = rng.normal(size=(50_000, n))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    noise = LAWS[name](2)

    def density(x: np.ndarray) -> np.ndarray:
        p = np.exp(noise.log_density(z @ x, np.linalg.norm(z - x, axis=1)))
        return p / p.mean()

    first = np.eye(n)[0]
    for epsilon in (0.0, 1.0, 2.5):
        most = up(OppositeBound(noise, n).delta(number(epsilon)))
        for angle in (0.5, 1.5, 2.5, 3.0):
            second = math.cos(angle) * first + math.sin(angle) * np.eye(n)[1]
            excess = np.maximum(0, density(first) - math.exp(epsilon) * density(second))
            # Five standard errors: one false alarm in a million and a half, and the seed is fixed.
            assert excess.mean() <= most + 5 * excess.std() / math.sqrt(len(z))


@pytest.mark.parametrize(
    ("text", "dim", "epsilon"),
    [
        ("vmf(3)", 8, 6),
        ("normalise | vmf(3)", 300, 6),
        ("encode | normalise | vmf(3) | decode", 2, 6),
        ("clip(l2, 1) | normalise | vmf(3)", 5, 6),
        ("purkayastha(3)", 8, 3 * math.pi),
        ("normalise | purkayastha(3)", 2, 3 * math.pi),
        ("vmf(3) | times(4)", 8, 24),
        ("dropout(0.5) | encode | normalise | vmf(1)", 8, math.log(0.5 * math.exp(2) + 0.5)),
    ],
)
def test_pure_epsilon(text: str, dim: int, epsilon: float) -> None:
    assert bounds(text, dim) == pytest.approx((epsilon, epsilon), rel=1e-12)


@pytest.mark.parametrize(
    "text", ["vmf(3) | round", "clamp(0, 1) | normalise | vmf(3)", "vmf(3) | vmf(3)", "vmf(3) | clip(l1, 1)"]
)
def test_where_nothing_is_known_from_below(text: str) -> None:
    low, high = bounds(text, 4)
    assert low == 0
    assert high == pytest.approx(6, rel=1e-12)


METRICS = [
    ("vmf(3)", "l2", 5, 3),
    ("vmf(3)", "angle", 5, 3),
    ("vmf(3)", "l1", 5, 3),
    ("vmf(3)", "linf", 9, 9),
    ("normalise(l2) | vmf(3)", "angle", 5, 3),
    ("encode | normalise(l2) | vmf(3) | decode", "angle", 5, 3),
    ("vmf(3) | times(4)", "l2", 5, 12),
    ("purkayastha(3)", "angle", 5, 3),
    ("purkayastha(3)", "l2", 5, 1.5 * math.pi),
    ("purkayastha(3)", "l1", 5, 1.5 * math.pi),
    ("purkayastha(3)", "linf", 4, 3 * math.pi),
    ("normalise(l2) | vmf(3)", "l2", 5, math.inf),
]


@pytest.mark.parametrize(("text", "metric", "dim", "truth"), METRICS)
def test_loss_per_unit_of_distance(text: str, metric: str, dim: int, truth: float) -> None:
    found = loss_per_unit(parse(text, dim), Neighbours(), MetricDP(1, metric))
    assert down(found.value) == pytest.approx(truth, rel=1e-12)
    assert up(found.value) == pytest.approx(truth, rel=1e-12)
    more = truth * 1.001 if truth < math.inf else 1e6
    assert check(text, guarantee=MetricDP(more, metric), dim=dim).proven == (truth < math.inf)
    assert check(text, guarantee=MetricDP(min(truth, 1e6) * 0.999, metric), dim=dim).refuted


@pytest.mark.parametrize(("text", "metric", "dim", "truth"), [case for case in METRICS if "|" not in case[0]])
def test_the_witness_of_a_metric_claim_loses_more(text: str, metric: str, dim: int, truth: float) -> None:
    claimed = 0.99 * truth
    pair = check(text, guarantee=MetricDP(claimed, metric), dim=dim).witness.pair
    x, y = pair.first, pair.second
    assert np.linalg.norm(x) == pytest.approx(1) == np.linalg.norm(y)
    angle = math.acos(np.clip(x @ y, -1, 1))
    distance = angle if metric == "angle" else np.linalg.norm(x - y, ord={"l1": 1, "l2": 2, "linf": np.inf}[metric])
    loss = 3 * (np.linalg.norm(x - y) if text.startswith("vmf") else angle)
    assert loss > claimed * distance


@pytest.mark.parametrize(
    ("text", "dim", "message"),
    [
        ("vmf(0)", 4, "positive"),
        ("purkayastha(-1)", 4, "positive"),
        ("vmf(1)", 1, "two dimensions"),
        ("clip(l2, 1) | vmf(1)", 4, "normalise"),
        ("encode | purkayastha(1)", 4, "normalise"),
        ("normalise | repeat(2) | vmf(1)", 4, "normalise"),
        ("category(4) | vmf(1)", 1, "normalise"),
    ],
)
def test_what_it_cannot_work_on(text: str, dim: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text, dim)


def test_records_have_no_sum_behind_it() -> None:
    with pytest.raises(InputError, match="local DP"):
        analyse(parse("normalise | vmf(1)", 4), Neighbours("replace-record"))


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("text", "dim", "epsilon", "delta", "word"),
    [
        ("vmf(10)", 50, "20", 0, "proven"),
        ("normalise | vmf(10) | decode", 50, "19.99", 0, "refuted"),
        ("vmf(10)", 50, "13.016", "1e-5", "proven"),
        ("vmf(10)", 50, "13.015", "1e-5", "refuted"),
        ("purkayastha(2)", 2, "6.28", 0, "refuted"),
        ("normalise | purkayastha(2)", 7, "4", "1e-3", "refuted"),
        ("vmf(3)", 2, "5.9", "0.2", "proven"),
        ("vmf(1) | times(20)", 100, "17", "1e-5", "proven"),
        ("vmf(1) | round", 3, "1", 0, "open"),
    ],
)
def test_certificates(text: str, dim: int, epsilon: str, delta: str, word: str) -> None:
    verdict = check(text, epsilon=epsilon, delta=delta, dim=dim)
    assert verdict.word == word
    found = verify(certify(verdict))
    assert found.verdict == word
    assert found.ok


def test_a_repair_has_the_largest_kappa() -> None:
    repair, *_ = check("vmf(10)", epsilon=3, dim=20).repairs
    assert str(repair.mechanism) == "vmf(1.5)"
    repair, *_ = check("normalise | vmf(10)", epsilon=3, delta="1e-5", dim=20).repairs
    kappa = repair.mechanism.stages[1].kappa
    less, more = (quadrature("vmf", float(kappa.mid) * factor, 20, 3) for factor in (1, 1.001))
    assert less <= 1e-5 < more
