"""The verifier's regions against vectors that really go through the stages."""

import numpy as np
import pytest

from dpassay.evidence.verifier import Model, read_step
from dpassay.evidence.verifier.arithmetic.numbers import above, below, iv
from dpassay.evidence.verifier.regions.pairs import PairBlock, lies_in
from dpassay.evidence.verifier.regions.regions import diameter, largest_norm
from forging import claim

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
STAGES = [
    *("clip(l1, 1.5)", "clip(l2, 1)", "clip(linf, 0.7)", "clip(l2, 3)", "clamp(0, 1)", "clamp(-0.5, 2)", "clamp(0, 2)"),
    *("clamp(0.3, 1)", "squash(tanh)", "squash(sigmoid)", "normalise", "minmax", "round", "binary(1, 1)", "repeat(2)"),
]
FIRST = ["encode", "rows", "query(l1, 1)", "query(l2, 1.3)", "query(linf, 0.8)", "query(l2, 1, monotone)", "onehot(4)"]


def through(stage, x):
    """What a stage makes of a vector, from its definition."""
    name, _, rest = stage.partition("(")
    given = rest.rstrip(")").split(", ")
    if name == "clip":
        norm = np.linalg.norm(x, NORMS[given[0]])
        return x * min(1, float(given[1]) / norm) if norm else x
    if name == "normalise":
        return x / np.linalg.norm(x) if x.any() else x
    if name == "clamp":
        return np.clip(x, *map(float, given))
    if name == "squash":
        return np.tanh(x) if given[0] == "tanh" else 1 / (1 + np.exp(-x))
    if name == "minmax":
        return (x - x.min()) / np.ptp(x) if np.ptp(x) else 0 * x
    if name == "binary":
        wholes = np.minimum(np.floor(abs(x) * 2), 3).astype(int)
        return np.stack([x < 0, wholes >> 1, wholes & 1], axis=1).ravel().astype(float)
    return np.repeat(x, 2) if name == "repeat" else np.round(x)


def neighbours(first, rng):
    """Two inputs that the first stage says are neighbours."""
    scale = rng.choice([0.3, 1, 3, 30])
    x, y = rng.normal(size=(2, 4)) * scale
    if first == "rows":
        return x, np.where(np.arange(4) == rng.integers(4), y, x)
    if first == "onehot(4)":
        return np.eye(4)[rng.integers(4)], np.eye(4)[rng.integers(4)]
    if first.startswith("query"):
        norm, size, *monotone = first[6:-1].split(", ")
        gap = abs(y) if monotone else y * (rng.random(4) < rng.choice([0.3, 1]))
        length = np.linalg.norm(gap, NORMS[norm])
        return x, x + gap * (float(size) / length * rng.choice([0.5, 1]) if length else 0)
    return x, y


def cases():
    rng = np.random.default_rng(20)
    for first in FIRST:
        for _ in range(25):
            yield first, tuple(rng.choice(STAGES, size=rng.integers(0, 4)))


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("first", "stages"), list(cases()), ids=lambda value: str(value)[:60])
def test_no_vectors_leave_their_region(first, stages):
    relation = "query" if first.startswith("query") else "replace-record" if first == "rows" else "any"
    dim = 1 if first == "onehot(4)" else 4
    model = Model(read_step(claim(" | ".join([first, *stages, "decode"]), 1, dim=dim, neighbours=relation)))
    rng = np.random.default_rng(5)
    slack = 1 + 1e-9
    for _ in range(60):
        x, y = neighbours(first, rng)
        for i, stage in enumerate(["identity", *stages]):
            x, y = (x, y) if i == 0 else (through(stage, x), through(stage, y))
            shape = model.reaches[i + 1].shape
            assert len(x) == shape.dim
            assert (x != y).sum() <= shape.most_differing
            for q in (1, 2, np.inf):
                assert np.linalg.norm(x - y, q) <= above(diameter(shape, q)) * slack + 1e-12, (stage, shape.kind, q)
                assert np.linalg.norm(x, q) <= above(largest_norm(shape, q)) * slack, (stage, shape.kind, q)
            if shape.kind == "box":
                assert min(x.min(), y.min()) >= below(shape.low) - 1e-12
                assert max(x.max(), y.max()) <= above(shape.high) + 1e-12
                assert (x != 0).sum() <= shape.ones


CHAINS = [
    *(
        "clamp(0, 1) | clamp(0, 2)",
        "clamp(0, 2) | clamp(0, 1)",
        "clamp(-1, 1) | clamp(0.5, 1)",
        "clamp(0, 1) | clamp(1, 2)",
    ),
    *("clip(l2, 1) | clip(l1, 1.2)", "clip(l2, 1) | clip(l1, 1.5) | clip(linf, 0.9)", "clamp(-3, 2) | clip(l2, 1)"),
    *("clip(linf, 1) | clip(l2, 1.2)", "clip(l1, 1) | clip(l2, 2)", "clamp(-2, 3) | clip(linf, 2)"),
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("first", ["encode", "rows"])
def test_what_is_called_exact_is_reached(chain, first):
    """These stages keep a vector of their own region, so what lies in the last one is kept by all."""
    relation = "replace-record" if first == "rows" else "any"
    model = Model(read_step(claim(f"{first} | {chain} | decode", 1, dim=3, neighbours=relation)))
    reach, rng, accepted = model.reaches[-2], np.random.default_rng(6), 0
    for _ in range(300):
        x, y = rng.normal(size=(2, 3)) * rng.choice([0.3, 1]) + rng.choice([0, 0.6])
        y = np.where(np.arange(3) == 1, y, x) if first == "rows" else y
        pair = tuple(PairBlock(iv.mpf(a), iv.mpf(b), 1) for a, b in zip(x, y, strict=True))
        if not reach.exact or lies_in(pair, reach.shape):
            continue
        accepted += 1
        for vector in (x, y):
            left = vector
            for stage in chain.split(" | "):
                left = through(stage, left)
            np.testing.assert_allclose(left, vector, rtol=1e-12, atol=1e-12)
    known = first == "encode" or chain.count("clamp") == 2
    assert reach.exact == known
    assert accepted > 0 or not known or chain == "clamp(0, 1) | clamp(1, 2)"
