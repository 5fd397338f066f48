"""Run a user's code a few times and find which line drew which noise, what it was added to, and the resulting loss.

Refuting needs one pair of inputs. Runs never prove a claim: what was seen on some inputs bounds nothing on others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from dpassay.audit.candidate_pairs import same as same_input
from dpassay.core.guarantee import make_guarantee
from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ZERO, Number, down, iv, number
from dpassay.errors import ONLY_NONE, InputError, MechanismError
from dpassay.evidence.verdict import Bounds, ExactEvidence, JudgedClaim, Open, Refuted, SampledEvidence, Verdict
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.trace.choices import judged_choices
from dpassay.trace.doubts import (
    doubted,
    hidden,
    holds_far_out,
    keeps_answers,
    lost_sight,
    of_two_ages,
    other_randomness,
    why_unknown,
)
from dpassay.trace.failing import returns_nothing
from dpassay.trace.findings import (
    Finding,
    as_coded,
    beyond_runs,
    scaled_by_input,
    shared,
    stale,
    too_large,
    without_noise,
    wrong_formula,
)
from dpassay.trace.laws import NodeLaw, node_law
from dpassay.trace.leaks import first_holder
from dpassay.trace.losses import alone, behind, coordinates, of_different_scales, pair_loss
from dpassay.trace.outputs import leaves, path_of, same
from dpassay.trace.record import Array, Draw, Run
from dpassay.trace.replay import Replay, Tracer, Use, released_nodes, replay, values_of

REPLAYS, MOST_RUNS, MOST_PAIRS, MOST_GIVEN, MOST_INPUTS = 3, 200, 4, 8, 40
ALPHA = 1e-4  # error probability of statements from counted runs, for all pairs together
TIE, TIE_OF_FLOATS = number("1e-6"), number("1e-5")  # relative: a loss that exceeds the claim by less is rounding


@dataclass(frozen=True, eq=False)
class TraceResult:
    """A verdict with the observations: the draws, the pipeline as coded, and what is wrong at which line.

    `pair` are the two inputs of the verdict, and `pair_epsilon` contains the exact ε between them.
    """

    verdict: Verdict
    draws: tuple[Draw, ...]
    findings: tuple[Finding, ...]
    pipeline: str
    pair: tuple[Any, Any]
    pair_epsilon: Interval
    runs: int
    warnings: tuple[Finding, ...] = ()  # what hostile inputs showed
    tried: int = 0  # hostile inputs
    neighbours: Neighbours | None = None  # if the relation was stated

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that were broken, or by which the code hides from the trace."""
        return tuple(dict.fromkeys(finding.rule for finding in self.findings))

    def __str__(self) -> str:
        lines = [str(self.verdict), f"as coded: {self.pipeline or 'no noise was seen'}"]
        lines += [] if self.neighbours is None else [f"neighbours: {self.neighbours}, as stated"]
        lines += [f"drawn: {draw}" for draw in self.draws] + [f"warning: {one.message}" for one in self.warnings]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {
            "verdict": self.verdict.word,
            "reason": self.verdict.reason,
            "neighbours": None if self.neighbours is None else self.neighbours.kind,
            "pipeline": self.pipeline,
            "pair_epsilon": [_json(self.pair_epsilon.lower), _json(self.pair_epsilon.upper)],
            "findings": [one.to_dict() for one in self.findings],
            "warnings": [one.to_dict() for one in self.warnings],
            "draws": [
                {
                    "source": draw.source,
                    "distribution": draw.distribution,
                    "parameters": {name: np.asarray(value).tolist() for name, value in draw.parameters.items()},
                    "shape": list(draw.shape),
                    "file": draw.place.file,
                    "line": draw.place.line,
                }
                for draw in self.draws
            ],
            "runs": self.runs,
        }


def _json(value: float) -> float | str:
    return "inf" if value == math.inf else value


@dataclass(frozen=True, eq=False)
class _Judged:
    """What the replays of one pair show."""

    lower: Number
    upper: Number
    loss: PrivacyLoss | None
    findings: tuple[Finding, ...]
    uses: tuple[Use, ...]
    pair: tuple[Any, Any]
    draws: tuple[Draw, ...]
    run: Run
    sampled: bool = False
    pipeline: str = ""


