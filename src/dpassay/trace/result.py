"""What a trace found: the verdict, the draws, the pipeline as coded, and what is wrong at which line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.evidence.verdict import Verdict
from dpassay.trace.findings.findings import Finding
from dpassay.trace.natural.counting import Count
from dpassay.trace.replay.trials import ReplayTrials
from dpassay.trace.watch.record import DrawRecord
from dpassay.values import dataclass


@dataclass(frozen=True, eq=False)
class TraceResult:
    """A verdict with the observations: the draws, the pipeline as coded, and what is wrong at which line.

    `pair` holds the two inputs of the verdict. The ε between them at the claimed δ is in `pair_epsilon`. Its lower end
    comes from counted runs; its upper end leaves out a probability of `apart_from`. Both have error probability
    `alpha`. If the counted runs made two calls (`count.calls`), the lower end is about each of two calls in a row.
    `traced_epsilon` is the loss of the noise as watched, which explains a verdict but decides nothing.
    """

    verdict: Verdict
    draws: tuple[DrawRecord, ...]
    findings: tuple[Finding, ...]
    pipeline: str
    pair: tuple[Any, Any]
    pair_epsilon: Interval
    traced_epsilon: Interval
    alpha: float
    trials: ReplayTrials | None
    count: Count | None
    runs: int
    warnings: tuple[Finding, ...] = ()  # what hostile inputs showed, and what an accountant does not cover
    tried: int = 0  # hostile inputs
    neighbours: Neighbours | None = None  # if the relation was stated

    @property
    def apart_from(self) -> float:
        """The probability that the upper end of `pair_epsilon` leaves out; 1 if there is no upper end."""
        upper = self.pair_epsilon.upper
        return 1.0 if self.trials is None or upper == math.inf else self.trials.exception(upper)

    @property
    def as_coded(self) -> str:
        """The noise as a pipeline, or why there is none to show."""
        if self.pipeline:
            return self.pipeline
        if self.draws:
            return "noise that was not followed to the output"
        return "no noise was seen" if self.trials is not None else "not watched to the end"

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that the code violates, or that explain why it cannot be traced."""
        return tuple(dict.fromkeys(finding.rule for finding in self.findings))

    def __str__(self) -> str:
        lines = [str(self.verdict), f"as coded: {self.as_coded}"]
        lines += [] if self.neighbours is None else [f"neighbors: {self.neighbours}, as stated"]
        lines += [f"drawn: {draw}" for draw in self.draws] + [f"warning: {one.message}" for one in self.warnings]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {
            "verdict": self.verdict.word,
            "reason": self.verdict.reason,
            "neighbours": None if self.neighbours is None else self.neighbours.kind,
            "pipeline": self.pipeline,
            "pair_epsilon": [_json(self.pair_epsilon.lower), _json(self.pair_epsilon.upper)],
            "apart_from": self.apart_from,
            "alpha": self.alpha,
            "traced_epsilon": [_json(self.traced_epsilon.lower), _json(self.traced_epsilon.upper)],
            "replays": 0 if self.trials is None else self.trials.agreed,
            "left_out": 0 if self.trials is None else self.trials.left_out,
            "count": None if self.count is None else self.count.to_dict(),
            "findings": [one.to_dict() for one in self.findings],
            "warnings": [one.to_dict() for one in self.warnings],
            "draws": [
                {
                    "source": draw.source,
                    "distribution": draw.distribution,
                    "parameters": {name: np.asarray(value).tolist() for name, value in draw.parameters.items()},
                    "shape": list(draw.shape),
                    "file": draw.place.file,
                    "line": draw.place.line,
                }
                for draw in self.draws
            ],
            "runs": self.runs,
        }


def _json(value: float) -> float | str:
    return "inf" if value == math.inf else value
