"""Which pair is the worst: where a theorem says so, and that no other pair of the region beats it."""

import itertools
import math

import numpy as np
import pytest

from dpassay.core.numbers import down, number, up
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.dominating_pairs import (
    MOST_COORDINATES,
    dominating_pair_is_known,
    dominating_pairs,
    most_differing,
)
from dpassay.pipeline.distributions import Gaussian, Laplace, Noise, OneSided
from dpassay.pipeline.regions import Ball, Bits, Box, Intersection, MinMax, OneHot, Pair, Region, Repeated, Rows, Sparse


def test_where_the_dominating_pair_is_known() -> None:
    assert dominating_pair_is_known(Laplace(1), Box.cube(0, 1, 5))
    assert dominating_pair_is_known(Laplace(1), Ball(1, 1, 5))
    assert not dominating_pair_is_known(Laplace(1), Ball(2, 1, 5))
    assert dominating_pair_is_known(Laplace(1), Ball(2, 1, 1))
    assert dominating_pair_is_known(Gaussian(1), Ball(2, 1, 5))
    assert not dominating_pair_is_known(Gaussian(1), Intersection(Ball(2, 1, 5), Ball(math.inf, 0.5, 5)))


def test_repeating_keeps_what_is_known() -> None:
    assert dominating_pair_is_known(Laplace(1), Repeated(Ball(1, 1, 5), 3))
    assert dominating_pair_is_known(Gaussian(1), Repeated(Ball(2, 1, 5), 3))
    assert not dominating_pair_is_known(Laplace(1), Repeated(Ball(2, 1, 5), 3))
    assert not dominating_pair_is_known(OneSided(1), Repeated(Box.cube(0, 1, 5), 3))
    assert not dominating_pair_is_known(
        Laplace(1), Repeated(Box.cube(0, 1, 5), MOST_COORDINATES)
    )  # too many for a grid
    pairs, _ = dominating_pairs(Laplace(1), Repeated(Box.cube(0, 1, 5), MOST_COORDINATES))
    assert min(sum(b.count for b in pair.blocks if b.x != b.y) for pair in pairs) == MOST_COORDINATES


def bound(noise: Noise, first: np.ndarray, second: np.ndarray, epsilon: str) -> float:
    pair = Pair.of(first, second)
    losses = [PrivacyLoss.of_shifts(noise, [(s * (b.y - b.x), b.count) for b in pair.blocks]) for s in (1, -1)]
    return max(down(loss.delta_number(number(epsilon))) for loss in losses)


STRINGS = [np.array(s, dtype=float) for s in itertools.product((0, 1), repeat=4)]
SETS: list[tuple[Region, list[np.ndarray]]] = [
    (Sparse(4, 1), [s for s in STRINGS if s.sum() == 1]),
    (Sparse(4, 3), [s for s in STRINGS if 1 <= s.sum() <= 3]),
    (Sparse(4, 4), [s for s in STRINGS if s.sum() >= 1]),
    (Bits(4), STRINGS),
    (OneHot(4), list(np.eye(4))),
    (MinMax(2), [np.array(v) for v in ([0.0, 1.0], [1.0, 0.0], [0.0, 0.0])]),
]


# One-sided noise is known for differences of one sign, which one-hot, min-max and repeated vectors do not have.
CASES = [
    (region, points, noise, times)
    for region, points in SETS
    for noise in (Laplace(2), Gaussian(1), OneSided(3))
    for times in (1, 2)
    if not (isinstance(noise, OneSided) and (times > 1 or isinstance(region, OneHot | MinMax)))
]


@pytest.mark.parametrize(("region", "points", "noise", "times"), CASES, ids=lambda v: str(v)[:12])
def test_no_other_pair_is_worse(region: Region, points: list[np.ndarray], noise: Noise, times: int) -> None:
    repeated = Repeated(region, times) if times > 1 else region
    assert dominating_pair_is_known(noise, repeated)
    (dominating, *_), _ = dominating_pairs(noise, repeated)
    # Independent coordinates: pairs whose differences are the same in another order have the same loss.
    pairs = {tuple(sorted(a - b)): (a, b) for a, b in itertools.combinations(points, 2)}
    for epsilon in ("0", "0.3", "1.2"):
        losses = [
            PrivacyLoss.of_shifts(noise, [(s * (b.y - b.x), b.count) for b in dominating.blocks]) for s in (1, -1)
        ]
        most = max(up(loss.delta_number(number(epsilon))) for loss in losses)
        for one, other in pairs.values():
            # Lattices know δ to four digits.
            assert bound(noise, np.tile(one, times), np.tile(other, times), epsilon) <= most * (1 + 1e-4)


def test_how_many_coordinates_can_differ() -> None:
    assert most_differing(Rows(9, (0, 1))) == 1
    assert most_differing(Sparse(9, 3)) == 6
    assert most_differing(Sparse(1, 1)) == 0
    assert most_differing(OneHot(9)) == 2
    assert most_differing(OneHot(1)) == 0
    assert most_differing(Repeated(Sparse(9, 3), 4)) == 24
    assert most_differing(Box.cube(0, 1, 9)) == 9
