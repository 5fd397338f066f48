"""A measurement of how useful rewritten text is, and what it reveals: as a table, as data, and as a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dpassay.audit.testing.inference import log_limits
from dpassay.core.interval import outward_fixed
from dpassay.errors import escape_control_chars
from dpassay.report.utility_summary import in_words, summary_figure
from dpassay.reproduce.result import COLOURS, MARKS, as_csv, pictures
from dpassay.text.measurements import LEAST_SEEDS
from dpassay.text.rewriters.catalogue import Specification

if TYPE_CHECKING:
    from dpassay.text.measurements import MeasuredRow, Stated

NAMES = {"original": "original text", "commonest": "commonest label"}
NOTES = (
    "ε is what the authors state, true ε what holds for one text; ≠ marks a stated ε that does not hold. Words, enc.: "
    "accuracy in percent of classifiers that learned labels from the words of rewritten texts, or from an encoder's "
    "vectors of them; on original (o) and on rewritten (r) test texts. BLEU, chrF, cosine (of sentence vectors), same "
    "(unchanged texts), kept (words) and length compare rewritten test texts with the original ones; ppl is their "
    "perplexity. Found: how often an attacker names the true one of M candidates; most: how often any attacker can."
)
ONE_SEED = "±, or + and −: 95 % intervals (Clopper and Pearson) over test texts or guesses, for one seed."
FEW_SEEDS = "Warning: {} seeds are too few for an interval; take one, or at least {}."
SEEDS = (
    "±, or + and −: 95 % intervals (Student's t) over {} seeds, which cover the randomness of rewriting, not the "
    "choice of texts."
)
WIDEST = 80  # columns of a terminal that shows everything in two tables


@dataclass(frozen=True)
class TableColumn:
    """A column of the tables: its heading, and what it shows for a row."""

    head: str
    show: Callable[[MeasuredRow], str]


def _shown(metric: str, unit: float = 1, digits: int = 0) -> Callable[[MeasuredRow], str]:
    """A metric with its interval, which is rounded outward and stays within what the metric can be."""

    def show(row: MeasuredRow) -> str:
        one = row.estimates.get(metric)
        if one is None:
            return ""
        if one.low is None or one.high is None:
            return f"{unit * one.mean:.{digits}f}" if abs(one.mean) < 1e5 else f"{one.mean:.1e}"
        low, high = (Decimal(outward_fixed(end, way, digits, unit)) for end, way in ((one.low, -1), (one.high, 1)))
        mean = Decimal(f"{unit * one.mean:.{digits}f}")
        above, below = high - mean, mean - low
        return f"{mean}" + (f"±{above}" if above == below else f"+{above}−{below}")

    return show


def _epsilon(row: MeasuredRow) -> str:
    held = row.guarantee
    if held is None or math.isinf(held.epsilon):
        return ""
    return f"{held.epsilon if held.parameter is None else held.parameter:.4g}{'' if held.holds else '≠'}"


def _true(row: MeasuredRow) -> str:
    held = row.guarantee
    if held is None:
        return ""
    return "∞" if math.isinf(held.true_epsilon) else f"{held.true_epsilon:.4g}{'?' * held.declared}"


def _bound(row: MeasuredRow) -> str:
    bound = None if row.guesses is None else row.guesses.bound
    return "" if bound is None else f"{outward_fixed(bound, 1, 0, 100)}%"


WHO = (TableColumn("rewriter", lambda row: escape_control_chars(NAMES.get(row.rewriter, row.label))),)
EPSILONS = (TableColumn("ε", _epsilon), TableColumn("true ε", _true))
PRIVACY = (
    TableColumn("δ", lambda row: f"{row.guarantee.delta:.0e}" if row.guarantee and row.guarantee.delta else ""),
    TableColumn("neighbours", lambda row: escape_control_chars(row.guarantee.neighbours) if row.guarantee else ""),
    TableColumn("found %", _shown("attack", 100)),
    TableColumn("most", _bound),
    TableColumn("M", lambda row: str(row.guesses.candidates) if row.guesses else ""),
    TableColumn("attack", lambda row: row.guesses.how if row.guesses else ""),
)
UTILITY = (
    TableColumn("words o", _shown("accuracy_original", 100)),
    TableColumn("words r", _shown("accuracy_rewritten", 100)),
    TableColumn("enc. o", _shown("encoder_original", 100)),
    TableColumn("enc. r", _shown("encoder_rewritten", 100)),
)
CLOSENESS = (
    TableColumn("BLEU", _shown("bleu", digits=1)),
    TableColumn("chrF", _shown("chrf", digits=1)),
    TableColumn("cosine", _shown("similarity", digits=2)),
    TableColumn("ppl", _shown("perplexity")),
    TableColumn("same %", _shown("unchanged", 100)),
    TableColumn("kept %", _shown("words_kept", 100)),
    TableColumn("length", _shown("length", digits=2)),
)
EVERYTHING = (*WHO, *EPSILONS, *PRIVACY[:2], *UTILITY, *CLOSENESS, *PRIVACY[2:])


def notes_of(rows: Sequence[MeasuredRow]) -> str:
    """What the columns and the intervals mean."""
    seeds = max((row.seeds for row in rows), default=1)
    own = dict.fromkeys(row.label for row in rows if not row.reference and Specification.read(row.rewriter).own)
    declared = (
        f" ? The ε of {', '.join(map(escape_control_chars, own))} is what it declares, and was not checked."
        if own
        else ""
    )
    beaten = dict.fromkeys(row.label for row in rows if row.exceeded)
    if beaten:
        declared += (
            f" The attacker of {', '.join(map(escape_control_chars, beaten))} was right more often than that ε allows."
        )
    intervals = ONE_SEED if seeds == 1 else SEEDS.format(seeds)
    if 1 < seeds < LEAST_SEEDS:
        intervals = FEW_SEEDS.format(seeds, LEAST_SEEDS)
    return f"{NOTES} {intervals}{declared}"


def utility_tables(rows: Sequence[MeasuredRow], width: int) -> list[Table]:
    """One line per row, in one table if it fits the terminal's width, else in several."""
    from rich.console import Console

    console = Console(width=10_000)
    whole = _table(rows, EVERYTHING)
    if console.measure(whole).maximum <= width:
        tables = [whole]
    else:
        tables = []
        for part in (PRIVACY, UTILITY, CLOSENESS):
            columns: list[TableColumn] = []
            for column in part:
                if columns and console.measure(_table(rows, (*WHO, *EPSILONS, *columns, column))).maximum > width:
                    tables.append(_table(rows, (*WHO, *EPSILONS, *columns)))
                    columns = []
                columns.append(column)
            tables.append(_table(rows, (*WHO, *EPSILONS, *columns)))
    tables[-1].caption, tables[-1].caption_justify = notes_of(rows), "left"
    return tables


