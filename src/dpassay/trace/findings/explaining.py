"""The explanation of a verdict: why a claim is refuted and at which line, or why it is open and what to do next."""

from __future__ import annotations

import json
import math
from typing import Any

from dpassay.core.interval import bound, outward_fixed
from dpassay.core.json import plain
from dpassay.core.numbers import INFINITY, as_written, down
from dpassay.errors import InputError, counted
from dpassay.trace.findings.findings import Finding, beyond_runs, without_noise
from dpassay.trace.findings.leaks import first_holder
from dpassay.trace.findings.suggesting import limit_of
from dpassay.trace.natural.events import OF_TYPE
from dpassay.trace.natural.failing import RunError, WatchedTooLong
from dpassay.trace.natural.outputs import CannotBeRead, leaves
from dpassay.trace.replay.trials import OUT_OF_REACH, ReplayTrials, needed
from dpassay.trace.watch.record import CodeLine

MOST_PLACES = 3  # lines that a message names
ALPHA_OF_AN_EVENT = 1e-3 / 3  # its error probability: an event is chosen up to three times
MATCHED = "Their sums with noise were matched by size, because noise of one law has the same distribution in any order."


def explained(tracer: Any, judged: Any) -> tuple[Finding, ...]:
    """The findings of a refuted claim: what the watched runs showed, if it explains the counts, and the counts."""
    count, watched = judged.count, judged.watched
    counted = f"{count}: ε ≥ {bound(count.epsilon, -1, significant=3)} (error probability {count.alpha:.2g})"
    faithful = judged.trials is not None and judged.trials.faithful
    seen = watched is not None and faithful and not tracer.natural.fixed and count.calls == 1
    seen = seen and not _contradicted(judged)
    found = list(watched.findings) if seen else []
    if not found:
        found = [_leak(tracer, judged)]
    if judged.starting:
        counted = f"{counted}; {judged.starting} starts another process, whose random numbers are not followed"
    return tuple(Finding(one.rule, one.place, f"{one.message}; counted: {counted}", one.infinite) for one in found)


def _contradicted(judged: Any) -> bool:
    """Whether a run was not among those enumerated, so that their loss is not that of the pair."""
    return judged.watched.chosen is not None and judged.trials is not None and bool(judged.trials.different)


def _leak(tracer: Any, judged: Any) -> Finding:
    """A refutation that no noise explains."""
    count, watched = judged.count, judged.watched
    drawn = watched is not None and bool(watched.draws)
    fixed = tracer.natural.fixed
    if count.calls == 2:
        place = tracer.first_draws[0].place if tracer.first_draws else None
        said = "two calls do not each have noise of their own"
        if place is not None:
            said = f"{said}: a later one reuses what {place} drew, or adds no noise at all"
        return Finding("noise-made-once", place, said)
    if fixed and count.hits[0] == count.runs[0]:
        line = CodeLine(fixed[0].file, fixed[0].line)
        said = f"{line} fixes the seed of {fixed[0].name}: every new process draws the same noise (ε = ∞)"
        return Finding("fixed-seed", line, said, infinite=True)
    always = count.hits == (count.runs[0], 0)
    if count.path.startswith("exception"):
        return Finding("raises", None, "an exception tells the inputs apart")
    if always and count.path.startswith(OF_TYPE):
        return Finding("leak", None, f"{count.path} tells the inputs apart")
    if always and count.path:
        holder = first_holder(tracer, judged.pair[count.first], count.value)
        where, place = (count.path, None) if holder is None else (f"{count.path} is {holder[0]} and", holder[1])
        if count.value is None:  # the event is that this part is present at all
            key = first_holder(tracer, judged.pair[count.first], _last_key(count.path))
            where, place = (count.path, None) if key is None else (f"{count.path}, which is {key[0]},", key[1])
            return Finding("leak", place, f"{where} is present for one input only")
        if isinstance(count.value, str) and drawn and any("text" in what for what, _ in watched.run.handled):
            return Finding("leak", place, f"{where} is the same in every run of an input, so it shows no noise")
        return Finding("leak" if drawn else "no-noise", place, f"{where} has no noise")
    seen = watched is not None and not watched.doubts and watched.chosen is None
    if seen and drawn and watched.around and judged.trials is not None and judged.trials.faithful:
        return Finding("leak", None, "the input reaches the output without passing through the noise")
    return Finding("told-apart", None, "natural runs tell the inputs apart")


