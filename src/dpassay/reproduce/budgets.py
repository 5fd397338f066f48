"""DPNR's budgets and binary encodings: claimed and true."""

import math
from typing import Any

from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY
from dpassay.core.numbers import middle
from dpassay.pipeline.stages.bits import BitNoise
from dpassay.reproduce.result import (
    COLOURS,
    DASHES,
    MARKS,
    FigureResult,
    PublishedComparison,
    ReproductionOptions,
    label,
)

EPSILONS = ("0.05", "0.1", "0.5", "1", "5")
DROPOUTS = ("0.1", "0.3", "0.5", "0.8")
SIZES = (2, 8, 32, 128, 768)
STEPS = (1, 10, 100, 1000, 10_000)
LAMBDAS = ("1", "2", "5", "10", "20", "50", "100")


def dpnr_budgets(options: ReproductionOptions) -> FigureResult:
    """What DPNR claims and loses over ε, dropout, dimension and training steps."""
    rows = [_row("epsilon", "dpnr", epsilon=e) for e in EPSILONS]
    rows += [_row("dropout", "dpnr-dropout", e=e, mu=mu) for mu in DROPOUTS for e in EPSILONS]
    rows += [_row("dimension", "dpnr", epsilon="0.05", dim=k) for k in SIZES]
    rows += [_row("steps", "dpnr-training", epsilon="0.05", T=t) for t in STEPS]
    at = {(r["over"], r["epsilon"], r["mu"], r["dim"], r["steps"]): r["true"] for r in rows}
    hidden = at["epsilon", 0.05, 0.0, 768, 1] - at["dropout", 0.05, 0.8, 768, 1]
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw_budgets(figure, rows),
        caption="DPNR's claimed word-level budget (dotted) and the true one. Left: k = 768, the paper's ε, without and "
        "with dropout. Middle: over the dimension at ε = 0.05. Right: over training steps that draw noise anew.",
        published="Lai et al. 2022, appendix: k·ε is at least 0.05·768 = 38.4, and ln[(1-μ)e^(kε) + μ] after dropout.",
        comparisons=(PublishedComparison("k = 768, ε = 0.05", 38.4, at["epsilon", 0.05, 0.0, 768, 1]),),
        found=(
            f"Dropout hides next to nothing of so large a loss: at μ = 0.8 and ε = 0.05 it takes {hidden:.3f} off.",
            f"A hundred training steps bring ε = 0.05 to {at['steps', 0.05, 0.0, 768, 100]:g}.",
        ),
        size=(7.2, 3.2),
    )


def _row(over: str, name: str, **changes: Any) -> dict[str, Any]:
    claim = REGISTRY[name](**changes)
    _, true, _ = quick_check(claim)
    epsilon, mu, steps = changes.get("epsilon", changes.get("e", 0)), changes.get("mu", 0), changes.get("T", 1)
    row = {"over": over, "epsilon": float(epsilon), "mu": float(mu), "dim": claim.dim, "steps": int(steps)}
    return row | {"claimed": claim.guarantee.claimed, "true": true.upper}


def _draw_budgets(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots(1, 3)
    series = [("no dropout", [r for r in rows if r["over"] == "epsilon"])]
    series += [(f"μ = {mu}", [r for r in rows if r["over"] == "dropout" and r["mu"] == float(mu)]) for mu in DROPOUTS]
    for (name, chosen), colour, dash, mark in zip(series, COLOURS, DASHES, MARKS, strict=False):
        x, true = [r["epsilon"] for r in chosen], [r["true"] for r in chosen]
        axes[0].plot(x, true, linestyle=dash, marker=mark, color=colour, markersize=3, label=name)
        axes[0].plot(x, [r["claimed"] for r in chosen], ":", marker=mark, color=colour, markersize=2, linewidth=0.7)
    for axis, over, key, name in ((axes[1], "dimension", "dim", "k"), (axes[2], "steps", "steps", "steps T")):
        chosen = [r for r in rows if r["over"] == over]
        x = [r[key] for r in chosen]
        axis.plot(x, [r["true"] for r in chosen], "-o", color=COLOURS[1], markersize=3, label="true")
        axis.plot(x, [r["claimed"] for r in chosen], ":", color="black", label="claimed")
        label(axis, name, log="xy", fontsize=7)
    for words, key in (("true", "true"), ("claimed", "claimed")):
        place = (float(EPSILONS[0]), max(chosen[0][key] for _, chosen in series))
        axes[0].annotate(words, place, (-3, 15), textcoords="offset points", fontsize=7)
    label(axes[0], "ε of one element", "privacy budget ε", log="xy")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=8)


