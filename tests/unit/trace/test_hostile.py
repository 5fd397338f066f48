"""Findings from hostile inputs: each is a sentence, and refutes a claim only if the claim covers the pair."""

import math
from typing import Any

import numpy as np
import pytest

from dpassay.audit.inputs.hostile_inputs import HostileInput
from dpassay.errors import InputError
from dpassay.trace.hostile import SHARE, WHOLE_ALPHA, Probing
from dpassay.trace.session import trace
from dpassay.trace.watch.tracer import Tracer

X, Y = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
VOCABULARY = ["book", "a", "flight", "to", "rome", "paris", "meet", "me"]
TEXTS = [("a flight to rome", "a flight to paris")]


def laplace(vector: Any, rng: Any) -> Any:
    return vector + rng.laplace(scale=2.0, size=vector.shape)


def bounded(x: Any, rng: Any) -> Any:
    vector = np.clip(np.nan_to_num(np.asarray(x, dtype=float)), -1e100, 1e100)
    return laplace(vector / max(1.0, float(np.abs(vector).sum())), rng)


def lets_nan_through(x: Any, rng: Any) -> Any:
    vector = np.asarray(x, dtype=float)
    return laplace(vector / max(1.0, float(np.abs(vector).sum())), rng)


def spreads_nan(x: Any, rng: Any) -> Any:
    vector = np.asarray(x, dtype=float)
    return laplace(vector / np.maximum(1.0, np.abs(vector).sum()), rng)


def wrong_norm(x: Any, rng: Any) -> Any:
    vector = np.clip(np.nan_to_num(np.asarray(x, dtype=float)), -1e100, 1e100)
    return laplace(vector / max(1.0, float(np.linalg.norm(vector))), rng)


def refuses_all(x: Any, rng: Any) -> Any:
    if not np.isfinite(x).all():
        raise ValueError("finite numbers only")
    return bounded(x, rng)


def refuses_nan(x: Any, rng: Any) -> Any:
    if np.isnan(x).any():
        raise ValueError("no NaN")
    return bounded(x, rng)


def unbounded(x: Any, rng: Any) -> Any:
    return laplace(np.nan_to_num(np.asarray(x, dtype=float), posinf=0.0, neginf=0.0), rng)


def keeps_odd_words(text: str, rng: Any) -> str:
    words = (word if word not in VOCABULARY else VOCABULARY[rng.integers(len(VOCABULARY))] for word in text.split())
    return " ".join(words)


def replaces_all_words(text: str, rng: Any) -> str:
    return " ".join(VOCABULARY[rng.integers(len(VOCABULARY))] for _ in text.split() or "x")


def histogram(rows: list[str], rng: Any) -> dict[str, float]:
    return {row: rows.count(row) + rng.laplace(scale=2.0) for row in sorted(set(rows))}


def fixed_histogram(rows: list[str], rng: Any) -> list[float]:
    return [rows.count(row) + rng.laplace(scale=2.0) for row in ("a", "b")]


def rules(result: Any) -> set[str]:
    return {one.rule for one in result.warnings}


@pytest.mark.long(every=2)
@pytest.mark.parametrize("subject", [bounded, refuses_all])
@pytest.mark.parametrize("neighbours", [None, "any"])
def test_code_that_bounds_or_refuses_them_is_left_alone(subject: Any, neighbours: str | None) -> None:
    result = trace(subject, [X, Y], epsilon=1, neighbours=neighbours)
    assert (result.verdict.word, result.rules, result.warnings) == ("open", (), ())


