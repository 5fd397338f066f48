"""Outputs of thousands of coordinates: how much is drawn to learn a rule does not grow with their width."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.testing.training import LEARNT_CELLS
from dpassay.pipeline.distributions import BitDistribution


@dataclass
class WideBits:
    """Each bit is kept with probability 0.6; its distribution is known, and it counts what is drawn."""

    width: int
    drawn: list[int] = field(default_factory=list)

    def distribution(self, x: Any) -> BitDistribution:
        drawn = self.drawn

        class Counted(BitDistribution):
            def sample(self, n: int, rng: np.random.Generator) -> Any:
                drawn.append(n * len(self.one))
                return super().sample(n, rng)

        return Counted(np.where(np.full(self.width, x) == 1, 0.6, 0.4))

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        return self.distribution(x).sample(n, rng)


def test_rules_are_learnt_from_a_bounded_number_of_bits() -> None:
    mechanism = WideBits(1000)
    verdict = audit(mechanism, [(0, 1)], epsilon=1, runs=500)
    assert verdict.refuted
    assert max(mechanism.drawn) <= LEARNT_CELLS  # without the limit, 30,000 outputs: 30 million bits
    # A bit's log odds are ln 1.5 either way, so 1000 bits tell the inputs apart in every run; 500 right guesses of 500
    # show ln(500 / ln(1/alpha)) at most, with some runs spent on learning.
    assert 3 < verdict.epsilon.lower < math.log(500 / math.log(1000))


@pytest.mark.parametrize("outputs", [[[1.0, 0.0]], [[0.0, 0.5]], [[1.0, np.nan]]])
def test_log_likelihoods_of_bits(outputs: list[list[float]]) -> None:
    p = np.array([0.9, 0.2])
    chance = math.prod({1.0: q, 0.0: 1 - q}.get(bit, 0.0) for bit, q in zip(outputs[0], p, strict=True))
    expected = math.log(chance) if chance else -math.inf
    assert BitDistribution(p).log_likelihood(np.array(outputs))[0] == pytest.approx(expected)
