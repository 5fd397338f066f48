"""User-entity training: the privacy budget over the number of rounds, claimed and true."""

import math
from typing import Any

from dpassay.claims.claim import Claim
from dpassay.claims.judge import quick_check
from dpassay.claims.registry import REGISTRY
from dpassay.core.interval import Interval
from dpassay.reproduce.result import (
    COLOURS,
    DASHES,
    MARKS,
    FigureResult,
    PublishedComparison,
    ReproductionOptions,
    label,
)

ROUNDS = (10, 30, 100, 300, 1000, 2000, 3000, 5000)
DELTA, Z, USERS, ENTITIES = "1e-5", 2, "0.05", "0.5"  # z, q_u and q_e of the paper
SENTENCES, DOCUMENTS = 14_040, 946  # of the corpus, CoNLL-2003; each document is a user
# In the released code: users per round, entities |E|, and after how many rounds a result is saved.
RELEASED = {
    "user-level": (25, 0, (19, 171, 407, 735, 1150, 1649)),
    "person": (100, 4406, (82, 471, 1086, 1932, 2996, 4280)),
    "loc": (100, 5433, (45, 300, 701, 1253, 1951, 2791)),
    "org": (100, 5187, (51, 332, 773, 1379, 2146, 3069)),
    "misc": (100, 3438, (143, 737, 1683, 2983)),
    "all": (50, 11_176, (42, 282, 660, 1181, 1841, 2634)),
}
SHARE = RELEASED["all"][1] / SENTENCES  # |E|/(|E| + |S|): every sentence without an entity is one of S
RATES = {
    "user": float(USERS),
    "f_E": float(USERS) * float(ENTITIES),
    "f_E+": float(USERS) * float(ENTITIES) * SHARE,
}


def moments_epsilon(rate: float, z: float, rounds: int, delta: float, largest: int = 64) -> float:
    """ε of T sampled Gaussians by the moments accountant: the least (T·ln A(k) + ln(1/δ))/(k − 1) of whole orders k.

    >>> round(moments_epsilon(0.025, 2, 1000, 1e-5), 4)
    2.2007
    """

    def moment(order: int) -> float:
        logs = [
            math.log(math.comb(order, k) * rate**k * (1 - rate) ** (order - k)) + k * (k - 1) / (2 * z * z)
            for k in range(order + 1)
        ]
        most = max(logs)
        return most + math.log(math.fsum(math.exp(log - most) for log in logs))

    return min((rounds * moment(k) + math.log(1 / delta)) / (k - 1) for k in range(2, largest + 1))


def uedp_budgets(options: ReproductionOptions) -> FigureResult:
    """ε over the number of rounds for user-level DP, f_E and f_E+: claimed and true."""
    rows: list[dict[str, Any]] = []
    for done, rounds in enumerate(ROUNDS, 1):
        user, alone, most = _user(rounds), _one_entity(rounds), quick_check(REGISTRY["uedp"](z=Z, T=rounds))[1]
        for level, rate in RATES.items():
            low, high = (user, user) if level == "user" else (alone, most)
            claimed = moments_epsilon(rate, Z, rounds, float(DELTA))
            row = {"level": level, "rounds": rounds, "rate": rate, "claimed": claimed}
            row |= {"alone_lower": low.lower, "alone_upper": low.upper}
            rows.append(row | {"true_lower": high.lower, "true_upper": high.upper})
        options.progress(done / len(ROUNDS))
    comparisons = _compared()
    off = max(abs(c.ours / c.published - 1) for c in comparisons if not c.what.startswith("misc"))
    at = {row["level"]: row for row in rows if row["rounds"] == 1000}
    return FigureResult(
        rows=rows,
        draw=lambda figure: _draw(figure, rows),
        caption="ε at δ = 1e-5 over the number of rounds, q_u = 0.05, q_e = 0.5, q_s = 1, z = 2. Dotted: what the "
        "moments accountant claims for user-level DP and for UeDP's two estimators. Lines: the true ε. For UeDP it is "
        "the same for both: that of an entity in everyone's sentences, alone in each of them, or among many entities.",
        published="Lai et al. 2022, Figure 4: the budget over the number of rounds. We have its settings, not its "
        "numbers; the released code lists the rounds at which results were kept.",
        compared="What the lists of rounds in the released code stand for, in steps of 0.5, beside the moments "
        "accountant at the rate q_u for user-level DP and at q_u*q_e*|E|/(|E| + |S|) for entities of each type.",
        comparisons=comparisons,
        found=(
            f"After 1,000 rounds f_E claims {at['f_E']['claimed']:.3f} and f_E+ {at['f_E+']['claimed']:.3f}. True is "
            f"{at['f_E']['alone_upper']:.1f} for an entity that is alone in its sentences, "
            f"{at['f_E']['true_upper']:.1f} for one among many.",
            f"User-level DP holds as an algorithm: {at['user']['claimed']:.3f} is claimed, "
            f"{at['user']['true_upper']:.3f} is true.",
            "The lists of rounds tell which rate was given to the accountant: at q_u*q_e*|E|/(|E| + |S|) all of them "
            f"but one (misc) stand for budgets in steps of 0.5, to within {off:.1%}.",
        ),
    )


def _user(rounds: int) -> Interval:
    return _sampled("beta", "z*beta", USERS, rounds)


def _one_entity(rounds: int) -> Interval:
    """An entity in everyone's sentences, with no other entity in them: drawn with probability q_e."""
    return _sampled("2*m*beta", "z*(m + 1)*beta", ENTITIES, rounds)


def _sampled(shift: str, noise: str, rate: str, rounds: int) -> Interval:
    """The true ε of rounds whose sum moves by a shift with this probability."""
    uedp = REGISTRY["uedp"].parameters
    values = {"q": rate, "z": Z, "T": rounds, "beta": uedp["beta"], **({"m": uedp["m"]} if "m" in shift else {})}
    text = f"poisson(q) | clip(l2, {shift}) | gaussian({noise}) | times(T)"
    return quick_check(Claim("rounds", text, epsilon=1, delta=DELTA, dim=1, parameters=values))[1]


def _compared() -> list[PublishedComparison]:
    found = []
    for name, (users, entities, rounds) in RELEASED.items():
        rate = users / DOCUMENTS * (float(ENTITIES) * entities / SENTENCES if entities else 1)
        for i, count in enumerate(rounds, 1):
            ours = moments_epsilon(rate, Z, count, float(DELTA))
            found.append(PublishedComparison(f"{name}, {count:,} rounds", i / 2, ours))
    return found


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axis = figure.subplots()
    series = [(f"{name}, claimed", level, "claimed", ":") for name, level in _NAMES.items()]
    series += [
        ("user-level, true", "user", "true_upper", "-"),
        ("UeDP, true, alone in its sentences", "f_E", "alone_upper", DASHES[1]),
        ("UeDP, true, among many entities", "f_E", "true_upper", "-"),
    ]
    colours = {"user": COLOURS[0], "f_E": COLOURS[1], "f_E+": COLOURS[3]}
    for (name, level, key, dash), mark in zip(series, MARKS, strict=False):
        chosen = [row for row in rows if row["level"] == level]
        x, y = [row["rounds"] for row in chosen], [row[key] for row in chosen]
        axis.plot(x, y, linestyle=dash, marker=mark, color=colours[level], markersize=3, label=name)
    label(axis, "rounds T", "ε at δ = 1e-5", log="xy", fontsize=7)


_NAMES = {"user-level": "user", "f_E": "f_E", "f_E+": "f_E+"}
