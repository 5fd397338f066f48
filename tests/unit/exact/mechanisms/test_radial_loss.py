"""Radial noise: the loss is the distance in its norm over the scale; expected values by formula and by quadrature."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad

from dpassay.api import check
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, number, up
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.composition import compose
from dpassay.pipeline.parser import parse
from dpassay.pipeline.stages.bounds.clamp import Clamp

ORD = {"l1": 1, "l2": 2, "linf": np.inf}


def bounds(text: str, dim: int, **more: str) -> tuple[float, float]:
    pipeline = parse(text, dim)
    neighbours = Neighbours(more["neighbours"]) if more else pipeline.neighbours
    pure = analyse(pipeline, neighbours).pure
    return down(pure), up(pure)


@pytest.mark.parametrize(
    ("text", "dim", "epsilon"),
    [
        ("clip(l2, 3) | radial(l2, 2)", 32, 3),  # 2C over the scale
        ("clip(l2, 3) | radial(linf, 2)", 32, 3),
        ("clip(l2, 3) | radial(l1, 2)", 16, 12),  # 2C sqrt(n), as for Laplace noise
        ("clip(linf, 1) | radial(l2, 2)", 9, 3),  # the cube's diagonal
        ("clip(linf, 1) | radial(linf, 4)", 1000, 0.5),
        ("clip(l1, 5) | radial(linf, 2)", 7, 5),
        ("normalise | radial(l2, 4)", 12, 0.5),
        ("minmax | radial(linf, 4)", 12, 0.25),
        ("minmax | radial(l2, 4)", 16, 1),
        ("squash(tanh) | radial(linf, 2)", 5, 1),
        ("squash(tanh) | radial(l2, 2)", 4, 2),
        ("onehot(5) | radial(linf, 2)", 1, 0.5),
        ("onehot(5) | radial(l2, 2)", 1, math.sqrt(2) / 2),
        ("query(l2, 3) | radial(l2, 2)", 9, 1.5),
        ("query(linf, 1) | radial(l2, 2)", 9, 1.5),
        ("rows | clamp(0, 3) | radial(l2, 2)", 9, 1.5),
        ("clip(l2, 3) | radial(l2, 2) | decode", 4, 3),
        ("clip(l2, 3) | radial(l2, 2) | squash(tanh)", 4, 3),
        ("clip(l2, 3) | radial(l2, 2) | round", 4, 3),
        ("clip(l2, 3) | radial(linf, 2) | decode | round", 4, 3),
        ("radial(l2, 1) | clip(l2, 3) | radial(l2, 2)", 4, 3),  # what unbounded inputs make of the first noise is none
        ("dropout(0.5) | encode | clip(l2, 3) | radial(l2, 2)", 4, math.log(0.5 * math.exp(3) + 0.5)),
    ],
)
def test_pure_epsilon(text: str, dim: int, epsilon: float) -> None:
    low, high = bounds(text, dim)
    assert low <= epsilon * (1 + 1e-14)
    assert high >= epsilon * (1 - 1e-14)
    assert low == pytest.approx(epsilon, rel=1e-12)
    assert high == pytest.approx(epsilon, rel=1e-12)


def test_a_record_against_none() -> None:
    assert bounds("clip(l2, 3) | radial(l2, 2)", 4, neighbours="add-remove-record") == (1.5, 1.5)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("clip(l2, 3) | radial(l2, 2) | clip(l2, 1)", 3),
        ("clip(l2, 3) | radial(l2, 2) | normalise", 3),
        ("clip(l2, 3) | radial(l2, 2) | clamp(0, 1)", 3),
        ("clip(l2, 3) | radial(l2, 2) | minmax", 3),
        ("clip(l2, 3) | radial(l2, 2) | squash(tanh) | round", 3),
        ("clip(l2, 3) | radial(l2, 2) | binary(1, 1)", 3),
        ("clip(l2, 3) | radial(l2, 2) | round | clip(l2, 1)", 3),
        ("clip(l2, 3) | radial(l2, 2) | laplace(1)", 3),  # each noise bounds the sum
        ("clip(l2, 3) | laplace(1) | radial(l2, 2)", 12),  # only the first noise sees a bounded vector
    ],
)
def test_nothing_is_assumed_to_survive_other_stages(text: str, most: float) -> None:
    low, high = bounds(text, 4)
    assert low == 0
    assert high == pytest.approx(most, rel=1e-12)


def test_far_out_events_are_not_bounded_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    # Events that are far out in every coordinate survive a clamp, which is enough for Laplace noise, but not here.
    monkeypatch.setattr(Clamp, "keeps", "tails")
    assert bounds("clip(l2, 3) | radial(l2, 2) | clamp(0, 1)", 4)[0] == 0


def test_an_outer_bound_is_not_reached() -> None:
    # tanh is a contraction: no two of these are 10 apart in l2, though the box around them is almost 16 wide.
    low, high = bounds("clip(l2, 5) | squash(tanh) | radial(l2, 1)", 64)
    assert 1 < low <= 10
    assert high >= 16 * math.tanh(5 / 8)  # the diagonal pair


@pytest.mark.parametrize("after", ["", " | decode", " | round", " | clip(l2, 1)", " | squash(sigmoid)"])
def test_unbounded_values_are_not_hidden(after: str) -> None:
    assert bounds(f"encode | radial(l2, 2){after}", 3) == (math.inf, math.inf)
    assert check(f"encode | radial(linf, 2){after}", epsilon=5, delta="0.9", dim=3).refuted


def test_behind_a_sigmoid_signs_are_lost() -> None:
    assert bounds("encode | radial(l2, 2) | squash(sigmoid) | clip(l2, 1)", 3) == (0, math.inf)


def loss(t: np.ndarray, x: np.ndarray, y: np.ndarray, norm: str, scale: float) -> np.ndarray:
    lengths = [np.linalg.norm(t - centre, ord=ORD[norm], axis=-1) for centre in (x, y)]
    return (lengths[1] - lengths[0]) / scale


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("clipped", ["l1", "l2", "linf"])
def test_no_pair_of_the_region_loses_more(norm: str, clipped: str) -> None:
    rng = np.random.default_rng(3)
    low, high = bounds(f"clip({clipped}, 2) | radial({norm}, 1.5)", 6)
    pairs = rng.normal(size=(400, 2, 6)) ** 3
    pairs *= 2 / np.linalg.norm(pairs, ord=ORD[clipped], axis=-1, keepdims=True)
    outputs = rng.normal(size=(400, 6)) * 10
    assert loss(outputs, pairs[:, 0], pairs[:, 1], norm, 1.5).max() <= high * (1 + 1e-12)
    # The witness, far out behind the first vector, shows the lower bound.
    pair = check(f"clip({clipped}, 2) | radial({norm}, 1.5)", epsilon=low / 2, dim=6).witness.pair
    x, y = pair.first, pair.second
    assert np.linalg.norm(x, ord=ORD[clipped]) <= 2 * (1 + 1e-12)
    assert loss(x + 1e3 * (x - y), x, y, norm, 1.5) == pytest.approx(low, rel=1e-9)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_rounding_leaves_the_loss_in_far_cells(norm: str) -> None:
    # docs/proofs/radial.md, point 3: the cell around x + s(x − y) shows ‖d‖ − 2M/s, M the cube's diameter.
    x, y, s = np.array([0.3, -0.2]), np.array([-0.4, 0.6]), 60
    k = np.rint(x + s * (x - y))

    def cell(centre: np.ndarray) -> float:
        def density(v: float, u: float) -> float:
            far = np.linalg.norm(k - x, ord=ORD[norm])
            return math.exp(far - np.linalg.norm([u - centre[0], v - centre[1]], ord=ORD[norm]))

        return dblquad(density, k[0] - 0.5, k[0] + 0.5, k[1] - 0.5, k[1] + 0.5)[0]

    apart, diameter = np.linalg.norm(x - y, ord=ORD[norm]), np.linalg.norm([1, 1], ord=ORD[norm])
    shown = math.log(cell(x) / cell(y))
    assert apart - 2 * diameter / s <= shown <= apart + 1e-9


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_delta_is_bounded_from_above(norm: str) -> None:
    # By a sum over a fine grid of the plane, noise of scale 1, two vectors that are 2 apart.
    step = 0.02
    axis = np.arange(-14, 14, step) + step / 2
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    volume = {"l2": math.pi, "linf": 4.0}[norm]
    p, q = (
        np.exp(-np.linalg.norm(grid - np.array([c, 0]), ord=ORD[norm], axis=-1)) / (2 * volume) * step**2
        for c in (1.0, -1.0)
    )
    assert p.sum() == pytest.approx(1, abs=1e-3)
    profile = analyse(parse(f"clip({norm}, 1) | radial({norm}, 1)", 2), Neighbours())
    for epsilon in ("0", "0.5", "1", "1.9"):
        truth = np.maximum(0, p - math.exp(float(epsilon)) * q).sum()
        delta = profile.delta(number(epsilon))
        assert down(delta) == 0
        # Pure to approximate: (e² − e^ε)/(e² + 1).
        assert up(delta) == pytest.approx((math.exp(2) - math.exp(float(epsilon))) / (math.exp(2) + 1), rel=1e-12)
        assert up(delta) > truth


def test_a_guarantee_with_delta_is_proven_or_stays_open() -> None:
    assert check("clip(l2, 1) | radial(l2, 2)", epsilon=1, delta="1e-9", dim=8).proven
    verdict = check("clip(l2, 1) | radial(l2, 2)", epsilon="0.2", delta="1e-9", dim=8)
    assert verdict.word == "open"
    assert Theorem.PURE_TO_APPROXIMATE in verdict.theorems


@pytest.mark.long(every=3)
@pytest.mark.parametrize("claim", [{"epsilon": "0.3"}, {"epsilon": "0.3", "delta": "1e-3"}, {"epsilon": 2}])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("clip(l2, 1) | {}", 3),
        ("query(l1, 1) | {}", 3),
        ("clip(l2, 1) | {} | round", 3),
        ("encode | {}", 2),
        ("clip(l2, 1) | repeat(2) | {}", 3),
    ],
)
def test_l1_is_laplace_noise(text: str, dim: int, claim: dict[str, str]) -> None:
    radial, laplace = (check(text.format(noise), dim=dim, **claim) for noise in ("radial(l1, 2)", "laplace(2)"))
    assert radial.word == laplace.word
    assert radial.epsilon == laplace.epsilon
    if radial.refuted:
        assert radial.witness == laplace.witness
        assert [str(r.mechanism) for r in radial.repairs if "radial" not in str(r.mechanism)] == [
            str(r.mechanism) for r in laplace.repairs if "radial" not in str(r.mechanism)
        ]


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_one_number_gets_laplace_noise(norm: str) -> None:
    for claim in ({"epsilon": "0.3"}, {"epsilon": "0.3", "delta": "1e-3"}):
        radial, laplace = (
            check(f"query(l2, 1) | {noise}", dim=1, **claim) for noise in (f"radial({norm}, 2)", "laplace(2)")
        )
        assert (radial.word, radial.epsilon) == ("refuted", laplace.epsilon)


def test_what_it_cannot_work_on() -> None:
    with pytest.raises(InputError, match="put onehot"):
        parse("category(4) | radial(l2, 1)")
    with pytest.raises(InputError, match="its noise for the whole vector at once"):
        parse("clip(l2, 1) | repeat(3) | radial(l2, 1)", 4)
    with pytest.raises(InputError, match="depends on the dimension"):
        parse("query(l1, 1) | radial(l2, 1)")
    with pytest.raises(InputError, match="l1, l2, linf"):
        parse("clip(l2, 1) | radial(l3, 1)", 4)


def test_the_sentence_names_the_norm_and_the_distance() -> None:
    verdict = check("clip(linf, 1) | radial(l2, 2)", epsilon=1, dim=9)
    assert "Radial noise of scale 2 must hide l2 distances" in verdict.reason
    assert "can be 6 apart" in verdict.reason


def test_composition_adds_up() -> None:
    total = compose("clip(l2, 1) | radial(l2, 2) x 3", dim=8, delta=0)
    assert total.basic.upper == pytest.approx(3, rel=1e-12)
    assert total.exact.upper == pytest.approx(3, rel=1e-12)
