"""Sums of many losses, certified from both sides by Fourier transforms. Proof: docs/proofs/lattice-sums.md.

One loss is given by `CellMasses`: outputs cut into cells, each with its probability under both laws, and with limits of
its loss that are neighbors on a lattice. From above each cell is spread to its two limits. From below each output is
replaced by the number of its cell, and for many outputs only the sum of their numbers is used, which is
post-processing. Sums are folded into a window of the lattice; Chernoff's inequality bounds what was folded.
"""

import math
from collections.abc import Sequence

import numpy as np

from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

_U = 2.0**-53
_LEFT_OUT = -70.0  # ln of a size: smaller powers of a spectrum are dropped, and counted as an error
_LARGEST = 600.0  # exponents are cut off here; so far from the window's target any bound is trivial
Masses = Sequence[tuple[Array, int]]  # of losses at the places 0, 1, …, and how many copies there are of each


@dataclass(frozen=True)
class CellMasses:
    """Cells in order of their losses, with bounds on their probabilities under the first and the second law.

    The cell i from 1 to n has losses from `lowest` + (i − 1)·step to one step more, give or take `blur`; the first cell
    has all losses below these, the last one, n + 1, all above.
    """

    lowest: float
    step: float
    blur: float
    first: tuple[Array, Array]  # from below, from above
    second: tuple[Array, Array]

    @property
    def spread(self) -> Array:
        """Masses at the lattice points, without the last cell's, that dominate every law with these cells."""
        p, q = self.first[1][1:-1], self.second[0][1:-1]
        losses = self.lowest + self.step * np.arange(len(p)) - self.blur
        with np.errstate(over="ignore", invalid="ignore"):
            share = (p - q * np.exp(losses) * (1 - 16 * _U)) / -math.expm1(-self.step) * (1 + 16 * _U)
        high = np.clip(np.nan_to_num(share, nan=np.inf), 0.0, p)
        points = np.append((p - high) * (1 + 2 * _U), 0.0)
        points[1:] += high
        points[0] += self.first[1][0]
        return points


@dataclass(frozen=True)
class Window:
    """The sums of losses considered: `points` places, starting `below` under their mean.

    Probabilities are tilted by e^(tilt·loss), and the mean is that of the tilted ones.
    """

    below: float
    step: float
    points: int
    tilt: float
    beyond: tuple[float, float]  # differences of the tilts that bound the mass below and above

    def start(self, masses: Masses) -> int:
        """The first place, for sums of losses with these masses at the places 0, 1, …"""
        mean = 0.0
        for mass, count in masses:
            places = np.arange(len(mass))
            weights = np.exp(np.log(np.maximum(mass, 1e-320)) + self.tilt * self.step * (places - len(mass)))
            weights = weights if weights.sum() > 0 else mass
            mean += count * float((weights * places).sum() / weights.sum())
        return round(mean - self.below / self.step)


@dataclass(frozen=True)
class Folded:
    """The sum of some copies of a loss: w(s) = m(s)·e^(rate·s − log_norm) for the sums s of places, from `start` on.

    Each w is off by at most `error`. At most the fraction `folded` of the w lies outside the window.
    """

    start: int
    mass: Array
    rate: float
    log_norm: float
    error: float
    relative: float
    folded: float
    above: float  # the fraction above the window

    def tail_sums(self, at: int, damped: float, above: bool) -> Array:
        """Σ m(t)·e^(−damped·(t − at)) over t ≥ s for each s of the window, times e^(rate·at − log_norm).

        The masses are those from above, or those from below; rounding is not counted yet. Far to the left of `at` the
        sums are too small: see `Curve`. Far to the right they may be too small, by less than `outside` has to spare.
        """
        places = self.start + np.arange(len(self.mass)) - at
        worth = np.exp(np.minimum(-(self.rate + damped) * places, _LARGEST))
        mass = self.mass + self.error if above else np.maximum(0.0, self.mass - self.error)
        return np.asarray(np.cumsum((mass * worth)[::-1])[::-1])

    def outside(self, at: int) -> float:
        """The mass above the window, in the same units, and what is too small for doubles."""
        end = self.start + len(self.mass) - at
        return self.above * math.exp(max(-_LARGEST, -self.rate * end)) + 1e-290

    def inside_folded(self, at: int) -> Array:
        """The mass that may have been folded to places from s on, for each s."""
        places = self.start + np.arange(len(self.mass)) - at
        return np.asarray(self.folded * np.exp(np.minimum(-self.rate * places, _LARGEST)))

    @property
    def slack(self) -> float:
        """The relative error of a sum."""
        return self.relative + (len(self.mass) + 64) * _U + 8 * _U * _LARGEST


