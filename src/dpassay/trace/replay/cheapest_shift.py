"""The cheapest shift of the noise that preserves all decisions of the code: a linear program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay.trace.laws.formulas import bases_of_draw
from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.watch.record import DrawRecord, RecordedRun

MOST_NUMBERS, MOST_ROWS = 400, 4000
_BOTH, _UPWARDS = ("laplace", "logistic"), ("exponential", "gumbel")  # noise that may be shifted, and how

Row = tuple[dict[int, float], float, str]  # Σ coefficient · d compared with a number: "=", "≥" or "≤"


def numbers_of(run: RecordedRun) -> dict[int, tuple[DrawRecord, int]]:
    """Where the numbers that were compared or released are drawn, by their position in the run."""
    found: dict[int, tuple[DrawRecord, int]] = {}
    nodes = [*run.nodes, *(one.numbers for one in run.comparisons if one.numbers is not None)]
    for draw in {draw.start: draw for node in nodes for draw in node.draws}.values():
        if draw.start >= run.first:
            found.update({draw.start - run.first + at: (draw, at) for at in range(max(draw.values.size, 1))})
    return found


def cheapest(run: RecordedRun, rows: Sequence[Row]) -> tuple[dict[int, float], float] | None:
    """The shifts that satisfy all rows with the least loss, and this loss; None if there are none."""
    from scipy.optimize import linprog

    where = numbers_of(run)
    used = sorted({k for row, _, _ in rows for k in row})
    if not used:
        return ({}, 0.0) if all(_trivially(gap, sign) for _, gap, sign in rows) else None
    if len(used) > MOST_NUMBERS or len(rows) > MOST_ROWS or any(k not in where for k in used):
        return None
    costs, ends = [], []
    for k in used:
        cost, least, most = _price(*where[k])
        costs.append(cost)
        ends.append((least, most))
    column = {k: at for at, k in enumerate(used)}
    n = len(used)  # each shift is a difference of two numbers that are not negative
    limits: dict[str, list[Any]] = {"A_ub": [], "b_ub": [], "A_eq": [], "b_eq": []}
    for coefficients, gap, sign in rows:
        line = np.zeros(2 * n)
        for k, by in coefficients.items():
            line[column[k]], line[n + column[k]] = by, -by
        turn = -1.0 if sign == "≥" else 1.0
        limits["A_eq" if sign == "=" else "A_ub"].append(turn * line)
        limits["b_eq" if sign == "=" else "b_ub"].append(turn * gap)
    bounds = [(0.0, high) for _, high in ends] + [(0.0, -low) for low, _ in ends]
    solved = linprog([*costs, *costs], **{name: one or None for name, one in limits.items()}, bounds=bounds)
    if not solved.success:
        return None
    shifts = {k: float(f"{solved.x[at] - solved.x[n + at]:.12g}") for k, at in column.items()}
    shifts = {k: by for k, by in shifts.items() if abs(by) > 1e-12}
    if not _apart([where[k] for k in shifts]):
        return None
    whole = all(by == int(by) for k, by in shifts.items() if where[k][0].values.dtype.kind in "iu")
    return (shifts, math.fsum(costs[column[k]] * abs(by) for k, by in shifts.items())) if whole else None


def _trivially(gap: float, sign: str) -> bool:
    return {"=": abs(gap) < 1e-12, "≥": gap <= 0, "≤": gap >= 0}[sign]


def _price(draw: DrawRecord, at: int) -> tuple[float, float, float]:
    """The loss of shifting a number by 1, and the limits of the shift."""
    law = law_of(draw)
    scale = 0.0 if law is None else abs(float(np.reshape(law.scale, -1)[at]))
    if law is None or not scale or law.share:
        return 0.0, 0.0, 0.0
    if law.kind in _BOTH:
        return 1 / scale, -math.inf, math.inf
    upwards = law.kind in _UPWARDS
    rising = bool(np.reshape(law.scale, -1)[at] > 0)
    if upwards:
        return 1 / scale, *((0.0, math.inf) if rising else (-math.inf, 0.0))
    return 0.0, 0.0, 0.0


def _apart(numbers: Sequence[tuple[DrawRecord, int]]) -> bool:
    """Whether shifted numbers were made from different drawn ones."""
    made = [int(base[at]) for draw, at in numbers for base in bases_of_draw(draw) if base[at] >= 0]
    return len(made) == len(set(made))
