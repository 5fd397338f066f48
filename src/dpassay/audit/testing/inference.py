"""What counts of correct and wrong guesses imply about ε, with the error probability stated.

Everything here is a function of integer counts. A bound or an e-value stated at level α is wrong with
probability at most α if the guesses were made as docs/proofs/guessing-game.md requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.options import check_alpha
from dpassay.core.functions.beta import betainc, betainccinv, betaincinv, betaln
from dpassay.errors import InputError
from dpassay.values import dataclass

# Binomial tails are accurate to at least 10 digits, logarithms of beta functions of 10⁸ runs to 1e-7; bounds are
# relaxed by more than that.
SLACK, LOG_SLACK = 1e-9, 1e-6


def proportion_interval(successes: int, runs: int, alpha: float) -> tuple[float, float]:
    """The Clopper-Pearson interval for a probability: it misses the truth with probability at most α.

    >>> low, high = proportion_interval(0, 10, 0.05)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    low = betaincinv(successes, runs - successes + 1, alpha / 2) if successes else 0.0
    high = betaincinv(successes + 1, runs - successes, 1 - alpha / 2) if successes < runs else 1.0
    return low, high


@dataclass
class AlphaBudget:
    """Where the error probability is spent. The entries together never exceed the total.

    >>> budget = AlphaBudget(0.001)
    >>> budget.take("the game", 0.5), budget.left
    (0.0005, 0.0005)
    """

    total: float
    entries: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_alpha(self.total)

    @property
    def left(self) -> float:
        """What has not been spent yet."""
        return max(0.0, self.total - math.fsum(alpha for _, alpha in self.entries))

    def give_back(self, what: str) -> None:
        """Return the share reserved for a test that is not made."""
        self.entries = [entry for entry in self.entries if entry[0] != what]

    def take(self, what: str, share: float) -> float:
        """Spend a share of the total on one test."""
        if not 0 <= share <= 1:
            raise InputError(f"a share of the error probability must lie between 0 and 1, got {share}")
        alpha = share * self.total
        if alpha > self.left + SLACK * self.total:
            raise InputError(f"{what} asks for {alpha:g} of the error probability, but only {self.left:g} is left")
        self.entries.append((what, alpha))
        return alpha

    def by_purpose(self) -> tuple[tuple[str, float], ...]:
        """What was spent on each kind of test."""
        spent: dict[str, float] = {}
        for what, alpha in self.entries:
            spent[what] = spent.get(what, 0.0) + alpha
        return tuple(spent.items())


def log_limits(epsilon: float, candidates: int = 2, delta: float = 0.0) -> tuple[float, float]:
    """Logarithms of the highest accuracy that (ε, δ)-DP allows a distinguisher, and of its complement.

    With M candidates the accuracy is at most (e^ε + (M−1)δ) / (e^ε + M−1), see docs/proofs/candidates.md.

    >>> [round(math.exp(v), 6) for v in log_limits(1.0)]
    [0.731059, 0.268941]
    """
    others = (candidates - 1) * math.exp(-epsilon)
    below = math.log(candidates - 1) - epsilon - math.log1p(others) + (math.log1p(-delta) if delta else 0.0)
    return math.log1p(others * delta) - math.log1p(others), below


def epsilon_at(accuracy_log_odds: float, candidates: int = 2) -> float:
    """The smallest ε at which guesses may be correct with these odds, at δ = 0.

    >>> round(epsilon_at(math.log(0.75 / 0.25)), 6)
    1.098612
    """
    return max(0.0, accuracy_log_odds + math.log(candidates - 1))


def accuracy_bound(right: int, wrong: int, alpha: float, candidates: int = 2, delta: float = 0.0) -> float:
    """A lower bound on ε from a fixed number of guesses: the exact binomial test, inverted (Clopper-Pearson).

    >>> round(accuracy_bound(1_000_000, 0, 0.001), 3)
    11.883
    """
    if right <= 0:
        return 0.0
    miss = betainccinv(wrong + 1, right, alpha) * (1 + SLACK)
    if delta:  # 1 − accuracy = (M−1)(1−δ)/(e^ε + M−1)
        room = (candidates - 1) * (1 - delta) / miss - (candidates - 1)
        return max(0.0, math.log(room)) if room > 1 else 0.0
    return epsilon_at(math.log1p(-miss) - math.log(miss), candidates) if miss < 1 else 0.0


