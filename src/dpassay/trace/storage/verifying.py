"""Saved traces run again: once as asked, which must give the same results, and the pair once with a fresh seed.

An exact loss is the same whatever the noise; findings from counted runs must be reproduced.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpassay.audit.inputs.hostile_inputs import HostileInput
from dpassay.core.guarantee import make_guarantee
from dpassay.core.interval import bound
from dpassay.errors import InputError
from dpassay.evidence.verifier import Verification
from dpassay.trace.findings.rules import HOSTILE_RULES
from dpassay.trace.hostile import Probing, count
from dpassay.trace.result import TraceResult
from dpassay.trace.runner import SECONDS
from dpassay.trace.runner import trace as trace_pairs
from dpassay.trace.session import traced
from dpassay.trace.storage.saved import FindingRecord, TraceRecord, described, load_trace, record_of
from dpassay.trace.watch.tracer import Tracer

SAME = 1e-6  # relative: two computations of one number
ROOM = 10  # how many times as long as the original refutation a new one may take: the machine may be slower now
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?")
# Compared in other ways, or dependent on the available time.
_NOT_FOUND = {
    *("versions", "subject", "runs", "replays", "count", "apart_from", "pair_epsilon", "reason", "alpha", "seconds"),
}


def replay_trace(
    path: str | Path,
    subject: Any = None,
    *,
    name: str = "",
    seed: int | None = None,
    time_limit: float | None = None,
) -> Verification:
    """Run a saved trace again. `seed` is the fresh one; by default it is drawn at random.

    >>> import dpassay, tempfile
    >>> def noisy(x, rng):
    ...     return x + rng.laplace(scale=0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     word = dpassay.trace(noisy, pairs=[(0.0, 1.0)], epsilon=1, save=f"{folder}/t.json").verdict.word
    ...     word, replay_trace(f"{folder}/t.json", noisy, seed=1).ok
    ('refuted', True)
    """
    record = load_trace(Path(path))
    if seed is not None and seed < 0:
        raise InputError(f"a seed must be a whole number, 0 or more, got {seed}")
    if seed == record.seed:
        raise InputError(f"{seed} is the recorded seed; a fresh run needs another one")
    if subject is None:
        how = f"--python {record.subject['path']}" if "path" in record.subject else "replay_trace(file, subject)"
        raise InputError(f"verify never starts code that a file names; name the code again: {how}")
    tracer = subject if isinstance(subject, Tracer) else Tracer(subject, record.seed, time_limit)
    if (given := described(tracer, name)) != record.subject:
        own, other = (one.get("path") or one for one in (record.subject, given))
        raise InputError(f"the trace was of something else: {own}, not {other}")
    fresh = secrets.randbits(32) if seed is None else seed
    replays = bool(getattr(tracer.mechanism, "replays", True))
    now = _repeated(record, tracer)
    checks = [_all_the_same(record, now, replays), _with_fresh_seed(record, tracer, fresh)]
    established = (_follows(record), *(said for holds, said in checks if holds), *_other_versions(record, now))
    if not replays:
        established += ("the code uses its own random source",)
    guarantee = make_guarantee(record.epsilon, record.delta)
    claim = f"epsilon {record.epsilon}" + (f", delta {record.delta}" if guarantee.delta else "")
    return Verification(record.verdict, claim, established, tuple(said for holds, said in checks if not holds))


def _repeated(record: TraceRecord, tracer: Tracer) -> TraceRecord:
    """The result for the same question, computed again."""
    tracer.begin_again(record.seed)
    asked = replace(record.asked, seconds=_time_for(record))
    return record_of(traced(tracer, asked), tracer, asked)


def _time_for(record: TraceRecord) -> float | None:
    """How long the runs may take. A refutation ends when it is found again, so it may have longer."""
    return ROOM * (record.seconds or SECONDS) if record.verdict == "refuted" else record.seconds


def _follows(record: TraceRecord) -> str:
    """What follows from the numbers in the file. That the runs were made as recorded is not checked."""
    if record.count is not None:
        a, b = (f"{hits:,} of {runs:,}" for hits, runs in zip(record.count.hits, record.count.runs, strict=True))
        least = f"an epsilon of at least {bound(record.count.counted.epsilon, -1)}"
        return f"{least} follows from the recorded counts, {a} runs against {b}, which were not made again"
    if record.pair_epsilon[1] == math.inf:
        return "the file contains no bound"
    at = f" at delta {record.delta}" if float(record.delta) else ""
    most = f"an epsilon of at most {bound(record.pair_epsilon[1], 1)}{at}"
    most = f"{most}, apart from a probability of {record.apart_from:.3g},"
    return f"{most} follows from the recorded {record.replays:,} agreeing replays, which were not made again"


def _other_versions(record: TraceRecord, now: TraceRecord) -> tuple[str, ...]:
    """The versions in the file that differ from those of this run: they cannot be checked."""
    names = sorted({*record.versions, *now.versions})
    changed = [name for name in names if record.versions.get(name) != now.versions.get(name)]
    told = [f"{name} {record.versions.get(name, 'none')}, now {now.versions.get(name, 'none')}" for name in changed]
    return (f"recorded with other versions, which is not checked: {'; '.join(told)}",) if told else ()


def _all_the_same(record: TraceRecord, now: TraceRecord, replays: bool) -> tuple[bool, str]:
    """Whether everything is found again, and a sentence about it."""
    which = f"with the recorded seed {record.seed}"
    before, after = (_compared(one, replays) for one in (record, now))
    if before["verdict"] != after["verdict"]:
        return False, f"{which}: {now.verdict}, where {record.verdict} is recorded ({now.reason})"
    for name, was in before.items():
        if (found := _difference(was, after[name], name)) is not None:
            return False, f"{which}: {found}"
    return True, f"{which}: {_shown(now.findings)}, as recorded, and {_loss(now.pair_epsilon[0])}"


def _compared(record: TraceRecord, replays: bool) -> dict[str, Any]:
    """What a repetition must find again. Without the recorded noise: which draws there are, but not how many."""
    data = {name: one for name, one in record.model_dump(mode="json").items() if name not in _NOT_FOUND}
    for name in ("findings", "warnings"):
        data[name] = [{key: one[key] for key in ("rule", "file", "line")} for one in data[name]]
        if replays:  # the same noise is described in the same words, up to what was counted
            for one, said in zip(data[name], getattr(record, name), strict=True):
                one["message"] = said.message.partition("; counted:")[0]
    if not replays:
        lines = {json.dumps(one, sort_keys=True): one for one in data["draws"]}
        data |= {"draws": [lines[key] for key in sorted(lines)]}
    return data


def _difference(was: Any, now: Any, where: str) -> str | None:
    """The first difference, up to the rounding of numbers."""
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs: Any = ((one, other, f"{where}[{i}]") for i, (one, other) in enumerate(zip(was, now, strict=True)))
    elif isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        pairs = ((was[key], now[key], f"{where}.{key}") for key in was)
    else:
        return None if _alike(was, now) else f"{where} is {now!r:.200}, where {was!r:.200} is recorded"
    return next((found for one, other, at in pairs if (found := _difference(one, other, at)) is not None), None)


def _alike(was: Any, now: Any) -> bool:
    if isinstance(was, float) and isinstance(now, float):
        return was == now or math.isclose(was, now, rel_tol=SAME) or (was != was and now != now)
    if type(was) is not type(now):
        return False
    if not isinstance(was, str):
        return bool(was == now)
    return _NUMBER.sub("#", was) == _NUMBER.sub("#", now) and all(
        math.isclose(float(one), float(other), rel_tol=20 * SAME)  # six digits are shown
        for one, other in zip(_NUMBER.findall(was), _NUMBER.findall(now), strict=True)
    )


def _with_fresh_seed(record: TraceRecord, tracer: Tracer, seed: int) -> tuple[bool, str]:
    """Whether other noise gives the same verdict, the same rule with its line, and the same loss, and a sentence."""
    which = f"with the fresh seed {seed}"
    tracer.begin_again(seed)
    result = _pair_again(record, tracer, seed)
    found = record_of(result, tracer, record.asked).findings
    if result.verdict.word != record.verdict:
        return False, f"{which}: {result.verdict.word}, where {record.verdict} is recorded ({result.verdict.reason})"
    if (first := _shown(record.findings)) != (second := _shown(found)):
        return False, f"{which}: {second}, where {first} is recorded"
    low, high = result.traced_epsilon.lower, result.traced_epsilon.upper
    if not all(map(_alike, record.traced_epsilon, (low, high))):
        was = " to ".join(f"{end:.6g}" for end in record.traced_epsilon)
        return False, f"{which}: epsilon as watched is {low:.6g} to {high:.6g}, where {was} is recorded"
    return True, f"{which}: {second}, and {_loss(result.pair_epsilon.lower)}"


def _loss(low: float) -> str:
    least = "an infinite epsilon" if low == math.inf else f"an epsilon of at least {bound(low, -1)}"
    return f"{least} for the pair" if low > 0 else "no epsilon above 0 shown for the pair"


def _shown(findings: list[FindingRecord]) -> str:
    """The first finding by its rule and its line."""
    if not findings:
        return "no finding"
    return findings[0].rule + (f" at {findings[0].file}:{findings[0].line}" if findings[0].file else "")


def _pair_again(record: TraceRecord, tracer: Tracer, seed: int) -> TraceResult:
    """The trace of the recorded pair. Findings from hostile inputs are counted again."""
    pair = record.two
    claimed: dict[str, Any] = {"epsilon": record.epsilon, "delta": record.delta, "seed": seed}
    claimed["seconds"] = _time_for(record)
    if not record.findings or record.findings[0].rule not in HOSTILE_RULES:
        return trace_pairs(tracer, pairs=[pair], **claimed)
    ordinary = trace_pairs(tracer, pairs=[(pair[0], pair[0])], **claimed)
    probing = Probing(tracer, pair[0], until=ordinary.runs + 400)
    words = [set(x.split()) if isinstance(x, str) else set(map(str, x)) if isinstance(x, list) else set() for x in pair]
    new = sorted(words[1] - words[0])
    seen = probing.look(HostileInput("the second input", "rows", pair[1], word=new[0] if new else ""))
    if seen is None or seen.event is None:
        return ordinary
    return count(ordinary, probing, seen)[0] or ordinary
