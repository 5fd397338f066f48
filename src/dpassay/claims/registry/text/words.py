"""SanText, TEM, CusText and RANTEXT: a word is replaced by a word of a vocabulary, near ones more often."""

from functools import partial

from dpassay.claims.claim import Claim, System, Trial
from dpassay.core.neighbours import Neighbours

SANTEXT = (
    "Yue, Du, Wang, Li, Sun and Chow, Differential privacy for text analytics via natural text sanitization, "
    "Findings of ACL 2021"
)
TEM = (
    "Carvalho, Vasiloudis, Feyisetan and Wang, TEM: High utility metric differential privacy on text, "
    "SIAM International Conference on Data Mining 2023"
)
CUSTEXT = "Chen et al., A customized text sanitization mechanism with differential privacy, Findings of ACL 2023"
RANTEXT = (
    "Tong et al., InferDPT: Privacy-preserving inference for black-box large language models, 2023, arXiv:2310.12214"
)
Variant = partial(
    Claim,
    pipeline="query(linf, d) | softmax(2/e)",
    epsilon="e*d",
    dim=33_860,
    parameters={"d": 1, "e": 1},
    expected="proven",
    trial=Trial({"dim": 3}, pairs=[([0.0, -1.0, -1.0], [-1.0, 0.0, 0.0])]),
)

SYSTEM = System(
    name="word-mechanisms",
    title="Word mechanisms: SanText, TEM, CusText, RANTEXT",
    what="A word is replaced by a word of a vocabulary, drawn by the exponential mechanism with minus the distance "
    "between their embeddings as score. SanText draws from the whole vocabulary, TEM treats all words beyond a radius "
    "alike, CusText draws from a fixed group of words, RANTEXT from those within a random radius.",
    reasoning=(
        "By the triangle inequality, all distances from a word change by at most d if the word is replaced by one at "
        "distance d. So the loss of SanText and TEM is at most eps*d, half for the score and half for the "
        "normalizing sum. The loss of CusText is at most eps inside a group, but its output reveals which group the "
        "word was in. RANTEXT's radius is noise that is scaled to the embeddings and not accounted for: a word far "
        "away is possible only if the radius is large, and that is rarer than e^-eps."
    ),
    claims=(
        Variant(
            name="santext-metric",
            title="SanText",
            source=SANTEXT,
            brief="eps*d at distance d",
            why=(
                "Two words are d apart, so their distances to every other word differ by at most d. A score of minus "
                "half the distance times e adds e*d/2 to the loss, and so does the normalizing sum."
            ),
            grid={"d": (1, 5), "dim": (1_000, 33_860)},
        ),
        Claim(
            name="santext-plus",
            title="SanText+, read as DP for every word",
            pipeline="clamp(0, 1) | leak(1 - p)",
            epsilon=1,
            dim=1,
            parameters={"p": "0.3"},
            neighbours=Neighbours("any"),
            source=f"{SANTEXT}; its SanText+ claims less, for words on a list of sensitive ones only",
            brief="other words stay as is",
            why=(
                "A word that is not on the list of sensitive words is left unchanged with probability 1 - p, which "
                "reveals it."
            ),
            expected="refuted",
            remedies=("santext-metric",),
            trial=Trial(pairs=[([0.0], [1.0])]),
        ),
        Variant(
            name="tem-metric",
            title="TEM",
            source=TEM,
            brief="eps*d at distance d",
            why=(
                "All words beyond the radius share one entry whose score is minus the radius plus 2*ln(their "
                "number)/eps: each of them is as likely as if its distance were the radius. So the scores are "
                "distances cut off at the radius, which change by at most d, as in SanText."
            ),
        ),
        Claim(
            name="custext-groups",
            title="CusText",
            pipeline="category(G) | flip(1)",
            epsilon=1,
            parameters={"G": 500},
            source=CUSTEXT,
            brief="output reveals the group",
            why="A word is replaced by one of its own group of 20 words. Groups have no word in common, so the output "
            "reveals the group, whatever eps is.",
            expected="refuted",
            remedies=("custext-inside", "santext-metric"),
            trial=Trial({"G": 4}),
        ),
        Claim(
            name="custext-inside",
            title="CusText, inside a group",
            pipeline="encode | clamp(0, 1) | exponential(eps/2)",
            epsilon=1,
            dim=20,
            source=f"{CUSTEXT}; between two words of one group",
            brief="scores from 0 to 1",
            why=(
                "Inside a group the scores are scaled to the interval from 0 to 1: half of eps pays for the score, "
                "half for the normalizing sum."
            ),
            expected="proven",
            grid={"epsilon": (1, 2, 3), "dim": (5, 20, 100)},
            trial=Trial({"dim": 3}, pairs=[([1.0, 0.0, 0.0], [0.0, 1.0, 1.0])]),
        ),
        Claim(
            name="rantext",
            title="RANTEXT, two tokens",
            pipeline="category(2) | flip(1 - exp(-a*ln(b*eps - c) - f)/2)",
            epsilon=3,
            parameters={
                "a": "0.01658160142016071",
                "b": "19.064721649556482",
                "c": "38.1294334077209",
                "f": "9.311083811697406",
            },
            source=f"{RANTEXT}; the constants are those of func.py in its repository",
            brief="radius not accounted for",
            why=(
                "Two tokens whose embeddings differ by the whole range D of one coordinate. The other one can be "
                "output only if the radius, Laplace noise of scale D/g(eps), exceeds D, which has probability e^-g, "
                "and then in at most half of the cases. g(eps) = a*ln(b*eps - c) + f is above 9.3 for eps of 2.1 and "
                "more."
            ),
            expected="refuted",
            remedies=("santext-metric",),
            trial=Trial({"f": 4, "epsilon": 3}, runs=60_000),
        ),
    ),
)
