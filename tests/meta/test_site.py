"""The site: it is built without a warning, every page is in the sidebar, and it loads nothing from another host."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpassay

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "extensions"))

# Pages of each kind: formulas, docstrings, commands, a notebook, tables and pictures. `make docs` writes all of them.
WRITTEN = [
    "index.md",
    "concepts.md",
    "reference/python.md",
    "reference/command-line.md",
    "notebooks/review.ipynb",
    "proofs/gaussian.md",
    "claims/README.md",
]
LOADED = re.compile(
    r"""<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*?\b(?:src|href|data)=["']([^"']*)"""
)


# Both in one process: to start one and to import everything takes as long as to write the pages.
BUILD = """
import json, sys
from sphinx.cmd.build import main

sys.exit(max(main(arguments) for arguments in json.loads(sys.argv[1])))
"""


def sphinx(folder: Path, *builds: tuple[str, ...]) -> None:
    """A builder and the pages that it writes, or no page for all; in this order.

    A warning is an error: a link that leads nowhere, a page in no toctree, a docstring that cannot be read.
    """
    asked = [
        ["-q", "--keep-going", "-b", builder, "-d", str(folder / "doctrees"), str(DOCS), str(folder / builder)]
        + [str(DOCS / page) for page in pages]
        for builder, *pages in builds
    ]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", BUILD, json.dumps(asked)]
    result = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    said = [line for line in result.stderr.splitlines() if "the index will be incomplete" not in line]  # of the search
    assert (result.returncode, said) == (0, [])


def test_the_site(tmp_path: Path) -> None:
    """One test, so that the site is built once, however many processes run the tests."""
    # The first reads all pages and follows all links; to write all of them would take twice as long.
    sphinx(tmp_path, ("dummy",), ("html", *WRITTEN))
    site = tmp_path / "html"
    pages_are_written(site)
    nothing_is_loaded_from_another_host(site)
    formulas_are_drawn(site)
    theorems_lead_to_their_lines(site)
    every_public_name_is_in_the_reference(site)
    every_submodule_that_examples_import_is_in_the_reference(site)
    every_command_is_in_the_reference(site)


def pages_are_written(site: Path) -> None:
    for page in WRITTEN:
        text = (site / page).with_suffix(".html").read_text()
        assert "<h1>" in text, page
        assert "tutorial.html" in text, f"{page} has no sidebar"


def theorems_lead_to_their_lines(site: Path) -> None:
    links = re.findall(
        r'<a href="(coq/\w+\.html)#(L\d+)"><code>(\w+)</code>', (site / "proofs/gaussian.html").read_text()
    )
    assert "gaussian_refuted" in [name for *_, name in links]
    for page, line, name in links:
        lines = (site / "proofs" / page).read_text().splitlines()
        assert any(f'<span id="{line}">' in text and f" {name} " in text for text in lines), name


def nothing_is_loaded_from_another_host(site: Path) -> None:
    pages, styles = [*site.rglob("*.html")], [*site.rglob("*.css")]
    assert pages
    assert styles
    for page in pages:
        for target in LOADED.findall(page.read_text()):
            assert not target.startswith(("http:", "https:", "//")), f"{page.name} loads {target}"
    for style in styles:
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text()), style
    assert "mathjax.js" not in (site / "concepts.html").read_text().lower()


def test_the_pattern_finds_what_is_loaded() -> None:
    assert LOADED.findall('<script async src="https://a.example/x.js"></script>') == ["https://a.example/x.js"]
    assert LOADED.findall("<link rel='stylesheet' href='//a.example/x.css'>") == ["//a.example/x.css"]
    assert not LOADED.findall('<a href="https://a.example">a source</a>')


def formulas_are_drawn(site: Path) -> None:
    text = (site / "proofs" / "gaussian.html").read_text()
    assert text.count("<math") > 50
    assert "\\varepsilon" not in text


def every_public_name_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text()
    for name in dpassay.__all__:
        assert f"dpassay.{name}" in text, name


def every_submodule_that_examples_import_is_in_the_reference(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text()
    for page in [*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")]:
        for module, names in re.findall(
            r"^(?:>>> )?from (dpassay\.[\w.]+) import (.+)$", page.read_text(), re.MULTILINE
        ):
            for name in re.findall(r"\w+", names):
                if not module.startswith("dpassay.adapters"):  # adapters.md has them
                    assert f'id="{module}.{name}"' in text, f"{page.name} imports {name} from {module}"


def every_command_is_in_the_reference(site: Path) -> None:
    from typer.testing import CliRunner

    from dpassay.cli.main import app

    text = (site / "reference" / "command-line.html").read_text()
    listed = CliRunner().invoke(app, ["--help"]).output
    names = re.findall(r"^  ([a-z][a-z-]+)  ", listed, flags=re.MULTILINE)
    assert {"check", "audit", "verify", "gallery"} <= set(names)
    for name in names:
        assert f">dpassay {name}" in text, name
    for option in ("--pipeline", "--until-refuted", "--certificate", "--resume"):
        assert option in text, option


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"x_i^2", "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>"),
        (r"\sqrt n", "<msqrt><mi>n</mi></msqrt>"),
    ],
)
def test_formulas(formula: str, shown: str) -> None:
    from mathml import to_mathml

    assert shown in to_mathml(formula)


@pytest.mark.parametrize("formula", [r"\unknown", "{a", r"\left(x", r"\begin{cases} a", "x^{"])
def test_a_formula_that_is_not_understood_is_an_error(formula: str) -> None:
    from mathml import UnknownFormula, to_mathml

    with pytest.raises(UnknownFormula):
        to_mathml(formula)


def test_notebooks_have_no_outputs() -> None:
    notebooks = [*DOCS.glob("notebooks/*.ipynb")]
    assert len(notebooks) == 3
    for notebook in notebooks:
        for cell in json.loads(notebook.read_text())["cells"]:
            assert not cell.get("outputs"), notebook.name
            assert cell.get("execution_count") is None, notebook.name