def cells_of(rows: Sequence[MeasuredRow], columns: Sequence[TableColumn] = EVERYTHING) -> list[list[str]]:
    """The rows as text under their headings; empty columns are left out."""
    shown = [[column.head, *(column.show(row) for row in rows)] for column in columns]
    kept = [column for i, column in enumerate(shown) if i == 0 or any(column[1:])]
    return [list(line) for line in zip(*kept, strict=True)]


def _table(rows: Sequence[MeasuredRow], columns: Sequence[TableColumn]) -> Table:
    heads, *lines = cells_of(rows, columns)
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for i, head in enumerate(heads):
        table.add_column(head, justify="right" if i else "left", no_wrap=i > 0, overflow="fold")
    for row, line in zip(rows, lines, strict=True):
        table.add_row(*(Text(cell, style=_style(row)) for cell in line))
    return table


def utility_csv(rows: Sequence[MeasuredRow]) -> str:
    """All numbers of all rows, with a header; fields that do not apply are empty."""
    return as_csv([row.to_dict() for row in rows])


# --- the figure ---

PANELS = (
    ("accuracy_original", "accuracy by words, original texts, %", 100),
    ("encoder_original", "accuracy by an encoder, original texts, %", 100),
    ("bleu", "BLEU", 1),
    ("similarity", "cosine of sentence vectors", 1),
    ("perplexity", "perplexity", 1),
    ("attack", "the attacker's success, %", 100),
)
DASHES = {"original": ":", "commonest": (0, (1, 3))}


def utility_figure(rows: Sequence[MeasuredRow], suffix: str) -> bytes:
    """Utility and the attacker's success over ε, as an SVG, PDF or PNG file."""
    number = len(_panels(rows))
    return pictures(lambda figure: draw(figure, rows), (7.2, 1.2 + 2.1 * math.ceil(number / 2)), (suffix,))[suffix]


def _panels(rows: Sequence[MeasuredRow]) -> list[tuple[str, str, int]]:
    measured = [panel for panel in PANELS if any(panel[0] in row.estimates for row in rows)]
    return measured or [PANELS[0]]