def fold(masses: Masses, start: int, window: Window, tilt: float) -> Folded:
    """The sum of independent losses with these masses at the places 0, 1, …, each as often as given."""
    points, rate = window.points, tilt * window.step
    eta = 16 * _U * math.log2(points)
    less, more = (step * window.step for step in window.beyond)
    below, above = less * start, -more * (start + points)
    logs, sizes = np.zeros(points // 2 + 1, dtype=complex), np.zeros(points // 2 + 1)
    log_norm = rounding = copies = 0.0
    each: list[tuple[float, Array]] = []
    for mass, count in masses:
        norm = _log_moment(mass, rate)
        with np.errstate(divide="ignore"):
            weight = np.exp(np.log(mass) + rate * np.arange(len(mass)) - norm)
        if len(weight) > points:
            weight = np.bincount(np.arange(len(weight)) % points, weights=weight, minlength=points)
        transform = np.fft.rfft(weight, points)
        off = eta * math.sqrt(points) * _two_norm(weight)
        far = np.abs(transform)
        with np.errstate(divide="ignore"):
            size = np.log(far + off)
            logs.real += count * np.log(far)
        logs.imag += count * np.angle(transform)
        sizes += count * size
        each.append((count * off, size))
        log_norm, copies = log_norm + count * norm, copies + count
        rounding += 64 * _U * count * (abs(rate) * len(mass) + abs(norm) + 16)
        below += count * (_log_moment(mass, rate - less) - norm)
        above += count * (_log_moment(mass, rate + more) - norm)
    kept = (sizes > _LEFT_OUT) & np.isfinite(logs.real)
    spectrum = np.zeros(len(logs), dtype=complex)
    spectrum[kept] = np.exp(logs[kept])
    whole = np.fft.irfft(spectrum, points)
    powers = np.exp(sizes)
    # docs/proofs/discretisation.md, point 6; one half of a spectrum is kept, hence √2 and 2.
    error = sum(math.sqrt(2) * off * _two_norm(np.exp(sizes - size)) / points for off, size in each)
    error += 2 * (4 * (3 + len(each)) * _U * copies * float(powers.sum()) + float(powers[~kept].sum())) / points
    error += eta * _two_norm(whole) * (1 + eta)
    share = [math.exp(min(0.0, log + 2 * rounding)) for log in (below, above)]
    relative = math.expm1(min(rounding, _LARGEST))
    return Folded(
        start, np.roll(whole, -(start % points)), rate, log_norm, error, relative, share[0] + share[1], share[1]
    )


def _log_moment(mass: Array, rate: float) -> float:
    """ln Σ mass(i)·e^(rate·i)."""
    with np.errstate(divide="ignore"):
        logs = np.log(mass) + rate * np.arange(len(mass))
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _two_norm(values: Array) -> float:
    return math.sqrt(float(np.sum(np.square(values))))


@dataclass(frozen=True)
class Curve:
    """A bound on a privacy curve of the form δ(ε) = rest + the largest of e^a·plain(s) − e^(ε+b)·other(s).

    Where its numbers overflow or underflow doubles it is trivial: δ ≤ 1 from above, and δ ≥ 0 from below.
    """

    plain: Array
    other: Array
    logs: tuple[float, float]  # a and b
    upper: bool
    rest: float = 0.0
    least: float = -math.inf  # it holds for ε from here on
    start: int = 0  # the sum of the cells' numbers at the first place

    def delta(self, epsilon: float) -> float:
        """δ(ε)."""
        powers = self.logs[0], epsilon + self.logs[1]
        if max(map(abs, powers)) > _LARGEST or epsilon < self.least:
            return float(self.upper)
        scales = [math.exp(power) for power in powers]
        with np.errstate(over="ignore"):  # e^ε times a probability may overflow a double, which gives a trivial bound
            return float((scales[0] * self.plain - scales[1] * self.other).max(initial=0.0)) + self.rest

    def epsilon(self, delta: float) -> float:
        """ε(δ), −∞ if no better bound is known."""
        if abs(self.logs[0]) > _LARGEST:
            return math.inf if self.upper else -math.inf
        plain = math.exp(self.logs[0]) * self.plain + (self.rest - delta)
        some = (plain > 0) if self.upper else (plain > 0) & (self.other > 0)
        if not some.any():
            return self.least
        with np.errstate(divide="ignore"):
            return max(self.least, float((np.log(plain[some]) - np.log(self.other[some])).max()) - self.logs[1])

    def best(self, epsilon: float) -> tuple[int, float, float] | None:
        """The place with the largest δ at an ε, and both terms there without e^ε; None if doubles underflow."""
        powers = *self.logs, epsilon + self.logs[1]
        if not len(self.plain) or max(map(abs, powers)) > _LARGEST:
            return None
        first, second, rise = map(math.exp, powers)
        with np.errstate(over="ignore"):
            place = int((first * self.plain - rise * self.other).argmax())
        return self.start + place, first * float(self.plain[place]), second * float(self.other[place])


def upper_curve(parts: Sequence[tuple[CellMasses, int]], window: Window) -> Curve:
    """δ(ε) from above of a sum of losses, each as often as given; all have cells of the window's step."""
    step = window.step
    lowest = sum(count * (cells.lowest + cells.blur) for cells, count in parts)
    size = sum(count * (abs(cells.lowest) + cells.blur) for cells, count in parts)
    masses = [(cells.spread, count) for cells, count in parts]
    start = window.start(masses)
    summed = fold(masses, start, window, window.tilt)
    at = start + window.points // 2
    loss, off = lowest + at * step, (16 + 2 * len(parts)) * _U * (size + (abs(start) + window.points) * step)
    plain = (summed.tail_sums(at, 0.0, True) + summed.outside(at)) * (1 + summed.slack)
    damped = summed.tail_sums(at, step, True) * (1 - summed.slack)
    scale = summed.log_norm - summed.rate * at
    rest = sum(count * float(cells.first[1][-1]) for cells, count in parts) * (1 + 8 * _U)
    first, last = _within(window.points, summed.rate + step)
    least = lowest + (start + first) * step + off
    return Curve(plain[first:last], damped[first:last], (scale, scale - loss - off), True, rest, least)


def _within(points: int, rate: float) -> tuple[int, int]:
    """The places about the middle of a window whose weights doubles can hold."""
    most = math.floor(0.95 * _LARGEST / rate)
    return max(0, points // 2 - most), min(points, points // 2 + most)


def lower_curve(parts: Sequence[tuple[CellMasses, int]], window: Window) -> Curve:
    """δ(ε) from below: the events that the outputs' cell numbers sum to at least some value."""
    masses = [(cells.first[0], count) for cells, count in parts]
    start = window.start(masses)
    at = start + window.points // 2
    p = fold(masses, start, window, window.tilt)
    q = fold([(cells.second[1], count) for cells, count in parts], start, window, window.tilt + 1)
    plain = np.maximum(0.0, p.tail_sums(at, 0.0, False) * (1 - p.slack) - p.inside_folded(at) * (1 + p.slack))
    other = (q.tail_sums(at, 0.0, True) + q.outside(at)) * (1 + q.slack)
    first, last = _within(window.points, q.rate)
    logs = p.log_norm - p.rate * at, q.log_norm - q.rate * at
    return Curve(plain[first:last], other[first:last], logs, False, start=start + first)
