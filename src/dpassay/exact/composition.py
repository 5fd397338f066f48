"""Several answers about the same data: basic composition, group privacy, and the exact composition.

Any (ε, δ)-DP mechanism is dominated by randomized response that leaks with probability δ, so the
composition of those is the best bound that (ε, δ) pairs alone allow: docs/proofs/optimal-composition.md.
"""

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from dpassay.core.guarantee import (
    GDP,
    ZCDP,
    ApproxDP,
    EpsilonDelta,
    Guarantee,
    PureDP,
    RenyiDP,
    make_guarantee,
    stated_guarantee,
)
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, exp, maximum, middle, minimum, number, real, sqrt
from dpassay.core.theorems import Theorem
from dpassay.errors import ExpressionError, InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounded_range import RangeBound, loss_divergence
from dpassay.exact.profiles.bounds import ProfileBound, RenyiBound, renyi_epsilon
from dpassay.exact.profiles.common_pairs import Part, composed, largest_epsilon, share_a_pair
from dpassay.exact.profiles.profile import enclose
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.sampling import Subsample
from dpassay.values import dataclass

MOST_ANSWERS = 1_000_000
USUAL_DELTA = "1e-6"  # at which ε is stated if nothing else is said


def basic(guarantees: Sequence[EpsilonDelta]) -> EpsilonDelta:
    """Add up ε and δ: docs/proofs/composition.md.

    >>> print(basic([PureDP(1), make_guarantee(0.5, 1e-6)]))
    (1.5, 1e-06)-DP
    """
    epsilon = sum((g.exact_epsilon for g in guarantees), ZERO)
    delta = sum((g.exact_delta for g in guarantees), ZERO)
    if delta.b >= 1:
        raise InputError("the deltas add up to 1 or more: nothing is guaranteed")
    return make_guarantee(epsilon, delta)


def group(guarantee: EpsilonDelta, size: int) -> EpsilonDelta:
    """What a guarantee for one person implies for a group of k: (kε, δ Σ e^(iε)) with i < k, docs/proofs/group.md.

    >>> print(group(make_guarantee(0.5, 1e-6), 3))
    (1.5, 5.3670030991...e-06)-DP
    """
    epsilon = guarantee.exact_epsilon
    terms = real(size) if epsilon == 0 else (exp(epsilon * size) - 1) / (exp(epsilon) - 1)
    return _of_group(guarantee, size, terms)


def simple_group(guarantee: EpsilonDelta, size: int) -> EpsilonDelta:
    """Group privacy with the simpler, larger bound on δ that is usually stated: (kε, k e^((k−1)ε) δ).

    >>> print(simple_group(make_guarantee(0.5, 1e-6), 3))
    (1.5, 8.1548454853...e-06)-DP
    """
    return _of_group(guarantee, size, size * exp(guarantee.exact_epsilon * (size - 1)))


def _of_group(guarantee: EpsilonDelta, size: int, terms: Number) -> EpsilonDelta:
    if not 1 <= size <= MOST_ANSWERS:
        raise InputError(f"a group has from 1 to {MOST_ANSWERS:,} members, got {size}")
    delta = guarantee.exact_delta * terms
    if delta.b >= 1:
        raise InputError(f"for a group of {size:,} delta would be 1 or more: nothing is guaranteed")
    return make_guarantee(guarantee.exact_epsilon * size, delta)


def dominating(guarantee: EpsilonDelta) -> PrivacyLoss:
    """The loss that dominates everything a guarantee allows: randomized response, and a leak with probability δ.

    >>> print(dominating(PureDP(1)).times(2).epsilon(1e-6))
    [1.99999..., 1.99999...]
    """
    epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
    keep = (1 - delta) / (1 + exp(-epsilon))
    atoms = ((epsilon, keep), (-epsilon, (1 - delta) - keep))
    if epsilon == 0:
        atoms = ((ZERO, 1 - delta),)  # type: ignore[assignment]
    return PrivacyLoss(((AtomLoss(atoms, delta), 1),))


