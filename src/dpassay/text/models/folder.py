"""A trained model on disk: model.json describes it, weights.safetensors holds its numbers. Neither is ever executed."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpassay.core.files import write_whole
from dpassay.core.records import first_fault
from dpassay.errors import InputError

if TYPE_CHECKING:
    from torch import nn

MODEL, WEIGHTS = "model.json", "weights.safetensors"
NEW_WEIGHTS = "weights.new.safetensors"  # while a folder is being written
FORMAT: Final = "dpassay/model/1"
LARGEST_FILE = 2_000_000_000  # bytes
TEXT_EXTRA = "pip install 'dpassay[text]'"
ABSENT = "give the folder of a trained model, or train one with 'dpassay train'"

Arrays = dict[str, NDArray[Any]]


class About(BaseModel):
    """What every model.json states; each system adds fields of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal["dpassay/model/1"] = FORMAT
    system: str = Field(max_length=40)
    sha256: str = Field("", description="of weights.safetensors")


Kind = TypeVar("Kind", bound=About)
Network = TypeVar("Network", bound="nn.Module")


def to_bytes(arrays: Arrays) -> bytes:
    """Arrays as one safetensors file.

    >>> from_bytes(to_bytes({"w": np.eye(2)}), Path("here"))["w"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return bytes(_safetensors().save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def from_bytes(content: bytes, path: Path) -> Arrays:
    """The arrays of a safetensors file; `path` is for the error."""
    library = _safetensors()
    try:
        return dict(library.load(content))
    except Exception as error:  # the library's own errors, or any other that a damaged file causes
        raise InputError(f"{path} is damaged or not a safetensors file: {error}; train the model again"[:300]) from None


def _safetensors() -> Any:
    try:
        return importlib.import_module("safetensors.numpy")
    except ImportError:
        raise InputError(f"a model is kept as safetensors, which is not installed: {TEXT_EXTRA}") from None


def write_folder(folder: Path, about: About, arrays: Arrays) -> None:
    """Write a model so that it can be read whenever this is interrupted: as it was, or as it is now.

    The weights get their name last; until then, model.json says whether the new ones are those that belong to it.
    """
    weights = to_bytes(arrays)
    stated = about.model_copy(update={"sha256": hashlib.sha256(weights).hexdigest()})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / NEW_WEIGHTS, weights)
        write_whole(folder / MODEL, json.dumps(stated.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")
        (folder / NEW_WEIGHTS).replace(folder / WEIGHTS)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}; give another folder") from None


def emptied(folder: Path, *more: str) -> bool:
    """Delete what was left by a process that ended before saving its first model; whether the folder is empty now.

    A folder that holds a model, or anything but weights without a model and files of these names, is left unchanged.
    """
    if (folder / MODEL).exists() or not folder.is_dir():
        return False
    found = list(folder.iterdir())
    if not all(path.name in (NEW_WEIGHTS, *more) or path.match(".*.part") for path in found):
        return False
    for path in found:
        path.unlink()
    return True


def read_folder(folder: Path, kind: type[Kind]) -> tuple[Kind, Arrays]:
    """What `write_folder` wrote, checked to the last byte.

    >>> read_folder(Path("no/such"), About)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: no/such/model.json cannot be read: No such file or directory; ...
    """
    path, data = folder / MODEL, _model_json(folder)
    system = kind.model_fields["system"].default
    if isinstance(system, str) and data.get("system") != system:
        raise InputError(f"{path} is a model of another system, {str(data.get('system'))[:40]!r}, not {system}")
    try:
        about = kind.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{path} is damaged: {first_fault(error)}; train the model again") from None
    names = [name for name in (NEW_WEIGHTS, WEIGHTS) if name == WEIGHTS or (folder / name).is_file()]
    for name in names:
        weights = _read_bytes(folder / name, LARGEST_FILE, ABSENT)
        if hashlib.sha256(weights).hexdigest() == about.sha256:
            return about, from_bytes(weights, folder / name)
    raise InputError(f"{folder / WEIGHTS} is damaged, or not the one that belongs to {MODEL}; train it again")


def system_of(folder: Path) -> str:
    """The system that a model's folder holds: adept, dptext, dpnr or binary."""
    return str(_model_json(folder).get("system"))[:40]


def weights_of(network: nn.Module) -> Arrays:
    """The weights of a network, to be saved."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}


def with_weights(build: Callable[[], Network], arrays: Arrays, folder: Path) -> Network:
    """The network that `build` makes, with weights from a file; arrays with a colon in their name are not weights."""
    import torch

    with torch.device("meta"):  # no random numbers for weights that are about to be replaced
        network = build()
    weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items() if ":" not in name}
    wanted = {name: (*tensor.shape,) for name, tensor in network.state_dict().items()}
    found = {name: (*tensor.shape,) for name, tensor in weights.items()}
    if wanted != found:
        odd = min(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        raise InputError(
            f"{folder / WEIGHTS} does not fit the network that {MODEL} describes: {odd} is "
            f"{found.get(odd, 'missing')} where {wanted.get(odd, 'nothing')} is needed; train it again"
        )
    if bad := [name for name, w in weights.items() if w.dtype != torch.float32 or not w.isfinite().all()]:
        raise InputError(
            f"the weights in {folder} are not all finite 32-bit floating-point numbers: see {min(bad)}; train it again"
        )
    network.load_state_dict(weights, assign=True)
    return network


def read_json(path: Path, what: str, stamp: tuple[str, str], absent: str, largest: int) -> dict[str, Any]:
    """The JSON object in a file; `stamp` is the field, and its value, by which such a file is recognized."""
    content = _read_bytes(path, largest, absent)
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not {what}, or is incomplete: {error}; make it again"[:300]) from None
    name, value = stamp
    if not isinstance(data, dict) or data.get(name) != value:
        raise InputError(f"{path} is not {what}: its {name} is not {value!r}; {absent}")
    return data


def _model_json(folder: Path) -> dict[str, Any]:
    return read_json(folder / MODEL, "a model's file", ("format", FORMAT), ABSENT, LARGEST_FILE)


def _read_bytes(path: Path, largest: int, absent: str) -> bytes:
    try:
        if path.stat().st_size > largest:
            raise InputError(f"{path} has more than {largest:,} bytes, more than any such file")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; {absent}") from None
