"""Corpora of utterances, perhaps with labels, private attributes, speakers and entities: read, written and split.

Nothing that is read is ever executed. `read_corpus` reads back exactly what `write_corpus` wrote.
"""

import codecs
import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpassay.core.files import write_pieces
from dpassay.errors import InputError
from dpassay.text.corpora.hub import SETS, from_folder, from_hub
from dpassay.text.corpora.iob import read_iob
from dpassay.text.corpora.records import DELIMITERS, TABLES, entities_of, is_header, objects, rows
from dpassay.text.corpora.utterance import ROLES, FileLine, Utterance, columns, made

SHIPPED = ("flights", "bookings")
CONTROL = "dialects"  # a positive control, with its own words


def read_corpus(source: str | Path, user_column: str = "") -> list[Utterance]:
    """The utterances of a file, a folder, `hf:NAME` or `hf:NAME:SPLIT`, or from the shipped grammar.

    The names in `SETS`, such as `atis` and `atis:test`, stand for data sets on the hub, unless a folder has that name.

    The grammar generates `flights` or `flights:N`, and `bookings` or `bookings:N`: the same with passenger names.
    `dialects` or `dialects:N` is a control: short utterances whose words give away a private attribute.
    `user_column` names the user column of a .csv, .tsv or .jsonl file, if it is not called user, speaker or author.

    >>> len(read_corpus("flights:20"))
    20
    """
    if user_column and Path(source).suffix.lower() not in TABLES:
        raise InputError(f"a user column can be named for {', '.join(TABLES)} files, not for {source}")
    if isinstance(source, str) and source.partition(":")[0] in (*SHIPPED, CONTROL):
        return _shipped(source)
    path = Path(source)
    if path.is_dir():
        return _checked(from_folder(path), str(path))
    if isinstance(source, str) and (source.startswith("hf:") or source.partition(":")[0] in SETS):
        return _checked(from_hub(source), source)
    reader = READERS.get(path.suffix.lower())
    if reader is None and path.exists():
        raise InputError(f"{path}: cannot tell how to read {path.suffix!r} files; a corpus is {_allowed()}")
    if reader is None or not path.exists():
        names = ", ".join(("flights", *SETS))
        raise InputError(f"there is no corpus {str(source)!r}: give {_allowed()}, a folder, {names}, or hf:NAME")
    named = (user_column,) if user_column else ()
    return _checked(list(reader(_text_of(path), str(path), *named)), str(path))


def write_corpus(utterances: Sequence[Utterance], path: str | Path) -> None:
    """Write a corpus as `.csv` or `.tsv` (with a header) or `.jsonl`; or as `.txt`, only its texts, one per line.

    >>> import tempfile
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
            raise FileLine(str(path), number, "utterance").fail("the text is blank, and could not be read back")
    try:
        write_pieces(path, pieces_of(utterances, path, any(u.user or u.entities for u in utterances)))
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: the text has half a character in it ({error}), which no file can hold") from None


def pieces_of(utterances: Iterable[Utterance], path: Path, named: bool = True) -> Iterator[str]:
    """A corpus as it is written, piece by piece; `named` gives a table columns for users and entities.

    >>> list(pieces_of([Utterance("fly to rome", "flight", user="ann")], Path("a.tsv")))[1]
    '"flight"\\t"fly to rome"\\t""\\t"ann"\\t""\\n'
    """
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        return (json.dumps(_object(u), ensure_ascii=False) + "\n" for u in utterances)
    if suffix == ".txt":
        return (" ".join(u.text.split()) + "\n" for u in utterances)
    if suffix in DELIMITERS:
        return _table(utterances, DELIMITERS[suffix], named)
    raise InputError(f"{path}: a corpus is written as {', '.join(TABLES)} or .txt; give the file one of these endings")


def _table(utterances: Iterable[Utterance], delimiter: str, named: bool) -> Iterator[str]:
    buffer = io.StringIO(newline="")
    written = csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    yield delimiter.join(["label", "text", "attribute", *(["user", "entities"] if named else [])]) + "\n"
    for u in utterances:
        written.writerow((u.label, u.text, u.attribute, *((u.user, _in_one_field(u.entities)) if named else ())))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


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
    from dpassay.text.corpora.dialects import dialects
    from dpassay.text.corpora.flights import flights

    name, colon, number = source.partition(":")
    make = dialects if name == CONTROL else partial(flights, names=name == "bookings")
    if not colon:
        return make()
    if not re.fullmatch(r"[0-9]{1,9}", number):
        raise InputError(f"{source}: write {name}:N with a whole number N, as in {name}:5000")
    return _checked(make(int(number)), source)


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


def _text_of(path: Path) -> str:
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the name and its permissions") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileLine(str(path), line).fail(
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
    for place, found in objects(text.split("\n"), source):
        names = columns(list(found), user)
        if user and "user" not in names:
            raise place.fail(f"the object has no field {user!r} for the user; its fields are {list(found)}")
        if "text" not in names:
            raise place.fail(f"the object has no text; its fields are {list(found)}")
        yield made({role: found[name] for role, name in names.items()}, place)


def _read_csv(text: str, source: str, user: str = "", delimiter: str = ",") -> Iterator[Utterance]:
    """`label,text` on each line; or columns in the order of a header."""
    roles = ["label", "text"]
    known = {n: role for n, role in ROLES.items() if role != "user"} | {user.lower(): "user"} if user else ROLES
    for i, row in enumerate(rows(text.split("\n"), source, delimiter)):
        place, fields = row.place, row.fields
        header = [known.get(field.strip().lower(), "") for field in fields]
        if i == 0 and user and "user" not in header:
            raise place.fail(f"the header has no column {user!r} for the user; it is {','.join(fields)[:200]}")
        if i == 0 and is_header(header):
            roles = header
            continue
        if len(fields) == 1 and len(roles) == 2:
            raise place.fail(f"there is a label only, {fields[0]!r}; each line is {delimiter.join(roles)!r}")
        fields = row.fitted(len(roles), roles.index("text"))
        given = fields if row.quoted else [field.strip() for field in fields]
        named: dict[str, Any] = {role: field for role, field in zip(roles, given, strict=True) if role}
        if "entities" in named:
            named["entities"] = entities_of(named["entities"], place)
        yield made(named, place)


def _read_tsv(text: str, source: str, user: str = "") -> Iterator[Utterance]:
    return _read_csv(text, source, user, DELIMITERS[".tsv"])


READERS: dict[str, Callable[..., Iterator[Utterance]]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".iob": read_iob,
    ".conll": read_iob,
    ".bio": read_iob,
    ".txt": _read_txt,
}
