"""Utility against the true ε, all rewriters in one picture, and from which ε on each of them is useful."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpassay.errors import escape_control_chars
from dpassay.reproduce.result import COLOURS, MARKS, pictures

if TYPE_CHECKING:
    from dpassay.text.measurements import MeasuredRow

# The first of these that was measured is the utility: how well labels can be learned from rewritten texts.
UTILITIES = (
    ("encoder_original", "accuracy by an encoder, %", 100),
    ("accuracy_original", "accuracy by words, %", 100),
    ("similarity", "cosine of sentence vectors", 1),
    ("bleu", "BLEU", 1),
)
REFERENCES = {"original": ("original text", ":"), "commonest": ("commonest label", (0, (1, 3)))}


def utility_of(rows: Sequence[MeasuredRow]) -> tuple[str, str, int]:
    """The metric that is shown, its name on the axis, and its unit."""
    rewriters = [row for row in rows if not row.reference]
    return next((one for one in UTILITIES if any(one[0] in row.estimates for row in rewriters)), UTILITIES[0])


def useful_from(rows: Sequence[MeasuredRow]) -> dict[str, float | None]:
    """For each rewriter, the least measured true ε from which on it is useful; None if it never is.

    It is useful if its accuracy is above the middle between the commonest label's and that of the original texts, at
    the lower end of its interval, there and at every larger ε that was measured. Without these two there is no answer.
    With too few seeds for an interval the mean decides.
    """
    metric = utility_of(rows)[0]
    levels = _levels(rows, metric)
    if not {"original", "commonest"} <= levels.keys():
        return {}
    middle = (levels["original"] + levels["commonest"]) / 2
    found: dict[str, float | None] = {}
    for name in dict.fromkeys(row.rewriter for row in rows if not row.reference):
        own = _at_true(rows, name)
        label: str = ""
        least: float | None = None
        for place, row in reversed(own):
            estimate = row.estimates.get(metric)
            label = row.label
            low = None if estimate is None else estimate.mean if estimate.low is None else estimate.low
            if low is None or low <= middle:
                break
            least = place
        if own:
            found[label] = least
    return found


def in_words(rows: Sequence[MeasuredRow]) -> str:
    """That in a sentence; nothing if there is no answer."""
    if not (found := useful_from(rows)):
        return ""
    parts = [
        f"{escape_control_chars(name)}: {'none' if least is None else f'{least:,.4g}'}" for name, least in found.items()
    ]
    metric = utility_of(rows)[0]
    known = [row.estimates[metric] for row in rows if not row.reference and metric in row.estimates]
    what = "mean accuracy, with too few seeds for an interval," if any(e.low is None for e in known) else ""
    return (
        f"The least true ε, of those measured, from which on each is useful: {'; '.join(parts)}. Useful means that "
        f"{'its ' + what if what else 'the lower end of its accuracy'} is above the middle between the commonest label "
        "and the original texts."
    )


def summary_figure(rows: Sequence[MeasuredRow], suffix: str) -> bytes:
    """One picture of all rewriters, as an SVG, PDF or PNG file."""
    return pictures(lambda figure: draw(figure, rows), (7.2, 4.4), (suffix,))[suffix]


def draw(figure: Any, rows: Sequence[MeasuredRow]) -> None:
    """A line per rewriter, at the ε that holds for one text: what its authors state is not shown."""
    metric, title, unit = utility_of(rows)
    axis = figure.subplots()
    names = list(dict.fromkeys(row.rewriter for row in rows if not row.reference))
    for number, name in enumerate(names):
        points = [(place, row) for place, row in _at_true(rows, name) if metric in row.estimates]
        if points:
            axis.plot(
                [place for place, _ in points],
                [unit * row.estimates[metric].mean for _, row in points],
                color=COLOURS[number % len(COLOURS)],
                marker=MARKS[(number + number // len(COLOURS)) % len(MARKS)],
                markersize=4,
                label=escape_control_chars(points[0][1].label).replace("$", r"\$"),
            )
    for name, level in _levels(rows, metric).items():
        label, dashes = REFERENCES[name]
        axis.axhline(unit * level, linestyle=dashes, color="0.35", linewidth=1, label=label)
    axis.set_xscale("log")
    axis.set_xlabel("true ε for one text")
    axis.set_ylabel(title)
    if axis.get_legend_handles_labels()[0]:
        figure.legend(loc="outside right upper", fontsize=7)


def _levels(rows: Sequence[MeasuredRow], metric: str) -> dict[str, float]:
    """What rewriters are compared with; the accuracy of the commonest label is the same for every classifier."""
    if not metric.endswith("_original"):
        return {}
    means = {row.rewriter: (row.mean(metric), row.mean("accuracy_original")) for row in rows if row.reference}
    nothing = (None, None)
    found = {"original": means.get("original", nothing)[0], "commonest": means.get("commonest", nothing)[1]}
    return {name: mean for name, mean in found.items() if mean is not None}


def _at_true(rows: Sequence[MeasuredRow], name: str) -> list[tuple[float, MeasuredRow]]:
    """The rows of a rewriter that have a finite true ε, with it, in its order."""
    found = [(place, row) for row in rows if row.rewriter == name and (place := _place(row)) is not None]
    return sorted(found, key=lambda one: one[0])


def _place(row: MeasuredRow) -> float | None:
    found = None if row.guarantee is None else row.guarantee.true_epsilon
    return found if found is not None and 0 < found < math.inf else None
