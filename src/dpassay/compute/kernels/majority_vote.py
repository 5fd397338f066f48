"""The sanity check's runs: n zeros or n ones are privatized, rounded, and voted on; only the votes are counted."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpassay.compute.devices import has_numba, numbers
from dpassay.compute.kernels.draws import EXPONENTIAL, LAPLACE, Span, WordNoise, coin, rounded_up
from dpassay.compute.kernels.philox import RUNS, key
from dpassay.values import dataclass

DRAWS = {"numpy": 1 << 24, "cpu": 1 << 29, "cuda": 1 << 40}  # about a second's work, or less


@dataclass(frozen=True, slots=True)
class Ballot:
    """One task: runs `start` to `start + runs` of a cell of the grid on zeros or on ones.

    However a cell's runs are divided into tasks, each run has its own random numbers, so the counts are the same.
    """

    mechanism: str
    epsilon: float
    dim: int
    x: int
    cell: int
    seed: int
    start: int
    runs: int
    device: str = "cpu"


def ballots(cell: int, mechanism: str, epsilon: float, dim: int, runs: int, seed: int, device: str) -> Iterator[Ballot]:
    """The tasks of one cell.

    >>> [(b.x, b.start, b.runs) for b in ballots(0, "laplace", 1.0, 128, 100_000, 0, "numpy")]
    [(0, 0, 100000), (1, 0, 100000)]
    """
    draws = draws_of(device)
    size = max(1, draws // drawn(mechanism, dim) // RUNS) * RUNS
    for x in (0, 1):
        for start in range(0, runs, size):
            yield Ballot(mechanism, epsilon, dim, x, cell, seed, start, min(size, runs - start), device)


def draws_of(device: str) -> int:
    """How many words are about a second's work on a device, or less."""
    return DRAWS["numpy" if device == "cpu" and not has_numba() else device]


def drawn(mechanism: str, dim: int) -> int:
    """How many words each run needs: one coin serves the whole vector, and a copy needs no randomness."""
    return 1 if mechanism in ("copy", "coin flip") else dim


def all_ones(some: tuple[Ballot, ...]) -> list[int]:
    """The counts of several ballots: what is handed to a worker at once."""
    return [ones(ballot) for ballot in some]


def ones(ballot: Ballot) -> int:
    """The number of its runs in which the vote is for ones; a tie counts as zeros.

    >>> ones(Ballot("copy", 1.0, 8, 1, 0, 0, 0, 1000))
    1000
    """
    stream = key(ballot.seed, 1, ballot.cell, ballot.x)
    dim, span = drawn(ballot.mechanism, ballot.dim), rounding(ballot.mechanism, ballot.epsilon, ballot.dim, ballot.x)
    return numbers(ballot.device).count_votes(stream, ballot.start, ballot.runs, dim, span)


def noise_scale(mechanism: str, epsilon: float, dim: int) -> float:
    """The scale of a mechanism's noise, where the two inputs are 1 apart in every coordinate.

    ADePT itself clips n times -1 and n times 1 to l2 norm C: they become 2C/√n apart, and the noise has scale 2C/ε.

    >>> noise_scale("adept", 2.0, 16), noise_scale("clipped", 2.0, 16), noise_scale("laplace", 2.0, 16)
    (0.5, 2.0, 8.0)
    """
    return {"adept": 1.0, "clipped": math.sqrt(dim)}.get(mechanism, dim) / epsilon


def rounding(mechanism: str, epsilon: float, dim: int, x: float) -> Span:
    """The words for which a coordinate of the output is rounded to 1."""
    if mechanism == "copy":
        return coin(x)
    if mechanism == "coin flip":
        return coin(0.5)
    scale = noise_scale(mechanism, epsilon, dim)
    noise = WordNoise(EXPONENTIAL, scale, kept=0.5) if mechanism == "dptext" else WordNoise(LAPLACE, scale)
    return rounded_up(noise, x, 0.5 if mechanism == "halved" else 1.0)
