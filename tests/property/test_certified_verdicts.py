"""Verdicts whose certificates once failed: each has one now, and it verifies."""

import pytest

from dpassay import certify, check
from dpassay.errors import CertificateError
from dpassay.evidence.verifier import examine


def test_an_epsilon_below_zero_is_refused_by_its_name() -> None:
    written = certify(check("clip(l2, 1) | laplace(1)", epsilon=1, dim=4))
    step = next(step for step in written["steps"] if step["step"] == "lower")
    step["epsilon"] = ["-1", "-1"]
    with pytest.raises(CertificateError, match="epsilon must be from 0 on, got"):
        examine(written)
