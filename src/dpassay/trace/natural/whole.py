"""An output read whole: every number and text that can be reached from it, including hidden ones.

A masked array has its data, a view the array behind it, a frame its attributes, an object its private ones. Two
readings are the same if every part is, to the last bit. Needs only numpy.
"""

from __future__ import annotations

import base64
import io
import math
import re
import struct
import sys
import types
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy import asarray

from dpassay.trace.natural import holding
from dpassay.values import dataclass

MOST_PARTS, DEEPEST = 200_000, 40
_WITHOUT = {float, int, bool, str, bytes, list, tuple, dict, type(None), np.float64, np.ndarray}  # any attributes
MOST_NUMBERS = 8  # in a text
_HEXADECIMAL, _BASE64 = re.compile("[0-9a-fA-F]+"), re.compile("[A-Za-z0-9+/]+={0,2}")
_NUMBER = re.compile(r"[-+]?0x[0-9a-fA-F]\.[0-9a-fA-F]+p[-+]?\d+|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?")


@dataclass(frozen=True, slots=True)
class WholeReading:
    """The parts of an output: where each is, of which type, and its value; numbers as doubles where they fit."""

    paths: tuple[str, ...]
    kinds: tuple[str, ...]
    values: tuple[Any, ...]

    def same(self, other: WholeReading) -> bool:
        """Whether two outputs are the same, to the last bit.

        >>> read({"a": 0.0}).same(read({"a": 0.0})), read({"a": 0.0}).same(read({"a": -0.0}))
        (True, False)
        """
        return self.difference(other) is None

    @property
    def unseen(self) -> str | None:
        """Which part cannot be inspected; None if everything was read."""
        found = (k for k, kind in enumerate(self.kinds) if kind == holding.UNSEEN)
        return next((f"{self.paths[k]} is of type {self.values[k]}, which {holding.UNSEEN}" for k in found), None)

    def difference(self, other: WholeReading) -> str | None:
        """Where two outputs differ first; None if they are the same."""
        if self.paths != other.paths or self.kinds != other.kinds:
            pairs = zip(
                zip(self.paths, self.kinds, strict=True), zip(other.paths, other.kinds, strict=True), strict=False
            )
            first = next((one[0] for one, its in pairs if one != its), None)
            return first or (self.paths + other.paths + ("output",))[min(len(self.paths), len(other.paths))]
        return next(
            (
                path
                for path, one, its in zip(self.paths, self.values, other.values, strict=True)
                if one is not its and not _same(one, its)
            ),
            None,
        )

    def data(self) -> tuple[Any, ...]:
        """As plain tuples, to be sent by another process."""
        return self.paths, self.kinds, self.values


def _same(one: Any, its: Any) -> bool:
    if isinstance(one, float) and isinstance(its, float):
        return struct.pack("d", one) == struct.pack("d", its) or (math.isnan(one) and math.isnan(its))
    return type(one) is type(its) and bool(one == its)


def read(output: Any, plain: Any = None) -> WholeReading:
    """Read an output whole. `plain` turns a watched part into its unwatched form.

    >>> print(*read([1, "a", np.ma.masked_array([2.0], mask=[True])]).paths[:6])
    output output[0] output[1] output[2] output[2].data[0] output[2].mask[0]
    """
    if (found := _read_quickly(output if plain is None else _each(plain, output))) is not None:
        return found
    return read_part_by_part(output, plain)


def read_part_by_part(output: Any, plain: Any = None) -> WholeReading:
    """The same for any output.

    >>> read_part_by_part([1.0, "a"]) == read([1.0, "a"])
    True
    """
    parts = list(_limited(_OutputWalk(plain).parts(output, "output", 0)))
    return WholeReading(tuple(one[0] for one in parts), tuple(one[1] for one in parts), tuple(one[2] for one in parts))


def _each(plain: Any, output: Any) -> Any:
    """The plain form of an output, and of the parts of a short list, tuple or dict."""
    output = plain(output)
    kind = type(output)
    if (kind is list or kind is tuple) and len(output) <= MOST_SIMPLE:
        return kind(map(plain, output))
    if kind is dict and len(output) <= MOST_SIMPLE:
        return {key: plain(one) for key, one in output.items()}
    return output


Part = tuple[str, str, Any]
_SIMPLE = {float, int, bool, str, type(None)}  # types without parts or attributes
MOST_SIMPLE = 1_000  # in an output that is read quickly


