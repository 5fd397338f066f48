"""What is said of an output depends on that output alone, never on the batch it came in.

All runs of a batch have the same input. A score that looked at the batch would be a guess from many runs, which is
right far more often than the claim allows one run to be: right mechanisms would be refuted.
"""

import itertools
import math
import warnings
from collections import namedtuple
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.base import KINDS
from dpassay.audit.distinguishers.boosted_tables import BoostedTables
from dpassay.audit.distinguishers.combined.encoded import Encoded, LeafEncoder
from dpassay.audit.distinguishers.combined.guarded import Guarded
from dpassay.audit.distinguishers.combined.on_leaves import OnLeaves
from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.distinguishers.exclusive import Exclusive
from dpassay.audit.distinguishers.frequencies import Frequencies
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.distinguishers.logistic_regression import LogisticRegression
from dpassay.audit.distinguishers.naive_bayes import NaiveBayes
from dpassay.audit.distinguishers.nearest_input import NearestInput
from dpassay.audit.distinguishers.own_likelihood import OwnLikelihood
from dpassay.audit.distinguishers.shared_words import SharedWords
from dpassay.audit.distinguishers.statistic import NEARER, NEARER_STEPS, SUMMARIES, Statistic
from dpassay.audit.outputs.features import FEATURES, anomalies, feature_count
from dpassay.audit.outputs.leaf_views import View
from dpassay.audit.outputs.outputs import join, part, read
from dpassay.audit.outputs.relations.row_views import ROWS
from dpassay.audit.outputs.texts.ngrams import HASHED
from dpassay.audit.outputs.texts.text_views import OF_TEXT
from dpassay.audit.testing.decision_rule import best_and_margin, rounded
from dpassay.pipeline.distributions import BitDistribution, Gaussian, Laplace, Mixture, OneSided, Pmf, Shifted
from dpassay.pipeline.mechanism import Failure
from tiers import repetitions

CHECKS = settings(
    derandomize=True,
    max_examples=repetitions(20, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


Pair = namedtuple("Pair", "a b")


NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324]),
    st.sampled_from(
        [np.float32(0.1), np.int8(-3), np.bool_(True), np.uint64(2**64 - 1), np.float16(1.5), np.longdouble(2)]
    ),
)
TEXTS = st.one_of(
    st.text(max_size=12),
    st.text(st.characters(categories=["Cs", "L"]), max_size=5),
    st.sampled_from(["", "fly to Rome", "🦓", "nul\0", "\ud800", "fly", " ", np.str_("fly")]),
)
ARRAYS = st.sampled_from(
    [
        np.zeros(3),
        np.array([1, 2, 3], dtype=np.int16),
        np.array([True, False]),
        np.array([[1.0, 2.0], [3.0, math.nan]], dtype=np.float32),
        np.array(["a", "b"]),
        np.array([None, 1, "a"], dtype=object),
        np.array(5.0),
        np.array("fly"),
        np.array([]),
        np.array([1 + 2j]),
    ]
)
VECTORS = st.one_of(
    st.lists(NUMBERS, max_size=5),
    st.lists(NUMBERS, max_size=5).map(tuple),
    st.lists(st.floats(), min_size=3, max_size=3),
    st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array),
)
ODD = st.sampled_from(
    [
        None,
        Failure("ValueError", "said"),
        Failure("KeyError"),
        {},
        {"a": 1},
        b"x",
        2j,
        [[1, 2], [3]],
        [None],
        ["a", 1],
        {"a": {"b": [1.5, 2.5], "c": "fly"}, "d": 2**70},
        {"a": {"b": [1.5], "c": None}, "d": 2**70 + 1},
        {"fly", 1, 2.5},
        frozenset([(1, 2)]),
        Pair(1, [0.5, "fly"]),
        Pair([1, 2], 0.1),
        [1, 2.5, True],
        Decimal("1.50"),
        Fraction(1, 3),
        datetime(2020, 1, 1, 5),
        np.array([2**53 + 1, 1]),
        np.array([(1.0, 2)], dtype=[("a", "f8"), ("b", "i8")]),
    ]
)
OUTPUTS = st.one_of(NUMBERS, TEXTS, ARRAYS, VECTORS, ODD)
PLAIN = st.one_of(
    st.lists(NUMBERS, min_size=1, max_size=12),
    st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=1, max_size=12),
    st.lists(TEXTS, min_size=1, max_size=12),
)
BATCHES = st.one_of(st.lists(OUTPUTS, min_size=1, max_size=12), PLAIN)


