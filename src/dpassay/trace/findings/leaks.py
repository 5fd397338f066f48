"""Where a number or a text in the output came from: the first variable that held it, and its line."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

import numpy as np

from dpassay.errors import MechanismError
from dpassay.trace.watch.numbers import plain
from dpassay.trace.watch.record import CodeLine, is_theirs
from dpassay.trace.watch.tracer import Tracer

MOST_LINES = 20_000


def first_holder(tracer: Tracer, x: Any, value: Any) -> tuple[str, CodeLine] | None:
    """Run x once more and watch which variable first holds this value of the output, and at which line.

    None if no variable does, or if the code is too long to be watched line by line.
    """
    if value in (0.0, 1.0, "", None):
        return None  # many variables are
    try:
        search = _ValueSearch(value)
        before = sys.gettrace()
        sys.settrace(search.called)
        try:
            tracer.run(x)
        finally:
            sys.settrace(before)
    except MechanismError:
        return None
    return search.found


class _ValueSearch:
    """Looks for a value in the variables of each function, line by line."""

    def __init__(self, value: Any) -> None:
        self.value, self.lines = value, 0
        self.found: tuple[str, CodeLine] | None = None
        self.last: dict[int, int] = {}

    def called(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A function of the subject begins."""
        file = frame.f_code.co_filename
        if self.found is not None or self.lines > MOST_LINES or not is_theirs(file) or f"-packages{os.sep}" in file:
            return None
        self.last[id(frame)] = frame.f_lineno
        return self.went_on

    def went_on(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A line has finished: another begins, or the function returns."""
        self.lines += 1
        if self.found is not None or self.lines > MOST_LINES:
            return None
        line = self.last.get(id(frame), frame.f_lineno)
        for name, value in list(frame.f_locals.items()):
            if self.found is None and _holds(value, self.value):
                place, code = CodeLine(frame.f_code.co_filename, line), frame.f_code
                given = name in code.co_varnames[: code.co_argcount]
                said = f"a value of the argument {name} of {code.co_name}" if given else f"a value of {name}"
                self.found = (f"{said} ({place})", place)
        if self.found is None and event == "return" and _holds(argument, self.value):
            place = CodeLine(frame.f_code.co_filename, frame.f_lineno)
            self.found = (f"what {frame.f_code.co_name} returns ({place})", place)
        self.last[id(frame)] = frame.f_lineno
        return self.went_on


def _holds(thing: Any, value: Any) -> bool:
    """Whether something is this value, or a short array or list that contains it."""
    thing = plain(thing)
    if isinstance(value, str):
        return isinstance(thing, str) and thing == value
    if isinstance(thing, bool) or not isinstance(value, float):
        return False
    if hasattr(thing, "untyped_storage"):
        thing = thing.detach().cpu().double().numpy()
    if isinstance(thing, int | float | np.number | np.ndarray | list | tuple):
        try:
            array = np.asarray(thing)
        except ValueError:
            return False
        return array.dtype.kind in "iuf" and array.size < 100_000 and bool((array == value).any())
    return False
