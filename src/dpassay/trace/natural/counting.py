"""Events counted in natural runs of two inputs, and the ε that the counts show.

An event is chosen on some runs and counted in others, so that its counts are binomial: docs/proofs/coupling.md 3.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from statistics import NormalDist
from typing import Any

from dpassay.core.functions.beta import betaincinv
from dpassay.trace.natural.budget import TimeBudget
from dpassay.trace.natural.columns import RunOutputs
from dpassay.trace.natural.events import CountedEvent, candidates
from dpassay.trace.natural.projections import Centres
from dpassay.trace.natural.runs import Natural
from dpassay.values import dataclass

PILOT, FEW, MOST_COUNTED = 200, 12, 200_000
AGAIN = 5  # times as many runs to choose an event on in the next look
LOOKS = 3  # times an event is chosen and counted; each look has its part of α
MOST_KEPT = 20_000  # outputs of each input, to choose an event on
USUAL = 0.32  # α that corresponds to one standard error in both rates
CAREFUL = 0.005  # the level at which events are compared: of the many that are tried, some do well by chance
_ROOM = 1.3  # times the number of runs that would suffice if the rates were those of the pilot
_PILOTS, _COUNTED = 0.3, 0.8  # of the time that is left: at most for runs to choose an event on, and for counting it
_MORE = 0.05  # of the time that is left: for additional runs, which show how far off the claim is
_CHOICE = 0.2  # of the time that is left: at most for the choice itself


@dataclass(frozen=True)
class Count:
    """How often an event occurred in runs of each input, and what that shows with error probability α.

    `first` is the input that has it more often. With two `calls`, each run calls both inputs, in one order or the
    other: if one call is (ε, δ)-DP, two calls are (2ε, 2δ)-DP.
    """

    event: str
    hits: tuple[int, int]
    runs: tuple[int, int]
    first: int
    delta: float
    alpha: float
    path: str = ""
    value: Any = None
    calls: int = 1

    @property
    def epsilon(self) -> float:
        """The ε of a call that is shown, except with probability α."""
        return shown(self.hits, self.runs, self.calls * self.delta, self.alpha) / self.calls

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {
            "event": self.event,
            "hits": list(self.hits),
            "runs": list(self.runs),
            "first": self.first,
            "delta": self.delta,
            "alpha": self.alpha,
            "calls": self.calls,
            "epsilon": self.epsilon,
        }

    def __str__(self) -> str:
        a, b = (f"{hits:,} of {runs:,}" for hits, runs in zip(self.hits, self.runs, strict=True))
        if self.calls == 2:
            return (
                f"{self.event} in {a} natural runs that call it with one input and then the other, and in {b} that "
                "call it in the other order"
            )
        return f"{self.event} in {a} natural runs of one input and in {b} of the other"


def shown(hits: tuple[int, int], runs: tuple[int, int], delta: float, alpha: float) -> float:
    """The ε shown by an event: ln((p − δ)/q), p and q bounded by Clopper and Pearson with α/2 each.

    >>> round(shown((500, 0), (500, 500), 0.0, 1e-3), 3)
    4.179
    """
    if min(runs) < 1 or not 0 < hits[0] <= runs[0] or not 0 <= hits[1] <= runs[1]:
        return 0.0
    low = float(betaincinv(hits[0], runs[0] - hits[0] + 1, alpha / 2)) * (1 - 1e-9)
    high = 1.0 if hits[1] == runs[1] else float(betaincinv(hits[1] + 1, runs[1] - hits[1], 1 - alpha / 2)) * (1 + 1e-9)
    return math.log((low - delta) / high) if low > delta and low - delta > high else 0.0


@dataclass
class Counting:
    """Natural runs of a pair, until its claim is decided or the time is over."""

    natural: Natural
    pair: tuple[Any, Any]
    epsilon: float
    delta: float
    alpha: float
    seed: int
    apart: bool
    budget: TimeBudget
    centres: Centres | None = None  # as watched; a hint, which no count rests on
    calls: int = 1  # of a run

    def __post_init__(self) -> None:
        self.natural.until = self.budget.ends
        self.made = 0  # runs of each input
        self.seconds, self.measured = 0.0, 0  # of a run, and of how many it was measured
        self.outputs = RunOutputs([]), RunOutputs([])
        self.choosing = 0.0  # seconds for an output of each input, to choose an event

    def more(self, runs: int) -> tuple[RunOutputs, RunOutputs] | None:
        """Further runs of both inputs; None if there is no time for all of them."""
        start = self.budget.spent
        keys = [[(self.seed, 1 + at, self.made + k) for k in range(runs)] for at in (0, 1)]
        first, second = map(RunOutputs, self.natural.counted(self.pair, keys, self.apart))
        self.made += runs
        if runs >= self.measured:  # starting a process takes a while, so the largest number of runs is most reliable
            self.seconds, self.measured = (self.budget.spent - start) / max(1, 2 * runs), runs
        return (first, second) if len(first) == len(second) == runs else None

    def decide(self) -> Count | None:
        """The count that shows the most: one above the claim if there is one, otherwise the last."""
        size, best = self._first(), None
        for look in range(LOOKS):
            if look:
                size = max(FEW, min(size, self._affordable(_PILOTS)))  # so that there is time to count
            pilot = self.more(size) if self.budget.left > 0 else None
            if pilot is None:
                return best
            self._keep(pilot)
            chosen = self._chosen()
            if chosen is None:
                size *= AGAIN
                continue
            event, first = chosen
            alpha = self.alpha / LOOKS
            runs = self._enough(event, first, alpha, last=look == LOOKS - 1)
            if not runs:
                size = min(AGAIN * size, MOST_KEPT)
                continue
            counted = self.more(runs)
            if counted is None:
                return best
            hits = [event.hits(one) for one in counted]
            count = Count(
                event.said,
                (hits[first], hits[1 - first]),
                (runs, runs),
                first,
                self.delta,
                alpha,
                event.path,
                event.value,
                self.calls,
            )
            best = count if best is None or count.epsilon > best.epsilon else best
            if best.epsilon > self.epsilon:
                return best
            self._keep(counted)
            size = min(AGAIN * size, MOST_KEPT)
        return best

    def _keep(self, new: tuple[RunOutputs, RunOutputs]) -> None:
        """Keep outputs to choose events on."""
        first, second = (
            RunOutputs([*own, *more.readings[: MOST_KEPT - len(own)]])
            for own, more in zip(self.outputs, new, strict=True)
        )
        self.outputs = first, second

    def _first(self) -> int:
        """How many runs to choose an event on at first: fewer if a run takes long.

        If that is not known from other runs, it takes a few to find out.
        """
        left = self.budget.left
        pace = self.natural.pace
        if pace and not self.apart and 2 * PILOT * pace < _PILOTS * left:
            self.made = FEW  # so that an event is chosen on the same runs, whether some were made before or not
            return PILOT
        if self.more(FEW) is None or self.apart:
            return FEW
        few = left - self.budget.left
        if few * PILOT / FEW < _PILOTS * left:
            return PILOT
        # If most of the time goes into starting two processes, more runs take hardly longer.
        if self.budget.left <= 4 * few or self.more(4 * FEW) is None:
            return FEW
        one = (left - self.budget.left - 2 * few) / (3 * FEW)
        return int(min(PILOT, max(FEW, 0.1 * left / max(one, 1e-9))))

    def _chosen(self) -> tuple[CountedEvent, int] | None:
        """The event that shows the most in the latest runs, and which input has it more often.

        Choices after the first use as many runs as leave most of the time for counting the event.
        """
        start, best, most = self.budget.spent, None, (-math.inf, 0.0, 0.0)
        size = len(self.outputs[0])
        if self.choosing:
            size = min(size, max(PILOT, int(_CHOICE * self.budget.left / self.choosing)))
        latest = self.outputs[0][-size:], self.outputs[1][-size:]
        for event in candidates(*latest, self.calls * self.delta, self.centres):
            if self.budget.left < 0:
                break
            hits = [event.hits(one) for one in latest]
            for first in (0, 1):
                score = self._score((hits[first], hits[1 - first]), size)
                if score > most:
                    best, most = (event, first), score
        self.choosing = (self.budget.spent - start) / max(1, size)
        return best

    def _score(self, hits: tuple[int, int], runs: int) -> tuple[float, float, float]:
        """A better score for an event that needs fewer runs to decide, or else for one that shows more.

        Many events are tried and some do well by chance, so the rates are assumed to be a standard error worse.
        """
        needed = self._deciding(*planned_rates(hits, runs, USUAL), self.alpha / LOOKS)
        return -needed, self._planned(hits, runs, CAREFUL), self._planned(hits, runs, USUAL)

    def _planned(self, hits: tuple[int, int], runs: int, alpha: float) -> float:
        p, q = planned_rates(hits, runs, alpha)
        above = p - self.calls * self.delta
        return math.log(above / q) / self.calls if above > q > 0 else 0.0

    def _enough(self, event: CountedEvent, first: int, alpha: float, last: bool) -> int:
        """How many runs to count the event in; 0 if the event should be chosen on more runs first.

        The event was chosen because it did well, so its rates are assumed to be a standard error worse if there is
        time for that.
        """
        hits, runs = [event.hits(one) for one in self.outputs], len(self.outputs[0])
        both = hits[first], hits[1 - first]
        time_for = self._affordable(_COUNTED)
        careful = _ROOM * self._deciding(*planned_rates(both, runs, USUAL), alpha)
        hopeful = _ROOM * self._deciding(both[0] / runs, both[1] / runs, alpha)
        if careful <= time_for * (2 if self.measured <= FEW else 1):  # of few, most of the time is that of the process
            if not last and AGAIN * runs < careful and AGAIN * runs <= self._affordable(_PILOTS / 2):
                return 0  # the rates are uncertain, and measuring them again is cheaper than so many counted runs
            if last:  # the time has no other use
                careful = max(careful, min(2 * careful, time_for))
            return int(max(careful, min(PILOT, self._affordable(_MORE))))
        if last or not self._affordable(_COUNTED / 4):
            return max(1, time_for)
        better = AGAIN * runs <= self._affordable(_PILOTS)  # whether there is time to measure the rates again
        return int(hopeful) if hopeful <= time_for * (0.5 if better else 1.0) else 0

    def _deciding(self, p: float, q: float, alpha: float) -> float:
        """About how many runs decide if an event has these rates; ∞ if none do, within the limit."""

        def decides(runs: int) -> bool:
            return self._planned((int(p * runs), math.ceil(q * runs)), runs, alpha) > self.epsilon

        if not decides(MOST_COUNTED):
            return math.inf
        return bisect_left(range(MOST_COUNTED), True, lo=FEW, key=decides)

    def _affordable(self, share: float) -> int:
        """How many runs of each input there is time for in a share of what is left."""
        return int(min(max(0.0, share * self.budget.left) / max(2 * self.seconds, 1e-7), MOST_COUNTED))


def planned_rates(hits: tuple[int, int], runs: int, alpha: float) -> tuple[float, float]:
    """About the bounds that `shown` computes: at least the first rate, at most the second, with α/2 each.

    >>> [round(rate, 2) for rate in planned_rates((160, 20), 200, 1e-3)]
    [0.69, 0.19]
    """
    low = 0.0 if hits[0] < 1 else 1 - _upper(runs - hits[0], runs, alpha / 2)
    return low, _upper(hits[1], runs, alpha / 2)


def _upper(hits: int, runs: int, alpha: float) -> float:
    """About the rate at which so few hits have probability α: the beta quantile by DLMF's 8.17(vi), A&S 26.5.22."""
    a, b = hits + 1, runs - hits
    if b < 1:
        return 1.0
    if hits == 0:
        return -float(math.expm1(math.log(alpha) / runs))
    if b == 1:
        return math.pow(1 - alpha, 1 / runs)
    y = -_quantile(alpha)
    r, s = 1 / (2 * a - 1), 1 / (2 * b - 1)
    h, more = 2 / (r + s), (y * y - 3) / 6
    w = -y * math.sqrt(max(h + more, 0.0)) / h - (s - r) * (more + 5 / 6 - 2 / (3 * h))
    return a / (a + b * math.exp(2 * w))


@lru_cache(maxsize=64)
def _quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)