def binary_encoding(options: ReproductionOptions) -> FigureResult:
    """Loss of each bit of one value, exact and as the document weighs it; and OME over λ."""
    ome = REGISTRY["ome"]
    m, n, largest = (float(ome.parameters[key]) for key in ("m", "n", "L"))
    m, n = int(m), int(n)
    noise = next(stage for stage in ome.mechanism.stages if isinstance(stage, BitNoise))
    s = ome.guarantee.claimed / ((ome.dim or 1) * (1 + m + n))
    names = ["sign", *(f"integer {i}" for i in range(m, 0, -1)), *(f"fraction {i}" for i in range(1, n + 1))]
    weights = [2.0 ** (m + 1), *(2.0 ** (i - 1) for i in range(m, 0, -1)), *(2.0**-i for i in range(1, n + 1))]
    rows: list[dict[str, Any]] = []
    zero = middle(noise.zero)
    for place, (name, weight) in enumerate(zip(names, weights, strict=True)):
        one = middle(noise.even if place % 2 == 0 else noise.odd)
        lost = max(abs(math.log(one / zero)), abs(math.log((1 - one) / (1 - zero))))
        exact = {"symmetric": s, "weighted": s * weight, "ome": lost, "true": math.nan}
        rows.append({"what": name, "lambda": largest, **exact})
    for text in LAMBDAS:
        _, true, _ = quick_check(REGISTRY["ome"](L=text))
        nothing = dict.fromkeys(("symmetric", "weighted", "ome"), math.nan)
        rows.append({"what": "OME, 768 values", "lambda": float(text), **nothing, "true": true.upper})
    total, weighted = rows[-1]["true"], 768 * sum(row["weighted"] for row in rows[: len(names)])
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw_binary(figure, rows, len(names)),
        caption="Left: what each bit of a value loses at ε = 1, r = 768, l = 10: symmetric flips, the document's "
        "weights (a bound for a metric notion), and OME at λ = 100. Right: OME's true ε over λ; 1 is claimed (dotted).",
        published="Lai et al. 2022, Eq. 15-19: bits weighted by what they are worth.",
        found=(
            f"The weights add up to {weighted:.6g}, where symmetric flips lose 1 and OME loses {total:,.2f}.",
            "A flipped bit's likelihood ratio does not depend on what the bit is worth; OME fails elsewhere.",
        ),
        size=(7.2, 3.4),
    )


def _draw_binary(figure: Any, rows: list[dict[str, Any]], bits: int) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    places = range(bits)
    for key, name, colour, mark in (
        ("symmetric", "symmetric flips: true", COLOURS[0], "o"),
        ("weighted", "document's weights: claimed", COLOURS[2], "s"),
        ("ome", "OME at λ = 100: true", COLOURS[1], "X"),
    ):
        left.plot(places, [rows[i][key] for i in places], mark, color=colour, markersize=5, label=name)
    left.set_xticks(places, [rows[i]["what"] for i in places], rotation=60, ha="right", fontsize=7)
    label(left, y="loss of one bit", log="y")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    totals = rows[bits:]
    true = [r["true"] for r in totals]
    right.plot([r["lambda"] for r in totals], true, "-X", color=COLOURS[1], markersize=5, label="OME: true")
    right.axhline(1, linestyle=":", color="black", label="OME: claimed")
    label(right, "λ", "ε of 768 values", log="xy", loc="center right", fontsize=8)
