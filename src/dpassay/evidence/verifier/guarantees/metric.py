"""Metric DP: the largest loss per unit of distance between the vectors that come in, docs/proofs/metric.md.

From above, stages stretch distances by at most a factor, and the loss of a noise per unit of its own norm is bounded.
From below, the largest loss of a pair is divided by the pair's distance.
"""

from collections.abc import Sequence

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import INF, ONE, ZERO, Number, hull, iv, largest, smallest
from dpassay.evidence.verifier.reading import Guarantee
from dpassay.evidence.verifier.regions.pairs import Pair, along_first_axis, distance
from dpassay.evidence.verifier.regions.regions import DIRECTIONS, NORMS, SINGLE, ParsedStage, power_sum, spread

_NO_VECTORS = ("dropout", "query", "rows", "poisson", "subsample", "shuffle", *SINGLE)


def start_of(stages: Sequence[ParsedStage], stated: Guarantee, neighbours: str, dim: int) -> int:
    """Where the vectors whose distance counts enter: before the first stage, or after the stage that encodes texts."""
    if neighbours != "any":
        raise CertificateError("metric DP is about any two inputs")
    start = next((i for i, stage in enumerate(stages) if stage.name != "encode"), len(stages))
    if start == len(stages) or stages[start].name in _NO_VECTORS:
        raise CertificateError("metric DP is about vectors, and the input is not one")
    if stated.metric == "angle" and (stages[start].name not in ("normalise", *DIRECTIONS) or dim < 2):
        raise CertificateError("an angle is between vectors that are normalized in l2, of at least two dimensions")
    return start


def most_per_unit(stages: Sequence[ParsedStage], start: int, position: int, dim: int, stated: Guarantee) -> Number:
    """An upper bound on the loss per unit of distance; the noise is at a position, with vectors of a dimension."""
    if position >= len(stages):
        raise CertificateError("there is no noise")
    normed = stated.metric == "angle" and stages[start].name == "normalise"
    q, before = NORMS.get(stated.metric, 2.0), stages[start + 1 if normed else start : position]
    factor = ONE
    for stage in before:
        factor *= _stretch(stage, q, dim)
    last, noise = stages[-1], stages[position]
    count = last.wholes["steps"] if last.name == "times" else 1
    if noise.name in DIRECTIONS:
        rate = _direction_rate(noise, stated.metric, dim, before)
    elif stated.metric == "mahalanobis":
        rate = _own_rate(noise, before)
    else:
        rate = _rate(noise, q, dim, before)
    return iv.mpf(rate.b) * factor * count


def _direction_rate(noise: ParsedStage, metric: str, dim: int, before: Sequence[ParsedStage]) -> Number:
    """For unit vectors: a chord is at most its angle, and that at most π/2 chords; docs/proofs/sphere.md, point 4."""
    if before:
        raise CertificateError("distances are between the unit vectors that are the input")
    kappa = noise.numbers["kappa"]
    if metric == "angle":
        return kappa
    if metric not in NORMS:
        raise CertificateError(f"{noise.name} has no {metric} norm")
    return kappa * (ONE if noise.name == "vmf" else iv.pi / 2) * spread(dim, NORMS[metric], 2.0)


def _own_rate(noise: ParsedStage, before: Sequence[ParsedStage]) -> Number:
    """The loss of Mahalanobis noise per unit of its own norm, docs/proofs/radial.md, point 6."""
    if noise.name != "mahalanobis" or before:
        raise CertificateError("the metric is that of Mahalanobis noise on the input vectors")
    return 1 / noise.numbers["scale"]


def _stretch(stage: ParsedStage, q: float, dim: int) -> Number:
    """How many times as far apart in lq as its inputs two outputs of a stage can be."""
    if stage.name == "clamp":
        return ONE
    if stage.name == "squash":
        return ONE / 4 if stage.words["kind"] == "sigmoid" else ONE
    if stage.name == "clip":  # in l2 it increases no distance, in other norms it at most doubles it
        p = NORMS[stage.words["norm"]]
        return (1 if p == 2.0 else 2) * spread(dim, q, p) * spread(dim, p, q)
    raise CertificateError(f"it is not known by how much {stage.name} stretches distances")


