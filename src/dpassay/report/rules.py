"""The rules that findings are reported under: one namespace for verdicts and traces, stable once released.

docs/rules.md has an entry for each, under its id.
"""

from __future__ import annotations

from dpassay.trace.rules import HOSTILE_RULES
from dpassay.trace.rules import RULES as TRACE_RULES

VERDICT_RULES: dict[str, str] = {
    "claim-refuted": "the claim does not hold: two neighbouring inputs show a larger loss than is claimed",
    "claim-open": "the claim is neither proven nor refuted",
    "not-as-expected": "the verdict is not the one that the claim's file expects",
    "claim-unreadable": "the claim's file cannot be read, or says something that is not allowed",
    "mechanism-failed": "the mechanism itself failed, so nothing could be judged",
}
RULES: dict[str, str] = {**VERDICT_RULES, **TRACE_RULES, **HOSTILE_RULES}


def help_address(rule: str) -> str:
    """The address of a rule's entry in the documentation; empty if the package states no address."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        stated = metadata("dpassay").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    pages = [address.strip() for name, _, address in (one.partition(",") for one in stated) if name == "Documentation"]
    return f"{pages[0].rstrip('/')}/rules.html#{rule}" if pages else ""
