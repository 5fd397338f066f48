"""What `Verdict.plot` and the report's page draw of a loss is what is true of it."""

from __future__ import annotations

import math
import re
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from dpassay import Verdict, check
from dpassay.claims.registry import REGISTRY
from dpassay.report.pages.page import verdict_page
from dpassay.report.pictures import svg
from dpassay.report.pictures.palette import DARK, LIGHT, Palette

STEPS = "poisson(0.01) | clip(l2, 1) | gaussian(1) | times(1000)"


def plotted(verdict: Verdict) -> tuple[Any, Any]:
    """The line of the worst known pair."""
    (line,) = [line for line in verdict.plot().axes[0].lines if "pair" in str(line.get_label())]
    return line.get_xdata(), line.get_ydata()


def on_page(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[list[float], list[float]]]:
    """The data of the page's curves, by what stands on their axis."""
    curves, draw = {}, svg.curve

    def curve(x: Any, y: Any, marks: Any, names: Any, **options: Any) -> Any:
        curves[names[0]] = x, y
        return draw(x, y, marks, names, **options)

    monkeypatch.setattr(svg, "curve", curve)
    verdict_page(verdict, "")
    return curves


def test_where_the_loss_can_be_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    """DPText without noise for half of the values: δ(0) is 1/2 + 1/2·(1 − 1/e), that of exponential noise."""
    verdict = check(REGISTRY["dptext-zero"])
    truth = 0.5 + 0.5 * (1 - math.exp(-1))
    for x, y in (plotted(verdict), on_page(verdict, monkeypatch)["ε"]):
        assert (x[0], y[0]) == (0, pytest.approx(truth, rel=1e-3))


def test_many_sampled_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """At rate 0.01, sigma 1 and 1,000 steps, accountants agree on an ε of 1.828 at δ = 1e-5."""
    verdict = check(STEPS, epsilon=2, delta="1e-5", dim=10)
    curves = on_page(verdict, monkeypatch)
    for x, y in (plotted(verdict), curves["ε"]):
        logs = np.log10(np.maximum(y, 1e-30))
        assert np.interp(-5, logs[::-1], np.asarray(x)[::-1]) == pytest.approx(1.828, abs=0.03)
    losses, masses = np.array(curves["loss"][0]), np.array(curves["loss"][1])
    # Nearly normal, of mean μ²/2 and deviation μ = rate·√(steps·(e − 1)), about 0.41, in the limit of small rates.
    assert losses @ masses / masses.sum() == pytest.approx(0.01**2 * 1000 * (math.e - 1) / 2, rel=0.2)
    assert masses.sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("name", ["dpnr", "dp-prompt"])
def test_the_mean_on_the_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = check(REGISTRY[name])
    losses, masses = (np.array(side) for side in on_page(verdict, monkeypatch)["loss"])
    assert verdict.profile is not None
    loss = verdict.profile.dominating_loss(verdict.guarantee)
    assert loss is not None
    assert losses @ masses / masses.sum() == pytest.approx(loss.mean().lower, rel=0.01)


@pytest.mark.parametrize(("palette", "place"), [(LIGHT, 0), (DARK, 1)], ids=["light", "dark"])
def test_figures_have_the_colors_of_the_page(palette: Palette, place: int) -> None:
    style = (files("dpassay.server") / "static" / "page.css").read_text()
    for name in ("ink", "soft", "rule", "proven", "refuted", "open"):
        assert re.findall(rf"--{name}: (#[0-9a-f]+)", style)[place] == getattr(palette, name)


def test_the_upper_bound_lies_above_the_truth() -> None:
    """One coordinate of Laplace noise of scale 1: δ(ε) = 1 − e^((ε − 1)/2) up to ε = 1, and 0 from there."""
    figure = check("query(l1, 1) | laplace(1)", epsilon=1).plot()
    (line,) = [line for line in figure.axes[0].lines if "upper" in str(line.get_label())]
    epsilons, deltas = np.array(line.get_xdata()), np.array(line.get_ydata())
    truth = np.maximum(-np.expm1((epsilons - 1) / 2), 0)
    assert epsilons[0] == 0
    assert np.all(np.diff(epsilons) > 0)
    assert np.all(deltas >= truth)
    assert np.all(deltas[epsilons > 0.5] <= 1.3 * np.maximum(truth[epsilons > 0.5], 1e-3))


def test_thousands_are_grouped_on_the_axis() -> None:
    figure = check("query(l1, 30000) | laplace(1)", epsilon=1).plot()
    figure.draw_without_rendering()
    assert "20,000" in [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_a_plot_fits_a_column_and_its_legend_lies_outside() -> None:
    figure = check("query(l2, 1) | gaussian(2)", epsilon=2, delta="1e-5").plot()
    assert figure.get_size_inches()[0] <= 3.4
    (axes,), (legend,) = figure.axes, figure.legends
    assert axes.get_title() == "Proven: true ε = 1.993 at δ = 10⁻⁵"
    assert axes.get_legend() is None
    figure.draw_without_rendering()
    assert legend.get_window_extent().y1 <= axes.get_window_extent().y0
