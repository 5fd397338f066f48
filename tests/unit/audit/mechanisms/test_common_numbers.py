"""Common random numbers for two inputs, also where one of them draws more of them."""

import numpy as np
import pytest

from dpassay.audit.mechanisms.common_numbers import CommonNumbers, common_numbers
from dpassay.audit.mechanisms.targets import as_mechanism, draw, draw_singly
from dpassay.audit.testing.decision_rule import Hypothesis
from dpassay.audit.testing.experiment import Experiment
from dpassay.audit.testing.training import training_outputs


def streams(number=2):
    return [CommonNumbers(np.random.Philox(7)) for _ in range(number)]


def stops_early(x, rng):
    """The number of draws until one is below x, and one more: a loop as one would write it."""
    for k in range(1000):
        if rng.random() < x:
            return k, rng.random()
    return 1000, 0.0


def draws_again(x, n, rng):
    """Rows whose first number is below x get another one; what comes last has nothing to do with x."""
    first = rng.random(n)
    again = first < x
    first[again] = rng.random(int(again.sum()))
    return np.column_stack([first, rng.laplace(size=n)])


@pytest.mark.parametrize(
    "other",
    [
        lambda rng: rng.random(5),
        lambda rng: rng.laplace(np.zeros(4)),
        lambda rng: rng.shuffle(np.arange(9)),
        lambda rng: rng.permutation(9),
        lambda rng: rng.choice(5, size=9),
        lambda rng: rng.integers(0, 9, 5, dtype=np.uint32),
        lambda rng: rng.standard_normal(out=np.zeros(4)),
    ],
)
def test_after_an_array_both_have_the_same_numbers(other):
    one, two = streams()
    one.random(3)
    other(two)
    assert [one.random(), one.integers(100)] == [two.random(), two.integers(100)]


def test_no_numbers_come_twice():
    # 53 bits each: two of 30,000 are equal with a probability of 5e-8, and the seed is fixed.
    (rng,) = streams(1)
    found = np.concatenate([[rng.random()] * (k % 2) + rng.random(30).tolist() for k in range(1000)])
    assert len(np.unique(found)) == len(found)


def test_other_generators_stay_as_they_are():
    rng = np.random.default_rng(1)
    assert common_numbers(rng) is rng
    assert isinstance(common_numbers(np.random.Generator(np.random.Philox(1))), CommonNumbers)
    assert [type(child) for child in streams(1)[0].spawn(1)] == [CommonNumbers]


def test_rows_drawn_again_for_one_input_leave_the_others_alone():
    experiment = Experiment(as_mechanism(draws_again), (0.1, 0.3), Hypothesis(1.0), 0)
    (one, two), _ = training_outputs(experiment, 2000, experiment.paired_streams(0))
    assert (one.numbers[:, 1] == two.numbers[:, 1]).all()
    kept = two.numbers[:, 0] >= 0.3
    assert (one.numbers[:, 0] == two.numbers[:, 0])[kept & (one.numbers[:, 0] >= 0.3)].mean() > 0.5


@pytest.mark.parametrize("mechanism", [draws_again, lambda x, n, rng: x + rng.random((n, 2))])
def test_nothing_is_drawn_twice(mechanism):
    experiment = Experiment(as_mechanism(mechanism), (0.1, 0.3), Hypothesis(1.0), 0)
    rngs = experiment.paired_streams(0)
    found = [training_outputs(experiment, 2000, rngs)[0][1].numbers for _ in range(2)]
    assert len(np.unique(np.concatenate(found))) == 2 * 2 * 1000


@pytest.mark.parametrize("make", [draw, draw_singly])
def test_runs_of_one_call_each_begin_alike(make):
    """Where the first draw is below both inputs, both stop there and give the same."""
    one, two = (make(as_mechanism(stops_early), x, 500, rng) for x, rng in zip((0.2, 0.3), streams(), strict=True))
    assert {a for a, b in zip(one, two, strict=True) if a[0] == b[0]} == {
        b for a, b in zip(one, two, strict=True) if a[0] == b[0]
    }
    # They stop together with probability 0.2/0.3: by the first draw below 0.3, which is below 0.2 that often.
    together = np.mean([a == b for a, b in zip(one, two, strict=True)])
    assert 0.6 < together < 0.73
