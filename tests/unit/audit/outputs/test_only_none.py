"""A mechanism that returns nothing but None has most likely forgotten its `return`, and nothing was judged."""

import pytest

from dpassay import audit
from dpassay.errors import MechanismError

SAID = r"returned None on every run: did you forget `return`\?"


class Forgetful:
    """Counts how often it was called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        _ = x + 1


@pytest.mark.parametrize("runs", [50, 300, 100_000])
def test_it_is_named_whatever_the_number_of_runs(runs):
    mechanism = Forgetful()
    with pytest.raises(MechanismError, match=SAID):
        audit(mechanism, [(0, 1)], epsilon=1, runs=runs)
    assert mechanism.calls <= 10_000  # a slow one is not run to the end


def test_a_batch_that_is_none_is_named_too():
    def forgetful(x, n, rng):
        _ = x + rng.laplace(size=n)

    with pytest.raises(MechanismError, match=r"returned None instead of a batch of outputs: did you forget `return`\?"):
        audit(forgetful, [(0.0, 1.0)], epsilon=1)


def test_none_may_be_an_answer():
    """Always None for the one input and never for the other refutes; now and then None is an answer like others."""
    assert audit(lambda x: None if x else "yes", [(0, 1)], epsilon=1, runs=2000).refuted
    assert audit(lambda x, rng: None if rng.random() < 0.5 else "yes", [(0, 1)], epsilon=1, runs=2000).open


@pytest.mark.parametrize("share", [0.1, 0.01])
def test_none_in_most_runs_is_not_none_in_every_run(share):
    """Of 32 outputs at a first glance all are None in 3% and 72% of audits; none of them ends with that message."""

    def rarely(x, rng):
        return 1 if rng.random() < share else None

    assert all(audit(rarely, [(0, 1)], epsilon=1, runs=700, seed=seed).open for seed in range(12))


def test_code_that_has_a_return_is_not_said_to_have_forgotten_it():
    """An answer in one of 10^5 runs: 3,000 times None is what such a mechanism gives."""

    def hardly_ever(x, rng):
        return 1 if rng.random() < 1e-5 else None

    assert audit(hardly_ever, [(0, 1)], epsilon=1, runs=3000).open
