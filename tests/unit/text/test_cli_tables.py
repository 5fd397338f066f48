"""Tables and long corpora on the command line."""

import json
import shutil
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpassay.cli import main as cli
from dpassay.cli.text import corpora
from dpassay.cli.text.resuming import Rewritten
from dpassay.text.corpora.corpus import pieces_of, read_corpus
from dpassay.text.corpora.flights import endless

LOUD = ("rewrite", "--python", "sample_rewriters:loud", "--as-published")


@pytest.fixture
def here(monkeypatch, capfd):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpassay", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capfd.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


def test_labels_survive_a_rewriting(here, tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("id,label,text\n1,flight,to rome\n2,airfare,how much\n3,flight,to oslo\n")
    code, _, err = here(*LOUD, "--in", source, "--out", out)
    assert (code, f"3 records in {out}" in err) == (0, True)
    assert "only 'text' is rewritten: other columns stay as they are, and the guarantee does not cover them" in err
    whole = out.read_text()
    assert whole == 'id,label,text\n"1","flight","TO ROME"\n"2","airfare","HOW MUCH"\n"3","flight","TO OSLO"\n'
    stated = json.loads((tmp_path / "out.csv.json").read_text())
    assert (stated["column"], stated["other_columns"][:12]) == ("text", "as they were")
    secret = tmp_path / "out.csv.resume"
    assert not secret.exists()  # a digest of the input can confirm a guess: it is kept only while it is needed
    interrupted_at(50, out, "to rome")  # in the second record
    assert here(*LOUD, "--in", source, "--out", out, "--resume")[0] == 0
    assert (out.read_text(), secret.exists()) == (whole, False)
    code, _, err = here(*LOUD, "--in", source, "--out", out, "--resume")
    assert (code, "is finished, or" in err) == (2, True)


def interrupted_at(length, out, *texts):
    """Leave a rewriting as an interruption at some byte leaves it, after these texts."""
    out.write_text(out.read_text()[:length])
    kept = Rewritten(out)
    kept.begin()
    assert list(kept.groups([list(texts)])) == [list(texts)]
    kept.written()
    assert kept.path.stat().st_mode & 0o777 == 0o600


def test_a_rewriting_is_continued_with_the_same_input_whatever_its_name(here, tmp_path):
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("to rome\nto oslo\n")
    assert here(*LOUD, "--in", source, "--out", out)[0] == 0
    whole = out.read_text()
    interrupted_at(10, out, "to rome")
    other = tmp_path / "other.txt"
    for content in ("to york\nto oslo\n", ""):
        for name in ("in.txt", "other.txt"):  # another input, even under the same name
            (tmp_path / name).write_text(content)
            code, _, err = here(*LOUD, "--in", tmp_path / name, "--out", out, "--resume")
            assert (code, "is the rewriting of another input" in err) == (2, True)
    other.write_text("to rome\nto oslo\n")
    assert here(*LOUD, "--in", other, "--out", out, "--resume")[0] == 0
    assert out.read_text() == whole


def test_a_line_that_ended_a_rewriting_can_be_repaired(here, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "a"}\n{}\n{"text": "c"}\n')
    assert here(*LOUD, "--in", source, "--out", out)[0] == 2
    assert out.read_text() == '{"text": "A"}\n'
    source.write_text('{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n')
    assert here(*LOUD, "--in", source, "--out", out, "--resume")[0] == 0
    assert out.read_text() == '{"text": "A"}\n{"text": "B"}\n{"text": "C"}\n'


def test_records_without_a_text_are_left_out_on_request(here, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "a", "id": 1}\n{"id": 2}\n{"text": null, "id": 3}\nno json\n{"text": "b", "id": 4}\n')
    code, _, err = here(*LOUD, "--in", source)
    assert (code, "line 2" in err, "add --skip-invalid" in err) == (2, True, True)
    code, _, err = here(*LOUD, "--in", source, "--out", out, "--skip-invalid")
    assert (code, "left out: 3 records without a text" in err) == (0, True)
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        *({"text": "A", "id": 1}, {"text": "B", "id": 4}),
    ]
    assert json.loads((tmp_path / "out.jsonl.json").read_text())["records_without_text"] == "left out"
    code, _, err = here(*LOUD, "--in", tmp_path / "in.txt", "--skip-invalid")
    assert code == 2


def test_a_rewriting_that_such_a_record_ended_is_continued_without_it(here, tmp_path):
    source, out, stated = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "out.jsonl.json"
    source.write_text('{"text": "a"}\n{}\n{"text": "c"}\nno json\n')
    assert here(*LOUD, "--in", source, "--out", out)[0] == 2
    code, _, err = here(*LOUD, "--in", source, "--out", out, "--skip-invalid", "--resume")
    assert (code, "left out: 2 records without a text" in err) == (0, True)
    assert out.read_text() == '{"text": "A"}\n{"text": "C"}\n'
    assert json.loads(stated.read_text())["records_without_text"] == "left out"
    interrupted_at(14, out, "a")
    source.write_text('{"text": "a"}\n{"text": "c"}\n')
    assert here(*LOUD, "--in", source, "--out", out, "--resume")[0] == 0
    assert json.loads(stated.read_text())["records_without_text"] == "left out"  # some were


