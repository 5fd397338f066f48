"""Sampled records, repeated steps, users, groups and several words: from one step and one record to all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from mpmath import mp, mpf

from oracle.losses import INF, NOTHING_KNOWN, Ends, Truth, gaussian_pair, pure_delta
from oracle.text import Stage, Unreadable
from oracle.values import ADDITIVE, NOISES, walk, whole
from oracles import many_bits_delta, normal_cdf

SAMPLING = ("poisson", "subsample", "shuffle")
SCALED = {"laplace": "scale", "radial": "scale", "gaussian": "sigma", "mahalanobis": "scale"}
Plain = Callable[..., Truth]


def relation(neighbours: str) -> tuple[str, int]:
    """The basic relation, and how many times over; a user or an entity is one record."""
    name, _, count = neighbours.rstrip(")").partition("(")
    if name in ("user", "entity", "group"):
        name = "add-remove-record"
    return {"words": "word", "tokens": "word"}.get(name, name), int(count or 1)


def steps_truth(all_stages: Sequence[Stage], dim: int, neighbours: str, plain: Plain) -> Truth:
    """What is true of a pipeline whose records may be sampled, that may be repeated, of whatever neighbours."""
    basic, count = relation(neighbours)
    stages, times = list(all_stages), 1
    if stages[-1].name == "times":
        times, stages = whole(stages[-1].steps), stages[:-1]
    first = stages[0].name if stages else ""
    sampling, inner = (stages[0], stages[1:]) if first in SAMPLING else (None, stages)
    if not inner or times < 1 or any(stage.name in (*SAMPLING, "times") for stage in inner):
        raise Unreadable("sampling comes first, and times last")
    if sampling is not None:
        records = ("replace-record", "add-remove-record")
        if count > 1 or basic not in records[: 2 if first == "poisson" else 1]:
            raise Unreadable(f"{first} speaks of one record")
        return _sampled(sampling, inner, dim, basic, times, plain)
    if count > 1 and basic == "add-remove-record":
        one = _group(inner, dim, basic, count, times, plain)
    else:
        one = _repeated(inner, dim, basic, times, lambda *known: plain(*known, count if basic == "word" else 1))
    return one


def _group(inner: Sequence[Stage], dim: int, basic: str, count: int, times: int, plain: Plain) -> Truth:
    """A sum moves n times as far: as if the noise were n times smaller. A query states another distance."""
    if inner[0].name == "query":
        far = Stage("query", {**inner[0].given, "distance": inner[0].distance * count})  # type: ignore[operator]
        return _repeated([far, *inner[1:]], dim, basic, times, plain)
    noises = [i for i, stage in enumerate(inner) if stage.name in NOISES]
    if len(noises) != 1 or inner[noises[0]].name not in SCALED:
        return NOTHING_KNOWN
    noise = inner[noises[0]]
    key = SCALED[noise.name]
    smaller = Stage(noise.name, {**noise.given, key: getattr(noise, key) / count})
    found = _repeated([*inner[: noises[0]], smaller], dim, basic, times, plain)
    return found if noises[0] == len(inner) - 1 else found.forgotten()


def _repeated(inner: Sequence[Stage], dim: int, basic: str, times: int, plain: Plain) -> Truth:
    """T steps on the same input. Of noise that is added to each coordinate they are one step on T copies."""
    if times == 1:
        return plain(inner, dim, basic)
    noise = inner[-1]
    if noise.name in ("laplace", "gaussian", "onesided", "leak") and len([s for s in inner if s.name in NOISES]) == 1:
        return plain([*inner[:-1], Stage("repeat", {"times": mpf(times)}), noise], dim, basic)
    return _independent(plain(inner, dim, basic), times)


def _independent(one: Truth, times: int) -> Truth:
    """Pure ε adds up, for a pair that shows it in each step; from above δ is that of repeated randomized response."""
    low, high = one.pure

    def delta(e: mpf) -> Ends:
        if mp.isinf(high) or high == 0:
            return one.delta(e)[0], mpf(0 if high == 0 else 1)
        keep = 1 / (1 + mp.exp(-high))
        top = many_bits_delta(times, keep, 1 - keep, e) * (1 + mpf(10) ** -30) if times <= 2000 else mpf(1)
        return one.delta(e)[0], min(mpf(1), max(top, one.delta(e)[0]), pure_delta(high * times, e) or mpf(0))

    return Truth((low * times, high * times), delta, lambda order: tuple(times * d for d in one.renyi(order)))  # type: ignore[arg-type, return-value]


# ── Sampling ────────────────────────────────────────────────────────────────────────────────────


def _sampled(sampling: Stage, inner: Sequence[Stage], dim: int, basic: str, times: int, plain: Plain) -> Truth:
    if sampling.name == "shuffle":  # to know in which batch the record is can only help
        batches, known = whole(sampling.batches), _repeated(inner, dim, basic, times, plain)
        if batches == 1 or inner[-1].name != "gaussian" or not (v := walk(inner[:-1], dim)).tight:
            return known if batches == 1 else known.forgotten()
        mu = v.diameter(mpf(2)) / inner[-1].sigma  # type: ignore[operator]
        if mp.isinf(mu) or len([stage for stage in inner if stage.name in NOISES]) > 1:
            return known.forgotten()
        shown = Truth((INF, INF), lambda e: (_largest_output(mu, batches, e), mpf(1)))
        return known.forgotten().at_least(shown)
    poisson = sampling.name == "poisson"
    rate: mpf = sampling.rate if poisson else sampling.m / sampling.n  # type: ignore[assignment, operator]
    if not 0 < rate <= 1:
        raise Unreadable("a sampling rate beyond 1")
    if rate == 1:
        return _repeated(inner, dim, basic, times, plain)
    noises = [stage for stage in inner if stage.name in NOISES]
    if any(noise.name not in ADDITIVE for noise in noises[:1]) or not noises:
        raise Unreadable("records are summed")
    one = plain(inner, dim, "add-remove-record" if poisson else basic)
    if inner[-1].name == "gaussian" and len(noises) == 1:
        v = walk(inner[:-1], dim)
        mu = v.diameter(mpf(2), poisson) / inner[-1].sigma  # type: ignore[operator]
        symmetric = v.kind in ("ball", "sphere", "everything") or (v.kind == "box" and v.low == -v.high)
        # Of batches of a fixed size the others may all have the second vector.
        exact = v.tight and (not poisson or basic == "add-remove-record" or symmetric)
        known = _gaussian_steps(mu, rate, poisson and basic == "replace-record", times, exact)
        return known if poisson or times == 1 else Truth(known.pure, lambda e: (known.delta(e)[0], mpf(1)))
    replaced = poisson and basic == "replace-record"
    pure = one.pure[1]
    most = INF if mp.isinf(pure) else mp.log(1 - rate + rate * mp.exp(pure))
    if replaced and not mp.isinf(pure):
        most -= mp.log(1 - rate + rate * mp.exp(-pure))
    shown = poisson and not replaced and noises == [inner[-1]] and noises[0].name == "laplace"
    low = most if shown and one.pure[0] == one.pure[1] else mpf(0)  # far out, where the record's vector moves the sum
    known = Truth((low, most), lambda e: (mpf(0), pure_delta(most, e)))
    if not replaced:
        known = known.at_most(one.behind_dropout(1 - rate))
    return known if times == 1 else _independent(known, times)


def _gaussian_steps(mu: mpf, rate: mpf, replaced: bool, times: int, exact: bool) -> Truth:
    """The sampled Gaussian mechanism: one step by the likelihood ratio's threshold; several by moments from above."""
    if mu == 0:
        return gaussian_pair(mpf(0))
    if mp.isinf(mu):
        return NOTHING_KNOWN

    def delta(e: mpf) -> Ends:
        one = max(_both(mu, rate, e), mpf(0)) if replaced else max(_inside(mu, rate, e), _outside(mu, rate, e), mpf(0))
        low = one * (1 - mpf(10) ** -25) if exact else mpf(0)
        if times > 1 and exact and not replaced:
            low = max(low, _accounted(float(mu), float(rate), times, float(e)))
        if times == 1:
            return low, one * (1 + mpf(10) ** -25) + mpf(10) ** -45
        return low, max(low, mpf(1) if replaced else _by_moments(mu, rate, times, e))

    return Truth((INF if exact else mpf(0), INF), delta)


