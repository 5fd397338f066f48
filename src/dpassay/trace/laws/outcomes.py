"""Enumeration of all possible draws: which output has which probability.

A step of a run is one drawn number: one of several things, or a uniform number that is only compared with others. Each
run shows the probabilities of its steps, and so which other paths there are.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from dpassay.trace.laws.number_laws import law_of
from dpassay.trace.natural.outputs import described
from dpassay.trace.watch.choosing import CHOICE
from dpassay.trace.watch.record import Array, DrawRecord, RecordedRun
from dpassay.trace.watch.tracer import Tracer
from dpassay.values import dataclass

LONGEST = 64  # numbers drawn in a run
MOST_WHOLE, MOST_TRIES = 10_000, 64  # integers of which one is drawn; tries of a binomial
INSIDE = 0.483712  # where in a part a number is placed: there is often another cut halfway
LEAST = 1e-11  # anything closer to an end is rounding
PROBED = 16  # paths of which both ends are tried; after that, every fourth
SHORTEST = 1e-4  # part of a uniform number: in shorter ones rounding would matter
WHOLE = (0.0, 1.0)
SOME, TOO_LITTLE = 12, 0.05  # paths, and the total probability they must reach to make continuing worthwhile
NATURAL, SUSPICIOUS = 12, 1e-3  # runs to see whether a number is drawn afresh; from which chance on more are made
MOST_NATURAL, BY_CHANCE = 60, 1e-9  # then; the chance that all agree though each is drawn afresh

Part = int | tuple[float, float]  # the index of a thing, or an interval of a uniform number


@dataclass(frozen=True, eq=False)
class ChoiceStep:
    """One drawn number: its value, the probabilities of all things, or the points at which it was compared."""

    draw: int
    at: int
    value: float  # the index of the thing; for a uniform number, from 0 to 1
    weights: Array | None
    cuts: tuple[float, ...] = ()
    first: int = 0  # what number 0 is drawn as

    def chance(self, part: Part) -> float:
        """The probability of this part."""
        if isinstance(part, int):
            return 0.0 if self.weights is None else float(self.weights[part])
        return part[1] - part[0]

    def within(self, part: Part | None) -> Part | None:
        """The part with the same outcome, within what was requested; None if it is not what was requested."""
        if self.weights is not None:
            return int(self.value) if part is None or part == int(self.value) else None
        low, high = part if isinstance(part, tuple) else WHOLE
        if not low <= self.value <= high:
            return None
        below, above = [t for t in self.cuts if t <= self.value], [t for t in self.cuts if t > self.value]
        return max([low, *below]), min([high, *above])

    def others(self, part: Part | None, own: Part, most: int) -> tuple[list[Part], float]:
        """At most `most` of the other parts that could have been drawn, and the probability of the rest."""
        if isinstance(own, tuple):
            low, high = part if isinstance(part, tuple) else WHOLE
            return [one for one in ((low, own[0]), (own[1], high)) if one[1] > one[0]], 0.0
        if self.weights is None or part is not None:
            return [], 0.0
        row = self.weights.copy()
        row[own] = 0.0
        likely = np.argsort(-row)[:most]
        rest = float(np.delete(row, likely).sum())
        return [int(i) for i in likely.tolist() if row[i] > 0], rest


@dataclass
class Outcomes:
    """The outputs of an input with their probabilities, as far as enumerated; `rest` is the unknown remainder."""

    chances: dict[str, float] = field(default_factory=dict)
    rest: float = 0.0
    drawn: dict[tuple[Part, ...], str] = field(default_factory=dict)  # the output for which numbers
    likely: dict[tuple[Part, ...], float] = field(default_factory=dict)  # their probabilities


def steps_of(run: RecordedRun) -> list[ChoiceStep] | None:
    """The steps of a run; None if it draws something else, or nothing, or uses it differently."""
    made = run.decisions()
    if run.opaque or not 0 < sum(draw.values.size for _, draw in made) <= LONGEST:
        return None
    found = []
    for k, draw in made:
        if (one_of := _weights(draw)) is not None:
            first, rows = one_of
            numbers = (draw.values.reshape(-1) - first).tolist()
            found += [ChoiceStep(k, at, float(v), rows[at], first=first) for at, v in enumerate(numbers)]
            continue
        own = _cut_steps(run, k, draw)
        if own is None:
            return None
        found += own
    return found


def _cut_steps(run: RecordedRun, k: int, draw: DrawRecord) -> list[ChoiceStep] | None:
    """Uniform numbers, each with the points where it was compared; None if some may have been used unseen."""
    law = law_of(draw)
    if law is None or law.kind != "uniform" or draw.values.dtype.itemsize < 4:
        return None
    low, size = law.location.reshape(-1), law.scale.reshape(-1)
    found, seen = [], False
    for at, v in enumerate(draw.values.reshape(-1).tolist()):
        own = [float((t - low[at]) / size[at]) for index, t in run.compared if index == draw.start + at]
        if any(map(math.isnan, own)):
            return None
        seen = seen or bool(own)
        cuts = tuple(sorted({t for t in own if LEAST < t < 1 - LEAST}))
        found.append(ChoiceStep(k, at, float((v - low[at]) / size[at]), None, cuts))
    return found if seen else None


def _weights(draw: DrawRecord) -> tuple[int, Array] | None:
    """The first of the integers of which each number is one, and their probabilities, a row for each number."""
    if draw.distribution == CHOICE:
        return 0, weights_of(draw)
    if (whole := _whole(draw)) is not None:
        return whole.start, np.broadcast_to(np.full(len(whole), 1 / len(whole)), (draw.values.size, len(whole)))
    many = draw.parameters.get("n", 1)
    p = draw.parameters.get("p")
    if draw.distribution not in ("bernoulli", "binomial") or p is None or np.ndim(many) or not 1 <= many <= MOST_TRIES:
        return None
    try:
        share = np.broadcast_to(np.asarray(p, dtype=float), draw.shape).reshape(-1, 1)
    except ValueError:
        return None
    counts = np.arange(int(many) + 1)
    ways = np.array([math.comb(int(many), int(one)) for one in counts], dtype=float)
    return 0, np.asarray(ways * share**counts * (1 - share) ** (many - counts))


def _whole(draw: DrawRecord) -> range | None:
    """The integers of which one is drawn uniformly; None if it is another kind of draw."""
    given = draw.parameters
    if draw.distribution == "getrandbits" and isinstance(given.get("k"), int) and given["k"] < 14:
        return range(1 << given["k"])
    if draw.distribution == "randrange" and not set(given) - {"start", "stop"}:
        low, high = (0, given.get("start")) if given.get("stop") is None else (given.get("start"), given["stop"])
        low, high = low, None if high is None else high - 1
    elif draw.distribution in ("integers", "randint"):
        low, high = given.get("low"), given.get("high")
        if high is None:
            low, high = 0, low
    else:
        return None
    if not isinstance(low, int | np.integer) or not isinstance(high, int | np.integer):
        return None
    if set(given) - {"low", "high", "endpoint", "start", "stop"}:
        return None
    found = range(int(low), int(high) + int(bool(given.get("endpoint")) or draw.source == "random"))
    return found if 0 < found.stop - found.start <= MOST_WHOLE else None


def weights_of(draw: DrawRecord) -> Array:
    """The probabilities, one row for each number that was drawn."""
    p = np.asarray(draw.parameters["p"], dtype=float)
    p = p / p.sum(axis=-1, keepdims=True)
    if p.ndim == 1:
        return np.broadcast_to(p, (draw.values.size, p.size))
    return np.repeat(p.reshape(-1, p.shape[-1]), draw.values.size // max(1, p[..., 0].size), axis=0)


def gone_through(tracer: Tracer, x: Any, most: int) -> Outcomes | None:
    """Enumerate the draws for x, most likely first; None if equal draws do not always give equal outputs."""
    found, count, first = Outcomes(), 0, dict[int, Array]()
    waiting: list[tuple[float, int, tuple[Part, ...], dict[int, Array]]] = [(-1.0, 0, (), {})]
    while waiting and most > 3:
        chance, _, begun, forced = heapq.heappop(waiting)
        run = tracer.run(x, forced)
        steps = steps_of(run)
        most -= 1
        if steps is None or len(steps) < len(begun):
            return None
        asked = [*begun, *[None] * (len(steps) - len(begun))]
        path = [step.within(part) for step, part in zip(steps, asked, strict=True)]
        so_far = math.prod(step.chance(part) for step, part in zip(steps, begun, strict=False))
        if any(part is None for part in path) or not math.isclose(so_far, -chance, rel_tol=1e-9):
            return None
        own = tuple(part for part in path if part is not None)
        if any(isinstance(part, tuple) and part[1] - part[0] < SHORTEST for part in own):
            return None
        before, values = 1.0, {k: draw.values for k, draw in run.decisions()}
        for position, step in enumerate(steps):
            others, rest = step.others(asked[position], own[position], most)
            found.rest += before * rest
            for part in others:
                count += 1
                ahead = (*own[:position], part, *begun[position + 1 :])
                likely = before * step.chance(part) * _chance(steps[position + 1 :], begun[position + 1 :])
                heapq.heappush(waiting, (-likely, count, ahead, _with(run, values, step, part, len(begun))))
            before *= step.chance(own[position])
        text = described(run.output)
        if any(isinstance(part, tuple) for part in own) and (len(found.drawn) < PROBED or len(found.drawn) % 4 == 0):
            most -= 2
            if any(_at(tracer, x, run, steps, own, share) != text for share in (0.001, 0.999)):
                return None
        found.chances[text] = found.chances.get(text, 0.0) + before
        found.drawn[own], found.likely[own] = text, before
        first = first or values
        if len(found.drawn) == SOME and sum(found.chances.values()) < TOO_LITTLE:
            break  # even all available runs would not cover enough
    found.rest += sum(-entry[0] for entry in waiting)
    if not math.isclose(sum(found.chances.values()) + found.rest, 1.0, rel_tol=1e-9):
        return None
    again = described(tracer.run(x, first).output)
    return found if again == next(iter(found.drawn.values()), None) else None


def drawn_anew(tracer: Tracer, x: Any) -> bool:
    """Whether each run draws afresh, as far as some runs show: a number from a fixed seed is not random."""
    values: dict[int, list[float]] = {}
    chances: dict[int, float] = {}
    fixed: list[float] = []
    for count in range(MOST_NATURAL):
        if count >= NATURAL and not BY_CHANCE < min(fixed) <= SUSPICIOUS:
            break
        steps = steps_of(tracer.run(x))
        if steps is None:
            return False
        for position, step in enumerate(steps):
            values.setdefault(position, []).append(step.value)
            likely = 0.0 if step.weights is None else float(step.weights[int(step.value)])
            chances[position] = chances.get(position, 1.0) * (1.0 if len(values[position]) == 1 else likely)
        fixed = [chances[at] for at, found in values.items() if len(set(found)) == 1]
        if count and not fixed:
            return True
    return min(fixed) > BY_CHANCE


def comes_again(tracer: Tracer, pair: tuple[Any, Any], found: tuple[Outcomes, Outcomes], times: int) -> bool:
    """Whether runs with natural draws, of both inputs alternately, give the outputs found, with these probabilities.

    They do not if something else also matters: internal state, the time, or unseen random numbers.
    """
    for k in range(times):
        for at in (0, 1) if k % 2 else (1, 0):
            if not is_one_of(tracer.run(pair[at]), found[at]):
                return False
    return True


def is_one_of(run: RecordedRun, found: Outcomes) -> bool:
    """Whether a run is one of those that were enumerated, with the same output and the same probability."""
    steps = steps_of(run)
    if steps is None:
        return False
    path = next((path for path in found.drawn if _is_way(path, steps)), None)
    if path is None:
        return bool(found.rest)
    same = described(run.output) == found.drawn[path]
    return same and math.isclose(_chance(steps, path), found.likely[path], rel_tol=1e-9)


def _is_way(path: tuple[Part, ...], steps: Sequence[ChoiceStep]) -> bool:
    if len(path) != len(steps):
        return False
    return all(step.within(part) is not None for step, part in zip(steps, path, strict=True))


def _chance(steps: Sequence[ChoiceStep], parts: Sequence[Part]) -> float:
    return math.prod(step.chance(part) for step, part in zip(steps, parts, strict=False))


def _with(run: RecordedRun, values: dict[int, Array], step: ChoiceStep, part: Part, begun: int) -> dict[int, Array]:
    """Draws that move one step to another part, with everything before it unchanged and later steps as requested."""
    own = np.array(values[step.draw])
    own.flat[step.at] = within(run, step, part)
    order = [k for k, _ in run.decisions()]
    last = max(order.index(step.draw), _place_of(run, begun - 1) if begun else 0)
    return {**{k: values[k] for k in order[: last + 1]}, step.draw: own}


def changed(run: RecordedRun, step: ChoiceStep, part: Part) -> dict[int, Array]:
    """Draws that move one step to another part and leave everything else unchanged."""
    values = {k: np.array(draw.values) for k, draw in run.decisions()}
    values[step.draw].flat[step.at] = within(run, step, part)
    return values


def within(run: RecordedRun, step: ChoiceStep, part: Part) -> float:
    """A number to draw so that a step is this part."""
    if isinstance(part, int):
        return part + step.first
    return _raw(run.draws[step.draw], step.at, part[0] + INSIDE * (part[1] - part[0]))


def _place_of(run: RecordedRun, position: int) -> int:
    """The place in the order of the draw that a step belongs to."""
    ends = np.cumsum([draw.values.size for _, draw in run.decisions()])
    return int(np.searchsorted(ends, position, side="right"))


def _raw(draw: DrawRecord, at: int, share: float) -> float:
    law = law_of(draw)
    assert law is not None
    return float(law.location.reshape(-1)[at] + law.scale.reshape(-1)[at] * share)


def _at(tracer: Tracer, x: Any, run: RecordedRun, steps: list[ChoiceStep], own: tuple[Part, ...], share: float) -> str:
    """The output if all uniform numbers are elsewhere in their parts."""
    values = {k: np.array(draw.values) for k, draw in run.decisions()}
    for step, part in zip(steps, own, strict=True):
        if isinstance(part, tuple):
            place = part[0] + share * (part[1] - part[0])
            values[step.draw].flat[step.at] = _raw(run.draws[step.draw], step.at, place)
    return described(tracer.run(x, values).output)
