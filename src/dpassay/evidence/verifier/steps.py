"""Steps that are repeated, and in which each record takes part with some probability.

In standard deviations a record that takes part moves the sum by μ. With it the output is (1 − q)·N(0, 1) + q·N(μ, 1),
without it N(0, 1), and with the opposite one (1 − q)·N(0, 1) + q·N(−μ, 1): docs/proofs/poisson.md. Sums of many such
losses are put on a lattice and folded into a window, docs/proofs/lattice-sums.md; doubles, and whatever they lose is
counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.binomial import EqualBits
from dpassay.evidence.verifier.lattice import Array, spend
from dpassay.evidence.verifier.losses import Gaussian, Grid, Leak, Loss, Outcomes, Pure, Renyi, Summed, Worst, bits_loss
from dpassay.evidence.verifier.lowers import AtZero
from dpassay.evidence.verifier.normal import gaussian_delta, tail
from dpassay.evidence.verifier.numbers import (
    INF,
    ZERO,
    Number,
    above,
    at_most_one,
    below,
    is_infinite,
    iv,
    middle,
    positive_part,
)
from dpassay.evidence.verifier.pairs import Pair
from dpassay.evidence.verifier.regions import Stage

_U = 2.0**-53
_MOST = 1 << 21  # cells, or places of a window
_CUT = 500.0  # larger exponents are cut off here


@dataclass(frozen=True)
class Sampled:
    """Some steps, in one order of the data sets: the record is in the first one ("in"), the second ("out"), or both."""

    rate: Number
    mu: Number
    order: str
    count: int
    grid: Grid | None

    @property
    def pure(self) -> Number:
        """−ln(1 − q) a step where only the second data set has the record, and otherwise without a limit."""
        return -iv.log(1 - self.rate) * self.count if self.order == "out" and self.rate.b < 1 else INF

    def delta(self, epsilon: Number, upper: bool) -> Number:
        if not self.mu.b > 0:
            return ZERO
        if self.count == 1:
            return self._one(epsilon)
        if self.grid is None:
            raise CertificateError("a sum of losses needs a grid")
        ends = above if upper else below
        rate, mu, step = ends(self.rate), ends(self.mu), middle(self.grid.step)
        if not (0 < rate < 1 and mu > 0):
            raise CertificateError("the sampling rate or the distance cannot be written as a double")
        bound = _upper if upper else _lower
        logs = bound(rate, mu, self.order, self.count, step, self.grid.tilt)
        return iv.mpf(_largest(logs, below(epsilon) if upper else above(epsilon), upper))

    def _one(self, epsilon: Number) -> Number:
        q, ratio = self.rate, iv.exp(epsilon)
        if self.order == "in":
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
class Curve:
    """δ(ε) = rest + the largest of e^a·first(s) − e^(ε+b)·second(s), for ε from `least` on."""

    first: Array
    second: Array
    a: float
    b: float
    rest: float
    least: float


def _largest(curve: Curve, epsilon: float, upper: bool) -> float:
    if upper and epsilon < curve.least:
        return 1.0
    scales = [math.exp(min(_CUT, power)) for power in (curve.a, epsilon + curve.b)]
    found = float((scales[0] * curve.first - scales[1] * curve.second).max(initial=0.0))
    return min(1.0, (found + curve.rest) * (1 + 1e-12)) if upper else found * (1 - 1e-12)


def _normal_cells(edges: Array, mean: float) -> tuple[Array, Array]:
    """The probabilities of N(mean, 1) between edges, the first −∞ and the last ∞: from below and from above."""
    z = edges - mean
    tails = np.array([math.erfc(abs(value) / math.sqrt(2)) / 2 for value in z.tolist()])
    with np.errstate(invalid="ignore"):
        lost = np.where(tails > 0, 10 * _U * (1 + z * z) * tails, 0.0) + 1e-300
    signs = np.where(z < 0, 1.0, -1.0)
    across = (z[:-1] < 0) & (z[1:] >= 0)
    found = np.where(across, 1.0, 0.0) - signs[:-1] * tails[:-1] + signs[1:] * tails[1:]
    error = lost[:-1] + lost[1:] + np.where(across, 4 * _U, 0.0)
    error[z[:-1] == z[1:]] = 0.0
    return np.maximum(found - error, 0.0), np.maximum(found, 0.0) + error


def _cells(rate: float, mu: float, order: str, step: float, shifted: bool) -> tuple[float, float, list[Array]]:
    """The least loss on the lattice, how far losses may be off, and bounds on all cells' masses under both laws.

    Cells come in the order of their losses. The first one has all losses below the lattice, the last one all above.
    """
    odds, far = math.log1p(-rate) - math.log(rate) + mu * mu / 2, mu + 14.0
    rise = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * far - mu * mu / 2)
    if order == "both":
        rise -= np.logaddexp(math.log1p(-rate), math.log(rate) - mu * far - mu * mu / 2)
    start = 0.0 if order == "both" else math.log1p(-rate)
    last = math.ceil((float(rise) - start) / step)
    if not 1 <= last <= _MOST:
        raise CertificateError("the grid's step must divide a loss into cells, and not into too many")
    spend(400 * last)
    if order == "both":
        gaps = (np.arange(-last, last + 1) + (0.5 if shifted else 0.0)) * step
        half = np.abs(gaps) / 2
        with np.errstate(divide="ignore"):
            power = odds + half + np.log1p(-np.exp(-2 * half)) - math.log(2.0)
        large = np.where(power > 18, power + math.log(2.0), np.arcsinh(np.exp(np.minimum(power, 19.0))))
        inner = np.sign(gaps) * (half + large) / mu
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
    if order == "out":
        masses = [mass[::-1] for mass in (*plain, *with_it)]
        return -(start + step * last), blur, masses
    lowest = start if order == "in" else float(gaps[0])
    return lowest, blur, [*with_it, *second]


@dataclass(frozen=True)
class _Fold:
    """Tilted probabilities of sums from `start` on; ln of what they were divided by, and all that may be wrong."""

    start: int
    mass: Array
    rate: float
    log_norm: float
    error: float
    relative: float
    outside: float
    above: float

    def sums(self, centre: int, more: float, sign: int) -> Array:
        """From each place on, what the masses with their error are worth, damped by `more` a place."""
        places = self.start - centre + np.arange(len(self.mass))
        worth = np.exp(np.clip(-(self.rate + more) * places, -_CUT, _CUT))
        masses = np.maximum(0.0, self.mass + sign * self.error)
        return np.asarray(np.flip(np.cumsum(np.flip(masses * worth))))

    def at(self, place: float) -> float:
        return math.exp(max(-_CUT, min(_CUT, -self.rate * place)))


def _log_sum(mass: Array, rate: float) -> tuple[float, float, float]:
    """ln Σ mass·e^(rate·i), and mean and deviation of the tilted places."""
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
    norm, _, spread = _log_sum(mass, rate)
    with np.errstate(divide="ignore"):
        weights = np.exp(np.log(mass) + rate * np.arange(len(mass)) - norm)
    weights = np.bincount(np.arange(len(weights)) % points, weights=weights, minlength=points)
    spend(200 * points)
    spectrum = np.fft.rfft(weights)
    eta = 16 * _U * math.log2(points)
    off = eta * math.sqrt(points) * math.sqrt(float((weights**2).sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.log(np.abs(spectrum) + off)
        powers = np.where(count * sizes > -80, np.exp(count * np.log(spectrum)), 0.0)
    summed = np.fft.irfft(powers, points)
    full, less = np.exp(count * sizes), np.exp((count - 1) * sizes)
    error = math.sqrt(2) * count * off * math.sqrt(float((less**2).sum())) / points
    error += 2 * (20 * _U * count * float(full.sum()) + float(full[count * sizes <= -80].sum())) / points
    error += 1.001 * eta * math.sqrt(float((summed**2).sum()))
    wrong = 64 * _U * count * (abs(rate) * len(mass) + abs(norm) + 8)
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


@lru_cache(maxsize=16)
def _upper(rate: float, mu: float, order: str, count: int, step: float, tilt: float) -> Curve:
    """Each cell spread to its two ends, so that its probability under both laws stays the same."""
    lowest, blur, (_, most, least, _) = _cells(rate, mu, order, step, False)
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
    end = fold.above * fold.at(window[0] + window[1] - centre)
    first = (fold.sums(centre, 0.0, 1) + end) * (1 + fold.relative)
    second = fold.sums(centre, step, 1) * (1 - fold.relative)
    scale, rest = fold.log_norm - fold.rate * centre, 1.001 * count * float(most[-1])
    return Curve(first, second, scale, scale - base - centre * step - off, rest, base + window[0] * step + off)


@lru_cache(maxsize=16)
def _lower(rate: float, mu: float, order: str, count: int, step: float, tilt: float) -> Curve:
    """Of each output only the number of its cell is told, and of all outputs only the sum of these numbers."""
    _, _, (first, _, _, second) = _cells(rate, mu, order, step, True)
    window = _window(first, count, tilt * step)
    p, q = _folded(first, count, tilt * step, window), _folded(second, count, (tilt + 1) * step, window)
    centre = window[0] + window[1] // 2
    places = window[0] - centre + np.arange(window[1])
    folded = p.outside * np.exp(np.clip(-p.rate * places, -_CUT, _CUT))
    shown = np.maximum(0.0, p.sums(centre, 0.0, -1) * (1 - p.relative) - folded * (1 + p.relative))
    end = q.above * q.at(window[0] + window[1] - centre)
    against = (q.sums(centre, 0.0, 1) + end) * (1 + q.relative)
    return Curve(shown, against, p.log_norm - p.rate * centre, q.log_norm - q.rate * centre, 0.0, -math.inf)


@dataclass(frozen=True)
class Basic:
    """Guarantees add up: T steps that each are (ε/T, δ/T)-DP."""

    loss: Loss
    count: int

    @property
    def pure(self) -> Number:
        return self.loss.pure * self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return at_most_one(self.loss.delta(epsilon / self.count, upper) * self.count)


@dataclass(frozen=True)
class Amplified:
    """A record that is in one of the data sets only, and takes part with probability q: δ(ε) = q·δ₁(ln(1 + (e^ε−1)/q)).

    At δ = 0 all steps count; at δ > 0 one.
    """

    loss: Loss
    rate: Number
    count: int

    @property
    def pure(self) -> Number:
        pure = self.loss.pure
        return INF if is_infinite(pure) else iv.log(1 - self.rate + self.rate * iv.exp(pure)) * self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return self.rate * self.loss.delta(iv.log(1 + (iv.exp(epsilon) - 1) / self.rate), upper)


@dataclass(frozen=True)
class OneOf:
    """At δ = 0 all steps count; at δ > 0 what one of them shows."""

    loss: Loss
    count: int

    @property
    def pure(self) -> Number:
        return self.loss.pure * self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return self.loss.delta(epsilon, upper)


def repeated(loss: Loss, count: int, upper: bool) -> Loss:
    """The loss of so many steps, each with this one: from above of a loss that dominates, from below of a pair."""
    if count == 1:
        return loss
    if isinstance(loss, Gaussian):
        return Gaussian(loss.mu * iv.sqrt(iv.mpf(count)))
    if isinstance(loss, Summed):
        return Summed(tuple((part, times * count) for part, times in loss.parts), loss.grid)
    if isinstance(loss, Leak):
        return Leak(1 - (1 - loss.chance) ** count)
    if isinstance(loss, Renyi):
        return Renyi(loss.shift, loss.dim * count, loss.order)
    if isinstance(loss, EqualBits):
        return bits_loss([(loss.p, loss.q, loss.count * count)])
    if (
        isinstance(loss, Outcomes) and not upper
    ):  # whether an output is likelier under the first law is all that is told
        likelier = [(p, q) for p, q in loss.chances if p.a > q.b]
        first, second = (sum((chance[i] for chance in likelier), ZERO) for i in (0, 1))
        return bits_loss([(at_most_one(first), at_most_one(second), count)])
    if isinstance(loss, Worst) and (len(loss.losses) == 1 or not upper):
        return Worst([repeated(one, count, upper) for one in loss.losses])
    return Basic(loss, count) if upper else OneOf(loss, count)


def randomized_response(pure: Number, count: int) -> Loss:
    """The worst that is ε₀-DP, so many times."""
    if is_infinite(pure):
        raise CertificateError("the steps are not known to be ε-DP for any ε")
    keep = 1 / (1 + iv.exp(-pure))
    return bits_loss([(keep, 1 - keep, count)]) if pure.b > 0 else Pure(ZERO)


@dataclass(frozen=True)
class Steps:
    """How often a pipeline is done, and the probability with which a record takes part, unless all do."""

    count: int
    rate: Number | None
    replaced: bool

    @classmethod
    def of(cls, stages: Sequence[Stage], neighbours: str) -> "Steps":
        first, last = stages[0], stages[-1]
        rate = first.numbers["rate"] if first.name == "poisson" else None
        count = last.wholes["steps"] if last.name == "times" else 1
        return cls(count, None if rate is not None and rate.a >= 1 else rate, neighbours == "replace-record")

    def theorem(self, name: str, noise: Stage) -> str:
        """The theorem about one step, in which the record takes part, that another one about all steps needs."""
        if name not in ("poisson", "optimal-composition"):
            return name
        return {"flip": "randomized-response", "bits": "randomized-response"}.get(noise.name, noise.name)

    def upper(self, name: str, loss: Loss, grid: Grid | None) -> Loss:
        """The loss of all steps, given one that dominates each of them."""
        if name == "poisson" and self.rate is None:
            raise CertificateError("no record is sampled")
        if self.rate is not None and name != "poisson":
            if self.replaced or self.count > 1:
                raise CertificateError(f"the theorem {name!r} says nothing of these steps")
            return Amplified(loss, self.rate, 1)
        if name == "optimal-composition":
            return randomized_response(loss.pure, self.count)
        if self.rate is None:
            return repeated(loss, self.count, True)
        if isinstance(loss, Gaussian):
            return Worst([Sampled(self.rate, loss.mu, order, self.count, grid) for order in self._orders])
        return randomized_response(self._amplified(loss.pure), self.count)

    def lower(self, name: str, loss: Loss, grid: Grid | None, pair: Pair) -> Loss:
        """The loss that a pair shows in all steps, given what it shows in one in which the record takes part."""
        if (name == "poisson" and self.rate is None) or name == "optimal-composition":
            raise CertificateError(f"the theorem {name!r} says nothing of what a pair shows in these steps")
        if self.rate is None:
            return repeated(loss, self.count, False)
        if name != "poisson":
            if self.replaced:
                raise CertificateError(f"the theorem {name!r} says nothing of a record that is replaced")
            return Amplified(loss, self.rate, self.count)
        if self.replaced and not all(block.x.a == -block.y.b and block.x.b == -block.y.a for block in pair):
            raise CertificateError("the pair is not a record's vector and the opposite one")
        half = 2 if self.replaced else 1
        if isinstance(loss, Gaussian):
            return Worst([Sampled(self.rate, loss.mu / half, order, self.count, grid) for order in self._orders])
        if is_infinite(loss.pure):
            raise CertificateError("of this noise, behind sampling, only what is ε-DP is known")
        return AtZero(self._amplified(loss.pure / half) * self.count)

    def refuse_event(self) -> None:
        """Events are known of one step only."""
        if self.count > 1 or self.rate is not None:
            raise CertificateError("of sampled or repeated steps no event is known")

    @property
    def _orders(self) -> tuple[str, ...]:
        return ("both",) if self.replaced else ("in", "out")

    def _amplified(self, pure: Number) -> Number:
        """ε at δ = 0 of one step, given that of a record that takes part for sure."""
        assert self.rate is not None
        if is_infinite(pure):
            raise CertificateError("of this noise, behind sampling, only what is ε-DP is known")
        most = iv.log(1 - self.rate + self.rate * iv.exp(pure))
        return most - iv.log(1 - self.rate + self.rate * iv.exp(-pure)) if self.replaced else most


__all__ = ["Steps"]
