"""Smaller pairs: types are kept, failures are not smaller, another flaw is not shown, and nothing found is lost."""

import json

import numpy as np
import pytest

from dpassay import MechanismError, Refuted, audit
from dpassay.audit.inputs.shrinking import size, smaller
from dpassay.audit.storage.replay import replay


def whole_numbers_only(x, rng):
    if type(x) is not list or any(type(v) is not int for v in x):
        raise MechanismError(f"it takes a list of integers, and this is {x!r}")
    return sum(x) + rng.laplace(scale=0.1)


def test_lists_of_integers_stay_lists_of_integers(tmp_path):
    path = tmp_path / "audit.json"
    verdict = audit(whole_numbers_only, [([1, 5, 7, 2], [2, 6, 8, 2])], epsilon=1, save=path, bits=False)
    assert isinstance(verdict, Refuted)
    assert size(verdict.witness.inputs)[0] == 1
    assert all(type(x) is list and all(type(v) is int for v in x) for x in verdict.witness.inputs)
    assert replay(path, whole_numbers_only, seed=9).ok


@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3],
        (1, 2.5, 3),
        {"a": [1, True], "b": (2.5, "word")},
        [[1, 2], [3, 4]],
        np.array([1, 2, 3], dtype=np.int32),
        np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32),
        {"rows": np.array([True, False]), "n": 3},
    ],
    ids=str,
)
def test_every_smaller_pair_is_built_as_the_pair_was(x):
    def changed(value):
        if isinstance(value, dict):
            return {key: changed(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(changed(entry) for entry in value)
        if isinstance(value, np.ndarray):
            return ~value if value.dtype == bool else value + value.dtype.type(1)
        return value if isinstance(value, str) else type(value)(not value) if isinstance(value, bool) else value + 1

    def kinds(value):
        if isinstance(value, dict):
            return {key: kinds(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return type(value), [kinds(entry) for entry in value]
        return (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)

    found = list(smaller((x, changed(x))))
    assert found
    for pair in found:
        assert [kinds(side) for side in pair] == [kinds(x), kinds(x)]
        assert size(pair) < size((x, changed(x)))


def test_a_mechanism_that_fails_on_smaller_pairs_is_still_refuted():
    def picky(x, n, rng):
        if list(x) not in ([3.0, 4.0], [5.0, 6.0]):
            raise MechanismError("it died")
        return np.asarray(x) + rng.laplace(scale=0.1, size=(n, 2))

    verdict = audit(picky, [([3.0, 4.0], [5.0, 6.0])], epsilon=1)
    assert isinstance(verdict, Refuted)
    assert verdict.witness.inputs == ([3.0, 4.0], [5.0, 6.0])


def shared_noise(x, n, rng):
    """One draw for all coordinates of an output, and NaN for a positive input whose last coordinate is 0."""
    noisy = np.asarray(x, dtype=float) + rng.laplace(scale=2.0, size=(n, 1))
    return np.full((n, 3), np.nan) if x[2] == 0 and x[0] > 0 else noisy


def test_a_pair_is_not_shrunk_into_another_flaw():
    # Zeroing what both inputs have in common would give NaN, which tells the inputs apart at once.
    verdict = audit(shared_noise, [([0.0, 0.0, 5.0], [1.0, 0.0, 5.0])], epsilon=1, bits=False)
    assert isinstance(verdict, Refuted)
    assert verdict.witness.inputs[0][2] == 5.0
    assert "NaN" not in verdict.witness.event


def test_a_pair_is_shrunk_where_the_flaw_is_the_same():
    def noisy(x, n, rng):
        return np.asarray(x, dtype=float) + rng.laplace(scale=0.2, size=(n, 3))

    verdict = audit(noisy, [([0.0, 0.0, 5.0], [1.0, 1.0, 5.0])], epsilon=1, bits=False)
    assert size(verdict.witness.inputs) == (1, 1)


def noisy_sum(x, n, rng):
    return sum(x) + rng.laplace(scale=0.1, size=n)


def test_ctrl_c_while_shrinking_keeps_the_refutation_and_so_does_going_on(tmp_path):
    def stop(done, total, note):
        if note.startswith("shrinking"):
            raise KeyboardInterrupt

    options = {"epsilon": 1, "bits": False, "save": tmp_path / "audit.json"}
    pairs = [([1, 5, 7], [2, 6, 8])]
    stopped = audit(noisy_sum, pairs, progress=stop, **options)
    assert isinstance(stopped, Refuted)
    assert stopped.interrupted
    resumed = audit(noisy_sum, pairs, resume=True, **options)
    assert isinstance(resumed, Refuted)
    assert size(resumed.witness.inputs)[0] == 1
    # Each attempt is made once: what was begun is not begun again with its share of the error probability.
    spent = dict(resumed.ledger)
    assert sum(spent.values()) <= resumed.alpha


def test_a_finished_audit_that_is_resumed_says_the_same_again(tmp_path):
    options = {"epsilon": 1, "bits": False, "save": tmp_path / "audit.json"}
    pairs = [([1, 5, 7], [2, 6, 8])]
    first = audit(noisy_sum, pairs, **options)
    kept = json.loads((tmp_path / "audit.json").read_text())
    again = audit(noisy_sum, pairs, resume=True, **options)
    assert isinstance(again, Refuted)
    assert again.witness.inputs == first.witness.inputs
    assert (again.runs, again.epsilon.lower) == (first.runs, first.epsilon.lower)
    assert json.loads((tmp_path / "audit.json").read_text()) == kept


def test_what_was_refuted_without_shrinking_stays_refuted_with_it(tmp_path):
    options = {"epsilon": 1, "bits": False, "save": tmp_path / "audit.json", "until_refuted": True}
    pairs = [([1, 5, 7], [2, 6, 8])]
    first = audit(noisy_sum, pairs, shrink=False, **options)
    again = audit(noisy_sum, pairs, resume=True, **options)
    assert isinstance(first, Refuted)
    assert isinstance(again, Refuted)
    assert sum(dict(again.ledger).values()) <= again.alpha