def _read_quickly(output: Any) -> WholeReading | None:
    """Read the usual outputs (a number, a text, or a flat list, dict or array of these) like the reader below."""
    kind = type(output)
    if kind in _SIMPLE:
        return WholeReading(("output",), (kind.__name__,), (_simple(output),))
    if kind is np.ndarray:
        plain = output.dtype.kind == "f" and output.dtype.itemsize <= 8 and output.base is None
        if not plain or output.size > MOST_SIMPLE or output.dtype.metadata:
            return None
        paths, kinds = _array_form(output.dtype, output.shape)
        return WholeReading(paths, kinds, (None, *output.reshape(-1).tolist()))
    if (kind is not list and kind is not tuple and kind is not dict) or len(output) > MOST_SIMPLE:
        return None
    if kind is dict:
        values = output.values()
        if not all(type(key) is str for key in output) or not _SIMPLE.issuperset(map(type, values)):
            return None
        kinds = ("dict", "NoneType", *(type(one).__name__ for one in values))
        return WholeReading(_dict_form(tuple(output)), kinds, (float(len(output)), None, *map(_simple, values)))
    if not _SIMPLE.issuperset(map(type, output)):
        return None
    kinds = (kind.__name__, *(type(one).__name__ for one in output))
    return WholeReading(_list_form(len(output)), kinds, (float(len(output)), *map(_simple, output)))


def _simple(value: Any) -> Any:
    return value if type(value) is float or type(value) is str else _number(value)


