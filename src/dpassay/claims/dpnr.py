"""DPNR, noisy sentence embeddings: min-max normalise each element, add Laplace noise to each."""

from __future__ import annotations

from dpassay.claim import Claim
from dpassay.neighbours import Neighbours

LYU = "Lyu, He and Li, Differentially private representation for NLP (DPNR), Findings of EMNLP 2020"

CLAIMS = (
    Claim(
        name="dpnr",
        title="DPNR",
        pipeline="encode | minmax | laplace(1/eps)",
        epsilon="0.05",
        dim=768,
        neighbours=Neighbours("word"),
        source=f"{LYU}, Theorem 1",
        why="One word changes all k elements, each by up to 1: the losses add up to k*eps.",
        expected="refuted",
    ),
    Claim(
        name="dpnr-corrected",
        title="DPNR, corrected",
        pipeline="encode | minmax | laplace(dim/eps)",
        epsilon="38.4",
        dim=768,
        neighbours=Neighbours("word"),
        source="the corrected Theorem 1: k*eps, here 768 * 0.05",
        why="The noise is scaled to the l1 distance of two normalised vectors.",
        expected="proven",
    ),
)
