"""Repairs: each is proven, as an object and as the text that is shown, and with 0.1 % less noise it is not."""

import functools
import math
from fractions import Fraction

import pytest

from dpassay.api import check
from dpassay.core.guarantee import PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import iv, number
from dpassay.evidence.verdict import Verdict
from dpassay.exact.repair import Repair, find_repairs
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.additive import Additive
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.exponential import Choose

REFUTED = [
    ("clip(l2, 1) | laplace(2)", 32, {"epsilon": "1"}),
    ("clip(l2, 1) | laplace(2)", 3, {"epsilon": "0.7"}),
    ("clip(l2, 1) | laplace(2)", 32, {"epsilon": "1", "delta": "1e-6"}),
    ("clip(l1, 1) | laplace(1)", 4, {"epsilon": "0.3"}),
    ("clip(l1, 1) | laplace(1)", 4, {"epsilon": "0.3", "delta": "1e-5"}),
    ("clip(linf, 1) | gaussian(1)", 4, {"epsilon": "0.3", "delta": "1e-5"}),
    ("query(l2, 1) | gaussian(0.3)", 1, {"epsilon": "10", "delta": "1e-5"}),
    ("query(l2, 1) | gaussian(0.3)", 1, {"epsilon": "3"}),
    ("minmax | laplace(1)", 7, {"epsilon": "1.3"}),
    ("squash(tanh) | laplace(1)", 3, {"epsilon": "0.9", "delta": "1e-3"}),
    ("onehot(5) | laplace(0.5)", 1, {"epsilon": "0.9"}),
    ("dropout(0.5) | encode | minmax | laplace(0.1)", 9, {"epsilon": "1.1"}),
    ("dropout(0.5) | encode | clip(l2, 1) | gaussian(0.1)", 9, {"epsilon": "1.1", "delta": "1e-4"}),
    ("category(5) | flip(0.9)", 1, {"epsilon": "1.1"}),
    ("binary(2, 2) | flip(0.9)", 3, {"epsilon": "1.7"}),
    ("onehot(5) | flip(0.9)", 1, {"epsilon": "1.7"}),
    ("binary(2, 2) | bits(0.9, 0.1, 0.2)", 3, {"epsilon": "1.7"}),
    ("query(linf, 3) | exponential(1)", 4, {"epsilon": "0.7"}),
    ("clip(l2, 1) | laplace(0.3) | decode", 4, {"epsilon": "1"}),
    ("clip(l1, 1) | laplace(0.3) | round", 4, {"epsilon": "1"}),
    ("clip(l1, 1) | laplace(0.5)", 4, {"epsilon": "1", "neighbours": "add-remove-record"}),
    ("clip(l2, 1) | gaussian(0.5)", 4, {"epsilon": "1", "delta": "1e-5", "neighbours": "add-remove-record"}),
]


def refuted(text: str, dim: int, claim: dict[str, str]) -> Verdict:
    verdict = checked(text, dim, *claim.items())
    assert verdict.word == "refuted"
    return verdict


@functools.cache
def checked(text: str, dim: int, *claim: tuple[str, str]) -> Verdict:
    return check(text, dim=dim, **dict(claim))


def judged(repair: Repair, subject: object, claim: dict[str, str], dim: int | None = None) -> str:
    assert repair.guarantee is not None
    promise = {"epsilon": repair.guarantee.exact_epsilon, "delta": repair.guarantee.exact_delta}
    return check(subject, **promise, dim=dim, neighbours=claim.get("neighbours")).word


@pytest.mark.parametrize(("text", "dim", "claim"), REFUTED)
def test_every_repair_is_proven(text: str, dim: int, claim: dict[str, str]) -> None:
    verdict = refuted(text, dim, claim)
    assert verdict.repairs
    for repair in verdict.repairs:
        assert repair.mechanism is not None
        assert repair.guarantee.exact_epsilon == verdict.guarantee.exact_epsilon
        assert judged(repair, repair.mechanism, claim) == "proven", str(repair.mechanism)
        # What a person reads and pastes into the next command.
        assert judged(repair, str(repair.mechanism), claim, dim) == "proven", str(repair.mechanism)


