"""Prose is in American English, as the field writes it; identifiers keep their names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written from the code or checked word for word against it.
GENERATED = {"packages.md", "benchmarks.md", "reproduce.md", "documents.md", "command-line.md", "python.md"}
PAGES = [
    ROOT / "README.md",
    *(
        page
        for folder in ("", "how-to", "systems", "reference")
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
    "analyse": "analyze",
    "normalise": "normalize",
    "randomise": "randomize",
    "memorise": "memorize",
    "minimise": "minimize",
    "maximise": "maximize",
    "optimise": "optimize",
    "summarise": "summarize",
    "recognise": "recognize",
    "discretis": "discretiz",
    "generalis": "generaliz",
    "whilst": "while",
    "catalogue": "catalog",
    "licence": "license",
    "defence": "defense",
    "programme": "program",
    "judgement": "judgment",
    "grey": "gray",
}
WORD = re.compile(rf"\b\w*({'|'.join(BRITISH)})\w*", re.IGNORECASE)


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