def test_nan_is_a_warning_and_refutes_where_any_input_is_meant() -> None:
    warned = trace(spreads_nan, [X, Y], epsilon=1)
    assert warned.verdict.open
    assert "NaN in the input produces NaN in 3 coordinates" in [one.message for one in warned.warnings]
    refuted = trace(spreads_nan, [X, Y], epsilon=1, neighbours="any")
    assert refuted.verdict.refuted
    assert refuted.rules[0] == "not-finite"
    assert "NaN in the input produces NaN in 3 coordinates" in refuted.verdict.reason
    assert refuted.verdict.alpha == WHOLE_ALPHA
    assert refuted.count is not None
    assert refuted.count.alpha <= SHARE
    assert refuted.pair_epsilon.lower == refuted.count.epsilon > 1
    assert math.isnan(refuted.pair[1][0])


def test_nothing_is_tried_if_they_are_not_wanted() -> None:
    result = trace(lets_nan_through, [X, Y], epsilon=1, neighbours="any", hostile=False)
    assert (result.verdict.word, result.warnings, result.tried) == ("open", (), 0)


@pytest.mark.long
def test_the_wrong_norm_is_refuted_on_vectors_that_nobody_gave() -> None:
    """Behind the clip in l2 the two are 2·√12 apart in l1, and the scale is 2: ε = √12 as watched."""
    x, y = [1.0] + [0.0] * 11, [0.0] * 11 + [1.0]
    assert trace(wrong_norm, [x, y], epsilon=1).verdict.open
    result = trace(wrong_norm, [x, y], epsilon=1, neighbours="any")
    assert result.rules == ("loss-too-large",)
    assert result.traced_epsilon.lower == pytest.approx(math.sqrt(12), rel=1e-9)
    assert 1 < result.pair_epsilon.lower < math.sqrt(12)
    assert result.verdict.alpha == WHOLE_ALPHA
    assert trace(bounded, [X, Y], epsilon=1, neighbours="any").verdict.open  # 2 apart in l1 at most


def test_what_nothing_bounds_is_named_with_its_line() -> None:
    result = trace(unbounded, [X, Y], epsilon=1)
    assert result.verdict.open
    (warning,) = result.warnings
    assert warning.rule == "unbounded-input"
    assert warning.place is not None
    assert f"test_hostile.py:{laplace.__code__.co_firstlineno + 1}" in warning.message
    exact = trace(unbounded, [X, Y], epsilon=1, neighbours="any")
    assert exact.rules == ("loss-too-large",)
    assert exact.traced_epsilon.lower == pytest.approx(6e30 / 2)
    assert exact.pair_epsilon.lower > 1


@pytest.mark.parametrize("neighbours", ["any", "replace-record"])
def test_a_huge_input_that_is_refused_is_no_finding(neighbours: str) -> None:
    def in_range(x: Any, rng: Any) -> Any:
        if not np.abs(x).max(initial=0) <= 1:
            raise ValueError(f"numbers from -1 to 1, not {x}")
        return laplace(np.asarray(x), rng)

    result = trace(in_range, pairs=[(X, [0.0, 0.0, 0.0])], epsilon=1, neighbours=neighbours)
    assert (result.verdict.word, result.rules) == ("open", ())


def test_refusing_only_some_of_one_kind_is_a_warning_and_no_refutation() -> None:
    result = trace(refuses_nan, [X, Y], epsilon=1, neighbours="any")
    assert result.verdict.open
    (warning,) = result.warnings
    assert warning.rule == "some-refused"
    assert "ValueError: NaN in the input; not refused: an infinity in the input" in warning.message


@pytest.mark.long
def test_an_unknown_word_that_comes_out_refutes_a_claim_on_texts() -> None:
    result = trace(keeps_odd_words, pairs=TEXTS, epsilon=1)
    assert result.verdict.refuted
    assert result.rules[0] == "odd-word-kept"
    assert "a word that is not in its vocabulary comes out unchanged, where other words are changed" in (
        result.verdict.reason
    )
    assert result.pair == ("a flight to rome", "zxqvkj flight to rome")
    larger = trace(keeps_odd_words, pairs=TEXTS, epsilon=14)
    assert larger.verdict.open
    assert "an audit with more runs may show more" in larger.warnings[0].message


