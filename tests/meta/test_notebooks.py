"""The notebooks run from their first cell to their last, and show what their text says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
# In a process of its own, so that nothing of Jupyter's stays in this one.
RUN = """
import json, sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=300, resources={"metadata": {"path": sys.argv[2]}}).execute()
print(json.dumps(notebook))
"""

# What the cells must show, in this order: cards by their titles, and printed numbers that are known from formulas.
SHOWN = {
    "review": [
        "ADePT",
        "✗ REFUTED",
        "False True False",
        "4 dimensions: 2",  # √n
        "1024 dimensions: 32",
        "Privacy loss",
        "delta 0: epsilon 5.6569 holds",  # √32
        "✓ PROVEN",
        "refuted True",
    ],
    "audit": [
        "✗ REFUTED",
        "error probability: 0.001",
        "refuted ('loss-too-large',) epsilon as watched: 2",
        "open",
        "open",
        "✓ PROVEN",
        "at delta 1e-6",
        "Privacy loss",
        "100,000 runs: at most 9.6",  # ln(10⁵ / ln 1000)
    ],
    "rewriters": [
        "the, of, good",
        "✓ PROVEN",
        "✗ REFUTED",
        "CusText     4   inf",
        "✗ REFUTED",
        "zzyzx",
    ],
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.ipynb"))])
def test_it_runs_and_shows_what_its_text_says(name: str) -> None:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-c", RUN, str(FOLDER / f"{name}.ipynb"), str(FOLDER)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    outputs = [output for cell in json.loads(result.stdout)["cells"] for output in cell.get("outputs", [])]
    # What a cell prints may come in several pieces.
    shown = "".join("".join(output.get("text") or output["data"].get("text/html", "")) for output in outputs)
    rest = re.sub(r"<style>.*?</style>", "", shown, flags=re.DOTALL)
    for expected in SHOWN[name]:
        before, found, rest = rest.partition(expected)
        assert found, f"{expected!r} is not shown after {before[:200]!r}"
    assert sum("<svg" in output.get("data", {}).get("text/html", "") for output in outputs) >= 2
