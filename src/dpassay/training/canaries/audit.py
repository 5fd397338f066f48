"""Audits of a training run: does a guarantee allow guesses this good about its canaries?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.options import check_alpha
from dpassay.core.guarantee import GDP, ApproxDP, Guarantee, PureDP, stated_guarantee
from dpassay.core.interval import Interval, outward
from dpassay.core.neighbours import Neighbours
from dpassay.core.theorems import Theorem
from dpassay.evidence.sampled import SampledWitness
from dpassay.evidence.verdict import Advice, Bounds, JudgedClaim, Open, Refuted, SampledEvidence, Verdict
from dpassay.training.canaries.guess_counts import GuessCount, guess_counts
from dpassay.training.canaries.one_run import Guesses, p_value, rejected
from dpassay.training.canaries.scores import CanaryScores

Family = Callable[[float], Guarantee]
Order = NDArray[np.bool_]  # whether each canary was included, the highest score first

_FIRST, _RATIO, _LAST = 0.05, 1.15, 100.0  # cells of the parameter, each with its own numbers of guesses
_HALVINGS = 12
_UNFAIR = (
    "This number of included canaries is unlikely for fair coins: unless each was included by its own coin flip, "
    "nothing follows from this audit."
)


def audit_training(
    scores: CanaryScores,
    epsilon: Any = None,
    delta: Any = None,
    *,
    mu: Any = None,
    alpha: float = 0.05,
    anytime: bool = False,
    neighbours: str = "add-remove-record",
    name: str = "training run",
) -> Verdict:
    """Judge what a training run guarantees for one canary, (ε, δ)-DP or μ-GDP, from the canaries' scores.

    Several runs are combined; with `anytime` sequentially, so that one may look after each and stop.

    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1000) < 0.5
    >>> scores = CanaryScores(3 * included + rng.normal(size=1000), included)
    >>> audit_training(scores, epsilon=1, delta=1e-5).refuted
    True
    """
    return TrainingClaim(epsilon, delta, mu, alpha, neighbours, name).judge(scores, anytime)


def lower_bound(scores: CanaryScores, family: Family, alpha: float = 0.05) -> float:
    """The largest value below which every guarantee of a family is rejected; larger values must guarantee less.

    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1000) < 0.5
    >>> 2 < lower_bound(CanaryScores(3 * included + rng.normal(size=1000), included), PureDP) < 6
    True
    """
    check_alpha(alpha)
    return _Test(scores, alpha, False).lower_bound(family)


class TrainingClaim:
    """What is claimed about a training run, refused if canaries cannot test it."""

    def __init__(self, epsilon: Any, delta: Any, mu: Any, alpha: float, neighbours: str, name: str) -> None:
        guarantee = stated_guarantee(epsilon, delta, mu=mu)
        assert isinstance(guarantee, PureDP | ApproxDP | GDP), "no metric, order or rho was given"
        self.guarantee = guarantee
        self.alpha, self.neighbours, self.name = alpha, Neighbours(neighbours), name
        check_alpha(alpha)

    def with_value(self, value: float) -> Guarantee:
        """The same guarantee with another value of ε, or μ."""
        guarantee = self.guarantee
        return ApproxDP(value, guarantee.exact_delta) if isinstance(guarantee, ApproxDP) else type(guarantee)(value)

    def judge(self, scores: CanaryScores, anytime: bool = False) -> Verdict:
        """Refuted if the lower bound exceeds the claim, otherwise open: canaries prove nothing."""
        guarantee, alpha = self.guarantee, self.alpha
        test = _Test(scores, alpha, anytime)
        lower = test.lower_bound(self.with_value)
        refuted = lower > guarantee.claimed
        shown = test.most_telling(guarantee)
        kind: type[Verdict] = Refuted if refuted else Open
        source = f"{_amount(scores)}, wrong with probability at most {alpha:g}"
        return kind(
            JudgedClaim(self.name, "", None, self.name, self.neighbours, guarantee),
            Bounds(Interval(lower, math.inf, source, "nothing: canaries give no upper bound")),
            _reason(scores, guarantee, lower, shown, alpha),
            sampled=SampledEvidence(
                witness=_witness(shown, alpha) if refuted else None,
                theorems=(Theorem.ONE_RUN, *((Theorem.ANYTIME,) if anytime else ())),
                alpha=alpha,
                runs=scores.runs,
                alpha_budget=(("guesses", alpha),),
                replays=False,
            ),
            advice=Advice(warnings=(_UNFAIR,) if scores.unfair else ()),
        )


@dataclass(frozen=True)
class _GuessedCanaries:
    """Guesses, and whether the named canaries were in or out: for each side how many were named in, out, and all."""

    guesses: Guesses
    table: tuple[tuple[int, int, int], tuple[int, int, int]]


class _Test:
    """Which guarantees the scores reject: all runs together, or one after the other with an e-value."""

    def __init__(self, scores: CanaryScores, alpha: float, anytime: bool) -> None:
        runs = [scores.of_run(int(run)) for run in np.unique(scores.run)] if anytime else [scores]
        self.orders = [run.by_score() for run in runs]
        self.alpha, self.anytime = alpha, anytime

    def lower_bound(self, family: Family) -> float:
        """The largest value below which every guarantee of the family is rejected.

        A guarantee with a larger value is harder to reject by the same numbers of guesses. So each cell of values has
        one plan, that of its upper end, and is rejected as a whole if that end is.
        """
        low, high = 0.0, _FIRST
        while high < _LAST:
            plans = self._plans(family(high))
            if not self._rejects(family(high), plans):
                break
            low, high = high, high * _RATIO
        else:
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._rejects(family(middle), plans) else (low, middle)
        return low

    def most_telling(self, guarantee: Guarantee) -> _GuessedCanaries:
        """The guesses that are least likely under a guarantee, for their share of alpha."""
        found = [
            (p_value(guarantee, seen.guesses) / count.alpha, i, seen)
            for order, plan in zip(self.orders, self._plans(guarantee), strict=True)
            for i, count in enumerate(plan)
            for seen in [_look(order, count)]
        ]
        return min(found, key=lambda one: one[:2])[2]

    def _plans(self, guarantee: Guarantee) -> list[tuple[GuessCount, ...]]:
        return [guess_counts(guarantee, len(order), self.alpha) for order in self.orders]

    def _rejects(self, guarantee: Guarantee, plans: Sequence[tuple[GuessCount, ...]]) -> bool:
        if not self.anytime:
            (order,), (plan,) = self.orders, plans
            return any(rejected(guarantee, _look(order, count).guesses, count.alpha) for count in plan)
        evidence = 0.0  # its logarithm; by Ville's inequality it ever reaches 1/alpha with probability at most alpha
        for order, plan in zip(self.orders, plans, strict=True):
            total = sum(count.alpha for count in plan)
            parts = (count.alpha / total * _e_value(p_value(guarantee, _look(order, count).guesses)) for count in plan)
            evidence += math.log(sum(parts))
            if evidence >= -math.log(self.alpha):
                return True
        return False


def _e_value(p: float) -> float:
    """Half of 1/√p: its mean is at most 1 if p is a p-value, since ∫ 1/(2√p) dp = 1."""
    return 0.5 / math.sqrt(p)


def _look(order: Order, count: GuessCount) -> _GuessedCanaries:
    top, bottom = order[: count.top], order[len(order) - count.top :] if count.both else order[:0]
    right = int(top.sum()) + int((~bottom).sum())
    was_in = int(top.sum()), int(bottom.sum()), int(order.sum())
    was_out = len(top) - was_in[0], len(bottom) - was_in[1], len(order) - was_in[2]
    return _GuessedCanaries(Guesses(len(order), count.named, right, count.both), (was_in, was_out))


def _amount(scores: CanaryScores) -> str:
    return f"{scores.canaries:,} canaries in {'one run' if scores.runs == 1 else f'{scores.runs:,} runs'}"


def _reason(scores: CanaryScores, guarantee: Guarantee, lower: float, shown: _GuessedCanaries, alpha: float) -> str:
    least = f"{guarantee.parameter} is at least {outward(lower, -1, 5)}" if lower > 0 else ""
    seen = shown.guesses
    said = f"of {_amount(scores)}, {seen.named:,} were guessed to be in or out, {seen.right:,} of them correctly"
    if lower > guarantee.claimed:
        return f"{said}; so {least}, not {guarantee.claimed:.6g} (wrong with probability at most {alpha:g})."
    return f"Open, which proves nothing: {said}, which {guarantee} allows; {least or 'no more is known'}."


def _witness(shown: _GuessedCanaries, alpha: float) -> SampledWitness:
    seen = shown.guesses
    top = seen.named // 2 if seen.both else seen.named
    event = f"the score is among the highest {top:,}"
    return SampledWitness(
        inputs=("the canary is in", "the canary is out"),
        event=event + (f" (named as in) or the lowest {top:,} (named as out)" if seen.both else ""),
        right=seen.right,
        wrong=seen.wrong,
        runs=seen.canaries,
        alpha=alpha,
        seed=0,
        number=0,
        table=shown.table,
    )
