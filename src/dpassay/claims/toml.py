"""Claims of one's own, one TOML file each: what a reviewer writes down from a paper. docs/own-claims.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpassay.claims.claim import CAVEATS, Claim
from dpassay.core.neighbours import Neighbours
from dpassay.errors import DpassayError, InputError

MOST_BYTES = 1_000_000
_TEXT = ("name", "title", "pipeline", "neighbours", "source", "brief", "why", "expected")
_NUMBER = ("epsilon", "delta")
_WHOLE = ("dim", "people")
KEYS = (*_TEXT, *_NUMBER, *_WHOLE, "caveats", "parameters")
EXPECTED = ("proven", "refuted", "open")


def read_claim(path: str | Path) -> Claim:
    """Read a claim from a TOML file. What is wrong with it is an error that names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.toml")
    ...     lines = ['pipeline = "clip(l1, C) | laplace(2*C/eps)"', "epsilon = 1", "dim = 8", "parameters.C = 2"]
    ...     _ = file.write_text("\\n".join(lines))
    ...     print(read_claim(file).name, read_claim(file).mechanism)
    mine clip(l1, 2) | laplace(4)
    """
    file = Path(path)
    text = _text_of(file)
    try:
        data = tomllib.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:  # also whole numbers of thousands of digits, and lists in lists
        raise InputError(f"{file} is not TOML: {error}") from None
    for key, value in data.items():
        wrong = _wrong(key, value)
        if wrong:
            raise InputError(f"{_place(file, text, key)}: {wrong}")
    for key in ("pipeline", "epsilon"):
        if key not in data:
            raise InputError(f"{file} says no {key}; a claim needs at least pipeline and epsilon")
    fields: dict[str, Any] = {**data, "name": data.get("name", file.stem), "caveats": tuple(data.get("caveats", ()))}
    with _pointing(file, text, "neighbours"):
        fields["neighbours"] = Neighbours(data["neighbours"]) if "neighbours" in data else None
    with _pointing(file, text, "parameters"):
        claim = Claim(**fields)
    with _pointing(file, text, "epsilon"):
        _ = claim.guarantee
    with _pointing(file, text, "pipeline"):
        _ = claim.mechanism
    return claim


def read_folder(path: str | Path) -> list[Claim]:
    """All claims of a folder, by the names of their files; no two may have one name.

    >>> read_folder("nowhere")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: nowhere is no folder
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise InputError(f"there is no .toml file in {folder}: each claim is one, see docs/own-claims.md")
    claims: dict[str, Claim] = {}
    wrong = []
    for file in files:
        try:
            claim = read_claim(file)
        except InputError as error:
            wrong.append(str(error))
            continue
        if claim.name in claims:
            wrong.append(f"{file}: another file of this folder also has a claim named {claim.name!r}")
        claims[claim.name] = claim
    if wrong:
        raise InputError("\n".join(wrong))
    return list(claims.values())


def _text_of(file: Path) -> str:
    try:
        if file.exists() and not file.is_file():
            raise InputError(f"cannot read {file}: it is no file")
        if file.stat().st_size > MOST_BYTES:
            raise InputError(f"{file} has more than {MOST_BYTES:,} bytes; a claim is a page at most")
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text") from None


def _wrong(key: str, value: Any) -> str:
    """What is wrong with a key and its value; empty if nothing is."""
    if key not in KEYS:
        return f"unknown key {key!r}; allowed: {', '.join(KEYS)}"
    if key == "expected" and value not in EXPECTED:
        return f"expected must be one of {', '.join(EXPECTED)}, got {value!r}"
    if key in _TEXT and not (isinstance(value, str) and value.strip()):
        return f"{key} must be a text, got {value!r}"
    if key in _WHOLE and not (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return f"{key} must be a whole number above 0, got {value!r}"
    if key in _NUMBER and not _numeric(value):
        return f"{key} must be a number, or a formula of the parameters as a text, got {value!r}"
    if key == "caveats" and not (isinstance(value, list) and all(str(caveat) in CAVEATS for caveat in value)):
        return f"caveats must be a list of {', '.join(CAVEATS)}, got {value!r}"
    if key == "parameters" and not (isinstance(value, dict) and all(map(_numeric, value.values()))):
        return f"parameters must be a table of numbers, got {value!r}"
    return ""


def _numeric(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


@contextmanager
def _pointing(file: Path, text: str, key: str) -> Iterator[None]:
    """Name the line of a key if what it says is refused."""
    try:
        yield
    except DpassayError as error:
        named = "delta" if key == "epsilon" and str(error).startswith("delta") else key  # one guarantee has both
        said = str(error)
        for option, here in (
            ("given as parameters", "among the parameters"),
            ("dim=N", "dim = N"),
        ):
            said = said.replace(option, here)
        said = re.sub(r"parameters=\{'(\w+)': VALUE\}", r"parameters.\1 = VALUE", said)
        named = "parameters" if said.startswith("among the parameters") else named
        raise InputError(f"{_place(file, text, named)}: {said}") from None


def _place(file: Path, text: str, key: str) -> str:
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"\s*(?:\[\s*)?[\"']?{re.escape(key)}[\"']?\s*[=.\]]", line):
            return f"{file}, line {number}"
    return str(file)
