"""Rényi DP, zCDP, GDP and metric DP against closed forms, numeric integration and enumeration."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import norm

from dpassay import GDP, ZCDP, MetricDP, PureDP, RenyiDP, Verdict, check
from dpassay.core.guarantee import Guarantee, stated_guarantee
from dpassay.core.numbers import number, real
from dpassay.errors import InputError
from dpassay.exact.guarantees.gdp import cell_below, points_below


def holds(verdict: Verdict, truth: float, width: float = 1e-6) -> None:
    """The interval contains the truth and is narrow."""
    assert verdict.value.lower <= truth * (1 + 1e-12)
    assert verdict.value.upper >= truth * (1 - 1e-12)
    assert verdict.value.width <= width * truth


def laplace_divergence(shift: float, order: float) -> float:
    """By numeric integration of p^α q^(1−α)."""

    def ratio(t: mpf) -> mpf:
        return mp.exp(-order * abs(t) - (1 - order) * abs(t - shift)) / 2

    return float(mp.log(mp.quad(ratio, [-80, 0, shift, shift + 80])) / (order - 1))


@pytest.mark.long(every=3)
@pytest.mark.parametrize("order", [1.01, 1.5, 2, 10, 64])
@pytest.mark.parametrize("scale", [0.5, 2])
def test_the_renyi_divergence_of_laplace_noise(scale: float, order: float) -> None:
    verdict = check("query(l1, 1) | laplace(b)", guarantee=RenyiDP(order, 1), b=scale)
    holds(verdict, laplace_divergence(1 / scale, order), 1e-9)
    # On an l2 ball the even spread is the worst, and divergences of coordinates add up.
    ball = check("clip(l2, 1) | laplace(b)", guarantee=RenyiDP(order, 1), b=scale, dim=16)
    holds(ball, 16 * laplace_divergence(0.5 / scale, order), 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_rho_of_laplace_noise_is_its_mean_loss(epsilon: float) -> None:
    # Every D_α/α on a fine grid of orders is below the mean, ε − 1 + e^−ε, which is the limit at order 1.
    mean = epsilon - 1 + math.exp(-epsilon)
    rates = [laplace_divergence(epsilon, order) / order for order in (1.0001, 1.01, 1.1, 2, 5, 20)]
    assert max(rates) <= mean
    holds(check("query(l1, 1) | laplace(1/e)", guarantee=ZCDP(mean), parameters={"e": epsilon}), mean)


def flip_pair(k: int, keep: float) -> tuple[np.ndarray, np.ndarray]:
    """Randomized response on k categories: the output for the first and for the second."""
    p = np.full(k, (1 - keep) / (k - 1))
    q = p.copy()
    p[0], q[1] = keep, keep
    return p, q


@pytest.mark.parametrize(("k", "keep"), [(2, 0.75), (4, 0.9), (10, 0.3)])
def test_rho_and_mu_of_randomized_response(k: int, keep: float) -> None:
    p, q = flip_pair(k, keep)
    text = "category(k) | flip(keep)"

    def rate(log_less: float) -> float:
        order = 1 + math.exp(log_less)
        return -math.log(np.sum(p**order * q ** (1 - order))) / (order - 1) / order

    grid = min((rate(x), x) for x in np.linspace(-12, 5, 400))
    best = minimize_scalar(rate, bounds=(grid[1] - 0.1, grid[1] + 0.1), method="bounded").fun
    kl = float(np.sum(p * np.log(p / q)))
    holds(check(text, guarantee=ZCDP(1), parameters={"k": k, "keep": keep}), max(-best, -grid[0], kl))
    # The trade-off function is linear between its vertices, and the Gaussian one is convex: only vertices matter.
    vertices = [(q[0], 1 - p[0]), (1 - q[1], p[1])]  # errors of the likelihood-ratio tests
    mu = max(norm.isf(first) - norm.ppf(second) for first, second in vertices)
    holds(check(text, guarantee=GDP(1), parameters={"k": k, "keep": keep}), mu, 1e-4)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("scale", [0.2, 1, 3])
def test_mu_of_laplace_noise(scale: float) -> None:
    shift = 1 / scale

    def mu(epsilon: float) -> float:
        delta = max(0.0, 1 - math.exp((epsilon - shift) / 2))
        found = [0.0, 60.0]
        for _ in range(80):
            middle = sum(found) / 2
            gauss = ndtr(middle / 2 - epsilon / middle) - math.exp(epsilon) * ndtr(-middle / 2 - epsilon / middle)
            found = [found[0], middle] if gauss > delta else [middle, found[1]]
        return found[0]

    truth = max(mu(epsilon) for epsilon in np.linspace(0, shift, 200, endpoint=False))
    verdict = check("query(l1, 1) | laplace(b)", guarantee=GDP(1), b=scale)
    assert verdict.mu.lower >= truth * (1 - 1e-6)
    holds(verdict, max(truth, verdict.mu.lower), 1e-4)


@pytest.mark.parametrize(("distance", "sigma"), [(1, 2), (3, 0.5)])
def test_gaussian_noise_has_closed_forms(distance: float, sigma: float) -> None:
    text, values = "query(l2, D) | gaussian(s)", {"D": distance, "s": sigma}
    mu = distance / sigma
    holds(check(text, guarantee=GDP(mu), parameters=values), mu, 1e-12)
    holds(check(text, guarantee=ZCDP(1), parameters=values), mu**2 / 2, 1e-12)
    holds(check(text, guarantee=RenyiDP(7, 1), parameters=values), 3.5 * mu**2, 1e-12)
    assert check(text, guarantee=GDP(mu), parameters=values).proven
    assert check(text, guarantee=ZCDP(mu**2 / 2 * 0.999), parameters=values).refuted


def test_a_conversion_is_said_besides() -> None:
    # FACTS: Gaussian noise, sigma 2, distance 1, is (1.9931, 1e-5)-DP.
    verdict = check("query(l2, 1) | gaussian(2)", guarantee=GDP("0.5"))
    held = {delta: interval.upper for delta, interval in verdict.holds}
    assert verdict.proven
    assert held[1e-5] == pytest.approx(1.9931, abs=5e-5)


@pytest.mark.parametrize(
    ("pipeline", "guarantee"),
    [
        ("onesided(1)", RenyiDP(2, 5)),
        ("clip(l2, 1) | onesided(1)", ZCDP(5)),
        ("encode | laplace(1)", GDP(5)),
        ("decode", ZCDP(5)),
    ],
)
def test_what_has_no_finite_loss_has_no_finite_divergence(pipeline: str, guarantee: Guarantee) -> None:
    verdict = check(pipeline, guarantee=guarantee, dim=3)
    assert verdict.refuted
    assert math.isinf(verdict.value.lower)


def test_a_curve_that_crosses_is_not_below() -> None:
    mu = number(1)
    # δ of Gaussian noise with μ = 1 at ε = 0 and 1; a chord a little above it at one end is not below.
    ends = [(real(e), norm.cdf(0.5 - e) - math.exp(e) * norm.cdf(-0.5 - e)) for e in (0, 1)]
    low, high = ((e, number(d * 0.6)) for e, d in ends)
    assert cell_below(low, high, mu)
    assert not cell_below((low[0], number(ends[0][1] * 1.001)), high, mu)
    # The chord itself, whose ends are on the curve, lies above the curve between them.
    assert not cell_below((low[0], number(ends[0][1])), (high[0], number(ends[1][1])), mu)
    assert not points_below(lambda epsilon: number("0.4"), 3.0, mu)


@pytest.mark.parametrize(
    ("text", "metric", "dim", "truth"),
    [
        ("laplace(2)", "l1", 9, 0.5),
        ("laplace(2)", "l2", 9, 1.5),
        ("laplace(2)", "linf", 9, 4.5),
        ("radial(l2, 0.1)", "l2", 300, 10),
        ("radial(l2, 1)", "l1", 5, 1),
        ("radial(l2, 1)", "linf", 4, 2),
        ("radial(linf, 0.5)", "linf", 7, 2),
        ("clip(l2, 3) | radial(l2, 1)", "l2", 5, 1),
        ("clamp(2, 5) | laplace(1)", "l2", 4, 2),
        ("squash(sigmoid) | laplace(1)", "l1", 4, 0.25),
        ("encode | clip(l2, 1) | laplace(1) | decode", "l2", 4, 2),
        ("normalise(l2) | laplace(1)", "angle", 4, 2),
        ("exponential(3)", "linf", 4, 6),
        ("exponential(3)", "l1", 4, 3),
        ("clamp(0, 1) | exponential(1)", "linf", 2, 2 * math.e / (1 + math.e)),
        ("gaussian(1)", "l2", 3, math.inf),
        ("onesided(1)", "l1", 3, math.inf),
    ],
)
def test_the_loss_per_unit_of_distance(text: str, metric: str, dim: int, truth: float) -> None:
    claimed = 1 if math.isinf(truth) else truth
    verdict = check(text, guarantee=MetricDP(claimed * (1 + 1e-12), metric), dim=dim)
    if math.isinf(truth):
        assert verdict.refuted
        assert verdict.epsilon.lower == math.inf
        return
    assert verdict.proven
    assert check(text, guarantee=MetricDP(truth * 0.999, metric), dim=dim).refuted
    assert verdict.epsilon.lower == pytest.approx(truth)


@pytest.mark.parametrize("q", [1, 2, math.inf])
def test_no_two_score_vectors_lose_more(q: float) -> None:
    # Random pairs of scores in [0, 1] against the upper end.
    rng, name = np.random.default_rng(0), {1: "l1", 2: "l2", math.inf: "linf"}[q]
    upper = check("clamp(0, 1) | exponential(4)", guarantee=MetricDP(1, name), dim=3).epsilon.upper
    scores = rng.uniform(size=(20_000, 2, 3))
    logs = 4 * scores - np.log(np.exp(4 * scores).sum(axis=-1, keepdims=True))
    losses = np.abs(logs[:, 0] - logs[:, 1]).max(axis=-1)
    assert np.max(losses / np.linalg.norm(scores[:, 0] - scores[:, 1], ord=q, axis=-1)) <= upper


@pytest.mark.parametrize("orders", [(1,), (math.inf,), (2, 1)])
def test_clipping_stretches_no_more_than_is_said(orders: tuple[float, ...]) -> None:
    rng, names = np.random.default_rng(1), {1: "l1", 2: "l2", math.inf: "linf"}
    text = " | ".join([*(f"clip({names[order]}, 1)" for order in orders), "laplace(1)"])
    interval = check(text, guarantee=MetricDP(1, "l1"), dim=3).epsilon
    x = rng.normal(size=(20_000, 3)) * 2
    y = x + rng.normal(size=x.shape) * rng.choice([0.01, 0.3, 2], size=(len(x), 1))
    u, v = x, y
    for order in orders:
        u, v = (w / np.maximum(1, np.linalg.norm(w, ord=order, axis=1, keepdims=True)) for w in (u, v))
    ratios = np.abs(u - v).sum(axis=1) / np.abs(x - y).sum(axis=1)
    assert interval.lower == pytest.approx(1)
    assert ratios.max() <= interval.upper


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guarantee": MetricDP(1, "angle"), "dim": 3}, "begin with normalise"),
        ({"guarantee": MetricDP(1, "l2"), "dim": 3, "neighbours": "word"}, "any two inputs"),
        ({"guarantee": ZCDP(1), "epsilon": 1, "dim": 3}, "leave them out"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        check("clip(l2, 1) | laplace(1)", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("first", ["query(l1, 1)", "onehot(3)", "dropout(0.5)"])
def test_a_metric_needs_vectors(first: str) -> None:
    with pytest.raises(InputError, match=r"any two inputs|distance between vectors"):
        check(f"{first} | laplace(1)", guarantee=MetricDP(1, "l2"), dim=3)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"epsilon": 1, "order": 1}, "above 1"),
        ({"epsilon": 1, "order": "x"}, "above 1"),
        ({"epsilon": 1, "metric": "l3"}, "one of l1, l2, linf, angle"),
        ({"epsilon": 1, "rho": 1}, "one of epsilon"),
        ({}, "none of them"),
        ({"rho": 1, "delta": 1e-5}, "delta belongs to epsilon"),
        ({"epsilon": 1, "delta": 1e-5, "order": 2}, "different guarantees"),
        ({"mu": -1}, "from 0"),
        ({"mu": "1e200"}, "from 0 to 1e[+]100"),
    ],
)
def test_a_statement_that_makes_no_sense(stated: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        stated_guarantee(**stated)


def test_a_parameter_of_another_name_is_refused() -> None:
    verdict = check("query(l2, 1) | gaussian(2)", guarantee=ZCDP(1))
    with pytest.raises(InputError, match=r"ask for \.rho"):
        _ = verdict.epsilon
    assert verdict.rho == verdict.value
    data = verdict.to_dict()
    assert data["epsilon"] is None
    assert data["rho"] == {"claimed": 1.0, "lower": 0.125, "upper": 0.125}
    assert data["guarantee"] == {"text": "1-zCDP", "kind": "zcdp", "metric": None, "order": None}


def test_repairs_keep_the_guarantee() -> None:
    for guarantee in (ZCDP("0.01"), GDP("0.1"), RenyiDP(3, "0.01"), MetricDP("0.1", "l2")):
        verdict = check("clip(l2, 1) | laplace(1)", guarantee=guarantee, dim=2)
        assert verdict.refuted
        assert verdict.repairs
        for repair in verdict.repairs:
            assert check(repair.mechanism, guarantee=guarantee).proven
    assert check("clip(l2, 1) | laplace(1)", guarantee=PureDP(4), dim=4).proven


def test_what_rounding_hides_is_no_evidence() -> None:
    # All inputs can give every output: the supremum is e^-0.2/(1 - e^-0.2) = 4.52 per unit.
    verdict = check("clamp(0, 0.3) | onesided(1) | round", guarantee=MetricDP(100, "l1"), dim=1)
    assert not verdict.refuted
    assert verdict.epsilon.lower <= 4.52


@pytest.mark.parametrize(
    ("text", "dim", "metric", "claimed"),
    [
        ("exponential(1)", 10, "l1", 0.9),
        ("exponential(1)", 10, "linf", 1.9),
        ("clamp(0, 1) | exponential(2)", 3, "linf", 2),
        ("normalise(l2) | radial(linf, 1)", 10, "angle", 0.9),
        ("normalise(l2) | radial(l2, 1)", 3, "angle", 0.9),
        ("normalise(l2) | laplace(1)", 10, "angle", 3),
        ("squash(tanh) | laplace(1)", 1, "l1", 0.99),
        ("clip(l2, 1) | laplace(1)", 4, "l2", 1.9),
        ("radial(linf, 1)", 4, "l1", 0.9),
    ],
)
def test_a_witness_loses_more_than_the_claim_allows(text: str, dim: int, metric: str, claimed: float) -> None:
    verdict = check(text, guarantee=MetricDP(claimed, metric), dim=dim)
    assert verdict.refuted
    if verdict.witness is None:
        assert "squash" in text
        return
    x, y = verdict.witness.pair.first, verdict.witness.pair.second
    noise = text.rsplit(" | ", 1)[-1]
    rate = float(noise[:-1].replace("(", ",").split(",")[-1])
    if noise.startswith("exponential"):
        logs = [rate * v - np.logaddexp.reduce(rate * v) for v in (x, y)]
        loss = np.abs(logs[0] - logs[1]).max()
    else:
        order = {"laplace": 1, "radial(l2": 2, "radial(linf": math.inf}[noise.split("," if "," in noise else "(")[0]]
        loss = np.linalg.norm(x - y, ord=order) / rate
    if metric == "angle":
        distance = math.acos(min(1.0, float(x @ y)))
        assert [np.linalg.norm(v) for v in (x, y)] == pytest.approx([1, 1])
    else:
        distance = np.linalg.norm(x - y, ord={"l1": 1, "l2": 2, "linf": math.inf}[metric])
    assert loss > claimed * distance
