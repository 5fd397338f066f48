"""The sum of a round: whole updates are projected, and neighbours' sums lie no farther apart than the sensitivity."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from dpassay.errors import InputError
from dpassay.training.aggregation import PerUnit, UserEntity, bounded_sum, flat, in_parts, projected, usual_most
from dpassay.training.randomness import SeededNoise


class Coins:
    """The same coins for whoever has the same name, whatever the others are."""

    step = None

    def __init__(self, users, entities, rng):
        self.coins = [{name: rng.random() for name in names} for names in (users, entities)]

    def of(self, users, entities):
        tables = [[self.coins[0][name] for name in users], [self.coins[1][name] for name in entities]]

        class Fixed:
            @staticmethod
            def uniform(round_, stream, size):
                return np.array(tables[stream][:size])

        return Fixed()


def stack(rows):
    """Updates of two tensors of different shapes."""
    rows = torch.as_tensor(rows, dtype=torch.float32)
    return {"a": rows[:, :4].reshape(-1, 2, 2), "b": rows[:, 4:]}


def test_the_whole_update_is_projected_not_its_tensors():
    rows = np.array([[3.0, 0, 0, 0, 0, 4.0], [0.03, 0, 0, 0, 0.04, 0]])
    for row, expected in zip(rows, (rows[0] / 5, rows[1]), strict=True):
        total = PerUnit(2, 1.0, 1.0).combine([0], [([0], stack(row[None]))])
        assert total.numpy() == pytest.approx(expected, rel=1e-4)
        assert float(total.norm()) <= 1


def test_an_update_that_is_not_finite_counts_as_none():
    total = PerUnit(2, 1.0, 1.0).combine([0, 1], [([0, 1], stack([[np.nan] * 6, [0.1] * 6]))])
    assert total.numpy() == pytest.approx([0.1] * 6)
    assert projected(torch.tensor([[float("inf"), 1.0]]), 1.0).tolist() == [[0, 0]]


def test_steps_round_toward_zero_and_keep_the_norm():
    rows = np.random.default_rng(1).normal(size=(5, 6))
    total = PerUnit(5, 1.0, 1.0).combine([0], [([0], stack(rows[:1]))], step=1e-3)
    assert total.dtype == torch.float64
    assert (total == total.round()).all()
    assert float(total.norm()) <= 1000


def test_one_unit_more_moves_the_sum_by_at_most_the_clip():
    rng = np.random.default_rng(2)
    for _ in range(200):
        rows = rng.normal(size=(4, 6)) * rng.choice([0.01, 1, 100])
        more = PerUnit(4, 0.5, 0.7).combine(range(4), [([0, 1], stack(rows[:2])), ([2, 3], stack(rows[2:]))])
        less = PerUnit(3, 0.5, 0.7).combine(range(3), [([0, 1, 2], stack(rows[:3]))])
        assert float((more - less).norm()) <= 0.7 + 1e-5


USERS, ENTITIES = ("ann", "bob", "cy", "dee", "eve"), ("oslo", "rome", "york")
FULL = {(u, e): None for u in USERS for e in ENTITIES}


def round_of(cells, users, vectors, coins, most, round_=3):
    """The sum of one round on a corpus that has these cells and this roster of users."""
    keys = sorted(cells)
    entities = sorted({e for _, e in keys})
    aggregation = UserEntity(
        tuple(users),
        np.array([users.index(u) for u, _ in keys]),
        np.array([entities.index(e) for _, e in keys]),
        *(0.8, 0.8, 1.0, 0.5, most),
    )
    chosen = aggregation.drawn(coins.of(users, entities), round_)
    if not chosen:
        return torch.zeros(6), aggregation
    rows = np.array([vectors[keys[cell]] for cell in chosen])
    return aggregation.combine(chosen, [(chosen, stack(rows))]), aggregation


@pytest.mark.long(every=2)
@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_a_user_and_an_entity_move_the_sum_by_at_most_the_sensitivity(most):
    """All coins fixed; the neighbour lacks a user and an entity. Updates are an adversary's: long, and opposed."""
    rng = np.random.default_rng(most)
    largest = 0.0
    for _ in range(300):
        direction = rng.normal(size=6)
        side = {user: rng.choice([-9, -1, 1, 9]) for user in USERS}
        vectors = {(u, e): direction * side[u] * rng.choice([-1, 1, 1]) for u, e in FULL}
        coins = Coins(USERS, ENTITIES, rng)
        kept = {key for key in FULL if rng.random() < 0.8} | {("ann", "oslo")}
        user, entity = rng.choice(USERS), rng.choice(ENTITIES)
        less = {(u, e) for u, e in kept if u != user and e != entity}
        if not less:
            continue
        with_both, aggregation = round_of(kept, list(USERS), vectors, coins, most)
        without, _ = round_of(less, [u for u in USERS if u != user], vectors, coins, most)
        largest = max(largest, float((with_both - without).norm()))
        assert largest <= aggregation.sensitivity + 1e-5
    assert largest > 1.4  # one ball's radius would not be enough


