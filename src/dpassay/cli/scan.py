"""The scan command: read a folder or a package, and report which of its guarantees are real."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from dpassay.cli.reports import Annotate, Sarif
from dpassay.errors import InputError, harmless

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
Tests = Annotated[bool, typer.Option("--tests", help="Also read tests, whose fixed seeds are usually right.")]


def scan(
    path: Where = None,
    package: Package = None,
    only: Only = None,
    baseline: Baseline = None,
    tests: Tests = False,
    as_json: AsJson = False,
    sarif: Sarif = None,
    html: Page = None,
    annotations: Annotate = False,
) -> None:
    """Find the mechanisms of a folder or a package, and the mistakes in them, by reading the code.

    Nothing that is scanned is executed. Exit code 1 if a theorem refutes a guarantee given what the code says, 0
    otherwise.

    \b
    Examples:
      dpassay scan .
      dpassay scan --package flwr==1.42.0
      dpassay scan src --only seed-fixed --only shared-noise
      dpassay scan . --baseline known.json --sarif scan.sarif
    """
    check_writable(sarif, html, baseline)
    if path is None and package is None:
        raise InputError("name what to scan: 'dpassay scan .', a file or a wheel, or --package NAME==VERSION")
    from dpassay.scan.findings import baseline as baseline_text
    from dpassay.scan.session import scan as run_scan

    with progress_bar(1) as bar:
        result = run_scan(path, package=package, only=only or (), baseline=baseline, tests=tests, progress=bar)
    if baseline is not None and not baseline.exists() and not result.interrupted:
        write_page(baseline_text(result), baseline)
    _report(result, as_json, sarif, html, annotations)
    if result.interrupted:
        print("interrupted: only a part was scanned", file=sys.stderr)
        raise typer.Exit(130)
    raise typer.Exit(1 if result.refuted else 0)


def _report(result: Scan, as_json: bool, sarif: Path | None, html: Path | None, annotations: bool) -> None:
    from dpassay.report.scan import page, results, summary, table

    if as_json:
        print_json(result.to_data())
    else:
        print_rich(table(result))
        print(harmless(summary(result)))
        for sentence in result.skipped[:20]:
            note(harmless(sentence))
        if len(result.skipped) > 20:
            note(f"and {len(result.skipped) - 20:,} more files were not read")
    if sarif is not None:
        from dpassay.report.sarif import sarif as as_sarif

        write_page(as_sarif(results(result)), sarif)
    if annotations:
        from dpassay.report.annotations import workflow_commands

        print("\n".join(workflow_commands(results(result))), file=sys.stderr)
    if html is not None:
        write_page(page(result, command_line()), html)
