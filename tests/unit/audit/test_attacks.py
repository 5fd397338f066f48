"""Each guesser by hand, on data small enough to work the score out."""

import math
import zlib

import numpy as np
import pytest

from dpassay.audit.attacks import (
    NEARER,
    NEARER_STEPS,
    ONE_SIDED,
    Boosted,
    Counted,
    CustomDistinguisher,
    Guarded,
    Likelihood,
    Linear,
    Nearest,
    Ngrams,
    Statistic,
)
from dpassay.audit.features import HASHED
from dpassay.audit.outputs import read
from dpassay.errors import InputError
from dpassay.pipeline.distributions import BitDistribution, Laplace, Pmf, Shifted
from dpassay.pipeline.mechanism import Failure

NAN, INF = math.nan, math.inf


def same(scores, expected):
    return np.array_equal(scores, np.array(expected, dtype=float), equal_nan=True)


# ── Statistics and sums ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [2, 0]),
        ("smallest coordinate", [-2, 0]),
        ("largest coordinate", [3, 0]),
        ("l1 norm", [6, 0]),
        ("coordinate 0", [1, 0]),
        ("coordinate 2", [3, 0]),
    ],
)
def test_statistics(name, expected):
    rows = read([[1, -2, 3], [0, 0, 0]])
    assert same(Statistic(name, 3).scores(rows), expected)
    assert same(Statistic(name, 3, -1.0).scores(rows), [-v for v in expected])
    assert name in Statistic(name, 3).describe()


def test_nearness_is_the_difference_of_distances():
    x, y = np.array([0.0, 0.0]), np.array([1.0, 3.0])
    near = Statistic(NEARER, 2, 1.0, (x, y))
    assert same(near.scores(read([[0, 0], [1, 3], [1, 0], [5, 5]])), [-4, 4, 1 - 3, 10 - 6])
    # Increments of (2, 3) are (2, 1): |2| + |1| from x, |1| + |−2| from y.
    steps = Statistic(NEARER_STEPS, 2, 1.0, (x, y))
    assert same(steps.scores(read([[2, 3], [1, 4]])), [3 - 3, (1 + 3) - 0])


def test_statistics_of_what_is_no_vector_are_unknown():
    outputs = read([None, "text", [1], [1, 2, 9], [NAN, 1]])
    assert same(Statistic("sum", 2).scores(outputs), [NAN, NAN, NAN, 3, NAN])
    assert same(Statistic("smallest coordinate", 2).scores(outputs), [NAN, NAN, NAN, 1, NAN])
    assert same(Statistic("coordinate 0", 2).scores(outputs), [NAN, NAN, 1, 1, NAN])


def test_infinite_coordinates_are_no_warning():
    # Warnings are errors here, as they may be where somebody's tests run.
    outputs = read([[INF, -INF], [1e308, 1e308], [INF, 1]])
    x = np.array([INF, 0.0])
    assert same(Statistic("sum", 2).scores(outputs), [NAN, INF, INF])
    assert same(Statistic(NEARER, 2, 1.0, (x, np.zeros(2))).scores(outputs), [NAN, NAN, NAN])  # ∞ − ∞ in each
    assert np.isnan(Statistic(NEARER_STEPS, 2, 1.0, (x, np.zeros(2))).scores(outputs)[0])
    assert same(Linear(np.array([0.0, 1.0]), 0.0).scores(outputs), [NAN, 1e308, NAN])
    assert same(Nearest((x, np.zeros(2))).scores(read([[INF, 1.0]])), [[NAN, -INF]])
    table = Boosted("coordinates", 2, ((2,),), {2: np.array([0.0])}, (np.array([1.0, 2.0, 3.0]),))
    assert same(table.scores(outputs), [1, 2, 1])


