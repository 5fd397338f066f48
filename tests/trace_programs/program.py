"""What is known of each program: the loss of one pair, from a formula that stands beside the code.

Losses are those of the code in real numbers: that a double has only 64 bits is not held against anyone.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import log_ndtr

INF = math.inf
LN2, LN3, LN9 = math.log(2), math.log(3), math.log(9)


@dataclass(frozen=True, slots=True)
class Program:
    """A small program with a claim, and the `truth`: the smallest ε for which this pair keeps the claim's δ.

    `leak` is the probability of outputs that the other input never gives, for the worse of the two inputs: if it is
    above 0, then no (ε, p) with p below it is true, however large ε is. `may_fail` marks code that no verdict can be
    given on, such as code that always raises: a `MechanismError` or an `InputError` is as good an answer as any true
    one. `seconds` is the time limit of one run.
    """

    name: str
    kind: str
    subject: Any
    pair: tuple[Any, Any]
    epsilon: float
    truth: float
    delta: float = 0.0
    leak: float = 0.0
    may_fail: bool = False
    seconds: float | None = None

    @property
    def right(self) -> bool:
        """Whether the claim is true for this pair."""
        return self.truth <= self.epsilon


def adding_to(programs: list[Program], kind: str) -> Callable[..., Callable[[Any], Any]]:
    """A decorator that adds what it decorates to a list, under its own name, and leaves it as it is."""

    def of(x: Any, y: Any, epsilon: float, truth: float, **more: Any) -> Callable[[Any], Any]:
        def add(subject: Any) -> Any:
            name = more.pop("name", None) or subject.__name__
            programs.append(Program(name, kind, subject, (x, y), epsilon, truth, **more))
            return subject

        return add

    return of


def finite(p: Sequence[float], q: Sequence[float]) -> float:
    """The loss between two distributions on the same outcomes, or between their weights."""
    return max(abs(math.log(a / sum(p)) - math.log(b / sum(q))) for a, b in zip(p, q, strict=True))


def softmax(scores: Sequence[float], factor: float) -> list[float]:
    """The weights e^(factor · score)."""
    return [math.exp(factor * score) for score in scores]


def gaussian(distance: float, delta: float) -> float:
    """ε at δ between two normal distributions that are `distance` standard deviations apart.

    δ(ε) = Φ(d/2 − ε/d) − e^ε Φ(−d/2 − ε/d) (Balle and Wang, 2018).
    """

    def delta_of(epsilon: float) -> float:
        above, below = log_ndtr(distance / 2 - epsilon / distance), log_ndtr(-distance / 2 - epsilon / distance)
        return math.exp(above) - math.exp(epsilon + below)

    if delta_of(0.0) <= delta:
        return 0.0
    return float(brentq(lambda epsilon: delta_of(epsilon) - delta, 0.0, distance * (distance + 20)))


def permute_and_flip(scores: Sequence[float], factor: float) -> list[float]:
    """The probability of each candidate: candidates in random order, each taken with e^(factor · (score − best)).

    It is also that of the largest score with exponential noise of scale 1/factor (Ding and others, 2021).
    """
    taken = [math.exp(factor * (score - max(scores))) for score in scores]
    chances, orders = [0.0] * len(scores), list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0 / len(orders)
        for i in order:
            chances[i] += left * taken[i]
            left *= 1 - taken[i]
    return chances


def first_above(queries: Sequence[float], limit: float, of_limit: float, of_queries: float) -> list[float]:
    """The probability that each query is the first above a limit, and that none is; both with Laplace noise."""

    def below(t: float) -> float:
        return math.exp(t / of_queries) / 2 if t < 0 else 1 - math.exp(-t / of_queries) / 2

    def density(t: float, which: int) -> float:
        before = math.prod(below(t - c) for c in queries[:which])
        at = 1 - below(t - queries[which]) if which < len(queries) else 1.0
        return math.exp(-abs(t - limit) / of_limit) / (2 * of_limit) * before * at

    ends = sorted({limit, *queries})
    spans = [(-INF, ends[0]), *itertools.pairwise(ends), (ends[-1], INF)]
    return [
        sum(quad(density, *span, args=(which,), epsabs=1e-14)[0] for span in spans) for which in range(len(queries) + 1)
    ]
