"""Trace files. A file is data: reading one runs nothing, and the subject must be given again.

It stores the question, so that it can be asked again, and everything that was found.
"""

from __future__ import annotations

import json
import math
import platform
import sys
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dpassay.audit.mechanisms.targets import describe
from dpassay.audit.storage.checkpoint import Count, Real, form_of, in_form
from dpassay.core.files import write_whole
from dpassay.core.guarantee import EpsilonDelta, make_guarantee
from dpassay.core.interval import bound
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.core.records import read_record
from dpassay.trace.findings.explaining import so_often
from dpassay.trace.findings.findings import Finding
from dpassay.trace.natural.counting import Count as Counted
from dpassay.trace.relations import TraceQuestion, check_different, stated_relation
from dpassay.trace.replay.trials import MOST_LEFT_OUT, ReplayTrials
from dpassay.trace.result import TraceResult
from dpassay.trace.watch.tracer import Tracer

MOST_ALPHA = 0.2
SCHEMA: Literal["dpassay/trace/3"] = "dpassay/trace/3"


class _SavedModel(BaseModel):
    # Hostile inputs have infinite coordinates: Python's own JSON preserves them.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")


class FindingRecord(_SavedModel):
    """A rule, the sentence, and the line, if there is one; its file without the folder."""

    rule: str = Field(max_length=100)
    message: str = Field(max_length=4000)
    file: str
    line: Count


class SavedDraw(_SavedModel):
    """What was drawn, and by which line."""

    source: str
    distribution: str
    parameters: dict[str, Any]
    shape: list[Count]
    file: str
    line: Count


class CountRecord(_SavedModel):
    """An event counted in natural runs: how often, of how many, first of the input that has it more often."""

    event: str = Field(max_length=1000)
    hits: list[Count] = Field(min_length=2, max_length=2)
    runs: list[Count] = Field(min_length=2, max_length=2)
    first: Literal[0, 1]
    delta: Real
    alpha: Real
    calls: Literal[1, 2] = Field(description="of the subject, in each run")
    epsilon: Real

    @property
    def counted(self) -> Counted:
        """The same, to compute again what it shows."""
        hits, runs = (self.hits[0], self.hits[1]), (self.runs[0], self.runs[1])
        return Counted(self.event, hits, runs, self.first, self.delta, self.alpha, calls=self.calls)


