"""Profiles: which bound bounds what, and that bounds cannot contradict each other unnoticed."""

from dataclasses import replace

import pytest

from dpassay.core.guarantee import ApproxDP, PureDP
from dpassay.core.numbers import INFINITY, ZERO, down, number, up
from dpassay.core.theorems import Theorem
from dpassay.errors import DpassayError
from dpassay.exact.analysis import analyse
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Block, Pair


def candidate(gap: str) -> Candidate:
    loss = PrivacyLoss.of_shifts(Laplace(1), [(number(gap), 1)])
    return Candidate(Pair((Block(number(gap), ZERO, 1),)), PairBound((loss,), Theorem.LAPLACE))


def above(pure: str) -> PureBound:
    return PureBound(number(pure), Theorem.LAPLACE)


PROFILE = PrivacyProfile((candidate("1"), candidate("2")), (above("3"), above("2.5")), tail_lower_bound=number("2.25"))


def test_each_side_takes_its_best_curve() -> None:
    assert (down(PROFILE.pure), up(PROFILE.pure)) == (2.25, 2.5)
    assert PROFILE.dominating_pure() is PROFILE.candidates[1]
    assert PROFILE.dominating_at(number("1.5")) is PROFILE.candidates[1]
    assert PROFILE.upper_pure() is PROFILE.uppers[1]
    assert PROFILE.upper_at(ZERO) is PROFILE.uppers[1]


def test_tails_speak_of_pure_loss_only() -> None:
    # 1 − e^((2 − 2)/2) = 0: at ε = 2 no candidate loses anything, whatever the tails do.
    assert down(PROFILE.delta(number(2))) == 0
    assert down(PROFILE.lower_pure) == 2.25


def test_epsilon_and_delta_are_two_sides_of_one_curve() -> None:
    found = PROFILE.epsilon(number("0.01"))
    assert up(PROFILE.delta(number(up(found)))) <= 0.01 * (1 + 1e-9)
    assert down(PROFILE.delta(number(down(found)))) <= 0.01 * (1 + 1e-9)
    assert PROFILE.epsilon_above(number("0.01")).b >= found.b


@pytest.mark.parametrize(
    ("text", "dim", "epsilon", "delta"),
    [
        ("clip(l2, 1) | laplace(2)", 32, "1", "1e-6"),
        ("clip(l2, 1) | laplace(2)", 3000, "6", "1e-9"),
        ("clip(linf, 1) | laplace(8)", 40, "3", "1e-3"),
        ("dropout(0.5) | encode | clip(l2, 1) | laplace(2)", 64, "2", "1e-5"),
    ],
)
def test_a_quick_profile_is_wider_and_close(text: str, dim: int, epsilon: str, delta: str) -> None:
    guarantee = ApproxDP(epsilon, delta)
    pipeline = parse(text, dim=dim)
    whole = analyse(pipeline, pipeline.neighbours)
    whole = replace(whole, uppers=tuple(bound for bound in whole.uppers if bound.theorem is not Theorem.LEVELS))
    quick = whole.quick(guarantee)
    for known, wide in (
        (whole.epsilon(guarantee.exact_delta), quick.epsilon(guarantee.exact_delta)),
        (whole.delta(guarantee.exact_epsilon), quick.delta(guarantee.exact_epsilon)),
    ):
        assert wide.a <= known.a <= known.b <= wide.b
        assert known.a - wide.a <= 1e-3 * known.a  # the pairs that count are among those chosen
    assert quick.epsilon(guarantee.exact_delta).b <= 1.01 * whole.epsilon(guarantee.exact_delta).b
    assert quick.pure.a == whole.pure.a
    assert quick is whole or (quick.whole == whole and len(quick.candidates) <= len(whole.candidates))


def test_a_quick_profile_has_few_pairs() -> None:
    pipeline = parse("clip(l2, 1) | laplace(2)", dim=1000)
    whole = analyse(pipeline, pipeline.neighbours)
    quick = whole.quick(ApproxDP("1", "1e-6"))
    assert len(quick.candidates) <= 3 < len(whole.candidates)
    assert Theorem.LEVELS not in {bound.theorem for bound in quick.uppers}
    assert whole.quick(PureDP("1")) is whole
    assert PROFILE.quick(ApproxDP("1", "1e-6")) is PROFILE


def test_nothing_known() -> None:
    nothing = PrivacyProfile((), (above("1"),))
    assert nothing.dominating_pure() is None
    assert nothing.dominating_at(ZERO) is None
    assert (down(nothing.pure), up(nothing.pure)) == (0, 1)
    assert down(nothing.delta(ZERO)) == 0
    assert PrivacyProfile((), (above("1"), PureBound(INFINITY, Theorem.UNBOUNDED))).pure.b == 1


@pytest.mark.parametrize(
    "ask", [lambda p: p.pure, lambda p: p.delta(number("0.5")), lambda p: p.epsilon(number("0.1"))]
)
def test_a_contradiction_is_never_smoothed_over(ask) -> None:  # type: ignore[no-untyped-def]
    wrong = PrivacyProfile((candidate("2"),), (above("1"),))
    with pytest.raises(DpassayError, match="report this"):
        ask(wrong)
