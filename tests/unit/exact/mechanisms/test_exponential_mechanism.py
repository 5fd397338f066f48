"""The exponential mechanism against formulas, and against every pair of small sets of scores."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpassay.api import check
from dpassay.audit.inputs.checks import why_not_neighbours
from dpassay.audit.inputs.region_pairs import region_pairs
from dpassay.core.guarantee import RenyiDP
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, number, up
from dpassay.errors import InputError
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify
from dpassay.exact.analysis import analyse
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.parser import parse

ROOT = math.sqrt(2)
QUERIES = [
    ("query(l1, 2)", 1 * 2),
    ("query(l2, 2)", ROOT * 2),
    ("query(linf, 2)", 2 * 2),
    ("query(l1, 2, monotone)", 1 * 2),
    ("query(l2, 2, monotone)", 1 * 2),
    ("query(linf, 2, monotone)", 1 * 2),
]


def profile(text: str, dim: int | None = None) -> PrivacyProfile:
    pipeline = parse(text, dim)
    return analyse(pipeline, pipeline.neighbours)


def softmax(scores: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    weights = np.exp(rate * (scores - scores.max(axis=-1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def hockey_stick(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


# ── Answers to a query ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("query", "spread"), QUERIES)
@pytest.mark.parametrize("dim", [2, 3, 50])
def test_pure_loss_of_queries(query: str, spread: float, dim: int) -> None:
    found = profile(f"{query} | exponential(0.25)", dim).pure
    assert down(found) == pytest.approx(0.25 * spread, rel=1e-14)
    assert up(found) == pytest.approx(0.25 * spread, rel=1e-14)


@pytest.mark.parametrize(("query", "spread"), QUERIES)
@pytest.mark.parametrize("delta", ["1e-6", "0.01", "0.2"])
def test_queries_at_a_delta(query: str, spread: float, delta: str) -> None:
    r = 1.5 * spread
    truth = r + 2 * math.log(1 - math.sqrt(float(delta) * -math.expm1(-r)))
    found = profile(f"{query} | exponential(1.5)", 4).epsilon(number(delta))
    assert up(found) == pytest.approx(truth, rel=1e-12)
    assert 0.985 * truth < down(found) <= truth


@pytest.mark.parametrize(("query", "spread"), QUERIES)
def test_pairs_of_queries_are_neighbours(query: str, spread: float) -> None:
    order = {"l1": 1, "l2": 2, "linf": np.inf}[query[6:].partition(",")[0]]
    for candidate in profile(f"{query} | exponential(1)", 4).candidates:
        d = candidate.pair.first - candidate.pair.second
        assert np.linalg.norm(d, ord=order) <= 2 * (1 + 1e-9)
        assert "monotone" not in query or (d >= -1e-12).all() or (d <= 1e-12).all()
        assert np.ptp(d) == pytest.approx(spread, rel=1e-9)


@pytest.mark.parametrize(("query", "spread"), QUERIES)
def test_random_answers_never_beat_the_bound(query: str, spread: float) -> None:
    rng, found = np.random.default_rng(3), profile(f"{query} | exponential(1)", 3)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[query[6:].partition(",")[0]]
    v = rng.normal(size=(4000, 3)) * rng.exponential(3, size=(4000, 1))
    d = rng.normal(size=v.shape) * rng.choice([0.0, 1.0], size=v.shape)
    if "monotone" in query:
        d = np.abs(d) * rng.choice([-1, 1], size=(4000, 1))
    norms = np.linalg.norm(d, ord=order, axis=1, keepdims=True)
    u = v + 2 * d / np.where(norms == 0, 1, norms)
    p, q = softmax(u, 1), softmax(v, 1)
    assert np.log(p / q).max() <= up(found.pure) * (1 + 1e-12)  # p and q are rounded
    for epsilon in (0.0, 0.7, 1.8):
        best = np.maximum(0, p - math.exp(epsilon) * q).sum(axis=1).max()
        assert best <= up(found.delta(number(epsilon))) * (1 + 1e-12)


def test_one_score_loses_nothing() -> None:
    for query, _ in QUERIES:
        assert up(profile(f"{query} | exponential(3)", 1).pure) == 0


def test_behind_a_bound_the_base_points_are_not_free() -> None:
    # Clipped answers lie in a ball, so twice the largest log-odds there, 2·√2/2, is out of reach with 2 outputs.
    found = profile("query(l2, 1) | clip(l2, 1) | exponential(1)", 2)
    for candidate in found.candidates:
        assert max(np.linalg.norm(candidate.pair.first), np.linalg.norm(candidate.pair.second)) <= 1 + 1e-9
    assert up(found.pure) == pytest.approx(ROOT, rel=1e-14)
    assert down(found.pure) < 0.9
    assert down(profile("query(linf, 1) | clamp(0, 1) | exponential(1)", 5).pure) < 1


# ── Monotone scores ─────────────────────────────────────────────────────────────────────────────


def test_scaling_makes_scores_move_both_ways() -> None:
    # Clipping is no monotone function of a vector: (3, 4) and (3, 9) become (0.6, 0.8) and (0.316, 0.949).
    assert up(profile("query(l2, 1, monotone) | clip(l2, 1) | exponential(1)", 3).pure) == pytest.approx(ROOT)
    assert up(profile("query(l2, 1, monotone) | clamp(0, 9) | exponential(1)", 3).pure) == 1
    # Opposite directions are no neighbours any more.
    free, same = (profile(f"query(l2, 1{word}) | normalise(l2) | laplace(1)", 3) for word in ("", ", monotone"))
    assert down(free.pure) == pytest.approx(2 * math.sqrt(3))
    assert down(same.pure) <= 2 * math.sqrt(3)
    assert not parse("query(l2, 1, monotone) | normalise(l2) | laplace(1)", 3).output_regions()[2].exact
    assert not parse("query(l2, 9, monotone) | clip(l2, 1) | laplace(1)", 3).output_regions()[2].exact


@pytest.mark.parametrize("noise", ["laplace(2)", "gaussian(2)", "onesided(2)", "onesided(2, 0.25)", "leak(0.5)"])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_additive_noise_loses_the_same(noise: str, norm: str) -> None:
    # The pairs that are shown move all coordinates the same way, so they are neighbours in either case.
    free, same = (profile(f"query({norm}, 1{word}) | {noise}", 3) for word in ("", ", monotone"))
    for one, other in ((free.pure, same.pure), (free.delta(number("0.4")), same.delta(number("0.4")))):
        assert (down(one), up(one)) == (down(other), up(other))
    for candidate in same.candidates:
        d = candidate.pair.first - candidate.pair.second
        assert (d >= 0).all() or (d <= 0).all()


def test_the_word_in_texts_and_data() -> None:
    given = parse("query(linf, 1, monotone) | exponential(1)", 3)
    assert str(given) == "query(linf, 1, monotone) | exponential(1)"
    assert parse(str(given), 3) == given
    assert given.stages[0].to_data()["moves"] == "monotone"
    plain = parse("query(linf, 1, any) | exponential(1)", 3)
    assert str(plain) == "query(linf, 1) | exponential(1)"
    assert plain == parse("query(linf, 1) | exponential(1)", 3)
    assert "moves" not in plain.stages[0].to_data()
    with pytest.raises(InputError, match=r"monoton"):
        parse("query(linf, 1, down) | exponential(1)", 3)


def test_audited_pairs_are_monotone() -> None:
    pipeline = parse("query(linf, 1, monotone) | exponential(1)", 4)
    region = pipeline.output_regions()[1].region
    for x, y in region_pairs(region):
        assert (x >= y).all() or (x <= y).all()
    said = why_not_neighbours([0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], Neighbours("query"), pipeline)
    assert "all move the same way" in said
    assert not why_not_neighbours([0.0, 0.0, 0.0, 0.0], [1.0, 0.5, 0.0, 0.0], Neighbours("query"), pipeline)


# ── Bounded scores ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_cube_against_all_scores_of_a_grid(k: int, rate: float) -> None:
    found = profile(f"clamp(0, 1) | exponential({rate})", k)
    pmfs = softmax(np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=k))), rate)
    omega = rate
    largest = omega + math.log((1 + (k - 1) * math.exp(omega)) / (math.exp(omega) + k - 1))
    assert down(found.pure) == pytest.approx(largest, rel=1e-13)
    assert up(found.pure) == pytest.approx(largest, rel=1e-13)
    for epsilon in (0.0, 0.3 * largest, 0.6 * largest, 0.95 * largest):
        best = max(hockey_stick(p, q, epsilon) for p in pmfs for q in pmfs)
        delta = found.delta(number(epsilon))
        assert best <= up(delta) * (1 + 1e-12)
        if epsilon >= 2 * (largest - omega):  # the worst pair is known
            assert down(delta) == pytest.approx(best, rel=1e-12)
            assert up(delta) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("text", ["clip(l2, 1)", "clip(l1, 1)", "normalise(l2)", "squash(tanh)"])
def test_two_outputs_are_exact(text: str) -> None:
    # P(1) depends on the gap of the two scores alone, at most g either way: randomized response that loses g.
    g = 2 * {"clip(l2, 1)": ROOT, "normalise(l2)": ROOT, "clip(l1, 1)": 1, "squash(tanh)": 2}[text]
    found = profile(f"{text} | exponential(2)", 2)
    for epsilon in (0.0, 1.0, 1.7):
        truth = (math.exp(g) - math.exp(epsilon)) / (1 + math.exp(g))
        assert down(found.delta(number(epsilon))) == pytest.approx(truth, rel=1e-12)
        assert up(found.delta(number(epsilon))) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_rows(k: int) -> None:
    found = profile("rows | clamp(1, 3) | exponential(0.7)", k)
    grid = np.array(list(itertools.product([1.0, 2.0, 3.0], repeat=k)))
    neighbours = [(x, y) for x in grid for y in grid if (x != y).sum() == 1]
    losses = [np.log(softmax(x, 0.7) / softmax(y, 0.7)).max() for x, y in neighbours]
    assert down(found.pure) == pytest.approx(max(losses), rel=1e-12)
    assert up(found.pure) == pytest.approx(max(losses), rel=1e-12)
    for epsilon in (0.0, 0.4, 0.9):
        best = max(hockey_stick(softmax(x, 0.7), softmax(y, 0.7), epsilon) for x, y in neighbours)
        assert best <= up(found.delta(number(epsilon))) * (1 + 1e-12)
        assert down(found.delta(number(epsilon))) <= best * (1 + 1e-12)


def test_one_hot_scores_and_repeated_ones() -> None:
    found = profile("onehot(5) | exponential(3)")
    p, q = softmax(np.eye(5)[0], 3), softmax(np.eye(5)[1], 3)
    for epsilon in (0.0, 1.0, 2.9):
        for side in (down, up):
            assert side(found.delta(number(epsilon))) == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-9)
    once, often = (profile(f"clamp(0, 1) | {repeat}exponential(1)", 3) for repeat in ("", "repeat(4) | "))
    assert (down(once.pure), up(once.pure)) == pytest.approx((down(often.pure), up(often.pure)), rel=1e-14)
    assert down(profile("query(l2, 1) | repeat(4) | exponential(1)", 3).pure) == pytest.approx(ROOT)


def test_one_persons_value_moves_min_max_scores_from_end_to_end_only() -> None:
    # Of (1, 1, 0, 0) one person's value does not make (0, 0, 1, 1); of (1, 0, 0, 0) it does make (0, 1, 1, 1).
    found = profile("rows | minmax | exponential(2)", 4)
    p, q = softmax(np.array([1.0, 0, 0, 0]), 2), softmax(np.array([0.0, 1, 1, 1]), 2)
    for epsilon in (0.0, 0.5, 1.0):
        best = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        assert down(found.delta(number(epsilon))) == pytest.approx(best, rel=1e-12)


def test_scores_in_one_persons_bits_show_nothing_that_others_decide() -> None:
    assert profile("rows | binary(1, 1) | exponential(1)", 4).candidates == ()


@pytest.mark.parametrize("stage", ["squash(tanh)", "round"])
def test_monotone_answers_stay_monotone(stage: str) -> None:
    both, one = (profile(f"query(linf, 1{word}) | {stage} | exponential(1)", 3) for word in ("", ", monotone"))
    assert up(both.pure) == pytest.approx(2 * up(one.pure))
    assert down(one.pure) <= up(one.pure)


@pytest.mark.parametrize(("size", "rate"), [(2, 1.0), (5, 2.0), (40, 0.5)])
@pytest.mark.parametrize("order", [1.01, 2.0, 16.0])
def test_renyi_divergence_of_one_hot_scores(size: int, rate: float, order: float) -> None:
    """All pairs of names are alike, so the divergence of one is the truth."""
    p, q = softmax(np.eye(size)[:2], rate)
    truth = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
    text = f"onehot({size}) | exponential({rate})"
    proven = check(text, guarantee=RenyiDP(order, truth * (1 + 1e-9)))
    assert proven.proven
    assert verify(certify(proven)).verdict == "proven"
    assert check(text, guarantee=RenyiDP(order, truth * (1 - 1e-9))).refuted
