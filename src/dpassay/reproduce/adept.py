"""ADePT: how many random pairs violate its bound, and why."""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.audit.testing.inference import proportion_interval
from dpassay.compute.devices import has_numba
from dpassay.compute.kernels.philox import key
from dpassay.core.numbers import ONE, middle
from dpassay.pipeline.regions import Ball
from dpassay.reproduce.result import (
    COLOURS,
    DASHES,
    MARKS,
    FigureResult,
    PublishedComparison,
    ReproductionOptions,
    label,
    sampled_counts,
)

PAIRS = 10_000
CLIP = 10.0
DIMENSIONS = range(1, 65)
SHAPES = ("uniform", "normal")
RELEASED = 10_000  # pairs of each cell of emnlp2021.csv: what the released code counts with its own seed, 123456
BATCH = 1 << 18  # pairs of a task
THEIRS = 2 / 3  # each coordinate of the paper's counterexample, in units of C
STEP = 0.005  # of the grid on which sums of absolute normal differences are convolved


def violations(options: ReproductionOptions) -> FigureResult:
    """Figure 1 of Habernal, EMNLP 2021."""
    pairs = options.runs or PAIRS
    exact, counts = normal_curve(), _counts(pairs, options)
    rows: list[dict[str, Any]] = []
    for n in DIMENSIONS:
        for shape in SHAPES:
            beyond, control = counts[f"{n} {shape}"]
            low, high = proportion_interval(beyond, pairs, 0.05)
            known = (0.0, 0.0) if n == 1 else exact[n] if shape == "normal" else (math.nan, math.nan)
            row = {"dim": n, "distribution": shape, "pairs": pairs, "beyond": beyond, "share": beyond / pairs}
            row |= {"low": low, "high": high, "exact_low": known[0], "exact_high": known[1], "l1_clipped": control}
            row["released"] = released(shape, n)
            rows.append(row)
    half = {s: next(r["dim"] for r in rows if r["distribution"] == s and r["share"] > 0.5) for s in SHAPES}
    at32 = {r["distribution"]: r["share"] for r in rows if r["dim"] == 32}
    compared = [_compared(row) for row in rows]
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw_violations(figure, rows),
        caption=f"Share of {pairs:,} random pairs whose l1 distance after l2 clipping exceeds 2C, C = {CLIP:g}; bars: "
        "95 % Clopper-Pearson. Coordinates uniform on (-C, C), or normal with variance 0.1 C. Line: numerical "
        "integration. Gray: what the paper says of its own curves.",
        published="Habernal, EMNLP 2021, Figure 1: the share rises from 0 to nearly all pairs; at 32 dimensions almost "
        "none of the data points would be protected. The documents do not tabulate its curves; the released code, run "
        "with its own seed, counts what is compared here.",
        found=(
            f"At 32 dimensions {at32['uniform']:.1%} (uniform) and {at32['normal']:.1%} (normal) of the pairs break "
            "the bound.",
            f"Half of the pairs break it from {half['uniform']} dimensions (uniform) and {half['normal']} (normal) on.",
            f"Clipped in l1 instead, {sum(r['l1_clipped'] for r in rows)} of {pairs * len(rows):,} pairs break it.",
            "The paper's variance of 0.1 C and a deviation of 0.1 C agree only because C is 10.",
            f"The released code's shares differ from ours by at most {max(abs(c.apart) for c in compared):.2f} "
            f"standard errors in {len(compared)} cells.",
        ),
        comparisons=compared,
        compared="Both are sampled, the published share from 10,000 pairs; the standard error is that of their "
        "difference.",
        size=(6.4, 3.8),
    )


def released(shape: str, dim: int) -> int:
    """How many of 10,000 pairs the released code counts.

    >>> released("uniform", 4), released("normal", 16)
    (6023, 2765)
    """
    return _released()[dim, shape]


@cache
def _released() -> dict[tuple[int, str], int]:
    with (Path(__file__).parent / "published" / "emnlp2021.csv").open(encoding="utf-8", newline="") as file:
        return {(int(row["dim"]), shape): int(row[shape]) for row in csv.DictReader(file) for shape in SHAPES}


