"""No bound lies: real inputs, pushed through the real stages, never beat an upper bound and always reach a lower one.

The losses here are computed independently: closed forms, finite sums, and cells of the output line. Merging cells
is post-processing, so a merged loss never exceeds the true one and may be held against an upper bound as it is.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import ndtr

from dpassay.api import check
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ZERO, down, maximum, minimum, number, up
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, OneSided
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline, run
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.exponential import Choose
from dpassay.pipeline.stages.noises.additive import Additive
from tiers import repetitions

EPSILONS = ("0", "0.3", "1", "2.5")
INF = math.inf
# Vectors pass the stages as doubles: what they lose on the way is far below this.
ROUNDING = 1e-11


def tries(reduced: int, full: int) -> settings:
    """A number of pipelines, the same ones in every run."""
    examples = repetitions(reduced, full)
    return settings(max_examples=examples, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


# ── What the profile says ───────────────────────────────────────────────────────────────────────


def lower_pure(profile: PrivacyProfile) -> float:
    return down(profile.lower_pure)


def upper_pure(profile: PrivacyProfile) -> float:
    return up(minimum(INFINITY, *(bound.pure for bound in profile.uppers)))


def lower_delta(profile: PrivacyProfile, epsilon: str) -> float:
    return down(maximum(ZERO, *(c.bound.delta(number(epsilon)) for c in profile.candidates)))


def upper_delta(profile: PrivacyProfile, epsilon: str) -> float:
    return min(1.0, *(up(bound.delta(number(epsilon))) for bound in profile.uppers))


def read(text: str, dim: int, neighbours: str | None = None) -> tuple[Pipeline, PrivacyProfile]:
    """Parse and analyse; what is refused is no example."""
    try:
        pipeline = parse(text, dim)
        return pipeline, analyse(pipeline, Neighbours(neighbours) if neighbours else pipeline.neighbours)
    except InputError:
        assume(False)
        raise


# ── Losses, independently ───────────────────────────────────────────────────────────────────────


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def pmf_pure(p: np.ndarray, q: np.ndarray) -> float:
    seen = p > 0
    return INF if (q[seen] == 0).any() else max(0.0, float(np.log(p[seen] / q[seen]).max(initial=0.0)))


def laplace_cells(gap: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses of Laplace noise around 0 and around `gap` ≥ 0 scales: both tails, and `count` cells between."""
    edges = np.linspace(0, gap, count + 1)
    between = np.diff(-np.exp(-edges) / 2), np.diff(np.exp(edges - gap) / 2)
    p = np.concatenate([[0.5], between[0], [math.exp(-gap) / 2]])
    q = np.concatenate([[math.exp(-gap) / 2], between[1], [0.5]])
    return p, q


def laplace_delta(gaps: np.ndarray, epsilon: float) -> float:
    """δ of independent Laplace coordinates, from below: the product of merged cells."""
    gaps = np.abs(gaps)[np.abs(gaps) > 0]
    count = {0: 1, 1: 20000, 2: 400, 3: 60, 4: 24, 5: 13}[len(gaps)]
    p, q = np.ones(1), np.ones(1)
    for gap in gaps:
        one, other = laplace_cells(float(gap), count)
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    return hockey_stick(p, q, epsilon)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), in 60 digits."""
    if mu == 0:
        return 0.0
    with mp.workdps(60):
        m, e = mpf(mu), mpf(epsilon)
        return float(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


def one_sided_delta(gaps: np.ndarray, epsilon: float) -> float:
    """P's exponential noise starts at 0, Q's at the gaps: impossible for Q below a gap; else the loss is constant."""
    ahead, behind = np.maximum(gaps, 0).sum(), np.maximum(-gaps, 0).sum()
    return max(0.0, -math.expm1(-ahead), -math.expm1(epsilon - behind))


def losing_loss(noise: Mixture, gaps: np.ndarray, epsilons: list[float]) -> tuple[float, list[float]]:
    """Outcomes of each coordinate: P's atom, Q's atom, one side's density alone, both, lost; and their products."""
    atom, lost = noise.atom, float(noise.lost.mid)
    weight, scale = (float(noise.parts[0][0].mid), float(noise.parts[0][1].scale.mid)) if noise.parts else (0.0, 1.0)
    p, q = np.ones(1), np.ones(1)
    for gap in gaps[gaps != 0]:
        shared = weight * math.exp(-abs(gap) / scale)
        dense = [(weight - shared, 0.0), (shared, weight)] if gap > 0 else [(0.0, weight - shared), (weight, shared)]
        one, other = np.array([(atom, 0.0), (0.0, atom), (lost, lost), *dense]).T
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    deltas = [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in epsilons]
    return max(pmf_pure(p, q), pmf_pure(q, p)), deltas


