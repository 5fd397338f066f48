"""`dpassay.trace`: trace the given inputs, then hostile ones, and save the result to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpassay.audit.inputs.hostile_inputs import hostile_inputs
from dpassay.audit.remote.lines import seconds_of
from dpassay.audit.remote.timing import duration
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.trace.hostile import SHARE, WHOLE_ALPHA, quiet, with_hostile
from dpassay.trace.relations import TraceQuestion, check_different, stated_relation
from dpassay.trace.result import TraceResult
from dpassay.trace.runner import trace as trace_pairs
from dpassay.trace.watch.tracer import Tracer


def trace(
    f: Any,
    inputs: Sequence[Any] = (),
    *,
    pairs: Sequence[tuple[Any, Any]] = (),
    epsilon: Any,
    delta: Any = 0,
    seed: int = 0,
    name: str = "",
    neighbours: Neighbours | str | None = None,
    hostile: bool = True,
    save: str | Path | None = None,
    time_limit: float | None = None,
    time: str | float | None = None,
) -> TraceResult:
    """Run a mechanism on pairs of neighbors, or on inputs any two of which are, and judge its noise as coded.

    `hostile` inputs are tried too (docs/hostile.md). What they show is a warning; it refutes the claim only if
    `neighbours` states that the claim covers them. Every claim about texts covers two texts that differ in a word.
    `save` writes the result to a file, for `dpassay verify`. `time_limit` is how long one run may take, in seconds, and
    `time` how long runs are made until the claim is decided ("10s", "5m"); by default 3 seconds of work.

    >>> result = trace(lambda x, rng: x + rng.laplace(scale=1), [0.0, 1.0], epsilon=1)
    >>> result.verdict.word, [warning.message for warning in result.warnings][:2]
    ('open', ['NaN produces NaN', 'an infinity produces an infinity'])
    >>> trace(lambda x, rng: x + rng.laplace(scale=1), [0.0, 1.0], epsilon=1, neighbours="any").verdict.word
    'refuted'
    """
    if save is not None and Path(save).exists():
        raise InputError(f"{save} already exists: save to another file")
    if seed < 0:
        raise InputError(f"a seed must be a whole number, 0 or more, got {seed}")
    seconds = None if time is None else duration(time)
    check_different(inputs, pairs)
    relation = stated_relation(neighbours, inputs, pairs)
    if save is not None:
        plain([*inputs, *pairs])  # what cannot be saved is refused before the runs
    asked = TraceQuestion(tuple(inputs), tuple(pairs), epsilon, delta, seed, name, relation, hostile, seconds=seconds)
    tracer = f if isinstance(f, Tracer) else Tracer(f, seed, None if time_limit is None else seconds_of(time_limit))
    result = traced(tracer, asked)
    if save is not None:
        from dpassay.trace.storage.saved import save_trace

        save_trace(result, Path(save), tracer, asked)
    return result


def traced(tracer: Tracer, asked: TraceQuestion) -> TraceResult:
    """The trace of the given inputs, then of hostile ones."""
    of = tracer.subject
    label = asked.name or getattr(of, "__name__", type(of).__name__)
    claimed: dict[str, Any] = {"epsilon": asked.epsilon, "delta": asked.delta, "seed": asked.seed, "name": label}
    claimed["seconds"] = asked.seconds
    result = trace_pairs(tracer, asked.inputs, pairs=asked.pairs, **claimed)
    relation, x = asked.relation, (asked.inputs or asked.pairs[0])[0]
    if asked.hostile:
        tracer.most_draws = 1_000 + 20 * len(result.draws)
        # A text of several words; a single word may be one of a few that are allowed.
        of_text = isinstance(x, str) and len(x.split()) > 1
        assumed = relation or (Neighbours("word") if of_text else None)
        if result.verdict.open and assumed is not None:
            result = _worst(result, tracer, x, assumed, claimed)
        result = with_hostile(result, tracer, x, assumed, asked.tried)
    if relation is not None:
        claim = replace(result.verdict.claim, neighbours=relation)
        result = replace(result, verdict=replace(result.verdict, claim=claim), neighbours=relation)
    return result


def _worst(result: TraceResult, tracer: Tracer, x: Any, relation: Neighbours, claimed: dict[str, Any]) -> TraceResult:
    """The trace of a huge input that the claim covers, if that refutes it; otherwise the result unchanged.

    If any two inputs are neighbors, the other one is its opposite: after a clip they are as far apart as possible.
    """
    huge = [one.value for one in hostile_inputs(x) if one.neighbours(relation) and one.huge]
    if not huge:
        return result
    other = _opposite(huge[-1]) if relation.relation == "any" else x
    try:
        with quiet():
            found = trace_pairs(tracer, pairs=[(huge[-1], other)], **claimed, alpha=SHARE)
    except Exception:  # any exception means that the code refuses this input
        return result
    if not found.verdict.refuted or found.rules == ("raises",):  # a huge input may be refused
        return result
    if found.verdict.alpha is None:
        return found
    return replace(found, verdict=replace(found.verdict, sampled=replace(found.verdict.sampled, alpha=WHOLE_ALPHA)))


def _opposite(x: Any) -> Any:
    return type(x)(_opposite(one) for one in x) if isinstance(x, list | tuple) else -x
