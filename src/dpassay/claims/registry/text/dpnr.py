"""DPNR, noisy sentence embeddings: drop words, encode, min-max normalize each element, add Laplace noise to each."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import UEDP
from dpassay.core.neighbours import Neighbours

LYU = "Lyu, He and Li, Differentially private representation for NLP (DPNR), Findings of EMNLP 2020"
OneWord = partial(Claim, dim=768, neighbours=Neighbours("word"))


def worst_encoder(texts: Sequence[str], dim: int) -> NDArray[np.float64]:
    """A worst possible encoder: texts with the word `rome` in one place, all others as far away as possible.

    >>> worst_encoder(["fly to rome", "fly to"], 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    here = np.array(["rome" in text.split() for text in texts])[:, None]
    first = np.arange(dim) == 0
    return np.asarray(np.where(here, first, ~first), dtype=float)


def _trial(**changes: object) -> Trial:
    return Trial({"dim": 4, **changes}, [("fly to rome", "fly to oslo")], worst_encoder)


SYSTEM = System(
    name="dpnr",
    title="DPNR",
    what=(
        "Each word of a sentence is dropped with probability mu, and the rest is encoded to k elements. Each vector "
        "is shifted and scaled to span 0 to 1, and every element gets Laplace noise of scale 1/eps. A constant "
        "vector becomes zeros."
    ),
    reasoning="Each element may change by 1, so each spends eps; but one word changes all k of them, and their "
    "losses add up to k*eps. The noise is scaled to one element's sensitivity, not to the vector's. Training that "
    "draws new noise on the same data in each of T steps multiplies that by T.",
    claims=(
        OneWord(
            name="dpnr",
            title="DPNR, word-level",
            pipeline="encode | minmax | laplace(1/eps)",
            epsilon="0.05",
            source=f"{LYU}, Theorem 1",
            brief="one word, k elements",
            why="One word changes all k elements, each by up to 1: the losses add up to k*eps.",
            expected="refuted",
            remedies=("dpnr-scaled", "dpnr-corrected"),
            grid={"epsilon": ("0.05", "0.5", 5), "dim": (2, 128, 768)},
            trial=_trial(epsilon=1),
        ),
        OneWord(
            name="dpnr-dropout",
            title="DPNR, word-level with dropout",
            pipeline="dropout(mu) | encode | minmax | laplace(1/e)",
            epsilon="ln((1-mu)*exp(e) + mu)",
            parameters={"mu": "0.5", "e": "0.05"},
            source=f"{LYU}, Theorem 2",
            brief="rests on Theorem 1",
            why=(
                "Dropping words helps as the theorem says, but it starts from eps, although k*eps is true: "
                "ln((1-mu)e^(k*eps) + mu)."
            ),
            expected="refuted",
            remedies=("dpnr-dropout-fixed",),
            grid={"mu": ("0.1", "0.5", "0.8"), "dim": (2, 128, 768)},
            trial=_trial(e=1),
        ),
        OneWord(
            name="dpnr-element",
            title="DPNR, element-level",
            pipeline="encode | minmax | laplace(1/eps)",
            epsilon="0.05",
            source=f"the authors' later reading of {LYU}, as reported in {UEDP}",
            brief="elements change together",
            why="A guarantee for one element needs elements that change one at a time. Whatever changes the text "
            "changes them all, so the group is the whole vector: k*eps again.",
            expected="refuted",
            remedies=("dpnr-scaled", "dpnr-corrected"),
            grid={"epsilon": ("0.05", "0.5", 5), "dim": (2, 128, 768)},
            trial=_trial(epsilon=1),
        ),
        Claim(
            name="dpnr-element-rows",
            title="Element-level DP, independent elements",
            pipeline="rows | clamp(0, 1) | laplace(1/eps)",
            dim=768,
            neighbours=Neighbours("element"),
            epsilon="0.05",
            source=f"the condition for element-level DP that {UEDP} states",
            brief="one element at a time",
            why=(
                "If elements change one at a time (which is not so for embeddings of texts) and no stage mixes them, "
                "one element moves by at most 1 and the others stay the same: eps."
            ),
            expected="proven",
            grid={"epsilon": ("0.05", "0.5", 5), "dim": (2, 128, 768)},
            trial=Trial({"dim": 4, "epsilon": 1}),
        ),
        OneWord(
            name="dpnr-training",
            title="DPNR, noise redrawn in training",
            pipeline="encode | minmax | repeat(T) | laplace(1/eps)",
            epsilon="0.05",
            parameters={"T": 100},
            source=f"the training loop of {LYU}, as described in {UEDP}",
            brief="data reused in T steps",
            why="New noise on the same data in each of T steps amounts to T answers about the data: T*k*eps.",
            expected="refuted",
            remedies=("dpnr-scaled",),
            grid={"T": (1, 100, 10000), "dim": (2, 128, 768)},
            trial=_trial(epsilon=1, T=3),
        ),
        OneWord(
            name="dpnr-gaussian",
            title="DPNR, Gaussian noise",
            pipeline="dropout(mu) | encode | minmax | gaussian(sqrt(2*ln(1.25/delta))/eps)",
            epsilon="0.05",
            delta="1e-5",
            parameters={"mu": "0.5"},
            source=f"the Gaussian noise of {LYU}, which {UEDP} mentions; the classic formula for one element",
            brief="one word, k elements",
            why=(
                "The noise is calibrated to one element that changes by 1. One word changes all k, so two vectors "
                "are up to sqrt(k) apart in l2."
            ),
            expected="refuted",
            remedies=("dpnr-gaussian-fixed",),
            grid={"mu": ("0.1", "0.5", "0.8"), "dim": (2, 128, 768)},
            trial=_trial(dim=8, epsilon=2, delta="0.01", mu="0.1"),
        ),
        OneWord(
            name="dpnr-gaussian-fixed",
            title="DPNR, Gaussian noise for all elements",
            pipeline="encode | minmax | gaussian(least_sigma(eps, delta, sqrt(dim)))",
            epsilon="0.05",
            delta="1e-5",
            source="ours: the least Gaussian noise for k elements, not counting the dropout",
            brief="noise for k elements",
            why="Two normalized vectors are at most sqrt(k) apart in l2, and the noise is scaled to that.",
            expected="proven",
            grid={"epsilon": ("0.05", "0.5", 5), "dim": (2, 128, 768)},
            trial=_trial(epsilon="0.5", delta="0.01"),
        ),
        OneWord(
            name="dpnr-scaled",
            title="DPNR, noise for all elements",
            pipeline="encode | minmax | repeat(T) | laplace(T*dim/eps)",
            epsilon="0.05",
            parameters={"T": 1},
            source=f"what {UEDP} implies: noise scaled to all k elements, in all T steps",
            brief="noise for k elements",
            why="T copies of two normalized vectors are at most T*k apart in l1, and the noise is scaled to that.",
            expected="proven",
            grid={"epsilon": ("0.05", "0.5", 5), "dim": (2, 128, 768)},
            trial=_trial(epsilon=1),
        ),
        OneWord(
            name="dpnr-corrected",
            title="DPNR, corrected Theorem 1",
            pipeline="encode | minmax | laplace(1/e)",
            epsilon="dim*e",
            parameters={"e": "0.05"},
            source=f"{UEDP}, Theorem 1",
            brief="k elements, k times eps",
            why="Two normalized vectors are at most k apart in l1, and k*eps accounts for that.",
            expected="proven",
            grid={"e": ("0.05", "0.5", 5), "dim": (2, 128, 768)},
            trial=_trial(e="0.5"),
        ),
        OneWord(
            name="dpnr-dropout-fixed",
            title="DPNR, corrected Theorem 2",
            pipeline="dropout(mu) | encode | minmax | laplace(1/e)",
            epsilon="ln((1-mu)*exp(dim*e) + mu)",
            parameters={"mu": "0.5", "e": "0.05"},
            source=f"{UEDP}, Theorem 2",
            brief="from the true k*eps",
            why=(
                "The bound of k*eps holds for any two vectors, and thus also if a word is dropped in one text and "
                "replaced in the other; after dropout it becomes ln((1-mu)e^(k*eps) + mu)."
            ),
            expected="proven",
            grid={"mu": ("0.1", "0.5", "0.8"), "dim": (2, 128, 768)},
            trial=_trial(e="0.5"),
        ),
    ),
)
