"""Responses whose lies are drawn beforehand: two numbers decide each part, and nothing false is said of it."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.trace.laws.coordinatewise import Coordinates, laws_that_differ
from dpassay.trace.laws.jointly import jointly_of
from dpassay.trace.session import trace
from dpassay.trace.watch.tracer import Tracer

WORDS = ["a", "b", "c", "d"]


def masked(values: list[int], rng: Any) -> Any:
    """Each is kept with probability 4/5, otherwise any of four: 4/5 + 1/20 or 1/20."""
    keep, other = rng.random(len(values)) < 0.8, rng.integers(0, 4, len(values))
    return np.where(keep, np.array(values), other)


def lies_first(text: str) -> str:
    lies = [random.choice(WORDS) for _ in text.split()]
    keep = [random.random() < 0.8 for _ in text.split()]
    return " ".join(one if its else lie for one, lie, its in zip(text.split(), lies, keep, strict=True))


def shifted_lies(values: list[int], rng: Any) -> Any:
    """The true value with probability 4/5, otherwise one of the three others."""
    lies = rng.integers(0, 3, len(values))
    return np.where(rng.random(len(values)) < 0.8, np.array(values), lies + (lies >= np.array(values)))


def two_coins(bits: list[int], rng: Any) -> Any:
    """Warner: the bit with probability 3/4."""
    honest, other = rng.integers(0, 2, len(bits)), rng.integers(0, 2, len(bits))
    return honest * np.array(bits) + (1 - honest) * other


PROGRAMS = [
    (masked, ([0, 1, 2, 3], [1, 1, 2, 3]), math.log(17)),
    (lies_first, ("a b c", "d b c"), math.log(17)),
    (shifted_lies, ([0, 1, 2], [3, 1, 2]), math.log(12)),
    (two_coins, ([1, 0, 1, 1], [0, 0, 1, 1]), math.log(3)),
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(("subject", "pair", "truth"), PROGRAMS, ids=[one[0].__name__ for one in PROGRAMS])
def test_the_loss_is_that_of_what_two_numbers_decide(
    subject: Callable[..., Any], pair: tuple[Any, Any], truth: float
) -> None:
    found = []
    for x in pair:
        tracer = Tracer(subject, 0)
        found.append(jointly_of(tracer, x, 400))
        assert isinstance(found[-1], Coordinates)
        assert not any(found[-1].difference(tracer.run(x, key=(9, k))) for k in range(60))
    ((p, q),) = laws_that_differ(found[0], found[1]) or []
    assert max(abs(math.log(p[key] / q[key])) for key in p) == pytest.approx(truth, rel=1e-9)


def test_a_true_claim_is_bounded_and_a_false_one_is_explained_by_the_true_loss() -> None:
    right = trace(two_coins, pairs=[([1, 0, 1, 1], [0, 0, 1, 1])], epsilon=1.2, hostile=False)
    assert right.verdict.open
    assert right.pair_epsilon.upper == pytest.approx(math.log(3))
    wrong = trace(lies_first, pairs=[("a b c", "d b c")], epsilon=1, hostile=False)
    assert wrong.verdict.refuted
    assert "ε = 2.83321" in wrong.verdict.reason
    assert "∞" not in wrong.verdict.reason


def test_a_coin_that_all_share_is_seen() -> None:
    def together(bits: list[int], rng: Any) -> list[int]:
        u = rng.random(3)
        return [int(one < 0.5) if u[2] < 0.5 else bit for one, bit in zip(u, bits, strict=False)]

    tracer = Tracer(together, 0)
    found = jointly_of(tracer, [1, 0], 400)
    assert found is not None
    assert not any(found.difference(tracer.run([1, 0], key=(9, k))) for k in range(60))
    assert len([one for one in found.decided if one.where]) == 1


def test_numbers_that_are_drawn_only_sometimes_are_not_taken_for_a_table() -> None:
    def sometimes(bit: int, rng: Any) -> int:
        return bit if rng.random() < 0.5 else int(rng.random() < 0.5)

    assert jointly_of(Tracer(sometimes, 0), 1, 400) is None
