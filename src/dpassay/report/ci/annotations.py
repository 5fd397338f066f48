"""Results as GitHub workflow commands, which become annotations next to the line."""

from __future__ import annotations

from collections.abc import Sequence

from dpassay.report.ci.results import SEVERITY, ReportedResult

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def workflow_commands(results: Sequence[ReportedResult]) -> list[str]:
    """A workflow command for each result. The most serious come first: GitHub shows ten of a kind for each step.

    >>> workflow_commands([ReportedResult("claim-refuted", "error", "100% wrong", "mine", "refuted")])
    ['::error title=mine%3A claim-refuted::100%25 wrong']
    """
    shown = [one for one in results if one.level != "none"]
    return [_command(one) for one in sorted(shown, key=lambda one: SEVERITY.index(one.level))]


def _command(one: ReportedResult) -> str:
    properties = {"title": f"{one.subject}: {one.rule}"}
    if one.place.file:
        line = {"line": str(one.place.line)} if one.place.line else {}
        properties = {"file": one.place.path, **line, **properties}
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{COMMANDS[one.level]} {written}::{_data(one.message)}"


def _data(text: str) -> str:
    """A message, escaped as GitHub's runner reads it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property, which ends at a comma or a colon."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
