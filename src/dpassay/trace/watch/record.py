"""What one run of a user's code drew, at which line, and how the numbers were used."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy import array, asarray, full
from numpy.typing import NDArray

from dpassay.values import dataclass

Array = NDArray[Any]

_PYTHON = Path(os.__file__).parent  # its own library
_PACKAGE = str(Path(__file__).parents[2]) + os.sep  # dpassay's own code
_RUNNER = str(Path(__file__).with_name("tracer.py"))
_LIBRARIES = ("numpy", "scipy", "torch", "pandas", "random", "secrets")


def distinct(values: Array) -> Array:
    """The different values of an array, in order. `np.unique` would import numpy.ma first.

    >>> distinct(np.array([[2, 1], [1, 2]])).tolist()
    [1, 2]
    """
    flat = np.sort(values, axis=None)
    return flat if flat.size < 2 else flat[np.append(True, flat[1:] != flat[:-1])]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the traced code.

    >>> print(CodeLine("/home/me/rewriter.py", 61))
    rewriter.py:61
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@lru_cache(maxsize=8)
def _folders(loaded: tuple[str, ...]) -> tuple[str, ...]:
    """The folders of code that is not the subject's: dpassay's, and those of the loaded libraries."""
    found = [str(Path(__file__).parents[1]) + os.sep]
    for name in loaded:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            found.append(str(Path(file).parent) + os.sep if Path(file).name == "__init__.py" else file)
    return tuple(found)


def is_theirs(file: str) -> bool:
    """Whether a file belongs to neither a library of random numbers nor the tracer, nor to Python itself."""
    ours = _folders(tuple(name for name in _LIBRARIES if name in sys.modules))
    if file.startswith((*ours, "<", _PACKAGE)):
        return False
    return not file.startswith(str(_PYTHON)) or "-packages" + os.sep in file


def caller() -> CodeLine:
    """The innermost line that belongs to neither a library of random numbers nor the tracer."""
    loaded = len(sys.modules)
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_left_out(frame.f_code.co_filename, loaded):
        frame = frame.f_back
    return _line(frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=1024)
def _is_left_out(file: str, loaded: int) -> bool:
    """Whether a file is the tracer's, or that of a library that draws random numbers; `loaded` counts the modules."""
    ours = _folders(tuple(name for name in _LIBRARIES if name in sys.modules))
    return file.startswith((*ours, "<__array_function__")) or "/_" in file[:2]


@lru_cache(maxsize=1024)
def _line(file: str, line: int) -> CodeLine:
    return CodeLine(file, line)


def caller_of_libraries() -> CodeLine:
    """The innermost line that is not in a library, Python's own included."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_theirs(frame.f_code.co_filename):
        frame = frame.f_back
    return CodeLine(frame.f_code.co_filename, frame.f_lineno)


def importing() -> bool:
    """Whether a module is being imported during the run, whose draws are not the mechanism's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _RUNNER:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


@dataclass(frozen=True, eq=False, slots=True)
class NumberFormula:
    """How numbers were made: an elementwise function of nodes and plain numbers."""

    function: Callable[..., Any]
    parts: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The parts with noise in them."""
        return tuple(part for part in self.parts if isinstance(part, Node))


@dataclass(frozen=True, eq=False, slots=True)
class DrawRecord:
    """Numbers from a source of randomness: their distribution with its parameters, their values, and the line.

    Numbers made by a formula from drawn numbers are also a draw. Each number of a process has its own index; those of
    a draw begin at `start`.
    """

    source: str
    distribution: str
    parameters: dict[str, Any]
    values: Array
    place: CodeLine
    run: int
    start: int
    formula: NumberFormula | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that was drawn; () for one number."""
        return self.values.shape

    @property
    def rounding(self) -> float:
        """The relative difference that two sums of the same numbers may have, with a large margin."""
        return 1e-9 if self.values.dtype.itemsize >= 8 or self.values.dtype.kind == "b" else 1e-4

    def __str__(self) -> str:
        given = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters.items())
        weights = asarray(self.parameters.get("p", ()))
        if self.distribution.startswith("choice") and weights.ndim == 1 and equally_likely(weights):
            given = f"{len(weights):,} equally likely"
        size = "1 number" if self.values.size == 1 else f"{self.values.size:,} numbers"
        return f"{self.place} {self.source} {self.distribution}({given}), {size}"


