"""Central DP: a curator who holds all documents publishes their average length."""

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import EMNLP
from dpassay.core.neighbours import Neighbours

REPLACED = Neighbours("replace-record")

SYSTEM = System(
    name="central",
    title="Average document length",
    what="A curator holds documents of at most 46 words each and publishes the sum of their lengths, from which the "
    "average follows; exactly, or with Laplace noise.",
    reasoning=(
        "Anyone who knows all documents but one learns the length of the last from an exact answer. One document "
        "changes the sum by at most 46 words, and noise of scale 46/eps hides that."
    ),
    claims=(
        Claim(
            name="average-length",
            title="Average document length, with noise",
            pipeline="clamp(0, 46) | laplace(46/eps)",
            epsilon=1,
            dim=1,
            neighbours=REPLACED,
            source=f"the example of {EMNLP}, section 2, for documents of at most 46 words",
            brief="one document, 46 words",
            why="One document changes the sum of all lengths by at most 46 words, and the noise is scaled to that. The "
            "average is the noisy sum divided by the number of documents, which is public if one is replaced.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 10)},
            trial=Trial(pairs=[([0.0], [46.0])]),
        ),
        Claim(
            name="average-length-raw",
            title="Average document length, without noise",
            pipeline="clamp(0, 46)",
            epsilon=1,
            dim=1,
            neighbours=REPLACED,
            source=f"the attack of {EMNLP}, section 2",
            brief="differencing",
            why=(
                "Anyone who knows all documents but one can subtract their lengths from the sum, which leaves the "
                "length of the last."
            ),
            expected="refuted",
            remedies=("average-length",),
        ),
    ),
)
