"""Repairs: each is proven, as an object and as the text that is shown; the least is refuted with 0.1 % less noise."""

import functools
import math
from fractions import Fraction

import pytest

from dpassay.api import check
from dpassay.core.guarantee import PureDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import exp, log, number, real
from dpassay.evidence.verdict import Verdict
from dpassay.exact.repair import Repair, find_repairs
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.radial import Radial

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
    ("clip(l2, 5) | squash(tanh) | laplace(1)", 64, {"epsilon": "1"}),
    ("rows | binary(2, 2) | flip(0.9)", 4, {"epsilon": "1"}),
    ("category(5) | flip(0.9)", 1, {"epsilon": "0.5", "delta": "0.05"}),
    ("clamp(0, 1) | exponential(8)", 5, {"epsilon": "1", "delta": "1e-3"}),
    ("query(l2, 1e20) | laplace(1e3)", 16, {"epsilon": "3"}),
    ("clamp(0, 1) | exponential(8)", 50, {"epsilon": "1"}),
    ("binary(1, 1) | flip(0.9)", 2, {"epsilon": "0.5", "delta": "0.01"}),
    ("bloom(16, 2) | flip(0.9)", 1, {"epsilon": "0.5", "delta": "0.01"}),
    ("onehot(4) | bits(0.9, 0.8, 0.2)", 1, {"epsilon": "0.5", "delta": "0.01"}),
    ("dropout(0.5) | encode | binary(1, 1) | flip(0.9)", 2, {"epsilon": "0.5", "delta": "0.01"}),
    ("dropout(0.9999999) | encode | clip(l2, 1) | laplace(0.001)", 8, {"epsilon": "0.5"}),
    ("clip(l2, 1/3) | laplace(0.01)", 7, {"epsilon": "0.7"}),
    ("clip(l2, 1) | clip(linf, 0.3) | laplace(0.5)", 20, {"epsilon": "1"}),
    ("query(l2, 1) | clip(l2, 5) | laplace(0.1)", 64, {"epsilon": "1"}),  # l1 clipping would be no repair here
    ("clip(l2, 1) | repeat(3) | laplace(0.1)", 3, {"epsilon": "1"}),
    ("clip(l2, 1) | radial(l2, 0.5)", 12, {"epsilon": "1"}),
    ("clip(l2, 1) | radial(linf, 0.5) | round", 12, {"epsilon": "1"}),
    ("clip(l2, 1) | radial(l1, 0.5)", 3, {"epsilon": "1", "delta": "1e-3"}),
    ("normalise | laplace(0.5)", 32, {"epsilon": "1"}),
    ("query(l2, 1e-20) | laplace(1e-30)", 16, {"epsilon": "3"}),
    ("category(5) | flip(0.9)", 1, {"epsilon": "0", "delta": "0.05"}),
    ("rows | clamp(0, 1) | laplace(0.1)", 9, {"epsilon": "0.7"}),
    ("clip(l2, 1) | laplace(0.1)", 9, {"epsilon": "0.7", "neighbours": "add-remove-record"}),
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


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("text", "dim", "claim"), REFUTED)
def test_every_repair_is_proven(text: str, dim: int, claim: dict[str, str]) -> None:
    verdict = refuted(text, dim, claim)
    assert verdict.repairs
    for repair in verdict.repairs:
        assert repair.mechanism is not None
        assert repair.guarantee.exact_epsilon == verdict.guarantee.exact_epsilon
        assert judged(repair, repair.mechanism, claim) == "proven", str(repair.mechanism)
        # What a person reads and pastes into the next command, and what a certificate carries: the very same numbers.
        read = parse(str(repair.mechanism), dim)
        assert [stage.to_data() for stage in read.stages] == [s.to_data() for s in repair.mechanism.stages]
        assert judged(repair, str(repair.mechanism), claim, dim) == "proven", str(repair.mechanism)


