"""δ as a function of ε, to be plotted: the worst known pair, and above it what theorems allow."""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.core.guarantee import ApproxDP, PureDP
from dpassay.core.numbers import number, up
from dpassay.errors import InputError
from dpassay.exact.pld.loss_masses import loss_masses
from dpassay.report.pages.meaning import shown
from dpassay.report.pages.typeset import typeset
from dpassay.report.pictures.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpassay.evidence.verdict import Verdict

COLUMN = (3.35, 3.0)  # inches: the column of a paper
LEAST = 1e-12  # δ below this is drawn at the bottom
DELTAS = (*(f"{first}e-{k}" for k in range(12, 0, -1) for first in (1, 2, 5)), "0.6", "0.7", "0.8", "0.9")


def new_figure(width: float = 6.4, height: float = 4.8) -> Figure:
    """An empty figure. It is made without pyplot, which would show or keep it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a figure needs matplotlib, which is not installed: pip install matplotlib") from None
    return Figure(figsize=(width, height), layout="constrained")


def plot_profile(verdict: Verdict) -> Figure:
    """The figure of `Verdict.plot`."""
    profile, guarantee = verdict.profile, verdict.guarantee
    if profile is None:
        raise InputError(
            "only the verdict on a pipeline can be plotted: samples say nothing about delta at other epsilons"
        )
    allowed = {up(profile.epsilon_above(number(delta))): float(delta) for delta in reversed(DELTAS)}  # the least δ last
    stated = isinstance(guarantee, PureDP | ApproxDP)  # others are not a point of this curve
    known = (*((guarantee.claimed, verdict.value.lower) if stated else ()), *allowed)
    top = 1.1 * max(epsilon for epsilon in known if math.isfinite(epsilon)) or 1.0
    import matplotlib as mpl

    figure = new_figure(*COLUMN)
    style: Any = LIGHT.style(8)
    with mpl.rc_context(style):
        _draw(figure, verdict, sorted(allowed.items()), top)
    return figure


def _draw(figure: Figure, verdict: Verdict, drawn: list[tuple[float, float]], top: float) -> None:
    from matplotlib.ticker import MaxNLocator

    profile, guarantee = verdict.profile, verdict.guarantee
    assert profile is not None
    axes = figure.subplots()
    if math.isinf(drawn[-1][0]):
        drawn = [(0.0, 1.0), (top, 1.0)]  # nothing is promised at any ε
    epsilons = np.linspace(0, top, 200)
    ends = {0.0, *(epsilon for epsilon, _ in drawn)}  # the line ends at the last
    bounded = sorted(ends | {float(epsilon) for epsilon in epsilons if epsilon < max(ends)})
    bound = [_between(drawn, epsilon) for epsilon in bounded]
    axes.plot(bounded, bound, "--", color=LIGHT.soft, linewidth=1.2, label="upper bound (theorems)")
    loss = profile.dominating_loss(guarantee)
    found = None if loss is None else loss_masses(loss)
    if found is not None:
        deltas = np.maximum(found.delta(epsilons, profile.mu), LEAST / 10)
        axes.plot(epsilons, deltas, color=LIGHT.of(verdict.word), linewidth=1.6, label="worst known pair (on a grid)")
    if isinstance(guarantee, PureDP | ApproxDP):
        mark: dict[str, Any] = {"markersize": 6, "markerfacecolor": LIGHT.paper, "markeredgecolor": LIGHT.ink}
        at = max(guarantee.delta, LEAST)
        axes.plot(guarantee.claimed, at, "o", **mark, clip_on=False, zorder=5, label=typeset(f"claimed: {guarantee}"))
    axes.set(yscale="log", ylim=(LEAST, 2), xlim=(0, top), xlabel="ε", ylabel="δ(ε)")
    axes.xaxis.set_major_formatter(lambda epsilon, _: f"{epsilon:,.6g}")
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.spines[["right", "top"]].set_visible(False)
    axes.grid(color=LIGHT.rule, linewidth=0.5)
    axes.set_title(_title(verdict), fontsize="medium")
    figure.legend(loc="outside lower center", ncols=1, frameon=False)


def _between(points: list[tuple[float, float]], epsilon: float) -> float:
    """A bound on δ at any ε, from bounds at some: δ is 1 at most, falls, and is a convex function of e^ε.

    >>> points = [(math.log(2), 0.5), (math.log(4), 0.1)]
    >>> round(_between(points, math.log(3)), 12), _between(points, 0), _between(points, 2)
    (0.3, 1.0, 0.1)
    """
    after = bisect.bisect_left(points, (epsilon, -1.0))
    if after == len(points):
        return points[-1][1]
    below, above = points[after - 1] if after else (0.0, 1.0), points[after]
    if below[0] == above[0]:
        return above[1]
    share = math.exp(epsilon - above[0]) * math.expm1(below[0] - epsilon) / math.expm1(below[0] - above[0])
    return below[1] + share * (above[1] - below[1])


def _title(verdict: Verdict) -> str:
    """The verdict and the true value, as one would write them above a figure."""
    guarantee, value = verdict.guarantee, verdict.value
    at = f" at δ = {guarantee.delta:g}" if guarantee.delta else guarantee.unit
    true = shown(value, guarantee.claimed)
    between = {"[": "in ", "a": ""}.get(true[0], "= ")
    letter = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}[guarantee.parameter]
    return typeset(f"{verdict.word.capitalize()}: true {letter} {between}{true}{at}")
