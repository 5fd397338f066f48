"""Imports point one way, the package starts fast, and the verifier stands alone."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "dpassay"

# Each layer may import from the layers before it and, in the order given, from its own.
ORDER = [
    "errors",
    "compute",
    "verification",
    "theorems",
    "writing",
    "enclosure",
    "guarantee",
    "neighbours",
    "interval",
    "played",
    "pair",
    "sets",
    "region",
    "law",
    "drawing",
    "mechanism",
    "remote",
    "reach",
    "coordinates",
    "symbols",
    "stages",
    "noise",
    "pipeline",
    "parts",
    "mixture",
    "binomial",
    "lattice",
    "loss",
    "calibrate",
    "arithmetic",
    "expression",
    "subject",
    "statistics",
    "text",
    "outputs",
    "features",
    "attacks",
    "fitting",
    "learning",
    "inputs",
    "game",
    "playing",
    "offering",
    "searching",
    "curves",
    "profile",
    "discrete",
    "worst",
    "exact",
    "composition",
    "claim",
    "claims",
    "claimfile",
    "witness",
    "reason",
    "repair",
    "verdict",
    "record",
    "certificate",
    "journal",
    "sharing",
    "request",
    "lastbits",
    "sampled",
    "auditing",
    "asserting",
    "replaying",
    "both",
    "checking",
    "systems",
    "story",
    "figures",
    "report",
    "pytest_plugin",
    "cli_common",
    "cli_audit",
    "cli_gallery",
    "cli_reproduce",
    "cli_text",
    "cli_utility",
    "cli",
    "__main__",
]

LATER_ON_PURPOSE = {("verdict", "record"), ("verdict", "report")}  # how a verdict shows itself, imported when asked


def module_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    found = set()
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpassay":
            parts = (node.module or "").split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("dpassay.")}
    return found - {"__version__"}


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    here = module_of(path)
    for used in imports_of(path):
        allowed = ORDER.index(used) <= ORDER.index(here) or (here, used) in LATER_ON_PURPOSE
        assert allowed, f"{here} imports {used}, which comes after it"


def test_the_order_names_every_module() -> None:
    assert {module_of(path) for path in SOURCES} == set(ORDER)


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_verifier_imports_none_of_the_modules_it_checks() -> None:
    loaded = {name for name in modules_after("import dpassay.verification") if name.startswith("dpassay.")}
    own = {name for name in loaded if name.startswith("dpassay.verification")}
    assert loaded - own == {"dpassay.errors"}


def test_the_command_line_imports_nothing_heavy_until_asked() -> None:
    heavy = {"numpy", "scipy", "mpmath", "pydantic", "matplotlib", "rich", "dpassay.checking"}
    assert not heavy & modules_after("import dpassay.cli")


def test_a_check_does_not_import_scipy_stats_or_matplotlib() -> None:
    loaded = modules_after("import dpassay; dpassay.check('clip(l2, 1) | laplace(2)', epsilon=1, dim=32)")
    assert not {"scipy.stats", "matplotlib", "dpassay.auditing", "concurrent.futures"} & loaded
