"""The index of the largest of several noisy numbers is drawn with known probabilities."""

import math
from typing import Any

import numpy as np
import pytest

from dpassay.core.guarantee import make_guarantee
from dpassay.trace.laws.choices import judged_choices
from dpassay.trace.laws.picking import winning
from dpassay.trace.watch.tracer import Tracer

SCORES = ([2.0, 1.0, 0.0], [1.0, 2.0, 0.0])


def judged(subject: Any) -> Any:
    tracer = Tracer(subject)
    tracer.run(0)
    return judged_choices(tracer, (0, 1), (tracer.run(0), tracer.run(1)), make_guarantee(1, 0))


@pytest.mark.parametrize(
    "subject",
    [
        lambda x, rng: int(np.argmax(np.array(SCORES[x]) + rng.gumbel(size=3))),
        lambda x, rng: int((np.array(SCORES[x]) + rng.gumbel(size=3)).argmax()),
        lambda x, rng: int(np.argmax([s + rng.gumbel() for s in SCORES[x]])),
        lambda x, rng: int(np.argmax(np.array(SCORES[x]) - np.log(-np.log(rng.random(3))))),
    ],
    ids=["function", "method", "list", "formula"],
)
def test_gumbel_max_is_softmax(subject: Any) -> None:
    """Softmax probabilities of the scores: those of 2 and of 1 change places, and the normalization is the same."""
    chosen = judged(subject)
    assert chosen is not None
    assert float(chosen.upper.b) == pytest.approx(1, rel=1e-9)


def test_two_noisy_numbers() -> None:
    """P(X₁ + d > X₂) of two standard numbers, from their differences' distribution functions."""
    d = 0.7
    gap = np.array([d, 0.0])
    normal = (1 + math.erf(d / 2)) / 2
    laplace = 1 - (2 + d) / 4 * math.exp(-d)
    exponential = 1 - math.exp(-d) / 2
    assert winning("gaussian", gap, np.ones(2))[0] == pytest.approx(normal, rel=1e-10)  # type: ignore[index]
    assert winning("laplace", gap, np.ones(2))[0] == pytest.approx(laplace, rel=1e-10)  # type: ignore[index]
    assert winning("exponential", gap, np.ones(2))[0] == pytest.approx(exponential, rel=1e-10)  # type: ignore[index]


def test_noise_that_is_also_released_is_no_choice() -> None:
    def subject(x: int, rng: np.random.Generator) -> Any:
        noisy = np.array(SCORES[x]) + rng.gumbel(size=3)
        return int(np.argmax(noisy)), float(noisy[0])

    assert judged(subject) is None


def test_the_first_of_a_race_is_as_likely_as_its_rate_is_high() -> None:
    """The smallest of exponential numbers: their rates over the sum of all."""
    rates = np.array([1.0, 2.0, 5.0])
    found = winning("exponential", np.zeros(3), -1 / rates)
    assert found is not None
    assert found.tolist() == pytest.approx((rates / 8).tolist())