def with_less_noise(pipeline: Pipeline) -> Pipeline:
    """0.1 % less noise."""
    less, more = real("0.999"), real("1.001")
    position = pipeline.noise_positions[0]
    stage = pipeline.stages[position]
    if isinstance(stage, Additive) and isinstance(stage.noise, Laplace):
        weaker = Additive(Laplace(stage.noise.scale * less))
    elif isinstance(stage, Additive) and isinstance(stage.noise, Gaussian):
        weaker = Additive(Gaussian(stage.noise.sigma * less))
    elif isinstance(stage, Radial):
        weaker = Radial(stage.norm, stage.scale * less)
    elif isinstance(stage, Choose):
        weaker = Choose(stage.rate * more)
    elif isinstance(stage, Flip):  # the loss is ln(p(k−1)/(1−p)); 0.1 % more of it
        p, others = stage.keep, stage.size - 1
        odds = exp(log(p * others / (1 - p)) * more)
        weaker = Flip(odds / (odds + others), stage.size)
    else:
        assert isinstance(stage, BitNoise)
        odds = exp(log(stage.even / (1 - stage.even)) * more)
        weaker = Flip(odds / (1 + odds))
    return Pipeline((*pipeline.stages[:position], weaker, *pipeline.stages[position + 1 :]), pipeline.dim)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("text", "dim", "claim"), REFUTED)
def test_least_means_least(text: str, dim: int, claim: dict[str, str]) -> None:
    for repair in refuted(text, dim, claim).repairs:
        if "least" in repair.advice.lower():
            assert judged(repair, with_less_noise(repair.mechanism), claim) == "refuted", str(repair.mechanism)


def kinds_called_least(text: str, dim: int, claim: dict[str, str]) -> list[str]:
    least = [r.mechanism for r in refuted(text, dim, claim).repairs if "least" in r.advice.lower()]
    return [str(m.stages[m.noise_positions[0]]).partition("(")[0] for m in least]


@pytest.mark.parametrize(
    ("text", "dim", "claim", "kinds"),
    [
        # The region is exact and its farthest pair attains the bound.
        ("clip(l2, 1) | laplace(2)", 32, {"epsilon": "1"}, ["laplace", "radial"]),
        ("clip(l1, 1) | laplace(0.3) | round", 4, {"epsilon": "1"}, ["laplace"]),
        ("clip(l1, 1) | laplace(1)", 4, {"epsilon": "0.3", "delta": "1e-5"}, ["laplace", "gaussian"]),
        ("query(l2, 1) | gaussian(0.3)", 1, {"epsilon": "10", "delta": "1e-5"}, ["gaussian", "laplace"]),
        ("category(5) | flip(0.9)", 1, {"epsilon": "1.1"}, ["flip"]),
        ("binary(2, 2) | flip(0.9)", 3, {"epsilon": "1.7"}, ["flip"]),
        ("clamp(0, 1) | exponential(8)", 50, {"epsilon": "1"}, ["exponential"]),
        ("clip(l2, 1) | laplace(0.1)", 9, {"epsilon": "0.7", "neighbours": "add-remove-record"}, ["laplace", "radial"]),
        # Of Laplace noise no pair is known to dominate: enough is all that is said.
        ("clip(l2, 1) | laplace(2)", 32, {"epsilon": "1", "delta": "1e-6"}, ["gaussian"]),
    ],
)
def test_what_is_known_to_be_least(text: str, dim: int, claim: dict[str, str], kinds: list[str]) -> None:
    assert kinds_called_least(text, dim, claim) == kinds


def test_an_outer_bound_gives_enough_and_not_the_least() -> None:
    # tanh of two vectors of l2 norm at most 5 is farthest apart in l1 on the diagonal: 2·64·tanh(5/8), about 71.
    first = refuted("clip(l2, 5) | squash(tanh) | laplace(1)", 64, {"epsilon": "1"}).repairs[0]
    scale = float(first.mechanism.stages[-1].noise.scale.mid)
    if scale > 1.001 * 128 * math.tanh(5 / 8):
        assert first.advice == "Enough Laplace noise; less may suffice."