def test_quiet_is_quiet(here, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{}\n')
    options = ("--in", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--skip-invalid", "-q")
    assert here(*LOUD, *options) == (0, "", "")


def test_a_table_goes_to_the_standard_output_in_its_own_form(here, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"question": "why", "text": "kept"}\n')
    code, out, _ = here(*LOUD, "--in", tmp_path / "in.jsonl", "--column", "question")
    assert (code, out) == (0, '{"question": "WHY", "text": "kept"}\n')
    (tmp_path / "in.csv").write_text("flight,to rome\n")
    code, out, err = here(*LOUD, "--in", tmp_path / "in.csv")
    assert (code, out, "has no header" in err) == (0, '"flight","TO ROME"\n', True)


def test_two_workers_keep_the_records_in_order(here, tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    source.write_text("label,text\n" + "".join(f"{n},word {n}\n" for n in range(1500)))
    assert here(*LOUD, "--in", source, "--out", out, "--workers", 2)[0] == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert found == [{"label": str(n), "text": f"WORD {n}"} for n in range(1500)]


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("in.csv", ("--out", "out.txt"), "would be lines"),
        ("in.txt", ("--out", "out.csv"), "would be a table, but lines come in"),
        ("in.txt", ("--column", "text"), "lines have no columns"),
        ("in.csv", ("--column", "body"), "must have one column 'body'"),
    ],
)
def test_forms_that_do_not_fit_are_refused(here, tmp_path, monkeypatch, source, options, said):
    monkeypatch.chdir(tmp_path)
    Path(source).write_text("label,text\nflight,to rome\n")
    code, out, err = here(*LOUD, "--in", source, *options)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert [path.name for path in tmp_path.iterdir()] == [source]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_corpora_are_converted_and_lose_nothing(here, tmp_path, suffix):
    first, second, third = tmp_path / "a.jsonl", tmp_path / f"b{suffix}", tmp_path / "c.jsonl"
    assert here("corpus", "--corpus", "bookings", "--lines", 20, "--out", first)[0] == 0
    assert here("corpus", "--corpus", first, "--out", second)[0] == 0
    assert here("corpus", "--corpus", second, "--out", third)[0] == 0
    assert third.read_text() == first.read_text()
    assert read_corpus(third) == read_corpus("bookings:20")


# Habernal, EMNLP 2021, section 7: 941 words and at most 46 of them make 941^46, about 6e136, sequences.
def test_the_published_search_space_follows_from_vocabulary_and_length(here, tmp_path):
    words = [f"w{i}" for i in range(941)]
    lines = [" ".join(words[i : i + 46]) for i in range(0, 941, 46)] + ["w0", "w0"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    code, out, _ = here("corpus", "--corpus", tmp_path / "a.txt", "--statistics")
    assert code == 0
    assert out.splitlines() == [
        "utterances    23, 22 of them different",
        f"length        1 to 46 words, {943 / 23:.2f} on average",
        "vocabulary    941 words",
        "search space  941^46, about 6.1e136 sequences of words",
    ]
    assert f"{941**46:.1e}" == "6.1e+136"


def test_statistics_as_data_and_beside_a_file(here, tmp_path):
    (tmp_path / "a.csv").write_text("label,text\nx,I'd fly\ny,i'd  FLY\nx,to rome via oslo\n")
    code, out, err = here(
        "corpus", "--corpus", tmp_path / "a.csv", "--statistics", "--json", "--out", tmp_path / "b.txt"
    )
    assert (code, "3 utterances written to" in err) == (0, True)
    assert json.loads(out) == {
        **{"utterances": 3, "different": 2, "shortest": 2, "mean": pytest.approx(8 / 3), "longest": 4},
        **{
            "vocabulary": 6,
            "split_vocabulary": 7,
            "log10_search_space": pytest.approx(3.112605001534574),
        },  # 6^4 = 1296
    }
    _, first, _ = here("corpus", "--lines", 30, "--statistics")
    _, second, _ = here("corpus", "--corpus", "flights:30", "--statistics")
    assert first == second
    assert first.startswith("utterances    30, ")


@pytest.mark.parametrize("options", [(), ("--json",), ("--json", "--out", "x.csv")])
def test_a_corpus_is_for_writing_or_counting(here, options):
    code, out, err = here("corpus", *options)
    assert (code, out) == (2, "")
    assert "--statistics" in err


def test_what_the_disk_has_no_room_for_is_refused(here, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5e9))
    code, _, err = here("corpus", "--lines", "1000000000000", "--out", tmp_path / "a.csv")
    said = " ".join(err.split())
    assert code == 2
    assert "1,000,000,000,000 utterances need about" in said
    assert " TB and " in said
    assert "has room for 5.0 GB: give fewer --lines (at most about " in said
    assert list(tmp_path.iterdir()) == []


def test_a_long_corpus_is_announced_and_a_short_one_is_not(here, tmp_path, monkeypatch):
    code, _, err = here("corpus", "--lines", 10, "--out", tmp_path / "a.csv")
    assert (code, err) == (0, f"10 utterances written to {tmp_path / 'a.csv'}\n")
    monkeypatch.setattr(corpora, "SOON", 0.0)
    _, _, err = here("corpus", "--lines", 10, "--out", tmp_path / "b.csv")
    assert err.startswith("10 utterances need about ")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    code, _, err = here("corpus", "--lines", 10, "--out", tmp_path / "c.csv")
    assert (code, "has room for 100 bytes" in " ".join(err.split())) == (2, True)


def test_utterances_are_made_as_they_are_written():
    pieces = pieces_of(islice(endless(), 10**12), Path("a.csv"))
    assert len(list(islice(pieces, 5))) == 5
