"""The documents say what the code does: examples run, every public name and every theorem is explained."""

import doctest
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

import dpassay
import tiers
from dpassay.claims.registry import REGISTRY, SYSTEMS
from dpassay.cli import main as cli
from dpassay.core.theorems import Theorem
from dpassay.evidence.schema import VerdictRecord
from dpassay.report.claims.claim_report import ClaimReport
from published import published_verdict

ROOT = Path(__file__).parents[2]
GUIDES = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def console_examples(document: Path) -> list[tuple[str, str]]:
    found = []
    for block in CONSOLE.findall(document.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown.strip("\n")))
    return found


def as_pattern(shown: str) -> str:
    """What is shown, in which a line of three dots stands for any lines."""
    parts = re.split(r"^\.\.\.(?:\n|\Z)", shown, flags=re.MULTILINE)
    return r"(?:.*\n)*?".join(re.escape(part) for part in parts)


# The commands of a page are run in their order, since later ones may read what earlier ones wrote. They start in a
# folder that holds the examples of docs and nothing else, as in a fresh clone.
@pytest.mark.long(every=2)
@pytest.mark.parametrize("document", [page for page in DOCUMENTS if console_examples(page)], ids=lambda page: page.stem)
def test_console_examples_print_what_is_shown(  # type: ignore[no-untyped-def]
    document: Path, monkeypatch: pytest.MonkeyPatch, capfd, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    for command, shown in console_examples(document):
        words = shlex.split(command)
        assert words[0] == "dpassay", document
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit):
            cli.main()
        out, err = capfd.readouterr()
        assert re.match(as_pattern(shown), out or err), f"{command}\n{out}{err}"
        assert shown, command


def test_three_dots_stand_for_lines() -> None:
    assert re.match(as_pattern("first\n...\nlast"), "first\nsecond\nthird\nlast\n")
    assert re.match(as_pattern("...\nlast"), "first\nlast\n")
    assert not re.match(as_pattern("...\nlast"), "first\nthe last\n")
    assert not re.match(as_pattern("second"), "first\nsecond\n")


