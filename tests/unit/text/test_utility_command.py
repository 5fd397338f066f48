"""The command that compares rewriters: its table, data, figure and page, and a run that is continued."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

pytest.importorskip("torch", reason="classifiers need torch: pip install 'dpassay[text]'")
pytest.importorskip("sacrebleu", reason="BLEU is computed by sacrebleu: pip install 'dpassay[text]'")

from dpassay.cli.main import app
from dpassay.errors import InputError
from dpassay.report.pages.page import utility_page
from dpassay.report.utility import utility_csv, utility_figure, utility_tables
from dpassay.text import utility as module
from dpassay.text.corpora.corpus import write_corpus
from dpassay.text.corpora.flights import flights
from dpassay.text.measurements import METRICS, Estimate, GuessedTexts, MeasuredRow, Stated, short_names
from dpassay.text.models import classifier

TEXTS = flights(90, seed=3)
HOSTILE = "<script>alert(1)</script>"


def row(label: str, epsilon: float, true: float, share: float, **more: Any) -> MeasuredRow:
    held = Stated(epsilon=epsilon, true_epsilon=true, delta=1e-6, neighbours="any")
    guesses = GuessedTexts(right=5, runs=10, candidates=50, how="learnt", bound=None if math.isinf(true) else 0.75)
    estimates = {name: Estimate(share, share / 2, min(1.0, 2 * share)) for name in METRICS}
    estimates["bleu"] = Estimate(12.34)
    return MeasuredRow(label, label, held, 1, 100, estimates, guesses, examples=((HOSTILE, "fly"),), **more)


ROWS = [
    MeasuredRow(
        "original", "original", None, 1, 100, {"accuracy_original": Estimate(0.92, 0.9, 0.94), "bleu": Estimate(100)}
    ),
    MeasuredRow("commonest", "commonest", None, 1, 100, {"accuracy_original": Estimate(0.71, 0.68, 0.74)}),
    row("tem", 1.0, 10.0, 0.3),
    row("tem", 10.0, 100.0, 0.5),
    row("custext", 1.0, math.inf, 0.6),
    row("copy", math.inf, math.inf, 0.9),
    row("[bold]\x1b[2J", 5.0, 5.0, 0.4),
]


def shown(rows: list[MeasuredRow], width: int) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width)
    for table in utility_tables(rows, width):
        console.print(table)
    return file.getvalue().splitlines()


def test_the_tables_fit_into_80_columns_and_are_one_where_there_is_room() -> None:
    narrow, wide = shown(ROWS, 80), shown(ROWS, 200)
    assert max(map(len, narrow)) <= 80
    assert not any("…" in line for line in narrow)
    assert sum(line.startswith("rewriter") for line in narrow) == 4
    assert sum(line.startswith("rewriter") for line in wide) == 1
    heads = next(line for line in wide if line.startswith("rewriter")).split()
    assert heads[:6] == ["rewriter", "ε", "true", "ε", "δ", "neighbours"]
    assert any(line.split()[:5] == ["tem", "1≠", "10", "1e-06", "any"] for line in wide)
    assert any(line.split()[:3] == ["custext", "1≠", "∞"] for line in wide)
    assert any(line.split()[:2] == ["copy", "∞"] for line in wide)
    assert any("[bold]\\x1b[2J" in line for line in wide)
    assert any("75%" in line for line in wide)  # the bound on the attacker's success


def test_the_data_have_all_rows_and_intervals() -> None:
    rows = list(csv.DictReader(io.StringIO(utility_csv(ROWS))))
    assert [one["rewriter"] for one in rows[:3]] == ["original", "commonest", "tem"]
    assert rows[1]["bleu"] == rows[0]["epsilon"] == rows[2]["bleu_low"] == ""
    assert (rows[4]["epsilon"], rows[4]["true_epsilon"], rows[4]["holds"]) == ("1.0", "inf", "False")
    assert (rows[2]["attack_candidates"], rows[2]["attack_bound"], rows[2]["attack_how"]) == ("50", "0.75", "learnt")
    assert (rows[2]["attack"], rows[2]["attack_low"], rows[2]["attack_high"]) == ("0.3", "0.15", "0.6")


def test_the_figure_is_drawn_the_same_each_time() -> None:
    drawn = utility_figure(ROWS, "svg")
    assert drawn == utility_figure(ROWS, "svg")
    for text in ("tem, as its authors state it", "custext, as its", "copy, no ε", "no attacker is better (M = 50)"):
        assert text.encode() in drawn


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_the_figure_is_drawn_even_of_references_alone(suffix: str, start: bytes) -> None:
    assert utility_figure(ROWS[:2], suffix).startswith(start)


def test_the_page_escapes_what_texts_hold() -> None:
    page = utility_page(ROWS, [("tested on", HOSTILE)], "dpassay utility")
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert "tem, ε = 1, true ε = 10" in page
    assert "\x1b" not in page


def test_names_are_short_and_different() -> None:
    asked = ["m/a,mechanism=l1,device=cpu", "m/a,mechanism=none", "n/b,mechanism=l1", "tem", "my.pack:Own", "your:Own"]
    found = short_names(asked)
    assert [found[one] for one in asked] == ["a l1 cpu", "a none", "b l1", "tem", "my.pack:Own", "your:Own"]


# The command.


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("utility")
    write_corpus(TEXTS[:60], found / "train.csv")
    write_corpus(TEXTS[60:], found / "test.csv")
    return found


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "STEPS", 15)


def run(place: Path, *more: str) -> Result:
    corpus = ["--corpus", str(place / "train.csv"), "--test", str(place / "test.csv")]
    quick = ["--encoder", "none", "--workers", "1", "--guesses", "20"]
    return CliRunner().invoke(app, ["utility", *corpus, *quick, *more])


def own(name: str) -> list[str]:
    return ["--python", f"sample_rewriters:{name}"]


def test_the_command_prints_draws_and_writes(place: Path, tmp_path: Path) -> None:
    drawn, data, page = tmp_path / "u.svg", tmp_path / "u.csv", tmp_path / "u.html"
    files = ["--figure", str(drawn), "--csv", str(data), "--html", str(page)]
    result = run(place, *own("Response"), *own("copy"), "-e", "1", "--true-epsilon", "24", "--limit", "20", *files)
    assert result.exit_code == 0, result.output
    assert "Response" in result.stdout
    assert drawn.stat().st_size < 150_000
    rows = list(csv.DictReader(io.StringIO(data.read_text())))
    assert [(one["label"], one["epsilon"][:3], one["true_epsilon"][:4]) for one in rows[2:]] == [
        ("Response", "1.0", "12.0"),
        ("Response", "2.0", "24.0"),
        ("copy", "inf", "inf"),
    ]
    assert {one["utterances"] for one in rows} == {"20"}
    assert "<summary>copy, true ε = ∞</summary>" in page.read_text()
    assert TEXTS[60].text in page.read_text() or len(page.read_text()) > 5000


def test_an_interrupted_measurement_goes_on_to_the_same_rows(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*own("Response"), "-e", "1", "-e", "3", "--seeds", "2", "--json"]
    kept = ["--save", str(tmp_path / "u.json")]
    whole = json.loads(run(place, *options).stdout)
    assert whole["schema"] == "dpassay/utility/2"
    assert whole["complete"] is True
    assert [one["seeds"] for one in whole["rows"]] == [1, 1, 2, 2]
    compared, left = module._compared, [4]

    def stop(*given: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return compared(*given)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_compared", stop)
        broken = run(place, *options, *kept)
    assert broken.exit_code == 130
    assert "interrupted after 4 measurements" in broken.stderr
    assert "to continue, add --resume" in broken.stderr
    assert json.loads(broken.stdout)["complete"] is False
    resumed = json.loads(run(place, *options, *kept, "--resume").stdout)
    assert (resumed["rows"], resumed["measurements"]) == (whole["rows"], whole["measurements"])
    more = json.loads(run(place, *own("blank"), "-e", "1", "--json", *kept, "--resume").stdout)
    assert [one["label"] for one in more["rows"]] == ["original", "commonest", "blank"]
    assert len(json.loads((tmp_path / "u.json").read_text())["measurements"]) == 7
    assert "continue it with --resume" in str(run(place, *options, *kept).exception)
    assert "it differs in guesses" in str(run(place, *options, *kept, "--resume", "--guesses", "30").exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name a rewriter: --model NAME"),
        (["--mechanism", "l1", *own("copy")], "--mechanism is for --model"),
        (["--model", "no/such/model"], "there is no rewriter 'no/such/model'"),
        ([*own("copy"), "--corpus", "no.csv"], "there is no corpus 'no.csv'"),
        ([*own("Response"), "-e", "0"], "epsilon must be a number above 0"),
        ([*own("Response"), "-e", "much"], "epsilon must be a number, got 'much'"),
        ([*own("copy"), "--limit", "1"], "limit must be 2 or more"),
        ([*own("copy"), "--seed", "-1"], "seed must be 0 or more"),
        ([*own("copy"), "--seeds", "0"], "--seeds must be from 1 to 10,000"),
        (
            ["--model", "adept", "--mechanism", "l1", "--model", "custext"],
            "custext has no mechanism to choose, and --mechanism applies to every --model: write "
            "--model adept,mechanism=l1 --model custext",
        ),
        (["--model", "custext", "--mechanism", "l1"], "leave --mechanism out"),
        ([*own("copy"), "--candidates", "1"], "2 candidates or more"),
        ([*own("copy"), "--workers", "0"], "workers must be a whole number from 1"),
        ([*own("copy"), "--encoder", "./no/folder"], "there is no folder ./no/folder"),
        ([*own("copy"), "--resume"], "--resume needs --save FILE"),
        ([*own("copy"), "--figure", "u.gif"], "a figure is written as .svg, .pdf or .png"),
        ([*own("copy"), "--html", "/dev/null/folder/u.html"], "its folder cannot be created"),
    ],
)
def test_the_command_refuses_bad_input(options: list[str], message: str, place: Path) -> None:
    result = run(place, *options)
    assert isinstance(result.exception, InputError), result.output
    assert message in str(result.exception)


def test_a_corpus_without_test_texts_is_divided(place: Path) -> None:
    given = ["utility", *own("copy"), "--corpus", str(place / "train.csv"), "--encoder", "none", "--workers", "1"]
    result = CliRunner().invoke(app, [*given, "--candidates", "0", "--json"])
    found = json.loads(result.stdout)["rows"]
    assert found[0]["utterances"] == 12
    assert found[2]["attack"] is None


def test_a_corpus_without_labels_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.txt").write_text("fly to rome\nfly to oslo\n")
    result = run(place, *own("copy"), "--corpus", str(tmp_path / "bare.txt"))
    assert "2 of the 2 utterances" in str(result.exception)


def test_without_an_encoder_it_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    result = CliRunner().invoke(
        app, ["utility", *own("copy"), "--corpus", str(place / "train.csv"), "--workers", "1", "--json"]
    )
    assert "no sentence encoder is installed" in result.stderr
    assert json.loads(result.stdout)["asked"]["encoder"] is None


def test_a_trained_model_is_measured_with_each_mechanism(place: Path, folder: Path) -> None:
    given = ["--model", str(folder), "--candidates", "0", "-e", "100", "--json"]
    mechanisms = [word for name in ("none", "l1", "adept-as-published") for word in ("--mechanism", name)]
    result = run(place, *given, *mechanisms)
    assert result.exit_code == 0, result.output
    found = {one["label"].rpartition(" ")[2]: one for one in json.loads(result.stdout)["rows"][2:]}
    assert list(found) == ["none", "l1", "adept-as-published"]
    assert (found["none"]["true_epsilon"], found["l1"]["true_epsilon"]) == ("inf", 100)
    # The published noise is scaled to the wrong norm: in 16 dimensions its true ε is √16 times the claimed one.
    assert found["adept-as-published"]["true_epsilon"] == pytest.approx(400)
    assert [found[name]["holds"] for name in ("l1", "adept-as-published")] == [True, False]
