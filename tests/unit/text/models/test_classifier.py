"""The softmax regression: what it finds, that it repeats itself, and what it refuses."""

import sys
import time

import numpy as np
import pytest

from dpassay import InputError
from dpassay.text.models.classifier import PENALTY, Classifier, bag_of_words, fit


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="fitting a classifier needs pip install 'dpassay[text]'")


def three_groups(n, rng):
    labels = [("left", "right", "up")[i] for i in rng.integers(0, 3, n)]
    centres = {"left": (-4.0, 0.0), "right": (4.0, 0.0), "up": (0.0, 7.0)}
    return np.array([centres[label] for label in labels]) + rng.uniform(-1, 1, (n, 2)), labels


def test_separated_groups_are_told_apart(torch):
    rng = np.random.default_rng(0)
    found = fit(*three_groups(200, rng))
    assert found.labels == ("left", "right", "up")
    assert found.width == 2
    assert found.accuracy(*three_groups(200, rng)) == 1.0


def test_it_is_the_least_of_the_penalised_loss(torch):
    """At the minimum of a convex function the gradient is 0: computed here by hand, in the units of the fit."""
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(300, 5)), [str(i) for i in rng.integers(0, 3, 300)]
    found = fit(rows, labels)
    centred = rows - rows.mean(axis=0)
    unit = np.sqrt(np.mean(centred**2))
    scores = found.scores(rows)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    wanted = np.array([[label == name for name in found.labels] for label in labels], dtype=float)
    error = (chances - wanted) / len(rows)
    assert (centred / unit).T @ error + PENALTY * found.weights * unit == pytest.approx(0, abs=1e-3)
    assert error.sum(axis=0) == pytest.approx(0, abs=1e-3)


def test_the_same_seed_gives_the_same_and_the_unit_does_not_matter(torch):
    rows, labels = three_groups(100, np.random.default_rng(2))
    first, again, larger = fit(rows, labels, seed=3), fit(rows, labels, seed=3), fit(rows * 1e6 + 5, labels, seed=3)
    assert np.array_equal(first.weights, again.weights)
    assert np.array_equal(first.bias, again.bias)
    assert first.predict(rows) == larger.predict(rows * 1e6 + 5)


def test_constant_features_and_a_single_label(torch):
    assert fit(np.zeros((3, 2)), ["a", "a", "b"]).predict(np.zeros((1, 2))) == ["a"]
    assert fit(np.eye(2), ["only", "only"]).predict(np.eye(2)) == ["only", "only"]


def test_words_say_what_a_text_is_about(torch):
    texts = ["fly to rome", "a flight to oslo", "what does it cost", "the cost of food", "fly home", "low cost"]
    labels = ["flight", "flight", "price", "price", "flight", "price"]
    rows, words = bag_of_words(texts)
    found = fit(rows, labels)
    asked, _ = bag_of_words(["please fly to Paris", "the cost"], words)
    assert asked.shape == (2, len(words))
    assert found.predict(asked) == ["flight", "price"]


def test_a_bag_has_each_word_once_and_none_that_are_unknown():
    rows, words = bag_of_words(["b b A", ""], ["a", "b", "z"])
    assert words == ("a", "b", "z")
    assert rows.dtype == np.float32
    assert rows.tolist() == [[1, 1, 0], [0, 0, 0]]


def test_five_thousand_rows_of_nine_hundred_take_seconds(torch):
    rng = np.random.default_rng(0)
    rows, labels = rng.random((5000, 900)), [str(i) for i in rng.integers(0, 20, 5000)]
    start = time.process_time()
    fit(rows, labels)
    assert time.process_time() - start < 20


def test_arrays_and_back():
    before = Classifier(("a", "b"), np.array([[1.0, 2.0]]), np.array([0.5, -0.5]))
    after = Classifier.from_arrays(before.to_arrays(), before.labels)
    assert after.labels == before.labels
    assert np.array_equal(after.weights, before.weights)
    with pytest.raises(InputError, match="there is no bias"):
        Classifier.from_arrays({"weights": np.eye(2)}, ["a", "b"])


@pytest.mark.parametrize(
    ("labels", "weights", "bias", "said"),
    [
        ((), np.zeros((2, 0)), np.zeros(0), "one or more labels"),
        (("a", "a"), np.eye(2), np.zeros(2), "each once"),
        (("a", "b"), np.eye(3), np.zeros(2), "as many columns"),
        (("a", "b"), np.eye(2), np.zeros(3), "as many biases"),
        (("a", "b"), np.full((2, 2), np.nan), np.zeros(2), "finite"),
    ],
)
def test_a_classifier_that_does_not_fit_together(labels, weights, bias, said):
    with pytest.raises(InputError, match=said):
        Classifier(labels, weights, bias)


@pytest.mark.parametrize("rows", [np.zeros(3), np.zeros((3, 0)), np.full((3, 1), np.inf)])
def test_features_that_are_no_matrix_of_numbers(rows):
    with pytest.raises(InputError, match="a matrix of finite numbers"):
        fit(rows, ["a", "b", "c"])


def test_labels_and_rows_must_be_as_many():
    which = Classifier(("a", "b"), np.eye(2), np.zeros(2))
    for attempt in (lambda: fit(np.eye(2), ["a"]), lambda: which.accuracy(np.eye(2), ["a"])):
        with pytest.raises(InputError, match="one label per row"):
            attempt()
    with pytest.raises(InputError, match="takes 2 features, got 3"):
        which.predict(np.eye(3))


def test_without_torch_the_line_to_run_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'dpassay\[text\]'"):
        fit(np.eye(2), ["a", "b"])
