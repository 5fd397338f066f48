"""Which statements about metric DP, Rényi DP, zCDP and Gaussian DP the oracle knows to be true or false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mpmath import mp, mpf

from oracle.losses import INF, Ends, Truth
from oracle.steps import relation
from oracle.text import Stage, Unreadable
from oracle.values import CHOICES, DIRECTIONS, NOISES, P, walk, whole
from oracles import gaussian_delta

TIE = 4 * mpf(10) ** -30
ORDERS = [1 + mp.exp(mpf(k) / 4) for k in range(-60, 40)]


@dataclass(frozen=True)
class Stated:
    """The parameter of a guarantee is "at most" or "at least" a value; "proven" and "refuted" as for ε and δ."""

    what: str
    kind: str
    value: mpf
    order: mpf
    metric: str


def judged_other(truth: Truth, said: Stated, stages: Sequence[Stage], dim: int, neighbours: str) -> tuple[str, str]:
    """ "true", "false" or "unknown", and for a false one why."""
    with mp.workdps(50):
        if mp.isinf(said.value) and said.what in ("proven", "at most"):
            return "true", ""
        if said.kind == "gdp":
            return _judged_mu(truth, said)
        if said.kind == "metric":
            ends = loss_per_unit(stages, dim, said.metric, neighbours)
        else:
            ends = truth.renyi(said.order) if said.kind == "renyi" else rho(truth)
        return _compared(ends, said)


def _compared(ends: Ends, said: Stated) -> tuple[str, str]:
    low, high = ends
    if said.what in ("proven", "at most"):
        if low > said.value * (1 + TIE):
            return "false", f"{said}: at least {mp.nstr(low, 15)}"
        return ("true" if high <= said.value * (1 + TIE) else "unknown"), ""
    if said.value == 0 and said.what == "at least":
        return "true", ""
    if high < said.value * (1 - TIE) or (said.what == "refuted" and high <= said.value):
        return "false", f"{said}: at most {mp.nstr(high, 15)}"
    return ("true" if low >= said.value * (1 - TIE) else "unknown"), ""


def rho(truth: Truth) -> Ends:
    """The largest D_α/α: of some orders from below; from above D grows with the order, so that cells bound it."""
    found = [(order, truth.renyi(order)) for order in ORDERS]
    low = max(d[0] / order for order, d in found)
    if low == INF:
        return INF, INF
    exact = all(d[1] - d[0] <= mpf(10) ** -40 for _, d in found)
    if exact and len({mp.nstr(d[0] / order, 30) for order, d in found}) == 1:  # Gaussian noise
        return low * (1 - mpf(10) ** -35), low * (1 + mpf(10) ** -35)
    if exact:
        return _refined(truth)
    tops = [found[0][1][1], *(after[1][1] / before[0] for before, after in pairwise(found))]
    return low, max(low, *tops, truth.pure[1] / ORDERS[-1])


def _refined(truth: Truth) -> Ends:
    """The largest D_α/α where D is known exactly: next to the best of the orders, or in the limit at order 1."""

    def at(log_less: mpf) -> mpf:
        order = 1 + mp.exp(log_less)
        return truth.renyi(order)[0] / order

    best = max((mpf(k) / 4 for k in range(-60, 40)), key=at)
    low, high = best - mpf(1) / 4, best + mpf(1) / 4
    for _ in range(60):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(a) > at(b) else (a, high)
    found = max(at(best), at(low), at(mpf(-46)))  # discrete noise has its largest at whole orders
    return found * (1 - mpf(10) ** -18), found * (1 + mpf(10) ** -18)


def _judged_mu(truth: Truth, said: Stated) -> tuple[str, str]:
    """δ against that of Gaussian noise at some ε."""
    top = min(truth.pure[1], mpf(30))
    places = [top * k / 24 for k in range(25)]
    room = mpf(10) ** -18
    if said.value == 0:
        lost = truth.pure[0] > 0
        return ("false", f"{said}") if lost and said.what in ("proven", "at most") else ("unknown", "")
    if mp.isinf(said.value):
        given_away = truth.renyi(mpf(2))[0] == INF
        return ("true", "") if given_away else ("unknown", "")
    curve = [(truth.delta(e), gaussian_delta(said.value, e)) for e in places]
    if said.what in ("proven", "at most"):
        if any(low > limit * (1 + room) + mpf(10) ** -40 for (low, _), limit in curve):
            return "false", f"{said}"
        return ("true" if all(high <= limit * (1 + room) for (_, high), limit in curve) else "unknown"), ""
    if any(low >= limit * (1 - room) for (low, _), limit in curve):
        return "true", ""
    smaller = [gaussian_delta(said.value * (1 - mpf(10) ** -3), e) for e in places]
    below = all(high < limit for ((_, high), _), limit in zip(curve, smaller, strict=True))
    return ("false" if below else "unknown"), f"{said}" if below else ""


def loss_per_unit(stages: Sequence[Stage], dim: int, metric: str, neighbours: str) -> Ends:
    """The largest loss per unit of distance: textbook norms, and stages that leave small differences as they are."""
    if relation(neighbours) != ("any", 1):
        raise Unreadable("metric DP is about any two inputs")
    parts, times = [stage for stage in stages if stage.name != "times"], 1
    if stages[-1].name == "times":
        times = whole(stages[-1].steps)
    while parts and parts[0].name == "encode":
        parts = parts[1:]
    q = mpf(2) if metric in ("angle", "mahalanobis") else P[metric]
    if directed := [stage for stage in parts if stage.name in DIRECTIONS]:
        return _direction_rate(directed[0], parts, metric, dim, times)
    if metric == "mahalanobis":
        if not parts or parts[0].name != "mahalanobis":
            raise Unreadable("the norm is that of the noise")
        found = times / parts[0].scale  # type: ignore[operator]
        seen = all(stage.name in ("decode", "encode") for stage in parts[1:])
        return (found if seen else mpf(0)), found
    if metric == "angle":
        if not parts or parts[0].name != "normalise" or dim < 2:
            raise Unreadable("an angle is between normalised vectors")
        parts = parts[1:]
    places = [i for i, stage in enumerate(parts) if stage.name in NOISES]
    if not places:
        return mpf(0), INF
    before, noise, after = parts[: places[0]], parts[places[0]], parts[places[0] + 1 :]
    low, high = _rate(noise, q, walk(before, dim).dim, bool(before))
    slope = mpf(1)
    for stage in before:
        if stage.name == "squash" and stage.kind == "sigmoid":
            slope /= 4
        elif stage.name not in ("clamp", "clip", "squash"):
            return mpf(0), INF
    stretched = any(stage.name == "clip" for stage in before)
    kinds = [stage.name for stage in before]
    local = len(before) <= 1 or all(kind == "clip" for kind in kinds)
    seen = all(stage.name in ("decode", "encode") for stage in after) and local
    factor = mpf(1)
    for stage in before:
        if stage.name == "clip":
            p, n = P[str(stage.norm)], mpf(dim)
            gap = abs((0 if mp.isinf(p) else 1 / p) - (0 if mp.isinf(q) else 1 / q))
            factor *= (1 if p == 2 else 2) * n**gap
    top = high * slope * (factor if stretched else 1) * times
    return (min(low * slope * times, top) if seen else mpf(0)), top


def _rate(noise: Stage, q: mpf, n: int, bounded: bool) -> Ends:
    """Per unit of lq between two values: n^max(0, 1/p − 1/q) over the scale for noise in the norm lp."""
    p = {"laplace": mpf(1), "radial": P.get(str(getattr(noise, "norm", "l1")))}.get(noise.name)
    if p is not None:
        gap = (0 if mp.isinf(p) else 1 / p) - (0 if mp.isinf(q) else 1 / q)
        found = mpf(n) ** max(mpf(0), gap) / noise.scale  # type: ignore[operator]
        return found, found
    if noise.name == "mahalanobis":  # all of it along the first axis; in linf along a diagonal
        eigen = [noise.least + (noise.largest - noise.least) * i / max(1, n - 1) for i in range(n)]  # type: ignore[operator]
        found = mp.sqrt(mp.fsum(1 / e for e in eigen) if mp.isinf(q) else 1 / eigen[0]) / noise.scale
        return found, found
    # A little apart is apart: values that are not whole numbers apart, the next step, an output beyond the bound.
    if noise.name in (
        "gaussian",
        "onesided",
        "discrete_laplace",
        "discrete_gaussian",
        "truncated_laplace",
        "staircase",
    ):
        return INF, INF
    if noise.name == "bounded_laplace":  # ln of the density changes by 1/b, and ln C(x) by 1/b at a limit
        found = 2 * mpf(n) ** (0 if q == 1 else 1 if mp.isinf(q) else mpf(1) / 2) / noise.scale  # type: ignore[operator]
        return (mpf(0) if bounded else found), found
    if noise.name in CHOICES and n > 1:  # one score far behind rises, the one that counts falls
        rate = noise.rate if noise.name == "exponential" else 1 / noise.scale  # type: ignore[operator]
        found = rate * (1 if q == 1 else mp.sqrt(2) if q == 2 else 2)  # type: ignore[operator]
        return (mpf(0) if bounded else found), found
    return mpf(0), INF


def _direction_rate(noise: Stage, parts: Sequence[Stage], metric: str, dim: int, times: int) -> Ends:
    """Between unit vectors: κ per unit of l2 or per radian, the greater one far out where the other is all there is."""
    before, after = parts[: parts.index(noise)], parts[parts.index(noise) + 1 :]
    if [stage.name for stage in before] not in ([], ["normalise"]) or dim < 2 or metric == "mahalanobis":
        raise Unreadable("directions of unit vectors")
    kappa: mpf = noise.kappa  # type: ignore[assignment]
    if metric == "angle":
        found = kappa
    elif before:  # vectors next to 0 may point anywhere
        found = INF
    else:  # an angle is at most π/2 times the chord; the chord at most its l1 norm, or √n times its largest coordinate
        found = kappa * (1 if noise.name == "vmf" else mp.pi / 2) * (mp.sqrt(dim) if metric == "linf" else 1)
    seen = all(stage.name in ("decode", "encode") for stage in after)
    return (found * times if seen else mpf(0)), found * times
