"""What one run of somebody's code drew, at which line, and what the numbers became."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# For each distribution of a library the noise it is, and the names of its location and its scale.
NOISES = {
    "laplace": ("laplace", "loc", "scale"),
    "normal": ("gaussian", "loc", "scale"),
    "standard_normal": ("gaussian", "", ""),
    "gauss": ("gaussian", "mu", "sigma"),
    "normalvariate": ("gaussian", "mu", "sigma"),
}
_RUNNER = str(Path(__file__).with_name("replay.py"))
_LIBRARIES = ("numpy", "scipy", "torch", "random", "secrets")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the traced code.

    >>> print(Place("/home/me/rewriter.py", 61))
    rewriter.py:61
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def _folders() -> tuple[str, ...]:
    """Where the code lives that is not the subject's: ours, and that of the libraries that are loaded."""
    found = [str(Path(__file__).parent) + os.sep]
    for name in _LIBRARIES:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            found.append(str(Path(file).parent) + os.sep if Path(file).name == "__init__.py" else file)
    return tuple(found)


def caller() -> Place:
    """The innermost line that belongs to neither a library of random numbers nor the tracer."""
    ours = _folders()
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith((*ours, "<__array_function__")) or "/_" in frame.f_code.co_filename[:2]
    ):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


def importing() -> bool:
    """Whether a module is being imported inside the run: what it draws then is not the mechanism's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _RUNNER:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


@dataclass(frozen=True, eq=False, slots=True)
class Draw:
    """Numbers that a source of randomness gave: their distribution with its parameters, their values, and the line."""

    source: str
    distribution: str
    parameters: dict[str, Any]
    values: Array
    place: Place
    run: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that was drawn; () for one number."""
        return self.values.shape

    @property
    def rounding(self) -> float:
        """Relative: what two sums of the same numbers may differ by, with much to spare."""
        return 1e-9 if self.values.dtype.itemsize >= 8 else 1e-4

    def __str__(self) -> str:
        given = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters.items())
        size = "1 number" if self.values.size == 1 else f"{self.values.size:,} numbers"
        return f"{self.place} {self.source} {self.distribution}({given}), {size}"


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.6g}" if array.ndim == 0 and array.dtype.kind in "iuf" else f"array{array.shape}"


@dataclass(eq=False, slots=True)
class Node:
    """Numbers that are offset + factor · draw, each with the position of its number in the draw.

    `mixed` says that the offset holds other noise: then its loss is only bounded from above.
    """

    draw: Draw
    index: Array
    factor: Array
    offset: Array
    place: Place
    added: bool = False
    mixed: bool = False
    continued: bool = False
    exact: Array | None = None  # the numbers to the last bit, as the code has them

    @property
    def value(self) -> Array:
        """The numbers, up to rounding."""
        return np.asarray(self.offset + self.factor * self.draw.values.reshape(-1)[self.index])


@dataclass(eq=False)
class Run:
    """One run: what was drawn, what became of it, which sources could not be seen into, and the output.

    Draws are given the values of `replaced`, by their number, where the shapes agree.
    """

    number: int
    replaced: dict[int, Array] = field(default_factory=dict)
    draws: list[Draw] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    opaque: list[tuple[str, Place]] = field(default_factory=list)
    output: Any = None

    def drawn(self, source: str, distribution: str, parameters: dict[str, Any], values: Array) -> Draw:
        """Note a draw, with the values that are asked for instead if there are some."""
        other = self.replaced.get(len(self.draws))
        if other is not None and other.shape == values.shape:
            values = np.asarray(other, dtype=values.dtype)
        draw = Draw(source, distribution, parameters, np.array(values), caller(), self.number)
        self.draws.append(draw)
        return draw

    def note(self, node: Node, values: Any) -> None:
        """Note what became of a draw, with its numbers to the last bit."""
        node.exact = np.array(values, dtype=float)
        self.nodes.append(node)


_current: list[tuple[Run, frozenset[int]]] = []  # each with the threads that were there before it


def current() -> Run | None:
    """The run that is being watched, if there is one and this thread belongs to it.

    Threads that were there before the run are other people's; those that it starts are its own.
    """
    if not _current:
        return None
    run, others = _current[-1]
    return None if threading.get_ident() in others else run


def begin(run: Run) -> None:
    """Watch a run."""
    _current.append((run, frozenset(sys._current_frames()) - {threading.get_ident()}))


def end() -> None:
    """Watch it no longer."""
    _current.pop()
