"""Binary encodings: each value in bits, each bit flipped at random."""

from functools import partial

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import UEDP

LYU = "Lyu, Li, He and Xiao, Towards differentially private text representations, SIGIR 2020"
LATENT = "Chamikara et al., Local differential privacy for deep learning (LATENT), 2019"

# A vector of `dim` values has dim*(1+m+n) bits: a sign, m integer and n fraction bits each.
BUDGET = "eps/(dim*(1+m+n))"
BITS = {"m": 4, "n": 5}
# Each bit's budget times what the bit is worth: the sign 2^(m+1), integer bits 2^(i-1), fraction bits 2^-i.
WEIGHTS = "2^(m+1) + 2^m - 1 + 1 - 2^(-n)"
WEIGHTED = {
    f"each bit weighted by its worth, a bound for a metric notion ({UEDP}, Eq. 15-19)": f"dim*{BUDGET}*({WEIGHTS})"
}
GRID = {"epsilon": ("0.1", 1, 10), "dim": (1, 32, 768)}
Encoding = partial(Claim, epsilon=1, dim=768, beside=WEIGHTED, trial=Trial({"dim": 1, "m": 1, "n": 1}))

SYSTEM = System(
    name="binary",
    title="Binary encoding",
    what="Each of r values is written as a sign bit, m integer bits and n fraction bits. Each of the r*l bits (l = 1 "
    "+ m + n) is redrawn at random with budget s = eps/(r*l). OME and LATENT differ in the probabilities.",
    reasoning=(
        "With symmetric flips the loss is s per bit, eps in total. OME keeps ones far more often at even positions, "
        "and far less often at odd ones, than zeros turn into ones, so the loss of a single bit is many times s, and "
        "it grows with lambda. A correction in the literature multiplies each bit's budget by the bit's place value. "
        "That bounds a metric notion of privacy, in which nearby values may be distinguished; the likelihood ratio "
        "of a flipped bit does not depend on the place value, so for differential privacy the sum of the bits' "
        "losses is exact."
    ),
    claims=(
        Encoding(
            name="binary-symmetric",
            title="Binary encoding, symmetric flips",
            pipeline=f"encode | binary(m, n) | flip(exp({BUDGET}) / (1 + exp({BUDGET})))",
            parameters=BITS,
            source=f"symmetric randomized response on every bit, as in {LYU}",
            brief="eps/(r*l) for each bit",
            why="Each of the r*l bits spends eps/(r*l), whatever its place value.",
            expected="proven",
            grid=GRID,
        ),
        Encoding(
            name="ome",
            title="OME",
            pipeline=f"encode | binary(m, n) | bits(L/(1+L), 1/(1+L^3), 1/(1+L*exp({BUDGET})))",
            parameters={**BITS, "L": 100},
            source=f"{LYU}, released code",
            brief="ratios beyond eps/(r*l)",
            why="P(1 to 1) is L/(1+L) at even positions and 1/(1+L^3) at odd ones, P(0 to 1) is 1/(1+L*e^s): ratios of "
            "order L^2 and more in single bits. At L = 1 the claim holds.",
            expected="refuted",
            remedies=("binary-symmetric", "latent-moue"),
            grid={"L": (1, 10, 100), "dim": (1, 32, 768)},
        ),
        Encoding(
            name="ome-1",
            title="OME at λ = 1",
            pipeline=f"encode | binary(m, n) | bits(L/(1+L), 1/(1+L^3), 1/(1+L*exp({BUDGET})))",
            parameters={**BITS, "L": 1},
            source=f"{LYU}, released code",
            brief="holds only at λ = 1",
            why="At L = 1 ones turn into ones with probability 1/2 and zeros with 1/(1+e^s): optimized unary "
            "encoding's probabilities, at most s per bit.",
            expected="proven",
            grid=GRID,
        ),
        Encoding(
            name="latent-moue",
            title="LATENT, MOUE",
            pipeline=f"encode | binary(m, n) | bits(1/(1+a), 1/(1+a), 1/(1+a*exp({BUDGET})))",
            parameters={**BITS, "a": 100},
            source=f"{LATENT}, modified optimized unary encoding",
            brief="<= eps/(r*l) per bit",
            why="One and zero differ by at most eps/(r*l) at every bit.",
            expected="proven",
            grid={"a": (1, 10, 100), "dim": (1, 32, 768)},
            trial=Trial({"dim": 1, "m": 1, "n": 1, "a": 3}),
        ),
        Encoding(
            name="latent-uer",
            title="LATENT, UER",
            pipeline=f"encode | binary(m, n) | bits(a/(1+a), 1/(1+a^3), 1/(1+a*exp({BUDGET})))",
            parameters={**BITS, "a": 100},
            source=f"{LATENT}, utility enhancing randomization",
            brief="the same flaw as OME",
            why="These are OME's probabilities with a for lambda, and they fail in the same way.",
            expected="refuted",
            remedies=("latent-moue", "binary-symmetric"),
            grid={"a": (1, 10, 100), "dim": (1, 32, 768)},
        ),
    ),
)
