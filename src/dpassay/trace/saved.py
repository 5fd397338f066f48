"""Traces on file, and their replay. A file is data: reading one runs nothing, and the subject must be given again.

A replay runs the pair of the verdict once with the recorded seed and once with a fresh one. An exact loss is the same
whatever the noise; what rests on counted runs must be found again.
"""

from __future__ import annotations

import json
import math
import platform
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpassay.audit.checkpoint import LARGEST_FILE, Count, Real, form_of, in_form
from dpassay.audit.hostile_inputs import HostileInput
from dpassay.audit.targets import describe
from dpassay.core.files import write_whole
from dpassay.core.guarantee import make_guarantee
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.evidence.verifier import Verification
from dpassay.trace.hostile import Probing, count
from dpassay.trace.replay import Tracer
from dpassay.trace.rules import HOSTILE_RULES
from dpassay.trace.runner import TraceResult
from dpassay.trace.runner import trace as trace_pairs

SCHEMA: Literal["dpassay/trace/1"] = "dpassay/trace/1"
SAME = 1e-6  # relative: two computations of one loss


class _Record(BaseModel):
    # Hostile inputs have infinite coordinates: as Python's own JSON they come back.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class FindingRecord(_Record):
    """A rule, the line and the sentence."""

    rule: str = Field(max_length=100)
    message: str = Field(max_length=4000)
    file: str = ""
    line: int = Field(default=0, ge=0)


class TraceRecord(_Record):
    """A trace on file."""

    schema_: Literal["dpassay/trace/1"] = Field(alias="schema", default=SCHEMA)
    versions: dict[str, str]
    subject: dict[str, str]
    epsilon: str = Field(max_length=100)
    delta: str = Field(max_length=100)
    neighbours: str = Field(description="the relation that was stated; empty if none was")
    seed: int = Field(ge=0)
    pair: list[Any] = Field(min_length=2, max_length=2)
    forms: list[str] = Field(min_length=2, max_length=2, description="of each input: list, tuple, array and its dtype")
    verdict: Literal["refuted", "open"]
    reason: str
    alpha: Real | None = Field(description="error probability, where the verdict rests on counted runs")
    pair_epsilon: tuple[Real, Real]
    pipeline: str
    findings: list[FindingRecord]
    warnings: list[FindingRecord]
    draws: list[dict[str, Any]]
    runs: Count

    @property
    def inputs(self) -> tuple[Any, Any]:
        """The pair in the form that it had."""
        first, second = map(in_form, self.pair, self.forms)
        return first, second


def save_trace(
    result: TraceResult, path: Path, tracer: Tracer, asked: dict[str, Any], relation: Neighbours | None
) -> None:
    """Write a trace to a file, whole or not at all; `asked` has what is claimed, the seed, and the subject's path."""
    data = result.to_dict()
    record = TraceRecord(
        versions={
            **versions(),
            **{f"{name} of the code": one for name, one in getattr(tracer, "versions", {}).items()},
        },
        subject=_described(tracer, asked["name"]),
        epsilon=str(asked["epsilon"]),
        delta=str(asked["delta"]),
        neighbours="" if relation is None else relation.kind,
        seed=asked["seed"],
        pair=[plain(x) for x in result.pair],
        forms=[form_of(x) for x in result.pair],
        alpha=result.verdict.alpha,
        **{name: data[name] for name in TraceRecord.model_fields if name in data},
    )
    write_whole(path, json.dumps(record.model_dump(mode="json", by_alias=True), indent=1) + "\n")


def versions() -> dict[str, str]:
    """What the trace was made with."""
    from dpassay import __version__

    found = {"dpassay": __version__, "Python": platform.python_version(), "numpy": np.__version__}
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "scipy")}
    return {**found, **{name: str(version) for name, version in loaded.items() if version is not None}}


def _described(tracer: Tracer, name: str) -> dict[str, str]:
    return {"kind": "python", "path": name} if ":" in name else describe(tracer.mechanism)


def load_trace(path: Path) -> TraceRecord:
    """Read a trace from a file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} is larger than any trace's file ({LARGEST_FILE} bytes)")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a trace's file, or was cut off: {error}"[:300]) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise InputError(f"{path} is not a trace's file: its schema is not {SCHEMA!r}")
    try:
        return TraceRecord.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{path} is damaged: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def replay_trace(
    path: str | Path,
    subject: Any = None,
    *,
    name: str = "",
    seed: int | None = None,
    time_limit: float | None = None,
) -> Verification:
    """Run the pair of a saved trace again. `seed` is the fresh one; by default it is drawn at random.

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
        raise InputError(f"the trace was of something that this file must not start by itself; give it again: {how}")
    fresh = secrets.randbits(32) if seed is None else seed
    if not isinstance(subject, Tracer):
        subject = Tracer(subject, record.seed, time_limit)
    checks = [_again(record, subject, name, one) for one in (record.seed, fresh)]
    established = tuple(said for holds, said in checks if holds)
    if not getattr(subject.mechanism, "replays", True):
        established += (f"the seed does not replay the noise: the code makes its own randomness{_matters(record)}",)
    guarantee = make_guarantee(record.epsilon, record.delta)
    claim = f"epsilon {record.epsilon}" + (f", delta {record.delta}" if guarantee.delta else "")
    return Verification(record.verdict, claim, established, tuple(said for holds, said in checks if not holds))


def _matters(record: TraceRecord) -> str:
    return "" if record.alpha is not None else "; the loss does not depend on it"


def _again(record: TraceRecord, tracer: Tracer, name: str, seed: int) -> tuple[bool, str]:
    """Whether the verdict, the rule with its line, and the loss of the pair are the same; and a sentence."""
    tracer.begin_again(seed)
    if (given := _described(tracer, name)) != record.subject:
        own, other = (one.get("path") or one for one in (record.subject, given))
        raise InputError(f"the trace was of something else: {own}, not {other}")
    which = f"with the {'recorded' if seed == record.seed else 'fresh'} seed {seed}"
    result = _traced(record, tracer, seed)
    first, second = _shown(record.findings), _shown(FindingRecord(**one.to_dict()) for one in result.findings)
    if result.verdict.word != record.verdict:
        return False, f"{which}: {result.verdict.word}, where {record.verdict} is recorded ({result.verdict.reason})"
    if first != second:
        return False, f"{which}: {second}, where {first} is recorded"
    low, high = result.pair_epsilon.lower, result.pair_epsilon.upper
    if record.alpha is None and not all(map(_close, (low, high), record.pair_epsilon)):
        was = " to ".join(f"{end:.6g}" for end in record.pair_epsilon)
        return False, f"{which}: epsilon of the pair is {low:.6g} to {high:.6g}, where {was} is recorded"
    least = "an infinite epsilon" if low == math.inf else f"an epsilon of at least {low:.6g}"
    loss = f"{least} for the pair" if low > 0 else "no epsilon above 0 shown for the pair"
    return True, f"{which}: {second}, and {loss}, as recorded"


def _shown(findings: Iterable[FindingRecord]) -> str:
    """The first finding by its rule and its line; the line's file without its folder."""
    first = next(iter(findings), None)
    if first is None:
        return "no finding"
    return first.rule + (f" at {Path(first.file).name}:{first.line}" if first.file else "")


def _close(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=SAME)


def _traced(record: TraceRecord, tracer: Tracer, seed: int) -> TraceResult:
    """The trace of the recorded pair. What a hostile input showed is counted again."""
    pair = record.inputs
    claimed: dict[str, Any] = {"epsilon": record.epsilon, "delta": record.delta, "seed": seed}
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
