"""Tokens drawn from the softmax of logits: one, and several one after the other."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay import certify, check, compose, verify
from dpassay.core.numbers import ZERO, down, number, real, up
from dpassay.exact.analysis import analyse
from dpassay.exact.profiles.bounded_range import RangeBound, RangeSteps
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.exponential import Choose, Softmax


def profile(text: str, dim: int) -> PrivacyProfile:
    pipeline = parse(text, dim)
    return analyse(pipeline, pipeline.neighbours)


def largest(width: float, outputs: int) -> float:
    """One logit high and the others low, against the other way round."""
    with mp.workdps(40):
        w, n = mpf(width), outputs - 1
        return float(mp.log(mp.exp(w) / (mp.exp(w) + n)) - mp.log(1 / (1 + n * mp.exp(w))))


@pytest.mark.parametrize(
    ("low", "high", "temperature", "dim"), [(-5, 5, "1", 50_000), (0, 1, "0.1", 7), (-3, 16, "2", 2)]
)
def test_one_token(low: int, high: int, temperature: str, dim: int) -> None:
    found = profile(f"clamp({low}, {high}) | softmax({temperature})", dim).pure
    truth = largest((high - low) / float(temperature), dim)
    assert (down(found), up(found)) == pytest.approx((truth, truth), rel=1e-12)
    assert truth < 2 * (high - low) / float(temperature)  # what the literature claims


def test_the_same_as_the_exponential_mechanism() -> None:
    one, other = profile("clamp(0, 1) | softmax(0.4)", 9), profile("clamp(0, 1) | exponential(2.5)", 9)
    assert [up(one.delta(number(e))) for e in (0.1, 1, 2)] == [up(other.delta(number(e))) for e in (0.1, 1, 2)]
    assert np.array_equal(
        Softmax("0.5").distribution(np.arange(3.0)).probabilities, Choose(2).distribution(np.arange(3.0)).probabilities
    )
    assert Softmax(2).to_data() == {"stage": "softmax", "temperature": ["2.0", "2.0"]}


def test_as_a_new_user_would_try() -> None:
    assert check("clamp(-5, 5) | softmax(1)", epsilon=20, dim=50_000).word == "proven"
    refuted = check("clamp(-5, 5) | softmax(1)", epsilon=19, dim=50_000)
    assert refuted.word == "refuted"
    assert refuted.witness is not None
    assert refuted.witness.event == "the first output is chosen"
    assert "logits can differ by 10 at temperature 1" in refuted.reason
    assert str(refuted.repairs[0].mechanism).startswith("clamp(-5, 5) | softmax(1.038")
    unclipped = check("softmax(1)", epsilon=20, dim=50_000)
    assert unclipped.epsilon.lower == math.inf
    assert "clamp(-C, C) | softmax(4*C/eps)" in unclipped.repairs[0].advice


def test_the_advice_holds() -> None:
    assert check("clamp(-C, C) | softmax(4*C/eps)", epsilon=3, dim=100, parameters={"C": 7}).word == "proven"
    assert check("clamp(-C, C) | exponential(eps/(4*C))", epsilon=3, dim=100, parameters={"C": 7}).word == "proven"


# ── n tokens ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [2, 100, 10_000])
def test_losses_of_tokens_add_up(count: int) -> None:
    found = profile(f"clamp(-5, 5) | softmax(1) | times({count})", 50_000).pure
    truth = count * largest(10, 50_000)
    assert (down(found), up(found)) == pytest.approx((truth, truth), rel=1e-12)


def test_a_hundred_uses_of_range_2() -> None:
    steps = RangeSteps(RangeBound(real(2), real(2)), 100)
    # By the order 1.59, from the formula of the page, and by zCDP: the best order gives no more than either.
    with mp.workdps(30):
        o, r = mpf("1.59"), mpf(2)
        a, b = 1 - mp.exp(-o * r), 1 - mp.exp(-(o - 1) * r)
        t = r + mp.log((o - 1) * a / (o * b))
        each = t + mp.log((a - b * mp.exp(t - r)) / (1 - mp.exp(-r))) / (o - 1)
        known = 100 * each + (mp.log(1 / mpf("1e-6")) - mp.log(o)) / (o - 1) + mp.log(1 - 1 / o)
        zcdp = mpf(50) + 2 * mp.sqrt(50 * mp.log(mpf(10) ** 6))
    found = up(steps.epsilon(number("1e-6")))
    assert found <= float(known) + 1e-9 < float(zcdp)
    assert found == pytest.approx(float(known), abs=1e-2)
    assert up(steps.delta(number(found))) == pytest.approx(1e-6, rel=1e-3)
    assert up(steps.delta(number(200))) == 0
    assert up(steps.epsilon(number("1e-300"))) <= 200


def test_tiny_and_huge_ranges() -> None:
    tiny = RangeSteps(RangeBound(real("1e-25"), real("1e-25")), 3)
    assert 0 <= up(tiny.epsilon(number("1e-6"))) <= 3e-25
    huge = RangeSteps(RangeBound(real(40_000), real(39_000)), 50)
    assert 0 < up(huge.epsilon(number("1e-6"))) <= 50 * 39_000
    assert up(huge.delta(ZERO)) == 1


def adaptive_delta(width: float, dim: int, epsilon: float) -> float:
    """The largest δ of two tokens, the second one's logits chosen after the first was seen."""
    corners = [np.array(c) for c in itertools.product((0.0, width), repeat=dim)]
    rows = [np.exp(c) / np.exp(c).sum() for c in corners]
    pairs = [(p, q) for p in rows for q in rows]
    best = 0.0
    for p, q in pairs:
        total = 0.0
        for one, other in zip(p, q, strict=True):
            total += max(float(np.maximum(0, one * a - math.exp(epsilon) * other * b).sum()) for a, b in pairs)
        best = max(best, total)
    return best


