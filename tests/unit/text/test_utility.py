"""What rewritten text is good for: exact on a model with a perfect memory, and the command on a small trained one."""

import csv
import importlib
import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

pytest.importorskip("torch", reason="an autoencoder needs torch: pip install 'dpassay[text]'")
pytest.importorskip("sacrebleu", reason="BLEU is computed by sacrebleu: pip install 'dpassay[text]'")

from dpassay.cli.main import app
from dpassay.errors import InputError
from dpassay.report.utility import utility_csv, utility_figure, utility_table
from dpassay.text import utility as module
from dpassay.text.corpora.corpus import Utterance, write_corpus
from dpassay.text.corpora.flights import flights
from dpassay.text.models import classifier
from dpassay.text.models.training import Plan
from dpassay.text.rewriters.adept import train as teach
from dpassay.text.rewriters.release import MECHANISMS, Release, integer_noise
from dpassay.text.utility import REFERENCES, Row, load, measure, question, save, true_epsilon

DIM = 16
TEXTS = flights(120, seed=3)
TRAIN, TEST = TEXTS[:80], TEXTS[80:]
HUGE, TINY = 1e4, 1e-6


class Memory:
    """An autoencoder that knows its texts by heart: each has a direction, and the nearest text is written.

    For a vector a thousand times as long as any of them, which is noise alone, it writes nothing.
    """

    about = SimpleNamespace(latent=DIM, clip=1.0, sha256="memory")

    def __init__(self, utterances: list[Utterance]) -> None:
        self.known = sorted({u.text for u in utterances})
        drawn = np.random.default_rng(1).normal(size=(len(self.known), DIM))
        self.table = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def vectors(self, texts: list[str]) -> np.ndarray:
        return self.table[[self.known.index(text) for text in texts]]

    def texts(self, vectors: np.ndarray) -> list[str]:
        nearest = (vectors @ self.table.T).argmax(axis=1)
        far = np.linalg.norm(vectors, axis=1) > 1000
        return ["" if away else self.known[i] for i, away in zip(nearest, far, strict=True)]


MEMORY: Any = Memory(TEXTS)


def rows_of(*args: Any, **options: Any) -> dict[tuple[str, float | None], Row]:
    return {(row.mechanism, row.epsilon): row for row in measure(MEMORY, TRAIN, TEST, *args, **options)}


