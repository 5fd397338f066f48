"""What a page shows about a trace: the sentence, the lines of code with what is wrong there, the draws, the pair."""

from __future__ import annotations

import math
from typing import Any

from dpassay.audit.inputs.checks import shown
from dpassay.core.interval import Interval, bound, outward_fixed
from dpassay.errors import counted
from dpassay.trace.findings.code import code_around
from dpassay.trace.findings.findings import Finding
from dpassay.trace.findings.rules import meaning
from dpassay.trace.result import TraceResult


def trace_shown(result: TraceResult) -> dict[str, Any]:
    """All contents of the page, for templates/trace.html."""
    verdict = result.verdict
    return {
        "word": verdict.word,
        "reason": verdict.reason,
        "note": f"This rests on counted runs: its error probability is {verdict.alpha:g}." if verdict.refuted else "",
        "findings": [*map(_finding, result.findings), *(_finding(one, "warning: ") for one in result.warnings)],
        "facts": [
            ("as coded", result.as_coded),
            ("claimed", str(verdict.guarantee)),
            *([] if result.neighbours is None else [("between", str(result.neighbours))]),
            ("first input", shown(result.pair[0], 300)),
            ("second input", shown(result.pair[1], 300)),
            ("ε of this pair", _epsilon(result)),
            ("ε of the noise, as watched", _as_watched(result.traced_epsilon)),
            ("code", verdict.name),
            ("runs", f"{result.runs:,}"),
            ("seed", str(verdict.seed)),
        ],
        "draws": [("line", "source", "distribution", "numbers"), *_draws(result)],
    }


def _finding(one: Finding, sort: str = "") -> dict[str, Any]:
    code = [] if one.place is None else code_around(one.place.file, one.place.line)
    where = "" if one.place is None else str(one.place)
    said = {"message": one.message, "meaning": meaning(one.rule)}
    return {"title": sort + one.rule, **said, "where": where, "code": code}


def _epsilon(result: TraceResult) -> str:
    """What counted runs show, and what agreeing replays bound."""
    found, trials = result.pair_epsilon, result.trials
    least = f"at least {bound(found.lower, -1)}" if found.lower > 0 else ""
    if found.upper == math.inf or trials is None:
        return least or "not bounded"
    share = f"{outward_fixed(result.apart_from, 1, 2, 100)}%"
    share = f"apart from a probability of at most {share} (confidence {1 - trials.alpha:.2%})"
    most = f"at most {bound(found.upper, 1)}, {share}, in {counted(trials.agreed, 'replay')}"
    return f"{least}; {most}" if least else most


def _as_watched(found: Interval) -> str:
    if found.lower == math.inf:
        return "∞: the two inputs can be distinguished with certainty"
    if found.upper == math.inf:
        return f"at least {bound(found.lower, -1)}" if found.lower > 0 else "not known"
    return str(found)


def _draws(result: TraceResult) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for draw in result.draws:
        given = ", ".join(f"{name}={shown(value)}" for name, value in draw.parameters.items())
        rows.append((str(draw.place), draw.source, f"{draw.distribution}({given})", f"{draw.values.size:,}"))
    return rows
