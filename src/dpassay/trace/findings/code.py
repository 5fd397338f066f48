"""Lines of the traced code, shown next to a finding."""

from __future__ import annotations

import linecache

BESIDE = 1  # lines before and after


def code_around(file: str, line: int) -> list[tuple[int, str, bool]]:
    """The line of a file and its neighbors: number, text, and whether it is the line itself. Empty if it is gone.

    >>> [(number, marked) for number, _, marked in code_around(__file__, 3)]
    [(2, False), (3, True), (4, False)]
    """
    found = [(number, linecache.getline(file, number)) for number in range(max(1, line - BESIDE), line + BESIDE + 1)]
    if not linecache.getline(file, line):
        return []
    return [(number, text.rstrip("\n"), number == line) for number, text in found if text]
