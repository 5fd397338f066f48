"""Users' own claims, one TOML file each: what a reviewer writes down from a paper. docs/own-claims.md."""

import re
import reprlib
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpassay.claims.claim import CAVEATS, Claim
from dpassay.core.neighbours import Neighbours
from dpassay.errors import ClaimFileError, DpassayError, InputError, did_you_mean

MOST_BYTES = 1_000_000
# How errors name options of the command line, and how a file writes the same.
WRITTEN = {"given as parameters": "among the parameters", "dim=N": "dim = N"}  # arguments, as in a file

Words = Annotated[str, Field(pattern=r"\S", description="a text")]
Whole = Annotated[int, Field(gt=0, description="a whole number above 0")]
Formula = Annotated[int | str, Field(description="a number, or a formula of the parameters as a text")]
Model = Literal["local", "central", "shuffle", "federated"]  # as the registry of deployments calls them
Word = Literal["proven", "refuted", "open"]
Caveat = Annotated[str, Field(pattern=f"^({'|'.join(CAVEATS)})$")]


class ClaimFile(BaseModel):
    """What a file may contain. Each description completes the sentence "KEY must be …, got …".

    No default is used: omitted keys are left to Claim.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    pipeline: Words
    epsilon: Formula = 0
    delta: Formula = 0
    metric: Words = ""
    order: Formula = 0
    rho: Formula = 0
    mu: Formula = 0
    dim: Whole = 1
    parameters: Annotated[dict[str, int | str], Field(description="a table of numbers")] = {}
    neighbours: Words = ""
    privacy_unit: Words = ""
    deployment_model: Annotated[Model, Field(description="one of local, central, shuffle, federated")] = "local"
    people: Whole = 1
    caveats: Annotated[list[Caveat], Field(description=f"a list of {', '.join(CAVEATS)}")] = []
    expected: Annotated[Word, Field(description="one of proven, refuted, open")] = "open"
    name: Words = ""
    title: Words = ""
    source: Words = ""
    brief: Words = ""
    why: Words = ""


def read_claim(path: str | Path) -> Claim:
    """Read a claim from a TOML file. Errors name the line.

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
    except (ValueError, RecursionError) as error:  # also integers of thousands of digits, and deeply nested lists
        at = re.search(r"at line (\d+)", str(error))
        raise ClaimFileError([(f"{file} is not TOML: {error}", str(file), int(at[1]) if at else 0)]) from None
    try:
        given = ClaimFile.model_validate(data).model_dump(exclude_unset=True)
    except ValidationError as error:
        keys = dict.fromkeys(str(wrong["loc"][0]) for wrong in error.errors(include_url=False, include_context=False))
        found = [(_complaint(file, text, data, key), str(file), _line(text, key)) for key in keys]
        raise ClaimFileError(sorted(found, key=lambda mistake: mistake[2])) from None
    fields: dict[str, Any] = {"name": file.stem, **given, "caveats": tuple(given.get("caveats", ()))}
    with _pointing(file, text, "neighbours"):
        fields["neighbours"] = Neighbours(given["neighbours"]) if "neighbours" in given else None
    with _pointing(file, text, "parameters"):
        claim = Claim(**fields)
    with _pointing(file, text, "epsilon"):
        _ = claim.guarantee
    with _pointing(file, text, "pipeline"):
        _ = claim.mechanism
    return claim


def read_folder(path: str | Path) -> list[Claim]:
    """All claims of a folder, by the names of their files; no two may have the same name.

    >>> read_folder("nowhere")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: nowhere is not a folder
    """
    return list(read_files(path).values())


def read_files(path: str | Path) -> dict[Path, Claim]:
    """The claims of a folder, each under its file."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise InputError(f"there is no .toml file in {folder}: each claim is one, see docs/own-claims.md")
    claims: dict[Path, Claim] = {}
    wrong: list[tuple[str, str, int]] = []
    for file in files:
        try:
            claim = read_claim(file)
        except ClaimFileError as error:
            wrong += error.mistakes
            continue
        if claim.name in (one.name for one in claims.values()):
            said = f"{file}: another file of this folder also has a claim named {claim.name!r}"
            wrong.append((said, str(file), _line(_text_of(file), "name")))
        claims[file] = claim
    if wrong:
        raise ClaimFileError(wrong)
    return claims


def line_of_claim(path: str | Path) -> int:
    """The line of a file that states what is claimed, to point at; 0 if there is none."""
    text = _text_of(Path(path))
    return next(filter(None, (_line(text, key) for key in ("epsilon", "rho", "mu", "pipeline"))), 0)


def _text_of(file: Path) -> str:
    said = ""
    try:
        if file.exists() and not file.is_file():
            said = f"cannot read {file}: it is not a file"
        elif file.stat().st_size > MOST_BYTES:
            said = f"{file} has more than {MOST_BYTES:,} bytes; a claim is at most a page"
        else:
            return file.read_text(encoding="utf-8")
    except OSError as error:
        said = f"cannot read {file}: {error.strerror or error}"
    except UnicodeDecodeError:
        said = f"{file} is not UTF-8 text"
    raise ClaimFileError([(said, str(file), 0)])


def _complaint(file: Path, text: str, data: dict[str, Any], key: str) -> str:
    """What is wrong with a key, where, and what is allowed."""
    known = ClaimFile.model_fields
    if key not in known:
        hint = did_you_mean(key, known) or ";"
        return f"{_place(file, text, key)}: unknown key {key!r}{hint} allowed: {', '.join(known)}"
    if key not in data:
        return f"{file} has no pipeline; every claim needs a pipeline and an epsilon (or rho, or mu)"
    return f"{_place(file, text, key)}: {key} must be {known[key].description}, got {reprlib.repr(data[key])}"


@contextmanager
def _pointing(file: Path, text: str, key: str) -> Iterator[None]:
    """Name the line of a key if its value is refused."""
    try:
        yield
    except DpassayError as error:
        said = str(error)
        for argument, here in WRITTEN.items():
            said = said.replace(argument, here)
        said = re.sub(r"parameters=\{'(\w+)': VALUE\}", r"parameters.\1 = VALUE", said)
        named = re.match(r"(\w+) must|among the (parameters)", said)  # an error that names its key is about that key
        about = named[1] or named[2] if named else key
        raise ClaimFileError([(f"{_place(file, text, about)}: {said}", str(file), _line(text, about))]) from None


def _place(file: Path, text: str, key: str) -> str:
    """The file and the line of a key."""
    return f"{file}, line {_line(text, key)}" if _line(text, key) else str(file)


def _line(text: str, key: str) -> int:
    """The line of a key, or 0; it is searched in the text because tomllib does not report it."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"\s*(?:\[\s*)?[\"']?{re.escape(key)}[\"']?\s*[=.\]]", line):
            return number
    return 0
