"""The story of a claim in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpassay.claims.registry import SYSTEMS
from dpassay.errors import harmless
from dpassay.report.claim_report import Cell, ClaimReport
from dpassay.report.gallery import true
from dpassay.report.terminal import SIGNS


def grid(story: ClaimReport) -> list[list[str]]:
    """The true ε at other parameters, a header row first; empty where the claim has no grid.

    >>> from dpassay.claims import find
    >>> grid(ClaimReport(find("adept")))[:2]
    [['epsilon', 'dim 2', 'dim 32', 'dim 1024'], ['0.1', '0.14142 ✗', '0.56569 ✗', '3.2 ✗']]
    """
    names = list(story.claim.grid)
    if not names:
        return []
    row, *columns = names
    across = columns[0] if columns else ""
    heads = [f"{across} {value}" for value in story.claim.grid[across]] if across else ["true ε"]
    rows: dict[str, list[str]] = {}
    for cell in story.cells:
        rows.setdefault(str(cell.changes[row]), []).append(_shown(cell))
    return [[row, *heads], *([value, *cells] for value, cells in rows.items())]


def _shown(cell: Cell) -> str:
    return f"{true(cell.epsilon, cell.least_delta)} {SIGNS[cell.word]}"


def remedies(story: ClaimReport) -> list[list[str]]:
    """The remedies with what they keep and what they cost, a header row first; empty where there are none."""
    if not story.remedies:
        return []
    rows = [["remedy", "keeps", "noise", "times the published"]]
    for remedy in story.remedies:
        noise = "–" if remedy.noise is None else str(remedy.noise)
        times = "–" if remedy.ratio is None else f"{remedy.ratio:.4g}"
        rows.append([remedy.claim.name, str(remedy.claim.guarantee), noise, times])
    return rows


def render(story: ClaimReport) -> Any:
    """The story, section by section."""
    claim, system = story.claim, story.system
    parts: list[Any] = [Text(harmless(claim.title or claim.name), style="bold"), Text(harmless(claim.source), "dim")]
    for paragraph in (system.what, system.reasoning) if system is not None else ():
        parts += [Text(), Text(paragraph)]
    parts += _section("the formula", Text(harmless(claim.pipeline)))
    parts += _section("what is claimed", Text(f"{claim.guarantee} between {story.verdict.neighbours}"))
    if claim.why:
        same = not claim.expected or story.verdict.word == claim.expected
        title = "why it holds" if story.verdict.word == "proven" else "why it fails"
        title = title if same else "what was said of the published parameters"
        parts += _section(title, Text(harmless(claim.why)))
    parts += [Text(), story.verdict]
    parts += _section("the true ε at other parameters (✓ the claim holds, ✗ it fails)", _table(grid(story)))
    for label, value in story.beside:
        parts += _section("shown beside", Text(f"{label}: {value:.6g}"))
    parts += _section("remedies, and what they cost in noise", _table(remedies(story)))
    return Group(*parts)


def _section(title: str, content: Any) -> list[Any]:
    return [] if content is None else [Text(), Text(title, style="bold"), Padding(content, (0, 0, 0, 2))]


def _table(rows: Sequence[Sequence[str]]) -> Table | None:
    if not rows:
        return None
    table = Table(box=None, header_style="", padding=(0, 2, 0, 0), pad_edge=False)
    for i, head in enumerate(rows[0]):
        table.add_column(head, style="bold" if i == 0 else "")
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


def listing() -> Table:
    """All claims, by system."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("claim", style="bold")
    table.add_column("what it is")
    for system in SYSTEMS.values():
        for claim in system.claims:
            table.add_row(Text(claim.name), Text(claim.title))
    return table
