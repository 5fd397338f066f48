"""Answers of a query that are at most a distance apart, anywhere where it matters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from mpmath import mpf

from brute_force import datasets, records
from brute_force.cells import Family
from brute_force.laws import Array
from brute_force.records import Refused
from oracle.text import Stage

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
TINY = 1e-6  # how far beside a half answers are that are rounded to an odd number
ROUNDING = 1e-14
NUDGES = 40


def _lengths(x: Array, norm: str) -> Array:
    return np.asarray(np.linalg.norm(x, ORDERS[norm], axis=-1))


def _moves(d: float, norm: str, dim: int, level: int, widths: Sequence[float]) -> Array:
    """Differences of answers, most of them as long as can be."""
    shares = (1, 1 - 1e-6, 0.5, 1e-6, 0.25) if level == 1 else (1, 1 - 1e-6, 0.9, 0.75, 0.5, 0.3, 0.1, 1e-6)
    if dim == 1:
        return np.array([[s * d * x] for x in shares for s in (1, -1)])
    flat = [(1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (1, -2)]
    angles = np.arange(level * 12 if level > 1 else 0) * np.pi / (level * 12)
    flat += [(np.cos(a), np.sin(a)) for a in angles]
    made = [np.array(x) / _lengths(np.array(x), norm) * d * s * t for x in flat for s in (1, -1) for t in (1, 0.5)]
    for k, width in itertools.product((1, 2, 3), widths):  # just above some steps in one coordinate
        first = k * width * (1 + 1e-6)
        if first < d:
            made.append(np.array([first, {"l1": d - first, "l2": np.sqrt(d**2 - first**2), "linf": d}[norm]]))
    return np.array(made)


def _across_halves(d: float, dim: int, far: int) -> tuple[Array, Array]:
    """Answers at halves, or just beside them, and others that are rounded some whole numbers away: 1/2 and 3/2 become
    0 and 2."""
    line = []
    for start, steps in itertools.product(range(-far, far + 2), range(int(d) + 3)):
        end = start + steps
        x = start + 0.5 - TINY * (start % 2) if steps else float(start)
        y = end - 0.5 + TINY * (end % 2) if steps else float(start)
        line += [(x, y), (y, x)]
    pairs = np.array(list(itertools.product(sorted(set(line)), repeat=dim)))  # pairs, coordinates, sides
    return pairs[:, :, 0], pairs[:, :, 1]


def _family(before: Sequence[Stage], x: Array, move: Array, d: float, norm: str, real: bool, search: bool) -> Family:
    """The pairs of answers behind the stages before the noise; with `search` also those nearby."""
    y, z = x, x + move
    for stage in before:
        y, z = records.run(stage, y), records.run(stage, z)
    if y.shape[1] > 2:
        raise Refused("large")

    def nudged(which: Array, share: float) -> Family:
        rng = np.random.default_rng(NUDGES)
        places, moves = np.repeat(x[which], NUDGES, 0), np.repeat(move[which], NUDGES, 0)
        places = places + share * 3 * max(1.0, d) * rng.normal(size=places.shape) * rng.integers(0, 2, places.shape)
        moves = moves + share * 3 * d * rng.normal(size=moves.shape) * rng.integers(0, 2, moves.shape)
        moves = moves * np.minimum(1, d / np.maximum(_lengths(moves, norm), 1e-300))[:, None]
        both = np.concatenate([x[which], places]), np.concatenate([move[which], moves])
        return _family(before, *both, d, norm, real, search)

    one = np.ones(1)
    return Family(y[:, None], one, z[:, None], one, real, None, nudged if search else None)


def answers(
    start: Stage, before: Sequence[Stage], noise: Stage, after: Sequence[Stage], dim: int, level: int, placed: bool
) -> list[Family]:
    """Pairs of answers; `placed` says that it matters where they are."""
    d, norm, whole = float(start.distance), str(start.norm), "whole" in start.given  # type: ignore[arg-type]
    places = records.raw([*before, *after], dim, level) if placed else np.zeros((1, dim))
    places = places[(np.abs(places) <= 30).all(-1)]
    numbers = records.named_numbers([*before, noise, *after])
    rounds = any(stage.name == "round" for stage in (*before, *after))
    if placed and dim == 1:
        grid = np.linspace(-1.2, 1.2, {1: 9, 2: 33, 3: 81}[level]) * max([1.0, *(x for x in numbers if x < 30)])
        named = [*numbers, *((0.5, 1.5) if rounds else ())]
        ends = np.array([s * x + t for x in named for s in (1, -1) for t in (0, d, -d, d / 2, -d / 2)])
        places = np.unique(np.concatenate([places, grid[:, None], ends[:, None]]), axis=0)
    moves = _moves(d, norm, dim, level, [float(noise.sensitivity)] if noise.name == "staircase" else [])  # type: ignore[arg-type]
    if whole:
        top = int(np.floor(d))
        if top > 8:
            raise Refused("large counts")
        line = np.arange(-top, top + 1)
        grid = line[:, None] if dim == 1 else np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
        moves = grid[_lengths(grid, norm) <= d].astype(float)
        places = np.unique(np.rint(places), axis=0)
        places = places[np.abs(places).max(-1) < 40]
    x, move = datasets._rows(places, moves)
    if placed and not whole:  # most is shown about 0 by many stages
        x, move = np.concatenate([x, -moves / 2]), np.concatenate([move, moves])
    found = [_family(before, x, move, d, norm, True, not whole)]
    if any(stage.name == "round" for stage in before) and not whole:
        if d > 8:
            raise Refused("large answers")
        far = int(min(max([0.0, *(n for n in numbers if n < 10)]), 6)) + 1 if placed and dim == 1 else 1
        x, y = _across_halves(d, dim, far)
        length, least = _lengths(y - x, norm), d if mpf(d) <= start.distance else np.nextafter(d, 0)  # type: ignore[operator]
        exact = mpf(d) == start.distance and round(d * 8) == d * 8  # then so are the squares of halves and of d
        surely = ((y - x) ** 2).sum(-1) <= d**2 if norm == "l2" and exact else length <= least
        surely &= (length <= least * (1 - ROUNDING)) | (norm != "l2") | exact
        perhaps = length <= d * (1 + ROUNDING)
        for some, real in ((surely, True), (perhaps & ~surely, False)):
            if some.any():
                found.append(_family(before, x[some], (y - x)[some], d, norm, real, False))
    return found
