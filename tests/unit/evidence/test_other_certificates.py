"""Certificates of metric DP, Rényi DP, zCDP and Gaussian DP, and of users, groups and words: what holds, and what not.

Numbers are those of docs/proofs/guarantees.md, metric.md and group.md, or of the closed forms beside them.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpassay import GDP, ZCDP, MetricDP, RenyiDP, certify, check, verify
from dpassay.core.guarantee import Guarantee
from dpassay.errors import CertificateError
from dpassay.evidence.verifier import examine
from forging import Data, block, exactly, rechained, sealed

INF = ["inf", "inf"]
LAPLACE_D2 = math.log(2 / 3 * math.e + math.exp(-2) / 3)  # a shift of one scale
# Three steps of discrete Laplace noise of scale 2, summed over all outputs that matter.
WHOLE_LAPLACE = {t: math.tanh(0.25) * math.exp(-abs(t) / 2) for t in range(-400, 401)}
WHOLE_LAPLACE_D3 = (
    math.log(math.fsum(p**3 / WHOLE_LAPLACE[t - 3] ** 2 for t, p in WHOLE_LAPLACE.items() if t > -398)) / 2
)
TRUE = [
    ("query(l2, 1) | gaussian(2)", 3, ZCDP("0.125"), ZCDP("0.1249999")),
    ("query(l2, 1) | gaussian(2)", 3, GDP("0.5"), GDP("0.4999999")),
    ("query(l2, 1) | gaussian(2)", 3, RenyiDP(8, 1), RenyiDP(8, "0.9999999")),
    ("query(l1, 1) | laplace(1)", 3, RenyiDP(2, LAPLACE_D2 * 1.000001), RenyiDP(2, LAPLACE_D2 * 0.999999)),
    ("query(l1, 1) | laplace(1)", 3, ZCDP(math.exp(-1) * 1.00001), ZCDP(math.exp(-1) * 0.999999)),
    pytest.param("query(l1, 1) | laplace(1)", 3, GDP("1.0301"), GDP("1.0300"), marks=pytest.mark.long),
    ("category(2) | flip(1/(1+exp(-1)))", 1, ZCDP("0.46212"), ZCDP("0.46211")),
    ("category(2) | flip(1/(1+exp(-1)))", 1, GDP("1.23204"), GDP("1.23203")),
    ("laplace(1)", 4, MetricDP(2, "l2"), MetricDP("1.9999999", "l2")),
    ("laplace(1) | round", 4, MetricDP(4, "linf"), MetricDP("3.9999999", "linf")),
    ("radial(l2, 1/eps)", 300, MetricDP(10, "l2"), None),
    ("squash(sigmoid) | laplace(1)", 2, MetricDP("0.25", "l1"), MetricDP("0.2499999", "l1")),
    ("normalise(l2) | laplace(1)", 4, MetricDP(2, "angle"), MetricDP("1.9999", "angle")),
    ("clamp(0, 1) | exponential(1)", 2, MetricDP("1.4621172", "linf"), MetricDP("1.46211", "linf")),
    ("clip(l2, 1) | gaussian(3) | times(4)", 3, GDP("1.3333334"), GDP("1.3333333")),
    # For whole orders discrete Gaussian noise has the divergences of Gaussian noise, for others hardly less.
    ("counts(l2, 2) | discrete_gaussian(3)", 3, RenyiDP(2, 8 / 18 * 1.000001), RenyiDP(2, 8 / 18 * 0.999999)),
    ("counts(l2, 2) | discrete_gaussian(3)", 3, RenyiDP("2.5", 10 / 18 * 1.000001), RenyiDP("2.5", 10 / 18 * 0.999999)),
    ("counts(l2, 2) | discrete_gaussian(3)", 3, ZCDP(4 / 18 * 1.000001), ZCDP(4 / 18 * 0.999999)),
    (
        "counts(l1, 3) | discrete_laplace(2)",
        2,
        RenyiDP(3, WHOLE_LAPLACE_D3 * 1.000001),
        RenyiDP(3, WHOLE_LAPLACE_D3 * 0.999999),
    ),
    ("counts(l1, 1) | discrete_laplace(2)", 2, ZCDP("0.1225"), ZCDP("0.1224")),
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("text", "dim", "holds", "fails"), TRUE)
def test_a_guarantee_and_one_a_little_stronger(text: str, dim: int, holds: Guarantee, fails: Guarantee | None) -> None:
    for guarantee, word in ((holds, "proven"), (fails, "refuted")):
        if guarantee is not None:
            certificate = certify(check(text, dim=dim, guarantee=guarantee))
            assert verify(certificate).verdict == certificate["verdict"] == word
            assert certificate["steps"][0]["guarantee"]["kind"] in ("metric", "renyi", "zcdp", "gdp")


@pytest.mark.parametrize("guarantee", [MetricDP(5, "l2"), MetricDP(5, "l1")])
def test_gaussian_noise_has_no_metric_dp_and_a_pair_shows_it(guarantee: Guarantee) -> None:
    certificate = certify(check("gaussian(1)", dim=3, guarantee=guarantee))
    lower = next(step for step in certificate["steps"] if step["step"] == "lower")
    assert lower["guarantee"]["value"] == INF
    assert lower["pair"]
    assert verify(certificate).verdict == "refuted"


def test_the_event_of_a_metric_refutation_is_replayed() -> None:
    certificate = certify(check("laplace(1)", dim=2, guarantee=MetricDP("0.5", "l1")))
    witness = next(i for i, step in enumerate(certificate["steps"]) if step["step"] == "witness")
    assert any("witness" in said for said in verify(certificate).established)
    certificate["steps"][witness]["log_q"] = exactly(-1)
    assert not examine(rechained(certificate)).ok


NEIGHBOURS = [
    ("clip(l2, 1) | laplace(1)", 4, "user", 2.0),
    ("clip(l2, 1) | laplace(1)", 4, "entity", 2.0),
    ("clip(l2, 1) | laplace(1)", 4, "group(3)", 6.0),
    ("clamp(-1, 3) | laplace(2)", 2, "group(2)", 6.0),
    ("onehot(4) | laplace(1)", 1, "group(3)", 3.0),
    ("query(l1, 1) | laplace(1)", 2, "group(5)", 5.0),
    ("query(linf, 1, monotone) | exponential(1)", 4, "group(2)", 2.0),
    ("dropout(0.5) | encode | clip(l1, 1) | laplace(1)", 4, "words(2)", math.log(0.75 * math.e**2 + 0.25)),
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("text", "dim", "neighbours", "truth"), NEIGHBOURS)
def test_neighbours_that_differ_in_more(text: str, dim: int, neighbours: str, truth: float) -> None:
    for factor, word in ((1 + 1e-9, "proven"), (1 - 1e-9, "refuted")):
        found = certify(check(text, dim=dim, neighbours=neighbours, epsilon=truth * factor))
        assert verify(found).verdict == word, (neighbours, word)


def test_a_threshold_next_to_zero_is_written_as_a_point() -> None:
    """The middle of two opposite values is 0 but for rounding, which no enclosure knows to 40 digits."""
    text = "clip(linf, 1.21) | gaussian(0.197) | clamp(0, 1)"
    verdict = check(text, dim=1, neighbours="add-remove-record", epsilon="2.022", delta="0.8894")
    assert verify(certify(verdict)).verdict == "refuted"


def test_a_group_is_not_one_record() -> None:
    """The same evidence does not prove for three records what it proves for one."""
    certificate = certify(check("clip(l2, 1) | gaussian(1)", dim=3, neighbours="user", guarantee=GDP(1)))
    certificate["steps"][0]["neighbours"] = "group(3)"
    assert not examine(rechained(certificate)).ok


# ── Forgeries ───────────────────────────────────────────────────────────────────────────────────


def stated(kind: str, value: Any, **more: Any) -> Data:
    return {"kind": kind, "value": exactly(value), **more}


def claimed(pipeline: str, guarantee: Data, dim: int = 1, neighbours: str = "any") -> Data:
    step = {"step": "claim", "name": "forged", "source": "", "pipeline": pipeline, "parameters": {}, "dim": dim}
    return {**step, "neighbours": neighbours, "guarantee": guarantee}


def proof(pipeline: str, guarantee: Data, theorem: str, dim: int = 1, noise: int = 1, **more: Any) -> Data:
    upper = {"step": "upper", "guarantee": guarantee, "theorem": theorem, "noise": noise, **more}
    return sealed("proven", claimed(pipeline, guarantee, dim), upper)


FALSE_PROOFS = [
    proof("clip(l2, 1) | gaussian(1)", stated("gdp", "1.999"), "gaussian", 3),
    proof("clip(l2, 1) | gaussian(1)", stated("zcdp", "1.999"), "gaussian", 3),
    proof("clip(l2, 1) | gaussian(1)", stated("renyi", "3.999", order=exactly(2)), "gaussian", 3),
    proof("clip(l1, 1) | laplace(2)", stated("gdp", "1.03"), "worst-shift", 3, points=[exactly(0), exactly(1)]),
    proof("clip(l1, 1) | laplace(2)", stated("zcdp", "0.3678"), "worst-shift", 3, points=[exactly(2), exactly(3)]),
    # Between two orders far apart nothing is known that small.
    proof("clip(l1, 1) | laplace(2)", stated("zcdp", "0.37"), "worst-shift", 3, points=[exactly(2), exactly(1e9)]),
    proof("clip(l1, 1) | laplace(1)", stated("metric", "0.99", metric="l1"), "metric", 3),
    proof("gaussian(1)", stated("metric", "1000", metric="l2"), "metric", 3, 0),
    proof("laplace(1)", stated("metric", "1", metric="l2"), "metric", 3, 0),
    proof("laplace(1)", stated("metric", "1", metric="l1"), "laplace", 3, 0),
    proof("normalise(l2) | laplace(1)", stated("metric", "1.7", metric="angle"), "metric", 3),
    proof("minmax | laplace(1)", stated("metric", "1000", metric="l1"), "metric", 3),
]


@pytest.mark.parametrize("forged", FALSE_PROOFS)
def test_false_proofs_do_not_hold(forged: Data) -> None:
    assert not examine(forged).ok


def refutation(pipeline: str, guarantee: Data, shown: Data, theorem: str, pair: list[Data], **more: Any) -> Data:
    lower = {"step": "lower", "guarantee": shown, "theorem": theorem, "noise": 1, "at": 1, "pair": pair, **more}
    return sealed("refuted", claimed(pipeline, guarantee), lower)


def test_a_bound_of_another_order_decides_nothing() -> None:
    half = stated("renyi", "0.5", order=exactly(2))
    pair, more = [block(0, 1)], stated("renyi", 1, order=exactly(4))
    forged = refutation("query(l2, 1) | gaussian(1)", half | {"value": exactly(1)}, more, "gaussian", pair)
    assert not examine(forged | {"verdict": "refuted"}).ok
    for kind, value, at in (("zcdp", "0.501", {"order": exactly(2)}), ("gdp", "1.001", {}), ("zcdp", "0.4", {})):
        false = refutation(
            "query(l2, 1) | gaussian(1)", stated(kind, "0.1"), stated(kind, value), "gaussian", pair, **at
        )
        assert not examine(false | {"steps": false["steps"]}).ok


@pytest.mark.parametrize(
    "guarantee",
    [
        {"kind": "zcdp"},
        {"kind": "zcdp", "value": exactly(1), "order": exactly(2)},
        {"kind": "renyi", "value": exactly(1)},
        {"kind": "renyi", "value": exactly(1), "order": exactly(1)},
        {"kind": "metric", "value": exactly(1), "metric": "l3"},
        {"kind": "other", "value": exactly(1)},
        {"kind": ["zcdp"], "value": exactly(1)},
        {"kind": "gdp", "value": exactly(-1)},
        {"kind": "gdp", "value": INF},
        {"kind": "gdp", "value": ["nan", "nan"]},
        [],
        None,
    ],
)
def test_a_guarantee_is_read_closely(guarantee: Any) -> None:
    with pytest.raises(CertificateError, match="field steps"):
        examine(sealed("open", claimed("query(l2, 1) | gaussian(1)", guarantee)))


@pytest.mark.parametrize(
    "neighbours", ["group", "group(0)", "group(n)", "group(-1)", "words(1000001)", "users", ["any"]]
)
def test_neighbours_are_read_closely(neighbours: Any) -> None:
    with pytest.raises(CertificateError, match="neighbours must be one of"):
        examine(sealed("open", claimed("clip(l2, 1) | gaussian(1)", stated("gdp", 1), 1, neighbours)))


PER_UNIT = [  # docs/proofs/sphere.md, point 4; radial.md, point 6; noisy-max.md
    ("vmf(10)", "l2", 10.0),
    ("vmf(10)", "l1", 10.0),
    ("vmf(10)", "linf", 10 * math.sqrt(3)),
    ("vmf(10)", "angle", 10.0),
    ("normalise(l2) | vmf(10)", "angle", 10.0),
    ("purkayastha(10)", "l2", 5 * math.pi),
    ("purkayastha(10)", "angle", 10.0),
    ("mahalanobis(1, 0.25, 4)", "l2", 2.0),
    ("mahalanobis(1, 0.25, 4)", "linf", 2 * math.sqrt(3)),
    ("mahalanobis(1, 0.25, 4)", "mahalanobis", 1.0),
    ("noisymax(laplace, 1)", "l1", 1.0),
    ("noisymax(laplace, 1)", "l2", math.sqrt(2)),
    ("noisymax(laplace, 1)", "linf", 2.0),
]


@pytest.mark.parametrize(("text", "metric", "truth"), PER_UNIT)
def test_a_loss_per_unit_of_distance_is_no_smaller_than_it_is(text: str, metric: str, truth: float) -> None:
    certificate = certify(check(text, dim=3, guarantee=MetricDP(truth * 1.000001, metric)))
    assert verify(certificate).verdict == "proven"
    certificate["steps"] = [step for step in certificate["steps"] if step["step"] != "lower"]
    for step in certificate["steps"]:
        if "guarantee" in step:
            step["guarantee"]["value"] = exactly(truth * 0.999999)
    assert not examine(rechained(certificate)).ok


@pytest.mark.parametrize("text", ["laplace(1)", "radial(l2, 1)", "clip(l2, 1) | mahalanobis(1, 0.25, 4)"])
def test_a_mahalanobis_norm_is_that_of_the_noise_on_what_comes_in(text: str) -> None:
    certificate = certify(check(text, dim=3, guarantee=MetricDP(4, "l2")))
    for step in certificate["steps"]:
        if "guarantee" in step:
            step["guarantee"]["metric"] = "mahalanobis"
    assert not examine(rechained(certificate)).ok


def test_the_divergence_of_discrete_laplace_noise_is_no_smaller_than_it_is() -> None:
    a, shift = math.exp(-0.5), 3
    chance = {t: (1 - a) / (1 + a) * a ** abs(t) for t in range(-300, 301)}
    truth = math.log(sum(p**2 / chance[t - shift] for t, p in chance.items() if t - shift in chance))
    certificate = certify(check("counts(l1, 3) | discrete_laplace(2)", dim=1, guarantee=RenyiDP(2, "1.6")))
    assert verify(certificate).verdict == "proven"
    certificate["steps"] = [step for step in certificate["steps"] if step["step"] != "lower"]
    for step in certificate["steps"]:
        if "guarantee" in step:
            step["guarantee"]["value"] = exactly(truth * 0.999)
    assert not examine(rechained(certificate)).ok


@pytest.mark.parametrize(
    ("text", "guarantee", "side"),
    [
        ("counts(l2, 2) | discrete_gaussian(3)", ZCDP(4 / 18 * 1.001), "upper"),
        ("counts(l2, 2) | discrete_gaussian(3)", ZCDP(4 / 18 * 0.999), "lower"),
        ("counts(l1, 3) | discrete_laplace(2)", RenyiDP(3, WHOLE_LAPLACE_D3 * 0.999), "lower"),
    ],
)
def test_the_divergence_of_discrete_noise_cannot_be_moved(text: str, guarantee: Guarantee, side: str) -> None:
    certificate = certify(check(text, dim=2, guarantee=guarantee))
    shown = next(step for step in certificate["steps"] if step["step"] == side and "guarantee" in step)
    shown["guarantee"]["value"] = exactly(0.998 * 4 / 18 if side == "upper" else 1.002 * WHOLE_LAPLACE_D3)
    assert not examine(rechained(certificate)).ok
