"""Right code is never refuted, however it hides its input, and no upper bound is said that it does not keep."""

import pytest

from dpassay.trace.runner import trace
from trace_right import RIGHT

# Of some of them the exact loss of the pair is at least this: an upper bound below it would be wrong.
LEAST = {
    "bits": 1.0,
    "halves": 1.0,
    "cut noise": 1.0,
    "randomised response": 1.0,
    "a sample": 0.9,
    "a sample by a mask": 0.9,
    "planar": 0.9,
}


@pytest.mark.long(every=18)  # a sixth of them, each with one of the seeds
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("right", RIGHT)
def test_right_code_is_not_refuted(right: str, seed: int) -> None:
    subject, pair, epsilon, delta = RIGHT[right]
    result = trace(subject, pairs=[pair], epsilon=epsilon, delta=delta, seed=seed)
    assert not result.verdict.refuted, str(result)
    assert result.pair_epsilon.lower <= epsilon * (1 + 1e-9)
    assert result.pair_epsilon.upper >= LEAST.get(right, 0.0) * (1 - 1e-9)
