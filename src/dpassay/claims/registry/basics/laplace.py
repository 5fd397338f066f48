"""The Laplace mechanism: a counting query, and vectors."""

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import DWORK_ROTH

SYSTEM = System(
    name="laplace",
    title="Laplace mechanism",
    what=(
        "The answer to a numeric query plus Laplace noise on every coordinate, scaled to the largest l1 distance "
        "between the answers on two neighboring data sets."
    ),
    reasoning="The ratio of two Laplace densities is at most e^(distance/scale), coordinate by coordinate, so the "
    "exponents add up to the l1 distance over the scale. The bound is attained, so the true epsilon is the claimed "
    "one.",
    claims=(
        Claim(
            name="laplace",
            title="Laplace, counting query",
            pipeline="query(l1, 1) | laplace(1/eps)",
            epsilon=1,
            source=f"{DWORK_ROTH}, Theorem 3.6",
            brief="noise fits the l1 bound",
            why="One person changes a count by at most 1, and the noise is scaled to that.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10)},
        ),
        Claim(
            name="laplace-vector",
            title="Laplace, vectors",
            pipeline="query(l1, D) | laplace(D/eps)",
            epsilon=1,
            dim=32,
            parameters={"D": 2},
            source=f"{DWORK_ROTH}, Theorem 3.6",
            brief="noise fits the l1 bound",
            why="However many coordinates change, they change by at most D together, and the noise is scaled to D.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10), "dim": (2, 32, 1024)},
            trial=Trial({"dim": 4}),
        ),
    ),
)