def with_less_noise(pipeline: Pipeline) -> Pipeline:
    """0.1 % less noise."""
    less, more = iv.mpf("0.999"), iv.mpf("1.001")
    position = pipeline.noise_positions[0]
    stage = pipeline.stages[position]
    if isinstance(stage, Additive) and isinstance(stage.noise, Laplace):
        weaker = Additive(Laplace(stage.noise.scale * less))
    elif isinstance(stage, Additive) and isinstance(stage.noise, Gaussian):
        weaker = Additive(Gaussian(stage.noise.sigma * less))
    elif isinstance(stage, Choose):
        weaker = Choose(stage.rate * more)
    elif isinstance(stage, Flip):  # the loss is ln(p(k−1)/(1−p)); 0.1 % more of it
        p, others = stage.keep, stage.size - 1
        odds = iv.exp(iv.log(p * others / (1 - p)) * more)
        weaker = Flip(odds / (odds + others), stage.size)
    else:
        assert isinstance(stage, BitNoise)
        odds = iv.exp(iv.log(stage.even / (1 - stage.even)) * more)
        weaker = Flip(odds / (1 + odds))
    return Pipeline((*pipeline.stages[:position], weaker, *pipeline.stages[position + 1 :]), pipeline.dim)


@pytest.mark.parametrize(("text", "dim", "claim"), REFUTED)
def test_least_means_least(text: str, dim: int, claim: dict[str, str]) -> None:
    least = [r for r in refuted(text, dim, claim).repairs if "least" in r.advice.lower()]
    assert least or "bits" in text or claim.get("delta", "0") == "0"
    for repair in least:
        assert judged(repair, with_less_noise(repair.mechanism), claim) != "proven", str(repair.mechanism)


@pytest.mark.parametrize(
    ("text", "dim", "claim"),
    [
        ("squash(tanh) | exponential(3)", 4, {"epsilon": "1"}),
        ("category(5) | flip(0.9)", 1, {"epsilon": "0.5", "delta": "0.05"}),
        ("binary(1, 1) | flip(0.9)", 2, {"epsilon": "0.5", "delta": "0.01"}),
    ],
)
def test_nothing_is_called_least_that_is_not(text: str, dim: int, claim: dict[str, str]) -> None:
    for repair in refuted(text, dim, claim).repairs:
        assert judged(repair, repair.mechanism, claim) == "proven"
        if "least" in repair.advice.lower():
            assert judged(repair, with_less_noise(repair.mechanism), claim) != "proven"


def test_values() -> None:
    first, clipped, gaussian = refuted("clip(l2, 1) | laplace(2)", 32, {"epsilon": "1"}).repairs
    # FACTS §2: 2C√n/ε, or l1 clipping with 2C/ε.
    assert float(first.mechanism.stages[-1].noise.scale.mid) == pytest.approx(2 * math.sqrt(32), rel=1e-15)
    assert first.deviation == pytest.approx(math.sqrt(2) * 2 * math.sqrt(32))
    assert str(clipped.mechanism) == "clip(l1, 1) | laplace(2)"
    assert gaussian.guarantee.delta == 1e-6
    # FACTS §1.
    sigma = refuted("query(l2, 1) | gaussian(0.48448)", 1, {"epsilon": "10", "delta": "1e-5"}).repairs[0]
    assert float(sigma.mechanism.stages[-1].noise.sigma.mid) == pytest.approx(0.49989, abs=5e-6)
    assert sigma.deviation == pytest.approx(0.49989, abs=5e-6)


def test_the_kind_that_was_used_comes_first() -> None:
    assert "gaussian" in str(
        refuted("clip(l2, 1) | gaussian(1)", 4, {"epsilon": "1", "delta": "1e-6"}).repairs[0].mechanism
    )
    assert "laplace" in str(
        refuted("clip(l2, 1) | laplace(1)", 4, {"epsilon": "1", "delta": "1e-6"}).repairs[0].mechanism
    )


def test_advice_where_no_noise_helps() -> None:
    assert "Bound the vector" in refuted("encode | laplace(1)", 4, {"epsilon": "1"}).repairs[0].advice
    assert "noise" in refuted("clip(l2, 1)", 4, {"epsilon": "1"}).repairs[0].advice
    zero = find_repairs(check("clip(l2, 1) | laplace(1)", epsilon=1, dim=2).mechanism, Neighbours(), PureDP(0))
    assert "positive epsilon" in zero[0].advice
    assert zero[0].mechanism is None


def test_a_proven_claim_needs_no_repair() -> None:
    assert check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4).repairs == ()
    assert number(Fraction(1, 3)).delta < 1e-49
