"""What an object holds besides numbers: functions their closures, partial ones their arguments, iterators what is left.

Anything that cannot be inspected is marked: no bound follows from outputs that only look the same. Needs only numpy.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
import warnings
import weakref
from typing import Any

from dpassay.trace.watch.record import is_theirs

UNSEEN = "cannot be looked into"  # the name of a part, whose value says of which type it is
Held = dict[str, Any]
_HEAP, _DICTIONARY = (
    1 << 9,
    16,
)  # the flag of types that are made at run time; bytes of a dictionary and weak references
_PLAIN = {object, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, slice}
_PLAIN |= {type(None), type(...), type(NotImplemented), BaseException, Exception}
_NAMED = (types.ModuleType, types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType)
_OF_CLASSES = ("__dict__", "__weakref__", "__module__", "__slots__", "_abc_impl", "__dataclass_fields__")
_LITERAL = {"datetime", "decimal", "fractions", "uuid", "pathlib", "zoneinfo", "ipaddress", "ctypes", "array", "re"}
_OF_PANDAS = {"_mgr", "_item_cache", "_attrs", "_flags", "_cacher", "_is_copy", "_name", "_cache", "_id", "_data"}
_OF_INDEXES = {"_names", "_codes", "_levels", "_freq", "_references", "_range", "_no_setting_name", "_engine", "_dtype"}


def function(thing: Any) -> Held:
    """What a Python function holds; a library function that can be imported by name holds nothing."""
    if _can_be_named(thing):
        return dict(vars(thing))
    cells = {f"closure[{at}]": _contents(cell) for at, cell in enumerate(thing.__closure__ or ())}
    constants = [one for one in thing.__code__.co_consts if not isinstance(one, types.CodeType)]
    held = {"defaults": [thing.__defaults__, thing.__kwdefaults__], "constants": constants, "doc": thing.__doc__}
    return {**cells, **held, **vars(thing)}


def of_class(kind: type) -> Held:
    """What a class of the code itself holds; of one that was made in a function, its methods too."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if kind.__module__ == "builtins" or (kind.__module__ != "__main__" and (file is None or not is_theirs(file))):
        return {}
    if "<locals>" in kind.__qualname__ or not _can_be_named(kind):
        return {name: one for name, one in vars(kind).items() if name not in _OF_CLASSES and not _is_slot(one)}
    hidden = (*_OF_CLASSES, "__doc__")
    return {
        name: one
        for name, one in vars(kind).items()
        if not (name.startswith("__") and name.endswith("__")) and name not in hidden and not hasattr(one, "__get__")
    }


def attributes(thing: Any) -> Held:
    """What an object holds by name: in its dictionary, in slots, in its class."""
    held: Held = dict(_dictionary(thing))
    if isinstance(thing, BaseException):
        held |= {"args": thing.args, "__context__": thing.__context__, "__cause__": thing.__cause__}
        held |= {} if thing.__traceback__ is None else {UNSEEN: "traceback"}
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with contextlib.suppress(Exception):  # whatever its own properties raise
                if name not in ("__dict__", "__weakref__"):
                    held[name] = getattr(thing, name)
    return held | {f"class.{name}": one for kind in type(thing).__mro__ for name, one in of_class(kind).items()}


def of_frame(frame: Any) -> Held:
    """What a data frame, a series or an index holds besides pandas' own data."""
    own = {name: one for name, one in _dictionary(frame).items() if name not in _OF_PANDAS | _OF_INDEXES}
    flags = getattr(frame, "flags", None)
    duplicates = getattr(flags, "allows_duplicate_labels", None)
    return own | ({} if duplicates is None else {"allows_duplicate_labels": duplicates})


def inside(thing: Any) -> Held | None:
    """What something other than the usual containers holds; None if its attributes and its text are everything."""
    if isinstance(thing, types.FunctionType):
        return function(thing)
    if isinstance(thing, types.MethodType):
        return {"function": thing.__func__, "self": thing.__self__}
    if isinstance(thing, types.BuiltinFunctionType):
        own = thing.__self__
        return {} if own is None or isinstance(own, types.ModuleType | type) else {"self": own}
    if isinstance(thing, property):
        return {"get": thing.fget, "set": thing.fset, "delete": thing.fdel}
    if isinstance(thing, staticmethod | classmethod):
        return {"function": thing.__func__}
    if isinstance(thing, functools.partial):
        return {"function": thing.func, "args": thing.args, "keywords": thing.keywords, **_dictionary(thing)}
    if isinstance(thing, weakref.ref):
        return {"object": thing()}
    if isinstance(thing, types.CellType):
        return {"contents": _contents(thing)}
    if isinstance(thing, type):
        return of_class(thing)
    return None if isinstance(thing, _NAMED) or _is_plain(type(thing)) else _as_pickled(thing)


def _as_pickled(thing: Any) -> Held:
    """Everything that pickle would store of an object of compiled code, without pickling it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.14 pickles no iterators any more
            kept = thing.__reduce_ex__(4)
    except Exception:  # whatever its own code raises
        return {UNSEEN: type(thing).__name__}
    if isinstance(kept, str):
        return {} if _can_be_named(thing) else {UNSEEN: type(thing).__name__}
    rest = [list(one) if hasattr(one, "__next__") else one for one in kept[1:]]
    return {f"part[{at}]": [] if one is thing else one for at, one in enumerate(rest) if one is not None}


def _is_plain(kind: type) -> bool:
    """Whether objects of this class hold what their dictionary, slots, items and text say, and nothing else."""
    if kind in _PLAIN or kind.__module__.partition(".")[0].lstrip("_") in _LITERAL:
        return True
    slots = sum(isinstance(one, types.MemberDescriptorType) for base in kind.__mro__ for one in vars(base).values())
    of_python = any(name in vars(base) for base in kind.__mro__ for name in ("__dict__", "__weakref__", "__slots__"))
    if kind.__base__ is not None and kind.__base__ is not object and _is_plain(kind.__base__):
        return True
    own = kind.__basicsize__ - object.__basicsize__ - 8 * slots
    return bool(kind.__flags__ & _HEAP) and of_python and own <= _DICTIONARY


def _can_be_named(thing: Any) -> bool:
    """Whether its module has this very object under its name, so that the name identifies it."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for name in str(getattr(thing, "__qualname__", "")).split("."):
        found = getattr(found, name, None)
    return found is thing


def _dictionary(thing: Any) -> Held:
    try:
        return dict(object.__getattribute__(thing, "__dict__"))
    except (AttributeError, TypeError):
        return {}


def _is_slot(thing: Any) -> bool:
    return isinstance(thing, types.MemberDescriptorType | types.GetSetDescriptorType)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
