"""Right mechanisms of many kinds are refuted at most as often as stated.

The number of refutations is held against Bin(n, α). `python benchmarks/right_mechanisms.py` counts on all cores.
"""

from __future__ import annotations

import pytest
from scipy.stats import binom

from right_kinds import ALPHA, KINDS, audited, resumed, with_workers
from statistics_helper import require


def p_value(refuted, audits):
    """By the union bound over all kinds, and the two that are audited in another way."""
    return (len(KINDS) + 2) * float(binom.sf(refuted - 1, audits, ALPHA))


@pytest.mark.long(every=6)
@pytest.mark.long(reduced=25, full=2000)
@pytest.mark.parametrize("kind", KINDS)
def test_right_mechanisms_of_this_kind_are_refuted_seldom(kind, repetitions):
    name = "audits of right kinds"
    refuted = sum(audited(kind, seed).refuted for seed in range(repetitions))
    require(name, p_value(refuted, repetitions))


@pytest.mark.long
def test_right_mechanisms_are_refuted_as_seldom_if_audits_are_resumed(tmp_path):
    audits = 1000
    refuted = sum(resumed(seed, tmp_path / f"{seed}.json") for seed in range(audits))
    require("audits of right kinds", p_value(refuted, audits))


@pytest.mark.long
def test_right_mechanisms_are_refuted_as_seldom_with_workers():
    audits = 100
    refuted = sum(with_workers(seed) for seed in range(audits))
    require("audits of right kinds", p_value(refuted, audits))
