"""Many verdicts at once: a table for the terminal, a figure, a plain page."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from dpassay.claim import Claim
from dpassay.errors import InputError
from dpassay.interval import Interval, outward
from dpassay.report.terminal import COLOURS, SIGNS
from dpassay.verdict import Verdict

Verdicts = Sequence[tuple[Claim, Verdict]]


def short(interval: Interval) -> str:
    """An interval in few letters: one number where both ends agree in five digits.

    >>> short(Interval(5.656854249, 5.65685425)), short(Interval(4.4, 4.6)), short(Interval(math.inf, math.inf))
    ('5.6569', '[4.400, 4.600]', '∞')
    """
    if math.isinf(interval.lower):
        return "∞"
    narrow = interval.width <= 1e-9 * interval.upper < math.inf
    if f"{interval.lower:.5g}" == f"{interval.upper:.5g}" or narrow:
        return f"{(interval.lower + interval.upper) / 2:.5g}"
    return f"[{outward(interval.lower, -1, 4)}, {outward(interval.upper, 1, 4)}]".replace("inf", "∞")


def claimed(verdict: Verdict) -> str:
    """The claimed guarantee in few letters."""
    promise = verdict.guarantee
    return f"{promise.epsilon:.5g}" if not promise.delta else f"{promise.epsilon:.5g}, δ {promise.delta:.0e}"


def table(verdicts: Verdicts) -> Table:
    """The verdicts as a table of 80 columns."""
    rows = Table(box=None, header_style="bold", padding=(0, 1), pad_edge=False)
    for name, style in (("claim", "bold"), ("claimed ε", ""), ("true ε", ""), ("verdict", ""), ("why", "dim")):
        rows.add_column(name, style=style, overflow="fold", no_wrap=name in ("verdict", "true ε"))
    for claim, verdict in verdicts:
        word = Text(f"{SIGNS[verdict.word]} {verdict.word}", style=COLOURS[verdict.word])
        rows.add_row(Text(claim.name), claimed(verdict), short(verdict.epsilon), word, Text(claim.why))
    return rows


def check_suffix(path: Path) -> None:
    """Refuse a figure that is none of .svg, .pdf and .png."""
    if path.suffix not in (".svg", ".pdf", ".png"):
        raise InputError(f"a figure is written as .svg, .pdf or .png, got {path.name}")


def draw(verdicts: Verdicts, path: Path) -> None:
    """Claimed against true ε, one line a claim, on a logarithmic axis."""
    check_suffix(path)
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = [(c, v) for c, v in reversed(list(verdicts)) if v.guarantee.epsilon > 0]
    finite = [v.epsilon.upper for _, v in shown if math.isfinite(v.epsilon.upper)]
    right = 20 * max([1.0, *finite, *(v.guarantee.epsilon for _, v in shown)])
    style: Any = {"svg.hashsalt": "dpassay", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}
    with mpl.rc_context(style):
        figure, axis = plt.subplots(figsize=(7.6, 0.36 * len(shown) + 1.4), layout="constrained")
        for row, (_, verdict) in enumerate(shown):
            _row(axis, row, verdict, right)
        axis.set_xscale("log")
        axis.set_xlim(right=right * 6)
        axis.set_yticks(range(len(shown)), [claim.title or claim.name for claim, _ in shown])
        axis.set_xlabel("privacy loss ε (logarithmic; smaller is more private)")
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(-0.7, len(shown) - 0.3)
        _legend(axis)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


# Blue and vermilion of Okabe and Ito: told apart by colour-blind readers, and by their shapes.
_TRUE = {"proven": "#0072B2", "refuted": "#D55E00", "open": "#777777"}
_MARKS = {"proven": "o", "refuted": "X", "open": "D"}


def _row(axis: Any, row: int, verdict: Verdict, right: float) -> None:
    colour = _TRUE[verdict.word]
    claimed_at = verdict.guarantee.epsilon
    true_at = min(verdict.epsilon.upper, right)
    mark = ">" if math.isinf(verdict.epsilon.upper) else _MARKS[verdict.word]
    axis.plot([claimed_at, true_at], [row, row], color=colour, linewidth=2, zorder=1)
    axis.plot(claimed_at, row, "o", markersize=9, markerfacecolor="white", markeredgecolor="black", zorder=2)
    axis.plot(true_at, row, mark, color=colour, markersize=7, zorder=3)
    label = short(verdict.epsilon)
    place = (max(true_at, claimed_at), row)
    axis.annotate(label, place, (8, 0), textcoords="offset points", va="center", color=colour)


def _legend(axis: Any) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], marker="o", color="none", markerfacecolor="white", markeredgecolor="black", markersize=9)]
    names = ["claimed"]
    for word, name in (("proven", "true: the claim holds"), ("refuted", "true: the claim fails")):
        marks.append(Line2D([], [], marker=_MARKS[word], color=_TRUE[word], markersize=6))
        names.append(name)
    axis.legend(marks, names, loc="upper center", bbox_to_anchor=(0.45, 1.1), ncols=3, frameon=False)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>dpassay gallery</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #8884; }}
.proven {{ color: #0072B2; }} .refuted {{ color: #D55E00; font-weight: bold; }} .open {{ color: #777; }}
code {{ font-size: .85em; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #ddd; }} }}
</style></head><body>
<h1>Is that ε real?</h1>
<p>{count} published claims, {refuted} of them refuted. The true ε is what is shown, or lies between the two ends.</p>
<table><tr><th>claim</th><th>claimed ε</th><th>true ε</th><th>verdict</th><th>why</th></tr>
{rows}
</table></body></html>
"""


def page(verdicts: Verdicts, path: Path) -> None:
    """The verdicts as a plain page; all text is escaped."""
    rows = "\n".join(_html_row(claim, verdict) for claim, verdict in verdicts)
    refuted = sum(verdict.word == "refuted" for _, verdict in verdicts)
    path.write_text(_PAGE.format(count=len(verdicts), refuted=refuted, rows=rows), encoding="utf-8")


def _html_row(claim: Claim, verdict: Verdict) -> str:
    def small(text: str) -> str:
        return f"<br><small>{html.escape(text)}</small>"

    name = f"<b>{html.escape(claim.title or claim.name)}</b><br><code>{html.escape(claim.pipeline)}</code>"
    cells = [
        name + small(claim.source),
        html.escape(claimed(verdict)),
        html.escape(short(verdict.epsilon)),
        f'<span class="{verdict.word}">{SIGNS[verdict.word]} {verdict.word}</span>',
        html.escape(claim.why) + small(verdict.reason),
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
