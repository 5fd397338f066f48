"""The lecture's pictures: likelihood ratios, the loss variable, what δ allows, Gaussian noise, and Bayes."""

import math
from typing import Any

import numpy as np

from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY
from dpassay.core.functions.normal import gaussian_sigma
from dpassay.core.guarantee import make_guarantee
from dpassay.core.numbers import ONE, middle, number
from dpassay.exact.calibrate import classic_gaussian_sigma
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.pipeline.distributions import Gaussian, Laplace
from dpassay.reproduce.result import COLOURS, DASHES, FigureResult, ReproductionOptions, label

SCALES = (0.5, 1.0, 2.0, 4.0)  # of the recap's noise
LECTURE = "Habernal, Privacy-preserving NLP, lecture on approximate differential privacy"


def likelihood_ratio(options: ReproductionOptions) -> FigureResult:
    """Two Laplace densities, one person apart, and their ratio; for several scales."""
    t = np.linspace(-5, 6, 441)
    rows, curves = [], {}
    for b in SCALES:
        first, second = (np.exp(-np.abs(t - centre) / b) / (2 * b) for centre in (0, 1))
        curves[b] = np.log(first / second)
        for output, one, other, loss in zip(t, first, second, curves[b], strict=True):
            values = (b, float(output), float(one), float(other), float(loss))
            rows.append(dict(zip(("scale", "output", "first", "second", "loss"), values, strict=True)))
    shown = [row for row in rows if row["scale"] == 1]

    def draw(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        above.plot(t, [row["first"] for row in shown], color=COLOURS[0], label="count 0, b = 1")
        above.plot(t, [row["second"] for row in shown], color=COLOURS[1], linestyle=DASHES[1], label="count 1, b = 1")
        label(above, y="density", loc="best")
        for b, colour, dash in zip(SCALES, COLOURS, DASHES, strict=False):
            below.plot(t, curves[b], color=colour, linestyle=dash, label=f"b = {b:g}")
            for bound in (-1 / b, 1 / b):
                below.axhline(bound, linestyle=":", color="0.7", linewidth=0.8)
        label(below, "noisy count", "log of their ratio", loc="upper right", fontsize=8)

    return FigureResult(
        rows=rows,
        draw=draw,
        caption="A counting query with Laplace noise on two data sets that differ in one person, and the log of the "
        "ratio of the two densities, for several scales b: between -ε and ε everywhere, with ε = 1/b.",
        published=f"{LECTURE}, recap, Figure 1.",
        found=(
            "The bound is attained: the loss is exactly ε = 1/b at every output up to 0, and exactly -ε from 1 up.",
            "Twice the scale halves the loss at every output.",
        ),
        size=(5.6, 4.8),
    )


def loss_variable(options: ReproductionOptions) -> FigureResult:
    """The privacy loss as a random variable: atoms and density; its tail and the exact δ."""
    loss = PrivacyLoss.of_shifts(Laplace(ONE), [(number(1), 1)])
    gaussian = PrivacyLoss.of_shifts(Gaussian(ONE), [(number(1), 1)])
    rows = []
    for epsilon in np.linspace(0, 2.5, 51):
        row: dict[str, Any] = {"epsilon": float(epsilon)}
        for name, one in (("laplace", loss), ("gaussian", gaussian)):
            row[f"{name}_tail"], row[f"{name}_delta"] = one.tail(float(epsilon)).upper, one.delta(float(epsilon)).upper
        rows.append(row)
    law = _law_of_the_loss()
    rows = [dict.fromkeys((*rows[0], *law[0]), math.nan) | row for row in (*rows, *law)]
    mean = loss.mean()

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        inside = np.linspace(-1, 1, 200)
        left.plot(inside, np.exp((inside - 1) / 2) / 4, color=COLOURS[0], label="density between")
        left.vlines([1, -1], 0, [0.5, math.exp(-1) / 2], color=COLOURS[1], linewidth=3, label="atoms (probability)")
        left.axvline(mean.lower, linestyle=":", color="black", label=f"mean {mean.lower:.4f}")
        left.set_ylim(0, 0.75)
        label(left, "privacy loss of the counting query, ε = 1", "density, or probability", fontsize=7)
        at = [row for row in rows if not math.isnan(row["epsilon"])]
        x = [row["epsilon"] for row in at]
        for name, colour in (("laplace", COLOURS[0]), ("gaussian", COLOURS[1])):
            right.plot(x, [r[f"{name}_tail"] for r in at], color=colour, linestyle=DASHES[1], label=f"{name}: tail")
            right.plot(x, [r[f"{name}_delta"] for r in at], color=colour, label=f"{name}: exact δ")
        label(right, "ε", "probability", fontsize=7)

    return FigureResult(
        rows=rows,
        draw=draw,
        caption="Left: the loss of the counting query with Laplace noise of scale 1. Right: the probability that the "
        "loss exceeds ε (dashed) and the least δ for which (ε, δ) holds (solid), for Laplace and for Gaussian noise of "
        "standard deviation 1.",
        published=f"{LECTURE}: (ε, δ)-DP is called equivalent to a loss above ε with probability at most δ.",
        found=(
            "Only one direction holds: a tail below δ implies (ε, δ). The exact δ is smaller than the tail at every ε "
            f"below the largest loss: at ε = 0.5 it is {loss.delta(0.5).upper:.4f} for Laplace, where the tail is "
            f"{loss.tail(0.5).upper:.4f}.",
        ),
        size=(7.2, 3.4),
    )


def _law_of_the_loss() -> list[dict[str, Any]]:
    """The loss of the counting query at Laplace noise of scale 1, and at Gaussian noise: densities and atoms.

    Laplace noise has an atom of 1/2 at 1, one of 1/2e at -1, and the density e^((loss - 1)/2)/4 between them. At
    Gaussian noise the loss is normal with mean 1/2 and deviation 1: docs/proofs/laplace.md, docs/proofs/gaussian.md.
    """
    rows = []
    for loss in np.linspace(-3, 4, 141):
        between = math.exp((loss - 1) / 2) / 4 if abs(loss) < 1 - 1e-9 else 0.0
        atom = 0.5 if abs(loss - 1) < 1e-9 else math.exp(-1) / 2 if abs(loss + 1) < 1e-9 else 0.0
        normal = math.exp(-((loss - 0.5) ** 2) / 2) / math.sqrt(2 * math.pi)
        law = {"loss": round(float(loss), 12), "laplace_density": between, "laplace_atom": atom}
        rows.append({**law, "gaussian_density": normal})
    return rows


def delta_extremes(options: ReproductionOptions) -> FigureResult:
    """How likely it is that somebody's row is published, over people and δ."""
    people = [round(10 ** (k / 4)) for k in range(37)]
    deltas = (1e-9, 1e-6, 1e-4)
    rows = [
        {"people": n, "delta": d, "everything": d, "somebody": -math.expm1(n * math.log1p(-d))}
        for d in deltas
        for n in people
    ]

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for d, colour, dash in zip(deltas, COLOURS, DASHES, strict=False):
            chosen = [row for row in rows if row["delta"] == d]
            axis.plot(people, [r["somebody"] for r in chosen], color=colour, linestyle=dash, label=f"δ = {d:.0e}")
            axis.axvline(1 / d, linestyle=":", color=colour, linewidth=0.8)
        label(axis, "people in the data, n (dotted: 1/δ)", "probability that somebody leaks", log="x", loc="best")

    million = next(r["somebody"] for r in rows if r["people"] == 10**6 and r["delta"] == 1e-6)
    return FigureResult(
        rows=rows,
        draw=draw,
        caption="A mechanism that publishes each row independently with probability δ is (0, δ)-private, and publishes "
        "somebody's row with probability 1 - (1-δ)^n.",
        published=f"{LECTURE}, two extreme algorithms: 1 - (1-δ)^n, about δn; δ must be far below 1/n.",
        found=(
            f"At a million people and δ = 1e-6 somebody leaks with probability {million:.4f}.",
            "The first algorithm publishes everything with probability δ, however many people there are.",
        ),
        size=(5.6, 3.4),
    )


def gaussian_noise(options: ReproductionOptions) -> FigureResult:
    """Classic against exact σ over ε, with the crossing."""
    delta = "1e-5"
    rows = []
    for epsilon in np.geomspace(0.1, 100, 61):
        guarantee = make_guarantee(float(epsilon), delta)
        classic, exact = (middle(f(guarantee, number(1))) for f in (classic_gaussian_sigma, gaussian_sigma))
        rows.append({"epsilon": float(epsilon), "delta": float(delta), "classic": classic, "exact": exact})
        options.progress(len(rows) / 61)
    crossing = _crossing(delta)
    ten = make_guarantee(10, delta)
    at10 = middle(classic_gaussian_sigma(ten, number(1))), middle(gaussian_sigma(ten, number(1)))

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        x = [row["epsilon"] for row in rows]
        axis.plot(x, [r["exact"] for r in rows], color=COLOURS[0], label="exact: the least σ")
        axis.plot(x, [r["classic"] for r in rows], color=COLOURS[1], linestyle=DASHES[1], label="classic formula")
        axis.axvspan(0.1, 1, color="0.93", label="where the classic formula is proved")
        axis.axvline(crossing, linestyle=":", color="black", label=f"from ε = {crossing:.2f} on too little")
        label(axis, "ε", "σ at l2 sensitivity 1, δ = 1e-5", log="xy", fontsize=8, loc="lower left")

    return FigureResult(
        rows=rows,
        draw=draw,
        caption="The standard deviation of Gaussian noise at δ = 1e-5 and l2 sensitivity 1: the classic formula, and "
        "the least that guarantees (ε, δ). They cross where the classic formula begins to add too little.",
        published=f"{LECTURE}; Dwork and Roth 2014, Theorem 3.22, for ε below 1.",
        found=(
            f"The classic formula holds far beyond its proof, up to ε = {crossing:.3f}, and fails from there on.",
            f"At ε = 10 it gives {at10[0]:.5f}, where {at10[1]:.5f} is needed.",
        ),
        size=(5.6, 3.6),
    )


def _crossing(delta: str) -> float:
    """Where the classic σ stops being enough."""
    from scipy.optimize import brentq

    def surplus(epsilon: float) -> float:
        guarantee = make_guarantee(epsilon, delta)
        return middle(classic_gaussian_sigma(guarantee, number(1))) - middle(gaussian_sigma(guarantee, number(1)))

    return float(brentq(surplus, 1.0, 100.0, xtol=1e-6))


def bayes(options: ReproductionOptions) -> FigureResult:
    """How far one output can move a belief."""
    epsilons, priors = (0.1, 0.5, 1.0, 2.0, 5.0), np.linspace(0, 1, 101)
    rows = []
    for epsilon in epsilons:
        for prior in priors:
            up = prior / (prior + (1 - prior) * math.exp(-epsilon))
            down = prior / (prior + (1 - prior) * math.exp(epsilon))
            rows.append({"epsilon": epsilon, "prior": float(prior), "most": float(up), "least": float(down)})

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for epsilon, colour, dash in zip(epsilons, COLOURS, DASHES, strict=False):
            chosen = [row for row in rows if row["epsilon"] == epsilon]
            axis.plot(priors, [r["most"] for r in chosen], color=colour, linestyle=dash, label=f"ε = {epsilon:g}")
            axis.plot(priors, [r["least"] for r in chosen], color=colour, linestyle=dash)
        axis.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
        label(axis, "belief before the output", "belief after it, at most and at least")
        axis.set_aspect("equal")
        figure.legend(loc="outside right center")

    half = next(r["most"] for r in rows if r["epsilon"] == 1.0 and r["prior"] == 0.5)
    adept = quick_check(REGISTRY["adept"])[1].lower
    return FigureResult(
        rows=rows,
        draw=draw,
        caption="Under ε-DP the odds after seeing an output are between e^-ε and e^ε times the odds before.",
        published="Habernal, EMNLP 2021, section 2, and ACL 2022, Eq. 1.",
        found=(
            f"At ε = 1 a belief of one half becomes {half:.4f} at most; at ADePT's true {adept:.2f} of 32 dimensions, "
            f"{1 / (1 + math.exp(-adept)):.4f}.",
        ),
        size=(5.4, 4.2),
    )
