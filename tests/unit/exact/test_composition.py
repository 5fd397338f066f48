"""Composition against formulas, subsets by brute force, closed forms, and dp-accounting where it is valid."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from mpmath import mp, mpf
from scipy.optimize import brentq
from scipy.stats import norm

import dpassay
from dpassay.core.guarantee import GDP, ZCDP, ApproxDP, Guarantee, MetricDP, PureDP, make_guarantee
from dpassay.core.numbers import number
from dpassay.errors import ExpressionError, InputError
from dpassay.exact import composition
from dpassay.exact.composition import (
    Answer,
    basic,
    basic_epsilon,
    compose_parallel,
    dominating,
    exact_epsilon,
    group,
    mechanism_answer,
    read_answer,
    simple_group,
)
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.parser import parse


def compose(answers: list[tuple[PrivacyLoss, int]]) -> PrivacyLoss:
    first, *others = (loss.times(count) for loss, count in answers)
    return first.compose(*others)


@pytest.fixture(autouse=True)
def forty_digits():  # type: ignore[no-untyped-def]
    with mp.workdps(40):
        yield


def encloses(interval, truth: mpf, width: float = 1e-9) -> None:  # type: ignore[no-untyped-def]
    assert interval.lower <= truth * (1 + mpf("1e-30")), (interval, truth)
    assert interval.upper >= truth * (1 - mpf("1e-30")), (interval, truth)
    assert interval.upper - interval.lower <= width * max(interval.upper, 1e-300), interval


# ── Basic composition and groups ────────────────────────────────────────────────────────────────


def test_basic_adds_up() -> None:
    total = basic([PureDP("0.1"), ApproxDP("0.25", "1e-6"), ApproxDP("1", "3e-6")])
    assert (total.epsilon, total.delta) == (1.35, 4e-6)
    assert isinstance(basic([PureDP(1), PureDP(2)]), PureDP)
    with pytest.raises(InputError, match="nothing is guaranteed"):
        basic([ApproxDP(1, "0.6"), ApproxDP(1, "0.4")])


def test_groups() -> None:
    # FACTS §1: k e^(ε(k−1)) δ; and the sum 1 + e^ε + … + e^((k−1)ε), which it bounds.
    three, sharper = (bound(ApproxDP("0.5", "1e-6"), 3) for bound in (simple_group, group))
    assert three.epsilon == sharper.epsilon == 1.5
    assert three.delta == pytest.approx(8.15485e-6, abs=5e-12)
    assert three.delta == pytest.approx(3 * math.e * 1e-6, rel=1e-14)
    assert sharper.delta == pytest.approx((1 + math.exp(0.5) + math.e) * 1e-6, rel=1e-14)
    assert group(ApproxDP(0, "1e-3"), 7).delta == 7e-3
    for bound in (simple_group, group):
        assert bound(PureDP("0.5"), 10).epsilon == 5
        assert bound(ApproxDP(1, "1e-3"), 1).delta == 1e-3
        with pytest.raises(InputError, match="nothing is guaranteed"):
            bound(ApproxDP(1, "1e-6"), 20)
        for wrong in (0, -1, 10**7):
            with pytest.raises(InputError, match="from 1 to 1,000,000 members"):
                bound(PureDP(1), wrong)


# A guarantee at its own δ is what it says; basic composition is (Σε, Σδ), also for unequal δ.
@pytest.mark.parametrize(
    ("answers", "delta", "total"),
    [
        (["0.5,1e-6"], "1e-6", 0.5),
        (["0.5,1e-6"], None, 0.5),
        (["0.5,1e-5"], None, 0.5),
        (["0.5,1e-6 x 3"], "3e-6", 1.5),
        (["0.5,1e-6", "1,1e-9"], "1.001e-6", 1.5),
        (["0.5,1e-3", "1,1e-9", "0.25"], None, 1.75),
    ],
)
def test_guarantees_at_the_sum_of_their_deltas(answers: list[str], delta: str | None, total: float) -> None:
    found = dpassay.compose(*answers, delta=delta)
    assert found.basic.lower <= total <= found.basic.upper <= total + 1e-12
    assert total - 1e-4 < found.exact.lower <= found.exact.upper <= total + 1e-12
    assert found.exact.lower == total or len(answers) > 1 or "x" in answers[0]


def test_the_delta_of_a_composition_that_is_not_given() -> None:
    assert dpassay.compose("1").delta == 1e-6
    assert dpassay.compose("1,1e-8 x 10").delta == 1e-6
    assert dpassay.compose("1,1e-3 x 10", "1").delta == pytest.approx(1e-2)
    assert compose_parallel("1,1e-3 x 10", "1").delta == 1e-3
    with pytest.raises(InputError, match="1 or more"):
        dpassay.compose("1,0.5 x 2")


# ── Parallel composition: docs/proofs/parallel.md ───────────────────────────────────────────────


def test_disjoint_parts_cost_the_largest_of_their_losses() -> None:
    assert (compose_parallel("0.5 x 1000", "1", "0.25,1e-9", delta="1e-9").exact.upper) <= 1
    # Laplace noise on one count, at scales 1 and 2: ε(δ) = 1/b + 2 ln(1 − δ) each, FACTS §1; the larger one counts.
    found = compose_parallel("query(l1, 1) | laplace(1) x 50", "query(l1, 1) | laplace(2)", delta="1e-3")
    assert found.count == 51
    encloses(found.exact, 1 + 2 * mp.log(1 - mpf("1e-3")))
    alone = dpassay.compose("query(l2, 1) | gaussian(1)", delta="1e-5").exact
    assert compose_parallel("query(l2, 1) | gaussian(1) x 9", "0.1", delta="1e-5").exact == alone
    assert dpassay.compose("query(l2, 1) | gaussian(1) x 9", "0.1", delta="1e-5").exact.lower > 2 * alone.upper


def test_parallel_composition_by_brute_force() -> None:
    # Three people, each in one part, each answering by randomized response: all pairs of data sets that differ in one.
    keeps = {0: 0.75, 1: 0.6, 2: 0.9}

    def law(bits: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        return {
            out: math.prod(keeps[i] if bits[i] == out[i] else 1 - keeps[i] for i in keeps)
            for out in itertools.product((0, 1), repeat=3)
        }

    pairs = [
        (x, y) for x in law((0, 0, 0)) for y in law((0, 0, 0)) if sum(a != b for a, b in zip(x, y, strict=True)) == 1
    ]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        truth = max(sum(max(0.0, p - math.exp(epsilon) * law(y)[o]) for o, p in law(x).items()) for x, y in pairs)
        if truth > 0:
            parts = (f"category(2) | flip({keep})" for keep in keeps.values())
            found = compose_parallel(*parts, delta=truth)
            assert found.exact.lower - 1e-9 <= epsilon <= found.exact.upper + 1e-9


# ── Optimal composition ─────────────────────────────────────────────────────────────────────────


def kairouz(k: int, epsilon: object, at: object, delta: object = 0) -> mpf:
    """Kairouz, Oh and Viswanath 2015: k copies of (ε, δ)-DP, δ of the composition at any ε."""
    e, x, d = mpf(epsilon), mpf(at), mpf(delta)
    total = mpf(0)
    for wrong in range(k + 1):
        loss = (k - 2 * wrong) * e
        if loss > x:
            total += mp.binomial(k, wrong) * (mp.exp(e * (k - wrong)) - mp.exp(x + e * wrong)) / (1 + mp.exp(e)) ** k
    return total if d == 0 else 1 - (1 - d) ** k * (1 - total)


@pytest.mark.parametrize("k", [1, 2, 7, 50, 1000])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "3"])
@pytest.mark.parametrize("share", ["0", "0.13", "0.5"])
def test_equal_pure_guarantees(k: int, epsilon: str, share: str) -> None:
    at = k * mpf(epsilon) * mpf(share)
    loss = dominating(PureDP(epsilon)).times(k)
    encloses(loss.delta(mp.nstr(at, 30)), kairouz(k, epsilon, mpf(mp.nstr(at, 30))))


@pytest.mark.parametrize(("k", "delta"), [(3, "1e-3"), (40, "1e-9")])
def test_equal_approximate_guarantees(k: int, delta: str) -> None:
    for at in ("0.2", "1", "2.5"):
        encloses(dominating(make_guarantee("0.2", delta)).times(k).delta(at), kairouz(k, "0.2", at, delta))


def by_subsets(guarantees: list[Guarantee], at: object) -> mpf:
    """Murtagh and Vadhan 2016, Theorem 1.5: one minus Π(1 − δ_i) times what all subsets of right answers leave."""
    x = mpf(at)
    pairs = [(mpf(g.epsilon.__repr__()), mpf(repr(g.delta))) for g in guarantees]
    kept = mp.fprod([1 - d for _, d in pairs])
    scale = mp.fprod([1 + mp.exp(e) for e, _ in pairs])
    total = mpf(0)
    for size in range(len(pairs) + 1):
        for subset in itertools.combinations(range(len(pairs)), size):
            inside = mp.fsum(pairs[i][0] for i in subset)
            outside = mp.fsum(e for e, _ in pairs) - inside
            total += max(mpf(0), mp.exp(inside) - mp.exp(x + outside))
    return 1 - kept * (1 - total / scale)


MIXED = [
    [PureDP("0.3"), PureDP("1.1")],
    [PureDP("0.1"), ApproxDP("0.7", "1e-5"), ApproxDP("0.7", "1e-3"), PureDP(2)],
    [ApproxDP(0, "1e-4"), ApproxDP("0.5", "1e-6"), PureDP("0.5")],
    [make_guarantee(repr(0.05 * i), "1e-7" if i % 2 else 0) for i in range(1, 11)],
]


@pytest.mark.parametrize("guarantees", MIXED, ids=len)
@pytest.mark.parametrize("at", ["0", "0.4", "1.5"])
def test_different_guarantees_by_brute_force(guarantees: list[Guarantee], at: str) -> None:
    loss = compose([(dominating(g), 1) for g in guarantees])
    encloses(loss.delta(at), by_subsets(guarantees, at), width=1e-6)


def test_epsilon_inverts_delta() -> None:
    loss = compose([(dominating(g), 2) for g in MIXED[1]])
    for delta in ("0.01", "0.1"):
        found = loss.epsilon(delta)
        assert by_subsets([*MIXED[1], *MIXED[1]], repr(found.upper)) <= mpf(delta) * (1 + mpf("1e-9"))
        assert by_subsets([*MIXED[1], *MIXED[1]], repr(found.lower)) >= mpf(delta) * (1 - mpf("1e-9"))
    # δ alone is spent already: 1 − Π(1 − δ_i)² > 1e-3
    assert loss.epsilon("1e-3").lower == math.inf


def test_optimal_is_never_worse_than_basic() -> None:
    for guarantees in MIXED:
        total = basic(guarantees)
        exact = compose([(dominating(g), 1) for g in guarantees])
        assert exact.epsilon(max(total.delta, 1e-9)).lower <= total.epsilon


# ── Mechanisms ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 4, 1000])
@pytest.mark.parametrize("epsilon", ["0.1", "3"])
def test_gaussians_compose_to_a_gaussian(count: int, epsilon: str) -> None:
    loss = mechanism_answer(parse("query(l2, 1) | gaussian(5)")).loss.times(count)
    mu, e = mp.sqrt(count) / 5, mpf(epsilon)
    truth = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
    encloses(loss.delta(epsilon), truth)


@pytest.mark.parametrize("count", [1, 10, 100])
def test_against_dp_accounting(count: int) -> None:
    # Inside its valid range (DESIGN): its pessimistic estimate lies above ours, its optimistic one below.
    ours = mechanism_answer(parse("query(l1, 1) | laplace(2)")).loss.times(count)
    for pessimistic in (True, False):
        theirs = privacy_loss_distribution.from_laplace_mechanism(
            2.0, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        ).self_compose(count)
        for delta in (1e-2, 1e-4):
            estimate = theirs.get_epsilon_for_delta(delta)
            interval = ours.epsilon(delta)
            assert (interval.lower <= estimate) if pessimistic else (estimate <= interval.upper)
            assert estimate == pytest.approx(interval.upper, rel=2e-3)


def test_a_loss_for_every_pair() -> None:
    # Where the worst pair is not known, the pure loss is what is composed.
    unknown = mechanism_answer(parse("clip(l2, 1) | laplace(2)", 9)).loss
    assert float(unknown.pure.mid) == pytest.approx(3)
    assert mechanism_answer(parse("encode | laplace(1)", 2)).loss.delta(5).lower == 1
    # Word dropout helps: ln(0.5 e² + 0.5).
    dropped = mechanism_answer(parse("dropout(0.5) | encode | clip(l1, 1) | laplace(1)", 2)).loss
    assert float(dropped.pure.mid) == pytest.approx(math.log(0.5 * math.e**2 + 0.5))


@pytest.mark.parametrize("text", ["onehot(3) | flip(0.75)", "category(2) | flip(0.75)"])
def test_flips_compose_exactly(text: str) -> None:
    # Two bits differ in a one-hot vector: 2·4 (or 4) bits of loss ±ln 3.
    bits = 8 if "onehot" in text else 4
    loss = mechanism_answer(parse(text)).loss.times(4)
    encloses(loss.delta("1"), kairouz(bits, mp.log(3), 1))


def test_basic_epsilon_splits_delta() -> None:
    losses = [Answer(dominating(ApproxDP(1, "1e-8")), 2), Answer(dominating(PureDP("0.5")))]
    assert float(basic_epsilon(losses, number(0)).b) == math.inf
    total = float(basic_epsilon(losses, number("3e-6")).b)
    assert 2.4999 < total <= 2.5
    assert float(basic_epsilon([Answer(dominating(PureDP(2)), 3)], number(0)).b) == 6


@pytest.mark.parametrize(
    ("text", "count", "pure"), [("1", 1, 1.0), ("0.5 x 20", 20, 0.5), ("query(l1, 1) | laplace(4) x 3", 3, 0.25)]
)
def test_answers_are_read(text: str, count: int, pure: float) -> None:
    answer = read_answer(text)
    assert answer.count == count
    assert answer.exact
    assert float(answer.loss.pure.mid) == pure


@pytest.mark.parametrize(
    "text",
    ["", "x", "1 x", "1 x 0", "1 x -1", "1 x 1.5", "1 x 10000001", "1,1", "1,-1", "-1", "nan", "1,2,3", "foo(1)"],
)
def test_answers_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_answer(text)


def test_nothing_to_compose() -> None:
    with pytest.raises(InputError, match="nothing to compose"):
        exact_epsilon([], number(0))


def test_an_upper_bound_is_not_shown_as_a_lower_one() -> None:
    # The worst pair of Laplace noise on an l2 ball is not known: what is shown is some pair's, and the pure loss is 3.
    answer = mechanism_answer(parse("clip(l2, 1) | laplace(2)", 9))
    assert not answer.exact
    found = exact_epsilon([answer], number("1e-6"))
    # The pair on one axis has a single coordinate with a = 1: δ(ε) = 1 − e^((ε − 1)/2).
    assert float(found.a) >= 1 + 2 * math.log(1 - 1e-6)
    assert float(found.a) < float(found.b) <= 3


def test_the_best_of_several_noises_is_composed() -> None:
    # The first noise hides nothing of unbounded vectors, the second keeps 1-DP.
    answer = mechanism_answer(parse("encode | laplace(1) | clip(l1, 1) | laplace(2)", 2))
    assert float(exact_epsilon([answer], number("1e-6")).b) <= 1
    # And the other way round: what a bounded first noise has hidden stays hidden.
    answer = mechanism_answer(parse("clip(l1, 1) | laplace(2) | decode | laplace(1)", 2))
    assert float(exact_epsilon([answer], number("1e-6")).b) <= 1


# ── Answers of every kind at once ───────────────────────────────────────────────────────────────


def test_two_answers_by_the_closed_form() -> None:
    # Both say ε with probability p² for p = e/(1 + e): δ(ε) = p²(1 − e^(ε − 2)), so ε = 2 + ln(1 − δ/p²).
    delta, p = mpf("1e-6"), mp.e / (1 + mp.e)
    for answers in (("1 x 2",), ("1", "1"), (PureDP(1), "1"), ((PureDP(1), 2),)):
        total = composition.compose(*answers, delta="1e-6")
        assert (total.count, total.delta) == (2, 1e-6)
        encloses(total.exact, 2 + mp.log(1 - delta / p**2))
        # Each has half of δ: ε with probability p, δ(ε) = p(1 − e^(ε − 1)).
        encloses(total.basic, 2 * (1 + mp.log(1 - delta / 2 / p)))


def test_pipelines_and_texts_of_them_compose_alike() -> None:
    # k Gaussians of mean μ are one of mean μ√k, which at δ = 0 loses anything.
    pipeline = parse("query(l2, 1) | gaussian(4)")
    one, other = (
        composition.compose(*answers, delta="1e-5")
        for answers in (["query(l2, 1) | gaussian(4) x 4"], [(pipeline, 3), pipeline])
    )
    alone = composition.compose("query(l2, 1) | gaussian(2)", delta="1e-5")
    assert one == other
    assert one.exact.lower == pytest.approx(alone.exact.lower, rel=1e-9)
    assert composition.compose(pipeline, delta=0).exact.upper == math.inf
    assert composition.compose("clip(l1, 1) | laplace(2) x 3", delta=0, dim=5).exact.upper == pytest.approx(3)


@pytest.mark.parametrize(
    ("answers", "options", "message"),
    [
        ((), {}, "nothing to compose"),
        (("1",), {"delta": 1}, "delta must be at least 0"),
        (("1",), {"delta": -1}, "delta must be at least 0"),
        (((PureDP(1), 0),), {}, "the number of repetitions"),
        (((PureDP(1), 1.5),), {}, "the number of repetitions"),
        ((1,), {}, "a text, a pipeline or a guarantee"),
        (("clip(l1, 1) | laplace(2)",), {}, "dim=N"),
    ],
)
def test_what_cannot_be_composed(answers, options, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        composition.compose(*answers, **options)


@pytest.mark.parametrize("name", ["C", "eps", "delta"])
def test_a_composed_pipeline_has_no_names(name: str) -> None:
    with pytest.raises(ExpressionError, match="takes numbers, not names"):
        composition.compose(f"query(l1, 1) | laplace({name})")


# ── One pair for all parts ──────────────────────────────────────────────────────────────────────


def laplace_and_gaussian(shifts: list[float], mu: float, epsilon: float) -> float:
    """δ(ε) of Laplace noise (shifts in scales) and Gaussian noise on the same pair, by numeric integration."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    def gaussian(e: float) -> float:
        return float(ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu))

    def mean(left: list[float], at: float) -> float:
        if not left:
            return gaussian(at)
        a, *rest = left
        atoms = 0.5 * mean(rest, at - a) + 0.5 * math.exp(-a) * mean(rest, at + a)
        return atoms + float(quad(lambda x: 0.25 * math.exp((x - a) / 2) * mean(rest, at - x), -a, a, epsabs=1e-9)[0])

    return mean([shift for shift in shifts if shift], epsilon)


