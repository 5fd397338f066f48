"""From a pipeline to its bounds: values of FACTS, pairs that can occur, theorems put to the test."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ZERO, down, number, up
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.mechanisms.additive_noise import additive_uppers
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import DropoutBound
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.distributions import Laplace, Shifted
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Ball, Box
from oracles import laplace_sum_delta


def profile(text: str, dim: int | None = None, neighbours: str | None = None, **values: object) -> PrivacyProfile:
    pipeline = parse(text, dim, values)
    return analyse(pipeline, Neighbours(neighbours) if neighbours else pipeline.neighbours)


# ── FACTS ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [2, 32, 1024])
def test_adept_loses_the_root_of_n(n: int) -> None:
    found = profile("encode | clip(l2, C) | laplace(2*C/eps) | decode", n, C=3, eps=1)
    assert down(found.pure) <= math.sqrt(n) * (1 + 1e-15)
    assert up(found.pure) >= math.sqrt(n) * (1 - 1e-15)
    assert up(found.pure) - down(found.pure) < 1e-14 * n


def test_the_published_counterexample() -> None:
    # n = 2: ±(2C/3, 2C/3) lies in the ball, and loses 4ε/3.
    assert Ball(2, 1, 2).contains(np.full(2, 2 / 3))
    distributions = [Shifted(Laplace(2), np.full(2, sign * 2 / 3)) for sign in (1, -1)]
    assert float(PrivacyLoss.between(*distributions).pure.mid) == pytest.approx(4 / 3, rel=1e-15)


def test_adept_with_delta() -> None:
    # FACTS §2: the diagonal pair at n = 32 needs ε ≥ 4.40 at δ = 1e-6, and δ ≥ 0.1169 at ε = 1.
    found = profile("clip(l2, 1) | laplace(2)", 32)
    epsilon, delta = found.epsilon(number("1e-6")), found.delta(number(1))
    assert down(epsilon) >= 4.395
    diagonal = next(c for c in found.candidates if c.pair.blocks[0].count == 32)
    with mp.workdps(50):
        truth = float(laplace_sum_delta([(1 / mp.sqrt(32), 32)], 1))
    assert truth > 0.1169
    assert down(diagonal.bound.delta(number(1))) == pytest.approx(truth, rel=1e-4)
    assert down(diagonal.bound.epsilon(number("1e-6"))) == pytest.approx(4.40, abs=5e-3)
    assert down(delta) >= down(diagonal.bound.delta(number(1)))  # less spread pairs can be worse at δ > 0
    assert up(epsilon) < math.sqrt(32)
    assert up(delta) < 1


def test_dpnr() -> None:
    # FACTS §5.
    assert up(profile("encode | minmax | laplace(1/eps)", 768, eps="0.05").pure) == pytest.approx(38.4, rel=1e-15)
    dropped = profile("dropout(0.5) | encode | minmax | laplace(1/eps)", 768, eps="0.05")
    assert down(dropped.pure) == pytest.approx(37.70685, abs=5e-6)
    assert up(dropped.pure) == pytest.approx(math.log(0.5 * math.exp(38.4) + 0.5), rel=1e-14)
    assert isinstance(dropped.uppers[0], DropoutBound)
    # Between any two texts dropout is no help.
    assert up(profile("dropout(0.5) | encode | minmax | laplace(20)", 768, "any").pure) == pytest.approx(38.4)
    # Two dropouts keep a word with probability 0.25.
    twice = profile("dropout(0.5) | dropout(0.5) | encode | minmax | laplace(20)", 768)
    assert up(twice.pure) == pytest.approx(38.4 + math.log(0.25 + 0.75 * math.exp(-38.4)), rel=1e-14)


def test_binary_encodings() -> None:
    # FACTS §6: r = 768, l = 10, ε = 1.
    ome = "encode | binary(4, 5) | bits(L/(1+L), 1/(1+L^3), 1/(1+L*exp(eps/(dim*10))))"
    assert down(profile(ome, 768, L=100, eps=1).pure) == pytest.approx(53013.36, abs=5e-3)
    assert up(profile(ome, 768, L=100, eps=1).pure) == pytest.approx(53013.36, abs=5e-3)
    one = profile(ome, 768, L=1, eps=1)
    s = 1 / 7680
    # At λ = 1: p = 1/2 everywhere and q = 1/(1 + e^s).
    truth = 7680 * max(math.log((1 + math.exp(s)) / 2), math.log((1 + math.exp(-s)) / 2) * -1)
    assert up(one.pure) == pytest.approx(truth, rel=1e-9)
    assert up(one.pure) <= 1
    moue = profile("encode | binary(4, 5) | bits(1/(1+a), 1/(1+a), 1/(1+a*exp(eps/7680)))", 768, a=100, eps=1)
    assert up(moue.pure) == pytest.approx(7680 * math.log((1 + 100 * math.exp(s)) / 101), rel=1e-9)
    symmetric = profile("encode | binary(4, 5) | flip(exp(eps/7680)/(1 + exp(eps/7680)))", 768, eps=1)
    assert up(symmetric.pure) == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize(("epsilon", "delta"), [("8", 7.97e-6), ("10", 2.265e-5)])
def test_the_classic_gaussian_formula(epsilon: str, delta: float) -> None:
    found = profile("query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)", eps=epsilon, delta="1e-5")
    assert down(found.delta(number(epsilon))) == pytest.approx(delta, rel=1e-3)
    assert up(found.delta(number(epsilon))) == pytest.approx(delta, rel=1e-3)


# ── Theorems put to the test ────────────────────────────────────────────────────────────────────


def split_delta(gaps: np.ndarray, epsilon: float) -> float:
    p = q = np.ones(1)
    for gap in gaps[gaps > 0]:
        edges = np.linspace(0, gap, 61)
        one = np.concatenate([[0.5], np.diff(-np.exp(-edges) / 2), [math.exp(-gap) / 2]])
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, one[::-1]).ravel()
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize("budget", [0.5, 2.0, 6.0])
def test_an_l1_budget_is_best_spent_on_one_coordinate(budget: float) -> None:
    rng = np.random.default_rng(2)
    bounds = {e: up(profile("query(l1, 1) | laplace(b)", 3, b=1 / budget).delta(number(e))) for e in (0.0, 0.4, 1.5)}
    for epsilon, weights in itertools.product(bounds, rng.dirichlet([0.5] * 3, size=20)):
        assert split_delta(weights * budget, epsilon) <= bounds[epsilon]
        # The bound is that of one coordinate.
        assert bounds[epsilon] == pytest.approx(max(0.0, -math.expm1((epsilon - budget) / 2)), rel=1e-12)


def test_bounds_meet_where_the_dominating_pair_is_known() -> None:
    for text in (
        "squash(tanh) | laplace(3)",
        "clip(l1, 1) | laplace(1)",
        "minmax | laplace(2)",
        "onehot(4) | laplace(1)",
    ):
        found = profile(text, 4).delta(number("0.5"))
        assert up(found) - down(found) <= 1e-3 * up(found), text


@pytest.mark.long
def test_every_upper_bound_bounds_the_pairs() -> None:
    for text, dim in (("clip(l2, 1) | laplace(1)", 6), ("clip(l2, 1) | clip(linf, 0.5) | laplace(1)", 6)):
        found = profile(text, dim)
        assert len(found.uppers) >= 2
        for candidate, upper in itertools.product(found.candidates, found.uppers):
            for epsilon in ("0", "0.5", "2"):
                assert candidate.bound.delta(number(epsilon)).a <= upper.delta(number(epsilon)).b


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("clip(l2, 1) | laplace(1)", 6),
        ("clip(l2, 1) | clip(linf, 0.3) | laplace(1)", 6),
        ("clip(linf, 3) | clip(l1, 2) | clip(l2, 1) | gaussian(1)", 6),
        ("squash(sigmoid) | clip(l2, 1) | laplace(1)", 6),
        ("minmax | clip(l1, 1) | laplace(1)", 6),
        ("normalise | clip(linf, 0.5) | gaussian(1)", 6),
        ("clip(l2, 2) | squash(tanh) | laplace(1)", 6),
        ("clip(linf, 2.7) | round | laplace(1)", 6),
        ("onehot(4) | normalise | laplace(1)", None),
        ("encode | round | laplace(1) | clip(l2, 1) | laplace(1)", 3),
    ],
)
def test_named_pairs_can_occur(text: str, dim: int | None) -> None:
    pipeline = parse(text, dim)
    found = analyse(pipeline, Neighbours())
    region = pipeline.output_regions()[pipeline.noise_positions[-1]].region
    assert found.candidates
    for candidate in found.candidates:
        assert region.contains(candidate.pair.first)
        assert region.contains(candidate.pair.second)
        scale = float(getattr(pipeline.stages[-1].noise, "scale", number(1)).mid)
        if isinstance(pipeline.stages[-1].noise, Laplace):
            truth = np.abs(candidate.pair.first - candidate.pair.second).sum() / scale
            assert down(candidate.bound.pure) == pytest.approx(truth, rel=1e-12)


# ── Size and shape ──────────────────────────────────────────────────────────────────────────────


def test_large_dimensions() -> None:
    found = profile("clip(l2, 1) | laplace(2)", 10_000_000)
    assert up(found.pure) == pytest.approx(math.sqrt(1e7), rel=1e-14)
    cube = profile("clip(linf, 1) | laplace(1000)", 10_000)
    assert up(cube.pure) == pytest.approx(20, rel=1e-14)
    epsilon = cube.epsilon(number("1e-6"))
    # The mean loss is 10⁴·(a − 1 + e^−a) = 0.02, its deviation 0.2: ε lies above, and far below the pure loss.
    assert 0.2 < down(epsilon) <= up(epsilon) < 2


def test_unbounded_and_silent() -> None:
    loud = profile("encode | laplace(1)", 3)
    assert loud.pure.a == INFINITY
    assert loud.theorems == (Theorem.UNBOUNDED,)
    assert profile("encode", 3).theorems == (Theorem.NO_NOISE,)
    assert profile("minmax", 1).pure == 0


def test_uppers_of_a_region_alone() -> None:
    bounds = additive_uppers(Laplace(2), Ball(2, 1, 32))
    assert min(up(bound.pure) for bound in bounds) == pytest.approx(math.sqrt(32))
    assert min(up(bound.delta(number(1))) for bound in additive_uppers(Laplace(2), Box.cube(0, 1, 1))) == 0


# ── Clamped, repeated, lost ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [1, 32])
@pytest.mark.parametrize(("zero", "lost"), [("0", "0"), ("1/2", "0"), ("0", "1/2"), ("1/4", "1/8")])
def test_dptext_in_every_dimension(n: int, zero: str, lost: str) -> None:
    # docs/proofs/mixture.md, point 6: 1 − (w_l + w e^(−1/b))^n at every ε, with b = n.
    found = profile(f"encode | clamp(0, 1) | onesided(dim, {zero}, {lost}) | decode", n)
    none, nothing = (float(mp.mpf(1) / int(v[-1]) if "/" in v else 0) for v in (zero, lost))
    truth = 1 - (nothing + (1 - none - nothing) * math.exp(-1 / n)) ** n
    for epsilon in ("0", "1", "20"):
        assert down(found.delta(number(epsilon))) == pytest.approx(truth, rel=1e-12)
        assert up(found.delta(number(epsilon))) == pytest.approx(truth, rel=1e-12)
    assert down(found.pure) == math.inf


@pytest.mark.parametrize(
    ("text", "dim", "truth"),
    [
        ("rows | leak(1e-6)", 10**6, 1e-6),  # one row differs, however many there are
        ("rows | clamp(0, 1) | leak(0.25)", 50, 0.25),
        ("rows | repeat(2) | leak(0.25)", 50, 1 - 0.75**2),
        ("encode | leak(0.25)", 3, 1 - 0.75**3),
        ("category(1000) | leak(0.25)", 1, 0.25),
        ("encode | onesided(2, 0, 1/2)", 3, 1 - 0.5**3),  # in the limit of values far apart
        ("rows | clamp(0, 1) | onesided(1, 1/4, 1/4)", 9, 0.75 - 0.5 * math.exp(-1)),
        ("encode | clamp(0, 1) | leak(0)", 3, 0.0),
    ],
)
def test_values_that_are_shown_or_lost(text: str, dim: int, truth: float) -> None:
    found = profile(text, dim)
    for epsilon in ("0", "3"):
        assert down(found.delta(number(epsilon))) == pytest.approx(truth, rel=1e-12)
        assert up(found.delta(number(epsilon))) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["encode | leak(1/2) | clip(l2, 1)", "encode | leak(1/2) | normalise", "encode | leak(1/2) | binary(1, 1)"]
)
def test_where_one_lost_coordinate_takes_all_nothing_is_shown(text: str) -> None:
    assert not profile(text, 2).candidates


def test_lost_values_before_and_after_other_noise() -> None:
    # NaN in a first noise is not swamped: no lower bound. Behind Laplace noise a leak of 1/10 bounds δ.
    assert not profile("encode | leak(1/2) | clip(l2, 1) | laplace(2)", 2).candidates
    found = profile("encode | laplace(1) | leak(1/10)", 1)
    assert (down(found.delta(number(1))), up(found.delta(number(1)))) == (0, pytest.approx(0.1, rel=1e-12))


@pytest.mark.parametrize(
    ("text", "dim", "pure"),
    [
        ("rows | clamp(0, 1) | laplace(1/2)", 30, 2.0),
        ("rows | clamp(-1, 3) | squash(tanh) | laplace(1)", 30, math.tanh(3) + math.tanh(1)),
        ("query(l1, 1) | repeat(5) | laplace(5)", 4, 1.0),
        ("encode | minmax | repeat(10) | laplace(20)", 768, 384.0),
        ("clip(l2, 1) | repeat(3) | laplace(2)", 16, 3 * 4.0),
        ("bloom(32, 2) | laplace(1)", 1, 4.0),
        ("onehot(5) | repeat(4) | laplace(1)", 1, 8.0),
    ],
)
def test_pure_losses_of_the_new_regions(text: str, dim: int, pure: float) -> None:
    found = profile(text, dim)
    assert down(found.pure) == pytest.approx(pure, rel=1e-12)
    assert up(found.pure) == pytest.approx(pure, rel=1e-12)


def test_repeated_laplace_noise_against_the_exact_sum() -> None:
    # A query of l1 sensitivity 1, four answers with scale 2: four coordinates shifted by 1/2, all told.
    found = profile("query(l1, 1) | repeat(4) | laplace(2)", 3).delta(number("0.5"))
    with mp.workdps(40):
        truth = float(laplace_sum_delta([(mp.mpf("0.5"), 4)], mp.mpf("0.5")))
    assert down(found) <= truth <= up(found)
    assert up(found) - down(found) <= 1e-3 * truth


def test_rows_are_squashed_where_they_are() -> None:
    # From 0 to 1 the tanh of rows differs by tanh 1 = 0.7616, not by what ±1/2 would: 0.9242.
    assert up(profile("rows | clamp(0, 1) | squash(tanh) | laplace(1)", 3).pure) == pytest.approx(math.tanh(1))
    clipped = profile("rows | clamp(0, 1) | clip(l1, 0.3) | laplace(1)", 3)
    assert down(clipped.pure) <= 0.3
    assert up(clipped.pure) >= 0.46  # (1, 0.3) and (0, 0.3), clipped: 0.3/1.3 + 0.3 − 0.09/1.3


def test_no_copy_differs_from_another_in_bits() -> None:
    assert not profile("clip(l2, 1) | repeat(2) | binary(1, 1) | bits(0.9, 0.3, 0.2)", 2).candidates


def test_equal_scores_show_nothing() -> None:
    assert up(profile("repeat(3) | exponential(1)", 1).pure) == 0
    assert up(profile("rows | exponential(1)", 3).pure) == math.inf


# ── Whom a first stage speaks of, and what stands still ─────────────────────────────────────────


def test_behind_a_noise_there_is_one_noisy_sum() -> None:
    # The first noise sees one record more or less; what comes behind it is post-processing.
    assert up(profile("clip(l1, 1) | laplace(2) | clip(l1, 1) | laplace(1)", 1, "add-remove-record").pure) == 0.5
    assert up(profile("clip(l1, 1) | laplace(1) | laplace(2)", 1, "add-remove-record").pure) == 0.5


@pytest.mark.parametrize(
    ("text", "refused", "allowed"),
    [
        ("rows | clamp(0, 1) | laplace(1)", ("any", "word", "query", "add-remove-record"), ("replace-record",)),
        ("query(l1, 1) | laplace(1)", ("any", "word"), ("query", "replace-record", "add-remove-record")),
        ("clip(l1, 1) | laplace(1)", (), ("any", "word", "query", "replace-record", "add-remove-record")),
    ],
)
def test_a_first_stage_speaks_of_some_neighbours_only(
    text: str, refused: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    for kind in refused:
        with pytest.raises(InputError, match=rf"is about the neighbors {', '.join(allowed)}, got {kind}; leave"):
            profile(text, 3, kind)
    for kind in allowed:
        assert up(profile(text, 3, kind).pure) == (2 if "clip" in text and kind != "add-remove-record" else 1)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("rows | clamp(0.3, 3) | leak(0.25)", 0.25, 0.25),
        ("rows | clamp(0.3, 3) | repeat(2) | leak(0.25)", 0.4375, 0.4375),
        ("rows | clamp(0.5, 3) | repeat(2) | squash(sigmoid) | leak(0.25)", 0.4375, 1),
        ("rows | clamp(0.3, 2.3) | onesided(2, 0.25, 0.25)", 0.75 - 0.5 / math.e, 0.75 - 0.5 / math.e),
        ("rows | clamp(0.1, 0.7) | onesided(0.6)", 1 - 1 / math.e, 1 - 1 / math.e),
        ("rows | clamp(0.1, 0.7) | squash(tanh) | leak(0.1)", 0.1, 0.1),
    ],
)
def test_persons_who_do_not_change_show_nothing(text: str, low: float, high: float) -> None:
    # Their values are no doubles, and known within 50 digits only; they are the same on both sides nevertheless.
    found = profile(text, 3).delta(ZERO)
    assert down(found) == pytest.approx(low, rel=1e-6)
    assert low * (1 - 1e-6) <= up(found) <= high * (1 + 1e-12)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("hash(1) | onehot(3) | flip(0.9)", 0.0),
        ("hash(2) | onehot(3) | bits(0.9, 0.5, 0.5)", math.log(5)),
        ("minmax | onehot(3) | laplace(1)", 0.0),
        ("clamp(0, 0.5) | category(3) | flip(0.9)", 0.0),
        ("query(l1, 0.1) | category(3) | flip(0.9)", 0.0),
        ("category(1) | category(3) | flip(0.9)", 0.0),
        ("category(2) | onehot(3) | laplace(1)", 2.0),
        ("rows | squash(sigmoid) | binary(1, 0) | flip(0.9)", 0.0),
        ("squash(sigmoid) | binary(1, 0) | flip(0.9)", 0.0),
        ("bloom(1, 1) | flip(0.75)", 0.0),
        ("bloom(1, 1) | laplace(1)", 0.0),
        ("bloom(1, 1) | onesided(1)", 0.0),
    ],
)
def test_values_that_cannot_come_show_nothing(text: str, truth: float) -> None:
    found = profile(text, 1)
    assert down(found.pure) <= truth * (1 + 1e-12)
    assert up(found.pure) >= truth * (1 - 1e-12)


@pytest.mark.parametrize(
    ("dim", "hashes"),
    [*((n, m) for n in range(1, 6) for m in range(1, min(n, 4) + 1)), pytest.param(5, 5, marks=pytest.mark.long)],
)
def test_filters_rise_in_as_many_places_as_leave_a_one(dim: int, hashes: int) -> None:
    # One-sided noise shows the places where the second filter has a 1 and the first has none; the first has a 1 too.
    filters = [set(places) for places in itertools.product(range(dim), repeat=hashes)]
    most = max(len(a - b) for a in filters for b in filters)
    found = profile(f"bloom({dim}, {hashes}) | onesided(1)", 1).delta(ZERO)
    for side in (down, up):
        assert side(found) == pytest.approx(1 - math.exp(-most), rel=1e-12)


def test_what_lies_between_the_limits_is_not_clamped() -> None:
    for first in ("minmax", "binary(1, 1)"):
        assert down(profile(f"{first} | clamp(0, 1) | laplace(1)", 3).pure) == down(
            profile(f"{first} | laplace(1)", 3).pure
        )
    for first in ("onehot(3)", "bloom(4, 2)"):
        assert down(profile(f"{first} | clamp(-2, 1) | flip(0.9)", 1).pure) > 2
    assert down(profile("minmax | clamp(0, 0.9) | laplace(1)", 3).pure) < 2.8


@pytest.mark.parametrize("first", ["laplace(5)", "gaussian(5)", "onesided(2)"])
def test_a_pair_of_the_last_noise_needs_inputs_that_reach_it(first):
    """Behind an earlier noise, points are certain to come from neighbours only where the region says so (`exact`)."""
    for between, reached in (("clip(l1, 1)", True), ("clamp(0, 1)", False)):
        pipeline = parse(f"{first} | {between} | laplace(0.1)", dim=1)
        assert pipeline.output_regions()[2].exact is reached
        assert bool(analyse(pipeline, Neighbours()).candidates) is reached
