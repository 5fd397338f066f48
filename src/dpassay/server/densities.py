"""Two outputs to look at: the densities of the worst known pair, and the event that distinguishes them.

These are pictures in doubles. No verdict rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay.core.guarantee import Guarantee
from dpassay.core.numbers import middle
from dpassay.exact.pld.loss_masses import step_densities
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss
from dpassay.pipeline.discrete_noise import DiscreteNoise
from dpassay.pipeline.distributions import BitDistribution, Distribution, Gaussian, Laplace, Noise, OneSided, Pmf
from dpassay.pipeline.pair import Array, Block, Pair
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.base import NoiseStage
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.radial import Radial, in_dimension

POINTS, DRAWN, FINE = 12_001, 300, 1 << 14  # points of a curve; points drawn; points of the grid for sums of noises
AROUND = 16  # about this many standard deviations on either side
BARS = 8
Picture = dict[str, Any]


def nothing(why: str) -> Picture:
    """Instead of a picture: one line that explains why there is none.

    >>> nothing("There is no noise.")
    {'kind': 'none', 'note': 'There is no noise.'}
    """
    return {"kind": "none", "note": why}


def rounded(values: Array) -> list[float]:
    """Numbers to draw, to the six digits that a screen can show.

    >>> rounded(np.array([1 / 3]))
    [0.333333]
    """
    return [float(f"{value:.6g}") for value in values.tolist()]


def outputs_of(pipeline: Pipeline, pair: Pair | None, loss: PrivacyLoss | None, guarantee: Guarantee) -> Picture:
    """The two outputs of a pair of neighbors.

    >>> from dpassay.core.guarantee import PureDP
    >>> from dpassay.pipeline.parser import parse
    >>> from dpassay.pipeline.pair import Pair
    >>> shown = outputs_of(parse("query(l1, 1) | laplace(1)"), Pair.of([0.0], [1.0]), None, PureDP("0.5"))
    >>> round(shown["p"], 3), round(shown["q"], 3)  # beyond 1/4: 1 - e^(-1/4)/2 and e^(-3/4)/2
    (0.611, 0.236)
    """
    epsilon = guarantee.claimed if guarantee.parameter == "epsilon" else 0.0
    positions = pipeline.noise_positions
    if not positions:
        return nothing(
            "There is no noise: each input has one output, and two different outputs distinguish the inputs."
        )
    if len(positions) > 1:
        return nothing("There are several noise stages, so the two outputs are not drawn.")
    if loss is not None and loss.components and isinstance(component := loss.components[0][0], SampledLoss):
        return _sampled(component, epsilon)
    if pair is None:
        return nothing("No worst pair of inputs is known for this pipeline, so there are no two outputs to draw.")
    before = pipeline.output_regions()[positions[0]].region
    stage = in_dimension(pipeline.stages[positions[0]], before.dim)
    if isinstance(stage, Additive):
        return _added(stage.noise, pair, epsilon)
    if isinstance(stage, Radial):
        return _radial(stage, pair, epsilon)
    if not isinstance(stage, NoiseStage):
        return nothing("The outputs of this kind of noise are not drawn.")
    try:
        first, second = stage.distribution(pair.first), stage.distribution(pair.second)
    except NotImplementedError:
        return nothing("The outputs of this kind of noise are not drawn.")
    return _finite(first, second, epsilon)


def _added(noise: Noise, pair: Pair, epsilon: float) -> Picture:
    """Noise on coordinates: one coordinate if one differs, otherwise the projection onto the difference."""
    blocks = [block for block in pair.blocks if not block.same]
    if not blocks:
        return nothing("Both inputs of the worst known pair have the same output.")
    differing = sum(block.count for block in blocks)
    distance = middle(pair.distance(2))
    if not 0 < distance < 1e100:
        return nothing("The two inputs can be arbitrarily far apart, too far for one picture.")
    if differing == 1 or not isinstance(noise, Laplace | Gaussian | OneSided):
        return _one_coordinate(noise, max(blocks, key=lambda b: abs(middle(b.gap))), differing, epsilon)
    deviation = _deviation(noise)
    low, high = -AROUND * deviation, distance + AROUND * deviation
    t = np.linspace(low, high, POINTS)
    density = _sum(noise, blocks, distance, high - low)
    words = f"{differing:,} coordinates, projected onto the direction from the first input to the second."
    return _curves(t, density(t), density(t - distance), epsilon, words, projected=differing > 1)


def _deviation(noise: Noise) -> float:
    if isinstance(noise, Gaussian):
        return middle(noise.sigma)
    scale = middle(noise.scale)  # type: ignore[attr-defined]
    return scale * math.sqrt(2) if isinstance(noise, Laplace) else scale


def _sum(noise: Noise, blocks: Sequence[Block], distance: float, width: float) -> Any:
    """The density of Σ uᵢzᵢ, where u is the unit vector from one input to the other, from its Fourier transform."""
    if isinstance(noise, Gaussian):
        return lambda t: np.exp(noise.log_density(t))
    frequencies = np.fft.fftfreq(FINE, 2 * width / FINE) * 2 * np.pi
    log_transform = np.zeros(FINE, dtype=complex)
    scale = middle(noise.scale)  # type: ignore[attr-defined]
    for block in blocks:
        turn = scale * frequencies * middle(block.gap) / distance
        term = -np.log1p(turn**2) if isinstance(noise, Laplace) else -np.log(1 - 1j * turn)
        log_transform += block.count * term
    values = np.fft.fftshift(np.fft.fft(np.exp(log_transform)).real) / (2 * width)
    places = (np.arange(FINE) - FINE // 2) * 2 * width / FINE
    return lambda t: np.maximum(0.0, np.interp(t, places, values))


def _one_coordinate(noise: Noise, block: Block, differing: int, epsilon: float) -> Picture:
    x, y = middle(block.x), middle(block.y)
    if not abs(x) + abs(y) < 1e100:
        return nothing("The two inputs can be arbitrarily far apart, too far for one picture.")
    words = "" if differing == 1 else f"One of the {differing:,} coordinates that differ."
    spread = AROUND * max(noise.deviation or _width(noise), 1e-300)
    if isinstance(noise, DiscreteNoise):
        reach = max(1, min(20, math.ceil(spread / 5)))
        places = np.arange(math.floor(min(x, y)) - reach, math.ceil(max(x, y)) + reach + 1, dtype=float)
        if len(places) <= 60:
            p, q = (np.exp(noise.log_density(places - c)) for c in (x, y))
            return _bars([f"{place:g}" for place in places], p, q, epsilon, words)
    t = np.linspace(min(x, y) - spread, max(x, y) + spread, POINTS)
    with np.errstate(divide="ignore"):
        p, q = (np.exp(noise.log_density(t - c)) for c in (x, y))
    if noise.atom:
        words += f" In addition, the value itself is released with probability {noise.atom:.4g}."
    return _curves(t, p, q, epsilon, words.strip())


def _width(noise: Noise) -> float:
    """The width of a noise: where nine in ten of its values lie."""
    t = np.geomspace(1e-6, 1e12, 400)
    wide = t[noise.survival(t) < 0.05]
    return float(wide[0]) / 2 if len(wide) else 1.0


def _radial(stage: Radial, pair: Pair, epsilon: float) -> Picture:
    scale, apart = middle(stage.scale), middle(stage.distance(pair))
    if not 0 < apart < 1e100:
        return nothing("The two inputs can be arbitrarily far apart, too far for one picture.")
    t = np.linspace(-AROUND * scale, apart + AROUND * scale, POINTS)
    p, q = (np.exp(-np.abs(t - c) / scale) / (2 * scale) for c in (0.0, apart))
    return _curves(t, p, q, epsilon, "The densities along the line through the two inputs, scaled to an area of 1.")


def _sampled(component: SampledLoss, epsilon: float) -> Picture:
    """One step in which a record takes part with some probability."""
    t = np.linspace(-AROUND, middle(component.mu) + AROUND, POINTS)
    words = "One step of the pipeline, in units of sigma."
    return _curves(t, *step_densities(component, t), epsilon, words)


def _finite(first: Distribution, second: Distribution, epsilon: float) -> Picture:
    if isinstance(first, Pmf) and isinstance(second, Pmf):
        p, q = first.probabilities, second.probabilities
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.abs(np.nan_to_num(np.log(p) - np.log(q), nan=0.0))
        order = np.sort(np.argsort(-ratios, kind="stable")[:BARS])
        labels = [f"output {i}" for i in order]
        rest = [1 - float(side[order].sum()) for side in (p, q)]
        left = len(p) - len(order)
        if left:
            labels.append(f"the {left:,} others" if left > 1 else "the other one")
        shown = [np.append(side[order], more) if left else side[order] for side, more in zip((p, q), rest, strict=True)]
        return _bars(labels, shown[0], shown[1], epsilon, "")
    if isinstance(first, BitDistribution) and isinstance(second, BitDistribution):
        pairs, counts = np.unique(np.stack([first.one, second.one], axis=1), axis=0, return_counts=True)
        kept = [(a, b, n) for (a, b), n in zip(pairs.tolist(), counts.tolist(), strict=True) if a != b][: BARS // 2]
        if not kept:
            return nothing("Both inputs of the worst known pair have the same output.")
        labels = [f"bit {bit}" + (f" ({n:,} such bits)" if n > 1 else "") for _, _, n in kept for bit in (1, 0)]
        p, q = (np.array([v for one in kept for v in (one[side], 1 - one[side])]) for side in (0, 1))
        return _bars(labels, p, q, epsilon, "Each bit is shown separately; all bits together reveal more.")
    return nothing("The outputs of this kind of noise are not drawn.")


def _crossing(t: Array, ratio: Array, inside: int, outside: int, least: float) -> float:
    """Where the ratio passes its least value, between a point inside the event and its neighbor outside."""
    if not 0 <= outside < len(t) or not ratio[outside] < least < ratio[inside] < math.inf:
        return float(t[inside])
    share = (ratio[inside] - least) / (ratio[inside] - ratio[outside]) if math.isfinite(ratio[outside]) else 0.0
    return float(t[inside] + share * (t[outside] - t[inside]))


def _area(t: Array, density: Array, low: float, high: float) -> float:
    """The probability of an interval."""
    inside = t[(t > low) & (t < high)]
    places = np.concatenate([[low], inside, [high]])
    return float(np.trapezoid(np.interp(places, t, density), places))


def _curves(t: Array, p: Array, q: Array, epsilon: float, note: str, projected: bool = False) -> Picture:
    if not 0 < p.max() < math.inf or not 0 < q.max() < math.inf:
        return nothing("The two outputs lie too far apart, or too close together, for one picture.")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.log(p) - np.log(q), nan=-np.inf)
    ratio = np.where(p > 1e-9 * p.max(), ratio, -np.inf)
    inside, least, words = _event(ratio, p / p.sum(), epsilon, "values of the projection" if projected else "outputs")
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    runs = [
        [_crossing(t, ratio, a, a - 1, least), _crossing(t, ratio, b - 1, b, least)] for a, b in edges.reshape(-1, 2)
    ]
    first, second = (min(1.0, sum(_area(t, side, *run) for run in runs)) for side in (p, q))
    there = np.flatnonzero((p > 2e-3 * p.max()) | (q > 2e-3 * q.max()))
    drawn = slice(there[0], there[-1] + 1, max(1, (there[-1] - there[0]) // DRAWN))
    runs = [run for run in runs if run[1] >= t[there[0]] and run[0] <= t[there[-1]]]
    return {
        **{"kind": "curves", "x": rounded(t[drawn]), "first": rounded(p[drawn]), "second": rounded(q[drawn])},
        **{"event": runs, "p": first, "q": second, "shaded": words, "note": note},
    }


def _bars(labels: list[str], p: Array, q: Array, epsilon: float, note: str) -> Picture:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.log(p) - np.log(q), nan=-np.inf)
    inside, _, words = _event(ratio, p, epsilon)
    chances = [float(side[inside].sum()) for side in (p, q)]
    return {
        **{"kind": "bars", "labels": labels, "first": rounded(p), "second": rounded(q)},
        **{"event": np.flatnonzero(inside).tolist(), "p": chances[0], "q": chances[1], "shaded": words, "note": note},
    }


def _event(ratio: Array, p: Array, epsilon: float, what: str = "outputs") -> tuple[Any, float, str]:
    """The outputs with more than the claimed loss; if there are none, those with the largest, or any, loss.

    With the least loss of the event.
    """
    least = epsilon * (1 + 1e-9) + 1e-9
    if p[ratio > least].sum() > 1e-6:
        return ratio > least, least, f"{what} that the first input makes more than e^ε times as likely as the second"
    least = float(ratio.max()) - 1e-3
    if p[ratio >= least].sum() > 1e-2:
        words = f"{what} that distinguish the inputs best; none has a loss above the claimed one"
        return ratio >= least, least, words
    words = f"{what} that the first input makes more likely; none, or hardly any, has a loss above the claimed one"
    return ratio > 0, 0.0, words
