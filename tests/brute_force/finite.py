"""Mechanisms with finitely many outputs, all of whose probabilities are written down: bits, categories and choices."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import inf

import numpy as np

from brute_force import datasets, records
from brute_force.laws import Array
from brute_force.records import Refused
from oracle.text import Stage

CHOICES = ("exponential", "noisymax")
FINITE = ("flip", "bits", *CHOICES)
MOST_BITS = 5


@dataclass(frozen=True)
class Finite:
    """Pairs of rows of probabilities."""

    p: Array
    q: Array
    steps: int
    bounded: bool

    def at_least(self, epsilon: float) -> float:
        """The largest δ(ε) of a pair; that of a pair and of its reverse."""
        largest = 0.0
        for one, other in ((self.p, self.q), (self.q, self.p)):
            p, q = one, other
            for _ in range(self.steps - 1):
                p = (p[:, :, None] * one[:, None]).reshape(len(p), -1)
                q = (q[:, :, None] * other[:, None]).reshape(len(q), -1)
            largest = max(largest, float(np.maximum(p - np.exp(min(epsilon, 700.0)) * q, 0).sum(1).max()))
        return largest

    def tried(self, epsilon: float, enough: float = inf) -> float:
        return self.at_least(epsilon)

    @property
    def pure_at_least(self) -> float:
        if ((self.p > 0) != (self.q > 0)).any():
            return inf
        used = self.p > 0
        return self.steps * float(np.abs(np.log(self.p[used]) - np.log(self.q[used])).max(initial=0))

    def pure_tried(self, enough: float = inf) -> float:
        return self.pure_at_least


def _redrawn(stage: Stage, bits: Array) -> tuple[Array, Array]:
    """P(output bit = 1) and P(output bit = 0) at each position; both rounded once."""
    if stage.name == "flip":
        even, odd, zero = stage.keep, stage.keep, 1 - stage.keep  # type: ignore[operator]
    else:
        even, odd, zero = stage.even, stage.odd, stage.zero
    at_even = np.arange(bits.shape[1]) % 2 == 0
    one, other = (
        np.where(bits == 1, np.where(at_even, float(a), float(b)), float(c))  # type: ignore[arg-type]
        for a, b, c in ((even, odd, zero), (1 - even, 1 - odd, 1 - zero))  # type: ignore[operator]
    )
    return one, other


def _of_bits(stage: Stage, bits: Array) -> Array:
    ones, zeros = _redrawn(stage, bits)
    outputs = np.array(list(itertools.product((0, 1), repeat=bits.shape[1])))
    return np.where(outputs[None] == 1, ones[:, None], zeros[:, None]).prod(-1)


def _chosen(stage: Stage, scores: Array) -> Array:
    """The probabilities of each index."""
    if stage.name == "exponential":
        powers = float(stage.rate) * (scores - scores.max(1, keepdims=True))  # type: ignore[arg-type]
        with np.errstate(under="ignore"):
            return np.exp(powers) / np.exp(powers).sum(1, keepdims=True)
    if scores.shape[1] == 1:
        return np.ones((len(scores), 1))
    if scores.shape[1] != 2:
        raise Refused("many scores")
    gap = np.abs(scores[:, 0] - scores[:, 1]) / float(stage.scale)  # type: ignore[arg-type]
    # P(the lower score wins): the difference of two exponential noises is Laplace noise, that of two Laplace ones has
    # the tail (2 + t) e^(−t)/4.
    less = np.exp(-gap) / 2 if stage.noise == "exponential" else (2 + gap) * np.exp(-gap) / 4
    behind = (scores[:, 0] < scores[:, 1])[:, None] == np.array([[True, False]])
    return np.where(behind, less[:, None], 1 - less[:, None])  # a small one is not what is left of 1


def _scores(before: list[Stage], dim: int, level: int) -> Array:
    """Scores on a grid, with the corners of what bounds them."""
    sizes = sorted({0.0, 0.4, 1e3, *records.named_numbers(before)})
    line = sorted({*sizes, *(-x for x in sizes)})
    points = np.array(list(itertools.product(line if level > 1 or dim < 3 else [line[0], 0, line[-1]], repeat=dim)))
    for stage in before:
        points = records.run(stage, points)
    points = np.unique(np.round(points, 12), axis=0)
    return points if len(points) < 160 else points[np.linspace(0, len(points) - 1, 160).astype(int)]


def finite(stages: list[Stage], steps: int, dim: int, neighbours: str, level: int) -> Finite:
    """All pairs of inputs of a mechanism that ends with its choice."""
    if steps > 2 or neighbours not in ("any", "query") or len(stages) < 2 or stages[-1].name not in FINITE:
        raise Refused("not a choice that comes last")
    if dim > 3 and stages[-1].name in CHOICES:
        raise Refused("many scores")
    *before, last = stages
    first, bounded = before[0], True
    if first.name in ("category", "hash") and last.name == "flip" and len(before) == 1:
        k = int(first.k)  # type: ignore[call-overload]
        keep, rest = float(last.keep), float(1 - last.keep)  # type: ignore[arg-type,operator]
        laws = np.eye(k) * keep + (1 - np.eye(k)) * rest / max(k - 1, 1) if k > 1 else np.ones((1, 1))
    elif first.name in ("onehot", "bloom") and last.name in ("flip", "bits") and len(before) == 1:
        k = int(first.k)  # type: ignore[call-overload]
        ones = 1 if first.name == "onehot" else int(first.hashes)  # type: ignore[call-overload]
        if k > MOST_BITS:
            raise Refused("many bits")
        laws = _of_bits(last, np.array([b for b in itertools.product((0, 1), repeat=k) if 0 < sum(b) <= ones]))
    elif last.name in CHOICES and first.name == "query" and len(before) == 1 and "whole" not in first.given:
        units = np.array([x for x in itertools.product((-1, 0, 1), repeat=dim) if any(x)], float)
        size = {"l1": 1, "l2": 2, "linf": np.inf}[str(first.norm)]
        moves = units / np.linalg.norm(units, size, axis=1, keepdims=True) * float(first.distance)  # type: ignore[arg-type]
        gaps = np.array([-30, -3, -1, -0.3, 0, 0.3, 1, 3, 30]) * max(1.0, float(first.distance))  # type: ignore[arg-type]
        places = np.array([x for x in itertools.product(gaps, repeat=dim) if x[0] == 0])
        x, move = datasets._rows(places, moves)
        return Finite(_chosen(last, x), _chosen(last, x + move), steps, bounded=False)
    elif last.name in CHOICES and first.name in ("clip", "clamp", "squash", "normalise", "minmax"):
        laws = _chosen(last, _scores(before, dim, level))
    else:
        raise Refused("not enumerated")
    i, j = np.meshgrid(*[np.arange(len(laws))] * 2)
    return Finite(laws[i.ravel()], laws[j.ravel()], steps, bounded)