def equal(one, other):
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def holds_for(ask, batch):
    """Whether what is asked of a batch is what is asked of each output alone, in a pair, and at the other end."""
    whole = np.asarray(ask(read(batch)))
    backwards = np.asarray(ask(read(batch[::-1])))[::-1]
    alone = [np.asarray(ask(read([item])))[0] for item in batch]
    beside = [np.asarray(ask(read([None, item])))[1] for item in batch]
    joined = np.asarray(ask(join([read([item]) for item in batch])))
    cut = np.asarray(ask(part(read([*batch, "one more"]), 0, len(batch))))
    return all(equal(whole, np.array(other)) for other in (backwards, alone, beside, joined, cut))


# ── What `read` says ────────────────────────────────────────────────────────────────────────────


@given(BATCHES)
@CHECKS
def test_reading(batch):
    assert holds_for(lambda outputs: outputs.keys(), batch)
    assert holds_for(lambda outputs: outputs.lengths(), batch)
    for width in (1, 2, 3, 7):
        assert holds_for(lambda outputs, width=width: outputs.matrix(width), batch)
    assert read(batch).texts() == [read([item]).texts()[0] for item in batch]
    assert read([batch[0]]).kind == read(batch).kind


@given(BATCHES, st.sampled_from([((0, 0, 0), (1, 2, 3)), (0.0, 1.0), ("fly", "fly to Rome"), ([0.5], None), ((), ())]))
@CHECKS
def test_anomalies(batch, inputs):
    def names(outputs):
        codes, meaning = anomalies(outputs, inputs)
        return [meaning[code] for code in codes.tolist()]

    found = names(read(batch))
    assert found == [names(read([item]))[0] for item in batch]
    assert found == [names(read([None, item]))[1] for item in batch]


@given(BATCHES)
@CHECKS
def test_features(batch):
    for kind, features in FEATURES.items():
        for width in (1, 3):
            for j in range(feature_count(kind, width)):
                assert holds_for(lambda o, f=features, w=width, j=j: f(o, w)(j), batch), (kind, width, j)


# ── What distinguishers say ───────────────────────────────────────────────────────────────────────────

RNG = np.random.default_rng(0)
X, Y = np.array([0.0, 0.3, -1.0]), np.array([1.0, 0.3, 2.0])
WORDS = ("number", "number, NaN", "text", "none", "vector[3]", "vector[3], copies input 0", "fails: ValueError")
ANOMALIES = Frequencies("oddities", WORDS, RNG.normal(size=(2, len(WORDS))) * 4, (X, Y))
KNOWN = sorted({int(read([item]).keys()[0]) for item in (0, 1, "fly", None, [0, 0, 0], math.nan, 2j)})
ENCODER = LeafEncoder(lambda output, x: x if read([output]).width == 3 else int(x[0]), (X, Y))
MIXED = Mixture(0.25, ((0.25, Laplace(1)), (0.5, Gaussian(2))))


def boosted(kind, width):
    edges = {j: np.sort(RNG.normal(size=5)) for j in range(feature_count(kind, width))}
    columns = [(j,) for j in edges] + [(0, j) for j in edges if j]
    return BoostedTables(kind, width, tuple(columns), edges, tuple(RNG.normal(size=(7,) * len(c)) for c in columns))


