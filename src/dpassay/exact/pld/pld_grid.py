"""Composition on a grid, certified from both sides. Proof: docs/proofs/discretisation.md.

From above, a cell's mass is *spread* to two grid points around it so that its total P and Q mass
stay the same; from below it is *collapsed* to one point no larger than its own loss. Both errors are
of second order in the step. The composition is one FFT of the exponentially tilted masses, over the
whole support, so nothing wraps around; its rounding error is bounded and charged to δ.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpassay.core.functions.roots import falling_root
from dpassay.core.numbers import ZERO, Number, down, exactly, middle, real, up
from dpassay.errors import InputError
from dpassay.exact.pld.loss_components import Cells, LossComponent, high_share
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

MAX_POINTS = 1 << 23
MANY = 32  # losses or more: most frequencies of their sum are below all doubles, and left out
_NOTHING = -760.0  # e to this is 0 in doubles, and so is what repeated squaring makes of a number that is less
KEPT_POINTS = 1 << 21  # of the latest compositions together, about 32 bytes each
_U = 2.0**-53
# Relative error of one cell's mass: a handful of correctly rounded operations, exp and sinh.
_MASS_ERROR = 64 * _U

# delta-up and delta-down bound δ; loss-up and loss-down move every loss up or down, for tails.
Side = Literal["delta-up", "delta-down", "loss-up", "loss-down"]


@dataclass(frozen=True)
class LossGrid:
    """Masses at the losses (start + i)·step + shift, and at infinity."""

    start: int
    mass: Array
    shift: float = 0.0
    infinite: float = 0.0


def place(cells: Cells, step: float, side: Side, infinite: float = 0.0) -> LossGrid:
    """Put cells on the grid, erring toward one side."""
    largest = float(np.abs(cells.centre[np.isfinite(cells.centre)]).max(initial=0.0))
    blur = 4 * _U * (1 + largest / step)  # how far a double that should be a grid point may be from it, in steps
    rounding = 1.25 * _U * largest  # of a grid point computed in doubles
    if side in ("delta-up", "loss-up"):
        low, high = np.floor(cells.low / step + blur), np.ceil(cells.high / step - blur)
        finite = np.isfinite(high)
        shift = rounding + float((cells.high[finite] - high[finite] * step).max(initial=0.0))
        if side == "loss-up":
            return _gather(high, cells.mass, shift, infinite)
        share = high_share(cells.centre, low * step, high * step)
        index, mass = np.concatenate([low, high]), np.concatenate([cells.mass * (1 - share), cells.mass * share])
        return _gather(index, mass, shift, infinite)
    value = cells.centre if side == "delta-down" else cells.low
    index = np.rint(value / step)
    residue = value - index * step
    heavy = cells.mass > 1e-9
    shift = float(residue[heavy].min(initial=0.5 * step)) - rounding
    return _gather(index - (residue < shift), cells.mass, shift, infinite)


def _gather(index: Array, mass: Array, shift: float, infinite: float) -> LossGrid:
    finite = np.isfinite(index)
    infinite += float(mass[~finite].sum())
    whole: NDArray[np.int64] = index[finite].astype(np.int64)
    start = int(whole.min()) if len(whole) else 0
    gathered: Array = np.bincount(whole - start, weights=mass[finite]).astype(float)
    used = np.flatnonzero(gathered)
    return LossGrid(start + int(used[0]), gathered[used[0] : used[-1] + 1], shift, infinite)


@dataclass(frozen=True)
class ComposedLoss:
    """The composition's masses, tilted by e^(θ·loss − log_norm), each known up to `error`."""

    losses: Array
    top: Number  # the largest loss, exactly
    step: float
    mass: Array
    tilt: float
    log_norm: float
    error: float
    relative: float
    infinite: float

    def delta(self, epsilon: float | Number, upper: bool) -> float:
        """δ(ε) from above or from below."""
        return self._sum(epsilon, upper, damped=True)

    def tail(self, epsilon: float | Number, upper: bool) -> float:
        """P(loss > ε) from above or from below."""
        return self._sum(epsilon, upper, damped=False)

    def epsilon(self, delta: float, upper: bool) -> float:
        """An ε with δ(ε) ≤ δ certified (upper), or one with δ(ε) > δ certified (lower)."""
        low, high = 0.0, max(0.0, float(self.losses[-1]))
        if self.delta(0.0, upper) <= delta:
            return 0.0
        if self.delta(high, upper) > delta:
            return math.inf if upper else high
        low, high = falling_root(lambda e: math.log(max(self.delta(e, upper), 1e-300) / delta), low, high, 1e-10)
        return high if upper else low

    @cached_property
    def _above(self) -> tuple[Array, Array]:
        """Untilted masses from above, and their sums from each point on."""
        return self._untilted(self.mass + self.error)

    @cached_property
    def _below(self) -> tuple[Array, Array]:
        """The same from below."""
        return self._untilted(np.maximum(0.0, self.mass - self.error))

    def _untilted(self, mass: Array) -> tuple[Array, Array]:
        # Far below the tilt's target the weights explode; capped, they still make any bound trivial (above 1 or 0).
        terms = mass * np.exp(np.minimum(self.log_norm - self.tilt * self.losses, 600.0))
        return terms, np.cumsum(terms[::-1])[::-1]

    def _sum(self, epsilon: float | Number, upper: bool, damped: bool) -> float:
        # Losses are counted down from the largest, so that they are precise where few outcomes reach it.
        gap = self.top - real(epsilon)
        distance = up(gap) if upper else down(gap)
        terms, beyond = self._above if upper else self._below
        near = 1 + 4 * _U if upper else 1 - 4 * _U
        count = min(len(terms), math.ceil(distance / self.step * near)) if distance < math.inf else len(terms)
        first = len(terms) - max(0, count)
        if first == len(terms):
            return self.infinite * (1 + 1e-12 if upper else 1 - 1e-12)
        # Negligible terms are left out from below, and counted in full from above.
        last = first + int(np.searchsorted(-beyond[first:], -1e-9 * beyond[first]))
        rest = 2 * float(beyond[last]) if last < len(beyond) else 0.0
        terms = terms[first:last]
        if damped:
            above = distance - np.arange(len(beyond) - 1 - first, len(beyond) - 1 - last, -1) * self.step
            terms = terms * -np.expm1(-np.maximum(0.0, above * near))
        exponents = abs(self.log_norm) + self.tilt * float(np.abs(self.losses[[0, -1]]).max())
        relative = self.relative + 32 * _U * (exponents + 64)
        total = float(np.sum(terms))
        if upper:
            return (total + rest) * (1 + relative) + self.infinite * (1 + 1e-12)
        return total * (1 - relative) + self.infinite * (1 - 1e-12)


