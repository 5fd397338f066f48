"""ADePT, a text rewriter: encode, clip in l2, add Laplace noise, decode."""

from functools import partial

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import ACL, EMNLP

KRISHNA = "Krishna, Gupta and Dupuy, ADePT: Auto-encoder based differentially private text transformation, EACL 2021"
GRID = {"epsilon": ("0.1", 1, 10), "dim": (2, 32, 1024)}
Variant = partial(Claim, epsilon=1, dim=32, grid=GRID, trial=Trial({"dim": 8}))

SYSTEM = System(
    name="adept",
    title="ADePT",
    what="An autoencoder rewrites an utterance. Its latent vector is clipped to l2 norm C, gets Laplace noise of "
    "scale 2C/eps on every coordinate, and is decoded to a new utterance.",
    reasoning="The proof says that two points of the ball are at most 2C apart. That is their l2 distance; Laplace "
    "noise must hide the l1 distance, which is up to 2C*sqrt(n), between the vectors with all coordinates "
    "C/sqrt(n) and -C/sqrt(n). In n dimensions the true epsilon is therefore sqrt(n) times the claimed one.",
    claims=(
        Variant(
            name="adept",
            title="ADePT",
            pipeline="encode | clip(l2, C) | laplace(2*C/eps) | decode",
            parameters={"C": 1},
            source=f"{KRISHNA}; restated as Theorem 3.1 in {EMNLP}",
            brief="clipped in l2, not in l1",
            why="Two points of an l2 ball are up to 2C*sqrt(n) apart in l1, and l1 is what Laplace noise hides.",
            expected="refuted",
            caveats=("encoder-training",),
            remedies=("adept-l1", "adept-sqrt-n", "adept-gaussian"),
        ),
        Variant(
            name="adept-unclipped",
            title="ADePT, as re-run in the sanity check",
            pipeline="clamp(0, 1) | laplace(1/eps)",
            source=f"{ACL}, section 5; its released code draws the noise but does not clip",
            brief="noise for 1 of n values",
            why=(
                "The sanity check compares n zeros with n ones and adds noise of scale 1/eps without clipping. Their "
                "l1 distance is n, so the loss is n*eps, whereas that of ADePT itself is sqrt(n)*eps."
            ),
            expected="refuted",
            remedies=("adept-l1", "adept-sqrt-n"),
        ),
        Variant(
            name="adept-l1",
            title="ADePT, clipped in l1",
            pipeline="encode | clip(l1, C) | laplace(2*C/eps) | decode",
            parameters={"C": 1},
            source=f"{EMNLP}, section 7",
            brief="clips in l1",
            why="Two points of an l1 ball are at most 2C apart in l1.",
            expected="proven",
            caveats=("encoder-training",),
        ),
        Variant(
            name="adept-sqrt-n",
            title="ADePT, noise times √n",
            pipeline="encode | clip(l2, C) | laplace(2*C*sqrt(dim)/eps) | decode",
            parameters={"C": 1},
            source=f"{EMNLP}, Theorem 5.1",
            brief="noise fits l1 diameter",
            why="The noise is scaled to the true l1 diameter of the l2 ball, 2C*sqrt(n).",
            expected="proven",
            caveats=("encoder-training",),
        ),
        Variant(
            name="adept-gaussian",
            title="ADePT with Gaussian noise",
            pipeline="encode | clip(l2, C) | gaussian(least_sigma(eps, delta, 2*C)) | decode",
            delta="1e-6",
            parameters={"C": 1},
            source="a remedy proposed here: keep the l2 ball and use the noise that l2 distances need",
            brief="Gaussian noise needs l2",
            why="Gaussian noise hides l2 distances, which the clipping bounds by 2C in every dimension. The "
            "standard deviation is the least one by the exact formula, at the price of a delta above 0.",
            expected="proven",
            caveats=("encoder-training",),
            trial=Trial({"dim": 8, "delta": "0.05"}),
        ),
    ),
)
