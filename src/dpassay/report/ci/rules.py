"""The rules that findings are reported under: one namespace for verdicts and traces, stable once released.

docs/rules.md has an entry for each, under its id.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dpassay.scan.rules import RULES as SCAN_RULES
from dpassay.trace.findings.rules import HOSTILE_RULES
from dpassay.trace.findings.rules import RULES as TRACE_RULES

VERDICT_RULES: dict[str, str] = {
    "claim-refuted": "the claim does not hold: two neighboring inputs show a larger loss than is claimed",
    "claim-open": "the claim is neither proven nor refuted",
    "not-as-expected": "the verdict is not the one that the claim's file expects",
    "claim-unreadable": "the claim's file cannot be read, or says something that is not allowed",
    "mechanism-failed": "the mechanism itself failed, so nothing could be judged",
}
READING_RULES: dict[str, str] = {name: one.meaning for name, one in SCAN_RULES.items() if name not in TRACE_RULES}
RULES: dict[str, str] = {**VERDICT_RULES, **TRACE_RULES, **HOSTILE_RULES, **READING_RULES}


HERE = Path(__file__).parents[1]
PLACES = (HERE / "rules.md", HERE.parents[2] / "docs" / "rules.md")  # as installed; in the repository


@cache
def _entries() -> dict[str, str]:
    text = next((path.read_text(encoding="utf-8") for path in PLACES if path.is_file()), "")
    parts = re.split(r"^### (\S+)$", text, flags=re.MULTILINE)
    return {rule: entry.split("\n## ")[0].strip() for rule, entry in zip(parts[1::2], parts[2::2], strict=True)}


def help_text(rule: str) -> str:
    """A rule's entry in docs/rules.md, as Markdown; empty if the file is missing.

    >>> help_text("no-noise")
    'The output is the same in every run, and no noise was drawn.'
    """
    return _entries().get(rule, "")


def help_address(rule: str) -> str:
    """The address of a rule's entry in the documentation; empty if the package states no address."""
    page = _stated("Documentation")
    return f"{page.rstrip('/')}/rules.html#{rule}" if page else ""


def project_address() -> str:
    """The address of the project; empty if the package states none."""
    return _stated("Homepage") or _stated("Documentation")


def _stated(kind: str) -> str:
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        stated = metadata("dpassay").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    found = [address.strip() for name, _, address in (one.partition(",") for one in stated) if name == kind]
    return found[0] if found else ""
