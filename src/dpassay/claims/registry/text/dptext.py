"""DPText: noise from a wrong inverse distribution function, in three readings, and from the right one."""

from functools import partial

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import ACL

BEIGI = (
    "Beigi et al., I am not what I write: Privacy preserving text representation learning, 2019, Eq. 9 "
    "(also Alnasser et al. 2021, Eq. 3; Beigi et al. 2021, Eq. 14)"
)
GRID = {"epsilon": ("0.1", 1, 10), "dim": (1, 8, 128)}
Reading = partial(Claim, epsilon=1, dim=1, caveats=("epsilon-learnt",), grid=GRID, trial=Trial({"dim": 2}))
Flawed = partial(Reading, brief="noise is never negative", expected="refuted", remedies=("dptext-corrected",))

SYSTEM = System(
    name="dptext",
    title="DPText",
    what="A latent vector gets noise -b*sgn(v)*ln(1-2|v|) with v drawn uniformly from (0, 1), said to be Laplace "
    "noise of scale b. As in the sanity check, coordinates lie between 0 and 1 here, and b is n/eps.",
    reasoning=(
        "The formula is the inverse distribution function for v from (-1/2, 1/2). For v above 1/2 the logarithm has "
        "no real value: numpy gives NaN. How it is handled was never published, so all readings are listed. In none "
        "of them is the noise ever negative, so an output below the input is impossible, and epsilon is infinite."
    ),
    claims=(
        Flawed(
            name="dptext-zero",
            title="DPText, NaN as zero",
            pipeline="encode | clamp(0, 1) | onesided(dim/eps, 1/2) | decode",
            source=f"{BEIGI}; this reading in {ACL}, Theorem 3.2",
            why=(
                "Half of all coordinates are released without noise, and the others only grow: an output below 1 "
                "rules out that the input was 1."
            ),
        ),
        Flawed(
            name="dptext-resampled",
            title="DPText, NaN drawn again",
            pipeline="encode | clamp(0, 1) | onesided(dim/eps) | decode",
            source=f"{BEIGI}; this reading in {ACL}, Theorem 3.2",
            why="What remains is exponential noise, which is never negative: an output below 1 rules out that the "
            "input was 1.",
        ),
        Flawed(
            name="dptext-nan",
            title="DPText, NaN left in",
            pipeline="encode | clamp(0, 1) | onesided(dim/eps, 0, 1/2) | decode",
            source=f"{BEIGI}; what numpy does with it",
            why="Half of all coordinates are lost, which hides them; the others only grow, and one that is below 1 "
            "rules out that the input was 1.",
        ),
        Reading(
            name="dptext-corrected",
            title="DPText, right inverse",
            pipeline="encode | clamp(0, 1) | laplace(dim/eps) | decode",
            source=f"{ACL}, Eq. 4 and 7",
            brief="true Laplace noise",
            why="-b*sgn(u-1/2)*ln(1-2|u-1/2|) with u uniform on (0, 1) is Laplace noise, and n coordinates between 0 "
            "and 1 are at most n apart in l1.",
            expected="proven",
        ),
    ),
)