def _last_key(path: str) -> str:
    """The last key of a path, if it is a text."""
    return path[:-2].rpartition('["')[2] if path.endswith('"]') else ""


def why_open(judged: Any, guarantee: Any, pipeline: str, then: str) -> str:
    """Why a claim is neither refuted nor bounded, or the bound."""
    watched, trials, count = judged.watched, judged.trials, judged.count
    if judged.upper < math.inf and judged.upper <= guarantee.claimed * (1 + 1e-5):
        said = so_often(trials, judged.upper, guarantee.delta)
        if not pipeline:
            return f"{without_noise(leaves(watched.run.output))} {said[0].upper()}{said[1:]}."
        order = "" if watched.matching is None else f" {MATCHED}"
        return f"No violation: {said} between these inputs.{order} {beyond_runs(pipeline)}"
    reasons = []
    steady = watched is not None and not watched.draws and not watched.run.opaque and _is_steady(count)
    if steady and not judged.remembers:
        said = f"the code drew no random numbers, and {count}: it shows which input it was given (ε = ∞)"
        return f"Not decided: {said}, but {_to_refute(count, guarantee)}. {then}"
    if judged.kept:
        said = "Not decided: an input that was given before gets the same output again, so its runs are not"
        return f"{said} independent. {then}"
    if judged.at_import:
        said = (
            "Not decided: it draws no random numbers when it is called, only when its module is imported. All calls of"
        )
        return f"{said} a process share that noise, so the difference of two outputs has none: draw it in each call."
    if judged.remembers:
        said = _remembering(judged)
        reasons.append(f"{said}, which cannot be followed: audit it; here each run had a process of its own")
    elif judged.seeded:
        said = (
            f"{judged.seeded} was made from a seed: if that seed is always the same, every new process draws the same"
        )
        reasons.append(f"{said} noise, and if it is one of few, it can be guessed")
    elif isinstance(judged.error, WatchedTooLong):
        reasons.append("watching its runs takes more than half of the time: allow more")
    elif isinstance(judged.error, CannotBeRead):
        reasons.append(str(judged.error))
    elif watched is not None:
        reasons += _as_watched(judged, guarantee, steady)
    shown = f"no event was found that tells the inputs apart{_how_many(judged, guarantee)}"
    if count is not None and count.epsilon > 0:
        shown = f"{count} shows ε ≥ {bound(count.epsilon, -1, significant=3)}"
    said = "; ".join(dict.fromkeys(reasons)) or _lost(watched)
    return f"Not decided: {said}; {shown}. {then}"


def _as_watched(judged: Any, guarantee: Any, steady: bool) -> list[str]:
    """What is open about the runs that were watched."""
    watched, trials = judged.watched, judged.trials
    reasons = [one.message for one in watched.doubts]
    if trials is not None and trials.different:
        reasons.append(trials.different)
    limit = limit_of(guarantee, watched.draws).b  # a smaller excess is rounding
    if watched.lower.a > limit and not _contradicted(judged):
        size = "∞" if watched.lower.a == INFINITY.a else bound(down(watched.lower), -1)
        reasons += [one.message for one in watched.findings]
        reasons.append(
            f"as watched, the loss of this pair is at least {size}, which natural runs neither confirm nor refute"
        )
    elif not watched.draws and not steady:
        reasons.append("the output changes from run to run, but no draw was seen")
    elif trials is not None and not trials.different and watched.upper.b < INFINITY.a:
        most = float(watched.upper.b)
        too_much = f"the loss of the noise as watched may be up to {bound(most, 1)}, more than is claimed"
        reasons.append(too_much if most > limit else _too_few(trials, most))
    if judged.starting:
        reasons.append(f"{judged.starting} starts another process, whose random numbers are not followed")
    return reasons


def _is_steady(count: Any) -> bool:
    """Whether an event occurred in all runs of one input and in none of the other."""
    return count is not None and count.calls == 1 and count.hits == (count.runs[0], 0)


def _to_refute(count: Any, guarantee: Any) -> str:
    """How many runs a refutation needs if an event tells the two inputs apart in all of them."""
    size = _in_words(_least_runs(guarantee, count.alpha, count.calls))
    return f"refuting ε = {as_written(guarantee.exact_epsilon)} takes about {size} runs of each input"