def trace(
    f: Any,
    inputs: Sequence[Any] = (),
    *,
    pairs: Sequence[tuple[Any, Any]] = (),
    epsilon: Any,
    delta: Any = 0,
    seed: int = 0,
    name: str = "",
) -> TraceResult:
    """Run a mechanism on pairs of neighbours, or on inputs any two of which are, and judge its noise as coded.

    >>> result = trace(lambda x, rng: x + rng.laplace(scale=0.5), [0.0, 1.0], epsilon=1)
    >>> result.verdict.refuted, result.rules, str(result.pair_epsilon)
    (True, ('loss-too-large',), '2')
    >>> trace(lambda x, rng: x + rng.laplace(scale=1), [0.0, 1.0], epsilon=1).verdict.open
    True
    """
    inputs = inputs or [one for pair in pairs for one in pair]
    if len(inputs) < 2:
        raise InputError(f"a trace needs two inputs or more to compare, got {len(inputs)}: give inputs, or pairs")
    if len(pairs) > MOST_GIVEN:
        raise InputError(f"a trace takes at most {MOST_GIVEN} pairs, got {len(pairs)}: trace some of them at a time")
    guarantee = make_guarantee(epsilon, delta)
    tracer = f if isinstance(f, Tracer) else Tracer(f, seed)
    tracer.run(inputs[0])  # now anything that only a first call does, such as imports, is over
    judged: list[_Judged] = []
    for x, y in pairs or farthest_pairs(tracer, inputs):
        judged.append(_judge(tracer, x, y, guarantee))
        if judged[-1].lower.a > _limit(guarantee, judged[-1].draws).b or tracer.runs > MOST_RUNS - 50:
            break
    if returns_nothing(getattr(tracer, "subject", f)) and all(one.run.output is None for one in judged):
        raise MechanismError(ONLY_NONE)
    worst = max(judged, key=lambda one: (down(one.lower), down(one.upper)))
    kind = Refuted if worst.lower.a > _limit(guarantee, worst.draws).b else Open
    claim = JudgedClaim(name or getattr(f, "__name__", type(f).__name__), "", f, "", Neighbours("any"), guarantee)
    source = "counted runs" if worst.sampled else "the exact loss of a pair of inputs, as coded"
    bounds = Bounds(Interval(down(worst.lower), math.inf, source, "nothing"))
    findings = tuple({one.message: one for each in [worst, *judged] for one in each.findings}.values())
    pipeline = worst.pipeline or as_coded(worst.uses, _laws_of_others(tracer, inputs, worst))
    verdict = kind(
        claim,
        bounds,
        findings[0].message if findings else _nothing_found(worst, guarantee, pipeline),
        ExactEvidence(loss=worst.loss),
        SampledEvidence(alpha=ALPHA if worst.sampled else None, runs=tracer.runs, seed=seed),
    )
    pair_epsilon = Interval.around(_hull(worst.lower, worst.upper))
    return TraceResult(verdict, worst.draws, findings, pipeline, worst.pair, pair_epsilon, tracer.runs)


def _laws_of_others(tracer: Tracer, inputs: Sequence[Any], worst: _Judged) -> dict[int, list[NodeLaw]]:
    """The laws of the same numbers for the other inputs, as far as there are runs left; by the position of the use."""
    numbers = {id(node): k for k, node in enumerate(worst.run.nodes)}
    found: dict[int, list[NodeLaw]] = {}
    for one in inputs if len(inputs) > 2 else ():
        if tracer.runs >= MOST_RUNS or any(one is of for of in worst.pair):
            continue
        run = tracer.run(one, values_of(worst.run))
        if len(run.nodes) != len(worst.run.nodes):
            continue
        for k, use in enumerate(worst.uses):
            law = node_law(run.nodes[numbers[id(use.x)]])
            if law.kind.shape == use.laws[0].kind.shape:
                found.setdefault(k, []).append(law)
    return found


def farthest_pairs(tracer: Tracer, inputs: Sequence[Any]) -> list[tuple[Any, Any]]:
    """All pairs if they are few; otherwise those between which the numbers before the noise differ most in l1."""
    pairs = list(combinations(range(len(inputs)), 2))
    if len(pairs) > MOST_PAIRS:
        inputs = inputs[:MOST_INPUTS]
        noise = values_of(tracer.run(inputs[0]))
        hidden = [_hidden_numbers(tracer.run(one, noise)) for one in inputs]
        pairs = sorted(combinations(range(len(inputs)), 2), key=lambda ij: -_distance(hidden[ij[0]], hidden[ij[1]]))
    different = ((inputs[i], inputs[j]) for i, j in pairs if not same_input(inputs[i], inputs[j]))
    return list(islice(different, MOST_PAIRS))


def _hidden_numbers(run: Run) -> Array:
    numbers = [node_law(node).centre.reshape(-1) for node in run.nodes if node.added]
    return np.concatenate([*numbers, np.zeros(0)])


def _distance(one: Array, other: Array) -> float:
    return float(np.nansum(np.abs(one - other))) if one.shape == other.shape else 0.0


def _limit(guarantee: Any, draws: Sequence[Draw]) -> Number:
    """The claimed ε with a margin for rounding."""
    doubles = all(draw.values.dtype.itemsize >= 8 for draw in draws)
    return guarantee.exact_epsilon * (1 + (TIE if doubles else TIE_OF_FLOATS))


