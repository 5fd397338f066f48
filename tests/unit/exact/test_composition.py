"""Composition against formulas, subsets by brute force, closed forms, and dp-accounting where it is valid."""

import itertools
import math

import pytest
from dp_accounting.pld import privacy_loss_distribution
from mpmath import mp, mpf

from dpassay.core.guarantee import ApproxDP, Guarantee, PureDP, make_guarantee
from dpassay.core.numbers import number
from dpassay.errors import ExpressionError, InputError
from dpassay.exact import composition
from dpassay.exact.composition import (
    Answer,
    basic,
    basic_epsilon,
    dominating,
    exact_epsilon,
    group,
    mechanism_answer,
    read_answer,
)
from dpassay.exact.privacy_loss import PrivacyLoss
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
    # FACTS §1: k e^(ε(k−1)) δ.
    three = group(ApproxDP("0.5", "1e-6"), 3)
    assert three.epsilon == 1.5
    assert three.delta == pytest.approx(8.15485e-6, abs=5e-12)
    assert three.delta == pytest.approx(3 * math.e * 1e-6, rel=1e-14)
    assert group(PureDP("0.5"), 10).epsilon == 5
    assert group(ApproxDP(1, "1e-3"), 1).delta == 1e-3
    with pytest.raises(InputError, match="nothing is guaranteed"):
        group(ApproxDP(1, "1e-6"), 20)
    for wrong in (0, -1):
        with pytest.raises(InputError, match="at least one"):
            group(PureDP(1), wrong)


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
    # The worst pair of Laplace noise on an l2 ball is not known, so nothing is claimed from below.
    answer = mechanism_answer(parse("clip(l2, 1) | laplace(2)", 9))
    assert not answer.exact
    assert float(exact_epsilon([answer], number("1e-6")).a) == 0


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
        (("1",), {"delta": 1}, "delta must be from 0"),
        (("1",), {"delta": -1}, "delta must be from 0"),
        (((PureDP(1), 0),), {}, "how often"),
        (((PureDP(1), 1.5),), {}, "how often"),
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
