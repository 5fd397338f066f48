"""Binary encodings: each value in bits, each bit flipped at random."""

from __future__ import annotations

from dpassay.claim import Claim

LYU = "Lyu, Li, He and Xiao, Towards differentially private text representations, SIGIR 2020"
LATENT = "Chamikara et al., Local differential privacy for deep learning (LATENT), 2019"

# s = eps/(dim*10): the budget of one of the 10 bits of each of dim values.
CLAIMS = (
    Claim(
        name="binary-symmetric",
        title="Binary encoding, symmetric flips",
        pipeline="encode | binary(4, 5) | flip(exp(eps/(dim*10)) / (1 + exp(eps/(dim*10))))",
        epsilon=1,
        dim=768,
        source="symmetric randomized response on every bit",
        why="Each of the r*l bits spends eps/(r*l).",
        expected="proven",
    ),
    Claim(
        name="ome",
        title="OME",
        pipeline="encode | binary(4, 5) | bits(L/(1+L), 1/(1+L^3), 1/(1+L*exp(eps/(dim*10))))",
        epsilon=1,
        dim=768,
        parameters={"L": 100},
        source=f"{LYU}, released code",
        why="Ones are kept far more often at even places and far more seldom at odd ones than zeros turn into ones.",
        expected="refuted",
    ),
    Claim(
        name="latent-moue",
        title="LATENT, MOUE",
        pipeline="encode | binary(4, 5) | bits(1/(1+a), 1/(1+a), 1/(1+a*exp(eps/(dim*10))))",
        epsilon=1,
        dim=768,
        parameters={"a": 100},
        source=LATENT,
        why="One and zero differ by at most eps/(r*l) at every bit.",
        expected="proven",
    ),
)
