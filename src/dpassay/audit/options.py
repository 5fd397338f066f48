"""What an audit was asked to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.audit import checkpoint as files
from dpassay.audit.decision_rule import Hypothesis
from dpassay.audit.distinguishers.base import Distinguisher
from dpassay.audit.experiment import Experiment
from dpassay.audit.inference import AlphaBudget
from dpassay.audit.targets import describe
from dpassay.claims.claim import Claim
from dpassay.core.guarantee import Guarantee, make_guarantee
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.pipeline.mechanism import Mechanism
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Region

MOST_RUNS = 10**12

Progress = Callable[[int, int, str], None]


def read_claim(subject: Any, epsilon: Any, delta: Any, dim: int | None, parameters: dict[str, Any]) -> Claim | None:
    """The claim that a subject is, or makes with these parameters; None for anything that can only be run."""
    given = {k: v for k, v in (("epsilon", epsilon), ("delta", delta), ("dim", dim)) if v is not None}
    if isinstance(subject, Claim):
        return subject(**given, **parameters)
    if isinstance(subject, str):
        if epsilon is None:
            raise InputError("say which epsilon is claimed: audit(..., epsilon=1)")
        return Claim("pipeline", subject, epsilon, delta or 0, dim, parameters)
    if parameters:
        unknown = ", ".join(sorted(parameters))
        raise InputError(f"unknown option {unknown}: only a claim or a pipeline's text has parameters of its own")
    return None


def read_guarantee(epsilon: Any, delta: Any) -> Guarantee:
    """The guarantee that is claimed."""
    if epsilon is None:
        raise InputError("say which epsilon is claimed: audit(..., epsilon=1)")
    return make_guarantee(epsilon, 0 if delta is None else delta)


def read_relation(given: Neighbours | str | None, claim: Claim | None, mechanism: Any, text: str | None) -> Neighbours:
    """Which inputs the guarantee speaks of: as told, as claimed, or as the mechanism suggests."""
    if given is not None:
        return Neighbours(given) if isinstance(given, str) else given  # type: ignore[arg-type]
    if claim is not None and claim.neighbours is not None:
        return claim.neighbours
    if isinstance(mechanism, Pipeline):
        return mechanism.neighbours
    return Neighbours("word" if text is not None else "any")


def whole(value: Any, what: str, least: int = 1, most: int = 2**128 - 1) -> int:
    """A whole number within its limits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} must be a whole number, {least} or more, got {value}")
    if value > most:
        raise InputError(f"{what} must be at most {most:,}, got {value:,}")
    return int(value)


def name_of(mechanism: Any) -> str:
    """What a mechanism is called."""
    described = describe(mechanism)
    return next(
        (described[key] for key in ("path", "command", "url", "pipeline", "type") if key in described), "mechanism"
    )


@dataclass(frozen=True)
class AuditOptions:
    """What an audit was asked to do."""

    mechanism: Mechanism
    name: str
    source: str
    guarantee: Guarantee
    neighbours: Neighbours
    offered: list[tuple[Any, ...]]
    many: bool
    ledger: AlphaBudget
    runs: int
    fixed: bool
    search_runs: int
    shrink: bool
    seed: int
    own: Distinguisher | None
    bits: bool | None  # whether the last bits of floats count; None: they do not, but a few runs look at them
    region: Region | None
    save: Path | None
    progress: Progress | None
    device: str = "cpu"

    @property
    def aim(self) -> Hypothesis:
        """What rules are chosen for."""
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        return Hypothesis(epsilon, delta, len(self.offered[0]), self.runs if self.fixed else 0, self.ledger.total)

    def table(self, inputs: tuple[Any, ...], number: int, aim: Hypothesis | None = None) -> Experiment:
        """The table at which some inputs are told apart."""
        return Experiment(
            self.mechanism,
            inputs,
            aim or self.aim,
            self.seed,
            number,
            self.own,
            "also" if self.bits else "no",
            self.device,
        )

    def asked(self) -> files.Asked:
        """The same, as far as it must not change when the audit goes on."""
        from dpassay import __version__

        offered = json.dumps([[plain(x) for x in inputs] for inputs in self.offered], sort_keys=True)
        return files.Asked(
            version=__version__,
            subject=describe(self.mechanism),
            inputs=hashlib.sha256(offered.encode("utf-8", "surrogatepass")).hexdigest(),
            epsilon=self.guarantee.epsilon,
            delta=self.guarantee.delta,
            alpha=self.ledger.total,
            neighbours=self.neighbours.kind,
            seed=self.seed,
            fixed=self.runs if self.fixed else 0,
            bits=self.bits,
        )