def bit_pmf(ones: np.ndarray) -> np.ndarray:
    p = np.ones(1)
    for one in ones:
        p = np.multiply.outer(p, [1 - one, one]).ravel()
    return p


def loss_of(stage: object, x: np.ndarray, y: np.ndarray, epsilons: tuple[str, ...]) -> tuple[float, list[float]]:
    """Pure ε and δ at some ε between the outputs of one noise stage, the worse of both ways, never above the truth."""
    floats = [float(e) for e in epsilons]
    if isinstance(stage, Additive):
        noise = stage.noise
        if isinstance(noise, Mixture):
            return losing_loss(noise, y - x, floats)
        gaps = (y - x) / float((noise.sigma if isinstance(noise, Gaussian) else noise.scale).mid)
        if isinstance(noise, Laplace):
            return float(np.abs(gaps).sum()), [laplace_delta(gaps, e) for e in floats]
        if isinstance(noise, Gaussian):
            mu = float(np.linalg.norm(gaps))
            return INF if mu else 0.0, [gaussian_delta(mu, e) for e in floats]
        assert isinstance(noise, OneSided)
        both = [max(one_sided_delta(gaps, e), one_sided_delta(-gaps, e)) for e in floats]
        return INF if gaps.any() else 0.0, both
    if isinstance(stage, Choose):
        weights = [np.exp(float(stage.rate.mid) * (v - v.max())) for v in (x, y)]
        p, q = (w / w.sum() for w in weights)
    elif isinstance(stage, Flip):  # on categories
        k, keep = stage.size, float(stage.keep.mid)
        p, q = (np.where(np.arange(k) == v[0], keep, (1 - keep) / max(1, k - 1)) for v in (x, y))
        p, q = (p, q) if k > 1 else (np.ones(1), np.ones(1))
    else:
        assert isinstance(stage, BitNoise)
        even, odd, zero = (float(v.mid) for v in (stage.even, stage.odd, stage.zero))
        chance = np.where(np.arange(len(x)) % 2 == 0, even, odd)
        p, q = (bit_pmf(np.where(v == 1, chance, zero)) for v in (x, y))
    deltas = [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in floats]
    return max(pmf_pure(p, q), pmf_pure(q, p)), deltas


# ── Pipelines and inputs ────────────────────────────────────────────────────────────────────────

RADII = st.sampled_from(["0.05", "0.2", "0.5", "1", "3", "5"])
NORMS = st.sampled_from(["l1", "l2", "linf"])
BOUNDS = st.one_of(
    st.builds("clip({}, {})".format, NORMS, RADII),
    st.sampled_from(["normalise", "minmax", "squash(tanh)", "squash(sigmoid)", "round"]),
)
ALL_BOUNDS = st.one_of(BOUNDS, BOUNDS, st.sampled_from(["clamp(0, 1)", "clamp(-2, 3)"]))
ADDITIVE = st.builds(
    "{}({})".format, st.sampled_from(["laplace", "gaussian", "onesided"]), st.sampled_from(["0.3", "1", "2.5"])
)
LOSING = st.sampled_from(["onesided(1, 1/4)", "onesided(2.5, 0, 1/2)", "onesided(0.3, 1/4, 1/4)", "leak(0.2)"])
ON_BITS = st.sampled_from(["flip(0.6)", "flip(0.9)", "flip(0.2)", "bits(0.9, 0.3, 0.2)", "bits(0.6, 0.9, 0.4)"])
SOURCES = st.one_of(st.just("encode"), st.builds("query({}, {})".format, NORMS, st.sampled_from(["0.1", "1", "4"])))
ALL_SOURCES = st.one_of(SOURCES, SOURCES, st.just("rows"))


@st.composite
def vector_pipelines(draw: st.DrawFn) -> tuple[str, int]:
    """A source, up to three bounding stages, one noise."""
    dim = draw(st.integers(1, 5))
    stages = [draw(ALL_SOURCES), *draw(st.lists(ALL_BOUNDS, min_size=1, max_size=3))]
    kind = draw(st.sampled_from(["additive", "additive", "additive", "losing", "exponential", "bits"]))
    if kind != "bits" and dim < 3 and draw(st.booleans()):
        stages.insert(draw(st.integers(1, len(stages))), "repeat(2)")
    if kind == "bits":
        dim = min(dim, 2)
        stages += [draw(st.sampled_from(["binary(0, 1)", "binary(1, 1)", "binary(2, 0)"])), draw(ON_BITS)]
    else:
        noises = {"additive": ADDITIVE, "losing": LOSING, "exponential": st.just("exponential(0.5)")}
        stages.append(draw(noises[kind]))
    return " | ".join(stages), dim


