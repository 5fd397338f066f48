"""Two controls: copying the input, and ignoring it."""

from dpassay.claims.claim import Claim, System, Trial
from dpassay.claims.registry.sources import ACL

SYSTEM = System(
    name="controls",
    title="Copying and coin flips",
    what="The sanity check's two extremes: the output is the input, or does not depend on it.",
    reasoning="A copy reveals everything, whatever is claimed. A coin flip reveals nothing.",
    claims=(
        Claim(
            name="copy",
            title="Copying the input",
            pipeline="encode | decode",
            epsilon=10,
            dim=32,
            source=f"a control of {ACL}, section 5",
            brief="nothing is random",
            why="Nothing is random, so the output reveals the input.",
            expected="refuted",
            grid={"epsilon": ("0.1", 1, 1000)},
            trial=Trial({"dim": 2, "epsilon": 1}),
        ),
        Claim(
            name="coin-flip",
            title="Ignoring the input",
            pipeline="category(2) | flip(1/2)",
            epsilon=0,
            source=f"a control of {ACL}, section 5",
            brief="the input is ignored",
            why="The output does not depend on the input.",
            expected="proven",
        ),
    ),
)
