"""The rules of a scan: an id that stays the same, what it means, a wrong and a right example, the fix, and the theorem.

>>> RULES["scale-inverted"].severity
'refuted'
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `severity` is the most serious that its findings can have."""

    id: str
    severity: str
    meaning: str
    why: str
    fix: str
    wrong: str
    right: str


def _read() -> dict[str, Rule]:
    with (Path(__file__).parent / "rules.toml").open("rb") as file:
        data = tomllib.load(file)
    return {name: Rule(name, **{key: str(value).strip() for key, value in one.items()}) for name, one in data.items()}


RULES: dict[str, Rule] = _read()