@st.composite
def category_pipelines(draw: st.DrawFn) -> tuple[str, int]:
    """Categories, as they are or one-hot."""
    k = draw(st.integers(1, 6))
    if draw(st.integers(0, 3)) == 0:
        return f"category({k}) | bloom(4, {draw(st.integers(1, 4))}) | {draw(ON_BITS)}", 1
    if draw(st.integers(0, 3)) == 0:
        return f"category({k}) | {draw(st.sampled_from(['hash(3) | flip(0.9)', 'leak(0.3)']))}", 1
    if draw(st.booleans()):
        return f"category({k}) | {draw(st.sampled_from(['flip(0.1)', 'flip(0.5)', 'flip(0.9)', 'flip(1)']))}", 1
    noise = draw(st.one_of(ADDITIVE, ON_BITS, st.just("exponential(2)")))
    bound = draw(st.sampled_from(["", "", "clip(l2, 0.5) | ", "minmax | "])) if "(0." not in noise else ""
    return f"category({k}) | onehot({k}) | {bound}{noise}", 1


def directions(dim: int, rng: np.random.Generator) -> np.ndarray:
    """Axes, corners, a half-and-half vector, random ones: where norms differ the most."""
    corners = [np.where(np.arange(dim) < i, 1.0, -1.0) for i in range(dim + 1)]
    spikes = [np.where(np.arange(dim) == 0, 1.0, t) for t in (0.1, 0.5, 0.9, -0.5)]
    return np.array([*np.eye(dim), *-np.eye(dim), *corners, *spikes, *rng.normal(size=(6, dim)), np.zeros(dim)])