def test_the_sensitivity_and_the_rate_are_those_of_the_proof():
    aggregation = UserEntity(USERS, np.arange(5), np.zeros(5, dtype=int), 0.05, 0.5, 2.0, 0.25, 4)
    assert aggregation.sensitivity == 2 * 2.0 + 3 * 0.25
    assert aggregation.rate == pytest.approx(1 - 0.95 * 0.5)


def test_at_most_so_many_users_take_part_and_not_always_the_same():
    aggregation = UserEntity(USERS, np.arange(5), np.zeros(5, dtype=int), 1.0, 1.0, 1.0, 0.25, 2)
    drawn = [tuple(aggregation.drawn(SeededNoise(1), round_)) for round_ in range(40)]
    assert {len(cells) for cells in drawn} == {2}
    assert {cell for cells in drawn for cell in cells} == set(range(5))


def test_a_users_cells_may_come_in_several_parts():
    aggregation = UserEntity(USERS, np.array([0, 0, 1]), np.array([0, 1, 0]), 1.0, 1.0, 1.0, 1.0, 5)
    rows = np.eye(6)[:3] * 10
    total = aggregation.combine([0, 1, 2], [([0, 2], stack(rows[[0, 2]])), ([1], stack(rows[[1]]))])
    assert total.numpy() == pytest.approx([0.5**0.5, 0.5**0.5, 1, 0, 0, 0], rel=1e-4)


def test_parts_hold_every_cell_once():
    parts = list(in_parts([7, 3, 5, 9], [4, 1, 4, 2], 3))
    assert [len(part) for part in parts] == [3, 1]
    assert sorted(cell for part in parts for cell in part) == [3, 5, 7, 9]
    assert usual_most(10, 1.0) == 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PerUnit(5, 0.0, 1.0), "rate is a probability"),
        (lambda: PerUnit(5, 1.1, 1.0), "rate is a probability"),
        (lambda: PerUnit(5, 0.5, 0.0), "clip must be a number"),
        (lambda: UserEntity(USERS, np.arange(5), np.arange(5), 0.1, 0.5, 1.0, 2.0, 3), "clip of a cell"),
        (lambda: UserEntity(USERS, np.arange(5), np.arange(5), 0.1, 0.5, 1.0, 0.5, 0), "at least one user"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_the_rate_of_users_and_entities_is_rounded_up():
    """The chance that a user or an entity is drawn, 1 − (1 − p)(1 − q): the least double that is not below it."""
    rng = np.random.default_rng(1)
    up = 0
    for p, q in [(0.1, 0.2), (2.0**-60, 2.0**-60), *rng.random((200, 2)).tolist()]:
        aggregation = UserEntity(USERS, np.arange(5), np.zeros(5, dtype=int), p, q, 1.0, 0.25, 2)
        exact = 1 - (1 - Fraction(p)) * (1 - Fraction(q))
        assert Fraction(aggregation.rate) >= exact
        assert Fraction(math.nextafter(aggregation.rate, 0)) < exact
        up += aggregation.rate != float(exact)
    assert up > 50  # the nearest double is below the rate about every second time


def test_the_sum_of_bounded_updates_is_that_of_their_projections():
    torch.manual_seed(4)
    rows = {"a": torch.randn(6, 3, 2), "b": 10 * torch.randn(6, 5)}
    rows["a"][2] = float("nan")
    rows["b"][4] = float("inf")
    rows["a"][5], rows["b"][5] = 1e-3, 1e-3
    expected = projected(flat(rows), 0.5).double().sum(0)
    found = bounded_sum({name: tensor.clone() for name, tensor in rows.items()}, 0.5)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
    for name in rows:  # one row alone never has a larger norm
        rows[name] = 1e3 * torch.randn(1, *rows[name].shape[1:])
    assert bounded_sum(rows, 0.5).double().norm() <= 0.5
