"""Records of .csv, .tsv and .jsonl files, read one after another, and written again with one column rewritten.

A record waits while its text is rewritten. All its other columns are written as they were read.
"""

import codecs
import csv
import hashlib
import io
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from dpassay.errors import InputError
from dpassay.text.corpora.utterance import COLUMNS, ROLES, FileLine, columns, whose

DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLES = (*DELIMITERS, ".jsonl")
NAMES = {",": "commas", "\t": "tabs"}


@dataclass(frozen=True, slots=True)
class RecordRow:
    """The fields of a row, where it begins, and whether any of them was quoted."""

    place: FileLine
    fields: list[str]
    quoted: bool
    delimiter: str = ","

    def fitted(self, width: int, at: int) -> list[str]:
        """As many fields as there are columns: commas that are not quoted belong to the text, which is at `at`."""
        fields, extra = list(self.fields), len(self.fields) - width
        if extra > 0 and not self.quoted and self.delimiter == ",":
            fields[at : at + extra + 1] = [",".join(fields[at : at + extra + 1])]
        if len(fields) != width:
            separated = NAMES[self.delimiter]
            raise self.place.fail(
                f"{len(fields)} fields, but {width} are needed; put a field with {separated} in double quotes"
            )
        return fields


def rows(lines: Iterable[str], source: str, delimiter: str = ",") -> Iterator[RecordRow]:
    r"""The rows of a table, from lines without their line feeds; a quoted field may span several of them.

    >>> [row.fields for row in rows(["a,b", "", 'c,"d', 'e"'], "x.csv")]
    [['a', 'b'], ['c', 'd\ne']]
    """
    numbered = enumerate(lines, 1)
    quote = re.compile(rf'(^|{delimiter})"')
    for number, line in numbered:
        place = FileLine(source, number)
        if not line.strip():
            continue
        if not quote.search(line):
            yield RecordRow(place, line.removesuffix("\r").split(delimiter), False, delimiter)
            continue
        whole = chain([line + "\n"], (more + "\n" for _, more in numbered))
        try:
            yield RecordRow(place, next(csv.reader(whole, delimiter=delimiter, strict=True)), True, delimiter)
        except csv.Error as error:
            raise place.fail(f"the quotes cannot be read ({error}); write a quote inside quotes twice") from None


def objects(lines: Iterable[str], source: str) -> Iterator[tuple[FileLine, dict[str, Any]]]:
    """The objects of JSON lines, with their places; blank lines are skipped."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = FileLine(source, number)
        yield place, object_of(line, place)


def object_of(line: str, place: FileLine) -> dict[str, Any]:
    """The object of one line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise place.fail(f"this is not JSON ({error}); each line must be one object") from None
    if not isinstance(found, dict):
        raise place.fail(f"an object such as {{'text': '...'}} is needed, got {found!r:.60}")
    return found


def entities_of(field: str, place: FileLine) -> list[Any]:
    """The entities in one field of a table: separated by bars, or a JSON list.

    >>> entities_of("rome|new york", FileLine("x.csv", 1)), entities_of('["a|b"]', FileLine("x.csv", 1))
    (['rome', 'new york'], ['a|b'])
    """
    if not field.startswith("["):
        return [entity.strip() for entity in field.split("|") if entity.strip()]
    try:
        found = json.loads(field)
    except (ValueError, RecursionError) as error:
        raise place.fail(f"the entities are not a JSON list ({error}); write them as rome|new york") from None
    return found if isinstance(found, list) else [found]


def is_header(roles: Sequence[str]) -> bool:
    """Whether a first row with columns of these roles ("" for none) is a header.

    >>> is_header(["", "text", "label"]), is_header(["", "text"])
    (True, False)
    """
    others = [role for role in roles if role and role != "text"]
    return roles.count("text") == 1 and len(set(others)) == len(others) and (bool(others) or len(roles) == 1)


@dataclass(frozen=True, slots=True)
class AuthorLimit:
    """The most records of one author that are used. Column "" is the first that names an author: user, user_id, …

    >>> AuthorLimit(0)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: --per-author must be a whole number from 1 to 1,000,000,000, got 0
    """

    most: int
    column: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 10**9:
            raise InputError(f"--per-author must be a whole number from 1 to 1,000,000,000, got {self.most}")

    def of(self, record: "_CorpusRecord") -> str:
        """Who the author of a record is; names that differ in their type or encoding alone are the same."""
        name = self.column or columns(record.names).get("user", COLUMNS["user"][0])
        if name not in record.names:
            known = f"the columns are {', '.join(record.names)}"
            raise record.place.fail(
                f"--per-author needs to know whose text this is, and there is no column {name!r}; {known}; see --author"
            )
        author = record.fields[record.names.index(name)]
        if isinstance(author, bool) or not isinstance(author, str | int) or not str(author).strip():
            raise record.place.fail(f"the author, {name!r}, must be a name or a number, got {author!r:.60}")
        return whose(str(author))


