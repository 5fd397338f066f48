"""The worst vectors of levels, searched by their largest shifts. Proof: docs/proofs/levels.md.

A table of `level_tables` lets each next level depend on ε, which no vector can. So the largest levels of a vector are
fixed first: one at the start, and more where the bound is largest.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpassay.exact.profiles.level_tables import JOINED, Levels, others
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

SPLITS = 512  # of branches at most, for each row; half of these if coordinates are not counted
_PATIENCE, _LITTLE = 128, 3e-4  # a search ends if the last 128 splits lowered ln δ by less than this
_SLACK = 2e-9  # docs/proofs/levels.md, point 7


@lru_cache(maxsize=4096)  # the same ball is asked about at the same ε again and again, and a table is not quick
def log_delta(levels: Levels, epsilon: float, reach: int) -> float:
    """ln δ(ε) from above, for all vectors of the ball, by tables of `reach` steps of ε."""
    i = min(int(epsilon / levels.step), reach - 1)
    part = min(1.0, epsilon / levels.step - i)
    tops = (1 - part) * np.exp(_tops(levels, reach, i)) + part * np.exp(_tops(levels, reach, i + 1))
    found = np.log(np.maximum(_by_class(levels, tops), 1e-300)) + levels.log_moments
    return float(found.min(axis=1).max()) * (1 - _SLACK) + epsilon / 2 + _SLACK


def _by_class(levels: Levels, tops: Array) -> Array:
    """The largest of those levels that the largest shift of a vector, between two neighboring ones, is rounded to."""
    both = np.maximum(tops[:-1], tops[1:])
    return both if levels.counted else np.concatenate([tops[:1], both[1:]])  # small shifts are not rounded


@dataclass(frozen=True, eq=False)
class _Branch:
    """All vectors that begin with some levels, in falling order, and go on with levels up to a `cap`; 0: with none.

    `mass` are the weights by which values at `start`, `start` + 1, … steps enter that of a row once the fixed levels
    are added, and `own` is what these have by themselves. `tops` are those of the vectors, for each multiplier.
    """

    first: int
    fixed: int
    cap: int
    cost: int
    start: int
    mass: Array
    own: float
    tops: Array

    @property
    def places(self) -> NDArray[np.int64]:
        return self.start + np.arange(len(self.mass))


@lru_cache(maxsize=128)
def _tops(levels: Levels, reach: int, i: int) -> Array:
    """ln of the largest e^(−y/2) δ(y) e^(−λ·cost) of all vectors of levels, from above, at y = i steps, for each λ."""
    search, firsts = _BranchSearch(levels, reach), len(levels.firsts)
    branches = list(search.start(i))
    moments, history = levels.log_moments, []
    tops, ended = (np.full((firsts, len(levels.multipliers)), -math.inf) for _ in range(2))
    for branch in branches:
        (tops if branch.cap else ended)[branch.first] = branch.tops
    tops = np.maximum(tops, ended)
    for _ in range(SPLITS if levels.counted else SPLITS // 2):
        found, least = (_by_class(levels, part) + moments for part in (tops, ended))
        worst = int(found.min(axis=1).argmax())
        history.append(found[worst].min())
        useful = (least[worst] < history[-1]) & (found[worst] > least[worst])
        slow = len(history) > _PATIENCE and history[-_PATIENCE - 1] - history[-1] < _LITTLE
        if slow or not useful.any():
            break
        at = int(np.where(useful, found[worst], math.inf).argmin())
        there = worst, min(firsts - 1, worst + 1)
        chosen = max((b for b in branches if b.first in there and b.cap), key=lambda b: b.tops[at])
        branches.remove(chosen)
        branches += (parts := list(search.split(chosen)))
        ended[chosen.first] = np.max([ended[chosen.first], *(part.tops for part in parts if part.cap == 0)], axis=0)
        tops[chosen.first] = np.max([branch.tops for branch in branches if branch.first == chosen.first], axis=0)
    return np.asarray(tops)


@dataclass(frozen=True)
class _BranchSearch:
    levels: Levels
    reach: int

    def start(self, i: int) -> Iterator[_Branch]:
        """All vectors, by their largest level."""
        nothing = _Branch(0, 0, 0, 0, i, np.ones(1), 0.0, np.full(len(self.levels.multipliers), math.inf))
        yield self._capped(nothing, 0)
        for first, level in enumerate(self.levels.firsts):
            if one := self._longer(nothing, level):
                one = replace(one, first=first)
                yield self._capped(one, max(other for other in others(self.levels, self.reach) if other <= level))

    def split(self, branch: _Branch) -> Iterator[_Branch]:
        """The vectors whose next level is the largest one allowed, and all others."""
        if longer := self._longer(branch, branch.cap):
            yield self._capped(longer, longer.cap)
        yield self._capped(branch, max(level for level in others(self.levels, self.reach) if level < branch.cap))

    def _longer(self, branch: _Branch, level: int) -> _Branch | None:
        """One more level is fixed, if there is room for it."""
        cost, step = branch.cost + self.levels.paid(level), self.levels.step
        if level == 0 or cost > self.levels.largest_cost:
            return None
        own = branch.own + float((branch.mass * _own(branch.places, level, step)).sum())
        mass = np.convolve(branch.mass, _kernel(level, step))
        full = self.levels.counted and branch.fixed + 1 == self.levels.dim
        return replace(
            branch,
            fixed=branch.fixed + 1,
            cap=0 if full else level,
            cost=cost,
            start=branch.start - level,
            mass=mass,
            own=own,
        )

    def _capped(self, branch: _Branch, cap: int) -> _Branch:
        """The vectors of a branch that go on with levels up to the cap."""
        levels, tables = self.levels, others(self.levels, self.reach)[cap]
        rest = tables[min(branch.fixed, len(tables)) - 1][:, : (levels.largest_cost - branch.cost) // JOINED + 1]
        weights = np.bincount(np.minimum(np.abs(branch.places), self.reach), branch.mass, self.reach + 1)
        values = np.einsum("i,ij->j", weights, rest)  # no BLAS, whose threads cost more here than they save
        costs = branch.cost + JOINED * np.arange(len(values))
        tops = (np.log(values + branch.own) - np.multiply.outer(levels.multipliers, costs)).max(axis=1)
        if cap or not levels.counted:  # otherwise no columns were joined
            tops += np.maximum(0, levels.usual - levels.multipliers) * (JOINED - 1)
        return replace(branch, cap=cap, tops=np.minimum(tops, branch.tops))


def _kernel(level: int, step: float) -> Array:
    """One more coordinate of a level: docs/proofs/levels.md, point 2."""
    kernel = np.full(2 * level + 1, step / 4)
    kernel[[0, -1]] = 1 / 2 + step / 8
    return np.asarray(kernel * math.exp(-level * step / 2))


def _own(places: NDArray[np.int64], level: int, step: float) -> Array:
    """What a coordinate of a level has by itself."""
    return np.asarray(math.exp(-level * step / 2) * np.expm1(np.maximum(0, level - np.abs(places)) * (step / 2)))
