"""A method that draws has its usual law only if nothing that it relies on was overridden, assigned or replaced."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.trace.session import trace

ORIGINAL = random.Random.random


class Odd(random.Random):
    """Python's documented way to change a generator: here all its whole numbers are odd."""

    def getrandbits(self, k: int) -> int:
        return super().getrandbits(k) | 1


class Small(random.Random):
    """Numbers that are below ½ with probability √½."""

    def random(self) -> float:
        return super().random() ** 2


class Counting(random.Random):
    """A subclass with the usual numbers."""

    drawn = 0

    def random(self) -> float:
        self.drawn += 1
        return super().random()


class SmallOfSystem(random.SystemRandom):
    def random(self) -> float:
        return super().random() ** 2


class Guarded(random.Random):
    def __getattribute__(self, name: str) -> Any:
        return (lambda k: 1) if name == "getrandbits" else super().__getattribute__(name)


def shuffled(x: int, generator: random.Random) -> int:
    truths = [1, 1, 1, 0]
    generator.shuffle(truths)
    return x if truths[0] else 1 - x


def by_shuffle(x: int) -> int:
    return shuffled(x, Odd())


def by_sample(x: int) -> int:
    return x if Odd().sample(range(4), 1)[0] else 1 - x


def by_choices(x: int) -> int:
    return x if Small().choices([1, 0], [3, 1])[0] else 1 - x


def by_the_system(x: int) -> int:
    return x if SmallOfSystem().choices([1, 0], [3, 1])[0] else 1 - x


def by_gauss(x: int) -> float:
    return x + Small().gauss(0, 3)


def by_exponential_numbers(x: int) -> float:
    generator = Small()
    return x + generator.expovariate(1) - generator.expovariate(1)


def by_an_assigned_method(x: int) -> int:
    generator = random.Random()
    generator.random = lambda: ORIGINAL(generator) ** 2  # type: ignore[method-assign]
    return x if generator.choices([1, 0], [3, 1])[0] else 1 - x


def by_attribute(x: int) -> int:
    return shuffled(x, Guarded())


def by_a_class_made_inside(x: int) -> int:
    class Own(np.random.RandomState):
        def random_sample(self, size: Any = None) -> Any:
            return super().random_sample(size) ** 2

    return x if Own().choice([1, 0], p=[0.75, 0.25]) else 1 - x


@pytest.mark.parametrize(
    "subject",
    [
        *(by_shuffle, by_sample, by_choices, by_the_system, by_gauss, by_exponential_numbers),
        *(by_an_assigned_method, by_attribute, by_a_class_made_inside),
    ],
)
def test_what_relies_on_an_overridden_method_gives_no_bound(subject: Callable[..., Any]) -> None:
    result = trace(subject, pairs=[(0, 1)], epsilon=4, delta=0.01, hostile=False)
    assert math.isinf(result.pair_epsilon.upper)


def counted(x: int) -> int:
    return x if Counting().random() < 0.75 else 1 - x


def squared(x: int) -> int:
    return x if Small().random() < 0.75 else 1 - x


def independent(x: int) -> int:
    """What draws from `random` alone is as usual where only `getrandbits` is overridden."""
    return x if Odd().choices([1, 0], [3, 1])[0] else 1 - x


@pytest.mark.parametrize(
    ("subject", "truth"),
    [(counted, math.log(3)), (squared, math.log(0.75**0.5 / (1 - 0.75**0.5))), (independent, math.log(3))],
)
def test_what_the_override_draws_itself_is_followed(subject: Callable[..., Any], truth: float) -> None:
    result = trace(subject, pairs=[(0, 1)], epsilon=2, hostile=False, time=6)
    assert result.pair_epsilon.upper == pytest.approx(truth, rel=1e-9)


def by_the_shared_one(x: int) -> int:
    return x if random.choices([1, 0], [3, 1])[0] else 1 - x


def test_a_replaced_method_of_pythons_class_gives_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random.Random, "random", lambda self: ORIGINAL(self) ** 2, raising=False)
    result = trace(by_the_shared_one, pairs=[(0, 1)], epsilon=3, hostile=False)
    assert math.isinf(result.pair_epsilon.upper)


def coin(x: int) -> int:
    return x if random.random() < 0.75 else 1 - x


def test_a_replaced_function_of_a_module_gives_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    own = random.random
    monkeypatch.setattr(random, "random", lambda: own() ** 2)
    result = trace(coin, pairs=[(0, 1)], epsilon=3, hostile=False)
    assert math.isinf(result.pair_epsilon.upper)


def noisy(x: float) -> Any:
    return x + np.random.default_rng().laplace()


def test_a_replaced_maker_of_generators_gives_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    own = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: own(random.randrange(3)))
    result = trace(noisy, pairs=[(0.0, 1.0)], epsilon=3, hostile=False)
    assert math.isinf(result.pair_epsilon.upper)


class AlwaysFirst(random.Random):
    """A generator that starts at the same place unless it is told where."""

    def seed(self, a: Any = None, version: int = 2) -> None:
        super().seed(7 if a is None else a)


class Words(np.random.SeedSequence):
    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return np.full(n_words, 3, dtype)


FIRST, WORDS = AlwaysFirst(), np.random.default_rng(Words())


def by_first(x: float) -> float:
    return x + FIRST.expovariate(1) - FIRST.expovariate(1)


def by_words(x: float) -> Any:
    return x + WORDS.laplace()


@pytest.mark.parametrize("subject", [by_first, by_words])
def test_a_class_that_seeds_generators_in_its_own_way_gives_no_bound(subject: Callable[..., Any]) -> None:
    result = trace(subject, pairs=[(0.0, 1.0)], epsilon=2, hostile=False)
    assert math.isinf(result.pair_epsilon.upper)


def test_a_distribution_of_torch_with_an_overridden_scale_gives_no_wrong_bound() -> None:
    torch = pytest.importorskip("torch")

    class Fading(torch.distributions.Laplace):  # type: ignore[misc, name-defined]
        """A scale that is smaller whenever it is read again."""

        reads = 0

        @property
        def scale(self) -> Any:
            self.reads += 1
            return torch.tensor(4.0 if self.reads > 1 else 0.5)

        @scale.setter
        def scale(self, value: Any) -> None:
            self.given = value

    def subject(x: Any) -> Any:
        noise = Fading(torch.tensor(0.0), torch.tensor(1.0), validate_args=False)
        noise.reads = 0
        return x + noise.rsample()

    result = trace(subject, pairs=[(torch.tensor(0.0), torch.tensor(1.0))], epsilon=1, hostile=False)
    assert result.pair_epsilon.upper >= 2 * (1 - 1e-9)
