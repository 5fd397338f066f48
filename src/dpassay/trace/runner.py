"""Run a user's code: watched, to find which line drew which noise and what it was added to; unwatched, to decide.

A refutation comes from events counted in natural runs, an upper bound from trials that agree to the last bit. Runs
never prove a claim: what was seen on some inputs bounds nothing on others.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from dpassay.audit.inputs.checks import same as same_input
from dpassay.audit.mechanisms.python_objects import returns_nothing
from dpassay.core.guarantee import make_guarantee
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import Number, down, real, up
from dpassay.errors import ONLY_NONE, InputError, MechanismError
from dpassay.evidence.verdict import Bounds, ExactEvidence, JudgedClaim, Open, Refuted, SampledEvidence
from dpassay.trace.findings.explaining import explained, next_audit, why_open
from dpassay.trace.findings.findings import as_coded, unaccounted
from dpassay.trace.findings.suggesting import Suggested, limit_of, suggested
from dpassay.trace.laws.number_laws import NodeLaw, node_law
from dpassay.trace.natural.budget import COPYING, TimeBudget
from dpassay.trace.natural.counting import Count, Counting
from dpassay.trace.natural.failing import RunError, WatchedTooLong
from dpassay.trace.natural.imported import draws_at_import
from dpassay.trace.natural.outputs import CannotBeRead
from dpassay.trace.natural.projections import Centres
from dpassay.trace.replay.replaying import values_of
from dpassay.trace.replay.trials import (
    CLEAR,
    ENOUGH,
    LEAST,
    MOST_LEFT_OUT,
    ReplayTrials,
    agreeing,
    agreeing_outcomes,
    agreeing_paths,
    needed,
)
from dpassay.trace.result import TraceResult
from dpassay.trace.watch.record import Array, RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

MOST_PAIRS, MOST_GIVEN, MOST_INPUTS = 4, 8, 40
ALPHA = 1e-3  # error probability of a trace of given pairs
MOST_TRIALS, SECONDS, COUNTING = 5_000, 3.0, 1.5  # trials of a pair; the time of a trace, if none is given
WATCHING = 10.0  # the least wall-clock seconds for watching a pair if no time is given
HISTORIES = 2  # checks whether earlier runs matter, for each input
SOME = 20  # natural runs of each input, to check whether they all end with an exception
RUNS_BEFORE = 20  # that this takes, one after the other, and as many again


@dataclass(frozen=True, eq=False)
class _Judged:
    """What trials and counts show of one pair."""

    pair: tuple[Any, Any]
    watched: Suggested | None
    trials: ReplayTrials | None
    count: Count | None
    error: RunError | CannotBeRead | None
    remembers: bool
    claimed: float
    fixed: bool = False  # whether the code has a fixed seed, or one of unknown origin
    seeded: str = ""  # what was made from a seed of unknown origin
    unsure: bool = False  # there was no time to check whether earlier runs matter
    keeps: bool = False  # whether it repeats earlier answers
    kept: bool = False  # and gave some to an earlier trace
    at_import: bool = False  # whether its only random numbers are drawn when its module is imported
    made: int = 0  # natural runs of each input in which events were counted
    starting: str = ""  # the line that starts another process, if one does
    fails: bool = False  # whether every run of both inputs ends with an exception

    @property
    def refuted(self) -> bool:
        """Whether the counts show more than is claimed."""
        return self.count is not None and self.count.epsilon > self.claimed

    @property
    def upper(self) -> float:
        """An upper bound on the ε between the two inputs, except for what the trials leave out."""
        if self.watched is None or self.trials is None or self.trials.p >= 1 or self.remembers or self.fixed:
            return math.inf
        found = up(self.watched.upper)
        return found if self.trials.exception(found) <= MOST_LEFT_OUT else math.inf

    @property
    def order(self) -> tuple[Any, ...]:
        """The larger, the worse."""
        lower = 0.0 if self.count is None else self.count.epsilon
        return self.refuted, self.upper, lower, 0.0 if self.watched is None else down(self.watched.lower)


@np.errstate(all="ignore")  # inputs may be huge, and their differences infinite
def trace(
    f: Any,
    inputs: Sequence[Any] = (),
    *,
    pairs: Sequence[tuple[Any, Any]] = (),
    epsilon: Any,
    delta: Any = 0,
    seed: int = 0,
    name: str = "",
    seconds: float | None = None,
    alpha: float = ALPHA,
) -> TraceResult:
    """Run a mechanism on pairs of neighbors, or on inputs any two of which are, and judge its noise as coded.

    The probability that it refutes a right claim is at most α, shared by the pairs.

    >>> result = trace(lambda x, rng: x + rng.laplace(scale=0.5), [0.0, 1.0], epsilon=1)
    >>> result.verdict.refuted, result.rules, str(result.traced_epsilon)
    (True, ('loss-too-large',), '2')
    >>> trace(lambda x, rng: x + rng.laplace(scale=1), [0.0, 1.0], epsilon=1).verdict.open
    True
    """
    inputs = inputs or [one for pair in pairs for one in pair]
    if len(inputs) < 2:
        raise InputError(f"a trace needs two inputs or more to compare, got {len(inputs)}: give inputs, or pairs")
    if len(pairs) > MOST_GIVEN:
        raise InputError(f"a trace takes at most {MOST_GIVEN} pairs, got {len(pairs)}: trace some of them at a time")
    guarantee = make_guarantee(epsilon, delta)
    tracer = f if isinstance(f, Tracer) else Tracer(f, seed)
    tracer.import_ahead()
    budget = TimeBudget(SECONDS if seconds is None else seconds, strictly=seconds is not None)
    begun: RecordedRun | None = None
    natural, before = tracer.natural, _before(tracer, inputs, budget)
    asked = list(pairs) or list(islice(combinations(inputs, 2), MOST_PAIRS))
    counts: list[Count | None] = [None] * len(asked)
    if before.remembers and not natural.kept and not before.unsure:
        share, made = alpha / len(asked), natural.runs
        counts = [_counted_apart(tracer, pair, guarantee, share, budget.part(0.8 / len(asked))) for pair in asked]
        before = replace(before, runs=(natural.runs - made) // len(asked))
    if not before.remembers or before.unsure:
        try:
            begun = tracer.run(inputs[0])  # does everything that only a first call does, such as imports
            asked = list(pairs) or farthest_pairs(tracer, inputs)
        except RunError as error:
            if error.kind == "TimeLimit":  # it may hang: each further run would take as long
                raise
        counts = [None] * len(asked)
    judged: list[_Judged] = []
    for k, (x, y) in enumerate(asked):
        part = budget.part(1 / (len(asked) - k))
        judged.append(_judge(tracer, x, y, guarantee, alpha / len(asked), part, replace(before, count=counts[k])))
        if judged[-1].refuted:
            break
    tracer.until = math.inf
    why = judged[0].error
    nothing = all(one.watched is None and (one.count is None or (one.fails and not one.refuted)) for one in judged)
    if nothing and why is not None and not isinstance(why, WatchedTooLong) and not natural.worn:
        raise why
    seen = [one.watched for one in judged if one.watched is not None]
    if returns_nothing(getattr(tracer, "subject", f)) and seen and all(one.run.output is None for one in seen):
        raise MechanismError(ONLY_NONE)
    called = name or getattr(f, "__name__", type(f).__name__)
    return _result(tracer, inputs, judged, guarantee, called, seed, alpha / len(asked), alpha, begun)


@dataclass(frozen=True)
class _Before:
    """What was seen before any watched run: whether earlier runs matter, and what was counted."""

    remembers: bool
    unsure: bool = False  # there was no time to check whether they do
    count: Count | None = None
    runs: int = 0  # that were made to count events


_ANSWERED: weakref.WeakSet[Any] = weakref.WeakSet()  # subjects that keep their answers, and gave some to a trace


def _before(tracer: Tracer, inputs: Sequence[Any], budget: TimeBudget) -> _Before:
    """Check whether earlier runs matter. If the code keeps answers, those of earlier traces remain."""
    natural = tracer.natural
    most = math.inf if tracer.time_limit is None else time.monotonic() + RUNS_BEFORE * tracer.time_limit
    natural.until = min(budget.ends, most)  # if compiled code hangs, the first watched run reports it
    natural.limit = tracer.time_limit
    try:
        return _history(tracer, inputs)
    finally:
        natural.limit = None


def _history(tracer: Tracer, inputs: Sequence[Any]) -> _Before:
    natural = tracer.natural
    if natural.kept is None:
        natural.keeps = natural.keeps_answers(inputs[0], inputs[1], [(tracer.seed, 5, 0), (tracer.seed, 5, 1)])
        natural.kept = False
        with suppress(TypeError):  # it does not support weak references
            natural.kept = tracer.subject in _ANSWERED
            if natural.keeps:
                _ANSWERED.add(tracer.subject)
    elif tracer.runs:
        with suppress(TypeError):
            natural.kept = tracer.subject in _ANSWERED
    known = natural.remembers(inputs[:2], [(tracer.seed, 3, k) for k in range(HISTORIES)])
    return _Before(known is not False or natural.kept, unsure=known is None)


def _judge(
    tracer: Tracer, x: Any, y: Any, guarantee: Any, alpha: float, budget: TimeBudget, before: _Before
) -> _Judged:
    """Watch a pair, try to bound it, and count events if that fails."""
    remembers, count = before.remembers, before.count
    natural = tracer.natural
    half = budget.part(0.5)
    tracer.until = half.ends if budget.strictly else max(half.ends, time.monotonic() + WATCHING)
    watched, trials, error = seen = _seen(tracer, (x, y), guarantee, alpha, half, remembers)
    fails = False
    if tracer.raised and not _bounded(seen, guarantee, tracer, remembers):
        ends = {_sometimes_ends(tracer, one) for one in (x, y)}
        fails = ends == {False}
        if ends == {True}:
            watched, trials, error = seen = _seen_to_raise(seen, tracer, (x, y), guarantee, alpha, half, remembers)
    if _bounded(seen, guarantee, tracer, remembers):
        return _Judged((x, y), watched, trials, None, None, remembers, guarantee.claimed)
    if natural.kept:  # earlier runs left their answers, which would be counted
        kept: dict[str, Any] = {"keeps": True, "kept": True, "starting": tracer.starting}
        return _Judged((x, y), watched, trials, None, error, True, guarantee.claimed, **kept)
    before_counting = natural.runs
    if not remembers:
        least = half.seconds if budget.strictly else COUNTING
        left = budget if budget.left > least else TimeBudget(least, budget.strictly)
        centres = None if watched is None else watched.centres
        count = _counted(tracer, (x, y), guarantee, alpha, left, False, centres)
    at_import = False
    if count is not None and count.epsilon > guarantee.claimed and not (tracer.first_draws or tracer.starting):
        at_import = draws_at_import(tracer, x, (tracer.seed, 6, 0))
        count = None if at_import else count  # all runs share one outcome
    fixed, seeded = bool(natural.fixed or natural.seeded), "".join(one.name for one in natural.seeded[:1])
    shown = (watched, trials, count, error, remembers, guarantee.claimed)
    seen_too: dict[str, Any] = {"at_import": at_import, "fails": fails, "starting": tracer.starting}
    seen_too["made"] = (before.runs or natural.runs - before_counting) // 2
    return _Judged((x, y), *shown, fixed, seeded, before.unsure, natural.keeps, **seen_too)


_Seen = tuple[Suggested | None, ReplayTrials | None, RunError | CannotBeRead | None]


def _seen(
    tracer: Tracer, pair: tuple[Any, Any], guarantee: Any, alpha: float, budget: TimeBudget, remembers: bool
) -> _Seen:
    """What watched runs of a pair suggest, and the trials of that; an error if the code raises one."""
    try:
        with tracer.prepared():
            watched = suggested(tracer, *pair, guarantee)
    except (RunError, CannotBeRead) as error:
        if isinstance(error, RunError) and error.kind == "TimeLimit":
            raise
        return None, None, error
    bounded = _within(watched, guarantee, tracer, remembers)
    limits: dict[str, Any] = {"alpha": alpha, "budget": budget}
    takes = max(ENOUGH, needed(up(watched.upper), alpha)) if bounded else LEAST
    wanted = MOST_TRIALS if budget.strictly else min(MOST_TRIALS, needed(up(watched.upper), alpha, CLEAR))
    limits |= {"least": min(MOST_TRIALS, takes), "most": max(wanted, takes) if bounded else LEAST}
    if watched.chosen is not None:
        trials = agreeing_outcomes(tracer, pair, watched.chosen.outcomes, **limits)
    elif watched.paths is not None:
        trials = agreeing_paths(tracer, pair, watched.paths, **limits)
    else:
        uses = watched.uses if bounded else ()
        trials = agreeing(tracer, pair, watched.sums, watched.matching, uses, **limits)
    return watched, trials, None


def _seen_to_raise(before: _Seen, tracer: Tracer, *asked: Any) -> _Seen:
    """The same with exceptions as outputs, as in natural runs, if that shows anything."""
    with tracer.keeping_exceptions():
        seen = _seen(tracer, *asked)
    return before if seen[0] is None else seen


def _within(watched: Suggested, guarantee: Any, tracer: Tracer, remembers: bool) -> bool:
    """Whether the loss of the noise as watched is within the claim, and each call has its own noise."""
    within = bool(watched.upper.b <= limit_of(guarantee, watched.draws).b)
    return within and not (remembers or tracer.natural.fixed or tracer.natural.seeded)


def _bounded(seen: _Seen, guarantee: Any, tracer: Tracer, remembers: bool) -> bool:
    """Whether all trials agreed with a loss that is within the claim."""
    watched, trials, _ = seen
    if watched is None or trials is None or trials.different:
        return False
    return _within(watched, guarantee, tracer, remembers)


def _sometimes_ends(tracer: Tracer, x: Any) -> bool:
    """Whether some natural runs of an input end without an exception: then one is an output like others."""
    runs = tracer.natural.readings(x, [(tracer.seed, 9, k) for k in range(SOME)])
    return any("exception" not in one.paths for one in runs)


def _counted(
    tracer: Tracer,
    pair: tuple[Any, Any],
    guarantee: Any,
    alpha: float,
    budget: TimeBudget,
    apart: bool,
    centres: Centres | None = None,
) -> Count | None:
    natural, claimed = tracer.natural, guarantee.claimed
    return Counting(natural, pair, claimed, guarantee.delta, alpha, tracer.seed, apart, budget, centres).decide()


def _counted_apart(
    tracer: Tracer, pair: tuple[Any, Any], guarantee: Any, alpha: float, budget: TimeBudget
) -> Count | None:
    """Count runs in separate processes; then two calls in each process, which must not share their noise."""
    half = budget.seconds / 2
    least = half if budget.strictly else COUNTING  # starting so many processes takes a while
    first = TimeBudget(max(half, least), budget.strictly, COPYING)
    count = _counted(tracer, pair, guarantee, alpha / 2, first, True)
    if count is not None and count.epsilon > guarantee.claimed:
        return count
    orders, natural = (pair, pair[::-1]), tracer.natural.twice
    left = budget if budget.strictly else TimeBudget(max(half, 2 * COUNTING), waiting=COPYING)
    claimed, delta = guarantee.claimed, guarantee.delta
    twice = Counting(natural, orders, claimed, delta, alpha / 2, tracer.seed, True, left, calls=2).decide()
    tracer.natural.runs += natural.runs
    return max((one for one in (count, twice) if one is not None), key=lambda one: one.epsilon, default=None)


def _result(
    tracer: Tracer,
    inputs: Sequence[Any],
    judged: Sequence[_Judged],
    guarantee: Any,
    name: str,
    seed: int,
    share: float,
    alpha: float,
    begun: RecordedRun | None,
) -> TraceResult:
    worst = max(judged, key=lambda one: one.order)
    watched, count = worst.watched, worst.count
    run = begun if watched is None else watched.run
    shown = 0.0 if count is None else count.epsilon
    pair_epsilon = Interval(shown, max(worst.upper, shown), "counted runs", "agreeing replays")
    pipeline = ""
    if watched is not None:
        pipeline = watched.pipeline or as_coded(watched.uses, _laws_of_others(tracer, inputs, watched))
    findings = explained(tracer, worst) if worst.refuted else ()
    settled = worst.refuted or worst.kept or worst.upper <= guarantee.claimed * (1 + 1e-5)
    doubts = () if watched is None or settled else watched.doubts
    reason = (
        findings[0].message if findings else why_open(worst, guarantee, pipeline, next_audit(name, worst, guarantee))
    )
    claim = JudgedClaim(name, "", tracer.subject, "", Neighbours("any"), guarantee)
    verdict = (Refuted if worst.refuted else Open)(
        claim,
        Bounds(Interval(shown, math.inf, "counted runs", "nothing")),
        reason,
        ExactEvidence(loss=None if watched is None else watched.loss),
        SampledEvidence(alpha=alpha, runs=tracer.runs + tracer.natural.runs, seed=seed),
    )
    traced = Interval(0.0, math.inf) if watched is None else Interval.around(_hull(watched.lower, watched.upper))
    return TraceResult(
        verdict,
        () if watched is None else watched.draws,
        (*findings, *doubts),
        pipeline,
        worst.pair,
        pair_epsilon,
        traced,
        share,
        worst.trials,
        count,
        tracer.runs + tracer.natural.runs,
        () if run is None else unaccounted(run),
    )


def _hull(lower: Number, upper: Number) -> Number:
    return real([lower.a, max(lower.b, upper.b)])


def _laws_of_others(tracer: Tracer, inputs: Sequence[Any], worst: Suggested) -> dict[int, list[NodeLaw]]:
    """The laws of the same numbers for the other inputs, if they are not too many; by the position of the use."""
    numbers = {id(node): k for k, node in enumerate(worst.run.nodes)}
    found: dict[int, list[NodeLaw]] = {}
    for one in inputs[:MOST_INPUTS] if len(inputs) > 2 else ():
        if any(one is of for of in worst.pair):
            continue
        run = tracer.run(one, values_of(worst.run))
        if len(run.nodes) != len(worst.run.nodes):
            continue
        for k, use in enumerate(worst.uses):
            law = node_law(run.nodes[numbers[id(use.x)]])
            if law.kind.shape == use.laws[0].kind.shape:
                found.setdefault(k, []).append(law)
    return found


def farthest_pairs(tracer: Tracer, inputs: Sequence[Any]) -> list[tuple[Any, Any]]:
    """All pairs if they are few; otherwise those between which the numbers before the noise differ most in l1."""
    pairs = list(combinations(range(len(inputs)), 2))
    if len(pairs) > MOST_PAIRS:
        inputs = inputs[:MOST_INPUTS]
        noise = values_of(tracer.run(inputs[0]))
        hidden = [_hidden_numbers(tracer.run(one, noise)) for one in inputs]
        pairs = sorted(combinations(range(len(inputs)), 2), key=lambda ij: -_distance(hidden[ij[0]], hidden[ij[1]]))
    different = ((inputs[i], inputs[j]) for i, j in pairs if not same_input(inputs[i], inputs[j]))
    return list(islice(different, MOST_PAIRS))


def _hidden_numbers(run: RecordedRun) -> Array:
    numbers = [node_law(node).centre.reshape(-1) for node in run.nodes if node.added]
    return np.concatenate([*numbers, np.zeros(0)])


def _distance(one: Array, other: Array) -> float:
    return float(np.nansum(np.abs(one - other))) if one.shape == other.shape else 0.0
