"""Benchmarks are run by hand, so what they import is looked up here: a name that has moved fails at once."""

import ast
import importlib
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    for node in imports:
        if node.module.split(".")[0] != "dpassay" or node.module.endswith("triton_kernels"):  # needs a GPU
            continue
        module = importlib.import_module(node.module)
        for name in (alias.name for alias in node.names):
            assert hasattr(module, name) or importlib.import_module(f"{node.module}.{name}"), (path.name, name)
