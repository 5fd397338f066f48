"""The report on a claim: its verdict, its loss at other parameters, its remedies and their cost, and its trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from dpassay.api import check
from dpassay.audit.runner import audit
from dpassay.claims.claim import Claim, System
from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY, SYSTEMS
from dpassay.core.guarantee import MetricDP
from dpassay.core.interval import Interval
from dpassay.core.numbers import middle
from dpassay.evidence.schema import Real
from dpassay.evidence.verdict import Verdict
from dpassay.pipeline.parser import evaluate
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.mahalanobis import Mahalanobis
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.syntax import NORMS

SMALL = 8  # the default dimension in which a claim is tried


@dataclass(frozen=True)
class Cell:
    """The claim at other parameters: what is claimed, the verdict, the true ε, and the δ that every ε needs."""

    changes: Mapping[str, Any]
    claimed: float
    word: str
    epsilon: Interval
    least_delta: float


@dataclass(frozen=True)
class Remedy:
    """A claim that holds, and the noise it adds, also as a multiple of the published noise."""

    claim: Claim
    noise: Amount | None
    ratio: float | None


@dataclass(frozen=True)
class ClaimReport:
    """Everything that is known about one claim.

    >>> report = ClaimReport(REGISTRY["adept"])
    >>> report.verdict.word, [f"{cell.epsilon.lower:.3f}" for cell in report.cells if cell.changes["epsilon"] == 1]
    ('refuted', ['1.414', '5.657', '32.000'])
    """

    claim: Claim
    published: Claim | None = None  # the same before its parameters were changed

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict, with all its evidence."""
        return check(self.claim)

    @cached_property
    def system(self) -> System | None:
        """The published system that it belongs to; None for a user's claim."""
        own = self.published or self.claim
        return next((system for system in SYSTEMS.values() if own in system.claims), None)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The claim at each point of its grid."""
        return tuple(_cell(self.claim, changes) for changes in points(self.claim))

    @cached_property
    def beside(self) -> tuple[tuple[str, float], ...]:
        """What others' formulas give at the claim's own parameters."""
        if not self.claim.beside:
            return ()
        changed = self.claim(epsilon=self.claim.guarantee.value)
        values = {**changed.parameters, "dim": changed.dim or 1, "eps": changed.epsilon}
        return tuple((label, middle(evaluate(formula, values))) for label, formula in self.claim.beside.items())

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """The registry's remedies at the claim's own dimension and ε."""
        published = amount(self.claim.mechanism)
        found = []
        for name in self.claim.remedies:
            remedy = _alike(REGISTRY[name], self.claim)
            noise = amount(remedy.mechanism)
            found.append(Remedy(remedy, noise, _ratio(noise, published)))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data: the verdict, the grid, others' formulas, the remedies."""
        write = TypeAdapter(Real).dump_python
        ends = ("lower", "upper")
        cells = [
            {
                "changes": dict(cell.changes),
                "claimed": cell.claimed,
                "verdict": cell.word,
                **{end: write(getattr(cell.epsilon, end)) for end in ends},
                "least_delta": cell.least_delta,
            }
            for cell in self.cells
        ]
        remedies = [
            {
                "claim": r.claim.name,
                "keeps": str(r.claim.guarantee),
                "noise": r.noise and str(r.noise),
                "ratio": r.ratio,
            }
            for r in self.remedies
        ]
        return {"verdict": self.verdict.to_dict(), "grid": cells, "beside": dict(self.beside), "remedies": remedies}


def points(claim: Claim) -> Iterable[dict[str, Any]]:
    """Each combination of the grid's values.

    >>> len(list(points(REGISTRY["adept"])))
    9
    """
    return (dict(zip(claim.grid, values, strict=True)) for values in product(*claim.grid.values()))


@dataclass(frozen=True)
class Amount:
    """How much noise a mechanism adds: the standard deviation on a coordinate, or how often a bit or name is wrong."""

    kind: str
    size: float

    def __str__(self) -> str:
        return f"{self.kind} {self.size:.4g}"