def input_pairs(pipeline: Pipeline, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Many pairs of neighbours: any two vectors, or two answers that are as far apart as the query allows."""
    first, dim = pipeline.stages[0], pipeline.dim
    ways = directions(dim, rng)
    if first.name in ("category", "onehot"):
        pairs = [(i, j) for i, j in itertools.product(range(first.size), repeat=2) if i < j] or [(0, 0)]
        return tuple(np.array(side, dtype=float)[:, None] for side in zip(*pairs, strict=True))
    if first.name == "rows":
        bases = np.concatenate([ways * s for s in (0.02, 0.45, 1, 4)])
        pairs = [
            (b, np.where(np.arange(dim) == i, v, b)) for b in bases for i in range(dim) for v in (-300, 0, 0.3, 300)
        ]
        return np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    if first.name == "query":
        power = {"l1": 1, "l2": 2, "linf": INF}[first.norm]
        sizes = np.linalg.norm(ways, ord=power, axis=1, keepdims=True)
        steps = float(first.distance.mid) * (1 - 1e-12) * ways / np.where(sizes == 0, 1, sizes)
        bases = np.concatenate([ways * s for s in (0.02, 0.2, 0.45, 1, 2.45)])
        pairs = [(b - s / 2, b + s / 2) for b in bases for s in steps]
        return np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    values = np.concatenate([ways * s for s in (1e-3, 0.3, 1, 4, 300)])
    i, j = np.triu_indices(len(values), 1)
    return values[i], values[j]


def worst_pairs(x: np.ndarray, y: np.ndarray) -> list[int]:
    """The farthest pairs in each norm, and the pairs whose losses are spread most unevenly."""
    gaps = np.abs(x - y)
    orders = [gaps.sum(axis=1), np.linalg.norm(gaps, axis=1), gaps.max(axis=1), np.maximum(y - x, 0).sum(axis=1)]
    return sorted({int(np.argmax(o)) for o in orders} | {int(i) for i in np.argsort(orders[0])[-2:]})


@tries(25, 120)
@given(st.one_of(vector_pipelines(), vector_pipelines(), vector_pipelines(), category_pipelines()))
def test_no_pair_of_inputs_beats_the_upper_bound(given_pipeline: tuple[str, int]) -> None:
    text, dim = given_pipeline
    pipeline, profile = read(text, dim)
    rng = np.random.default_rng(7)
    position = pipeline.noise_positions[0]
    x, y = (run(pipeline.stages[:position], side, rng) for side in input_pairs(pipeline, rng))
    stage = pipeline.stages[position]
    most = upper_pure(profile)
    if isinstance(stage, Additive) and isinstance(stage.noise, Laplace):
        pure = float(np.abs(x - y).sum(axis=1).max()) / float(stage.noise.scale.mid)
    else:
        few = np.unique(np.round(np.concatenate([x, y], axis=1), 9), axis=0, return_index=True)[1]
        few = few if len(few) < 400 else rng.choice(few, 400, replace=False)
        pure = max(loss_of(stage, x[i], y[i], ())[0] for i in few)
    assert pure <= most * (1 + ROUNDING), (text, dim)
    bounds = [upper_delta(profile, e) for e in EPSILONS]
    for i in worst_pairs(x, y):
        _, deltas = loss_of(stage, x[i], y[i], EPSILONS)
        for delta, bound in zip(deltas, bounds, strict=True):
            assert delta <= bound + ROUNDING, (text, dim, x[i], y[i])


@tries(4, 25)
@given(st.one_of(vector_pipelines(), category_pipelines()))
def test_bounds_are_ordered_and_curves_fall(given_pipeline: tuple[str, int]) -> None:
    text, dim = given_pipeline
    _, profile = read(text, dim)
    assert lower_pure(profile) <= upper_pure(profile)
    lowers, uppers = ([side(profile, e) for e in EPSILONS] for side in (lower_delta, upper_delta))
    assert all(low <= high for low, high in zip(lowers, uppers, strict=True))
    for values in (lowers, uppers):
        # A tie may be broken by the last digit of two different bounds.
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(values)), values
    for delta in ("1e-6", "0.05"):
        found = profile.epsilon(number(delta))
        assert found.a <= found.b
        assert up(found) <= upper_pure(profile)
        if found.b < INF:
            # At the upper end the upper bound on δ has come down to δ.
            assert min(down(c.delta(number(up(found)))) for c in profile.uppers) <= float(delta) * (1 + 1e-9)
        if profile.candidates and 0 < found.a < INF:
            before = number(down(found) * (1 - 1e-6))
            assert up(maximum(*(c.bound.delta(before) for c in profile.candidates))) >= float(delta)


# ── One dimension, whole pipelines: both bounds against the supremum over inputs ────────────────


def cut(values: np.ndarray, scale: float) -> np.ndarray:
    """Edges of cells: fine near the values, at every place where a stage below may jump, and far out."""
    jumps = [k / 4 for k in range(-60, 61)]
    for radius in (0.05, 0.2, 0.5, 1 - 1e-12, 3, 5):
        jumps += [radius, -radius]
        if radius < 1:
            jumps += [math.atanh(radius), -math.atanh(radius), math.log(radius / (1 - radius))]
    near = np.unique(np.round(values[np.abs(values) < 50], 9))
    centres = near if len(near) < 20 else near[:: len(near) // 20 + 1]
    steps = np.linspace(-6, 6, 481 if len(centres) < 8 else 97)
    fine = (centres[:, None] + scale * np.concatenate([steps, [-40, -20, -10, 10, 20, 40]])).ravel()
    if len(near):
        fine = np.concatenate([fine, np.linspace(near[0], near[-1], 400)])
    far = np.unique(values[np.abs(values) >= 50])
    wide = (far[:, None] + scale * np.array([-40, -10, 0, 10, 40])).ravel()
    edges = np.unique(np.concatenate([jumps, near if len(near) < 400 else [], fine, wide]))
    return edges[np.append(True, np.diff(edges) > 1e-9)]


def cell_masses(noise: object, centres: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The mass of each cell, tails included, for noise around each centre: differences of the smaller tail."""
    scale = float((noise.sigma if isinstance(noise, Gaussian) else noise.scale).mid)
    z = (edges[None, :] - centres[:, None]) / scale
    if isinstance(noise, Laplace):
        below = np.where(z < 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)
        above = np.where(z > 0, np.exp(-np.abs(z)) / 2, 1 - np.exp(-np.abs(z)) / 2)
    elif isinstance(noise, Gaussian):
        below, above = ndtr(z), ndtr(-z)
    else:
        below, above = -np.expm1(-np.maximum(z, 0)), np.exp(-np.maximum(z, 0))
    inner = np.where(z[:, 1:] + z[:, :-1] <= 0, np.diff(below, axis=1), -np.diff(above, axis=1))
    return np.maximum(0.0, np.concatenate([below[:, :1], inner, above[:, -1:]], axis=1))


def outputs(pipeline: Pipeline, inputs: np.ndarray) -> np.ndarray:
    """For each input the distribution of the output: cells of each noise, pushed through the real stages.

    Equal outputs are one. A cell stands for all its points, which is exact wherever the stages behind do not jump
    inside it, and all their jumps are edges.
    """
    rng = np.random.default_rng(3)
    values, weights = inputs[:, None], np.eye(len(inputs))
    for stage in pipeline.stages:
        if isinstance(stage, Additive):
            assume(values.shape[1] == 1)
            edges = cut(values[:, 0], float((getattr(stage.noise, "scale", None) or stage.noise.sigma).mid))
            weights = weights @ cell_masses(stage.noise, values[:, 0], edges)
            middles = np.concatenate([[edges[0] - 1], (edges[1:] + edges[:-1]) / 2, [edges[-1] + 1]])
            values = middles[:, None]
        elif isinstance(stage, BitNoise):
            assume(values.shape[1] <= 8)
            strings = np.array(list(itertools.product([0.0, 1.0], repeat=values.shape[1])))
            distribution = np.array([bit_pmf(stage.distribution(v).one) for v in values])
            values, weights = strings, weights @ distribution
        else:
            values = np.asarray(stage.run(values, rng), dtype=float)
        # Scaling to a norm leaves a rounding error in the last digits.
        _, first, where = np.unique(np.round(values, 11) + 0.0, axis=0, return_index=True, return_inverse=True)
        merged = np.zeros((len(weights), len(first)))
        np.add.at(merged.T, where.ravel(), weights.T)
        values, weights = values[first], merged
    return weights


def suprema(pipeline: Pipeline, epsilons: tuple[str, ...]) -> tuple[float, list[float]]:
    """The largest loss over pairs of inputs, extremes among them."""
    first = pipeline.stages[0]
    if first.name == "query":
        half = float(first.distance.mid) / 2
        bases = np.array([0.0, 0.25, 0.5, 1.0, 1.25, 2.5])
        inputs = np.concatenate([bases - half, bases + half])
        pairs = [(i, i + len(bases)) for i in range(len(bases))]
    else:
        inputs = np.array([0.0, 1e-3, -1e-3, 0.3, -0.3, 0.75, -0.75, 1, -1, 3, -3, 5, -5, 300, -300])
        pairs = list(itertools.combinations(range(len(inputs)), 2))
    distributions = outputs(pipeline, inputs)
    both = [*pairs, *((j, i) for i, j in pairs)]
    pure = max(pmf_pure(distributions[i], distributions[j]) for i, j in both)
    return pure, [max(hockey_stick(distributions[i], distributions[j], float(e)) for i, j in both) for e in epsilons]


AFTER = st.one_of(
    BOUNDS, st.sampled_from(["decode", "round", "normalise", "binary(2, 0)", "binary(1, 2)", "squash(sigmoid)"])
)


@st.composite
def line_pipelines(draw: st.DrawFn) -> str:
    """One dimension: bounds, noise, anything behind it, perhaps a second noise, anything behind that."""
    stages = [draw(SOURCES), *draw(st.lists(BOUNDS, max_size=2))]
    if draw(st.integers(0, 9)):  # one in ten has no noise here
        stages.append(draw(ADDITIVE))
    stages += draw(st.lists(AFTER, max_size=2))
    second = draw(st.sampled_from(["", "", "", "additive", "bits"]))
    if second == "additive":
        stages += [draw(ADDITIVE), *draw(st.lists(AFTER, max_size=1))]
    if second == "bits":
        stages += ["binary(1, 1)", draw(ON_BITS), *draw(st.sampled_from([[], [], ["round"], ["minmax"]]))]
    return " | ".join(stages)


@tries(50, 200)
@given(line_pipelines())
def test_on_the_line_the_truth_lies_between_the_bounds(text: str) -> None:
    holds_on_the_line(text)


CLAMPED = [
    "encode | clamp(0, 1) | {}",
    "encode | clamp(-2, 3) | squash(tanh) | {}",
    "encode | squash(tanh) | clamp(0, 1) | {}",
    "encode | clip(l1, 3) | clamp(-1, 5) | {} | round",
    "query(l1, 1) | clamp(-2, 3) | {}",
    "query(l1, 4) | clamp(0, 1) | {}",
    "encode | {} | clamp(0, 1)",
    "encode | clamp(0, 1) | {} | clamp(-2, 3)",
    "encode | {} | clamp(0, 1) | binary(1, 1) | flip(0.9)",
]


@tries(100, 100)
@given(st.sampled_from(CLAMPED), st.sampled_from(["laplace(1)", "gaussian(2.5)", "onesided(2.5)"]))
def test_on_the_line_clamped_values_are_bounded(text: str, noise: str) -> None:
    holds_on_the_line(text.format(noise))


def holds_on_the_line(text: str) -> None:
    pipeline, profile = read(text, 1)
    pure, deltas = suprema(pipeline, EPSILONS)
    noises = [s.noise for s in pipeline.stages if isinstance(s, Additive)]
    gaussian = any(isinstance(noise, Gaussian) for noise in noises)
    # One noise: cells only hide. Several: a first noise that has been cut into cells is nearly the same noise.
    several = 1e-3 if len(pipeline.noise_positions) > 1 else 1e-9
    if pure < 25:  # else masses were differences of doubles
        assert pure <= upper_pure(profile) * (1 + several) + several, text
    for epsilon, delta in zip(EPSILONS, deltas, strict=True):
        assert delta <= upper_delta(profile, epsilon) * (1 + several) + several, (text, epsilon)
    if "decode" in text:
        return  # it stands for any function, so the truth is that of the worst one; the identity runs
    least = lower_pure(profile)
    if least < INF:
        # The loss of a sum of noises is reached ever farther out only; cells end at 40 scales.
        assert least <= pure * (1.1 if len(noises) > 1 else 1 + 1e-9) + 1e-9, (text, least, pure)
    else:
        # Infinite where two inputs can be arbitrarily far apart (here 600), or where Gaussian tails are seen (here to
        # 20 deviations, where a shift of d deviations shows a loss of 20 d).
        assert pure > (1e-3 if gaussian else 25), text
    for epsilon, delta in zip(EPSILONS, deltas, strict=True):
        assert lower_delta(profile, epsilon) <= delta * (1 + 1e-3) + 1e-4, (text, epsilon, delta)


# ── Suprema that are known in closed form ───────────────────────────────────────────────────────


def cube_choice(rate: float, low: float, high: float, k: int) -> float:
    """The exponential mechanism on scores in [low, high]: one output's score high, all others' low, and reversed."""
    up_, down_ = math.exp(rate * high), math.exp(rate * low)
    return rate * (high - low) + math.log((down_ + (k - 1) * up_) / (up_ + (k - 1) * down_))


PURE = [
    ("clip(l2, 3) | laplace(0.5)", 7, 2 * 3 * math.sqrt(7) / 0.5),
    ("clip(l1, 3) | laplace(0.5)", 7, 2 * 3 / 0.5),
    ("clip(linf, 3) | laplace(0.5)", 7, 2 * 3 * 7 / 0.5),
    ("normalise | laplace(2)", 9, 2 * 3 / 2),
    ("normalise | laplace(2)", 1, 2 / 2),
    ("minmax | laplace(2)", 9, 9 / 2),
    ("minmax | laplace(2)", 1, 0.0),
    ("squash(tanh) | laplace(2)", 5, 2 * 5 / 2),
    ("squash(sigmoid) | laplace(2)", 5, 5 / 2),
    ("clip(linf, 1) | squash(tanh) | laplace(1)", 3, 2 * math.tanh(1) * 3),
    ("clip(l2, 5) | clip(l2, 2) | laplace(1)", 4, 2 * 2 * 2),
    ("clip(l2, 2) | clip(linf, 0.5) | laplace(1)", 4, 2 * 0.5 * 4),  # the cube lies inside the ball
    ("clip(l1, 1) | clip(l2, 0.5) | laplace(1)", 4, 2 * 0.5 * 2),  # the l2 ball lies inside the l1 ball
    ("clip(l1, 1) | clip(l2, 5) | laplace(1)", 4, 2),
    ("query(l1, 3) | laplace(2)", 6, 3 / 2),
    ("query(l2, 3) | laplace(2)", 4, 3 * 2 / 2),
    ("query(linf, 3) | laplace(2)", 4, 3 * 4 / 2),
    ("query(l2, 9) | clip(l2, 1) | laplace(1)", 4, 2 * 2),
    ("query(l2, 1) | clip(l2, 9) | laplace(1)", 4, 2),
    ("onehot(5) | laplace(2)", 1, 2 / 2),
    ("onehot(1) | laplace(2)", 1, 0.0),
    ("binary(2, 3) | laplace(4)", 2, 2 * 6 / 4),
    ("category(5) | flip(0.8)", 1, math.log(0.8 * 4 / 0.2)),
    ("category(5) | flip(0.1)", 1, math.log(0.9 / (4 * 0.1))),
    ("category(4) | flip(0.25)", 1, 0.0),
    ("category(2) | flip(1)", 1, INF),
    ("category(2) | flip(0)", 1, INF),
    ("category(1) | flip(0.9)", 1, 0.0),
    ("onehot(6) | flip(0.8)", 1, 2 * math.log(4)),
    ("binary(1, 1) | flip(0.8)", 4, 12 * math.log(4)),
    ("binary(0, 0) | bits(1, 1, 0)", 1, INF),
    ("binary(0, 0) | bits(0.5, 0.5, 0)", 1, INF),
    ("binary(0, 1) | bits(0.6, 0.9, 0.4)", 1, math.log(0.6 / 0.4) + math.log(0.6 / 0.1)),
    ("binary(1, 1) | bits(0.9, 0.3, 0.2)", 2, 3 * math.log(0.8 / 0.1) + 3 * math.log(0.3 / 0.2)),
    ("onehot(2) | bits(0.9, 0.3, 0.2)", 1, math.log(0.8 / 0.1) + math.log(0.3 / 0.2)),
    ("query(linf, 3) | exponential(0.5)", 4, 2 * 0.5 * 3),
    ("query(linf, 3) | exponential(0.5)", 1, 0.0),
    ("squash(tanh) | exponential(0.5)", 4, cube_choice(0.5, -1, 1, 4)),
    ("clip(linf, 2) | exponential(0.5)", 2, cube_choice(0.5, -2, 2, 2)),
    ("clip(l1, 1) | laplace(1) | round", 3, 2),
    ("clip(l1, 1) | laplace(1) | decode", 3, 2),
    ("clip(l1, 1) | laplace(1) | squash(tanh)", 3, 2),
    ("clip(l1, 1) | laplace(1) | laplace(4)", 3, 2 / 4),
    ("clip(l1, 1) | gaussian(1) | laplace(4)", 3, 2 / 4),
    ("encode | laplace(1) | clip(l1, 1) | laplace(4)", 3, 2 / 4),
    ("clip(l2, 1) | gaussian(1)", 3, INF),
    ("clip(l2, 1) | onesided(1)", 3, INF),
    ("encode | laplace(1)", 3, INF),
    ("encode | gaussian(1) | clip(l2, 1)", 3, INF),
    ("encode | exponential(1)", 3, INF),
    ("encode", 3, INF),
    ("clip(l2, 1) | round", 3, INF),
    ("minmax", 1, 0.0),
    ("category(1)", 1, 0.0),
]


@pytest.mark.parametrize(("text", "dim", "truth"), PURE)
def test_pure_loss_in_closed_form(text: str, dim: int, truth: float) -> None:
    _, profile = read(text, dim)
    for bound in (lower_pure(profile), upper_pure(profile)):
        assert bound == pytest.approx(truth, rel=1e-12, abs=0), text
    # The truth was computed in doubles.
    assert lower_pure(profile) <= truth * (1 + 1e-14)
    assert upper_pure(profile) >= truth * (1 - 1e-14)


@pytest.mark.parametrize(
    ("text", "dim", "truth"),
    [
        ("clip(l2, 3) | laplace(0.5)", 4, 3 * 2 / 0.5),
        ("clip(l1, 3) | laplace(0.5)", 4, 3 / 0.5),
        ("normalise | laplace(0.5)", 4, 2 / 0.5),
        ("query(l1, 3) | laplace(0.5)", 4, 3 / 0.5),
    ],
)
def test_a_record_added_moves_half_as_far(text: str, dim: int, truth: float) -> None:
    _, profile = read(text, dim, "add-remove-record")
    assert lower_pure(profile) == pytest.approx(truth, rel=1e-12)
    assert upper_pure(profile) == pytest.approx(truth, rel=1e-12)


GAUSSIAN = [
    ("clip(l2, 3) | gaussian(2)", 5, 2 * 3 / 2),
    ("clip(l1, 3) | gaussian(2)", 5, 2 * 3 / 2),
    ("clip(linf, 3) | gaussian(2)", 4, 2 * 3 * 2 / 2),
    ("minmax | gaussian(2)", 4, 2 / 2),
    ("onehot(3) | gaussian(2)", 1, math.sqrt(2) / 2),
    ("query(l2, 1) | gaussian(2)", 5, 1 / 2),
    ("query(linf, 1) | gaussian(2)", 9, 3 / 2),
    ("query(l2, 1) | gaussian(3) | gaussian(4)", 2, 1 / 5),
]


@pytest.mark.parametrize(("text", "dim", "mu"), GAUSSIAN)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_loss_in_closed_form(text: str, dim: int, mu: float, epsilon: str) -> None:
    _, profile = read(text, dim)
    truth = gaussian_delta(mu, float(epsilon))
    assert lower_delta(profile, epsilon) == pytest.approx(truth, rel=1e-12)
    assert upper_delta(profile, epsilon) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("mu", [0.3, 0.9])
@pytest.mark.parametrize("text", ["clip(l1, 1) | laplace(1)", "clip(l2, 1) | gaussian(1)", "laplace(1)", ""])
def test_word_dropout_in_closed_form(text: str, mu: float) -> None:
    # Worst case: without the word, the text gives what the other text gives. Then P = (1 − μ) P₀ + μ Q.
    before = {"clip(l1, 1) | laplace(1)": 2.0}.get(text, INF)
    _, profile = read(f"dropout({mu}) | encode" + (f" | {text}" if text else ""), 2)
    after = math.log((1 - mu) * math.exp(before) + mu) if before < INF else INF
    assert lower_pure(profile) == pytest.approx(after, rel=1e-12)
    assert upper_pure(profile) == pytest.approx(after, rel=1e-12)
    for epsilon in (0.1, 1.0):
        inner = math.log((math.exp(epsilon) - mu) / (1 - mu))
        truth = {
            "clip(l1, 1) | laplace(1)": max(0.0, -math.expm1((inner - 2) / 2)),
            "clip(l2, 1) | gaussian(1)": gaussian_delta(2, inner),
        }.get(text, 1.0) * (1 - mu)
        assert lower_delta(profile, repr(epsilon)) == pytest.approx(truth, rel=1e-12)
        assert upper_delta(profile, repr(epsilon)) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        # sigmoid(x) > 0, so in one dimension its direction is always 1.
        ("encode | squash(sigmoid) | normalise | laplace(1)", 1),
        ("encode | squash(sigmoid) | normalise | gaussian(1)", 1),
        ("encode | squash(sigmoid) | normalise", 1),
        # A single number spans no range: min-max scaling makes it 0.
        ("query(linf, 1) | exponential(1) | minmax", 3),
        ("category(3) | flip(0.9) | minmax", 1),
        ("clip(l1, 1) | laplace(1) | minmax", 1),
        ("encode | laplace(1) | minmax", 1),
        ("encode | minmax | decode", 1),
        ("encode | minmax | encode | laplace(1)", 1),
        ("category(1) | decode", 1),
        ("category(1) | encode | laplace(1)", 1),
        # sigmoid(x) ≥ 0.37 for |x| ≤ 0.5, all of which is clipped to 0.05.
        ("clip(l1, 0.5) | squash(sigmoid) | clip(l1, 0.05)", 1),
        ("clip(l1, 0.5) | squash(sigmoid) | clip(l1, 0.05) | gaussian(1)", 1),
        # sigmoid(x) < 1 has no whole part, and no sign.
        ("clip(l1, 1) | laplace(1) | squash(sigmoid) | binary(4, 0)", 1),
        ("encode | gaussian(1) | squash(sigmoid) | binary(0, 0)", 1),
        # The first bit of a bit string's encoding is the sign of a bit.
        ("clip(l1, 1) | laplace(1) | binary(2, 2) | binary(0, 0)", 1),
        ("encode | binary(2, 2) | binary(0, 0)", 1),
    ],
)
def test_a_constant_output_loses_nothing(text: str, dim: int) -> None:
    pipeline, profile = read(text, dim)
    inputs = np.random.default_rng(0).normal(size=(200, dim)) * np.geomspace(1e-3, 30, 200)[:, None]
    if pipeline.stages[0].name == "category":
        inputs = np.zeros((200, 1)) if pipeline.stages[0].size == 1 else np.arange(200)[:, None] % 3.0
    if "laplace(1)" not in text.rsplit("|", maxsplit=1)[-1] and "gaussian" not in text.rsplit("|", maxsplit=1)[-1]:
        assert len(np.unique(np.round(pipeline.run(inputs, np.random.default_rng(1)), 9), axis=0)) == 1
    assert lower_pure(profile) == 0
    assert all(lower_delta(profile, e) == 0 for e in EPSILONS)
    assert check(text, epsilon=1, dim=dim).word != "refuted"