def test_different_worst_pairs_are_not_mixed() -> None:
    # ±(c, s) is scaled to l1 norm 1 for the Laplace noise, and to largest coordinate 1 for the Gaussian.
    def antipodal(angle: float, epsilon: float) -> float:
        c, s = math.cos(angle), math.sin(angle)
        shifts = [2 * c / (c + s), 2 * s / (c + s)]
        return laplace_and_gaussian(shifts, 2 * math.hypot(c, s) / max(c, s), epsilon)

    total = composition.compose("clip(l1, 1) | laplace(1)", "clip(linf, 1) | gaussian(1)", dim=2, delta="1e-2")
    assert antipodal(math.pi / 4, total.exact.lower) >= 1e-2 * (1 - 1e-6)
    assert max(antipodal(math.pi / 4 * i / 6, 11.05) for i in range(7)) < 1e-2
    assert 11 < total.exact.lower < 11.05
    assert 11.4 < total.exact.upper < 11.42


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("answers", "dim"),
    [
        (("clip(l2, 1) | laplace(3) x 2", "clip(l2, 1) | gaussian(2)"), 5),
        (("clamp(0, 1) | exponential(0.5) x 20", "clip(l2, 1) | gaussian(4)"), 6),
        (("squash(tanh) | gaussian(3)", "clip(l1, 2) | laplace(4)", "0.3,1e-4"), 4),
        (("query(l1, 1) | laplace(3)", "query(linf, 1) | exponential(0.1) x 9", "0.2"), 3),
    ],
)
def test_ends_are_in_order(answers: tuple[str, ...], dim: int) -> None:
    total = composition.compose(*answers, dim=dim, delta="1e-3")
    assert 0 < total.exact.lower <= total.exact.upper <= total.basic.upper


