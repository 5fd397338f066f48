"""A report to the maintainers of a package: the claim, a program that they can run, what it shows, and a fix."""

from __future__ import annotations

import json

from dpassay.errors import InputError
from dpassay.packages.judging import PackageVerdict
from dpassay.packages.record import Record

PROGRAM = """\
{subject}

if __name__ == "__main__":
    from collections import Counter

    for x in {pair}:
        outputs = [mechanism(x) for _ in range(20)]
        print(x, *outputs[:5], sep="\\n  ")
"""


def maintainers_report(record: Record, found: PackageVerdict | None) -> str:
    """The text of an issue, in Markdown. Only a refuted claim can be reported."""
    if found is None or found.word != "refuted":
        what = "has not been run" if found is None else f"is {found.word}, not refuted"
        raise InputError(f"{record.name} {what}: there is nothing to report")
    parts = [
        f"# {record.mechanism}: the true ε is above the documented one",
        f"Release: `{record.release}`.",
        "## What is documented",
        f"ε = {record.claimed}, for {record.neighbours}. Source: {record.source}.",
        "## What we saw",
        f"{record.why}",
        _shown(record, found),
        *(["## Where", f"`{record.at}`"] if record.at else []),
        *(["## A program that shows it", f"```python\n{_program(record)}```"] if record.subject else []),
        "## A possible fix",
        record.fix or _default_fix(record),
        *(["## Reported before", f"Known: {record.known}."] if record.known else []),
        "## How to repeat this",
        f"`dpassay packages --run {record.name}` installs the release into an environment of its own and runs it.",
        "If we have misread the documentation, or the inputs are outside what it covers, please tell us.",
    ]
    return "\n\n".join(parts) + "\n"


def _program(record: Record) -> str:
    """The subject without what only dpassay needs, with both inputs."""
    text = PROGRAM.format(subject=record.subject.strip(), pair=json.dumps(record.pair))
    return text.replace("    from collections import Counter\n\n", "")


def _shown(record: Record, found: PackageVerdict) -> str:
    """The evidence in a sentence or two."""
    reason = found.reason[0].upper() + found.reason[1:] if found.reason else ""
    end = "" if reason.endswith(".") else "."
    pair = json.dumps(record.pair)
    inputs = f" The two inputs are {pair}." if len(pair) < 200 else ""
    return f"{reason}{end}{inputs} Between them ε is {found.shown}; {record.claimed} is documented."


def _default_fix(record: Record) -> str:
    where = f" in {record.at.partition(',')[0]}" if record.at else ""
    return f"Change the code{where} so that the sentence above no longer holds, or document the ε that does."
