"""Code that draws one of several things, once or more often: the exact loss between two inputs' outputs.

The possible draws are enumerated, most likely first, to see which output each gives. Draws with the same output are
one event. Draws that were not run may give any output; the loss allows for the worst case.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpassay.core.interval import bound, grouped
from dpassay.core.numbers import INFINITY, ZERO, Number, down, maximum, number, real
from dpassay.errors import MechanismError
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.trace.findings.doubts import keeps_answers
from dpassay.trace.findings.findings import Finding
from dpassay.trace.laws.coordinatewise import Coordinates, Jointly, coordinates_of, laws_that_differ
from dpassay.trace.laws.jointly import jointly_of
from dpassay.trace.laws.losses import PairLoss, shown_by
from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.laws.outcomes import Outcomes, comes_again, drawn_anew, gone_through, steps_of, weights_of
from dpassay.trace.watch.choosing import CHOICE
from dpassay.trace.watch.record import Array, DrawRecord, RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

MOST_RUNS = 110  # of a trace: some are left to reproduce the finding, and for hostile inputs
MOST_IF_QUICK, SECONDS = 400, 0.8  # runs of each input, if they are quick; the time for them
FEW = 2  # numbers: if there are more, each is examined on its own first
_WHOLE = re.compile(r"(?<=\d)\.0(?![\de])")  # what a whole number has behind it in a description
_WHOLE_NUMBERS = {"integers", "randint", "randrange", "getrandbits", "random_integers", "tomaxint"}
AGAIN, AGAIN_IF_REFUTED = 5, 30  # runs of each input with natural draws, to confirm it


@dataclass(frozen=True, eq=False)
class Chosen:
    """What the draws lose: bounds on ε, the loss if it is known, and its description."""

    lower: Number
    upper: Number
    loss: PrivacyLoss | None
    findings: tuple[Finding, ...]
    pipeline: str
    event: frozenset[str] | None = None  # the outputs, as `described`, that show the most at the claimed (ε, δ)
    more_often: int = 0  # which of the two inputs has the event more often
    outcomes: tuple[Outcomes, Outcomes] | tuple[Coordinates, Coordinates] | None = None


def judged_choices(
    tracer: Tracer, pair: tuple[Any, Any], runs: tuple[RecordedRun, RecordedRun], guarantee: Any
) -> Chosen | None:
    """The loss of draws of one of several things, if nothing else is drawn; None if it cannot be seen."""
    steps = [steps_of(run) for run in runs]
    if not all(steps) or runs[0].draws[0].place != runs[1].draws[0].place:
        return None
    try:
        if not all(drawn_anew(tracer, x) for x in pair):
            return None
        most = max((MOST_RUNS - tracer.runs) // 2, _affordable(tracer, pair[0]))
        if len(steps[0] or ()) > FEW and (apart := _one_by_one(tracer, pair, runs, guarantee, most)) is not None:
            return apart
        found = [outcomes for x in pair if (outcomes := gone_through(tracer, x, most)) is not None]
        if len(found) < 2 or any(keeps_answers(tracer, [x]) for x in pair):
            return None
        both = found[0], found[1]
        chosen = _judged(both, runs, guarantee)
        times = AGAIN_IF_REFUTED if chosen.findings else AGAIN
        return chosen if comes_again(tracer, pair, both, times) else None
    except MechanismError:
        return None


def _affordable(tracer: Tracer, x: Any) -> int:
    """How many runs of each input take about a second."""
    begun = time.process_time()
    tracer.run(x)
    return int(min(MOST_IF_QUICK, SECONDS / max(time.process_time() - begun, 1e-6)))


def _one_by_one(
    tracer: Tracer, pair: tuple[Any, Any], runs: tuple[RecordedRun, RecordedRun], guarantee: Any, most: int
) -> Chosen | None:
    """The loss if each drawn number decides its own part of the output: that of all parts together."""
    found = _as_predicted(tracer, pair, coordinates_of, most) or _as_predicted(tracer, pair, jointly_of, most)
    if found is None or found[0].separator != found[1].separator or any(keeps_answers(tracer, [x]) for x in pair):
        return None
    if (apart := laws_that_differ(*found)) is None:
        return None
    columns = [[[law.get(key, 0.0) for key in {**p, **q}] for law in (p, q)] for p, q in apart]
    both = [
        PrivacyLoss(tuple((AtomLoss.between(_shares(one[at]), _shares(one[1 - at])), 1) for one in columns))
        for at in (0, 1)
    ]
    together, delta, draw = PairLoss(both[0], both[1]), guarantee.exact_delta, runs[0].decisions()[0][1]
    upper = together.epsilon(delta) if columns else ZERO
    lower, findings = _slack(draw, upper), list[Finding]()
    if lower.a > guarantee.exact_epsilon.b:
        size = "∞" if upper.a == INFINITY.a else f"{float(upper.a):.6g}"
        many = "a number decides" if len(columns) == 1 else f"{len(columns)} independent numbers decide"
        many = "what it draws decides" if isinstance(found[0].decided[0], Jointly) else many
        said = f"{draw.place}: {many} parts of the output that differ: ε = {size} for this pair"
        findings.append(Finding("loss-too-large", draw.place, f"{said}, where {guarantee} is claimed"))
    loss = together.worst(delta) if columns else None
    return Chosen(lower, upper, loss, tuple(findings), _as_coded(runs), outcomes=found)


def _as_predicted(
    tracer: Tracer, pair: tuple[Any, Any], look: Callable[[Tracer, Any, int], Coordinates | None], most: int
) -> tuple[Coordinates, Coordinates] | None:
    """What the draws decide, for both inputs; None if a few runs with fresh draws contradict it."""
    found = []
    for x in pair:
        one = look(tracer, x, most)
        if one is None or any(one.difference(tracer.run(x, key=(tracer.seed, 8, k))) for k in range(AGAIN_IF_REFUTED)):
            return None
        found.append(one)
    return found[0], found[1]


def telling_event(p: Array, q: Array, guarantee: Any) -> tuple[Array, int]:
    """Which outcomes show the most at the claimed (ε, δ), and which input has them more often.

    These are the outcomes with p > e^ε·q; if the claim holds, a smaller ε is used.
    """
    claimed = min(float(guarantee.exact_epsilon.b), 700.0)
    best: tuple[float, Array, int] = (-math.inf, p > q, 0)
    for at, (own, other) in enumerate(((p, q), (q, p))):
        for times in (1.0, 0.75, 0.5, 0.25, 0.0):
            event = own > math.exp(times * claimed) * other
            inside, outside = float(own[event].sum()), float(other[event].sum())
            shown = inside - math.exp(claimed) * outside - guarantee.delta
            # What decides between two counts is how far they are apart in units of their spread.
            score = shown / math.sqrt(max(inside + math.exp(2 * claimed) * outside, 1e-300))
            if event.any() and score > best[0]:
                best = (score, event, at)
    return best[1], best[2]


def _judged(found: tuple[Outcomes, Outcomes], runs: tuple[RecordedRun, RecordedRun], guarantee: Any) -> Chosen:
    names = list(dict.fromkeys([*found[0].chances, *found[1].chances]))
    p, q = (np.array([one.chances.get(name, 0.0) for name in names]) for one in found)
    delta, draw = guarantee.exact_delta, runs[0].decisions()[0][1]
    loss = None
    if not (found[0].rest or found[1].rest):
        both = PairLoss(_atoms(p, q), _atoms(q, p))
        epsilon = upper = both.epsilon(delta)
        loss = both.worst(delta)
    else:
        epsilon = maximum(_shown_partly(p, q, found[1].rest, delta), _shown_partly(q, p, found[0].rest, delta))
        upper = INFINITY
    lower = _slack(draw, epsilon)
    findings: tuple[Finding, ...] = ()
    if lower.a > guarantee.exact_epsilon.b:
        findings = (_too_different(found, runs, names, epsilon, str(guarantee)),)
    telling, more_often = telling_event(p, q, guarantee)
    event = frozenset(name for name, inside in zip(names, telling.tolist(), strict=True) if inside)
    return Chosen(lower, upper, loss, findings, _as_coded(runs), event or None, more_often, found)


def _slack(draw: DrawRecord, epsilon: Number) -> Number:
    """The rounding error of a loss: torch's probabilities are in single precision."""
    size = number("2e-5") if draw.source == "torch" else number("1e-11")
    return epsilon if epsilon.a == INFINITY.a else maximum(ZERO, epsilon - size * (1 + epsilon))