def _hull(lower: Number, upper: Number) -> Number:
    return iv.mpf([lower.a, max(lower.b, upper.b)])


def _nothing_found(worst: _Judged, guarantee: Any, pipeline: str) -> str:
    most = f"{float(worst.upper.b):.6g}" if worst.upper.b < INFINITY.a else "∞"
    if worst.upper.b > _limit(guarantee, worst.draws).b:
        if not worst.draws:
            return (
                "The output changes from run to run, and no draw was seen: its randomness cannot be followed: audit it."
            )
        return f"The trace shows no violation, and its bound on the loss of this pair is {most}."
    said = f"No violation in these runs: between the inputs that were run ε is at most {most}. {beyond_runs(pipeline)}"
    return said if pipeline else without_noise(leaves(worst.run.output))


def _judge(tracer: Tracer, x: Any, y: Any, guarantee: Any) -> _Judged:
    nodes, branching = released_nodes(tracer, x, y)
    replays = [replay(tracer, x, y, nodes) for _ in range(REPLAYS)]
    first = replays[0]
    uses, delta = first.uses, guarantee.exact_delta
    found = [one for use in uses for one in (stale(replays, use), scaled_by_input(use)) if one is not None]
    if (both := shared(uses)) is not None:
        found.append(both)
    steady = all(_alike(first, other) for other in replays[1:])
    constant = of_two_ages(replays)
    exact = steady and not constant and not hidden(first) and not other_randomness(replays)
    fresh = not any(one.infinite for one in found)
    lower, upper, loss = ZERO, INFINITY, None
    if exact:
        lower, loss, more = _lower(first, guarantee)
        if (more or not fresh) and (keeps_answers(tracer, (x, y)) or doubted(tracer, (x, y), first)):
            exact, lower, loss, more, found = False, ZERO, None, [], []
        found += more
    everything = pair_loss(uses) if steady and first.comparable and all(one.equal for one in replays) else None
    seen = not branching and not constant and not hidden(first) and lost_sight(replays) is None
    seen = seen and not keeps_answers(tracer, (x, y))
    if everything is not None and fresh and seen and holds_far_out(tracer, x, y, nodes):
        upper = everything.epsilon(delta)
    if exact and not fresh:
        lower = INFINITY
    unseen = _unseen(replays)
    judged = _Judged(lower, upper, loss, (*found, *unseen), uses, (x, y), tuple(first.x.draws), first.x)
    chosen = judged_choices(tracer, (x, y), (first.x, first.y), guarantee) if not (found or hidden(first)) else None
    if chosen is not None:
        judged = replace(judged, lower=chosen.lower, upper=chosen.upper, loss=chosen.loss, findings=chosen.findings)
        return replace(judged, pipeline=chosen.pipeline)
    return judged if judged.lower.a == INFINITY.a else _leaking(tracer, judged, replays, guarantee)


def _lower(first: Replay, guarantee: Any) -> tuple[Number, PrivacyLoss | None, list[Finding]]:
    """What the released numbers show, and what they show after rounding or clamping."""
    delta, limit = guarantee.exact_delta, _limit(guarantee, first.x.draws).b
    released = [use for use in first.uses if use.released and alone(use)]
    found: list[Finding] = []
    lower, loss = ZERO, None
    if released and (together := pair_loss(released)) is not None:
        lower, loss = together.epsilon(delta), together.worst(delta)
    elif released and (parts := coordinates(released)) is not None:
        lower = of_different_scales(parts, delta)
    if lower.a > limit:
        found = [one for use in released if (one := wrong_formula(use)) is not None]
        found.append(too_large(released, lower, str(guarantee), least=loss is None))
    for coarse in first.coarse:
        shown = behind(coarse, delta)
        if shown.a > limit and shown.a > lower.a:
            hidden = [Use(coarse.of_x, coarse.of_y, released=False)]
            lower, found = shown, [too_large(hidden, shown, str(guarantee), least=True)]
    return lower, loss, found


def _alike(one: Replay, other: Replay) -> bool:
    """Whether what is hidden, and the noise on it, is the same in two replays."""
    if not (one.comparable and other.comparable) or len(one.uses) != len(other.uses):
        return False
    return all(
        first.released == second.released
        and first.gap.shape == second.gap.shape
        and all(np.array_equal(mine.kind, its.kind) for mine, its in zip(first.laws, second.laws, strict=True))
        and _close(first, second, first.gap, second.gap)
        and all(_close(first, second, mine.scale, its.scale) for mine, its in zip(first.laws, second.laws, strict=True))
        for first, second in zip(one.uses, other.uses, strict=True)
    )


