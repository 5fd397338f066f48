"""Released packages and the findings on them: a table for the terminal, Markdown, a page, and one record in full."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from dpassay.errors import escape_control_chars
from dpassay.packages.environment import program
from dpassay.packages.judging import PackageVerdict
from dpassay.packages.record import Record
from dpassay.report.claims.gallery import escaped, markdown_table
from dpassay.report.terminal import COLOURS, SIGNS

Judged = Mapping[str, tuple[Record, PackageVerdict | None]]

HEADINGS = ("mechanism", "claimed ε", "true ε", "verdict", "evidence")
NOTE = "*Written by `dpassay packages --pages docs/packages.md` from the records. Change the records, not this page.*"
INTRO = """\
Mechanisms of packages as they are on PyPI, each run in an environment of its own with the inputs and the guarantee that
its documentation names. A verdict is about this release, this mechanism and this pair of inputs.

| word | what it means here |
| --- | --- |
| ✗ refuted | the claim is wrong: by exact probabilities read from the code, or by runs |
| ✓ proven | the formula that was read from the code satisfies the claim, and no runs refute it |
| ? open | tried, and not refuted; this is not a proof |

Evidence: *formula* is the law that was read, judged exactly (`show` says where); *documentation* is a law that only the
documentation names, which proves nothing; *event* is what the outputs do, with
its exact probability for both inputs; *runs* are an [audit](audit.md) of the installed package. All audits together
refute a claim that holds with a probability of at most 0.001. Samplers are judged as if they drew real numbers;
what floating point reveals is another matter.

    dpassay packages                       this table
    dpassay packages show NAME             the subject, the claim, the evidence, how to repeat it
    dpassay packages --run NAME            make the environment with pip, run it, compare with what is recorded
    dpassay packages --run --record NAME   and record what was found"""


def cells(record: Record, found: PackageVerdict | None) -> tuple[str, str, str, str, str]:
    """The five columns of a record."""
    if found is None:
        return record.name, record.claimed, "", "not run yet", ""
    return record.name, record.claimed, found.shown, f"{SIGNS[found.word]} {found.word}", found.rests_on


def table(judged: Judged) -> Table:
    """All records, one line each; `show` reports what the verdict rests on."""
    rows = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name, style in zip(HEADINGS[:4], ("bold", "", "", ""), strict=True):
        rows.add_column(name, style=style, overflow="fold", no_wrap=name in ("mechanism", "verdict"), min_width=9)
    before = ""
    for record, found in judged.values():
        if before and record.package != before:
            rows.add_row()
        before = record.package
        name, claimed, true, word, _ = cells(record, found)
        style = COLOURS[found.word] if found else ""
        rows.add_row(Text(escape_control_chars(name)), escape_control_chars(claimed), true, Text(word, style=style))
    return rows


def summary(judged: Judged) -> str:
    """How many verdicts of each kind there are, and when they were found."""
    found = [one for _, one in judged.values() if one is not None]
    packages = len({record.package for record, _ in judged.values()})
    refuted = sum(one.word == "refuted" for one in found)
    many = ["" if one == 1 else "s" for one in (len(judged), packages)]
    line = f"{len(judged)} mechanism{many[0]} of {packages} package{many[1]}, {refuted} refuted."
    dates = sorted({one.date for one in found})
    when = "" if not dates else f" Recorded {dates[0]}." if len(dates) == 1 else f" Recorded {dates[0]} to {dates[-1]}."
    return f"{line}{when} 'dpassay packages show NAME' gives details; 'dpassay packages --run NAME' repeats the runs."


def as_data(judged: Judged) -> list[dict[str, Any]]:
    """The records with their findings, for --json; infinities are the string "inf"."""
    from dpassay.packages.judging import as_json

    return [
        {**record.model_dump(), "found": None if found is None else as_json(found)} for record, found in judged.values()
    ]


def render(record: Record, found: PackageVerdict | None) -> Any:
    """One record in full."""
    parts: list[Any] = [Text(f"{record.release}: {escape_control_chars(record.mechanism)}", style="bold")]
    for title, text in sections(record, found):
        parts += [Text(), Text(title, style="bold"), Padding(Text(escape_control_chars(text)), (0, 0, 0, 2))]
    if record.subject:
        code = Syntax(program(record), "python", theme="ansi_dark", background_color="default", word_wrap=True)
        parts += [Text(), Text("the program that is run in its environment", style="bold"), code]
    return Group(*parts)


def sections(record: Record, found: PackageVerdict | None) -> Iterator[tuple[str, str]]:
    """The sections about a record, each with a title."""
    yield "what is claimed", f"ε {record.claimed}, between {record.neighbours} ({record.source})"
    if found is not None:
        stated = f"{found.word}; ε {found.shown}; {found.rests_on}"
        error = "" if found.alpha is None else f", error probability {found.alpha:.3g}, seed {found.seed}"
        yield "what was found", f"{stated}{error}; {found.date}, Python {found.python}\n{found.reason}"
    yield "what it means", record.why
    if record.known:
        yield "who said so before", record.known
    if record.not_run:
        yield "why it is not run", record.not_run
    if record.formula:
        yield "the formula as coded", f"{record.formula}\n(read from {record.at})"
    if record.chances:
        chances = " and ".join(map(str, record.chances))
        yield "the event", f"{record.event}: its probabilities for the two inputs are {chances}"
    yield "the pair", "\n".join(map(repr, record.pair))
    yield "to repeat it", "\n".join(commands(record))


def commands(record: Record) -> list[str]:
    """The commands that recreate the environment and the verdict."""
    lines = []
    if record.subject and not record.not_run:
        lines = ["python -m venv env", shlex.join(["env/bin/pip", "install", *record.requirements])]
    return [*lines, f"dpassay packages --run {record.name}"]


def markdown(judged: Judged) -> str:
    """The page docs/packages.md."""
    parts = ["# Packages as released", NOTE, INTRO, summary(judged)]
    names: dict[str, list[tuple[Record, PackageVerdict | None]]] = {}
    for record, found in judged.values():
        names.setdefault(record.package, []).append((record, found))
    for package, own in names.items():
        rows = [[escaped(cell) for cell in cells(record, found)] for record, found in own]
        parts += [f"## {package}", markdown_table([HEADINGS, *rows])]
        parts += ["\n".join(_told(record) for record, _ in own)]
    return "\n\n".join(parts) + "\n"


def _told(record: Record) -> str:
    more = [f"Known: {record.known}."] if record.known else []
    more += [f"Not run: {record.not_run}."] if record.not_run else []
    said = escaped(" ".join([record.why, *more]))
    return f"- **{escaped(record.name)}**: `{record.mechanism}`, between {escaped(record.neighbours)}. {said}"
