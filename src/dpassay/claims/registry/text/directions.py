"""Noise on the unit sphere, for embeddings whose direction alone matters: von Mises-Fisher and Purkayastha."""

import math
from functools import partial

from dpassay.claims.claim import Claim, System, Trial

SOURCE = "Weggenmann and Kerschbaum, Differential privacy for directional data, ACM CCS 2021"
FIRST = [1.0, 0.0, 0.0]
NEAR = Trial({"dim": 3, "epsilon": 2}, pairs=[(FIRST, [0.5, 0.75**0.5, 0.0])])  # 1 apart in l2
Variant = partial(
    Claim,
    dim=300,
    source=SOURCE,
    expected="proven",
    trial=Trial({"dim": 3, "epsilon": 2}, pairs=[(FIRST, [-1.0, 0.0, 0.0])]),
)

SYSTEM = System(
    name="directions",
    title="Directional noise: von Mises-Fisher and Purkayastha",
    what="A unit vector is replaced by a random one near it: with density e^(kappa*cosine) of the angle between them "
    "(von Mises-Fisher), or e^(-kappa*angle) (Purkayastha).",
    reasoning="The loss of two unit vectors is kappa times a difference of two cosines, or of two angles, to the "
    "output. By the Cauchy-Schwarz inequality and the triangle inequality it is at most kappa times their l2 "
    "distance, or times the angle between them, and both are attained. Opposite vectors are 2, or pi, apart.",
    claims=(
        Variant(
            name="vmf",
            title="von Mises-Fisher noise",
            pipeline="vmf(eps)",
            epsilon=10,
            metric="l2",
            brief="loss: eps * distance",
            why="The logarithm of the density is linear in the unit vector: it changes by at most kappa times the l2 "
            "distance.",
            grid={"epsilon": (1, 10, 100), "dim": (3, 300)},
            trial=NEAR,
        ),
        Variant(
            name="vmf-local",
            title="von Mises-Fisher noise, any direction",
            pipeline="encode | normalise(l2) | vmf(eps/2)",
            epsilon=10,
            brief="unit vectors: 2 apart",
            why="Two unit vectors are at most 2 apart, so kappa = eps/2 makes any two directions eps-close.",
            grid={"epsilon": (1, 10, 100), "dim": (3, 300)},
        ),
        Variant(
            name="purkayastha",
            title="Purkayastha noise",
            pipeline="purkayastha(eps)",
            epsilon=10,
            metric="angle",
            brief="loss: eps * angle",
            why="The logarithm of the density falls with the angle: it changes by at most kappa times the angle "
            "between two vectors.",
            grid={"epsilon": (1, 10, 100), "dim": (3, 300)},
            trial=Trial({"dim": 3, "epsilon": 2}, pairs=[(FIRST, [math.cos(1), math.sin(1), 0.0])]),  # a radian apart
        ),
        Variant(
            name="purkayastha-local",
            title="Purkayastha noise, any direction",
            pipeline="encode | normalise(l2) | purkayastha(eps/pi)",
            epsilon=10,
            brief="unit vectors: pi apart",
            why="Two directions are at most pi apart, so kappa = eps/pi makes any two directions eps-close.",
            grid={"epsilon": (1, 10, 100), "dim": (3, 300)},
        ),
    ),
)