def _largest_output(mu: mpf, batches: int, e: mpf) -> mpf:
    """Whether the largest of all batches' outputs exceeds a threshold, for the best of many thresholds."""

    def gain(t: mpf) -> mpf:
        stays, moved = normal_cdf(t), normal_cdf(t - mu)
        return 1 - stays ** (batches - 1) * moved - mp.exp(e) * (1 - stays**batches)

    best = max((mpf(k) / 20 for k in range(-160, 20 * (int(mu) + 60))), key=gain)
    step = mpf(1) / 20
    for _ in range(60):
        step /= 2
        best = max((best - step, best, best + step), key=gain)
    return max(mpf(0), gain(best))


def _inside(mu: mpf, q: mpf, e: mpf) -> mpf:
    """(1 − q)N(0, 1) + qN(μ, 1) against N(0, 1): the ratio exceeds e^ε beyond a threshold."""
    t = (mp.log((mp.exp(e) - 1 + q) / q) + mu**2 / 2) / mu
    return (1 - q) * normal_cdf(-t) + q * normal_cdf(mu - t) - mp.exp(e) * normal_cdf(-t)


def _outside(mu: mpf, q: mpf, e: mpf) -> mpf:
    """N(0, 1) against the mixture: below a threshold."""
    if mp.exp(-e) <= 1 - q:
        return mpf(0)
    t = (mp.log((mp.exp(-e) - 1 + q) / q) + mu**2 / 2) / mu
    return normal_cdf(t) - mp.exp(e) * ((1 - q) * normal_cdf(t) + q * normal_cdf(t - mu))


