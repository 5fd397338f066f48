"""Reasons to doubt a loss computed from the noise of two runs, checked before it refutes a claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpassay.errors import MechanismError
from dpassay.trace.findings.findings import formula_of, varies
from dpassay.trace.laws.formulas import bases
from dpassay.trace.laws.losses import alone
from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.natural.outputs import described, leaves, same
from dpassay.trace.replay.replaying import STRETCH, NoiseSite, Replay, feeding_of, replay, stretched, values_of
from dpassay.trace.watch.record import Array, DrawRecord, Node, RecordedRun, distinct
from dpassay.trace.watch.tracer import Tracer

FACTORS = (0.1, -0.5, 2, -4, 1, 8)  # times the noise of a run


def mixes_fresh_and_cached_noise(replays: Sequence[Replay]) -> bool:
    """Whether fresh noise is added to noise that all calls share, such as a projection that is drawn once.

    Noise that all calls share is a constant and adds nothing to the variance.
    """
    first = replays[0]
    numbers = {draw.start: k for k, draw in enumerate(first.x.draws)}
    return any(
        len({draw.start in numbers and varies(replays, numbers[draw.start], draw) for draw in use.draws}) > 1
        for use in first.uses
    )


def keeps_answers(tracer: Tracer, pair: Sequence[Any]) -> bool:
    """Whether each input drew noise in its first run and less afterwards, so that its runs are not independent.

    If the number of draws is random, the first run may draw most by chance; then later runs differ too.
    """
    counts = [tracer.drawn.get(repr(x), (0, set())) for x in pair]
    return all(len(later) == 1 and max(later) < first for first, later in counts)


def doubted(tracer: Tracer, pair: Sequence[Any], first: Replay) -> bool:
    """Whether runs with other noise use it differently than observed, so that a loss is not exact."""
    shown = [*((use.x, use.y) for use in first.uses if use.released), *((one.x, one.y) for one in first.coarse)]
    numbers = [k for k, node in enumerate(first.x.nodes) if any(node is x for x, _ in shown)]
    hiding = [*(x for x, _ in shown), *(one.of_x for one in first.coarse)]
    try:
        return not (_come_out(tracer, pair, first, numbers) and _others_are_idle(tracer, pair, first, hiding))
    except MechanismError:
        return True


def _come_out(tracer: Tracer, pair: Sequence[Any], first: Replay, numbers: list[int]) -> bool:
    """Whether the numbers are in the output, always at the same position, and nothing else changes it."""
    for x in pair:
        places: dict[int, set[int]] = {}
        for k, noise in enumerate(_patterns(first.x.draws)):
            run = tracer.run(x, noise)
            if len(run.nodes) != len(first.x.nodes):
                return False
            output = leaves(run.output)
            if k < 2 and not all(same(output, leaves(tracer.run(x, values_of(run)).output))):
                return False  # there is unseen randomness
            for number in numbers:
                here = _places(output, run.nodes[number])
                places[number] = here & places.get(number, here)
                if not places[number]:
                    return False
    return True


def _places(output: list[Any], node: Node) -> set[int]:
    values = np.zeros(0) if node.exact is None else node.exact.reshape(-1)
    numbers = np.array([value if isinstance(value, float) else np.inf for value in output])
    some = np.nonzero(~np.isnan(values))[0]
    at = int(some[0]) if some.size else 0
    starts = np.nonzero(numbers == values[at])[0] - at if some.size else np.nonzero(np.isnan(numbers))[0]
    return {s for s in starts.tolist() if s >= 0 and np.array_equal(numbers[s : s + values.size], values, True)}


def _patterns(draws: Sequence[DrawRecord]) -> Iterator[dict[int, Array]]:
    for k, factor in enumerate(FACTORS):
        rng = np.random.Generator(np.random.PCG64(k))
        yield {at: to for at, draw in enumerate(draws) if (to := _other(draw, factor, rng)) is not None}


def _other(draw: DrawRecord, factor: float, rng: np.random.Generator) -> Array | None:
    """Other values that a draw may have; None if its law is not known."""
    law = law_of(draw)
    if law is None:
        return None
    if law.kind in ("laplace", "gaussian"):
        return np.asarray(law.location.reshape(draw.shape) + factor * (draw.values - law.location.reshape(draw.shape)))
    if law.kind == "exponential":
        return draw.values * abs(factor)
    if law.kind == "geometric":
        return np.maximum(1, np.rint(draw.values * abs(factor)))
    if law.kind == "bernoulli":
        return np.asarray(rng.integers(0, 2, draw.shape))
    numbers = law.location + law.scale * rng.random(draw.values.size)
    return numbers.reshape(draw.shape) if law.kind == "uniform" else None


def _others_are_idle(tracer: Tracer, pair: Sequence[Any], first: Replay, hiding: Sequence[Node]) -> bool:
    """Whether the numbers of a draw that hide nothing, unlike the rest of the draw, leave the output unchanged."""
    parts = [base[base >= 0] for node in hiding for base in bases(node)]
    used = distinct(np.concatenate(parts)) if parts else np.zeros(0)
    loose = {}
    for k, draw in enumerate(first.x.draws):
        mask = ~np.isin(draw.start + np.arange(draw.values.size), used).reshape(draw.shape)
        if mask.any() and not mask.all():
            loose[k] = mask
    return not loose or all(_idle(tracer, x, first.x, loose) for x in pair)


def _idle(tracer: Tracer, x: Any, run: RecordedRun, loose: dict[int, Array]) -> bool:
    usual = values_of(run)
    output = leaves(tracer.run(x, usual).output)
    for factor in STRETCH[:2]:
        changed = dict(usual)
        for k, mask in loose.items():
            to = stretched(run.draws[k], 0, factor, {})
            if to is None:
                return False
            changed[k] = np.where(mask, to, usual[k])
        if not all(same(output, leaves(tracer.run(x, changed).output))):
            return False
    return True


def other_randomness(replays: Sequence[Replay], exact: bool = True) -> list[DrawRecord]:
    """Draws that are not noise in the output: a sample, or a test that decides the output.

    They may hide the input too, so that the noise alone does not determine the loss. Otherwise: those that hide nothing
    as far as observed.
    """
    first = replays[0]
    uses = [use for use in first.uses if (use.released and alone(use) if exact else use.x.added or use.released)]
    noise = {draw.start for use in uses for draw in use.draws}
    if exact:
        noise |= {draw.start for one in first.coarse for draw in NoiseSite(one.of_x, one.of_y, released=False).draws}
    return [draw for k, draw in enumerate(first.x.draws) if draw.start not in noise and varies(replays, k, draw)]


def untracked_draw(replays: Sequence[Replay]) -> DrawRecord | None:
    """A draw that is used other than as additive noise."""
    return next(iter(other_randomness(replays, exact=False)), None)


def unused(tracer: Tracer, pair: tuple[Any, Any], replays: Sequence[Replay]) -> bool:
    """Whether other values of all such draws leave the outputs unchanged, like an initialization that is overwritten.

    Both inputs must draw them from the same law.
    """
    first, other = replays[0], values_of(replays[1].x)
    numbers = {draw.start: k for k, draw in enumerate(first.x.draws)}
    lost = [numbers[draw.start] for draw in other_randomness(replays, exact=False)]
    drawn = zip(first.x.draws, first.y.draws, strict=False)
    if not {*lost} <= {k for k, (one, other) in enumerate(drawn) if _of_one_law(one, other)}:
        return False
    try:
        runs = [tracer.run(x, {**values_of(run), **{k: other[k] for k in lost}}) for x, run in _sides(pair, first)]
    except (MechanismError, KeyError):
        return False
    outputs = [described(run.output) for _, run in _sides(pair, first)]
    return [described(one.output) for one in runs] == outputs


def _of_one_law(one: DrawRecord, other: DrawRecord) -> bool:
    """Whether both are real numbers with the same known law, so that equal values are not a coincidence."""
    laws = law_of(one), law_of(other)
    if laws[0] is None or laws[1] is None or laws[0].kind != laws[1].kind or one.shape != other.shape:
        return False
    same = all(np.array_equal(getattr(laws[0], name), getattr(laws[1], name)) for name in ("location", "scale"))
    return same and one.values.dtype.kind == "f" and laws[0].share == laws[1].share


def _sides(pair: tuple[Any, Any], one: Replay) -> list[tuple[Any, RecordedRun]]:
    return [(pair[0], one.x), (pair[1], one.y)]


def hidden(first: Replay) -> bool:
    """Whether the code has randomness that cannot be followed."""
    return bool(first.x.opaque or first.y.opaque)


def holds_far_out(tracer: Tracer, x: Any, y: Any, released: frozenset[int]) -> bool:
    """Whether the outputs also agree with much more noise, which reveals a test that rarely passes.

    One-sided noise cannot always make the sums equal; its loss accounts for that.
    """
    try:
        replays = [replay(tracer, x, y, released, noise) for noise in far_out(tracer.run(x))]
    except MechanismError:
        return False
    return all(one.equal or not all(map(_reached, one.uses)) for one in replays) and all(
        one.comparable for one in replays
    )


def why_unknown(tracer: Tracer, pair: Sequence[Any], replays: Sequence[Replay], leaf: int) -> Any:
    """Why a part of the output may differ in all replays although nothing leaks: rule, place and description."""
    first = replays[0]
    if not first.x.draws:
        said = "{where} changes from run to run, but no draw was seen, so its randomness cannot be followed: audit it"
        return "opaque", None, said
    if (lost := untracked_draw(replays) or next(iter(_hiding_nothing(first)), None)) is not None:
        said = f"{lost.place} draws {lost.distribution} numbers that could not be followed to what they hide"
        return "unfollowed", lost.place, f"{said}{formula_of(first.x, lost)}: audit it"
    outputs = [leaves(tracer.run(pair[0], values_of(first.x)).output) for _ in range(2)]
    if not all(leaf < len(one) and same(one[leaf : leaf + 1], outputs[0][leaf : leaf + 1])[0] for one in outputs):
        return (
            "unfollowed",
            None,
            "{where} changes from run to run although the noise is the same, so something else affects it",
        )
    short = next((use for one in replays for use in one.uses if not _reached(use)), None)
    if short is not None:
        said = f"{short.x.place} adds noise that is also in other sums, so the replay cannot make all of them equal"
        return "unfollowed", short.x.place, said
    return None


def _hiding_nothing(first: Replay) -> list[DrawRecord]:
    """Draws whose numbers are only in sums that do not differ and are not output; they may be used elsewhere."""
    hiding = {
        draw.start
        for use in first.uses
        if use.released or (np.abs(use.gap) > use.tolerance).any() or not np.isfinite(use.gap).all()
        for draw in use.draws
    }
    return [draw for draw in first.x.draws if draw.start not in hiding] if not hiding else []


def _reached(use: NoiseSite) -> bool:
    with np.errstate(invalid="ignore"):
        return not bool((np.abs(use.x.value - use.y.value) > 10 * use.tolerance).any())


def far_out(run: RecordedRun) -> list[dict[int, Array]]:
    """Much more noise than in a run, in both directions; uniform numbers near their ends, if they can be solved."""
    spans = feeding_of(run)
    found = []
    for factor in STRETCH[:2]:
        noise = values_of(run)
        for k, draw in enumerate(run.draws):
            law = law_of(draw)
            if law is not None and law.kind == "uniform":
                (low, high), least = (
                    spans.get(draw.start, (0.0, 1.0)),
                    1e-6 if draw.values.dtype.itemsize >= 8 else 1e-2,
                )
                t = low + least if factor < 0 else high - least
                noise[k] = (law.location + law.scale * t).reshape(draw.shape)
            elif (more := stretched(draw, k, factor, spans)) is not None:
                noise[k] = more
        found.append(noise)
    return found
