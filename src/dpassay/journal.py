"""Audits on file: what was asked, and the rules and counts so far. A file is data; reading one runs nothing.

The same file serves to go on with an audit that was interrupted and to play a finished one again.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from dpassay.attacks import (
    Boosted,
    Counted,
    Guarded,
    Guesser,
    Likelihood,
    Linear,
    Nearest,
    Ngrams,
    Statistic,
)
from dpassay.errors import InputError
from dpassay.game import Epoch, Game
from dpassay.inputs import plain
from dpassay.law import Law
from dpassay.learning import Rule
from dpassay.statistics import Tally

SCHEMA = "dpassay/audit/1"
LARGEST_FILE = 200_000_000  # bytes


def _write(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


# JSON has no infinities: they are written as text, "inf" and "-inf".
Real = Annotated[float, BeforeValidator(float), PlainSerializer(_write, return_type=float | str)]
Count = Annotated[int, Field(ge=0, le=10**15)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RuleRecord(_Record):
    """A rule: its guesser as data, and its thresholds."""

    guesser: dict[str, Any]
    low: Real
    high: Real
    right: Count
    wrong: Count
    promise: Real
    grain: Real = Field(gt=0)
    candidates: int = Field(ge=2)


class EpochRecord(_Record):
    """A rule and its counts."""

    rule: RuleRecord
    right: Count
    wrong: Count
    runs: Count
    expected_right: Real = Field(gt=0)
    expected_wrong: Real = Field(gt=0)
    sides: int = Field(ge=1, le=2)
    learnt_from: Count
    length: Count
    singly: bool
    sizes: list[Count]


class GameRecord(_Record):
    """One game: its inputs, its random streams, its share of the error probability, its epochs."""

    inputs: list[Any] = Field(min_length=2)
    number: Count
    alpha: Real = Field(gt=0, lt=1)
    runs: Count
    epochs: list[EpochRecord]


class Asked(_Record):
    """What the audit was asked: two audits with the same of these, version included, are one."""

    version: str
    subject: dict[str, str]
    inputs: str = Field(description="SHA-256 of all inputs that were offered")
    epsilon: Real
    delta: Real
    alpha: Real
    seed: int
    fixed: Count = Field(description="the number of runs, where it was fixed; else 0")
    bits: bool


class Journal(_Record):
    """An audit on file."""

    schema_: Literal["dpassay/audit/1"] = Field(alias="schema", default="dpassay/audit/1")
    asked: Asked
    verdict: Literal["refuted", "open", "unfinished"]
    runs: Count
    searched: Count
    main: GameRecord | None
    witness: GameRecord | None


def save(journal: Journal, path: Path) -> None:
    """Write an audit to a file, whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        text = json.dumps(journal.model_dump(mode="json", by_alias=True), indent=1, ensure_ascii=False)
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load(path: Path) -> Journal:
    """Read an audit from a file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} is larger than any audit's file ({LARGEST_FILE} bytes)")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not an audit's file, or was cut off: {error}"[:300]) from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise InputError(f"{path} is not an audit's file: its schema is not {SCHEMA!r}")
    try:
        return Journal.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path} is damaged: {where}: {first['msg']}") from None


def game_record(game: Game, inputs: Sequence[Any], number: int, alpha: float) -> GameRecord:
    """A game as data."""
    return GameRecord(
        inputs=[plain(x) for x in inputs],
        number=number,
        alpha=alpha,
        runs=game.runs,
        epochs=[_epoch_record(epoch) for epoch in game.epochs],
    )


def _epoch_record(epoch: Epoch) -> EpochRecord:
    rule, tally = epoch.rule, epoch.tally
    written = RuleRecord(
        guesser=guesser_data(rule.guesser),
        low=rule.low,
        high=rule.high,
        right=rule.right,
        wrong=rule.wrong,
        promise=rule.promise,
        grain=rule.grain,
        candidates=rule.candidates,
    )
    return EpochRecord(
        rule=written,
        right=tally.right,
        wrong=tally.wrong,
        runs=tally.runs,
        expected_right=tally.expected_right,
        expected_wrong=tally.expected_wrong,
        sides=tally.sides,
        learnt_from=epoch.learnt_from,
        length=epoch.length,
        singly=epoch.singly,
        sizes=list(epoch.sizes),
    )


def game_of(record: GameRecord, laws: Sequence[Law] | None, own: Guesser | None = None) -> Game:
    """A game from its data; the laws are the mechanism's own."""
    epochs = []
    for e in record.epochs:
        guesser = guesser_of(e.rule.guesser, laws, own)
        r = e.rule
        rule = Rule(guesser, r.low, r.high, r.right, r.wrong, r.promise, r.grain, r.candidates)
        tally = Tally(e.right, e.wrong, e.runs, e.expected_right, e.expected_wrong, e.sides)
        epochs.append(Epoch(rule, tally, e.learnt_from, e.length, e.singly, tuple(e.sizes)))
    return Game(epochs, record.runs)


