import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.core.enclosure import PRECISION
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    PI,
    ZERO,
    between,
    digits,
    down,
    exp,
    log,
    log_add,
    maximum,
    middle,
    minimum,
    number,
    real,
    up,
)
from dpassay.errors import InputError
from dpassay.pipeline.parser import evaluate
from oracles import ends, holds, read

quick = settings(derandomize=True, deadline=None, max_examples=200)
fractions = st.fractions(min_value=-(10**30), max_value=10**30, max_denominator=10**25)
doubles = st.floats(allow_nan=False, allow_infinity=False)


@quick
@given(fractions)
def test_a_fraction_is_enclosed(value):
    low, high = ends(number(value))
    assert low <= value <= high
    assert high - low <= abs(value) * Fraction(1, 10**49)


@quick
@given(doubles)
def test_a_float_is_read_as_the_decimal_it_prints_as(value):
    low, high = ends(number(value))
    assert low <= Fraction(repr(value)) <= high


@quick
@given(st.integers(-(10**90), 10**90))
def test_a_large_integer_is_enclosed_though_it_has_more_digits_than_we_carry(value):
    low, high = ends(number(value))
    assert low <= value <= high


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("bits", [1, PRECISION - 1, PRECISION, 1000])
def test_whole_numbers_are_exact(sign, bits):
    value = sign * (2**bits + 1)
    assert ends(real(value)) == (value, value)


@pytest.mark.parametrize(
    "text", ["0.1", "-0.1", "1e-400", "1e400", "3.14159265358979323846264338327950288419716939937510582"]
)
def test_text_is_enclosed(text):
    low, high = ends(number(text))
    assert low <= Fraction(text) <= high


def test_numpy_scalars_are_numbers():
    assert number(np.float64(0.5)) == number("0.5")
    assert number(np.int64(7)) == number(7)
    assert ends(number(np.float64(0.1))) == ends(number("0.1"))


@pytest.mark.parametrize(
    "value", [None, True, "abc", "", "nan", float("nan"), np.float64("nan"), [1, 2], np.array([1.0, 2.0]), 1j, object()]
)
def test_what_is_no_number_is_refused_in_a_sentence(value):
    with pytest.raises(InputError, match="expected a number"):
        number(value)


@quick
@given(fractions)
def test_down_and_up_are_the_nearest_doubles_outward(value):
    enclosed = number(value)
    low, high = ends(enclosed)
    below, above = down(enclosed), up(enclosed)
    assert Fraction(below) <= low
    assert high <= Fraction(above)
    assert Fraction(math.nextafter(below, math.inf)) > low
    assert Fraction(math.nextafter(above, -math.inf)) < high


@quick
@given(st.integers(1, 10**20), st.integers(290, 345), st.booleans())
def test_rounding_is_outward_at_the_bottom_of_the_doubles(mantissa, power, negative):
    value = Fraction(mantissa, 10**power) * (-1 if negative else 1)
    assert Fraction(down(number(value))) <= value <= Fraction(up(number(value)))


def test_rounding_is_outward_beyond_the_doubles():
    largest, smallest = math.nextafter(math.inf, 0), math.nextafter(0.0, 1)
    assert (down(number("1e400")), up(number("1e400"))) == (largest, math.inf)
    assert (down(number("-1e400")), up(number("-1e400"))) == (-math.inf, -largest)
    assert (down(number("1e-400")), up(number("1e-400"))) == (0.0, smallest)
    assert (down(number("-1e-400")), up(number("-1e-400"))) == (-smallest, 0.0)
    assert (down(INFINITY), up(INFINITY)) == (math.inf, math.inf)
    assert (down(between(ONE, INFINITY)), up(between(ONE, INFINITY))) == (1.0, math.inf)


def test_zero_has_no_sign():
    assert math.copysign(1, down(ZERO)) == math.copysign(1, up(ZERO)) == 1


@quick
@given(fractions)
def test_the_middle_is_a_near_double(value):
    assert abs(Fraction(middle(number(value))) - value) <= abs(value) * Fraction(1, 2**52)