def test_exact_is_never_above_basic() -> None:
    # So close to δ = 0 the grid of two Laplace losses is coarser than what basic composition loses.
    total = composition.compose("clip(l1, 1) | laplace(1)", "clip(l1, 1) | laplace(2)", dim=4, delta="1e-2")
    assert composition.exact_epsilon(TWO_LAPLACES, number("1e-2")).b <= basic_epsilon(TWO_LAPLACES, number("1e-2")).b
    assert total.exact.upper <= total.basic.upper


TWO_LAPLACES = [mechanism_answer(parse(f"clip(l1, 1) | laplace({scale})", 4)) for scale in (1, 2)]


def test_queries_are_each_at_their_worst() -> None:
    # Two queries are chosen freely: shifts 1 in one coordinate, and (1, 1) in l2 √2.
    total = composition.compose("query(l1, 1) | laplace(1)", "query(linf, 1) | gaussian(1)", dim=2, delta="1e-2")
    for end, sign in ((total.exact.lower, 1), (total.exact.upper, -1)):
        assert sign * laplace_and_gaussian([1.0], math.sqrt(2), end) >= sign * 1e-2 * (1 - sign * 1e-6)
    assert total.exact.upper - total.exact.lower < 1e-3


def test_rows_differ_in_one_coordinate_for_all() -> None:
    # One coordinate may move, from −1 to 1, so both noises see a shift of 2; all three would give the Gaussian 2√3.
    total = composition.compose("rows | clamp(-1, 1) | laplace(1)", "clip(linf, 1) | gaussian(1)", dim=3, delta="1e-2")
    assert laplace_and_gaussian([2.0], 2.0, total.exact.lower) >= 1e-2 * (1 - 1e-6)
    assert laplace_and_gaussian([2.0], 2.0, total.exact.lower * 1.001) < 1e-2