@pytest.fixture(scope="module", autouse=True)
def _few_steps() -> Iterator[None]:
    """Classifiers that learn for a shorter time: which, is another file's business."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(classifier, "STEPS", 15)
        yield


@pytest.fixture(scope="module")
def at_the_ends() -> dict[tuple[str, float | None], Row]:
    return rows_of(epsilons=(TINY, HUGE))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_with_next_to_no_noise_all_is_as_without(mechanism: str, at_the_ends: Any) -> None:
    row, none, original = at_the_ends[mechanism, HUGE], at_the_ends["none", None], at_the_ends["original", None]
    for found in (row, none, original):
        assert (found.bleu, found.unchanged, found.words_kept) == (100.0, 1.0, 1.0)
        assert found.right_original == found.right_rewritten == original.right_original
        assert found.utterances == len(TEST)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_with_noise_alone_nothing_is_left_but_the_commonest_label(mechanism: str, at_the_ends: Any) -> None:
    row, floor = at_the_ends[mechanism, TINY], at_the_ends["commonest", None]
    (label, most), (_, second) = Counter(u.label for u in TRAIN).most_common(2)
    assert most > second
    assert floor.right_original == sum(u.label == label for u in TEST)
    assert row.right_original == row.right_rewritten == floor.right_original
    assert (row.bleu, row.unchanged, row.words_kept) == (0.0, 0.0, 0.0)


def test_more_is_learnt_from_the_text_than_from_noise(at_the_ends: Any) -> None:
    assert at_the_ends["original", None].interval_original[0] > at_the_ends["commonest", None].accuracy_original


def test_what_is_learnt_from_the_original_text_is_tested_on_it(at_the_ends: Any) -> None:
    rows, words = classifier.bag_of_words([u.text for u in TRAIN])
    learnt = classifier.fit(rows, [u.label for u in TRAIN])
    asked, _ = classifier.bag_of_words([u.text for u in TEST], words)
    assert at_the_ends["original", None].accuracy_original == learnt.accuracy(asked, [u.label for u in TEST])


@pytest.mark.parametrize("dim", [1, 16, 64, 100])
def test_the_published_mechanism_keeps_root_n_times_what_it_claims(dim: int) -> None:
    for epsilon in (1, 10, 123.4):
        published = Release("adept-as-published", epsilon, dim=dim)
        assert true_epsilon(published) == epsilon * math.sqrt(dim)
        # It is the right mechanism for that ε: the same clipping, and noise of the same scale.
        right = Release("sqrt-n", true_epsilon(published), dim=dim)
        assert right.scale() == pytest.approx(published.scale(), rel=1e-12)
        for mechanism, delta in (("gaussian", 1e-6), ("l1", 0.0), ("sqrt-n", 0.0)):
            assert true_epsilon(Release(mechanism, epsilon, delta, dim)) == epsilon


def test_the_true_epsilon_is_that_of_opendp() -> None:
    pytest.importorskip("opendp", reason="an independent privacy map: pip install 'dpassay[release]'")
    published = Release("adept-as-published", 100, dim=64)
    # On whole numbers the least scale is rounded up, by 1/256 at most.
    assert 1 - 1 / 256 <= integer_noise(published).epsilon / true_epsilon(published) <= 1


def test_true_and_claimed_epsilon_stand_in_the_rows(at_the_ends: Any) -> None:
    assert at_the_ends["adept-as-published", HUGE].true_epsilon == HUGE * 4
    assert at_the_ends["l1", HUGE].true_epsilon == HUGE
    assert at_the_ends["gaussian", HUGE].delta == 1e-6
    assert at_the_ends["l1", HUGE].delta == 0
    assert [at_the_ends[name, None].true_epsilon for name in REFERENCES] == [None] * 3


def test_a_cell_is_the_same_whichever_others_are_measured(at_the_ends: Any) -> None:
    known = list(at_the_ends.values())[:3]
    together = rows_of(("l1", "sqrt-n"), (20, 5), done=known)
    alone = rows_of(("sqrt-n",), (5,), done=known)
    assert together["sqrt-n", 5] == alone["sqrt-n", 5]
    assert list(together)[3:] == [("l1", 5), ("l1", 20), ("sqrt-n", 5), ("sqrt-n", 20)]
    assert rows_of(("sqrt-n",), (5,), seed=1, done=known)["sqrt-n", 5] != alone["sqrt-n", 5]


def test_finished_rows_are_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(measure(MEMORY, TRAIN, TEST, ("l1",), (5, 50)))
    monkeypatch.setattr(module, "fit", None)
    told: list[tuple[int, int, str]] = []
    again = measure(MEMORY, TRAIN, TEST, ("l1",), (5, 50), done=whole, progress=lambda *now: told.append(now))
    assert list(again) == whole
    assert told[-2:] == [(4, 5, "l1, ε = 50"), (5, 5, "done")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": (0,)}, "epsilon must be a number from 1e-06 to 10000, got 0"),
        ({"mechanisms": ("laplace",)}, "unknown mechanism 'laplace'"),
        ({"mechanisms": ()}, "give one mechanism and one epsilon, or more"),
        ({"delta": 0}, "Gaussian noise needs a delta"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"train": [Utterance("fly", "a"), Utterance("go")]}, "1 of the 2 utterances of the training corpus have"),
        ({"train": [Utterance("fly", "a"), Utterance("go", "a")]}, "has one label only, 'a'"),
        ({"test": [Utterance("fly")]}, "the test corpus have no label"),
        ({"test": []}, "the test corpus has no utterances"),
    ],
)
def test_bad_input_is_refused_before_any_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure(MEMORY, **{"train": TRAIN, "test": TEST, **options})


def test_without_sacrebleu_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'dpassay\[text\]'"):
        measure(MEMORY, TRAIN, TEST)


# On file, and shown.


def test_a_file_gives_back_its_rows_and_refuses_another_question(tmp_path: Path, at_the_ends: Any) -> None:
    path, asked, rows = tmp_path / "x.json", question(MEMORY, TRAIN, TEST, 0), list(at_the_ends.values())
    save(path, asked, rows)
    assert load(path, asked) == rows
    for other, name in ((question(MEMORY, TRAIN, TEST, 1), "seed"), (question(MEMORY, TRAIN[1:], TEST, 0), "train")):
        with pytest.raises(InputError, match=f"is another measurement: it differs in {name}"):
            load(path, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"utterances": 1}, "more right guesses than utterances"),
        ({"right_original": -1}, "right_original: .*greater than or equal to 0"),
        ({"bleu": "high"}, "bleu: .*valid number"),
        ({"epsilon": True}, "epsilon: .*valid number"),
    ],
)
def test_damaged_files_are_refused(change: dict[str, Any], message: str, tmp_path: Path, at_the_ends: Any) -> None:
    path, asked = tmp_path / "x.json", question(MEMORY, TRAIN, TEST, 0)
    save(path, asked, at_the_ends.values())
    data = json.loads(path.read_text())
    data["rows"][0] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message):
        load(path, asked)
    for text in ("{", "[]", '{"schema": "dpassay/audit/1"}'):
        path.write_text(text)
        with pytest.raises(InputError, match="is not a measurement's file"):
            load(path, asked)


def test_the_table_fits_into_80_columns(at_the_ends: Any) -> None:
    shown = io.StringIO()
    odd = Row("[bold]\x1b[2J", 1.0, 0.0, 1.0, 1, 2, 3, 4.0, 0.5, 0.5)
    Console(file=shown, width=80).print(utility_table([*at_the_ends.values(), odd]))
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in shown.getvalue()
    assert "[bold]\\x1b[2J" in shown.getvalue()
    assert any(line.split()[:3] == ["adept-as-published", "10000", "40000"] for line in lines)


def test_the_figure_is_drawn_the_same_each_time(at_the_ends: Any) -> None:
    rows = list(at_the_ends.values())
    drawn = utility_figure(rows, "svg")
    assert drawn == utility_figure(rows, "svg")
    assert b"adept-as-published, claimed" in drawn
    assert b"adept-as-published, true" in drawn


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_the_figure_is_drawn_even_of_references_alone(suffix: str, start: bytes, at_the_ends: Any) -> None:
    assert utility_figure(list(at_the_ends.values())[:3], suffix).startswith(start)


def test_the_data_have_all_rows_and_intervals(at_the_ends: Any) -> None:
    rows = list(csv.DictReader(io.StringIO(utility_csv(list(at_the_ends.values())))))
    assert [row["mechanism"] for row in rows[:3]] == list(REFERENCES)
    assert rows[2]["bleu"] == ""
    assert all(float(r["low_original"]) <= float(r["accuracy_original"]) <= float(r["high_original"]) for r in rows)


# The command.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("utility")
    write_corpus(TRAIN, place / "train.csv")
    write_corpus(TEST, place / "test.csv")
    texts = [u.text for u in TRAIN]
    teach(texts, texts[:10], place / "model", Plan(steps=20, batch=16), latent=8, hidden=16, embedding=8)
    return place


def run(folder: Path, *more: str) -> Result:
    corpus = ["--corpus", str(folder / "train.csv"), "--test", str(folder / "test.csv")]
    return CliRunner().invoke(app, ["utility", "--model", str(folder / "model"), *corpus, *more])


def test_the_command_prints_draws_and_writes(folder: Path, tmp_path: Path) -> None:
    drawn, data = tmp_path / "u.svg", tmp_path / "u.csv"
    result = run(folder, "-e", "10", "--limit", "30", "--figure", str(drawn), "--csv", str(data))
    assert result.exit_code == 0, result.output
    assert "adept-as-published" in result.stdout
    assert drawn.stat().st_size < 150_000
    assert {row["utterances"] for row in csv.DictReader(io.StringIO(data.read_text()))} == {"30"}
    as_json = json.loads(run(folder, "-e", "10", "--mechanism", "l1", "--limit", "30", "--json").stdout)
    assert as_json["complete"] is True
    assert [row["mechanism"] for row in as_json["rows"]] == [*REFERENCES, "l1"]


def test_an_interrupted_measurement_goes_on_to_the_same_rows(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--mechanism", "l1", "-e", "5", "-e", "50", "--json"]
    kept = ["--save", str(tmp_path / "u.json")]
    whole = json.loads(run(folder, *options).stdout)["rows"]

    def stop(bench: Any, release: Release) -> Row:
        if release.epsilon == 50:
            raise KeyboardInterrupt
        return private(bench, release)

    private = module._Bench.private
    with monkeypatch.context() as patched:
        patched.setattr(module._Bench, "private", stop)
        broken = run(folder, *options, *kept)
    assert broken.exit_code == 130
    assert "interrupted after 4 rows" in broken.stderr
    assert "to continue, add --resume" in broken.stderr
    assert json.loads(broken.stdout)["complete"] is False
    resumed = run(folder, *options, *kept, "--resume")
    assert json.loads(resumed.stdout)["rows"] == whole
    more = run(folder, "--mechanism", "gaussian", "-e", "5", "--json", *kept, "--resume")
    assert [row["mechanism"] for row in json.loads(more.stdout)["rows"]] == [*REFERENCES, "gaussian"]
    assert len(json.loads((tmp_path / "u.json").read_text())["rows"]) == 6
    assert "continue it with --resume" in str(run(folder, *options, *kept).exception)
    assert "it differs in seed" in str(run(folder, *options, *kept, "--resume", "--seed", "1").exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "no/such/model"], "no/such/model/model.json cannot be read"),
        (["--corpus", "no.csv"], "there is no corpus 'no.csv'"),
        (["-e", "0"], "epsilon must be a number from"),
        (["-e", "much"], "epsilon must be a number, got 'much'"),
        (["--mechanism", "gausian"], "did you mean 'gaussian'?"),
        (["--limit", "1"], "limit must be 2 or more"),
        (["--seed", "-1"], "seed must be 0 or more"),
        (["--resume"], "--resume needs --save FILE"),
        (["--figure", "u.gif"], "a figure is written as .svg, .pdf or .png"),
        (["--csv", "no/such/folder/u.csv"], "its folder must exist"),
    ],
)
def test_the_command_refuses_bad_input(options: list[str], message: str, folder: Path) -> None:
    result = run(folder, *options)
    assert isinstance(result.exception, InputError), result.output
    assert message in str(result.exception)


def test_a_corpus_without_test_texts_is_divided(folder: Path) -> None:
    given = ["utility", "--model", str(folder / "model"), "--corpus", str(folder / "train.csv")]
    result = CliRunner().invoke(app, [*given, "--mechanism", "l1", "-e", "5", "--json"])
    assert json.loads(result.stdout)["rows"][0]["utterances"] == 16


def test_a_corpus_without_labels_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_text("fly to rome\nfly to oslo\n")
    result = run(folder, "--corpus", str(tmp_path / "bare.txt"))
    assert "2 of the 2 utterances" in str(result.exception)
