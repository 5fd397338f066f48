"""An output is read the same way whether it was requested alone or came as a row of a batch."""

import numpy as np
import pytest

from dpassay.audit.mechanisms.batches import known_independent
from dpassay.audit.mechanisms.seeding import seed_all
from dpassay.audit.mechanisms.targets import as_mechanism, draw, draw_singly
from dpassay.audit.outputs.features import anomalies
from dpassay.audit.outputs.outputs import part, read

BATCHES = {
    "floats": np.array([0.5, 2.0, np.nan, np.inf]),
    "single precision": np.array([0.5, 2.0, 3.0], dtype=np.float32),
    "integers": np.array([3, -1, 0]),
    "truth values": np.array([True, False]),
    "a column": np.array([[1.5], [2.5]]),
    "vectors": np.array([[1.5, 2.0], [3.0, 4.0]]),
    "vectors of integers": np.array([[1, 2], [3, 4]]),
    "matrices": np.arange(8.0).reshape(2, 2, 2),
    "beyond 2^53": np.array([2**53 - 1, 2**53, 2**53 + 1, 2**60, 5]),
    "vectors beyond 2^53": np.array([[2**53 + 1, 0], [1, 2]]),
    "long doubles": np.array([1, 1], dtype=np.longdouble) / np.array([3, 4], dtype=np.longdouble),
    "texts": np.array(["a", "bc"]),
    "complex numbers": np.array([1 + 2j, 3.0]),
    "a list": [1, 2.5, "a", None, [1, 2]],
}


@pytest.mark.parametrize("name", BATCHES)
def test_rows_asked_for_alone_are_read_as_in_a_batch(name):
    batch = BATCHES[name]
    left = iter(range(len(batch)))

    def mechanism(x, n, rng):
        start = next(left)
        return batch[start : start + n]

    outputs = read(batch)
    alone = read(draw_singly(as_mechanism(mechanism), 0, len(batch), np.random.default_rng(0)))
    assert outputs.keys().tolist() == alone.keys().tolist()
    for i in range(len(batch)):
        first, second, third = part(outputs, i, i + 1), part(alone, i, i + 1), read(batch[i : i + 1])
        said = [list(anomalies(one, ())[1].values()) for one in (first, second, third)]
        assert said[0] == said[1] == said[2]
        assert first.kind == second.kind == third.kind


class Elsewhere:
    """It runs in another process."""

    replays = True

    def sample(self, x, n, rng):
        raise AssertionError("one output each was asked for")

    def sample_each(self, inputs, rng):
        return [f"{x} {rng.integers(10)}" for x in inputs]


def test_single_runs_of_what_runs_elsewhere_are_asked_for_together():
    mechanism = seed_all(Elsewhere())
    assert isinstance(mechanism, Elsewhere)  # nothing here seeds it, and what it has to say stays its own
    assert [said[0] for said in draw_singly(mechanism, "a", 3, np.random.default_rng(0))] == ["a"] * 3


def test_an_object_may_say_for_its_method_that_rows_are_independent():
    class Noisy:
        independent_rows = True

        async def sample(self, x, n, rng):
            return x + rng.laplace(size=n)

        def other(self, x, n, rng):
            return x + rng.laplace(size=n)

    assert known_independent(as_mechanism(Noisy()))
    assert known_independent(as_mechanism(Noisy().other))
    assert not known_independent(as_mechanism(lambda x, n, rng: [x] * n))


def test_an_async_mechanism_is_seeded_while_it_runs():
    async def noisy(x, n, rng):
        return x + np.random.random(n)

    mechanism = seed_all(as_mechanism(noisy))
    first, again = (draw(mechanism, 0.0, 4, np.random.default_rng(1)) for _ in range(2))
    assert first.tolist() == again.tolist()