class RecordLines:
    """Plain lines, each of them a text."""

    unit = "lines"

    def __init__(self, source: str) -> None:
        self.source = source

    def texts(self, stream: Iterable[bytes], done: int = 0) -> Iterator[str]:
        """All texts, in order. The first `done` of them have been written already, and do not wait for `written`."""
        from dpassay.text.rewriters.rewriting import lines_of

        return lines_of(stream, self.source)

    def written(self, texts: Sequence[str]) -> str:
        """The next records, with their texts replaced by these."""
        return "".join(f"{text}\n" for text in texts)

    def finished(self, output: Iterable[bytes]) -> tuple[int, int]:
        """How many records a partly written file holds, and its length without the incomplete last record."""
        number = whole = 0
        for line in output:
            if line.endswith(b"\n"):
                number, whole = number + 1, whole + len(line)
        return number, whole


class Table:
    """A table whose column `column` is rewritten; "" stands for the one `read_corpus` would read.

    `header` holds the column names that the output begins with, and is empty if it has no header. `rewritten` is the
    name of the rewritten column, and `named` tells whether the input itself names its columns. With `skip_invalid`,
    records that have no usable text are left out, and counted in `skipped`. With `authors`, so are records of an author
    beyond those that may be rewritten; they are counted in `beyond`.
    """

    unit = "records"

    def __init__(
        self,
        source: Path,
        out: Path | None = None,
        column: str = "",
        skip_invalid: bool = False,
        authors: "AuthorLimit | None" = None,
    ) -> None:
        self.source, self.column, self.skip_invalid, self.skipped = str(source), column, skip_invalid, 0
        self.authors, self.beyond = authors, 0
        self.kind = source.suffix.lower()
        self.to = self.kind if out is None else out.suffix.lower()
        self._read_authors = hashlib.sha256()
        self.begun, self.header = False, tuple[str, ...]()
        self.waiting: deque[_CorpusRecord] = deque()
        self.named = self.kind == ".jsonl"
        with source.open("rb") as stream:
            first = next(self._records(stream), None)
        known = () if first is None else first.names
        self.rewritten = column or ("text" if first is None else known[first.at])
        if self.kind == ".jsonl" != self.to:
            self.header = known
        if self.to != self.kind and len(set(known)) < len(known):
            raise InputError(f"{source}: two columns have the same name; write it as {self.kind} again, or rename one")

    def texts(self, stream: Iterable[bytes], done: int = 0) -> Iterator[str]:
        self.skipped = 0
        for number, record in enumerate(self._within_limit(self._records(stream))):
            if number >= done:
                self.waiting.append(record)
            yield record.text

    def _within_limit(self, records: "Iterable[_CorpusRecord]") -> "Iterator[_CorpusRecord]":
        """The first records of each author; who the author is decides alone which ones, not what they say."""
        if self.authors is None:
            yield from records
            return
        self.beyond, seen = 0, Counter[str]()
        self._read_authors = hashlib.sha256()
        for record in records:
            author = self.authors.of(record)
            seen[author] += 1
            if seen[author] > self.authors.most:
                self.beyond += 1
                continue
            self._read_authors.update(repr(author).encode("utf-8", "surrogatepass"))
            yield record

    def authors_digest(self) -> str:
        """A digest of the authors of the records read so far: a rewriting is continued only for the same ones."""
        return self._read_authors.hexdigest() if self.authors is not None else ""

    def written(self, texts: Sequence[str]) -> str:
        records = [(self.waiting.popleft(), text) for text in texts]
        if self.to == ".jsonl":
            return "".join(json.dumps(record.with_text(text), ensure_ascii=False) + "\n" for record, text in records)
        buffer = io.StringIO(newline="")
        options: Any = {"delimiter": DELIMITERS[self.to], "lineterminator": "\n"}
        if self.header and not self.begun:
            csv.writer(buffer, **options).writerow(self.header)
        self.begun = True
        writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, **options)
        for record, text in records:
            if self.kind == ".jsonl":
                found = record.with_text(text)
                writer.writerow([_cell(found[name]) for name in self.header])
            else:
                writer.writerow(record.fields_with(text))
        return buffer.getvalue()

    def finished(self, output: Iterable[bytes]) -> tuple[int, int]:
        """The same as for lines; a record ends at a line feed outside quotes, and the header is no record."""
        number = whole = length = quotes = 0
        for line in output:
            length, quotes = length + len(line), quotes + (0 if self.to == ".jsonl" else line.count(b'"'))
            if line.endswith(b"\n") and quotes % 2 == 0:
                number, whole, length, quotes = number + 1, whole + length, 0, 0
        self.begun = number > 0
        return max(0, number - bool(self.header)), whole

    def _records(self, stream: Iterable[bytes]) -> "Iterator[_CorpusRecord]":
        lines = _decoded(stream, self.source)
        return self._of_objects(lines) if self.kind == ".jsonl" else self._of_rows(lines)

    def _of_objects(self, lines: Iterable[str]) -> "Iterator[_CorpusRecord]":
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = self._of_object(line, FileLine(self.source, number))
                if self.authors is not None:
                    self.authors.of(record)
            except InputError:
                if not self.skip_invalid:
                    raise
                self.skipped += 1
                continue
            yield record

    def _of_object(self, line: str, place: FileLine) -> "_CorpusRecord":
        found = object_of(line, place)
        name = self.column or columns(list(found)).get("text", "text")
        if name not in found:
            fields = f"its fields are {list(found)}"
            raise place.fail(f"the object has no field {name!r}; {fields}; see --column, or add --skip-invalid")
        if not isinstance(found[name], str):
            got = f"the field {name!r} must be text, got {found[name]!r:.60}"
            raise place.fail(f"{got}; to leave out such records, add --skip-invalid")
        if _has_half_characters(found):
            raise place.fail("there is half a character in it (a lone surrogate); write the character in full")
        if self.header and found.keys() != set(self.header):
            raise place.fail(
                f"its fields are {list(found)}, but those of the first object are {list(self.header)}; a table "
                "needs the same ones in each: write .jsonl instead"
            )
        return _CorpusRecord(place, tuple(found), list(found.values()), list(found).index(name))

    def _of_rows(self, lines: Iterable[str]) -> "Iterator[_CorpusRecord]":
        names: tuple[str, ...] = ("label", "text")
        at = 1
        for number, row in enumerate(rows(lines, self.source, DELIMITERS[self.kind])):
            found = self._text_column(row) if number == 0 else None
            if found is not None:
                names, at = tuple(field.strip() for field in row.fields), found
                self.named = True
                self.header = names if self.to != ".jsonl" else ()
                continue
            fields: list[Any] = list(row.fitted(len(names), at))
            if not row.quoted:
                fields[at] = fields[at].strip()
            for i, name in enumerate(names):
                if self.to == ".jsonl" and ROLES.get(name.lower()) == "entities" and i != at:
                    fields[i] = entities_of(fields[i], row.place)  # a list in the output
            yield _CorpusRecord(row.place, names, fields, at)

    def _text_column(self, row: RecordRow) -> int | None:
        """Where the texts are if this first row is a header; None if it is a record."""
        names = [field.strip() for field in row.fields]
        if self.column:
            if names.count(self.column) != 1:
                raise row.place.fail(
                    f"the header must have one column {self.column!r}; it is {','.join(names)[:200]}; see --column"
                )
            return names.index(self.column)
        roles = [ROLES.get(name.lower(), "") for name in names]
        if is_header(roles):
            return roles.index("text")
        if any(roles):
            raise row.place.fail(
                f"{','.join(names)[:200]} may be a header or a record: if it is a header, say which column has the "
                f"texts, as in --column {COLUMNS['text'][0]}; if not, put the header label,text in front"
            )
        return None


@dataclass(frozen=True, slots=True)
class _CorpusRecord:
    place: FileLine
    names: tuple[str, ...]
    fields: list[Any]
    at: int

    @property
    def text(self) -> str:
        return str(self.fields[self.at])

    def fields_with(self, text: str) -> list[Any]:
        return [*self.fields[: self.at], text, *self.fields[self.at + 1 :]]

    def with_text(self, text: str) -> dict[str, Any]:
        return dict(zip(self.names, self.fields_with(text), strict=True))


def _cell(value: Any) -> str:
    """A field of a JSON object as it is written in a table.

    >>> _cell("a"), _cell(None), _cell(1.5), _cell(["rome"])
    ('a', '', '1.5', '["rome"]')
    """
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _has_half_characters(found: dict[str, Any]) -> bool:
    written = json.dumps(found, ensure_ascii=False)
    return not written.isascii() and re.search("[\ud800-\udfff]", written) is not None


def _decoded(stream: Iterable[bytes], source: str) -> Iterator[str]:
    """Lines without their line feeds, split only there."""
    for number, line in enumerate(stream, 1):
        try:
            yield (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise FileLine(source, number).fail(
                f"byte {error.start + 1} is not UTF-8; convert the file, for example with iconv"
            ) from None