def guesser_data(guesser: Guesser) -> dict[str, Any]:
    """A guesser as data."""
    kind = type(guesser).__name__
    match guesser:
        case Statistic(name, width, sign, inputs):
            return {"kind": kind, "name": name, "width": width, "sign": sign, "inputs": [x.tolist() for x in inputs]}
        case Linear(weights, bias):
            return {"kind": kind, "weights": weights.tolist(), "bias": bias}
        case Boosted(features, width, columns, edges, tables):
            cuts = {str(j): e.tolist() for j, e in edges.items()}
            written = {"columns": [list(c) for c in columns], "edges": cuts, "tables": [t.tolist() for t in tables]}
            return {"kind": kind, "features": features, "width": width, **written}
        case Counted(of, names, logs, inputs):
            written = {"names": list(names), "logs": logs.tolist(), "inputs": [plain(x) for x in inputs]}
            return {"kind": kind, "of": of, **written}
        case Ngrams(logs):
            used = np.flatnonzero(np.ptp(logs, axis=0))
            return {"kind": kind, "cells": used.tolist(), "logs": logs[:, used].tolist(), "rest": logs[:, 0].tolist()}
        case Nearest(inputs):
            return {"kind": kind, "inputs": [x.tolist() for x in inputs]}
        case Guarded(base, oddities):
            return {"kind": kind, "base": guesser_data(base), "oddities": guesser_data(oddities)}
    return {"kind": kind}


def guesser_of(data: dict[str, Any], laws: Sequence[Law] | None, own: Guesser | None = None) -> Guesser:
    """A guesser from its data. What does not fit together is an InputError."""
    try:
        return _guesser(data, laws, own)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"the file has a guesser that cannot be read: {type(error).__name__}: {error}") from None


def _guesser(data: dict[str, Any], laws: Sequence[Law] | None, own: Guesser | None) -> Guesser:
    kind = data["kind"]
    rows = [np.array(x, dtype=float) for x in data["inputs"]] if kind in ("Statistic", "Nearest") else []
    if kind == "Statistic":
        return Statistic(str(data["name"]), int(data["width"]), float(data["sign"]), tuple(rows))
    if kind == "Linear":
        return Linear(np.array(data["weights"], dtype=float), float(data["bias"]))
    if kind == "Boosted":
        edges = {int(j): np.array(cuts, dtype=float) for j, cuts in data["edges"].items()}
        tables = tuple(np.array(table, dtype=float) for table in data["tables"])
        columns = tuple(tuple(int(j) for j in c) for c in data["columns"])
        return Boosted(str(data["features"]), int(data["width"]), columns, edges, tables)
    if kind == "Counted":
        logs = np.array(data["logs"], dtype=float)
        return Counted(str(data["of"]), tuple(data["names"]), logs, tuple(data["inputs"]))
    if kind == "Ngrams":
        from dpassay.attacks import HASHED

        full = np.repeat(np.array(data["rest"], dtype=float)[:, None], HASHED, axis=1)
        full[:, np.array(data["cells"], dtype=int)] = np.array(data["logs"], dtype=float)
        return Ngrams(full)
    if kind == "Nearest":
        return Nearest(tuple(rows))
    if kind == "Guarded":
        oddities = _guesser(data["oddities"], laws, own)
        if not isinstance(oddities, Counted):
            raise ValueError("oddities must be counted")
        return Guarded(_guesser(data["base"], laws, own), oddities)
    if kind == "Likelihood" and laws is not None:
        return Likelihood(tuple(laws))
    if kind == "Own" and own is not None:
        return own
    needed = {"Likelihood": "a mechanism that knows its law", "Own": "the guesser that was used then"}
    raise ValueError(f"{kind} needs {needed.get(kind, 'a newer version')}")