@dataclass(frozen=True)
class Answer:
    """A loss that no pair of neighbors exceeds, how often it occurs, and whether a pair attains it.

    For a mechanism, `part` has what else is known about it. If only a `stated` bound on Rényi divergences is known, the
    loss is that of Gaussian noise that satisfies it: some mechanisms lose as much, others may lose more.

    >>> print(Answer(dominating(PureDP(1))).count)
    1
    """

    loss: PrivacyLoss
    count: int = 1
    exact: bool = True
    part: Part | None = None
    stated: ZCDP | RenyiDP | None = None
    back: PrivacyLoss | None = None  # for the other order of two data sets, if it differs

    @property
    def losses(self) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The loss of either order."""
        return self.loss, self.loss if self.back is None else self.back

    @property
    def leaked(self) -> Number:
        """The δ of a guarantee about which nothing else is known."""
        return self.loss.infinite if self.part is None and self.stated is None else ZERO

    @property
    def bounds(self) -> tuple[ProfileBound, ...]:
        """Bounds in addition to the loss."""
        return self.part.profile.uppers if self.part is not None else ()

    def epsilon(self, delta: Number) -> Number:
        """ε(δ) of one answer: the smallest of all bounds."""
        if self.stated is not None:
            return INFINITY if delta == 0 else renyi_epsilon(self.divergence, delta)
        if delta == 0:
            return minimum(maximum(*(loss.pure for loss in self.losses)), *(bound.pure for bound in self.bounds))
        own = maximum(*(loss.epsilon_number(delta) for loss in dict.fromkeys(self.losses)))
        return minimum(own, *(bound.epsilon_above(delta) for bound in self.bounds))

    def divergence(self, order: Number) -> Number:
        """A bound on the Rényi divergence of one answer; divergences increase with the order."""
        if isinstance(self.stated, ZCDP):
            return self.stated.exact_rho * order
        if self.stated is not None:
            return self.stated.exact_epsilon if order.b <= self.stated.exact_order.a else INFINITY
        known = [bound for bound in self.bounds if isinstance(bound, RangeBound | RenyiBound)]
        own = maximum(*(loss_divergence(loss, order) for loss in dict.fromkeys(self.losses)))
        return minimum(own, *(bound.divergence(order) for bound in known))


def mechanism_answer(pipeline: Pipeline, count: int = 1, neighbours: Neighbours | None = None) -> Answer:
    """What a mechanism contributes to a composition; exact if the dominating pair is known.

    >>> print(mechanism_answer(parse("query(l2, 1) | gaussian(2)")).loss.times(4).epsilon(1e-6))
    [4.886554117, 4.886554118]
    """
    relation = neighbours or pipeline.neighbours
    profile = analyse(pipeline, relation)
    part = Part(pipeline, relation.kind, profile, count)
    attained = [c.bound.losses for c in profile.candidates if c.bound.losses]
    for bound in sorted(profile.uppers, key=lambda upper: upper.pure.b):
        if len(bound.losses) == 1:
            return Answer(bound.losses[0], count, bound.losses in attained, part)
        if bound.theorem == Theorem.POISSON and len(bound.losses) == 2:
            return Answer(bound.losses[0], count, bound.losses in attained, part, back=bound.losses[1])
    if profile.pure.b == INFINITY:
        return Answer(PrivacyLoss(((AtomLoss((), ONE), 1),)), count, profile.least_delta == 1, part)
    return Answer(dominating(PureDP(real(profile.pure.b))), count, exact=False, part=part)


def exact_epsilon(answers: Sequence[Answer], delta: Number) -> Number:
    """ε of all answers at a total δ: from the lower bound of one pair of inputs to the upper bound for all pairs.

    >>> print(float(exact_epsilon([Answer(dominating(PureDP(1)), 2)], ZERO).b))
    2.0
    """
    if not answers:
        raise InputError("nothing to compose: give at least one guarantee or mechanism")
    ways = [composed(answer.losses[way].times(answer.count) for answer in answers) for way in (0, 1)]
    total, whole = ways[0], maximum(*(way.epsilon_number(delta) for way in dict.fromkeys(ways)))
    dominated = INFINITY if any(answer.stated is not None for answer in answers) else whole
    upper = minimum(dominated, basic_epsilon(answers, delta), _renyi(answers, total, delta))
    parts = [answer.part for answer in answers if answer.part is not None]
    alike = share_a_pair(parts)
    if alike and all(answer.exact for answer in answers):
        # Sampled steps on their own may show what the coarse grid of a mixed sum does not.
        sampled = [loss.times(a.count) for a in answers if a.back is not None for loss in a.losses]
        lower = maximum(whole, *(loss.epsilon_number(delta) for loss in sampled if len(answers) > 1))
    elif alike and delta == 0:
        lower = sum((a.count * (a.loss.pure if a.part is None else a.part.profile.lower_pure) for a in answers), ZERO)
    else:
        known = [answer.loss.times(answer.count) for answer in answers if answer.part is None]
        lower = largest_epsilon(parts, known, delta)
    return enclose(lower, upper)


def _renyi(answers: Sequence[Answer], total: PrivacyLoss, delta: Number) -> Number:
    """ε(δ) by Rényi divergences, which add up, where they may be tighter: docs/proofs/composition.md, point 9."""
    left = (delta - total.infinite) / (1 - total.infinite) if total.infinite.b < 1 else ZERO
    stated = any(answer.stated is not None for answer in answers)
    if left.a <= 0 or not (
        stated or any(isinstance(bound, RangeBound | RenyiBound) for a in answers for bound in a.bounds)
    ):
        return INFINITY
    return renyi_epsilon(lambda order: sum((a.count * a.divergence(order) for a in answers), ZERO), left)


def basic_epsilon(answers: Sequence[Answer], delta: Number) -> Number:
    """Basic composition at a total δ: each answer gets the δ that it leaks, and an equal share of the rest."""
    total = sum(answer.count for answer in answers)
    rest = (delta - leaked(answers)) / total
    if rest.a < 0:
        return INFINITY if rest.b < 0 else between(ZERO, INFINITY)
    return sum((answer.epsilon(answer.leaked + rest) * answer.count for answer in answers), ZERO)


def leaked(answers: Sequence[Answer]) -> Number:
    """The sum of the δ of all guarantees."""
    return sum((answer.leaked * answer.count for answer in answers), ZERO)


def read_answer(text: str, dim: int | None = None) -> Answer:
    """Read an answer and how often it is given: a guarantee or a pipeline, perhaps followed by ' x N'.

    A guarantee is 'EPS', 'EPS,DELTA', 'rho=RHO', 'mu=MU' or 'order=ORDER,epsilon=EPS'.

    >>> answer = read_answer("0.5, 1e-6 x 10")
    >>> answer.count, float(answer.loss.infinite.mid)
    (10, 1e-06)
    """
    body, times, last = text.rpartition(" x ")
    if not times:
        body, last = text, "1"
    if not last.strip().isdecimal() or len(last) > 10 or not 1 <= int(last) <= MOST_ANSWERS:
        raise InputError(
            f"the number of repetitions must be a whole number from 1 to {MOST_ANSWERS:,}, got {last!r} in {text!r}"
        )
    if "(" in body:
        try:
            return mechanism_answer(parse(body, dim), int(last))
        except ExpressionError as error:
            if not any(argument in error.message for argument in ("parameters=", "epsilon=", "delta=")):
                raise
            raise ExpressionError("a composed pipeline takes numbers, not names", error.text, error.position) from None
    return replace(_of_guarantee(_read_guarantee(body)), count=int(last))


def _read_guarantee(text: str) -> Guarantee:
    if "=" not in text:
        epsilon, _, delta = text.partition(",")
        return make_guarantee(epsilon.strip(), delta.strip() or 0)
    given = [part.partition("=") for part in text.split(",")]
    stated = {name.strip(): value.strip() for name, _, value in given}
    if len(stated) < len(given) or not stated.keys() <= {"epsilon", "delta", "order", "rho", "mu"}:
        raise InputError(f"a guarantee is EPS, EPS,DELTA, rho=RHO, mu=MU or order=ORDER,epsilon=EPS; got {text!r}")
    return stated_guarantee(**stated)


def _of_guarantee(guarantee: Guarantee) -> Answer:
    """The contribution of a mechanism about which only a guarantee is known."""
    if isinstance(guarantee, PureDP | ApproxDP):
        return Answer(dominating(guarantee))
    if isinstance(guarantee, GDP):
        return Answer(PrivacyLoss(((GaussianLoss(guarantee.exact_mu), 1),)))
    if isinstance(guarantee, ZCDP | RenyiDP):
        order = guarantee.exact_order if isinstance(guarantee, RenyiDP) else ONE
        shift = sqrt(2 * guarantee.value / order)
        return Answer(PrivacyLoss(((GaussianLoss(shift), 1),)), exact=False, stated=guarantee)
    raise InputError(f"{guarantee} depends on distances, so it cannot be composed: compose the mechanism itself")


@dataclass(frozen=True)
class Composition:
    """The total loss of some answers at a total δ: ε by basic composition, and exactly.

    It holds for two inputs that are neighbors in every sense in `neighbours`: those of the mechanisms. Where the
    answers are about disjoint parts of the data, `basic` and `exact` are both those of parallel composition.
    """

    count: int
    delta: float
    basic: Interval
    exact: Interval
    neighbours: tuple[Neighbours, ...] = ()
    exact_delta: Number = field(default=ZERO, repr=False)

    @property
    def guarantee(self) -> EpsilonDelta | None:
        """The guarantee that holds for neighbors; None if no ε holds."""
        return make_guarantee(self.exact.upper, self.exact_delta) if self.exact.upper < math.inf else None


def compose(
    *answers: str | Pipeline | Guarantee | tuple[Pipeline | Guarantee, int],
    delta: Any = None,
    dim: int | None = None,
) -> Composition:
    """The total privacy loss of several answers about the same data, at a total δ.

    An answer is a guarantee, a pipeline, or a pair of one of these and the number of times it is given. As a text it is
    'EPS', 'EPS,DELTA', 'rho=RHO', 'mu=MU' or a pipeline (in dimension `dim`), perhaps followed by ' x N'. Unless δ is
    given, it is 1e-6, or the sum of the answers' own δ if that is larger.

    >>> total = compose("0.1 x 100", delta=1e-6)
    >>> print(total.basic, total.exact)
    [9.999998095, 9.999998096] [4.774567588, 4.774567589]
    >>> compose((PureDP(1), 2), delta=0).exact
    Interval(2.0, 2.0)
    """
    given, at = _given(answers, dim), None if delta is None else _checked(delta)
    _have_neighbours(given)
    at = _largest(leaked(given)) if at is None else at
    simple = Interval.around(basic_epsilon(given, at), Theorem.COMPOSITION.page)
    exact = Interval.around(exact_epsilon(given, at), Theorem.OPTIMAL_COMPOSITION.page)
    return _composition(given, at, simple, exact)


def compose_parallel(
    *answers: str | Pipeline | Guarantee | tuple[Pipeline | Guarantee, int],
    delta: Any = None,
    dim: int | None = None,
) -> Composition:
    """The privacy loss of several answers about disjoint parts of the data, of which two neighbors differ in one.

    The largest ε at δ of a single answer, docs/proofs/parallel.md; answers are given as to `compose`.

    >>> compose_parallel("0.5 x 100", "1,1e-8", delta=1e-8).exact
    Interval(1.0, 1.0)
    """
    given, at = _given(answers, dim), None if delta is None else _checked(delta)
    once = [replace(answer, count=1, part=answer.part and replace(answer.part, count=1)) for answer in given]
    at = _largest(*(answer.leaked for answer in once)) if at is None else at
    found = Interval.around(maximum(*(exact_epsilon([answer], at) for answer in once)), Theorem.PARALLEL.page)
    return _composition(given, at, found, found)


def _given(answers: Sequence[Any], dim: int | None) -> list[Answer]:
    if not answers:
        raise InputError("nothing to compose: give at least one guarantee or mechanism")
    return [read_answer(answer, dim) if isinstance(answer, str) else _answer(answer) for answer in answers]


def _checked(delta: Any) -> Number:
    try:
        at = number(delta)
    except InputError:
        raise InputError(f"delta must be a number, at least 0 and less than 1, got {delta!r}") from None
    if at.a < 0 or at.b >= 1:
        raise InputError(f"delta must be at least 0 and less than 1, got {delta}")
    return at


def _largest(*deltas: Number) -> Number:
    found = number(USUAL_DELTA)
    for delta in deltas:  # differences of decimals are exact, so that equal ones are seen to be equal
        more = delta - found
        found = delta if more.a > 0 else maximum(found, delta) if more.b > 0 else found
    if found.b >= 1:
        raise InputError("the deltas add up to 1 or more: nothing is guaranteed")
    return found


def _composition(answers: Sequence[Answer], delta: Number, simple: Interval, exact: Interval) -> Composition:
    relations = {answer.part.kind: Neighbours(answer.part.kind) for answer in answers if answer.part is not None}
    count = sum(answer.count for answer in answers)
    return Composition(count, middle(delta), simple, exact, tuple(relations.values()), delta)


def _have_neighbours(answers: Sequence[Answer]) -> None:
    """Refuse mechanisms of which no two data sets are neighbors: a record more changes the size, one replaced not."""
    parts = {answer.part.kind: answer.part.pipeline for answer in answers if answer.part is not None}
    if {"add-remove-record", "replace-record"} <= parts.keys():
        added, replaced = (parts[kind].stages[0].syntax.name for kind in ("add-remove-record", "replace-record"))
        raise InputError(
            f"{added} is about two data sets of which one has a record more, {replaced} about two of the same size in "
            "which one record is replaced: no two data sets are both, so their losses do not add up. Compose "
            "mechanisms that draw records in the same way: poisson(rate) in all of them, or subsample(m, n)"
        )
    firsts = [answer.part.pipeline.stages[0] for answer in answers if answer.part is not None]
    sizes = sorted({first.records for first in firsts if isinstance(first, Subsample)})
    if len(sizes) > 1:
        raise InputError(
            f"subsample(m, n) is about data sets of n records, and no data set has both {sizes[0]:,} and "
            f"{sizes[-1]:,}: give the same n in all mechanisms"
        )


def _answer(given: Any) -> Answer:
    subject, count = given if isinstance(given, tuple) and len(given) == 2 else (given, 1)
    if not isinstance(count, int) or not 1 <= count <= MOST_ANSWERS:
        raise InputError(f"the number of repetitions must be a whole number from 1 to {MOST_ANSWERS:,}, got {count!r}")
    if isinstance(subject, Pipeline):
        return mechanism_answer(subject, count)
    if isinstance(subject, Guarantee):
        return replace(_of_guarantee(subject), count=count)
    raise InputError(f"an answer is a text, a pipeline or a guarantee, got {subject!r}")
