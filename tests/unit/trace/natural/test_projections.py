"""Directions in which the outputs of two inputs lie apart."""

from statistics import NormalDist

import numpy as np

from dpassay.trace.natural.columns import OutputColumn
from dpassay.trace.natural.projections import projections


def test_noise_that_two_numbers_have_in_common_is_taken_off() -> None:
    """For covariance Σ the best direction is Σ⁻¹ (1, 0), so its weights are as 1 to −0.95.

    The numbers are quantiles in all combinations, whose covariance is a multiple of Σ. Weights have three digits.
    """
    quantiles = np.array([NormalDist().inv_cdf((k + 0.5) / 41) for k in range(41)])
    own, other = (part.reshape(-1) for part in np.meshgrid(quantiles, quantiles))
    rows = np.stack([own, 0.95 * own + np.sqrt(1 - 0.95**2) * other], axis=1)
    columns = [OutputColumn(name, _nothing) for name in ("first", "second")]
    found = [one.weights for one in projections(columns, [rows, rows + np.array([1.0, 0.0])])]
    assert any(abs(weights[1] / weights[0] + 0.95) < 0.01 for weights in found if weights[0])


def _nothing(outputs: object) -> np.ndarray:
    raise AssertionError
