"""The replay: run y with the noise that makes h(y) + z′ equal h(x) + z, and see whether the outputs are the same.

If they are, everything after the noise is post-processing, in these runs; if they are not, the input reaches the output
in another way too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpassay.audit.python_objects import awaited
from dpassay.audit.targets import Adapted, Loaded, as_mechanism
from dpassay.errors import MechanismError
from dpassay.pipeline.mechanism import Failure
from dpassay.trace.numbers import plain
from dpassay.trace.record import NOISES, Array, Draw, Node, Run
from dpassay.trace.sources import watch, watched_generator

ROUNDING = 1e-9  # relative, of doubles
STRETCH = (1, -30, 1000)  # times the usual noise
_PASSES = 5


def leaves(output: Any) -> list[Any]:
    """The numbers and texts of an output, in order.

    >>> leaves({"a": [1, np.array([2.0, 3.0])], "b": "word"})
    [1.0, 2.0, 3.0, 'word']
    """
    return list(_leaves(output))


def _leaves(output: Any) -> Iterator[Any]:
    if hasattr(output, "detach"):
        output = output.detach().cpu().double().numpy()
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, list | tuple):
        for one in output:
            yield from _leaves(one)
    elif isinstance(output, bool | int | float | np.number):
        yield float(output)
    else:
        yield output if isinstance(output, str | bytes | None) else repr(output)


def same(first: list[Any], second: list[Any], rounding: float = ROUNDING) -> list[bool]:
    """Which leaves of two outputs are equal, up to rounding."""
    if len(first) != len(second):
        return [False] * max(len(first), len(second))
    sizes = [abs(one) for one in first if isinstance(one, float) and math.isfinite(one)]
    usual = statistics.median(sizes) if sizes else 0.0
    return [one == other or _close(one, other, rounding, usual) for one, other in zip(first, second, strict=True)]


def _close(one: Any, other: Any, rounding: float, usual: float) -> bool:
    if not (isinstance(one, float) and isinstance(other, float)):
        return False
    both_nan = math.isnan(one) and math.isnan(other)
    return both_nan or abs(one - other) <= rounding * max(abs(one), abs(other), usual)


@dataclass
class Tracer:
    """Runs a subject, each time with every source of randomness watched.

    >>> tracer = Tracer(lambda x, rng: x + rng.laplace(scale=2))
    >>> print(*(draw.distribution for draw in tracer.run(3.0).draws))
    laplace
    """

    subject: Any
    seed: int = 0
    runs: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.mechanism = as_mechanism(self.subject)

    def run(self, x: Any, replaced: dict[int, Array] | None = None) -> Run:
        """One run on x, with a generator of its own if the subject takes one."""
        run = Run(self.runs, replaced or {})
        rng = watched_generator(np.random.Generator(np.random.PCG64([self.seed, self.runs])))
        self.runs += 1
        mechanism = self.mechanism.mechanism if isinstance(self.mechanism, Loaded) else self.mechanism
        inner = mechanism.function if isinstance(mechanism, Adapted) else mechanism
        with watch(run, [self.subject, inner]):
            output = awaited(mechanism.sample(x, 1, rng))[0]
            run.output = plain(output)
        if isinstance(output, Failure):
            raise MechanismError(f"the traced code raised {output.kind}: {output.said}")
        return run


def values_of(run: Run) -> dict[int, Array]:
    """What was drawn, by the number of the draw."""
    return {number: draw.values for number, draw in enumerate(run.draws)}


@dataclass(frozen=True, eq=False)
class Use:
    """A place where noise hides the input: the same numbers in a run of x and in one of y.

    `released` says that they are in the output as they are.
    """

    x: Node
    y: Node
    released: bool

    @property
    def shift(self) -> Array:
        """How much more noise y needs than x, in units of the draw, to give the same sum."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.x.offset - self.y.offset) / self.y.factor)

    @property
    def tolerance(self) -> float:
        """What rounding can make of it."""
        parts = (self.x.offset, self.y.offset, self.x.value)
        most = max(np.abs(part[np.isfinite(part)]).max(initial=0.0) for part in parts)
        factor = np.abs(self.y.factor[self.y.factor != 0]).min(initial=np.inf)
        return float(self.x.draw.rounding * most / factor)


