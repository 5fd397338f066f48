"""Squashing, rounding, min-max scaling and leaking: exact losses against formulas and searches."""

import math

import numpy as np
import pytest

from dpassay.core.numbers import middle, number
from dpassay.exact.analysis import analyse
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.parser import parse


def profile_of(text: str, dim: int) -> PrivacyProfile:
    pipeline = parse(text, dim=dim)
    return analyse(pipeline, pipeline.neighbours)


@pytest.mark.parametrize(
    ("text", "dim", "pure"),
    [
        ("clip(l2, 5) | squash(tanh) | laplace(1)", 64, 128 * math.tanh(5 / 8)),
        ("query(l1, 1) | squash(tanh) | laplace(2)", 4, 4 * math.tanh(1 / 8)),
        ("query(linf, 1) | squash(sigmoid) | laplace(1)", 4, 4 * math.tanh(1 / 4)),
        ("query(l1, 1) | round | laplace(1)", 1, 2),  # 1/2 becomes 0, and 3/2 becomes 2
        ("query(l1, 1) | round | laplace(1)", 4, 4),
        ("query(l1, 1.5) | round | laplace(2)", 4, 2.5),
        ("query(l2, 2) | round | laplace(1)", 4, 8),
        ("rows | minmax | laplace(2)", 5, 2.5),
        ("rows | clamp(0, 1) | minmax | laplace(1)", 3, 3),
    ],
)
def test_pure_losses_behind_a_function_of_each_coordinate(text: str, dim: int, pure: float) -> None:
    value = profile_of(text, dim).pure
    assert float(value.a) == pytest.approx(pure, rel=1e-12)
    assert float(value.b) == pytest.approx(pure, rel=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_leak_shows_every_coordinate_of_a_ball(norm: str) -> None:
    for text in (
        f"clip({norm}, 1) | leak(0.1)",
        f"query({norm}, 1) | leak(0.1)",
        f"clip({norm}, 1) | clip(l2, 1/2) | leak(0.1)",
    ):
        delta = profile_of(text, 4).delta(number(2))
        assert middle(delta) == pytest.approx(1 - 0.9**4, rel=1e-12)
        assert delta.delta < 1e-12


@pytest.mark.parametrize(("norm", "p"), [("l1", 1), ("l2", 2)])
def test_lost_values_beside_noise_are_worst_spread_evenly(norm: str, p: int) -> None:
    # w_l = w = 1/2, b = 1: a search over moves on the sphere of radius 2 finds nothing above the even spread.
    delta = profile_of(f"clip({norm}, 1) | onesided(1, 0, 1/2)", 3).delta(number(1))
    moves = np.abs(np.random.default_rng(0).normal(size=(50_000, 3)))
    moves *= 2 / np.linalg.norm(moves, ord=p, axis=1, keepdims=True)
    assert np.max(1 - np.prod((1 + np.exp(-moves)) / 2, axis=1)) <= float(delta.b) + 1e-12
    assert middle(delta) == pytest.approx(1 - ((1 + math.exp(-2 / 3 ** (1 / p))) / 2) ** 3, rel=1e-12)


def test_rounded_answers_at_a_positive_delta() -> None:
    # (1, 1) and (2, 0): two coordinates that move by 1, or one that moves by 2; Laplace(1) on each.
    profile = profile_of("query(l1, 1) | round | laplace(1)", 2)
    one = 1 - math.exp((0.5 - 2) / 2)
    two = PrivacyLoss.of_shifts(Laplace(1), [(number(1), 2)]).delta(0.5)
    assert float(profile.delta(number("0.5")).a) >= max(one, two.lower) * (1 - 1e-9)
    assert float(profile.delta(number("0.5")).b) <= max(one, two.upper) * (1 + 1e-9)
