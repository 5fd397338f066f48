"""The replay: run y with the noise that makes h(y) + z′ equal to h(x) + z, and check whether the outputs agree.

If they do, everything after the noise is post-processing, in these runs; otherwise, the input also reaches the
output in another way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import array, asarray, full, zeros

from dpassay.errors import MechanismError
from dpassay.trace.laws.formulas import covariance_of, sources_of
from dpassay.trace.laws.number_laws import NOISE_KINDS, NodeLaw, law_of, node_law
from dpassay.trace.natural.outputs import ROUNDING, leaves, same
from dpassay.trace.replay.solving import Wanted
from dpassay.trace.watch.record import Array, DrawRecord, Node, RecordedRun, distinct
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

STRETCH = (-30, 1000, 1)  # times the usual noise
_PASSES = 5
MONOTONE = {
    *(np.clip, np.round, np.around, np.rint, np.floor, np.ceil, np.trunc, np.sign, np.maximum, np.minimum, np.exp),
    *(np.tanh, np.greater, np.greater_equal, np.less, np.less_equal),
}


def values_of(run: RecordedRun) -> dict[int, Array]:
    """What was drawn, by the number of the draw."""
    return {number: draw.values for number, draw in enumerate(run.draws)}


@dataclass(frozen=True, eq=False)
class NoiseSite:
    """A place where noise hides the input: the same numbers in a run of x and in one of y.

    `released` means that they are in the output unchanged.
    """

    x: Node
    y: Node
    released: bool

    @property
    def laws(self) -> tuple[NodeLaw, NodeLaw]:
        """The laws of the numbers, for x and for y."""
        return node_law(self.x), node_law(self.y)

    @property
    def shift(self) -> Array:
        """How much more noise y needs than x, in units of the first number, to give the same sum."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return asarray((self.x.offset - self.y.offset) / self.y.factor)

    @property
    def gap(self) -> Array:
        """The difference of what is hidden."""
        with np.errstate(invalid="ignore"):
            return asarray(self.laws[0].centre - self.laws[1].centre)

    @property
    def tolerance(self) -> float:
        """The possible rounding error of a gap."""
        parts = (self.x.offset, self.y.offset, self.x.value)
        if all(part.shape == () for part in parts):
            sizes = (abs(float(part)) for part in parts)
            return self.x.rounding * max((one for one in sizes if math.isfinite(one)), default=0.0)
        most = max(np.abs(part[np.isfinite(part)]).max(initial=0.0) for part in parts)
        return float(self.x.rounding * most)

    @property
    def shift_tolerance(self) -> float:
        """The possible rounding error of a shift."""
        return float(self.tolerance / np.abs(self.y.factor[self.y.factor != 0]).min(initial=np.inf))

    def like(self, other: NoiseSite) -> bool:
        """Whether other runs hide the same by the same noise."""
        if self.gap.shape != other.gap.shape:
            return False
        atol = max(self.tolerance, other.tolerance)
        pairs = [(self.gap, other.gap), *((a.scale, b.scale) for a, b in zip(self.laws, other.laws, strict=True))]
        return all(np.array_equal(a.kind, b.kind) for a, b in zip(self.laws, other.laws, strict=True)) and all(
            np.allclose(one, its, rtol=1e-9, atol=atol, equal_nan=True) for one, its in pairs
        )

    @property
    def draws(self) -> tuple[DrawRecord, ...]:
        """What was drawn for x, including inside formulas."""
        found = {one.start: one for draw in self.x.draws for one in sources_of(draw)}
        return tuple(found[start] for start in sorted(found))


@dataclass(frozen=True, eq=False)
class MonotoneImage:
    """Numbers of the output that are a monotone function of numbers with noise, in a run of x and in one of y."""

    x: Node
    y: Node
    of_x: Node
    of_y: Node


@dataclass(frozen=True, eq=False)
class Replay:
    """A run of x, and one of y with the noise that gives the same sums."""

    x: RecordedRun
    y: RecordedRun
    uses: tuple[NoiseSite, ...]
    coarse: tuple[MonotoneImage, ...]
    differing: tuple[int, ...]  # leaves of the output that differ
    comparable: bool = True  # whether both runs did the same operations

    @property
    def equal(self) -> bool:
        """Whether the outputs are the same, up to rounding."""
        return not self.differing