def p_value(right: int, wrong: int, epsilon: float, candidates: int = 2, delta: float = 0.0) -> float:
    """The probability of at least this many correct guesses if each is correct as often as (ε, δ)-DP allows.

    >>> round(p_value(9, 1, 0.0), 6)  # 11 / 1024
    0.010742
    """
    if right == 0:
        return 1.0
    log_p, _ = log_limits(epsilon, candidates, delta)
    return betainc(right, wrong + 1, math.exp(log_p))


@dataclass(frozen=True, slots=True)
class RoundCounts:
    """Counts of one round of the game, and what was expected of its distinguisher before it began.

    `sides` is the number of inputs that the distinguisher can name; it matters only if δ > 0. `second` is how many of
    the correct and wrong guesses and of the runs were the second input's, for information only; None if unknown.
    """

    right: int = 0
    wrong: int = 0
    runs: int = 0
    expected_right: float = 0.5
    expected_wrong: float = 0.5
    sides: int = 2
    second: tuple[int, int, int] | None = field(default=(0, 0, 0), compare=False)

    def __add__(self, other: tuple[int, ...]) -> RoundCounts:
        """With more correct and wrong guesses and runs, followed by those of the second input if known."""
        right, wrong, runs, *of_second = other
        second = None
        if self.second is not None and of_second:
            second = (self.second[0] + of_second[0], self.second[1] + of_second[1], self.second[2] + of_second[2])
        return replace(self, right=self.right + right, wrong=self.wrong + wrong, runs=self.runs + runs, second=second)

    def table(self) -> tuple[tuple[int, int, int], ...]:
        """For each of two inputs, how often the first and the second were named, and its runs; empty if unknown.

        >>> RoundCounts(8, 2, 12, second=(5, 1, 7)).table()
        ((3, 1, 5), (1, 5, 7))
        """
        if self.second is None:
            return ()
        right, wrong, runs = self.second
        return (self.right - right, self.wrong - wrong, self.runs - runs), (wrong, right, runs)

    def log_evidence(self, epsilon: float, delta: float = 0.0, candidates: int = 2, falling: bool = False) -> float:
        """Log of the e-value against (ε, δ)-DP: if the claim holds, it ever exceeds ln(1/α) with probability at most α.

        `falling` gives a smaller one that never grows with ε, so that the set rejected by all rounds together is a
        half-line. See docs/proofs/anytime.md and, for δ > 0, betting.md.
        """
        if delta and candidates == 2:
            return self._bet(epsilon, delta)
        guesses = self.right + self.wrong
        if guesses == 0:
            return 0.0
        log_p, log_not = log_limits(epsilon, candidates, delta)
        if falling:  # beyond the observed accuracy the e-value would rise back to 1: it is kept at its minimum there
            share = max(self.right / guesses, math.exp(log_limits(0.0, candidates, delta)[0]))
            if math.exp(log_p) > share:
                log_p, log_not = math.log(share), (math.log1p(-share) if share < 1 else -math.inf)
        return _beta_mixture(self, log_p, log_not)

    def _bet(self, epsilon: float, delta: float) -> float:
        stakes, weights = self._stakes(epsilon, delta)
        if not len(stakes):
            return -math.inf
        cost = delta * self.sides / 2
        rest = self.runs - self.right - self.wrong
        logs = (
            np.log(weights)
            + self.right * np.log1p(stakes * (1 - cost))
            + (self.wrong * np.log1p(-stakes * (math.exp(min(epsilon, 700.0)) + cost)) if self.wrong else 0.0)
            + rest * np.log1p(-stakes * cost)
        )
        return float(np.logaddexp.reduce(logs))

    def _stakes(self, epsilon: float, delta: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fixed stakes on a logarithmic grid; half of the capital is near the stake that suits the expected accuracy.

        Stakes too high for this ε lose their capital.
        """
        grid = np.exp(-0.25 * np.arange(1, 161))
        # At odds right : wrong the best stake against the odds themselves is small, near the inverse of the odds.
        ideal = 0.5 * (self.expected_wrong + 0.5) / (self.expected_right + 0.5)
        near = np.exp(-np.abs(np.log(grid) - math.log(ideal)))
        weights = 0.5 * near / near.sum() + 0.5 / len(grid)
        usable = grid * (math.exp(min(epsilon, 700.0)) + delta * self.sides / 2) < 1
        return grid[usable], weights[usable]


def _beta_mixture(counts: RoundCounts, log_p: float, log_not: float) -> float:
    """ln of: the prior mass below p, kept; plus the prior above p, where each accuracy bets its likelihood ratio."""
    a, b = counts.expected_right, counts.expected_wrong
    right, wrong = a + counts.right, b + counts.wrong
    miss = math.exp(log_not)
    kept, above = betainc(a, b, math.exp(log_p)), betainc(wrong, right, miss)
    log_kept = math.log(kept) if kept > 0 else -math.inf
    if above <= 0:
        return log_kept
    gain = betaln(right, wrong) - betaln(a, b) + math.log(above)
    gain -= (counts.right * log_p if counts.right else 0.0) + (counts.wrong * log_not if counts.wrong else 0.0)
    high, low = max(log_kept, gain), min(log_kept, gain)
    return high + math.log1p(math.exp(low - high))


def log_evidence(
    rounds: Sequence[RoundCounts], epsilon: float, delta: float = 0.0, candidates: int = 2, falling: bool = False
) -> float:
    """Evidence of several rounds: each starts with the capital that the earlier ones have won."""
    return sum(counts.log_evidence(epsilon, delta, candidates, falling) for counts in rounds)


def evidence_needed(alpha: float) -> float:
    """The log-evidence that rejects a claim at this error probability: ln(1/α), plus a margin for rounding."""
    return -math.log(alpha) + LOG_SLACK


def anytime_bound(rounds: list[RoundCounts], alpha: float, delta: float = 0.0, candidates: int = 2) -> float:
    """The smallest ε that the evidence does not reject: a lower bound that holds at every stopping time.

    >>> round(anytime_bound([RoundCounts(900, 100, 1000)], 0.001), 3)
    1.741
    """
    return _anytime_bound(tuple(rounds), alpha, delta, candidates)


@lru_cache(maxsize=16)  # a verdict and its witness ask for the same
def _anytime_bound(rounds: tuple[RoundCounts, ...], alpha: float, delta: float, candidates: int) -> float:
    needed = evidence_needed(alpha)
    return _last_rejected(lambda epsilon: log_evidence(rounds, epsilon, delta, candidates, True) >= needed, 50.0)


def anytime_delta(rounds: list[RoundCounts], alpha: float, epsilon: float) -> float:
    """The smallest δ at this ε that the evidence does not reject."""
    needed = evidence_needed(alpha)
    return min(1.0, _last_rejected(lambda delta: log_evidence(rounds, epsilon, max(delta, 1e-18)) >= needed, 1.0))


def _last_rejected(rejects: Callable[[float], bool], top: float) -> float:
    """The end of the half-line [0, t) that is rejected, rounded down."""
    if not rejects(0.0):
        return 0.0
    low, high = 0.0, top
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low * (1 - SLACK)


def most_certifiable(runs: int, alpha: float, candidates: int = 2) -> float:
    """The largest lower bound on ε that this many runs can certify, if all guesses are correct.

    >>> round(most_certifiable(1_000_000, 0.001), 2)
    11.88
    """
    return accuracy_bound(runs, 0, alpha, candidates)


def runs_to_reach(epsilon: float, alpha: float, candidates: int = 2) -> int:
    """How many guesses, all correct, it takes to certify ε as a lower bound.

    >>> most_certifiable(runs_to_reach(5.0, 0.001), 0.001) >= 5.0
    True
    """
    log_p, _ = log_limits(epsilon, candidates)
    if log_p == 0.0 or epsilon > 600:
        return 10**300
    return math.ceil(math.log(alpha) / log_p * (1 + 1e-6)) + 1


def runs_needed(claimed: float, true: float, alpha: float, candidates: int = 2, guessing: float = 1.0) -> int:
    """About how many runs refute a claim half of the time if guesses are as accurate as the true ε allows.

    `guessing` is the proportion of runs in which it does not abstain. No method needs much fewer: ln(1/α) divided by
    what the best bet wins per run.

    >>> runs_needed(1.0, 2.0, 0.001)
    103
    """
    if true <= claimed:
        return 10**300
    log_p, log_not = log_limits(claimed, candidates)
    right, wrong = (math.exp(v) for v in log_limits(true, candidates))
    growth = right * (math.log(right) - log_p) + (wrong * (math.log(wrong) - log_not) if wrong else 0.0)
    if true - claimed < 1e-4:  # the two terms cancel up to the square of the difference
        growth = right * wrong * (true - claimed) ** 2 / 2
    return math.ceil(-math.log(alpha) / (growth * guessing)) if growth > 0 else 10**300
