"""Noise that has a piece of its density on each path: signs and branches that are drawn."""

import math
import random
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.trace.natural.failing import WatchedTooLong
from dpassay.trace.replay.pieces import Half, Piece, Pieces, learned_pieces, sites_of
from dpassay.trace.watch.tracer import Tracer

PAIR = (3.0, 4.0)


def inverse_with_branches(x: float) -> float:
    u = random.random()
    if u < 0.5:
        return x + math.log(2 * u)
    return x - math.log(2 * (1 - u))


def sign_of_the_uniform_number(x: float) -> float:
    u = random.random() - 0.5
    sign = 1 if u >= 0 else -1
    return round(x - sign * math.log(1 - 2 * abs(u)), 2)


def sign_after_the_size(x: float) -> float:
    size = random.expovariate(1.0)
    if random.random() < 0.5:
        size = -size
    return max(0.0, x + size)


def biased_sign(x: float, rng: np.random.Generator) -> float:
    return x + (1 if rng.random() < 0.7 else -1) * rng.exponential(1.0)


def of_two_scales(x: float) -> float:
    """Density 0.4·e^z below and 1.2·e^(−2z) above 0."""
    u = random.random()
    if u < 0.4:
        return x + math.log(u / 0.4)
    return x - math.log((1 - u) / 0.6) / 2


def sign_of_the_input(x: float) -> float:
    size = random.expovariate(1.0)
    return x + (size if random.random() < (0.9 if x < 3.5 else 0.1) else -size)


def two_numbers(x: float, rng: np.random.Generator) -> list[float]:
    def noise() -> float:
        return rng.exponential(1.0) if rng.random() < 0.5 else -rng.exponential(1.0)

    return [x + noise(), 2 * x + noise()]


TRUE: list[tuple[Any, float]] = [
    (inverse_with_branches, 1.0),
    (sign_of_the_uniform_number, 1.0),
    (sign_after_the_size, 1.0),
    (biased_sign, 1 + math.log(7 / 3)),
    # Above both the larger loses 2; between them 1.2·e^(−2(v−3)) is largest against 0.4·e^(v−4) at v = 3.
    (of_two_scales, 1 + math.log(3)),
    # Above both ln(0.9/0.1) − 1; between them the densities are 0.9·e^(−(v−3)) and 0.9·e^(v−4), 1 apart.
    (sign_of_the_input, math.log(9) - 1),
    (two_numbers, 3.0),
]


@pytest.mark.parametrize(("program", "true"), TRUE, ids=lambda one: getattr(one, "__name__", ""))
def test_the_loss_of_pieces_is_that_of_their_densities(program: Any, true: float) -> None:
    pieces = learned_pieces(Tracer(program), PAIR)
    assert pieces is not None
    assert float(pieces.epsilon.mid) == pytest.approx(true, rel=1e-12)


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("program", "true"), TRUE[2:4], ids=lambda one: getattr(one, "__name__", ""))
def test_right_code_is_bounded_and_wrong_code_is_not(program: Any, true: float) -> None:
    right = dpassay.trace(program, pairs=[PAIR], epsilon=true * 1.0001, hostile=False, time="60s")
    assert right.pair_epsilon.upper == pytest.approx(true, rel=1e-6), right.verdict.reason
    assert dpassay.trace(program, pairs=[PAIR], epsilon=0.5 * true, hostile=False, time="60s").verdict.refuted


def raw_in_a_part(x: float) -> float:
    u = random.random()
    if u < 0.4:
        return x + math.log(u / 0.4)
    return x


def something_else_in_a_part(x: float) -> float:
    u = random.random()
    noise = math.log(2 * u) if u < 0.5 else -math.log(2 * (1 - u))
    return x + noise if u > 0.001 else 2 * x + noise


def one_noise_for_two(x: float) -> list[float]:
    size = random.expovariate(1.0)
    noise = size if random.random() < 0.5 else -size
    return [x + noise, 2 * x + noise]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("program", [raw_in_a_part, something_else_in_a_part, one_noise_for_two])
def test_leaks_beside_the_pieces_give_no_bound(program: Any) -> None:
    result = dpassay.trace(program, pairs=[PAIR], epsilon=9, hostile=False)
    assert result.pair_epsilon.upper == math.inf


def test_a_sum_of_pieces_that_is_not_1_is_not_used() -> None:
    def rarely(x: float) -> float:
        size = random.expovariate(1.0)
        return x + size if random.random() < 1 - 1e-9 else x

    assert learned_pieces(Tracer(rarely), PAIR) is None


def test_a_number_of_the_wrong_piece_is_noticed() -> None:
    tracer = Tracer(biased_sign)
    pieces = learned_pieces(tracer, PAIR)
    assert pieces is not None
    run = tracer.run(PAIR[0], key=(0, 1))
    run.key = (0, 1)
    assert pieces.judged(tracer, PAIR, 0, run) == ""
    swapped = {
        path: Piece(one.coins, one.base, one.span, one.law, one.offset + 1, one.factor)
        for path, one in pieces.sides[0][0].items()
    }
    wrong = Pieces(([swapped], pieces.sides[1]))
    assert wrong.judged(tracer, PAIR, 0, run) != ""


def test_time_that_is_over_is_no_difference() -> None:
    tracer = Tracer(biased_sign)
    pieces = learned_pieces(tracer, PAIR)
    assert pieces is not None
    run = tracer.run(PAIR[0], key=(0, 1))
    run.key, tracer.until = (0, 1), -math.inf
    with pytest.raises(WatchedTooLong):
        pieces.judged(tracer, PAIR, 0, run)


def test_the_halves_of_a_path() -> None:
    (site,) = sites_of(Tracer(inverse_with_branches).run(3.0)) or ()
    (half,) = site.piece.halves
    assert half == Half(0.5, 3.0, half.scale)
    assert abs(half.scale) == pytest.approx(1.0)