def _both(mu: mpf, q: mpf, e: mpf) -> mpf:
    """The mixture with N(μ, 1) against that with N(−μ, 1): their ratio rises, the threshold by bisection."""

    def ratio(x: mpf) -> mpf:
        up, down = (q * mp.exp(s * mu * x - mu**2 / 2) for s in (1, -1))
        return mp.log(1 - q + up) - mp.log(1 - q + down) - e

    low, high = mpf(0), (e + mu**2 + 5 - mp.log(q)) / mu + 1
    while ratio(high) < 0:
        high *= 2
    for _ in range(180):
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(middle) < 0 else (low, middle)
    p, other = ((1 - q) * normal_cdf(-low) + q * normal_cdf(s * mu - low) for s in (1, -1))
    return p - mp.exp(e) * other


@lru_cache(maxsize=32)
def _loss_distribution(mu: float, rate: float, times: int) -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    made = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, sampling_prob=rate, value_discretization_interval=1e-3, pessimistic_estimate=False
    )
    return made.self_compose(times)


def _accounted(mu: float, rate: float, times: int, e: float) -> mpf:
    """A lower bound on δ by an accountant of others, inside the range in which it is precise."""
    if not (0.02 < mu < 5 and 1e-3 < rate < 0.99 and times <= 1000 and e < 50):
        return mpf(0)
    found = _loss_distribution(mu, rate, times).get_delta_for_epsilon(e)
    return mpf(found) * mpf("0.999") if found > 1e-7 else mpf(0)


def _by_moments(mu: mpf, q: mpf, times: int, e: mpf) -> mpf:
    """Whole orders: E(P/Q)^α = Σ C(α, k)(1 − q)^(α−k) q^k e^(μ²k(k−1)/2), for both ways (Mironov et al. 2019)."""
    best = mpf(1)
    for order in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64):
        terms = (
            mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp(mu**2 * k * (k - 1) / 2)
            for k in range(order + 1)
        )
        log_moment = times * mp.log(mp.fsum(terms)) - (order - 1) * e
        less = mp.log(mpf(1) / order) + (order - 1) * mp.log(1 - mpf(1) / order)
        best = min(best, mp.exp(log_moment + less))
    return best
