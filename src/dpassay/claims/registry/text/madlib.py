"""Noise on word embeddings with a guarantee per unit of distance: Madlib, and the same noise on tokens."""

from functools import partial

from dpassay.claims.claim import Claim, System, Trial

MADLIB = (
    "Feyisetan, Balle, Drake and Diethe, Privacy- and utility-preserving textual analysis via calibrated multivariate "
    "perturbations, WSDM 2020"
)
MAHALANOBIS = (
    "Xu, Aggarwal, Feyisetan and Teissier, A differentially private text perturbation method using regularized "
    "Mahalanobis metric, PrivateNLP 2020"
)
SND = "Mai et al., Split-and-Denoise: Protect large language model inference with local differential privacy, ICML 2024"
Variant = partial(
    Claim,
    pipeline="encode | radial(l2, 1/eps) | decode",
    epsilon=10,
    dim=300,
    trial=Trial({"dim": 2, "epsilon": 2}, pairs=[([0.0, 0.0], [1.0, 0.0])]),
)

SYSTEM = System(
    name="madlib",
    title="Madlib and metric noise on embeddings",
    what="A word's embedding gets one noise vector of density e^(-eps*|z|) in l2 (its length is Gamma distributed, its "
    "direction uniform), and the nearest word of the vocabulary is released.",
    reasoning=(
        "The loss of two words is at most eps times the l2 distance of their embeddings, by the triangle inequality; "
        "releasing the nearest word is post-processing. So the metric guarantee holds, exactly. It is not eps-DP: "
        "for two words that are d apart the loss is up to eps*d, the losses of a text's words add up, and nothing "
        "bounds the distance of two embeddings."
    ),
    claims=(
        Variant(
            name="madlib",
            title="Madlib",
            metric="l2",
            source=MADLIB,
            brief="loss: eps * distance",
            why=(
                "The noise is that of the l2 norm: the loss of two embeddings is at most eps per unit of their l2 "
                "distance."
            ),
            expected="proven",
            grid={"epsilon": (1, 10, 25), "dim": (50, 300)},
            caveats=("per-word",),
        ),
        Variant(
            name="madlib-local",
            title="Madlib, read as local DP",
            source=f"{MADLIB}; its epsilon quoted without the distance",
            brief="nothing bounds distance",
            why="Epsilon is per unit of distance. Nothing bounds how far apart two embeddings are, so no epsilon holds "
            "for any two words.",
            expected="refuted",
            remedies=("madlib-clipped",),
            trial=Trial({"dim": 2, "epsilon": 1}, pairs=[([0.0, 0.0], [9.0, 0.0])]),
        ),
        Variant(
            name="madlib-clipped",
            title="Madlib, clipped",
            pipeline="encode | clip(l2, C) | radial(l2, 2*C/eps) | decode",
            parameters={"C": 1},
            source="a remedy proposed here: bound the embeddings, and scale the noise to their largest distance",
            brief="distances are bounded",
            why="Two embeddings of norm at most C are at most 2C apart in l2, and the noise is that of the l2 norm.",
            expected="proven",
            trial=Trial({"dim": 2, "epsilon": 1}),
        ),
        Variant(
            name="mahalanobis",
            title="Mahalanobis noise",
            pipeline="encode | mahalanobis(1/eps, least, largest) | decode",
            parameters={"least": "0.2", "largest": 3},
            metric="mahalanobis",
            source=MAHALANOBIS,
            brief="loss: eps * distance",
            why=(
                "The noise is that of the Mahalanobis norm: the loss of two embeddings is at most eps per unit of "
                "their distance in that norm, whatever the covariance is."
            ),
            expected="proven",
            trial=Trial({"dim": 2, "epsilon": 2}, pairs=[([0.0, 0.0], [0.2**0.5, 0.0])]),  # 1 apart in that norm
            caveats=("per-word",),
        ),
        Variant(
            name="mahalanobis-l2",
            title="Mahalanobis noise, read in l2",
            pipeline="encode | mahalanobis(1/eps, least, largest) | decode",
            parameters={"least": "0.2", "largest": 3},
            metric="l2",
            source=f"{MAHALANOBIS}; its epsilon compared with Madlib's",
            brief="too little noise one way",
            why="Along the direction of the least eigenvalue there is less noise: a unit of l2 distance is "
            "1/sqrt(least) units of the Mahalanobis distance.",
            expected="refuted",
            remedies=("madlib",),
        ),
        Variant(
            name="split-and-denoise",
            title="Split-and-Denoise",
            pipeline="encode | radial(l2, 1/eps)",
            metric="l2",
            epsilon=100,
            dim=768,
            source=SND,
            brief="loss: eta * distance",
            why="The same noise on each token's embedding, with eta for eps: eta per unit of l2 distance, per token.",
            expected="proven",
            caveats=("per-word",),
            trial=Trial({"dim": 2, "epsilon": 2}, pairs=[([0.0, 0.0], [1.0, 0.0])]),
        ),
        Variant(
            name="laplace-embedding",
            title="Laplace noise on an embedding",
            pipeline="encode | laplace(1/eps) | decode",
            metric="l2",
            source="what is often written in its place: independent Laplace noise on every coordinate",
            brief="noise for l1 distances",
            why=(
                "With independent Laplace noise the loss is eps per unit of l1 distance, and up to sqrt(n) times as "
                "much per unit of l2 distance."
            ),
            expected="refuted",
            remedies=("madlib",),
            trial=Trial({"dim": 4, "epsilon": 1}, pairs=[([0.0] * 4, [0.5] * 4)]),
        ),
    ),
)
