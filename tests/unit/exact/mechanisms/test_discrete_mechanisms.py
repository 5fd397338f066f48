"""Flipped bits, categories and the exponential mechanism, against every pair and every event."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, number, up
from dpassay.exact.analysis import analyse
from dpassay.pipeline.parser import parse
from oracles import finite_delta

CHANCES = st.sampled_from(["0", "0.05", "0.2", "0.4", "0.5", "0.6", "0.9", "1"])


def string_pmf(bits: tuple[int, ...], even: Fraction, odd: Fraction, zero: Fraction) -> list[Fraction]:
    ones = [(odd if i % 2 else even) if bit else zero for i, bit in enumerate(bits)]
    return [math.prod(p if o else 1 - p for p, o in zip(ones, out, strict=True)) for out in strings(len(bits))]


def strings(n: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=n))


def pmf_pure(p: list[Fraction], q: list[Fraction]) -> float:
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return math.inf
    return max(math.log(a / b) for a, b in zip(p, q, strict=True) if a)


def worst(pmfs: list[list[Fraction]], epsilon: str) -> tuple[float, float]:
    """Pure ε and δ(ε) over all ordered pairs of distributions."""
    pairs = list(itertools.permutations(pmfs, 2)) or [(pmfs[0], pmfs[0])]
    with mp.workdps(40):
        delta = max(finite_delta(p, q, epsilon) for p, q in pairs)
    return max(0.0, max(pmf_pure(p, q) for p, q in pairs)), float(delta)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(CHANCES, CHANCES, CHANCES, st.integers(1, 3), st.sampled_from(["0", "0.4", "1.3"]))
def test_bits_against_every_pair_and_event(even: str, odd: str, zero: str, n: int, epsilon: str) -> None:
    profile = analyse(parse(f"encode | binary(0, {n - 1}) | bits({even}, {odd}, {zero})", 1), Neighbours())
    pmfs = [string_pmf(s, Fraction(even), Fraction(odd), Fraction(zero)) for s in strings(n)]
    pure, delta = worst(pmfs, epsilon)
    assert down(profile.pure) == pytest.approx(pure, rel=1e-12)
    assert up(profile.pure) == pytest.approx(pure, rel=1e-12)
    found = profile.delta(number(epsilon))
    assert down(found) <= delta * (1 + 1e-12)
    assert up(found) >= delta * (1 - 1e-12)


@settings(max_examples=30, derandomize=True, deadline=None)
@given(CHANCES, CHANCES, CHANCES, st.integers(1, 4), st.sampled_from(["0", "0.4", "1.3"]))
def test_one_hot_bits_against_every_pair_and_event(even: str, odd: str, zero: str, k: int, epsilon: str) -> None:
    profile = analyse(parse(f"onehot({k}) | bits({even}, {odd}, {zero})", 1), Neighbours())
    vectors = [tuple(int(i == j) for i in range(k)) for j in range(k)]
    pmfs = [string_pmf(v, Fraction(even), Fraction(odd), Fraction(zero)) for v in vectors]
    pure, delta = worst(pmfs, epsilon) if k > 1 else (0.0, 0.0)
    found = profile.delta(number(epsilon))
    for side in (down, up):
        assert side(profile.pure) == pytest.approx(pure, rel=1e-12)
        assert side(found) == pytest.approx(delta, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("keep", ["0", "0.1", "0.25", "0.5", "0.9", "1"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", ["0", "0.7"])
def test_categories(keep: str, k: int, epsilon: str) -> None:
    p = Fraction(keep) if k > 1 else Fraction(1)
    pmfs = [[p if i == j else (1 - p) / (k - 1) for i in range(k)] for j in range(k)]
    pure, delta = worst(pmfs, epsilon) if k > 1 else (0.0, 0.0)
    profile = analyse(parse(f"category({k}) | flip({keep})"), Neighbours())
    for side in (down, up):
        assert side(profile.pure) == pytest.approx(pure, rel=1e-12)
        assert side(profile.delta(number(epsilon))) == pytest.approx(delta, rel=1e-12)


def softmax(scores: np.ndarray, rate: float) -> np.ndarray:
    weights = np.exp(rate * (scores - scores.max()))
    return weights / weights.sum()


@pytest.mark.parametrize("bound", ["squash(sigmoid)", "clip(linf, 0.5)", "clip(l2, 0.5)", "clip(l1, 0.5)", "minmax"])
@pytest.mark.parametrize("k", [2, 3])
def test_scores_in_a_region(bound: str, k: int) -> None:
    # Random scores, and all corners, never beat the bound; the pair that is named does what is said of it.
    pipeline = parse(f"encode | {bound} | exponential(3)", k)
    profile = analyse(pipeline, Neighbours())
    rng = np.random.default_rng(5)
    raw = np.concatenate([np.array(list(itertools.product([-30.0, 0.0, 30.0], repeat=k))), rng.normal(size=(20, k))])
    scores = pipeline.stages[1].run(raw, rng)
    distributions = [softmax(row, 3) for row in scores]
    pure, deltas = up(profile.pure), [(e, up(profile.delta(number(e)))) for e in (0.0, 0.5)]
    for p, q in itertools.permutations(distributions, 2):
        assert np.log(p / q).max() <= pure * (1 + 1e-12)
        for epsilon, delta in deltas:
            assert np.maximum(0, p - math.exp(epsilon) * q).sum() <= delta + 1e-15
    for candidate in profile.candidates:
        p, q = softmax(candidate.pair.first, 3), softmax(candidate.pair.second, 3)
        truth = max(np.log(p / q).max(), np.log(q / p).max())
        assert down(candidate.bound.pure) == pytest.approx(truth, rel=1e-12, abs=1e-12)
        ways = [np.maximum(0, a - math.exp(0.2) * b).sum() for a, b in ((p, q), (q, p))]
        assert down(candidate.bound.delta(number("0.2"))) == pytest.approx(max(ways), rel=1e-9, abs=1e-12)


def test_query_scores_reach_twice_the_rate_only_in_the_limit() -> None:
    # Scores at most Δ apart: the first output gains Δ, the sum of the others' weights another Δ, if it is far behind.
    profile = analyse(parse("query(linf, 2) | exponential(0.25)", 5), Neighbours("query"))
    assert up(profile.pure) == 1
    assert down(profile.pure) == 1
    best = max(down(c.bound.pure) for c in profile.candidates)
    assert 0.999 < best <= 1


def test_many_bits_at_once() -> None:
    # 10⁵ coordinates of 10 bits each, each losing 10⁻⁶·ln 3.
    profile = analyse(parse("encode | binary(4, 5) | flip(0.75)", 100_000), Neighbours())
    truth = 1_000_000 * math.log(3)
    assert down(profile.pure) == pytest.approx(truth, rel=1e-12)
    assert up(profile.pure) == pytest.approx(truth, rel=1e-12)


def filters(n: int, hashes: int) -> list[tuple[int, ...]]:
    """What a number of hashes can write: each sets one of the bits, and they may collide."""
    places = itertools.product(range(n), repeat=hashes)
    return sorted({tuple(int(i in set_bits) for i in range(n)) for set_bits in places})


@settings(max_examples=40, derandomize=True, deadline=None)
@given(CHANCES, st.integers(1, 4), st.integers(1, 4), st.sampled_from(["0", "0.4", "1.3"]))
def test_bloom_filters_against_every_pair_and_event(keep: str, n: int, ones: int, epsilon: str) -> None:
    ones = min(n, ones)
    profile = analyse(parse(f"bloom({n}, {ones}) | flip({keep})"), Neighbours())
    chance = Fraction(keep)
    pmfs = [string_pmf(s, chance, chance, 1 - chance) for s in filters(n, ones)]
    pure, delta = worst(pmfs, epsilon)
    found = profile.delta(number(epsilon))
    for side in (down, up):
        assert side(profile.pure) == pytest.approx(pure, rel=1e-12)
        assert side(found) == pytest.approx(delta, rel=1e-9, abs=1e-15)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(CHANCES, CHANCES, CHANCES, st.integers(1, 4), st.integers(1, 4), st.sampled_from(["0", "0.4", "1.3"]))
def test_bloom_filters_with_unequal_bits_are_bounded(
    even: str, odd: str, zero: str, n: int, ones: int, epsilon: str
) -> None:
    ones = min(n, ones)
    profile = analyse(parse(f"bloom({n}, {ones}) | bits({even}, {odd}, {zero})"), Neighbours())
    pmfs = [string_pmf(s, Fraction(even), Fraction(odd), Fraction(zero)) for s in filters(n, ones)]
    pure, delta = worst(pmfs, epsilon)
    assert down(profile.pure) <= pure * (1 + 1e-12)
    assert up(profile.pure) >= pure * (1 - 1e-12)
    found = profile.delta(number(epsilon))
    assert down(found) <= delta * (1 + 1e-9) + 1e-15
    assert up(found) >= delta * (1 - 1e-9)


def test_hashed_values_lose_what_categories_do() -> None:
    for k in (2, 4):
        hashed, named = (analyse(parse(f"{first}({k}) | flip(0.9)"), Neighbours()) for first in ("hash", "category"))
        assert (hashed.pure == named.pure, hashed.candidates == named.candidates) == (True, True)
    # Of three values only it is not known whether they collide.
    few = analyse(parse("category(3) | hash(4) | flip(0.9)"), Neighbours())
    assert (down(few.pure), up(few.pure)) == (0, pytest.approx(math.log(27), rel=1e-12))
