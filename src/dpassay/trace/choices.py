"""Code that draws one of several things: the exact loss between the probabilities that two inputs give them.

Each thing is drawn once on purpose, to see what comes out then: what comes out of several is one event. Where there are
too many the numbers of what was drawn must be in the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay.core.numbers import INFINITY, ZERO, Number, iv, maximum, number
from dpassay.errors import MechanismError
from dpassay.exact.loss_components import AtomLoss
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.trace.choosing import CHOICE
from dpassay.trace.findings import Finding
from dpassay.trace.losses import PairLoss
from dpassay.trace.outputs import leaves
from dpassay.trace.record import Array, Draw, Run
from dpassay.trace.replay import Tracer, values_of

MOST_THINGS, MOST_DRAWS, PROBES, MOST_APART = 40, 20, 3, 12


@dataclass(frozen=True, eq=False)
class Chosen:
    """What the draws lose: bounds on ε, the loss if it is known, and what is said about it."""

    lower: Number
    upper: Number
    loss: PrivacyLoss | None
    findings: tuple[Finding, ...]
    pipeline: str


def judged_choices(tracer: Tracer, pair: tuple[Any, Any], runs: tuple[Run, Run], guarantee: Any) -> Chosen | None:
    """What draws of one of several lose, where nothing else is drawn; None where it is not seen."""
    draws = [[draw for draw in run.draws if draw.distribution == CHOICE] for run in runs]
    if len(draws[0]) != len(draws[1]) or any(len(own) != len(run.draws) for own, run in zip(draws, runs, strict=True)):
        return None
    if not draws[0] or any(one.place != other.place for one, other in zip(*draws, strict=True)):
        return None
    try:
        if len(draws[0]) == 1 and draws[0][0].values.size == 1:
            return _of_one(tracer, pair, (draws[0][0], draws[1][0]), guarantee)
        return _of_many(tracer, pair, runs, guarantee)
    except MechanismError:
        return None


def _weights(draw: Draw) -> Array:
    """The probabilities, one row for each number that was drawn."""
    p = np.asarray(draw.parameters["p"], dtype=float)
    if p.ndim == 1:
        return np.broadcast_to(p, (draw.values.size, p.size))
    return np.repeat(p.reshape(-1, p.shape[-1]), draw.values.size // max(1, p[..., 0].size), axis=0)


def _slack(draw: Draw, epsilon: Number) -> Number:
    """What rounding can make of a loss: torch's probabilities are of single precision."""
    size = number("2e-5") if draw.source == "torch" else number("1e-12")
    return epsilon if epsilon.a == INFINITY.a else maximum(ZERO, epsilon - size * (1 + epsilon))


def _of_one(tracer: Tracer, pair: Any, draws: tuple[Draw, Draw], guarantee: Any) -> Chosen | None:
    p, q = (_weights(draw)[0] for draw in draws)
    if p.shape != q.shape:
        return None
    there = np.nonzero((p > 0) | (q > 0))[0]
    delta = guarantee.exact_delta
    if len(there) > MOST_THINGS:
        apart = np.argsort(-np.abs(p - q))[:MOST_APART]
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.argsort(-np.nan_to_num(np.abs(np.log(p) - np.log(q)), nan=0.0))[:MOST_APART]
        if not all(_numbers_come_out(tracer, x, draws[0].shape, p.size, (*apart, *far)) for x in pair):
            return None
        groups = [[int(i)] for i in there]
    else:
        found = [_outputs(tracer, x, draws[0].shape, there) for x in pair]
        if found[0] is None or found[1] is None:
            return None
        names: dict[str, list[int]] = {}
        both = [found[0], found[1]]
        for side in (0, 1):
            for i, text in both[side].items():
                names.setdefault(text, []).append(i if side == 0 else -1 - i)
        sums = [(sum(p[i] for i in of if i >= 0), sum(q[-1 - i] for i in of if i < 0)) for of in names.values()]
        p, q = (np.array([one[side] for one in sums]) for side in (0, 1))
        groups = [of if of[0] >= 0 else [-1 - i for i in of] for of in names.values()]
    loss = PairLoss(_atoms(p, q), _atoms(q, p))
    epsilon = loss.epsilon(delta)
    lower = _slack(draws[0], epsilon)
    findings: tuple[Finding, ...] = ()
    if lower.a > guarantee.exact_epsilon.b:
        chosen = there if len(groups) == len(there) else None
        findings = (_too_different(draws[0], p, q, epsilon, str(guarantee), chosen),)
    return Chosen(lower, epsilon, loss.worst(delta), findings, _as_coded([draws]))


def _atoms(p: Array, q: Array) -> PrivacyLoss:
    total = [sum((number(float(v)) for v in one), ZERO) for one in (p, q)]
    first, second = (tuple(number(float(v)) / whole for v in one) for one, whole in zip((p, q), total, strict=True))
    return PrivacyLoss(((AtomLoss.between(first, second), 1),))


def _outputs(tracer: Tracer, x: Any, shape: tuple[int, ...], things: Array) -> dict[int, str] | None:
    """What comes out for each thing that can be drawn; None if it is not always the same."""
    found = {}
    for i in things.tolist():
        run = tracer.run(x, {0: np.full(shape, i)})
        if len(run.draws) != 1 or run.opaque:
            return None
        found[i] = repr(leaves(run.output))
    again = tracer.run(x, {0: np.full(shape, things[0])})
    return found if repr(leaves(again.output)) == found[things[0]] else None