@quick
@given(fractions, st.integers(-400, 400))
def test_digits_enclose_and_lose_little(value, power):
    value *= Fraction(10) ** power
    low, high = digits(number(value))
    assert Fraction(low) <= value <= Fraction(high)
    assert Fraction(high) - Fraction(low) <= abs(value) * Fraction(1, 10**42)


@quick
@given(fractions, fractions)
def test_digits_of_a_wide_interval_enclose_both_ends(one, other):
    low, high = digits(between(number(min(one, other)), number(max(one, other))))
    assert Fraction(low) <= min(one, other)
    assert max(one, other) <= Fraction(high)


def test_digits_are_read_back_by_number():
    for value in (PI, exp(100), -log(3), ZERO, number("1e-500")):
        low, high = digits(value)
        assert ends(number(low))[1] >= Fraction(low)
        assert ends(number(low))[0] <= ends(value)[0]
        assert ends(number(high))[1] >= ends(value)[1]


def test_digits_of_infinity():
    assert digits(INFINITY) == ("inf", "inf")
    low, high = digits(between(ONE, INFINITY))
    assert Fraction(low) <= 1
    assert high == "inf"


@quick
@given(fractions, fractions, fractions)
def test_maximum_minimum_and_between(a, b, c):
    values = [number(x) for x in (a, b, c)]
    for enclosed, truth in ((maximum(*values), max(a, b, c)), (minimum(*values), min(a, b, c))):
        low, high = ends(enclosed)
        assert low <= truth <= high
    low, high = ends(between(minimum(*values), maximum(*values)))
    assert all(low <= x <= high for x in (a, b, c))


@quick
@given(st.floats(-1e7, 1e7), st.floats(-1e7, 1e7))
def test_log_add_against_mpmath(a, b):
    with mp.workdps(90):
        first, second = read(a), read(b)
        truth = max(first, second) + mp.log1p(mp.exp(-abs(first - second)))
        assert holds(log_add(number(a), number(b)), truth, digits=80)


def test_log_add_of_equal_numbers_is_a_log_of_two_more():
    with mp.workdps(90):
        assert holds(log_add(number(10**6), number(10**6)), mpf(10**6) + mp.log(2), digits=80)


EXPRESSIONS = [
    "0.3/0.3",
    "0.1*3/0.3",
    "1/3",
    "1/3*3",
    "0.7 - 0.1*7",
    "(0.3/7 + 0.3/7)*7",
    "-(0.2^3)/0.008",
    "2/0.1^2 - 1e-60",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_formulas_of_decimals_are_exact(text):
    """Python's fractions say what the value is; an integer has no width."""
    decimals = re.sub(r"[0-9.]+(e-?[0-9]+)?", lambda found: f"Fraction('{found[0]}')", text)
    truth = eval(decimals.replace("^", "**"), {"Fraction": Fraction})
    found = evaluate(text, {})
    assert found == number(Fraction(truth))
    assert (found.delta == 0) == (truth.denominator & (truth.denominator - 1) == 0)


@pytest.mark.parametrize(
    ("text", "truth"), [("2*pi/pi", 2), ("sqrt(2)*3/sqrt(2)", 3), ("D/D", 1), ("sqrt(0.09)/0.3", 1)]
)
def test_what_has_a_name_cancels(text, truth):
    found = evaluate(text, {"D": "0.3"})
    assert found.delta == 0
    assert found == truth


def test_equal_enclosures_of_different_numbers_are_different():
    one, other = number("0.3"), number("0.3" + "0" * 70 + "1")
    assert one.a == other.a
    assert one != other
    assert hash(one) == hash(number("0.30"))
    assert (one / other).delta > 0


@pytest.mark.parametrize("text", ["0.3", "1e-7", "-0.25", "1.0000000000000000000000000000001", "123.456"])
def test_decimals_are_written_as_they_are(text):
    assert [Fraction(end) for end in digits(number(text))] == [Fraction(text)] * 2
