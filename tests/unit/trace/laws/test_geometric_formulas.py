"""Geometric numbers that a formula makes from a uniform number."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from dpassay.trace.laws.number_laws import law_of, node_law
from dpassay.trace.watch.tracer import Tracer

A = math.exp(-0.7)

# P(number = least + k) = (1 − a)·a^k; the first number is the least.
MADE: dict[str, tuple[int, Callable[[float], float]]] = {
    "floor of log u": (0, lambda u: math.floor(math.log(u) / math.log(A))),
    "floor of log(1 - u)": (0, lambda u: math.floor(math.log(1 - u) / -0.7)),
    "int": (0, lambda u: int(math.log(u) / math.log(A))),
    "int of a floor": (0, lambda u: int(np.floor(np.log(1 - u) / -0.7))),
    "floor division": (0, lambda u: int(math.log(u) // math.log(A))),
    "cast array": (0, lambda u: (np.log(np.array([u])) / math.log(A)).astype(int)[0]),
    "ceiling": (1, lambda u: math.ceil(math.log(u) / math.log(A))),
}
OTHERS: dict[str, Callable[[float], float]] = {
    "whole uniform numbers": lambda u: math.floor(10 * u),
    "whole numbers of a square": lambda u: math.floor(math.log(u) ** 2),
    "a first step that is shorter": lambda u: math.floor(math.log(u) / math.log(A) + 0.3),
}


@pytest.mark.parametrize("name", MADE)
def test_a_geometric_number_is_recognized(name: str) -> None:
    least, make = MADE[name]
    run = Tracer(lambda x: x + make(random.random())).run(3)
    law = law_of(run.nodes[-1].draws[0])
    assert law is not None
    assert law.kind == "geometric"
    assert law.share == pytest.approx(1 - A, rel=1e-10)
    assert law.location.tolist() == [least - 1]


@pytest.mark.parametrize("name", OTHERS)
def test_other_whole_numbers_are_not(name: str) -> None:
    run = Tracer(lambda x: x + OTHERS[name](random.random())).run(3)
    assert law_of(run.nodes[-1].draws[0]) is None


def test_the_integer_of_a_sum_with_geometric_numbers_is_the_sum() -> None:
    drawn = lambda: math.log(random.random()) // math.log(A)  # noqa: E731
    law = node_law(Tracer(lambda x: int(x + drawn() - drawn())).run(3).nodes[-1])
    assert (str(law.kind), float(law.centre)) == ("discrete laplace", 3)
    assert float(law.scale) == pytest.approx(1 / 0.7)


@pytest.mark.parametrize(
    "subject",
    [
        lambda x: int(x + 0.5 + math.log(random.random()) // math.log(A)),
        lambda x: x + int(math.log(random.random()) / math.log(A) + 0.3),
        lambda x: x + int(10 * random.random()),
    ],
    ids=["a sum that is not whole", "a first step that is shorter", "whole uniform numbers"],
)
def test_other_integers_are_decisions(subject: Callable[[int], int]) -> None:
    assert [what for what, _ in Tracer(subject).run(3).handled] == ["a number with noise is cast to an integer"]
