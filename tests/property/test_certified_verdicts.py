"""Verdicts whose certificates once failed: each has one now, and it verifies."""

import pytest

from dpassay import certify, check
from dpassay.errors import CertificateError
from dpassay.evidence.verifier import examine
from dpassay.evidence.verifier.arithmetic import work
from mutations import rechained
from random_pipelines import Case

REFUTED = [
    # A pair moved inwards from 0 was written less precisely than the reader asks for.
    Case("rows | squash(sigmoid) | laplace(0.171)", 3, "replace-record", "5.847953216374269"),
    Case("squash(sigmoid) | exponential(1)", 2, "any", "0", "0.1858"),
    # Vectors on a sphere are named by vectors before they are scaled, near enough for the query.
    Case("query(linf, 1.06) | normalise | laplace(0.5)", 2, "replace-record", "5.0911688194519734"),
    Case("normalise | binary(0, 0) | flip(0.999999) | round", 2, "any", "1"),
    # What gives the input away, at an infinite ε.
    Case("bloom(4, 4) | onesided(0.98, 0.25, 0.25)", 1, "replace-record", "1", "0.6926"),
    Case("rows | binary(1, 1) | bits(0.537, 1, 0.898)", 1, "replace-record", "100", "1e-12"),
    # A row's bits that differ one way and the other; numbers that are written in bits as they are.
    Case("rows | binary(0, 1) | bits(0.13, 0.402, 0.995)", 2, "replace-record", "4.9716040703655302", "1e-3"),
    Case("normalise | binary(2, 0) | leak(1)", 1, "any", "1"),
]
PROVEN = [
    # Of two noises the second one is enough.
    Case("clip(linf, 1.35) | gaussian(1) | laplace(2)", 1, "add-remove-record", "1", "1e-3"),
    Case("normalise | onesided(0.127, 0.5, 0) | laplace(2)", 2, "word", "1", "0.5"),
    # Numbers from 0 on have one sign, and nothing else is written.
    Case("rows | clamp(0, sqrt(2)) | binary(0, 0) | bits(0.0586, 1e-9, 0.634)", 1, "replace-record", "0"),
    # Few bits, noised unlike one another: all strings are looked at.
    Case("encode | binary(0, 0) | bits(0.0983, 0.954, 0.365) | minmax", 2, "any", "3", "0.3"),
]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("case", "word"),
    [*((case, "refuted") for case in REFUTED), *((case, "proven") for case in PROVEN)],
    ids=lambda value: value.text if isinstance(value, Case) else "",
)
def test_a_decided_claim_has_a_certificate_that_verifies(case: Case, word: str) -> None:
    written = certify(check(case.text, **case.arguments))
    assert written["verdict"] == word
    found = examine(written)
    assert found.ok, found.failures


def test_an_epsilon_below_zero_is_refused_by_its_name() -> None:
    written = certify(check("clip(l2, 1) | laplace(1)", epsilon=1, dim=4))
    step = next(step for step in written["steps"] if step["step"] == "lower")
    step["epsilon"] = ["-1", "-1"]
    with pytest.raises(CertificateError, match="epsilon must be at least 0, got"):
        examine(written)


def test_many_fine_grids_are_refused(monkeypatch) -> None:
    written = certify(check("clip(linf, 1) | laplace(2)", epsilon="5", delta="1e-6", dim=33))
    claim, *steps, decision = written["steps"]
    upper = next(step for step in steps if step["step"] == "upper" and "grid" in step)
    steps = [{**upper, "grid": {**upper["grid"], "tilt": [f"{1 + i / 100}"] * 2}} for i in range(8)]
    written["steps"] = [claim, *steps, decision]
    monkeypatch.setattr(work, "ALL_WORK", 1 << 25)
    found = examine(rechained(written))
    late = ["too long" in sentence for sentence in (*found.established, *found.failures) if "(upper)" in sentence]
    assert sorted(late) == late  # the first ones are checked, the others refused
    assert late.count(True) > 4


def test_the_least_deviation_is_found_before_the_certificate_is_written() -> None:
    """The verifier does not search: the text names a deviation, and the claim says what it is."""
    text = "clip(l2, C) | gaussian(least_sigma(eps, delta, 2*C) + 0*sigma)"
    written = certify(check(text, epsilon=1, delta="1e-3", dim=2, C=1, sigma=7))
    claim = written["steps"][0]
    assert claim["pipeline"] == "clip(l2, C) | gaussian(sigma1 + 0*sigma)"
    assert written["verdict"] == "proven"
    assert examine(written).ok
    claim["parameters"]["sigma1"] = ["5.1", "5.1"]  # the least is 5.1493…, where δ(1) at μ = 2/σ is 1e-3
    assert not examine(rechained(written)).ok
