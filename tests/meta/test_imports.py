"""Imports point one way, the package starts fast, and the verifier stands alone."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "dpassay"

# Each package may import from those before it in this list, and from itself.
ORDER = [
    "errors",
    "values",
    "core",
    "compute",
    "pipeline",
    "exact",
    "evidence",
    "words",
    "claims",
    "adapters",
    "audit",
    "trace",
    "api",
    "packages",
    "scan",
    "text",
    "training",
    "testing",
    "reproduce",
    "report",
    "server",
    "cli",
    "__main__",
]

# How verdicts, losses and claims show themselves, imported when asked.
LATER_ON_PURPOSE = {("evidence", "report"), ("exact", "report"), ("claims", "report")}
# A verdict writes its own certificate, and an output is taken apart by two files that call each other.
TOGETHER = {("evidence.verdict", "evidence.certificate"), ("audit.outputs.leaves", "audit.outputs.leaf_types")}


SOURCES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"
}


def package_of(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def statements(block: ast.AST, inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """All statements below a block but those for type checkers alone, and whether each is inside a function."""
    if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
        return
    inside = inside or isinstance(block, ast.FunctionDef)
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):  # imports are in no expression
            yield node, inside
            yield from statements(node, inside)


@cache
def imports_of(module: str) -> tuple[set[str], set[str]]:
    """The modules of the package that a module imports: all of them, and those it imports outside functions."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for node, inside in statements(ast.parse(SOURCES[module].read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpassay":
            base = (node.module or "").removeprefix("dpassay").removeprefix(".")
            for alias in node.names:
                named = f"{base}.{alias.name}".removeprefix(".")
                found[inside].add(named if named in SOURCES else base)
        if isinstance(node, ast.Import):
            found[inside] |= {a.name.removeprefix("dpassay.") for a in node.names if a.name.startswith("dpassay.")}
    return (found[True] | found[False]) - {"", module}, found[False] - {"", module}


@pytest.mark.parametrize("module", SOURCES)
def test_packages_import_those_before_them(module: str) -> None:
    here = package_of(module)
    for used in map(package_of, imports_of(module)[0]):
        allowed = ORDER.index(used) <= ORDER.index(here) or (here, used) in LATER_ON_PURPOSE
        assert allowed, f"{here} imports {used}, which comes after it"


def test_the_order_names_every_package() -> None:
    assert {package_of(module) for module in SOURCES} == set(ORDER)


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Nor inside functions, but for those that are named above."""

    def on_purpose(module: str, used: str) -> bool:
        return (package_of(module), package_of(used)) in LATER_ON_PURPOSE or (module, used) in TOGETHER

    graph = {module: {used for used in imports_of(module)[0] if not on_purpose(module, used)} for module in SOURCES}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_verifier_imports_none_of_the_modules_it_checks() -> None:
    loaded = {name for name in modules_after("import dpassay.evidence.verifier") if name.startswith("dpassay.")}
    own = {name for name in loaded if name.startswith("dpassay.evidence.verifier")}
    assert loaded - own == {"dpassay.errors", "dpassay.values", "dpassay.evidence"}  # no mathematics


def test_the_command_line_imports_nothing_heavy_until_asked() -> None:
    heavy = {"numpy", "scipy", "mpmath", "pydantic", "matplotlib", "rich", "httpx", "jinja2", "dpassay.api"}
    assert not heavy & modules_after("import dpassay.cli.main")


def test_an_audit_does_not_import_scipy_stats() -> None:
    # It takes a second, half of what starting an audit or one of its workers would take.
    assert not {"scipy.stats", "matplotlib"} & modules_after("import dpassay.audit.runner, dpassay.compute.executors")


def test_a_check_does_not_import_scipy_stats_or_matplotlib() -> None:
    loaded = modules_after("import dpassay; dpassay.check('clip(l2, 1) | laplace(2)', epsilon=1, dim=32)")
    assert not {"scipy.stats", "matplotlib", "dpassay.audit.runner", "concurrent.futures"} & loaded
