"""A verdict in a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dpassay.core.interval import outward
from dpassay.core.numbers import as_written
from dpassay.errors import counted, escape_control_chars
from dpassay.evidence.sampled import SampledWitness
from dpassay.evidence.word_witness import WordWitness

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict

COLOURS = {"proven": "green", "refuted": "red", "open": "yellow"}
LONG_EXPONENT = re.compile(r"(?<=\d)(e[+-]?)0+(\d)")
SIGNS = {"proven": "✓", "refuted": "✗", "open": "?"}


def _published(name: str) -> bool:
    """Whether it is a published claim: 'dpassay show' reports who made it."""
    from dpassay.claims.registry import REGISTRY

    return name in REGISTRY


def shown(text: str, style: str = "") -> Text:
    """A text in a terminal: without control characters, and with exponents as people write them.

    >>> shown("delta 1e-06").plain
    'delta 1e-6'
    """
    return Text(LONG_EXPONENT.sub(r"\1\2", escape_control_chars(text)), style)


def render(verdict: Verdict, *, every_repair: bool = False) -> Any:
    """The verdict first, then its evidence."""
    colour = COLOURS[verdict.word]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column()
    at = "" if verdict.delta is None else f" at delta {as_written(verdict.guarantee.exact_delta)}"
    both = f"claimed {as_written(verdict.guarantee.value)}, true {verdict.value}{at}{verdict.guarantee.unit}"
    rows.add_row(verdict.guarantee.parameter, shown(both, colour))
    rows.add_row("claim", shown(f"{verdict.guarantee} for {verdict.subject}"))
    if verdict.source and not _published(verdict.name):
        rows.add_row("claimed by", shown(verdict.source.removeprefix("stated by ")))
    rows.add_row("between", Text(str(verdict.neighbours)))
    if verdict.delta is not None:
        rows.add_row("true delta", shown(f"{verdict.delta} at epsilon {as_written(verdict.guarantee.value)}"))
    if isinstance(verdict.witness, SampledWitness):
        from dpassay.audit.witness import table_rows, witness_rows

        for label, words in witness_rows(verdict.witness, verdict.guarantee):
            rows.add_row(label, shown(words))
        if verdict.witness.table:
            rows.add_row("", _counted(table_rows(verdict.witness)))
        rows.add_row("error", shown(_alpha_budget(verdict)))
    elif isinstance(verdict.witness, WordWitness):
        rows.add_row("witness", shown(verdict.witness.pair))
        rows.add_row("event", shown(verdict.witness.event))
    elif verdict.witness is not None:
        rows.add_row("witness", shown(verdict.witness.values))
        if verdict.witness.event:
            rows.add_row("event", shown(verdict.witness.event_text))
    if verdict.holds:
        rows.add_row("also holds" if verdict.proven else "what holds", shown(_holds(verdict)))
    repairs = verdict.repairs if every_repair else verdict.repairs[:1]
    for i, repair in enumerate(repairs):
        rows.add_row("repair" if i == 0 else "", shown(str(repair)))
    if more := len(verdict.repairs) - len(repairs):
        where = f"dpassay show {verdict.name}" if _published(verdict.name) else "verdict.repairs, --json, --html"
        rows.add_row("", Text(f"{more} more: {where}", style="dim"))
    for warning in verdict.warnings:
        rows.add_row("warning", shown(warning, "yellow"))
    rows.add_row("rests on", Text(", ".join(theorem.value for theorem in verdict.theorems), style="dim"))
    title = Text(f" {SIGNS[verdict.word]} {verdict.word.upper()} ", style=f"bold {colour}")
    reason = shown(verdict.reason)
    return Panel(Group(reason, Text(), rows), title=title, title_align="left", border_style=colour)


def _counted(cells: Sequence[Sequence[str]]) -> Table:
    """Counts as a table, with a line of names on top."""
    table = Table.grid(padding=(0, 3))
    for i in range(len(cells[0])):
        table.add_column(justify="right" if i else "left", no_wrap=True)
    for i, row in enumerate(cells):
        table.add_row(*row, style="" if i else "dim")
    return table


def _alpha_budget(verdict: Verdict) -> str:
    parts = ", ".join(f"{what} {alpha:.3g}" for what, alpha in verdict.alpha_budget)
    spent = f"probability at most {verdict.alpha:g} in all ({parts})"
    runs = f"{spent}; {counted(verdict.runs, 'run')} in all"
    return runs if verdict.seed is None else f"{runs}; {seed_words(verdict)}"


def seed_words(verdict: Verdict) -> str:
    """The seed, and whether it can replay the outputs."""
    if verdict.replays:
        return f"seed {verdict.seed}"
    return f"seed {verdict.seed}, which cannot replay the outputs, because the mechanism uses its own random source"


def _holds(verdict: Verdict) -> str:
    if all(math.isinf(held.upper) for _, held in verdict.holds):
        return "nothing: no finite epsilon, at any usual delta"
    rows = []
    for delta, held in verdict.holds:
        epsilon = outward(held.upper, 1, 6)
        rows.append(f"epsilon {epsilon} at delta {delta:.3g}" if delta else f"epsilon {epsilon} at delta 0")
    return "; ".join(rows)


def stage_table() -> Table:
    """The stages that a pipeline's text may name, by what they do."""
    from dpassay.pipeline.stages.base import GROUPS, STAGES

    table = Table("stage", "what it does", box=None, header_style="bold")
    least = 0
    for below, title in GROUPS:
        forms = [form for form in STAGES.values() if least <= form.syntax.order < below]
        least = below
        if forms:
            table.add_row()
            table.add_row(Text(title, style="italic"))
        for form in forms:
            table.add_row(form.syntax.usage, form.help)
    return table
