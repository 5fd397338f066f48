"""Results as JUnit XML, which CI services show as tests: one test case for each claim or mechanism."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as XML

from dpassay.report.ci.results import ReportedResult, by_subject, worst


def junit(results: Sequence[ReportedResult], suite: str = "dpassay") -> str:
    """One suite. Refuted is a failure, open is skipped, and what could not be judged is an error.

    >>> junit([ReportedResult("claim-refuted", "error", "too little noise", "mine", "refuted")]).count("<failure")
    1
    """
    cases = [_case(name, found, suite) for name, found in by_subject(results).items()]
    count = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
    counted = {"failures": count["failure"], "errors": count["error"], "skipped": count["skipped"]}
    attributes = {"name": suite, "tests": len(cases), **counted}
    top = XML.Element("testsuites")
    element = XML.SubElement(top, "testsuite", {name: str(value) for name, value in attributes.items()})
    element.extend(cases)
    XML.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{XML.tostring(top, encoding="unicode")}\n'


def _case(name: str, found: Sequence[ReportedResult], suite: str) -> XML.Element:
    most = worst(found)
    place = {"file": most.place.path, "line": str(most.place.line)} if most.place.file else {}
    case = XML.Element("testcase", {"classname": suite, "name": _text(name), **place})
    said = "\n".join(f"{one.rule}: {one.message}" if one.rule else one.message for one in found)
    outcome = "error" if most.verdict == "failed" else "failure" if most.level == "error" else ""
    if not outcome and most.verdict == "open":
        outcome = "skipped"
    if outcome:
        kind = {} if outcome == "skipped" else {"type": most.rule}
        XML.SubElement(case, outcome, {"message": _text(most.message), **kind}).text = _text(said)
    else:
        XML.SubElement(case, "system-out").text = _text(f"{most.verdict}: {said}")
    return case


def _text(text: str) -> str:
    """Text without the characters that XML cannot hold: controls, lone surrogates, and the last two of the plane."""
    allowed = re.compile(r"[\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
    return "".join(c if allowed.match(c) else "?" for c in text)
