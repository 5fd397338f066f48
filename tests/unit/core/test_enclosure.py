"""Enclosures against exact fractions, mpmath at 150 digits, and the sets that they stand for."""

import math
import operator
import pickle
from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.core import enclosure
from dpassay.core.enclosure import (
    PI,
    PRECISION,
    Number,
    atan2,
    ceiling,
    cos,
    decimal,
    erfc,
    exact_fraction,
    exp,
    floor,
    hull,
    log,
    more_digits,
    nearest,
    real,
    sin,
    sqrt,
)
from oracles import ends

quick = settings(derandomize=True, deadline=None, max_examples=300)
fractions = st.fractions(min_value=-(10**12), max_value=10**12, max_denominator=10**9)
small = st.fractions(min_value=-1, max_value=1, max_denominator=10**30)
values = st.one_of(fractions, small, st.integers(-3, 3).map(Fraction))
INF = real("inf")
ROUNDING = Fraction(1, 2 ** (PRECISION - 8))


@st.composite
def intervals(draw: st.DrawFn) -> tuple[Number, Fraction, Fraction]:
    """An enclosure, as a ball or by its ends, and the ends it was made of."""
    if draw(st.booleans()):
        value = draw(values)
        return real(value), value, value
    low, high = sorted((draw(values), draw(values)))
    return hull(real(low), real(high)), low, high


@quick
@given(intervals(), intervals(), st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv]))
def test_operations_enclose_what_their_arguments_may_give_and_little_more(first, second, operation):
    (one, low, high), (other, least, most) = first, second
    if operation is operator.truediv and least <= 0 <= most:
        return
    truths = [operation(x, y) for x in (low, (low + high) / 2, high) for y in (least, (least + most) / 2, most)]
    below, above = ends(operation(one, other))
    assert below <= min(truths)
    assert max(truths) <= above
    size = max(abs(low), abs(high), abs(least), abs(most), *map(abs, truths))
    assert above - below <= max(truths) - min(truths) + ROUNDING * size


@quick
@given(intervals(), st.integers(-5, 6))
def test_whole_powers(first, power):
    one, low, high = first
    if power < 0 and low <= 0 <= high:
        return
    inside = [low, high, (low + high) / 2, *([Fraction(0)] if low <= 0 <= high else [])]
    truths = [x**power for x in inside]
    below, above = ends(one**power)
    assert below <= min(truths)
    assert max(truths) <= above
    assert above - below <= max(truths) - min(truths) + ROUNDING * max(map(abs, truths))


INFINITE = {
    # what follows from sets of finite numbers: an infinite end is approached
    (operator.add, (1, "inf"), (2, 3)): (3, math.inf),
    (operator.add, ("inf", "inf"), ("-inf", "-inf")): (-math.inf, math.inf),
    (operator.sub, (1, "inf"), (1, "inf")): (-math.inf, math.inf),
    (operator.sub, ("-inf", 0), (1, 2)): (-math.inf, -1),
    (operator.mul, (0, 1), (1, "inf")): (0, math.inf),
    (operator.mul, (-1, 2), (1, "inf")): (-math.inf, math.inf),
    (operator.mul, (-2, -1), (3, "inf")): (-math.inf, -3),
    (operator.mul, (0, 0), ("inf", "inf")): (-math.inf, math.inf),
    (operator.truediv, (1, 2), (0, 1)): (1, math.inf),
    (operator.truediv, (1, 2), (-1, 0)): (-math.inf, -1),
    (operator.truediv, (1, 2), (-1, 1)): (-math.inf, math.inf),
    (operator.truediv, (1, 2), (0, 0)): (-math.inf, math.inf),
    (operator.truediv, (0, 0), (0, 1)): (-math.inf, math.inf),
    (operator.truediv, (1, 2), ("inf", "inf")): (0, 0),
    (operator.truediv, (1, "inf"), (1, 2)): (0.5, math.inf),
    (operator.truediv, (1, 3), (1, "inf")): (0, 3),
    (operator.truediv, (1, "inf"), (1, "inf")): (0, math.inf),
}


@pytest.mark.parametrize("case", INFINITE, ids=lambda case: f"{case[0].__name__} {case[1]} {case[2]}")
def test_infinite_ends(case):
    operation, one, other = case
    found = operation(real(list(one)), real(list(other)))
    assert (float(found.a), float(found.b)) == INFINITE[case]


@quick
@given(intervals(), intervals())
def test_comparisons_hold_where_they_hold_for_all_numbers(first, second):
    (one, low, high), (other, least, most) = first, second
    apart = max(abs(low), abs(high), abs(least), abs(most)) * ROUNDING
    for compared, certain, near in (
        (one < other, high < least, high + apart < least),
        (one <= other, high <= least, high + apart < least),
        (one > other, low > most, low - apart > most),
        (one >= other, low >= most, low - apart > most),
    ):
        assert not compared or certain
        assert compared or not near