def _atoms(p: Array, q: Array) -> PrivacyLoss:
    return PrivacyLoss(((AtomLoss.between(_shares(p), _shares(q)), 1),))


def _shares(chances: Iterable[float]) -> tuple[Number, ...]:
    """Probabilities that add up to 1."""
    values = [number(float(one)) for one in chances]
    whole = sum(values, ZERO)
    return tuple(one / whole for one in values)


def _shown_partly(p: Array, q: Array, rest: float, delta: Number) -> Number:
    """What the observed outcomes show even if all other outcomes of the second input coincide with one of them."""
    best = ZERO
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.nan_to_num(p / q, nan=0.0, posinf=np.inf), kind="stable")
    for least, most in zip(np.cumsum(p[order]).tolist(), np.cumsum(q[order]).tolist(), strict=True):
        best = maximum(best, shown_by(number(least), number(most + rest), delta))
    return real(best.a)


def _too_different(
    found: tuple[Outcomes, Outcomes],
    runs: tuple[RecordedRun, RecordedRun],
    names: list[str],
    epsilon: Number,
    claimed: str,
) -> Finding:
    """A description of the output whose probabilities differ most."""
    draw = runs[0].decisions()[0][1]
    chances = [tuple(one.chances.get(name, 0.0) for one in found) for name in names]
    rest = tuple(one.rest for one in found)  # what was not enumerated may be any of them
    ratios = [max(_ratio(p, q + rest[1]), _ratio(q, p + rest[0])) for p, q in chances]
    at = max(range(len(names)), key=lambda i: (ratios[i], max(chances[i])) if max(chances[i]) > 0 else (-1.0, 0.0))
    paths = [path for path, text in {**found[1].drawn, **found[0].drawn}.items() if text == names[at]]
    p, q = chances[at]
    many = f"one of {weights_of(draw).shape[1]:,}" if draw.distribution == CHOICE else "a number that decides"
    name = "one of the outputs" if len(names[at]) > 60 else f"the output {_in_words(names[at])}"
    if any(len(path) > 1 for path in paths) and draw.distribution == CHOICE:
        many += ", more than once"
    size, has = bound(down(epsilon), -1) if any(rest) else grouped(float(epsilon.a)), "has"
    size = "∞" if epsilon.a == INFINITY.a else size
    if any(rest):
        low, high = (p, q + rest[1]) if _ratio(p, q + rest[1]) >= _ratio(q, p + rest[0]) else (q, p + rest[0])
        shares = (
            f"a probability of at least {bound(low, -1)} for one input and of at most {bound(high, 1)} for the other"
        )
        if _ratio(low, high) < 0.99 * float(epsilon.a):  # it takes several of them to show that much
            name, has, shares = "several outputs together", "have", "probabilities that differ by that much"
    else:
        never = ", which can never give it" if min(p, q) == 0 else ""
        shares = f"probability {p:.6g} for one input and {q:.6g} for the other{never}"
    said = f"{draw.place} draws {many}: {name} {has} {shares}: ε {'≥' if any(rest) else '='} {size} for this pair"
    return Finding("loss-too-large", draw.place, f"{said}, where {claimed} is claimed")