DISTINGUISHERS = {
    **{f"statistic {name}": Statistic(name, 3) for name in (*SUMMARIES, "coordinate 1")},
    **{name: Statistic(name, 3, -1.0, (X, Y)) for name in (NEARER, NEARER_STEPS)},
    **{f"linear {d}": LogisticRegression(RNG.normal(size=d), 0.3) for d in (1, 3, 5)},
    "linear with missing": LogisticRegression(RNG.normal(size=3), 0.3, RNG.normal(size=3)),
    **{f"boosted {kind} {w}": boosted(kind, w) for kind in FEATURES for w in (1, 3)},
    "counted values": Frequencies("value", tuple(KNOWN), RNG.normal(size=(2, len(KNOWN)))),
    "counted values of three": Frequencies("value", tuple(KNOWN), RNG.normal(size=(3, len(KNOWN)))),
    "oddities": ANOMALIES,
    "ngrams": NaiveBayes(RNG.normal(size=(2, HASHED))),
    "ngrams of three": NaiveBayes(RNG.normal(size=(3, HASHED))),
    "guarded": Guarded(LogisticRegression(RNG.normal(size=3), -0.1), ANOMALIES),
    "nearest": NearestInput((X, Y, X + Y)),
    "shared words": SharedWords((("rome",), ("oslo", "paris"))),
    "difference": OnLeaves(View("difference", ("output[1]", "output[0]")), Statistic("coordinate 0", 1)),
    **{
        look: OnLeaves(View(look, ("output[0]", "output[1]", "output[2]")), Statistic("coordinate 0", 1))
        for look in ROWS
    },
    **{base: OnLeaves(View("numbers", (f"{base}[0]", f"{base}[1]")), Statistic("coordinate 0", 2)) for base in OF_TEXT},
    "place": OnLeaves(View("numbers", ("output.index(1)", "output")), LogisticRegression(RNG.normal(size=2), 0.3)),
    "leaf": OnLeaves(View("numbers", ('output["d"]', "output.a"), (2**70, 0)), Statistic("sum", 2)),
    "text leaf": OnLeaves(View("text", ('output["a"]["c"]', "output")), NaiveBayes(RNG.normal(size=(2, HASHED)))),
    "values of a leaf": OnLeaves(
        View("values", ('output["a"]["c"]', "type(output)")),
        Frequencies("value", (1, 2**63), RNG.normal(size=(2, 2))),
    ),
    "without fractions": OnLeaves(
        View("whole", ("output",)),
        Frequencies("value", tuple(KNOWN), RNG.normal(size=(2, len(KNOWN)))),
    ),
    "laplace": LikelihoodRatio((Shifted(Laplace(1), X), Shifted(Laplace(1), Y))),
    "gaussian of three": LikelihoodRatio(tuple(Shifted(Gaussian(1.3), x) for x in (X, Y, X + Y))),
    "one-sided": LikelihoodRatio((Shifted(OneSided(1), X[:1]), Shifted(OneSided(1), Y[:1]))),
    "mixture": LikelihoodRatio((Shifted(MIXED, X), Shifted(MIXED, Y))),
    "bits": LikelihoodRatio((BitDistribution(np.array([0.1, 0.9, 0.5])), BitDistribution(np.array([0.9, 0.0, 0.5])))),
    "pmf": LikelihoodRatio((Pmf(np.array([0.25, 0.75])), Pmf(np.array([1.0, 0.0])))),
    "own likelihood": OwnLikelihood(lambda output, x: float(np.sign(read([output]).matrix(3)[0]) @ x), (X, Y)),
    "exclusive": Exclusive(
        ((0, -1.0, -0.5, 0), (1, 0.2, 0.9, 1)), (("rome", 1),), (("none", 0),), 3, (X.tolist(), Y.tolist())
    ),
    "encoded": Encoded(ENCODER, (("output", "output"), ("output[1]", "output"), ('output["d"]', "output"))),
    "encoded, on a base": Encoded(ENCODER, (("output", "output"),), LogisticRegression(RNG.normal(size=3), 0.1)),
}


def test_every_kind_is_here():
    # A function of the user's is looked at while it scores: tests/unit/audit/distinguishers/test_custom.py.
    assert {type(d) for d in DISTINGUISHERS.values()} == set(KINDS.values()) - {CustomDistinguisher}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("name", DISTINGUISHERS)
@given(batch=BATCHES)
@settings(CHECKS, max_examples=repetitions(20, 30))
def test_distinguishers(name, batch):
    assert holds_for(DISTINGUISHERS[name].score, batch)


def test_the_last_bits_of_a_score_do_not_depend_on_the_number_of_rows():
    # A matrix product rounds a row by where it stands; a sum over a row does not.
    for width in (2, 3, 8, 31, 64, 129, 700):
        rows, x, y = RNG.laplace(size=(37, width)), RNG.normal(size=width), RNG.normal(size=width)
        gappy = np.where(RNG.random(rows.shape) < 0.3, np.nan, rows)
        every = [
            LogisticRegression(x, 0.3),
            LogisticRegression(x, 0.3, y),
            NearestInput((x, y, x + y)),
            Statistic(NEARER, width, 1.0, (x, y)),
        ]
        every += [Statistic(name, width) for name in SUMMARIES] + [Statistic(NEARER_STEPS, width, 1.0, (x, y))]
        every += [
            LikelihoodRatio((Shifted(noise, x), Shifted(noise, y))) for noise in (Laplace(1.3), Gaussian(0.7), MIXED)
        ]
        for distinguisher, some in itertools.product(every, (rows, gappy)):
            alone = np.concatenate([distinguisher.score(read(row[None])) for row in some])
            assert equal(distinguisher.score(read(some)), alone), (width, distinguisher.describe())
            assert equal(distinguisher.score(read([*some, None]))[:-1], alone), (width, distinguisher.describe())


