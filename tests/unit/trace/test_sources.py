"""All sources of randomness are seen during a run, with the line, and left alone after it."""

import os
import random
import secrets
from typing import Any

import numpy as np
from numpy.random import default_rng, normal

from dpassay.trace.record import Run
from dpassay.trace.sources import watch

held = np.random.default_rng(3)


class Holder:
    """Has a generator of each kind."""

    def __init__(self) -> None:
        self.many = {"new": [np.random.default_rng(1)], "old": np.random.RandomState(1)}

    def draw(self) -> list[Any]:
        return [self.many["new"][0].laplace(), self.many["old"].normal()]  # type: ignore[index]


def seen(subject: Any) -> Run:
    run = Run(0)
    with watch(run, subject):
        subject()
    return run


def test_every_source_is_seen_with_its_line() -> None:
    rng = np.random.default_rng(0)

    def subject() -> None:
        rng.laplace(scale=2, size=(2, 3))
        held.normal(1.0, 5.0)
        default_rng(7).exponential(3)
        np.random.Generator(np.random.PCG64(1)).integers(0, 5, 2)
        normal(size=2)
        np.random.RandomState(1).uniform(-1, 1)
        random.gauss(0, 4)
        random.Random(1).random()

    draws = seen(subject).draws
    named = ["laplace", "normal", "exponential", "integers", "normal", "uniform", "gauss", "random"]
    assert [draw.distribution for draw in draws] == named
    assert [draw.place.line - draws[0].place.line for draw in draws] == list(range(8))
    assert {draw.place.file for draw in draws} == {__file__}
    assert draws[0].parameters == {"loc": 0.0, "scale": 2}
    assert draws[0].shape == (2, 3)
    assert draws[1].parameters == {"loc": 1.0, "scale": 5.0}


def test_generators_in_objects_are_seen() -> None:
    assert [draw.distribution for draw in seen(Holder().draw).draws] == ["laplace", "normal"]


def test_sources_that_cannot_be_followed_are_named() -> None:
    run = seen(lambda: (os.urandom(4), secrets.randbits(8), secrets.token_bytes(2)))
    assert {name for name, _ in run.opaque} >= {"os.urandom", "secrets.randbits", "secrets.token_bytes"}


def test_everything_is_put_back() -> None:
    before = (np.random.default_rng, np.random.normal, np.random.mtrand._rand, random.gauss, os.urandom, held)
    methods = dict(vars(random.Random))
    seen(lambda: np.random.normal())
    assert before == (np.random.default_rng, np.random.normal, np.random.mtrand._rand, random.gauss, os.urandom, held)
    assert dict(vars(random.Random)) == methods


def test_a_run_can_be_given_other_values() -> None:
    run = Run(0, {0: np.array([1.0, 2.0])})
    with watch(run, None):
        values = np.random.default_rng().laplace(size=2)
    assert values.tolist() == [1.0, 2.0]