def equally_likely(weights: Array) -> bool:
    """Whether these probabilities are all the same, as where none were given."""
    return bool(weights.size and (weights == weights[0]).all())


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value
    given = asarray(value)
    return f"{float(given):.6g}" if given.ndim == 0 and given.dtype.kind in "iuf" else f"array{given.shape}"


def constant(value: float, shape: tuple[int, ...]) -> Array:
    """An array of one number throughout, which is not written to: single numbers share theirs.

    >>> constant(1.0, ()) is constant(1.0, ()), constant(0.0, (2,)).tolist()
    (True, [0.0, 0.0])
    """
    return _SINGLE[value] if shape == () else full(shape, value)


_SINGLE = {value: asarray(value) for value in (0.0, 1.0)}
for _array in _SINGLE.values():
    _array.flags.writeable = False


def equal_arrays(one: Array, other: Array) -> bool:
    """`np.array_equal` of two arrays, quickly for single numbers.

    >>> equal_arrays(asarray(1.0), asarray(1)), equal_arrays(asarray([1, 2]), asarray([1, 3]))
    (True, False)
    """
    if one.shape == () == other.shape:
        return bool(one == other)
    return np.array_equal(one, other)


@dataclass(eq=False, slots=True)
class Node:
    """Numbers that are an offset plus a sum of factors times drawn numbers: index and factor, each of the same shape.

    If a coordinate has fewer terms than others, the index is −1.
    """

    draws: tuple[DrawRecord, ...]
    terms: tuple[tuple[Array, Array], ...]
    offset: Array
    place: CodeLine
    added: bool = False
    parents: tuple[Node, ...] = ()
    exact: Array | None = None  # the numbers to the last bit, as in the code
    computed: Array | None = None  # what the code computed, if it got other numbers instead
    law: Any = None  # once it is known

    @property
    def index(self) -> Array:
        """The index in the process of the first term."""
        return self.terms[0][0]

    @property
    def factor(self) -> Array:
        """The factor of the first number."""
        return self.terms[0][1]

    @property
    def alone(self) -> bool:
        """Whether no coordinate has more than one term."""
        return len(self.terms) == 1

    @property
    def single(self) -> bool:
        """Whether it is one number with one drawn number in it."""
        return len(self.terms) == 1 and self.offset.shape == () and self.terms[0][0].item() >= 0

    @property
    def unchanged(self) -> bool:
        """Whether these are drawn numbers, unchanged."""
        return self.alone and bool((self.factor == 1).all() and (self.offset == 0).all() and (self.index >= 0).all())

    @property
    def rounding(self) -> float:
        """The relative difference that two sums of the same numbers may have."""
        return max((draw.rounding for draw in self.draws), default=1e-9)

    @property
    def value(self) -> Array:
        """The numbers, up to rounding."""
        if self.single and len(self.draws) == 1 and self.draws[0].values.size == 1:
            return asarray(float(self.offset) + float(self.factor) * float(self.draws[0].values.item()))
        found = asarray(self.offset, dtype=float)
        for part in self.parts():
            found = found + part
        return asarray(found)

    def parts(self) -> Iterator[Array]:
        """The numbers of each term, times its factor; 0 where a coordinate does not have it."""
        for index, factor in self.terms:
            numbers = factor * self.of_numbers(_values_of, index)
            yield numbers if index.size == 1 and index.item() >= 0 else np.where(index < 0, 0.0, numbers)

    def of_numbers(self, of: Callable[[DrawRecord], Any], index: Array | None = None) -> Array:
        """For each number of the first term, or for these indices, the value of a function that takes a whole draw."""
        index = self.index if index is None else index
        if len(self.draws) == 1:
            only = asarray(of(self.draws[0])).reshape(-1)
            if index.size == only.size == 1 and index.item() >= 0:
                return only.reshape(index.shape)
            return asarray(only[np.where(index < 0, 0, index - self.draws[0].start)])
        parts = [asarray(of(draw)).reshape(-1) for draw in self.draws]
        starts = array([draw.start for draw in self.draws])
        before = np.cumsum([0, *(part.size for part in parts)])[:-1]
        which = np.maximum(np.searchsorted(starts, index, side="right") - 1, 0)
        flat = np.concatenate(parts)
        return asarray(flat[np.where(index < 0, 0, before[which] + index - starts[which])])


