"""What an audit reports about ε and δ holds jointly: two bounds share the error probability."""

import json

import pytest

from dpassay import audit
from dpassay.audit.testing.inference import RoundCounts, anytime_bound, anytime_delta


@pytest.mark.parametrize("fixed", [False, True])
def test_two_bounds_get_half_of_the_error_probability_each(tmp_path, fixed):
    """docs/proofs/anytime.md, point 9: tests at levels that add up to α hold together with probability 1 − α."""
    path = tmp_path / "audit.json"
    verdict = audit(
        lambda x, rng: x + rng.normal(scale=0.4),
        [(0.0, 1.0)],
        epsilon=1,
        delta=0.05,
        runs=3000,
        fixed=fixed,
        shrink=False,
        save=path,
    )
    assert verdict.refuted
    main = json.loads(path.read_text())["main"]
    names = ("right", "wrong", "runs", "expected_right", "expected_wrong", "sides")
    counts = [RoundCounts(*(epoch[name] for name in names)) for epoch in main["epochs"]]
    for share, same in ((0.5, True), (1.0, False)):
        epsilon = anytime_bound(counts, share * main["alpha"], 0.05, 2)
        delta = anytime_delta(counts, share * main["alpha"], 1.0)
        assert (epsilon == verdict.epsilon.lower) is same
        assert (delta == verdict.delta.lower) is same


def test_one_bound_gets_all_of_it(tmp_path):
    path = tmp_path / "audit.json"
    verdict = audit(lambda x, rng: x + rng.laplace(scale=0.3), [(0.0, 1.0)], epsilon=1, shrink=False, save=path)
    main = json.loads(path.read_text())["main"]
    names = ("right", "wrong", "runs", "expected_right", "expected_wrong", "sides")
    counts = [RoundCounts(*(epoch[name] for name in names)) for epoch in main["epochs"]]
    assert verdict.epsilon.lower == anytime_bound(counts, main["alpha"], 0.0, 2)
