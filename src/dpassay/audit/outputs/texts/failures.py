"""What an exception tells besides its message: values that its type stores in C or in slots, and a group's members."""

from collections.abc import Iterator
from functools import lru_cache
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from dpassay.errors import without_address
from dpassay.pipeline.mechanism import Failure

LONGEST_VALUE, LONGEST_TEXT = 200, 800  # characters
MOST_MEMBERS, DEEPEST = 16, 4  # of a group that are read
_PLAIN = {bool, int, float, str, bytes, type(None)}


def told_by(failed: Failure) -> str:
    """What a reader of the exception learns: its message and attributes, and what its type stores elsewhere.

    >>> error = UnicodeDecodeError("ascii", bytes([65, 255]), 1, 2, "ordinal not in range")
    >>> told_by(Failure("UnicodeDecodeError", "", error)).split()[:2]
    ["encoding='ascii'", "object=b'A\\\\xff'"]
    """
    if failed.error is None:
        return failed.told
    try:
        more = " ".join(_told(failed.error, failed.told, DEEPEST))[:LONGEST_TEXT]
    except Exception:  # an exception's own code may fail
        return failed.told
    return without_address(f"{failed.told} {more}".strip()) if more else failed.told


def _told(error: BaseException, said: str, deep: int) -> Iterator[str]:
    kind: Any = type(error)
    known = [said]
    for place in _places(kind):
        try:
            value = place.__get__(error)
        except AttributeError:  # a slot that was never set
            continue
        if place.__name__ == "exceptions" and isinstance(error, BaseExceptionGroup):
            yield from _of_members(value, deep)
        elif type(value) in _PLAIN and value is not None and not (type(value) is str and value in said):
            known.append(repr(value))
            yield f"{place.__name__}={value!r}"[:LONGEST_VALUE]
    given = [str(one) for one in error.args if type(one) in _PLAIN]  # a message may leave some of them out
    yield from (f"given {one}"[:LONGEST_VALUE] for one in given if not any(one in some for some in known))


def _of_members(members: Any, deep: int) -> Iterator[str]:
    for member in members[:MOST_MEMBERS] if deep else ():
        said = f"with {type(member).__name__[:80]}: {str(member)[:LONGEST_VALUE]}"
        values = {name: value for name, value in vars(member).items() if type(value) in _PLAIN}
        yield " ".join([said, *(f"{name}={value!r}"[:LONGEST_VALUE] for name, value in values.items())])
        yield from _told(member, said, deep - 1)


@lru_cache(maxsize=1 << 10)
def _places(kind: type) -> tuple[Any, ...]:
    """Where exceptions of a type store values outside of their dictionary; reading these runs no foreign code."""
    stored = (GetSetDescriptorType, MemberDescriptorType)
    found = {name: place for one in reversed(kind.__mro__) for name, place in vars(one).items()}
    return tuple(place for name, place in found.items() if isinstance(place, stored) and not name.startswith("__"))
