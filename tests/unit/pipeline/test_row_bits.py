"""Rows written in bits: two neighbours differ in one person's bits, and in how many of them."""

import itertools
import math
import random

import pytest

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, number, up
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import RowBits
from dpassay.pipeline.stages.binary import farthest_strings


def written(sign: int, value: int, length: int) -> str:
    return str(sign) + "".join(str(value >> i & 1) for i in reversed(range(length - 1)))


def differing(first: str, second: str) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def test_farthest_strings_against_all_pairs() -> None:
    rng = random.Random(0)
    for _ in range(300):
        bits = rng.randint(0, 5)
        top = 2**bits - 1
        if rng.random() < 0.5:
            low, high = sorted(rng.randint(0, top) for _ in range(2))
            ranges = [(rng.randint(0, 1), low, high)]
        else:
            ranges = [(sign, 0, rng.randint(0, top)) for sign in (0, 1)]
        strings = {written(sign, k, bits + 1) for sign, low, high in ranges for k in range(low, high + 1)}
        found = farthest_strings(ranges, bits + 1)
        assert set(found) <= strings
        assert differing(*found) == max(differing(a, b) for a, b in itertools.product(strings, strings)), ranges


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("rows", 5),
        ("rows | clamp(0, 1)", 3),  # 0 01 00 and 0 00 11
        ("rows | clamp(-1, 1)", 4),  # 0 01 00 and 1 00 11
        ("rows | clamp(0, 100)", 4),  # no sign
        ("rows | clamp(-100, 100)", 5),
        ("rows | clamp(-1, 0)", 3),  # 1 00 11 and 1 01 00; 0 itself has no minus
        ("rows | clamp(0.3, 0.4)", 0),
        ("rows | clamp(-2, 5) | clamp(0, 1)", 3),
    ],
)
def test_one_persons_bits(text: str, bits: int) -> None:
    found = analyse(parse(f"{text} | binary(2, 2) | flip(0.9)", 4), Neighbours("replace-record"))
    truth = bits * math.log(9)
    assert down(found.pure) == pytest.approx(truth, rel=1e-12, abs=0)
    assert up(found.pure) == pytest.approx(truth, rel=1e-12, abs=0)
    # Bits kept with probability 0.9, one by one: δ(0) is the total variation distance of two binomials.
    total = sum(
        math.comb(bits, k) * max(0.0, 0.9**k * 0.1 ** (bits - k) - 0.1**k * 0.9 ** (bits - k)) for k in range(bits + 1)
    )
    assert down(found.delta(number(0))) == pytest.approx(total, rel=1e-12, abs=1e-15)
    assert up(found.delta(number(0))) == pytest.approx(total, rel=1e-12, abs=1e-15)


def test_limits_that_are_never_reached_bound_from_above_only() -> None:
    # tanh stays below 1: from −0.75 to 0.75 and beyond, but never 1.00.
    found = analyse(parse("rows | squash(tanh) | binary(2, 2) | flip(0.9)", 4), Neighbours("replace-record"))
    assert down(found.pure) <= 3 * math.log(9) * (1 + 1e-12)
    assert up(found.pure) >= 3 * math.log(9)


def test_many_people_take_no_longer() -> None:
    found = analyse(parse("rows | binary(2, 2) | bits(0.9, 0.8, 0.1)", 1_000_000), Neighbours("replace-record"))
    # Three bits at positions of one parity and two of the other: ln 9 at even, ln 8 at odd positions.
    assert up(found.pure) == pytest.approx(3 * math.log(9) + 2 * math.log(8), rel=1e-12)
    assert down(found.pure) == pytest.approx(3 * math.log(9) + 2 * math.log(8), rel=1e-12)


@pytest.mark.parametrize(("first", "second"), [("11", "000"), ("12", "00"), ("111", "000")])
def test_strings_that_do_not_fit_are_refused(first: str, second: str) -> None:
    with pytest.raises(InputError, match="one person's bits"):
        RowBits(4, first, second)
