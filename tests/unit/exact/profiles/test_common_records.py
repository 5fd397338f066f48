"""Compositions of sampled mechanisms: data sets with one record and with none, against dp-accounting and formulas."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from dpassay.core.numbers import middle, number
from dpassay.exact.composition import compose
from dpassay.exact.pld.loss_components import GaussianLoss
from dpassay.exact.profiles.common_records import record_losses
from dpassay.pipeline.parser import parse


def accounted(parts: list[tuple[str, float, float, int]], delta: float, pessimistic: bool) -> float:
    """dp-accounting's ε of some sampled parts (noise, scale over sensitivity, rate, steps)."""
    total = None
    for noise, scale, rate, steps in parts:
        make = getattr(privacy_loss_distribution, f"from_{noise}_mechanism")
        one = make(
            scale, sampling_prob=rate, value_discretization_interval=1e-3, pessimistic_estimate=pessimistic
        ).self_compose(steps)
        total = one if total is None else total.compose(one)
    return float(total.get_epsilon_for_delta(delta))


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("texts", "parts", "delta"),
    [
        (
            [
                "poisson(0.1) | clip(l2, 1) | gaussian(0.8) | times(40)",
                "poisson(0.2) | clip(l2, 3) | gaussian(3) | times(30)",
            ],
            [("gaussian", 0.8, 0.1, 40), ("gaussian", 1.0, 0.2, 30)],
            1e-5,
        ),
        (
            ["poisson(0.1) | clip(l1, 1) | laplace(1)", "poisson(0.2) | clip(l1, 1) | laplace(0.5)"],
            [("laplace", 1.0, 0.1, 1), ("laplace", 0.5, 0.2, 1)],
            1e-3,
        ),
        (
            [
                "poisson(0.1) | clip(l1, 1) | laplace(1) | times(5) x 2",
                "poisson(0.2) | clip(l2, 1) | gaussian(1) | times(10)",
            ],
            [("laplace", 1.0, 0.1, 10), ("gaussian", 1.0, 0.2, 10)],
            1e-5,
        ),
    ],
    ids=["gaussian", "laplace", "both"],
)
def test_two_sampled_parts(texts: list[str], parts: list[tuple[str, float, float, int]], delta: float) -> None:
    found = compose(*texts, delta=delta, dim=3).exact
    # Rounding every loss up or down moves ε by at most a step for each.
    assert accounted(parts, delta, False) * (1 - 1e-6) <= found.upper
    assert found.lower <= accounted(parts, delta, True) * (1 + 1e-6)
    assert found.upper - found.lower <= 2e-5 * found.upper


def test_at_delta_0_laplace_losses_add_up() -> None:
    texts = "poisson(0.1) | clip(l1, 1) | laplace(1) x 3", "poisson(0.2) | clip(l1, 2) | laplace(1)"
    found = compose(*texts, delta=0, dim=4).exact
    truth = 3 * math.log(0.9 + 0.1 * math.e) + math.log(0.8 + 0.2 * math.exp(2))
    assert found.lower <= truth * (1 + 1e-12)
    assert found.upper >= truth * (1 - 1e-12)
    assert found.upper - found.lower < 1e-8


def test_no_record_is_worst_for_both() -> None:
    """Laplace noise on an l1 ball is worst on an axis, Gaussian noise on a cube at a corner: the truth lies between."""
    texts = "poisson(0.2) | clip(l1, 1) | laplace(0.5) x 10", "poisson(0.2) | clip(linf, 1) | gaussian(2) x 10"
    found = compose(*texts, delta=1e-4, dim=4).exact
    worst = accounted([("laplace", 0.5, 0.2, 10), ("gaussian", 1.0, 0.2, 10)], 1e-4, True)
    axis = accounted([("laplace", 0.5, 0.2, 10), ("gaussian", 2.0, 0.2, 10)], 1e-4, False)
    assert axis * (1 - 1e-4) <= found.lower < found.upper <= worst * (1 + 1e-4)


def test_a_record_is_carried_by_each_part() -> None:
    there, back = record_losses(
        parse("poisson(0.3) | clip(l2, 2) | gaussian(4) | times(7)", dim=2), np.array([30, 40.0])
    )
    ((component, count),) = there.components
    assert count == 7
    assert middle(component.mu) == pytest.approx(0.5, rel=1e-8)  # type: ignore[attr-defined]
    assert component.mu.b < number("0.5").a  # type: ignore[attr-defined]
    assert back != there
    plain, same = record_losses(parse("poisson(1) | clip(l2, 2) | gaussian(4)", dim=2), np.array([30, 40.0]))
    assert plain == same
    assert isinstance(plain.components[0][0], GaussianLoss)


@pytest.mark.parametrize(
    "text",
    [
        "poisson(0.3) | clip(l2, 1) | gaussian(4) | clamp(0, 1)",  # what is lost behind the noise is not counted
        "poisson(0.3) | clip(l2, 1) | gaussian(4) | round",
        "clip(l2, 1) | gaussian(4)",  # two vectors, not records
        "subsample(1, 10) | clip(l2, 1) | gaussian(4)",
    ],
)
def test_nothing_is_known_of_other_pipelines(text: str) -> None:
    assert record_losses(parse(text, dim=2), np.array([100.0, 0.0])) == ()


def test_a_part_that_is_not_known_is_ignored_from_below_only() -> None:
    """What one part loses is lost by both; a common record is not looked for where outputs are rounded."""
    texts = "poisson(0.1) | clip(l2, 1) | gaussian(1) | times(20)", "poisson(0.2) | clip(l1, 1) | laplace(1) | round"
    found = compose(*texts, delta=1e-5, dim=1).exact
    alone = compose(texts[0], delta=1e-5, dim=1).exact
    both = accounted([("gaussian", 1.0, 0.1, 20), ("laplace", 1.0, 0.2, 1)], 1e-5, True)
    assert alone.lower * (1 - 1e-3) <= found.lower
    assert found.lower <= both * (1 + 1e-6)
    assert found.upper >= alone.lower