@pytest.mark.parametrize("bits", ["bits(0.6, 0.9, 0.4)", "bits(0.9, 0.6, 0.4)", "bits(0.5, 0.9, 0.5)"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bits_that_are_symmetric_at_some_places_only(bits: str, epsilon: str) -> None:
    pipeline, profile = read(f"encode | binary(1, 1) | {bits}", 1)
    stage = pipeline.stages[-1]
    strings = [np.array(s, dtype=float) for s in itertools.product([0, 1], repeat=3)]
    truth = max(loss_of(stage, x, y, (epsilon,))[1][0] for x, y in itertools.combinations(strings, 2))
    assert lower_delta(profile, epsilon) <= truth * (1 + 1e-12)
    assert upper_delta(profile, epsilon) >= truth * (1 - 1e-12)


def test_only_what_behind_noise_is_left_of_its_tails_counts() -> None:
    # Of the output only whether it exceeds ±artanh(1/2) is left, and neither of 5 and −5 lies beyond the other's cut.
    cut_at = math.atanh(0.5)
    truth = math.log(-math.expm1(-(5 - cut_at) - math.log(2))) + math.log(2) + 5 + cut_at
    for noise in ("laplace(1)", "laplace(0.5) | laplace(1)"):
        _, profile = read(f"clip(l1, 5) | {noise} | squash(tanh) | round", 1)
        assert lower_pure(profile) <= truth < 7
    _, profile = read("clip(l1, 5) | gaussian(1) | squash(tanh) | round", 1)
    assert lower_pure(profile) < 100


def test_clipping_in_another_norm_may_part_neighbours() -> None:
    # (0.2, …, 0.2) and the same plus 0.1 in one place, clipped to linf norm 0.2: 9 coordinates shrink by a third.
    _, profile = read("query(l1, 0.1) | clip(l1, 5) | clip(linf, 0.2) | laplace(1)", 10)
    assert upper_pure(profile) >= 9 * 0.2 / 3 - 1e-9
