"""Leaves of types from the standard library and other libraries: times, tensors, data frames, records of all sorts.

Other libraries are recognized by name and never imported: code that returns a tensor has loaded torch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, KeysView, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.errors import MechanismError, escape_control_chars, without_address

if TYPE_CHECKING:
    from dpassay.audit.outputs.leaves import LeafReader, Reader

MOST_DIGITS = 5_000  # of a Decimal, before or after its point


def reader_of(kind: type) -> Reader | None:
    """How outputs of a type are read, if it is one of these; None for others."""
    import array as arrays
    import datetime as times
    from pathlib import PurePath
    from types import SimpleNamespace
    from uuid import UUID

    for known, reader in (
        (times.datetime, _datetime),
        (times.date, _date),
        (times.time, _time),
        (times.timedelta, _timedelta),
        (times.tzinfo, _as_text),
        (Fraction, _fraction),
        (Decimal, _decimal),
        (UUID, _uuid),
        (PurePath, _as_text),
        (SimpleNamespace, _namespace),
        (arrays.array, _buffer),
        (deque, _deque),
        ((KeysView, ValuesView), _entries),
        (BaseException, _exception),
    ):
        if issubclass(kind, known):
            return reader
    return _foreign(kind)


def _foreign(kind: type) -> Reader | None:
    """Types of libraries, by the names they and their parents have."""
    names = {f"{one.__module__.partition('.')[0]}.{one.__name__}" for one in kind.__mro__}
    for name, reader in (
        ("torch.Tensor", _tensor),
        ("pandas.DataFrame", _frame),
        ("pandas.Series", _series),
        ("pandas.Index", _index),
        ("pandas.ExtensionArray", _extension),
        ("pandas.Interval", _interval),
        ("pandas.Period", _as_text),
        ("pydantic.BaseModel", _model),
        ("scipy.sparray", _sparse),
        ("scipy.spmatrix", _sparse),
    ):
        if name in names:
            return reader
    if kind.__name__ in ("NaTType", "NAType") and kind.__module__.startswith("pandas"):
        return _missing
    if kind.__module__.partition(".")[0] == "torch" and kind.__name__ in ("dtype", "Size", "device"):
        return _as_text if kind.__name__ != "Size" else _entries
    if hasattr(kind, "__attrs_attrs__"):
        return _attrs
    if hasattr(kind, "__array__") and not issubclass(kind, Iterator):
        return _like_array
    return None


def _datetime(walk: LeafReader, path: str, item: Any) -> None:
    import datetime as times

    from dpassay.audit.outputs.leaves import whole

    walk.named(path, item)
    start = times.datetime(1970, 1, 1)
    naive = item.to_pydatetime(warn=False) if hasattr(item, "to_pydatetime") else item
    naive = naive.replace(tzinfo=None, fold=0)
    whole(walk, path, (naive - start) // times.timedelta(microseconds=1))
    for name in ("hour", "minute", "second", "microsecond"):
        walk.put(f"{path}.{name}", getattr(item, name))
    walk.put(f"{path}.nanosecond", getattr(item, "nanosecond", 0))
    walk.put(f"{path}.utcoffset()", str(item.utcoffset()))
    walk.put(f"{path}.tzinfo", str(item.tzinfo))
    walk.put(f"{path}.fold", item.fold)


def _date(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(path, item.toordinal())


def _time(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(path, ((item.hour * 60 + item.minute) * 60 + item.second) * 10**6 + item.microsecond)
    for name in ("hour", "minute", "second"):
        walk.put(f"{path}.{name}", getattr(item, name))
    walk.put(f"{path}.tzinfo", str(item.tzinfo))
    walk.put(f"{path}.fold", item.fold)


def _timedelta(walk: LeafReader, path: str, item: Any) -> None:
    from dpassay.audit.outputs.leaves import whole

    walk.named(path, item)
    whole(walk, path, (item.days * 86_400 + item.seconds) * 10**6 + item.microseconds)
    walk.put(f"{path}.seconds", item.seconds)
    walk.put(f"{path}.nanoseconds", getattr(item, "nanoseconds", 0))


def _uuid(walk: LeafReader, path: str, item: Any) -> None:
    from dpassay.audit.outputs.leaves import whole

    walk.named(path, item)
    walk.read(f"{path}.bytes", item.bytes)
    whole(walk, f"{path}.int", item.int)


def _fraction(walk: LeafReader, path: str, item: Fraction) -> None:
    from dpassay.audit.outputs.leaves import whole

    walk.named(path, item)
    walk.put(path, item)
    whole(walk, f"{path}.numerator", item.numerator)
    whole(walk, f"{path}.denominator", item.denominator)


def _decimal(walk: LeafReader, path: str, item: Decimal) -> None:
    walk.named(path, item)
    walk.put(f"str({path})", str(item))
    if not item.is_finite():
        walk.put(path, math.nan if item.is_nan() else math.copysign(math.inf, item))
        return
    walk.put(f"{path}.as_tuple().exponent", item.as_tuple().exponent)
    if abs(item.adjusted()) < MOST_DIGITS:
        walk.put(path, Fraction(item))
    else:
        walk.put(f"{path}.adjusted()", item.adjusted())


def _as_text(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.read(f"str({path})", str(item))


def _namespace(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.read(f"vars({path})", vars(item))


def _buffer(walk: LeafReader, path: str, item: Any) -> None:
    walk.put(f"{path}.typecode", item.typecode)
    walk.read(path, np.array(item))


def _entries(walk: LeafReader, path: str, item: Any) -> None:
    from dpassay.audit.outputs.leaves import sequence

    walk.named(path, item)
    sequence(walk, path, list(item))


def _deque(walk: LeafReader, path: str, item: Any) -> None:
    _entries(walk, path, item)
    walk.put(f"{path}.maxlen", item.maxlen)


def _exception(walk: LeafReader, path: str, item: BaseException) -> None:
    walk.named(path, item)
    walk.read(f"{path}.args", item.args)


def _missing(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(path, None)


def _tensor(walk: LeafReader, path: str, item: Any) -> None:
    walk.put(f"{path}.layout", str(item.layout))
    walk.put(f"{path}.requires_grad", bool(item.requires_grad))
    kind = str(item.dtype)
    plain = item.detach().cpu().resolve_conj().resolve_neg()
    plain = plain.dequantize() if plain.is_quantized else plain
    plain = plain.to_dense() if str(plain.layout) != "torch.strided" else plain
    if kind == "torch.bfloat16" or "float8" in kind:
        plain = plain.float()
    walk.read(path, plain.numpy())
    walk.put(f"type({path})", type(item).__name__)
    walk.put(f"{path}.dtype", kind)


def _frame(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(f"{path}.shape", str(item.shape))
    walk.read(f"{path}.columns", item.columns)
    walk.read(f"{path}.index", item.index)
    _attributes(walk, path, item)
    from dpassay.audit.outputs.leaves import shown_key

    for i, name in enumerate(item.columns):
        place = f"{path}[{shown_key(name)}]"
        _values(walk, place if f"{place}.dtype" not in walk.found else f"{path}.iloc[:, {i}]", item.iloc[:, i])


def _series(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.read(f"{path}.name", item.name)
    walk.read(f"{path}.index", item.index)
    walk.put(f"len({path})", len(item))
    _attributes(walk, path, item)
    _values(walk, path, item)


def _attributes(walk: LeafReader, path: str, item: Any) -> None:
    if item.attrs:  # what the code says about its data, which is saved with it
        walk.read(f"{path}.attrs", item.attrs)


def _index(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.read(f"{path}.names", list(item.names))
    _values(walk, path, item)


def _extension(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(f"{path}.dtype", str(item.dtype))
    _entries(walk, path, item)


def _values(walk: LeafReader, path: str, column: Any) -> None:
    """The entries of a column: numbers as a row, others one by one; for categories also the set of them."""
    from dpassay.audit.outputs.leaves import array, sequence

    walk.put(f"{path}.dtype", str(column.dtype))
    if hasattr(column.dtype, "categories"):
        walk.put(f"{path}.dtype.ordered", bool(column.dtype.ordered))
        walk.read(f"{path}.dtype.categories", list(column.dtype.categories))
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        array(walk, path, column.to_numpy())
    else:
        sequence(walk, path, list(column))


def _interval(walk: LeafReader, path: str, item: Any) -> None:
    from dpassay.audit.outputs.leaves import attributes

    attributes(walk, path, item, ("left", "right", "closed"))


def _model(walk: LeafReader, path: str, item: Any) -> None:
    from dpassay.audit.outputs.leaves import attributes

    attributes(walk, path, item, [*type(item).model_fields, *(item.model_extra or {})])


def _attrs(walk: LeafReader, path: str, item: Any) -> None:
    from dpassay.audit.outputs.leaves import attributes

    attributes(walk, path, item, [one.name for one in type(item).__attrs_attrs__])


def _sparse(walk: LeafReader, path: str, item: Any) -> None:
    walk.named(path, item)
    walk.put(f"{path}.nnz", int(item.nnz))
    walk.read(f"{path}.toarray()", item.toarray())


def _like_array(walk: LeafReader, path: str, item: Any) -> None:
    walk.read(path, np.asarray(item))
    walk.named(path, item)


def unreadable(walk: LeafReader, path: str, item: Any) -> None:
    """Refuse an unknown type, or read it as the user chose."""
    kind = type(item)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    try:
        if walk.unknown == "repr":
            walk.named(path, item)
            walk.read(f"repr({path})", without_address(repr(item)))
            return
        if walk.unknown == "bytes":
            walk.named(path, item)
            raw = item.tobytes() if hasattr(item, "tobytes") else None if isinstance(item, int) else bytes(item)
            walk.read(f"bytes({path})", raw)
            return
    except Exception as error:
        said = escape_control_chars(f"{type(error).__name__}: {error}")
        raise MechanismError(
            f"{path} is of type {escape_control_chars(name)} and has no {walk.unknown}: {said}"
        ) from None
    raise MechanismError(
        f"{escape_control_chars(path)[:200]} is of type {escape_control_chars(name)}, which cannot be read: "
        "return numbers, text, bytes, lists, dicts, sets, dataclasses, arrays, tensors or data frames, "
        "or say how to read it: unknown='repr' reads its repr, unknown='bytes' its bytes"
    )