def cumulant(grids: Sequence[tuple[LossGrid, int]], step: float, tilt: float) -> tuple[float, float]:
    """Log of E[e^(tilt·loss)] of the composition, and its derivative."""
    total = slope = 0.0
    for grid, count in grids:
        losses = (grid.start + np.arange(len(grid.mass))) * step + grid.shift
        top = float((tilt * losses).max())
        weight = grid.mass * np.exp(tilt * losses - top)
        total += count * (top + math.log(float(weight.sum())))
        slope += count * float((weight * losses).sum() / weight.sum())
    return total, slope


def tilt_for_delta(grids: Sequence[tuple[LossGrid, int]], step: float, delta: float) -> float:
    """The tilt whose Chernoff bound (K(θ) − ln δ)/θ is smallest: it points at ε(δ).

    A bounded loss attains its maximum with some probability; near it, tilting gains nothing more.
    """
    top = -sum(count * math.log(float(grid.mass[-1])) for grid, count in grids)
    target = min(-math.log(delta), 0.9 * top)
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        value, slope = cumulant(grids, step, middle)
        low, high = (middle, high) if middle * slope - value < target else (low, middle)
    return low


def tilt_for_epsilon(grids: Sequence[tuple[LossGrid, int]], step: float, epsilon: float) -> float:
    """The tilt that moves the composition's mean to ε, or 0 if it lies beyond already."""
    if cumulant(grids, step, 0.0)[1] >= epsilon:
        return 0.0
    low, high = 0.0, tilt_for_delta(grids, step, 1e-300)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if cumulant(grids, step, middle)[1] < epsilon else (low, middle)
    return low


