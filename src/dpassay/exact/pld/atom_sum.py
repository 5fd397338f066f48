"""Sums of losses with finitely many values, all of them listed: docs/proofs/lattice-sums.md, point 8.

Equal losses are counted: of n copies with k values only the numbers of each matter. Probabilities are doubles whose
rounding errors are counted; outcomes that are too unlikely to matter are left out, and count as infinite losses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from dpassay.core.numbers import ONE, ZERO, Number, between, down, exactly, log, maximum, middle, minimum, up
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

MOST_OUTCOMES = 1 << 19
MOST_KINDS = 16  # of values that are counted
MOST_COPIES = 1 << 14  # of one loss; their factorials are computed exactly
_U = 2.0**-53
_UNLIKELY = (1e-30, 1e-80, 1e-290)  # tried one after the other
_TINY = 1e-300  # more than what underflows in all sums
_SHARE = 1e-20  # of δ: less likely outcomes are left out


@dataclass(frozen=True)
class AtomSum:
    """All outcomes, the largest loss first: sums of their probabilities under both laws.

    `error` bounds the relative error of each sum, rounding of losses included; outcomes that were left out have at most
    the probability `rest` under the first law. All of this is about finite losses.

    >>> flip = AtomLoss.of_bits("0.75", "0.25"), AtomLoss.of_bits("0.9", "0.1")
    >>> found = AtomSum.of([(flip[0], 2), (flip[1], 1)], 1e-30).delta(ZERO)
    >>> round(middle(found), 9)  # 0.9·(1 − 0.25²) + 0.1·0.75² less the same with 0.25 for 0.75, and 0.1 for 0.9
    0.8
    """

    first: Array
    second: Array
    error: float
    rest: float

    @classmethod
    def of(cls, parts: Sequence[tuple[AtomLoss, int]], unlikely: float) -> AtomSum | None:
        """The sum of these losses, each as often as given, without outcomes less likely than stated."""
        logs, losses, error, rest = np.zeros(1), np.zeros(1), 0.0, 0.0
        for component, count in _few_at_once(parts):
            listed = _power(component, count)
            if listed is None:
                return None
            error += listed[2]
            one, dropped = _likely(listed[0], listed[1], unlikely)
            rest += dropped
            if len(one[0]) * len(logs) > 8 * MOST_OUTCOMES:
                return None
            both = np.add.outer(logs, one[0]).ravel(), np.add.outer(losses, one[1]).ravel()
            (logs, losses), dropped = _likely(*both, unlikely)
            rest += dropped
        if not 0 < len(logs) <= MOST_OUTCOMES:
            return None
        order = np.argsort(-losses, kind="stable")
        logs, losses = logs[order], losses[order]
        first, second = np.cumsum(np.exp(logs)), np.cumsum(np.exp(logs - losses))
        error += _U * (4 * float(np.abs(losses).max()) + 4 * float(np.abs(logs).max()) + 2 * len(logs) + 64)
        return cls(first, second, error, rest * (1 + 1e-6))

    def excess(self, epsilon: float, upper: bool) -> float:
        """δ(ε) from above or from below."""
        sign = 1 if upper else -1
        off = self.error + 4 * _U * (abs(epsilon) + 800)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(self.second * (1 - sign * off) - sign * _TINY, 0.0))
        found = (self.first * (1 + sign * off) - np.exp(np.minimum(epsilon + logs, 700.0))).max(initial=0.0)
        return float(found) + (self.rest if upper else 0.0)

    def inverse(self, delta: float, upper: bool) -> float:
        """ε(δ) from above or from below; 0 if δ is never exceeded at ε ≥ 0."""
        sign = 1 if upper else -1
        if upper and self.rest >= delta:
            return math.inf
        above = self.first * (1 + sign * self.error) + (self.rest if upper else 0.0) - delta
        against = self.second * (1 - sign * self.error) - sign * _TINY
        some = (above > 0) & (against > 0)
        if upper and bool(((above > 0) & ~some).any()):
            return math.inf
        logs = np.log(above[some]) - np.log(against[some])
        return max(0.0, float(logs.max(initial=0.0)) + sign * 1e-12)

    def delta(self, epsilon: Number) -> Number:
        """δ(ε)."""
        low, high = self.excess(up(epsilon), False), self.excess(down(epsilon), True)
        return between(exactly(low), minimum(ONE, exactly(high)))

    def epsilon(self, delta: Number) -> Number:
        """ε(δ), at δ > 0."""
        low, high = self.inverse(up(delta), False), self.inverse(down(delta), True)
        return between(exactly(low), exactly(high))


def _likely(logs: Array, losses: Array, unlikely: float) -> tuple[tuple[Array, Array], float]:
    """The outcomes above a probability, and the total probability of the others, with room for rounding."""
    kept = logs > math.log(unlikely)
    dropped = float(np.exp(logs[~kept]).sum()) * (1 + 1e-6) + (1e-300 if not kept.all() else 0.0)
    return (logs[kept], losses[kept]), dropped


def _few_at_once(parts: Sequence[tuple[AtomLoss, int]]) -> Iterator[tuple[AtomLoss, int]]:
    """The same losses; copies of one with many values are taken one by one."""
    for component, count in parts:
        if len(component.atoms) > MOST_KINDS and count <= MOST_KINDS:
            yield from [(component, 1)] * count
        else:
            yield component, count


def _power(component: AtomLoss, count: int) -> tuple[Array, Array, float] | None:
    """Logarithms of the probabilities of all outcomes of some copies, their losses, and a bound on relative errors."""
    atoms = [(loss, chance) for loss, chance in component.atoms if chance.b > 0]
    kinds = len(atoms)
    if not kinds or any(chance.a <= 0 for _, chance in atoms) or count > MOST_COPIES:
        return None
    if count > 1 and (kinds > MOST_KINDS or math.comb(count + kinds - 1, kinds - 1) > MOST_OUTCOMES):
        return None
    numbers = _shares(count, kinds) if count > 1 else np.eye(kinds, dtype=int)
    chances = [log(chance) for _, chance in atoms]
    ways = _log_factorials(count)
    logs = ways[count] - ways[numbers].sum(axis=1) + numbers @ np.array([middle(one) for one in chances])
    losses = numbers @ np.array([middle(loss) for loss, _ in atoms])
    off = max(up(value) - down(value) for value in (*chances, *(loss for loss, _ in atoms)))
    largest = max(abs(down(one)) for one in chances) + max(up(abs(loss)) for loss, _ in atoms)
    error = 2 * count * off + _U * ((8 + 2 * kinds) * float(ways[count]) + (4 + kinds) * count * largest + 16)
    return logs, losses, error


def _shares(count: int, kinds: int) -> Array:
    """All ways to write a number as an ordered sum of some numbers, one per row."""
    if kinds == 1:
        return np.array([[count]])
    rows = [np.arange(count + 1)[:, None]]
    for _ in range(kinds - 2):
        last = rows[-1]
        left = count - last.sum(axis=1)
        repeated = np.repeat(last, left + 1, axis=0)
        following = np.concatenate([np.arange(most + 1) for most in left.tolist()])
        rows.append(np.column_stack([repeated, following]))
    return np.column_stack([rows[-1], count - rows[-1].sum(axis=1)])


@lru_cache(maxsize=4)
def _log_factorials(count: int) -> Array:
    """ln 0!, ln 1!, …: of exact integers, so each is right to an ulp or two."""
    whole, logs = 1, [0.0]
    for i in range(1, count + 1):
        whole *= i
        logs.append(math.log(whole))
    return np.array(logs)


@lru_cache(maxsize=32)
def _listed(parts: tuple[tuple[AtomLoss, int], ...], unlikely: float) -> AtomSum | None:
    return AtomSum.of(parts, unlikely)


def atoms_delta(parts: tuple[tuple[AtomLoss, int], ...], epsilon: Number) -> Number | None:
    """The finite part of δ(ε) of a sum of losses with finitely many values; None if there are too many sums."""
    value: Number | None = None
    for unlikely in _UNLIKELY:
        found = _listed(parts, unlikely)
        if found is None:
            return value
        latest = found.delta(epsilon)
        value = latest if value is None else between(maximum(value, latest), minimum(value, latest))
        if found.rest <= 1e-10 * down(value):
            return value
    return value


def atoms_epsilon(parts: tuple[tuple[AtomLoss, int], ...], delta: Number) -> Number | None:
    """ε(δ) of the finite part of a sum of losses with finitely many values; None if there are too many sums."""
    found = _listed(parts, max(1e-300, float(f"{_SHARE * down(delta):.0e}")))
    return None if found is None or delta.a <= 0 else maximum(ZERO, found.epsilon(delta))
