"""Everything that the documents describe has a command, and it runs; the page of them is the one that is written."""

import shlex
import sys
from pathlib import Path

import pytest

from dpassay.cli import main as cli
from dpassay.reproduce import FIGURES
from dpassay.reproduce.documents import DOCUMENTS, Entry, page, shown

ROOT = Path(__file__).parents[3]
ENTRIES = [(entry, entries[:i]) for entries in DOCUMENTS.values() for i, entry in enumerate(entries)]
SAMPLED = ("adept-violations", "sampled-laplace", "sanity-check", "lecture-tables")  # fewer runs are enough here


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    words = shlex.split(command)
    assert words[0] == "dpassay"
    few = ["--runs", "200"] if words[1] == "reproduce" and words[2] in SAMPLED else []
    monkeypatch.setattr(sys, "argv", [*words, *few])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def written(entry: Entry) -> str:
    words = shlex.split(entry.command)
    return words[words.index("--out") + 1] if "--out" in words else ""


def trains(entry: Entry) -> bool:
    return shlex.split(entry.command)[1] in ("train", "reconstruct")


# A claim that is refuted ends with 1; nothing else may. What takes minutes is run with less data by test_perplexity.py
# and test_dpnr_accuracy.py.
@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "entry", [e for e, _ in ENTRIES if not e.takes_minutes and not trains(e)], ids=lambda entry: entry.what[:30]
)
def test_every_command_runs(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ours = entry.ours if isinstance(entry.ours, str) else entry.ours()
    assert run(entry.command, monkeypatch) == int(ours.startswith("refuted"))


@pytest.mark.long
@pytest.mark.parametrize(("entry", "earlier"), [both for both in ENTRIES if trains(both[0])])
def test_every_model_is_trained_and_attacked(
    entry: Entry, earlier: tuple[Entry, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for other in earlier:  # those that write what this one reads
        if not other.command.startswith("dpassay reproduce") and written(other) in shlex.split(entry.command):
            assert run(other.command, monkeypatch) == 0
    assert run(entry.command, monkeypatch) == 0


def test_every_figure_is_in_the_table() -> None:
    commands = {entry.command for entry, _ in ENTRIES}
    assert {f"dpassay reproduce {name} --out figures" for name in FIGURES} <= commands


def test_the_page_is_the_one_that_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ROOT / "docs" / "documents.md").read_text(encoding="utf-8") == page()
    assert run(f"dpassay reproduce bayes --page {tmp_path / 'x.md'} --out {tmp_path}", monkeypatch) == 2


# What the documents state, word for word, next to arithmetic.
def test_published_numbers_are_those_of_the_documents() -> None:
    ours = {
        (e.section, e.what): e.ours if isinstance(e.ours, str) else e.ours() for e, _ in ENTRIES if "dpnr" in e.command
    }
    assert "ε = 38.4" in ours["DPNR, Theorem 1", "one word, k = 768 elements"]  # 0.05 × 768
    assert shown(0.05 * 768) == "38.4"
    by_what = {e.what: e for e, _ in ENTRIES}
    assert by_what["the counterexample"].ours() == "distance 2.667 C, loss 1.333 ε"  # type: ignore[operator]
    assert by_what["how much higher than reported, n = 1024"].ours() == "refuted, ε = 32"  # type: ignore[operator]
    assert by_what["the true sensitivity, n = 32"].ours() == "11.31 C"  # type: ignore[operator]  # 2√32
