"""What is known of each wrong program: its claim, and the loss of one pair from a formula beside the code."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtr

INF = math.inf
LN2, LN3 = math.log(2), math.log(3)
ALPHA = 0.001
# Runs of an audit: many for losses near the claim, events of a probability up to 0.01, and limits above 1,000 runs.
FEW, MANY = 20_000, 100_000


@dataclass(frozen=True, slots=True)
class Program:
    """A program with a false claim.

    `truth` is the smallest ε that holds for the pair at the claimed δ. `limit` is the number of runs that the exact
    likelihood ratio needs on average, where it was computed: ln(1/α) over what a run wins (docs/proofs/anytime.md).
    """

    name: str
    kind: str
    subject: Callable[..., Any]
    pair: tuple[Any, Any]
    claimed: float
    truth: float
    runs: int = FEW
    delta: float = 0.0
    limit: float | None = None
    bits: bool = False  # whether the last bits of floats count


def adding_to(programs: list[Program], kind: str) -> Callable[..., Callable[[Any], Any]]:
    """A decorator that adds what it decorates to a list, under its own name, and leaves it as it is."""

    def of(x: Any, y: Any, claimed: float, truth: float, **more: Any) -> Callable[[Any], Any]:
        def add(subject: Any) -> Any:
            name = more.pop("name", None) or subject.__name__.replace("_", " ")
            programs.append(Program(name, kind, subject, (x, y), claimed, truth, **more))
            return subject

        return add

    return of


def finite(p: Sequence[float], q: Sequence[float]) -> float:
    """The loss of two distributions on the same outcomes."""
    return max(INF if (a == 0) != (b == 0) else abs(math.log(a / b)) if a else 0.0 for a, b in zip(p, q, strict=True))


def runs_needed(p: Sequence[float], q: Sequence[float], claimed: float) -> float:
    """The runs after which the likelihood ratio of two distributions refutes the claim, on average."""
    gained, most = 0.0, 1 / (1 + math.exp(-claimed))
    for a, b in zip(p, q, strict=True):
        share = max(a, b) / (a + b) if a + b else 0.0
        if share > most:
            rest = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - most))
            gained += (a + b) / 2 * (share * math.log(share / most) + rest)
    return math.log(1 / ALPHA) / gained


def gaussian_epsilon(sigma: float, delta: float) -> float:
    """The ε of Gaussian noise on two numbers that are 1 apart, by bisection of its exact δ(ε)."""

    def exact(epsilon: float) -> float:
        near, far = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
        return float(ndtr(near) - math.exp(epsilon) * ndtr(far))

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exact(middle) > delta else (low, middle)
    return high
