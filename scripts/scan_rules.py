"""Write the rules of `dpassay scan` into docs/rules.md (their entries) and docs/scan-rules.md (a section each).

Run it after a change of src/dpassay/scan/rules/rules.toml.
"""

from pathlib import Path

from dpassay.report.ci.rules import READING_RULES
from dpassay.scan.rules import RULES, Rule

DOCS = Path(__file__).parents[1] / "docs"
HEAD = "## Reading\n"
INTRO = """\
Findings of `dpassay scan`, written by `scripts/scan_rules.py` from the rules. Those that a theorem refutes given what
the code says are *errors*, suspicious ones *warnings*, information *notes*. [scan-rules.md](scan-rules.md) has examples
of each. Rules that a scan shares with a trace are listed above.
"""
LEVELS = {"refuted": "error", "suspicious": "warning", "information": "note"}


def entry(rule: Rule) -> str:
    """A rule in docs/rules.md."""
    return f"### {rule.id}\n\n{sentence(rule.meaning)} Level *{LEVELS[rule.severity]}*.\n\nWhat to do: {rule.fix}\n"


def section(rule: Rule) -> str:
    """A rule in docs/scan-rules.md."""
    parts = [
        f"## {rule.id}",
        f"{sentence(rule.meaning)} At worst: {rule.severity}.",
        f"Why: {rule.why}",
        f"Fix: {rule.fix}",
    ]
    return "\n\n".join([*parts, "Wrong:", fenced(rule.wrong), "Right:", fenced(rule.right)]) + "\n"


def fenced(code: str) -> str:
    """A block of Python."""
    return f"```python\n{code}\n```"


def sentence(meaning: str) -> str:
    """A meaning with a capital letter and a stop."""
    return f"{meaning[0].upper()}{meaning[1:]}."


def main() -> None:
    """Write both pages."""
    page = DOCS / "rules.md"
    before = page.read_text(encoding="utf-8").split(HEAD)[0].rstrip() + "\n\n"
    entries = "\n".join(entry(RULES[name]) for name in READING_RULES)
    page.write_text(f"{before}{HEAD}\n{INTRO}\n{entries}", encoding="utf-8")
    title = (
        "# Rules of a scan\n\n*Written by `scripts/scan_rules.py` from the rules. Change the rules, not this page.*\n"
    )
    (DOCS / "scan-rules.md").write_text("\n".join([title, *map(section, RULES.values())]), encoding="utf-8")


if __name__ == "__main__":
    main()
