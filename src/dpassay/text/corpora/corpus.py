"""Corpora of utterances, perhaps with labels, private attributes, speakers and entities: read, written and split.

Nothing that is read is ever executed. `read_corpus` reads back exactly what `write_corpus` wrote.
"""

import codecs
import csv
import importlib
import io
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from dpassay.core.files import write_whole
from dpassay.errors import InputError
from dpassay.text.corpora.iob import read_iob
from dpassay.text.corpora.utterance import COLUMNS, ROLES, Place, Utterance, columns, made

SHIPPED = ("flights", "bookings")
NAMED_COLUMNS = (".csv", ".jsonl")  # files whose columns can be named
HUB = "pip install 'dpassay[hub]'"
FIRST_WITHOUT_SCRIPTS = 4  # earlier versions of `datasets` may run a script shipped with the data


def read_corpus(source: str | Path, user_column: str = "") -> list[Utterance]:
    """The utterances of a file, a folder, `hf:NAME` or `hf:NAME:SPLIT`, or of the shipped grammar.

    The grammar gives `flights` or `flights:N`, and `bookings` or `bookings:N`: the same with names of passengers.
    `user_column` names the column of users of a .csv or .jsonl file, if it is not called user, speaker or author.

    >>> len(read_corpus("flights:20"))
    20
    """
    if user_column and Path(source).suffix.lower() not in NAMED_COLUMNS:
        raise InputError(f"a user column can be named for {' and '.join(NAMED_COLUMNS)} files, not for {source}")
    if isinstance(source, str) and source.partition(":")[0] in SHIPPED:
        return _shipped(source)
    if isinstance(source, str) and source.startswith("hf:"):
        return _checked(_from_hub(source), source)
    path = Path(source)
    if path.is_dir():
        return _checked(_from_folder(path), str(path))
    reader = READERS.get(path.suffix.lower())
    if reader is None and path.exists():
        raise InputError(f"{path}: cannot tell how to read {path.suffix!r} files; a corpus is {_allowed()}")
    if reader is None or not path.exists():
        raise InputError(f"there is no corpus {str(source)!r}: give {_allowed()}, a folder, flights, or hf:NAME")
    named = (user_column,) if user_column else ()
    return _checked(list(reader(_text_of(path), str(path), *named)), str(path))


def write_corpus(utterances: Sequence[Utterance], path: str | Path) -> None:
    """Write a corpus as `.csv` (with a header) or `.jsonl`; or as `.txt`, its texts alone, one per line.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_corpus([Utterance("fly to rome", "flight"), Utterance("what, again")], Path(folder, "a.csv"))
    ...     print(Path(folder, "a.csv").read_text())
    label,text,attribute
    "flight","fly to rome",""
    "","what, again",""
    """
    path = Path(path)
    for number, utterance in enumerate(_checked(utterances, str(path)), 1):
        if not utterance.text.strip():
            raise Place(str(path), number, "utterance").fail("the text is blank, and could not be read back")
    if path.suffix.lower() == ".jsonl":
        content = "".join(json.dumps(_object(u), ensure_ascii=False) + "\n" for u in utterances)
    elif path.suffix.lower() == ".csv":
        named = any(u.user or u.entities for u in utterances)
        buffer = io.StringIO(newline="")
        rows = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for u in utterances:
            rows.writerow((u.label, u.text, u.attribute, *((u.user, _in_one_field(u.entities)) if named else ())))
        content = "label,text,attribute" + ",user,entities" * named + "\n" + buffer.getvalue()
    elif path.suffix.lower() == ".txt":
        content = "".join(" ".join(u.text.split()) + "\n" for u in utterances)
    else:
        raise InputError(f"{path}: a corpus is written as .csv, .jsonl or .txt; give the file one of these endings")
    try:
        write_whole(path, content)
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: the text has half a character in it ({error}), which no file can hold") from None


