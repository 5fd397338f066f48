"""What a trace says of code that it cannot judge: one sentence that is true of what happened."""

from typing import Any

import pytest

import dpassay
from dpassay.errors import MechanismError


def reason(f: Any, pair: tuple[Any, Any] = (0, 1), **more: Any) -> str:
    return dpassay.trace(f, pairs=[pair], epsilon=1, hostile=False, **more).verdict.reason


def test_no_result_is_asked_about() -> None:
    assert reason(lambda x: None).endswith("of both inputs None came out: does the code return its result?")
    assert reason(lambda x: []).endswith("of both inputs nothing came out: does the code return its result?")
    assert reason(lambda x: 3).endswith("of both inputs the same came out, without noise.")


def test_a_bound_on_norms_is_not_taken_for_one_on_distances() -> None:
    """Numbers of norm at most 1 are up to 2 apart: 1-DP does not follow from that with Laplace noise of scale 1."""
    said = reason(lambda x, rng: x + rng.laplace())
    assert "l1 norm at most 1 on 2 inputs" in said
    assert "proven" not in said
    assert dpassay.check("clip(l1, 1) | laplace(1)", epsilon=1, dim=1).refuted
    assert dpassay.check("query(l1, 1) | laplace(1)", epsilon=1, dim=1).proven


def test_an_exception_is_told_in_one_line() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("no\n  way") if x else SystemExit

    with pytest.raises(MechanismError, match=r"^the traced code raised ValueError: no way$"):
        reason(fails, (1, 2))
    with pytest.raises(MechanismError, match=r"^the traced code raised SystemExit$"):
        reason(fails)


def test_an_object_that_shows_nothing_cannot_be_read() -> None:
    with pytest.raises(MechanismError, match=r'^output\["a"\] is of type object, which cannot be read: return numbers'):
        reason(lambda x: {"a": object()})


def test_whole_numbers_beyond_all_doubles_are_compared() -> None:
    huge = 10**400
    assert dpassay.trace(lambda x: huge + x, pairs=[(0, 1)], epsilon=1).rules == ("no-noise",)
    assert "ε is at most 1." in reason(lambda x, rng: {"n": huge, "sum": x + rng.laplace()})
    assert "ε is at most 1." in reason(lambda x, rng: min(x, 1) + rng.laplace(), (0, huge))


def test_a_loss_of_several_draws_names_them() -> None:
    """0.1 and 0.2 and 1 apart, at scale 1: 1.3 in all."""
    said = reason(lambda x, rng: [x + rng.laplace(), 0.1 * x + rng.laplace(), 0.2 * x + rng.laplace()])
    assert "a number that differs by 1: with the noise of 2 other draws ε = 1.3 for this pair" in said