def released_nodes(tracer: Tracer, x: Any, y: Any) -> tuple[frozenset[int], bool]:
    """The nodes whose numbers are in the output of both inputs unchanged, even with much more noise than usual.

    A clamp has no effect in most runs, but it does with more noise. The second result is whether more noise makes the
    code do something else.
    """
    found = []
    for one in (x, y):
        usual, starts, laws = tracer.run(one), dict[int, int](), list[NodeLaw]()
        feeding = feeding_of(usual)
        for factor in STRETCH:
            values = values_of(usual)
            more = {k: stretched(draw, k, factor, feeding) for k, draw in enumerate(usual.draws)}
            try:
                run = tracer.run(one, {**values, **{k: to for k, to in more.items() if to is not None}})
            except MechanismError:
                return frozenset(), True
            found.append((len(run.nodes), _released(run, starts) & _with_laws_of(run, laws)))
    branching = len({n for n, _ in found}) > 1
    return (frozenset() if branching else frozenset.intersection(*(nodes for _, nodes in found))), branching


def _with_laws_of(run: RecordedRun, laws: list[NodeLaw]) -> frozenset[int]:
    """The nodes with the same noise as in an earlier run: if the noise depends on a branch, its law is not known."""
    own = [node_law(node) for node in run.nodes]
    laws += own if not laws else []
    return frozenset(
        number
        for number, (before, now) in enumerate(zip(laws, own, strict=False))
        if np.array_equal(before.kind, now.kind)
        and all(
            np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-6, atol=1e-12, equal_nan=True)
            for one, other in ((before.scale, now.scale), (before.share, now.share), (before.atom, now.atom))
        )
    )


def feeding_of(run: RecordedRun) -> dict[int, tuple[float, float]]:
    """Draws from which a formula makes noise, with the part of (0, 1) that gives numbers."""
    found: dict[int, tuple[float, float]] = {}
    for node in run.nodes:
        for draw in node.draws:
            if draw.formula is not None and (law := law_of(draw)) is not None and law.kind in NOISE_KINDS:
                found.update({one.start: law.span for one in sources_of(draw) if one.start not in found or law.share})
    return found


def stretched(draw: DrawRecord, k: int, factor: int, feeding: dict[int, tuple[float, float]]) -> Array | None:
    """More noise: larger numbers, or for uniform ones those near the ends."""
    law = law_of(draw)
    if law is None:
        return None if covariance_of(draw) is None else draw.values * factor
    if law.kind in ("laplace", "gaussian"):
        return draw.values * factor
    if law.kind in ("exponential", "geometric"):
        odd = (np.arange(draw.values.size).reshape(draw.shape) + k) % 2 == 1
        return np.where(odd == (factor > 0), draw.values, draw.values * abs(factor))
    if law.kind == "bernoulli" and draw.values.dtype.kind in "biuf":
        return draw.values if factor == 1 else np.full_like(draw.values, factor > 1)
    if law.kind != "uniform":
        return None
    low, high = feeding.get(draw.start, (0.0, 1.0))
    least = 2.0**-53 if draw.values.dtype.itemsize >= 8 else 2.0**-24
    t = (draw.values.reshape(-1) - law.location) / law.scale
    if factor < 0:
        t = full(t.shape, low + least)
    elif factor > 1:
        t = full(t.shape, high - least)
    elif high - low == 1:
        return None
    return asarray((law.location + law.scale * t).reshape(draw.shape))


def replay(tracer: Tracer, x: Any, y: Any, released: frozenset[int], given: dict[int, Array] | None = None) -> Replay:
    """Run x, then y with the noise of x, then y with the noise that compensates for the difference."""
    first = tracer.run(x, given)
    noise = values_of(first)
    for _ in range(_PASSES):
        second = tracer.run(y, noise)
        found = _uses(first, second, released)
        if found is None:
            return Replay(first, second, (), (), _differing(first, second), comparable=False)
        uses = found
        wanted = Wanted(second)
        for use in uses:
            wanted.node(use.y, use.x.value)
        needed = wanted.noise()
        settled = all(np.allclose(needed[k], noise[k], rtol=1e-13, atol=0, equal_nan=True) for k in noise)
        noise = needed
        if settled:
            break
    differing = _differing(first, second)
    if differing and uses:  # a text may show no more than the rounding of a sum
        numbers = {id(node): k for k, node in enumerate(first.nodes)}
        exact = {numbers[id(use.x)]: use.x.exact for use in uses if use.x.exact is not None}
        differing = _differing(first, tracer.run(y, noise, forced=exact))
    return Replay(first, second, uses, _coarse(first, second, released), differing)