class TraceRecord(_SavedModel):
    """A trace on file."""

    schema_: Literal["dpassay/trace/3"] = Field(alias="schema")
    versions: dict[str, str]
    subject: dict[str, str]
    epsilon: str = Field(max_length=100)
    delta: str = Field(max_length=100)
    neighbours: str = Field(description="the relation that was stated; empty if none was")
    seed: int = Field(ge=0)
    inputs: list[Any] = Field(description="of which any two are neighbors; empty where pairs were given")
    pairs: list[Any] = Field(description="of neighbors, one after the other: x, y, x, y …")
    given_forms: list[str] = Field(description="of each of these: list, tuple, array and its dtype, or empty")
    hostile: bool
    seconds: Real | None = Field(default=None, gt=0, description="for the runs; None if it was not stated")
    tried: Count = Field(description="hostile inputs that were tried")
    pair: list[Any] = Field(min_length=2, max_length=2, description="of the verdict")
    forms: list[str] = Field(min_length=2, max_length=2)
    verdict: Literal["refuted", "open"]
    reason: str
    alpha: Real = Field(description="error probability of what is said about the pair")
    pair_epsilon: list[Real] = Field(min_length=2, max_length=2)
    apart_from: Real = Field(description="the probability that the upper end leaves out; 1 without one")
    replays: Count = Field(description="that agreed to the last bit, one after the other from the first")
    left_out: Count = Field(default=0, description="replays besides these, on paths that were not known")
    count: CountRecord | None
    traced_epsilon: list[Real] = Field(min_length=2, max_length=2, description="of the noise as it was watched")
    pipeline: str
    findings: list[FindingRecord]
    warnings: list[FindingRecord]
    draws: list[SavedDraw]
    runs: Count

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if bool(self.inputs) == bool(self.pairs) or len(self.pairs) % 2:
            raise ValueError("it must have either inputs or pairs")
        if len(self.given_forms) != len(self.inputs) + len(self.pairs):
            raise ValueError("the number of its forms does not match its inputs")
        make_guarantee(self.epsilon, self.delta)
        asked = self.asked
        check_different(asked.inputs, asked.pairs)
        stated_relation(asked.relation, asked.inputs, asked.pairs)
        self._follows()
        return self

    def _follows(self) -> None:
        """Check that what the file says about the pair follows from the counts and the replays."""
        if not 0 < self.alpha <= MOST_ALPHA:
            raise ValueError(
                f"its error probability is {self.alpha:g}; a trace's is above 0 and at most {MOST_ALPHA:g}"
            )
        claimed = make_guarantee(self.epsilon, self.delta)
        least = 0.0 if self.count is None else self.count.counted.epsilon
        if self.count is not None:
            few = all(0 <= hits <= runs for hits, runs in zip(self.count.hits, self.count.runs, strict=True))
            if not few or not 0 < self.count.alpha <= self.alpha or self.count.delta != claimed.delta:
                raise ValueError("its counts are not those of an event at this error probability and delta")
            if not math.isclose(self.count.epsilon, least, rel_tol=1e-6, abs_tol=1e-9):
                raise ValueError(f"its counts show epsilon {least:.6g}, not {self.count.epsilon:.6g}")
        if (self.verdict == "refuted") != (least > claimed.claimed):
            raise ValueError(f"its counts show epsilon {least:.6g}, so the claim is not {self.verdict}")
        if not math.isclose(self.pair_epsilon[0], least, rel_tol=1e-6, abs_tol=1e-9):
            raise ValueError(
                f"the lower end for its pair is {self.pair_epsilon[0]:.6g}, and its counts show {least:.6g}"
            )
        left = 1.0 if self.pair_epsilon[1] == math.inf else self._trials.exception(self.pair_epsilon[1])
        if not math.isclose(self.apart_from, left, rel_tol=1e-6) or (
            self.pair_epsilon[1] < math.inf and left > MOST_LEFT_OUT
        ):
            raise ValueError(f"{self.replays} replays leave out a probability of {left:.3g}, not {self.apart_from:.3g}")
        self._says_so(claimed)

    def _says_so(self, claimed: EpsilonDelta) -> None:
        """Check that the words of a refutation or a bound contain the numbers that support it."""
        if self.verdict == "refuted" and self.count is not None:
            counted = self.count.counted
            said = f"; counted: {counted}: ε ≥ {bound(counted.epsilon, -1, significant=3)} (error probability "
            if not self.findings or self.reason != self.findings[0].message or said not in self.reason:
                raise ValueError("its reason is not what its counts show")
        elif self.pair_epsilon[1] <= claimed.claimed * (1 + 1e-5):
            said = so_often(self._trials, self.pair_epsilon[1], claimed.delta)
            if said[1:] not in self.reason:  # its first letter may be a capital
                raise ValueError("its reason is not what its replays show")

    @property
    def _trials(self) -> ReplayTrials:
        return ReplayTrials(self.replays, self.alpha, left_out=self.left_out)

    @property
    def two(self) -> tuple[Any, Any]:
        """The pair of the verdict with its original types."""
        first, second = map(in_form, self.pair, self.forms)
        return first, second

    @property
    def asked(self) -> TraceQuestion:
        """What was asked, to ask it again."""
        given = list(map(in_form, [*self.inputs, *self.pairs], self.given_forms))
        pairs = tuple(zip(given[::2], given[1::2], strict=True)) if self.pairs else ()
        relation = Neighbours(self.neighbours) if self.neighbours else None
        inputs, path = () if pairs else tuple(given), self.subject.get("path", "")
        claimed, limits = (self.epsilon, self.delta), (self.tried, self.seconds)
        return TraceQuestion(inputs, pairs, *claimed, self.seed, path, relation, self.hostile, *limits)


_SAME_NAMES = (
    *("verdict", "reason", "pair_epsilon", "traced_epsilon", "pipeline", "runs", "apart_from", "replays", "left_out"),
    "count",
)


def record_of(result: TraceResult, tracer: Tracer, asked: TraceQuestion) -> TraceRecord:
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
        seconds=asked.seconds,
        tried=result.tried,
        pair=[plain(x) for x in result.pair],
        forms=[form_of(x) for x in result.pair],
        alpha=data["alpha"],
        findings=[_finding(one) for one in result.findings],
        warnings=[_finding(one) for one in result.warnings],
        draws=[SavedDraw(**{**draw, "file": Path(draw["file"]).name}) for draw in data["draws"]],
        **{name: data[name] for name in _SAME_NAMES},
    )


def _finding(one: Finding) -> FindingRecord:
    file, line = ("", 0) if one.place is None else (Path(one.place.file).name, one.place.line)
    return FindingRecord(rule=one.rule, message=one.message, file=file, line=line)


def save_trace(result: TraceResult, path: Path, tracer: Tracer, asked: TraceQuestion) -> None:
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
    """The traced subject, by its path or its type."""
    return {"kind": "python", "path": name} if ":" in name else describe(tracer.mechanism)


def load_trace(path: Path) -> TraceRecord:
    """Read a trace from a file."""
    return read_record(path, TraceRecord, SCHEMA, "trace's file")