def _rate(noise: ParsedStage, q: float, dim: int, before: Sequence[ParsedStage]) -> Number:
    """The largest loss of a noise per unit of lq distance between two values."""
    if noise.name == "laplace":
        return spread(dim, q, 1.0) / noise.numbers["scale"]
    if noise.name == "radial":
        return spread(dim, q, NORMS[noise.words["norm"]]) / noise.numbers["scale"]
    if noise.name == "mahalanobis":
        return spread(dim, q, 2.0) / (noise.numbers["scale"] * iv.sqrt(noise.numbers["least"]))
    if noise.name == "noisymax":  # docs/proofs/noisy-max.md: the rate times the spread of the scores
        return {1.0: ONE, 2.0: iv.sqrt(iv.mpf(2))}.get(q, iv.mpf(2)) / noise.numbers["scale"]
    if noise.name == "bounded_laplace":
        return spread(dim, q, 1.0) * _bounded_rate(noise, before)
    if noise.name == "exponential":
        rise = iv.sqrt(iv.mpf(2)) if q == 2.0 else 1 - _least_chance(noise, dim, before)
        return noise.numbers["rate"] * rise * (1 if q <= 2.0 else 2)
    raise CertificateError(f"nothing bounds the loss of {noise.name or 'no'} noise per unit of distance")


def _bounded_rate(noise: ParsedStage, before: Sequence[ParsedStage]) -> Number:
    """One coordinate of Laplace noise between limits: 1/scale, and as much again at a limit; point 7.

    How fast the chance to stay between the limits changes is largest nearest to one of them.
    """
    low, high, scale = (noise.numbers[key] for key in ("low", "high", "scale"))
    if len(before) != 1 or before[0].name != "clamp":
        return 2 / scale
    first, last = largest([low, before[0].numbers["low"]]), smallest([high, before[0].numbers["high"]])
    if first.a >= last.b:  # all values are moved to one limit
        return ZERO
    rises = []
    for edge in (first - low, high - last):
        if not 0 < edge.a <= edge.b < (high - low).a:
            return 2 / scale
        near, far = iv.exp(-edge / scale), iv.exp((edge - (high - low)) / scale)
        rises.append((near - far) / (2 - near - far))
    return (1 + largest(rises)) / scale


def _least_chance(noise: ParsedStage, dim: int, before: Sequence[ParsedStage]) -> Number:
    """The smallest probability of an output, with scores between limits; from 0 if no limits are known."""
    if len(before) != 1 or before[0].name != "clamp":
        return hull(ZERO, ONE / dim)
    width = before[0].numbers["high"] - before[0].numbers["low"]
    return 1 / (1 + (dim - 1) * iv.exp(noise.numbers["rate"] * width))


def length(pair: Pair, metric: str, noise: ParsedStage | None = None) -> Number:
    """The distance between two input vectors, perhaps in the norm of the noise; an angle is bounded only from above.

    An angle θ of unit vectors at the distance c is 2·asin(c/2), and asin(u) ≤ u/√(1 − u²); none is above π.
    """
    if metric in NORMS:
        return distance(pair, NORMS[metric])
    if metric == "mahalanobis" and noise is not None and noise.name == "mahalanobis" and along_first_axis(pair):
        return distance(pair, 2.0) / iv.sqrt(noise.numbers["least"])
    if metric != "angle":
        raise CertificateError(f"{metric} distances are not computed")
    norms = [power_sum([(getattr(block, side), block.count) for block in pair], 2.0) for side in ("x", "y")]
    if not all(norm.a > 0 for norm in norms):
        raise CertificateError("a vector of length 0 has no angle")
    gaps = [(block.x / norms[0] - block.y / norms[1], block.count) for block in pair]
    half = power_sum(gaps, 2.0) / 2
    if not half.b < 0.8:
        return hull(ZERO, +iv.pi)
    return hull(ZERO, 2 * half / iv.sqrt(1 - half**2))


def least_per_unit(loss: Number, pair: Pair, metric: str, noise: ParsedStage | None) -> Number:
    """The loss of a pair divided by its distance, from below; of vectors that come in right before a noise, if any."""
    far = length(pair, metric, noise)
    if not far.b > 0:
        raise CertificateError("the two vectors are the same")
    return INF if loss.a == INF else iv.mpf(loss.a) / iv.mpf(far.b)