def compose(grids: Sequence[tuple[LossGrid, int]], step: float, tilt: float) -> ComposedLoss:
    """The distribution of the sum of independent losses, each grid taken `count` times."""
    support = 1 + sum(count * (len(grid.mass) - 1) for grid, count in grids)
    length = 1 << max(3, (support - 1).bit_length())
    if length > MAX_POINTS:
        raise InputError(f"this composition needs {length} grid points, more than the {MAX_POINTS} allowed")
    fft_error = 16 * _U * math.log2(length)
    spectrum = np.ones(length // 2 + 1, dtype=complex)
    bound = np.ones(length // 2 + 1)
    errors: list[tuple[float, Array]] = []
    log_norm = log_finite = exponent = rounding = 0.0
    count_all = 0
    for grid, count in grids:
        losses = (grid.start + np.arange(len(grid.mass))) * step + grid.shift
        top = float((tilt * losses).max())
        weight = grid.mass * np.exp(tilt * losses - top)
        norm = float(weight.sum())
        weight /= norm
        transform = np.fft.rfft(weight, length)
        size = np.abs(transform)
        # ‖error‖₂ over all frequencies; no single frequency can be off by more.
        off = fft_error * math.sqrt(length) * _two_norm(weight)
        size += off
        there = np.flatnonzero(size > math.exp(_NOTHING / count)) if count >= MANY else slice(None)
        spectrum *= _only(there, _power(transform[there], count), length // 2 + 1)
        bound *= _only(there, size[there] ** count, length // 2 + 1)
        errors.append((count * off, size))
        log_norm += count * (top + math.log(norm))
        exponent += count * (2 * abs(top) + abs(math.log(norm)))
        rounding += count * (_MASS_ERROR + 4 * _U * float(np.abs(losses[[0, -1]]).max()))
        count_all += count
        log_finite += count * math.log1p(-min(grid.infinite, 1 - _U))
    whole = np.fft.irfft(spectrum, length)
    # rfft keeps one half of a spectrum, hence √2.
    lost = sum(off * math.sqrt(2) * _two_norm(bound / np.maximum(size, 1e-300)) for off, size in errors) / length
    powers = 4 * _U * count_all * float(np.mean(bound)) * 2
    inverse = fft_error * _two_norm(whole) * (1 + fft_error)
    start = sum(grid.start * count for grid, count in grids)
    shift = sum((exactly(grid.shift) * count for grid, count in grids), ZERO)
    return ComposedLoss(
        losses=np.asarray((start + np.arange(support)) * step + middle(shift), dtype=np.float64),
        top=exactly(step) * (start + support - 1) + shift,
        step=step,
        mass=whole[:support].copy(),  # a view would keep the rest alive
        tilt=tilt,
        log_norm=log_norm,
        error=lost + powers + inverse,
        relative=math.expm1(min(rounding + 32 * _U * exponent, 600.0)),  # if so large, the bound is trivial
        infinite=-math.expm1(log_finite),
    )


def _two_norm(values: Array) -> float:
    """Euclidean norm. Summed in pairs: more precise than BLAS, whose threads cost more than they save here."""
    return math.sqrt(float(np.sum(np.square(values))))


def _only(there: Any, values: NDArray[Any], length: int) -> NDArray[Any]:
    """Values at some places of an array, and 0 at the others."""
    if len(values) == length:
        return values
    found = np.zeros(length, dtype=values.dtype)
    found[there] = values
    return found


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Repeated squaring: each product adds at most √5 u of relative error."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result *= base
        exponent >>= 1
        if exponent:
            base = base * base
    return result


def on_grid(components: Sequence[tuple[LossComponent, int]], step: float, side: Side) -> list[tuple[LossGrid, int]]:
    """Every component on the same grid, erring toward one side."""
    upper = side in ("delta-up", "loss-up")
    stride = 2 if side == "delta-down" else 1
    placed = []
    for component, count in components:
        infinite = up(component.infinite) if upper else down(component.infinite)
        placed.append((place(component.cells(step, stride, upper), step, side, infinite), count))
    return placed


_kept: dict[tuple[object, ...], ComposedLoss] = {}  # the latest last
_lock = Lock()


def composed_loss(
    components: tuple[tuple[LossComponent, int], ...], step: float, side: Side, tilt: float
) -> ComposedLoss:
    """The composition of some components, erring toward one side. The latest ones are cached."""
    key = (components, step, side, tilt)
    with _lock:
        found = _kept.pop(key, None)
    if found is None:
        found = compose(on_grid(components, step, side), step, tilt)
    with _lock:
        if len(found.mass) <= KEPT_POINTS:
            _kept[key] = found
        while sum(len(composed.mass) for composed in _kept.values()) > KEPT_POINTS:
            del _kept[next(iter(_kept))]
    return found
