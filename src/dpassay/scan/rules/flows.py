"""Rules about ways around the noise: bounds, domains and values from the data, and budgets spent more than once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpassay.scan.reading.names import role_of
from dpassay.scan.reading.values import (
    BY_DATA,
    CLIPPED,
    COUNT,
    DISTINCT,
    INPUT,
    MEAN,
    NOISE,
    NOISY,
    NORM1,
    NORM2,
    RAW,
    SIZE,
    STAT,
    SUM,
    Returned,
    Set,
    Used,
    Value,
)
from dpassay.scan.reading.values import Clipped as ClippedEvent
from dpassay.scan.rules.context import Context, protects

REPEATED = re.compile(
    r"iter|epoch|round|step|\bT\b|rep|n_queries|num_queries|\bqueries\b|column|feature|attribute|quantile|"
    r"threshold|predicate|percentile|moment|statistic"
)
TRIALS = re.compile(r"trial|experiment|simulation|n_runs|num_runs|seed|epsilons|eps_|sizes|test")
LABELS = re.compile(r"label|class(es)?_?$|categor|key|vocab|domain|unique|token|item|bins|levels")
PARTS = re.compile(r"group|bin|bucket|partition|categor|key|cluster|split|shard|fold|chunk|unique|cell|class")


def check_flows(context: Context) -> None:
    """All rules about flows, on one function."""
    if context.measuring:
        return
    bounds_from_data(context)
    domain_from_data(context)
    clipped_after_noise(context)
    mixed_again(context)
    released_beside(context)
    returned_unchanged(context)
    budget_twice(context)
    clip_changed(context)


def bounds_from_data(context: Context) -> None:
    """A clip whose bounds are computed from the data, before noise."""
    protects_something = bool(context.noises) and any(True for _ in context.uses())
    by_data(context)
    for clip in context.log.clips:
        if clip.norm == "own":
            continue
        if not protects_something and not (clip.norm == "range" and context.private):
            continue
        if clip.bound.has(STAT) and clip.bound.has(RAW) and NOISY not in clip.bound.marks and clip.value.has(RAW):
            said = (
                "The clipping bounds are computed from the data without noise: one record moves the bound, and with it "
                "every value that is clipped there."
            )
            context.report(
                "bounds-from-data",
                "suspicious",
                clip.where.place if clip.norm == "range" else clip.where.outer,
                said,
                clip.where.warned,
            )


def by_data(context: Context) -> None:
    """Noise for data that was scaled by its own extremes or deviations."""
    for use in context.uses():
        if use.other is not None and use.other.has(BY_DATA) and use.other.has(RAW) and NOISE not in use.other.marks:
            said = (
                "The data is scaled by its own extremes or deviations before the noise: one record changes the factor, "
                "and with it every other value."
            )
            context.report("bounds-from-data", "suspicious", use.where.place, said, use.where.warned)


def domain_from_data(context: Context) -> None:
    """Noisy values under labels, categories or keys that occur in the data."""
    if not context.private:
        return
    said = "The labels are those that occur in the data: whether a label appears at all is released without noise."
    for use in context.uses():
        over = [loop for loop in use.where.loops if loop.over.has(DISTINCT) and loop.over.has(RAW)]
        if use.other is not None and use.other.has(RAW) and (use.other.has(DISTINCT) or over):
            place = use.where.outer if over else use.where.place
            context.report("domain-from-data", "suspicious", place, said, use.where.warned)
    for draw in context.log.draws:
        if draw.law == "choice" and draw.centre.has(DISTINCT) and draw.centre.has(RAW) and "epsilon" in context.roles:
            context.report("domain-from-data", "suspicious", draw.where.place, said, draw.where.warned)
    for one in context.log.returns:
        for part in one.value.items or (one.value,):
            if part.has(DISTINCT) and part.has(RAW) and not part.has(NOISY, SIZE) and context.log.draws:
                context.report("domain-from-data", "suspicious", one.where.place, said, one.where.warned)
    for event in context.log.sets:
        own = len(event.where.chain) == 1 and context.function.owner is not None and LABELS.search(event.name)
        if (
            event.value.has(DISTINCT)
            and event.value.has(RAW)
            and NOISY not in event.value.marks
            and own
            and context.claim
        ):
            context.report("domain-from-data", "suspicious", event.where.place, said, event.where.warned)


def clipped_after_noise(context: Context) -> None:
    """The bound that scales the noise is applied after the noise alone."""
    if any(NOISY not in clip.value.marks for clip in context.log.clips):
        return
    for clip in context.log.clips:
        for use in context.uses():
            if not protects(use) or use.other is None or use.other.has(CLIPPED, NORM1, NORM2, COUNT):
                continue
            same = {name for name in clip.bound.leaves & use.noise.leaves if role_of(name) in ("clip", "bound")}
            if (
                NOISY in clip.value.marks
                and clip.value.draws & use.noise.draws
                and same
                and use.other.has(INPUT, SUM, MEAN)
            ):
                said = f"{min(same)} scales the noise but bounds the value only after the noise was added."
                context.report("noise-before-clipping", "suspicious", clip.where.place, said)


def mixed_again(context: Context) -> None:
    """The data meets the noisy value again and the result is returned."""
    if not context.private:
        return
    returned = [part for one in context.log.returns for part in (one.value, *(one.value.items or ()))]
    for mix in context.log.mixed:
        out = any(part.has(RAW) and part.has(NOISY) and mix.noisy.draws & part.draws for part in returned)
        if not out or mix.operation == "Sub" or not mix.noisy.draws:
            continue
        again = mix.raw.has(INPUT) and mix.raw.leaves & mix.noisy.leaves
        if again and mix.operation == "Add":
            said = "The input is added again to its noisy version, and the noise is calibrated for one copy."
            context.report("raw-after-noise", "suspicious", mix.where.place, said)
        elif mix.raw.has(STAT, MEAN, SUM):
            said = "A statistic of the data, without noise, is combined with the noisy value and released with it."
            context.report("raw-after-noise", "suspicious", mix.where.place, said, mix.where.warned)


def released_beside(context: Context) -> None:
    """An exact statistic returned next to the noisy one."""
    if not context.private:
        return
    for one in context.log.returns:
        items = one.value.items or ()
        if not any(item.has(NOISY) and not item.has(RAW) for item in items):
            continue
        for item in items:
            if item.has(NOISY, NOISE):
                continue
            if item.has(RAW) and item.has(STAT, MEAN, SUM, COUNT, INPUT):
                said = "A statistic of the data is returned without noise, next to the noisy value."
                context.report("exact-beside-noisy", "suspicious", one.where.place, said, one.where.warned)
            elif item.has(SIZE):
                said = "The number of records is returned exactly: right only where it is public."
                context.report("exact-beside-noisy", "information", one.where.place, said)


def returned_unchanged(context: Context) -> None:
    """A path that returns the input itself."""
    if not context.private or not context.noisy_returned or not context.log.draws:
        return
    for one in context.log.returns:
        parts = one.value.items or (one.value,)
        if not any(part.has(INPUT) and not part.has(NOISY, NOISE) and _data(part, context) for part in parts):
            continue
        if one.where.handler:
            said = "If the noise cannot be added, the exception handler returns the raw input."
            context.report("raw-on-error", "suspicious", one.where.place, said)
        elif _depends_on_data(one):
            said = "Some inputs are returned unchanged, and which ones depends on the input."
            context.report("raw-returned", "suspicious", one.where.place, said, one.where.warned)


def _data(value: Value, context: Context) -> bool:
    return any(context.log.parameters[name].has(INPUT) for name in value.leaves if name in context.log.parameters)


def _depends_on_data(one: Returned) -> bool:
    """Whether a condition on the way looks at more than the size or the type of the data."""
    return any(condition.has(RAW) and not condition.has(NOISY, SIZE) for condition in one.where.conditions)


@dataclass(frozen=True)
class _Share:
    use: Used
    epsilon: str


def _whole(use: Used) -> str:
    """The name of the ε that a use spends whole; empty if it spends a part, or one cannot tell."""
    names = [name for name in use.noise.leaves if role_of(name) == "epsilon"]
    term = use.noise.terms[0] if len(use.noise.terms) == 1 else None
    if len(names) > 2 or not names or term is None or not protects(use) or use.noise.law not in ("laplace", "gaussian"):
        return ""
    mean = use.other is not None and use.other.has(MEAN)
    allowed = {"epsilon", "sensitivity", "clip", "bound", *(("count",) if mean else ())}
    logs = {atom for atom, _ in term.powers if atom.startswith("log(")}
    plain = {atom for atom, _ in term.powers} - allowed - logs
    limit = 1.0 if not logs else 1.4143
    if plain or term.exponent("epsilon") != -1 or not 0 < term.coefficient <= limit:
        return ""
    return min(names, key=len)


def budget_twice(context: Context) -> None:
    """The whole ε for each of several noisy answers about the same data."""
    shares = [_Share(use, name) for use in context.log.uses if (name := _whole(use))]
    returned = (
        frozenset().union(*(one.value.draws for one in context.log.returns)) if context.log.returns else frozenset()
    )
    for i, first in enumerate(shares):
        for second in shares[i + 1 :]:
            a, b = first.use, second.use
            both = a.noise.draws <= returned and b.noise.draws <= returned
            if (
                first.epsilon == second.epsilon
                and not (a.noise.draws & b.noise.draws)
                and not a.where.excludes(b.where)
                and both
                and a.where.loops == b.where.loops
                and _same_data(a, b, context)
            ):
                said = f"{first.epsilon} is spent whole on each of two noisy answers about the same data: together 2ε."
                context.report("budget-twice", "suspicious", b.where.outer, said)
                return
    for share in shares:
        _in_loop(context, share)


def _same_data(a: Used, b: Used, context: Context) -> bool:
    data = {name for name, value in context.log.parameters.items() if value.has(RAW)}
    of_a = (a.other.leaves if a.other else frozenset()) & data
    of_b = (b.other.leaves if b.other else frozenset()) & data
    return bool(of_a & of_b) or (bool(of_a) and bool(of_b) and a.where.place == b.where.place and of_a == of_b)


def _in_loop(context: Context, share: _Share) -> None:
    """The whole ε in each turn of a loop over rounds, columns or queries."""
    use = share.use
    for loop in use.where.loops:
        text = loop.text.lower()
        if PARTS.search(text) or TRIALS.search(text) or share.epsilon in loop.target or not REPEATED.search(loop.text):
            continue
        if use.other is None or not use.other.has(RAW) or not context.log.returns:
            continue
        said = f"{share.epsilon} is spent whole in each turn of the loop over {loop.text}: k turns cost kε."
        context.report("budget-twice", "suspicious", use.where.outer, said)
        return


def clip_changed(context: Context) -> None:
    """The clipping bound is changed between the clipping and the noise that is scaled by it."""
    for name in {one.name for one in context.log.sets}:
        leaf, stage = f"self.{name}", 0
        for event in context.log.order:
            if isinstance(event, ClippedEvent) and leaf in event.bound.leaves and role_of(name) == "clip":
                stage = 1
            elif stage == 1 and isinstance(event, Set) and event.name == name:
                stage, changed = 2, event
            elif stage == 2 and isinstance(event, Used) and leaf in event.noise.leaves:
                said = f"{leaf} is changed after it has clipped the data and before it scales the noise."
                context.report("clip-changed", "suspicious", changed.where.place, said)
                return