def split(
    utterances: Sequence[Utterance], seed: int, shares: Sequence[float] = (0.8, 0.1, 0.1)
) -> tuple[list[Utterance], ...]:
    """Shuffle and divide a corpus, the same way each time for the same seed.

    >>> [len(part) for part in split([Utterance(str(i)) for i in range(20)], seed=1)]
    [16, 2, 2]
    """
    if not shares or not all(share > 0 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise InputError(f"shares must be above 0 and sum to 1, got {tuple(shares)}")
    rng = random.Random(f"dpassay split {seed}")
    shuffled = [u for _, _, u in sorted((rng.random(), i, u) for i, u in enumerate(utterances))]
    ends = [0, *(round(sum(shares[:i]) * len(shuffled)) for i in range(1, len(shares))), len(shuffled)]
    parts = tuple(shuffled[start:end] for start, end in pairwise(ends))
    if not all(parts):
        raise InputError(f"{len(shuffled)} utterances are too few for the shares {tuple(shares)}: one would be empty")
    return parts


def _allowed() -> str:
    return f"a file ending in {', '.join(READERS)}"


def _checked(utterances: Sequence[Utterance], source: str) -> list[Utterance]:
    if len(utterances) < 2:
        raise InputError(f"{source}: a corpus needs at least 2 utterances, got {len(utterances)}; give more of them")
    return list(utterances)


def _shipped(source: str) -> list[Utterance]:
    from dpassay.text.corpora.flights import flights

    name, colon, number = source.partition(":")
    if not colon:
        return flights(names=name == "bookings")
    if not re.fullmatch(r"[0-9]{1,9}", number):
        raise InputError(f"{source}: write {name}:N with a whole number N, as in {name}:5000")
    return _checked(flights(int(number), names=name == "bookings"), source)


def _object(utterance: Utterance) -> dict[str, Any]:
    """The fields of a JSON line; a user and entities only where there are some."""
    return {name: value for name, value in asdict(utterance).items() if value or name not in ("user", "entities")}


def _in_one_field(entities: Sequence[str]) -> str:
    """Entities in one field of a CSV file, separated by bars; as a JSON list where that could not be read back.

    >>> _in_one_field(["rome", "new york"]), _in_one_field(["a|b"])
    ('rome|new york', '["a|b"]')
    """
    plain = all(entity == entity.strip() and "|" not in entity and not entity.startswith("[") for entity in entities)
    return "|".join(entities) if plain else json.dumps(list(entities), ensure_ascii=False)


def _from_one_field(field: str, place: Place) -> list[Any]:
    if not field.startswith("["):
        return [entity.strip() for entity in field.split("|") if entity.strip()]
    try:
        found = json.loads(field)
    except (ValueError, RecursionError) as error:
        raise place.fail(f"the entities are not a JSON list ({error}); write them as rome|new york") from None
    return found if isinstance(found, list) else [found]


def _text_of(path: Path) -> str:
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the name and its permissions") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Place(str(path), line).fail(
            f"the byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None
    if not text.strip():
        raise InputError(f"{path}: the file is empty; a corpus needs at least 2 utterances")
    return text


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank. Lines end at newlines only, not at other Unicode line breaks."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.removesuffix("\r")


# --- files ---


def _read_txt(text: str, source: str) -> Iterator[Utterance]:
    return (Utterance(line.strip()) for _, line in _lines(text))


def _read_jsonl(text: str, source: str, user: str = "") -> Iterator[Utterance]:
    for number, line in _lines(text):
        place = Place(source, number)
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise place.fail(f"this is not JSON ({error}); each line must be one object") from None
        if not isinstance(found, dict):
            raise place.fail(f"an object such as {{'text': '...'}} is needed, got {found!r:.60}")
        names = columns(list(found), user)
        if user and "user" not in names:
            raise place.fail(f"the object has no field {user!r} for the user; its fields are {list(found)}")
        if "text" not in names:
            raise place.fail(f"the object has no text; its fields are {list(found)}")
        yield made({role: found[name] for role, name in names.items()}, place)


def _read_csv(text: str, source: str, user: str = "") -> Iterator[Utterance]:
    """`label,text` on each line; or columns in the order of a header."""
    roles = ["label", "text"]
    known = {n: role for n, role in ROLES.items() if role != "user"} | {user.lower(): "user"} if user else ROLES
    for i, (place, fields, quoted) in enumerate(_records(text, source)):
        header = [known.get(field.strip().lower(), "") for field in fields]
        if i == 0 and user and "user" not in header:
            raise place.fail(f"the header has no column {user!r} for the user; it is {','.join(fields)[:200]}")
        if i == 0 and _is_header(header):
            roles = header
            continue
        at, extra = roles.index("text"), len(fields) - len(roles)
        if extra > 0 and not quoted:  # unquoted commas belong to the text
            fields[at : at + extra + 1] = [",".join(fields[at : at + extra + 1])]
        if len(fields) == 1 and len(roles) == 2:
            raise place.fail(f"there is a label only, {fields[0]!r}; each line is {','.join(roles)}")
        if len(fields) != len(roles):
            raise place.fail(
                f"{len(fields)} fields, but {len(roles)} are needed; put a field with commas in double quotes"
            )
        given = fields if quoted else [field.strip() for field in fields]
        named: dict[str, Any] = {role: field for role, field in zip(roles, given, strict=True) if role}
        if "entities" in named:
            named["entities"] = _from_one_field(named["entities"], place)
        yield made(named, place)


def _is_header(roles: Sequence[str]) -> bool:
    others = [role for role in roles if role and role != "text"]
    return roles.count("text") == 1 and len(set(others)) == len(others) and (bool(others) or len(roles) == 1)


def _records(text: str, source: str) -> Iterator[tuple[Place, list[str], bool]]:
    """Each record's place and fields, and whether any was quoted; a quoted field may span several lines."""
    lines = enumerate(text.split("\n"), 1)
    for number, line in lines:
        place = Place(source, number)
        if not line.strip():
            continue
        if not re.search(r'(^|,)"', line):
            yield place, line.removesuffix("\r").split(","), False
            continue
        whole = chain([line + "\n"], (more + "\n" for _, more in lines))
        try:
            yield place, next(csv.reader(whole, strict=True)), True
        except csv.Error as error:
            raise place.fail(f"the quotes cannot be read ({error}); write a quote inside quotes twice") from None


READERS: dict[str, Callable[..., Iterator[Utterance]]] = {
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".iob": read_iob,
    ".conll": read_iob,
    ".bio": read_iob,
    ".txt": _read_txt,
}


# --- the Hugging Face library ---


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


def _from_hub(source: str) -> list[Utterance]:
    _, name, wanted, *_ = [*source.split(":", 2), ""]
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise InputError(f"{source}: write hf:NAME or hf:NAME:SPLIT, as in hf:someone/utterances:train")
    library = _library()
    try:
        found = library.load_dataset(name, split=wanted or None)
    except Exception as error:  # the library raises what its many parts raise
        raise InputError(f"{source}: the hub's data set cannot be read: {_first_line(error)}") from error
    return _rows(found, source)


def _from_folder(folder: Path) -> list[Utterance]:
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
        found.append(made(fields, Place(source, number, "row")))
    return found


def _named(value: Any, feature: Any) -> Any:
    """A label's name where a data set stores numbers with names; -1 stands for no label."""
    names = getattr(feature, "names", None)
    if names is None or value is None:
        return value
    return names[value] if value >= 0 else ""
