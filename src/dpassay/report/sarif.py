"""Results as SARIF 2.1.0, which code scanning services and editors show next to the line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpassay.report.results import Place, Result
from dpassay.report.rules import RULES, help_address

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(results: Sequence[Result]) -> str:
    """A SARIF log of one run. Subjects without problems are left out: a viewer would show them as alerts.

    >>> json.loads(sarif([]))["version"]
    '2.1.0'
    """
    from dpassay import __version__

    shown = [one for one in results if one.level != "none"]
    rules = list(dict.fromkeys(one.rule for one in shown))
    driver = {"name": "dpassay", "version": __version__, "rules": [_rule(rule) for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, rules.index(one.rule)) for one in shown],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: str) -> dict[str, Any]:
    meaning = RULES[rule]
    sentence = f"{meaning[0].upper()}{meaning[1:]}."
    address = help_address(rule)
    more = f"docs/rules.md says more under {rule}."
    return {
        "id": rule,
        "name": "".join(word.title() for word in rule.split("-")),
        "shortDescription": {"text": sentence},
        "help": {"text": f"{sentence} {more}"},
        **({"helpUri": address} if address else {}),
    }


def _result(one: Result, number: int) -> dict[str, Any]:
    return {
        "ruleId": one.rule,
        "ruleIndex": number,
        "level": one.level,
        "message": {"text": one.message},
        "locations": [_location(one)],
        "properties": {"subject": one.subject, "verdict": one.verdict},
    }


def _location(one: Result) -> dict[str, Any]:
    """The location of a result; one without a file is located only in its subject."""
    logical = {"logicalLocations": [{"name": one.subject}]}
    if not one.place.file:
        return logical
    region = {"region": {"startLine": one.place.line}} if one.place.line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(one.place)}, **region}, **logical}


def _uri(place: Place) -> str:
    path = Path(place.path)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
