"""δ as a function of ε, to be plotted: the worst known pair, and above it what theorems allow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpassay.core.guarantee import ApproxDP, PureDP
from dpassay.core.numbers import number, up
from dpassay.errors import InputError
from dpassay.exact.loss_masses import loss_masses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpassay.evidence.verdict import Verdict

LEAST = 1e-12  # δ below this is drawn at the bottom
DELTAS = (*(f"1e-{k}" for k in range(12, 0, -1)), "0.3", "0.6", "0.9")


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
    figure = new_figure()
    axes = figure.subplots()
    drawn = sorted(allowed.items())
    if math.isinf(drawn[-1][0]):
        drawn = [(0.0, 1.0), (top, 1.0)]  # nothing is promised at any ε
    axes.plot(*zip(*drawn, strict=True), "--", label="upper bound, by theorems")
    loss = profile.dominating_loss(guarantee)
    found = None if loss is None else loss_masses(loss)
    if found is not None:
        epsilons = np.linspace(0, top, 200)
        deltas = np.maximum(found.delta(epsilons, profile.mu), LEAST / 10)
        axes.plot(epsilons, deltas, label="worst known pair, from a grid")
    claimed = ([guarantee.claimed], [max(guarantee.delta, LEAST)]) if stated else ([], [])
    axes.plot(*claimed, "k*", markersize=12, clip_on=False, label=f"claimed: {guarantee}")
    axes.set(yscale="log", ylim=(LEAST, 2), xlim=(0, top), xlabel="ε", ylabel="δ(ε)")
    axes.set_title(f"{verdict.word}: {guarantee.truth} {verdict.value}", fontsize="medium")
    axes.legend()
    return figure
