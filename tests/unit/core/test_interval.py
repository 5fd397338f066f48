import math
import operator
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpassay.core.interval import Interval, outward
from dpassay.core.numbers import INFINITY, ONE, between, number
from dpassay.errors import AmbiguousError, InputError

quick = settings(derandomize=True, deadline=None, max_examples=300)
doubles = st.floats(allow_nan=False, allow_infinity=False)


@quick
@given(st.fractions(max_denominator=10**20))
def test_around_rounds_outward(value):
    interval = Interval.around(number(value))
    assert Fraction(interval.lower) <= value <= Fraction(interval.upper)
    assert interval.upper <= math.nextafter(math.nextafter(interval.lower, math.inf), math.inf)


def test_around_infinite_numbers():
    assert Interval.around(INFINITY) == Interval(math.inf, math.inf)
    assert Interval.around(between(ONE, INFINITY)) == Interval(1.0, math.inf)


def test_around_names_one_source_for_both_ends():
    assert Interval.around(ONE, "here").upper_from == "here"
    assert Interval.around(ONE, "here", "there").upper_from == "there"


@pytest.mark.parametrize("pair", [(1, 0), (math.nan, 1), (0, math.nan), (math.nan, math.nan), (math.inf, -math.inf)])
def test_ends_in_the_wrong_order_are_refused(pair):
    with pytest.raises(InputError, match="lower <= upper"):
        Interval(*pair)


def test_width():
    assert Interval(1.0, 3.0).width == 2
    assert Interval(math.inf, math.inf).width == 0
    assert Interval(1.0, math.inf).width == math.inf


def test_contains_its_ends():
    interval = Interval(1.0, 3.0)
    assert 1 in interval
    assert 3 in interval
    assert 0.999 not in interval
    assert 3.001 not in interval


@quick
@given(doubles)
def test_printing_rounds_outward_to_ten_digits(value):
    low, high = outward(value, -1), outward(value, 1)
    assert Fraction(low) <= Fraction(value) <= Fraction(high)
    for text in (low, high):
        assert len(text.split("e")[0].replace("-", "").replace(".", "").lstrip("0").rstrip("0")) <= 10
    if value:
        assert Fraction(high) - Fraction(low) <= abs(Fraction(value)) * Fraction(1, 10**8)


def test_printing_infinities():
    assert outward(math.inf, 1) == "inf"
    assert outward(-math.inf, -1) == "-inf"


@quick
@given(doubles, doubles)
def test_the_printed_interval_contains_the_interval(one, other):
    assume(one != other)
    interval = Interval(min(one, other), max(one, other))
    ends = str(interval).strip("[]").split(", ")
    assert Fraction(ends[0]) <= Fraction(interval.lower)
    assert Fraction(interval.upper) <= Fraction(ends[-1])


@pytest.mark.parametrize("value", [1 / 3, math.pi * 1e6, 5e-324])
def test_a_point_is_not_printed_as_a_number_that_it_is_not(value):
    ends = str(Interval(value, value)).strip("[]").split(", ")
    assert Fraction(ends[0]) <= Fraction(value) <= Fraction(ends[-1])


def test_infinite_points_are_printed_with_their_sign():
    assert str(Interval(math.inf, math.inf)) == "inf"
    assert str(Interval(-math.inf, -math.inf)) == "-inf"
    low, high = str(Interval(0.5, math.inf)).strip("[]").split(", ")
    assert (Fraction(low), high) == (Fraction(1, 2), "inf")


@quick
@given(doubles, doubles, doubles, doubles, st.sampled_from(["lt", "le", "gt", "ge"]), st.booleans())
def test_a_comparison_is_answered_where_every_point_agrees(a, b, c, d, name, plain):
    one = Interval(min(a, b), max(a, b))
    other = Interval(c, c) if plain else Interval(min(c, d), max(c, d))
    compare = getattr(operator, name)
    answers = {compare(x, y) for x in (one.lower, one.upper) for y in (other.lower, other.upper)}
    if len(answers) == 1:
        assert {compare(one, c if plain else other)} == answers
    else:
        with pytest.raises(AmbiguousError):
            compare(one, c if plain else other)


def test_numbers_may_stand_first():
    assert operator.lt(2, Interval(3.0, 4.0))
    assert Fraction(9, 2) >= Interval(3.0, 4.0)
    assert math.inf > Interval(3.0, 4.0)
    assert Interval(3.0, math.inf) <= math.inf


@pytest.mark.parametrize(
    ("compare", "message"),
    [
        (lambda i: i > 2, r"^whether \[1, 3\] > 2 is not known: ask \.lower > 2 .*\.upper > 2"),
        (lambda i: i <= 2, r"^whether \[1, 3\] <= 2 is not known: ask \.upper <= 2 .*\.lower <= 2"),
        (lambda i: i < Interval(2, 5), r"^whether \[1, 3\] < \[2, 5\] is not known: ask \.upper < 2 .*\.lower < 5"),
    ],
)
def test_what_is_not_certain_is_refused(compare, message):
    with pytest.raises(AmbiguousError, match=message):
        compare(Interval(1.0, 3.0))


def test_what_is_no_number_is_not_compared():
    with pytest.raises(TypeError):
        _ = Interval(1.0, 3.0) < "2"
    with pytest.raises(InputError):
        _ = Interval(1.0, 3.0) < math.nan


def test_repr_is_short_and_can_be_read_back():
    interval = Interval(0.1, math.inf, "a witness", "nothing")
    assert repr(interval) == "Interval(0.1, inf)"
    assert eval(repr(Interval(0.1, 0.3))) == Interval(0.1, 0.3)


def test_where_the_ends_come_from_does_not_make_two_intervals_differ():
    assert Interval(1, 2, "a pair", "a theorem") == Interval(1, 2)
    assert hash(Interval(1, 2, "a pair")) == hash(Interval(1, 2))
