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


Subject = tuple[str, tuple[tuple[str, str], ...], int, str]  # text, values, dimension, neighbours


@lru_cache(maxsize=64)
def enumerated(subject: Subject, level: int = 1) -> Found | Finite | None:
    """The pairs of a pipeline, or None where it is not enumerated."""
    text, values, dim, neighbours = subject
    try:
        return found_in(text, dict(values), dim, neighbours, level)
    except (Refused, Unreadable):
        return None


def _too_small(subject: Subject, said: Said) -> str | None:
    """Why an upper end, or a proof, is wrong; None where that cannot be told."""
    found = enumerated(subject)
    if found is None or LARGEST / 2 < said.epsilon < inf:
        return None
    if said.epsilon == inf:
        return ""
    if said.delta == 0 and said.what != "delta at most":
        shown = found.pure_at_least
        wrong = shown > said.epsilon * (1 + ROUNDING) + ROUNDING
        return f"{said}, but data sets show epsilon {shown:.12g}" if wrong else ""
    shown = found.at_least(said.epsilon)
    wrong = shown > said.delta * (1 + ROUNDING) + ROUNDING
    return f"{said}, but data sets show delta {shown:.12g}" if wrong else ""


def _reaches(found: Found | Finite, said: Said, slack: float) -> tuple[bool, float]:
    """Whether the pairs that were tried reach a lower end, and how far they come."""
    if said.delta == 0 and said.what != "delta at least":
        enough = min(said.epsilon, 700.0) * (1 - slack) - LEAST
        tried = found.pure_tried(enough)
        return tried >= enough, tried
    enough = said.delta * (1 - slack) - LEAST
    tried = found.tried(min(said.epsilon, LARGEST) * (1 - slack), enough)
    return tried >= enough, tried


def _too_large(subject: Subject, said: Said) -> str | None:
    """Why a lower end, or a refutation, is wrong; None where that cannot be told."""
    if said.epsilon == 0 and said.what == "epsilon at least":
        return ""
    tried = 0.0
    for level in (1, 2):
        found = enumerated(subject, level)
        if found is None or not found.bounded:
            return None
        good, tried = _reaches(found, said, SLACK if found.steps == 1 else 5 * SLACK)
        if good:
            return ""
    return f"{said}, but no data sets show more than {tried:.12g}"


@lru_cache(maxsize=4096)
def _why(subject: Subject, said: Said) -> str | None:
    try:
        upper = said.what in ("epsilon at most", "delta at most", "proven")
        return _too_small(subject, said) if upper else _too_large(subject, said)
    except Refused:
        return None


def judged(text: str, values: tuple[tuple[str, str], ...], dim: int, neighbours: str, said: Said) -> tuple[str, str]:
    """ "true" where no data sets contradict a statement, "false" where they do, or "unknown"; and why it is false."""
    named = tuple(pair for pair in values if pair[0] in text)
    why = _why((text, named, dim, neighbours), said)
    return ("unknown", "") if why is None else ("false" if why else "true", why)


def contradictions(
    text: str, values: tuple[tuple[str, str], ...], dim: int, neighbours: str, statements: list[Said]
) -> list[str] | None:
    """What is wrong of what is said of a pipeline; None where nothing of it is judged."""
    found = [judged(text, values, dim, neighbours, said) for said in statements]
    return [why for _, why in found if why] if any(word != "unknown" for word, _ in found) else None
