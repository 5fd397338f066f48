"""Choices among the k largest scores, against formulas and against all pairs of small sets of scores."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpassay import certify, check, verify
from dpassay.core.guarantee import MetricDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, Number, down, number, up
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.parser import parse

Array = NDArray[np.float64]


def profile(text: str, dim: int) -> PrivacyProfile:
    pipeline = parse(text, dim)
    return analyse(pipeline, pipeline.neighbours)


def chosen(scores: Array, k: int, rate: float) -> Array:
    """The probabilities of all outputs; of equal scores the first are kept."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    weights = np.zeros(len(scores))
    weights[order] = np.exp(rate * scores[order])
    return np.asarray(weights / weights.sum())


def largest_delta(rows: list[Array], epsilon: float) -> float:
    """max over all pairs of Σ (p − e^ε q)⁺."""
    return max(float(np.maximum(0, p - math.exp(epsilon) * q).sum()) for p in rows for q in rows)


def enclose(found: Number) -> tuple[float, float]:
    return down(found), up(found)


CUBES = [(3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 3), (5, 4)]


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("dim", "k"), CUBES)
@pytest.mark.parametrize("rate", [0.3, 1.0, 2.5])
def test_all_pairs_of_a_cube(dim: int, k: int, rate: float) -> None:
    levels = (0.0, 0.4, 1.0) if dim < 5 else (0.0, 1.0)
    rows = [chosen(np.array(scores), k, rate) for scores in itertools.product(levels, repeat=dim)]
    found = profile(f"clamp(0, 1) | topk({k}) | exponential({rate})", dim)
    assert enclose(found.pure) == (math.inf, math.inf)
    beyond = rate + math.log((math.exp(-rate) + k - 1) / (1 + (k - 1) * math.exp(-rate)))  # no common output loses more
    for epsilon in (0.0, 0.5 * beyond, beyond, 4.0, 12.0):
        low, high = enclose(found.delta(number(epsilon)))
        shown = largest_delta(rows, epsilon)
        assert low - 1e-12 <= shown <= high + 1e-12
        if epsilon >= beyond:
            assert low == pytest.approx(shown, rel=1e-9) == high


@pytest.mark.parametrize(
    ("text", "dim", "delta"),
    [
        ("clamp(-5, 5) | topk(40) | softmax(1)", 50_000, 1.0),
        ("clamp(-1, 1) | topk(40) | softmax(2)", 50, 10 * math.e / (10 * math.e + 30)),
        ("clip(linf, 1) | topk(3) | softmax(1)", 4, math.exp(2) / (math.exp(2) + 2)),
        ("minmax | topk(3) | softmax(1)", 4, math.e / (math.e + 2)),
        ("query(linf, 1) | topk(4) | exponential(1)", 6, math.exp(2) / (math.exp(2) + 1)),
        ("query(linf, 1, monotone) | topk(4) | exponential(1)", 6, math.e / (math.e + 1)),
        ("query(l1, 1) | topk(3) | exponential(1)", 4, math.e / (math.e + 2)),
        ("rows | clamp(0, 1) | topk(3) | softmax(1)", 4, math.e / (math.e + 2)),
        ("topk(3) | softmax(1)", 4, 1.0),
    ],
)
def test_probability_outside_the_other_top_k(text: str, dim: int, delta: float) -> None:
    found = profile(text, dim)
    assert down(found.pure) == math.inf
    for epsilon in (30.0, 1000.0):
        assert enclose(found.delta(number(epsilon))) == pytest.approx((delta, delta), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("query(l2, 1) | topk(3) | softmax(1)", 5),
        ("clip(l2, 1) | topk(2) | softmax(1)", 3),
        ("normalise(l2) | topk(2) | softmax(1)", 3),
        ("onehot(4) | topk(3) | softmax(1)", 1),
    ],
)
def test_other_regions_are_infinite_too(text: str, dim: int) -> None:
    found = profile(text, dim)
    low, high = enclose(found.delta(number(50)))
    assert down(found.pure) == math.inf
    assert 0.3 < low <= high < 1


