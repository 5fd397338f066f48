"""A scan for people and for other tools: a table by mechanism, a page, and results for SARIF and annotations."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpassay.errors import escape_control_chars
from dpassay.report.ci.results import Level, ReportedResult, ResultLocation
from dpassay.scan.findings import SEVERITIES, FoundMechanism, Scan, ScanFinding
from dpassay.scan.rules import RULES

LEVELS: dict[str, Level] = {"refuted": "error", "suspicious": "warning", "information": "note"}
STYLES = {"refuted": "red", "suspicious": "yellow", "information": "dim", "none": "green"}
WORDS = {
    "refuted": "✗ refuted",
    "suspicious": "? suspicious",
    "information": "· information",
    "none": "✓ nothing found",
}
MOST_SHOWN = 60


def results(scan: Scan) -> list[ReportedResult]:
    """The findings as other tools take them."""
    verdicts = {"refuted": "refuted"}
    return [
        ReportedResult(
            one.rule,
            LEVELS[one.severity],
            escape_control_chars(f"{one.message} Fix: {RULES[one.rule].fix}"),
            one.function,
            verdicts.get(one.severity, "open"),
            ResultLocation(one.place.file, one.place.line),
        )
        for one in scan.findings
    ]


def table(scan: Scan) -> Group:
    """The mechanisms, the worst first, and below the findings with line, sentence and fix."""
    rows = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("mechanism", "where", "noise", "claim", "found"):
        rows.add_column(name, overflow="fold")
    for one in scan.mechanisms[:MOST_SHOWN]:
        rows.add_row(
            Text(escape_control_chars(one.name)),
            Text(escape_control_chars(f"{_short(one.place.file)}:{one.place.line}")),
            Text(escape_control_chars(", ".join(one.noise[:2]))),
            Text(escape_control_chars(_cut(one.claim, 48))),
            Text(found_words(one), style=STYLES[one.severity]),
        )
    parts: list[Any] = [rows] if scan.mechanisms else []
    for one in scan.mechanisms:
        if one.outcome:
            how = f"\n  {one.command}" if one.command and one.outcome == "refuted" else ""
            parts.append(
                Text(escape_control_chars(f"{one.name}: {one.outcome}. {one.reason}") + escape_control_chars(how))
            )
    for finding in scan.alarms:
        parts += [Text(""), _shown(finding)]
    return Group(*parts)


def found_words(one: FoundMechanism) -> str:
    """What is known of a mechanism, in a few words."""
    if one.outcome:
        shown = f" {one.epsilon}" if one.epsilon else ""
        return f"{WORDS['refuted'] if one.outcome == 'refuted' else one.outcome}{shown}"
    return WORDS[one.severity]


def _short(file: str) -> str:
    return "/".join(file.split("/")[-2:])


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _shown(one: ScanFinding) -> Group:
    head = Text.assemble((f"{WORDS[one.severity]} ", STYLES[one.severity]), (one.rule, "bold"))
    head.append(escape_control_chars(f"  {one.place.file}:{one.place.line} in {one.function}"))
    body = Group(
        Text(escape_control_chars(one.code), style="dim"),
        Text(escape_control_chars(one.message)),
        Text(f"Fix: {RULES[one.rule].fix}"),
    )
    return Group(head, Padding(body, (0, 0, 0, 2)))


def summary(scan: Scan) -> str:
    """How much was read and what was found, in a line."""
    counts = {word: sum(one.severity == word for one in scan.findings) for word in SEVERITIES}
    known = f"; {scan.known} known findings are left out" if scan.known else ""
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    return (
        f"{scan.files:,} file{'' if scan.files == 1 else 's'}, {scan.lines:,} line{'' if scan.lines == 1 else 's'}, "
        f"{len(scan.mechanisms)} "
        f"mechanism{'' if len(scan.mechanisms) == 1 else 's'}: {said}{known}. A rule that finds nothing proves nothing."
    )


def page(scan: Scan, command: str) -> str:
    """A self-contained page."""
    from dpassay.report.pages.page import scan_page

    return scan_page(scan, summary(scan), found_words, command)