def test_linear():
    guesser = Linear(np.array([2.0, -1.0]), 0.5)
    assert same(guesser.scores(read([[1, 1], [0, 0], [3, -2]])), [1.5, 0.5, 8.5])
    assert same(guesser.scores(read([[1, 1], [1], None])), [1.5, NAN, NAN])


def test_linear_with_weights_of_what_is_missing():
    guesser = Linear(np.array([2.0, -1.0]), 0.5, np.array([10.0, 100.0]))
    outputs = read([[1, 1], [NAN, 1], [3, NAN], [1], None])
    assert same(guesser.scores(outputs), [1.5, 9.5, 106.5, 102.5, 110.5])


def test_nearest():
    guesser = Nearest((np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([5.0, 0.0])))
    assert same(guesser.scores(read([[0, 0], [2, 1]])), [[0, -2, -5], [-3, -1, -4]])


def test_likelihood_by_formula():
    # ln of e^−|t−1|/e^−|t|: from −1 at t ≤ 0 to 1 at t ≥ 1.
    pair = Likelihood((Shifted(Laplace(1), np.zeros(1)), Shifted(Laplace(1), np.ones(1))))
    assert pair.scores(read([-2, 0, 0.25, 0.5, 1, 7])) == pytest.approx([-1, -1, -0.5, 0, 1, 1], abs=1e-15)
    assert np.isnan(pair.scores(read([None, "text", NAN, Failure("E"), []]))).all()
    pmf = Likelihood(tuple(Pmf(np.array(p)) for p in ([0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0])))
    logs = np.log([0.5, 0.25]), [-INF, math.log(0.5)], [0, -INF]
    assert same(pmf.scores(read([0, 1])), np.stack(logs, axis=1))
    bits = Likelihood((BitDistribution(np.array([0.25, 0.5])), BitDistribution(np.array([0.75, 0.5]))))
    assert bits.scores(read([[1, 0], [0, 1]])) == pytest.approx([math.log(3), -math.log(3)])
    assert np.isnan(bits.scores(read([[2, 0], [0.5, 1]]))).all()  # impossible on both sides


def test_likelihood_looks_at_as_many_coordinates_as_the_law_has():
    pair = Likelihood((Shifted(Laplace(1), np.zeros(3)), Shifted(Laplace(1), np.ones(3))))
    whole = [0.1, 0.9, 0.8]  # distances 1.8 and 1.2
    assert pair.scores(read([whole])) == pytest.approx([0.6])
    assert pair.scores(read([whole, None, [0.1], [0.1, 0.9]]))[0] == pytest.approx(0.6)
    assert np.isnan(pair.scores(read([[0.1], [0.1, 0.9]]))).all()
    assert np.isnan(pair.scores(read([0.1, 0.2]))).all()


def test_the_guesser_that_a_user_brings():
    def longest(outputs):
        return [len(o) for o in outputs]

    assert same(CustomDistinguisher(longest).scores(read(["a", "bcd"])), [1, 3])
    assert CustomDistinguisher(longest).describe() == "the guesser longest"


def test_a_guesser_that_looks_at_the_batch_is_refused():
    # It would be right nearly always, of a mechanism that keeps what it promises: from many runs anybody can tell.
    def mean(outputs):
        return [sum(outputs) / len(outputs)] * len(outputs)

    with pytest.raises(InputError, match=r"the guesser mean scores an output 2\.0 among 3 and 3\.0 alone"):
        CustomDistinguisher(mean).scores(read([1.0, 2.0, 3.0]))
    assert CustomDistinguisher(mean).scores(read([3.0])).tolist() == [3.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda outputs: 3.0,
        lambda outputs: [1.0],
        lambda outputs: [1.0] * (2 * len(outputs)),  # each would count twice
        lambda outputs: ["a"] * len(outputs),
        lambda outputs: None,
        lambda outputs: [len(o) for o in outputs],
        lambda outputs: np.zeros((len(outputs), 2, 2)),
    ],
)
def test_a_guesser_that_gives_no_scores_is_refused(function):
    with pytest.raises(InputError, match="must give"):
        CustomDistinguisher(function).scores(read([1.0, 2.0, 3.0]))


