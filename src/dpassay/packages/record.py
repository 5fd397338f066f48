"""A mechanism of a released package: the release, the claim, the subject that runs it, and what its code does."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dpassay.core.numbers import digits, middle
from dpassay.errors import InputError
from dpassay.pipeline.parser import evaluate

FOLDER = Path(__file__).parent / "records"
MOST_BYTES = 100_000

Words = Annotated[str, Field(pattern=r"\S")]
Formula = int | float | str


class Record(BaseModel):
    """The contents of a file in `records/`. The name of a record is the name of its file.

    `formula` is the law that the code at `at` draws from, as a pipeline; `chances` are the exact probabilities of
    `event` for the two inputs of the pair. Each is exact evidence. `subject` defines `mechanism(x)`, which is run, and
    may define `chances()`, which computes the two probabilities from the package's contents.

    >>> record = Record(name="coin", package="coin", version="1.0", mechanism="toss", epsilon=1, pair=[0, 1],
    ...     neighbours="any two bits", source="its README", why="it shows the bit", chances=[1, 0], event="it is 0")
    >>> record.requirements
    ['coin==1.0']
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.]*$")]
    pins: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+]*$")]] = []
    mechanism: Words
    epsilon: Formula | None = None
    delta: Formula = 0
    order: Formula | None = None
    rho: Formula | None = None
    pair: Annotated[list[Any], Field(min_length=2, max_length=2)]
    neighbours: Words
    source: Words
    why: Words
    known: str = ""
    fix: str = ""
    subject: str = ""
    runs: Annotated[int, Field(ge=100, le=10_000_000)] = 20_000
    not_run: str = ""
    formula: str = ""
    dim: int | None = None
    chances: Annotated[list[Formula], Field(min_length=2, max_length=2)] | None = None
    event: str = ""
    at: str = ""

    @model_validator(mode="after")
    def _has_evidence(self) -> Record:
        if not (self.subject or self.formula or self.chances):
            raise ValueError("needs a subject, a formula or chances")
        if self.chances and not self.event:
            raise ValueError("chances needs event: what they are the chances of")
        if self.formula and not self.at:
            raise ValueError("formula needs at: the file and line of the code it was read from")
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("needs epsilon or rho, one of them")
        if not (self.order is None and self.rho is None) and self.subject:
            raise ValueError("order and rho state guarantees that runs cannot refute: leave subject out")
        return self

    @property
    def read_from_code(self) -> bool:
        """Whether the formula was read from the code: compiled code can only be judged by its documentation."""
        return not self.at.startswith("not the code")

    @property
    def release(self) -> str:
        """The package and its version, as pip names them."""
        return f"{self.package}=={self.version}"

    @property
    def requirements(self) -> list[str]:
        """What pip installs."""
        return [self.release, *self.pins]

    @property
    def claimed(self) -> str:
        """The guarantee in short form."""
        if self.rho is not None:
            return f"ρ {self.rho}"
        more = f", δ {self.delta}" if self.delta else "" if self.order is None else f", order {self.order}"
        return f"{middle(evaluate(str(self.epsilon), {})):.5g}{more}"

    @property
    def statement(self) -> dict[str, Any]:
        """The guarantee as `check` and `audit` take it."""
        more = {"delta": str(self.delta)} if self.delta else {}
        written = re.fullmatch(r"[\d.]+(e-?\d+)?", str(self.epsilon))
        return {"epsilon": written[0] if written else digits(evaluate(str(self.epsilon), {}))[1], **more}

    @cached_property
    def digest(self) -> str:
        """A digest of everything that a verdict depends on: a finding with another digest is about something else."""
        left_out = {"source", "why", "known", "fix", "neighbours", "at", "not_run", "mechanism"}
        said = json.dumps(self.model_dump(exclude=left_out, exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def read_record(path: Path) -> Record:
    """The record in a file; errors are one sentence for each key.

    >>> read_record(FOLDER / "nothing.toml")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: cannot read ...nothing.toml: No such file or directory
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes; a record is at most a page")
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    try:
        return Record(**{"name": path.stem, **data})
    except ValidationError as error:
        wrong = [f"{path}: {'.'.join(map(str, one['loc'])) or 'record'}: {one['msg']}" for one in error.errors()]
        raise InputError("\n".join(wrong)) from None


def read_records(folder: Path = FOLDER) -> dict[str, Record]:
    """All records of a folder by name."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    records = [read_record(path) for path in sorted(folder.glob("*.toml"), key=_by_version)]
    if not records:
        raise InputError(f"there is no .toml file in {folder}: each record of a mechanism is one, see docs/packages.md")
    return {record.name: record for record in records}


def _by_version(path: Path) -> list[Any]:
    """Names in order, with the numbers in them as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", path.stem)]
