"""Hugging Face data sets: from the hub, by name, and from folders.

Nothing that is read is ever executed.
"""

import importlib
import re
import tempfile
from pathlib import Path
from typing import Any

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import COLUMNS, FileLine, Utterance, columns, made

HUB = "pip install 'dpassay[hub]'"
FIRST_WITHOUT_SCRIPTS = 4  # earlier versions of `datasets` may run a script shipped with the data
SETS = {  # short names; `columns` knows the columns of all of them
    "atis": "tuetschek/atis",
    "snips": "benayas/snips",
    "sst2": "stanfordnlp/sst2",
    "imdb": "stanfordnlp/imdb",
    "ag-news": "fancyzhx/ag_news",
}


def _library() -> Any:
    try:
        library = importlib.import_module("datasets")
    except ImportError:
        raise InputError(f"folders and hf:NAME are read with the `datasets` library: {HUB}") from None
    if int(library.__version__.split(".")[0]) < FIRST_WITHOUT_SCRIPTS:
        raise InputError(
            f"`datasets` {library.__version__} may run code shipped with the data; "
            f"version {FIRST_WITHOUT_SCRIPTS} or later is needed: {HUB}"
        )
    return library


def from_hub(source: str) -> list[Utterance]:
    """The utterances of `hf:NAME` or `hf:NAME:SPLIT`, or of a name in `SETS`, with or without :SPLIT."""
    short, _, split = source.partition(":")
    full = f"hf:{SETS[short]}:{split}" if short in SETS else source
    _, name, wanted, *_ = [*full.split(":", 2), ""]
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise InputError(f"{source}: write hf:NAME or hf:NAME:SPLIT, as in hf:someone/utterances:train")
    library = _library()
    try:
        found = library.load_dataset(name, split=wanted or None)
    except Exception as error:  # the library raises what its many parts raise
        raise InputError(
            f"{source}: the hub's data set cannot be read: {_first_line(error)}{_without_network(error)}"
        ) from error
    return _rows(found, source)


def from_folder(folder: Path) -> list[Utterance]:
    """The utterances of a folder with a data set, or with its files."""
    try:
        empty = not any(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); check its permissions") from None
    if empty:
        raise InputError(f"{folder}: the folder has no data in it; give a folder with data files, or a file")
    library = _library()
    saved = any((folder / name).exists() for name in ("state.json", "dataset_dict.json"))
    with tempfile.TemporaryDirectory() as cache:
        try:
            if saved:
                return _rows(library.load_from_disk(str(folder)), str(folder))
            return _rows(library.load_dataset(str(folder), cache_dir=cache), str(folder))
        except InputError:
            raise
        except Exception as error:  # the library raises what its many parts raise
            raise InputError(
                f"{folder}: the folder cannot be read ({_first_line(error)}); its files need a header with the same "
                "columns in each, or give one file of it"
            ) from error


def _without_network(error: Exception) -> str:
    """What to do if the hub cannot be reached."""
    offline = isinstance(error, ConnectionError | TimeoutError) or "Offline" in type(error).__name__
    return (
        ". The hub cannot be reached: without a network, give a file (.csv, .tsv, .jsonl, .iob or .txt) instead, or "
        "'flights', which needs none"
        if offline
        else ""
    )


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0]


def _rows(data: Any, source: str) -> list[Utterance]:
    """The rows of a data set; of several splits, the one called train."""
    if isinstance(data, dict):
        if "train" not in data and len(data) != 1:
            raise InputError(f"{source}: none of the splits {sorted(data)} is called train; write hf:NAME:SPLIT")
        data = data["train"] if "train" in data else next(iter(data.values()))
    named = columns(data.column_names)
    if "text" not in named:
        raise InputError(
            f"{source}: its columns are {data.column_names}, and one of {', '.join(COLUMNS['text'])} is needed"
        )
    found = []
    for number, row in enumerate(data.select_columns(list(named.values())), 1):
        fields = {role: _named(row[column], data.features[column]) for role, column in named.items()}
        found.append(made(fields, FileLine(source, number, "row")))
    return found


def _named(value: Any, feature: Any) -> Any:
    """A label's name where a data set stores numbers with names; -1 stands for no label."""
    names = getattr(feature, "names", None)
    if names is None or value is None:
        return value
    return names[value] if value >= 0 else ""
