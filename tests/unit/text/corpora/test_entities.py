"""Entities from a corpus, a list, or a detector."""

import sys
from types import SimpleNamespace

import pytest

from dpassay.errors import InputError
from dpassay.text.corpora.entities import listed, with_entities
from dpassay.text.corpora.utterance import Utterance

SAID = [Utterance("From New York to Rome"), Utterance("romeo, please")]


def test_a_list_finds_whole_words_in_any_case(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("rome\n\nnew  york\nYork\n", encoding="utf-8")
    assert [u.entities for u in with_entities(SAID, f"list:{names}")] == [("new york", "rome"), ()]


def test_an_entity_counts_once_and_may_have_odd_characters():
    assert listed(["a.b (c)"])("x a.b (c) y A.B  (C)") == ["a.b (c)", "a.b (c)"]


def test_detectors_are_asked_for_each_text(monkeypatch):
    def read(text):
        return SimpleNamespace(ents=[SimpleNamespace(text=word) for word in text.split() if word.istitle()])

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda model: read))
    assert [u.entities for u in with_entities(SAID, "spacy")] == [("From", "New", "York", "Rome"), ()]
    engine = SimpleNamespace(analyze=lambda text, language: [SimpleNamespace(start=0, end=4)])
    monkeypatch.setitem(sys.modules, "presidio_analyzer", SimpleNamespace(AnalyzerEngine=lambda nlp_engine: engine))
    assert [u.entities for u in with_entities(SAID, "presidio")] == [("From",), ("rome",)]


@pytest.mark.parametrize("ended", [OSError("no host"), SystemExit(1)])
def test_a_detector_that_cannot_fetch_its_model_says_what_to_give(ended, monkeypatch):
    def starts(nlp_engine):
        raise ended

    monkeypatch.setitem(sys.modules, "presidio_analyzer", SimpleNamespace(AnalyzerEngine=starts))
    with pytest.raises(InputError, match=r"cannot start with its default model.*presidio:MODEL"):
        with_entities(SAID, "presidio")


@pytest.fixture(scope="module")
def ruler(tmp_path_factory):
    """A real spaCy model without weights: it knows one town by rule."""
    spacy = pytest.importorskip("spacy", reason="a detector of one's own choice: pip install spacy presidio-analyzer")
    model, folder = spacy.blank("en"), tmp_path_factory.mktemp("ruler")
    town = [{"LOWER": "new"}, {"LOWER": "york"}]
    model.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": town}])
    model.to_disk(folder)
    return folder


def test_real_spacy_finds_what_its_model_knows(ruler):
    assert [u.entities for u in with_entities(SAID, f"spacy:{ruler}")] == [("New York",), ()]


def test_real_presidio_takes_the_same_model(ruler):
    pytest.importorskip("presidio_analyzer", reason="pip install presidio-analyzer")
    said = [Utterance("from New York"), Utterance("call 212-555-0199")]
    assert [u.entities for u in with_entities(said, f"presidio:{ruler}")] == [("New York",), ("212-555-0199",)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("corpus", "the corpus names no entities"),
        ("iob", "the corpus names no entities"),
        ("list:", "unknown source of entities 'list:'; there are corpus, iob"),
        ("list:/no/such", "cannot be read"),
        ("guess", "unknown source of entities 'guess'"),
        ("spacy", "entities from spacy need it installed: pip install spacy"),
        ("presidio", "entities from presidio_analyzer need it installed"),
    ],
)
def test_what_gives_no_entities_is_refused(source, message, monkeypatch):
    for name in ("spacy", "presidio_analyzer"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=message):
        with_entities(SAID, source)
