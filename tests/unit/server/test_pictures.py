"""What is drawn is what is true: pictures against closed forms, to the accuracy of a screen."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from dpassay.claims.registry import REGISTRY
from dpassay.core.numbers import number
from dpassay.exact.loss_components import AtomLoss
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.sampled_loss import SampledLoss
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.server.answers import glance_parts
from dpassay.server.asked import Asked, of_claim
from dpassay.server.masses import deltas, masses


def above(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def gaussian_delta(epsilon: float, mu: float) -> float:
    return above(epsilon / mu - mu / 2) - math.exp(epsilon) * above(epsilon / mu + mu / 2)


def drawn(loss: PrivacyLoss, epsilon: float) -> float:
    found = masses(loss, 4000)
    assert found is not None
    return float(deltas(found.losses, found.chances, 0.0, number(0), np.array([epsilon]))[0])


def test_gaussian_noise_on_many_coordinates() -> None:
    loss = PrivacyLoss.of_shifts(Gaussian(2), [(number("0.1"), 900)])  # 3 apart in l2
    assert drawn(loss, 2.0) == pytest.approx(gaussian_delta(2.0, 1.5), rel=1e-3)


def test_laplace_noise_on_one_coordinate() -> None:
    loss = PrivacyLoss.of_shifts(Laplace(1), [(number(1), 1)])
    assert drawn(loss, 0.5) == pytest.approx(1 - math.exp((0.5 - 1) / 2), rel=1e-3)


def test_laplace_noise_on_many_coordinates_has_the_right_mean_and_variance() -> None:
    a, n = 0.05, 768
    found = masses(PrivacyLoss.of_shifts(Laplace(1), [(number("0.05"), n)]), 4000)
    assert found is not None
    mean = float(found.losses @ found.chances)
    assert mean == pytest.approx(n * (a - 1 + math.exp(-a)), rel=1e-6)
    t = (np.arange(100_000) + 0.5) * a / 100_000  # E L² is a²/2 + a²e^(−a)/2 + ∫ (a − 2t)² e^(−t)/2
    square = a**2 * (1 + math.exp(-a)) / 2 + float(((a - 2 * t) ** 2 * np.exp(-t) / 2).sum() * a / 100_000)
    variance = float((found.losses - mean) ** 2 @ found.chances)
    assert variance == pytest.approx(n * (square - (mean / n) ** 2), rel=0.01)


def test_bits_by_enumeration() -> None:
    up, down = math.log(3), -math.log(3)  # kept with probability 3/4
    loss = PrivacyLoss(((AtomLoss(((number(up), number("0.75")), (number(down), number("0.25")))), 6),))
    truth = sum(
        math.prod(0.75 if kept else 0.25 for kept in bits)
        * max(0.0, 1 - math.exp(1.0 - sum(up if kept else down for kept in bits)))
        for bits in product((True, False), repeat=6)
    )
    assert drawn(loss, 1.0) == pytest.approx(truth, rel=1e-6)


def test_a_sampled_step() -> None:
    q, epsilon = 0.1, 0.3
    loss = PrivacyLoss(((SampledLoss(number("0.1"), number(1), "remove"), 1),))
    inner = math.log(1 + (math.exp(epsilon) - 1) / q)  # δ is q times that of the noise on its own there
    assert drawn(loss, epsilon) == pytest.approx(q * gaussian_delta(inner, 1.0), rel=5e-3)


def test_many_sampled_steps_at_a_published_point() -> None:
    """At rate 0.01, sigma 1 and 1,000 steps, accountants agree on an ε of 1.828 at δ = 1e-5."""
    loss = PrivacyLoss(((SampledLoss(number("0.01"), number(1), "remove"), 1000),))
    assert drawn(loss, 1.78) > 1e-5 > drawn(loss, 1.88)


def test_the_event_of_gaussian_noise() -> None:
    asked = Asked("query(l2, 1) | gaussian(1)", epsilon="0.5", delta="1e-5")
    (face,) = glance_parts(asked)
    outputs = face["pictures"]["outputs"]  # the loss exceeds ε where the output is ε − 1/2 or more beyond the first
    assert (outputs["p"], outputs["q"]) == pytest.approx((above(0.0), above(1.0)), rel=0.01)


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
        for epsilon, low, high in curve["points"]:  # the line passes through the certified points
            at = float(np.interp(epsilon, curve["x"], curve["pair"]))
            assert low - 0.02 <= at <= high + 0.02, epsilon
        assert sum(loss["y"]) + loss["infinite"] == pytest.approx(1, abs=0.02)


def numbers(data: Any) -> list[float]:
    if isinstance(data, dict):
        return [value for part in data.values() for value in numbers(part)]
    if isinstance(data, list):
        return [value for part in data for value in numbers(part)]
    return [float(data)] if isinstance(data, int | float) else []
