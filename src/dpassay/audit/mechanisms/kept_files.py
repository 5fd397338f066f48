"""Whether a mechanism reads back what it wrote, in files or SQLite databases, when it was called before.

Such a store may hold its answers. Runs that repeat an answer are not independent, and it is impossible to make the
mechanism forget it, so these runs refute nothing. Anything that each call rewrites, such as a log, a counter or a seed
that advances, is ignored.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

COARSE = 20_000_000  # nanoseconds by which a file's time may be behind the clock
_WRITES = os.O_WRONLY | os.O_RDWR
_READS_ONLY = ("SELECT", "PRAGMA", "BEGIN", "COMMIT", "ROLLBACK", "--")


class Stores:
    """When an audit began, and what the databases that were open then had seen, if the mechanism can use them."""

    def __init__(self, databases: bool = True) -> None:
        self.since = time.time_ns() - COARSE
        self.changes = {id(one): _changes(one) for one in (_connections() if databases else ())}

    def read_back(self, call: Callable[[], Any]) -> str:
        """The store that a call reads and does not change, though it changed since the audit began; empty if none."""
        changed = [one for one in _connections() if _changes(one) > self.changes.get(id(one), 0)]
        with _opened() as opened, _statements(changed) as said:
            call()
        written = {path for path, at_first, writes in opened if writes or _changed_at(path) != at_first}
        for path, at_first, _ in opened:
            if path not in written and at_first >= self.since:
                return f"the file {path}"
        for database, statements in zip(changed, said, strict=True):
            if statements and all(one.lstrip().upper().startswith(_READS_ONLY) for one in statements):
                return f"the database {_file_of(database) or 'in memory'}"
        return ""


@lru_cache(maxsize=1)
def _events() -> list[list[tuple[str, int, bool]]]:
    """Those who listen to files being opened. An audit hook of Python stays for good, so there is one."""
    listeners: list[list[tuple[str, int, bool]]] = []

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if not listeners or event not in ("open", "sqlite3.connect"):
            return
        with suppress(Exception):  # what is opened may be anything, and must not fail because of this
            path = os.path.abspath(os.fsdecode(arguments[0]))
            writes = event == "open" and bool(arguments[2] & _WRITES)
            listeners[-1].append((path, _changed_at(path), writes))

    sys.addaudithook(hear)
    return listeners


@contextmanager
def _opened() -> Iterator[list[tuple[str, int, bool]]]:
    """The files that are opened meanwhile: when each was changed last, and whether it is opened to be changed."""
    found: list[tuple[str, int, bool]] = []
    _events().append(found)
    try:
        yield found
    finally:
        _events().remove(found)


def _changed_at(path: str) -> int:
    """When a file, or the log of a database beside it, was changed last; 0 if there is none, or it holds nothing."""
    times = [0]
    for one in (path, f"{path}-wal"):
        with suppress(OSError):
            found = os.stat(one)
            times += [found.st_mtime_ns] if found.st_size else []  # what the system tells of itself has no size
    return max(times)


_unused: dict[frozenset[int], int] = {}  # references to these classes at a time when no database was open


def _connections() -> list[Any]:
    """All SQLite databases that are open in this process: they refer to their class, and nothing else lists them.

    The search takes long in a large process, so it is made only if there are more references than without any.
    """
    if (sqlite := sys.modules.get("sqlite3")) is None:
        return []
    kinds = _with_subclasses(sqlite.Connection)
    names, count = frozenset(map(id, kinds)), sum(map(sys.getrefcount, kinds))
    if _unused.get(names) == count:
        return []
    found = [one for one in gc.get_referrers(*kinds) if type(one) in kinds]
    if not found:
        _unused[names] = count
    return found


def _with_subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_with_subclasses, kind.__subclasses__()))


def _changes(database: Any) -> int:
    """How many rows have been changed through a connection; 0 if another thread's, which cannot be asked."""
    with suppress(Exception):
        return int(database.total_changes)
    return 0


def _file_of(database: Any) -> str:
    with suppress(Exception):
        return str(database.execute("PRAGMA database_list").fetchone()[2])
    return ""


@contextmanager
def _statements(databases: list[Any]) -> Iterator[list[list[str]]]:
    """What each database is asked meanwhile."""
    said: list[list[str]] = [[] for _ in databases]
    for database, statements in zip(databases, said, strict=True):
        database.set_trace_callback(statements.append)
    try:
        yield said
    finally:
        for database in databases:
            database.set_trace_callback(None)
