"""The Gaussian mechanism: the classic formula inside and outside the range it is proved for, and the exact one."""

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import DWORK_ROTH

CLASSIC = f"{DWORK_ROTH}, Theorem 3.22 (for 0 < eps < 1)"
EXACT = "Balle and Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, Theorem 8"
FORMULA = "query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)"

SYSTEM = System(
    name="gaussian",
    title="Gaussian mechanism",
    what="The answer to a query plus normal noise on every coordinate, scaled to the l2 sensitivity.",
    reasoning="The classic formula is proved for epsilon below 1. Beyond that it is not always wrong (at delta 1e-5 "
    "it still holds at 8), but at 10 it adds too little noise. The exact formula gives the least standard deviation "
    "at every epsilon.",
    claims=(
        Claim(
            name="gaussian",
            title="Gaussian, classic formula",
            pipeline=FORMULA,
            epsilon="0.5",
            delta="1e-5",
            source=CLASSIC,
            brief="proved for eps below 1",
            why="Inside 0 < eps < 1 the classic formula adds more than enough noise.",
            expected="proven",
            grid={"epsilon": ("0.1", "0.5", "0.9"), "delta": ("1e-9", "1e-5")},
            trial=Trial({"delta": "0.05"}),
        ),
        Claim(
            name="gaussian-large-eps",
            title="Gaussian, classic at ε = 10",
            pipeline=FORMULA,
            epsilon=10,
            delta="1e-5",
            source=f"{CLASSIC}, used beyond it",
            brief="used outside its range",
            why="The formula is proved only for eps below 1; at 10 it adds too little noise.",
            expected="refuted",
            remedies=("gaussian-exact",),
            grid={"epsilon": (1, 8, 10, 100), "delta": ("1e-9", "1e-5")},
            trial=Trial({"epsilon": 5, "delta": "0.7"}, runs=100_000),
        ),
        Claim(
            name="gaussian-exact",
            title="Gaussian, exact formula",
            pipeline="query(l2, 1) | gaussian(least_sigma(eps, delta, 1))",
            epsilon=10,
            delta="1e-5",
            source=EXACT,
            brief="the least noise",
            why="The standard deviation is the least for which delta(eps) is at most the claimed delta.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10, 100), "delta": ("1e-9", "1e-5")},
            trial=Trial({"epsilon": 1, "delta": "0.05"}),
        ),
    ),
)
