"""What the page draws for a claim: two outputs, the loss, δ(ε), and the balls. The server computes, the browser draws.

These are computed in doubles, except where both ends are marked as certified. No verdict rests on them.
"""

from __future__ import annotations

import math
import time

import numpy as np

from dpassay.core.guarantee import ApproxDP, Guarantee, MetricDP, PureDP
from dpassay.core.interval import Interval
from dpassay.core.numbers import down, middle, number, up
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.loss_masses import FEW, LossMasses, loss_masses
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss
from dpassay.exact.profiles.bounds import DropoutBound, PairBound
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.pair import Array
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Ball
from dpassay.pipeline.stages.bounds.scaling import Clip
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.syntax import NORMS
from dpassay.server.densities import Picture, nothing, outputs_of, rounded

PATIENCE = 0.05  # seconds for certified points of the curve
MOST_PAIRS = 16  # besides the one that is worst for the claim
LEAST = 1e-12  # δ below this is not drawn
COARSE = "Too many losses add up here for a grid of reasonable size to show their sum accurately."


def pictures(pipeline: Pipeline, profile: PrivacyProfile, guarantee: Guarantee, value: Interval) -> dict[str, Picture]:
    """All pictures of a claim, each as data, or as a line that explains why there is none.

    >>> from dpassay.exact.analysis import analyse
    >>> from dpassay.pipeline.parser import parse
    >>> counting = parse("query(l1, 1) | laplace(1)")
    >>> made = pictures(counting, analyse(counting, counting.neighbours), PureDP(1), Interval(1, 1))
    >>> list(made), round(made["loss"]["mean"], 4)  # 1/e
    (['outputs', 'loss', 'curve', 'balls'], 0.3679)
    """
    loss = None if isinstance(guarantee, MetricDP) else profile.dominating_loss(guarantee)
    worst = profile.dominating_pure() if guarantee.exact_delta == 0 else profile.dominating_at(guarantee.value)
    pair = profile.pair if worst is None else worst.pair
    return {
        "outputs": outputs_of(pipeline, pair, loss, guarantee),
        **_of_loss(loss, guarantee, profile, value),
        "balls": _balls(pipeline, guarantee),
    }


def _of_loss(
    loss: PrivacyLoss | None, guarantee: Guarantee, profile: PrivacyProfile, value: Interval
) -> dict[str, Picture]:
    """The two pictures that show the loss of one pair."""
    why, found = _no_loss(loss, guarantee), None
    if not why and loss is not None:
        found = loss_masses(loss)
    if loss is None or found is None:
        return {"loss": nothing(why or COARSE), "curve": nothing(why or COARSE)}
    return {
        "loss": _loss(loss, found, guarantee, profile),
        "curve": _curve(loss, found, guarantee, profile, value),
    }


def _no_loss(loss: PrivacyLoss | None, guarantee: Guarantee) -> str:
    if isinstance(guarantee, MetricDP):
        return "Metric DP is stated per unit of distance; there is no single worst pair whose loss could be drawn."
    if loss is None:
        return "No exact loss of a single pair is known for this pipeline."
    if middle(loss.infinite) >= 1:
        return "The loss is infinite with probability 1: every output reveals the input."
    if not loss.components:
        return "The loss is 0: no output reveals anything about the input."
    return ""


def _loss(loss: PrivacyLoss, found: LossMasses, guarantee: Guarantee, profile: PrivacyProfile) -> Picture:
    """The loss as a random variable, its mean, and its tail beyond the claimed ε."""
    losses, masses = found.losses, found.masses
    infinite, epsilon = found.infinite, _epsilon(guarantee)
    there = np.flatnonzero(masses > 1e-6 * masses.max())
    tail = None if epsilon is None else float(found.tail(np.array([epsilon]))[0])
    mean = loss.mean()
    average = (mean.lower + mean.upper) / 2 if mean.width <= 1e-6 * mean.upper else float(losses @ masses)
    few = len(there) <= FEW
    x, y = (losses[there], masses[there]) if few else found.histogram(200)
    return {
        **{"kind": "stems" if few else "curve", "x": rounded(x), "y": rounded(y)},
        **{"infinite": infinite, "epsilon": epsilon, "delta": guarantee.delta},
        **{"mean": _finite(math.inf if infinite else average), "tail": tail},
        "atoms": bool(found.period) and _has_teeth(y),
        "note": "Before word dropout." if middle(profile.mu) else "",
    }


def _has_teeth(y: Array) -> bool:
    """Whether a histogram has peaks of a single bin."""
    return bool((y[1:-1] > 1.1 * np.maximum(y[:-2], y[2:])).any())


def _epsilon(guarantee: Guarantee) -> float | None:
    """The ε of the claim, if ε and δ state it."""
    return guarantee.epsilon if isinstance(guarantee, PureDP | ApproxDP) else None