def _in_words(output: str) -> str:
    """An output for a reader: its description does not tell 0 from 0.0."""
    return output if "'" in output else _WHOLE.sub("", output)


def _ratio(p: float, q: float) -> float:
    return math.log(p / q) if p > 0 and q > 0 else math.inf if p > 0 else 0.0


def _as_coded(runs: tuple[RecordedRun, RecordedRun]) -> str:
    """What is drawn, and by how much the probabilities differ between the inputs, draw by draw."""
    parts = []
    made = [[draw for _, draw in run.decisions()] for run in runs]
    for pair in zip(*made, strict=False):
        if any(draw.distribution != CHOICE for draw in pair):
            name = next((_kind(draw) for draw in pair if draw.distribution != CHOICE), "")
            parts.append(f"{name} number that decides what comes out")
            continue
        p, q = (weights_of(draw) for draw in pair)
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.nanmax(np.abs(np.log(p) - np.log(q))) if p.shape == q.shape else np.inf
        many = "" if pair[0].values.size == 1 else f"{pair[0].values.size:,} times "
        if most == 0:  # the draw does not depend on the input, but its effect does
            parts.append(f"{many}one of {p.shape[1]:,}, which decides what comes out")
            continue
        size = f"a factor of at most e^{bound(most, 1)}" if np.isfinite(most) else "a factor of ∞"
        parts.append(f"{many}one of {p.shape[1]:,}, with probabilities that differ by {size} between 2 inputs")
    return "; ".join(dict.fromkeys(parts))


def _kind(draw: DrawRecord) -> str:
    """The distribution of a drawn number that decides, with its article."""
    law = law_of(draw)
    name = "uniform" if law is not None and law.kind == "uniform" else draw.distribution
    return "a whole" if name in _WHOLE_NUMBERS else f"{'an' if name[0] in 'aeio' else 'a'} {name}"
