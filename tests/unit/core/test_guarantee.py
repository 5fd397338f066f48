from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.core.guarantee import ApproxDP, PureDP, make_guarantee
from dpassay.core.numbers import log
from dpassay.errors import InputError
from oracles import ends

quick = settings(derandomize=True, deadline=None, max_examples=50)


@quick
@given(st.floats(0, 1e9), st.floats(1e-300, 0.999))
def test_both_numbers_are_kept_as_written(epsilon, delta):
    approx = ApproxDP(epsilon, delta)
    low, high = ends(approx.exact_epsilon)
    assert low <= Fraction(repr(epsilon)) <= high
    low, high = ends(approx.exact_delta)
    assert low <= Fraction(repr(delta)) <= high
    assert approx.epsilon == pytest.approx(epsilon, rel=1e-15)
    assert approx.delta == pytest.approx(delta, rel=1e-15)


def test_text_keeps_more_digits_than_a_double():
    low, high = ends(PureDP("0.1000000000000000000000000000000001").exact_epsilon)
    assert low <= Fraction("0.1000000000000000000000000000000001") <= high
    assert low > Fraction("0.1")


def test_pure_has_delta_zero():
    assert PureDP(1).delta == 0
    assert PureDP(1).exact_delta == 0


@pytest.mark.parametrize("epsilon", [-1, "-1e-30", float("inf"), float("-inf"), float("nan"), "nan", None, "one"])
def test_a_bad_epsilon_is_refused(epsilon):
    for make in (PureDP, lambda e: ApproxDP(e, 0.1), make_guarantee):
        with pytest.raises(InputError, match=r"epsilon must be|expected a number"):
            make(epsilon)


@pytest.mark.parametrize("delta", [0, -0.1, 1, 1.5, float("inf"), float("nan"), "nan", None])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match=r"delta must be 0|expected a number"):
        ApproxDP(1, delta)


@pytest.mark.parametrize("delta", [-0.1, 1, 2, float("nan")])
def test_guarantee_refuses_a_bad_delta_too(delta):
    with pytest.raises(InputError):
        make_guarantee(1, delta)


def test_guarantee_picks_the_kind():
    assert isinstance(make_guarantee(1), PureDP)
    assert isinstance(make_guarantee(1, 0.0), PureDP)
    assert isinstance(make_guarantee(1, "1e-300"), ApproxDP)
    with pytest.raises(InputError, match=r"delta must be 0 \(pure DP\) or at least 1e-300, got 1e-400"):
        make_guarantee(1, "1e-400")


def test_printed_forms():
    assert str(PureDP("0.5")) == "0.5-DP"
    assert str(ApproxDP(8, "1e-5")) == "(8, 1e-05)-DP"


def test_zero_epsilon_is_a_guarantee():
    assert PureDP(0).epsilon == 0
    assert ApproxDP(0, "0.5").epsilon == 0


def test_equal_guarantees_are_equal():
    assert PureDP("0.1") == PureDP(0.1)
    assert ApproxDP(1, "1e-6") == ApproxDP(1.0, 1e-6)
    assert PureDP(1) != PureDP(2)


def test_a_guarantee_cannot_be_changed():
    with pytest.raises(AttributeError):
        PureDP(1).exact_epsilon = 2


@pytest.mark.parametrize("claimed", ["1", "0.1", "1.00000000004", "1.00000000000000000004", "53013.35", "1e-06", "250"])
def test_a_printed_claim_is_the_claim(claimed: str) -> None:
    assert str(PureDP(claimed)) == f"{claimed}-DP"
    assert str(ApproxDP(claimed, "0.10000000000000000000001")) == f"({claimed}, 0.10000000000000000000001)-DP"


def test_a_claim_that_no_decimal_gives_is_printed_as_a_double() -> None:
    assert str(PureDP(log(3))) == "1.0986122886681098-DP"
