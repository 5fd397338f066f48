"""Tables in which one column is rewritten: what is read, what is written, and where an interrupted file continues."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpassay.errors import InputError
from dpassay.text.corpora.records import RecordLines, Table


def loud(tmp_path: Path, source: str, content: str | bytes, out: str = "", column: str = "") -> str:
    """A file in which the texts are in capitals."""
    path = tmp_path / source
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    table = Table(path, Path(out or source), column)
    with path.open("rb") as stream:
        return table.written([text.upper() for text in table.texts(stream)])


@pytest.mark.parametrize(
    ("name", "content", "written"),
    [
        # with a header: its columns in its order, whatever else they hold
        ("a.csv", "id,text,label\n7,to rome,flight\n", 'id,text,label\n"7","TO ROME","flight"\n'),
        ("a.csv", "label,text\nflight,to rome, then oslo\n", 'label,text\n"flight","TO ROME, THEN OSLO"\n'),
        ("a.csv", 'Label,"Text"\r\n" x ","a ""b""\nc"\r\n', 'Label,Text\n" x ","A ""B""\nC"\n'),
        ("a.csv", b"\xef\xbb\xbftext\nto rome\n\n", 'text\n"TO ROME"\n'),
        ("a.csv", 'label,text\nflight,""\n', 'label,text\n"flight",""\n'),
        ("a.csv", "label,text\n", "label,text\n"),
        # without: label,text
        ("a.csv", "flight,to rome, then oslo\n", '"flight","TO ROME, THEN OSLO"\n'),
        ("a.tsv", "flight\tto rome, then oslo\n", '"flight"\t"TO ROME, THEN OSLO"\n'),
        ("a.tsv", "text\tlabel\nto rome\tflight\n", 'text\tlabel\n"TO ROME"\t"flight"\n'),
        ("a.csv", "", ""),
        (
            "a.jsonl",
            '{"n": 1, "text": "é", "more": {"a": [null, 1.5]}}\n\n{"query": "b"}\n',
            '{"n": 1, "text": "É", "more": {"a": [null, 1.5]}}\n{"query": "B"}\n',
        ),
    ],
)
def test_the_text_alone_is_rewritten(tmp_path, name, content, written):
    assert loud(tmp_path, name, content) == written


@pytest.mark.parametrize(
    ("source", "content", "out", "written"),
    [
        ("a.csv", "id,text,label\n7,to rome,flight\n", "b.tsv", 'id\ttext\tlabel\n"7"\t"TO ROME"\t"flight"\n'),
        (
            "a.csv",
            "id,text,label\n7,to rome,flight\n",
            "b.jsonl",
            '{"id": "7", "text": "TO ROME", "label": "flight"}\n',
        ),
        ("a.csv", "text,entities\nto rome,rome\n", "b.jsonl", '{"text": "TO ROME", "entities": ["rome"]}\n'),
        ("a.csv", "flight,to rome\n", "b.jsonl", '{"label": "flight", "text": "TO ROME"}\n'),
        ("a.jsonl", '{"text": "a", "n": [1]}\n{"n": null, "text": "b"}\n', "b.csv", 'text,n\n"A","[1]"\n"B",""\n'),
    ],
)
def test_tables_are_converted(tmp_path, source, content, out, written):
    assert loud(tmp_path, source, content, out) == written


def test_another_column_can_be_named(tmp_path):
    assert loud(tmp_path, "a.csv", "id,body\n7,to rome\n", column="body") == 'id,body\n"7","TO ROME"\n'
    assert loud(tmp_path, "a.csv", "id,text\n7,to rome\n", column="text") == 'id,text\n"7","TO ROME"\n'
    assert loud(tmp_path, "a.jsonl", '{"text": "a", "body": "b"}\n', column="body") == '{"text": "a", "body": "B"}\n'


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.csv", "id,text\n7,to rome\n", "", "line 1: id,text may be a header or a record: .*--column text"),
        ("a.csv", "label,words\n7,to rome\n", "", "may be a header"),
        ("a.csv", "id,text\n7,to rome\n", "body", "line 1: the header must have one column 'body'; it is id,text"),
        ("a.csv", "label,text\nflight,a\n\nflight\n", "", "line 4: 1 fields, but 2 are needed"),
        ("a.csv", 'label,text\nflight,"a\n', "", "line 2: the quotes cannot be read"),
        ("a.tsv", "label\ttext\nflight\ta\tb\n", "", "line 2: 3 fields, .* tabs in double quotes"),
        ("a.csv", b"label,text\nflight,\xff\n", "", "line 2: byte 8 is not UTF-8"),
        (
            "a.jsonl",
            '{"text": "a"}\n{"body": "b"}\n',
            "",
            r"line 2: the object has no field 'text'; its fields are \['",
        ),
        ("a.jsonl", '{"text": 7}\n', "", "line 1: the field 'text' must be text, got 7"),
        ("a.jsonl", '{"text": "a", "x": "\\ud800"}\n', "", "line 1: there is half a character"),
        ("a.jsonl", "[1]\n", "", "line 1: an object"),
        ("a.jsonl", "{\n", "", "line 1: this is not JSON"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path, name, content, column, message):
    with pytest.raises(InputError, match=message):
        loud(tmp_path, name, content, column=column)


def test_what_no_table_can_hold_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"line 2: its fields are .* write \.jsonl instead"):
        loud(tmp_path, "a.jsonl", '{"text": "a"}\n{"text": "b", "n": 1}\n', "b.csv")
    with pytest.raises(InputError, match="two columns have the same name"):
        loud(tmp_path, "a.csv", "id,id,text,label\n1,2,a,b\n", "b.jsonl")


FIELDS = st.text(st.characters(codec="utf-8"), max_size=6)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=4), cut=st.integers(0, 80))
@example(records=[("a\nb", "c"), ("d", "e")], cut=15)
def test_a_file_broken_off_anywhere_goes_on_with_the_next_record(tmp_path, suffix, records, cut):
    source, out = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    if suffix == ".jsonl":
        source.write_text("".join(json.dumps({"n": n, "text": text}) + "\n" for n, text in records))
    else:
        buffer = io.StringIO(newline="")
        delimiter = "," if suffix == ".csv" else "\t"
        csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([("label", "text"), *records])
        source.write_bytes(buffer.getvalue().encode())
    table = Table(source, out)
    with source.open("rb") as stream:
        whole = table.written(list(table.texts(stream))).encode()
    again = Table(source, out)
    done, length = again.finished(io.BytesIO(whole[:cut]))
    assert length <= cut
    with source.open("rb") as stream:
        rest = list(again.texts(stream, done))[done:]
    assert whole[:length] + again.written(rest).encode() == whole


def test_half_a_line_is_no_line():
    assert RecordLines("x").finished([b"one\n", b'"two\n', b"thr"]) == (2, 9)


def test_records_wait_only_while_they_are_rewritten(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,text\n" + "a,b\n" * 5000)
    table = Table(path)
    with path.open("rb") as stream:
        for number, text in enumerate(table.texts(stream, 1000)):
            if number >= 1000:
                table.written([text])
            assert not table.waiting
