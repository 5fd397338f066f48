"""DPText: the correct and the wrong inverse distribution function, and what each reading draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.testing.experiment import stream
from dpassay.reproduce.result import COLOURS, DASHES, FigureResult, ReproductionOptions, label

DRAWS = 1_000_000
EDGES = np.linspace(-6, 6, 121)
READINGS = {
    "laplace": "right inverse, u from (0, 1)",
    "shifted": "right inverse, v from (-1/2, 1/2)",
    "zero": "DPText, NaN as zero",
    "resampled": "DPText, NaN drawn again",
    "kept": "DPText, NaN left in",
}


def right_inverse(u: NDArray[Any]) -> NDArray[Any]:
    """Laplace's inverse distribution function, scale 1, for u from (0, 1).

    >>> right_inverse(np.array([0.25, 0.5])).round(4).tolist()
    [-0.6931, -0.0]
    """
    return wrong_inverse(u - 0.5)


def wrong_inverse(v: NDArray[Any]) -> NDArray[Any]:
    """The same formula for v from (-1/2, 1/2): NaN beyond, which is where DPText draws half of its v from."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(-np.sign(v) * np.log(1 - 2 * np.abs(v)))


def by_cases(u: NDArray[Any]) -> NDArray[Any]:
    """The right inverse without signs and absolute values: ln(2u) below 1/2, and -ln(2(1 - u)) from there on.

    >>> by_cases(np.array([0.25, 0.75])).round(4).tolist()
    [-0.6931, 0.6931]
    """
    return np.asarray(np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u))))


def real_part(v: NDArray[Any]) -> NDArray[Any]:
    """The real part of DPText's formula, whose logarithm is complex for v above 1/2, where this decreases.

    >>> real_part(np.array([0.25, 0.75])).round(4).tolist()
    [0.6931, 0.6931]
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.sign(v) * np.log(np.abs(1 - 2 * np.abs(v))))


def inverse_cdf(options: ReproductionOptions) -> FigureResult:
    """Figure 1 of Habernal, ACL 2022."""
    points = np.linspace(0.0025, 0.9975, 399)
    curves = {
        **{"u": points, "right": right_inverse(points), "by_cases": by_cases(points)},
        **{"v": points - 0.5, "shifted": wrong_inverse(points - 0.5)},
        **{"wrong": wrong_inverse(points), "wrong_real_part": real_part(points)},
    }
    rows = [dict(zip(curves, map(float, values), strict=True)) for values in zip(*curves.values(), strict=True)]
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw_inverse(figure, points),
        caption="Noise of scale 1 from a uniform number. Left: the inverse distribution function of Laplace noise at u "
        "from (0, 1), Eq. 4, which is Eq. 5. Middle: Eq. 7 at v from (-1/2, 1/2). Right: DPText's Eq. 9, the formula "
        "of the middle at v from (0, 1); above 1/2 its logarithm is complex, and the real part decreases (dashed).",
        published="Habernal, ACL 2022, Figure 1 and Eq. 4, 5, 7 and 9.",
        found=(
            "DPText's formula gives numbers from 0 up for half of all v, and nothing for the other half.",
            "Where it gives a number, the noise is exponential, and so is the real part of what it gives elsewhere: "
            "docs/proofs/inverse-cdf.md.",
        ),
        size=(7.6, 3.2),
    )


def _draw_inverse(figure: Any, points: NDArray[Any]) -> None:
    left, middle, right = figure.subplots(1, 3, sharey=True)
    left.plot(points, right_inverse(points), color=COLOURS[0], label="Eq. 4")
    left.plot(points, by_cases(points), color=COLOURS[2], linestyle=":", linewidth=3, label="Eq. 5")
    label(left, "u, uniform on (0, 1)", "noise, in units of b", loc="best")
    middle.plot(points - 0.5, wrong_inverse(points - 0.5), color=COLOURS[0], label="Eq. 7")
    label(middle, "v, uniform on (-1/2, 1/2)", loc="best")
    above = points > 0.5
    right.axvspan(0.5, 1, color="0.9", label="no real value")
    right.plot(points, wrong_inverse(points), color=COLOURS[1], label="Eq. 9, DPText")
    right.plot(points[above], real_part(points[above]), color=COLOURS[1], linestyle=DASHES[1], label="its real part")
    label(right, "v, uniform on (0, 1)", loc="lower center", fontsize=8)


def draws(reading: str, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Noise of scale 1 as each reading draws it."""
    if reading == "laplace":
        return right_inverse(rng.random(size))
    if reading == "shifted":
        return wrong_inverse(rng.random(size) - 0.5)
    noise = wrong_inverse(rng.random(size))
    if reading == "resampled":
        while (missing := np.isnan(noise)).any():
            noise[missing] = wrong_inverse(rng.random(int(missing.sum())))
    return np.nan_to_num(noise, nan=0.0) if reading == "zero" else noise


def sampled_laplace(options: ReproductionOptions) -> FigureResult:
    """Figure 3 of the same paper."""
    runs = options.runs or DRAWS
    rows, notes = [], []
    for k, (reading, title) in enumerate(READINGS.items()):
        noise = draws(reading, runs, stream(options.seed, 2, k))
        counts, _ = np.histogram(noise, EDGES)
        for low, high, count in zip(EDGES[:-1], EDGES[1:], counts.tolist(), strict=True):
            laplace = float(np.exp(-np.abs((low + high) / 2)) / 2)
            row = {"reading": reading, "from": float(low), "to": float(high), "count": count, "draws": runs}
            rows.append(row | {"density": count / runs / (high - low), "laplace": laplace})
        shares = [np.mean(noise < 0), np.mean(noise == 0), np.mean(np.isnan(noise))]
        notes.append(f"{title}: {shares[0]:.1%} below 0, {shares[1]:.1%} exactly 0, {shares[2]:.1%} NaN.")
        options.progress((k + 1) / len(READINGS))
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw_sampled(figure, rows),
        caption=f"{runs:,} draws of noise of scale 1 for each reading, as a density, against Laplace's (line).",
        published="Habernal, ACL 2022, Figure 3.",
        found=notes,
        size=(7.2, 4.6),
    )


def _draw_sampled(figure: Any, rows: list[dict[str, Any]]) -> None:
    # Two correct ones above, three readings of DPText below.
    axes = list(figure.subplot_mosaic([[*"aaabbb"], [*"ccddee"]]).values())
    line = np.linspace(-6, 6, 400)
    for axis, (reading, title) in zip(axes, READINGS.items(), strict=True):
        chosen = [row for row in rows if row["reading"] == reading]
        heights = np.minimum([row["density"] for row in chosen], 1.0)
        colour = COLOURS[0] if reading in ("laplace", "shifted") else COLOURS[1]
        axis.stairs(heights, EDGES, fill=True, color=colour, alpha=0.5)
        axis.plot(line, np.exp(-np.abs(line)) / 2, color="black", linewidth=0.8)
        axis.set_title(title, fontsize=9)
        axis.set_ylim(0, 1.05)
        cut = max(row["density"] for row in chosen)
        if cut > 1:
            axis.annotate(f"to {cut:.1f}", (0.2, 0.97), fontsize=8)
    for axis in axes[2:]:
        label(axis, "noise / b")
    for axis in (axes[0], axes[2]):
        label(axis, y="density")
