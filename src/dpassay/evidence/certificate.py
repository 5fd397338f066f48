"""Certificates: a verdict with all its evidence in one JSON file.

`dpassay verify` re-checks one without trusting this code. Every number is written as two decimals that
enclose it. The steps are chained by SHA-256, so that a change anywhere is noticed at its step; the
mathematics of each step is checked besides. docs/certificate.md describes the format.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.core.files import write_whole
from dpassay.core.numbers import Number, digits, number
from dpassay.errors import InputError
from dpassay.evidence.verdict import Verdict
from dpassay.exact.witness import Witness
from dpassay.pipeline.distributions import OneSided
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Pair
from dpassay.pipeline.stages.additive import Additive
from dpassay.pipeline.stages.bits import BitNoise

SCHEMA = "dpassay/certificate/1"


def certify(verdict: Verdict) -> dict[str, Any]:
    """Write a verdict down with its evidence, step by step.

    >>> from dpassay import check
    >>> written = certify(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1))
    >>> written["verdict"], [step["step"] for step in written["steps"]][:3]
    ('refuted', ['claim', 'stage', 'stage'])
    """
    if not isinstance(verdict.mechanism, Pipeline):
        raise InputError(
            "a certificate is for a pipeline's exact verdict; an audit is saved with audit(..., save=FILE)"
        )
    steps = [_claim(verdict), *_stages(verdict), *_evidence(verdict), {"step": "decision", "verdict": verdict.word}]
    chained, last = [], hashlib.sha256(SCHEMA.encode()).hexdigest()
    for step in steps:
        last = digest(last, step)
        chained.append({**step, "digest": last})
    return {"schema": SCHEMA, "written_by": _version(), "verdict": verdict.word, "steps": chained}


def save(verdict: Verdict, path: str | Path) -> None:
    """Write a certificate to a file, whole or not at all.

    >>> import tempfile
    >>> from dpassay import check
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(check("clip(l1, 1) | laplace(2)", epsilon=1, dim=4), f"{folder}/claim.json")
    ...     Path(folder, "claim.json").exists()
    True
    """
    write_whole(Path(path), json.dumps(certify(verdict), indent=1, ensure_ascii=False) + "\n")


def digest(previous: str, step: dict[str, Any]) -> str:
    """Chain a step to the one before it.

    >>> digest("", {"step": "decision"})[:8]
    '00bd3e0d'
    """
    text = json.dumps(step, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def _version() -> str:
    from dpassay import __version__

    return f"dpassay {__version__}"


def _claim(verdict: Verdict) -> dict[str, Any]:
    return {
        "step": "claim",
        "name": verdict.name,
        "source": verdict.source,
        "pipeline": verdict.text,
        "parameters": {key: list(digits(number(value))) for key, value in verdict.parameters.items()},
        "dim": verdict.mechanism.dim,
        "neighbours": verdict.neighbours.kind,
        "epsilon": _pair(verdict.guarantee.exact_epsilon),
        "delta": _pair(verdict.guarantee.exact_delta),
    }


def _pair(value: Number) -> list[str]:
    return list(digits(value))


def _stages(verdict: Verdict) -> list[dict[str, Any]]:
    regions = verdict.mechanism.output_regions()
    return [
        {
            "step": "stage",
            "index": i,
            **stage.to_data(),
            "region": regions[i + 1].region.to_data(),
            "exact": regions[i + 1].exact,
        }
        for i, stage in enumerate(verdict.mechanism.stages)
    ]


def pair_data(pair: Pair) -> list[dict[str, Any]]:
    """A pair of vectors in blocks."""
    return [{"x": _pair(b.x), "y": _pair(b.y), "count": b.count, "positions": b.positions} for b in pair.blocks]


def _evidence(verdict: Verdict) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if isinstance(verdict.witness, Witness):
        witness = verdict.witness
        event = witness.event if _checkable(verdict) else ""
        step = {"step": "witness", "blocks": pair_data(witness.pair), "event": event}
        if event:
            step |= {"log_p": _pair(witness.log_p), "log_q": _pair(witness.log_q)}
        steps.append(step)
    steps.append(_bounds("epsilon", verdict.epsilon.lower, verdict.epsilon.upper, verdict))
    if verdict.delta is not None:
        steps.append(_bounds("delta", verdict.delta.lower, verdict.delta.upper, verdict))
    for delta, held in verdict.holds:
        steps.append({"step": "holds", "delta": _double(delta), "epsilon": _double(held.upper)})
    for repair in verdict.repairs:
        if repair.mechanism is not None and repair.guarantee is not None:
            steps.append(
                {
                    "step": "repair",
                    "stages": [stage.to_data() for stage in repair.mechanism.stages],
                    "epsilon": _pair(repair.guarantee.exact_epsilon),
                    "delta": _pair(repair.guarantee.exact_delta),
                }
            )
    return steps


def _checkable(verdict: Verdict) -> bool:
    """Whether `verification` can recompute the event's probabilities; where not, the pair's bounds speak alone."""
    noises = [verdict.mechanism.stages[i] for i in verdict.mechanism.noise_positions]
    if any(isinstance(stage, BitNoise) for stage in noises):
        return verdict.delta is None
    return not any(isinstance(stage, Additive) and isinstance(stage.noise, OneSided) for stage in noises)


def _bounds(quantity: str, lower: float, upper: float, verdict: Verdict) -> dict[str, Any]:
    return {
        "step": "bounds",
        "quantity": quantity,
        "lower": _double(lower),
        "upper": _double(upper),
        "theorems": [theorem.value for theorem in verdict.theorems],
    }


def _double(value: float) -> str:
    """A double, exactly."""
    return "inf" if np.isinf(value) else repr(value)
