"""The packages command: mechanisms of published packages, judged as they are released."""

from __future__ import annotations

import fnmatch
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
from dpassay.cli.completion import complete_package
from dpassay.errors import DpassayError, InputError, escape_control_chars

if TYPE_CHECKING:
    from dpassay.packages.judging import PackageVerdict
    from dpassay.packages.record import Record

Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Records, or patterns such as 'pure-ldp*'; 'show NAME' shows one in full.", autocompletion=complete_package
    ),
]
Run = Annotated[bool, typer.Option("--run", help="Create the environments with pip, run the mechanisms, and compare.")]
Keep = Annotated[bool, typer.Option("--record", help="With --run: record the results.")]
Envs = Annotated[Path | None, typer.Option(help="The folder for environments. Default: the user's cache.")]
Interpreter = Annotated[
    str | None, typer.Option("--python", metavar="PATH", help="The Python interpreter for new environments.")
]
From = Annotated[Path | None, typer.Option("--from", help="Use the .toml records in this folder instead.")]
Report = Annotated[
    str | None,
    typer.Option(
        "--report", help="Print a report to the maintainers about this record.", autocompletion=complete_package
    ),
]
Pages = Annotated[Path | None, typer.Option(help="Write the table as a Markdown page, with the reasons.")]


def packages(
    names: Names = None,
    run: Run = False,
    record: Keep = False,
    envs: Envs = None,
    python: Interpreter = None,
    folder: From = None,
    as_json: AsJson = False,
    html: Page = None,
    pages: Pages = None,
    report: Report = None,
) -> None:
    """Mechanisms of published packages, checked as released.

    Prints the recorded verdicts. With --run, each package is installed with pip into its own environment, and its
    mechanism is run there; the exit code is 0 if all results are as recorded, 1 if not, 4 if something could not be
    run.

    \b
    Examples:
      dpassay packages
      dpassay packages show pure-ldp-1.2.0-rappor
      dpassay packages --run 'pure-ldp*' --envs environments
      dpassay packages --report pure-ldp-1.2.0-rappor
    """
    from dpassay.packages.judging import RECORDED, current
    from dpassay.packages.record import FOLDER, read_records
    from dpassay.report.packages import as_data, markdown, render, summary, table

    if record and not run:
        raise InputError("--record keeps what --run finds: give both")
    if (envs is not None or python is not None) and not run:
        raise InputError("--envs and --python require --run")
    check_writable(html, pages)
    records = read_records(FOLDER if folder is None else folder)
    place = RECORDED if folder is None else folder / RECORDED.name
    if report is not None:
        _report(records, report, place)
        return
    wanted = names or []
    showing = wanted[:1] == ["show"]
    chosen = _chosen(records, wanted[showing:])
    before = current({one.name: one for one in chosen}, place)
    if showing and (run or len(chosen) != 1 or html is not None or pages is not None):
        raise InputError("show takes the name of one record, such as 'dpassay packages show opendp-laplace'")
    found, failed, stopped = _run(chosen, envs, python, place if record else None) if run else ({}, [], False)
    judged = {name: (one, found.get(name, old)) for name, (one, old) in before.items()}
    if as_json:
        print_json(as_data(judged))
    elif showing:
        print_rich(render(*judged[chosen[0].name]))
    else:
        print_rich(table(judged))
        print(summary(judged))
    if stopped:
        raise typer.Exit(130)
    if html is not None:
        from dpassay.report.pages.page import packages_page

        write_page(packages_page(judged, command_line()), html)
    if pages is not None:
        write_page(markdown(judged), pages)
    _alarm({name: old for name, (_, old) in before.items()}, found, failed)


def _report(records: dict[str, Record], name: str, place: Path) -> None:
    from dpassay.packages.judging import current
    from dpassay.report.maintainers import maintainers_report

    chosen = _chosen(records, [name])
    if len(chosen) != 1:
        raise InputError(f"--report takes the name of one record, and {name!r} names {len(chosen)}")
    record, found = current({chosen[0].name: chosen[0]}, place)[chosen[0].name]
    print(escape_control_chars(maintainers_report(record, found)), end="")


def _chosen(records: dict[str, Record], names: list[str]) -> list[Record]:
    for pattern in names:
        if not fnmatch.filter(records, pattern):
            from difflib import get_close_matches

            near = get_close_matches(pattern, records, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else "."
            raise InputError(f"no record is called {pattern!r}{hint} 'dpassay packages' lists them")
    if not names:
        return list(records.values())
    return [one for name, one in records.items() if any(fnmatch.fnmatchcase(name, pattern) for pattern in names)]


def _run(
    chosen: list[Record], envs: Path | None, python: str | None, place: Path | None
) -> tuple[dict[str, PackageVerdict], list[str], bool]:
    """The findings on each record up to Ctrl-C, what could not be run, and whether Ctrl-C was pressed.

    With a place, each is recorded as soon as it is found: an interruption loses only one of them.
    """
    from dpassay.packages.environment import default_folder
    from dpassay.packages.judging import judge_released, recorded, write_recorded

    found: dict[str, PackageVerdict] = {}
    failed: list[str] = []
    try:
        for record in chosen:
            note(f"{record.name}: {', '.join(record.requirements[:1])}")
            try:
                with progress_bar(record.runs) as bar:
                    found[record.name] = judge_released(record, envs or default_folder(), python, bar)
            except DpassayError as error:
                failed.append(record.name)
                print(escape_control_chars(f"{record.name} was not run: {error}"), file=sys.stderr)
                continue
            if place is not None:
                write_recorded({**recorded(place), record.name: found[record.name]}, place)
    except KeyboardInterrupt:
        print(f"interrupted: {len(found)} of {len(chosen)} were run", file=sys.stderr)
        return found, failed, True
    return found, failed, False


def _alarm(before: dict[str, PackageVerdict | None], found: dict[str, PackageVerdict], failed: list[str]) -> None:
    """Exit with 1 if a finding differs from the record, with 4 if something could not be run."""
    changed = [name for name, one in found.items() if (old := before[name]) is not None and old.word != one.word]
    if changed:
        print(f"not as recorded: {', '.join(changed)}", file=sys.stderr)
    if failed:
        raise typer.Exit(4)
    if changed:
        raise typer.Exit(1)
