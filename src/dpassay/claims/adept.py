"""ADePT, a text rewriter: encode, clip in l2, add Laplace noise, decode."""

from __future__ import annotations

from dpassay.claim import Claim

KRISHNA = "Krishna, Gupta and Dupuy, ADePT: Auto-encoder based differentially private text transformation, EACL 2021"
HABERNAL = "Habernal, When differential privacy meets NLP: The devil is in the detail, EMNLP 2021"

CLAIMS = (
    Claim(
        name="adept",
        title="ADePT",
        pipeline="encode | clip(l2, C) | laplace(2*C/eps) | decode",
        epsilon=1,
        dim=32,
        parameters={"C": 1},
        source=f"{KRISHNA}; restated as Theorem 3.1 in {HABERNAL}",
        why="Two points of an l2 ball are up to 2C*sqrt(n) apart in l1, and l1 is what Laplace noise hides.",
        expected="refuted",
    ),
    Claim(
        name="adept-l1",
        title="ADePT, clipped in l1",
        pipeline="encode | clip(l1, C) | laplace(2*C/eps) | decode",
        epsilon=1,
        dim=32,
        parameters={"C": 1},
        source=f"{HABERNAL}, section 7",
        why="Two points of an l1 ball are at most 2C apart in l1.",
        expected="proven",
    ),
    Claim(
        name="adept-sqrt-n",
        title="ADePT, noise times sqrt(n)",
        pipeline="encode | clip(l2, C) | laplace(2*C*sqrt(dim)/eps) | decode",
        epsilon=1,
        dim=32,
        parameters={"C": 1},
        source=f"{HABERNAL}, Theorem 5.1",
        why="The noise is scaled to the true l1 sensitivity.",
        expected="proven",
    ),
)