def test_values() -> None:
    first, radial, clipped, gaussian = refuted("clip(l2, 1) | laplace(2)", 32, {"epsilon": "1"}).repairs
    # FACTS §2: 2C√n/ε, or l1 clipping with 2C/ε.
    assert float(first.mechanism.stages[-1].noise.scale.mid) == pytest.approx(2 * math.sqrt(32), rel=1e-15)
    assert first.deviation == pytest.approx(math.sqrt(2) * 2 * math.sqrt(32))
    # FACTS §10: 2C/ε, with a deviation of √(n+1) times that.
    assert str(radial.mechanism) == "clip(l2, 1) | radial(l2, 2)"
    assert radial.deviation == pytest.approx(11.489125293076, rel=1e-12)
    assert str(clipped.mechanism) == "clip(l1, 1) | laplace(2)"
    assert gaussian.guarantee.delta == 1e-6
    # FACTS §1.
    sigma = refuted("query(l2, 1) | gaussian(0.48448)", 1, {"epsilon": "10", "delta": "1e-5"}).repairs[0]
    assert float(sigma.mechanism.stages[-1].noise.sigma.mid) == pytest.approx(0.49989, abs=5e-6)
    assert sigma.deviation == pytest.approx(0.49989, abs=5e-6)


def test_values_of_discrete_repairs() -> None:
    # k categories: p − e^ε (1 − p)/(k − 1) = δ; the search stops within one part in 10⁴ of the loss.
    flip = refuted("category(5) | flip(0.9)", 1, {"epsilon": "0.5", "delta": "0.05"}).repairs[0].mechanism.stages[-1]
    exact = (0.05 * 4 + math.exp(0.5)) / (4 + math.exp(0.5))
    assert exact * (1 - 1e-4) < float(flip.keep.mid) <= exact
    # Scores in [0, 1]: one output high against 49 low ones, against the other way round.
    rate = refuted("clamp(0, 1) | exponential(8)", 50, {"epsilon": "1"}).repairs[0].mechanism.stages[-1].rate
    r = float(rate.mid)
    loss = math.log(math.exp(r) / (math.exp(r) + 49)) - math.log(1 / (1 + 49 * math.exp(r)))
    assert 1 - 1e-3 < loss <= 1


@pytest.mark.parametrize(
    ("text", "dim", "noise"),
    [
        ("clip(l2, 3) | laplace(1)", 32, "radial(l2, 6)"),
        ("normalise | laplace(1)", 32, "radial(l2, 2)"),
        ("query(l2, 5) | laplace(1)", 3, "radial(l2, 5)"),
        ("clip(linf, 3) | laplace(1)", 32, "radial(linf, 6)"),
        ("minmax | laplace(0.1)", 32, "radial(linf, 1)"),
        ("clip(l1, 3) | laplace(1)", 32, None),  # Laplace noise is the noise of this ball
        ("rows | clamp(0, 3) | laplace(1)", 32, None),
        ("clip(l2, 3) | laplace(1)", 1, None),  # and on one number both are the same
    ],
)
def test_radial_noise_where_it_is_smaller(text: str, dim: int, noise: str | None) -> None:
    first, *others = refuted(text, dim, {"epsilon": "1"}).repairs
    radial = [r for r in others if "radial" in str(r.mechanism)]
    assert [str(r.mechanism).split(" | ")[-1] for r in radial] == ([noise] if noise else [])
    assert all(r.deviation < first.deviation for r in radial)


def test_the_kind_that_was_used_comes_first() -> None:
    assert "gaussian" in str(
        refuted("clip(l2, 1) | gaussian(1)", 4, {"epsilon": "1", "delta": "1e-6"}).repairs[0].mechanism
    )
    assert "radial(linf" in str(refuted("clip(l2, 1) | radial(linf, 1)", 4, {"epsilon": "1"}).repairs[0].mechanism)
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
