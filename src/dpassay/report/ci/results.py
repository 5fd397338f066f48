"""What is reported to other tools: one record for SARIF, JUnit and annotations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dpassay.errors import ClaimFileError, escape_control_chars

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict
    from dpassay.trace.result import TraceResult

Level = Literal["error", "warning", "note", "none"]
SEVERITY: tuple[Level, ...] = ("error", "warning", "note", "none")
# Findings of a trace about what it could not see. They refute nothing.
UNSEEN = ("draws-differ", "unfollowed", "opaque")


@dataclass(frozen=True, slots=True)
class ResultLocation:
    """A file and a line; 0 if the line is not known.

    >>> ResultLocation("claims/mine.toml", 3).path
    'claims/mine.toml'
    """

    file: str = ""
    line: int = 0

    @property
    def path(self) -> str:
        """The file relative to the repository, or to the current folder; as given if it lies elsewhere."""
        root = Path(os.environ.get("GITHUB_WORKSPACE") or ".").resolve()
        try:
            return Path(self.file).resolve().relative_to(root).as_posix() if self.file else ""
        except ValueError:
            return Path(self.file).as_posix()


NOWHERE = ResultLocation()


@dataclass(frozen=True, slots=True)
class ReportedResult:
    """One finding about one subject: the rule, its severity, a sentence, and the place.

    `verdict` is proven, refuted or open, or "failed" if there is none. A level of "none" means no problem.
    """

    rule: str
    level: Level
    message: str
    subject: str
    verdict: str
    place: ResultLocation = NOWHERE


def worst(results: Iterable[ReportedResult]) -> ReportedResult:
    """The most serious of them, the first of equals."""
    return min(results, key=lambda one: SEVERITY.index(one.level))


def of_verdict(
    verdict: Verdict,
    place: ResultLocation = NOWHERE,
    *,
    expected: str = "",
    require_decision: bool = False,
    can_prove: bool = True,
) -> ReportedResult:
    """A verdict as a result. A claim that is expected to be refuted or open is only a note, as it changes no exit code.

    An open verdict of runs, which can never prove a claim, is a note; one of an exact check is a warning.
    """
    word, said = verdict.word, escape_control_chars(verdict.reason)
    rule, level = {
        "proven": ("", "none"),
        "refuted": ("claim-refuted", "error"),
        "open": ("claim-open", "error" if require_decision else "warning" if can_prove else "note"),
    }[word]
    if expected and word == expected:
        said, level = f"As expected: {said}", "none" if word == "proven" else "note"
    elif expected:
        said, level = f"{expected} was expected, but the verdict is {word}. {said}", "error"
        rule = rule if word == "refuted" else "not-as-expected"
    return ReportedResult(rule, level, said, verdict.name, word, place)  # type: ignore[arg-type]


def of_trace(
    result: TraceResult, place: ResultLocation = NOWHERE, require_decision: bool = False
) -> list[ReportedResult]:
    """What a trace found: each finding and warning at its line, and the verdict if they do not explain it."""
    verdict, found = result.verdict, []
    for finding in (*result.findings, *result.warnings):
        refuting = verdict.refuted and finding in result.findings and finding.rule not in UNSEEN
        at = place if finding.place is None else ResultLocation(finding.place.file, finding.place.line)
        level: Level = "error" if refuting else "warning"
        said = escape_control_chars(finding.message)
        found.append(ReportedResult(finding.rule, level, said, verdict.name, verdict.word, at))
    own = of_verdict(verdict, place, require_decision=require_decision, can_prove=False)
    explained = verdict.refuted and any(one.level == "error" for one in found)
    return found if explained else [*found, own]


def of_failure(error: Exception, subject: str, place: ResultLocation = NOWHERE) -> list[ReportedResult]:
    """What is reported if there is no verdict: the mechanism failed, or a claim's file cannot be used."""
    if not isinstance(error, ClaimFileError):
        return [ReportedResult("mechanism-failed", "error", escape_control_chars(str(error)), subject, "failed", place)]
    return [
        ReportedResult(
            "claim-unreadable",
            "error",
            escape_control_chars(text),
            Path(file).stem,
            "failed",
            ResultLocation(file, line),
        )
        for text, file, line in error.mistakes
    ]


def by_subject(results: Sequence[ReportedResult]) -> dict[str, list[ReportedResult]]:
    """The results of each subject, in their order."""
    groups: dict[str, list[ReportedResult]] = {}
    for one in results:
        groups.setdefault(one.subject, []).append(one)
    return groups
