"""One coordinate with Laplace or Gaussian noise, and stages behind it: the output's exact distribution, piece by piece.

Behind the noise the line falls into pieces: on some the output is one value, on the others nothing is lost. For two
inputs both kinds have closed forms. Inputs are tried on a grid; between its points the distributions hardly change,
which bounds from above what any pair shows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpmath import mpf
from scipy.special import ndtr

from oracle.losses import INF, Ends, Truth
from oracle.text import Stage
from oracle.values import Values, whole

POINTS, MOST_CELLS = 61, 40
Map = Callable[[float], float]


@dataclass(frozen=True)
class Piece:
    """An interval of noisy values; all give the output `label`, or each one its own where there is no label."""

    low: float
    high: float
    label: Hashable = None
    there: Map = float  # what the stages so far make of a value, where each has its own
    back: Map = float


def _cut(piece: Piece, at: Sequence[float], label: Callable[[float], Hashable]) -> list[Piece]:
    """A piece cut at these outputs; `label` says what a middle value of a part becomes, None: itself."""
    if piece.label is not None:
        return [Piece(piece.low, piece.high, label(float(piece.label)) or piece.label)]  # type: ignore[arg-type]
    ends = [piece.there(piece.low), *(x for x in at if piece.there(piece.low) < x < piece.there(piece.high))]
    ends.append(piece.there(piece.high))
    found = []
    for a, b in itertools.pairwise(ends):
        middle = b - 1 if a == -math.inf else a + 1 if b == math.inf else (a + b) / 2
        low = piece.low if a == ends[0] else piece.back(a)
        high = piece.high if b == ends[-1] else piece.back(b)
        found.append(Piece(low, high, label(middle), piece.there, piece.back))
    return found


def _squashed(piece: Piece, kind: str) -> Piece:
    def there(x: float) -> float:
        return math.tanh(x) if kind == "tanh" else 0.5 + 0.5 * math.tanh(x / 2)

    def back(y: float) -> float:
        y = y if kind == "tanh" else 2 * y - 1
        inner = math.inf if y >= 1 else -math.inf if y <= -1 else math.atanh(y)
        return inner if kind == "tanh" else 2 * inner

    if piece.label is not None:
        return Piece(piece.low, piece.high, there(float(piece.label)))  # type: ignore[arg-type]
    return Piece(piece.low, piece.high, None, lambda x: there(piece.there(x)), lambda y: piece.back(back(y)))


def _after(pieces: list[Piece], stage: Stage, reach: int) -> list[Piece]:
    if stage.name in ("encode", "decode"):
        return pieces
    if stage.name in ("clip", "clamp"):
        ends = (-stage.radius, stage.radius) if stage.name == "clip" else (stage.low, stage.high)  # type: ignore[operator]
        low, high = map(float, ends)  # type: ignore[arg-type]
        return [
            q for p in pieces for q in _cut(p, (low, high), lambda x: low if x <= low else high if x >= high else None)
        ]
    if stage.name == "normalise":
        return [q for p in pieces for q in _cut(p, (0.0,), lambda x: math.copysign(1.0, x) if x else 0.0)]
    if stage.name == "minmax":
        return [Piece(-math.inf, math.inf, 0.0)]
    if stage.name == "squash":
        return [_squashed(p, str(stage.kind)) for p in pieces]
    if stage.name == "round":  # far out whole numbers are put together: both densities fall alike there
        halves = [k + 0.5 for k in range(-reach, reach)]
        return [q for p in pieces for q in _cut(p, halves, lambda x: float(np.rint(np.clip(x, -reach, reach))))]
    raise NotImplementedError(stage.name)


def _binary(pieces: list[Piece], stage: Stage) -> list[Piece]:
    integer, fraction = whole(stage.integer), whole(stage.fraction)
    most = 2 ** (integer + fraction)

    def label(x: float) -> Hashable:
        return "-" if x < 0 else "+", min(most - 1, math.floor(abs(x) * 2**fraction))

    marks = sorted(s * k / 2**fraction for k in range(most + 1) for s in (-1, 1))
    return [q for p in pieces for q in _cut(p, marks, label)]


def pieces_behind(after: Sequence[Stage], reach: int) -> list[Piece]:
    """What the stages behind the noise leave of a number, for inputs no farther than this from 0."""
    if reach > MOST_CELLS and any(stage.name == "round" for stage in after):
        raise NotImplementedError
    pieces = [Piece(-math.inf, math.inf)]
    for i, stage in enumerate(after):
        if stage.name == "binary":
            if any(later.name != "decode" for later in after[i + 1 :]):
                raise NotImplementedError
            return _binary(pieces, stage)
        pieces = _after(pieces, stage, reach)
    return pieces


def inputs(v: Values, width: float) -> tuple[np.ndarray, np.ndarray, float]:
    """All pairs of a grid of values that neighbours can bring, and half its step."""
    if v.kind == "query":
        reach = 4 * float(v.size) + 12 * width + 6
        x = np.linspace(-reach, reach, 4 * POINTS + 1)
        steps = np.linspace(-1, 1, 9) * float(v.size)
        return (
            np.repeat(x, 9),
            np.repeat(x, 9) + np.tile(steps, len(x)),
            float(max(x[1] - x[0], steps[1] - steps[0])) / 2,
        )
    low, high = (-v.size, v.size) if v.kind in ("ball", "sphere") else (v.low, v.high)
    x = np.linspace(float(low), float(high), POINTS)
    return np.repeat(x, POINTS), np.tile(x, POINTS), float(x[1] - x[0]) / 2


class Line:
    """The distributions behind the noise of all pairs of a grid."""

    def __init__(self, noise: Stage, v: Values, after: Sequence[Stage]) -> None:
        self.laplace = noise.name == "laplace"
        self.width = float(noise.scale if self.laplace else noise.sigma)  # type: ignore[arg-type]
        self.x, self.y, self.half = inputs(v, self.width)
        self.pieces = pieces_behind(after, math.ceil(max(abs(self.x).max(), abs(self.y).max())) + 1)

    def cdf(self, t: float | np.ndarray, centre: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            z = (t - centre) / self.width
            if not self.laplace:
                return np.asarray(ndtr(z))
            return np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2)

    def mass(self, low: float, high: float, centre: np.ndarray) -> np.ndarray:
        """P(low < centre + noise < high), from the tail that is nearer, so that small ones keep their digits."""
        right = low >= centre
        direct = self.cdf(high, centre) - self.cdf(low, centre)
        mirrored = self.cdf(2 * centre - low, centre) - self.cdf(2 * centre - high, centre)
        return np.where(right, mirrored, direct)

    @cached_property
    def labels(self) -> dict[Hashable, tuple[np.ndarray, np.ndarray]]:
        found: dict[Hashable, tuple[np.ndarray, np.ndarray]] = {}
        for piece in self.pieces:
            if piece.label is not None:
                p, q = (self.mass(piece.low, piece.high, centre) for centre in (self.x, self.y))
                before = found.get(piece.label, (np.zeros_like(p), np.zeros_like(q)))
                found[piece.label] = before[0] + p, before[1] + q
        return found

    def delta(self, e: float) -> float:
        """The largest δ at ε among the pairs."""
        weight = math.exp(min(e, 600.0))
        total = np.zeros_like(self.x)
        for p, q in self.labels.values():
            total += np.maximum(0, p - weight * q)
        gap = self.y - self.x
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = (self.x + self.y) / 2
            if self.laplace:
                share = np.clip(e * self.width / np.where(gap == 0, 1, np.abs(gap)), -1, 1)
                turn = middle - share * gap / 2
                turn = np.where(np.abs(gap) <= e * self.width, np.where(gap > 0, -np.inf, np.inf), turn)
            else:
                turn = middle - e * self.width**2 / np.where(gap == 0, 1e-300, gap)
        for piece in self.pieces:
            if piece.label is None:  # the likelihood ratio falls along the line where the second value is larger
                low = np.where(gap > 0, piece.low, np.clip(turn, piece.low, piece.high))
                high = np.where(gap > 0, np.clip(turn, piece.low, piece.high), piece.high)
                p, q = (self.cdf(high, c) - self.cdf(low, c) for c in (self.x, self.y))
                total += np.where(gap == 0, max(0.0, 1 - weight) * p, np.maximum(0, p - weight * q))
        return float(total.max())

    def pure(self) -> float:
        """The largest log-ratio among the pairs, infinite where it grows without end."""
        best = 0.0
        for p, q in self.labels.values():
            seen = (p > 1e-250) & (q > 1e-250)
            best = max(best, float(np.log(p[seen] / q[seen]).max(initial=0.0)))
        for piece in self.pieces:
            if piece.label is None and piece.low < piece.high:
                for end in (piece.low, piece.high):
                    t = np.clip(end, -1e6, 1e6)
                    one, other = np.abs(t - self.x), np.abs(t - self.y)
                    ratio = (other - one) / self.width if self.laplace else (other**2 - one**2) / (2 * self.width**2)
                    best = max(best, float(ratio.max()))
                if math.isinf(piece.low) or math.isinf(piece.high):
                    best = best if self.laplace or not (self.x != self.y).any() else math.inf
        return best

    def truth(self) -> Truth:
        """What the grid shows, and what no pair between its points can exceed."""
        pure, h = self.pure(), self.half / self.width
        low = mpf(pure) * (1 - mpf("1e-6"))

        def delta(e: mpf) -> Ends:
            at = float(min(e, mpf(500)))
            shown = self.delta(at)
            if self.laplace:  # densities change by at most a factor e^h from a grid point to what lies beside it
                most = math.exp(h) * self.delta(at - 2 * h)
            else:  # in total variation by at most h/√(2π)
                most = shown + (1 + math.exp(min(at, 300.0))) * h / math.sqrt(2 * math.pi)
            return max(mpf(0), mpf(shown) - mpf("1e-9")), min(mpf(1), mpf(most) + mpf("1e-9"))

        return Truth((low, mpf(pure) * (1 + mpf("1e-6")) + 2 * h if self.laplace else INF), delta)


def line_truth(noise: Stage, v: Values, after: Sequence[Stage]) -> Truth | None:
    """What is known about one number after noise and these stages; None if this file does not cover them."""
    if v.dim != 1 or v.times != 1 or not v.tight or v.kind not in ("ball", "box", "query", "sphere"):
        return None
    try:
        return Line(noise, v, after).truth()
    except NotImplementedError:
        return None
