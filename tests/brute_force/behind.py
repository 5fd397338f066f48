"""What the stages behind the noise make of one number: which of its values become the same output.

The line is cut where a stage bends. On each piece the output is constant, or all values stay apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oracle.text import Stage

FAR = 60  # round and binary are followed this far
Inverse = Callable[[float], float | None]


@dataclass(frozen=True)
class Piece:
    """An open interval, with its one output, or None where values stay apart."""

    low: float
    high: float
    value: object = None


class Unknown(Exception):
    """A stage that is not followed."""


def _atanh(y: float) -> float | None:
    return float(np.arctanh(y)) if -1 < y < 1 else None


def _logit(y: float) -> float | None:
    return float(np.log(y / (1 - y))) if 0 < y < 1 else None


def written_in_bits(x: float, integer: int, fraction: int) -> tuple[int, ...]:
    """The sign, and the size in units of the last bit; all ones where it has too many."""
    if abs(x) >= 2.0**integer:
        return int(x < 0), 2 ** (integer + fraction) - 1
    return int(x < 0), int(np.floor(abs(x) * 2.0**fraction))


def _function(stage: Stage) -> tuple[list[float], Callable[[float], object]]:
    """Where a stage bends, and what it makes of a value."""
    if stage.name == "clamp":
        low, high = float(stage.low), float(stage.high)  # type: ignore[arg-type]
        return [low, high], lambda x: min(max(x, low), high)
    if stage.name == "clip":
        size = float(stage.radius)  # type: ignore[arg-type]
        return [-size, size], lambda x: min(max(x, -size), size)
    if stage.name == "normalise":
        return [0.0], lambda x: float(np.sign(x))
    if stage.name == "round":
        return [k + 0.5 for k in range(-FAR, FAR)], lambda x: float(np.rint(x))
    if stage.name == "binary":
        m, n = int(stage.integer), int(stage.fraction)  # type: ignore[call-overload]
        ends = [i * 2.0**-n for i in range(-(2 ** (m + n)), 2 ** (m + n) + 1)]
        return ends, lambda x: written_in_bits(x, m, n)
    raise Unknown(stage.name)


SQUASHES: dict[str, tuple[Callable[[float], float], Inverse]] = {
    "tanh": (lambda x: float(np.tanh(x)), _atanh),
    "sigmoid": (lambda x: float(1 / (1 + np.exp(-x))), _logit),
}


@dataclass(frozen=True)
class Behind:
    """All stages behind the noise, for one number."""

    pieces: tuple[Piece, ...]
    chain: tuple[str, ...]
    steps: tuple[Stage, ...]

    @property
    def cuts(self) -> list[float]:
        return [piece.high for piece in self.pieces[:-1]]

    def at(self, x: float) -> object:
        """The output, or None where it names the value."""
        value: object = x
        for stage in self.steps:
            if stage.name in ("decode", "encode"):
                continue
            if stage.name == "minmax":
                value = 0.0
            elif stage.name == "squash":
                value = SQUASHES[str(stage.kind)][0](value)  # type: ignore[arg-type]
            else:
                value = _function(stage)[1](value)  # type: ignore[arg-type]
        same = {piece.value for piece in self.pieces if piece.value is not None}
        value = _label(value)
        return value if value in same else None


def _label(value: object) -> object:
    return round(value, 11) + 0.0 if isinstance(value, float) else value


def _back(chain: Sequence[str], y: float) -> float | None:
    value: float | None = y
    for kind in reversed(chain):
        value = SQUASHES[kind][1](value) if value is not None else None
    return value


def _forth(chain: Sequence[str], x: float) -> float:
    for kind in chain:
        x = SQUASHES[kind][0](x)
    return x


def _then(pieces: list[Piece], chain: tuple[str, ...], stage: Stage) -> list[Piece]:
    cuts, function = _function(stage)
    before = sorted(x for cut in cuts if (x := _back(chain, cut)) is not None)
    flat = stage.name in ("normalise", "round", "binary")
    made = []
    for piece in pieces:
        if piece.value is not None:
            made.append(Piece(piece.low, piece.high, _label(function(piece.value))))  # type: ignore[arg-type]
            continue
        ends = [piece.low, *(x for x in before if piece.low < x < piece.high), piece.high]
        for low, high in itertools.pairwise(ends):
            inside = _forth(chain, _inside(low, high))
            value = function(inside)
            made.append(Piece(low, high, _label(value) if flat or value != inside else None))
    return made


def _inside(low: float, high: float) -> float:
    if np.isinf(low) and np.isinf(high):
        return 0.1
    if np.isinf(low):
        return high - 1e-3
    return low + 1e-3 if np.isinf(high) else (low + high) / 2


def behind(stages: Sequence[Stage]) -> Behind:
    """Follow the stages; Unknown where one is not followed."""
    pieces, chain, done = [Piece(-np.inf, np.inf)], (), False
    for stage in stages:
        if done or any(isinstance(piece.value, tuple) for piece in pieces):
            raise Unknown(f"something behind {stages}")
        if stage.name in ("decode", "encode"):  # any function: behind it nothing is known
            done = stage is not stages[-1]
        elif stage.name == "minmax":
            pieces = [Piece(-np.inf, np.inf, 0.0)]
        elif stage.name == "squash":
            act = SQUASHES[str(stage.kind)][0]
            pieces = [
                piece if piece.value is None else Piece(piece.low, piece.high, _label(act(piece.value)))  # type: ignore[arg-type]
                for piece in pieces
            ]
            chain = (*chain, str(stage.kind))
        else:
            pieces = _then(pieces, chain, stage)
    if done:
        raise Unknown("decode")
    return Behind(tuple(pieces), chain, tuple(stages))
