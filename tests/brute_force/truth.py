"""What small data sets show of a pipeline's loss: at least so much, and, of all that were tried, at most so much.

`at_least` is never above the truth, but for the rounding of doubles. `tried` is the largest loss found in the
enumeration, in which pairs that bound all data sets stand beside real ones; a lower bound of a prover that exceeds it
has a witness that the enumeration does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from mpmath import mp, mpf

from brute_force import datasets, queries, records
from brute_force.behind import Behind, Unknown, behind
from brute_force.cells import Family
from brute_force.finite import Finite, finite
from brute_force.found import FINENESS, Channel, Found, few
from brute_force.laws import Noise, noise
from brute_force.records import Refused, Values
from oracle.text import Stage, Unreadable
from oracle.text import stages as read

SAMPLINGS = ("poisson", "subsample", "shuffle", "dropout")
NOISES = (
    *("laplace", "gaussian", "radial", "onesided", "leak", "discrete_laplace", "discrete_gaussian"),
    *("truncated_laplace", "bounded_laplace", "staircase"),
)
COORDINATEWISE = ("clamp", "round", "squash", "decode", "encode")
MOST_RECORDS = 1000
MOST_PAIRS = {1: 400, 2: 20000, 3: 40000}


@dataclass(frozen=True)
class Pipeline:
    """A text, taken apart."""

    sampling: Stage | None
    start: Stage | None  # query or rows
    before: tuple[Stage, ...]
    noise: Stage
    after: tuple[Stage, ...]
    steps: int


def parsed(all_of_them: list[Stage]) -> Pipeline | None:
    """Take a pipeline apart; None if no noise is added."""
    steps, sampling, start = 1, None, None
    if all_of_them and all_of_them[-1].name == "times":
        steps = int(all_of_them.pop().steps)  # type: ignore[call-overload]
    if all_of_them and all_of_them[0].name in SAMPLINGS:
        sampling = all_of_them.pop(0)
    if all_of_them and all_of_them[0].name in ("query", "rows"):
        start = all_of_them.pop(0)
    first = next((i for i, stage in enumerate(all_of_them) if stage.name in NOISES), None)
    if first is None:
        return None
    return Pipeline(
        sampling, start, tuple(all_of_them[:first]), all_of_them[first], tuple(all_of_them[first + 1 :]), steps
    )


def _window(noise: Noise, after: Behind, v: Values) -> tuple[float, float] | None:
    """Which places of the sum matter: near the cuts behind the noise, or none."""
    if len(after.pieces) == 1 and noise.moves:
        return None
    cuts = [cut for cut in after.cuts if abs(cut) < 20] + list(noise.limits)
    if len(after.cuts) > 50:
        cuts = [cut for cut in cuts if abs(cut) < 1] or cuts
    wide = min(noise.reach / 6, 12) + (v.high - v.low)
    return min(cuts, default=0.0) - wide, max(cuts, default=0.0) + wide


def _relation(neighbours: str) -> tuple[str, int]:
    """What neighbours differ in, and how many of them."""
    if match := re.fullmatch(r"(group|words|tokens)\((\d+)\)", neighbours):
        return "add-remove-record" if match[1] == "group" else "word", int(match[2])
    if neighbours in ("user", "entity", "user-entity"):
        return "add-remove-record", 1
    if neighbours not in ("any", "word", "replace-record", "add-remove-record", "query"):
        raise Refused(neighbours)
    return neighbours, 1


def families(line: Pipeline, dim: int, neighbours: str, level: int, law: Noise, after: Behind) -> list[Family]:
    """All pairs that are tried."""
    kind = line.sampling.name if line.sampling else ""
    if line.start is not None and line.start.name == "query":
        if kind or neighbours not in ("query", "replace-record", "add-remove-record"):
            raise Refused("a query that is sampled")
        return queries.answers(
            line.start,
            line.before,
            line.noise,
            line.after,
            dim,
            level,
            bool(line.before) or len(after.pieces) > 1 or not law.moves,
        )
    v = records.values(line.before, dim, level)
    window = _window(law, after, v)
    if line.start is not None:  # rows
        if kind or neighbours != "replace-record":
            raise Refused("rows that are sampled")
        if any(stage.name not in ("clamp", "squash", "round", "encode") for stage in line.before):
            raise Refused("rows that are mixed")
        if dim == 1:
            return datasets.any_two(v)
        one = records.values(line.before, 1, level)
        a, b, c = datasets._rows(one.points, one.points, one.points[[0, -1]] if window else one.points[:1])
        made = [np.concatenate([x, c], 1)[:, None] for x in (a, b)]
        return [Family(made[0], np.ones(1), made[1], np.ones(1))]
    neighbours, count = _relation(neighbours)
    added = neighbours == "add-remove-record"
    if count > 1 and kind not in ("", "dropout"):
        raise Refused("groups that are sampled")
    if kind == "poisson":
        q = float(line.sampling.rate)  # type: ignore[union-attr,arg-type]
        if neighbours not in ("add-remove-record", "replace-record"):
            raise Refused(neighbours)
        return datasets.poisson(v, q, window, level, added, not law.discrete)
    if kind == "subsample":
        m, n = int(line.sampling.m), int(line.sampling.n)  # type: ignore[union-attr,call-overload]
        if n > MOST_RECORDS:
            raise Refused("many records")
        return datasets.subsample(v, m, n, window, level)
    if kind == "dropout":
        if neighbours == "word":
            return datasets.with_dropout(v, 1 - float(line.sampling.mu) ** count)  # type: ignore[union-attr,arg-type]
        if neighbours != "any":
            raise Refused(neighbours)
    if kind == "shuffle":
        return [Family(f.p, f.weights_p, f.q, f.weights_q, False) for f in datasets.shifted(v, window, level, False)]
    if added and count > 1:
        return datasets.grouped(v, window, level, count)
    if added or neighbours == "replace-record":
        return datasets.shifted(v, window, level, added)
    return datasets.any_two(v)


def _shuffled(v: Values, batches: int) -> Iterator[Family]:
    """Two batches, one step each, as one law of two numbers: the others are alike."""
    if batches != 2 or v.points.shape[1] != 1:
        return
    few = v.points[[0, int(np.argmin(np.abs(v.points[:, 0]))), -1]]
    w, a, b = datasets._rows(few, few, few)
    for others in (0, 1):
        s, t = others * w, (others + 1) * w
        p = np.stack([np.concatenate([s + a, t], 1), np.concatenate([t, s + a], 1)], 1)
        q = np.stack([np.concatenate([s + b, t], 1), np.concatenate([t, s + b], 1)], 1)
        half = np.array([0.5, 0.5])
        yield Family(p, half, q, half)


def _followed(line: Pipeline, dim: int) -> tuple[Behind, bool]:
    """What the stages behind the noise do, and whether they are known; if not, as if they were not there."""
    try:
        if dim > 1 and any(stage.name not in COORDINATEWISE for stage in line.after):
            raise Unknown("mixes coordinates")
        return behind(line.after), True
    except Unknown:
        return behind(()), False


def _exact_staircase(line: Pipeline, dim: int) -> float | None:
    """⌈distance/sensitivity⌉·ε in 50 digits, for one number that is not sampled and comes out as it is."""
    if line.noise.name != "staircase" or line.sampling or line.after or dim != 1 or line.before:
        return None
    if line.start is None or line.start.name != "query" or "whole" in line.start.given:
        return None
    with mp.workdps(50):
        return float(mp.ceil(line.start.distance / line.noise.sensitivity) * line.noise.epsilon)  # type: ignore[operator]


def found_in(text: str, values: dict[str, object], dim: int, neighbours: str, level: int = 1) -> Found | Finite:
    """Enumerate a pipeline's small data sets; `level` 1 to 3 says how many.

    Raises Refused for what is not enumerated, and Unreadable for what is not read.
    """
    with mp.workdps(50):
        stages = read(text, {key: mpf(str(value)) for key, value in values.items()} | {"dim": mpf(dim)})
    line = parsed(list(stages))
    if line is None:
        steps = int(stages.pop().steps) if stages[-1].name == "times" else 1  # type: ignore[call-overload]
        return finite(stages, steps, dim, neighbours, level)
    law = noise(line.noise.name, dict(line.noise.given))
    if law is None:
        raise Refused(line.noise.name)
    if dim > 2 or (line.start is not None and any(stage.name == "repeat" for stage in line.before)):
        raise Refused("large")
    wide = records.values(line.before, dim, 1) if line.start is None else None
    out_dim = wide.points.shape[1] if wide is not None else dim
    if line.noise.name == "radial" and out_dim > 1 and line.noise.norm != "l1":
        raise Refused("coordinates that are not independent")
    after, known = _followed(line, out_dim)
    limited = any(stage.name in ("clamp", "squash") for stage in line.before)
    bounded = wide.bounded if wide is not None else line.start.name == "query" or limited  # type: ignore[union-attr]
    fineness = FINENESS[level][out_dim]
    if line.steps > 1:
        fineness = min(fineness, {1: 30, 2: 150, 3: 300}[level])
    channel = Channel(law, after, fineness, (1500 if line.noise.name == "staircase" else 400) if out_dim == 1 else 60)
    most = MOST_PAIRS[level] if out_dim > 1 else {1: 4000, 2: 40000, 3: 200000}[level]
    pairs = [(channel, few(family, most)) for family in families(line, dim, neighbours, level, law, after)]
    if line.sampling is not None and line.sampling.name == "shuffle":
        if line.steps > 1:
            raise Refused("epochs")
        vectors = records.values(line.before, dim, level)
        flat = replace(channel, fineness={1: 15, 2: 40, 3: 80}[level])
        pairs += [(flat, family) for family in _shuffled(vectors, int(line.sampling.batches))]  # type: ignore[call-overload]
    exact = _exact_staircase(line, out_dim)
    if not known:  # nothing is shown through stages that are not followed, and they show no more than without them
        pairs, exact = [(c, replace(family, real=False)) for c, family in pairs], None
    return Found(tuple(pairs), level, line.steps, bounded, exact)


__all__ = ["Finite", "Found", "Refused", "Unreadable", "found_in"]
