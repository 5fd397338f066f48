"""The documents say what the code does: examples run, every public name and every theorem is explained."""

import doctest
import inspect
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

import dpassay
import tiers
from dpassay.claims.registry import SYSTEMS
from dpassay.cli import main as cli
from dpassay.core.theorems import Theorem
from dpassay.evidence.schema import VerdictRecord
from dpassay.report.claim_report import ClaimReport

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def console_examples() -> list[tuple[str, str, str]]:
    found = []
    for document in DOCUMENTS:
        for block in CONSOLE.findall(document.read_text()):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                found.append((document.name, command, shown.strip("\n")))
    return found


@pytest.mark.parametrize(("document", "command", "shown"), console_examples())
def test_console_examples_print_what_is_shown(  # type: ignore[no-untyped-def]
    document: str, command: str, shown: str, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    words = shlex.split(command)
    assert words[0] == "dpassay", document
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit):
        cli.main()
    out, err = capfd.readouterr()
    assert (out or err).startswith(shown), out + err
    assert shown


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_run(document: Path) -> None:
    result = doctest.testfile(str(document), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_the_readme_has_both_kinds_of_example() -> None:
    text = (ROOT / "README.md").read_text()
    assert ">>> " in text
    assert any(name == "README.md" for name, _, _ in console_examples())


def test_the_readmes_two_commands_exist_in_the_makefile() -> None:
    readme, makefile = ((ROOT / name).read_text() for name in ("README.md", "Makefile"))
    targets = re.findall(r"^make (\w+)", readme, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    assert (ROOT / ".ci" / "run").read_text().strip().endswith("make test")


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted((ROOT / "docs").glob("*/*.md"))], ids=lambda p: p.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (document.parent / target).exists(), target


def test_the_pages_of_the_claims_are_those_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them with --all; else the table of all claims and every third system's page."""
    from dpassay.report import show

    pages = {path.name: path.read_text() for path in (ROOT / "docs" / "claims").glob("*")}
    assert set(pages) == {"README.md", *(f"{name}.md" for name in SYSTEMS)}
    every = {name: [ClaimReport(claim) for claim in system.claims] for name, system in SYSTEMS.items()}
    assert pages["README.md"] == "\n\n".join(show._index(every)) + "\n"
    made = {report.claim.name: report for reports in every.values() for report in reports}
    monkeypatch.setattr(show, "ClaimReport", lambda claim: made[claim.name])  # each verdict once
    if not tiers.in_full:
        monkeypatch.setattr(show, "SYSTEMS", dict(list(SYSTEMS.items())[::3]))
    for name, page in show.all_pages().items():
        assert name == "README.md" or pages[name] == page


@pytest.mark.parametrize("name", dpassay.__all__)
def test_every_public_name_has_a_docstring_with_an_example(name: str) -> None:
    value = getattr(dpassay, name)
    text = inspect.getdoc(value) or ""
    if inspect.ismodule(value):
        assert f"dpassay.{name}" in text
    else:
        assert ">>> " in text, name


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    for name in re.findall(
        r"`(?:src/dpassay/)?((?:core|compute|pipeline|exact|evidence|claims|audit|text)/[\w/]+\.py)`", page.read_text()
    ):
        assert (ROOT / "src" / "dpassay" / name).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("theorem", Theorem)
def test_every_theorem_has_its_page(theorem: Theorem) -> None:
    page = (ROOT / theorem.page).read_text()
    for heading in ("**Statement", "**Proof", "**Where it is used"):
        assert heading in page, f"{theorem.page} lacks {heading}"


def test_every_page_that_the_code_names_exists_and_every_theorem_is_used() -> None:
    sources = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    for path, text in sources.items():
        for page in re.findall(r"docs/[\w/-]+\.(?:md|json)", text):
            assert (ROOT / page).exists(), f"{path.name} names {page}"
    used = "".join(text for path, text in sources.items() if path.name != "theorems.py")
    for theorem in Theorem:
        assert f"Theorem.{theorem.name}" in used or theorem.page in used, theorem


def test_the_published_schema_is_the_models() -> None:
    written = json.loads((ROOT / "docs" / "verdict.schema.json").read_text())
    assert written == VerdictRecord.model_json_schema(by_alias=True, mode="serialization")


def test_nothing_private_stands_in_the_repository() -> None:
    for path in [*(ROOT / "src").rglob("*.py"), *DOCUMENTS, *(ROOT / "tests").rglob("*.py")]:
        if path != Path(__file__):
            assert not re.search(r"/work/|/tmp/|/root/", path.read_text()), path
