"""Runs as JSON, from one interpreter to another: numbers to the last bit, and each object once.

References to earlier runs, such as noise that was drawn in one, are sent by number. Needs only numpy.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from dpassay.errors import MechanismError
from dpassay.trace.natural.whole import WholeReading

_OURS = "dpassay.trace."
_CODE = ("numpy", "math", "operator", "builtins")  # modules besides ours whose functions may be named


def packed(readings: Sequence[WholeReading]) -> tuple[Any, ...]:
    """Many outputs: each distinct form once, the form of each output, and for each form its parts as columns.

    >>> some = [WholeReading(("output",), ("float",), (0.5 * k,)) for k in range(3)]
    >>> unpacked(packed(some)) == some
    True
    """
    forms: dict[Any, int] = {}
    which = [forms.setdefault((one.paths, one.kinds), len(forms)) for one in readings]
    rows: list[list[tuple[Any, ...]]] = [[] for _ in forms]
    for form, one in zip(which, readings, strict=True):
        rows[form].append(one.values)
    columns = [[_column(column) for column in zip(*own, strict=True)] for own in rows]
    return tuple(forms), np.array(which, dtype=np.int32), columns


def _column(values: tuple[Any, ...]) -> Any:
    return np.array(values) if all(type(one) is float for one in values) else list(values)


def unpacked(given: tuple[Any, ...]) -> list[WholeReading]:
    """The same outputs again."""
    forms, which, columns = given
    lists = [[one.tolist() if isinstance(one, np.ndarray) else one for one in own] for own in columns]
    rows = [zip(*own, strict=True) for own in lists]
    return [WholeReading(forms[form][0], forms[form][1], next(rows[form])) for form in which.tolist()]


class Sender:
    """Turns values into JSON, and remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []  # kept alive so that no other object gets the same id
        self.numbers: dict[int, int] = {}

    def message(self, value: Any) -> dict[str, Any]:
        """A value with all objects it refers to that were not sent before.

        >>> Sender().message((1.5, "a"))
        {'value': {'tuple': [1.5, 'a']}, 'objects': []}
        """
        before = len(self.sent)
        coded = self._coded(value)
        objects = []
        at = before
        while at < len(self.sent):  # the list grows while fields are encoded
            one = self.sent[at]
            objects.append([f"{type(one).__module__}:{type(one).__name__}", self._fields(one)])
            at += 1
        return {"value": coded, "objects": objects}

    def _fields(self, one: Any) -> dict[str, Any]:
        return {field.name: self._coded(getattr(one, field.name)) for field in fields(one)}

    def _coded(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str) or type(value) in (int, float):
            return value
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcUS":
            array = np.asarray(value)
            data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
            return {"array": [array.dtype.str, list(array.shape), data]}
        if isinstance(value, int | float):
            return value + 0  # a subclass
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode("ascii")}
        if isinstance(value, list | tuple):
            return {"tuple" if isinstance(value, tuple) else "list": [self._coded(one) for one in value]}
        if isinstance(value, dict):
            return {"dict": [[self._coded(key), self._coded(one)] for key, one in value.items()]}
        if is_dataclass(value) and type(value).__module__.startswith(_OURS):
            return {"object": self._number(value)}
        return self._named(value)

    def _named(self, value: Any) -> Any:
        if hasattr(value, "untyped_storage"):
            return self._coded(value.detach().cpu().double().numpy())
        if callable(value):
            module = "numpy" if isinstance(value, np.ufunc) else str(getattr(value, "__module__", ""))
            return {"code": [module, getattr(value, "__qualname__", getattr(value, "__name__", ""))]}
        return repr(value)

    def _number(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.sent)
            self.sent.append(value)
        return self.numbers[id(value)]


class Receiver:
    """Turns JSON back into values, and remembers what was received.

    >>> receiver, sender = Receiver(), Sender()
    >>> receiver.value(sender.message({"a": np.float32(1.5)}))
    {'a': array(1.5, dtype=float32)}
    """

    def __init__(self) -> None:
        self.known: list[Any] = []

    def value(self, message: dict[str, Any]) -> Any:
        """The value of a message."""
        new = []
        for kind, given in message["objects"]:
            module, _, name = kind.partition(":")
            made = object.__new__(_ours(module, name))
            self.known.append(made)
            new.append((made, given))
        for made, given in new:  # each may refer to any other
            for name, coded in given.items():
                object.__setattr__(made, name, self._plain(coded))
        return self._plain(message["value"])

    def _plain(self, coded: Any) -> Any:
        if not isinstance(coded, dict):
            return coded
        ((kind, given),) = coded.items()
        if kind == "array":
            kind, shape, data = given
            return np.frombuffer(base64.b64decode(data), dtype=np.dtype(kind)).reshape(shape).copy()
        if kind == "bytes":
            return base64.b64decode(given)
        if kind == "object":
            return self.known[given]
        if kind == "code":
            return _function(*given)
        if kind == "dict":
            return {self._plain(key): self._plain(one) for key, one in given}
        entries = [self._plain(one) for one in given]
        return tuple(entries) if kind == "tuple" else entries


def _ours(module: str, name: str) -> Any:
    if not module.startswith(_OURS):
        raise MechanismError(f"the other interpreter sent a {module}:{name}, which is not known here")
    return getattr(import_module(module), name)


def _function(module: str, name: str) -> Any:
    """A function by its name; one that cannot be looked up fails when it is called."""
    found: Any = None
    if module.partition(".")[0] in _CODE or module.startswith(_OURS):
        import_module(module)
        found = sys.modules[module]
        for part in name.split("."):
            found = getattr(found, part, None)
    return found if callable(found) else _lost


def _lost(*given: Any, **options: Any) -> Any:
    raise MechanismError("a formula of the traced code cannot be sent from its interpreter to ours: audit it")