@dataclass(frozen=True, eq=False)
class Replay:
    """A run of x, and one of y with the noise that gives the same sums."""

    x: Run
    y: Run
    uses: tuple[Use, ...]
    differing: tuple[int, ...]  # leaves of the output that are not the same
    comparable: bool = True  # whether both runs did the same operations

    @property
    def equal(self) -> bool:
        """Whether the outputs are the same, up to rounding."""
        return not self.differing


def released_nodes(tracer: Tracer, x: Any, y: Any) -> frozenset[int]:
    """The nodes whose numbers are in the output of both inputs as they are, also with much more noise than usual.

    A clamp changes nothing in most runs; with more noise it does.
    """
    found = []
    for one in (x, y):
        usual = tracer.run(one)
        for factor in STRETCH:
            values = values_of(usual)
            more = {k: values[k] * factor for k, draw in enumerate(usual.draws) if draw.distribution in NOISES}
            try:
                run = tracer.run(one, {**values, **more})
            except MechanismError:
                return frozenset()
            found.append((len(run.nodes), _released(run)))
    return frozenset.intersection(*(nodes for _, nodes in found)) if len({n for n, _ in found}) == 1 else frozenset()


def replay(tracer: Tracer, x: Any, y: Any, released: frozenset[int]) -> Replay:
    """Run x, then y with the noise of x, then y with the noise that makes up for the difference."""
    first = tracer.run(x)
    noise = values_of(first)
    for _ in range(_PASSES):
        second = tracer.run(y, noise)
        found = _uses(first, second, released)
        if found is None:
            return Replay(first, second, (), _differing(first, second), comparable=False)
        uses = found
        needed = _making_up(first, second, uses)
        settled = all(np.allclose(needed[k], noise[k], rtol=1e-13, atol=0, equal_nan=True) for k in noise)
        noise = needed
        if settled:
            break
    return Replay(first, second, uses, _differing(first, second))


def _differing(first: Run, second: Run) -> tuple[int, ...]:
    rounding = max((draw.rounding for draw in first.draws), default=ROUNDING)
    equal = same(leaves(first.output), leaves(second.output), rounding)
    return tuple(i for i, one in enumerate(equal) if not one)


def _released(run: Run) -> frozenset[int]:
    """The nodes whose numbers are in the output, one after the other, as they were computed."""
    output = leaves(run.output)
    at = {value: i for i, value in reversed(list(enumerate(output))) if isinstance(value, float)}
    numbers = np.array([value if isinstance(value, float) else np.nan for value in output])
    found = set()
    for number, node in enumerate(run.nodes):
        values = node.exact.reshape(-1) if node.exact is not None else np.zeros(0)
        start = at.get(float(values[0])) if values.size else None
        if start is not None and np.array_equal(numbers[start : start + values.size], values):
            found.add(number)
    return frozenset(found)


def _uses(first: Run, second: Run, released: frozenset[int]) -> tuple[Use, ...] | None:
    """The sums that hide something, of both runs; None if the runs did not do the same."""
    if len(first.nodes) != len(second.nodes) or len(first.draws) != len(second.draws):
        return None
    found = []
    for number, (one, other) in enumerate(zip(first.nodes, second.nodes, strict=True)):
        alike = one.place == other.place and one.offset.shape == other.offset.shape
        if not alike or _number(first, one.draw) != _number(second, other.draw):
            return None
        if number in released or not one.continued:
            found.append(Use(one, other, number in released))
    return tuple(sorted(found, key=lambda use: not use.released))


def _number(run: Run, draw: Draw) -> int:
    """The place of a draw in its run; −1 − its old run if it was drawn before."""
    return next((k for k, one in enumerate(run.draws) if one is draw), -1 - draw.run)


def _making_up(first: Run, second: Run, uses: tuple[Use, ...]) -> dict[int, Array]:
    """The noise that y needs; where several sums ask for different noise, the first one gets its own."""
    needed = {k: draw.values.astype(float).reshape(-1).copy() for k, draw in enumerate(first.draws)}
    done = {k: np.zeros(values.size, bool) for k, values in needed.items()}
    for use in uses:
        k = _number(second, use.y.draw)
        if k < 0:
            continue
        index, shift = use.y.index.reshape(-1), use.shift.reshape(-1)
        usable = np.isfinite(shift) & ~done[k][index]
        needed[k][index[usable]] = first.draws[k].values.reshape(-1)[index[usable]] + shift[usable]
        done[k][index[usable]] = True
    return {k: values.reshape(first.draws[k].shape) for k, values in needed.items()}