def _curve(
    loss: PrivacyLoss, found: LossMasses, guarantee: Guarantee, profile: PrivacyProfile, value: Interval
) -> Picture:
    """δ at every ε for the worst known pair, the tail P(L > ε) that is often mistaken for it, and certified points."""
    most = float(found.losses[found.masses > LEAST].max(initial=0.0))
    ends = [most, _epsilon(guarantee) or 0.0, value.lower if guarantee.parameter == "epsilon" else 0.0]
    top = 1.1 * max(end for end in ends if math.isfinite(end)) or 1.0
    claimed = [] if _epsilon(guarantee) is None else [_epsilon(guarantee)]  # so that both pictures say the same of it
    epsilons = np.unique([*np.linspace(0, top, 141), *claimed])
    pair, tail = _largest(loss, found, profile, epsilons)
    points = _certified(profile, np.linspace(0, top, 23)) if _quick(loss) else []
    return {
        **{"kind": "curve", "x": rounded(epsilons), "pair": rounded(pair)},
        **{"tail": None if middle(profile.mu) else rounded(tail), "points": points, "least": LEAST},
        **{"claimed": [_epsilon(guarantee), guarantee.delta] if _epsilon(guarantee) is not None else None},
        "true": [value.lower, guarantee.delta] if guarantee.delta and math.isfinite(value.lower) else None,
        "note": "δ includes word dropout, so P(loss > ε) is not drawn." if middle(profile.mu) else "",
    }


def _largest(loss: PrivacyLoss, found: LossMasses, profile: PrivacyProfile, epsilons: Array) -> tuple[Array, Array]:
    """The largest δ of the known pairs, and the tail of the pair that has it: which one is worst may change with ε."""
    bounds = [c.bound.bound if isinstance(c.bound, DropoutBound) else c.bound for c in profile.candidates]
    losses = [one for bound in bounds if isinstance(bound, PairBound) for one in bound.losses]
    others = [one for one in dict.fromkeys(losses) if one != loss and one.components and middle(one.infinite) < 1]
    known = [found, *(loss_masses(one) for one in others[:MOST_PAIRS])]
    curves = np.array([one.delta(epsilons, profile.mu) for one in known if one is not None])
    tails = np.array([one.tail(epsilons) for one in known if one is not None])
    worst = np.argmax(curves, axis=0)
    return curves[worst, np.arange(len(epsilons))], tails[worst, np.arange(len(epsilons))]


def _quick(loss: PrivacyLoss) -> bool:
    """Whether δ at an ε takes only milliseconds."""
    component, count = loss.components[0]
    return loss.source == Theorem.HOCKEY_STICK and count == 1 and not isinstance(component, SampledLoss)


def _certified(profile: PrivacyProfile, epsilons: Array) -> list[list[float]]:
    """ε, and both certified ends of δ, at as many points as time allows."""
    found, end = [], time.monotonic() + PATIENCE
    for epsilon in epsilons.tolist():
        delta = profile.delta(number(epsilon))
        found.append([epsilon, max(0.0, down(delta)), min(1.0, up(delta))])
        if time.monotonic() > end:
            break
    return found


def _balls(pipeline: Pipeline, guarantee: Guarantee) -> Picture:
    """Which two points of a ball are farthest apart, in the norm that matters for the noise."""
    noises = [pipeline.stages[i] for i in pipeline.noise_positions]
    stage = noises[0] if len(noises) == 1 else None
    norm = stage.q if isinstance(stage, Radial) else stage.noise.norm if isinstance(stage, Additive) else 0
    if norm not in (1, 2, math.inf):
        return nothing("This noise does not depend on l1, l2 or linf distances, so no ball shows its worst pair.")
    clips = [stage for stage in pipeline.stages if isinstance(stage, Clip)]
    radius = middle(clips[-1].radius) if clips else 1.0
    if not 0 < radius < 1e100:
        return nothing("The clipping norm is too large to draw.")
    own, balls = clips[-1].norm if clips else "", []
    for name, p in NORMS.items():
        pair = Ball(p, number(1), 2).farthest(norm)
        full = Ball(p, number(str(radius)), pipeline.dim)
        balls.append(
            {
                **{"norm": name, "first": pair.first.tolist(), "second": pair.second.tolist(), "own": name == own},
                **{"distance": middle(pair.distance(norm)) * radius, "full": middle(full.diameter(norm))},
            }
        )
    feels = next(name for name, q in NORMS.items() if q == norm)
    note = "" if own else "This pipeline clips nothing; balls of radius 1 are shown."
    return {"kind": "balls", "balls": balls, "radius": radius, "norm": feels, "dim": pipeline.dim, "note": note}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
