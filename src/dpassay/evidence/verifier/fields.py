"""The shape of a certificate: which fields each step has, and their types and ranges.

Whatever does not fit is refused with an InputError that names the step and the field. Nothing is computed here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpassay.evidence.verifier.forms import LARGEST, Reader, read_region, read_stage
from dpassay.evidence.verifier.numbers import Number
from dpassay.evidence.verifier.pairs import Block, Pair
from dpassay.evidence.verifier.regions import Shape, Stage
from dpassay.evidence.verifier.text import TAKEN

MOST_STAGES, MOST_STEPS, MOST_BLOCKS = 100, 200, 100_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
NEIGHBOURS = ("any", "word", "replace-record", "add-remove-record", "query")
VERDICTS = ("proven", "refuted", "open")


@dataclass(frozen=True, slots=True)
class Claim:
    """What is claimed, and for which pipeline."""

    name: str
    source: str
    text: str
    parameters: dict[str, Number]
    dim: int
    neighbours: str
    epsilon: Number
    delta: Number


@dataclass(frozen=True, slots=True)
class StageStep:
    """One stage, and what is recorded to come out of it."""

    index: int
    stage: Stage
    shape: Shape
    exact: bool


@dataclass(frozen=True, slots=True)
class Witness:
    """Two values, and an event that tells them apart with the logarithms of its probabilities."""

    pair: Pair
    event: str
    log_p: Number | None
    log_q: Number | None


@dataclass(frozen=True, slots=True)
class Bounded:
    """Bounds on ε at the claimed δ, or on δ at the claimed ε."""

    quantity: str
    lower: Number
    upper: Number


@dataclass(frozen=True, slots=True)
class Holds:
    """A guarantee that does hold."""

    delta: Number
    epsilon: Number


@dataclass(frozen=True, slots=True)
class Repair:
    """A mechanism that keeps a guarantee."""

    stages: tuple[Stage, ...]
    epsilon: Number
    delta: Number


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict."""

    verdict: str


Step = Claim | StageStep | Witness | Bounded | Holds | Repair | Decision


def _claim(read: Reader, data: dict[str, Any]) -> Claim:
    fields = {"step", "name", "source", "pipeline", "parameters", "dim", "neighbours", "epsilon", "delta"}
    read.record(data, fields)
    parameters = data["parameters"]
    if not isinstance(parameters, dict) or len(parameters) > 100:
        raise read.fail("parameters must be an object of at most 100 numbers")
    for name in parameters:
        if not _NAME.fullmatch(name) or name in TAKEN:
            raise read.fail(f"a parameter may not be called {name[:40]!r}: it would change the meaning of the text")
    delta = read.number(data["delta"], "delta", 0, 1)
    if not delta.b < 1:
        raise read.fail("delta must be below 1")
    return Claim(
        read.text(data["name"], "name"),
        read.text(data["source"], "source"),
        read.text(data["pipeline"], "pipeline"),
        {read.text(key, "parameters"): read.number(value, f"parameters: {key}") for key, value in parameters.items()},
        read.whole(data["dim"], "dim"),
        read.text(data["neighbours"], "neighbours", NEIGHBOURS),
        read.number(data["epsilon"], "epsilon", 0),
        delta,
    )


def _stage(read: Reader, data: dict[str, Any]) -> StageStep:
    around = frozenset({"step", "index", "region", "exact"})
    missing = around - data.keys()
    if missing:
        raise read.fail(f"the field {min(missing)} is missing")
    return StageStep(
        read.whole(data["index"], "index", 0, MOST_STAGES),
        read_stage(read, data, around),
        read_region(read, data["region"]),
        read.flag(data["exact"], "exact"),
    )


def _witness(read: Reader, data: dict[str, Any]) -> Witness:
    named = bool(data.get("event"))
    read.record(data, {"step", "blocks", "event"} | ({"log_p", "log_q"} if named else set()))
    blocks = []
    for block in read.items(data["blocks"], "blocks", MOST_BLOCKS):
        read.record(block, {"x", "y", "count", "positions"})
        blocks.append(
            Block(
                read.number(block["x"], "x"),
                read.number(block["y"], "y"),
                read.whole(block["count"], "count", high=61 * LARGEST),
                read.text(block["positions"], "positions", ("all", "even", "odd")),
            )
        )
    logs = [read.evidence(data[key], key) if named else None for key in ("log_p", "log_q")]
    return Witness(tuple(blocks), read.text(data["event"], "event"), *logs)


def _bounded(read: Reader, data: dict[str, Any]) -> Bounded:
    read.record(data, {"step", "quantity", "lower", "upper", "theorems"})
    for theorem in read.items(data["theorems"], "theorems", 100):
        read.text(theorem, "theorems")
    quantity = read.text(data["quantity"], "quantity", ("epsilon", "delta"))
    return Bounded(quantity, read.double(data["lower"], "lower"), read.double(data["upper"], "upper"))


def _holds(read: Reader, data: dict[str, Any]) -> Holds:
    read.record(data, {"step", "delta", "epsilon"})
    delta = read.double(data["delta"], "delta")
    if not delta.b < 1:
        raise read.fail("delta must be below 1")
    return Holds(delta, read.double(data["epsilon"], "epsilon"))


def _repair(read: Reader, data: dict[str, Any]) -> Repair:
    read.record(data, {"step", "stages", "epsilon", "delta"})
    listed = read.items(data["stages"], "stages", MOST_STAGES)
    stages = tuple(read_stage(read, stage if isinstance(stage, dict) else {}) for stage in listed)
    return Repair(stages, read.number(data["epsilon"], "epsilon", 0), read.number(data["delta"], "delta", 0, 1))


def _decision(read: Reader, data: dict[str, Any]) -> Decision:
    read.record(data, {"step", "verdict"})
    return Decision(read.text(data["verdict"], "verdict", VERDICTS))


STEPS: dict[str, Callable[[Reader, dict[str, Any]], Step]] = {
    "claim": _claim,
    "stage": _stage,
    "witness": _witness,
    "bounds": _bounded,
    "holds": _holds,
    "repair": _repair,
    "decision": _decision,
}
