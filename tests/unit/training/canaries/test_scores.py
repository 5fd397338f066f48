"""Canaries with their scores: read, written, and made by a training function."""

import numpy as np
import pytest

from dpassay.errors import InputError, MechanismError
from dpassay.training.canaries.scores import CanaryScores, read_scores, train_with_canaries, write_scores


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.csv", "included,score\n1,2.5\n0,-1\n"),
        ("s.csv", "Member,canary,Score,run\ntrue,a,2.5,0\nFALSE,b,-1,0\n"),
        ("s.jsonl", '{"score": 2.5, "in": true}\n\n{"score": -1, "in": 0}\n'),
    ],
)
def test_text_files_are_read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    found = read_scores(tmp_path / name)
    assert found.score.tolist() == [2.5, -1.0]
    assert found.included.tolist() == [True, False]
    assert found.runs == 1


def test_arrays_are_read(tmp_path):
    np.savez(tmp_path / "s.npz", score=np.array([1.0, 2.0]), included=np.array([0, 1]), run=np.array([3, 4]))
    found = read_scores(tmp_path / "s.npz")
    assert found.included.tolist() == [False, True]
    assert found.runs == 2


def test_arrays_that_would_run_code_are_refused(tmp_path):
    np.savez(tmp_path / "s.npz", score=np.array([print, 2.0], dtype=object), included=np.array([0, 1]))
    with pytest.raises(InputError, match="plain arrays"):
        read_scores(tmp_path / "s.npz")


def test_what_was_written_is_read_back(tmp_path):
    rng = np.random.default_rng(0)
    scores = CanaryScores(rng.normal(size=50), rng.random(50) < 0.5, np.arange(50) // 25)
    write_scores(scores, tmp_path / "s.csv")
    found = read_scores(tmp_path / "s.csv")
    for name in ("score", "included", "run"):
        assert np.array_equal(getattr(found, name), getattr(scores, name))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.csv", "a,b\n1,2\n", "has no column 'score'"),
        ("s.csv", "score,included\n1,maybe\n", "line 2: a canary has a number"),
        ("s.csv", "score,included\nnan,1\n0,1\n", "canary 0 is not a number"),
        ("s.csv", "score,included\n1,1\n", "from 2 to"),
        ("s.csv", "", "is empty: it needs a line for each canary"),
        ("s.jsonl", "\n", "is empty: it needs a line for each canary"),
        ("s.jsonl", "[1, 2]\n", "line 1, is not a JSON object"),
        ("s.jsonl", "[" * 100_000, "line 1, is not a JSON object"),
        ("s.npz", "no zip", "plain arrays"),
        ("s.txt", "1 1", "cannot tell how to read"),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        read_scores(tmp_path / name)


def test_runs_are_ordered_by_the_rank_within_each():
    # The second run's scores are all higher; that says nothing about its canaries.
    scores = CanaryScores([4, 3, 2, 1, 104, 103, 102, 101], [1, 1, 0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1])
    best_of_each, *_, last_of_each = scores.by_score().reshape(4, 2)
    assert best_of_each.tolist() == [True, True]
    assert last_of_each.tolist() == [False, False]
    assert scores.by_score().reshape(4, 2).sum(axis=1).tolist() == [2, 1, 1, 0]


def test_an_interrupted_series_of_runs_goes_on_where_it_was(tmp_path):
    made = []

    def train(included, seed):
        made.append(seed)
        if len(made) == 3:
            raise KeyboardInterrupt
        return included + np.random.default_rng(seed).normal(size=len(included))

    with pytest.raises(KeyboardInterrupt):
        train_with_canaries(train, 40, runs=4, save=tmp_path / "s.csv")
    found = train_with_canaries(train, 40, runs=4, save=tmp_path / "s.csv")
    assert len(made) == 5
    whole = train_with_canaries(train, 40, runs=4)
    assert np.array_equal(found.score, whole.score)
    assert np.array_equal(found.included, whole.included)
    with pytest.raises(InputError, match="another seed"):
        train_with_canaries(train, 40, runs=4, seed=1, save=tmp_path / "s.csv")


def test_every_canary_has_a_coin_of_its_own():
    found = train_with_canaries(lambda included, seed: np.zeros(len(included)), 64, runs=50)
    by_run = found.included.reshape(50, 64)
    assert len({tuple(row) for row in by_run}) == 50
    assert len({tuple(column) for column in by_run.T}) == 64
    assert not found.unfair


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (lambda included, seed: [1.0], "1 scores for 10 canaries"),
        (lambda included, seed: 1 / 0, "ZeroDivisionError"),
        (lambda included, seed: ["a"] * 10, "no scores"),
    ],
)
def test_a_training_function_that_fails_is_named(train, said):
    with pytest.raises(MechanismError, match=said):
        train_with_canaries(train, 10)


def test_coins_that_cannot_be_fair_are_noticed():
    assert CanaryScores(np.zeros(100), np.ones(100, dtype=bool)).unfair
    assert not CanaryScores(np.zeros(100), np.arange(100) < 60).unfair


def test_scores_of_unequal_length_are_refused():
    with pytest.raises(InputError, match="3 scores, 2 of `included`"):
        CanaryScores([1, 2, 3], [0, 1])
    with pytest.raises(InputError, match="1 or 0"):
        CanaryScores([1, 2, 3], [0, 1, 2])
