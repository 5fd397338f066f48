"""The program that runs a mechanism: what a person would write by hand, with limits of time and memory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dpassay.core.files import write_whole
from dpassay.packages.environment import HEAD, TAIL
from dpassay.scan.running.arguments import ArgumentCall, InputKind

MEMORY = 4 * 2**30  # bytes that a mechanism may use
SECONDS = 120  # of CPU time for one program
PROBE = 40.0  # seconds to import it and run it once
LIMITS = f"""\
import resource
import sys

import numpy as np

resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
"""
PROBING = """

if __name__ == "__main__":
    import json
    output = mechanism(json.loads(sys.argv[1]))
    print(json.dumps("works" if output is not None else "None"), file=sys.__stdout__)
"""


def subject(call: ArgumentCall, form: InputKind, root: Path | None, fresh: bool = False) -> str:
    """The lines that define `mechanism(x)`; with `fresh`, each call has an object of its own."""
    where = f"sys.path.insert(0, {str(root)!r})\n" if root is not None else ""
    setup = f"{call.setup}\n" if call.setup and not fresh else ""
    first = f"    {call.setup}\n" if call.setup and fresh else ""
    body = f"def mechanism(x):\n{first}    x = {form.code}\n    return {call.call}\n"
    return f"{where}{call.imports}\n\n{setup}\n\n{body}"


def stub(name: str, module: str) -> str:
    """The lines that a person completes where arguments could not be made."""
    imported = name.partition(".")[0]
    return f'''\
"""Complete this as subject.py, then: dpassay audit --python subject:mechanism --pair '[X, Y]' --epsilon 1"""

from {module} import {imported}


def mechanism(x):
    return {name}(x, ...)  # give it what it needs; x is the input that the claim protects
'''


def works(text: str, form: InputKind, python: Sequence[str], folder: Path, name: str) -> str:
    """Run a subject once in a process of its own; empty if it works, otherwise why not."""
    path = folder / f"{name}-probe.py"
    write_whole(path, f"{LIMITS}{text}{PROBING}")
    try:
        command = [*python, str(path), json.dumps(form.first)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=PROBE)
    except subprocess.TimeoutExpired:
        return f"it did not finish within {PROBE:g} s"
    finally:
        path.unlink(missing_ok=True)
    if done.returncode == 0 and '"works"' in done.stdout:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode == 0:
        return "it returns nothing, or exits when it is imported"
    return lines[-1][:160] if lines else f"it ended with code {done.returncode} and said nothing"


def write_program(text: str, folder: Path, name: str) -> Path:
    """The program that answers an audit."""
    path = folder / f"{name}.py"
    write_whole(path, f"{HEAD}{LIMITS}{text}{TAIL}")
    return path