BITS = list(itertools.product((0, 1), repeat=3))


def test_one_category_for_all() -> None:
    # Every pair of categories, each way, by enumeration of all outputs.
    even, odd, zero, keep = 0.9, 0.6, 0.2, 0.8
    total = composition.compose("onehot(3) | bits(0.9, 0.6, 0.2)", "category(4) | flip(0.8)", delta="0.1")

    def pmf(value: int) -> list[float]:
        ones = [(odd if i % 2 else even) if i == value else zero for i in range(3)]
        strings = [math.prod(p if b else 1 - p for p, b in zip(ones, bits, strict=True)) for bits in BITS]
        return [s * (keep if j == value else (1 - keep) / 3) for s in strings for j in range(4)]

    def delta(epsilon: float) -> float:
        pairs = itertools.permutations([pmf(v) for v in range(3)], 2)
        return max(sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True)) for p, q in pairs)

    assert delta(total.exact.lower) >= 0.1 * (1 - 1e-6)
    assert delta(total.exact.upper) <= 0.1 * (1 + 1e-6)
    assert total.exact.lower > 1


def test_parts_of_different_inputs_show_what_one_alone_does() -> None:
    # A category and a vector: nothing says which vector belongs to which category.
    both = parse("category(2) | flip(0.9)"), parse("clip(l1, 1) | laplace(1)", 2)
    total = composition.compose(*both, delta="1e-3")
    alone = composition.compose("category(2) | flip(0.9)", delta="1e-3")
    assert alone.exact.lower <= total.exact.lower * (1 + 1e-12)
    assert total.exact.lower < total.exact.upper


