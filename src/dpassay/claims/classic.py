"""Mechanisms whose textbook guarantee holds, and two extremes: copying and coin flips."""

from __future__ import annotations

from dpassay.claim import Claim

DWORK_ROTH = "Dwork and Roth, The Algorithmic Foundations of Differential Privacy, 2014"

CLAIMS = (
    Claim(
        name="laplace",
        title="Laplace mechanism",
        pipeline="query(l1, 1) | laplace(1/eps)",
        epsilon=1,
        source=f"{DWORK_ROTH}, Theorem 3.6",
        why="The noise is scaled to the l1 sensitivity of the query.",
        expected="proven",
    ),
    Claim(
        name="randomized-response",
        title="Randomized response",
        pipeline="category(2) | flip(exp(eps)/(1 + exp(eps)))",
        epsilon=1,
        source=f"Warner, Randomized response, 1965; {DWORK_ROTH}, section 3.2",
        why="Keeping a bit e^eps times as often as flipping it is eps-DP by definition.",
        expected="proven",
    ),
    Claim(
        name="exponential",
        title="Exponential mechanism",
        pipeline="query(linf, 1) | exponential(eps/2)",
        epsilon=1,
        dim=10,
        source=f"McSherry and Talwar, 2007; {DWORK_ROTH}, Theorem 3.10",
        why="Half of epsilon pays for the score, half for the normalising sum.",
        expected="proven",
    ),
    Claim(
        name="copy",
        title="Copying the input",
        pipeline="encode | decode",
        epsilon=10,
        dim=32,
        source="a control of the sanity check in Habernal, ACL 2022, section 4",
        why="Nothing is random.",
        expected="refuted",
    ),
    Claim(
        name="coin-flip",
        title="Ignoring the input",
        pipeline="category(2) | flip(1/2)",
        epsilon=0,
        source="a control of the sanity check in Habernal, ACL 2022, section 4",
        why="The output does not depend on the input.",
        expected="proven",
    ),
)