def draw(figure: Any, rows: Sequence[MeasuredRow]) -> None:
    """A line per rewriter at the ε that holds; dashed and hollow at the authors' ε, if that does not hold."""
    panels = _panels(rows)
    axes = figure.subplots(math.ceil(len(panels) / 2), min(2, len(panels)), squeeze=False)
    names = list(dict.fromkeys(row.rewriter for row in rows if not row.reference))
    for axis, (metric, title, unit) in zip(axes.flat, panels, strict=False):
        for number, name in enumerate(names):
            look = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKS[(number + number // len(COLOURS)) % len(MARKS)],
                "markersize": 4,
            }
            _lines(axis, [row for row in rows if row.rewriter == name], metric, unit, look)
        for row in rows:
            if row.reference and metric in row.estimates and metric not in ("bleu", "similarity"):
                level = unit * row.estimates[metric].mean
                axis.axhline(
                    level, linestyle=DASHES[row.rewriter], color="0.35", linewidth=1, label=NAMES[row.rewriter]
                )
        axis.set_xscale("log")
        if metric == "perplexity":
            axis.set_yscale("log")
        if metric == "attack":
            _draw_bound(axis, rows)
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("ε for one text")
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    known = {label: handle for axis in axes.flat for handle, label in zip(*_legend(axis), strict=True)}
    if known:
        figure.legend(known.values(), known.keys(), loc="outside upper center", ncols=3, fontsize=7)


def _legend(axis: Any) -> tuple[list[Any], list[str]]:
    handles, labels = axis.get_legend_handles_labels()
    return handles, labels


def _lines(axis: Any, rows: Sequence[MeasuredRow], metric: str, unit: int, look: dict[str, Any]) -> None:
    rows = [row for row in rows if metric in row.estimates]
    for held, at, more in (
        (True, "", {}),
        (False, ", as its authors state it", {"linestyle": "--", "markerfacecolor": "white"}),
    ):
        points = sorted((x, i) for i, row in enumerate(rows) if (x := _place(row.guarantee, held)) is not None)
        if points:
            chosen = [rows[i] for _, i in points]
            heights = [unit * row.estimates[metric].mean for row in chosen]
            label = _plain(chosen[0].label) + at
            ends = _bars(chosen, metric, unit)
            axis.errorbar([x for x, _ in points], heights, ends, capsize=2, label=label, **look, **more)
    for row in rows:
        if row.guarantee is not None and math.isinf(row.guarantee.epsilon):  # it has no ε: a level
            level = unit * row.estimates[metric].mean
            axis.axhline(level, color=look["color"], linewidth=1, linestyle="-.", label=f"{_plain(row.label)}, no ε")


def _plain(label: str) -> str:
    """A name as matplotlib draws it letter by letter: a dollar sign would begin a formula."""
    return escape_control_chars(label).replace("$", r"\$")


def _place(held: Stated | None, true: bool) -> float | None:
    """The position of a row: at the ε that holds, or at the stated one, if it differs; None if it has none."""
    if held is None or (not true and held.holds):
        return None
    found = held.true_epsilon if true else held.epsilon
    return found if 0 < found < math.inf else None


def _bars(rows: Sequence[MeasuredRow], metric: str, unit: int) -> list[list[float]] | None:
    """How far the interval reaches below and above; None if there is none."""
    found = [row.estimates[metric] for row in rows]
    if any(one.low is None or one.high is None for one in found):
        return None
    below = [max(0.0, unit * (one.mean - one.low)) for one in found if one.low is not None]
    return [below, [max(0.0, unit * (one.high - one.mean)) for one in found if one.high is not None]]


def _draw_bound(axis: Any, rows: Sequence[MeasuredRow]) -> None:
    """The bound on any attacker, over the ε that are shown."""
    sizes = {row.guesses.candidates for row in rows if row.guesses is not None}
    ends = [x for row in rows for true in (True, False) if (x := _place(row.guarantee, true)) is not None]
    if len(sizes) != 1 or not ends:
        return
    (number,) = sizes
    low, high = math.log(min([*ends, 0.1])), math.log(max([*ends, 100.0]))
    places = [math.exp(low + (high - low) * i / 200) for i in range(201)]
    heights = [100 * math.exp(log_limits(x, number)[0]) for x in places]
    axis.plot(places, heights, color="0.35", linewidth=1, label=f"no attacker is better (M = {number})")


def _style(row: MeasuredRow) -> str:
    if row.guarantee is None:
        return "dim"
    return "" if row.guarantee.holds else "red"


# --- the page ---


def page_values(rows: Sequence[MeasuredRow], about: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What templates/utility.html shows."""
    import base64

    return {
        "rows": cells_of(rows),
        "notes": notes_of(rows),
        "summary": base64.b64encode(summary_figure(rows, "svg")).decode(),
        "useful": in_words(rows),
        "picture": base64.b64encode(utility_figure(rows, "svg")).decode(),
        "about": list(about),
        "examples": list(_examples(rows)),
    }


def _examples(rows: Sequence[MeasuredRow]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for row in rows:
        if row.examples:
            true = _true(row)
            stated = _epsilon(row).removesuffix("≠")
            where = f", ε = {stated}" if stated else ""
            where += f", true ε = {true}" if true not in ("", stated) else ""
            yield f"{row.label}{where}", [("original", "rewritten"), *row.examples]
