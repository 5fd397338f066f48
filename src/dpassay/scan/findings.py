"""What a scan finds: findings with severity and line, mechanisms, and the baseline that keeps known ones quiet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dpassay.errors import InputError
from dpassay.scan.reading.values import SourceLine

Severity = Literal["refuted", "suspicious", "information"]
SEVERITIES: tuple[Severity, ...] = ("refuted", "suspicious", "information")
BASELINE = "dpassay/scan-baseline/1"


@dataclass(frozen=True, slots=True)
class ScanFinding:
    """One rule that a line breaks: where, in which function, how serious, and a sentence.

    >>> ScanFinding("scale-inverted", "refuted", SourceLine("noise.py", 3), "add", "The scale grows with ε.").key[:14]
    'scale-inverted'
    """

    rule: str
    severity: Severity
    place: SourceLine
    function: str
    message: str
    code: str = ""

    @property
    def key(self) -> str:
        """The same for as long as the line and its function stay the same, wherever the line moves."""
        said = "\n".join((self.rule, Path(self.place.file).name, self.function, " ".join(self.code.split())))
        return f"{self.rule}:{hashlib.sha256(said.encode()).hexdigest()[:12]}"

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "file": self.place.file,
            "line": self.place.line,
            "function": self.function,
            "message": self.message,
            "code": self.code,
            "key": self.key,
        }


@dataclass(frozen=True, slots=True)
class FoundMechanism:
    """A function that adds noise for privacy, with what was read about it and, after `--run`, what its runs show."""

    name: str
    module: str
    place: SourceLine
    claim: str
    parameters: dict[str, str]
    noise: tuple[str, ...]
    findings: tuple[ScanFinding, ...] = ()
    outcome: str = ""  # refuted, not refuted, not run; empty without --run
    epsilon: str = ""  # what was claimed, and what the runs show
    reason: str = ""
    command: str = ""

    @property
    def severity(self) -> Severity | Literal["none"]:
        """The worst of its findings; a refutation by runs is as bad as one by reading."""
        if self.outcome == "refuted":
            return "refuted"
        words = {one.severity for one in self.findings}
        return next((one for one in SEVERITIES if one in words), "none")

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        run = {"outcome": self.outcome, "epsilon": self.epsilon, "reason": self.reason, "command": self.command}
        return {
            "name": self.name,
            "module": self.module,
            "file": self.place.file,
            "line": self.place.line,
            "claim": self.claim,
            "parameters": self.parameters,
            "noise": list(self.noise),
            "severity": self.severity,
            "findings": [one.to_data() for one in self.findings],
            **({"run": run} if self.outcome else {}),
        }


@dataclass(frozen=True, slots=True)
class Scan:
    """The result: mechanisms, worst first; findings that belong to none; what was not read."""

    subject: str
    mechanisms: tuple[FoundMechanism, ...]
    others: tuple[ScanFinding, ...]
    files: int
    lines: int
    skipped: tuple[str, ...] = ()
    known: int = 0  # findings that a baseline keeps quiet
    interrupted: bool = False
    runs: dict[str, Any] = field(default_factory=dict)

    @property
    def findings(self) -> list[ScanFinding]:
        """All findings, each once, worst first."""
        each = [one for mechanism in self.mechanisms for one in mechanism.findings]
        return sorted(dict.fromkeys([*each, *self.others]), key=_order)

    @property
    def alarms(self) -> list[ScanFinding]:
        """Findings above information."""
        return [one for one in self.findings if one.severity != "information"]

    @property
    def refuted(self) -> bool:
        """Whether a guarantee is refuted, by a theorem or by runs."""
        by_runs = any(one.outcome == "refuted" for one in self.mechanisms)
        return by_runs or any(one.severity == "refuted" for one in self.findings)

    def to_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "schema": "dpassay/scan/1",
            "subject": self.subject,
            "files": self.files,
            "lines": self.lines,
            "mechanisms": [one.to_data() for one in self.mechanisms],
            "findings": [one.to_data() for one in self.findings],
            "known": self.known,
            "skipped": list(self.skipped),
            "interrupted": self.interrupted,
        }

    def without(self, keys: Iterable[str]) -> Scan:
        """The same without the findings of a baseline."""
        quiet = set(keys)
        hidden = [one for one in self.findings if one.key in quiet]
        kept = [
            replace(one, findings=tuple(each for each in one.findings if each.key not in quiet))
            for one in self.mechanisms
        ]
        others = tuple(one for one in self.others if one.key not in quiet)
        return replace(self, mechanisms=in_order(kept), others=others, known=len(hidden))

    def only(self, rules: Iterable[str]) -> Scan:
        """The same with the findings of some rules alone."""
        wanted = set(rules)
        kept = [
            replace(one, findings=tuple(each for each in one.findings if each.rule in wanted))
            for one in self.mechanisms
        ]
        return replace(self, mechanisms=in_order(kept), others=tuple(one for one in self.others if one.rule in wanted))


def _order(one: ScanFinding) -> tuple[int, str, int, str]:
    return SEVERITIES.index(one.severity), one.place.file, one.place.line, one.rule


def in_order(mechanisms: Iterable[FoundMechanism]) -> tuple[FoundMechanism, ...]:
    """The worst first, then by file and line."""
    words = (*SEVERITIES, "none")
    return tuple(sorted(mechanisms, key=lambda one: (words.index(one.severity), one.place.file, one.place.line)))


def read_baseline(path: Path) -> list[str]:
    """The keys in a baseline file; none if there is no such file yet."""
    if not path.exists():
        return []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != BASELINE or not all(isinstance(one, str) for one in data["known"]):
            raise ValueError
        return list(data["known"])
    except (ValueError, KeyError, TypeError, OSError):
        raise InputError(
            f"{path} is not a baseline of dpassay scan; delete it, and the next scan writes it anew"
        ) from None


def baseline(scan: Scan) -> str:
    """The text of a baseline file that knows all findings of a scan."""
    known = sorted({one.key for one in scan.findings})
    return json.dumps({"schema": BASELINE, "known": known}, indent=1) + "\n"
