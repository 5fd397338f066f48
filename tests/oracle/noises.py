"""Noises with laws of their own, which depend on the shift alone: discrete, cut off, in steps, in a Mahalanobis norm.

A density (or a probability) that is even and does not grow with |t| has, at every ε ≥ 0, a δ that grows with the
shift: where p(t) > e^ε p(t − s), t is nearer to 0 than to s, and a farther s makes the second term smaller. So does a
product of such, one coordinate after the other. Of the shifts that `shapes` lists one is therefore the worst.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from mpmath import mp, mpf

from oracle.losses import ALL_LOST, INF, NO_LOSS, NOTHING_KNOWN, Ends, Truth, laplace_pair, pure_delta
from oracle.text import Stage, Unreadable
from oracle.values import WHOLE_NOISES, Values, root, shapes

Groups = Sequence[tuple[mpf, int]]
MOST_KEYS, CELLS, TINY = 120, 4000, mpf(10) ** -30


def worst(pairs: Sequence[Truth]) -> Truth:
    """Of these pairs the worst, at each ε and order."""

    def most(ends: Sequence[Ends]) -> Ends:
        return max(low for low, _ in ends), max(high for _, high in ends)

    if len(pairs) == 1:
        return pairs[0]
    return Truth(
        most([pair.pure for pair in pairs]),
        lambda e: most([pair.delta(e) for pair in pairs]),
        lambda order: most([pair.renyi(order) for pair in pairs]),
    )


def near_whole(x: mpf) -> mpf:
    """A number that is whole up to one part in 10³⁰, as that."""
    return mp.nint(x) if abs(x - mp.nint(x)) <= TINY * max(1, abs(x)) else x


# ── Losses that are multiples of one number ─────────────────────────────────────────────────────


def _sum_of(parts: Sequence[tuple[dict[int, mpf], int]]) -> dict[int, mpf]:
    total = {0: mpf(1)}
    for part, count in parts:
        for _ in range(count):
            made: dict[int, mpf] = {}
            for i, p in total.items():
                for j, q in part.items():
                    made[i + j] = made.get(i + j, mpf(0)) + p * q
            total = made
    return total


def lattice_pair(parts: Sequence[tuple[dict[int, mpf], int]], unit: mpf) -> Truth:
    """Independent coordinates whose losses are so many units, with these probabilities under the first input."""
    pure = unit * sum(max(part) * n for part, n in parts)
    few = sum((max(part) - min(part)) * n for part, n in parts) <= 2 * MOST_KEYS

    @lru_cache(maxsize=1)
    def together() -> dict[int, mpf]:
        return _sum_of(parts if few else [(parts[0][0], 1)])

    def delta(e: mpf) -> Ends:
        shown = mp.fsum(p * -mp.expm1(e - key * unit) for key, p in together().items() if key * unit > e)
        return shown, shown if few else max(shown, pure_delta(pure, e))

    def divergence(order: mpf) -> Ends:
        logs = (n * mp.log(mp.fsum(p * mp.exp((order - 1) * k * unit) for k, p in part.items())) for part, n in parts)
        found = mp.fsum(logs) / (order - 1)
        return found, found

    return Truth((pure, pure), delta, divergence) if parts else NO_LOSS


def discrete_laplace_pair(groups: Groups, scale: mpf) -> Truth:
    """Whole shifts: below the first value the loss is k/scale, beyond the second −k/scale, between it falls by 2."""
    a = mp.exp(-1 / scale)

    def part(k: int) -> dict[int, mpf]:
        inner = {k - 2 * t: (1 - a) / (1 + a) * a**t for t in range(1, k)}
        return {k: 1 / (1 + a), **inner, -k: a**k / (1 + a)}

    return lattice_pair([(part(int(k)), n) for k, n in groups if k and n], 1 / scale)


def theta(shift: mpf, sigma: mpf) -> mpf:
    """Σ e^(−(t − shift)²/2σ²) over all whole t, to 10⁻⁵⁵ of it."""
    reach = int(mp.ceil(16 * sigma)) + 2
    shift -= mp.nint(shift)
    return mp.fsum(mp.exp(-((t - shift) ** 2) / (2 * sigma**2)) for t in range(-reach, reach + 1))


def discrete_gaussian_pair(groups: Groups, sigma: mpf) -> Truth:
    """Whole shifts. Squares completed, E e^((α−1)L) is e^(α(α−1)k²/2σ²) times a sum over a shifted grid."""
    groups = [(k, n) for k, n in groups if k and n]
    if not groups:
        return NO_LOSS
    if sigma > 100:
        raise Unreadable("a sum of many terms")
    total, reach = theta(mpf(0), sigma), int(mp.ceil(16 * sigma)) + 2
    rho = mp.fsum(n * k**2 for k, n in groups) / (2 * sigma**2)
    largest = int(max(k for k, _ in groups))
    alone = len(groups) == 1 and groups[0][1] == 1

    def delta(e: mpf) -> Ends:
        end = mpf(largest) / 2 - sigma**2 * e / largest  # where the loss of the largest shift is ε
        first, last = int(mp.floor(end)) - 2 * reach, int(mp.ceil(end)) - 1
        terms = (
            mp.exp(-(mpf(t) ** 2) / (2 * sigma**2)) * -mp.expm1(largest * (t - end) / sigma**2)
            for t in range(max(first, -3 * reach) if end > -reach else first, min(last, reach) + 1)
        )
        shown = mp.fsum(terms) / total * (1 - mpf(10) ** -40)
        return shown, shown * (1 + mpf(10) ** -30) if alone else max(shown, concentrated_delta(rho, e))

    def divergence(order: mpf) -> Ends:
        extra = (n * mp.log(theta((1 - order) * k, sigma) / total) for k, n in groups)
        found = order * rho + mp.fsum(extra) / (order - 1)
        return found, found

    return Truth((INF, INF), delta, divergence)


def concentrated_delta(rho: mpf, e: mpf) -> mpf:
    """What divergences of at most αρ allow, at some orders."""
    best = mpf(1)
    for k in range(-24, 40):
        z = mp.exp(mpf(k) / 4)
        log = z * ((1 + z) * rho - e) + z * mp.log(z) - (1 + z) * mp.log(1 + z)
        best = min(best, mp.exp(log) * (1 + TINY))
    return best


def staircase_part(shift: mpf, epsilon: mpf, gamma: mpf) -> dict[int, mpf]:
    """The losses, in steps, of noise around 0 against that around `shift`, in sensitivities: piece by piece.

    Left of −γ and right of shift + γ the losses repeat, and the density falls by r from one sensitivity to the next.
    """
    r = mp.exp(-epsilon)

    def level(t: mpf) -> int:
        return int(mp.floor(abs(t) + 1 - gamma))

    count = int(mp.ceil(shift)) + 2
    marks = {s * (i + gamma) + centre for i in range(count + 1) for s in (-1, 1) for centre in (mpf(0), shift)}
    low, high = -gamma - 1, shift + gamma + 1
    edges = sorted({low, high, *(m for m in marks if low < m < high)})
    found: dict[int, mpf] = {}
    for a, b in itertools.pairwise(edges):
        if b - a <= TINY:
            continue
        middle = (a + b) / 2
        weight = r ** level(middle) * (b - a)
        if middle < -gamma or middle > shift + gamma:
            weight /= 1 - r
        key = level(middle - shift) - level(middle)
        found[key] = found.get(key, mpf(0)) + weight
    total = mp.fsum(found.values())
    return {key: weight / total for key, weight in found.items()}


def staircase_pair(groups: Groups, noise: Stage) -> Truth:
    """Shifts in sensitivities; one that is whole up to one part in 10³⁰ is whole."""
    if any(s > 200 for s, _ in groups):
        raise Unreadable("a stair of many steps")
    gamma: mpf = noise.gamma  # type: ignore[assignment]
    parts = [(staircase_part(near_whole(s), noise.epsilon, gamma), n) for s, n in groups if s and n]  # type: ignore[arg-type]
    return lattice_pair(parts, noise.epsilon)  # type: ignore[arg-type]


# ── Truncated Laplace noise ─────────────────────────────────────────────────────────────────────


def truncated_cdf(t: mpf, a: mpf) -> mpf:
    """P(T ≤ t) of Laplace noise of scale 1 within ±a."""
    if abs(t) >= a:
        return mpf(0 if t < 0 else 1)
    tail = (mp.exp(-abs(t)) - mp.exp(-a)) / (2 * -mp.expm1(-a))
    return tail if t < 0 else 1 - tail


def truncated_pair(groups: Groups, a: mpf) -> Truth:
    """Shifts and the bound in scales. The loss falls along the line, infinite first: events lie below a threshold."""
    groups = [(s, n) for s, n in groups if s and n]
    if not groups:
        return NO_LOSS

    def one(s: mpf, e: mpf) -> mpf:
        if e >= min(s, 2 * a - s):
            return truncated_cdf(s - a, a)
        end = max(s - a, min((s - e) / 2, a))
        return truncated_cdf(end, a) - mp.exp(e) * truncated_cdf(end - s, a)

    lost = 1 - mp.fprod((1 - truncated_cdf(s - a, a)) ** n for s, n in groups)
    most = mp.fsum(n * max(mpf(0), min(s, 2 * a - s)) for s, n in groups)
    alone = len(groups) == 1 and groups[0][1] == 1

    def delta(e: mpf) -> Ends:
        if alone:
            found = one(groups[0][0], e)
            return found, found
        if e >= most:
            return lost, lost
        shown = max(lost, *(one(s, e) for s, _ in groups))
        top = lost + (1 - lost) * -mp.expm1(e - most)
        few = sum(n for _, n in groups) <= 10 and all(s < 2 * a for s, _ in groups)
        low, high = in_cells([(_truncated_falling(s, a), n) for s, n in groups], e) if few else (shown, top)
        return max(shown, low), max(shown, min(top, high))

    return Truth((INF, INF), delta, lambda order: (INF, INF))


@dataclass(frozen=True)
class Falling:
    """A coordinate whose loss falls along the line: P(L > l), L finite, where it is largest and smallest, P(L = ∞)."""

    above: Callable[[np.ndarray], np.ndarray]
    most: float
    least: float
    lost: float = 0.0

    def cells(self, step: float) -> tuple[np.ndarray, int]:
        """The masses of finite losses, rounded down to a grid, and the place of the loss 0 in them."""
        reach = int(np.ceil(max(abs(self.most), abs(self.least)) / step)) + 1
        edges = np.arange(-reach, reach + 1) * step
        above = np.where(edges >= self.most, 0.0, np.where(edges < self.least, 1 - self.lost, self.above(edges)))
        return above[:-1] - above[1:], reach


def in_cells(parts: Sequence[tuple[Falling, int]], e: mpf) -> Ends:
    """δ of independent coordinates: losses rounded down to a grid, or up. In doubles, which lose less than 10⁻¹⁰."""
    step = max(part.most - part.least for part, _ in parts) / CELLS
    cells = [(*part.cells(step), n, part.lost) for part, n in parts]
    size, count = 1 + sum(n * (len(masses) - 1) for masses, _, n, _ in cells), sum(n for _, n in parts)
    kept, zero = float(np.prod([(1 - lost) ** n for *_, n, lost in cells])), sum(n * at for _, at, n, _ in cells)
    total = np.fft.irfft(np.prod([np.fft.rfft(m, 2 * size) ** n for m, _, n, _ in cells], axis=0), 2 * size)[:size]
    losses, ends = (np.arange(size) - zero) * step, []
    for more in (0.0, count * step):
        gain = -np.expm1(np.minimum(0.0, float(e) - losses - more))
        ends.append(mpf(1 - kept + float(total @ gain)))
    return max(mpf(0), ends[0] - mpf("1e-10")), ends[1] + mpf("1e-10")


def _truncated_falling(s: mpf, a: mpf) -> Falling:
    shift, bound = float(s), float(a)

    def cdf(t: np.ndarray) -> np.ndarray:
        tail = (np.exp(-np.abs(t)) - np.exp(-bound)) / (2 * -np.expm1(-bound))
        return np.where(t <= -bound, 0.0, np.where(t >= bound, 1.0, np.where(t < 0, tail, 1 - tail)))

    lost = float(cdf(np.array(shift - bound)))
    most = min(shift, 2 * bound - shift)
    return Falling(lambda edge: cdf((shift - edge) / 2) - lost, most, -most, lost)


# ── From sets to laws ───────────────────────────────────────────────────────────────────────────


def _tried(sampled: Callable[[], object], count: int = 400) -> list[np.ndarray]:
    """Differences of some pairs that inputs really have, the longest first."""
    rows: list[np.ndarray] = []
    for one, other in sampled():  # type: ignore[attr-defined]
        gaps = np.abs(one - other)
        order = np.argsort(-gaps.sum(axis=1))[:count]
        rows.extend(gaps[order])
    return rows


def _pair(noise: Stage) -> Callable[[Groups], Truth]:
    """What a shift shows, by its coordinates."""
    if noise.name == "discrete_laplace":
        return lambda groups: discrete_laplace_pair(groups, noise.scale)  # type: ignore[arg-type]
    if noise.name == "discrete_gaussian":
        return lambda groups: discrete_gaussian_pair(groups, noise.sigma)  # type: ignore[arg-type]
    if noise.name == "staircase":
        if not 0 <= noise.gamma <= 1:  # type: ignore[operator]
            raise Unreadable("a part of a step beyond 1")
        return lambda groups: staircase_pair([(s / noise.sensitivity, n) for s, n in groups], noise)
    scale, bound = noise.scale, noise.bound
    return lambda groups: truncated_pair([(s / scale, n) for s, n in groups], bound / scale)  # type: ignore[operator]


def shift_truth(v: Values, noise: Stage, added: bool, sampled: Callable[[], object]) -> Truth:
    """Noise on each coordinate whose law depends on the shift alone, and grows with each coordinate of it."""
    if v.constant(added):
        return NO_LOSS
    if v.unbounded:
        return ALL_LOST if v.tight else NOTHING_KNOWN
    pair, discrete = _pair(noise), noise.name in WHOLE_NOISES
    if discrete and not v.whole:  # values that do not differ by whole numbers have no output in common
        broken = any(bool((np.abs(row - np.rint(row)) > 1e-6).any()) for row in _tried(sampled))
        return ALL_LOST if v.tight or broken else NOTHING_KNOWN
    listed = shapes(v, added)
    known = _on_a_ball(v, noise, added, pair) if listed is None else worst([pair(shape) for shape in listed])
    if v.tight:
        return known
    rows = _tried(sampled, 1)
    if discrete:
        rows = [np.rint(row) for row in rows]
    found = [pair([(mpf(g) * (1 if discrete else 1 - mpf("1e-9")), 1) for g in row.tolist()[:6]]) for row in rows]
    return known.forgotten().at_least(worst(found)) if found else known.forgotten()


def _on_a_ball(v: Values, noise: Stage, added: bool, pair: Callable[[Groups], Truth]) -> Truth:
    """Shifts of an l1 or l2 ball: some of them from below, all coordinates by the largest gap from above."""
    gap, n = mp.floor(v.gap(added)) if v.rounded else v.gap(added), v.dim
    every = pair([(gap, n * v.times)])
    if noise.name in WHOLE_NOISES:  # of answers, farther apart than `shapes` lists
        pure = v.diameter(mpf(1), added) / noise.scale if noise.name == "discrete_laplace" else INF
        rho = v.diameter(mpf(2), added) ** 2 / (2 * noise.sigma**2) if noise.name == "discrete_gaussian" else INF
        shown = pair([(mp.floor(gap), v.times)])
        small = Truth((shown.pure[0], pure), lambda e: (mpf(0), min(pure_delta(pure, e), _by_rho(rho, e))))
        return every.forgotten().at_most(small).at_least(shown)
    known = [pair([(gap / root(k, v.p), k * v.times)]) for k in sorted({1, 2, n}) if k <= n]
    if noise.name == "truncated_laplace":
        if v.p == 1:  # log-concave noise: docs/proofs/worst-shift.md
            return known[0]
        return every.forgotten().at_least(worst(known))
    if v.times > 1:
        return every.forgotten()
    # ⌈s⌉ = 1 + c where s is a little more than c: the largest Σ c with Σ c^p < D^p, one unit after the other.
    room, steps = (near_whole(gap / noise.sensitivity)) ** v.p, [0] * min(n, 400)  # type: ignore[operator]
    while sum(mpf(c) ** v.p for c in steps) + mpf(min(steps) + 1) ** v.p - mpf(min(steps)) ** v.p < room * (1 - TINY):
        steps[steps.index(min(steps))] += 1
    pure = noise.epsilon * (n + sum(steps))  # type: ignore[operator]
    most = Truth((pure, pure), lambda e: (mpf(0), pure_delta(pure, e)))
    return every.forgotten().at_most(most).at_least(worst(known)).at_least(most)


def _by_rho(rho: mpf, e: mpf) -> mpf:
    return mpf(1) if mp.isinf(rho) else concentrated_delta(rho, e)


def mahalanobis_truth(v: Values, noise: Stage, added: bool, sampled: Callable[[], object]) -> Truth:
    """At δ = 0 the distance √(Σ dᵢ²/λᵢ) over the scale, λ evenly spaced: large gaps where λ is small."""
    scale, least, largest = (getattr(noise, key) for key in ("scale", "least", "largest"))
    if least > largest:
        raise Unreadable("eigenvalues the wrong way round")
    if v.constant(added):
        return NO_LOSS
    if v.unbounded:
        return ALL_LOST if v.tight else NOTHING_KNOWN
    if v.dim == 1:
        known = laplace_pair([(v.gap(added) / (scale * mp.sqrt(least)), 1)])
        return known if v.tight else known.forgotten()
    if v.dim > 4096:
        raise Unreadable("too many eigenvalues")
    eigen = [least + (largest - least) * i / (v.dim - 1) for i in range(v.dim)]

    def length(groups: Groups) -> mpf:
        gaps = sorted((g for g, n in groups for _ in range(n)), reverse=True)
        return mp.sqrt(mp.fsum(g**2 / e for g, e in zip(gaps, eigen, strict=False)))

    listed = shapes(v, added)
    far = v.gap(added) / mp.sqrt(least) if listed is None else max(length(shape) for shape in listed)
    pure = far / scale
    return Truth((pure if v.tight else mpf(0), pure), lambda e: (mpf(0), pure_delta(pure, e)))
