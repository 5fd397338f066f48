"""Perplexity against ε: equal true ε by another accountant, means of seeds, and what an interruption leaves."""

import importlib.util
import json
import math
import multiprocessing
import re
import statistics
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="training needs the extra: pip install 'dpassay[text]'")

from dp_accounting.pld import privacy_loss_distribution as pld

from dpassay.compute.executors import InProcess
from dpassay.errors import InputError
from dpassay.reproduce import FIGURES, perplexity
from dpassay.reproduce.result import ReproductionOptions, save
from dpassay.text.corpora.utterance import Utterance
from dpassay.training import comparison
from dpassay.training.comparison import ComparedRun, Setup, TextSource

SHORT = Setup(rounds=3, size=2)
HERE = ReproductionOptions(executor=InProcess())


@pytest.fixture
def small(monkeypatch):
    """Two ε on a small corpus, in rounds that take no time."""
    monkeypatch.setattr(perplexity, "EPSILONS", (4.0, 32.0))
    monkeypatch.setattr(perplexity, "RATES", (0.05,))
    monkeypatch.setattr(perplexity, "all_sources", lambda given: (TextSource("flights:200"), *given))
    monkeypatch.setattr(comparison, "Setup", lambda: SHORT)
    monkeypatch.setattr(perplexity, "least_noise", lambda epsilon, *run: 8 / epsilon)  # the search takes seconds


@pytest.fixture
def asked(small, monkeypatch):
    """The tasks that were run; a model's perplexity is known: 100 with privacy, else 10, and its seed."""
    tasks = []

    def run(task):
        tasks.append(task)
        found = (100.0 if task.noise_multiplier else 10.0) + task.seed
        return ComparedRun(found, 2 * found, found)

    monkeypatch.setattr(comparison, "run", run)
    return tasks


@pytest.mark.parametrize("arm", ["user", "user-entity"])
def test_both_ways_have_the_same_true_epsilon(arm):
    setup = Setup(rounds=20)
    sampled = {"user": 0.1, "user-entity": 1 - 0.9 * 0.5}[arm]
    assert perplexity.rate(arm, setup) == pytest.approx(sampled)
    noise = perplexity.least_noise(4.0, perplexity.DELTA, perplexity.rate(arm, setup), setup.rounds)
    true = perplexity.true_epsilon(arm, noise, setup)
    assert 4 * (1 - 2e-3) < true.lower <= true.upper <= 4
    other = pld.from_gaussian_mechanism(noise, value_discretization_interval=1e-3, sampling_prob=sampled)
    assert other.self_compose(setup.rounds).get_epsilon_for_delta(perplexity.DELTA) == pytest.approx(4, rel=5e-3)


def test_rows_means_and_findings(asked):
    result = perplexity.uedp_perplexity(replace(HERE, runs=3))
    assert len(result.rows) == len(asked) == 3 * (2 * 2 + 2)
    means = perplexity._means(result.rows, "flights:200", "user")
    assert means == {epsilon: (101.0, statistics.stdev([100, 101, 102])) for epsilon in (4.0, 32.0)}
    for row in result.rows:
        private = row["training"] in comparison.PRIVATE
        assert (row["noise_multiplier"] > 0) == private == math.isfinite(row["true_upper"])
        if private:
            assert 0 < row["true_lower"] <= row["true_upper"] < row["true_lower"] * 1.001
    assert "11.0 without privacy, 11.0 de-identified (22 if" in result.found[0]
    assert "User-entity DP is better at 0 of 2" in result.found[1]
    assert {task.seed for task in asked} == {0, 1, 2}
    assert "small LSTM" in result.caption
    assert "not tabulate" in result.published


def test_each_point_has_the_learning_rate_that_is_best_on_other_text(small, monkeypatch):
    """What is measured with has no say: it would prefer the other rate."""
    monkeypatch.setattr(perplexity, "RATES", (0.05, 0.01))

    def run(task):
        chosen = {"user": 0.05}.get(task.arm, 0.01)
        measured = 20.0 if task.learning_rate == chosen else 2.0
        one_lucky_run = 0.01 if task.seed == 2 else 1.0
        return ComparedRun(measured, measured, 1.5 if task.learning_rate == chosen else 1 + 40 * one_lucky_run)

    monkeypatch.setattr(comparison, "run", run)
    result = perplexity.uedp_perplexity(replace(HERE, runs=3))
    assert len(result.rows) == 2 * 3 * (2 * 2 + 2)
    assert {(row["training"], row["learning_rate"]) for row in result.rows if row["chosen"]} == {
        ("user", 0.05),
        ("user-entity", 0.01),
        ("de-identified", 0.01),
        ("none", 0.01),
    }
    assert perplexity._means(result.rows, "flights:200", "user") == {4.0: (20.0, 0.0), 32.0: (20.0, 0.0)}


def test_references_are_counted(small):
    source = TextSource("flights:200")
    found = perplexity._references(source)
    assert found["uniform"] == 4 + len(comparison.words_of(source))
    assert 1 < found["unigram"] < found["uniform"]
    assert found["unknown"] == 0  # the grammar's own words