# Blocks with and without fences, and commands within the text.
CODE = re.compile(r"^```\w*\n(.*?)^```|((?:^    .*\n)+)|`(dpassay [^`]+)`", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown_commands(text: str) -> list[str]:
    """Every command of a page, each in one line."""
    found = []
    for block, indented, inline in CODE.findall(text):
        for line in (block or indented or inline.replace("\n", " ")).replace("\\\n", " ").splitlines():
            found += re.findall(r"^\s*(?:\$ |- run: |run: )?(dpassay(?: .*)?)$", line)
    return found


def arguments_of(command: str) -> list[str]:
    """What dpassay gets: no comment, no description two blanks away, nothing that is for another command."""
    command = re.sub(r"(?<=\S) {2,}(?![-'\s]).*$", "", command)
    command = re.sub(r"\[(--[^\]]*)\]", r"\1", command)  # what may be left out
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return [*itertools.takewhile(lambda word: not set(word) <= set("|&;<>"), lexer)][1:]


@cache
def whole_command() -> Any:
    """The command line with all of its commands: to make it takes longer than to parse a page's commands with it."""
    return typer.main.get_command(cli.app)


def refusal(arguments: list[str]) -> str:
    """Why the command line's own parser does not take these arguments; empty if it does. Nothing is run."""
    command: Any = whole_command()
    context, words = command.context_class(command), arguments
    try:
        while hasattr(command, "get_command"):
            _, words, _ = command.make_parser(context).parse_args(list(words))
            if not words or words[0] == "COMMAND":
                return ""
            name, *words = words
            command = command.get_command(context, name)
            if command is None:
                return f"there is no command {name}"
            context = command.context_class(command, parent=context)
        _, left, _ = command.make_parser(context).parse_args(words)
    except Exception as error:
        return str(getattr(error, "message", error))
    left = [word for word in left if word != "…"]
    most = [param.nargs for param in command.params if param.param_type_name == "argument"]
    return "" if -1 in most or len(left) <= sum(most) else f"too many arguments: {' '.join(left)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_a_page_shows_exist_with_their_options(page: Path) -> None:
    for command in shown_commands(page.read_text()):
        assert not (why := refusal(arguments_of(command))), f"{command}: {why}"


# Not run here: they need something of the reader's, a server, minutes, or are run by other tests.
PLACES = re.compile(r"…|\b[A-Z]{3,}\b|module:|mine|claim\.json|models/|mail|\.csv|--url|--cluster|--workers")
SLOW = ("serve", "gallery", "reproduce", "train", "attack", "reconstruct", "utility", "audit")


def test_the_complete_commands_of_the_readme_run_in_an_empty_folder(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    commands = [arguments_of(command) for command in shown_commands((ROOT / "README.md").read_text())]
    complete = [words for words in commands if len(words) > 1 and not PLACES.search(" ".join(words))]
    run = [words for words in complete if words[0] not in SLOW]
    assert len(run) >= 6
    for words in run:
        monkeypatch.setattr(sys, "argv", ["dpassay", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfd.readouterr()
        assert ended.value.code in (None, 0, 1), f"{words}: {err}"
        assert out, words


@pytest.mark.parametrize(
    "command",
    [
        "check adept --certificate new/a.json --html pages/a.html --sarif reports/a.sarif --junit reports/a.xml",
        "gallery --only adept --figure figures/g.svg --html figures/deep/g.html",
        "audit --pipeline 'query(l1, 1) | laplace(1)' --epsilon 0.1 --runs 200 --no-shrink "
        "--save saved/a.json --html saved/a.html",
    ],
)
def test_every_writing_option_makes_its_folder(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    monkeypatch.setattr(sys, "argv", ["dpassay", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (None, 0, 1), capfd.readouterr().err
    written = [Path(word) for word in words if "/" in word and "|" not in word]
    assert written
    assert all(path.is_file() for path in written)


def test_commands_are_found_and_wrong_ones_refused() -> None:
    page = """
Text with `dpassay verify FILE`.

    dpassay check --stages     lists them
    dpassay check adept \\
        --epsilon 2 [--delta 0.1] > out.txt   # a comment

```yaml
- run: dpassay gallery --from claims
```
"""
    found = [arguments_of(command) for command in shown_commands(page)]
    assert found == [
        ["verify", "FILE"],
        ["check", "--stages"],
        ["check", "adept", "--epsilon", "2", "--delta", "0.1"],
        ["gallery", "--from", "claims"],
    ]
    assert [refusal(arguments) for arguments in found] == [""] * 4
    assert refusal(["chekc"]) == "there is no command chekc"
    assert "--epsilom" in refusal(["check", "--epsilom", "1"])
    assert "--epsilon" in refusal(["check", "--epsilon"])
    assert refusal(["serve", "one"]) == "too many arguments: one"


def run_tests_of(document: Path, folder: Path, change: tuple[str, str] = ("", "")) -> subprocess.CompletedProcess[str]:
    """Write the modules that a page shows to a folder, and run its tests there."""
    for name, text in MODULE.findall(document.read_text()):
        (folder / name).write_text(text.replace(*change) if change[0] else text)
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "document", [page for page in GUIDES if "# test_" in page.read_text()], ids=lambda page: page.stem
)
def test_tests_in_guides_pass(document: Path, tmp_path: Path) -> None:
    result = run_tests_of(document, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout
    for summary in re.findall(r"^dp: .*", document.read_text(), flags=re.MULTILINE):
        assert summary in result.stdout


def test_the_tutorials_test_fails_for_the_wrong_mechanism(tmp_path: Path) -> None:
    result = run_tests_of(ROOT / "docs" / "tutorial.md", tmp_path, ("repaired", "rewrite"))
    assert result.returncode == 1
    assert "clipped_noise.py:11" in result.stdout


@pytest.mark.long(every=2)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_run(document: Path) -> None:
    result = doctest.testfile(str(document), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_the_readme_has_both_kinds_of_example() -> None:
    text = (ROOT / "README.md").read_text()
    assert ">>> " in text
    assert console_examples(ROOT / "README.md")


def test_the_readmes_figure_is_what_its_command_draws() -> None:
    """The claims that the command chooses are the rows of the figure, and the text's factors are among theirs."""
    readme = (ROOT / "README.md").read_text()
    (command,) = [words for c in shown_commands(readme) if "--figure" in (words := arguments_of(c))]
    patterns = [command[i + 1] for i, word in enumerate(command) if word == "--only"]
    chosen = [name for name in REGISTRY if any(fnmatch(name, pattern) for pattern in patterns)]
    for name in ("gallery.svg", "gallery-dark.svg"):
        rows = re.findall(r"<text[^>]*>([^<]*)</text>", (ROOT / "docs" / "images" / name).read_text())
        titles = {one: claim.title for one, claim in REGISTRY.items()}
        assert [row for row in rows if row in titles.values()] == [titles[one] for one in reversed(chosen)], name
    factors = {f"{v.value.upper / v.guarantee.claimed:,.3g}" for v in map(published_verdict, chosen)}
    assert {"5.66", "768", "5.3e+04"} <= factors


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
    from dpassay.report.claims import show

    pages = {path.name: path.read_text() for path in (ROOT / "docs" / "claims").glob("*")}
    assert set(pages) == {"README.md", *(f"{name}.md" for name in SYSTEMS)}
    every = {name: [ClaimReport(claim) for claim in system.claims] for name, system in SYSTEMS.items()}
    made = {report.claim.name: report for reports in every.values() for report in reports}
    for name, report in made.items():
        report.__dict__["verdict"] = published_verdict(name)  # each once, here and in other tests
    assert pages["README.md"] == "\n\n".join(show._index(every)) + "\n"
    monkeypatch.setattr(show, "ClaimReport", lambda claim: made[claim.name])
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
