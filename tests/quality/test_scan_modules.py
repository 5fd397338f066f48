"""Whether a scan finds what is wrong in small labelled modules, at the line, and leaves right ones alone."""

import pytest

from dpassay.scan.findings import ScanFinding
from dpassay.scan.rules import RULES
from dpassay.scan.scanning import check_modules
from dpassay.scan.sources import Skipped, SourceFile, parse
from scan_modules import RIGHT, WRONG
from scan_packages import RIGHT as RIGHT_STYLES
from scan_packages import WRONG as WRONG_STYLES

ALL_WRONG = {**WRONG, **{f"styles-{name}": one for name, one in WRONG_STYLES.items()}}
ALL_RIGHT = {**RIGHT, **{f"styles-{name}": one for name, one in RIGHT_STYLES.items()}}


def findings_of(code: str) -> list[ScanFinding]:
    skipped = Skipped()
    module = parse(SourceFile("module.py", "module", code.encode()), skipped)
    assert module is not None, skipped.sentences
    mechanisms, others, _ = check_modules([module], skipped)
    return [*(one for each in mechanisms for one in each.findings), *others]


def alarms(code: str) -> list[ScanFinding]:
    return [one for one in findings_of(code) if one.severity != "information"]


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_finds_its_wrong_example_and_leaves_the_right_one_alone(rule: str) -> None:
    found = findings_of(RULES[rule].wrong)
    assert rule in {one.rule for one in found}
    assert {one.rule for one in found if one.severity != "information"} <= {rule}
    assert rule not in {one.rule for one in findings_of(RULES[rule].right)}
    assert not alarms(RULES[rule].right)


@pytest.mark.parametrize("name", ALL_WRONG)
def test_wrong_modules_are_found_at_their_line(name: str) -> None:
    rule, code = ALL_WRONG[name]
    line = next(i for i, text in enumerate(code.splitlines(), 1) if text.endswith("# here"))
    assert (rule, line) in {(one.rule, one.place.line) for one in findings_of(code)}


@pytest.mark.parametrize("name", ALL_RIGHT)
def test_right_modules_give_no_alarm(name: str) -> None:
    assert not alarms(ALL_RIGHT[name])
