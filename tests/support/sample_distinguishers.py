"""A distinguisher of every kind that a file can hold, and outputs of every sort to score."""

import math
import zlib

import numpy as np

from dpassay.audit.distinguishers.boosted_tables import BoostedTables
from dpassay.audit.distinguishers.combined.encoded import Encoded, LeafEncoder
from dpassay.audit.distinguishers.combined.guarded import Guarded
from dpassay.audit.distinguishers.combined.on_leaves import OnLeaves
from dpassay.audit.distinguishers.exclusive import Exclusive
from dpassay.audit.distinguishers.frequencies import Frequencies
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.distinguishers.logistic_regression import LogisticRegression
from dpassay.audit.distinguishers.naive_bayes import NaiveBayes
from dpassay.audit.distinguishers.nearest_input import NearestInput
from dpassay.audit.distinguishers.own_likelihood import OwnLikelihood
from dpassay.audit.distinguishers.shared_words import SharedWords
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.outputs.leaf_views import View
from dpassay.audit.outputs.outputs import read
from dpassay.audit.outputs.texts.ngrams import HASHED
from dpassay.pipeline.distributions import Laplace, Shifted
from dpassay.pipeline.mechanism import Failure

RNG = np.random.default_rng(1)
X, Y = np.array([0.0, 1 / 3, -1.0]), np.array([1.0, 1 / 3, 2.0])
DISTRIBUTIONS = (Shifted(Laplace(1), X), Shifted(Laplace(1), Y))
KEYS = tuple(sorted(int(read([v]).keys()[0]) for v in (0, 1, "fly", None)))
ANOMALIES = Frequencies("oddities", ("number", "text", "none"), RNG.normal(size=(2, 3)) * 4, (X, Y))
BATCH = [0, 1.5, None, "fly to Rome", "fly", "🦓", [0.1, 0.2, 0.3], X, math.nan, [1, math.inf, 0], Failure("E"), [1, 2]]
OUTPUTS = read(BATCH)
ENCODER = LeafEncoder(lambda output, x: x if isinstance(output, list) else len(str(output)) + int(x[0]), (X, Y))


def ngrams(rows):
    logs = np.full((rows, HASHED), math.log(0.5 / 7))
    logs[:, 1:400] = np.log(RNG.integers(0, 4, size=(rows, 399)) + 0.5)
    logs[0, 0] = 2.0  # cell 0 is in use
    logs[:, zlib.crc32(b"fly") % HASHED] = 1 / 3  # and one that says the same of all
    return NaiveBayes(logs)


DISTINGUISHERS = {
    "coordinate": Statistic("coordinate 1", 3, -1.0),
    "sum": Statistic("sum", 3),
    "nearness": Statistic("nearness", 3, 1.0, (X, Y)),
    "far": Statistic("nearness", 3, 1.0, (np.array([math.inf, -0.0, 5e-324]), Y)),
    "linear": LogisticRegression(RNG.normal(size=3), 1 / 3),
    "linear with missing": LogisticRegression(RNG.normal(size=3), 1 / 3, RNG.normal(size=3)),
    "linear with zeros": LogisticRegression(RNG.normal(size=3), 1 / 3, nonzero=RNG.normal(size=3)),
    "boosted": BoostedTables(
        "coordinates",
        3,
        ((0,), (0, 4)),
        {0: np.array([-0.1, 0.2]), 4: np.array([0.0])},
        (RNG.normal(size=4), RNG.normal(size=(4, 3))),
    ),
    "bits": BoostedTables("float bits", 3, ((4,),), {4: np.array([1023.0])}, (RNG.normal(size=39),)),
    "values": Frequencies("value", KEYS, RNG.normal(size=(2, 4))),
    "values of three": Frequencies("value", KEYS, RNG.normal(size=(3, 4))),
    "oddities": ANOMALIES,
    "texts": Frequencies(
        "oddities", ("text", "text, copies input 0"), RNG.normal(size=(2, 2)), ("fly to Rome", "\ud800")
    ),
    "exclusive": Exclusive(((0, 0.5, 2.0, 1), (2, -1.5, -0.5, 0)), (("fly", 1), ("🦓", 0)), (("none", 0),), 3, (X, Y)),
    "leaves": OnLeaves(View("difference", ("output[1]", "output[0]")), Statistic("coordinate 0", 1, -1.0)),
    "product of leaves": OnLeaves(View("times", ("output[0]", "output[1]", "output[2]")), Statistic("coordinate 0", 1)),
    "ngrams": ngrams(2),
    "ngrams of three": ngrams(3),
    "nearest": NearestInput((X, Y, X + Y)),
    "shared words": SharedWords((("rome",), ("oslo", "paris"))),
    "guarded": Guarded(LogisticRegression(RNG.normal(size=3), 0.1), ANOMALIES),
    "guarded likelihood": Guarded(LikelihoodRatio(DISTRIBUTIONS), ANOMALIES),
    "likelihood": LikelihoodRatio(DISTRIBUTIONS),
    "own likelihood": OwnLikelihood(lambda output, x: -len(str(output)) * float(x[0]), (X, Y)),
    "encoded": Encoded(ENCODER, (("output", "output"), ("output[0]", "output"))),
    "encoded, on a base": Encoded(ENCODER, (("output", "output"),), LogisticRegression(RNG.normal(size=3), 0.1)),
}