def _values_of(draw: DrawRecord) -> Array:
    return draw.values


@dataclass(frozen=True, eq=False, slots=True)
class NoisyComparison:
    """A decision of the code that depends on numbers with noise, and its answers.

    The numbers are the differences of the two sides; for a ranking, the ranked numbers themselves.
    """

    place: CodeLine
    name: str
    numbers: Node | None  # None if they are not sums of drawn numbers
    answers: Array

    @property
    def way(self) -> tuple[Any, ...]:
        """Its contribution to the path of a run."""
        return self.place, self.name, self.answers.shape, self.answers.tobytes()


class TooManyDraws(Exception):
    """A run drew far more numbers than others, so it might never end."""


_numbers: list[int] = [0]


@dataclass(eq=False)
class RecordedRun:
    """One run: what was drawn, how it was used, which sources were opaque, and the output.

    Draws take the values of `replaced`, by their index, if the shapes agree.
    """

    number: int
    replaced: dict[int, Array] = field(default_factory=dict)
    draws: list[DrawRecord] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    opaque: list[tuple[str, CodeLine]] = field(default_factory=list)
    processes: list[CodeLine] = field(default_factory=list)  # which lines started other processes
    begun: set[Any] = field(default_factory=set)  # states of generators at which draws began
    reached: set[Any] = field(default_factory=set)  # those after draws, and of generators seeded by the system
    starts: list[tuple[int, Any]] = field(default_factory=list)  # other states or seeds, by the number of draws before
    twisters: set[bool] = field(default_factory=set)  # Mersenne twisters that it used: Python's, numpy's
    compared: list[tuple[int, float]] = field(default_factory=list)  # drawn numbers, by index, with others
    comparisons: list[NoisyComparison] = field(default_factory=list)  # of numbers with noise, in their order
    used: list[Node] = field(default_factory=list)  # numbers that were printed, cast, hashed or used as an index
    handled: list[tuple[str, CodeLine]] = field(default_factory=list)  # how noisy numbers were used besides computing
    batches: list[tuple[str, CodeLine]] = field(default_factory=list)  # how loaders took them
    orders: list[tuple[int, bool, CodeLine]] = field(default_factory=list)  # draws that order or pick, of all of them?
    accounted: list[tuple[str, str, CodeLine]] = field(default_factory=list)  # the sampling that an accountant assumes
    picks: list[DrawRecord] = field(default_factory=list)  # indices of the largest of some noisy numbers, as draws
    absorbed: list[int] = field(default_factory=list)  # where the draws start whose noise decided them
    output: Any = None
    reading: Any = None  # the output read whole
    key: tuple[int, ...] | None = None  # of its random bits
    forced: dict[int, Array] = field(default_factory=dict)  # what numbers with noise are to be, by their number
    most: int = 10**9  # draws, before the code is stopped
    first: int = field(default_factory=lambda: _numbers[0])  # the index of its first number

    def drawn(self, source: str, distribution: str, parameters: dict[str, Any], values: Array) -> DrawRecord:
        """Record a draw, or the requested values in its place if there are any."""
        if len(self.draws) >= self.most:
            raise TooManyDraws(f"more than {self.most:,} draws")
        other = self.replaced.get(len(self.draws))
        if other is not None and other.shape == values.shape and _possible(other, parameters.get("p"), distribution):
            whole = values.dtype.kind in "iu" and other.dtype.kind in "iu"  # one of Python's may need uint64
            values = asarray(other, dtype=None if whole else values.dtype)
        draw = DrawRecord(source, distribution, parameters, array(values), caller(), self.number, numbered(values.size))
        self.draws.append(draw)
        return draw

    def take_bits(self, before: Any, after: Any) -> None:
        """Record the random bits of a draw, by the states of its generator before and after it; None if unknown.

        Draws are independent only if they take different bits.
        """
        if before is None or before == after:  # it needed none
            return
        if before in self.begun:
            self.opaque.append(("the bits of an earlier draw", caller()))
        elif before not in self.reached:
            self.starts.append((len(self.draws), before))
        self.begun.add(before)
        self.reached.add(after)

    def picked(self, p: Array, at: int, absorbed: set[int]) -> int:
        """Record which of some noisy numbers is the largest; `replaced` has another by −1, −2 …, if requested."""
        other = self.replaced.get(-1 - len(self.picks))
        now = at if other is None or int(other) >= len(p) else int(other)
        values = asarray(now)
        self.picks.append(DrawRecord("noise", "choice", {"p": p}, values, caller(), self.number, numbered(1)))
        self.absorbed += sorted(absorbed - set(self.absorbed))
        return now

    def decisions(self) -> list[tuple[int, DrawRecord]]:
        """What was drawn, in order: draws by their number, and picks in place of the noise that decided them."""
        found = [(k, draw) for k, draw in enumerate(self.draws) if draw.start not in self.absorbed]
        found += [(-1 - k, draw) for k, draw in enumerate(self.picks)]
        return sorted(found, key=lambda one: one[1].start)

    def made(self, values: Array, formula: NumberFormula) -> DrawRecord:
        """Numbers that a formula made."""
        name = getattr(formula.function, "__name__", "formula")
        return DrawRecord("formula", name, {}, array(values), caller(), self.number, numbered(values.size), formula)

    def note(self, node: Node, values: Any) -> Any:
        """Record how a draw was used, with its numbers to the last bit; return them, or their requested values."""
        other = self.forced.get(len(self.nodes))
        if other is not None and other.shape == np.shape(values):
            node.computed = np.array(values, dtype=float)
            if isinstance(values, np.ndarray) and values.flags.writeable:
                values[...] = other  # the array itself, which the code may hold
            else:
                values = other.astype(values.dtype) if isinstance(values, np.ndarray) else type(values)(other[()])
        node.exact = array(values, dtype=float)
        self.nodes.append(node)
        return values

    def relative(self, index: Array) -> Array:
        """Indices of numbers that are the same in each run; those of older runs unchanged, below −1."""
        return np.where(index < 0, -1, np.where(index >= self.first, index - self.first, -2 - index))


