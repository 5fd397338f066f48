"""UeDP: a language model trained so that a user and a sensitive entity are hidden together."""

from functools import partial

from dpassay.claims.claim import Claim, System, Trial
from dpassay.core.neighbours import Neighbours

LAI = (
    "Lai, Phan, Sun, Jain, Dernoncourt, Gu and Barmpalios, User-entity differential privacy in learning natural "
    "language models, IEEE Big Data 2022"
)
# What the moments accountant gives at rate 0.05*0.5, z = 2, 1,000 rounds: 2.20072, rounded up.
PUBLISHED = "2.2008"
SMALL = {"T": 1, "epsilon": 1, "delta": "0.05"}
Variant = partial(Claim, delta="1e-5", dim=1, neighbours=Neighbours("user-entity"))

SYSTEM = System(
    name="uedp",
    title="UeDP",
    what=(
        "Each of T rounds draws m users and a share q_e of the sensitive entities. A drawn user trains a copy of the "
        "model on their sentences with a drawn entity; the change is clipped to l2 norm beta. The changes are "
        "summed, and the sum gets Gaussian noise of standard deviation z*(m + 1)*beta. Both are divided by "
        "constants, which are left out here because they change nothing."
    ),
    reasoning=(
        "The proof lets the entity move the sum by (m + 1)*beta. But it can be in everyone's sentences; then it "
        "moves each of m clipped changes from one end of the ball to the other, by 2*beta. The accountant is given "
        "the rate q_u*q_e. But an entity in everyone's sentences takes part with probability q_e, whoever is drawn; "
        "and since a sentence is used when any of its entities is drawn, one in sentences with k entities takes part "
        "with probability 1 - (1 - q_e)^k. Sentences in which no entity was found are always used. So the rate can "
        "be 1. The released code clips single tensors at single steps, not the change, and draws noise with the "
        "variance in place of the standard deviation. docs/proofs/uedp.md has the proofs."
    ),
    claims=(
        Variant(
            name="uedp",
            title="UeDP, as published",
            pipeline="query(l2, 2*m*beta) | gaussian(z*(m + 1)*beta) | times(T)",
            epsilon=PUBLISHED,
            parameters={"m": 50, "beta": "0.1", "z": 2, "T": 1000},
            source=f"{LAI}, Theorem 1 and Algorithm 1, with q_u = 0.05 (50 of 1,000 users), q_e = 0.5, z = 2, "
            "delta = 1e-5; epsilon is that of the moments accountant at the rate q_u*q_e",
            brief="entity moves every user",
            why=(
                "An entity that all users name, in sentences with many entities, takes part in nearly every round "
                "and moves each of the m clipped changes by 2*beta; no neighbors have a larger loss. In sentences "
                "with no other entity it takes part in half of the rounds, and the true epsilon is still above 210."
            ),
            expected="refuted",
            remedies=("uedp-cells",),
            grid={"T": (10, 100, 1000), "z": (2, "2.5")},
            trial=Trial({**SMALL, "delta": "0.01", "z": "0.5"}, pairs=[([5.0], [-5.0])]),
        ),
        Variant(
            name="uedp-released",
            title="UeDP, one round of the released code",
            pipeline="query(l2, m*lr*c/sqrt(2)) | gaussian((z*(m + 1)*c)^2/W)",
            epsilon=3,
            parameters={"m": 100, "lr": 20_000, "c": "0.1", "z": 2, "W": 1_183_700},
            source=f"{LAI}; main_lm_conll_UeDP.py of its repository, entities of type person, whose last number of "
            "rounds, 4,280, is that of epsilon 3",
            brief="changes are not clipped",
            why="Each gradient tensor is clipped to 0.1 at each step, and a step multiplies it by the learning rate of "
            "20,000: one step moves the output bias by 2,000 per user. The code draws N(0, s^4) instead of "
            "N(0, s^2), which is a standard deviation of 0.00034 in the sum of the changes. The first of 4,280 rounds "
            "alone reveals the entity.",
            expected="refuted",
            remedies=("uedp-cells",),
            trial=Trial({"epsilon": 1, "m": 1, "lr": 1, "c": 1, "z": 1, "W": 10}, pairs=[([0.7], [0.0])]),
        ),
        Variant(
            name="uedp-cells",
            title="UeDP, clipped by user and entity",
            pipeline="poisson(1 - (1 - q_u)*(1 - q_e)) | clip(l2, 2*beta + (M - 1)*cell) "
            "| gaussian(s*(2*beta + (M - 1)*cell)) | times(T)",
            epsilon=PUBLISHED,
            parameters={"q_u": "0.05", "q_e": "0.5", "beta": "0.1", "M": 50, "cell": "0.01", "s": 31, "T": 1000},
            source="a remedy proposed here: bound what one entity adds to one user's change, and allow at most M "
            "users per round; train on sentences with at most one entity",
            brief="entity moves cells only",
            why="What a user's sentences with one entity add is clipped to cell, a user's sum to beta, and at most M "
            "users take part: one user and one entity move the sum by at most 2*beta + (M - 1)*cell, and only in "
            "rounds in which one of the two is drawn.",
            expected="proven",
            trial=Trial({**SMALL, "s": 2, "cell": "0.1"}, pairs=[([5.0], [0.0])]),
        ),
    ),
)