def _numbers_come_out(tracer: Tracer, x: Any, shape: tuple[int, ...], many: int, also: tuple[int, ...]) -> bool:
    """Whether the number of what was drawn is in the output: of the first and the last thing, and of some others."""
    places = None
    for i in np.unique([*np.linspace(0, many - 1, 12).astype(int), *also]).tolist():
        output = leaves(tracer.run(x, {0: np.full(shape, i)}).output)
        here = {at for at, value in enumerate(output) if value == float(i)}
        places = here if places is None else places & here
    return bool(places)


def _too_different(draw: Draw, p: Array, q: Array, epsilon: Number, claimed: str, things: Array | None) -> Finding:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.log(p) - np.log(q))
    at = int(np.nanargmax(np.where((p == 0) & (q == 0), 0.0, ratio)))
    name = f"number {int(things[at])}" if things is not None else "one of the outputs"
    size = "∞" if epsilon.a == INFINITY.a else f"{float(epsilon.a):.6g}"
    said = (
        f"{draw.place} draws one of {len(p):,}: {name} has probability {p[at]:.6g} for one input and {q[at]:.6g} for "
    )
    never = ", which can never give it" if min(p[at], q[at]) == 0 else ""
    text = f"{said}the other{never}: ε = {size} for this pair, where {claimed} is claimed"
    return Finding("loss-too-large", draw.place, text)


def _of_many(tracer: Tracer, pair: Any, runs: tuple[Run, Run], guarantee: Any) -> Chosen | None:
    """Several draws, whose numbers come out one after the other: a sequence that is much likelier for one input."""
    draws = runs[0].draws
    if sum(draw.values.size for draw in draws) > 10_000 or len(draws) > MOST_DRAWS:
        return None
    if not all(_sequence_comes_out(tracer, x, runs[0]) for x in pair):
        return None
    weights = [_weights(run.draws[0])[0] for run in runs]
    if weights[0].shape != weights[1].shape:
        return None
    others = np.argsort(-np.abs(weights[0] - weights[1]))[: 2 * MOST_APART]
    best, finding = ZERO, None
    for one, other in (pair, pair[::-1]):
        total, forced = ZERO, values_of(tracer.run(one))
        worst: tuple[float, Draw, Array, Array] | None = None
        for k in range(len(draws)):
            both = [tracer.run(x, forced) for x in (one, other)]
            if any(len(run.draws) != len(draws) for run in both):
                return None
            p, q = (_weights(run.draws[k]) for run in both)
            if p.shape != q.shape:
                return None
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(p > 0, np.log(p) - np.log(q), -np.inf)
            forced[k] = ratio.argmax(axis=1).reshape(draws[k].shape)
            for row, i in enumerate(ratio.argmax(axis=1).tolist()):
                total += INFINITY if q[row, i] == 0 else iv.log(number(float(p[row, i])) / number(float(q[row, i])))
                if worst is None or ratio[row, i] > worst[0]:
                    worst = (float(ratio[row, i]), both[0].draws[k], p[row], q[row])
        shown = _slack(draws[0], total) if guarantee.exact_delta.b <= 0 else ZERO
        exceeds = shown.a > guarantee.exact_epsilon.b
        if exceeds and not all(_alone_gives(tracer, x, forced, others) for x in pair):
            return None
        if shown.a > best.a and worst is not None:
            best = iv.mpf(shown.a)
            finding = _too_different(worst[1], worst[2], worst[3], best, str(guarantee), np.arange(len(worst[2])))
    exceeds = best.a > guarantee.exact_epsilon.b and finding is not None
    said = _as_coded(list(zip(runs[0].draws, runs[1].draws, strict=True)))
    return Chosen(best, INFINITY, None, (finding,) if exceeds and finding is not None else (), said)


def _alone_gives(tracer: Tracer, x: Any, forced: dict[int, Array], others: Array) -> bool:
    """Whether nothing else gives what this sequence gives, where the first number drawn is another one."""
    own = repr(leaves(tracer.run(x, forced).output))
    for i in others.tolist():
        other = np.array(forced[0])
        if other.flat[0] == i:
            continue
        other.flat[0] = i
        if repr(leaves(tracer.run(x, {**forced, 0: other}).output)) == own:
            return False
    return True


def _as_coded(draws: list[tuple[Draw, Draw]]) -> str:
    """What is drawn, and by how much the probabilities differ between the inputs, draw by draw."""
    parts = []
    for pair in draws:
        p, q = (_weights(draw) for draw in pair)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.nanmax(np.abs(np.log(p) - np.log(q))) if p.shape == q.shape else np.inf
        size = f"a factor of at most e^{most:.6g}" if np.isfinite(most) else "a factor of ∞"
        many = "" if pair[0].values.size == 1 else f"{pair[0].values.size:,} times "
        parts.append(f"{many}one of {p.shape[1]:,}, with probabilities that differ by {size} between 2 inputs")
    return "; ".join(dict.fromkeys(parts))


def _sequence_comes_out(tracer: Tracer, x: Any, run: Run) -> bool:
    """Whether all numbers of what was drawn are in the output in their order, also of the last things."""
    for probe in range(PROBES):
        forced = {}
        for k, draw in enumerate(run.draws):
            rows = _weights(draw)
            count = np.arange(draw.values.size) + 7 * k
            at = {0: count % rows.shape[1], 1: (3 * count + 1) % rows.shape[1], 2: rows.shape[1] - 1 - count % 2}[probe]
            forced[k] = np.clip(at, 0, rows.shape[1] - 1).reshape(draw.shape)
        again = tracer.run(x, forced)
        if len(again.draws) != len(run.draws):
            return False
        drawn = [float(v) for draw in again.draws for v in draw.values.reshape(-1)]
        output = leaves(again.output)
        if not any(output[at : at + len(drawn)] == drawn for at in range(len(output) - len(drawn) + 1)):
            return False
    return True
