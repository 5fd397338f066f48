"""A run of y with the noise that makes its sums those of a run of x, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay.trace.replay.replaying import NoiseSite, values_of
from dpassay.trace.replay.solving import Wanted
from dpassay.trace.watch.record import Array, DrawRecord, Node, RecordedRun, equal_arrays
from dpassay.trace.watch.tracer import Tracer

_TRIES = 3
OTHER_STEPS = "what the code does with the same noise depends on the input, so their sums could not be made equal"
OUT_OF_REACH = "no noise was found with which the sums of both inputs are equal"
_PLAIN = {int, float, bool, str}


def shifted(
    tracer: Tracer,
    first: RecordedRun,
    y: Any,
    sums: Sequence[int],
    partners: Array | None = None,
    gaps: Sequence[Array] = (),
) -> RecordedRun | str:
    """A run of y with the noise that makes these sums those of a run of x, to the last bit; if there is none, why.

    The noise makes the sums equal up to rounding, and the rounding is copied from x. `partners` has, for each number
    of y, counted through all sums, the one of x that it is made equal to; by default the one at its own position.
    `gaps` are estimates of the additional noise, for each sum.
    """
    nodes = [first.nodes[k] for k in sums]
    targets = _at_partners([node.value for node in nodes], partners)
    exact = _at_partners([node.value if node.exact is None else node.exact for node in nodes], partners)

    def run(noise: dict[int, Array]) -> RecordedRun | None:
        found = tracer.run(y, noise, forced=dict(zip(sums, exact, strict=True)), key=first.key)
        if not _same_steps(first, found):
            return None
        tolerances = [
            NoiseSite(one, found.nodes[k], released=False).tolerance for k, one in zip(sums, nodes, strict=True)
        ]
        if partners is not None:
            tolerances = [max(tolerances)] * len(sums)
        there = [_close(found.nodes[k].value, to, by) for k, to, by in zip(sums, targets, tolerances, strict=True)]
        return found if all(there) else None

    if gaps and all(node.offset.shape == gap.shape for node, gap in zip(nodes, gaps, strict=True)):
        guess = Wanted(first)
        for node, gap in zip(nodes, gaps, strict=True):
            guess.node(node, node.value + gap)
        if (found := run(guess.noise())) is not None:
            return found
    noise = values_of(first)
    for _ in range(_TRIES):
        second = tracer.run(y, noise)
        if not _same_steps(first, second):
            return OTHER_STEPS
        wanted = Wanted(second)
        for k, target in zip(sums, targets, strict=True):
            wanted.node(second.nodes[k], target)
        noise = wanted.noise()
        if (found := run(noise)) is not None:
            return found
    return OUT_OF_REACH


def still_different(where: str, run: RecordedRun) -> str:
    """The message about a part of the output that differs where all sums with noise are the same."""
    said = f"{where} differs although all sums with noise are the same, so the input or other randomness reaches it too"
    return f"{said} ({' at '.join(map(str, run.handled[0]))})" if run.handled else said


def _same_steps(first: RecordedRun, second: RecordedRun) -> bool:
    """Whether two runs drew equally many numbers and used them in the same way at the same lines."""
    if len(first.nodes) != len(second.nodes) or len(first.draws) != len(second.draws):
        return False
    return all(
        one.place == other.place and one.offset.shape == other.offset.shape and len(one.terms) == len(other.terms)
        for one, other in zip(first.nodes, second.nodes, strict=True)
    )


def _at_partners(values: Sequence[Array], partners: Array | None) -> list[Array]:
    """The values of x at the positions of y."""
    if partners is None:
        return list(values)
    flat = np.concatenate([np.reshape(one, -1) for one in values])[partners]
    ends = np.cumsum([one.size for one in values])[:-1]
    return [part.reshape(one.shape) for part, one in zip(np.split(flat, ends), values, strict=True)]


def same_noise(one: Node, other: Node) -> bool:
    """Whether two nodes of different runs differ only in what was drawn."""
    if len(one.draws) != len(other.draws) or len(one.terms) != len(other.terms):
        return False
    return (
        equal_arrays(one.offset, other.offset)
        and all(equal_arrays(mine[1], its[1]) for mine, its in zip(one.terms, other.terms, strict=True))
        and all(map(_alike, one.draws, other.draws))
    )


def _alike(one: DrawRecord, other: DrawRecord) -> bool:
    plain = one.formula is None and other.formula is None and one.distribution == other.distribution
    if not plain or one.shape != other.shape or one.parameters.keys() != other.parameters.keys():
        return False
    pairs = ((value, other.parameters[name]) for name, value in one.parameters.items())
    return all(type(a) is type(b) and (a == b if type(a) in _PLAIN else np.array_equal(a, b)) for a, b in pairs)


def close(one: Node, other: Node) -> bool:
    """Whether two nodes have the same numbers up to rounding."""
    same = one.offset.shape == other.offset.shape
    return same and _close(other.value, one.value, NoiseSite(one, other, released=False).tolerance)


def _close(found: Array, target: Array, tolerance: float) -> bool:
    """Whether the sums are equal up to rounding, so that making them equal changes only the rounding."""
    if found.shape == () == target.shape:
        return abs(float(target) - float(found)) <= 10 * tolerance
    with np.errstate(invalid="ignore"):
        return bool((np.abs(target - found) <= 10 * tolerance).all())
