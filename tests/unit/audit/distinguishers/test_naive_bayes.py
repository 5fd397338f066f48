"""Naive Bayes on texts, by hand."""

import math
import zlib

import numpy as np
import pytest

from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.naive_bayes import NaiveBayes
from dpassay.audit.outputs.outputs import read
from dpassay.audit.outputs.texts.ngrams import HASHED

NAN = math.nan


def cell(gram):
    return zlib.crc32(gram.encode()) % HASHED


def test_log_odds_add_up():
    logs = np.full((2, HASHED), -3.0)
    logs[1, cell("rome")] = -1.0
    logs[0, cell("fly")] = -2.5
    bayes = NaiveBayes(logs)
    # Every other n-gram says the same of both.
    assert bayes.score(read(["Rome", "fly", "fly Rome", "home", "", None, 5])) == pytest.approx(
        [2, -0.5, 1.5, 0, NAN, NAN, NAN], nan_ok=True
    )
    three = NaiveBayes(np.vstack([logs, logs[:1]]))
    assert three.score(read(["Rome", None])).shape == (2, 3)
    assert three.candidates == 3
    assert bayes.score(read([1.0, 2.0])).shape == (2,)
    assert bayes.score(read([])).shape == (0,)


def test_it_counts_in_how_many_texts_an_ngram_is():
    texts = ["fly fly", "fly", "stay"], ["stay", "stay", None]
    (bayes,) = NaiveBayes.fit(TrainingSet(tuple(map(read, texts)), ("x", "y")))
    assert bayes.logs[:, cell("fly")] == pytest.approx(np.log([2.5 / 4, 0.5 / 4]))
    assert bayes.logs[:, cell("stay")] == pytest.approx(np.log([1.5 / 4, 2.5 / 4]))
    assert not list(NaiveBayes.fit(TrainingSet((read([1.0]), read([None])), (0, 1))))
