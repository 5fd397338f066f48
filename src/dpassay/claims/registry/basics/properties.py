"""The properties that every guarantee has, as claims on composed mechanisms."""

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import DWORK_ROTH, MCSHERRY, UEDP
from dpassay.core.neighbours import Neighbours

SYSTEM = System(
    name="properties",
    title="Post-processing, groups, composition",
    what=(
        "What happens to a private output that is processed further, what holds for a group of people, and what "
        "several answers cost, about the same people and about different ones."
    ),
    reasoning=(
        "Post-processing changes nothing. For a group of k, k*eps and k*e^((k-1)*eps)*delta hold, which exceed the "
        "true values for most mechanisms. The epsilons of several answers add up, and for Laplace noise on the same "
        "query this is exact. Answers about different people cost as much as the largest of them; the coordinates of "
        "one person's vector are not about different people."
    ),
    claims=(
        Claim(
            name="post-processing",
            title="Post-processing",
            pipeline="query(l1, 1) | laplace(1/eps) | round | decode",
            epsilon=1,
            source=f"{DWORK_ROTH}, Proposition 2.1",
            brief="rounding changes nothing",
            why=(
                "Nothing computed from the noisy answer alone, rounding included, can have a larger loss than the "
                "answer itself."
            ),
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10)},
        ),
        Claim(
            name="group",
            title="Group of k people",
            pipeline="query(l2, k) | gaussian(least_sigma(e, d, 1))",
            epsilon="k*e",
            delta="k*exp((k-1)*e)*d",
            parameters={"k": 3, "e": "0.5", "d": "1e-6"},
            source=f"{DWORK_ROTH}, Theorem 2.2 and its remark on delta; exact here for Gaussian noise",
            brief="generous, not exact",
            why=(
                "Three people change the answer by up to 3, but the noise is calibrated to 1. The group bound covers "
                "that; the exact epsilon at its delta is smaller."
            ),
            expected="proven",
            grid={"k": (1, 2, 3, 10), "e": ("0.1", "0.5")},
            trial=Trial({"e": "0.5", "d": "0.01"}),
        ),
        Claim(
            name="composition",
            title="Basic composition",
            pipeline="query(l1, 1) | repeat(k) | laplace(k/eps)",
            epsilon=1,
            parameters={"k": 10},
            source=f"{DWORK_ROTH}, Theorem 3.16",
            brief="epsilons add up",
            why="Each of k answers to the same query spends eps/k.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10), "k": (1, 10, 100)},
            trial=Trial({"k": 3}),
        ),
        Claim(
            name="parallel-counts",
            title="Parallel composition, disjoint people",
            pipeline="counts(l1, 1) | laplace(1/eps)",
            epsilon=1,
            dim=768,
            neighbours=Neighbours("add-remove-record"),
            source=f"{MCSHERRY}, Theorem 4",
            brief="one person, one count",
            why=(
                "Each of k counts is about different people, so a person who is added or removed changes only one of "
                "them, by 1."
            ),
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10), "dim": (2, 128, 768)},
            trial=Trial({"dim": 4}),
        ),
        Claim(
            name="parallel-vector",
            title="Parallel composition, used on one vector",
            pipeline="clamp(0, 1) | laplace(1/eps)",
            epsilon=1,
            dim=768,
            source=f"the argument that {UEDP} refutes for the k elements of one embedding",
            brief="k elements, one person",
            why=(
                "The k coordinates come from one input, which can change all of them: they are k answers about the "
                "same data and cost k*eps."
            ),
            expected="refuted",
            remedies=("vector-composition",),
            grid={"epsilon": ("0.1", 1, 10), "dim": (2, 128, 768)},
            trial=Trial({"dim": 4}),
        ),
        Claim(
            name="vector-composition",
            title="Basic composition, on one vector",
            pipeline="clamp(0, 1) | laplace(dim/eps)",
            epsilon=1,
            dim=768,
            source=f"{DWORK_ROTH}, Theorem 3.16, as {UEDP} applies it",
            brief="noise for k elements",
            why="Each of the k coordinates spends eps/k, and together they spend eps.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10), "dim": (2, 128, 768)},
            trial=Trial({"dim": 4}),
        ),
    ),
)
