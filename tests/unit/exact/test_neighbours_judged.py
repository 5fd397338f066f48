"""What users, entities, groups and several words mean for a verdict, from formulas."""

import math

import pytest

from dpassay import check
from dpassay.errors import InputError


def epsilon(pipeline: str, neighbours: str, dim: int = 4) -> float:
    verdict = check(pipeline, epsilon=1, neighbours=neighbours, dim=dim)
    assert verdict.epsilon.upper == pytest.approx(verdict.epsilon.lower, rel=1e-7)
    return verdict.epsilon.upper


@pytest.mark.parametrize("unit", ["user", "entity", "user-entity", "add-remove-record", "group(1)"])
def test_a_user_is_a_record_that_is_clipped_as_a_whole(unit: str) -> None:
    assert epsilon("clip(l1, 3) | laplace(2)", unit) == pytest.approx(3 / 2)


@pytest.mark.parametrize(
    ("pipeline", "one"),
    [
        ("clip(l1, 1) | laplace(2)", 1 / 2),
        ("clip(l2, 1) | laplace(2)", 1),  # the diagonal of 4 dimensions
        ("clamp(-1, 3) | laplace(2)", 4 * 3 / 2),
        ("onehot(4) | laplace(2)", 1 / 2),
        ("query(l1, 1) | laplace(2)", 1 / 2),
        ("clip(linf, 1) | clip(l1, 2) | laplace(2)", 1),
    ],
)
def test_a_group_moves_a_sum_as_often_as_it_has_members(pipeline: str, one: float) -> None:
    for size in (1, 2, 5):
        assert epsilon(pipeline, f"group({size})") == pytest.approx(size * one, rel=1e-6)


def test_a_group_in_gaussian_noise_is_a_larger_distance() -> None:
    # μ = k·C/σ; exact δ at ε = 1.
    verdict = check("clip(l2, 1) | gaussian(4)", epsilon=1, delta=1e-5, neighbours="group(3)", dim=4)
    mu = 3 / 4
    tails = [0.5 * math.erfc(-z / math.sqrt(2)) for z in (mu / 2 - 1 / mu, -mu / 2 - 1 / mu)]
    assert verdict.delta.lower == pytest.approx(tails[0] - math.e * tails[1], rel=1e-9)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_monotone_scores_of_a_group_add_up(norm: str) -> None:
    # Each record is 1-DP on its own, so n of them are n-DP; n records that all raise one score attain it.
    for size in (1, 2, 3):
        found = epsilon(f"query({norm}, 1, monotone) | exponential(1)", f"group({size})")
        assert found == pytest.approx(size)
    # Scores that move in any way may move twice as far apart.
    assert epsilon("query(linf, 1) | exponential(1)", "group(2)") == pytest.approx(4)


@pytest.mark.parametrize("unit", ["words", "tokens"])
def test_dropout_must_leave_out_all_words_that_differ(unit: str) -> None:
    for count in (1, 2, 6):
        found = epsilon("dropout(0.5) | encode | minmax | laplace(1)", f"{unit}({count})", dim=3)
        assert found == pytest.approx(math.log((1 - 0.5**count) * math.exp(3) + 0.5**count))


def test_what_rows_do_not_speak_of_is_refused() -> None:
    with pytest.raises(InputError, match="begins with rows"):
        check("rows | clamp(0, 1) | laplace(1)", epsilon=1, neighbours="group(2)", dim=3)
