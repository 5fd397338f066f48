"""The Gaussian mechanism with the classic noise formula, inside and outside the range it is proved for."""

from __future__ import annotations

from dpassay.claim import Claim

CLASSIC = "Dwork and Roth, The Algorithmic Foundations of Differential Privacy, 2014, Theorem 3.22 (for 0 < eps < 1)"
FORMULA = "query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)"

CLAIMS = (
    Claim(
        name="gaussian",
        title="Gaussian, classic formula",
        pipeline=FORMULA,
        epsilon="0.5",
        delta="1e-5",
        source=CLASSIC,
        why="Inside 0 < eps < 1 the classic formula adds more than enough noise.",
        expected="proven",
    ),
    Claim(
        name="gaussian-large-eps",
        title="Gaussian, classic at eps 10",
        pipeline=FORMULA,
        epsilon=10,
        delta="1e-5",
        source=f"{CLASSIC}, used beyond it",
        why="The formula is proved for eps below 1 only; at 10 it adds too little noise.",
        expected="refuted",
    ),
)
