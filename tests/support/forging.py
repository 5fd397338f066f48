"""Certificates as a forger makes them: any steps, with the chain of digests made right."""

import hashlib
import json
from typing import Any

SCHEMA = "dpassay/certificate/2"
Data = dict[str, Any]


def exactly(value: object) -> list[str]:
    """A number as two equal decimals."""
    return [str(value)] * 2


def claim(pipeline: str, epsilon: object, delta: object = 0, dim: int = 1, **others: Any) -> Data:
    """The first step."""
    ends = {"epsilon": exactly(epsilon), "delta": exactly(delta)}
    step = {"step": "claim", "name": "forged", "source": "", "pipeline": pipeline, "parameters": {}, "dim": dim}
    return {**step, "neighbours": "any", **ends, **others}


def upper(theorem: str, noise: int, epsilon: object, delta: object = 0, **evidence: Any) -> Data:
    """(ε, δ)-DP holds by a theorem."""
    ends = {"epsilon": exactly(epsilon), "delta": exactly(delta)}
    return {"step": "upper", **ends, "theorem": theorem, "noise": noise, **evidence}


def lower(
    theorem: str, noise: int, epsilon: object, pair: list[Data], delta: object = 0, at: int | None = None, **others: Any
) -> Data:
    """ε at a δ, or δ at an ε, is no smaller."""
    ends = {"epsilon": exactly(epsilon), "delta": exactly(delta)}
    place = {"noise": noise, "at": noise if at is None else at, "pair": pair}
    return {"step": "lower", "quantity": "epsilon", **ends, "theorem": theorem, **place, **others}


def block(x: object, y: object, count: int = 1, positions: str = "all") -> Data:
    """Coordinates of a pair; a list is an enclosure of its own."""
    ends = [value if isinstance(value, list) else exactly(value) for value in (x, y)]
    return {"x": ends[0], "y": ends[1], "count": count, "positions": positions}


def rechained(certificate: Data) -> Data:
    """The same with every digest made right: SHA-256 over the canonical JSON of each step behind the last."""
    steps, last = [], hashlib.sha256(SCHEMA.encode()).hexdigest()
    for step in certificate["steps"]:
        plain = {key: value for key, value in step.items() if key != "digest"}
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        last = hashlib.sha256(f"{last}\n{text}".encode()).hexdigest()
        steps.append({**plain, "digest": last})
    return {**certificate, "steps": steps}


def sealed(verdict: str, *steps: Data) -> Data:
    """A certificate of these steps, with its decision."""
    whole = [*steps, {"step": "decision", "verdict": verdict}]
    return rechained({"schema": SCHEMA, "written_by": "nobody", "verdict": verdict, "steps": whole})
