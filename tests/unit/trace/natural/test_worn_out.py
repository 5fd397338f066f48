"""Code that hangs ends a trace after about its time limit; code that can be called a few times only is no failure."""

import time
from typing import Any

import pytest

from dpassay.errors import MechanismError
from dpassay.trace.session import trace


def never_ends(x: int) -> int:
    while True:
        pass


def ends_for_zero(x: int) -> int:
    while x:
        pass
    return x


@pytest.mark.parametrize("subject", [never_ends, ends_for_zero])
def test_a_run_that_hangs_is_not_repeated(subject: Any) -> None:
    began = time.monotonic()
    with pytest.raises(MechanismError, match=r"test_worn_out.py:\d+ raised TimeLimit: it did not finish within"):
        trace(subject, pairs=[(0, 1)], epsilon=1, time_limit=1)
    assert time.monotonic() - began < 10


class Budget:
    """A right mechanism for each of its ten calls."""

    def __init__(self) -> None:
        self.left = 10

    def __call__(self, x: float, rng: Any) -> Any:
        if not self.left:
            raise RuntimeError("privacy budget exhausted")
        self.left -= 1
        return x + rng.laplace(0, 1)


class Silent(Budget):
    """The same with 100 calls, after which it gives nothing."""

    def __init__(self) -> None:
        self.left = 100

    def __call__(self, x: float, rng: Any) -> Any:
        return super().__call__(x, rng) if self.left else None


@pytest.mark.parametrize("subject", [Budget, Silent])
def test_each_call_of_code_with_a_budget_has_a_process_of_its_own(subject: Any) -> None:
    result = trace(subject, pairs=[(3, 4)], epsilon=1, hostile=False)
    assert result.verdict.open
    assert "here each run had a process of its own" in result.verdict.reason


class Small(Budget):
    """With too little noise."""

    def __call__(self, x: float, rng: Any) -> Any:
        super().__call__(x, rng)
        return x + rng.laplace(0, 0.05)


def test_a_budget_does_not_hide_too_little_noise() -> None:
    result = trace(Small, pairs=[(3, 4)], epsilon=1, hostile=False)
    assert result.verdict.refuted


def fails_always(x: float) -> float:
    raise ValueError("never works")


def test_code_that_always_fails_is_still_named() -> None:
    with pytest.raises(MechanismError, match="raised ValueError: never works"):
        trace(fails_always, pairs=[(3, 4)], epsilon=1, hostile=False)
