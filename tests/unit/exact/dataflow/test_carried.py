"""Pairs through stages that jump: compared with fractions, and never guessed next to a jump."""

from fractions import Fraction

import pytest

from dpassay.core.numbers import ZERO, number, real
from dpassay.exact.dataflow.carried import carried
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.parser import parse


def image(text: str, x: str, dim: int = 1) -> list[float] | None:
    """The image of (x, …, x) under the stages of a text."""
    found = carried(parse(text, dim=dim).stages, Pair((Block(number(x), ZERO, dim),)))
    return None if found is None else found.first.tolist()


@pytest.mark.parametrize(
    "value", ["0.5", "1.5", "2.5", "-0.5", "-1.5", "1.49999999999999999999", "2.5000000000000000001"]
)
def test_rounding_goes_to_the_even_integer_at_a_tie_only(value):
    assert image("round", value) == [float(round(Fraction(value)))]  # Python's rule for fractions


def test_what_is_clipped_lies_on_the_right_side():
    assert image("clip(linf, 1.5) | round", "9") == [2.0]
    assert image("clip(linf, 1.5 - 1e-17) | round", "9") == [1.0]
    assert image("clip(linf, 0.3*5) | round", "9") == [2.0]
    assert image("clip(linf, 2.5 + 1e-30) | round", "9") == [3.0]


def test_nothing_is_said_if_both_sides_are_possible():
    value = real(["1.5", "1.50000000000000000000000000000000000000001"])  # 1.5 becomes 2, and so does anything above
    assert carried(parse("round", dim=1).stages, Pair((Block(value, ZERO, 1),))).first.tolist() == [2.0]
    value = real(["0.5", "0.50000000000000000000000000000000000000001"])  # 0.5 becomes 0
    assert carried(parse("round", dim=1).stages, Pair((Block(value, ZERO, 1),))) is None
    around_zero = real(["-1e-40", "1e-40"])  # the sign is a bit
    assert carried(parse("binary(1, 1)", dim=1).stages, Pair((Block(around_zero, ZERO, 1),))) is None


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        ("2.5", "0101"),
        ("-2.5", "1101"),
        ("2.4999999999999999999999", "0100"),
        ("3.9", "0111"),
        ("9", "0111"),
        ("0", "0000"),
    ],
)
def test_bits_are_those_of_the_number(value, bits):
    assert image("binary(2, 1)", value) == [float(bit) for bit in bits]


def test_bits_of_several_coordinates_come_in_order():
    pair = Pair((Block(number(1), ZERO, 2), Block(ZERO, number(3), 1)))
    found = carried(parse("binary(2, 0)", dim=3).stages, pair)
    assert found.first.tolist() == [0, 0, 1, 0, 0, 1, 0, 0, 0]
    assert found.second.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1]