# ── Exponential mechanisms together ─────────────────────────────────────────────────────────────


def two_point_power(t: mpf, r: mpf, count: int, epsilon: mpf) -> mpf:
    """δ(ε) of some uses whose losses are t and t − r."""
    p = (mp.exp(r) - mp.exp(t)) / (mp.exp(r) - 1)
    terms = (
        mp.binomial(count, i) * p ** (count - i) * (1 - p) ** i * max(mpf(0), 1 - mp.exp(epsilon - (count * t - i * r)))
        for i in range(count + 1)
    )
    return mp.fsum(terms)


def test_a_hundred_exponential_mechanisms() -> None:
    k, count = 50_000, 100
    total = composition.compose(f"clamp(0, 1) | exponential(1) x {count}", dim=k, delta="1e-6")
    assert total.basic.upper <= 200
    assert total.exact.upper <= 93.9  # 102.57 by zCDP
    # m scores are 1 and the others 0, against the other way round.
    shown = []
    for m in [2**i for i in range(16)] + [k // 2]:
        t = 1 + mp.log((m + (k - m) * mp.e) / (m * mp.e + k - m))
        shown.append(two_point_power(t, mpf(2), count, mpf(total.exact.lower)))
    assert max(shown) >= mpf("1e-6") * (1 - mpf("1e-9"))
    assert total.exact.lower > 90


@pytest.mark.parametrize("delta", ["1e-6", "0.01"])
def test_few_exponential_mechanisms_on_a_query(delta: str) -> None:
    # Every pair of the query has losses t and t − 1 with some t, the same for all uses.
    count, r = 4, mpf(1)
    total = composition.compose(f"query(l1, 1) | exponential(1) x {count}", dim=3, delta=delta)
    best = max(two_point_power(r * i / 200, r, count, mpf(total.exact.upper)) for i in range(1, 200))
    assert best <= mpf(delta)
    best = max(two_point_power(r * i / 200, r, count, mpf(total.exact.lower)) for i in range(1, 200))
    assert best >= mpf(delta) * mpf("0.99")
    assert composition.compose(f"query(l1, 1) | exponential(1) x {count}", dim=3, delta=0).exact.lower == count


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε(δ) of Gaussian noise, from the exact δ(ε)."""

    def excess(epsilon: float) -> float:
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return float(brentq(excess, 0, 100, xtol=1e-12))


def test_gaussian_guarantees_add_their_squares() -> None:
    total = composition.compose("mu=0.5 x 3", GDP("0.5"), delta=1e-5).exact
    assert total.lower <= gaussian_epsilon(1, 1e-5) * (1 + 1e-9)
    assert total.upper == pytest.approx(gaussian_epsilon(1, 1e-5), rel=1e-9)


@pytest.mark.parametrize("count", [1, 4])
def test_concentrated_guarantees_add(count: int) -> None:
    # ρ adds up; from below Gaussian noise with μ² = 2ρ, from above the best order of the conversion
    # ρα + ln(1 − 1/α) − ln(δα)/(α − 1).
    rho, delta = 0.125 * count, 1e-5
    orders = 1 + np.exp(np.linspace(-3, 6, 20_001))
    most = np.min(rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))
    total = composition.compose((ZCDP("0.125"), count), delta=delta).exact
    assert total.lower == pytest.approx(gaussian_epsilon(math.sqrt(2 * rho), delta), rel=1e-9)
    assert total.upper == pytest.approx(most, rel=1e-6)


def test_a_renyi_guarantee_says_nothing_of_larger_orders() -> None:
    # ε(δ) by the stated order alone, as smaller ones give no less here; the search comes close to it from below.
    most = 1 + math.log(1 - 1 / 8) - math.log(1e-5 * 8) / 7
    total = composition.compose("order=8, epsilon=1", delta=1e-5).exact
    assert most * (1 - 1e-12) <= total.upper <= most * (1 + 1e-5)


def test_a_metric_guarantee_cannot_be_composed() -> None:
    with pytest.raises(InputError, match="depends on distances"):
        composition.compose(MetricDP(1, "l2"))
    with pytest.raises(InputError, match="got 'foo=1'"):
        composition.compose("foo=1")


def test_a_record_more_and_a_record_replaced_are_not_composed() -> None:
    """Two data sets of different sizes are not of the same size, so no pair has both losses."""
    poisson, fixed = "poisson(0.1) | clip(l2, 1) | gaussian(2)", "subsample(10, 100) | clip(l2, 1) | gaussian(2)"
    for other in (fixed, "shuffle(4) | clip(l2, 1) | gaussian(2)"):
        with pytest.raises(InputError, match="no two data sets are both"):
            composition.compose(poisson, other, dim=2)
    assert composition.compose(poisson, poisson, dim=2).count == composition.compose(fixed, fixed, dim=2).count == 2


def test_no_data_set_has_two_sizes():
    texts = ["subsample(1, 2) | clamp(0, 1) | laplace(1)", "subsample(1, 3) | clamp(0, 1) | laplace(1)"]
    with pytest.raises(InputError, match="no data set has both 2 and 3"):
        dpassay.compose(*texts, delta=0, dim=1)
    assert dpassay.compose(texts[0], texts[0], delta=0, dim=1).exact.lower > 0