def _close(first: Use, second: Use, one: Array, other: Array) -> bool:
    atol = max(first.tolerance, second.tolerance)
    return np.allclose(one, other, rtol=1e-9, atol=atol, equal_nan=True)


def _unseen(replays: Sequence[Replay]) -> list[Finding]:
    found = [
        Finding("opaque", place, f"{place} takes random numbers from {name}, which cannot be followed: audit it")
        for name, place in dict.fromkeys(replays[0].x.opaque)
    ]
    if not all(one.comparable for one in replays):
        said = "the two inputs do not draw the same noise in the same order: their draws cannot be compared"
        found.append(Finding("draws-differ", None, said))
    return found


def _leaking(tracer: Tracer, judged: _Judged, replays: Sequence[Replay], guarantee: Any) -> _Judged:
    """The same, with a part of the output that the input reaches around the noise, if the replays show one."""
    around = set.intersection(*(set(one.differing) for one in replays))
    comparable = all(one.comparable for one in replays)  # otherwise only parts without any noise can be judged
    if not around or (not comparable and not _constant(replays, sorted(around), judged.pair)[1]):
        return judged
    if keeps_answers(tracer, judged.pair):
        said = "an input that was run before gets the same answer again: such runs are not independent. Trace it again"
        return _with(judged, Finding("unfollowed", None, said))
    outputs, still, pair = _constant(replays, sorted(around), judged.pair)
    leaf = (still or sorted(around))[0]
    where = path_of(replays[0].x.output, leaf)
    if not still:
        return _varying(tracer, judged, replays, leaf)
    claimed = float(guarantee.exact_epsilon.b)
    runs = min(_runs_needed(claimed, guarantee.delta), (MOST_RUNS - tracer.runs) // 2)
    value, at = outputs[0][still[0]], slice(still[0], still[0] + 1)
    hits = [sum(same([value], leaves(tracer.run(one).output)[at])[0] for _ in range(runs)) for one in pair]
    rule = "leak" if judged.draws else "no-noise"
    if hits != [runs, 0]:
        return _varying(tracer, judged, replays, leaf) if comparable else judged
    epsilon = _shown(runs, guarantee.delta)
    place = None
    if (holder := first_holder(tracer, pair[0], leaf)) is not None:
        where, place = f"{where} is {holder[0]} and", holder[1]
    said = f"{where} has no noise: it was the same in {runs} runs of one input and never in {runs} of the other"
    more = "" if epsilon > claimed else "; an audit with more runs can refute the claim"
    judged = _with(judged, Finding(rule, place, f"{said} (ε ≥ {epsilon:.3g} with error probability {ALPHA:g}{more})"))
    if epsilon <= down(judged.lower):
        return judged
    return replace(judged, lower=number(epsilon), upper=INFINITY, sampled=True)


def _varying(tracer: Tracer, judged: _Judged, replays: Sequence[Replay], leaf: int) -> _Judged:
    """The same if that part of the output is not constant: a leak, unless some randomness was not followed."""
    if hidden(replays[0]):
        return judged
    where = path_of(replays[0].x.output, leaf)
    if (why := why_unknown(tracer, judged.pair, replays, leaf)) is not None:
        rule, place, said = why
        return _with(judged, Finding(rule, place, said.format(where=where)))
    said = f"the input reaches {where} around the noise: it differs even if all sums with noise are the same"
    return _with(judged, Finding("leak", None, said))


def _constant(
    replays: Sequence[Replay], around: list[int], pair: tuple[Any, Any]
) -> tuple[list[list[Any]], list[int], tuple[Any, Any]]:
    """Outputs of the input for which some of these leaves are always the same, which ones, and this input first."""
    for of_x in (True, False):
        outputs = [leaves((one.x if of_x else one.y).output) for one in replays]
        fits = [i for i in around if all(i < len(output) for output in outputs)]
        still = [i for i in fits if all(same(output[i : i + 1], outputs[0][i : i + 1])[0] for output in outputs)]
        if still:
            return outputs, still, pair if of_x else pair[::-1]
    return [], [], pair


def _with(judged: _Judged, finding: Finding) -> _Judged:
    return replace(judged, upper=INFINITY, findings=(*judged.findings, finding))


def _shown(runs: int, delta: float) -> float:
    """The ε shown by a value that all runs of one input give and none of the other, each bounded with error α/16."""
    if runs < 1:
        return 0.0
    least = (ALPHA / 2 / MOST_GIVEN) ** (1 / runs)
    return max(0.0, math.log(max(least - delta, 1e-300) / (1 - least))) * (1 - 1e-12)


def _runs_needed(epsilon: float, delta: float) -> int:
    return next((n for n in range(10, MOST_RUNS) if _shown(n, delta) > 1.02 * epsilon), MOST_RUNS)
