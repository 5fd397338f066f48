"""Records in JSON files, read strictly: nothing unknown, missing or duplicated. Reading one runs nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dpassay.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    Model = TypeVar("Model", bound=BaseModel)

LARGEST_FILE = 200_000_000  # bytes


def read_json(path: Path, what: str, largest: int = LARGEST_FILE) -> Any:
    """The data in a file, which is `what`, such as "audit's file".

    >>> read_json(Path("none.json"), "audit's file")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: none.json cannot be read: No such file or directory
    """
    try:
        if path.stat().st_size > largest:
            raise InputError(f"{path} is larger than any {what} ({largest} bytes)")
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_doubles)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not {_a(what)}, or was cut off: {error}"[:300]) from None


def read_record(path: Path, model: type[Model], schema: str, what: str) -> Model:
    """The record in a file, if it has this schema and obeys its rules."""
    from pydantic import ValidationError

    data = read_json(path, what)
    if not isinstance(data, dict) or data.get("schema") != schema:
        raise InputError(f"{path} is not {_a(what)}: its schema is not {schema!r}")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{path} is damaged: {first_fault(error)}") from None


def first_fault(error: ValidationError) -> str:
    """The first problem in data read from a file, and where it is."""
    first = error.errors()[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, "))))


def _without_doubles(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(entries)
    if len(found) < len(entries):
        names = [name for name, _ in entries]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)[:60]!r} is given twice")
    return found


def _a(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
