"""Steps that are repeated, and in which each record takes part with some probability.

In standard deviations a record that takes part moves the sum by μ. With it the output is (1 − q)·N(0, 1) + q·N(μ, 1),
without it N(0, 1), and with the opposite one (1 − q)·N(0, 1) + q·N(−μ, 1): docs/proofs/poisson.md. Sums of many such
losses are put on a lattice and folded into a window, docs/proofs/lattice-sums.md; in doubles, and their rounding errors
are counted.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.lattice import Array, Grid
from dpassay.evidence.verifier.arithmetic.normal import gaussian_delta, tail
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ZERO,
    Number,
    above,
    at_most_one,
    below,
    hull,
    iv,
    largest,
    middle,
    positive_part,
    smallest,
)
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.values import dataclass

_U = 2.0**-53
_MOST = 1 << 21  # cells, or places of a window
_PIECE = 1 << 14
_OF_A_CELL, _OF_A_PLACE = 1700, 600  # work, as measured: of a cell and its share of a window, and of a folded place
_CUT = 500.0  # larger exponents are capped here
_FAR = 50.0  # standard deviations; a lattice adds nothing for the losses of larger moves


@dataclass(frozen=True)
class Sampled:
    """Some steps, in one order of the data sets: the record is in the first one ("in"), the second ("out"), or both.

    For batches of a fixed size ("fixed") it is the dominating loss of all pairs: docs/proofs/fixed-size.md, point 3.
    """

    rate: Number
    mu: Number
    order: str
    count: int
    grid: Grid | None

    @property
    def pure(self) -> Number:
        """−ln(1 − q) per step if only the second data set has the record, otherwise unbounded."""
        return -iv.log(1 - self.rate) * self.count if self.order == "out" and self.rate.b < 1 else INF

    def delta(self, epsilon: Number, upper: bool) -> Number:
        if not self.mu.b > 0:
            return ZERO
        if self.count == 1:
            return self._one(epsilon)
        if self.mu.b > _FAR:
            return self._from_one(epsilon)
        if self.grid is None:
            raise CertificateError("a sum of losses needs a grid")
        ends = above if upper else below
        rate, mu, step = ends(self.rate), ends(self.mu), middle(self.grid.step)
        if not (0 < rate < 1 and mu > 0):
            raise CertificateError("the sampling rate or the distance cannot be written as a double")
        bound = _upper if upper else _lower
        logs = bound(rate, mu, self.order, self.count, step, middle(self.grid.tilt))
        found = iv.mpf(largest_at(logs, below(epsilon) if upper else above(epsilon), upper))
        return (smallest if upper else largest)([found, self._from_one(epsilon)])

    def _from_one(self, epsilon: Number) -> Number:
        """From what one step shows to what its δ at 0, or at an equal share of ε, allows for all steps."""
        apart, share = 1 - (1 - self._one(ZERO)) ** self.count, self._one(epsilon / self.count) * self.count
        return hull(self._one(epsilon), at_most_one(smallest([apart, share])))

    def _one(self, epsilon: Number) -> Number:
        q, ratio = self.rate, iv.exp(epsilon)
        if self.order in ("in", "fixed"):
            return q * gaussian_delta(iv.log(1 + (ratio - 1) / q), self.mu)
        if self.order == "out":
            rest = 1 - ratio * (1 - q)
            if not rest.a > 0:
                return iv.mpf([0, max(rest.b, 0)])
            return rest * gaussian_delta(iv.log(ratio * q / rest), self.mu)
        half = (1 - q) / q * iv.exp(self.mu**2 / 2) * (iv.exp(epsilon / 2) - iv.exp(-epsilon / 2)) / 2
        x = iv.mpf(((epsilon / 2 + iv.log(half + iv.sqrt(1 + half**2))) / self.mu).mid)
        p, other = ((1 - q) * tail(x) + q * tail(x - mu) for mu in (self.mu, -self.mu))
        return positive_part(p - ratio * other) + iv.mpf([0, iv.mpf("1e-40")])


@dataclass(frozen=True)
class SampledCurve:
    """δ(ε) = rest + the largest of e^a·first(s) − e^(ε+b)·second(s), for ε from `least` on."""

    first: Array
    second: Array
    a: float
    b: float
    rest: float
    least: float

    def within(self, points: int, rate: float) -> "SampledCurve":
        """The same at those places around the middle of the window whose weights doubles can represent."""
        most = math.floor(0.95 * _CUT / rate)
        first, last = max(0, points // 2 - most), min(points, points // 2 + most)
        return replace(self, first=self.first[first:last], second=self.second[first:last])


def largest_at(curve: SampledCurve, epsilon: float, upper: bool) -> float:
    """δ(ε) by a curve; the trivial bound where it says nothing."""
    powers = curve.a, epsilon + curve.b
    if max(map(abs, powers)) > _CUT or (upper and epsilon < curve.least):
        return float(upper)  # nothing is known
    spend(8 * len(curve.first))
    scales = [math.exp(power) for power in powers]
    with np.errstate(over="ignore"):  # e^ε times a probability may overflow a double, which gives a trivial bound
        found = float((scales[0] * curve.first - scales[1] * curve.second).max(initial=0.0))
    return min(1.0, (found + curve.rest) * (1 + 1e-12)) if upper else found * (1 - 1e-12)


def _normal_cells(edges: Array, mean: float) -> tuple[Array, Array]:
    """The probabilities of N(mean, 1) between edges, the first −∞ and the last ∞: from below and from above."""
    z = edges - mean
    tails = np.abs(z) / math.sqrt(2)
    for start in range(0, len(tails), _PIECE):  # Python's numbers take four times the memory
        tails[start : start + _PIECE] = list(map(math.erfc, tails[start : start + _PIECE].tolist()))
    tails /= 2
    with np.errstate(invalid="ignore"):
        lost = np.where(tails > 0, 10 * _U * (1 + z * z) * tails, 0.0) + 1e-300
    signs = np.where(z < 0, 1.0, -1.0)
    across = (z[:-1] < 0) & (z[1:] >= 0)
    found = np.where(across, 1.0, 0.0) - signs[:-1] * tails[:-1] + signs[1:] * tails[1:]
    error = lost[:-1] + lost[1:] + np.where(across, 4 * _U, 0.0)
    error[z[:-1] == z[1:]] = 0.0
    return np.maximum(found - error, 0.0), np.maximum(found, 0.0) + error


def _cells(rate: float, mu: float, order: str, step: float, shifted: bool) -> tuple[float, float, list[Array]]:
    """The smallest loss on the lattice, how far losses may be off, and bounds on all cells' masses under both laws.

    Cells are in order of their losses. The first one has all losses below the lattice, the last one all above.
    """
    odds, far = math.log1p(-rate) - math.log(rate) + mu * mu / 2, mu + 14.0
    rise = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * far - mu * mu / 2)
    if order == "both":
        rise -= np.logaddexp(math.log1p(-rate), math.log(rate) - mu * far - mu * mu / 2)
    start = 0.0 if order in ("both", "fixed") else math.log1p(-rate)
    last = math.ceil((float(rise) - start) / step)
    cells = (2 if order in ("both", "fixed") else 1) * last
    if not 1 <= cells <= _MOST:
        raise CertificateError("the grid divides a loss into too many cells, or into none")
    spend(cells * _OF_A_CELL)
    if order == "both":
        gaps = (np.arange(-last, last + 1) + (0.5 if shifted else 0.0)) * step
        half = np.abs(gaps) / 2
        with np.errstate(divide="ignore"):
            power = odds + half + np.log1p(-np.exp(-2 * half)) - math.log(2.0)
        large = np.where(power > 18, power + math.log(2.0), np.arcsinh(np.exp(np.minimum(power, 19.0))))
        inner = np.sign(gaps) * (half + large) / mu
    elif order == "fixed":
        gaps = np.arange(last + 1) * step - math.log1p(-rate)
        inner = (odds + gaps + np.log(-np.expm1(-gaps))) / mu
    else:
        gaps = np.arange(1, last + 1) * step
        inner = np.append(-np.inf, (odds + gaps + np.log(-np.expm1(-gaps))) / mu)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    plain, moved = _normal_cells(edges, 0.0), _normal_cells(edges, mu)
    other = _normal_cells(edges, -mu) if order == "both" else plain
    with_it = [
        ((1 - rate) * a + rate * b) * (1 + sign * 6 * _U) for a, b, sign in zip(plain, moved, (-1, 1), strict=True)
    ]
    second = list(plain)
    if order == "both":
        second = [((1 - rate) * a + rate * b) * (1 + s * 6 * _U) for a, b, s in zip(plain, other, (-1, 1), strict=True)]
    blur = 64 * _U * (mu * far + mu * mu + abs(odds) + 2 * abs(start) + step * last + 60)
    if order == "fixed":
        return -step * last, blur, _mirrored(*(mass[1:] for mass in (*with_it, *second)))
    if order == "out":
        masses = [mass[::-1] for mass in (*plain, *with_it)]
        return -(start + step * last), blur, masses
    lowest = start if order == "in" else float(gaps[0])
    return lowest, blur, [*with_it, *second]


def _mirrored(p_low: Array, p_high: Array, q_low: Array, q_high: Array) -> list[Array]:
    """Cells with losses above 0, the same with both laws exchanged below 0, and the rest of both laws at 0."""
    masses = []
    for p, q, other, sign in ((p_low, q_low, (p_high, q_high), -1), (p_high, q_high, (p_low, q_low), 1)):
        rest = max(0.0, 1 - float(other[0].sum()) - float(other[1].sum()) + sign * 2e-12)
        for above_zero, below_zero in ((p, q), (q, p)):
            joined = np.concatenate([below_zero[::-1], above_zero])
            joined[len(below_zero)] += rest
            masses.append(joined)
    return [masses[0], masses[2], masses[1], masses[3]]


@dataclass(frozen=True)
class _Fold:
    """Tilted probabilities of sums from `start` on; ln of their normalization, and all error bounds."""

    start: int
    mass: Array
    rate: float
    log_norm: float
    error: float
    relative: float
    outside: float
    above: float

    def sums(self, centre: int, more: float, sign: int) -> Array:
        """From each place on, the sum of the masses with their error, damped by `more` per place."""
        places = self.start - centre + np.arange(len(self.mass))
        worth = np.exp(np.minimum(-(self.rate + more) * places, _CUT))
        masses = np.maximum(0.0, self.mass + sign * self.error)
        return np.asarray(np.flip(np.cumsum(np.flip(masses * worth))))

    def beyond(self, place: int) -> float:
        """The mass above the window, which ends at this place, and what is too small for doubles."""
        return self.above * math.exp(max(-_CUT, -self.rate * place)) + 1e-290


def _log_sum(mass: Array, rate: float) -> tuple[float, float, float]:
    """ln Σ mass·e^(rate·i), and mean and standard deviation of the tilted places."""
    places = np.arange(len(mass))
    with np.errstate(divide="ignore"):
        logs = np.log(mass) + rate * places
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    mean = float((weights * places).sum()) / total
    spread = math.sqrt(max(float((weights * (places - mean) ** 2).sum()) / total, 1e-12))
    return top + math.log(total), mean, spread


def _folded(mass: Array, count: int, rate: float, window: tuple[int, int]) -> _Fold:
    start, points = window
    spend((len(mass) + points) * _OF_A_PLACE)
    norm, _, spread = _log_sum(mass, rate)
    with np.errstate(divide="ignore"):
        weights = np.exp(np.log(mass) + rate * np.arange(len(mass)) - norm)
    weights = np.bincount(np.arange(len(weights)) % points, weights=weights, minlength=points)
    spectrum = np.fft.rfft(weights)
    eta = 16 * _U * math.log2(points)
    off = eta * math.sqrt(points) * math.sqrt(float((weights**2).sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.log(np.abs(spectrum) + off)
        powers = np.where((count * sizes > -80) & (spectrum != 0), np.exp(count * np.log(spectrum)), 0.0)
    summed = np.fft.irfft(powers, points)
    full, less = np.exp(count * sizes), np.exp((count - 1) * sizes)
    error = math.sqrt(2) * count * off * math.sqrt(float((less**2).sum())) / points
    error += 2 * (20 * _U * count * float(full.sum()) + float(full[count * sizes <= -80].sum())) / points
    error += 1.001 * eta * math.sqrt(float((summed**2).sum()))
    wrong = 64 * _U * count * (abs(rate) * len(mass) + abs(norm) + 16)
    shares = []
    for side, edge in ((-1, start), (1, start + points)):  # Chernoff's inequality, by the best of some tilts
        tilts = [2.0**k / (math.sqrt(count) * spread) for k in range(-4, 5)] + [rate * 2.0**k for k in range(-4, 3)]
        logs = [count * (_log_sum(mass, rate + side * s)[0] - norm) - side * s * edge for s in tilts if s > 0]
        shares.append(math.exp(min(0.0, min(logs) + 2 * wrong)))
    rolled = np.roll(summed, -(start % points))
    relative = math.expm1(min(wrong, 1.0)) + (points + 64) * _U + 8 * _U * _CUT
    return _Fold(start, rolled, rate, count * norm, error, relative, shares[0] + shares[1], shares[1])


def _window(mass: Array, count: int, rate: float) -> tuple[int, int]:
    """The first place of a window, and how many it has: a power of 2."""
    norm, _, spread = _log_sum(mass, rate)
    tilts = [2.0**k / (math.sqrt(count) * spread) for k in range(-4, 5)] + [rate * 2.0**k for k in range(-4, 3)]
    high = min((count * (_log_sum(mass, rate + s)[0] - norm) + 34) / s for s in tilts if s > 0)
    low = max((count * (norm - _log_sum(mass, rate - s)[0]) - 34) / s for s in tilts if s > 0)
    points = 1 << max(10, math.ceil(math.log2(max(2.0, high - low))))
    if points > _MOST or not math.isfinite(low):
        raise CertificateError("the grid's step is too small for this many steps")
    return math.floor(low), points


@lru_cache(maxsize=2)  # curves of up to 32 MB
def _upper(rate: float, mu: float, order: str, count: int, step: float, tilt: float) -> SampledCurve:
    lowest, blur, (_, most, least, _) = _cells(rate, mu, order, step, False)
    return spread_sum(lowest, blur, most, least, count, step, tilt)


@lru_cache(maxsize=2)
def _lower(rate: float, mu: float, order: str, count: int, step: float, tilt: float) -> SampledCurve:
    _, _, (first, _, _, second) = _cells(rate, mu, order, step, True)
    return numbered_sum(first, second, count, step, tilt)


def spread_sum(
    lowest: float, blur: float, most: Array, least: Array, count: int, step: float, tilt: float
) -> SampledCurve:
    """δ from above: each cell spread to its two ends, so that its probability under both laws stays the same.

    Given are the smallest loss on the lattice, how far losses may be off, and the masses of all cells: at most these
    under the first law, at least these under the second. The first one has all losses below, the last one all above.
    """
    p, q = most[1:-1], least[1:-1]
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = np.exp(np.minimum(lowest + step * np.arange(len(p)) - blur, _CUT)) * (1 - 20 * _U)
        high = np.clip((p - q * ratios) / -math.expm1(-step) * (1 + 20 * _U), 0.0, p)
    points = np.append(p - high, 0.0) * (1 + 4 * _U)
    points[1:] += high
    points[0] += most[0]
    window = _window(points, count, tilt * step)
    fold, base = _folded(points, count, tilt * step, window), count * (lowest + blur)
    centre = window[0] + window[1] // 2
    off = 32 * _U * (abs(base) + (abs(window[0]) + window[1]) * step)
    end = fold.beyond(window[0] + window[1] - centre)
    first = (fold.sums(centre, 0.0, 1) + end) * (1 + fold.relative)
    second = fold.sums(centre, step, 1) * (1 - fold.relative)
    scale, rest = fold.log_norm - fold.rate * centre, 1.001 * count * float(most[-1])
    kept = max(0, window[1] // 2 - math.floor(0.95 * _CUT / (fold.rate + step)))
    shift = scale - base - centre * step - off
    curve = SampledCurve(first, second, scale, shift, rest, base + (window[0] + kept) * step + off)
    return curve.within(window[1], fold.rate + step)


def numbered_sum(first: Array, second: Array, count: int, step: float, tilt: float) -> SampledCurve:
    """δ from below: of all outputs only the sum of the numbers of their cells is used.

    Given are the masses of the cells: at least these under the first law, at most these under the second.
    """
    window = _window(first, count, tilt * step)
    p, q = _folded(first, count, tilt * step, window), _folded(second, count, (tilt + 1) * step, window)
    centre = window[0] + window[1] // 2
    places = window[0] - centre + np.arange(window[1])
    folded = p.outside * np.exp(np.minimum(-p.rate * places, _CUT))
    shown = np.maximum(0.0, p.sums(centre, 0.0, -1) * (1 - p.relative) - folded * (1 + p.relative))
    end = q.beyond(window[0] + window[1] - centre)
    against = (q.sums(centre, 0.0, 1) + end) * (1 + q.relative)
    logs = p.log_norm - p.rate * centre, q.log_norm - q.rate * centre
    return SampledCurve(shown, against, *logs, 0.0, -math.inf).within(window[1], q.rate)
