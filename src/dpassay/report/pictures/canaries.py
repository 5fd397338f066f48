"""How well the canaries of a training run can be distinguished, plotted against what a guarantee allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpassay.core.guarantee import GDP, Guarantee
from dpassay.errors import InputError
from dpassay.report.pictures.plot import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpassay.training.canaries.scores import CanaryScores

Rates = NDArray[np.float64]


def roc(scores: CanaryScores) -> tuple[Rates, Rates]:
    """False and true positive rates of naming as included all canaries whose score reaches a threshold, for each one.

    >>> from dpassay.training.canaries.scores import CanaryScores
    >>> [rates.tolist() for rates in roc(CanaryScores([3, 2, 1, 0], [True, False, True, False]))]
    [[0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0]]
    """
    included = scores.by_score()
    if included.all() or not included.any():
        raise InputError("all canaries were in, or all were out: there is nothing to distinguish")
    right, wrong = (np.concatenate([[0], np.cumsum(side)]) for side in (included, ~included))
    return wrong / wrong[-1], right / right[-1]


def allowed(guarantee: Guarantee, rates: Rates) -> Rates:
    """The largest true positive rate that a guarantee allows at each false positive rate, on average over runs.

    >>> from dpassay.core.guarantee import PureDP
    >>> allowed(PureDP(0), np.array([0.25, 0.5])).tolist()
    [0.25, 0.5]
    """
    if isinstance(guarantee, GDP):
        from scipy.special import ndtr, ndtri

        return np.asarray(ndtr(ndtri(rates) + guarantee.mu))
    factor = np.exp(np.float64(guarantee.claimed))
    ends = guarantee.delta + factor * rates, 1 - (1 - guarantee.delta - rates) / factor
    return np.asarray(np.minimum(np.minimum(*ends), 1.0))


def exposure_figure(scores: CanaryScores) -> Figure:
    """How many included canaries are exposed by how many bits, and what chance alone would give."""
    from dpassay.training.canaries.sentences import exposure

    bits = exposure(scores.score, scores.included)
    edges = np.arange(0.0, np.ceil(np.log2(int((~scores.included).sum()) + 1)) + 1)
    figure = new_figure(6, 4)
    axes = figure.subplots()
    axes.hist(bits, bins=list(edges), label="canaries that are in", alpha=0.7)
    chance = len(bits) * (2.0 ** -edges[:-1] - 2.0 ** -edges[1:])
    axes.step(edges, [*chance, chance[-1]], where="post", color="black", label="by chance")
    axes.set(xlabel="exposure in bits", ylabel="canaries")
    axes.legend()
    return figure


def roc_figure(scores: CanaryScores, guarantee: Guarantee) -> Figure:
    """The ROC curve on logarithmic axes, with the region that the guarantee allows."""
    wrong, right = roc(scores)
    least = 0.5 / scores.canaries
    grid = np.geomspace(least, 1, 400)
    figure = new_figure(5, 5)
    axes = figure.subplots()
    axes.fill_between(
        grid, least, np.maximum(allowed(guarantee, grid), least), alpha=0.2, label=f"allowed by {guarantee}"
    )
    axes.plot(grid, grid, ":", color="gray", label="guessing blindly")
    axes.step(np.maximum(wrong, least), np.maximum(right, least), where="post", label="the canaries")
    axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1))
    axes.set(xlabel="false positive rate", ylabel="true positive rate")
    axes.set_title(f"{scores.canaries:,} canaries, {scores.runs} run{'s' * (scores.runs > 1)}", loc="left")
    axes.legend(loc="lower right")
    return figure
