"""A trained model on disk: model.json says what it is, weights.safetensors holds its numbers. Neither is ever run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpassay.core.files import write_whole
from dpassay.errors import InputError

MODEL, WEIGHTS = "model.json", "weights.safetensors"
LARGEST_FILE = 2_000_000_000  # bytes
TEXT_EXTRA = "pip install 'dpassay[text]'"

Arrays = dict[str, NDArray[Any]]


class About(BaseModel):
    """What every model's file says; each system adds its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal["dpassay/model/1"] = "dpassay/model/1"
    system: str = Field(max_length=40)
    sha256: str = Field("", description="of weights.safetensors")


Kind = TypeVar("Kind", bound=About)


def to_bytes(arrays: Arrays) -> bytes:
    """Arrays as one safetensors file.

    >>> from_bytes(to_bytes({"w": np.eye(2)}), Path("here"))["w"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    try:
        from safetensors.numpy import save
    except ImportError:
        raise InputError(f"a model is kept as safetensors, which is not installed: {TEXT_EXTRA}") from None
    return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def from_bytes(content: bytes, path: Path) -> Arrays:
    """Arrays of a safetensors file; `path` is for the error."""
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load
    except ImportError:
        raise InputError(f"a model is kept as safetensors, which is not installed: {TEXT_EXTRA}") from None
    try:
        return dict(load(content))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged or no safetensors file: {error}; train the model again"[:300]) from None


def write_folder(folder: Path, about: About, arrays: Arrays) -> None:
    """Write a model, the weights first: a folder that has a model.json is whole."""
    weights = to_bytes(arrays)
    stated = about.model_copy(update={"sha256": hashlib.sha256(weights).hexdigest()})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / WEIGHTS, weights)
        write_whole(folder / MODEL, json.dumps(stated.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}; give another folder") from None


def read_folder(folder: Path, kind: type[Kind]) -> tuple[Kind, Arrays]:
    """What `write_folder` wrote, checked to the last byte.

    >>> read_folder(Path("no/such"), About)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: no/such/model.json cannot be read: No such file or directory; ...
    """
    about = read_about(folder / MODEL, kind)
    weights = read_bytes(folder / WEIGHTS)
    if hashlib.sha256(weights).hexdigest() != about.sha256:
        raise InputError(f"{folder / WEIGHTS} is damaged, or not the one that belongs to {MODEL}; train it again")
    return about, from_bytes(weights, folder / WEIGHTS)


def system_of(folder: Path) -> str:
    """Which system a model's folder is of: adept, dptext or dpnr."""
    return str(_as_json(folder / MODEL).get("system"))[:40]


def read_about(path: Path, kind: type[Kind]) -> Kind:
    """What model.json says, if it is of this kind of model."""
    data = _as_json(path)
    system = kind.model_fields["system"].default
    if isinstance(system, str) and data.get("system") != system:
        raise InputError(f"{path} is a model of another system, {str(data.get('system'))[:40]!r}, not {system}")
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path} is damaged: {where}: {first['msg']}; train the model again") from None


def _as_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_bytes(path).decode("utf-8"))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a model's file, or was cut off: {error}; train it again"[:300]) from None
    wanted = About.model_fields["format"].default
    if not isinstance(data, dict) or data.get("format") != wanted:
        raise InputError(f"{path} is not a model's file: its format is not {wanted!r}; give another folder")
    return data


def read_bytes(path: Path) -> bytes:
    """A file of a model."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} is larger than any model's file ({LARGEST_FILE} bytes); give another folder")
        return path.read_bytes()
    except OSError as error:
        said = f"{path} cannot be read: {error.strerror or error}"
        raise InputError(f"{said}; give the folder of a trained model, or train one with 'dpassay train'") from None
