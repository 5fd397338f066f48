"""What a few watched runs of two inputs suggest: the loss of the noise as coded, and what is wrong.

It decides nothing; only trials and counted natural runs do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from dpassay.core.numbers import INFINITY, ZERO, Number, number
from dpassay.errors import MechanismError
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.trace.findings.doubts import (
    doubted,
    far_out,
    hidden,
    holds_far_out,
    keeps_answers,
    mixes_fresh_and_cached_noise,
    other_randomness,
    untracked_draw,
    unused,
    why_unknown,
)
from dpassay.trace.findings.findings import Finding, scaled_by_input, shared, stale, too_large, wrong_formula
from dpassay.trace.laws.choices import judged_choices
from dpassay.trace.laws.losses import alone, behind, coordinates, of_different_scales, pair_loss
from dpassay.trace.natural.outputs import path_of
from dpassay.trace.natural.projections import Centres
from dpassay.trace.replay.matching import Matching, matchings
from dpassay.trace.replay.paths import Paths, holds_on, learned
from dpassay.trace.replay.pieces import Pieces, learned_pieces
from dpassay.trace.replay.replaying import NoiseSite, Replay, released_nodes, replay
from dpassay.trace.replay.shared_noise import SharedShift, shared_noises
from dpassay.trace.replay.trials import matched
from dpassay.trace.watch.record import CodeLine, DrawRecord, RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

REPLAYS = 3
AGAIN = 12  # further ones, if other draws may decide which noise is used
MUCH = 2_000.0  # times the usual noise, and its rounding: the most in a few runs before the trials
TIE, TIE_OF_FLOATS = number("1e-6"), number("1e-5")  # relative: a smaller excess over the claim is rounding


@dataclass(frozen=True, eq=False)
class Suggested:
    """What the watched runs of one pair suggest: bounds on the loss, findings that would explain it, and doubts."""

    lower: Number
    upper: Number
    loss: PrivacyLoss | None
    findings: tuple[Finding, ...]
    doubts: tuple[Finding, ...]
    uses: tuple[NoiseSite, ...]
    pair: tuple[Any, Any]
    draws: tuple[DrawRecord, ...]
    run: RecordedRun
    around: bool  # whether the outputs differ even if all sums with noise are the same
    pipeline: str = ""
    chosen: Any = None  # if the code draws one of several things
    matching: Matching | None = None  # if both inputs have the same sums in a different order
    # If each path has its own shift of the noise, or its own piece of the density, or sums share drawn numbers.
    paths: Paths | Pieces | SharedShift | None = None

    @property
    def sums(self) -> tuple[int, ...]:
        """The numbers with noise that hide the inputs, by their position in a run."""
        numbers = {id(node): k for k, node in enumerate(self.run.nodes)}
        return tuple(numbers[id(use.x)] for use in self.uses)

    @property
    def centres(self) -> Centres | None:
        """Where the noisy numbers lie, if all have Laplace noise or all have Gaussian noise."""
        laws = [[use.laws[k] for use in self.uses] for k in (0, 1)]
        kinds = {str(kind) for law in laws[0] for kind in law.kind.reshape(-1)} - {"none"}
        if kinds not in ({"laplace"}, {"gaussian"}):
            return None
        first, second = (np.concatenate([law.centre.reshape(-1) for law in side]) for side in laws)
        scale = np.abs(np.concatenate([law.scale.reshape(-1) for law in laws[0]]))
        return Centres(first, second, scale, kinds == {"gaussian"}) if first.shape == second.shape else None


def limit_of(guarantee: Any, draws: Sequence[DrawRecord]) -> Number:
    """The claimed ε with a margin for rounding."""
    doubles = all(draw.values.dtype.itemsize >= 8 for draw in draws)
    epsilon: Number = guarantee.exact_epsilon
    return epsilon * (1 + (TIE if doubles else TIE_OF_FLOATS))


def suggested(tracer: Tracer, x: Any, y: Any, guarantee: Any) -> Suggested:
    """Watch a few runs of a pair."""
    nodes, branching = released_nodes(tracer, x, y)
    replays = [replay(tracer, x, y, nodes) for _ in range(REPLAYS)]
    first = replays[0]
    uses, delta = first.uses, guarantee.exact_delta
    found = [one for use in uses for one in (stale(replays, use), scaled_by_input(use)) if one is not None]
    if (both := shared(uses)) is not None and _always_shared(tracer, x, y, nodes, replays, both):
        found.append(both)
    steady = all(_alike(first, other) for other in replays[1:])
    constant = mixes_fresh_and_cached_noise(replays)
    exact = steady and not constant and not hidden(first) and not other_randomness(replays)
    fresh = not any(one.infinite for one in found)
    lower, upper, loss = ZERO, INFINITY, None
    everything = pair_loss(uses) if steady and first.comparable and all(one.equal for one in replays) else None
    seen = not branching and not constant and not hidden(first)
    seen = seen and (untracked_draw(replays) is None or unused(tracer, (x, y), replays))
    seen = seen and not keeps_answers(tracer, (x, y))
    if everything is not None and fresh and seen and holds_far_out(tracer, x, y, nodes):
        upper = everything.epsilon(delta)
    if exact:
        lower, loss, more = _lower(first, guarantee, least=upper.a == INFINITY.a)
        if (more or not fresh) and (keeps_answers(tracer, (x, y)) or doubted(tracer, (x, y), first)):
            exact, lower, loss, more, found = False, ZERO, None, [], []
        found += more
    if exact and not fresh:
        lower = INFINITY
    around = set.intersection(*(set(one.differing) for one in replays))
    doubts = (*_unseen(replays), *_why_open(tracer, (x, y), replays, sorted(around), hidden(first)))
    judged = Suggested(
        *(lower, upper, loss, tuple(found), doubts, uses, (x, y), tuple(first.x.draws), first.x, bool(around)),
        pipeline="" if _same_noise_everywhere(replays) else "noise that other drawn numbers pick",
    )
    chosen = judged_choices(tracer, (x, y), (first.x, first.y), guarantee) if not (found or hidden(first)) else None
    if chosen is None:
        usable = fresh and not constant and not hidden(first) and upper.b > limit_of(guarantee, first.x.draws).b
        if usable and steady and first.comparable and seen:
            judged = _matched(tracer, judged, first, guarantee)
        usable = usable and judged.matching is None and not keeps_answers(tracer, (x, y))
        if usable:
            judged = _shifted_together(tracer, judged, guarantee)
        if usable and judged.paths is None and first.x.comparisons:
            judged = _in_pieces(tracer, judged, guarantee)
            judged = judged if judged.paths is not None else _on_each_path(tracer, judged, guarantee)
        return judged
    judged = replace(judged, lower=chosen.lower, upper=chosen.upper, loss=chosen.loss, findings=chosen.findings)
    return replace(judged, doubts=(), pipeline=chosen.pipeline, chosen=chosen)


def _always_shared(
    tracer: Tracer, x: Any, y: Any, nodes: frozenset[int], replays: Sequence[Replay], found: Finding
) -> bool:
    """Whether all runs share noise in this way: what other draws pick may be the same only now and then."""
    further = (replay(tracer, x, y, nodes) for _ in range(AGAIN if other_randomness(replays) else 0))
    return all(shared(one.uses) == found for one in (*replays[1:], *further))


def _same_noise_everywhere(replays: Sequence[Replay]) -> bool:
    """Whether each sum has the same drawn numbers in it in all replays."""
    indices = [[one.x.relative(index) for use in one.uses for index, _ in use.x.terms] for one in replays]
    return all(
        len(own) != len(indices[0]) or all(map(np.array_equal, own, indices[0])) for own in indices[1:]
    )  # where their number differs, another sentence says so


def _matched(tracer: Tracer, judged: Suggested, first: Replay, guarantee: Any) -> Suggested:
    """The same with sums in another order, if their loss is then within the claim and the outputs of a few runs agree.

    Then the released numbers do not reveal which sum is which.
    """
    for matching in matchings(judged.uses, (first.x, first.y)):
        loss = matching.loss
        upper = INFINITY if loss is None else loss.epsilon(guarantee.exact_delta)
        if upper.b <= limit_of(guarantee, first.x.draws).b and _agree(
            tracer, judged.pair, partial(matched, tracer, judged.pair, matching)
        ):
            judged = replace(judged, lower=ZERO, upper=upper, loss=None, findings=(), doubts=())
            return replace(judged, around=False, matching=matching)
    return judged


def _on_each_path(tracer: Tracer, judged: Suggested, guarantee: Any) -> Suggested:
    """The same with a separate shift of the noise on each path, if that costs no more than is claimed."""
    try:
        paths = learned(tracer, judged.pair, float(limit_of(guarantee, judged.draws).b))
        if paths is None or not all(holds_on(tracer, judged.pair, at, far_out(judged.run), paths) for at in (0, 1)):
            return judged
    except MechanismError:
        return judged
    judged = replace(judged, lower=ZERO, upper=number(paths.epsilon), loss=None, findings=(), doubts=(), uses=())
    return replace(judged, around=False, pipeline=str(paths), paths=paths)


def _in_pieces(tracer: Tracer, judged: Suggested, guarantee: Any) -> Suggested:
    """The same with a separate piece of the noise density on each path, if the loss is within the claim."""
    try:
        pieces = learned_pieces(tracer, judged.pair)
    except MechanismError:
        return judged
    if pieces is None or not pieces.epsilon.b <= limit_of(guarantee, judged.draws).b:
        return judged
    judged = replace(judged, lower=ZERO, upper=pieces.epsilon, loss=None, findings=(), doubts=(), uses=())
    return replace(judged, around=False, pipeline=str(pieces), paths=pieces)


def _shifted_together(tracer: Tracer, judged: Suggested, guarantee: Any) -> Suggested:
    """The same with sums that share drawn numbers, if one shift of these loses no more than is claimed."""
    try:
        for shared in shared_noises(tracer, judged.pair, judged.run):
            upper = shared.loss.epsilon(guarantee.exact_delta)
            within = upper.b <= limit_of(guarantee, judged.draws).b
            if within and _agree(tracer, judged.pair, partial(shared.judged, tracer, judged.pair, far=MUCH)):
                judged = replace(judged, lower=ZERO, upper=upper, loss=None, findings=(), doubts=(), uses=())
                return replace(judged, around=False, pipeline=str(shared), paths=shared)
    except (MechanismError, np.linalg.LinAlgError):
        return judged
    return judged


def _agree(tracer: Tracer, pair: tuple[Any, Any], different: Callable[[int, RecordedRun], str]) -> bool:
    """Whether the outputs are the same in a few runs, also with much more noise."""
    try:
        for at, x in enumerate(pair):
            for k, noise in enumerate([*[None] * REPLAYS, *far_out(tracer.run(x))]):
                run = tracer.run(x, noise, key=(tracer.seed, 6, k))
                run.key = (tracer.seed, 6, k)
                if different(at, run):
                    return False
    except MechanismError:
        return False
    return True


def _why_open(
    tracer: Tracer, pair: tuple[Any, Any], replays: Sequence[Replay], around: list[int], unseen: bool
) -> list[Finding]:
    """Why a differing part of the output is not necessarily a leak."""
    if not around or unseen or not all(one.comparable for one in replays):
        return []
    if (why := why_unknown(tracer, pair, replays, around[0])) is None:
        return []
    rule, place, said = why
    return [Finding(rule, place, said.format(where=path_of(replays[0].x.output, around[0])))]


def _lower(first: Replay, guarantee: Any, least: bool) -> tuple[Number, PrivacyLoss | None, list[Finding]]:
    """What the released numbers show, and what they show after rounding or clamping.

    `least`: other parts of the output may show more.
    """
    delta, limit = guarantee.exact_delta, limit_of(guarantee, first.x.draws).b
    released = [use for use in first.uses if use.released and alone(use)]
    found: list[Finding] = []
    lower, loss = ZERO, None
    if released and (together := pair_loss(released)) is not None:
        lower, loss = together.epsilon(delta), together.worst(delta)
    elif released and (parts := coordinates(released)) is not None:
        lower = of_different_scales(parts, delta)
    if lower.a > limit:
        found = [one for use in released if (one := wrong_formula(use)) is not None]
        found.append(too_large(released, lower, str(guarantee), least=least or loss is None))
    for coarse in first.coarse:
        shown = behind(coarse, delta)
        if shown.a > limit and shown.a > lower.a:
            hidden = [NoiseSite(coarse.of_x, coarse.of_y, released=False)]
            lower, found = shown, [too_large(hidden, shown, str(guarantee), least=True, behind=True)]
    return lower, loss, found


def _alike(one: Replay, other: Replay) -> bool:
    """Whether what is hidden, and the noise on it, is the same in two replays."""
    if not (one.comparable and other.comparable) or len(one.uses) != len(other.uses):
        return False
    return all(
        first.released == second.released and first.like(second)
        for first, second in zip(one.uses, other.uses, strict=True)
    )


def _unseen(replays: Sequence[Replay]) -> list[Finding]:
    found = [
        Finding("opaque", place, f"{place} takes random numbers from {name}, which cannot be followed: audit it")
        for name, place in dict.fromkeys(replays[0].x.opaque)
    ]
    other = [one for one in replays if not one.comparable]
    if (differing := next((one for one in other if _draws(one.x) != _draws(one.y)), None)) is not None:
        place, what = _first_difference(_draws(differing.x), _draws(differing.y))
        found.append(Finding("draws-differ", place, f"{what}, so their draws cannot be compared"))
    elif other:
        said = "what the code does with its noise depends on the noise or on the input, so the runs cannot be compared"
        found.append(Finding("unfollowed", None, said))
    return found


Drawn = tuple[str, tuple[int, ...], CodeLine]


def _first_difference(ours: Sequence[Drawn], theirs: Sequence[Drawn]) -> tuple[CodeLine, str]:
    """Where the draws of two inputs first differ, and how."""
    for (name, shape, place), (other, its, there) in zip(ours, theirs, strict=False):
        if (name, place) == (other, there) and shape != its:
            counts = f"{prod(shape):,} for one input and {prod(its):,} for the other"
            return place, f"the numbers that {place} draws with {name} are {counts}"
        if (name, place) != (other, there):
            return place, f"one input draws with {name} at {place} where the other draws with {other} at {there}"
    name, _, place = max(ours, theirs, key=len)[min(len(ours), len(theirs))]
    return place, f"one input draws with {name} at {place} where the other draws nothing more"


def _draws(run: RecordedRun) -> list[Drawn]:
    return [(draw.distribution, draw.shape, draw.place) for draw in run.draws]
