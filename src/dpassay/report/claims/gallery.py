"""Many verdicts at once: tables for the terminal and for papers, and a figure."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from dpassay.claims.claim import Claim
from dpassay.claims.registry import REGISTRY, SYSTEMS
from dpassay.core.guarantee import GDP, ZCDP, ApproxDP, MetricDP, PureDP, RenyiDP
from dpassay.core.interval import Interval, grouped, nearest, outward
from dpassay.errors import InputError, escape_control_chars
from dpassay.evidence.verdict import Verdict
from dpassay.report.claims.claim_report import TrialResult
from dpassay.report.pages.typeset import typeset
from dpassay.report.pictures.palette import DARK, LIGHT, Palette
from dpassay.report.terminal import COLOURS, SIGNS
from dpassay.reproduce.result import pictures

Verdicts = Sequence[tuple[Claim, Verdict]]


def short(interval: Interval, *borders: float) -> str:
    """An interval in short form: one number if both ends agree to four digits, or to three.

    >>> short(Interval(5.656854249, 5.65685425)), short(Interval(4.4, 4.6)), short(Interval(math.inf, math.inf))
    ('5.657', '[4.400, 4.600]', '∞')
    >>> short(Interval(2.1544, 2.1547))
    '2.15'
    """
    if math.isinf(interval.lower):
        return "∞"
    if number := nearest(interval, *borders):
        return number
    for digits in (4, 3):
        if grouped(interval.lower, digits) == (number := grouped(interval.upper, digits)):
            return number
    return f"[{outward(interval.lower, -1, 4)}, {outward(interval.upper, 1, 4)}]".replace("inf", "∞")


def claimed(verdict: Verdict) -> str:
    """The claimed guarantee in short form."""
    guarantee = verdict.guarantee
    if not isinstance(guarantee, PureDP | ApproxDP):
        return _STATED[type(guarantee)].format(guarantee)
    delta = re.sub(r"e([+-])0*", r"e\1", f"{guarantee.delta:.3g}")  # 1e-6, not 1e-06
    epsilon = grouped(guarantee.claimed, 5)
    return epsilon if not guarantee.delta else f"{epsilon}, δ {delta}"


_STATED = {
    MetricDP: "{0.claimed:.5g} per {0.metric}",
    RenyiDP: "{0.claimed:.5g}, order {0.order:.5g}",
    ZCDP: "ρ {0.claimed:.5g}",
    GDP: "μ {0.claimed:.5g}",
}


def true(epsilon: Interval, least_delta: float, *borders: float) -> str:
    """The true ε in short form; if it is infinite, with the δ that every finite ε needs.

    >>> true(Interval(math.inf, math.inf), 0.6321205), true(Interval(1, 1), 0)
    ('∞, δ 0.632', '1')
    """
    if math.isinf(epsilon.lower) and 0 < least_delta < 1:
        return f"∞, δ {outward(least_delta, -1, 3)}"
    return short(epsilon, *borders)


def _true(verdict: Verdict) -> str:
    return true(verdict.value, verdict.least_delta, verdict.guarantee.claimed)


def cells(claim: Claim, verdict: Verdict) -> tuple[str, str, str, str, str]:
    """The five columns of a verdict: claim, claimed, true, verdict, why."""
    word = f"{SIGNS[verdict.word]} {verdict.word}"
    as_told = verdict.word == claim.expected or not claim.expected
    brief = escape_control_chars(claim.brief or claim.why or verdict.reason) if as_told else "not as published"
    return escape_control_chars(claim.name), claimed(verdict), _true(verdict), word, brief


def by_system(verdicts: Verdicts) -> list[tuple[str, list[tuple[Claim, Verdict]]]]:
    """The verdicts by published system: systems with a refuted claim come first, and so do the refuted claims of each.

    Claims of no published system are together under no title.
    """
    titles = {claim.name: system.title for system in SYSTEMS.values() for claim in system.claims}
    systems: dict[str, list[tuple[Claim, Verdict]]] = {}
    for claim, verdict in verdicts:
        published = REGISTRY.get(claim.name)
        own = published is None or published.pipeline != claim.pipeline
        systems.setdefault("" if own else titles[claim.name], []).append((claim, verdict))
    for found in systems.values():
        found.sort(key=lambda each: _ORDER.index(each[1].word))
    return sorted(systems.items(), key=lambda each: each[1][0][1].word != "refuted")


_ORDER = ("refuted", "open", "proven")
HEADINGS = ("claim", "claimed ε", "true ε", "verdict", "why")


def table(verdicts: Verdicts) -> Table:
    """The verdicts in 80 columns, one line per claim as far as their texts allow."""
    rows = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name, style in zip(HEADINGS, ("bold", "", "", "", "dim"), strict=True):
        rows.add_column(name, style=style, overflow="fold", no_wrap=name in ("verdict", "true ε"))
    for i, (_, found) in enumerate(by_system(verdicts)):
        if i:
            rows.add_row()
        for claim, verdict in found:
            name, guarantee, epsilon, word, why = cells(claim, verdict)
            rows.add_row(Text(name), guarantee, epsilon, Text(word, style=COLOURS[verdict.word]), Text(why))
    return rows


def summary(verdicts: Verdicts) -> str:
    """A line below the table: how many, and what an infinite ε with a δ means."""
    refuted = sum(verdict.word == "refuted" for _, verdict in verdicts)
    line = f"{len(verdicts)} claim{'' if len(verdicts) == 1 else 's'}, {refuted} refuted."
    if any(math.isinf(v.value.lower) and 0 < v.least_delta < 1 for _, v in verdicts):
        line += " “∞, δ 0.8” means that no finite ε holds for any δ below 0.8."
    return line


def tried_table(tried: Sequence[tuple[Claim, TrialResult]]) -> Table:
    """Exact and sampled verdicts side by side."""
    rows = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("claim, in small", "claimed ε", "true ε", "exact", "sampled ε ≥", "runs", "agree"):
        rows.add_column(name, justify="right" if name in ("sampled ε ≥", "runs") else "left")
    for claim, both in tried:
        rows.add_row(
            Text(escape_control_chars(claim.name)),
            claimed(both.exact),
            true(both.exact.value, both.exact.least_delta),
            Text(both.exact.word, style=COLOURS[both.exact.word]),
            outward(both.sampled.value.lower, -1, 4),
            f"{both.sampled.runs:,}",
            Text(both.agreement, style="bold red" if both.contradictory else ""),
        )
    return rows


def markdown(verdicts: Verdicts) -> str:
    """The verdicts as a Markdown table."""
    rows = [HEADINGS, *(cells(claim, verdict) for _, found in by_system(verdicts) for claim, verdict in found)]
    return markdown_table([[escaped(typeset(cell)) for cell in row] for row in rows])


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of Markdown as a table; the first is its header."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]))


# Markdown and LaTeX are escaped by hand: none of our dependencies does it.
def escaped(text: str) -> str:
    """A text that Markdown shows unchanged."""
    for letter in "\\`*_{}[]<>#|":
        text = text.replace(letter, f"\\{letter}")
    return " ".join(text.split())


_LATEX = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "ε": r"$\varepsilon$"}
_LATEX |= {"δ": r"$\delta$", "∞": r"$\infty$", "✓": r"$\checkmark$", "✗": r"$\times$"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "[": "{[}"}
_LATEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"}


def latex(verdicts: Verdicts) -> str:
    """The verdicts as a LaTeX table; it needs the packages booktabs and amssymb."""
    lines = [r"\begin{tabular}{lllll}", r"\toprule", _latex_row(HEADINGS), r"\midrule"]
    for i, (_, found) in enumerate(by_system(verdicts)):
        lines += [r"\addlinespace"] if i else []
        lines += [_latex_row(cells(claim, verdict)) for claim, verdict in found]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _latex_row(row: Sequence[str]) -> str:
    return " & ".join("".join(_LATEX.get(letter, letter) for letter in " ".join(cell.split())) for cell in row) + r" \\"


def check_suffix(path: Path) -> None:
    """Refuse an unsupported file type for a figure.

    >>> check_suffix(Path("x.gif"))
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: a figure is written as .svg, .pdf or .png, got x.gif
    """
    if path.suffix.lower() not in (".svg", ".pdf", ".png"):
        raise InputError(f"a figure is written as .svg, .pdf or .png, got {path.name}")


def draw(verdicts: Verdicts, path: Path, dark: bool = False) -> None:
    """Claimed against true ε, one line per claim, on a logarithmic axis; as wide as the text of a paper."""
    import matplotlib as mpl

    check_suffix(path)
    suffix = path.suffix.lower().removeprefix(".")
    shown = [(c, v) for c, v in reversed(list(verdicts)) if v.guarantee.claimed > 0]
    size, palette = (6.3, 0.22 * len(shown) + 1.0), DARK if dark else LIGHT
    style: Any = palette.style(8)

    def drawing(figure: Any) -> None:
        with mpl.rc_context(style):
            figure.set_facecolor(palette.paper)
            _draw(figure, shown, palette)

    path.write_bytes(pictures(drawing, size, (suffix,))[suffix])


def _draw(figure: Any, shown: Verdicts, palette: Palette) -> None:
    finite = [v.value.upper for _, v in shown if math.isfinite(v.value.upper)]
    right = 20 * max([1.0, *finite, *(v.guarantee.claimed for _, v in shown)])
    axis = figure.subplots()
    for row, (_, verdict) in enumerate(shown):
        _row(axis, row, verdict, right, palette)
    axis.set_xscale("log")
    axis.set_xlim(right=right * 6)
    axis.set_yticks(range(len(shown)), [escape_control_chars(c.title or c.name) for c, _ in shown], parse_math=False)
    axis.set_xlabel("ε (logarithmic scale; smaller is more private)")
    axis.spines[["left", "right", "top"]].set_visible(False)
    axis.grid(axis="x", color=palette.rule, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(-0.7, len(shown) - 0.3)
    _legend(figure, palette)


# Color-blind readers can distinguish the verdicts, also by their shapes.
_MARKS = {"proven": "o", "refuted": "X", "open": "D"}
_CLAIMED: dict[str, Any] = {"marker": "o", "markersize": 7, "linestyle": "none"}


def _row(axis: Any, row: int, verdict: Verdict, right: float, palette: Palette) -> None:
    colour = palette.of(verdict.word)
    claimed_at = verdict.guarantee.claimed
    true_at = min(verdict.value.upper, right)
    mark = ">" if math.isinf(verdict.value.upper) else _MARKS[verdict.word]
    axis.plot([claimed_at, true_at], [row, row], color=colour, linewidth=1.6, zorder=1)
    axis.plot(claimed_at, row, **_CLAIMED, markerfacecolor=palette.paper, markeredgecolor=palette.ink, zorder=2)
    axis.plot(true_at, row, mark, color=colour, markersize=5, zorder=3)
    label = typeset(short(verdict.value))
    place = (max(true_at, claimed_at), row)
    axis.annotate(label, place, (7, 0), textcoords="offset points", va="center", color=colour)


def _legend(figure: Any, palette: Palette) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], **_CLAIMED, markerfacecolor=palette.paper, markeredgecolor=palette.ink)]
    names = ["claimed ε"]
    for word, name in (("proven", "true ε, claim holds"), ("refuted", "true ε, claim fails")):
        marks.append(Line2D([], [], marker=_MARKS[word], color=palette.of(word), markersize=5))
        names.append(name)
    figure.legend(marks, names, loc="outside upper center", ncols=3, frameon=False, labelcolor=palette.ink)