def test_unknown_words_are_counted(tmp_path):
    held = sorted(user for user in map(str, range(99)) if comparison.is_held_out(Utterance("", user=user)))
    said = f"{held[0]},not counted,\n{held[1]},to rome now,rome\nann,to oslo,oslo\nbob,to bern,\n"
    (tmp_path / "a.csv").write_text(f"user,text,entities\n{said}")
    (tmp_path / "words.txt").write_text("to\nnow\n")
    found = perplexity._references(TextSource(str(tmp_path / "a.csv"), vocabulary=str(tmp_path / "words.txt")))
    assert found["unknown"] == 1 / 4  # of to rome now and the end of the text
    # counts of to, unknown and the end are 2 each of 6; 6 numbers get one more
    assert found["unigram"] == pytest.approx((4**3 * 12) ** 0.25)


def test_an_interrupted_run_trains_only_what_is_left(asked, tmp_path, monkeypatch):
    kept, fake = tmp_path / "partial.json", comparison.run

    def interrupted(task):
        if len(asked) == 4:
            raise KeyboardInterrupt
        return fake(task)

    monkeypatch.setattr(comparison, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        perplexity.uedp_perplexity(replace(HERE, runs=1, partial=kept))
    assert len(json.loads(kept.read_text())["counts"]) == 4
    monkeypatch.setattr(comparison, "run", fake)
    asked.clear()
    result = perplexity.uedp_perplexity(replace(HERE, runs=1, partial=kept))
    assert len(asked) == 2
    asked.clear()
    assert perplexity.uedp_perplexity(replace(HERE, runs=1, partial=kept)).rows == result.rows
    assert not asked
    perplexity.uedp_perplexity(replace(HERE, runs=1, seed=1, partial=kept))
    assert len(asked) == 6  # another seed


def test_damaged_perplexities_are_made_again(asked, tmp_path):
    kept = tmp_path / "partial.json"
    perplexity.uedp_perplexity(replace(HERE, runs=1, partial=kept))
    data = json.loads(kept.read_text())
    data["counts"] |= {"flights:200/none/inf/0.05/0": [0.5, 2.0, 2.0], "flights:200/user/4/0.05/0": ["9"]}
    kept.write_text(json.dumps(data))
    asked.clear()
    perplexity.uedp_perplexity(replace(HERE, runs=1, partial=kept))
    assert sorted(task.arm for task in asked) == ["none", "user"]


def test_two_corpora_are_drawn_from_trained_models(small, tmp_path):
    """All of it with nothing replaced but the sizes."""
    said = [
        (f"u{i % 40}", f"{'romeo' if i % 3 else 'the king'} goes to {'verona' if i % 2 else 'bed'}") for i in range(200)
    ]
    (tmp_path / "play.csv").write_text("who,text\n" + "".join(f"{user},{text}\n" for user, text in said))
    (tmp_path / "names.txt").write_text("romeo\nverona\n")
    play = TextSource(str(tmp_path / "play.csv"), f"list:{tmp_path / 'names.txt'}", user_column="who")
    result = perplexity.uedp_perplexity(replace(HERE, runs=1, corpora=(play,)))
    assert {row["corpus"] for row in result.rows} == {"flights:200", "play"}
    assert all(row["perplexity"] > 1 for row in result.rows)
    save(result, "x", tmp_path / "out", {})
    text = (tmp_path / "out" / "x.md").read_text()
    assert "play: " in text
    assert "nan" not in text.lower()
    assert re.search(r"on flights:200 and play\.", text)


def test_models_trained_elsewhere_are_taken_over(asked, tmp_path, monkeypatch):
    path = Path(__file__).parents[3] / "benchmarks" / "perplexity.py"
    specification = importlib.util.spec_from_file_location("elsewhere", path)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    monkeypatch.setattr(script, "Setup", comparison.Setup)
    monkeypatch.setattr(script, "run", comparison.run)
    planned, kept = tmp_path / "plan.json", tmp_path / "partial.json"
    none = dict.fromkeys(("corpus", "vocabulary", "user_column"), "")
    script.plan(SimpleNamespace(plan=planned, entities_from="corpus", runs=1, seed=0, **none))
    monkeypatch.setattr(script, "Setup", lambda **given: Setup(**given))
    pool = SimpleNamespace(Pool=lambda processes: nullcontext(SimpleNamespace(imap_unordered=map)))
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: pool)
    for _ in range(2):  # the second time all is there
        script.train(SimpleNamespace(plan=planned, out=kept, device="cuda", processes=8))
        assert len(asked) == 6
    assert {task.device for task in asked} == {"cuda"}
    rows = perplexity.uedp_perplexity(replace(HERE, runs=1, partial=kept)).rows
    assert len(asked) == 6
    assert sorted(row["perplexity"] for row in rows) == [10.0] * 2 + [100.0] * 4


def test_names_of_corpora_differ():
    assert [source.name for source in perplexity.all_sources(())] == ["flights"]
    with pytest.raises(InputError, match="same name"):
        perplexity.all_sources((TextSource("other/flights.csv"),))


def test_it_is_made_by_its_name_alone():
    assert perplexity.NAME in [figure.name for figure in FIGURES.values() if figure.long]
