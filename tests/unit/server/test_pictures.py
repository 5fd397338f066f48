"""What is drawn is what is true: pictures against closed forms, to the accuracy of a screen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpassay.claims.registry import REGISTRY
from dpassay.server.answers import glance_parts
from dpassay.server.asked import PageQuestion, of_claim


def above(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def test_the_event_of_gaussian_noise() -> None:
    asked = PageQuestion("query(l2, 1) | gaussian(1)", epsilon="0.5", delta="1e-5")
    (face,) = glance_parts(asked)
    outputs = face["pictures"]["outputs"]  # the loss exceeds ε where the output is ε − 1/2 or more beyond the first
    assert (outputs["p"], outputs["q"]) == pytest.approx((above(0.0), above(1.0)), rel=0.01)


@pytest.mark.parametrize("epsilon", ["0.5", "1.23", "2"])
def test_both_pictures_give_the_probability_of_a_loss_above_epsilon(epsilon: str) -> None:
    """Gaussian noise: Φ(−ε/μ + μ/2) with μ = 1/2; sampled steps: at least δ, and the same in both."""
    (face,) = glance_parts(PageQuestion("query(l2, 1) | gaussian(2)", epsilon=epsilon, delta="1e-5"))
    loss, curve = face["pictures"]["loss"], face["pictures"]["curve"]
    assert loss["tail"] == pytest.approx(above(float(epsilon) / 0.5 - 0.25), rel=1e-9)
    outputs = face["pictures"]["outputs"]  # shaded where the loss exceeds ε: the same to all digits shown
    assert outputs["p"] == pytest.approx(loss["tail"], rel=2e-5)
    assert outputs["q"] == pytest.approx(above(float(epsilon) / 0.5 + 0.25), rel=2e-5)
    assert curve["tail"][curve["x"].index(float(epsilon))] == pytest.approx(loss["tail"], rel=1e-3)
    sampled = PageQuestion("poisson(0.1) | clip(l2, 1) | gaussian(2) | times(20)", {}, 4, epsilon=epsilon, delta="1e-5")
    (face,) = glance_parts(sampled)
    loss, curve = face["pictures"]["loss"], face["pictures"]["curve"]
    assert curve["tail"][curve["x"].index(float(epsilon))] == pytest.approx(loss["tail"], rel=1e-3)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_claim_has_its_pictures(name: str) -> None:
    (face,) = glance_parts(of_claim(REGISTRY[name]))
    for picture in face["pictures"].values():
        assert picture["kind"] != "none" or picture["note"].endswith(".")
        assert np.isfinite(numbers(picture)).all()
    loss, curve = face["pictures"]["loss"], face["pictures"]["curve"]
    if curve["kind"] == "curve":
        assert all(x >= y - 1e-9 for x, y in zip(curve["pair"], curve["pair"][1:], strict=False))
        tails = curve["tail"] or curve["pair"]
        assert all(tail >= delta - 1e-3 for tail, delta in zip(tails, curve["pair"], strict=True))
        # The certified points lie between the two nearest of the line, which falls, at some claims by a step.
        for epsilon, low, high in curve["points"]:
            place = int(np.searchsorted(curve["x"], epsilon))
            before, after = curve["pair"][max(0, place - 1)], curve["pair"][min(place, len(curve["pair"]) - 1)]
            assert low - 1e-4 <= before, epsilon
            assert after <= high + 1e-4, epsilon
        assert sum(loss["y"]) + loss["infinite"] == pytest.approx(1, abs=0.02)


def numbers(data: Any) -> list[float]:
    if isinstance(data, dict):
        return [value for part in data.values() for value in numbers(part)]
    if isinstance(data, list):
        return [value for part in data for value in numbers(part)]
    return [float(data)] if isinstance(data, int | float) else []
