"""Laws that depend on where the input lies: random directions, and Laplace noise between limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from mpmath import mp, mpf

from oracle.losses import NO_LOSS, Ends, Truth, pure_delta
from oracle.noises import Falling, in_cells
from oracle.text import Stage, Unreadable
from oracle.values import Values

BLUR = mpf(10) ** -22  # of integrals
LOST = mpf(10) ** -44  # what differences of 50 digits lose


# ── Random directions ───────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=4000)
def _direction_integral(name: str, kappa: mpf, dim: int, end: mpf, e: mpf | None) -> mpf:
    """∫ p, or ∫ (p − e^ε q), over the angle from one of two opposite vectors up to `end`, at 32 digits."""
    vmf = name == "vmf"

    def weight(a: mpf) -> mpf:
        plain = mp.exp(kappa * (mp.cos(a) - 1) if vmf else -kappa * a)
        return plain * mp.sin(a) ** (dim - 2) if dim > 2 else plain

    def loss(a: mpf) -> mpf:
        return 2 * kappa * mp.cos(a) if vmf else kappa * (mp.pi - 2 * a)

    with mp.workdps(32):
        mode = mp.sqrt((dim - 2) / (kappa + dim)) if vmf else mp.atan2(dim - 2, kappa)
        marks = [m for m in (mode / 2, mode, 2 * mode, 4 * mode) if 0 < m < end]
        return mp.quad(
            weight if e is None else lambda a: -mp.expm1(e - loss(a)) * weight(a),
            [mpf(0), *marks, end],
            method="gauss-legendre",
        )


def _direction_delta(name: str, kappa: mpf, dim: int, e: mpf) -> mpf:
    end = mp.acos(min(mpf(1), e / (2 * kappa))) if name == "vmf" else (mp.pi - e / kappa) / 2
    whole = _direction_integral(name, kappa, dim, +mp.pi, None)
    return _direction_integral(name, kappa, dim, end, e) / whole


def direction_truth(v: Values, noise: Stage) -> Truth:
    """Opposite vectors are the worst pair: a mirror between any two sends one law to the other.

    With P = Q∘R for a reflection R, δ is the mean of a rising function of |L|, by the mean m of both laws. |L(z)| is at
    most that of the poles of R at the same distance s from the mirror, and under m that distance is stochastically
    largest for the poles, since the density rises with s there and A = {s > c} is all that is asked of.
    """
    kappa: mpf = noise.kappa  # type: ignore[assignment]
    if v.kind != "sphere" or v.dim < 2 or v.times > 1:
        raise Unreadable("directions are drawn around unit vectors of the plane at least")
    pure = 2 * kappa if noise.name == "vmf" else mp.pi * kappa
    if kappa > 400 or v.dim > 200:
        known = Truth((pure, pure), lambda e: (mpf(0), pure_delta(pure, e)))
        return known if v.tight else known.forgotten()

    def delta(e: mpf) -> Ends:
        if e >= pure:
            return mpf(0), mpf(0)
        found = _direction_delta(noise.name, kappa, v.dim, e)
        room = found * BLUR + mpf(10) ** -25  # next to the largest loss 32 digits are not many
        return max(mpf(0), found - room), found + room

    known = Truth((pure, pure), delta)
    return known if v.tight else known.forgotten()


# ── The bounded Laplace mechanism ───────────────────────────────────────────────────────────────


def bounded_cdf(t: mpf, x: mpf, width: mpf) -> mpf:
    """P(output ≤ t) for the input x, both within 0 and the width, in scales."""
    whole = 2 - mp.exp(-x) - mp.exp(x - width)
    below = mp.exp(min(t, x) - x) - mp.exp(-x)
    return (below + (-mp.expm1(x - t) if t > x else 0)) / whole


def bounded_pair(x: mpf, y: mpf, width: mpf) -> tuple[mpf, Callable[[mpf], mpf]]:
    """The largest loss and δ of x against y. The loss is monotone along the line: events lie on one side of a point."""
    if x > y:
        return bounded_pair(width - x, width - y, width)
    whole = [2 - mp.exp(-c) - mp.exp(c - width) for c in (x, y)]
    shift = mp.log(whole[1] / whole[0])
    pure = y - x + shift

    def delta(e: mpf) -> mpf:
        if e >= pure:
            return mpf(0)
        at = max(x, min(y, (x + y + shift - e) / 2))  # δ is at ε ≥ 0: the loss is at most 0 from here on
        return max(mpf(0), bounded_cdf(at, x, width) - mp.exp(e) * bounded_cdf(at, y, width))

    return pure, delta


def bounded_falling(x: mpf, y: mpf, width: mpf) -> Falling:
    """The same as the law of a coordinate, in doubles."""
    if x > y:
        return bounded_falling(width - x, width - y, width)
    a, b, w = float(x), float(y), float(width)
    whole = [2 - np.exp(-c) - np.exp(c - w) for c in (a, b)]
    shift = float(np.log(whole[1] / whole[0]))

    def cdf(t: np.ndarray) -> np.ndarray:
        t = np.clip(t, a, b)
        return (1 - np.exp(-a) - np.expm1(a - t)) / whole[0]

    return Falling(lambda edge: cdf((a + b + shift - edge) / 2), b - a + shift, a - b + shift)


def bounded_pairs(ends: Sequence[tuple[mpf, mpf, int]], width: mpf, either: bool = False) -> Truth:
    """Coordinates of two inputs, in scales; with `either` each may be the other way round, whichever is worst."""
    both = [(bounded_pair(x, y, width), bounded_pair(y, x, width), n) for x, y, n in ends if x != y]
    pure = mp.fsum(n * (max(one[0], two[0]) if either else one[0]) for one, two, n in both)
    if not both:
        return NO_LOSS
    count = sum(n for _, _, n in both)

    def delta(e: mpf) -> Ends:
        if count == 1:
            found = max(both[0][0][1](e), both[0][1][1](e)) if either else both[0][0][1](e)
            return max(mpf(0), found - LOST), found + LOST
        shown = max(one[1](e) for one, _, _ in both)
        if count > 10 or (either and len(ends) > 1):
            return shown, max(shown, pure_delta(pure, e))
        ways = [[(bounded_falling(x, y, width), n)] for x, y, n in ends] if not either else []
        if either:
            x, y, n = ends[0]
            laws = bounded_falling(x, y, width), bounded_falling(y, x, width)
            found_ = [in_cells([(laws[0], k), (laws[1], n - k)], e) for k in range(n + 1)]
        else:
            found_ = [in_cells([part for way in ways for part in way], e)]
        low, high = max(f[0] for f in found_), max(f[1] for f in found_)
        return max(shown, low), max(shown, low, min(high, pure_delta(pure, e)))

    return Truth((pure, pure), delta)


def bounded_truth(v: Values, noise: Stage, added: bool) -> Truth:
    """P(output ≤ t) falls as the input grows (ratios of densities are monotone), so the farthest ends are the worst."""
    scale, low, high = (getattr(noise, key) for key in ("scale", "low", "high"))
    if low >= high or added or (v.kind == "categories"):
        raise Unreadable("limits the wrong way round, or records")
    width = (high - low) / scale

    def inside(x: mpf) -> mpf:
        return min(width, max(mpf(0), (x - low) / scale))

    if v.constant():
        return NO_LOSS
    if v.kind == "query":
        return _bounded_answers(v, scale, width, v.rounded and low != mp.floor(low))
    limits = {"ball": (-v.size, v.size), "sphere": (-mpf(1), mpf(1)), "box": (v.low, v.high), "rows": (v.low, v.high)}
    ends = limits.get(v.kind, (mpf(0), mpf(1)))
    ends = (mpf(0), width) if v.unbounded else (inside(ends[0]), inside(ends[1]))
    known = bounded_pairs([(*ends, v.differing() * v.times)], width, either=True)
    free = v.kind in ("everything", "box", "rows", "bits") or v.dim == 1 or (v.kind == "ball" and mp.isinf(v.p))
    if v.tight and free:
        return known
    alone = bounded_pairs([(*ends, v.times)], width, either=True) if v.tight and v.kind == "ball" else NO_LOSS
    return known.forgotten().at_least(alone)


def _bounded_answers(v: Values, scale: mpf, width: mpf, beside: bool) -> Truth:
    """Answers D apart, anywhere: of a cell of places the first one's x against the last one's y beats all its pairs.

    `beside`: answers are whole numbers, and the limit is none, so that none need lie on it.
    """
    far = min(v.gap() / scale, width)
    if far == 0:
        return NO_LOSS
    free = v.dim == 1 or mp.isinf(v.p)
    single, _ = bounded_pair(mpf(0), far, width)  # ln C is concave, so it changes the most at a limit
    count = v.dim * v.times
    pure = single * count
    sure = v.tight and not beside

    def delta(e: mpf) -> Ends:
        if e >= pure:
            return mpf(0), mpf(0)
        shown, top = bounded_anywhere(far, width, e)
        at_limit = max(mpf(0), bounded_pair(mpf(0), far, width)[1](e) - LOST)
        shown = at_limit if v.rounded else max(shown, at_limit)
        if count > 1:
            top = max(top, pure_delta(pure, e))
        return (shown if sure else mpf(0)), max(shown, top)

    low = (pure if free else single * v.times) if sure else mpf(0)
    return Truth((low, pure), delta)


def bounded_anywhere(far: mpf, width: mpf, e: mpf, count: int = 20_000) -> Ends:
    """The largest δ of two answers so far apart: in cells, in doubles, which lose less than 10⁻¹⁰."""
    w, grid = float(width), np.linspace(0.0, float(width - far), count + 1)

    def best(x: np.ndarray, y: np.ndarray) -> mpf:
        whole = [2 - np.exp(-c) - np.exp(c - w) for c in (x, y)]
        at = np.clip((x + y + np.log(whole[1] / whole[0]) - float(e)) / 2, x, y)
        p, q = (1 - np.exp(-x) - np.expm1(x - at)) / whole[0], (np.exp(at - y) - np.exp(-y)) / whole[1]
        return mpf(float(np.maximum(0.0, p - np.exp(float(e)) * q).max()))

    shown = best(grid, grid + float(far)) - mpf("1e-10")
    return max(mpf(0), shown), best(grid[:-1], np.minimum(w, grid[1:] + float(far))) + mpf("1e-10")
