"""Events counted in natural runs of two inputs, and the ε that the counts show.

An event is chosen on some runs and counted in others, so that its counts are binomial: docs/proofs/coupling.md 3.
"""

from __future__ import annotations

import math
from typing import Any

from dpassay.core.functions.beta import betaincinv
from dpassay.trace.natural.budget import TimeBudget
from dpassay.trace.natural.events import CountedEvent, candidates
from dpassay.trace.natural.projections import Centres
from dpassay.trace.natural.runs import Natural
from dpassay.trace.natural.whole import WholeReading
from dpassay.values import dataclass

PILOT, FEW, MOST_COUNTED = 200, 12, 200_000
LOOKS = 3  # times an event is chosen and counted; each look has its part of α
CAREFUL = 0.005  # events are chosen by what they would show at this level: many are tried, and some do well by chance
_ROOM = 1.3  # times the runs that would be enough if the rates were as in the pilot
_PILOTS, _COUNTED = 0.3, 0.8  # of the time that is left: at most for runs to choose an event on, and for counting it
_CHOICE = 0.2  # of the time that is left: at most for the choice itself


@dataclass(frozen=True)
class Count:
    """How often an event came in runs of each input, and what that shows with error probability α.

    `first` is which input has it more often. Of two `calls` each run makes one with each input, in one order or the
    other: if a call has ε and δ, then two have at most twice as much.
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
        self.outputs: tuple[list[WholeReading], list[WholeReading]] = ([], [])
        self.choosing = 0.0  # seconds for an output of each input, to choose an event

    def more(self, runs: int) -> tuple[list[WholeReading], list[WholeReading]] | None:
        """Further runs of both inputs; None if there is no time for all of them."""
        start, found = self.budget.spent, list[list[WholeReading]]()
        for at, x in enumerate(self.pair):
            keys = [(self.seed, 1 + at, self.made + k) for k in range(runs)]
            found.append(self.natural.counted(x, keys, self.apart))
        self.made += runs
        if runs >= self.measured:  # starting a process takes a while, so the largest number of runs tells most
            self.seconds, self.measured = (self.budget.spent - start) / max(1, 2 * runs), runs
        return (found[0], found[1]) if min(map(len, found)) == runs else None

    def decide(self) -> Count | None:
        """The count that shows most: one above the claim if there is one, otherwise the last."""
        size, best = self._first(), None
        for look in range(LOOKS):
            if look:
                size = max(FEW, min(size, self._affordable(_PILOTS)))  # so that there is time to count
            pilot = self.more(size) if self.budget.left > 0 else None
            if pilot is None:
                return best
            for kept, new in zip(self.outputs, pilot, strict=True):
                kept += new
            chosen = self._chosen()
            if chosen is None:
                size *= 5
                continue
            event, first = chosen
            alpha = self.alpha / LOOKS
            runs = self._enough(event, first, alpha, last=look == LOOKS - 1)
            if not runs:
                size = min(5 * size, 20_000)
                continue
            counted = self.more(runs)
            if counted is None:
                return best
            hits = [sum(map(event.test, one)) for one in counted]
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
            for kept, new in zip(self.outputs, counted, strict=True):
                kept += new[: 20_000 - len(kept)]
            size = min(5 * size, 20_000)
        return best

    def _first(self) -> int:
        """How many runs to choose an event on at first: fewer if a run takes long."""
        left = self.budget.left
        if self.more(FEW) is None or self.apart:
            return FEW
        few = left - self.budget.left
        if few < 0.1 * left:
            return PILOT
        # Starting two processes may be all that takes long: then more runs take hardly longer.
        if self.budget.left <= 4 * few or self.more(4 * FEW) is None:
            return FEW
        one = (left - self.budget.left - 2 * few) / (3 * FEW)
        return PILOT if one * PILOT < 0.1 * left else FEW

    def _chosen(self) -> tuple[CountedEvent, int] | None:
        """The event that shows most in the latest runs, and which input has it more often.

        After the first choice, of as many runs as leave most of the time to count the event.
        """
        start, best, most = self.budget.spent, None, (0.0, 0.0)
        size = len(self.outputs[0])
        if self.choosing:
            size = min(size, max(PILOT, int(_CHOICE * self.budget.left / self.choosing)))
        latest = self.outputs[0][-size:], self.outputs[1][-size:]
        for event in candidates(*latest, self.calls * self.delta, self.centres):
            if self.budget.left < 0:
                break
            hits = [sum(map(event.test, one)) for one in latest]
            runs = len(latest[0]), len(latest[1])
            for first in (0, 1):
                both = (hits[first], hits[1 - first]), (runs[first], runs[1 - first])
                score = self._shown(*both, CAREFUL), self._shown(*both, 0.3)
                if score > most:
                    best, most = (event, first), score
        self.choosing = (self.budget.spent - start) / max(1, size)
        return best

    def _shown(self, hits: tuple[int, int], runs: tuple[int, int], alpha: float) -> float:
        return shown(hits, runs, self.calls * self.delta, alpha) / self.calls

    def _enough(self, event: CountedEvent, first: int, alpha: float, last: bool) -> int:
        """How many runs to count the event in; 0 if the event should be chosen on more runs first.

        The event was chosen because it did well, so its rates are taken to be a standard error worse, where there is
        time for that.
        """
        rates = [sum(map(event.test, one)) / len(one) for one in self.outputs]
        p, q = rates[first], rates[1 - first]
        errors = [math.sqrt(rate * (1 - rate) / len(self.outputs[0])) for rate in (p, q)]
        time_for = self._affordable(_COUNTED)
        careful = _ROOM * self._deciding(p - errors[0], q + errors[1], alpha)
        hopeful = _ROOM * self._deciding(p, q, alpha)
        if careful <= time_for * (2 if self.measured <= FEW else 1):  # of few, most of the time is that of the process
            return int(careful)
        if last or not self._affordable(_COUNTED / 4):
            return max(1, time_for)
        return int(hopeful) if hopeful <= time_for / 2 else 0

    def _deciding(self, p: float, q: float, alpha: float) -> float:
        """How many runs decide if an event has these rates; ∞ if none do, within the limit."""
        runs = FEW
        while runs < MOST_COUNTED:
            hits = (int(p * runs), math.ceil(q * runs))
            if self._shown(hits, (runs, runs), alpha) > self.epsilon:
                return runs
            runs = int(runs * 1.25)
        return math.inf

    def _affordable(self, share: float) -> int:
        """How many runs of each input there is time for in a share of what is left."""
        return int(min(max(0.0, share * self.budget.left) / max(2 * self.seconds, 1e-7), MOST_COUNTED))
