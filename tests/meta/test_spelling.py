"""Prose is in American English, as the field writes it; identifiers keep their names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written from the code or checked word for word against it.
GENERATED = {"packages.md", "benchmarks.md", "reproduce.md", "documents.md", "command-line.md", "python.md"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *(
        page
        for folder in ("", "how-to", "systems", "reference", "proofs", "claims")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
    *sorted((ROOT / "src" / "dpassay" / "server" / "templates").glob("*.html")),
    *sorted((ROOT / "src" / "dpassay" / "report" / "templates").glob("*.html")),
]
BRITISH = {
    "neighbour": "neighbor",
    "colour": "color",
    "favour": "favor",
    "behaviour": "behavior",
    "labelled": "labeled",
    "modelled": "modeled",
    "cancelled": "canceled",
    "artefact": "artifact",
    "learnt": "learned",
    "centre": "center",
    r"analyse(?!s\b)": "analyze",  # the plural is "analyses" everywhere
    "normalis": "normaliz",
    "randomis": "randomiz",
    "memoris": "memoriz",
    r"minimis(?!t)": "minimiz",
    "maximis": "maximiz",
    r"optimis(?!ti|m)": "optimiz",
    "summaris": "summariz",
    "recognis": "recogniz",
    "discretis": "discretiz",
    "generalis": "generaliz",
    r"(?<!prov)isation": "ization",
    "whilst": "while",
    "catalogue": "catalog",
    "licence": "license",
    "defence": "defense",
    "programme": "program",
    "judgement": "judgment",
    "grey": "gray",
    "honour": "honor",
    "tokenis": "tokeniz",
}
WORD = re.compile(rf"\b\w*({'|'.join(BRITISH)})\w*", re.IGNORECASE)


BRITISH_WORD = rf"\w*(?:{'|'.join(BRITISH)})\w*"
# What stands in a sentence and is not prose: an option, an attribute, a name in quotes, an argument, a call, a file.
NAMES = [
    rf"(?:--|[._/`'\"]){BRITISH_WORD}",
    rf"{BRITISH_WORD}(?:[=(_`'\"]|\.md)",
    rf"\w*_{BRITISH_WORD}",
    r"\bnormalise\b",
    r"leave neighbours out",
]


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """The strings of a module that people read, without its docstrings."""
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = list(ast.walk(tree))
    passed = {id(node.body[0].value) for node in nodes if isinstance(node, documented) and ast.get_docstring(node)}
    passed |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            said = node.value
        elif isinstance(node, ast.JoinedStr):
            said = "".join(str(part.value) if isinstance(part, ast.Constant) else " … " for part in node.values)
        else:
            continue
        if len(said.split()) > 1:
            yield node.lineno, re.sub("|".join(NAMES), " ", said)


def prose(text: str) -> str:
    """A page without code, commands, addresses, attributes and formulas, of the same number of lines."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])  # noqa: E731
    for pattern in (
        r"^```.*?^```",
        r"^(?: {4}[^\n]*\n)+",
        r"\[([\w-]+)\]\([\w/]*\1\.md\)",  # a page by its name
        r"`[^`]{1,300}`",
        r"\]\([^)]*\)",
        r"\{[{%#].*?[#%}]\}",
        r"<(?:style|script|pre|code).*?</(?:style|script|pre|code)>",
        r"</?[a-zA-Z][^>]{0,300}>",
    ):
        text = re.sub(pattern, blank, text, flags=re.MULTILINE | re.DOTALL)
    return text


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=lambda page: page.name)
def test_american_spelling(page: Path) -> None:
    lines = prose(page.read_text(encoding="utf-8")).splitlines()
    found = [f"{page.name}:{i}: {word[0]}" for i, line in enumerate(lines, 1) for word in WORD.finditer(line)]
    assert not found


def test_british_words_are_found_in_prose_only() -> None:
    assert [word[0] for word in WORD.finditer(prose("Two neighbours; `neighbours=` and [it](a.md#neighbours)."))] == [
        "neighbours"
    ]


def test_american_spelling_of_what_is_printed() -> None:
    names = ("usage.py", "names.py", "scores.py", "statements.py")  # lists of options and parameters; texts for Coq
    paths = [path for path in sorted((ROOT / "src").rglob("*.py")) if path.name not in names]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word[0]}"
        for path in paths
        for line, text in sentences(path.read_text(encoding="utf-8"))
        for word in WORD.finditer(text)
    ]
    assert not found


def test_british_words_are_found_in_strings_only() -> None:
    code = """'''Neighbours.'''\nsays = f"two {neighbours} neighbours, --neighbours any"\nname = "neighbours"\n"""
    assert [word[0] for _, text in sentences(code) for word in WORD.finditer(text)] == ["neighbours"]
