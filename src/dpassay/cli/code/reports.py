"""The options that write results for other tools: SARIF, JUnit and GitHub's annotations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpassay.cli.common import check_writable, note
from dpassay.errors import ClaimFileError, DpassayError, MechanismError

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict
    from dpassay.report.ci.results import ReportedResult, ResultLocation

Sarif = Annotated[Path | None, typer.Option("--sarif", help="Write findings as SARIF 2.1.0, for code scanning.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Write results as JUnit XML, one test case per subject.")]
Annotate = Annotated[
    bool, typer.Option("--annotations", help="Print findings on stderr as GitHub workflow commands (::error …).")
]


@dataclass(frozen=True)
class Reports:
    """The requested reports, if any."""

    sarif: Path | None
    junit: Path | None
    annotations: bool

    def __post_init__(self) -> None:
        check_writable(self.sarif, self.junit)

    @property
    def wanted(self) -> bool:
        return self.annotations or self.sarif is not None or self.junit is not None

    def write(self, results: Sequence[ReportedResult]) -> None:
        """Write the files, and print the annotations."""
        from dpassay.core.files import write_whole

        if self.sarif is not None:
            from dpassay.report.ci.sarif import left_out, sarif

            write_whole(self.sarif, sarif(results))
            note(f"{self.sarif} written")
            if missing := len(left_out(results)):
                what = "1 finding has" if missing == 1 else f"{missing:,} findings have"
                note(f"{what} no file, which GitHub requires of every result: {self.sarif} only notes it; see --junit")
        if self.junit is not None:
            from dpassay.report.ci.junit import junit

            write_whole(self.junit, junit(results))
            note(f"{self.junit} written")
        if self.annotations:
            from dpassay.report.ci.annotations import workflow_commands

            for line in workflow_commands(results):
                print(line, file=sys.stderr)

    def write_verdict(self, verdict: Verdict, name: str | None, python: str | None, **how: Any) -> None:
        """Write the verdict on a claim, or on a Python object; see `of_verdict`."""
        if self.wanted:
            from dpassay.report.ci.results import of_verdict

            self.write([of_verdict(verdict, place_of(name, python), **how)])

    @contextmanager
    def of_failures(self, subject: str, python: str | None = None) -> Iterator[None]:
        """Report a mechanism that failed, or a claim's file that cannot be used, before the command ends with it."""
        try:
            yield
        except (MechanismError, ClaimFileError) as error:
            if self.wanted:
                from dpassay.report.ci.results import of_failure

                self.write(of_failure(error, subject, place_of(python=python)))
            raise


def place_of(name: str | None = None, python: str | None = None) -> ResultLocation:
    """Where a subject is: a claim's line in its file, or the line that defines a Python object; nowhere if unknown."""
    from dpassay.report.ci.results import ResultLocation

    if name is not None and name.endswith(".toml"):
        from dpassay.claims.toml import line_of_claim

        return ResultLocation(name, line_of_claim(name))
    if python is None:
        return ResultLocation()
    import inspect

    from dpassay.audit.mechanisms.targets import load_object

    try:
        found = inspect.unwrap(load_object(python))
        code = found if inspect.isroutine(found) or inspect.isclass(found) else type(found)
        return ResultLocation(inspect.getsourcefile(code) or "", inspect.getsourcelines(code)[1])
    except (DpassayError, OSError, TypeError):
        return ResultLocation()
