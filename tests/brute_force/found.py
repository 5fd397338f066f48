"""The laws of all pairs of a pipeline, and the largest loss among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from brute_force.behind import Behind
from brute_force.cells import Family, columns, mixed
from brute_force.laws import Array, Noise
from brute_force.records import Refused

FINENESS = {1: {1: 40, 2: 12}, 2: {1: 150, 2: 30}, 3: {1: 1000, 2: 120}}
COARSE = 1.01  # a hull of values on a grid is a little too low
MOST_CELLS = 3_000_000  # pairs times cells in one matrix
ROUGH, MANY = 6, 400  # more pairs of many coordinates than this are first compared on rough cells


def _excess(p: Array, q: Array, epsilon: float) -> Array:
    """Σ max(0, P − e^ε Q) of each row, and the same with P and Q exchanged: the larger one."""
    factor = np.exp(min(epsilon, 700.0))
    with np.errstate(over="ignore", under="ignore"):
        return np.maximum(np.maximum(p - factor * q, 0).sum(1), np.maximum(q - factor * p, 0).sum(1))


def _largest_ratio(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        tiny = 1e-250
        logs = np.where(
            (p > tiny) & (q > tiny),
            np.abs(np.log(np.maximum(p, tiny)) - np.log(np.maximum(q, tiny))),
            np.where(((p > 1e-14) & (q == 0)) | ((q > 1e-14) & (p == 0)), inf, 0),
        )
    return logs.max(1)


def _outermost(family: Family, sign: float) -> bool:
    """Whether the outermost values of two mixtures differ: with Gaussian noise the loss is then unbounded."""
    p = np.where(family.weights_p[None] > 0, sign * family.p[:, :, 0], -inf).max(1)
    q = np.where(family.weights_q[None] > 0, sign * family.q[:, :, 0], -inf).max(1)
    return bool((np.abs(p - q) > 1e-9).any())


def few(family: Family, most: int) -> Family:
    """Of too many pairs those that are farthest apart, and every so many of all."""
    if len(family.p) <= most or family.hull is not None:
        return family
    apart = np.abs(family.p[:, -1] - family.q[:, -1]).sum(-1)
    farthest = np.argsort(-apart, kind="stable")[: most // 2]
    spread = np.linspace(0, len(family.p) - 1, most - len(farthest)).astype(int)
    return family.rows(np.unique(np.concatenate([farthest, spread])))


@dataclass(frozen=True)
class Channel:
    """A noise with the stages behind it, on cells of some fineness."""

    law: Noise
    after: Behind
    fineness: int
    kinks: int = 400

    def laws(self, family: Family, ratios: bool = False) -> Iterator[tuple[Array, Array]]:
        """The masses (or what decides ratios) of the pairs, in parts."""
        known, where_p, where_q = [], [], []
        for j in range(family.p.shape[2]):
            both = np.concatenate([family.p[:, :, j].ravel(), family.q[:, :, j].ravel()])
            unique, where = np.unique(np.round(both, 10), return_inverse=True)
            cut = family.p[:, :, j].size
            where_p.append(where[:cut].reshape(family.p.shape[:2]))
            where_q.append(where[cut:].reshape(family.q.shape[:2]))
            made = columns(self.law, self.after, unique, self.fineness, self.kinks)
            table = made.ratios if ratios else made.masses
            flat = family.p.shape[2] > 1  # cells that hardly anything falls into only cost time
            known.append(table[:, table.max(0) > (1e-30 if ratios else 1e-9)] if flat else table)
        at_p, at_q = np.stack(where_p, -1), np.stack(where_q, -1)
        most = max(1, MOST_CELLS // max(int(np.prod([k.shape[1] for k in known])), 1))
        for i in range(0, len(at_p), most):
            rows = slice(i, i + most)
            yield mixed(known, at_p[rows], family.weights_p), mixed(known, at_q[rows], family.weights_q)

    def deltas(self, family: Family, epsilon: float) -> Array:
        """δ(ε) of each pair, from below."""
        return np.concatenate([_excess(p, q, epsilon) for p, q in self.laws(family)])

    def composed(self, family: Family, epsilon: float, steps: int) -> Array:
        """The same of `steps` independent outputs."""
        found = []
        for p, q in self.laws(family):
            for a, b in zip(p, q, strict=True):
                used = (a > 0) | (b > 0)
                one, other = pa, qa = a[used], b[used]
                if len(one) ** steps > MOST_CELLS:
                    raise Refused("many steps")
                for _ in range(steps - 1):
                    pa, qa = np.multiply.outer(pa, one).ravel(), np.multiply.outer(qa, other).ravel()
                found.append(_excess(pa[None], qa[None], epsilon)[0])
        return np.array(found)

    def pure_losses(self, family: Family) -> Array:
        """The largest logarithm of a ratio of each pair."""
        return np.concatenate([_largest_ratio(p, q) for p, q in self.laws(family, ratios=True)])

    def pure(self, family: Family) -> float:
        """The largest logarithm of a ratio."""
        if family.p.shape[2] > 1:
            family = few(replace(family, hull=None), 300)
        largest = float(self.pure_losses(family).max(initial=0))
        if self.law.gaussian and family.p.shape[2] == 1:
            ends = self.after.pieces[0].value is None, self.after.pieces[-1].value is None
            if any(end and _outermost(family, sign) for end, sign in zip(ends, (-1, 1), strict=True)):
                return inf
        return largest


def _sharply(channel: Channel, pair: Family, epsilon: float) -> float:
    """δ(ε) of one pair on many cells: what was gained by the last halving is added, as it falls by four each time."""
    apart = [j for j in range(pair.p.shape[2]) if np.ptp(np.concatenate([pair.p[:, :, j], pair.q[:, :, j]], 1)) > 1e-12]
    if len(apart) < pair.p.shape[2] and apart:  # what is alike in all of them shows nothing
        pair = replace(pair, p=pair.p[:, :, apart], q=pair.q[:, :, apart])
    most = FINENESS[3][len(apart) or 1]
    rough, fine = (replace(channel, fineness=n, kinks=10**5).deltas(pair, epsilon)[0] for n in (most // 2, most))
    return float(fine + max(fine - rough, 0))


@dataclass(frozen=True)
class Found:
    """The pairs that are tried, and what becomes of them."""

    families: tuple[tuple[Channel, Family], ...]
    level: int
    steps: int = 1
    bounded: bool = True  # the values are, so that the enumeration can contain the worst ones
    exact_pure: float | None = None

    def _delta(self, channel: Channel, family: Family, epsilon: float, enough: float) -> float:
        if family.p.shape[2] > 1 and family.hull is None and len(family.p) > MANY:
            rough = replace(channel, fineness=ROUGH).deltas(family, epsilon / self.steps)
            family = family.rows(np.argsort(rough, kind="stable")[-MANY:])
        once = channel.deltas(family, epsilon / self.steps)
        if self.steps > 1:
            if self.level > 1 and family.p.shape[2] > 1:
                raise Refused("many steps of many coordinates")
            best = np.argsort(once)[-(3 + self.level) :]
            return float(channel.composed(family.rows(best), epsilon, self.steps).max(initial=0))
        if family.hull is not None:
            most = float(family.hull(once).max(initial=0))
            return most if self.level == 1 else COARSE * most
        largest = float(once.max(initial=0))
        if self.level == 1 or largest >= enough:
            return largest
        apart = np.abs(family.p[:, -1] - family.q[:, -1]).sum(-1)
        near, share = np.unique(np.concatenate([np.lexsort((apart, once))[-4:], np.argsort(apart)[-2:]])), 0.1
        largest = max(largest, *(_sharply(channel, family.rows(near[i : i + 1]), epsilon) for i in range(len(near))))
        while family.nudged is not None and share > 1e-4 and largest < enough:
            family = family.nudged(near, share)
            once = channel.deltas(family, epsilon)
            near, share = np.argsort(once)[-4:], share / 2
            largest = max(largest, _sharply(channel, family.rows(near[-1:]), epsilon))
        return largest

    def at_least(self, epsilon: float) -> float:
        """δ(ε) is at least this."""
        rough = replace(self, level=1)
        return max((rough._delta(*one, epsilon, inf) for one in self.families if one[1].real), default=0.0)

    def tried(self, epsilon: float, enough: float = inf) -> float:
        """The largest δ(ε) of all pairs that were tried, until it is enough; above level 1 without the cells' error."""
        largest = 0.0
        for one in self.families:
            if largest < enough:
                largest = max(largest, self._delta(*one, epsilon, enough))
        return largest

    @cached_property
    def pure_at_least(self) -> float:
        if self.exact_pure is not None:
            return self.steps * self.exact_pure
        return self.steps * max((c.pure(family) for c, family in self.families if family.real), default=0.0)

    @cached_property
    def _pure_tried(self) -> float:
        rest = self.steps * max((c.pure(family) for c, family in self.families if not family.real), default=0.0)
        if any(c.law.gaussian and (family.p.shape[2] > 1 or len(c.after.pieces) > 1) for c, family in self.families):
            return inf  # far away from the cuts it grows without end
        return max(rest, self.pure_at_least)

    def pure_tried(self, enough: float = inf) -> float:
        """The largest pure ε of all pairs that were tried, until it is enough."""
        largest = self._pure_tried
        if self.level == 1:
            return largest
        for channel, family in self.families:
            if largest >= enough or family.nudged is None or family.p.shape[2] == 1:
                continue
            family, share = few(replace(family, hull=None), 300), 0.3
            near = np.argsort(channel.pure_losses(family), kind="stable")[-4:]
            while family.nudged is not None and share > 1e-3 and largest < enough:
                family = family.nudged(near, share)
                losses = channel.pure_losses(family)
                near, share = np.argsort(losses, kind="stable")[-4:], share / 2
                largest = max(largest, self.steps * float(losses.max()))
        return largest