FUNCTIONS = {
    "exp": (exp, mp.exp, st.floats(-300, 300)),
    "log": (log, mp.log, st.floats(1e-300, 1e300)),
    "sqrt": (sqrt, mp.sqrt, st.floats(0, 1e300)),
    "erfc": (erfc, mp.erfc, st.floats(-50, 50)),
    "sin": (sin, mp.sin, st.floats(-10, 10)),
    "cos": (cos, mp.cos, st.floats(-10, 10)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data())
def test_functions_against_mpmath(name, data):
    ours, theirs, where = FUNCTIONS[name]
    x, y = sorted((data.draw(where), data.draw(where)))
    with mp.workdps(150):
        truths = [theirs(mpf(z)) for z in (x, y)]
        points, wide = [ours(z) for z in (x, y)], ours(real([x, y]))
        for point, truth in zip(points, truths, strict=True):
            room = abs(truth) * mpf(10) ** -140 + mpf(10) ** -1000
            assert mpf(point.a) <= truth + room
            assert truth - room <= mpf(point.b)
            assert mpf(point.b) - mpf(point.a) <= (abs(truth) + (name in ("sin", "cos"))) * mpf(10) ** -50
            assert mpf(wide.a) <= truth + room
            assert truth - room <= mpf(wide.b)


def test_pi_and_angles():
    with mp.workdps(100):
        for found, truth in (
            (PI, mp.pi),
            (atan2(1, -2), mp.atan2(1, -2)),
            (atan2(real(0.5), real(3)), mp.atan2(0.5, 3)),
        ):
            assert mpf(found.a) <= truth <= mpf(found.b)
            assert found.delta < 1e-50


@pytest.mark.parametrize("power", ["1e3", "1e10", "1e60", "1e300"])
def test_powers_of_e_of_any_size(power):
    """Compared in logarithms, which have as many digits as the power has before its point and 40 more."""
    with mp.workdps(400):
        large, little = exp(power), exp(-real(power))
        assert 0 < little < 1 < large
        for found, truth in ((large, mpf(power)), (little, -mpf(power))):
            low, high = mp.log(mpf(found.a)), mp.log(mpf(found.b))
            assert low <= truth * (1 + mpf(10) ** -390) + 1
            assert abs(low / truth - 1) < mpf("1e-40")
            assert abs(high / truth - 1) < mpf("1e-40")
    beyond = exp(real(2) ** 30_000)
    assert float(beyond.a) == float(beyond.b) == math.inf
    assert not beyond.is_finite
    assert beyond.a.is_finite
    least = exp(-(real(2) ** 30_000))
    assert 0 <= least < real("1e-1000")
    assert exp("-inf") == 0
    assert exp("inf") == INF


def test_logarithms_and_roots_end_at_zero():
    assert log(0) == -INF
    assert log(real([0, 1])) == real(["-inf", 0])
    assert sqrt(real([0, 4])) == real([0, 2])
    assert erfc(real(["-inf", "inf"])) == real([0, 2])
    for function in (log, sqrt):
        with pytest.raises(ValueError, match="may be negative"):
            function(real([-1, 1]))


@quick
@given(values)
def test_reading_and_writing(value):
    found = real(value)
    assert nearest(real(float(value))) == float(value)
    assert floor(found) <= value <= ceiling(found)
    if value.denominator == 1:
        assert (floor(found), ceiling(found), exact_fraction(found)) == (value, value, value)
    assert abs(Fraction(decimal(found, 30)) - value) <= abs(value) * Fraction(1, 10**29)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert hash(again) == hash(found)


def test_what_is_no_number_is_refused():
    for wrong in (None, "a", "1 +/- 2", "", "0x10", object()):
        with pytest.raises((TypeError, ValueError)):
            real(wrong)
    with pytest.raises(ValueError, match="above"):
        real([2, 1])
    assert real("-1e-3") == -real("1e-3")
    assert real("+2") == 2


def test_fewer_digits_elsewhere_make_enclosures_wider_not_wrong():
    third = Fraction(1, 3)
    with flint.ctx.workprec(20):
        low, high = ends(real(1) / 3)
    assert low <= third <= high
    assert high - low > Fraction(1, 10**9)
    with more_digits():
        low, high = ends(real(1) / 3)
    assert low <= third <= high
    assert high - low < Fraction(1, 10**100)
    assert flint.ctx.prec == enclosure.PRECISION
