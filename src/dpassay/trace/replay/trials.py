"""Trials of a pair: is the watched run the natural one, and does the shifted noise give the same output?

A trial with fresh random bits makes four comparisons, each to the last bit: the watched run of x with its natural run,
and with a run of y in which the sums with noise are the same; and both again from y to x. If N trials agree, then with
confidence 1 − α each comparison fails with a probability of at most p = 1 − α^(1/N): docs/proofs/coupling.md 1 and 2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dpassay.core.functions.beta import betaincinv
from dpassay.errors import MechanismError
from dpassay.trace.laws.coordinatewise import Coordinates
from dpassay.trace.laws.number_laws import node_law
from dpassay.trace.laws.outcomes import is_one_of
from dpassay.trace.natural.budget import TimeBudget
from dpassay.trace.natural.failing import WatchedTooLong
from dpassay.trace.natural.outputs import described
from dpassay.trace.natural.whole import WholeReading
from dpassay.trace.replay.matching import Matching
from dpassay.trace.replay.paths import Paths, judged
from dpassay.trace.replay.pieces import Pieces
from dpassay.trace.replay.replaying import NoiseSite
from dpassay.trace.replay.seeding import seeded_by_draws
from dpassay.trace.replay.shared_noise import SharedShift
from dpassay.trace.replay.shifting import OUT_OF_REACH as OUT_OF_REACH_OF_NOISE
from dpassay.trace.replay.shifting import same_noise, shifted, still_different
from dpassay.trace.watch.record import Array, RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

LEAST, ENOUGH, AT_ONCE = 20, 150, 50  # trials: to check that watching changes nothing; for a bound; made at once
GROWTH, MOST_VALUES = 3, 200_000  # of the trials so far, that are made at once later; values of their natural outputs
MOST_UNKNOWN = 0.1  # of all trials, on paths that are not known
OUT_OF_REACH = 10**9  # trials
MOST_LEFT_OUT = 0.5  # the probability that a bound may leave out: with more it is meaningless
CLEAR = 0.05  # the same, where no time was given: for less, `--time` has to ask


@dataclass(frozen=True)
class ReplayTrials:
    """How many trials agreed in a row, counted from the first, and what differed in the one that did not."""

    agreed: int
    alpha: float
    different: str = ""
    faithful: bool = True  # whether the watched runs were the natural ones
    left_out: int = 0  # trials besides these that took a path which was not known

    @property
    def p(self) -> float:
        """An upper bound on the probability that a trial does not agree, with confidence 1 − α."""
        if self.different or not self.agreed:
            return 1.0
        if self.left_out:
            return float(betaincinv(self.left_out + 1, self.agreed, 1 - self.alpha)) * (1 + 1e-9)
        return -math.expm1(math.log(self.alpha) / self.agreed)

    def exception(self, epsilon: float) -> float:
        """The probability that a bound of ε leaves out: p for the outputs of one input, e^ε p for those of the other.

        >>> round(ReplayTrials(5_000, 0.001).exception(0.0), 5)
        0.00276
        """
        return min(1.0, self.p * (1 + math.exp(min(epsilon, 700.0))))


def needed(epsilon: float, alpha: float, left_out: float = MOST_LEFT_OUT) -> int:
    """How many trials it takes for a bound of ε to leave out at most this probability.

    >>> needed(1.0, 0.001), ReplayTrials(needed(1.0, 0.001), 0.001).exception(1.0) <= 0.5
    (48, True)
    >>> needed(1.0, 0.001, 0.05), ReplayTrials(511, 0.001).exception(1.0) <= 0.05
    (511, True)
    """
    share = left_out / (1 + math.exp(min(epsilon, 700.0)))
    return math.ceil(math.log(alpha) / math.log1p(-share)) if share > 1e-9 else OUT_OF_REACH


Judge = Callable[
    [int, RecordedRun], str | None
]  # of an input and its watched run: what is different; None if it is left out


def agreeing(
    tracer: Tracer,
    pair: tuple[Any, Any],
    sums: Sequence[int],
    matching: Matching | None = None,
    uses: Sequence[NoiseSite] = (),
    *,
    alpha: float,
    least: int,
    most: int,
    budget: TimeBudget,
) -> ReplayTrials:
    """Make trials until one does not agree, `most` are made, or `least` are and the time is over.

    `sums` are the numbers with noise that hide the inputs, by their position among all of a run; `uses` are what they
    hid when a loss was computed from them. With a matching, its sums are made the same instead, each as its partner.
    """

    def judge(at: int, run: RecordedRun) -> str:
        if matching is not None:
            return matched(tracer, pair, matching, at, run)
        gaps = [(use.y.offset - use.x.offset if at else use.x.offset - use.y.offset) for use in uses]
        return _shifted(tracer, pair[1 - at], run, sums, partial(_as_watched, uses, sums, at), gaps=gaps)

    return _until_different(tracer, pair, judge, alpha, least, most, budget)


def agreeing_outcomes(
    tracer: Tracer, pair: tuple[Any, Any], found: Any, *, alpha: float, least: int, most: int, budget: TimeBudget
) -> ReplayTrials:
    """The same if what can be drawn was enumerated: is each run one of those, with the same whole output?"""
    outputs: dict[str, WholeReading] = {}

    def judge(at: int, run: RecordedRun) -> str:
        own = found[at]
        if isinstance(own, Coordinates):
            return own.difference(run)
        if not is_one_of(run, own):
            return "a run was not among those enumerated, so something else also matters"
        where = outputs.setdefault(described(run.output), run.reading).difference(run.reading)
        return "" if where is None else f"outputs with equal values differ in the type, order or last bits of {where}"

    return _until_different(tracer, pair, judge, alpha, least, most, budget)


def agreeing_paths(
    tracer: Tracer,
    pair: tuple[Any, Any],
    paths: Paths | Pieces | SharedShift,
    *,
    alpha: float,
    least: int,
    most: int,
    budget: TimeBudget,
) -> ReplayTrials:
    """The same if the noise is shifted on each path by its own constants; trials on unknown paths are left out.

    Or if each path has its own piece of the noise density, or sums that share drawn numbers are shifted together.
    """

    def judge(at: int, run: RecordedRun) -> str | None:
        if isinstance(paths, Pieces | SharedShift):
            return paths.judged(tracer, pair, at, run)
        return judged(tracer, pair, at, run, paths)

    return _until_different(tracer, pair, judge, alpha, least, most, budget)


def _until_different(
    tracer: Tracer, pair: tuple[Any, Any], judge: Judge, alpha: float, least: int, most: int, budget: TimeBudget
) -> ReplayTrials:
    done = left = 0
    size, begun = AT_ONCE, (budget.spent, time.monotonic())
    tracer.natural.until = budget.ends
    while done < most and (budget.left > 0 or (done < least and time.monotonic() < budget.ends)):
        keys = [(tracer.seed, 0, done + k) for k in range(min(size, most - done))]
        natural = [tracer.natural.readings(x, keys) for x in pair]
        values = max((len(one.paths) for readings in natural for one in readings[:1]), default=1)
        with tracer.watching():
            for k, key in enumerate(keys):
                known = True
                for at, x in enumerate(pair):
                    if len(natural[at]) <= k:
                        return ReplayTrials(done - left, alpha, left_out=left)
                    try:
                        said, faithful = _trial(tracer, x, key, natural[at][k], partial(judge, at))
                    except WatchedTooLong:
                        return ReplayTrials(done - left, alpha, left_out=left)
                    if said:
                        return ReplayTrials(done - left, alpha, said, faithful, left)
                    known = known and said is not None
                done += 1
                left += not known
                if left > MOST_UNKNOWN * max(done, LEAST):
                    return ReplayTrials(done - left, alpha, "too many paths lead through the code", True, left)
                if done >= least and budget.left <= 0:
                    break
        size = max(AT_ONCE, min(GROWTH * done, _affordable(done, budget, begun), MOST_VALUES // values))
    return ReplayTrials(done - left, alpha, left_out=left)


def _affordable(done: int, budget: TimeBudget, begun: tuple[float, float]) -> int:
    """How many more trials there is time for, in work and on the clock, if they take as long as those that are done."""
    now = time.monotonic()
    work = max(budget.left, 0.0) / max(budget.spent - begun[0], 1e-6)
    clock = max(budget.ends - now, 0.0) / max(now - begun[1], 1e-6)
    return int(min(done * min(work, clock), 1e6))


def _trial(
    tracer: Tracer, x: Any, key: tuple[int, ...], natural: WholeReading, judge: Callable[[RecordedRun], str | None]
) -> tuple[str | None, bool]:
    """What was different, if anything was, and whether the watched run was the natural one."""
    try:
        run = tracer.run(x, key=key)
    except WatchedTooLong:
        raise
    except MechanismError as error:
        return f"a watched run raised an error: {error}", "exception" in natural.paths
    where = natural.difference(run.reading)
    if where is not None:
        return f"with the same random bits, {where} differs when the code is watched", False
    run.key = key
    if run.reading.unseen is not None:
        return run.reading.unseen, True
    if run.opaque:
        name, place = run.opaque[0]
        return f"{place} takes random numbers from {name}, which cannot be followed: audit it", True
    if said := seeded_by_draws(tracer, x, run):
        return said, True
    if all(draw.values.size for draw in run.draws):  # then nothing else of the generators may matter
        run.key = (tracer.seed, 11, key[-1])
    return judge(run), True


def matched(tracer: Tracer, pair: tuple[Any, Any], matching: Matching, at: int, run: RecordedRun) -> str:
    """What differs, if anything, when the matched sums of the other input are made equal to those of a run."""
    way = matching.swapped if at else matching
    return _shifted(tracer, pair[1 - at], run, way.sums, way.fits, way.partners)


def _as_watched(uses: Sequence[NoiseSite], sums: Sequence[int], at: int, run: RecordedRun, other: RecordedRun) -> bool:
    """Whether the sums hide the same values, by the same noise, as when they were watched."""
    x, y = (other, run) if at else (run, other)
    return all(
        (same_noise(x.nodes[k], use.x) and same_noise(y.nodes[k], use.y))
        or NoiseSite(x.nodes[k], y.nodes[k], use.released).like(use)
        for k, use in zip(sums, uses, strict=False)
    )


def _bounded_noise(run: RecordedRun, sums: Sequence[int]) -> str:
    """What is known of noise that does not reach everywhere."""
    kinds = {kind for k in sums for kind in node_law(run.nodes[k]).kind.reshape(-1).tolist()}
    reach = [name for name in ("uniform", "exponential", "bernoulli") if name in kinds]
    return f": {' and '.join(reach)} noise has only some of the values" if reach else ""


def _shifted(
    tracer: Tracer,
    y: Any,
    run: RecordedRun,
    sums: Sequence[int],
    fits: Callable[[RecordedRun, RecordedRun], bool],
    partners: Array | None = None,
    gaps: Sequence[Array] = (),
) -> str:
    if any(k >= len(run.nodes) for k in sums):
        return "other noise makes the code do something else"
    try:
        other = shifted(tracer, run, y, sums, partners, gaps)
    except WatchedTooLong:
        raise
    except MechanismError as error:
        return f"a replay with other noise raised an error: {error}"
    if isinstance(other, str):
        return f"{other}{_bounded_noise(run, sums)}" if other == OUT_OF_REACH_OF_NOISE else other
    if not fits(run, other):
        return "how much the noise hides depends on other noise"
    where = run.reading.difference(other.reading)
    return "" if where is None else still_different(where, run)