@pytest.mark.long(every=2)
@pytest.mark.parametrize("width", [0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.5])
def test_two_adaptive_tokens_by_enumeration(width: float, epsilon: float) -> None:
    found = profile(f"clamp(0, {width}) | softmax(1) | times(2)", 3).delta(number(epsilon))
    assert down(found) <= adaptive_delta(width, 3, epsilon) + 1e-12
    assert adaptive_delta(width, 3, epsilon) <= up(found) + 1e-12


@pytest.mark.parametrize(
    "text", ["clamp(-5, 5) | softmax(1)", "clamp(0, 1) | softmax(2)", "query(linf, 1) | exponential(1)"]
)
def test_times_and_compose_say_the_same(text: str) -> None:
    together = profile(f"{text} | times(100)", 1000).epsilon(number("1e-6"))
    composed = compose(f"{text} x 100", delta="1e-6", dim=1000).exact
    assert up(together) == pytest.approx(composed.upper, rel=1e-6)
    assert down(together) == pytest.approx(composed.lower, rel=1e-6)
    assert down(together) > 0.9 * up(together)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("text", "epsilon", "delta", "word"),
    [
        ("clamp(-5, 5) | softmax(1)", 20, 0, "proven"),
        ("clamp(-5, 5) | softmax(1)", 19, 0, "refuted"),
        ("softmax(1)", 20, 0, "refuted"),
        ("clamp(-5, 5) | softmax(1) | times(100)", 1964, 0, "proven"),
        ("clamp(-5, 5) | softmax(1) | times(100)", 1963, 0, "refuted"),
        ("clamp(-5, 5) | softmax(1) | times(100)", 1800, "1e-6", "proven"),
        ("clamp(-5, 5) | softmax(1) | times(100)", 1780, "1e-6", "refuted"),
    ],
)
def test_certificates(text: str, epsilon: float, delta: float, word: str) -> None:
    verdict = check(text, epsilon=epsilon, delta=delta, dim=50_000)
    assert verdict.word == word
    assert verify(certify(verdict)).ok
