"""Results as SARIF 2.1.0, which code scanning services and editors show next to the line.

GitHub rejects a whole file if one result has no physical location. A result without a file, such as a pipeline that was
typed on the command line, is located in the workflow that runs dpassay; where there is none it is a notification of the
run instead of a result.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpassay.report.ci.results import NOWHERE, ReportedResult, ResultLocation
from dpassay.report.ci.rules import RULES, help_address, help_text, project_address

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(results: Sequence[ReportedResult]) -> str:
    """A SARIF log of one run. Subjects without problems are left out: a viewer would show them as alerts.

    >>> json.loads(sarif([]))["version"]
    '2.1.0'
    """
    from dpassay import __version__

    shown = [replace(one, place=place_in_repository(one)) for one in results if one.level != "none"]
    located = [one for one in shown if one.place.file]
    rules = list(dict.fromkeys(one.rule for one in located))
    address = project_address()
    driver = {
        "name": "dpassay",
        "version": __version__,
        **({"informationUri": address} if address else {}),
        "rules": [_rule(rule) for rule in rules],
    }
    seen: Counter[str] = Counter()
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, rules.index(one.rule), seen) for one in located],
    }
    if len(located) < len(shown):
        notes = [_notification(one) for one in shown if not one.place.file]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def left_out(results: Sequence[ReportedResult]) -> list[ReportedResult]:
    """The results that have no file, so that SARIF can only note them."""
    return [one for one in results if one.level != "none" and not place_in_repository(one).file]


def place_in_repository(one: ReportedResult) -> ResultLocation:
    """The place of a result; without a file, the GitHub workflow that runs this, if there is one.

    >>> result = ReportedResult("claim-refuted", "error", "", "mine", "refuted", ResultLocation("a.toml"))
    >>> place_in_repository(result).file
    'a.toml'
    """
    if one.place.file:
        return one.place
    workflow = re.fullmatch(r"[^/]+/[^/]+/(.+?)@.*", os.environ.get("GITHUB_WORKFLOW_REF", ""))
    root = Path(os.environ.get("GITHUB_WORKSPACE") or ".")
    return ResultLocation(str(root / workflow[1]), 1) if workflow else NOWHERE


def _rule(rule: str) -> dict[str, Any]:
    meaning = RULES[rule]
    sentence = f"{meaning[0].upper()}{meaning[1:]}."
    address = help_address(rule)
    entry = help_text(rule) or sentence
    return {
        "id": rule,
        "name": "".join(word.title() for word in rule.split("-")),
        "shortDescription": {"text": sentence},
        "help": {"text": re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", entry), "markdown": entry},
        **({"helpUri": address} if address else {}),
    }


def _result(one: ReportedResult, number: int, seen: Counter[str]) -> dict[str, Any]:
    same = "\n".join((one.rule, one.subject, one.place.path))  # not the line or the numbers, which change
    seen[same] += 1
    fingerprint = hashlib.sha256(f"{same}\n{seen[same]}".encode()).hexdigest()[:32]
    return {
        "ruleId": one.rule,
        "ruleIndex": number,
        "level": one.level,
        "message": {"text": one.message},
        "locations": [_location(one)],
        "partialFingerprints": {"dpassay/v1": fingerprint},
        "properties": {"subject": one.subject, "verdict": one.verdict},
    }


def _location(one: ReportedResult) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri(one.place)}, "region": {"startLine": max(1, one.place.line)}}
    return {"physicalLocation": place, "logicalLocations": [{"name": one.subject}]}


def _notification(one: ReportedResult) -> dict[str, Any]:
    said = f"{one.subject}, {one.rule}: {one.message} (It has no file, so it is not a result.)"
    return {"level": one.level, "message": {"text": said}}


def _uri(place: ResultLocation) -> str:
    path = Path(place.path)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
