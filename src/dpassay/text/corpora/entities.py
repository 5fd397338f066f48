"""Which entities the texts of a corpus name: those stated in the corpus, those of a list, or those a detector finds.

No detector finds everything. Private training therefore treats a text without an entity as an entity of its own.
"""

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import Utterance

SPACY_MODEL = "en_core_web_sm"
SOURCES = "corpus, iob, list:FILE, spacy, spacy:MODEL, presidio or presidio:MODEL"

Detector = Callable[[str], Sequence[str]]


def with_entities(utterances: Sequence[Utterance], source: str = "corpus") -> list[Utterance]:
    """The utterances with entities from a source; `corpus` and `iob` keep those that were read from the file.

    >>> with_entities([Utterance("to rome"), Utterance("to oslo", entities=("oslo",))])[1].entities
    ('oslo',)
    """
    kind, _, name = source.partition(":")
    if kind in ("corpus", "iob") and not name:
        if not any(u.entities for u in utterances):
            raise InputError(
                "the corpus names no entities: give an entities column, IOB tags, or entities from a list or a "
                "detector (list:FILE, spacy, presidio)"
            )
        return list(utterances)
    if kind == "list" and name:
        find = listed(_lines(Path(name)))
    elif kind == "spacy":
        find = _spacy(name or SPACY_MODEL)
    elif kind == "presidio":
        find = _presidio(name)
    else:
        raise InputError(f"unknown source of entities {source!r}; there are {SOURCES}")
    return [replace(u, entities=tuple(dict.fromkeys(find(u.text)))) for u in utterances]


def listed(entities: Sequence[str]) -> Detector:
    """Finds the entities of a list as whole words, ignoring case; where several overlap, the longest.

    >>> listed(["York", "New York", "Rome"])("from new york to rome, romeo")
    ['new york', 'rome']
    """
    pattern = pattern_of(entities)
    return lambda text: [" ".join(found.lower().split()) for found in pattern.findall(text)]


def pattern_of(entities: Sequence[str]) -> re.Pattern[str]:
    """A pattern that matches the entities of a list as whole words, ignoring case; where several overlap, the longest.

    >>> pattern_of(["Rome"]).search("to rome, romeo").span()
    (3, 7)
    """
    names = sorted({" ".join(e.split()) for e in entities if e.strip()}, key=lambda e: (-len(e), e))
    if not names:
        raise InputError("the list of entities is empty: give one entity per line")
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(_spaced, names))})(?!\w)", re.IGNORECASE)


def _spaced(name: str) -> str:
    return r"\s+".join(map(re.escape, name.split()))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the list of entities cannot be read ({error}); give a UTF-8 file") from None


def _spacy(model: str) -> Detector:
    pipeline = _library("spacy", "pip install spacy, and python -m spacy download " + SPACY_MODEL)
    try:
        read = pipeline.load(model)
    except OSError as error:
        raise InputError(f"spaCy has no model {model!r} here: {error}"[:300]) from None
    return lambda text: [entity.text for entity in read(text).ents]


def _presidio(model: str) -> Detector:
    """Presidio with the given spaCy model, or with its default model, which it downloads if necessary."""
    library = _library("presidio_analyzer", "pip install presidio-analyzer")
    given = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": model}]}
    try:
        analyser = library.AnalyzerEngine(nlp_engine=_engine(given) if model else None)
    except (Exception, SystemExit) as error:  # spaCy exits the process if a download fails
        raise InputError(
            f"Presidio cannot start {f'with the spaCy model {model!r}' if model else 'with its default model'}: "
            f"{' '.join(str(error).split())[:200]}. Give a model that is installed, or its folder: presidio:MODEL"
        ) from None
    return lambda text: [text[found.start : found.end] for found in analyser.analyze(text=text, language="en")]


def _engine(given: dict[str, Any]) -> Any:
    provider = importlib.import_module("presidio_analyzer.nlp_engine").NlpEngineProvider
    return provider(nlp_configuration=given).create_engine()


def _library(name: str, how: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"entities from {name} need it installed: {how}") from None