def test_a_pair_of_a_ball_by_hand() -> None:
    # (0, 0, 1) against (0, 0, −1): the third output has e/(1 + e) against nothing.
    found = profile("clip(l2, 1) | topk(2) | softmax(1)", 3)
    assert down(found.delta(number(50))) == pytest.approx(math.e / (1 + math.e), rel=1e-12)


def test_what_is_not_known_stays_open() -> None:
    for text in (
        "query(linf, 1) | clip(linf, 1) | topk(2) | softmax(1)",
        "laplace(1) | clamp(0, 1) | topk(2) | softmax(1)",
    ):
        found = profile(text, 3)
        assert down(found.lower_pure) == 0
        assert up(found.pure) == math.inf


@pytest.mark.parametrize("k", [4, 5, 1000])
def test_as_many_as_there_are(k: int) -> None:
    for text in ("clamp(0, 1) | {}softmax(2)", "query(l2, 1) | {}exponential(1)", "{}softmax(1)"):
        with_it, without = (profile(text.format(stage), 4) for stage in (f"topk({k}) | ", ""))
        assert enclose(with_it.pure) == enclose(without.pure)
        assert enclose(with_it.delta(number(0.1))) == enclose(without.delta(number(0.1)))


def test_a_constant_loses_nothing() -> None:
    assert up(profile("clip(l2, 1) | minmax | topk(1) | softmax(1)", 1).pure) == 0


@pytest.mark.parametrize("count", [2, 5])
def test_tokens_of_the_top_k(count: int) -> None:
    # Each token gives the first input away with probability e/(e + 2), unless ε is small.
    found = profile(f"clamp(0, 1) | topk(3) | softmax(1) | times({count})", 4)
    leak = 1 - (2 / (math.e + 2)) ** count
    assert enclose(found.delta(number(40))) == pytest.approx((leak, leak), rel=1e-9)


@pytest.mark.parametrize(
    ("text", "epsilon", "delta", "word"),
    [
        ("clamp(-5, 5) | topk(40) | softmax(1)", 20, 0, "refuted"),
        ("clamp(-1, 1) | topk(45000) | softmax(2)", 3, 0.2, "refuted"),
        ("clamp(-1, 1) | topk(45000) | softmax(2)", 3, 0.4, "proven"),
        ("query(linf, 1) | topk(45000) | softmax(2)", 3, 0.2, "refuted"),
        ("clamp(-1, 1) | topk(45000) | softmax(2) | times(3)", 9, 0.5, "refuted"),
        ("clamp(-1, 1) | topk(45000) | softmax(2) | times(3)", 9, 0.7, "proven"),
    ],
)
def test_certificates(text: str, epsilon: float, delta: float, word: str) -> None:
    verdict = check(text, epsilon=epsilon, delta=delta, dim=50_000)
    assert verdict.word == word
    certificate = certify(verdict)
    assert verify(certificate).ok
    assert any(step.get("theorem") == "top-k" for step in certificate["steps"])


def test_the_witness_and_the_repair() -> None:
    verdict = check("clamp(-5, 5) | topk(40) | softmax(1)", epsilon=20, dim=50_000)
    assert verdict.witness is not None
    assert verdict.witness.event == "an output is chosen that is not among the second value's top k"
    assert verdict.witness.ratio == INFINITY
    assert "top k" in verdict.reason
    assert str(verdict.repairs[0].mechanism) == "clamp(-5, 5) | softmax(1)"
    assert check(verdict.repairs[0].mechanism, epsilon=20).word == "proven"


def test_metric_claims_of_the_top_k_are_left_open() -> None:
    assert check("topk(2) | softmax(1)", guarantee=MetricDP(2, "linf"), dim=4).word == "open"


def test_records_have_no_scores() -> None:
    pipeline = parse("clamp(0, 1) | topk(2) | softmax(1)", 3)
    with pytest.raises(InputError, match="softmax adds no noise"):
        analyse(pipeline, Neighbours("replace-record"))
