"""Integers, and answers to queries, between the limits of a clamp. Truths come from listing all pairs of integers."""

import itertools
import math

import numpy as np
import pytest

from dpassay.api import check
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify


def farthest(norm: str, distance: float, low: int, high: int, dim: int) -> int:
    """The largest l1 distance of two clamped integer vectors that were this near, by listing them."""
    power = {"l1": 1, "l2": 2, "linf": math.inf}[norm]
    steps = range(-math.floor(distance), math.floor(distance) + 1)
    moves = [np.array(move) for move in itertools.product(steps, repeat=dim)]
    moves = [move for move in moves if np.linalg.norm(move, ord=power) <= distance + 1e-9]
    best = 0
    for start in itertools.product(range(low - 1, high + 2), repeat=dim):
        x = np.clip(start, low, high)
        best = max(best, *(int(np.abs(x - np.clip(np.array(start) + move, low, high)).sum()) for move in moves))
    return best


@pytest.mark.parametrize(
    ("norm", "distance", "low", "high", "dim"),
    [
        ("l1", 1, 0, 5, 2),
        ("l1", 3, 0, 2, 2),
        ("l1", 9, 0, 2, 2),
        ("l1", 3.5, 4, 9, 1),
        ("linf", 1, 0, 5, 2),
        ("linf", 7, 0, 3, 2),
        ("linf", 2, -3, -1, 2),
        ("l2", 1.5, 0, 4, 2),
    ],
)
def test_counts_between_whole_limits(norm: str, distance: float, low: int, high: int, dim: int) -> None:
    text, truth = f"counts({norm}, {distance}) | clamp({low}, {high})", farthest(norm, distance, low, high, dim)
    for noise in ("discrete_laplace(1)", "laplace(1)"):
        proven = check(f"{text} | {noise}", epsilon=truth, dim=dim)
        assert proven.proven
        assert proven.epsilon.lower == pytest.approx(truth)
        assert verify(certify(proven)).verdict == "proven"
    refuted = check(f"{text} | discrete_laplace(1)", epsilon=truth - 0.01, dim=dim)
    assert refuted.refuted
    assert verify(certify(refuted)).verdict == "refuted"


@pytest.mark.parametrize(
    ("text", "dim", "truth"),
    [
        ("round | clamp(0, 3) | discrete_laplace(1)", 1, 3),
        ("round | clamp(0, 3) | discrete_laplace(1)", 2, 6),
        ("round | clamp(-200, 300) | discrete_laplace(100)", 1, 5),
        ("round | clamp(0, 3) | laplace(1)", 2, 6),
        ("rows | round | clamp(0, 3) | discrete_laplace(1)", 3, 3),
        ("query(l1, 1) | clamp(2, 5) | laplace(1)", 2, 1),
        # Ties go to the even number, so 0.5 and 1.5 become 0 and 2; any two coordinates may move by 1.
        ("query(linf, 1) | round | clamp(0, 5) | discrete_laplace(1)", 1, 2),
        ("query(l1, 1) | round | clamp(0, 5) | laplace(1)", 2, 2),
        # Bits of which at least one is 0: n of them differ, as in (1, 0, 0) and (0, 1, 1).
        ("minmax | round | discrete_laplace(1)", 1, 0),
        ("minmax | round | discrete_laplace(1)", 2, 2),
        ("minmax | round | discrete_laplace(1)", 3, 3),
        ("minmax | round | laplace(0.5)", 4, 8),
        ("counts(l1, 1) | clip(l2, 3) | laplace(1)", 1, 1),
    ],
)
def test_integers_by_hand(text: str, dim: int, truth: float) -> None:
    proven = check(text, epsilon=truth, dim=dim)
    assert proven.proven
    assert proven.epsilon.lower == pytest.approx(truth, rel=1e-7)
    assert verify(certify(proven)).verdict == "proven"
    if truth:
        refuted = check(text, epsilon=truth * 0.99, dim=dim)
        assert refuted.refuted
        assert verify(certify(refuted)).verdict == "refuted"


def test_limits_that_are_not_integers_give_everything_away() -> None:
    # 0 becomes 0.5, and 1 stays: outputs of discrete noise around them are disjoint.
    for text in ("round | clamp(0.5, 3) | discrete_laplace(1)", "counts(l1, 1) | clamp(0.5, 3) | discrete_gaussian(1)"):
        verdict = check(text, epsilon=5, delta=0.9, dim=1)
        assert verdict.refuted
        assert verdict.delta is not None
        assert verdict.delta.lower == pytest.approx(1)
        assert verify(certify(verdict)).verdict == "refuted"


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_l2_clipping_stretches_other_distances_by_a_known_factor(norm: str) -> None:
    """docs/proofs/diameters.md, point 19: (1 + √n)/2, which is approached by short steps along the sphere."""
    dim, power = 3, {"l1": 1, "linf": math.inf}[norm]
    rng = np.random.default_rng(5)
    x = rng.normal(size=(100_000, dim))
    y = x + rng.normal(size=x.shape) * rng.choice([0, 1], size=x.shape) * 10.0 ** rng.uniform(-4, 0, size=(len(x), 1))
    u, v = (z / np.maximum(1, np.linalg.norm(z, axis=1, keepdims=True)) for z in (x, y))
    moved = np.linalg.norm(x - y, ord=power, axis=1)
    ratios = (np.linalg.norm(u - v, ord=power, axis=1) / np.where(moved == 0, 1, moved))[moved > 0]
    assert ratios.max() <= (1 + math.sqrt(dim)) / 2 + 1e-9
    assert ratios.max() >= 0.9 * (1 + math.sqrt(dim)) / 2
    noise = "laplace(1)" if norm == "l1" else "radial(linf, 1)"
    verdict = check(f"counts({norm}, 1) | clip(l2, 9) | {noise}", epsilon=(1 + math.sqrt(dim)) / 2 + 1e-9, dim=dim)
    assert verdict.proven
    assert verify(certify(verdict)).verdict == "proven"


def test_clamped_answers_keep_what_their_width_allows() -> None:
    """Scores between 0 and 4 that move by at most 3: no more than any two vectors of the box, 4 for two scores."""
    for first in ("counts(linf, 3)", "query(linf, 3) | round"):
        verdict = check(f"{first} | clamp(0, 4) | exponential(1)", epsilon=4, dim=2)
        assert verdict.proven
        assert verify(certify(verdict)).verdict == "proven"


def test_a_second_clip_forgets_the_distance_that_it_may_stretch() -> None:
    """Between two l2 clips a clamp moves the vectors, so that the second may stretch an l1 distance once more."""
    text = "query(l1, 1) | clip(l2, 5) | clamp(0, 1) | clip(l2, 0.5) | laplace(1)"
    verdict = check(text, epsilon=9, dim=4)
    assert verdict.epsilon.upper == pytest.approx(2)  # 1 in l2, √4 times that in l1
