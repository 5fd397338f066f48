"""Folders, files and functions stay small enough to read: where one grows, it holds two ideas."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "dpassay"
MOST_LINES, MOST_OF_A_FUNCTION, MOST_ENTRIES = 500, 55, 14
TESTS = Path(__file__).parents[1]
# The list of all packages and that of their tests, records by mechanism, and what tests share: looked up by name.
LISTS = {PACKAGE, TESTS / "unit", PACKAGE / "packages" / "records", TESTS / "support"}
FOLDERS = [PACKAGE, TESTS, *(path for top in (PACKAGE, TESTS) for path in sorted(top.rglob("*")) if path.is_dir())]


@pytest.mark.parametrize("folder", [path for path in FOLDERS if path.name != "__pycache__"], ids=str)
def test_the_listing_of_a_folder_is_a_table_of_contents(folder: Path) -> None:
    entries = [path.name for path in folder.iterdir() if path.name != "__pycache__"]
    assert folder in LISTS or len(entries) <= MOST_ENTRIES, sorted(entries)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) <= MOST_LINES
    for node in functions(ast.parse(source)):  # without its list of options and its docstring
        body = node.body[1:] if ast.get_docstring(node) else node.body
        length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
        assert length <= MOST_OF_A_FUNCTION, f"{node.name} has {length} lines"


def functions(block: ast.AST) -> Iterator[ast.FunctionDef]:
    """All functions below a block. No expression has one, and most of a tree are expressions."""
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.FunctionDef):
            yield node
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from functions(node)


def test_class_names_are_unique() -> None:
    """A name that is searched for is found once."""
    where: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^ *class (\w+)[(:]", path.read_text(), re.MULTILINE):
            where.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}
