"""Traces on file. A file is data: reading one runs nothing, and the subject must be given again.

It stores the question, so that it can be asked again, and everything that was found.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dpassay.audit.checkpoint import Count, Real, form_of, in_form
from dpassay.audit.targets import describe
from dpassay.core.files import write_whole
from dpassay.core.guarantee import make_guarantee
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.core.records import read_record
from dpassay.trace.findings import Finding
from dpassay.trace.relations import check_different, stated_relation
from dpassay.trace.replay import Tracer
from dpassay.trace.runner import TraceResult
from dpassay.trace.session import Asked

SCHEMA: Literal["dpassay/trace/2"] = "dpassay/trace/2"


class _Record(BaseModel):
    # Hostile inputs have infinite coordinates: Python's own JSON preserves them.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")


class FindingRecord(_Record):
    """A rule, the sentence, and the line, if there is one; its file without the folder."""

    rule: str = Field(max_length=100)
    message: str = Field(max_length=4000)
    file: str
    line: Count


class DrawRecord(_Record):
    """What was drawn, and by which line."""

    source: str
    distribution: str
    parameters: dict[str, Any]
    shape: list[Count]
    file: str
    line: Count


class TraceRecord(_Record):
    """A trace on file."""

    schema_: Literal["dpassay/trace/2"] = Field(alias="schema")
    versions: dict[str, str]
    subject: dict[str, str]
    epsilon: str = Field(max_length=100)
    delta: str = Field(max_length=100)
    neighbours: str = Field(description="the relation that was stated; empty if none was")
    seed: int = Field(ge=0)
    inputs: list[Any] = Field(description="of which any two are neighbours; empty where pairs were given")
    pairs: list[Any] = Field(description="of neighbours, one after the other: x, y, x, y …")
    given_forms: list[str] = Field(description="of each of these: list, tuple, array and its dtype, or empty")
    hostile: bool
    tried: Count = Field(description="hostile inputs that were tried")
    pair: list[Any] = Field(min_length=2, max_length=2, description="of the verdict")
    forms: list[str] = Field(min_length=2, max_length=2)
    verdict: Literal["refuted", "open"]
    reason: str
    alpha: Real | None = Field(description="error probability, where the verdict rests on counted runs")
    pair_epsilon: list[Real] = Field(min_length=2, max_length=2)
    pipeline: str
    findings: list[FindingRecord]
    warnings: list[FindingRecord]
    draws: list[DrawRecord]
    runs: Count

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if bool(self.inputs) == bool(self.pairs) or len(self.pairs) % 2:
            raise ValueError("it has inputs or pairs, one of them")
        if len(self.given_forms) != len(self.inputs) + len(self.pairs):
            raise ValueError("its forms are for another number of inputs")
        make_guarantee(self.epsilon, self.delta)
        asked = self.asked
        check_different(asked.inputs, asked.pairs)
        stated_relation(asked.relation, asked.inputs, asked.pairs)
        return self

    @property
    def two(self) -> tuple[Any, Any]:
        """The pair of the verdict with its original types."""
        first, second = map(in_form, self.pair, self.forms)
        return first, second

    @property
    def asked(self) -> Asked:
        """What was asked, to ask it again."""
        given = list(map(in_form, [*self.inputs, *self.pairs], self.given_forms))
        pairs = tuple(zip(given[::2], given[1::2], strict=True)) if self.pairs else ()
        relation = Neighbours(self.neighbours) if self.neighbours else None
        inputs, path = () if pairs else tuple(given), self.subject.get("path", "")
        return Asked(inputs, pairs, self.epsilon, self.delta, self.seed, path, relation, self.hostile, self.tried)


def record_of(result: TraceResult, tracer: Tracer, asked: Asked) -> TraceRecord:
    """A trace as data."""
    data = result.to_dict()
    given = [*asked.inputs, *(x for pair in asked.pairs for x in pair)] if not asked.inputs else list(asked.inputs)
    one_by_one = [plain(x) for x in given]
    return TraceRecord(
        schema=SCHEMA,
        versions={
            **versions(),
            **{f"{name} of the code": one for name, one in getattr(tracer, "versions", {}).items()},
        },
        subject=described(tracer, asked.name),
        epsilon=str(asked.epsilon),
        delta=str(asked.delta),
        neighbours="" if asked.relation is None else asked.relation.kind,
        seed=asked.seed,
        inputs=one_by_one if asked.inputs else [],
        pairs=[] if asked.inputs else one_by_one,
        given_forms=[form_of(x) for x in given],
        hostile=asked.hostile,
        tried=result.tried,
        pair=[plain(x) for x in result.pair],
        forms=[form_of(x) for x in result.pair],
        alpha=result.verdict.alpha,
        findings=[_finding(one) for one in result.findings],
        warnings=[_finding(one) for one in result.warnings],
        draws=[DrawRecord(**{**draw, "file": Path(draw["file"]).name}) for draw in data["draws"]],
        **{name: data[name] for name in ("verdict", "reason", "pair_epsilon", "pipeline", "runs")},
    )


def _finding(one: Finding) -> FindingRecord:
    file, line = ("", 0) if one.place is None else (Path(one.place.file).name, one.place.line)
    return FindingRecord(rule=one.rule, message=one.message, file=file, line=line)


def save_trace(result: TraceResult, path: Path, tracer: Tracer, asked: Asked) -> None:
    """Write a trace to a file, whole or not at all."""
    record = record_of(result, tracer, asked)
    write_whole(path, json.dumps(record.model_dump(mode="json", by_alias=True), indent=1) + "\n")


def versions() -> dict[str, str]:
    """What a trace is made with."""
    from dpassay import __version__

    found = {"dpassay": __version__, "Python": platform.python_version(), "numpy": np.__version__}
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "scipy")}
    return {**found, **{name: str(version) for name, version in loaded.items() if version is not None}}


def described(tracer: Tracer, name: str) -> dict[str, str]:
    """What is traced, by its path or its type."""
    return {"kind": "python", "path": name} if ":" in name else describe(tracer.mechanism)


def load_trace(path: Path) -> TraceRecord:
    """Read a trace from a file."""
    return read_record(path, TraceRecord, SCHEMA, "trace's file")
