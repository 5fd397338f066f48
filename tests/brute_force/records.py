"""The vectors that records can have: what the stages before the noise make of inputs on a grid.

The grid contains all numbers that are named in the text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from brute_force.laws import Array
from oracle.text import Stage

NEARLY = 1e-9  # tanh and the sigmoid do not reach their limits
DIRECTIONS = {1: 8, 2: 16, 3: 48}


class Refused(Exception):
    """A pipeline that is not enumerated."""


@dataclass(frozen=True)
class Values:
    """Vectors that a record can have."""

    points: Array  # vectors, coordinates
    convex: bool  # all between them as well, for one coordinate
    bounded: bool
    small: bool = False  # there are vectors as small as one likes, in every direction in which there are any
    nearest: Callable[[Array], Array] | None = None  # a vector that a record can have, near any other one

    @property
    def low(self) -> float:
        return float(self.points.min())

    @property
    def high(self) -> float:
        return float(self.points.max())


def _norms(x: Array, norm: str) -> Array:
    if norm == "l1":
        return np.abs(x).sum(-1)
    return np.abs(x).max(-1) if norm == "linf" else np.sqrt((x**2).sum(-1))


def run(stage: Stage, x: Array) -> Array:
    """What a stage before the noise makes of vectors."""
    name = stage.name
    if name == "encode":
        return x
    if name == "clamp":
        return np.clip(x, float(stage.low), float(stage.high))  # type: ignore[arg-type]
    if name == "clip":
        size = _norms(x, str(stage.norm))
        return x * np.minimum(1, float(stage.radius) / np.maximum(size, 1e-300))[..., None]  # type: ignore[arg-type]
    if name == "normalise":
        size = np.sqrt((x**2).sum(-1))
        return np.where(size[..., None] > 0, x / np.maximum(size, 1e-300)[..., None], 0)
    if name == "minmax":
        low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
        return np.where(high > low, (x - low) / np.where(high > low, high - low, 1), 0)
    if name == "squash":
        with np.errstate(over="ignore"):
            y = np.tanh(x) if stage.kind == "tanh" else 1 / (1 + np.exp(-x))
        return np.clip(y, -1 + NEARLY if stage.kind == "tanh" else NEARLY, 1 - NEARLY)
    if name == "round":
        return np.rint(x)
    if name == "repeat":
        return np.tile(x, int(stage.times))  # type: ignore[call-overload]
    raise Refused(name)


def named_numbers(stages: Sequence[Stage]) -> list[float]:
    """Sizes that a text names before its noise."""
    return sorted(
        {abs(float(value)) for stage in stages for value in stage.given.values() if not isinstance(value, str)}  # type: ignore[arg-type]
    )


def raw(stages: Sequence[Stage], dim: int, level: int) -> Array:
    """Inputs that are tried."""
    rounds = any(stage.name == "round" for stage in stages)
    sizes = {1e-6, 0.3, 1.0, 12.0, 1e3, *named_numbers(stages)} | ({0.6, 1.6, 2.6, 3.6} if rounds else set())
    if dim == 1:
        sizes |= {x * share for x in named_numbers(stages) for share in np.linspace(0, 1, 3 + 4 * level)}
        return np.array(sorted({0.0, *sizes, *(-x for x in sizes)}))[:, None]
    angles = np.arange(DIRECTIONS[level]) * 2 * np.pi / DIRECTIONS[level]
    circle = np.round(np.stack([np.cos(angles), np.sin(angles)], -1), 15)
    corners = [np.array([a, b]) for a in (0, *sizes) for b in (0, *(sizes if level > 1 else [max(sizes)]))]
    far = [x * s for x in circle for s in (sorted(sizes)[1:] if level > 1 else [max(sizes), 0.3])]
    signs = [np.array([s, t]) for s in (1, -1) for t in (1, -1)]
    named = [[float(v) for k, v in s.given.items()] for s in stages if s.name == "clamp"]  # type: ignore[arg-type]
    box = [np.array(pair) for one in named for pair in itertools.product(one, repeat=2)]
    return np.unique(np.array([*far, *box, *(corner * sign for corner in corners for sign in signs)]), axis=0)


def thinned(points: Array, most: int) -> Array:
    """At most this many of the points, with the extreme ones, 0 and neighbours of the ends."""
    if len(points) <= most:
        return points
    if points.shape[1] == 1:
        x = points[:, 0]
        keep = {0, len(x) - 1, int(np.argmin(np.abs(x))), 1, len(x) - 2}
        for i in np.linspace(0, len(x) - 1, most).astype(int):
            if len(keep) < most:
                keep.add(int(i))
        return points[sorted(keep)]
    keep = {int(np.argmin((points**2).sum(-1)))}
    angles = np.arange(24) * np.pi / 12
    for angle in [*angles[3::6], *angles[::3], *angles]:
        if len(keep) < most:
            keep.add(int(np.argmax(points @ np.array([np.cos(angle), np.sin(angle)]))))
    return points[sorted(keep)]


def _nearest(stages: Sequence[Stage]) -> Callable[[Array], Array] | None:
    """Vectors near given ones that the stages can give, if these do not make a lattice of all vectors."""
    if not stages or any(stage.name in ("round", "minmax") for stage in stages):
        return None

    def nearest(y: Array) -> Array:
        for stage in reversed(stages):  # something before the stages that becomes about y
            if stage.name == "squash":
                low = -1 + NEARLY if stage.kind == "tanh" else NEARLY
                y = np.clip(y, low, 1 - NEARLY)
                y = np.arctanh(y) if stage.kind == "tanh" else np.log(y / (1 - y))
            elif stage.name == "repeat":
                y = y[..., : y.shape[-1] // int(stage.times)]  # type: ignore[call-overload]
        for stage in stages:
            y = run(stage, y)
        return y

    return nearest


def values(stages: Sequence[Stage], dim: int, level: int) -> Values:
    """The vectors that one record can have before the noise."""
    most = {1: 7, 2: 11, 3: 21}[level] if dim == 1 else {1: 9, 2: 20, 3: 40}[level]
    names = [stage.name for stage in stages]
    if names and names[0] in ("onehot", "bloom"):
        k = int(stages[0].k)  # type: ignore[call-overload]
        if k > 2:
            raise Refused("large")
        ones = 1 if names[0] == "onehot" else int(stages[0].hashes)  # type: ignore[call-overload]
        points = np.array([bits for bits in itertools.product((0.0, 1.0), repeat=k) if 0 < sum(bits) <= ones])
        stages = stages[1:]
    else:
        points = raw(stages, dim, level)
    for stage in stages:
        points = run(stage, points)
    if points.shape[1] > 2:
        raise Refused("large")
    bounded = any(n in ("clip", "normalise", "minmax", "squash", "clamp", "onehot", "bloom") for n in names)
    convex = not {"normalise", "round", "minmax", "onehot", "bloom"} & set(names)
    points = np.unique(np.round(points, 12) + 0.0, axis=0)
    small = convex and "repeat" not in names and bool((points.min(0) <= NEARLY).all() and (points.max(0) >= 0).all())
    return Values(thinned(points, most), convex and points.shape[1] == 1, bounded, small, _nearest(stages))
