"""Which noisy sum of y is made equal to which of x: noise of one law has the same distribution in any order.

Sorted outputs hide which sum is which, so the i-th smallest of x may be matched with the i-th smallest of y. A matching
is only a guess: trials show whether the outputs agree. docs/proofs/coupling.md, point 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy import full

from dpassay.trace.laws.formulas import bases
from dpassay.trace.laws.losses import SYMMETRIC, Coordinate, PairLoss, composed_loss
from dpassay.trace.laws.number_laws import NOISE_KINDS, node_law
from dpassay.trace.replay.replaying import NoiseSite
from dpassay.trace.watch.record import Array, CodeLine, Node, RecordedRun, distinct
from dpassay.values import dataclass


@dataclass(frozen=True, eq=False)
class Slots:
    """The noisy numbers of a run in order; each contains one drawn number, which no other contains."""

    kinds: Array
    centres: Array
    scales: Array
    drawn: Array  # the positions of the drawn numbers in the run
    tolerance: float  # the possible rounding error of a center

    @classmethod
    def of(cls, run: RecordedRun, nodes: Sequence[Node]) -> Self | None:
        """The numbers of these nodes; None if one contains no noise, or more than one drawn number or law."""
        laws, drawn = [node_law(node) for node in nodes], [bases(node) for node in nodes]
        if not nodes or any(len(one) != 1 or not node.alone for one, node in zip(drawn, nodes, strict=True)):
            return None
        kinds, centres, scales, shares, mixed = (
            np.concatenate([np.reshape(getattr(law, name), -1) for law in laws])
            for name in ("kind", "centre", "scale", "share", "mixed")
        )
        numbers = run.relative(np.concatenate([np.reshape(one, -1) for (one,) in drawn]))
        known = np.isin(kinds, NOISE_KINDS) & ~mixed & np.isfinite(centres) & np.isfinite(scales) & (scales != 0)
        if not (known & (numbers >= 0)).all() or shares.any():
            return None
        if len(distinct(numbers)) != numbers.size:
            return None
        scales = np.where(np.isin(kinds, SYMMETRIC), np.abs(scales), scales)
        tolerance = max(NoiseSite(node, node, released=False).tolerance for node in nodes)
        return cls(kinds, centres, scales, numbers, tolerance)

    def same(self, other: Slots | None) -> bool:
        """Whether another run has the same numbers with the same noise, around the same centers."""
        if other is None or self.kinds.shape != other.kinds.shape:
            return False
        near = np.abs(self.centres - other.centres) <= max(self.tolerance, other.tolerance)
        return bool(
            near.all()
            and np.array_equal(self.kinds, other.kinds)
            and np.array_equal(self.scales, other.scales)
            and np.array_equal(self.drawn, other.drawn)
        )


@dataclass(frozen=True, eq=False)
class Matching:
    """The noisy numbers of x and of y, and which of them are matched."""

    sums: tuple[int, ...]  # the nodes, by their position in a run
    sides: tuple[Slots, Slots]
    partners: Array  # for each number of y, the one of x

    @property
    def swapped(self) -> Matching:
        """With x and y exchanged."""
        return Matching(self.sums, self.sides[::-1], np.argsort(self.partners))

    def fits(self, first: RecordedRun, second: RecordedRun) -> bool:
        """Whether the numbers of a run of x and of one of y are those that were matched."""
        return all(
            side.same(Slots.of(run, [run.nodes[k] for k in self.sums]))
            for side, run in zip(self.sides, (first, second), strict=True)
        )

    @property
    def loss(self) -> PairLoss | None:
        """The loss between matched centers; None if it is unknown."""
        x, y = self.sides
        found = []
        for j, i in enumerate(self.partners.tolist()):
            centres, scales = (
                (float(mine[i]), float(its[j])) for mine, its in ((x.centres, y.centres), (x.scales, y.scales))
            )
            found.append(Coordinate(str(y.kinds[j]), centres, scales))
        return composed_loss(found)


def matchings(uses: Sequence[NoiseSite], runs: tuple[RecordedRun, RecordedRun]) -> Iterator[Matching]:
    """Matchings by size, among the numbers with one law at the same line, and among those at all lines."""
    chosen = _once(uses)
    if chosen is None:
        return
    numbers = {id(node): k for k, node in enumerate(runs[0].nodes)}
    sums = tuple(numbers[id(use.x)] for use in chosen)
    x, y = Slots.of(runs[0], [use.x for use in chosen]), Slots.of(runs[1], [use.y for use in chosen])
    if x is None or y is None or set(x.drawn.tolist()) != set(y.drawn.tolist()):
        return
    lines = [use.x.place for use in chosen for _ in range(use.x.offset.size)]
    tried = [np.arange(len(lines))]
    for places in (lines, [None] * len(lines)):
        partners = _by_size(x, y, places)
        if partners is not None and not any(np.array_equal(partners, one) for one in tried):
            tried.append(partners)
            yield Matching(sums, (x, y), partners)


def _once(uses: Sequence[NoiseSite]) -> list[NoiseSite] | None:
    """The first sums of each drawn number: what is computed from them follows. None if some overlap."""
    kept, seen = list[NoiseSite](), set[int]()
    for use in sorted(uses, key=lambda use: not use.x.added):
        drawn = {int(one) for base in bases(use.x) for one in base.reshape(-1)} - {-1}
        if drawn <= seen:
            continue
        if drawn & seen:
            return None
        seen |= drawn
        kept.append(use)
    return kept


def _by_size(x: Slots, y: Slots, places: Sequence[CodeLine | None]) -> Array | None:
    """For each number of y, the number of x with the same rank, among those with the same law at the same place."""
    groups: tuple[dict[Any, list[int]], ...] = ({}, {})
    for found, side in zip(groups, (x, y), strict=True):
        for k, key in enumerate(zip(side.kinds.tolist(), side.scales.tolist(), places, strict=True)):
            found.setdefault(key, []).append(k)
    partners = full(len(places), -1)
    for key, mine in groups[0].items():
        its = groups[1].get(key, [])
        if len(its) != len(mine):
            return None
        partners[sorted(its, key=lambda k: y.centres[k])] = sorted(mine, key=lambda k: x.centres[k])
    return partners
