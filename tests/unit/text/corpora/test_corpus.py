"""Corpora are read from every format, read back as they were written, and refused with the place of the fault."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpassay.errors import InputError
from dpassay.text.corpora.corpus import Utterance, read_corpus, split, write_corpus
from dpassay.text.corpora.flights import flights

quick = settings(
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
words = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        "label",
        "text",
        'a "b", c',
        '"',
        ",",
        "a\r\nb",
        "a\rb",
        "a\nb",
        "x\x85y",
        "x\u2028y",
        " a ",
        "\ufeffa",
        "#",
        "\\",
        "{",
    ]
)
entities = st.lists(words.filter(str.strip), max_size=3).map(tuple)
utterances = st.builds(
    Utterance, text=words.filter(str.strip), label=words, attribute=words, user=words, entities=entities
)
ROME, OSLO = Utterance("fly to rome", "flight"), Utterance("how much is it", "airfare")


def read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_corpus(path)


def refusal(tmp_path, name, content):
    with pytest.raises(InputError) as caught:
        read(tmp_path, name, content)
    return str(caught.value)


# --- what is written reads back the same ---


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@quick
@given(corpus=st.lists(utterances, min_size=2, max_size=6))
def test_what_is_written_reads_back_the_same(tmp_path, suffix, corpus):
    path = tmp_path / f"corpus{suffix}"
    write_corpus(corpus, path)
    assert read_corpus(path) == corpus


def test_texts_alone_are_a_line_each(tmp_path):
    write_corpus([Utterance("fly to\nrome", "flight"), OSLO], tmp_path / "lines.txt")
    assert (tmp_path / "lines.txt").read_text() == f"fly to rome\n{OSLO.text}\n"


def test_writing_refuses_what_could_not_be_read_back(tmp_path):
    for corpus, name, message in [
        ([ROME], "a.csv", "at least 2 utterances, got 1"),
        ([ROME, Utterance(" ", "flight")], "a.csv", "utterance 2: the text is blank"),
        ([ROME, OSLO], "a.xlsx", r"\.csv, \.tsv, \.jsonl or \.txt"),
        ([ROME, Utterance("half \ud800")], "a.jsonl", "half a character"),
        ([ROME, OSLO], "/dev/null/a.csv", "cannot write"),
    ]:
        with pytest.raises(InputError, match=message):
            write_corpus(corpus, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# --- csv ---


def test_csv_as_of_atis_has_the_label_up_to_the_first_comma(tmp_path):
    found = read(tmp_path, "a.csv", 'flight,fly to rome, then on, by "seven"\r\n\r\nairfare, how much is it \n')
    assert found == [Utterance('fly to rome, then on, by "seven"', "flight"), OSLO]


def test_csv_quotes_are_read_as_quotes(tmp_path):
    found = read(tmp_path, "a.csv", 'flight,"to rome, ""then"" on"\nflight,"over\ntwo lines"\nairfare,plain\n')
    assert found == [
        Utterance('to rome, "then" on', "flight"),
        Utterance("over\ntwo lines", "flight"),
        Utterance("plain", "airfare"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "label,text\nflight,fly, to rome\nairfare,how much is it\n",
        "text,label\nfly, to rome,flight\nhow much is it,airfare\n",
        "Intent, Text\nflight,fly, to rome\nairfare,how much is it\n",
        '"label","text"\n"flight","fly, to rome"\n"airfare","how much is it"\n',
        "id,text,intent\n1,fly, to rome,flight\n2,how much is it,airfare\n",
    ],
)
def test_csv_headers_are_respected(tmp_path, content):
    assert read(tmp_path, "a.csv", content) == [Utterance("fly, to rome", "flight"), OSLO]


def test_tsv_is_the_same_with_tabs(tmp_path):
    told = [Utterance("fly, to rome", "flight"), OSLO]
    assert read(tmp_path, "a.tsv", "flight\tfly, to rome\nairfare\thow much is it\r\n") == told
    assert read(tmp_path, "b.tsv", 'sentence\tlabel\n"fly, to rome"\tflight\nhow much is it\tairfare\n') == told
    assert "put a field with tabs in double quotes" in refusal(tmp_path, "c.tsv", "flight\tfly\tto rome\na\tb\n")


def test_csv_has_attributes_only_with_a_header(tmp_path):
    rows = "flight,fly to rome,british\nairfare,how much is it,american\n"
    assert [u.attribute for u in read(tmp_path, "a.csv", "label,text,attribute\n" + rows)] == ["british", "american"]
    assert read(tmp_path, "b.csv", rows)[0] == Utterance("fly to rome,british", "flight")


def test_csv_of_texts_only_needs_a_header_that_says_so(tmp_path):
    assert read(tmp_path, "a.csv", "text\nfly, to rome\nto oslo\n") == [Utterance("fly, to rome"), Utterance("to oslo")]


def test_a_first_line_that_only_resembles_a_header_is_an_utterance(tmp_path):
    assert read(tmp_path, "a.csv", "flight,text\nflight,fly to rome\n") == [Utterance("text", "flight"), ROME]


def test_only_the_first_line_can_be_a_header(tmp_path):
    assert read(tmp_path, "a.csv", "flight,fly to rome\nintent,text\n") == [ROME, Utterance("text", "intent")]


# --- the other files ---


def test_jsonl_takes_label_or_intent(tmp_path):
    content = '{"text": "fly to rome", "intent": "flight"}\n\n{"text": "a\\u0085b", "label": 7, "attribute": null}'
    assert read(tmp_path, "a.JSONL", content) == [ROME, Utterance("a\x85b", "7")]


def test_lines_end_at_newlines_only(tmp_path):
    assert read(tmp_path, "a.txt", " to\x85rome \r\n\nto\u2028oslo\x0cnow\n") == [
        Utterance("to\x85rome"),
        Utterance("to\u2028oslo\x0cnow"),
    ]


@pytest.mark.parametrize("suffix", [".iob", ".conll", ".bio"])
@pytest.mark.parametrize(
    "content",
    [
        "# intent: flight\nfly O\nto O\nrome B-to\n\n# intent = airfare\nhow O\nmuch O\nis O\nit O\n",
        "intent:flight\nfly\tO\nto\tO\nrome\tB-to\n\n\nintent: airfare\nhow\tO\nmuch\tO\nis\tO\nit\tO",
        "fly O\nto O\nrome B-to\nflight\n\nhow O\nmuch O\nis O\nit O\nairfare\n\n",
        "-DOCSTART- -X- O O\n\n# intent: flight\n\nfly VB O\nto P O\n# a comment\nrome N B-to\n\n"
        "how A O\nmuch A O\nis V O\nit P O\nairfare\n",
        "BOS fly to rome EOS\tO O O B-to flight\r\nBOS how much is it EOS\tO O O O O airfare\r\n",
    ],
    ids=["comment", "intent line", "last line", "conll", "one line"],
)
def test_iob_in_its_forms(tmp_path, suffix, content):
    assert read(tmp_path, f"a{suffix}", content) == [replace(ROME, entities=("rome",)), OSLO]


def test_tags_give_entities_of_several_words(tmp_path):
    content = "to O\nnew B-city\nyork I-city\nby O\nzephyr I-airline\n\nhow O\nmuch O\n"
    first, second = read(tmp_path, "a.iob", content)
    assert first.entities == ("new york", "zephyr")
    assert second.entities == ()


def test_iob_may_have_a_hash_for_a_token(tmp_path):
    assert read(tmp_path, "a.iob", "gate O\n# O\nnine B-gate\n\nhow O\n")[0].text == "gate # nine"


# --- users and entities ---


def test_users_and_entities_are_columns(tmp_path):
    expected = [Utterance("to rome", user="ann", entities=("rome", "new york")), Utterance("hm", user="7")]
    assert read(tmp_path, "a.csv", "speaker,text,entities\nann,to rome,rome|new york\n7,hm,\n") == expected
    lines = '{"text": "to rome", "user_id": "ann", "entities": ["rome", {"text": "new york"}]}\n'
    assert read(tmp_path, "a.jsonl", lines + '{"text": "hm", "user_id": 7}\n') == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a", "entities": "rome"}', "the entities must be a list of texts, got 'rome'"),
        ('{"text": "a", "entities": [" "]}', "an entity is blank"),
        ('{"text": "a", "user": ["x"]}', "the user must be text, got ['x']"),
    ],
)
def test_odd_users_and_entities_are_refused(tmp_path, line, message):
    assert message in refusal(tmp_path, "a.jsonl", line + "\n")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    assert read(tmp_path, "a.csv", b"\xef\xbb\xbflabel,text\nflight,fly to rome\nairfare,how much is it\n") == [
        ROME,
        OSLO,
    ]


# --- what is refused, and where ---


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"flight,fly\nflight,z\xfcrich\n", "line 2: the byte 0xfc is not UTF-8"),
        ("a.csv", "flight,fly\n\nflight\n", "line 3: there is a label only, 'flight'"),
        ("a.csv", "flight,fly\nflight, \n", "line 2: there is no text beside the label 'flight'"),
        ("a.csv", 'flight,fly\nflight,"fly,to,"rome\n', "line 2: the quotes cannot be read"),
        ("a.csv", 'flight,fly\nflight,"never closed\nflight,fly\n', "line 2: the quotes cannot be read"),
        ("a.csv", 'flight,fly\nflight,"a",b\n', "line 2: 3 fields, but 2 are needed"),
        ("a.csv", "label,text,attribute\nflight,fly\nflight,fly,x\n", "line 2: 2 fields, but 3 are needed"),
        ("a.csv", "label,text\nflight,fly\n", "at least 2 utterances, got 1"),
        ("a.csv", "", "the file is empty"),
        ("a.txt", "\n \n", "the file is empty"),
        ("a.txt", "one line", "at least 2 utterances, got 1"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', "line 2: this is not JSON"),
        ("a.jsonl", '{"text": "a"}\n' + "[" * 100_000, "line 2: this is not JSON"),
        ("a.jsonl", '{"text": "a"}\n["b"]\n', "line 2: an object such as"),
        ("a.jsonl", '{"text": "a"}\n{"label": "b"}\n', "line 2: the object has no text; its fields are ['label']"),
        ("a.jsonl", '{"text": "a"}\n{"text": ["b"]}\n', "line 2: the text must be text, got ['b']"),
        ("a.jsonl", '{"text": "a"}\n{"text": "", "label": "x"}\n', "line 2: there is no text beside the label 'x'"),
        ("a.iob", "fly O\nto\nrome B-to\n", "line 2: the line 'to' needs a token and its tag"),
        ("a.iob", "BOS a b EOS\tO O flight\n", "line 1: 4 words from BOS to EOS need as many tags"),
        ("a.iob", "BOS EOS\tO flight\n", "line 1: there is no text beside the label 'flight'"),
        ("a.xml", "<a/>", "cannot tell how to read '.xml' files; a corpus is a file ending in .csv, .tsv, .jsonl"),
    ],
)
def test_a_refusal_names_the_place_and_the_fault(tmp_path, name, content, message):
    refused = refusal(tmp_path, name, content)
    assert refused.startswith(str(tmp_path / name))
    assert message in refused


@pytest.mark.parametrize("name", ["nothing.csv", "nothing.xyz", "nothing"])
def test_a_missing_file_is_said_to_be_missing(tmp_path, name):
    with pytest.raises(InputError, match=f"there is no corpus .*{name}.*flights, atis, .* or hf:NAME"):
        read_corpus(tmp_path / name)


# --- the shipped corpus ---


def test_flights_are_read_by_name():
    assert read_corpus("flights:30") == flights(30)
    assert len(read_corpus("flights")) == 5000


@pytest.mark.parametrize(("name", "message"), [("flights:x", "whole"), ("flights:", "whole"), ("flights:1", "2")])
def test_a_wrong_number_of_flights_is_refused(name, message):
    with pytest.raises(InputError, match=f"{name}.*{message}"):
        read_corpus(name)


# --- splits ---


@quick
@given(st.integers(20, 300), st.integers(0, 5))
def test_a_split_keeps_every_utterance_once(number, seed):
    corpus = [Utterance(str(i)) for i in range(number)]
    parts = split(corpus, seed)
    assert sorted(int(u.text) for part in parts for u in part) == list(range(number))
    assert [abs(len(part) - share * number) <= 1 for part, share in zip(parts, (0.8, 0.1, 0.1), strict=True)] == [
        True
    ] * 3
    assert parts == split(corpus, seed)


def test_a_seed_says_which_split():
    corpus = [Utterance(str(i)) for i in range(100)]
    assert split(corpus, 1)[0] != split(corpus, 2)[0]
    assert split(corpus, 1)[0] != corpus[:80]


@pytest.mark.parametrize("shares", [(), (0.5, 0.4), (1.5, -0.5), (1.0, 0.0), (float("nan"), 0.5)])
def test_shares_must_sum_to_one(shares):
    with pytest.raises(InputError, match="above 0 and sum to 1"):
        split([ROME] * 50, 0, shares)


def test_a_share_without_utterances_is_refused():
    with pytest.raises(InputError, match="3 utterances are too few"):
        split([ROME] * 3, 0)


# --- the Hugging Face library ---


@pytest.fixture
def datasets():
    return pytest.importorskip("datasets", reason="the extra `hub` is not installed")


COLUMNS = {"query": ["fly to rome", "how much is it"], "intent": ["flight", "airfare"], "id": [1, 2]}


def test_a_saved_data_set_is_read_and_its_numbers_become_names(tmp_path, datasets):
    features = datasets.Features(
        {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["x", "flight"])}
    )
    data = datasets.Dataset.from_dict({"sentence": ["fly to rome", "hm"], "label": [1, -1]}, features=features)
    data.save_to_disk(tmp_path / "one")
    assert read_corpus(tmp_path / "one") == [ROME, Utterance("hm")]


def test_of_several_saved_splits_train_is_read(tmp_path, datasets):
    train = datasets.Dataset.from_dict(COLUMNS)
    datasets.DatasetDict({"test": train.select([0]), "train": train}).save_to_disk(tmp_path / "splits")
    assert read_corpus(str(tmp_path / "splits")) == [ROME, OSLO]
    datasets.DatasetDict({"a": train, "b": train}).save_to_disk(tmp_path / "unnamed")
    with pytest.raises(InputError, match=r"none of the splits \['a', 'b'\] is called train"):
        read_corpus(tmp_path / "unnamed")


def test_a_folder_of_files_is_read(tmp_path, datasets):
    (tmp_path / "train.csv").write_text("text,label\nfly to rome,flight\nhow much is it,airfare\n")
    (tmp_path / "test.csv").write_text("text,label\nnot this,x\n")
    assert read_corpus(tmp_path) == [ROME, OSLO]


@pytest.mark.parametrize("script", ["talk.py", "loader.py"])
def test_a_script_beside_the_data_is_not_run(tmp_path, datasets, script):
    folder = tmp_path / "talk"
    folder.mkdir()
    (folder / script).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    (folder / "train.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    if script == "talk.py":  # of the folder's own name, which earlier versions of the library ran
        with pytest.raises(InputError, match="scripts are no longer supported"):
            read_corpus(folder)
    else:
        assert read_corpus(folder) == [Utterance("a"), Utterance("b")]
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_holds_no_corpus_is_refused(tmp_path, datasets):
    empty, odd, bare = tmp_path / "empty", tmp_path / "odd", tmp_path / "bare"
    for folder in (empty, odd, bare):
        folder.mkdir()
    (odd / "train.csv").write_text("a,b\n1,2\n")
    (bare / "x.bin").write_bytes(b"\0")
    for folder, message in [(empty, "no data in it"), (odd, r"columns are \['a', 'b'\]"), (bare, "cannot be read")]:
        with pytest.raises(InputError, match=message):
            read_corpus(folder)


class Recorder(SimpleNamespace):
    """Stands in for the library, and remembers how it was called."""

    __version__ = "4.0.0"

    def load_dataset(self, *args, **options):
        self.called = (args, options)
        raise ConnectionError("no network")


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("hf:someone/talk", (("someone/talk",), {"split": None})),
        ("hf:talk:test[:9]", (("talk",), {"split": "test[:9]"})),
        ("atis", (("tuetschek/atis",), {"split": None})),
        ("ag-news:test[:9]", (("fancyzhx/ag_news",), {"split": "test[:9]"})),
    ],
)
def test_a_hub_name_is_asked_for_and_nothing_else(monkeypatch, name, called):
    library = Recorder()
    monkeypatch.setitem(sys.modules, "datasets", library)
    with pytest.raises(InputError, match=r"cannot be read: no network.*cannot be reached: .*give a file"):
        read_corpus(name)
    assert library.called == called


@pytest.mark.parametrize("name", ["hf:", "hf:a/b/c", "hf:../x/y"])
def test_a_name_that_no_hub_has_is_refused(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "datasets", Recorder())
    with pytest.raises(InputError, match="write hf:NAME or hf:NAME:SPLIT"):
        read_corpus(name)


def test_a_library_that_runs_scripts_is_not_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(__version__="3.6.0"))
    with pytest.raises(InputError, match=r"3\.6\.0 may run code.*pip install 'dpassay\[hub\]'"):
        read_corpus("hf:talk")


def test_without_the_library_the_error_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "train.csv").write_text("text\na\nb\n")
    monkeypatch.setitem(sys.modules, "datasets", None)
    for source in ("hf:talk", tmp_path):
        with pytest.raises(InputError, match=r"pip install 'dpassay\[hub\]'"):
            read_corpus(source)


def test_the_module_imports_nothing_heavy():
    code = "import sys, json, dpassay.text.corpora.flights; print(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "torch", "datasets", "pandas", "scipy"} & set(json.loads(run.stdout))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "who,user,text\nann,x,to rome\nbob,y,to oslo\n"),
        ("a.jsonl", '{"who": "ann", "user": "x", "text": "to rome"}\n{"who": "bob", "text": "to oslo"}\n'),
    ],
)
def test_the_column_of_users_can_be_named(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert [u.user for u in read_corpus(tmp_path / name, "who")] == ["ann", "bob"]
    assert read_corpus(tmp_path / name)[0].user == "x"
    with pytest.raises(InputError, match=r"no (column|field) 'whom'"):
        read_corpus(tmp_path / name, "whom")
    with pytest.raises(InputError, match=r"a user column can be named for \.csv, \.tsv, \.jsonl files"):
        read_corpus("flights", "who")
