"""A claim's report: in a terminal, and as Markdown pages. docs/claims is generated from these, never by hand."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpassay.claims.claim import System
from dpassay.claims.registry import SYSTEMS
from dpassay.errors import escape_control_chars
from dpassay.exact.witness import Witness
from dpassay.report.claims.claim_report import Cell, ClaimReport
from dpassay.report.claims.gallery import markdown, markdown_table, true
from dpassay.report.pages.typeset import typeset
from dpassay.report.terminal import SIGNS, shown
from dpassay.report.terminal import render as render_verdict

NOTE = "*Written by `dpassay gallery --pages docs/claims` from the registry. Change the registry, not this page.*"


def grid(report: ClaimReport) -> list[list[str]]:
    """The true ε at other parameters, with a header row; empty if the claim has no grid.

    >>> from dpassay.claims.registry import find
    >>> grid(ClaimReport(find("adept")))[:2]
    [['epsilon', 'dim 2', 'dim 32', 'dim 1024'], ['0.1', '0.1414 ✗', '0.5657 ✗', '3.2 ✗']]
    """
    names = list(report.claim.grid)
    if not names:
        return []
    row, *columns = names
    across = columns[0] if columns else ""
    heads = [f"{across} {value}" for value in report.claim.grid[across]] if across else ["true ε"]
    rows: dict[str, list[str]] = {}
    for cell in report.cells:
        rows.setdefault(str(cell.changes[row]), []).append(_shown(cell))
    return [[row, *heads], *([value, *cells] for value, cells in rows.items())]


def _shown(cell: Cell) -> str:
    return f"{true(cell.epsilon, cell.least_delta)} {SIGNS[cell.word]}"


def remedies(report: ClaimReport) -> list[list[str]]:
    """The remedies with their guarantee and their cost, with a header row; empty if there are none."""
    if not report.remedies:
        return []
    rows = [["repair", "satisfies", "noise", "noise relative to published"]]
    for remedy in report.remedies:
        noise = "–" if remedy.noise is None else str(remedy.noise)
        times = "–" if remedy.ratio is None else f"{remedy.ratio:.4g}"
        rows.append([remedy.claim.name, str(remedy.claim.guarantee), noise, times])
    return rows


def render(report: ClaimReport) -> Any:
    """The report, section by section."""
    claim, system = report.claim, report.system
    parts: list[Any] = [
        Text(escape_control_chars(claim.title or claim.name), style="bold"),
        Text(escape_control_chars(claim.source), "dim"),
    ]
    trust = {"privacy unit": claim.privacy_unit, "deployment model": claim.deployment_model}
    parts += [Text(escape_control_chars(f"{what}: {said}"), "dim") for what, said in trust.items() if said]
    for paragraph in (system.what, system.reasoning) if system is not None else ():
        parts += [Text(), Text(paragraph)]
    parts += _section("the formula", Text(escape_control_chars(claim.pipeline)))
    parts += _section("what is claimed", Text(f"{claim.guarantee} between {report.verdict.neighbours}"))
    if claim.why:
        same = not claim.expected or report.verdict.word == claim.expected
        title = "why it holds" if report.verdict.word == "proven" else "why it fails"
        title = title if same else "what was said about the published parameters"
        parts += _section(title, Text(escape_control_chars(claim.why)))
    parts += [Text(), render_verdict(report.verdict, every_repair=True)]
    parts += _section("the true ε at other parameters (✓ the claim holds, ✗ it fails)", _table(grid(report)))
    for label, value in report.beside:
        parts += _section("for comparison", Text(f"{label}: {value:.6g}"))
    parts += _section("repairs, and the noise that each one needs", _table(remedies(report)))
    return Group(*parts)


def _section(title: str, content: Any) -> list[Any]:
    return [] if content is None else [Text(), Text(title, style="bold"), Padding(content, (0, 0, 0, 2))]


def _table(rows: Sequence[Sequence[str]]) -> Table | None:
    if not rows:
        return None
    table = Table(box=None, header_style="", padding=(0, 2, 0, 0), pad_edge=False)
    for i, head in enumerate(rows[0]):
        table.add_column(
            head, style="bold" if i == 0 else "", no_wrap=i < len(rows[0]) - 1
        )  # the last heading may wrap
    for row in rows[1:]:
        table.add_row(*map(shown, row))
    return table


def _typeset(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[typeset(cell) for cell in row] for row in rows]


def listing() -> Table:
    """All claims, by system."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("claim", style="bold")
    table.add_column("what it is")
    for system in SYSTEMS.values():
        for claim in system.claims:
            table.add_row(Text(claim.name), Text(claim.title))
    return table


def write_pages(folder: Path) -> int:
    """Write an index and a page per system; return the number of pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in all_pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    return len(SYSTEMS) + 1


def all_pages() -> dict[str, str]:
    """Every page by its file name."""
    reports = {name: [ClaimReport(claim) for claim in system.claims] for name, system in SYSTEMS.items()}
    pages = {f"{name}.md": "\n\n".join(_page(SYSTEMS[name], own)) + "\n" for name, own in reports.items()}
    return {"README.md": "\n\n".join(_index(reports)) + "\n", **pages}


def _index(reports: dict[str, list[ClaimReport]]) -> Iterator[str]:
    yield "# Published claims"
    yield NOTE
    more = "Run `dpassay gallery` for this table and `dpassay show NAME` for details."
    yield f"Claimed and true guarantees of each system. {more}"
    for name, own in reports.items():
        yield f"## [{SYSTEMS[name].title}]({name}.md)"
        yield markdown([(report.claim, report.verdict) for report in own])


def _page(system: System, reports: Sequence[ClaimReport]) -> Iterator[str]:
    yield f"# {system.title}"
    yield NOTE
    yield typeset(system.what)
    yield typeset(system.reasoning)
    yield markdown([(report.claim, report.verdict) for report in reports])
    for report in reports:
        yield from _chapter(report)


def _chapter(report: ClaimReport) -> Iterator[str]:
    claim, verdict = report.claim, report.verdict
    yield f"## {claim.title}"
    yield f"Claimed: {typeset(str(verdict.guarantee))} between {verdict.neighbours}. Source: {claim.source}."
    yield f"    {claim.pipeline}"
    yield typeset(claim.why)
    yield f"**{verdict.word.capitalize()}.** {typeset(verdict.reason)}"
    if isinstance(verdict.witness, Witness):
        event = f" Event: {verdict.witness.event_text}." if verdict.witness.event else ""
        yield typeset(f"Counterexample: {verdict.witness.values}.{event}")
    for warning in verdict.warnings:
        yield f"> Warning: {typeset(warning)}"
    if rows := grid(report):
        yield "The true ε at other parameters (✓ the claim holds, ✗ it fails):"
        yield markdown_table(_typeset(rows))
    for label, value in report.beside:
        yield typeset(f"For comparison, {label}: {value:.6g}.")
    if rows := remedies(report):
        yield "Repairs, and the noise that each one needs:"
        yield markdown_table(_typeset(rows))
    proofs = ", ".join(f"[{theorem.value}](../proofs/{theorem.value}.md)" for theorem in verdict.theorems)
    yield f"To check it: `dpassay check {claim.name}`. Rests on {proofs}."