def _compared(row: dict[str, Any]) -> PublishedComparison:
    """One cell of the released code and ours; the error is that of two equal shares."""
    both = (row["beyond"] + row["released"]) / (row["pairs"] + RELEASED)
    error = math.sqrt(both * (1 - both) * (1 / row["pairs"] + 1 / RELEASED))
    return PublishedComparison(
        f"{row['distribution']}, n {row['dim']}", row["released"] / RELEASED, row["share"], error
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """One task: pairs `start` to `start + pairs` of a shape in `dim` dimensions."""

    shape: str
    dim: int
    seed: int
    start: int
    pairs: int
    device: str = "cpu"


def beyond_bound(batch: Batch) -> tuple[int, int]:
    """Pairs beyond 2C after l2 clipping, and after l1 clipping.

    >>> beyond_bound(Batch("uniform", 1, 0, 0, 1000))
    (0, 0)
    """
    if batch.device != "numpy" and has_numba():
        from dpassay.compute.kernels.numba_pairs import count_beyond
    else:
        from dpassay.compute.kernels.random_pairs import count_beyond
    stream = key(batch.seed, 0, batch.dim, SHAPES.index(batch.shape))
    return count_beyond(stream, batch.start, batch.pairs, batch.dim, batch.shape, CLIP)


def all_beyond_bound(some: tuple[Batch, ...]) -> list[tuple[int, int]]:
    """The counts of several batches: what is handed to a worker at once."""
    return [beyond_bound(batch) for batch in some]


def _counts(pairs: int, options: ReproductionOptions) -> dict[str, list[int]]:
    """Both counts of every dimension and shape."""

    def tasks(n: int, shape: str) -> Iterator[Batch]:
        for start in range(0, pairs, BATCH):
            yield Batch(shape, n, options.seed, start, min(BATCH, pairs - start), options.device)

    return sampled_counts(
        {f"{n} {shape}": partial(tasks, n, shape) for n in DIMENSIONS for shape in SHAPES},
        run=all_beyond_bound,
        counts=lambda task, found: found,
        draws=lambda task: 2 * task.pairs * task.dim,
        made={"figure": "adept-violations", "runs": pairs},
        options=options,
    )


@cache
def normal_curve() -> dict[int, tuple[float, float]]:
    """P(sum of n |N(0, 2)| > 2C) by convolution, widened by the probability that either vector is clipped at all."""
    from scipy.special import erf, gammaincc

    edges = np.arange(0.0, 2 * CLIP + STEP, STEP)
    mass = np.diff(erf(edges / 2))  # |N(0, 2)| is below t with probability erf(t/2)
    size = 1 << (2 * len(mass) - 1).bit_length()
    spectrum, sums, found = np.fft.rfft(mass, size), mass, {}
    for n in DIMENSIONS:
        # A sum of n cells lies between their left ends and their right ends, n steps farther.
        surely, perhaps = float(sums[: len(mass) - n].sum()), float(sums.sum())
        clipped = 2 * float(gammaincc(n / 2, CLIP**2 / 2))
        found[n] = max(0.0, 1 - perhaps - clipped), min(1.0, 1 - surely + clipped)
        sums = np.fft.irfft(np.fft.rfft(sums, size) * spectrum, size)[: len(mass)]
    return found


def _draw_violations(figure: Any, rows: list[dict[str, Any]]) -> None:
    axis = figure.subplots()
    for shape, colour, mark in zip(SHAPES, COLOURS, MARKS, strict=False):
        chosen = [row for row in rows if row["distribution"] == shape]
        dims = [row["dim"] for row in chosen]
        share = np.array([row["share"] for row in chosen])
        bars = np.abs(np.array([[row["low"], row["high"]] for row in chosen]).T - share)
        axis.errorbar(dims, 100 * share, 100 * bars, fmt=mark, markersize=3, color=colour, elinewidth=0.8, label=shape)
    normal = [row for row in rows if row["distribution"] == "normal"]
    middle_line = [50 * (row["exact_low"] + row["exact_high"]) for row in normal]
    axis.plot([row["dim"] for row in normal], middle_line, color="black", linewidth=0.8, label="normal, integrated")
    axis.plot(DIMENSIONS, [0] * len(DIMENSIONS), color=COLOURS[2], linestyle=DASHES[1], label="clipped in l1 instead")
    axis.axvline(32, color="0.7", linewidth=3, zorder=0, label="published: nearly all")
    label(axis, "dimension n", "pairs beyond 2C (%)", loc="center right")


def sensitivity(options: ReproductionOptions) -> FigureResult:
    """Sections 4 and 5 of the same paper: the ball, the diamond, the worst pair, and growth with the dimension."""
    dims = [2**k for k in range(11)]
    rows = [{"dim": n, "claimed": 2.0, "true": middle(Ball(2, ONE, n).diameter(1))} for n in dims]
    worst, theirs = rows[1]["true"], 4 * THEIRS
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw_sensitivity(figure, rows),
        caption="Left: the l2 ball of radius C in two dimensions, the l1 ball inside it, the worst pair (distance "
        f"{worst:.3g} C in l1) and the paper's counterexample ({theirs:.3g} C). Right: the largest l1 distance of two "
        "clipped vectors, in units of C.",
        published="Habernal, EMNLP 2021, Theorem 5.1: the sensitivity is 2C sqrt(n), where 2C was claimed; the "
        "counterexample with coordinates 2C/3 loses 4/3 of the claimed epsilon.",
        found=(
            f"The counterexample's l1 distance is {theirs:.4g} C, so its loss is {theirs / 2:.4g} eps; "
            f"the worst pair in two dimensions loses {worst / 2:.4g} eps.",
        ),
        size=(7.2, 3.2),
    )


def _draw_sensitivity(figure: Any, rows: list[dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2)
    angle = np.linspace(0, 2 * np.pi, 400)
    left.plot(np.cos(angle), np.sin(angle), color=COLOURS[0], label="l2 ball")
    left.plot([1, 0, -1, 0, 1], [0, 1, 0, -1, 0], color=COLOURS[2], linestyle=DASHES[1], label="l1 ball")
    for size, mark, colour, name in ((0.5**0.5, "X", COLOURS[1], "worst pair"), (THEIRS, "o", "black", "paper's pair")):
        left.plot([size, -size], [size, -size], mark, color=colour, label=name, markersize=5)
    left.set_aspect("equal")
    label(left, "first coordinate / C", "second coordinate / C")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    dims = [row["dim"] for row in rows]
    right.plot(dims, [row["true"] for row in rows], "-o", color=COLOURS[1], markersize=4, label="true: 2C√n")
    right.plot(dims, [row["claimed"] for row in rows], linestyle=DASHES[1], color="black", label="claimed: 2C")
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    label(right, "dimension n", "largest l1 distance / C", loc="best")
