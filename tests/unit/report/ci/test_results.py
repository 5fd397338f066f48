"""What other tools are told: SARIF, JUnit and GitHub's annotations, over one record."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from dpassay import check, trace
from dpassay.claims.toml import line_of_claim, read_claim, read_folder
from dpassay.errors import ClaimFileError, MechanismError
from dpassay.report.ci import rules
from dpassay.report.ci.annotations import workflow_commands
from dpassay.report.ci.junit import junit
from dpassay.report.ci.results import ReportedResult, ResultLocation, of_failure, of_trace, of_verdict
from dpassay.report.ci.rules import RULES
from dpassay.report.ci.sarif import left_out, sarif

ROOT = Path(__file__).parents[4]
PROVEN = check("query(l1, 1) | laplace(1)", epsilon=1)
REFUTED = check("query(l1, 1) | laplace(1/2)", epsilon=1)
HERE = ResultLocation("mine.toml", 1)
OPEN = check("clip(l2, 1) | laplace(2) | times(4)", epsilon=6.5, delta=1e-3, dim=4)

# The parts of the published schema of SARIF 2.1.0 (OASIS) that are written here, with what it requires of them.
TEXT = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string"}},
    "additionalProperties": False,
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
HELP = {**TEXT, "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}}}
RULE = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "shortDescription": TEXT,
        "help": HELP,
        "helpUri": {"type": "string", "pattern": "^https?://"},
    },
}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],  # by GitHub, which else rejects the file
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+$"}},
                },
                "region": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
        "logicalLocations": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
}
RESULT = {
    "type": "object",
    "required": ["message"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": LEVEL,
        "message": TEXT,
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "properties": {"type": "object"},
    },
}
NOTE = {
    "type": "object",
    "required": ["message"],
    "additionalProperties": False,
    "properties": {"message": TEXT, "level": LEVEL},
}
INVOCATION = {
    "type": "object",
    "required": ["executionSuccessful"],
    "additionalProperties": False,
    "properties": {
        "executionSuccessful": {"type": "boolean"},
        "toolExecutionNotifications": {"type": "array", "items": NOTE},
    },
}
DRIVER = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "informationUri": {"type": "string", "format": "uri"},
        "rules": {"type": "array", "items": RULE, "uniqueItems": True},
    },
}
RUN = {
    "type": "object",
    "required": ["tool"],
    "additionalProperties": False,
    "properties": {
        "tool": {"type": "object", "required": ["driver"], "properties": {"driver": DRIVER}},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT},
        "invocations": {"type": "array", "items": INVOCATION},
    },
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "items": RUN},
    },
}


def log(results):
    data = json.loads(sarif(results))
    jsonschema.validate(data, SARIF)
    (run,) = data["runs"]
    for one in run["results"]:
        assert run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
    return run


def cases(results):
    suite = ElementTree.fromstring(junit(results)).find("testsuite")
    return suite, {case.get("name"): case for case in suite}


# ── The record ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("verdict", "options", "rule", "level"),
    [
        (PROVEN, {}, "", "none"),
        (REFUTED, {}, "claim-refuted", "error"),
        (OPEN, {}, "claim-open", "warning"),
        (OPEN, {"can_prove": False}, "claim-open", "note"),
        (OPEN, {"require_decision": True}, "claim-open", "error"),
        (PROVEN, {"expected": "proven"}, "", "none"),
        (REFUTED, {"expected": "refuted"}, "claim-refuted", "note"),
        (OPEN, {"expected": "open", "require_decision": True}, "claim-open", "note"),
        (PROVEN, {"expected": "refuted"}, "not-as-expected", "error"),
        (REFUTED, {"expected": "proven"}, "claim-refuted", "error"),
        (OPEN, {"expected": "proven"}, "not-as-expected", "error"),
    ],
)
def test_levels(verdict, options, rule, level):
    found = of_verdict(verdict, **options)
    assert (found.rule, found.level, found.verdict) == (rule, level, verdict.word)


def test_each_rule_has_its_entry_in_the_documentation():
    entries = re.findall(r"^### (\S+)$", (ROOT / "docs" / "rules.md").read_text(), re.MULTILINE)
    assert entries == list(RULES)


def test_the_help_address_is_the_one_that_the_package_states(monkeypatch):
    monkeypatch.setattr(rules, "help_address", rules.help_address)
    stated = {"Project-URL": ["Source, https://example.org/code", "Documentation, https://example.org/docs/"]}
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: type("M", (), {"get_all": stated.get}))
    assert rules.help_address("leak") == "https://example.org/docs/rules.html#leak"
    driver = log([of_verdict(REFUTED, HERE)])["tool"]["driver"]
    assert driver["informationUri"] == "https://example.org/docs/"
    (rule,) = driver["rules"]
    assert rule["helpUri"] == "https://example.org/docs/rules.html#claim-refuted"
    stated["Project-URL"] = None
    driver = log([of_verdict(REFUTED, HERE)])["tool"]["driver"]
    assert "informationUri" not in driver
    assert "helpUri" not in driver["rules"][0]


def test_paths_are_those_of_the_repository(tmp_path, monkeypatch):
    inside = tmp_path / "a folder" / "mine.toml"
    monkeypatch.chdir(tmp_path)
    assert ResultLocation(str(inside)).path == ResultLocation("a folder/mine.toml").path == "a folder/mine.toml"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(inside.parent))
    assert ResultLocation("a folder/mine.toml").path == "mine.toml"
    assert ResultLocation("/elsewhere/x.py").path == "/elsewhere/x.py"
    uri = log([of_verdict(REFUTED, ResultLocation("/else where/ε.py", 3))])["results"][0]["locations"][0][
        "physicalLocation"
    ]
    assert uri["artifactLocation"]["uri"] == "file:///else%20where/%CE%B5.py"


# ── The three forms ─────────────────────────────────────────────────────────────────────────────


def test_sarif_has_what_there_is_to_complain_of(monkeypatch):
    monkeypatch.delenv("GITHUB_WORKFLOW_REF", raising=False)
    place = ResultLocation("claims/mine.toml", 4)
    run = log([of_verdict(PROVEN), of_verdict(REFUTED, place), of_verdict(OPEN, place), of_verdict(REFUTED)])
    assert [one["level"] for one in run["results"]] == ["error", "warning"]
    assert run["results"][0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "claims/mine.toml"},
        "region": {"startLine": 4},
    }
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["claim-refuted", "claim-open"]
    (noted,) = run["invocations"][0]["toolExecutionNotifications"]  # the one without a file
    assert "claim-refuted" in noted["message"]["text"]
    assert len(left_out([of_verdict(PROVEN), of_verdict(REFUTED, place), of_verdict(REFUTED)])) == 1
    assert log([])["results"] == []


def test_a_pipeline_in_a_workflow_is_located_in_the_workflow(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_WORKFLOW_REF", "me/mine/.github/workflows/dp check.yml@refs/heads/main")
    (one,) = log([of_verdict(REFUTED)])["results"]
    assert one["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": ".github/workflows/dp%20check.yml"},
        "region": {"startLine": 1},
    }


def test_a_fingerprint_survives_another_line_and_other_numbers():
    def found(*results):
        return [one["partialFingerprints"]["dpassay/v1"] for one in log(results)["results"]]

    first, moved, other = (
        ReportedResult("leak", "error", text, subject, "refuted", ResultLocation("a.py", line))
        for text, subject, line in (("ε = 2", "m:f", 3), ("ε = 2.1", "m:f", 9), ("ε = 2", "m:g", 3))
    )
    assert found(first) == found(moved) != found(other)
    assert len(set(found(first, moved, other))) == 3


@pytest.mark.parametrize("rule", RULES)
def test_the_help_of_a_rule_travels_with_the_tool(rule):
    (told,) = log([ReportedResult(rule, "error", "x", "m:f", "refuted", HERE)])["tool"]["driver"]["rules"]
    assert told["help"]["markdown"] in (ROOT / "docs" / "rules.md").read_text()
    assert len(told["help"]["text"]) > 30
    assert "](" not in told["help"]["text"]


def test_junit_has_a_case_for_each_subject():
    results = [
        ReportedResult("", "none", "it holds", "a", "proven"),
        ReportedResult("claim-refuted", "error", "it fails", "b", "refuted", ResultLocation("b.toml", 2)),
        ReportedResult("claim-open", "warning", "not known", "c", "open"),
        ReportedResult("claim-open", "error", "not known", "d", "open"),
        ReportedResult("mechanism-failed", "error", "it broke", "e", "failed"),
        ReportedResult("claim-refuted", "note", "as expected", "f", "refuted"),
    ]
    suite, found = cases(results)
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
    }
    assert [[child.tag for child in case] for case in found.values()] == [
        ["system-out"],
        ["failure"],
        ["skipped"],
        ["failure"],
        ["error"],
        ["system-out"],
    ]
    assert found["c"][0].get("message") == "not known"
    assert found["b"].get("line") == "2"


def test_several_findings_of_one_subject_are_one_case():
    results = [
        ReportedResult("unbounded-input", "warning", "nothing bounds it", "m:f", "refuted"),
        ReportedResult("leak", "error", "around the noise", "m:f", "refuted"),
    ]
    _, found = cases(results)
    assert len(found) == 1
    assert found["m:f"].find("failure").get("type") == "leak"
    assert "nothing bounds it" in found["m:f"].find("failure").text


@pytest.mark.parametrize("text", ["<b>&\"'", "\x00\x1b[2J\x0b", "a\ud800b\uffff", "]]>", "ε\nnext"])
def test_any_text_can_be_written(text):
    result = ReportedResult("leak", "error", text, text, "refuted", ResultLocation("a,b:c%.py", 1))
    assert cases([result])[0].get("failures") == "1"
    (line,) = workflow_commands([result])
    assert "\n" not in line
    assert "\r" not in line


def test_workflow_commands_are_escaped_as_the_runner_reads_them():
    """The rules of actions/toolkit: %, CR and LF in a message, in a property also colon and comma."""
    found = workflow_commands(
        [
            ReportedResult("claim-open", "note", "later", "a", "open"),
            ReportedResult("leak", "error", "100% of: a,b\r\nnext", "m:f", "refuted", ResultLocation("a,b:c.py", 7)),
            ReportedResult("", "none", "fine", "b", "proven"),
        ]
    )
    assert found == [
        "::error file=a%2Cb%3Ac.py,line=7,title=m%3Af%3A leak::100%25 of: a,b%0D%0Anext",
        "::notice title=a%3A claim-open::later",
    ]


# ── Where results come from ─────────────────────────────────────────────────────────────────────


def test_a_trace_reports_each_finding_at_its_line():
    def mechanism(x):
        import numpy as np

        return np.asarray(x) + np.random.default_rng().laplace(scale=2.0)

    found = of_trace(trace(mechanism, pairs=[([0.0, 0.0], [1.0, 0.0])], epsilon=1))
    (one,) = [result for result in found if result.level == "error"]
    assert (one.rule, one.verdict) == ("shared-noise", "refuted")
    assert Path(one.place.file).name == "test_results.py"
    source = Path(__file__).read_text().splitlines()
    assert "default_rng().laplace" in source[one.place.line - 1]


def test_a_trace_without_findings_notes_its_verdict():
    def mechanism(x):
        import numpy as np

        return np.clip(x, 0, 1) + np.random.default_rng().laplace(scale=1.0)

    found = of_trace(trace(mechanism, pairs=[(0.0, 1.0)], epsilon=1, hostile=False))
    assert [(one.rule, one.level) for one in found] == [("claim-open", "note")]
    assert of_trace(trace(mechanism, pairs=[(0.0, 1.0)], epsilon=1, hostile=False), require_decision=True)[0].level == (
        "error"
    )


def test_failures(tmp_path):
    (failed,) = of_failure(MechanismError("it broke"), "m:f", ResultLocation("m.py", 3))
    assert (failed.rule, failed.verdict, failed.place.line) == ("mechanism-failed", "failed", 3)
    (tmp_path / "a.toml").write_text('pipeline = "laplace(1)"\nepsilon = 1\ndimm = 3\ndim = "x"\n')
    (tmp_path / "b.toml").write_text("pipeline = \n")
    (tmp_path / "c.toml").write_text('pipeline = "query(l1, 1) | laplace(1)"\nepsilon = 1\nneighbours = "all"\n')
    with pytest.raises(ClaimFileError) as caught:
        read_folder(tmp_path)
    found = of_failure(caught.value, "gallery")
    assert [(one.subject, one.place.line) for one in found] == [("a", 3), ("a", 4), ("b", 1), ("c", 3)]
    assert {one.rule for one in found} == {"claim-unreadable"}


def test_the_line_of_a_claim(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('title = "epsilon = 1"\npipeline = "query(l2, 1) | gaussian(2)"\n\nrho = 0.125\n')
    assert line_of_claim(file) == 4
    assert read_claim(file).name == "a"
