"""Which statements about a pipeline's loss small data sets contradict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf

from brute_force.truth import Finite, Found, Refused, Unreadable, found_in

ROUNDING = 1e-8  # of the doubles that the laws are computed with
SLACK = 3e-3  # what the enumeration may miss of the worst pair, where it is finest
LEAST = 1e-7  # a δ below it is not looked at
LARGEST = 45.0  # beyond this ε only what is impossible for a neighbour counts


@dataclass(frozen=True)
class Said:
    """ "epsilon at most", "epsilon at least", "delta at most", "delta at least", "proven" or "refuted"."""

    what: str
    epsilon: float
    delta: float


@lru_cache(maxsize=64)
def enumerated(
    text: str, values: tuple[tuple[str, str], ...], dim: int, neighbours: str, level: int
) -> Found | Finite | None:
    """The pairs of a pipeline, or None where it is not enumerated."""
    try:
        return found_in(text, dict(values), dim, neighbours, level)
    except (Refused, Unreadable):
        return None


def _too_small(found: Found | Finite, said: Said) -> str:
    """Why an upper end, or a proof, is wrong."""
    if said.epsilon == inf:
        return ""
    if said.delta == 0 and said.what != "delta at most":
        shown = found.pure_at_least
        if shown > said.epsilon * (1 + ROUNDING) + ROUNDING:
            return f"{said}, but data sets show epsilon {shown:.12g}"
        return ""
    if said.epsilon > LARGEST / 2:
        return ""
    shown = found.at_least(said.epsilon)
    if shown > said.delta * (1 + ROUNDING) + ROUNDING:
        return f"{said}, but data sets show delta {shown:.12g}"
    return ""


def _reaches(found: Found | Finite, said: Said, slack: float) -> tuple[bool, float]:
    """Whether the pairs that were tried reach a lower end, and how far they come."""
    if said.delta == 0 and said.what != "delta at least":
        tried = found.pure_tried
        return tried >= min(said.epsilon, 700.0) * (1 - slack) - LEAST, tried
    tried = found.tried(min(said.epsilon, LARGEST) * (1 - slack))
    return tried >= said.delta * (1 - slack) - LEAST, tried


def _too_large(found: Found | Finite, finer: Found | Finite, said: Said) -> str:
    """Why a lower end, or a refutation, is wrong."""
    if not found.bounded or (said.epsilon == 0 and said.what == "epsilon at least"):
        return ""
    if _reaches(found, said, 1e-6)[0]:
        return ""
    good, tried = _reaches(finer, said, SLACK if finer.steps == 1 else 5 * SLACK)
    return "" if good else f"{said}, but no data sets show more than {tried:.12g}"


def contradictions(
    text: str, values: tuple[tuple[str, str], ...], dim: int, neighbours: str, statements: list[Said]
) -> list[str] | None:
    """What is wrong of what is said of a pipeline; None where it is not enumerated."""
    found = enumerated(text, values, dim, neighbours, 1)
    if found is None:
        return None
    wrong = []
    for said in statements:
        try:
            if said.what in ("epsilon at most", "delta at most", "proven"):
                why = _too_small(found, said)
            else:
                finer = enumerated(text, values, dim, neighbours, 2)
                assert finer is not None
                why = _too_large(found, finer, said)
        except Refused:
            continue
        if why:
            wrong.append(why)
    return wrong
