"""The scan command: read a folder or a package, and report which of its guarantees are real."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.code.reports import Annotate, Sarif
from dpassay.cli.common import (
    AsJson,
    Page,
    check_writable,
    command_line,
    note,
    print_json,
    print_rich,
    progress_bar,
    write_page,
)
from dpassay.errors import InputError, counted, escape_control_chars

if TYPE_CHECKING:
    from dpassay.scan.findings import Scan

Where = Annotated[Path | None, typer.Argument(help="A folder, a .py file or a wheel.", metavar="PATH")]
Package = Annotated[
    str | None, typer.Option(help="A package: NAME if it is installed here, NAME==VERSION to fetch it with pip.")
]
Only = Annotated[list[str] | None, typer.Option(help="Report this rule alone; repeatable.")]
Baseline = Annotated[
    Path | None,
    typer.Option(help="A file of known findings, which are left out. Written by the first scan that names it."),
]
Run = Annotated[bool, typer.Option("--run", help="Also run each mechanism in a process with limits, and audit it.")]
Work = Annotated[
    Path, typer.Option(help="With --run: the folder for programs and results; an interrupted run continues.")
]
Stub = Annotated[
    str | None, typer.Option(help="Print the lines to complete for this mechanism, if it could not be run.")
]
Tests = Annotated[bool, typer.Option("--tests", help="Also read tests, whose fixed seeds are usually right.")]


def scan(
    path: Where = None,
    package: Package = None,
    only: Only = None,
    baseline: Baseline = None,
    run: Run = False,
    work: Work = Path("dpassay-scan"),
    stub: Stub = None,
    tests: Tests = False,
    as_json: AsJson = False,
    sarif: Sarif = None,
    html: Page = None,
    annotations: Annotate = False,
) -> None:
    """Find the mechanisms of a folder or a package, and the mistakes in them, by reading the code.

    Nothing that is scanned is executed without --run. Exit code 1 if a theorem refutes a guarantee given what the code
    says, or runs refute it, 0 otherwise.

    \b
    Examples:
      dpassay scan .
      dpassay scan --package flwr==1.42.0
      dpassay scan src --only seed-fixed --only shared-noise
      dpassay scan src/noise.py --run
      dpassay scan . --baseline known.json --sarif scan.sarif
    """
    check_writable(sarif, html, baseline)
    if path is not None and package is not None:
        raise InputError(f"specify either {path} or --package, not both")
    if path is None and package is None:
        raise InputError("name what to scan: 'dpassay scan .', a file or a wheel, or --package NAME==VERSION")
    from dpassay.scan.findings import baseline as baseline_text
    from dpassay.scan.session import scan as run_scan

    asked: dict[str, Any] = {
        "package": package,
        "only": only or (),
        "baseline": baseline,
        "tests": tests,
        "run": run,
        "work": work,
    }
    with progress_bar(1) as bar, redirect_stdout(sys.stderr):
        result = run_scan(path, progress=bar, **asked)
    if stub is not None:
        _stub(result, stub)
        return
    if baseline is not None and not baseline.exists() and not result.interrupted:
        write_page(baseline_text(result), baseline)
    _report(result, as_json, sarif, html, annotations)
    if result.interrupted:
        print("interrupted: only a part was scanned", file=sys.stderr)
        raise typer.Exit(130)
    raise typer.Exit(1 if result.refuted else 0)


def _stub(result: Scan, name: str) -> None:
    from dpassay.scan.running.programs import stub

    found = [one for one in result.mechanisms if one.name == name]
    if not found:
        known = ", ".join(one.name for one in result.mechanisms[:30]) or "none"
        raise InputError(f"no mechanism is called {name!r}; found were: {known}")
    print(stub(found[0].name, found[0].module), end="")


def _report(result: Scan, as_json: bool, sarif: Path | None, html: Path | None, annotations: bool) -> None:
    from dpassay.report.scan import page, results, summary, table

    if as_json:
        print_json(result.to_data())
    else:
        print_rich(table(result))
        print(escape_control_chars(summary(result)))
        for sentence in result.skipped[:20]:
            note(escape_control_chars(sentence))
        if len(result.skipped) > 20:
            note(f"{counted(len(result.skipped) - 20, 'more file was', 'more files were')} not read")
    if sarif is not None:
        from dpassay.report.ci.sarif import sarif as as_sarif

        write_page(as_sarif(results(result)), sarif)
    if annotations:
        from dpassay.report.ci.annotations import workflow_commands

        print("\n".join(workflow_commands(results(result))), file=sys.stderr)
    if html is not None:
        write_page(page(result, command_line()), html)