@pytest.mark.long
def test_words_that_are_all_replaced_are_no_finding() -> None:
    assert not trace(replaces_all_words, pairs=TEXTS, epsilon=1).warnings


@pytest.mark.long
def test_a_word_that_is_kept_as_often_as_others_is_no_finding() -> None:
    def seldom_changes(text: str, rng: Any) -> str:
        return " ".join(word if rng.random() < 0.95 else "a" for word in text.split())

    assert "odd-word-kept" not in rules(trace(seldom_changes, pairs=TEXTS, epsilon=9))


def test_one_word_may_be_one_of_a_few_that_are_allowed() -> None:
    def other_words_pass(text: str, rng: Any) -> str:
        return ("yes" if rng.random() < 0.5 else "no") if text in ("yes", "no") else text

    result = trace(other_words_pass, pairs=[("yes", "no")], epsilon=1)
    assert result.verdict.open
    assert "odd-word-kept" in rules(result)
    assert trace(other_words_pass, pairs=[("yes", "no")], epsilon=1, neighbours="word").verdict.refuted


def test_a_word_that_came_out_by_chance_is_not_taken_for_kept() -> None:
    """A coin shows heads in eight runs, of which four are to learn its words: more runs show that it is a coin."""
    tosses = iter([True] * 8 + [False, True] * 20)

    def other_words_pass(text: str, rng: Any) -> str:
        return ("yes" if next(tosses) else "no") if text in ("yes", "no") else text

    probing = Probing(Tracer(other_words_pass), "yes")
    found = probing.look_at_all([HostileInput("an unknown word", "text", "xyzzy", word="xyzzy")])
    assert [seen.finding.rule for seen in found] == ["odd-word-kept"]


@pytest.mark.long
def test_a_category_that_only_one_row_has() -> None:
    pair = [(["a", "b", "a"], ["a", "b", "b"])]
    result = trace(histogram, pairs=pair, epsilon=1, neighbours="replace-record")
    assert result.verdict.refuted
    assert "a category that is in no other row comes out unchanged" in result.verdict.reason
    assert trace(histogram, pairs=pair, epsilon=1).verdict.open
    right = trace(fixed_histogram, pairs=pair, epsilon=1, neighbours="replace-record")
    assert (right.verdict.word, right.warnings) == ("open", ())


@pytest.mark.long
def test_the_number_of_rows() -> None:
    def per_row(rows: Any, rng: Any) -> Any:
        return laplace(np.clip(np.nan_to_num(np.asarray(rows, dtype=float)), 0, 1).sum(axis=1), rng)

    pair = [([[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]])]
    warned = trace(per_row, pairs=pair, epsilon=1)
    assert rules(warned) == {"size-shows"}
    assert "a row more changes the size of the output, from 2 to 3" in warned.warnings[0].message
    assert trace(per_row, pairs=pair, epsilon=1, neighbours="replace-record").verdict.open
    fewer = [(pair[0][0], pair[0][0][:1])]
    assert trace(per_row, pairs=fewer, epsilon=1, neighbours="add-remove-record").verdict.refuted


def test_pairs_that_are_no_neighbours_are_refused() -> None:
    with pytest.raises(InputError, match="differ in 2 words"):
        trace(keeps_odd_words, pairs=[("a flight to rome", "a meeting in rome")], epsilon=1, neighbours="word")


def test_what_does_not_happen_in_counted_runs_refutes_nothing() -> None:
    """Only the first runs show it, and those are not counted."""
    seen: list[bool] = []

    def seldom(x: Any, rng: Any) -> Any:
        seen.append(bool(np.isnan(x).any()))
        return np.full(3, np.nan) if seen[-1] and sum(seen) <= 5 else bounded(x, rng)

    result = trace(seldom, [X, Y], epsilon=1, neighbours="any")
    assert result.verdict.open
    assert rules(result) == {"not-finite"}