def _least_runs(guarantee: Any, alpha: float, calls: int = 1) -> float:
    """About how many runs of each input refute a claim with the clearest event there is: ln(p − δ)/q > ε."""
    room = max(1 - calls * float(guarantee.delta), 1e-300)
    return math.log(2 / alpha) * (math.exp(min(calls * float(guarantee.exact_epsilon.b), 700.0)) / room + 1)


def _in_words(runs: float) -> str:
    return f"{runs:,.0f}" if runs < 1e6 else f"{runs:.2g}"


def _how_many(judged: Any, guarantee: Any) -> str:
    """How many runs the clearest event would need, if that is more than were made; "" if there were enough."""
    least = _least_runs(guarantee, ALPHA_OF_AN_EVENT)
    if judged.made >= least:
        return f" in {judged.made:,} runs of each input"
    said = f" in {judged.made:,} runs of each input: the clearest one would take {_in_words(least)}"
    if least > OUT_OF_REACH or not judged.made:
        return said
    return f"{said}, so allow about {math.ceil(2 * least / judged.made):,} times as much time (--time)"


def _remembering(judged: Any) -> str:
    """What shows that calls may depend on earlier ones."""
    if judged.unsure:
        return "there was no time to see whether a call depends on earlier ones"
    if judged.keeps:
        return "an input that was given before gets the same output again"
    if isinstance(judged.error, RunError) and not isinstance(judged.error, WatchedTooLong):
        return f"after some calls, {judged.error}, so a call depends on earlier ones"
    said = "with the same random bits, a later call gives a different output"
    if judged.starting:
        return f"{judged.starting} starts another process, and {said}"
    return f"{said} (due to earlier calls, a clock or unseen randomness, as of a database)"


def _too_few(trials: ReplayTrials, epsilon: float) -> str:
    """How many replays a bound needs, and how much more time."""
    many, most = needed(epsilon, trials.alpha), bound(epsilon, 1, significant=3)
    if not trials.agreed:
        return f"there was no time for a replay; a bound of {most} needs {many:,}: allow more time (--time)"
    times = math.ceil(2 * many / trials.agreed)
    then = f"allow about {times:,} times as much time (--time)" if many < OUT_OF_REACH else "that is out of reach"
    return f"{counted(trials.agreed, 'replay')} agreed, but a bound of {most} needs {many:,}: {then}"


def _lost(watched: Any) -> str:
    """Where the noise was lost from sight, if that is known."""
    if watched is None or not watched.run.handled:
        places = dict.fromkeys(str(draw.place) for draw in (() if watched is None else watched.draws[:MOST_PLACES]))
        drawn = f" that {' and '.join(places)} {'draws' if len(places) == 1 else 'draw'}" if places else ""
        return f"the noise{drawn} could not be followed to what it hides"
    what, place = watched.run.handled[0]
    return f"{what} at {place}, and the effect of that could not be followed completely"


def so_often(trials: ReplayTrials, epsilon: float, delta: float) -> str:
    """The upper bound for a pair, with the replays that support it."""
    share, at = trials.exception(epsilon), f" at δ = {delta:.6g}" if delta else ""
    many = counted(trials.agreed, "replay")
    if trials.left_out:  # their paths were not known
        many = f"{trials.agreed:,} of {trials.agreed + trials.left_out:,} replays"
    return (
        f"in {many} the outputs agreed to the last bit: ε is at most {bound(epsilon, 1)}{at}, apart from "
        f"a probability of at most {outward_fixed(share, 1, 2, 100)}% (confidence {1 - trials.alpha:.2%})"
    )


def next_audit(name: str, judged: Any, guarantee: Any) -> str:
    """The audit to run next, with the same subject and pair."""
    try:
        pair = json.dumps([plain(x) for x in judged.pair])
    except (InputError, TypeError, ValueError):
        pair = "…"
    pair = pair if len(pair) <= 200 else "…"
    epsilon, delta = as_written(guarantee.exact_epsilon), as_written(guarantee.exact_delta) if guarantee.delta else ""
    if ":" in name:
        more = f" --delta {delta}" if delta else ""
        return f"Next: dpassay audit --python {name} --pair '{pair}' --epsilon {epsilon}{more}"
    return f"Next: dpassay.audit({name}, pairs=[{pair}], epsilon={epsilon}" + (f", delta={delta})" if delta else ")")