def _differing(first: RecordedRun, second: RecordedRun) -> tuple[int, ...]:
    rounding = max((draw.rounding for draw in first.draws), default=ROUNDING)
    equal = same(leaves(first.output), leaves(second.output), rounding)
    return tuple(i for i, one in enumerate(equal) if not one)


def released_in(run: RecordedRun) -> frozenset[int]:
    """The nodes whose numbers are in the output of this run."""
    return _released(run, {})


def _released(run: RecordedRun, starts: dict[int, int]) -> frozenset[int]:
    """The nodes whose numbers are in the output, one after the other, as they were computed.

    Numbers that are all NaN must be at the same position as in an earlier run.
    """
    output = leaves(run.output)
    at = {value: i for i, value in reversed(list(enumerate(output))) if isinstance(value, float)}
    numbers = array([value if isinstance(value, float) else np.inf for value in output])
    found = set()
    for number, node in enumerate(run.nodes):
        values = node.exact.reshape(-1) if node.exact is not None else zeros(0)
        some = np.nonzero(~np.isnan(values))[0]
        start = at.get(float(values[some[0]]), -1) - int(some[0]) if some.size else starts.get(number, -1)
        if start >= 0 and np.array_equal(numbers[start : start + values.size], values, equal_nan=True):
            found.add(number)
            starts[number] = start
    return frozenset(found)


def _uses(first: RecordedRun, second: RecordedRun, released: frozenset[int]) -> tuple[NoiseSite, ...] | None:
    """The sums that hide something, of both runs; None if the runs did not do the same."""
    if len(first.nodes) != len(second.nodes) or len(first.draws) != len(second.draws):
        return None
    going_on: set[int] = set()
    found = []
    for number, (one, other) in reversed(list(enumerate(zip(first.nodes, second.nodes, strict=True)))):
        alike = one.place == other.place and one.offset.shape == other.offset.shape
        if not alike or len(one.terms) != len(other.terms) or not _same_numbers(first, one, second, other):
            return None
        useful = _known(one, number in released) and _known(other, number in released)
        if useful and (number in released or id(one) not in going_on):
            found.append(NoiseSite(one, other, number in released))
        if useful or id(one) in going_on:
            mark_ancestors(one, going_on)
    found.reverse()
    return tuple(sorted(found, key=lambda use: not use.released))


def _known(node: Node, released: bool) -> bool:
    """Whether all numbers have a law that is known; uniform and Bernoulli numbers hide only what they are added to."""
    kinds = set(distinct(node_law(node).kind).tolist()) - {"none"}
    return bool(kinds) and kinds <= {*NOISE_KINDS, *(("uniform", "bernoulli") if released else ())}


def _coarse(first: RecordedRun, second: RecordedRun, released: frozenset[int]) -> tuple[MonotoneImage, ...]:
    found = []
    both = min(len(first.nodes), len(second.nodes))  # a branch may compute less
    for number in (one for one in sorted(released) if one < both):
        one, other = first.nodes[number], second.nodes[number]
        if not _known(one, released=True) and (pair := _behind(one, other)) is not None:
            found.append(MonotoneImage(one, other, *pair))
    return tuple(found)


def _behind(one: Node, other: Node) -> tuple[Node, Node] | None:
    """The numbers with noise of which these are elementwise monotone functions, in order."""
    while not (_known(one, released=False) and _known(other, released=False)):
        pair = []
        for node in (one, other):
            draw = node.draws[0]
            in_order = np.array_equal(node.index.reshape(-1) - draw.start, np.arange(draw.values.size))
            if len(node.draws) != 1 or draw.formula is None or not node.alone or not in_order:
                return None
            parts = draw.formula.nodes
            if draw.formula.function not in MONOTONE or len(parts) != 1 or parts[0].offset.shape != draw.shape:
                return None
            pair.append(parts[0])
        if pair[0] is one:
            return None
        one, other = pair
    return one, other


def mark_ancestors(node: Node, going_on: set[int]) -> None:
    """Add the nodes that a node was computed from, by their identity."""
    waiting = list(node.parents)
    while waiting:
        one = waiting.pop()
        if id(one) not in going_on:
            going_on.add(id(one))
            waiting += one.parents


def _same_numbers(first: RecordedRun, one: Node, second: RecordedRun, other: Node) -> bool:
    return all(
        np.array_equal(first.relative(mine), second.relative(its))
        for (mine, _), (its, _) in zip(one.terms, other.terms, strict=True)
    )
