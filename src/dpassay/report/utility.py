"""A measurement of what rewritten text is good for: as a table, as data, and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dpassay.errors import harmless
from dpassay.reproduce.result import COLOURS, MARKS, as_csv, pictures

if TYPE_CHECKING:
    from dpassay.text.utility import Row

NAMES = {"original": "original text", "none": "no noise", "commonest": "commonest label"}
NOTES = (
    "Accuracy, in percent with its 95 % interval, of a classifier of labels that has learnt from rewritten text: on "
    "original and on rewritten test texts. BLEU, the same (unchanged utterances) and words (kept) compare rewritten "
    "test texts with the original ones."
)
PANELS = (
    ("accuracy_original", "accuracy, original texts", 100),
    ("accuracy_rewritten", "accuracy, rewritten texts", 100),
    ("bleu", "BLEU", 1),
    ("unchanged", "unchanged utterances", 100),
)


def utility_table(rows: Sequence[Row]) -> Table:
    """One line per row; it fits into 80 columns."""
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False, caption=NOTES)
    table.caption_justify = "left"
    table.add_column("mechanism", no_wrap=True)
    for name in ("ε", "true ε", "original", "rewritten", "BLEU", "same", "words"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell, style=_style(row)) for cell in cells_of(row)))
    return table


def cells_of(row: Row) -> list[str]:
    """A row in words, one for each column.

    >>> from dpassay.text.utility import Row
    >>> cells_of(Row("l1", 10.0, 0.0, 10.0, 70, 40, 100, 12.34, 0.5, 0.75))
    ['l1', '10', '10', '70 (60-79)', '40 (30-50)', '12.3', '50%', '75%']
    """
    epsilons = ["" if value is None else f"{value:.6g}" for value in (row.epsilon, row.true_epsilon)]
    accuracies = [
        f"{100 * share:.0f} ({100 * low:.0f}-{100 * high:.0f})"
        for share, (low, high) in (
            (row.accuracy_original, row.interval_original),
            (row.accuracy_rewritten, row.interval_rewritten),
        )
    ]
    close = "" if row.bleu is None else f"{row.bleu:.1f}"
    shares = ["" if value is None else f"{100 * value:.0f}%" for value in (row.unchanged, row.words_kept)]
    return [harmless(NAMES.get(row.mechanism, row.mechanism)), *epsilons, *accuracies, close, *shares]


def utility_csv(rows: Sequence[Row]) -> str:
    """All numbers of all rows, with a header; what does not apply is left empty."""
    return as_csv([row.to_dict() for row in rows])


def utility_figure(rows: Sequence[Row], suffix: str) -> bytes:
    """Accuracies, BLEU and unchanged utterances over ε, as an SVG, PDF or PNG file."""
    return pictures(lambda figure: draw(figure, rows), (7.2, 5.2), (suffix,))[suffix]


def draw(figure: Any, rows: Sequence[Row]) -> None:
    """One line per mechanism at the ε that it keeps; dashed and hollow at the ε that it claims, where that is less."""
    axes = figure.subplots(2, 2, sharex=True)
    names = list(dict.fromkeys(row.mechanism for row in rows if row.epsilon is not None))
    for axis, (value, label, unit) in zip(axes.flat, PANELS, strict=True):
        for number, name in enumerate(names):
            chosen = [row for row in rows if row.mechanism == name]
            _line(axis, chosen, value, unit, COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)])
        for reference, dash in (("original", ":"), ("none", (0, (6, 2, 1, 2))), ("commonest", (0, (1, 3)))):
            level = next((getattr(row, value) for row in rows if row.mechanism == reference), None)
            if level is not None and (value.startswith("accuracy") or reference == "none"):
                axis.axhline(unit * level, linestyle=dash, color="0.35", linewidth=1, label=NAMES[reference])
        axis.set_xscale("log")
        lowest = min((unit * (getattr(row, value) or 0) for row in rows if row.bleu is not None), default=0)
        axis.set_ylim(max(0, lowest - 7) - 3, 103)
        axis.set_title(label + ("" if value == "bleu" else ", %"), fontsize=9)
    for axis in axes[1]:
        axis.set_xlabel("ε")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8)


def _line(axis: Any, rows: Sequence[Row], value: str, unit: int, colour: str, mark: str) -> None:
    rows = sorted(rows, key=lambda row: row.epsilon or 0)
    heights = [unit * getattr(row, value) for row in rows]
    look = {"color": colour, "marker": mark, "markersize": 4}
    false = any(row.true_epsilon != row.epsilon for row in rows)
    name = rows[0].mechanism
    shown = f"{name}, true ε" if false else name
    axis.errorbar([r.true_epsilon for r in rows], heights, _bars(rows, value, unit), capsize=2, label=shown, **look)
    if false:
        claimed = [row.epsilon for row in rows]
        axis.plot(claimed, heights, linestyle="--", markerfacecolor="white", label=f"{name}, claimed ε", **look)


def _bars(rows: Sequence[Row], value: str, unit: int) -> list[list[float]] | None:
    """How far the 95 % interval of an accuracy reaches below and above it; the other values have none."""
    if not value.startswith("accuracy"):
        return None
    intervals = [getattr(row, value.replace("accuracy", "interval")) for row in rows]
    found = [getattr(row, value) for row in rows]
    below = [unit * (share - low) for share, (low, _) in zip(found, intervals, strict=True)]
    return [below, [unit * (high - share) for share, (_, high) in zip(found, intervals, strict=True)]]


def _style(row: Row) -> str:
    if row.epsilon is None:
        return "dim"
    return "red" if row.true_epsilon != row.epsilon else ""