def amount(pipeline: Pipeline) -> Amount | None:
    """How much noise a mechanism with one noise stage adds; None if one number does not describe it.

    >>> print(amount(REGISTRY["adept"].mechanism), "|", amount(REGISTRY["oue"].mechanism))
    standard deviation 2.828 | wrong bits 0.3845
    """
    stages = [pipeline.stages[i] for i in pipeline.noise_positions]
    if len(stages) != 1:
        return None
    stage = stages[0]
    if isinstance(stage, BitNoise):  # as if ones and zeros, even and odd positions were equally frequent
        return Amount("wrong bits", middle((1 - stage.even + 1 - stage.odd) / 4 + stage.zero / 2))
    if isinstance(stage, Flip):
        return Amount("wrong names", middle(1 - stage.keep))
    if isinstance(stage, Radial):
        return Amount(
            "standard deviation", stage.deviation(pipeline.output_regions()[pipeline.noise_positions[0]].region.dim)
        )
    deviation = stage.noise.deviation if isinstance(stage, Additive) else None
    return None if deviation is None else Amount("standard deviation", deviation)


def _ratio(noise: Amount | None, published: Amount | None) -> float | None:
    """How many times as much; None if the two are of different kinds."""
    if noise is None or published is None or noise.kind != published.kind or published.size == 0:
        return None
    return noise.size / published.size


def _cell(claim: Claim, changes: dict[str, Any]) -> Cell:
    changed = claim(**changes)
    return Cell(changes, changed.guarantee.claimed, *quick_check(changed))


def _alike(remedy: Claim, claim: Claim) -> Claim:
    """The remedy at the claim's dimension, at its ε if both claim a plain number, and at shared free parameters."""
    changes: dict[str, Any] = {}
    if remedy.dim is not None and claim.dim is not None:
        changes["dim"] = claim.dim
    if not any(epsilon is None or isinstance(epsilon, str) for epsilon in (remedy.epsilon, claim.epsilon)):
        changes["epsilon"] = claim.epsilon
    shared = {k: v for k, v in claim.parameters.items() if k in remedy.parameters}
    return remedy(**changes, **shared)


@dataclass(frozen=True)
class TrialResult:
    """A claim judged in both ways in a small dimension: exactly, and by running it. They must not contradict."""

    exact: Verdict
    sampled: Verdict

    @property
    def contradictory(self) -> bool:
        """Samples refuted what is proven."""
        return self.exact.proven and self.sampled.refuted

    @property
    def missed(self) -> bool:
        """Samples did not find what is refuted: not a contradiction, but perhaps a sign of too few runs."""
        return self.exact.refuted and not self.sampled.refuted

    @property
    def agreement(self) -> str:
        """The agreement in a word."""
        return "NO" if self.contradictory else "not seen" if self.missed else "yes"


def _distance(metric: str, x: Any, y: Any, pipeline: Pipeline) -> float:
    """How far apart two vectors are, in a norm, by their angle or in the Mahalanobis norm of the noise."""
    gap = np.subtract(x, y)
    if metric == "angle":
        first, second = (np.asarray(z, dtype=float) / np.linalg.norm(z) for z in (x, y))
        return 2 * math.atan2(float(np.linalg.norm(first - second)), float(np.linalg.norm(first + second)))
    if metric == "mahalanobis":
        noise = next(stage for stage in pipeline.stages if isinstance(stage, Mahalanobis))
        return float(np.linalg.norm(gap / noise.roots(len(gap))))
    return float(np.linalg.norm(gap, ord=NORMS[metric]))


def try_out(claim: Claim, runs: int | None = None, seed: int = 0, alpha: float = 0.001) -> TrialResult:
    """Judge a claim exactly and by running it, with the changes, pairs and encoder of its trial.

    >>> tried = try_out(REGISTRY["adept"], runs=2000)
    >>> tried.exact.word, tried.sampled.word, tried.agreement
    ('refuted', 'refuted', 'yes')
    """
    small = claim(**(claim.trial.changes or ({"dim": SMALL} if (claim.dim or 0) > SMALL else {})))
    options: dict[str, Any] = {"runs": runs or claim.trial.runs, "seed": seed, "alpha": alpha, "shrink": False}
    guarantee = small.guarantee
    if isinstance(guarantee, MetricDP):  # for one pair it is ε-DP, with ε times their distance
        (x, y), *_ = claim.trial.pairs or ()
        apart = _distance(guarantee.metric, x, y, small.mechanism)
        sampled = audit(small.mechanism, [(x, y)], epsilon=guarantee.epsilon * apart, **options)
    else:
        sampled = audit(small, **options)
    return TrialResult(check(small), sampled)
