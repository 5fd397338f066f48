"""Inputs ever nearer to each other that lose no less. The laws of the examples are computed by hand."""

import math

import pytest

from dpassay.api import check
from dpassay.core.guarantee import MetricDP
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify

JUMPS = [
    ("staircase(1, 1, 0.5)", 2),  # one step, however near
    ("truncated_laplace(1, 3)", 1),  # supports differ
    ("clip(l2, 1) | truncated_laplace(1, 3)", 3),
    ("discrete_laplace(1)", 2),  # no output in common
    ("discrete_gaussian(1)", 1),
    ("round | laplace(1)", 2),  # 0.5 ± s become 0 and 1
    ("round | radial(l2, 1)", 2),
    ("clamp(0.2, 0.7) | round | laplace(1)", 2),
    ("round | discrete_laplace(2)", 3),
    ("round | exponential(1)", 3),
    ("round | noisymax(laplace, 1)", 3),
    ("round | bounded_laplace(1, 0, 3)", 1),
    ("binary(2, 2) | flip(0.75)", 2),  # the sign of ±s
    ("normalise(l2) | laplace(1)", 3),  # ±s and s·e₁, s·e₂ keep their directions
    ("normalise(l2) | laplace(1)", 1),
    ("normalise(l2) | vmf(2)", 3),
    ("clamp(0, 2) | normalise(l2) | laplace(1)", 2),
    ("squash(tanh) | normalise(l2) | gaussian(1)", 2),
    ("minmax | laplace(1)", 3),
    ("clamp(2, 9) | minmax | exponential(1)", 3),
    ("minmax | discrete_laplace(1)", 2),
    ("round", 2),
    ("clip(l2, 1)", 1),
]


@pytest.mark.long(every=4)
@pytest.mark.parametrize(("text", "dim"), JUMPS)
def test_nearby_inputs_lose_a_fixed_amount(text: str, dim: int) -> None:
    verdict = check(text, guarantee=MetricDP(1e6, "l2"), dim=dim)
    assert verdict.refuted
    assert verdict.epsilon.lower == math.inf
    assert verify(certify(verdict)).verdict == "refuted"


def test_the_two_inputs_round_apart() -> None:
    for claimed in (1, 1e3, 1e9):
        witness = check("round | laplace(2)", guarantee=MetricDP(claimed, "l1"), dim=1).witness
        (block,) = witness.pair.blocks
        assert abs(round(float(block.x.mid)) - round(float(block.y.mid))) == 1
        assert claimed * abs(float((block.x - block.y).mid)) < 0.5  # the loss is 1/2


@pytest.mark.parametrize(
    ("text", "dim", "truth"),
    [
        ("laplace(1)", 3, 1),
        ("clip(l2, 1) | laplace(1)", 1, 1),
        ("clamp(0.2, 0.4) | round | laplace(1)", 2, 0),  # all numbers become 0
        ("minmax | laplace(1)", 1, 0),
        ("minmax | gaussian(1)", 1, 0),
        ("clamp(0.6, 1.4) | round | discrete_gaussian(1)", 2, 0),
    ],
)
def test_what_does_not_jump(text: str, dim: int, truth: float) -> None:
    verdict = check(text, guarantee=MetricDP(1, "l1"), dim=dim)
    assert verdict.proven
    assert verdict.epsilon.lower == pytest.approx(truth) == verdict.epsilon.upper
    assert verify(certify(verdict)).verdict == "proven"


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("binary(1, 1) | flip(0.5)", 2),  # each output is equally likely, whatever the bits
        ("clamp(1, 2) | normalise(l2) | laplace(1)", 2),  # no vector is near 0
        ("round | laplace(1) | clamp(0, 1)", 2),  # what a clamp leaves is not followed
        ("clip(l2, 0.25) | round | laplace(1) | gaussian(1)", 2),
    ],
)
def test_no_jump_is_claimed_without_a_proof(text: str, dim: int) -> None:
    assert not check(text, guarantee=MetricDP(1, "l2"), dim=dim).refuted


def test_angles_between_unit_vectors() -> None:
    verdict = check("normalise(l2) | staircase(1, 1, 0.5)", guarantee=MetricDP(50, "angle"), dim=3)
    assert verdict.refuted
    assert verify(certify(verdict)).verdict == "refuted"
    assert check("normalise(l2) | laplace(1)", guarantee=MetricDP(2, "angle"), dim=3).proven
