"""Which statements about metric DP, Rényi DP, zCDP and Gaussian DP the oracle knows to be true or false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mpmath import mp, mpf

from oracle.losses import INF, Ends, Truth
from oracle.steps import relation
from oracle.text import Stage, Unreadable
from oracle.values import NOISES, P, walk, whole
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
    found = max(at(low), at(mpf(-46)))
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
    q = mpf(2) if metric == "angle" else P[metric]
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
    if noise.name in ("gaussian", "onesided"):
        return INF, INF
    if noise.name == "exponential" and n > 1:  # one score far behind rises, the one that counts falls
        found = noise.rate * (1 if q == 1 else mp.sqrt(2) if q == 2 else 2)  # type: ignore[operator]
        return (mpf(0) if bounded else found), found
    return mpf(0), INF
