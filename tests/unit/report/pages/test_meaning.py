"""What a verdict means in odds: by the definition of the loss, rounded so that it stays true."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay import GDP, ZCDP, Interval, MetricDP, audit, check
from dpassay.report.pages.meaning import meaning, odds, shown


@given(st.floats(0, 2000))
@settings(max_examples=80, derandomize=True)
def test_odds_are_rounded_to_the_safe_side(loss):
    least, most = (mpmath.mpf(odds(loss, d).removesuffix(":1").replace(",", "").replace("10^", "1e")) for d in (-1, 1))
    with mpmath.workdps(40):
        true = mpmath.exp(mpmath.mpf(loss))
        assert least <= true <= most
        assert most / least <= (10.001 if loss > 20 else 1.02)


@given(st.floats(0, 1e5), st.floats(0, 1))
@settings(max_examples=80, derandomize=True)
def test_an_interval_is_never_shown_narrower_than_it_is(lower, width):
    value = Interval(lower, lower * (1 + width))
    text = shown(value)
    if text.startswith("["):
        low, high = (float(end.replace(",", "")) for end in text.strip("[]").split(", "))
        assert low <= value.lower
        assert value.upper <= high
    else:
        assert abs(float(text.replace(",", "")) - value.upper) <= (5e-4 + 1e-5) * value.upper  # half of a fourth digit


@pytest.mark.parametrize(
    ("subject", "claim", "words"),
    [
        ("clip(l2, 1) | laplace(2)", {"epsilon": 1}, ["1:1 to 286:1", "allows 2.72:1 at most."]),
        ("clip(l1, 1) | laplace(2)", {"epsilon": 1}, ["Whatever the output", "2.72:1 at most, as claimed"]),
        ("clamp(0, 1)", {"epsilon": 1}, ["no limit", "allows 2.72:1"]),
        (
            "clip(l2, 1) | gaussian(0.1)",
            {"epsilon": 1, "delta": "1e-5"},
            ["exceeds 10¹²³ times its", "plus 10⁻⁵. The claim allows a factor of 2.72"],
        ),
        (
            "clip(l2, 1) | gaussian(99)",
            {"epsilon": 1, "delta": "1e-5"},
            ["at most 2.72 times", "plus 10⁻⁵, as claimed"],
        ),
        ("radial(l2, 1)", {"guarantee": MetricDP(1)}, ["at distance 1", "2.72:1 at most"]),
        ("radial(l2, 0.5)", {"guarantee": MetricDP(1)}, ["multiplies the odds by 7.38", "allows 2.72 at most"]),
        ("query(l2, 1) | gaussian(2)", {"guarantee": GDP("0.5")}, ["mean 0.5"]),
    ],
)
def test_each_guarantee_in_plain_words(subject, claim, words):
    said = meaning(check(subject, dim=32, **claim))
    for word in words:
        assert word in said, said


def test_what_cannot_be_said_in_odds_is_not_said():
    assert meaning(check("query(l2, 1) | gaussian(2)", guarantee=ZCDP("0.125"))) == ""


def test_an_open_audit_says_only_what_was_claimed():
    verdict = audit(lambda x, rng: 0, [(0, 1)], epsilon=1, runs=200)
    assert verdict.word == "open"
    assert meaning(verdict) == "The claim: an output raises the odds between two inputs from 1:1 to 2.72:1 at most."
    assert math.isinf(verdict.value.upper)
