"""Certificates: a verdict with all its evidence in one JSON file.

`dpassay verify` re-checks one without trusting this code. Every number is written as two decimals that
enclose it. The steps are chained by SHA-256, so that a change anywhere is noticed at its step; the
mathematics of each step is checked besides. docs/certificate.md describes the format.
"""

from __future__ import annotations

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
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, Noise, OneSided
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import (
    Ball,
    Bits,
    Box,
    Categories,
    Everything,
    Finite,
    Intersection,
    MinMax,
    OneHot,
    Pair,
    Region,
    Repeated,
    Rows,
    SensitivityBall,
    Sparse,
    Sphere,
)
from dpassay.pipeline.stages.noise import Additive, BitNoise, Choose, Flip
from dpassay.pipeline.stages.vector import (
    Binary,
    Bloom,
    Category,
    Clamp,
    Clip,
    Dropout,
    Hash,
    Normalise,
    OneHotEncode,
    Query,
    Repeat,
    Squash,
    Stage,
)

SCHEMA = "dpassay/certificate/1"


def certify(verdict: Verdict) -> dict[str, Any]:
    """Write a verdict down with its evidence, step by step.

    >>> from dpassay import check
    >>> written = certify(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1))
    >>> written["verdict"], [step["step"] for step in written["steps"]][:3]
    ('refuted', ['claim', 'stage', 'stage'])
    """
    if not isinstance(verdict.mechanism, Pipeline):
        raise InputError("a certificate is for a pipeline's exact verdict; an audit is saved with --save instead")
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
            **stage_data(stage),
            "region": region_data(regions[i + 1].region),
            "exact": regions[i + 1].exact,
        }
        for i, stage in enumerate(verdict.mechanism.stages)
    ]


def stage_data(stage: Stage) -> dict[str, Any]:
    """A stage's name and parameters."""
    data: dict[str, Any] = {"stage": stage.name}
    if isinstance(stage, Additive):
        return _noise_data(stage.noise)
    if isinstance(stage, Clip):
        data |= {"norm": stage.norm, "radius": _pair(stage.radius)}
    elif isinstance(stage, Normalise):
        data |= {"norm": stage.norm}
    elif isinstance(stage, Squash):
        data |= {"kind": stage.kind}
    elif isinstance(stage, Clamp):
        data |= {"low": _pair(stage.low), "high": _pair(stage.high)}
    elif isinstance(stage, Repeat):
        data |= {"times": stage.times}
    elif isinstance(stage, Category | OneHotEncode | Hash):
        data |= {"size": stage.size}
    elif isinstance(stage, Bloom):
        data |= {"size": stage.size, "hashes": stage.hashes}
    elif isinstance(stage, Binary):
        data |= {"integer": stage.integer, "fraction": stage.fraction}
    elif isinstance(stage, Query):
        data |= {"norm": stage.norm, "distance": _pair(stage.distance)}
    elif isinstance(stage, Dropout):
        data |= {"mu": _pair(stage.mu)}
    elif isinstance(stage, Flip):
        data |= {"keep": _pair(stage.keep), "size": stage.size}
    elif isinstance(stage, BitNoise):
        data |= {"even": _pair(stage.even), "odd": _pair(stage.odd), "zero": _pair(stage.zero)}
    elif isinstance(stage, Choose):
        data |= {"rate": _pair(stage.rate)}
    return data


def _noise_data(noise: Noise) -> dict[str, Any]:
    if isinstance(noise, Laplace):
        return {"stage": "laplace", "scale": _pair(noise.scale)}
    if isinstance(noise, Gaussian):
        return {"stage": "gaussian", "sigma": _pair(noise.sigma)}
    if isinstance(noise, OneSided):
        return {"stage": "onesided", "scale": _pair(noise.scale)}
    assert isinstance(noise, Mixture)
    parts = [{"weight": _pair(weight), **_noise_data(part)} for weight, part in noise.parts]
    lost = {"lost": _pair(noise.lost)} if noise.lost.b > 0 else {}
    return {"stage": "mixture", "atom": _pair(noise.atom_weight), "parts": parts, **lost}


def region_data(region: Region) -> dict[str, Any]:
    """A region's kind and numbers."""
    if isinstance(region, Ball):
        return {"kind": "ball", "p": _power(region.p), "radius": _pair(region.radius), "dim": region.dim}
    if isinstance(region, SensitivityBall):
        return {"kind": "apart", "p": _power(region.p), "distance": _pair(region.distance), "dim": region.dim}
    if isinstance(region, Sphere):
        return {"kind": "sphere", "radius": _pair(region.radius), "dim": region.dim}
    if isinstance(region, Box):
        sides = [{"low": _pair(low), "high": _pair(high), "count": n} for low, high, n in region.sides]
        return {"kind": "box", "sides": sides, "dim": region.dim}
    if isinstance(region, Intersection):
        return {"kind": "both", "first": region_data(region.first), "second": region_data(region.second)}
    if isinstance(region, Finite):
        return {"kind": "finite", "points": [list(map(repr, point)) for point in region.points], "dim": region.dim}
    if isinstance(region, Categories):
        return {"kind": "categories", "size": region.size}
    if isinstance(region, Sparse):
        return {"kind": "sparse", "dim": region.dim, "ones": region.ones}
    if isinstance(region, Rows):
        limits = zip(("low", "high"), region.limits or (), strict=False)
        return {"kind": "rows", "dim": region.dim, **{name: _pair(limit) for name, limit in limits}}
    if isinstance(region, Repeated):
        return {"kind": "repeated", "region": region_data(region.region), "times": region.times}
    names = {MinMax: "minmax", Bits: "bits", OneHot: "onehot", Everything: "everything"}
    return {"kind": names[type(region)], "dim": region.dim}


def _power(p: float) -> str:
    return "inf" if np.isinf(p) else repr(p)


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
                    "stages": [stage_data(stage) for stage in repair.mechanism.stages],
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