@lru_cache(maxsize=256)
def _array_form(dtype: Any, shape: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths and kinds of a plain array."""
    paths = ("output", *("output" + place for place in _places(shape)))
    return paths, (f"ndarray {dtype} {shape}", *[""] * (len(paths) - 1))


@lru_cache(maxsize=256)
def _list_form(size: int) -> tuple[str, ...]:
    return ("output", *(f"output[{at}]" for at in range(size)))


@lru_cache(maxsize=256)
def _dict_form(keys: tuple[str, ...]) -> tuple[str, ...]:
    return ("output", "output.default_factory", *(f"output[{_key(key, 0)}]" for key in keys))


def _limited(parts: Iterator[Part]) -> Iterator[Part]:
    for count, part in enumerate(parts):
        if count >= MOST_PARTS:
            yield "output", "too large to be read whole", None
            return
        yield part


class _OutputWalk:
    """Walks through an output; each object once."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain or (lambda value: value)
        self.seen: dict[int, Any] = {}

    def parts(self, thing: Any, path: str, depth: int) -> Iterator[Part]:
        """All parts of a thing."""
        thing = self.plain(thing)
        kind = type(thing).__name__
        if thing is None or isinstance(thing, bool | np.bool_ | int | np.integer | float | np.floating):
            yield path, kind, _number(thing)
            yield from self.attributes(thing, path, depth)
        elif isinstance(thing, str | bytes | bytearray | complex | np.complexfloating | np.datetime64 | np.timedelta64):
            yield path, kind, _text(thing)
            yield from self.attributes(thing, path, depth)
        elif id(thing) in self.seen or depth > DEEPEST:
            yield path, f"{kind}, again", None
        elif isinstance(thing, types.ModuleType | np.ufunc):
            yield path, kind, thing.__name__
        else:
            self.seen[id(thing)] = thing
            yield from self.inside(thing, path, depth + 1)

    def inside(self, thing: Any, path: str, depth: int) -> Iterator[Part]:
        """The parts of something that has parts."""
        kind = type(thing).__name__
        if isinstance(thing, np.ndarray):
            yield from self.array(thing, path, depth)
        elif hasattr(type(thing), "detach") and hasattr(type(thing), "untyped_storage"):
            yield from self.tensor(thing, path, depth)
        elif isinstance(thing, Mapping):
            yield path, kind, float(len(thing))
            yield from self.parts(getattr(thing, "default_factory", None), f"{path}.default_factory", depth)
            for at, (key, one) in enumerate(thing.items()):
                if not isinstance(key, str | int | float):
                    yield from self.parts(key, f"{path}.keys[{at}]", depth)
                yield from self.parts(one, f"{path}[{_key(key, at)}]", depth)
        elif isinstance(thing, list | tuple) or kind in ("deque", "dict_keys", "dict_values", "dict_items", "range"):
            yield path, kind, float(len(thing))
            if kind == "deque":
                yield from self.parts(thing.maxlen, f"{path}.maxlen", depth)
            for at, one in enumerate(thing):
                yield from self.parts(one, f"{path}[{at}]", depth)
        elif isinstance(thing, set | frozenset):
            yield path, kind, float(len(thing))
            for at, one in enumerate(sorted(map(repr, map(self.plain, thing)))):
                yield f"{path}[{at}]", "member", one
        elif isinstance(thing, re.Match):
            yield from self.parts([thing.string, thing.re.pattern, thing.regs], path, depth)
        elif isinstance(thing, io.BytesIO | io.StringIO):
            yield path, kind, thing.getvalue()
            yield f"{path}.position", kind, float(thing.tell())
        elif hasattr(type(thing), "to_numpy") and hasattr(type(thing), "index"):
            yield from self.frame(thing, path, depth)
        else:
            yield from self.object(thing, path, depth)
            return
        yield from self.attributes(thing, path, depth)

    def object(self, thing: Any, path: str, depth: int) -> Iterator[Part]:
        """What anything else holds, or its repr if it holds nothing."""
        held = holding.inside(thing)
        if held is None:
            parts = list(self.attributes(thing, path, depth))
            yield path, type(thing).__name__, None if parts else _repr(thing)
            yield from parts
            return
        yield path, type(thing).__name__, getattr(thing, "__qualname__", getattr(thing, "__name__", None))
        yield from self.held(held, path, depth)

    def held(self, held: dict[str, Any], path: str, depth: int) -> Iterator[Part]:
        """Parts by their names."""
        for name, one in held.items():
            if name == holding.UNSEEN:
                yield path, holding.UNSEEN, str(one)
            else:
                yield from self.parts(one, f"{path}.{name}", depth + 1)

    def array(self, array: Any, path: str, depth: int) -> Iterator[Part]:
        """The numbers of an array, and those behind a mask or a view."""
        yield path, f"{type(array).__name__} {array.dtype} {array.shape}", None
        if array.dtype.metadata:
            yield from self.parts(dict(array.dtype.metadata), f"{path}.dtype.metadata", depth)
        masked = sys.modules.get("numpy.ma")  # np.ma would import it, again in every copy of this process
        if masked is not None and isinstance(array, masked.MaskedArray):
            yield from self.numbers(asarray(array.data), f"{path}.data", depth)
            yield from self.numbers(masked.getmaskarray(array), f"{path}.mask", depth)
            yield from self.parts(array.fill_value, f"{path}.fill_value", depth)
            return
        yield from self.numbers(array, path, depth)
        yield from self.behind(array, path, depth)

    def behind(self, array: Any, path: str, depth: int) -> Iterator[Part]:
        """The numbers of the array behind a view, if there are more of them than the view shows."""
        behind = array.base
        while isinstance(behind, np.ndarray) and behind.base is not None:
            behind = behind.base
        more = isinstance(behind, np.ndarray) and (behind.nbytes > array.nbytes or behind.dtype != array.dtype)
        if more and id(behind) not in self.seen:
            self.seen[id(behind)] = behind
            yield f"{path}.base", f"{behind.dtype} {behind.shape}", None
            yield from self.numbers(behind, f"{path}.base", depth)

    def numbers(self, array: Any, path: str, depth: int) -> Iterator[Part]:
        """The numbers or objects of a plain array, one by one; those of a very large one as their bytes."""
        array = asarray(array)
        if array.dtype.kind in "OV" or array.dtype.names:
            for at, one in enumerate(array.reshape(-1).tolist()):
                yield from self.parts(one, f"{path}[{at}]", depth)
        elif array.size > MOST_PARTS // 4 or array.dtype.kind not in "biuf":
            yield path, str(array.dtype), array.tobytes()
        else:
            exact = array.dtype.kind in "bf" or array.dtype.itemsize < 8
            for place, one in zip(_places(array.shape), array.reshape(-1).tolist(), strict=True):
                yield path + place, "", float(one) if exact else _number(one)

    def tensor(self, tensor: Any, path: str, depth: int) -> Iterator[Part]:
        """The numbers of a torch tensor, those of its storage if there are more, and its gradient."""
        own = tensor.detach().cpu()
        yield path, f"{type(tensor).__name__} {own.dtype} {tuple(own.shape)}", None
        yield from self.numbers((own.double() if own.is_floating_point() else own).numpy(), path, depth)
        storage = tensor.untyped_storage()
        if storage.nbytes() > own.numel() * own.element_size():
            behind = own.new_empty(0).set_(storage.cpu())  # the whole of it, in the same type
            yield f"{path}.storage", str(behind.dtype), float(behind.numel())
            yield from self.numbers(
                (behind.double() if behind.is_floating_point() else behind).numpy(), f"{path}.storage", depth
            )
        if getattr(tensor, "is_leaf", False) and tensor.grad is not None:
            yield from self.parts(tensor.grad, f"{path}.grad", depth)
        yield from self.graph(tensor.grad_fn, f"{path}.grad_fn", depth)

    def graph(self, function: Any, path: str, depth: int) -> Iterator[Part]:
        """The tensors that a gradient would be computed from."""
        waiting = [function]
        while waiting:
            if (one := waiting.pop()) is None or id(one) in self.seen:
                continue
            self.seen[id(one)] = one
            held = [name for name in dir(one) if name == "variable" or name.startswith("_saved_")]
            for name in held:
                try:
                    saved = getattr(one, name)
                except RuntimeError:  # released after a backward pass
                    continue
                yield from self.parts(saved, f"{path}.{name}", depth + 1)
            waiting += [part for part, _ in getattr(one, "next_functions", ())]

    def frame(self, frame: Any, path: str, depth: int) -> Iterator[Part]:
        """A data frame or a series: its values, index, names and attributes."""
        yield path, type(frame).__name__, str(getattr(frame, "name", ""))
        for name in ("index", "columns"):
            if getattr(frame, name, None) is not None:
                names = list(getattr(getattr(frame, name), "names", None) or [])
                yield from self.parts(names, f"{path}.{name}.names", depth)
                yield from self.numbers(asarray(getattr(frame, name), dtype=object), f"{path}.{name}", depth)
                yield from self.held(holding.of_frame(getattr(frame, name)), f"{path}.{name}", depth)
        values = asarray(frame.to_numpy(dtype=object))
        yield from self.numbers(values, f"{path}.values", depth)
        for at, block in enumerate(getattr(getattr(frame, "_mgr", None), "arrays", ())):
            if isinstance(block, np.ndarray):
                yield from self.behind(block, f"{path}.blocks[{at}]", depth)
        for at, kind in enumerate(
            getattr(frame, "dtypes", ()) if hasattr(frame, "columns") else [getattr(frame, "dtype", None)]
        ):
            if hasattr(kind, "categories"):
                yield from self.parts(list(kind.categories), f"{path}.categories[{at}]", depth)
        yield from self.parts(dict(getattr(frame, "attrs", {})), f"{path}.attrs", depth)

    def attributes(self, thing: Any, path: str, depth: int) -> Iterator[Part]:
        """What an object holds besides, by name."""
        if type(thing) in _WITHOUT:
            return
        frame = hasattr(type(thing), "to_numpy") and hasattr(type(thing), "index")
        yield from self.held(holding.of_frame(thing) if frame else holding.attributes(thing), path, depth)


@lru_cache(maxsize=256)
def _places(shape: tuple[int, ...]) -> list[str]:
    return ["".join(f"[{i}]" for i in place) for place in np.ndindex(shape)]


def _number(value: Any) -> Any:
    if value is None:
        return None
    try:
        found = float(value)
    except OverflowError:
        return hex(int(value))
    exact = isinstance(value, float | np.floating | bool | np.bool_) or int(value) == found
    return found if exact else hex(int(value))


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    return bytes(value) if isinstance(value, bytes | bytearray) else repr(value)


def _key(key: Any, at: int) -> str:
    if isinstance(key, str):
        return '"' + str.__str__(key) + '"'
    return repr(key) if isinstance(key, int | float) else f"key {at}"


def _repr(thing: Any) -> str | None:
    """The repr of an object, if that is the same in another process."""
    try:
        said = repr(thing)
    except Exception:
        return None
    return None if " at 0x" in said else said


def numbers_in(text: Any) -> tuple[float, ...]:
    """The numbers written in a text or in bytes, or in what a hexadecimal or base64 text encodes, as doubles.

    >>> numbers_in("about 1.5 of -2e3"), numbers_in("0x1.8p+1"), numbers_in("MS41")
    ((1.5, -2000.0), (3.0,), (1.5,))
    >>> numbers_in("3ff8000000000000")[0]
    1.5
    """
    raw = bytes(text) if isinstance(text, bytes | bytearray) else _decoded(text) if isinstance(text, str) else b""
    if raw:
        return _numbers_in_bytes(raw, encoded=isinstance(text, str) and len(text) == 2 * len(raw))
    if not isinstance(text, str):
        return ()
    return tuple(_read_number(one) for one in _NUMBER.findall(text)[:MOST_NUMBERS])


def _decoded(text: str) -> bytes:
    """What a text encodes, if all of it is hexadecimal digits of doubles, or base64 of something with numbers in it."""
    if len(text) % 16 == 0 and _HEXADECIMAL.fullmatch(text):
        return bytes.fromhex(text)
    if len(text) % 4 or not _BASE64.fullmatch(text) or text.isdigit():
        return b""
    raw = base64.b64decode(text)
    return raw if _numbers_in_bytes(raw) else b""


def _numbers_in_bytes(raw: bytes, encoded: bool = False) -> tuple[float, ...]:
    if raw.isascii() and not encoded:
        return tuple(map(_read_number, _NUMBER.findall(raw.decode())[:MOST_NUMBERS]))
    if len(raw) % 8 or len(raw) > 8 * MOST_NUMBERS:
        return ()
    read = struct.unpack(f">{len(raw) // 8}d", raw) + struct.unpack(f"<{len(raw) // 8}d", raw)
    return tuple(one if one == 0 or 1e-100 < abs(one) < 1e100 else math.nan for one in read)  # others are no numbers


def _read_number(text: str) -> float:
    return float.fromhex(text) if "x" in text else float(text)
