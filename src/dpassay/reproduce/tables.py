"""The lecture's two extreme algorithms, run on its table: one returns everything with probability δ, one each row."""

import math
from collections.abc import Callable, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from dpassay.audit.testing.experiment import stream
from dpassay.reproduce.result import COLOURS, FigureResult, PublishedComparison, ReproductionOptions, label

Row = tuple[str, int, int, str]
COLUMNS = ("name", "hospitalized", "age", "drugs")
PEOPLE: tuple[Row, ...] = (
    ("Alice", 2024, 32, "yes"),
    ("Bob", 2020, 21, "no"),
    ("Charlie", 2023, 45, "no"),
    ("Xander", 2020, 31, "yes"),
)
NAMES = ("Jim", "Dave", "Ann", "Eve", *(row[0] for row in PEOPLE))
DELTA, RUNS = 0.1, 100_000  # δ is far too large, so that a few runs show what it does


def random_table(rng: np.random.Generator) -> tuple[Row, ...]:
    """A table that has nothing to do with the data.

    >>> 1 <= len(random_table(np.random.default_rng(0))) <= 4
    True
    """
    drawn = range(int(rng.integers(1, 5)))
    return tuple(
        (
            str(rng.choice(NAMES)),
            int(rng.integers(2010, 2026)),
            int(rng.integers(16, 90)),
            str(rng.choice(("yes", "no"))),
        )
        for _ in drawn
    )


def everything(data: Sequence[Row], delta: float, rng: np.random.Generator) -> tuple[Row, ...]:
    """The first algorithm: the data in full with probability δ, otherwise a random table.

    >>> everything(PEOPLE, 1, np.random.default_rng(0)) == PEOPLE
    True
    """
    return tuple(data) if rng.random() < delta else random_table(rng)


def some_rows(data: Sequence[Row], delta: float, rng: np.random.Generator) -> tuple[Row, ...]:
    """The second algorithm: each row with probability δ.

    >>> some_rows(PEOPLE, 0, np.random.default_rng(0))
    ()
    """
    return tuple(row for row in data if rng.random() < delta)


def subset_delta(people: int, delta: float) -> float:
    """δ at ε = 0 of the second algorithm, with and without the first person: Σ max(0, P − Q) over all outputs.

    >>> round(subset_delta(4, 0.1), 12)
    0.1
    """
    places = range(people)
    outputs = chain.from_iterable(combinations(places, size) for size in range(people + 1))

    def chance(output: tuple[int, ...], present: int) -> float:
        return delta ** len(output) * (1 - delta) ** (present - len(output))

    return math.fsum(
        max(0.0, chance(output, people) - (0.0 if 0 in output else chance(output, people - 1))) for output in outputs
    )


def lecture_tables(options: ReproductionOptions) -> FigureResult:
    """Tables 1 to 5 of the lecture: the data, and what the two algorithms return."""
    runs, n = options.runs or RUNS, len(PEOPLE)
    full, shown = _counted(everything, 3, options, lambda table: table == PEOPLE)
    leaked, few = _counted(some_rows, 4, options, bool)
    tables = ((1, PEOPLE), (2, random_table(stream(options.seed, 5, 0))), (3, shown), (4, PEOPLE), (5, few))
    rows = [dict(zip(("table", *COLUMNS), (number, *row), strict=True)) for number, table in tables for row in table]
    somebody = -math.expm1(n * math.log1p(-DELTA))
    error = {p: math.sqrt(p * (1 - p) / runs) for p in (DELTA, somebody)}
    sizes = [math.comb(n, k) * DELTA**k * (1 - DELTA) ** (n - k) for k in range(n + 1)]
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw(figure, sizes),
        caption=f"How many of the {n} rows the second algorithm returns verbatim, with which probability, at δ = "
        f"{DELTA:g}. The data hold the tables: 1 and 4 are the database, 2 is a random table, 3 what the first "
        "algorithm returns with probability δ, 5 what the second returned when it first returned a row.",
        published="Habernal, Privacy-preserving NLP, lecture on approximate differential privacy, tables 1 to 5: both "
        "algorithms are (0, δ)-DP; the first returns the data with probability δ, the second leaks somebody with "
        "probability 1 - (1-δ)^n.",
        comparisons=(
            PublishedComparison("algorithm 1 returns the data", DELTA, full / runs, error[DELTA]),
            PublishedComparison("algorithm 2 leaks somebody", somebody, leaked / runs, error[somebody]),
        ),
        compared=f"Published is the formula, ours the share of {runs:,} runs of the algorithms.",
        found=(
            "Both are (0, δ)-DP, and no smaller δ holds. The outputs of the first algorithm with and without Alice "
            "differ only in where a probability of δ lies. For the second, the positive differences of the "
            f"probabilities of all {2**n} outputs add up to {subset_delta(n, DELTA):.6g}.",
            f"Of {runs:,} runs, {full:,} returned all of the data and {leaked:,} returned somebody's row.",
        ),
        size=(5.6, 3.2),
    )


def _counted(
    algorithm: Callable[[Sequence[Row], float, np.random.Generator], tuple[Row, ...]],
    place: int,
    options: ReproductionOptions,
    leaks: Callable[[tuple[Row, ...]], bool],
) -> tuple[int, tuple[Row, ...]]:
    """In how many runs the algorithm leaks, and what it returned in the first of them; nothing if there is none."""
    rng, runs, count = stream(options.seed, 5, place), options.runs or RUNS, 0
    first: tuple[Row, ...] = ()
    for done in range(runs):
        found = algorithm(PEOPLE, DELTA, rng)
        if leaks(found):
            count, first = count + 1, first or found
        if done % 1000 == 0:
            options.progress(done / runs)
    return count, first


def _draw(figure: Any, sizes: Sequence[float]) -> None:
    axis = figure.subplots()
    axis.bar(range(len(sizes)), sizes, color=[COLOURS[0], *[COLOURS[1]] * (len(sizes) - 1)])
    for k, size in enumerate(sizes):
        axis.annotate(f"{size:.4f}", (k, size), ha="center", va="bottom", fontsize=8)
    axis.set_xticks(range(len(sizes)))
    label(axis, "rows returned verbatim", "probability")