def _possible(values: Array, p: Any, distribution: str) -> bool:
    """Whether the requested index exists: another input may have fewer things to draw from."""
    return distribution != "choice" or not values.size or bool(values.max() < np.shape(p)[-1])


drawing: list[bool] = []  # not empty inside a draw: some methods call others


def numbered(size: int) -> int:
    """Reserve this many indices, and return the first."""
    _numbers[0] += max(size, 1)
    return _numbers[0] - max(size, 1)


AWAITING = "dpassay async"
_current: list[tuple[RecordedRun, frozenset[int]]] = []  # each with the threads that existed before it


def current() -> RecordedRun | None:
    """The run that is being watched, if there is one and this thread belongs to it.

    Threads that existed before the run belong to others; those that it starts are its own.
    """
    if not _current:
        return None
    run, others = _current[-1]
    return None if threading.get_ident() in others else run


def begin(run: RecordedRun) -> None:
    """Watch a run. Our thread for coroutines, which waits between them, belongs to it."""
    own = {one.ident for one in threading.enumerate() if one.name == AWAITING}
    _current.append((run, frozenset(sys._current_frames()) - {threading.get_ident(), *own}))


def end() -> None:
    """Stop watching it."""
    _current.pop()


@contextmanager
def unwatched() -> Iterator[None]:
    """Suspend watching in this thread, because it slows down long computations that draw nothing."""
    if not _current:
        yield
        return
    _current.append((_current[-1][0], frozenset({threading.get_ident()})))
    try:
        yield
    finally:
        _current.pop()
