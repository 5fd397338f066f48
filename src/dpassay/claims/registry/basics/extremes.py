"""What delta allows: two mechanisms that are (0, delta)-private and still publish somebody's data."""

from dpassay.claims.claim import Claim, System, Trial

LECTURE = "Habernal, Privacy-preserving NLP, lecture on approximate differential privacy"

SYSTEM = System(
    name="extremes",
    title="The two extremes of δ",
    what="The first publishes the whole data set with probability delta and otherwise nothing. The second goes through "
    "the rows and publishes each independently with probability delta.",
    reasoning=(
        "Both satisfy (0, delta): with probability 1 - delta the output does not depend on the one row that differs. "
        "But the second publishes someone's row with probability 1 - (1-delta)^n, 0.632 for a million rows at delta "
        "1e-6. So delta must be far below one over the number of people."
    ),
    claims=(
        Claim(
            name="leak-everything",
            title="Everything, with probability δ",
            pipeline="category(1000000) | leak(delta)",
            epsilon=0,
            delta="1e-6",
            people=1_000_000,
            source=f"{LECTURE}, algorithm 1",
            brief="delta is all it claims",
            why="With probability 1 - delta nothing is published. The category stands for the whole data set.",
            expected="proven",
            grid={"delta": ("1e-9", "1e-6", "1e-3")},
            trial=Trial({"delta": "0.2"}),
        ),
        Claim(
            name="leak-rows",
            title="Each row, with probability δ",
            pipeline="rows | leak(delta)",
            epsilon=0,
            delta="1e-6",
            dim=1_000_000,
            people=1_000_000,
            source=f"{LECTURE}, algorithm 2",
            brief="yet someone's row leaks",
            why="Neighbors differ in one row, which is published only with probability delta.",
            expected="proven",
            grid={"delta": ("1e-9", "1e-6", "1e-3"), "dim": (1, 1000, 1000000)},
            trial=Trial({"delta": "0.2", "dim": 3, "people": 3}),
        ),
    ),
)
