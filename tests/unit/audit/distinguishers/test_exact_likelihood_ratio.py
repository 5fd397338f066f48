"""Exact likelihood ratios by formula."""

import math

import numpy as np
import pytest

from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.outputs.outputs import read
from dpassay.pipeline.distributions import BitDistribution, Laplace, Pmf, Shifted
from dpassay.pipeline.mechanism import Failure

INF = math.inf


def test_likelihood_by_formula():
    # ln of e^−|t−1|/e^−|t|: from −1 at t ≤ 0 to 1 at t ≥ 1.
    pair = LikelihoodRatio((Shifted(Laplace(1), np.zeros(1)), Shifted(Laplace(1), np.ones(1))))
    assert pair.score(read([-2, 0, 0.25, 0.5, 1, 7])) == pytest.approx([-1, -1, -0.5, 0, 1, 1], abs=1e-15)
    assert np.isnan(pair.score(read([None, "text", math.nan, Failure("E"), []]))).all()
    pmf = LikelihoodRatio(tuple(Pmf(np.array(p)) for p in ([0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0])))
    logs = np.log([0.5, 0.25]), [-INF, math.log(0.5)], [0, -INF]
    assert np.array_equal(pmf.score(read([0, 1])), np.stack(logs, axis=1))
    assert (pair.candidates, pmf.candidates) == (2, 3)
    bits = LikelihoodRatio((BitDistribution(np.array([0.25, 0.5])), BitDistribution(np.array([0.75, 0.5]))))
    assert bits.score(read([[1, 0], [0, 1]])) == pytest.approx([math.log(3), -math.log(3)])
    assert np.isnan(bits.score(read([[2, 0], [0.5, 1]]))).all()  # impossible on both sides


def test_it_looks_at_as_many_coordinates_as_the_distribution_has():
    pair = LikelihoodRatio((Shifted(Laplace(1), np.zeros(3)), Shifted(Laplace(1), np.ones(3))))
    whole = [0.1, 0.9, 0.8]  # distances 1.8 and 1.2
    assert pair.score(read([whole])) == pytest.approx([0.6])
    assert pair.score(read([whole, None, [0.1], [0.1, 0.9]]))[0] == pytest.approx(0.6)
    assert np.isnan(pair.score(read([[0.1], [0.1, 0.9]]))).all()
    assert np.isnan(pair.score(read([0.1, 0.2]))).all()
