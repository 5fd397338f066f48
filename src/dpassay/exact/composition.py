"""Several answers about the same data: basic composition, group privacy, and the exact composition.

Any (ε, δ)-DP mechanism is dominated by randomized response that leaks with probability δ, so the
composition of those is the best bound that (ε, δ) pairs alone allow: docs/proofs/optimal-composition.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpassay.core.guarantee import Guarantee, PureDP, make_guarantee
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, iv
from dpassay.errors import ExpressionError, InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.loss_components import AtomLoss
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile_bounds import PairBound
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline


def basic(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Add up ε and δ.

    >>> print(basic([PureDP(1), make_guarantee(0.5, 1e-6)]))
    (1.5, 1e-06)-DP
    """
    epsilon = sum((g.exact_epsilon for g in guarantees), ZERO)
    delta = sum((g.exact_delta for g in guarantees), ZERO)
    if delta.b >= 1:
        raise InputError("the deltas add up to 1 or more: nothing is guaranteed any more")
    return make_guarantee(epsilon, delta)


def group(guarantee: Guarantee, size: int) -> Guarantee:
    """What a guarantee for one person says of a group: (kε, k e^((k−1)ε) δ).

    >>> print(group(make_guarantee(0.5, 1e-6), 3))
    (1.5, 8.154845485e-06)-DP
    """
    if size < 1:
        raise InputError(f"a group has at least one member, got {size}")
    epsilon = guarantee.exact_epsilon
    delta = guarantee.exact_delta * size * iv.exp(epsilon * (size - 1))
    if delta.b >= 1:
        raise InputError(f"for a group of {size} delta would be 1 or more: nothing is guaranteed any more")
    return make_guarantee(epsilon * size, delta)


def dominating(guarantee: Guarantee) -> PrivacyLoss:
    """The loss that dominates all that a guarantee allows: randomized response, and a leak with probability δ.

    >>> print(dominating(PureDP(1)).times(2).epsilon(1e-6))
    [1.99999..., 1.99999...]
    """
    epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
    keep = (1 - delta) / (1 + iv.exp(-epsilon))
    atoms = ((epsilon, keep), (-epsilon, (1 - delta) - keep))
    if epsilon == 0:
        atoms = ((ZERO, 1 - delta),)  # type: ignore[assignment]
    return PrivacyLoss(((AtomLoss(atoms, delta), 1),))


@dataclass(frozen=True)
class Answer:
    """A loss that no pair of neighbours exceeds, how often it occurs, and whether a pair attains it.

    >>> print(Answer(dominating(PureDP(1))).count)
    1
    """

    loss: PrivacyLoss
    count: int = 1
    exact: bool = True


def mechanism_answer(pipeline: Pipeline, count: int = 1, neighbours: Neighbours | None = None) -> Answer:
    """What a mechanism contributes to a composition; exact where the dominating pair is known.

    >>> print(mechanism_answer(parse("query(l2, 1) | gaussian(2)")).loss.times(4).epsilon(1e-6))
    [4.886554117, 4.886554118]
    """
    profile = analyse(pipeline, neighbours or pipeline.neighbours)
    attained = [c.bound.losses for c in profile.candidates if isinstance(c.bound, PairBound)]
    for bound in sorted(profile.uppers, key=lambda upper: upper.pure.b):
        if isinstance(bound, PairBound) and len(bound.losses) == 1:
            return Answer(bound.losses[0], count, bound.losses in attained)
    if profile.pure.b == INFINITY:
        return Answer(PrivacyLoss(((AtomLoss((), ONE), 1),)), count, exact=profile.pure.a == INFINITY)
    return Answer(dominating(PureDP(iv.mpf(profile.pure.b))), count, exact=False)


def exact_epsilon(answers: Sequence[Answer], delta: Number) -> Number:
    """ε of all answers at a total δ. Where an answer's dominating pair is not known, only the upper end counts.

    >>> print(float(exact_epsilon([Answer(dominating(PureDP(1)), 2)], ZERO).b))
    2.0
    """
    if not answers:
        raise InputError("nothing to compose: give at least one guarantee or mechanism")
    first, *others = (answer.loss.times(answer.count) for answer in answers)
    epsilon = first.compose(*others).epsilon_number(delta)
    return epsilon if all(answer.exact for answer in answers) else between(ZERO, epsilon)


def basic_epsilon(answers: Sequence[Answer], delta: Number) -> Number:
    """Basic composition at a total δ: each answer gets an equal share of it."""
    total = sum(answer.count for answer in answers)
    if delta == 0:
        return sum((answer.loss.pure * answer.count for answer in answers), ZERO)
    return sum((answer.loss.epsilon_number(delta / total) * answer.count for answer in answers), ZERO)


def read_answer(text: str, dim: int | None = None) -> Answer:
    """Read an answer and how often it is given: 'EPS', 'EPS,DELTA' or a pipeline, perhaps with ' x N' behind it.

    >>> answer = read_answer("0.5, 1e-6 x 10")
    >>> answer.count, float(answer.loss.infinite.mid)
    (10, 1e-06)
    """
    body, times, last = text.rpartition(" x ")
    if not times:
        body, last = text, "1"
    if not last.strip().isdecimal() or len(last) > 10 or not 1 <= int(last) <= 1_000_000:
        raise InputError(f"how often must be a whole number from 1 to 1000000, got {last!r} in {text!r}")
    if "(" in body:
        try:
            return mechanism_answer(parse(body, dim), int(last))
        except ExpressionError as error:
            if not any(option in error.message for option in ("--set", "--epsilon", "--delta")):
                raise
            raise ExpressionError("a composed pipeline takes numbers, not names", error.text, error.position) from None
    epsilon, _, delta = body.partition(",")
    return Answer(dominating(make_guarantee(epsilon.strip(), delta.strip() or 0)), int(last))
