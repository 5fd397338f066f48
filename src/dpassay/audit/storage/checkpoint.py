"""Audit files: the question, and the rules and counts so far. A file is data; reading one runs nothing.

The same file is used to continue an interrupted audit and to replay a finished one.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from dpassay.audit.distinguishers.base import Distinguisher
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.options import MOST_ALPHA
from dpassay.audit.testing.decision_rule import DecisionRule
from dpassay.audit.testing.experiment import MOST_ROWS, GameResult, GameState, RoundResult
from dpassay.audit.testing.inference import RoundCounts
from dpassay.core.files import write_whole
from dpassay.core.json import plain
from dpassay.core.records import read_record
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution

SCHEMA = "dpassay/audit/2"


def _write(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def _read(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, OverflowError):
        raise ValueError("a number is needed, or the text inf or -inf") from None


# JSON has no infinities: they are written as text, "inf" and "-inf".
Real = Annotated[float, BeforeValidator(_read), PlainSerializer(_write, return_type=float | str)]
Count = Annotated[int, Field(ge=0, le=10**15)]


class _CheckpointModel(BaseModel):
    # Inputs may have infinite coordinates: Python's own JSON preserves them.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class RuleRecord(_CheckpointModel):
    """A rule: its guesser as data, and its thresholds."""

    guesser: dict[str, Any]
    low: Real
    high: Real
    right: Count
    wrong: Count
    promise: Real
    grain: Real = Field(gt=0)
    candidates: int = Field(ge=2)


class RoundRecord(_CheckpointModel):
    """A rule and its counts."""

    rule: RuleRecord
    right: Count
    wrong: Count
    runs: Count
    expected_right: Real = Field(gt=0)
    expected_wrong: Real = Field(gt=0)
    sides: int = Field(ge=1, le=2)
    second: tuple[Count, Count, Count] | None = Field(
        default=None, description="right and wrong guesses and runs of the second input, where they are known"
    )
    learnt_from: Count
    length: Count
    singly: bool
    rows: int = Field(ge=1, le=MOST_ROWS)
    screening: bool = Field(default=False, description="made in batches whose rows may depend on each other")
    sizes: list[tuple[Annotated[int, Field(ge=0, le=MOST_ROWS)], Annotated[int, Field(ge=1, le=10**15)]]] = Field(
        description="of its tasks, in order, and how often each"
    )

    @property
    def finished(self) -> int:
        """The runs of its tasks that were not aborted."""
        return sum(size * times for size, times in self.sizes)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        lost = self.runs - self.finished  # runs of aborted tasks count as wrong guesses if delta > 0
        if self.right + self.wrong > self.runs or not 0 <= lost <= self.wrong:
            raise ValueError("its counts do not add up")
        of_all = (self.right, self.wrong, self.runs)
        if self.second is not None and any(some > most for some, most in zip(self.second, of_all, strict=True)):
            raise ValueError("its second input has larger counts than both together")
        return self


class GameRecord(_CheckpointModel):
    """One game: its inputs, its random streams, its share of the error probability, its rounds."""

    inputs: list[Any] = Field(min_length=2)
    number: Count
    alpha: Real = Field(gt=0, le=MOST_ALPHA)
    runs: Count
    lost: int = Field(ge=0, le=10**6, default=0, description="trainings in which the mechanism failed")
    fruitless: int = Field(ge=0, le=10**6, default=0, description="trainings from which no rule came")
    restarts: int = Field(ge=0, le=10**4, default=0, description="how often it was killed while it ran")
    epochs: list[RoundRecord] = Field(max_length=64)
    forms: list[str] = Field(default=[], description="of each input: list, tuple, array and its dtype, or empty")
    batches: Literal["", "shared", "repeated", "unconfirmed"] = Field(
        default="", description="what is wrong with the rows of one batch"
    )
    replays: bool = Field(default=True, description="whether the same seed gave the same outputs again")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.runs < sum(one.learnt_from + one.runs for one in self.epochs):
            raise ValueError("its epochs have more runs than it has")
        if any(one.rule.candidates != len(self.inputs) for one in self.epochs):
            raise ValueError("its rules are for a different number of inputs")
        if self.forms and len(self.forms) != len(self.inputs):
            raise ValueError("its forms are for a different number of inputs")
        return self


class SavedQuestion(_CheckpointModel):
    """The question of the audit: two audits with equal fields, including the version, are the same audit."""

    version: str
    subject: dict[str, str]
    inputs: str = Field(description="SHA-256 of all inputs that were offered")
    epsilon: Real = Field(ge=0, le=1e300)
    delta: Real = Field(ge=0, lt=1)
    alpha: Real = Field(gt=0, le=MOST_ALPHA)
    neighbours: str
    seed: int = Field(ge=0)
    fixed: Count = Field(description="the number of runs, where it was fixed; else 0")
    unknown: Literal["refuse", "repr", "bytes"] = "refuse"
    bits: bool | None = Field(description="whether the last bits of floats count; null: only a warning comes of them")
    seed_all: bool = Field(default=False, description="whether numpy, random and torch were seeded around each call")


class Journal(_CheckpointModel):
    """An audit on file."""

    schema_: Literal["dpassay/audit/2"] = Field(alias="schema", default="dpassay/audit/2")
    asked: SavedQuestion
    verdict: Literal["refuted", "open", "unfinished"]
    runs: Count
    searched: Count
    main: GameRecord | None
    witness: GameRecord | None
    bits: str = Field(max_length=2000, default="", description="what the last bits of floats told, as a warning")
    refuted_after: Count = Field(default=0, description="the runs of the main game when it refuted the claim")
    attempts: Count = Field(default=0, description="how many smaller pairs were tried")
    running: bool = Field(default=False, description="written while the audit ran: later runs may have been lost")
    announced: Count = Field(default=0, description="runs of the main game that may have been begun, if delta > 0")

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        games = [game for game in (self.main, self.witness) if game is not None]
        if any(game.alpha > self.asked.alpha for game in games):
            raise ValueError("the error probability of a game is larger than the total")
        lost = any(one.runs != one.finished for game in games for one in game.epochs)
        if lost and not self.asked.delta:
            raise ValueError("the runs of its tasks do not add up")
        return self


def save(journal: Journal, path: Path) -> None:
    """Write an audit to a file atomically."""
    write_whole(path, json.dumps(journal.model_dump(mode="json", by_alias=True), indent=1) + "\n")


def load(path: Path) -> Journal:
    """Read an audit from a file."""
    return read_record(path, Journal, SCHEMA, "audit's file")


def game_record(result: GameResult) -> GameRecord:
    """A game as data."""
    game = result.game
    return GameRecord(
        inputs=[plain(x) for x in result.inputs],
        number=result.number,
        alpha=result.alpha,
        runs=game.runs,
        lost=game.lost,
        fruitless=game.fruitless,
        restarts=game.restarts,
        epochs=[_round_record(one) for one in game.rounds],
        forms=[form_of(x) for x in result.inputs],
        batches=game.batches,
        replays=game.replays,
    )


def form_of(x: Any) -> str:
    """The type of an input where JSON does not preserve it."""
    if isinstance(x, np.ndarray):
        return f"array {x.dtype.str}"
    return type(x).__name__ if type(x) in (list, tuple) else ""


def inputs_of(record: GameRecord) -> tuple[Any, ...]:
    """The inputs of a game with their original types; in files without types, a list of numbers is an array."""
    if not record.forms:
        return tuple(np.array(x, dtype=float) if _vector(x) else x for x in record.inputs)
    return tuple(map(in_form, record.inputs, record.forms))


def _vector(x: Any) -> bool:
    return isinstance(x, list) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in x)


def in_form(x: Any, form: str) -> Any:
    """An input with its original type."""
    kind, _, dtype = form.partition(" ")
    if kind == "array" and re.fullmatch(r"[<>|=]?[biufcUS]\d{1,4}", dtype):
        try:
            return np.array(x, dtype=np.dtype(dtype))
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"the file has an input that is not an array of its kind: {error}") from None
    return tuple(x) if form == "tuple" and isinstance(x, list) else x


def rule_record(rule: DecisionRule) -> RuleRecord:
    """A rule as data, for a file or for another process."""
    return RuleRecord(
        guesser=rule.distinguisher.to_data(),
        low=rule.low,
        high=rule.high,
        right=rule.right,
        wrong=rule.wrong,
        promise=rule.expected_power,
        grain=rule.resolution,
        candidates=rule.candidates,
    )


def rule_of(
    record: RuleRecord, distributions: Sequence[Distribution] | None, own: Sequence[Distinguisher] = ()
) -> DecisionRule:
    """A rule from its data; the distributions are the mechanism's own, and so may be distinguishers."""
    at_hand = [*own]
    if distributions is not None:
        at_hand.append(LikelihoodRatio(tuple(distributions)))
    r, found = record, Distinguisher.from_data(record.guesser, at_hand)
    if found.candidates not in (None, r.candidates):
        raise InputError(f"the file has a distinguisher that is for {found.candidates} inputs, not for {r.candidates}")
    return DecisionRule(found, r.low, r.high, r.right, r.wrong, r.promise, r.grain, r.candidates)


def _round_record(one: RoundResult) -> RoundRecord:
    rest = {name: getattr(one, name) for name in ("learnt_from", "length", "singly", "rows", "screening")}
    return RoundRecord(rule=rule_record(one.rule), sizes=list(one.sizes), **asdict(one.counts), **rest)


def game_of(
    record: GameRecord, distributions: Sequence[Distribution] | None, own: Sequence[Distinguisher] = ()
) -> GameState:
    """A game from its data; the distributions are the mechanism's own, and so may be distinguishers."""
    rounds = []
    for e in record.epochs:
        rule = rule_of(e.rule, distributions, own)
        counts = RoundCounts(e.right, e.wrong, e.runs, e.expected_right, e.expected_wrong, e.sides, e.second)
        rounds.append(RoundResult(rule, counts, e.learnt_from, e.length, e.singly, tuple(e.sizes), e.rows, e.screening))
    return GameState(
        rounds,
        record.runs,
        record.lost,
        record.fruitless,
        batches=record.batches,
        replays=record.replays,
        restarts=record.restarts,
    )
