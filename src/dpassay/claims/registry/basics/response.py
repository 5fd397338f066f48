"""Randomized response on one category, and the exponential mechanism."""

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import DWORK_ROTH

EPSILONS = {"epsilon": ("0.1", 1, 5)}

SYSTEM = System(
    name="response",
    title="Randomized response and the exponential mechanism",
    what=(
        "One of finitely many outputs is chosen at random: the true one most often, or one with a high score most "
        "often."
    ),
    reasoning="The probability of every output changes by a factor of at most e^eps from one input to another, by "
    "the way the probabilities are chosen.",
    claims=(
        Claim(
            name="randomized-response",
            title="Randomized response",
            pipeline="category(2) | flip(exp(eps)/(1 + exp(eps)))",
            epsilon=1,
            source=f"Warner, Randomized response, 1965; {DWORK_ROTH}, section 3.2",
            brief="odds of e^eps to 1",
            why="A bit is kept e^eps times as often as it is flipped.",
            expected="proven",
            grid=EPSILONS,
        ),
        Claim(
            name="k-ary-response",
            title="k-ary randomized response",
            pipeline="category(k) | flip(exp(eps)/(exp(eps) + k - 1))",
            epsilon=1,
            parameters={"k": 100},
            source="Kairouz, Bonawitz and Ramage, Discrete distribution estimation under local privacy, ICML 2016",
            brief="odds of e^eps to 1",
            why="The true category is reported e^eps times as often as any other.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 5), "k": (2, 100, 10000)},
            trial=Trial({"k": 4}),
        ),
        Claim(
            name="exponential",
            title="Exponential mechanism",
            pipeline="query(linf, 1) | exponential(eps/2)",
            epsilon=1,
            dim=10,
            source=f"McSherry and Talwar, Mechanism design via differential privacy, 2007; {DWORK_ROTH}, Theorem 3.10",
            brief="eps/2 for score and sum",
            why="Half of epsilon pays for the score, half for the normalizing sum.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 5), "dim": (2, 10, 1000)},
            trial=Trial({"dim": 3}),
        ),
    ),
)
