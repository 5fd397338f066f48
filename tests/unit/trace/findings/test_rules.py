"""Every rule that the code can name is in the table, with the words of the documents."""

import ast
import re
from pathlib import Path

import pytest

from dpassay.trace.findings.rules import HOSTILE_RULES, RULES, meaning

ROOT = Path(__file__).parents[4]
ROW = re.compile(r"^\| `([a-z-]+)` \| (.+) \|$", re.MULTILINE)


@pytest.mark.parametrize(("page", "rules"), [("trace.md", RULES), ("hostile.md", HOSTILE_RULES)])
def test_the_documents_have_the_same_table(page: str, rules: dict[str, str]) -> None:
    text = (ROOT / "docs" / page).read_text().partition("## Rules")[2]
    assert dict(ROW.findall(text)) == rules


def test_every_rule_in_the_code_is_in_the_table() -> None:
    named = set()
    for path in (ROOT / "src" / "dpassay" / "trace").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding" and node.args:
                first = node.args[0]
                named |= {first.value} if isinstance(first, ast.Constant) else set()
    assert named <= {*RULES, *HOSTILE_RULES}
    assert {"shared-noise", "not-finite"} <= named


def test_an_id_is_used_once_and_reads_as_one_line() -> None:
    assert not RULES.keys() & HOSTILE_RULES.keys()
    for rule in {**RULES, **HOSTILE_RULES}:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule)
        assert meaning(rule)
        assert "\n" not in meaning(rule)
    assert meaning("something else") == ""