def test_a_guesser_may_abstain_and_give_a_score_for_each_input():
    assert same(CustomDistinguisher(lambda outputs: [NAN] * len(outputs)).scores(read([1, 2])), [NAN, NAN])
    assert CustomDistinguisher(lambda outputs: np.zeros((len(outputs), 3))).scores(read([1, 2])).shape == (2, 3)
    assert CustomDistinguisher(lambda outputs: []).scores(read([])).shape == (0,)


# ── Boosted tables ──────────────────────────────────────────────────────────────────────────────


def test_tables_add_up():
    edges = {0: np.array([0.0]), 2: np.array([1.0])}  # of a pair of coordinates, 2 is their difference
    tables = (np.array([1.0, 2.0, 4.0]), np.arange(9.0).reshape(3, 3))
    guesser = Boosted("coordinates", 2, ((0,), (0, 2)), edges, tables)
    outputs = read([[-1, -1], [3, 9], [3, NAN], None])
    # (0; 0, 0): 1 + 0.  (1; 1, 1): 2 + 4.  (1; 1, NaN): 2 + 5.  (NaN; NaN, NaN): 4 + 8.
    assert same(guesser.scores(outputs), [1, 6, 7, 12])


# ── Categories ──────────────────────────────────────────────────────────────────────────────────


def test_counted_values():
    names = sorted(int(read([v]).keys()[0]) for v in ("yes", "no", 3))
    logs = {int(read([v]).keys()[0]): pair for v, pair in (("yes", (-1, -3)), ("no", (-2, -0.5)), (3, (-4, -4)))}
    guesser = Counted("value", tuple(names), np.array([logs[n] for n in names]).T)
    assert same(guesser.scores(read(["yes", "no", 3.0, "maybe", None, NAN])), [-2, 1.5, 0, NAN, NAN, NAN])
    three = Counted("value", (names[0],), np.array([[-1.0], [-2.0], [-3.0]]))
    unknown = three.scores(read([None, 77]))
    assert unknown.shape == (2, 3)
    assert np.isnan(unknown).all()


def test_counted_oddities_and_the_guard():
    names = ("number", "number, NaN", "none")
    logs = np.array([[-0.1, -8.0, -3.0], [-0.1, -1.0, -2.0]])
    odd = Counted("oddities", names, logs)
    outputs = read([5.0, NAN, None, "text"])
    assert same(odd.scores(outputs), [0, 7, 1, NAN])
    guarded = Guarded(Statistic("coordinate 0", 1), odd)
    assert 1 < ONE_SIDED < 7
    assert same(guarded.scores(outputs), [5, INF, NAN, NAN])
    other_way = Guarded(Statistic("coordinate 0", 1), Counted("oddities", names, logs[::-1]))
    assert same(other_way.scores(outputs), [5, -INF, NAN, NAN])
    assert "number, NaN" in guarded.describe()


# ── Texts ───────────────────────────────────────────────────────────────────────────────────────


def cell(gram):
    return zlib.crc32(gram.encode()) % HASHED


def test_ngrams_sum_log_odds():
    logs = np.full((2, HASHED), -3.0)
    logs[1, cell("rome")] = -1.0
    logs[0, cell("fly")] = -2.5
    guesser = Ngrams(logs)
    # Every other n-gram says the same of both.
    assert guesser.scores(read(["Rome", "fly", "fly Rome", "home", "", None, 5])) == pytest.approx(
        [2, -0.5, 1.5, 0, NAN, NAN, NAN], nan_ok=True
    )
    three = Ngrams(np.vstack([logs, logs[:1]]))
    assert three.scores(read(["Rome", None])).shape == (2, 3)
    assert guesser.scores(read([1.0, 2.0])).shape == (2,)
    assert guesser.scores(read([])).shape == (0,)