@given(BATCHES, BATCHES, BATCHES, st.booleans())
@example([10**400], [np.zeros(3)], [[False]], False)
@example([10**400], ["0", "00"], [np.zeros(3)], False)
@example([False], [np.eye(2), [False, 0]], [10**400], False)
@example([10**400], ["0", "5", "00", "000", "1\x852", "3\r4", "0000"], [[False, 0]], False)
@settings(CHECKS, max_examples=repetitions(20, 50))
def test_guessers_that_were_fit_all(first, second, batch, three):
    inputs = (X, Y, X + Y) if three else (X, Y)
    seen = [read(side * 8) for side in ((first, second, first + second) if three else (first, second))]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # overflow while learning: what is learnt is what is looked at here
        found = list(fit_all(seen, inputs, bits="also"))
    for distinguisher in found:
        assert holds_for(distinguisher.score, batch + first[:3] + second[:3]), distinguisher.describe()


NORMAL = RNG.normal(size=(400, 3))
DATA = {
    "numbers": (NORMAL[:, 0], NORMAL[:, 1] + 2),
    "rounded": (NORMAL[:, 0].round(), NORMAL[:, 1].round() + 2),
    "vectors": (NORMAL + X, 0.5 * NORMAL + Y),
    "endings": tuple(np.where(np.arange(3) < RNG.integers(1, 4, size=(400, 1)), NORMAL + x, np.nan) for x in (X, Y)),
    "marks": tuple(np.where(i - 1 < NORMAL, 0.0, NORMAL) for i in (0, 1)),
    "odd": ([*NORMAL[:, 0].tolist(), math.nan] * 2, [*NORMAL[:, 0].tolist(), None] * 2),
    "texts": (["fly to Rome", "fly home"] * 200, ["stay in Rome", "fly to Rome", None, 3.5] * 100),
    "places": tuple(np.array([RNG.permutation(5) + i for _ in range(400)], dtype=float) for i in (0, 1)),
    "leaves": tuple(
        [{"e": row.tolist(), "s": str(i), "t": {i, int(row[0] > 0)}, "n": 2**60 + i} for row in NORMAL] for i in (0, 1)
    ),
    "lengths": ([[0] * k for k in RNG.integers(0, 5, 400)], [[1] * k for k in RNG.integers(2, 7, 400)]),
}


def test_distinguishers_that_were_fitted_well():
    batch = [1.5, None, "fly to Rome", [0, 1], [0.0, 0.3, 5.0], math.nan, True, math.inf, Failure("E"), [], {"a": 1}]
    kinds = set()
    for name, sides in DATA.items():
        seen = [read(side) for side in sides]
        for distinguisher in fit_all(seen, (X, Y), bits="also"):
            rows = [row for outputs in seen for row in outputs.rows()[:3]]
            assert holds_for(distinguisher.score, [*batch, *rows]), (name, distinguisher.describe())
            whole = [distinguisher.score(outputs) for outputs in seen]
            assert all(equal(s, distinguisher.score(read(o.rows()))) for s, o in zip(whole, seen, strict=True))
            kinds |= {type(distinguisher), type(distinguisher.base) if isinstance(distinguisher, Guarded) else None}
    assert kinds >= {Statistic, LogisticRegression, BoostedTables, Frequencies, NaiveBayes, Guarded}


@given(st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=1, max_size=8), st.floats(1e-9, 1e9))
@CHECKS
def test_rounding_and_margins(rows, resolution):
    scores = np.array(rows)
    assert np.array_equal(rounded(scores, resolution), [rounded(row, resolution) for row in scores], equal_nan=True)
    best, margin = best_and_margin(scores)
    alone = [best_and_margin(row[None]) for row in scores]
    assert best.tolist() == [int(b[0]) for b, _ in alone]
    assert margin.tolist() == [float(v[0]) for _, v in alone]
